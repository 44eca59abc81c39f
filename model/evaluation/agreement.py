"""Agreement of a verb with its subject across another noun: "The boys near the girl were"."""

from __future__ import annotations

from collections.abc import Sequence

from headlight.model.evaluation.controlled_sentences import AgreementItem, agreement_items
from headlight.model.served import Served
from headlight.model.tokenizer import MASK

AFTER_BLANK = " very happy."
BATCH_ROWS = 64


def agreement_figures(checkpoint: Served) -> dict[str, dict[str, float]]:
    """Measure how often the verb that agrees is more probable than the one that does not.

    The sentences are those of `agreement_items`. A decoder predicts the verb from what is before
    it; an encoder fills it in from both sides.

    Returns:
        Under ``agreement``, in [0, 1]: ``other_number``, where the noun next to the verb has the
        other number than the subject, and as its control ``same_number``, where it has the same;
        and ``sentences``, the number of each. Nothing if a verb is not a single token.
    """
    items = agreement_items()
    verbs = {word: _single(checkpoint, f" {word}") for item in items[:2] for word in _words(item)}
    if None in verbs.values():
        return {}
    is_filling = checkpoint.config.kind == "encoder"
    if is_filling and checkpoint.tokenizer.mask_id is None:
        return {}
    texts = [
        f"{item.beginning} {MASK}{AFTER_BLANK}" if is_filling else item.beginning for item in items
    ]
    rights: dict[bool, list[bool]] = {True: [], False: []}
    for first in range(0, len(items), BATCH_ROWS):
        part = items[first : first + BATCH_ROWS]
        rows, places = _read(checkpoint, texts[first : first + BATCH_ROWS])
        logits = checkpoint.read(rows, None, sites=["logits"])["logits"]
        at_verb = logits[range(len(rows)), places].float().cpu()
        for item, scores in zip(part, at_verb, strict=True):
            is_right = bool(scores[verbs[item.right]] > scores[verbs[item.wrong]])
            rights[item.is_congruent].append(is_right)
    return {
        "agreement": {
            "other_number": sum(rights[False]) / len(rights[False]),
            "same_number": sum(rights[True]) / len(rights[True]),
            "sentences": len(rights[False]),
        }
    }


def _words(item: AgreementItem) -> tuple[str, str]:
    return item.right, item.wrong


def _single(checkpoint: Served, text: str) -> int | None:
    """The token of a text; None if it has several."""
    ids = [token.id for token in checkpoint.tokenizer.encode(text) if not token.is_special]
    return ids[0] if len(ids) == 1 else None


def _read(checkpoint: Served, texts: Sequence[str]) -> tuple[list[list[int]], list[int]]:
    """The ids of each text, and the place whose logits predict the verb."""
    mask = checkpoint.tokenizer.mask_id
    rows = [[token.id for token in checkpoint.tokenizer.encode(text)] for text in texts]
    if checkpoint.config.kind == "encoder":
        assert mask is not None
        return rows, [row.index(mask) for row in rows]
    return rows, [len(row) - 1 for row in rows]
