"""Which tokens an axis has, by the name of its site."""

from types import SimpleNamespace

import pytest

from headlight.model.token_axes import tokens_along

SOURCE, TARGET = ("a", "b", "c"), ("d", "e")
PAIR = SimpleNamespace(tokens=SOURCE, target_tokens=TARGET)
ONE = SimpleNamespace(tokens=SOURCE, target_tokens=None)


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
def test_of_a_pair_the_decoder_reads_the_target(site, axis, size, tokens):
    assert tokens_along(PAIR, site, axis, size) == tokens


def test_of_one_text_all_is_the_text():
    assert tokens_along(ONE, "decoder.layers.0.self_attention.weights", "key", 3) == SOURCE
    assert tokens_along(ONE, "logits", "query", 3) == SOURCE
