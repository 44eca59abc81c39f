"""A stranger's folder that asks for more than numbers is refused, with the file and the reason."""

import gc
import json
import os
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from headlight.model.checkpoint.loading import CheckpointError, load
from headlight.model.foreign import is_foreign
from headlight.model.foreign.checks import EAGER
from headlight.model.foreign.folder import INDEX, SINGLE, read_folder
from headlight.model.foreign.model import ForeignModel, load_foreign
from headlight.model.foreign.tokenizer_parts import _CHILD


@pytest.fixture
def folder(folder_of, tmp_path):
    """Return a copy of a GPT-2's folder, to be spoiled."""
    shutil.copytree(folder_of("gpt2"), tmp_path / "gpt2")
    return tmp_path / "gpt2"


FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.spawn", "pickle.", "os.mkdir")
noted = None


def is_trial_of_a_tokenizer(event, arguments):
    """Return True if the program is the one that opens a tokenizer under limits."""
    return event == "subprocess.Popen" and list(arguments[1][1:5]) == ["-I", "-S", "-c", _CHILD]


def note(event, arguments):
    """Note what reaches beyond the folder: the interpreter calls it, and keeps it to the end."""
    if noted is None:
        return
    if event == "open":
        path, mode, flags = arguments
        is_written = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if is_written and "__pycache__" not in str(path) and str(path) != os.devnull:
            noted.append(f"{event} {path} {mode}")
    elif event.startswith(FORBIDDEN) and not is_trial_of_a_tokenizer(event, arguments):
        noted.append(f"{event} {arguments}")


@pytest.fixture(scope="module", autouse=True)
def watched():
    sys.addaudithook(note)


@pytest.fixture
def closed(watched, monkeypatch):
    """Fail if a file is written, a socket opened, or a program or a pickle run."""
    global noted
    import transformers  # noqa: F401  # its own import looks for programs

    monkeypatch.setattr(sys, "stdin", None)
    noted = []
    yield
    reported, noted = noted, None
    assert reported == []


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
    "a file that is not there": (lambda it: split(it, **{NAME: "y.safetensors"}), "y.safetensors"),
    "a kernel": (
        lambda it: change_config(it, _attn_implementation="someone/kernel"),
        "someone/kernel",
    ),
    "a missing tensor": (
        lambda it: change_weights(it, lambda weights: weights.pop("transformer.ln_f.weight")),
        r"transformer\.ln_f\.weight is missing",
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
    **{
        f"weights in {method}": (
            lambda it, method=method: change_config(
                it, quantization_config={"quant_method": method, "bits": 4}
            ),
            rf"the weights are quantised \({method}\), .* add the model that they were made of",
        )
        for method in ("bitsandbytes", "awq", "gptq")
    },
    "no weights but a pickle": (
        lambda it: (it / SINGLE).rename(it / "pytorch_model.bin"),
        "is a pickle",
    ),
    "a key twice": (
        lambda it: (it / "config.json").write_text('{"model_type": "gpt2", "model_type": "t5"}'),
        "occurs twice",
    ),
    "no tokenizer": (lambda it: (it / "tokenizer.json").unlink(), "tokenizer.json"),
    "a classifier without its head": (
        lambda it: change_config(it, architectures=["GPT2ForSequenceClassification"]),
        "score.weight is missing",
    ),
    "a class with two heads": (
        lambda it: change_config(it, architectures=["GPT2DoubleHeadsModel"]),
        "puts out neither tokens nor labels nor .* save the model as GPT2LMHeadModel",
    ),
    "a link that leaves the folder": (
        lambda it: ((it / SINGLE).unlink(), (it / SINGLE).symlink_to("/etc/hostname")),
        "must not leave the folder",
    ),
}


@pytest.fixture(params=SPOILED)
def spoiled(request, folder):
    """Each spoiled folder in turn, and what its refusal says."""
    change, reason = SPOILED[request.param]
    change(folder)
    return folder, reason


def test_a_folder_is_refused_with_the_file_and_the_reason(spoiled, closed):
    folder, reason = spoiled
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(CheckpointError, match=reason) as caught:
        load_foreign(folder)
    assert "gpt2" in str(caught.value)
    assert gc.isenabled()
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"n_layer": 1_000_000}, "n_layer .* at most 1,000"),
        ({"text_config": {"num_layers": 1_000_000}}, "num_layers .* at most 1,000"),
        ({"layer_types": [0] * 100_001}, "layer_types has 100,001 values"),
        ({"n_layer": 900, "num_experts": 9_000}, "8,100,000 experts in total"),
    ],
)
def test_a_million_layers_are_rejected(folder, changes, reason):
    change_config(folder, **changes)
    with pytest.raises(CheckpointError, match=reason):
        read_folder(folder)


CHOICES = {
    "_attn_implementation": "sdpa",
    "attn_implementation": "flash_attention_2",
    "_experts_implementation": "batched_mm",
    "auto_map": {"AutoModelForCausalLM": "evil.Model", "AutoConfig": "evil.Config"},
}


@pytest.fixture(params=["gpt2", "bloom"])
def choosing(request, folder_of, tmp_path):
    """Return a folder whose config chooses code, with the interface and without."""
    folder = shutil.copytree(folder_of(request.param), tmp_path / request.param)
    change_config(folder, **CHOICES)
    (folder / "evil.py").write_text("raise SystemExit")
    return folder


def test_names_of_implementations_and_code_are_not_followed(choosing, closed):
    model = load_foreign(choosing)
    assert model.description.checks["weights"] <= EAGER
    assert not set(CHOICES) & set(read_folder(choosing).config)


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


def test_an_infinity_that_transformers_wrote_is_read_as_a_number(folder):
    config = json.loads((folder / "config.json").read_text())
    limits = [0.0, {"__float__": "Infinity"}, {"__float__": "-Infinity"}]
    (folder / "config.json").write_text(json.dumps({**config, "time_step_limit": limits}))
    infinity = float("inf")
    assert read_folder(folder).config["time_step_limit"] == [0.0, infinity, -infinity]


@pytest.mark.parametrize(
    "tag", [{"__float__": "NaN"}, {"__float__": [1]}, {"__float__": "Infinity", "a": 1}]
)
def test_a_tag_of_a_number_on_something_else_is_refused(folder, tag):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "time_step_limit": tag}))
    with pytest.raises(CheckpointError, match="must be Infinity"):
        read_folder(folder)


def test_an_unknown_model_type_is_refused_before_transformers_is_imported(folder, monkeypatch):
    change_config(folder, model_type="mine")
    monkeypatch.setattr("headlight.model.foreign.loading.transformers_library", None)
    with pytest.raises(CheckpointError, match=r"config\.json: .*no model_type 'mine'"):
        load(folder)
