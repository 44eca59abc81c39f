"""The progress of a pass: its share, the time that is left, and its maps so far."""

import base64

import numpy as np
import pytest
import torch

from headlight.model.attention.observer import PooledMap
from headlight.tracing import progress as of_progress
from headlight.tracing.progress import BINS, EVENT_SECONDS, PassProgress


@pytest.fixture
def clock(monkeypatch):
    """Return the seconds of a clock that a test sets."""
    seconds = [100.0]
    monkeypatch.setattr(of_progress, "monotonic", lambda: seconds[0])
    return seconds


def test_the_time_that_is_left_follows_from_what_is_done(clock):
    progress = PassProgress()
    assert progress.seconds_left is None
    progress.note(0.0)
    clock[0] += 10
    assert progress.seconds_left is None
    progress.note(0.25)
    assert progress.seconds_left == pytest.approx(30)
    ((name, event),) = progress.news()
    assert (name, event) == ("progress", {"share": 0.25, "seconds_left": 30.0})
    assert list(progress.news()) == []


def test_the_first_moments_promise_nothing(clock):
    progress = PassProgress()
    progress.note(0.0)
    clock[0] += 0.01
    progress.note(0.001)
    ((_, event),) = progress.news()
    assert event["seconds_left"] is None


def pooled_map(n_tokens, n_heads=2):
    pooled = PooledMap((1, n_heads), n_tokens, n_tokens, 256, torch.empty(0))
    pooled.add((0,), torch.full((n_heads, n_tokens, n_tokens), 0.5), 0)
    return pooled


def test_a_map_is_sent_as_the_mean_of_its_bins(clock):
    progress = PassProgress()
    progress.look("decoder.layers.1", slice(1, 2), pooled_map(600), 600)
    ((name, event),) = progress.news()
    assert (name, event["head"], event["attention"]) == ("map", 1, "decoder.layers.1")
    assert (event["tokens"], event["read"], event["bins"]) == ([600, 600], 600, [BINS, BINS])
    mean = np.frombuffer(base64.b64decode(event["mean"]), "<f4")
    np.testing.assert_allclose(mean, np.full(BINS * BINS, 0.5), rtol=1e-6)


def test_a_short_text_has_fewer_bins(clock):
    progress = PassProgress()
    progress.look("a", slice(0, 1), pooled_map(5), 5)
    ((_, event),) = progress.news()
    assert event["bins"] == [5, 5]


def test_a_map_is_looked_at_now_and_then_and_at_its_end(clock):
    progress, pooled = PassProgress(), pooled_map(600)
    for n_read in (10, 20):
        progress.look("a", slice(0, 1), pooled, n_read)
    assert [event["read"] for _, event in progress.news()] == [10]
    clock[0] += EVENT_SECONDS
    progress.look("a", slice(0, 1), pooled, 30)
    progress.look("a", slice(0, 1), pooled, 600)
    progress.look("a", slice(1, 2), pooled, 600)
    assert [(event["head"], event["read"]) for _, event in progress.news()] == [(0, 600), (1, 600)]
