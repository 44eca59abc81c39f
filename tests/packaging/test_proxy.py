"""compose.yaml: the proxy in front of a server, run as it is against a server on this machine."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
CADDYFILE: str = COMPOSE["configs"]["caddyfile"]["content"]
KEY = "0123456789abcdef0123456789abcdef"
ASKED = {"authorization": f"Bearer {KEY}"}
TOLD = {
    "HEADLIGHT_API_KEYS": KEY,
    "HEADLIGHT_REQUESTS_PER_MINUTE": "60",
    "HEADLIGHT_STRICT_TRANSPORT_SECONDS": "60",
}
PROBLEM = "application/problem+json"
HASTE_SECONDS = 5

with_caddy = pytest.mark.slow  # `make test-all` installs it


def filled(text, **given):
    """Interpolate variables as compose does, with their values or their defaults."""
    text = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda match: given.get(match[1], match[2]), text)
    return text.replace("$$", "$")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_can_write_nothing_and_gain_nothing(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}


def test_headlight_is_reached_through_the_proxy_alone_and_reaches_nothing():
    assert "ports" not in SERVICES["headlight"]
    assert SERVICES["headlight"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"] is True


def test_only_this_machine_reaches_the_proxy_unless_told_otherwise():
    ports = [filled(port) for port in SERVICES["proxy"]["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_headlight_believes_the_proxys_network_and_no_other():
    (subnet,) = COMPOSE["networks"]["inside"]["ipam"]["config"]
    told = SERVICES["headlight"]["environment"]["HEADLIGHT_TRUSTED_PROXIES"]
    assert told == subnet["subnet"]


def test_every_variable_of_the_environment_is_a_setting(monkeypatch):
    from headlight.settings import Settings

    for variable, value in SERVICES["headlight"]["environment"].items():
        assert variable.removeprefix("HEADLIGHT_").lower() in Settings.model_fields
        monkeypatch.setenv(variable, filled(value))
    assert Settings().allowed_hosts == ("localhost",)
    assert Settings().api_keys == ()


def test_a_server_has_time_to_stop_in_order():
    from headlight.settings import Settings

    grace = int(SERVICES["headlight"]["stop_grace_period"].removesuffix("s"))
    assert grace > Settings().shutdown_seconds + 5


@pytest.fixture(scope="module")
def headlight():
    """Yield the port of a server as compose.yaml tells it to be, but on loopback."""
    port = free_port()
    told = {
        name: filled(value, **TOLD) for name, value in SERVICES["headlight"]["environment"].items()
    }
    environment = os.environ | told | {"HEADLIGHT_PORT": str(port)}
    environment["HEADLIGHT_TRUSTED_PROXIES"] = "127.0.0.1"
    command = [sys.executable, "-m", "headlight.cli", "serve"]
    yield from running(command, environment, f"http://127.0.0.1:{port}/readyz", port)


@pytest.fixture(scope="module")
def proxy(headlight, tmp_path_factory):
    """Yield the address of a proxy as compose.yaml configures it, in front of that server."""
    yield from proxying(headlight, tmp_path_factory.mktemp("proxy"))


@pytest.fixture(scope="module")
def hasty_proxy(headlight, tmp_path_factory):
    """Yield a proxy whose patience is shorter by minutes, and no different otherwise."""
    shorter = {"read_header 10s": "read_header 1s", "write 10m": f"write {HASTE_SECONDS}s"}
    yield from proxying(headlight, tmp_path_factory.mktemp("hasty"), shorter)


def proxying(headlight, folder, changes=()):
    port = free_port()
    text = filled(CADDYFILE, **TOLD, HEADLIGHT_SITE=f"localhost:{port}")
    ports = {"{\n": f"{{\n\thttp_port {free_port()}\n\thttps_port {port}\n"}
    for old, new in {"headlight:8000": f"127.0.0.1:{headlight}", **ports, **dict(changes)}.items():
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "Caddyfile").write_text(text)
    environment = os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    yield from running(command, environment, f"https://localhost:{port}/healthz", port)


def running(command, environment, probe, port):
    """Yield a process until the test is over: its port, or its address where it speaks TLS."""
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_for(probe, process)
            yield probe.removesuffix("/healthz") if probe.startswith("https") else port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def wait_for(probe, process):
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            if httpx.get(probe, verify=trusting()).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"no answer from {probe}")


def trusting():
    """Return TLS settings that accept any signature: the proxy signs for this machine by itself."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@pytest.fixture
def client(proxy):
    with httpx.Client(base_url=proxy, headers=ASKED, verify=trusting(), timeout=60) as client:
        yield client


def trace(client, text="The cat sat.", **headers):
    return client.post("/api/v1/trace", json={"text": text}, headers=headers)


def assert_problem(response, status):
    assert response.status_code == status
    assert response.headers["content-type"] == PROBLEM
    assert response.json()["status"] == status


@with_caddy
def test_the_page_comes_over_tls_and_says_that_it_always_will(client):
    response = client.get("/")
    assert response.status_code == 200
    assert response.headers["strict-transport-security"] == "max-age=60"
    assert "default-src 'self'" in response.headers["content-security-policy"]


