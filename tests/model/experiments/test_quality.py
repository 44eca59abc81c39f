"""The score as a sum, and the topics against scikit-learn's factorisation."""

from collections import Counter

import numpy as np
import pytest
from sklearn.decomposition import NMF

from headlight.model.experiments import quality
from headlight.model.experiments.quality import EXPERIMENT
from headlight.model.text_quality.classifier import read_classifier

PILE = EXPERIMENT.validate({}).pile
TEXTS = [text.strip() for text in PILE.split("|")]


def test_the_contributions_and_the_intercept_are_the_log_odds_of_the_classifier():
    result = EXPERIMENT.result(
        {"text": "“Don’t go,” he said. The king’s son went.", "other": "x <b>"}
    )
    log_odds = result["contribution"].data.sum(1) + result["intercept"].data
    probability = result["probability"].data
    assert log_odds == pytest.approx(np.log(probability / (1 - probability)), rel=1e-6)
    assert probability[0] == pytest.approx(
        read_classifier().score("“Don’t go,” he said. The king’s son went.")
    )
    shipped = read_classifier()
    place = shipped.features.index("tags and entities (log)")
    standard = (result["amount"].data[1, place] - shipped.mean[place]) / shipped.scale[place]
    expected = shipped.slope * shipped.weights[place] * min(standard, 8)
    assert result["contribution"].data[1, place] == pytest.approx(expected)


@pytest.mark.parametrize("n_topics", [2, 3])
def test_the_topics_are_as_likely_as_those_of_an_nmf_and_divide_each_text(n_topics):
    counted = [Counter(quality.words_of(text)) for text in TEXTS]
    words = sorted(set().union(*counted))
    counts = np.array([[float(of[word]) for word in words] for of in counted])
    fits = []
    for seed in range(20):
        nmf = NMF(n_topics, beta_loss="kullback-leibler", solver="mu", init="random", max_iter=400,
                  tol=0, random_state=seed)  # fmt: skip
        fitted = nmf.fit_transform(counts) @ nmf.components_
        fitted *= counts.sum(1, keepdims=True) / fitted.sum(1, keepdims=True)
        fits.append((counts * np.log(fitted / fitted.sum(1, keepdims=True) + 1e-12)).sum())
    best = quality.find_topics(counts, n_topics, seed=0).log_likelihood.max()
    assert best >= max(fits) - 0.1
    result = EXPERIMENT.result({"n_topics": n_topics})
    assert result["share"].data.sum(1) == pytest.approx(np.ones(len(TEXTS)))
    sizes = counts.sum(1) / counts.sum()
    assert result["pile_share"].data == pytest.approx(sizes @ result["share"].data)


def test_texts_of_one_kind_share_a_topic_and_the_entropy_is_that_of_their_shares():
    result = EXPERIMENT.result({})
    topic = result["share"].data.argmax(1)
    assert topic[0] == topic[1] != topic[2] == topic[3]
    assert {"ship", "sailors"} <= set(result["word"].data[topic[0]])
    share = result["pile_share"].data
    expected = -sum(part * np.log2(part) for part in share if part > 0)
    assert result["pile_entropy"].data == pytest.approx(expected)
    assert result["start_entropy"].data.max() <= 1 + 1e-9
    assert "the" not in result["word"].data


def test_empty_lines_separate_too_and_other_alphabets_have_words():
    one = EXPERIMENT.result({"pile": PILE.replace(" | ", "\n\n")})
    np.testing.assert_array_equal(one["share"].data, EXPERIMENT.result({})["share"].data)
    pile = "солнце светит ярко сегодня | кот пьёт тёплое молоко | дети читают старую книгу"
    assert EXPERIMENT.result({"pile": pile})["n_words"].data == 12


@pytest.mark.parametrize(
    ("pile", "problem"),
    [
        ("", "the pile has 0 texts; separate 3 to 8 by |"),
        ("one | two", "the pile has 2 texts"),
        ("a fox ran home |" * 9, "the pile has 9 texts"),
        (f"{PILE} | it is so", "text 7 of the pile needs 3 words .* it has 0"),
        ("你好世界 | 你好 | 世界", "text 1 of the pile needs 3 words .* it has 1"),
        ("x" * 6001, "at most 6000 characters"),
    ],
)
def test_a_pile_without_enough_is_refused(pile, problem):
    with pytest.raises(ValueError, match=problem):
        EXPERIMENT.start({"pile": pile})
