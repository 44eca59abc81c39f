"""The evaluate command with --heads: a profile of every head, beside the model and on its card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from headlight.commands.options import UsageError
from headlight.commands.output import console
from headlight.commands.training import usage_errors
from headlight.model.card import read_card, write_card
from headlight.model.checkpoint import find_model, load, write_atomically
from headlight.model.checkpoint_files import CARD, CheckpointError
from headlight.model.device import choose_device
from headlight.model.evaluation.figures import SAMPLE, recipe_of, require_no_files, rounded
from headlight.model.evaluation.heads import profile_heads
from headlight.model.evaluation.reasoning import profile_digits
from headlight.model.evaluation.word_alignment import ENGLISH_FRENCH_GOLD, read_gold
from headlight.model.head_profiles import HEADS, head_labels, to_json
from headlight.model.served import Served
from headlight.model.served_transformer import Checkpoint
from headlight.model.training.corpus import SentencePair, read_documents, read_pairs


def profile_model(
    model: str,
    text: Sequence[Path],
    n_sentences: int,
    device: str,
    models_dir: Path | None = None,
) -> dict[str, Any]:
    """Measure every head of a model and write the profile beside it, with a summary on its card.

    Without `text`, the project's own sample is read, by a model of the recipe ``reasoning`` the
    solutions of its test problems. A card is not made for a model without one.

    Raises:
        UsageError: the model or the device is unknown.
        ValueError: the folder or a file is unusable.
    """
    try:
        folder = find_model(model, models_dir)
    except CheckpointError as error:
        raise UsageError(str(error)) from error
    with usage_errors():
        place = choose_device(device)
    checkpoint = load(folder, device=place)
    names = [path.name for path in text] or ["the project's own texts"]
    if isinstance(checkpoint, Checkpoint) and recipe_of(checkpoint) == "reasoning":
        with usage_errors():
            require_no_files(text)
        names = ["solutions of test problems"]
        found = profile_digits(checkpoint, n_sentences=n_sentences)
    else:
        found = profile_heads(checkpoint, _documents(checkpoint, text), n_sentences=n_sentences)
    profile: dict[str, Any] = {"text": names, **rounded(found)}
    write_atomically(folder / HEADS, lambda path: path.write_text(to_json(profile), "utf-8"))
    if (folder / CARD).exists():
        renewed = replace(read_card(folder / CARD), heads=summary_of(profile))
        write_atomically(folder / CARD, lambda path: write_card(path, renewed))
    console.print(_table(profile, checkpoint.id))
    return profile


def _documents(checkpoint: Served, text: Sequence[Path]) -> Sequence[str | SentencePair]:
    if checkpoint.config.kind != "encoder-decoder":
        return read_documents(text or [SAMPLE])
    if text:
        return read_pairs(text)
    gold = read_gold(ENGLISH_FRENCH_GOLD)
    return [SentencePair(pair.english, pair.french) for pair in gold]


def summary_of(profile: Mapping[str, Any]) -> dict[str, Any]:
    """The labels with their scores and the cost of each head, for a card."""
    labels = head_labels(profile)
    return {
        "text": profile["text"],
        "sentences": profile["sentences"],
        "bits_per_byte": profile["bits_per_byte"],
        "attentions": {
            path: [
                {"labels": of_head, "cost": head["cost"]}
                for of_head, head in zip(labels[path], heads, strict=True)
            ]
            for path, heads in profile["attentions"].items()
        },
    }


def _table(profile: Mapping[str, Any], title: str) -> Table:
    table = Table("attention", "head", "labels", "bits a byte without it", title=title)
    for path, heads in summary_of(profile)["attentions"].items():
        for number, head in enumerate(heads):
            labels = ", ".join(f"{name} {score:.2f}" for name, score in head["labels"].items())
            table.add_row(path, str(number), labels, f"{head['cost']:+.4f}")
    return table
