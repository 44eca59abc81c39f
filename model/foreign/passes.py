"""The passes of a foreign model: read texts, and keep or change what passes its sites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.attention.observer import OBSERVED_AXES
from headlight.model.config import Architecture
from headlight.model.foreign.matrices import rounded_matrices
from headlight.model.foreign.outputs import OF_TEXT, head_of, run, site_of
from headlight.model.foreign.points import new_pass
from headlight.model.foreign.rotations import separates, switches_of
from headlight.model.foreign.segments import TYPES, Segments
from headlight.model.foreign.sites import Named
from headlight.model.hooks import Capture, Edit, HookedModule, HookPoint
from headlight.model.interventions.intervene import (
    bound,
    quantizations_of,
    site_edits,
    unscaled_paths,
)
from headlight.model.interventions.intervention import ImpossibleIntervention, Intervention
from headlight.model.quantization.affine import quantized_weights
from headlight.model.served import UnwatchedPass, pad

_WHOLE = (".scores", ".weights", ".sink", ".bias")
"""The sites that need the weights of every query at once."""


@dataclass(frozen=True, kw_only=True)
class Facts(Architecture):
    """The sizes and choices of a foreign model."""

    n_groups: int
    d_head: int


class Points(HookedModule):
    """The hook points of a foreign model by site."""

    def __init__(self, points: Mapping[str, HookPoint]) -> None:
        super().__init__()
        self.__dict__["hook_points"] = points


class ForeignPasses:
    """A model of Transformers whose tensors pass hook points.

    Args:
        module: the model, in eval mode, with its hooks installed.
        task: one of `loading.TASKS`.
        named: its sites.
        config: its sizes and choices.
        avoided: token ids that change how a text is read, as that of padding does.
    """

    def __init__(
        self, module: Any, task: str, named: Named, config: Facts, avoided: frozenset[int]
    ) -> None:
        self.module, self.task, self.named, self._config = module, task, named, config
        self.points = Points(named.points)
        self.avoided = avoided
        self.switches = switches_of(module)
        self.segments: Segments | None = None
        self.batches = False
        self.is_streamed = False

    @property
    def config(self) -> Facts:
        """The architecture."""
        return self._config

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        device: torch.device = next(iter(self.module.parameters())).device
        return device

    @property
    def precision(self) -> str:
        """The dtype of the weights and of the pass."""
        return str(next(iter(self.module.parameters())).dtype).removeprefix("torch.")

    def read(
        self,
        texts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]] | None,
        *,
        sites: Sequence[str],
        heads: tuple[int, ...] | None = None,
        interventions: Sequence[Intervention] = (),
        is_first: bool = False,
    ) -> Mapping[str, Tensor]:
        """As `Served.read`. Texts of different lengths share a pass if the self-check allows it.

        Texts that are rotated differently for their lengths never share one.

        Raises:
            UnwatchedPass: a site was not passed, or by a tensor of another length than the text's;
                the first pass of the self-check finds the sites that are never passed.
        """
        lengths = {(len(text), len(target)) for text, target in _pairs(texts, targets)}
        shares = self.batches and not any(
            separates(self.switches, each) for each in zip(*lengths, strict=True)
        )
        if len(lengths) == 1 or shares:
            captured = self._read(texts, targets, sites, heads, interventions)
            if not is_first:
                self._require_whole(captured, sites, max(map(len, texts)), targets)
            return captured
        parts = [
            self._read([text], [target] if targets else None, sites, heads, interventions)
            for text, target in _pairs(texts, targets)
        ]
        axes = {name: point.axes for name, point in self.points.hook_points.items()}
        return {site: _stacked([part[site] for part in parts], axes[site]) for site in sites}

    def reread(
        self, inputs: Mapping[str, Tensor], sites: Sequence[str], *, is_first: bool = False
    ) -> Mapping[str, Tensor]:
        """As `read`, of the inputs of a pass of the self-check."""
        targets = inputs.get("decoder_input_ids")
        return self.read(
            inputs["input_ids"].tolist(),
            None if targets is None else targets.tolist(),
            sites=sites,
            is_first=is_first,
        )

    def inputs_of(
        self, texts: Sequence[Sequence[int]], targets: Sequence[Sequence[int]] | None
    ) -> dict[str, Any]:
        """Return the inputs of a pass over texts of one length, without a cache."""
        given = {"input_ids": texts, **({"decoder_input_ids": targets} if targets else {})}
        tensors = {
            name: torch.tensor([list(text) for text in rows], device=self.device)
            for name, rows in given.items()
        }
        return {**tensors, **self._types(texts), "use_cache": False}

    def _types(self, texts: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """Return the types of the tokens, for a model that embeds them."""
        if self.segments is None or not any(self.segments.types):
            return {}
        return {TYPES: pad([self.segments.of(text) for text in texts], self.device).ids}

    def _read(
        self,
        texts: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]] | None,
        sites: Sequence[str],
        heads: tuple[int, ...] | None,
        interventions: Sequence[Intervention],
    ) -> Capture:
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            captured = stack.enter_context(self.points.capture_sites(sites, heads))
            is_streamed = self._streams(sites, interventions)
            stack.enter_context(self.passing(len(texts), interventions, is_streamed=is_streamed))
            batch = pad(texts, self.device, self._padding_id)
            inputs: dict[str, Any] = {"input_ids": batch.ids, "use_cache": False}
            inputs |= self._types(texts)
            if batch.is_token is not None:
                inputs["attention_mask"] = batch.is_token.long()
            if targets:
                inputs["decoder_input_ids"] = pad(targets, self.device, self._padding_id).ids
            if is_streamed and self.output_site not in sites:
                self.module.base_model(**inputs)  # the logits of a book take gigabytes
            else:
                self.points.hook_points[self.output_site](self.output(inputs))
        return captured

    @property
    def output_site(self) -> str:
        """The site of the output: ``logits``, unless the model predicts nothing."""
        return site_of(self.task)[0]

    def output(self, inputs: dict[str, Any]) -> Tensor:
        """Return the output of a pass (row, query, …)."""
        return run(self.task, self.module, inputs)

    @property
    def reads_alone(self) -> bool:
        """Whether the output is of the whole text, so that its end reads one row at a time."""
        return self.task in OF_TEXT and head_of(self.task, self.module) is None

    def _streams(self, sites: Sequence[str], interventions: Sequence[Intervention]) -> bool:
        """Return True if a pass runs its attentions in blocks of queries.

        An older model file whose weights are captured or changed computes them whole.
        """
        names = {site.rpartition(".")[2] for site in sites}
        if not self.is_streamed or not names & set(OBSERVED_AXES):
            return False
        edited = (site for site, _ in self._site_edits(interventions))
        unscaled = unscaled_paths(self.config, interventions, self.paths)
        whole = {site.rpartition(".")[0] for site in (*sites, *edited) if site.endswith(_WHOLE)}
        return not any(
            points.path in whole or points.path in unscaled
            for _, points in self.named.attention_points
            if not points.has_interface
        )

    def _require_whole(
        self,
        captured: Mapping[str, Tensor],
        sites: Sequence[str],
        n_source: int,
        targets: Sequence[Sequence[int]] | None,
    ) -> None:
        """Check that every site was passed, by a tensor as long as the text.

        A model file may attend in another way to texts of other lengths than the self-check's.
        """
        n_target = max(map(len, targets)) if targets else n_source
        axes_of = {site: point.axes for site, point in self.points.hook_points.items()}
        for site in sites:
            if site not in captured:
                raise UnwatchedPass(f"nothing passed {site}: this text takes another way")
            n_queries = n_source if site.startswith("encoder.") else n_target
            n_keys = n_source if ".cross_attention." in site else n_queries
            lengths = {"query": n_queries, "position": n_queries, "key": n_keys}
            for axis, size in zip(axes_of[site], captured[site].shape, strict=True):
                if lengths.get(axis, size) != size:
                    raise UnwatchedPass(
                        f"{site} has {size} along its {axis} axis, the text {lengths[axis]}: "
                        "this model attends to texts of this length in another way"
                    )

    @contextmanager
    def passing(
        self,
        n_rows: int,
        interventions: Sequence[Intervention],
        start: int = 0,
        *,
        is_streamed: bool = False,
    ) -> Iterator[None]:
        """Yield a pass of some rows with interventions; `start` is the position of its first query.

        Raises:
            ImpossibleIntervention: the factor of Q·Kᵀ is not known, so it cannot be left out; or
                the model does not offer a site that has to be edited.
        """
        listed = bound(self.points.sites, interventions, start)
        unscaled = unscaled_paths(self.config, listed, self.paths)
        self._require_scales(unscaled)
        with ExitStack() as stack:
            stack.enter_context(self.with_weights_of(listed))
            for site, edit in self._site_edits(listed):
                self._require_site(site)
                stack.enter_context(self.points.edit(site, edit))
            stack.enter_context(new_pass(n_rows, unscaled, is_streamed=is_streamed, start=start))
            yield

    def _site_edits(self, interventions: Iterable[Intervention]) -> list[tuple[str, Edit]]:
        """Return the edits of sites; the attention itself leaves out the factor of Q·Kᵀ."""
        return site_edits(self.config, interventions, self.paths, unscales=False)

    def _require_site(self, site: str) -> None:
        if site not in self.named.points:
            reason = self.named.omitted.get(site, "the self-check left it out")
            raise ImpossibleIntervention(f"{site} cannot be edited: {reason}")

    def _require_scales(self, unscaled: Iterable[str]) -> None:
        for path in unscaled:
            points = next(
                points for _, points in self.named.attention_points if points.path == path
            )
            if not points.has_interface and points.scale is None:
                raise ImpossibleIntervention(
                    f"the factor of Q·Kᵀ at {path} is not known, so it cannot be left out"
                )

    def with_weights_of(
        self, interventions: Sequence[Intervention]
    ) -> AbstractContextManager[None]:
        """As `Served.with_weights_of`."""
        quantizations = quantizations_of(interventions)
        if not quantizations:
            return nullcontext()
        return quantized_weights(self.module, quantizations, self.matrices)

    @cached_property
    def matrices(self) -> dict[str, nn.Parameter]:
        """The weights that can be rounded, by the part that they are in."""
        return rounded_matrices(self.module, self.named)

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the attentions and of the experts."""
        attentions = (points.path for _, points in self.named.attention_points)
        return frozenset([*attentions, *self.named.experts])

    @property
    def _padding_id(self) -> int:
        padding = getattr(self.module.config.get_text_config(), "pad_token_id", None)
        return padding if isinstance(padding, int) and padding >= 0 else 0

    def dummy_inputs(self, n_tokens: int) -> dict[str, Any]:
        """Return inputs of a pass whose decoder, or only stack, reads that many tokens.

        They are as many texts if the model `reads_alone`.
        """
        ids = torch.full((1, n_tokens), self.dummy_id, device=self.device)
        ids = ids.T if self.reads_alone else ids
        if self.task == "seq2seq":
            return {"input_ids": ids[:, :1], "decoder_input_ids": ids, "use_cache": False}
        return {"input_ids": ids, "use_cache": False}

    @property
    def dummy_id(self) -> int:
        """Return a token that does not change how a text is read."""
        return next(token for token in range(len(self.avoided) + 1) if token not in self.avoided)


def _pairs(
    texts: Sequence[Sequence[int]], targets: Sequence[Sequence[int]] | None
) -> list[tuple[Sequence[int], Sequence[int]]]:
    return list(zip(texts, targets or [()] * len(texts), strict=True))


def _stacked(tensors: Sequence[Tensor], axes: tuple[str, ...]) -> Tensor:
    """Return the rows of several passes as one tensor, padded at the end."""
    longest = [max(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True)]
    if axes[0] != "batch":
        return max(tensors, key=lambda tensor: tensor.shape[0])
    stacked = tensors[0].new_zeros(len(tensors), *longest[1:])
    for number, tensor in enumerate(tensors):
        stacked[number][tuple(slice(size) for size in tensor.shape[1:])] = tensor[0]
    return stacked
