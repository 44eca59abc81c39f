"""Preference: comparisons of two answers, and a stated rule that makes them from a model's samples.

A file of comparisons has a JSON object a line, ``{"prompt": "…", "a": "…", "b": "…", "preferred":
"a"}``. Those that ship were not made by people: `RULE` decided them. Some are minimal pairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from headlight.lab.training.batches import Batch, generator_of, padded
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.loading import write_atomically
from headlight.model.corpus import CorpusError, parse_line, read_lines
from headlight.model.generation.continuations import sample_continuations
from headlight.model.tokenizer import Tokenizer
from headlight.model.transformer import Prediction, Transformer

PHRASE_WORDS, LEAST_WORDS = 3, 20
RULE = (
    "it holds speech in quotes that are opened and closed, it repeats no phrase of "
    f"{PHRASE_WORDS} words, and it has at least {LEAST_WORDS} words"
)
"""No answer gains a point by an early end: what is cut off adds no speech and no words."""
N_PROMPT, N_ANSWER = 16, 40
"""Tokens of a prompt and at most of an answer."""
SHARES = {"has_speech": 0.08, "is_long": 0.08, "repeats_nothing": 0.59}
"""The share of the minimal pairs of each part; a repeat is the hardest to learn to see."""
ROWS_AT_ONCE = 64

_WORD = re.compile(r"[a-z']+")
_MEMBERS = ("prompt", "a", "b", "preferred")
_TRIES = 8


@dataclass(frozen=True)
class Comparison:
    """Two answers to a prompt; ``preferred`` is "a" or "b".

    ``part`` is a field of `Marks` if both are one answer, and an edit broke that part of `RULE` in
    one of them (a minimal pair); empty for two samples.
    """

    prompt: str
    a: str
    b: str
    preferred: str
    part: str = ""

    @property
    def better(self) -> str:
        """The preferred answer."""
        return self.a if self.preferred == "a" else self.b

    @property
    def worse(self) -> str:
        """The other answer."""
        return self.b if self.preferred == "a" else self.a


def read_comparisons(paths: Sequence[Path]) -> list[Comparison]:
    """Read the comparisons of some files.

    Raises:
        CorpusError: a file is unusable, or a line is not a comparison.
    """
    comparisons = []
    for path in paths:
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                comparisons.append(_comparison(line, f"{path}, line {number}"))
    return comparisons


def _comparison(line: str, where: str) -> Comparison:
    members = parse_line(line, _MEMBERS, where)
    part = members.get("part", "")
    if part not in ("", *Marks._fields):
        parts = ", ".join(Marks._fields)
        raise CorpusError(f"{where}: part is {part!r}; it must be one of {parts}, or left out")
    comparison = Comparison(**{name: members[name] for name in _MEMBERS}, part=part)
    if comparison.preferred not in ("a", "b"):
        raise CorpusError(f"{where}: preferred is {comparison.preferred!r}; it must be a or b")
    if comparison.a == comparison.b:
        raise CorpusError(f"{where}: both answers are equal; remove the line")
    return comparison


def write_comparisons(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write comparisons as JSON lines, atomically."""
    written = [
        json.dumps(
            {name: value for name, value in asdict(comparison).items() if value or name != "part"},
            ensure_ascii=False,
        )
        + "\n"
        for comparison in comparisons
    ]
    write_atomically(path, lambda partial: partial.write_text("".join(written), encoding="utf-8"))


# --- the rule -------------------------------------------------------------------------------------


class Marks(NamedTuple):
    """The parts of `RULE` that an answer keeps."""

    has_speech: bool
    repeats_nothing: bool
    is_long: bool


def marks(answer: str) -> Marks:
    """Mark an answer by `RULE`."""
    words = _WORD.findall(answer.lower())
    phrases = [tuple(words[n : n + PHRASE_WORDS]) for n in range(len(words) - PHRASE_WORDS + 1)]
    quotes = answer.count('"')
    return Marks(
        has_speech=quotes >= 2 and quotes % 2 == 0,
        repeats_nothing=bool(words) and len(set(phrases)) == len(phrases),
        is_long=len(words) >= LEAST_WORDS,
    )


def rule_score(answer: str) -> int:
    """Count the parts of `RULE` that an answer keeps, 0 to 3."""
    return sum(marks(answer))


def parts_that_differ(first: str, second: str) -> list[str]:
    """List the parts of `RULE`, by their fields of `Marks`, that one of two answers keeps."""
    pairs = zip(Marks._fields, marks(first), marks(second), strict=True)
    return [name for name, ours, theirs in pairs if ours != theirs]


# --- minimal pairs --------------------------------------------------------------------------------


