"""The mixture of experts measured on a text: the tokens that each expert takes.

A router sends a token to ``top_k`` experts, so an expert takes a share of all tokens. Without
specialisation it would take that share of every single token; `expert_tokens` lists the tokens of
which it takes more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headlight.lab.evaluation.text import whole_rows
from headlight.lab.training.batches import prepend
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import TokenStream
from headlight.model.distributions import wilson
from headlight.model.tokenizer import Tokenizer

INDICES = ".experts.expert_indices"
BATCH_ROWS = 16
Counts = Int[Tensor, "name expert"]
KINDS = (
    "start_of_word",
    "rest_of_word",
    "capital_at_start",
    "capital_inside",
    "number",
    "punctuation",
    "white_space",
    "other",
)
ENDS_OF_SENTENCES = frozenset(".!?:;\"'“”‘’«»\n")
BROKEN = "\ufffd"  # what a piece of a character decodes to


def _routed(
    checkpoint: Checkpoint, rows: Int[Tensor, "row token"]
) -> Iterator[tuple[Int[Tensor, "part token"], dict[str, Int[Tensor, "part token top_k"]]]]:
    """Yield parts of some rows, start token first, with the experts of each token by site."""
    for part in rows.split(BATCH_ROWS):
        ids = prepend(checkpoint.tokenizer.start_id, part)
        with torch.inference_mode(), checkpoint.model.capture([f"*{INDICES}"]) as captured:
            checkpoint.model(ids.to(checkpoint.device))
        yield ids, {site: indices.cpu() for site, indices in captured.items()}


# --- tokens ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Taken:
    """The counts of each token and each kind, and how often each expert of a layer took them."""

    tokens: Int[Tensor, "token expert"]
    kinds: Int[Tensor, "kind expert"]
    all_tokens: Int[Tensor, " token"]
    all_kinds: Int[Tensor, " kind"]


def expert_tokens(
    checkpoint: Checkpoint,
    documents: Sequence[str],
    *,
    n_tokens: int = 1_000_000,
    least_count: int = 100,
    n_listed: int = 12,
) -> dict[str, Any]:
    """Count which tokens go to which expert of each layer.

    Args:
        checkpoint: a model of one stack, with experts.
        documents: text, at least one context long.
        n_tokens: the number of tokens to read, in rows of a whole context that are spread evenly
            over the text; all, if it has no more.
        least_count: a token that occurs less often is not listed.
        n_listed: the number of tokens to list for each expert.

    Returns:
        Plain data for a card:

        - ``tokens``: the number of tokens read, start tokens not counted.
        - ``least_count``.
        - ``kinds``: the share of each kind of `TokenKinds` in the tokens.
        - ``layers``: by a layer's name, ``decoder.layers.0``, for each expert in order: the
          ``share`` of the tokens that goes to it; the share of each of the ``kinds``; and
          ``tokens``, those of which it takes more than its share, each with its ``text``, the
          ``share`` of its occurrences that goes to the expert, and their ``count``. They are
          ranked by the lower end of the 95 % interval of that share (Wilson 1927,
          https://doi.org/10.2307/2276774), so that luck with a rare token ranks below a habit
          with a common one.

    Raises:
        ValueError: the model is dense, or has two stacks.
        CorpusError: the text is shorter than one context.
    """
    rows = _rows(checkpoint, documents, n_tokens)
    by_layer = count_taken(checkpoint, rows)
    seen = next(iter(by_layer.values()))
    n_read = int(seen.all_tokens.sum())
    of_kind = dict(zip(KINDS, (seen.all_kinds / n_read).tolist(), strict=True))
    return {
        "tokens": n_read,
        "least_count": least_count,
        "kinds": {kind: share for kind, share in of_kind.items() if share},
        "layers": {
            layer: [
                _describe(taken, expert, checkpoint.tokenizer, least_count, n_listed)
                for expert in range(taken.tokens.shape[1])
            ]
            for layer, taken in by_layer.items()
        },
    }


def count_taken(checkpoint: Checkpoint, rows: Int[Tensor, "row token"]) -> dict[str, Taken]:
    """Count what each expert takes of some rows of text, by the name of its layer.

    Args:
        checkpoint: a model of one stack, with experts.
        rows: text without the start token, which is put before each row and not counted.
    """
    moe, tokenizer = checkpoint.config.moe, checkpoint.tokenizer
    assert moe is not None
    kinds_of = TokenKinds.of(tokenizer)
    by_layer: dict[str, Taken] = {}
    for ids, by_site in _routed(checkpoint, rows):
        read = ids[:, 1:].flatten()
        kinds = kinds_of(ids[:, :-1], ids[:, 1:]).flatten()
        for site, indices in by_site.items():
            layer = site.removesuffix(INDICES)
            before = by_layer.get(layer) or _nothing(tokenizer.vocab_size, moe.n_experts)
            chosen = indices[:, 1:].flatten(0, 1)
            by_layer[layer] = Taken(
                tokens=before.tokens + _crossed(read, chosen, before.tokens),
                kinds=before.kinds + _crossed(kinds, chosen, before.kinds),
                all_tokens=before.all_tokens + read.bincount(minlength=len(before.all_tokens)),
                all_kinds=before.all_kinds + kinds.bincount(minlength=len(before.all_kinds)),
            )
    return by_layer


def _rows(
    checkpoint: Checkpoint, documents: Sequence[str], n_tokens: int
) -> Int[Tensor, "row token"]:
    """Cut about `n_tokens` tokens of the text in rows of a whole context, evenly spread."""
    config = checkpoint.config
    if config.moe is None:
        raise ValueError(f"{checkpoint.id} is dense: it has no experts; leave the corpus out")
    if config.kind == "encoder-decoder":
        raise ValueError(
            f"{checkpoint.id} reads sentence pairs; its experts cannot be counted on a text"
        )
    ids = TokenStream.encode(documents, checkpoint.tokenizer).ids
    rows = whole_rows(ids, config.max_tokens - 1)
    n_rows = max(1, min(len(rows), n_tokens // rows.shape[1]))
    return rows[torch.arange(n_rows) * len(rows) // n_rows]


def _nothing(vocab_size: int, n_experts: int) -> Taken:
    shapes = [(vocab_size, n_experts), (len(KINDS), n_experts), (vocab_size,), (len(KINDS),)]
    return Taken(*(torch.zeros(shape, dtype=torch.long) for shape in shapes))


def _crossed(
    names: Int[Tensor, " read"], chosen: Int[Tensor, "read top_k"], like: Counts
) -> Counts:
    """Count how often each name went to each expert."""
    cells = (names[:, None] * like.shape[1] + chosen).flatten()
    return cells.bincount(minlength=like.numel()).view_as(like)


def _describe(
    taken: Taken, expert: int, tokenizer: Tokenizer, least_count: int, n_listed: int
) -> dict[str, Any]:
    """Describe what one expert takes, as plain data."""
    mine, of_kinds = taken.tokens[:, expert], taken.kinds[:, expert]
    share = float(mine.sum() / taken.all_tokens.sum())
    rank = torch.from_numpy(wilson(mine.numpy(), taken.all_tokens.clamp(min=1).numpy())[0])
    is_listed = (taken.all_tokens >= least_count) & (rank > share)
    best = torch.where(is_listed, rank, -1.0).argsort(descending=True, stable=True)
    listed = best[: min(n_listed, int(is_listed.sum()))].tolist()
    return {
        "share": share,
        "kinds": {
            kind: float(of_kinds[number] / count)
            for number, (kind, count) in enumerate(
                zip(KINDS, taken.all_kinds.tolist(), strict=True)
            )
            if count
        },
        "tokens": [_listed(taken, token, expert, tokenizer) for token in listed],
    }


def _listed(taken: Taken, token: int, expert: int, tokenizer: Tokenizer) -> dict[str, Any]:
    count = int(taken.all_tokens[token])
    share = int(taken.tokens[token, expert]) / count
    return {"text": tokenizer.text_of(token), "share": share, "count": count}


# --- kinds of tokens ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TokenKinds:
    """The kinds of the tokens of a vocabulary, by their spelling and the token before.

    There is no list of words and no knowledge of a language, only letters, case, spaces and the
    ends of sentences. ``start_of_word`` and ``rest_of_word``: letters that begin a word in lower
    case, or continue one. ``capital_at_start``: a capitalised word after the end of a sentence,
    an opening quotation mark or a line break; ``capital_inside``: one elsewhere, usually a name.
    ``number``, ``punctuation``, ``white_space``; ``other``: special tokens, and pieces of a
    character.
    """

    is_word: Bool[Tensor, " token"]
    is_capital: Bool[Tensor, " token"]
    has_space: Bool[Tensor, " token"]
    ends_word: Bool[Tensor, " token"]
    ends_sentence: Bool[Tensor, " token"]
    unlike_words: Int[Tensor, " token"]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> TokenKinds:
        """Classify every token of a vocabulary."""
        texts = [tokenizer.decode([token]) for token in range(tokenizer.vocab_size)]
        bare = [text.strip() for text in texts]
        unlike = [KINDS.index(_kind_unlike_words(text)) for text in texts]
        return cls(
            is_word=torch.tensor(unlike) == KINDS.index("start_of_word"),
            is_capital=torch.tensor([text[:1].isupper() for text in bare]),
            has_space=torch.tensor([text[:1].isspace() for text in texts]),
            ends_word=torch.tensor([text[-1:].isalpha() for text in texts]),
            ends_sentence=torch.tensor(
                [not text or text[-1] in ENDS_OF_SENTENCES for text in texts]
            ),
            unlike_words=torch.tensor(unlike),
        )

    def __call__(
        self, before: Int[Tensor, "row token"], ids: Int[Tensor, "row token"]
    ) -> Int[Tensor, "row token"]:
        """Return the kind of each token, as an index into `KINDS`.

        Args:
            before: for each token the one before it.
            ids: the tokens.
        """
        is_rest = self.ends_word[before] & ~self.has_space[ids]
        is_start = self.ends_sentence[before]
        of_capitals = torch.where(
            is_start, KINDS.index("capital_at_start"), KINDS.index("capital_inside")
        )
        of_words = torch.where(self.is_capital[ids], of_capitals, KINDS.index("start_of_word"))
        of_words = torch.where(is_rest, KINDS.index("rest_of_word"), of_words)
        return torch.where(self.is_word[ids], of_words, self.unlike_words[ids])


def _kind_unlike_words(text: str) -> str:
    """Return the kind of a text without letters; with letters, ``start_of_word``."""
    if not text or BROKEN in text:
        return "other"
    if any(letter.isalpha() for letter in text):
        return "start_of_word"
    if text.isspace():
        return "white_space"
    return "number" if any(letter.isdigit() for letter in text) else "punctuation"
