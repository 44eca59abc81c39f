"""A graph by position: names, paths, and runs in which an edge is cut at one position."""

import numpy as np
import pytest
import torch

from headlight.model.circuits.circuit import find_circuit
from headlight.model.circuits.edge_scores import gradient_scores
from headlight.model.circuits.edges import Edges
from headlight.model.circuits.graph import UnknownEdge, graph_of
from headlight.model.circuits.pairs import PairPasses
from tests.model.circuits.graph_models import served
from tests.model.circuits.test_edge_scores import pairs_of

KINDS = {
    "decoder": {"positional": "learned"},
    "encoder": {"kind": "encoder", "positional": "learned"},
    "encoder-decoder": {"kind": "encoder-decoder"},
}


@pytest.fixture(scope="module", params=KINDS)
def passes(request):
    model = served(**KINDS[request.param], n_layers=2 if request.param != "encoder-decoder" else 1)
    return PairPasses(model, pairs_of(model), by_position=True)


@pytest.fixture(scope="module")
def edges():
    return Edges(graph_of(served().description), 5, 4)


def test_an_edge_is_named_with_its_position(edges):
    number = edges.edge("1.3->logits@4")
    assert edges.name(number) == "1.3→logits@4"
    assert edges.n_edges == 5 * len(edges.graph.edges)
    for name in ("1.3→logits", "1.3→logits@5", "1.3→logits@-1", "1.3→logits@²", "1.3→logit@1"):
        with pytest.raises(UnknownEdge):
            edges.edge(name)
    with pytest.raises(UnknownEdge, match="names a position"):
        Edges(edges.graph).edge("1.3→logits@4")


def test_only_keys_and_values_carry_to_later_positions(edges):
    def on_paths(*names):
        return {edges.name(each) for each in edges.on_paths([edges.edge(name) for name in names])}

    carried = {"tokens→0.0.v@1", "0.0→logits@4"}
    assert on_paths(*carried) == carried
    assert on_paths("tokens→0.0.q@1", "0.0→logits@4") == set()
    assert on_paths("tokens→0.ff@1", "0.ff→logits@4") == set()
    assert on_paths("tokens→0.0.v@1", "0.0→logits@3") == set()  # nothing is predicted there
    assert on_paths("tokens→0.0.v@3", "0.0→1.1.k@2", "1.1→logits@4") == set()  # of the future
    both = Edges(edges.graph, 5, 4, is_causal=False)
    assert len(both.on_paths([both.edge("tokens→0.0.v@3"), both.edge("0.0→1.1.k@2"),
                              both.edge("1.1→logits@4")])) == 3  # fmt: skip


def test_an_edge_cut_at_every_position_is_cut(passes):
    plain = PairPasses(passes.model, passes.pairs)
    number = int(np.argmax(np.abs(gradient_scores(plain, 2))))
    every = set(range(len(plain.graph.edges)))
    n = passes.edges.n_positions
    left = [number * n + at for at in range(n)]
    expected = plain.with_only([every - {number}])
    run = passes.with_only([set(range(passes.edges.n_edges)) - set(left)])
    torch.testing.assert_close(torch.tensor(run), torch.tensor(expected), atol=1e-12, rtol=0)
    assert np.abs(run - plain.whole()[0]).max() > 1e-6


def test_the_parts_that_lie_on_no_path_change_nothing(passes):
    rng = np.random.default_rng(1)
    kept = rng.permutation(passes.edges.n_edges)[: passes.edges.n_edges * 2 // 3].tolist()
    on_paths = passes.edges.on_paths(kept)
    assert 0 < len(on_paths) < len(kept)
    with_all, with_some = passes.with_only([kept, on_paths])
    np.testing.assert_allclose(with_some, with_all, atol=1e-12)
    assert np.abs(with_all - passes.whole()[1]).max() > 1e-6


@pytest.mark.parametrize("rule", ["greedy", "pruned"])
def test_a_circuit_by_position_is_its_own_run(passes, rule):
    circuit = find_circuit(passes, n_edges=25, rule=rule, holds_out=False)
    clean, corrupted = passes.whole()
    run = passes.with_only([circuit.edges])[0]
    share = (run - corrupted).mean() / (clean - corrupted).mean()
    assert circuit.chosen.value == pytest.approx(share, abs=1e-9)
    assert circuit.curve[-1].faithfulness == pytest.approx(1, abs=1e-9)
