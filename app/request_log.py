"""What becomes of every exchange: it is counted in the metrics, and leaves one line in the log."""

import logging
from time import perf_counter

from headlight.metrics import NO_ROUTE, Metrics
from headlight.request_context import Exchange

logger = logging.getLogger("headlight.access")


class Ledger:
    """Enters exchanges that are over, whoever ended them.

    Args:
        metrics: where requests, refusals and bytes are counted.
        has_clients: whether the log names the addresses of clients.
    """

    def __init__(self, metrics: Metrics, *, has_clients: bool) -> None:
        self.metrics = metrics
        self.has_clients = has_clients

    def enter(self, exchange: Exchange, route: str = NO_ROUTE) -> None:
        """Count and log an exchange.

        Args:
            exchange: that is over.
            route: the template of its route.
        """
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
