"""The trained matrices of foreign models make their queries, keys, values and output."""

import numpy as np
import pytest
import torch

from headlight.model.tracing import trace

TEXT = "The cat sat by the dog."


def test_weights_have_the_sizes_that_they_announce(model):
    weights = model.weights()
    for weight in weights.values():
        assert weight.read().shape == weight.shape
    for path in model.named.projections:
        np.testing.assert_array_equal(
            weights[f"{path}.W_O"].read(), model.output_weights(path).data
        )


def test_queries_keys_and_values_are_the_stream_times_their_matrices(model):
    traced = trace(model, TEXT, "The dog sat." if model.task == "seq2seq" else None, capture=["*"])
    weights, is_post = model.weights(), model.config.norm_place == "post"
    for facts in model.description.attentions:
        layer, _, kind = facts.path.rpartition(".")
        norm = "cross_attention_norm" if kind == "cross_attention" else "attention_norm"
        given = traced[f"{layer}.residual.before" if is_post else f"{layer}.{norm}"]
        for letter, name in (("Q", "queries"), ("K", "keys"), ("V", "values")):
            if kind == "cross_attention" and letter != "Q":
                continue  # of the encoder's output
            made = given @ weights[f"{facts.path}.W_{letter}"].read()
            if (bias := weights.get(f"{facts.path}.b_{letter}")) is not None:
                made = made + bias.read()[:, None]
            expected = traced[f"{facts.path}.{name}"]
            limit = 1e-5 * float(np.abs(expected).max())
            np.testing.assert_allclose(made, expected, rtol=0, atol=limit, err_msg=name)


def test_tables_are_those_of_the_model(served):
    weights = served("t5").weights()
    shared = served("t5").module.shared.weight.numpy()
    for name in ("encoder.embedding.W_E", "decoder.embedding.W_E"):
        np.testing.assert_array_equal(weights[name].read(), shared)
    positions = served("gpt2").weights()["decoder.embedding.W_pos"].read()
    assert torch.equal(torch.from_numpy(positions), served("gpt2").module.transformer.wpe.weight)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "t5"])
def test_a_model_of_plain_layers_leaves_nothing_out(name, served):
    # BERT's guesses pass through a network of their own, so they are no sum over its parts.
    left = {"linear_exit"} if name == "bert" else set()
    assert set(served(name).description.omitted) == left


def test_both_norms_of_a_part_are_sites(served):
    traced = trace(served("gemma2"), TEXT, capture=["*_norm", "*.residual.*"])
    written = traced["decoder.layers.0.attention_output_norm"]
    before, middle = (traced[f"decoder.layers.0.residual.{name}"] for name in ("before", "middle"))
    np.testing.assert_allclose(before + written, middle, rtol=0, atol=1e-5)
