"""The sum behind a label, against the model's gradient and edited weights; the shortcut."""

import copy

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from headlight.model.experiments import labels
from headlight.model.experiments.labels import EXPERIMENT, ID, N_HEADS
from headlight.model.transformer import Transformer

PATH = "encoder.layers.0.self_attention"


@pytest.fixture
def model():
    torch.manual_seed(5)
    made = Transformer(labels.CONFIG)
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.3, mean=float(weight.ndim == 1))
    return made


def test_the_parts_are_what_the_frozen_gradient_reads(model):
    drawn = labels.draw(np.random.default_rng(3), 6, 0.5)
    with torch.no_grad():
        sums = labels.sums_of(model, drawn.ids, drawn.is_token)
        with model.capture("*") as captured:
            logits = model(drawn.ids, is_token=drawn.is_token).logits[:, 0]
    last = captured["encoder.layers.0.residual.after"][:, 0].double()
    spread = (last.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    stream = last.clone().requires_grad_()
    norm = model.encoder.norm
    frozen = (stream - stream.mean(-1, keepdim=True)) / spread * norm.scale + norm.shift
    read = (frozen @ (model.vectors[1] - model.vectors[2]).double()).sum()
    (gradient,) = torch.autograd.grad(read, stream)
    matrix = model.get_submodule(PATH).output_projection.weight.detach().double()
    for head in range(N_HEADS):
        context = torch.zeros(6, 32, dtype=torch.float64)
        part = slice(8 * head, 8 * head + 8)
        context[:, part] = captured[f"{PATH}.context"][:, head, 0].double()
        expected = ((context @ matrix.T) * gradient).sum(-1)
        torch.testing.assert_close(sums.by_key[:, head].sum(-1), expected, atol=1e-5, rtol=1e-5)
    written = captured["encoder.layers.0.feed_forward.output"][:, 0].double()
    expected = (written * gradient).sum(-1)
    torch.testing.assert_close(sums.network, expected, atol=1e-5, rtol=1e-5)
    whole = sums.by_key.sum((1, 2)) + sums.own + sums.network + sums.bias
    difference = (logits[:, 1] - logits[:, 2]).double()
    torch.testing.assert_close(whole, difference, atol=1e-4, rtol=1e-5)


def test_a_head_that_is_off_writes_nothing(model):
    drawn = labels.draw(np.random.default_rng(4), 5, 0.5)
    with torch.no_grad():
        made = labels.without(model, drawn.ids, drawn.is_token)
        for head in range(N_HEADS):
            changed = copy.deepcopy(model)
            matrix = changed.get_submodule(PATH).output_projection.weight
            matrix[:, 8 * head : 8 * head + 8] = 0
            expected = labels.logits_of(changed, drawn.ids, drawn.is_token).softmax(-1)
            torch.testing.assert_close(made[head], expected)


def test_drawn_sentences_have_the_verb_and_the_adverb_where_they_are_said_to_be():
    drawn = labels.draw(np.random.default_rng(0), 200, 0.5)
    forms = {ID[form]: tense for pair in labels.VERBS for tense, form in enumerate(pair)}
    times = {ID[word]: tense for tense, words in enumerate(labels.ADVERBS) for word in words}
    rows = range(200)
    assert [forms[int(drawn.ids[row, drawn.verb[row]])] for row in rows] == drawn.label.tolist()
    said = torch.tensor([times[int(drawn.ids[row, drawn.adverb[row]])] for row in rows])
    assert torch.equal(said == drawn.label, drawn.agrees)
    assert 70 < int(drawn.agrees.sum()) < 130


def test_a_shortcut_that_always_works_is_all_that_is_learned():
    result = EXPERIMENT.result({"steps": 100})
    fits, misleads = result["accuracy"].data[:, -1]
    assert fits > 0.95
    assert misleads < 0.5
    assert result["label"].data == "past"
    assert result["adds"].data.sum() == pytest.approx(float(result["difference"].data))
    assert abs(result["adds"].data[-1]) < 1e-5 > result["largest_remainder"].data


@pytest.mark.parametrize(
    ("text", "said"),
    [("the boy jumped “high”", "not 'jumped'"), ("the " * 9, "at most 8 words, not 9")],
)
def test_a_sentence_that_cannot_be_read_is_refused(text, said):
    with pytest.raises(ValidationError, match=said):
        EXPERIMENT.validate({"text": text})
