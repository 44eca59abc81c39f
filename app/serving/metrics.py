"""Counters, gauges and histograms of the server, as Prometheus reads them at `/metrics`.

Every application has its own registry. No label holds what a client sent: routes are named by
their templates, any other path is `none`, and an unknown method is `OTHER`. With several workers
(`headlight serve --workers`) each process writes its values to a file of a shared folder, and
`/metrics` adds them up, whichever worker answers.

prometheus-fastapi-instrumentator was considered: it measures only requests, and labels a request
that no route matched with its path or drops it.

https://prometheus.io/docs/practices/naming/
https://prometheus.github.io/client_python/multiprocess/
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from headlight.serving.replicas import Snapshot

NO_ROUTE = "none"
INFO = "headlight_info"
Labels = tuple[tuple[str, str], ...]
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

# From a cached answer to a request that used up all of its time.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64)


def known_method(method: str) -> str:
    """Return a request's method, or `OTHER` if it is unknown: a client may make up any."""
    return method if method in METHODS else "OTHER"


# The time at which each series began would double what is read.
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Sum(Collector):
    """The sums of the series of several servers."""

    def __init__(self, servers: Sequence[tuple[bool, Snapshot]]) -> None:
        self._servers = servers

    def collect(self) -> Iterator[Metric]:
        """Yield each series once; `headlight_info` is no sum."""
        families: dict[str, tuple[str, str, dict[tuple[str, Labels], float]]] = {}
        for is_alive, snapshot in self._servers:
            for name, meaning, kind, samples in snapshot:
                if kind == "gauge" and not is_alive:
                    continue
                *_, sums = families.setdefault(name, (meaning, kind, {}))
                for sample, labels, value in samples:
                    key = sample, tuple(labels.items())
                    is_sum = name != INFO
                    sums[key] = sums.get(key, 0) + value if is_sum else value
        for name, (meaning, kind, sums) in families.items():
            family = Metric(name, meaning, kind)
            for (sample, named), value in sums.items():
                family.add_sample(sample, dict(named), value)
            yield family


class Metrics:
    """The counters, gauges and histograms of one application.

    The code that does the work reports it: `metrics.cache_hits.inc()`. Only `RequestLog` counts
    requests and problems.

    Args:
        is_shared: whether `/metrics` add up several servers: those of one process are left out.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        self.registry = CollectorRegistry()
        self._watched: list[tuple[Gauge, Callable[[], float]]] = []
        self._has_workers = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        if not self._has_workers and not is_shared:
            ProcessCollector(registry=self.registry)

        # Label values are few, and each look-up takes a lock, so the children are kept.
        self._answers = lru_cache(maxsize=1024)(self._labelled)
        self._requests = self._counter("requests", "Requests.", "route", "method", "status")
        self._request_seconds = self._histogram(
            "request_seconds", "From a request's first byte to its answer's last.", SECONDS, "route"
        )
        self.in_flight = self._gauge("requests_in_flight", "Requests in flight.")
        self.sent_bytes = self._counter("sent_bytes", "Bytes of response bodies.")
        self._refused = self._counter("refused", "Responses that were problems.", "kind")

        # The inference thread.
        self.queue_length = self._gauge("queue_length", "Requests that wait or are computed.")
        self.queue_seconds = self._histogram(
            "queue_seconds", "How long work waited for the inference thread.", SECONDS
        )
        self.work_seconds = self._histogram(
            "work_seconds", "How long work took on the inference thread.", SECONDS
        )
        self.batch_size = self._histogram("batch_size", "Requests computed together.", SIZES)

        # Traces that were computed before, or are being computed for another request.
        self.cache_hits = self._counter("cache_hits", "Traces answered from the cache.")
        self.cache_misses = self._counter(
            "cache_misses", "Traces that were neither in the cache nor being computed."
        )
        self.cache_bytes = self._gauge("cache_bytes", "Bytes of the traces in the cache.")
        self.tile_bytes = self._gauge("tile_bytes", "Bytes kept to compute tiles of maps.")
        self.shared = self._counter("shared", "Requests that waited for another's computation.")

        # Responses that their clients have not read yet.
        self.outgoing_bytes = self._gauge(
            "outgoing_bytes", "Bytes of the responses that are encoded or being sent."
        )

        # Texts that are generated.
        self.streams_open = self._gauge("streams_open", "Texts that are being generated.")
        self.tokens_written = self._counter("tokens_written", "Generated tokens.")

    def answered(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request; its status is 499 if the client left before there was one."""
        count, duration = self._answers(route, method, status)
        count.inc()
        duration.observe(seconds)
        if self._has_workers:
            self._read_watched()

    def refused(self, kind: str) -> None:
        """Count a problem by its kind, the end of its `type`."""
        self._refused.labels(kind).inc()

    def describe(self, **facts: str) -> None:
        """Add `headlight_info`: version, model, device."""
        info = self._gauge("info", "What runs.", *facts, mode="max")
        info.labels(**facts).set(1)

    def watch(self, gauge: Gauge, value: Callable[[], float]) -> None:
        """Read a gauge's value when the metrics are read.

        Workers do not see each other's objects, so each writes its values after every request.
        """
        if self._has_workers:
            self._watched.append((gauge, value))
        else:
            gauge.set_function(value)

    def snapshot(self) -> Snapshot:
        """Return every series as plain data, for other servers to add up."""
        self._read_watched()
        return [
            (
                family.name,
                family.documentation,
                family.type,
                [(sample.name, dict(sample.labels), sample.value) for sample in family.samples],
            )
            for family in self.registry.collect()
        ]

    def exposition(
        self, accept: str, others: Sequence[tuple[bool, Snapshot]] = ()
    ) -> tuple[bytes, str]:
        """Return every series as text and its media type: the format that a scraper asks for.

        `others` are those of other servers, which are added, and whether each is alive: gauges of
        one that is not do not count.
        """
        self._read_watched()
        registry = self.registry
        if others:
            registry = CollectorRegistry()
            registry.register(_Sum([(True, self.snapshot()), *others]))
        if self._has_workers:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        encode, media_type = choose_encoder(accept)
        return encode(registry), media_type

    def _read_watched(self) -> None:
        for gauge, value in self._watched:
            gauge.set(value())

    def _labelled(self, route: str, method: str, status: int) -> tuple[Counter, Histogram]:
        count = self._requests.labels(route, method, status)
        return count, self._request_seconds.labels(route)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"headlight_{name}_total", meaning, labels, registry=self.registry)

    def _gauge(
        self, name: str, meaning: str, *labels: str, mode: Literal["livesum", "max"] = "livesum"
    ) -> Gauge:
        return Gauge(
            f"headlight_{name}", meaning, labels, registry=self.registry, multiprocess_mode=mode
        )

    def _histogram(
        self, name: str, meaning: str, buckets: Sequence[float], *labels: str
    ) -> Histogram:
        return Histogram(
            f"headlight_{name}", meaning, labels, buckets=buckets, registry=self.registry
        )
