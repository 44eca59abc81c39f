"""Minimal pairs: is a grammatical sentence more probable than its ungrammatical twin?

Warstadt et al. 2020, BLiMP, https://arxiv.org/abs/1912.00582. `grammar_pairs` are of the project's
own, in the manner of Zorro (Huebner et al. 2021, https://aclanthology.org/2021.conll-1.49), whose
words a child knows.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any

import torch

from headlight.lab.training.batches import padded
from headlight.lab.training.losses import token_losses
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.controlled_sentences import MEN, NOUNS, PREPOSITIONS, WOMEN
from headlight.model.corpus import read_members

PAIRS_OF_PARADIGM = 50
BATCH_ROWS = 64


@dataclass(frozen=True)
class MinimalPair:
    """A grammatical sentence, its ungrammatical twin, and the paradigm that they test."""

    paradigm: str
    good: str
    bad: str


def read_pairs(path: Path) -> list[MinimalPair]:
    """Read JSON lines with the members ``paradigm``, ``good`` and ``bad``.

    Raises:
        CorpusError: the file cannot be read or a line is not a pair.
    """
    return [MinimalPair(*texts) for texts in read_members(path, ("paradigm", "good", "bad"))]


def pair_accuracy(checkpoint: Checkpoint, pairs: Sequence[MinimalPair]) -> dict[str, float]:
    """Compute the share of each paradigm's pairs whose grammatical sentence is more probable.

    Returns:
        Accuracy in [0, 1] by paradigm, in alphabetical order; chance is 0.5.
    """
    sentences = [pair.good for pair in pairs] + [pair.bad for pair in pairs]
    scores = sentence_log_probabilities(checkpoint, sentences)
    rights: dict[str, list[bool]] = defaultdict(list)
    for pair, good, bad in zip(pairs, scores[: len(pairs)], scores[len(pairs) :], strict=True):
        rights[pair.paradigm].append(good > bad)
    return {paradigm: sum(right) / len(right) for paradigm, right in sorted(rights.items())}


def pair_figures(
    checkpoint: Checkpoint, pairs: Sequence[MinimalPair], name: str = "minimal_pairs"
) -> dict[str, Any]:
    """Return the mean of `pair_accuracy` over the paradigms, and each as ``NAME_by_paradigm``."""
    accuracy = pair_accuracy(checkpoint, pairs)
    return {name: sum(accuracy.values()) / len(accuracy), f"{name}_by_paradigm": accuracy}


def sentence_log_probabilities(
    checkpoint: Checkpoint, sentences: Sequence[str], *, batch_rows: int = BATCH_ROWS
) -> list[float]:
    """Compute the log-probability of every sentence after the start token, in nats.

    An encoder gives the pseudo-log-likelihood: the sum over the tokens, each masked in turn
    (Salazar et al. 2020, https://arxiv.org/abs/1910.14659).
    """
    if checkpoint.config.kind == "encoder":
        return _pseudo_log_likelihoods(checkpoint, sentences, batch_rows)
    tokenizer = checkpoint.tokenizer
    rows = [[tokenizer.start_id, *ids] for ids in tokenizer.encode_ids(sentences)]
    by_length = sorted(range(len(rows)), key=lambda number: len(rows[number]))
    scores = [0.0] * len(rows)
    for first in range(0, len(rows), batch_rows):
        numbers = by_length[first : first + batch_rows]
        for number, score in zip(
            numbers, _row_scores(checkpoint, [rows[n] for n in numbers]), strict=True
        ):
            scores[number] = score
    return scores


def _row_scores(checkpoint: Checkpoint, rows: Sequence[Sequence[int]]) -> list[float]:
    # Padding is at the end of a row, where the causal mask hides it from the text.
    ids, is_text = padded(rows, checkpoint.tokenizer.end_id)
    ids = ids.to(checkpoint.device)
    with torch.inference_mode():
        losses = token_losses(checkpoint.model(ids[:, :-1]).logits, ids[:, 1:]).cpu()
    return (-(losses * is_text[:, 1:]).sum(dim=1)).tolist()


def _pseudo_log_likelihoods(
    checkpoint: Checkpoint, sentences: Sequence[str], batch_rows: int
) -> list[float]:
    mask = checkpoint.tokenizer.mask_id
    if mask is None:
        raise ValueError(f"the vocabulary of '{checkpoint.id}' has no mask token")
    masked = []  # a row, the place of its mask, the token that it hides, and its sentence
    for number, sentence in enumerate(sentences):
        tokens = checkpoint.tokenizer.encode(sentence)
        ids = [token.id for token in tokens]
        for place, token in enumerate(tokens):
            if not token.is_special:
                masked.append(
                    ([*ids[:place], mask, *ids[place + 1 :]], place, token.id, number),
                )
    masked.sort(key=lambda item: len(item[0]))
    scores = [0.0] * len(sentences)
    for first in range(0, len(masked), batch_rows):
        rows, places, hidden, numbers = zip(*masked[first : first + batch_rows], strict=True)
        inputs, is_token = (tensor.to(checkpoint.device) for tensor in padded(rows, mask))
        with torch.inference_mode():
            logits = checkpoint.model(inputs, is_token=is_token).logits
            log_probs = logits[torch.arange(len(rows)), list(places)].log_softmax(dim=-1).cpu()
        of_hidden = log_probs[torch.arange(len(rows)), list(hidden)].tolist()
        for number, score in zip(numbers, of_hidden, strict=True):
            scores[number] += score
    return scores


# --- the project's own pairs ----------------------------------------------------------------------


ADJECTIVES = ("old", "little", "white", "pretty", "big")
THINGS = (("apple", "apples"), ("cake", "cakes"), ("book", "books"), ("hat", "hats"))
# A past participle and the past tense that cannot replace it; the infinitive.
VERBS = (
    ("broken", "broke", "break"),
    ("taken", "took", "take"),
    ("eaten", "ate", "eat"),
    ("given", "gave", "give"),
    ("stolen", "stole", "steal"),
    ("seen", "saw", "see"),
    ("hidden", "hid", "hide"),
    ("forgotten", "forgot", "forget"),
)
ONLY_WITHOUT_OBJECT = ("slept", "fell", "smiled", "arrived", "sat")
WITH_OBJECT = ("found", "took", "liked", "saw", "carried")
PEOPLE = (*MEN, *WOMEN)
Twins = Iterator[tuple[str, str]]


def grammar_pairs() -> list[MinimalPair]:
    """Make the project's own minimal pairs, of each paradigm as many as `PAIRS_OF_PARADIGM`."""
    draw = random.Random(0)
    made = []
    for paradigm, twins in _PARADIGMS.items():
        distinct = list(dict.fromkeys(twins()))
        chosen = draw.sample(distinct, min(PAIRS_OF_PARADIGM, len(distinct)))
        made += [MinimalPair(paradigm, good, bad) for good, bad in chosen]
    return made


def _both(text: str, right: str, wrong: str) -> tuple[str, str]:
    """Return a sentence with each of two words, in capitals at its beginning."""
    good, bad = (text.replace("_", word) for word in (right, wrong))
    return good[0].upper() + good[1:], bad[0].upper() + bad[1:]


def _determiner_noun() -> Twins:
    for noun, adjective, number in product(NOUNS, ADJECTIVES, (0, 1)):
        for determiners in (("this", "these"), ("that", "those")):
            words = determiners[number], determiners[1 - number]
            yield _both(f"Look at _ {adjective} {noun[number]}.", *words)


def _agreement(text: str, other_number: bool = False) -> Twins:
    for first, second in permutations(NOUNS, 2):
        for number, preposition in product((0, 1), PREPOSITIONS):
            words = {
                "noun": first[number],
                "other": second[1 - number if other_number else number],
                "preposition": preposition,
            }
            verbs = ("was", "were")
            yield _both(text.format(**words), verbs[number], verbs[1 - number])


def _anaphor_gender() -> Twins:
    for person, place in product(PEOPLE, ("the water", "the mirror", "the picture", "a dream")):
        words = ("himself", "herself") if person in MEN else ("herself", "himself")
        yield _both(f"The {person} saw _ in {place}.", *words)


def _anaphor_number() -> Twins:
    for person, place in product(("man", "boy", "king", "prince"), ("water", "mirror", "picture")):
        many = {"man": "men"}.get(person, f"{person}s")
        yield _both(f"The {person} saw _ in the {place}.", "himself", "themselves")
        yield _both(f"The {many} saw _ in the {place}.", "themselves", "himself")


def _binding() -> Twins:
    for man, woman in product(MEN, WOMEN):
        yield _both(f"The {man} said that the {woman} hurt _.", "herself", "himself")
        yield _both(f"The {woman} said that the {man} hurt _.", "himself", "herself")


def _case() -> Twins:
    for subject, object_ in (("he", "him"), ("she", "her"), ("they", "them"), ("I", "me")):
        for person, thing in product(PEOPLE[::2], THINGS):
            yield _both(f"_ gave the {thing[0]} to the {person}.", subject, object_)
            yield _both(f"The {person} gave the {thing[0]} to _.", object_, subject)


def _participle() -> Twins:
    for (participle, past, _), thing, person in product(VERBS, THINGS, PEOPLE[::3]):
        yield _both(f"The {person} had _ the {thing[0]}.", participle, past)


def _after_auxiliary() -> Twins:
    for (_, past, infinitive), thing, person in product(VERBS, THINGS, PEOPLE[::3]):
        yield _both(f"The {person} did not _ the {thing[0]}.", infinitive, past)
        yield _both(f"Did the {person} _ the {thing[0]}?", infinitive, past)


def _transitive() -> Twins:
    for right, wrong in zip(WITH_OBJECT, ONLY_WITHOUT_OBJECT, strict=True):
        for person, thing in product(PEOPLE, THINGS):
            yield _both(f"The {person} _ the {thing[0]}.", right, wrong)


def _swapped() -> Twins:
    for person, thing, verb in product(PEOPLE, THINGS, WITH_OBJECT):
        yield f"The {person} {verb} the {thing[0]}.", f"The {thing[0]} {verb} the {person}."


def _ellipsis() -> Twins:
    for person, noun, adjective in product(PEOPLE[::2], NOUNS, ADJECTIVES[:4]):
        yield (
            f"I had one {adjective} {noun[0]} and the {person} had two.",
            f"I had one {noun[0]} and the {person} had two {adjective}.",
        )


def _polarity() -> Twins:
    for noun, thing in product(NOUNS, THINGS):
        yield _both(f"_ {noun[0]} has ever seen a {thing[0]}.", "no", "some")
        yield _both(f"The {noun[0]} did _ want any {thing[1]}.", "not", "also")


def _existential() -> Twins:
    for noun, adjective in product(NOUNS, ADJECTIVES):
        yield _both(f"There was _ {adjective} {noun[0]} in the garden.", "one", "every")
        yield _both(f"There were _ {noun[1]} in the garden.", "many", "most")


_PARADIGMS: Mapping[str, Any] = {
    "determiner_noun": _determiner_noun,
    "subject_verb": lambda: _agreement("The {noun} _ very old."),
    "subject_verb_across_phrase": lambda: _agreement(
        "The {noun} {preposition} the {other} _ very old.", other_number=True
    ),
    "subject_verb_across_clause": lambda: _agreement(
        "The {noun} that the {other} saw _ very old.", other_number=True
    ),
    "subject_verb_in_question": lambda: _agreement("_ the {noun} {preposition} the {other}?"),
    "anaphor_gender": _anaphor_gender,
    "anaphor_number": _anaphor_number,
    "binding": _binding,
    "case_of_pronoun": _case,
    "participle": _participle,
    "verb_after_auxiliary": _after_auxiliary,
    "transitive": _transitive,
    "swapped_arguments": _swapped,
    "ellipsis": _ellipsis,
    "polarity": _polarity,
    "existential_there": _existential,
}
