"""A checkpoint is read back as it was saved; a damaged one names the file."""

import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.loading import (
    ZOO,
    describe,
    find_model,
    load,
    meta_model,
    save,
    uninitialised_model,
    write_atomically,
)
from headlight.model.config import KINDS, POSITIONALS
from headlight.model.sites import Site
from headlight.model.tracing import trace
from headlight.model.transformer import Transformer

SCALE, ROUTER = "decoder.norm.scale", "decoder.layers.1.experts.router.weight"
WEIGHTS = "model.safetensors"


def fails(folder, file, message=""):
    """Check that loading fails with the name of the file and this text."""
    with pytest.raises(CheckpointError) as raised:
        load(folder)
    assert str(raised.value).startswith(str(folder))
    assert file in str(raised.value)
    assert message in str(raised.value)


# --- there and back -------------------------------------------------------------------------------


def test_a_model_comes_back_as_it_was_saved(tmp_path, model, tokenizer, card, ids):
    save(tmp_path / "mine", model, tokenizer, card, dtype=torch.float32)
    checkpoint = load(tmp_path / "mine")
    assert checkpoint.model(ids).logits.equal(model(ids).logits)
    assert checkpoint.config == model.config
    assert checkpoint.tokenizer.encode("the cat") == tokenizer.encode("the cat")
    assert checkpoint.description.card == card
    assert checkpoint.id == "mine"
    assert repr(checkpoint) == "<Checkpoint mine: decoder, 2 layers, 0.0 M parameters>"
    assert checkpoint.device == torch.device("cpu")
    assert not checkpoint.model.training


def test_half_precision_halves_the_file_and_keeps_the_weights(tmp_path, model, tokenizer, card):
    save(tmp_path / "half", model, tokenizer, card)
    save(tmp_path / "full", model, tokenizer, card, dtype=torch.float32)
    stored = load_file(tmp_path / "half" / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("half", "full")]
    assert sizes[0] < 0.6 * sizes[1]
    for name, tensor in load(tmp_path / "half").model.state_dict().items():
        assert tensor.dtype == torch.float32
        assert tensor.equal(model.state_dict()[name].half().float()), name


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_runs_in_the_precision_asked_for(
    tmp_path, model, tokenizer, card, ids, stored, dtype
):
    save(tmp_path / "any", model, tokenizer, card, dtype=stored)
    logits = load(tmp_path / "any", dtype=dtype).model(ids).logits
    assert logits.dtype == dtype
    assert logits.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary"])
def test_a_model_of_any_kind_comes_back_with_one_matrix_of_embeddings(
    make_folder, make_model, ids, kind, positional
):
    changes = {"kind": kind, "positional": positional, "n_kv_heads": 2, "norm": "rms_norm"}
    folder, model = make_folder(**changes), make_model(**changes)
    names = [name for name in load_file(folder / "model.safetensors") if "vectors" in name]
    owner = "decoder" if kind == "decoder" else "encoder"
    assert names == [f"{owner}.embedding.vectors.weight"]
    loaded = load(folder).model
    targets = (ids.flip(1),) if kind == "encoder-decoder" else ()
    assert loaded(ids, *targets).logits.equal(model(ids, *targets).logits)
    assert describe(folder).n_parameters == sum(p.numel() for p in model.parameters())
    if kind == "encoder-decoder":
        assert loaded.decoder.embedding.vectors is loaded.encoder.embedding.vectors
        assert loaded.vectors is loaded.decoder.embedding.vectors.weight


# --- what a folder says ---------------------------------------------------------------------------


def test_a_folder_is_described_without_its_weights(make_folder, make_model, monkeypatch):
    folder = make_folder()
    model = make_model(vocab_size=300)
    description = describe(folder)
    assert description.id == "tiny"
    assert description.config == model.config
    assert description.card == ModelCard(title="Tiny", licence="MIT")
    assert description.n_parameters == sum(p.numel() for p in model.parameters())
    assert description.sites == model.sites
    assert Site("logits", ("batch", "query", "vocab")) in description.sites
    # Of the weights no more is read than names, shapes and dtypes.
    monkeypatch.setattr("headlight.model.checkpoint.loading._read_weights", None)
    assert describe(folder) == description


def test_the_revision_changes_with_all_that_decides_the_numbers(make_folder):
    folder = make_folder()
    revision = describe(folder).revision
    assert re.fullmatch("[0-9a-f]{16}", revision)
    assert describe(make_folder()).revision == revision
    assert describe(make_folder(seed=1)).revision != revision
    for name in ("config.json", "tokenizer.json"):
        with (folder / name).open("a") as file:
            file.write("\n")
        assert describe(folder).revision != revision
        revision = describe(folder).revision
    with (folder / "CARD.md").open("a") as file:
        file.write("More prose.\n")
    assert describe(folder).revision == revision


def test_the_revision_does_not_depend_on_how_lines_end(make_folder):
    folder = make_folder()
    revision = describe(folder).revision
    for name in ("config.json", "tokenizer.json"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content.replace(b"\n", b"\r\n"))
    assert describe(folder).revision == revision


