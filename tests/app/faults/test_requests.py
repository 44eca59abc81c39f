"""Hostile requests: each is rejected, none is a 500, and the server answers the next one.

uvicorn itself answers what it cannot parse, in plain text (`UNPARSED`); what reaches the
application is rejected as a problem (`REJECTED`), or answered if it is odd but valid (`ANSWERED`).
A new probe is one line of one of the three.
"""

import gzip

import pytest

from headlight.static_files import STATIC_URL
from tests.app.connections import wait_for

SCRIPT = f"{STATIC_URL}/js/main.js"
JSON = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
TOKENIZE = "/api/v1/tokenize"
POSITIONAL = "/api/v1/positional?scheme=rotary&width=2&length="
BODY = b'{"text": "a"}'
CHUNK = b"d\r\n" + BODY + b"\r\n"


def ask(method, target, *headers, body=b"", host="localhost"):
    """Return a request as bytes; a Content-Length is added to a body without one."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
    is_framed = any(line.lower().startswith(("content-length", "transfer-enc")) for line in headers)
    if body and not is_framed:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def get(target, *headers, host="localhost"):
    return ask("GET", target, *headers, host=host)


def post(*headers, body=BODY):
    return ask("POST", TOKENIZE, JSON, *headers, body=body)


UNPARSED = {
    "noise": b"\x00\x01\x02\r\n\r\n",
    "the beginning of TLS": bytes.fromhex("1603010200010001fc0303") + b"a" * 100,
    "HTTP/0.9": b"GET /\r\n\r\n",
    "no target": b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a space in the target": get("/api/v1/models/a b"),
    "letters that no target has": get("/api/v1/models/é"),
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    "NUL in the host": get("/", host="local\0host"),
    "NUL in a header": get("/healthz", "X-A: a\0b"),
    "a space in a header's name": get("/healthz", "X A: b"),
    "a header without a name": get("/healthz", ": b"),
    "two lengths": post("Content-Length: 13", "Content-Length: 14"),
    "a negative length": post("Content-Length: -1"),
    "a length of 5,000 digits": post("Content-Length: " + "9" * 5_000),
    "a length in hexadecimal": post("Content-Length: 0x0d"),
    "a length in Arabic digits": post("Content-Length: ١٣"),
    "a chunk without a length": post(CHUNKED, body=b"zz\r\n\r\n"),
    "a chunk of immense length": post(CHUNKED, body=b"f" * 30 + b"\r\n"),
    "a chunk of negative length": post(CHUNKED, body=b"-1\r\n"),
    "a chunk longer than it says": post(CHUNKED, body=b"2\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "chunks, then noise": post(CHUNKED, body=CHUNK + b"noise\r\n\r\n"),
    "compressed chunks": post("Transfer-Encoding: gzip", body=CHUNK),
    "a longer target": get("/" + "a" * 300_000),
    "a header without end": b"GET / HTTP/1.1\r\nX: " + b"a" * 10**6,
}
REJECTED = {
    "a length and chunks": (
        400,
        "ambiguous-length",
        post(CHUNKED, "Content-Length: 6", body=b"0\r\n\r\nG"),
    ),
    "another host": (400, "host-refused", get("/", host="evil.example")),
    "a host of 5,000 letters": (400, "host-refused", get("/", host="a" * 5_000)),
    "half an address as host": (400, "host-refused", get("/", host="[::1")),
    "HTTP/2": (400, "host-refused", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "a long target": (431, "headers-too-large", get("/" + "a" * 40_000)),
    "a long query": (431, "headers-too-large", get(POSITIONAL + "1" * 40_000)),
    "a long header": (431, "headers-too-large", get("/healthz", "X-A: " + "a" * 40_000)),
    "10,000 headers": (431, "headers-too-large", get("/", *[f"X{n}: a" for n in range(10_000)])),
    "a long declared body": (413, "body-too-large", post("Content-Length: 999999999999")),
    "a long declared body of a GET": (413, "body-too-large", get("/", "Content-Length: 999999999")),
    "chunks without end": (
        413,
        "body-too-large",
        [post(CHUNKED, body=b"400\r\n" + b"a" * 1_024 + b"\r\n"), *[CHUNK] * 70_000],
    ),
    "a compressed body": (
        415,
        "unsupported-encoding",
        post("Content-Encoding: gzip", body=gzip.compress(BODY)),
    ),
    "a form": (415, "unsupported-media-type", ask("POST", TOKENIZE, body=b"text=a")),
    "UTF-16": (400, "malformed-json", post(body=BODY.decode().encode("utf-16"))),
    "an absolute target": (404, "not-found", get("http://evil.example/api/v1/limits")),
    "an authority for a target": (404, "not-found", get("localhost:80")),
    "a target of another host": (404, "not-found", get("//evil.example/")),
    "an asterisk": (404, "not-found", ask("OPTIONS", "*")),
    "a tunnel": (404, "not-found", ask("CONNECT", "evil.example:443")),
    **{
        f"the method {method[:12]}": (405, "method-not-allowed", ask(method, TOKENIZE))
        for method in ("GET", "PUT", "TRACE", "post", "A" * 5_000)
    },
    **{
        f"the file {path[:24]}": (404, "not-found", get(f"{STATIC_URL}/{path}"))
        for path in (
            "../app/main.py",
            "%2e%2e/app/main.py",
            "..%2f..%2f..%2f..%2fetc%2fpasswd",
            "..%5c..%5capp%5cmain.py",
            "//etc/passwd",
            "%00",
            "js/main.js%00.css",
            "%ed%a0%80",
            "%ff",
            "js",
            "a" * 5_000,
        )
    },
    **{
        f"the model {model[:12]}": (404, kind, get(f"/{folder}/{model}{page}"))
        for folder, page in (("api/v1/models", ""), ("models", "/card"))
        for model, kind in (
            ("%00", "unknown-model"),
            ("%ff%fe", "unknown-model"),
            ("%ed%a0%80", "unknown-model"),
            ("%3Cb%3E", "unknown-model"),
            ("..", "unknown-model"),
            ("..%2ftiny", "not-found"),
            ("a" * 5_000, "unknown-model"),
        )
    },
    **{
        f"the query {query[:24]}": (422, "invalid-request", get(f"/api/v1/positional?{query}"))
        for query in (
            "",
            "%",
            "%00=%00",
            "&" * 5_000,
            "&".join(f"k{number}=1" for number in range(2_000)),
            "&".join(["length=1"] * 2_000),
            "scheme=%ed%a0%80&length=1&width=2",
            "scheme=learned&length=1",
            *(
                f"scheme=rotary&width=2&length={length}"
                for length in (
                    "NaN",
                    "Infinity",
                    "1e3",
                    "1.5",
                    "-1",
                    "0",
                    "%00",
                    "%D9%A1",
                    "9" * 5_000,
                )
            ),
        )
    },
    "a file of another release": (404, "not-found", get("/static/000000000000/js/main.js")),
    "more positions than an answer holds": (
        422,
        "too-many-cells",
        get("/api/v1/positional?scheme=alibi&heads=1048576&length=1048576"),
    ),
    "a model of the query": (404, "unknown-model", get("/api/v1/positional?length=1&model=%ff")),
    **{
        f"accepting {accept[:12]}": (
            406,
            "not-acceptable",
            get(POSITIONAL + "1", f"Accept: {accept}"),
        )
        for accept in ("text/html", ";;;q=,,,/", "*/*;q=nan", "*/*;q=-1", "a/b," * 8_000)
    },
}
ANSWERED = {
    "HTTP/1.0 without a host": b"GET /healthz HTTP/1.0\r\n\r\n",
    "a header of bytes": get("/healthz", "X-A: é\u202e"),
    "a wish for WebSockets": get("/healthz", "Connection: Upgrade", "Upgrade: websocket"),
    "a wish for HTTP/2": get("/healthz", "Connection: Upgrade", "Upgrade: h2c"),
    "an expectation": post("Expect: 100-continue"),
    "an expectation nobody knows": post("Expect: miracles"),
    "a body in chunks": post(CHUNKED, body=CHUNK + b"0\r\n\r\n"),
    "a chunk that says more than its length": post(
        CHUNKED, body=b"d;a=b\r\n" + BODY + b"\r\n0\r\n\r\n"
    ),
    "a body that is as it is": post("Content-Encoding: identity"),
    "a body of a GET": ask("GET", "/healthz", body=b"x" * 1_000),
    "3,000 ranges": get(SCRIPT, "Range: bytes=" + ",".join(f"{n}-{n}" for n in range(3_000))),
    "a range from its end to its beginning": get(SCRIPT, "Range: bytes=5-1"),
    "a range past the end": get(SCRIPT, "Range: bytes=9999999999-"),
    "no date": get(SCRIPT, "If-Modified-Since: <b>"),
    "a date beyond all dates": get(SCRIPT, "If-Modified-Since: Mon, 01 Jan 99999999 00:00:00 GMT"),
}


@pytest.mark.parametrize("name", UNPARSED)
def test_what_cannot_be_parsed_is_a_bad_request(exchange, name):
    reply = exchange(UNPARSED[name])
    assert (reply.status, reply.body) == (400, b"Invalid HTTP request received.")


@pytest.mark.parametrize("name", REJECTED)
def test_what_cannot_be_answered_is_a_problem(exchange, assert_problem, name):
    status, kind, probe = REJECTED[name]
    sent = probe if isinstance(probe, bytes) else b"".join(probe)
    details = assert_problem(exchange(probe), sent)
    assert (details["status"], details["type"].rpartition(":")[2]) == (status, kind), details


@pytest.mark.parametrize("name", ANSWERED)
def test_what_is_odd_but_valid_is_answered(exchange, name):
    assert exchange(ANSWERED[name]).status in (200, 304)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /api/v1/tokenize HTTP/1.1\r\nHost: loc",
        post("Content-Length: 500"),
        post(CHUNKED, body=CHUNK),
    ],
    ids=["nothing", "headers", "body", "chunks"],
)
def test_a_request_that_is_cut_off_has_no_answer_and_leaves_nothing(server, exchange, sent):
    assert exchange(sent, ends=True) is None
    registry = server.services.metrics.registry
    wait_for(lambda: not registry.get_sample_value("headlight_requests_in_flight"))


@pytest.mark.parametrize("target", ["/", "/docs", "/healthz", "/api/v1/models"])
def test_head_has_no_body(connect, target):
    connection = connect()
    connection.send(ask("HEAD", target))
    assert connection.read_reply(to_head=True).status == 200
    connection.send(get("/healthz"))
    assert connection.read_reply().json() == {"status": "ok"}


def test_a_request_smuggled_between_two_lengths_is_never_read(connect, assert_problem):
    connection = connect()
    hidden = b"0\r\n\r\n" + get("/api/v1/limits")
    connection.send(post(CHUNKED, f"Content-Length: {len(hidden)}", body=hidden))
    assert_problem(connection.read_reply())
    assert connection.is_closed()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\nX-A: b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n\tc\r\n\r\n",
        b"\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_a_bare_line_feed_and_a_folded_header_are_refused(connect, head):
    sound = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    connection = connect()
    connection.send(sound)
    assert connection.read_reply().status == 200
    connection.send(head)
    assert connection.read_reply().status == 400
    assert connection.is_closed()


def test_no_answer_names_its_server(exchange):
    for line in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"NONSENSE\r\n\r\n"):
        assert "server" not in exchange(line).headers