@with_caddy
def test_who_asks_without_a_key_or_too_much_is_told_by_headlight(client):
    assert_problem(client.post("/api/v1/trace", json={}, headers={"authorization": ""}), 401)
    assert_problem(trace(client, "word " * 170_000), 413)
    assert_problem(trace(client, "word " * 2_000), 422)
    assert_problem(client.get("/nowhere"), 404)


@with_caddy
def test_a_trace_passes_unchanged(client, headlight):
    order = {"text": "The cat sat.", "capture": ["*.weights"]}
    through = client.post("/api/v1/trace", json=order)
    direct = httpx.post(f"http://127.0.0.1:{headlight}/api/v1/trace", json=order, headers=ASKED)
    assert through.status_code == direct.status_code == 200
    assert through.json()["tensors"] == direct.json()["tensors"]
    kept = client.get(f"/api/v1/traces/{direct.json()['id']}")
    etag = kept.headers["etag"]
    assert kept.status_code == 200
    again = client.get(kept.url.path, headers={"if-none-match": etag})
    assert (again.status_code, again.headers["etag"]) == (304, etag)


@with_caddy
def test_a_body_larger_than_the_proxys_own_limit_is_a_problem(client):
    # The rest fits into buffers: a client that still sent it could miss the answer.
    body = b" " * 1_100_000
    pieces = (body[at : at + 65_536] for at in range(0, len(body), 65_536))
    for content in (body, pieces):
        kind = {"content-type": "application/json"}
        response = client.post("/api/v1/trace", content=content, headers=kind)
        assert_problem(response, 413)
        assert response.json()["type"] == "urn:headlight:problem:proxy"


@with_caddy
def test_headers_that_never_end_are_cut_off(hasty_proxy):
    with connected(hasty_proxy) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert connection.recv(1) == b""


@with_caddy
def test_a_reader_that_takes_nothing_is_cut_off(hasty_proxy, headlight):
    """More is sent than a connection's buffers hold, so the proxy waits for the reader."""
    body = json.dumps({"text": "word " * 100, "capture": ["*"]})
    whole = httpx.post(  # first, so that the pass itself takes none of the reader's time
        f"http://127.0.0.1:{headlight}/api/v1/trace",
        content=body,
        timeout=60,
        headers=ASKED | {"content-type": "application/json", "accept-encoding": "identity"},
    )
    assert whole.status_code == 200
    head = f"POST /api/v1/trace HTTP/1.1\r\nHost: {hasty_proxy.removeprefix('https://')}\r\n"
    head += f"Authorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with connected(hasty_proxy) as connection:
        connection.sendall((head + body).encode())
        assert connection.recv(12) == b"HTTP/1.1 200"
        time.sleep(HASTE_SECONDS + 1)
        taken = sum(map(len, iter(lambda: received(connection), b"")))
    assert taken < len(whole.content) / 2


@contextmanager
def connected(address):
    """Yield a connection over TLS with a small window, closed by the block's end."""
    host, port = address.removeprefix("https://").split(":")
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(30)
        plain.connect((host, int(port)))
        with trusting().wrap_socket(plain, server_hostname=host) as connection:
            yield connection


def received(connection):
    """Return the next bytes; none if the other side has gone."""
    try:
        return connection.recv(65_536)
    except (ConnectionError, ssl.SSLError):
        return b""


@with_caddy
def test_counters_are_for_those_inside(client):
    assert_problem(client.get("/metrics"), 404)


@with_caddy
def test_events_are_passed_on_as_they_come(client, headlight):
    order = {"text": "Once upon a time", "n_tokens": 200}
    with client.stream("POST", "/api/v1/generate", json=order) as response:
        pieces = (piece for piece in response.iter_raw() if piece)
        first = next(pieces)
        metrics = httpx.get(f"http://127.0.0.1:{headlight}/metrics", headers=ASKED).text
        *_, last = pieces
    assert response.headers["content-type"].startswith("text/event-stream")
    assert b"event: end" not in first
    assert re.search(r"^headlight_streams_open 1\.0$", metrics, re.MULTILINE), (
        "the first event waited"
    )
    assert b"event: end" in last


@with_caddy
def test_each_client_has_a_rate_of_its_own_and_none_can_make_one_up(client):
    for place in range(2 * int(TOLD["HEADLIGHT_REQUESTS_PER_MINUTE"])):
        headers = {"x-forwarded-for": f"192.0.2.{place % 250}"}
        response = client.get("/api/v1/models/stories", headers=headers)
        if response.status_code == 429:
            break
    assert_problem(response, 429)
    assert int(response.headers["retry-after"]) >= 1


@with_caddy
def test_a_server_that_is_gone_is_a_problem_too(tmp_path):
    port = free_port()
    text = filled(CADDYFILE, HEADLIGHT_SITE=f"http://localhost:{port}")
    text = text.replace("headlight:8000", f"127.0.0.1:{free_port()}")
    (tmp_path / "Caddyfile").write_text(text)
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    environment = os.environ | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until:
                try:
                    response = httpx.get(f"http://localhost:{port}/")
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            assert_problem(response, 502)
        finally:
            process.terminate()
