"""Name the sites of a model by the numbers of a recorded pass, and let its tensors pass them.

A tensor is what its numbers are: the projection W_O is the module whose input is the context, the
residual stream is what a layer is given and what it returns, its middle is the first input that
equals the stream plus something written after the attention, and the queries before rotation are
the slices of a projection that equal the rotated ones at position 0, which rotation leaves alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.foreign.attention import AttentionPoints
from headlight.model.foreign.named import Hook, Named, NamedLayer
from headlight.model.foreign.probe import N_ROWS, AttentionCall, Call, Recorder
from headlight.model.foreign.routers import find_router, name_router
from headlight.model.hooks import HookPoint
from headlight.model.trace import AttentionFacts

TOLERANCE, IN_LOWER_PRECISION = 1e-5, 2e-2
_NORM = ("norm", "ln_", "layernorm")
_ACTIVATIONS = (
    "gelu",
    "silu",
    "relu",
    "swish",
    "mish",
    "tanh",
    "sigmoid",
    "activation",
    "quickgelu",
    "laplace",
)


def name_sites(model: Any, task: str, recorded: Recorder) -> Named:
    """Name the sites of a recorded pass.

    Args:
        model: of Transformers.
        task: ``causal``, ``masked`` or ``seq2seq``.
        recorded: a pass of the model.

    Raises:
        ValueError: the model has no attention that could be named.
    """
    named = Named()
    if not recorded.attentions:
        raise ValueError("no softmax attention was found in a pass of the model")
    named.kind = _kind(task, recorded.attentions)
    named.d_model = model.get_input_embeddings().weight.shape[-1]  # if the stream is not known
    scalings = (getattr(one, "attention_scaling", 1.0) for one in model.modules())
    named.rotary_factors = list(dict.fromkeys([1.0, *map(float, scalings)]))
    named.layers = _layers(model, named.kind, recorded)
    named.n_layers = max(layer.number for layer in named.layers) + 1
    for stack in dict.fromkeys(layer.stack for layer in named.layers):
        layers = [layer for layer in named.layers if layer.stack == stack]
        _name_embedding(named, stack, layers[0], recorded)
        for layer in layers:
            _name_layer(named, layer)
    vocab = model.get_output_embeddings()
    width = getattr(vocab, "out_features", None) or model.config.get_text_config().vocab_size
    named.point("logits", "batch query vocab", vocab=width)
    return named


# --- stacks and layers ----------------------------------------------------------------------------


def _kind(task: str, attentions: Sequence[AttentionCall]) -> str:
    if task == "seq2seq":
        return "encoder-decoder"
    return "decoder" if any(is_causal(each.weights) for each in attentions) else "encoder"


def is_causal(weights: Tensor) -> bool:
    """Whether no query sees a later key."""
    n_queries, n_keys = weights.shape[-2:]
    return n_queries == n_keys and not bool(weights.triu(diagonal=1).any())


def _layers(model: nn.Module, kind: str, recorded: Recorder) -> list[NamedLayer]:
    """The layers of each stack, in order; a layer without attention between others is one too."""
    lists = {name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    found: dict[int, NamedLayer] = {}
    containers: dict[str, set[str]] = {}
    for attention in recorded.attentions:
        n_queries, n_keys = attention.scores.shape[-2:]
        if kind != "encoder-decoder" and n_queries != n_keys:
            raise ValueError("the keys of an attention are not the tokens of the text")
        stack = kind
        if kind == "encoder-decoder":
            stack = "encoder" if n_queries == N_ROWS_OF["source"] else "decoder"
        name = _layer_name(attention.call.name, lists)
        call = next(
            (
                one
                for one in recorded.calls
                if one.name == name and one.start <= attention.time <= one.end
            ),
            attention.call,
        )
        containers.setdefault(stack, set()).add(name.rpartition(".")[0])
        layer = found.setdefault(call.start, NamedLayer(stack, -1, call, []))
        kind_of = "cross_attention" if n_queries != n_keys else "self_attention"
        if kind_of in layer.attentions:
            return _attentions_alone(recorded, kind)
        layer.attentions[kind_of] = attention
    for stack, names in containers.items():  # layers of a hybrid that have no attention
        if len(names) != 1:
            continue
        (container,) = names
        for call in recorded.calls:
            parent, _, last = call.name.rpartition(".")
            if parent == container and last.isdigit() and call.outputs:
                found.setdefault(call.start, NamedLayer(stack, -1, call, []))
    layers = [found[start] for start in sorted(found)]
    layers.sort(key=lambda layer: (layer.stack != "encoder", layer.call.start))
    for stack, names in containers.items():
        own = [layer for layer in layers if layer.stack == stack]
        numbers = [layer.call.name.rpartition(".")[2] for layer in own]
        is_plain = len(names) == 1 and len(set(numbers)) == len(own)
        for order, layer in enumerate(own):
            last = layer.call.name.rpartition(".")[2]
            layer.number = int(last) if is_plain and last.isdigit() else order
    for layer in layers:
        layer.inner = [one for one in recorded.calls if one.is_within(layer.call)]
        if any(layer.call is one.call for one in layer.attentions.values()):
            continue  # an attention by itself, in a list of attentions
        layer.before = _stream(layer.call.inputs, layer.call.outputs)
        layer.after = next(
            (
                one
                for one in layer.call.outputs
                if layer.before is not None and one.shape == layer.before.shape
            ),
            None,
        )
    return layers


def _attentions_alone(recorded: Recorder, kind: str) -> list[NamedLayer]:
    """A layer for each attention, in order, of a model whose layers have several of one kind.

    Such a layer has no residual stream: it is not given one, and its attention stands for it.
    """
    if kind == "encoder-decoder":
        raise ValueError("a layer has two attentions of one kind")
    return [
        NamedLayer(
            kind,
            number,
            attention.call,
            [one for one in recorded.calls if one.is_within(attention.call)],
            {"self_attention": attention},
        )
        for number, attention in enumerate(recorded.attentions)
    ]


N_ROWS_OF = {"source": 11, "target": 7}


def _layer_name(name: str, lists: set[str]) -> str:
    """The path of the outermost element of a list of modules that a module lies in."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        if ".".join(parts[:length]) in lists:
            return ".".join(parts[: length + 1])
    return name


