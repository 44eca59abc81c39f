"""The claims of a card's examples, each measured on many sentences and compared with a control.

An example names its claim (`headlight.model.checkpoint.card.Example.claim`). A claim holds if its
score is at least twice its control; a claim about what is right, if it errs at most half as often.

`headlight.model.checkpoint.card.claims` says of each what its score is and what its control; here
it says more of some:

- ``nouns``: from a pronoun and the words next to it; which of the two the pronoun means does not
  matter, that is ``antecedent``.
- ``subject``: a phrase is between verb and subject, or the subject is next to the verb.
- ``punctuation_expert``: commas, stops, colons, semicolons, question and exclamation marks, with or
  without a double quotation mark, of the books in ``gold``. Hyphens, dashes and single quotation
  marks do not count.
- ``alignment``: of the project's own hand-aligned pairs.
- ``name``: the pieces of a name that the training text lacks, in a translation that is given.
- ``multiplicand``, ``multiplier``, ``column``, ``carry``: as in
  `headlight.model.profiles.digits`.
- ``rule``: of the comparisons that the reward model was not trained on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headlight.lab.evaluation import fill
from headlight.lab.evaluation.agreement import agreement_figures
from headlight.lab.evaluation.moe import count_taken
from headlight.lab.evaluation.preference import evaluate_reward, held_out_comparisons
from headlight.lab.evaluation.text import whole_rows
from headlight.lab.evaluation.translate import NAMES
from headlight.lab.evaluation.word_alignment import Link, aligner, alignment_error_rate, read_gold
from headlight.model.arithmetic import split
from headlight.model.checkpoint.card import OF_WHAT_IS_RIGHT, Example
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.controlled_sentences import (
    MEN,
    NOUNS,
    WOMEN,
    ControlledSentence,
    antecedent_sentences,
    subject_sentences,
)
from headlight.model.corpus import TokenStream, read_documents
from headlight.model.profiles.digits import HEAD_PROBLEMS, ROLES, digit_weights
from headlight.model.profiles.folder import ENGLISH_FRENCH, documents_of
from headlight.model.profiles.measure import controlled_weights, repetition_scores, sentences_of
from headlight.model.tokenizer import MASK
from headlight.model.trace import Token
from headlight.model.tracing import PassSpec, read_tokens, trace

GOLD = Path(__file__).with_name("gold")
BOOKS = tuple(
    GOLD / f"{author}.txt" for author in ("sophie_may", "madeline_brandeis", "andrew_lang")
)
"""Parts of books by authors that no model of the project was trained on."""
ENDING = re.compile(r'[,.;:!?]+"?')
N_SENTENCES = 100
SPEAKERS = [f"the {who}" for who in (*MEN, *WOMEN, "farmer")]
NAMED = (
    ("My name is {}.", "Je m'appelle {}."),
    ("Do you know {}?", "Connais-tu {} ?"),
    ("Where is {}?", "Où est {} ?"),
)
QUESTIONS = ("Where are you going", "What is your name", "Who is there", "What do you want")
Score = tuple[float, float, int]
"""The score of a claim, its control, and the number of sentences that both are means over."""


class Claim(NamedTuple):
    """An example that claims something of a model, and a text for claims about text."""

    checkpoint: Checkpoint
    example: Example
    documents: Sequence[str] = ()

    @property
    def path(self) -> str:
        """The attention that the example opens."""
        kind, layer = self.checkpoint.config.kind, self.example.layer
        if self.example.where == "cross":
            return f"decoder.layers.{layer}.cross_attention"
        stack = self.example.where or ("encoder" if kind == "encoder" else "decoder")
        return f"{stack}.layers.{layer}.self_attention"

    def weights(self, text: str) -> tuple[np.ndarray, Any]:
        """Return the weights of the example's head on a text, and the tokens of the text."""
        tokens, site = read_tokens(self.checkpoint, text), f"{self.path}.weights"
        captured = self.checkpoint.read([[token.id for token in tokens]], None, sites=[site])
        return captured[site][0, self.example.head].float().cpu().numpy(), tokens


