"""Two processes train as one does: the same losses, the same weights, and one set of files."""

import json
import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("two_processes.py")


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder in which two processes have left their results."""
    folder = tmp_path_factory.mktemp("together")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launcher, "--master-port", str(free_port()), SCRIPT, folder],
        env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""
    return folder


@pytest.fixture(scope="module")
def seen(folder):
    """Return the results of each process."""
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return the runs of the two, by one process."""
    script = runpy.run_path(str(SCRIPT))
    return script["curves"](tmp_path_factory.mktemp("alone"))


@pytest.mark.timeout(600)
def test_both_hold_the_same_after_every_exchange(seen):
    for each in seen:
        assert each["size"] == 2
        exchanged = each["exchanged"]
        assert exchanged["sums"] == [3.0, 20.0]
        assert exchanged["any"] == [False, True, True, True]
        assert exchanged["first"] == "of 0"
        full = [[[number] * 3] * 2 for number in (3.0, 5.0, 0.0)]
        assert exchanged["gradients"] == [full[0], full[1], None, full[2]]


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
def test_two_processes_have_the_loss_curve_of_one(seen, alone, run, tolerance):
    expected = alone[run]
    for each in seen:
        curve = each["curves"][run]
        for name in ("loss", "balance_loss", "valid_loss"):
            assert curve[name] == pytest.approx(expected[name], abs=tolerance), name
        assert curve["tokens"] == expected["tokens"]
    assert len(expected["loss"]) == 6
    assert len(expected["valid_loss"]) == 2
    assert expected["loss"][-1] != expected["loss"][0]


@pytest.mark.timeout(600)
def test_the_weights_of_both_stay_the_same_to_the_last_bit(seen):
    first, second = (each["curves"] for each in seen)
    for run in first:
        assert first[run]["weights"] == second[run]["weights"], run


@pytest.mark.timeout(600)
def test_only_the_first_process_writes_files(seen, folder):
    for run in ("dense", "experts", "stopped"):
        written = {path.name for path in (folder / "0" / run).iterdir()}
        assert written - {"before_decay.safetensors"} == {"metrics.jsonl", "training.safetensors"}
        assert not [path for path in (folder / "1").rglob("*") if path.is_file()]


@pytest.mark.timeout(600)
def test_a_signal_to_one_stops_both_after_the_same_step(seen):
    assert [each["stopped"] for each in seen] == [[False, 3], [False, 3]]


@pytest.mark.timeout(600)
def test_both_end_when_the_loss_of_one_is_no_number(seen):
    assert all("step 3 is nan" in each["diverged"] for each in seen)
