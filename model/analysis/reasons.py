"""Reasons of a prediction: the parts that write to it, each taken away in a pass of its own.

The share of a head or a network in a logit is exact (`logit_attribution`), but it is no cause:
another part may stand in for it. So each part that could matter is set to zero at every position,
and the prediction is read again. Zero ablation of single heads: Michel et al. 2019,
https://arxiv.org/abs/1905.10650; parts that stand in: McGrath et al. 2023,
https://arxiv.org/abs/2307.15771.

The token is explained against a rival. Unless one is given, it is the word that shows most: another
word of the text that could stand here as well, or the token that gains most without the head that
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Float
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
    lost = 1 - without[:, difference.token] / max(own[difference.token], _LEAST)
    lifts = attribute and lifts_of(attribute, model.linear_exit, difference, len(own))
    rule: Rule = "given"
    decisive: int | None = None
    if not is_given and (rival := _other_word(passes, own, difference)) is not None:
        rule, difference = "text", replace(difference, against=rival)
    elif not is_given:
        decisive = _decisive(parts, lost, _values(parts, lifts))
        rule = "likeliest" if decisive is None else "gains"
        gains = own if decisive is None else without[decisive] - own
        rival = int(np.where(np.arange(len(own)) == difference.token, -np.inf, gains).argmax())
        difference = replace(difference, against=rival)
    split = attribute and attribute(model.linear_exit, difference)
    if rule != "gains":
        decisive = _decisive(parts, lost, _values(parts, split.arrays if split else None))
    order = np.argsort(-lost, kind="stable").tolist()
    tokens = [difference.token, difference.against]
    return Reasons(
        difference,
        rule,
        _pair(own[tokens]),
        tuple(_without(parts[row], without[row], difference, trace, lifts, split) for row in order),
        None if decisive is None else order.index(decisive),
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


def _decisive(
    parts: Sequence[Part], lost: Float[np.ndarray, " part"], adds: Sequence[float] | None
) -> int | None:
    """Return the head without which the token loses most, of those that add much to it.

    ``lost``: the share of its probability that the token loses without each part.
    """
    heads = [row for row, part in enumerate(parts) if part.head is not None]
    if adds is not None:
        most = max((adds[row] for row in heads), default=0.0)
        heads = [row for row in heads if adds[row] > 0 and adds[row] >= DIRECT * most]
    best = max(heads, key=lambda row: float(lost[row]), default=None)
    return best if best is not None and lost[best] >= LEAST_LOST else None


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


def _values(parts: Sequence[Part], arrays: Mapping[str, NamedArray] | None) -> list[float] | None:
    """Return what parts add to the difference of an attribution; None: there is none."""
    return None if arrays is None else [_value(part, arrays) for part in parts]


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


def _other_word(
    passes: EditedPasses, own: Float[np.ndarray, " vocab"], difference: LogitDifference
) -> int | None:
    """Return another likely word of the text, of the same kind as the token, which occurs there."""
    trace = passes.trace
    if passes.checkpoint.description.labels:
        return None
    text_of = passes.checkpoint.tokenizer.text_of
    words = {token.text.strip() for token in (*trace.tokens, *(trace.target_tokens or ()))}
    chosen = text_of(difference.token).strip()
    if chosen not in words or not _shape(chosen):
        return None
    for token in np.argsort(-own, kind="stable")[:LISTED]:
        word = text_of(int(token)).strip()
        is_likely = own[token] >= LEAST_LIKELY and word != chosen
        if is_likely and word in words and _shape(word) == _shape(chosen):
            return int(token)
    return None


def _shape(word: str) -> str:
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
    others = np.unique(np.linspace(0, n_ids - 1, min(n_ids, MEAN_TOKENS)).astype(int)).tolist()

    def centred(stack: str, stream: Vector, tokens: Sequence[int]) -> LinearExit:
        own = exit_of(stack, stream, [tokens[0], *others])
        return LinearExit(
            np.stack([own.directions[0], own.directions[1:].mean(axis=0)]),
            np.array([own.offsets[0], own.offsets[1:].mean()]),
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
