"""Models share a budget of memory: the least recently used goes, never one in use."""

import threading

import pytest
import torch

from headlight.models import model_registry as registry_module
from headlight.models.memory import ModelMemory, NoRoom, budget_of, pass_bytes_of
from headlight.models.model_registry import Registry
from headlight.problems import Problem

CPU = torch.device("cpu")


def filled(limit, **models):
    memory = ModelMemory(limit)
    for name, n_bytes in models.items():
        memory.reserve(name, n_bytes)
        memory.put(name, object())
    return memory


def test_the_least_recently_used_goes_first():
    memory = filled(10, a=4, b=4)
    memory.get("a")
    memory.reserve("c", 4)
    assert ("a" in memory, "b" in memory, memory.n_bytes) == (True, False, 8)


def test_no_more_go_than_have_to():
    memory = filled(10, a=3, b=3, c=3)
    memory.reserve("d", 4)
    assert [name in memory for name in "abc"] == [False, True, True]


def test_a_model_in_use_never_goes():
    memory = filled(10, a=4, b=4)
    with memory.using("a"), memory.using("b"):
        with pytest.raises(NoRoom) as caught:
            memory.reserve("c", 4)
        assert (caught.value.needed, caught.value.limit, caught.value.in_use) == (4, 10, 8)
        assert "a" in memory
        assert "b" in memory
    memory.reserve("c", 4)
    assert "a" not in memory


def test_one_that_is_too_large_drives_out_none():
    memory = filled(10, a=4)
    with pytest.raises(NoRoom, match="and models may have") as caught:
        memory.reserve("b", 11)
    assert caught.value.in_use == 0
    assert "a" in memory


def test_a_reservation_counts_until_it_is_dropped():
    memory = ModelMemory(10)
    memory.reserve("a", 8)
    with pytest.raises(NoRoom):
        memory.reserve("b", 8)
    memory.drop("a")
    memory.reserve("b", 8)


def test_the_largest_pass_counts_once():
    memory = ModelMemory(10)
    memory.reserve("a", 3, pass_bytes=2)
    memory.reserve("b", 3, pass_bytes=4)
    assert memory.n_bytes == 10
    with pytest.raises(NoRoom):
        memory.reserve("c", 1)
    memory.drop("b")
    memory.reserve("c", 5, pass_bytes=1)
    with pytest.raises(NoRoom) as caught:
        memory.reserve("d", 4, pass_bytes=7)
    assert (caught.value.needed, caught.value.in_use) == (11, 0)


def test_a_pass_takes_its_scores_or_its_logits(zoo):
    config = Registry([zoo], default="tiny", device=CPU).describe("tiny").config
    sizes = [pass_bytes_of(config, n, 0, 10**9, itemsize=4) for n in (100, 1000, 2000)]
    assert sizes[0] >= 8 * 100 * config.vocab_size
    assert sizes[2] / sizes[1] > 3  # the scores grow with the square of the length
    assert pass_bytes_of(config, 100, 50, 10**9, itemsize=4) == sizes[0] + 200


def test_the_budget_is_that_of_the_settings_or_a_share_of_the_machine(monkeypatch):
    monkeypatch.setattr("headlight.models.memory.memory_bytes", lambda: 1000)
    assert budget_of(CPU, limit=5) == 5
    assert budget_of(CPU, workers=2) == 375
    monkeypatch.setattr("headlight.models.memory.memory_bytes", lambda: None)
    assert budget_of(CPU) is None


def test_the_registry_keeps_to_the_budget_and_loads_again(zoo):
    sizes = Registry([zoo], default="tiny", device=CPU)
    largest = max(sizes.status(model).memory_bytes for model in sizes.descriptions)
    registry = Registry([zoo], default="tiny", device=CPU, memory=ModelMemory(int(1.5 * largest)))
    first = registry.checkpoint("translator")
    registry.checkpoint("tiny")
    assert not registry.is_loaded("translator")
    assert registry.checkpoint("translator") is not first
    assert registry.status("translator").state == "loaded"


def test_a_model_beyond_the_budget_is_refused_with_the_figures_and_stays_listed(zoo):
    registry = Registry([zoo], default="tiny", device=CPU, memory=ModelMemory(1000))
    needed = registry.status("tiny").memory_bytes
    with pytest.raises(Problem, match="the model 'tiny' does not fit: it needs") as caught:
        registry.checkpoint()
    assert caught.value.status_code == 503
    assert caught.value.members == {"limit": 1000, "actual": needed}
    assert "tiny" in registry.descriptions


def test_a_model_that_waits_for_others_is_refused_for_now(zoo):
    size = Registry([zoo], default="tiny", device=CPU).status("tiny").memory_bytes
    registry = Registry([zoo], default="tiny", device=CPU, memory=ModelMemory(size))
    with registry.using("tiny"):
        registry.checkpoint("tiny")
        with pytest.raises(Problem, match="does not fit now") as caught:
            registry.checkpoint("dense")
    assert caught.value.headers["Retry-After"]
    assert registry.checkpoint("dense").id == "dense"


def test_many_threads_load_each_model_once_and_stay_within_the_budget(zoo, monkeypatch):
    real, may_load, loads, checkpoints = registry_module.load, threading.Event(), [], []

    def load(folder, **options):
        loads.append(folder.name)
        may_load.wait(0.2)
        return real(folder, **options)

    monkeypatch.setattr(registry_module, "load", load)
    registry = Registry([zoo], default="tiny", device=CPU, memory=ModelMemory(10**8))
    threads = [
        threading.Thread(target=lambda name=name: checkpoints.append(registry.checkpoint(name)))
        for name in ["tiny", "dense"] * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(checkpoint) for checkpoint in checkpoints}) == len(loads) == 2
