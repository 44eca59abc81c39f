"""Tiny models of random weights, an application that serves them, and readers of its answers."""

import json
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import pytest
import safetensors.numpy
import torch
import uvicorn
from fastapi.testclient import TestClient
from safetensors import safe_open
from typer.testing import CliRunner

from headlight import cli
from headlight.main import create_app
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import load, save
from headlight.model.config import ExpertsConfig, TransformerConfig
from headlight.model.tokenizer import train_tokenizer
from headlight.model.transformer import Transformer
from headlight.server import config_of, listen
from headlight.services import Services
from headlight.settings import Settings

CORPUS = ["the cat sat on the mat because it was tired", "a small light reads the words aloud"]
SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 16, "d_ff": 24, "max_tokens": 64}
MOE = ExpertsConfig(n_experts=4, top_k=2, layers=(1,))
ALIGNER = {"layer": 1, "head": 2, "shift": 0, "error_rate": 0.5}


def save_model(folder, tokenizer, *, metrics=None, **config):
    """Return a model of random weights that are the same in every run."""
    torch.manual_seed(7)
    model = Transformer(TransformerConfig(vocab_size=tokenizer.vocab_size, **{**SIZES, **config}))
    examples = {"A cat": "The cat sat."}
    card = ModelCard(
        title=folder.name.title(), licence="MIT", examples=examples, metrics=metrics or {}
    )
    save(folder, model, tokenizer, card, dtype=torch.float32)


@pytest.fixture(scope="session")
def zoo(tmp_path_factory):
    """Return a directory with one model of every kind.

    `tiny`, the default, has experts in one of its layers and `dense` has none; `turning` has
    rotary positions and heads that share keys; `slanted` has ALiBi; `translator` is an
    encoder–decoder with experts whose card names a head that aligns; `filler` is an encoder.
    """
    path = tmp_path_factory.mktemp("zoo")
    make_zoo(path)
    return path


def make_zoo(path):
    """Save one model of every kind into a directory."""
    tokenizer = train_tokenizer(CORPUS * 20, vocab_size=300)
    masking = train_tokenizer(CORPUS * 20, vocab_size=300, has_mask=True)
    aligns = {"alignment": {"pairs": 2, "head": ALIGNER}}
    save_model(path / "tiny", tokenizer, moe=MOE)
    save_model(path / "dense", tokenizer)
    save_model(path / "turning", tokenizer, positional="rotary", n_kv_heads=2, norm="rms_norm")
    save_model(path / "slanted", tokenizer, positional="alibi", activation="swiglu")
    save_model(path / "translator", tokenizer, kind="encoder-decoder", moe=MOE, metrics=aligns)
    save_model(path / "filler", masking, kind="encoder", positional="learned", norm_place="post")


@pytest.fixture(scope="session")
def model_ids(zoo):
    """Return the ids of all models, in order."""
    return sorted(folder.name for folder in zoo.iterdir())


@pytest.fixture(scope="session")
def tiny(zoo):
    return load(zoo / "tiny")


@pytest.fixture(scope="session")
def translator(zoo):
    return load(zoo / "translator")


@pytest.fixture(scope="session")
def atlas_dir(tiny, tmp_path_factory):
    """Return a directory with an atlas of `tiny`, of weights from 0.02 on."""
    from headlight.model.atlas.build import build
    from headlight.model.atlas.shards import Settings as AtlasSettings

    path = tmp_path_factory.mktemp("atlases")
    (path / "text.txt").write_text("\n".join(line.capitalize() + "." for line in CORPUS * 4))
    build(tiny, [path / "text.txt"], path / "tiny", AtlasSettings(threshold=0.02, n_sample=4))
    return path


@pytest.fixture(scope="session")
def settings(zoo, tmp_path_factory):
    """Return settings without a cache, and with long time limits for slow machines."""
    return Settings(
        zoo_dir=zoo,
        models_dir=None,
        links_dir=tmp_path_factory.mktemp("links"),
        default_model="tiny",
        device="cpu",
        queue_seconds=100,
        cache_bytes=0,
        shutdown_seconds=2,
    )


@pytest.fixture(scope="session")
def client(settings):
    """Yield a client of a warm server."""
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        wait_until_ready(client.get)
        yield client


@pytest.fixture
def client_with(settings):
    """Return a function that makes a client of a server with other settings."""
    with ExitStack() as stack:

        def make(**changed):
            return stack.enter_context(client_of(settings, **changed))

        yield make


def client_of(settings, **changed):
    """Return a client of a server with some settings changed, for a `with` block."""
    app = create_app(settings.model_copy(update=changed))
    return TestClient(app, base_url="http://localhost")


@dataclass(frozen=True)
class Server:
    """A real server on a free port of this machine, and what it holds."""

    url: str
    services: Services


@contextmanager
def serve(settings):
    """Yield a warm server that accepts real connections."""
    listener = listen("127.0.0.1", 0)
    # Else the system buffers megabytes for a client that does not read.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**16)
    app = create_app(settings)
    running = uvicorn.Server(config_of(app, settings))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        wait_until_ready(lambda path: httpx.get(url + path))
        yield Server(url, app.state.services)
    finally:
        app.state.services.stop()  # as a signal does
        running.should_exit = True
        thread.join()
        listener.close()


@pytest.fixture(scope="session")
def server(settings):
    with serve(settings) as server:
        yield server


@pytest.fixture(scope="session")
def serving():
    """Return a function that opens another server, for a `with` block."""
    return serve


def wait_until_ready(get, seconds=30):
    until = time.monotonic() + seconds
    while (answer := get("/readyz")).status_code != 200:
        is_hopeless = "did not start" in answer.text or time.monotonic() > until
        assert not is_hopeless, answer.text
        time.sleep(0.02)


def read_problem(response, status, kind):
    """Return the members of a problem, after checking that it is one."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = json.loads(response.content)
    assert body["type"] == f"urn:headlight:problem:{kind}"
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    assert "Traceback" not in response.text
    return body


@pytest.fixture(scope="session")
def problem():
    return read_problem


def arrays_of_json(body):
    """Return the tensors of a JSON trace; null is -inf, and scaled integers are scaled back."""
    return {site: _array_of_json(tensor) for site, tensor in body["tensors"].items()}


def _array_of_json(tensor):
    data = np.array(tensor["data"], dtype=object)
    data[data == None] = -np.inf  # noqa: E711 - elementwise
    array = data.astype(tensor["dtype"])
    assert list(array.shape) == tensor["shape"]
    return array * np.float32(tensor["scale"]) if "scale" in tensor else array


@pytest.fixture(scope="session")
def from_json():
    return arrays_of_json


@pytest.fixture
def from_safetensors(tmp_path):
    """Return the arrays of a safetensors answer, as they lie in it, and its metadata."""

    def read(content):
        path = tmp_path / "trace.safetensors"
        path.write_bytes(content)
        with safe_open(path, framework="numpy") as file:
            metadata = {key: json.loads(value) for key, value in file.metadata().items()}
        return safetensors.numpy.load(content), metadata

    return read


@pytest.fixture
def headlight(zoo, monkeypatch):
    """Return a function that runs the command with our tiny models."""
    monkeypatch.setenv("HEADLIGHT_ZOO_DIR", str(zoo))
    monkeypatch.setenv("HEADLIGHT_DEFAULT_MODEL", "tiny")
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("headlight.commands.output.console.width", 200)
    return lambda *words: CliRunner().invoke(cli.app, list(words))
