"""Every analysis names the site or the layer that its trace lacks."""

import numpy as np
import pytest

from headlight.model.analysis.alignment import alignment
from headlight.model.analysis.attention_by_distance import attention_by_distance
from headlight.model.analysis.head_labels import head_labels
from headlight.model.analysis.head_outputs import head_norms, head_outputs, value_weighted
from headlight.model.analysis.layers import visible_keys
from headlight.model.analysis.logit_lens import logit_lens
from headlight.model.analysis.next_token import next_token
from headlight.model.analysis.residual_stream import residual_stream
from headlight.model.analysis.rollout import rollout
from headlight.model.analysis.routing import routing
from headlight.model.attention.terms import Terms
from headlight.model.checkpoint.exits import norm_and_unembedding

SITES = {
    alignment: "cross_attention.weights",
    attention_by_distance: "self_attention.weights",
    head_labels: "self_attention.weights",
    head_norms: "context",
    head_outputs: "context",
    logit_lens: "residual.after",
    next_token: "logits",
    residual_stream: "residual.before",
    rollout: "self_attention.weights",
    routing: "experts",
    value_weighted: "self_attention.weights",
}


def run(analysis, trace):
    takes_parameters = analysis in (head_norms, head_outputs, value_weighted)
    exits = [norm_and_unembedding({})] if analysis is logit_lens else []
    return analysis(trace, *exits, *([{}] if takes_parameters else []))


@pytest.mark.parametrize("analysis", SITES, ids=lambda analysis: analysis.__name__)
def test_a_trace_without_the_site_is_an_error(make_trace, analysis):
    with pytest.raises(KeyError, match=SITES[analysis].replace(".", r"\.")):
        run(analysis, make_trace({}, "<s> a", target="<s> b"))


@pytest.mark.parametrize("analysis", [logit_lens, residual_stream, rollout])
def test_a_gap_between_layers_is_an_error(make_trace, analysis):
    part = SITES[analysis]
    data = np.ones((1, 1, 1) if part.endswith("weights") else (1, 1))
    with pytest.raises(ValueError, match=r"lacks decoder\.layers\.0"):
        run(analysis, make_trace({f"decoder.layers.1.{part}": data}))


def test_a_query_sees_what_the_attention_lets_it_see():
    seen = visible_keys(Terms(is_causal=True, window=2), 4, 4)
    assert seen.astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    seen = visible_keys(Terms(chunk=3), 4, 4)
    assert seen.astype(int).tolist() == [[1, 1, 1, 0]] * 3 + [[0, 0, 0, 1]]
    assert visible_keys(Terms(), 2, 3).all()
