"""The figures of `instruct`: answers to prompts that the model was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headlight.lab.evaluation.preference import named_model
from headlight.lab.figures import Evidence, Figures
from headlight.lab.training.examples import divide
from headlight.lab.training.instructions import (
    OTHER_WORDS,
    SHIPPED,
    Instruction,
    make_instructions,
    read_instructions,
)
from headlight.lab.training.recipes.instruct import InstructConfig, prompt_ids
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.generation.sampling import Sampling, generate

N_ANSWER, N_SHOWN = 40, 4
N_OTHER = 120


def answers(checkpoint: Checkpoint, prompts: Sequence[str]) -> list[str]:
    """Return the likeliest answer to each prompt, up to the end of its line or of the text."""
    tokenizer = checkpoint.tokenizer
    written = []
    for ids in prompt_ids(prompts, tokenizer):
        tokens = generate(
            checkpoint.model,
            ids,
            n_tokens=N_ANSWER,
            sampling=Sampling(temperature=0),
            stop_id=tokenizer.end_id,
            is_over=lambda answer: "\n" in tokenizer.decode(list(answer)),
        )
        text = tokenizer.decode([each.id for each in tokens if each.id != tokenizer.end_id])
        written.append(text.partition("\n")[0].strip())
    return written


def evaluate(checkpoint: Checkpoint, instructions: Sequence[Instruction]) -> dict[str, Any]:
    """Measure how many answers are right to the letter, and before training; show some.

    Returns:
        ``exact`` and ``prompts``; ``exact_before`` of the model it began with, if that is there;
        ``samples``.
    """
    prompts = [each.prompt for each in instructions]
    written = answers(checkpoint, prompts)
    figures: dict[str, Any] = {
        "exact": _exact(written, instructions),
        "prompts": len(instructions),
    }
    if before := named_model(checkpoint, "began_from"):
        figures["exact_before"] = _exact(answers(before, prompts), instructions)
    figures["samples"] = {
        str(number + 1): {"prompt": each.prompt, "expected": each.answer, "answer": answer}
        for number, (each, answer) in enumerate(
            zip(instructions[:N_SHOWN], written[:N_SHOWN], strict=True)
        )
    }
    return figures


def _exact(written: Sequence[str], instructions: Sequence[Instruction]) -> float:
    rights = [
        answer == each.answer.strip() for answer, each in zip(written, instructions, strict=True)
    ]
    return sum(rights) / len(rights)


def held_out() -> list[Instruction]:
    """Return those of the instructions that ship that no model is trained on."""
    return divide(read_instructions([SHIPPED]), InstructConfig().held_out)[1]


class InstructFigures(Figures):
    """The figures of `instruct`."""

    def measure(self, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
        """As `Figures.measure`, on prompts and answers."""
        return evaluate(checkpoint, read_instructions(evidence.text))

    def sample(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """As `Figures.sample`: the held-out instructions that ship, and some of other words.

        ``exact_other_words`` is the share that is right of instructions by the same rule whose
        names, things, places and colours none that ships has.
        """
        others = make_instructions(N_OTHER, words=OTHER_WORDS)
        written = answers(checkpoint, [each.prompt for each in others])
        return evaluate(checkpoint, held_out()) | {"exact_other_words": _exact(written, others)}
