"""Files with the attention interface choose their kernels where this project's models do."""

import pytest
import torch

from headlight.model.attention import kernels
from headlight.model.attention.observer import Watch, watching
from headlight.model.foreign.attention import terms_of
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.model import serve_module
from headlight.model.interventions.head_ablation import HeadAblation
from tests.tiny_checkpoints import make_model

TEXT = [5, 9, 200, 17, 33, 8]


@pytest.fixture
def called(monkeypatch):
    """Return the calls of each function of `kernels`, by name."""
    counts = {}

    def count(name):
        function = getattr(kernels, name)

        def counted(*args, **kwargs):
            counts[name] = counts.get(name, 0) + 1
            return function(*args, **kwargs)

        monkeypatch.setattr(kernels, name, counted)

    for name in ("attend", "fused_attention", "attend_in_blocks", "attend_whole"):
        count(name)
    return counts


@pytest.fixture
def read(served, called):
    """Read a text with some parts of every attention, and return the calls that it made."""
    return lambda name, *parts: read_with(served(name), called, *parts)


def read_with(model, called, *parts):
    called.clear()  # the self-check has called them
    paths = [facts.path for facts in model.description.attentions]
    sites = [f"{path}.{part}" for path in paths for part in parts]
    with watching(Watch(resolution=2)):
        model.read([TEXT], None, sites=sites)
    return called


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss"])
def test_weights_are_those_of_the_file(read, name):
    assert read(name, "weights") == {"attend": 2}


def test_a_plain_attention_is_fused_while_nothing_of_it_is_asked_for(read):
    assert read("llama", "queries", "context") == {"attend": 2, "fused_attention": 2}


def test_an_attention_with_more_terms_is_never_fused(read):
    assert read("gemma2", "context") == {"attend": 2}


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss"])
def test_maps_follow_from_the_terms_in_blocks(read, name):
    assert read(name, "mean_map") == {"attend": 2, "attend_in_blocks": 2}


def test_a_file_without_the_interface_is_only_watched(read):
    assert read("bloom", "weights") == {}
    assert read("bloom", "mean_map") == {}


def test_terms_are_those_that_the_file_hands_over():
    query, mask = torch.zeros(1, 4, 3, 16), torch.zeros(1, 1, 3, 5)
    mask[..., 0, 2:] = torch.finfo(mask.dtype).min
    bias, sinks = torch.randn(1, 4, 3, 5), torch.zeros(4)
    options = {"scaling": 0.5, "softcap": 30.0, "s_aux": sinks, "position_bias": bias}
    terms = terms_of(query, mask, options)
    assert (terms.scale, terms.softcap, terms.sinks) == (0.5, 30.0, sinks)
    assert terms_of(query, None, {}).scale == 0.25
    assert terms_of(query, None, {}).visible is None
    assert terms.visible is not None
    assert terms.visible(0, (0, 2), (1, 4)).tolist() == [[True, False, False], [True, True, True]]
    assert terms.bias is not None
    assert terms.bias(slice(1, 3), (1, 3), (0, 4)).equal(bias[0, 1:3, 1:3, :4])


def test_an_edited_context_lies_in_memory_as_the_file_expects_it():
    with quiet():
        model = serve_module(make_model("jetmoe"), "causal", "jetmoe")  # it takes a view of it
    off = HeadAblation(heads=(1,), layer=0)
    site = "decoder.layers.0.self_attention.context"
    tensors = model.read([TEXT], None, sites=["logits", site], interventions=[off])
    assert not tensors[site][:, 1].any()
    assert tensors["logits"].isfinite().all()
