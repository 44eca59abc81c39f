"""A training run from start to finish: corpus, tokenizer, batches, loop, model folder.

The folder of a run holds the model (as `model.checkpoint` reads it) and, beside it, ``run.json``
(what was asked for), ``metrics.jsonl`` (a line a step) and the state that a resumed run needs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import tokenizers
import torch

from headlight.model.card import ModelCard
from headlight.model.checkpoint import TOKENIZER, CheckpointError, save, write_whole
from headlight.model.config import TransformerConfig
from headlight.model.device import choose_device, choose_precision
from headlight.model.tokenizer import Tokenizer, read_tokenizer, train_tokenizer
from headlight.model.training import fill, positions, stories, translate
from headlight.model.training.corpus import CorpusError
from headlight.model.training.distributed import ALONE, Processes
from headlight.model.training.loop import Loop
from headlight.model.training.loop_config import LoopConfig
from headlight.model.training.metrics import METRICS
from headlight.model.training.recipe import Recipe
from headlight.model.training.settings import PARTS, check, merge, settings_of
from headlight.model.training.state import STATE
from headlight.model.transformer import Transformer

RUN = "run.json"
MOST_TOKENS = 10_000_000
RECIPES: dict[str, Recipe] = {
    "stories": stories.RECIPE,
    "translate": translate.RECIPE,
    "fill": fill.RECIPE,
    "positions": positions.RECIPE,
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that decides a run, apart from the device.

    ``corpus`` and ``precision`` are settled when a run starts, so that it goes on with the same:
    the files become absolute paths, with the SHA-256 of each in ``digests``. ``commands`` are what
    was typed to get here.
    """

    recipe: str
    corpus: tuple[str, ...]
    digests: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    model: TransformerConfig
    rows: Any
    loop: LoopConfig
    precision: str = "auto"


def make_run(
    recipe: str,
    corpus: Sequence[Path],
    *,
    settings: Mapping[str, Any] | None = None,
    precision: str = "auto",
    command: str = "",
) -> Run:
    """The run of a recipe on some files.

    Args:
        recipe: a name of `RECIPES`.
        corpus: what to train on.
        settings: what to change of the recipe: ``{"loop.steps": 100, "model": {"d_model": 64}}``.
        precision: float32, bfloat16, or auto for the faster one.
        command: what was typed, for the card.

    Raises:
        ValueError: a setting is unknown, has another type, or a value that is not allowed.
    """
    changed = settings_of(RECIPES[recipe])
    merge(changed, settings or {})
    return Run(
        recipe=recipe,
        corpus=tuple(map(str, corpus)),
        commands=(command,),
        precision=precision,
        **vars(check(changed, RECIPES[recipe])),
    )


def start(run: Run, out: Path, *, device: str = "auto", processes: Processes = ALONE) -> Loop:
    """Prepare a new run: learn the tokenizer, cut the rows, initialise the model.

    Of several processes each reads the corpus; what could differ among them, the first decides.

    Raises:
        CorpusError: the corpus cannot be read or is too short.
        CheckpointError: the folder already holds a run.
        ValueError: the device or the precision cannot be had.
    """
    if (out / STATE).exists():
        raise CheckpointError(f"{out} already holds a run; continue it with --resume")
    precision = _settle(run.precision, device, processes)
    recipe = RECIPES[run.recipe]
    corpus = recipe.read([Path(path) for path in run.corpus])
    tokenizer = _learn_tokenizer(recipe, corpus, run.model.vocab_size, processes)
    run = replace(
        run,
        corpus=tuple(str(Path(path).resolve()) for path in run.corpus),
        digests=tuple(map(_digest, run.corpus)),
        model=replace(run.model, vocab_size=tokenizer.vocab_size),
        precision=precision,
    )
    loop = _loop(run, out, corpus, tokenizer, device, processes)
    digests = json.loads(processes.first(json.dumps(run.digests)))
    _require_same_corpus(run, digests, "is not the same file for every process")
    if processes.is_first:
        _write_start(run, out, tokenizer)
    return loop


