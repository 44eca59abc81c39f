"""Profiles of heads that a reader lets the server measure, one at a time.

Each runs in a process of its own (`headlight.serving.profile_process`): it shares no model
with the passes of readers, has a lower priority, and ends as soon as it is told to, which a thread
does not. It takes as much memory again as the model's weights.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage
from typing import Any

from anyio import CancelScope

from headlight.model.checkpoint.profile import is_whole
from headlight.model.description import Description
from headlight.problems import Problem, server_stopping
from headlight.serving.concurrency import Places

MODULE = "headlight.serving.profile_process"
N_PLACES = 1
FORBIDDEN = 403
LEAST_FREE_BYTES = 2**20
"""A profile takes a fraction of it."""


class ProfileRuns:
    """The measurements that are running.

    Args:
        seconds: how long one may take; 0: none is started.
        device: the name of the device to measure on.
        for_visitors: those who ask have a key, or need none.
    """

    def __init__(self, seconds: int, device: str, *, for_visitors: bool) -> None:
        self.seconds = seconds
        self.device = device
        self.for_visitors = for_visitors
        self.is_stopping = False
        self.places = Places(N_PLACES, "too-many-profiles", "profiles are being measured")
        self._processes: set[asyncio.subprocess.Process] = set()

    def reason_against(self, description: Description, folder: Path) -> str:
        """Return the reason in a sentence for which a model is not measured; empty: it can be."""
        name = description.id
        if description.heads is not None and is_whole(description.heads):
            return f"The heads of {name} are measured already."
        if not self.seconds:
            return "This server measures no heads: HEADLIGHT_PROFILE_SECONDS is 0."
        if not self.for_visitors:
            return (
                "This server measures no heads for visitors: HEADLIGHT_VISITORS_PROFILE or a key "
                f"allows it, or its operator runs `headlight profile {name}`."
            )
        if disk_usage(folder).free < LEAST_FREE_BYTES:
            return f"The disk of {name} is full, so no profile can be kept; make room on it."
        if not os.access(folder, os.W_OK):
            return (
                f"The folder of {name} is read-only, so no profile can be kept in it; measure a "
                "copy of it, or let the server write there."
            )
        return ""

    async def run(self, folder: Path, sentences: int) -> AsyncGenerator[dict[str, Any]]:
        """Measure the model in a folder; yield ``share`` as it goes on, ``sentences`` at the end.

        Closing the generator ends the process.

        Raises:
            Problem: 422, the model cannot be measured; 503, the server stops; 504, it took too
                long; 500, the process ended without a word.
        """
        command = (sys.executable, "-m", MODULE, str(folder))
        options = ("--sentences", str(sentences), "--device", self.device)
        process = await asyncio.create_subprocess_exec(
            *command, *options, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        self._processes.add(process)
        deadline = asyncio.get_running_loop().time() + self.seconds
        try:
            is_done = False
            while line := await self._line(process, deadline):
                event = json.loads(line)
                if why := event.get("error"):
                    raise Problem(422, "no-profile", f"the heads cannot be measured: {why}")
                is_done = "sentences" in event
                yield event
            if not is_done:
                raise self._ended(await process.wait())
        finally:
            self._processes.discard(process)
            _end(process)
            with CancelScope(shield=True):  # a process that is not waited for stays in the table
                await process.wait()

    def stop(self) -> None:
        """End all measurements: the server stops. Any thread may call it."""
        self.is_stopping = True
        for process in list(self._processes):
            _end(process)

    async def _line(self, process: asyncio.subprocess.Process, deadline: float) -> bytes:
        """Return the next line of a process; empty at its end."""
        assert process.stdout  # it is a pipe
        try:
            async with asyncio.timeout_at(deadline):
                return await process.stdout.readline()
        except TimeoutError:
            detail = (
                f"the heads were not measured within the {self.seconds} s that are allowed; ask "
                "for fewer sentences, or raise HEADLIGHT_PROFILE_SECONDS"
            )
            raise Problem(504, "too-slow", detail) from None

    def _ended(self, status: int) -> Problem:
        if self.is_stopping:
            return server_stopping()
        detail = f"the measurement ended with status {status}; the server's log says why"
        return Problem(500, "profile-failed", detail)


def _end(process: asyncio.subprocess.Process) -> None:
    """End a process, if it runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
