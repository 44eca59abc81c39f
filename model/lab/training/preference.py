"""Preference: comparisons of two answers, and a stated rule that makes them from a model's samples.

A file of comparisons has a JSON object a line, ``{"prompt": "…", "a": "…", "b": "…", "preferred":
"a"}``. Those that ship were not made by people: `RULE` decided them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from headlight.model.checkpoint import write_atomically
from headlight.model.lab.training.batches import Batch, generator_of
from headlight.model.lab.training.corpus import CorpusError, parse_line, read_lines
from headlight.model.lab.training.policy_gradient import sample_continuations
from headlight.model.served_transformer import Checkpoint
from headlight.model.tokenizer import Tokenizer
from headlight.model.transformer import Prediction, Transformer

RULE = (
    "speech stands in quotes that are opened and closed, no phrase of three words is repeated, "
    "and the answer ends with a full stop"
)
N_PROMPT, N_ANSWER = 16, 40
"""Tokens of a prompt and at most of an answer."""
PHRASE_WORDS = 3
ROWS_AT_ONCE = 64

_WORD = re.compile(r"[a-z']+")
_ENDS_WITH_FULL_STOP = re.compile(r"\.\"?$")
_MEMBERS = ("prompt", "a", "b", "preferred")


@dataclass(frozen=True)
class Comparison:
    """Two answers to a prompt; ``preferred`` is "a" or "b"."""

    prompt: str
    a: str
    b: str
    preferred: str

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
    comparison = Comparison(*(members[name] for name in _MEMBERS))
    if comparison.preferred not in ("a", "b"):
        raise CorpusError(f"{where}: preferred is {comparison.preferred!r}; it must be a or b")
    if comparison.a == comparison.b:
        raise CorpusError(f"{where}: both answers are equal; remove the line")
    return comparison


def write_comparisons(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write comparisons as JSON lines, atomically."""
    written = [
        json.dumps(asdict(comparison), ensure_ascii=False) + "\n" for comparison in comparisons
    ]
    write_atomically(path, lambda partial: partial.write_text("".join(written), encoding="utf-8"))


# --- the rule -------------------------------------------------------------------------------------


class Marks(NamedTuple):
    """The parts of `RULE` that an answer keeps."""

    has_speech: bool
    repeats_nothing: bool
    ends_with_full_stop: bool


def marks(answer: str) -> Marks:
    """Mark an answer by `RULE`."""
    words = _WORD.findall(answer.lower())
    phrases = [tuple(words[n : n + PHRASE_WORDS]) for n in range(len(words) - PHRASE_WORDS + 1)]
    quotes = answer.count('"')
    return Marks(
        has_speech=quotes >= 2 and quotes % 2 == 0,
        repeats_nothing=bool(words) and len(set(phrases)) == len(phrases),
        ends_with_full_stop=bool(_ENDS_WITH_FULL_STOP.search(answer.rstrip())),
    )


def rule_score(answer: str) -> int:
    """Count the parts of `RULE` that an answer keeps, 0 to 3."""
    return sum(marks(answer))


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

    Pairs of one score, and of a blank answer, are left out. Prompts are the beginnings of
    paragraphs, in random order and each used once, so fewer comparisons may come.

    Args:
        checkpoint: the decoder that answers, at temperature 1.
        documents: the text that the prompts are taken from.
        count: how many comparisons.
        seed: decides the order of the prompts and the samples.
    """
    tokenizer = checkpoint.tokenizer
    prompts = prompts_of(documents, tokenizer)
    generator = generator_of(seed)
    prompts = prompts[torch.randperm(len(prompts), generator=generator)]
    stop_id = line_end(tokenizer)
    for part in prompts.split(ROWS_AT_ONCE // 2):
        answers = sample_continuations(
            checkpoint.model,
            part.repeat_interleave(2, dim=0),
            n_tokens=N_ANSWER,
            stop_id=stop_id,
            generator=generator,
        ).written()
        texts = [tokenizer.decode(answer) for answer in answers]
        for prompt, a, b in zip(part.tolist(), texts[::2], texts[1::2], strict=True):
            scores = rule_score(a), rule_score(b)
            if count and a.strip() and b.strip() and scores[0] != scores[1]:
                count -= 1
                preferred = "a" if scores[0] > scores[1] else "b"
                yield Comparison(tokenizer.decode(prompt), a, b, preferred)
        if not count:
            return


# --- the reward model -----------------------------------------------------------------------------


def bradley_terry_losses(
    rewards: Float[Tensor, "pair 2"],
) -> Float[Tensor, " pair"]:
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
        rows = [row for pair in pairs for row in pair]
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])
        ends = torch.tensor([len(row) - 1 for row in rows])
        return cls(
            ids=ids.view(len(pairs), 2, longest),
            targets=ends.view(len(pairs), 2),
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
