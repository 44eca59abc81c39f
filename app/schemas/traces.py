"""Traces, tokens and encodings of positions: requests and answers."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from headlight.schemas import Answer, Request

MAX_GLOBS = 16
MAX_GLOB_CHARACTERS = 80
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


def example(**members: Any) -> ConfigDict:
    """The configuration of a request whose documentation shows these members."""
    return ConfigDict(json_schema_extra={"examples": [members]})


class _Edit(Request):
    layer: Number | None = Field(None, description="The layer; if omitted, every layer.")


class _AttentionEdit(_Edit):
    where: Where | None = Field(
        None,
        description="The self-attention of the encoder or of the decoder, or cross-attention; if "
        "omitted, all that the model has.",
    )


class HeadsOffRequest(_AttentionEdit):
    """Ablate heads: their context is 0, their weights stay as they are."""

    kind: Literal["heads_off"]
    heads: Numbers


class ExpertsOffRequest(_Edit):
    """Ablate experts: their router logits are −∞, sent as null, so they are never chosen."""

    kind: Literal["experts_off"]
    experts: Numbers
    where: Stack | None = Field(None, description="The stack; if omitted, both.")


class NoScalingRequest(_AttentionEdit):
    """Do not divide the products of queries and keys by √d_head."""

    kind: Literal["no_scaling"]


class TemperatureRequest(_AttentionEdit):
    """Divide the attention scores by a temperature before the softmax."""

    kind: Literal["temperature"]
    value: float = Field(
        ge=LEAST_TEMPERATURE,
        le=MOST_TEMPERATURE,
        description="1 changes nothing; a higher value evens rows out, a lower one sharpens them.",
    )


EditRequest = Annotated[
    HeadsOffRequest | ExpertsOffRequest | NoScalingRequest | TemperatureRequest,
    Field(discriminator="kind"),
]
EditRequests = Annotated[list[EditRequest], Field(max_length=MAX_EDITS)]


class TokenizeRequest(Request):
    """A text to split into tokens."""

    model_config = example(text="The cat sat on the mat.")

    text: str = Field(description="The text.")
    model: ModelId | None = Field(
        None, description="The model whose tokenizer is used; if omitted, the default model."
    )


class TraceRequest(TokenizeRequest):
    """A text to trace, and the parts of its forward pass to return."""

    model_config = example(
        text="The cat sat on the mat.",
        capture=["decoder.layers.*.self_attention.weights"],
        layers=[0, 1],
        heads=[0],
    )

    model: ModelId | None = Field(
        None, description="The model that reads the text; if omitted, the default model."
    )
    target: str | None = Field(
        None,
        description="The decoder's input in an encoder–decoder; if omitted, the model's own "
        "translation of the text. Other models have none.",
    )
    capture: list[Glob] | None = Field(
        None,
        max_length=MAX_GLOBS,
        description="Site names or globs; a model's card lists its sites. If omitted: attention "
        "weights, positional encoding, router probabilities, expert indices and weights.",
    )
    layers: Numbers | None = Field(
        None,
        description="Of the sites in layers, only those in these layers, in both stacks of an "
        "encoder–decoder.",
    )
    heads: Numbers | None = Field(
        None, description="Of arrays with a head axis, only these heads, in this order."
    )
    analyses: list[AnalysisName] | None = Field(
        None,
        max_length=MAX_ANALYSES,
        description="Quantities computed from the trace; a model's card lists those it has. "
        "next_token: the 20 likeliest tokens after every position, or at it in an encoder. "
        "rollout: attention multiplied through the layers. head_labels: the behaviour of each "
        "head. value_weighted: attention weights times the norms of the values. head_outputs: the "
        "contribution of each head to the residual stream. logit_lens: the prediction of each "
        "layer. residual_stream: norms of the stream and of the contributions to it, and the input "
        "statistics of the layer norms. routing: the share of the tokens that each expert takes. "
        "alignment: the source words of each target word. attention_by_distance: mean weights by "
        "distance. What an analysis reads need not be captured; it reads every layer, but for "
        "head_outputs, and only the heads in `heads`. If omitted: next_token, unless capture is "
        "given.",
    )
    edits: EditRequests | None = Field(
        None,
        description="Interventions in the pass: heads_off and experts_off ablate heads or experts, "
        "no_scaling omits 1/√d_head, temperature divides the attention scores. A translation made "
        "because target is omitted is made without them, so that passes with and without edits "
        "read the same tokens.",
    )
    dtype: DType = Field(
        "float32",
        description="uint16 sends numbers between 0 and 1 as value/65535: half the bytes, with "
        "an error of at most 8e-6 in each number.",
    )
    triangle: bool = Field(
        False,
        description="Send arrays of causal attention without the part above the diagonal, which "
        "is 0 or masked: row after row, T(T + 1)/2 numbers in place of T². In NumPy: "
        "`full = np.full(shape, fill); full[..., *np.tril_indices(shape[-1])] = data`. Other "
        "arrays are sent whole.",
    )

    @property
    def wanted_analyses(self) -> list[AnalysisName]:
        """The analyses to compute, each once."""
        if self.analyses is None:
            return ["next_token"] if self.capture is None else []
        return sorted(set(self.analyses))

    @property
    def wanted_edits(self) -> list[str]:
        """The edits as sorted JSON, because their order in the request has no effect."""
        return sorted(edit.model_dump_json() for edit in self.edits or ())


class TraceForm(BaseModel):
    """The format of a trace that was computed before."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dtype: DType = Field("float32", description="As in a request for a trace.")
    triangle: bool = Field(False, description="As in a request for a trace.")


