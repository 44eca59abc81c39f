"""Traces, tokens and encodings of positions: requests and answers."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from headlight.analyses.analysis import AnalysisOptions
from headlight.analyses.analysis_registry import (
    ANALYSES,
    OPTIONS,
    AnalysesAnswer,
    AnalysisName,
    OptionsRequest,
    described,
    in_words,
)
from headlight.forms import (
    MAX_GLOBS,
    Answer,
    Glob,
    Ids,
    Number,
    Numbers,
    Request,
    TensorAnswer,
    option,
)
from headlight.model.checkpoint.steps import AT
from headlight.model.trace import Message
from headlight.schemas.edits import EDITS, KINDS, EditRequests

MAX_ANALYSES = 64
MAX_MODEL_ID_CHARACTERS = 64
MAX_POSITIONAL_SIZE = 2**20
MAX_TEXTS = 64
MAX_MESSAGES = 1_000
MAX_RESOLUTION = 2**10
MAX_QUERIES = 256
MAX_TILE_BINS = 2**16
MAX_TILE_CELLS = 2**26

ModelId = Annotated[str, Field(min_length=1, max_length=MAX_MODEL_ID_CHARACTERS)]
DType = Literal["float32", "uint16"]
Scheme = Literal["sinusoidal", "learned", "rotary", "alibi", "relative"]
Size = Annotated[int, Field(ge=1, le=MAX_POSITIONAL_SIZE)]


MODEL: dict[str, Any] = {
    "help": "A model's id, or its folder.",
    "metavar": "ID",
    "shown": "stories",
}
"""The words of the command line about the member ``model``."""


def example(**members: Any) -> ConfigDict:
    """Return the configuration of a request whose documentation shows these members."""
    return ConfigDict(json_schema_extra={"examples": [members]})


class OfModel(Request):
    """A request to a model, which may be taken from the middle of its training."""

    step: Annotated[int, Field(ge=0, lt=10**12)] | None = option(
        None,
        "The step of its training at which the model is taken; if omitted, the last. The answer "
        "names such a model `{model}@{step}`.",
        is_resolved=True,
        help="The model as it was at this step of its training.",
        metavar="N",
    )

    @model_validator(mode="before")
    @classmethod
    def _name_step(cls, sent: Any) -> Any:
        """Name the state of the training in place of model and step."""
        step, model = (sent.get("step"), sent.get("model")) if isinstance(sent, dict) else (0, 0)
        if type(step) is int and step >= 0 and isinstance(model, str):
            return {**sent, "model": f"{model}{AT}{step}", "step": None}
        return sent

    @field_validator("step")
    @classmethod
    def _has_model(cls, step: int | None) -> int | None:
        if step is not None:
            raise PydanticCustomError("step", "is the step of a model; name it in model")
        return step


class MessageRequest(Request):
    """A message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = Field(description="The words, which may be none.")


Messages = Annotated[list[MessageRequest], Field(min_length=1, max_length=MAX_MESSAGES)]


class TokenizeRequest(OfModel):
    """A text to split into tokens."""

    model_config = example(text="The cat sat on the mat.")

    ids: Ids | None = option(
        None,
        flag=None,
        description="In place of a text, token ids, which are read as they are: no special token "
        "is added.",
    )
    messages: Messages | None = option(
        None,
        flag=None,
        description="In place of a text, the messages of a conversation. The text is made of them "
        "by the model's own chat template, up to the answer unless one is the last message. Only "
        "the template makes special tokens: what is typed in a message is words. Models with the "
        "feature `chat` read them.",
    )
    text: str | None = option(None, "The text.", flag=None, validate_default=True)
    text_pair: str | None = option(
        None,
        help="A second text, for a model that reads pairs.",
        metavar="TEXT",
        description="A second text, which a model with the feature `pairs` reads after the first. "
        "The text of the answer holds both, each on its line, and `role` of a token says whose it "
        "is.",
    )
    model: ModelId | None = option(
        None,
        "The model whose tokenizer is used; if omitted, the default model.",
        is_resolved=True,
        **MODEL,
    )
    special_tokens: bool = option(
        True,
        "Whether the special tokens that the model expects are added to the text.",
        help="Leave out the special tokens that the model expects.",
    )
    read_special_tokens: bool = option(
        False,
        "Whether a special token that is typed in the text, such as `<|im_end|>`, is read as that "
        "token; if not, it is words.",
    )

    @field_validator("text")
    @classmethod
    def _is_one_of_three(cls, text: str | None, info: ValidationInfo) -> str | None:
        others = [info.data[name] for name in ("ids", "messages") if name in info.data]
        n_given = sum(each is not None for each in (text, *others))
        if n_given == 0 and len(others) == 2:
            raise PydanticCustomError("none", "is missing; send either text, ids or messages")
        if n_given > 1:
            raise PydanticCustomError("several", "send only one of text, ids and messages")
        return text

    @field_validator("text_pair")
    @classmethod
    def _has_first(cls, pair: str | None, info: ValidationInfo) -> str | None:
        if pair is not None and info.data.get("text") is None:
            raise PydanticCustomError("pair", "is the second of two; send the first as text")
        return pair

    @property
    def said(self) -> list[Message] | None:
        """The messages as the model reads them."""
        given = self.messages
        return None if given is None else [Message(each.role, each.content) for each in given]


