"""Name the residual stream of a layer, its norms and its feed-forward network."""

from __future__ import annotations

import torch
from torch import Tensor

from headlight.model.foreign.attention_facts import same, tolerance_of
from headlight.model.foreign.probe import N_ROWS, AttentionCall, Call
from headlight.model.foreign.sites import Hook, Named, NamedLayer
from headlight.model.foreign.writes import bases_of, fit_step, is_norm, parts_of, place_outputs

_ACTIVATIONS = ("gelu", "silu", "relu", "swish", "mish", "tanh", "sigmoid", "activation", "laplace")


def name_feed_forward(named: Named, layer: NamedLayer) -> None:
    """Name the feed-forward network: the projection back, what it reads, and before it."""
    last = max((each.time for each in layer.attentions.values()), default=layer.call.start)
    later = [inner for inner in layer.inner if inner.outputs and inner.start > last]
    points = {point for name, point in named.points.items() if name.startswith(f"{layer.path}.")}
    of_attention = {id(hook.call) for hook in named.hooks if hook.point in points}
    downs = [
        inner
        for inner in later
        if id(inner) not in of_attention
        and inner.inputs
        and getattr(getattr(inner.module, "weight", None), "ndim", 0) == 2
        and inner.outputs[0].shape[-1] == named.d_model
        and inner.inputs[0].shape[-1] >= named.d_model
        and inner.outputs[0].numel() == N_ROWS * _n_tokens(layer) * named.d_model
    ]
    path = f"{layer.path}.feed_forward"
    if not downs or layer.before is None:
        named.omitted[path] = "no matrix that follows leads from a wider vector to the stream"
        return
    down = downs[-1]
    if not layer.attentions and not _is_by_token(layer, down):
        named.omitted[path] = (
            "the layer does not attend, and its last matrix ends what mixes tokens"
        )
        return
    width = down.inputs[0].shape[-1]
    named.d_ff = max(named.d_ff, width)
    activations = [
        inner
        for inner in later
        if inner.start < down.start
        and inner.outputs
        and inner.outputs[0].shape[-1] in (width, 2 * width)
        and any(part in type(inner.module).__name__.lower() for part in _ACTIVATIONS)
        and not list(inner.module.parameters(recurse=False))
        and not list(inner.module.children())
    ]
    if activations and activations[-1].inputs:
        call = activations[-1]
        named.activation = type(call.module).__name__
        size = call.inputs[0].shape[-1]
        point = named.point(f"{path}.preactivation", "batch query d_ff", d_ff=size)
        named.hooks.append(Hook(call, call.slots[0], False, point))
    else:
        named.omitted[f"{path}.preactivation"] = (
            "the activation is not a module, so it cannot be watched"
        )
    point = named.point(f"{path}.hidden", "batch query d_ff", d_ff=width)
    named.hooks.append(Hook(down, down.slots[0], False, point))
    point = named.point(f"{path}.output", "batch query d_model", d_model=named.d_model)
    named.hooks.append(Hook(down, down.places[0], True, point))


def _is_by_token(layer: NamedLayer, down: Call) -> bool:
    """Return True if the module around a matrix computes each token's vector by itself."""
    around = [
        call for call in layer.inner if down.is_within(call) and _has_stream_shape(call, layer)
    ]
    if not around:
        return False
    block = around[-1]
    given, made = block.inputs[0], block.outputs[0]
    try:
        with torch.inference_mode():
            out = type(block.module).forward(block.module, given.flip(1))
    except Exception:  # whatever a model file does with one argument
        return False
    first = out[0] if isinstance(out, tuple) else out
    return isinstance(first, Tensor) and same(first, made.flip(1))


def _n_tokens(layer: NamedLayer) -> int:
    return 0 if layer.before is None else layer.before.shape[1]