class PositionalRequest(BaseModel):
    """An encoding of positions, by a scheme and its sizes or by a model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scheme: Scheme | None = Field(
        None, description="The kind of encoding; may be omitted if a model is given."
    )
    model: ModelId | None = Field(
        None,
        description="The model whose scheme, width and heads are used; required for learned "
        "positions.",
    )
    length: Size = Field(description="The number of positions, from 0.")
    width: Size | None = Field(
        None, description="d_model of sinusoidal or d_head of rotary positions; an even number."
    )
    heads: Size | None = Field(None, description="The number of heads, each with a slope in ALiBi.")


class TokenAnswer(Answer):
    """One token of the text."""

    id: int
    text: str = Field(description="The characters of the token, including a leading space.")
    start: int = Field(description="The offset of its first character in the text.")
    end: int = Field(description="The offset after its last character.")
    word: int | None = Field(description="The number of its word; null for special tokens.")
    is_special: bool


class TokenizeAnswer(Answer):
    """The tokens of a text."""

    model: str
    tokens: list[TokenAnswer]


class TensorAnswer(Answer):
    """An array with named axes."""

    axes: list[str]
    shape: list[int] = Field(description="The shape of the whole array.")
    dtype: Literal["float32", "int32", "uint16"]
    scale: float | None = Field(None, description="For uint16: value = data × scale.")
    packed: Literal["lower-triangle"] | None = Field(
        None,
        description="The last two axes are packed into one: the numbers on and below the "
        "diagonal, row by row. If missing, the array is whole.",
    )
    fill: float | None = Field(
        None, description="The number above the diagonal of a packed array; null: -inf."
    )
    data: list[Any] = Field(
        description="Nested lists; null is -inf: masked scores, and the logits of ablated experts."
    )


class NextTokenAnswer(Answer):
    """The likeliest tokens after every position, or at it in an encoder, in descending order."""

    ids: TensorAnswer
    probabilities: TensorAnswer
    texts: list[list[str]]


class LogitLensAnswer(Answer):
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


class AlignmentAnswer(Answer):
    """The alignment of target words with source words."""

    weights: TensorAnswer = Field(description="Each row sums to 1.")
    links: TensorAnswer = Field(description="1 if two words are linked, else 0.")
    aligner: dict[str, int] = Field(
        description="The layer and the head that were read, and the shift: 0 for the row of the "
        "token itself, 1 for the row that predicts it. Empty: the mean over all layers and the "
        "requested heads."
    )


class AnalysesAnswer(Answer):
    """The requested analyses."""

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
    """One forward pass: the tokens and the requested arrays."""

    id: str = Field(description="A hash of model revision, precision, text and options.")
    model: str
    revision: str
    precision: str = Field(description="The dtype of the computation: float32 or bfloat16.")
    text: str
    tokens: list[TokenAnswer]
    target: str | None = Field(description="The decoder's text in an encoder–decoder.")
    target_tokens: list[TokenAnswer] | None = Field(description="The decoder's tokens.")
    heads: list[int] | None = Field(description="The heads along `head` axes; null: all, in order.")
    tensors: dict[str, TensorAnswer] = Field(description="By site name.")
    analyses: AnalysesAnswer
    timings: dict[str, float] = Field(
        description="Milliseconds by step; empty if the trace was computed before."
    )


class PositionalAnswer(Answer):
    """An encoding of positions. Sizes that the scheme does not use are null."""

    scheme: Scheme
    model: str | None
    length: int
    width: int | None
    heads: int | None
    tensors: dict[str, TensorAnswer] = Field(
        description="sinusoidal: encoding (position, d_model) and frequencies (pair), in radians "
        "per position. learned: encoding, or encoder.encoding and decoder.encoding of an "
        "encoder–decoder. rotary: angles, cos and sin (position, pair). alibi: slopes (head) and "
        "bias (head, query, key), on both sides of the diagonal.",
    )
