"""The layers of a recorded pass: which module's call is which layer of which stack."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from headlight.model.foreign.attention_facts import is_causal
from headlight.model.foreign.probe import N_SOURCE, AttentionCall, Recorder
from headlight.model.foreign.sites import NamedLayer


def kind_of(task: str, attentions: Sequence[AttentionCall]) -> str:
    """The kind of a model: decoder, encoder or encoder-decoder."""
    if task == "seq2seq":
        return "encoder-decoder"
    return "decoder" if any(is_causal(each.weights) for each in attentions) else "encoder"


def layers_of(model: nn.Module, kind: str, recorded: Recorder) -> list[NamedLayer]:
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
            stack = "encoder" if n_queries == N_SOURCE else "decoder"
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
        which = "cross_attention" if n_queries != n_keys else "self_attention"
        if which in layer.attentions:
            return _attentions_alone(recorded, kind)
        layer.attentions[which] = attention
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
        layer.before = _stream_of(layer.call.inputs, layer.call.outputs)
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


def _layer_name(name: str, lists: set[str]) -> str:
    """The path of the outermost element of a list of modules that a module lies in."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        if ".".join(parts[:length]) in lists:
            return ".".join(parts[: length + 1])
    return name


def _stream_of(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Tensor | None:
    shapes = {tuple(one.shape) for one in outputs}
    for one in inputs:
        if one.ndim == 3 and one.is_floating_point() and tuple(one.shape) in shapes:
            return one
    return None
