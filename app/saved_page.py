"""The page as one HTML file that opens without a server, with all views of one text.

The file holds the modules of `static/js`, Plotly, and an archive of answers: one trace with every
site that a view draws, and answers about single predictions. `static/js/api/archive.js`
answers the page's requests from it. Code and answers are compressed by gzip, which every browser
reads, and numbers are those of the API: none is rounded.
"""

from __future__ import annotations

import base64
import fnmatch
import gzip
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from headlight.analyses.analysis import Result
from headlight.analyses.analysis_registry import ANALYSES
from headlight.analyses.attention import aligned
from headlight.analyses.differences import LogitDifferenceRequest, Patching
from headlight.analyses.predictions import PredictionsRequest
from headlight.client.decode import Trace, read_trace
from headlight.distribution import __version__
from headlight.joined_scripts import AWAITED, joined
from headlight.model import trace as model_trace
from headlight.model.analysis import head_labels
from headlight.model.positions import alibi_encoding, rotary_encoding, sinusoidal_encoding
from headlight.model.sites import layer_of
from headlight.model.trace import Token
from headlight.models.cards import model_answer
from headlight.models.model_registry import registry_of
from headlight.schemas import SAFETENSORS
from headlight.schemas.traces import TraceRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.trace import Answer, Arrays, encode
from headlight.settings import HOME, Settings
from headlight.static_files import THEME_SCRIPT, logo

Members = dict[str, Any]

ENTRY = "archived.js"
"""The module that opens a page without a server."""

SITES = (
    *(f"*attention.{part}" for part in ("queries", "keys", "rotated_queries", "rotated_keys")),
    *(f"*attention.{part}" for part in ("values", "bias", "scores", "weights", "context")),
    "*attention.output",
    "*.embedding.positional",
    *(f"*.experts.{part}" for part in ("router_probs", "expert_indices", "expert_weights")),
)
"""The sites that the views draw."""

ROW_SITES = tuple(f"*attention.{name}" for name in ("entropy", "first_token", "mean_distance"))
"""The numbers of each row that come with the maps of a long text."""

EXPLAINING = {name: each for name, each in ANALYSES.items() if LogitDifferenceRequest in each.reads}
"""The analyses that explain one prediction."""
OF_A_POSITION = [name for name, each in EXPLAINING.items() if each.Options is None]
"""Those of them that need no second text."""
NOT_HELD = {name for name, each in ANALYSES.items() if each.has_passes or name in EXPLAINING}
"""The analyses that are not of the whole trace, or take minutes."""
MOST_POSITIONS = 64
"""Of a longer text, only the last prediction is explained."""

# Markup below is only a file of ours, JSON without a `<`, or base64.


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The answers that a page holds: safetensors files without packed triangles.

    ``card`` is the answer of `GET /api/v1/models/{id}`, ``whole`` the trace, ``further`` the
    answers to requests about the same text, each behind the request as the page writes it.
    """

    card: Mapping[str, Any]
    whole: bytes
    further: Sequence[tuple[Members, bytes]] = ()

    def pack(self) -> bytes:
        """Return the length of a JSON header (4 bytes, little-endian), header and answers.

        The answers are in four planes, the first bytes of all numbers first: bytes of the same
        meaning side by side compress better (by 7 % in the page of 31 tokens).
        """
        trace = read_trace(self.whole)
        explained = {name for ask, _ in self.further for name in ask.get("analyses", ())}
        start, entries = 0, []
        for content in (self.whole, *(content for _, content in self.further)):
            entries.append({"start": start, "end": start + len(content)})
            start += len(content)
        held = {*explained, *trace.analyses, *(EXPLAINING if explained else ())}
        card = {**self.card, "analyses": [name for name in self.card["analyses"] if name in held]}
        further = [
            {"ask": ask, **entry} for (ask, _), entry in zip(self.further, entries[1:], strict=True)
        ]
        header = json.dumps({"card": card, "whole": entries[0], "further": further}).encode()
        answers = b"".join([self.whole, *(content for _, content in self.further)])
        numbers = np.frombuffer(answers.ljust(-(-start // 4) * 4, b"\0"), np.uint8).reshape(-1, 4)
        return len(header).to_bytes(4, "little") + header + numbers.T.tobytes()


@dataclass(frozen=True)
class SavedPage:
    """A saved page that a notebook shows in an output cell, ``height`` pixels high.

    `save` writes it as a file.
    """

    html: str = field(repr=False)
    height: int = 800

    def _repr_html_(self) -> str:
        """Return the page in an inline frame."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="Headlight" '
            f'style="width: 100%; height: {self.height}px; border: 0"></iframe>'
        )

    def save(self, path: str | Path) -> None:
        """Write the page as an HTML file.

        Raises:
            OSError: the file cannot be written.
        """
        Path(path).write_text(self.html, encoding="utf-8")