def minimal_pair(
    answer: str, part: str, others: Sequence[str], random: Random
) -> tuple[str, str] | None:
    """Break one part of `RULE` in an answer by an edit.

    Speech loses one quotation mark or all; a phrase takes the place of a later one; the answer is
    cut. Half of the repeats are compared with the same answer in which a phrase of another one
    took that place, so that it is the repeat that counts and not the seam.

    Args:
        answer: to edit.
        part: a field of `Marks`.
        others: answers that a phrase may come from.
        random: chooses the place.

    Returns:
        The better and the worse answer, whose `marks` differ in this part only; None if the answer
        does not keep the part, or no place was suitable.
    """
    if not getattr(marks(answer), part):
        return None
    edit = {"has_speech": _unquoted, "repeats_nothing": _repeating, "is_long": _cut}[part]
    for _ in range(_TRIES):
        pair = edit(answer, others, random)
        if (
            pair
            and all(map(str.strip, pair))
            and parts_that_differ(*pair) == [part]
            and getattr(marks(pair[0]), part)
        ):
            return pair
    return None


def _unquoted(answer: str, _: Sequence[str], random: Random) -> tuple[str, str]:
    places = [place for place, letter in enumerate(answer) if letter == '"']
    gone = places if random.random() < 0.5 else [random.choice(places)]
    return answer, "".join(letter for place, letter in enumerate(answer) if place not in gone)


def _repeating(answer: str, others: Sequence[str], random: Random) -> tuple[str, str] | None:
    words, size = answer.split(" "), random.randint(PHRASE_WORDS, 2 * PHRASE_WORDS)
    if len(words) < 2 * size + 1:
        return None
    late = random.randint(size, len(words) - size)
    early = random.randint(min(1, late - size), late - size)
    gone, copied = words[late : late + size], words[early : early + size]
    if '"' in "".join([*gone, *copied]):
        return None
    better = answer
    other = random.choice(others).split(" ") if others and random.random() < 0.5 else []
    if len(other) > size:
        start = random.randrange(len(other) - size)
        foreign = other[start : start + size]
        better = answer if '"' in "".join(foreign) else _with(words, late, foreign)
    return better, _with(words, late, copied)


def _with(words: Sequence[str], place: int, phrase: Sequence[str]) -> str:
    return " ".join([*words[:place], *phrase, *words[place + len(phrase) :]])


def _cut(answer: str, _: Sequence[str], random: Random) -> tuple[str, str]:
    ends = [match.end() for match in re.finditer(r"[.!?]\"?(?=\s)", answer)]
    if not ends or random.random() < 0.5:
        ends = [match.start() for match in re.finditer(r"\s", answer)]
    return answer, answer[: random.choice(ends)] if ends else ""


# --- samples --------------------------------------------------------------------------------------


def prompts_of(
    documents: Sequence[str], tokenizer: Tokenizer, n_tokens: int = N_PROMPT
) -> Int[Tensor, "prompt token"]:
    """Take the first tokens of every longer paragraph without speech in them, start token first.

    Raises:
        CorpusError: there is no such paragraph.
    """
    paragraphs = (line for document in documents for line in document.splitlines() if line)
    encoded = tokenizer.encode_ids(list(dict.fromkeys(paragraphs)))
    rows = [
        [tokenizer.start_id, *ids[:n_tokens]]
        for ids in encoded
        if len(ids) >= n_tokens + 8 and '"' not in tokenizer.decode(ids[:n_tokens])
    ]
    if not rows:
        raise CorpusError(
            f"no paragraph has {n_tokens + 8} tokens, the first {n_tokens} of them without a "
            "quotation mark; name a text with longer paragraphs"
        )
    return torch.tensor(rows)


def line_end(tokenizer: Tokenizer) -> int:
    """Return the token that ends a paragraph, and with it an answer."""
    (ids,) = tokenizer.encode_ids(["\n"])
    return ids[0]


