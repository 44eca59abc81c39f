"""Multi-head attention is the same whatever is watched of it, in one pass or with a cache."""

import math

import pytest
import torch

from headlight.model.attention import kernels
from headlight.model.attention.kernels import attention_scores, causal_mask
from headlight.model.attention.layer import KeyValueCache, MultiHeadAttention
from headlight.model.config import POSITIONALS
from headlight.model.positions import rotate


@pytest.fixture
def attention(make_config):
    torch.manual_seed(0)
    return MultiHeadAttention(make_config())


@pytest.fixture
def x():
    return torch.randn(2, 9, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def make_attention(make_config, randomise):
    def make(*, is_causal=True, is_cross=False, **changes):
        torch.manual_seed(0)
        attention = MultiHeadAttention(
            make_config(**changes), is_causal=is_causal, is_cross=is_cross
        )
        randomise(attention)
        return attention

    return make


@pytest.mark.parametrize("n_kv_heads", [1, 2])
def test_shared_keys_and_values_are_keys_and_values_repeated(make_attention, x, watch, n_kv_heads):
    shared = make_attention(n_kv_heads=n_kv_heads, attention_bias=True)
    every = make_attention(attention_bias=True)
    weights = shared.state_dict()
    for name in ("key_projection", "value_projection"):
        for kind in ("weight", "bias"):
            groups = weights[f"{name}.{kind}"].unflatten(0, (n_kv_heads, 8))
            repeated = groups.repeat_interleave(4 // n_kv_heads, dim=0).flatten(0, 1)
            weights[f"{name}.{kind}"] = repeated
    every.load_state_dict(weights)
    with watch(every).capture(["part.*"]) as expected:
        every(x)
    with watch(shared).capture(["part.*"]) as captured:
        shared(x)
    assert list(captured) == list(expected)
    for site, tensor in expected.items():
        torch.testing.assert_close(captured[site], tensor, rtol=0, atol=1e-6, msg=site)


@pytest.mark.parametrize("heads", [[0], [3], [2, 0], [0, 1, 2], [3, 1, 2, 0], None])
@pytest.mark.parametrize("site", ["part.weights", "part.scores"])
@pytest.mark.parametrize("positional", POSITIONALS)
def test_watching_heads_changes_nothing(make_attention, x, watch, heads, site, positional):
    attention = make_attention(positional=positional, n_kv_heads=2)
    is_token = torch.arange(9) < torch.tensor([9, 4])[:, None]
    unwatched_output = attention(x, is_token=is_token)
    with watch(attention).capture([site, "part.context"], heads=heads):
        output = attention(x, is_token=is_token)
    torch.testing.assert_close(output, unwatched_output, rtol=0, atol=1e-6)


@pytest.mark.parametrize("heads", [[], [1], [0, 1, 2, 3]])
@pytest.mark.parametrize("sizes", [[5, 4], [1] * 9, [3, 1, 5], [1, 8]])
def test_reading_with_a_cache_is_reading_all_at_once(attention, x, watch, heads, sizes):
    watched = watch(attention)
    expected = attention(x)
    cache = KeyValueCache()
    with watched.capture(["part.weights"] if heads else [], heads=heads or None) as captured:
        outputs = []
        for chunk in x.split(sizes, dim=1):
            outputs.append(attention(chunk, cache=cache))
            if heads:
                shape = (2, len(heads), chunk.shape[1], len(cache))
                assert captured["part.weights"].shape == shape
    torch.testing.assert_close(torch.cat(outputs, dim=1), expected, rtol=0, atol=1e-6)


def test_every_captured_step_follows_from_the_steps_before(attention, x, watch):
    watched = watch(attention)
    with watched.capture(["part.*"]) as captured:
        attention(x)
    seen = {site.removeprefix("part."): tensor for site, tensor in captured.items()}
    future = ~causal_mask(9, 9)

    def heads_of(projection):
        return projection(x).view(2, 9, 4, 8).transpose(1, 2)

    torch.testing.assert_close(seen["queries"], heads_of(attention.query_projection))
    torch.testing.assert_close(seen["keys"], heads_of(attention.key_projection))
    torch.testing.assert_close(seen["values"], heads_of(attention.value_projection))
    products = seen["queries"] @ seen["keys"].transpose(-2, -1) / math.sqrt(8)
    torch.testing.assert_close(seen["scores"][..., ~future], products[..., ~future])
    assert (seen["scores"][..., future] == -math.inf).all()
    expected = torch.softmax(products.masked_fill(future, -math.inf), dim=-1)
    torch.testing.assert_close(seen["weights"], expected, rtol=0, atol=1e-6)
    assert (seen["weights"][..., future] == 0).all()
    torch.testing.assert_close(seen["weights"].sum(dim=-1), torch.ones(2, 4, 9))
    torch.testing.assert_close(seen["context"], seen["weights"] @ seen["values"])
    side_by_side = torch.cat(list(seen["context"].unbind(dim=1)), dim=-1)
    torch.testing.assert_close(seen["output"], attention.output_projection(side_by_side))


def test_in_bfloat16_too_weights_and_context_follow_from_what_was_captured(attention, x, watch):
    attention.bfloat16()
    with watch(attention).capture(["part.*"]) as captured:
        attention(x.bfloat16())
    seen = {site.removeprefix("part."): tensor.float() for site, tensor in captured.items()}
    products = seen["queries"] @ seen["keys"].transpose(-2, -1) / math.sqrt(8)
    scores = products.masked_fill(~causal_mask(9, 9), -math.inf)
    torch.testing.assert_close(seen["weights"], scores.softmax(dim=-1), rtol=0, atol=1e-6)
    mixed = (seen["weights"] @ seen["values"]).bfloat16().float()  # rounded once, at the end
    torch.testing.assert_close(seen["context"], mixed, rtol=2**-7, atol=1e-6)


def test_gradients_do_not_depend_on_captures(attention, x, watch):
    watched = watch(attention)
    gradients = []
    for heads in ([], [1, 2], None):
        attention.zero_grad()
        with watched.capture(["part.weights"] if heads != [] else [], heads=heads or None):
            attention(x).square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in attention.parameters()])
    unwatched, some, every = gradients
    torch.testing.assert_close(some, unwatched)
    torch.testing.assert_close(every, unwatched)


