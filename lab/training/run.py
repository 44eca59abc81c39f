"""A training run from start to finish: corpus, tokenizer, batches, loop, model folder.

    headlight train stories --corpus train.txt --out runs/stories

A run's folder holds ``run.json`` (the run's settings), ``metrics.jsonl`` and
``training.safetensors`` (see `loop`), and at the end the four files of a model
(`headlight.model.checkpoint.loading`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headlight.lab.training.batches import Material
from headlight.lab.training.config import (
    MAX_INTEGER,
    PARTS,
    LoopConfig,
    Recipe,
    Settings,
    change,
    check,
)
from headlight.lab.training.kept_steps import keep_step, kept_steps
from headlight.lab.training.loop import METRICS, STATE, Loop
from headlight.lab.training.recipe_registry import RECIPES
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.files import RUN, TOKENIZER, CheckpointError
from headlight.model.checkpoint.loading import (
    describe,
    find_model,
    load_checkpoint,
    save,
    tokenizer_file,
    write_atomically,
)
from headlight.model.checkpoint.run_curves import write_curves
from headlight.model.config import TransformerConfig
from headlight.model.corpus import CorpusError
from headlight.model.device import choose_device, choose_precision
from headlight.model.tokenizer import Tokenizer, read_tokenizer, train_tokenizer, typography
from headlight.model.transformer import Transformer

MAX_VOCAB_SIZE = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that decides a run, apart from the device and the number of threads.

    `start` replaces the paths of ``corpus`` by absolute ones, with the SHA-256 of each in
    ``digests``. It replaces a ``precision`` of auto by the one it chose, so that a resumed run
    continues with the same. ``commands`` are the command lines of the run so far.
    ``begun_from`` is the model folder whose weights and tokenizer the run begins with, empty
    for random weights. ``teacher`` is the folder of the model whose next-token distributions
    and tokenizer the run learns from, empty for none. ``tokenizer`` is the folder of the model
    whose tokenizer the run takes, empty for one that is trained on the corpus.
    """

    recipe: str
    corpus: tuple[str, ...]
    digests: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    model: TransformerConfig
    rows: Any
    loop: LoopConfig
    precision: str = "auto"
    begun_from: str = ""
    teacher: str = ""
    tokenizer: str = ""


def make_run(
    recipe: str,
    corpus: Sequence[Path],
    *,
    settings: Mapping[str, Any] | None = None,
    precision: str = "auto",
    command: str = "",
    begun_from: Path | str | None = None,
    teacher: Path | str | None = None,
    tokenizer: Path | str | None = None,
) -> Run:
    """Describe a run of a recipe on some files.

    Args:
        recipe: a name of `RECIPES`.
        corpus: the files to train on.
        settings: changes to the recipe: ``{"loop.steps": 100, "model": {"d_model": 64}}``.
        precision: float32, bfloat16, or auto for the faster one.
        command: the command line, for the card.
        begun_from: a shipped model's name, or a model folder, whose weights and tokenizer the run
            begins with.
        teacher: a shipped model's name, or a model folder, whose next-token distributions the run
            learns from; it gives the tokenizer.
        tokenizer: a shipped model's name, or a model folder, whose tokenizer the run takes; None:
            one is trained on the corpus.

    Raises:
        CheckpointError: there is no model to begin from, or no such teacher.
        ValueError: a setting is unknown, has another type, a value that is not allowed, or no
            effect; or the recipe needs a teacher, or takes none.
    """
    if teacher is None and RECIPES[recipe].needs_teacher:
        raise ValueError(
            f"the recipe {recipe!r} needs a model to learn from; name it with --teacher"
        )
    known = RECIPES[recipe]
    if teacher is not None and (known.is_sampled or known.model.has_reward):
        raise ValueError(f"the recipe {recipe!r} uses no teacher; leave out --teacher")
    begun_from = begun_from or known.begins_from or None
    if known.begins_from:  # its architecture is that of the model it begins with
        trunk = describe(find_model(begun_from)).config if begun_from else known.model
        assert isinstance(trunk, TransformerConfig)
        known = replace(known, model=replace(trunk, has_reward=known.model.has_reward))
    if tokenizer is not None and (begun_from or teacher):
        raise ValueError(
            "a run takes the tokenizer of the model that it begins from or learns from; leave out "
            "--tokenizer"
        )
    asked = change(known, settings or {})
    if begun_from and getattr(asked.rows, "reference", None) == "":
        asked = replace(asked, rows=replace(asked.rows, reference=_folder_of(begun_from)))
    _require_effect(asked, known, has_teacher=teacher is not None)
    return Run(
        recipe=recipe,
        corpus=tuple(map(str, corpus)),
        commands=(command,),
        precision=precision,
        begun_from=_folder_of(begun_from),
        teacher=_folder_of(teacher),
        tokenizer=_folder_of(tokenizer),
        **vars(asked),
    )


