"""Judge what is said of single cells, and the summaries of drawings that a screen reader reads."""

import re
from itertools import takewhile
from pathlib import Path

import numpy as np

from tests.page import views_truth as views
from tests.page.truth import FalseSentence, Side, hold, is_near, plain, rests, shown
from tests.page.views_truth import CHANCE, NUMBER, TOP, ViewJudge, equals, number

FULL = {"capture": ["*.weights"], "analyses": []}
PART = r"(?P<part>attention|cross-attention|experts|feed-forward network)"
SITES = {
    "attention": "self_attention",
    "cross-attention": "cross_attention",
    "experts": "feed_forward",
    "feed-forward network": "feed_forward",
}


class CellJudge(ViewJudge):
    """Judges the sentences of cells; those of the strongest cell have the grammar of a view."""

    def check(self, said):
        """Raise FalseSentence if a sentence is not so."""
        kinds = ("cell", "readout") if said["kind"] == "cell" else (said["kind"],)
        for of, pattern, check in GRAMMAR:
            if of.intersection(kinds) and (match := pattern.fullmatch(said["said"])):
                getattr(self, check)(said, match.groupdict())
                return
        hold(False, "no grammar")

    def after(self, said):
        """Answer the pass B of a comparison, with its weights."""
        b = said["b"]
        if b.get("edits"):
            return self.asked(edits=b["edits"], **FULL)
        return self.read(b["text"], target=b.get("target"), **FULL)

    def _drawn(self, said, _):
        """Hold that the number that is drawn is the one that is said."""
        for told in re.findall(NUMBER, said["said"]):
            for value in (said["value"], 100 * said["value"], abs(said["value"])):
                try:
                    equals(told, float(value), 3)
                except FalseSentence:
                    continue
                return
        hold(False, f"{said['value']} is drawn")

    def _nothing(self, said, _):
        hold(abs(said["value"]) < 5e-7, f"it is {said['value']}")

    def _aligned(self, said, of):
        weights = self.asked(capture=[], analyses=["alignment"]).analyses["alignment"]["weights"]
        at, to = (
            side.tokens[self.unit(of[name], side, "split")[0]].word
            for name, side in (("name", self.judge.target), ("key", self.judge.source))
        )
        equals(of["much"], float(np.asarray(weights)[at, to]))

    def _hidden(self, said, of):
        rows, columns = self.sides(said)
        if of["which"] == "B":
            found = self.after(said)
            side = Side(found.target or found.text, found.target_tokens or found.tokens)
            rows = columns = side
        hold(self.unit(of["name"], rows)[-1] < self.unit(of["key"], columns)[0], "it comes before")
        hold(said["where"] == "decoder", "no key is hidden")

    def _other(self, said, of):
        found = self.after(said)
        has_target = found.target_tokens is not None
        source = Side(found.text, found.tokens)
        rows = Side(found.target, found.target_tokens) if has_target else source
        rows, columns = (
            (source, source)
            if said["where"] == "encoder"
            else (rows, source if said["where"] == "cross" else rows)
        )
        path = self.judge._path(dict(said, layer=of["layer"]))
        at = self.unit(of["name"], rows)[-1] - bool(of["wrote"])
        row = np.asarray(found[f"{path}.weights"])[int(of["head"]), at]
        equals(
            of["much"], row[[at] if of["key"] == "itself" else self.unit(of["key"], columns)].sum()
        )

    def _change(self, said, of):
        rows, columns = self.sides(said)
        if columns is rows and of["layer"] is None:
            return
        found = self.after(said)
        source = Side(found.text, found.tokens)
        target = Side(found.target, found.target_tokens) if found.target_tokens else source
        others = [source if side is self.judge.source else target for side in (rows, columns)]
        (at, at_b), (keys, keys_b) = (
            self.pair(of[name], side, other)
            for name, side, other in zip(("name", "key"), (rows, columns), others, strict=True)
        )
        path = self.judge._path(dict(said, layer=of["layer"]))
        for name, trace, places, read in (
            ("a", self.judge.trace, at, keys),
            ("b", found, at_b, keys_b),
        ):
            if places and read:
                rows = [each - bool(of["wrote"]) for each in places]
                weights = np.asarray(trace[f"{path}.weights"], float)[int(of["head"])]
                equals(of[name], weights[np.ix_(rows, read)].sum(axis=1).mean())
        hold(abs(number(of["much"]) - number(of["b"]) + number(of["a"])) < 3e-3, "the difference")

    def pair(self, words, side, other):
        """Return the tokens of a unit of A, and of what B has for it, None where it may be several.

        Texts of one length are compared by position; of others, what both begin or end with is
        compared with itself, and what lies between with nothing else.
        """
        ours = theirs = words
        if words.count("/") > side.text.count("/"):
            ours = re.sub("/[^\u2069]*", "", words)
            theirs = re.sub("\u2068[^/]*/", "\u2068", words)
        bare = re.sub(r" at \d+$", "", theirs)
        found = []
        for unit in self.called(ours, side):
            places = self.places(unit, side, other)
            there = [each for each in self.called(bare, other) if each[0] in places]
            if there:
                found.append((unit, there[0] if len(there) == 1 else None))
        if ours == theirs:
            found = [each for each in found if len(each[0]) == 1] or found
        hold(len(found) == 1 or (found and ours != theirs), f"{len(found)} are called {words}")
        return found[0] if len(found) == 1 else (None, None)

    @staticmethod
    def places(unit, side, other):
        """Return the tokens of B that may be compared with a unit of A."""
        groups, others = side.groups, other.groups
        names, left = (
            ["".join(of.tokens[key].text for key in group).strip() for group in of.groups]
            for of in (side, other)
        )
        at = next(n for n, group in enumerate(groups) if unit[0] in group)
        start = alike(names, left)
        end = alike(names[start:][::-1], left[start:][::-1])
        if len(names) != len(left) and start <= at < len(names) - end:
            return [key for group in others[start : len(left) - end] for key in group]
        there = others[at if at < start or len(names) == len(left) else at - len(names)]
        is_cut_alike = len(groups[at]) == len(there) and unit != groups[at]
        return [there[groups[at].index(unit[0])]] if is_cut_alike else there

    def _share(self, said, of):
        if not said["b"].get("edits"):
            return
        path = self.judge._path(dict(said, layer=of["layer"]))
        before, after = (
            np.asarray(each[f"{path}.weights"], float)[int(of["head"])]
            for each in (self.judge.trace, self.after(said))
        )
        equals(of["share"], 100 * np.abs(after - before).sum(axis=1).mean() / 2, 1)

    def _routed(self, said, of):
        path = f"{self.judge.stack}.layers.{of['layer']}.experts"
        names = [f"{path}.{each}" for each in ("router_probs", "expert_indices", "expert_weights")]
        trace = self.asked(capture=names, analyses=[])
        (at,), expert = self.unit(of["name"], self.judge.target), int(of["expert"])
        probabilities, indices, weights = (np.asarray(trace[name][at], float) for name in names)
        equals(of["share"], probabilities[expert])
        hold((of["weight"] is not None) == (expert in indices), "it was chosen otherwise")
        if of["weight"]:
            equals(of["weight"], weights[list(indices).index(expert)])

    def _lens(self, _, of):
        lens = self.asked(capture=[], analyses=["logit_lens"]).analyses["logit_lens"]
        at, layer = self.at(of["name"]), int(of["layer"])
        text = lens["texts"][layer][at][0]
        hold("\\x" in text or plain(shown(text)) == plain(of["word"]), f"it is {text!r}")
        hold(is_near(of["share"], float(np.asarray(lens["probabilities"])[layer, at, 0]), 6e-4), "")

    def _sampling(self, _, of):
        at, rank = self.at(of["name"]), int(of["rank"]) - 1
        logits = np.asarray(self.asked(capture=["logits"], analyses=[])["logits"], float)[at]
        own, warm = (np.exp(logits / t - (logits / t).max()) for t in (1.0, 0.8))
        own, warm = own / own.sum(), warm / warm.sum()
        order = np.argsort(-warm)
        n_kept = int(np.searchsorted(np.cumsum(warm[order]), 0.9)) + 1
        equals(of["own"], 100 * own[order[rank]], 1)
        is_kept = rank < n_kept
        equals(of["share"], is_kept * 100 * warm[order[rank]] / warm[order[:n_kept]].sum(), 2)

    def _position(self, _, of):
        names = f"{self.judge.stack}.embedding.positional"
        vectors = np.asarray(self.asked(capture=[names], analyses=[])[names], float)
        one = vectors[int(of["one"])]
        if "other" in of:
            other = vectors[int(of["other"])]
            equals(of["much"], one @ other / np.linalg.norm(one) / np.linalg.norm(other))
        else:
            equals(of["much"], one[int(of["dimension"])])

    def _turned(self, said, of):
        """Check an angle by the formula of rotary encoding."""
        site = f"{self.judge._path(dict(said, layer=0))}.rotated_queries"
        query = np.asarray(self.asked(capture=[site], analyses=[])[site], float)[int(of["head"])]
        (at,) = self.unit(f"{of['name']} at {of['one']}", self.sides(said)[0])
        equals(of["much"], np.cos(at * self.judge.base ** (-2 * int(of["pair"]) / query.shape[1])))

    def bias(self, said, query):
        """Return the bias of ALiBi at each key by its formula, with the slopes of the paper."""
        n_heads = self.judge.card_of_model.n_heads
        distance = np.arange(len(self.sides(said)[1].tokens)) - query
        return -np.abs(distance) * 2.0 ** (-8 * (said["head"] + 1) / n_heads)

    def _biased(self, said, of):
        rows, columns = self.sides(said)
        (query,), (key,) = self.unit(of["name"], rows), self.unit(of["key"], columns)
        hold(int(of["away"]) == abs(query - key), "the distance is another")
        equals(of["much"], self.bias(dict(said, head=int(of["head"])), query)[key])

    # --- one row of a head, dimension by dimension ------------------------------------------------

    def row(self, said):
        """Return query, key, value and context of the row and its strongest key, and its scores."""
        path, head = self.judge._path(said), said["head"]
        query = said["query"]
        turned = "rotated_" * (self.judge.card_of_model.positional == "rotary")
        names = [f"{turned}queries", f"{turned}keys", "values", "context", "scores", "weights"]
        trace = self.asked(capture=[f"{path}.{name}" for name in names], analyses=[])
        queries, keys, values, context, scores, weights = (
            np.asarray(trace[f"{path}.{name}"], float) for name in names
        )
        of_keys = head * len(keys) // len(queries)
        return (
            queries[head, query],
            keys[of_keys],
            values[of_keys],
            context[head, query],
            scores[head, query],
            weights[head, query],
        )

    def _dimension(self, said, of):
        if said["where"] == "cross":  # which row is shown, its own test tells
            self._drawn(said, of)
            return
        query, keys, values, context, _, weights = self.row(said)
        key, at = int(weights.argmax()), int(of["dimension"])
        value = {
            "Query": query,
            "Query, rotated": query,
            "Key": keys[key],
            "Key, rotated": keys[key],
            "Query × key": query * keys[key],
            "Value of the key": values[key],
            "Weight × value": weights[key] * values[key],
            "Context: all keys together": context,
        }.get(of["what"])
        if value is None:
            self._drawn(said, of)
            return
        value = value[at]
        equals(of["much"], value, max(1, abs(value)))

    def _scored(self, said, of):
        if said["where"] == "cross":  # which row is shown, its own test tells
            self._drawn(said, of)
            return
        query, keys, _, _, scores, weights = self.row(said)
        (key,) = self.unit(of["name"], self.sides(said)[1])
        product = query @ keys[key]
        value = {
            "Score": scores[key],
            "Weight": weights[key],
            "Product": product,
            "Product ÷ √d": product / len(query) ** 0.5,
            "Bias by distance": self.bias(said, said["query"])[key],
        }[of["what"]]
        equals(of["much"], value, max(1, abs(value)))

    def _product(self, said, of):
        if said["where"] == "cross":  # which row is shown, its own test tells
            self._drawn(said, of)
            return
        query, keys, _, _, _, weights = self.row(said)
        (key,), at = self.unit(of["name"], self.sides(said)[1]), int(of["dimension"])
        for name, value in (
            ("q", query[at]),
            ("k", keys[key][at]),
            ("much", query[at] * keys[key][at]),
            ("sum", query @ keys[key]),
            ("weight", weights[key]),
        ):
            equals(of[name], value, max(1, abs(value)))

    # --- a prediction by parts, by patches and by what is erased ----------------------------------

    def _layer(self, said, of):
        found = self.attribution(said, None, None)
        name = f"layers.{of['layer']}.{SITES[of['part']]}"
        self._bars(of, found["parts"][found["part_names"].index(name)])

    def _bars(self, of, value):
        equals(of["much"], abs(value), 2)
        hold(abs(value) < 0.006 or plain(of["word"]) == self.names[int(value < 0)], "the other")

    def _word(self, said, of):
        if said.get("state") == "saliency":
            return self._erased(said, of)
        found = self.attribution(said, None, None)
        is_source = of["name"].endswith(" of the source")
        side = self.judge.source if is_source else self.judge.target
        kind = "cross_attention" if is_source else "self_attention"
        by_key = np.asarray(found[f"{kind}.keys"]).sum(axis=(0, 1))
        return self._bars(of, by_key[self.word(of["name"], side)].sum())

    def _expert(self, said, of):
        found = self.attribution(said, None, None)
        self._bars(of, found["experts"][int(of["layer"])][int(of["expert"])])

    def difference(self, said, **request):
        """Return the logit of the token less that of its rival in a pass."""
        logits = self.asked(capture=["logits"], analyses=[], **request)["logits"]
        token, against = said["ids"]
        row = np.asarray(logits, float)[said["position"]]
        return row[token] - row[against]

    def _erased(self, said, of):
        if said["panel"] != "erasure":
            return
        bare = of["name"].removesuffix(" of the source")
        is_source = bare != of["name"]
        side = self.judge.source if is_source else self.judge.target
        stack = "encoder" if is_source else self.judge.stack
        piece, _, word = bare.partition(" of “")
        if "(byte" in piece:
            return
        if word:
            pieces = self.unit(f"“{word}", side, "read")
            names = {at: f"“{side.names[at]}”" for at in pieces}
            found = [at for at in pieces if plain(piece) in (names[at], f"{names[at]} at {at}")]
        else:
            found = self.unit(piece, side)
        (at,) = found
        edit = {"kind": "set", "site": f"{stack}.embedding.output", "positions": [at], "value": 0}
        self.attribution(said, None, None)
        self._bars(of, self.difference(said) - self.difference(said, edits=[edit]))

    def _step(self, said, _):
        """Check what the first step of the thread adds, and what is left without it."""
        step = re.split(r" (?=Step 2: )", said["said"])[0]
        moves = rf"Step 1: .*? makes ({CHANCE}) % .*? falls: ({NUMBER}) → ({NUMBER})\."
        head = re.search(r"(cross-attention, )?(?:\w+, )?layer (\d+), head (\d+)", step)
        if not (made := re.match(moves, step)) or not head:
            return
        found = self.attribution(said, None, None)
        kind = "cross_attention" if head[1] else "self_attention"
        layer, number_of_head = int(head[2]), int(head[3])
        logits = np.asarray(found["logits"])
        adds = found[f"{kind}.heads"][layer][number_of_head]
        equals(made[1], 100 * adds / (logits[0] - logits[1]), 2)
        equals(made[2], logits[0] - logits[1], 2)
        edge = f"{'cross.' if head[1] else ''}{layer}.{number_of_head}→logits"
        cut = [{"kind": "cut", "edges": [edge]}]
        equals(made[3], self.difference(said, edits=cut), 2)

    def _kept(self, said, of):
        listed = self.asked(**TOP).analyses["next_token"]
        after = self.read(said["other"])
        known = {}
        for found in (listed, after.analyses["next_token"]):
            known |= dict(zip(found["texts"][-1], np.asarray(found["ids"])[-1], strict=True))
        names = [plain(of[name]).replace("·", " ") for name in ("right", "wrong")]
        ids = [known[name] for name in names if name in known]
        if len(ids) < 2:
            return
        logits = [
            np.asarray(trace["logits"], float)[-1]
            for trace in (
                self.asked(capture=["logits"], analyses=[]),
                self.read(said["other"], capture=["logits"], analyses=[]),
            )
        ]
        clean, corrupted = (row[ids[0]] - row[ids[1]] for row in logits)
        equals(of["clean"], clean, 2)
        equals(of["corrupted"], corrupted, 2)
        kept = 100 * (number(of["much"]) - corrupted) / (clean - corrupted)
        step = 1.0 if of["much"][0] in "<>" else 0.5  # in the second decimal of the difference
        rounding = 0.5 + abs(step / (clean - corrupted))
        hold(abs(number(of["share"]) - kept) <= rounding, f"it keeps {kept:.1f} %")

    def found(self, **asked):
        """Answer a circuit, once for each request."""
        key = repr(asked)
        if key not in self.passes:
            self.passes[key] = self.circuit(**asked)
        return self.passes[key]

    def _edge(self, said, of):
        """Run the circuit without an edge: it loses what is said."""
        asked = said["asks"]["circuit"]
        found = self.found(**asked)
        left = [edge.name for edge in found.edges if edge.name != of["edge"]]
        hold(len(left) == len(found.edges) - 1, "it is no edge of the circuit")
        if said["kind"] == "readout":
            without = self.found(pairs=asked["pairs"], holds_out=False, edges=left)
            loss = found.chosen.value - without.chosen.value
            equals(of["loss"], 100 * loss, 10)

    def _claims(self, said, _):
        """Check what edges lose, against the circuit that the API returns."""
        losses = [100 * edge.loss for edge in self.found(**said["asks"]["circuit"]).edges]
        told = re.findall(rf"cut: ({NUMBER}) % of", said["said"])
        for each, loss in zip(told, sorted(-loss for loss in losses), strict=False):
            small = each[0] in "<>" and abs(loss) < 1
            hold(small or abs(number(each) - loss) < 0.51, f"it loses {loss}")

    def _unmeasured(self, *_):
        hold(self.judge.profile is None, "they have a profile")

    def weights_of(self, said, of):
        """Return the weights of a head on what each query sees, from the second query on."""
        path = self.judge._path(dict(said, layer=of["layer"]))
        weights = np.asarray(self.judge.trace[f"{path}.weights"], float)[int(of["head"])]
        n_seen = [
            at + 1 if said["where"] == "decoder" else len(row) for at, row in enumerate(weights)
        ]
        return [row[:n] for row, n in zip(weights, n_seen, strict=True)][1:]

    def _here(self, said, of):
        rows = self.weights_of(said, of)
        spread = [
            -np.sum(row * np.log2(np.maximum(row, 1e-30))) / np.log2(len(row)) for row in rows
        ]
        equals(of["broad"], np.mean(spread), 2)
        columns = self.sides(said)[1]
        words = [token.word for token in columns.tokens]
        resting = []
        for at, row in enumerate(rows, 1):
            keys = [key for key in range(at) if rests(columns, at, key)]
            keys = [key for key in keys if key == 0 or words[key] != words[at]]
            resting += [row[keys].sum()] * (2 * len(keys) <= len(row))  # where they are few
        equals(of["sink"], np.mean(resting), 2)

    def _left(self, said, of):
        share = np.mean([row[0] for row in self.weights_of(said, said)])
        hold(share > 0.5 and is_near(of["share"], share), f"it is {share:.3f}")

    def _points(self, said, of):
        if self.judge.profile is None:
            card = self.judge.card_of_model
            hold(
                int(of["shown"]) == int(of["heads"]) == card.n_layers * card.n_heads, "other heads"
            )
            return
        profile = self.judge.profile["attentions"]
        ending = self.judge._path(dict(said, layer=0)).split(".layers.0.")
        heads = sum(
            len(of_layer)
            for path, of_layer in profile.items()
            if path.startswith(ending[0]) and path.endswith(ending[1])
        )
        hold(int(of["shown"]) == int(of["heads"]) == heads, f"there are {heads}")

    def _point(self, said, of):
        path = self.judge._path(dict(said, layer=of["layer"]))
        head = self.judge.profile["attentions"][path][int(of["head"])]
        equals(of["sink"], head["scores"]["sink"]["score"])
        equals(of["control"], head["scores"]["sink"]["control"])
        equals(of["entropy"], head["entropy"])

    def _measured(self, _, of):
        texts = self.judge.profile["sentences"]
        hold(int(of["sentences"].replace(",", "")) == texts, f"there are {texts}")

    def _counts_in(self, said, _):
        """Check the numbers of tokens, layers and heads in a summary."""
        words, card = said["said"], self.judge.card_of_model
        rows, columns = self.sides(said)
        if said["view"] == "compare":
            return
        expected = {
            r"(\d+) queries": len(rows.tokens),
            r"(\d+) keys\b": len(columns.tokens),
            r"(\d+) layers": self.judge.n_layers,
            r"(\d+) heads": card.n_heads,
            r"by (\d+) positions": None,
        }
        for pattern, count in expected.items():
            if (found := re.search(pattern, words)) and count is not None:
                is_written = said["where"] == "cross" and "queries" in pattern
                is_left = re.search("queries|keys", pattern) and self.judge.profile is None
                expected_here = (count, count - is_written, count - bool(is_left))
                hold(int(found[1]) in expected_here, f"there are {count}")


def alike(a, b):
    """Return how far two lists begin alike."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))])


MAP = r"\((?:(?P<which>[AB]), )?(?:.*)\)"
OF_WORDS = rf"(?P<much>{NUMBER}) logits for “(?P<word>.*)” against “.*”"
KNOWN = vars(views) | globals()
GRAMMAR = [
    (
        frozenset(kinds.split(",")),
        re.compile(re.sub(r"\{([A-Z_]{2,})\}", lambda name: KNOWN[name[1]], pattern)),
        check,
    )
    for line in (Path(__file__).parent / "grammar.txt").read_text().splitlines()
    for check, kinds, pattern in [re.match("(\\w+) ([a-z,]+): (.*)", line).groups()]
]
