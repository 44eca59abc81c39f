"""The values of a chapter for any model: what is found in the one that is open.

A chapter with `finds: induction` in its front matter has names in its steps, as in
`layer: {{layer}}`, which the values of a model replace. Text is escaped as in a JSON string, so it
is written in quotes: `text: "{{text}}"`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from threading import Lock
from typing import Literal

from cachetools import LRUCache, cached

from headlight.chapters.riddles import riddles_in
from headlight.model.analysis.attention_thread import edge_of
from headlight.model.analysis.induction import induction_in
from headlight.model.circuits.parts import parts_of
from headlight.model.served import Served

Found = Literal["induction", "riddles", "word"]
OF_NO_MODEL = "0"
TEXT = "When Mary and John went to the store, John gave a drink to"
"""The text for a model without examples."""


def filled(line: str, values: Mapping[str, str] | None) -> str:
    """Return a line of a chapter with the values of its names; of no model: all are 0.

    Raises:
        ValueError: nothing of this name is found.
    """

    def value(named: re.Match[str]) -> str:
        if values is None:
            return OF_NO_MODEL
        if named[1] not in values:
            raise ValueError(f"nothing named {named[1]!r} is found; there are {', '.join(values)}")
        return json.dumps(values[named[1]], ensure_ascii=False)[1:-1]

    return re.sub(r"\{\{(\w+)\}\}", value, line)


def _induction(model: Served) -> dict[str, str]:
    """Return an induction head, the cell in which it copies, and the head that feeds it.

    Raises:
        ValueError: the model has none, or nothing of it can be cut.
    """
    found = induction_in(model)
    cell, feeder, tokens = found.cell, found.feeder, found.trace.tokens
    edge = edge_of(parts_of(model).graph, feeder.name, "key", cell)
    if edge is None:
        raise ValueError(f"{feeder.name} cannot be cut in {model.id}")
    return {
        **_place(found.trace.text, cell.path, cell.head, cell.query, cell.key),
        "feeder": feeder.name,
        "feeder_layer": str(feeder.layer),
        "feeder_head": str(feeder.head),
        "edge": edge,
        "token": tokens[cell.key].text,
        "word": tokens[cell.key].text.strip(),
        "last": tokens[cell.query].text.strip(),
    }


def _word(model: Served) -> dict[str, str]:
    """Return a prediction of the model's first example, and the head that spoke most for it.

    Raises:
        ValueError: no head is known to.
    """
    from headlight.client.thread import why_of  # imports HTTPX, which a server need not have

    if model.config.kind != "decoder":
        raise ValueError(f"{model.id} is no decoder, so it predicts no next word")
    example = next(iter(model.description.card.examples.values()), TEXT)
    text = example if isinstance(example, str) else example.text
    why = why_of(model, text)
    thread = why.thread
    step = thread["steps"][0]
    token, rival = (thread[name]["text"] for name in ("token", "against"))
    return {
        **_place(text, *(step[name] for name in ("attention", "head", "query", "key"))),
        "token": token,
        "word": token.strip(),
        "rival": rival.strip(),
        "read": why.trace.tokens[step["key"]].text.strip(),
    }


def _place(text: str, path: str, head: int, query: int, key: int) -> dict[str, str]:
    numbers = {"layer": path.split(".")[2], "head": head, "query": query, "key": key}
    return {"text": text} | {name: str(number) for name, number in numbers.items()}


@cached(LRUCache(32), lock=Lock(), key=lambda kind, of: (kind, of.id, of.description.revision))
def values_of(kind: Found, model: Served) -> dict[str, str]:
    """Return what is found in a model, by name.

    Raises:
        ValueError: it has nothing of the kind.
    """
    finders = {"induction": _induction, "riddles": riddles_in, "word": _word}
    return {"model": model.id, **finders[kind](model)}
