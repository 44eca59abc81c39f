"""Hook points: named activations of a model that can be captured or edited.

A layer passes a tensor through a `HookPoint`; that is all a layer knows about visualisation. The
site of a hook point is its path in the module tree, ``decoder.layers.0.self_attention.weights``.
Captures and edits are held in a ContextVar. Therefore two threads that run one model never see
each other's tensors, and a pass stores nothing on a module.

    with model.capture(["decoder.layers.*.self_attention.weights"]) as captured:
        model(ids)
    captured["decoder.layers.0.self_attention.weights"]  # (batch, head, query, key)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from headlight.model.sites import (
    REQUESTED_AXES,
    Site,
    layer_of,
    match_sites,
    require_heads,
    require_layers,
)

Edit = Callable[[Tensor], Tensor]
OnRecord = Callable[[dict[str, Tensor], str], None]
Function = Callable[..., Any]


class HookPoint(nn.Module):
    """An identity module with declared axes, whose tensor can be captured or edited.

    Args:
        axes: the names of the tensor's axes, in order, separated by spaces.
        sizes: the sizes of the axes that the architecture fixes, checked when the point is used.
    """

    def __init__(self, axes: str, **sizes: int) -> None:
        super().__init__()
        self.axes = tuple(axes.split())
        self.sizes = sizes

    def forward(self, tensor: Tensor, heads: tuple[int, ...] | None = None) -> Tensor:
        """Return the tensor, or what the edits of this point make of it.

        Args:
            tensor: with this point's axes.
            heads: the heads along the head axis; None: all of them.

        Raises:
            ValueError: the point is captured or edited and the shape contradicts its axes.
        """
        active = _active.get()
        return tensor if active is None else active.apply(self, tensor, heads)

    # An idle point costs a third of what it would cost with nn.Module.__call__ around it.
    __call__ = forward

    def extra_repr(self) -> str:
        """Return the axes, for ``print(model)``."""
        return " ".join(self.axes)

    def check(self, tensor: Tensor, heads: tuple[int, ...] | None) -> None:
        """Raise ValueError if the tensor's shape contradicts the declared axes."""
        sizes = self.sizes if heads is None else {**self.sizes, "head": len(heads)}
        shape = tuple(tensor.shape)
        is_right = len(shape) == len(self.axes) and all(
            sizes.get(axis, size) == size for axis, size in zip(self.axes, shape, strict=True)
        )
        if not is_right:
            expected = ", ".join(f"{axis}={sizes.get(axis, 'any')}" for axis in self.axes)
            raise ValueError(
                f"a tensor of shape {shape} passed a hook point with axes ({expected})"
            )


class Capture(Mapping[str, Tensor]):
    """The captured tensors by site, in the order of the pass.

    Filled inside the ``with`` block and kept after it. A second pass replaces the first's tensors.
    """

    def __init__(self, names: Mapping[HookPoint, str], heads: tuple[int, ...] | None) -> None:
        self.names = names
        self.heads = heads
        self._tensors: dict[str, Tensor] = {}
        self._on_record = _on_record.get()

    def record(self, point: HookPoint, tensor: Tensor, present: tuple[int, ...] | None) -> None:
        """Keep a tensor, or the requested heads of it.

        Args:
            point: the hook point.
            tensor: with the point's axes.
            present: the heads along the head axis; None: all of them.
        """
        if self.heads is not None and "head" in point.axes and self.heads != present:
            rows = self.heads if present is None else [present.index(head) for head in self.heads]
            index = tensor.new_tensor(rows, dtype=torch.long)
            tensor = tensor.index_select(point.axes.index("head"), index)
        self._tensors[self.names[point]] = tensor
        if self._on_record is not None:
            self._on_record(self._tensors, self.names[point])

    def __getitem__(self, site: str) -> Tensor:
        return self._tensors[site]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


@dataclass(frozen=True)
class _Active:
    """The edits and captures of each hook point in the current context."""

    edits: Mapping[HookPoint, tuple[Edit, ...]] = field(default_factory=dict)
    captures: Mapping[HookPoint, tuple[Capture, ...]] = field(default_factory=dict)

    def apply(self, point: HookPoint, tensor: Tensor, heads: tuple[int, ...] | None) -> Tensor:
        edits = self.edits.get(point, ())
        captures = self.captures.get(point, ())
        if edits or captures:
            point.check(tensor, heads)
        for edit in edits:
            edited = edit(tensor)
            if not isinstance(edited, Tensor):
                raise ValueError(
                    f"an edit returned {type(edited).__name__}, not a tensor; "
                    "return the tensor, changed or not"
                )
            if edited.shape != tensor.shape:
                raise ValueError(
                    f"an edit turned shape {tuple(tensor.shape)} into {tuple(edited.shape)}; "
                    "an edit keeps the shape"
                )
            tensor = edited
        for capture in captures:
            capture.record(point, tensor, heads)
        return tensor


_active: ContextVar[_Active | None] = ContextVar("headlight_hooks", default=None)
_on_record: ContextVar[OnRecord | None] = ContextVar("headlight_on_record", default=None)


@contextmanager
def reducing(on_record: OnRecord | None) -> Iterator[None]:
    """Call a function with the tensors of each capture that begins inside, and the newest site."""
    token = _on_record.set(on_record)
    try:
        yield
    finally:
        _on_record.reset(token)


@contextmanager
def _activate(active: _Active) -> Iterator[None]:
    token = _active.set(active)
    try:
        yield
    finally:
        _active.reset(token)


def is_any_hooked() -> bool:
    """Return True if any point is captured or edited in the current context."""
    return _active.get() is not None


def is_hooked(point: HookPoint) -> bool:
    """Return True if a point is captured or edited in the current context."""
    active = _active.get()
    return active is not None and (point in active.captures or point in active.edits)


