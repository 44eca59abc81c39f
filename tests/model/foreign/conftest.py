"""Tiny random checkpoints of Transformers, built on the spot."""

import pytest
import torch

pytest.importorskip("transformers", reason="the extra hf is not installed")

from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import load_foreign
from tests.tiny_checkpoints import ARCHITECTURES, make_model, save_checkpoint


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    """Return the folder of an architecture's checkpoint, made once."""
    made = {}

    def make(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp("foreign") / name
            save_checkpoint(name, made[name])
        return made[name]

    return make


@pytest.fixture(scope="session")
def served(folder_of):
    """Return a loaded foreign model, loaded once."""
    loaded = {}

    def load(name):
        if name not in loaded:
            loaded[name] = load_foreign(folder_of(name))
        return loaded[name]

    return load


@pytest.fixture(params=ARCHITECTURES)
def model(request, served):
    """Each of the architectures in turn."""
    return served(request.param)


@pytest.fixture(scope="session")
def reference():
    """Return logits and weights of Transformers' eager attention, for a fresh copy."""
    made = {}

    def run(name, inputs):
        if name not in made:
            made[name] = make_model(name)
            with quiet():
                made[name].set_attn_implementation("eager")
        with torch.inference_mode():
            return made[name](**inputs, output_attentions=True, use_cache=False)

    return run
