"""Attention of one query, block by block, with a running maximum and a running sum.

For each block of keys with scores s and values v, from m = −∞, ℓ = 0 and o = 0:

    m′ = max(m, max s)      ℓ ← ℓ·e^(m−m′) + Σ e^(s−m′)      o ← o·e^(m−m′) + Σ e^(s−m′)·v

and at the end o/ℓ is the attention's output. Dao et al. 2022, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from headlight.model.experiments.experiment import Arrays, Experiment, Parameters
from headlight.model.experiments.scaling import softmax

D_VALUE = 3
LENGTHS = 2 ** np.arange(7, 18)
D_HEAD = 64
TILE = 128
"""Queries and keys in a block of the kernel whose memory is counted."""


class Flash(Parameters):
    """The parameters of `flash`."""

    block: int = Field(4, ge=1, le=64, description="Keys in a block.")
    n_keys: int = Field(16, ge=1, le=64, description="Keys, if their scores are drawn.")
    deviation: float = Field(
        2.0,
        ge=0.1,
        le=1000.0,
        description="Standard deviation of drawn scores. Above 200 the exponentials overflow "
        "unless the maximum is subtracted.",
    )
    scores: list[Annotated[float, Field(ge=-1e4, le=1e4)]] | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="Scores of your own, in place of drawn ones. null: they are drawn.",
    )


def run(parameters: Flash) -> Iterator[Arrays]:
    """Go through the blocks, and compare the result with the softmax of all scores."""
    rng = np.random.default_rng(parameters.seed)
    drawn = rng.normal(0, parameters.deviation, parameters.n_keys)
    scores = drawn if parameters.scores is None else np.array(parameters.scores)
    values = rng.normal(size=(len(scores), D_VALUE))
    weights = softmax(scores)
    context = weights @ values
    passes = attend_in_blocks(scores, values, parameters.block)
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(scores)
        naive = powers @ values / powers.sum()
    yield {
        "key": np.arange(len(scores)),
        "score": scores,
        "values": values,
        "weights": weights,
        "context": context,
        "naive_context": np.where(np.isfinite(naive), naive, np.nan),
        **passes,
        "error": np.abs(passes["output"] - context).max(axis=1),
        "length": LENGTHS,
        "whole_numbers": LENGTHS.astype(float) ** 2,
        "block_numbers": np.full(len(LENGTHS), TILE * TILE + TILE * (3 * D_HEAD + 2), float),
    }


def attend_in_blocks(scores: np.ndarray, values: np.ndarray, block: int) -> dict[str, np.ndarray]:
    """Return the state after each block, and the weights that the keys seen so far would have."""
    greatest, total, output = -np.inf, 0.0, np.zeros(values.shape[1])
    rows: dict[str, list[np.ndarray]] = {}
    starts = range(0, len(scores), block)
    for start in starts:
        stop = start + block
        part = scores[start:stop]
        raised = max(greatest, part.max())
        factor = np.exp(greatest - raised)  # 0 before the first block
        powers = np.exp(part - raised)
        total = total * factor + powers.sum()
        output = output * factor + powers @ values[start:stop]
        greatest = raised
        partial = np.zeros(len(scores))
        partial[:stop] = np.exp(scores[:stop] - greatest) / total
        row = {
            "step": min(stop, len(scores)),
            "block_greatest": part.max(),
            "greatest": greatest,
            "factor": factor,
            "total": total,
            "sum": output,
            "output": output / total,
            "partial_weights": partial,
        }
        for name, value in row.items():
            rows.setdefault(name, []).append(np.asarray(value))
    return {name: np.stack(parts) for name, parts in rows.items()}


EXPERIMENT = Experiment(
    id="flash",
    order=6,
    group="Attention",
    tab="Block by block",
    title="Attention block by block",
    parameters=Flash,
    run=run,
    way_out="choose fewer keys",
)
