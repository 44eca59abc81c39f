"""`headlight quantize`: its copy, and bad input."""

import pytest
from typer.testing import CliRunner

from headlight.cli import app
from headlight.model.checkpoint.loading import ZOO, load

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


def test_the_copy_is_smaller_and_loads(folder):
    result = quantize(TWIN, "--base", TWIN, "--out", "small")
    assert result.exit_code == 0, result.output
    sizes = [(path / "model.safetensors").stat().st_size for path in (ZOO / TWIN, folder / "small")]
    assert f"{sizes[1]:,} bytes of weights in place of {sizes[0]:,}" in result.stdout
    assert sizes[1] < 0.2 * sizes[0]
    small = load("./small")
    assert small.model.vectors.equal(load(TWIN).model.vectors), "it differs from itself by nothing"
    assert small.description.card.training["difference_from"]["bits"] == 2


def test_what_cannot_be_quantized_is_said_in_one_sentence(folder):
    for bits in ("1", "9"):
        asked = ["--base", TWIN, "--bits", bits, "--out", "a"]
        assert_fails(quantize(TWIN, *asked), "--bits", "must be at ")
    failed = quantize("nothing", "--base", TWIN, "--out", "a")
    assert_fails(failed, "there is no model or folder 'nothing'")
    assert_fails(quantize(TWIN, "--base", "stories", "--out", "a"), "has another tokenizer than")
    assert not list(folder.iterdir())
    (folder / "there").mkdir()
    assert_fails(quantize(TWIN, "--base", TWIN, "--out", "there"), "there exists already")


def test_a_checkpoint_of_transformers_is_refused(folder):
    (folder / "gpt").mkdir()
    (folder / "gpt" / "config.json").write_text('{"model_type": "gpt2"}')
    assert_fails(
        quantize("./gpt", "--base", TWIN, "--out", "a"), "only models of Headlight are quantized"
    )
