#!/usr/bin/env python
"""Copy what `import headlight.client` reads into a FOLDER, to build headlight-viz-client from it.

Usage: client_tree.py FOLDER
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT, tree = Path(__file__).parents[1], Path(sys.argv[1])
PROGRAM = """
import sys, headlight, headlight.client.thread
for name, module in sorted(sys.modules.items()):
    if name.split(".")[0] == "headlight" and getattr(module, "__file__", None):
        print(module.__file__)
"""
command = [sys.executable, "-c", PROGRAM]
said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
for line in [*said.split("\n")[:-1], str(ROOT / "app" / "py.typed")]:
    inside = Path(line).resolve().relative_to(ROOT)
    parts = inside.parts[inside.parts[0] == "app" :]
    target = tree.joinpath("headlight", *parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(line, target)
for name in ("app/client/pyproject.toml", "LICENSE"):
    shutil.copy(ROOT / name, tree)
