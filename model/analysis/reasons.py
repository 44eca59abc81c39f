"""Reasons of a prediction: the parts that write to it, each taken away in a pass of its own.

The share of a head or a network in a logit is exact (`logit_attribution`), but it is no cause:
another part may stand in for it. So each part that could matter is set to zero at every position,
and the prediction is read again. Zero ablation of single heads: Michel et al. 2019,
https://arxiv.org/abs/1905.10650; parts that stand in: McGrath et al. 2023,
https://arxiv.org/abs/2307.15771.

The token is explained against a rival. Unless one is given, it is the word that shows most: another
word of the text that fits here as well, or the token that gains most without the head that
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headlight.model.analysis.edited_passes import EditedPasses
from headlight.model.analysis.layers import ATTENTIONS
from headlight.model.analysis.logit_attribution import (
    FEED_FORWARDS,
    Attribution,
    ExitOf,
    LogitDifference,
    Vector,
)
from headlight.model.analysis.next_token import probabilities_of
from headlight.model.interventions.site_edit import SiteEdit
from headlight.model.served import LinearExit
from headlight.model.trace import NamedArray, Trace

ALL_PARTS, ALL_PARTS_OF_LABELS = 64, 1024
"""A model with as many parts has each taken away; of a larger one the strongest are tried."""
MOST_HEADS, MOST_NETWORKS = 8, 2
"""The parts of a larger model that are tried: those that add most to a difference of logits."""
RIVALS = 3
"""The likeliest other tokens to which the parts of a larger model are compared for that."""
MEAN_TOKENS = 128
"""The tokens, evenly spaced in the vocabulary, whose mean logit is the zero of `adds`: within .05
logits of the mean of all on `stories`. A model of Transformers needs a gradient for each."""
LISTED = 10
"""The likeliest tokens among which another word of the text can be the rival."""
LEAST_LIKELY = 0.01
"""The least probability of such a word."""
LEAST_LOST = 0.05
"""The share of its probability that the token loses at least without the head that decides."""
DIRECT = 0.25
"""The least that the deciding head adds itself, as a share of the most that a head adds. One that
adds less may matter only by what later heads read of it, so what it reads here is no reason."""

_LEAST = 1e-12

Rule = Literal["given", "text", "gains", "likeliest"]
RULES: tuple[Rule, ...] = ("text", "gains", "likeliest")
Attribute = Callable[[ExitOf, LogitDifference], Attribution]


@dataclass(frozen=True)
class Part:
    """A head, or a network, and the prediction without it.

    ``adds``: what it adds to the logits of the token and of the rival, over the mean of the
    vocabulary; None: the logits of this model are no sum over its parts. ``key``: of the token from
    which the head adds most of its difference, or the one with its largest weight.
    ``probabilities``: of the token and of the rival. ``top``: the likeliest token, and its
    probability.
    """

    site: str
    layer: int
    head: int | None
    adds: tuple[float, float] | None = None
    key: int | None = None
    weight: float | None = None
    probabilities: tuple[float, float] = (0.0, 0.0)
    top: tuple[int, float] = (0, 0.0)

    @property
    def edit(self) -> SiteEdit:
        """The edit that takes the part away, at every position."""
        heads = None if self.head is None else (self.head,)
        return SiteEdit(kind="set", site=self.site, value=0.0, heads=heads)


@dataclass(frozen=True)
class Reasons:
    """The parts that were taken away, the strongest first, against a rival chosen by a rule.

    ``probabilities``: of the token and of the rival in the pass itself. ``decisive``: the index of
    the head that decides; None: no head does. ``arrays``: of the attribution, by which the map of
    all heads is drawn; empty if there is none.
    """

    difference: LogitDifference
    rule: Rule
    probabilities: tuple[float, float]
    parts: tuple[Part, ...]
    decisive: int | None
    arrays: Mapping[str, NamedArray] = field(default_factory=dict)
    omitted: Mapping[str, str] = field(default_factory=dict)


def find_reasons(
    passes: EditedPasses,
    difference: LogitDifference,
    attribute: Attribute | None,
    *,
    is_given: bool,
) -> Reasons:
    """Take parts of a model away one by one, and order them by what the token loses.

    Args:
        passes: over the text of a trace with the logits, the contexts of heads and the outputs of
            networks.
        difference: the position, the token, and the rival or, if none is given, any other token.
        attribute: splits a difference of logits; None: the model's logits are no sum of its parts.
        is_given: the rival was chosen by the reader.

    Raises:
        ValueError: no split of the logits says which of very many parts to try.
        TooManyPasses, Cancelled: as `EditedPasses.predict`.
    """
    trace, model = passes.trace, passes.checkpoint
    parts = list(parts_of(trace))
    if len(parts) > (ALL_PARTS_OF_LABELS if model.description.labels else ALL_PARTS):
        if attribute is None:
            raise ValueError(
                f"this model has {len(parts)} heads and networks, and its logits are no sum over "
                "them that would say which to take away; switch heads off by hand"
            )
        parts = _strongest(parts, trace, model.linear_exit, attribute, difference)
    without = _read(passes, parts, difference.position)
    is_independent = model.description.predicts == "labels"
    logits = trace["logits"][difference.position].astype(np.float64)
    own = probabilities_of(logits) if is_independent else _softmax(logits)
    lost = lost_without(own, without, np.array([difference.token]))
    lifts = attribute and lifts_of(attribute, model.linear_exit, difference, len(own))
    is_head = np.array([part.head is not None for part in parts])
    decisive = decisive_row(lost, is_head, _values(parts, lifts))
    rule: Rule = "given"
    if not is_given:
        likely, fits = _other_words(passes, own, difference)
        number, rival = choose_rival(
            own, without, np.array([difference.token]), decisive, likely, fits
        )
        rule, difference = RULES[int(number)], replace(difference, against=int(rival[0]))
    split = attribute and attribute(model.linear_exit, difference)
    if rule != "gains":
        decisive = decisive_row(lost, is_head, _values(parts, split.arrays if split else None))
    order = np.argsort(-lost, kind="stable").tolist()
    tokens = [difference.token, difference.against]
    return Reasons(
        difference,
        rule,
        _pair(own[tokens]),
        tuple(_without(parts[row], without[row], difference, trace, lifts, split) for row in order),
        None if decisive[0] < 0 else order.index(int(decisive[0])),
        split.arrays if split else {},
        split.omitted if split else {},
    )


def _without(
    part: Part,
    after: Float[np.ndarray, " vocab"],
    difference: LogitDifference,
    trace: Trace,
    lifts: Mapping[str, NamedArray] | None,
    split: Attribution | None,
) -> Part:
    """Return a part with what it adds and reads, and with the prediction without it."""
    key, weight = _read_key(part, trace, split, difference.position)
    lift = None if lifts is None else _value(part, lifts)
    top = int(after.argmax())
    return replace(
        part,
        adds=None if lift is None or split is None else (lift, lift - _value(part, split.arrays)),
        key=key,
        weight=weight,
        probabilities=_pair(after[[difference.token, difference.against]]),
        top=(top, float(after[top])),
    )


def lost_without(
    own: Float[np.ndarray, " vocab"],
    without: Float[np.ndarray, "part vocab"],
    token: Int[np.ndarray, " 1"],
) -> Float[np.ndarray, " part"]:
    """Return the share of its probability that a token loses without each part."""
    return np.asarray(1 - without[:, token][:, 0] / np.maximum(own[token], _LEAST))


def decisive_row(
    lost: Float[np.ndarray, " part"],
    is_head: Bool[np.ndarray, " part"],
    adds: Float[np.ndarray, " part"] | None,
) -> Int[np.ndarray, " 1"]:
    """Return the row of the head that decides, of those that add much to the token; −1: none does.

    ``lost`` is the share of its probability that the token loses without each part.
    """
    if adds is not None:
        most = np.where(is_head, adds, 0.0).max(-1)
        is_head = is_head & (adds > 0) & (adds >= DIRECT * most)
    losses = np.where(is_head, lost, -np.inf)
    return np.where(losses.max(-1) >= LEAST_LOST, losses.argmax(-1), -1).reshape(1)


def choose_rival(
    own: Float[np.ndarray, " vocab"],
    without: Float[np.ndarray, "part vocab"],
    token: Int[np.ndarray, " 1"],
    decisive: Int[np.ndarray, " 1"],
    likely: Int[np.ndarray, " rank"],
    fits: Bool[np.ndarray, " rank"],
) -> tuple[Int[np.ndarray, ""], Int[np.ndarray, " 1"]]:
    """Return the number of the rule, in `RULES`, and the rival that it gives.

    ``own`` and ``without`` each part are probabilities, ``decisive`` is of `decisive_row`, and
    ``fits`` tells which of the ``likely`` ids are other words of the text that fit here.
    """
    is_likely = (fits & (own[likely] >= LEAST_LIKELY)).astype(np.int64)
    has_head = decisive >= 0
    gains = np.where(has_head, without[np.maximum(decisive, 0)][0] - own, own)
    gains = np.where(np.arange(len(own)) == token, -np.inf, gains)
    rule = np.where(is_likely.max(-1) > 0, 0, np.where(has_head[0], 1, 2))
    best = likely[is_likely.argmax(-1).reshape(1)]
    return rule, np.where(rule == 0, best, gains.argmax(-1))


def parts_of(trace: Trace) -> Iterator[Part]:
    """Yield the heads and the networks of the stack that predicts."""
    stack = min(name for name in trace if name.endswith(".context")).partition(".")[0]
    for name in sorted(trace):
        _, _, path = name.partition(f"{stack}.layers.")
        layer, _, ending = path.partition(".")
        if ending in [f"{kind}.context" for kind in ATTENTIONS]:
            for head in range(len(trace[name])):
                yield Part(name, int(layer), head)
        elif ending in [f"{kind}.output" for kind in FEED_FORWARDS]:
            yield Part(name, int(layer), None)


def _strongest(
    parts: Sequence[Part],
    trace: Trace,
    exit_of: ExitOf,
    attribute: Attribute,
    difference: LogitDifference,
) -> list[Part]:
    """Return the parts that add most to the difference from any of the likeliest other tokens."""
    order = np.argsort(-trace["logits"][difference.position].astype(np.float64), kind="stable")
    others = [int(token) for token in order[: RIVALS + 1] if token != difference.token][:RIVALS]
    sizes = np.zeros(len(parts))
    for rival in dict.fromkeys([difference.against, *others]):
        arrays = attribute(exit_of, replace(difference, against=rival)).arrays
        sizes = np.maximum(sizes, [abs(_value(part, arrays)) for part in parts])
    order = np.argsort(-sizes, kind="stable")
    heads = [parts[row] for row in order if parts[row].head is not None][:MOST_HEADS]
    return heads + [parts[row] for row in order if parts[row].head is None][:MOST_NETWORKS]


def _values(
    parts: Sequence[Part], arrays: Mapping[str, NamedArray] | None
) -> Float[np.ndarray, " part"] | None:
    """Return what parts add to the difference of an attribution; None: there is none."""
    return None if arrays is None else np.array([_value(part, arrays) for part in parts])


def _value(part: Part, arrays: Mapping[str, NamedArray]) -> float:
    """Return what a part adds to the difference of an attribution."""
    if part.head is None:
        return float(arrays["feed_forward"].data[part.layer]) if "feed_forward" in arrays else 0.0
    return float(arrays[f"{_kind(part)}.heads"].data[part.layer, part.head])


def _kind(part: Part) -> str:
    return part.site.split(".")[-2]


def _read(
    passes: EditedPasses, parts: Sequence[Part], position: int
) -> Float[np.ndarray, "part vocab"]:
    """Return the probabilities at a position without each part."""

    def take(captured: Mapping[str, Tensor]) -> Float[np.ndarray, "row vocab"]:
        logits = captured["logits"][:, position].double()
        is_independent = passes.checkpoint.description.predicts == "labels"
        probabilities: Float[np.ndarray, "row vocab"] = (
            (logits.sigmoid() if is_independent else logits.softmax(dim=-1)).cpu().numpy()
        )
        return probabilities

    return passes.read([[part.edit] for part in parts], ["logits"], take)


def _other_words(
    passes: EditedPasses, own: Float[np.ndarray, " vocab"], difference: LogitDifference
) -> tuple[Int[np.ndarray, " rank"], Bool[np.ndarray, " rank"]]:
    """Return the likeliest ids, and which are other words of the text, of the token's kind."""
    trace, likely = passes.trace, np.argsort(-own, kind="stable")[:LISTED]
    if passes.checkpoint.description.labels:
        return likely, np.zeros(len(likely), bool)
    text_of = passes.checkpoint.tokenizer.text_of
    words = {token.text.strip() for token in (*trace.tokens, *(trace.target_tokens or ()))}
    chosen, *others = (text_of(int(token)).strip() for token in (difference.token, *likely))
    kind = word_kind(chosen) if chosen in words else ""
    return likely, np.array(
        [kind != "" and each in words - {chosen} and word_kind(each) == kind for each in others]
    )


