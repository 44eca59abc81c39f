"""Name the sites of a model by the numbers of a recorded pass, and let its tensors pass them.

Tensors are identified by value. The projection W_O is the module whose input is the context. The
residual stream is what a layer is given and what it returns; its middle is the first input that
equals the stream plus something written after the attention. The queries before rotation are the
slices of a projection that equal the rotated ones at position 0, which rotation does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.foreign.attention_facts import facts_of, is_causal, same, span_of
from headlight.model.foreign.matrices import find_source, name_matrix
from headlight.model.foreign.outputs import output_of, site_of
from headlight.model.foreign.points import AttentionPoints
from headlight.model.foreign.probe import N_ROWS, N_SOURCE, AttentionCall, Call, Recorder
from headlight.model.foreign.residual_stream import name_feed_forward, name_stream, slot_of
from headlight.model.foreign.routers import find_router, name_router
from headlight.model.foreign.sites import Hook, Named, NamedLayer
from headlight.model.hooks import HookPoint


def name_sites(model: Any, task: str, recorded: Recorder) -> Named:
    """Name the sites of a recorded pass.

    Args:
        model: of Transformers.
        task: one of `loading.TASKS`.
        recorded: a pass of the model.

    Raises:
        ValueError: the model has no attention that could be named.
    """
    named = Named(text_config=model.config.get_text_config())
    if not recorded.attentions:
        raise ValueError(_reason_without_attention(recorded))
    named.kind = kind_of(task, recorded.attentions)
    named.d_model = model.get_input_embeddings().weight.shape[-1]  # if the stream is not known
    scalings = (getattr(module, "attention_scaling", 1.0) for module in model.modules())
    named.rotary_factors = list(dict.fromkeys([1.0, *map(float, scalings)]))
    named.layers = layers_of(model, named.kind, recorded)
    named.n_layers = max(layer.number for layer in named.layers) + 1
    for stack in dict.fromkeys(layer.stack for layer in named.layers):
        layers = [layer for layer in named.layers if layer.stack == stack]
        _name_embedding(named, stack, layers[0], recorded)
        for layer in layers:
            _name_layer(named, layer)
    site, axes = site_of(task)
    width = output_of(task, recorded.output, N_SOURCE).shape[-1]
    last = axes.split()[-1]
    named.point(site, axes, **({} if last == "query" else {last: width}))
    return named


def _reason_without_attention(recorded: Recorder) -> str:
    whole = [softmax for softmax in recorded.softmaxes if softmax[1][-2:] in recorded.lengths]
    if whole:
        return (
            f"the softmax of its attention is computed by a {whole[0][0]}, apart from the products "
            "of queries, keys and values"
        )
    if other := recorded.other_shape():
        return f"no softmax is over the tokens of the text{other}"
    return "no softmax attention was found in a pass of the model"


def kind_of(task: str, attentions: Sequence[AttentionCall]) -> str:
    """Return the kind of a model: decoder, encoder or encoder-decoder."""
    if task == "seq2seq":
        return "encoder-decoder"
    return "decoder" if any(is_causal(each.weights) for each in attentions) else "encoder"


def layers_of(model: nn.Module, kind: str, recorded: Recorder) -> list[NamedLayer]:
    """Return the layers of each stack, in order, also those without attention."""
    lists = {name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    by_start: dict[int, NamedLayer] = {}
    containers: dict[str, set[str]] = {}
    for attention in recorded.attentions:
        n_queries, n_keys = attention.scores.shape[-2:]
        if kind != "encoder-decoder" and n_queries != n_keys:
            raise ValueError("the keys of an attention are not the tokens of the text")
        stack = kind
        if kind == "encoder-decoder":
            stack = "encoder" if n_queries == N_SOURCE else "decoder"
        name = _path_of_layer(attention.call.name, lists)
        call = next(
            (
                candidate
                for candidate in recorded.calls
                if candidate.name == name and candidate.start <= attention.time <= candidate.end
            ),
            attention.call,
        )
        containers.setdefault(stack, set()).add(name.rpartition(".")[0])
        layer = by_start.setdefault(call.start, NamedLayer(stack, -1, call, []))
        which = "cross_attention" if n_queries != n_keys else "self_attention"
        if known := layer.attentions.get(which):
            # A module may attend twice with the same weights, to other values.
            if known.call is attention.call and same(attention.weights, known.weights):
                layer.repeated.add(which)
                continue
            return _attentions_alone(recorded, kind)
        layer.attentions[which] = attention
    for stack, names in containers.items():  # layers of a hybrid that have no attention
        if len(names) != 1:
            continue
        (container,) = names
        for call in recorded.calls:
            parent, _, last = call.name.rpartition(".")
            if parent == container and last.isdigit() and call.outputs:
                by_start.setdefault(call.start, NamedLayer(stack, -1, call, []))
    layers = [by_start[start] for start in sorted(by_start)]
    layers.sort(key=lambda layer: (layer.stack != "encoder", layer.call.start))
    for stack, names in containers.items():
        of_stack = [layer for layer in layers if layer.stack == stack]
        numbers = [layer.call.name.rpartition(".")[2] for layer in of_stack]
        is_plain = len(names) == 1 and len(set(numbers)) == len(of_stack)
        for order, layer in enumerate(of_stack):
            last = layer.call.name.rpartition(".")[2]
            layer.number = int(last) if is_plain and last.isdigit() else order
    for layer in layers:
        layer.inner = [call for call in recorded.calls if call.is_within(layer.call)]
        if any(layer.call is points.call for points in layer.attentions.values()):
            continue  # an attention by itself, in a list of attentions
        layer.before = _stream_of(layer.call.inputs, layer.call.outputs)
        layer.after = next(
            (
                tensor
                for tensor in layer.call.outputs
                if layer.before is not None and tensor.shape == layer.before.shape
            ),
            None,
        )
    return layers


def _attentions_alone(recorded: Recorder, kind: str) -> list[NamedLayer]:
    """Return a layer for each attention, where layers have several of one kind.

    Such a layer has no residual stream, so its only module is its attention.
    """
    if kind == "encoder-decoder":
        raise ValueError("a layer has two attentions of one kind")
    return [
        NamedLayer(
            kind,
            number,
            attention.call,
            [call for call in recorded.calls if call.is_within(attention.call)],
            {"self_attention": attention},
        )
        for number, attention in enumerate(recorded.attentions)
    ]


def _path_of_layer(name: str, lists: set[str]) -> str:
    """Return the path of the outermost element of a list of modules that a module lies in."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        if ".".join(parts[:length]) in lists:
            return ".".join(parts[: length + 1])
    return name


