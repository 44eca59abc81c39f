"""Judge the sentences that the page says of a text, from the arrays that the API answers.

Nothing of the page's rules is used: words are cut from the text here, names are looked up in it,
and weights are added from the arrays. Each kind of sentence has a grammar and a check; a sentence
that its grammar cannot read counts as false.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

CLOSE = 0.0055  # a percentage without decimals, of weights that are sent in 16 bits
EXACT = 0.00055  # one with a decimal
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "IDEOGRAPHIC")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")

WORD = "“\u2068([^\u2069]*)\u2069”"
NTH = r"(?:the ([a-z]+|\d+(?:st|nd|rd|th)) )?"
OF = rf"(?: of (?:{NTH}{WORD}|the same (?:word|number)))?"
NAME = rf"((?:bytes? [\d–]+ of \d+ of )?){NTH}(?:the )?{WORD}{OF}"
SUM = r"\d\W*[-+*/xX×÷·✕^−–]\W*\d"
SHARE = r"\(([<>]?\d+) %\)"


class FalseSentence(AssertionError):
    """A sentence that the arrays contradict, or that its grammar cannot read."""


def hold(fact, why):
    """Raise FalseSentence unless a fact holds."""
    if not fact:
        raise FalseSentence(why)


@dataclass(frozen=True)
class Word:
    """A word of the text, and the tokens that spell it."""

    text: str
    start: int
    end: int
    tokens: tuple[int, ...]

    @property
    def is_number(self):
        return all(kind(letter) == "N" or letter in ".," for letter in self.text)


def kind(character):
    """Return the first letter of the Unicode category, `?` for scripts without spaces."""
    is_unspaced = character.isalnum() and unicodedata.name(character, "").startswith(UNSPACED)
    return "?" if is_unspaced else unicodedata.category(character)[0]


class Side:
    """The tokens and the words of one text."""

    def __init__(self, text, tokens):
        self.text, self.tokens, self.found = text, tokens, {}

    @cached_property
    def words(self):
        """The runs of letters and digits, with apostrophes and decimal points inside."""
        kinds = [kind(character) for character in self.text] + [" ", " "]
        spans, start = [], None
        for at, character in enumerate(f"{self.text} "):
            around = (kinds[at - 1] if at else " ") + kinds[at + 1]
            joins = (character in "'’" and around == "LL") or (character in ".," and around == "NN")
            is_inside = kinds[at] in ("LN" if start is None else "LNM") or (
                start is not None and joins
            )
            if is_inside and start is None:
                start = at
            elif not is_inside and start is not None:
                spans.append((start, at))
                start = None
        return [
            Word(self.text[a:b].replace("'", "’"), a, b, tuple(self._spelling(a, b)))
            for a, b in spans
        ]

    def _spelling(self, start, end):
        return (
            at
            for at, token in enumerate(self.tokens)
            if not token.is_special and token.start < end and token.end > start
        )

    def word_of(self, at):
        """Return the index of a token's word, or None."""
        owners = self._owners.get(at, [])
        return owners[0] if len(owners) == 1 else None

    @cached_property
    def _owners(self):
        owners = {}
        for index, word in enumerate(self.words):
            for at in word.tokens:
                owners.setdefault(at, []).append(index)
        return owners

    @cached_property
    def groups(self):
        """The tokens of each word, and of each character between words."""
        groups = []
        for at in range(len(self.tokens)):
            is_rest = re.match(r"bytes? (?!1\b|1–)", self.names[at]) and self.word_of(at) is None
            own = self.word_of(at)
            if at and (is_rest or (own is not None and own == self.word_of(at - 1))):
                groups[-1].append(at)
            else:
                groups.append([at])
        return groups

    @cached_property
    def names(self):
        """The name of each token alone: its text, or the bytes of a character that it has."""
        names = []
        for at, token in enumerate(self.tokens):
            if token.is_special or not (part := self._part(at)):
                names.append(shown(token.text))
            else:
                names.append(part)
        return names

    def _part(self, at):
        """Return `byte 2 of 3 of X` for a token of some bytes of a character."""
        count = [token.text.count("\\x") for token in self.tokens]
        here = self.tokens[at]
        if not count[at] or self.text[here.start : here.end] == here.text:
            return ""
        first = last = at
        while first and count[first - 1] and self.tokens[first - 1].end > self.tokens[first].start:
            first -= 1
        while (
            last + 1 < len(count)
            and count[last + 1]
            and self.tokens[last + 1].start < self.tokens[last].end
        ):
            last += 1
        before = sum(count[first:at])
        span = (
            f"byte {before + 1}" if count[at] == 1 else f"bytes {before + 1}–{before + count[at]}"
        )
        n_bytes = sum(count[first : last + 1])
        rest = self.text[self.tokens[first].start :].removeprefix(" ")
        lengths = (len(rest[:end].encode()) for end in range(1, len(rest) + 1))
        whole = rest[: 1 + next(at for at, length in enumerate(lengths) if length >= n_bytes)]
        return f"{span} of {n_bytes} of {shown(whole)}"

    def find(self, name, own=None):
        """Return the tokens that a name names, once for each name."""
        key = (name, own if " of the same " in name else None)
        if key not in self.found:
            self.found[key] = self._find(re.fullmatch(NAME, name), own)
        return list(self.found[key])

    def _find(self, match, own):
        """Return the tokens that a name names; it has to name one thing.

        Args:
            match: of `NAME`: ordinal, bytes, name, ordinal of the word, word.
            own: the token whose word “the same word” is.
        """
        part, nth, name, nth_word, of = match.groups()[:5]
        if " of the same " in match.group():
            word = self.words[self.word_of(own)]
            return self._among([[at] for at in word.tokens if self.names[at] == part + name], nth)
        if of is not None:
            (tokens,) = [self._among([w.tokens for w in self.words if w.text == of], nth_word)]
            return self._among([[at] for at in tokens if self.names[at] == part + name], nth)
        special = [
            at
            for at, token in enumerate(self.tokens)
            if token.is_special and self.names[at] == name
        ]
        words = [list(word.tokens) for word in self.words if word.text == name and not part]
        alone = [
            [at]
            for at, each in enumerate(self.names)
            if each == part + name and self.word_of(at) is None and at not in special
        ]
        if special:
            return self._among([[at] for at in special], nth)
        hold(not (words and alone), f"{name} is a word and a sign")
        return self._among(words or alone, nth)

    def _among(self, found, nth):
        if not nth:
            hold(len(found) == 1, f"{len(found)} are called so")
            return list(found[0])
        at = ORDINALS.index(nth) if nth in ORDINALS else int(re.sub(r"\D", "", nth)) - 1
        hold(len(found) > 1 and at < len(found), f"there is no {nth}")
        return list(found[at])


