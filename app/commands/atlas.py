"""`headlight atlas`, options and work: build an atlas of a model over a corpus, and search it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headlight.commands.options import Device, ModelsDir
from headlight.commands.output import note, print_json, say, show
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
    from headlight.model.atlas.search import Findings, Question

app = Commands(
    name="atlas",
    help="Read a whole corpus with a model, and search what its heads attend to.",
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
        int,
        option("Processes of Ray that read, a core or a GPU each; 0 reads here.", "N", min=0),
    ] = 0,
    threshold: Annotated[
        float, option("The least attention weight that is kept.", "W", min=0.01, max=1)
    ] = 0.2,
    sample: Annotated[
        int,
        option(
            "Sentences that the cost of each head is measured on; a hash chooses them.",
            "N",
            min=1,
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
    from headlight.model.checkpoint.loading import load
    from headlight.model.device import choose_device

    _require_libraries()
    folder = folder_of(model, settings)
    with usage_errors():
        place = choose_device(device or settings.device)
    kept = Settings(threshold=threshold, n_sample=sample, tagger=tags)
    reader = None
    if workers:
        reader = read_with_ray(folder, kept, out, n_workers=workers, device=str(place))
    try:
        facts = build_atlas(
            load(folder, device=place),
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
        f"`headlight atlas search {out} --from him --to king` searches it"
    )


def _require_libraries() -> None:
    from importlib.util import find_spec

    from headlight.model.extras import missing

    for name, module in (("PyArrow", "pyarrow"), ("DuckDB", "duckdb")):
        if find_spec(module) is None:
            raise ImportError(missing("an atlas", name))


def _tell(progress: Progress) -> None:
    share = progress.n_bytes / progress.total_bytes
    minutes, seconds = divmod(round(progress.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    note(
        f"{share:.1%} read · {progress.n_tokens:,} tokens · "
        f"{progress.tokens_per_second:,.0f} tokens/s · {hours}:{minutes:02}:{seconds:02} left"
    )


@app.command()
def search(
    folder: Annotated[Path, typer.Argument(help="The folder of an atlas.", metavar="ATLAS")],
    from_word: Annotated[
        str | None, option("The word that attends, the query.", "WORD", name="--from")
    ] = None,
    to_word: Annotated[
        str | None, option("The word that is attended to, the key.", "WORD", name="--to")
    ] = None,
    from_tag: Annotated[
        str | None, option("The query's part of speech, such as PRON or pronoun.", "TAG")
    ] = None,
    to_tag: Annotated[str | None, option("The key's part of speech.", "TAG")] = None,
    head: Annotated[str | None, option("Only this head, as LAYER.HEAD: 3.3.", "LAYER.HEAD")] = None,
    distance: Annotated[
        str | None,
        option("From how many to how many tokens the key is before the query: 4:20.", "N:N"),
    ] = None,
    same_word: Annotated[
        bool, option("Only from a word to the same word elsewhere.", name="--same-word")
    ] = False,
    sentences: Annotated[int, option("The number of sentences.", "N", min=0, max=100)] = 10,
    as_json: Annotated[bool, option("Print JSON.", name="--json")] = False,
) -> None:
    """Rank the heads that attend from some words to others, with sentences.

    The lift says how many times more often such pairs are among the weights of a head than among
    all that its queries see, with an interval at 95 %; there is none below 20 weights.
    """
    from headlight.model.atlas.layout import AtlasError, read_atlas
    from headlight.model.atlas.search import search as search_atlas

    try:
        layer, number = _head(head)
        question = _question(
            from_word=from_word,
            to_word=to_word,
            from_tag=from_tag,
            to_tag=to_tag,
            layer=layer,
            head=number,
            distance=_distance(distance),
            same_word=same_word,
            n_sentences=sentences,
        )
        findings = search_atlas(read_atlas(folder), question)
    except AtlasError as error:
        raise UsageError(str(error)) from error
    if as_json:
        print_json(asdict(findings))
    else:
        _print(findings)


def _question(**asked: Any) -> Question:
    from headlight.model.atlas.search import Question
    from headlight.model.atlas.tags import tag_of

    for side in ("from_tag", "to_tag"):
        if asked[side] is not None:
            try:
                asked[side] = tag_of(asked[side])
            except ValueError as error:
                raise UsageError(str(error)) from error
    return Question(**asked)


def _head(head: str | None) -> tuple[int | None, int | None]:
    if head is None:
        return None, None
    layer, _, number = head.partition(".")
    if not (layer.isdecimal() and number.isdecimal()):
        raise UsageError(f"--head: {head!r} is not LAYER.HEAD, as in 3.3")
    return int(layer), int(number)


def _distance(distance: str | None) -> tuple[int, int] | None:
    if distance is None:
        return None
    try:
        nearest, farthest = map(int, distance.split(":"))
    except ValueError as error:
        raise UsageError(f"--distance: {distance!r} is not two numbers, as in 4:20") from error
    if nearest > farthest:
        raise UsageError(f"--distance: {nearest} is more than {farthest}; write the smaller first")
    return nearest, farthest


def _print(findings: Findings) -> None:
    from rich.table import Table
    from rich.text import Text

    if not findings.heads:
        say("no head has such a weight")
        return
    table = Table("attention", "head", "weights", "of", "share", "lift", "95 %")
    for row in findings.heads[:20]:
        has_lift = row.lift is not None
        table.add_row(
            row.attention,
            str(row.head),
            f"{row.count:,}",
            f"{row.of:,}",
            f"{row.share:.1%}",
            f"{row.lift:.2f}" if has_lift else "–",
            f"{row.lift_low:.2f} to {row.lift_high:.2f}" if has_lift else "–",
        )
    show(table)
    if findings.sentences:
        table = Table("head", "weight", "query", "key", "sentence", "in")
        for place in findings.sentences:
            layer = place.attention.split(".")[2]
            table.add_row(
                f"{layer}.{place.head}",
                f"{place.weight:.2f}",
                Text(place.query_word),
                Text(place.key_word),
                Text(place.text + (f" — {place.target}" if place.target else "")),
                f"{place.file}:{place.offset}",
            )
        show(table)
