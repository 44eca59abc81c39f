"""The web application: `create_app(settings)` puts settings, models, routes and layers together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from headlight.errors import ANY_ERROR, install_problems
from headlight.middleware.allowances import Allowances
from headlight.middleware.api_keys import ApiKeys, document_keys
from headlight.middleware.body_patience import BodyPatience
from headlight.middleware.compressed_texts import CompressedTexts
from headlight.middleware.cors import Cors
from headlight.middleware.exchanges import Exchanges
from headlight.middleware.framing import Framing
from headlight.middleware.heads import Heads
from headlight.middleware.problem_responses import ProblemResponses
from headlight.middleware.rate_limit import RateLimit
from headlight.middleware.remembered_texts import RememberedTexts
from headlight.middleware.security_headers import SecurityHeaders, security_headers
from headlight.middleware.trusted_hosts import TrustedHosts
from headlight.openapi import describe_api
from headlight.routes import (
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
from headlight.server.memory import give_back_memory
from headlight.services import Services
from headlight.settings import HOME, Settings
from headlight.static_files import FreshFiles, package_dir

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
        middleware=_layers(services),
        # No collector is ever told what somebody typed, whatever the environment says.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.services = services
    install_problems(app)
    describe_api(app)
    if services.settings.api_keys:
        document_keys(app)
    api = (models, traces, generation, tokens, positional, limits)
    for routes in (*api, health, metrics, docs, page, cards, scripts):
        app.include_router(routes.router)
    app.mount("/docs/files", FreshFiles(directory=package_dir("fastapi_swagger") / "resources"))
    app.mount("/static", FreshFiles(directory=HOME / "static"))
    return app


def _layers(services: Services) -> list[Middleware]:
    """What a request passes on its way in, outermost first."""
    settings = services.settings
    hosts, proxies = list(settings.allowed_hosts), list(settings.trusted_proxies)
    headers = security_headers(settings.strict_transport_seconds)
    allowances = Allowances(settings.requests_per_minute, settings.max_clients)
    # None stands for a layer that the settings leave out: it costs nothing.
    layers = [
        Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies) if proxies else None,
        Middleware(Exchanges, services.metrics, has_clients=settings.log_clients),
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
    services: Services = app.state.services
    services.start()
    tidying = asyncio.create_task(give_back_memory())
    yield
    tidying.cancel()
    await asyncio.to_thread(services.close)
