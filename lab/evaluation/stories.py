"""The figures of `stories`: bits per byte, attention heads, expert load and minimal pairs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.lab.evaluation.minimal_pairs import MinimalPair, pair_figures
from headlight.lab.evaluation.moe import load_entropy, routing
from headlight.lab.evaluation.text import HeadScore, attention, best_head, bits_per_byte, whole_rows
from headlight.lab.training.batches import prepend
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import TokenStream, read_lines
from headlight.model.generation.sampling import Sampling, generate
from headlight.model.tokenizer import Tokenizer

HEAD_ROWS = 32
OPENINGS = Path(__file__).with_name("gold") / "openings.txt"
PAGE_SAMPLING = Sampling(temperature=0.8, top_p=0.9)
"""The settings that the page's Generate begins with."""
N_CONTINUED = 48
WORD = re.compile(r" [^\W\d_]{2,}")


def evaluate(
    checkpoint: Checkpoint, documents: Sequence[str], pairs: Sequence[MinimalPair]
) -> dict[str, Any]:
    """Measure the model on held-out text and on minimal pairs.

    Args:
        checkpoint: the model.
        documents: held-out text, at least one context long.
        pairs: minimal pairs; without any, their figures are left out.

    Returns:
        The figures by name.

    Raises:
        CorpusError: the text is shorter than one context.
    """
    stream = TokenStream.encode(documents, checkpoint.tokenizer)
    rows = whole_rows(stream.ids, checkpoint.config.max_tokens - 1)
    induction, copying = induction_head(checkpoint)
    words = word_tokens(checkpoint.tokenizer)
    figures: dict[str, Any] = {
        **bits_per_byte(checkpoint, documents),
        "previous_token_head": previous_token_head(checkpoint, rows[:HEAD_ROWS])._asdict(),
        "induction_head": induction._asdict(),
        "copy_accuracy": copying,
    }
    if words:
        of_words, copying_words = induction_head(checkpoint, drawn_from=words)
        figures["induction_head_on_words"] = of_words._asdict()
        figures["copy_accuracy_on_words"] = copying_words
    if checkpoint.config.moe is not None:
        by_layer = {f"layer_{n}": layer for n, layer in routing(checkpoint, rows).items()}
        figures["expert_load_entropy"] = {
            name: load_entropy(layer.load) for name, layer in by_layer.items()
        }
        figures["smallest_expert_share"] = {
            name: float(layer.load.min()) for name, layer in by_layer.items()
        }
        figures["first_choice_decided_by_token"] = {
            name: layer.decided_by_token
            for name, layer in by_layer.items()
            if not math.isnan(layer.decided_by_token)  # of a short text, in which no token repeats
        }
    if pairs:
        figures |= pair_figures(checkpoint, pairs)
    return figures


def continuations(checkpoint: Checkpoint) -> dict[str, str]:
    """Continue each of `OPENINGS` once, as the page does at first; the number is the seed.

    Openings that fill the model's context are left out.
    """
    tokenizer, limit = checkpoint.tokenizer, checkpoint.config.max_tokens
    texts = {}
    for seed, opening in enumerate(read_lines(OPENINGS)):
        begun = [token.id for token in tokenizer.encode(opening)]
        if len(begun) >= limit:
            continue
        written = generate(
            checkpoint.model,
            begun,
            n_tokens=min(N_CONTINUED, limit - len(begun)),
            sampling=PAGE_SAMPLING,
            seed=seed,
            stop_id=tokenizer.end_id,
        )
        ids = [token.id for token in written if token.id != tokenizer.end_id]
        texts[opening] = tokenizer.decode(ids)
    return texts


def previous_token_head(checkpoint: Checkpoint, rows: Int[Tensor, "row token"]) -> HeadScore:
    """Find the head with the greatest mean weight on the previous token.

    The first token of a row, which has only the start token before it, does not count.
    """
    weights, _ = attention(checkpoint, prepend(checkpoint.tokenizer.start_id, rows))
    return best_head(weights.diagonal(offset=-1, dim1=-2, dim2=-1)[..., 1:].mean(dim=(1, 3)))


def word_tokens(tokenizer: Tokenizer) -> list[int]:
    """List the tokens that begin a word and hold letters only: a space, and two letters or more.

    Random tokens of the whole vocabulary are bytes, endings and punctuation too, which seldom
    follow one another in a text.
    """
    return [
        token
        for token in range(tokenizer.vocab_size)
        if not tokenizer.is_special(token) and WORD.fullmatch(tokenizer.text_of(token))
    ]


def induction_head(
    checkpoint: Checkpoint,
    *,
    drawn_from: Sequence[int] = (),
    n_rows: int = 32,
    segment: int = 50,
    seed: int = 0,
) -> tuple[HeadScore, float]:
    """Find the head with the greatest mean weight on the token after the earlier occurrence.

    Each row is a segment of tokens drawn uniformly, twice. Olsson et al. 2022,
    https://arxiv.org/abs/2209.11895.

    Args:
        checkpoint: the model.
        drawn_from: the tokens to draw from, such as `word_tokens`; without any, the vocabulary.
        n_rows: the number of rows.
        segment: the tokens of a segment.
        seed: of the draw.

    Returns:
        The head with its mean weight over the repetition, and the model's accuracy on the
        repetition: the share of its tokens, except the first, that are the model's first guess.
    """
    generator = torch.Generator().manual_seed(seed)
    special = {checkpoint.tokenizer.start_id, checkpoint.tokenizer.end_id}
    vocabulary = drawn_from or range(checkpoint.config.vocab_size)
    ordinary = torch.tensor([token for token in vocabulary if token not in special])
    drawn = torch.randint(len(ordinary), (n_rows, segment), generator=generator)
    rows = ordinary[drawn].repeat(1, 2)
    weights, logits = attention(checkpoint, prepend(checkpoint.tokenizer.start_id, rows))
    # In the repetition, position p (the start token is position 0) holds the token of p − segment;
    # the one after that is at p − segment + 1.
    stripe = weights.diagonal(offset=1 - segment, dim1=-2, dim2=-1)[..., 2:]
    predicted = logits[:, segment + 1 : -1].argmax(dim=-1)
    accuracy = (predicted == rows[:, segment + 1 :]).float().mean().item()
    return best_head(stripe.mean(dim=(1, 3))), accuracy
