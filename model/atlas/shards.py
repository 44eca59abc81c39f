"""Read one range of a corpus: the sums of every head, and all strong weights, into files.

A shard's files are written under other names, flushed and renamed; the last is its JSON. So a shard
whose JSON exists is done, and one that was interrupted is read again and counts once.
"""

from __future__ import annotations

import gc
import heapq
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import orjson
import torch
from jaxtyping import Bool
from torch import Tensor

from headlight.model.atlas import layout
from headlight.model.atlas.ranges import Range, Sentence, sentences_in
from headlight.model.atlas.tags import TAGS, Tagger, english, french
from headlight.model.profiles.ablation import passes
from headlight.model.profiles.measure import as_sentence, longest_sentence
from headlight.model.profiles.sums import Reader, Sight, Tokens, span
from headlight.model.served import Served
from headlight.model.trace import Token
from headlight.model.tracing import ModelInput

AT_ONCE = 2_000
"""Sentences that are sorted by length together; more would cost memory and save no padding."""

ROW_GROUP = 100_000

TAG_CODES = {tag: code for code, tag in enumerate(TAGS)}


@dataclass(frozen=True)
class Settings:
    """The choices that decide the content of an atlas, next to model and text.

    Args:
        threshold: the least weight that is kept.
        n_sample: sentences that the cost of heads is measured on.
        tagger: the name of the rules: ``english``, or ``none``.
    """

    threshold: float = 0.2
    n_sample: int = 1000
    tagger: str = "english"

    def named(self, checkpoint: Served) -> str:
        """Return a name of these settings and the model's revision, for a hash."""
        values = {**asdict(self), "revision": checkpoint.description.revision}
        return orjson.dumps([layout.FORMAT, checkpoint.precision, values]).decode()


def write_shard(checkpoint: Served, part: Range, settings: Settings, out: Path) -> dict[str, Any]:
    """Read a range and write its shard.

    Returns:
        Its JSON: the sums and counts.

    Raises:
        CorpusError: the text is damaged.
        OSError: a file cannot be written.
    """
    began = perf_counter()
    shard = _Shard(checkpoint, part, settings)
    sentences = sentences_in(part, is_paired=checkpoint.config.kind == "encoder-decoder")
    gc.freeze()  # else each collection visits the whole model: a tenth of the time
    try:
        while some := list(islice(sentences, AT_ONCE)):
            shard.read(some)
    finally:
        gc.unfreeze()
    name = part.key(settings.named(checkpoint))
    for kind, table in shard.tables().items():
        write(out / kind / f"{name}.parquet", partial(_write_parquet, table))
    result = shard.result() | {"seconds": perf_counter() - began}
    content = orjson.dumps(result)
    write(out / layout.SHARDS / f"{name}.json", lambda path: path.write_bytes(content))
    return result


def write(path: Path, fill: Callable[[Path], object]) -> None:
    """Write a file under another name, flush it to the disk, and rename it.

    Raises:
        OSError: it cannot be written; it names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        fill(partial)
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno or 0, error.strerror or str(error), str(path)) from error
    finally:
        partial.unlink(missing_ok=True)


def _write_parquet(table: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd", row_group_size=ROW_GROUP)


class _Side:
    """The tokens of all sentences of a shard on one side, as flat columns.

    The arrays that the tables of all attentions take their columns from are made once, when every
    sentence is read.
    """

    def __init__(self) -> None:
        self.sentence: list[int] = []
        self.position: list[int] = []
        self.ids: list[int] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.is_typed: list[bool] = []
        self.spans: list[list[int]] = []
        self.first: dict[int, int] = {}

    def add(self, number: int, text: str, tokens: Sequence[Token], tagger: Tagger) -> None:
        self.first[number] = len(self.ids)
        words, tags = words_and_tags(text, tokens, tagger)
        self.sentence += [number] * len(tokens)
        self.position += range(len(tokens))
        self.ids += [token.id for token in tokens]
        self.is_typed += [token.is_typed for token in tokens]
        self.spans += [span(token) for token in tokens]
        self.words += words
        self.tags += tags

    def starts(self, n_sentences: int) -> np.ndarray[Any, Any]:
        """Return the index of the first token of each sentence, 0 if it has none on this side."""
        return np.array([self.first.get(number, 0) for number in range(n_sentences)] or [0])

    @cached_property
    def id_array(self) -> np.ndarray[Any, Any]:
        return np.array(self.ids or [0], dtype=np.int32)

    @cached_property
    def tag_codes(self) -> np.ndarray[Any, Any]:
        return np.array([TAG_CODES[tag] for tag in self.tags] or [0], dtype=np.int8)

    @cached_property
    def vocabulary(self) -> tuple[list[str], np.ndarray[Any, Any]]:
        """Return the distinct words in their order, and the index of each token's word."""
        words = sorted(set(self.words)) or [""]
        code_of = {word: code for code, word in enumerate(words)}
        return words, np.array([code_of[word] for word in self.words] or [0], dtype=np.int32)


