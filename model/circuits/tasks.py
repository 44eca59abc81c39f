"""Tasks for circuits: pairs of a clean and a corrupted text, made by a rule or read from a file.

A file has one pair a line, as JSON: ``{"clean": "The dogs with the girl", "corrupted": "The dog
with the girl", "right": " were", "wrong": " was"}``. ``right`` and ``wrong`` are a text of one
token or a list of such texts. In an encoder–decoder ``target`` and ``corrupted_target`` are the
texts that the decoder has written so far.

The tasks that ship are made for a tokenizer: of the pairs that the rule allows, drawn with a seed,
those count whose texts have equal numbers of tokens and whose answers are single tokens.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from headlight.model.arithmetic import Problem
from headlight.model.circuits.pairs import Pair, UnfitPair
from headlight.model.controlled_sentences import NOUNS, PREPOSITIONS
from headlight.model.served import Served
from headlight.model.tracing import EmptyText, TooManyTokens, read_tokens

N_PAIRS = 100
N_TRIES = 20_000
MAX_FILE_BYTES = 2**22
MAX_PAIRS = 1_000

_SAID = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NAMES, PLACES, THINGS, WORDS, EVENTS = (
    _SAID["words"][kind].split() for kind in ("names", "places", "things", "words", "events")
)


Answers = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
    Field(min_length=1),
]


class TextPair(NamedTuple):
    """A pair of texts, and what is right and wrong after the clean one."""

    clean: str
    corrupted: str
    right: Answers
    wrong: Answers
    target: str | None = None
    corrupted_target: str | None = None


_PAIR = TypeAdapter(TextPair)


class UnfitTask(ValueError):
    """A task that a model cannot do, or a file that holds no pairs."""


def _agreement(draw: random.Random) -> TextPair:
    subject, other = draw.sample(NOUNS, 2)
    number = draw.randrange(2)
    end = f"{draw.choice(PREPOSITIONS)} the {other[1 - number]}"
    verbs = (" was", " were")
    return TextPair(
        f"The {subject[number]} {end}",
        f"The {subject[1 - number]} {end}",
        (verbs[number],),
        (verbs[1 - number],),
    )


def _repetition(draw: random.Random) -> TextPair:
    *words, other = draw.sample(WORDS, 6)
    at = draw.randrange(1, 5)
    changed = [*words[:at], other, *words[at + 1 :]]
    again = " ".join(words[:at])
    return TextPair(
        f"{' '.join(words)} {again}",
        f"{' '.join(changed)} {again}",
        (f" {words[at]}",),
        (f" {other}",),
    )


def _names(
    draw: random.Random, frame: str = "{} and {} went to the {}, and {} gave a {} to"
) -> TextPair:
    names = draw.sample(NAMES, 2)
    place, thing = draw.choice(PLACES), draw.choice(THINGS)
    given, got = draw.sample(names, 2)
    clean, corrupted = (frame.format(*names, place, who, thing) for who in (given, got))
    return TextPair(clean, corrupted, (f" {got}",), (f" {given}",))


def _indirect_objects(draw: random.Random) -> TextPair:
    return _names(draw, "When {} and {} came home from the {}, {} handed the {} over to")


def _greater_than(draw: random.Random) -> TextPair:
    century, year = draw.randrange(11, 19), draw.randrange(3, 98)
    begin = f"The {draw.choice(EVENTS)} lasted from the year {century}"
    end = f" to the year {century}"
    return TextPair(
        f"{begin}{year:02}{end}",
        f"{begin}01{end}",
        tuple(f"{later:02}" for later in range(year + 1, 100)),
        tuple(f"{earlier:02}" for earlier in range(year + 1)),
    )


def _sum(draw: random.Random) -> tuple[str, int, int]:
    problem = Problem(draw.randrange(11, 100), draw.randrange(11, 100))
    if problem.second % 10 == 0:
        problem = Problem(problem.first, problem.second + draw.randrange(1, 10))
    if len(problem.parts) != 2:
        return _sum(draw)
    first, second = problem.products
    split = "+".join(f"{problem.first}*{part}" for part in problem.parts)
    return f"{problem.question}{split}=", first, second


def _at_digit(begin: str, first: int, pair: tuple[int, int], place: int) -> TextPair | None:
    """Return the pair that is asked for the digit of the sum at a place, counted from the end."""
    sums = [str(first + second) for second in pair]
    texts = [f"{begin}{first}+{second}=" for second in pair]
    at = len(sums[0]) - 1 - place
    if len(sums[0]) != len(sums[1]) or at < 0 or sums[0][:at] != sums[1][:at]:
        return None
    if len(texts[0]) != len(texts[1]) or sums[0][at] == sums[1][at]:
        return None
    texts = [f"{text}{sums[0][:at]}" for text in texts]
    return TextPair(texts[0], texts[1], (sums[0][at],), (sums[1][at],))


def _last_digit(draw: random.Random) -> TextPair | None:
    begin, first, second = _sum(draw)
    other = second - second % 10 + draw.randrange(10)
    return _at_digit(begin, first, (second, other), 0)


def _carrying(draw: random.Random) -> TextPair | None:
    begin, first, second = _sum(draw)
    tens = second // 10 % 10
    other = second + 10 * (draw.randrange(10) - tens)
    carries = [(first % 100 + each % 100) >= 100 for each in (second, other)]
    if carries[0] == carries[1] or other < 1:
        return None
    return _at_digit(begin, first, (second, other), 2)


TASKS: Mapping[str, Callable[[random.Random], TextPair | None]] = {
    draw.__name__.removeprefix("_"): draw
    for draw in (
        *(_agreement, _repetition, _names, _indirect_objects, _greater_than),
        *(_last_digit, _carrying),
    )
}
"""The tasks that ship; each draws a pair, or none that its rule allows."""
RULES = {name: _SAID["rules"][name] for name in TASKS}
"""The rule of each task in words."""


def task_pairs(
    model: Served, name: str, n_pairs: int = N_PAIRS, seed: int = 0
) -> tuple[list[Pair], list[TextPair]]:
    """Return pairs of a task that ships, as a model's tokenizer cuts them, each once.

    Raises:
        UnfitTask: there is no such task, or too few of its pairs fit this tokenizer.
    """
    if name not in TASKS:
        raise UnfitTask(f"there is no task {name!r}; there are {', '.join(TASKS)}")
    draw, pairs, texts = random.Random(seed), list[Pair](), dict[TextPair, None]()
    tried: set[TextPair] = set()
    reason = "the rule allows no pair"
    for _ in range(N_TRIES):
        made = TASKS[name](draw)
        if made is None or made in tried:
            continue
        tried.add(made)
        try:
            pairs.append(fitted(model, made))
            texts[made] = None
        except (UnfitPair, TooManyTokens, EmptyText) as error:
            reason = str(error)
        if len(pairs) == n_pairs:
            break
        if len(tried) > 200 and not pairs:
            break
    if len(pairs) < min(n_pairs, 8):
        raise UnfitTask(
            f"the model '{model.id}' cannot do the task '{name}': of {len(tried):,} pairs tried "
            f"{len(pairs)} fit its tokenizer; the last did not because {reason}"
        )
    return pairs, list(texts)


def fitted(model: Served, texts: TextPair) -> Pair:
    """Return a pair of texts as ids.

    Raises:
        UnfitPair: the texts have different numbers of tokens, or an answer is not one token.
        EmptyText, TooManyTokens, UnknownToken, ValueError: as `tracing.tokenize`.
    """
    clean, corrupted = (_ids(model, each) for each in (texts.clean, texts.corrupted))
    targets: list[tuple[int, ...] | None] = [None, None]
    if model.config.kind == "encoder-decoder":
        if texts.target is None:
            raise UnfitPair("an encoder–decoder needs a target: what its decoder has written")
        both = (texts.target, texts.corrupted_target or texts.target)
        targets = [_ids(model, each, is_target=True) for each in both]
    mask = model.tokenizer.mask_id
    if model.config.kind == "encoder":
        if mask is None or clean.count(mask) != 1:
            raise UnfitPair("an encoder predicts at a mask: put one mask into both texts")
        position = clean.index(mask)
    else:
        position = len(targets[0] or clean) - 1
    return Pair(
        clean=clean,
        corrupted=corrupted,
        right=tuple(_single(model, each) for each in texts.right),
        wrong=tuple(_single(model, each) for each in texts.wrong),
        position=position,
        target=targets[0],
        corrupted_target=targets[1],
    )


def _ids(model: Served, text: str, *, is_target: bool = False) -> tuple[int, ...]:
    tokens = read_tokens(model, text, is_target=is_target)
    is_open = model.config.kind == "decoder" or is_target
    while is_open and tokens and tokens[-1].is_special and len(tokens) > 1:
        tokens = tokens[:-1]  # an end token, after which nothing is predicted
    return tuple(token.id for token in tokens)


def _single(model: Served, text: str) -> int:
    """Return the token of a text; a space at its front may be a part of it."""
    tokens = [token for token in model.tokenizer.encode(text) if token.is_typed]
    if len(tokens) != 1:
        raise UnfitPair(f"{text!r} is {len(tokens)} tokens; an answer must be one")
    return tokens[0].id


# --- files ----------------------------------------------------------------------------------------


def read_task(path: Path) -> list[TextPair]:
    """Return the pairs of a file.

    Raises:
        UnfitTask: the file cannot be read, is too large, or has a line that is not a pair.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UnfitTask(f"{path} is larger than {MAX_FILE_BYTES:,} bytes; split it")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UnfitTask(f"{path} cannot be read: {error}") from error
    pairs = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                pairs.append(_PAIR.validate_json(line))
            except ValidationError as error:
                reason = "; ".join(
                    f"{'.'.join(map(str, each['loc']))}: {each['msg']}".removeprefix(": ")
                    for each in error.errors()
                )
                raise UnfitTask(f"{path}, line {number} is no pair: {reason}") from error
    if not pairs:
        raise UnfitTask(f"{path} holds no pairs; write one a line, as JSON")
    if len(pairs) > MAX_PAIRS:
        raise UnfitTask(f"{path} holds {len(pairs):,} pairs; {MAX_PAIRS:,} are allowed")
    return pairs


def as_request(pairs: Iterable[TextPair]) -> list[dict[str, Any]]:
    """Return pairs as members of the API's circuit request."""
    rows = ({k: v for k, v in pair._asdict().items() if v is not None} for pair in pairs)
    return [{**row, "right": list(row["right"]), "wrong": list(row["wrong"])} for row in rows]
