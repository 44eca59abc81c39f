"""Count the files, functions and threads that warm requests pass through in a real server.

    python -m tests.benchmarks.trip [--list]

The server runs in this process behind a real socket. Of each kind of request three warm it up; the
fourth, of a new text, is recorded with `sys.setprofile`: a trace with an answer of about 2 kB, one
of a foreign model, one of a text beyond the limit of whole texts, a story written with a head
switched off, and an experiment. Only calls of functions in the project's own files count (`app/`
and `model/`). A move is a call of a function in another file than that of the call before it in the
same thread; imports and the console banner are long over.
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
from tempfile import TemporaryDirectory

from headlight.server import listen, serve
from headlight.settings import Settings

ROOT = Path(__file__).parents[2]
WEIGHTS = "decoder.layers.0.self_attention.weights"
TEXTS = ["A cat sat.", "A dog ran.", "The old tree fell.", "One day a girl saw a big red bird."]
FOREIGN = "tiny-gpt2"


def trace(text, **options):
    """Return the request of a trace with one head's weights."""
    options = {"capture": [WEIGHTS], "heads": [0], "analyses": []} | options
    return "/api/v1/trace", {"text": text, **options}


def story(text):
    """Return the request of a story that is written with a head switched off."""
    edits = [{"kind": "heads_off", "layer": 0, "heads": [0]}]
    options = {"model": "stories", "n_tokens": 4, "temperature": 0, "edits": edits}
    return "/api/v1/generate", {"text": text, **options}


REQUESTS = {
    "a trace": trace,
    "a foreign trace": lambda text: trace(text, model=FOREIGN),
    "a long text": lambda text: trace(f"{text} " * 200, capture=[], resolution=16),
    "a story with an edit": story,
    "an experiment": lambda text: ("/api/v1/experiments/scaling", {"seed": len(text)}),
}


def save_foreign(folder):
    """Save a tiny random GPT-2 with a tokenizer."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.utils.logging import disable_progress_bar

    from tests.tiny_checkpoints import make_tokenizer

    disable_progress_bar()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=300,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=64,
        bos_token_id=0,
        eos_token_id=0,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)


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
            *(f"{len(made):5} calls in thread {name}" for name, made in self.calls.items()),
        ]
        if lists_files:
            for file, count in sorted(files.items()):
                functions = sorted({name for path, name in calls if path == file})
                lines.append(f"{count:5} {file}: {', '.join(functions)}")
        return "\n".join(lines)


def drive(address, trips):
    """Send the requests to the server, record the last of each kind, then stop the server."""
    connection = http.client.HTTPConnection(*address)
    try:
        while ask(connection, "GET", "/readyz")[0] != 200:
            time.sleep(0.05)
        for name, request in REQUESTS.items():
            for text in TEXTS:
                time.sleep(0.2)  # what follows an answer is over
                trips[name].is_recording = text == TEXTS[-1]
                status, body = ask(connection, "POST", *request(text))
                time.sleep(0.05)
                trips[name].is_recording = False
                if status != 200:
                    raise RuntimeError(f"{name}: {body.decode()}")
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
    trips = {name: Trip() for name in REQUESTS}

    def profile(*event):
        for trip in trips.values():
            if trip.is_recording:
                trip.profile(*event)

    with TemporaryDirectory() as folder:
        save_foreign(Path(folder) / FOREIGN)
        listener = listen("127.0.0.1", 0)
        client = threading.Thread(target=drive, args=(listener.getsockname()[:2], trips))
        client.start()
        threading.setprofile(profile)
        sys.setprofile(profile)
        serve(listener, "127.0.0.1", Settings(log_level="error", models_dir=folder))
        sys.setprofile(None)
        client.join()
    for name, trip in trips.items():
        report = trip.report(lists_files="--list" in sys.argv)
        sys.stdout.write(f"{name}: {report}\n")


if __name__ == "__main__":
    main()
