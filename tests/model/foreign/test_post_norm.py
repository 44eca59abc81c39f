"""A label of a model that normalises its stream is a sum over its parts, recomputed by hooks."""

import inspect
from itertools import chain

import numpy as np
import pytest
import torch
from torch import nn

from headlight.analyses.analysis_registry import available
from headlight.model.foreign.live import load_live
from tests.model.foreign.test_outputs import PAIR, TEXT, analyse, make, make_tokenizer, read
from tests.trained_traits import MASSIVE, trained_like

KINDS = {
    "Bert": ("attention.output.dense", lambda m, x: m.classifier(m.bert.pooler(x))),
    "Roberta": ("attention.output.dense", lambda m, x: m.classifier(x)),
    "Electra": ("attention.output.dense", lambda m, x: m.classifier(x)),
    "DistilBert": (
        "attention.out_lin",
        lambda m, x: m.classifier(m.pre_classifier(x[:, 0]).relu()),
    ),
}
HEADS = ["ForSequenceClassification", "ForTokenClassification"]
CASES = [
    pytest.param(kind, head, traits, marks=[] if kind in ("Bert", "DistilBert") else slow)
    for slow in [pytest.mark.slow]
    for kind in KINDS
    for head in HEADS
    for traits in ("random", "trained")
]


def labelling(kind, head, traits):
    """Return a model of three labels, served, and the library's own."""
    model = make(kind + head, num_labels=3)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            nn.init.normal_(parameter, mean=float(parameter.detach().mean()), std=0.2)
    if traits == "trained":
        model = trained_like(kind, "label" if "Sequence" in head else "token_label", model)
    return load_live(model, make_tokenizer()), model


def frozen_share(model, kind, head, at, labels):
    """Return what heads (layer, head) and networks (layer) add, pushed forward through the norms.

    The library's own modules run; hooks keep what each norm and each projection is given.
    """
    of_output, classify = KINDS[kind]
    inputs = dict(make_tokenizer()(TEXT, PAIR, return_tensors="pt"))
    if "token_type_ids" not in inspect.signature(model.forward).parameters:
        del inputs["token_type_ids"]
    layers = next(m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == 2)
    norms = [[m for m in layer.modules() if isinstance(m, nn.LayerNorm)] for layer in layers]
    outputs = [layer.get_submodule(of_output) for layer in layers]
    given = {}

    def keep(module, args, out):
        given[module] = args[0].detach().double(), out.detach().double()

    handles = [m.register_forward_hook(keep) for m in [*chain(*norms), *outputs]]
    with torch.no_grad():
        logits = model(**inputs).logits[0].double()
    for handle in handles:
        handle.remove()
    difference = logits if logits.ndim == 1 else logits[at]
    model = model.double()
    last = given[norms[-1][1]][1][:, at : at + 1]
    read_row = model.classifier if "Token" in head else lambda x: classify(model, x)
    slope = torch.autograd.functional.jacobian(read_row, last)
    slope = slope.reshape(-1, 3, last.shape[-1])[0]
    direction = slope[labels[0]] - slope[labels[1]]

    def pushed(vector, after):
        for norm in after:
            spread = (given[norm][0][0, at].var(correction=0) + norm.eps).sqrt()
            vector = (vector - vector.mean()) / spread * norm.weight.double()
        return float(direction @ vector)

    heads, networks = np.zeros((2, 4)), np.zeros(2)
    with torch.no_grad():
        for layer, ((first, second), output) in enumerate(zip(norms, outputs, strict=True)):
            later = list(chain(*norms[layer + 1 :]))
            for each in range(4):
                context = torch.zeros(32, dtype=torch.float64)
                part = slice(8 * each, 8 * each + 8)
                context[part] = given[output][0][0, at, part]
                heads[layer, each] = pushed(output.weight.double() @ context, norms[layer] + later)
            written = given[second][0][0, at] - given[first][1][0, at]
            networks[layer] = pushed(written, [second, *later])
    return heads, networks, float(difference[labels[0]] - difference[labels[1]])


@pytest.mark.parametrize(("kind", "head", "traits"), CASES)
def test_each_part_is_what_its_write_becomes_behind_the_norms(kind, head, traits):
    served, model = labelling(kind, head, traits)
    assert served.config.norm_place == "post"
    assert {"logit_attribution", "attention_thread"} <= set(available(served.description))
    traced = read(served, TEXT, PAIR)
    result = analyse("logit_attribution", served, traced)
    at = result.metadata["position"]
    labels = [result.metadata[name]["id"] for name in ("token", "against")]
    heads, networks, difference = frozen_share(model, kind, head, at, labels)
    scale = max(1.0, abs(heads).max(), abs(networks).max())
    arrays = {name: array.data for name, array in result.arrays.items()}
    np.testing.assert_allclose(arrays["self_attention.heads"], heads, atol=2e-5 * scale)
    np.testing.assert_allclose(arrays["feed_forward"], networks, atol=2e-5 * scale)
    keys = arrays["self_attention.keys"].sum(axis=-1)
    np.testing.assert_allclose(keys, arrays["self_attention.heads"], atol=2e-5 * scale)
    assert arrays["parts"].sum() == pytest.approx(difference, abs=2e-5 * scale)
    remainder = dict(zip(result.metadata["part_names"], arrays["parts"], strict=True))["remainder"]
    if head == "ForTokenClassification":
        assert abs(remainder) < 2e-5 * scale
    if traits == "trained":
        stream = np.abs(traced["encoder.layers.1.residual.after"])
        assert stream.max() == stream[:, MASSIVE].max() > 20 * np.median(stream)
