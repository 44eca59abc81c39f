"""`headlight trace`: its outputs, its backends and its errors."""

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
from headlight.client import Client, read_trace
from headlight.commands.trace import _quoted
from tests.tiny_checkpoints import save_checkpoint

ASK = ["trace", "the cat", "--capture", "*.self_attention.weights"]
ZEROED = '[{"kind": "heads_off", "heads": [0]}]'


def test_the_table_shows_the_next_tokens_and_the_arrays(headlight):
    result = headlight("trace", "the cat", "--layers", "0", "--heads", "1", "--heads", "2")
    assert result.exit_code == 0
    assert "' cat'" in result.output
    assert "decoder.layers.0.self_attention.weights  head=2 query=3 key=3" in result.output


def test_a_translator_shows_both_texts_and_predicts_the_target(headlight, translator):
    words = ["trace", "the cat", "--model", "translator", "--target", "a small light"]
    result = headlight(*words, "--capture", "encoder.*.output")
    assert result.exit_code == 0
    assert "translator reads 'the cat', then 'a small light'" in result.output
    pieces = [token.text for token in translator.tokenizer.encode("a small light")]
    rows = [line for line in result.output.splitlines() if "%" in line]
    assert len(rows) == len(pieces)
    assert all(repr(piece) in row for piece, row in zip(pieces, rows, strict=True))
    assert "encoder.layers.0.self_attention.output  query=3 d_model=16" in result.output


def test_an_encoder_shows_predictions_in_place(headlight):
    result = headlight("trace", "the [MASK] sat", "--model", "filler")
    assert result.exit_code == 0
    assert "filler reads 'the [MASK] sat'\n" in result.output
    assert "'[MASK]'" in result.output


def test_csv_has_every_number_of_the_trace(headlight, client):
    rows = list(csv.DictReader(io.StringIO(headlight(*ASK, "--csv").stdout)))
    asked = {"text": "the cat", "capture": ["*.self_attention.weights"]}
    tensors = client.post("/api/v1/trace", json=asked).json()["tensors"]
    written = [float(row["value"]) for row in rows]
    sent = np.concatenate([np.ravel(array["data"]) for array in tensors.values()])
    np.testing.assert_allclose(written, sent, rtol=1e-6)
    assert {row["site"] for row in rows} == set(tensors)


@pytest.mark.parametrize(
    ("options", "members"),
    [
        (
            ["--analyses", "rollout", "--edits", ZEROED, "--dtype", "uint16", "--triangle"],
            {
                "analyses": ["rollout"],
                "edits": json.loads(ZEROED),
                "dtype": "uint16",
                "triangle": True,
            },
        ),
        (
            ["--model", "translator", "--target", "a light"],
            {"model": "translator", "target": "a light"},
        ),
    ],
)
def test_json_is_the_answer_of_the_api(headlight, client, options, members):
    printed = json.loads(headlight("trace", "the cat", "--json", *options).stdout)
    answered = client.post("/api/v1/trace", json={"text": "the cat", **members}).json()
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
    here = tmp_path / "here.html"
    assert headlight(*ASK, "--html", str(here)).exit_code == 0
    assert page.stat().st_size == pytest.approx(here.stat().st_size, rel=0.01)


def test_a_foreign_model_gives_a_page_without_naming_its_sites(headlight, tmp_path, monkeypatch):
    save_checkpoint("gpt2", tmp_path / "models" / "mine")
    monkeypatch.setenv("HEADLIGHT_MODELS_DIR", str(tmp_path / "models"))
    page = tmp_path / "page.html"
    result = headlight("trace", "the cat", "--model", "mine", "--html", str(page))
    assert result.exit_code == 0, result.output
    assert page.stat().st_size > 100_000


