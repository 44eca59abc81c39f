"""Parts of speech by rules: closed classes by word, open classes by ending and by the word before.

The names are those of Universal Dependencies, https://universaldependencies.org/u/pos/. The rules
know the closed classes of English and of French, the common irregular verbs, and endings; a word
that no rule knows is a noun. No tagged text was at hand to measure them on: they are a way to ask
an atlas for kinds of words, not a tagger to rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

TAGS = (
    "ADJ",
    "ADP",
    "ADV",
    "AUX",
    "CCONJ",
    "DET",
    "INTJ",
    "NOUN",
    "NUM",
    "PART",
    "PRON",
    "PROPN",
    "PUNCT",
    "SCONJ",
    "VERB",
    "X",
)
NAMES = {
    "adjective": "ADJ",
    "preposition": "ADP",
    "adverb": "ADV",
    "auxiliary": "AUX",
    "conjunction": "CCONJ",
    "determiner": "DET",
    "interjection": "INTJ",
    "noun": "NOUN",
    "number": "NUM",
    "particle": "PART",
    "pronoun": "PRON",
    "name": "PROPN",
    "punctuation": "PUNCT",
    "verb": "VERB",
}
"""Plain names of tags."""

Tagger = Callable[[Sequence[str]], list[str]]


def tag_of(name: str) -> str:
    """Return the tag of a plain name such as ``pronoun``, or of the tag in any case.

    Raises:
        ValueError: there is no such tag.
    """
    tag = NAMES.get(name.lower(), name.upper())
    if tag not in TAGS:
        known = ", ".join([*NAMES, *TAGS])
        raise ValueError(f"there is no part of speech {name[:40]!r}; there are {known}")
    return tag


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH: dict[str, frozenset[str]] = {
    "PRON": _words(
        "i me my mine myself you your yours yourself yourselves he him his himself she her hers "
        "herself it its itself we us our ours ourselves they them their theirs themselves who whom "
        "whose which what this that these those one ones anyone anything everyone everything "
        "everybody someone something somebody nobody nothing none thee thou thy"
    ),
    "DET": _words("a an the every each no some any all both another either neither such"),
    "ADP": _words(
        "of in on at by for with from into upon over under about after before between through "
        "against among behind beside beyond during near off onto out round around toward towards "
        "up down within without across along above below till until since inside outside beneath"
    ),
    "AUX": _words(
        "am is are was were be been being do does did has have had having will would shall should "
        "can could may might must cannot"
    ),
    "CCONJ": _words("and or but nor yet"),
    "SCONJ": _words("if because though although while whether unless than as when whenever where"),
    "PART": _words("to not n't 's '"),
    "NUM": _words(
        "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty "
        "hundred thousand million"
    ),
    "INTJ": _words("oh ah yes hello hey o alas please well hurrah"),
    "ADV": _words(
        "then there here now never always often again once soon very too so just only even still "
        "away back quite almost perhaps already together ever how why far"
    ),
    "ADJ": _words(
        "good bad big little small great old young new long short high low red blue green white "
        "black happy sad tired poor rich dear own same other first last next many much more most "
        "few full warm cold hot dark bright fine kind strong large beautiful pretty"
    ),
    "VERB": _words(
        "said say says went go goes gone going came come comes saw see seen got "
        "get took take taken "
        "made make gave give given knew know known thought think told tell found find left leave "
        "let put ran run sat sit stood stand began begin kept keep held hold heard hear felt feel "
        "brought bring caught fell fall flew fly grew grow lay lie met meet rode "
        "ride rose rise sang "
        "sing slept sleep spoke speak swam swim threw throw wore wear wrote write ate eat drank "
        "drink lost won built bought sold sent spent read cried asked looked "
        "called want wants like "
        "likes live lives love loves need help look ask play"
    ),
}
_FRENCH: dict[str, frozenset[str]] = {
    "PRON": _words(
        "je j' tu il elle on nous vous ils elles me m' te t' se s' lui leur y en moi "
        "toi eux qui que "
        "qu' quoi dont ce c' ça cela ceci celui celle ceux quelqu'un rien personne tout"
    ),
    "DET": _words(
        "le la les l' un une des du de d' au aux mon ma mes ton ta tes son sa ses notre nos votre "
        "vos leurs cet cette ces quel quelle quelque chaque plusieurs"
    ),
    "ADP": _words(
        "à dans sur sous avec sans pour par chez vers entre depuis pendant contre jusque"
    ),
    "AUX": _words(
        "suis es est sommes êtes sont étais était étaient être été ai as a avons avez ont avais "
        "avait avaient avoir eu serai sera aura vais va vas allons allez vont"
    ),
    "CCONJ": _words("et ou mais ni donc car or"),
    "SCONJ": _words("si quand lorsque comme puisque"),
    "PART": _words("ne n' pas"),
    "ADV": _words(
        "très bien plus moins jamais toujours ici là aussi trop encore déjà peut-être où"
    ),
    "NUM": _words("deux trois quatre cinq six sept huit neuf dix cent mille"),
}
_ADVERB, _VERB = ("ly",), ("ing", "ed")
_NOUN = ("tion", "sion", "ness", "ment", "ity", "ship", "hood", "ism")
_ADJECTIVE = ("ous", "ful", "able", "ible", "less", "ish", "ive")
_NO_VERB = _words(
    "thing something nothing anything everything king ring wing spring morning evening"
)
_NO_VERB |= _words("bed red shed bread seed weed hundred family only belly fly")
_BEFORE_VERB = _words("to will would shall should can could may might must i we they he she who")


def english(words: Sequence[str]) -> list[str]:
    """Return the tags of the words of a sentence, as they are written."""
    return _tagged(words, _ENGLISH, _open_english)


def french(words: Sequence[str]) -> list[str]:
    """Return the tags of the words of a French sentence."""
    return _tagged(words, _FRENCH, _open_french)


def _tagged(
    words: Sequence[str],
    closed: dict[str, frozenset[str]],
    open_class: Callable[[str, str], str],
) -> list[str]:
    tags: list[str] = []
    before = ""
    for place, word in enumerate(words):
        lower = word.lower()
        if not any(map(str.isalnum, word)):
            tag = "PUNCT" if word.strip() else "X"
        elif any(map(str.isdigit, word)):
            tag = "NUM"
        else:
            known = next((tag for tag, of_tag in closed.items() if lower in of_tag), None)
            begins = place == 0 or tags[-1] in {"PUNCT", "X"}
            if known is not None:
                tag = known
            elif word[:1].isupper() and not begins:
                tag = "PROPN"
            else:
                tag = open_class(lower, before)
        tags.append(tag)
        before = lower
    return tags


def _open_english(word: str, before: str) -> str:
    if word.endswith(_NOUN):
        return "NOUN"
    if word.endswith(_ADVERB) and word not in _NO_VERB:
        return "ADV"
    if len(word) > 4 and word.endswith(_VERB) and word not in _NO_VERB:
        return "VERB"
    if word.endswith(_ADJECTIVE):
        return "ADJ"
    return "VERB" if before in _BEFORE_VERB else "NOUN"


def _open_french(word: str, before: str) -> str:
    if word.endswith("ment"):
        return "ADV"
    if before in _FRENCH["PRON"] | {"ne", "n'"} or word.endswith(
        ("er", "ir", "ez", "ons", "ait", "aient")
    ):
        return "VERB"
    return "ADJ" if word.endswith(("eux", "euse", "ique", "able", "if", "ive")) else "NOUN"
