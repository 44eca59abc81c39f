"""BLEU: how many of a translation's runs of one to four words some reference has too.

Papineni et al. 2002, https://aclanthology.org/P02-1040/; computed by sacrebleu (Post 2018,
https://arxiv.org/abs/1804.08771) with its defaults, so that scores compare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from headlight.model.checkpoint import Checkpoint
from headlight.model.training.corpus import SentencePair
from headlight.model.translation import translate


def bleu(checkpoint: Checkpoint, pairs: Sequence[SentencePair]) -> float:
    """BLEU in [0, 100] over the distinct sources, each scored against all of its translations.

    Args:
        checkpoint: an encoder–decoder.
        pairs: sources and references; a source may occur with many.

    Raises:
        ImportError: sacrebleu is not installed.
    """
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            "BLEU needs sacrebleu, which is not installed; pip install headlight[evaluate]"
        ) from error
    references: dict[str, list[str]] = defaultdict(list)
    for source, target in pairs:
        references[source].append(target)
    most = max(map(len, references.values()))
    streams = [
        [known[number] if number < len(known) else None for known in references.values()]
        for number in range(most)
    ]
    score: float = sacrebleu.corpus_bleu(translations(checkpoint, list(references)), streams).score
    return score


def translations(
    checkpoint: Checkpoint, sources: Sequence[str], *, batch_rows: int = 64
) -> list[str]:
    """The model's own translations, in the order of the sources."""
    tokenizer = checkpoint.tokenizer
    ids = [[tokenizer.start_id, *pieces] for pieces in tokenizer.encode_ids(sources)]
    order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
    found = [""] * len(ids)
    for first in range(0, len(order), batch_rows):
        numbers = order[first : first + batch_rows]
        targets = translate(
            checkpoint.model,
            [ids[number] for number in numbers],
            start_id=tokenizer.start_id,
            end_id=tokenizer.end_id,
        )
        for number, target in zip(numbers, targets, strict=True):
            found[number] = tokenizer.decode(target)
    return found