def is_edited(point: HookPoint) -> bool:
    """Return True if a point is edited in the current context."""
    active = _active.get()
    return active is not None and point in active.edits


def site_of(point: HookPoint) -> str:
    """Return the site of a point that is captured in the current context; empty if it is not."""
    active = _active.get()
    captures = () if active is None else active.captures.get(point, ())
    return captures[0].names[point] if captures else ""


def hooked_heads(points: Iterable[HookPoint], n_heads: int) -> tuple[int, ...]:
    """Return the heads, ascending, that are captured or edited at any of these points."""
    active = _active.get()
    if active is None:
        return ()
    heads: set[int] = set()
    for point in points:
        if point in active.edits:
            return tuple(range(n_heads))
        for capture in active.captures.get(point, ()):
            heads.update(range(n_heads) if capture.heads is None else capture.heads)
    return tuple(sorted(heads))


class FunctionMode(TorchFunctionMode):
    """Calls every function of PyTorch inside the ``with`` block through `_call`."""

    def __torch_function__(
        self,
        func: Function,
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return self._call(func, args, kwargs or {})

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError


class SkipInitialisation(FunctionMode):
    """Inside the ``with`` block, initialising a tensor leaves it unchanged.

    Drawing random weights takes longer than reading them from a file, and on the meta device
    PyTorch imports its compiler to do so, one second of a server's start.

    Args:
        of_meta_alone: only tensors of the meta device, which have no numbers, are skipped.
    """

    def __init__(self, *, of_meta_alone: bool = False) -> None:
        super().__init__()
        self.of_meta_alone = of_meta_alone

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        is_draw = func in (Tensor.normal_, Tensor.uniform_)
        if is_draw or getattr(func, "__module__", None) == nn.init.__name__:
            tensor = kwargs["tensor"] if "tensor" in kwargs else args[0]
            if tensor.is_meta or not self.of_meta_alone:
                return tensor
        return func(*args, **kwargs)


class HookedModule(nn.Module):
    """A model whose hook points can be listed, captured and edited by name."""

    @cached_property
    def hook_points(self) -> Mapping[str, HookPoint]:
        """Every hook point by its site name, in the order of the module tree.

        Walked once: a model's tree does not change after it is built.
        """
        return {
            name: module for name, module in self.named_modules() if isinstance(module, HookPoint)
        }

    @property
    def sites(self) -> tuple[Site, ...]:
        """Every site with its axes, in the order of the module tree.

        Maps and rows are none: their sizes are those that a pass asks for (`observation.Watch`).
        """
        return tuple(
            Site(name, point.axes, point.sizes)
            for name, point in self.hook_points.items()
            if not REQUESTED_AXES & set(point.axes)
        )

    @contextmanager
    def capture(
        self,
        sites: Iterable[str],
        *,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
    ) -> Iterator[Capture]:
        """Keep the tensors that pass the given sites inside the ``with`` block.

        Args:
            sites: site names or globs, ``decoder.layers.*.self_attention.weights``.
            layers: only the sites in these layers, and those outside the layers; None: all.
            heads: only these heads of tensors with a head axis, in this order; None: all.

        Yields:
            A mapping from site to tensor, not detached from the graph.

        Raises:
            UnknownSite: a glob matches nothing; the message suggests the nearest site.
            UnknownLayer, UnknownHead: the model has no layer or head of that number.
        """
        points = self.hook_points
        names = match_sites(sites, (site.name for site in self.sites))
        if layers is not None:
            require_layers(layers, points)
            names = [name for name in names if layer_of(name) in {None, *layers}]
        if heads is not None:
            counts = (point.sizes.get("head", 0) for point in points.values())
            require_heads(heads, max(counts, default=0))
        with self.capture_sites(names, None if heads is None else tuple(heads)) as capture:
            yield capture

    @contextmanager
    def capture_sites(
        self, names: Iterable[str], heads: tuple[int, ...] | None = None
    ) -> Iterator[Capture]:
        """As `capture`, of names of sites and of heads that are validated already."""
        chosen = {self.hook_points[name]: name for name in names}
        capture = Capture(chosen, heads)
        active = _active.get() or _Active()
        captures = {**active.captures}
        for point in chosen:
            captures[point] = (*captures.get(point, ()), capture)
        with _activate(replace(active, captures=captures)):
            yield capture

    @contextmanager
    def edit(self, site: str, edit: Edit) -> Iterator[None]:
        """Replace the tensor at the matching sites inside the ``with`` block.

        Several edits of one site run in the order they were entered. A capture sees their result.

        Args:
            site: a site name or a glob.
            edit: a function of the tensor that returns one of the same shape.

        Raises:
            UnknownSite: the glob matches nothing.
        """
        points = self.hook_points
        active = _active.get() or _Active()
        edits = {**active.edits}
        for name in match_sites([site], points):
            edits[points[name]] = (*edits.get(points[name], ()), edit)
        with _activate(replace(active, edits=edits)):
            yield


@contextmanager
def gradient_leaves(model: HookedModule, sites: Iterable[str]) -> Iterator[dict[str, Tensor]]:
    """Cut the graph at some sites inside the ``with`` block, so that gradients are taken there.

    Yields:
        By site, in the order of the pass, the tensor that all later computation reads.
    """
    leaves: dict[str, Tensor] = {}

    def cut(site: str) -> Edit:
        def edit(tensor: Tensor) -> Tensor:
            leaves[site] = tensor.detach().clone().requires_grad_()
            return leaves[site]

        return edit

    with ExitStack() as stack:
        for site in sites:
            stack.enter_context(model.edit(site, cut(site)))
        yield leaves
