"""What the command line prints of models and traces."""

import sys
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from app.encoder import encode_checked
from app.form import JSON, SAFETENSORS, Form
from app.limits import limits_of
from app.problems import Problem
from app.registry import Registry, registry_of
from app.schemas import TraceRequest
from app.settings import Settings
from app.tracer import Tracer
from app.wire import Answer

console = Console(highlight=False)

N_SHOWN = 3


def write_trace(
    order: TraceRequest, settings: Settings, *, as_json: bool, safetensors: Path | None
) -> None:
    """Trace a text and print it, or write it to a file.

    Args:
        order: what to trace.
        settings: limits, models and device.
        as_json: print JSON instead of a table.
        safetensors: a file to write instead.

    Raises:
        ValueError: the request breaks a rule; the message says which.
        OSError: the file cannot be written.
    """
    tracer = Tracer(registry_of(settings), settings)
    try:
        if safetensors:
            safetensors.write_bytes(_encoded(tracer, order, SAFETENSORS))
            console.print(f"the trace is in {safetensors}", markup=False)
        elif as_json:
            sys.stdout.buffer.write(_encoded(tracer, order, JSON) + b"\n")
        else:
            answer = tracer.trace(order.model_copy(update={"analyses": ["next_token"]}))
            _print_trace(answer, tracer.registry.describe(answer.trace.model).config.kind)
    except Problem as problem:
        raise ValueError(problem.detail) from problem


def _encoded(tracer: Tracer, order: TraceRequest, media_type: str) -> bytes:
    form = Form(media_type=media_type, dtype=order.dtype, triangle=order.triangle)
    return encode_checked(tracer.trace(order), form)


def write_models(settings: Settings) -> None:
    """Print a table of the models, and the damaged folders with their reasons."""
    registry = registry_of(settings)
    table = Table(
        Column("id", no_wrap=True), Column("kind", no_wrap=True), box=None, pad_edge=False
    )
    for name in ("layers", "heads", "experts", "weights", "tokens"):
        table.add_column(name, justify="right", no_wrap=True)
    for found in registry.descriptions.values():
        config, moe = found.config, found.config.moe
        table.add_row(
            found.id,
            config.kind,
            str(config.n_layers),
            str(config.n_heads),
            f"{moe.top_k} of {moe.n_experts}" if moe else "dense",
            f"{found.n_parameters / 1e6:.1f} M",
            str(config.max_tokens),
        )
    console.print(table)
    _print_unavailable(registry)


def write_limits(settings: Settings) -> None:
    """Print every limit: its value, what more is answered with, what sets it, and its reason."""
    limits = limits_of(settings, registry_of(settings).descriptions)
    for name, limit in limits.items():
        values = limit.value if isinstance(limit.value, dict) else {"": limit.value}
        shown = ", ".join(f"{value:,} {model}".strip() for model, value in values.items())
        facts = [limit.refusal or "nothing is refused", limit.env or "fixed"]
        console.print(Text(f"{name}  {shown} {limit.unit}", style="bold"))
        console.print(Padding(Text(" · ".join(facts)), (0, 0, 0, 2)))
        console.print(Padding(Text(limit.reason), (0, 0, 1, 2)))


def _print_unavailable(registry: Registry) -> None:
    for model, reason in registry.unavailable.items():
        console.print(f"{model} is left out: {reason}", markup=False, style="yellow")


def _print_trace(answer: Answer, kind: str) -> None:
    trace, found = answer.trace, answer.analyses["next_token"]
    expected = "what may stand here" if kind == "encoder" else "what may come next"
    texts = [repr(text) for text in (trace.text, trace.target) if text is not None]
    console.print(Text(f"{trace.model} reads {', then '.join(texts)}"), soft_wrap=True)
    table = Table("", "token", expected)
    probabilities = found.arrays["probabilities"].data
    for place, token in enumerate(trace.target_tokens or trace.tokens):
        best = zip(found.beside["texts"][place][:N_SHOWN], probabilities[place], strict=False)
        shown = "   ".join(f"{text!r} {_percent(float(p))}" for text, p in best)
        table.add_row(str(place), Text(repr(token.text)), Text(shown))
    console.print(table)
    for site, array in trace.tensors.items():
        sizes = zip(array.axes, array.data.shape, strict=True)
        console.print(f"{site}  {' '.join(f'{axis}={size}' for axis, size in sizes)}")


def _percent(probability: float) -> str:
    """A probability as a whole percentage that is never rounded to none or to certainty."""
    if probability < 0.005:
        return "<1 %"
    return ">99 %" if probability > 0.995 else f"{100 * probability:.0f} %"
