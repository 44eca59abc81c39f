"""Generate text: check a request, and describe each token as an event."""

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.generation.sampling import (
    Continuation,
    GeneratedToken,
    NonFiniteLogits,
    Sampling,
    decode_together,
)
from headlight.model.generation.search import Candidate, beam_search, best_of, rating_by
from headlight.model.served import Served
from headlight.model.sites import layer_of, match_sites, require_heads, require_layers
from headlight.model.trace import Token
from headlight.model.tracing import ModelInput, PassSpec, count_elements, pass_spec, tokenize
from headlight.models.model_registry import Registry
from headlight.problems import Problem, over_limit, too_many_elements
from headlight.schemas.generation import GenerateRequest
from headlight.serialization.sending import encode_event
from headlight.serving.concurrency import Places
from headlight.serving.engine import Job
from headlight.settings import Settings
from headlight.tracing.edits import FindTrace, not_finite, with_sources
from headlight.tracing.jobs import check_texts, model_errors_as_problems, reading

WEIGHTS = "decoder.layers.*.self_attention.weights"
ROUTING = (
    "decoder.layers.*.experts.expert_indices",
    "decoder.layers.*.experts.expert_weights",
    "decoder.layers.*.experts.router_probs",
)

EventData = dict[str, Any]


class Generation:
    """A text that is being continued, and its events.

    The keys and values of the tokens so far live here and go with the object.
    """

    def __init__(
        self,
        checkpoint: Served,
        request: GenerateRequest,
        tokens: Sequence[Token],
        spec: PassSpec | None,
        candidates: Sequence[Candidate] = (),
    ) -> None:
        self.candidates = candidates
        self.checkpoint = checkpoint
        self.request = request
        self.tokens = tokens
        self.heads = request.heads or list(range(checkpoint.config.n_heads))
        self.written = request.forced[: request.skip]
        self.spec = spec or PassSpec(())
        self.axes = {site.name: site.axes for site in checkpoint.description.sites}
        names = list(self.axes)
        self.continuation = Continuation(
            checkpoint.writer(self.spec.interventions),
            [token.id for token in tokens],
            n_tokens=request.n_tokens,
            sampling=_sampling(request),
            seed=request.seed,
            forced=request.forced,
            skip=request.skip,
            stop_id=checkpoint.end_ids,
            is_over=self.has_stop if request.stop else None,
            capture=[
                *(glob for glob in (WEIGHTS, *ROUTING) if fnmatch.filter(names, glob)),
                *self.spec.sites,
            ],
            layers=request.layers,
            heads=request.heads,
        )

    def next_job(self) -> Job:
        """Return the job of the next token, which shares a pass with those of other open streams.

        Its result is the event of that token, or None after the last token.
        """
        # Rows at different positions share no encoding of positions.
        has_positions = any("position" in self.axes[site] for site in self.spec.sites)
        is_alone = has_positions or self.spec.interventions
        is_batched = self.checkpoint.precision == "float32" and not is_alone
        key = ("generate", self.checkpoint.id) if is_batched else None
        return Job(self, advance, key, is_continuation=True)

    def start(self) -> bytes:
        """Return the event before the first token."""
        checkpoint = self.checkpoint
        data = {
            "model": checkpoint.id,
            "revision": checkpoint.description.revision,
            "precision": checkpoint.precision,
            "tokens": [asdict(token) for token in self.tokens],
            "candidates": [
                {"text": self._text(each.ids), "score": each.score} for each in self.candidates
            ],
        }
        return encode_event("start", data)

    def event_of(self, token: GeneratedToken) -> bytes:
        """Return the event of a token that was just generated."""
        event = encode_event("token", self._describe(token))
        self.written.append(token.id)
        return event

    def end(self, *, is_stopping: bool = False) -> bytes:
        """Return the event after the last token, or after the one at which the server stops."""
        reason = "server_stopping" if is_stopping else self._reason()
        text = self._text(self.written)
        return encode_event("end", {"reason": reason, "n_tokens": len(self.written), "text": text})

    def has_stop(self, written: Sequence[int]) -> bool:
        """Return True if the tokens hold one of the stop strings."""
        return has_stop(self.checkpoint, self.request.stop, written)

    def _text(self, written: Sequence[int]) -> str:
        """Return the text of tokens, up to the first stop string."""
        text = self.checkpoint.tokenizer.decode(list(written))
        ends = [text.find(stop) for stop in self.request.stop if stop in text]
        return text[: min(ends)] if ends else text

    def _reason(self) -> str:
        if self.request.stop and self.has_stop(self.written):
            return "stop"
        if self.written and self.written[-1] in self.checkpoint.end_ids:
            return "end_of_text"
        return "length" if len(self.written) >= self.request.n_tokens else "max_tokens"

    def _describe(self, token: GeneratedToken) -> EventData:
        index = len(self.written)
        return {
            "index": index,
            "position": len(self.tokens) + index,
            "id": token.id,
            "text": self.checkpoint.tokenizer.text_of(token.id),
            "is_special": self.checkpoint.tokenizer.is_special(token.id),
            "probability": token.probability,
            "model_probability": token.model_probability,
            "rank": token.rank,
            "is_forced": token.is_forced,
            "alternatives": self._alternatives(token),
            "attention": self._attention(token),
            "experts": self._experts(token),
            **({"tensors": self._tensors(token)} if self.spec.sites else {}),
        }

    def _tensors(self, token: GeneratedToken) -> EventData:
        return {
            site: {
                "axes": [axis for axis in self.axes[site] if axis not in ("batch", "query")],
                "shape": list(tensor.shape),
                "dtype": "float32" if tensor.is_floating_point() else "int32",
                "data": (tensor.float() if tensor.is_floating_point() else tensor).numpy(),
            }
            for site, tensor in ((site, token.row[site].contiguous()) for site in self.spec.sites)
        }

    def _alternatives(self, token: GeneratedToken) -> list[EventData]:
        return [
            {
                "id": alternative,
                "text": self.checkpoint.tokenizer.text_of(alternative),
                "probability": float(token.distribution[alternative]),
                "model_probability": float(token.model_distribution[alternative]),
            }
            for alternative in token.likeliest(self.request.n_alternatives)
        ]

    def _attention(self, token: GeneratedToken) -> EventData:
        sites = match_sites([WEIGHTS], token.row)
        return {
            "axes": ["layer", "head", "key"],
            "layers": [layer_of(site) for site in sites],
            "heads": self.heads,
            "data": np.stack([token.row[site].float().numpy() for site in sites]),
        }

    def _experts(self, token: GeneratedToken) -> list[EventData] | None:
        if self.checkpoint.config.moe is None:
            return None
        routed = [site.rpartition(".")[0] for site in token.row if site.endswith("router_probs")]
        return [
            {
                "layer": layer_of(experts),
                "experts": token.row[f"{experts}.expert_indices"].numpy(),
                "weights": token.row[f"{experts}.expert_weights"].float().numpy(),
                "probabilities": token.row[f"{experts}.router_probs"].float().numpy(),
            }
            for experts in routed
        ]


