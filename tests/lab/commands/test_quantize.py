"""`headlight quantize`: a smaller copy of a model that loads like any other."""

import pytest
from typer.testing import CliRunner

from headlight.cli import app
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.tracing import trace

TWIN = "positions-learned"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return an empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def quantize(*arguments):
    return CliRunner().invoke(app, ["quantize", *arguments])


def assert_fails(result, *parts, code=2):
    assert result.exit_code == code, result.output
    for part in parts:
        assert part in " ".join(result.stderr.split())


def test_the_copy_is_smaller_and_is_traced_and_has_its_own_card(folder):
    result = quantize(TWIN, "--bits", "4", "--out", "small")
    assert result.exit_code == 0, result.output
    sizes = [(path / "model.safetensors").stat().st_size for path in (ZOO / TWIN, folder / "small")]
    assert f"{sizes[1]:,} bytes of weights in place of {sizes[0]:,}" in result.stdout
    assert sizes[1] < 0.3 * sizes[0]
    small = load("./small")
    weights = trace(small, "The cat sat.")["decoder.layers.0.self_attention.weights"]
    assert abs(weights.sum(axis=-1) - 1).max() < 1e-5
    card, source = small.description.card, load(TWIN).description.card
    assert card.title == f"{source.title}, 4 bits"
    assert card.trained_on == source.trained_on
    assert not card.metrics
    assert card.training["quantized_from"] == TWIN
    assert card.training["quantization"]["bits"] == 4
    assert "with 4 bits for each weight of all matrices" in card.prose


def test_parts_are_stored(folder):
    options = ["--part", "*.feed_forward", "--per", "tensor"]
    result = quantize(TWIN, *options, "--out", "small")
    assert result.exit_code == 0, result.output
    quantization = load("./small").description.quantization
    assert (quantization.bits, quantization.parts) == (8, ("*.feed_forward",))
    assert quantization.per == "tensor"


def test_what_cannot_be_quantized_is_said_in_one_sentence(folder):
    for bits in ("1", "9"):
        assert_fails(quantize(TWIN, "--bits", bits, "--out", "a"), "--bits", "must be at ")
    assert_fails(quantize(TWIN, "--part", "tail", "--out", "a"), "matches 'tail'; it has decoder")
    assert_fails(quantize("nothing", "--out", "a"), "there is no model or folder 'nothing'")
    assert not list(folder.iterdir())
    (folder / "there").mkdir()
    assert_fails(quantize(TWIN, "--out", "there"), "there exists already")
    assert quantize(TWIN, "--bits", "6", "--out", "small").exit_code == 0
    assert_fails(quantize("./small", "--out", "b"), "'./small' is quantized already, to 6 bits")


def test_a_checkpoint_of_transformers_is_refused(folder):
    (folder / "gpt").mkdir()
    (folder / "gpt" / "config.json").write_text('{"model_type": "gpt2"}')
    assert_fails(quantize("./gpt", "--out", "a"), "only models of Headlight are quantized")
