"""The self-check of a foreign model: prove each number against Transformers' own eager attention.

A check that the exact numbers depend on refuses the model; any other leaves out what it found
wrong, with the reason. The passes are of 11 and 7 tokens.

Eager attention here and there runs the same operations on the same layout, so the two usually
agree to the bit. No check asks for that: a library may choose its kernel by the processor, the
number of threads or the alignment of a tensor, and rounding refuses no model. The card says the
difference that was measured.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headlight.model.attention.observer import OBSERVED_AXES
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.blockwise_check import check_blocks, observe
from headlight.model.foreign.generation import ForeignWriter
from headlight.model.foreign.graph import graph_weights
from headlight.model.foreign.loading import quiet, set_attention
from headlight.model.foreign.logit_lens import exits, linear_exit
from headlight.model.foreign.matrices import output_weights
from headlight.model.foreign.outputs import head_of, inputs_for, output_of, run
from headlight.model.foreign.passes import ForeignPasses
from headlight.model.foreign.points import new_pass
from headlight.model.foreign.positions import rotation_of
from headlight.model.foreign.probe import Recorder
from headlight.model.foreign.rotations import distance_from_library
from headlight.model.foreign.sites import NamedLayer
from headlight.model.foreign.writes import parts_of
from headlight.model.served import RowCapture
from headlight.model.trace import Rotation
from headlight.model.weights import Weights, distance_of_sum

EAGER, FORMULA, LENS, FUSED, CACHED, PADDED = 1e-5, 1e-6, 1e-5, 1e-5, 5e-6, 1e-5
SUM = 1e-5
"""The difference of a layer's stream from the sum of its parts, by the layer's largest change."""
LARGE_SCORE = 16.0
"""A float32 holds a score of this size to 1e-6; the limits of weights grow with larger scores."""
IN_LOWER_PRECISION = 4e-2


@dataclass
class Checked:
    """The measured differences, the features that passed, and what is left out with the reason.

    ``sites`` and ``projections`` are those that are kept. The attentions at the paths ``in_place``
    may overwrite Q·Kᵀ, those in ``fused`` may use the fused kernel, and the blocks of those in
    ``by_formula`` follow from the terms of the scores.
    """

    measured: dict[str, float] = field(default_factory=dict)
    omitted: dict[str, str] = field(default_factory=dict)
    features: set[str] = field(default_factory=set)
    rotation: Rotation | None = None
    sites: list[str] = field(default_factory=list)
    projections: list[str] = field(default_factory=list)
    in_place: list[str] = field(default_factory=list)
    fused: list[str] = field(default_factory=list)
    by_formula: list[str] = field(default_factory=list)
    batches: bool = False
    is_streamed: bool = False


def check(model: ForeignPasses, name: str, recorded: Recorder, inputs: dict[str, Any]) -> Checked:
    """Check a model.

    Raises:
        CheckpointError: its numbers are not those of Transformers' eager attention.
    """
    checks = _Checks(model, name, recorded, inputs)
    checks.run()
    checked, named = checks.found, model.named
    attentions = [points for _, points in named.attention_points]
    checked.sites, checked.projections = list(named.points), list(named.projections)
    checked.in_place = [points.path for points in attentions if points.is_in_place]
    checked.fused = [points.path for points in attentions if points.is_fused]
    checked.by_formula = [points.path for points in attentions if points.has_formula]
    checked.batches, checked.is_streamed = model.batches, model.is_streamed
    return checked


def restore(model: ForeignPasses, checked: Checked) -> bool:
    """Enable what an earlier check proved; return False if the model's sites have changed.

    Args:
        model: with its hooks installed.
        checked: the result of a check of the same files with the same code.
    """
    named = model.named
    gone = set(checked.sites) - set(named.points)
    if not all(site.rpartition(".")[2] in OBSERVED_AXES for site in gone):
        return False
    for site in set(named.points) - set(checked.sites):
        del named.points[site]
    observe(model)
    for path in set(named.projections) - set(checked.projections):
        del named.projections[path]
    for _, points in named.attention_points:
        points.is_in_place = points.path in checked.in_place
        points.is_fused = points.path in checked.fused
        points.has_formula = points.path in checked.by_formula
    model.batches, model.is_streamed = checked.batches, checked.is_streamed
    return True


class _Checks:
    def __init__(
        self, model: ForeignPasses, name: str, recorded: Recorder, inputs: dict[str, Any]
    ) -> None:
        self.model, self.name, self.recorded, self.inputs = model, name, recorded, inputs
        self.found = Checked(omitted=dict(model.named.omitted))
        self.measured, self.omitted = self.found.measured, self.found.omitted
        self.features = self.found.features
        self.site = model.output_site
        self.is_exact = model.precision == "float32"
        self.rounding = 1.0

    def _limit(self, exact: float) -> float:
        return exact if self.is_exact else IN_LOWER_PRECISION

    def run(self) -> None:
        self._require_all_seen()
        logits, attentions = self._reference()
        captured = self._watched(logits)
        self.rounding = self._rounding_of_weights(captured)
        self._compare_weights(captured, attentions)
        self._overwrite(captured)
        self._check_formula(captured)
        self._find_rotation(captured)
        self._check_switches()
        self._check_streams(captured)
        self._drop_sites(captured)
        self._check_sums(captured)
        self._fuse(logits)
        self._check_projections(captured)
        self._check_lens(captured)
        self._check_circuits(captured)
        if self.model.named.kind == "decoder" and self.model.task == "causal":
            self._check_cache(captured)
        self._check_padding()
        if self.model.task == "seq2seq" and self.model.module.can_generate():
            self.features.add("translate")
        if self.model.task == "masked":
            self.features.add("fill")
        check_blocks(self.model, self.inputs, self.found, self.rounding)

    def _refuse(self, reason: str) -> CheckpointError:
        kind = type(self.model.module).__name__
        return CheckpointError(f"{self.name}: a {kind} is not served: {reason}")

    def _require_all_seen(self) -> None:
        if (n_unseen := self.recorded.n_unseen_softmaxes) > 0:
            raise self._refuse(
                f"{n_unseen} of its softmaxes belong to no attention that was recognised"
                f"{self.recorded.other_shape()}"
            )
        for each in self.recorded.attentions:
            if each.n_softmaxes != 1:
                raise self._refuse(f"{each.call.name} computes {each.n_softmaxes} softmaxes")

    def _reference(self) -> tuple[Tensor, Any]:
        """Return the logits and the weights of Transformers' own eager attention."""
        module, inputs = self.model.module, inputs_for(self.model.task, self.inputs)
        implementation = module.config._attn_implementation
        set_attention(module, "eager")
        try:
            with torch.inference_mode(), quiet(), new_pass():
                try:
                    output = module(**inputs, output_attentions=True)
                except (TypeError, ValueError, RuntimeError, AttributeError):
                    output = None
                n_tokens, task = self.inputs["input_ids"].shape[1], self.model.task
                logits = output_of(task, output or module(**inputs), n_tokens)
                if head_of(task, module) is not None:
                    last, logits = logits[:, -1], run(task, module, self.inputs)
                    if _distance(logits[:, -1], last) > self._limit(EAGER) * _scale(last):
                        raise self._refuse("its label is not read at the last position")
        finally:
            set_attention(module, implementation)
        return logits, output

    def _watched(self, logits: Tensor) -> dict[str, Tensor]:
        """Return the tensors of every site, from one pass."""
        sites = tuple(self.model.points.hook_points)
        captured = dict(self.model.reread(self.inputs, sites, is_first=True))
        self._require_equal(captured[self.site], logits, "watched")
        return captured

    def _rounding_of_weights(self, captured: dict[str, Tensor]) -> float:
        """Return the factor, at least 1, by which large scores let two kernels differ."""
        largest = LARGE_SCORE
        for _, points in self.model.named.attention_points:
            scores = captured.get(f"{points.path}.scores")
            weights = captured.get(f"{points.path}.weights")
            if scores is not None and weights is not None and scores.shape == weights.shape:
                counted = scores[(weights > 0) & scores.isfinite()]
                largest = max(largest, float(counted.abs().max()) if counted.numel() else 0.0)
        return largest / LARGE_SCORE

    def _require_equal(self, actual: Tensor, expected: Tensor, what: str) -> None:
        far = _distance(actual, expected)
        self.measured[f"logits_{what}"] = far
        if far > self._limit(EAGER) * _scale(expected):
            raise self._refuse(
                f"its {what} logits differ from those of eager attention by {far:.1e}"
            )

    def _compare_weights(self, captured: dict[str, Tensor], out: Any) -> None:
        """Compare the weights with those that Transformers returns, where it counts them alike."""
        far = 0.0
        n_compared = 0
        for stack, kind, name in _RETURNED:
            returned = getattr(out, name, None) if out is not None else None
            if returned is None or (name == "attentions" and self.model.task == "seq2seq"):
                continue
            if not isinstance(returned, tuple | list):
                continue
            given = [tensor for tensor in returned if isinstance(tensor, Tensor)]
            sites = [
                f"{layer.path}.{kind}.weights"
                for layer in self.model.named.layers
                if kind in layer.attentions and (stack is None or layer.stack == stack)
            ]
            if len(given) != len(sites):
                continue
            for site, expected in zip(sites, given, strict=True):
                if site not in captured or captured[site].shape != expected.shape:
                    break
                scores = captured[site.replace(".weights", ".scores")]
                if _distance(scores, expected) <= EAGER * _scale(expected):
                    continue  # some files return the scores by the name of the weights
                far = max(far, _distance(captured[site], expected))
                n_compared += 1
        if n_compared:
            self.measured["weights"] = far
            if far > self._limit(EAGER * self.rounding):
                raise self._refuse(f"its weights differ from those of eager attention by {far:.1e}")

    def _overwrite(self, captured: dict[str, Tensor]) -> None:
        """Let the steps from Q·Kᵀ to the weights share a tensor, where that changes no number."""
        attentions = [points for _, points in self.model.named.attention_points]
        sites = (self.site, *(f"{points.path}.weights" for points in attentions))
        for points in attentions:
            points.is_in_place = points.has_interface
        try:
            overwritten = self.model.reread(self.inputs, sites, is_first=True)
            is_same = all(torch.equal(overwritten[site], captured[site]) for site in sites)
        except Exception:  # whatever a model file does with its softmax
            is_same = False
        if not is_same:
            for points in attentions:
                points.is_in_place = False

    def _check_formula(self, captured: dict[str, Tensor]) -> None:
        """Check that softmax(scores) is the weights, and weights · values the context."""
        softmax = context = 0.0
        for _, points in self.model.named.attention_points:
            tensors = {
                part: captured.get(f"{points.path}.{part}")
                for part in ("scores", "weights", "values", "context", "sink")
            }
            weights, scores = tensors["weights"], tensors["scores"]
            if weights is None or scores is None:
                raise self._refuse(f"no weights were seen at {points.path}")
            made = scores.double().softmax(dim=-1)
            if tensors["sink"] is not None:
                made = made * (1 - tensors["sink"].double())[..., None]
            sees = scores.isfinite().any(dim=-1, keepdim=True)
            softmax = max(softmax, _distance(torch.where(sees, made, weights), weights))
            values, out = tensors["values"], tensors["context"]
            if values is not None and out is not None:
                average = weights.double() @ values.double()
                far = _distance(average, out) / _scale(out)
                if far > FORMULA and (share := _share(average, out.double())) is not None:
                    self.omitted[f"{points.path}.sink"] = (
                        "a sink scales the context after the softmax: the weights are those before"
                    )
                    far = _distance(average * share, out) / _scale(out)
                context = max(context, far)
        self.measured["softmax"], self.measured["context"] = softmax, context
        limit = self._limit(FORMULA)
        if softmax > limit:
            raise self._refuse(f"softmax(scores) differs from its weights by {softmax:.1e}")
        if context > limit:
            raise self._refuse(f"weights·values differs from its context by {context:.1e}")

    def _find_rotation(self, captured: dict[str, Tensor]) -> None:
        """Find the rotation of the first layer's queries, if it is one of pairs."""
        path = self.model.named.facts[0].path
        before = captured.get(f"{path}.queries")
        after = captured.get(f"{path}.rotated_queries")
        rotation = None
        if before is not None and after is not None:
            rotation = rotation_of(self.model.module, before, after)
        if rotation is None and self.model.config.positional == "rotary":
            self.omitted["rotation"] = (
                "its queries before and after rotation do not differ by a rotation of pairs"
            )
        elif rotation is not None:
            self.found.rotation, self.measured["rotation"] = rotation

    def _check_switches(self) -> None:
        """Check a rotation that depends on the length on both sides of its switch."""
        if not self.model.switches:
            return
        far = distance_from_library(self.model.module, self.model.switches)
        self.measured["rotation_switch"] = far
        if not far <= EAGER:
            n_tokens = self.model.switches[0].n_tokens
            raise self._refuse(f"its rotation differs by {far:.1e} around {n_tokens:,} tokens")

    def _check_streams(self, captured: dict[str, Tensor]) -> None:
        """Check that a layer is given what the layer before it returned."""
        layers = self.model.named.layers
        for first, second in pairwise(layers):
            after = captured.get(f"{first.path}.residual.after")
            before = captured.get(f"{second.path}.residual.before")
            if first.stack != second.stack or after is None or before is None:
                continue
            if after.shape == before.shape and _distance(after, before) <= LENS * _scale(after):
                continue
            self.omitted["residual"] = (
                f"{second.path} is not given what {first.path} returns, so there is no one stream"
            )
            for site in [site for site in self.model.named.points if ".residual." in site]:
                del self.model.named.points[site]
                captured.pop(site, None)
            return

    def _check_sums(self, captured: dict[str, Tensor]) -> None:
        """Check that each layer's stream is the one before it plus what its parts wrote.

        If it is not, the analyses that add up outputs are left out, with the reason.
        """
        limit = self._limit(SUM)
        reasons = [self.omitted["sum"]] if "sum" in self.omitted else []
        entering = set(self.model.named.entering)
        worst = 0.0
        for layer in self.model.named.layers:
            if f"{layer.path}.residual.before" not in captured:
                continue
            if reason := self._unknown_part(layer, captured):
                reasons.append(
                    f"{reason}, so the stream cannot be compared with the sum of what the parts "
                    "wrote"
                )
                continue
            for place, parts, made, before in self._sums(layer, captured):
                far = distance_of_sum(made, before, captured[place])
                worst = max(worst, far)
                if far <= limit:
                    entering.update(parts)
                    continue
                reasons.append(
                    f"{place} differs from the sum of the stream before it and of what the parts "
                    f"wrote by {far:.1e} of the change: more than a norm or a factor lies between"
                )
                if not place.endswith(".after"):
                    del self.model.named.points[place]
                    self.omitted[place] = "it is not the stream plus what the parts before wrote"
                break
        self.measured["sum"] = worst
        if reasons:
            self.omitted["sum"] = reasons[0]
        self._forget_projections(entering)

    def _forget_projections(self, entering: Collection[str]) -> None:
        """Leave out what heads write whose attention is not known to enter the stream."""
        for path in list(self.model.named.projections):
            if path not in entering:
                del self.model.named.projections[path]
                self.omitted[f"{path}.head_outputs"] = (
                    "what the attention puts out is not known to enter the residual stream"
                )

    def _unknown_part(self, layer: NamedLayer, captured: dict[str, Tensor]) -> str | None:
        """Return the reason for which a layer's stream is not compared with a sum, if any.

        An unknown feed-forward network at the end of a layer leaves the steps before it.
        """
        paths = list(parts_of(self.model.named, layer))
        if any(paths[0] in step.paths for step in self.model.named.steps):
            return None
        if not layer.attentions:
            return f"{layer.path} has no attention, and what writes in its place is not known"
        if f"{layer.path}.residual.middle" in captured:
            paths = paths[:-1]
        for path in paths:
            if f"{path}.output" not in captured:
                return f"what {path} adds to the stream is not known"
        return None

    def _sums(
        self, layer: NamedLayer, captured: dict[str, Tensor]
    ) -> list[tuple[str, list[str], Tensor, Tensor]]:
        """Return each later place of the stream, the parts before it, their sum, the stream then.

        The last is that before the parts wrote.
        """
        steps = self.model.named.steps
        waiting = list(parts_of(self.model.named, layer))
        stream = captured[f"{layer.path}.residual.before"].double()
        sums: list[tuple[str, list[str], Tensor, Tensor]] = []
        for name in ("between", "middle", "after"):
            place = f"{layer.path}.residual.{name}"
            if place not in captured:
                continue
            parts = waiting if name == "after" else waiting[:1]
            waiting = waiting[len(parts) :]
            step = next((step for step in steps if parts and parts[0] in step.paths), None)
            parts = parts if step is None else list(step.paths)
            if not parts or not all(f"{part}.output" in captured for part in parts):
                break
            carry = None if step is None else step.carry
            made = stream if carry is None else stream * carry.to(stream.device)
            made = made + sum(captured[f"{part}.output"].double() for part in parts)
            if self.model.named.norm_place == "post":
                made = self._normalised(_norm_of(parts[-1]), made)
            sums.append((place, parts, made, stream))
            stream = captured[place].double()
        return sums

    def _normalised(self, site: str, stream: Tensor) -> Tensor:
        """Return what the norm whose output passes a site makes of a stream, if there is one."""
        point = self.model.named.points.get(site)
        for hook in self.model.named.hooks:
            if hook.point is point:
                dtype = next(hook.call.module.parameters()).dtype
                with torch.inference_mode():
                    normalised: Tensor = type(hook.call.module).forward(
                        hook.call.module, stream.to(dtype)
                    )
                return normalised.double()
        return stream

    def _drop_sites(self, captured: dict[str, Tensor]) -> None:
        """Leave out the sites that no tensor passed."""
        for site in list(self.model.points.hook_points):
            if site not in captured:
                del self.model.named.points[site]
                self.omitted[site] = "no tensor of this kind passed in the self-check"

    def _fuse(self, logits: Tensor) -> None:
        """Check a pass that nobody watches; plain attentions use the fused kernel, if it agrees."""
        plain = [
            points
            for attention, points in self.model.named.attention_points
            if attention is not None and attention.is_plain
        ]
        for points in plain:
            points.is_fused = True
        unwatched = self.model.reread(self.inputs, (self.site,))[self.site]
        far = _distance(unwatched, logits) / _scale(logits)
        self.measured["fused"] = far
        if far > self._limit(FUSED):
            for points in plain:
                points.is_fused = False
            self.omitted["fused"] = f"the fused kernel differs by {far:.1e} of the logits' scale"
            unwatched = self.model.reread(self.inputs, (self.site,))[self.site]
        self._require_equal(unwatched, logits, "unwatched")

    def _check_projections(self, captured: dict[str, Tensor]) -> None:
        """Check that what the heads write sums to the output, but for the bias."""
        worst = 0.0
        for path, module in list(self.model.named.projections.items()):
            context, output = captured.get(f"{path}.context"), captured.get(f"{path}.output")
            far = float("inf")
            if context is not None and output is not None:
                rows = output_weights(self.model.named, path).double()
                made = torch.einsum("bhqd,hdm->bqm", context.double(), rows)
                bias = getattr(module, "bias", None)
                if bias is not None:
                    factor = self.model.named.factors.get(path)
                    made = made + bias.double() * (1 if factor is None else factor.to(made))
                if (gain := captured.get(f"{path}.gain")) is not None:
                    made = made * gain.double()
                far = _distance(made, output) / _scale(output)
            if far > self._limit(LENS):
                del self.model.named.projections[path]
                self.omitted[f"{path}.head_outputs"] = (
                    f"the context times the projection differs from the output by {far:.1e}"
                )
            else:
                worst = max(worst, far)
        self.measured["projections"] = worst
        if len(self.model.named.projections) == len(self.model.named.attention_points):
            self.features.add("head_outputs")
        else:
            self.omitted["head_outputs"] = "not every attention has a projection of its context"

    def _check_lens(self, captured: dict[str, Tensor]) -> None:
        """Check that the model's exit, applied to the last stream, gives the logits."""
        if self.site != "logits":
            self.omitted["logit_lens"] = "it predicts neither tokens nor labels"
            return
        stack = "encoder" if self.model.named.kind == "encoder" else "decoder"
        layers = [layer for layer in self.model.named.layers if layer.stack == stack]
        site = f"{layers[-1].path}.residual.after"
        if site not in captured:
            self.omitted["logit_lens"] = self.omitted.get(
                "residual",
                self.omitted.get(f"{layers[-1].path}.residual", "the residual stream is not known"),
            )
            return
        try:
            stream = captured[site][0].float().cpu().numpy()
            (actual,) = exits(self.model, [np.ascontiguousarray(stream)])
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, KeyError) as error:
            self.omitted["logit_lens"] = f"the layers cannot be stepped over: {_line(error)}"
            return
        expected = captured["logits"][0].float().cpu()
        if self.model.reads_alone:  # the first position is the one that is read
            actual, stream, expected = actual[:1], stream[:1], expected[:1]
        far = _distance(torch.from_numpy(actual), expected) / _scale(expected)
        self.measured["lens"] = far
        if far > self._limit(LENS):
            self.omitted["logit_lens"] = (
                f"what follows the last layer differs from the logits by {far:.1e} of their scale"
            )
        else:
            self.features.add("logit_lens")
            self._check_linear_exit(stack, stream, expected)

    def _check_linear_exit(
        self, stack: str, stream: Float[np.ndarray, "query d_model"], logits: Tensor
    ) -> None:
        """Check that the logits are linear in the last stream while a norm's scale is held."""
        tokens = logits[-1].topk(2).indices.tolist()
        try:
            linear_exit(self.model, stream[-1], tokens)
        except ValueError as error:
            self.omitted["linear_exit"] = _line(error)
        except (RuntimeError, TypeError, IndexError, AttributeError, KeyError) as error:
            self.omitted["linear_exit"] = f"its exit has no gradient: {_line(error)}"

    def _check_circuits(self, captured: dict[str, Tensor]) -> None:
        """Check that embeddings enter the stream times a factor, and that norms are one vector."""
        named, weights = self.model.named, graph_weights(self.model)
        if named.norm_place == "post":
            self._check_norms(weights)
            return
        for stack in dict.fromkeys(layer.stack for layer in named.layers):
            tokens = captured.get(f"{stack}.embedding.tokens")
            output = captured.get(f"{stack}.embedding.output")
            if tokens is None or output is None:
                self.omitted["head_circuits"] = named.omitted.get(
                    f"{stack}.embedding.W_E", "the embedding of a token is not known"
                )
                return
            given, made = tokens.double(), output.double()
            if (positional := captured.get(f"{stack}.embedding.positional")) is not None:
                made = made - positional.double()
            factor = float((given * made).sum() / (given * given).sum())
            if _distance(factor * given, made) > self._limit(LENS) * _scale(made):
                self.omitted["head_circuits"] = (
                    "more than a factor lies between the embedding of a token and the stream"
                )
                return
        for facts in named.facts:
            layer, _, kind = facts.path.rpartition(".")
            site = f"{layer}.{kind.removeprefix('self_')}_norm"
            matrices = [named.matrices.get(f"{facts.path}.W_{letter}") for letter in "QKV"]
            if weights.norm(site) is None or facts.scale is None or None in matrices:
                self.omitted["head_circuits"] = (
                    f"what {facts.path} reads is more than a norm of the stream and a matrix"
                )
                return
            for matrix in filter(None, matrices):
                scales = [getattr(norm, "weight", None) for norm, _ in matrix.norms]
                shapes = [getattr(scale, "shape", None) for scale in scales]
                if any(shape != matrix.columns.shape[1:] for shape in shapes):
                    self.omitted["head_circuits"] = (
                        f"{facts.path} normalises queries or keys without a weight for each of "
                        "a head’s numbers"
                    )
                    return

    def _check_norms(self, weights: Weights) -> None:
        """Check that the norms of a stream that is normalised after every write are formulas."""
        for layer in self.model.named.layers:
            for site in map(_norm_of, parts_of(self.model.named, layer)):
                if weights.norm(site) is None:
                    self.omitted["norms"] = f"{site} is not known as a formula"

    def _check_cache(self, whole: dict[str, Tensor]) -> None:
        """Check that a row computed with the cache is the row of the whole text."""
        text = self.inputs["input_ids"][0].tolist()
        sites = tuple(
            site
            for site in self.model.points.hook_points
            if site.endswith((".weights", ".expert_indices"))
        )
        self.features.add("generate")
        try:
            writer = ForeignWriter(self.model)
            cache = writer.new_cache()
            writer.extend(cache, text[:-2])
            writer.extend(cache, text[-2:-1])
            logits, (row,) = writer.step([cache], [text[-1]], [RowCapture(sites)])
            far = _distance(logits[0], whole["logits"][0, -1].float().cpu())
            far /= _scale(whole["logits"][0])
            for site in sites:
                if site.endswith(".weights"):
                    expected = whole[site][0, :, -1].float().cpu()
                    far = max(far, _distance(row[site].float(), expected))
        except Exception as error:  # whatever a model file does with its cache
            self.omitted["cache"] = f"its cache cannot be used: {_line(error)}"
            return
        self.measured["cached"] = far
        if far > self._limit(CACHED * self.rounding):
            self.omitted["cache"] = f"a row with its cache differs by {far:.1e}"

    def _check_padding(self) -> None:
        """Check that padding does not change a text's activations."""
        texts = self.inputs["input_ids"].tolist()
        texts = [texts[0], texts[1][:7]]
        targets = self.inputs.get("decoder_input_ids")
        pairs = None if targets is None else [targets[0].tolist(), targets[1, :5].tolist()]
        sites = tuple(site for site in self.model.points.hook_points if site.endswith(".weights"))
        try:
            self.model.batches = True
            together = self.model.read(texts, pairs, sites=(self.site, *sites))
            alone = self.model.read(texts[1:], pairs and pairs[1:], sites=(self.site, *sites))
            far = 0.0
            for site in (self.site, *sites):
                expected = alone[site][0].float()
                actual = together[site][1].float()
                actual = actual[tuple(slice(size) for size in expected.shape)]
                scale = _scale(expected) if site == self.site else 1.0
                far = max(far, _distance(actual, expected) / scale)
        except Exception as error:
            self.model.batches = False
            self.omitted["batches"] = f"a padded pass fails: {_line(error)}"
            return
        self.measured["padded"] = far
        if not far <= PADDED * self.rounding:
            self.model.batches = False
            self.omitted["batches"] = (
                f"a text in a padded row differs by {far:.1e}, so each text has its own pass"
            )


