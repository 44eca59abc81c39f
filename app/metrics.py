"""What the server counts and measures of itself, as Prometheus reads it at `/metrics`.

Every application has a registry of its own. No label holds what a client sent: routes are named by
their templates, whatever else was asked for is `none`, and a method nobody knows is `OTHER`.

https://prometheus.io/docs/practices/naming/
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

NO_ROUTE = "none"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

# From an answer out of the cache to a request that used up all of its time.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64)


def known_method(method: str) -> str:
    """A request's method, or `OTHER` for what nobody knows: a client may make up any."""
    return method if method in METHODS else "OTHER"


# When each series began is of no use here and would double what is read.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The counters, gauges and histograms of one application.

    Whoever does the work says so: `metrics.cache_hits.inc()`, `metrics.queue_seconds.observe(2)`.
    Requests and refusals are counted where they are answered, and nowhere else.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._info = Info("headlight", "What runs.", registry=self.registry)

        # Requests, counted by the layer around every answer. Labels are few, and found by a lock
        # and a search, so what they lead to is kept.
        self._answers = lru_cache(maxsize=1024)(self._labelled)
        self._requests = self._counter("requests", "Requests.", "route", "method", "status")
        self._request_seconds = self._histogram(
            "request_seconds", "From a request's first byte to its answer's last.", SECONDS, "route"
        )
        self.in_flight = self._gauge("requests_in_flight", "Requests that are being answered.")
        self.sent_bytes = self._counter("sent_bytes", "Bytes of the bodies of answers.")
        self._refused = self._counter("refused", "Answers that were problems.", "kind")

        # The inference thread.
        self.queue_length = self._gauge("queue_length", "Requests that wait or are computed.")
        self.queue_seconds = self._histogram(
            "queue_seconds", "How long work waited for the inference thread.", SECONDS
        )
        self.work_seconds = self._histogram(
            "work_seconds", "How long work took on the inference thread.", SECONDS
        )
        self.batch_size = self._histogram("batch_size", "Requests computed together.", SIZES)

        # Answers that were computed before, or are being computed for somebody else.
        self.cache_hits = self._counter("cache_hits", "Traces answered from the cache.")
        self.cache_misses = self._counter(
            "cache_misses", "Traces that were neither in the cache nor being computed."
        )
        self.cache_bytes = self._gauge("cache_bytes", "Bytes of the traces in the cache.")
        self.shared = self._counter("shared", "Requests that waited for another's computation.")

        # Answers that their clients have not read yet.
        self.outgoing_bytes = self._gauge(
            "outgoing_bytes", "Bytes of the answers that are encoded or being sent."
        )

        # Texts that are written on.
        self.streams_open = self._gauge("streams_open", "Texts that are being written on.")
        self.tokens_written = self._counter("tokens_written", "Tokens written by generation.")

    def answered(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer.

        Args:
            route: the template of its route, or `NO_ROUTE`.
            method: of its request, from `known_method`.
            status: 499 where the client left before there was one.
            seconds: that it took.
        """
        count, duration = self._answers(route, method, status)
        count.inc()
        duration.observe(seconds)

    def refused(self, kind: str) -> None:
        """Count a problem that was answered, by the kind that its `type` ends with."""
        self._refused.labels(kind).inc()

    def describe(self, **facts: str) -> None:
        """Say what runs: version, model, device."""
        self._info.info(facts)

    def watch(self, gauge: Gauge, value: Callable[[], float]) -> None:
        """Ask for a gauge's value whenever it is read, so that nobody need keep it up to date."""
        gauge.set_function(value)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Every series as text, and the text's media type: the format that a scraper asks for."""
        encode, media_type = choose_encoder(accept)
        return encode(self.registry), media_type

    def _labelled(self, route: str, method: str, status: int) -> tuple[Counter, Histogram]:
        count = self._requests.labels(route, method, status)
        return count, self._request_seconds.labels(route)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"headlight_{name}_total", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"headlight_{name}", meaning, registry=self.registry)

    def _histogram(self, name: str, meaning: str, buckets: Any, *labels: str) -> Histogram:
        return Histogram(
            f"headlight_{name}", meaning, labels, buckets=buckets, registry=self.registry
        )
