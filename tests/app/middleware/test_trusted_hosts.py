"""Only our own names are answered to, but probes by any."""

import pytest


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "a b", "[::2]"])
def test_a_host_that_is_not_ours_is_refused(client, problem, host):
    body = problem(client.get("/api/v1/limits", headers={"host": host}), 400, "host-refused")
    assert "HEADLIGHT_ALLOWED_HOSTS" in body["detail"]


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:9", "[::1]:8000"])
def test_our_own_names_are_answered(client, host):
    assert client.get("/api/v1/limits", headers={"host": host}).status_code == 200


def test_any_host_is_answered_where_that_is_set(client_with):
    client = client_with(allowed_hosts=("*",))
    assert client.get("/api/v1/limits", headers={"host": "pod-7"}).status_code == 200


def test_probes_are_answered_by_whatever_name_they_ask(client_with, problem):
    client = client_with(allowed_hosts=("headlight.example.org",))
    probe = {"host": "127.0.0.1:8000"}
    assert client.get("/healthz", headers=probe).status_code == 200
    assert client.get("/readyz", headers=probe).status_code in (200, 503)
    problem(client.get("/healthz/..", headers=probe), 400, "host-refused")
    problem(client.get("/", headers=probe), 400, "host-refused")