def _stream_of(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Tensor | None:
    shapes = {tuple(tensor.shape) for tensor in outputs}
    for tensor in inputs:
        is_by_row = tensor.ndim == 3 and tensor.shape[0] == N_ROWS  # XLNet's has its tokens first
        if is_by_row and tensor.is_floating_point() and tuple(tensor.shape) in shapes:
            return tensor
    return None


def _name_embedding(named: Named, stack: str, first: NamedLayer, recorded: Recorder) -> None:
    """Return the outputs of the embedding tables before the first layer."""
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
        named.embeddings[stack] = tokens.module
    else:
        reason = "no table of vectors as wide as the stream is looked up by the tokens"
        named.omitted[f"{stack}.embedding.W_E"] = reason
    if positional is not None and positional[0].outputs[0].shape[-1] == width:
        call, start = positional
        named.tables[stack] = call.module, start
        point = named.point(f"{stack}.embedding.positional", "position d_model", d_model=width)
        named.hooks.append(Hook(call, call.places[0], True, point))
    point = named.point(f"{stack}.embedding.output", "batch query d_model", d_model=width)
    slot = slot_of(first.call, first.before)
    named.hooks.append(Hook(first.call, slot, False, point))


def _offset_of(rows: Tensor, table: Tensor) -> int | None:
    """Return the first of consecutive rows of a table; None: they are not consecutive."""
    starts = (table[: len(table) - len(rows) + 1] == rows[0]).all(dim=-1).nonzero().flatten()
    for start in starts.tolist():
        if torch.equal(table[start : start + len(rows)], rows):
            return int(start)
    return None


def _name_layer(named: Named, layer: NamedLayer) -> None:
    """Name all sites of a layer, in the order of a layer of this project."""
    for kind in ("self_attention", "cross_attention"):
        if kind in layer.attentions:
            _name_attention(named, layer, kind, layer.attentions[kind])
    router = find_router(layer)
    if router is not None:
        name_router(named, layer, router)
    else:
        name_feed_forward(named, layer)
    name_stream(named, layer)


_REPEATED = "it attends several times with the same weights, each time to other values"


def _name_attention(named: Named, layer: NamedLayer, kind: str, attention: AttentionCall) -> None:
    path = f"{layer.path}.{kind}"
    n_heads = attention.weights.shape[1]
    if not _is_by_head(attention.context, n_heads, attention.weights.shape[2]):
        raise ValueError(f"the context of {attention.call.name} is not by head and token")
    n_groups = n_heads if attention.keys is None else attention.keys.shape[1]
    made = _name_projections(named, layer, kind, attention)
    axes = "batch head query key"
    scores = named.point(f"{path}.scores", axes, head=n_heads)
    weights = named.point(f"{path}.weights", axes, head=n_heads)
    sink = None
    if attention.has_sink:
        sink = named.point(f"{path}.sink", "batch head query", head=n_heads)
    context = HookPoint("batch head query d_head", head=n_heads, d_head=attention.context.shape[-1])
    if kind in layer.repeated:
        named.omitted[f"{path}.context"] = _REPEATED
    else:
        named.points[f"{path}.context"] = context
    facts = facts_of(path, kind, attention, n_groups, span_of(named.text_config, layer.number))
    points = AttentionPoints(
        n_heads=n_heads,
        n_groups=n_groups,
        facts=facts,
        queries=made.get("queries"),
        keys=made.get("keys"),
        values=made.get("values"),
        scores=scores,
        weights=weights,
        context=context,
        sink=sink,
        order=attention.order,
    )
    named.attention_points.append((attention, points))
    if kind in layer.repeated:
        named.omitted[f"{path}.output"] = _REPEATED
    else:
        _name_output(named, layer, path, attention)
    if facts.has_bias and facts.scale is not None:
        points.bias = named.point(f"{path}.bias", axes, head=n_heads)


def _name_projections(
    named: Named, layer: NamedLayer, kind: str, attention: AttentionCall
) -> dict[str, HookPoint]:
    """Name queries, keys and values, before their rotation too, and what projects them."""
    path = f"{layer.path}.{kind}"
    _, n_heads, n_queries, n_keys = attention.weights.shape
    projected = {
        "queries": ("query", n_queries, attention.queries),
        "keys": ("key", n_keys, attention.keys),
        "values": ("key", n_keys, attention.values),
    }
    inside = [call for call in layer.inner if call.is_within(attention.call)] or layer.inner
    sources = {
        name: find_source(tensor, inside, attention.time, named.rotary_factors)
        for name, (_, _, tensor) in projected.items()
        if tensor is not None
    }
    is_rotary = any(source is not None and source.is_rotated for source in sources.values())
    named.is_rotary |= is_rotary
    for name, source in sources.items():
        if is_rotary and source is not None and name != "values":
            heads, width = (int(size) for size in source.columns.shape)
            axes = f"batch head {projected[name][0]} d_head"
            point = named.point(f"{path}.{name}", axes, head=n_heads, d_head=width)
            whole = source.columns.repeat_interleave(n_heads // heads, dim=0)
            place = source.call.places[0]
            named.hooks.append(Hook(source.call, place, True, point, whole, source.is_by_head))
    for letter, name in (("Q", "queries"), ("K", "keys"), ("V", "values")):
        name_matrix(named, f"{path}.W_{letter}", n_heads, sources.get(name), inside)
    made = {}
    for name, (axis, n_tokens, tensor) in projected.items():
        if name == "values" and kind in layer.repeated:
            named.omitted[f"{path}.values"] = _REPEATED
            continue
        if tensor is None or not _is_by_head(tensor, n_heads, n_tokens):
            named.omitted[f"{path}.{name}"] = "the model file computes them in another form"
            continue
        site = f"{path}.rotated_{name}" if is_rotary and name != "values" else f"{path}.{name}"
        axes = f"batch head {axis} d_head"
        made[name] = named.point(site, axes, head=n_heads, d_head=tensor.shape[-1])
    return made


def _is_by_head(tensor: Tensor, n_heads: int, n_tokens: int) -> bool:
    """Return True if a tensor has the axes (batch, head or group, token, d_head)."""
    return (
        tensor.ndim == 4
        and tensor.shape[0] == N_ROWS
        and n_heads % tensor.shape[1] == 0
        and tensor.shape[2] == n_tokens
    )


def _name_output(named: Named, layer: NamedLayer, path: str, attention: AttentionCall) -> None:
    """Return the projection of the context, and its output."""
    rows = attention.context.transpose(1, 2).flatten(2)
    for call in layer.inner:
        weight = getattr(call.module, "weight", None)
        if call.start < attention.time or weight is None or weight.ndim != 2 or not call.inputs:
            continue
        given = call.inputs[0]
        if given.numel() == rows.numel() and same(given.reshape(rows.shape), rows):
            width = call.outputs[0].shape[-1]
            if width == named.d_model:
                point = named.point(f"{path}.output", "batch query d_model", d_model=width)
                named.hooks.append(Hook(call, call.places[0], True, point))
                named.projections[path] = call.module
                return
    named.omitted[f"{path}.output"] = (
        "no module takes the context as it is, so what each head writes is not known"
    )