def name_stream(named: Named, layer: NamedLayer) -> None:
    """Name the residual stream before, between, in the middle of and after a layer."""
    path, width = f"{layer.path}.residual", named.d_model
    if layer.before is None or layer.after is None:
        named.omitted[path] = "the layers of this model are not modules that read the stream"
        return
    axes = "batch query d_model"
    point = named.point(f"{path}.before", axes, d_model=width)
    named.hooks.append(Hook(layer.call, slot_of(layer.call, layer.before), False, point))
    base = layer.before
    places, ends = [("before", base)], []
    attentions = list(layer.attentions.values())
    for order, attention in enumerate(attentions):
        until = attentions[order + 1].time if order + 1 < len(attentions) else layer.call.end
        name = "between" if order + 1 < len(attentions) else "middle"
        total = _sum_after(layer, base, attention, until)
        if total is None:
            named.omitted[f"{path}.{name}"] = (
                "no module is given the stream plus what the attention before it wrote"
            )
            break
        call, is_output = total
        tensor = call.outputs[0] if is_output else call.inputs[0]
        if is_output:
            named.norm_place = "post"
        slot = call.places[0] if is_output else call.slots[0]
        point = named.point(f"{path}.{name}", axes, d_model=width)
        named.hooks.append(Hook(call, slot, is_output, point))
        base = tensor.reshape(base.shape)
        places.append((name, base))
        ends.append(call.start)
    place = next(
        place
        for place, out in zip(layer.call.places, layer.call.outputs, strict=True)
        if out.shape == layer.before.shape
    )
    point = named.point(f"{path}.after", axes, d_model=width)
    named.hooks.append(Hook(layer.call, place, True, point))
    if named.norm_place != "post":
        places.append(("after", layer.after))
        place_outputs(named, layer, places, [*ends, layer.call.end])
    _name_norms(named, layer)


def _name_norms(named: Named, layer: NamedLayer) -> None:
    """Name the outputs of the norms of attention and of the feed-forward network."""
    norms = [norm for norm in layer.inner if is_norm(norm) and _has_stream_shape(norm, layer)]
    norms = [norm for norm in norms if not _is_of_attention(norm, layer)]
    if norms:
        kind = type(norms[0].module).__name__.lower()
        named.norm = "rms_norm" if "rms" in kind or "t5" in kind else "layer_norm"
    parts = ["attention", *(["cross_attention"] * (len(layer.attentions) > 1)), "feed_forward"]
    first = next(iter(layer.attentions.values()), None)
    n_before = 0 if first is None else sum(norm.end < first.time for norm in norms)
    if named.norm_place == "pre" and n_before > 0 and len(norms) > len(parts):
        named.norm_place = "both"
    writing = {id(part.call) for part in parts_of(named, layer).values()}
    if named.norm_place == "pre" and norms and id(norms[0]) in writing and n_before == 0:
        named.norm_place = "output"  # of what a part wrote, before it is added: OLMo 2
    names = [f"{part}_norm" for part in parts]
    if named.norm_place == "output":
        names = [f"{part}_output_norm" for part in parts]
    if first is not None and len(norms) == 2 * len(parts) and named.norm_place == "both":
        names = [f"{part}_{which}" for part in parts for which in ("norm", "output_norm")]
    if first is not None and len(norms) == 1 and n_before == 1:
        names = names[:1]
        named.omitted[f"{layer.path}.feed_forward_norm"] = (
            "the feed-forward network is given what the one norm of the layer gives to attention"
        )
    if first is None or len(norms) != len(names):
        named.omitted[f"{layer.path}.norms"] = (
            f"the layer has {len(norms)} norms of the stream and {len(layer.attentions)} "
            "attentions, so which norm is whose is not known"
        )
        return
    for name, call in zip(names, norms, strict=True):
        point = named.point(f"{layer.path}.{name}", "batch query d_model", d_model=named.d_model)
        named.hooks.append(Hook(call, call.places[0], True, point))


def _is_of_attention(call: Call, layer: NamedLayer) -> bool:
    """Return True if a norm is one of queries or keys, within a module that attends."""
    attentions = layer.attentions.values()
    return any(
        call.is_within(attention.call) and call.end < attention.time for attention in attentions
    )