def advance(generations: list[Generation]) -> Iterator[tuple[int, bytes | Exception | None]]:
    """Continue texts of one model by one token each, on the worker thread, in one pass.

    Yields:
        The index of each with its event, with None if it is finished, or with a problem.
    """
    open_ones = [
        (index, each) for index, each in enumerate(generations) if not each.continuation.is_finished
    ]
    yield from (
        (index, None) for index, each in enumerate(generations) if each.continuation.is_finished
    )
    if not open_ones:
        return
    tokens = decode_together([each.continuation for _, each in open_ones])
    for (index, each), token in zip(open_ones, tokens, strict=True):
        if isinstance(token, NonFiniteLogits):
            has_edits = bool(each.spec.interventions)
            problem = Problem(503, "model-unavailable", str(token))
            yield index, not_finite("logits") if has_edits else problem
        else:
            yield index, each.event_of(token)


class Generator:
    """Answers requests to generate; every call blocks, so it belongs off the event loop."""

    def __init__(self, registry: Registry, settings: Settings, find_trace: FindTrace) -> None:
        self.registry = registry
        self.settings = settings
        self.find_trace = find_trace

    def begin(self, request: GenerateRequest) -> tuple[Generation, bytes]:
        """Check a request and generate the first token: its events so far.

        Raises:
            Problem: the text is refused, or the model lacks something that was asked for.
        """
        self._check_lengths(request)
        checkpoint = self.registry.checkpoint(request.model)
        self._require_decoder(checkpoint)
        with model_errors_as_problems():
            model_input = tokenize(checkpoint, request.text, **reading(request))
            _require_known(checkpoint, request)
            spec = self._spec(checkpoint, request, model_input)
        generation = self._searched(checkpoint, request, model_input, spec)
        ((_, first),) = advance([generation])
        if isinstance(first, Exception):
            raise first
        return generation, generation.start() + (first or b"")

    def _searched(
        self, checkpoint: Served, request: GenerateRequest, model_input: ModelInput, spec: PassSpec
    ) -> Generation:
        """Return the generation; after a search all tokens of the best candidate are forced."""
        if request.beams == request.best_of == 1:
            return Generation(checkpoint, request, model_input.tokens, spec)
        ids = [*(token.id for token in model_input.tokens), *request.forced]
        options: dict[str, Any] = {
            "n_tokens": request.n_tokens - len(request.forced),
            "stop_ids": checkpoint.end_ids,
            "is_over": partial(has_stop, checkpoint, request.stop),
            "is_together": not spec.interventions,
        }
        writer = checkpoint.writer(spec.interventions)
        try:
            if request.best_of > 1:
                rate = self._rating(checkpoint, request)
                sampling = _sampling(request)
                candidates = best_of(
                    writer,
                    ids,
                    rate,
                    count=request.best_of,
                    sampling=sampling,
                    seed=request.seed,
                    **options,
                )
            else:
                candidates = beam_search(
                    writer,
                    ids,
                    width=request.beams,
                    length_penalty=request.length_penalty,
                    repetition_penalty=request.repetition_penalty,
                    **options,
                )
        except NonFiniteLogits as error:
            problem = Problem(503, "model-unavailable", str(error))
            raise (not_finite("logits") if spec.interventions else problem) from error
        forced = [*request.forced, *candidates[0].ids]
        replayed = request.model_copy(update={"forced": forced, "n_tokens": len(forced)})
        return Generation(checkpoint, replayed, model_input.tokens, spec, candidates)

    def _rating(
        self, checkpoint: Served, request: GenerateRequest
    ) -> Callable[[Sequence[int]], float]:
        """Return the function that rates texts with the request's reward model.

        Raises:
            Problem: none is named, or it cannot rate what this decoder writes.
        """
        if request.reward is None:
            detail = "best_of needs a reward model; name it with reward"
            raise Problem(422, "no-reward", detail)
        rater = self.registry.checkpoint(request.reward)
        if not (isinstance(rater, Checkpoint) and isinstance(checkpoint, Checkpoint)):
            raise Problem(422, "no-reward", f"'{request.reward}' cannot rate this decoder's texts")
        try:
            return rating_by(rater, checkpoint.tokenizer)
        except ValueError as error:
            raise Problem(422, "no-reward", str(error)) from error

    def _spec(
        self, checkpoint: Served, request: GenerateRequest, model_input: ModelInput
    ) -> PassSpec:
        """Return the captures and interventions of every step."""
        if not (request.capture or request.edits):
            return PassSpec(())
        description, limit = checkpoint.description, self.settings.max_cells
        edits = request.edits or []
        spec = pass_spec(
            description,
            capture=request.capture or (),
            layers=request.layers if request.capture else None,
            heads=request.heads,
            interventions=[edit.intervention() for edit in edits],
        )
        spec = with_sources(spec, edits, checkpoint, max_elements=limit, find_trace=self.find_trace)
        most, n_prompt = checkpoint.config.max_tokens, len(model_input.tokens)
        growing = [each.for_generation(n_prompt, most) for each in spec.interventions]
        sites = {site.name: site for site in description.sites}

        def sizes_at(site: str) -> dict[str, int]:
            longest = dict.fromkeys(("query", "key", "position"), most)
            return {"d_model": description.config.d_model, **sites[site].sizes, **longest}

        for each in growing:
            each.require_fitting(sizes_at)
        n_tokens = min(request.n_tokens, most - n_prompt)
        n_keys = min(n_prompt + n_tokens, most)
        row = count_elements(description, spec, model_input, n_queries=1, n_keys=n_keys)
        if (actual := row * n_tokens) > limit:
            way_out = "capture fewer sites, layers or heads, or fewer tokens"
            raise too_many_elements(limit=limit, actual=actual, way_out=way_out)
        return replace(spec, interventions=tuple(growing))

    def _check_lengths(self, request: GenerateRequest) -> None:
        check_texts(request, self.settings.max_characters)
        limit, n_forced = self.settings.max_new_tokens, len(request.forced)
        if request.n_tokens > limit:
            raise over_limit(
                "new tokens", limit=limit, actual=request.n_tokens, way_out="ask for fewer"
            )
        if request.beams > 1 and request.best_of > 1:
            detail = "beams and best_of choose tokens in different ways; leave one out"
            raise Problem(422, "no-reward", detail)
        if n_forced > request.n_tokens:
            raise over_limit(
                "forced tokens",
                limit=request.n_tokens,
                actual=n_forced,
                way_out="n_tokens counts them too, so raise it, or force fewer",
            )
        if request.skip > n_forced:
            raise over_limit(
                "skipped tokens",
                limit=n_forced,
                actual=request.skip,
                way_out="only tokens of forced can be skipped",
            )

    def _require_decoder(self, checkpoint: Served) -> None:
        if (kind := checkpoint.config.kind) == "decoder":
            return
        known = self.registry.listed
        decoders = sorted(
            description.id for description in known if description.config.kind == "decoder"
        )
        way_out = f"; choose one of {', '.join(decoders)}" if decoders else ""
        detail = f"the model '{checkpoint.id}', an {kind}, cannot continue a text{way_out}"
        raise Problem(422, "no-generation", detail, available=decoders)


