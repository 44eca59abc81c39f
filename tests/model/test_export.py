"""A model as an ONNX graph: its numbers and edits are those of a pass, and refusals say why."""

import json
import sys

import numpy as np
import onnxruntime
import pytest
import torch

from headlight.model.config import ExpertsConfig
from headlight.model.export import ExportError, Pass, export_model, neutral_inputs
from headlight.model.tracing import tokenize

EXPERTS = ExpertsConfig(n_experts=4, top_k=2, layers=(0,))
TARGET = "Le chat a dit « non » et s’est assis."
TEXT = "The cat’s dog said “no” and sat."
ATTENTION = "decoder.layers.0.self_attention"


@pytest.fixture(scope="module", params=["decoder", "encoder-decoder"])
def exported(make_checkpoint, request):
    """Return a model of one layer, its graph in ONNX Runtime, and its manifest."""
    moe = EXPERTS if request.param == "decoder" else None
    checkpoint = make_checkpoint(kind=request.param, n_layers=1, moe=moe)
    graph, manifest = export_model(checkpoint)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return checkpoint, onnxruntime.InferenceSession(graph, options), manifest


def read(checkpoint):
    takes_target = checkpoint.config.kind == "encoder-decoder"
    return tokenize(checkpoint, TEXT, TARGET if takes_target else None)


def computed(exported, **edits):
    """Return the outputs of the graph, and those of the module in PyTorch, for edited inputs."""
    checkpoint, session, _ = exported
    inputs = neutral_inputs(checkpoint, read(checkpoint)) | edits
    with torch.inference_mode():
        expected = {name: each.numpy() for name, each in Pass(checkpoint).eval()(inputs).items()}
    names = [output.name for output in session.get_outputs()]
    feeds = {each.name: inputs[each.name].numpy() for each in session.get_inputs()}
    return dict(zip(names, session.run(names, feeds), strict=True)), expected


@pytest.mark.slow
def test_a_graph_has_the_numbers_of_a_pass(exported):
    checkpoint, session, manifest = exported
    outputs, expected = computed(exported)
    assert outputs.keys() == expected.keys() == set(manifest["axes"])
    for name, numbers in expected.items():
        np.testing.assert_allclose(outputs[name], numbers, atol=2e-4, err_msg=name)
    reading = read(checkpoint)
    ids, target = (
        [each.id for each in some or ()] for some in (reading.tokens, reading.target_tokens)
    )
    captured = checkpoint.read([ids], [target] if target else None, sites=["logits"])
    np.testing.assert_allclose(outputs["logits"], captured["logits"][0], atol=2e-4)
    kept = session.get_modelmeta().custom_metadata_map
    assert {name: json.loads(value) for name, value in kept.items()} == manifest


@pytest.mark.slow
def test_a_graph_takes_heads_experts_and_rows_of_weights(exported):
    _, _, manifest = exported
    plain, _ = computed(exported)
    at, sizes = manifest["attentions"].index(ATTENTION), manifest["sizes"]
    n_keys, n_attentions = len(plain["logits"]), len(manifest["attentions"])
    experts = torch.ones(len(manifest["networks"]), sizes["n_experts"])
    experts[:, 0] = 0
    row = torch.eye(n_keys)[:1]
    changes = [
        ({"heads": torch.zeros(1, n_attentions, sizes["n_heads"])}, "context"),
        ({"set_at": torch.tensor([[at, 1, 2]]), "set_to": row}, "weights"),
        ({"experts": experts}, None),
    ]
    for edits, site in changes if sizes["n_experts"] > 1 else changes[:2]:
        outputs, expected = computed(exported, **edits)
        assert np.abs(outputs["logits"] - plain["logits"]).max() > 1e-3, edits
        np.testing.assert_allclose(outputs["logits"], expected["logits"], atol=2e-4)
        if site == "context":
            assert not outputs[f"{ATTENTION}.context"].any()
        if site == "weights":
            np.testing.assert_array_equal(outputs[f"{ATTENTION}.weights"][1, 2], row[0])


def test_what_cannot_be_exported_says_why(make_checkpoint, monkeypatch):
    with pytest.raises(ExportError, match="rates texts"):
        export_model(make_checkpoint(has_reward=True))
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match=r"pip install 'headlight-viz\[onnx\]'"):
        export_model(make_checkpoint())