def whole_requests(request: TraceRequest, card: Mapping[str, Any]) -> list[TraceRequest]:
    """Return the request of a trace with all that the views draw, and a smaller one.

    What was captured by choice stays, so there is one request; maps of a long text get the numbers
    of their rows.
    """
    labels = () if request.is_observed else ("head_labels",)
    analyses = sorted({*request.wanted_analyses, *labels})
    members = {**_without_prediction(request), "analyses": analyses, "triangle": False}
    chosen = TraceRequest.model_validate(members)
    if request.capture is not None:
        return [chosen]
    make = _maps_request if request.is_observed else _whole_request
    return [make(request, card), chosen]


def _maps_request(request: TraceRequest, card: Mapping[str, Any]) -> TraceRequest:
    """Return the maps with the numbers of rows, and the loss where a length was trained on."""
    names = [site["name"] for site in card["sites"]]
    members = {
        **_without_prediction(request),
        "capture": [glob for glob in ROW_SITES if fnmatch.filter(names, glob)],
        "triangle": False,
    }
    if (
        card["kind"] == "decoder"
        and card["trained_tokens"]
        and PredictionsRequest not in request.options
    ):
        members["analyses"] = sorted({*request.wanted_analyses, "next_token"})
        members["predictions"] = {"top": 1, "following": True}
    return TraceRequest.model_validate(members)


def _whole_request(request: TraceRequest, card: Mapping[str, Any]) -> TraceRequest:
    names = [site["name"] for site in card["sites"]]
    capture = [glob for glob in SITES if fnmatch.filter(names, glob)]
    analyses = {*request.wanted_analyses, "head_labels", *card["analyses"]} - NOT_HELD
    members = {
        **_without_prediction(request),
        "capture": capture,
        "analyses": sorted(analyses),
        "triangle": False,
    }
    return TraceRequest.model_validate(members)


def _without_prediction(request: TraceRequest) -> Members:
    return {
        **request.model_dump(by_alias=True),
        LogitDifferenceRequest.member: None,
        Patching.id: None,
    }


def further_requests(
    request: TraceRequest, card: Mapping[str, Any], trace: Trace
) -> Iterator[tuple[Members, TraceRequest]]:
    """Yield the requests that explain single predictions, each behind its form in the page.

    Every position has its attribution, which takes one pass; the saliency, which takes many, is
    that of the prediction that the page opens, and of the one that the request itself explains,
    with its tokens. So is its patching.
    """
    if not any(site.endswith(".queries") for site in trace):
        return
    tokens = trace.target_tokens or trace.tokens
    first = _opening_position(tokens, card["kind"])
    chosen: Members = {"position": first}
    if (difference := request.options.get(LogitDifferenceRequest)) is not None:
        chosen |= difference.model_dump(exclude_none=True)
    asks: list[Members] = []
    for name in OF_A_POSITION:
        is_quick = not ANALYSES[name].has_passes and len(tokens) <= MOST_POSITIONS
        positions = range(len(tokens)) if is_quick else sorted({first, chosen["position"]})
        differences = [{"position": position} for position in positions]
        differences += [chosen] if len(chosen) > 1 else []
        asks += [{"analyses": [name], "logit_difference": each} for each in differences]
    if (other := request.options.get(Patching.Options)) is not None:
        patching = other.model_dump(exclude_none=True)
        asks.append({"analyses": ["patching"], "patching": patching, "logit_difference": chosen})
    for ask in asks:
        if ask["analyses"][0] not in card["analyses"]:
            continue
        members = {**_without_prediction(request), "capture": [], **ask, "target": trace.target}
        yield ask, TraceRequest.model_validate(members)


