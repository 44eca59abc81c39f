"""Near-duplicates by MinHash and locality-sensitive hashing, verified exactly.

A document is the set of its character 5-grams, in lower case and with single spaces. Two are
near-duplicates if the Jaccard similarity of their sets, |A ∩ B| / |A ∪ B|, reaches a threshold.
MinHash keeps 128 numbers of each set; the share of equal numbers estimates the similarity with a
standard error of √(J(1 − J)/128) (Broder 1997, https://doi.org/10.1109/SEQUEN.1997.666900). An
index over bands of these numbers names the candidates (Lee et al. 2022,
https://arxiv.org/abs/2107.06499). A candidate counts only after its exact similarity was computed
from both texts, so a false positive is impossible; only the index can miss a pair.

The first document of the corpus is kept and each later near-duplicate of a kept one is dropped.
Similarity is not transitive: if B is close to A and C is close to B only, A and C stay.

The index lies on disk, in a temporary SQLite database of 1 kB a document that is kept, of which
64 MB are held in memory: datasketch's own takes 6.7 kB of memory, more than most passages have,
or a Redis server. Near-duplicates took 0.25 s of processor time a megabyte, measured on 20,000
documents of 2.4 kB. A million of them would thus take 10 minutes on one core and 1 GB of disk. If
two share a fifth of their shingles, the index names 220 false candidates for the last document.
Each costs one comparison of 128 numbers. ``tests/benchmarks/test_data.py`` measures and
plans it again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, UInt32

from headlight.lab import lab_libraries
from headlight.lab.data.documents import Document, Place, read_at

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
_SCHEME = "affine32"
_CHUNK = 1_024  # shingles whose permuted hashes, 512 kB, fit into the cache of a core
_LONG = 4_096  # shingles from which sorting out repeats takes less time than it saves
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio; Knuth 1998, section 6.4

_CACHE_BYTES = 2**26  # of the index in memory
_PIECE = 2**20  # characters that are hashed at once

_T = TypeVar("_T")
_R = TypeVar("_R")


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


def shingle_hashes(text: str) -> UInt32[np.ndarray, " shingle"]:
    """Return a 32-bit hash of each 5-gram of a normalized text; those of a long text are distinct.

    Python's own `hash` is salted and differs between processes; this one depends on the
    characters only. It mixes the code points one after another into 64 bits, by
    multiplication and shift, and keeps the upper half.
    """
    text = text.ljust(SHINGLE, "\0")
    n_shingles = len(text) - SHINGLE + 1
    pieces = [
        _mixed(text[start : start + _PIECE + SHINGLE - 1]) for start in range(0, n_shingles, _PIECE)
    ]
    hashes = np.concatenate(pieces)
    return np.unique(hashes) if n_shingles > _LONG else hashes


def _mixed(text: str) -> UInt32[np.ndarray, " shingle"]:
    points = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.uint64)
    n_shingles = len(points) - SHINGLE + 1
    mixed = np.zeros(n_shingles, np.uint64)
    for place in range(SHINGLE):
        mixed += points[place : place + n_shingles]
        mixed *= _GOLDEN
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(32)).astype(np.uint32)


def signature(text: str, seed: int) -> MinHash:
    """Return the MinHash of a normalized text: 128 numbers.

    The numbers are those of datasketch's own `update_batch`. It holds a permutation a column and
    converts the hashes to a list; with a permutation a row the same minima take a third of the
    time.

    Args:
        text: as `normalize` returns it.
        seed: decides the 128 permutations.
    """
    permutations = _permutations(seed)
    factors, shifts = permutations[:, :, None]
    hashes = _finalized(shingle_hashes(text))
    minima = np.full(N_HASHES, 2**32 - 1, np.uint32)
    permuted = np.empty((N_HASHES, min(_CHUNK, len(hashes))), np.uint32)
    for start in range(0, len(hashes), _CHUNK):
        chunk = hashes[start : start + _CHUNK]
        values = np.multiply(factors, chunk, out=permuted[:, : len(chunk)])
        values += shifts
        np.minimum(minima, values.min(axis=1), out=minima)
    return MinHash(seed=seed, hashvalues=minima, permutations=permutations, scheme=_SCHEME)


@cache
def _permutations(seed: int) -> UInt32[np.ndarray, "2 hash"]:
    """Return the factors and the shifts of datasketch's permutations h → a·h + b mod 2³²."""
    hashing = MinHash(num_perm=N_HASHES, seed=seed, scheme=_SCHEME)
    permutations: np.ndarray = hashing.permutations
    return permutations


