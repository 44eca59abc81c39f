"""Models: their cards, and the tokens that their experts take."""

from typing import Any, Literal

from pydantic import Field

from headlight.forms import Answer
from headlight.model.config import Predicts


class SiteAnswer(Answer):
    """A named tensor of a forward pass that can be captured."""

    name: str
    axes: list[str]


class SoftmaxAnswer(Answer):
    """The terms of one attention's softmax, by which its weights follow from queries and keys.

        scores = softcap * tanh(scale * q.k / softcap) + bias, minus infinity at hidden keys
        weights = exp(scores) / (exp(sink) + the sum of exp(scores))

    Queries and keys are those of the sites `rotated_queries` and `rotated_keys` if there are any.
    """

    path: str = Field(description="`decoder.layers.0.self_attention`")
    is_causal: bool = Field(description="Whether a query sees no later key.")
    scale: float | None = Field(description="The factor of query times key; null: it is not known.")
    softcap: float | None = Field(description="null: the scores have no bound.")
    window: int | None = Field(
        description="A query sees only keys less than this far away; null: any."
    )
    chunk: int | None = Field(
        description="A query sees only the keys of its own chunk of this length; null: any."
    )
    has_bias: bool = Field(description="Whether the site `bias` is added to the scores.")
    has_sink: bool = Field(description="Whether a row sums to 1 only with the site `sink`.")
    sinks: list[float] | None = Field(
        description="The score of each head's sink; null: there is none, or it differs by text."
    )
    is_exact: bool = Field(description="Whether these terms give the scores of the model.")


class RotationAnswer(Answer):
    """The rotation of the queries of the first layer by their position p, pair by pair.

    rotated[first] = factor * (query[first] * cos(p * speed) - query[second] * sin(p * speed))
    rotated[second] = factor * (query[second] * cos(p * speed) + query[first] * sin(p * speed))
    """

    first: list[int] = Field(description="The first dimension of each pair.")
    second: list[int]
    speeds: list[float] = Field(description="Radians per position, by pair.")
    factor: float
    base: float | None = Field(
        description="Without `scaling` the speeds are base ** (-pair / pairs); null: not known."
    )
    scaling: dict[str, str | float | bool] = Field(
        description="The settings of the model's config that change the speeds for long texts; "
        "empty if nothing does."
    )
    n_tokens: int = Field(
        description="The length of the text whose rotation this is, where it depends on the length "
        "as in LongRoPE; 0: every length has the same."
    )


class ExpertsAnswer(Answer):
    """A mixture of experts."""

    n_experts: int
    top_k: int
    layers: list[int]


class ExpertTokenAnswer(Answer):
    """A token that an expert takes."""

    text: str
    share: float = Field(description="The share of its occurrences that go to the expert.")
    count: int = Field(description="The number of its occurrences.")


class ExpertTakesAnswer(Answer):
    """The tokens of the training text that one expert takes."""

    share: float = Field(
        description="The share of all tokens; top_k / n_experts if the load is even."
    )
    kinds: dict[str, float] = Field(description="The share of each kind of token.")
    tokens: list[ExpertTokenAnswer] = Field(
        description="The tokens it takes most above its share, in descending order."
    )


class ExpertTokensAnswer(Answer):
    """The tokens of the training text that the experts take, counted by `headlight evaluate`."""

    text: list[str] = Field(description="The files.")
    tokens: int = Field(description="The number of tokens that were read.")
    least_count: int = Field(description="Tokens that occurred less often are not listed.")
    kinds: dict[str, float] = Field(description="The share of each kind among the tokens.")
    layers: dict[str, list[ExpertTakesAnswer]] = Field(description="By layer, expert by expert.")


class HeadScoreAnswer(Answer):
    """A score of a head beside its control."""

    score: float = Field(description="A mean over many queries, from 0 to 1.")
    control: float = Field(
        description="The same mean for uniform attention; of `subject` and `antecedent`, for the "
        "other noun of the sentence; 0 for `broad` and `monotonic`."
    )


class StrongestAnswer(Answer):
    """A place in a sentence where a head attends strongly."""

    sentence: int = Field(description="The number of the sentence in `examples`.")
    query: int = Field(description="The index of the token that attends.")
    key: int = Field(description="The index of the token that it attends to.")
    weight: float
    query_span: list[int] = Field(description="The characters of the query: start and end.")
    key_span: list[int] = Field(description="The characters of the key: start and end.")


class HeadProfileAnswer(Answer):
    """The scores of one head over many sentences, and where it is strongest."""

    labels: list[str] = Field(description="The names of its scores that count, the highest first.")
    scores: dict[str, HeadScoreAnswer] = Field(
        description="`previous`, `current`, `next`: the weight on that token; `first_token`, "
        "`first_word` and, with both, `sink`; `punctuation`; `induction`: on what followed the "
        "same token before, and `repetition`, the same on repeated random tokens; `subject` of a "
        "verb and `antecedent` of a pronoun, on sentences made for them; `monotonic`; `broad`."
    )
    entropy: float = Field(description="The mean entropy of its weights, in bits.")
    distance: float = Field(description="The mean number of tokens between query and key.")
    cost: float | None = Field(
        None,
        description="The rise in bits a byte when the head writes nothing; null until it is "
        "measured.",
    )
    strongest: list[StrongestAnswer] = Field(
        description="The strongest weights that are not on a sink, one in a sentence and for two "
        "tokens."
    )


