"""Weights that others computed are shown in one line, or refused in one sentence."""

import base64
import gzip
import json
import re

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import headlight
from headlight.client import read_trace
from headlight.own_tensors import _spelled

TOKENS = ["[CLS]", "The", "cat", "##s", "’", "sleep", "[SEP]"]


def weights_of(*shape, causal=False, seed=0):
    scores = np.random.default_rng(seed).normal(size=shape).astype(np.float32) * 2
    if causal:
        scores = np.where(np.tri(shape[-2], shape[-1], dtype=bool), scores, -np.inf)
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def held(page):
    """Return the trace in a page."""
    (packed,) = re.findall(r'id="answers"[^>]*>([^<]+)<', page.html)
    content = gzip.decompress(base64.b64decode(packed))
    n = int.from_bytes(content[:4], "little")
    header = json.loads(content[4 : 4 + n])
    planes = np.frombuffer(content[4 + n :], np.uint8).reshape(4, -1)
    answers = planes.T.tobytes()
    return header["card"], read_trace(answers[header["whole"]["start"] : header["whole"]["end"]])


WEIGHTS = weights_of(2, 3, 7, 7)
BY_LAYER = tuple(torch.tensor(each)[None] for each in WEIGHTS)


@pytest.mark.parametrize(
    "attention",
    [
        WEIGHTS,
        torch.tensor(WEIGHTS, requires_grad=True),
        WEIGHTS[:, None],
        WEIGHTS.tolist(),
        BY_LAYER,
        list(WEIGHTS),
        {f"blocks.{n}.attn.hook_pattern": BY_LAYER[n] for n in (1, 0)} | {"blocks.0.hook_z": 1},
    ],
    ids=["numpy", "torch", "batch", "lists", "transformers", "layers", "transformer_lens"],
)
def test_every_form_gives_the_same_page(attention):
    card, trace = held(headlight.show(TOKENS, attention))
    assert (card["kind"], card["n_layers"], card["n_heads"]) == ("encoder", 2, 3)
    for layer in range(2):
        site = f"encoder.layers.{layer}.self_attention.weights"
        assert abs(trace[site] - WEIGHTS[layer]).max() < 1e-6
    assert trace.text == "The cats ’ sleep"


def test_one_layer_one_head_a_file_and_a_decoder(tmp_path):
    assert held(headlight.show(TOKENS, WEIGHTS[0]))[0]["n_heads"] == 3
    assert held(headlight.show(TOKENS, WEIGHTS[0, 0]))[0]["n_heads"] == 1
    path = tmp_path / "weights.safetensors"
    save_file({f"layer.{n}": weights_of(3, 7, 7, seed=n) for n in range(11)}, path)
    card, trace = held(headlight.show(TOKENS, path))
    assert card["n_layers"] == 11
    last = trace["encoder.layers.10.self_attention.weights"]
    assert abs(last - weights_of(3, 7, 7, seed=10)).max() < 1e-6
    assert held(headlight.show(TOKENS, weights_of(1, 2, 7, 7, causal=True)))[0]["kind"] == "decoder"


def test_an_encoder_decoder_has_three_attentions():
    page = headlight.show(
        TOKENS,
        WEIGHTS,
        target_tokens=["Die", "Katzen", "schlafen"],
        target_attention=weights_of(2, 3, 3, 3, causal=True),
        cross_attention=weights_of(2, 3, 3, 7),
    )
    card, trace = held(page)
    assert card["kind"] == "encoder-decoder"
    assert trace["decoder.layers.1.cross_attention.weights"].shape == (3, 3, 7)


@pytest.mark.parametrize(
    ("tokens", "text", "words"),
    [
        (["Ġthe", "Ġcaf", "Ã©", "s", "."], "the cafés.", [0, 1, 1, 1, 2]),
        (["<s>", "▁the", "▁cat", "s"], "the cats", [None, 0, 1, 1]),
        (["The", " cat", "s"], "The cats", [0, 1, 1]),
        (["a", "b"], "a b", [0, 1]),
    ],
)
def test_words_and_places_are_worked_out(tokens, text, words):
    spelled, read = _spelled(tokens)
    assert spelled == text
    assert [token.word for token in read] == words
    for token in read:
        assert token.is_special or text[token.start : token.end] == token.text.strip()


@pytest.mark.parametrize(
    ("attention", "says"),
    [
        (WEIGHTS[..., :5], "layer 0 has weights of 7 queries and 5 keys, but there are 7 and 7"),
        (WEIGHTS * 0.5, "layer 0, head 0, row 0 sums to 0.5; the weights of a row sum to 1"),
        (np.log(WEIGHTS), "these are scores; give them after the softmax"),
        (np.where(WEIGHTS > 0.5, np.nan, WEIGHTS), "holds NaN"),
        (np.ones(7), r"these weights have the shape \(7,\)"),
        (np.stack([WEIGHTS, WEIGHTS], 1), r"of one text .* the shape \(2, 2, 3, 7, 7\)"),
        ((None, None), "load the model with attn_implementation='eager'"),
        (None, "there are no weights"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(attention, says):
    with pytest.raises(ValueError, match=says):
        headlight.show(TOKENS, attention)


def test_wrong_things_are_refused(tmp_path):
    with pytest.raises(TypeError, match="an array or a list"):
        headlight.show(TOKENS, [[[1.0, 0.0], [1.0]]])
    with pytest.raises(ValueError, match="no safetensors file"):
        headlight.show(TOKENS, tmp_path / "none.safetensors")
    with pytest.raises(ValueError, match="no tokens"):
        headlight.show([], WEIGHTS)
    with pytest.raises(ValueError, match="target_tokens"):
        headlight.show(TOKENS, WEIGHTS, cross_attention=WEIGHTS)


def test_cross_attention_alone_is_shown():
    cross = weights_of(1, 2, 3, 4)
    card, trace = held(headlight.show("abcd", target_tokens="xyz", cross_attention=cross))
    assert list(trace) == ["decoder.layers.0.cross_attention.weights"]
    assert (card["kind"], card["n_heads"]) == ("encoder-decoder", 2)
    links = trace.analyses["alignment"]["weights"]
    assert abs(links - cross[0].mean(0)).max() < 1e-6
    assert "alignment" in card["analyses"]