class TraceOptions(OptionsRequest):
    """The parts of a forward pass to return, and the changes to it."""

    capture: list[Glob] | None = option(
        None,
        is_resolved=True,
        selects=True,
        help="A site or a glob; repeat it for more.",
        metavar="SITE",
        max_length=MAX_GLOBS,
        description="Site names or globs; a model's card lists its sites. If omitted: attention "
        "weights, positional encoding, router probabilities, expert indices and weights.",
    )
    layers: Numbers | None = option(
        None,
        is_resolved=True,
        selects=True,
        help="Only this layer; repeatable.",
        metavar="LAYER",
        description="Of the sites in layers, only those in these layers, in both stacks of an "
        "encoder–decoder.",
    )
    heads: Numbers | None = option(
        None,
        "Of arrays with a head axis, only these heads, in this order.",
        selects=True,
        help="Only this head; repeatable.",
        metavar="HEAD",
    )
    analyses: list[AnalysisName] | None = option(
        None,
        normal="wanted_analyses",
        selects=True,
        help=f"A quantity computed from the trace: {in_words(list(ANALYSES), 'or')}; repeatable.",
        metavar="NAME",
        max_length=MAX_ANALYSES,
        description=described(),
    )
    edits: EditRequests | None = option(
        None,
        normal="wanted_edits",
        help="Changes to the pass, as the API takes them: "
        """'[{"kind": "heads_off", "heads": [3], "layer": 1}]'. """
        f"The kinds: {', '.join(KINDS)}.",
        description=EDITS + " A translation made because target is omitted is made without them, "
        "so that passes with and without edits read the same tokens.",
    )
    resolution: int | None = option(
        None,
        selects=True,
        help="Trace the mean and the maximum of attention in at most this many bins a side, of a "
        "text of any length.",
        metavar="BINS",
        ge=1,
        le=MAX_RESOLUTION,
        description="Return the weights of every attention, in `layers` if given, pooled to at "
        "most this many bins a side, as `mean_map` and `max_map`: of a text of T tokens each bin "
        "but the last has ceil(T / resolution). With a resolution or queries the text may be as "
        "long as `longest_text` of the model's card, the limit counts the numbers that are "
        "returned, and nothing else is returned unless it is named. `capture` may name the numbers "
        "of each row beside the maps: its `entropy` in nats (divided by ln 2, the bits that the "
        "page shows), its weight on the `first_token`, its `mean_distance` in tokens and its "
        "`logsumexp`. While the trace is kept, `/traces/{id}/tile` shows any part of a map closer.",
    )
    queries: Annotated[list[Number], Field(min_length=1, max_length=MAX_QUERIES)] | None = option(
        None,
        selects=True,
        help="Trace the exact row of attention of this position; repeatable.",
        metavar="POSITION",
        description="Positions whose exact rows are returned for every attention, in `layers` if "
        "given, as `rows`.",
    )
    dtype: DType = option(
        "float32",
        changes_numbers=False,
        help="float32, or uint16 for attention weights in half the bytes.",
        description="uint16 sends numbers between 0 and 1 as value/65535: half the bytes, with "
        "an error of at most 8e-6 in each number.",
    )
    triangle: bool = option(
        False,
        changes_numbers=False,
        help="Leave out the part of causal arrays above the diagonal.",
        description="Send arrays of causal attention without the part above the diagonal, which "
        "is 0 or masked: row after row, T(T + 1)/2 numbers in place of T². In NumPy: "
        "`full = np.full(shape, fill); full[..., *np.tril_indices(shape[-1])] = data`. Other "
        "arrays are sent whole.",
    )

    @property
    def is_observed(self) -> bool:
        """True if maps or rows of attention are asked for, so that the text may be long."""
        return self.resolution is not None or self.queries is not None

    @property
    def options(self) -> dict[type[AnalysisOptions], AnalysisOptions]:
        """The options of analyses that are given, by their type."""
        given = {kind: getattr(self, name) for name, kind in OPTIONS.items()}
        return {kind: options for kind, options in given.items() if options is not None}

    @property
    def wanted_analyses(self) -> list[AnalysisName]:
        """The analyses to compute, each once."""
        if self.analyses is None:
            return ["next_token"] if self.capture is None and not self.is_observed else []
        return sorted(set(self.analyses))

    @property
    def wanted_edits(self) -> list[str]:
        """The edits as JSON; sorted but for those of single sites, whose order has an effect."""
        listed = [(edit.is_ordered, edit.model_dump_json()) for edit in self.edits or ()]
        ordered = [text for is_ordered, text in listed if is_ordered]
        return sorted(text for is_ordered, text in listed if not is_ordered) + ordered


