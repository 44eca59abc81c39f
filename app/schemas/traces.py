"""Traces, tokens and encodings of positions: requests and answers."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from headlight.schemas import Answer, Request

MAX_GLOBS = 16
MAX_GLOB_CHARACTERS = 80
MAX_ANALYSES = 64
MAX_MODEL_ID_CHARACTERS = 64
MAX_POSITIONAL_SIZE = 2**20
MAX_EDITS = 16
MAX_NUMBERS = 256
MAX_IDS = 2**15
MAX_POSITIONS = 2**12
MAX_TEXTS = 64
MAX_VALUES = 2**15
LARGEST_VALUE = 1e6
VALUE_DEPTH = 4
MOST_TOP = 2**20
LEAST_BITS, MOST_BITS = 2, 8
MAX_RESOLUTION = 2**10
MAX_QUERIES = 256
MAX_TILE_BINS = 2**16
MAX_TILE_CELLS = 2**26
MAX_EDITED_TOKENS = 2**18
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0

ModelId = Annotated[str, Field(min_length=1, max_length=MAX_MODEL_ID_CHARACTERS)]
Glob = Annotated[str, Field(min_length=1, max_length=MAX_GLOB_CHARACTERS)]
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


class QuantizeRequest(Request):
    """Compute with weights rounded to 2^bits values, as a quantized copy of the model would."""

    kind: Literal["quantize"]
    bits: int = Field(ge=LEAST_BITS, le=MOST_BITS, description="The bits of each weight.")
    parts: Annotated[list[Glob], Field(min_length=1, max_length=MAX_GLOBS)] | None = Field(
        None,
        description="Names or globs of modules, such as `decoder.layers.0`, `*.self_attention`, "
        "`*.feed_forward` or `*.embedding`; a module stands for all matrices inside it. If "
        "omitted, every matrix.",
    )
    per: Literal["channel", "tensor"] = Field(
        "channel", description="A scale and zero point for each row of a matrix, or for all of it."
    )


def _shape(value: Any, n_axes: int = 0) -> tuple[int, ...]:
    """The shape of nested lists of numbers.

    Raises:
        ValueError: they are ragged, too deep or empty, or hold anything but numbers up to 1e6.
    """
    if isinstance(value, list):
        shapes = {_shape(row, n_axes + 1) for row in value} if n_axes < VALUE_DEPTH else set()
        if len(shapes) != 1:
            raise ValueError(
                f"give a number, or lists of equal lengths that nest to a depth of {VALUE_DEPTH}"
            )
        return (len(value), *shapes.pop())
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= LARGEST_VALUE:
        raise ValueError(f"the values must be numbers of at most {LARGEST_VALUE:g} in size")
    return ()


def _values(value: Any) -> Any:
    if (size := math.prod(_shape(value))) > MAX_VALUES:
        raise ValueError(f"{size:,} values are more than the {MAX_VALUES:,} that are allowed")
    return value


Values = Annotated[
    Any,
    AfterValidator(_values),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "array", "items": {}}]}),
]
Ids = Annotated[list[Number], Field(min_length=1, max_length=MAX_IDS)]
Positions = Annotated[list[Number], Field(min_length=1, max_length=MAX_POSITIONS)]
TraceKey = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]


class SourceRequest(Request):
    """Another trace of the same model, whose values an edit sets: activation patching."""

    text: str | None = Field(None, description="A text, which is read without edits.")
    target: str | None = Field(None, description="Its target in an encoder–decoder.")
    trace: TraceKey | None = Field(
        None, description="In place of a text, the id of a trace that is kept and holds the site."
    )
    positions: Positions | None = Field(
        None, description="The positions to read, as many as are set; if omitted, the same ones."
    )

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.text is None) == (self.trace is None) or (self.trace and self.target):
            raise PydanticCustomError("source", "send either text, with target, or trace")
        return self


class _SiteRequest(Request):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    site: Glob = Field(description="The name of one site, as in the model's card.")
    heads: Numbers | None = Field(None, description="If omitted, every head.")
    positions: Positions | None = Field(
        None,
        description="Positions in the text, along the first of the axes query, key and position "
        "that the site has; if omitted, every position.",
    )


_BROADCAST = (
    "A number, or nested lists whose axes are the last ones of the site; an axis of length 1 "
    "stands for all entries. With heads or positions, these axes have as many entries."
)


class SetRequest(_SiteRequest):
    """Replace the tensor of a site, masked numbers included, by values or by another trace's."""

    kind: Literal["set"]
    value: Values | None = Field(None, description=_BROADCAST)
    source: SourceRequest | None = Field(
        None, alias="from", description="In place of `value`, another trace."
    )

    @model_validator(mode="after")
    def _has_one_value(self) -> Self:
        if (self.value is None) == (self.source is None):
            raise PydanticCustomError("value", "send either value or from")
        return self


