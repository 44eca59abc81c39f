"""The command line: what a person types and what they read."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from headlight.model import tracing


def test_models_are_a_table(headlight):
    result = headlight("models")
    assert result.exit_code == 0
    assert "tiny" in result.output
    assert "2 of 4" in result.output
    assert "dense" in result.output


def test_a_damaged_model_is_named(headlight, tmp_path):
    (tmp_path / "broken").mkdir()
    result = headlight("models", "--models-dir", str(tmp_path))
    assert result.exit_code == 0
    assert "broken/config.json" in result.output


def test_limits_are_those_of_a_server_started_here(headlight, monkeypatch, client):
    monkeypatch.setenv("HEADLIGHT_MAX_CELLS", "98765")
    result = headlight("limits")
    assert result.exit_code == 0
    assert "max_cells  98,765 numbers" in result.output
    assert "422 too-many-cells · HEADLIGHT_MAX_CELLS" in result.output
    for name in client.get("/api/v1/limits").json():
        assert f"\n{name}  " in f"\n{result.output}"


def test_a_trace_shows_the_next_token_and_the_arrays(headlight):
    result = headlight("trace", "the cat", "--layers", "0", "--heads", "1", "--heads", "2")
    assert result.exit_code == 0
    assert "' cat'" in result.output
    assert "decoder.layers.0.self_attention.weights  head=2 query=3 key=3" in result.output


def test_models_of_every_kind_are_named(headlight):
    rows = headlight("models").output.splitlines()
    for model, kind in (
        ("tiny", "decoder"),
        ("translator", "encoder-decoder"),
        ("filler", "encoder"),
    ):
        assert any(row.split()[:2] == [model, kind] for row in rows), model


def test_a_translators_trace_shows_both_texts_and_what_follows_the_target(headlight, translator):
    words = ["trace", "the cat", "--model", "translator", "--target", "a small light"]
    result = headlight(*words, "--capture", "encoder.*.output")
    assert result.exit_code == 0
    assert "translator reads 'the cat', then 'a small light'" in result.output
    pieces = [token.text for token in translator.tokenizer.encode("a small light")]
    rows = [line for line in result.output.splitlines() if "%" in line]
    assert len(rows) == len(pieces)
    assert all(repr(piece) in row for piece, row in zip(pieces, rows, strict=True))
    assert "encoder.layers.0.self_attention.output  query=3 d_model=16" in result.output


def test_a_translator_without_a_target_shows_its_translation(headlight, translator):
    result = headlight("trace", "the cat", "--model", "translator")
    target = tracing.trace(translator, "the cat").target
    assert f"translator reads 'the cat', then {target!r}\n" in result.output


def test_an_encoders_trace_shows_what_may_stand_at_each_place(headlight):
    result = headlight("trace", "the [MASK] sat", "--model", "filler")
    assert result.exit_code == 0
    assert "filler reads 'the [MASK] sat'\n" in result.output
    assert "'[MASK]'" in result.output


@pytest.mark.parametrize(
    ("options", "members"),
    [
        (["--capture", "*.weights"], {"capture": ["*.weights"]}),
        (
            ["--model", "translator", "--target", "a light"],
            {"model": "translator", "target": "a light"},
        ),
    ],
)
def test_a_trace_as_json_is_the_answer_of_the_api(headlight, client, options, members):
    printed = json.loads(headlight("trace", "the cat", "--json", *options).stdout)
    answered = client.post("/api/v1/trace", json={"text": "the cat", **members}).json()
    del printed["timings"], answered["timings"]
    assert printed == answered


def test_a_trace_can_be_a_safetensors_file(headlight, tmp_path, from_safetensors):
    path = tmp_path / "out.safetensors"
    result = headlight("trace", "the cat", "--safetensors", str(path))
    assert result.exit_code == 0
    arrays, metadata = from_safetensors(path.read_bytes())
    assert metadata["text"] == "the cat"
    assert "decoder.embedding.positional" in arrays


@pytest.mark.parametrize(
    ("words", "named"), [(["--model", "gpt"], "dense, filler"), (["--device", "tpu"], "tpu")]
)
def test_a_server_that_cannot_start_says_why_in_one_line(headlight, words, named):
    result = headlight("serve", *words)
    assert result.exit_code != 0
    assert named in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_one_clear_sentence(headlight):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = headlight("serve", "--port", str(taken.getsockname()[1]))
    assert result.exit_code == 1
    assert "address already in use" in result.stderr


def test_help_does_not_wait_for_pytorch():
    code = (
        "import sys, headlight.cli; sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_serve_says_where_it_is_and_stops_when_told(zoo):
    environment = os.environ | {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny"}
    environment["HEADLIGHT_QEUE_LENGTH"] = "9"
    command = [sys.executable, "-m", "headlight.cli", "serve", "--port", "0", "--device", "cpu"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[3]
        assert process.stdout.readline().startswith("model   tiny and 5 more · cpu · float32")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                if httpx.get(f"{address}/readyz").status_code == 200:
                    break
            except httpx.ConnectError:
                pass
            time.sleep(0.1)
        answer = httpx.post(f"{address}/api/v1/trace", json={"text": "the cat"})
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert answer.json()["model"] == "tiny"
    assert process.returncode == 0
    (warning,) = errors.splitlines()
    sentence = "HEADLIGHT_QEUE_LENGTH sets nothing; did you mean HEADLIGHT_QUEUE_LENGTH?"
    assert warning.endswith(sentence)
