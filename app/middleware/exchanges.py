"""The outermost layer: every request gets an id, is counted, and leaves one line in the log."""

import logging
from collections.abc import Iterable
from time import perf_counter

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import exchange as exchanges
from app.exchange import Exchange
from app.metrics import NO_ROUTE, Metrics

logger = logging.getLogger("headlight.access")


class Exchanges:
    """Watches each request and its answer.

    Args:
        app: what answers.
        metrics: where requests, refusals and bytes are counted.
        has_clients: whether the log names the addresses of clients.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, *, has_clients: bool) -> None:
        self.app = app
        self.metrics = metrics
        self.has_clients = has_clients

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; note its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = exchanges.begin(scope)
        request_id = (b"x-request-id", exchange.id.encode())

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message = {**message, "headers": [*message["headers"], request_id]}
            elif scope["method"] != "HEAD":
                exchange.sent_bytes += len(message.get("body", b""))
            await send(message)

        before = exchanges.current.set(exchange)
        self.metrics.in_flight.inc()
        try:
            await self.app(scope, receive, send_noted)
        finally:
            self.metrics.in_flight.dec()
            self._note(exchange, route_of(scope))
            exchanges.current.reset(before)

    def _note(self, exchange: Exchange, route: str) -> None:
        seconds = perf_counter() - exchange.began
        self.metrics.answered(
            route=route, method=exchange.method, status=exchange.status, seconds=seconds
        )
        self.metrics.sent_bytes.inc(exchange.sent_bytes)
        if exchange.problem:
            self.metrics.refused(exchange.problem)
        if logger.isEnabledFor(logging.INFO):
            logger.info("request", extra=self._facts(exchange, route, seconds))

    def _facts(self, exchange: Exchange, route: str, seconds: float) -> dict[str, object]:
        facts = {
            "method": exchange.method,
            "route": route,
            "status": exchange.status,
            "ms": round(1e3 * seconds, 1),
            "bytes": exchange.sent_bytes,
            "problem": exchange.problem,
            "text_characters": exchange.text_characters,
            "text_hash": exchange.text_hash,
            "client": exchange.client if self.has_clients else None,
        }
        return {name: fact for name, fact in facts.items() if fact is not None}


def route_of(scope: Scope) -> str:
    """The template of the route that answered: never what a client made up."""
    route: BaseRoute | None = scope.get("route")
    if route is not None:
        return str(getattr(route, "path", NO_ROUTE))
    if scope.get("endpoint") is None:
        return NO_ROUTE
    # A folder of files is one route; what else has no template is a path of its own.
    return scope.get("root_path") or _own_path(scope)


def _own_path(scope: Scope) -> str:
    routes: Iterable[BaseRoute] = scope["app"].routes
    path = scope["path"]
    return path if any(getattr(route, "path", None) == path for route in routes) else NO_ROUTE
