"""Which tokens each expert takes over a text: what it came to be good at, counted.

A router sends a token to ``top_k`` experts, so an expert takes a share of all tokens, and by chance
as much of every single one. What it takes more of than that is what it came to be good at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.figures import rounded
from headlight.model.evaluation.token_kinds import KINDS, TokenKinds
from headlight.model.tokenizer import Tokenizer
from headlight.model.training.batches import prepend
from headlight.model.training.corpus import CorpusError, TokenStream

INDICES = ".experts.expert_indices"
Z_95 = 1.959964  # of a normal distribution 95 % lie within so many deviations
Counts = Int[Tensor, "name expert"]


@dataclass(frozen=True)
class Taken:
    """What the experts of a layer took of each token and of each kind, of all that there was."""

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
        n_tokens: how many tokens of the text to read, in rows of a whole context that are spread
            evenly over it; all, where it has no more.
        least_count: a token that occurs less often is not listed.
        n_listed: how many tokens to list of each expert.

    Returns:
        Plain data for a card, shares rounded to four digits:

        - ``tokens``: how many were read; start tokens are read and not counted.
        - ``least_count``.
        - ``kinds``: the share of the tokens that is of each kind, as `TokenKinds` has them.
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
    return rounded(
        {
            "tokens": n_read,
            "least_count": least_count,
            "kinds": {kind: share for kind, share in of_kind.items() if share},
        }
    ) | {
        "layers": {
            layer: [
                _describe(taken, expert, checkpoint.tokenizer, least_count, n_listed)
                for expert in range(taken.tokens.shape[1])
            ]
            for layer, taken in by_layer.items()
        }
    }


def count_taken(
    checkpoint: Checkpoint, rows: Int[Tensor, "row token"], *, batch_rows: int = 16
) -> dict[str, Taken]:
    """What each expert takes of some rows of text, by the name of its layer.

    Args:
        checkpoint: a model of one stack, with experts.
        rows: text, without the start token, which is read before each row and not counted.
        batch_rows: rows read at a time.
    """
    moe, tokenizer = checkpoint.config.moe, checkpoint.tokenizer
    assert moe is not None
    kinds_of = TokenKinds.of(tokenizer)
    found: dict[str, Taken] = {}
    for chunk in rows.split(batch_rows):
        ids = prepend(tokenizer.start_id, chunk)
        with torch.inference_mode(), checkpoint.model.capture([f"*{INDICES}"]) as captured:
            checkpoint.model(ids.to(checkpoint.device))
        kinds = kinds_of(ids[:, :-1], chunk).flatten()
        for site, indices in captured.items():
            layer = site.removesuffix(INDICES)
            before = found.get(layer) or _nothing(tokenizer.vocab_size, moe.n_experts)
            chosen = indices[:, 1:].flatten(0, 1).cpu()
            found[layer] = _more(before, chunk.flatten(), kinds, chosen)
    return found


def lower_end(
    taken: Int[Tensor, " token"], of: Int[Tensor, " token"], z: float = Z_95
) -> Float[Tensor, " token"]:
    """The lower end of the Wilson interval of taken/of; 0 where there was nothing to take.

    (p + z²/2n − z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n)
    """
    n = of.clamp(min=1).double()
    p = taken / n
    deviation = (p * (1 - p) / n + z**2 / (4 * n**2)).sqrt()
    return ((p + z**2 / (2 * n) - z * deviation) / (1 + z**2 / n)).clamp(min=0)


def _rows(
    checkpoint: Checkpoint, documents: Sequence[str], n_tokens: int
) -> Int[Tensor, "row token"]:
    """Rows of a whole context, as far apart as leaves `n_tokens` of the text."""
    config = checkpoint.config
    if config.moe is None:
        raise ValueError(f"{checkpoint.id} is dense: it has no experts; leave the corpus out")
    if config.kind == "encoder-decoder":
        raise ValueError(f"{checkpoint.id} reads pairs; its experts cannot be counted over a text")
    ids = TokenStream.encode(documents, checkpoint.tokenizer).ids
    length = config.max_tokens - 1
    if len(ids) < length:
        raise CorpusError(f"the corpus has {len(ids)} tokens; counting needs at least {length}")
    rows = ids[: len(ids) // length * length].view(-1, length)
    n_rows = max(1, min(len(rows), n_tokens // length))
    return rows[torch.arange(n_rows) * len(rows) // n_rows]


def _nothing(vocab_size: int, n_experts: int) -> Taken:
    shapes = [(vocab_size, n_experts), (len(KINDS), n_experts), (vocab_size,), (len(KINDS),)]
    return Taken(*(torch.zeros(shape, dtype=torch.long) for shape in shapes))


def _more(
    before: Taken,
    ids: Int[Tensor, " read"],
    kinds: Int[Tensor, " read"],
    chosen: Int[Tensor, "read top_k"],
) -> Taken:
    return Taken(
        tokens=before.tokens + _crossed(ids, chosen, before.tokens),
        kinds=before.kinds + _crossed(kinds, chosen, before.kinds),
        all_tokens=before.all_tokens + ids.bincount(minlength=len(before.all_tokens)),
        all_kinds=before.all_kinds + kinds.bincount(minlength=len(before.all_kinds)),
    )


def _crossed(
    names: Int[Tensor, " read"], chosen: Int[Tensor, "read top_k"], like: Counts
) -> Counts:
    """How often each name went to each expert."""
    cells = (names[:, None] * like.shape[1] + chosen).flatten()
    return cells.bincount(minlength=like.numel()).view_as(like)


def _describe(
    taken: Taken, expert: int, tokenizer: Tokenizer, least_count: int, n_listed: int
) -> dict[str, Any]:
    """What one expert takes, as a card holds it."""
    mine, of_kinds = taken.tokens[:, expert], taken.kinds[:, expert]
    share = float(mine.sum() / taken.all_tokens.sum())
    rank = lower_end(mine, taken.all_tokens)
    is_listed = (taken.all_tokens >= least_count) & (rank > share)
    best = torch.where(is_listed, rank, -1.0).argsort(descending=True, stable=True)
    listed = best[: min(n_listed, int(is_listed.sum()))].tolist()
    return rounded(
        {
            "share": share,
            "kinds": {
                kind: float(of_kinds[number] / count)
                for number, (kind, count) in enumerate(
                    zip(KINDS, taken.all_kinds.tolist(), strict=True)
                )
                if count
            },
        }
    ) | {"tokens": [_listed(taken, token, expert, tokenizer) for token in listed]}


def _listed(taken: Taken, token: int, expert: int, tokenizer: Tokenizer) -> dict[str, Any]:
    count = int(taken.all_tokens[token])
    share = round(int(taken.tokens[token, expert]) / count, 4)
    return {"text": tokenizer.text_of(token), "share": share, "count": count}
