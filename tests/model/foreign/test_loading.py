"""Silence and builds are of the whole process, and one that hangs stops no other thread."""

import threading
import warnings

import pytest
import torch

pytest.importorskip("transformers", reason="the extra hf is not installed")

from headlight.model.foreign import loading
from headlight.model.foreign.loading import building, quiet, transformers_library


@pytest.fixture
def hanging():
    """Begins a block on another thread that ends with the test, and returns what ends it."""
    threads, goes_on = [], threading.Event()

    def begin(block):
        is_inside = threading.Event()

        def hang():
            with block():
                is_inside.set()
                goes_on.wait(60)

        threads.append(threading.Thread(target=hang, daemon=True))
        threads[-1].start()
        assert is_inside.wait(60)

        def end():
            goes_on.set()
            threads[-1].join(60)

        return end

    yield begin
    goes_on.set()
    for thread in threads:
        thread.join(60)


def test_no_thread_waits_for_the_silence_of_another(hanging):
    end = hanging(quiet)
    is_done = threading.Event()

    def enter():
        with quiet():
            is_done.set()

    threading.Thread(target=enter, daemon=True).start()
    assert is_done.wait(20)
    end()


def test_the_last_that_leaves_ends_the_silence(hanging):
    logging = transformers_library().logging
    level, filters = logging.get_verbosity(), list(warnings.filters)
    end = hanging(quiet)
    with quiet():
        assert logging.get_verbosity() == 50
        end()
        assert logging.get_verbosity() == 50
        assert warnings.filters != filters
    assert logging.get_verbosity() == level
    assert warnings.filters == filters


def test_one_model_is_built_at_a_time(hanging):
    end = hanging(building)
    is_done = threading.Event()

    def enter():
        with building():
            is_done.set()

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    assert not is_done.wait(0.2)
    end()
    assert is_done.wait(20)
    thread.join()


def test_a_build_that_hangs_is_not_waited_for_and_what_it_replaced_is_put_back(
    hanging, monkeypatch
):
    from transformers import PreTrainedModel

    monkeypatch.setattr(loading, "BUILD_SECONDS", 0.1)
    genuine, linspace = PreTrainedModel.tie_weights, torch.linspace
    end = hanging(building)
    monkeypatch.setattr(PreTrainedModel, "tie_weights", None)
    monkeypatch.setattr(torch, "linspace", None)
    torch.set_default_dtype(torch.bfloat16)
    with building():
        pass
    assert PreTrainedModel.tie_weights is genuine
    assert torch.linspace is linspace
    assert torch.get_default_dtype() == torch.float32
    end()
