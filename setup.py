"""The packages, found by their folders: one name in site-packages.

app/ is the package headlight, and each folder next to it lies inside: model/ is headlight.model. A
wheel carries static/ and templates/ as well. The lab may be absent: the product does without it.
"""

from pathlib import Path

from setuptools import setup

FOLDERS = {
    "headlight": "app",
    "headlight.lab": "lab",
    "headlight.model": "model",
    "headlight.static": "static",
    "headlight.templates": "templates",
}
there = {name: folder for name, folder in FOLDERS.items() if Path(folder).is_dir()}
with_modules = {
    ".".join([name, *path.parent.relative_to(folder).parts])
    for name, folder in there.items()
    for path in Path(folder).rglob("*.py")
}

setup(package_dir=there, packages=sorted(with_modules | there.keys()))
