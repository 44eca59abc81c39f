"""A direction from two sets of texts, added by a hook of PyTorch in place of the edit."""

import numpy as np
import pytest
import torch

from headlight.model.checkpoint.loading import load
from headlight.model.experiments.steering import EXPERIMENT, STRENGTHS

STEERED = EXPERIMENT.result({"strength": 2.0})


def stream_of(checkpoint, text, layer):
    """Return the stream after a layer, and the logits at the last token, by PyTorch's own hook."""
    ids = torch.tensor(
        [[checkpoint.tokenizer.start_id, *checkpoint.tokenizer.encode_ids([text])[0]]]
    )
    kept = []
    hook = checkpoint.model.decoder.layers[layer].register_forward_hook(
        lambda _module, _inputs, output: kept.append(
            (output[0] if isinstance(output, tuple) else output).clone()
        )
    )
    with torch.no_grad():
        checkpoint.model(ids)
    hook.remove()
    return kept[0][0, 1:]


def test_the_direction_is_the_difference_of_two_means_and_moves_the_lead():
    checkpoint, values = load("stories"), EXPERIMENT.validate({})
    means = [
        torch.stack([stream_of(checkpoint, text.strip(), 1).mean(0) for text in texts.split("|")])
        for texts in (values.toward, values.away)
    ]
    direction = means[0].mean(0) - means[1].mean(0)
    assert STEERED["length"].data == pytest.approx(direction.norm().item(), rel=1e-4)

    def steer(_module, _inputs, output):
        added = (output[0] if isinstance(output, tuple) else output) + 2.0 * direction
        return (added, *output[1:]) if isinstance(output, tuple) else added

    tokenizer = checkpoint.tokenizer
    ids = torch.tensor([[tokenizer.start_id, *tokenizer.encode_ids([values.text])[0]]])
    hook = checkpoint.model.decoder.layers[1].register_forward_hook(steer)
    with torch.no_grad():
        last = checkpoint.model(ids).logits[0, -1].log_softmax(-1)
    hook.remove()
    cried, laughed = (tokenizer.encode_ids([word])[0][0] for word in (" cried", " laughed"))
    expected = (last[cried] - last[laughed]).item()
    assert STEERED["lead_now"].data[1] == pytest.approx(expected, abs=2e-3)
    assert STEERED["written"].data[1, 0] == tokenizer.text_of(int(last.argmax()))


def test_it_leaves_the_band_of_random_directions_which_cross_at_no_strength():
    lead, random = STEERED["lead"].data, STEERED["random_lead"].data
    assert (np.diff(lead) > 0).all()
    assert lead[-1] > random[:, -1].max()
    assert lead[0] < random[:, 0].min()
    at_rest = STRENGTHS.tolist().index(0)
    np.testing.assert_allclose(random[:, at_rest], lead[at_rest], atol=1e-6)
    assert STEERED["lead_now"].data[0] == pytest.approx(lead[at_rest], abs=1e-6)
