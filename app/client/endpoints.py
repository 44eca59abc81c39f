"""Every call of the API as a function: its arguments, its request, and how its answer is read.

`Client` and `AsyncClient` turn each function into a method that sends the call. None is left out of
a request, so the server's default applies.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Generic, SupportsIndex, TypeAlias, TypeVar
from urllib.parse import quote

import numpy as np

from headlight.client.decode import (
    EXPERIMENT,
    GENERATION,
    EventKinds,
    Experiment,
    ExperimentEvent,
    GenerationEvent,
    Positional,
    Trace,
    read_experiment,
    read_json,
    read_positional,
    read_safetensors,
    read_trace,
    read_traces,
)
from headlight.model.trace import NamedArray
from headlight.schemas import EVENT_STREAM, JSON, SAFETENSORS, SVG, LimitAnswer
from headlight.schemas.atlas import (
    AtlasAnswer,
    AtlasHeadAnswer,
    AtlasMatchesAnswer,
    AtlasSearchAnswer,
)
from headlight.schemas.circuits import CircuitAnswer, TasksAnswer
from headlight.schemas.experiments import ExperimentAnswer, ExperimentsAnswer
from headlight.schemas.links import LinkAnswer, LinkStateAnswer
from headlight.schemas.models import ModelAnswer, ModelsAnswer
from headlight.schemas.traces import DType, Scheme, TokenAnswer, TokenizeAnswer

BASE = "/api/v1"

Answer = TypeVar("Answer")
Integers: TypeAlias = SupportsIndex | Iterable[SupportsIndex]
Strings: TypeAlias = str | Iterable[str]
Edits: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any]]

LISTS = frozenset(
    (
        *("texts", "targets", "ids", "capture", "layers", "heads"),
        *("analyses", "edits", "queries", "forced", "stop", "name", "pairs", "edges"),
    )
)
"""The arguments that are lists; one item may be given in place of a list of it."""

_read_models = read_json(ModelsAnswer)
_read_model = read_json(ModelAnswer)
_read_limits = read_json(dict[str, LimitAnswer])
_read_experiments = read_json(ExperimentsAnswer)
_read_description = read_json(ExperimentAnswer)
_read_link = read_json(LinkAnswer)
_read_link_state = read_json(LinkStateAnswer)
_read_tasks = read_json(TasksAnswer)
_read_circuit = read_json(CircuitAnswer)
_read_atlas = read_json(AtlasAnswer)
_read_atlas_head = read_json(AtlasHeadAnswer)
_read_atlas_search = read_json(AtlasSearchAnswer)
_read_atlas_matches = read_json(AtlasMatchesAnswer)
_read_tokenized = read_json(TokenizeAnswer)


@dataclass(frozen=True, kw_only=True)
class Call(Generic[Answer]):
    """A request, and how to read its answer. All calls are safe to repeat."""

    method: str
    path: str
    read: Callable[[bytes], Answer]
    accept: str = JSON
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    is_immutable: bool = False
    """The answer never changes, so a client keeps it with its entity tag."""
    events: EventKinds = field(default_factory=lambda: GENERATION)
    """The types of the events of a stream, by name."""

    @property
    def key(self) -> tuple[Any, ...]:
        """The key under which a client keeps the answer: equal calls have equal keys."""
        named = ((name, str(value)) for name, value in self.params.items())
        return self.path, *named

    def request(self, etag: str | None = None) -> dict[str, Any]:
        """Return arguments for `httpx.Client.request`; `etag` makes the request conditional."""
        headers = {"Accept": self.accept}
        if etag:
            headers["If-None-Match"] = etag
        content = None
        if self.body is not None:
            headers["Content-Type"] = JSON
            content = f"{{{', '.join(map(_json_member, self.body.items()))}}}".encode()
        given = {"params": self.params, "headers": headers, "content": content}
        return {"method": self.method, "url": self.path, **given}


def models() -> Call[ModelsAnswer]:
    """Every model of the server, in short: `model` adds its sites and figures."""
    return Call(method="GET", path=f"{BASE}/models", read=_read_models)


def model(model: str) -> Call[ModelAnswer]:
    """One model's card, with its sites and figures."""
    return Call(method="GET", path=f"{BASE}/models/{_segment(model)}", read=_read_model)


def atlas(model: str) -> Call[AtlasAnswer]:
    """Describe what a model's atlas was made of."""
    return Call(method="GET", path=_atlas(model), read=_read_atlas)


