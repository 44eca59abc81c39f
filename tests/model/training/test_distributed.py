"""Two processes train as one does: the same losses, the same weights, and one set of files."""

import json
import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

from headlight.model.training.distributed import ALONE, ENVIRONMENT, join

ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).with_name("two_processes.py")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


# --- alone ----------------------------------------------------------------------------------------


def test_without_torchrun_a_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    with join(torch.device("cpu")) as processes:
        assert processes is ALONE
        assert not dist.is_initialized()
    assert processes.is_first
    assert processes.size == 1


def test_alone_everything_stays_as_it_is() -> None:
    parameter, other = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(3))
    parameter.grad = torch.ones(3)
    ALONE.add_gradients([parameter, other])
    assert parameter.grad.tolist() == [1, 1, 1]
    assert other.grad is None
    assert ALONE.sums([1.5, 2.0]) == [1.5, 2.0]
    assert [ALONE.any(flag) for flag in (False, True)] == [False, True]
    assert ALONE.first("mine") == "mine"


def test_a_group_is_left_at_the_end_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_process_without_a_cuda_device_of_its_own_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in zip(ENVIRONMENT, ("1", "2", "127.0.0.1", "1"), strict=True):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    message = (
        r"^process 1 of this machine finds no CUDA device of its own, there being 1; start as "
        r"many processes as there are devices, or add --device cpu$"
    )
    with pytest.raises(ValueError, match=message), join(torch.device("cuda")):
        pass


# --- two of them ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two processes have left what they saw."""
    folder = tmp_path_factory.mktemp("together")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launcher, "--master-port", str(free_port()), SCRIPT, folder],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def seen(folder: Path) -> list[dict[str, Any]]:
    """What each of the two saw."""
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The runs of the two, by one process."""
    script = runpy.run_path(str(SCRIPT))
    return script["curves"](tmp_path_factory.mktemp("alone"))


@pytest.mark.timeout(600)
def test_both_hold_the_same_after_every_exchange(seen: list[dict[str, Any]]) -> None:
    for each in seen:
        assert each["size"] == 2
        found = each["exchanged"]
        assert found["sums"] == [3.0, 20.0]
        assert found["any"] == [False, True, True, True]
        assert found["first"] == "of 0"
        full = [[[number] * 3] * 2 for number in (3.0, 5.0, 0.0)]
        assert found["gradients"] == [full[0], full[1], None, full[2]]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("run", "tolerance"),
    [
        # One process reads the batch whole: sums are made in another order.
        ("dense", 1e-4),
        ("one_row", 1e-4),
        # One process reads the same parts, one after the other.
        ("experts", 1e-6),
        ("parts", 1e-4),
    ],
)
def test_two_processes_have_the_loss_curve_of_one(
    seen: list[dict[str, Any]], alone: dict[str, Any], run: str, tolerance: float
) -> None:
    expected = alone[run]
    for each in seen:
        found = each["curves"][run]
        for name in ("loss", "balance_loss", "valid_loss"):
            assert found[name] == pytest.approx(expected[name], abs=tolerance), name
        assert found["tokens"] == expected["tokens"]
    assert len(expected["loss"]) == 6
    assert len(expected["valid_loss"]) == 2
    assert expected["loss"][-1] != expected["loss"][0]


@pytest.mark.timeout(600)
def test_the_weights_of_both_stay_the_same_to_the_last_bit(seen: list[dict[str, Any]]) -> None:
    first, second = (each["curves"] for each in seen)
    for run in first:
        assert first[run]["weights"] == second[run]["weights"], run


@pytest.mark.timeout(600)
def test_only_the_first_process_writes_files(seen: list[dict[str, Any]], folder: Path) -> None:
    for run in ("dense", "experts", "stopped"):
        written = sorted(path.name for path in (folder / "0" / run).iterdir())
        assert written == ["metrics.jsonl", "training.safetensors"]
        assert not [path for path in (folder / "1").rglob("*") if path.is_file()]


@pytest.mark.timeout(600)
def test_a_signal_to_one_stops_both_after_the_same_step(seen: list[dict[str, Any]]) -> None:
    assert [each["stopped"] for each in seen] == [[False, 3], [False, 3]]


@pytest.mark.timeout(600)
def test_both_end_when_the_loss_of_one_is_no_number(seen: list[dict[str, Any]]) -> None:
    message = "the loss of step 3 is nan; what was saved before is kept"
    assert [each["diverged"] for each in seen] == [message, message]
