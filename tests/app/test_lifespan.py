"""Stop signals reach the application; free memory is returned."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from headlight import main as lifespan

needs_glibc = pytest.mark.skipif(lifespan.memory_trimmer() is None, reason="another C library")


def test_a_stop_signal_is_noticed_before_the_server_acts_on_it():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("server"))
    try:
        with lifespan.on_stop_signal(lambda: heard.append("application")):
            signal.raise_signal(signal.SIGTERM)
        assert heard == ["application", "server"]
        signal.raise_signal(signal.SIGTERM)
        assert heard[2:] == ["server"]
    finally:
        signal.signal(signal.SIGTERM, before)


@needs_glibc
def test_free_memory_is_returned():
    def resident_bytes():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    pieces = [bytes(60_000) for _ in range(2_000)]
    staying = pieces[::50]
    del pieces
    before = resident_bytes()
    lifespan.memory_trimmer()()
    assert before - resident_bytes() > 80 * 2**20
    assert len(staying) == 40


def test_the_collector_is_frozen_once_and_memory_returned_regularly(monkeypatch):
    done = []

    def trim():
        done.append("trimmed")
        if len(done) == 4:
            raise KeyError

    monkeypatch.setattr(lifespan, "TRIM_SECONDS", 0)
    monkeypatch.setattr(lifespan.gc, "freeze", lambda: done.append("frozen"))
    monkeypatch.setattr(lifespan, "memory_trimmer", lambda: trim)
    with pytest.raises(KeyError):
        asyncio.run(lifespan.housekeeping(lambda: True))
    assert done == ["frozen", "trimmed", "trimmed", "trimmed"]


def test_another_c_library_is_not_an_error(monkeypatch):
    monkeypatch.setattr(lifespan.ctypes, "CDLL", lambda _: object())
    assert lifespan.memory_trimmer() is None
