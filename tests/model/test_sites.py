"""Sites are selected by glob, layer and head; an unknown name suggests a known one."""

import re
from types import SimpleNamespace

import pytest

from headlight.model.sites import (
    UnknownHead,
    UnknownLayer,
    UnknownSite,
    layer_of,
    match_sites,
    require_heads,
    require_layers,
    tokens_along,
)


@pytest.fixture
def names(model):
    """Return the names of all sites of a model with a dense layer and one with experts."""
    return [site.name for site in model.sites]


def exactly(message):
    """Return a pattern for the whole of an error message."""
    return f"^{re.escape(message)}$"


def test_globs_match_in_the_order_of_the_names(names):
    assert match_sites(["*"], names) == names
    assert match_sites(reversed(names), names) == names
    assert match_sites(["logits", "*.weights"], names) == [
        "decoder.layers.0.self_attention.weights",
        "decoder.layers.1.self_attention.weights",
        "logits",
    ]
    assert match_sites([], names) == []


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        ("decoder.layer.*", "decoder.layers.*"),
        ("decoder.layers.0.self_attention.weigths", "decoder.layers.0.self_attention.weights"),
        ("decoder.layers.*.self_attention.weight", "decoder.layers.*.self_attention.weights"),
        ("decoder.layers.1.experts.router_prob", "decoder.layers.1.experts.router_probs"),
        ("logit", "logits"),
    ],
)
def test_an_unknown_site_suggests_the_nearest(names, asked, suggested):
    message = exactly(f"no site matches {asked!r}; did you mean {suggested!r}?")
    with pytest.raises(UnknownSite, match=message):
        match_sites([asked], names)
    with pytest.raises(UnknownSite, match=message):
        match_sites(["*", asked], names)


def test_what_is_suggested_matches_something(names):
    for name in names:
        misspelled = name[:-2] + "xyz"
        with pytest.raises(UnknownSite) as raised:
            match_sites([misspelled], names)
        suggested = re.search(r"did you mean '(.+)'\?$", str(raised.value))
        assert suggested, misspelled
        assert match_sites([suggested[1]], names)


def test_a_name_unlike_any_site_lists_how_many_there_are(names):
    message = exactly(
        f"no site matches '12345'; there are {len(names)} sites, from {names[0]!r} to {names[-1]!r}"
    )
    with pytest.raises(UnknownSite, match=message):
        match_sites(["12345"], names)


@pytest.mark.parametrize("layer", [2, -1])
def test_an_unknown_layer_is_answered_with_those_there_are(names, layer):
    require_layers([1, 0], names)
    message = exactly(f"there is no layer {layer}; the layers are 0 to 1")
    with pytest.raises(UnknownLayer, match=message):
        require_layers([0, layer], names)


@pytest.mark.parametrize("head", [4, -1])
def test_an_unknown_head_is_answered_with_those_there_are(head):
    require_heads([3, 0], 4)
    message = exactly(f"there is no head {head}; the heads are 0 to 3")
    with pytest.raises(UnknownHead, match=message):
        require_heads([0, head], 4)


def test_a_head_named_twice_is_an_error():
    with pytest.raises(UnknownHead, match=exactly("heads [1, 1] names a head twice")):
        require_heads([1, 1], 4)


def test_no_heads_and_no_layers_are_an_error(names):
    message = exactly("heads is empty; leave it out for all heads")
    with pytest.raises(UnknownHead, match=message):
        require_heads([], 4)
    message = exactly("layers is empty; leave it out for all layers")
    with pytest.raises(UnknownLayer, match=message):
        require_layers([], names)


def test_the_layer_of_a_site_is_in_its_name():
    assert layer_of("decoder.layers.12.residual.after") == 12
    assert layer_of("decoder.embedding.output") is None


SOURCE, TARGET = ("a", "b", "c"), ("d", "e")


@pytest.mark.parametrize(
    ("site", "axis", "size", "tokens"),
    [
        ("encoder.layers.0.self_attention.weights", "key", 3, SOURCE),
        ("decoder.layers.0.self_attention.weights", "key", 2, TARGET),
        ("decoder.layers.0.cross_attention.weights", "query", 2, TARGET),
        ("decoder.layers.0.cross_attention.weights", "key", 3, SOURCE),
        ("analyses.value_weighted.decoder.layers.0.cross_attention", "key", 3, SOURCE),
        ("analyses.rollout.encoder", "query", 3, SOURCE),
        ("analyses.logit_lens.ids", "query", 2, TARGET),
        ("logits", "query", 2, TARGET),
        ("logits", "vocab", 2, ()),
        ("logits", "query", 7, ()),
    ],
)
def test_the_decoder_of_a_pair_reads_the_target(site, axis, size, tokens):
    pair = SimpleNamespace(tokens=SOURCE, target_tokens=TARGET)
    assert tokens_along(pair, site, axis, size) == tokens


@pytest.mark.parametrize("site", ["decoder.layers.0.self_attention.weights", "logits"])
def test_without_a_target_every_token_is_the_texts(site):
    text = SimpleNamespace(tokens=SOURCE, target_tokens=None)
    assert tokens_along(text, site, "query", 3) == SOURCE
