"""What requests and answers look like; the documentation at /docs is made from these.

Requests are strict: no conversion from one type to another, no unknown member.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from headlight.schemas.base import Answer, Request

MAX_GLOBS = 64
MAX_GLOB_CHARACTERS = 200
MAX_ANALYSES = 64
MAX_MODEL_ID_CHARACTERS = 64
MAX_POSITIONAL_SIZE = 2**20
MAX_EDITS = 16
MAX_NUMBERS = 256
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0

ModelId = Annotated[str, Field(min_length=1, max_length=MAX_MODEL_ID_CHARACTERS)]
Glob = Annotated[str, Field(min_length=1, max_length=MAX_GLOB_CHARACTERS)]
AnalysisName = Literal[
    "next_token",
    "rollout",
    "head_labels",
    "value_weighted",
    "head_outputs",
    "logit_lens",
    "residual_stream",
    "routing",
    "alignment",
    "attention_by_distance",
]
DType = Literal["float32", "uint16"]
Number = Annotated[int, Field(ge=0, lt=2**31)]
Numbers = Annotated[list[Number], Field(min_length=1, max_length=MAX_NUMBERS)]
Stack = Literal["encoder", "decoder"]
Where = Literal["encoder", "decoder", "cross"]
Scheme = Literal["sinusoidal", "learned", "rotary", "alibi"]
Size = Annotated[int, Field(ge=1, le=MAX_POSITIONAL_SIZE)]


def _example(**members: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [members]})


class _Edit(Request):
    layer: Number | None = Field(None, description="In this layer; without it, in every layer.")


class _AttentionEdit(_Edit):
    where: Where | None = Field(
        None,
        description="In the self-attention of the encoder or of the decoder, or in "
        "cross-attention; without it, in all that the model has.",
    )


class HeadsOffRequest(_AttentionEdit):
    """Heads that write nothing: their context is 0, their weights stay as they are."""

    kind: Literal["heads_off"]
    heads: Numbers


class ExpertsOffRequest(_Edit):
    """Experts that are never chosen: their router logits are −∞, sent as null."""

    kind: Literal["experts_off"]
    experts: Numbers
    where: Stack | None = Field(None, description="In this stack; without it, in both.")


class NoScalingRequest(_AttentionEdit):
    """Queries times keys, not divided by √d_head."""

    kind: Literal["no_scaling"]


class TemperatureRequest(_AttentionEdit):
    """Scores divided by a temperature before the softmax."""

    kind: Literal["temperature"]
    value: float = Field(
        ge=LEAST_TEMPERATURE,
        le=MOST_TEMPERATURE,
        description="1 changes nothing; above it rows even out, below it they sharpen.",
    )


EditRequest = Annotated[
    HeadsOffRequest | ExpertsOffRequest | NoScalingRequest | TemperatureRequest,
    Field(discriminator="kind"),
]
EditRequests = Annotated[list[EditRequest], Field(max_length=MAX_EDITS)]


class TokenizeRequest(Request):
    """A text to cut into tokens."""

    model_config = _example(text="The cat sat on the mat.")

    text: str = Field(description="The text.")
    model: ModelId | None = Field(None, description="Whose tokenizer; the default model's.")


class TraceRequest(TokenizeRequest):
    """A text to trace, and what of its forward pass to return."""

    model_config = _example(
        text="The cat sat on the mat.",
        capture=["decoder.layers.*.self_attention.weights"],
        layers=[0, 1],
        heads=[0],
    )

    target: str | None = Field(
        None,
        description="What the decoder of an encoder–decoder reads. Without it: the model's own "
        "translation of the text. Other models take none.",
    )
    capture: list[Glob] | None = Field(
        None,
        max_length=MAX_GLOBS,
        description="Site names or globs; a model's card lists its sites. Without it: attention "
        "weights, positional encoding, router probabilities, expert indices and weights.",
    )
    layers: Numbers | None = Field(
        None,
        description="Of the sites in layers, only these layers; in an encoder–decoder, of both "
        "stacks.",
    )
    heads: Numbers | None = Field(
        None, description="Of arrays with a head axis, only these heads, in this order."
    )
    analyses: list[AnalysisName] | None = Field(
        None,
        max_length=MAX_ANALYSES,
        description="Quantities computed from the trace. next_token: the 20 likeliest tokens "
        "after every position, or at it in an encoder. rollout: attention followed through the "
        "layers. head_labels: what each head does. value_weighted: weights times the size of what "
        "they carry. head_outputs: what each head writes, of the layers that layers says. "
        "logit_lens: what each layer would predict. residual_stream: the norm of the "
        "stream, of what each part writes to it, and what the layer norms see. routing: how the "
        "experts share the tokens. alignment: which source word each target word comes from. "
        "attention_by_distance: mean weights by distance. A model's card lists those it has. "
        "What they read need not be captured: they read every layer, whatever layers says, but "
        "for head_outputs, and only the heads that heads says. Without it: next_token, where "
        "capture is left out too.",
    )
    edits: EditRequests | None = Field(
        None,
        description="What the pass changes, and all that follows from it: heads_off and "
        "experts_off switch heads or experts off, no_scaling leaves 1/√d_head out, temperature "
        "divides the scores of attention. A translation that the model makes itself, without "
        "target, is made without them, so that passes with and without edits read the same tokens.",
    )
    dtype: DType = Field(
        "float32",
        description="uint16 sends numbers between 0 and 1 as value/65535: half the bytes, "
        "an error of at most 8e-6, so that a row sums to 1 within 8e-6 for each number in it.",
    )
    triangle: bool = Field(
        False,
        description="Arrays of causal attention without what lies above their diagonal, which is "
        "0, or masked: the rows follow each other, T(T + 1)/2 numbers in place of T². In NumPy: "
        "`full = np.full(shape, fill); full[..., *np.tril_indices(shape[-1])] = data`. All others "
        "are sent whole.",
    )

    @property
    def wanted_analyses(self) -> list[AnalysisName]:
        """The analyses to compute, each once."""
        if self.analyses is None:
            return ["next_token"] if self.capture is None else []
        return sorted(set(self.analyses))

    @property
    def wanted_edits(self) -> list[str]:
        """The edits as JSON, in an order of their own: that of the request decides nothing."""
        return sorted(edit.model_dump_json() for edit in self.edits or ())


class TraceForm(BaseModel):
    """How a trace that was computed before is sent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dtype: DType = Field("float32", description="As in a request for a trace.")
    triangle: bool = Field(False, description="As in a request for a trace.")


