"""A real cluster of Ray on this machine: replicas that are killed and replaced, workers that read.

`make test-cluster` installs what it needs. Each test starts processes and takes a minute or two.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from yaml import safe_load

from headlight.cluster import Arguments
from headlight.model.profiles.folder import SAMPLE
from tests.load.replicas import Load, replica_pids

ROOT = Path(__file__).parents[2]
HEADLIGHT = [sys.executable, "-m", "headlight.cli"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def served(request, tmp_path_factory):
    """Yield the process and the address of two replicas; a parameter puts HAProxy before them."""
    port = free_port()
    log = (tmp_path_factory.mktemp("log") / "out").open("w+")
    command = [*HEADLIGHT, "cluster", "serve", "--port", str(port), "--replicas", "2"]
    haproxy = {"RAY_SERVE_ENABLE_HA_PROXY": getattr(request, "param", "0")}
    process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | haproxy)
    try:
        wait_for_line(log.name, process, "Headlight is at")
        yield process, f"http://127.0.0.1:{port}", log.name
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def wait_for_line(path, process, line, seconds=180):
    until = time.monotonic() + seconds
    while line not in Path(path).read_text():
        assert process.poll() is None, Path(path).read_text()
        assert time.monotonic() < until, Path(path).read_text()
        time.sleep(0.5)


@pytest.mark.parametrize(
    ("served", "unique"), [("1", True), ("0", False), ("0", True)], indirect=["served"]
)
def test_a_replica_is_killed_under_64_clients_without_a_wrong_answer(served, unique):
    _, address, _ = served
    load = Load(address, 64, unique=unique)
    asyncio.run(load.run(20, kill_after=5))
    assert load.statuses["200"] > 64
    assert set(load.statuses) <= {"200", "503"}
    assert load.wrong == 0
    until = time.monotonic() + 120
    while len(replica_pids()) < 2:
        assert time.monotonic() < until, "it was not replaced"
        time.sleep(1)


def test_a_rolling_update_loses_no_request(served):
    process, address, log = served
    before = set(replica_pids())
    load = Load(address, 8)

    async def run():
        asking = asyncio.create_task(load.run(60))
        await asyncio.sleep(5)
        process.send_signal(signal.SIGHUP)
        await asking

    asyncio.run(run())
    wait_for_line(log, process, "All replicas are new.")
    assert set(load.statuses) == {"200"}
    assert load.wrong == 0
    until = time.monotonic() + 120
    while before & set(replica_pids()):
        assert time.monotonic() < until, "an old replica was kept"
        time.sleep(1)


def test_a_kept_trace_is_computed_once_whichever_replica_is_asked(served):
    _, address, _ = served
    locations = [
        httpx.post(f"{address}/api/v1/trace", json={"text": f"A dog saw number {n}."}).headers[
            "content-location"
        ]
        for n in range(12)
    ]
    for location in locations * 4:
        assert httpx.get(address + location).status_code == 200


def test_a_link_opens_at_every_replica(served):
    _, address, _ = served
    state = "#text=The+old+king"
    kept = httpx.post(f"{address}/api/v1/links", json={"state": state})
    assert kept.status_code == 201, kept.text
    for _ in range(8):
        opened = httpx.get(address + kept.headers["location"])
        assert opened.json() == {"state": state}
    unknown = httpx.get(f"{address}/api/v1/links/{'A' * 22}")
    assert unknown.status_code == 404


def test_two_workers_give_the_atlas_of_none_even_if_one_is_killed(tmp_path):
    (tmp_path / "book.txt").write_text(SAMPLE.read_text() * 12)
    command = [*HEADLIGHT, "atlas", "build", "stories", str(tmp_path / "book.txt")]
    command += ["--sample", "8"]
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    subprocess.run([*command, "--out", str(alone)], check=True, capture_output=True)
    process = subprocess.Popen(
        [*command, "--out", str(shared), "--workers", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 400
    while not list(shared.glob("shards/*.json")):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    lines = (line.split(None, 1) for line in listed.stdout.splitlines()[1:])
    os.kill(
        next(int(pid) for pid, name in lines if name.startswith("ray::MapWorker")), signal.SIGKILL
    )
    assert process.wait(300) == 0
    for name in ("heads.json", "summary.json", "atlas.json"):
        assert (shared / name).read_bytes() == (alone / name).read_bytes()


def test_the_configuration_file_is_one_of_serve():
    from ray.serve.schema import ServeDeploySchema  # it warns of pydantic

    config = safe_load((ROOT / "cluster.yaml").read_text())
    deployed = ServeDeploySchema.model_validate(config)
    (application,) = deployed.applications
    assert Arguments.model_validate(application.args).replicas == 2
    assert application.import_path == "headlight.cluster:app"
