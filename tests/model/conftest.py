"""Tiny random models, seeded, for every test of model/."""

import copy
from dataclasses import replace

import pytest
import torch
from jaxtyping import config as shape_checks

from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import load, save
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.hooks import HookedModule
from headlight.model.quantization.affine import fake_quantize, matrices_of
from headlight.model.tokenizer import train_tokenizer
from headlight.model.transformer import Transformer

TEXT = (
    "The quick brown fox jumps over the lazy dog. The cat chased the mouse.\n"
    "It was too tired to cross the street, so the animal slept under a tree.\n"
)
# Layer 0 is dense and layer 1 has experts, so that one model has every kind of site.
TINY = TransformerConfig(
    n_layers=2,
    n_heads=4,
    d_model=32,
    d_ff=48,
    vocab_size=300,
    max_tokens=48,
    moe=ExpertsConfig(n_experts=4, top_k=2, layers=(1,)),
)


@pytest.fixture
def unchecked(monkeypatch):
    """No checks of annotations, for a test that passes a value of a wrong type on purpose."""
    monkeypatch.setattr(shape_checks, "jaxtyping_disable", True)


class Watched(HookedModule):
    """One part of a model by itself, so that its hook points can be captured as ``part.…``."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, *inputs):
        return self.part(*inputs)


@pytest.fixture(scope="session")
def watch():
    """Make the hook points of a part by itself capturable."""
    return Watched


@pytest.fixture(scope="session")
def make_config():
    """Return the tiny architecture with some of its fields changed."""
    return lambda **changes: replace(TINY, **changes)


@pytest.fixture(scope="session")
def randomise():
    """Give scales and biases values of their own, so that leaving one out shows."""

    def draw(module):
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.ndim == 1:
                    parameter += 0.3 * torch.randn_like(parameter)

    return draw


@pytest.fixture(scope="session")
def make_model(make_config, randomise):
    """Return a random model in eval mode: ``make_model(seed=1, n_layers=3)``."""

    def make(*, seed=0, **changes):
        torch.manual_seed(seed)
        model = Transformer(make_config(**changes))
        randomise(model)
        return model.eval()

    return make


@pytest.fixture
def model(make_model):
    return make_model()


@pytest.fixture
def ids():
    """Two rows of eleven tokens."""
    return torch.randint(300, (2, 11), generator=torch.Generator().manual_seed(7))


@pytest.fixture(scope="session")
def tokenizer():
    """Return a byte-level vocabulary of 300 pieces, learned from two lines."""
    return train_tokenizer([TEXT] * 3, vocab_size=300)


@pytest.fixture(scope="session")
def card():
    return ModelCard(title="Tiny", licence="MIT")


@pytest.fixture(scope="session")
def make_folder(tmp_path_factory, make_model, tokenizer, card):
    """Return the folder ``tiny`` of a saved random model: ``make_folder(seed=1, moe=None)``.

    Lines to ``learn`` give it a tokenizer of its own, with a mask.
    """

    def make(learn=None, **changes):
        folder = tmp_path_factory.mktemp("zoo") / "tiny"
        own = train_tokenizer(learn, 300, has_mask=True) if learn else tokenizer
        model = make_model(**{"vocab_size": own.vocab_size, **changes})
        save(folder, model, own, card, dtype=torch.float32)
        return folder

    return make


@pytest.fixture(scope="session")
def make_checkpoint(make_folder):
    """Return a random model as `load` gives it, with its tokenizer."""
    return lambda *learn, **changes: load(make_folder(*learn, **changes))


@pytest.fixture(scope="session")
def checkpoint(make_checkpoint):
    return make_checkpoint()


@pytest.fixture
def replaced():
    """Return a copy of a model whose chosen matrices are rounded in place."""

    def make(model, bits, chosen=lambda name: True, per="channel"):
        copied = copy.deepcopy(model)
        with torch.no_grad():
            for name, matrix in matrices_of(copied).items():
                if chosen(name):
                    matrix.copy_(fake_quantize(matrix, bits, per))
        return copied

    return make