def _opening_position(tokens: Sequence[Token], kind: str) -> int:
    """Return the position whose prediction the page opens, as `queryOf` does in the page."""
    masks = [at for at, token in enumerate(tokens) if token.text == "[MASK]"]
    if masks:
        return masks[0]
    end = len(tokens) - 1
    if kind == "decoder":
        return end
    words = [
        at
        for at, token in enumerate(tokens)
        if not token.is_special and any(letter.isalnum() for letter in token.text)
    ]
    if not words or words[-1] == end or kind == "encoder":
        return words[-1] if words else end
    word = tokens[words[-1]].word
    pieces = [
        at for at, token in enumerate(tokens) if token.word is not None and token.word == word
    ]
    return max(min(pieces, default=words[-1]) - 1, 0)


def positional_answers(card: Mapping[str, Any], trace: Trace) -> Iterator[tuple[Members, bytes]]:
    """Yield the encodings of positions that the view of schemes compares, each behind its request.

    The maps of a long text have none: ALiBi's bias has a number for every query and key.
    """
    if card["positional"] == "learned":  # the page asks for the model's own table as well
        return
    if not any(site.endswith(".weights") for site in trace):
        return
    length = len(trace.tokens)
    width, heads = card["d_model"], card["n_heads"]
    head_width = width // heads
    width, head_width = width + width % 2, head_width + head_width % 2
    tables = [
        ({"scheme": "sinusoidal", "width": width}, sinusoidal_encoding(length, width)),
        ({"scheme": "rotary", "width": head_width}, rotary_encoding(length, head_width)),
        ({"scheme": "alibi", "heads": heads}, alibi_encoding(length, heads)),
    ]
    for sizes, table in tables:
        asked = {**sizes, "length": length}
        answer = Arrays(tensors=table, metadata={"model": None, **asked})
        yield {"positional": asked}, encode(answer, ResponseFormat(media_type=SAFETENSORS))


