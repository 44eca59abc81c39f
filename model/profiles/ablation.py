"""The cost of a head: by how many bits a byte predictions get worse when it writes nothing.

A pass without a head begins at its layer (`replay`), where the model's layers allow it.

A decoder predicts the text, an encoder–decoder the target, an encoder one hidden word of each
sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headlight.model.corpus import CorpusError
from headlight.model.interventions.head_ablation import HeadAblation
from headlight.model.interventions.intervention import Intervention, Where
from headlight.model.profiles.replay import can_replay, recorded, replayed
from headlight.model.served import Served
from headlight.model.trace import AttentionFacts, Token
from headlight.model.tracing import ModelInput

PASS_SIZE = 2048  # tokens in one pass, padding included
ABLATED_SIZE = 512  # of those whose layers are kept
SHARE_ABLATED, LEAST_ABLATED = 4, 50
"""A head is switched off in one of that many texts, and in at least so many."""
IGNORED = -100
"""PyTorch's label of a place that does not count."""
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
        on_pass: called after every pass with a head switched off.

    Returns:
        The bits of the whole model, and by attention the rise for each of its heads.

    Raises:
        CorpusError: no sentence has a word that can be hidden.
        ValueError: the model is an encoder without a mask token.
    """
    predicted, n_bytes = _predicted(checkpoint, inputs, question_end)
    if not n_bytes:
        raise CorpusError("the text has no word of one token to hide; give a longer one")
    layers = dict(checkpoint.layers) if facts else {}
    trial, *_ = _predicted(checkpoint, inputs[:1], question_end)[0] or predicted
    if not can_replay([*layers.values()], lambda: _nats(checkpoint, trial, ())):
        layers = {}
    paths, modules = [*layers], [*layers.values()]
    whole = 0.0
    nats = {path: [0.0] * attention.n_heads for path, attention in facts.items()}
    for batch in predicted:
        with recorded(modules) as returned:
            whole += _nats(checkpoint, batch, ())
        for path in facts:
            stack, _, layer, kind = path.split(".")
            where, own = _PLACES[stack, kind], f"{stack}.layers.{layer}"
            is_kept = own in layers and len(returned) == len(modules)  # all texts in one pass
            n_before = paths.index(own) if is_kept else 0
            with replayed(modules[:n_before], returned[:n_before]):
                for head in range(len(nats[path])):
                    ablation = HeadAblation(heads=(head,), layer=int(layer), where=where)
                    nats[path][head] += _nats(checkpoint, batch, [ablation])
                    on_pass()
    per_bit = math.log(2) * n_bytes
    costs = {path: [(each - whole) / per_bit for each in heads] for path, heads in nats.items()}
    return whole / per_bit, costs


def ablated_in(inputs: Sequence[ModelInput]) -> list[ModelInput]:
    """Return the texts in which heads are switched off: of neighbours, that of median length."""
    n = max(len(inputs) // SHARE_ABLATED, min(len(inputs), LEAST_ABLATED))
    groups = (inputs[at * len(inputs) // n : (at + 1) * len(inputs) // n] for at in range(n))
    ordered = (sorted(group, key=lambda each: each.n_tokens) for group in groups)
    return [group[(len(group) - 1) // 2] for group in ordered]


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
        for numbers in passes(chosen, ABLATED_SIZE)
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
    logits: Tensor = captured["logits"]
    labels = torch.full(logits.shape[:2], IGNORED)
    for row, places, ids in zip(labels, predicted.places, predicted.ids, strict=True):
        row[places] = torch.tensor(ids)
    flat = labels.flatten().to(logits.device)
    return float(cross_entropy(logits.flatten(0, 1).float(), flat, reduction="sum"))


def _ids(tokens: Iterable[Token] | None) -> list[int]:
    return [token.id for token in tokens or ()]


def passes(inputs: Sequence[ModelInput], size: int = PASS_SIZE) -> Iterator[list[int]]:
    """Yield the numbers of the inputs of each pass of that many tokens, of similar lengths."""
    numbers: list[int] = []
    for number in sorted(range(len(inputs)), key=lambda number: inputs[number].n_tokens):
        if numbers and (len(numbers) + 1) * inputs[number].n_tokens > size:
            yield numbers
            numbers = []
        numbers.append(number)
    if numbers:
        yield numbers
