"""The IBM models, classic statistical word aligners, as baselines for cross-attention.

Each is trained on sentence pairs and aligns a gold standard. Words are those of `split_words`, in
lower case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from headlight.lab import lab_libraries
from headlight.lab.evaluation.word_alignment import GoldPair, Link, split_words

Words = list[str]

N_ITERATIONS = 5
"""Rounds of expectation maximisation."""


def ibm_model_1_links(
    sentences: Sequence[tuple[str, str]],
    gold: Sequence[GoldPair],
    *,
    n_iterations: int = N_ITERATIONS,
) -> list[set[Link]]:
    """Align the gold with IBM model 1, which ignores the order of the words.

    Brown et al. 1993, section 4.1, https://aclanthology.org/J93-2003/; trained and decoded by
    nltk. Every French word is linked to its most probable English word, or to none; an unknown
    word is linked to the last.

    Args:
        sentences: pairs of an English and a French text to train on; lower-cased.
        gold: the pairs to align; lower-cased, not trained on.
        n_iterations: rounds of expectation maximisation.

    Returns:
        The links of each gold pair.

    Raises:
        ImportError: nltk is not installed.
    """
    return _ibm_links("IBMModel1", sentences, gold, n_iterations)


def ibm_model_2_links(
    sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair]
) -> list[set[Link]]:
    """Align the gold with IBM model 2, which adds the positions of the words.

    As `ibm_model_1_links`; section 4.2. nltk first trains a model 1 for twice as many rounds, and
    links next to nothing in a pair of two lengths that no training pair had.
    """
    return _ibm_links("IBMModel2", sentences, gold, N_ITERATIONS)


def _ibm_links(
    name: str, sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair], n_iterations: int
) -> list[set[Link]]:
    with lab_libraries():
        from nltk import translate

    def aligned(english: Sequence[str], french: Sequence[str]) -> Any:
        return translate.AlignedSent([w.lower() for w in french], [w.lower() for w in english])

    corpus = [aligned(split_words(english), split_words(french)) for english, french in sentences]
    model = getattr(translate, name)(corpus, n_iterations)
    unseen = [aligned(pair.english_words, pair.french_words) for pair in gold]
    model.align_all(unseen)
    return [
        {(english, french) for french, english in pair.alignment if english is not None}
        for pair in unseen
    ]


# --- model 2 with a diagonal prior ----------------------------------------------------------------


def diagonal_links(
    sentences: Sequence[tuple[str, str]], gold: Sequence[GoldPair]
) -> list[set[Link]]:
    """Align the gold with `DiagonalModel` in both directions, and keep the links of both.

    Of the ways to join two directions (Och and Ney 2003, section 5, https://aclanthology.org/J03-1002/)
    the intersection has the lowest error rate here.

    Args:
        sentences: pairs of an English and a French text to train on; lower-cased.
        gold: the pairs to align; lower-cased, not trained on.

    Returns:
        The links of each gold pair.
    """
    pairs = [
        (_lower(split_words(english)), _lower(split_words(french))) for english, french in sentences
    ]
    turned = [(french, english) for english, french in pairs]
    to_french = DiagonalModel.train(pairs, N_ITERATIONS)
    to_english = DiagonalModel.train(turned, N_ITERATIONS)
    links = []
    for pair in gold:
        english, french = _lower(pair.english_words), _lower(pair.french_words)
        forward = to_french.align(english, french)
        backward = {(source, target) for target, source in to_english.align(french, english)}
        links.append(backward.intersection(forward))
    return links


def _lower(words: Iterable[str]) -> Words:
    return [word.lower() for word in words]


@dataclass
class DiagonalModel:
    """IBM model 2 whose prior prefers links near the diagonal (Dyer et al. 2013).

    https://aclanthology.org/N13-1073/. The target word j of n is linked to none with probability
    `NULL`, else to the source word i of m with a probability proportional to

        exp(−tension · |i/m − j/n|).

    Its translation probabilities have a symmetric Dirichlet prior `CONCENTRATION` (variational
    Bayes); the tension is fitted by gradient ascent in each round.
    """

    NULL = 0.08
    CONCENTRATION = 0.01
    UNKNOWN = 1e-9  # the translation probability of a pair of words that never met

    tension: float
    source_ids: dict[str, int]
    target_ids: dict[str, int]
    probabilities: dict[int, float]

    @classmethod
    def train(cls, pairs: Sequence[tuple[Words, Words]], n_iterations: int = 5) -> DiagonalModel:
        """Fit the model to pairs of a source's and a target's words."""
        source_ids: dict[str, int] = defaultdict(lambda: len(source_ids) + 1)  # 0 is not a word
        target_ids: dict[str, int] = defaultdict(lambda: len(target_ids))
        by_shape: dict[tuple[int, int], list[tuple[list[int], list[int]]]] = defaultdict(list)
        for source, target in pairs:
            ids = [source_ids[word] for word in source], [target_ids[word] for word in target]
            if all(ids):
                by_shape[len(source), len(target)].append(ids)
        n_targets = len(target_ids)
        keys = {shape: _keys(group, n_targets) for shape, group in by_shape.items()}
        known, flat = np.unique(
            np.concatenate([keys_of_shape.ravel() for keys_of_shape in keys.values()]),
            return_inverse=True,
        )
        ends = np.cumsum([keys_of_shape.size for keys_of_shape in keys.values()])
        places = {
            shape: part.reshape(keys_of_shape.shape).astype(np.int32)
            for (shape, keys_of_shape), part in zip(
                keys.items(), np.split(flat.ravel(), ends[:-1]), strict=True
            )
        }
        model = cls(4.0, dict(source_ids), dict(target_ids), {})
        table = np.full(len(known), 1.0 / n_targets)
        for _ in range(n_iterations):
            table = model._round(places, table, known // n_targets)
        model.probabilities = dict(zip(known.tolist(), table.tolist(), strict=True))
        return model

    def align(self, source: Words, target: Words) -> list[Link]:
        """Link each target word to its most probable source word, or to none."""
        prior = self._prior(len(source), len(target))
        sources = [0, *(self.source_ids.get(word, -1) for word in source)]
        links = []
        for place, word in enumerate(target):
            known = self.target_ids.get(word, -1)
            scores = [
                prior[place, index] * self._probability(source_id, known)
                for index, source_id in enumerate(sources)
            ]
            best = int(np.argmax(scores))
            if best:
                links.append((best - 1, place))
        return links

    def _probability(self, source: int, target: int) -> float:
        if min(source, target) < 0:
            return self.UNKNOWN
        return self.probabilities.get(source * len(self.target_ids) + target, self.UNKNOWN)

    def _round(
        self,
        places: dict[tuple[int, int], Int[np.ndarray, "pair target source"]],
        table: Float[np.ndarray, " known"],
        sources: Int[np.ndarray, " known"],
    ) -> Float[np.ndarray, " known"]:
        """Make one round of expectation maximisation: fit the tension, return the new table.

        Args:
            places: for the pairs of each shape, where each of their word pairs is in the table.
            table: the translation probability of each pair of words that met.
            sources: the source word of each of these pairs.
        """
        counts = np.zeros(len(table))
        observed, masses = 0.0, {}
        for (n_source, n_target), where in places.items():
            joint = table[where] * self._prior(n_source, n_target)
            joint /= joint.sum(axis=-1, keepdims=True)
            counts += np.bincount(where.ravel(), joint.ravel(), minlength=len(table))
            observed += (joint[..., 1:].sum(axis=0) * _distances(n_source, n_target)).sum()
            masses[n_source, n_target] = joint[..., 1:].sum(axis=(0, 2))
        self._fit_tension(observed, masses)
        totals = np.bincount(sources, counts)
        kinds = np.bincount(sources)
        smoothed = _digamma(counts + self.CONCENTRATION)
        smoothed -= _digamma(totals + self.CONCENTRATION * kinds)[sources]
        fitted: Float[np.ndarray, " known"] = np.exp(smoothed)
        return fitted

    def _fit_tension(
        self, observed: float, masses: dict[tuple[int, int], Float[np.ndarray, " target"]]
    ) -> None:
        """Move the tension towards where the prior's mean distance is the observed one."""
        total = sum(float(mass.sum()) for mass in masses.values())
        for _ in range(8):
            expected = sum(
                float(
                    (
                        (self._prior(*shape)[:, 1:] / (1 - self.NULL) * _distances(*shape)).sum(-1)
                        * mass
                    ).sum()
                )
                for shape, mass in masses.items()
            )
            step = 20 * (expected - observed) / total
            self.tension = min(max(self.tension + step, 0.1), 14.0)

    def _prior(self, n_source: int, n_target: int) -> Float[np.ndarray, "target source_with_null"]:
        """Return the prior of each link; index 0 of the last axis means no source word."""
        weights = np.exp(-self.tension * _distances(n_source, n_target))
        weights *= (1 - self.NULL) / weights.sum(axis=-1, keepdims=True)
        return np.concatenate([np.full((n_target, 1), self.NULL), weights], axis=-1)


def _distances(n_source: int, n_target: int) -> Float[np.ndarray, "target source"]:
    """Return |i/m − j/n|, with i and j counted from 1."""
    sources = np.arange(1, n_source + 1) / n_source
    targets = np.arange(1, n_target + 1) / n_target
    distances: Float[np.ndarray, "target source"] = np.abs(targets[:, None] - sources)
    return distances


def _digamma(values: Float[np.ndarray, " value"]) -> Float[np.ndarray, " value"]:
    digammas: Float[np.ndarray, " value"] = torch.special.digamma(torch.from_numpy(values)).numpy()
    return digammas


def _keys(
    pairs: Sequence[tuple[list[int], list[int]]], n_targets: int
) -> Int[np.ndarray, "pair target source"]:
    """Return a number for each pair of a target word and a source word, or none, of one shape."""
    sources = np.array([[0, *source] for source, _ in pairs], dtype=np.int64)
    targets = np.array([target for _, target in pairs], dtype=np.int64)
    keys: Int[np.ndarray, "pair target source"] = (
        sources[:, None, :] * n_targets + targets[:, :, None]
    )
    return keys
