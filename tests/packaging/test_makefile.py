"""The commands that people are told to run exist, and `make` lists them."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = set(re.findall(r"^([a-z-]+):.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_make_alone_lists_every_command() -> None:
    listing = subprocess.run(["make"], cwd=ROOT, capture_output=True, check=True, text=True)
    assert set(re.findall(r"^make ([a-z-]+)", listing.stdout, re.MULTILINE)) == TARGETS


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", ".ci/run", "constraints.txt"])
def test_every_make_command_that_is_named_exists(name: str) -> None:
    named = set(re.findall(r"(?:^|`|exec )make ([a-z-]+)", (ROOT / name).read_text(), re.MULTILINE))
    assert named <= TARGETS


@pytest.mark.parametrize("target", ["install", "serve", "test", "lock"])
def test_the_promised_commands_are_there(target: str) -> None:
    assert target in TARGETS
