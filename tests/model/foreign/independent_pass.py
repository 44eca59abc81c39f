"""Passes of a bare Transformers module, captured and edited by hooks that Headlight has no part in.

A `Layout` says where the parts of a layer are. It is written down by hand from the model files, so
that nothing which Headlight found by itself is believed here.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

Key = tuple[str, int, str]
"""A stack, a layer, and a part or place of it."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The modules of one stack, by their paths in the model and in a layer.

    ``attention`` is the output projection and ``values`` the module that makes the values, with the
    way in which they lie in its output (see `_by_head`). ``writes`` has the norm whose output
    enters the stream, where that is another; ``factors`` have the name of the number in the
    configuration by which a part's output is multiplied first, ``carries`` that of the layer's
    vector by which the stream before it is. ``middle`` and ``between``: the norms over the stream
    in a post-norm model. ``norm``: the last one. ``is_sum`` False: a layer adds to a norm of the
    stream. ``is_split`` False: the output projection is not given what the heads read. ``chosen``
    is how many of the router's logits, at ``logits_at`` in its output, are chosen; None: the router
    puts the choice out.
    """

    layers: str = "model.layers"
    attention: str = "self_attn.o_proj"
    values: tuple[str, str] = ("self_attn.v_proj", "plain")
    cross_attention: str | None = None
    cross_values: tuple[str, str] = ("", "plain")
    feed_forward: str = "mlp"
    writes: Mapping[str, str] = field(default_factory=dict)
    factors: Mapping[str, str] = field(default_factory=dict)
    carries: Mapping[str, str] = field(default_factory=dict)
    middle: str | None = None
    between: str | None = None
    norm: str | None = "model.norm"
    router: str | None = None
    chosen: int | None = None
    logits_at: int = 0
    is_parallel: bool = False
    is_sum: bool = True
    is_split: bool = True

    @property
    def outputs(self) -> dict[str, str]:
        """The module that makes the output of each part."""
        parts = {"self_attention": self.attention, "feed_forward": self.feed_forward}
        return parts | (
            {"cross_attention": self.cross_attention} if self.cross_attention is not None else {}
        )


def _of_text(value: Tensor) -> Tensor:
    """Return the tensor of the only text; OPT's feed-forward network flattens the batch."""
    return value[0] if value.ndim > 2 else value


def _tensor(output: object) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


@dataclass
class Captured:
    """The tensors of one pass, without the batch axis; `at` has those of layers."""

    logits: Tensor
    at: dict[Key, Tensor]
    weights: dict[Key, Tensor]


