"""The sentences of a head from those where it does nothing to those where it does most.

A sentence is placed by the head's largest weight in it, off the first token. The atlas keeps no
weight below its threshold, so where there is none, that is all that is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headlight.model.atlas.layout import EDGES, FULL_WEIGHT, SENTENCES, Atlas
from headlight.model.atlas.search import (
    SECONDS,
    Place,
    Question,
    attentions_of,
    connected,
    sentences_at,
    sides_of,
    spans_at,
)

N_PARTS = 10


@dataclass(frozen=True)
class Decile:
    """A tenth of the sentences, with the one in its middle.

    Args:
        low, high: the least and the greatest of the largest weights; 0: below the threshold.
        sentence: the middle one; its words and spans are empty where no weight is kept.
    """

    low: float
    high: float
    sentence: Place


@dataclass(frozen=True)
class Spread:
    """How strongly a head attends over the sentences of a corpus.

    Args:
        silent: in how many of the sentences no weight reaches the threshold.
        deciles: from the weakest sentences to the strongest; fewer, of fewer than ten sentences.
    """

    sentences: int
    silent: int
    deciles: Sequence[Decile]


def spread(atlas: Atlas, attention: str, head: int, seconds: float = SECONDS) -> Spread:
    """Return the deciles of a head.

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
        texts, spans = sentences_at(run, atlas, numbers), spans_at(run, atlas, numbers)
    of_query, of_key = sides_of(atlas, attention)

    def place_of(number: int) -> Place:
        weight, query, key, *words = pairs.get(number, (0, 0, 0, "", ""))
        return Place(
            attention=attention,
            head=head,
            weight=weight / FULL_WEIGHT,
            query=query,
            key=key,
            query_word=words[0],
            key_word=words[1],
            query_span=spans[number, of_query, query] if weight else [],
            key_span=spans[number, of_key, key] if weight else [],
            **texts[number],
        )

    return Spread(
        sum(n for _, _, n, *_ in parts),
        sum(n for *_, n, _ in parts),
        [
            Decile(low / FULL_WEIGHT, high / FULL_WEIGHT, place_of(number))
            for low, high, *_, number in parts
        ],
    )
