"""The thread of a prediction, as lines and as a page.

    print(headlight.load("stories").why("Once upon a time"))
    Client().why("Once upon a time").show()

`headlight why` prints the same lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from headlight.client.decode import Analysis, read_trace
from headlight.distribution import import_whole
from headlight.model.trace import Trace

if TYPE_CHECKING:
    from headlight.model.served import Served
    from headlight.saved_page import SavedPage

UNCHANGED = 0.1
"""The share of a weight, or of what a head makes of a difference, below which a change is none."""
THREAD = "attention_thread"
DRAWN = "*_attention.weights"


@dataclass(frozen=True, repr=False)
class Why:
    """Which head spoke for a word, and why each looked where it did; `print` writes it as lines.

    ``thread`` is the answer of the analysis `attention_thread`.
    """

    trace: Trace
    thread: Analysis

    def __repr__(self) -> str:
        """Return the lines."""
        return "\n".join(lines_of(self.trace, self.thread))

    def show(self, height: int = 800) -> SavedPage:
        """Return the page with the thread on the sentence, for an output cell of a notebook."""
        saved = import_whole("headlight.saved_page")
        at = {"position": self.thread["position"]}
        words = {name: self.thread[name]["id"] for name in ("token", "against")}
        ask = {"analyses": [THREAD], "logit_difference": {**at, **words}}
        opens = {"view": "word", "word_show": "thread", "query": at["position"], **words}
        page: SavedPage = saved.shown(self.trace, height, [(ask, {THREAD: self.thread})], opens)
        return page


def read_why(content: bytes) -> Why:
    """Read the answer to a request of `attention_thread`.

    Raises:
        UnreadableAnswer: the content is anything else.
    """
    trace = read_trace(content)
    return Why(trace, trace.analyses[THREAD])


def why_of(
    model: Served,
    text: str,
    target: str | None = None,
    *,
    position: int | None = None,
    token: int | str | None = None,
    against: int | str | None = None,
) -> Why:
    """Return the thread of a prediction of a loaded model, as `served.Explained.why` has it."""
    from headlight.model.tracing import trace
    from headlight.problems import Problem
    from headlight.schemas.traces import TraceRequest
    from headlight.tracing.results import analyse, choices_of, sites_of

    asked = {"position": position, "token": token, "against": against}
    chosen = {name: each for name, each in asked.items() if each is not None}
    asked_for = {"text": text, "analyses": [THREAD], "logit_difference": chosen}
    request = TraceRequest.model_validate(asked_for)
    try:
        sites = sites_of([THREAD], model.description)
        read = trace(model, text, target, capture=[*sites, DRAWN])
        made = analyse(THREAD, read, model, choices_of(request, model, ()))
    except Problem as problem:
        raise ValueError(problem.detail) from problem
    weights = {site: each for site, each in read.tensors.items() if site.endswith(".weights")}
    thread = Analysis(arrays=made.arrays, metadata=made.metadata)
    return Why(replace(read, tensors=weights), thread)


def lines_of(trace: Trace, thread: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the thread of a trace."""
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
    tokens, text = trace.tokens, trace.text
    if not is_source and trace.target_tokens is not None:
        tokens, text = trace.target_tokens, trace.target or ""
    place, token = step[axis], tokens[step[axis]]
    pieces = [each for each in tokens if token.word is not None and each.word == token.word]
    of = f" of “{text[pieces[0].start : pieces[-1].end].strip()}”" if len(pieces) > 1 else ""
    return f"“{token.text}”{of} ({place})"
