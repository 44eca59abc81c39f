"""Continue a text in this process."""

from __future__ import annotations

from collections.abc import Sequence

from headlight.model.generation import sampling
from headlight.model.generation.sampling import Sampling
from headlight.model.interventions.intervention import Intervention
from headlight.model.served import Served
from headlight.model.tracing import tokenize


def generate(
    checkpoint: Served,
    text: str | None = None,
    n_tokens: int = 50,
    *,
    ids: Sequence[int] | None = None,
    temperature: float = 0.0,
    seed: int = 0,
    interventions: Sequence[Intervention] = (),
) -> str:
    """Return the text that a decoder writes after another one, which is left out.

        headlight.generate(headlight.load("stories"), "Once upon a time")

    Args:
        checkpoint: the model and its tokenizer.
        text: what it continues; None: `ids` are given.
        n_tokens: the most new tokens.
        ids: token ids in place of a text.
        temperature: divides the logits; 0: the likeliest token each time.
        seed: of the random numbers.
        interventions: as of `trace`; they act in every pass.

    Raises:
        EmptyText, TooManyTokens, UnknownToken, ValueError: as `tokenize`.
        ValueError: the model is no decoder, or `temperature` is negative.
    """
    tokens = tokenize(checkpoint, text, ids=ids).tokens
    written = sampling.generate(
        checkpoint.writer([each.with_model(checkpoint) for each in interventions]),
        [token.id for token in tokens],
        n_tokens=n_tokens,
        sampling=Sampling(temperature=temperature),
        seed=seed,
        stop_id=checkpoint.end_ids,
    )
    return checkpoint.tokenizer.decode(token.id for token in written)
