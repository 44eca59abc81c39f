"""`headlight profile`: every head of a model, measured on sentences."""

import shutil

import pytest

from headlight.model.checkpoint.card import read_card
from headlight.model.checkpoint.loading import ZOO, load

SENTENCES = "".join(f"The cat saw the dog and then, at last, number {n}.\n" for n in range(9))


@pytest.fixture
def measure(zoo, headlight, tmp_path, monkeypatch):
    """Return what measures a copy of a model on few sentences, and the copy's folder."""
    for name in ("subject", "antecedent"):  # they are longer than a tiny model reads
        monkeypatch.setattr(f"headlight.model.profiles.measure.{name}_sentences", list)

    def profile(model, *words):
        folder = tmp_path / model.name
        shutil.copytree(model, folder)
        return headlight("profile", str(folder), *words), folder

    return profile


def test_a_profile_is_written_next_to_the_model_and_on_its_card(measure, zoo, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(SENTENCES)
    result, folder = measure(zoo / "tiny", "--text", str(text), "--sentences", "5")
    assert result.exit_code == 0, result.output
    profile, card = load(folder).description.heads, read_card(folder / "CARD.md")
    assert (profile["text"], profile["sentences"]) == (["text.txt"], 5)
    assert card.prose == read_card(zoo / "tiny" / "CARD.md").prose
    assert card.heads["sentences"] == 5
    for site, heads in profile["attentions"].items():
        for shown, head in zip(card.heads["attentions"][site], heads, strict=True):
            labels = {name: head["scores"][name]["score"] for name in head["labels"]}
            assert shown == {"labels": labels, "cost": head["cost"]}
            assert f"{head['cost']:+.4f}" in result.stdout


@pytest.mark.parametrize(
    ("model", "text"),
    [("sums", "solutions of test problems"), ("translator", "the project's own texts")],
)
def test_without_files_a_model_reads_sentences_that_it_knows(measure, zoo, model, text):
    result, folder = measure((ZOO if model == "sums" else zoo) / model, "--sentences", "2")
    assert result.exit_code == 0, result.output
    profile = load(folder).description.heads
    assert (profile["text"], profile["sentences"]) == ([text], 2)


def test_a_model_that_multiplies_reads_no_files(measure, tmp_path):
    result, _ = measure(ZOO / "sums", "--text", str(tmp_path))
    assert result.exit_code == 2
    assert "is measured on problems, not files; leave them out" in result.stderr


def test_an_unknown_model_is_a_usage_error_that_names_the_others(headlight):
    result = headlight("profile", "gpt")
    assert result.exit_code == 2
    assert "stories" in result.stderr
