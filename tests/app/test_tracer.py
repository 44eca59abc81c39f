"""A trace request is answered without a server as it is with one."""

import math

import numpy as np
import pytest
import torch

from app.encoder import encode_checked
from app.form import Form
from app.orders import trace_id
from app.problems import Problem
from app.registry import registry_of
from app.schemas import TraceRequest
from app.tracer import Tracer

NO_SCALING = {"kind": "no_scaling"}
HEADS_OFF = {"kind": "heads_off", "heads": [0]}
REQUEST = TraceRequest(text="a")


def id_of(*, revision="r1", precision="float32", request=REQUEST, sites=("logits",)):
    return trace_id(revision, precision, request, sites)


def test_the_id_does_not_depend_on_the_order_of_analyses_or_on_the_encoding():
    first = TraceRequest(text="a", analyses=["next_token", "next_token"], dtype="uint16")
    second = TraceRequest(text="a", analyses=["next_token"])
    assert id_of(request=first) == id_of(request=second)


def test_the_id_does_not_depend_on_the_order_of_edits():
    first = TraceRequest(text="a", edits=[NO_SCALING, HEADS_OFF])
    second = TraceRequest(text="a", edits=[HEADS_OFF, NO_SCALING | {"layer": None}])
    assert id_of(request=first) == id_of(request=second)
    assert id_of(request=TraceRequest(text="a", edits=[])) == id_of()


def test_the_id_depends_on_whatever_decides_the_numbers():
    others = [
        id_of(revision="r2"),
        id_of(precision="bfloat16"),
        id_of(request=TraceRequest(text="b")),
        id_of(request=TraceRequest(text="a", heads=[0])),
        id_of(request=TraceRequest(text="a", target="b")),
        id_of(request=TraceRequest(text="a", target="c")),
        id_of(request=TraceRequest(text="a", edits=[NO_SCALING])),
        id_of(request=TraceRequest(text="a", edits=[NO_SCALING | {"layer": 0}])),
        id_of(request=TraceRequest(text="a", edits=[NO_SCALING, HEADS_OFF])),
        id_of(request=TraceRequest(text="a", analyses=["rollout"])),
        id_of(request=TraceRequest(text="a", analyses=["rollout", "next_token"])),
        id_of(sites=("logits", "decoder.embedding.positional")),
    ]
    assert len({id_of(), *others}) == 1 + len(others)


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
