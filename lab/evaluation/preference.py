"""The figures of `distill`, `reward` and `rlhf`: a model compared with the one it was made from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headlight.lab.evaluation.text import attention, bits_per_byte
from headlight.lab.training.batches import generator_of, prepend
from headlight.lab.training.preference import (
    N_ANSWER,
    Comparison,
    ComparisonBatch,
    Marks,
    encode_comparisons,
    line_end,
    marks,
    parts_that_differ,
    prompts_of,
    read_comparisons,
    rule_score,
)
from headlight.lab.training.recipes.rlhf import kl_of_samples, rewards_of
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.checkpoint.loading import find_model, load_checkpoint
from headlight.model.corpus import TokenStream
from headlight.model.generation.continuations import Continuations, sample_continuations

MATCHING_ROWS, MATCHING_TOKENS = 24, 64
N_PROMPTS, N_SHOWN = 128, 4
COMPARISONS = Path(__file__).with_name("comparisons.jsonl")
"""Comparisons that a stated rule made of the samples of `stories` (`training.preference.RULE`)."""


def named_model(checkpoint: Checkpoint, role: str) -> Checkpoint | None:
    """Load the model that a card names in a role, such as ``teacher``; None if it is not there."""
    name = checkpoint.description.card.training.get(role)
    try:
        return load_checkpoint(find_model(str(name))) if name else None
    except ValueError:
        return None


# --- two models on one text -----------------------------------------------------------------------


def compare(first: Checkpoint, second: Checkpoint, documents: Sequence[str]) -> dict[str, Any]:
    """Measure how far apart two decoders with one tokenizer are on a text.

    Args:
        first: the model that was made, such as a student.
        second: the model it was made from, such as its teacher.
        documents: the text; its first rows of 64 tokens are read.

    Returns:
        ``id`` of the second; ``next_token``: the mean over positions of KL(second ‖ first) in
        bits, of the total variation, and of whether the likeliest token is the same.

    Raises:
        CorpusError: the text is shorter than one row.
        ValueError: the models have different tokenizers.
    """
    if first.tokenizer.to_json() != second.tokenizer.to_json():
        raise ValueError(f"{first.id} and {second.id} have different tokenizers")
    rows = _rows(documents, first)
    _, logits = zip(*(attention(each, rows) for each in (first, second)), strict=True)
    return {"id": second.id, "next_token": _distance(*logits)}


def _rows(documents: Sequence[str], checkpoint: Checkpoint) -> Int[Tensor, "row token"]:
    stream = TokenStream.encode(documents, checkpoint.tokenizer)
    starts = stream.row_starts(MATCHING_TOKENS)[:MATCHING_ROWS]
    rows = stream.ids[starts[:, None] + torch.arange(MATCHING_TOKENS)]
    return prepend(checkpoint.tokenizer.start_id, rows)[:, :-1]


def _distance(
    logits: Float[Tensor, "row token vocab"], other: Float[Tensor, "row token vocab"]
) -> dict[str, float]:
    ours, theirs = logits.double().log_softmax(-1), other.double().log_softmax(-1)
    divergence = (theirs.exp() * (theirs - ours)).sum(-1)
    variation = (theirs.exp() - ours.exp()).abs().sum(-1) / 2
    return {
        "kl_bits": divergence.mean().item() / math.log(2),
        "total_variation": variation.mean().item(),
        "same_likeliest": (ours.argmax(-1) == theirs.argmax(-1)).double().mean().item(),
    }


def evaluate_student(checkpoint: Checkpoint, documents: Sequence[str]) -> dict[str, Any]:
    """Measure a student: bits per byte, and its distance from its teacher if that is there."""
    figures: dict[str, Any] = dict(bits_per_byte(checkpoint, documents))
    teacher = named_model(checkpoint, "teacher")
    return figures | ({"teacher": compare(checkpoint, teacher, documents)} if teacher else {})


# --- reward models --------------------------------------------------------------------------------


def held_out_comparisons() -> list[Comparison]:
    """Read the project's comparisons, none of which a model that ships was trained on.

    A model that was trained on them is measured on others.
    """
    return read_comparisons([COMPARISONS])


def evaluate_reward(checkpoint: Checkpoint, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Measure a reward model on comparisons.

    Returns:
        ``accuracy``: how often the preferred answer has the higher reward; ``bits``: the mean
        −log₂ σ(difference); ``minimal_pairs``, ``samples_differ_alone``: the accuracy on the pairs
        that differ in one part of the rule only, by part: those that an edit made, and samples.

    Raises:
        CorpusError: a comparison is too long.
    """
    encoded = encode_comparisons(comparisons, checkpoint.tokenizer, checkpoint.config.max_tokens)
    differences = []
    for first in range(0, len(encoded), 32):
        batch = ComparisonBatch.pad(encoded[first : first + 32], checkpoint.tokenizer.end_id)
        with torch.inference_mode():
            rewards = batch.to(checkpoint.device).predict(checkpoint.model).reward
        assert rewards is not None
        differences.append((rewards[:, 0] - rewards[:, 1]).cpu())
    margins = torch.cat(differences).double().numpy()
    return {
        "comparisons": len(comparisons),
        "accuracy": float((margins > 0).mean()),
        "bits": float(np.logaddexp(0, -margins).mean()) / math.log(2),
    } | _by_part(comparisons, margins > 0)


