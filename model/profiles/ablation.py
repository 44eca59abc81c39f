"""The cost of a head: by how many bits a byte predictions get worse when it writes nothing.

A decoder predicts the text, an encoder–decoder the target, an encoder one hidden word of each
sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from headlight.model.corpus import CorpusError
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.intervention import Intervention, Where
from headlight.model.served import Served
from headlight.model.trace import AttentionFacts, Token
from headlight.model.tracing import ModelInput

PASS_SIZE = 2048  # tokens in one pass, padding included
_PLACES: dict[tuple[str, str], Where] = {
    ("encoder", "self_attention"): "encoder",
    ("decoder", "self_attention"): "decoder",
    ("decoder", "cross_attention"): "cross",
}


@dataclass(frozen=True)
class _Predicted:
    """Texts to predict: in each row the ``places`` of the logits and the ``ids`` they predict."""

    inputs: list[ModelInput]
    places: list[list[int]]
    ids: list[list[int]]


def ablation_costs(
    checkpoint: Served,
    inputs: Sequence[ModelInput],
    facts: Mapping[str, AttentionFacts],
    question_end: str,
    on_pass: Callable[[], object] = lambda: None,
) -> tuple[float, dict[str, list[float]]]:
    """Measure the bits per byte of a model, and their rise when each head writes nothing.

    Args:
        checkpoint: the model.
        inputs: sentences.
        facts: of the attentions to ablate, by path.
        question_end: what ends the part of each text that does not count.
        on_pass: called after every pass.

    Returns:
        The bits of the whole model, and by attention the rise for each of its heads.

    Raises:
        CorpusError: no sentence has a word that can be hidden.
        ValueError: the model is an encoder without a mask token.
    """
    predicted, n_bytes = _predicted(checkpoint, inputs, question_end)
    if not n_bytes:
        raise CorpusError("the text has no word of one token to hide; give a longer one")

    def bits(interventions: Sequence[Intervention] = ()) -> float:
        nats = 0.0
        for batch in predicted:
            nats += _nats(checkpoint, batch, interventions)
            on_pass()
        return nats / math.log(2) / n_bytes

    whole = bits()
    costs = {}
    for path, attention in facts.items():
        stack, _, layer, kind = path.split(".")
        where = _PLACES[stack, kind]
        costs[path] = [
            bits([HeadAblation(heads=(head,), layer=int(layer), where=where)]) - whole
            for head in range(attention.n_heads)
        ]
    return whole, costs


def _predicted(
    checkpoint: Served, inputs: Sequence[ModelInput], question_end: str
) -> tuple[list[_Predicted], int]:
    """Return the predictions that measure a model, by pass, and the number of bytes predicted."""
    kind = checkpoint.config.kind
    rows = []
    n_bytes = 0
    for number, model_input in enumerate(inputs):
        if kind == "encoder":
            hidden = _with_blank(checkpoint, model_input, number)
            if hidden is None:
                continue
            model_input, places, tokens = hidden
        else:
            all_tokens = (
                model_input.target_tokens
                if model_input.target_tokens is not None
                else model_input.tokens
            )
            begin = model_input.text.index(question_end) + len(question_end)
            places = [
                place - 1
                for place, token in enumerate(all_tokens)
                if place and not token.is_special and (not question_end or token.start >= begin)
            ]
            tokens = [all_tokens[place + 1] for place in places]
        n_bytes += len("".join(token.text for token in tokens).encode())
        rows.append((model_input, places, [token.id for token in tokens]))
    chosen = [model_input for model_input, _, _ in rows]
    predicted = [
        _Predicted(*(list(column) for column in zip(*(rows[n] for n in numbers), strict=True)))
        for numbers in passes(chosen)
    ]
    return predicted, n_bytes


def _with_blank(
    checkpoint: Served, model_input: ModelInput, number: int
) -> tuple[ModelInput, list[int], list[Token]] | None:
    """Return a sentence with one of its words hidden; None if no word is a single token."""
    mask = checkpoint.tokenizer.mask_id
    if mask is None:
        raise ValueError(f"the vocabulary of '{checkpoint.id}' has no mask token")
    words = [token.word for token in model_input.tokens]
    whole = [
        place
        for place, token in enumerate(model_input.tokens)
        if token.word is not None and words.count(token.word) == 1 and token.text.strip().isalpha()
    ]
    if not whole:
        return None
    place = whole[number % len(whole)]
    hidden = model_input.tokens[place]
    blank = Token(
        id=mask,
        text=hidden.text,
        start=hidden.start,
        end=hidden.end,
        word=hidden.word,
        is_special=True,
    )
    tokens = (*model_input.tokens[:place], blank, *model_input.tokens[place + 1 :])
    return ModelInput(model_input.text, tokens), [place], [hidden]


def _nats(
    checkpoint: Served, predicted: _Predicted, interventions: Sequence[Intervention]
) -> float:
    targets = [
        _ids(model_input.target_tokens)
        for model_input in predicted.inputs
        if model_input.target_tokens
    ]
    captured = checkpoint.read(
        [_ids(model_input.tokens) for model_input in predicted.inputs],
        targets or None,
        sites=["logits"],
        interventions=interventions,
    )
    rows = [row for row, places in enumerate(predicted.places) for _ in places]
    places = [place for places in predicted.places for place in places]
    ids = torch.tensor([token_id for ids in predicted.ids for token_id in ids])
    logits: Tensor = captured["logits"][rows, places].float().cpu()
    return float(torch.nn.functional.cross_entropy(logits, ids, reduction="sum"))


def _ids(tokens: Iterable[Token] | None) -> list[int]:
    return [token.id for token in tokens or ()]


def passes(inputs: Sequence[ModelInput]) -> Iterator[list[int]]:
    """Yield the numbers of the inputs of each pass, of similar lengths."""
    numbers: list[int] = []
    for number in sorted(range(len(inputs)), key=lambda number: inputs[number].n_tokens):
        if numbers and (len(numbers) + 1) * inputs[number].n_tokens > PASS_SIZE:
            yield numbers
            numbers = []
        numbers.append(number)
    if numbers:
        yield numbers


# --- attention ------------------------------------------------------------------------------------
