"""headlight trace: what it writes, where, and whom it asks."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from headlight.cli import app
from headlight.client import read_trace

ASK = ["trace", "the cat", "--capture", "*.self_attention.weights"]
ZEROED = '[{"kind": "heads_off", "heads": [0]}]'


def test_a_table_has_every_number_of_the_trace(headlight, client):
    rows = list(csv.DictReader(io.StringIO(headlight(*ASK, "--csv").stdout)))
    asked = {"text": "the cat", "capture": ["*.self_attention.weights"]}
    tensors = client.post("/api/v1/trace", json=asked).json()["tensors"]
    told = [float(row["value"]) for row in rows]
    sent = np.concatenate([np.ravel(array["data"]) for array in tensors.values()])
    np.testing.assert_allclose(told, sent, rtol=1e-6)
    assert {row["site"] for row in rows} == set(tensors)


def test_what_is_asked_for_is_what_the_api_is_asked_for(headlight, client):
    options = ["--analyses", "rollout", "--edits", ZEROED, "--dtype", "uint16", "--triangle"]
    printed = json.loads(headlight(*ASK, "--json", *options).stdout)
    asked = {"text": "the cat", "capture": ["*.self_attention.weights"], "analyses": ["rollout"]}
    asked |= {"edits": json.loads(ZEROED), "dtype": "uint16", "triangle": True}
    answered = client.post("/api/v1/trace", json=asked).json()
    del printed["timings"], answered["timings"]
    assert printed == answered


def test_several_files_are_written_at_once_and_standard_output_is_one(headlight, tmp_path):
    names = {name: tmp_path / f"trace.{name}" for name in ("json", "html")}
    words = ["--json", "--out", str(names["json"]), "--html", str(names["html"])]
    result = headlight(*ASK, *words, "--safetensors", "-")
    assert result.exit_code == 0
    assert read_trace(result.stdout_bytes).text == "the cat"
    assert json.loads(names["json"].read_text())["text"] == "the cat"
    assert names["html"].read_text().startswith("<!doctype html>")


def test_a_server_answers_the_same(headlight, server, tmp_path):
    here = json.loads(headlight(*ASK, "--json").stdout)
    there = json.loads(headlight(*ASK, "--json", "--server", server.url).stdout)
    del here["timings"], there["timings"]
    assert here == there
    assert headlight(*ASK, "--server", server.url).stdout == headlight(*ASK).stdout
    page = tmp_path / "page.html"
    assert headlight(*ASK, "--html", str(page), "--server", server.url).exit_code == 0
    assert '"id": "tiny"' in page.read_text()


def test_a_file_that_is_there_stays_unless_it_is_forced_away(headlight, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("mine")
    refused = headlight(*ASK, "--csv", "--out", str(path))
    assert refused.exit_code == 1
    assert "is there already; name another file, or give --force" in refused.stderr
    assert path.read_text() == "mine"
    assert headlight(*ASK, "--csv", "--out", str(path), "--force").exit_code == 0
    assert path.read_text().startswith("site,head,query,query_token,key,key_token,value\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--json", "--csv"], "choose one of --json and --csv"),
        (["--out", "a"], "--out says where --json or --csv goes; give one of them, too"),
        (["--json", "--html", "-"], "two things cannot go to one place"),
        (["--edits", "[{]"], "--edits is not JSON: "),
        (
            ["--edits", '[{"kind": "mood"}]'],
            "--edits.0.kind is mood; it must be one",
        ),
        (["--analyses", "odds"], "--analyses.0 is odds; it must be next_token, "),
        (["--dtype", "int4"], "--dtype is int4; it must be float32 or uint16"),
        (["--html", "-", "--heads", "0"], "--html shows all heads of a layer; leave --heads out"),
        (["--html", "-", "--capture", "logits"], "--html shows attention; capture '*.self_att"),
        (["--server", "localhost"], "'localhost' is not the address of a server"),
        (["--server", "http://127.0.0.1:9"], "http://127.0.0.1:9"),
        (
            ["--server", "http://a", "--device", "cpu"],
            "--device cannot go with --server",
        ),
    ],
)
def test_a_mistake_is_one_clear_sentence(headlight, words, sentence):
    result = headlight("trace", "the cat", *words)
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert result.stdout == ""


def test_a_servers_refusal_is_one_clear_sentence(headlight, server):
    result = headlight("trace", "the cat", "--model", "gpt", "--server", server.url)
    assert result.exit_code == 1
    assert result.stderr.startswith("there is no model 'gpt'; there is dense, ")


def test_a_reader_that_has_read_enough_is_no_mistake(zoo):
    words = ["trace", "the cat sat on the mat", "--capture", "*", "--csv", "--device", "cpu"]
    environment = {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny"}
    with subprocess.Popen(
        [sys.executable, "-m", "headlight.cli", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"site,")
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_dash_reads_standard_input(zoo, ending):
    result = piped(zoo, f"the cat{ending}".encode())
    assert json.loads(result.stdout)["text"] == "the cat"


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (b"\xff", "standard input is not UTF-8\n"),
        (b"a" * 11, "standard input holds more than the 10 characters that are allowed; send"),
        (b"a" * 10**6, "standard input holds more than the 10 characters that are allowed; send"),
        (b"\n", "the text is empty; send at least one word\n"),
    ],
)
def test_standard_input_that_cannot_be_read_is_one_clear_sentence(zoo, sent, sentence):
    result = piped(zoo, sent, HEADLIGHT_MAX_CHARACTERS="10")
    assert result.exit_code == 1
    assert result.stderr.startswith(sentence)


def piped(zoo, sent, **told):
    """What a trace of standard input, as JSON, comes to."""
    environment = {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny", **told}
    return CliRunner().invoke(app, ["trace", "-", "--json"], input=sent, env=environment)


def test_a_server_that_wants_a_key_is_given_the_variables_or_says_where_it_belongs(
    headlight, monkeypatch, serving, settings
):
    key = "0123456789abcdef"
    with serving(settings.model_copy(update={"api_keys": (SecretStr(key),)})) as server:
        ask = [*ASK, "--json", "--server", server.url]
        told = headlight(*ask).stderr
        assert told == "the server wants an API key; put it into HEADLIGHT_API_KEY\n"
        monkeypatch.setenv("HEADLIGHT_API_KEY", "another-0123456789")
        told = headlight(*ask).stderr
        assert told.endswith("; the key that was sent is in HEADLIGHT_API_KEY\n")
        monkeypatch.setenv("HEADLIGHT_API_KEY", "wröng")
        told = headlight(*ask).stderr
        assert told.startswith("the API key in HEADLIGHT_API_KEY cannot be sent")
        assert "wröng" not in told
        monkeypatch.setenv("HEADLIGHT_API_KEY", key)
        assert headlight(*ask).exit_code == 0
