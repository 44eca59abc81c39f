"""Sphinx's settings for the site of documents: `make documents` writes it into .venv/documents.

The source is the checkout itself, so that links between documents, to the README and to models'
cards lead to pages, and nothing is written twice.
"""

import tomllib
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]

project = "Headlight"
author = "Headlight contributors"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["*.md", "docs/**", "model/zoo/*/CARD.md", "model/foreign/*.md"]
html_theme = "furo"
html_title = f"Headlight {version}"
html_logo = str(ROOT / "static" / "logo.svg")
pygments_style = "default"

myst_heading_anchors = 4
nb_execution_mode = "off"  # a test runs them; their outputs are in the files
suppress_warnings = ["misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

SECTIONS = {
    "Start": [
        "docs/quickstart",
        "docs/notebooks/*",
        "docs/from-other-tools",
        "docs/troubleshooting",
    ],
    "Use": [
        "docs/page",
        "docs/chapters",
        "docs/circuits",
        "docs/foreign",
        "model/foreign/*",
        "docs/training",
        "docs/ideas",
    ],
    "Operate": ["docs/deployment", "docs/cluster", "SECURITY"],
    "Reference": ["docs/api", "docs/python"],
    "Models": ["model/zoo/*/CARD"],
    "Project": [
        "docs/architecture",
        "CONTRIBUTING",
        "docs/releasing",
        "CHANGELOG",
        "docs/decisions/*",
    ],
}
SERVER = "http://127.0.0.1:8000"


def prepare(_: Sphinx, name: str, source: list[str]) -> None:
    """Put the contents below the README, and lead links into the page to a server of one's own."""
    source[0] = source[0].replace("](/", f"]({SERVER}/")
    if name == root_doc:
        for caption, pages in SECTIONS.items():
            listed = "\n".join(f"/{page}" for page in pages)
            options = f":caption: {caption}\n:glob:\n:hidden:\n:maxdepth: 1"
            source[0] += f"\n```{{toctree}}\n{options}\n\n{listed}\n```\n"


def set_blocks(_: Sphinx, __: str, ___: str, ____: object, _____: object, lines: list[str]) -> None:
    """Make the indented blocks of docstrings, which are code and formulas, literal ones."""
    opened = [
        at
        for at in range(2, len(lines))
        if lines[at].startswith("    ")
        and not lines[at - 1]
        and lines[at - 2][:1] not in ("", " ", ":", ".")
    ]
    for at in reversed(opened):
        lines[at:at] = ["::", ""]


def setup(app: Sphinx) -> None:
    """Connect what changes the sources."""
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", set_blocks, priority=600)  # after napoleon