class SentenceAnswer(Answer):
    """A sentence of a profile."""

    text: str
    target: str = Field(description="Its translation; empty for a model of one stack.")


class FeederAnswer(Answer):
    """An earlier head that writes what a head reads."""

    name: str = Field(description="`0.1`, as in a circuit.")
    share: float = Field(description="Of the score's lead over the mean, or of what is read.")
    control: float = Field(description="The share of another head's context in its place.")


class FeedersAnswer(Answer):
    """The heads that feed a head, strongest first: each at least 5 % and twice its control."""

    queries: list[FeederAnswer]
    keys: list[FeederAnswer]
    values: list[FeederAnswer]


class HeadProfilesAnswer(Answer):
    """The profiles of all heads, measured by `headlight profile`."""

    text: list[str] = Field(description="The files.")
    sentences: int = Field(description="The number of sentences that were read.")
    tokens: int
    bits_per_byte: float | None = Field(
        None,
        description="With all heads, of what `cost` is measured on; null: it predicts no text.",
    )
    ablated_in: int | None = Field(
        None, description="In how many sentences heads were switched off for `cost`; null: in all."
    )
    controlled: dict[str, int] = Field(
        description="The number of made sentences behind `subject` and `antecedent`."
    )
    attentions: dict[str, list[HeadProfileAnswer]] = Field(
        description="By attention, `decoder.layers.0.self_attention`, head by head."
    )
    examples: list[SentenceAnswer]
    feeders: dict[str, list[FeedersAnswer]] | None = Field(
        None,
        description="By attention, head by head, over the cells of `strongest`; null: the profile "
        "is older, or the model's scores have no parts.",
    )


class ClaimAnswer(Answer):
    """A claim of an example, measured over many sentences."""

    claim: str = Field(description="Its name; `headlight evaluate` measures it.")
    measure: str = Field(description="The meaning of `score`.")
    score: float
    against: str = Field(description="The meaning of `control`.")
    control: float
    sentences: int = Field(description="The number of sentences, pairs or tokens.")


class ExampleAnswer(Answer):
    """A text that shows something about a model."""

    title: str = Field(description="A title that says what to see.")
    text: str
    claim: ClaimAnswer | None = Field(
        description="null: the example claims nothing, or it was not measured."
    )
    opens: dict[str, str | int] = Field(
        description="The place to open, as fields of the page's address: `view`, `where`, `layer`, "
        "`head`, `query`, `source`; may be empty."
    )


class ReplacementAnswer(Answer):
    """Characters that the model's tokenizer reads as another text."""

    characters: str = Field(description="Each of these characters is replaced.")
    text: str = Field(description="The text that replaces it.")


class NormalizationAnswer(Answer):
    """The changes that the tokenizer makes to a text; offsets point into the text as sent."""

    replacements: list[ReplacementAnswer] = Field(
        description="Typographic characters that the training text lacks."
    )
    lowers_capitals: bool = Field(
        description="Whether a text without a small letter is read in small letters."
    )


class AlignerAnswer(Answer):
    """The head of cross-attention that aligns words best, as it was measured."""

    layer: int
    head: int
    shift: int = Field(
        description="0: by the row of the word itself; 1: by the row that writes it."
    )


class StepAnswer(Answer):
    """A state of a training, which is the model `{model}@{step}`, and what was measured at it."""

    step: int
    tokens: int | None = Field(None, description="What it had read; null: it was not noted.")
    previous: list[list[float]] | None = Field(
        None,
        description="By layer and head, the mean weight on the token before, on held-out text; "
        "null, as the other figures: the state was not measured.",
    )
    induction: list[list[float]] | None = Field(
        None,
        description="By layer and head, the mean weight on what followed the token before, in "
        "lists of random tokens that are read twice.",
    )
    repeat_gain: float | None = Field(
        None, description="How much lower the loss of the second reading is, in nats a token."
    )
    early_loss: float | None = Field(
        None, description="In nats a token, in the first quarter of 128 tokens of held-out text."
    )
    late_loss: float | None = Field(None, description="In their last quarter.")
    head_labels: dict[str, list[dict[str, float]]] = Field(
        description="As those of the model, of the two scores; empty: the state was not measured."
    )


class PoolingAnswer(Answer):
    """The way from the last hidden states of the tokens to the vector of a text."""

    mode: str = Field(description="mean, cls (that of the first token), max or last.")
    is_normalized: bool = Field(description="Whether the vector has the length 1.")
    max_tokens: int | None = Field(description="Of a text; null: as many as the model reads.")


