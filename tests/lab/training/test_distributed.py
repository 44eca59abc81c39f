"""The process group: one process without torchrun; `tests/slow` trains in two processes."""

import socket

import pytest
import torch
import torch.distributed as dist
from torch import nn

from headlight.lab.training.distributed import ALONE, ENVIRONMENT, join


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_without_torchrun_a_process_is_alone(monkeypatch):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    with join(torch.device("cpu")) as processes:
        assert processes is ALONE
        assert not dist.is_initialized()
    assert processes.is_first
    assert processes.size == 1


def test_alone_everything_stays_as_it_is():
    parameter, other = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    parameter.grad = torch.ones(3)
    ALONE.add_gradients([parameter, other])
    assert parameter.grad.tolist() == [1, 1, 1]
    assert other.grad is None
    assert ALONE.sums([1.5, 2.0]) == [1.5, 2.0]
    assert [ALONE.any(flag) for flag in (False, True)] == [False, True]
    assert ALONE.first("mine") == "mine"


def test_a_group_is_left_at_the_end_whatever_happens(monkeypatch):
    settings = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    for name, value in {**settings, "MASTER_PORT": str(free_port())}.items():
        monkeypatch.setenv(name, value)
    seen: list[object] = []
    with pytest.raises(ZeroDivisionError), join(torch.device("cpu")) as processes:
        seen += [dist.is_initialized(), processes.rank, processes.size, 1 / 0]
    assert not dist.is_initialized()
    with join(torch.device("cpu")) as processes:
        seen += [dist.is_initialized(), processes.rank, processes.size]
    assert seen == [True, 0, 1]
    assert not dist.is_initialized()


def test_a_process_without_a_cuda_device_of_its_own_is_told_so(monkeypatch):
    for name, value in zip(ENVIRONMENT, ("1", "2", "127.0.0.1", "1"), strict=True):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with (
        pytest.raises(ValueError, match=r"^process 1 has no CUDA device.*--device cpu"),
        join(torch.device("cuda")),
    ):
        pass
