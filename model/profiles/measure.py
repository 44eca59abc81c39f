"""The profile of every head: where it attends over many sentences, and what its ablation costs.

Each score is a mean attention weight, in [0, 1], on the keys that its name says, over all queries
that see such a key and another one. Its control is the same mean for uniform attention.

- ``previous``, ``current``, ``next``: the token before the query, the query, the token after it.
- ``first_token``, ``first_word``: those of the text; the start token is not a word. ``sink``: both,
  and a boundary token at the end. Never the query itself.
- ``punctuation``: tokens without a letter or a digit.
- ``induction``: tokens that follow an earlier token with the query's id, except the previous one.
  Olsson et al. 2022, https://arxiv.org/abs/2209.11895. ``repetition``: the same on random tokens
  that are repeated once, where nothing but the earlier occurrence tells the next token.
- ``subject``: on the subject of a verb, and ``antecedent``: on the antecedent of a pronoun, in
  sentences of `controlled_sentences`; the control is the weight on the other noun.
- ``monotonic``, of cross-attention: as in `headlight.model.analysis.head_labels`.
- ``broad``: entropy over its maximum, log n for n visible keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float

from headlight.model.analysis.layers import attentions_of
from headlight.model.checkpoint.profile import labels_of
from headlight.model.controlled_sentences import (
    ControlledSentence,
    antecedent_sentences,
    subject_sentences,
)
from headlight.model.corpus import CorpusError, SentencePair, lines
from headlight.model.profiles.ablation import ABLATED_SIZE, ablated_in, ablation_costs, passes
from headlight.model.profiles.sums import HeadSums, Reader
from headlight.model.served import Served
from headlight.model.trace import AttentionFacts, Token
from headlight.model.tracing import ModelInput, PassSpec, run_batch, tokenize

SENTENCE_END = re.compile(r"(?<=[.!?])(?<!Mr\.)(?<!Dr\.)(?<!Mrs\.)[\"']?\s+(?=[\"A-Z])")
LEAST_TOKENS, MOST_TOKENS = 8, 48
N_TRIED = 3  # as many sentences are cut into tokens for each that is read
SEGMENT, N_RANDOM_ROWS = 24, 16
N_CONTROLLED = 50
"""The fewest controlled sentences of each kind, and all where no cost is measured."""
Item = TypeVar("Item")


def profile_heads(
    checkpoint: Served,
    documents: Sequence[str | SentencePair],
    *,
    n_sentences: int = 1000,
    question_end: str = "",
    on_progress: Callable[[float], object] = lambda _: None,
    is_sample: bool = False,
) -> dict[str, Any]:
    """Measure every head of a model.

    Args:
        checkpoint: the model; any with attention weights.
        documents: held-out text, which is cut into sentences; for an encoder–decoder, pairs.
        n_sentences: the number of sentences to read, evenly spread over the text.
        question_end: what ends a question that no model can predict. Then ``cost`` is of the text
            after it, and ``subject`` and ``antecedent`` are left out.
        on_progress: called with the share of the passes that are done, in 0 … 1.
        is_sample: whether ``cost`` is left out, which takes a pass for each head.

    Returns:
        Plain data as `headlight.model.checkpoint.profile.SHAPE`, not rounded and without ``text``.
        ``cost`` is the rise in bits a byte when the head writes nothing: of the text that a decoder
        predicts; of the target, for an encoder–decoder; of one hidden word in each sentence, for an
        encoder; in ``ablated_in`` of the sentences. ``bits_per_byte`` is the same measure of these
        with all heads. A model that predicts no
        tokens has neither. ``entropy`` is in bits, ``distance`` the mean number of tokens between
        query and key.

    Raises:
        CorpusError: the text has no sentence of 8 to 48 tokens, or none with a word to hide.
        ValueError: the model is an encoder without a mask token.
    """
    inputs = sentences_of(checkpoint, documents, n_sentences)
    reader = Reader(checkpoint)
    n_heads = 0 if is_sample else sum(each.n_heads for each in reader.facts.values())
    n_ablated = len(list(passes(ablated_in(inputs), ABLATED_SIZE)))
    n_passes = len(list(passes(inputs))) + n_heads * n_ablated
    n_done = 0

    def on_pass() -> None:
        nonlocal n_done
        n_done += 1
        on_progress(min(n_done / n_passes, 1.0))

    for numbers in passes(inputs):
        for _ in reader.read([inputs[number] for number in numbers], numbers):
            pass  # it adds up as it goes
        on_pass()
    return finished_profile(
        checkpoint,
        reader.sums,
        Sentences(
            n=len(inputs),
            n_tokens=sum(model_input.n_tokens for model_input in inputs),
            sample=inputs,
            example=lambda number: (inputs[number].text, inputs[number].target or ""),
        ),
        question_end=question_end,
        on_pass=on_pass,
        is_sample=is_sample,
    )


@dataclass(frozen=True)
class Sentences:
    """The sentences that were read: how many with how many tokens, and some of them.

    Heads are switched off in some of the ``sample`` (`ablated_in`); ``example`` returns the text
    and the target of the sentence with that order.
    """

    n: int
    n_tokens: int
    sample: Sequence[ModelInput]
    example: Callable[[Any], tuple[str, str]]


def finished_profile(
    checkpoint: Served,
    sums: Mapping[str, HeadSums],
    sentences: Sentences,
    *,
    question_end: str = "",
    on_pass: Callable[[], None] = lambda: None,
    is_sample: bool = False,
) -> dict[str, Any]:
    """Return the profile of every head from its sums, with what is measured once for a model.

    These are the scores on random repetitions and on controlled sentences, and the cost.

    Args:
        checkpoint: the model.
        sums: of every attention by path; those of the controlled sentences are added.
        sentences: what was read.
        question_end: as in `profile_heads`.
        on_pass: called after each pass that measures the cost of a head.
        is_sample: as in `profile_heads`.

    Raises:
        CorpusError, ValueError: as `profile_heads`.
    """
    facts = Reader(checkpoint).facts
    spec = PassSpec(tuple(f"{path}.weights" for path in facts))
    _add_repetitions(checkpoint, facts, sums)
    controlled = (
        {"subject": subject_sentences(), "antecedent": antecedent_sentences()}
        if not question_end
        else {}
    )
    n_made = max(N_CONTROLLED, 0 if is_sample or not sentences.sample else sentences.n)
    controlled = {name: _evenly(made, n_made) for name, made in controlled.items()}
    for name, made in controlled.items():
        for path, weights in controlled_weights(checkpoint, spec, made):
            sums[path].add(name, weights[:, 0], weights[:, 1], 1)
    bits: dict[str, float] = {}
    costs: dict[str, list[float]] = {}
    if checkpoint.description.predicts == "token" and sentences.sample:
        some, ablated = ablated_in(sentences.sample), {} if is_sample else facts
        whole, costs = ablation_costs(checkpoint, some, ablated, question_end, on_pass)
        bits = {"bits_per_byte": whole, "ablated_in": len(some)}
    return _profile(checkpoint, sentences, sums, costs) | {
        **bits,
        "controlled": {name: len(made) for name, made in controlled.items()},
    }


# --- sentences ------------------------------------------------------------------------------------


def sentences_of(
    checkpoint: Served, documents: Sequence[str | SentencePair], n_sentences: int
) -> list[ModelInput]:
    """Choose sentences of 8 to 48 tokens, evenly spread over a text or over pairs.

    Raises:
        CorpusError: there is none.
    """
    limit = longest_sentence(checkpoint)
    chosen = _evenly(list(_split(documents)), N_TRIED * n_sentences)
    inputs = [
        model_input
        for source, target in chosen
        if (model_input := as_sentence(checkpoint, source, target, limit)) is not None
    ]
    if not inputs:
        raise no_sentence(limit)
    return _evenly(inputs, n_sentences)


def longest_sentence(checkpoint: Served) -> int:
    """Return the most tokens of a sentence that is read."""
    return min(MOST_TOKENS, checkpoint.config.max_tokens - 1)


def no_sentence(limit: int) -> CorpusError:
    """Return the error of a text without a sentence that can be read."""
    return CorpusError(f"the text has no sentence of {LEAST_TOKENS} to {limit} tokens")


def as_sentence(
    checkpoint: Served, source: str, target: str | None, limit: int
) -> ModelInput | None:
    """Cut a sentence, or a pair, into tokens; None if it has fewer than 8 or more than `limit`."""
    try:
        model_input = tokenize(checkpoint, source, target)
    except ValueError:
        return None  # blank, or too long for the model
    longest = max(len(model_input.tokens), len(model_input.target_tokens or ()))
    return model_input if len(model_input.tokens) >= LEAST_TOKENS and longest <= limit else None


def _evenly(items: list[Item], n: int) -> list[Item]:
    """Return at most `n` items of a list, evenly spread over it."""
    n = min(n, len(items))
    return [items[number * len(items) // n] for number in range(n)]


def _split(documents: Sequence[str | SentencePair]) -> Iterator[tuple[str, str | None]]:
    for document in documents:
        if isinstance(document, SentencePair):
            yield document.source, document.target
        else:
            for line in lines([document]):
                for sentence in split_line(line):
                    yield sentence, None


def split_line(line: str) -> list[str]:
    """Cut a paragraph into sentences."""
    return SENTENCE_END.split(line.strip())


# --- repeated random tokens -----------------------------------------------------------------------


def _add_repetitions(
    checkpoint: Served, facts: Mapping[str, AttentionFacts], sums: Mapping[str, HeadSums]
) -> None:
    causal = [
        path
        for path, attention in facts.items()
        if attention.is_causal and path.endswith("self_attention")
    ]
    if checkpoint.config.kind != "decoder" or not causal:
        return
    scores, control, n_queries = repetition_scores(checkpoint, causal)
    for path in causal:
        sums[path].add("repetition", scores[path], control, n_queries)


def repetition_scores(
    checkpoint: Served, paths: Sequence[str]
) -> tuple[dict[str, Float[np.ndarray, " head"]], float, int]:
    """Sum the weights on what followed a token before, over random tokens that are repeated once.

    Returns:
        By attention the sum of each head, the sum of uniform attention, and the number of queries.
    """
    tokenizer = checkpoint.tokenizer
    start = [token.id for token in tokenizer.encode("a") if not token.is_typed][:1]
    segment = min(SEGMENT, (checkpoint.config.max_tokens - len(start)) // 2)
    n_ids = min(tokenizer.vocab_size, checkpoint.config.vocab_size)  # some have more than the model
    ordinary = [token_id for token_id in range(n_ids) if not tokenizer.is_special(token_id)]
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randint(len(ordinary), (N_RANDOM_ROWS, segment), generator=generator)
    rows = [start + 2 * [ordinary[place] for place in row] for row in drawn.tolist()]
    captured = checkpoint.read(rows, None, sites=[f"{path}.weights" for path in paths])
    places = range(len(start) + segment, len(start) + 2 * segment)
    control = N_RANDOM_ROWS * sum(1 / (place + 1) for place in places)
    scores = {}
    for path in paths:
        weights = captured[f"{path}.weights"].float().cpu().numpy()
        keys = [place - segment + 1 for place in places]
        scores[path] = weights[:, :, list(places), keys].sum(axis=(0, 2))
    return scores, control, N_RANDOM_ROWS * segment


# --- controlled sentences -------------------------------------------------------------------------


def controlled_weights(
    checkpoint: Served, spec: PassSpec, sentences: Sequence[ControlledSentence]
) -> Iterator[tuple[str, Float[np.ndarray, "head 2"]]]:
    """Read the weights of controlled sentences.

    Yields:
        The path of an attention, and the weights of its heads from the query word on the right noun
        and on the other one; of every sentence and self-attention of the first stack.
    """
    inputs = [tokenize(checkpoint, sentence.text) for sentence in sentences]
    first = "encoder" if checkpoint.config.has_encoder else "decoder"
    for numbers in passes(inputs):
        part = [inputs[number] for number in numbers]
        if checkpoint.config.kind == "encoder-decoder":  # only its encoder is asked
            start = tuple(checkpoint.tokenizer.encode_target("a"))[:1]
            part = [
                ModelInput(model_input.text, model_input.tokens, "", start) for model_input in part
            ]
        for number, trace in zip(numbers, run_batch(checkpoint, spec, part), strict=True):
            sentence = sentences[number]
            query, *_ = _tokens_at(trace.tokens, sentence.query)
            right, other = (_tokens_at(trace.tokens, at) for at in (sentence.right, sentence.other))
            for attention in attentions_of(trace, "self_attention"):
                if attention.stack == first:
                    row = attention.weights[:, query]
                    on = [row[:, right].sum(axis=1), row[:, other].sum(axis=1)]
                    yield attention.path, np.stack(on, axis=1)


def _tokens_at(tokens: Sequence[Token], span: tuple[int, int]) -> list[int]:
    start, end = span
    return [
        place
        for place, token in enumerate(tokens)
        if token.start < end and token.end > start and token.text.strip()
    ]


# --- the profile ----------------------------------------------------------------------------------


def _profile(
    checkpoint: Served,
    sentences: Sentences,
    sums: Mapping[str, HeadSums],
    costs: Mapping[str, Sequence[float]],
) -> dict[str, Any]:
    shown: dict[Any, int] = {}
    described = Reader(checkpoint).facts
    attentions = {
        path: [
            _head(of_path, head, costs.get(path), shown) for head in range(described[path].n_heads)
        ]
        for path, of_path in sums.items()
    }
    return {
        "revision": checkpoint.description.revision,
        "sentences": sentences.n,
        "tokens": sentences.n_tokens,
        "attentions": attentions,
        "examples": [
            dict(zip(("text", "target"), sentences.example(order), strict=True)) for order in shown
        ],
    }


def _head(
    sums: HeadSums, head: int, costs: Sequence[float] | None, shown: dict[Any, int]
) -> dict[str, Any]:
    names = [name for name, count in sums.counts.items() if count]
    means = {name: sums.mean(name, head) for name in names}
    entropy_bits, distance = (means.pop(name)[0] for name in ("entropy", "distance"))
    scores = {
        name: {"score": score, "control": control} for name, (score, control) in means.items()
    }
    return {
        "labels": labels_of(scores),
        "scores": scores,
        "entropy": entropy_bits,
        "distance": distance,
        **({} if costs is None else {"cost": costs[head]}),
        "strongest": [
            {
                "sentence": shown.setdefault(place["order"], len(shown)),
                **{name: value for name, value in place.items() if name != "order"},
            }
            for place in sums.best(head).values()
        ],
    }