def resume(
    out: Path,
    *,
    steps: int | None = None,
    precision: str | None = None,
    command: str = "",
    device: str = "auto",
    processes: Processes = ALONE,
) -> Loop:
    """Prepare to continue the run in a folder, as it was begun or with other steps or precision.

    A run that was killed before it saved anything begins again.

    Raises:
        CheckpointError: the folder holds no run, or a damaged one.
        CorpusError: the corpus is no longer where it was, or no longer the same.
        ValueError: the run has made more steps than are asked for.
    """
    run = read_run(out)
    tokenizer = read_tokenizer(out / TOKENIZER)
    changed = replace(
        run,
        loop=replace(run.loop, steps=run.loop.steps if steps is None else steps),
        precision=run.precision if precision is None else _settle(precision, device, processes),
    )
    if changed != run:
        run = replace(changed, commands=(*run.commands, command))
    corpus = RECIPES[run.recipe].read([Path(path) for path in run.corpus])
    digests = [_digest(path) for path in run.corpus]
    _require_same_corpus(run, digests, "has changed since the run began, so it cannot go on")
    loop = _loop(run, out, corpus, tokenizer, device, processes)
    loop.resume()
    if steps is not None and steps < loop.step:
        raise ValueError(f"the run is at step {loop.step} already; steps ({steps}) must be more")
    if processes.is_first:
        write_whole(out / RUN, lambda path: path.write_text(_to_json(run), "utf-8"))
    return loop


def read_run(out: Path) -> Run:
    """What the run in a folder was asked for.

    Raises:
        CheckpointError: the folder holds no run, or a damaged one.
    """
    try:
        return _from_json((out / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{out} holds no run to resume: {error}") from error


def finish(loop: Loop, card: ModelCard) -> None:
    """Write the trained model in half precision, with its card, into the run's folder."""
    save(loop.out, loop.model, read_tokenizer(loop.out / TOKENIZER), card)


def _settle(precision: str, device: str, processes: Processes) -> str:
    """The name of the precision; ``auto`` is measured, so that the first process decides."""
    chosen = choose_precision(precision, choose_device(device))
    return processes.first(str(chosen).removeprefix("torch."))


def _learn_tokenizer(
    recipe: Recipe, corpus: Any, vocab_size: int, processes: Processes
) -> Tokenizer:
    if vocab_size > MOST_TOKENS:
        raise ValueError(f"vocab_size ({vocab_size}) must be at most {MOST_TOKENS}")
    learned = ""
    if processes.is_first:
        texts = recipe.texts(corpus)
        learned = train_tokenizer(texts, vocab_size, has_mask=recipe.has_mask).to_json()
    return Tokenizer(tokenizers.Tokenizer.from_str(processes.first(learned)))


def _require_same_corpus(run: Run, digests: Sequence[str], otherwise: str) -> None:
    for path, digest, expected in zip(run.corpus, digests, run.digests, strict=True):
        if digest != expected:
            raise CorpusError(f"{path} {otherwise}")


def _write_start(run: Run, out: Path, tokenizer: Tokenizer) -> None:
    """Write what a resume needs; a folder with `RUN` holds all of it."""
    out.mkdir(parents=True, exist_ok=True)  # now that nothing is left to refuse
    for name in (RUN, METRICS):  # of a run that ended before it saved
        (out / name).unlink(missing_ok=True)
    write_whole(out / TOKENIZER, lambda path: path.write_text(tokenizer.to_json(), "utf-8"))
    write_whole(out / RUN, lambda path: path.write_text(_to_json(run), "utf-8"))


def _loop(
    run: Run, out: Path, corpus: Any, tokenizer: Tokenizer, device: str, processes: Processes
) -> Loop:
    place = choose_device(device)
    batches = RECIPES[run.recipe].batches(corpus, tokenizer, run.model, run.rows, run.loop.seed)
    torch.manual_seed(run.loop.seed)
    try:
        model = Transformer(run.model).to(place)
    except (RuntimeError, MemoryError) as error:  # what PyTorch raises where memory ends
        reason = str(error).partition("\n")[0]
        raise ValueError(f"a model of this size cannot be made here: {reason}") from error
    precision = choose_precision(run.precision, place)
    return Loop(model, batches, run.loop, out, precision, processes)


def _digest(path: str) -> str:
    """The SHA-256 of a file, or of all files below a folder."""
    files = sorted(Path(path).rglob("*")) if Path(path).is_dir() else [Path(path)]
    digest = hashlib.sha256()
    for file in files:
        if file.is_file():
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _to_json(run: Run) -> str:
    return json.dumps(asdict(run), indent=2) + "\n"


def _from_json(text: str) -> Run:
    data: Any = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("a run is a JSON object")
    recipe = data.get("recipe", "stories")  # there was no other when runs did not name theirs
    return Run(
        recipe=recipe,
        corpus=tuple(data["corpus"]),
        digests=tuple(data["digests"]),
        commands=tuple(data["commands"]),
        precision=data["precision"],
        **vars(check({part: data[part] for part in PARTS}, RECIPES[recipe])),
    )
