"""The figures of `translate`: BLEU, typed text, word alignment, and the IBM models."""

import pytest

from headlight.model.evaluation.ibm_models import ibm_model_1_links
from headlight.model.evaluation.translate import alignment_figures, evaluate
from headlight.model.evaluation.translations import bleu
from headlight.model.evaluation.word_alignment import (
    ENGLISH_FRENCH_GOLD,
    aligner,
    alignment_error_rate,
    best_head,
    read_gold,
    short_pairs,
)
from headlight.model.training.batches import is_held_out
from headlight.model.training.corpus import SentencePair
from headlight.model.training.recipes.translate import TranslateConfig
from tests.model.evaluation.test_word_alignment import gold_pair

PAIRS = [SentencePair("The cat.", "Le chat."), SentencePair("A tree.", "Un arbre.")]
CORPUS = [SentencePair(f"the cat number {n}", f"le chat {n}") for n in range(300)]


@pytest.fixture(scope="module")
def translator(make_checkpoint):
    return make_checkpoint(kind="encoder-decoder", moe=None)


@pytest.fixture(autouse=True)
def small_gold(monkeypatch):
    """Four pairs of the project's gold stand for all."""
    gold = read_gold(ENGLISH_FRENCH_GOLD)[:4]
    monkeypatch.setattr("headlight.model.evaluation.translate.read_gold", lambda path: gold)
    return gold


def test_pairs_alone_give_bleu_and_alignment(translator, small_gold):
    figures = evaluate(translator, PAIRS)
    assert figures["bleu"] == {"text": bleu(translator, PAIRS)}
    assert set(figures) == {"bleu", "alignment"}
    alignment = figures["alignment"]
    assert alignment["pairs"] == 4
    assert set(alignment["layer"]) == {"layer", "shift", "error_rate", "precision", "recall"}
    found = best_head(translator, small_gold)
    assert alignment["head"] == {
        "layer": found.layer,
        "head": found.head,
        "shift": found.shift,
        "error_rate": found.score.error_rate,
        "precision": found.score.precision,
        "recall": found.score.recall,
    }


def test_of_a_corpus_what_was_held_back_is_translated_and_the_rest_is_learned_from(
    translator, small_gold
):
    share = TranslateConfig().held_out
    held_out = [pair for pair in CORPUS if is_held_out(pair.source, share)]
    learned = [pair for pair in CORPUS if not is_held_out(pair.source, share)]
    assert held_out
    figures = evaluate(translator, [], trained_on=CORPUS)
    assert figures["bleu"] == {"held_out": bleu(translator, held_out)}
    assert set(figures["ibm_models"]) == {"model_1", "model_2", "diagonal"}
    score = alignment_error_rate(ibm_model_1_links(learned, small_gold), small_gold)
    assert figures["ibm_models"]["model_1"]["error_rate"] == score.error_rate


def test_with_pairs_and_a_corpus_typed_text_is_measured(translator, monkeypatch):
    asked = {}

    def measure(checkpoint, pairs, *, trained_on, long_pairs):
        asked.update(pairs=pairs, trained_on=trained_on, long_pairs=long_pairs)
        return {"names": {"kept": 1.0}}

    monkeypatch.setattr("headlight.model.evaluation.translate.typed_figures", measure)
    literary = read_gold(ENGLISH_FRENCH_GOLD)[:1]
    figures = evaluate(translator, PAIRS, trained_on=CORPUS, literary=literary)
    assert figures["typed"] == {"names": {"kept": 1.0}}
    assert asked["pairs"] == PAIRS
    assert asked["trained_on"] == CORPUS
    assert [pair.source for pair in asked["long_pairs"]] == [literary[0].english]


def test_another_gold_is_aligned_by_the_head_that_the_first_one_chose(translator, small_gold):
    """Choosing again would flatter the model."""
    other = short_pairs(read_gold(ENGLISH_FRENCH_GOLD), 8)[:20]
    figures = alignment_figures(translator, small_gold, other)
    chosen, again = figures["alignment"]["head"], figures["alignment_literary"]["head"]
    place = {name: chosen[name] for name in ("layer", "head", "shift")}
    assert place == {name: again[name] for name in place}
    expected = aligner(translator, other, **place).score
    assert again["error_rate"] == expected.error_rate
    assert figures["alignment_literary"]["pairs"] == 20


def test_only_short_pairs_of_another_gold_are_aligned(translator):
    short, text = read_gold(ENGLISH_FRENCH_GOLD)[0], " ".join(["a"] * 16)
    long = gold_pair(text, text, sure=[(0, 0)])
    figures = evaluate(translator, [], literary=[long, short])
    assert figures["alignment_literary"]["pairs"] == 1
    assert "alignment_literary" not in evaluate(translator, [], literary=[long])
