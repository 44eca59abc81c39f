"""The loss against PyTorch's divergence of the models' own logits."""

import pytest
import torch
import torch.nn.functional as F

from headlight.model.checkpoint.loading import load
from headlight.model.experiments.distillation import EXPERIMENT

TEXT = "“Where is my hat?” cried the king’s son."


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_the_loss_is_the_divergence_of_softened_rows_times_the_square(temperature):
    result = EXPERIMENT.result({"text": TEXT, "temperature": temperature, "tokens_back": 2})
    logits = []
    for name in ("stories", "stories-small"):
        checkpoint = load(name)
        ids = [checkpoint.tokenizer.start_id, *checkpoint.tokenizer.encode_ids([TEXT])[0]]
        with torch.no_grad():
            logits.append(checkpoint.model(torch.tensor([ids])).logits[0] / temperature)
    teacher, student = (each.log_softmax(-1) for each in logits)
    loss = F.kl_div(student, teacher, reduction="none", log_target=True).sum(-1)
    assert result["loss"].data == pytest.approx((temperature**2 * loss).numpy(), rel=1e-3, abs=1e-4)
    place = result["place"].data
    assert place == len(ids) - 3
    best = teacher[place].exp().max().item()
    assert result["soft"].data[0, 0] == pytest.approx(best, rel=1e-3)
    at_one = EXPERIMENT.result({"text": TEXT, "temperature": 1.0, "tokens_back": 2})
    assert result["plain"].data[0, 0] == pytest.approx(at_one["soft"].data[0, 0])
