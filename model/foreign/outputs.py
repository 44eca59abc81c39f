"""The output of a model of Transformers: logits of tokens or labels, or the last hidden state."""

from __future__ import annotations

import inspect
from typing import Any, cast

import torch
from torch import Tensor, nn

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.config import Predicts

LANGUAGE = ("seq2seq", "causal", "masked")
OF_TEXT = ("label", "labels", "score", "choice")
"""Tasks whose logits are of the whole text."""
SCORES = ("score", "choice")
MAX_LABEL = 200
_SITES = {
    "vector": ("last_hidden_state", "batch query d_model"),
    "answer": ("answer_logits", "batch query end"),
    **dict.fromkeys(SCORES, ("reward", "batch query")),
    **dict.fromkeys(LANGUAGE, ("logits", "batch query vocab")),
}


def task_in(task: str, config: Any) -> str:
    """Return the task of a model, which its config may narrow from one label to a score.

    Without a token of padding, the library would read only one text at a time for a label.

    Raises:
        CheckpointError: it reads characters, or pieces of something else.
    """
    text = config.get_text_config()
    if not hasattr(text, "vocab_size"):
        raise CheckpointError(f"a {config.model_type} reads no tokens of a vocabulary")
    if task in OF_TEXT and text.pad_token_id is None:
        text.pad_token_id = -1
    if task == "label" and config.num_labels == 1:
        return "score"
    if task == "label" and config.problem_type == "multi_label_classification":
        return "labels"
    return task


def site_of(task: str) -> tuple[str, str]:
    """Return the site of the output of a task, and its axes."""
    return _SITES.get(task, ("logits", "batch query label"))


def head_of(task: str, module: Any) -> nn.Module | None:
    """Return the matrix that a decoder reads every position's label or score with, if it does."""
    head = getattr(module, "score", None)
    return head if task in OF_TEXT and isinstance(head, nn.Linear) else None


def run(task: str, module: Any, inputs: dict[str, Any]) -> Tensor:
    """Return the output of a pass (row, query, …)."""
    if (head := head_of(task, module)) is None:
        result = module(**inputs_for(task, inputs))
        return output_of(task, result, inputs["input_ids"].shape[1])
    logits: Tensor = head(module.base_model(**inputs).last_hidden_state)
    return logits[..., 0] if task in SCORES else logits


def output_of(task: str, result: Any, n_tokens: int) -> Tensor:
    """Return what the library puts out; the logits of a whole text are those of each position."""
    if task == "vector":
        hidden: Tensor = result.last_hidden_state
        return hidden
    if task == "answer":
        return torch.stack([result.start_logits, result.end_logits], dim=-1)
    logits: Tensor = result.logits
    if task in OF_TEXT:
        logits = logits[:, None].expand(-1, n_tokens, -1)
    return logits[..., 0] if task in SCORES else logits


def inputs_for(task: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of a pass as its class takes them: each text is the only choice."""
    if task != "choice":
        return inputs
    return {
        name: value[:, None] if isinstance(value, Tensor) else value
        for name, value in inputs.items()
    }


def labels_of(config: Any, task: str, where: str) -> tuple[str, ...]:
    """Return the names of the labels that a model chooses among; none of any other model.

    Where two have one name, each has its number before it.

    Raises:
        CheckpointError: id2label does not name each label.
    """
    if task == "answer":
        return ("start", "end")
    if task not in ("label", "labels", "token_label"):
        return ()
    names = config.id2label or {}
    if sorted(names) != list(range(len(names))):
        raise CheckpointError(f"{where}: the ids of id2label must be 0 to {len(names) - 1}")
    listed = [names[label] for label in range(len(names))]
    for name in listed:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_LABEL:
            raise CheckpointError(
                f"{where}: id2label must name each label in at most {MAX_LABEL} characters"
            )
    if len(set(listed)) < len(listed):
        listed = [f"{label}: {name}" for label, name in enumerate(listed)]
    return tuple(listed)


def predicts_of(task: str) -> Predicts:
    """Return what a model of a task predicts."""
    if task in LANGUAGE:
        return "token"
    return "score" if task in SCORES else cast(Predicts, task)


def takes_targets(kind: type[Any]) -> bool:
    """Return True if a class reads two texts, as an encoder–decoder does."""
    return "decoder_input_ids" in inspect.signature(kind.forward).parameters


def takes_no_text(kind: type[Any]) -> str:
    """Return the input that a class reads that is not only tokens; empty: it reads tokens."""
    if hasattr(kind, "get_text_features"):  # of CLIP
        return "an image or a sound with each text (save its text model by itself)"
    name = str(getattr(kind, "main_input_name", "input_ids"))
    return "" if name == "input_ids" else f"{name}, and not the tokens of a text"
