"""The cost of the middleware for one request: ids, log, metrics, keys, limits, headers."""

import asyncio
from statistics import median
from time import perf_counter

import pytest

from headlight.main import create_app
from headlight.settings import Settings

TARGET_MS = 0.3
SLACK = 5
N_ROUNDS, N_REQUESTS = 9, 200
KEY = "benchmark-0123456789"


@pytest.fixture(scope="module")
def everything_on():
    return Settings(
        device="cpu",
        api_keys=(KEY,),
        cors_origins=("https://notebook.example.org",),
        trusted_proxies=("10.0.0.0/8",),
        requests_per_minute=10**9,
    )


async def nothing():
    return {}


def layered(settings):
    app = create_app(settings)
    app.get("/api/v1/nothing")(nothing)
    return app


def bare(settings):
    """Return the same application and its routes without the layers around them."""
    app = layered(settings)
    app.user_middleware.clear()
    return app


def test_all_layers_together_cost_little(table, everything_on):
    apps = {
        "no layer": bare(Settings(device="cpu")),
        "as it is started": layered(Settings(device="cpu")),
        "everything switched on": layered(everything_on),
    }
    took = asyncio.run(measure(apps))
    for name in list(apps)[1:]:
        cost = took[name] - took["no layer"]
        table.add(
            "Layers",
            f"a request, {name}",
            f"{1e3 * cost:.0f} µs more than with no layer",
            f"≤ {1e3 * TARGET_MS:.0f} µs",
            cost <= TARGET_MS,
        )
        assert cost < SLACK * TARGET_MS


async def measure(apps):
    """Return the median milliseconds of one request by application, by turns."""
    rounds = {name: [] for name in apps}
    for _ in range(N_ROUNDS):
        for name, app in apps.items():
            began = perf_counter()
            for _ in range(N_REQUESTS):
                await ask(app)
            rounds[name].append(1e3 * (perf_counter() - began) / N_REQUESTS)
    return {name: median(times) for name, times in rounds.items()}


async def ask(app):
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/nothing",
        "raw_path": b"/api/v1/nothing",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("192.0.2.7", 5000),
        "http_version": "1.1",
        "headers": [
            (b"host", b"localhost"),
            (b"authorization", f"Bearer {KEY}".encode()),
            (b"origin", b"https://notebook.example.org"),
            (b"accept", b"application/json"),
        ],
    }
    statuses = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        statuses.append(message.get("status"))

    await app(scope, receive, send)
    assert statuses[0] == 200
