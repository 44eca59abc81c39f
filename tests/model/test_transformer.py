"""The whole decoder: its sites, its sums, its future, its cache, its first weights."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention
from model.config import ExpertsConfig, TransformerConfig
from model.transformer import Transformer

MakeModel = Callable[..., Transformer]


def test_the_model_has_every_site_with_its_axes(model: Transformer) -> None:
    sites = {site.name: " ".join(site.axes) for site in model.sites}
    attention = {
        "residual.before": "batch query d_model",
        "residual.middle": "batch query d_model",
        "residual.after": "batch query d_model",
        "self_attention.queries": "batch head query d_head",
        "self_attention.keys": "batch head key d_head",
        "self_attention.values": "batch head key d_head",
        "self_attention.scores": "batch head query key",
        "self_attention.weights": "batch head query key",
        "self_attention.context": "batch head query d_head",
        "self_attention.output": "batch query d_model",
    }
    feed_forward = {
        "feed_forward.hidden": "batch query d_ff",
        "feed_forward.output": "batch query d_model",
    }
    experts = {
        "experts.router_logits": "batch query expert",
        "experts.router_probs": "batch query expert",
        "experts.expert_indices": "batch query top_k",
        "experts.expert_weights": "batch query top_k",
        "experts.output": "batch query d_model",
    }
    assert sites == {
        "decoder.embedding.tokens": "batch query d_model",
        "decoder.embedding.positional": "position d_model",
        "decoder.embedding.output": "batch query d_model",
        **{f"decoder.layers.0.{name}": axes for name, axes in (attention | feed_forward).items()},
        **{f"decoder.layers.1.{name}": axes for name, axes in (attention | experts).items()},
        "logits": "batch query vocab",
    }


def test_every_site_is_passed_once_and_has_the_declared_axes(
    model: Transformer, ids: Tensor
) -> None:
    config = model.config
    size = {
        "batch": 2,
        "query": 11,
        "key": 11,
        "position": 11,
        "head": config.n_heads,
        "d_model": config.d_model,
        "d_head": config.d_head,
        "d_ff": config.d_ff,
        "expert": 4,
        "top_k": 2,
        "vocab": config.vocab_size,
    }
    with model.capture(["*"]) as captured:
        model(ids)
    shapes = {site: tuple(tensor.shape) for site, tensor in captured.items()}
    assert shapes == {site.name: tuple(size[axis] for axis in site.axes) for site in model.sites}


def test_the_parts_follow_one_another(model: Transformer, ids: Tensor) -> None:
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


def test_the_stream_is_the_embedding_plus_all_that_was_written(
    model: Transformer, ids: Tensor
) -> None:
    with model.capture(["*"]) as captured:
        model(ids)
    written = [
        captured[site]
        for site in captured
        if site.endswith((".self_attention.output", ".feed_forward.output", ".experts.output"))
    ]
    assert len(written) == 4
    total = captured["decoder.embedding.output"] + sum(written)
    torch.testing.assert_close(
        captured["decoder.layers.1.residual.after"], total, rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("changed", [1, 5, 10])
def test_no_token_sees_the_future(model: Transformer, ids: Tensor, changed: int) -> None:
    before = model(ids).logits
    other = ids.clone()
    other[:, changed] = (other[:, changed] + 1) % 300
    after = model(other).logits
    torch.testing.assert_close(after[:, :changed], before[:, :changed], rtol=0, atol=1e-5)
    assert not torch.allclose(after[:, changed:], before[:, changed:], atol=1e-2)


def test_rows_do_not_see_one_another(model: Transformer, ids: Tensor) -> None:
    together = model(ids).logits
    alone = torch.cat([model(row[None]).logits for row in ids])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)


def test_every_row_of_weights_in_every_layer_sums_to_1_and_sees_no_future(
    model: Transformer, ids: Tensor
) -> None:
    with model.capture(["*.weights"]) as captured:
        model(ids)
    assert len(captured) == 2
    for weights in captured.values():
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 4, 11))
        assert (weights.triu(diagonal=1) == 0).all()


def test_only_the_watched_layer_takes_the_explicit_path(
    model: Transformer, ids: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    explicit: list[nn.Module] = []
    attend = MultiHeadAttention._attend_step_by_step

    def note(self: MultiHeadAttention, *inputs: Any) -> Tensor:
        explicit.append(self)
        return attend(self, *inputs)

    monkeypatch.setattr(MultiHeadAttention, "_attend_step_by_step", note)
    with model.capture(["*"], layers=[1]):
        model(ids)
    assert explicit == [model.decoder.layers[1].self_attention]
    with model.capture(["*.residual.*", "*.context", "*.experts.*", "logits"]):
        model(ids)
    assert len(explicit) == 1


@pytest.mark.parametrize("sizes", [[11], [1] * 11, [4, 1, 6]])
def test_reading_in_pieces_is_reading_at_once(
    model: Transformer, ids: Tensor, sizes: list[int]
) -> None:
    cache = model.new_cache()
    logits = [model(chunk, cache).logits for chunk in ids.split(sizes, dim=1)]
    assert [len(layer) for layer in cache] == [11, 11]
    torch.testing.assert_close(torch.cat(logits, dim=1), model(ids).logits, rtol=0, atol=1e-5)


def test_the_balance_loss_is_the_mean_over_the_layers_with_experts(
    make_model: MakeModel, ids: Tensor
) -> None:
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


def test_the_same_seed_gives_the_same_model(make_model: MakeModel, ids: Tensor) -> None:
    assert make_model(seed=3)(ids).logits.equal(make_model(seed=3)(ids).logits)
    assert not make_model(seed=3)(ids).logits.equal(make_model(seed=4)(ids).logits)


def test_first_matrices_have_the_deviation_that_keeps_variance(
    make_config: Callable[..., TransformerConfig],
) -> None:
    torch.manual_seed(0)
    moe = ExpertsConfig(n_experts=4, top_k=2, layers=(1, 3, 5))
    model = Transformer(make_config(n_layers=6, d_model=128, d_ff=256, moe=moe))
    matrices = {name: p for name, p in model.named_parameters() if p.ndim == 2}
    for name, matrix in matrices.items():
        deviation = matrix.std().item() * matrix.shape[-1] ** 0.5
        if "embedding" in name:
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


def test_first_scales_are_1_and_all_other_vectors_0(
    make_config: Callable[..., TransformerConfig],
) -> None:
    vectors = {name: p for name, p in Transformer(make_config()).named_parameters() if p.ndim == 1}
    for name, vector in vectors.items():
        assert (vector == (1 if name.endswith("norm.scale") else 0)).all(), name


def test_bfloat16_gives_nearly_the_same(make_model: MakeModel, ids: Tensor) -> None:
    expected = make_model()(ids).logits
    model = make_model().bfloat16()
    with model.capture(["*"]) as captured:
        logits = model(ids).logits
    assert logits.dtype == torch.bfloat16
    assert (logits.float() - expected).abs().mean() < 0.1 * expected.std()
    assert captured["decoder.layers.1.experts.router_probs"].dtype == torch.float32
