"""The figures of `translate`: BLEU, typed text and word alignment."""

import sys

import pytest
import sacrebleu

from headlight.lab.evaluation import translate as measured
from headlight.lab.evaluation.translate import (
    FORMS,
    FRENCH_LIKE_NAMES,
    NAMES,
    TEMPLATES,
    VISITORS,
    alignment_figures,
    bleu,
    evaluate,
    forms,
    names_kept,
    pronoun_figures,
    spread,
    translations,
    typed_figures,
    unseen_names,
)
from headlight.lab.evaluation.word_alignment import aligner, best_aligners, read_gold, short_pairs
from headlight.lab.training import gender_text
from headlight.lab.training.augmentation import NAMES as PARTS_OF_NAMES
from headlight.lab.training.batches import is_held_out
from headlight.lab.training.recipes.translate import TranslateConfig
from headlight.model.corpus import SentencePair, read_lines
from headlight.model.profiles.folder import ENGLISH_FRENCH
from tests.lab.evaluation.test_word_alignment import gold_pair

PAIRS = [SentencePair("The cat.", "Le chat."), SentencePair("A tree.", "Un arbre.")]
CORPUS = [SentencePair(f"the cat number {n}", f"le chat {n}") for n in range(300)]
FEW = CORPUS[:20]


@pytest.fixture(scope="module")
def translator(make_checkpoint):
    return make_checkpoint(kind="encoder-decoder", moe=None)


@pytest.fixture(autouse=True)
def small_gold(monkeypatch):
    """Use four pairs of the project's gold in place of all."""
    gold = read_gold(ENGLISH_FRENCH)[:4]
    monkeypatch.setattr("headlight.lab.evaluation.translate.read_gold", lambda path: gold)
    return gold


def test_pairs_alone_give_bleu_and_alignment(translator, small_gold):
    figures = evaluate(translator, PAIRS)
    assert figures["bleu"] == {"text": bleu(translator, PAIRS)}
    assert set(figures) == {"bleu", "alignment", "pronouns"}
    alignment = figures["alignment"]
    assert alignment["pairs"] == 4
    assert set(alignment["layer"]) == {"layer", "shift", "error_rate", "precision", "recall"}
    best, _ = best_aligners(translator, small_gold)
    assert alignment["head"] == {
        "layer": best.layer,
        "head": best.head,
        "shift": best.shift,
        "error_rate": best.score.error_rate,
        "precision": best.score.precision,
        "recall": best.score.recall,
    }


def test_of_a_corpus_what_was_held_back_is_translated(translator):
    share = TranslateConfig().held_out
    held_out = [pair for pair in CORPUS if is_held_out(pair.source, share)]
    assert held_out
    figures = evaluate(translator, [], trained_on=CORPUS)
    assert figures["bleu"] == {"held_out": bleu(translator, held_out)}


def test_with_pairs_and_a_corpus_typed_text_is_measured(translator, monkeypatch):
    asked = {}

    def measure(checkpoint, pairs, *, trained_on):
        asked.update(pairs=pairs, trained_on=trained_on)
        return {"names": {"kept": 1.0}}

    monkeypatch.setattr("headlight.lab.evaluation.translate.typed_figures", measure)
    figures = evaluate(translator, PAIRS, trained_on=FEW)
    assert figures["typed"] == {"names": {"kept": 1.0}}
    assert asked["pairs"] == PAIRS
    assert asked["trained_on"] == FEW


def test_another_gold_is_aligned_by_the_head_that_the_first_one_chose(translator, small_gold):
    """Choosing again would flatter the model."""
    second_gold = short_pairs(read_gold(ENGLISH_FRENCH), 8)[:20]
    figures = alignment_figures(translator, small_gold, second_gold)
    chosen, again = figures["alignment"]["head"], figures["alignment_literary"]["head"]
    place = {name: chosen[name] for name in ("layer", "head", "shift")}
    assert place == {name: again[name] for name in place}
    expected = aligner(translator, second_gold, **place).score
    assert again["error_rate"] == expected.error_rate
    assert figures["alignment_literary"]["pairs"] == 20


