"""Topics: found again if they were planted, with the mixtures of scikit-learn's own model."""

import math
import random

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import CountVectorizer

from headlight.lab.data import topics
from headlight.lab.data.topics import (
    Mixture,
    TopicModel,
    TopicShares,
    coherence,
    divergence,
    topic_map,
    vocabulary,
)

PLANTED = {
    "sea": ["ship", "sail", "captain", "island", "wave", "harbour", "sailor", "storm"],
    "farm": ["cow", "barn", "farmer", "meadow", "hen", "plough", "harvest", "field"],
    "court": ["king", "queen", "castle", "crown", "throne", "prince", "knight", "palace"],
}


def texts_about(names, n_texts, rng, n_words=40):
    return [
        " ".join(rng.choices([word for name in names for word in PLANTED[name]], k=n_words))
        for _ in range(n_texts)
    ]


@pytest.fixture(scope="module")
def corpus():
    rng = random.Random(0)
    return [text for name in PLANTED for text in texts_about([name], 20, rng)]


@pytest.fixture(scope="module")
def model(corpus):
    fitted = TopicModel(3, seed=0)
    fitted.fit(lambda: corpus)
    return fitted


def test_planted_topics_are_found(model, corpus):
    learned = {frozenset(words[:8]) for words in model.top_words()}
    assert learned == {frozenset(words) for words in PLANTED.values()}
    mixtures = list(model.mixtures(corpus))
    assert all(len(mixture.topics) == 1 for mixture in mixtures)
    assert len({mixture.topics[0] for mixture in mixtures[:20]}) == 1


def test_the_model_is_scikit_learns(corpus, model):
    """One batch a pass makes the online fit that of scikit-learn's own `partial_fit`.

    Both begin with the start that was chosen.
    """
    n_texts, words = vocabulary(corpus)
    counts = CountVectorizer(vocabulary=words).transform(corpus)
    reference = LatentDirichletAllocation(
        3,
        learning_offset=10.0,
        total_samples=n_texts,
        max_doc_update_iter=50,
        random_state=0,
    )
    start = model._best_start(counts)
    reference.partial_fit(np.zeros((1, len(words))))
    reference.components_, reference.n_batch_iter_ = start.copy(), 1
    expected = digamma(start) - digamma(start.sum(axis=1, keepdims=True))
    reference.exp_dirichlet_component_ = np.exp(expected)
    for _ in range(24):
        reference.partial_fit(counts)
    mine = np.stack([mixture.shares for mixture in model.mixtures(corpus)])
    assert np.allclose(mine, reference.transform(counts), atol=1e-6)


def test_shares_sum_to_one_and_the_same_seed_gives_the_same(model, corpus):
    mixtures = list(model.mixtures(corpus))
    assert np.allclose([mixture.shares.sum() for mixture in mixtures], 1)
    assert np.allclose(model.distributions.sum(axis=1), 1)
    again, other = TopicModel(3, seed=0), TopicModel(3, seed=1)
    for refitted in (again, other):
        refitted.fit(lambda: corpus[::9])
    repeated = TopicModel(3, seed=0)
    repeated.fit(lambda: corpus[::9])
    assert np.array_equal(repeated.distributions, again.distributions)
    assert not np.array_equal(other.distributions, again.distributions)


def test_diversity_is_entropy_over_that_of_equal_shares():
    assert Mixture(np.full(4, 0.25)).diversity == pytest.approx(1)
    assert Mixture(np.array([1.0, 0, 0, 0])).diversity == 0
    assert Mixture(np.array([0.5, 0.5, 0, 0])).diversity == pytest.approx(math.log(2) / math.log(4))


def test_shares_are_means_over_documents():
    shares = TopicShares(2)
    for row in ([0.9, 0.1], [0.5, 0.5]):
        shares.add(Mixture(np.array(row)))
    assert shares.shares == pytest.approx([0.7, 0.3])
    assert shares.to_dict()["topics_per_document"] == {"1": 1, "2": 1}


