"""Analyses that explain a logit difference: attribution, patching, saliency."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from headlight.analyses.analysis import Analysis, AnalysisOptions, Choices, Result, names_of
from headlight.forms import Answer, ArraysAnswer, Number, TensorAnswer, Token, option
from headlight.model.trace import Trace

if TYPE_CHECKING:
    from headlight.model.analysis.edited_passes import EditedPasses
    from headlight.model.analysis.logit_attribution import Attribution, ExitOf, LogitDifference
    from headlight.model.description import Description
    from headlight.model.served import Served


MAX_EDITED_TOKENS = 2**18
PatchedPart = Literal["residual", "attention", "feed_forward", "heads"]


class LogitDifferenceRequest(AnalysisOptions):
    """The prediction to explain: the logit of one token or label minus that of another."""

    member = "logit_difference"

    position: Number | None = Field(
        None,
        description="The position that predicts: the token after it, or in an encoder the token at "
        "it. If omitted, the first mask, or the last position.",
    )
    token: Token | None = Field(
        None,
        description="An id, a text of one token, such as ` cat`, or the name of a label; if "
        "omitted, the likeliest.",
    )
    against: Token | None = Field(
        None, description="The token to compare with; if omitted, the likeliest of all others."
    )


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
    """The parts of a logit difference, in logits; the scales of norms are frozen.

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


class OfParts(Analysis):
    """An analysis that splits a logit difference; of a post-norm model it reads every stream."""

    is_of_prediction = True

    def globs(self, description: Description, *, is_long: bool) -> tuple[str, ...]:
        """Return the streams between the norms too, where they follow what is written."""
        globs = super().globs(description, is_long=is_long)
        is_post = description.config.norm_place == "post"
        return (*globs, "*.residual.*") if is_post else globs


class LogitAttribution(OfParts):
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
    reads = (LogitDifferenceRequest,)

    def reason_against(self, description: Description) -> str | None:
        return unknown_split(description)

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        difference = choose(trace, model, ask)
        attribution = attribute(trace, model, model.linear_exit, difference)
        metadata = {
            **spelled(difference, model),
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
    reads = (LogitDifferenceRequest,)
    has_passes = True

    class Options(AnalysisOptions):
        """The other text whose activations are put into this one, one at a time."""

        text: str = option(
            description="Of as many tokens as this text; it is read with the same edits."
        )
        target: str | None = option(
            None, description="Its target in an encoder–decoder; if omitted, that of this text."
        )
        parts: list[PatchedPart] = option(
            default=["residual", "heads"],
            min_length=1,
            max_length=4,
            description="residual: the stream before a layer, at a position. attention, "
            "feed_forward: a layer's contribution there. heads: a head's context, at all "
            "positions.",
        )

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.patching import patching

        other = ask[self.Options]
        difference = choose(trace, model, ask)
        passes, globs = edited_passes(trace, model, ask), (*self.needs, *self.also)
        target = trace.target if other.target is None else other.target
        sites = [site for site in trace if any(fnmatch.fnmatchcase(site, glob) for glob in globs)]
        source = passes.of_other_text(other.text, target, sites)
        arrays = patching(passes, source, difference, other.parts)
        other_tokens = [token.text for token in source.tokens]
        return Result(arrays, {**spelled(difference, model), "other_tokens": other_tokens})


class Saliency(Analysis):
    """Gradient × input and erasure of each token."""

    id = "saliency"
    needs = ("logits", "*.layers.0.residual.before")
    answer = SaliencyAnswer
    reads = (LogitDifferenceRequest,)
    has_passes = True

    def compute(self, trace: Trace, model: Served, ask: Choices) -> Result:
        from headlight.model.analysis.saliency import saliency

        difference = choose(trace, model, ask)
        return Result(
            saliency(edited_passes(trace, model, ask), difference), spelled(difference, model)
        )


def edited_passes(trace: Trace, model: Served, ask: Choices) -> EditedPasses:
    """Return passes with edits over the text of a trace."""
    from headlight.model.analysis.edited_passes import EditedPasses

    return EditedPasses(model, trace, ask.interventions, MAX_EDITED_TOKENS)


def choose(trace: Trace, model: Served, ask: Choices) -> LogitDifference:
    """Return the logit difference to explain in a trace.

    Raises:
        ValueError: the trace has no such position, or the two tokens are the same.
    """
    from headlight.model.analysis.logit_attribution import choose_difference

    asked = ask[LogitDifferenceRequest]
    position = asked.position
    if model.description.is_of_text and model.config.kind == "encoder":
        position = 0  # that of the token which is read
    tokens = (None if each is None else ask.id_of(each) for each in (asked.token, asked.against))
    return choose_difference(trace, position, *tokens, mask_id=model.tokenizer.mask_id)


def unknown_split(description: Description) -> str | None:
    """Return the reason why a model's logits are not split by heads."""
    from headlight.model.analysis.head_outputs import unknown_outputs
    from headlight.model.analysis.logit_attribution import normalised_stream

    return normalised_stream(description) or unknown_outputs(description)


def attribute(
    trace: Trace, model: Served, exit_of: ExitOf, difference: LogitDifference
) -> Attribution:
    """Split a logit difference of a trace, as `model.linear_exit` or another exit reads it."""
    from headlight.model.analysis.head_outputs import output_weights
    from headlight.model.analysis.logit_attribution import logit_attribution

    config = model.config
    return logit_attribution(
        trace,
        exit_of,
        output_weights(trace, model),
        difference,
        n_experts=config.moe.n_experts if config.moe else 0,
        post=(model.graph_weights(), config) if config.norm_place == "post" else None,
    )


def spelled(difference: LogitDifference, model: Served) -> dict[str, Any]:
    """Return a logit difference as plain data, its tokens with their texts."""
    return {
        "position": difference.position,
        **{
            name: {"id": token, "text": names_of(model)(token)}
            for name, token in (("token", difference.token), ("against", difference.against))
        },
    }
