"""The command line: every command with its options; those of `headlight data` are in its module.

A command imports its work from `headlight.commands` when it runs, so that `--help` does not wait
for PyTorch.
"""

from __future__ import annotations

import gc
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer
from typer.core import TyperOption

from headlight.commands.atlas import atlas
from headlight.commands.chapter import chapter
from headlight.commands.cluster import cluster
from headlight.commands.parsing import (
    DERIVED,
    USAGE_ERROR,
    Command,
    Group,
    SettingsCommand,
    UsageError,
    chosen_models,
    fail,
    option,
    reporting_errors,
    settings_of,
    settings_with_models,
)
from headlight.lab.commands.data import data
from headlight.lab.training import recipes
from headlight.model.discovery import module_names, summary

app = typer.Typer(
    name="headlight",
    cls=Group,
    help="Type a sentence, watch a transformer read it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(data)
app.add_typer(atlas)
app.add_typer(cluster)
app.add_typer(chapter)


def _kinds_of_edits() -> str:
    from headlight.schemas.edits import KINDS

    return ", ".join(KINDS)


def _recipes() -> str:
    path = recipes.__path__
    return "\n\n".join(f"{name}: {summary(path, name)}" for name in module_names(path))


DERIVED |= {"{edits}": _kinds_of_edits, "{recipes}": _recipes}


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"headlight {version('headlight')}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        option(
            "Print the version and exit.", name="--version", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options that come before a command."""


AsJson = Annotated[bool, option("Print JSON.", name="--json")]
Files = list[Path] | None
Device = Annotated[str | None, option("auto, cpu, cuda or mps.", "NAME", "auto")]
Precision = Annotated[str | None, option("float32 or bfloat16.", "NAME", "float32")]
Server = Annotated[
    str | None,
    option("Ask this server, with the key in HEADLIGHT_API_KEY, instead of a model here.", "URL"),
]
ModelsDir = Annotated[Path | None, option("A directory with more models, one folder each.", "DIR")]
if TYPE_CHECKING:
    Recipe: TypeAlias = str
else:
    Recipe = Literal[tuple(module_names(recipes.__path__))]
TrainingPrecision = Literal["auto", "float32", "bfloat16"]
Granularity = Literal["channel", "tensor"]
Activations = Literal["float", "dynamic"]
LogLevel = Literal["error", "warning", "info", "debug"]
LogFormat = Literal["text", "json"]

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
_OTHER = (
    "All other settings are environment variables: `headlight limits` lists the limits, "
    "`headlight settings` the rest: host names, API keys, proxies."
)


_listening = partial(option, panel="Listening")
_models = partial(option, panel="Models and device")
_logging = partial(option, panel="Logging")


@app.command(cls=SettingsCommand, epilog=_OTHER)
def serve(
    host: Annotated[
        str,
        _listening(
            "Address to listen on; 0.0.0.0 or :: for every address of this machine. Host names "
            "the server is reached by must be listed in HEADLIGHT_ALLOWED_HOSTS.",
            "ADDRESS",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, _listening("Port; 0 takes a free one.", "PORT", min=0, max=65535)] = 8000,
    workers: Annotated[
        int | None,
        _listening(
            "Processes that share the port, each with its own models and cache: a trace that one "
            "keeps is not found by id in another.",
            "N",
            "1",
            min=1,
        ),
    ] = None,
    default_model: Annotated[
        list[str] | None,
        _models(
            "The model that answers a request that names none: an id, or a folder as ./folder; "
            "repeat it for more folders.",
            "ID",
            "stories",
            name="--model",
        ),
    ] = None,
    device: Annotated[str | None, _models("auto, cpu, cuda or mps.", "NAME", "auto")] = None,
    precision: Annotated[str | None, _models("float32 or bfloat16.", "NAME", "float32")] = None,
    threads: Annotated[
        int | None,
        _models("CPU threads of a forward pass; 0: PyTorch's default.", "N", "1", min=0),
    ] = None,
    models_dir: Annotated[
        Path | None, _models("A directory with more models, one folder each.", "DIR")
    ] = None,
    log_level: Annotated[
        LogLevel | None,
        _logging("Level; info adds a line for every request.", None, "warning"),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        _logging("Lines for people, or one JSON object a line.", None, "text"),
    ] = None,
) -> None:
    """Start the server: the page, the API and its documentation."""
    settings = settings_with_models(**locals() | chosen_models(default_model))
    gc.disable()  # the imports take a fifth less time; the application enables it when it starts
    from headlight import server
    from headlight.errors import Problem

    try:
        with server.listen(settings.host, settings.port) as listener:
            server.serve(listener, settings.host, settings)
    except Problem as problem:  # the default model
        fail(problem.detail, code=USAGE_ERROR if problem.status_code == 404 else 1)
    except (OSError, ValueError, server.EngineLost) as error:
        fail(str(error))
    finally:
        gc.enable()


class TraceCommand(Command):
    """`headlight trace`: its help lists the analyses, whose modules are imported for it only."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        from headlight.analyses.registry import ANALYSES, in_words

        for param in self.params:
            if param.name == "analyses" and isinstance(param, TyperOption):
                names = in_words(list(ANALYSES), "or")
                param.help = f"A quantity computed from the trace: {names}; repeatable."
        super().format_help(ctx, formatter)


@app.command(cls=TraceCommand)
def trace(
    text: Annotated[
        str | None, typer.Argument(help="The text; - reads standard input.", metavar="TEXT")
    ] = None,
    file: Annotated[
        Path | None,
        option(
            "Read the text from a file, which may be a book. Without --capture, --resolution and "
            "--queries, the maps of attention in 128 bins a side are traced.",
            "FILE",
        ),
    ] = None,
    model: Annotated[str | None, option("A model's id, or its folder.", "ID", "stories")] = None,
    target: Annotated[
        str | None,
        option("The text that a translator's decoder reads.", "TEXT", "the model's translation"),
    ] = None,
    capture: Annotated[
        list[str] | None, option("A site or a glob; repeat it for more.", "SITE")
    ] = None,
    layers: Annotated[list[int] | None, option("Only this layer; repeatable.", "LAYER")] = None,
    heads: Annotated[list[int] | None, option("Only this head; repeatable.", "HEAD")] = None,
    analyses: Annotated[
        list[str] | None,
        option("A quantity computed from the trace, such as rollout; repeatable.", "NAME"),
    ] = None,
    edits: Annotated[
        str | None,
        option(
            "Changes to the pass, as the API takes them: "
            """'[{"kind": "heads_off", "heads": [3], "layer": 1}]'. The kinds: {edits}.""",
            "JSON",
        ),
    ] = None,
    resolution: Annotated[
        int | None,
        option(
            "Trace the mean and the maximum of attention in at most this many bins a side, of a "
            "text of any length.",
            "BINS",
        ),
    ] = None,
    queries: Annotated[
        list[int] | None,
        option("Trace the exact row of attention of this position; repeatable.", "POSITION"),
    ] = None,
    dtype: Annotated[
        str | None,
        option("float32, or uint16 for attention weights in half the bytes.", "NAME", "float32"),
    ] = None,
    triangle: Annotated[
        bool,
        option("Leave out the part of causal arrays above the diagonal.", name="--triangle"),
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool,
        option(
            "Print a table with one line for each number: its index on every axis, and the "
            "tokens there in columns such as query_token.",
            name="--csv",
        ),
    ] = False,
    out: Annotated[Path, option("The file for --json or --csv.", "FILE")] = Path("-"),
    safetensors: Annotated[
        Path | None,
        option("Write a safetensors file; `headlight.read_trace(bytes)` reads it.", "FILE"),
    ] = None,
    html: Annotated[
        Path | None, option("Write a page that shows all heads and opens offline.", "FILE")
    ] = None,
    force: Annotated[bool, option("Replace existing files.", name="--force")] = False,
    server: Server = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Run a model on a text and show what it computed.

    Without an output option, a table shows the likely next tokens and the captured arrays. FILE
    may be - for standard output. One line break at the end of standard input is ignored.
    """
    options = locals()
    with reporting_errors():
        from headlight.commands.trace import run_trace

        run_trace(options)


@app.command(cls=Command)
def generate(
    text: Annotated[str, typer.Argument(help="The beginning of the text.", metavar="TEXT")],
    n_tokens: Annotated[int, option("The largest number of new tokens.", "N")] = 50,
    temperature: Annotated[
        float | None,
        option("Divides the logits; 0 always takes the likeliest token.", "T", "1"),
    ] = None,
    top_k: Annotated[
        int | None, option("Sample from the K likeliest tokens only.", "K", name="--top-k")
    ] = None,
    top_p: Annotated[
        float | None,
        option("Sample from the fewest tokens whose probabilities reach P.", "P", name="--top-p"),
    ] = None,
    repetition_penalty: Annotated[
        float | None,
        option("Above 1, the tokens of the text so far become less likely.", "X", "1"),
    ] = None,
    stop: Annotated[
        list[str] | None, option("End the text before this string; repeat it for more.", "TEXT")
    ] = None,
    beams: Annotated[
        int | None, option("Beam search of this width, in place of sampling.", "N", "1")
    ] = None,
    length_penalty: Annotated[
        float | None,
        option("Of beam search: divide log-probabilities by length^X.", "X", "1"),
    ] = None,
    best_of: Annotated[
        int | None,
        option("Sample N texts and print the one that --reward rates highest.", "N", "1"),
    ] = None,
    reward: Annotated[str | None, option("The reward model of --best-of.", "ID")] = None,
    seed: Annotated[int | None, option("The seed of the random numbers.", "N", "0")] = None,
    model: Annotated[str | None, option("A model's id, or its folder.", "ID", "stories")] = None,
    server: Server = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Continue a text and print it token by token."""
    options = locals()
    with reporting_errors():
        from headlight.commands.trace import run_generate

        run_generate(options)


@app.command(cls=Command)
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
        TrainingPrecision | None, option("auto measures which one is faster here.", None, "auto")
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
        str | None,
        option("Take the tokenizer of this model.", "MODEL", "trained on the corpus"),
    ] = None,
    resume: Annotated[bool, option("Continue the run where it stopped.", name="--resume")] = False,
) -> None:
    """Train a model on your own text; Ctrl-C saves, --resume continues.

    A corpus is text, a paragraph a line, unless the recipe says otherwise. The recipes:

    {recipes}

    torchrun trains one model in several processes, each on its share of every batch:
    torchrun --nproc-per-node 2 -m headlight.cli train …
    """
    options = locals() | {"device": device or settings_of().device}
    with reporting_errors():
        from headlight.lab.commands.training import train_model

        is_finished = train_model(**options)
    if not is_finished:
        raise typer.Exit(INTERRUPTED)


