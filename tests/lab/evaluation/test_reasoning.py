"""The figures of `reasoning`: votes, lengths, and the digits that a digit is computed from."""

import math
from dataclasses import replace

import pytest
import torch

from headlight.lab.evaluation.figures import Evidence, measure, rounded
from headlight.lab.evaluation.reasoning import (
    ROLES,
    VOTES,
    digit_weights,
    evaluate,
    majority_right,
    profile_digits,
    readings,
    robustness,
)
from headlight.lab.training.recipes.reasoning import CONFIG
from headlight.model.arithmetic import Problem, Split, mark
from headlight.model.checkpoint.card import ModelCard, fits
from headlight.model.checkpoint.loading import load, save
from headlight.model.profiles.profile import SHAPE
from headlight.model.tokenizer import train_tokenizer
from headlight.model.transformer import Transformer

PROBLEM = Problem(47, 23)
TEXT = "47*23=47*20+47*3=940+141=1081"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    torch.manual_seed(0)
    model = Transformer(replace(CONFIG, n_layers=2, n_heads=2, d_model=16, d_ff=16))
    card = ModelCard(
        title="Small",
        licence="not stated",
        prose="# Small",
        training={"recipe": "reasoning"},
    )
    folder = tmp_path_factory.mktemp("models") / "small"
    save(folder, model, train_tokenizer((), CONFIG.vocab_size), card)
    return load(folder)


def test_a_digit_reads_the_digits_that_its_rule_needs():
    by_role = {}
    for role, reading in readings(PROBLEM):
        digits = "".join(TEXT[key - 1] for key in sorted(reading.keys))
        by_role.setdefault(role, []).append((TEXT[reading.query], digits))
    assert by_role == {
        "multiplicand": [(digit, "4747") for digit in "940141"],
        "multiplier": [(digit, "22") for digit in "940"] + [(digit, "33") for digit in "141"],
        "column": [("0", "91"), ("8", "44"), ("1", "01")],
        "carry": [("1", "91"), ("0", "44"), ("8", "01")],
    }


def test_the_most_frequent_answer_wins_the_vote():
    right, wrong = mark(PROBLEM, "1081"), mark(PROBLEM, "1082")
    none = mark(PROBLEM, "10", has_ended=False)
    other = mark(PROBLEM, "77")
    for votes, expected in (
        ([right, wrong, wrong], 0),
        ([right, wrong, right], 1),
        ([right, wrong], 1),
        ([wrong, right], 0),
        ([none, none, right], 1),
        ([none], 0),
        ([other, wrong, right, right], 1),
    ):
        assert majority_right([PROBLEM], [[vote] for vote in votes]) == expected


@pytest.mark.slow
def test_a_random_model_is_measured(checkpoint):
    figures = evaluate(checkpoint, [PROBLEM, Problem(12, 34)])
    assert figures["problems"] == 2
    assert figures["right"] == figures["sound"] == figures["products"] == 0
    assert list(figures["majority"]) == [f"of_{k}" for k in VOTES]
    assert sum(each["chains"] for each in figures["right_by_length"].values()) == 2
    assert "heads" not in figures
    assert evaluate(checkpoint, [PROBLEM]) == evaluate(checkpoint, [PROBLEM])


def test_a_model_that_answers_from_memory_has_its_share_right(checkpoint, monkeypatch):
    from headlight.lab.evaluation import reasoning

    written = {PROBLEM: TEXT[6:], Problem(12, 34): "12*30+12*4=360+48=409"}

    def solve(checkpoint, asked, seed=None):
        real = original(checkpoint, asked, seed)[0]
        return real, [mark(problem, written[problem]) for problem in asked]

    original = reasoning._solve
    monkeypatch.setattr(reasoning, "_solve", solve)
    figures = evaluate(checkpoint, [*written])
    assert figures["right"] == figures["sound"] == figures["sampled"] == 0.5
    assert figures["products"] == 1
    assert set(figures["majority"].values()) == {0.5}
    assert set(figures["heads"]) == set(ROLES)


def bits_of_solutions(checkpoint, texts):
    """Return the bits of each character after the first equals sign; a token is a character."""
    bits = []
    for text in texts:
        ids = [token.id for token in checkpoint.tokenizer.encode(text)]
        with torch.inference_mode():
            log = checkpoint.model(torch.tensor([ids])).logits[0].log_softmax(-1) / -math.log(2)
        bits += [
            log[place - 1, ids[place]].item() for place in range(text.index("=") + 2, len(ids))
        ]
    return sum(bits) / len(bits)


@pytest.mark.parametrize("writes_steps", [True, False])
def test_a_profile_has_the_roles_of_digits_if_the_model_writes_steps(
    checkpoint, monkeypatch, writes_steps
):
    from headlight.lab.evaluation import reasoning

    asked = Split(train=(), valid=(), test=(PROBLEM, Problem(12, 34)))
    solution = PROBLEM.solution("chain" if writes_steps else "direct")
    marks = [mark(PROBLEM, solution)]
    monkeypatch.setattr(reasoning, "split", lambda: asked)
    monkeypatch.setattr(reasoning, "_solve", lambda *_: (None, marks))
    profile = profile_digits(checkpoint, n_sentences=9)
    assert fits(rounded({"text": ["a"], **profile}), SHAPE)
    assert profile["sentences"] == 2
    assert {example["text"] for example in profile["examples"]} <= {
        problem.question + problem.solution("chain" if writes_steps else "direct")
        for problem in asked.test
    }
    assert profile["bits_per_byte"] == pytest.approx(
        bits_of_solutions(checkpoint, [example["text"] for example in profile["examples"]]),
        rel=1e-4,
    )
    heads = [head for of_layer in profile["attentions"].values() for head in of_layer]
    assert all((ROLES[0] in head["scores"]) == writes_steps for head in heads)
    assert not any("subject" in head["scores"] for head in heads)
    if writes_steps:
        weights, evenly = digit_weights(checkpoint, asked.test)["column"]
        assert [head["scores"]["column"]["score"] for head in heads] == weights.flatten().tolist()
        assert {head["scores"]["column"]["control"] for head in heads} == {evenly}


def test_files_are_rejected(checkpoint, tmp_path):
    with pytest.raises(ValueError, match="is measured on problems, not files; leave them out"):
        measure(checkpoint, Evidence(text=(tmp_path / "text.txt",)))


def test_a_problem_is_typed_in_other_forms_and_sizes(checkpoint, monkeypatch):
    from headlight.lab.evaluation import reasoning

    asked = []

    def solve(_, problems, seed=None):
        asked.append([problem.question for problem in problems])
        return None, [mark(problem, str(problem.answer)) for problem in problems[:1]]

    monkeypatch.setattr(reasoning, "_solve", solve)
    figures = robustness(checkpoint)

    written, spaced, typographic, *sized = asked
    assert [question.replace(" ", "") for question in spaced] == written
    assert [question.replace("×", "*") for question in typographic] == written
    assert {len(question) for question in spaced} == {9}
    assert [{len(question) for question in sizes} for sizes in sized] == [{5}, {7}, {7}]
    assert set(figures["forms"].values()) | set(figures["length"].values()) == {1}