def make_comparisons(
    checkpoint: Checkpoint, documents: Sequence[str], *, count: int, seed: int = 0
) -> Iterator[Comparison]:
    """Sample two answers to each prompt and prefer the one that `rule_score` rates higher.

    Three quarters of the comparisons are a `minimal_pair` of a sampled answer (`SHARES`).
    Pairs of one score, and of a blank answer, are left out. Prompts are the beginnings of
    paragraphs, in random order and each used once, so fewer comparisons may come.

    Args:
        checkpoint: the decoder that answers, at temperature 1.
        documents: the text that the prompts are taken from.
        count: how many comparisons.
        seed: decides the order of the prompts, the samples and the edits.
    """
    tokenizer = checkpoint.tokenizer
    random = Random(seed)
    left = {part: int(share * count) for part, share in SHARES.items()}
    left[""] = count - sum(left.values())
    prompts = prompts_of(documents, tokenizer)
    generator = generator_of(seed)
    prompts = prompts[torch.randperm(len(prompts), generator=generator)]
    for part in prompts.split(ROWS_AT_ONCE // 2):
        texts = _answers(checkpoint, part.repeat_interleave(2, dim=0), generator)
        for prompt, a, b in zip(part.tolist(), texts[::2], texts[1::2], strict=True):
            if not (a.strip() and b.strip()):
                continue
            for comparison in _compared(tokenizer.decode(prompt), a, b, left, texts, random):
                left[comparison.part] -= 1
                yield comparison
        if not any(left.values()):
            return


def _answers(
    checkpoint: Checkpoint, prompts: Int[Tensor, "row token"], generator: torch.Generator
) -> list[str]:
    answers = sample_continuations(
        checkpoint.model,
        prompts,
        n_tokens=N_ANSWER,
        stop_id=line_end(checkpoint.tokenizer),
        generator=generator,
    ).written()
    return [checkpoint.tokenizer.decode(answer) for answer in answers]


def _compared(
    prompt: str, a: str, b: str, left: Mapping[str, int], texts: Sequence[str], random: Random
) -> Iterator[Comparison]:
    """Compare two samples, and make a minimal pair of each and each part, while pairs are left."""
    scores = rule_score(a), rule_score(b)
    if left[""] and scores[0] != scores[1]:
        yield Comparison(prompt, a, b, "a" if scores[0] > scores[1] else "b")
    for answer in (a, b):
        for part in SHARES:
            if left[part] and (pair := minimal_pair(answer, part, texts, random)):
                is_first = random.random() < 0.5
                yield Comparison(prompt, *(pair if is_first else pair[::-1]), "ba"[is_first], part)


# --- the reward model -----------------------------------------------------------------------------


def bradley_terry_losses(rewards: Float[Tensor, "pair 2"]) -> Float[Tensor, " pair"]:
    """Compute −log σ(r_better − r_worse), in nats.

    Bradley and Terry 1952, https://doi.org/10.2307/2334029; Ouyang et al. 2022, equation 1,
    https://arxiv.org/abs/2203.02155.

    Args:
        rewards: of the preferred answer, then of the other.
    """
    return F.softplus(rewards[:, 1] - rewards[:, 0])


class ComparisonBatch(Batch):
    """Comparisons: ``ids`` (pair, 2, token), the preferred answer first, padded at the end.

    ``targets`` (pair, 2) is the index of the last token of each; ``is_counted`` (pair) is True.
    """

    def predict(self, model: Transformer) -> Prediction:
        """Run the model; ``reward`` is (pair, 2), read after the last token of each answer."""
        prediction: Prediction = model(self.ids.flatten(0, 1))
        assert prediction.reward is not None
        rewards = prediction.reward.gather(1, self.targets.flatten()[:, None])
        return prediction._replace(reward=rewards.view_as(self.targets))

    def losses(self, prediction: Prediction, *, smoothing: float = 0.0) -> Float[Tensor, " pair"]:
        """Compute `bradley_terry_losses`; with smoothing, that share of the pairs is reversed."""
        assert prediction.reward is not None
        rewards = prediction.reward.float()
        losses = bradley_terry_losses(rewards)
        return losses + smoothing * (rewards[:, 0] - rewards[:, 1]) if smoothing else losses

    @classmethod
    def pad(cls, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], padding: int) -> Batch:
        """Pad pairs of token ids, the preferred first, to one length."""
        ids, is_token = padded([row for pair in pairs for row in pair], padding)
        shape = (len(pairs), 2)
        return cls(
            ids=ids.unflatten(0, shape),
            targets=(is_token.sum(dim=1) - 1).view(shape),
            is_counted=torch.ones(len(pairs), dtype=torch.bool),
        )


def encode_comparisons(
    comparisons: Sequence[Comparison], tokenizer: Tokenizer, max_tokens: int
) -> list[tuple[list[int], list[int]]]:
    """Tokenize prompt and answer of each side, the preferred first, start token before each.

    Raises:
        CorpusError: one is longer than `max_tokens`.
    """
    sides = [
        comparison.prompt + answer
        for comparison in comparisons
        for answer in (comparison.better, comparison.worse)
    ]
    rows = [[tokenizer.start_id, *ids] for ids in tokenizer.encode_ids(sides)]
    for number, row in enumerate(rows):
        if len(row) > max_tokens:
            raise CorpusError(
                f"comparison {number // 2 + 1} has {len(row)} tokens with its prompt, more than "
                f"the {max_tokens} that the model reads; shorten it"
            )
    return list(zip(rows[::2], rows[1::2], strict=True))
