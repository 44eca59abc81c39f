"""The web application: `create_app(settings)` joins services, middleware, routes and lifespan."""

import asyncio
import ctypes
import gc
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import version
from types import FrameType

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from headlight.errors import ANY_ERROR, install_problems
from headlight.middleware.access import ApiKeys, Cors, KeyRing, TrustedHosts
from headlight.middleware.conditional_get import ConditionalGet
from headlight.middleware.errors import Errors
from headlight.middleware.rate_limit import RateLimit
from headlight.middleware.request_limits import BodyTimeout, RequestLimits
from headlight.middleware.security_headers import SecurityHeaders
from headlight.openapi import describe_api
from headlight.request_log import RequestLog
from headlight.routes import generation, models, ops, page, positional, traces
from headlight.services import Services
from headlight.settings import Settings
from headlight.static_files import DOCS_URL, STATIC, STATIC_URL, HashedFiles

DESCRIPTION = """\
Type a sentence, watch a transformer read it. Every number comes out of one real forward pass.

Sites are the places in a model whose tensors can be captured; a model's card lists them. In
attention arrays a row is the query (attends), a column the key (attended to); rows sum to 1.
Every error is a problem (RFC 9457).
"""

TRIM_SECONDS = 10.0
"""How often free memory is returned; a call takes some milliseconds, without the interpreter."""

TICK_SECONDS = 0.2


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application; without settings, those of the environment.

    Raises:
        ValueError: the device is missing.
    """
    services = Services(settings or Settings())
    app = FastAPI(
        title="Headlight",
        version=version("headlight"),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        responses=ANY_ERROR,
        generate_unique_id_function=lambda route: route.name,  # a function's name is its operation
        middleware=_middleware(services),
        # No collector gets what somebody typed, whatever the environment says.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.services = services
    install_problems(app)
    describe_api(app, needs_key=bool(services.settings.api_keys))
    for routes in (models, traces, generation, positional, ops, page):
        app.include_router(routes.router)
    app.mount(DOCS_URL, HashedFiles(packages=[("fastapi_swagger", "resources")]))
    files = HashedFiles(directory=STATIC, packages=[("plotly", "package_data")])
    app.mount(STATIC_URL, files)
    return app


def _middleware(services: Services) -> list[Middleware]:
    """The layers that a request passes on its way in, outermost first."""
    settings = services.settings
    proxies, keys = list(settings.trusted_proxies), KeyRing(settings.api_keys)
    per_minute, hosts = settings.requests_per_minute, list(settings.allowed_hosts)
    # None is a layer that the settings leave out: it costs nothing.
    layers = [
        Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies) if proxies else None,
        Middleware(RequestLog, services.metrics, lambda: services.streams.is_stopping),
        Middleware(SecurityHeaders),
        Middleware(Cors, settings.cors_origins) if settings.cors_origins else None,
        Middleware(Errors),
        Middleware(RequestLimits),
        Middleware(TrustedHosts, allowed_hosts=hosts, www_redirect=False),
        Middleware(RateLimit, per_minute, keys) if per_minute else None,
        Middleware(ApiKeys, keys) if settings.api_keys else None,
        Middleware(ConditionalGet),
        Middleware(BodyTimeout),
        Middleware(RequestBodyLimitMiddleware, max_body_size=settings.max_body_bytes),
    ]
    return [layer for layer in layers if layer]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    services.start()
    task = asyncio.create_task(housekeeping(lambda: services.is_ready))
    with on_stop_signal(services.streams.stop):
        yield
    task.cancel()
    await asyncio.to_thread(services.close)


@contextmanager
def on_stop_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` when the process is told to stop, before uvicorn's own handler.

    uvicorn tells an application only when every connection has closed, and the connection of an
    open event stream does not close by itself.
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


async def housekeeping(is_ready: Callable[[], bool]) -> None:
    """Freeze the garbage collector once the server is ready, then return free memory regularly.

    PyTorch and the framework are hundreds of thousands of objects that live as long as the process:
    full collections stalled /healthz for 140 ms. And large responses leave holes that the C library
    keeps: 100 MB after ten thousand requests.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # the application is a part of a larger process, whose own affair both are
    while not is_ready():  # noqa: ASYNC110 - the worker thread sets it
        await asyncio.sleep(TICK_SECONDS)
    gc.collect()
    gc.freeze()
    trim = memory_trimmer()
    while trim is not None:
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim)


def memory_trimmer() -> Callable[[], object] | None:
    """Returns free memory to the system; None if the C library is not GNU's."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return lambda: trim(0)
