"""From a text to a Trace: what is kept, in which form, and what is refused."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from headlight.model import tracing
from headlight.model.checkpoint.loading import load
from headlight.model.generation.translation import translate
from headlight.model.sites import UnknownSite
from headlight.model.tracing import (
    EmptyText,
    NoTarget,
    TooManyTokens,
    count_elements,
    pass_spec,
    read_ids,
    read_tokens,
    tokenize,
    trace,
)

SENTENCE = "The cat chased the mouse."


@pytest.mark.usefixtures("unchecked")
def test_a_wrong_argument_is_named(checkpoint):
    with pytest.raises(TypeError, match="5 is not a text; pass a string"):
        trace(checkpoint, 5)
    with pytest.raises(TypeError, match=re.escape('load("stories")')):
        trace("stories", SENTENCE)


def test_the_numbers_are_those_of_the_pass(checkpoint):
    traced = trace(checkpoint, SENTENCE, capture=["*"])
    ids = torch.tensor([[token.id for token in traced.tokens]])
    with torch.inference_mode(), checkpoint.model.capture(["*"]) as captured:
        checkpoint.model(ids)
    for site, array in traced.tensors.items():
        tensor = captured[site]
        expected = tensor if array.axes[0] == "position" else tensor[0]
        assert np.array_equal(array.data, expected.numpy()), site


def test_heads_and_layers_narrow_a_trace(checkpoint):
    whole = trace(checkpoint, SENTENCE)
    traced = trace(checkpoint, SENTENCE, layers=np.array([1]), heads=np.array([2, 0]))
    assert traced.heads == (2, 0)
    assert "decoder.embedding.positional" in traced.tensors
    assert not any(".layers.0." in site for site in traced.tensors)
    site = "decoder.layers.1.self_attention.weights"
    np.testing.assert_allclose(
        traced.tensors[site].data, whole.tensors[site].data[[2, 0]], atol=1e-6
    )


def test_one_glob_layer_head_or_position_stands_for_a_list_of_one(checkpoint):
    site = "*.self_attention.weights"
    several = trace(checkpoint, SENTENCE, capture=[site], layers=[1], heads=[2], queries=[3])
    one = trace(checkpoint, SENTENCE, capture=site, layers=1, heads=np.int64(2), queries=3)
    assert one.heads == several.heads == (2,)
    assert list(one.tensors) == list(several.tensors)


@pytest.mark.usefixtures("unchecked")
def test_the_number_of_a_head_is_an_integer(checkpoint):
    with pytest.raises(TypeError, match="integer"):
        trace(checkpoint, SENTENCE, heads=[1.5])


def test_layers_after_the_last_that_is_captured_do_not_run(checkpoint):
    whole = trace(checkpoint, SENTENCE, capture=["*"])
    later = checkpoint.model.decoder.layers[1]

    def fail(*_):
        raise AssertionError("layer 1 runs")

    hook = later.register_forward_pre_hook(fail)
    try:
        first = trace(checkpoint, SENTENCE, capture=["*.queries"], layers=[0], queries=[3])
        with pytest.raises(AssertionError, match="layer 1 runs"):
            trace(checkpoint, SENTENCE, capture=["*.queries", "logits"], layers=[0])
    finally:
        hook.remove()
    site = "decoder.layers.0.self_attention.queries"
    assert np.array_equal(first[site].data, whole[site].data)


def test_what_is_done_to_a_trace_leaves_the_model_alone(checkpoint):
    before = trace(checkpoint, SENTENCE, capture=["logits"]).tensors["logits"].data
    encoding = checkpoint.model.decoder.embedding.encoding.clone()
    for array in trace(checkpoint, SENTENCE, capture=["*"]).tensors.values():
        if array.data.flags.writeable:
            array.data[...] = 7
    assert checkpoint.model.decoder.embedding.encoding.equal(encoding)
    after = trace(checkpoint, SENTENCE, capture=["logits"]).tensors["logits"].data
    assert np.array_equal(after, before)


def test_a_bfloat16_model_gives_float32_arrays(make_folder):
    checkpoint = load(make_folder(), dtype=torch.bfloat16)
    traced = trace(checkpoint, SENTENCE)
    for site, array in traced.tensors.items():
        assert array.data.dtype == (np.int32 if site.endswith("expert_indices") else np.float32)
    weights = traced.tensors["decoder.layers.0.self_attention.weights"].data
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)


def test_the_sites_are_known_before_the_pass(checkpoint):
    requests: list[tuple[Sequence[str] | None, Sequence[int] | None]] = [
        (None, None),
        (["*"], None),
        (["*.weights", "logits"], [1]),
    ]
    for capture, layers in requests:
        traced = trace(checkpoint, SENTENCE, capture=capture, layers=layers)
        found = pass_spec(checkpoint.description, capture=capture, layers=layers).sites
        assert set(found) == set(traced.tensors)
        everything = [site.name for site in checkpoint.description.sites]
        assert list(found) == sorted(found, key=everything.index)


@pytest.mark.parametrize("text", ["", " ", "\n\t  ", "\u3000"])
def test_a_blank_text_is_an_error(checkpoint, text):
    with pytest.raises(EmptyText, match=r"^the text is empty; type at least one word$"):
        trace(checkpoint, text)


def test_the_longest_text_is_read_and_one_token_more_is_an_error(checkpoint):
    limit = checkpoint.config.max_tokens
    longest = "Q" * (limit - 1)
    assert len(read_tokens(checkpoint, longest)) == limit
    assert len(trace(checkpoint, longest, capture=["logits"]).tokens) == limit
    message = f"the text has {limit + 1} tokens, but the model reads at most {limit}"
    with pytest.raises(TooManyTokens, match=f"^{re.escape(message)}$") as refused:
        trace(checkpoint, longest + "Q")
    assert (refused.value.actual, refused.value.limit) == (limit + 1, limit)


def test_ids_that_are_not_the_tokens_of_their_text_are_spelled_one_by_one(checkpoint):
    tokenizer = checkpoint.tokenizer
    id_of = {tokenizer.text_of(token): token for token in range(tokenizer.vocab_size)}
    pieces = ["t", "h", "e", "-", "d", tokenizer.text_of(tokenizer.start_id), "o", "g", " ", "."]
    text, tokens = read_ids(checkpoint, [id_of[piece] for piece in pieces])
    assert text == "".join(pieces)
    assert [token.text for token in tokens] == pieces
    assert [text[token.start : token.end] for token in tokens] == pieces
    assert [token.word for token in tokens] == [0, 0, 0, 1, 2, None, 3, 3, 4, 5]
    assert [token.is_special for token in tokens] == [piece == pieces[5] for piece in pieces]


def test_a_map_has_at_least_one_bin(checkpoint):
    traced = trace(checkpoint, SENTENCE, resolution=1, layers=0)
    path = "decoder.layers.0.self_attention"
    shapes = {site: array.data.shape for site, array in traced.tensors.items()}
    assert shapes == {f"{path}.mean_map": (4, 1, 1), f"{path}.max_map": (4, 1, 1)}
    with pytest.raises(ValueError, match=r"resolution \(0\) must be at least 1"):
        trace(checkpoint, SENTENCE, resolution=0)


@pytest.mark.usefixtures("unchecked")
def test_a_pass_needs_something_to_read(checkpoint):
    with pytest.raises(ValueError, match="give a text, ids or messages"):
        tokenize(checkpoint, None)


def test_maps_of_a_model_without_observed_attention_are_an_error(checkpoint):
    description = replace(checkpoint.description, attentions=())
    with pytest.raises(UnknownSite, match="no attention of the model 'tiny' has maps"):
        pass_spec(description, resolution=4)


@pytest.mark.parametrize("resolution", range(2, 8))
def test_the_elements_of_maps_and_rows_are_counted_before_a_pass(checkpoint, resolution):
    read = tokenize(checkpoint, SENTENCE)
    spec = pass_spec(checkpoint.description, resolution=resolution, queries=[1, 4])
    traced = trace(checkpoint, SENTENCE, resolution=resolution, queries=[1, 4])
    n_elements = sum(array.data.size for array in traced.tensors.values())
    assert count_elements(checkpoint.description, spec, read) == n_elements


def test_layers_that_leave_nothing_of_the_capture_are_an_error(checkpoint):
    with pytest.raises(UnknownSite, match=r"no site of \['decoder.layers.0.\*'\] is in layers"):
        trace(checkpoint, SENTENCE, capture=["decoder.layers.0.*"], layers=[1])


# --- an encoder, and an encoder with a decoder ----------------------------------------------------

TARGET = "Le chat."


@pytest.fixture(scope="module")
def translator(make_checkpoint):
    return make_checkpoint(kind="encoder-decoder", moe=None)


@pytest.fixture(scope="module")
def encoder(make_checkpoint):
    return make_checkpoint(kind="encoder", moe=None)


def test_the_default_of_a_translator_has_all_its_attention(translator):
    assert list(trace(translator, SENTENCE, TARGET).tensors) == [
        "encoder.embedding.positional",
        "encoder.layers.0.self_attention.weights",
        "encoder.layers.1.self_attention.weights",
        "decoder.embedding.positional",
        "decoder.layers.0.self_attention.weights",
        "decoder.layers.0.cross_attention.weights",
        "decoder.layers.1.self_attention.weights",
        "decoder.layers.1.cross_attention.weights",
    ]


def test_a_target_is_read_as_it_was_sent(translator):
    traced = trace(translator, SENTENCE, TARGET, capture=["logits"])
    assert traced.target == TARGET
    assert traced.target_tokens == tuple(translator.tokenizer.encode(TARGET))
    texts = (traced.tokens, traced.target_tokens)
    ids = [torch.tensor([[token.id for token in tokens]]) for tokens in texts]
    with torch.inference_mode():
        expected = translator.model(*ids).logits[0]
    np.testing.assert_allclose(traced.tensors["logits"].data, expected.numpy(), atol=1e-5)
    assert set(traced.timings) == {"tokenize", "forward"}


def test_the_milliseconds_of_each_step_are_measured(translator, monkeypatch):
    monkeypatch.setattr(tracing, "perf_counter", itertools.count(7.0, 0.25).__next__)
    traced = trace(translator, SENTENCE)
    assert traced.timings == {"tokenize": 250, "translate": 250, "forward": 250}


def test_the_tokens_of_text_and_target_count_together(translator):
    read = tokenize(translator, SENTENCE, TARGET)
    assert read.n_tokens == len(read.tokens) + len(read.target_tokens or ()) > len(read.tokens)


def test_without_a_target_a_translator_reads_its_own_translation(translator):
    tokenizer = translator.tokenizer
    (ids,) = translate(
        translator.model,
        [[token.id for token in tokenizer.encode(SENTENCE)]],
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
    )
    own = trace(translator, SENTENCE, capture=["*"])
    assert own.target == tokenizer.decode(ids)
    assert own.target
    assert own.target_tokens is not None
    assert len(own.target_tokens) <= translator.config.max_tokens
    assert own.target_tokens == tuple(tokenizer.encode(own.target)[: translator.config.max_tokens])
    if own.target_tokens == tuple(tokenizer.encode(own.target)):
        sent = trace(translator, SENTENCE, own.target, capture=["*"])
        assert sent.target_tokens == own.target_tokens
        for site, array in own.tensors.items():
            assert np.array_equal(array.data, sent.tensors[site].data), site


def test_a_translation_of_nothing_is_the_start_token(translator):
    def end(logits):
        logits[..., translator.tokenizer.end_id] += 100
        return logits

    with translator.model.edit("logits", end):
        traced = trace(translator, SENTENCE)
    assert traced.target == ""
    assert [token.text for token in traced.target_tokens or ()] == ["<s>"]


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_a_target_for_a_model_of_one_text_is_an_error(make_checkpoint, kind):
    message = "the model 'tiny' reads one text; leave the target out"
    with pytest.raises(NoTarget, match=f"^{re.escape(message)}$"):
        trace(make_checkpoint(kind=kind, moe=None), SENTENCE, TARGET)


@pytest.mark.parametrize("heads", [None, [1], [3, 0, 2]])
@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_the_elements_counted_before_a_pass_are_those_of_its_arrays(make_checkpoint, kind, heads):
    checkpoint = make_checkpoint(kind=kind)
    target = TARGET if kind == "encoder-decoder" else None
    read = tokenize(checkpoint, SENTENCE, target)
    traced = trace(checkpoint, SENTENCE, target, capture=["*"], heads=heads)
    for site, array in traced.tensors.items():
        spec = pass_spec(checkpoint.description, capture=[site], heads=heads)
        assert count_elements(checkpoint.description, spec, read) == array.data.size, site
    spec = pass_spec(checkpoint.description, capture=["*"], heads=heads)
    found = sum(array.data.size for array in traced.tensors.values())
    assert count_elements(checkpoint.description, spec, read) == found
