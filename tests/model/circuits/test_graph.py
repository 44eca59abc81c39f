"""The graph of a model: its nodes and edges, their names, and paths through it."""

import pytest

from headlight.model.circuits.edges import Edges
from headlight.model.circuits.graph import NoGraph, UnknownEdge, graph_of
from headlight.model.circuits.parts import parts_of
from headlight.model.config import ExpertsConfig
from tests.model.circuits.graph_models import served


@pytest.fixture(scope="module")
def graph():
    return graph_of(served().description)


def test_every_reader_reads_every_writer_before_it(graph):
    # Two layers of four heads: q, k, v of a head, a network for each layer, and the logits.
    assert (len(graph.writers), len(graph.readers)) == (1 + 2 * 5, 2 * 13 + 1)
    assert len(graph.edges) == 12 * (1 + 6) + (5 + 10) + 11
    for writer, reader in graph.edges:
        assert graph.writers[writer].step < graph.readers[reader].step


def test_a_network_reads_the_heads_of_its_own_layer_and_they_do_not_read_it(graph):
    assert graph.edge("1.0→1.ff") >= 0
    for name in ("1.ff→1.0.q", "1.0→1.1.q", "1.0→0.ff"):
        with pytest.raises(UnknownEdge):
            graph.edge(name)


def test_an_unknown_edge_is_answered_with_the_nearest(graph):
    assert graph.edge("1.3->logits") == graph.edge("1.3→logits")
    with pytest.raises(UnknownEdge, match=r"did you mean '1\.3→logits'"):
        graph.edge("1.3→logit")


def test_experts_are_one_node_and_shared_keys_one_reader():
    names = {
        reader.name
        for reader in graph_of(
            served(n_kv_heads=2, moe=ExpertsConfig(n_experts=4, top_k=2, layers=(0, 1))).description
        ).readers
    }
    assert {"0.0.q", "0.0-1.k", "0.2-3.v", "0.ff"} <= names
    assert "0.1.k" not in names


def test_only_edges_between_tokens_and_logits_lie_on_a_path(graph):
    kept = [
        graph.edge(name)
        for name in ("tokens→0.0.v", "0.0→logits", "0.1→logits", "tokens→1.0.q", "0.0→1.0.k")
    ]
    on_paths = {graph.names[edge] for edge in Edges(graph).on_paths(kept)}
    assert on_paths == {"tokens→0.0.v", "0.0→logits"}


def test_the_encoder_feeds_the_keys_and_values_of_cross_attention():
    graph = graph_of(served(kind="encoder-decoder").description)
    assert graph.edge("encoder.1.ff→cross.0.2.k") >= 0
    assert graph.edge("0.1→cross.0.2.q") >= 0
    with pytest.raises(UnknownEdge):
        graph.edge("encoder.1.ff→0.0.q")


def test_norms_after_the_sums_leave_no_graph():
    with pytest.raises(NoGraph, match="after each sum"):
        graph_of(served(norm_place="post").description)


def test_a_graph_is_checked_once_for_a_model():
    model = served()
    assert parts_of(model) is parts_of(model)
