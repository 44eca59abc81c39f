"""`headlight data synthesize`: answers of a teacher, filtered, as JSON lines to learn from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headlight.commands.output import notes, say, writing
from headlight.commands.parsing import Commands, UsageError, option

if TYPE_CHECKING:
    from torch import Tensor

    from headlight.lab.training.synthesis import Score
    from headlight.model.checkpoint.checkpoint import Checkpoint

app = Commands()

LEAST_RULE = 3.0


@app.command()
def synthesize(
    prompts: Annotated[
        list[Path],
        typer.Argument(
            help="JSON lines with a prompt each, or text whose paragraphs begin the prompts.",
            metavar="PROMPTS...",
        ),
    ],
    out: Annotated[
        Path, option("The file to write: JSON lines of prompt, answer and score.", "FILE")
    ],
    model: Annotated[str, option("The decoder that answers.", "MODEL")] = "stories",
    count: Annotated[int, option("The largest number of prompts.", "N", min=1)] = 1000,
    samples: Annotated[int, option("Answers to each prompt.", "N", min=1, max=256)] = 8,
    rule: Annotated[
        bool,
        option(
            "Keep an answer only if it keeps the rule of `headlight comparisons` whole.",
            name="--rule",
        ),
    ] = False,
    reward: Annotated[
        str | None, option("Keep the answer that this reward model rates highest.", "MODEL")
    ] = None,
    least: Annotated[
        float | None,
        option("With --reward: keep it only from this reward on.", "R"),
    ] = None,
    temperature: Annotated[float, option("Of the answers.", "T", min=0)] = 1.0,
    n_tokens: Annotated[int, option("The most tokens of an answer.", "N", min=1)] = 40,
    seed: Annotated[int, option("The seed of the samples.", "N", min=0)] = 0,
    force: Annotated[bool, option("Replace an existing file.", name="--force")] = False,
) -> None:
    """Write answers of a model for `headlight train instruct`, the best of several to each prompt.

    Without --rule and --reward the first answer is kept, for comparison. Answers to paragraphs go
    on in the middle of a line: train on them with --set rows.separator=
    """
    from headlight.commands.parsing import usage_errors
    from headlight.lab.training import synthesis
    from headlight.model.checkpoint.loading import find_model, load_checkpoint

    if rule and reward:
        raise UsageError("--rule and --reward choose answers in different ways; leave one out")
    if least is not None and not reward:
        raise UsageError("--least is a reward; name the model with --reward")
    with usage_errors():
        teacher = load_checkpoint(find_model(model))
        if teacher.config.kind != "decoder":
            raise UsageError(f"{model} is of kind {teacher.config.kind!r}; use a decoder")
        score = _score(teacher, reward, is_rule=rule)
    encoded = _prompts(teacher, prompts, count, n_tokens, seed)
    n_kept = n_good = 0
    with writing(out, is_forced=force) as file, notes.status("Answering"):
        for answer, good in synthesis.synthesize(
            teacher,
            encoded,
            samples=samples,
            score=score,
            least=LEAST_RULE if rule else least,
            n_tokens=n_tokens,
            temperature=temperature,
            seed=seed,
        ):
            n_good += good
            if answer is not None:
                n_kept += 1
                line = json.dumps(answer._asdict(), ensure_ascii=False, allow_nan=False)
                file.write(line.encode() + b"\n")
        total = len(encoded) * samples
        if n_kept == 0:
            raise UsageError(
                f"none of {total:,} answers passed, so {out} was not written: sample more "
                "with --count and --samples" + ("" if least is None else ", or lower --least")
            )
    passed = f", {n_good:,} of which passed" if rule or least is not None else ""
    say(
        f"kept {n_kept:,} answers to {len(encoded):,} prompts, of {total:,} sampled{passed}, "
        f"in {out}"
    )


def _score(teacher: Checkpoint, reward: str | None, *, is_rule: bool) -> Score:
    from headlight.lab.training import synthesis
    from headlight.lab.training.recipes.rlhf import reward_model, rewards_of
    from headlight.model.checkpoint.loading import find_model

    if reward is None:
        return synthesis.by_rule if is_rule else synthesis.by_nothing
    rater = reward_model(str(find_model(reward)), teacher.tokenizer)
    rater.model.to(teacher.device)
    return lambda sampled, texts: rewards_of(rater.model, sampled).tolist()


def _prompts(
    teacher: Checkpoint, paths: Sequence[Path], count: int, n_tokens: int, seed: int
) -> list[Tensor]:
    """Tokenize the prompts of JSON lines, or the beginnings of paragraphs in random order."""
    import torch

    from headlight.lab.training.batches import generator_of
    from headlight.lab.training.preference import prompts_of
    from headlight.lab.training.recipes.instruct import prompt_ids
    from headlight.model.corpus import CorpusError, read_documents, read_members

    texts = [path for path in paths if path.suffix.lower() != ".jsonl"]
    lines = [
        prompt
        for path in paths
        if path.suffix.lower() == ".jsonl"
        for (prompt,) in read_members(path, ["prompt"])
    ]
    encoded = [torch.tensor(ids) for ids in prompt_ids(lines, teacher.tokenizer)]
    if texts:
        encoded += list(prompts_of(read_documents(texts), teacher.tokenizer))
    order = torch.randperm(len(encoded), generator=generator_of(seed))[:count]
    chosen = [encoded[number] for number in order.tolist()]
    longest, most = max(map(len, chosen)), teacher.config.max_tokens
    if longest + n_tokens > most:
        raise CorpusError(
            f"a prompt has {longest} tokens, and its answer up to {n_tokens}; {teacher.id} reads "
            f"{most} together: shorten it, or lower --n-tokens"
        )
    return chosen
