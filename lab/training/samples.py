"""Texts that a decoder writes while it trains, so that its progress can be read.

Every ``loop.sample_every`` steps the model continues the beginnings of some held-out rows;
``samples.jsonl`` gets a line for each. The random numbers are separate from those of the training.
"""

from __future__ import annotations

import json
from pathlib import Path

from headlight.lab.training.batches import generator_of
from headlight.lab.training.loop import SAMPLES, Loop
from headlight.model.generation.continuations import sample_continuations
from headlight.model.tokenizer import Tokenizer

N_TEXTS, N_PROMPT, N_WRITTEN = 3, 8, 32


def sample_texts(loop: Loop, tokenizer: Tokenizer) -> dict[str, float]:
    """Let the model of a loop write, and append its texts to `SAMPLES`; there are no figures."""
    ids = loop.batches.validation()[0].ids
    n_prompt = min(N_PROMPT, ids.shape[-1] - 1)
    prompts = ids[:N_TEXTS, :n_prompt].to(loop.model.vectors.device)
    loop.model.eval()
    written = sample_continuations(
        loop.model,
        prompts,
        n_tokens=min(N_WRITTEN, loop.model.config.max_tokens - n_prompt),
        stop_id=tokenizer.end_id,
        generator=generator_of(loop.config.seed, loop.step, 2),
    ).written()
    loop.model.train()
    with (loop.out / SAMPLES).open("a", encoding="utf-8") as file:
        for prompt, text in zip(prompts.tolist(), written, strict=True):
            texts = {"prompt": tokenizer.decode(prompt), "text": tokenizer.decode(text)}
            file.write(json.dumps({"step": loop.step, **texts}, ensure_ascii=False) + "\n")
    return {}


def read_samples(out: Path, step: int) -> list[dict[str, str]]:
    """Return the samples of a step in a run's folder; none if none were written."""
    path = out / SAMPLES
    if not path.exists():
        return []
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["step"] == step]