def _by_part(comparisons: Sequence[Comparison], is_right: np.ndarray) -> dict[str, Any]:
    """Return the accuracy on pairs that differ in one part of the rule, by kind and part."""
    rights: dict[str, dict[str, list[bool]]] = {"minimal_pairs": {}, "samples_differ_alone": {}}
    for comparison, right in zip(comparisons, is_right.tolist(), strict=True):
        parts = parts_that_differ(comparison.a, comparison.b)
        if len(parts) == 1:
            kind = "minimal_pairs" if comparison.part else "samples_differ_alone"
            rights[kind].setdefault(parts[0], []).append(right)
    return {
        kind: {
            part: {"pairs": len(of_part[part]), "accuracy": float(np.mean(of_part[part]))}
            for part in Marks._fields
            if part in of_part
        }
        for kind, of_part in rights.items()
        if of_part
    }


# --- preferred models -----------------------------------------------------------------------------


def evaluate_preferred(checkpoint: Checkpoint, documents: Sequence[str]) -> dict[str, Any]:
    """Compare a model after reinforcement with the one before it, at fixed seeds.

    Returns:
        ``bits_per_byte`` of both and the change in per cent; ``reward``: mean and standard
        deviation over samples before and after, and the gain in standard deviations of before;
        ``rule``: the mean of `rule_score`, and ``rule_parts`` the share of answers that keep each
        part; both and the reward also of ``stopping``, the answers before cut at their first full
        stop; ``kl_bits_per_sample``: of the samples after;
        ``samples``: some of them. Figures of models that are not there are left out.

    Raises:
        CorpusError: the text is too short.
    """
    figures: dict[str, Any] = dict(bits_per_byte(checkpoint, documents))
    before, rater = (named_model(checkpoint, role) for role in ("reference", "reward_model"))
    if before is None or rater is None:
        return figures
    known = bits_per_byte(before, documents)["bits_per_byte"]
    figures["bits_per_byte_before"] = known
    figures["bits_per_byte_worse_percent"] = 100 * (figures["bits_per_byte"] / known - 1)
    prompts = prompts_of(documents, checkpoint.tokenizer)
    order = torch.randperm(len(prompts), generator=generator_of(0))[:N_PROMPTS]
    return figures | _samples(checkpoint, before, rater, prompts[order])


def _samples(
    after: Checkpoint, before: Checkpoint, rater: Checkpoint, prompts: Int[Tensor, "row token"]
) -> dict[str, Any]:
    tokenizer = after.tokenizer
    sampled = {
        name: _sample(model, prompts) for name, model in (("before", before), ("after", after))
    }
    rewards = {name: rewards_of(rater.model, samples) for name, samples in sampled.items()}
    texts = {
        name: [tokenizer.decode(ids) for ids in samples.written()]
        for name, samples in sampled.items()
    }
    texts["stopping"] = [cut_at_full_stop(answer) for answer in texts["before"]]
    rewards["stopping"] = _rewards_of_texts(rater, prompts, texts["stopping"])
    rules = {name: np.mean([*map(rule_score, answers)]).item() for name, answers in texts.items()}
    parts = {
        name: dict(
            zip(Marks._fields, np.mean([*map(marks, answers)], axis=0).tolist(), strict=True)
        )
        for name, answers in texts.items()
    }
    spread = rewards["before"].std().item()
    ids = sampled["after"].ids[:, :-1]
    with torch.inference_mode():
        divergence = kl_of_samples(
            after.model(ids).logits, before.model(ids).logits, sampled["after"]
        )
    return {
        "reward": {
            "before": rewards["before"].mean().item(),
            "after": rewards["after"].mean().item(),
            "deviation_before": spread,
            "gain_in_deviations": (rewards["after"] - rewards["before"]).mean().item() / spread,
            "stopping": rewards["stopping"].mean().item(),
        },
        "rule": rules,
        "rule_parts": parts,
        "kl_bits_per_sample": divergence.mean().item() / math.log(2),
        "prompts": len(prompts),
        "samples": {
            str(n + 1): {
                "prompt": tokenizer.decode(prompts[n].tolist()),
                **{name: texts[name][n] for name in ("before", "after")},
            }
            for n in range(min(N_SHOWN, len(prompts)))
        },
    }


def cut_at_full_stop(answer: str) -> str:
    """Return an answer up to its first full stop, or as it is."""
    sentence, stop, _ = answer.partition(".")
    return sentence + stop


def _rewards_of_texts(
    rater: Checkpoint, prompts: Int[Tensor, "row token"], answers: Sequence[str]
) -> Float[Tensor, " row"]:
    """Rate answers that are texts, after their last token."""
    encoded = rater.tokenizer.encode_ids(answers)
    rewards = []
    for prompt, answer in zip(prompts.tolist(), encoded, strict=True):
        with torch.inference_mode():
            reward = rater.model(torch.tensor([[*prompt, *answer]], device=rater.device)).reward
        assert reward is not None
        rewards.append(reward[0, -1].float().cpu())
    return torch.stack(rewards)


def _sample(checkpoint: Checkpoint, prompts: Int[Tensor, "row token"]) -> Continuations:
    return sample_continuations(
        checkpoint.model,
        prompts.to(checkpoint.device),
        n_tokens=N_ANSWER,
        stop_id=line_end(checkpoint.tokenizer),
        generator=generator_of(0, 1),
    )