class TraceRequest(TraceOptions, TokenizeRequest):
    """A text to trace, and the parts of its forward pass to return."""

    model_config = example(
        text="The cat sat on the mat.",
        capture=["decoder.layers.*.self_attention.weights"],
        layers=[0, 1],
        heads=[0],
    )

    model: ModelId | None = option(
        None,
        "The model that reads the text; if omitted, the default model.",
        is_resolved=True,
        **MODEL,
    )
    target: str | None = option(
        None,
        help="The text that a translator's decoder reads.",
        shown="the model's translation",
        description="The decoder's input in an encoder–decoder; if omitted, the model's own "
        "translation of the text. Other models have none.",
    )


class TracesRequest(TraceOptions, OfModel):
    """Several texts to trace alike."""

    model_config = example(
        texts=["The cat sat.", "The dog ran."], capture=["logits"], analyses=["next_token"]
    )

    ids: Annotated[list[Ids], Field(min_length=1, max_length=MAX_TEXTS)] | None = Field(
        None, description="In place of texts, the token ids of each, which are read as they are."
    )
    texts: Annotated[list[str], Field(min_length=1, max_length=MAX_TEXTS)] | None = Field(
        None, validate_default=True, description="The texts."
    )
    targets: list[str] | None = Field(
        None,
        max_length=MAX_TEXTS,
        description="The decoder's input for each text in an encoder–decoder; if omitted, the "
        "model's own translations.",
    )
    model: ModelId | None = option(
        None, "The model that reads the texts; if omitted, the default model.", is_resolved=True
    )
    special_tokens: bool = Field(
        True,
        description="Whether the special tokens that the model expects are added to each text.",
    )

    @field_validator("texts")
    @classmethod
    def _is_one_of_two(cls, texts: list[str] | None, info: ValidationInfo) -> list[str] | None:
        if "ids" in info.data and (texts is None) == (info.data["ids"] is None):
            raise PydanticCustomError("texts_or_ids", "send either texts or ids")
        return texts

    @field_validator("targets")
    @classmethod
    def _has_one_for_each_text(
        cls, targets: list[str] | None, info: ValidationInfo
    ) -> list[str] | None:
        n_texts = len(info.data.get("texts") or info.data.get("ids") or ())
        if targets is not None and n_texts not in (0, len(targets)):
            raise ValueError(f"there are {len(targets)} for {n_texts} texts; send as many")
        return targets

    @property
    def requests(self) -> list[TraceRequest]:
        """A request for each text."""
        names = type(self).model_fields.keys() - {"ids", "texts", "targets"}
        options = {name: getattr(self, name) for name in names}
        member = "text" if self.ids is None else "ids"
        texts: Sequence[Any] = (self.texts if self.ids is None else self.ids) or ()
        targets: Sequence[str | None] = self.targets or [None] * len(texts)
        return [
            TraceRequest(**{member: text}, target=target, **options)
            for text, target in zip(texts, targets, strict=True)
        ]


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
        "and relative positions.",
    )
    length: Size = Field(description="The number of positions, from 0.")
    width: Size | None = Field(
        None, description="d_model of sinusoidal or d_head of rotary positions; an even number."
    )
    heads: Size | None = Field(None, description="The number of heads, each with a slope in ALiBi.")


class TokenAnswer(Answer):
    """One token of the text."""

    id: int
    text: str = Field(
        description="What it spells, with a leading space; a byte of a character as \\xf0."
    )
    start: int = Field(description="The offset of its first character in the text.")
    end: int = Field(description="The offset after its last character.")
    word: int | None = Field(description="The number of its word; null for special tokens.")
    is_special: bool
    role: str | None = Field(
        None,
        description="Of a conversation: the role of the message whose words it spells, or "
        "`template`, if the chat template added it. Of a pair: `first`, `second` or `template`.",
    )


class TokenizeAnswer(Answer):
    """The tokens of a text."""

    model: str = Field(description="The id of the model whose tokenizer was used.")
    tokens: list[TokenAnswer]


class TraceAnswer(Answer):
    """One forward pass: the tokens and the requested arrays."""

    id: str = Field(description="A hash of model revision, precision, text and options.")
    model: str = Field(description="The id of the model that read the text.")
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
    model: str | None = Field(description="The id of the model it was taken from; null: none.")
    length: int = Field(
        description="The number of positions. Where a model's rotation depends on the length of "
        "the text, it is that of a text of this length."
    )
    width: int | None
    heads: int | None
    tensors: dict[str, TensorAnswer] = Field(
        description="sinusoidal: encoding (position, d_model) and frequencies (pair), in radians "
        "per position. learned: encoding, or encoder.encoding and decoder.encoding of an "
        "encoder–decoder. rotary: angles, cos and sin (position, pair). alibi: slopes (head) and "
        "bias (head, query, key), on both sides of the diagonal. relative: bias."
    )
