"""Models before their weights: the names and shapes of a real one, at no cost."""

from dataclasses import replace

import pytest
import torch

from headlight.model.meta_initialisation import skeleton, undrawn
from headlight.model.positions import sinusoidal
from headlight.model.transformer import Transformer


@pytest.fixture
def config(make_config):
    return make_config()


@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_it_has_the_names_shapes_and_sites_of_the_model(config, kind, positional):
    config = replace(config, kind=kind, positional=positional)
    model, bare = Transformer(config), skeleton(config)
    shapes = {name: tensor.shape for name, tensor in model.weights().items()}
    assert {name: tensor.shape for name, tensor in bare.weights().items()} == shapes
    assert bare.sites == model.sites
    tensors = [*bare.parameters(), *bare.buffers()]
    assert all(tensor.is_meta for tensor in tensors)


def test_it_takes_no_memory_however_large_the_model_is(config):
    huge = replace(config, vocab_size=2**24, max_tokens=2**24)
    assert skeleton(huge).vectors.numel() == 2**24 * config.d_model


def test_no_number_is_drawn_for_weights_that_will_be_loaded(config):
    state = torch.get_rng_state()
    model = undrawn(config)
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(tensor.is_meta for tensor in model.parameters())


def test_what_is_computed_and_not_loaded_is_there(config):
    table = undrawn(config).decoder.embedding.encoding
    assert torch.equal(table, sinusoidal(config.max_tokens, config.d_model))


def test_a_model_that_will_be_trained_is_drawn_as_before(config):
    undrawn(config)
    torch.manual_seed(0)
    vectors = Transformer(config).vectors.detach()
    assert float(vectors.std()) == pytest.approx(0.02, rel=0.1)
