"""The profile of a model that multiplies, and the digits that each digit needs."""

import math

import pytest
import torch

from headlight.model.arithmetic import Problem, Split, mark
from headlight.model.checkpoint.card import fits, rounded
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.checkpoint.profile import SHAPE
from headlight.model.profiles import digits
from headlight.model.profiles.digits import ROLES, digit_weights, profile_digits, readings

PROBLEM = Problem(47, 23)
TEXT = "47*23=47*20+47*3=940+141=1081"


@pytest.fixture(scope="module")
def checkpoint():
    return load(ZOO / "sums")


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
    asked = Split(train=(), valid=(), test=(PROBLEM, Problem(12, 34)))
    solution = PROBLEM.solution("chain" if writes_steps else "direct")
    marks = [mark(PROBLEM, solution)]
    monkeypatch.setattr(digits, "split", lambda: asked)
    monkeypatch.setattr(digits, "solve_problems", lambda *_: (None, marks))
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
