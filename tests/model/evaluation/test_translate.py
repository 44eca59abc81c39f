"""Every figure on the card of `translate`."""

from collections.abc import Callable

import pytest
import torch

from headlight.model.checkpoint import Checkpoint
from headlight.model.evaluation.bleu import bleu
from headlight.model.evaluation.cross_attention import aligner, best_head
from headlight.model.evaluation.translate import alignment_figures, evaluate
from headlight.model.evaluation.word_alignment import (
    ENGLISH_FRENCH_GOLD,
    GoldPair,
    alignment_error_rate,
    ibm_model_1_links,
    read_gold,
    short_pairs,
)
from headlight.model.training.batches import is_held_out
from headlight.model.training.corpus import SentencePair
from headlight.model.training.translate import TranslateConfig

PAIRS = [SentencePair("The cat.", "Le chat."), SentencePair("A tree.", "Un arbre.")]
CORPUS = [SentencePair(f"the cat number {n}", f"le chat {n}") for n in range(300)]


@pytest.fixture(scope="module")
def translator(make_checkpoint: Callable[..., Checkpoint]) -> Checkpoint:
    return make_checkpoint(kind="encoder-decoder", moe=None)


@pytest.fixture(autouse=True)
def small_gold(monkeypatch: pytest.MonkeyPatch) -> list[GoldPair]:
    """Four pairs of the project's gold stand for all."""
    gold = read_gold(ENGLISH_FRENCH_GOLD)[:4]
    monkeypatch.setattr("headlight.model.evaluation.translate.read_gold", lambda path: gold)
    return gold


def test_pairs_alone_give_bleu_and_alignment(
    translator: Checkpoint, small_gold: list[GoldPair]
) -> None:
    figures = evaluate(translator, PAIRS)
    assert figures["bleu"] == {"text": round(bleu(translator, PAIRS), 4)}
    assert set(figures) == {"bleu", "alignment"}
    alignment = figures["alignment"]
    assert alignment["pairs"] == 4
    assert set(alignment["layer"]) == {"layer", "shift", "error_rate", "precision", "recall"}
    found = best_head(translator, small_gold)
    assert alignment["head"] == {
        "layer": found.layer,
        "head": found.head,
        "shift": found.shift,
        "error_rate": round(found.score.error_rate, 4),
        "precision": round(found.score.precision, 4),
        "recall": round(found.score.recall, 4),
    }


def test_without_pairs_there_is_no_bleu(translator: Checkpoint) -> None:
    assert set(evaluate(translator, [])) == {"alignment"}


def test_of_a_corpus_what_was_held_back_is_translated_and_the_rest_is_learned_from(
    translator: Checkpoint, small_gold: list[GoldPair]
) -> None:
    share = TranslateConfig().held_out
    held_out = [pair for pair in CORPUS if is_held_out(pair.source, share)]
    learned = [pair for pair in CORPUS if not is_held_out(pair.source, share)]
    assert held_out
    figures = evaluate(translator, [], trained_on=CORPUS)
    assert figures["bleu"] == {"held_out": round(bleu(translator, held_out), 4)}
    assert set(figures["ibm_models"]) == {"model_1", "model_2"}
    score = alignment_error_rate(ibm_model_1_links(learned, small_gold), small_gold)
    assert figures["ibm_models"]["model_1"]["error_rate"] == round(score.error_rate, 4)


def test_another_gold_is_aligned_by_the_head_that_the_first_one_chose(
    translator: Checkpoint, small_gold: list[GoldPair]
) -> None:
    """Choosing again would flatter the model."""
    other = short_pairs(read_gold(ENGLISH_FRENCH_GOLD), 8)[:20]
    figures = alignment_figures(translator, small_gold, other)
    chosen, again = figures["alignment"]["head"], figures["alignment_literary"]["head"]
    place = {name: chosen[name] for name in ("layer", "head", "shift")}
    assert place == {name: again[name] for name in place}
    expected = aligner(translator, other, **place).score
    assert again["error_rate"] == expected.error_rate
    assert figures["alignment_literary"]["pairs"] == 20


def test_only_short_pairs_of_another_gold_are_aligned(translator: Checkpoint) -> None:
    short, words = read_gold(ENGLISH_FRENCH_GOLD)[0], ("a",) * 16
    text, links = " ".join(words), frozenset({(0, 0)})
    long = GoldPair(
        english=text,
        french=text,
        english_words=words,
        french_words=words,
        sure=links,
        possible=links,
    )
    figures = evaluate(translator, [], literary=[long, short])
    assert figures["alignment_literary"]["pairs"] == 1
    assert "alignment_literary" not in evaluate(translator, [], literary=[long])


def test_who_looks_at_no_word_has_the_worst_error_rate(translator: Checkpoint) -> None:
    def look_at_the_start(weights: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.one_hot(
            torch.zeros(weights.shape[:-1], dtype=torch.long), weights.shape[-1]
        ).to(weights)

    sites = [f"decoder.layers.{layer}.cross_attention.weights" for layer in (0, 1)]
    with (
        translator.model.edit(sites[0], look_at_the_start),
        translator.model.edit(sites[1], look_at_the_start),
    ):
        figures = evaluate(translator, [])
    assert figures["alignment"]["head"]["error_rate"] == 1
    assert figures["alignment"]["layer"]["recall"] == 0
