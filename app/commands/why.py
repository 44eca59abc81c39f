"""`headlight why`: from a predicted word backwards, why each head looked where it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from headlight.commands.options import AsJson, Device, ModelsDir, Precision, Server
from headlight.commands.output import say
from headlight.commands.parsing import Commands, option

if TYPE_CHECKING:
    from headlight.client import Trace

app = Commands()
UNCHANGED = 0.1
"""The share of a weight, or of what a head makes of a difference, below which a change is none."""


@app.command()
def why(
    model: Annotated[str, typer.Argument(help="A model's id, or its folder.", metavar="MODEL")],
    text: Annotated[str, typer.Argument(help="The text.", metavar="TEXT")],
    target: Annotated[str | None, option("The target of an encoder–decoder.", "TEXT")] = None,
    position: Annotated[int | None, option("Of the prediction.", "N", min=0)] = None,
    token: Annotated[str | None, option("The token to explain.", "TEXT")] = None,
    against: Annotated[str | None, option("The token to compare it with.", "TEXT")] = None,
    as_json: AsJson = False,
    server: Server = None,
    device: Device = None,
    precision: Precision = None,
    models_dir: ModelsDir = None,
) -> None:
    """Say which head spoke for the next word, and why it looked where it did, step by step.

    Each step has its share of the sum that it is a part of, and what is left without it.
    """
    options = locals()
    from headlight.client import read_trace
    from headlight.commands.backend import chosen_backend, ending_with_its_reader, request_of
    from headlight.schemas import JSON, SAFETENSORS
    from headlight.schemas.traces import TraceRequest

    asked = {"position": position, "token": token, "against": against}
    members = {
        "model": model,
        "text": text,
        "target": target,
        "capture": [],
        "analyses": ["attention_thread"],
        "logit_difference": {name: each for name, each in asked.items() if each is not None},
    }
    given = {name: each for name, each in members.items() if each is not None}
    with chosen_backend(options, is_long=False) as backend:
        request = request_of(TraceRequest, given, backend, {})
        with ending_with_its_reader():
            if as_json:
                typer.echo(backend.answer(request, JSON).decode())
                return
            for line in lines_of(read_trace(backend.answer(request, SAFETENSORS))):
                say(Text(line))


def lines_of(trace: Trace) -> Iterator[str]:
    """Yield the lines of the thread of a trace."""
    thread = trace.analyses["attention_thread"]
    token, against = (f"“{thread[name]['text']}”" for name in ("token", "against"))
    logits = thread["logits"]
    yield f"{token} rather than {against}: {float(logits[0] - logits[1]):+.2f} logits"
    for number, step in enumerate(thread["steps"], 1):
        if step["kind"] == "end":
            yield f"{number}. Here it ends: {step['name']}."
            return
        yield f"{number}. {_reason(step)}{_others(step)}"
        if step["key"] is not None:
            yield f"   It reads {_at(trace, step, 'key')} from {_at(trace, step, 'query')}, " + (
                f"weight {step['weight']:.2f}."
            )
        if step["adds"] is not None:
            yield f"   {_adds(step['adds'], token, against)}"
        if step["after"] is not None:
            yield f"   {_cut(step)}"


def _reason(step: Mapping[str, Any]) -> str:
    if step["side"] == "logits":
        return f"Head {step['name']} makes {step['share']:.0%} of this difference."
    is_named = step["kind"] in ("head", "network")
    part = f"{step['kind']} {step['name']}" if is_named else f"the {step['name']}"
    opposite = step["opposite"]
    is_cause = step["after"] is not None and step["after"] < step["before"] / 2
    begin = "It looked there because of" if is_cause else "The largest part of it came from"
    return (
        f"{begin} {part}: {step['share']:.0%} of the lead, on the "
        f"{step['side']} side (strongest on the other: {opposite['name']}, "
        f"{opposite['share']:.0%})."
    )


def _others(step: Mapping[str, Any]) -> str:
    others: Sequence[Mapping[str, Any]] = step["others"]
    told = ", ".join(f"{each['name']} {each['share']:.0%}" for each in others)
    return f" Nearly as much: {told}." if told else ""


def _adds(adds: Sequence[float], token: str, against: str) -> str:
    """Return what a head adds to both words: it may speak for one, or against the other."""
    told = f"It adds {adds[0]:+.2f} to {token}, {adds[1]:+.2f} to {against}"
    speaks_against = adds[1] < 0 and abs(adds[1]) > abs(adds[0])
    return f"{told}: it speaks against {against}." if speaks_against else f"{told}."


def _cut(step: Mapping[str, Any]) -> str:
    """Return what a cut changes; a part that changes little is one that others stand in for."""
    before, after = step["before"], step["after"]
    is_of_logits = step["side"] == "logits"
    what, expected = ("the difference", step["share"]) if is_of_logits else ("the weight", 1.0)
    told = f"Without {step['edge']}, {what} goes from {before:.2f} to {after:.2f}"
    is_kept = abs(after - before) < UNCHANGED * abs(expected * before)
    return f"{told}: other parts stand in." if is_kept else f"{told}."


def _at(trace: Trace, step: Mapping[str, Any], axis: str) -> str:
    is_source = step["attention"].startswith("encoder") or (
        axis == "key" and "cross_attention" in step["attention"]
    )
    tokens = trace.tokens if is_source or trace.target_tokens is None else trace.target_tokens
    place = step[axis]
    return f"“{tokens[place].text}” ({place})"
