"""`headlight atlas`, options and work: build an atlas of a model over a corpus."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headlight.commands.options import Device, ModelsDir
from headlight.commands.output import note, say
from headlight.commands.parsing import (
    Commands,
    UsageError,
    folder_of,
    option,
    settings_with_models,
    usage_errors,
)

if TYPE_CHECKING:
    from headlight.model.atlas.build import Progress

app = Commands(
    name="atlas",
    help="Read a whole corpus with a model; its page and its API search what its heads attend to.",
)


@app.command()
def build(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    corpus: Annotated[
        list[Path],
        typer.Argument(
            help="Text files, .jsonl files with a member text, Parquet files with a column text, "
            "or folders of .txt files; for a translator, pairs as .tsv, .jsonl or Parquet.",
            metavar="CORPUS...",
        ),
    ],
    out: Annotated[Path, option("The folder of the atlas; a build that stopped goes on.", "DIR")],
    workers: Annotated[
        int, option("Processes of Ray that read, a core or a GPU each; 0 reads here.", "N", min=0)
    ] = 0,
    threshold: Annotated[
        float, option("The least attention weight that is kept.", "W", min=0.01, max=1)
    ] = 0.2,
    sample: Annotated[
        int,
        option(
            "Sentences that the cost of each head is measured on; 0 leaves the cost out.",
            "N",
            min=0,
        ),
    ] = 1000,
    tags: Annotated[
        Literal["english", "none"],
        option("Parts of speech by rules for English, and French in targets, or none."),
    ] = "english",
    device: Device = None,
    models_dir: ModelsDir = None,
    force: Annotated[bool, option("Replace another atlas.", name="--force")] = False,
) -> None:
    """Read a corpus and keep what every head does: its profile, and all strong weights.

    The profile equals that of `headlight profile MODEL` on all sentences of the text,
    whatever the number of workers. Stop it at any time: the same command goes on.
    """
    settings = settings_with_models(models_dir=models_dir)
    from headlight.model.atlas.build import build as build_atlas
    from headlight.model.atlas.layout import AtlasError
    from headlight.model.atlas.shards import Settings
    from headlight.model.atlas.workers import read_with_ray
    from headlight.model.device import choose_device
    from headlight.model.extras import needed_by
    from headlight.models.foreign import load_folder
    from headlight.models.model_registry import CHECKS

    for library in ("PyArrow", "DuckDB"):
        with needed_by("an atlas", library):
            import_module(library.lower())
    folder = folder_of(model, settings)
    with usage_errors():
        place = choose_device(device or settings.device)
    read = partial(load_folder, checks=settings.own_models_dir / CHECKS)
    kept = Settings(threshold=threshold, n_sample=sample, tagger=tags)
    reader = None
    if workers:
        reader = read_with_ray(folder, read, kept, out, n_workers=workers, device=str(place))
    try:
        facts = build_atlas(
            read(folder, device=place),
            corpus,
            out,
            kept,
            read_shards=reader,
            on_progress=_tell,
            is_forced=force,
        )
    except AtlasError as error:
        raise UsageError(str(error)) from error
    say(
        f"{out}: {facts['tokens']:,} tokens of {facts['sentences']:,} sentences, "
        f"{facts['edges']:,} weights of at least {facts['threshold']:g}; "
        "`HEADLIGHT_ATLAS_DIR` names the folder that holds it, and *This head* searches it"
    )


def _tell(progress: Progress) -> None:
    left = timedelta(seconds=round(progress.seconds_left))
    note(
        f"{progress.n_bytes / progress.total_bytes:.1%} read · {progress.n_tokens:,} tokens · "
        f"{progress.tokens_per_second:,.0f} tokens/s · {left} left"
    )
