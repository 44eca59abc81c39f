"""Measurements of heads in processes of their own: their steps, errors, time, and how they end."""

import asyncio
import os
from contextlib import aclosing

import pytest

from headlight.problems import Problem
from headlight.serving import profile_runs as profiling
from headlight.serving.profile_runs import ProfileRuns


@pytest.fixture
def runs_of(tmp_path, monkeypatch):
    """Return what makes runs of a script in place of a measurement."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(profiling, "MODULE", "measurement")

    def make(script, seconds=60):
        (folder / "measurement.py").write_text(script)
        return ProfileRuns(seconds, "cpu", for_visitors=True)

    return make


async def steps_of(runs, folder):
    async with aclosing(runs.run(folder, 12)) as steps:
        return [step async for step in steps]


def test_the_steps_are_those_that_the_process_prints(runs_of, tmp_path):
    runs = runs_of(
        "import json, sys\n"
        "print(json.dumps({'share': 0.5}), flush=True)\n"
        "print(json.dumps({'sentences': 12, 'arguments': sys.argv[1:]}))\n"
    )
    first, last = asyncio.run(steps_of(runs, tmp_path))
    assert first == {"share": 0.5}
    assert last["arguments"] == [str(tmp_path), "--sentences", "12", "--device", "cpu"]


@pytest.mark.parametrize(
    ("script", "status", "kind"),
    [
        ('print(\'{"error": "no room"}\')', 422, "no-profile"),
        ("raise SystemExit(3)", 500, "profile-failed"),
        ("print('{\"share\": 0.5}')", 500, "profile-failed"),
    ],
)
def test_a_measurement_that_fails_is_a_problem(runs_of, tmp_path, script, status, kind):
    with pytest.raises(Problem) as caught:
        asyncio.run(steps_of(runs_of(script), tmp_path))
    assert (caught.value.status_code, caught.value.kind) == (status, kind)


ENDLESS = """
import os, time
print('{"share": ' + str(os.getpid()) + "}", flush=True)
time.sleep(600)
"""


async def _left(runs, folder):
    async with aclosing(runs.run(folder, 12)) as steps:
        async for step in steps:
            pid = step["share"]
            break
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        await asyncio.sleep(0.02)
    return False


def test_a_process_ends_when_nobody_reads_its_steps(runs_of, tmp_path):
    assert asyncio.run(_left(runs_of(ENDLESS), tmp_path))


def test_a_process_that_takes_too_long_is_ended(runs_of, tmp_path):
    with pytest.raises(Problem) as caught:
        asyncio.run(steps_of(runs_of("import time; time.sleep(600)", seconds=0.2), tmp_path))
    assert (caught.value.status_code, caught.value.kind) == (504, "too-slow")
    assert "HEADLIGHT_PROFILE_SECONDS" in caught.value.detail


def test_a_server_that_stops_ends_its_measurements(runs_of, tmp_path):
    runs = runs_of(ENDLESS)

    async def stopped():
        async with aclosing(runs.run(tmp_path, 12)) as steps:
            async for _ in steps:
                runs.stop()

    with pytest.raises(Problem) as caught:
        asyncio.run(stopped())
    assert caught.value.status_code == 503


def test_one_profile_is_measured_at_a_time():
    runs = ProfileRuns(60, "cpu", for_visitors=True)
    with runs.places.place(), pytest.raises(Problem) as caught, runs.places.place():
        pass
    assert (caught.value.status_code, caught.value.kind) == (503, "too-many-profiles")