def _has_stream_shape(call: Call, layer: NamedLayer) -> bool:
    return (
        layer.before is not None
        and bool(call.outputs)
        and bool(call.inputs)
        and call.outputs[0].numel() == layer.before.numel()
        and call.outputs[0].shape[-1] == layer.before.shape[-1]
    )


def _sum_after(
    layer: NamedLayer, base: Tensor, attention: AttentionCall, until: int
) -> tuple[Call, bool] | None:
    """Return the first module that is given the stream plus what an attention wrote.

    Returns:
        Its call, and whether the stream is its output: a norm of the sum itself. None: there is
        none.
    """
    entering = [tensor for tensor in attention.call.inputs if tensor.shape == base.shape]
    is_normed_first = bool(entering) and not same(base, entering[0])
    written = [
        inner.outputs[0]
        for inner in layer.inner
        if inner.outputs and inner.end > attention.time and inner.outputs[0].shape == base.shape
    ]
    readers: list[tuple[Call, Tensor]] = []
    sizes = base.abs().flatten(0, -2).amax(dim=0).clamp(min=1e-30)  # massive in some features
    for call in layer.inner:
        if call.start < attention.time or call.start > until or not _has_stream_shape(call, layer):
            continue
        if call.inputs[0].numel() != base.numel():
            continue
        entered = call.inputs[0].reshape(base.shape)
        difference = (entered - base) / sizes
        if float(difference.abs().max()) <= tolerance_of(base):
            continue
        others = (tensor for tensor in written if not same(tensor, entered))
        if any(_is_multiple(difference, tensor / sizes) for tensor in others):
            if not is_norm(call) or is_normed_first or _goes_on(layer, call, entered):
                return call, False
            if _goes_on(layer, call, call.outputs[0].reshape(base.shape)):
                return call, True
            continue
        readers.append((call, entered))
    scaled = _scaled_sum(layer, base, attention, readers)
    return None if scaled is None else (scaled, False)


def _goes_on(layer: NamedLayer, norm: Call, stream: Tensor) -> bool:
    """Return True if a part after a norm is added to this stream: what it is given, or makes."""
    later = [
        call for call in layer.inner if call.start > norm.end and _has_stream_shape(call, layer)
    ]
    written = [call.outputs[0].reshape(stream.shape) for call in later]
    given = [call.inputs[0] for call in later if call.inputs[0].numel() == stream.numel()]
    assert layer.after is not None
    sums = [tensor.reshape(stream.shape) - stream for tensor in (*given, layer.after)]
    return any(_is_multiple(difference, output) for difference in sums for output in written)


def _scaled_sum(
    layer: NamedLayer, base: Tensor, attention: AttentionCall, readers: list[tuple[Call, Tensor]]
) -> Call | None:
    """Return the first norm that is given the stream and what was written, each times factors."""
    candidates = [each for each, _ in bases_of(layer, base, attention.time)]
    for call, entered in readers:
        if not is_norm(call):
            continue
        for written in layer.inner:
            is_made = attention.call.start <= written.start and written.end < call.start
            if not is_made or not written.outputs or written.end < attention.time:
                continue
            output = written.outputs[0]
            if output.shape != base.shape or same(output, entered):
                continue
            if any(fit_step(each, [output], entered) for each in candidates):
                return call
    return None


def _is_multiple(first: Tensor, second: Tensor) -> bool:
    left, right = first.double().flatten(), second.double().flatten()
    product = float(left.norm() * right.norm())
    least = 1 - 0.1 * tolerance_of(first)
    return product > 0 and abs(float(left @ right)) > least * product


def slot_of(call: Call, tensor: Tensor) -> int | str:
    """Return the place of a tensor among the inputs of a call, or else the first."""
    for slot, given in zip(call.slots, call.inputs, strict=True):
        if given is tensor:
            return slot
    return call.slots[0]
