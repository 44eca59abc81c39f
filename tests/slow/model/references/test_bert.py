"""BERT: an encoder with learned positions, a norm on its embedding and one after every part."""

import pytest
import torch
from transformers import BertConfig, BertModel

from headlight.model.config import TransformerConfig
from headlight.model.transformer import Transformer

NAMES = {
    r"^embeddings\.word_embeddings": "encoder.embedding.vectors",
    r"^embeddings\.position_embeddings": "encoder.embedding.positions",
    r"^embeddings\.LayerNorm": "encoder.embedding.norm",
    r"^encoder\.layer\.": "encoder.layers.",
    r"attention\.self\.(query|key|value)": r"self_attention.\1_projection",
    r"attention\.output\.dense": "self_attention.output_projection",
    r"attention\.output\.LayerNorm": "attention_norm",
    r"intermediate\.dense": "feed_forward.up_projection",
    r"output\.dense": "feed_forward.down_projection",
    r"output\.LayerNorm": "feed_forward_norm",
}


@pytest.fixture
def reference(redraw):
    model = BertModel(
        BertConfig(
            vocab_size=60,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=48,
            max_position_embeddings=16,
            layer_norm_eps=1e-3,
        ),
        add_pooling_layer=False,
    )
    model.set_attn_implementation("eager")
    redraw(model)
    return model


@pytest.fixture
def model(reference, rename):
    """Ours, with the weights of the reference.

    BERT adds a vector for the first or the second of two texts. There is one text here, so its
    vector goes into every position.
    """
    weights = dict(reference.state_dict())
    types = weights.pop("embeddings.token_type_embeddings.weight")
    positions = "embeddings.position_embeddings.weight"
    weights[positions] = weights[positions] + types[0]
    model = Transformer(
        TransformerConfig(
            kind="encoder",
            n_layers=2,
            n_heads=4,
            d_model=32,
            d_ff=48,
            vocab_size=60,
            max_tokens=16,
            positional="learned",
            norm_place="post",
            norm_epsilon=1e-3,
            has_embedding_norm=True,
            scales_embedding=False,
            attention_bias=True,
        )
    )
    model.load_weights(rename(weights, NAMES))
    return model.eval()


@pytest.mark.parametrize("is_padded", [False, True])
def test_every_state_and_weight_is_berts(
    reference, model, ids, is_token, is_padded, by_layer, assert_agrees
):
    mask = is_token if is_padded else torch.ones_like(is_token)
    with torch.no_grad(), model.capture(["*"]) as captured:
        expected = reference(
            ids, attention_mask=mask.long(), output_attentions=True, output_hidden_states=True
        )
        model(ids, is_token=is_token if is_padded else None)
    embedded, *after = expected.hidden_states
    assert_agrees(
        captured,
        {
            "encoder.embedding.output": embedded,
            **by_layer(after, "encoder", "residual.after"),
            **by_layer(expected.attentions, "encoder", "self_attention.weights"),
            "logits": after[-1] @ reference.embeddings.word_embeddings.weight.T,
        },
    )
