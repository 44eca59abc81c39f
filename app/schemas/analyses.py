"""Analyses: their names, what a request may choose of them, and their answers."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from headlight.schemas import Answer, Request, TensorAnswer
from headlight.schemas.edits import MAX_NUMBERS, Number

MOST_TOP = 2**20
MAX_EDITED_TOKENS = 2**18

AnalysisName = Literal[
    "next_token",
    "rollout",
    "head_labels",
    "value_weighted",
    "head_outputs",
    "head_norms",
    "head_circuits",
    "logit_lens",
    "residual_stream",
    "routing",
    "reward",
    "alignment",
    "logit_attribution",
    "strongest_path",
    "patching",
    "saliency",
    "attention_by_distance",
    "quantization_sensitivity",
]
Token = Annotated[int, Field(ge=0, lt=2**31)] | str


class PredictionsRequest(Request):
    """The tokens that next_token and logit_lens return."""

    top: int = Field(
        20, ge=1, le=MOST_TOP, description="How many of the likeliest; at most the vocabulary."
    )
    tokens: list[Token] = Field(
        default=[],
        max_length=MAX_NUMBERS,
        description="Ids, or texts of one token each, such as ` cat`, whose logits, probabilities "
        "and ranks are returned as chosen_logits, chosen_probabilities and chosen_ranks (1 is the "
        "likeliest), with chosen_ids.",
    )
    following: bool = Field(
        False,
        description="Whether next_token also returns `following`: of every token of the text that "
        "is predicted, but the first, the probability that it had. Its −ln is the loss.",
    )
    temperature: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="With this, top_k or top_p, next_token also returns `sampled`: the probability "
        "that each of the tokens has of being sampled, as `/generate` samples. Divides the logits; "
        "0 always takes the likeliest token. If omitted, 1.",
    )
    top_k: int | None = Field(
        None, ge=1, lt=2**31, description="Sample from the k likeliest tokens only."
    )
    top_p: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Sample from the fewest tokens whose probabilities reach p.",
    )

    @property
    def samples(self) -> bool:
        """Whether probabilities of being sampled are asked for."""
        return not (self.temperature is self.top_k is self.top_p is None)


PatchedPart = Literal["residual", "attention", "feed_forward", "heads"]


class LogitDifferenceRequest(Request):
    """The logit of one token minus that of another, which some analyses explain."""

    position: Number | None = Field(
        None,
        description="The position that predicts: the token after it, or in an encoder the token at "
        "it. If omitted, the first mask, or the last position.",
    )
    token: Token | None = Field(
        None,
        description="An id, or a text of one token, such as ` cat`; if omitted, the likeliest.",
    )
    against: Token | None = Field(
        None,
        description="The token to compare with; if omitted, the likeliest of all others.",
    )


class PatchingRequest(Request):
    """The other text whose activations `patching` puts into this one, one at a time."""

    text: str = Field(description="Of as many tokens as this text; it is read with the same edits.")
    target: str | None = Field(
        None, description="Its target in an encoder–decoder; if omitted, that of this text."
    )
    parts: list[PatchedPart] = Field(
        default=["residual", "heads"],
        min_length=1,
        max_length=4,
        description="residual: the stream before a layer, at a position. attention, feed_forward: "
        "a layer's contribution there. heads: a head's context, at all positions.",
    )


class ChosenAnswer(Answer):
    """The tokens that `predictions` names, if it does; ranks are from 1."""

    chosen_ids: TensorAnswer | None = None
    chosen_logits: TensorAnswer | None = None
    chosen_probabilities: TensorAnswer | None = None
    chosen_ranks: TensorAnswer | None = None


class NextTokenAnswer(ChosenAnswer):
    """The likeliest tokens after every position, or at it in an encoder, in descending order."""

    ids: TensorAnswer
    probabilities: TensorAnswer
    texts: list[list[str]]
    following: TensorAnswer | None = None
    sampled: TensorAnswer | None = None


class LogitLensAnswer(ChosenAnswer):
    """The likeliest tokens by layer and position, in descending order."""

    ids: TensorAnswer
    probabilities: TensorAnswer
    texts: list[list[list[str]]]


class LabelsAnswer(Answer):
    """For each attention `.label`, `.label_scores` and `.label_queries`.

    A label is an index into `labels`; the scores have the same order, without the last label.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, TensorAnswer]

    labels: list[str]


