"""The programs of `make load` and `make soak`, run for seconds."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def output_of(*words):
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_short_load_keeps_every_promise():
    report = output_of("-m", "tests.load.run", "--users", "6", "--seconds", "4")
    assert "no 5xx but deliberate 503" in report
    assert "trace, safetensors" in report


def test_a_short_soak_grows_within_its_bound():
    assert "50 MB are allowed" in output_of(
        "-m", "tests.load.memory", "--requests", "3", "--people", "1"
    )
