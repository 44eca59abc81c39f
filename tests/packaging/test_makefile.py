"""The commands that people are told to run exist, and `make` lists them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z-]+):.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_make_alone_lists_every_command():
    listing = subprocess.run(["make"], cwd=ROOT, capture_output=True, check=True, text=True)
    assert set(re.findall(r"^make ([a-z-]+)", listing.stdout, re.MULTILINE)) == TARGETS


def test_every_make_command_that_is_named_exists():
    named = {"install", "serve", "test", "test-all", "bench", "lock"}
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", ".ci/run", "constraints.txt"):
        text = (ROOT / name).read_text()
        named |= set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
    assert named <= TARGETS


def test_what_a_change_touches_is_tested_and_nothing_slow(tmp_path):
    def git(*words):
        person = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *person, *words], cwd=tmp_path, check=True, capture_output=True)

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def touched(ending):
        command = [sys.executable, ROOT / ".ci" / "touched.py", ending]
        return subprocess.check_output(command, cwd=tmp_path, text=True).split()

    write("model/attention/scores.py", "")
    write("tests/model/attention/test_scores.py", "")
    write("tests/model/test_moe.py", "from headlight.model.attention import layer, scores\n")
    write("tests/model/test_norms.py", "from headlight.model.attention.scores_of import x\n")
    write("tests/slow/model/test_long.py", "import headlight.model.attention.scores\n")
    write("static/js/plot/bars.js", "")
    write(
        "tests/js/views/word.test.js", "import { bars } from '../../../static/js/plot/bars.js';\n"
    )
    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    assert touched("py") == touched("js") == []

    write("model/attention/scores.py", "A = 1\n")
    write("static/js/plot/bars.js", "export const bars = 1;\n")
    assert touched("py") == ["tests/model/attention/test_scores.py", "tests/model/test_moe.py"]
    assert touched("js") == ["tests/js/views/word.test.js"]
