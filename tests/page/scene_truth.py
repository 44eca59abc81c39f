"""Judge what the scene says of a prediction, from passes in which the part is taken away.

The passes are those of the edits `heads_off` and `set`, one by one, and not those of `reasons`.
"""

import re

import numpy as np

from tests.page.truth import EXACT, NAME, hold, is_near, plain, shown

CHANCE = r"(under )?([<>]?[\d.]+) %"
HEAD = r"(cross-attention, |encoder, |decoder, )?[Ll]ayer (\d+), head (\d+)"
EFFECT = "(?:lifts “.*?” above “.*?”|pushes “.*?” down|lifts “.*?” and pushes “.*?” down)"
TOLERANCE = 0.0055
LOST = 0.05


class SceneJudge:
    """Judges the sentences on one prediction.

    ``ask(**request)`` answers a trace of the same text; ``judge`` names words and holds weights.
    """

    def __init__(self, ask, judge):
        self.ask, self.judge = ask, judge
        self.passes = {}

    def _pass(self, said, off=""):
        """Return the probabilities of token and rival, and the likeliest id, without a part."""
        key = (said["position"], *said["ids"], off)
        if key not in self.passes:
            edits = [self._edit(off)] if off else []
            answer = self.ask(
                capture=[],
                analyses=["next_token"],
                predictions={"top": 3, "tokens": said["ids"]},
                edits=edits,
            ).analyses["next_token"]
            at = said["position"]
            self.passes[key] = (
                np.asarray(answer["chosen_probabilities"])[at],
                np.asarray(answer["ids"])[at],
                answer["texts"][at],
                np.asarray(answer["probabilities"])[at],
            )
        return self.passes[key]

    def _edit(self, off):
        kind, place, *numbers = off.split()
        if kind == "head":
            layer, head = map(int, numbers)
            return {"kind": "heads_off", "heads": [head], "layer": layer, "where": place}
        (layer,) = map(int, numbers)
        moe = self.judge.card_of_model.moe
        name = "experts" if moe and layer in moe.layers else "feed_forward"
        return {"kind": "set", "site": f"{place}.layers.{layer}.{name}.output", "value": 0}

    def check(self, said):
        """Raise FalseSentence if a sentence is not so."""
        words = plain(said["said"])
        getattr(self, f"_{said['kind']}")(said, words)

    def _scene(self, said, words):
        own, *_ = self._pass(said)
        if match := re.match(r"(No single head|None of the \d+ heads that add most)", words):
            least = re.search(r"at least ([<>]?[\d.]+) %", words)
            hold(least, "no grammar")
            card = self.judge.card_of_model
            places = 3 if card.kind == "encoder-decoder" else 1
            is_all = len(said["tried"]) >= places * card.n_layers * card.n_heads
            hold((match[1] == "No single head") == is_all, "not every head was tried")
            for off in said["tried"][:: 1 + len(said["tried"]) // 8]:
                after = self._pass(said, off)[0][0]
                hold(after >= float(least[1].strip("<>")) / 100 - 1e-4, f"{off} leaves {after:.4f}")
            return
        match = re.search(HEAD, words)
        hold(match, "no grammar")
        off = said["off"]
        layer, head = int(match[2]), int(match[3])
        hold(off.split()[2:] == [str(layer), str(head)], "another head is offered")
        after = self._pass(said, off)[0][0]
        if " needs " not in words or "takes from" in words:
            self._reads(said, words, off)
        if words.startswith("To "):
            hold(after <= (1 - LOST) * own[0] + 1e-4, f"without it the word keeps {after:.3f}")
            self._effect(said, words, off)
        elif moved := re.search(rf"(falls|rises) from {CHANCE} to {CHANCE}", words):
            hold((moved[1] == "falls") == (after < own[0]), "the other way")
            hold(is_near(moved[3], own[0], self._within(moved[3])), f"it was {own[0]:.4f}")
            hold(is_near(moved[5], after, self._within(moved[5])), f"it is {after:.4f}")
        else:
            keeps = re.search(rf"changes little: .* keeps {CHANCE}", words)
            hold(keeps and is_near(keeps[2], after, self._within(keeps[2])), f"keeps {after:.4f}")
            hold(abs(1 - after / own[0]) < LOST + 1e-3, f"{own[0]:.4f} to {after:.4f}")

    def _stack(self, said):
        return said["off"].split()[1] if said["off"] else self.judge.stack

    def _within(self, share):
        return EXACT if "." in share else TOLERANCE

    def _reads(self, said, words, off):
        """Check the word that the head reads, its share, and that it lies where it is said to."""
        pattern = rf"(?:looks (back )?at|reads|takes from) ({NAME}|the start of the text)"
        found = re.search(pattern, said["said"])
        hold(found, "no grammar")
        share = re.search(r"(?:with |\()([<>]?[\d.]+) % of its weight", words)
        hold(share, "no share")
        _, place, layer, head = off.split()
        stack = "decoder" if place == "cross" else place
        kind = "cross_attention" if place == "cross" else "self_attention"
        row = self.judge.trace[f"{stack}.layers.{layer}.{kind}.weights"][
            int(head), said["position"]
        ]
        side = self.judge.source if place in ("cross", "encoder") else self.judge.target
        is_start = found[2] == "the start of the text"
        tokens = [0] if is_start else side.find(found[2])
        weight = float(sum(row[at] for at in tokens))
        hold(is_near(share[1], weight, self._within(share[1])), f"its weight is {weight:.4f}")
        if found[1]:
            hold(max(tokens) < said["position"], "the word is not before")

    def _effect(self, said, words, off):
        if not re.search(EFFECT, words):
            return
        _, place, layer, head = off.split()
        token, against = said["ids"]
        analysis = self.ask(
            capture=[],
            analyses=["logit_attribution"],
            logit_difference={"position": said["position"], "token": token, "against": against},
        ).analyses["logit_attribution"]
        kind = "cross_attention" if place == "cross" else "self_attention"
        adds = np.asarray(analysis[f"{kind}.heads"])[int(layer), int(head)]
        hold(adds > 0, f"the head adds {adds:.3f}")

    def _outcome(self, said, words):
        match = re.fullmatch(
            rf"Without it “.*?” goes from {CHANCE} to {CHANCE}"
            r"(?:, and the likeliest is “(.*)”)?\.",
            words,
        )
        hold(match, "no grammar")
        own, *_ = self._pass(said)
        after, ids, texts, _ = self._pass(said, said["off"])
        hold(is_near(match[2], own[0], self._within(match[2])), f"it was {own[0]:.4f}")
        hold(is_near(match[4], after[0], self._within(match[4])), f"it is {after[0]:.4f}")
        hold((match[5] is None) == (ids[0] == said["ids"][0]), "another word is the likeliest")
        if match[5] and "\\x" not in texts[0]:
            hold(plain(shown(texts[0])) == match[5], f"{texts[0]!r} is the likeliest")

    def _without(self, said, words):
        match = re.match(
            r"Without .*?, the model (still )?(?:writes|puts) “(.*?)”\. (.*)\.$", words
        )
        hold(match, "no grammar")
        own, before, *_ = self._pass(said)
        after, ids, texts, _ = self._pass(said, said["off"])
        hold("\\x" in texts[0] or plain(shown(texts[0])) == match[2], f"{texts[0]!r} is written")
        if match[1]:
            hold(before[0] == ids[0], "it wrote another word before")
        first = re.match(rf"“.*?” (?:(falls|rises) from {CHANCE} to|stays at) {CHANCE}", match[3])
        hold(first, "no grammar")
        hold(is_near(first[5], after[0], self._within(first[5])) or first[4], f"is {after[0]:.4f}")
        if first[1]:
            hold((first[1] == "falls") == (after[0] < own[0]), "the other way")
