"""Agreement of a verb with its subject across another noun: "The boys near the girl were"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from headlight.lab.training.agreement_text import test_nouns
from headlight.model.controlled_sentences import NOUNS, PREPOSITIONS, Noun
from headlight.model.served import Served
from headlight.model.tokenizer import MASK

AFTER_BLANK = (" very happy.",)
AFTER_OTHER_BLANK = (" in the garden.",)
BATCH_ROWS = 64
OTHER_PREPOSITIONS = ("from", "below", "beyond", "without")
"""Prepositions that `headlight.lab.training.agreement_text` does not use."""
UNSEEN_PREPOSITIONS = (*OTHER_PREPOSITIONS, "toward", "underneath", "alongside", "on the edge of")
UNSEEN_ENDS = (
    " in the garden.",
    " never seen again.",
    " better than the rest.",
    " at the end of the street.",
    " of no use to anybody.",
)
"""What follows the verb in no template, up to the stop."""


@dataclass(frozen=True, kw_only=True)
class AgreementItem:
    """The beginning of a sentence before its verb, and the verb that agrees and that does not.

    ``is_congruent``: the noun next to the verb has the number of the subject; then a model that
    agrees with the nearest noun is right, too.
    """

    beginning: str
    right: str
    wrong: str
    is_congruent: bool


def agreement_items(
    prepositions: Sequence[str] = PREPOSITIONS, pairs: Sequence[tuple[Noun, Noun]] = ()
) -> list[AgreementItem]:
    """Return pairs of nouns with each preposition, in both numbers of subject and other noun.

    Without `pairs`, the 90 ordered pairs of `NOUNS`: 1,440 items with 4 prepositions. Half of the
    items are congruent.
    """
    items = []
    for (subject, other), preposition in product(pairs or [*permutations(NOUNS, 2)], prepositions):
        for number, other_number in product((0, 1), repeat=2):
            verbs = ("was", "were")
            items.append(
                AgreementItem(
                    beginning=f"The {subject[number]} {preposition} the {other[other_number]}",
                    right=verbs[number],
                    wrong=verbs[1 - number],
                    is_congruent=number == other_number,
                )
            )
    return items


def unseen_items() -> list[AgreementItem]:
    """Return sentences of nouns and prepositions that no template for training has.

    The nouns are those of `test_nouns`, each with the next two as the other noun; the prepositions
    are `UNSEEN_PREPOSITIONS`. Half of the items are congruent.
    """
    nouns = test_nouns()
    pairs = [(noun, nouns[(n + k) % len(nouns)]) for n, noun in enumerate(nouns) for k in (1, 2)]
    return agreement_items(UNSEEN_PREPOSITIONS, pairs)


def agreement_figures(checkpoint: Served) -> dict[str, dict[str, Any]]:
    """Measure how often the verb that agrees is more probable than the one that does not.

    The sentences are those of `agreement_items`. A decoder predicts the verb from what is before
    it; an encoder fills it in from both sides.

    Returns:
        Under ``agreement``, in [0, 1]: ``other_number``, if the noun next to the verb has the
        other number than the subject, and as its control ``same_number``, if it has the same;
        ``other_prepositions``: as ``other_number``, with prepositions and an end that
        `headlight.lab.training.agreement_text` does not teach; and ``sentences``, the
        number of each. Under ``unseen_words`` the first two and the number of sentences whose
        nouns, prepositions and ends occur in no template.
        Nothing if a verb is not a single token.
    """
    verbs = {word: _single(checkpoint, f" {word}") for word in ("was", "were")}
    is_filling = checkpoint.config.kind == "encoder"
    if None in verbs.values() or (is_filling and checkpoint.tokenizer.mask_id is None):
        return {}
    items = agreement_items()
    rights = _rights(checkpoint, items, AFTER_BLANK, verbs)
    others = _rights(checkpoint, agreement_items(OTHER_PREPOSITIONS), AFTER_OTHER_BLANK, verbs)
    unseen = _rights(checkpoint, unseen_items(), UNSEEN_ENDS, verbs)
    return {
        "agreement": {
            **_named(rights),
            "other_prepositions": _share(others[False]),
            "unseen_words": _named(unseen),
        }
    }


def _named(rights: Mapping[bool, Sequence[bool]]) -> dict[str, Any]:
    return {
        "other_number": _share(rights[False]),
        "same_number": _share(rights[True]),
        "sentences": len(rights[False]),
    }


def _share(rights: Sequence[bool]) -> float:
    return sum(rights) / len(rights)


def _rights(
    checkpoint: Served,
    items: Sequence[AgreementItem],
    ends: Sequence[str],
    verbs: Mapping[str, int | None],
) -> dict[bool, list[bool]]:
    """Return whether the verb that agrees is more probable, by whether an item is congruent.

    The ends, which only an encoder reads, take turns.
    """
    is_filling = checkpoint.config.kind == "encoder"
    blanks = [f" {MASK}{end}" for end in ends] if is_filling else [""]
    rights: dict[bool, list[bool]] = {True: [], False: []}
    for first in range(0, len(items), BATCH_ROWS):
        part = items[first : first + BATCH_ROWS]
        texts = [
            f"{item.beginning}{blanks[number % len(blanks)]}"
            for number, item in enumerate(part, start=first)
        ]
        rows, places = _read(checkpoint, texts)
        logits = checkpoint.read(rows, None, sites=["logits"])["logits"]
        at_verb = logits[range(len(rows)), places].float().cpu()
        for item, scores in zip(part, at_verb, strict=True):
            is_right = bool(scores[verbs[item.right]] > scores[verbs[item.wrong]])
            rights[item.is_congruent].append(is_right)
    return rights


def _single(checkpoint: Served, text: str) -> int | None:
    """Return the token of a text; None if it has several."""
    ids = [token.id for token in checkpoint.tokenizer.encode(text) if not token.is_special]
    return ids[0] if len(ids) == 1 else None


def _read(checkpoint: Served, texts: Sequence[str]) -> tuple[list[list[int]], list[int]]:
    """Return the ids of each text, and the place whose logits predict the verb."""
    mask = checkpoint.tokenizer.mask_id
    rows = [[token.id for token in checkpoint.tokenizer.encode(text)] for text in texts]
    if checkpoint.config.kind == "encoder":
        assert mask is not None
        return rows, [row.index(mask) for row in rows]
    return rows, [len(row) - 1 for row in rows]
