"""The simplest FastAPI application for a trace: one thread, no queue, no batches.

    python tests/benchmarks/plain_app.py

The throughput benchmark measures the engine against it, with the same `trace` of the same model.
"""

import asyncio
import fnmatch
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import orjson
import torch
import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel

from headlight.model.analysis.next_token import next_token
from headlight.model.checkpoint.loading import ZOO, load
from headlight.model.tracing import DEFAULT_CAPTURE, trace

torch.set_num_threads(1)
checkpoint = load(ZOO / "stories")
sites = [site.name for site in checkpoint.description.sites]
CAPTURE = [glob for glob in DEFAULT_CAPTURE if fnmatch.filter(sites, glob)]
executor = ThreadPoolExecutor(max_workers=1)
app = FastAPI()


class Question(BaseModel):
    """A text to trace."""

    text: str


def answer(text: str) -> bytes:
    """Return the default trace as JSON."""
    traced = trace(checkpoint, text, capture=[*CAPTURE, "logits"])
    arrays = {**traced.tensors, **next_token(traced)}
    del arrays["logits"]
    tensors = {name: {"axes": array.axes, "data": array.data} for name, array in arrays.items()}
    body = {"tokens": [asdict(token) for token in traced.tokens], "tensors": tensors}
    return orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)


@app.get("/healthz")
@app.get("/readyz")
async def healthz() -> dict[str, str]:
    """Alive."""
    return {"status": "ok"}


@app.post("/api/v1/trace")
async def post(question: Question) -> Response:
    """Trace a text."""
    body = await asyncio.get_running_loop().run_in_executor(executor, answer, question.text)
    return Response(body, media_type="application/json")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"at http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run([listener])