def test_only_short_pairs_of_another_gold_are_aligned(translator):
    short, text = read_gold(ENGLISH_FRENCH)[0], " ".join(["a"] * 16)
    long = gold_pair(text, text, sure=[(0, 0)])
    figures = evaluate(translator, [], literary=[long, short])
    assert figures["alignment_literary"]["pairs"] == 1
    assert "alignment_literary" not in evaluate(translator, [], literary=[long])


# --- BLEU -----------------------------------------------------------------------------------------


SAID = {
    "The cat chased the mouse.": "Le chat a chassé la petite souris.",
    "It was too tired.": "Il était trop fatigué pour cela.",
    "A tree!": "Un arbre !",
}


@pytest.fixture
def says(monkeypatch, tokenizer):
    """Let the translator say what is in `SAID`; the list counts the texts of every call."""
    calls: list[int] = []

    def say(model, sources, *, start_id, end_id):
        assert {source[0] for source in sources} == {tokenizer.start_id}
        assert end_id == tokenizer.end_id
        calls.append(len(sources))
        texts = [SAID[tokenizer.decode(source)] for source in sources]
        return tokenizer.encode_ids(texts)

    monkeypatch.setattr("headlight.lab.evaluation.translate.translate", say)
    return calls


def pairs_of(*references):
    return [SentencePair(source, target) for source, target in references]


def test_the_score_is_that_of_sacrebleu(translator, says):
    cat, tired, tree = SAID
    pairs = pairs_of(
        (tree, "Un arbre!"),
        (cat, "Le chat chassa la petite souris."),
        (tired, "Il était trop las pour cela."),
    )
    expected = sacrebleu.corpus_bleu(
        [SAID[pair.source] for pair in pairs], [[pair.target for pair in pairs]]
    )
    assert bleu(translator, pairs) == expected.score
    assert 10 < expected.score < 90


def test_a_source_with_many_references_counts_once_against_all(translator, says):
    cat, tired, tree = SAID
    pairs = pairs_of(
        (cat, "Le matou a chassé une souris."),
        (tree, "Un arbre !"),
        (cat, "Le chat poursuit la petite souris."),
        (tired, "Il était las pour cela."),
        (cat, "Un chat chassa la souris grise."),
        (tired, "Elle était trop fatiguée pour cela."),
    )
    expected = sacrebleu.corpus_bleu(
        [SAID[cat], SAID[tree], SAID[tired]],
        [
            ["Le matou a chassé une souris.", "Un arbre !", "Il était las pour cela."],
            ["Le chat poursuit la petite souris.", None, "Elle était trop fatiguée pour cela."],
            ["Un chat chassa la souris grise.", None, None],
        ],
    )
    assert bleu(translator, pairs) == expected.score
    assert sum(says) == 3
    first_alone = bleu(translator, pairs_of(*{p.source: p.target for p in pairs[::-1]}.items()))
    assert first_alone < expected.score


def test_translations_come_in_the_order_of_the_sources(translator, says):
    sources = [*SAID, *reversed(SAID)]
    assert translations(translator, sources, batch_rows=4) == [SAID[text] for text in sources]
    assert says == [4, 2]


def test_without_sacrebleu_the_error_names_what_to_install(translator, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match=r"sacrebleu.*pip install 'headlight-viz\[lab\]'"):
        bleu(translator, pairs_of(*SAID.items()))


def test_case_counts_unless_the_score_is_blind_to_it(translator, says):
    cat = next(iter(SAID))
    pairs = pairs_of((cat, SAID[cat].upper()))
    assert bleu(translator, pairs) < 50
    assert bleu(translator, pairs, is_case_blind=True) == pytest.approx(100)


# --- typed text -----------------------------------------------------------------------------------


