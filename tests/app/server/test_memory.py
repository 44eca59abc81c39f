"""Memory that is free goes back to the system."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from headlight.server import memory
from headlight.server.memory import give_back_memory, memory_trimmer

MEGABYTE = 2**20
needs_glibc = pytest.mark.skipif(memory_trimmer() is None, reason="another C library")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@needs_glibc
def test_what_lies_between_what_stays_is_given_back():
    pieces = [bytes(60_000) for _ in range(2_000)]
    staying = pieces[::50]
    del pieces
    before = resident_bytes()
    memory_trimmer()()
    assert before - resident_bytes() > 80 * MEGABYTE
    assert len(staying) == 40


def test_it_is_done_again_and_again(monkeypatch):
    times = []
    monkeypatch.setattr(memory, "memory_trimmer", lambda: lambda: times.append(1))

    async def watch():
        with suppress(TimeoutError):
            await asyncio.wait_for(give_back_memory(0.001), 0.3)

    asyncio.run(watch())
    assert len(times) > 3


def test_where_it_cannot_be_done_nothing_is(monkeypatch):
    monkeypatch.setattr(memory, "memory_trimmer", lambda: None)
    asyncio.run(asyncio.wait_for(give_back_memory(), 20))


def test_another_c_library_is_no_error(monkeypatch):
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    assert memory_trimmer() is None


def test_what_was_there_when_the_server_became_ready_is_never_searched_for_garbage_again():
    script = (
        "import gc; from headlight.server.memory import set_aside_what_stays as set_aside;"
        "before = len(gc.get_objects()); set_aside();"
        "print(len(gc.get_objects()) < before / 2, gc.get_freeze_count() > before / 2)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.split() == ["True", "True"], result.stderr
