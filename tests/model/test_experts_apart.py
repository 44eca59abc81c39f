"""Experts as writers apart from each other: their sum is what their layer writes, exactly."""

import pytest
import torch

from headlight.model.circuits.edge_scores import gradient_scores
from headlight.model.circuits.graph import NoGraph
from headlight.model.circuits.pairs import PairPasses
from headlight.model.circuits.parts import parts_of
from headlight.model.circuits.path_patching import MixedPasses
from headlight.model.config import ExpertsConfig
from tests.model.circuits.graph_models import served
from tests.model.circuits.test_edge_scores import pairs_of

CLEAN, CORRUPTED = [1, 7, 23, 31, 4], [1, 9, 23, 40, 4]


@pytest.fixture(scope="module")
def model():
    return served(moe=ExpertsConfig(n_experts=4, top_k=2, layers=(0, 1)))


def number(graph, name):
    return [writer.name for writer in graph.writers].index(name)


def test_the_experts_of_a_layer_add_up_to_what_it_writes(model):
    whole, apart = parts_of(model), parts_of(model, by_expert=True)
    together, _ = MixedPasses(model, whole).writes([CLEAN], None)
    by_expert, _ = MixedPasses(model, apart).writes([CLEAN], None)
    for layer in (0, 1):
        written = [by_expert[number(apart.graph, f"{layer}.e{n}")] for n in range(4)]
        expected = together[number(whole.graph, f"{layer}.ff")]
        torch.testing.assert_close(sum(written), expected, atol=1e-12, rtol=0)
        used = sum((each.abs().amax(-1) > 0).int() for each in written)
        assert (used == 2).all()  # two experts for each token


def test_the_sum_of_all_edges_is_the_input_of_every_reader(model):
    graph = parts_of(model, by_expert=True).graph
    writes, _ = MixedPasses(model, parts_of(model, by_expert=True)).writes([CLEAN], None)
    streams = model.read([CLEAN], None, sites=sorted({r.stream for r in graph.readers}))
    for at, reader in enumerate(graph.readers):
        total = sum(writes[writer] for writer, to in graph.edges if to == at)
        torch.testing.assert_close(total, streams[reader.stream], atol=1e-12, rtol=0)


def test_all_experts_of_the_corrupted_text_are_its_layer(model):
    logits = []
    for by_expert in (False, True):
        parts = parts_of(model, by_expert=by_expert)
        passes, graph = MixedPasses(model, parts), parts.graph
        other, _ = passes.writes([CORRUPTED], None)
        cut = torch.zeros(1, len(graph.writers), len(graph.readers), 1, dtype=torch.bool)
        for writer, reader in graph.edges:
            is_of = graph.writers[writer].kind in ("feed_forward", "expert")
            cut[0, writer, reader] = is_of and graph.writers[writer].layer == 0
        logits.append(passes.logits([CLEAN], None, cut, other))
    torch.testing.assert_close(*logits, atol=1e-12, rtol=0)


def test_scores_of_experts_sum_to_that_of_their_layer(model):
    whole = PairPasses(model, pairs_of(model))
    apart = PairPasses(model, pairs_of(model), by_expert=True)
    scores, by_expert = gradient_scores(whole, 3), gradient_scores(apart, 3)
    for name in ("0.ff→1.ff", "0.ff→1.2.v", "1.ff→logits"):
        layer, _, reader = name.partition(".ff→")
        each = [by_expert[apart.graph.edge(f"{layer}.e{n}→{reader}")] for n in range(4)]
        assert sum(each) == pytest.approx(scores[whole.graph.edge(name)], abs=1e-12)


def test_a_model_without_experts_or_without_their_outputs_is_refused():
    with pytest.raises(NoGraph, match="no experts"):
        parts_of(served(), by_expert=True)


def test_a_foreign_model_whose_experts_are_one_module_is_refused():
    from headlight.model.foreign.model import serve_module
    from tests.tiny_checkpoints import make_model

    mixtral = serve_module(make_model("mixtral"), "causal", "mixtral")
    with pytest.raises(NoGraph, match="expert_outputs"):
        parts_of(mixtral, by_expert=True)