class PatchRequest(_SiteRequest):
    """Set the tensor of a site to its values in another pass: activation patching."""

    kind: Literal["patch"]
    source: SourceRequest = Field(alias="from", description="The text or trace to take them from.")


class AddRequest(_SiteRequest):
    """Add values to the tensor of a site; masked numbers stay masked."""

    kind: Literal["add"]
    value: Values = Field(description=_BROADCAST)


class ScaleRequest(_SiteRequest):
    """Multiply the tensor of a site by values; masked numbers stay masked."""

    kind: Literal["scale"]
    value: Values = Field(description=_BROADCAST)


class MeanRequest(_SiteRequest):
    """Replace the tensor of a site by its mean over all positions of the text, or over all heads.

    `heads` and `positions` choose what is replaced, not what is averaged. Masked numbers are
    neither counted nor replaced.
    """

    kind: Literal["mean"]
    over: Literal["positions", "heads"] = "positions"


SiteEditRequest = SetRequest | PatchRequest | AddRequest | ScaleRequest | MeanRequest
EditRequest = Annotated[
    HeadsOffRequest
    | ExpertsOffRequest
    | NoScalingRequest
    | TemperatureRequest
    | QuantizeRequest
    | SiteEditRequest,
    Field(discriminator="kind"),
]
EditRequests = Annotated[list[EditRequest], Field(max_length=MAX_EDITS)]
EDITS = (
    "Interventions in the pass. heads_off and experts_off ablate heads or experts, no_scaling "
    "omits 1/√d_head, temperature divides the attention scores, quantize rounds weights; their "
    "order has no effect. set, patch, "
    "add, scale and mean change the tensor of one site, after those, in the order of the list; "
    "captured tensors and all that follows in the pass see the result."
)


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


class TokenizeRequest(Request):
    """A text to split into tokens."""

    model_config = example(text="The cat sat on the mat.")

    ids: Ids | None = Field(
        None,
        description="In place of a text, token ids, which are read as they are: no special token "
        "is added.",
    )
    text: str | None = Field(None, validate_default=True, description="The text.")
    model: ModelId | None = Field(
        None, description="The model whose tokenizer is used; if omitted, the default model."
    )
    special_tokens: bool = Field(
        True,
        description="Whether the special tokens that the model expects are added to the text.",
    )

    @field_validator("text")
    @classmethod
    def _is_one_of_two(cls, text: str | None, info: ValidationInfo) -> str | None:
        ids = info.data.get("ids")
        if text is None and ids is None and "ids" in info.data:
            raise PydanticCustomError("missing", "Field required")
        if text is not None and ids is not None:
            raise PydanticCustomError("both", "send either text or ids")
        return text