@pytest.fixture
def echo(monkeypatch):
    """Let every translation be its source; the list holds what was typed."""
    typed: list[str] = []

    def repeat(checkpoint, sources):
        typed.extend(sources)
        return list(sources)

    monkeypatch.setattr(measured, "translations", repeat)
    return typed


def test_a_sentence_is_typed_in_every_form(translator, echo):
    pairs = pairs_of(("Don't stop, Tom!", "Don't stop, Tom!"))
    scores = forms(translator, pairs)
    assert dict(zip(FORMS, echo, strict=True)) == {
        "as_written": "Don't stop, Tom!",
        "lower_case": "don't stop, tom!",
        "no_stop": "Don't stop, Tom",
        "lower_case_no_stop": "don't stop, tom",
        "capitals": "DON'T STOP, TOM!",
        "typographic": "Don\u2019t stop, Tom!",
    }
    assert scores["as_written"] == scores["capitals"] == pytest.approx(100)
    assert scores["no_stop"] < 100


def test_the_chosen_sources_are_spread_and_keep_all_their_references():
    pairs = pairs_of(*((str(n // 2), str(n)) for n in range(20)))
    chosen = spread(pairs, 5)
    assert [pair.source for pair in chosen] == [n for n in "02468" for _ in range(2)]
    assert spread(pairs, 100) == pairs


def test_a_name_counts_if_it_comes_back_letter_by_letter(translator, echo, monkeypatch):
    assert names_kept(translator, ["Ahmed", "Priya"]) == 1.0
    assert len(echo) == 2 * len(TEMPLATES)

    def change(checkpoint, sources):
        return [source.replace("Priya", "Priyas") for source in sources]

    monkeypatch.setattr(measured, "translations", change)
    assert names_kept(translator, ["Ahmed", "Priya"]) == 0.5


def test_names_of_the_corpus_are_not_unseen():
    assert unseen_names(pairs_of(("Ahmed's cat", "le chat"), ("a", "de Priya."))) == [
        name for name in NAMES if name not in ("Ahmed", "Priya")
    ]
    assert not {*NAMES} & {*PARTS_OF_NAMES["given"]}, "training draws these"


def test_forty_sentences_of_visitors_are_translated(translator, echo):
    figures = typed_figures(translator, pairs_of(("a", "b")), trained_on=[])
    visitors = read_lines(VISITORS)
    assert len(set(visitors)) == 40
    assert figures["visitors"] == {text: text for text in visitors}
    assert figures["names"] == {"names": len(NAMES), "kept": 1.0}
    assert figures["names_like_french"] == {"names": len(FRENCH_LIKE_NAMES), "kept": 1.0}


def test_a_pronoun_counts_if_only_the_one_of_its_noun_is_there(translator, monkeypatch):
    """Three wrong translators: always *il*, both pronouns, and no adjective."""
    right = {}
    for subject in gender_text.test_nouns(gender_text.ANIMALS):
        for way in gender_text.test_nouns(gender_text.WAYS):
            for make, adjectives in (
                (gender_text.because_of_subject, gender_text.OF_ANIMALS),
                (gender_text.because_of_object, gender_text.OF_WAYS),
            ):
                for adjective in adjectives:
                    pair = make(subject, way, adjective)
                    right[pair.source] = pair.target

    def measured_with(change):
        monkeypatch.setattr(
            measured, "translations", lambda _, sources: [change(right[s]) for s in sources]
        )
        return pronoun_figures(translator)

    assert measured_with(str) == {
        "of_subject": 1.0, "of_object": 1.0, "agreeing": 1.0, "sentences": len(right) and 112
    }  # fmt: skip
    always = measured_with(lambda text: text.replace("qu'elle", "qu'il"))
    assert 0 < always["of_subject"] < 1
    assert 0 < always["of_object"] < 0.5
    assert measured_with(lambda text: f"Il voit. Elle voit. {text}")["of_subject"] == 0
    without = measured_with(lambda text: text.partition(" trop ")[0])
    assert without["of_subject"] == 1
    assert without["agreeing"] == 0