def atlas_head(model: str, *, attention: str, head: SupportsIndex) -> Call[AtlasHeadAnswer]:
    """Count the commonest pairs, distances and parts of speech of one head over the corpus.

    Args:
        model: an id.
        attention: its path, `decoder.layers.0.self_attention`.
        head: its number.
    """
    params = _given({"attention": attention, "head": head})
    return Call(method="GET", path=f"{_atlas(model)}/head", read=_read_atlas_head, params=params)


def atlas_search(
    model: str,
    *,
    from_word: str | None = None,
    to_word: str | None = None,
    from_tag: str | None = None,
    to_tag: str | None = None,
    nearest: SupportsIndex | None = None,
    farthest: SupportsIndex | None = None,
    same_word: bool | None = None,
    attention: str | None = None,
    layer: SupportsIndex | None = None,
    head: SupportsIndex | None = None,
    n_sentences: SupportsIndex | None = None,
) -> Call[AtlasSearchAnswer]:
    """Rank the heads that attend from some words to others, with sentences of the corpus.

    Args:
        model: an id.
        from_word: the word of the query, in any case; None: any.
        to_word: the word of the key.
        from_tag: the query's part of speech, as `PRON` or `pronoun`.
        to_tag: the key's part of speech.
        nearest: the least distance, query minus key in tokens; with `farthest`.
        farthest: the greatest distance.
        same_word: whether query and key are one word at two places.
        attention: only this attention, by its path.
        layer: only this layer.
        head: only this head.
        n_sentences: how many sentences to return, at most.
    """
    params = _given({name: value for name, value in locals().items() if name != "model"})
    if same_word is not None:
        params["same_word"] = str(same_word).lower()
    path = f"{_atlas(model)}/search"
    return Call(method="GET", path=path, read=_read_atlas_search, params=params)


def atlas_matches(model: str, *, other: str) -> Call[AtlasMatchesAnswer]:
    """Match every head with the head of another model that does the most alike, by both atlases.

    Args:
        model: an id.
        other: the id of the other model.
    """
    path, params = f"{_atlas(model)}/matches", {"other": other}
    return Call(method="GET", path=path, read=_read_atlas_matches, params=params)


def _atlas(model: str) -> str:
    return f"{BASE}/models/{_segment(model)}/atlas"


def limits() -> Call[dict[str, LimitAnswer]]:
    """Every limit in force, by name."""
    return Call(method="GET", path=f"{BASE}/limits", read=_read_limits)


def weights(name: Strings, *, model: str) -> Call[dict[str, NamedArray]]:
    """Trained matrices by name, of attention by head.

    Args:
        name: names or globs: `decoder.layers.0.self_attention.W_Q`, `*.W_O`, `*.W_E`, `W_U`.
        model: an id.
    """
    path = f"{BASE}/models/{_segment(model)}/weights"
    params = _given({"name": name})
    return Call(method="GET", path=path, read=_read_arrays, accept=SAFETENSORS, params=params)


def tokenize(
    text: str | None = None,
    *,
    ids: Integers | None = None,
    model: str | None = None,
    special_tokens: bool | None = None,
) -> Call[list[TokenAnswer]]:
    """Split a text into a model's tokens, or spell token ids.

    Args:
        text: the text; None: `ids` are given.
        ids: token ids in place of a text.
        model: an id; None: the server's default.
        special_tokens: whether special tokens are added to the text; None: they are.
    """
    body = _given(locals())
    return Call(method="POST", path=f"{BASE}/tokenize", read=_read_tokens, body=body)


