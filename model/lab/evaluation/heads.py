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

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float

from headlight.model.analysis._distributions import entropy
from headlight.model.analysis._layers import Attention, attentions_of
from headlight.model.analysis.head_labels import score_heads
from headlight.model.head_profiles import labels_of
from headlight.model.lab.evaluation.ablation import ablation_costs, passes
from headlight.model.lab.evaluation.controlled_sentences import (
    ControlledSentence,
    antecedent_sentences,
    subject_sentences,
)
from headlight.model.lab.training.corpus import CorpusError, SentencePair, lines
from headlight.model.served import Served
from headlight.model.trace import AttentionFacts, Token, Trace
from headlight.model.tracing import ModelInput, PassSpec, run_batch, tokenize

SENTENCE_END = re.compile(r"(?<=[.!?])(?<!Mr\.)(?<!Dr\.)(?<!Mrs\.)[\"']?\s+(?=[\"A-Z])")
LEAST_TOKENS, MOST_TOKENS = 8, 48
N_STRONGEST = 10
N_TRIED = 3  # as many sentences are cut into tokens for each that is read
SEGMENT, N_RANDOM_ROWS = 24, 16
Item = TypeVar("Item")


@dataclass
class _Sums:
    """The sums of the heads of one attention over all queries."""

    weights: dict[str, Any] = field(default_factory=lambda: defaultdict(float))
    controls: dict[str, Any] = field(default_factory=lambda: defaultdict(float))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    strongest: list[dict[tuple[str, str], dict[str, Any]]] = field(default_factory=list)

    def add(self, name: str, weights: Any, controls: Any, count: int) -> None:
        self.weights[name] += weights
        self.controls[name] += controls
        self.counts[name] += count

    def mean(self, name: str, head: int) -> tuple[float, float]:
        """Return the score of a head and its control."""
        count = self.counts[name]
        control = np.broadcast_to(self.controls[name], np.shape(self.weights[name]))
        return float(self.weights[name][head]) / count, float(control[head]) / count


def profile_heads(
    checkpoint: Served,
    documents: Sequence[str | SentencePair],
    *,
    n_sentences: int = 1000,
    question_end: str = "",
    on_progress: Callable[[float], object] = lambda _: None,
) -> dict[str, Any]:
    """Measure every head of a model.

    Args:
        checkpoint: the model; any with attention weights.
        documents: held-out text, which is cut into sentences; for an encoder–decoder, pairs.
        n_sentences: the number of sentences to read, evenly spread over the text.
        question_end: what ends a question that no model can predict. Then ``cost`` is of the text
            after it, and ``subject`` and ``antecedent`` are left out.
        on_progress: called with the share of the passes that are done, in 0 … 1.

    Returns:
        Plain data as `headlight.model.head_profiles.SHAPE`, not rounded and without ``text``.
        ``cost`` is the rise in bits a byte when the head writes nothing: of the text that a decoder
        predicts; of the target, for an encoder–decoder; of one hidden word in each sentence, for an
        encoder. ``bits_per_byte`` is the same measure with all heads. ``entropy`` is in bits,
        ``distance`` the mean number of tokens between query and key.

    Raises:
        CorpusError: the text has no sentence of 8 to 48 tokens, or none with a word to hide.
        ValueError: the model is an encoder without a mask token.
    """
    inputs = sentences_of(checkpoint, documents, n_sentences)
    facts = {
        described.path: described
        for described in checkpoint.description.attentions
        if any(site.name == f"{described.path}.weights" for site in checkpoint.description.sites)
    }
    sums = {
        path: _Sums(strongest=[{} for _ in range(described.n_heads)])
        for path, described in facts.items()
    }
    spec = PassSpec(tuple(f"{path}.weights" for path in facts))
    n_heads = sum(described.n_heads for described in facts.values())
    n_passes = (2 + n_heads) * len(list(passes(inputs)))
    n_done = 0

    def on_pass() -> None:
        nonlocal n_done
        n_done += 1
        on_progress(min(n_done / n_passes, 1.0))

    for numbers in passes(inputs):
        traces = run_batch(checkpoint, spec, [inputs[number] for number in numbers])
        for number, trace in zip(numbers, traces, strict=True):
            for attention in attentions_of(trace):
                _add_sentence(sums[attention.path], attention, trace, number)
        on_pass()
    _add_repetitions(checkpoint, facts, sums)
    controlled = (
        {"subject": subject_sentences(), "antecedent": antecedent_sentences()}
        if not question_end
        else {}
    )
    for name, sentences in controlled.items():
        _add_controlled(checkpoint, spec, sums, name, sentences)
    bits, costs = ablation_costs(checkpoint, inputs, facts, question_end, on_pass)
    return _profile(checkpoint, inputs, sums, costs) | {
        "bits_per_byte": bits,
        "controlled": {name: len(sentences) for name, sentences in controlled.items()},
    }


