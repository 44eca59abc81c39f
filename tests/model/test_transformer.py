"""The whole model of every kind: sites, masks, padding, cache, initialisation."""

import math
import re

import pytest
import torch

from headlight.model.config import KINDS, POSITIONALS, ExpertsConfig
from headlight.model.embedding import TooManyPositions
from headlight.model.transformer import Transformer

every_kind = pytest.mark.parametrize("kind", KINDS)
every_scheme = pytest.mark.parametrize("positional", POSITIONALS)


def read(model, ids, **others):
    """Return the logits of a model of any kind; a target of six tokens goes with a source."""
    target = (ids.flip(1)[:, :6],) if model.config.kind == "encoder-decoder" else ()
    return model(ids, *target, **others).logits


def test_the_parts_follow_one_another(model, ids):
    with model.capture(["*"]) as captured:
        prediction = model(ids)
    torch.testing.assert_close(
        captured["decoder.embedding.tokens"] + captured["decoder.embedding.positional"],
        captured["decoder.embedding.output"],
    )
    first, second = "decoder.layers.0.residual", "decoder.layers.1.residual"
    assert captured[f"{first}.before"].equal(captured["decoder.embedding.output"])
    assert captured[f"{second}.before"].equal(captured[f"{first}.after"])
    normalised = model.decoder.norm(captured[f"{second}.after"])
    expected = normalised @ model.decoder.embedding.vectors.weight.T
    torch.testing.assert_close(captured["logits"], expected)
    assert prediction.logits is captured["logits"]


# --- reading in pieces ----------------------------------------------------------------------------


@every_scheme
@pytest.mark.parametrize("sizes", [[11], [1] * 11, [4, 1, 6]])
def test_reading_in_pieces_is_reading_at_once(make_model, ids, sizes, positional):
    model = make_model(positional=positional)
    cache = model.new_cache()
    logits = [model(chunk, cache=cache).logits for chunk in ids.split(sizes, dim=1)]
    assert [len(layer) for layer in cache] == [11, 11]
    torch.testing.assert_close(torch.cat(logits, dim=1), model(ids).logits, rtol=0, atol=1e-5)


@every_scheme
@pytest.mark.parametrize("norm_place", ["pre", "post"])
def test_a_target_in_pieces_is_a_target_at_once(make_model, ids, positional, norm_place):
    model = make_model(
        kind="encoder-decoder", positional=positional, norm_place=norm_place, n_kv_heads=2
    )
    is_token = torch.arange(11) < torch.tensor([11, 4])[:, None]
    target = ids.flip(1)[:, :8]
    expected = model(ids, target, is_token=is_token).logits
    memory, _ = model.encode(ids, is_token=is_token)
    torch.testing.assert_close(model.decode(target, memory).logits, expected, rtol=0, atol=1e-5)
    cache = model.new_cache()
    parts = [
        model.decode(part, memory, cache=cache).logits for part in target.split([3, 1, 4], dim=1)
    ]
    torch.testing.assert_close(torch.cat(parts, dim=1), expected, rtol=0, atol=1e-5)
    assert [(len(layer), len(layer.cross_attention)) for layer in cache] == [(8, 11), (8, 11)]


def test_the_balance_loss_is_the_mean_over_the_layers_with_experts(make_model, ids):
    moe = ExpertsConfig(n_experts=4, top_k=2, layers=(0, 2))
    model = make_model(n_layers=3, moe=moe)
    x = model.decoder.embedding(ids)
    losses = []
    for layer in model.decoder.layers:
        x, loss = layer(x)
        losses.append(loss.item())
    assert losses[1] == 0
    assert model(ids).balance_loss.item() == pytest.approx((losses[0] + losses[2]) / 2)
    assert make_model(moe=None)(ids).balance_loss.item() == 0


