"""Orders that are solved together get what they get alone, and fail alone."""

import numpy as np
import pytest

from headlight.errors import Problem
from headlight.model import tracing
from headlight.model.cancellation import Cancelled, cancellable
from headlight.registry import registry_of
from headlight.schemas.traces import TraceRequest
from headlight.tracing import batch
from headlight.tracing.batch import Batch
from headlight.tracing.tracer import Tracer

TEXTS = ("the cat", "a small light reads the words aloud because it was tired", "mat")


@pytest.fixture(scope="module")
def tracer(settings):
    return Tracer(registry_of(settings), settings)


@pytest.fixture
def passes(monkeypatch):
    """The number of texts of every pass that is made."""
    made, run = [], tracing.run_batch

    def count(checkpoint, plans):
        made.append(len(plans))
        return run(checkpoint, plans)

    monkeypatch.setattr(tracing, "run_batch", count)
    return made


def orders_of(tracer, texts=TEXTS, **options):
    return [tracer.order(TraceRequest(text=text, **options)) for text in texts]


def size_of(answer):
    return sum(array.data.size for array in answer.trace.tensors.values())


@pytest.mark.parametrize("model", ["tiny", "filler", "translator", "turning", "slanted"])
def test_orders_solved_together_have_the_answers_that_they_have_alone(tracer, passes, model):
    orders = orders_of(tracer, model=model)
    together = tracer.solve(orders)
    assert max(passes) > 1
    assert sum(passes) == len(TEXTS)
    for answer, order in zip(together, orders, strict=True):
        alone = tracer.trace(order.request)
        assert answer.id == alone.id == order.id
        assert answer.members() | {"timings": 0} == alone.members() | {"timings": 0}
        for site, array in alone.trace.tensors.items():
            np.testing.assert_allclose(answer.trace.tensors[site].data, array.data, atol=1e-5)
        found, expected = (each.analyses["next_token"].arrays for each in (answer, alone))
        np.testing.assert_allclose(
            found["probabilities"].data, expected["probabilities"].data, atol=1e-5
        )


def test_what_is_wrong_with_one_order_hits_that_one_alone(tracer, passes):
    too_long = "a b c d e f g h " * 30
    found = tracer.solve(orders_of(tracer, ("the cat", too_long, "mat")))
    assert [getattr(each, "kind", "fine") for each in found] == ["fine", "too-many-tokens", "fine"]
    assert passes == [2]


def test_an_order_with_too_many_cells_hits_that_one_alone(tracer):
    orders = orders_of(tracer, capture=["*"])
    sizes = [
        sum(array.data.size for array in each.trace.tensors.values())
        for each in tracer.solve(orders)
    ]
    checkpoint = tracer.registry.checkpoint("tiny")
    found = Batch(checkpoint, orders, max(sizes) - 1).solve()
    assert [isinstance(each, Problem) for each in found] == [size == max(sizes) for size in sizes]


def test_a_pass_captures_no_more_numbers_than_one_answer_may_hold(tracer, passes):
    orders = orders_of(tracer, ("the cat",) * 4, capture=["*"])
    (alone, *_) = tracer.solve(orders[:1])
    size = size_of(alone)
    passes.clear()
    checkpoint = tracer.registry.checkpoint("tiny")
    answers = Batch(checkpoint, orders, 2 * size).solve()
    assert passes == [2, 2]
    assert [answer.id for answer in answers] == [order.id for order in orders]


def test_an_analysis_that_finds_nothing_hits_its_order_alone(tracer, monkeypatch):
    analyse = batch.analyse

    def fail(name, trace, checkpoint):
        if trace.text == "mat":
            raise Problem(422, "nothing-to-analyse", "there is nothing")
        return analyse(name, trace, checkpoint)

    monkeypatch.setattr(batch, "analyse", fail)
    found = tracer.solve(orders_of(tracer))
    assert [isinstance(each, Problem) for each in found] == [False, False, True]


def test_an_interruption_is_no_failure_of_an_order(tracer):
    with cancellable(lambda: True), pytest.raises(Cancelled):
        tracer.solve(orders_of(tracer))