SHOWN = {" ": "·", "\n": "↵", "\t": "⇥", "\u00a0": "⍽", "\u3000": "□"}
BLANK = {" ": "space", "\n": "line break", "\t": "tab"}
BLANK |= {"\u00a0": "no-break space", "\u3000": "wide space"}
HIDDEN = {"\u00ad": "SHY", "\u200b": "ZWSP", "\u200e": "LRM", "\u200f": "RLM", "\u2060": "WJ"}
HIDDEN |= {"\u2068": "FSI", "\u2069": "PDI", "\ufeff": "BOM"}
HIDDEN |= {chr(code): f"U+{code:04X}" for code in range(32) if chr(code) not in "\n\t"}
JOINERS = {"\u200c": "ZWNJ", "\u200d": "ZWJ", "\ufe0e": "VS15", "\ufe0f": "VS16"}


def shown(text):
    """Return a token's text as a name: without its space, and what is invisible by its name."""
    if text and set(text) <= {*BLANK, "\r"}:
        runs = [(BLANK.get(each), "".join(run)) for each, run in groupby(text)]
        return "".join(
            f"‹{f'{len(run)} {name}s' if run[1:] else name}›" if name else "‹U+000D›" * len(run)
            for name, run in runs
        )
    text = text.strip() or text
    controls = {c: f"U+{ord(c):04X}" for c in text if unicodedata.category(c) in ("Cc", "Zs")}
    controls = {c: name for c, name in controls.items() if c not in SHOWN}
    named = (
        controls | HIDDEN | (JOINERS if all(letter in HIDDEN | JOINERS for letter in text) else {})
    )
    name = "".join(SHOWN.get(c, f"‹{named[c]}›" if c in named else c) for c in text)
    return f"◌{name}" if name and unicodedata.category(name[0])[0] == "M" else name


