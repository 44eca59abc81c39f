"""The figures of `stories`, measured at once, and bits per byte."""

import math
import re
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from headlight.lab.evaluation import stories
from headlight.lab.evaluation.minimal_pairs import MinimalPair
from headlight.lab.evaluation.stories import (
    OPENINGS,
    PAGE_SAMPLING,
    bits_per_byte,
    continuations,
    evaluate,
    induction_head,
    previous_token_head,
    word_tokens,
)
from headlight.lab.training.losses import token_losses
from headlight.model.corpus import TokenStream, read_lines
from headlight.static_files import STATIC

DOCUMENTS = ["The quick brown fox jumps over the lazy dog, zigzag.\n" * 5, "A tree.\n"]
PAIRS = [
    MinimalPair("verbs", "The cats chase it.", "The cats chases it."),
    MinimalPair("nouns", "A tree.", "A trees."),
]


def numbers(figures):
    for value in figures.values():
        yield from numbers(value) if isinstance(value, Mapping) else [value]


@pytest.fixture(scope="module")
def figures(checkpoint):
    return evaluate(checkpoint, DOCUMENTS, PAIRS)


def test_figures_are_those_of_the_single_measurements(checkpoint, figures):
    for name, value in bits_per_byte(checkpoint, DOCUMENTS).items():
        assert figures[name] == pytest.approx(value, abs=6e-5)
    by_paradigm = figures["minimal_pairs_by_paradigm"]
    assert figures["minimal_pairs"] == sum(by_paradigm.values()) / 2


# --- bits per byte --------------------------------------------------------------------------------


SHORT = ["The cat chased the mouse.\n"]
LONG = ["The quick brown fox — jumps over it.\n" * 6, "你好 🦊 zzz.\n", "A tree."]
CONTEXT = 48


def losses_of(checkpoint, ids):
    """Return the loss of every token of one text after the start token."""
    row = torch.cat([torch.tensor([checkpoint.tokenizer.start_id]), ids])[None]
    with torch.inference_mode():
        return token_losses(checkpoint.model(row[:, :-1]).logits, row[:, 1:])[0]


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
        losses = losses_of(checkpoint, ids[start : start + CONTEXT])
        new = losses[n_predicted - start :]
        nats += new.sum().item()
        n_predicted += len(new)
        start += CONTEXT // 2
    figures = bits_per_byte(checkpoint, LONG, batch_rows=batch_rows)
    assert figures["bits_per_token"] == pytest.approx(nats / math.log(2) / len(ids), rel=1e-5)


VOCAB = 300


def looking_at(offset, head, weight):
    """Return an edit that lets one head look `offset` tokens back, and the others nowhere near."""

    def edit(weights):
        n_tokens = weights.shape[-1]
        edited = torch.zeros_like(weights)
        edited[..., 0] = 1
        edited[:, head] = torch.zeros(n_tokens, n_tokens)
        edited[:, head, :, 0] = 1 - weight
        places = torch.arange(offset, n_tokens)
        edited[:, head, places, places - offset] += weight
        return edited

    return edit


@pytest.fixture
def rows():
    return torch.randint(2, VOCAB, (3, 20), generator=torch.Generator().manual_seed(0))


def test_the_previous_token_head_is_that_of_a_slow_loop(checkpoint, rows):
    start = torch.full((3, 1), checkpoint.tokenizer.start_id)
    with torch.inference_mode(), checkpoint.model.capture(["*.weights"]) as captured:
        checkpoint.model(torch.cat([start, rows], dim=1))
    means = {
        (layer, head): sum(
            float(weights[row, head, place, place - 1])
            for row in range(3)
            # Place 0 is the start token, and place 1 has nothing but it to look back at.
            for place in range(2, 21)
        )
        / (3 * 19)
        for layer, weights in enumerate(captured.values())
        for head in range(4)
    }
    best = max(means, key=means.__getitem__)
    score = previous_token_head(checkpoint, rows)
    assert (score.layer, score.head) == best
    assert score.weight == pytest.approx(means[best], rel=1e-4)


def test_a_head_that_looks_after_the_earlier_occurrence_is_found(checkpoint):
    site = "decoder.layers.0.self_attention.weights"
    # In the second round of 12 tokens the token after the earlier occurrence is 11 back.
    with checkpoint.model.edit(site, looking_at(11, head=3, weight=0.6)):
        score, _ = induction_head(checkpoint, n_rows=4, segment=12)
    assert (score.layer, score.head) == (0, 3)
    assert score.weight == pytest.approx(0.6)


@pytest.mark.parametrize("offset", [10, 12])
def test_a_head_that_looks_beside_it_is_not_an_induction_head(checkpoint, offset):
    sites = "*.self_attention.weights"
    with checkpoint.model.edit(sites, looking_at(offset, head=3, weight=1.0)):
        score, _ = induction_head(checkpoint, n_rows=4, segment=12)
    assert score.weight < 0.1


def test_a_model_that_copies_copies_everything(checkpoint):
    seen: list[Tensor] = []

    def note(tokens):
        seen.append(tokens)
        return tokens

    def copy(logits):
        """Predict what followed the token's earlier occurrence, 12 tokens back."""
        vectors = checkpoint.model.decoder.embedding.vectors.weight * 32**0.5
        ids = torch.cdist(seen[-1], vectors.expand(len(logits), -1, -1)).argmin(dim=-1)
        edited = torch.zeros_like(logits)
        places = torch.arange(12, logits.shape[1])
        edited[:, places] = torch.eye(VOCAB)[ids[:, places - 11]]
        return edited

    model = checkpoint.model
    with model.edit("decoder.embedding.tokens", note), model.edit("logits", copy):
        _, accuracy = induction_head(checkpoint, n_rows=4, segment=12)
    assert accuracy == 1
    _, accuracy = induction_head(checkpoint, n_rows=4, segment=12)
    assert accuracy < 0.2


def test_the_rows_are_a_random_segment_twice(checkpoint):
    seen: list[Tensor] = []
    forward = checkpoint.model.forward

    def note(ids):
        seen.append(ids)
        return forward(ids)

    checkpoint.model.forward = note  # type: ignore[method-assign]
    try:
        induction_head(checkpoint, n_rows=6, segment=15, seed=4)
        induction_head(checkpoint, n_rows=6, segment=15, seed=4)
        induction_head(checkpoint, n_rows=6, segment=15, seed=5)
        words = word_tokens(checkpoint.tokenizer)
        induction_head(checkpoint, n_rows=6, segment=15, drawn_from=words)
    finally:
        del checkpoint.model.forward
    first, again, other, of_words = seen
    assert first.shape == (6, 31)
    assert (first[:, 0] == checkpoint.tokenizer.start_id).all()
    assert first[:, 1:16].equal(first[:, 16:])
    special = torch.tensor([checkpoint.tokenizer.start_id, checkpoint.tokenizer.end_id])
    assert not torch.isin(first[:, 1:], special).any()
    assert first[:, 1:16].unique().numel() > 60
    assert first.equal(again)
    assert not first.equal(other)
    texts = [checkpoint.tokenizer.text_of(token) for token in words]
    assert " the" in texts
    assert all(text[0] == " " and text[1:].isalpha() and len(text) > 2 for text in texts)
    assert of_words[:, 1:].unique().tolist() == words


def test_continuations_begin_with_the_settings_of_the_page(make_checkpoint, monkeypatch):
    monkeypatch.setattr(stories, "N_CONTINUED", 8)
    entries = (STATIC / "js/views/registry.js").read_text()
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
