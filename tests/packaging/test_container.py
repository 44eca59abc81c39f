"""The files that the container image is built from; tests/image builds and uses it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_only_what_the_build_needs_is_sent_to_it():
    sent = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE)
    assert set(sent) == {
        "LICENSE",
        "README.md",
        "app",
        "constraints.txt",
        "model",
        "pyproject.toml",
        "setup.py",
        "static",
        "templates",
    }
