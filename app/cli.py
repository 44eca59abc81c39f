"""The command line: headlight serve | trace | train | evaluate | models | limits | settings.

Each command imports its work when it runs, so that `--help` does not wait for PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from headlight.commands.options import (
    Command,
    Device,
    Group,
    ModelsDir,
    Precision,
    check_models_dir,
    reporting_errors,
    settings_of,
)
from headlight.commands.serve import EPILOG, serve

app = typer.Typer(
    name="headlight",
    cls=Group,
    help="Type a sentence, watch a transformer read it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Recipe = Literal["stories", "translate", "fill", "positions"]
TrainingPrecision = Literal["auto", "float32", "bfloat16"]
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


app.command(cls=Command, epilog=EPILOG)(serve)


@app.command(cls=Command)
def trace(
    text: Annotated[str, typer.Argument(help="The text; - reads standard input.", metavar="TEXT")],
    model: Annotated[
        str | None,
        typer.Option(help="A model's id, or its folder.", show_default="stories", metavar="ID"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="The text that a translator's decoder reads.",
            show_default="the model's translation",
            metavar="TEXT",
        ),
    ] = None,
    capture: Annotated[
        list[str] | None,
        typer.Option(help="A site or a glob; repeat it for more.", metavar="SITE"),
    ] = None,
    layers: Annotated[
        list[int] | None, typer.Option(help="Only this layer; repeatable.", metavar="LAYER")
    ] = None,
    heads: Annotated[
        list[int] | None, typer.Option(help="Only this head; repeatable.", metavar="HEAD")
    ] = None,
    analyses: Annotated[
        list[str] | None,
        typer.Option(
            help="A quantity computed from the trace, such as rollout; repeatable.",
            metavar="NAME",
        ),
    ] = None,
    edits: Annotated[
        str | None,
        typer.Option(
            help="Changes to the pass, as the API takes them: "
            """'[{"kind": "heads_off", "heads": [3], "layer": 1}]'.""",
            metavar="JSON",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            help="float32, or uint16 for attention weights in half the bytes.",
            show_default="float32",
            metavar="NAME",
        ),
    ] = None,
    triangle: Annotated[
        bool,
        typer.Option("--triangle", help="Leave out the part of causal arrays above the diagonal."),
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool,
        typer.Option(
            "--csv",
            help="Print a table with one line for each number: its index on every axis, and the "
            "tokens there in columns such as query_token.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="The file for --json or --csv.", metavar="FILE")] = Path(
        "-"
    ),
    safetensors: Annotated[
        Path | None, typer.Option(help="Write a safetensors file.", metavar="FILE")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page that shows all heads and opens offline.", metavar="FILE"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    server: Annotated[
        str | None,
        typer.Option(
            help="Ask this server, with the key in HEADLIGHT_API_KEY, instead of a model here.",
            metavar="URL",
        ),
    ] = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Run a model on a text and show what it computed.

    Without an output option, a table shows the likely next tokens and the captured arrays. FILE
    may be - for standard output. One line break at the end of standard input is ignored.
    """
    with reporting_errors():
        from headlight.commands.trace import Outputs, run_trace

        run_trace(
            {
                "text": text,
                "model": model,
                "target": target,
                "capture": capture,
                "layers": layers,
                "heads": heads,
                "analyses": analyses,
                "edits": edits,
                "dtype": dtype,
                "triangle": triangle or None,
            },
            Outputs(
                as_json=as_json,
                as_csv=as_csv,
                out=out,
                safetensors=safetensors,
                html=html,
                is_forced=force,
            ),
            server=server,
            local={"device": device, "precision": precision, "models_dir": models_dir},
        )


@app.command(cls=Command)
def train(
    recipe: Annotated[Recipe, typer.Argument(help="The kind of model.", metavar="RECIPE")],
    out: Annotated[
        Path,
        typer.Option(help="The run's folder: the model, and its training state.", metavar="DIR"),
    ],
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="A file or folder to train on; repeat it for more.", metavar="FILE"),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="The number of steps.", show_default="the recipe's", metavar="N"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Decides the initial weights and every batch.", show_default="0", metavar="N"
        ),
    ] = None,
    device: Device = None,
    precision: Annotated[
        TrainingPrecision | None,
        typer.Option(help="auto measures which one is faster here.", show_default="auto"),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads on the CPU.",
            show_default="1 while other processes keep the machine busy, otherwise one per core",
            metavar="N",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file of settings with the sections model:, rows: and loop:.",
            metavar="FILE",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Change one setting of the recipe or the file: model.d_model=128, "
            "loop.learning_rate=1e-3; repeat it for more.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run where it stopped.")
    ] = False,
) -> None:
    """Train a model on your own text; Ctrl-C saves, --resume continues.

    stories, fill and positions read text, a paragraph a line; translate reads sentence pairs:
    source, tab, target.

    torchrun trains one model in several processes, each on its share of every batch:
    torchrun --nproc-per-node 2 -m headlight.cli train …
    """
    with reporting_errors():
        from headlight.commands.training import train_model

        is_finished = train_model(
            recipe,
            out,
            corpus=corpus or (),
            config=config,
            assignments=assignments or (),
            steps=steps,
            seed=seed,
            device=device or settings_of().device,
            precision=precision,
            threads=threads,
            resume=resume,
        )
    if not is_finished:
        raise typer.Exit(INTERRUPTED)


@app.command(cls=Command)
def evaluate(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    text: Annotated[
        list[Path] | None,
        typer.Option(
            help="Held-out text, or held-out pairs for a translator; repeat it for more.",
            metavar="FILE",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Minimal pairs: JSON lines of paradigm, good and bad.", metavar="FILE"),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            help="The training corpus, to count the tokens of each expert or to train the IBM "
            "models; repeat it for more.",
            metavar="FILE",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="A second word alignment to compare a translator's attention with.",
            metavar="FILE",
        ),
    ] = None,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Measure a model on unseen text and write the figures to its card.

    Without files, the model is measured on the texts that ship with the project.
    """
    settings = settings_of(models_dir=models_dir)
    check_models_dir(settings)
    with reporting_errors():
        from headlight.commands.evaluation import evaluate_model
        from headlight.model.evaluation.figures import Evidence

        evidence = Evidence(
            text=tuple(text or ()), corpus=tuple(corpus or ()), minimal_pairs=pairs, gold=gold
        )
        evaluate_model(model, evidence, device or settings.device, settings.models_dir)


@app.command(cls=Command)
def models(models_dir: ModelsDir = None) -> None:
    """List the available models."""
    settings = settings_of(models_dir=models_dir)
    check_models_dir(settings)
    with reporting_errors():
        from headlight.commands.listings import write_models

        write_models(settings)


@app.command(cls=Command)
def limits(models_dir: ModelsDir = None, as_json: AsJson = False) -> None:
    """List the limits of a server started here, with the reason and the variable of each."""
    settings = settings_of(models_dir=models_dir)
    check_models_dir(settings)
    with reporting_errors():
        from headlight.commands.listings import write_limits

        write_limits(settings, as_json=as_json)


@app.command(cls=Command)
def settings(as_json: AsJson = False) -> None:
    """List the other settings of a server started here: variable, value and description."""
    with reporting_errors():
        from headlight.commands.listings import write_settings

        write_settings(settings_of(), as_json=as_json)


if __name__ == "__main__":
    app()
