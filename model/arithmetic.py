"""Multiplication problems, the chains of steps that solve them, and the marking of a chain.

A chain is a row of sides with an equals sign between each two:

    47*23=47*20+47*3=940+141=1081

A step is right if the sides before and after its equals sign have the same value. The last side is
the answer. Every mark is computed from the digits written, so a chain can be marked whichever model
wrote it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from headlight.model.config import require_known

FORMS = ("direct", "short", "chain")
N_TEST, N_VALID = 500, 200

# Nine digits are more than any right side has, and few enough to multiply at once.
_NUMBER = r"[0-9]{1,9}"
_TERM = rf"{_NUMBER}(?:\*{_NUMBER})?"
NUMBER, SIDE = re.compile(_NUMBER), re.compile(rf"{_TERM}(?:\+{_TERM})*")


@dataclass(frozen=True, order=True)
class Problem:
    """A product of two whole numbers."""

    first: int
    second: int

    @property
    def question(self) -> str:
        """The text that a model continues, such as ``47*23=``."""
        return f"{self.first}*{self.second}="

    @property
    def answer(self) -> int:
        """The product."""
        return self.first * self.second

    @property
    def parts(self) -> list[int]:
        """The second factor by place value, such as 20 and 3 of 23."""
        digits = str(self.second)
        return [int(digit) * 10**place for place, digit in enumerate(reversed(digits))][::-1]

    @property
    def products(self) -> list[int]:
        """The partial products, such as 940 and 141 of 47·23."""
        return [self.first * part for part in self.parts]

    def solution(self, form: str = "chain") -> str:
        """Write what follows the question.

        Args:
            form: ``direct``: only the answer. ``short``: partial products, sum. ``chain``: the
                second factor by place value, partial products, sum. A second factor of one digit
                has only the answer in every form.

        Raises:
            ValueError: the form is unknown.
        """
        require_known("form", form, FORMS)
        split = "+".join(f"{self.first}*{part}" for part in self.parts)
        sides = [split, "+".join(map(str, self.products)), str(self.answer)]
        kept = {"direct": 1, "short": 2, "chain": 3}[form if len(self.parts) > 1 else "direct"]
        return "=".join(sides[-kept:])


# --- problems -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """All products of a number of two digits and one of two or three, in three parts.

    Both orders of two factors are in the same part, so that no held-out problem is a training
    problem turned round.
    """

    train: tuple[Problem, ...]
    valid: tuple[Problem, ...]
    test: tuple[Problem, ...]


@cache
def split(second_digits: int = 2) -> Split:
    """Split all problems by a hash of their factors, the same on every machine.

    Args:
        second_digits: digits of the second factor. 2: 8,100 problems. 3: the harder range of
            81,000, whose chains have three partial products.

    Raises:
        ValueError: there are no such problems.
    """
    if second_digits == 3:
        return _split_hard()
    if second_digits != 2:
        raise ValueError(f"second_digits ({second_digits}) must be 2 or 3")
    numbers = range(10, 100)
    pairs = sorted(
        ((first, second) for first in numbers for second in numbers if first <= second),
        key=lambda pair: hashlib.sha256(f"{pair[0]}*{pair[1]}".encode()).digest(),
    )
    ordered = [
        Problem(*each)
        for first, second in pairs
        for each in dict.fromkeys([(first, second), (second, first)])
    ]
    test, rest = _take(ordered, N_TEST)
    valid, train = _take(rest, N_VALID)
    return Split(tuple(sorted(train)), tuple(valid), tuple(test))


def _split_hard() -> Split:
    """Split the products of two digits and three; no problem is another one turned round."""
    ordered = sorted(
        (Problem(first, second) for first in range(10, 100) for second in range(100, 1000)),
        key=lambda each: hashlib.sha256(f"{each.first}*{each.second}".encode()).digest(),
    )
    rest = N_TEST + N_VALID
    test, valid, train = ordered[:N_TEST], ordered[N_TEST:rest], ordered[rest:]
    return Split(tuple(sorted(train)), tuple(valid), tuple(test))


def _take(problems: Sequence[Problem], count: int) -> tuple[list[Problem], list[Problem]]:
    """Take the first problems; one whose twin stays behind is dropped from the rest."""
    taken, rest = list(problems[:count]), list(problems[count:])
    known = {Problem(each.second, each.first) for each in taken}
    return taken, [each for each in rest if each not in known]


# --- marking --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One side of a chain, and whether it has the value of the side before it."""

    text: str
    is_right: bool


@dataclass(frozen=True)
class Marking:
    """The marks of one chain.

    ``steps`` are the sides after the question. ``answer`` is the last side, None if that is no
    plain number or the chain has no end. ``product_share``, in [0, 1], is the share of the partial
    products that the chain states rightly and in order; 0 if it states none.
    """

    problem: Problem
    steps: tuple[Step, ...]
    answer: int | None
    product_share: float

    @property
    def is_right(self) -> bool:
        """Whether the answer is right, whatever precedes it."""
        return self.answer == self.problem.answer

    @property
    def is_sound(self) -> bool:
        """Whether every step is right."""
        return all(step.is_right for step in self.steps)

    @property
    def is_right_for_wrong_reason(self) -> bool:
        """Whether the answer is right although a step is wrong."""
        return self.is_right and not self.is_sound


def mark(problem: Problem, written: str, *, has_ended: bool = True) -> Marking:
    """Mark the text that a model wrote after the question.

    Args:
        problem: the problem asked.
        written: the text, without the end token.
        has_ended: whether the model ended the chain; one that did not has no answer.
    """
    sides = written.split("=")
    values = [problem.answer, *map(value_of, sides)]
    steps = tuple(
        Step(side, after is not None and before == after)
        for side, (before, after) in zip(sides, pairwise(values), strict=True)
    )
    is_number = has_ended and NUMBER.fullmatch(sides[-1])
    return Marking(
        problem=problem,
        steps=steps,
        answer=int(sides[-1]) if is_number else None,
        product_share=_product_share(problem, sides),
    )


def value_of(side: str) -> int | None:
    """Compute a sum of numbers and products such as ``47*20+47*3``; None if it is another text."""
    if not SIDE.fullmatch(side):
        return None
    total = 0
    for term in side.split("+"):
        first, _, second = term.partition("*")
        total += int(first) * int(second or 1)
    return total


def _product_share(problem: Problem, sides: Sequence[str]) -> float:
    """Find the side that states the partial products, and count the right ones."""
    for side in sides:
        stated = side.split("+")
        if len(stated) == len(problem.products) > 1 and all(map(NUMBER.fullmatch, stated)):
            right = [str(product) for product in problem.products]
            return sum(map(str.__eq__, stated, right)) / len(right)
    return 0.0
