"""The commonest of every head, from the files of an atlas: pairs, distances, tags, sentences."""

from __future__ import annotations

import math
from typing import Any

from headlight.model.atlas.layout import EDGES, SENTENCE, Atlas
from headlight.model.atlas.search import connected, places_of

N_PAIRS, N_SENTENCES, MOST_TAGS = 20, 12, 40
FARTHEST = 24
"""Distances beyond are counted together."""


def summarise(atlas: Atlas) -> dict[str, Any]:
    """Return by attention, for each head, what its weights are on.

    ``pairs`` are the commonest of two words, without those of a token with itself; ``distances``
    count query − key in tokens, clipped to `FARTHEST`; ``tags`` are those of query and key;
    ``sentences`` have the strongest weights, one for each pair of words, and where they are.

    Raises:
        AtlasError: a file is damaged.
        ImportError: DuckDB is not installed.
    """
    return {path: _of_attention(atlas, path) for path in atlas.attentions}


def _of_attention(atlas: Atlas, path: str) -> list[dict[str, Any]]:
    files = {"files": atlas.files(EDGES, path)}
    is_cross = atlas.attentions[path]["is_cross"]
    other = "true" if is_cross else "query <> key"
    heads: list[dict[str, Any]] = [
        {"edges": 0, "pairs": [], "distances": [], "tags": [], "sentences": []}
        for _ in range(atlas.attentions[path]["n_heads"])
    ]
    with connected(atlas, math.inf) as run:
        edges = "FROM read_parquet($files)"
        for head, n in run(f"SELECT head, count(*) {edges} GROUP BY 1", files):
            heads[head]["edges"] = n
        clipped = f"greatest(least(query - key, {FARTHEST}), -{FARTHEST})"
        rows = run(f"SELECT head, {clipped}, count(*) {edges} GROUP BY 1, 2 ORDER BY 1, 2", files)
        for head, distance, n in rows:
            heads[head]["distances"].append({"distance": distance, "count": n})
        for name, columns, most in (
            ("pairs", "query_word, key_word", N_PAIRS),
            ("tags", "query_tag, key_tag", MOST_TAGS),
        ):
            rows = run(
                f"""SELECT head, {columns}, count(*) AS n {edges} WHERE {other}
                GROUP BY head, {columns}
                QUALIFY row_number() OVER (PARTITION BY head ORDER BY n DESC, {columns}) <= {most}
                ORDER BY head, n DESC, {columns}""",
                files,
            )
            for head, query, key, n in rows:
                heads[head][name].append({"query": query, "key": key, "count": n})
        rows = run(
            f"""WITH e AS (SELECT * {edges} WHERE {other}),
            pair AS (SELECT * FROM e QUALIFY row_number() OVER (PARTITION BY head, query_word,
                key_word ORDER BY weight DESC, sentence, query, key) = 1),
            each AS (SELECT * FROM pair QUALIFY row_number() OVER (PARTITION BY head, sentence
                ORDER BY weight DESC, query, key) = 1)
            SELECT head, weight, query, key, query_word, key_word, sentence FROM each
            QUALIFY row_number() OVER (PARTITION BY head ORDER BY weight DESC, sentence)
                <= {N_SENTENCES} ORDER BY head, weight DESC, sentence""",  # noqa: S608
            files,
        )
        places = places_of(run, atlas, [(path, *row) for row in rows])
    for place in places:
        heads[place["head"]]["sentences"].append({name: place[name] for name in SENTENCE})
    return heads