Measure = Callable[[Claim], Score]


def measure_examples(checkpoint: Checkpoint, documents: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Measure the claims of the examples on a model's card.

    Args:
        checkpoint: the model.
        documents: a text, for the claims about text that is not made for them.

    Returns:
        By the title of each example that claims something: ``claim``, ``score``, ``control`` and
        ``sentences``, the number of sentences, pairs or tokens that they are means over.

    Raises:
        ValueError: an example names a claim that is not known.
    """
    figures: dict[str, dict[str, Any]] = {}
    for title, example in checkpoint.description.card.examples.items():
        if isinstance(example, Example) and example.claim is not None:
            if example.claim not in MEASURES:
                raise ValueError(
                    f"the example '{title}' claims '{example.claim}'; "
                    f"known are {', '.join(MEASURES)}"
                )
            measured = MEASURES[example.claim](Claim(checkpoint, example, documents))
            named = zip(("score", "control", "sentences"), measured, strict=True)
            figures[title] = {"claim": example.claim, **dict(named)}
    return figures


def holds(measured: Mapping[str, Any]) -> bool:
    """Return True if a claim does better than its control."""
    score, control = measured["score"], measured["control"]
    if measured["claim"] in OF_WHAT_IS_RIGHT:
        return bool(1 - score <= (1 - control) / 2)
    return bool(score >= 2 * control)


# --- heads ----------------------------------------------------------------------------------------


def _on_words(claim: Claim, sentences: Sequence[ControlledSentence]) -> Score:
    """Compare a head's weights from each query word on the right word and on the other one."""
    spec = PassSpec((f"{claim.path}.weights",))
    read = controlled_weights(claim.checkpoint, spec, sentences)
    on = np.stack([weights[claim.example.head] for _, weights in read])
    return float(on[:, 0].mean()), float(on[:, 1].mean()), len(on)


def _nouns(claim: Claim) -> Score:
    sentences = antecedent_sentences()
    on = next_to_query(claim, sentences)
    uniform = []
    for sentence in sentences:
        tokens = read_tokens(claim.checkpoint, sentence.text)
        n_seen = sum(token.start < sentence.query[1] for token in tokens)
        n_nouns = len(_places(tokens, sentence.right) + _places(tokens, sentence.other))
        is_causal = claim.checkpoint.config.kind == "decoder"
        uniform.append(n_nouns / (n_seen if is_causal else len(tokens)))
    score = np.mean([right + other for right, other in on.values()])
    return float(score), float(np.mean(uniform)), len(sentences)


def next_to_query(
    claim: Claim, sentences: Sequence[ControlledSentence]
) -> dict[str, tuple[float, float]]:
    """Measure a head's weights from a query word and from the words next to it.

    What a head does from the words next to the query is no function of the query.

    Returns:
        For ``query``, ``word_before`` and ``word_after``, the mean weight on the right word and on
        the other one. A word that is not after both in a sentence does not count.
    """
    weights_from: dict[str, list[np.ndarray]] = {"query": [], "word_before": [], "word_after": []}
    for sentence in sentences:
        weights, tokens = claim.weights(sentence.text)
        right, other = (_places(tokens, span) for span in (sentence.right, sentence.other))
        query = _places(tokens, sentence.query)[-1]
        for name, place in zip(weights_from, (query, query - 1, query + 1), strict=True):
            if max(*right, *other) < place < len(tokens):
                on = [weights[place, right].sum(), weights[place, other].sum()]
                weights_from[name].append(np.array(on))
    means = {name: np.mean(rows, axis=0) for name, rows in weights_from.items() if rows}
    return {name: (float(right), float(other)) for name, (right, other) in means.items()}


def _places(tokens: Sequence[Token], span: tuple[int, int]) -> list[int]:
    """Return the places of the tokens that hold a part of a word."""
    return [
        place
        for place, token in enumerate(tokens)
        if token.start < span[1] and token.end > span[0] and token.text.strip()
    ]


def _previous(claim: Claim) -> Score:
    scores, controls = [], []
    sentences = sentences_of(claim.checkpoint, documents_of(claim.checkpoint), N_SENTENCES)
    for sentence in sentences:
        weights, tokens = claim.weights(sentence.text)
        scores.append(np.diagonal(weights, -1)[1:].mean())
        places = np.arange(2, len(tokens))
        is_causal = claim.checkpoint.config.kind == "decoder"
        controls.append((1 / (places + 1)).mean() if is_causal else 1 / len(tokens))
    return float(np.mean(scores)), float(np.mean(controls)), len(sentences)


def _repetition(claim: Claim) -> Score:
    path = claim.path
    scores, control, n = repetition_scores(claim.checkpoint, [path])
    return float(scores[path][claim.example.head]) / n, control / n, n


def _closing_quote(claim: Claim) -> Score:
    on: tuple[list[float], list[float]] = ([], [])
    for question in QUESTIONS:
        for speaker in SPEAKERS:
            for kind, text in enumerate(
                (f'"{question}?" {MASK} {speaker}.', f"{question}. {MASK} {speaker}.")
            ):
                weights, tokens = claim.weights(text)
                blank = next(n for n, token in enumerate(tokens) if token.text == MASK)
                on[kind].append(float(weights[blank, blank - 1]))
    return float(np.mean(on[0])), float(np.mean(on[1])), len(on[0])


def _alignment(claim: Claim) -> Score:
    gold = read_gold(ENGLISH_FRENCH)
    layer, head = claim.example.layer, claim.example.head
    assert layer is not None
    chosen = aligner(claim.checkpoint, gold, layer=layer, head=head, shift=0)
    diagonal: list[set[Link]] = []
    for pair in gold:
        n_english, n_french = len(pair.english_words), len(pair.french_words)
        diagonal.append({(n * n_english // n_french, n) for n in range(n_french)})
    return chosen.score.precision, alignment_error_rate(diagonal, gold).precision, len(gold)


def _name(claim: Claim) -> Score:
    site = f"{claim.path}.weights"
    scores, controls = [], []
    for english, french in NAMED:
        for name in NAMES:
            texts = english.format(name), french.format(name)
            traced = trace(claim.checkpoint, *texts, capture=[site])
            assert traced.target_tokens is not None
            of_name = [
                [
                    place
                    for place, token in enumerate(tokens)
                    if token.start < end and token.end > start
                ]
                for tokens, text in ((traced.tokens, english), (traced.target_tokens, french))
                for start, end in [(text.index("{}"), text.index("{}") + len(name))]
            ]
            weights = traced[site][claim.example.head][np.ix_(of_name[1], of_name[0])]
            scores.append(weights.sum(axis=1).mean())
            controls.append(len(of_name[0]) / len(traced.tokens))
    return float(np.mean(scores)), float(np.mean(controls)), len(scores)


def _digits(role: str) -> Measure:
    def measured(claim: Claim) -> Score:
        problems = split().test[:HEAD_PROBLEMS]
        weights, evenly = digit_weights(claim.checkpoint, problems)[role]
        return float(weights[claim.example.layer, claim.example.head]), evenly, len(problems)

    return measured


def _tens_of_multiplier(claim: Claim) -> Score:
    problems = split().test[:HEAD_PROBLEMS]
    scores, controls = [], []
    for problem in problems:
        weights, tokens = claim.weights(problem.question)
        scores.append(weights[-1, 1 + problem.question.index("*") + 1])
        controls.append(1 / len(tokens))
    return float(np.mean(scores)), float(np.mean(controls)), len(problems)


# --- experts and predictions ----------------------------------------------------------------------


def _punctuation_expert(claim: Claim) -> Score:
    tokenizer = claim.checkpoint.tokenizer
    ids = TokenStream.encode(read_documents(BOOKS), tokenizer).ids
    rows = whole_rows(ids, min(claim.checkpoint.config.max_tokens - 1, len(ids)))
    taken = count_taken(claim.checkpoint, rows)[f"decoder.layers.{claim.example.layer}"]
    texts = (tokenizer.text_of(token).strip() for token in range(tokenizer.vocab_size))
    ending = [token for token, text in enumerate(texts) if ENDING.fullmatch(text)]
    of_marks = taken.tokens[ending].sum(dim=0)
    n_marks = int(taken.all_tokens[ending].sum())
    expert = int(of_marks.argmax())
    of_all = taken.tokens[:, expert].sum() / taken.all_tokens.sum()
    return float(of_marks[expert] / n_marks), float(of_all), n_marks


def _verb_share(checkpoint: Checkpoint, texts: Iterable[tuple[str, str, str]]) -> tuple[float, int]:
    """Return how often the first of two words is more probable, as the next one or at the blank."""
    tokenizer = checkpoint.tokenizer
    rights = []
    for text, right, wrong in texts:
        ids = [token.id for token in read_tokens(checkpoint, text)]
        place = ids.index(tokenizer.mask_id) if MASK in text and tokenizer.mask_id else -1
        logits = checkpoint.read([ids], None, sites=["logits"])["logits"][0, place]
        right_id, wrong_id = (tokenizer.encode_ids([f" {word}"])[0][0] for word in (right, wrong))
        rights.append(bool(logits[right_id] > logits[wrong_id]))
    return float(np.mean(rights)), len(rights)


def _verb_of_clause(claim: Claim) -> Score:
    share, n = _verb_share(
        claim.checkpoint,
        (
            (f"The {first[1 - number]} {('were', 'was')[number]} late, but the {second[number]}",)
            + (("was", "were") if number == 0 else ("were", "was"))
            for first, second in permutations(NOUNS, 2)
            for number in (0, 1)
        ),
    )
    return share, 0.5, n


def _verb_across(claim: Claim) -> Score:
    agreement = agreement_figures(claim.checkpoint)["agreement"]
    return agreement["other_number"], 0.5, int(agreement["sentences"])


def _next_word(claim: Claim) -> Score:
    ids = TokenStream.encode(claim.documents, claim.checkpoint.tokenizer).ids
    rows = whole_rows(ids, min(claim.checkpoint.config.max_tokens, len(ids))).tolist()
    rights, following = [], []
    for row in rows:
        logits = claim.checkpoint.read([row], None, sites=["logits"])["logits"][0, :-1]
        rights += (logits.argmax(dim=-1).cpu().numpy() == np.array(row[1:])).tolist()
        following += row[1:]
    commonest = np.bincount(following).max() / len(following)
    return float(np.mean(rights)), float(commonest), len(following)


def _rule(claim: Claim) -> Score:
    comparisons = held_out_comparisons()
    return evaluate_reward(claim.checkpoint, comparisons)["accuracy"], 0.5, len(comparisons)


def _both_sides(claim: Claim) -> Score:
    whole = fill.evaluate(claim.checkpoint, claim.documents, n_blanks=300)
    cut = fill.evaluate(claim.checkpoint, claim.documents, n_blanks=300, is_cut=True)
    name = "masked_word_accuracy"
    return whole[name], cut[name], whole["masked_words"]


MEASURES: Mapping[str, Measure] = {
    "previous": _previous,
    "repetition": _repetition,
    "subject": lambda claim: _on_words(claim, subject_sentences()),
    "antecedent": lambda claim: _on_words(claim, antecedent_sentences()),
    "nouns": _nouns,
    "closing_quote": _closing_quote,
    "alignment": _alignment,
    "punctuation_expert": _punctuation_expert,
    "verb_of_clause": _verb_of_clause,
    "verb_across": _verb_across,
    "both_sides": _both_sides,
    "next_word": _next_word,
    "name": _name,
    **{role: _digits(role) for role in ROLES},
    "tens_of_multiplier": _tens_of_multiplier,
    "rule": _rule,
}
