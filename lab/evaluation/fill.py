"""The figures of `fill`: masked words of a text, and a list of blanks with the words that fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from headlight.lab.training.batches import generator_of, padded
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import CorpusError, lines, read_lines
from headlight.model.tokenizer import MASK

BLANKS = Path(__file__).with_name("gold") / "blanks.tsv"
"""On each line a sentence with one mask, a tab, and the words that fit it."""
N_GUESSES = 3


class Blank(NamedTuple):
    """A text with one masked token (``ids``), its position, and the token it hides."""

    ids: list[int]
    place: int
    hidden: int


def evaluate(
    checkpoint: Checkpoint,
    documents: Sequence[str],
    *,
    n_blanks: int = 2000,
    seed: int = 0,
    is_cut: bool = False,
) -> dict[str, Any]:
    """Mask one word of a paragraph at a time and let the model predict it, as on the page.

    Only words of one token are masked, because one mask replaces one token; punctuation is not
    a word. Paragraphs are cut to the model's context.

    Args:
        checkpoint: an encoder with a mask token.
        documents: held-out text.
        n_blanks: the number of words to mask, drawn uniformly from all.
        seed: decides which.
        is_cut: whether the text ends after the mask.

    Returns:
        ``masked_word_accuracy`` and ``masked_word_in_first_five``, in [0, 1], and
        ``masked_words``, the number of masked words.

    Raises:
        CorpusError: the text has no word of one token.
        ValueError: the model has no mask token.
    """
    chosen = _chosen(checkpoint, documents, n_blanks, seed)
    n_first = n_five = 0
    for first in range(0, len(chosen), 64):
        part = chosen[first : first + 64]
        if is_cut:
            part = [blank._replace(ids=blank.ids[: blank.place + 1]) for blank in part]
        hidden = torch.tensor([blank.hidden for blank in part])
        best = _guesses(checkpoint, part)
        n_first += int((best[:, 0] == hidden).sum())
        n_five += int((best == hidden[:, None]).sum())
    return {
        "masked_word_accuracy": n_first / len(chosen),
        "masked_word_in_first_five": n_five / len(chosen),
        "masked_words": len(chosen),
    }


def filled_blanks(checkpoint: Checkpoint) -> dict[str, Any]:
    """Fill the sentences of `BLANKS`.

    Returns:
        ``fitting``: the share whose first guess is a word that fits; ``guesses``: by sentence the
        first three guesses, each with its probability.
    """
    entries = [line.split("\t") for line in read_lines(BLANKS)]
    guesses, n_fitting = {}, 0
    for sentence, words in entries:
        tokens = checkpoint.tokenizer.encode(sentence)
        place = next(n for n, token in enumerate(tokens) if token.text == MASK)
        ids = torch.tensor([[token.id for token in tokens]], device=checkpoint.device)
        with torch.inference_mode():
            probabilities = checkpoint.model(ids).logits[0, place].softmax(dim=-1).cpu()
        best = probabilities.topk(N_GUESSES)
        likeliest = [
            checkpoint.tokenizer.decode([token]).strip() for token in best.indices.tolist()
        ]
        n_fitting += likeliest[0] in words.split()
        guesses[sentence] = ", ".join(
            f"{word} {share:.2f}"
            for word, share in zip(likeliest, best.values.tolist(), strict=True)
        )
    return {"fitting": n_fitting / len(entries), "guesses": guesses}


def _chosen(
    checkpoint: Checkpoint, documents: Sequence[str], n_blanks: int, seed: int
) -> list[Blank]:
    """Draw blanks uniformly from all, the shortest text first."""
    blanks = _blanks(checkpoint, documents)
    if not blanks:
        raise CorpusError("the text has no word of one token to mask; give a longer one")
    order = torch.randperm(len(blanks), generator=generator_of(seed))[:n_blanks].tolist()
    return sorted((blanks[number] for number in order), key=lambda blank: len(blank.ids))


def _blanks(checkpoint: Checkpoint, documents: Sequence[str]) -> list[Blank]:
    tokenizer, limit = checkpoint.tokenizer, checkpoint.config.max_tokens
    if tokenizer.mask_id is None:
        raise ValueError(
            f"the vocabulary of '{checkpoint.id}' has no mask token; "
            "train a model that has one with: headlight train fill"
        )
    blanks = []
    for paragraph in lines(documents):
        if not paragraph.strip():
            continue
        tokens = tokenizer.encode(paragraph.rstrip("\n"))[:limit]
        ids = [token.id for token in tokens]
        n_pieces = Counter(token.word for token in tokens)
        for place, token in enumerate(tokens):
            is_whole = n_pieces[token.word] == 1 and place + 1 < limit
            if token.word is not None and is_whole and token.text.strip().isalpha():
                masked = [*ids[:place], tokenizer.mask_id, *ids[place + 1 :]]
                blanks.append(Blank(masked, place, token.id))
    return blanks


def _guesses(checkpoint: Checkpoint, blanks: Sequence[Blank]) -> Int[Tensor, "blank rank"]:
    """Return the five most probable tokens at each mask, the most probable first."""
    rows = padded([blank.ids for blank in blanks], 0)
    ids, is_token = (tensor.to(checkpoint.device) for tensor in rows)
    with torch.inference_mode():
        logits: Tensor = checkpoint.model(ids, is_token=is_token).logits.cpu()
    places = torch.tensor([blank.place for blank in blanks])
    return logits[torch.arange(len(blanks)), places].topk(5).indices
