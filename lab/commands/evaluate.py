"""`headlight evaluate`: figures of a model, on its card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column, Table
from rich.text import Text

from headlight.commands.options import Device, Files, ModelsDir
from headlight.commands.output import say, show
from headlight.commands.parsing import (
    Commands,
    UsageError,
    folder_of,
    option,
    settings_with_models,
    usage_errors,
)

if TYPE_CHECKING:
    from headlight.model.checkpoint.card import ModelCard

app = Commands()

BITS = "quantization"  # figures on a card, of copies by `headlight quantize`


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    text: Annotated[
        Files,
        option("Held-out text, or held-out pairs for a translator; repeat it for more.", "FILE"),
    ] = None,
    corpus: Annotated[
        Files,
        option(
            "The training corpus, to count the tokens of each expert or to find names that a "
            "translator never read; repeat it for more.",
            "FILE",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        option("A second word alignment to compare a translator's attention with.", "FILE"),
    ] = None,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Measure a model on unseen text and write the figures to its card.

    Without files, the model is measured on the texts that ship with the project. With --text each
    kept state of its training is measured too. `headlight profile` measures its heads.
    """
    from headlight.lab.evaluation.figures import joined, measure, measure_expert_tokens
    from headlight.lab.evaluation.steps import write_scores
    from headlight.lab.figures import Evidence
    from headlight.model.checkpoint.loading import load_checkpoint
    from headlight.model.checkpoint.steps import steps_in
    from headlight.model.corpus import read_documents
    from headlight.model.device import choose_device
    from headlight.model.foreign import is_foreign

    settings = settings_with_models(device=device, models_dir=models_dir)
    evidence = Evidence(text=tuple(text or ()), corpus=tuple(corpus or ()), gold=gold)
    folder = folder_of(model, settings)
    with usage_errors():
        place = choose_device(settings.device)
    if is_foreign(folder):
        raise UsageError(
            f"'{model}' is a checkpoint of Transformers; only its heads are measured: "
            f"headlight profile {model}"
        )
    checkpoint = load_checkpoint(folder, device=place)
    card = checkpoint.description.card
    with usage_errors():
        figures = measure(checkpoint, evidence)
        expert_tokens = measure_expert_tokens(checkpoint, evidence) or card.expert_tokens
    show(_figures_table(figures, checkpoint.id))
    if expert_tokens is not card.expert_tokens:
        show(_experts_table(expert_tokens, checkpoint.id))
    if evidence == Evidence():
        known = card.training.get("evaluation")
        say(
            "measured on the project's own texts; name held-out text with --text for the rest"
            + (f"; the figures on the card come from: {known}" if known else "")
        )
    if evidence.text and steps_in(folder):
        documents = read_documents(evidence.text)
        write_scores(folder, documents, named=[path.name for path in evidence.text])
    figures = joined(card.metrics, figures, evidence)
    figures |= {BITS: card.metrics[BITS]} if BITS in card.metrics else {}
    _renew_card(folder, replace(card, metrics=figures, expert_tokens=expert_tokens))


def _experts_table(expert_tokens: Mapping[str, Any], title: str) -> Table:
    table = Table("layer", "expert", "of all tokens", "most of all", title=title)
    for layer, experts in expert_tokens["layers"].items():
        for number, expert in enumerate(experts):
            texts = " ".join(repr(token["text"]) for token in expert["tokens"])
            table.add_row(layer, str(number), f"{100 * expert['share']:.1f} %", Text(texts))
    return table


def _figures_table(figures: Mapping[str, Any], title: str) -> Table:
    from headlight.model.checkpoint.card import flatten

    table = Table(Column("figure", overflow="fold"), "value", title=title)
    for name, value in flatten(figures):
        table.add_row(name, str(value))
    return table


def _renew_card(folder: Path, card: ModelCard) -> None:
    from headlight.model.checkpoint.card import write_card
    from headlight.model.checkpoint.files import CARD
    from headlight.model.checkpoint.loading import write_atomically

    write_atomically(folder / CARD, lambda path: write_card(path, card))