def test_a_text_is_continued_here_and_on_a_server_as_the_client_continues_it(headlight, server):
    with Client(server.url) as asked:
        *_, end = asked.generate("the cat", n_tokens=12, seed=2, top_k=40)
    words = ["generate", "the cat", "--n-tokens", "12", "--seed", "2", "--top-k", "40"]
    for result in (headlight(*words), headlight(*words, "--server", server.url)):
        assert result.exit_code == 0, result.stderr
        assert result.stdout == f"the cat{end.text}\n"


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--top-p", "2"], "--top-p: must be at most 1.0, not 2.0"),
        (["--model", "filler"], "cannot continue a text"),
        (["--reward", "judge"], "--reward rates the texts of --best-of"),
        (["--beams", "4", "--top-k", "2"], "does not sample; leave out --top-k"),
    ],
)
def test_a_text_that_cannot_be_continued_is_a_usage_error(headlight, words, fault):
    result = headlight("generate", "the cat", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert fault in result.stderr


@pytest.mark.parametrize(
    ("text", "shown"), [("\\xe2\\x80", r"'\xe2\x80'"), ("\x04", r"'\x04'"), (" a", "' a'")]
)
def test_a_token_is_quoted_with_single_backslashes(text, shown):
    assert _quoted(text) == shown


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--json", "--csv"], "--csv"),
        (["--out", "a"], "--out"),
        (["--json", "--html", "-"], "destination"),
        (["--edits", "[{]"], "--edits is not JSON: "),
        (["--edits", '[{"kind": "mood"}]'], "--edits.0: "),
        (["--html", "-", "--heads", "0"], "--heads"),
        (["--html", "-", "--capture", "logits"], "--capture '*.self_attention.weights'"),
        (["--server", "localhost"], "'localhost'"),
        (["--server", "http://a", "--device", "cpu"], "--device"),
        (["--model", "gpt"], "dense, filler"),
        (["--device", "tpu"], "--device: 'tpu' is not one of "),
        (["--model", "translator", "--target", "\udcff"], "surrogate"),
    ],
)
def test_a_usage_error_is_one_line_and_exits_with_2(headlight, words, named):
    result = headlight("trace", "the cat", *words)
    assert result.exit_code == 2
    assert named in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words", [["--safetensors", "/no/such/place"], ["--server", "http://127.0.0.1:9"]]
)
def test_a_failure_is_one_line_and_exits_with_1(headlight, words):
    result = headlight("trace", "the cat", *words)
    assert result.exit_code == 1
    assert words[1].removesuffix("/place") in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_an_error_of_the_server_is_reported_like_one_here(headlight, server):
    words = ["trace", "the cat", "--model", "gpt"]
    here, there = headlight(*words), headlight(*words, "--server", server.url)
    assert (there.exit_code, there.stderr) == (here.exit_code, here.stderr) == (2, here.stderr)


def test_a_model_may_be_a_folder(headlight, zoo, tmp_path):
    folder = tmp_path / "mine"
    folder.symlink_to(zoo / "dense")
    printed = json.loads(headlight(*ASK, "--json", "--model", str(zoo / "dense")).stdout)
    expected = json.loads(headlight(*ASK, "--json", "--model", "dense").stdout)
    del printed["timings"], expected["timings"]
    assert printed == expected
    assert headlight(*ASK, "--model", str(folder)).exit_code == 0


def test_the_folder_of_an_unfinished_run_is_not_called_damaged(headlight, tmp_path):
    (tmp_path / "run.json").write_text("{}")
    result = headlight(*ASK, "--model", str(tmp_path))
    assert result.exit_code == 1
    assert "not finished" in result.stderr


@pytest.mark.slow
def test_a_closed_pipe_is_not_an_error(zoo):
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


@pytest.mark.parametrize("sent", [b"\xff", b"a" * 11, b"\n"])
def test_unreadable_standard_input_exits_with_2(zoo, sent):
    result = piped(zoo, sent, HEADLIGHT_MAX_CHARACTERS="10")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def piped(zoo, sent, **written):
    """Return the result of `headlight trace - --json` with this standard input."""
    environment = {"HEADLIGHT_ZOO_DIR": str(zoo), "HEADLIGHT_DEFAULT_MODEL": "tiny", **written}
    return CliRunner().invoke(app, ["trace", "-", "--json"], input=sent, env=environment)


def test_a_server_gets_the_key_of_the_environment(headlight, monkeypatch, serving, settings):
    key = "0123456789abcdef"
    with serving(settings.model_copy(update={"api_keys": (SecretStr(key),)})) as server:
        ask = [*ASK, "--json", "--server", server.url]
        for wrong, code in (("", 1), ("another-0123456789", 1), ("wröng", 2)):
            monkeypatch.setenv("HEADLIGHT_API_KEY", wrong)
            result = headlight(*ask)
            assert result.exit_code == code
            assert "HEADLIGHT_API_KEY" in result.stderr
            assert not wrong or wrong not in result.stderr
        monkeypatch.setenv("HEADLIGHT_API_KEY", key)
        assert headlight(*ask).exit_code == 0


def test_a_file_may_be_longer_than_the_model_was_trained_on(headlight, tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("the cat sat on the mat. " * 60 + "\n")
    page, file = tmp_path / "book.html", tmp_path / "book.safetensors"
    result = headlight(
        "trace", "--file", str(book), "--html", str(page), "--safetensors", str(file)
    )
    assert result.exit_code == 0, result.output
    trace = read_trace(file.read_bytes())
    assert len(trace.tokens) > 128
    assert trace.resolution == 128
    assert trace["decoder.layers.1.self_attention.max_map"].shape[1] <= 128
    assert page.stat().st_size > file.stat().st_size
    shown = headlight("trace", "--file", str(book), "--resolution", "8", "--queries", "5")
    assert f"reads {len(trace.tokens):,} tokens" in shown.output
    assert "decoder.layers.0.self_attention.rows  head=4 row=1" in shown.output


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "give either a text or --file"),
        (["the cat", "--file", "book.txt"], "give either a text or --file"),
        (["the cat", "--resolution", "0"], "--resolution: must be at least 1, not 0"),
        (["the cat", "--queries", "99"], "has no position 99"),
    ],
)
def test_a_wrong_order_for_a_long_text_exits_with_2(headlight, words, named):
    result = headlight("trace", *words)
    assert result.exit_code == 2
    assert named in result.output
