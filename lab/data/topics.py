"""Topics of a corpus by latent Dirichlet allocation (Blei, Ng and Jordan 2003).

A topic is a distribution over words, and a document a mixture of topics. The words are those of
scikit-learn's `CountVectorizer`. The mixtures are fitted online, a batch of documents at a time
(Hoffman, Blei and Bach 2010), so memory holds the vocabulary and one batch, not the corpus.

The fit only improves its start, and a random one often merges topics: of six planted ones 1 to 5
were found in 4 of 5 seeds. So the fit begins with the best of several starts, tried on a sample: a
factorization of the sample, and random ones. The best has the most coherent words (`coherence`).
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from headlight.lab import lab_libraries
from headlight.model.distributions import entropy

N_TOPICS = 12
LEAST_SHARE = 0.1
"""The share of a document above which a topic counts as one of its topics."""

N_WORDS = 10
"""Words that describe a topic."""

N_RANDOM_STARTS = 2
_MOST_SAMPLED = 2_048  # documents that starts are tried on
_BATCH = 256
_LEAST_PASSES, _LEAST_UPDATES = 4, 24
_VOCABULARY = 5_000
_MOST_COUNTED = 500_000  # words that are counted at once while the vocabulary is chosen
_MOST_DOCUMENTS = 0.4  # the share of documents above which a word says little
_WORD = re.compile(r"[^\W\d_]{3,}")

Texts = Callable[[], Iterable[str]]
"""A function that reads a corpus from its beginning: it is read several times."""


class TooLittleText(ValueError):
    """A corpus has too few documents or words for topics; the message counts them."""


class Mixture(NamedTuple):
    """The topics of one document.

    ``shares`` (topic) sum to 1.
    """

    shares: Float[np.ndarray, " topic"]

    @property
    def topics(self) -> list[int]:
        """The topics with more than a tenth of the document, the largest first."""
        order = np.argsort(-self.shares, kind="stable").tolist()
        return [number for number in order if self.shares[number] > LEAST_SHARE]

    @property
    def diversity(self) -> float:
        """The entropy of the shares over that of equal shares, log k: from 0 to 1."""
        return float(entropy(self.shares, "nats") / np.log(len(self.shares)))

    def to_dict(self) -> dict[str, Any]:
        """Return the topics as an object for JSON lines."""
        return {
            "topics": {str(number): round(float(self.shares[number]), 4) for number in self.topics},
            "n_topics": len(self.topics),
            "diversity": round(self.diversity, 4),
        }


class TopicModel:
    """Topics that are fitted to a corpus.

    Args:
        n_topics: their number, at least 2.
        seed: decides the start of the fit.

    Raises:
        ValueError: there are fewer than two topics.
    """

    def __init__(self, n_topics: int, seed: int = 0) -> None:
        if n_topics < 2:
            raise ValueError(f"there must be at least 2 topics, not {n_topics}")
        self.n_topics, self.seed = n_topics, seed

    def fit(self, texts: Texts) -> None:
        """Choose the vocabulary in one reading, and fit the topics in 4 to 24 more.

        Raises:
            TooLittleText: fewer than two documents, or fewer words in common than topics.
        """
        # scikit-learn takes a second to import.
        with lab_libraries():
            from sklearn.feature_extraction.text import CountVectorizer

        n_documents, words = vocabulary(texts())
        if n_documents < 2:
            raise TooLittleText(
                f"topics need at least 2 documents, and there is {n_documents or 'none'}; judge "
                "passages with --by passage, or give more text"
            )
        if len(words) < self.n_topics:
            raise TooLittleText(
                f"{n_documents} documents have {len(words)} words in common, too few for "
                f"{self.n_topics} topics; give more text, or ask for fewer"
            )
        self.words = words
        self._vectorizer = CountVectorizer(vocabulary=words, token_pattern=_WORD.pattern)
        every = -(-n_documents // _MOST_SAMPLED)
        sample = self._vectorizer.transform(islice(texts(), 0, None, every))
        start = self._best_start(sample)
        self._model = self._begun(start, n_documents, self.seed)
        for _ in range(_n_passes(n_documents)):
            for counts in self._counts(texts()):
                self._model.partial_fit(counts)
        self.coherence = coherence(self._describing(self._model.components_), sample)

    def _best_start(self, sample: Any) -> Float[np.ndarray, "topic word"] | None:
        """Fit every start to a sample, and return the components of the one with coherent topics.

        Returns:
            None: the sample has too few words in its documents.
        """
        starts = [factorized(sample, self.n_topics, self.seed), *[None] * N_RANDOM_STARTS]
        best, fitted = -np.inf, None
        for number, start in enumerate(starts):
            model = self._begun(start, sample.shape[0], self.seed + number)
            for _ in range(_n_passes(sample.shape[0])):
                for first in range(0, sample.shape[0], _BATCH):
                    model.partial_fit(sample[first : first + _BATCH])
            value = coherence(self._describing(model.components_), sample)
            if value > best:
                best, fitted = value, model.components_
        return fitted

    def _begun(
        self, start: Float[np.ndarray, "topic word"] | None, n_documents: int, seed: int
    ) -> Any:
        """Return a model of scikit-learn that begins with some components; None: random ones."""
        with lab_libraries():
            from scipy.special import psi
            from sklearn.decomposition import LatentDirichletAllocation

        model = LatentDirichletAllocation(
            self.n_topics,
            learning_method="online",
            learning_offset=10.0,
            batch_size=_BATCH,
            total_samples=n_documents,
            max_doc_update_iter=50,
            random_state=seed,
        )
        if start is not None:
            # scikit-learn has no parameter for a start: it is set after a first, empty update.
            model.partial_fit(np.zeros((1, len(self.words))))
            model.components_ = start.copy()
            expected = psi(start) - psi(start.sum(axis=1))[:, None]
            model.exp_dirichlet_component_ = np.exp(expected)
            model.n_batch_iter_ = 1
        return model

    def mixtures(self, texts: Iterable[str]) -> Iterator[Mixture]:
        """Yield the topics of each text; one without a word of the vocabulary has equal shares."""
        for counts in self._counts(texts):
            yield from map(Mixture, self._model.transform(counts))

    def _counts(self, texts: Iterable[str]) -> Iterator[Any]:
        """Yield the words of a batch of texts as a sparse matrix (text, word); one text is held."""
        iterator = iter(texts)
        while (counts := self._vectorizer.transform(islice(iterator, _BATCH))).shape[0]:
            yield counts

    @property
    def distributions(self) -> Float[np.ndarray, "topic word"]:
        """The words of each topic; rows sum to 1."""
        weights = self._model.components_
        shares: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
        return shares

    def top_words(self) -> list[list[str]]:
        """Return the words that describe each topic best, by relevance at λ = 0.6.

        Sievert and Shirley 2014, https://aclanthology.org/W14-3110: λ·log p(w|t) +
        (1 − λ)·log(p(w|t)/p(w)), so that a word of every topic describes none.
        """
        rows = self._describing(self._model.components_)
        return [[self.words[number] for number in row] for row in rows.tolist()]

    @staticmethod
    def _describing(weights: Float[np.ndarray, "topic word"]) -> Int[np.ndarray, "topic best"]:
        given = np.log(weights / weights.sum(axis=1, keepdims=True))
        overall = np.log(weights.sum(axis=0) / weights.sum())
        order = np.argsort(-(given - 0.4 * overall), axis=1, kind="stable")
        best: np.ndarray = order[:, :N_WORDS]
        return best

    def to_dict(self) -> dict[str, Any]:
        """Return the words of each topic and its place on the map."""
        places = topic_map(self.distributions)
        return {
            "seed": self.seed,
            "vocabulary": len(self.words),
            "coherence": round(self.coherence, 4),
            "topics": [
                {
                    "words": words,
                    "x": round(float(places[number, 0]), 4),
                    "y": round(float(places[number, 1]), 4),
                }
                for number, words in enumerate(self.top_words())
            ],
        }


def _n_passes(n_documents: int) -> int:
    return max(_LEAST_PASSES, -(-_LEAST_UPDATES // -(-n_documents // _BATCH)))


def factorized(counts: Any, n_topics: int, seed: int) -> Float[np.ndarray, "topic word"] | None:
    """Return a start for the topics: a non-negative factorization of tf-idf (Lee and Seung 1999).

    Args:
        counts: the words of each text, a sparse matrix (text, word).
        n_topics: their number.
        seed: of the factorization.

    Returns:
        Counts of the words of each topic, as many in all as there are; None: too few texts.
    """
    from sklearn.decomposition import NMF
    from sklearn.feature_extraction.text import TfidfTransformer

    if min(counts.shape) < n_topics:
        return None
    weights = TfidfTransformer().fit_transform(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a start need not have converged
        rows = NMF(n_topics, init="nndsvda", random_state=seed, max_iter=200).fit(weights)
    components = rows.components_
    totals = components.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, components / np.where(totals > 0, totals, 1), 1 / counts.shape[1])
    start: np.ndarray = shares * counts.sum() / n_topics + 1 / n_topics
    return start


def coherence(described: Int[np.ndarray, "topic best"], counts: Any) -> float:
    """Return the mean NPMI of the words that describe a topic, over pairs and topics: −1 to 1.

    log(p(a, b) / (p(a)·p(b))) / −log p(a, b), where p is the share of texts with the words; −1 for
    a pair that no text has (Bouma 2009; Röder, Both and Hinneburg 2015,
    https://doi.org/10.1145/2684822.2685324).

    Args:
        described: the words of each topic, by their numbers.
        counts: the words of each text, a sparse matrix (text, word).
    """
    is_there = (counts > 0).astype(np.float64)
    n_texts = counts.shape[0]
    values = []
    for words in described:
        held = is_there[:, words]
        together = (held.T @ held).toarray() / n_texts
        each = together.diagonal()
        first, second = np.triu_indices(len(words), 1)
        joint, apart = together[first, second], each[first] * each[second]
        known = joint > 0
        scores = np.full(len(joint), -1.0)
        information = -np.log(np.where(known, joint, 0.5))
        ratio = np.log(np.where(known, joint / np.where(apart > 0, apart, 1), 1))
        certain = information < 1e-12  # both words are in every text
        scores[known] = np.where(certain, 1, ratio / np.where(certain, 1, information))[known]
        values.append(scores.mean() if len(scores) else 0.0)
    return float(np.mean(values))


class TopicShares:
    """The topics of a corpus, added up document by document."""

    def __init__(self, n_topics: int) -> None:
        self._total = np.zeros(n_topics)
        self._counts: Counter[int] = Counter()
        self._texts = np.zeros(n_topics, int)
        self._diversity = 0.0
        self.n_documents = 0

    def add(self, mixture: Mixture) -> None:
        """Count one document."""
        self._total += mixture.shares
        self._counts[len(mixture.topics)] += 1
        self._texts[mixture.topics] += 1
        self._diversity += mixture.diversity
        self.n_documents += 1

    @property
    def empty(self) -> list[int]:
        """The topics that are more than a tenth of no document."""
        return [number for number, count in enumerate(self._texts.tolist()) if not count]

    @property
    def shares(self) -> list[float]:
        """The mean share of each topic over the documents."""
        return [float(share) for share in self._total / max(1, self.n_documents)]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the corpus.

        ``diversity`` is the mean of its documents, and ``corpus_diversity`` that of the mean
        shares. ``topics_per_document`` counts documents by their topics above a tenth.
        """
        return {
            "documents": self.n_documents,
            "diversity": round(self._diversity / max(1, self.n_documents), 4),
            "corpus_diversity": round(Mixture(np.array(self.shares)).diversity, 4),
            "topics_per_document": {str(n): count for n, count in sorted(self._counts.items())},
            "shares": [round(share, 4) for share in self.shares],
            "empty": self.empty,
        }


def vocabulary(texts: Iterable[str]) -> tuple[int, list[str]]:
    """Return the words that topics are made of, in alphabetical order, and the number of texts.

    A word has three letters or more, is none of scikit-learn's English stop words, and lies in at
    least two texts and at most 40 % of them. The 5,000 in most texts are taken. Of a stream with
    more different words than are counted at once, the rarest so far are forgotten (lossy counting,
    Manku and Motwani 2002).
    """
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    counts: Counter[str] = Counter()
    n_texts = 0
    for text in texts:
        n_texts += 1
        counts.update(set(_WORD.findall(text.lower())) - ENGLISH_STOP_WORDS)
        if len(counts) > _MOST_COUNTED:
            counts = _halved(counts)
    most = max(2, _MOST_DOCUMENTS * n_texts)
    common = [(-count, word) for word, count in counts.items() if 2 <= count <= most]
    return n_texts, sorted(word for _, word in sorted(common)[:_VOCABULARY])


def _halved(counts: Counter[str]) -> Counter[str]:
    """Forget the rarest words, so that at most half of those that may be counted are left."""
    n_words, least = len(counts), 1
    while n_words > _MOST_COUNTED // 2:
        least += 1
        n_words = sum(count >= least for count in counts.values())
    return Counter({word: count for word, count in counts.items() if count >= least})


def topic_map(distributions: Float[np.ndarray, "topic word"]) -> Float[np.ndarray, "topic 2"]:
    """Place topics in the plane, so that their distances are close to those between the topics.

    The distance is the square root of the Jensen–Shannon divergence, a metric; the places are
    found by classical scaling, as LDAvis does (Sievert and Shirley 2014).
    """
    with lab_libraries():
        from scipy.spatial.distance import pdist, squareform
        from sklearn.manifold import ClassicalMDS

    with np.errstate(invalid="ignore"):  # of equal topics the divergence may round below 0
        distances = np.nan_to_num(squareform(pdist(distributions, "jensenshannon")))
    if len(distances) < 3:
        return np.stack([distances[0], np.zeros(len(distances))], axis=1)
    with np.errstate(invalid="ignore"):  # of topics in one place or on one line
        places: np.ndarray = ClassicalMDS(n_components=2, metric="precomputed").fit_transform(
            distances
        )
    finite: np.ndarray = np.nan_to_num(places)
    return finite


def divergence(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the distance of two corpora by their shares of the topics.

    Returns:
        The Jensen–Shannon divergence in bits: 0 for equal shares, 1 for disjoint ones.
    """
    with lab_libraries():
        from scipy.spatial.distance import jensenshannon

    with np.errstate(invalid="ignore"):  # of equal shares it may round below 0
        distance = float(np.nan_to_num(jensenshannon(first, second, base=2)))
    return round(distance**2, 4)
