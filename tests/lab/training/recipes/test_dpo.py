"""The recipe `dpo`: comparisons in, a decoder that prefers the better answers out."""

import json

import pytest
import torch
import torch.nn.functional as F

from headlight.lab.training.recipes.dpo import dpo_losses, text_log_probs

SETTINGS = {
    "rows.count": 8,
    "loop": {"steps": 8, "warmup": 1, "learning_rate": 1e-2, "validate_every": 4, "save_every": 2},
}


@pytest.fixture
def comparisons(tmp_path):
    path = tmp_path / "comparisons.jsonl"
    lines = [
        {"prompt": f"Number {n} said", "a": " yes.", "b": " no, no.", "preferred": "a"}
        for n in range(60)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def make_loop(begin, comparisons, make_folder):
    folder = make_folder()
    return lambda name: begin("dpo", [comparisons], name, SETTINGS, begun_from=folder)


def test_the_loss_is_the_logistic_loss_of_the_ratios():
    generator = torch.Generator().manual_seed(0)
    log_probs, reference = torch.randn(2, 5, 2, generator=generator)
    margins = (log_probs[:, 0] - reference[:, 0]) - (log_probs[:, 1] - reference[:, 1])
    expected = F.binary_cross_entropy_with_logits(0.3 * margins, torch.ones(5), reduction="none")
    torch.testing.assert_close(dpo_losses(log_probs, reference, beta=0.3), expected)


def test_padding_has_no_probability():
    logits = torch.randn(2, 4, 9)
    targets = torch.tensor([[1, 2, 3, 4], [5, 6, -1, -1]])
    rows = logits.log_softmax(-1)
    expected = torch.stack([rows[0, range(4), [1, 2, 3, 4]].sum(), rows[1, range(2), [5, 6]].sum()])
    torch.testing.assert_close(text_log_probs(logits, targets), expected)


def test_it_begins_at_the_reference_and_learns_to_prefer(make_loop):
    loop = make_loop("mine")
    assert loop.batches.trained[0][1].shape == (2,)
    torch.testing.assert_close(torch.tensor(loop.validate()), torch.tensor(2.0).log())
    assert loop.run()
    assert loop.validate() < 0.5
    texts = loop.batches.validation()[0]
    before = loop.batches.reference
    ratios = []
    for model in (loop.model.eval(), before):
        with torch.inference_mode():
            logits = texts.predict(model).logits
        ratios.append(text_log_probs(logits, texts.targets.flatten(0, 1)).view(-1, 2))
    gained = ratios[0] - ratios[1]
    assert (gained[:, 0] > gained[:, 1]).all()


def test_the_prompt_cancels(make_loop):
    loop = make_loop("mine")
    batch = loop.batches.batch(0)
    assert (batch.ids[:, 0, :3] == batch.ids[:, 1, :3]).all()