class CircuitsAnswer(Answer):
    """The QK and OV circuits of each head, by attention and token of the text.

    `.written_ids`, `.written_logits` (head, key, rank): the tokens whose logits the head raises
    most if it attends to the token. `.sought_ids`, `.sought_scores` (head, query, rank): the tokens
    that score highest as keys of the token. `.copying` (head): the sum of the OV circuit's
    eigenvalues over that of their sizes, 1 if the head raises what it attends to. All from weights
    and token embeddings alone: the attention's norm is applied to the embedding, the scale of the
    final norm is that at the last position, positions and earlier layers are left out.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, TensorAnswer]

    token_texts: dict[str, str] = Field(description="The texts of all tokens, by id.")
    omitted: dict[str, str] = Field(description="The circuits that do not exist, and the reason.")


class AlignmentAnswer(Answer):
    """The alignment of target words with source words."""

    weights: TensorAnswer = Field(description="Each row sums to 1.")
    links: TensorAnswer = Field(description="1 if two words are linked, else 0.")
    aligner: dict[str, int] = Field(
        description="The layer and the head that were read, and the shift: 0 for the row of the "
        "token itself, 1 for the row that predicts it. Empty: the mean over all layers and the "
        "requested heads."
    )


class ChosenToken(Answer):
    """A token of the vocabulary."""

    id: int
    text: str


class DifferenceAnswer(Answer):
    """An explanation of a logit difference; other members are arrays by name."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, TensorAnswer]

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


class PathHead(Answer):
    """A head at a position."""

    path: str = Field(description="Of its attention.")
    head: int
    position: int


class PathEdge(Answer):
    """An edge of the path, and the prediction without it."""

    reader: PathHead | None = Field(description="The head that reads; null: the prediction.")
    head: PathHead | None = Field(description="The head that is read; null: a token is.")
    token: int | None = Field(description="The position of the token that is read.")
    difference: float = Field(description="The logit difference without this edge.")
    probability: float = Field(description="The probability of the token without this edge.")


class StrongestPathAnswer(Answer):
    """The strongest path to a prediction, from its end to its beginning."""

    position: int = Field(description="The position that predicts.")
    token: ChosenToken
    against: ChosenToken
    difference: float = Field(description="The logit difference of the pass.")
    probability: float = Field(description="The probability of the token in the pass.")
    edges: list[PathEdge]
    candidates: list[PathHead] = Field(description="The heads that were ablated for the last one.")
    ablations: TensorAnswer = Field(description="The logit difference without each of them.")


class LogitAttributionAnswer(Answer):
    """The parts of a logit difference, in logits; the scale of the final norm is frozen.

    Beside `logits` and `parts` there are, for each attention of the stack that predicts,
    `self_attention.heads` (layer, head), `.keys` (layer, head, key) by source token, and `.rest`
    (layer): the bias and what else it wrote; `feed_forward` (layer); and `experts` (layer, expert).
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, TensorAnswer]

    position: int = Field(description="The position that predicts.")
    token: ChosenToken
    against: ChosenToken
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


class SensitivityAnswer(Answer):
    """The change of the predictions when one part's weights are rounded."""

    divergence: TensorAnswer = Field(
        description="Mean KL of the rounded model's distribution from the model's own, in bits, by "
        "bits and part."
    )
    loss: TensorAnswer = Field(description="Of the rounded model on the text, in bits per token.")
    loss_change: TensorAnswer
    bits: TensorAnswer
    parts: list[str] = Field(description="Of the model; `*` is all of them together.")


class AnalysesAnswer(Answer):
    """The requested analyses."""

    next_token: NextTokenAnswer | None = None
    rollout: dict[str, TensorAnswer] | None = None
    head_labels: LabelsAnswer | None = None
    value_weighted: dict[str, TensorAnswer] | None = None
    head_outputs: dict[str, TensorAnswer] | None = None
    head_norms: dict[str, TensorAnswer] | None = None
    head_circuits: CircuitsAnswer | None = None
    logit_lens: LogitLensAnswer | None = None
    residual_stream: dict[str, TensorAnswer] | None = None
    routing: dict[str, TensorAnswer] | None = None
    reward: dict[str, TensorAnswer] | None = None
    alignment: AlignmentAnswer | None = None
    logit_attribution: LogitAttributionAnswer | None = None
    strongest_path: StrongestPathAnswer | None = None
    patching: PatchingAnswer | None = None
    saliency: SaliencyAnswer | None = None
    attention_by_distance: dict[str, TensorAnswer] | None = None
    quantization_sensitivity: SensitivityAnswer | None = None
