"""The figures of `reasoning`: answers to unseen problems, and the heads that find the digits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.arithmetic import Marking, Problem, split
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.experiments.chains import solve
from headlight.model.profiles.measure import profile_heads
from headlight.model.profiles.profile import labels_of

WEIGHTS = "decoder.layers.*.self_attention.weights"
N_TOKENS = 40
VOTES = (1, 2, 4, 8)
HEAD_PROBLEMS = 100
N_SIZED = 200


def evaluate(checkpoint: Checkpoint, problems: Sequence[Problem] | None = None) -> dict[str, Any]:
    """Measure a model on problems that no run has seen.

    Args:
        checkpoint: a decoder of characters.
        problems: with questions of one length; None for the 500 of `arithmetic.split`.

    Returns:
        ``right``: the share of right answers if each token is the likeliest. ``sound``: of right
        answers by right steps only. ``right_for_wrong_reason``: of right answers with a wrong
        step. ``products``: the mean share of right partial products. ``tokens``: the mean length of
        a chain. ``right_by_length``: the share by length of the chain, with the number of chains.
        ``sampled``: the share of right answers at temperature 1. ``majority``: the share by the
        number of chains that vote. ``heads``: see `digit_heads`; for models that write steps.
    """
    asked = split().test if problems is None else problems
    sampled, marked = _solve(checkpoint, asked)
    lengths = sampled.is_sampled.sum(1).tolist()
    votes = [_solve(checkpoint, asked, seed=seed)[1] for seed in range(max(VOTES))]
    figures: dict[str, Any] = {
        "problems": len(asked),
        "right": _share(marking.is_right for marking in marked),
        "sound": _share(marking.is_right and marking.is_sound for marking in marked),
        "right_for_wrong_reason": _share(marking.is_right_for_wrong_reason for marking in marked),
        "products": sum(marking.product_share for marking in marked) / len(marked),
        "tokens": sum(lengths) / len(lengths),
        "right_by_length": _by_length(lengths, marked),
        "sampled": _share(marking.is_right for marking in votes[0]),
        "majority": {f"of_{k}": majority_right(asked, votes[:k]) for k in VOTES},
    }
    if _writes_steps(marked):
        figures["heads"] = digit_heads(checkpoint, asked[:HEAD_PROBLEMS])
    return figures


def _writes_steps(marked: Sequence[Marking]) -> bool:
    return max(len(marking.steps) for marking in marked) == len(STEPS)


class _Typed(Problem):
    """A problem whose question is typed in another form."""

    form = "{}*{}="

    @property
    def question(self) -> str:
        return self.form.format(self.first, self.second)


class _Spaced(_Typed):
    form = "{} * {} ="


class _Typographic(_Typed):
    form = "{}\u00d7{}="


def robustness(checkpoint: Checkpoint) -> dict[str, Any]:
    """Measure the share of right answers to problems typed in other forms or of other sizes.

    Returns:
        ``figure``: its name; ``forms``: the share over the test problems by form; ``length``: by
        the digits of the two factors, over problems drawn from all, which training has none of
        unless both have two.
    """
    test = split().test
    forms = {"as_written": Problem, "with_spaces": _Spaced, "typographic": _Typographic}
    draw = random.Random(0)
    sizes = {
        f"factors_of_{first}_and_{second}_digits": [
            Problem(*(draw.randrange(10 ** (n - 1), 10**n) for n in (first, second)))
            for _ in range(N_SIZED)
        ]
        for first, second in ((1, 2), (3, 2), (2, 3))
    }
    return {
        "figure": "right",
        "forms": {
            name: _right(checkpoint, [form(problem.first, problem.second) for problem in test])
            for name, form in forms.items()
        },
        "length": {name: _right(checkpoint, problems) for name, problems in sizes.items()},
    }


def _right(checkpoint: Checkpoint, asked: Sequence[Problem]) -> float:
    return _share(marking.is_right for marking in _solve(checkpoint, asked)[1])


def right_and_products(checkpoint: Checkpoint) -> dict[str, float]:
    """Measure the two quickest figures of `evaluate`: ``right`` and ``products``."""
    _, marked = _solve(checkpoint, split().test)
    return {
        "right": _share(marking.is_right for marking in marked),
        "products": sum(marking.product_share for marking in marked) / len(marked),
    }


def _solve(checkpoint: Checkpoint, asked: Sequence[Problem], seed: int | None = None) -> Any:
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


def _share(marks: Any) -> float:
    marked = [*marks]
    share: float = sum(marked) / len(marked)
    return share


def majority_right(asked: Sequence[Problem], votes: Sequence[Sequence[Marking]]) -> float:
    """Return the share of problems whose most frequent answer is right.

    Of equally frequent answers the one that was given first counts; a chain without an answer does
    not vote. Wang et al. 2023, https://arxiv.org/abs/2203.11171.

    Args:
        asked: the problems.
        votes: the marked chains of all problems, once for each vote.
    """
    n_right = 0
    for number, problem in enumerate(asked):
        answers = Counter(each[number].answer for each in votes if each[number].answer is not None)
        n_right += bool(answers) and answers.most_common(1)[0][0] == problem.answer
    return n_right / len(asked)


def _by_length(lengths: Sequence[int], marked: Sequence[Marking]) -> dict[str, dict[str, Any]]:
    by_length: dict[int, list[bool]] = {}
    for length, marking in sorted(zip(lengths, marked, strict=True), key=lambda pair: pair[0]):
        by_length.setdefault(length, []).append(marking.is_right)
    return {
        f"tokens_{length}": {"right": _share(marks), "chains": len(marks)}
        for length, marks in by_length.items()
    }


# --- heads ----------------------------------------------------------------------------------------


STEPS = ("split", "products", "answer")
ROLES = ("multiplicand", "multiplier", "column", "carry")


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


def digit_heads(checkpoint: Checkpoint, problems: Sequence[Problem]) -> dict[str, dict[str, Any]]:
    """Find for each role of `readings` the head with the most weight on its digits.

    Returns:
        By role: ``layer``, ``head``, its mean ``weight`` on the digits of the role, and
        ``evenly``, the weight they would have if all earlier tokens had the same.
    """
    return {
        role: _best(weights) | {"evenly": evenly}
        for role, (weights, evenly) in digit_weights(checkpoint, problems).items()
    }


def profile_digits(checkpoint: Checkpoint, *, n_sentences: int) -> dict[str, Any]:
    """Measure every head on the written solutions of the test problems.

    Solutions have the steps that the model writes. If these are all, each head has a score for
    each role of `readings`, too; its control is the weight if all earlier tokens had the same.

    Returns:
        As `profile_heads`.
    """
    asked = split().test
    writes_steps = _writes_steps(_solve(checkpoint, asked[:HEAD_PROBLEMS])[1])
    form = "chain" if writes_steps else "direct"
    solutions = [problem.question + problem.solution(form) for problem in asked]
    profile = profile_heads(checkpoint, solutions, n_sentences=n_sentences, question_end="=")
    if writes_steps:
        for role, (weights, evenly) in digit_weights(checkpoint, asked[:HEAD_PROBLEMS]).items():
            for of_layer, heads in zip(weights, profile["attentions"].values(), strict=True):
                for score, head in zip(of_layer.tolist(), heads, strict=True):
                    head["scores"][role] = {"score": score, "control": evenly}
                    head["labels"] = labels_of(head["scores"])
    return profile


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


def _best(weights: Float[Tensor, "layer head"]) -> dict[str, Any]:
    layer, head = divmod(int(weights.argmax()), weights.shape[1])
    return {"layer": layer, "head": head, "weight": float(weights[layer, head])}
