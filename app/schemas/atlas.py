"""Atlases: what the heads of a model attend to over a corpus, and questions about it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from headlight.forms import Answer
from headlight.model.atlas.tags import TAGS, tag_of

MAX_SENTENCES = 100
MAX_HEAD = 32_767
MAX_WORD = 100

Word = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD)]


class AtlasHeadRequest(BaseModel):
    """One head of an atlas."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    attention: Path = Field(description="Its path, as `decoder.layers.0.self_attention`.")
    head: int = Field(ge=0, le=MAX_HEAD, description="The head.")


class AtlasSpaceRequest(AtlasHeadRequest):
    """The vectors of a head that are drawn."""

    kind: Literal["reads", "values", "outputs"] = Field(description="Which of its vectors.")


class AtlasSearchRequest(BaseModel):
    """A question to an atlas: queries and keys by word and part of speech."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    from_word: Word | None = Field(None, description="The word of the query, in any case.")
    to_word: Word | None = Field(None, description="The word of the key.")
    from_tag: Word | None = Field(
        None,
        description=f"The query's part of speech: {', '.join(TAGS)}, or a plain name, as pronoun.",
    )
    to_tag: Word | None = Field(None, description="The key's part of speech.")
    same_word: bool = Field(False, description="Only from a word to the same word elsewhere.")
    attention: Path | None = Field(None, description="Only this attention, by its path.")
    head: int | None = Field(None, ge=0, le=MAX_HEAD, description="Only this head.")
    n_sentences: int = Field(
        10, ge=0, le=MAX_SENTENCES, description="How many sentences to return, at most."
    )

    @field_validator("from_tag", "to_tag")
    @classmethod
    def _known_tag(cls, tag: str | None) -> str | None:
        return None if tag is None else tag_of(tag)


class AtlasLikeRequest(BaseModel):
    """An example of what a head does: from one word of a text to another."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
    query: int = Field(ge=0, description="A character of the word that attends.")
    key: int = Field(ge=0, description="A character of the word that it reads.")


class AtlasMatchesRequest(BaseModel):
    """The model to compare with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    other: Word = Field(description="The other model's id.")


class AtlasAttentionAnswer(Answer):
    """One attention of an atlas."""

    n_heads: int
    n_edges: int = Field(description="The weights that are kept.")


class AtlasAnswer(Answer):
    """The text that an atlas was made of, and its size."""

    text: list[str] = Field(description="The names of the files that were read.")
    sentences: int
    tokens: int
    edges: int = Field(description="The attention weights that are kept.")
    threshold: float = Field(description="The least weight that is kept.")
    attentions: dict[str, AtlasAttentionAnswer] = Field(description="By path.")
    tags: list[str] = Field(description="The parts of speech that a search can name.")
    no_search: str | None = Field(description="The reason against a search; null: it can be asked.")


class AtlasPairAnswer(Answer):
    """A word or a tag of the query, one of the key, and how many weights have both."""

    query: str
    key: str
    count: int


class AtlasDistanceAnswer(Answer):
    """A distance, query minus key in tokens, and how many weights have it."""

    distance: int
    count: int


class AtlasSentenceAnswer(Answer):
    """A weight in a sentence of the corpus."""

    text: str
    target: str = Field(description="Of a translator; otherwise empty.")
    query: int = Field(description="The position of the query token.")
    key: int
    query_word: str
    key_word: str
    query_span: list[int] = Field(
        description="The first character and the one after the last, in the target if the decoder "
        "reads one."
    )
    key_span: list[int] = Field(description="As `query_span`; in the text for cross-attention.")
    weight: float


class AtlasHeadAnswer(Answer):
    """The weights of one head over the corpus."""

    edges: int = Field(description="The weights that are kept.")
    pairs: list[AtlasPairAnswer] = Field(
        description="The commonest words of query and key, without a token with itself."
    )
    distances: list[AtlasDistanceAnswer] = Field(
        description="Distances beyond 24 tokens count as 24."
    )
    tags: list[AtlasPairAnswer] = Field(description="The parts of speech of query and key.")
    sentences: list[AtlasSentenceAnswer] = Field(
        description="The strongest weights, one of each sentence and pair of words."
    )


class AtlasDecileAnswer(Answer):
    """A tenth of the sentences, by the head's largest weight in each."""

    low: float = Field(description="The least of the largest weights; 0: below the threshold.")
    high: float
    sentence: AtlasSentenceAnswer = Field(
        description="The one in the middle; of weight 0 its words and spans are empty."
    )


class AtlasWordAnswer(Answer):
    """A word and its part of speech, with its shares."""

    word: str
    tag: str
    share: float = Field(description="Of the head's weights, without those of a token on itself.")
    base: float = Field(description="Of all tokens of the corpus.")


class AtlasSpreadAnswer(Answer):
    """How strongly a head attends over the sentences of a corpus."""

    sentences: int
    silent: int = Field(description="In how many no weight reaches the threshold of the atlas.")
    deciles: list[AtlasDecileAnswer] = Field(description="From the weakest to the strongest.")
    queries: list[AtlasWordAnswer] = Field(description="The commonest words that it attends from.")
    keys: list[AtlasWordAnswer] = Field(description="The commonest words that it attends to.")


class AtlasRankedAnswer(Answer):
    """A head with its weights that fit a question."""

    attention: str
    head: int
    count: int = Field(description="Weights of the head from such queries to such keys.")
    of: int = Field(description="Weights of the head from such queries to any key.")
    share: float = Field(description="count / of")
    low: float = Field(description="The lower end of the share's interval at 95 %, after Wilson.")
    high: float
    base: float | None = Field(
        description="The share of such keys among all that such queries see; null: no such query."
    )
    lift: float | None = Field(description="share / base; null for fewer than 20 weights.")
    lift_low: float | None
    lift_high: float | None
    held_out: float | None = Field(
        description="The lift in the half of the sentences that the ranking did not see; null: too "
        "few weights."
    )


class AtlasPlaceAnswer(AtlasSentenceAnswer):
    """A weight that fits a question, and where its sentence is."""

    attention: str
    head: int
    file: str = Field(description="The name of the file.")
    offset: int = Field(description="The byte of the sentence's line, or its row.")


class AtlasSearchAnswer(Answer):
    """The heads that have such weights, the highest lift first, and sentences of the first five."""

    heads: list[AtlasRankedAnswer]
    sentences: list[AtlasPlaceAnswer]


class AtlasMatchAnswer(Answer):
    """A head of one model and the head of another that does the most alike."""

    attention: str
    head: int
    other_attention: str
    other_head: int
    similarity: float = Field(description="1: both attend alike by every statistic; 0: nothing.")
    similar_by_chance: float = Field(
        description="That to the counterpart of the next head of the list."
    )
    moved: float | None = Field(
        description="The share of the head's attention that is elsewhere in the other head, over "
        "the texts; null: the models do not cut them alike."
    )
    by_chance: float | None = Field(description="`moved` to the counterpart of the next head.")


class AtlasPartedAnswer(Answer):
    """A text, and the share of all heads' attention that moved in it."""

    text: str
    moved: float
    by_chance: float


class AtlasMatchesAnswer(Answer):
    """Every head of one model with one of another, so that all together are most alike."""

    other: str = Field(description="The other model's id.")
    matches: list[AtlasMatchAnswer]
    n_texts: int = Field(description="The texts in which attention was compared, if any.")
    texts: list[AtlasPartedAnswer] = Field(description="Those in which most of it moved.")
