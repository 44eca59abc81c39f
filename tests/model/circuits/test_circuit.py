"""Circuits: the chosen edges, what their own run keeps, and tasks made for a tokenizer."""

import json

import numpy as np
import pytest

from headlight.model.checkpoint.loading import load
from headlight.model.circuits.circuit import find_circuit, measure, ranked
from headlight.model.circuits.edge_scores import edge_scores
from headlight.model.circuits.pairs import PairPasses
from headlight.model.circuits.tasks import (
    RULES,
    TextPair,
    UnfitTask,
    as_request,
    fitted,
    read_task,
    task_pairs,
)
from tests.model.circuits.graph_models import served
from tests.model.circuits.test_edge_scores import pairs_of


@pytest.fixture(scope="module")
def passes():
    model = served(positional="learned")
    return PairPasses(model, pairs_of(model, 6))


@pytest.fixture(scope="module")
def small():
    return load("stories-small")


@pytest.mark.parametrize("rule", ["top", "greedy", "pruned"])
def test_a_circuit_is_measured_by_its_own_run(passes, rule):
    circuit = find_circuit(passes, n_edges=20, rule=rule)
    held = PairPasses(passes.model, passes.pairs[1::2])
    clean, corrupted = held.whole()
    run = held.with_only([circuit.edges])[0]
    share = (run - corrupted).mean() / (clean - corrupted).mean()
    assert circuit.held_out.value == pytest.approx(share, abs=1e-9)
    assert 0 < len(circuit.edges) <= 20
    assert circuit.held_out.n_pairs == 3
    low, high = circuit.held_out.interval
    assert low <= circuit.held_out.value <= high


def test_all_edges_keep_all_and_none_keeps_nothing(passes):
    circuit = find_circuit(passes, n_edges=20, rule="top")
    first, *_, last = circuit.curve
    assert (first.n_edges, last.n_edges) == (0, len(passes.graph.edges))
    assert first.faithfulness == pytest.approx(0, abs=1e-9)
    assert last.faithfulness == pytest.approx(1, abs=1e-9)


def test_the_loss_of_an_edge_is_the_run_without_it(passes):
    names = ["tokens→0.0.v", "0.0→1.ff", "1.ff→logits", "0.0→logits", "tokens→logits"]
    edges = [passes.graph.edge(name) for name in names]
    circuit = measure(passes, edges)
    for place in range(len(edges)):
        without = measure(passes, edges[:place] + edges[place + 1 :])
        lost = circuit.chosen.value - without.chosen.value
        assert circuit.losses[place] == pytest.approx(lost, abs=1e-9)
    others = sorted(set(range(len(passes.graph.edges))) - set(edges))
    assert circuit.complement == pytest.approx(measure(passes, others).chosen.value, abs=1e-9)


def test_edges_of_greedy_come_from_the_logits_back(passes):
    scores = edge_scores(passes, "eap")
    order = ranked(passes.edges, scores, "greedy")
    assert sorted(order) == list(range(len(passes.graph.edges)))
    for count in (1, 7, 30):
        reached = passes.graph.edges[order[count - 1]][1]
        reader = passes.graph.readers[reached]
        feeds = {passes.graph.edges[edge][0] for edge in order[: count - 1]}
        fed = {at for writer in feeds for at in passes.graph.fed_by(writer)}
        assert reader.kind == "logits" or reached in fed


def test_as_few_edges_are_kept_as_reach_a_faithfulness(passes):
    circuit = find_circuit(passes, faithfulness=0.8, rule="pruned", holds_out=False)
    top = find_circuit(passes, faithfulness=0.8, rule="top", holds_out=False)
    assert circuit.chosen.value >= 0.8
    assert len(circuit.edges) <= len(top.edges)
    assert circuit.held_out is None


def test_equal_texts_have_no_circuit(passes):
    same = tuple(
        type(pair)(
            clean=pair.clean,
            corrupted=pair.clean,
            right=pair.right,
            wrong=pair.wrong,
            position=pair.position,
        )
        for pair in passes.pairs
    )
    with pytest.raises(ValueError, match="nothing that a circuit could keep"):
        find_circuit(PairPasses(passes.model, same), n_edges=5)


@pytest.mark.parametrize("baseline", ["zero", "mean"])
def test_another_baseline_counts_from_its_own_empty_run(passes, baseline):
    other = PairPasses(passes.model, passes.pairs, baseline=baseline)
    circuit = measure(other, range(len(other.graph.edges)))
    assert circuit.chosen.value == pytest.approx(1, abs=1e-9)
    assert circuit.chosen.corrupted == pytest.approx(other.with_only([()])[0].mean(), abs=1e-9)


# --- tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["agreement", "repetition", "names"])
def test_a_task_has_a_hundred_pairs_of_equal_lengths_and_one_right_token(small, name):
    pairs, texts = task_pairs(small, name)
    assert len(pairs) == len(texts) == len(set(texts)) == 100
    for pair, text in zip(pairs, texts, strict=True):
        assert len(pair.clean) == len(pair.corrupted)
        assert sum(a != b for a, b in zip(pair.clean, pair.corrupted, strict=True)) >= 1
        assert pair == fitted(small, text)
    assert pairs == task_pairs(small, name)[0]  # the same every time


def test_the_sums_that_are_asked_for_are_right():
    model = load("sums")
    for name in ("last_digit", "carrying"):
        _, texts = task_pairs(model, name, 40)
        for text in texts:
            for beginning, (digit,) in ((text.clean, text.right), (text.corrupted, text.wrong)):
                *_, parts, written = beginning.split("=")
                whole = str(sum(map(int, parts.split("+"))))
                assert whole.startswith(written + digit)


def test_a_task_that_a_tokenizer_cannot_do_is_refused_with_the_reason(small):
    with pytest.raises(UnfitTask, match="2 tokens; an answer must be one"):
        task_pairs(small, "greater_than")
    with pytest.raises(UnfitTask, match="there are agreement"):
        task_pairs(small, "nothing")
    assert all(rule.endswith(".") for rule in RULES.values())


def test_pairs_are_written_and_read_again(small, tmp_path):
    _, texts = task_pairs(small, "agreement", 8)
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, as_request(texts))))
    assert read_task(path) == texts


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no pairs"),
        ("not json", "line 1 is no pair: Invalid JSON"),
        ("[1]", "line 1 is no pair: "),
        ('{"clean": "a", "corrupted": "b", "right": " c"}', "wrong: "),
        ('{"clean": "a", "corrupted": "b", "right": [], "wrong": " d"}', "right: "),
        ('{"clean": "a", "corrupted": "b", "right": " c", "wrong": " d", "x": 1}', "x: Extra"),
    ],
)
def test_a_file_that_holds_no_pairs_is_refused(tmp_path, content, message):
    path = tmp_path / "pairs.jsonl"
    path.write_text(content)
    with pytest.raises(UnfitTask, match=message):
        read_task(path)


def test_texts_of_other_lengths_are_refused_with_both(small):
    pair = TextPair("The dogs", "The dogs with", (" were",), (" was",))
    with pytest.raises(ValueError, match="has 3 tokens and the corrupted one 4"):
        fitted(small, pair)


def test_scores_of_all_edges_are_finite(passes):
    for method in ("eap", "eap_ig", "exact"):
        assert np.isfinite(edge_scores(passes, method)).all()
