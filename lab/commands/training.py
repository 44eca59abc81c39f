"""The work of `headlight train` and `comparisons`: settings as typed, the run, its progress.

Their options are in `app/cli.py`.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import yaml
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from safetensors import SafetensorError

from headlight.commands.parsing import UsageError, usage_errors
from headlight.lab.training import run
from headlight.lab.training.config import merge
from headlight.lab.training.loop import Loop, StepReport
from headlight.lab.training.recipe_registry import RECIPES
from headlight.model.checkpoint.card import ModelCard, parse_yaml, read_card
from headlight.model.checkpoint.files import CARD, CheckpointError
from headlight.model.checkpoint.loading import ZOO, find_model
from headlight.model.device import choose_device, choose_threads, is_out_of_memory, machine_of

BUSY = "other processes keep this machine busy, so one thread is used; --threads N uses more"


def train_model(
    recipe: str,
    out: Path,
    *,
    corpus: Sequence[Path] | None,
    comparisons: Sequence[Path] | None,
    config: Path | None,
    assignments: Sequence[str] | None,
    steps: int | None,
    seed: int | None,
    device: str,
    precision: str | None,
    threads: int | None,
    begun_from: str | None,
    reward: str | None,
    teacher: str | None,
    tokenizer: str | None,
    keep_steps: int | None,
    resume: bool,
) -> bool:
    """Train a model, or resume its training; the arguments are the options of `headlight train`.

    Returns:
        False if a signal stopped the run before its last step; its state is saved.

    Raises:
        UsageError: an option or a setting is not allowed.
        ValueError: a file is unusable, memory ran out, or the loss is not finite.
    """
    with usage_errors():
        n_threads = choose_threads(threads)
        choose_device(device)
    is_held_back = threads is None and n_threads < torch.get_num_threads()
    torch.set_num_threads(n_threads)
    with usage_errors():
        if resume:
            models = begun_from or teacher or reward or tokenizer
            is_other = _is_other_corpus(out, [*(corpus or ()), *(comparisons or ())])
            if is_other or config or assignments or models or (seed, keep_steps) != (None, None):
                raise UsageError(
                    "a resumed run keeps its corpus, its seed, its settings, the model it "
                    "began from and its other models; leave them out"
                )
            loop = run.resume(
                out, steps=steps, precision=precision, command=_command(), device=device
            )
        else:
            settings = _settings(config, assignments, steps=steps, seed=seed, keep_steps=keep_steps)
            if RECIPES[recipe].takes_reward:
                begun_from = begun_from or RECIPES[recipe].begins_from
                merge(settings, _raters(recipe, reward, begun_from))
            elif reward is not None:
                raise UsageError(f"the recipe {recipe!r} uses no reward model; leave out --reward")
            asked = run.make_run(
                recipe,
                _files(recipe, corpus, comparisons),
                settings=settings,
                precision=precision or "auto",
                command=_command(),
                begun_from=begun_from,
                teacher=teacher,
                tokenizer=tokenizer,
            )
            loop = run.start(asked, out, device=device)
    return _run_loop(loop, loop.out.resolve().name, BUSY if is_held_back else "")


def _files(
    recipe: str, corpus: Sequence[Path] | None, comparisons: Sequence[Path] | None
) -> Sequence[Path]:
    """Return the files that a recipe reads: its comparisons or its corpus."""
    wanted = RECIPES[recipe].reads or "corpus"
    unused = "corpus" if wanted == "comparisons" else "comparisons"
    files = {"corpus": corpus, "comparisons": comparisons}
    if files[unused]:
        raise UsageError(f"the recipe {recipe!r} reads no {unused}; leave out --{unused}")
    if paths := files[wanted]:
        return paths
    if not RECIPES[recipe].reads:
        return ()
    article = "no corpus was" if wanted == "corpus" else "no comparisons were"
    raise UsageError(f"{article} given; name a file with --{wanted}")


def _is_other_corpus(out: Path, files: Sequence[Path]) -> bool:
    """Return True if the named files differ from those of the run in a folder."""
    try:
        return (
            bool(files) and tuple(str(path.resolve()) for path in files) != run.read_run(out).corpus
        )
    except CheckpointError:
        return True


def _raters(recipe: str, reward: str | None, reference: str) -> dict[str, Any]:
    """Return the settings that name the reward model and the frozen reference."""
    if reward is None:
        raise UsageError(f"the recipe {recipe!r} needs a reward model; name it with --reward")
    models = {"rows.reward": reward, "rows.reference": reference}
    return {name: str(find_model(model).resolve()) for name, model in models.items()}


def _command() -> str:
    """Return the command line, quoted so that it can be typed again."""
    return shlex.join(["headlight", *sys.argv[1:]])


# --- settings -------------------------------------------------------------------------------------


def _settings(
    config: Path | None, assignments: Sequence[str] | None, **options: int | None
) -> dict[str, Any]:
    """Merge a file, assignments and options, each overriding the one before."""
    changes = read_settings_file(config) if config else {}
    merge(changes, read_settings(assignments or ()))
    given = {f"loop.{name}": value for name, value in options.items() if value is not None}
    merge(changes, given)
    return changes


def read_settings(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse ``["loop.steps=10"]`` as ``{"loop": {"steps": 10}}``; values are YAML.

    An empty value is empty text, not null: a shell removes the quotes of ``rows.separator=""``.

    Raises:
        ValueError: an assignment has no equals sign, or its value is not YAML.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, is_there, value = assignment.partition("=")
        if not is_there:
            raise ValueError(f"{assignment!r} has no '='; write NAME=VALUE")
        parsed = _parse(value, f"the value of {name.strip()}") if value.strip() else ""
        merge(settings, {name.strip(): parsed})
    return settings


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read a YAML file with some of the mappings ``model``, ``rows`` and ``loop``.

    Raises:
        ValueError: the file cannot be read, or does not hold a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8") from error
    settings = _parse(text, str(path))
    if not isinstance(settings, dict):
        raise ValueError(f"{path} holds no settings; write them as 'loop:', then '  steps: 100'")
    # A section without a line under it changes nothing.
    return {str(name): value for name, value in settings.items() if value is not None}


def _parse(text: str, where: str) -> Any:
    try:
        return parse_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}" if mark and "\n" in text.strip() else ""
        raise ValueError(f"{where}{place} is not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{where} is not YAML: {reason}") from error


# --- the run on the terminal ----------------------------------------------------------------------


def _run_loop(loop: Loop, title: str, note: str) -> bool:
    """Run the loop, show its progress after the note, and write the model with its card."""
    shown = Console(highlight=False)
    for line in _headlines(loop, title, note):
        shown.print(line, markup=False, soft_wrap=True)
    try:
        with progress_bar(shown) as progress:
            task = progress.add_task("", total=loop.config.steps, completed=loop.step, figures="")
            is_finished = loop.run(partial(_show, progress, task))
        run.finish(loop, _card(loop, title))
    except (OSError, SafetensorError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ValueError(
            f"{loop.out} cannot be written after step {loop.step}: {why.lower()}; what was saved "
            f"before is whole: make room, and continue with --out {loop.out} --resume"
        ) from error
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise ValueError(
            f"memory ran out in step {loop.step + 1}; {loop.less_memory()}, or make the model "
            "smaller"
        ) from error
    if is_finished:
        why = ""
        if loop.has_converged:
            why = f", as {loop.best.n_worse} validations brought no lower held-out loss"
        kept = ""
        if loop.config.best:
            kept = f" of step {loop.best.step}, with the lowest held-out loss,"
        shown.print(
            f"trained {loop.step} steps{why}; the model{kept} is in {loop.out}",
            markup=False,
            soft_wrap=True,
        )
    else:
        shown.print(
            f"stopped after step {loop.step} and saved; continue with --out {loop.out} --resume",
            markup=False,
        )
    return is_finished


def _headlines(loop: Loop, title: str, note: str) -> Iterator[str]:
    """Describe the model, the machine, and the steps that read no text."""
    config, device = loop.model.config, loop.model.vectors.device
    n_parameters = sum(parameter.numel() for parameter in loop.model.parameters())
    facts = [
        config.kind,
        f"{n_parameters:,} parameters",
        f"{config.vocab_size:,} tokens in the vocabulary",
        f"{_precision(loop)} on {machine_of(device)}",
    ]
    if device.type == "cpu":
        n_threads = torch.get_num_threads()
        facts.append("1 thread" if n_threads == 1 else f"{n_threads} threads")
    yield f"{title}: {', '.join(facts)}"
    if note:
        yield note
    for steps in run.steps_without_text(run.read_run(loop.out)):
        yield (
            f"steps {steps.start} to {steps.stop - 1} read no line of the corpus: they train on "
            "repeated segments of its tokens"
        )


def _precision(loop: Loop) -> str:
    return str(loop.precision).removeprefix("torch.")


def progress_bar(shown: Console, unit: str = "steps") -> Progress:
    """Return a bar of steps, or of other units, on a console."""
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit + " {task.fields[figures]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=shown,
    )


def _show(progress: Progress, task: TaskID, report: StepReport) -> None:
    """Show a step."""
    figures = f"loss {report.loss:.3f}  {report.tokens / report.seconds:,.0f} tokens/s"
    if "reward" in report.figures:
        figures = f"reward {report.figures['reward']:.3f}  {figures}"
    progress.update(task, completed=report.step, figures=figures)
    if report.valid_loss is not None:
        figures += f"  held-out loss {report.valid_loss:.3f}"
        if report.balance_loss:  # 0 for a dense model
            figures += f"  balance loss {report.balance_loss:.3f}"
        if "valid_right" in report.figures:
            figures += f"  {100 * report.figures['valid_right']:.1f} % right"
        progress.console.print(f"step {report.step:>6}  {figures}", soft_wrap=True)


def _card(loop: Loop, title: str) -> ModelCard:
    """Write the facts of the run on a card.

    A card that exists keeps its prose, and its figures if the weights have not changed.
    """
    path = loop.out / CARD
    prose = f"# {title}\n\nNot described yet."
    fresh = ModelCard(title=title, licence="not stated", prose=prose)
    known = read_card(path) if path.exists() else fresh
    asked = run.read_run(loop.out)
    training = {
        "recipe": asked.recipe,
        "command": " && ".join(asked.commands),
        "seed": loop.config.seed,
        "steps": loop.step,
        **({"kept_step": loop.best.step} if loop.config.best else {}),
        "tokens": loop.tokens,
        "hours": round(loop.seconds / 3600, 2),
        "machine": machine_of(loop.model.vectors.device),
        "precision": _precision(loop),
    }
    training |= {role: _named(path) for role, path in run.other_models(asked).items()}
    is_same = known.training.get("steps") == loop.step
    return replace(known, training=training, metrics=known.metrics if is_same else {})


def _named(folder: str) -> str:
    """Return the name of a shipped model, or the path of another."""
    path = Path(folder)
    return path.name if path.parent == ZOO else folder
