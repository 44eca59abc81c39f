"""Size and encoding time of a trace of 12 layers × 12 heads × 64 tokens in each form.

    make bench

The weights are random, so their attention is nearly even: of a trained model's, whose rows are
mostly small, codings leave less. BertViz's HTML holds the same weights.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import save
from headlight.model.config import TransformerConfig
from headlight.model.tokenizer import train_tokenizer
from headlight.model.transformer import Transformer
from headlight.schemas import JSON, SAFETENSORS
from headlight.schemas.traces import TraceRequest
from headlight.serialization.compression import Coding
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import Answer, encode
from headlight.services import Services
from headlight.settings import Settings
from headlight.tracing.service import Encoded, trace_now

SECTION = "Bytes: 12 layers × 12 heads × 64 tokens"
SECTION_LARGEST = "The largest answer"
N_TOKENS = 64
N_ROUNDS = 3
MEGABYTE = 1e6
UINT16_TARGET = 1.2
HEALTH_TARGET = 0.050
CODINGS: tuple[Coding, ...] = ("zstd", "br", "gzip")
STORY = (
    "Once upon a time there was a little fox who lived near the big river with her mother. " * 30
)
FORMS = {
    "safetensors float32": ResponseFormat(media_type=SAFETENSORS),
    "safetensors u16": ResponseFormat(media_type=SAFETENSORS, dtype="uint16"),
    "safetensors u16 triangle": ResponseFormat(
        media_type=SAFETENSORS, dtype="uint16", triangle=True
    ),
    "JSON float32": ResponseFormat(media_type=JSON),
    "JSON u16 triangle": ResponseFormat(media_type=JSON, dtype="uint16", triangle=True),
}


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Services:
    """Return a model with as many layers and heads as GPT-2 small has, of random weights."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    tokenizer = train_tokenizer([STORY] * 4, vocab_size=300)
    sizes = {"n_layers": 12, "n_heads": 12, "d_model": 96, "d_ff": 96, "max_tokens": 256}
    config = TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes)
    card = ModelCard(title="Twelve by twelve", licence="MIT")
    save(folder / "twelve", Transformer(config), tokenizer, card, dtype=torch.float32)
    settings = Settings(models_dir=folder, default_model="twelve", device="cpu")
    return Services(settings)


def answer_of(services: Services, n_tokens: int) -> Answer:
    """Return the attention weights of a text of so many tokens."""
    text = beginning_of_story(services.registry.checkpoint().tokenizer, n_tokens)
    request = TraceRequest(text=text, capture=["*.self_attention.weights"])
    return trace_now(request, services.registry, services.settings)


def beginning_of_story(tokenizer, n_tokens):
    beginnings = (STORY[:end].rstrip() for end in range(1, len(STORY)))
    return next(text for text in beginnings if len(tokenizer.encode(text)) == n_tokens)


def test_sixteen_bits_and_a_triangle_make_a_trace_small(services: Services, table: Any) -> None:
    answer = answer_of(services, N_TOKENS)
    sizes = {name: measure(answer, form)[0] for name, form in FORMS.items()}
    targets = {
        "safetensors u16": UINT16_TARGET,
        "safetensors u16 triangle": 0.55 * sizes["safetensors u16"],
    }
    for name, form in FORMS.items():
        target = targets.get(name)
        told = f"≤ {target:.2f} MB" if target else ""
        is_met = sizes[name] <= target if target else None
        table.add(SECTION, name, describe(answer, form), told, is_met)
        for coding in CODINGS:
            table.add(SECTION, f"  as {coding}", describe(answer, replace(form, coding=coding)))
    assert sizes["safetensors u16"] <= UINT16_TARGET
    assert sizes["safetensors u16 triangle"] < 0.6 * sizes["safetensors u16"]


def measure(answer, form):
    """Return the megabytes, and the fewest seconds of some rounds."""
    times = []
    for _ in range(N_ROUNDS):
        began = time.perf_counter()
        content = encode(answer, form)
        times.append(time.perf_counter() - began)
    return len(content) / MEGABYTE, min(times)


def describe(answer, form):
    size, took = measure(answer, form)
    return f"{size:.2f} MB in {1e3 * took:.1f} ms"


@pytest.mark.parametrize("coding", ["identity", "zstd"])
@pytest.mark.parametrize("media_type", [JSON, SAFETENSORS])
def test_nobody_waits_for_the_largest_answer(
    services: Services, table: Any, media_type: str, coding: Coding
) -> None:
    n_tokens = int((services.settings.max_cells / 144) ** 0.5)
    answer = answer_of(services, n_tokens)
    form = ResponseFormat(media_type=media_type, coding=coding)
    longest, took, size = asyncio.run(watch(lambda: services.traces.encode(answer, form, never)))
    n_cells = sum(array.data.size for array in answer.tensors.values())
    kind = "JSON" if media_type == JSON else "safetensors"
    table.add(
        SECTION_LARGEST,
        f"{n_cells / 1e6:.1f} million numbers as {kind}, {coding}",
        f"{size / MEGABYTE:.1f} MB in {took:.2f} s; the event loop waited {1e3 * longest:.0f} ms",
        f"≤ {1e3 * HEALTH_TARGET:.0f} ms",
        longest <= HEALTH_TARGET,
    )
    assert longest < max(took / 2, 4 * HEALTH_TARGET)


async def watch(work: Callable[[], Awaitable[Encoded]]) -> tuple[float, float, int]:
    """Return the longest wait of the event loop during the work, the work's time, and its size."""
    began = time.perf_counter()
    job = asyncio.ensure_future(work())
    longest = 0.0
    while not job.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before - 0.001)
    return longest, time.perf_counter() - began, len(job.result().body)


async def never():
    await asyncio.Event().wait()