# --- sentences ------------------------------------------------------------------------------------


def sentences_of(
    checkpoint: Served, documents: Sequence[str | SentencePair], n_sentences: int
) -> list[ModelInput]:
    """Choose sentences of 8 to 48 tokens, evenly spread over a text or over pairs.

    Raises:
        CorpusError: there is none.
    """
    limit = min(MOST_TOKENS, checkpoint.config.max_tokens - 1)
    inputs = []
    for source, target in _evenly(list(_split(documents)), N_TRIED * n_sentences):
        try:
            model_input = tokenize(checkpoint, source, target)
        except ValueError:
            continue  # blank, or too long for the model
        longest = max(len(model_input.tokens), len(model_input.target_tokens or ()))
        if len(model_input.tokens) >= LEAST_TOKENS and longest <= limit:
            inputs.append(model_input)
    if not inputs:
        raise CorpusError(f"the text has no sentence of {LEAST_TOKENS} to {limit} tokens")
    return _evenly(inputs, n_sentences)


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
                for sentence in SENTENCE_END.split(line.strip()):
                    yield sentence, None


def _add_sentence(sums: _Sums, attention: Attention, trace: Trace, number: int) -> None:
    queries, keys = attention.tokens(trace)
    weights, visible = attention.weights, attention.visible
    n_visible = visible.sum(axis=1)
    for name, targets in key_sets(attention, queries, keys).items():
        wanted = targets & visible
        counted = wanted.any(axis=1) & (visible & ~wanted).any(axis=1)
        sums.add(
            name,
            (weights * wanted).sum(axis=-1)[:, counted].sum(axis=1),
            (wanted.sum(axis=1) / np.maximum(n_visible, 1))[counted].sum(),
            int(counted.sum()),
        )
    counted = n_visible > 1
    spread = entropy(weights[:, counted])
    sums.add("entropy", spread.sum(axis=1) / math.log(2), 0, int(counted.sum()))
    sums.add("broad", (spread / np.log(n_visible[counted])).sum(axis=1), 0, int(counted.sum()))
    query, key = np.ogrid[: len(queries), : len(keys)]
    distance = (weights * np.abs(query - key)).sum(axis=(1, 2))
    sums.add("distance", distance, 0, len(queries))
    if attention.is_cross:
        sums.add("monotonic", score_heads(attention, queries, keys)["monotonic"].values, 0, 1)
    _keep_strongest(sums, attention, queries, keys, number)


def key_sets(
    attention: Attention, queries: Sequence[Token], keys: Sequence[Token]
) -> dict[str, Bool[np.ndarray, "query key"]]:
    """Return masks of the keys that each score counts, also of keys that the query cannot see."""
    query, key = np.ogrid[: len(queries), : len(keys)]
    first = next((token.word for token in keys if token.word is not None), None)
    is_first_word = np.array([token.word is not None and token.word == first for token in keys])
    is_last_boundary = np.array([not token.is_typed for token in keys])
    is_last_boundary[:-1] = False
    is_other = (key != query) | np.bool_(attention.is_cross)
    of_first_word = is_first_word & is_other
    if not attention.is_cross:  # inside its first word, a token attends to its own word
        of_first_word = of_first_word & ~is_first_word[:, None]
    masks = {
        "first_token": (key == 0) & is_other,
        "first_word": of_first_word,
        "punctuation": np.array([_is_punctuation(token) for token in keys]) & is_other,
    }
    masks["sink"] = masks["first_token"] | of_first_word | (is_last_boundary & is_other)
    if attention.is_cross:
        return masks
    ids = np.array([token.id for token in keys])
    follows_same = np.zeros((len(keys), len(keys)), dtype=bool)
    follows_same[:, 1:] = ids[:, None] == ids[:-1]
    masks |= {
        "previous": key == query - 1,
        "current": key == query,
        "induction": follows_same & (key < query - 1),
    }
    return masks if attention.is_causal else masks | {"next": key == query + 1}


