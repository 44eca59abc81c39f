"""Near-duplicates by MinHash and locality-sensitive hashing, verified exactly.

A document is the set of its character 5-grams, in lower case and with single spaces. Two are
near-duplicates if the Jaccard similarity of their sets, |A ∩ B| / |A ∪ B|, reaches a threshold.
MinHash keeps 128 numbers of each set; the share of equal numbers estimates the similarity with a
standard error of √(J(1 − J)/128) (Broder 1997, https://doi.org/10.1109/SEQUEN.1997.666900). An
index over bands of these numbers names the candidates (Lee et al. 2022,
https://arxiv.org/abs/2107.06499). Both are datasketch's. A candidate counts only after its exact
similarity was computed from both texts, so a false positive is impossible; only the index can miss
a pair.

The first document of the corpus is kept and each later near-duplicate of a kept one is dropped.
Similarity is not transitive: if B is close to A and C is close to B only, A and C stay.

Signatures and index take 8.5 kB of memory a kept document, next to its text.
On 14,474 passages, 30 MB, it took 0.63 s of processor time a megabyte; an own hash of shingles in
NumPy took half as long, and a set of its own in SQLite 1 kB on disk, and both dropped the same 24.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from headlight.lab import lab_libraries
from headlight.lab.data.documents import Document

with lab_libraries():
    from datasketch import MinHash, MinHashLSH

N_HASHES = 128
SHINGLE = 5
"""Characters of a shingle."""

THRESHOLD = 0.8
# Weights of false candidates and of missed pairs in the choice of bands. The exact similarity
# removes false candidates: at 0.8 the weights give 17 bands of 7, which find 98 % of the pairs
# with J = 0.8 and 99.9 % of those with J = 0.85, and 0.02 % of those with J = 0.2.
_WEIGHTS = (0.02, 0.98)
# The estimate of a pair at the threshold is lower than this many standard errors below it with a
# probability of 3e-7, so that such a candidate need not be read.
_STANDARD_ERRORS = 5
_CHUNK = 4_096  # shingles whose permuted hashes take 2 MB


def normalize(text: str) -> str:
    """Return the text in lower case, with every run of white space as one space."""
    return " ".join(text.lower().split())


def shingles(text: str) -> set[str]:
    """Return the distinct 5-grams of a normalized text; a shorter text is its only shingle."""
    return {text[start : start + SHINGLE] for start in range(max(1, len(text) - SHINGLE + 1))}


def jaccard(first: set[str], second: set[str]) -> float:
    """Return |A ∩ B| / |A ∪ B| of two sets of shingles, which are never empty."""
    common = len(first & second)
    return common / (len(first) + len(second) - common)


def signature(of: set[str], seed: int) -> MinHash:
    """Return the MinHash of a set of shingles: 128 numbers, the same in every process.

    Args:
        of: the shingles.
        seed: decides the 128 permutations.
    """
    sketch = MinHash(N_HASHES, seed, hashfunc=crc32)
    encoded = [shingle.encode() for shingle in of]
    for start in range(0, len(encoded), _CHUNK):
        sketch.update_batch(encoded[start : start + _CHUNK])
    return sketch


class Duplicate(NamedTuple):
    """The reason to drop a document: a kept one that it is close to.

    ``estimate`` is the similarity by MinHash; None if the normalized texts are equal.
    """

    of: str
    jaccard: float
    estimate: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the reason as an object for JSON lines."""
        if self.estimate is None:
            return {"kind": "exact_duplicate", "of": self.of}
        return {
            "kind": "near_duplicate",
            "of": self.of,
            "jaccard": round(self.jaccard, 4),
            "estimate": round(self.estimate, 4),
        }


class Deduplicator:
    """Finds the documents that are near-duplicates of an earlier one that was kept.

    ``bands`` are the number of bands and the hashes in each.

    Args:
        threshold: the exact similarity from which a document is a near-duplicate, in (0, 1].
        seed: decides the permutations of MinHash.

    Raises:
        ValueError: the threshold is not in (0, 1].
    """

    def __init__(self, threshold: float = THRESHOLD, seed: int = 0) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold is {threshold}; it must be above 0 and at most 1")
        self.threshold, self.seed = threshold, seed
        self.n_candidates = self.n_verified = 0
        self._index = MinHashLSH(threshold=threshold, num_perm=N_HASHES, weights=_WEIGHTS)
        self.bands = self._index.b, self._index.r
        self._kept: list[tuple[Document, MinHash]] = []
        self._by_digest: dict[bytes, str] = {}
        spread = np.sqrt(threshold * (1 - threshold) / N_HASHES)
        self._least_estimate = threshold - _STANDARD_ERRORS * spread

    def judge(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Duplicate | None]]:
        """Judge documents in their order; None means that a document is kept.

        Args:
            documents: those that are kept are held.
        """
        for document in documents:
            yield document, self._judge(document)

    def _judge(self, document: Document) -> Duplicate | None:
        text = normalize(document.text)
        encoded = text.encode()
        digest = hashlib.blake2b(encoded, digest_size=16).digest()
        if (same := self._by_digest.get(digest)) is not None:
            return Duplicate(same, 1.0, None)
        mine = shingles(text)
        sketch = signature(mine, self.seed)
        if duplicate := self._closest(mine, sketch):
            return duplicate
        self._index.insert(len(self._kept), sketch)
        self._kept.append((document, sketch))
        self._by_digest[digest] = document.source
        return None

    def _closest(self, mine: set[str], sketch: MinHash) -> Duplicate | None:
        """Return the kept document of the highest similarity from the threshold on, else None."""
        best: Duplicate | None = None
        for number in sorted(self._index.query(sketch)):
            kept, other = self._kept[number]
            self.n_candidates += 1
            estimate = float(sketch.jaccard(other))
            if estimate < self._least_estimate:
                continue
            self.n_verified += 1
            exact = jaccard(mine, shingles(normalize(kept.text)))
            if exact >= self.threshold and (best is None or exact > best.jaccard):
                best = Duplicate(kept.source, exact, estimate)
        return best
