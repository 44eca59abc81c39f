"""Rules over many texts: the evidence of what a chapter says about a model, not about one text.

A text with blanks stands for many, one for each combination of the words of its blanks:

    of: many
    text: "The {noun} near the {other}"
    words: {noun: [keys, dogs], other: [cabinet, river]}
    next: " were"
    number: right

`headlight chapter check` reads them in batches. All rules over the same texts, with the same heads
switched off, share a pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from headlight.chapters.outcomes import Opens, Outcome, number_of
from headlight.forms import Number, Request
from headlight.model.analysis.score_attribution import Cell, read_for, score_parts
from headlight.model.arithmetic import split
from headlight.model.corpus import read_pairs
from headlight.model.profiles.folder import ENGLISH_FRENCH
from headlight.model.served import Served
from headlight.model.trace import Trace
from headlight.model.tracing import group_by_length, pass_spec, run_batch, tokenize
from headlight.schemas.traces import ModelId, TraceRequest

LEAST_TEXTS, MOST_TEXTS, MOST_COMBINED = 50, 500, 20_000
Measured = Literal[
    "right",
    "probability",
    "ahead",
    "surprise",
    "weight",
    "reads",
    "previous",
    "start",
    "fed",
    "expert",
    "reward",
]
OF_HEAD = ("weight", "reads", "previous", "start", "fed")
ROWS_FROM = 3
"""Rows before it have so few keys that any head reads the one before, or the first."""


class Many(Request):
    """A number over many texts: a mean, or the share of the texts in which something holds.

    right: every token of `next` is the likeliest. probability: that of `next`. ahead: `next` is
    likelier than `than`. surprise: bits a token. weight: of a cell. reads: the cell is the greatest
    of its row. fed: the share of its lead, on the key side, that `part` gives. previous, start: the
    weight on the token before, on the first one, as a mean over rows. expert: a token is sent to it
    first. reward: of a reward model.
    """

    of: Literal["many"]
    number: Measured = Field(description="What is measured, in each text.")
    texts: str | None = Field(None, description="A set of the front matter, for what is omitted.")
    text: str = Field("", description="With blanks in braces, as in The {noun} near the {other}.")
    next: str = Field("", description="What follows; it may have the blanks, too.")
    than: str = Field("", description="`ahead`: what might follow, in place of `next`.")
    words: dict[str, str | list[str]] = Field(
        {}, description="The words of each blank: a list, or a text of words."
    )
    rows: Literal["problems", "sentences"] | None = Field(
        None,
        description="More blanks, by row. problems: held-out products, with a, b, tens and ones "
        "of b, the products first and second, their sum, and both with one too many, wrong and "
        "wrong_sum. sentences: short English ones, as sentence, and in small letters as lower.",
    )
    n_texts: Number = Field(100, ge=LEAST_TEXTS, le=MOST_TEXTS, description="At most so many.")
    model: ModelId | None = None
    off: list[dict[str, Any]] = Field(
        [], description="Heads to switch off: {layer: 1, heads: [0]}."
    )
    bits: Number | None = Field(None, description="Weights are rounded to so many bits.")
    cut: list[str] = Field([], description="Edges to cut, as in [0.1→1.1.k].")
    part: str = Field("", description="`fed`: an earlier part, as 0.1.")
    layer: Number | None = None
    expert: Number | None = Field(None, description="`expert`: the one that the row is sent to.")
    head: Number | None = None
    query: str | Number | None = Field(
        None, description="The row: a part of the text; -: the last."
    )
    key: str | Number | None = Field(None, description="The column: a part of the text.")

    @model_validator(mode="after")
    def _is_complete(self) -> Many:
        if self.texts is not None:
            return self
        if not self.text:
            raise ValueError("many needs a text, or texts, a set of the front matter")
        if self.number in ("right", "probability", "ahead") and not self.next:
            raise ValueError(f"{self.number} needs `next`, what follows")
        if self.number == "ahead" and not self.than:
            raise ValueError("ahead needs `than`, what might follow in its place")
        if self.number in OF_HEAD and None in (self.layer, self.head):
            raise ValueError(f"{self.number} is one of a head; give its layer and its head")
        if self.number in ("weight", "reads", "fed") and self.key is None:
            raise ValueError(f"{self.number} needs a key, the column that is read")
        if len(self.blanks) < LEAST_TEXTS:
            raise ValueError(
                f"a claim about a model needs {LEAST_TEXTS} texts; the blanks give "
                f"{len(self.blanks)}"
            )
        return self

    def within(self, sets: Mapping[str, Mapping[str, Any]]) -> Many:
        """Return the rule with what it omits taken from its set of texts.

        Raises:
            ValueError: there is no such set, or something is still missing.
        """
        if self.texts is None:
            return self
        if self.texts not in sets:
            raise ValueError(f"there are no texts {self.texts!r}; there are {', '.join(sets)}")
        given = self.model_dump(exclude_unset=True, exclude={"texts"})
        return Many(**{**sets[self.texts], **given})

    @property
    def blanks(self) -> list[dict[str, str]]:
        """The words of the blanks, by text: all combinations, or as many of them, drawn once."""
        rows = _ROWS[self.rows]() if self.rows else ({},)
        lists = [each.split() if isinstance(each, str) else each for each in self.words.values()]
        if (n_texts := len(rows) * prod(map(len, lists))) > MOST_COMBINED:
            raise ValueError(f"the blanks give {n_texts:,} texts; at most {MOST_COMBINED:,}")
        combined = [
            {**row, **dict(zip(self.words, words, strict=True))}
            for row in rows
            for words in product(*lists)
        ]
        combined = [row for row in combined if len({*row.values()}) == len(row) or self.rows]
        if len(combined) <= self.n_texts:
            return combined
        return random.Random(0).sample(combined, self.n_texts)

    def measured(self, opens: Opens, passes: Passes) -> Outcome:
        """Return the mean of the number over the texts.

        Raises:
            ValueError: a blank has no words, or a text lacks the query or the key.
        """
        numbers = self._of_head if self.number in OF_HEAD else self._of_text
        return number_of(float(np.mean(list(numbers(self.model or opens.model, passes)))))

    def _of_text(self, model: str | None, passes: Passes) -> list[float]:
        texts = self._filled(self.text)
        if self.number == "surprise":
            traces = passes.read(model, texts, self._edits, "logits")
            return [-np.log2(_bet(trace, 0)[0]) / (len(trace.tokens) - 1) for trace in traces]
        if self.number == "expert":
            site = f"*.layers.{self.layer}.experts.router_probs"
            traces = passes.read(model, texts, self._edits, site)
            return [self._is_sent(text, trace) for text, trace in zip(texts, traces, strict=True)]
        if self.number == "reward":
            traces = passes.read(model, texts, self._edits, "reward")
            return [float(trace.tensors["reward"].data[-1]) for trace in traces]
        bets = [
            [
                _bet(trace, len(text))
                for text, trace in zip(texts, self._after(model, passes, end), strict=True)
            ]
            for end in (self.next, self.than)
            if end
        ]
        if self.number == "right":
            return [float(is_likeliest) for _, is_likeliest in bets[0]]
        if self.number == "probability":
            return [probability for probability, _ in bets[0]]
        return [float(first > second) for (first, _), (second, _) in zip(*bets, strict=True)]

    def _after(self, model: str | None, passes: Passes, end: str) -> list[Trace]:
        return passes.read(model, self._filled(self.text + end), self._edits, "logits")

    def _of_head(self, model: str | None, passes: Passes) -> Iterator[float]:
        texts = self._filled(self.text)
        site = f"*.layers.{self.layer}.self_attention.weights"
        traces = passes.read(model, texts, self._edits, site)
        places = [
            self._filled(at) if isinstance(at, str) else [at] * len(texts)
            for at in (self.query, self.key)
        ]
        for text, trace, query, key in zip(texts, traces, *places, strict=True):
            (array,) = trace.tensors.values()
            weights = array.data[self.head]
            if self.number in ("previous", "start"):
                rows = np.arange(ROWS_FROM, len(weights))
                yield float(weights[rows, rows - 1 if self.number == "previous" else 0].mean())
                continue
            query = len(weights) - 1 if query is None else _token_at(trace, text, query)
            row = weights[query]
            column = _token_at(trace, text, key)
            if self.number == "fed":
                yield self._share(passes.loaded(model), trace, query, column)
                continue
            yield float(row.argmax() == column) if self.number == "reads" else float(row[column])

    def _share(self, served: Served, trace: Trace, query: int, key: int) -> float:
        (site,) = trace.tensors
        path = site.removesuffix(".weights")
        assert self.head is not None
        cell = Cell(path=path, head=self.head, query=query, key=key)
        parts = score_parts(served, read_for(served, trace, path, query), cell)
        names = [part.name for part in parts.key_parts]
        if self.part not in names:
            raise ValueError(f"there is no part {self.part!r}; the last is {names[-2]}")
        return float(parts.key_side[names.index(self.part)] / parts.score)

    def _is_sent(self, text: str, trace: Trace) -> float:
        (array,) = trace.tensors.values()
        row = array.data[-1 if self.query is None else _token_at(trace, text, self.query)]
        return float(row.argmax() == self.expert)

    @property
    def _edits(self) -> list[dict[str, Any]]:
        rounded = [] if self.bits is None else [{"kind": "quantize", "bits": self.bits}]
        cut = [{"kind": "cut", "edges": self.cut}] if self.cut else []
        return [*cut, *({"kind": "heads_off", **heads} for heads in self.off), *rounded]

    def _filled(self, template: str) -> list[str]:
        try:
            return [template.format(**blanks) for blanks in self.blanks]
        except (LookupError, ValueError) as error:
            raise ValueError(f"{template!r}: the blank {error} has no words") from error


class Passes:
    """Reads many texts with the models of a registry; texts that were read stay."""

    def __init__(self, loaded: Callable[[str | None], Served]) -> None:
        self.loaded = loaded
        self._traces: dict[tuple[object, ...], list[Trace]] = {}

    def read(
        self, model: str | None, texts: Sequence[str], edits: list[dict[str, Any]], site: str
    ) -> list[Trace]:
        """Return the traces of texts, with the arrays of a site.

        Raises:
            ValueError: the model lacks the site or a head, or cannot read a text.
        """
        key = (model, tuple(texts), str(edits), site)
        if key not in self._traces:
            served = self.loaded(model)
            request = TraceRequest.model_validate({"text": texts[0], "edits": edits or None})
            edited = [edit.intervention() for edit in request.edits or ()]
            interventions = [each.with_model(served) for each in edited]
            spec = pass_spec(served.description, capture=[site], interventions=interventions)
            inputs = [tokenize(served, text) for text in texts]
            read: dict[int, Trace] = {}
            for group in group_by_length([each.n_tokens for each in inputs]):
                traces = run_batch(served, spec, [inputs[at] for at in group])
                read |= dict(zip(group, traces, strict=True))
            self._traces[key] = [read[at] for at in range(len(texts))]
        return self._traces[key]


def _bet(trace: Trace, n_characters: int) -> tuple[float, bool]:
    """Return the probability of what follows so many characters, and whether each token leads."""
    begin = next(at for at, token in enumerate(trace.tokens) if token.end > n_characters)
    ids = [token.id for token in trace.tokens[begin:]]
    logits = trace.tensors["logits"].data[begin - 1 : -1].astype(np.float64)
    log = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    is_likeliest = bool((logits.argmax(-1) == ids).all())
    return float(np.exp(log[np.arange(len(ids)), ids].sum())), is_likeliest


def _token_at(trace: Trace, text: str, part: str | int) -> int:
    """Return the token of a number, or the last one of a part of the text, where it is first."""
    if isinstance(part, int):
        return part
    end = text.find(part) + len(part)
    if end < len(part):
        raise ValueError(f"the text {text!r} has no {part!r}")
    return next(at for at, token in enumerate(trace.tokens) if token.end >= end)


@cache
def _sentences() -> tuple[dict[str, str], ...]:
    texts = [
        pair.source
        for pair in read_pairs([ENGLISH_FRENCH], source_field="english", target_field="french")
    ]
    return tuple({"sentence": text, "lower": text.lower()} for text in texts)


@cache
def _problems() -> tuple[dict[str, str], ...]:
    """Return the blanks of the held-out products whose second number has two parts."""
    return tuple(
        dict(
            zip(
                ("a", "b", "tens", "ones", "first", "second", "sum", "wrong", "wrong_sum"),
                map(
                    str,
                    (
                        each.first,
                        each.second,
                        *each.parts,
                        *each.products,
                        each.answer,
                        each.products[1] + 1,
                        each.answer + 1,
                    ),
                ),
                strict=True,
            )
        )
        for each in split().test
        if len(each.parts) == 2 and all(each.parts)
    )


_ROWS: dict[str, Callable[[], tuple[dict[str, str], ...]]] = {
    "problems": _problems,
    "sentences": _sentences,
}
