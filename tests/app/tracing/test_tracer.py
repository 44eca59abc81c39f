"""A trace request is answered without a server as it is with one."""

import math

import numpy as np
import pytest
import torch

from headlight.errors import Problem
from headlight.registry import registry_of
from headlight.schemas.traces import TraceRequest
from headlight.serialization.encoder import encode_checked
from headlight.serialization.formats import Form
from headlight.tracing.tracer import Tracer


def test_the_tracer_answers_without_a_server(settings):
    answer = Tracer(registry_of(settings), settings).trace(TraceRequest(text="the cat", layers=[0]))
    assert answer.trace.model == "tiny"
    assert "decoder.layers.0.self_attention.weights" in answer.trace.tensors
    assert "decoder.layers.1.self_attention.weights" not in answer.trace.tensors


def test_a_trace_in_bfloat16_has_rows_that_sum_to_1_and_an_id_of_its_own(settings):
    request = TraceRequest(text="the cat sat")
    exact = Tracer(registry_of(settings), settings).trace(request)
    halved = settings.model_copy(update={"precision": "bfloat16"})
    rough = Tracer(registry_of(halved), halved).trace(request)
    site = "decoder.layers.1.self_attention.weights"
    weights, reference = (answer.trace.tensors[site].data for answer in (rough, exact))
    assert np.abs(weights.sum(axis=-1) - 1).max() < 1e-6
    assert 0 < np.abs(weights - reference).max() < 0.02
    assert rough.id != exact.id


def test_numbers_that_are_not_finite_are_no_answer(settings):
    tracer = Tracer(registry_of(settings), settings)
    with torch.no_grad():
        tracer.registry.checkpoint().model.decoder.norm.scale.fill_(math.nan)
    with pytest.raises(Problem, match="holds nan; the answer would not be true") as caught:
        encode_checked(tracer.trace(TraceRequest(text="the cat")), Form())
    assert caught.value.status_code == 503