def _folder_of(model: Path | str | None) -> str:
    return str(find_model(model).resolve()) if model else ""


def start(run: Run, out: Path, *, device: str = "auto") -> Loop:
    """Prepare a new run: train the tokenizer, cut the rows, initialise the model.

    Raises:
        CorpusError: the corpus cannot be read or is too short.
        CheckpointError: the folder already holds a run, or the model to begin from is unreadable.
        ValueError: the model to begin from has another architecture, the device or the precision
            is not available, or no step would read a line of the corpus.
    """
    if (out / STATE).exists():
        raise CheckpointError(f"{out} already holds a run; continue it with --resume")
    recipe = RECIPES[run.recipe]
    _require_text(run)
    precision = _choose(run.recipe, run.precision, device)
    corpus = recipe.read([Path(path) for path in run.corpus])
    if run.begun_from:
        tokenizer = _known_tokenizer(run)
    elif run.teacher:
        tokenizer = read_tokenizer(tokenizer_file(Path(run.teacher)))
    elif run.tokenizer:
        tokenizer = read_tokenizer(tokenizer_file(Path(run.tokenizer)))
        if recipe.has_mask and tokenizer.mask_id is None:
            raise ValueError(
                f"the tokenizer of {run.tokenizer} has no mask token, which the recipe "
                f"{run.recipe!r} needs"
            )
    else:
        tokenizer = _train_tokenizer(recipe, corpus, run.model.vocab_size)
    run = replace(
        run,
        corpus=tuple(str(Path(path).resolve()) for path in run.corpus),
        digests=tuple(map(_digest, run.corpus)),
        model=replace(run.model, vocab_size=tokenizer.vocab_size),
        precision=precision,
    )
    loop = _make_loop(run, out, corpus, tokenizer, device)
    _write_start(run, out, tokenizer)
    if run.loop.keep_steps:
        keep_step(loop, tokenizer=tokenizer, kept=(0,))
    return loop


def resume(
    out: Path,
    *,
    steps: int | None = None,
    precision: str | None = None,
    command: str = "",
    device: str = "auto",
) -> Loop:
    """Prepare to continue the run in a folder, as it was begun or with other steps or precision.

    A run that was killed before it saved a state begins again. A run with more steps than before
    continues before its learning rate fell (`Loop.rewind`).

    Raises:
        CheckpointError: the folder holds no run, or a damaged one.
        CorpusError: the corpus was moved, or has changed.
        ValueError: the run has already made more steps, or no step would read a line of the corpus.
    """
    run = read_run(out)
    begun_with = run.loop.steps
    tokenizer = read_tokenizer(out / TOKENIZER)
    changed = replace(
        run,
        loop=replace(run.loop, steps=run.loop.steps if steps is None else steps),
        precision=run.precision if precision is None else _choose(run.recipe, precision, device),
    )
    if changed != run:
        run = replace(changed, commands=(*run.commands, command))
    _require_text(run)
    corpus = RECIPES[run.recipe].read([Path(path) for path in run.corpus])
    digests = [_digest(path) for path in run.corpus]
    _require_same_corpus(run, digests)
    loop = _make_loop(run, out, corpus, tokenizer, device)
    if run.loop.steps > begun_with:
        loop.rewind()
    loop.resume()
    if steps is not None and steps < loop.step:
        raise ValueError(f"the run is already at step {loop.step}; steps ({steps}) must be more")
    write_atomically(out / RUN, lambda path: path.write_text(_to_json(run), "utf-8"))
    return loop