# --- damaged folders ------------------------------------------------------------------------------


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=re.escape(str(tmp_path / "none"))):
        load(tmp_path / "none")


def test_a_name_is_a_model_that_ships_and_a_path_is_a_folder(make_folder, monkeypatch):
    folder = make_folder()
    monkeypatch.chdir(folder.parent)
    folder.rename("stories")
    assert find_model("stories") == ZOO / "stories"
    assert load("./stories").id == "stories"
    assert load(str(folder.parent / "stories")).config == describe("./stories").config
    with pytest.raises(CheckpointError, match="positions-rotary"):
        load("storeys")


def test_a_name_is_also_that_of_a_model_that_was_added(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    monkeypatch.setenv("HEADLIGHT_MODELS_DIR", str(tmp_path))
    assert find_model("mine") == tmp_path / "mine"
    with pytest.raises(CheckpointError, match=r"stories.*, mine"):
        find_model("other")


def test_a_pickle_in_place_of_the_weights_is_not_opened(make_folder, tmp_path):
    folder = make_folder()
    flag = tmp_path / "was-run"

    class Harm:
        def __reduce__(self):
            return (flag.write_text, ("harm",))

    torch.save({"weights": Harm()}, folder / WEIGHTS)
    fails(folder, WEIGHTS)
    assert not flag.exists()


# --- models without weights ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("positional", POSITIONALS)
def test_a_meta_model_has_the_names_shapes_and_sites_of_the_model(make_config, kind, positional):
    config = make_config(kind=kind, positional=positional)
    model, bare = Transformer(config), meta_model(config)
    shapes = {name: tensor.shape for name, tensor in model.weights().items()}
    assert {name: tensor.shape for name, tensor in bare.weights().items()} == shapes
    assert bare.sites == model.sites
    tensors = [*bare.parameters(), *bare.buffers()]
    assert all(tensor.is_meta for tensor in tensors)


def test_no_number_is_drawn_for_weights_that_will_be_loaded(make_config):
    config = make_config()
    state = torch.get_rng_state()
    model = uninitialised_model(config)
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(tensor.is_meta for tensor in model.parameters())


# --- never half a file ----------------------------------------------------------------------------


def test_a_file_is_seen_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, lambda partial: partial.write_text("old"))
    assert path.read_text() == "old"

    def write_slowly(partial):
        partial.write_text("ne")
        assert path.read_text() == "old"
        partial.write_text("new")

    write_atomically(path, write_slowly)
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_save_that_fails_leaves_a_model_that_loads(
    make_folder, model, tokenizer, card, monkeypatch
):
    folder = make_folder()
    before = load(folder).model.state_dict()

    def fail(weights, path):
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("headlight.model.checkpoint.loading.save_file", fail)
    with pytest.raises(OSError, match="no space left"):
        save(folder, model, tokenizer, card)
    monkeypatch.undo()
    after = load(folder).model.state_dict()
    assert all(tensor.equal(before[name]) for name, tensor in after.items())


def test_what_was_written_may_be_read_by_everybody(make_folder):
    for path in make_folder().iterdir():
        assert path.stat().st_mode & 0o044 == 0o044, path


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", [None, 2])
def test_weights_by_head_recompute_queries_keys_values_and_output(make_checkpoint, n_kv_heads):
    checkpoint = make_checkpoint(n_kv_heads=n_kv_heads, attention_bias=True)
    path = "decoder.layers.1.self_attention"
    found = {name: weight.read() for name, weight in checkpoint.weights().items()}
    seen = trace(checkpoint, "The cat", capture=[f"{path}.*", "decoder.layers.1.attention_norm"])
    read = seen["decoder.layers.1.attention_norm"]
    for letter, part in (("Q", "queries"), ("K", "keys"), ("V", "values")):
        made = read @ found[f"{path}.W_{letter}"] + found[f"{path}.b_{letter}"][:, None]
        np.testing.assert_allclose(made, seen[f"{path}.{part}"], rtol=0, atol=1e-5)
    made = (seen[f"{path}.context"] @ found[f"{path}.W_O"]).sum(axis=0) + found[f"{path}.b_O"]
    np.testing.assert_allclose(made, seen[f"{path}.output"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[f"{path}.W_O"], checkpoint.output_weights(path).data)


@pytest.mark.parametrize(
    ("kind", "stacks"), [("decoder", 1), ("encoder", 1), ("encoder-decoder", 2)]
)
def test_weights_have_the_axes_and_sizes_that_they_announce(make_checkpoint, kind, stacks):
    weights = make_checkpoint(kind=kind, positional="learned").weights()
    assert sum(name.endswith("embedding.W_E") for name in weights) == stacks
    assert sum(name.endswith("embedding.W_pos") for name in weights) == stacks
    for weight in weights.values():
        array = weight.read()
        assert array.shape == weight.shape
        assert len(weight.axes) == array.ndim
        assert array.dtype == np.float32
