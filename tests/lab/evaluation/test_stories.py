"""The continuations of `stories`, and bits per byte."""

import math
import re

import pytest
import torch
import torch.nn.functional as F

from headlight.lab.evaluation import stories
from headlight.lab.evaluation.stories import OPENINGS, PAGE_SAMPLING, continuations
from headlight.lab.evaluation.text import bits_per_byte
from headlight.lab.training.losses import token_losses
from headlight.model.corpus import TokenStream, read_lines
from headlight.static_files import STATIC

# --- bits per byte --------------------------------------------------------------------------------


SHORT = ["The cat chased the mouse.\n"]
LONG = ["The quick brown fox — jumps over it.\n" * 6, "你好 🦊 zzz.\n", "A tree."]
CONTEXT = 48


@pytest.mark.parametrize("documents", [SHORT, LONG])
def test_a_model_that_knows_nothing_needs_the_log_of_the_vocabulary_for_each_token(
    checkpoint, documents
):
    with checkpoint.model.edit("logits", torch.zeros_like):
        figures = bits_per_byte(checkpoint, documents)
    n_tokens = len(TokenStream.encode(documents, checkpoint.tokenizer).ids)
    n_bytes = sum(len(document.encode()) for document in documents)
    assert figures["tokens"] == n_tokens
    assert figures["bytes"] == n_bytes
    assert figures["bits_per_token"] == pytest.approx(math.log2(300))
    assert figures["bits_per_byte"] == pytest.approx(n_tokens * math.log2(300) / n_bytes)


@pytest.mark.parametrize("batch_rows", [1, 16])
def test_the_window_slides_by_half_a_context(checkpoint, batch_rows):
    ids = TokenStream.encode(LONG, checkpoint.tokenizer).ids
    assert len(ids) > 3 * CONTEXT
    nats, n_predicted, start = 0.0, 0, 0
    while n_predicted < len(ids):
        start = min(start, len(ids) - CONTEXT)
        row = F.pad(ids[start : start + CONTEXT], (1, 0), value=checkpoint.tokenizer.start_id)[None]
        with torch.inference_mode():
            losses = token_losses(checkpoint.model(row[:, :-1]).logits, row[:, 1:])[0]
        new = losses[n_predicted - start :]
        nats += new.sum().item()
        n_predicted += len(new)
        start += CONTEXT // 2
    figures = bits_per_byte(checkpoint, LONG, batch_rows=batch_rows)
    assert figures["bits_per_token"] == pytest.approx(nats / math.log(2) / len(ids), rel=1e-5)


def test_continuations_begin_with_the_settings_of_the_page(make_checkpoint, monkeypatch):
    monkeypatch.setattr(stories, "N_CONTINUED", 8)
    entries = (STATIC / "js/views/view_registry.js").read_text()
    standard = {
        name: float(value)
        for name, value in re.findall(r"generate_(\w+): number\({.*?standard: ([\d.]+)", entries)
    }

    assert PAGE_SAMPLING.temperature == standard["temperature"]
    assert PAGE_SAMPLING.top_p == standard["top_p"]
    assert standard["top_k"] == 0
    assert PAGE_SAMPLING.top_k is None
    checkpoint = make_checkpoint(moe=None, max_tokens=200)
    texts = continuations(checkpoint)
    assert list(texts) == read_lines(OPENINGS)
    assert texts == continuations(checkpoint)
    assert len(set(texts.values())) == len(texts) == 10
