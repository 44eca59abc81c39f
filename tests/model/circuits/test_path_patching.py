"""Passes with cut edges: nothing cut is the clean pass, all cut the corrupted one."""

import random

import pytest
import torch

from headlight.model.circuits.parts import parts_of
from headlight.model.circuits.path_patching import MixedPasses
from headlight.model.config import ExpertsConfig
from tests.model.circuits.graph_models import served
from tests.model.circuits.slow_circuit import SlowRun, own_stacks

KINDS = {
    "learned": {"positional": "learned"},
    "rotary, grouped": {"positional": "rotary", "n_kv_heads": 2, "norm": "rms_norm"},
    "alibi, biases": {"positional": "alibi", "attention_bias": True},
    "experts": {"moe": ExpertsConfig(n_experts=4, top_k=2, layers=(0, 1))},
    "encoder": {"kind": "encoder", "positional": "learned"},
    "encoder-decoder": {"kind": "encoder-decoder", "positional": "sinusoidal"},
}
CLEAN, CORRUPTED = [1, 7, 23, 31, 4], [1, 9, 23, 40, 4]
TARGETS = [3, 11, 5, 6], [3, 12, 5, 6]


@pytest.fixture(params=KINDS, scope="module")
def passes(request):
    model = served(**KINDS[request.param])
    return MixedPasses(model, parts_of(model))


def texts(passes, *, is_clean):
    target = None
    if passes.model.config.kind == "encoder-decoder":
        target = [TARGETS[0] if is_clean else TARGETS[1]]
    return [CLEAN if is_clean else CORRUPTED], target


def cut_all(graph):
    cut = torch.zeros(1, len(graph.writers), len(graph.readers), 1, dtype=torch.bool)
    for writer, reader in graph.edges:
        cut[0, writer, reader] = True
    return cut


def test_the_sum_of_all_writers_is_the_stream_before_the_logits(passes):
    model, graph = passes.model, passes.parts.graph
    last = graph.readers[-1]
    writes, _ = passes.writes(*texts(passes, is_clean=True))
    with torch.no_grad(), model.model.capture_sites([last.stream]) as captured:
        model.run(*texts(passes, is_clean=True), edits=())
    parts = [writes[n] for n, writer in enumerate(graph.writers) if writer.stack == last.stack]
    rest = captured[last.stream] - sum(parts)
    # What is left is the same at every position: the biases of output projections.
    assert float((rest - rest[:, :1]).abs().max()) < 1e-12
    if not model.config.attention_bias:
        assert float(rest.abs().max()) < 1e-12


def test_with_all_edges_a_run_is_the_clean_one_and_with_none_the_corrupted_one(passes):
    clean, corrupted = (texts(passes, is_clean=each) for each in (True, False))
    own, clean_logits = passes.writes(*clean)
    other, corrupted_logits = passes.writes(*corrupted)
    cut = cut_all(passes.parts.graph)
    assert float((clean_logits - corrupted_logits).abs().max()) > 0.1
    nothing = passes.logits(*clean, cut, other)[0]
    assert float((nothing - corrupted_logits).abs().max()) < 1e-12
    everything = passes.logits(*clean, torch.zeros_like(cut), other)[0]
    assert float((everything - clean_logits).abs().max()) < 1e-12
    with_own = passes.logits(*clean, cut, own)[0]
    assert float((with_own - clean_logits).abs().max()) < 1e-12


def test_random_circuits_equal_a_second_slow_implementation(passes):
    graph, model = passes.parts.graph, passes.model
    clean, corrupted = (texts(passes, is_clean=each) for each in (True, False))
    other, _ = passes.writes(*corrupted)
    stacks, draw = own_stacks(model.model), random.Random(5)
    ids = [torch.tensor(each) if each else None for each in corrupted]
    with torch.no_grad(), SlowRun(stacks).hooked() as run:
        model.model(*ids)
    slow_writes = run.writes
    seen = 0.0
    for share in (0.1, 0.4, 0.7, 0.95):
        kept = {n for n in range(len(graph.edges)) if draw.random() < share}
        cut = cut_all(graph)
        for number in kept:
            writer, reader = graph.edges[number]
            cut[0, writer, reader] = False
        fast = passes.logits(*clean, cut, other)[0]
        names = {graph.names[number] for number in kept}
        ids = [torch.tensor(each) if each else None for each in clean]
        with torch.no_grad(), SlowRun(stacks, names, slow_writes).hooked():
            slow = model.model(*ids).logits
        assert float((fast - slow).abs().max()) < 1e-10
        seen = max(seen, float((fast - passes.writes(*clean)[1]).abs().max()))
    assert seen > 0.05  # the circuits did change the logits


def test_rows_of_a_pass_cut_their_own_edges(passes):
    graph = passes.parts.graph
    clean, corrupted = (texts(passes, is_clean=each) for each in (True, False))
    other, _ = passes.writes(*corrupted)
    both = torch.cat([cut_all(graph), torch.zeros_like(cut_all(graph))])
    both[1, 0] = cut_all(graph)[0, 0]
    together = passes.logits(*clean, both, other)
    for row in range(2):
        alone = passes.logits(*clean, both[row : row + 1], other)[0]
        assert float((together[row] - alone).abs().max()) < 1e-12


def test_edges_cut_at_one_position_change_nothing_before_it():
    model = served(positional="learned")
    passes = MixedPasses(model, parts_of(model))
    other, _ = passes.writes([CORRUPTED], None)
    _, logits = passes.writes([CLEAN], None)
    cut = cut_all(passes.parts.graph).expand(-1, -1, -1, len(CLEAN)).clone()
    cut[..., :3] = False
    mixed = passes.logits([CLEAN], None, cut, other)[0]
    assert float((mixed[:, :3] - logits[:, :3]).abs().max()) < 1e-12
    assert float((mixed[:, 3:] - logits[:, 3:]).abs().max()) > 0.05
