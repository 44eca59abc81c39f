"""The outermost layer: every request gets an id, is counted, and leaves one line in the log."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight import request_context as exchanges
from headlight.asked_route import route_of
from headlight.metrics import Metrics
from headlight.request_context import CLIENT_LEFT
from headlight.request_log import Ledger


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
        self.ledger = Ledger(metrics, has_clients=has_clients)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; note its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = scope[exchanges.SCOPE_KEY] = exchanges.begin(scope)
        request_id = (b"x-request-id", exchange.id.encode())

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                if exchange.status == CLIENT_LEFT:  # else it was refused while it was read
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
            self.ledger.enter(exchange, route_of(scope))
            exchanges.current.reset(before)