class PositionalRequest(BaseModel):
    """An encoding of positions: of a scheme by its sizes, or of a model as it has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scheme: Scheme | None = Field(
        None, description="How positions are encoded; a model's own may be left out."
    )
    model: ModelId | None = Field(
        None,
        description="A model, whose scheme, width and heads are taken; learned positions are "
        "always those of a model.",
    )
    length: Size = Field(description="How many positions, from 0 on.")
    width: Size | None = Field(
        None, description="d_model of sinusoidal, d_head of rotary positions; an even number."
    )
    heads: Size | None = Field(None, description="How many heads ALiBi gives slopes to.")


class TokenAnswer(Answer):
    """One piece of the text."""

    id: int
    text: str = Field(description="What the piece spells, leading space included.")
    start: int = Field(description="Offset of its first character in the text.")
    end: int = Field(description="Offset after its last character.")
    word: int | None = Field(description="The word it belongs to; null for special tokens.")
    is_special: bool


class TokenizeAnswer(Answer):
    """A text in tokens."""

    model: str
    tokens: list[TokenAnswer]


class TensorAnswer(Answer):
    """An array whose axes have names."""

    axes: list[str]
    shape: list[int] = Field(description="Of the whole array.")
    dtype: Literal["float32", "int32", "uint16"]
    scale: float | None = Field(None, description="Of uint16: value = data × scale.")
    packed: Literal["lower-triangle"] | None = Field(
        None,
        description="The last two axes came as one: the numbers on and below the diagonal, row by "
        "row. Without it the array is whole.",
    )
    fill: float | None = Field(
        None, description="Of a packed array: what all numbers above the diagonal are; null: -inf."
    )
    data: list[Any] = Field(
        description="Nested lists; -inf, as masked scores and the logits of experts that are off "
        "are, is null."
    )


class NextTokenAnswer(Answer):
    """The likeliest tokens after every position, or at it in an encoder; the likeliest first."""

    ids: TensorAnswer
    probabilities: TensorAnswer
    texts: list[list[str]]


class LogitLensAnswer(Answer):
    """The likeliest tokens by layer and position, the likeliest first."""

    ids: TensorAnswer
    probabilities: TensorAnswer
    texts: list[list[list[str]]]


class LabelsAnswer(Answer):
    """By attention, `.label`, `.label_scores` and `.label_queries`.

    A label is an index into `labels`; the scores are in the same order, without the last.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, TensorAnswer]

    labels: list[str]


class AlignmentAnswer(Answer):
    """The words of the target by those of the source."""

    weights: TensorAnswer = Field(description="Rows sum to 1.")
    links: TensorAnswer = Field(description="1 where two words are linked.")
    aligner: dict[str, int] = Field(
        description="The layer and head that were read, and whether the row that reads a token "
        "(shift 0) or the one that predicts it (1); empty: the mean over all layers and the heads "
        "asked for."
    )


class AnalysesAnswer(Answer):
    """The analyses asked for."""

    next_token: NextTokenAnswer | None = None
    rollout: dict[str, TensorAnswer] | None = None
    head_labels: LabelsAnswer | None = None
    value_weighted: dict[str, TensorAnswer] | None = None
    head_outputs: dict[str, TensorAnswer] | None = None
    logit_lens: LogitLensAnswer | None = None
    residual_stream: dict[str, TensorAnswer] | None = None
    routing: dict[str, TensorAnswer] | None = None
    alignment: AlignmentAnswer | None = None
    attention_by_distance: dict[str, TensorAnswer] | None = None


class TraceAnswer(Answer):
    """One forward pass: the tokens, and the arrays that were asked for."""

    id: str = Field(description="A hash of model revision, precision, text and options.")
    model: str
    revision: str
    precision: str = Field(description="What the model computed in: float32 or bfloat16.")
    text: str
    tokens: list[TokenAnswer]
    target: str | None = Field(description="The text of an encoder–decoder's decoder.")
    target_tokens: list[TokenAnswer] | None = Field(description="What the decoder read.")
    heads: list[int] | None = Field(description="The heads on `head` axes; null: all, in order.")
    tensors: dict[str, TensorAnswer] = Field(description="By site name.")
    analyses: AnalysesAnswer
    timings: dict[str, float] = Field(
        description="Milliseconds by step; empty where all of it was computed before."
    )


class PositionalAnswer(Answer):
    """An encoding of positions. Sizes that the scheme does not know are null."""

    scheme: Scheme
    model: str | None
    length: int
    width: int | None
    heads: int | None
    tensors: dict[str, TensorAnswer] = Field(
        description="sinusoidal: encoding (position, d_model) and frequencies (pair), in radians "
        "a position. learned: encoding; of an encoder–decoder encoder.encoding and "
        "decoder.encoding. rotary: angles, cos and sin (position, pair). alibi: slopes (head) and "
        "bias (head, query, key), on both sides of the diagonal.",
    )