@dataclass
class Reader:
    """Reads one text with a module; with edits of tensors, and with gradients.

    Args:
        module: with eager attention.
        layouts: of its stacks.
        ids: of the text.
        target: of the decoder of an encoder-decoder.
    """

    module: torch.nn.Module
    layouts: Mapping[str, Layout]
    ids: list[int]
    target: list[int] | None = None

    @property
    def stack(self) -> str:
        """The stack that predicts."""
        return list(self.layouts)[-1]

    def layers(self, stack: str) -> torch.nn.ModuleList:
        """Return the layers of a stack."""
        return self.module.get_submodule(self.layouts[stack].layers)

    @cached_property
    def plain(self) -> Captured:
        """The pass without edits."""
        return self.read()

    def read(
        self,
        edits: Mapping[Key, Callable[[Tensor], Tensor]] | None = None,
        *,
        ids: list[int] | None = None,
        with_gradients: bool = False,
    ) -> Captured:
        """Run a pass, each edit applied to the tensor of its key.

        The keys are (stack, layer, what): ``before`` and ``after`` are the input and output of a
        layer, ``self_attention`` and so on what a part puts out, ``self_attention.context`` what
        its output projection reads, ``self_attention.values`` the module of the values,
        ``self_attention.write`` what enters the stream, ``middle`` and ``between`` norms over it.
        """
        at: dict[Key, Tensor] = {}
        changes = dict(edits or {})

        def seen(key: Key, value: Tensor) -> Tensor:
            if key in changes:
                value = changes[key](_of_text(value).clone()).reshape(value.shape)
            at[key] = _of_text(value) if with_gradients else _of_text(value).clone()
            return value

        def of_input(key: Key) -> Callable:
            def hook(_, args, options):
                if args:
                    return (seen(key, args[0]), *args[1:]), options
                return args, {**options, "hidden_states": seen(key, options["hidden_states"])}

            return hook

        def of_output(key: Key) -> Callable:
            def hook(_, __, output):
                value = seen(key, _tensor(output))
                return (value, *output[1:]) if isinstance(output, tuple) else value

            return hook

        def watch(layer: torch.nn.Module, path: str, key: Key) -> None:
            handles.callback(layer.get_submodule(path).register_forward_hook(of_output(key)).remove)

        inputs = {"input_ids": torch.tensor([self.ids if ids is None else ids])}
        if self.target is not None:
            inputs["decoder_input_ids"] = torch.tensor([self.target])
        with ExitStack() as handles, torch.set_grad_enabled(with_gradients):
            for stack, layout in self.layouts.items():
                for number, layer in enumerate(self.layers(stack)):
                    key = (stack, number)
                    for part, path in layout.outputs.items():
                        watch(layer, path, (*key, part))
                        if part != "feed_forward":
                            hook = of_input((*key, f"{part}.context"))
                            projection = layer.get_submodule(path)
                            handle = projection.register_forward_pre_hook(hook, with_kwargs=True)
                            handles.callback(handle.remove)
                    watch(layer, layout.values[0], (*key, "self_attention.values"))
                    if layout.cross_attention:
                        watch(layer, layout.cross_values[0], (*key, "cross_attention.values"))
                    for part, path in layout.writes.items():
                        watch(layer, path, (*key, f"{part}.write"))
                    for place in ("middle", "between"):
                        if path := getattr(layout, place):
                            watch(layer, path, (*key, place))
                    hook = of_input((*key, "before"))
                    handle = layer.register_forward_pre_hook(hook, with_kwargs=True)
                    handles.callback(handle.remove)
                    watch(layer, "", (*key, "after"))
            out = self.module(**inputs, output_attentions=True, use_cache=False)
        return Captured(out.logits[0], at, self._weights(out))

    def _weights(self, out: object) -> dict[Key, Tensor]:
        if self.target is None:
            kinds = {(self.stack, "self_attention"): out.attentions}
        else:
            kinds = {
                ("encoder", "self_attention"): out.encoder_attentions,
                ("decoder", "self_attention"): out.decoder_attentions,
                ("decoder", "cross_attention"): out.cross_attentions,
            }
        return {
            (stack, layer, kind): weights[0]
            for (stack, kind), layers in kinds.items()
            for layer, weights in enumerate(layers)
        }

    # --- of the pass without edits, as NumPy in float64 --------------------------------------

    def array(self, stack: str, layer: int, what: str) -> np.ndarray:
        """Return a tensor of the pass."""
        return self.plain.at[stack, layer, what].double().numpy()

    def weights(self, *key: str | int) -> np.ndarray:
        """Return the weights of an attention (head, query, key)."""
        return self.plain.weights[key].double().numpy()

    def factor(self, stack: str, part: str) -> float:
        """Return the number by which an output is multiplied before it is added."""
        name = self.layouts[stack].factors.get(part)
        return getattr(self.module.config, name) if name else 1.0

    def carry(self, stack: str, layer: int, part: str) -> np.ndarray:
        """Return the factor of the stream before a part's output is added."""
        name = self.layouts[stack].carries.get(part)
        if name is None:
            return np.ones(1)
        return getattr(self.layers(stack)[layer], name).detach().double().numpy()

    def gain(self, stack: str, layer: int, part: str) -> np.ndarray:
        """Return the factors (query, d_model) of a part's output: a number or a norm's scale."""
        path = self.layouts[stack].writes.get(part)
        if path is None:
            return np.full((1, 1), self.factor(stack, part))
        norm = self.layers(stack)[layer].get_submodule(path)
        epsilon = getattr(norm, "eps", None) or norm.variance_epsilon
        weight = norm.weight.detach().double().numpy() + ("Gemma" in type(norm).__name__)
        square = (self.array(stack, layer, part) ** 2).mean(axis=-1, keepdims=True)
        return weight / np.sqrt(square + epsilon)

    def entering(self, stack: str, part: str) -> str:
        """Return the place at which the output of a part enters the stream, but for a number."""
        return f"{part}.write" if part in self.layouts[stack].writes else part

    def write(self, stack: str, layer: int, part: str) -> np.ndarray:
        """Return the vectors that a part adds to the stream."""
        written = self.array(stack, layer, self.entering(stack, part))
        return written * self.factor(stack, part)

    def parts(self, stack: str) -> list[str]:
        """Return the parts of a layer in order."""
        order = ("self_attention", "cross_attention", "feed_forward")
        return [part for part in order if part in self.layouts[stack].outputs]

    def streams(self, stack: str, layer: int) -> dict[str, np.ndarray]:
        """Return the stream before, within and after a layer.

        Raises:
            AssertionError: the layout is wrong: the stream is not the sum of the parts.
        """
        layout, parts = self.layouts[stack], self.parts(stack)
        places = ["before", *(["between"] if layout.cross_attention else []), "middle"]
        streams = {"before": self.array(stack, layer, "before")}
        for part, place in zip(parts[:-1], places[1:], strict=True):
            if layout.middle:
                streams[place] = self.array(stack, layer, place)
            else:
                before = list(streams.values())[-1] * self.carry(stack, layer, part)
                streams[place] = before + self.write(stack, layer, part)
        streams["after"] = self.array(stack, layer, "after")
        if layout.is_sum and not layout.middle:
            end = streams["middle"] * self.carry(stack, layer, parts[-1])
            end = end + self.write(stack, layer, parts[-1])
            np.testing.assert_allclose(end, streams["after"], atol=1e-5 * np.abs(end).max())
        return streams

    def values(self, stack: str, layer: int, kind: str) -> np.ndarray:
        """Return the values (head, key, d_head), one row for each query head."""
        layout = self.layouts[stack]
        n_heads = len(self.plain.weights[stack, layer, kind])
        d_head = self.array(stack, layer, f"{kind}.context").shape[-1] // n_heads
        how = layout.values[1] if kind == "self_attention" else layout.cross_values[1]
        return self._by_head(self.array(stack, layer, f"{kind}.values"), how, n_heads, d_head)

    def _by_head(self, made: np.ndarray, how: str, n_heads: int, d_head: int) -> np.ndarray:
        """Return values from the output of a module.

        ``plain``: values only, perhaps fewer groups than heads; ``nested``: the last of each head's
        part; ``heads``, ``groups``, ``single``: the last columns, for so many groups; ``clipped``:
        the same for groups, kept within ±1.
        """
        if how == "clipped":
            made = made.clip(-1, 1)
        if how == "nested":
            return made.reshape(len(made), n_heads, -1)[..., -d_head:].swapaxes(0, 1)
        n_groups = {"plain": made.shape[-1] // d_head, "heads": n_heads, "single": 1}.get(how, 2)
        by_group = made[:, -n_groups * d_head :].reshape(len(made), n_groups, d_head)
        return by_group.swapaxes(0, 1).repeat(n_heads // n_groups, axis=0)

    def by_head(self, stack: str, layer: int, kind: str, contexts: np.ndarray) -> np.ndarray:
        """Return the vectors (head, row, d_model) that W_O makes of each head's part.

        Args:
            stack: of the attention.
            layer: of the attention.
            kind: of the attention.
            contexts: (head, row, d_head).
        """
        projection = self.layers(stack)[layer].get_submodule(self.layouts[stack].outputs[kind])
        n_heads, n_rows, d_head = contexts.shape
        split = torch.zeros(n_heads, n_rows, n_heads, d_head)
        for head in range(n_heads):
            split[head, :, head] = torch.from_numpy(contexts[head]).float()
        flat = split.flatten(2)
        with torch.no_grad():
            return (projection(flat) - projection(torch.zeros_like(flat))).double().numpy()

    def contexts(self, stack: str, layer: int, kind: str) -> np.ndarray:
        """Return the contexts (head, query, d_head)."""
        flat = self.array(stack, layer, f"{kind}.context")
        n_heads = len(self.plain.weights[stack, layer, kind])
        return flat.reshape(len(flat), n_heads, -1).swapaxes(0, 1)

    def head_outputs(self, stack: str, layer: int, kind: str) -> np.ndarray:
        """Return the vectors (head, query, d_model) that the heads write."""
        contexts = self.contexts(stack, layer, kind)
        return self.by_head(stack, layer, kind, contexts) * self.gain(stack, layer, kind)
