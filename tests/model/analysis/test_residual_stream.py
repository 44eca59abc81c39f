"""Norms of the residual stream and of its updates, and statistics of the norms' inputs."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from headlight.model.analysis.residual_stream import cosine, residual_stream

LAYER = "decoder.layers.0"
# One token whose stream is (3, 4). Attention adds (4, -3), across it, which makes (7, 1); the
# feed-forward network takes half of that away again.
BY_HAND = {
    f"{LAYER}.residual.before": [[3.0, 4]],
    f"{LAYER}.self_attention.output": [[4.0, -3]],
    f"{LAYER}.residual.middle": [[7.0, 1]],
    f"{LAYER}.feed_forward.output": [[-3.5, -0.5]],
    f"{LAYER}.residual.after": [[3.5, 0.5]],
}
CHANGES = [
    {},
    {"norm": "rms_norm"},
    {"norm_place": "post"},
    {"norm": "rms_norm", "norm_place": "post", "feed_forward_bias": False},
    {"kind": "encoder", "norm_place": "post", "has_embedding_norm": True, "moe": None},
    {"kind": "encoder-decoder"},
    {"kind": "encoder-decoder", "norm_place": "post"},
]
READS = pytest.mark.parametrize("changes", CHANGES, ids=str)


@READS
def test_norms_and_cosines_are_pytorchs(make_model, read, changes):
    model = make_model(n_layers=3, **changes)
    trace = read(model, [5, 6, 7, 8], *target_of(changes))
    arrays = residual_stream(trace, norm=model.config.norm, norm_place=model.config.norm_place)
    held = {site: torch.tensor(array.data) for site, array in trace.tensors.items()}
    for site in (site for site in held if ".residual." in site):
        stack, _, layer, _, place = site.split(".")
        close(arrays[f"{stack}.residual_norm.{place}"].data[int(layer)], held[site].norm(dim=-1))
    for site in (site for site in held if ".layers." in site and site.endswith(".output")):
        stack, _, layer, part, _ = site.split(".")
        before = {"self_attention": "before", "cross_attention": "between"}.get(part, "middle")
        stream = held[f"{stack}.layers.{layer}.residual.{before}"]
        part = "feed_forward" if part == "experts" else part
        cosines = F.cosine_similarity(stream, held[site], dim=-1)
        close(arrays[f"{stack}.written_norm.{part}"].data[int(layer)], held[site].norm(dim=-1))
        close(arrays[f"{stack}.cosine.{part}"].data[int(layer)], cosines)


@READS
def test_the_statistics_are_of_what_enters_the_models_own_norms(make_model, read, changes):
    model = make_model(**changes)
    entered: dict[str, Tensor] = {}
    for name, module in model.named_modules():
        if name.endswith("norm") and "embedding" not in name:
            module.register_forward_pre_hook(
                lambda _, inputs, name=name: entered.update({name: inputs[0][0].double()})
            )
    trace = read(model, [5, 6, 7, 8], *target_of(changes))
    arrays = residual_stream(trace, norm=model.config.norm, norm_place=model.config.norm_place)
    if model.config.norm_place == "post":
        entered = {name: x for name, x in entered.items() if ".layers." in name}
    assert len(entered) >= 4
    for name, x in entered.items():
        stack, *layer, norm = name.replace("layers.", "").split(".")
        for statistic, row in statistics(x, model.config.norm).items():
            seen = arrays[f"{stack}.{statistic}.{norm}"].data
            close(seen[int(layer[0])] if layer else seen, row)
    last = [name for name in entered if ".layers." not in name]
    assert len({name for name in arrays if name.endswith(".norm")}) == len(last) * (
        1 if model.config.norm == "rms_norm" else 2
    )


def statistics(x, norm):
    if norm == "rms_norm":
        return {"root_mean_square": x.square().mean(dim=-1).sqrt()}
    return {"mean": x.mean(dim=-1), "deviation": x.std(dim=-1, correction=0)}


def target_of(changes):
    return [[9, 10, 11]] if changes.get("kind") == "encoder-decoder" else []


def close(actual, expected):
    np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-4, atol=1e-6)


def test_a_write_of_no_length_has_no_direction():
    rows = np.array([[0.0, 0], [3, 4], [0, 0]])
    others = np.array([[1.0, 1], [0, 0], [0, 0]])
    assert cosine(rows, others).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("self_attention.output", "self_attention.output"),
        ("feed_forward.output", "feed_forward.output"),
        ("residual.middle", "residual.middle"),
    ],
)
def test_what_a_trace_lacks_is_named(make_trace, missing, named):
    held = {site: rows for site, rows in BY_HAND.items() if not site.endswith(missing)}
    with pytest.raises(KeyError, match=rf"{LAYER}\.{named} is missing; capture"):
        residual_stream(make_trace(held))


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        (
            {"norm": "batch_norm"},
            "norm 'batch_norm' is unknown; choose one of layer_norm, rms_norm",
        ),
        (
            {"norm_place": "between"},
            "norm_place 'between' is unknown; choose one of pre, both, post, output",
        ),
    ],
)
def test_unknown_norms_are_an_error(make_trace, unknown, message):
    with pytest.raises(ValueError, match=message):
        residual_stream(make_trace(BY_HAND), **unknown)