class TraceOptions(Request):
    """The parts of a forward pass to return, and the changes to it."""

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
        "contribution of each head to the residual stream. head_norms: the norm of that "
        "contribution. head_circuits: the tokens that each head writes if it attends to a token of "
        "the text (OV), and those that the token looks for (QK), from the weights alone. "
        "logit_lens: the prediction of each layer. residual_stream: norms of the "
        "stream and of the contributions to it, and the input statistics of the layer norms. "
        "routing: the share of the tokens that each expert takes. reward: the reward of the text "
        "and the contribution of each token to it. alignment: the source words of "
        "each target word. logit_attribution: the share of each layer, head, expert and source "
        "token in a logit difference. strongest_path: the head, the head before it and the token "
        "that matter most to it, each edge ablated. patching: the share of each activation in what "
        "another text changes. saliency: gradient × input and erasure of each token. "
        "attention_by_distance: mean weights by distance. "
        "quantization_sensitivity: the change of the predictions, in KL and in loss, when one "
        "part's weights are rounded to 8, 4 or 2 bits. What an "
        "analysis reads need not be captured; it reads every layer, but for head_outputs and "
        "head_norms, and only the heads in `heads`. If omitted: next_token, unless capture is "
        "given.",
    )
    predictions: PredictionsRequest | None = Field(
        None, description="The tokens that next_token and logit_lens return."
    )
    logit_difference: LogitDifferenceRequest | None = Field(
        None,
        description="The prediction that logit_attribution, strongest_path, patching and saliency "
        "explain.",
    )
    patching: PatchingRequest | None = Field(
        None, description="The other text of the analysis patching."
    )
    edits: EditRequests | None = Field(
        None,
        description=EDITS + " A translation made because target is omitted is made without them, "
        "so that passes with and without edits read the same tokens.",
    )
    resolution: int | None = Field(
        None,
        ge=1,
        le=MAX_RESOLUTION,
        description="Return the weights of every attention, in `layers` if given, pooled to at "
        "most this many bins a side, as `mean_map` and `max_map`: of a text of T tokens each bin "
        "but the last has ceil(T / resolution). With a resolution or queries the text may be as "
        "long as `longest_text` of the model's card, the limit counts the numbers that are "
        "returned, and nothing else is returned unless it is named. While the trace is kept, "
        "`/traces/{id}/tile` shows any part of a map closer.",
    )
    queries: Annotated[list[Number], Field(min_length=1, max_length=MAX_QUERIES)] | None = Field(
        None,
        description="Positions whose exact rows are returned for every attention, in `layers` if "
        "given, as `rows`.",
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
    def is_observed(self) -> bool:
        """Whether maps or rows of attention are asked for, so that the text may be long."""
        return self.resolution is not None or self.queries is not None

    @property
    def wanted_analyses(self) -> list[AnalysisName]:
        """The analyses to compute, each once."""
        if self.analyses is None:
            return ["next_token"] if self.capture is None and not self.is_observed else []
        return sorted(set(self.analyses))

    @property
    def wanted_edits(self) -> list[str]:
        """The edits as JSON; sorted but for those of single sites, whose order has an effect."""
        found = [(edit, edit.model_dump_json()) for edit in self.edits or ()]
        ordered = [text for edit, text in found if isinstance(edit, SiteEditRequest)]
        return (
            sorted(text for edit, text in found if not isinstance(edit, SiteEditRequest)) + ordered
        )


class TraceRequest(TraceOptions, TokenizeRequest):
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


class TracesRequest(TraceOptions):
    """Several texts to trace alike."""

    model_config = example(
        texts=["The cat sat.", "The dog ran."], capture=["logits"], analyses=["next_token"]
    )

    texts: list[str] = Field(min_length=1, max_length=MAX_TEXTS, description="The texts.")
    model: ModelId | None = Field(
        None, description="The model that reads the texts; if omitted, the default model."
    )
    special_tokens: bool = Field(
        True,
        description="Whether the special tokens that the model expects are added to each text.",
    )

    @property
    def requests(self) -> list[TraceRequest]:
        """A request for each text."""
        options = {name: getattr(self, name) for name in type(self).model_fields if name != "texts"}
        return [TraceRequest(text=text, **options) for text in self.texts]


Part = Annotated[
    str, Field(pattern=r"^\d{1,7}:\d{1,7}$", description="As `0:512`: from the first to the last.")
]


class TileRequest(BaseModel):
    """A rectangle of the weights of one head of a trace that is kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attention: Glob = Field(description="Its path, as `decoder.layers.0.self_attention`.")
    head: Number = Field(description="The head.")
    queries: Part = Field(description="Rows, as `0:512`: from 0, without 512.")
    keys: Part = Field(description="Columns, as `0:512`.")
    resolution: int = Field(
        512,
        ge=1,
        le=MAX_TILE_BINS,
        description="The most bins a side; a rectangle of no more cells a side is exact.",
    )

    @property
    def rectangle(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first query and the one after the last, and the same of the keys."""
        (first, last), (begin, end) = (part.split(":") for part in (self.queries, self.keys))
        return (int(first), int(last)), (int(begin), int(end))


class TraceFormat(BaseModel):
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
    omitted: dict[str, str] = Field(description="What could not be split, and the reason.")
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
    resolution: int | None = Field(
        None, description="The greatest number of bins a side of `mean_map` and `max_map`."
    )
    queries: list[int] | None = Field(None, description="The positions of `rows`, in order.")
    tiles: list[str] | None = Field(
        None,
        description="The attentions of which `/traces/{id}/tile` shows any part while the trace is "
        "kept; null: no map was asked for.",
    )
    analyses: AnalysesAnswer
    timings: dict[str, float] = Field(
        description="Milliseconds by step; empty if the trace was computed before."
    )


class TileAnswer(Answer):
    """A rectangle of one head's weights."""

    id: str = Field(description="Of the trace.")
    attention: str
    head: int
    queries: list[int] = Field(description="The first, and the one after the last.")
    keys: list[int]
    tokens_per_bin: list[int] = Field(
        description="Of the queries and of the keys; the last bin may have fewer. [1, 1]: every "
        "number is an exact weight."
    )
    tensors: dict[str, TensorAnswer] = Field(
        description="`mean_map` and `max_map` (query_bin, key_bin); if exact, `mean_map` alone."
    )


class TracesAnswer(Answer):
    """The traces of several texts, in their order."""

    traces: list[TraceAnswer]


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
