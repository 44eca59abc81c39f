"""The figures of `reasoning`: votes, lengths, problems of other forms and sizes."""

from dataclasses import replace

import pytest
import torch

from headlight.lab.evaluation.figures import Evidence, measure
from headlight.lab.evaluation.reasoning import VOTES, evaluate, majority_right, robustness
from headlight.lab.training.recipes.reasoning import CONFIG
from headlight.model.arithmetic import Problem, mark
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import load, save
from headlight.model.profiles.digits import ROLES
from headlight.model.tokenizer import train_tokenizer
from headlight.model.transformer import Transformer

PROBLEM = Problem(47, 23)
TEXT = "47*23=47*20+47*3=940+141=1081"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    torch.manual_seed(0)
    model = Transformer(replace(CONFIG, n_layers=2, n_heads=2, d_model=16, d_ff=16))
    card = ModelCard(
        title="Small", licence="not stated", prose="# Small", training={"recipe": "reasoning"}
    )
    folder = tmp_path_factory.mktemp("models") / "small"
    save(folder, model, train_tokenizer((), CONFIG.vocab_size), card)
    return load(folder)


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

    original = reasoning.solve_problems
    monkeypatch.setattr(reasoning, "solve_problems", solve)
    figures = evaluate(checkpoint, [*written])
    assert figures["right"] == figures["sound"] == figures["sampled"] == 0.5
    assert figures["products"] == 1
    assert set(figures["majority"].values()) == {0.5}
    assert set(figures["heads"]) == set(ROLES)


def test_files_are_rejected(checkpoint, tmp_path):
    with pytest.raises(ValueError, match="is measured on problems, not files; leave them out"):
        measure(checkpoint, Evidence(text=(tmp_path / "text.txt",)))


def test_a_problem_is_typed_in_other_forms_and_sizes(checkpoint, monkeypatch):
    from headlight.lab.evaluation import reasoning

    asked = []

    def solve(_, problems, seed=None):
        asked.append([problem.question for problem in problems])
        return None, [mark(problem, str(problem.answer)) for problem in problems[:1]]

    monkeypatch.setattr(reasoning, "solve_problems", solve)
    figures = robustness(checkpoint)

    written, spaced, typographic, *sized = asked
    assert [question.replace(" ", "") for question in spaced] == written
    assert [question.replace("×", "*") for question in typographic] == written
    assert {len(question) for question in spaced} == {9}
    assert [{len(question) for question in sizes} for sizes in sized] == [{5}, {7}, {7}]
    assert set(figures["forms"].values()) | set(figures["length"].values()) == {1}
