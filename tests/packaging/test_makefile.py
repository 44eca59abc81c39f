"""The commands that people are told to run exist, and `make` lists them."""

import re
import subprocess
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
