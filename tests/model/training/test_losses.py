"""The loss of a language model, by hand and against PyTorch's."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from model.training.losses import language_model_loss, token_losses


@pytest.fixture
def logits() -> Tensor:
    return torch.randn(2, 5, 11, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def targets() -> Tensor:
    return torch.randint(11, (2, 5), generator=torch.Generator().manual_seed(1))


def test_the_loss_of_a_token_is_minus_the_log_of_its_probability() -> None:
    logits = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]]).log()
    losses = token_losses(logits, torch.tensor([[0, 1]]))
    torch.testing.assert_close(losses, torch.tensor([[math.log(2), math.log(5)]]))


def test_knowing_nothing_costs_the_log_of_the_vocabulary() -> None:
    losses = token_losses(torch.zeros(1, 3, 256), torch.tensor([[0, 100, 255]]))
    torch.testing.assert_close(losses, torch.full((1, 3), 8 * math.log(2)))


def test_token_losses_are_pytorchs(logits: Tensor, targets: Tensor) -> None:
    expected = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    torch.testing.assert_close(token_losses(logits, targets), expected)


def test_the_loss_is_the_mean_over_all_tokens(logits: Tensor, targets: Tensor) -> None:
    everything = torch.ones_like(targets, dtype=torch.bool)
    expected = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    torch.testing.assert_close(language_model_loss(logits, targets, everything), expected)


def test_tokens_that_do_not_count_change_nothing(logits: Tensor, targets: Tensor) -> None:
    is_counted = torch.tensor([[True, False, True, False, False], [False] * 4 + [True]])
    loss = language_model_loss(logits, targets, is_counted)
    expected = token_losses(logits, targets)[is_counted].mean()
    torch.testing.assert_close(loss, expected)
    other = logits.masked_fill(~is_counted[..., None], 3.0)
    torch.testing.assert_close(language_model_loss(other, targets, is_counted), loss)


def test_the_loss_of_bfloat16_logits_is_computed_in_float32(
    logits: Tensor, targets: Tensor
) -> None:
    rounded = logits.bfloat16()
    losses = token_losses(rounded, targets)
    assert losses.dtype == torch.float32
    torch.testing.assert_close(losses, token_losses(rounded.float(), targets), rtol=0, atol=0)
