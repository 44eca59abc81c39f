"""All heads as points: how long 10,000 of them take to compute and to filter."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("sky.js")
POINTS, SLACK = 10_000, 3
TARGETS = {"figure": 250, "filter": 100}


def test_ten_thousand_heads_are_drawn_without_a_stutter(table):
    node = Path(sys.executable).parent / "node"
    ran = subprocess.run([node, SCRIPT], capture_output=True, check=True, text=True)
    for what, measured in json.loads(ran.stdout).items():
        took, target = measured["took"], TARGETS[what]
        figure = f"{took:.3g} ms"
        table.add("All heads", f"{what}, {POINTS:,}", figure, f"≤ {target} ms", took <= target)
        assert measured["points"] == POINTS
        assert took <= SLACK * target