def trace(
    text: str | None = None,
    *,
    ids: Integers | None = None,
    model: str | None = None,
    special_tokens: bool | None = None,
    target: str | None = None,
    capture: Strings | None = None,
    layers: Integers | None = None,
    heads: Integers | None = None,
    analyses: Strings | None = None,
    predictions: Mapping[str, Any] | None = None,
    logit_difference: Mapping[str, Any] | None = None,
    patching: Mapping[str, Any] | None = None,
    edits: Edits | None = None,
    resolution: SupportsIndex | None = None,
    queries: Integers | None = None,
    dtype: DType | None = None,
    triangle: bool | None = None,
) -> Call[Trace]:
    """Run a model on a text and return what its forward pass computed.

    Args:
        text: the input; None: `ids` are given.
        ids: token ids in place of a text, read as they are.
        model: an id; None: the server's default.
        special_tokens: whether special tokens are added to the text; None: they are.
        target: the decoder's input in an encoder–decoder; None: the model's own translation.
        capture: site names or globs; None: attention weights, positional encoding and routing.
        layers: of the sites in layers, only these.
        heads: of arrays with a head axis, only these.
        analyses: names of quantities to compute from the trace.
        predictions: the tokens of next_token and logit_lens: `{"top": 5, "tokens": [" cat"]}`;
            `following`: true for the probability that each token of the text had; `temperature`,
            `top_k` and `top_p` for the probabilities of being sampled.
        logit_difference: the two tokens that logit_attribution, patching and saliency compare,
            and where: `{"position": 3, "token": " cat", "against": " dog"}`.
        patching: the second text of the analysis patching: `{"text": "A dog"}`.
        edits: changes to the pass: `{"kind": "heads_off", "heads": [3], "layer": 1}`, or
            `{"kind": "set", "site": "decoder.layers.0.residual.after", "from": {"text": "A dog"}}`.
        resolution: capture `mean_map` and `max_map` of every attention, at most that many bins a
            side; the text may then be a book, and `tile` shows any part of a map closer.
        queries: capture the exact `rows` of these positions of every attention.
        dtype: `uint16` halves the bytes of numbers between 0 and 1; they are read back as float32,
            with an error of at most 8e-6.
        triangle: do not send the part of causal arrays above the diagonal; it is restored here.
    """
    body = _given(locals())
    return Call(method="POST", path=f"{BASE}/trace", read=read_trace, accept=SAFETENSORS, body=body)


def traces(
    texts: Strings | None = None,
    *,
    ids: Iterable[Integers] | None = None,
    targets: Strings | None = None,
    model: str | None = None,
    special_tokens: bool | None = None,
    capture: Strings | None = None,
    layers: Integers | None = None,
    heads: Integers | None = None,
    analyses: Strings | None = None,
    predictions: Mapping[str, Any] | None = None,
    logit_difference: Mapping[str, Any] | None = None,
    patching: Mapping[str, Any] | None = None,
    edits: Edits | None = None,
    resolution: SupportsIndex | None = None,
    queries: Integers | None = None,
    dtype: DType | None = None,
    triangle: bool | None = None,
) -> Call[list[Trace]]:
    """Run a model on up to 64 `texts`; each trace is as `trace` returns it, with its arguments.

    `ids` are the token ids of each in place of texts. `targets` are those of an encoder–decoder,
    one for each text; None: its own translations.
    """
    body = _given(locals())
    path = f"{BASE}/traces"
    return Call(method="POST", path=path, read=read_traces, accept=SAFETENSORS, body=body)


def trace_by_id(
    trace_id: str, *, dtype: DType | None = None, triangle: bool | None = None
) -> Call[Trace]:
    """Return a trace computed before, for as long as the server keeps it.

    Raises:
        NotFound: it is no longer kept; `trace` computes it again.
    """
    return Call(
        method="GET",
        path=f"{BASE}/traces/{_segment(trace_id)}",
        read=read_trace,
        accept=SAFETENSORS,
        params=_given({"dtype": dtype, "triangle": triangle}),
        is_immutable=True,
    )


def tile(
    trace_id: str,
    attention: str,
    head: SupportsIndex,
    *,
    queries: tuple[int, int],
    keys: tuple[int, int],
    resolution: SupportsIndex | None = None,
) -> Call[dict[str, NamedArray]]:
    """Return a rectangle of one head's weights of a trace with a resolution, without a new pass.

    Args:
        trace_id: of the trace.
        attention: its path, `decoder.layers.0.self_attention`.
        head: the head.
        queries: the first and the one after the last.
        keys: as the queries.
        resolution: the most bins a side; None: 512. `max_map` is missing if every bin is one cell.

    Raises:
        NotFound: the trace's queries and keys are no longer kept; `trace` computes it again.
    """
    named = {"attention": attention, "head": head, "resolution": resolution}
    parts = {"queries": "{}:{}".format(*queries), "keys": "{}:{}".format(*keys)}
    path = f"{BASE}/traces/{_segment(trace_id)}/tile"
    params = _given(named) | parts
    return Call(method="GET", path=path, read=_read_arrays, accept=SAFETENSORS, params=params)


