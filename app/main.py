"""The web application: `create_app(settings)` joins services, middleware, routes and lifespan.

An early application loads PyTorch on another thread; the page and its files do not wait for it.

The OpenAPI document is FastAPI's, with summaries, middleware errors and examples.
`app/openapi.json` is a copy of it, for client generators and comparisons of versions;
`app/api_examples.json` holds requests and the shipped models' answers. `make openapi` renews both.
"""

import asyncio
import ctypes
import gc
import json
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from headlight import addresses, pages, problems
from headlight.distribution import __version__
from headlight.middleware.conditional_get import ConditionalGet
from headlight.middleware.exceptions import Errors
from headlight.middleware.limits import BodyTimeout, RateLimit, RequestLimits
from headlight.middleware.security import (
    KEY_HEADER,
    ApiKeys,
    Cors,
    KeyRing,
    SecurityHeaders,
    TrustedHosts,
)
from headlight.problems import ANY_ERROR, MEDIA_TYPE, described, install_problems
from headlight.schemas import EVENT_STREAM, JSON
from headlight.serving.concurrency import in_daemon
from headlight.serving.logs import RequestLog
from headlight.serving.metrics import Metrics
from headlight.serving.replicas import Shared
from headlight.settings import Settings
from headlight.static_files import DOCS_URL, STATIC, STATIC_URL, HashedFiles

if TYPE_CHECKING:
    from headlight.services import Services

DESCRIPTION = """\
Type a sentence, watch a transformer read it. Every number comes out of one real forward pass.

Sites are the places in a model whose tensors can be captured; a model's card lists them. In
attention arrays a row is the query (attends), a column the key (attended to); rows sum to 1.
Every error is a problem (RFC 9457).
"""

TRIM_SECONDS = 10.0
"""How often free memory is returned; a call takes some milliseconds, without the interpreter."""

TICK_SECONDS, HELD_SECONDS, PUSH_SECONDS = 0.2, 0.02, 1.0


EXAMPLES = Path(__file__).with_name("api_examples.json")

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": KEY_HEADER},
}

_SHOWN = {"4XX": "422", "5XX": "503"}
"""The problem that is the example of all of its class."""

Part = dict[str, Any]


def create_app(
    settings: Settings | None = None,
    shared: Shared | None = None,
    prepare: Callable[["Services"], object] = lambda _: None,
    *,
    is_early: bool = False,
) -> FastAPI:
    """Return the application; without settings, those of the environment.

    `shared` is the memory that it shares with other servers of the same service; `prepare` is
    called with the services. An early application makes them on a thread when it starts.

    Raises:
        ValueError: the device is missing.
    """
    settings = settings or Settings()
    metrics = Metrics(is_shared=shared is not None)
    app = FastAPI(
        title="Headlight",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        responses=ANY_ERROR,
        generate_unique_id_function=lambda route: route.name,  # a function's name is its operation
        middleware=_middleware(settings, metrics, shared),
        # No collector gets what somebody typed, whatever the environment says.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    install_problems(app, pages.problem_page)
    describe_api(app, needs_key=bool(settings.api_keys))
    app.include_router(pages.router)
    app.mount(DOCS_URL, HashedFiles(packages=[("fastapi_swagger", "resources")]))
    app.mount(STATIC_URL, HashedFiles(directory=STATIC))

    def open_services() -> None:
        from headlight.routes import ROUTERS  # PyTorch loads here
        from headlight.services import Services

        services = Services(settings, metrics, shared)
        prepare(services)
        for router in ROUTERS:
            app.include_router(router)
        app.state.services = services

    app.state.settings, app.state.services, app.state.failure = settings, None, None
    app.state.open_services = open_services
    if not is_early:
        open_services()
    return app


class Opening:
    """A layer that holds requests until there are services, but for the page and its files."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on once it can be answered."""
        if scope["type"] == "http":
            state, path = scope["app"].state, addresses.path_of(scope)
            is_file = path == "/" or path.startswith((STATIC_URL, DOCS_URL))
            while not (is_file or state.services):
                if state.failure:
                    raise problems.server_stopping()
                await asyncio.sleep(HELD_SECONDS)
        await self.app(scope, receive, send)


def _middleware(settings: Settings, metrics: Metrics, shared: Shared | None) -> list[Middleware]:
    """Return the layers that a request passes on its way in, outermost first."""
    proxies, keys = list(settings.trusted_proxies), KeyRing(settings.api_keys)
    per_minute, hosts = settings.requests_per_minute, list(settings.allowed_hosts)
    # None is a layer that the settings leave out: it costs nothing.
    layers = [
        Middleware(addresses.RootPath, settings.root_path, proxies),
        Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies) if proxies else None,
        Middleware(RequestLog, metrics),
        Middleware(SecurityHeaders),
        Middleware(Cors, settings.cors_origins) if settings.cors_origins else None,
        Middleware(Errors),
        Middleware(RequestLimits),
        Middleware(TrustedHosts, allowed_hosts=hosts, www_redirect=False),
        Middleware(RateLimit, per_minute, keys, shared) if per_minute else None,
        Middleware(ApiKeys, keys) if settings.api_keys else None,
        Middleware(ConditionalGet),
        Middleware(BodyTimeout),
        Middleware(RequestBodyLimitMiddleware, max_body_size=settings.max_body_bytes),
        Middleware(Opening),
    ]
    return [layer for layer in layers if layer]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state = app.state
    serving = asyncio.create_task(_serve(app))
    with on_stop_signal(lambda: state.services and state.services.stop()):
        yield
    serving.cancel()
    if state.services:
        await asyncio.to_thread(state.services.engine.close)


