"""The recipe `reward`: comparisons in, a model that rates answers out."""

import json
from dataclasses import replace

import pytest
import torch

from headlight.lab.training.batches import Material
from headlight.lab.training.preference import Comparison
from headlight.lab.training.recipes.reward import RECIPE, RewardConfig, divide
from headlight.lab.training.run import finish
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import load
from headlight.model.corpus import CorpusError

SETTINGS = {
    "rows.count": 8,
    "loop": {"steps": 12, "warmup": 1, "learning_rate": 3e-3, "validate_every": 6, "save_every": 4},
}


@pytest.fixture
def comparisons(tmp_path):
    """Return a file in which the answer that says yes is always preferred."""
    path = tmp_path / "comparisons.jsonl"
    lines = [
        {
            "prompt": f"Number {n} said",
            "a": " yes, yes." if n % 2 else " no, no.",
            "b": " no, no." if n % 2 else " yes, yes.",
            "preferred": "a" if n % 2 else "b",
        }
        for n in range(60)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def folder(make_folder):
    return make_folder()


@pytest.fixture
def make_loop(begin, comparisons, folder):
    return lambda name, **changes: begin(
        "reward", [comparisons], name, {**SETTINGS, **changes}, begun_from=folder
    )


def test_it_begins_from_a_language_model_and_learns_to_prefer(make_loop, folder):
    loop = make_loop("mine")
    trunk = load(folder).model.weights()
    assert loop.model.config == replace(load(folder).config, has_reward=True)
    begun = loop.model.weights()
    assert all(torch.equal(tensor, begun[name]) for name, tensor in trunk.items())
    before = loop.validate()
    assert loop.run()
    assert loop.validate() < min(0.3, before)
    finish(loop, ModelCard(title="Mine", licence="MIT"))
    rater = load(loop.out)
    assert rater.config.has_reward
    yes, no = (
        rater.model(torch.tensor([[token.id for token in rater.tokenizer.encode(text)]])).reward
        for text in ("Number 7 said yes, yes.", "Number 7 said no, no.")
    )
    assert yes[0, -1] > no[0, -1] + 1


def test_comparisons_of_one_prompt_are_on_one_side():
    comparisons = [Comparison(f"Prompt {n % 20}", "x", "y", "a") for n in range(80)]
    trained, held_out = divide(comparisons, 0.3)
    assert len(trained) + len(held_out) == 80
    assert not {comparison.prompt for comparison in trained} & {
        comparison.prompt for comparison in held_out
    }
    with pytest.raises(CorpusError, match="of 3 examples 0 are held out"):
        divide(comparisons[:1] * 3, 1e-9)


def test_every_comparison_is_read_once_an_epoch(make_checkpoint):
    tokenizer = make_checkpoint().tokenizer
    comparisons = [Comparison(f"Prompt {n}", "x", "y", "a") for n in range(40)]
    batches = RECIPE.batches(Material(comparisons, tokenizer, 48, RewardConfig(count=4), 0))
    per_epoch = len(batches.trained) // 4
    seen = [tuple(row[0].tolist()) for step in range(per_epoch) for row in batches.batch(step).ids]
    assert len(set(seen)) == len(seen) == 4 * per_epoch
    again = [tuple(row[0].tolist()) for row in batches.batch(per_epoch).ids]
    assert again != seen[:4]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [({"count": 0}, r"count \(0\)"), ({"held_out": 1.0}, r"held_out \(1.0\)")],
)
def test_settings_out_of_range_are_rejected(changes, problem):
    with pytest.raises(ValueError, match=problem):
        RewardConfig(**changes)
