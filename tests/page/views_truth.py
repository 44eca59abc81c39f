"""Judge the sentences of the views and of the map, from arrays that are asked for here.

`grammar.txt` has the form of each sentence and the check of what it captured, the first that fits.
"""

import re

import numpy as np

from tests.page.scene_truth import SceneJudge
from tests.page.truth import NAME, WORD, hold, is_near, kind, plain, shown

UNIT = rf"{WORD}(?: \(bytes? [\d–]+ of \d+\))?(?: at \d+)?(?: of the source)?"
NUMBER = r"[−+±≈<>]*\d[\d.,]*(?:·10⁻[⁰¹²³⁴-⁹]+)?"
HEAD = r"(?:(?:cross-attention|encoder|decoder), )?layer (?P<layer>\d+), head (?P<head>\d+)"
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def number(words):
    """Return the number that words write; `<0.1` is 0.1."""
    digits, _, power = words.replace("−", "-").replace(",", "").partition("·10")
    value = float(re.sub("[±≈<>+]", "", digits))
    return value * 10.0 ** int(power.translate(DIGITS)) if power else value


def equals(words, value, scale=1.0):
    """Hold that a written number is a value, but for half of its last digit and 16 bits."""
    if words[0] in "<>≈":
        is_less = words[0] != ">" or "−" in words
        hold((abs(value) < abs(number(words))) == is_less, f"it is {value:.4g}")
        return
    digits, _, power = words.partition("·10")
    step = 10.0 ** (int(power.translate(DIGITS) or 0) - len(digits.partition(".")[2]))
    step *= words != "0"  # an exact 0 is written so, and nothing else
    hold(abs(number(words) - value) <= 0.51 * step + 2e-3 * scale, f"{words} is {value:.4g}")


