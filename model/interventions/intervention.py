"""An intervention in a forward pass: the sites that it edits, and the rest that a pass must know.

To add a kind, subclass `Intervention` and override what applies to it. No other file asks of which
kind an intervention is.

Nothing here imports PyTorch, so an intervention and its form in the API can share a file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from headlight.model.config import Architecture
from headlight.model.sites import Site, UnknownLayer

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor

    from headlight.model.trace import Trace

Where: TypeAlias = Literal["encoder", "decoder", "cross"]
SiteEdits: TypeAlias = "Iterator[tuple[str, Callable[[Tensor], Tensor]]]"
"""Pairs of a site and a function of its tensor."""

ATTENTIONS: dict[Where, str] = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}


class ImpossibleIntervention(ValueError):
    """An intervention on a part that the model lacks, or one that leaves nothing to compute."""


class Intervention:
    """A change to a forward pass; a frozen dataclass that overrides what applies to it.

    Attributes:
        stage: interventions of a lower stage act first; those of the last, `SITES`, in their order.
        shares_pass: whether texts of different lengths can be rows of one pass.
        is_bounded: whether no value of its fields makes numbers that are not finite.
    """

    SITES: ClassVar[int] = 100
    stage: ClassVar[int] = 0
    shares_pass: ClassVar[bool] = True
    is_bounded: ClassVar[bool] = True

    @property
    def needs_every_key(self) -> bool:
        """Whether a step of generation reads the whole text; a sliding cache lacks keys."""
        return False

    @property
    def quantizations(self) -> tuple[Any, ...]:
        """The `Quantization`s by which it rounds weights."""
        return ()

    def bind(self, sites: Iterable[Site], start: int | None = None) -> Self:
        """Return the intervention with what it must know of a model's sites.

        Args:
            sites: of the model.
            start: the position of the first query of a pass, after those of a cache; None: as it
                is.

        Raises:
            UnknownSite, UnknownHead, UnknownPosition, ImpossibleIntervention: the model has no such
                site or head, or the site cannot be edited so.
        """
        return self

    def edits(self, places: Places) -> SiteEdits:
        """Yield the edits of sites.

        Raises:
            UnknownLayer, UnknownHead, UnknownExpert: a number that the model does not have.
            ImpossibleIntervention: the model lacks what is edited.
        """
        yield from ()

    @classmethod
    def combined(cls, interventions: Sequence[Self], places: Places) -> SiteEdits:
        """Yield the edits of all interventions of this kind together; raise as `edits`."""
        for each in interventions:
            yield from each.edits(places)

    def unscaled(self, places: Places) -> Sequence[str]:
        """Return the paths of the attentions in which it leaves Q·Kᵀ without its factor.

        The attention of a foreign model leaves the factor out itself; there the intervention edits
        nothing.
        """
        return ()

    def require_fitting(self, sizes_at: Callable[[str], Mapping[str, int]]) -> None:
        """Check the intervention, bound, against a text.

        Args:
            sizes_at: gives the size of each axis at a site.

        Raises:
            UnknownPosition: the text has no such position.
            ImpossibleIntervention: a value does not fit the tensor.
        """

    def for_generation(self, n_prompt: int, max_tokens: int) -> Self:
        """Return the intervention as it acts while a text grows.

        Args:
            n_prompt: the tokens of the prompt.
            max_tokens: the most that the text may have.

        Raises:
            UnknownPosition: a position lies beyond the longest text.
            ImpossibleIntervention: it depends on how long the text is.
        """
        return self

    def with_model(self, model: Any) -> Intervention:
        """Return the intervention with what it needs of the weights and passes of a `Served`.

        Raises:
            NoGraph, UnknownEdge, ImpossibleIntervention: the model has not what it acts on.
            EmptyText, TooManyTokens, UnknownToken, ValueError: a text that it reads cannot be read.
        """
        return self

    def with_values_of(self, trace: Trace, positions: Sequence[int] | None) -> Self:
        """Return the intervention with values of another trace, if it takes any.

        Args:
            trace: the other trace.
            positions: of the other trace; None: those that the intervention sets.

        Raises:
            UnknownPosition, ImpossibleIntervention: the trace lacks what is taken from it.
        """
        return self


@dataclass(frozen=True, kw_only=True)
class PlacedIntervention(Intervention):
    """An intervention in some layers and stacks.

    ``layer``: in one layer; None: in all. ``where``: in one attention (encoder, decoder, cross) or
    in the experts of one stack; None: in all.
    """

    layer: int | None = None
    where: Where | None = None


@dataclass(frozen=True)
class Places:
    """The places of a model that an intervention can act on.

    Args:
        config: the architecture.
        paths: of the attentions and experts of the model; None: every layer has all of its kind.
    """

    config: Architecture
    paths: Collection[str] | None = None

    def attentions(self, place: PlacedIntervention) -> list[str]:
        """Return the paths of the attentions on which an intervention acts.

        Raises:
            UnknownLayer, ImpossibleIntervention: the model has no such layer or attention.
        """
        config = self.config
        exist: dict[Where, bool] = {
            "encoder": config.has_encoder,
            "decoder": config.has_decoder,
            "cross": config.kind == "encoder-decoder",
        }
        known = [where for where in ATTENTIONS if exist[where]]
        paths = [
            ATTENTIONS[where].format(layer)
            for where in _chosen(place.where, known, "attention")
            for layer in self._layers(place.layer)
        ]
        return self._existing(paths, "attention")

    def routers(self, place: PlacedIntervention) -> list[str]:
        """Return the paths of the expert layers on which an intervention acts.

        Raises:
            UnknownLayer, ImpossibleIntervention: the model has no such layer, or no experts there.
        """
        config = self.config
        assert config.moe is not None
        layers = [layer for layer in self._layers(place.layer) if config.has_experts(layer)]
        if not layers:
            routed = ", ".join(map(str, config.moe.layers))
            raise ImpossibleIntervention(
                f"layer {place.layer} has no experts; layers with experts: {routed}"
            )
        exist: dict[Where, bool] = {"encoder": config.has_encoder, "decoder": config.has_decoder}
        known = [where for where, is_there in exist.items() if is_there]
        stacks = _chosen(place.where, known, "experts")
        paths = [f"{stack}.layers.{layer}.experts" for stack in stacks for layer in layers]
        return self._existing(paths, "experts")

    def _layers(self, layer: int | None) -> list[int]:
        n_layers = self.config.n_layers
        if layer is None:
            return list(range(n_layers))
        if not 0 <= layer < n_layers:
            raise UnknownLayer(f"there is no layer {layer}; the layers are 0 to {n_layers - 1}")
        return [layer]

    def _existing(self, paths: Sequence[str], what: str) -> list[str]:
        """Return those of the paths that the model has."""
        existing = [path for path in paths if self.paths is None or path in self.paths]
        if not existing:
            raise ImpossibleIntervention(f"the model has no {what} at {', '.join(paths[:3])}")
        return existing


def _chosen(where: Where | None, known: list[Where], what: str) -> list[Where]:
    if where is None:
        return known
    if where not in known:
        there = " and ".join(known)
        raise ImpossibleIntervention(
            f"the model has no {what} at '{where}'; it has {what} at {there}"
        )
    return [where]