class ModelSummary(Answer):
    """A model's card without its sites, sources and figures."""

    id: str
    title: str
    kind: str = Field(description="decoder, encoder or encoder-decoder.")
    n_layers: int = Field(description="The number of layers of each stack.")
    n_heads: int
    d_model: int
    d_ff: int
    vocab_size: int
    max_tokens: int
    trained_tokens: int = Field(
        description="The length of the texts that it was trained on; what it does beyond is not "
        "learned."
    )
    longest_text: int = Field(
        description="The most tokens of a text of which `resolution` or `queries` are asked: more "
        "than max_tokens if its positions have no end."
    )
    is_endless: bool = Field(
        description="Whether the model reads texts of any length, beyond max_tokens."
    )
    positional: str
    n_kv_heads: int = Field(
        description="The number of heads with keys and values; n_heads if multi-head."
    )
    norm: str
    norm_place: str = Field(
        description="pre: before each sublayer; output: of what it writes; both; post: of the sum."
    )
    activation: str
    predicts: Predicts = Field(
        description="token: the next one, or the one at a mask. label or labels: of the text, one "
        "or several at once. token_label: of each token. score: a number for the text. answer: "
        "where it starts and ends in the text. vector: nothing; it turns texts into vectors."
    )
    labels: list[str] = Field(description="The names of the labels by their ids.")
    pooling: PoolingAnswer | None = Field(description="null: it makes no vector of a text.")
    has_mask: bool = Field(description="Whether it predicts the tokens behind [MASK] in a text.")
    moe: ExpertsAnswer | None = Field(description="null: the model is dense.")
    parameters: int
    memory_bytes: int = Field(description="The memory that its weights take when it is loaded.")
    state: Literal["loaded", "loading", "not_loaded"] = Field(
        description="The first request loads a model; poll this while it waits."
    )
    progress: float = Field(description="The share of loading that is done, from 0 to 1.")
    architecture: str = Field(
        description="headlight, or the class of a model of Hugging Face Transformers."
    )
    is_checked: bool = Field(
        description="Whether its sites are known; those of a foreign model are found by its "
        "self-check, when it is added or first loaded."
    )
    revision: str
    licence: str
    learned: str = Field(
        description="What it learned, in a few words: *English children's books*; may be empty."
    )
    normalization: NormalizationAnswer
    analyses: list[str] = Field(description="The analyses that its sites support.")
    has_atlas: bool = Field(
        False, description="Whether `GET /models/{model}/atlas` shows what its heads attend to."
    )
    head_labels: dict[str, list[dict[str, float]]] = Field(
        description="By attention, `decoder.layers.0.self_attention`, head by head: the labels of "
        "its profile with their scores, the highest first; empty if its heads were not measured."
    )
    aligner: AlignerAnswer | None = Field(
        description="null: no head was measured, or the model does not translate."
    )
    examples: list[ExampleAnswer]
    steps: list[StepAnswer] = Field(
        description="The states of its training that can be read as models; empty: none was kept."
    )


class CurveAnswer(Answer):
    """A figure of a training run by step."""

    name: str
    steps: list[int]
    values: list[float] = Field(
        description="The mean of the steps up to each, from the one before."
    )


class CurvesAnswer(Answer):
    """Some figures of a training run in one unit."""

    title: str
    unit: str
    lines: list[CurveAnswer]


class ModelAnswer(ModelSummary):
    """A model's card."""

    trained_on: list[str]
    began_from: str | None = Field(
        description="The model whose weights its training began with; null: random weights."
    )
    attribution: list[str]
    corpus: dict[str, Any] = Field(
        description="The figures of the training text that `headlight data report` measured; may "
        "be empty."
    )
    metrics: dict[str, Any]
    expert_tokens: ExpertTokensAnswer | None = Field(
        description="null: the model is dense, or they were not counted."
    )
    heads: HeadProfilesAnswer | None = Field(
        description="null: the heads of these weights were not measured."
    )
    curves: list[CurvesAnswer] = Field(
        description="The curves of the training run; empty if they were not kept."
    )
    sites: list[SiteAnswer]
    attentions: list[SoftmaxAnswer] = Field(
        description="The terms of the softmax of each attention; empty if `is_checked` is false."
    )
    rotation: RotationAnswer | None = Field(
        description="null: queries are not rotated, or not in pairs; see `omitted`."
    )
    features: list[str] = Field(
        description="The abilities beyond being traced: generate, translate, fill, logit_lens, "
        "head_outputs, chat."
    )
    checks: dict[str, float] = Field(
        description="The largest differences that the self-check of a foreign model measured: "
        "`weights` from the library's own attention, and others."
    )
    omitted: dict[str, str] = Field(
        description="The sites and features that it cannot offer, each with the reason."
    )


class UnavailableModel(Answer):
    """A folder without a usable model, and the reason."""

    id: str
    reason: str


class ModelsAnswer(Answer):
    """Every available model."""

    default: str
    models: list[ModelSummary]
    unavailable: list[UnavailableModel]
    memory_bytes: int | None = Field(
        description="The memory for the weights of all loaded models; null: it is not bounded."
    )

    def __getitem__(self, model: str) -> ModelSummary:
        """Return a model by its id.

        Raises:
            KeyError: there is no such model.
        """
        for summary in self.models:
            if summary.id == model:
                return summary
        known = ", ".join(summary.id for summary in self.models)
        raise KeyError(f"there is no model {model!r}; the models are {known}")