class ViewJudge(SceneJudge):
    """Judges what views say; passes and names are those of the scene's judge."""

    def sides(self, said):
        return self.judge._sides(said["where"])

    def called(self, words, side, cut=""):
        """Return the tokens and words that are called so, `“keys” at 10` by its first token.

        Only words, if they are `cut` as a reader does (“read”) or as the tokenizer (“split”).
        """
        form = rf"{WORD}(?: \((bytes? [\d–]+ of \d+)\))?(?: at (\d+))?"
        name, part, at = re.match(form, words).groups()
        split = {}
        for index, token in enumerate(side.tokens):
            split.setdefault(f"s{index}" if token.word is None else token.word, []).append(index)
        every = [[index] for index in range(len(side.tokens))] + side.groups
        units = {"read": side.groups, "split": [*split.values()]}.get(cut, every)
        found = [
            unit
            for unit in units
            if at in (None, str(unit[0]))
            and not (cut and self._is_number(unit, side))
            and (
                side.names[unit[0]] == f"{part} of {name}"
                if part
                else (plain(name) or name) in self._called(unit, side)
            )
        ]
        return [unit for at, unit in enumerate(found) if unit not in found[:at]]

    def unit(self, words, side, cut=""):
        """Return the tokens that a name in a view names."""
        found = self.called(words, side, cut)
        if cut and not found:  # digits, and letters of a script without spaces, are apart
            return self.unit(words, side)
        whole = [unit for unit in found if len(unit) == 1] or found
        is_one = len(whole) == 1 or re.search(r"” at \d|\(byte.*\)", words)
        hold(whole and is_one, f"{len(whole)} are called {words}")
        return whole[-1 if "(byte" in words else 0]

    def word(self, name, side):
        """Return the tokens of a word that is named; it is whole, but for a number's digits."""
        unit = self.unit(name, side, "read")
        word = side.word_of(unit[0])
        is_whole = word is None or unit == list(side.words[word].tokens)
        hold(is_whole or side.words[word].is_number, "it is a piece of a word")
        return unit

    def at(self, name):
        """Return the token at which a prediction is told."""
        is_name = re.fullmatch(NAME, name) and not re.search(r"” at \d+$", name)
        return (self.judge.target.find if is_name else self.of_target)(name)[-1]

    def of_target(self, name):
        return self.unit(name, self.judge.target)

    @staticmethod
    def _is_number(unit, side):
        spelled = "".join(side.tokens[at].text for at in unit).strip()
        digits = spelled.strip(".,")
        return digits != "" and all(kind(letter) == "N" or letter in ".," for letter in digits)

    @staticmethod
    def _called(unit, side):
        spelled = "".join(side.tokens[at].text for at in unit)
        cut = side.text[side.tokens[unit[0]].start : side.tokens[unit[-1]].end]
        bare = re.sub(r"^[^\w\[]+|[^\w\]]+$", "", cut.strip())
        if side.tokens[unit[0]].start and re.match("['’][^\\W\\d_]", spelled):
            bare = f"’{bare}"  # the end of a contraction is not called by its letters
        named = {plain(each) for text in (spelled, cut, bare) for each in (shown(text), text)}
        return (
            named
            | {shown(cut)}
            | {  # a sign that cannot be seen has only its name
                plain(text.replace("'", "’")) for text in (spelled.strip(), cut.strip(), bare)
            }
        )

    def weights(self, said, of, query):
        layer, head = int(of.get("layer") or said["layer"]), int(of.get("head") or said["head"])
        return self.judge._weights(dict(said, layer=layer, head=head, query=query))

    def _reads(self, said, of):
        rows, columns = self.sides(said)
        at = self.unit(of["name"], rows)[-1] - bool(of["wrote"])
        row = self.weights(said, of, at)
        much = row[[at] if of["key"] == "itself" else self.unit(of["key"], columns)].sum()
        equals(of["much"], much)
        shown = row[1:] if "first token hidden" in said["said"] else row
        hold(not of["most"] or much >= shown.max() - 2e-3, "another is read more")

    def _expects(self, said, of):
        side, at = self.judge.target, self.at(of["name"])
        prediction = self.judge.trace.analyses["next_token"]
        rank = int(of.get("rank") or 1) - 1
        text, chance = prediction["texts"][at][rank], prediction["probabilities"][at][rank]
        hold("\\x" in text or plain(shown(text)) == plain(of["word"]), f"{text!r} is expected")
        hold(is_near(of["share"], chance, 6e-4), f"its probability is {chance:.4f}")
        if of["came"]:
            here = at + (self.judge.stack == "decoder")
            hold(side.tokens[here].id == prediction["ids"][at][rank], "another came")

    def _spreads(self, said, of):
        rows, _ = self.sides(said)
        (at,) = self.unit(of["name"], rows)
        places = [p for p in self.judge.trace.tensors if p.endswith(".weights")]
        path = self.judge._path(said).split(".layers.")[0]
        ending = self.judge._path(said).rsplit(".", 1)[1]
        bits = {}
        for place in places:
            if place.startswith(path) and f".{ending}." in place:
                row = np.maximum(np.asarray(self.judge.trace[place], float)[:, at], 1e-30)
                bits[int(place.split(".")[2])] = -(row * np.log2(row)).sum(axis=1).mean()
        equals(of["bits"], bits[int(of["layer"])], 2)
        equals(of["mean"], np.mean(list(bits.values())), 2)

    def _stands(self, _, of):
        side = self.judge.source if self.judge.stack == "encoder" else self.judge.target
        hold(self.unit(f"{of['name']} at {of['place']}", side), "it stands elsewhere")

    def _goes(self, said, of):
        path = f"{self.judge.stack}.layers.{of['layer']}.experts"
        capture = [f"{path}.expert_indices", f"{path}.expert_weights"]
        trace = self.asked(capture=capture, analyses=[])
        (at,) = self.unit(of["name"], self.judge.target)
        weights = dict(zip(trace[capture[0]][at], trace[capture[1]][at], strict=True))
        told = re.findall(r"expert (\d+) with weight ([<>]?[\d.]+)", of["experts"])
        hold(len(told) == len(weights), "other experts")
        for expert, weight in told:
            equals(weight, float(weights[int(expert)]))

    def _stream(self, said, of):
        side = self.judge.source if self.judge.stack == "encoder" else self.judge.target
        at = self.unit(of["name"], side) if of["name"] else slice(None)
        layer = f"{self.judge.stack}.layers.{of['layer']}"
        part = next(name for words, name in PARTS.items() if of["part"].endswith(words))
        has_cross = said["where"] == "cross" or self.judge.card_of_model.kind == "encoder-decoder"
        around = {
            "self_attention": ("before", "between" if has_cross else "middle"),
            "cross_attention": ("between", "middle"),
        }.get(part, ("middle", "after"))
        before, after = (f"{layer}.residual.{where}" for where in around)
        names = [before, f"{layer}.{part}.output", after]
        before, added, after = (
            np.asarray(self.asked(capture=names, analyses=[])[name][at], float) for name in names
        )
        norms = [np.linalg.norm(each, axis=1) for each in (before, added, after)]
        value = {"has": norms[2], "add": norms[1]}.get(of["what"])
        if value is None:
            value = (before * added).sum(axis=1) / norms[0] / norms[1]
            hold((of["way"] == "against") == (value.mean() < 0), "the other way")
        equals(of["much"], value.mean(), max(1, abs(value.mean())))

    def asked(self, **request):
        """Answer a trace of the text, once for each request."""
        key = repr(request)
        if key not in self.passes:
            self.passes[key] = self.ask(**request)
        return self.passes[key]

    # --- the map and “Why this word” ------------------------------------------------------------

    def attribution(self, said, *names):
        """Return the attribution of the prediction, once its two words are those that are named."""
        of = {"position": said["position"]}
        of |= dict(zip(("token", "against"), said["ids"], strict=True))
        found = self.asked(capture=[], analyses=["logit_attribution"], logit_difference=of)
        found = found.analyses["logit_attribution"]
        texts = [found[which]["text"] for which in ("token", "against")]
        if shown(texts[0]) == shown(texts[1]):  # their spaces tell them apart
            texts = [text.replace(" ", "·") for text in texts]
        self.names = [plain(re.sub(r"(?:\\x..)+", in_bytes, shown(text))) for text in texts]
        for text, name in zip(texts, names, strict=True):
            hold(name is None or "\\x" in text or plain(name) == plain(shown(text)), f"{text!r}")
        return found

    def _ahead(self, said, of):
        self.attribution(said, of["word"], of["rival"])
        before, *_ = self._pass(said)
        ahead = float(np.log(before[0] / before[1]))
        equals(of["sum"], ahead, 2)
        equals(of["much"], abs(ahead), 2)
        hold((of["side"] == "behind") == (ahead < 0), "the other way")
        for name, chance in zip(("share", "other"), before, strict=True):
            hold(of[name] is None or is_near(of[name], chance, 6e-4), f"{chance:.4f}")

    def _sums(self, said, of):
        before, *_ = self._pass(said)
        equals(of["sum"], float(np.log(before[0] / before[1])), 2)

    def _bar(self, said, of):
        """Check the bar of a head or of a layer’s attention, by the arrays of the attribution."""
        found = self.attribution(said, None, None)
        if head := re.match(r"(Cross-attention, )?[Ll]ayer (\d+), head (\d+):", said["said"]):
            kind = "cross_attention" if head[1] else "self_attention"
            equals(of["much"], abs(found[f"{kind}.heads"][int(head[2])][int(head[3])]), 2)

    def _part(self, said, of):
        part, words = said["of"], of["rest"]
        effect = re.search(rf"({NUMBER}) for {QUOTED} against {QUOTED}", words)
        found = effect and self.attribution(said, effect[2], effect[3])
        layer = part.get("layer")
        if part["kind"] == "logits":
            if guess := re.fullmatch(rf"(?:Next token|What fits here): {QUOTED} (.*) %", words):
                side, prediction = self.judge.target, self.judge.trace.analyses["next_token"]
                masks = [at for at, token in enumerate(side.tokens) if token.text == "[MASK]"]
                at = masks[0] if masks and self.judge.stack == "encoder" else -1
                hold(
                    "\\x" in prediction["texts"][at][0]
                    or shown(prediction["texts"][at][0]) == guess[1].strip("\u2068\u2069"),
                    "another word",
                )
                hold(is_near(guess[2], prediction["probabilities"][at][0]), "another probability")
        elif part["kind"] in ("network", "expert"):
            if effect:
                equals(effect[1], found["feed_forward"][layer], 2)
        elif part["kind"] == "head":
            kind = "cross_attention" if part["place"] == "cross" else "self_attention"
            path, head = f"{part['stack']}.layers.{layer}.{kind}", part["index"]
            if effect:
                equals(effect[1], found[f"{kind}.heads"][layer][head], 2)
            self._labels(words, path, {"where": part["place"], "layer": layer, "head": head})

    def _labels(self, words, path, of):
        """Check the labels over many sentences, and those of the text that weights alone give."""
        head = of["head"]
        profile = self.judge.profile
        scores = profile and profile["attentions"][path][head]["scores"]
        if many := re.search(r"((?:[a-z ]+ \d\.\d+, )*[a-z ]+ \d\.\d+) over many", words):
            for title, score in re.findall(r"([a-z][a-z ]+) (\d\.\d+)", many[1]):
                equals(score, scores[name := label_of(title, scores)]["score"])
                hold(self.judge.does(of, name), f"most rows do nothing of a {title} head")
        if here := re.search(r"(previous|current|next) token (\d\.\d+) in this", words):
            weights = np.asarray(self.judge.trace[f"{path}.weights"], float)[head]
            shift = {"previous": -1, "current": 0, "next": 1}[here[1]]
            side = self.judge.source if path.startswith("encoder") else self.judge.target
            is_ended = path.startswith("encoder") and side.tokens[-1].is_special
            end = len(weights) - is_ended  # the ends of a text count for nothing
            told = [weights[at, at + shift] for at in range(len(weights)) if 1 <= at + shift < end]
            equals(here[2], np.mean(told), 5)

    # --- “Why there”, the alignment, “Compare”, and a head over many sentences --------------------

    def lead(self, said, query, key):
        """Return the score of a key over the mean of the keys that its query sees."""
        site = f"{self.judge._path(said)}.scores"
        scores = np.asarray(self.asked(capture=[site], analyses=[])[site], float)
        seen = scores[said["head"], query, : query + 1 if said["where"] == "decoder" else None]
        return float(scores[said["head"], query, key] - seen.mean())

    def _there(self, said, of):
        rows, columns = self.sides(said)
        query, key = rows.find(of["name"])[-1], columns.find(of["key"])[-1]
        path, head = self.judge._path(said), said["head"]
        lead = self.lead(said, query, key)
        hold((lead > 0) == (" looks from " in said["said"]), f"it leads by {lead:.3f}")
        for name in re.findall(rf"(?:lead of|lead is|score is) ({NUMBER})", said["said"]):
            equals(name, lead, 5)
        if seen := re.search(r"mean of the (\d+) tokens", said["said"]):
            everything = query + 1 if said["where"] == "decoder" else len(columns.tokens)
            hold(int(seen[1]) == everything, f"it sees {everything}")
        before = self.weights(said, of, query)[key]
        rest = of["rest"]
        for told in re.findall(r"weight (\d\.\d+)[.;]", rest):
            equals(told, before)
        if not (moves := re.search(r"(falls|rises|changes:) ([<>\d.]+) → ([<>\d.]+)", rest)):
            return
        cut = self.asked(capture=[f"{path}.weights"], analyses=[], edits=said["edits"])
        row = np.asarray(cut[f"{path}.weights"])[head, query]
        equals(moves[2], before)
        equals(moves[3], row[key])
        hold(moves[1] != "falls" or row[key] < before, "it rises")
        hold(moves[1] != "rises" or row[key] > before, "it falls")
        hold(" because of " not in rest or row[key] < 0.505 * before, "it is no cause")
        if most := re.search(rf"looks most at ({NAME})", rest):
            (at,) = columns.find(most[1])
            hold(row[at] >= row.max() - 2e-3, "it looks at another")

    def _side(self, said, of):
        """Check a part's place in the lead: the lead is that of the scores."""
        equals(of["lead"], self.lead(said, said["query"], said["key"]), 5)

    def _key(self, said, of):
        """Check that a query has this weight on the key, and this product with it."""
        key = self.unit(of["name"], self.sides(said)[1])[0]
        path, head = self.judge._path(said), said["head"]
        is_turned = self.judge.card_of_model.positional == "rotary"
        names = [f"{path}.{'rotated_' * is_turned}{each}" for each in ("keys", "queries")]
        trace = self.asked(capture=names, analyses=[])
        keys, queries = (np.asarray(trace[name], float) for name in names)
        products = queries[head] @ keys[head * len(keys) // len(queries)][key]
        weights = np.asarray(self.judge.trace[f"{path}.weights"], float)[head, :, key]
        near = np.abs(weights - number(of["much"])) < 2e-3
        near &= np.abs(products - number(of["sum"])) < 0.05
        hold(near.any(), f"its weights are {weights.round(3)}")

    def _special(self, said, of):
        hold(self.sides(said)[1].tokens[int(of["key"])].is_special, "it is a word")

    def _strongest(self, said, of):
        """Check that of all layers’ parts, and of all heads, these add most for a word."""
        found = self.attribution(said, *(None, None))
        sign = 1 if plain(of["word"]) == self.names[0] else -1
        heads = {
            (kind, layer, head): sign * value
            for kind in ("self_attention", "cross_attention")
            if f"{kind}.heads" in found
            for (layer, head), value in np.ndenumerate(np.asarray(found[f"{kind}.heads"]))
        }
        if of["head"]:
            best = max(heads, key=heads.get)
            equals(of["much"], heads[best], 2)
        parts = dict(zip(found["part_names"], sign * np.asarray(found["parts"]), strict=True))
        most = max(parts[name] for name in parts if name not in ("bias", "remainder"))
        hold(most <= number(of["most"]) + 0.006, f"another adds {most:.3f}")

    def _counted(self, said, of):
        found = self.attribution(said, *(None, None))
        told = re.findall(rf"({UNIT}) \(({NUMBER}) for {QUOTED}\)", of["rest"])
        sizes = []
        for name, much, word in ((each[0], *each[-2:]) for each in told):
            is_source = name.endswith(" of the source")
            side = self.judge.source if is_source else self.judge.target
            kind = "cross_attention" if is_source else "self_attention"
            by_key = np.asarray(found[f"{kind}.keys"]).sum(axis=(0, 1))
            value = by_key[self.word(name, side)].sum()
            equals(much, abs(value), 2)
            hold((value > 0) == (plain(word) == self.names[0]), f"{name} is for the other word")
            sizes.append(abs(value))
        hold(sizes and sizes == sorted(sizes, reverse=True), "another counted more")

    def _score(self, said, of):
        scores = self.judge.profile["attentions"][self.judge._path(said)][said["head"]]["scores"]
        name = label_of(of["title"], scores)
        equals(of["much"], scores[name]["score"])
        hold(of["control"] is None or equals(of["control"], scores[name]["control"]) is None, "")

    def _circuit(self, said, of):
        found = self.asked(capture=[], analyses=["head_circuits"], heads=[said["head"]])
        found, path = found.analyses["head_circuits"], self.judge._path(said)
        writes = "the head adds" in said["said"]
        side = self.sides(said)[writes]
        (at,) = self.unit(of["name"], side)[:1]
        kind = ("written_ids", "written_logits") if writes else ("sought_ids", "sought_scores")
        ids, values = (np.asarray(found[f"{path}.{each}"])[0][at] for each in kind)
        for token, value in zip(ids, values, strict=True):
            text = found["token_texts"][str(token)]
            if "\\x" in text or plain(shown(text)) == plain(of["word"]):
                hold(said["kind"] == "cell" or value == values.max(), "another is higher")
                if abs(number(of["much"]) - value) < 0.006:
                    return
        hold(False, f"{of['word']} has another value")

    def _compared(self, said, of):
        at, b = self.at(of["name"]), said["b"]
        other = (
            self.asked(edits=b["edits"], **TOP)
            if b.get("edits")
            else self.read(b["text"], target=b.get("target"))
        )
        listed, named = [], set()
        for answer, name in ((self.asked(**TOP), "a"), (other, "b")):
            found, side = answer.analyses["next_token"], answer.target_tokens or answer.tokens
            ours = self.judge.target.tokens
            if [t.id for t in side[: at + 1]] != [t.id for t in ours[: at + 1]]:
                continue  # its counterpart is another token
            ids, texts, chances = (found[key][at] for key in ("ids", "texts", "probabilities"))
            listed.append((of[name], dict(zip(ids, chances, strict=True))))
            named |= {
                token
                for token, text in zip(ids, texts, strict=True)
                if plain(of["word"]) in (plain(shown(text)), plain(text.replace(" ", "·")))
            }
        for told, chances in listed:
            if named and named <= chances.keys():  # “a” is a token with a space, or one without
                found = [100 * chances[token] for token in named]
                equals(told, min(found, key=lambda each: abs(each - number(told))), 1)

    def _moved(self, said, of):
        """Check the head whose rows moved most, with both passes’ weights."""
        if not said["b"].get("edits"):
            return
        after = self.asked(capture=["*.weights"], analyses=[], edits=said["b"]["edits"])
        start, end = self.judge._path(said).split(".layers."), self.judge._path(said).rsplit(".", 1)
        moved = {}
        for name in after.tensors:
            if name.startswith(start[0]) and name.endswith(f"{end[1]}.weights"):
                change = np.abs(np.asarray(after[name], float) - self.judge.trace[name])
                for head, share in enumerate(change.sum(axis=2).mean(axis=1) / 2):
                    moved[int(name.split(".")[2]), head] = share
        told = moved[int(of["layer"]), int(of["head"])]
        hold(told >= max(moved.values()) - 1e-3, "another moved more")
        equals(of["share"], 100 * told, 1)

    def _largest(self, said, of):
        """Check the cell that changed most of all, with both passes’ weights."""
        if not (edits := said["b"].get("edits")):
            return
        path = self.judge._path(dict(said, layer=of["layer"]))
        before = np.asarray(self.judge.trace[f"{path}.weights"], float)
        after = self.asked(capture=["*.weights"], analyses=[], edits=edits)
        change = np.abs(np.asarray(after[f"{path}.weights"], float) - before)
        rows, columns = self.sides(said)
        cell = int(of["head"]), rows.find(of["name"])[-1], columns.find(of["key"])[-1]
        equals(of["a"], before[cell])
        equals(of["b"], after[f"{path}.weights"][cell])
        hold(change[cell] >= change.max() - 2e-3, "another changed more")

    def _true(self, *_):
        """Accept what the definition of a quantity says of every text."""

    def _linked(self, of, *pairs):
        """Hold that words of the translation are linked with words of the sentence, firmly."""
        weights = self.asked(capture=[], analyses=["alignment"]).analyses["alignment"]["weights"]
        rows, columns = self.judge.target, self.judge.source
        for word, source in pairs:
            hold(re.search(r"\w", of[word]) and re.search(r"\w", of[source]), "it is no word")
            at, to = (
                self.unit(of[word], rows, "split")[0],
                self.unit(of[source], columns, "split")[0],
            )
            row = np.asarray(weights)[rows.tokens[at].word]
            key = columns.tokens[to].word
            hold(row[key] == row.max() and row[key] >= 0.5, f"its weight is {row[key]:.2f}")

    def _swaps(self, _, of):
        self._linked(of, ("one", "right"), ("other", "left"))
        rows, columns = self.judge.target, self.judge.source
        one, other = (self.unit(of[name], rows, "split")[0] for name in ("one", "other"))
        left, right = (self.unit(of[name], columns, "split")[0] for name in ("left", "right"))
        hold(one < other and left < right, "they stand in the same order")

    def _becomes(self, _, of):
        words = [found.group() for found in re.finditer(UNIT, of["words"])]
        for word in words:
            self._linked({"a": word, "b": of["one"]}, ("a", "b"))
        places = [self.unit(word, self.judge.target, "split")[0] for word in words]
        hold(len(words) > 1 and places == sorted(places), "no several words")

    def _counts(self, _, of):
        sides = (self.judge.target, self.judge.source)
        counts = [
            len({t.word for t in side.tokens if t.word is not None and has_letters(side, t)})
            for side in sides
        ]
        hold([int(of["rows"]), int(of["columns"])] == counts, f"there are {counts}")

    def _head_profile(self, said, of):
        scores = self.judge.profile["attentions"][self.judge._path(said)][said["head"]]["scores"]
        for title in re.findall("“(.*?)”", plain(of["labels"])):
            name = label_of(title, scores)
            hold(scores[name]["score"] >= 0.25 - 1e-3, f"{title} has {scores[name]['score']:.2f}")
            hold(scores[name]["score"] >= 2 * scores[name]["control"], f"{title} and control")
            hold(self.judge.does(said, name), f"this text is not {title}")

    def _does_other(self, said, _):
        of = self.judge.profile["attentions"][self.judge._path(said)][said["head"]]
        hold(of["labels"], "it has no label")
        hold(not any(self.judge.does(said, each) for each in of["labels"]), "it does")

    def _unlabelled(self, said, _):
        of = self.judge.profile["attentions"][self.judge._path(said)][said["head"]]
        hold(not of["labels"], f"it is labelled {of['labels']}")


def in_bytes(match):
    """Return bytes as a sentence writes them."""
    digits = match[0].split("\\x")[1:]
    name = f"byte{'s' * (len(digits) > 1)} {' '.join(digits)}"
    return " + " * (match.start() > 0) + name + " + " * (match.end() < len(match.string))


def label_of(title, scores):
    """Return the id of a label by its title."""
    name = TITLES.get(title.lower(), title.lower().replace(" ", "_"))
    return name if name in scores else name.removesuffix("_token")


def has_letters(side, token):
    """Return True if a token has letters or digits."""
    return any(kind(letter) in "LN?" for letter in side.text[token.start : token.end])


QUOTED = r"“([^”]*)”"
TOP = {"capture": [], "analyses": ["next_token"]}
CHANCE = r"[<>]?[\d.]+"
PARTS = {
    "cross-attention": "cross_attention",
    "attention": "self_attention",
    "experts": "experts",
    "network": "feed_forward",
}
LAYERS = r"(?P<part>.*) of layer (?P<layer>\d+)"
AT = rf"(?:At|After) (?P<name>{NAME}|{UNIT}), "
TITLES = {
    "induction on random tokens": "repetition",
    "first token or word": "sink",
    "induction in sentences": "induction",
    "subject of the verb": "subject",
    "antecedent of the pronoun": "antecedent",
}
CAME = r"(?P<came>; this token (?:came next|stands there))?"
