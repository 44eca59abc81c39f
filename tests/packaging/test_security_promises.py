"""SECURITY.md: each promise names the tests that hold it, and they are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_promise_names_a_test_that_is_there():
    table = (ROOT / "SECURITY.md").read_text().partition("## What holds each promise")[2]
    rows = [row for row in table.splitlines() if row.startswith("| ") and "`" in row]
    assert len(rows) >= 14
    for row in rows:
        named = re.findall(r"`(tests/[^`]+|make [a-z]+)`", row)
        assert named, row
        for each in named:
            if each.startswith("tests/"):
                assert (ROOT / each).exists(), each
            else:
                assert re.search(rf"^{each[5:]}:", (ROOT / "Makefile").read_text(), re.M), each
