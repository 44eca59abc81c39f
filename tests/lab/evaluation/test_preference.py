"""The figures of students, reward models and preferred models."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.lab.evaluation.preference import (
    calibration,
    compare,
    cut_at_full_stop,
    evaluate_preferred,
    evaluate_reward,
    evaluate_student,
    head_correlations,
    match_heads,
    named_model,
)
from headlight.lab.training.preference import Comparison, encode_comparisons
from headlight.model.checkpoint.card import read_card, write_card
from headlight.model.checkpoint.loading import load

PARAGRAPH = "The quick brown fox saw a lazy dog and then the cat chased the mouse over the street. "
DOCUMENTS = ["".join(f"{letter} {PARAGRAPH * 2}\n" for letter in "abcdefgh")]
SMALL = {"max_tokens": 72, "n_layers": 1, "moe": None}


@pytest.fixture
def make_named(make_folder):
    """Return a function for checkpoints that name others: ``make_named({"teacher": folder})``."""

    def make(training, **changes):
        folder = make_folder(**{**SMALL, **changes})
        path = folder / "CARD.md"
        training = {role: str(other) for role, other in training.items()}
        write_card(path, replace(read_card(path), training=training))
        return load(folder)

    return make


def test_a_model_agrees_with_itself(make_checkpoint):
    checkpoint = make_checkpoint(**SMALL)
    figures = compare(checkpoint, checkpoint, DOCUMENTS)
    assert figures["next_token"]["kl_bits"] == pytest.approx(0, abs=1e-9)
    assert figures["next_token"]["same_likeliest"] == 1
    assert figures["heads"]["mean_correlation"] == pytest.approx(1)
    assert figures["heads"]["pairs"]["0.3"]["partner"] == "0.3"


def test_the_distance_of_two_models_is_that_of_their_distributions(make_checkpoint):
    first, second = (make_checkpoint(seed=seed, **SMALL) for seed in (0, 1))
    distance = compare(first, second, DOCUMENTS)["next_token"]
    assert 0 < distance["kl_bits"] < 5
    assert 0 < distance["total_variation"] < 1
    turned = compare(second, first, DOCUMENTS)["next_token"]
    assert turned["total_variation"] == pytest.approx(distance["total_variation"])
    assert turned["kl_bits"] != pytest.approx(distance["kl_bits"])


def test_a_students_figures_name_its_teacher(make_named, make_folder):
    teacher = make_folder(seed=1, **SMALL)
    student = make_named({"teacher": teacher}, d_model=16, n_heads=2)
    figures = evaluate_student(student, DOCUMENTS)
    assert figures["teacher"]["id"] == "tiny"
    assert set(figures["teacher"]["heads"]["pairs"]) == {"0.0", "0.1"}
    assert "teacher" not in evaluate_student(make_named({"teacher": "nobody"}), DOCUMENTS)
    assert named_model(student, "reference") is None


def test_a_reward_models_accuracy_is_how_often_it_prefers_what_is_preferred(make_checkpoint):
    rater = make_checkpoint(has_reward=True, **SMALL)
    comparisons = [
        Comparison(f"Prompt {n}", " a cat", " a dog" * (n % 4 + 1), "a") for n in range(9)
    ]
    pairs = encode_comparisons(comparisons, rater.tokenizer, 72)
    rewards = [
        [rater.model(torch.tensor([ids])).reward[0, -1].item() for ids in pair] for pair in pairs
    ]
    right = [better > worse for better, worse in rewards]
    figures = evaluate_reward(rater, comparisons)
    assert figures["accuracy"] == pytest.approx(np.mean(right))
    losses = [math.log2(1 + math.exp(worse - better)) for better, worse in rewards]
    assert figures["bits"] == pytest.approx(np.mean(losses), rel=1e-4)
    turned = [replace(comparison, preferred="b") for comparison in comparisons]
    assert evaluate_reward(rater, turned)["accuracy"] == pytest.approx(1 - np.mean(right))
    assert sum(each["pairs"] for each in figures["calibration"].values()) == 9


def test_calibration_compares_predictions_with_frequencies_by_tenths():
    predicted = np.array([0.05, 0.01, 0.55, 0.57, 1.0])
    happened = np.array([False, True, True, True, True])
    tenths = calibration(predicted, happened)
    assert list(tenths) == ["0.0-0.1", "0.5-0.6", "0.9-1.0"]
    assert tenths["0.0-0.1"] == pytest.approx({"predicted": 0.03, "observed": 0.5, "pairs": 2})
    assert tenths["0.5-0.6"]["observed"] == 1


@pytest.mark.slow
def test_a_model_that_was_not_changed_gains_nothing(make_named, make_folder):
    before = make_folder(**SMALL)
    rater = make_folder(seed=1, has_reward=True, **SMALL)
    same = make_named({"reference": before, "reward_model": rater})
    figures = evaluate_preferred(same, DOCUMENTS)
    assert figures["bits_per_byte_worse_percent"] == pytest.approx(0, abs=1e-6)
    assert figures["reward"]["gain_in_deviations"] == pytest.approx(0, abs=1e-6)
    assert figures["kl_bits_per_sample"] == pytest.approx(0, abs=1e-4)
    assert figures["samples"]["1"]["before"] == figures["samples"]["1"]["after"]
    other = make_named({"reference": before, "reward_model": rater}, seed=2)
    assert evaluate_preferred(other, DOCUMENTS)["kl_bits_per_sample"] > 0.1
    assert "reward" not in evaluate_preferred(make_named({"reference": before}), DOCUMENTS)


# --- heads of two models, matched by their maps ---------------------------------------------------


def maps(seed, n_heads=3, length=6):
    """Causal rows that sum to 1."""
    scores = np.random.default_rng(seed).normal(size=(n_heads, length, length))
    weights = np.exp(scores) * np.tri(length)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def test_the_similarity_is_pearsons_correlation_over_what_is_not_masked():
    first, second = [maps(0), maps(1, length=4)], [maps(2, 2), maps(3, 2, length=4)]
    correlations = head_correlations(first, second)
    assert correlations.shape == (3, 2)

    def flat(texts, head):
        return np.concatenate([text[head][np.tril_indices(len(text[head]))][1:] for text in texts])

    expected = np.corrcoef(flat(first, 1), flat(second, 0))[0, 1]
    assert correlations[1, 0] == pytest.approx(expected, abs=1e-9)


def test_shuffled_heads_are_found_again():
    texts = [maps(seed, 5) for seed in range(3)]
    order = [3, 0, 4, 1, 2]
    pairs = match_heads(head_correlations(texts, [text[order] for text in texts]))
    assert [pair.second for pair in pairs] == [order.index(head) for head in range(5)]
    assert [pair.correlation for pair in pairs] == pytest.approx([1] * 5)


def test_no_other_matching_has_a_greater_sum():
    correlations = np.random.default_rng(0).uniform(-1, 1, size=(4, 6))
    best = max(
        sum(correlations[row, column] for row, column in enumerate(columns))
        for columns in itertools.permutations(range(6), 4)
    )
    pairs = match_heads(correlations)
    assert sum(pair.correlation for pair in pairs) == pytest.approx(best)
    assert len({pair.second for pair in pairs}) == len(pairs) == 4


def test_models_that_read_different_tokens_are_not_matched():
    with pytest.raises(ValueError, match="cut into the same tokens"):
        head_correlations([maps(0, length=5)], [maps(0, length=6)])
    with pytest.raises(ValueError, match="the same texts"):
        head_correlations([], [])


def test_accuracy_is_counted_for_each_part_that_alone_differs(make_checkpoint):
    long = " ".join(["one two three four five six seven eight nine ten", *"abcdefghijkl"])
    comparisons = [
        Comparison("p", f' "{long}"', f" {long}", "a", "has_speech"),
        Comparison("p", f" {long}", ' "a b"', "b"),
        Comparison("p", " a b c", f" {long}", "b"),
    ]
    figures = evaluate_reward(make_checkpoint(has_reward=True, max_tokens=256), comparisons)
    assert {part: each["pairs"] for part, each in figures["minimal_pairs"].items()} == {
        "has_speech": 1
    }
    assert figures["samples_differ_alone"].keys() == {"is_long"}
    assert figures["samples_differ_alone"]["is_long"]["pairs"] == 1


def test_a_stop_cuts_an_answer_after_its_first_full_stop():
    assert cut_at_full_stop(" He ran. He fell.") == " He ran."
    assert cut_at_full_stop(" He ran") == " He ran"
