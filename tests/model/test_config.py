"""A config validates its sizes and choices."""

import json
import re

import pytest

from headlight.model.config import ExpertsConfig, TransformerConfig


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_heads": True}, "n_heads (True) must be an integer"),
        ({"n_layers": 0}, "n_layers (0) must be at least 1"),
        ({"n_heads": 6, "d_model": 64}, "n_heads (6) must divide d_model (64)"),
        ({"dropout": 1.0}, "dropout (1.0) must lie in [0, 1)"),
        ({"dropout": float("nan")}, "dropout (nan) must lie in [0, 1)"),
        ({"n_kv_heads": 3}, "n_kv_heads (3) must divide n_heads (4)"),
        ({"norm_epsilon": 0.0}, "norm_epsilon (0.0) must lie in (0, 1)"),
        (
            {"kind": "both"},
            "kind 'both' is unknown; choose one of decoder, encoder, encoder-decoder",
        ),
        (
            {"positional": "relative"},
            "positional 'relative' is unknown; "
            "choose one of sinusoidal, learned, rotary, alibi, none",
        ),
        ({"d_model": 7, "n_heads": 1}, "sinusoidal positions need an even d_model, not 7"),
        (
            {"positional": "rotary", "d_model": 12, "n_heads": 4},
            "rotary positions need an even d_head, not 3",
        ),
        (
            {"moe": ExpertsConfig(n_experts=4, top_k=2, layers=(0, 2))},
            "moe.layers [0, 2] must lie between 0 and 1",
        ),
        (
            {"moe": ExpertsConfig(n_experts=4, top_k=2, layers=(-1,))},
            "moe.layers [-1] must lie between 0 and 1",
        ),
    ],
)
def test_what_cannot_be_built_is_an_error(make_config, changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make_config(**changes)


@pytest.mark.parametrize(
    ("n_experts", "top_k", "message"),
    [
        (1, 1, "n_experts (1) must be at least 2"),
        (4, 0, "top_k (0) must lie between 1 and 4"),
        (4, 5, "top_k (5) must lie between 1 and 4"),
    ],
)
def test_experts_that_cannot_be_chosen_are_an_error(n_experts, top_k, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ExpertsConfig(n_experts=n_experts, top_k=top_k, layers=(0,))


def test_a_config_survives_json(make_config):
    for config in (
        make_config(),
        make_config(moe=None, activation="relu", dropout=0.1),
        make_config(kind="encoder", n_kv_heads=2, norm="rms_norm", norm_place="post"),
    ):
        written = json.dumps(config.to_dict())
        assert TransformerConfig.from_dict(json.loads(written)) == config


def test_an_unknown_key_is_named_beside_the_known(make_config):
    with pytest.raises(ValueError, match=r"^unknown config keys \['n_head'\]; known are \['act"):
        TransformerConfig.from_dict({**make_config().to_dict(), "n_head": 4})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"n_layers": 2.0}, "n_layers"),
        ({"n_kv_heads": 2.0}, "n_kv_heads"),
        ({"moe": 5}, "is missing or of the wrong type"),
        ({"moe": {}}, "layers"),
        ({"moe": {"n_experts": 4, "layers": [0]}}, "top_k"),
        ({"moe": {"n_experts": 4, "top_k": 2, "layers": [0.5]}}, "moe|layers"),
        ({"moe": {"n_experts": 4, "top_k": 2, "layers": [0], "size": 1}}, "size"),
    ],
)
def test_data_of_the_wrong_type_is_a_value_error(make_config, changes, named):
    with pytest.raises(ValueError, match=named):
        TransformerConfig.from_dict({**make_config().to_dict(), **changes})


@pytest.mark.parametrize(
    "name", ["has_embedding_norm", "scales_embedding", "attention_bias", "feed_forward_bias"]
)
def test_a_flag_in_words_is_an_error(make_config, name):
    # Set from behind, because types are checked while tests run, and only then.
    config = make_config()
    object.__setattr__(config, name, "false")
    with pytest.raises(ValueError, match=f"^{name} \\('false'\\) must be true or false$"):
        config.__post_init__()


def test_layers_are_sorted_and_none_is_named_twice():
    assert ExpertsConfig(n_experts=4, top_k=2, layers=(3, 0, 2)).layers == (0, 2, 3)
    with pytest.raises(ValueError, match=r"^moe\.layers \[1, 1\] lists a layer twice$"):
        ExpertsConfig(n_experts=4, top_k=2, layers=(1, 1))


@pytest.mark.parametrize("positional", ["learned", "alibi", "none"])
def test_an_odd_width_is_an_error_only_where_dimensions_go_in_pairs(make_config, positional):
    assert make_config(positional=positional, d_model=9, n_heads=3).d_head == 3
