"""The loss of a language model, by hand and against PyTorch's."""

import math

import pytest
import torch
import torch.nn.functional as F

from headlight.lab.training.losses import distillation_losses, token_losses


@pytest.fixture
def logits():
    return torch.randn(2, 5, 11, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def targets():
    return torch.randint(11, (2, 5), generator=torch.Generator().manual_seed(1))


def test_the_loss_of_a_token_is_minus_the_log_of_its_probability():
    logits = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]]).log()
    losses = token_losses(logits, torch.tensor([[0, 1]]))
    torch.testing.assert_close(losses, torch.tensor([[math.log(2), math.log(5)]]))


def test_the_loss_of_bfloat16_logits_and_its_gradient_are_pytorchs():
    generator = torch.Generator().manual_seed(0)
    logits = (8 * torch.randn(3, 200, 50, generator=generator)).bfloat16()  # several blocks
    targets = torch.randint(50, (3, 200), generator=generator)
    is_counted = torch.rand(3, 200, generator=generator) < 0.7
    ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
    losses = token_losses(ours, targets)
    expected = F.cross_entropy(theirs.float().transpose(1, 2), targets, reduction="none")
    torch.testing.assert_close(losses, expected)
    (losses * is_counted).sum().backward()
    (expected * is_counted).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    assert not ours.grad[~is_counted].any()


# --- label smoothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5, 1.0])
def test_a_smoothed_target_is_spread_over_the_whole_vocabulary(logits, targets, smoothing):
    spread = F.one_hot(targets, 11).double() * (1 - smoothing) + smoothing / 11
    expected = -(spread * logits.double().log_softmax(dim=-1)).sum(dim=-1)
    losses = token_losses(logits, targets, smoothing=smoothing)
    torch.testing.assert_close(losses, expected.float())


def test_the_smoothed_loss_and_its_gradient_are_pytorchs(logits, targets):
    ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
    loss = token_losses(ours, targets, smoothing=0.1).mean()
    expected = F.cross_entropy(theirs.flatten(0, 1), targets.flatten(), label_smoothing=0.1)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("smoothing", [-0.1, 1.1, float("nan")])
def test_less_than_nothing_or_more_than_all_cannot_be_spread(logits, targets, smoothing):
    with pytest.raises(ValueError, match=rf"^smoothing \({smoothing}\)"):
        token_losses(logits, targets, smoothing=smoothing)


# --- distillation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_loss_of_a_student_is_the_divergence_from_its_teacher(logits, temperature):
    teacher = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2))
    losses = distillation_losses(logits, teacher, temperature=temperature)
    expected = torch.distributions.kl_divergence(
        torch.distributions.Categorical(logits=teacher / temperature),
        torch.distributions.Categorical(logits=logits / temperature),
    )
    assert losses.shape == logits.shape[:2]
    torch.testing.assert_close(losses, temperature**2 * expected)


def test_at_a_high_temperature_the_gradient_is_the_difference_of_the_centred_logits(logits):
    """Hinton et al. 2015, section 2.1: the gradient of T^2 KL tends to (z - v) / vocab."""
    teacher = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2))
    student = logits.double().requires_grad_()
    distillation_losses(student, teacher.double(), temperature=1000.0).sum().backward()
    difference = logits - logits.mean(-1, keepdim=True) - (teacher - teacher.mean(-1, keepdim=True))
    torch.testing.assert_close(student.grad.float(), difference / 11, atol=2e-3, rtol=0.02)


def test_a_temperature_is_positive(logits):
    with pytest.raises(ValueError, match=r"temperature \(0.0\) must be positive"):
        distillation_losses(logits, logits, temperature=0.0)
