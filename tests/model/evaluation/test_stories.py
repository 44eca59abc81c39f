"""All figures of a card, measured at once."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import torch

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.bits_per_byte import bits_per_byte
from headlight.model.evaluation.minimal_pairs import MinimalPair
from headlight.model.evaluation.stories import evaluate
from headlight.model.training.corpus import CorpusError

DOCUMENTS = ["The quick brown fox jumps over the lazy dog, zigzag.\n" * 5, "A tree.\n"]
PAIRS = [
    MinimalPair("verbs", "The cats chase it.", "The cats chases it."),
    MinimalPair("nouns", "A tree.", "A trees."),
]


def numbers(figures: Mapping[Any, Any]) -> Iterator[float]:
    for value in figures.values():
        yield from numbers(value) if isinstance(value, Mapping) else [value]


@pytest.fixture(scope="module")
def figures(checkpoint: Checkpoint) -> dict[str, Any]:
    return evaluate(checkpoint, DOCUMENTS, PAIRS)


def test_every_figure_is_there_and_finite(figures: dict[str, Any]) -> None:
    assert list(figures) == [
        "bits_per_byte",
        "nats_per_token",
        "tokens",
        "bytes",
        "previous_token_head",
        "induction_head",
        "copy_accuracy",
        "expert_load_entropy",
        "smallest_expert_share",
        "minimal_pairs",
        "minimal_pairs_by_paradigm",
    ]
    assert all(math.isfinite(number) for number in numbers(figures))
    assert set(figures["previous_token_head"]) == {"layer", "head", "weight"}
    assert set(figures["expert_load_entropy"]) == {"layer_1"}
    assert set(figures["smallest_expert_share"]) == {"layer_1"}
    assert set(figures["minimal_pairs_by_paradigm"]) == {"nouns", "verbs"}


def test_figures_have_four_digits_and_are_plain_data(figures: dict[str, Any]) -> None:
    assert all(number == round(number, 4) for number in numbers(figures))
    assert {type(number) for number in numbers(figures)} == {int, float}
    json.dumps(figures)


def test_figures_are_those_of_the_single_measurements(
    checkpoint: Checkpoint, figures: dict[str, Any]
) -> None:
    for name, value in bits_per_byte(checkpoint, DOCUMENTS).items():
        assert figures[name] == pytest.approx(value, abs=6e-5)
    by_paradigm = figures["minimal_pairs_by_paradigm"]
    assert figures["minimal_pairs"] == sum(by_paradigm.values()) / 2


def test_a_dead_expert_shows(checkpoint: Checkpoint) -> None:
    site = "decoder.layers.1.experts.router_logits"
    with checkpoint.model.edit(site, lambda logits: logits - 100 * torch.eye(4)[2]):
        figures = evaluate(checkpoint, DOCUMENTS, [])
    assert figures["smallest_expert_share"] == {"layer_1": 0}
    assert figures["expert_load_entropy"]["layer_1"] < 0.8


def test_what_a_model_or_an_order_lacks_is_left_out(
    make_checkpoint: Callable[..., Checkpoint],
) -> None:
    figures = evaluate(make_checkpoint(moe=None), DOCUMENTS, [])
    assert not any("expert" in name or "pairs" in name for name in figures)


def test_a_text_shorter_than_a_context_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(
        CorpusError, match=r"^the text has \d+ tokens; evaluation needs at least 47$"
    ):
        evaluate(checkpoint, ["A tree.\n"], [])
