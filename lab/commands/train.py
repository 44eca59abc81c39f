"""`headlight train`: a model of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from headlight.commands.options import Device, Files
from headlight.commands.parsing import DERIVED, Commands, option, settings_of
from headlight.lab.training import recipes
from headlight.model.discovery import module_names, summary

app = Commands()

if TYPE_CHECKING:
    Recipe: TypeAlias = str
else:
    Recipe = Literal[tuple(module_names(recipes.__path__))]

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def _recipes() -> str:
    path = recipes.__path__
    return "\n\n".join(f"{name}: {summary(path, name)}" for name in module_names(path))


DERIVED["{recipes}"] = _recipes


@app.command()
def train(
    recipe: Annotated[Recipe, typer.Argument(help="The kind of model.", metavar="RECIPE")],
    out: Annotated[Path, option("The run's folder: the model, and its training state.", "DIR")],
    corpus: Annotated[
        Files, option("A file to train on, or a folder of text; repeat it for more.", "FILE")
    ] = None,
    steps: Annotated[int | None, option("The number of steps.", "N", "the recipe's")] = None,
    seed: Annotated[
        int | None, option("The seed of the initial weights and of every batch.", "N", "0")
    ] = None,
    device: Device = None,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"] | None,
        option("auto measures which one is faster here.", None, "auto"),
    ] = None,
    threads: Annotated[
        int | None,
        option(
            "Threads on the CPU.",
            "N",
            "1 while other processes keep the machine busy, otherwise one per core",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        option("A YAML file of settings with the sections model:, rows: and loop:.", "FILE"),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        option(
            "Change one setting of the recipe or the file: model.d_model=128, "
            "loop.learning_rate=1e-3; repeat it for more.",
            "NAME=VALUE",
            name="--set",
        ),
    ] = None,
    begun_from: Annotated[
        str | None,
        option(
            "Begin with the weights and the tokenizer of this model.",
            "MODEL",
            "random weights",
            name="--from",
        ),
    ] = None,
    comparisons: Annotated[
        Files,
        option(
            "For reward: JSON lines of prompt, a, b and preferred, which is a or b; repeat it for "
            "more.",
            "FILE",
        ),
    ] = None,
    reward: Annotated[
        str | None, option("For rlhf: the model that rates the samples.", "MODEL")
    ] = None,
    teacher: Annotated[
        str | None,
        option(
            "Learn also from the next-token distributions of this model, with its tokenizer; "
            "loop.teacher_weight is their share of the loss, loop.temperature softens them.",
            "MODEL",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None, option("Take the tokenizer of this model.", "MODEL", "trained on the corpus")
    ] = None,
    keep_steps: Annotated[
        int | None,
        option(
            "Keep so many states as models, evenly spaced in the logarithm of their steps: the "
            "page's slider goes through them.",
            "N",
            "none",
        ),
    ] = None,
    resume: Annotated[bool, option("Continue the run where it stopped.", name="--resume")] = False,
) -> None:
    """Train a model on your own text; Ctrl-C saves, --resume continues.

    A corpus is text, a paragraph a line, unless the recipe says otherwise. The recipes:

    {recipes}
    """
    options = locals() | {"device": device or settings_of().device}
    from headlight.lab.commands.training import train_model

    is_finished = train_model(**options)
    if not is_finished:
        raise typer.Exit(INTERRUPTED)