def generate(
    text: str | None = None,
    *,
    n_tokens: SupportsIndex,
    ids: Integers | None = None,
    model: str | None = None,
    special_tokens: bool | None = None,
    forced: Integers | None = None,
    skip: SupportsIndex | None = None,
    temperature: float | None = None,
    top_k: SupportsIndex | None = None,
    top_p: float | None = None,
    repetition_penalty: float | None = None,
    stop: Strings | None = None,
    beams: SupportsIndex | None = None,
    length_penalty: float | None = None,
    best_of: SupportsIndex | None = None,
    reward: str | None = None,
    seed: SupportsIndex | None = None,
    n_alternatives: SupportsIndex | None = None,
    layers: Integers | None = None,
    heads: Integers | None = None,
    capture: Strings | None = None,
    edits: Edits | None = None,
) -> Call[GenerationEvent]:
    """Continue a text: `Started`, one `TokenWritten` for each token, `Ended`.

    Leaving the loop closes the stream, and the server stops generating.

    Args:
        text: the beginning; None: `ids` are given.
        n_tokens: the largest number of tokens to generate.
        ids: token ids in place of a text, read as they are.
        model: a decoder; None: the server's default.
        special_tokens: whether special tokens are added to the text; None: they are.
        forced: tokens to take in place of the first sampled ones.
        skip: the number of forced tokens that have no event.
        temperature: divides the logits; 0 takes the likeliest token.
        top_k: sample from the k likeliest tokens only.
        top_p: sample from the fewest tokens whose probabilities reach p.
        repetition_penalty: above 1 makes the tokens of the text so far less likely.
        stop: strings; the text ends before the first of them.
        beams: above 1, beam search of this width in place of sampling.
        length_penalty: of beam search; log-probabilities are divided by length^penalty.
        best_of: above 1, sample so many texts and write the one that `reward` rates highest.
        reward: the reward model of `best_of`.
        seed: of the random numbers.
        n_alternatives: the number of likeliest tokens in each event.
        layers: attention and routing of these layers only.
        heads: attention of these heads only.
        capture: site names or globs, whose tensors each event has in `tensors`.
        edits: changes to every pass, as in `trace`.
    """
    body = _given(locals())
    path = f"{BASE}/generate"
    return Call(method="POST", path=path, read=_read_nothing, accept=EVENT_STREAM, body=body)


def tasks() -> Call[TasksAnswer]:
    """Every task for circuits that ships, with its rule."""
    return Call(method="GET", path=f"{BASE}/tasks", read=_read_tasks)


def circuit(
    *,
    model: str,
    task: str | None = None,
    pairs: Iterable[Mapping[str, Any]] | None = None,
    n_pairs: SupportsIndex | None = None,
    score: str | None = None,
    steps: SupportsIndex | None = None,
    rule: str | None = None,
    baseline: str | None = None,
    n_edges: SupportsIndex | None = None,
    faithfulness: float | None = None,
    edges: Strings | None = None,
    holds_out: bool | None = None,
    by_position: bool | None = None,
    by_expert: bool | None = None,
) -> Call[CircuitAnswer]:
    """Find the few edges of a model that do a task, and measure their own run.

    Args:
        model: an id.
        task: the name of a task that ships; None: `pairs` are given.
        pairs: `{"clean": "The dogs with the girl", "corrupted": "The dog with the girl",
            "right": " were", "wrong": " was"}`, with as many tokens in both texts.
        n_pairs: of the task; None: 32.
        score: eap, eap_ig, noising, denoising or exact; None: eap_ig.
        steps: of eap_ig; None: 5.
        rule: top, greedy or pruned; None: pruned.
        baseline: corrupted, zero or mean; None: corrupted.
        n_edges: how many; None: as few as reach `faithfulness`.
        faithfulness: None: 0.9.
        edges: names of edges in place of a choice, `3.3→logits`: only their run is measured.
        holds_out: False: all pairs choose and measure.
        by_position: True: edges at each position by themselves, `3.3→logits@5`.
        by_expert: True: each expert is a writer, `2.e5`.
    """
    body = _given(locals())
    del body["model"]
    path = f"{BASE}/models/{_segment(model)}/circuit"
    return Call(method="POST", path=path, read=_read_circuit, body=body)


def positional(
    length: SupportsIndex,
    *,
    scheme: Scheme | None = None,
    model: str | None = None,
    width: SupportsIndex | None = None,
    heads: SupportsIndex | None = None,
) -> Call[Positional]:
    """Return the encoding of `length` positions, by a scheme and its sizes or by a model."""
    params = _given(locals(), lists=frozenset())
    path = f"{BASE}/positional"
    return Call(method="GET", path=path, read=read_positional, accept=SAFETENSORS, params=params)


