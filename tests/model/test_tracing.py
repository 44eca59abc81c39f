"""From a text to a Trace: what is kept, in which form, and what is refused."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch

from model.checkpoint import Checkpoint, load
from model.sites import UnknownHead, UnknownLayer, UnknownSite
from model.tracing import EmptyText, TooManyTokens, read_tokens, select_sites, trace

SENTENCE = "The cat chased the mouse."
MakeCheckpoint = Callable[..., Checkpoint]


def test_the_default_is_attention_positions_and_routing(checkpoint: Checkpoint) -> None:
    assert list(trace(checkpoint, SENTENCE).tensors) == [
        "decoder.embedding.positional",
        "decoder.layers.0.self_attention.weights",
        "decoder.layers.1.self_attention.weights",
        "decoder.layers.1.experts.router_probs",
        "decoder.layers.1.experts.expert_indices",
        "decoder.layers.1.experts.expert_weights",
    ]


def test_a_dense_model_has_no_routing_in_its_default(make_checkpoint: MakeCheckpoint) -> None:
    dense = make_checkpoint(moe=None)
    assert not any("experts" in site for site in trace(dense, SENTENCE).tensors)


def test_arrays_are_named_float32_or_int32_without_a_batch_axis(checkpoint: Checkpoint) -> None:
    traced = trace(checkpoint, SENTENCE, capture=["*"])
    n_tokens = len(traced.tokens)
    size = {
        "query": n_tokens,
        "key": n_tokens,
        "position": n_tokens,
        "head": 4,
        "d_model": 32,
        "d_head": 8,
        "d_ff": 48,
        "expert": 4,
        "top_k": 2,
        "vocab": checkpoint.config.vocab_size,
    }
    assert set(traced.tensors) == {site.name for site in checkpoint.description.sites}
    for site, array in traced.tensors.items():
        assert array.data.shape == tuple(size[axis] for axis in array.axes), site
        assert array.data.dtype == (np.int32 if site.endswith("expert_indices") else np.float32)
    weights = traced.tensors["decoder.layers.0.self_attention.weights"]
    assert weights.axes == ("head", "query", "key")


def test_the_numbers_are_those_of_the_pass(checkpoint: Checkpoint) -> None:
    traced = trace(checkpoint, SENTENCE, capture=["*"])
    ids = torch.tensor([[token.id for token in traced.tokens]])
    with torch.inference_mode(), checkpoint.model.capture(["*"]) as captured:
        checkpoint.model(ids)
    for site, array in traced.tensors.items():
        tensor = captured[site]
        expected = tensor if array.axes[0] == "position" else tensor[0]
        assert np.array_equal(array.data, expected.numpy()), site


def test_a_trace_says_what_was_read_by_which_model(checkpoint: Checkpoint) -> None:
    traced = trace(checkpoint, SENTENCE)
    assert traced.model == "tiny"
    assert traced.revision == checkpoint.description.revision
    assert traced.text == SENTENCE
    assert traced.tokens == tuple(checkpoint.tokenizer.encode(SENTENCE))
    assert traced.tokens[0].is_special
    assert traced.tokens[0].id == checkpoint.tokenizer.start_id
    assert traced.target_tokens is None
    assert traced.heads is None
    assert set(traced.timings) == {"tokenize", "forward"}
    assert all(milliseconds > 0 for milliseconds in traced.timings.values())


def test_heads_and_layers_narrow_a_trace(checkpoint: Checkpoint) -> None:
    whole = trace(checkpoint, SENTENCE)
    traced = trace(checkpoint, SENTENCE, layers=[1], heads=[2, 0])
    assert traced.heads == (2, 0)
    assert "decoder.embedding.positional" in traced.tensors
    assert not any(".layers.0." in site for site in traced.tensors)
    site = "decoder.layers.1.self_attention.weights"
    np.testing.assert_allclose(
        traced.tensors[site].data, whole.tensors[site].data[[2, 0]], atol=1e-6
    )


def test_the_same_text_gives_the_same_trace(checkpoint: Checkpoint) -> None:
    first, second = (trace(checkpoint, SENTENCE, capture=["*"]) for _ in range(2))
    for site, array in first.tensors.items():
        assert np.array_equal(array.data, second.tensors[site].data), site


def test_what_is_done_to_a_trace_leaves_the_model_alone(checkpoint: Checkpoint) -> None:
    before = trace(checkpoint, SENTENCE, capture=["logits"]).tensors["logits"].data
    encoding = checkpoint.model.decoder.embedding.encoding.clone()
    for array in trace(checkpoint, SENTENCE, capture=["*"]).tensors.values():
        if array.data.flags.writeable:
            array.data[...] = 7
    assert checkpoint.model.decoder.embedding.encoding.equal(encoding)
    after = trace(checkpoint, SENTENCE, capture=["logits"]).tensors["logits"].data
    assert np.array_equal(after, before)


def test_a_bfloat16_model_gives_float32_arrays(make_folder: Callable[..., object]) -> None:
    checkpoint = load(make_folder(), dtype=torch.bfloat16)
    traced = trace(checkpoint, SENTENCE)
    for site, array in traced.tensors.items():
        assert array.data.dtype == (np.int32 if site.endswith("expert_indices") else np.float32)
    weights = traced.tensors["decoder.layers.0.self_attention.weights"].data
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)


def test_the_sites_are_known_before_the_pass(checkpoint: Checkpoint) -> None:
    requests: list[tuple[Sequence[str] | None, Sequence[int] | None]] = [
        (None, None),
        (["*"], None),
        (["*.weights", "logits"], [1]),
    ]
    for capture, layers in requests:
        traced = trace(checkpoint, SENTENCE, capture=capture, layers=layers)
        assert select_sites(checkpoint, capture, layers) == sorted(
            traced.tensors, key=select_sites(checkpoint, ["*"]).index
        )


@pytest.mark.parametrize("text", ["", " ", "\n\t  ", "\u3000"])
def test_a_blank_text_is_refused(checkpoint: Checkpoint, text: str) -> None:
    with pytest.raises(EmptyText, match=r"^the text is empty; type at least one word$"):
        trace(checkpoint, text)


def test_the_longest_text_is_read_and_one_token_more_is_refused(checkpoint: Checkpoint) -> None:
    limit = checkpoint.config.max_tokens
    longest = "Q" * (limit - 1)
    assert len(read_tokens(checkpoint, longest)) == limit
    assert len(trace(checkpoint, longest, capture=["logits"]).tokens) == limit
    message = f"the text has {limit + 1} tokens, but the model reads at most {limit}"
    with pytest.raises(TooManyTokens, match=f"^{re.escape(message)}$") as refused:
        trace(checkpoint, longest + "Q")
    assert (refused.value.actual, refused.value.limit) == (limit + 1, limit)


def test_a_lone_surrogate_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(ValueError, match=r"^character 4 is a lone surrogate \(U\+D83D\)"):
        trace(checkpoint, "cat \ud83d")


def test_unknown_names_are_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(UnknownSite, match=r"did you mean 'logits'\?$"):
        trace(checkpoint, SENTENCE, capture=["logit"])
    with pytest.raises(UnknownLayer, match=r"^there is no layer 7; the layers are 0 to 1$"):
        trace(checkpoint, SENTENCE, layers=[7])
    with pytest.raises(UnknownHead, match=r"^there is no head 9; the heads are 0 to 3$"):
        trace(checkpoint, SENTENCE, heads=[9])
    with pytest.raises(UnknownHead, match=r"^heads \[1, 1\] names a head twice$"):
        select_sites(checkpoint, heads=[1, 1])


def test_refusals_are_value_errors() -> None:
    assert issubclass(EmptyText, ValueError)
    assert issubclass(TooManyTokens, ValueError)


def test_layers_that_leave_nothing_of_the_capture_are_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(UnknownSite, match=r"nothing of \['decoder.layers.0.\*'\] lies in layers"):
        trace(checkpoint, SENTENCE, capture=["decoder.layers.0.*"], layers=[1])