@app.command(cls=Command)
def runs(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Runs, folders of runs, or folders of TensorBoard's event files.", metavar="DIR..."
        ),
    ],
    out: Annotated[
        Path | None,
        option("Draw the curves of all runs on this page, which needs no network.", "FILE"),
    ] = None,
    force: Annotated[bool, option("Replace an existing file.", name="--force")] = False,
) -> None:
    """Compare training runs: their figures, the settings that differ, and their curves."""
    with reporting_errors():
        from headlight.lab.commands.runs import compare_runs

        compare_runs(folders, out, is_forced=force)


@app.command(cls=Command)
def comparisons(
    corpus: Annotated[
        list[Path], option("Text whose paragraphs begin the prompts; repeat it for more.", "FILE")
    ],
    out: Annotated[Path, option("The file to write.", "FILE")],
    model: Annotated[str, option("The decoder that answers.", "MODEL", "stories")] = "stories",
    count: Annotated[int, option("How many comparisons.", "N", min=1)] = 2000,
    seed: Annotated[int, option("The seed of prompts and samples.", "N", min=0)] = 0,
    force: Annotated[bool, option("Replace an existing file.", name="--force")] = False,
) -> None:
    """Write comparisons for `headlight train reward`: two samples of a model, and which is better.

    A rule decides, not a person: an answer holds speech in quotes that are closed, repeats no
    phrase of three words, and has at least twenty words. Three quarters of the comparisons are
    pairs of one answer, of which an edit broke one of these.
    """
    with reporting_errors():
        from headlight.lab.commands.training import sample_comparisons

        sample_comparisons(corpus, out, model=model, count=count, seed=seed, force=force)


