"""The command line: headlight serve | trace | train | evaluate | models | limits | settings.

Each command imports its work when it runs, so that `--help` does not wait for PyTorch.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from headlight.commands.options import (
    Device,
    ModelsDir,
    Precision,
    check_models_dir,
    fail,
    reporting_errors,
    settings_of,
)
from headlight.commands.output import in_words
from headlight.commands.serve import EPILOG, serve

app = typer.Typer(
    name="headlight",
    help="Type a sentence, watch a transformer read it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Recipe = Literal["stories", "translate", "fill", "positions"]


app.command(epilog=EPILOG)(serve)


@app.command()
def trace(
    text: Annotated[str, typer.Argument(help="The text; - reads standard input.")],
    model: Annotated[
        str | None,
        typer.Option(help="A model's id, or its folder.", show_default="stories"),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="The text that a translator's decoder reads.",
            show_default="the model's translation",
        ),
    ] = None,
    capture: Annotated[
        list[str] | None, typer.Option(help="A site or a glob; repeat it for more.")
    ] = None,
    layers: Annotated[list[int] | None, typer.Option(help="Only this layer; repeatable.")] = None,
    heads: Annotated[list[int] | None, typer.Option(help="Only this head; repeatable.")] = None,
    analyses: Annotated[
        list[str] | None,
        typer.Option(help="A quantity computed from the trace, such as rollout; repeatable."),
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


@app.command()
def train(
    recipe: Annotated[Recipe, typer.Argument(help="What to train.")],
    out: Annotated[Path, typer.Option(help="Folder for the model and all that a resume needs.")],
    corpus: Annotated[
        list[Path] | None, typer.Option(help="What to train on; again for more files.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps in all.", show_default="the recipe's")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Decides the weights at the start and every row.", show_default="0"),
    ] = None,
    device: Device = None,
    precision: Annotated[
        str | None,
        typer.Option(help="float32, bfloat16, or auto: the faster one here.", show_default="auto"),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file of settings to change: model:, rows: and loop:, each with names "
            "and values under it.",
            metavar="FILE",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Change one setting of the recipe or the file: model.d_model=128, "
            "loop.learning_rate=1e-3; again for more.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run stopped.")] = False,
) -> None:
    """Train a model on your own text; Ctrl-C saves, --resume goes on.

    stories, fill and positions read text, a paragraph a line; translate reads sentence pairs:
    source, tab, target.

    Several processes train one model, each on its share of every batch, when torchrun starts them:
    torchrun --nproc-per-node 2 -m headlight.cli train …
    """
    from headlight.commands.training import run_loop
    from headlight.commands.training_settings import read_settings, read_settings_file
    from headlight.model.device import choose_device
    from headlight.model.training import run
    from headlight.model.training.config import merge
    from headlight.model.training.distributed import join, local_rank

    place = device or settings_of().device
    try:
        with join(choose_device(place)) as processes:
            command = _command(processes.size)
            if resume:
                if corpus or config or assignments or seed is not None:
                    raise ValueError(
                        "a resumed run keeps its corpus, its seed and its settings; leave them out"
                    )
                loop = run.resume(
                    out,
                    steps=steps,
                    precision=precision,
                    command=command,
                    device=place,
                    processes=processes,
                )
            else:
                changes = read_settings_file(config) if config else {}
                merge(changes, read_settings(assignments or []))
                given = {"loop.steps": steps, "loop.seed": seed}
                merge(changes, {name: value for name, value in given.items() if value is not None})
                asked = run.make_run(
                    recipe,
                    corpus or [],
                    settings=changes,
                    precision=precision or "auto",
                    command=command,
                )
                loop = run.start(asked, out, device=place, processes=processes)
            is_finished = run_loop(loop, loop.out.resolve().name)
    except (ValueError, OSError) as error:
        if local_rank() > 0:  # another process of this machine says it
            sys.exit(1)
        fail(in_words(error))
    if not is_finished:
        raise typer.Exit(130)


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.")],
    text: Annotated[
        list[Path] | None,
        typer.Option(help="Held-out text, or held-out pairs for a translator; again for more."),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Minimal pairs: JSON lines of paradigm, good and bad.")
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            help="What the model was trained on: for what each expert takes, or for the IBM models."
        ),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="A word alignment to measure a translator's attention on.")
    ] = None,
    device: Device = None,
) -> None:
    """Measure a model on text it has not seen, and write the figures to its card.

    Without a text, what the project has of its own is measured.
    """
    from headlight.commands.evaluation import evaluate_model
    from headlight.model.checkpoint import ZOO
    from headlight.model.checkpoint_files import CONFIG
    from headlight.model.evaluation.figures import Evidence

    shipped = ZOO / model
    folder = shipped if (shipped / CONFIG).is_file() else Path(model)
    if not folder.is_dir():
        names = ", ".join(sorted(each.name for each in ZOO.iterdir() if each.is_dir()))
        fail(f"there is no model or folder {model!r}; the models that ship are {names}")
    evidence = Evidence(
        text=tuple(text or ()), corpus=tuple(corpus or ()), minimal_pairs=pairs, gold=gold
    )
    try:
        evaluate_model(folder, evidence, device or settings_of().device)
    except (ValueError, OSError, ImportError) as error:
        fail(in_words(error))


@app.command()
def models(models_dir: ModelsDir = None) -> None:
    """List the available models."""
    settings = settings_of(models_dir=models_dir)
    check_models_dir(settings)
    with reporting_errors():
        from headlight.commands.listings import write_models

        write_models(settings)


@app.command()
def limits(models_dir: ModelsDir = None, as_json: AsJson = False) -> None:
    """List the limits of a server started here, with the reason and the variable of each."""
    settings = settings_of(models_dir=models_dir)
    check_models_dir(settings)
    with reporting_errors():
        from headlight.commands.listings import write_limits

        write_limits(settings, as_json=as_json)


@app.command()
def settings(as_json: AsJson = False) -> None:
    """List the other settings of a server started here: variable, value and description."""
    with reporting_errors():
        from headlight.commands.listings import write_settings

        write_settings(settings_of(), as_json=as_json)


def _command(n_processes: int) -> str:
    """What was typed, as it can be typed again."""
    together = ["torchrun", "--nproc-per-node", str(n_processes), "-m", "headlight.cli"]
    return shlex.join([*(together if n_processes > 1 else ["headlight"]), *sys.argv[1:]])


if __name__ == "__main__":
    app()
