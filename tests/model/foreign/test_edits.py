"""Edits of a site act in a foreign model as in the models of this project."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.model.generation.sampling import Continuation, Sampling, decode_together
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.tracing import ModelInput, pass_spec, run_batch, tokenize

STREAM = "decoder.layers.0.residual.after"
TEXT = "The cat sat by the dog."


@pytest.mark.parametrize("name", ["gpt2", "llama", "mixtral", "bloom"])
@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "add", "site": STREAM, "value": 0.3, "positions": (1, 7, 8, 9)},
        {"kind": "scale", "site": "decoder.layers.0.self_attention.weights", "value": 0.5},
        {
            "kind": "set",
            "site": "decoder.layers.0.self_attention.values",
            "value": 0.5,
            "positions": (2, 7, 8),
        },
    ],
)
def test_edits_of_generation_are_those_of_the_whole_text(name, served, edit):
    model = served(name)
    tokenized = tokenize(model, TEXT)
    interventions = pass_spec(model.description, interventions=[SiteEdit(**edit)]).interventions
    text = Continuation(
        model.writer(interventions),
        [token.id for token in tokenized.tokens],
        n_tokens=4,
        sampling=Sampling(temperature=0),
        capture=[STREAM],
    )
    written = []
    while not text.is_finished:
        written += decode_together([text])
    tokens = [*tokenized.tokens, *(replace(tokenized.tokens[0], id=token.id) for token in written)]
    spec = pass_spec(
        model.description, capture=[STREAM, "logits"], interventions=[SiteEdit(**edit)]
    )
    (whole,) = run_batch(model, spec, [ModelInput("", tuple(tokens))])
    for index, token in enumerate(written):
        place = len(tokenized.tokens) - 1 + index
        np.testing.assert_allclose(token.row[STREAM], whole[STREAM][place], rtol=0, atol=1e-4)
        expected = torch.from_numpy(whole["logits"][place]).softmax(dim=-1)
        torch.testing.assert_close(token.model_distribution, expected, rtol=0, atol=1e-4)