def test_the_divergence_of_equal_corpora_is_0_and_of_disjoint_ones_1():
    assert divergence([0.5, 0.5], [0.5, 0.5]) == 0
    assert divergence([1, 0], [0, 1]) == 1


def test_near_topics_are_near_on_the_map():
    rows = np.array([[0.5, 0.5, 0, 0], [0.45, 0.55, 0, 0], [0, 0, 0.5, 0.5]])
    places = topic_map(rows)
    distance = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert places.shape == (3, 2)
    assert distance[0, 1] < 0.1 * distance[0, 2]
    assert topic_map(rows[:2]).shape == (2, 2)


def test_words_of_one_text_or_of_most_are_left_out():
    n_texts, words = vocabulary(["fox hen", "fox hen", "fox cow cow", "fox the 123", "dog dog"])
    assert (n_texts, words) == (5, ["hen"])


def test_the_words_counted_at_once_are_bounded_and_the_common_ones_are_kept(monkeypatch):
    monkeypatch.setattr(topics, "_MOST_COUNTED", 100)
    letters = "abcdefghijklmnopqrst"
    rare = [f"{a}{b}{c}" for a in letters for b in letters for c in "xyz"]
    texts = [f"{word} {rare[n // 3]}" for n, word in enumerate(["fox", "hen", "cow"] * 400)]
    sizes, halved = [], topics._halved

    def note(counts):
        sizes.append(len(counts))
        return halved(counts)

    monkeypatch.setattr(topics, "_halved", note)
    assert {"fox", "hen", "cow"} <= set(vocabulary(texts)[1])
    assert 1 < len(sizes) < 12
    assert max(sizes) <= 102


def test_too_few_documents_words_or_topics_are_errors():
    with pytest.raises(ValueError, match="at least 2 topics"):
        TopicModel(1)
    with pytest.raises(ValueError, match="there is 1; judge passages with --by passage"):
        TopicModel(2).fit(lambda: ["one text"])
    with pytest.raises(ValueError, match="2 documents have 0 words in common"):
        TopicModel(2).fit(lambda: ["one text", "another"])


def six_topics(n_texts):
    """Return texts about one of six topics each, with as many words that all share."""
    rng = random.Random(1)
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    words = list(dict.fromkeys("".join(rng.choices(syllables, k=3)) for _ in range(800)))[:600]
    planted = [words[60 * number : 60 * (number + 1)] for number in range(6)]
    texts = [
        " ".join(
            rng.choice(words[360:])
            if (chance := rng.random()) < 0.45
            else rng.choice(rng.choice(planted))
            if chance < 0.6
            else planted[number % 6][min(int(rng.expovariate(1 / 15)), 59)]
            for _ in range(80)
        )
        for number in range(n_texts)
    ]
    return texts, [set(each) for each in planted]


@pytest.mark.parametrize("seed", [0, 2])
def test_six_topics_are_found_from_seeds_whose_random_start_merges_them(seed):
    texts, planted = six_topics(120)
    model = TopicModel(6, seed)
    model.fit(lambda: texts)
    described = model.top_words()
    assert all(any(len(each & {*words}) >= 8 for words in described) for each in planted)


def test_words_that_occur_together_are_coherent():
    counts = CountVectorizer(vocabulary=["a1x", "b1x", "c1x"]).transform(
        ["a1x b1x", "a1x b1x", "c1x", "c1x"]
    )
    assert coherence(np.array([[0, 1]]), counts) == pytest.approx(1)
    assert coherence(np.array([[0, 2]]), counts) == -1


def test_a_topic_of_no_document_is_said():
    shares = TopicShares(3)
    shares.add(Mixture(np.array([0.95, 0.05, 0.0])))
    shares.add(Mixture(np.array([0.5, 0.05, 0.45])))
    assert shares.to_dict()["empty"] == [1]
