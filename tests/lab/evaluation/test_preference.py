"""The figures of students, reward models and preferred models."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.lab.evaluation.preference import (
    compare,
    evaluate_preferred,
    evaluate_reward,
    evaluate_student,
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
