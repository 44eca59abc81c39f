"""Word alignment from cross-attention weights."""

import numpy as np
import pytest

from headlight.model.analysis.alignment import alignment, word_links

SITE = "decoder.layers.{}.cross_attention.weights"
SOURCE, TARGET = "<s> le ch +at </s>", "<s> the c +at"
WEIGHTS = np.array(
    [
        [0.6, 0.1, 0.1, 0.1, 0.1],  # <s>
        [0.2, 0.5, 0.1, 0.1, 0.1],  # the
        [0.0, 0.1, 0.4, 0.3, 0.2],  # c
        [0.0, 0.3, 0.1, 0.2, 0.4],  # +at
    ]
)


def test_rows_that_read_a_word_by_hand(make_tokens):
    linked = word_links(WEIGHTS, make_tokens(SOURCE), make_tokens(TARGET))
    # the: le .5, chat .1 + .1. cat: le (.1 + .3)/2, chat (.4 + .3 + .1 + .2)/2.
    expected = [[0.5 / 0.7, 0.2 / 0.7], [0.2 / 0.7, 0.5 / 0.7]]
    np.testing.assert_allclose(linked.weights, expected)
    assert linked.links.tolist() == [[True, False], [False, True]]


def test_rows_that_predict_a_word_by_hand(make_tokens):
    linked = word_links(WEIGHTS, make_tokens(SOURCE), make_tokens(TARGET), shift=1)
    # the, from the row of <s>: le .1, chat .2. cat, from those of the and c: le .3, chat .45.
    np.testing.assert_allclose(linked.weights, [[1 / 3, 2 / 3], [0.4, 0.6]])
    assert linked.links.tolist() == [[False, True], [False, True]]


def test_a_word_that_looks_at_special_tokens_only_is_linked_to_none(make_tokens):
    linked = word_links(np.array([[1.0, 0, 0]]), make_tokens("<s> un deux"), make_tokens("one"))
    assert linked.weights.tolist() == [[0, 0]]
    assert not linked.links.any()


def test_all_layers_and_heads_are_averaged(make_trace, make_tokens, random_weights):
    weights = [np.asarray(random_weights(3, 4, 5, seed=seed)) for seed in range(2)]
    arrays = {SITE.format(layer): heads for layer, heads in enumerate(weights)}
    result = alignment(make_trace(arrays, SOURCE, target=TARGET))
    expected = word_links(np.mean(weights, axis=(0, 1)), make_tokens(SOURCE), make_tokens(TARGET))
    assert result["weights"].axes == result["links"].axes == ("target_word", "source_word")
    np.testing.assert_allclose(result["weights"].data, expected.weights, rtol=1e-5)
    assert result["links"].data.tolist() == expected.links.astype(int).tolist()
    assert result["links"].data.dtype == np.int32


def test_chosen_heads_of_a_layer_are_those_of_the_model(make_trace, make_tokens, random_weights):
    weights = [np.asarray(random_weights(2, 4, 5, seed=seed)) for seed in range(2)]
    arrays = {SITE.format(layer): heads for layer, heads in enumerate(weights)}
    # The trace holds heads 5 and 2, in this order.
    trace = make_trace(arrays, SOURCE, target=TARGET, heads=(5, 2))
    result = alignment(trace, {"layer": 1, "head": 2, "shift": 1})
    expected = word_links(weights[1][1], make_tokens(SOURCE), make_tokens(TARGET), shift=1)
    np.testing.assert_allclose(result["weights"].data, expected.weights, rtol=1e-5)
    assert result["links"].data.tolist() == expected.links.astype(int).tolist()


@pytest.mark.parametrize("place", [{"layer": 4, "head": 0}, {"layer": 0, "head": 3}])
def test_layers_and_heads_that_the_trace_lacks_are_an_error(make_trace, place):
    trace = make_trace({SITE.format(0): WEIGHTS[None]}, SOURCE, target=TARGET)
    with pytest.raises(ValueError, match="alignment: the trace"):
        alignment(trace, place)


@pytest.mark.parametrize(
    ("source", "target", "options", "message"),
    [
        ("<s> le", TARGET, {}, "4 target and 2 source tokens"),
        (SOURCE, TARGET, {"shift": 2}, "shift"),
        ("<s> </s> </s> </s> </s>", TARGET, {}, "the source has no words"),
        (SOURCE, "the c +at sat", {"shift": 1}, "no row predicts the first token 'the'"),
    ],
)
def test_texts_or_options_out_of_range_are_an_error(make_tokens, source, target, options, message):
    with pytest.raises(ValueError, match=message):
        word_links(WEIGHTS, make_tokens(source), make_tokens(target), **options)