def _is_punctuation(token: Token) -> bool:
    text = token.text.strip()
    return bool(text) and not token.is_special and not any(map(str.isalnum, text))


def _keep_strongest(
    sums: _Sums, attention: Attention, queries: Sequence[Token], keys: Sequence[Token], number: int
) -> None:
    """Keep the greatest weight of the sentence, if it is not on a sink or on the query itself.

    Of each two texts of query and key only the strongest pair is kept.
    """
    excluded = key_sets(attention, queries, keys)["sink"] | ~attention.visible
    if not attention.is_cross:
        np.fill_diagonal(excluded, val=True)
    excluded = excluded | np.array([token.is_special for token in queries])[:, None]
    weights = np.where(excluded, -1.0, attention.weights)
    for head, of_head in enumerate(weights):
        query, key = divmod(int(of_head.argmax()), len(keys))
        weight = float(of_head[query, key])
        named = (queries[query].text, keys[key].text)
        best = sums.strongest[head].get(named)
        if weight > 0 and (best is None or weight > best["weight"]):
            sums.strongest[head][named] = {
                "sentence": number,
                "query": query,
                "key": key,
                "weight": weight,
                "query_span": _span(queries[query]),
                "key_span": _span(keys[key]),
            }


def _span(token: Token) -> list[int]:
    """Return the characters of a token without the space before it."""
    n_spaces = len(token.text) - len(token.text.lstrip())
    return [min(token.start + n_spaces, token.end), token.end]


# --- repeated random tokens -----------------------------------------------------------------------


def _add_repetitions(
    checkpoint: Served, facts: Mapping[str, AttentionFacts], sums: Mapping[str, _Sums]
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
    ordinary = [
        token_id for token_id in range(tokenizer.vocab_size) if not tokenizer.is_special(token_id)
    ]
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


def _add_controlled(
    checkpoint: Served,
    spec: PassSpec,
    sums: Mapping[str, _Sums],
    name: str,
    sentences: Sequence[ControlledSentence],
) -> None:
    for path, weights in controlled_weights(checkpoint, spec, sentences):
        sums[path].add(name, weights[:, 0], weights[:, 1], 1)


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
    inputs: Sequence[ModelInput],
    sums: Mapping[str, _Sums],
    costs: Mapping[str, Sequence[float]],
) -> dict[str, Any]:
    shown: dict[int, int] = {}
    attentions = {
        path: [_head(of_path, head, costs[path][head], shown) for head in range(len(costs[path]))]
        for path, of_path in sums.items()
    }
    return {
        "revision": checkpoint.description.revision,
        "sentences": len(inputs),
        "tokens": sum(model_input.n_tokens for model_input in inputs),
        "attentions": attentions,
        "examples": [
            {"text": inputs[number].text, "target": inputs[number].target or ""} for number in shown
        ],
    }


def _head(sums: _Sums, head: int, cost: float, shown: dict[int, int]) -> dict[str, Any]:
    names = [name for name, count in sums.counts.items() if count]
    means = {name: sums.mean(name, head) for name in names}
    entropy_bits, distance = (means.pop(name)[0] for name in ("entropy", "distance"))
    scores = {
        name: {"score": score, "control": control} for name, (score, control) in means.items()
    }
    strongest = sorted(sums.strongest[head].values(), key=lambda place: -place["weight"])[
        :N_STRONGEST
    ]
    return {
        "labels": labels_of(scores),
        "scores": scores,
        "entropy": entropy_bits,
        "distance": distance,
        "cost": cost,
        "strongest": [
            {**place, "sentence": shown.setdefault(place["sentence"], len(shown))}
            for place in strongest
        ],
    }