def _finalized(hashes: UInt32[np.ndarray, " shingle"]) -> UInt32[np.ndarray, " shingle"]:
    """Return the finalizer of MurmurHash3, which datasketch applies before its permutations."""
    hashes = (hashes ^ hashes >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ hashes >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    finalized: np.ndarray = hashes ^ hashes >> np.uint32(16)
    return finalized


class Duplicate(NamedTuple):
    """The reason to drop a document: a kept one that it is close to.

    ``estimate`` is the similarity by MinHash; None if the normalized texts are equal.
    """

    of: Place
    jaccard: float
    estimate: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the reason as an object for JSON lines."""
        if self.estimate is None:
            return {"kind": "exact_duplicate", "of": str(self.of)}
        return {
            "kind": "near_duplicate",
            "of": str(self.of),
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
        index = MinHashLSH(threshold=threshold, num_perm=N_HASHES, weights=_WEIGHTS)
        self.bands = index.b, index.r
        self._kept = KeptDocuments(index.hashranges)
        spread = np.sqrt(threshold * (1 - threshold) / N_HASHES)
        self._least_estimate = threshold - _STANDARD_ERRORS * spread

    def judge(
        self, documents: Iterable[Document], n_threads: int = 1
    ) -> Iterator[tuple[Document, Duplicate | None]]:
        """Judge documents in their order; None means that a document is kept.

        Args:
            documents: each is held only until it is judged.
            n_threads: that compute signatures; the result does not depend on it.
        """
        for document, (text, sketch) in _mapped(self._prepare, documents, n_threads):
            yield document, self._judge(document.place, text, sketch)

    def _prepare(self, document: Document) -> tuple[str, MinHash]:
        text = normalize(document.text)
        return text, signature(text, self.seed)

    def _judge(self, place: Place, text: str, sketch: MinHash) -> Duplicate | None:
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if (same := self._kept.equal(digest)) is not None:
            return Duplicate(same, 1.0, None)
        if duplicate := self._closest(text, sketch):
            return duplicate
        self._kept.add(place, digest, sketch.hashvalues)
        return None

    def _closest(self, text: str, sketch: MinHash) -> Duplicate | None:
        """Return the kept document of the highest similarity from the threshold on, else None."""
        mine: set[str] | None = None
        best: Duplicate | None = None
        for place, hashes in self._kept.candidates(sketch.hashvalues):
            self.n_candidates += 1
            estimate = float((hashes == sketch.hashvalues).mean())
            if estimate < self._least_estimate:
                continue
            self.n_verified += 1
            mine = shingles(text) if mine is None else mine
            exact = jaccard(mine, shingles(normalize(read_at(place))))
            if exact >= self.threshold and (best is None or exact > best.jaccard):
                best = Duplicate(place, exact, estimate)
        return best


class KeptDocuments:
    """The places and signatures of documents, found by what a band of hashes has in common.

    Args:
        ranges: the first hash of each band, and that after its last.

    Raises:
        OSError: from any method, if the disk is full.
    """

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._ranges = ranges
        # SQLite deletes a database without a name when it is closed.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(f"""
            PRAGMA journal_mode = OFF;
            PRAGMA cache_size = -{_CACHE_BYTES >> 10};
            CREATE TABLE kept (
                number INTEGER PRIMARY KEY, digest BLOB UNIQUE, hashes BLOB,
                path TEXT, "start" INTEGER, "end" INTEGER, line INTEGER
            );
            CREATE TABLE bands (key INTEGER, number INTEGER, PRIMARY KEY (key, number))
            WITHOUT ROWID;
            BEGIN;
        """)

    def add(self, place: Place, digest: bytes, hashes: UInt32[np.ndarray, " hash"]) -> None:
        """Keep a document under the digest of its text and its signature."""
        path, *numbers = place
        row = (digest, hashes.tobytes(), str(path), *numbers)
        number = self._execute("INSERT INTO kept VALUES (NULL, ?, ?, ?, ?, ?, ?)", row).lastrowid
        for key in self._keys(hashes):
            self._execute("INSERT INTO bands VALUES (?, ?)", (key, number))

    def equal(self, digest: bytes) -> Place | None:
        """Return the document whose text has a digest; None if there is none."""
        row = self._execute(
            'SELECT path, "start", "end", line FROM kept WHERE digest = ?', (digest,)
        ).fetchone()
        return row and Place(Path(row[0]), *row[1:])

    def candidates(
        self, hashes: UInt32[np.ndarray, " hash"]
    ) -> Iterator[tuple[Place, UInt32[np.ndarray, " hash"]]]:
        """Yield the documents with an equal band and their signatures, in the order of keeping."""
        rows = self._execute(
            'SELECT path, "start", "end", line, hashes FROM kept WHERE number IN '
            "(SELECT number FROM bands WHERE key IN (SELECT value FROM json_each(?))) "
            "ORDER BY number",
            (json.dumps(self._keys(hashes)),),
        )
        for path, *numbers, packed in rows:
            yield Place(Path(path), *numbers), np.frombuffer(packed, np.uint32)

    def _keys(self, hashes: UInt32[np.ndarray, " hash"]) -> list[int]:
        """Return a key of 64 bits for each band; it depends on the band's place too."""
        return [
            int.from_bytes(
                hashlib.blake2b(
                    hashes[start:end].tobytes(), digest_size=8, salt=start.to_bytes(2)
                ).digest(),
                signed=True,
            )
            for start, end in self._ranges
        ]

    def _execute(self, statement: str, values: Sequence[Any]) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.OperationalError as error:
            raise OSError(
                f"the index of near-duplicates cannot be written: {error}; TMPDIR names a folder "
                "with more space"
            ) from error


def _mapped(
    function: Callable[[_T], _R], items: Iterable[_T], n_threads: int
) -> Iterator[tuple[_T, _R]]:
    """Yield each item with its result, in order; at most two items a thread are held."""
    if n_threads <= 1:
        for item in items:
            yield item, function(item)
        return
    waiting: deque[tuple[_T, Future[_R]]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for item in items:
            waiting.append((item, pool.submit(function, item)))
            if len(waiting) > 2 * n_threads:
                oldest, result = waiting.popleft()
                yield oldest, result.result()
        while waiting:
            oldest, result = waiting.popleft()
            yield oldest, result.result()


# --- the error of the estimate --------------------------------------------------------------------

N_PAIRS = 1_000
MAX_CHARACTERS = 20_000
"""Characters of a text in a pair."""


@dataclass(frozen=True)
class EstimateError:
    """Pairs of texts with their exact similarity and its estimate."""

    jaccard: Float[np.ndarray, " pair"]
    estimate: Float[np.ndarray, " pair"]

    @property
    def bound(self) -> Float[np.ndarray, " pair"]:
        """The standard error of each estimate by theory, √(J(1 − J)/128)."""
        errors: np.ndarray = np.sqrt(self.jaccard * (1 - self.jaccard) / N_HASHES)
        return errors

    def to_dict(self) -> dict[str, Any]:
        """Return the root mean squares of error and bound, also by tenth, and the points."""
        error, bound = self.estimate - self.jaccard, self.bound
        tenth = np.minimum((self.jaccard * 10).astype(int), 9)
        return {
            "pairs": len(error),
            "error": _root_mean_square(error),
            "bound": _root_mean_square(bound),
            "bias": round(float(error.mean()), 5),
            "within_two_bounds": round(float((np.abs(error) <= 2 * bound + 1e-12).mean()), 4),
            "by_tenth": [
                {
                    "from": number / 10,
                    "pairs": int((tenth == number).sum()),
                    "error": _root_mean_square(error[tenth == number]),
                    "bound": _root_mean_square(bound[tenth == number]),
                }
                for number in range(10)
                if (tenth == number).any()
            ],
            "points": np.stack([self.jaccard, self.estimate], axis=1).round(3).tolist(),
        }


def _root_mean_square(values: Float[np.ndarray, " pair"]) -> float:
    return round(float(np.sqrt(np.square(values).mean())), 5)


def measure_error(texts: list[str], seed: int = 0) -> EstimateError | None:
    """Compare estimate and exact similarity on `N_PAIRS` pairs made from a corpus.

    Random documents are nearly all unlike. Each pair is therefore a document A, and the beginning
    of A continued by the end of another; the share of A runs from 0 to 1.

    Returns:
        The pairs; None if there are fewer than two texts.
    """
    if len(texts) < 2:
        return None
    random = np.random.default_rng(seed)
    clean = [normalize(text[:MAX_CHARACTERS]) for text in texts]
    chosen = [random.choice(len(clean), 2, replace=False) for _ in range(N_PAIRS)]
    shares = np.linspace(0, 1, N_PAIRS)
    exact, estimates = np.empty(N_PAIRS), np.empty(N_PAIRS)
    # Text by text: the shingles of one text of 20,000 characters take 2 MB.
    for number, first in enumerate(clean):
        pairs = [pair for pair, (text, _) in enumerate(chosen) if text == number]
        its_shingles, sketch = shingles(first), signature(first, seed)
        for pair in pairs:
            second, share = clean[chosen[pair][1]], shares[pair]
            mixed = first[: round(share * len(first))] + second[round(share * len(second)) :]
            exact[pair] = jaccard(its_shingles, shingles(mixed))
            estimates[pair] = sketch.jaccard(signature(mixed, seed))
    return EstimateError(exact, estimates)


class Reservoir:
    """A uniform sample of a stream (Vitter 1985, algorithm R)."""

    def __init__(self, size: int, seed: int) -> None:
        self.items: list[str] = []
        self._size, self._n_seen = size, 0
        self._random = np.random.default_rng(seed)

    def add(self, item: str) -> None:
        """Offer one item of the stream."""
        self._n_seen += 1
        if len(self.items) < self._size:
            self.items.append(item)
        elif (place := int(self._random.integers(self._n_seen))) < self._size:
            self.items[place] = item