@pytest.mark.parametrize("positional", ["sinusoidal", "learned"])
def test_first_matrices_have_the_deviation_that_keeps_variance(make_config, positional):
    torch.manual_seed(0)
    moe = ExpertsConfig(n_experts=4, top_k=2, layers=(1, 3, 5))
    model = Transformer(
        make_config(n_layers=6, d_model=128, d_ff=256, moe=moe, positional=positional)
    )
    matrices = {name: p for name, p in model.named_parameters() if p.ndim == 2}
    for name, matrix in matrices.items():
        deviation = matrix.std().item() * matrix.shape[-1] ** 0.5
        if name.endswith("embedding.positions.weight"):
            assert matrix.std().item() == pytest.approx(0.5**0.5, rel=0.05)
        elif "embedding" in name:
            assert matrix.std().item() == pytest.approx(0.02, rel=0.05)
        elif name.endswith(("output_projection.weight", "down_projection.weight")):
            assert deviation == pytest.approx(1 / 12**0.5, rel=0.1), name
        else:
            assert deviation == pytest.approx(1, rel=0.1), name
    with model.capture(["*.queries", "*.residual.after"]) as captured:
        model(torch.randint(300, (4, 32)))
    for layer in range(6):
        queries = captured[f"decoder.layers.{layer}.self_attention.queries"]
        assert queries.var().item() == pytest.approx(1, rel=0.3)
        assert captured[f"decoder.layers.{layer}.residual.after"].var().item() < 3


@every_kind
def test_first_scales_are_1_and_all_other_vectors_0(make_config, kind):
    model = Transformer(make_config(kind=kind, attention_bias=True, has_embedding_norm=True))
    vectors = {name: p for name, p in model.named_parameters() if p.ndim == 1}
    assert f"{kind[:7]}.layers.0.self_attention.query_projection.bias" in vectors
    for name, vector in vectors.items():
        assert (vector == (1 if name.endswith("norm.scale") else 0)).all(), name


def test_bfloat16_gives_nearly_the_same(make_model, ids):
    expected = make_model()(ids).logits
    model = make_model().bfloat16()
    with model.capture(["*"]) as captured:
        logits = model(ids).logits
    assert logits.dtype == torch.bfloat16
    assert (logits.float() - expected).abs().mean() < 0.1 * expected.std()
    assert captured["decoder.layers.1.experts.router_probs"].dtype == torch.float32


# --- sites of every kind and scheme ---------------------------------------------------------------

STATISTICS = {"logsumexp", "entropy", "first_token"}
STEPS = {"queries", "keys", "values", "scores", "weights", "context", "output"} | STATISTICS
ADDED, INSIDE = (
    {"sinusoidal", "learned"},
    {"rotary": {"rotated_queries", "rotated_keys"}, "alibi": {"bias"}},
)


def parts_below(model, start):
    """Return the sites directly below a module, by their last names."""
    names = [site.name for site in model.sites if site.name.startswith(f"{start}.")]
    return {name.removeprefix(f"{start}.") for name in names}


@every_kind
@every_scheme
def test_sites_are_where_their_scheme_and_kind_put_them(make_model, kind, positional):
    model = make_model(kind=kind, positional=positional)
    stacks = {"encoder", "decoder"} if kind == "encoder-decoder" else {kind}
    assert {site.name.split(".")[0] for site in model.sites} == {*stacks, "logits"}
    for stack in stacks:
        has_cross = kind == "encoder-decoder" and stack == "decoder"
        added = {"positional"} if positional in ADDED else set()
        assert parts_below(model, f"{stack}.embedding") == {"tokens", "output"} | added
        for layer in range(2):
            at = f"{stack}.layers.{layer}"
            attention = STEPS | {"mean_distance"} | INSIDE.get(positional, set())
            assert parts_below(model, f"{at}.self_attention") == attention
            assert parts_below(model, f"{at}.cross_attention") == (STEPS if has_cross else set())
            between = {"between"} if has_cross else set()
            assert parts_below(model, f"{at}.residual") == {"before", "middle", "after"} | between


