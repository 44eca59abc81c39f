"""A stranger's folder that asks for more than numbers is refused, with the file and the reason."""

import json
import shutil
import socket
import sys
from time import process_time

import pytest
import torch
from safetensors.torch import load_file, save_file

from headlight.model.checkpoint import CheckpointError, load
from headlight.model.foreign import is_foreign
from headlight.model.foreign.folder import (
    INDEX,
    SINGLE,
    ForeignFolderError,
    read_folder,
)
from headlight.model.foreign.model import ForeignModel, load_foreign


@pytest.fixture
def folder(folder_of, tmp_path):
    """A copy of a GPT-2's folder, to be spoiled."""
    shutil.copytree(folder_of("gpt2"), tmp_path / "gpt2")
    return tmp_path / "gpt2"


@pytest.fixture(autouse=True)
def closed(monkeypatch):
    """No socket may be opened, and nothing may be read from standard input."""

    def refuse(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(sys, "stdin", None)


def change_config(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(config))


def change_weights(folder, change):
    weights = load_file(folder / SINGLE)
    change(weights)
    save_file(weights, folder / SINGLE, metadata={"format": "pt"})


def split(folder, **files):
    """Write an index that names a file for every tensor; `files` replaces some."""
    (folder / SINGLE).rename(folder / "part.safetensors")
    names = load_file(folder / "part.safetensors")
    index = {"weight_map": {**dict.fromkeys(names, "part.safetensors"), **files}}
    (folder / INDEX).write_text(json.dumps(index))


NAME = "transformer.wte.weight"
SPOILED = {
    "a pickle in the index": (lambda it: split(it, **{NAME: "pytorch_model.bin"}), INDEX),
    "a file above the folder": (lambda it: split(it, **{NAME: "../x.safetensors"}), INDEX),
    "a file elsewhere": (lambda it: split(it, **{NAME: "/etc/x.safetensors"}), INDEX),
    "a file that is not there": (lambda it: split(it, **{NAME: "y.safetensors"}), "y.safetensors"),
    "a kernel": (
        lambda it: change_config(it, _attn_implementation="someone/kernel"),
        "someone/kernel",
    ),
    "a missing tensor": (
        lambda it: change_weights(it, lambda weights: weights.pop("transformer.ln_f.weight")),
        r"transformer\.ln_f\.weight is missing",
    ),
    "a tensor too many": (
        lambda it: change_weights(it, lambda weights: weights.update(extra=torch.ones(2))),
        r"extra is unknown",
    ),
    "a tensor of another shape": (
        lambda it: change_weights(
            it, lambda weights: weights.update({"transformer.ln_f.weight": torch.ones(3)})
        ),
        "ln_f",
    ),
    "a number that is not finite": (
        lambda it: change_weights(it, lambda weights: weights[NAME].fill_(torch.nan)),
        "wte.weight holds a weight that is not finite",
    ),
    "a million layers": (lambda it: change_config(it, n_layer=1_000_000), "n_layer"),
    "code for an unknown model": (
        lambda it: change_config(it, model_type="mine", auto_map={"AutoModel": "mine.Model"}),
        "no model_type 'mine'",
    ),
    "an adapter": (lambda it: (it / "adapter_config.json").write_text("{}"), "adapter_config"),
    "quantised weights": (
        lambda it: change_config(it, quantization_config={"quant_method": "bitsandbytes"}),
        "quantization_config",
    ),
    "no weights but a pickle": (
        lambda it: (it / SINGLE).rename(it / "pytorch_model.bin"),
        "is a pickle",
    ),
    "a key twice": (
        lambda it: (it / "config.json").write_text('{"model_type": "gpt2", "model_type": "t5"}'),
        "occurs twice",
    ),
    "no tokenizer": (lambda it: (it / "tokenizer.json").unlink(), "tokenizer.json"),
    "a classifier": (
        lambda it: change_config(it, architectures=["GPT2ForSequenceClassification"]),
        "not a language model",
    ),
    "a link that leaves the folder": (
        lambda it: ((it / SINGLE).unlink(), (it / SINGLE).symlink_to("/etc/hostname")),
        "must not leave the folder",
    ),
}


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_folder_is_refused_with_the_file_and_the_reason(folder, spoil):
    change, reason = SPOILED[spoil]
    change(folder)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ForeignFolderError, match=reason) as caught:
        load_foreign(folder)
    assert "gpt2" in str(caught.value)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_million_layers_are_refused_at_once(folder):
    change_config(folder, n_layer=1_000_000)
    began = process_time()
    with pytest.raises(ForeignFolderError, match="at most 1,000"):
        read_folder(folder)
    assert process_time() - began < 0.1


def test_names_of_implementations_and_code_are_not_followed(folder):
    change_config(
        folder, _attn_implementation="sdpa", auto_map={"AutoModelForCausalLM": "evil.Model"}
    )
    (folder / "evil.py").write_text("raise SystemExit")
    model = load_foreign(folder)
    assert model.config.n_layers == 2
    assert not {"auto_map", "_attn_implementation"} & set(read_folder(folder).config)


def test_weights_in_parts_are_read(folder):
    split(folder)
    assert load_foreign(folder).config.n_layers == 2


def test_load_takes_a_foreign_folder(folder):
    assert is_foreign(folder)
    model = load(folder)
    assert isinstance(model, ForeignModel)
    assert model.description.architecture == "GPT2LMHeadModel"
    assert repr(model).startswith("<GPT2LMHeadModel gpt2: decoder")


def test_a_folder_of_this_project_is_not_foreign(tmp_path):
    assert not is_foreign(tmp_path)
    (tmp_path / "config.json").write_text('{"n_layers": 2}')
    assert not is_foreign(tmp_path)
    with pytest.raises(CheckpointError):
        load(tmp_path)
