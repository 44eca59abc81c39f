"""The web application: `create_app(settings)` puts settings, models, routes and layers together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.files.assets import HOME, FreshFiles, package_dir
from app.middleware.allowances import Allowances
from app.middleware.api_keys import ApiKeys, document_keys
from app.middleware.body_patience import BodyPatience
from app.middleware.compressed_texts import CompressedTexts
from app.middleware.cors import Cors
from app.middleware.exchanges import Exchanges
from app.middleware.framing import Framing
from app.middleware.heads import Heads
from app.middleware.problem_responses import ProblemResponses
from app.middleware.rate_limit import RateLimit
from app.middleware.remembered_texts import RememberedTexts
from app.middleware.security_headers import SecurityHeaders, security_headers
from app.middleware.trusted_hosts import TrustedHosts
from app.openapi import describe_api
from app.problems import ANY_ERROR, install_problems
from app.routes import (
    cards,
    docs,
    generation,
    health,
    limits,
    metrics,
    models,
    page,
    positional,
    scripts,
    tokens,
    traces,
)
from app.serving.memory import give_back_memory
from app.settings import Settings
from app.state import State

DESCRIPTION = """\
Type a sentence, watch a transformer read it. Every number comes out of one real forward pass.

Sites are the places in a model whose tensors can be captured; a model's card lists them. In
attention arrays a row is the query (attends), a column the key (attended to); rows sum to 1.
Every error is a problem (RFC 9457).
"""


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application.

    Args:
        settings: what to run with; None reads the environment.

    Raises:
        ValueError: the device asked for is not there.
    """
    state = State(settings or Settings())
    app = FastAPI(
        title="Headlight",
        version=version("headlight"),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        responses=ANY_ERROR,
        generate_unique_id_function=lambda route: route.name,  # a function's name is its operation
        middleware=_layers(state),
        # No collector is ever told what somebody typed, whatever the environment says.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.shared = state
    install_problems(app)
    describe_api(app)
    if state.settings.api_keys:
        document_keys(app)
    api = (models, traces, generation, tokens, positional, limits)
    for routes in (*api, health, metrics, docs, page, cards, scripts):
        app.include_router(routes.router)
    app.mount("/docs/files", FreshFiles(directory=package_dir("fastapi_swagger") / "resources"))
    app.mount("/static", FreshFiles(directory=HOME / "static"))
    return app


def _layers(state: State) -> list[Middleware]:
    """What a request passes on its way in, outermost first."""
    settings = state.settings
    hosts, proxies = list(settings.allowed_hosts), list(settings.trusted_proxies)
    headers = security_headers(settings.strict_transport_seconds)
    allowances = Allowances(settings.requests_per_minute, settings.max_clients)
    # None stands for a layer that the settings leave out: it costs nothing.
    layers = [
        Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies) if proxies else None,
        Middleware(Exchanges, state.metrics, has_clients=settings.log_clients),
        Middleware(SecurityHeaders, headers),
        Middleware(Cors, settings.cors_origins) if settings.cors_origins else None,
        Middleware(ProblemResponses),
        Middleware(Framing, max_header_bytes=settings.max_header_bytes),
        Middleware(TrustedHosts, allowed_hosts=hosts, www_redirect=False),
        Middleware(RateLimit, allowances) if settings.requests_per_minute else None,
        Middleware(ApiKeys, settings.api_keys) if settings.api_keys else None,
        Middleware(Heads),
        Middleware(RememberedTexts),
        Middleware(CompressedTexts),
        Middleware(BodyPatience, settings.body_seconds),
        Middleware(RequestBodyLimitMiddleware, max_body_size=settings.max_body_bytes),
    ]
    return [layer for layer in layers if layer]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: State = app.state.shared
    state.start()
    tidying = asyncio.create_task(give_back_memory())
    yield
    tidying.cancel()
    await asyncio.to_thread(state.close)