def is_near(words, value, close=CLOSE):
    """Return True if `>99`, `31` or `31.4` is this share of one."""
    number = float(words.lstrip("<>")) / 100
    if words[0] in "<>":
        return value < number + close if words[0] == "<" else value > number - close
    return abs(value - number) <= close


class Judge:
    """The arrays of a text, and the check of each kind of sentence about it.

    Args:
        trace: as the client reads it.
        profile: `heads.json` of the model.
        card: the front matter of its `CARD.md`.
    """

    def __init__(self, trace, profile, card):
        self.trace, self.profile, self.card, self.units = trace, profile, card, {}
        self.done = {}
        source = Side(trace.text, trace.tokens)
        has_target = trace.target_tokens is not None
        self.source = source
        self.target = Side(trace.target, trace.target_tokens) if has_target else source

    def check(self, said):
        """Raise FalseSentence if a sentence is not true of the arrays."""
        getattr(self, f"_{said['kind']}")(said, said["said"])

    def _sides(self, where):
        rows = self.source if where == "encoder" else self.target
        return rows, (self.source if where == "cross" else rows)

    def _path(self, said):
        stack = "encoder" if said["where"] == "encoder" else "decoder"
        name = "cross_attention" if said["where"] == "cross" else "self_attention"
        return f"{stack}.layers.{said['layer']}.{name}"

    def _weights(self, said):
        return self.trace[f"{self._path(said)}.weights"][said["head"], said["query"]]

    # --- the row of a head ------------------------------------------------------------------------

    def _row(self, said, words):
        rows, columns = self._sides(said["where"])
        weights, query = self._weights(said), said["query"]
        match = re.match(
            rf"(At|To write|To write what follows|Having written) ({NAME}), "
            r"(.*?)layer (\d+), head (\d+) ",
            words,
        )
        hold(match, "no grammar")
        opening, head = match.group(1), (int(match.groups()[-2]), int(match.groups()[-1]))
        hold(head == (said["layer"], said["head"]), "another head")
        read_at = query + (opening == "To write")
        named = rows.find(match.group(2))
        hold(named == [read_at] or rows.tokens[read_at].is_special, "another token reads")
        rest = words[match.end() :]
        if rest == "has nothing else to read.":
            hold(np.count_nonzero(weights) == 1, "there is more to read")
            return
        self._reads(rest, rows, columns, weights, query)

    def _reads(self, rest, rows, columns, weights, query):
        match = re.fullmatch(
            rf"(mostly )?reads ({NAME})( itself)?( most)?((?:, .*?)?) {SHARE}"
            rf"(?: and ({NAME}) {SHARE})?\.",
            rest,
        )
        hold(match, "no grammar")
        groups = match.groups()
        mostly, name, itself, most, relation, much = groups[0], groups[1], *groups[7:11]
        also, second = groups[11], groups[-1]
        keys = columns.find(name, own=query)
        strongest = int(weights.argmax())
        hold(strongest in keys, "the strongest key is another")
        total = weights[keys].sum()
        hold(is_near(much, total), f"the weight is {total:.3f}")
        groups_of_keys = self._units(rows, columns, query, len(weights))
        sums = [weights[unit].sum() for unit in groups_of_keys]
        hold(not mostly or total > 0.5 - CLOSE, "less than half")
        hold(not most or total >= max(sums) - CLOSE, "another is read more")
        hold(mostly or most or total < max(sums) + CLOSE, "it is read most")
        hold(not itself or keys == [query], "it is another token")
        if also:
            others = columns.find(also, own=query)
            hold(not set(others) & set(keys), "one word twice")
            hold(is_near(second, weights[others].sum()), "the second weight")
        self._relation(relation, rows, columns, query, keys)

    def _units(self, rows, columns, query, count):
        """Return the keys word by word; digits, and the pieces of the query's own word, apart."""
        place = (rows is columns, columns is self.source, query)
        if place not in self.units:
            self.units[place] = self._cut(rows, columns, query, count)
        return self.units[place]

    def _cut(self, rows, columns, query, count):
        own = rows.word_of(query) if rows is columns else None
        whole = [
            word.tokens for at, word in enumerate(columns.words) if at != own and not word.is_number
        ]
        inside = {key for word in whole for key in word}
        return [list(unit) for unit in whole] + [[key] for key in range(count) if key not in inside]

    def _relation(self, relation, rows, columns, query, keys):
        if relation == "":
            return
        if relation in (", the start of the text", ", the end of the text"):
            at = 0 if "start" in relation else len(columns.tokens) - 1
            hold(keys == [at] and columns.tokens[at].is_special, "no end of the text")
            return
        hold(rows is columns, "two texts")
        own, read = rows.word_of(query), rows.word_of(keys[0])
        hold(own is not None and read is not None and own != read, "no two words")
        apart = read - own
        words = rows.words
        if relation == ", the same word":
            hold(words[own].text == words[read].text, "another word")
        elif match := re.fullmatch(rf", which followed ({NAME}), as induction heads do", relation):
            before = rows.find(match.group(1))
            hold(before == list(words[read - 1].tokens), "it followed another word")
            hold(words[read - 1].text == words[own].text, "that is another word")
            hold(read < own and query == words[own].tokens[-1], "it is not before")
            hold(not rows.text[words[read - 1].end : words[read].start].strip(), "a sign between")
        elif match := re.fullmatch(r", (\d+) words (back|ahead)", relation):
            hold(abs(apart) > 1, "one word")
            hold(apart == int(match[1]) * (-1 if match[2] == "back" else 1), f"{apart} words")
        else:
            hold(relation == f", the word {'before' if apart == -1 else 'after'}", "no grammar")
            hold(abs(apart) == 1, f"{apart} words")

    # --- the label of a head ----------------------------------------------------------------------

    def _scores(self, said):
        head = self.profile["attentions"][self._path(said)][said["head"]]
        return {label: head["scores"][label]["score"] for label in head["labels"]}

    def _map(self, said, words):
        label = MAP[words]
        score = max(self._scores(said).get(each, 0) for each in label)
        hold(score >= (0.75 if "repetition" in label else 0.54), f"{score:.2f} is on the map")
        hold(any(self.does(said, each) for each in label), "most rows of this text do not")

    def does(self, said, label):
        """Return True unless most rows of which a label of a head speaks do something else."""
        key = (self._path(said), said["head"], label)
        if key not in self.done:
            weights = self.trace[f"{self._path(said)}.weights"][said["head"]]
            told = [self.does_row(said, label, query, row) for query, row in enumerate(weights)]
            told = [each for each in told if each is not None]
            self.done[key] = 2 * sum(told) >= len(told)
        return self.done[key]

    def does_row(self, said, label, query, weights):
        """Return True if a row does what a label says, None if the label does not speak of it."""
        rows, columns = self._sides(said["where"])
        key, is_cross = int(weights.argmax()), said["where"] == "cross"
        if label == "broad":
            return bool(weights[key] < 0.5) if query else None
        if LABELS[label][1] is None or (is_cross and label not in ("sink", "punctuation")):
            return None
        if not is_cross and not (query or label in ("next", "induction", "repetition")):
            return None
        if label == "next" and query == len(weights) - 1:
            return None
        if label == "sink" and key == query and not is_cross:
            return None
        if label in ("induction", "repetition"):
            ids = [token.id for token in rows.tokens]
            if ids[query] not in ids[: max(query - 1, 0)]:
                return None
        return LABELS[label][1](columns, query, key)

    def _label(self, said, words):
        match = re.fullmatch(
            r"(Over many (?:made )?(?:sentences|calculations)|Where random tokens repeat), "
            r"(.*?)(; at this token, too)?\.",
            words,
        )
        hold(match, "no grammar")
        found = [label for label, (pattern, _) in LABELS.items() if re.fullmatch(pattern, match[2])]
        hold(len(found) == 1, "no grammar")
        scores = self._scores(said)
        label = found[0]
        number = re.search(r"[<>]?[\d.]+", match[2]).group()
        hold(label in scores, "the head has no such label")
        shown_share = str(float(number) * 100) if label == "monotonic" else number
        hold(is_near(shown_share, scores[label]), f"its score is {scores[label]:.3f}")
        made = "repeat" if label == "repetition" else "made"
        is_made = label in ("subject", "antecedent", "repetition")
        hold((made in match[1]) == is_made, "other sentences")
        texts = (self.profile or {}).get("text", [""])[0]
        hold(("calculations" in match[1]) == texts.startswith("solutions"), "other texts")
        if (on_map := said.get("map")) and on_map in MAP:
            hold(label in MAP[on_map], "the map says another label")
        does = self.does_row(said, label, said["query"], self._weights(said))
        hold(does == (True if match[3] else None), "the row does something else")
        hold(self.does(said, label), "most rows of this text do not")

    # --- the model and the text -------------------------------------------------------------------

    def _offer(self, said, words):
        title, learned = self.cards[said["model"]]
        hold(title in words, "another model")
        if " learned " in words:
            hold(f"“{title}” learned {learned}: " in words, "it learned something else")
            hold(re.search(SUM, self.source.text), "no calculation")
        else:
            hold(learned in (None, ""), "it is no model of the reader")

    def _introduction(self, said, words):
        if (only := re.fullmatch("“(.*?)” learned (.*)[.]", words)) and "; it reads" not in words:
            hold(only.groups() == (self.card["title"], self.card["learned"]), "another model")
            hold(re.search(SUM, self.source.text), "no calculation")
            return
        match = re.fullmatch(r"“(.*?)”(?: learned (.*); it)? reads (.*)\.", words)
        hold(match, "no grammar")
        hold(match[1] == self.card["title"], "another model")
        hold(match[2] == self.card.get("learned"), "it learned something else")
        side = self.source
        is_of_digits = "products" in self.card.get("learned", "")
        words = [w for w in side.words if w.tokens and not (is_of_digits and w.is_number)]
        signs = {
            side.names[at].split(" of ", 1)[1] + str(token.start)
            for at, token in enumerate(side.tokens)
            if side.names[at].startswith("byte") and side.word_of(at) is None
        }
        pieces = [
            len(w.tokens) - bool(re.match(r"['’]\w", side.tokens[w.tokens[-1]].text)) for w in words
        ]
        apart, every = sum(n > 1 for n in pieces) + len(signs), len(words) + len(signs)
        hold(3 * apart > every, f"{apart} of {every} words")
        form = r"(?:(\d+) of these|all|both) ?(\d*) words( and signs)? in pieces"
        if counts := re.fullmatch(form, match[3]):
            told = [
                int(each or (2 if match[3].startswith("both") else every))
                for each in counts.groups()[:2]
            ]
            hold(bool(counts[3]) == bool(signs), f"there are {signs}")
            hold(told == [apart, every], f"{apart} of {every}")
        elif match[3] == "this word in pieces":
            hold((apart, every) == (1, 1), f"{apart} of {every}")
        elif match[3] == "most of this byte by byte":
            typed = [token for token in side.tokens if not token.is_special]
            parts = [at for at, name in enumerate(side.names) if name.startswith("byte")]
            hold(2 * len(parts) > len(typed), "less is bytes")
        else:
            unit = "digit" if all(w.is_number for w in words) else "letter"
            hold(match[3] == f"this nearly {unit} by {unit}", "no grammar")
            letters, tokens = sum(len(w.text) for w in words), sum(len(w.tokens) for w in words)
            hold(letters < 1.5 * tokens, f"{letters / tokens:.2f} letters a token")

    # --- the other views --------------------------------------------------------------------------

    def _next(self, said, words):
        prediction = self.trace.analyses["next_token"]
        places = [said["query"]]
        masks = [at for at, token in enumerate(self.target.tokens) if token.text == "[MASK]"]
        clauses = re.findall(r"(?:At|After) .*?, the model expects .*?\)\.", words)
        hold(clauses, "no grammar")
        if len(clauses) > 1 or "mask," in clauses[0]:
            places = masks
        for place, clause in zip(places, clauses, strict=False):
            self._expected(place, clause, prediction)
        for forms, share in re.findall(
            r"((?:“[a-z]+”(?:, | and )?)+) (?:has|have) ([<>]?[\d.]+) %", words
        ):
            wanted = {f" {form}" for form in re.findall("“([a-z]+)”", forms)}
            texts = prediction["texts"][places[0]]
            listed = [
                p
                for text, p in zip(texts, prediction["probabilities"][places[0]], strict=True)
                if text in wanted
            ]
            hold(len(listed) == len(wanted) and is_near(share, sum(listed), EXACT), "other forms")

    def _expected(self, place, clause, prediction):
        match = re.fullmatch(
            rf"(?:At|After) (?:({NAME})|the \w+ mask), the model expects (.*)\.", clause
        )
        hold(match, "no grammar")
        if match[1]:
            named = self.target.find(match[1])
            is_there = named[-1:] == [place] and (self.stack == "decoder" or len(named) == 1)
            hold(is_there or self.target.tokens[place].is_special, "another place")
        guesses = re.findall(r"“((?:(?!” \().)*)” \(([<>]?[\d.]+) %\)", match.groups()[-1])
        hold(guesses, "no grammar")
        probabilities, texts = prediction["probabilities"][place], prediction["texts"][place]
        hold(probabilities[0] == max(probabilities), "not the likeliest")
        for (name, share), text, probability in zip(guesses, texts, probabilities, strict=False):
            hold("\\x" in text or plain(shown(text)) == plain(name), f"{text!r} is expected")
            hold(is_near(share, probability, EXACT), f"the probability is {probability:.4f}")

    def _experts(self, said, words):
        match = re.fullmatch(
            r"In layer (\d+), expert (\d+) takes (\d+) of the (\d+) tokens of punctuation, "
            r"and (\d+) of the (\d+) tokens of words\.",
            words,
        )
        hold(match, "no grammar")
        layer, expert, marks, all_marks, taken, all_words = map(int, match.groups())
        stack = (
            "encoder"
            if f"encoder.layers.{layer}.experts.expert_indices" in self.trace.tensors
            else "decoder"
        )
        side = self.source if stack == "encoder" else self.target
        indices = self.trace[f"{stack}.layers.{layer}.experts.expert_indices"]
        kinds = [
            "" if token.is_special or "\\x" in token.text else {kind(c) for c in token.text.strip()}
            for token in side.tokens
        ]
        of_marks = [at for at, each in enumerate(kinds) if each == {"P"}]
        of_words = [at for at, each in enumerate(kinds) if each and each & {"L", "N", "?"}]
        counts = [sum(e in indices[at] for at in of_marks) for e in range(indices.max() + 1)]
        hold((marks, all_marks) == (max(counts), len(of_marks)), f"{counts} of {len(of_marks)}")
        hold(counts[expert] == marks, "another expert")
        found = sum(expert in indices[at] for at in of_words)
        hold((taken, all_words) == (found, len(of_words)), f"{found} of {len(of_words)} words")

    def _reward(self, said, words):
        match = re.fullmatch(
            rf"The reward of this text is ([−\d.·⁻⁰-⁹<>]+); "
            rf"of its ([\d,]+) tokens?, ({NAME}) (raised|lowered) it most, by ([\d.<>]+)\.",
            words,
        )
        hold(match, "no grammar")
        reward = self.trace.analyses["reward"]
        changes = reward["contributions"]
        typed = [at for at, token in enumerate(self.source.tokens) if not token.is_special]
        most = max(typed, key=lambda at: abs(changes[at]))
        hold(self.source.find(match[3]) == [most], "another token")
        hold((match.groups()[-2] == "raised") == (changes[most] >= 0), "the other way")
        hold(
            abs(float(match.groups()[-1].lstrip("<>")) - abs(changes[most])) < 0.0051,
            "by other points",
        )
        hold(int(match[2].replace(",", "")) == len(typed), "other tokens")
        if "·" not in match[1]:
            hold(
                abs(float(match[1].replace("−", "-")) - reward["rewards"][-1]) < 0.0051,
                "the reward",
            )