async def _serve(app: FastAPI) -> None:
    """Make the services, unless they are there; stop the server if they cannot be made."""
    if app.state.services is None:
        try:
            await in_daemon(app.state.open_services, "opening")
        except Exception as error:
            app.state.failure = error
            signal.raise_signal(signal.SIGTERM)
            return
    services: Services = app.state.services
    gc.enable()
    services.engine.start()
    tasks = [housekeeping(lambda: services.is_ready)]
    if services.shared is not None:
        tasks.append(push_metrics(services.metrics, services.shared))
    await asyncio.gather(*tasks)


@contextmanager
def on_stop_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` when the process is asked to stop, before uvicorn's own handler.

    uvicorn notifies an application only after every connection has closed, and the connection of
    an open event stream does not close by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def chain(number: signal.Signals) -> object:
        before = signal.getsignal(number)

        def handle(sig: int, frame: FrameType | None) -> None:
            stop()
            if callable(before):
                before(sig, frame)

        signal.signal(number, handle)
        return before

    handlers = {number: chain(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, before in handlers.items():
            signal.signal(number, before)  # type: ignore[arg-type]


async def push_metrics(metrics: Metrics, shared: Shared) -> None:
    """Tell the other servers of the service what this one counted, every second."""
    while True:
        await shared.push(metrics.snapshot())
        await asyncio.sleep(PUSH_SECONDS)


async def housekeeping(is_ready: Callable[[], bool]) -> None:
    """Freeze the garbage collector once the server is ready, then return free memory regularly.

    PyTorch and the framework are hundreds of thousands of objects that live as long as the process:
    full collections stalled /healthz for 140 ms. And large responses leave holes that the C library
    keeps: 100 MB after ten thousand requests.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # part of a larger process, which decides on both itself
    while not is_ready():  # noqa: ASYNC110 - the worker thread sets it
        await asyncio.sleep(TICK_SECONDS)
    gc.unfreeze()  # `server.build` froze what the imports left
    gc.collect()
    gc.freeze()
    trim = memory_trimmer()
    while trim is not None:
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim)


def memory_trimmer() -> Callable[[], object] | None:
    """Return the function that frees memory to the system; None if the C library is not GNU's."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return lambda: trim(0)


def describe_api(app: FastAPI, *, needs_key: bool) -> None:
    """Complete the OpenAPI document; without keys in the settings, sending one is optional."""
    describe = app.openapi
    app.openapi = cache(lambda: _complete(describe(), needs_key))  # type: ignore[method-assign]


def _complete(document: Part, needs_key: bool) -> Part:
    document = _unshared(document)
    for path, operation in operations_of(document):
        _summarise(operation)
        if addresses.needs_key(path):
            operation["responses"] |= _unshared(described(401, 429))
        else:
            operation["security"] = []
        operation["responses"] = dict(sorted(operation["responses"].items()))
        for answer in operation["responses"].values():
            _order(answer.get("content", {}))
        _exemplify(operation)
    document["components"]["securitySchemes"] = _SCHEMES
    document["security"] = [{scheme: []} for scheme in _SCHEMES] + [{}] * (not needs_key)
    return document


def _order(content: Part) -> None:
    """Put JSON first, which generated clients take, and say that a stream is text, not an object.

    OpenAPI 3.1 has no word for the schema of one event; 3.2 calls it `itemSchema`.
    """
    if JSON in content:
        for media_type in [each for each in content if each != JSON]:
            content[media_type] = content.pop(media_type)
    if events := content.get(EVENT_STREAM):
        events |= {"x-itemSchema": events["schema"], "schema": {"type": "string"}}


def operations_of(document: Part) -> Iterator[tuple[str, Part]]:
    """Yield every operation with its path."""
    for path, methods in document["paths"].items():
        for operation in methods.values():
            yield path, operation


@cache
def examples() -> Part:
    """Return requests and answers by operation, and a problem by status."""
    by_operation: Part = json.loads(EXAMPLES.read_text())
    return by_operation


def _unshared(part: Any) -> Any:
    """Return a deep copy whose keys are strings and whose parts are not shared."""
    return json.loads(json.dumps(part))


def _summarise(operation: Part) -> None:
    """Split a docstring into summary, its first sentence, and description."""
    first, _, rest = operation["description"].partition("\n\n")
    operation["summary"] = " ".join(first.split()).removesuffix(".")
    operation["description"] = rest or " ".join(first.split())


def _exemplify(operation: Part) -> None:
    shown = examples()["operations"].get(operation["operationId"], {})
    if "requestBody" in operation:
        asked = {n: _of(each, "request") for n, each in shown.items() if "request" in each}
        operation["requestBody"]["content"]["application/json"]["examples"] = asked
    for parameter in operation.get("parameters", ()):
        values = [each.get("parameters", {}).get(parameter["name"]) for each in shown.values()]
        if given := [value for value in values if value is not None]:
            parameter["example"] = given[0]
    for status, answer in operation["responses"].items():
        for media_type, content in answer.get("content", {}).items():
            if media_type == MEDIA_TYPE:
                problem = examples()["problems"].get(_SHOWN.get(status, status))
                content["example"] = problem
            elif answered := {n: _of(e, media_type) for n, e in shown.items() if media_type in e}:
                content["examples"] = answered


def _of(example: Part, what: str) -> Part:
    summary = example["summary"]
    if what != "request":
        summary = example.get("shortened", summary)
    value = example[what]
    if what == EVENT_STREAM:
        value = f"event: {value['event']}\ndata: {value['data']}\n\n"
    return {"summary": summary, "value": value}