_RETURNED = (
    (None, "self_attention", "attentions"),
    ("encoder", "self_attention", "encoder_attentions"),
    ("decoder", "self_attention", "decoder_attentions"),
    ("decoder", "cross_attention", "cross_attentions"),
)


def _distance(actual: Tensor, expected: Tensor) -> float:
    """Return the greatest difference; infinite for another shape or for NaN."""
    if actual.shape != expected.shape:
        return float("inf")
    far = float((actual.double() - expected.double()).abs().max()) if actual.numel() else 0.0
    return far if far == far else float("inf")


def _share(average: Tensor, context: Tensor) -> Tensor | None:
    """Return the factor in [0, 1] from weights·values to the context, by row; None: no such."""
    square = (average * average).sum(dim=-1, keepdim=True)
    share = (average * context).sum(dim=-1, keepdim=True) / square.clamp(min=1e-30)
    return share if bool(((share >= 0) & (share <= 1 + FORMULA)).all()) else None


def _norm_of(part: str) -> str:
    """Return the site of the norm at a part's path."""
    layer, _, kind = part.rpartition(".")
    names = {"self_attention": "attention", "experts": "feed_forward"}
    return f"{layer}.{names.get(kind, kind)}_norm"


def _scale(tensor: Tensor) -> float:
    return max(float(tensor.abs().max()), 1e-12)


def _line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
