"""The documentation on a site: concepts, the API, and how to add things.

Concepts are the README of the installed package; the API is its OpenAPI description. What lies only
in a checkout is on the site of a checkout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import orjson

from headlight.distribution import DISTRIBUTION
from headlight.models.cards import prose_of
from headlight.settings import HOME

API = Path(__file__).parents[1] / "openapi.json"

_IMAGE = re.compile(r"^!\[[^\]]*\]\([^)]*\)$", re.MULTILINE)
_HREF = re.compile(r'<a href="(?!https?:|#|docs[-.])([^"#]*)(#[^"]*)?">(.*?)</a>', re.DOTALL)
_PAGES = {
    "README.md": "docs.html",
    "CONTRIBUTING.md": "docs-add.html",
    "docs/api.md": "docs-reference.html",  # docs-api.html is made of the OpenAPI description
}


def documents() -> Iterator[tuple[str, str, str]]:
    """Yield the documents, each as its file, its title, and its HTML."""
    readme = metadata(DISTRIBUTION).json.get("description", "")
    yield "docs.html", "Concepts", _linked(prose_of(_IMAGE.sub("", str(readme))))
    yield "docs-api.html", "The API", prose_of(_api())
    for path in (*sorted((HOME / "docs").glob("*.md")), HOME / "CONTRIBUTING.md"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            page = _page_of(path.relative_to(HOME).as_posix())
            title = text.partition("\n")[0].removeprefix("# ")
            yield page, title, _linked(prose_of(_IMAGE.sub("", text)))


def _page_of(source: str) -> str:
    """Return the page of a document, named by its place in a checkout."""
    return _PAGES.get(source) or f"docs-{Path(source).stem}.html"


def _is_shown(source: str) -> bool:
    """Return True if a document is on the site, as those are that `documents` yields."""
    is_listed = source in _PAGES or (source.startswith("docs/") and source.count("/") == 1)
    return is_listed and (HOME / source).is_file()


def _linked(html: str) -> str:
    """Let links to files lead to the pages of the site; others become plain text."""

    def replaced(match: re.Match[str]) -> str:
        path, anchor, text = match[1].removeprefix("../"), match[2] or "", match[3]
        for source in (path, f"docs/{path}"):
            if source == "README.md" or (source.endswith(".md") and _is_shown(source)):
                return f'<a href="{_page_of(source)}{anchor}">{text}</a>'
        return text

    return _HREF.sub(replaced, html)


def _api() -> str:
    """Return the API as Markdown: each operation with its members and answers."""
    document = orjson.loads(API.read_bytes())
    info = document["info"]
    lines = [f"# {info['title']} {info['version']}", "", info.get("description", ""), ""]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            text = operation.get("description") or operation.get("summary", "")
            lines += [f"## {method.upper()} {path}", "", text, ""]
            lines += _table("Parameter", _parameters(operation))
            lines += _table("Member of the body", _members(operation, document))
            answers = [
                (status, answer.get("description", ""))
                for status, answer in operation["responses"].items()
            ]
            lines += _table("Status", answers)
    return "\n".join(lines)


def _parameters(operation: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (f"`{each['name']}` ({each['in']})", each.get("description", ""))
        for each in operation.get("parameters", ())
    ]


def _members(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[tuple[str, str]]:
    content: Mapping[str, Any] = operation.get("requestBody", {}).get("content", {})
    if not content:
        return []
    schema = next(iter(content.values())).get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return [
        (f"`{name}`", member.get("description", ""))
        for name, member in schema.get("properties", {}).items()
    ]


def _table(heading: str, rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    cells = [
        f"| {name} | {' '.join(text.split()).replace('|', chr(92) + '|')} |" for name, text in rows
    ]
    return [f"| {heading} | |", "|---|---|", *cells, ""]
