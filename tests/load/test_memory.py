"""The curve of a server's memory: what counts as growth, and a short run of the program."""

import subprocess
import sys
from pathlib import Path

from memory import MEGABYTE, Point, growth


def curve_of(*points):
    return [Point(n_requests=n, rss=rss * MEGABYTE, cache_bytes=0) for n, rss in points]


def test_growth_counts_from_where_things_have_settled():
    curve = curve_of((250, 300), (510, 400), (760, 460), (1_000, 430))
    assert growth(curve) == 30 * MEGABYTE


def test_a_curve_too_short_to_settle_has_not_grown():
    assert growth(curve_of((250, 300))) == 0


def test_a_short_run_meets_no_surprise():
    command = [sys.executable, "tests/load/memory.py", "--requests", "3", "--people", "1"]
    root = Path(__file__).parents[2]
    result = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=False, timeout=100
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "50 MB are allowed" in result.stdout
