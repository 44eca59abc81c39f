"""`headlight evaluate`: from a model and some files to figures on its card."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from headlight.cli import app
from headlight.lab.evaluation import translate
from headlight.lab.evaluation.figures import sample_figures
from headlight.lab.evaluation.word_alignment import read_gold
from headlight.model.checkpoint.card import ModelCard, read_card, write_card
from headlight.model.checkpoint.loading import ZOO, load, save
from headlight.model.profiles.folder import ENGLISH_FRENCH
from headlight.model.tokenizer import train_tokenizer
from headlight.model.transformer import Transformer
from tests.lab.training import conftest as training

CARD = Path("out/CARD.md")
MADE = ModelCard(
    title="Mine",
    licence="CC0",
    training={"steps": 3},
    metrics={"bits_per_byte": 1.5, "tokens": 7},
    prose="# Mine\n\nFor tests.",
)
SMALL = replace(
    training.SMALL, n_layers=1, dropout=0.0, moe=replace(training.SMALL.moe, layers=(0,))
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Return an empty working directory, which keeps paths short."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADLIGHT_DEVICE", raising=False)
    return tmp_path


@pytest.fixture
def corpus():
    """Return the name of a file of forty paragraphs."""
    lines = [f"The cat saw the dog and then, at last, number {n}.\n" for n in range(40)]
    Path("corpus.txt").write_text("".join(lines))
    return "corpus.txt"


def make(**changes):
    """Return the folder of a random model whose card has figures already."""
    has_mask = changes.get("kind") == "encoder"
    words = ["The cat saw the dog and then, at last, number 12 was there.\n"] * 3
    tokenizer = train_tokenizer(words, 300, has_mask=has_mask)
    torch.manual_seed(0)
    config = replace(SMALL, vocab_size=tokenizer.vocab_size, **changes)
    save(Path("out"), Transformer(config).eval(), tokenizer, MADE, dtype=torch.float32)
    return "out"


@pytest.fixture
def decoder():
    return make()


def evaluate(*arguments):
    return CliRunner().invoke(app, ["evaluate", "--device", "cpu", *arguments])


def assert_fails(result, *parts, code):
    """Check that a command failed with one line on standard error that names these."""
    assert isinstance(result.exception, SystemExit)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.count("\n") == 1
    for part in parts:
        assert part in result.stderr


def test_figures_on_a_text_are_printed_and_replace_those_of_the_card(decoder, corpus):
    write_card(CARD, replace(MADE, metrics={"perplexity": 9.0}))
    result = evaluate(decoder, "--text", corpus)
    assert result.exit_code == 0, result.output
    card = read_card(CARD)
    assert replace(card, metrics={}) == replace(MADE, metrics={})
    assert "perplexity" not in card.metrics
    assert card.metrics["bits_per_byte"] > 0
    assert card.metrics["tokens"] > 7
    assert card.metrics["sample"] == sample_figures(load("out"))
    shown = result.stdout
    assert str(card.metrics["bits_per_byte"]) in shown
    assert "sample.bits_per_byte" in shown
    assert "name held-out text" not in shown


def test_without_a_text_the_sample_is_measured_and_the_card_keeps_the_rest(decoder):
    result = evaluate(decoder)
    assert result.exit_code == 0, result.output
    card = read_card(CARD)
    assert card == replace(MADE, metrics={**MADE.metrics, "sample": sample_figures(load("out"))})
    assert str(card.metrics["sample"]["bits_per_byte"]) in result.stdout
    assert "1.5" not in [cell.strip() for cell in result.stdout.split("│")]
    assert "--text" in result.stdout
    assert "headlight evaluate out --text valid.txt" not in result.stdout
    known = {**MADE.training, "evaluation": "headlight evaluate out --text valid.txt"}
    write_card(CARD, replace(card, training=known))
    shown = " ".join(evaluate(decoder).stdout.split())
    assert "the figures on the card come from: headlight evaluate out --text valid.txt" in shown
    before = CARD.read_bytes()
    assert evaluate(decoder).exit_code == 0
    assert CARD.read_bytes() == before, "measuring again changes nothing"


def test_an_encoder_is_measured_by_the_words_it_fills_in(corpus):
    result = evaluate(make(kind="encoder", moe=None), "--text", corpus)
    assert result.exit_code == 0, result.output
    assert set(read_card(CARD).metrics) == {
        "masked_word_accuracy",
        "masked_word_in_first_five",
        "masked_words",
        "sample",
    }


@pytest.mark.slow
def test_a_translator_is_measured_on_pairs_and_another_gold(monkeypatch):
    gold = read_gold(ENGLISH_FRENCH)[:3]
    monkeypatch.setattr("headlight.lab.evaluation.figures.read_gold", lambda path: gold)
    monkeypatch.setattr(translate, "read_gold", lambda path: gold)
    Path("pairs.tsv").write_text("A cat.\tUn chat.\nA dog.\tUn chien.\n")
    folder = make(kind="encoder-decoder", moe=None, max_tokens=64)
    result = evaluate(folder, "--text", "pairs.tsv", "--gold", "gold.jsonl")
    assert result.exit_code == 0, result.output
    metrics = read_card(CARD).metrics
    assert set(metrics) == {"bleu", "alignment", "alignment_literary", "pronouns", "sample"}
    assert set(metrics["bleu"]) == {"text"}


@pytest.mark.parametrize(
    ("arguments", "fault", "code"),
    [
        (["--text", "none.txt"], "none.txt cannot be read", 2),
        (["--text", "short.txt", "--gold", "gold.jsonl"], "a word alignment", 2),
    ],
)
def test_an_evaluation_that_fails_leaves_the_card(decoder, corpus, arguments, fault, code):
    Path("short.txt").write_text("a\n")
    before = CARD.read_bytes()
    assert_fails(evaluate(decoder, *arguments), fault, code=code)
    assert CARD.read_bytes() == before


def test_a_folder_without_a_model_is_a_failure():
    assert_fails(evaluate("."), "config.json", code=2)


def test_an_unknown_model_is_a_usage_error_that_names_the_others():
    shipped = [path.name for path in ZOO.iterdir() if path.is_dir()]
    assert_fails(evaluate("nowhere"), "'nowhere'", *shipped, code=2)


def test_a_model_of_another_directory_is_known_by_its_name(decoder):
    Path("models").mkdir()
    Path("out").rename("models/mine")
    assert evaluate("mine", "--models-dir", "models").exit_code == 0
    assert "sample" in read_card(Path("models/mine/CARD.md")).metrics


@pytest.mark.slow
def test_a_corpus_gives_the_tokens_of_each_expert_and_changes_no_figure(decoder, corpus):
    result = evaluate(decoder, "--corpus", corpus)
    assert result.exit_code == 0, result.output
    card = read_card(CARD)
    assert card.metrics == {**MADE.metrics, "sample": sample_figures(load("out"))}
    assert card.expert_tokens["text"] == ["corpus.txt"]
    experts = card.expert_tokens["layers"]["decoder.layers.0"]
    assert len(experts) == 4
    assert sum(expert["share"] for expert in experts) == pytest.approx(2, abs=2e-4)
    assert "most of all" in result.stdout
    assert evaluate(decoder, "--text", corpus).exit_code == 0
    renewed = read_card(CARD)
    assert renewed.expert_tokens == card.expert_tokens
    assert renewed.metrics["tokens"] > 7


def test_a_dense_model_has_no_experts_to_count(corpus):
    result = evaluate(make(moe=None), "--corpus", corpus)
    assert_fails(result, "dense", code=2)
