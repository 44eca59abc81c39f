"""The cards of models as they are sent: in short for a list, whole, and their prose as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from headlight.analyses.analysis_registry import available
from headlight.model.checkpoint.card import ModelCard, aligner_of, claims, measured_claim
from headlight.model.checkpoint.profile import LEAST_SCORE, head_labels
from headlight.model.checkpoint.steps import AT
from headlight.model.description import Description
from headlight.models.model_registry import ModelStatus
from headlight.schemas.models import (
    AlignerAnswer,
    ClaimAnswer,
    ExampleAnswer,
    ExpertsAnswer,
    ModelAnswer,
    ModelSummary,
    NormalizationAnswer,
    PoolingAnswer,
    ReplacementAnswer,
    SiteAnswer,
    SoftmaxAnswer,
    StepAnswer,
)

STATE_LABELS = ("induction", "previous")


def model_summary(description: Description, status: ModelStatus) -> ModelSummary:
    """Return a model's card without its sites, sources and figures."""
    config, card = description.config, description.card
    step = description.id.rpartition(AT)[2]
    own = next((state for state in description.steps if str(state["step"]) == step), {})
    return ModelSummary(
        id=description.id,
        title=card.title,
        kind=config.kind,
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        d_model=config.d_model,
        d_ff=config.d_ff,
        vocab_size=config.vocab_size,
        max_tokens=config.max_tokens,
        trained_tokens=description.trained_tokens,
        longest_text=description.longest_text,
        is_endless=description.is_endless,
        positional=config.positional,
        n_kv_heads=config.n_groups,
        norm=config.norm,
        norm_place=config.norm_place,
        activation=config.activation,
        predicts=description.predicts,
        labels=list(description.labels),
        pooling=None
        if description.pooling is None
        else PoolingAnswer.model_validate(description.pooling, from_attributes=True),
        has_mask=config.kind == "encoder" and description.predicts == "token",
        moe=ExpertsAnswer.model_validate(config.moe, from_attributes=True) if config.moe else None,
        parameters=description.n_parameters,
        architecture=description.architecture,
        **status._asdict(),
        revision=description.revision,
        licence=card.licence,
        learned=card.learned,
        normalization=NormalizationAnswer(
            replacements=[
                ReplacementAnswer(**replacement._asdict())
                for replacement in description.normalization.replacements
            ],
            lowers_capitals=description.normalization.lowers_capitals,
        ),
        analyses=available(description),
        head_labels=head_labels(description.heads)
        if description.heads
        else _labels(description, own),
        aligner=AlignerAnswer(**aligner) if (aligner := aligner_of(card)) else None,
        examples=[example_answer(card, title) for title in card.examples],
        steps=[
            StepAnswer(**state, head_labels=_labels(description, state))
            for state in description.steps
        ],
    )


def _labels(
    description: Description, state: Mapping[str, Any]
) -> dict[str, list[dict[str, float]]]:
    """Return the labels of a state of a training by the scores that were measured at it."""
    if not all(name in state for name in STATE_LABELS):
        return {}
    layers = zip(*(state[name] for name in STATE_LABELS), strict=True)
    return {
        facts.path: [
            {
                name: score
                for name, score in zip(STATE_LABELS, scores, strict=True)
                if score >= LEAST_SCORE
            }
            for scores in zip(*of_layer, strict=True)
        ]
        for facts, of_layer in zip(description.attentions, layers, strict=False)
    }


def model_answer(description: Description, status: ModelStatus) -> ModelAnswer:
    """Return a model's card as it is sent; sites have no batch axis."""
    card = description.card
    facts = dict(model_summary(description, status)) | {
        "trained_on": card.trained_on,
        "began_from": str(card.training.get("began_from", "")).rpartition("/")[2] or None,
        "attribution": card.attribution,
        "corpus": card.corpus,
        "metrics": card.metrics,
        "expert_tokens": card.expert_tokens or None,
        "heads": _heads(description),
        "curves": (description.curves or {}).get("pictures", []),
        "sites": [
            SiteAnswer(name=site.name, axes=[axis for axis in site.axes if axis != "batch"])
            for site in description.sites
        ],
        "attentions": [
            SoftmaxAnswer.model_validate(facts, from_attributes=True)
            for facts in description.attentions
        ],
        "rotation": description.rotation and vars(description.rotation),
        "features": sorted(description.features),
        "checks": description.checks,
        "omitted": description.omitted,
    }
    return ModelAnswer.model_validate(facts)


def _heads(description: Description) -> dict[str, Any] | None:
    profile = description.heads
    return None if profile is None else {k: v for k, v in profile.items() if k != "revision"}


def example_answer(card: ModelCard, title: str) -> ExampleAnswer:
    """Return an example of a card, where to look, and its claim as it was measured."""
    example = card.examples[title]
    if isinstance(example, str):
        return ExampleAnswer(title=title, text=example, claim=None, opens={})
    figures = measured_claim(card, title)
    measure, against = claims()[figures["claim"]] if figures else ("", "")
    return ExampleAnswer(
        title=title,
        text=example.text,
        claim=ClaimAnswer(**figures, measure=measure, against=against) if figures else None,
        opens=example.opens,
    )


@lru_cache(maxsize=64)  # as many as there are models; a hostile one takes seconds
def prose_of(markdown: str) -> str:
    """Render Markdown as HTML, its headings one level below that of the page."""
    from markdown_it import MarkdownIt  # 20 ms of a start, which only a card needs

    # A card may be a stranger's: its tags are text, and it brings no pictures from elsewhere.
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = reader.parse(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
    return str(reader.renderer.render(tokens, reader.options, {}))
