"""A head's sentences, from those where it does nothing to those where it does most, and its words.

A sentence is placed by the head's largest weight in it, off the first token. The atlas keeps no
weight below its threshold, so where there is none, that is all that is known.
"""

from __future__ import annotations

from typing import Any

from headlight.model.atlas.layout import EDGES, FULL_WEIGHT, SENTENCES, TOKENS, Atlas
from headlight.model.atlas.search import (
    SECONDS,
    Question,
    attentions_of,
    connected,
    places_of,
    sides_of,
)

N_PARTS, N_WORDS = 10, 8


def spread(atlas: Atlas, attention: str, head: int, seconds: float = SECONDS) -> dict[str, Any]:
    """Return how strongly a head attends over the sentences, and between which words.

    Returns:
        The number of ``sentences``; how many are ``silent``: no weight reaches the threshold;
        ``deciles`` from the weakest to the strongest, fewer of fewer than ten sentences: the least
        and the greatest of the largest weights as ``low`` and ``high``, 0 below the threshold, and
        the ``sentence`` in the middle. ``queries`` and ``keys``: the words that its weights are
        from and to most often, not on themselves, with their ``share`` and that of the corpus's
        tokens as ``base``.

    Raises:
        AtlasError, SearchTooSlow, Cancelled, ImportError: as `search`.
    """
    attentions_of(atlas, Question(attention=attention, head=head))
    files = {"edges": atlas.files(EDGES, attention), "head": head}
    with connected(atlas, seconds) as run:
        parts = run(
            """WITH best AS (SELECT sentence, max(weight) AS weight FROM read_parquet($edges)
                WHERE head = $head GROUP BY sentence),
            placed AS (SELECT s.sentence, coalesce(b.weight, 0) AS weight,
                row_number() OVER (ORDER BY coalesce(b.weight, 0), hash(s.sentence)) AS place
                FROM read_parquet($sentences) s LEFT JOIN best b USING (sentence)),
            divided AS (SELECT *, ntile($n) OVER (ORDER BY place) AS part FROM placed)
            SELECT min(weight), max(weight), count(*), count(*) FILTER (weight = 0),
                arg_min(sentence, abs(place - mid)) FROM (SELECT *,
                (min(place) OVER (PARTITION BY part) + max(place) OVER (PARTITION BY part)) / 2
                AS mid FROM divided) GROUP BY part ORDER BY part""",
            {**files, "sentences": atlas.files(SENTENCES), "n": N_PARTS},
        )
        numbers = [number for *_, number in parts]
        pairs = {
            number: pair
            for number, *pair in run(
                """SELECT sentence, weight, query, key, query_word, key_word
                FROM read_parquet($edges) WHERE head = $head AND list_contains($numbers, sentence)
                QUALIFY row_number() OVER (PARTITION BY sentence
                    ORDER BY weight DESC, query, key) = 1""",
                {**files, "numbers": numbers},
            )
        }
        nothing = (0, 0, 0, "", "")
        rows = [(attention, head, *pairs.get(number, nothing), number) for number in numbers]
        places = places_of(run, atlas, rows)
        other = "true" if atlas.attentions[attention]["is_cross"] else "query <> key"
        words = [
            [
                dict(zip(("word", "tag", "share", "base"), row, strict=True))
                for row in run(
                    f"""WITH own AS (SELECT {side}_word AS word, {side}_tag AS tag, count(*) AS n
                        FROM read_parquet($edges) WHERE head = $head AND {other} GROUP BY ALL),
                    corpus AS (SELECT word, tag, count(*) AS n FROM read_parquet($tokens)
                        WHERE side = $number AND is_typed GROUP BY ALL)
                    SELECT word, tag, own.n / (SELECT sum(n) FROM own),
                        coalesce(corpus.n, 0) / (SELECT sum(n) FROM corpus)
                    FROM own LEFT JOIN corpus USING (word, tag)
                    ORDER BY own.n DESC, word LIMIT {N_WORDS}""",  # noqa: S608
                    {**files, "tokens": atlas.files(TOKENS), "number": number},
                )
            ]
            for side, number in zip(("query", "key"), sides_of(atlas, attention), strict=True)
        ]
    return {
        "sentences": sum(n for _, _, n, *_ in parts),
        "silent": sum(n for *_, n, _ in parts),
        "deciles": [
            {"low": low / FULL_WEIGHT, "high": high / FULL_WEIGHT, "sentence": place}
            for (low, high, *_), place in zip(parts, places, strict=True)
        ],
        "queries": words[0],
        "keys": words[1],
    }