def word_kind(word: str) -> str:
    """Return the kind of a word whose place another of its kind could take; '': of none."""
    if word.isdigit():
        return "number"
    if len(word) > 1 and word.isalpha() and word[0].isupper() and word[1:].islower():
        return "name"
    return "word" if len(word) > 3 and word.isalpha() and word.islower() else ""


def lifts_of(
    attribute: Attribute, exit_of: ExitOf, difference: LogitDifference, n_ids: int
) -> Mapping[str, NamedArray]:
    """Return the attribution of the token's logit, less the mean logit of many tokens."""
    count = min(n_ids, MEAN_TOKENS)
    others = [at * (n_ids - 1) // (count - 1) for at in range(count)]

    def centred(stack: str, stream: Vector, tokens: Sequence[int]) -> LinearExit:
        own, rest = (exit_of(stack, stream, some) for some in (tokens[:1], others))
        return LinearExit(
            np.stack([own.directions[0], rest.directions.mean(axis=0)]),
            np.stack([own.offsets[0], rest.offsets.mean()]),
            own.reach,
        )

    centred_split: Attribution = attribute(centred, difference)
    return centred_split.arrays


def _read_key(
    part: Part, trace: Trace, found: Attribution | None, position: int
) -> tuple[int | None, float | None]:
    """Return the token that a head reads for this, and the weight of its row there."""
    weights = part.site.replace(".context", ".weights")
    if part.head is None or weights not in trace:
        return None, None
    row = trace[weights][part.head, position]
    name = f"{_kind(part)}.keys"
    if found is None or name not in found.arrays:
        key = int(row.argmax())
    else:
        by_key = found.arrays[name].data[part.layer, part.head, : len(row)]
        key = int((by_key * (1 if by_key.sum() >= 0 else -1)).argmax())
    return key, float(row[key])


def _pair(numbers: Float[np.ndarray, " 2"]) -> tuple[float, float]:
    return float(numbers[0]), float(numbers[1])


def _softmax(logits: Float[np.ndarray, " vocab"]) -> Float[np.ndarray, " vocab"]:
    exponentials = np.exp(logits - logits.max())
    return np.asarray(exponentials / exponentials.sum())
