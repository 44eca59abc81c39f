"""A training run from start to finish: corpus, tokenizer, batches, loop, model folder.

The folder of a run holds the model (as `model.checkpoint` reads it) and, beside it, ``run.json``
(what was asked for), ``metrics.jsonl`` (a line a step) and the state that a resumed run needs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from model.card import ModelCard
from model.checkpoint import TOKENIZER, CheckpointError, save, write_whole
from model.config import TransformerConfig
from model.device import choose_device, choose_precision
from model.tokenizer import Tokenizer, read_tokenizer, train_tokenizer
from model.training import stories
from model.training.corpus import CorpusError, TokenStream, read_documents
from model.training.loop import METRICS, Loop, LoopConfig
from model.training.rows import TextRows
from model.training.state import STATE
from model.transformer import Transformer

RUN = "run.json"


@dataclass(frozen=True, kw_only=True)
class Run:
    """Everything that decides a run, apart from the device.

    ``corpus`` and ``precision`` are settled when a run starts, so that it goes on with the same:
    the files become absolute paths, with the SHA-256 of each in ``digests``. ``commands`` are what
    was typed to get here.
    """

    corpus: tuple[str, ...]
    digests: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    model: TransformerConfig = stories.CONFIG
    rows: stories.StoriesConfig = field(default_factory=stories.StoriesConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    precision: str = "auto"


def stories_run(
    corpus: Sequence[Path],
    *,
    steps: int | None = None,
    seed: int = 0,
    precision: str = "auto",
    command: str = "",
) -> Run:
    """The run of the recipe `stories` on some text files.

    Raises:
        ValueError: a number is out of its range.
    """
    loop = LoopConfig(seed=seed) if steps is None else LoopConfig(seed=seed, steps=steps)
    return Run(corpus=tuple(map(str, corpus)), commands=(command,), loop=loop, precision=precision)


def start(run: Run, out: Path, *, device: str = "auto") -> Loop:
    """Prepare a new run: learn the tokenizer, cut the rows, initialise the model.

    Raises:
        CorpusError: the corpus cannot be read or is too short.
        CheckpointError: the folder already holds a run.
        ValueError: the device or the precision cannot be had.
    """
    if (out / STATE).exists():
        raise CheckpointError(f"{out} already holds a run; continue it with --resume")
    precision = str(choose_precision(run.precision, choose_device(device))).removeprefix("torch.")
    documents = read_documents(map(Path, run.corpus))
    paragraphs = (line for document in documents for line in document.splitlines(keepends=True))
    tokenizer = train_tokenizer(paragraphs, run.model.vocab_size)
    model = replace(run.model, vocab_size=tokenizer.vocab_size)
    run = replace(
        run,
        corpus=tuple(str(Path(path).resolve()) for path in run.corpus),
        digests=tuple(map(_digest, run.corpus)),
        model=model,
        precision=precision,
    )
    loop = _loop(run, out, documents, tokenizer, device)
    out.mkdir(parents=True, exist_ok=True)  # now that nothing is left to refuse
    (out / METRICS).unlink(missing_ok=True)  # of a run that ended before it saved
    write_whole(out / TOKENIZER, lambda path: path.write_text(tokenizer.to_json(), "utf-8"))
    write_whole(out / RUN, lambda path: path.write_text(_to_json(run), "utf-8"))
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

    Raises:
        CheckpointError: the folder holds no run, or a damaged one.
        CorpusError: the corpus is no longer where it was, or no longer the same.
    """
    run = read_run(out)
    tokenizer = read_tokenizer(out / TOKENIZER)
    changed = replace(
        run,
        loop=replace(run.loop, steps=run.loop.steps if steps is None else steps),
        precision=run.precision if precision is None else precision,
    )
    if changed != run:
        run = replace(changed, commands=(*run.commands, command))
    documents = read_documents(map(Path, run.corpus))
    for path, digest in zip(run.corpus, run.digests, strict=True):
        if _digest(path) != digest:
            raise CorpusError(f"{path} has changed since the run began, so it cannot go on")
    loop = _loop(run, out, documents, tokenizer, device)
    loop.resume()
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


def _loop(run: Run, out: Path, documents: Sequence[str], tokenizer: Tokenizer, device: str) -> Loop:
    place = choose_device(device)
    text = TextRows.cut(
        TokenStream.encode(documents, tokenizer),
        length=run.model.max_tokens,
        start_id=tokenizer.start_id,
        seed=run.loop.seed,
    )
    batches = stories.StoriesBatches(text, run.rows, run.loop.seed)
    torch.manual_seed(run.loop.seed)
    model = Transformer(run.model).to(place)
    return Loop(model, batches, run.loop, out, choose_precision(run.precision, place))


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _to_json(run: Run) -> str:
    return json.dumps(asdict(run), indent=2) + "\n"


def _from_json(text: str) -> Run:
    data: dict[str, Any] = json.loads(text)
    return Run(
        corpus=tuple(data["corpus"]),
        digests=tuple(data["digests"]),
        commands=tuple(data["commands"]),
        model=TransformerConfig.from_dict(data["model"]),
        rows=stories.StoriesConfig(
            stages=tuple(stories.Stage(*stage) for stage in data["rows"]["stages"]),
            held_out=data["rows"]["held_out"],
        ),
        loop=LoopConfig(**data["loop"]),
        precision=data["precision"],
    )
