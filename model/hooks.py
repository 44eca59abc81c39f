"""Named places in a model where a tensor can be looked at (`capture`) or replaced (`edit`).

A layer passes a tensor through a `HookPoint`; that is all a layer knows about visualisation. A
hook point's site is its path in the module tree, ``decoder.layers.0.self_attention.weights``.
Who is watching lives in a ContextVar, so two threads that run one model never see each other's
tensors, and nothing is stored on a module while it runs.

    with model.capture(["decoder.layers.*.self_attention.weights"]) as captured:
        model(ids)
    captured["decoder.layers.0.self_attention.weights"]  # (batch, head, query, key)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property

from torch import Tensor, nn

from headlight.model.sites import Site, layer_of, match_sites, require_heads, require_layers

Edit = Callable[[Tensor], Tensor]


class HookPoint(nn.Module):
    """An identity with declared axes: a tensor passes through and may be seen or replaced there.

    Args:
        axes: the names of the tensor's axes, in order, separated by spaces.
        sizes: the axes whose size the architecture fixes; they are checked at capture.
    """

    def __init__(self, axes: str, **sizes: int) -> None:
        super().__init__()
        self.axes = tuple(axes.split())
        self.sizes = sizes

    def forward(self, tensor: Tensor, heads: tuple[int, ...] | None = None) -> Tensor:
        """Return the tensor, edited where somebody edits it here.

        Args:
            tensor: any tensor with this point's axes.
            heads: the heads that its head axis holds; None: all of them.

        Raises:
            ValueError: somebody watches here and the shape is not what the axes say.
        """
        watch = _watch.get()
        return tensor if watch is None else watch.pass_through(self, tensor, heads)

    # Without the bookkeeping of nn.Module.__call__ an idle point costs a third as much.
    __call__ = forward

    def extra_repr(self) -> str:
        """The axes, for ``print(model)``."""
        return " ".join(self.axes)

    def check(self, tensor: Tensor, heads: tuple[int, ...] | None) -> None:
        """Raise ValueError unless the tensor has the declared axes."""
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
    """The tensors seen at the sites asked for, by site name, in the order of the pass.

    Filled while the ``with`` block runs and kept after it. A second pass replaces the first's.
    """

    def __init__(self, names: Mapping[HookPoint, str], heads: tuple[int, ...] | None) -> None:
        self.names = names
        self.heads = heads
        self._tensors: dict[str, Tensor] = {}

    def record(self, point: HookPoint, tensor: Tensor, present: tuple[int, ...] | None) -> None:
        """Keep a tensor, or the heads of it that were asked for.

        Args:
            point: the hook point that the tensor passes.
            tensor: the tensor, with the point's axes.
            present: the heads that its head axis holds; None: all of them.
        """
        if self.heads is not None and "head" in point.axes and self.heads != present:
            rows = self.heads if present is None else [present.index(head) for head in self.heads]
            index = tensor.new_tensor(rows, dtype=int)
            tensor = tensor.index_select(point.axes.index("head"), index)
        self._tensors[self.names[point]] = tensor

    def __getitem__(self, site: str) -> Tensor:
        return self._tensors[site]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


@dataclass(frozen=True)
class _Watch:
    """Who edits and who captures at which point, in the current context."""

    edits: Mapping[HookPoint, tuple[Edit, ...]] = field(default_factory=dict)
    captures: Mapping[HookPoint, tuple[Capture, ...]] = field(default_factory=dict)

    def pass_through(
        self, point: HookPoint, tensor: Tensor, heads: tuple[int, ...] | None
    ) -> Tensor:
        edits = self.edits.get(point, ())
        captures = self.captures.get(point, ())
        if edits or captures:
            point.check(tensor, heads)
        for edit in edits:
            edited = edit(tensor)
            if edited.shape != tensor.shape:
                raise ValueError(
                    f"an edit turned shape {tuple(tensor.shape)} into {tuple(edited.shape)}; "
                    "an edit keeps the shape"
                )
            tensor = edited
        for capture in captures:
            capture.record(point, tensor, heads)
        return tensor


_watch: ContextVar[_Watch | None] = ContextVar("headlight_watch", default=None)


@contextmanager
def _watching(watch: _Watch) -> Iterator[None]:
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def watched_heads(points: Iterable[HookPoint], n_heads: int) -> tuple[int, ...]:
    """The heads, ascending, that somebody captures or edits at any of these points."""
    watch = _watch.get()
    if watch is None:
        return ()
    heads: set[int] = set()
    for point in points:
        if point in watch.edits:
            return tuple(range(n_heads))
        for capture in watch.captures.get(point, ()):
            heads.update(range(n_heads) if capture.heads is None else capture.heads)
    return tuple(sorted(heads))


def count_heads(points: Iterable[HookPoint]) -> int:
    """How many heads the points with a head axis have; 0 where there is none."""
    return max((point.sizes.get("head", 0) for point in points), default=0)


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
        """Every site with its axes, in the order of the module tree."""
        return tuple(Site(name, point.axes) for name, point in self.hook_points.items())

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
            layers: of the sites that lie in a layer, only those in these layers.
            heads: of a tensor with a head axis, only these heads, in this order.

        Yields:
            A mapping from site name to tensor, attached to the graph as it was computed.

        Raises:
            UnknownSite: a glob matches nothing; the message suggests the nearest that does.
            UnknownLayer, UnknownHead: a number that the model does not have.
        """
        points = self.hook_points
        names = match_sites(sites, points)
        if layers is not None:
            require_layers(layers, points)
            names = [name for name in names if layer_of(name) in {None, *layers}]
        if heads is not None:
            require_heads(heads, count_heads(points.values()))
        chosen = {points[name]: name for name in names}
        capture = Capture(chosen, None if heads is None else tuple(heads))
        watch = _watch.get() or _Watch()
        captures = {**watch.captures}
        for point in chosen:
            captures[point] = (*captures.get(point, ()), capture)
        with _watching(replace(watch, captures=captures)):
            yield capture

    @contextmanager
    def edit(self, site: str, edit: Edit) -> Iterator[None]:
        """Replace the tensor at the matching sites inside the ``with`` block.

        Edits of one site run in the order they were entered, and captures see what they left.

        Args:
            site: a site name or a glob.
            edit: takes the tensor, returns one of the same shape.

        Raises:
            UnknownSite: the glob matches nothing.
        """
        points = self.hook_points
        watch = _watch.get() or _Watch()
        edits = {**watch.edits}
        for name in match_sites([site], points):
            edits[points[name]] = (*edits.get(points[name], ()), edit)
        with _watching(replace(watch, edits=edits)):
            yield
