"""A server is ready when its default model has answered once."""

import headlight.services
from headlight.services import Services
from tests.app.connections import wait_for


def warm_up(services):
    """Start, and wait until it is known whether the default model answers."""
    services.engine.start()
    wait_for(lambda: services.is_ready or "being loaded" not in services.why_not_ready)
    services.engine.close()


def test_warming_up_is_not_held_to_the_limits_of_clients(settings):
    services = Services(settings.model_copy(update={"max_cells": 1, "max_characters": 1}))
    warm_up(services)
    assert services.is_ready


def test_a_missing_default_model_is_the_reason_for_not_being_ready(settings, model_ids):
    services = Services(settings.model_copy(update={"default_model": "gone"}))
    warm_up(services)
    assert not services.is_ready
    assert services.why_not_ready == (
        "the default model did not start: there is no model 'gone'; "
        f"the models are {', '.join(model_ids)}"
    )


def test_what_the_log_should_keep_is_not_shown(settings, monkeypatch, caplog):
    services = Services(settings)
    monkeypatch.setattr(headlight.services, "trace_now", lambda *_: 1 / 0)
    warm_up(services)
    assert services.why_not_ready == "the default model did not start: the log says why"
    assert "ZeroDivisionError" in caplog.text


def test_a_fatal_error_makes_the_server_not_ready_and_ends_the_process(settings, monkeypatch):
    def run_out(*_):
        raise MemoryError

    monkeypatch.setattr(headlight.services, "trace_now", run_out)
    ended = []
    services = Services(settings, on_fatal=lambda: ended.append(services.is_ready))
    services.engine.start()
    services.engine._thread.join(20)
    assert ended == [False]
    assert services.has_failed
    assert "MemoryError" in services.why_not_ready
