"""The figures of `reasoning`: answers to unseen problems, and the heads that find the digits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from headlight.model.arithmetic import Marking, Problem, split
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.profiles.digits import (
    HEAD_PROBLEMS,
    digit_weights,
    solve_problems,
    writes_steps,
)

VOTES = (1, 2, 4, 8)
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
    sampled, marked = solve_problems(checkpoint, asked)
    lengths = sampled.is_sampled.sum(1).tolist()
    votes = [solve_problems(checkpoint, asked, seed=seed)[1] for seed in range(max(VOTES))]
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
    if writes_steps(marked):
        figures["heads"] = digit_heads(checkpoint, asked[:HEAD_PROBLEMS])
    return figures


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
    return _share(marking.is_right for marking in solve_problems(checkpoint, asked)[1])


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


def digit_heads(checkpoint: Checkpoint, problems: Sequence[Problem]) -> dict[str, dict[str, Any]]:
    """Find for each role of `readings` the head with the most weight on its digits.

    Returns:
        By role: ``layer``, ``head``, its mean ``weight`` on the digits of the role, and
        ``evenly``, the weight they would have if all earlier tokens had the same.
    """
    heads = {}
    for role, (weights, evenly) in digit_weights(checkpoint, problems).items():
        layer, head = divmod(int(weights.argmax()), weights.shape[1])
        weight = float(weights[layer, head])
        heads[role] = {"layer": layer, "head": head, "weight": weight, "evenly": evenly}
    return heads
