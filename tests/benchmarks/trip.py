"""Count the files, functions and threads that one warm trace passes through in a real server.

    python -m tests.benchmarks.trip [--list]

The server runs in this process behind a real socket. Three traces warm it up; the fourth, of a new
text and with an answer of about 2 kB, is recorded with `sys.setprofile`. Only calls of functions in
the project's own files count (`app/` and `model/`). A move is a call of a function in another file
than that of the call before it in the same thread; imports and the console banner are long over.
"""

import http.client
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from headlight.server import listen, serve
from headlight.settings import Settings

ROOT = Path(__file__).parents[2]
REQUEST = {"capture": ["decoder.layers.0.self_attention.weights"], "heads": [0], "analyses": []}
TEXTS = ["A cat sat.", "A dog ran.", "The old tree fell.", "One day a girl saw a big red bird."]


class Trip:
    """The calls of the project's functions while it records, by thread."""

    def __init__(self):
        self.is_recording = False
        self.calls: dict[str, list[tuple[str, str]]] = {}
        self._files: dict[str, str | None] = {}

    def profile(self, frame, event, _):
        """Record a call; `sys.setprofile` calls this for every function in every thread."""
        is_comprehension = frame.f_code.co_name in (
            "<listcomp>",
            "<dictcomp>",
            "<setcomp>",
            "<genexpr>",
        )
        if not self.is_recording or event != "call" or is_comprehension:
            return
        file = self._project_file(frame.f_code.co_filename)
        if file:
            thread = threading.current_thread().name
            self.calls.setdefault(thread, []).append((file, frame.f_code.co_qualname))

    def _project_file(self, name):
        if name not in self._files:
            path = Path(name).resolve()
            is_ours = path.is_relative_to(ROOT / "app") or path.is_relative_to(ROOT / "model")
            self._files[name] = str(path.relative_to(ROOT)) if is_ours else None
        return self._files[name]

    def report(self, *, lists_files=False):
        """Return the figures as text."""
        calls = [call for thread in self.calls.values() for call in thread]
        moves = sum(
            before[0] != after[0]
            for thread in self.calls.values()
            for before, after in pairwise(thread)
        )
        files = Counter(file for file, _ in calls)
        lines = [
            f"{len(files)} files, {len(set(calls))} functions, {len(calls)} calls, {moves} moves",
            *(f"{len(found):5} calls in thread {name}" for name, found in self.calls.items()),
        ]
        if lists_files:
            for file, count in sorted(files.items()):
                functions = sorted({name for found, name in calls if found == file})
                lines.append(f"{count:5} {file}: {', '.join(functions)}")
        return "\n".join(lines)


def drive(address, trip):
    """Send the requests to the server, record the last, then stop the server."""
    connection = http.client.HTTPConnection(*address)
    try:
        while ask(connection, "GET", "/readyz")[0] != 200:
            time.sleep(0.05)
        for text in TEXTS:
            time.sleep(0.2)  # what follows an answer is over
            trip.is_recording = text == TEXTS[-1]
            status, body = ask(connection, "POST", "/api/v1/trace", {"text": text, **REQUEST})
            time.sleep(0.05)
            trip.is_recording = False
            assert status == 200, body
        sys.stdout.write(f"an answer of {len(body)} bytes\n")
    finally:
        connection.close()
        os.kill(os.getpid(), signal.SIGTERM)


def ask(connection, method, path, body=None):
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json"})
    with connection.getresponse() as response:
        return response.status, response.read()


def main():
    """Run the server and the client, and print what was counted."""
    trip = Trip()
    listener = listen("127.0.0.1", 0)
    client = threading.Thread(target=drive, args=(listener.getsockname()[:2], trip))
    client.start()
    threading.setprofile(trip.profile)
    sys.setprofile(trip.profile)
    serve(listener, "127.0.0.1", Settings(log_level="error"))
    sys.setprofile(None)
    client.join()
    sys.stdout.write(trip.report(lists_files="--list" in sys.argv) + "\n")


if __name__ == "__main__":
    main()
