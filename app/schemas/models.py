"""Models: their cards, and what is known of their experts."""

from typing import Any

from pydantic import Field

from headlight.schemas.base import Answer


class SiteAnswer(Answer):
    """A place in the model whose tensor can be captured."""

    name: str
    axes: list[str]


class ExpertsAnswer(Answer):
    """A mixture of experts."""

    n_experts: int
    top_k: int
    layers: list[int]


class ExpertTokenAnswer(Answer):
    """A token that an expert takes."""

    text: str
    share: float = Field(description="Of its occurrences, how many go to the expert.")
    count: int = Field(description="How often it occurred.")


class ExpertTakesAnswer(Answer):
    """What one expert takes of the training text."""

    share: float = Field(description="Of all tokens; top_k / n_experts where all take as many.")
    kinds: dict[str, float] = Field(description="Of each kind of token.")
    tokens: list[ExpertTokenAnswer] = Field(
        description="What it takes most above its share, the surest first."
    )


class ExpertTokensAnswer(Answer):
    """What the experts take of the training text, counted by `headlight evaluate`."""

    text: list[str] = Field(description="The files.")
    tokens: int = Field(description="How many tokens of them were read.")
    least_count: int = Field(description="A token that occurred less often is not listed.")
    kinds: dict[str, float] = Field(description="The share of the tokens that is of each kind.")
    layers: dict[str, list[ExpertTakesAnswer]] = Field(description="By layer, expert by expert.")


class ExampleAnswer(Answer):
    """A text worth reading with a model."""

    title: str = Field(description="What there is to see in it.")
    text: str
    opens: dict[str, str | int] = Field(
        description="Where to look, in the fields of the page's address: `view`, `where`, `layer`, "
        "`head`, `query`, `source`; empty where nobody said."
    )


class ModelAnswer(Answer):
    """A model's card."""

    id: str
    title: str
    kind: str = Field(description="decoder, encoder or encoder-decoder.")
    n_layers: int = Field(description="Of each stack.")
    n_heads: int
    d_model: int
    d_ff: int
    vocab_size: int
    max_tokens: int
    positional: str
    n_kv_heads: int = Field(description="Heads with keys and values; n_heads: multi-head.")
    norm: str
    norm_place: str = Field(description="pre: before each part; post: after it.")
    activation: str
    has_mask: bool = Field(description="Whether it fills in what a typed [MASK] stands for.")
    moe: ExpertsAnswer | None = Field(description="null: the model is dense.")
    parameters: int
    revision: str
    licence: str
    trained_on: list[str]
    attribution: list[str]
    metrics: dict[str, Any]
    expert_tokens: ExpertTokensAnswer | None = Field(
        description="null: the model is dense, or nobody counted."
    )
    sites: list[SiteAnswer]
    analyses: list[str] = Field(description="The analyses that its sites allow.")
    examples: list[ExampleAnswer]


class UnavailableModel(Answer):
    """A folder that holds no usable model, and why."""

    id: str
    reason: str


class ModelsAnswer(Answer):
    """Every model that can be asked."""

    default: str
    models: list[ModelAnswer]
    unavailable: list[UnavailableModel]

    def __getitem__(self, model: str) -> ModelAnswer:
        """A model by its id.

        Raises:
            KeyError: there is no such model.
        """
        for found in self.models:
            if found.id == model:
                return found
        known = ", ".join(found.id for found in self.models)
        raise KeyError(f"there is no model {model!r}; there is {known}")
