"""Topics of a corpus by latent Dirichlet allocation (Blei, Ng and Jordan 2003).

A topic is a distribution over words, and a document a mixture of topics. The words are those of
scikit-learn's `CountVectorizer`. The mixtures are fitted online, a batch of documents at a time
(Hoffman, Blei and Bach 2010), so memory holds the vocabulary and one batch, not the corpus.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from headlight.model.lab import lab_libraries

N_TOPICS = 12
LEAST_SHARE = 0.1
"""The share of a document above which a topic counts as one of its topics."""

N_WORDS = 10
"""Words that describe a topic."""

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
        shares = self.shares[self.shares > 0]
        return float(-(shares * np.log(shares)).sum() / np.log(len(self.shares)))

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
            from sklearn.decomposition import LatentDirichletAllocation
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
        self._model = LatentDirichletAllocation(
            self.n_topics,
            learning_method="online",
            learning_offset=10.0,
            batch_size=_BATCH,
            total_samples=n_documents,
            max_doc_update_iter=50,
            random_state=self.seed,
        )
        n_batches = -(-n_documents // _BATCH)
        for _ in range(max(_LEAST_PASSES, -(-_LEAST_UPDATES // n_batches))):
            for counts in self._counts(texts()):
                self._model.partial_fit(counts)

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
        given = np.log(self.distributions)
        weights = self._model.components_
        overall = np.log(weights.sum(axis=0) / weights.sum())
        relevance = given - 0.4 * overall
        order = np.argsort(-relevance, axis=1, kind="stable")[:, :N_WORDS]
        return [[self.words[number] for number in row] for row in order.tolist()]

    def to_dict(self) -> dict[str, Any]:
        """Return the words of each topic and its place on the map."""
        places = topic_map(self.distributions)
        return {
            "seed": self.seed,
            "vocabulary": len(self.words),
            "topics": [
                {
                    "words": words,
                    "x": round(float(places[number, 0]), 4),
                    "y": round(float(places[number, 1]), 4),
                }
                for number, words in enumerate(self.top_words())
            ],
        }


class TopicShares:
    """The topics of a corpus, added up document by document."""

    def __init__(self, n_topics: int) -> None:
        self._total = np.zeros(n_topics)
        self._counts: Counter[int] = Counter()
        self._diversity = 0.0
        self.n_documents = 0

    def add(self, mixture: Mixture) -> None:
        """Count one document."""
        self._total += mixture.shares
        self._counts[len(mixture.topics)] += 1
        self._diversity += mixture.diversity
        self.n_documents += 1

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

    distances = squareform(pdist(distributions, "jensenshannon"))
    if len(distances) < 3:
        return np.stack([distances[0], np.zeros(len(distances))], axis=1)
    places: np.ndarray = ClassicalMDS(n_components=2, metric="precomputed").fit_transform(distances)
    return places


def divergence(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the distance of two corpora by their shares of the topics.

    Returns:
        The Jensen–Shannon divergence in bits: 0 for equal shares, 1 for disjoint ones.
    """
    with lab_libraries():
        from scipy.spatial.distance import jensenshannon

    return round(float(jensenshannon(first, second, base=2)) ** 2, 4)
