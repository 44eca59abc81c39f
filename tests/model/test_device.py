"""The choice of a device: the one asked for, or the best available."""

import os

import pytest
import torch

from headlight.model import device
from headlight.model.device import choose_device, choose_precision, choose_threads

CPU = torch.device("cpu")


def pretend(monkeypatch, *, cuda, mps):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(False, False, "cpu"), (False, True, "mps"), (True, False, "cuda"), (True, True, "cuda")],
)
def test_auto_takes_the_fastest_kind_there_is(monkeypatch, cuda, mps, expected):
    pretend(monkeypatch, cuda=cuda, mps=mps)
    assert choose_device("auto").type == expected
    assert choose_device().type == expected


def test_a_device_that_is_not_there_is_rejected(monkeypatch):
    pretend(monkeypatch, cuda=False, mps=False)
    with pytest.raises(
        ValueError, match=r"^device 'cuda' is not on this machine; the devices are: cpu$"
    ):
        choose_device("cuda")
    pretend(monkeypatch, cuda=False, mps=True)
    with pytest.raises(
        ValueError, match=r"^device 'cuda' is not on this machine; the devices are: mps, cpu$"
    ):
        choose_device("cuda")


def test_an_unknown_device_is_rejected():
    with pytest.raises(
        ValueError, match=r"^device 'tpu' is unknown; choose one of auto, cpu, cuda, mps$"
    ):
        choose_device("tpu")


class FakeMachine:
    """A clock that stands still except while a product is computed, at this machine's speed.

    From product `first` to `last` other processes make everything `slowdown` times slower.
    """

    def __init__(self, bfloat16_ms, *, slowdown=1.0, first=0, last=0):
        self.ms = {torch.float32: 1.0, torch.bfloat16: bfloat16_ms}
        self.slowdown, self.loaded = slowdown, range(first, last)
        self.now = 0.0
        self.n_products = 0

    def product(self, dtype):
        load = self.slowdown if self.n_products in self.loaded else 1.0
        self.now += self.ms[dtype] * load / 1000
        self.n_products += 1


@pytest.mark.parametrize("slowdown", [1, 3, 100])
@pytest.mark.parametrize("loaded", [(0, 16), (16, 32), (5, 12), (2, 29), (0, 1000)])
@pytest.mark.parametrize(
    ("bfloat16_ms", "expected"),
    [(0.5, torch.bfloat16), (0.95, torch.float32), (1.0, torch.float32), (4.0, torch.float32)],
)
def test_load_does_not_decide_the_precision(monkeypatch, bfloat16_ms, expected, loaded, slowdown):
    machine = FakeMachine(bfloat16_ms, slowdown=slowdown, first=loaded[0], last=loaded[1])

    def product(left, right):
        machine.product(left.dtype)
        return left

    monkeypatch.setattr(torch.Tensor, "__matmul__", product)
    monkeypatch.setattr(device, "perf_counter", lambda: machine.now)
    assert choose_precision("auto", CPU) is expected


def test_an_unknown_precision_is_rejected():
    with pytest.raises(ValueError, match=r"int8.*choose one of auto, float32, bfloat16"):
        choose_precision("int8", CPU)


@pytest.mark.parametrize(("load", "expected"), [(0.0, 6), (3.9, 6), (4.0, 1), (50.0, 1), (None, 6)])
def test_a_busy_machine_is_given_one_thread(monkeypatch, load, expected):
    def getloadavg():
        if load is None:
            raise OSError("no load average")
        return load, 99.0, 99.0

    monkeypatch.setattr(os, "getloadavg", getloadavg)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    assert choose_threads() == expected
    assert choose_threads(3) == 3


def test_there_is_at_least_one_thread():
    with pytest.raises(ValueError, match=r"threads \(0\)"):
        choose_threads(0)
