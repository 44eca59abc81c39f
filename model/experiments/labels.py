"""Why a label: a classifier of tense, trained in seconds, and the sum behind each of its labels.

    logit(past) − logit(present) = Σ what each token gives through each head + own + network + bias

Half of the sentences have a second verb of any tense, and each ends with an adverb that agrees with
the label in a share of the training texts: a shortcut. The sum is exact for one layer, with the
scale of the last norm held (`model.analysis.logit_attribution`); a pass without a head says what
the head causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from headlight.model.config import TransformerConfig
from headlight.model.experiments.experiment import Arrays, Cost, Experiment, Parameters
from headlight.model.experiments.training import descend, frames_of
from headlight.model.norms import LayerNorm
from headlight.model.transformer import Transformer, initialise

LABELS = ("past", "present")
NOUN_WORDS = "king queen boy girl fox bear man woman miller prince bird horse"
VERB_WORDS = (
    "ran/runs sang/sings sat/sits slept/sleeps wept/weeps spoke/speaks ate/eats swam/swims "
    "wrote/writes fell/falls rose/rises drank/drinks stood/stands dug/digs"
)
NOUNS = NOUN_WORDS.split()
VERBS = tuple(pair.split("/") for pair in VERB_WORDS.split())
ADVERBS = (("yesterday", "once", "formerly"), ("today", "now", "nowadays"))
ASKS = "[label]"
"""The first token, at which the label is read."""
OTHER = ("the", "who")
WORDS = (ASKS, *LABELS, *OTHER, *NOUNS, *(v for pair in VERBS for v in pair), *sum(ADVERBS, ()))
ID = {word: at for at, word in enumerate(WORDS)}
PAD = ID[ASKS]
MOST_WORDS, N_HEADS, N_TESTED, BATCH = 9, 4, 200, 32
CONFIG = TransformerConfig(
    n_layers=1,
    n_heads=N_HEADS,
    d_model=32,
    d_ff=64,
    vocab_size=len(WORDS),
    max_tokens=MOST_WORDS,
    kind="encoder",
    positional="learned",
)
SITE = "encoder.layers.0"
CAPTURED = (
    *("residual.before", "residual.after", "feed_forward.output"),
    *("self_attention.values", "self_attention.weights", "self_attention.context"),
)


class Labels(Parameters):
    """The parameters of `labels`."""

    text: str = Field(
        "the boy who wept sings yesterday",
        min_length=1,
        max_length=120,
        description="The sentence whose label is explained, of the words that are trained.",
    )
    agrees: float = Field(
        1.0, ge=0.5, le=1.0, description="Share of training texts whose adverb fits the verb."
    )
    steps: int = Field(200, ge=1, le=1000, description="Training steps, of 32 texts each.")

    @model_validator(mode="after")
    def _has_known_words(self) -> Self:
        words = words_of(self.text)
        if unknown := [word for word in words if word not in ID]:
            raise ValueError(
                f"the classifier knows {len(WORDS)} words, and not {unknown[0]!r}; choose of: "
                + " ".join(WORDS[len(LABELS) + 1 :])
            )
        if len(words) >= MOST_WORDS:
            raise ValueError(f"a sentence has at most {MOST_WORDS - 1} words, not {len(words)}")
        return self


def words_of(text: str) -> list[str]:
    """Return the words of a sentence, in small letters and without a full stop."""
    return text.lower().replace(".", " ").split()


class Drawn(NamedTuple):
    """Sentences: ids, tokens, labels, the places of verb and adverb, and whether both agree."""

    ids: Int[Tensor, "text token"]
    is_token: Tensor
    label: Int[Tensor, " text"]
    verb: Int[Tensor, " text"]
    adverb: Int[Tensor, " text"]
    agrees: Tensor


def draw(rng: np.random.Generator, n_texts: int, share: float) -> Drawn:
    """Draw sentences whose adverb fits the verb in a share of them."""
    rows, facts = [], []
    for _ in range(n_texts):
        label, fits = int(rng.integers(2)), bool(rng.random() < share)
        tense = label if fits else 1 - label
        noun, verb, other = rng.integers(len(NOUNS)), *rng.choice(len(VERBS), 2, replace=False)
        clause = ["who", VERBS[other][rng.integers(2)]] if rng.random() < 0.5 else []
        words = ["the", NOUNS[noun], *clause, VERBS[verb][label], ADVERBS[tense][rng.integers(3)]]
        rows.append([PAD, *(ID[word] for word in words)])
        facts.append((label, len(words) - 1, len(words), fits))
    ids = torch.full((n_texts, MOST_WORDS), PAD)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
    lengths = torch.tensor([len(row) for row in rows])
    label, verb, adverb, agrees = torch.tensor(facts).T
    return Drawn(ids, torch.arange(MOST_WORDS) < lengths[:, None], label, verb, adverb, agrees == 1)


def run(parameters: Labels) -> Iterator[Arrays]:
    """Train the classifier, measure it on held-out sentences, and explain one label."""
    model = Transformer(CONFIG)
    initialise(model, torch.Generator().manual_seed(parameters.seed))
    rng = np.random.default_rng([parameters.seed, 0])
    held = draw(np.random.default_rng([parameters.seed, 1]), N_TESTED, 0.5)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=5e-3, weight_decay=0.0)

    def loss() -> Tensor:
        texts = draw(rng, BATCH, parameters.agrees)
        return F.cross_entropy(logits_of(model, texts.ids, texts.is_token), texts.label)

    for steps in frames_of(parameters.steps):
        losses = list(descend(weights, loss, len(steps), optimizer))
        with torch.no_grad():
            right = logits_of(model, held.ids, held.is_token).argmax(1) == held.label
        yield {
            "step": np.array(steps) + 1,
            "loss": np.array(losses),
            "frame": np.array([steps.stop]),
            "fit": np.array(["fits", "misleads"]),
            "accuracy": np.array(
                [[right[held.agrees == fits].float().mean().item()] for fits in (True, False)]
            ),
        }
    with torch.no_grad():
        yield {**_explained(model, words_of(parameters.text)), **_over_held(model, held)}


def logits_of(model: Transformer, ids: Tensor, is_token: Tensor) -> Float[Tensor, "text label"]:
    """Return the logits of the labels, which are words of the vocabulary, at the first token."""
    logits: Tensor = model(ids, is_token=is_token).logits[:, 0, 1 : 1 + len(LABELS)]
    return logits


class Sums(NamedTuple):
    """logit(past) − logit(present) as a sum over parts, by text."""

    by_key: Float[Tensor, "text head token"]
    own: Float[Tensor, " text"]
    network: Float[Tensor, " text"]
    bias: float
    logits: Float[Tensor, "text label"]


def sums_of(model: Transformer, ids: Tensor, is_token: Tensor) -> Sums:
    """Split the difference of the two logits of each text, in float64."""
    sites = [f"{SITE}.{name}" for name in CAPTURED]
    with model.capture_sites(sites) as captured:
        logits = logits_of(model, ids, is_token)
    before, after, written, values, weights, _ = (captured[site].double() for site in sites)
    norm, spread = model.encoder.norm, after[:, 0].var(-1, correction=0)
    assert isinstance(norm, LayerNorm)
    apart = (model.vectors[1] - model.vectors[2]).double()
    scaled = apart * norm.scale.double()
    centred = scaled - scaled.mean()
    direction = centred / (spread + norm.epsilon).sqrt()[:, None]  # text d_model
    output = model.weights()[f"{SITE}.self_attention.output_projection.weight"].double()
    rows: Tensor = output.T.unflatten(0, (N_HEADS, -1))  # head d_head d_model
    read = torch.einsum("bhkd,hdm,bm->bhk", values, rows, direction)
    return Sums(
        weights[:, :, 0] * read,
        (before[:, 0] * direction).sum(-1),
        (written[:, 0] * direction).sum(-1),
        float(norm.shift.double() @ apart),
        logits,
    )


def without(model: Transformer, ids: Tensor, is_token: Tensor) -> Float[Tensor, "head text label"]:
    """Return the probabilities of the labels without each head."""
    made = []
    for head in range(N_HEADS):

        def off(context: Tensor, head: int = head) -> Tensor:
            return context.index_fill(1, torch.tensor([head]), 0.0)

        with model.edit(f"{SITE}.self_attention.context", off):
            made.append(logits_of(model, ids, is_token).softmax(-1))
    return torch.stack(made)


def _explained(model: Transformer, words: list[str]) -> Arrays:
    """Return the parts of one label, for the likelier label."""
    ids = torch.tensor([[PAD, *(ID[word] for word in words)]])
    is_token = torch.ones_like(ids, dtype=torch.bool)
    sums = sums_of(model, ids, is_token)
    chosen = int(sums.logits[0].argmax())
    sign = 1 - 2 * chosen
    difference = sign * float((sums.logits[0, 0] - sums.logits[0, 1]).double())
    values = [sums.by_key.sum(), sums.own.sum(), sums.network.sum(), torch.tensor(sums.bias)]
    parts = [sign * float(value) for value in values]
    return {
        "token": np.array([ASKS, *words]),
        "label": np.array(LABELS[chosen]),
        "probability": sums.logits[0].softmax(-1).numpy(),
        "by_token": sign * sums.by_key[0].numpy(),
        "difference": np.array(difference),
        "part": np.array(["heads", "first token", "network", "bias", "remainder"]),
        "adds": np.array([*parts, difference - sum(parts)]),
        "without": without(model, ids, is_token)[:, 0, chosen].numpy(),
    }


def _over_held(model: Transformer, held: Drawn) -> Arrays:
    """Return what holds over the held-out texts, not in one."""
    sums = sums_of(model, held.ids, held.is_token)
    by_token = sums.by_key.sum(1).abs()
    rows = torch.arange(len(held.ids))
    shares = by_token / by_token.sum(1, keepdim=True)
    named = [shares[rows, held.verb], shares[rows, held.adverb]]
    chosen = sums.logits.argmax(1)
    left = without(model, held.ids, held.is_token)[:, rows, chosen]
    adds = (sums.by_key.sum(2) * (1 - 2 * chosen)[:, None]).T
    whole = sums.by_key.sum((1, 2)) + sums.own + sums.network + sums.bias
    made = (sums.logits[:, 0] - sums.logits[:, 1]).double()
    return {
        "kind": np.array(["verb", "adverb", "rest"]),
        "mean_share": torch.stack([*named, 1 - named[0] - named[1]]).mean(1).numpy(),
        "same_head": np.array(float((adds.argmax(0) == left.argmin(0)).double().mean())),
        "largest_remainder": np.array(float((whole - made).abs().max())),
        "n_held": np.array(len(rows)),
    }


EXPERIMENT = Experiment(
    id="labels",
    order=14,
    group="Learning",
    tab="Why a label",
    title="Why this label, and a shortcut",
    parameters=Labels,
    run=run,
    cost=lambda parameters: Cost(seconds=1 + 0.02 * parameters.steps, megabytes=40.0),
    is_streamed=True,
    way_out="choose fewer steps",
)
