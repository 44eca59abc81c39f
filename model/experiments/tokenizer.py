"""Byte-pair encoding, merge by merge: the most frequent pair of neighbouring tokens is joined.

Merges stay inside words; a word has the space before it. The text starts as characters, of which
GPT-2's tokenizer takes the bytes. Of equally frequent pairs the one whose tokens were made first is
taken, characters in the order of their code points, as the library `tokenizers` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from pydantic import Field

from headlight.model.cancellation import check
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters

WORD = re.compile(r"\s?\S+|\s+")
MAX_CHARACTERS = 4000
LEAST_COUNT = 2
"""A pair that occurs once is not merged: it would save one token and cost an entry."""

Pair = tuple[str, str]


class Tokenizer(Parameters):
    """The parameters of `tokenizer`; nothing is drawn, so the seed changes nothing."""

    text: str = Field(
        "low lower lowest, new newer newest, wide wider widest; the newest slows the widest "
        "flow, and the lower the flow the slower the snow",
        min_length=1,
        max_length=MAX_CHARACTERS,
        description="The text that merges are learned from.",
    )
    sample: str = Field(
        "the slowest snowflower",
        max_length=400,
        description="Another text, split by the merges that were learned.",
    )
    n_merges: int = Field(40, ge=1, le=300, description="The most merges.")


def cost(parameters: Tokenizer) -> Cost:
    """Estimate the cost: 1.5 µs for each merge and character."""
    characters = len(parameters.text) + len(parameters.sample)
    return Cost(seconds=1.5e-6 * parameters.n_merges * characters + 0.01, megabytes=5.0)


def run(parameters: Tokenizer) -> Iterator[Arrays]:
    """Learn the merges of the text, and apply them to it and to the sample."""
    counts = Counter(WORD.findall(parameters.text))
    merges, frequencies = learn_merges(counts, parameters.n_merges)
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    joined = joined_at(parameters.text, ranks)
    alphabet = len(set(parameters.text))
    steps = np.arange(len(merges) + 1)
    yield {
        "character": np.array(list(parameters.text)),
        "joined_at": joined,
        "sample_character": np.array(list(parameters.sample), dtype=np.str_),
        "sample_joined_at": joined_at(parameters.sample, ranks),
        "merge": np.arange(1, len(merges) + 1),
        "left": np.array([left for left, _ in merges], dtype=np.str_),
        "right": np.array([right for _, right in merges], dtype=np.str_),
        "count": np.array(frequencies, dtype=np.int64),
        "step": steps,
        "n_tokens": np.array(
            [int(((joined == 0) | (joined > step)).sum()) for step in range(len(steps))]
        ),
        "vocab_size": alphabet + steps,
    }


def learn_merges(counts: Counter[str], most: int) -> tuple[list[Pair], list[int]]:
    """Return the merges in order, and how often each pair occurred when it was merged."""
    words = {word: list(word) for word in counts}
    ids = {character: at for at, character in enumerate(sorted(set("".join(counts))))}
    merges: list[Pair] = []
    frequencies: list[int] = []
    while len(merges) < most:
        check()
        pairs: Counter[Pair] = Counter()
        for word, tokens in words.items():
            for pair in pairwise(tokens):
                pairs[pair] += counts[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], ids[pair[0]], ids[pair[1]]))
        if pairs[best] < LEAST_COUNT:
            break
        merges.append(best)
        frequencies.append(pairs[best])
        ids.setdefault("".join(best), len(ids))
        for word, tokens in words.items():
            words[word] = merge(tokens, best)
    return merges, frequencies


def merge(tokens: list[str], pair: Pair) -> list[str]:
    """Join every occurrence of a pair, from left to right."""
    merged: list[str] = []
    for token in tokens:
        if merged and (merged[-1], token) == pair:
            merged[-1] += token
        else:
            merged.append(token)
    return merged


def joined_at(text: str, ranks: dict[Pair, int]) -> np.ndarray:
    """Return for each character after which merge, from 1, it is no longer the first of a token.

    0: never. The tokens of every step of the merges can be read from it.
    """
    joined: list[int] = []
    for word in WORD.findall(text):
        check()
        tokens = list(word)
        after = [0] * len(word)
        while True:
            pairs = set(pairwise(tokens)) & ranks.keys()
            if not pairs:
                break
            best = min(pairs, key=ranks.__getitem__)
            merged = merge(tokens, best)
            for start in _starts(tokens) - _starts(merged):
                after[start] = ranks[best] + 1
            tokens = merged
        joined += after
    return np.array(joined, dtype=np.int64)


def _starts(tokens: list[str]) -> set[int]:
    """Return the places at which tokens start."""
    return set(np.cumsum([0, *map(len, tokens[:-1])]).tolist())


EXPERIMENT = Experiment(
    id="tokenizer",
    order=21,
    group="Around the model",
    tab="Tokenizer",
    title="A tokenizer learns its merges",
    parameters=Tokenizer,
    run=run,
    cost=cost,
    way_out="choose a shorter text or fewer merges",
)
