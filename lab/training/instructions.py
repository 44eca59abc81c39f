"""Instructions: prompts and answers, as JSON lines; and a stated rule that makes those that ship.

A line is ``{"prompt": "…", "answer": "…"}``. The model reads the prompt, a line break and the
answer, and learns the answer only. The examples that ship were made by `RULE`, not by people.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from headlight.model.checkpoint.loading import write_atomically
from headlight.model.corpus import read_members

RULE = (
    "a sentence says who gave what to whom, or where somebody put something, and a question asks "
    "for one of these; the answer is a sentence with it"
)
SHIPPED = Path(__file__).with_name("instructions.jsonl")
N_SHIPPED = 400


class Words(NamedTuple):
    """The words of instructions, each kind in one line."""

    names: str
    things: str
    places: str
    colours: str


WORDS = Words(
    names="Tom Ann Ben Kate Will Rose Jack Mary Sam Lucy Fred Jane Peter Alice Harry Nell",
    things="ball book hat cake cup key lamp doll apple drum coat bell kite rope shoe basket",
    places="table bed chair shelf wall bench rock gate stove window",
    colours="red blue green white black brown yellow grey",
)
OTHER_WORDS = Words(
    names="John Emma Paul Ruth George Anna Henry Clara",
    things="spoon letter box stone ring flower candle whip",
    places="floor step roof bridge desk sofa",
    colours="golden pink silver purple",
)
"""Words that no instruction that ships has: they show what a model learnt beyond its own."""


@dataclass(frozen=True)
class Instruction:
    """A prompt and the answer to it."""

    prompt: str
    answer: str


def read_instructions(paths: Sequence[Path]) -> list[Instruction]:
    """Read the instructions of some files of JSON lines.

    Raises:
        CorpusError: a file is unusable, or a line has no prompt or no answer.
    """
    names = ("prompt", "answer")
    return [Instruction(*members) for path in paths for members in read_members(path, names)]


def write_instructions(path: Path, instructions: Sequence[Instruction]) -> None:
    """Write instructions as JSON lines, atomically."""
    lines = [json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in instructions]
    write_atomically(path, lambda partial: partial.write_text("".join(lines), encoding="utf-8"))


def make_instructions(count: int, seed: int = 0, words: Words = WORDS) -> list[Instruction]:
    """Make different instructions by `RULE`."""
    random, made = Random(seed), dict[str, Instruction]()  # nosec B311
    while len(made) < count:
        one = _instruction(random, words)
        made[one.prompt] = one
    return list(made.values())


def _instruction(random: Random, words: Words) -> Instruction:
    giver, taker = random.sample(words.names.split(), 2)
    thing, other = random.sample(words.things.split(), 2)
    colour, place = random.choice(words.colours.split()), random.choice(words.places.split())
    gave = f"{giver} gave the {colour} {thing} to {taker}."
    put = f"{giver} put the {colour} {thing} on the {place}, and {taker} took the {other}."
    return random.choice(
        [
            Instruction(f"{gave} Who has the {thing}?", f"{taker} has the {thing}."),
            Instruction(f"{gave} Who gave the {thing}?", f"{giver} gave the {thing}."),
            Instruction(f"{gave} What did {giver} give?", f"{giver} gave the {colour} {thing}."),
            Instruction(f"{put} Where is the {thing}?", f"The {thing} is on the {place}."),
            Instruction(f"{put} What did {taker} take?", f"{taker} took the {other}."),
            Instruction(f"{put} What colour is the {thing}?", f"The {thing} is {colour}."),
        ]
    )
