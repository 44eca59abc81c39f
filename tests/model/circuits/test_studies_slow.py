"""The statements of the project on circuits, computed again, by exact patching too."""

from time import process_time

import numpy as np
import pytest

from headlight.model.checkpoint.loading import load
from headlight.model.circuits.circuit import find_circuit
from headlight.model.circuits.edge_scores import edge_scores
from headlight.model.circuits.pairs import PairPasses
from headlight.model.circuits.tasks import task_pairs

pytestmark = pytest.mark.slow


def passes(model, task, n_pairs):
    checkpoint = load(model)
    return PairPasses(checkpoint, tuple(task_pairs(checkpoint, task, n_pairs)[0]))


def test_forty_edges_of_stories_keep_nine_tenths_of_agreement_on_other_pairs():
    of_task = passes("stories", "agreement", 64)
    assert len(of_task.graph.edges) == 927
    circuit = find_circuit(of_task, rule="pruned", n_edges=40)
    assert len(circuit.edges) <= 40
    assert circuit.held_out.value >= 0.9
    assert circuit.complement < 0.1


@pytest.mark.parametrize("task", ["carrying", "last_digit"])
def test_sixty_edges_of_sums_do_most_of_a_digit(task):
    circuit = find_circuit(passes("sums", task, 32), rule="pruned", n_edges=60)
    assert circuit.held_out.value >= 0.8


@pytest.mark.parametrize(
    ("model", "task"), [("stories-small", "agreement"), ("sums", "last_digit")]
)
def test_all_edges_of_a_small_model_are_patched_in_a_minute(model, task, record_property):
    of_task = passes(model, task, 32)
    began = process_time()
    noising = edge_scores(of_task, "noising")
    took = process_time() - began
    denoising, ig = edge_scores(of_task, "denoising"), edge_scores(of_task, "eap_ig")
    correlation = np.corrcoef(ig, noising)[0, 1]
    ceiling = np.corrcoef(denoising, noising)[0, 1]
    for name, value in (("seconds", took), ("Pearson", correlation), ("ceiling", ceiling)):
        record_property(name, float(value))
    assert correlation > 0.9
    assert took <= 60
