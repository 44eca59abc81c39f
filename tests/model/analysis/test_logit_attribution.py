"""The parts of a logit difference: they sum to it, and each is what removing it takes away."""

import numpy as np
import pytest
import torch

from headlight.model.analysis.logit_attribution import (
    LogitDifference,
    choose_difference,
    logit_attribution,
)

IDS, TARGET = [5, 6, 7, 8, 6], [9, 10, 11]
AT = LogitDifference(position=2, token=17, against=4)
KINDS = ["decoder", "encoder", "encoder-decoder"]
VARIANTS = [{"kind": kind} for kind in KINDS] + [
    {"norm": "rms_norm", "positional": "rotary"},
    {"positional": "alibi", "n_kv_heads": 2, "attention_bias": True},
    {"positional": "learned", "has_embedding_norm": True},
]
POST = [{"norm_place": "post", "kind": kind} for kind in KINDS]


@pytest.fixture
def attribute(make_model, read, parameters_of, checkpoint_of):
    """Return the model, its trace and its attribution: ``attribute(kind="encoder")``."""

    def run(heads=None, at=AT, **changes):
        model = make_model(**changes)
        inputs = [TARGET] if model.config.kind == "encoder-decoder" else []
        trace = read(model, IDS, *inputs, heads=heads)
        checkpoint, moe = checkpoint_of(model), model.config.moe
        is_post = model.config.norm_place == "post"
        arrays = logit_attribution(
            trace,
            checkpoint.linear_exit,
            parameters_of(model),
            at,
            n_experts=moe.n_experts if moe else 0,
            post=(checkpoint.graph_weights(), checkpoint.config) if is_post else None,
        )
        return model, trace, arrays

    return run


def frozen(model, trace, stream):
    """Return the logit difference of a stream, with the final norm's scale held."""
    stack = "encoder" if model.config.kind == "encoder" else "decoder"
    norm = model.get_submodule(stack).norm
    vector = torch.tensor(trace[f"{stack}.layers.1.residual.after"][AT.position]).double()
    is_centred = hasattr(norm, "shift")
    size = (vector.var(correction=0) if is_centred else vector.square().mean()) + norm.epsilon
    x = stream - stream.mean() if is_centred else stream
    x = x / size.sqrt() * norm.scale.double() + (norm.shift.double() if is_centred else 0)
    return x @ (model.vectors[AT.token] - model.vectors[AT.against]).double()


@pytest.mark.parametrize("changes", [*VARIANTS, *POST], ids=str)
def test_the_parts_sum_to_the_difference_without_a_remainder(attribute, changes):
    _, trace, arrays = attribute(**changes)
    logits = trace["logits"][AT.position]
    parts = dict(zip(arrays.parts, arrays.arrays["parts"].data, strict=True))
    assert sum(parts.values()) == pytest.approx(logits[AT.token] - logits[AT.against], abs=1e-5)
    assert abs(parts["remainder"]) < 1e-5
    assert arrays.omitted == {}
    data = {name: array.data for name, array in arrays.arrays.items()}
    for kind in ("self_attention", "cross_attention"):
        if f"{kind}.heads" in data:
            heads = data[f"{kind}.heads"]
            np.testing.assert_allclose(data[f"{kind}.keys"].sum(axis=-1), heads, atol=1e-5)
            whole = [parts[f"layers.{layer}.{kind}"] for layer in range(2)]
            np.testing.assert_allclose(heads.sum(axis=1) + data[f"{kind}.rest"], whole, atol=1e-5)
    np.testing.assert_allclose(data["experts"].sum(axis=1)[1], data["feed_forward"][1], atol=1e-5)
    assert np.count_nonzero(data["experts"], axis=1).tolist() == [0, 2]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_a_part_is_what_its_removal_takes_away(attribute, changes):
    with torch.no_grad():
        model, trace, arrays = attribute(**changes)
        stack = "encoder" if model.config.kind == "encoder" else "decoder"
        stream = torch.tensor(trace[f"{stack}.layers.1.residual.after"][AT.position]).double()
        whole = frozen(model, trace, stream)
        for layer in range(2):
            path = f"{stack}.layers.{layer}.self_attention"
            projection = model.get_submodule(path).output_projection.weight.double()
            for head in range(4):
                context = torch.zeros(4, 8, dtype=torch.float64)
                context[head] = torch.tensor(trace[f"{path}.context"][head, AT.position])
                removed = frozen(model, trace, stream - projection @ context.flatten())
                lost = arrays.arrays["self_attention.heads"].data[layer, head]
                assert lost == pytest.approx(float(whole - removed), abs=1e-5)
        written = torch.tensor(trace[f"{stack}.layers.1.experts.output"][AT.position])
        lost = float(whole - frozen(model, trace, stream - written))
        assert arrays.arrays["feed_forward"].data[1] == pytest.approx(lost, abs=1e-5)


