"""Masked language modelling: hide some tokens of a text for the model to fill in.

Devlin et al. 2019, BERT, section 3.1, https://arxiv.org/abs/1810.04805.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

HIDDEN = 0.8
REPLACED = 0.1


class Masked(NamedTuple):
    """Rows with some tokens hidden.

    ``ids`` (row, token) is the model's input, ``targets`` (row, token) the original tokens, and
    ``is_counted`` (row, token) marks the chosen tokens, changed or not.
    """

    ids: Tensor
    targets: Tensor
    is_counted: Tensor


def mask_tokens(
    ids: Int[Tensor, "row token"],
    *,
    mask_id: int,
    vocab_size: int,
    is_maskable: Bool[Tensor, "row token"],
    generator: torch.Generator,
    share: float = 0.15,
    special_ids: Collection[int] = (),
    words: Int[Tensor, "row token"] | None = None,
) -> Masked:
    """Choose tokens of every row and hide them.

    Of the chosen tokens 80 % become the mask token, 10 % an ordinary token drawn at random (in
    rare cases the same one) and 10 % stay, each token by its own draw. A row has `share` of its
    maskable tokens chosen, rounded up or down at random so that the mean is exact, but at least
    one if there is any. The paper draws from the whole vocabulary; special tokens are excluded
    here.

    Args:
        ids: the text; not changed.
        mask_id: the mask token.
        vocab_size: the size of the vocabulary.
        is_maskable: False for the special tokens of the text and its padding.
        generator: the source of randomness, on the device of `ids`.
        share: the share of maskable tokens to choose, in (0, 1].
        special_ids: tokens that are never drawn at random; the mask token is always among them.
        words: the number of the word that each token belongs to, −1 for a special token, which
            is then never chosen. Neighbours with one number are chosen together or not at all,
            and `share` is a share of words (whole-word masking,
            https://github.com/google-research/bert).

    Raises:
        ValueError: the share is outside its range.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share ({share}) must be above 0 and at most 1")
    if words is None:
        units = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    else:
        units = _run_numbers(words)
        is_maskable = is_maskable & (words >= 0)
    is_chosen = _choose(units, is_maskable, share, generator)
    # Mask, replace or keep each chosen token.
    draw = torch.rand(ids.shape, generator=generator, device=ids.device)
    ordinary = _ordinary_ids(vocab_size, {mask_id, *special_ids}).to(ids)
    drawn = torch.randint(len(ordinary), ids.shape, generator=generator, device=ids.device)
    hidden = torch.where(draw < HIDDEN, mask_id, ids)
    hidden = torch.where(draw >= 1 - REPLACED, ordinary[drawn], hidden)
    return Masked(torch.where(is_chosen, hidden, ids), ids, is_chosen)


def _choose(
    units: Int[Tensor, "row token"],
    is_maskable: Bool[Tensor, "row token"],
    share: float,
    generator: torch.Generator,
) -> Bool[Tensor, "row token"]:
    """Choose the maskable tokens of a share of each row's units; a unit is a token or a word."""
    is_unit = torch.zeros_like(units).scatter_add(1, units, is_maskable.to(units)) > 0
    noise = torch.rand(units.shape, generator=generator, device=units.device)
    luck = torch.rand(len(units), generator=generator, device=units.device)
    n_chosen = (share * is_unit.sum(dim=1) + luck).floor().clamp(min=1)
    # Units without a maskable token rank last; choosing one changes nothing.
    rank = noise.masked_fill(~is_unit, 2.0).argsort(dim=1).argsort(dim=1)
    is_chosen_unit = rank < n_chosen[:, None]
    return is_chosen_unit.gather(1, units) & is_maskable


def _run_numbers(words: Int[Tensor, "row token"]) -> Int[Tensor, "row token"]:
    """Number the runs of equal neighbours of a row from 0: 5 5 7 5 becomes 0 0 1 2."""
    is_new = torch.zeros_like(words, dtype=torch.bool)
    is_new[:, 1:] = words[:, 1:] != words[:, :-1]
    return is_new.cumsum(dim=1)


def _ordinary_ids(vocab_size: int, special_ids: Collection[int]) -> Int[Tensor, " ordinary"]:
    is_ordinary = torch.ones(vocab_size, dtype=torch.bool)
    is_ordinary[list(special_ids)] = False
    return is_ordinary.nonzero().flatten()
