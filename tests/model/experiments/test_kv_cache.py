"""Bytes and windows of a cache, against the tensors that real models keep and see."""

import pytest
import torch
from pydantic import ValidationError
from transformers import MistralConfig, MistralForCausalLM

from headlight.model.experiments.kv_cache import EXPERIMENT

SHAPE = {"n_heads": 4, "n_kv_heads": 2, "n_layers": 3, "d_head": 8, "number_bytes": 4}
SHAPE |= {"n_tokens": 12, "window": 5, "n_sinks": 0}
RESULT = EXPERIMENT.result(SHAPE)


@pytest.fixture(scope="module")
def mistral():
    config = MistralConfig(
        vocab_size=20,
        hidden_size=32,
        intermediate_size=16,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=5,
        attn_implementation="eager",
    )
    return MistralForCausalLM(config).eval()


def test_the_bytes_are_those_of_the_tensors_that_transformers_keeps(mistral):
    with torch.no_grad():
        cache = mistral(torch.arange(4)[None], use_cache=True).past_key_values
    kept = sum(t.nbytes for layer in cache.layers for t in (layer.keys, layer.values))
    assert RESULT["grouped_bytes"].data[3] == kept == RESULT["full_bytes"].data[3] / 2
    assert RESULT["windowed_bytes"].data[3] == kept
    assert RESULT["windowed_bytes"].data[-1] * 12 == RESULT["grouped_bytes"].data[-1] * 5


def test_the_window_is_what_transformers_lets_a_query_see(mistral):
    with torch.no_grad():
        weights = mistral(torch.arange(12)[None], output_attentions=True).attentions[0][0, 0]
    assert ((weights > 0).numpy() == (RESULT["sees"].data == 2)).all()


def test_sinks_stay_in_sight_and_groups_are_whole():
    sees = EXPERIMENT.result({**SHAPE, "n_sinks": 2})["sees"].data
    assert sees[11].tolist() == [1, 1, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2]
    assert sees[1].tolist() == [2, 2, *[0] * 10]
    assert RESULT["shares"].data.tolist() == [[True, False]] * 2 + [[False, True]] * 2
    with pytest.raises(ValidationError, match="4 heads do not form 3 groups"):
        EXPERIMENT.validate({**SHAPE, "n_kv_heads": 3})


def test_a_cached_step_multiplies_one_token():
    result = EXPERIMENT.result({"n_heads": 2, "n_kv_heads": 1, "d_head": 4})
    # Step 3: three tokens through four 8 × 8 matrices, 3 × 3 scores and as many weighted values.
    assert result["recomputed"].data[2] == 3 * 4 * 64 + 2 * 9 * 8
    assert result["cached"].data[2] == 4 * 64 + 2 * 3 * 8
