"""Fixtures about the project's own files."""

import subprocess
from pathlib import Path

import pytest

MADE = ("headlight_viz.egg-info/", "PKG-INFO", "setup.cfg")
"""The files that only a source archive has."""


@pytest.fixture(scope="session")
def root():
    """Return the top of the checkout."""
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def committed(root):
    """Return every file that git tracks, or that the source archive holds, from the top."""
    if (root / ".git").exists():
        git = ["git", "ls-files", "-z"]
        listing = subprocess.run(git, cwd=root, capture_output=True, check=True, text=True)
        names = listing.stdout.split("\0")
    else:
        lines = (root / "headlight_viz.egg-info" / "SOURCES.txt").read_text().splitlines()
        names = [name for name in lines if not name.startswith(MADE)]
    return [name for name in names if name and (root / name).exists()]