@pytest.mark.parametrize("changes", VARIANTS[:4], ids=str)
def test_the_direction_is_the_gradient_with_the_scale_frozen(attribute, changes):
    model, trace, arrays = attribute(**changes)
    stack = "encoder" if model.config.kind == "encoder" else "decoder"
    stream = torch.tensor(trace[f"{stack}.layers.1.residual.after"][AT.position]).double()
    stream.requires_grad_()
    (gradient,) = torch.autograd.grad(frozen(model, trace, stream), stream)
    for layer, part in enumerate(("feed_forward", "experts")):
        written = trace[f"{stack}.layers.{layer}.{part}.output"][AT.position]
        expected = float(gradient @ torch.tensor(written).double())
        assert arrays.arrays["feed_forward"].data[layer] == pytest.approx(expected, abs=1e-5)


def test_heads_that_were_not_captured_count_as_the_rest(attribute):
    _, _, whole = attribute()
    _, _, partial = attribute(heads=(2,))
    every, captured = (each.arrays["self_attention.heads"].data for each in (whole, partial))
    np.testing.assert_allclose(captured[:, 0], every[:, 2], atol=1e-6)
    rest = partial.arrays["self_attention.rest"].data
    np.testing.assert_allclose(rest, every.sum(axis=1) - every[:, 2], atol=1e-5)
    np.testing.assert_allclose(partial.arrays["parts"].data, whole.arrays["parts"].data, atol=1e-5)


def test_what_the_model_does_not_offer_is_told_and_stays_in_the_remainder(
    make_model, read, parameters_of, checkpoint_of
):
    model = make_model()
    trace = read(model, IDS)
    hidden = ("experts.output", "feed_forward.output", ".values", "expert_outputs")
    tensors = {site: array for site, array in trace.tensors.items() if not site.endswith(hidden)}
    object.__setattr__(trace, "tensors", tensors)
    exit_of = checkpoint_of(model).linear_exit
    attribution = logit_attribution(trace, exit_of, parameters_of(model), AT, n_experts=4)
    assert set(attribution.omitted) == {"feed_forward", "self_attention.keys", "remainder"}
    assert abs(attribution.arrays["parts"].data[-1]) > 1e-3
    difference = trace["logits"][2, 17] - trace["logits"][2, 4]
    assert attribution.arrays["parts"].data.sum() == pytest.approx(difference, abs=1e-5)


def test_the_difference_is_completed_from_the_logits(make_trace):
    logits = [[0.0, 3.0, 2.0], [5.0, 1.0, 4.0]]
    trace = make_trace({"logits": logits}, "<s> a")
    assert choose_difference(trace) == LogitDifference(position=1, token=0, against=2)
    assert choose_difference(trace, 0, 2) == LogitDifference(position=0, token=2, against=1)
    assert choose_difference(trace, 0, None, 1) == LogitDifference(position=0, token=2, against=1)
    masked = choose_difference(trace, mask_id=trace.tokens[0].id)
    assert masked.position == 0


@pytest.mark.parametrize(
    ("choice", "message"),
    [((2,), "no position 2"), ((0, 3), "no token 3"), ((0, 1, 1), "needs two tokens")],
)
def test_an_impossible_difference_is_refused(make_trace, choice, message):
    with pytest.raises(ValueError, match=message):
        choose_difference(make_trace({"logits": [[0.0, 3.0, 2.0]]}, "a"), *choice)