def _stream(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Tensor | None:
    shapes = {tuple(one.shape) for one in outputs}
    for one in inputs:
        if one.ndim == 3 and one.is_floating_point() and tuple(one.shape) in shapes:
            return one
    return None


# --- one layer ------------------------------------------------------------------------------------


def _name_embedding(named: Named, stack: str, first: NamedLayer, recorded: Recorder) -> None:
    """The outputs of the embedding tables before the first layer."""
    if first.before is None:
        return
    named.d_model = first.before.shape[-1]
    n_tokens = first.before.shape[1]
    tokens: Call | None = None
    positional: tuple[Call, int] | None = None
    for call in recorded.calls:
        if call.start > first.call.start or not call.outputs:
            continue
        weight = getattr(call.module, "weight", None)
        out = call.outputs[0]
        if weight is None or weight.ndim != 2 or out.shape[-1] != weight.shape[-1]:
            continue
        if isinstance(call.module, nn.Embedding) and out.ndim >= 2:
            rows = out.reshape(-1, *out.shape[-2:]) if out.ndim == 3 else out[None]
            is_table = all(same(row, rows[0]) for row in rows)
            if out.ndim == 3 and not is_table and tokens is None and out.shape[1] == n_tokens:
                tokens = call
            elif is_table and rows.shape[1] == n_tokens:
                start = _offset_of(rows[0], weight)
                if start is not None and len(weight) > n_tokens:
                    positional = call, start
    width = named.d_model
    if tokens is not None and tokens.outputs[0].shape[-1] == width:
        point = named.point(f"{stack}.embedding.tokens", "batch query d_model", d_model=width)
        named.hooks.append(Hook(tokens, tokens.places[0], True, point))
    if positional is not None and positional[0].outputs[0].shape[-1] == width:
        call, start = positional
        named.tables[stack] = call.module, start
        point = named.point(f"{stack}.embedding.positional", "position d_model", d_model=width)
        named.hooks.append(Hook(call, call.places[0], True, point))
    point = named.point(f"{stack}.embedding.output", "batch query d_model", d_model=width)
    slot = _slot_of(first.call, first.before)
    named.hooks.append(Hook(first.call, slot, False, point))


def _offset_of(rows: Tensor, table: Tensor) -> int | None:
    """The first row of consecutive rows of a table; None: they are not consecutive rows of it."""
    starts = (table[: len(table) - len(rows) + 1] == rows[0]).all(dim=-1).nonzero().flatten()
    for start in starts.tolist():
        if torch.equal(table[start : start + len(rows)], rows):
            return int(start)
    return None


def _name_layer(named: Named, layer: NamedLayer) -> None:
    """All sites of a layer, in the order of a layer of this project."""
    for kind in ("self_attention", "cross_attention"):
        if kind in layer.attentions:
            _name_attention(named, layer, kind, layer.attentions[kind])
    router = find_router(layer)
    if router is not None:
        name_router(named, layer, router)
    else:
        _name_feed_forward(named, layer)
    _name_stream(named, layer)


def _name_attention(named: Named, layer: NamedLayer, kind: str, attention: AttentionCall) -> None:
    path = f"{layer.path}.{kind}"
    n_heads = attention.weights.shape[1]
    if not _is_by_head(attention.context, n_heads, attention.weights.shape[2]):
        raise ValueError(f"the context of {attention.call.name} is not by head and token")
    queries, keys, values = attention.queries, attention.keys, attention.values
    n_groups = n_heads if keys is None else keys.shape[1]
    d_value = attention.context.shape[-1]
    inside = [one for one in layer.inner if one.is_within(attention.call)] or layer.inner
    projected = {
        name: _slices(tensor, inside, attention, named.rotary_factors)
        for name, tensor in (("queries", queries), ("keys", keys))
        if tensor is not None
    }
    is_rotary = any(found is not None and found[2] for found in projected.values())
    named.is_rotary |= is_rotary
    made: dict[str, HookPoint | None] = dict.fromkeys(("queries", "keys", "values"))
    if is_rotary:
        for name, found in projected.items():
            if found is None:
                continue
            call, columns, _ = found
            axis = "query" if name == "queries" else "key"
            heads, width = (int(size) for size in columns.shape)
            point = named.point(
                f"{path}.{name}", f"batch head {axis} d_head", head=n_heads, d_head=width
            )
            whole = columns.repeat_interleave(n_heads // heads, dim=0)
            named.hooks.append(Hook(call, call.places[0], True, point, whole))
    n_queries, n_keys = attention.weights.shape[-2:]
    for name, tensor, axis in (
        ("queries", queries, "query"),
        ("keys", keys, "key"),
        ("values", values, "key"),
    ):
        n_tokens = n_queries if axis == "query" else n_keys
        if tensor is None or not _is_by_head(tensor, n_heads, n_tokens):
            named.omitted[f"{path}.{name}"] = "the model file computes them in a form of its own"
            continue
        has_twin = is_rotary and name != "values"
        site = f"{path}.rotated_{name}" if has_twin else f"{path}.{name}"
        made[name] = named.point(
            site, f"batch head {axis} d_head", head=n_heads, d_head=tensor.shape[-1]
        )
    axes = "batch head query key"
    scores = named.point(f"{path}.scores", axes, head=n_heads)
    weights = named.point(f"{path}.weights", axes, head=n_heads)
    sink = None
    if attention.has_sink:
        sink = named.point(f"{path}.sink", "batch head query", head=n_heads)
    context = named.point(
        f"{path}.context", "batch head query d_head", head=n_heads, d_head=d_value
    )
    points = AttentionPoints(
        path=path,
        n_heads=n_heads,
        n_groups=n_groups,
        is_fused=False,
        queries=made["queries"],
        keys=made["keys"],
        values=made["values"],
        scores=scores,
        weights=weights,
        context=context,
        sink=sink,
        order=attention.order,
    )
    named.attention_points.append((attention, points))
    _name_output(named, layer, path, attention)
    facts = _facts(path, kind, attention, n_groups)
    points.scale = facts.scale if facts.is_exact else None
    named.facts.append(facts)


def _is_by_head(tensor: Tensor, n_heads: int, n_tokens: int) -> bool:
    """Whether a tensor has the axes (batch, head or group, token, d_head)."""
    return (
        tensor.ndim == 4
        and tensor.shape[0] == N_ROWS
        and n_heads % tensor.shape[1] == 0
        and tensor.shape[2] == n_tokens
    )


def _slices(
    tensor: Tensor, inside: Sequence[Call], attention: AttentionCall, factors: Sequence[float]
) -> tuple[Call, Tensor, bool] | None:
    """The module whose output holds queries or keys before rotation.

    Rotation may multiply by one of the factors, as YaRN's does.

    Returns:
        Its call, the columns of each head (head, d_head), and whether they are rotated afterwards;
        None: there is no such module.
    """
    n_heads, n_tokens, width = tensor.shape[1:]
    for call in reversed(inside):
        if call.start > attention.time or not call.outputs:
            continue
        out = call.outputs[0]
        is_flat = out.ndim in (3, 4) and out.shape[:2] == (len(tensor), n_tokens)
        if not is_flat or out.flatten(2).shape[-1] < n_heads * width:
            continue
        flat = out.flatten(2)
        for factor in factors:
            index = _columns(flat[0, 0] * factor, tensor[0, :, 0])
            if index is None:
                continue
            found = flat[..., index].transpose(1, 2) * factor
            if same(found, tensor):
                return call, index, False
            if same(found.norm(dim=-1), tensor.norm(dim=-1), 10):
                return call, index, True
    return None


def _columns(row: Tensor, heads: Tensor) -> Tensor | None:
    """The columns (head, d_head) of a row that hold the vectors of the heads; None: not all do."""
    width = heads.shape[-1]
    windows, columns = row.unfold(0, width, 1), []
    for head in heads:
        far = (windows - head).abs().amax(dim=-1)
        start = int(far.argmin())
        if float(far[start]) > tolerance_of(row) * float(head.abs().max()) or start in columns:
            return None
        columns.append(start)
    starts = torch.tensor(columns, device=row.device)
    return starts[:, None] + torch.arange(width, device=row.device)


def _name_output(named: Named, layer: NamedLayer, path: str, attention: AttentionCall) -> None:
    """The projection of the context, and its output."""
    rows = attention.context.transpose(1, 2).flatten(2)
    for call in layer.inner:
        weight = getattr(call.module, "weight", None)
        if call.start < attention.time or weight is None or weight.ndim != 2 or not call.inputs:
            continue
        read = call.inputs[0]
        if read.numel() == rows.numel() and same(read.reshape(rows.shape), rows):
            width = call.outputs[0].shape[-1]
            if width == named.d_model:
                point = named.point(f"{path}.output", "batch query d_model", d_model=width)
                named.hooks.append(Hook(call, call.places[0], True, point))
                named.projections[path] = call.module
                return
    named.omitted[f"{path}.output"] = (
        "no module takes the context as it is, so what each head writes is not known"
    )


def _name_feed_forward(named: Named, layer: NamedLayer) -> None:
    """The feed-forward network: the projection back to the stream, what it reads, and before it."""
    last = max((one.time for one in layer.attentions.values()), default=layer.call.start)
    later = [one for one in layer.inner if one.outputs and one.start > last]
    of_attention = {id(hook.call) for hook in named.hooks if hook.point in _points_of(named, layer)}
    downs = [
        one
        for one in later
        if id(one) not in of_attention
        and one.inputs
        and getattr(getattr(one.module, "weight", None), "ndim", 0) == 2
        and one.outputs[0].shape[-1] == named.d_model
        and one.inputs[0].shape[-1] >= named.d_model
        and one.outputs[0].numel() == N_ROWS * _n_tokens(layer) * named.d_model
    ]
    if not downs or layer.before is None:
        return
    down = downs[-1]
    width = down.inputs[0].shape[-1]
    named.d_ff = max(named.d_ff, width)
    path = f"{layer.path}.feed_forward"
    activations = [
        one
        for one in later
        if one.start < down.start
        and one.outputs
        and one.outputs[0].shape[-1] in (width, 2 * width)
        and any(part in type(one.module).__name__.lower() for part in _ACTIVATIONS)
        and not list(one.module.parameters(recurse=False))
        and not list(one.module.children())
    ]
    if activations and activations[-1].inputs:
        call = activations[-1]
        named.activation = type(call.module).__name__
        size = call.inputs[0].shape[-1]
        point = named.point(f"{path}.preactivation", "batch query d_ff", d_ff=size)
        named.hooks.append(Hook(call, call.slots[0], False, point))
    point = named.point(f"{path}.hidden", "batch query d_ff", d_ff=width)
    named.hooks.append(Hook(down, down.slots[0], False, point))
    point = named.point(f"{path}.output", "batch query d_model", d_model=named.d_model)
    named.hooks.append(Hook(down, down.places[0], True, point))


def _points_of(named: Named, layer: NamedLayer) -> set[HookPoint]:
    return {point for name, point in named.points.items() if name.startswith(f"{layer.path}.")}


def _n_tokens(layer: NamedLayer) -> int:
    return 0 if layer.before is None else layer.before.shape[1]


def _name_stream(named: Named, layer: NamedLayer) -> None:
    """The residual stream before, between, in the middle of and after a layer; and its norms."""
    path, width = f"{layer.path}.residual", named.d_model
    if layer.before is None or layer.after is None:
        named.omitted[path] = "the layers of this model are no modules that are given the stream"
        return
    axes = "batch query d_model"
    point = named.point(f"{path}.before", axes, d_model=width)
    named.hooks.append(Hook(layer.call, _slot_of(layer.call, layer.before), False, point))
    base = layer.before
    attentions = list(layer.attentions.values())
    for order, attention in enumerate(attentions):
        until = attentions[order + 1].time if order + 1 < len(attentions) else layer.call.end
        name = "between" if order + 1 < len(attentions) else "middle"
        found = _sum_after(layer, base, attention, until)
        if found is None:
            named.omitted[f"{path}.{name}"] = (
                "attention and feed-forward network read the same stream, so there is none"
            )
            break
        call, is_output = found
        tensor = call.outputs[0] if is_output else call.inputs[0]
        if is_output:
            named.norm_place = "post"
        slot = call.places[0] if is_output else call.slots[0]
        point = named.point(f"{path}.{name}", axes, d_model=width)
        named.hooks.append(Hook(call, slot, is_output, point))
        base = tensor
    place = next(
        place
        for place, out in zip(layer.call.places, layer.call.outputs, strict=True)
        if out.shape == layer.before.shape
    )
    point = named.point(f"{path}.after", axes, d_model=width)
    named.hooks.append(Hook(layer.call, place, True, point))
    _name_norms(named, layer)


def _name_norms(named: Named, layer: NamedLayer) -> None:
    """The outputs of the norms before attention and before the feed-forward network."""
    norms = [one for one in layer.inner if is_norm(one) and _has_stream_shape(one, layer)]
    if norms:
        kind = type(norms[0].module).__name__.lower()
        named.norm = "rms_norm" if "rms" in kind or "t5" in kind else "layer_norm"
    first = next(iter(layer.attentions.values()), None)
    if first is None:
        return
    if any(one.end < first.time for one in norms) and named.norm_place == "pre":
        afterwards = [one for one in norms if one.start > first.time]
        if len(afterwards) + sum(one.end < first.time for one in norms) > len(layer.attentions) + 1:
            named.norm_place = "both"
    names = ["attention_norm", *(["cross_attention_norm"] * (len(layer.attentions) > 1))]
    names.append("feed_forward_norm")
    if len(norms) == len(names):
        for name, call in zip(names, norms, strict=True):
            point = named.point(
                f"{layer.path}.{name}", "batch query d_model", d_model=named.d_model
            )
            named.hooks.append(Hook(call, call.places[0], True, point))


def is_norm(call: Call) -> bool:
    """Whether a module is a norm, by its class's name."""
    return "norm" in type(call.module).__name__.lower() and not list(call.module.children())


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
    """The first module after an attention that is given the stream plus what was written to it.

    Returns:
        Its call, and whether the stream is its output: a norm of the sum itself. None: there is
        none.
    """
    entering = [one for one in attention.call.inputs if one.shape == base.shape]
    is_normed_first = bool(entering) and not same(base, entering[0])
    written = [
        one.outputs[0]
        for one in layer.inner
        if one.outputs and one.end > attention.time and one.outputs[0].shape == base.shape
    ]
    for call in layer.inner:
        if call.start < attention.time or call.start > until or not _has_stream_shape(call, layer):
            continue
        if call.inputs[0].numel() != base.numel():
            continue
        read = call.inputs[0].reshape(base.shape)
        difference = read - base
        if float(difference.abs().max()) <= tolerance_of(base) * float(base.abs().max()):
            continue
        if any(_is_multiple(difference, one) for one in written if not same(one, read)):
            is_output = is_norm(call) and not is_normed_first
            return call, is_output
    return None


def _is_multiple(first: Tensor, second: Tensor) -> bool:
    one, other = first.double().flatten(), second.double().flatten()
    product = float(one.norm() * other.norm())
    least = 1 - 0.1 * tolerance_of(first)
    return product > 0 and abs(float(one @ other)) > least * product


def _slot_of(call: Call, tensor: Tensor) -> int | str:
    for slot, one in zip(call.slots, call.inputs, strict=True):
        if one is tensor:
            return slot
    return call.slots[0]


def tolerance_of(tensor: Tensor) -> float:
    """The difference that rounding may make, as a share of the greatest number."""
    return TOLERANCE if tensor.dtype in (torch.float32, torch.float64) else IN_LOWER_PRECISION


def same(first: Tensor, second: Tensor, factor: float = 1) -> bool:
    """Whether two tensors have one shape and equal numbers, up to rounding."""
    if first.shape != second.shape:
        return False
    scale = float(second.abs().max()) if second.numel() else 0.0
    limit = factor * tolerance_of(second) * scale
    return float((first - second).abs().max()) <= limit if second.numel() else True


# --- the terms of a softmax -----------------------------------------------------------------------


def _facts(path: str, kind: str, attention: AttentionCall, n_groups: int) -> AttentionFacts:
    options, queries, keys = attention.options, attention.queries, attention.keys
    scores = attention.scores
    causal = kind == "self_attention" and is_causal(attention.weights)
    softcap = next(
        (
            float(value)
            for name, value in options.items()
            if "softcap" in name and isinstance(value, int | float)
        ),
        None,
    )
    window = options.get("sliding_window")
    scale = options.get("scaling")
    if scale is None and queries is not None:
        scale = queries.shape[-1] ** -0.5 if attention.has_interface else None
    is_exact = has_bias = False
    if queries is not None and keys is not None and queries.shape[-1] == keys.shape[-1]:
        whole = keys.repeat_interleave(scores.shape[1] // keys.shape[1], dim=1)
        product = queries.float() @ whole.float().transpose(-1, -2)
        seen = scores > torch.finfo(scores.dtype).min / 2
        if scale is None:
            scale = _fit(product, scores, seen)
        made = product * scale
        if softcap:
            made = torch.tanh(made / softcap) * softcap
        rest = torch.where(seen, scores.float() - made, 0.0)
        limit = tolerance_of(scores) * max(1.0, float(made.abs().max()))
        if attention.has_sink or float(rest.abs().max()) <= limit:
            is_exact = float(rest.abs().max()) <= limit
        else:  # a bias is the same for every text
            has_bias = float((rest[0] - rest[-1]).abs().max()) <= limit
            is_exact = has_bias
    return AttentionFacts(
        path=path,
        is_causal=causal,
        n_heads=scores.shape[1],
        n_groups=n_groups,
        scale=None if scale is None else float(scale),
        softcap=softcap,
        window=window if isinstance(window, int) and not isinstance(window, bool) else None,
        has_bias=has_bias,
        has_sink=attention.has_sink,
        is_exact=is_exact,
    )


def _fit(product: Tensor, scores: Tensor, seen: Tensor) -> float | None:
    """The factor between Q·Kᵀ and the scores, by the differences of two texts."""
    first, second = product[0][seen[0]], product[-1][seen[-1]]
    one, other = scores[0][seen[0]], scores[-1][seen[-1]]
    if first.shape != second.shape:
        return None
    left, right = (first - second).double(), (one - other).double()
    square = float(left @ left)
    return float(left @ right) / square if square > 0 else None
