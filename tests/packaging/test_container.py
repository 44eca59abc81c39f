"""What tests/image cannot see: it builds and uses the image where a builder is."""

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
        "static",
        "templates",
    }
