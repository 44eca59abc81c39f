"""Search an atlas: which heads attend from some words to others, how often above chance, and where.

The questions are put to DuckDB over the Parquet files. A query is composed of fixed parts; values
are bound, never written into it. The connection reads only files of the atlas, loads no extension,
and is limited in memory, threads and time.

    share = weights of the head from such queries to such keys / those to any key
    base  = visible pairs of such queries and keys / those of such queries and any key
    lift  = share / base

with the interval of Wilson 1927, https://doi.org/10.1080/01621459.1927.10502953, of the share at
95 %, as if the weights were independent. Below `LEAST_PLACES` weights there is no lift.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from headlight.model.atlas.layout import (
    EDGES,
    FULL_WEIGHT,
    SENTENCES,
    SHARD_BITS,
    TOKENS,
    Atlas,
    AtlasError,
)
from headlight.model.cancellation import Cancelled, current_condition
from headlight.model.distributions import wilson
from headlight.model.extras import missing

LEAST_PLACES = 20
BASE_TOKENS = 400_000
"""Tokens that the base rates are counted on; of a larger atlas, those of evenly chosen shards."""

MEMORY_BYTES, N_THREADS, SECONDS = 2**30, 2, 10.0
POLL_SECONDS = 0.02
MISSING = missing("the search of an atlas", "DuckDB")


class SearchTooSlow(RuntimeError):
    """A search took longer than it may."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """Words and tags of queries and keys; None: any.

    Args:
        from_word, to_word: the word of the query and of the key, in any case.
        from_tag, to_tag: their parts of speech, of `headlight.model.atlas.tags.TAGS`.
        same_word: whether both are the same word at two places.
        attention, head: only this attention, by its path, or head.
        n_sentences: how many sentences to return.
    """

    from_word: str | None = None
    to_word: str | None = None
    from_tag: str | None = None
    to_tag: str | None = None
    same_word: bool = False
    head: int | None = None
    attention: str | None = None
    n_sentences: int = 10


def is_available() -> bool:
    """Return True if DuckDB is installed; it is not imported."""
    return importlib.util.find_spec("duckdb") is not None


def search(atlas: Atlas, question: Question, seconds: float = SECONDS) -> dict[str, Any]:
    """Search an atlas.

    Returns:
        ``heads``, the highest lift first: ``count`` weights fit, ``of`` those from such queries,
        and the ``lift``. They are ranked by every other sentence; ``held_out`` is the lift in the
        ones between. ``sentences`` of the first of them, as `places_of` has them.

    Raises:
        AtlasError: the atlas has no such attention or head, or a file is damaged.
        SearchTooSlow: it took longer than `seconds`.
        Cancelled: the caller has left.
        ImportError: DuckDB is not installed.
    """
    paths = attentions_of(atlas, question)
    with connected(atlas, seconds) as run:
        where, to, values = _conditions(question)
        files = [file for path in paths for file in atlas.files(EDGES, path)]
        rows = run(
            f"SELECT {_PATH}, head, count(*) FILTER ({to}), count(*), "  # noqa: S608
            f"count(*) FILTER ({to} AND {_HELD_OUT}), count(*) FILTER ({_HELD_OUT}) "
            f"FROM read_parquet($files, filename=true) e WHERE {where} GROUP BY 1, 2",
            {**values, "files": files},
        )
        bases = {
            key: _base(run, atlas, question, key)
            for key in dict.fromkeys(_sight(atlas, path) for path in paths)
        }
        found = []
        for path, head, count, of, n_held, of_held in rows:
            base = bases[_sight(atlas, path)]
            if count:
                ranked = _ranked(path, head, count, of, base)
                if of_held:
                    ranked["held_out"] = _ranked(path, head, n_held, of_held, base)["lift"]
                half = _ranked(path, head, count - n_held, max(of - of_held, 1), base)
                order = (half["lift"] is None, -(half["lift_low"] or 0), -ranked["count"])
                found.append((order, ranked))
        found.sort(key=lambda row: row[0])
        heads = [ranked for _, ranked in found]
        return {"heads": heads, "sentences": _places(run, atlas, question, heads)}


def attentions_of(atlas: Atlas, question: Question) -> list[str]:
    """Return the attentions that a question is about."""
    if question.attention is not None and question.attention not in atlas.attentions:
        known = ", ".join(atlas.attentions)
        raise AtlasError(f"the atlas has no attention {question.attention[:80]!r}; it has {known}")
    paths = [
        path
        for path, facts in atlas.attentions.items()
        if question.attention in {None, path}
        and (question.head is None or question.head < facts["n_heads"])
    ]
    if not paths:
        n_heads = max(facts["n_heads"] for facts in atlas.attentions.values())
        raise AtlasError(f"the atlas has no such head; its heads are 0 to {n_heads - 1}")
    return paths


_HELD_OUT = "sentence % 2 = 1"
_PATH = f"regexp_extract(filename, '[/\\\\]{EDGES}[/\\\\]([^/\\\\]+)[/\\\\][^/\\\\]+$', 1)"


def _conditions(question: Question) -> tuple[str, str, dict[str, Any]]:
    """Return the condition on the query, that on the key and the pair, and the bound values."""
    where, to, values = _named(question, "query_", "key_")
    if question.head is not None:
        where.append("head = $head")
        values["head"] = question.head
    if question.same_word:
        to.append("query_word = key_word AND query <> key")
    return " AND ".join(["true", *where]), " AND ".join(["true", *to]), values


def _named(question: Question, query: str, key: str) -> tuple[list[str], list[str], dict[str, Any]]:
    """Return the conditions on the words and tags of queries and keys, and the bound values.

    Args:
        question: names them.
        query: what the names of the columns of queries begin with.
        key: of keys.
    """
    values = {
        "query_word": question.from_word and question.from_word.lower(),
        "query_tag": question.from_tag,
        "key_word": question.to_word and question.to_word.lower(),
        "key_tag": question.to_tag,
    }
    values = {name: value for name, value in values.items() if value is not None}
    conditions = {
        side: [
            f"{prefix}{name.removeprefix(side)} = ${name}"
            for name in values
            if name.startswith(side)
        ]
        for side, prefix in (("query_", query), ("key_", key))
    }
    return conditions["query_"], conditions["key_"], values


def _sight(atlas: Atlas, path: str) -> tuple[Any, ...]:
    """Return what the visible pairs of an attention depend on."""
    facts = atlas.attentions[path]
    names = ("stack", "is_cross", "is_causal", "window", "chunk")
    return tuple(facts[name] for name in names)


def _base(
    run: Callable[..., list[Any]], atlas: Atlas, question: Question, sight: tuple[Any, ...]
) -> float | None:
    """Return the share of such pairs among all that such queries see; None: no such query."""
    stack, is_cross, is_causal, window, chunk = sight
    is_target = stack == "decoder" and bool(atlas.facts["has_target"])
    of_query, of_key, values = _named(question, "", "")
    query, to = ["side = $side AND is_typed", *of_query], ["is_typed", *of_key]
    values["side"] = int(is_target)
    files = _evenly(atlas.files(TOKENS), atlas.facts["tokens"])
    if is_cross:
        same = " AND k.word = q.word" if question.same_word else ""
        sql = f"""
            WITH t AS (SELECT * FROM read_parquet($files)),
            q AS (SELECT sentence, word FROM t WHERE {" AND ".join(query)}),
            k AS (SELECT sentence, {"word," if same else ""} count(*) AS n FROM t
                  WHERE side = 0 AND {" AND ".join(to)} GROUP BY ALL),
            v AS (SELECT sentence, count(*) AS n FROM t WHERE side = 0 AND is_typed GROUP BY ALL)
            SELECT coalesce(sum(k.n), 0), sum(v.n) FROM q JOIN v USING (sentence)
            LEFT JOIN k ON k.sentence = q.sentence{same}"""  # noqa: S608
    else:
        to.append("position > 0")
        is_key = " AND ".join(to)
        reach = window - 1 if window else None
        after = (
            "CURRENT ROW" if is_causal else _bound(None if reach is None else -reach, "FOLLOWING")
        )
        seen = f"RANGE BETWEEN {_bound(reach, 'PRECEDING')} AND {after}"
        part = "sentence" if not chunk else f"sentence, position // {int(chunk)}"
        itself = f"CAST({is_key} AS INT)" if question.same_word else "0"
        word = ", word" if question.same_word else ""
        words = f"PARTITION BY {part}{word} ORDER BY position {seen}"
        sql = f"""
            WITH t AS (SELECT * FROM read_parquet($files) WHERE side = $side),
            w AS (SELECT {" AND ".join(query)} AS is_query,
                count(*) FILTER ({is_key}) OVER ({words}) - {itself} AS hits,
                count(*) FILTER (is_typed AND position > 0)
                    OVER (PARTITION BY {part} ORDER BY position {seen}) AS visible FROM t)
            SELECT coalesce(sum(hits), 0), sum(visible) FROM w WHERE is_query"""  # noqa: S608
    ((hits, visible),) = run(sql, {**values, "files": files})
    return int(hits) / int(visible) if visible else None


def _bound(distance: int | None, side: str) -> str:
    """Return the end of a window, `distance` tokens before the query; None: the last on a side."""
    if distance is None:
        return f"UNBOUNDED {side}"
    return f"{abs(int(distance))} {'PRECEDING' if distance >= 0 else 'FOLLOWING'}"


def _evenly(files: list[str], n_tokens: int) -> list[str]:
    """Return files with about `BASE_TOKENS` tokens, evenly chosen."""
    n = max(1, min(len(files), len(files) * BASE_TOKENS // max(n_tokens, 1)))
    return [files[number * len(files) // n] for number in range(n)]


def _ranked(path: str, head: int, count: int, of: int, base: float | None) -> dict[str, Any]:
    share, (low, high) = count / of, wilson(count, of)
    lifts = [each / base if base and of >= LEAST_PLACES else None for each in (share, low, high)]
    return {
        "attention": path,
        "head": head,
        "count": count,
        "of": of,
        "share": share,
        "low": low,
        "high": high,
        "base": base,
        "held_out": None,
        **dict(zip(("lift", "lift_low", "lift_high"), lifts, strict=True)),
    }


def _places(
    run: Callable[..., list[Any]],
    atlas: Atlas,
    question: Question,
    ranked: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the strongest weights of the first heads, one of each sentence and head."""
    first = ranked[:5]
    if not first or question.n_sentences < 1:
        return []
    where, to, values = _conditions(question)
    paths = list(dict.fromkeys(row["attention"] for row in first))
    files = [file for path in paths for file in atlas.files(EDGES, path)]
    each = -(-question.n_sentences // len(first))
    heads = ", ".join(f"($path{n}, {int(row['head'])}, {n})" for n, row in enumerate(first))
    rows = run(
        f"""WITH h(path, head, rank) AS (VALUES {heads}),
        e AS (SELECT {_PATH} AS path, * FROM read_parquet($files, filename=true)
              WHERE {where} AND {to}),
        best AS (SELECT h.rank, e.* FROM e JOIN h ON e.path = h.path AND e.head = h.head
            QUALIFY row_number() OVER (PARTITION BY h.rank, e.sentence
                ORDER BY weight DESC, query, key) = 1),
        top AS (SELECT * FROM best
            QUALIFY row_number() OVER (PARTITION BY rank ORDER BY weight DESC, sentence) <= {each})
        SELECT path, head, weight, query, key, query_word, key_word, sentence FROM top
        ORDER BY rank, weight DESC, sentence""",  # noqa: S608
        {**values, "files": files, **{f"path{n}": row["attention"] for n, row in enumerate(first)}},
    )[: question.n_sentences]
    return places_of(run, atlas, rows)


def places_of(
    run: Callable[..., list[Any]], atlas: Atlas, rows: Sequence[tuple[Any, ...]]
) -> list[dict[str, Any]]:
    """Return weights with their sentences, and the characters of both words.

    The characters of a query, and of a key but in cross-attention, are those of the target, if
    there is one and the stack is the decoder.

    Args:
        run: of `connected`.
        atlas: of the rows.
        rows: path, head, weight, query, key, the words of both, and the number of the sentence; a
            weight of 0 has no words.
    """
    numbers = sorted({row[-1] for row in rows})
    texts = sentences_at(run, atlas, numbers)
    spans = spans_at(run, atlas, numbers)
    names = ("attention", "head", "weight", "query", "key", "query_word", "key_word")
    places = []
    for *row, number in rows:
        place = {**dict(zip(names, row, strict=True)), **texts[number]}
        for name, side in zip(("query", "key"), sides_of(atlas, row[0]), strict=True):
            place[f"{name}_span"] = spans[number, side, place[name]] if place["weight"] else []
        places.append({**place, "weight": place["weight"] / FULL_WEIGHT})
    return places


def sentences_at(
    run: Callable[..., list[Any]], atlas: Atlas, numbers: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """Return text, target, file and offset of sentences; only their shards are read."""
    rows = _of_sentences(run, atlas, SENTENCES, 'text, target, file, "offset"', numbers)
    names = atlas.facts["text"]
    return {
        number: {
            "text": text,
            "target": target,
            "file": names[file] if file < len(names) else "",
            "offset": offset,
        }
        for number, text, target, file, offset in rows
    }


def sides_of(atlas: Atlas, path: str) -> tuple[int, int]:
    """Return the sides of queries and keys of an attention: 0 the text, 1 the target."""
    facts = atlas.attentions[path]
    side = int(facts["stack"] == "decoder" and bool(atlas.facts["has_target"]))
    return side, 0 if facts["is_cross"] else side


def spans_at(
    run: Callable[..., list[Any]], atlas: Atlas, numbers: Sequence[int]
) -> dict[tuple[int, int, int], list[int]]:
    """Return the characters of the tokens of sentences, by sentence, side and position."""
    rows = _of_sentences(run, atlas, TOKENS, 'side, position, start, "end"', numbers)
    return {(number, side, place): [start, end] for number, side, place, start, end in rows}


def _of_sentences(
    run: Callable[..., list[Any]], atlas: Atlas, kind: str, columns: str, numbers: Sequence[int]
) -> list[Any]:
    """Return the rows of some sentences, from the files of their shards."""
    if not numbers:
        return []
    shards = [int(shard.partition("-")[0]) for shard in atlas.facts["shards"]]
    by_shard = dict(zip(shards, atlas.files(kind), strict=True))
    files = [by_shard[shard] for shard in sorted({number >> SHARD_BITS for number in numbers})]
    return run(
        f"SELECT sentence, {columns} FROM read_parquet($files) "  # noqa: S608
        "WHERE list_contains($numbers, sentence)",
        {"files": files, "numbers": list(numbers)},
    )


# --- the connection -------------------------------------------------------------------------------


@contextmanager
def connected(atlas: Atlas, seconds: float) -> Iterator[Callable[..., list[Any]]]:
    """Connect to DuckDB for the files of an atlas.

    Yields:
        A function that runs a query with bound values and returns all rows.

    Raises:
        AtlasError: a file is missing or damaged.
        SearchTooSlow, Cancelled, ImportError: as `search`.
    """
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(MISSING) from error
    connection = duckdb.connect(
        ":memory:",
        config={
            "threads": N_THREADS,
            "memory_limit": f"{MEMORY_BYTES >> 20}MB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": "",
        },
    )
    folder = str(atlas.folder).replace("'", "''")
    connection.execute(f"SET allowed_directories = ['{folder}']")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    should_stop, began = current_condition(), perf_counter()
    too_slow = SearchTooSlow(
        f"the search took longer than the {seconds:g} s that are allowed; ask for a word"
    )
    is_done, is_late, has_left = threading.Event(), threading.Event(), threading.Event()

    def watch() -> None:
        waited = 0.0
        while not is_done.wait(POLL_SECONDS):
            waited += POLL_SECONDS
            if should_stop is not None and should_stop():
                has_left.set()
            elif waited > seconds:
                is_late.set()
            if has_left.is_set() or is_late.is_set():
                connection.interrupt()

    def run(sql: str, values: Mapping[str, Any]) -> list[Any]:
        if perf_counter() - began > seconds:
            raise too_slow
        try:
            rows: list[Any] = connection.execute(sql, values).fetchall()
            return rows
        except duckdb.InterruptException:
            if has_left.is_set():
                raise Cancelled from None
            raise too_slow from None
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise AtlasError(f"{atlas.folder} cannot be searched: {first}") from error

    watcher = threading.Thread(target=watch, name="search", daemon=True)
    watcher.start()
    try:
        yield run
    finally:
        is_done.set()
        watcher.join()
        connection.close()
