"""Traces on demand: from the cache, from a job that runs already, or from a new one."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

from anyio import CapacityLimiter
from starlette.responses import Response

from headlight.models.model_registry import Registry
from headlight.problems import Problem
from headlight.schemas.traces import TraceRequest, TracesRequest
from headlight.serialization.formats import ResponseFormat
from headlight.serialization.sending import (
    ChunkedResponse,
    Outgoing,
    Reservation,
    entity_tag,
    size_estimate,
)
from headlight.serialization.trace import Answer, Answers, Sendable, encode
from headlight.serving.concurrency import ClientLeft, Desk, run_in_thread, unless_client_leaves
from headlight.serving.engine import Engine, Job, call_each
from headlight.serving.metrics import Metrics
from headlight.serving.replicas import Shared
from headlight.settings import MAX_LONG_TEXTS, Settings
from headlight.tracing.batch import solve
from headlight.tracing.cache import KeptTiles, TraceCache
from headlight.tracing.jobs import TraceJob, check_texts, trace_job, trace_jobs, way_to_read_more
from headlight.tracing.progress import PassProgress

MOST_TOGETHER = 8
"""Further traces that are one job; between two such jobs other work has its turn."""

INLINE_BYTES = 2**16
"""A smaller answer is encoded on the event loop if no pass was needed: in 2 ms at most."""

LARGE_BYTES = 2**20
"""A larger answer is encoded on a separate thread, as that takes tens of milliseconds.

