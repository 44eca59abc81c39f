"""The figures of `translate`: BLEU, typed text and word alignment.

Visitors type other forms of a sentence, names that no corpus has, and long sentences.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from headlight.lab import lab_libraries
from headlight.lab.evaluation.word_alignment import (
    Aligner,
    GoldPair,
    aligner,
    best_aligners,
    read_gold,
    short_pairs,
)
from headlight.lab.training import gender_text
from headlight.lab.training.batches import is_held_out
from headlight.lab.training.recipes.translate import TranslateConfig
from headlight.model.checkpoint.checkpoint import Checkpoint
from headlight.model.corpus import SentencePair, read_lines
from headlight.model.generation.translation import translate
from headlight.model.profiles.folder import ENGLISH_FRENCH

VISITORS = Path(__file__).with_name("gold") / "visitors.txt"
FINAL_STOP = re.compile(r"\s*[.!?]+$")
WORD = re.compile(r"[^\W\d_]+")
N_SENTENCES = 300

FORMS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "as_written": lambda text: text,
        "lower_case": str.lower,
        "no_stop": lambda text: FINAL_STOP.sub("", text) or text,
        "lower_case_no_stop": lambda text: FINAL_STOP.sub("", text.lower()) or text.lower(),
        "capitals": str.upper,
        "typographic": lambda text: text.replace("'", "\u2019").replace("...", "\u2026"),
    }
)
_NAMES = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
NAMES, FRENCH_LIKE_NAMES = _NAMES["rare"].split(), _NAMES["french_like"].split()
TEMPLATES = _NAMES["templates"]


# --- BLEU -----------------------------------------------------------------------------------------
# Pairs of the second gold standard are aligned if they have at most so many words.
SHORT = 15


def evaluate(
    checkpoint: Checkpoint,
    pairs: Sequence[SentencePair],
    *,
    trained_on: Sequence[SentencePair] = (),
    literary: Sequence[GoldPair] = (),
) -> dict[str, Any]:
    """Measure translation and word alignment.

    Args:
        checkpoint: an encoder–decoder.
        pairs: held-out pairs to translate.
        trained_on: the training corpus. Its held-out part is translated too, and with `pairs` the
            figures of `typed_figures` are measured.
        literary: a second gold standard of word alignment; only its short pairs are aligned.

    Returns:
        The figures by name. Error rates are of word alignment on the project's own gold, except
        ``alignment_literary``.
    """
    gold = read_gold(ENGLISH_FRENCH)
    share = TranslateConfig().held_out
    held_out = [pair for pair in trained_on if is_held_out(pair.source, share)]
    figures: dict[str, Any] = {}
    if pairs:
        figures["bleu"] = {"text": bleu(checkpoint, pairs)}
    if held_out:
        figures.setdefault("bleu", {})["held_out"] = bleu(checkpoint, held_out)
    if pairs and trained_on:
        figures["typed"] = typed_figures(checkpoint, pairs, trained_on=trained_on)
    figures["pronouns"] = pronoun_figures(checkpoint)
    return figures | alignment_figures(checkpoint, gold, short_pairs(literary, SHORT))


def alignment_figures(
    checkpoint: Checkpoint, gold: Sequence[GoldPair], literary: Sequence[GoldPair]
) -> dict[str, Any]:
    """Score the best head and the best layer on the gold; score the same two on a second gold."""
    head, layer = best_aligners(checkpoint, gold)
    figures = {"alignment": {"pairs": len(gold), "head": _placed(head), "layer": _placed(layer)}}
    if literary:
        figures["alignment_literary"] = {
            "pairs": len(literary),
            "head": _placed(_again(checkpoint, literary, head)),
            "layer": _placed(_again(checkpoint, literary, layer)),
        }
    return figures


def _again(checkpoint: Checkpoint, gold: Sequence[GoldPair], chosen: Aligner) -> Aligner:
    return aligner(checkpoint, gold, layer=chosen.layer, head=chosen.head, shift=chosen.shift)


def _placed(chosen: Aligner) -> dict[str, Any]:
    place = {"layer": chosen.layer, "head": chosen.head, "shift": chosen.shift}
    if chosen.head is None:
        del place["head"]
    return place | chosen.score._asdict()


def bleu(
    checkpoint: Checkpoint,
    pairs: Sequence[SentencePair],
    *,
    typed: Callable[[str], str] = str,
    is_case_blind: bool = False,
) -> float:
    """Compute BLEU, in [0, 100], over the distinct sources, each against all its references.

    Papineni et al. 2002, https://aclanthology.org/P02-1040/; computed by sacrebleu (Post 2018,
    https://arxiv.org/abs/1804.08771) with its defaults, so that scores compare.

    Args:
        checkpoint: an encoder–decoder.
        pairs: sources and references; a source may have several.
        typed: changes each source before it is translated.
        is_case_blind: whether upper and lower case count as the same.

    Raises:
        ImportError: sacrebleu is not installed.
    """
    with lab_libraries():
        import sacrebleu
    references = references_of(pairs)
    most = max(map(len, references.values()))
    streams: list[list[Any]] = [  # None: a source has fewer references; sacrebleu's types omit it
        [known[number] if number < len(known) else None for known in references.values()]
        for number in range(most)
    ]
    hypotheses = translations(checkpoint, [typed(source) for source in references])
    score: float = sacrebleu.corpus_bleu(hypotheses, streams, lowercase=is_case_blind).score
    return score


def references_of(pairs: Sequence[SentencePair]) -> dict[str, list[str]]:
    """Collect the references of each distinct source."""
    references: dict[str, list[str]] = defaultdict(list)
    for source, target in pairs:
        references[source].append(target)
    return references


def translations(
    checkpoint: Checkpoint, sources: Sequence[str], *, batch_rows: int = 64
) -> list[str]:
    """Translate with the model, in the order of the sources."""
    tokenizer = checkpoint.tokenizer
    ids = [[tokenizer.start_id, *pieces] for pieces in tokenizer.encode_ids(sources)]
    order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
    texts = [""] * len(ids)
    for first in range(0, len(order), batch_rows):
        numbers = order[first : first + batch_rows]
        targets = translate(
            checkpoint.model,
            [ids[number] for number in numbers],
            start_id=tokenizer.start_id,
            end_id=tokenizer.end_id,
        )
        for number, target in zip(numbers, targets, strict=True):
            texts[number] = tokenizer.decode(target)
    return texts


# --- typed text -----------------------------------------------------------------------------------


def typed_figures(
    checkpoint: Checkpoint, pairs: Sequence[SentencePair], *, trained_on: Sequence[SentencePair]
) -> dict[str, Any]:
    """Measure the translation of text as visitors type it.

    Args:
        checkpoint: an encoder–decoder.
        pairs: held-out pairs; of their distinct sources `N_SENTENCES`, evenly spread, are typed in
            every form.
        trained_on: the training corpus, in which no name of `unseen_names` occurs.

    Returns:
        ``forms``: BLEU without regard to case, by form. ``names``: the share of unseen names that
        the translation keeps letter by letter; ``names_like_french``: of those that begin like a
        French word. ``visitors``: what `VISITORS` become.
    """
    names = unseen_names(trained_on)
    like_french = unseen_names(trained_on, FRENCH_LIKE_NAMES)
    figures: dict[str, Any] = {
        "forms": forms(checkpoint, spread(pairs, N_SENTENCES)),
        "names": {"names": len(names), "kept": names_kept(checkpoint, names)},
        "names_like_french": {
            "names": len(like_french),
            "kept": names_kept(checkpoint, like_french),
        },
    }
    typed = read_lines(VISITORS)
    figures["visitors"] = dict(zip(typed, translations(checkpoint, typed), strict=True))
    return figures


def spread(pairs: Sequence[SentencePair], count: int) -> list[SentencePair]:
    """Select the pairs of `count` distinct sources, evenly spread over the corpus."""
    sources = list(references_of(pairs))
    n_chosen = min(count, len(sources))
    chosen = {sources[number * len(sources) // n_chosen] for number in range(n_chosen)}
    return [pair for pair in pairs if pair.source in chosen]


def forms(checkpoint: Checkpoint, pairs: Sequence[SentencePair]) -> dict[str, float]:
    """Compute BLEU without regard to case for the sources in each form of `FORMS`."""
    return {
        name: bleu(checkpoint, pairs, typed=typed, is_case_blind=True)
        for name, typed in FORMS.items()
    }


def unseen_names(trained_on: Sequence[SentencePair], names: Sequence[str] = NAMES) -> list[str]:
    """Select the names that occur on neither side of a corpus."""
    known = {word for pair in trained_on for text in pair for word in WORD.findall(text)}
    return [name for name in names if name not in known]


def names_kept(checkpoint: Checkpoint, names: Sequence[str]) -> float:
    """Compute the share of names in `TEMPLATES` that the translation keeps letter by letter."""
    typed = [(name, template.format(name)) for name in names for template in TEMPLATES]
    translated = translations(checkpoint, [text for _, text in typed])
    kept = [name in WORD.findall(text) for (name, _), text in zip(typed, translated, strict=True)]
    return sum(kept) / len(kept)


def pronoun_figures(checkpoint: Checkpoint) -> dict[str, float | int]:
    """Measure whether *it* takes the gender of its noun, across a clause.

    The sentences are those of `because_of_subject` and `because_of_object` on nouns that no
    template for training has: "The animal didn't cross the street because it was too tired."

    Returns:
        ``of_subject`` and ``of_object``: the share of translations with the pronoun that stands
        for that noun and not the other one; ``agreeing``: the share of all with the adjective in
        its form, too; ``sentences``.
    """
    ways = gender_text.test_nouns(gender_text.WAYS)
    typed: dict[str, list[tuple[SentencePair, int, str]]] = {"of_subject": [], "of_object": []}
    for number, subject in enumerate(gender_text.test_nouns(gender_text.ANIMALS)):
        for turn, way in enumerate(ways):
            of_animal = gender_text.OF_ANIMALS[(number + turn) % len(gender_text.OF_ANIMALS)]
            of_way = gender_text.OF_WAYS[(number + turn) % len(gender_text.OF_WAYS)]
            pair = gender_text.because_of_subject(subject, way, of_animal)
            typed["of_subject"].append((pair, subject.gender, of_animal.french[subject.gender]))
            pair = gender_text.because_of_object(subject, way, of_way)
            typed["of_object"].append((pair, way.gender, of_way.french[way.gender]))
    figures: dict[str, float | int] = {}
    agreeing: list[bool] = []
    for name, items in typed.items():
        texts = translations(checkpoint, [pair.source for pair, _, _ in items])
        words = [set(WORD.findall(text.lower())) for text in texts]
        rights = [
            {"il", "elle"} & each == {("il", "elle")[gender]}
            for each, (_, gender, _) in zip(words, items, strict=True)
        ]
        agreeing += [
            right and adjective in each
            for right, each, (_, _, adjective) in zip(rights, words, items, strict=True)
        ]
        figures[name] = sum(rights) / len(rights)
    return {**figures, "agreeing": sum(agreeing) / len(agreeing), "sentences": len(agreeing)}
