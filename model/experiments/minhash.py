"""MinHash: the similarity of two texts, estimated from short signatures.

The Jaccard similarity of two sets is |A ∩ B| / |A ∪ B|. Under a random hash function the smallest
hash of A equals that of B with exactly that probability, so the share of equal minima among k
independent functions estimates it with a standard error of √(J·(1 − J)/k). Broder 1997.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Literal

import numpy as np
from jaxtyping import UInt64
from pydantic import Field, model_validator

from headlight.model.cancellation import check
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters

MAX_CHARACTERS = 2_000
HASHES_PER_DIGEST = 8


class MinHash(Parameters):
    """The parameters of `minhash`."""

    first: str = Field(
        "The quick brown fox jumps over the lazy dog and runs away from the hunter.",
        max_length=MAX_CHARACTERS,
        description="It is compared with the second.",
    )
    second: str = Field(
        "The quick brown fox jumped over a lazy dog and ran away from the hunters.",
        max_length=MAX_CHARACTERS,
        description="It is compared with the first.",
    )
    unit: Literal["characters", "words"] = Field(
        "characters", description="Pieces that a shingle is made of."
    )
    shingle: int = Field(4, ge=1, le=20, description="Consecutive pieces in a shingle.")
    n_hashes: int = Field(128, ge=1, le=512, description="Hash functions of a signature.")

    @model_validator(mode="after")
    def _has_shingles(self) -> MinHash:
        for name in ("first", "second"):
            if not shingles(text := getattr(self, name), self.unit, self.shingle):
                pieces = _pieces(text, self.unit)
                raise ValueError(
                    f"{name} has {len(pieces)} {self.unit}, fewer than a shingle of {self.shingle}"
                )
        return self


def run(parameters: MinHash) -> Iterator[Arrays]:
    """Compute the shingles, the signatures, and both similarities."""
    sets = [
        shingles(text, parameters.unit, parameters.shingle)
        for text in (parameters.first, parameters.second)
    ]
    union = sorted(sets[0] | sets[1])
    is_in = np.array([[each in members for each in union] for members in sets])
    hashes = shingle_hashes(union, parameters.n_hashes, parameters.seed)
    signatures = np.stack([hashes[row].min(axis=0) for row in is_in])
    # The index of each minimum in the union; equal minima are minima of one shingle.
    minima = np.stack([np.flatnonzero(row)[hashes[row].argmin(axis=0)] for row in is_in])
    is_equal = signatures[0] == signatures[1]
    jaccard = is_in.all(axis=0).mean()
    counts = np.arange(1, parameters.n_hashes + 1)
    yield {
        "text": np.array(["first", "second"]),
        "shingle": np.array(union),
        "is_in": is_in,
        "hash": np.arange(parameters.n_hashes),
        "signature": np.array([[f"{value:016x}" for value in row] for row in signatures]),
        "minimum": minima,
        "is_equal": is_equal,
        "jaccard": jaccard,
        "estimate": is_equal.mean(),
        "running_estimate": is_equal.cumsum() / counts,
        "standard_error": np.sqrt(jaccard * (1 - jaccard) / counts),
    }


def shingles(text: str, unit: str, size: int) -> set[str]:
    """Return the distinct runs of `size` consecutive pieces, in lower case, spaces made single."""
    pieces = _pieces(text, unit)
    glue = " " if unit == "words" else ""
    return {glue.join(pieces[start : start + size]) for start in range(len(pieces) - size + 1)}


def _pieces(text: str, unit: str) -> list[str]:
    words = text.lower().split()
    return words if unit == "words" else list(" ".join(words))


def shingle_hashes(
    texts: list[str], n_hashes: int, seed: int
) -> UInt64[np.ndarray, "shingle hash"]:
    """Return 64-bit hashes of every shingle by independent functions.

    One keyed BLAKE2b digest (RFC 7693) gives eight of them. Python's own `hash` differs between
    processes.
    """
    digests = []
    for first in range(0, n_hashes, HASHES_PER_DIGEST):
        check()
        key = f"{seed} {first}".encode()
        joined = b"".join(hashlib.blake2b(each.encode(), key=key).digest() for each in texts)
        digests.append(np.frombuffer(joined, "<u8").reshape(len(texts), HASHES_PER_DIGEST))
    return np.concatenate(digests, axis=1)[:, :n_hashes]


def cost(parameters: MinHash) -> Cost:
    """Estimate the cost: 2 µs for each digest of eight hashes of 8 bytes."""
    n_shingles = len(parameters.first) + len(parameters.second)
    hashes = n_shingles * (parameters.n_hashes + HASHES_PER_DIGEST)
    return Cost(seconds=2e-6 * hashes / HASHES_PER_DIGEST + 0.01, megabytes=8e-6 * 4 * hashes)


EXPERIMENT = Experiment(
    id="minhash",
    order=30,
    group="Data and optimizers",
    tab="MinHash",
    title="Near-duplicate texts by MinHash",
    parameters=MinHash,
    run=run,
    cost=cost,
    way_out="choose shorter texts or fewer hash functions",
)