All others are encoded on the worker thread right after their pass: the event loop, which has the
most to do when many clients ask, then only sends them.
"""


@dataclass(frozen=True)
class Encoded:
    """The bytes of an answer in a format, and the memory that is reserved for them."""

    body: bytes
    sent_as: ResponseFormat
    reservation: Reservation

    def response(self, headers: Mapping[str, str]) -> Response:
        """Return the response with these headers, which releases the memory once it is sent."""
        return ChunkedResponse(self.body, self.sent_as.media_type, headers, self.reservation)


class TraceService:
    """Computes traces, each once while it is kept.

    `threads` limits the threads for work too long for the event loop and the worker thread.
    """

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        *,
        engine: Engine,
        outgoing: Outgoing,
        metrics: Metrics,
        threads: CapacityLimiter,
        shared: Shared | None = None,
    ) -> None:
        self.registry = registry
        self.settings = settings
        self.engine = engine
        self.outgoing = outgoing
        self.metrics = metrics
        self.cache = TraceCache(settings.cache_bytes)
        self._shared = shared
        self.tiles = KeptTiles(settings.tile_bytes)
        took = f"this text took longer than the {settings.long_seconds:g} s that are allowed"
        self.long_texts = Desk(
            MAX_LONG_TEXTS,
            "too-many-long-texts",
            "long texts are being read",
            settings.long_seconds,
            f"{took}; send a shorter one, or ask for fewer layers",
        )
        self._threads = threads
        self._flights = SingleFlight(engine)
        metrics.watch(metrics.cache_bytes, lambda: self.cache.n_bytes)
        metrics.watch(metrics.tile_bytes, lambda: self.tiles.n_bytes)

    async def trace(
        self, request: TraceRequest, sent_as: ResponseFormat, client_left: ClientLeft
    ) -> tuple[str, Encoded]:
        """Return the id of the trace that is asked for, and the trace in that format.

        One that was computed before has no timings.

        Raises:
            Problem: what is asked for cannot be had, or not now.
            ClientDisconnected: the client disconnected before it was computed.
        """
        job = self.job(request)
        kept = self.cache.get(job.id)
        if kept is not None:
            self.metrics.cache_hits.inc()
            return job.id, await self.encode(kept, sent_as, client_left)
        computed = await self.compute(job, client_left, sent_as=sent_as)
        if sent_as not in computed.bodies:
            return job.id, await self.encode(computed.answer, sent_as, client_left)
        body = computed.bodies[sent_as]
        sent_as = sent_as.sized(computed.answer.n_bytes)
        return job.id, Encoded(body, sent_as, self.outgoing.reserve(len(body)))

    def job(self, request: TraceRequest) -> TraceJob:
        """Return the job that a request asks for.

        Raises:
            Problem: a text is empty or too long, or something asked for is unknown.
        """
        return job_of(request, self.registry, self.settings)

    async def compute(
        self,
        job: TraceJob,
        client_left: ClientLeft,
        progress: PassProgress | None = None,
        sent_as: ResponseFormat | None = None,
    ) -> "_Computed":
        """Compute a trace and keep it: a long text on its own thread, others in a batch.

        `progress` is told how far a long text is read; `sent_as` is the format to encode the trace
        of a batch in.

        Raises:
            Problem: as `trace`; 503, too many long texts are being read.
            ClientDisconnected: the client disconnected before it was computed.
        """
        request, limit = job.request, self.settings.max_characters
        n_read = max(len(text or ()) for text in (request.text, request.target, request.ids))
        if n_read <= limit:
            make, join = partial(self._begin, job, sent_as), partial(self._join, sent_as)
            computed: _Computed = await self._flights.run(job.id, make, join, client_left)
            await self._share(job)
            return computed
        self.metrics.cache_misses.inc()
        solve_long = partial(self._solve_long, job, progress or PassProgress())
        answer = await self.long_texts.run(solve_long, client_left)
        await self._share(job)
        return _Computed(answer, {})

    async def _share(self, job: TraceJob) -> None:
        """Let the other servers of the service know how to compute this trace."""
        if self._shared is not None and (job.id in self.cache or self.tiles.get(job.id)):
            request = job.request.model_copy(update={"model": job.model})
            content = request.model_dump_json(by_alias=True, exclude_unset=True)
            await self._shared.keep(job.id, content.encode())

    def _solve_long(self, job: TraceJob, progress: PassProgress) -> Answer:
        checkpoint = self.registry.checkpoint(job.model)
        progress.note(0.0)
        ((_, answer),) = solve(
            checkpoint,
            [job],
            self.settings.max_cells,
            self.cache.get,
            progress.note,
            max_held=self.settings.max_held,
            on_map=progress.look,
        )
        if isinstance(answer, Exception):
            raise answer
        answer = self.tiles.take(answer)
        self.cache.put(answer)
        return answer

    async def traces(
        self, request: TracesRequest, sent_as: ResponseFormat, client_left: ClientLeft
    ) -> Encoded:
        """Return the traces of several texts in that format; each equals the trace of its text.

        They are one job in the queue, and together hold at most as many numbers as one answer.

        Raises:
            Problem: one of them cannot be had, or not now; its detail begins with its place.
            ClientDisconnected: the client disconnected before all were computed.
        """
        requests = request.requests
        description = self.registry.describe(request.model)
        for number, text_request in enumerate(requests):
            longer = way_to_read_more(text_request, description)
            with _naming(text_request, number):
                check_texts(text_request, self.settings.max_characters, longer=longer)
        jobs = trace_jobs(requests, description, self.registry.precision)
        answers = await self.engine.run(partial(self._solve_all, jobs), client_left)
        return await self.encode(answers, sent_as, client_left)

    async def continued(
        self, requests: Iterable[TraceRequest], client_left: ClientLeft
    ) -> list[Answer]:
        """Return more traces of a text that was read, several a job, which no queue rejects.

        Raises:
            Problem, ClientDisconnected: as `traces`.
        """
        answers: list[Answer] = []
        for _, alike in groupby(map(self.job, requests), key=attrgetter("batch_key")):
            while jobs := list(islice(alike, MOST_TOGETHER)):
                work = partial(self._solve_all, jobs)
                job = self.engine.submit(Job(work, call_each, is_continuation=True))
                answers += (await self.engine.result(job, client_left)).answers
        return answers

    def _solve_all(self, jobs: list[TraceJob]) -> Answers:
        """Compute the jobs that are not kept, on the worker thread."""
        checkpoint = self.registry.checkpoint(jobs[0].model)
        answers = {job.id: kept for job in jobs if (kept := self.cache.get(job.id))}
        left = list({job.id: job for job in jobs if job.id not in answers}.values())
        parts = [left] if jobs[0].is_batched else [[job] for job in left]
        limit, held = self.settings.max_cells, self.settings.max_held
        for part in filter(None, parts):
            for index, answer in solve(
                checkpoint, part, limit, self.cache.get, max_held=held, is_total=True
            ):
                with _naming(part[index].request, jobs.index(part[index])):
                    if isinstance(answer, Exception):
                        raise answer
                    answer = self.tiles.take(answer)
                    answers[answer.id] = answer
                self.cache.put(answer)
        return Answers(answers=tuple(answers[job.id] for job in jobs))

    def kept(self, trace_id: str) -> Answer | None:
        """Return the trace of that id, if it was computed before and is kept."""
        answer = self.cache.get(trace_id)
        (self.metrics.cache_misses if answer is None else self.metrics.cache_hits).inc()
        return answer

    async def encode(
        self, answer: Sendable, sent_as: ResponseFormat, client_left: ClientLeft
    ) -> Encoded:
        """Return an answer in that format.

        Raises:
            Problem: 503, too many bytes wait to be read, or the model's numbers are not finite.
            ClientDisconnected: the client disconnected before it was encoded.
        """
        sent_as = sent_as.sized(answer.n_bytes)
        if answer.n_bytes < INLINE_BYTES:
            body = encode(answer, sent_as)
            return Encoded(body, sent_as, self.outgoing.reserve(len(body)))
        reservation = self.outgoing.reserve(size_estimate(answer, sent_as))
        try:
            work = partial(encode, answer, sent_as)
            body = await run_in_thread(work, self._threads, client_left)
            reservation.resize(len(body))
        except BaseException:
            reservation.release()
            raise
        return Encoded(body, sent_as, reservation)

    async def tag(self, answer: Answer, sent_as: ResponseFormat, client_left: ClientLeft) -> str:
        """Return the entity tag of a kept answer: all its numbers are read for it, once.

        Raises:
            ClientDisconnected: the client disconnected before it was known.
        """
        if answer.n_bytes < INLINE_BYTES:
            return entity_tag(answer, sent_as)
        work = partial(entity_tag, answer, sent_as)
        return await run_in_thread(work, self._threads, client_left)

    def _begin(self, job: TraceJob, sent_as: ResponseFormat | None) -> Job:
        self.metrics.cache_misses.inc()  # a client that joins has missed nothing
        return Job(_Wanted(job, {sent_as} if sent_as else set()), self._solve, job.batch_key)

    def _join(self, sent_as: ResponseFormat | None, job: Job) -> None:
        self.metrics.shared.inc()
        if sent_as:
            job.payload.formats.add(sent_as)

    def _solve(self, wanted: list["_Wanted"]) -> Iterator[tuple[int, "_Computed | Exception"]]:
        """Compute, keep and encode a batch, on the worker thread."""
        checkpoint = self.registry.checkpoint(wanted[0].job.model)
        jobs = [each.job for each in wanted]
        limit, held = self.settings.max_cells, self.settings.max_held
        for index, answer in solve(checkpoint, jobs, limit, self.cache.get, max_held=held):
            if isinstance(answer, Exception):
                yield index, answer
                continue
            answer = self.tiles.take(answer)
            self.cache.put(answer)
            formats = list(wanted[index].formats) if answer.n_bytes < LARGE_BYTES else ()
            try:
                bodies = {
                    sent_as: encode(answer, sent_as.sized(answer.n_bytes)) for sent_as in formats
                }
            except Exception as failure:
                yield index, failure
            else:
                yield index, _Computed(answer, bodies)


@dataclass(frozen=True)
class _Wanted:
    """A job, and the formats in which clients want its answer; the event loop adds to them."""

    job: TraceJob
    formats: set[ResponseFormat]


@dataclass(frozen=True)
class _Computed:
    """An answer, and its bytes in the formats that were wanted when it was computed."""

    answer: Answer
    bodies: Mapping[ResponseFormat, bytes]


@dataclass
class _Flight:
    """A job in the engine and how many clients wait for its result."""

    job: Job
    n_waiting: int = 0


class SingleFlight:
    """Equal jobs that are asked for at the same time are computed once.

    A job is withdrawn when the last of its clients disconnects; it fails for all of them.
    async-lru shares a call too, but goes on with it when every caller has left.
    https://pkg.go.dev/golang.org/x/sync/singleflight
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._flights: dict[Hashable, _Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    async def run(
        self,
        key: Hashable,
        make_job: Callable[[], Job],
        join: Callable[[Job], object],
        client_left: ClientLeft,
    ) -> Any:
        """Return the result of the job under that key, for all clients who ask for it.

        `make_job` makes the job if none is in the engine; `join` is called with it if one is.

        Raises:
            Problem, ClientDisconnected: as `Engine.run`.
        """
        while True:
            flight = self._flights.get(key)
            has_joined = flight is not None
            if flight is None:
                flight = self._flights[key] = _Flight(self._engine.submit(make_job()))
                flight.job.future.add_done_callback(partial(self._forget, key))
            else:
                join(flight.job)
            flight.n_waiting += 1
            try:
                return await unless_client_leaves(flight.job.future, client_left)
            except Problem as problem:
                # The first client has waited too long in the queue; one that joined has not.
                if not has_joined or problem.kind != "queue-timeout":
                    raise
            finally:
                flight.n_waiting -= 1
                if not flight.n_waiting:
                    if self._flights.get(key) is flight:
                        del self._flights[key]
                    self._engine.withdraw(flight.job)

    def _forget(self, key: Hashable, future: object) -> None:
        flight = self._flights.get(key)
        if flight is not None and flight.job.future is future:
            del self._flights[key]


@contextmanager
def _naming(request: TraceRequest, number: int) -> Iterator[None]:
    """Begin the detail of a problem with the place of the text that it is about."""
    try:
        yield
    except Problem as problem:
        member = "texts" if request.ids is None else "ids"
        problem.detail = f"{member}.{number}: {problem.detail}"
        raise


def job_of(request: TraceRequest, registry: Registry, settings: Settings) -> TraceJob:
    """Return the job that a request asks for; its model need not be loaded.

    Raises:
        Problem: a text is empty or too long, or something asked for is unknown.
    """
    description = registry.describe(request.model)
    longer = way_to_read_more(request, description)
    check_texts(request, settings.max_characters, settings.max_long_characters, longer)
    return trace_job(request, description, registry.precision)


def trace_now(
    request: TraceRequest,
    registry: Registry,
    settings: Settings,
    on_progress: Callable[[float], object] | None = None,
) -> Answer:
    """Compute a trace on this thread; nothing is kept for tiles.

    Raises:
        Problem: what is asked for cannot be had.
    """
    if registry.is_foreign(registry.describe(request.model).id):
        registry.checkpoint(request.model)  # its sites may be known only then
    job = job_of(request, registry, settings)
    checkpoint = registry.checkpoint(job.model)
    limit, held = settings.max_cells, settings.max_held
    ((_, answer),) = solve(checkpoint, [job], limit, lambda _: None, on_progress, max_held=held)
    if isinstance(answer, Exception):
        raise answer
    return replace(answer, trace=replace(answer.trace, kept={}))
