"""Models that are stored as their difference from another one."""

import json
from dataclasses import replace

import pytest
import torch

from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.difference import Difference
from headlight.model.checkpoint.loading import CheckpointError, describe, load, save
from headlight.model.transformer import Transformer

CARD = ModelCard(title="Tuned", licence="MIT")


@pytest.fixture
def pair(tmp_path, make_folder, monkeypatch):
    """Return a folder, and a fine-tuned copy of its model with a reward head."""
    folder = make_folder()
    base = load(folder)
    torch.manual_seed(3)
    tuned = Transformer(replace(base.config, has_reward=True))
    head = {n: t for n, t in tuned.weights().items() if n.startswith("reward_head")}
    changed = {
        name: tensor + 0.01 * torch.randn_like(tensor)
        for name, tensor in base.model.weights().items()
    }
    tuned.load_weights(changed | head)
    return base, tuned


def save_difference(base, tuned, out, bits=8, **changes):
    fields = {"base": base.id, "revision": base.description.revision, "bits": bits}
    save(out, tuned, base.tokenizer, CARD, difference=Difference(**fields | changes))
    return out


def test_a_difference_loads_as_the_sum_with_its_base(pair, make_folder):
    base, tuned = pair
    out = save_difference(base, tuned, make_folder().parent / "tuned")
    assert not (out / "tokenizer.json").exists()
    loaded = load(out)
    assert loaded.tokenizer.to_json() == base.tokenizer.to_json()
    assert loaded.description.normalization == base.description.normalization
    for name, tensor in tuned.weights().items():
        torch.testing.assert_close(loaded.model.weights()[name], tensor, rtol=0, atol=1e-3)


def test_fewer_bits_make_a_smaller_file_and_a_larger_error(pair, make_folder):
    base, tuned = pair
    sizes, errors = [], []
    for bits in (8, 4, 2):
        out = save_difference(base, tuned, make_folder().parent / f"bits{bits}", bits)
        sizes.append((out / "model.safetensors").stat().st_size)
        weights = load(out).model.weights()
        errors.append(sum((weights[n] - t).square().sum() for n, t in tuned.weights().items()))
    assert sizes == sorted(sizes, reverse=True)
    assert errors == sorted(errors)


def test_another_revision_of_the_base_is_refused(pair, make_folder):
    base, tuned = pair
    folder = make_folder()
    out = save_difference(base, tuned, folder.parent / "tuned")
    weights = base.model.weights()
    next(iter(weights.values())).data += 1
    save(folder, base.model, base.tokenizer, base.description.card)
    with pytest.raises(CheckpointError, match=r"is a difference from .* of the revision"):
        describe(out)


def test_the_base_must_be_there_and_whole(pair, make_folder, tmp_path):
    base, tuned = pair
    out = save_difference(base, tuned, make_folder().parent / "tuned")
    moved = tmp_path / "elsewhere" / "tuned"
    moved.parent.mkdir()
    out.rename(moved)
    with pytest.raises(CheckpointError, match="which is not there; put it next to this folder"):
        load(moved)
    moved.rename(out)
    revision = describe(out).revision
    chained = out.parent / "chained"
    config = json.loads((out / "config.json").read_text())
    config["difference"] |= {"base": "tuned", "revision": revision}
    chained.mkdir()
    for name in ("CARD.md", "model.safetensors"):
        (chained / name).write_bytes((out / name).read_bytes())
    (chained / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="quantized or a difference itself"):
        load(chained)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"base": "../stories"}, "must be the name of a model"),
        ({"base": ".."}, "must be the name of a model"),
        ({"revision": "1"}, "16 hexadecimal digits"),
        ({"bits": 1}, "must be 2 to 8"),
    ],
)
def test_a_config_with_another_difference_is_refused(changes, problem):
    fields = {"base": "stories", "revision": "0" * 16, "bits": 2}
    with pytest.raises(ValueError, match=problem):
        Difference.from_dict(fields | changes)
    with pytest.raises(ValueError, match="an object of base, revision and bits"):
        Difference.from_dict({"base": "stories"})


def test_the_revision_follows_the_difference_and_its_base(pair, make_folder):
    base, tuned = pair
    parent = make_folder().parent
    first = describe(save_difference(base, tuned, parent / "first")).revision
    next(iter(tuned.weights().values())).data += 0.1
    second = describe(save_difference(base, tuned, parent / "second")).revision
    assert len({first, second, base.description.revision}) == 3