def read_run(out: Path) -> Run:
    """Read the description of the run in a folder.

    Raises:
        CheckpointError: the folder holds no run, or a damaged one.
    """
    try:
        return _from_json((out / RUN).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointError(f"{out} holds no run of `headlight train`") from error
    except OSError as error:
        raise CheckpointError(f"{out} holds no run: {RUN}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{out} holds no run: {error}") from error


def finish(loop: Loop, card: ModelCard) -> None:
    """Write the trained model in half precision, its card and its curves into the run's folder.

    Its weights are those that `Loop.choose_weights` chooses.
    """
    loop.choose_weights()
    save(loop.out, loop.model, read_tokenizer(loop.out / TOKENIZER), card)
    if (loop.out / METRICS).exists():
        loss_of = (
            "a pair" if RECIPES[read_run(loop.out).recipe].reads == "comparisons" else "a token"
        )
        write_curves(loop.out, loop.out / METRICS, loss_of=loss_of)


def steps_without_text(run: Run) -> list[range]:
    """Return the steps of a run, counted from 1, that read no line of its corpus."""
    return RECIPES[run.recipe].steps_without_text(run.rows, run.loop.steps)


def other_models(run: Run) -> dict[str, str]:
    """Return the folders of the models that a run learns from, by their role on the card."""
    models = {
        "began_from": run.begun_from,
        "teacher": run.teacher,
        "reference": getattr(run.rows, "reference", ""),
        "reward_model": getattr(run.rows, "reward", ""),
    }
    return {role: folder for role, folder in models.items() if folder}


def _require_effect(asked: Settings, recipe: Recipe, *, has_teacher: bool) -> None:
    """Reject a setting of the loop that was changed and that the run does not read."""
    unread = dict.fromkeys(recipe.unread(asked.rows), "in a loop that samples its own batches")
    if asked.model.moe is None:
        unread["balance_weight"] = "in a model without experts"
    if not has_teacher:
        unread |= dict.fromkeys(("teacher_weight", "temperature"), "without a teacher")
    for name, circumstance in unread.items():
        value = getattr(asked.loop, name)
        if value != getattr(recipe.loop, name):
            raise ValueError(f"loop.{name} ({value}) has no effect {circumstance}; leave it out")


def _require_text(run: Run) -> None:
    """Reject a run that would end without having read a line of its corpus."""
    steps = run.loop.steps
    if sum(map(len, steps_without_text(run))) < steps:
        return
    later = RECIPES[run.recipe].steps_without_text(run.rows, MAX_INTEGER)
    if later and len(later[0]) < MAX_INTEGER:
        _, *rows = next(stage for stage in run.rows.stages if stage.text)
        stages = f"[[{','.join(map(str, (steps, *rows)))}]]"
        raise ValueError(
            f"none of the {steps} steps would read a line of the corpus: the stages of the first "
            f"{len(later[0])} steps read only repeated segments; give --steps "
            f"{len(later[0]) + 1} or more, or --set 'rows.stages={stages}', one stage of steps, "
            "tokens in a row, and rows of text and of the two kinds of repeated segments"
        )
    raise ValueError(
        "no stage of rows.stages has rows of text, so no step would read a line of the corpus; "
        "give one of them text=1 or more"
    )


def _choose(recipe: str, precision: str, device: str) -> str:
    """Return the precision's name.

    Policy gradients divide the probabilities of two passes, for which bfloat16 has too few digits.
    """
    if RECIPES[recipe].is_sampled:
        if precision == "bfloat16":
            raise ValueError(f"the recipe {recipe!r} computes in float32; leave out --precision")
        precision = "float32" if precision == "auto" else precision
    return str(choose_precision(precision, choose_device(device))).removeprefix("torch.")


def _train_tokenizer(recipe: Recipe, corpus: Any, vocab_size: int) -> Tokenizer:
    if vocab_size > MAX_VOCAB_SIZE:
        raise ValueError(f"vocab_size ({vocab_size}) must be at most {MAX_VOCAB_SIZE}")
    return train_tokenizer(
        recipe.texts(corpus),
        vocab_size,
        has_mask=recipe.has_mask,
        normalization=typography(recipe.texts(corpus)),
    )


def _known_tokenizer(run: Run) -> Tokenizer:
    """Read the tokenizer of the model that the run begins from, if its architecture is the run's.

    Dropout is not part of the architecture, and the vocabulary is the tokenizer's.
    """
    known = load_checkpoint(Path(run.begun_from))
    vocab_size = known.config.vocab_size
    asked = replace(run.model, vocab_size=vocab_size, dropout=0.0, has_reward=False)
    if asked != replace(known.config, dropout=0.0, has_reward=False):
        raise ValueError(
            f"{run.begun_from} has another architecture than the run; leave out the settings "
            "model.*, or begin with random weights"
        )
    return known.tokenizer


def _require_same_corpus(run: Run, digests: Sequence[str]) -> None:
    for path, digest, expected in zip(run.corpus, digests, run.digests, strict=True):
        if digest != expected:
            raise CorpusError(f"{path} has changed since the run began; restore it to continue")


def _write_start(run: Run, out: Path, tokenizer: Tokenizer) -> None:
    """Write the files that a resume needs; `RUN` comes last, so that its folder has them all."""
    out.mkdir(parents=True, exist_ok=True)  # only now, after every check
    for name in (RUN, METRICS):  # of a run that ended before it saved
        (out / name).unlink(missing_ok=True)
    write_atomically(out / TOKENIZER, lambda path: path.write_text(tokenizer.to_json(), "utf-8"))
    write_atomically(out / RUN, lambda path: path.write_text(_to_json(run), "utf-8"))


def _make_loop(run: Run, out: Path, corpus: Any, tokenizer: Tokenizer, device: str) -> Loop:
    place = choose_device(device)
    material = Material(corpus, tokenizer, run.model.max_tokens, run.rows, run.loop.seed)
    batches = RECIPES[run.recipe].batches(material)
    torch.manual_seed(run.loop.seed)
    try:
        model = Transformer(run.model)
        if run.begun_from and not (out / STATE).exists():
            begun = load_checkpoint(Path(run.begun_from)).model.weights()
            # A reward model that begins from a language model has a new head.
            model.load_weights({**model.weights(), **begun})
        model = model.to(place)
    except (RuntimeError, MemoryError) as error:  # PyTorch raises either if memory runs out
        reason = str(error).partition("\n")[0]
        raise ValueError(f"there is no memory for a model of this size: {reason}") from error
    precision = choose_precision(run.precision, place)
    arguments = (model, batches, run.loop, out, precision)
    make_loop = RECIPES[run.recipe].make_loop or Loop
    others = [_teacher(run, tokenizer).to(place)] if run.teacher else []
    loop: Loop = make_loop(*arguments, *others)
    if run.loop.keep_steps:
        kept = kept_steps(run.loop.keep_steps, run.loop.steps)
        loop.observe(1, partial(keep_step, tokenizer=tokenizer, kept=kept))
    return loop


def _teacher(run: Run, tokenizer: Tokenizer) -> Transformer:
    """Load the teacher, if it predicts the same tokens at the same positions as the student."""
    teacher = load_checkpoint(Path(run.teacher))
    if teacher.config.kind != run.model.kind:
        raise ValueError(
            f"the teacher is of kind {teacher.config.kind!r}, the student of kind "
            f"{run.model.kind!r}; choose a teacher of the same kind"
        )
    if teacher.tokenizer.to_json() != tokenizer.to_json():
        raise ValueError("the teacher has another tokenizer than the student; choose another")
    if teacher.config.max_tokens < run.model.max_tokens:
        raise ValueError(
            f"the teacher reads {teacher.config.max_tokens} tokens, fewer than the student "
            f"({run.model.max_tokens}); lower model.max_tokens"
        )
    return teacher.model


def _digest(path: str) -> str:
    """Compute the SHA-256 of a file, or of all files below a folder."""
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
        raise ValueError("it is not a JSON object")
    recipe = data.get("recipe", "stories")  # the only one when runs did not name theirs
    parts = {part: data[part] for part in PARTS}
    return Run(
        recipe=recipe,
        corpus=tuple(data["corpus"]),
        digests=tuple(data["digests"]),
        commands=tuple(data["commands"]),
        precision=data["precision"],
        begun_from=data.get("begun_from", ""),
        teacher=data.get("teacher", ""),
        tokenizer=data.get("tokenizer", ""),
        **vars(check(parts, RECIPES[recipe])),
    )
