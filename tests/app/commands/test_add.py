"""`headlight add` and `headlight remove`: whole models, checked, or nothing at all."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from headlight import cli
from headlight.commands import adding as add_module
from headlight.commands.adding import MEASURED, made_card
from headlight.model.checkpoint.card import read_card
from headlight.model.checkpoint.loading import ZOO
from headlight.model.checkpoint.profile import is_whole
from headlight.model.foreign.checks import EAGER
from headlight.models.foreign import STORED, load_checked, read_description
from headlight.models.model_registry import CHECKS, registry_of
from headlight.serving import profile_process
from headlight.settings import Settings
from tests.tiny_checkpoints import save_checkpoint

README = """---
license: apache-2.0
datasets:
- openwebtext
---
# Tiny <script>alert(1)</script>

![picture](https://example.org/x.png) of a <b>model</b>.
"""


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    folder = save_checkpoint("gpt2", tmp_path_factory.mktemp("checkpoints") / "gpt2")
    (folder / "README.md").write_text(README)
    return folder


@pytest.fixture
def source(gpt2, tmp_path):
    """Return a checkpoint that a test may damage."""
    return shutil.copytree(gpt2, tmp_path / "gpt2")


@pytest.fixture
def models_dir(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def run(zoo, models_dir, monkeypatch):
    """Return a function that runs a command with a new models directory."""
    monkeypatch.setenv("HEADLIGHT_ZOO_DIR", str(zoo))
    monkeypatch.setenv("HEADLIGHT_DEVICE", "cpu")
    monkeypatch.setattr("headlight.commands.output.notes.width", 400)
    monkeypatch.setattr("headlight.commands.output.console.width", 400)
    for name in ("subject", "antecedent"):  # they are longer than a tiny model reads
        monkeypatch.setattr(f"headlight.model.profiles.measure.{name}_sentences", list)
    monkeypatch.setattr(add_module, "refine", lambda *_: None)
    options = ("--models-dir", str(models_dir))
    return lambda *words: CliRunner().invoke(cli.app, [*words, *options])


def left_in(models_dir):
    names = (path.name for path in models_dir.iterdir()) if models_dir.exists() else ()
    return sorted(name for name in names if name != CHECKS)


def test_a_folder_is_copied_checked_and_given_a_card(run, gpt2, models_dir):
    (gpt2 / "evil.py").write_text("raise SystemExit")
    result = run("add", str(gpt2))
    assert result.exit_code == 0, result.output
    assert left_in(models_dir) == ["gpt2"]
    names = {path.name for path in (models_dir / "gpt2").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "CARD.md", STORED} <= names
    assert "evil.py" not in names
    card = read_card(models_dir / "gpt2" / "CARD.md")
    assert (card.title, card.licence, card.trained_on) == ("gpt2", "apache-2.0", ("openwebtext",))
    far = card.metrics["self_check"]["weights"]
    assert far <= EAGER
    assert f"largest difference from Hugging Face's own attention: {far:.1g}\n" in result.stdout
    assert "GPT2LMHeadModel" in card.prose
    assert "script" not in card.prose
    assert "example.org" not in card.prose
    assert str(gpt2) not in (models_dir / "gpt2" / "CARD.md").read_text()
    listed = run("models")
    assert "gpt2" in listed.stdout


def test_a_copy_has_the_tokenizer_that_its_folder_shares_with_a_model(run, models_dir):
    assert run("add", str(ZOO / "sums-direct"), "--name", "direct").exit_code == 0
    copied = models_dir / "direct" / "tokenizer.json"
    assert copied.read_bytes() == (ZOO / "sums" / "tokenizer.json").read_bytes()


def test_the_card_says_the_meaning_of_every_figure_of_the_self_check(tmp_path):
    llama = save_checkpoint("llama", tmp_path / "llama")  # it has all that is measured
    description = load_checked(llama, None).description
    prose = made_card(llama, description, "llama", "llama").prose
    assert set(description.checks) == set(MEASURED) - {"rotation_switch"}  # of few models
    assert [
        name for name in description.checks if f"- `{name}`: {MEASURED[name]}" not in prose
    ] == []


def test_the_same_name_twice_is_refused_and_another_is_not(run, gpt2, models_dir):
    assert run("add", str(gpt2)).exit_code == 0
    again = run("add", str(gpt2))
    assert again.exit_code == 2
    assert "remove it with `headlight remove gpt2`" in again.stderr
    assert run("add", str(gpt2), "--name", "mine").exit_code == 0
    assert left_in(models_dir) == ["gpt2", "mine"]


NAMES = ["../up", "a/b", "", ".hidden", "-x" * 40, "tiny", "stories", "a\nb"]
SOURCES = ["gpt2", "../no/folder", "https://x/y"]


@pytest.mark.parametrize(
    ("source", "words", "said"),
    [(None, ["--name", name], "--name") for name in NAMES]
    + [(source, [], "no .gguf file and no repository") for source in SOURCES],
)
def test_a_name_or_a_source_that_breaks_a_rule_is_refused(
    run, gpt2, models_dir, source, words, said
):
    result = run("add", source or str(gpt2), *words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert left_in(models_dir) == []


def test_a_damaged_model_or_one_with_its_own_code_leaves_nothing(run, source, models_dir):
    config, weights = source / "config.json", source / "model.safetensors"
    strange = json.dumps(json.loads(config.read_text()) | {"model_type": "mystery"}).encode()
    for path, content, said in (
        (weights, weights.read_bytes()[:-10], "model.safetensors"),
        (config, strange, "mystery"),
    ):
        whole = path.read_bytes()
        path.write_bytes(content)
        result = run("add", str(source))
        path.write_bytes(whole)
        assert result.exit_code == 1
        assert said in result.stderr
        assert left_in(models_dir) == []


def test_an_interrupted_check_leaves_nothing_that_is_listed(run, gpt2, models_dir, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(add_module, "load_checked", interrupt)
    assert run("add", str(gpt2)).exit_code != 0
    assert left_in(models_dir) == []


def test_too_little_disk_space_is_told_before_anything_is_copied(run, gpt2, monkeypatch):
    usage = shutil.disk_usage(gpt2)._replace(free=1000)
    monkeypatch.setattr(add_module.shutil, "disk_usage", lambda _: usage)
    assert "of disk space" in run("add", str(gpt2)).stderr


def test_a_model_of_this_project_is_added_too(run, zoo, models_dir):
    assert run("add", str(zoo / "dense"), "--name", "mine").exit_code == 0
    assert "mine" in run("models").stdout
    assert run("remove", "mine").exit_code == 0
    assert left_in(models_dir) == []


def test_removing_takes_only_what_was_added(run, gpt2, zoo, models_dir, monkeypatch):
    run("add", str(gpt2))
    shutil.copytree(zoo / "dense", models_dir / "trained")
    assert "was not added by `headlight add`" in run("remove", "trained").stderr
    assert "ships with Headlight" in run("remove", "tiny").stderr
    assert "is not there" in run("remove", "../models/gpt2").stderr
    monkeypatch.setenv("HEADLIGHT_DEFAULT_MODEL", "gpt2")
    assert "is the server's default" in run("remove", "gpt2").stderr
    monkeypatch.delenv("HEADLIGHT_DEFAULT_MODEL")
    assert run("remove", "gpt2").exit_code == 0
    assert left_in(models_dir) == ["trained"]


def test_without_transformers_the_extra_is_named(run, gpt2, monkeypatch, models_dir):
    monkeypatch.setattr("headlight.models.foreign.find_spec", lambda name: None)
    result = run("add", str(gpt2))
    assert result.exit_code == 1
    assert "pip install 'headlight-viz[hf]'" in result.stderr
    assert left_in(models_dir) == []


# --- the hub, as a server on this machine ---------------------------------------------------------

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """The two calls of the hub that a download makes, over the files of a folder."""

    folder = None
    asked: list[str]
    break_after = None

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.asked.append(f"{self.command} {self.path} {self.headers.get('Range', '')}".strip())
        path = self.path.partition("?")[0]
        if path.startswith("/api/models/org/tiny/revision") or path == "/api/models/org/tiny":
            self.answer(json.dumps(self.info()).encode(), {"Content-Type": "application/json"})
        elif path.startswith("/api/models/org/tiny/tree"):
            tree = [
                {"type": "file", "path": name, "size": size, "oid": "0" * 40}
                for name, size in self.files()
            ]
            self.answer(json.dumps(tree).encode(), {"Content-Type": "application/json"})
        elif "/resolve/" in path:
            content = (self.folder / path.rpartition("/")[2]).read_bytes()
            self.answer(
                content, {"X-Repo-Commit": COMMIT, "ETag": f'"{sha1(content).hexdigest()}"'}
            )
        else:
            self.send_error(404)

    def info(self):
        siblings = [{"rfilename": name, "size": size} for name, size in self.files()]
        return {"id": "org/tiny", "modelId": "org/tiny", "sha": COMMIT, "siblings": siblings}

    def files(self):
        return [(path.name, path.stat().st_size) for path in sorted(self.folder.iterdir())]

    def answer(self, content, headers):
        whole = len(content)
        begin = 0
        if asked := self.headers.get("Range"):
            begin = int(asked.removeprefix("bytes=").partition("-")[0])
        self.send_response(206 if asked else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{whole - 1}/{whole}")
        self.send_header("Content-Length", str(whole - begin))
        self.end_headers()
        if self.command == "HEAD":
            return
        part = content[begin:]
        if self.break_after is not None and self.path.endswith("model.safetensors"):
            part = part[: self.break_after]
            self.close_connection = True
        self.wfile.write(part)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(gpt2, tmp_path):
    """Yield the address of a hub with one repository, org/tiny, and its handler."""
    folder = shutil.copytree(gpt2, tmp_path / "repository")
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    handler = type("TinyHub", (Hub,), {"folder": folder, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    thread.join()
    server.server_close()


def headlight_add(endpoint, models_dir, source="org/tiny"):
    """Return the command in a new process, as the hub's library reads its address only once."""
    environment = os.environ | {
        "HF_ENDPOINT": endpoint,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "5",
        "COLUMNS": "400",
    }
    code = "from headlight.cli import app; app()"
    command = [sys.executable, "-c", code, "add", source, "--models-dir", str(models_dir)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
def test_a_repository_is_fetched_without_its_code_and_its_pickles(hub, models_dir):
    endpoint, handler = hub
    result = headlight_add(endpoint, models_dir, "org/tiny@main")
    assert result.returncode == 0, result.stderr
    assert left_in(models_dir) == ["tiny"]
    names = {path.name for path in (models_dir / "tiny").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "CARD.md"} <= names
    assert not [name for name in names if name.endswith((".py", ".bin"))]
    assert not [line for line in handler.asked if line.endswith((".py", ".bin"))]
    card = read_card(models_dir / "tiny" / "CARD.md")
    assert card.training["source"] == f"org/tiny@{COMMIT}"


@pytest.mark.slow
def test_an_interrupted_download_lists_nothing_and_goes_on(hub, models_dir):
    endpoint, handler = hub
    handler.break_after = 1000
    broken = headlight_add(endpoint, models_dir)
    assert broken.returncode == 1
    assert [name for name in left_in(models_dir) if not name.startswith(".")] == []
    handler.break_after = None
    handler.asked.clear()
    result = headlight_add(endpoint, models_dir)
    assert result.returncode == 0, result.stderr
    assert left_in(models_dir) == ["tiny"]
    assert not [line for line in handler.asked if line.startswith("GET") and "config.json" in line]


def test_a_repository_is_fetched_by_one_process_at_a_time(run, models_dir):
    models_dir.mkdir()
    with add_module._locked(models_dir, "org/other"):
        result = run("add", "org/other@main")
    assert result.exit_code == 2
    assert "another `headlight add` fetches org/other" in result.stderr
    assert list(models_dir.iterdir()) == []


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_told_in_one_sentence(models_dir):
    result = headlight_add("http://127.0.0.1:9", models_dir)
    assert result.returncode == 1
    assert "org/tiny could not be fetched" in result.stderr
    assert "Traceback" not in result.stderr
    assert left_in(models_dir) == []


@pytest.mark.slow
def test_a_repository_of_pickles_is_refused(hub, models_dir):
    endpoint, handler = hub
    (handler.folder / "model.safetensors").unlink()
    result = headlight_add(endpoint, models_dir)
    assert result.returncode == 1
    assert "may run code when it is opened" in result.stderr
    assert left_in(models_dir) == []


def test_heads_are_measured_at_once_on_sentences_of_ones_own(run, gpt2, models_dir, tmp_path):
    refined = []
    text = tmp_path / "mine.txt"
    text.write_text("".join(f"Le chat {n} dort.\n" for n in range(9)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(add_module, "refine", lambda *given: refined.append(given))
        result = run("add", str(gpt2), "--text", str(text))
    assert result.exit_code == 0, result.output
    profile = read_description(models_dir / "gpt2")[0].heads
    assert profile["text"] == ["mine.txt"]
    assert not is_whole(profile)
    assert {len(heads) for heads in profile["attentions"].values()} == {4}
    assert refined == [(models_dir / "gpt2", [text], "cpu")]


def test_heads_are_left_alone_if_told_so_and_a_missing_file_adds_nothing(run, gpt2, models_dir):
    result = run("add", str(gpt2), "--text", "none.txt")
    assert result.exit_code == 2
    assert "none.txt: there is no such file" in result.stderr
    assert left_in(models_dir) == []
    assert run("add", str(gpt2), "--no-heads").exit_code == 0
    assert read_description(models_dir / "gpt2")[0].heads is None


def test_the_process_that_goes_on_measures_what_each_head_is_worth(
    run, gpt2, models_dir, monkeypatch
):
    run("add", str(gpt2), "--no-heads")
    folder = models_dir / "gpt2"
    text = models_dir.parent / "mine.txt"
    text.write_text("".join(f"Le chat {n} dort.\n" for n in range(9)))
    words = ["--sentences", "2", "--text", str(text)]
    monkeypatch.setattr("os.nice", lambda _: 0)
    monkeypatch.setattr("sys.argv", ["profile", str(folder), *words])
    assert profile_process.main() == 0
    assert is_whole(read_description(folder)[0].heads)


KILLED = """
import sys, time
from pathlib import Path
from headlight.models.staging import staging
with staging(Path(sys.argv[1])) as staged:
    (staged / "model.safetensors").write_bytes(b"half")
    print(staged.name, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("cleans", ["add", "remove", "serve", "list"])
def test_what_a_killed_process_left_is_removed_and_what_another_adds_is_not(
    run, gpt2, models_dir, cleans
):
    run("add", str(gpt2), "--no-heads", "--name", "first")
    settings = Settings(models_dir=models_dir, default_model="first", device="cpu")
    registry = registry_of(settings)
    killed, busy = (
        subprocess.Popen(
            [sys.executable, "-c", KILLED, str(models_dir)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    )
    try:
        names = [process.stdout.readline().strip() for process in (killed, busy)]
        killed.kill()
        killed.wait()
        assert set(names) <= {path.name for path in models_dir.iterdir()}
        act = {
            "add": lambda: run("add", str(gpt2), "--no-heads"),
            "remove": lambda: run("remove", "first"),
            "serve": lambda: registry_of(settings).listed,
            "list": registry.refresh,
        }
        act[cleans]()
        left = {path.name for path in models_dir.iterdir()}
        assert names[0] not in left
        assert (models_dir / names[1] / "model.safetensors").read_bytes() == b"half"
    finally:
        for process in (killed, busy):
            process.kill()
            process.wait()
            process.stdout.close()


def test_a_signal_to_terminate_leaves_nothing(run, gpt2, models_dir, monkeypatch):
    def terminated(*_, **__):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(add_module, "load_checked", terminated)
    assert run("add", str(gpt2)).exit_code == add_module.TERMINATED
    assert left_in(models_dir) == []