@app.command(cls=Command)
def evaluate(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    text: Annotated[
        Files,
        option("Held-out text, or held-out pairs for a translator; repeat it for more.", "FILE"),
    ] = None,
    other: Annotated[
        Files,
        option(
            "Held-out text of another kind, such as other authors'; repeat it for more.", "FILE"
        ),
    ] = None,
    pairs: Annotated[
        Path | None, option("Minimal pairs: JSON lines of paradigm, good and bad.", "FILE")
    ] = None,
    corpus: Annotated[
        Files,
        option(
            "The training corpus, to count the tokens of each expert or to train the IBM "
            "models; repeat it for more.",
            "FILE",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        option("A second word alignment to compare a translator's attention with.", "FILE"),
    ] = None,
    heads: Annotated[
        bool, option("Measure every head on held-out sentences instead.", name="--heads")
    ] = False,
    sentences: Annotated[
        int, option("The number of sentences for --heads.", "N", "1000", min=1)
    ] = 1000,
    bits: Annotated[
        list[int] | None,
        option(
            "Measure the model with this many bits for each weight instead, and the model as it "
            "is for comparison; repeat it for more.",
            "N",
            min=2,
            max=8,
        ),
    ] = None,
    calibration: Annotated[
        Files,
        option(
            "With --bits: also round the linear layers by GPTQ on the first rows of this text; "
            "repeat it for more.",
            "FILE",
        ),
    ] = None,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Measure a model on unseen text and write the figures to its card.

    Without files, the model is measured on the texts that ship with the project. With --heads,
    every head is measured, and its profile is written to heads.json next to the model.
    """
    settings = settings_with_models(models_dir=models_dir)
    with reporting_errors():
        from headlight.lab.commands.evaluate import evaluate_model, profile_model

        device = device or settings.device
        if heads:
            if other or pairs or corpus or gold or bits or calibration:
                raise UsageError("--heads takes only --text; leave the other options out")
            profile_model(model, text or [], sentences, device, settings.own_models_dir)
            return
        from headlight.lab.figures import Evidence

        evidence = Evidence(
            text=tuple(text or ()),
            other=tuple(other or ()),
            corpus=tuple(corpus or ()),
            minimal_pairs=pairs,
            gold=gold,
        )
        if calibration and not bits:
            raise UsageError("--calibration is for fewer bits; name them with --bits")
        evaluate_model(
            model, evidence, device, settings.own_models_dir, bits or (), calibration or ()
        )


@app.command(cls=Command)
def quantize(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    out: Annotated[Path, option("The folder to write; it must not exist.", "DIR")],
    bits: Annotated[int, option("Bits of each weight.", "N", min=2, max=8)] = 8,
    parts: Annotated[
        list[str] | None,
        option(
            "Only the matrices of this module, a name or a glob such as '*.feed_forward'; repeat "
            "it for more.",
            "GLOB",
            "every matrix",
            name="--part",
        ),
    ] = None,
    per: Annotated[
        Granularity,
        option("A scale and zero point for each row of a matrix, or for all of it."),
    ] = "channel",
    activations: Annotated[
        Activations,
        option(
            "dynamic: linear layers multiply whole numbers, and round their input by its extremes "
            "in each pass; needs 8 bits and a CPU."
        ),
    ] = "float",
    calibration: Annotated[
        Files,
        option(
            "Round the linear layers by GPTQ on the first rows of this text, so that their outputs "
            "change least; repeat it for more.",
            "FILE",
        ),
    ] = None,
    base: Annotated[
        str | None,
        option(
            "Store only the difference from this model, which the copy was fine-tuned from and "
            "is read together with.",
            "MODEL",
        ),
    ] = None,
    models_dir: ModelsDir = None,
) -> None:
    """Write a smaller copy of a model, with fewer bits for each weight.

    The copy loads like any model. `headlight evaluate MODEL --bits 4` measures what it costs.
    """
    settings = settings_with_models(models_dir=models_dir)
    with reporting_errors():
        from headlight.lab.commands.evaluate import quantize_model

        quantize_model(
            model,
            out,
            models_dir=settings.own_models_dir,
            bits=bits,
            parts=tuple(parts or ()),
            per=per,
            activations=activations,
            base=base,
            calibration=calibration or (),
        )


@app.command(cls=Command)
def site(
    out: Annotated[Path, typer.Argument(help="The folder to write.", metavar="OUT")],
    chapters: Annotated[
        list[Path] | None,
        option("A chapter's file, or a folder of them; repeat it for more.", "PATH"),
    ] = None,
    texts: Annotated[
        Path | None,
        option("More texts, one on each line: a model and a tab may come before it.", "FILE"),
    ] = None,
    server: Annotated[
        str, option("The address of a server that reads what the site does not hold.", "URL")
    ] = "",
    models_dir: ModelsDir = None,
) -> None:
    """Write the pages as files for any static host; they open from a disk, too.

    The site holds the examples of every model, the chapters, and the experiments with a few
    settings each. Their answers are computed now, which takes some minutes.
    """
    settings = settings_with_models(models_dir=models_dir)
    with reporting_errors():
        from headlight.commands.site import run_site

        run_site(out, chapters or [], texts, server, settings)


@app.command(cls=Command)
def experiment(
    name: Annotated[
        str | None,
        typer.Argument(help="The experiment; without it all are listed.", metavar="NAME"),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        option(
            "Change a parameter: length=80, positional=rotary; repeat it for more.",
            "NAME=VALUE",
            name="--set",
        ),
    ] = None,
    describe: Annotated[
        bool, option("Print its parameters, their limits, and what to see.", name="--describe")
    ] = False,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool, option("Print a table with one line for each number.", name="--csv")
    ] = False,
    out: Annotated[Path, option("The file for --json or --csv.", "FILE")] = Path("-"),
    force: Annotated[bool, option("Replace an existing file.", name="--force")] = False,
) -> None:
    """Run an experiment: a small computation that shows one mechanism."""
    with reporting_errors():
        from headlight.commands import experiment as command

        if name is None:
            command.list_experiments()
        elif describe:
            command.describe_experiment(name)
        else:
            command.run_experiment(
                name, assignments or [], as_json=as_json, as_csv=as_csv, out=out, force=force
            )


@app.command(cls=Command)
def circuit(
    model: Annotated[
        str | None, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")
    ] = None,
    task: Annotated[
        str | None,
        option(
            'A task that ships, or a file with a pair a line: {"clean": "The dogs with the '
            'girl", "corrupted": "The dog with the girl", "right": " were", '
            '"wrong": " was"}. Without MODEL the tasks are listed.',
            "TASK",
        ),
    ] = None,
    n_pairs: Annotated[
        int | None, option("The pairs of a task that ships.", "N", "32", name="--pairs", min=2)
    ] = None,
    n_edges: Annotated[
        int | None, option("The edges of the circuit.", "N", name="--edges", min=1)
    ] = None,
    faithfulness: Annotated[
        float | None,
        option("Without --edges, as few edges as reach this.", "SHARE", "0.9", min=0.0, max=1.0),
    ] = None,
    score: Annotated[
        str | None, option("eap, eap_ig, noising, denoising or exact.", "NAME", "eap_ig")
    ] = None,
    steps: Annotated[int | None, option("Of eap_ig.", "N", "5", min=1)] = None,
    rule: Annotated[
        str | None, option("How edges are chosen: top, greedy or pruned.", "NAME", "pruned")
    ] = None,
    baseline: Annotated[
        str | None,
        option("What cut edges carry: corrupted, zero or mean.", "NAME", "corrupted"),
    ] = None,
    by_position: Annotated[
        bool, option("Tell positions apart: an edge is named 3.3→logits@5.", name="--by-position")
    ] = False,
    by_expert: Annotated[
        bool, option("Tell the experts of a layer apart, as 2.e5.", name="--by-expert")
    ] = False,
    form: Annotated[
        str | None, option("Write json, csv, graphml or dot.", "NAME", name="--format")
    ] = None,
    out: Annotated[Path, option("The file for --format.", "FILE")] = Path("-"),
    save_pairs: Annotated[Path | None, option("Write the pairs of the task.", "FILE")] = None,
    force: Annotated[bool, option("Replace existing files.", name="--force")] = False,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Find the few edges of a model that do a task, and measure their own run.

    Edges lead from what a part writes to what a part reads. They are scored on one half of the
    pairs, and the run of the circuit is measured on the other half.
    """
    if model is None:
        with reporting_errors():
            from headlight.commands.circuit import list_tasks

            list_tasks()
        return
    settings = settings_with_models(device=device, models_dir=models_dir, **chosen_models([model]))
    with reporting_errors():
        if task is None:
            raise UsageError("name a --task, or a file of pairs; without MODEL they are listed")
        from headlight.commands.circuit import find

        options = {
            "n_pairs": n_pairs,
            "n_edges": n_edges,
            "faithfulness": faithfulness,
            "score": score,
            "steps": steps,
            "rule": rule,
            "baseline": baseline,
            "by_position": by_position or None,
            "by_expert": by_expert or None,
        }
        given = {name: value for name, value in options.items() if value is not None}
        chosen = settings.default_model
        find(chosen, task, given, settings, form=form, out=out, force=force, pairs_out=save_pairs)


@app.command(cls=Command)
def study(
    file: Annotated[
        str | None,
        typer.Argument(help="A study that ships, or a TOML file.", metavar="FILE"),
    ] = None,
    out: Annotated[
        Path, option("The folder for the tables, the page and what is kept.", "FOLDER")
    ] = Path("study"),
    workers: Annotated[
        int,
        option("Processes of Ray that share the parts; 0: this one computes them.", "N", min=0),
    ] = 0,
    device: Device = None,
    models_dir: ModelsDir = None,
) -> None:
    """Run a study of circuits, and write Parquet tables and one page that opens offline.

    Without FILE the studies that ship are listed. A study that was interrupted goes on where it
    stopped; one that is done is only written again.
    """
    settings = settings_with_models(device=device, models_dir=models_dir)
    with reporting_errors():
        from headlight.commands.study import list_studies, run

        if file is None:
            list_studies()
        else:
            run(file, out, settings, workers)


@app.command(cls=Command)
def add(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder, or a repository of huggingface.co as org/name or org/name@revision.",
            metavar="SOURCE",
        ),
    ],
    name: Annotated[str | None, option("The model's id.", "ID", "the name of the source")] = None,
    models_dir: Annotated[
        Path | None,
        option("The directory to add it to.", "DIR", "headlight/models in the user's data"),
    ] = None,
) -> None:
    """Add a Hugging Face checkpoint, or a model of your own, to those that are served.

    Only safetensors, JSON and tokenizer files are fetched or copied, and no code is run. A
    self-check compares the model with Hugging Face's own attention and writes its card. An
    interrupted download continues when the command is run again.
    """
    settings = settings_of(models_dir=models_dir)
    with reporting_errors():
        from headlight.commands.add import add_model

        add_model(source, settings, name=name)


@app.command(cls=Command)
def remove(
    model: Annotated[str, typer.Argument(help="The model's id.", metavar="ID")],
    models_dir: ModelsDir = None,
) -> None:
    """Remove a model that `headlight add` added, with its files."""
    settings = settings_with_models(models_dir=models_dir)
    with reporting_errors():
        from headlight.commands.add import remove_model

        remove_model(model, settings)


@app.command(cls=Command)
def models(models_dir: ModelsDir = None) -> None:
    """List the available models."""
    settings = settings_with_models(models_dir=models_dir)
    with reporting_errors():
        from headlight.commands.listings import write_models

        write_models(settings)


@app.command(cls=Command)
def limits(models_dir: ModelsDir = None, as_json: AsJson = False) -> None:
    """List the limits of a server started here, with the reason and the variable of each."""
    settings = settings_with_models(models_dir=models_dir)
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