def render(archive: Archive, edits: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the page as HTML; `edits` are the changes of the pass, to be named."""
    return _page(read_trace(archive.whole).text, _packed(archive.pack()), edits)


@cache
def shell() -> str:
    """Return the page with `[answers]` where its answers are to be: the page itself adds them.

    The answers of a long text are in the browser that shows it; reading the text again for a file
    would take minutes.
    """
    return _page("", Markup("[answers]"))


@cache
def cell_page() -> str:
    """Return the page of a notebook's cell, which holds no answers: `static/js/widget.js`."""
    held, kind = {"code": _code()}, {"is_saved": False, "is_cell": True}
    return document("index.html", ["page"], version=__version__, packed="code", held=held, **kind)


def _page(text: str, answers: Markup, edits: Sequence[Mapping[str, Any]] = ()) -> str:
    return document(
        "index.html",
        ["page"],
        text=text,
        edits=json.dumps(edits) if edits else "",
        version=__version__,
        packed="code",
        held={"answers": answers, "code": _code()},
    )


def document(base: str, styles: Sequence[str], **members: Any) -> str:
    """Return a page that opens without a server.

    Args:
        base: the template of the page.
        styles: the names of its style sheets.
        members: the names of its files, and the contents of those that it holds itself.
    """
    members = {"files": [], "held": {}, "is_site": False, "is_saved": True, **members}
    return _templates().get_template("archived.html").render(base=base, **members, **shared(styles))


def shared(styles: Sequence[str]) -> dict[str, Any]:
    """Return what every page without a server holds: its logo, its theme and its style sheets."""
    return {
        "logo": logo(),
        "theme_first": Markup(THEME_SCRIPT),  # a file of ours  # noqa: S704
        "styles": [style(each) for each in styles],
    }


@cache
def _templates() -> Environment:
    return Environment(loader=FileSystemLoader(HOME / "templates"), autoescape=True)


@cache
def _code() -> Markup:
    return _packed(code())


def code(entries: tuple[str, ...] = (ENTRY,), follow: re.Pattern[str] = AWAITED) -> bytes:
    """Return Plotly and the joined modules, as JSON; `follow`: as `joined` has it."""
    content = {"plotly": plotly_code(), "joined": joined(entries, follow)}
    return json.dumps(content, ensure_ascii=False).encode()


def _packed(content: bytes) -> Markup:
    """Compress bytes by gzip and encode them in base64."""
    packed = gzip.compress(content, compresslevel=9, mtime=0)
    return Markup(base64.b64encode(packed).decode())  # noqa: S704


def style(name: str) -> Markup:
    """Return a style sheet of the page, by its name."""
    return Markup((HOME / "static" / "css" / f"{name}.css").read_text())  # noqa: S704


def json_element(value: Any) -> Markup:
    """Return JSON in a script element, escaped so that nothing in it ends the element."""
    return Markup(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c"))  # noqa: S704


def plotly_code() -> str:
    """Return Plotly as it is in its package."""
    return (HOME / "static" / "vendor" / "plotly" / "plotly.min.js").read_text()


def shown(
    trace: model_trace.Trace,
    height: int,
    answers: Sequence[tuple[Members, Mapping[str, Any]]] = (),
    opens: Mapping[str, Any] | None = None,
) -> SavedPage:
    """Return a trace as a page for a notebook; the page has the views whose arrays the trace holds.

    The labels of the heads and the alignment of words follow from the weights and are added. The
    card is that of the model of this name and revision, if this installation has it. `answers` are
    analyses behind the request that the page makes for them; `opens` are the parts of the address
    that it opens.

    Raises:
        ValueError: the trace holds no attention weights.
    """
    if not any(site.endswith("attention.weights") for site in trace):
        raise ValueError("the page shows attention; capture '*.self_attention.weights'")
    analyses: dict[str, Any] = dict(getattr(trace, "analyses", {}))
    labels = head_labels.head_labels(trace) if trace.heads is None else {}
    names = {"labels": list(head_labels.LABELS)}
    analyses.setdefault("head_labels", Result(arrays=labels, metadata=names))
    card = _card_of(trace)
    if any(site.endswith("cross_attention.weights") for site in trace):
        with suppress(ValueError):  # a text without words, or the aligning head is not in the trace
            analyses.setdefault("alignment", aligned(trace, card.get("aligner") or {}))
    whole = _encoded(trace, analyses)
    further = [(ask, _encoded(replace(trace, tensors={}), made)) for ask, made in answers]
    further += positional_answers(card, read_trace(whole))
    page = render(Archive(card=card, whole=whole, further=further))
    if opens:
        link = json_element({"link": f"#{urlencode(opens)}"})
        page = page.replace(
            "</head>", f'<script type="application/json" id="opening">{link}</script></head>', 1
        )
    return SavedPage(page, height)


def _encoded(trace: model_trace.Trace, analyses: Mapping[str, Any]) -> bytes:
    results = {
        name: Result(arrays=each.arrays, metadata=each.metadata) for name, each in analyses.items()
    }
    answer = Answer(id=getattr(trace, "id", ""), trace=trace, analyses=results)
    return bytes(encode(answer, ResponseFormat(media_type=SAFETENSORS)))


def _card_of(trace: model_trace.Trace) -> Mapping[str, Any]:
    """Return the card of the model that made a trace, or what the trace itself says."""
    registry = registry_of(Settings())
    if trace.model in registry.ids:
        description = registry.describe(trace.model)
        if description.revision == trace.revision:
            return model_answer(description, registry.status(trace.model)).model_dump(mode="json")
    weights = [site for site in trace if site.endswith("attention.weights")]
    is_pair = trace.target_tokens is not None
    kind = "encoder" if weights[0].startswith("encoder") else "decoder"
    stream = next((trace[site] for site in trace if site.endswith("embedding.positional")), None)
    return {
        "id": trace.model,
        "title": trace.model,
        "kind": "encoder-decoder" if is_pair else kind,
        "n_layers": len({layer_of(site) for site in weights}),
        "n_heads": len(trace[weights[0]]),
        "d_model": 0 if stream is None else stream.shape[-1],
        "d_ff": 0,
        "vocab_size": 0,
        "max_tokens": len(trace.tokens),
        "positional": "none" if stream is None else "sinusoidal",
        "norm": "",
        "norm_place": "pre",
        "activation": "",
        "has_mask": False,
        "moe": None,
        "parameters": 0,
        "revision": trace.revision,
        "licence": "",
        "analyses": ["head_labels", "alignment", *getattr(trace, "analyses", {})],
        "sites": [
            {"name": name, "axes": list(array.axes)} for name, array in trace.tensors.items()
        ],
        "state": "loaded",
    }
