"""The analysis of what decides a prediction: parts taken away, against a rival that shows most."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from headlight.analyses.analysis import Choices, Result, names_of
from headlight.analyses.differences import (
    ATTRIBUTION_NEEDS,
    ChosenToken,
    DifferenceAnswer,
    LogitAttribution,
    LogitDifferenceRequest,
    OfParts,
    attribute,
    choose,
    edited_passes,
    spelled,
    unknown_split,
)
from headlight.forms import Answer, TensorAnswer
from headlight.model.trace import Trace

if TYPE_CHECKING:
    from headlight.model.served import Served


class TopAnswer(ChosenToken):
    """The likeliest token of a pass."""

    probability: float


class ReasonAnswer(Answer):
    """A head or a network, and the prediction of the pass in which it writes nothing."""

    site: str = Field(description="What it writes: set to 0 at every position.")
    layer: int
    head: int | None = Field(description="None: a feed-forward network, or a layer's experts.")
    adds: list[float] | None = Field(
        description="Logits that it adds to the token and to the other one, over the mean of "
        "tokens all over the vocabulary. None: this model's logits are no sum over its parts."
    )
    key: int | None = Field(
        description="The token that the head reads for this: the one from which most of its "
        "difference comes, or else the one with its largest weight."
    )
    weight: float | None = Field(description="Of the head's row at that token.")
    probabilities: list[float] = Field(
        description="Of the token and of the other one, without the part."
    )
    top: TopAnswer


class ReasonsAnswer(DifferenceAnswer):
    """The parts of the stack that predicts, that without which the token loses most first.

    Arrays are those of `logit_attribution` with the same two tokens, if the model has it: what
    every part adds, also those that were not taken away.
    """

    rule: Literal["given", "text", "gains", "likeliest"] = Field(
        description="How the other token was chosen. given: by the request. text: another likely "
        "word of the text, of the same kind. gains: it gains most without the strongest head. "
        "likeliest: of all others."
    )
    probabilities: list[float] = Field(description="Of the two tokens in the pass itself.")
    reasons: list[ReasonAnswer]
    decisive: int | None = Field(
        description="The index of the head without which the token loses most, of those that add "
        "much to it themselves. None: no single head decides."
    )
    omitted: dict[str, str]
    logits: TensorAnswer | None = None


class Reasons(OfParts):
    """The parts that decide a prediction, each taken away in a pass."""

    id = "reasons"
    needs = ("logits", "*.residual.after", "*_attention.context")
    also = (*ATTRIBUTION_NEEDS, *LogitAttribution.also)
    answer = ReasonsAnswer
    reads = (LogitDifferenceRequest,)
    has_passes = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.reasons import find_reasons

        has_split = unknown_split(model.description) is None
        result = find_reasons(
            edited_passes(trace, model, ask),
            choose(trace, model, ask),
            partial(attribute, trace, model) if has_split else None,
            is_given=ask[LogitDifferenceRequest].against is not None,
        )
        reasons = [
            {
                **{
                    name: getattr(part, name) for name in ("site", "layer", "head", "key", "weight")
                },
                "adds": None if part.adds is None else list(part.adds),
                "probabilities": list(part.probabilities),
                "top": {
                    "id": part.top[0],
                    "text": names_of(model)(part.top[0]),
                    "probability": part.top[1],
                },
            }
            for part in result.parts
        ]
        metadata = {
            **spelled(result.difference, model),
            "rule": result.rule,
            "probabilities": list(result.probabilities),
            "reasons": reasons,
            "decisive": result.decisive,
            "omitted": dict(result.omitted),
        }
        return Result(result.arrays, metadata)
