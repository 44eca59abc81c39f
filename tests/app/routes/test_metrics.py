"""GET /metrics: what the server counts of itself, as Prometheus reads it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families


def read(client):
    """Every sample, by name and labels."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_what_runs_is_told(client):
    labels = [dict(labels) for name, labels in read(client) if name == "headlight_info"]
    assert len(labels) == 1
    assert labels[0]["model"] == "tiny"
    assert labels[0]["device"] == "cpu"


def test_the_process_is_measured(client):
    found = {name for name, _ in read(client)}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total"} <= found


def test_a_scraper_that_asks_for_openmetrics_gets_it(client):
    answer = client.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_no_copy_is_kept(client):
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert answer.headers["cache-control"] == "no-store"


def test_two_applications_count_for_themselves(client, client_with):
    other = client_with()
    other.app.state.services.metrics.cache_hits.inc(41)
    assert read(other)["headlight_cache_hits_total", ()] == 41
    assert read(client)["headlight_cache_hits_total", ()] != 41


@pytest.mark.parametrize("name", ["queue_length", "streams_open", "cache_bytes"])
def test_what_can_be_asked_for_is_not_counted_by_hand(client, name):
    assert read(client)[f"headlight_{name}", ()] == 0


def test_tokens_that_are_written_are_counted(client):
    before = read(client)["headlight_tokens_written_total", ()]
    answer = client.post("/api/v1/generate", json={"text": "the cat", "n_tokens": 3})
    n_tokens = answer.text.count("event: token")
    assert n_tokens > 0
    assert read(client)["headlight_tokens_written_total", ()] == before + n_tokens
