"""A refusal tells the file and the value in one sentence, and not the words of a library."""

import json
import re
import shutil

import pytest

pytest.importorskip("transformers", reason="the extra hf is not installed")

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.tokenizer import Tokenizer, UnreadableText
from tests.tiny_checkpoints import save_checkpoint

OF_A_LIBRARY = re.compile(
    r"modulo by zero|INTERNAL ASSERT|\.cpp|Traceback|shape dimension|has no attr"
)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoints") / "gpt2"
    save_checkpoint("gpt2", path)
    return path


@pytest.fixture
def refused(gpt2, tmp_path):
    """Return a function that loads the folder with a changed config, and returns its refusal."""

    def load_with(**changed):
        folder = tmp_path / "mine"
        shutil.copytree(gpt2, folder, dirs_exist_ok=True)
        config = json.loads((gpt2 / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changed))
        with pytest.raises(CheckpointError) as caught:
            load(folder)
        said = str(caught.value)
        assert "\n" not in said
        assert not OF_A_LIBRARY.search(said), said
        return said.replace(f"{folder}/", "")

    return load_with


@pytest.mark.parametrize("name", ["n_head", "n_embd", "n_layer", "vocab_size", "n_positions"])
@pytest.mark.parametrize("size", [0, -1])
def test_a_size_that_is_no_size_is_named(refused, name, size):
    assert refused(**{name: size}) == f"config.json: {name} ({size}) must be at least 1"


def test_a_value_that_the_library_does_not_know_is_named(refused):
    said = refused(activation_function="nope")
    assert said == "config.json: Transformers does not know the value 'nope'"
    assert refused(dtype="nope").startswith("config.json: ")


@pytest.mark.parametrize(
    ("model_type", "architecture", "way_out"),
    [
        ("vit", "ViTForImageClassification", "reads pixel_values, and not the tokens of a text"),
        ("clip", "CLIPModel", "save its text model by itself"),
        ("bert", "BertForPreTraining", "save the model as BertLMHeadModel or BertForMaskedLM"),
        ("bart", "BartForSequenceClassification", "an encoder–decoder whose decoder predicts no"),
    ],
)
def test_the_way_out_is_one_that_there_is(refused, model_type, architecture, way_out):
    assert way_out in refused(model_type=model_type, architectures=[architecture])


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "is empty"), (b"\0" * 9, "is damaged or cut short")]
)
def test_a_damaged_file_of_weights_is_named_in_process_too(tmp_path, content, said):
    folder = shutil.copytree(ZOO / "sums", tmp_path / "mine")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"model\.safetensors {said}; copy or download"):
        load(folder)


def test_a_panic_of_the_tokenizer_is_an_error_of_the_text(monkeypatch):
    panic = type("PanicException", (BaseException,), {})
    tokenizer = load("stories").tokenizer
    assert isinstance(tokenizer, Tokenizer)

    def fail(*_):
        raise panic("index out of bounds")

    monkeypatch.setattr(tokenizer, "_pieces", fail)
    with pytest.raises(UnreadableText, match="cannot read this text"):
        tokenizer.encode("a text")