def plain(text):
    """Return a text without marks of direction and the names of invisible characters."""
    hidden = "[\u2066-\u2069\u200c\u200d\ufe0f]|‹(?![^›]*(?:space|break|tab))[^›]*›|◌"
    return re.sub(hidden, "", text)


def follows(rows, query, key):
    """Return True if the token before a key is the query's token."""
    return 0 < key < query and rows.tokens[key - 1].id == rows.tokens[query].id


def rests(rows, query, key):
    """Return True if a key is the first token, of the first word, or a special token at the end."""
    first = next(token.word for token in rows.tokens if token.word is not None)
    is_end = key == len(rows.tokens) - 1 and rows.tokens[key].is_special
    return key == 0 or rows.tokens[key].word == first or is_end


P = r"[<>]?\d+ % of this head’s weight"
# By label: its words, and whether the row of a query whose strongest key this is does it.
LABELS = {
    "previous": (f"{P} is on the token before", lambda rows, query, key: key == query - 1),
    "next": (f"{P} is on the token after", lambda rows, query, key: key == query + 1),
    "current": (f"{P} is on the token that reads", lambda rows, query, key: key == query),
    "sink": (f"{P} is on the first token, the first word or an end token", rests),
    "punctuation": (
        f"{P} is on punctuation",
        lambda rows, query, key: (
            not rows.tokens[key].is_special
            and not any(kind(letter) in "LN?" for letter in rows.tokens[key].text)
        ),
    ),
    "induction": (f"where a token came before, {P} is on what followed it", follows),
    "repetition": (f"{P} is on what followed the token before", follows),
    "subject": (r"\d+ % of this head’s weight at a verb is on its subject", None),
    "antecedent": (r"\d+ % of this head’s weight at a pronoun is on its noun", None),
    "multiplicand": (f"{P} is on the first factor, while a partial product is written", None),
    "multiplier": (
        f"{P} is on the digit that multiplies, while a partial product is written",
        None,
    ),
    "column": (f"{P} is on the digits of the same place, while the sum is written", None),
    "carry": (f"{P} is on the digits one place lower, while the sum is written", None),
    "monotonic": (
        r"this head goes through the other text word for word, with a score of [\d.]+",
        None,
    ),
    "broad": (r"this head’s weight has \d+ % of the greatest entropy", None),
}
MAP = {
    "repeats a phrase": ("repetition", "induction"),
    "token before": ("previous",),
    "token after": ("next",),
    "punctuation": ("punctuation",),
    "itself": ("current",),
    "rests": ("sink",),
}
