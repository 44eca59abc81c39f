"""How long a server takes from its command to the moment it says that it is ready."""

import os
import time

from tests.server_process import serving

N_STARTS = 5
TARGET = 2.0


def test_the_server_is_ready_within_seconds(table):
    start()  # reads the files from the disk and writes the bytecode
    waited, computed = sorted(start() for _ in range(N_STARTS))[N_STARTS // 2]
    figure = f"{waited:.1f} s, of which {computed:.1f} s are the process's own"
    table.add("Start", "headlight serve until /readyz", figure, f"≤ {TARGET:g} s", waited < TARGET)
    assert waited < TARGET


def start(*options):
    """Return the seconds until the server is ready, and those of computing from start to end."""
    began, used = time.perf_counter(), computing()
    # An installed package has its bytecode; a shell may forbid to write that of a checkout.
    with serving("--log-level", "error", *options, environment={"PYTHONDONTWRITEBYTECODE": ""}):
        waited = time.perf_counter() - began
    return waited, computing() - used


def computing():
    """Return the seconds that processes started from here, and ended, have computed."""
    usage = os.times()
    return usage.children_user + usage.children_system