@every_scheme
@pytest.mark.parametrize("norm_place", ["pre", "post"])
def test_scores_can_be_recomputed_from_what_was_captured_beside_them(
    make_model, ids, positional, norm_place
):
    model = make_model(
        kind="encoder-decoder", positional=positional, norm_place=norm_place, n_kv_heads=2
    )
    with model.capture(["*"]) as captured:
        read(model, ids)
    attentions = [site.removesuffix(".scores") for site in captured if site.endswith(".scores")]
    assert len(attentions) == 6
    for at in attentions:
        queries, keys = [
            captured.get(f"{at}.rotated_{kind}", captured[f"{at}.{kind}"])
            for kind in ("queries", "keys")
        ]
        expected = queries @ keys.transpose(-2, -1) / math.sqrt(8) + captured.get(f"{at}.bias", 0)
        if at.startswith("decoder.") and at.endswith("self_attention"):
            ahead = torch.ones(6, 6, dtype=torch.bool).triu(diagonal=1)
            expected = expected.masked_fill(ahead, -math.inf)
        torch.testing.assert_close(captured[f"{at}.scores"], expected, rtol=0, atol=1e-5, msg=at)
        weights = captured[f"{at}.weights"]
        torch.testing.assert_close(weights, expected.softmax(dim=-1), rtol=0, atol=1e-6, msg=at)
        context = weights @ captured[f"{at}.values"]
        torch.testing.assert_close(captured[f"{at}.context"], context, rtol=0, atol=1e-5, msg=at)


def test_a_pass_has_a_gradient_after_one_that_has_none(make_model, ids):
    model = make_model()
    with torch.inference_mode(), model.capture(["*.mean_distance"]):
        model(ids[:, :9])
    with model.capture(["*.mean_distance"]) as captured:
        model(ids[:, :9])
    assert all(distances.requires_grad for distances in captured.values())


# --- who sees what --------------------------------------------------------------------------------


def changed_at(ids, place):
    """Return the same ids with another token at one place."""
    other = ids.clone()
    other[:, place] = (other[:, place] + 1) % 300
    return other


def moved(before, after):
    """For each position, whether its numbers changed in both rows."""
    return (before - after).abs().amax(dim=-1).gt(1e-3).all(dim=0).tolist()


@every_scheme
def test_the_future_stays_zero_in_a_decoder(make_model, ids, positional):
    model = make_model(positional=positional)
    with model.capture(["*.weights"]) as captured:
        before = model(ids).logits
    assert all((weights.triu(diagonal=1) == 0).all() for weights in captured.values())
    after = model(changed_at(ids, 5)).logits
    torch.testing.assert_close(after[:, :5], before[:, :5], rtol=0, atol=1e-5)
    assert moved(before, after)[5:] == [True] * 6


@every_scheme
def test_an_encoder_sees_both_ways(make_model, ids, positional):
    model = make_model(kind="encoder", positional=positional)
    with model.capture(["*.weights"]) as captured:
        before = model(ids).logits
    assert all((weights > 0).all() for weights in captured.values())
    for place in (0, 5, 10):
        assert moved(before, model(changed_at(ids, place)).logits) == [True] * 11


@every_scheme
def test_a_decoder_beside_an_encoder_sees_all_of_the_source_and_its_own_past(
    make_model, ids, positional
):
    model = make_model(kind="encoder-decoder", positional=positional)
    target = ids.flip(1)[:, :6]
    with model.capture(["*.weights"]) as captured:
        before = model(ids, target).logits
    for site, weights in captured.items():
        is_causal = site.startswith("decoder.") and "self_attention" in site
        assert bool((weights.triu(diagonal=1) == 0).all()) == is_causal, site
    for place in (0, 10):
        assert moved(before, model(changed_at(ids, place), target).logits) == [True] * 6
    after = model(ids, changed_at(target, 3)).logits
    torch.testing.assert_close(after[:, :3], before[:, :3], rtol=0, atol=1e-5)
    assert moved(before, after)[3:] == [True] * 3


# --- length, dropout, errors ----------------------------------------------------------------------


