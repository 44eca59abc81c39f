"""A Transformer with its tokenizer and its metadata, as everything that reads texts uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from headlight.model.attention.layer import MultiHeadAttention
from headlight.model.checkpoint.exits import PARAMETERS, norm_and_unembedding
from headlight.model.config import TransformerConfig
from headlight.model.description import Description
from headlight.model.generation.sampling import TransformerWriter
from headlight.model.generation.translation import translate
from headlight.model.hooks import Capture, Edit, gradient_leaves
from headlight.model.interventions.intervene import intervene, quantizations_of
from headlight.model.interventions.intervention import Intervention
from headlight.model.layers import TransformerLayer
from headlight.model.norms import LayerNorm, Norm
from headlight.model.positions import alibi_encoding, as_named, rotary_encoding, sinusoidal_encoding
from headlight.model.quantization.affine import quantized_weights
from headlight.model.served import Explained, LinearExit, Weight, pad
from headlight.model.sites import layer_of
from headlight.model.tokenizer import Tokenizer
from headlight.model.trace import NamedArray
from headlight.model.transformer import Transformer
from headlight.model.weights import InputMatrix, NormParts, Weights


@dataclass(frozen=True, kw_only=True, repr=False)
class Checkpoint(Explained):
    """A model in eval mode with its tokenizer and its metadata."""

    model: Transformer
    tokenizer: Tokenizer
    description: Description

    def __repr__(self) -> str:
        n_parameters = f"{self.description.n_parameters / 1e6:.1f} M parameters"
        return (
            f"<Checkpoint {self.id}: {self.config.kind}, {self.config.n_layers} layers, "
            f"{n_parameters}>"
        )

    @property
    def id(self) -> str:
        """The name of the model, which is the name of its folder."""
        return self.description.id

    @property
    def config(self) -> TransformerConfig:
        """The architecture."""
        return self.model.config

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.model.vectors.device

    @property
    def precision(self) -> str:
        """The dtype of the weights and of the pass: float32 or bfloat16."""
        return str(self.model.vectors.dtype).removeprefix("torch.")

    def read(
        self,
        texts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]] | None,
        *,
        sites: Sequence[str],
        heads: tuple[int, ...] | None = None,
        interventions: Sequence[Intervention] = (),
    ) -> Capture:
        """As `Served.read`."""
        model = self.model
        changes = intervene(model, interventions) if interventions else nullcontext()
        with torch.inference_mode(), changes, model.capture_sites(sites, heads) as captured:
            batch, has_logits = pad(texts, self.device), "logits" in sites
            if self.config.has_encoder:
                target_ids = pad(targets, self.device).ids if targets else None
                model(batch.ids, target_ids, is_token=batch.is_token, has_logits=has_logits)
            # Causal rows need no padding mask, as the padding is at their end.
            elif not interventions and (n_layers := _n_layers(sites)):
                model.decoder(batch.ids, n_layers=n_layers)
            else:
                model(batch.ids, has_logits=has_logits)
        return captured

    @property
    def layers(self) -> dict[str, nn.Module]:
        """As `Served.layers`."""
        named = self.model.named_modules()
        return {path: layer for path, layer in named if isinstance(layer, TransformerLayer)}

    @property
    def end_ids(self) -> frozenset[int]:
        """As `Served.end_ids`: the end token."""
        return frozenset({self.tokenizer.end_id})

    def translate(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        """As `Served.translate`, by beam search."""
        start_id, end_id = self.tokenizer.start_id, self.tokenizer.end_id
        return translate(self.model, sources, start_id=start_id, end_id=end_id)

    def with_weights_of(
        self, interventions: Sequence[Intervention]
    ) -> AbstractContextManager[None]:
        """As `Served.with_weights_of`."""
        quantizations = quantizations_of(interventions)
        return quantized_weights(self.model, quantizations) if quantizations else nullcontext()

    def writer(self, interventions: Sequence[Intervention] = ()) -> TransformerWriter:
        """As `Served.writer`."""
        return TransformerWriter(self.model, interventions)

    def exits(
        self, stack: str, streams: Iterable[Float[np.ndarray, "query d_model"]]
    ) -> Iterator[Float[np.ndarray, "query vocab"]]:
        """As `Served.exits`: the final norm and the unembedding."""
        parameters = {
            name: _named(tensor)
            for name, tensor in self.model.weights().items()
            if any(fnmatchcase(name, glob) for glob in PARAMETERS)
        }
        return norm_and_unembedding(parameters, self.config.norm_epsilon)(stack, streams)

    def linear_exit(
        self, stack: str, stream: Float[np.ndarray, " d_model"], tokens: Sequence[int]
    ) -> LinearExit:
        """As `Served.linear_exit`: (γ·(x − μ)/σ + β)·Eᵀ, σ frozen; RMSNorm has neither μ nor β."""
        norm = self.model.get_submodule(stack).norm
        rows = _wide(self.model.vectors[torch.as_tensor(tokens)])
        if not isinstance(norm, Norm):
            return LinearExit(rows, np.zeros(len(rows)))
        scaled = rows * _wide(norm.scale)
        if not isinstance(norm, LayerNorm):
            size = np.sqrt(np.square(stream).mean() + norm.epsilon)
            return LinearExit(scaled / size, np.zeros(len(rows)))
        centred = scaled - scaled.mean(axis=-1, keepdims=True)
        size = np.sqrt(stream.var() + norm.epsilon)
        return LinearExit(centred / size, rows @ _wide(norm.shift))

    def gradients(
        self,
        text: Sequence[int],
        target: Sequence[int] | None,
        *,
        sites: Sequence[str],
        position: int,
        tokens: tuple[int, int],
        interventions: Sequence[Intervention],
    ) -> Mapping[str, Tensor]:
        """As `Served.gradients`."""
        model = self.model
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            intervene(model, interventions),
            gradient_leaves(model, sites) as leaves,
        ):
            ids = torch.tensor([list(text)], device=self.device)
            target_ids = torch.tensor([list(target)], device=self.device) if target else None
            logits = model(ids, target_ids).logits[0, position].float()
            difference = logits[tokens[0]] - logits[tokens[1]]
            gradients = torch.autograd.grad(difference, list(leaves.values()))
        return dict(zip(leaves, gradients, strict=True))

    def run(
        self,
        texts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]] | None,
        *,
        edits: Iterable[tuple[str, Edit]],
        interventions: Sequence[Intervention] = (),
    ) -> Float[Tensor, "row query vocab"]:
        """As `Served.run`."""
        model = self.model
        with ExitStack() as stack:
            stack.enter_context(intervene(model, interventions))
            for site, edit in edits:
                stack.enter_context(model.edit(site, edit))
            ids = torch.tensor([list(text) for text in texts], device=self.device)
            target_ids = None
            if targets:
                target_ids = torch.tensor([list(each) for each in targets], device=self.device)
            logits: Tensor = model(ids, target_ids).logits
        return logits

    def graph_weights(self) -> Weights:
        """As `Served.graph_weights`."""
        return Weights(self._graph_norm, self._graph_input, self._graph_output)

    def _graph_norm(self, site: str) -> NormParts | None:
        norm = self.model.get_submodule(site)
        if not isinstance(norm, Norm):
            return None
        shift = norm.shift.detach() if isinstance(norm, LayerNorm) else None
        return NormParts(norm.scale.detach(), shift, norm.epsilon, isinstance(norm, LayerNorm))

    def _graph_input(self, site: str) -> InputMatrix:
        path, _, part = site.rpartition(".")
        attention = self.model.get_submodule(path)
        assert isinstance(attention, MultiHeadAttention)
        projection = _inputs(attention)[{"queries": "Q", "keys": "K", "values": "V"}[part]]
        weight = _by_head(attention, projection.weight.detach()).transpose(1, 2)
        bias = projection.bias
        return InputMatrix(weight, None if bias is None else _by_head(attention, bias.detach()))

    def _graph_output(self, path: str) -> Tensor:
        weight = self.model.get_parameter(f"{path}.output_projection.weight").detach()
        by_head: Tensor = weight.T.unflatten(0, (self.config.n_heads, -1))
        return by_head

    def output_weights(self, path: str) -> NamedArray:
        """As `Served.output_weights`."""
        by_head = self._graph_output(path).float().cpu().contiguous()
        return NamedArray(("head", "d_head", "d_model"), by_head.numpy())

    def weights(self) -> dict[str, Weight]:
        """As `Served.weights`."""
        model, weights = self.model, dict[str, Weight]()
        for stack in ("encoder", "decoder"):
            if (embedding := getattr(model, stack, None)) is None:
                continue
            table = embedding.embedding
            name = f"{stack}.embedding"
            weights[f"{name}.W_E"] = Weight.of(("vocab", "d_model"), table.vectors.weight)
            if table.is_learned:
                axes = ("position", "d_model")
                weights[f"{name}.W_pos"] = Weight.of(axes, table.positions.weight)
            weights |= dict(_norm_weights(stack, embedding.norm))
        for facts in self.description.attentions:
            weights |= dict(_attention_weights(facts.path, model.get_submodule(facts.path)))
            layer, _, kind = facts.path.rpartition(".")
            norm = "cross_attention_norm" if kind == "cross_attention" else "attention_norm"
            weights |= dict(_norm_weights(facts.path, model.get_submodule(f"{layer}.{norm}")))
        return weights | {"W_U": Weight.of(("vocab", "d_model"), model.vectors)}

    def positions(self, n: int) -> dict[str, NamedArray]:
        """As `Served.positions`."""
        config = self.config
        match config.positional:
            case "sinusoidal":
                return sinusoidal_encoding(n, config.d_model)
            case "rotary":
                return rotary_encoding(n, config.d_head)
            case "alibi":
                return alibi_encoding(n, config.n_heads)
            case "none":
                raise ValueError("the model has no positional encoding")
        if n > config.max_tokens:
            raise ValueError(f"the model has learned {config.max_tokens} positions, not {n}")
        return learned_encoding(self.model, n)


def learned_encoding(model: Transformer, n: int) -> dict[str, NamedArray]:
    """Return the first rows of each table of learned positions."""
    ending = ".embedding.positions.weight"
    tables = {
        name.removesuffix(ending): table[:n]
        for name, table in model.weights().items()
        if name.endswith(ending)
    }
    return {
        "encoding" if len(tables) == 1 else f"{stack}.encoding": as_named("position d_model", table)
        for stack, table in tables.items()
    }


def _attention_weights(path: str, attention: nn.Module) -> Iterator[tuple[str, Weight]]:
    """Yield the projections of an attention by head; shared keys and values are repeated."""
    assert isinstance(attention, MultiHeadAttention)
    by_head = partial(_by_head, attention)
    for letter, projection in _inputs(attention).items():
        axes = ("head", "d_model", "d_head")
        name = f"{path}.W_{letter}"
        yield name, Weight.of(axes, projection.weight, lambda rows: by_head(rows).transpose(1, 2))
        if projection.bias is not None:
            yield f"{path}.b_{letter}", Weight.of(("head", "d_head"), projection.bias, by_head)
    output = attention.output_projection
    axes = ("head", "d_head", "d_model")
    yield f"{path}.W_O", Weight.of(axes, output.weight, lambda rows: by_head(rows.T))
    if output.bias is not None:
        yield f"{path}.b_O", Weight.of(("d_model",), output.bias)


def _inputs(attention: MultiHeadAttention) -> dict[str, nn.Linear]:
    return {
        "Q": attention.query_projection,
        "K": attention.key_projection,
        "V": attention.value_projection,
    }


def _by_head(attention: MultiHeadAttention, rows: Tensor) -> Tensor:
    """Return the rows of a projection by head; shared keys and values are repeated."""
    groups: Tensor = rows.unflatten(0, (-1, attention.d_head))
    return groups.repeat_interleave(attention.n_heads // len(groups), dim=0)


def _norm_weights(path: str, norm: nn.Module) -> Iterator[tuple[str, Weight]]:
    """Yield γ and, of LayerNorm, β; a stack with post norms has none at its end."""
    if isinstance(norm, Norm):
        yield f"{path}.norm_scale", Weight.of(("d_model",), norm.scale)
    if isinstance(norm, LayerNorm):
        yield f"{path}.norm_shift", Weight.of(("d_model",), norm.shift)


def _wide(tensor: Tensor) -> Float[np.ndarray, "*axes"]:
    return tensor.detach().double().cpu().numpy()


def _named(tensor: Tensor) -> NamedArray:
    axes = ("vocab", "d_model") if tensor.ndim == 2 else ("d_model",)
    return NamedArray(axes, tensor.detach().float().cpu().numpy())


def _n_layers(sites: Sequence[str]) -> int | None:
    """Return the first layers that have all sites; None: the whole pass has them."""
    layers = [layer for site in sites if (layer := layer_of(site)) is not None]
    return max(layers) + 1 if layers and len(layers) == len(sites) else None
