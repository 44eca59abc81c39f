"""The profile of a model that multiplies: its heads, and the digits that each digit needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.arithmetic import Marking, Problem, split
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.profile import labels_of
from headlight.model.experiments.chains import solve
from headlight.model.profiles.measure import profile_heads

WEIGHTS = "decoder.layers.*.self_attention.weights"
N_TOKENS = 40
HEAD_PROBLEMS = 100
STEPS = ("split", "products", "answer")
ROLES = ("multiplicand", "multiplier", "column", "carry")


def profile_digits(
    checkpoint: Checkpoint,
    *,
    n_sentences: int,
    on_progress: Callable[[float], object] = lambda _: None,
) -> dict[str, Any]:
    """Measure every head on the written solutions of the test problems.

    Solutions have the steps that the model writes. If these are all, each head has a score for
    each role of `readings`, too; its control is the weight if all earlier tokens had the same.

    Returns:
        As `profile_heads`.
    """
    asked = split().test
    has_steps = writes_steps(solve_problems(checkpoint, asked[:HEAD_PROBLEMS])[1])
    form = "chain" if has_steps else "direct"
    solutions = [problem.question + problem.solution(form) for problem in asked]
    profile = profile_heads(
        checkpoint, solutions, n_sentences=n_sentences, question_end="=", on_progress=on_progress
    )
    if has_steps:
        for role, (weights, evenly) in digit_weights(checkpoint, asked[:HEAD_PROBLEMS]).items():
            for of_layer, heads in zip(weights, profile["attentions"].values(), strict=True):
                for score, head in zip(of_layer.tolist(), heads, strict=True):
                    head["scores"][role] = {"score": score, "control": evenly}
                    head["labels"] = labels_of(head["scores"])
    return profile


def writes_steps(marked: Sequence[Marking]) -> bool:
    """Return True if a chain has every step."""
    return max(len(marking.steps) for marking in marked) == len(STEPS)


def solve_problems(
    checkpoint: Checkpoint, asked: Sequence[Problem], seed: int | None = None
) -> Any:
    """Write a chain for each problem: the likeliest, or with a seed one at temperature 1."""
    room = checkpoint.config.max_tokens - 1 - max(len(problem.question) for problem in asked)
    device = checkpoint.device
    return solve(
        checkpoint.model,
        checkpoint.tokenizer,
        asked,
        n_tokens=min(N_TOKENS, room),
        temperature=0.0 if seed is None else 1.0,
        generator=None if seed is None else torch.Generator(device).manual_seed(seed),
    )


def digit_weights(
    checkpoint: Checkpoint, problems: Sequence[Problem]
) -> dict[str, tuple[Float[Tensor, "layer head"], float]]:
    """Compute the mean weight of every head on the digits of each role of `readings`.

    Returns:
        By role: the weights, and that which the digits would have if all earlier tokens had the
        same.
    """
    totals: dict[str, Float[Tensor, "layer head"]] = {}
    counts, evenly = dict.fromkeys(ROLES, 0), dict.fromkeys(ROLES, 0.0)
    for problem in problems:
        text = problem.question + problem.solution()
        ids = [checkpoint.tokenizer.start_id, *checkpoint.tokenizer.encode_ids([text])[0]]
        rows = torch.tensor([ids], device=checkpoint.device)
        with torch.inference_mode(), checkpoint.model.capture([WEIGHTS]) as captured:
            checkpoint.model(rows)
        weights = torch.cat([of_layer.float().cpu() for of_layer in captured.values()])
        for role, reading in readings(problem):
            on_digits = weights[:, :, reading.query, sorted(reading.keys)].sum(-1)
            totals[role] = totals.get(role, torch.zeros_like(on_digits)) + on_digits
            counts[role] += 1
            evenly[role] += len(reading.keys) / (reading.query + 1)
    return {role: (totals[role] / counts[role], evenly[role] / counts[role]) for role in ROLES}


class Reading(NamedTuple):
    """The digits that a digit is computed from: the token that writes it, and theirs."""

    query: int
    keys: frozenset[int]


def readings(problem: Problem) -> Iterator[tuple[str, Reading]]:
    """Find, for each written digit of a chain, the earlier digits that its rule needs.

    While a digit of a partial product is written: the ``multiplicand``, the first factor's digits,
    and the ``multiplier``, the second factor's digit of that product, in the question or in the
    step before. While a digit of the answer is written: its ``column``, the digits of the partial
    products at the same place, and for the ``carry`` those one place lower.

    Args:
        problem: with two digits in the second factor; its chain is the written solution.

    Yields:
        The role, and the reading. Places count tokens, the start token first, and the query is the
        token before the digit, because that predicts it.
    """
    text = problem.question + problem.solution()
    sides, begin = [], 0
    for side in text.split("="):
        sides.append((1 + begin, side))
        begin += len(side) + 1
    (question, _), split_side, products_side, (answer, answer_text) = sides
    terms, products = [*_summands(*split_side)], [*_summands(*products_side)]
    n_first = len(str(problem.first))
    for number, (term, (product, product_text)) in enumerate(zip(terms, products, strict=True)):
        first = {*range(question, question + n_first), *range(term[0], term[0] + n_first)}
        second = {question + n_first + 1 + number, term[0] + n_first + 1}
        for place in range(product, product + len(product_text)):
            yield "multiplicand", Reading(place - 1, frozenset(first))
            yield "multiplier", Reading(place - 1, frozenset(second))
    for role, lower in (("column", 0), ("carry", 1)):
        for offset in range(len(answer_text)):
            power = len(answer_text) - 1 - offset - lower
            keys = {
                start + len(text) - 1 - power for start, text in products if 0 <= power < len(text)
            }
            if keys:
                yield role, Reading(answer + offset - 1, frozenset(keys))


def _summands(begin: int, side: str) -> Iterator[tuple[int, str]]:
    """Yield the place and the text of each summand of a side."""
    for summand in side.split("+"):
        yield begin, summand
        begin += len(summand) + 1