def test_only_watched_heads_take_the_explicit_path(attention, x, watch, monkeypatch):
    seen = []

    def note(queries, *others):
        seen.append(queries.shape[1])
        return attention_scores(queries, *others)

    monkeypatch.setattr(kernels, "attention_scores", note)
    watched = watch(attention)
    with watched.capture(["part.queries", "part.keys", "part.values", "part.context"]):
        attention(x)
    assert seen == []
    with watched.capture(["part.weights"], heads=[3, 1]):
        attention(x)
    assert seen == [2]
    with watched.capture(["part.scores"]):
        attention(x)
    assert seen == [2, 4]


# --- positions inside attention -------------------------------------------------------------------


@pytest.mark.parametrize("n_kv_heads", [4, 2, 1])
def test_rotary_scores_are_products_of_turned_queries_and_keys(
    make_attention, x, watch, n_kv_heads
):
    attention = make_attention(positional="rotary", n_kv_heads=n_kv_heads)
    with watch(attention).capture(["*"]) as captured:
        attention(x)
    seen = {site.removeprefix("part."): tensor for site, tensor in captured.items()}
    torch.testing.assert_close(seen["rotated_queries"], rotate(seen["queries"]))
    torch.testing.assert_close(seen["rotated_keys"], rotate(seen["keys"]))
    products = seen["rotated_queries"] @ seen["rotated_keys"].transpose(-2, -1) / math.sqrt(8)
    expected = products.masked_fill(~causal_mask(9, 9), -math.inf)
    torch.testing.assert_close(seen["scores"], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("positional", ["rotary", "alibi"])
def test_a_text_pushed_to_later_positions_has_the_weights_it_had(
    make_attention, x, watch, positional
):
    attention = make_attention(positional=positional)
    pushed = torch.cat([torch.zeros(2, 5, 32), x], dim=1)
    with watch(attention).capture(["part.scores"]) as captured:
        attention(x)
        here = captured["part.scores"]
        attention(pushed)
    there = captured["part.scores"][..., 5:, 5:]
    torch.testing.assert_close(there, here, rtol=0, atol=1e-5)


def test_cross_attention_reads_its_source_once(make_attention, x):
    attention = make_attention(is_causal=False, is_cross=True)
    source = x.flip(1)[:, :5]
    expected = attention(x, source)
    n_read: list[int] = []
    attention.key_projection.register_forward_hook(lambda *_: n_read.append(1))
    cache = KeyValueCache()
    parts = [attention(part, source, cache=cache) for part in x.split([4, 1, 4], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, rtol=0, atol=1e-6)
    assert len(n_read) == 1
    assert len(cache) == 5


@pytest.mark.parametrize("sites", [["part.weights"], ["part.scores", "part.weights"]])
@pytest.mark.parametrize("heads", [[2, 0], None])
def test_weights_are_the_same_with_and_without_gradients(attention, x, watch, sites, heads):
    watched = watch(attention)
    with watched.capture(["part.scores", "part.weights"], heads=heads) as expected:
        attention(x)
    with torch.inference_mode(), watched.capture(sites, heads=heads) as captured:
        attention(x)
    for site in sites:
        torch.testing.assert_close(captured[site], expected[site], rtol=0, atol=1e-7)


def test_scores_that_an_edit_holds_are_never_overwritten(attention, x, watch):
    held = torch.randn(2, 4, 9, 9)
    before, watched = held.clone(), watch(attention)
    with (
        torch.inference_mode(),
        watched.edit("part.scores", lambda _: held),
        watched.capture(["part.weights"]) as captured,
    ):
        attention(x)
    assert held.equal(before)
    assert captured["part.weights"].equal(held.softmax(dim=-1))


@pytest.mark.parametrize("site", ["keys", "values", "rotated_keys"])
@torch.inference_mode()
def test_one_head_of_shared_keys_can_be_edited_while_it_is_observed(make_attention, x, watch, site):
    watched = watch(make_attention(n_kv_heads=2, positional="rotary"))
    head = torch.zeros(4).index_fill(0, torch.tensor([1]), 1)[:, None, None]
    with watched.edit(f"part.{site}", lambda tensor: tensor * (1 - head)):
        expected = watched(x)
        with watched.capture(["part.entropy", "part.first_token"]):
            actual = watched(x)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)
