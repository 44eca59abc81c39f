"""The server's metrics: names and labels, none of which holds text that a client sent."""

import pytest

from headlight.metrics import NO_ROUTE, Metrics, known_method


@pytest.fixture
def metrics():
    return Metrics()


def value(metrics, name, **labels):
    return metrics.registry.get_sample_value(f"headlight_{name}", labels)


def test_a_method_that_nobody_knows_is_no_label_of_its_own(metrics):
    for method in ("BREW", "X" * 500):
        metrics.answered(route=NO_ROUTE, method=known_method(method), status=404, seconds=0)
    labels = {"route": NO_ROUTE, "method": "OTHER", "status": "404"}
    assert value(metrics, "requests_total", **labels) == 2


def test_a_watched_gauge_is_asked_whenever_it_is_read(metrics):
    waiting = [1, 2, 3]
    metrics.watch(metrics.queue_length, lambda: len(waiting))
    assert value(metrics, "queue_length") == 3
    waiting.clear()
    assert value(metrics, "queue_length") == 0
