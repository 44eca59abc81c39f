"""The figures of a card: their recipe, their evidence, and their rounding."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml

from headlight.lab.evaluation import figures as evaluation_figures
from headlight.lab.evaluation import fill, positions, preference, translate
from headlight.lab.evaluation.figures import (
    FORMS,
    Evidence,
    TextFigures,
    figures_of,
    joined,
    measure,
    measure_expert_tokens,
    recipe_of,
    sample_figures,
    typographic,
)
from headlight.lab.evaluation.moe import expert_tokens
from headlight.lab.evaluation.text import bits_per_byte
from headlight.lab.evaluation.word_alignment import read_gold
from headlight.model.checkpoint.card import read_card, rounded, write_card
from headlight.model.checkpoint.loading import load
from headlight.model.corpus import CorpusError, SentencePair, read_documents
from headlight.model.profiles.folder import ENGLISH_FRENCH, SAMPLE


@pytest.fixture(scope="module")
def make_named(make_folder):
    """Return a function for models whose card names a recipe: ``make_named("positions")``."""

    def make(recipe=None, **changes):
        learn = ["the cat saw a dog " * 3] if changes.get("kind") == "encoder" else None
        folder = make_folder(learn, **{"moe": None, "n_layers": 1, **changes})
        path = folder / "CARD.md"
        training = {} if recipe is None else {"recipe": recipe}
        write_card(path, replace(read_card(path), training=training))
        return load(folder)

    return make


@pytest.fixture
def sampled(monkeypatch):
    """Return the figures of the sample, which are not measured."""
    figures = {"accuracy": 0.5}
    monkeypatch.setattr("headlight.lab.evaluation.figures.sample_figures", lambda _: figures)
    return figures


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("The quick brown fox saw a dog, and the dog saw a cat.\n" * 20)
    return path


@pytest.mark.parametrize(
    ("kind", "named", "recipe"),
    [
        ("decoder", None, "stories"),
        ("decoder", "positions", "positions"),
        ("decoder", "poems", "stories"),
        ("encoder", "positions", "fill"),
        ("encoder-decoder", None, "translate"),
        ("encoder-decoder", "translate", "translate"),
    ],
)
def test_the_card_names_the_recipe_or_the_kind_does(make_named, kind, named, recipe):
    assert recipe_of(make_named(named, kind=kind)) == recipe


def test_the_sample_needs_no_other_files(make_named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    documents = read_documents([SAMPLE])
    assert len(documents) == 1
    storyteller, twin, encoder = make_named(), make_named("positions"), make_named(kind="encoder")
    for checkpoint, expected in [
        (storyteller, bits_per_byte(storyteller, documents)),
        (twin, positions.evaluate(twin, documents)),
        (encoder, fill.evaluate(encoder, documents)),
    ]:
        sentences = figures_of(checkpoint).own_sentences(checkpoint)
        assert measure(checkpoint, Evidence()) == {"sample": rounded({**expected, **sentences})}


def test_the_sample_holds_what_the_examples_of_the_card_claim(make_named, monkeypatch):
    checkpoint = make_named()
    claims = {"A head": {"claim": "previous", "score": 0.48716, "control": 0.1, "sentences": 3}}
    asked = []
    monkeypatch.setattr(
        "headlight.lab.evaluation.figures.measure_examples",
        lambda *given: asked.append(given) or claims,
    )
    figures = sample_figures(checkpoint)
    assert asked == [(checkpoint, read_documents([SAMPLE]))]
    assert figures["examples"] == {"A head": {**claims["A head"], "score": 0.4872}}


def test_a_card_keeps_the_figures_whose_file_was_not_given():
    known = {"bleu": 2.0, "dropped": 1, "alignment_literary": 0.7}
    measured = {"bleu": 1.5}
    text, gold = Path("text.txt"), Path("gold.jsonl")
    kept = {"bleu": 1.5, "alignment_literary": 0.7}
    assert joined(known, measured, Evidence(text=(text,))) == kept
    assert joined(known, measured, Evidence(text=(text,), gold=gold)) == measured
    assert joined(known, {"sample": {}}, Evidence()) == {**known, "sample": {}}


def test_typographic_quotes_open_and_close():
    assert typographic('"Oh," said "Tim\'s" cat--\'tis...') == "“Oh,” said “Tim’s” cat—’tis…"


def test_a_reward_model_reads_held_out_comparisons_in_every_form(make_folder, monkeypatch):
    folder = make_folder(moe=None, n_layers=1, max_tokens=200, has_reward=True)
    card = replace(read_card(folder / "CARD.md"), training={"recipe": "reward"})
    write_card(folder / "CARD.md", card)
    prompts = []

    def evaluate_reward(_, comparisons):
        prompts.append([comparison.prompt for comparison in comparisons])
        return {"accuracy": len(prompts) / 8}

    monkeypatch.setattr(preference, "evaluate_reward", evaluate_reward)
    assert sample_figures(load(folder)) == {
        "accuracy": 0.125,
        "robustness": {
            "figure": "accuracy",
            "forms": {name: (n + 1) / 8 for n, name in enumerate(FORMS)},
        },
    }
    assert prompts[0] == [comparison.prompt for comparison in preference.held_out_comparisons()]
    assert prompts[1] == [prompt.lower() for prompt in prompts[0]]


def test_a_translator_is_measured_on_every_file_that_it_is_given(make_named, tmp_path, monkeypatch):
    calls: list[tuple] = []

    def record(_, pairs, **others):
        calls.append((pairs, others))
        return {}

    monkeypatch.setattr(translate, "evaluate", record)
    text, corpus = tmp_path / "text.tsv", tmp_path / "corpus.tsv"
    text.write_text("a cat\tun chat\n", encoding="utf-8")
    corpus.write_text("a dog\tun chien\n", encoding="utf-8")
    evidence = Evidence(text=(text,), corpus=(corpus,), gold=ENGLISH_FRENCH)
    measure(make_named(kind="encoder-decoder"), evidence)
    gold = read_gold(ENGLISH_FRENCH)
    assert calls == [
        (
            [SentencePair("a cat", "un chat")],
            {"trained_on": [SentencePair("a dog", "un chien")], "literary": gold},
        ),
        ([SentencePair(pair.english, pair.french) for pair in gold], {}),
    ]


@pytest.mark.parametrize(("kind", "recipe"), [("encoder", "fill"), ("decoder", "positions")])
def test_a_model_is_measured_on_the_text_that_it_is_given(
    make_named, text, monkeypatch, kind, recipe
):
    def read(_, documents):
        return {"read": documents}

    monkeypatch.setattr(fill, "evaluate", read)
    monkeypatch.setattr(evaluation_figures, "PositionsFigures", partial(TextFigures, read))
    target = "headlight.lab.evaluation.figures.TextFigures.own_sentences"
    monkeypatch.setattr(target, lambda *_: {})
    figures = measure(make_named(recipe, kind=kind), Evidence(text=(text,)))
    documents, sample = read_documents([text]), read_documents([SAMPLE])
    assert figures == {"read": documents, "sample": {"read": sample}}


def test_a_model_that_reads_more_than_the_sample_has_figures_of_the_text_alone(
    make_named, monkeypatch, text
):
    checkpoint = make_named("positions", max_tokens=400)
    short = text.with_name("short.txt")
    short.write_text("A cat.\n")
    monkeypatch.setattr("headlight.lab.evaluation.figures.SAMPLE", short)
    assert "sample" not in measure(checkpoint, Evidence(text=(text,)))
    with pytest.raises(CorpusError, match="needs at least"):
        measure(checkpoint, Evidence())


@pytest.mark.parametrize(
    ("kind", "recipe", "evidence", "thing"),
    [
        ("decoder", "positions", {"corpus": (Path("a"),)}, "a corpus"),
        ("decoder", "stories", {"gold": Path("a")}, "a word alignment"),
    ],
)
def test_evidence_that_a_recipe_has_no_use_for_is_rejected(
    make_named, kind, recipe, evidence, thing
):
    with pytest.raises(ValueError, match=f"'{recipe}' is not measured on {thing}"):
        measure(make_named(recipe, kind=kind), Evidence(**evidence))


def test_what_the_experts_take_is_counted_on_the_corpus_alone(make_checkpoint, text, sampled):
    checkpoint = make_checkpoint()
    figures = measure_expert_tokens(checkpoint, Evidence(corpus=(text, text)))
    counted = rounded(expert_tokens(checkpoint, read_documents([text, text])))
    assert figures == {"text": ["text.txt", "text.txt"], **counted}
    assert measure_expert_tokens(checkpoint, Evidence(text=(text,))) == {}
    assert measure(checkpoint, Evidence(corpus=(text,))) == {"sample": sampled}


def test_every_float_is_rounded_to_four_digits_at_any_depth_as_plain_data():
    figures = {"a": np.float64(0.123456), "b": {"c": 0.99999, 7: [{"e": 1 / 3}, "x", None]}, "n": 3}
    plain = rounded(figures)
    assert plain == {"a": 0.1235, "b": {"c": 1.0, 7: [{"e": 0.3333}, "x", None]}, "n": 3}
    assert yaml.safe_load(yaml.safe_dump(plain)) == plain
    assert figures["b"]["c"] == 0.99999
