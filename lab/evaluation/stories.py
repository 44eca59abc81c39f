"""The continuations that a model of `stories` writes."""

from __future__ import annotations

from pathlib import Path

from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import read_lines
from headlight.model.generation.sampling import Sampling, generate

OPENINGS = Path(__file__).with_name("gold") / "openings.txt"
PAGE_SAMPLING = Sampling(temperature=0.8, top_p=0.9)
"""The settings that the page's Generate begins with."""
N_CONTINUED = 48


def continuations(checkpoint: Checkpoint) -> dict[str, str]:
    """Continue each of `OPENINGS` once, as the page does at first; the number is the seed.

    Openings that fill the model's context are left out.
    """
    tokenizer, limit = checkpoint.tokenizer, checkpoint.config.max_tokens
    texts = {}
    for seed, opening in enumerate(read_lines(OPENINGS)):
        begun = [token.id for token in tokenizer.encode(opening)]
        if len(begun) >= limit:
            continue
        written = generate(
            checkpoint.model,
            begun,
            n_tokens=min(N_CONTINUED, limit - len(begun)),
            sampling=PAGE_SAMPLING,
            seed=seed,
            stop_id=tokenizer.end_id,
        )
        ids = [token.id for token in written if token.id != tokenizer.end_id]
        texts[opening] = tokenizer.decode(ids)
    return texts
