"""Direct logit attribution: the share of each part of a model in the difference of two logits.

The last layer's residual stream is the sum of the embedding and of all that heads, experts and
feed-forward networks wrote to it. Norms of outputs, their scale held too, and the factors of later
layers apply to what was written; so do the norms of the stream that follow a write in a post-norm
model, as BERT. Each logit is a linear function of the stream once the scale of
the final norm is held at its value in this pass. So the difference of two logits is a sum over the
parts. Elhage et al. 2021,
https://transformer-circuits.pub/2021/framework/index.html; with the frozen scale Wang et al. 2022,
https://arxiv.org/abs/2211.00593, section 3. A part's indirect effect, through
the parts that read it, is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float

from headlight.model.analysis.head_outputs import gain_of, projection_of
from headlight.model.analysis.layers import ATTENTIONS, layers_of
from headlight.model.analysis.stream_parts import StreamReader
from headlight.model.config import Architecture
from headlight.model.description import Description
from headlight.model.served import LinearExit
from headlight.model.trace import NamedArray, Trace
from headlight.model.weights import Weights

FEED_FORWARDS = ("feed_forward", "experts")
LARGE_REMAINDER = 0.01
"""The share of the largest part above which a remainder is given a sentence."""

Vector = Float[np.ndarray, " d_model"]


@dataclass(frozen=True, kw_only=True)
class LogitDifference:
    """The logit of `token` minus that of `against`, after the token at `position`.

    In an encoder the prediction is that at the position.
    """

    position: int
    token: int
    against: int

    name: ClassVar[str] = "logit difference"

    def in_trace(self, trace: Trace) -> float:
        """Return the difference in a pass whose trace has the site ``logits``."""
        row = trace["logits"][self.position].astype(np.float64)
        return float(row[self.token] - row[self.against])


@runtime_checkable
class ExitOf(Protocol):
    """Makes the logits of some tokens a linear function of the stream, as `Served.linear_exit`."""

    def __call__(self, stack: str, stream: Vector, tokens: Sequence[int]) -> LinearExit:
        """Return the directions and offsets of the tokens."""


@dataclass(frozen=True)
class Attribution:
    """The arrays of an attribution, the names of its parts, and what could not be split."""

    arrays: dict[str, NamedArray]
    parts: tuple[str, ...]
    omitted: dict[str, str] = field(default_factory=dict)


def choose_difference(
    trace: Trace,
    position: int | None = None,
    token: int | None = None,
    against: int | None = None,
    *,
    mask_id: int | None = None,
) -> LogitDifference:
    """Return the logit difference to explain, completed from the logits of a trace.

    Args:
        trace: with the site ``logits`` (query, vocab).
        position: of the prediction; None: the first mask if there is one, else the last position.
        token: the id to explain; None: the likeliest there.
        against: the id to compare with; None: the likeliest of all others.
        mask_id: of the token that replaces a hidden one.

    Raises:
        ValueError: there is no such position or token, or the two tokens are the same.
    """
    logits = trace["logits"]
    n_positions, n_ids = logits.shape
    if position is None:
        tokens = trace.target_tokens or trace.tokens
        masks = [
            at for at, shown in enumerate(tokens) if mask_id is not None and shown.id == mask_id
        ]
        position = masks[0] if masks else n_positions - 1
    if not 0 <= position < n_positions:
        raise ValueError(f"there is no position {position}; the last is {n_positions - 1}")
    for token_id in (token, against):
        if token_id is not None and not 0 <= token_id < n_ids:
            raise ValueError(f"there is no token {token_id}; the ids are 0 to {n_ids - 1}")
    likeliest = np.argsort(-logits[position].astype(np.float64), kind="stable")
    order = [int(token_id) for token_id in likeliest[:2]]
    token = next(token_id for token_id in order if token_id != against) if token is None else token
    against = (
        next(token_id for token_id in order if token_id != token) if against is None else against
    )
    if token == against:
        raise ValueError(f"token and against are both {token}; a difference needs two tokens")
    return LogitDifference(position=position, token=token, against=against)


def logit_attribution(
    trace: Trace,
    exit_of: ExitOf,
    parameters: Mapping[str, NamedArray],
    difference: LogitDifference,
    *,
    n_experts: int = 0,
    post: tuple[Weights, Architecture] | None = None,
) -> Attribution:
    """Split the difference of two logits into the direct contributions of the model's parts.

    Args:
        trace: with the logits, the stream after every layer and before the first, contexts and
            outputs of attention; embeddings, weights and values of attention, and the outputs of
            feed-forward networks and experts as far as the model has them.
        exit_of: of the model; the scale of its final norm is frozen.
        parameters: ``{attention}.output_projection.weight`` (head, d_head, d_model), all heads.
        difference: the two tokens and the position of the prediction.
        n_experts: of each layer that has experts; 0: there are none.
        post: of a model that normalises the sum of the stream and of what was written; the trace
            then has the stream before and in the middle of every layer, too.

    Returns:
        Logits, float32. ``logits`` (token): of the token and of the one it is compared with.
        ``parts`` (part): the embedding, each attention and feed-forward network, ``bias`` (of norms
        and the unembedding) and ``remainder``, which sum to the difference; experts are
        listed as feed_forward. Then each part by itself:

        - ``self_attention.heads`` (layer, head): of each captured head, through W_O.
        - ``self_attention.keys`` (layer, head, key): the same by source token, through the head's
          weights and values. They sum to the head's.
        - ``self_attention.rest`` (layer): the bias of the output projection, and all else that the
          attention wrote. ``cross_attention.*`` likewise.
        - ``feed_forward`` (layer), and ``experts`` (layer, expert): 0 for one that was not chosen.

    Raises:
        KeyError: the trace lacks a site, or a projection is missing.
        ValueError: a norm is not known, or the logits are not a linear function of the last stream.
    """
    *_, stack = layers_of(trace, "residual.after")
    attributor = _Attributor(trace, exit_of, parameters, difference, stack)
    if post is not None:
        attributor.hold_norms(*post)
    return attributor.attribute(n_experts)


class _Attributor:
    """The directions along which one logit difference is read, and the sums along them."""

    def __init__(
        self,
        trace: Trace,
        exit_of: ExitOf,
        parameters: Mapping[str, NamedArray],
        difference: LogitDifference,
        stack: str,
    ) -> None:
        self.trace, self.parameters, self.stack = trace, parameters, stack
        self.query = difference.position
        after = layers_of(trace, "residual.after")[stack]
        self.n_layers = max(after) + 1
        last = after[self.n_layers - 1][self.query].astype(np.float64)
        tokens = [difference.token, difference.against]
        linear_exit = exit_of(stack, last, tokens)
        self.direction: Vector = (linear_exit.directions[0] - linear_exit.directions[1]).astype(
            np.float64
        )
        self.reach, self.is_frozen = linear_exit.reach, linear_exit.is_frozen
        self.bias = linear_exit.offsets[0] - linear_exit.offsets[1]
        row = trace["logits"][self.query].astype(np.float64)
        self.logits = np.stack([row[token] for token in tokens]).reshape(2)
        self.omitted: dict[str, str] = {}
        self.behind_norms: dict[str, Vector] = {}

    def hold_norms(self, weights: Weights, config: Architecture) -> None:
        """Read each part through the norms of the stream that follow it, their scales held."""
        last = f"{self.stack}.layers.{self.n_layers - 1}.residual.after"
        at = torch.tensor([self.query])
        reader = StreamReader(self.trace, weights, config, last, at)
        directions, shifts = reader.behind_norms(torch.from_numpy(self.direction))
        self.behind_norms = {path: row.numpy() for path, row in directions.items()}
        self.bias += shifts

    def attribute(self, n_experts: int) -> Attribution:
        parts = self._embedding()
        details: dict[str, Float[np.ndarray, ...]] = {}
        for kind in ATTENTIONS:
            details |= self._attention(kind)
        details |= self._feed_forward(n_experts)
        for layer in range(self.n_layers):
            for kind in ATTENTIONS:
                if f"{kind}.heads" in details:
                    heads, rest = details[f"{kind}.heads"], details[f"{kind}.rest"]
                    parts[f"layers.{layer}.{kind}"] = heads[layer].sum() + rest[layer]
            if "feed_forward" in details:
                parts[f"layers.{layer}.feed_forward"] = details["feed_forward"][layer]
        parts["bias"] = self.bias
        parts["remainder"] = self.logits[0] - self.logits[1] - sum(parts.values())
        if not torch.compiler.is_exporting():
            self._tell_remainder(parts)
        arrays = {"logits": self.logits, "parts": np.stack(list(parts.values())), **details}
        named = {
            name: NamedArray(_AXES[name.rpartition(".")[2]], data.astype(np.float32))
            for name, data in arrays.items()
        }
        return Attribution(named, tuple(parts), self.omitted)

    def _tell_remainder(self, parts: Mapping[str, Float[np.ndarray, ""]]) -> None:
        """Give the reason for a remainder that rounding does not explain."""
        remainder = abs(parts["remainder"])
        largest = max(abs(value) for name, value in parts.items() if name != "remainder")
        if remainder > LARGE_REMAINDER * largest:
            self.omitted["remainder"] = (
                f"{remainder:.2g} logits, more than {LARGE_REMAINDER:.0%} of the largest part, are "
                "of no part: "
                + (
                    "the head of the labels has a curve, which is taken with its slope here frozen"
                    if self.is_frozen
                    else "the model writes to the stream by ways that are not known"
                )
            )

    def _along(
        self, array: Float[np.ndarray, "*rows d_model"], path: str
    ) -> Float[np.ndarray, "*rows"]:
        return np.asarray(array.astype(np.float64) @ self._direction_at(path))

    def _direction_at(self, path: str) -> Vector:
        """Return the direction along which the logits read what a part at a path wrote."""
        direction = self.behind_norms.get(path, self.direction)
        return direction * self.reach[path] if path in self.reach else direction

    def _embedding(self) -> dict[str, Float[np.ndarray, ""]]:
        entering = self.trace[f"{self.stack}.layers.0.residual.before"][self.query]
        sites = [f"{self.stack}.embedding.{name}" for name in ("tokens", "positional")]
        held = [self.trace[site][self.query] for site in sites if site in self.trace]
        is_sum = len(held) == 2 and (
            torch.compiler.is_exporting()
            or np.allclose(held[0] + held[1], entering, atol=1e-2 * np.abs(entering).max())
        )
        path = f"{self.stack}.embedding"
        if not is_sum:
            return {"embedding": self._along(entering, path)}
        tokens, positional = (self._along(vector, path) for vector in held)
        return {"embedding.tokens": tokens, "embedding.positional": positional}

    def _attention(self, kind: str) -> dict[str, Float[np.ndarray, ...]]:
        """Return the heads, the rest and, where weights and values are held, each head's keys."""
        paths = {
            layer: path
            for layer in range(self.n_layers)
            if f"{(path := f'{self.stack}.layers.{layer}.{kind}')}.output" in self.trace
        }
        if not paths:
            return {}
        contexts = {
            layer: self.trace[f"{path}.context"][:, self.query].astype(np.float64)
            for layer, path in paths.items()
        }
        n_heads = max(map(len, contexts.values()))
        heads, rest = np.zeros((self.n_layers, n_heads)), np.zeros(self.n_layers)
        keys: dict[int, Float[np.ndarray, "head key"]] = {}
        for layer, path in paths.items():
            projection = projection_of(path, self.parameters, self.trace.heads, n_heads)
            gain = gain_of(path, self.trace)
            gain = gain[self.query if len(gain) > 1 else 0]
            directions = projection @ (self._direction_at(path) * gain)  # head d_head
            heads[layer] = (contexts[layer] * directions).sum(axis=-1)
            output = self.trace[f"{path}.output"][self.query]
            rest[layer] = self._along(output, path) - heads[layer].sum()
            if f"{path}.weights" in self.trace and f"{path}.values" in self.trace:
                weights = self.trace[f"{path}.weights"][:, self.query].astype(np.float64)
                values = self.trace[f"{path}.values"].astype(np.float64)
                keys[layer] = weights * np.einsum("hkd,hd->hk", values, directions)
        arrays = {f"{kind}.heads": heads, f"{kind}.rest": rest}
        if len(keys) < len(paths):
            self.omitted[f"{kind}.keys"] = "the model does not offer its weights or its values"
            return arrays
        n_keys = max(array.shape[1] for array in keys.values())
        by_key = np.zeros((self.n_layers, n_heads, n_keys))
        for layer, each in keys.items():
            by_key[layer] = each
        return {**arrays, f"{kind}.keys": by_key}

    def _feed_forward(self, n_experts: int) -> dict[str, Float[np.ndarray, ...]]:
        whole, experts = np.zeros(self.n_layers), np.zeros((self.n_layers, n_experts))
        n_found = n_split = n_routed = 0
        for layer in range(self.n_layers):
            for part in FEED_FORWARDS:
                path = f"{self.stack}.layers.{layer}.{part}"
                if f"{path}.output" not in self.trace:
                    continue
                n_found += 1
                whole[layer] = self._along(self.trace[f"{path}.output"][self.query], path)
                n_routed += part == "experts"
                if n_experts and f"{path}.expert_outputs" in self.trace:
                    n_split += 1
                    chosen = self.trace[f"{path}.expert_indices"][self.query]
                    written = self.trace[f"{path}.expert_outputs"][self.query]
                    is_chosen = chosen[:, None] == np.arange(n_experts)
                    experts[layer] = self._along(written, path) @ is_chosen.astype(np.float64)
        if not n_found:
            self.omitted["feed_forward"] = (
                "the model does not offer what its feed-forward networks write; "
                "it is part of the remainder"
            )
            return {}
        if n_experts and n_split < max(1, n_routed):
            self.omitted["experts"] = "the model does not offer what each expert writes"
        return {"feed_forward": whole, **({"experts": experts} if n_split else {})}


_AXES: dict[str, tuple[str, ...]] = {
    "logits": ("token",),
    "parts": ("part",),
    "heads": ("layer", "head"),
    "keys": ("layer", "head", "key"),
    "rest": ("layer",),
    "feed_forward": ("layer",),
    "experts": ("layer", "expert"),
}


def normalised_stream(description: Description) -> str | None:
    """Return the reason why no logit is a sum over a model's parts; None if it is one."""
    names = ("sum", "norms", "logit_lens", "linear_exit")
    reasons = (description.omitted.get(name) for name in names)
    return next(filter(None, reasons), None)
