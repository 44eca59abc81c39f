"""BERT: an encoder with learned positions, a norm on its embedding and one after every part."""

import pytest
from transformers import BertConfig, BertModel

from tests.model.references.comparison import (
    assert_agrees,
    by_layer,
    model_of,
    read_both,
    redrawn,
    renamed,
)

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
THEIRS = BertConfig(
    vocab_size=60,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=16,
    layer_norm_eps=1e-3,
)


def copy(reference):
    """Return our model with the weights of the reference.

    BERT adds a vector for the first or the second of two texts. There is one text here, so its
    vector goes into every position.
    """
    weights = dict(reference.state_dict())
    types = weights.pop("embeddings.token_type_embeddings.weight")
    positions = "embeddings.position_embeddings.weight"
    weights[positions] = weights[positions] + types[0]
    return model_of(
        renamed(weights, NAMES),
        kind="encoder",
        positional="learned",
        norm_place="post",
        has_embedding_norm=True,
    )


@pytest.mark.parametrize("is_padded", [False, True])
def test_every_state_and_weight_is_berts(is_padded):
    reference = redrawn(BertModel(THEIRS, add_pooling_layer=False))
    expected, captured = read_both(reference, copy(reference), is_padded=is_padded)
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
