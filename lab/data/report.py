"""Cleaning: the steps that keep or drop each document, and the figures of a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from headlight.lab.data.deduplication import N_HASHES, SHINGLE, Deduplicator
from headlight.lab.data.documents import Document, Unusable
from headlight.model.text_quality.classifier import Classifier

N_EXAMPLES = 10

LEAST_QUALITY = 0.5
"""The probability of being good below which a document is dropped."""


class Judged(NamedTuple):
    """A document, the reason to drop it, None if it is kept, and its probability of being good.

    The probability is None if it was dropped before.
    """

    document: Document
    reason: dict[str, Any] | None
    quality: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the document as an object for JSON lines."""
        line = self.document.to_dict()
        if self.quality is not None:
            line["quality"] = round(self.quality, 4)
        return line if self.reason is None else line | {"reason": self.reason}


class Cleaning:
    """Judges documents one after another and counts what happens to them.

    Args:
        deduplicator: finds near-duplicates.
        classifier: judges the documents that are left.
        least_quality: the probability of being good below which one is dropped.
    """

    def __init__(
        self,
        deduplicator: Deduplicator,
        classifier: Classifier,
        *,
        least_quality: float = LEAST_QUALITY,
    ) -> None:
        self._unusable: Counter[str] = Counter()
        self._deduplicator, self._classifier = deduplicator, classifier
        self._least_quality = least_quality
        self._before, self._after = _Size(), _Size()
        self._reasons: Counter[str] = Counter()
        self._duplicates: list[dict[str, Any]] = []

    def run(self, documents: Iterable[Document]) -> Iterator[Judged]:
        """Judge documents in their order."""
        for document, duplicate in self._deduplicator.judge(documents):
            self._before.add(document)
            reason, quality = None, None
            if duplicate is not None:
                reason = duplicate.to_dict()
                self._remember(document, reason)
            else:
                quality = self._classifier.score(document.text)
                if quality < self._least_quality:
                    reason = {"kind": "low_quality", "quality": round(quality, 4)}
            if reason is None:
                self._after.add(document)
            else:
                self._reasons[reason["kind"]] += 1
            yield Judged(document, reason, quality)

    def note_unusable(self, unusable: Unusable) -> None:
        """Count something that could not be read as a document."""
        self._unusable[unusable.kind] += 1

    def _remember(self, document: Document, reason: dict[str, Any]) -> None:
        if "jaccard" in reason and len(self._duplicates) < N_EXAMPLES:
            self._duplicates.append({"source": document.source, **reason})

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the report, once all documents were judged."""
        return {
            "before": self._before.to_dict(),
            "after": self._after.to_dict(),
            "dropped": dict(sorted(self._reasons.items())),
            "unusable": dict(sorted(self._unusable.items())),
            "dedup": self._dedup(self._deduplicator),
            "quality": self._quality(self._classifier),
        }

    def _dedup(self, deduplicator: Deduplicator) -> dict[str, Any]:
        n_bands, n_rows = deduplicator.bands
        return {
            "threshold": deduplicator.threshold,
            "seed": deduplicator.seed,
            "shingle": SHINGLE,
            "permutations": N_HASHES,
            "bands": n_bands,
            "hashes_per_band": n_rows,
            "candidates": deduplicator.n_candidates,
            "verified": deduplicator.n_verified,
            "examples": self._duplicates,
        }

    def _quality(self, classifier: Classifier) -> dict[str, Any]:
        return {
            "least_quality": self._least_quality,
            "weights": dict(zip(classifier.features, classifier.weights, strict=True)),
            "classifier": classifier.figures,
            "about": classifier.about,
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


def card_figures(figures: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Return the part of a report that a model's card keeps.

    Args:
        figures: as ``report.json`` has them.
        command: the command that made the report.
    """
    kept = ("by", "before", "after", "dropped")
    return {"command": command} | {name: figures[name] for name in kept}