def words_and_tags(
    text: str, tokens: Sequence[Token], tagger: Tagger
) -> tuple[list[str], list[str]]:
    """Return for each token the word that it belongs to, in small letters, and the word's tag."""
    spans: dict[int, list[int]] = {}
    for token in tokens:
        if token.word is not None:
            of_word = spans.setdefault(token.word, [token.start, token.end])
            of_word[1] = token.end
    written = {number: _bare(text[start:end]) for number, (start, end) in spans.items()}
    tag_of = dict(zip(written, tagger(list(written.values())), strict=True))
    words = [
        written[token.word].lower() if token.word is not None else token.text.strip()
        for token in tokens
    ]
    return words, [tag_of[token.word] if token.word is not None else "X" for token in tokens]


def _bare(word: str) -> str:
    """Return a word without the spaces and marks around it; marks only are kept."""
    word = word.strip()
    start, end = 0, len(word)
    while start < end and not word[start].isalnum():
        start += 1
    while end > start and not word[end - 1].isalnum():
        end -= 1
    return word[start:end] or word


class _Shard:
    def __init__(self, checkpoint: Served, part: Range, settings: Settings) -> None:
        self.checkpoint = checkpoint
        self.part = part
        self.settings = settings
        self.limit = longest_sentence(checkpoint)
        self.reader = Reader(checkpoint)
        self.edges: dict[str, list[Any]] = {path: [] for path in self.reader.facts}
        self.sides = {"source": _Side(), "target": _Side()}
        self.sentences: list[tuple[Sentence, str, str]] = []
        self.n_left_out = self.n_tokens = 0
        self.sample: list[tuple[str, int]] = []
        is_english = settings.tagger == "english"
        self.taggers = {
            "source": english if is_english else _untagged,
            "target": french if is_english else _untagged,
        }

    def read(self, some: Sequence[Sentence]) -> None:
        """Read sentences."""
        inputs: list[ModelInput] = []
        for sentence in some:
            model_input = as_sentence(self.checkpoint, sentence.source, sentence.target, self.limit)
            if model_input is None:
                self.n_left_out += bool(sentence.source.strip())
                continue
            self._note(sentence, model_input)
            inputs.append(model_input)
        first = len(self.sentences) - len(inputs)
        for numbers in passes(inputs):
            batch = [inputs[number] for number in numbers]
            at = np.array(numbers) + first
            orders = [[self.part.number, int(number)] for number in at]
            for facts, queries, keys, weights in self.reader.read(batch, orders):
                is_edge = edge_mask(Sight.of(facts), queries, keys)
                strong = (weights >= self.settings.threshold) & is_edge[:, None]
                row, *places = (column.numpy() for column in strong.nonzero().T)
                self.edges[facts.path].append((at[row], *places, weights[strong].numpy()))

    def _note(self, sentence: Sentence, model_input: ModelInput) -> None:
        number = len(self.sentences)
        text, target = model_input.text, model_input.target or ""
        self.sentences.append((sentence, text, target))
        self.sides["source"].add(number, text, model_input.tokens, self.taggers["source"])
        if model_input.target_tokens is not None:
            tokens = model_input.target_tokens
            self.sides["target"].add(number, target, tokens, self.taggers["target"])
        self.n_tokens += model_input.n_tokens
        place = f"{Path(self.part.path).name}\n{sentence.offset}\n{text}\n{target}"
        self.sample.append((sha256(place.encode()).hexdigest()[:24], number))
        if len(self.sample) > 4 * self.settings.n_sample:
            self.sample = heapq.nsmallest(self.settings.n_sample, self.sample)

    def result(self) -> dict[str, Any]:
        """Return the shard's JSON."""
        sums = {path: of_path.to_dict() for path, of_path in self.reader.sums.items()}
        sample = heapq.nsmallest(self.settings.n_sample, self.sample)
        shown = {
            place["order"][1]
            for of_path in sums.values()
            for places in of_path["strongest"]
            for _, _, place in places
        }
        texts = {number: self.sentences[number][1:] for number in shown}
        return {
            "number": self.part.number,
            "sentences": len(self.sentences),
            "left_out": self.n_left_out,
            "tokens": self.n_tokens,
            "edges": {
                path: sum(len(part[0]) for part in of_path) for path, of_path in self.edges.items()
            },
            "sums": sums,
            "texts": {str(number): list(both) for number, both in texts.items()},
            "sample": [
                [digest, number, *self.sentences[number][1:]] for digest, number in sorted(sample)
            ],
        }

    # --- tables ---

    def tables(self) -> Mapping[str, Any]:
        """Return the shard's tables by their folder."""
        by_attention = {
            f"{layout.EDGES}/{path}": self._edges_of(path, edges)
            for path, edges in self.edges.items()
        }
        return {
            layout.SENTENCES: self._sentence_table(),
            layout.TOKENS: self._token_table(),
            **by_attention,
        }

    def _global(self, numbers: Any) -> np.ndarray[Any, Any]:
        return (self.part.number << layout.SHARD_BITS) + np.asarray(numbers, dtype=np.int64)

    def _sentence_table(self) -> Any:
        import pyarrow as pa

        return pa.table(
            {
                "sentence": self._global(range(len(self.sentences))),
                "text": pa.array([text for _, text, _ in self.sentences], pa.string()),
                "target": pa.array([target for _, _, target in self.sentences], pa.string()),
                "file": pa.array([self.part.file] * len(self.sentences), pa.int32()),
                "offset": pa.array([place.offset for place, _, _ in self.sentences], pa.int64()),
            }
        )

    def _token_table(self) -> Any:
        import pyarrow as pa

        tables = []
        for number, side in enumerate(self.sides.values()):
            tables.append(
                pa.table(
                    {
                        "sentence": self._global(side.sentence),
                        "side": pa.array([number] * len(side.ids), pa.int8()),
                        "position": pa.array(side.position, pa.int16()),
                        "id": pa.array(side.ids, pa.int32()),
                        "word": pa.array(side.words, pa.string()),
                        "tag": pa.array(side.tags, pa.string()),
                        "is_typed": pa.array(side.is_typed, pa.bool_()),
                        "start": pa.array([start for start, _ in side.spans], pa.int32()),
                        "end": pa.array([end for _, end in side.spans], pa.int32()),
                    }
                )
            )
        return pa.concat_tables(tables)

    def _edges_of(self, path: str, edges: Sequence[Any]) -> Any:
        import pyarrow as pa

        nothing = [(np.zeros(0, dtype=np.int64),) * 4 + (np.zeros(0),)]
        columns_of = zip(*(edges or nothing), strict=True)
        numbers, head, query, key, weight = (np.concatenate(column) for column in columns_of)
        sight = Sight.of(self.reader.facts[path])
        has_target = bool(self.sides["target"].ids)
        on_target = has_target and sight.stack == "decoder"
        queries = self.sides["target" if on_target else "source"]
        keys = self.sides["target" if on_target and not sight.is_cross else "source"]
        columns: dict[str, Any] = {"head": head.astype(np.int16)}
        words: np.ndarray[Any, Any] = np.zeros(0)
        for name, side, place in (("query", queries, query), ("key", keys, key)):
            flat = side.starts(len(self.sentences))[numbers] + place
            columns[name] = place.astype(np.int16)
            columns[f"{name}_id"] = side.id_array[flat]
            vocabulary, codes = side.vocabulary
            words = codes[flat]
            columns[f"{name}_word"] = pa.DictionaryArray.from_arrays(
                words, pa.array(vocabulary, pa.string())
            )
            columns[f"{name}_tag"] = pa.DictionaryArray.from_arrays(
                side.tag_codes[flat], pa.array(TAGS, pa.string())
            )
        columns["weight"] = np.rint(weight * layout.FULL_WEIGHT).astype(np.uint16)
        columns["sentence"] = self._global(numbers)
        order = np.lexsort((query, numbers, head, words))
        return pa.table(columns).take(pa.array(order))


def _untagged(words: Sequence[str]) -> list[str]:
    return ["X"] * len(words)


def edge_mask(sight: Sight, queries: Tokens, keys: Tokens) -> Bool[Tensor, "row query key"]:
    """Return True for the weights that an atlas keeps if they are strong enough.

    Both tokens spell something of the text, and a self-attention does not rest: its key is not the
    first token, where heads without anything to do put their weight. Xiao et al. 2023,
    https://arxiv.org/abs/2309.17453.
    """
    is_key = keys.is_token & keys.is_typed
    if not sight.is_cross:
        is_key = is_key & (torch.arange(keys.ids.shape[1]) > 0)
    is_query = queries.is_token & queries.is_typed
    return sight.visible(queries, keys) & is_query[:, :, None] & is_key[:, None, :]
