"""Texts of different lengths in one pass: rows filled up to the longest, and which go together.

A row that is filled up gives the numbers that it gives alone: no token of a causal row sees what
comes after it, and `is_token` hides the filling from everything else that attends. The experts
route it like any token, each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

PASS_TOKENS = 64
"""What a pass costs before it reads a token, in tokens.

Measured on the default model: a pass over a text of 5 tokens takes twice as long as adding 64
tokens to a pass. Padding that costs less than this is worth a pass saved.
"""

FILLING = 0


class Rows(NamedTuple):
    """Token ids (row, token), filled up at the end; ``is_token`` None: all are as long."""

    ids: Int[Tensor, "row token"]
    is_token: Bool[Tensor, "row token"] | None


def fill_up(texts: Sequence[Sequence[int]], device: torch.device | None = None) -> Rows:
    """Texts as rows of one length: that of the longest.

    Args:
        texts: the ids of each; at least one text.
        device: where the rows are wanted.
    """
    lengths = [len(text) for text in texts]
    longest = max(lengths)
    ids = [[*text, *[FILLING] * (longest - len(text))] for text in texts]
    rows = torch.tensor(ids, device=device)
    if min(lengths) == longest:
        return Rows(rows, None)
    ends = torch.tensor(lengths, device=device)[:, None]
    return Rows(rows, torch.arange(longest, device=device) < ends)


def share_out(
    lengths: Sequence[int], sizes: Sequence[int] | None = None, max_size: int | None = None
) -> list[list[int]]:
    """Which texts to read in one pass, so that all passes together are cheapest.

    A pass costs `PASS_TOKENS` and its rows, each as long as its longest. Texts of similar lengths
    go together, so of all ways to cut the texts, sorted by length, the cheapest is looked for.

    Args:
        lengths: the tokens of each text.
        sizes: what a pass holds for each text, in any unit; None: its tokens.
        max_size: the most that a pass of several texts may hold, where every row is as large as
            the largest; None: anything.

    Returns:
        The indices of the texts of each pass, shortest text first; every index once.
    """
    sizes = lengths if sizes is None else sizes
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    # cheapest[end]: the cost of the first `end` texts, and where their last pass begins.
    cheapest: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(order) + 1):
        choices = []
        largest = 0
        for begin in reversed(range(end)):
            n_rows, largest = end - begin, max(largest, sizes[order[begin]])
            if max_size is not None and n_rows > 1 and n_rows * largest > max_size:
                break
            cost = PASS_TOKENS + n_rows * lengths[order[end - 1]]
            choices.append((cheapest[begin][0] + cost, begin))
        cheapest.append(min(choices))
    passes, end = [], len(order)
    while end:
        begin = cheapest[end][1]
        passes.append(order[begin:end])
        end = begin
    return passes[::-1]