def _sampling(request: GenerateRequest) -> Sampling:
    return Sampling(
        temperature=request.temperature,
        top_k=request.top_k,
        top_p=request.top_p,
        repetition_penalty=request.repetition_penalty,
    )


def has_stop(checkpoint: Served, stop: Sequence[str], written: Sequence[int]) -> bool:
    """Return True if the text of some tokens holds one of the strings."""
    text = checkpoint.tokenizer.decode(list(written)) if stop else ""
    return any(each in text for each in stop)


def _require_known(checkpoint: Served, request: GenerateRequest) -> None:
    """Reject layers, heads and tokens that the model does not have."""
    config = checkpoint.config
    if request.layers is not None:
        require_layers(request.layers, checkpoint.description.site_names)
    if request.heads is not None:
        require_heads(request.heads, config.n_heads)
    for token in request.forced:
        if token >= config.vocab_size:
            rule = f"the ids of the model '{checkpoint.id}' are 0 to {config.vocab_size - 1}"
            raise Problem(422, "unknown-token", f"there is no token {token}; {rule}")


class Streams(Places):
    """The streams that are open now."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, "too-many-streams", "texts are being generated")
        self.is_stopping = False

    def stop(self) -> None:
        """Let every stream end after the event in progress: the server stops."""
        self.is_stopping = True