def test_learned_positions_end_with_their_table(make_model):
    model = make_model(positional="learned")
    text = torch.zeros(1, 49, dtype=torch.long)
    assert model(text[:, :48]).logits.shape == (1, 48, 300)
    message = "the text has 49 tokens, but positions are learned up to 48"
    with pytest.raises(TooManyPositions, match=f"^{re.escape(message)}$"):
        model(text)
    cache = model.new_cache()
    model(text[:, :48], cache=cache)
    with pytest.raises(TooManyPositions, match=f"^{re.escape(message)}$"):
        model(text[:, 48:], cache=cache)


@pytest.mark.parametrize("positional", sorted(set(POSITIONALS) - {"learned"}))
def test_other_schemes_go_on_beyond_the_longest_text(make_model, positional):
    model = make_model(positional=positional)
    text = torch.randint(300, (1, 60), generator=torch.Generator().manual_seed(2))
    longer = model(text).logits
    assert longer.isfinite().all()
    torch.testing.assert_close(longer[:, :48], model(text[:, :48]).logits, rtol=0, atol=1e-5)


@every_kind
def test_dropout_acts_in_training_alone(make_model, ids, kind):
    model, without = make_model(kind=kind, dropout=0.5), make_model(kind=kind)
    assert read(model, ids).equal(read(without, ids))
    model.train()
    assert not torch.allclose(read(model, ids), read(model, ids), atol=1e-3)


@every_kind
def test_an_encoder_decoder_needs_a_target_and_no_other_kind_takes_one(make_model, ids, kind):
    with pytest.raises(ValueError, match=f"^a model of kind '{kind}' .* target_ids$"):
        make_model(kind=kind)(ids, None if kind == "encoder-decoder" else ids)


@pytest.mark.parametrize("kind", ["encoder", "encoder-decoder"])
def test_decoding_needs_a_decoder_and_its_memory_and_an_encoder_has_no_cache(make_model, ids, kind):
    model = make_model(kind=kind)
    with pytest.raises(ValueError, match="has no decoder" if kind == "encoder" else "memory"):
        model.decode(ids)
    with pytest.raises(ValueError, match="an encoder has no cache"):
        read(model, ids, cache=model.new_cache())


@every_kind
def test_both_stacks_and_the_logits_share_one_matrix(make_model, ids, kind):
    model = make_model(kind=kind)
    assert len([name for name in model.weights() if name.endswith("vectors.weight")]) == 1
    with model.capture(["*.embedding.tokens", "logits"]) as before:
        read(model, ids)
    with torch.no_grad():
        model.vectors.mul_(3.0)
    with model.capture(["*.embedding.tokens", "logits"]) as after:
        read(model, ids)
    for site in [site for site in before if site.endswith("tokens")]:
        torch.testing.assert_close(after[site], 3 * before[site])
    assert not torch.allclose(after["logits"], before["logits"], atol=1e-2)


@every_kind
def test_weights_taken_over_give_the_same_model(make_model, ids, kind):
    one, other = make_model(kind=kind), make_model(kind=kind, seed=1)
    assert not torch.allclose(read(one, ids), read(other, ids), atol=1e-2)
    other.load_weights(one.weights())
    assert read(one, ids).equal(read(other, ids))


def test_weights_that_do_not_fit_are_an_error(make_model):
    model = make_model(kind="encoder-decoder")
    weights = model.weights()
    with pytest.raises(RuntimeError, match=r"^the weights hold the unknown extra$"):
        model.load_weights({**weights, "extra": torch.zeros(1)})
    del weights["decoder.norm.scale"]
    with pytest.raises(RuntimeError, match=r"^the weights lack decoder\.norm\.scale$"):
        model.load_weights(weights)


def test_the_balance_loss_of_two_stacks_is_their_mean(make_model, ids):
    model = make_model(kind="encoder-decoder")
    memory, encoder_loss = model.encode(ids)
    decoder_loss = model.decode(ids.flip(1)[:, :6], memory).balance_loss
    loss = model(ids, ids.flip(1)[:, :6]).balance_loss
    torch.testing.assert_close(loss, (encoder_loss + decoder_loss) / 2)
