"""Analyses that explain a logit difference: attribution, patching, saliency."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from pydantic import Field

from headlight.analyses.analysis import Analysis, Choices, Result
from headlight.forms import Answer, ArraysAnswer, TensorAnswer
from headlight.model.trace import Trace

if TYPE_CHECKING:
    from headlight.model.analysis.logit_attribution import Attribution, LogitDifference
    from headlight.model.description import Description
    from headlight.model.served import Served


class ChosenToken(Answer):
    """A token of the vocabulary."""

    id: int
    text: str


class DifferenceAnswer(ArraysAnswer):
    """An explanation of a logit difference; other members are arrays by name."""

    position: int = Field(description="The position that predicts.")
    token: ChosenToken
    against: ChosenToken


class PatchingAnswer(DifferenceAnswer):
    """The share of what another text changes in the logit difference, by activation.

    (patched − own) / (other − own), by stack: `decoder.residual`, `decoder.self_attention`,
    `decoder.feed_forward` (layer, position), `decoder.self_attention.heads` (layer, head).
    Of a change below 0.01 logits, rounding reaches the second digit of a share.
    """

    differences: TensorAnswer = Field(description="Of this text and of the other one, in logits.")
    other_tokens: list[str] = Field(description="The tokens of the other text.")


class SaliencyAnswer(DifferenceAnswer):
    """`decoder.gradient_times_input` and `decoder.erasure` (position), in logits, by stack."""


class LogitAttributionAnswer(DifferenceAnswer):
    """The parts of a logit difference, in logits; the scale of the final norm is frozen.

    Beside `logits` and `parts` there are, for each attention of the stack that predicts,
    `self_attention.heads` (layer, head), `.keys` (layer, head, key) by source token, and `.rest`
    (layer): the bias and what else it wrote; `feed_forward` (layer); and `experts` (layer, expert).
    """

    part_names: list[str] = Field(description="Of the entries of `parts`.")
    omitted: dict[str, str] = Field(
        description="The parts that could not be split, and the reason; `remainder`, if it is "
        "larger than 1 % of the largest part."
    )
    logits: TensorAnswer = Field(description="Of the token, and of the one it is compared with.")
    parts: TensorAnswer = Field(
        description="They sum to the difference of the logits: the embedding, each attention and "
        "feed-forward network, `bias` (of the final norm and the unembedding) and `remainder`."
    )


ATTRIBUTION_NEEDS = (
    "logits",
    "*.residual.after",
    "*.layers.0.residual.before",
    "*_attention.context",
    "*_attention.output",
)


class LogitAttribution(Analysis):
    """The share of each layer, head, expert and source token in a logit difference."""

    id = "logit_attribution"
    needs = ATTRIBUTION_NEEDS
    also = (
        "*.embedding.tokens",
        "*.embedding.positional",
        "*_attention.weights",
        "*_attention.values",
        "*_attention.gain",
        "*.feed_forward.output",
        "*.experts.output",
        "*.experts.expert_outputs",
        "*.experts.expert_indices",
    )
    answer = LogitAttributionAnswer
    options = ("logit_difference",)
    is_of_prediction = True

    def reason_against(self, description: Description) -> str | None:
        return _unknown_split(description)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        difference = ask.difference(trace, model)
        attribution = _attribution(trace, model, difference)
        metadata = {
            **_spelled(difference, model),
            "part_names": list(attribution.parts),
            "omitted": attribution.omitted,
        }
        return Result(attribution.arrays, metadata)


class Patching(Analysis):
    """The share of each activation in what another text changes."""

    id = "patching"
    needs = ("logits", "*.residual.before")
    also = (
        "*_attention.output",
        "*_attention.context",
        "*.feed_forward.output",
        "*.experts.output",
    )
    answer = PatchingAnswer
    options = ("logit_difference", "patching")
    has_passes = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.patching import patching

        if ask.patching is None:
            raise ValueError("there is no other text; send it as patching.text")
        difference = ask.difference(trace, model)
        passes, globs = ask.passes(trace, model), (*self.needs, *self.also)
        target = trace.target if ask.patching.target is None else ask.patching.target
        sites = [site for site in trace if any(fnmatch.fnmatchcase(site, glob) for glob in globs)]
        source = passes.of_other_text(ask.patching.text, target, sites)
        arrays = patching(passes, source, difference, ask.patching.parts)
        other_tokens = [token.text for token in source.tokens]
        return Result(arrays, {**_spelled(difference, model), "other_tokens": other_tokens})


class Saliency(Analysis):
    """Gradient × input and erasure of each token."""

    id = "saliency"
    needs = ("logits", "*.layers.0.residual.before")
    answer = SaliencyAnswer
    options = ("logit_difference",)
    has_passes = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.saliency import saliency

        difference = ask.difference(trace, model)
        return Result(saliency(ask.passes(trace, model), difference), _spelled(difference, model))


def _unknown_split(description: Description) -> str | None:
    """Return the reason why a model's logits are not split by heads."""
    from headlight.model.analysis.head_outputs import unknown_outputs
    from headlight.model.analysis.logit_attribution import normalised_stream

    return normalised_stream(description) or unknown_outputs(description)


def _attribution(trace: Trace, model: Served, difference: LogitDifference) -> Attribution:
    from headlight.model.analysis.head_outputs import output_weights
    from headlight.model.analysis.logit_attribution import logit_attribution

    config = model.config
    return logit_attribution(
        trace,
        model.linear_exit,
        output_weights(trace, model),
        difference,
        n_experts=config.moe.n_experts if config.moe else 0,
        norm_place=config.norm_place,
    )


def _spelled(difference: LogitDifference, model: Served) -> dict[str, Any]:
    """Return a logit difference as plain data, its tokens with their texts."""
    return {
        "position": difference.position,
        **{
            name: {"id": token, "text": model.tokenizer.text_of(token)}
            for name, token in (("token", difference.token), ("against", difference.against))
        },
    }
