"""Cleaning: the steps that keep or drop each document, and the figures of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from headlight.model.data.deduplication import (
    N_HASHES,
    SHINGLE,
    Deduplicator,
    Reservoir,
    measure_error,
)
from headlight.model.data.documents import Document

SAMPLE = 200
"""Documents from which pairs are made to measure the error of the estimate."""

N_EXAMPLES = 10


class Cleaning:
    """Judges documents one after another and counts what happens to them.

    Args:
        deduplicator: finds near-duplicates.
        seed: decides the sample on which the error of the estimate is measured.
        n_threads: that compute signatures; the result does not depend on it.
    """

    def __init__(self, deduplicator: Deduplicator, *, seed: int = 0, n_threads: int = 1) -> None:
        self._deduplicator, self._seed, self._n_threads = deduplicator, seed, n_threads
        self._before, self._after = _Size(), _Size()
        self._reasons: Counter[str] = Counter()
        self._sample = Reservoir(SAMPLE, seed)
        self._examples: list[dict[str, Any]] = []

    def run(self, documents: Iterable[Document]) -> Iterator[tuple[Document, dict | None]]:
        """Yield each document with the reason to drop it, None if it is kept."""
        judged = self._deduplicator.judge(documents, self._n_threads)
        for document, duplicate in judged:
            self._before.add(document)
            self._sample.add(document.text)
            if duplicate is None:
                self._after.add(document)
                yield document, None
                continue
            reason = duplicate.to_dict()
            self._reasons[reason["kind"]] += 1
            if len(self._examples) < N_EXAMPLES and duplicate.estimate is not None:
                self._examples.append({"source": str(document.place), **reason})
            yield document, reason

    def to_dict(self) -> dict[str, Any]:
        """The figures of the report, once all documents were judged."""
        deduplicator = self._deduplicator
        n_bands, n_rows = deduplicator.bands
        error = measure_error(self._sample.items, self._seed)
        return {
            "seed": self._seed,
            "before": self._before.to_dict(),
            "after": self._after.to_dict(),
            "dropped": dict(sorted(self._reasons.items())),
            "dedup": {
                "threshold": deduplicator.threshold,
                "shingle": SHINGLE,
                "permutations": N_HASHES,
                "bands": n_bands,
                "hashes_per_band": n_rows,
                "candidates": deduplicator.n_candidates,
                "verified": deduplicator.n_verified,
                "estimate": error.to_dict() if error else None,
                "examples": self._examples,
            },
        }


class _Size:
    """The size of some documents."""

    def __init__(self) -> None:
        self.documents = self.bytes = self.words = 0

    def add(self, document: Document) -> None:
        self.documents += 1
        self.bytes += document.n_bytes
        self.words += len(document.text.split())

    def to_dict(self) -> dict[str, int]:
        return {"documents": self.documents, "bytes": self.bytes, "words": self.words}
