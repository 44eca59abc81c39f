"""The profile of the model in a folder: measured, and kept next to its weights and on its card."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from headlight.model.checkpoint.card import read_card, rounded, write_card
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.files import CARD
from headlight.model.checkpoint.loading import write_atomically
from headlight.model.checkpoint.profile import HEADS, head_labels, to_json
from headlight.model.corpus import CorpusError, SentencePair, read_documents, read_pairs
from headlight.model.profiles.digits import profile_digits
from headlight.model.profiles.feeders import measure_feeders
from headlight.model.profiles.measure import profile_heads
from headlight.model.served import Served

SENTENCES = Path(__file__).with_name("sentences")
SAMPLE = SENTENCES / "sample.txt"
ENGLISH_FRENCH = SENTENCES / "english_french.jsonl"


def measure_folder(
    folder: Path,
    checkpoint: Served,
    text: Sequence[Path],
    n_sentences: int,
    on_progress: Callable[[float], object] = lambda _: None,
    *,
    is_sample: bool = False,
) -> dict[str, Any]:
    """Measure every head of the model in a folder; write its profile, and a summary on its card.

    A model without a card gets none.

    Args:
        folder: of the model.
        checkpoint: the model, loaded from the folder.
        text: files of text, or of pairs for an encoder–decoder; none: the project's own sentences.
            A model that multiplies reads its problems.
        n_sentences: the number of sentences to read.
        on_progress: called with the share that is done.
        is_sample: whether the cost of each head and what feeds it are left out, which take a pass
            for each head.

    Raises:
        CorpusError: a file is unusable, or the model reads no files.
        ValueError: the model cannot be measured.
        OSError: the folder cannot be written.
    """
    if not os.access(folder, os.W_OK):  # not after minutes of measuring
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS), str(folder / HEADS))
    if multiplies(checkpoint):
        if text:
            raise CorpusError(f"{folder.name} is measured on problems, not files; leave them out")
        names = ["solutions of test problems"]
        figures = profile_digits(checkpoint, n_sentences=n_sentences, on_progress=on_progress)
    else:
        names = [path.name for path in text] or ["the project's own texts"]
        documents = documents_of(checkpoint, text)
        figures = profile_heads(
            checkpoint,
            documents,
            n_sentences=n_sentences,
            on_progress=on_progress,
            is_sample=is_sample,
        )
    if not is_sample:
        figures["feeders"] = measure_feeders(checkpoint, figures)
    profile: dict[str, Any] = {"text": names, **rounded(figures)}
    write_atomically(folder / HEADS, lambda path: path.write_text(to_json(profile), "utf-8"))
    if (folder / CARD).exists():
        renewed = replace(read_card(folder / CARD), heads=summary_of(profile))
        write_atomically(folder / CARD, lambda path: write_card(path, renewed))
    return profile


def multiplies(checkpoint: Served) -> TypeGuard[Checkpoint]:
    """Return True for a model of the recipe `reasoning`, which knows only digits and signs."""
    if not isinstance(checkpoint, Checkpoint):
        return False
    return checkpoint.description.card.training.get("recipe") == "reasoning"


def documents_of(checkpoint: Served, text: Sequence[Path] = ()) -> Sequence[str | SentencePair]:
    """Return the content of files, or of the project's own texts: pairs for an encoder–decoder."""
    is_paired = checkpoint.config.kind == "encoder-decoder"
    if text:
        return read_pairs(text) if is_paired else read_documents(text)
    own = read_pairs([ENGLISH_FRENCH], source_field="english", target_field="french")
    return own if is_paired else [*read_documents([SAMPLE]), *(pair.source for pair in own)]


def summary_of(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return the labels with their scores and the cost of each head, for a card."""
    labels = head_labels(profile)
    return {
        "text": profile["text"],
        "sentences": profile["sentences"],
        **{name: profile[name] for name in ("bits_per_byte",) if name in profile},
        "attentions": {
            path: [
                {"labels": of_head, **({"cost": head["cost"]} if "cost" in head else {})}
                for of_head, head in zip(labels[path], heads, strict=True)
            ]
            for path, heads in profile["attentions"].items()
        },
    }
