"""Fixtures about the project's own files."""

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root():
    """Return the top of the checkout."""
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def committed(root):
    """Return every file that git tracks, as a path from the top."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, text=True
    )
    return [name for name in listing.stdout.split("\0") if name and (root / name).exists()]
