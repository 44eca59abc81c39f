"""Scores of a head's behaviour by hand, and heads constructed for each label."""

import math
from dataclasses import replace

import numpy as np
import pytest

from headlight.model.analysis.head_labels import LABELS, MIN_QUERIES, SCORES, head_labels

DECODER, ENCODER = "decoder.layers.0.self_attention", "encoder.layers.0.self_attention"
CROSS = "decoder.layers.0.cross_attention"
ROUNDS = "<s> a b c d a b c d a b c d"


def scores_of(arrays, path, head=0):
    """Return the scores of a head that are defined."""
    counts = arrays[f"{path}.label_queries"].data
    values = arrays[f"{path}.label_scores"].data[head]
    return {label: values[n].item() for n, label in enumerate(SCORES) if counts[n]}


def labels_of(arrays, path):
    return [LABELS[number] for number in arrays[f"{path}.label"].data]


def looking_at(n_tokens, key_of):
    """Return a head whose query t looks only at `key_of(t)`, or at the first token."""
    weights = np.zeros((n_tokens, n_tokens))
    for query in range(n_tokens):
        key = key_of(query)
        weights[query, key if 0 <= key <= query else 0] = 1
    return weights


def even(n_tokens):
    return np.tril(np.ones((n_tokens, n_tokens))) / np.arange(1, n_tokens + 1)[:, None]


def test_a_causal_head_by_hand(make_trace):
    weights = [
        [1.0, 0, 0, 0, 0, 0],  # <s>
        [0.5, 0.5, 0, 0, 0, 0],  # a
        [0.2, 0.3, 0.5, 0, 0, 0],  # b
        [0.1, 0.2, 0.3, 0.4, 0, 0],  # c
        [0.1, 0.2, 0.4, 0.1, 0.2, 0],  # a
        [0.5, 0.1, 0.1, 0.1, 0.1, 0.1],  # d
    ]
    arrays = head_labels(make_trace({f"{DECODER}.weights": [weights]}, "<s> a b c a d"))
    scores = scores_of(arrays, DECODER)
    assert scores.pop("narrow") == pytest.approx(1 - scores.pop("broad"), abs=1e-6)
    assert 0 <= scores.pop("positional") <= 1
    assert scores == pytest.approx(
        {
            "previous": (0.3 + 0.3 + 0.1 + 0.1) / 4,  # not a's, whose previous token is the sink
            "current": (0.5 + 0.5 + 0.4 + 0.2 + 0.1) / 5,
            "sink": (0.5 + 0.1 + 0.2 + 0.1 + 0.2 + 0.5 + 0.1) / 4,  # on <s> and a; b sees one more
            "same_token": 0.2,  # the second a's, on the first
            "induction": 0.4,  # the second a's, on what came after the first
        }
    )
    counts = dict(zip(SCORES, arrays[f"{DECODER}.label_queries"].data.tolist(), strict=True))
    assert counts == {
        "previous": 4,
        "next": 0,
        "current": 5,
        "sink": 4,
        "same_token": 1,
        "induction": 1,
        "monotonic": 0,
        "broad": 5,
        "positional": 5,
        "narrow": 5,
    }


def test_heads_get_the_labels_that_they_were_made_for(make_trace, random_weights):
    n_tokens = len(ROUNDS.split())
    heads = {
        "previous": looking_at(n_tokens, lambda query: query - 1),
        "current": looking_at(n_tokens, lambda query: query),
        "same_token": looking_at(n_tokens, lambda query: query - 4),
        "induction": looking_at(n_tokens, lambda query: query - 3),
        "sink": looking_at(n_tokens, lambda _: 0),
        "broad": even(n_tokens),
        "positional": looking_at(n_tokens, lambda query: query - 2),
        "narrow": looking_at(n_tokens, lambda query: min(query, 2)),
        "mixed": np.asarray(random_weights(1, n_tokens, n_tokens, is_causal=True))[0],
    }
    arrays = head_labels(make_trace({f"{DECODER}.weights": list(heads.values())}, ROUNDS))
    assert labels_of(arrays, DECODER) == list(heads)


def test_a_head_that_copies_where_it_can_and_rests_elsewhere_is_an_induction_head(make_trace):
    text = "<s> a b c d e f g h a b c"
    copies = looking_at(12, lambda query: query - 7 if query > 8 else 0)
    arrays = head_labels(make_trace({f"{DECODER}.weights": [copies]}, text))
    scores = scores_of(arrays, DECODER)
    assert scores["sink"] == pytest.approx(7 / 10)  # the first query sees too few keys
    assert scores["induction"] == 1
    assert labels_of(arrays, DECODER) == ["induction"]


def test_a_chance_repetition_makes_no_induction_head(make_trace):
    text = "<s> a b c d a b"
    copies = looking_at(7, lambda query: query - 3 if query > 4 else 0)
    arrays = head_labels(make_trace({f"{DECODER}.weights": [copies]}, text))
    assert scores_of(arrays, DECODER)["induction"] == 1
    assert arrays[f"{DECODER}.label_queries"].data[SCORES.index("induction")] < MIN_QUERIES
    assert labels_of(arrays, DECODER) == ["sink"]


def test_the_previous_token_is_no_induction(make_trace):
    # In "a b a b" the token after the earlier a is also the previous one.
    arrays = head_labels(make_trace({f"{DECODER}.weights": [even(5)]}, "<s> a b a b"))
    assert "induction" not in scores_of(arrays, DECODER)


