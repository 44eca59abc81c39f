"""The IBM models, classic statistical word aligners, as baselines for cross-attention.

Each is trained on sentence pairs and aligns a gold standard. Words are those of `split_words`, in
lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headlight.lab import lab_libraries
from headlight.lab.evaluation.word_alignment import GoldPair, Link, split_words

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