def experiments() -> Call[ExperimentsAnswer]:
    """Every experiment in short."""
    return Call(method="GET", path=f"{BASE}/experiments", read=_read_experiments)


def experiment_description(name: str) -> Call[ExperimentAnswer]:
    """One experiment: its parameters with their limits, its arrays, and what to see."""
    path = f"{BASE}/experiments/{_segment(name)}"
    return Call(method="GET", path=path, read=_read_description)


def experiment(name: str, /, **parameters: Any) -> Call[Experiment]:
    """Run an experiment and return its whole result.

    Args:
        name: of the experiment.
        parameters: those that differ from their defaults.
    """
    path = f"{BASE}/experiments/{_segment(name)}"
    return Call(method="POST", path=path, read=read_experiment, body=parameters)


def experiment_frames(name: str, /, **parameters: Any) -> Call[ExperimentEvent]:
    """Run an experiment: `ExperimentStarted`, each `ExperimentFrame`, `ExperimentEnded`.

    A long one on a busy server has `ExperimentWaiting` first, whenever fewer runs are ahead of it.

    Leaving the loop closes the stream, and the server stops computing.

    Args:
        name: of the experiment.
        parameters: those that differ from their defaults.
    """
    path, accept = f"{BASE}/experiments/{_segment(name)}", EVENT_STREAM
    body, events = parameters, EXPERIMENT
    return Call(
        method="POST", path=path, read=_read_nothing, accept=accept, body=body, events=events
    )


def share(state: str) -> Call[LinkAnswer]:
    """Keep the state of a page, and return a short link to it.

    Args:
        state: the fragment of the page's address, without `#`.
    """
    return Call(method="POST", path=f"{BASE}/links", read=_read_link, body={"state": state})


def link(link_id: str) -> Call[str]:
    """Return the state of a link.

    Raises:
        NotFound: it is no longer kept.
    """
    return Call(method="GET", path=f"{BASE}/links/{_segment(link_id)}", read=_read_state)


def link_qr(link_id: str) -> Call[str]:
    """Return the QR code of a link as SVG.

    Raises:
        NotFound: the link is no longer kept.
    """
    path = f"{BASE}/links/{_segment(link_id)}/qr.svg"
    return Call(method="GET", path=path, read=bytes.decode, accept=SVG)


def metrics() -> Call[str]:
    """Return the server's metrics, in the text format of Prometheus."""
    return Call(method="GET", path="/metrics", read=bytes.decode, accept="text/plain")


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _given(arguments: Mapping[str, Any], lists: Set[str] = LISTS) -> dict[str, Any]:
    """Return the arguments that are not None; a single item becomes a list where one belongs."""
    given = {name: value for name, value in arguments.items() if value is not None}
    for name in given.keys() & lists:
        is_list = isinstance(given[name], Iterable) and not isinstance(given[name], str | Mapping)
        given[name] = list(given[name]) if is_list else [given[name]]
    return given


def _json_member(member: tuple[str, Any]) -> str:
    """Return a member of a request as JSON; raises ValueError for NaN and infinities.

    A letter beyond ASCII takes two to four bytes, and not the six or twelve of an escape, so that
    a long text in any script fits a body. A lone surrogate, which UTF-8 does not have, is escaped;
    the server reports it.
    """
    name, value = member
    try:
        text = json.dumps(value, allow_nan=False, default=_plain, ensure_ascii=False)
    except ValueError as error:
        raise ValueError(f"{name} is {value!r}; JSON holds finite numbers only") from error
    return f"{json.dumps(name)}: {_LONE_SURROGATE.sub(_escaped, text)}"


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _plain(value: Any) -> Any:
    """Convert a NumPy number or array to plain data for JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be sent as JSON")


def _segment(name: str) -> str:
    return quote(name.encode("utf-8", "replace"), safe="")


def _read_tokens(content: bytes) -> list[TokenAnswer]:
    return _read_tokenized(content).tokens


def _read_state(content: bytes) -> str:
    return _read_link_state(content).state


def _read_arrays(content: bytes) -> dict[str, NamedArray]:
    return read_safetensors(content)[0]


def _read_nothing(_: bytes) -> Any:
    return None