def test_a_positional_score_by_hand(make_trace):
    weights = [[1.0, 0, 0], [0.2, 0.8, 0], [0.1, 0.3, 0.6]]
    arrays = head_labels(make_trace({f"{DECODER}.weights": [weights]}, "<s> a b"))
    # Five cells at three distances, whose means are .7, .25 and .1; even would be 1/2 and 1/3.
    unexplained = 2 * 0.1**2 + 2 * 0.05**2
    varied = 2 * 0.3**2 + (7 / 30) ** 2 + (1 / 30) ** 2 + (8 / 30) ** 2
    expected = 1 - (unexplained / (5 - 3)) / (varied / 5)
    assert scores_of(arrays, DECODER)["positional"] == pytest.approx(expected, abs=1e-6)


def test_broad_is_entropy_over_its_maximum(make_trace):
    weights = [[[1.0, 0, 0], [0.25, 0.75, 0], [0.5, 0.25, 0.25]]]
    arrays = head_labels(make_trace({f"{DECODER}.weights": weights}, "<s> a b"))
    # h(¼) of one bit, and 1.5 bits of log₂ 3; the first row has no choice.
    expected = (0.811278 + 1.5 / math.log2(3)) / 2
    assert scores_of(arrays, DECODER)["broad"] == pytest.approx(expected, abs=1e-6)


def test_a_two_way_text_has_a_sink_at_either_end(make_trace):
    ends = np.zeros((5, 5))
    ends[:, 0], ends[:, 4] = 0.3, 0.7
    for text, expected in [
        # Query a has 1; <s> does not count its own .3, nor </s> its own .7. For b and c
        # three of five keys are sinks, with the first word.
        ("<s> a b c </s>", (0.7 + 1 + 0.3) / 3),
        ("<s> a b c d", 0.3),
    ]:
        arrays = head_labels(make_trace({f"{ENCODER}.weights": [ends]}, text))
        assert scores_of(arrays, ENCODER)["sink"] == pytest.approx(expected)


def test_a_mask_at_the_end_is_no_sink(make_trace):
    weights = [[0.2, 0.2, 0.6], [0.3, 0.1, 0.6], [0.5, 0.4, 0.1]]
    trace = make_trace({f"{ENCODER}.weights": [weights]}, "<s> a b")
    mask = replace(trace.tokens[-1], text="[MASK]", word=None, is_special=True)
    trace = replace(trace, tokens=(*trace.tokens[:-1], mask))
    assert scores_of(head_labels(trace), ENCODER)["sink"] == pytest.approx(0.3)


def test_a_monotonic_score_by_hand(make_trace):
    weights = [[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0.5, 0.5]]
    trace = make_trace({f"{CROSS}.weights": [weights]}, "<s> a b c", target="<s> d e")
    # The places of d and e vary by 1/4, those of a, b and c by 11/16; both together by 3/8.
    expected = (3 / 8) / math.sqrt(1 / 4 * 11 / 16)
    assert scores_of(head_labels(trace), CROSS)["monotonic"] == pytest.approx(expected, abs=1e-6)


def test_cross_attention_along_the_diagonal_is_monotonic(make_trace):
    diagonal = np.zeros((5, 6))
    diagonal[np.arange(5), np.arange(5)] = 1
    sink, flat = np.zeros((5, 6)), np.full((5, 6), 1 / 6)
    sink[:, 5] = 1
    heads = [diagonal, diagonal[::-1], sink, flat, (diagonal + sink) / 2]
    trace = make_trace({f"{CROSS}.weights": heads}, "<s> a b c d </s>", target="<s> e f g h")
    arrays = head_labels(trace)
    monotonic = [scores_of(arrays, CROSS, head)["monotonic"] for head in range(5)]
    # Backwards it is 0, not negative; half of the weight on the end leaves half of the score.
    assert monotonic == pytest.approx([1, 0, 0, 0, 0.5], abs=1e-6)
    assert set(scores_of(arrays, CROSS)) == {"monotonic", "sink", "broad", "narrow"}
    assert labels_of(arrays, CROSS) == ["monotonic", "narrow", "sink", "broad", "monotonic"]


@pytest.mark.parametrize("text", ["<s>", "<s> a", "<s> a a", ROUNDS])
def test_every_score_is_a_finite_number_between_0_and_1(make_trace, random_weights, text):
    n_tokens = len(text.split())
    trace = make_trace(
        {
            f"{ENCODER}.weights": random_weights(3, n_tokens, n_tokens),
            f"{DECODER}.weights": random_weights(3, n_tokens, n_tokens, is_causal=True),
            f"{CROSS}.weights": random_weights(3, n_tokens, n_tokens),
        },
        text,
        target=text,
    )
    arrays = head_labels(trace)
    for path in (ENCODER, DECODER, CROSS):
        values = arrays[f"{path}.label_scores"].data
        assert ((values >= 0) & (values <= 1)).all()
        assert not values[:, arrays[f"{path}.label_queries"].data == 0].any()


def test_cross_attention_without_a_target_is_an_error(make_trace):
    with pytest.raises(ValueError, match="the trace has no target"):
        head_labels(make_trace({f"{CROSS}.weights": [[[1.0]]]}, "a"))
