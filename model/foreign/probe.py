"""Record one pass of a model: the calls of its modules, and every attention in it.

The sites are named later by comparing the recorded numbers (`naming`), so that no model needs its
own code. A pass of 11 source tokens and 7 target tokens tells the axes apart by their length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from headlight.model.foreign.attention import SOFTMAXES
from headlight.model.foreign.operations import PRODUCTS, OperationRecorder, is_attention_shape
from headlight.model.foreign.points import Order, new_pass, observer
from headlight.model.hooks import Function, FunctionMode

N_SOURCE, N_TARGET, N_ROWS = 11, 7, 2
TOP_KS = {torch.topk, Tensor.topk}
# Operations that the formula scale·Q·Kᵀ + mask → softmax → ·V is written with.
_PLAIN = {
    *("matmul", "mul", "add", "softmax", "to", "type", "dropout", "transpose", "contiguous"),
    *("reshape", "expand", "view", "repeat_interleave", "size", "float", "__get__", "__getitem__"),
    *("__mul__", "__rmul__", "__add__", "__radd__", "dim", "permute", "type_as", "repeat"),
    *("__matmul__", "unsqueeze", "flatten", "is_floating_point", "masked_fill"),
}


@dataclass
class Call:
    """One call of one module, with copies of its tensors.

    ``slots`` says where each input stood: an index of the arguments or a keyword; ``places`` where
    each output did: an index, or None for a tensor by itself. ``n_outputs`` is the length of a
    tuple of outputs, and None for a tensor. ``choices`` are the shapes that its own ``topk`` chose
    from, and how many it chose.
    """

    name: str
    module: nn.Module
    number: int
    start: int
    inputs: list[Tensor] = field(default_factory=list)
    slots: list[int | str] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)
    end: int = -1
    n_outputs: int | None = None
    choices: list[tuple[tuple[int, ...], int]] = field(default_factory=list)
    operations: OperationRecorder = field(default_factory=OperationRecorder)

    def is_within(self, other: Call) -> bool:
        """Return True if this call happened inside another one."""
        return other.start < self.start and self.end <= other.end


@dataclass
class AttentionCall:
    """One attention of the pass; tensors have the axes (batch, head, token, d_head).

    ``operations`` are those between the queries and the context, for a file with the interface;
    ``order`` is None for such a file. ``sinks`` are the logits next to the scores of the keys.
    """

    call: Call
    time: int
    order: Order | None
    queries: Tensor | None
    keys: Tensor | None
    values: Tensor | None
    scores: Tensor
    weights: Tensor
    context: Tensor
    mask: Tensor | None = None
    options: dict[str, Any] = field(default_factory=dict)
    operations: set[str] = field(default_factory=set)
    n_softmaxes: int = 1
    has_sink: bool = False
    sinks: Tensor | None = None

    @property
    def has_interface(self) -> bool:
        """Whether the model file hands the attention to the interface."""
        return self.order is None

    @property
    def is_plain(self) -> bool:
        """Whether the weights follow from only queries, keys, scale and mask."""
        terms = {
            name
            for name, value in self.options.items()
            if value is not None and ("bias" in name or "softcap" in name or "aux" in name)
        }
        return self.has_interface and self.operations <= _PLAIN and not terms


class Recorder:
    """The calls and attentions of one pass, in order, and its output.

    ``softmaxes`` has the class of the module and the shape of each softmax that is in no attention
    of the interface.
    """

    def __init__(self, model: nn.Module, lengths: set[tuple[int, int]]) -> None:
        self.model, self.lengths = model, lengths
        self.calls: list[Call] = []
        self.attentions: list[AttentionCall] = []
        self.softmaxes: list[tuple[str, tuple[int, ...]]] = []
        self.n_unnamed_softmaxes = 0
        self._n_small_softmaxes: Counter[int] = Counter()
        self._stack: list[Call] = []
        self._clock = 0
        self._counts: dict[int, int] = {}
        self._is_inside = False
        self.output: Any = None

    @property
    def n_unseen_softmaxes(self) -> int:
        """The softmaxes of the pass that belong to no recorded attention and no router.

        A softmax of two or three axes is a router's if it is of as many numbers as are chosen, or
        as a matrix makes, and not of as many as there are tokens.
        """
        made = {size for parameter in self.model.parameters() for size in parameter.shape[:1]}
        made -= {n_keys for _, n_keys in self.lengths}
        choices = (choice for call in self.calls for choice in call.choices)
        made |= {size for shape, count in choices for size in (shape[-1], count)}
        others = (n for size, n in self._n_small_softmaxes.items() if size not in made)
        return self.n_unnamed_softmaxes + sum(others)

    def other_shape(self) -> str:
        """Say the shape of a softmax that is not over the tokens; empty: there is none."""
        for kind, shape in self.softmaxes:
            if len(shape) >= 3 and shape[-2:] not in self.lengths:
                return f": that of its {kind} has the shape {shape} for texts of {N_SOURCE} tokens"
        return ""

    # --- modules ---------------------------------------------------------------------------------

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the passes inside the ``with`` block."""
        handles = []
        for name, module in self.model.named_modules():
            handles.append(
                module.register_forward_pre_hook(self._enter(name), with_kwargs=True, prepend=True)
            )
            handles.append(module.register_forward_hook(self._leave, with_kwargs=True))
        token = observer.set(self)
        try:
            with new_pass(), _Watch(self):
                yield
        finally:
            observer.reset(token)
            for handle in handles:
                handle.remove()

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def _enter(self, name: str) -> Callable[..., None]:
        def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            number = self._counts.get(id(module), 0)
            self._counts[id(module)] = number + 1
            call = Call(name, module, number, self._tick())
            slots: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
            for slot, value in slots:
                if isinstance(value, Tensor):
                    call.inputs.append(value.detach().clone())
                    call.slots.append(slot)
            self.calls.append(call)
            self._stack.append(call)

        return enter

    def _leave(self, module: nn.Module, args: object, kwargs: object, output: Any) -> None:
        call = self._stack.pop()
        while call.module is not module:  # a call that raised and was caught
            call = self._stack.pop()
        call.end = self._tick()
        if isinstance(output, Tensor):
            call.outputs, call.places = [output.detach().clone()], [None]
        elif isinstance(output, tuple | list):
            call.n_outputs = len(output)
            for place, value in enumerate(output):
                if isinstance(value, Tensor):
                    call.outputs.append(value.detach().clone())
                    call.places.append(place)

    # --- attentions ------------------------------------------------------------------------------

    def attention(
        self,
        module: nn.Module,
        eager: Callable[..., tuple[Tensor, Tensor]],
        tensors: tuple[Tensor, Tensor, Tensor, Tensor | None],
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor]:
        """Run and record an attention that the model file hands to the interface."""
        query, key, value, mask = tensors
        call = next(call for call in reversed(self._stack) if call.module is module)
        self._is_inside = True
        try:
            with _EagerTap(key.shape[-2]) as tap:
                context, weights = eager(module, query, key, value, mask, **options)
        finally:
            self._is_inside = False
        if tap.weights is not None and tap.scores is not None:
            n_keys = key.shape[-2]
            self.attentions.append(
                AttentionCall(
                    call=call,
                    time=self._tick(),
                    order=None,
                    queries=query.detach().clone(),
                    keys=key.detach().clone(),
                    values=value.detach().clone(),
                    scores=tap.scores[..., :n_keys],
                    weights=tap.weights[..., :n_keys],
                    context=context.detach().clone().transpose(1, 2),
                    mask=mask,
                    options=dict(options),
                    operations=tap.operations,
                    n_softmaxes=tap.n_softmaxes,
                    has_sink=tap.weights.shape[-1] > n_keys,
                    sinks=tap.sinks,
                )
            )
        return context, weights

    def _add_older(self, call: Call) -> None:
        """Record the attention that was found among a module's operations."""
        operations = call.operations
        assert operations.weights is not None
        assert operations.scores is not None
        assert operations.values is not None
        assert operations.context is not None
        queries = keys = None
        if operations.factors is not None:
            queries = _by_head(operations.factors[0], N_ROWS).detach().clone()
            keys = _by_head(operations.factors[1], N_ROWS).transpose(-1, -2).detach().clone()
        self.n_unnamed_softmaxes -= 1
        self.attentions.append(
            AttentionCall(
                call=call,
                time=self._tick(),
                order=operations.order,
                queries=queries,
                keys=keys,
                values=_by_head(operations.values, N_ROWS).detach().clone(),
                scores=_by_head(operations.scores, N_ROWS),
                weights=_by_head(operations.weights, N_ROWS),
                context=_by_head(operations.context, N_ROWS).detach().clone(),
            )
        )

    def operation(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run an operation; products and softmaxes are those of the innermost module."""
        call = next((call for call in reversed(self._stack) if not _is_bare(call.module)), None)
        if self._is_inside or call is None:
            return func(*args, **kwargs)
        if func in TOP_KS and isinstance(args[0], Tensor):
            count = args[1] if len(args) > 1 else kwargs["k"]
            call.choices.append((tuple(args[0].shape), int(count)))
            return func(*args, **kwargs)
        is_attention = False
        if func in SOFTMAXES:
            scores = args[0] if args else kwargs["input"]
            is_attention = is_attention_shape(scores) and tuple(scores.shape[-2:]) in self.lengths
            self.softmaxes.append((type(call.module).__name__, tuple(scores.shape)))
            self.n_unnamed_softmaxes += is_attention or scores.ndim >= 4
            is_filter = scores.ndim == 3 and scores.shape[-1] == 1  # each token's of a convolution
            is_small = not is_attention and scores.ndim < 4 and not is_filter
            self._n_small_softmaxes[scores.shape[-1]] += is_small
        if func in SOFTMAXES or func in PRODUCTS:
            for outer in self._stack:
                if outer is not call:
                    outer.operations.skip(func)
        was_open = call.operations.context is None
        result = call.operations.operation(func, args, kwargs, is_attention=is_attention)
        if was_open and call.operations.context is not None:
            self._add_older(call)
        return result


def _is_bare(module: nn.Module) -> bool:
    """Return True if a module is only an operation, without parameters or parts."""
    return not any(True for _ in module.children()) and not any(
        True for _ in module.parameters(recurse=False)
    )


class _Watch(FunctionMode):
    """Shows every operation to a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.recorder.operation(func, args, kwargs)


class _EagerTap(FunctionMode):
    """Records the operations of one eager attention."""

    def __init__(self, n_keys: int) -> None:
        super().__init__()
        self.n_keys = n_keys
        self.operations: set[str] = set()
        self.scores: Tensor | None = None
        self.sinks: Tensor | None = None
        self.weights: Tensor | None = None
        self.n_softmaxes = 0

    def _call(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.operations.add(getattr(func, "__name__", repr(func)))
        result = func(*args, **kwargs)
        is_cat = func is torch.cat and len(args[0]) == 2
        if is_cat and args[0][0].shape[-1] == self.n_keys and args[0][1].shape[-1] == 1:
            self.scores, self.sinks = (part.detach().clone() for part in args[0])
        if func in SOFTMAXES:
            scores = args[0] if args else kwargs["input"]
            self.n_softmaxes += 1
            if self.scores is None:
                self.scores = scores.detach().clone()
            self.weights = result.detach().clone()
        return result


def _by_head(tensor: Tensor, n_rows: int) -> Tensor:
    """Return (batch·head, …) or (batch, head, …) with four axes."""
    if tensor.ndim == 4 or tensor.shape[0] % n_rows:
        return tensor if tensor.ndim == 4 else tensor[None]
    by_head: Tensor = tensor.unflatten(0, (n_rows, -1))
    return by_head


def record(model: Any, inputs: dict[str, Any], lengths: set[tuple[int, int]]) -> Recorder:
    """Record one pass over the inputs.

    Args:
        model: of Transformers, in eval mode.
        inputs: keyword arguments of its ``forward``.
        lengths: the possible numbers of queries and keys.
    """
    recorder = Recorder(model, lengths)
    with torch.inference_mode(), recorder.recording():
        recorder.output = model(**inputs)
    return recorder


def probe_inputs(
    task: str, vocab_size: int, avoid: AbstractSet[int], device: torch.device
) -> dict[str, Any]:
    """Return token ids of a probe pass: two different rows, without the ids to avoid."""
    generator = torch.Generator().manual_seed(7)
    allowed = torch.tensor([n for n in range(min(vocab_size, 1000)) if n not in avoid] or [0])

    def ids(length: int) -> Tensor:
        return allowed[torch.randint(len(allowed), (N_ROWS, length), generator=generator)]

    inputs = {"input_ids": ids(N_SOURCE)}
    if task == "seq2seq":
        inputs["decoder_input_ids"] = ids(N_TARGET)
    return {**{name: tensor.to(device) for name, tensor in inputs.items()}, "use_cache": False}


def probe_lengths(task: str) -> set[tuple[int, int]]:
    """Return the possible numbers of queries and keys of the attentions of a probe pass."""
    lengths = {(N_SOURCE, N_SOURCE)}
    if task == "seq2seq":
        lengths |= {(N_TARGET, N_TARGET), (N_TARGET, N_SOURCE)}
    return lengths
