"""A card is read back as it was written; a malformed one names its file."""

import re
from dataclasses import replace

import pytest
import yaml

from headlight.model.checkpoint.card import Example, ModelCard, read_card, to_markdown, write_card

EXAMPLE = Example(text="The cat sat.", view="attention", where="cross", layer=0, head=2, query=3)
FULL = ModelCard(
    title="Stories — für alle 🦊",
    licence="CC-BY-4.0",
    trained_on=("Books: a list", "More # books"),
    attribution=("Ada, 'the first'",),
    examples={'She said: "no".': "---", "yes": "12", "a ---": "", "A cat": EXAMPLE},
    training={"command": "headlight train stories", "seed": 7, "hours": 1.25, "done": True},
    metrics={"bits_per_byte": 1.61, "expert_load_entropy": {0: 0.98, 1: 0.97}},
    prose="# Stories\n\nReads books.\n\n---\n\nAnd more: after a rule.",
)


def test_a_card_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "CARD.md"
    for card in (FULL, ModelCard(title="Tiny", licence="MIT")):
        write_card(path, card)
        assert read_card(path) == card


def test_the_figures_are_a_table_at_the_end(tmp_path):
    write_card(tmp_path / "CARD.md", FULL)
    text = (tmp_path / "CARD.md").read_text(encoding="utf-8")
    assert text.endswith(
        "And more: after a rule.\n\n## Figures\n\n| figure | value |\n|---|---|\n"
        "| bits_per_byte | 1.61 |\n"
        "| expert_load_entropy.0 | 0.98 |\n| expert_load_entropy.1 | 0.97 |\n"
    )
    write_card(tmp_path / "CARD.md", ModelCard(title="Tiny", licence="MIT", prose="Tiny."))
    assert (tmp_path / "CARD.md").read_text(encoding="utf-8").endswith("---\n\nTiny.\n")


def test_figures_of_the_training_text_are_a_table_before_those_of_the_model(tmp_path):
    path = tmp_path / "CARD.md"
    card = replace(FULL, corpus={"by": "passage", "topics": {"sea ship": 0.25}})
    write_card(path, card)
    assert read_card(path) == card
    assert (
        "after a rule.\n\n## Training text\n\n| figure | value |\n|---|---|\n| by | passage |\n"
        "| topics.sea ship | 0.25 |\n\n## Figures\n\n"
    ) in path.read_text(encoding="utf-8")
    write_card(path, FULL)
    assert "corpus:" not in path.read_text(encoding="utf-8")


def test_what_a_model_writes_is_printed_once(tmp_path):
    sample = {
        "blanks": {"fitting": 0.5, "guesses": {"A [MASK] or | not.": "dog 0.31, cat 0.11"}},
        "continuations": {'"Where?" cried the': ' king.\n"Here|there."'},
        "robustness": {"figure": "accuracy", "forms": {"lower_case": 0.25}},
    }
    card = replace(FULL, metrics={"sample": sample})
    write_card(tmp_path / "CARD.md", card)
    written = to_markdown(card)
    assert "| A [MASK] or \\| not. | dog 0.31, cat 0.11 |\n" in written
    assert '| "Where?" cried the | king. ↵ "Here\\|there." |\n' in written
    assert "| lower case | accuracy | 0.25 |\n" in written
    assert "| sample.blanks.fitting | 0.5 |\n" in written
    assert written.count("cried the") == 1
    assert read_card(tmp_path / "CARD.md") == card


def test_new_figures_replace_the_old(tmp_path):
    path = tmp_path / "CARD.md"
    write_card(path, FULL)
    renewed = replace(read_card(path), metrics={"bits_per_byte": 1.5})
    write_card(path, renewed)
    assert read_card(path) == renewed
    assert path.read_text(encoding="utf-8").count("## Figures") == 1
    assert "1.61" not in path.read_text(encoding="utf-8")


def test_an_example_opens_what_it_names_and_nothing_else():
    opens = {"view": "attention", "where": "cross", "layer": 0, "head": 2, "query": 3}
    assert EXAMPLE.opens == opens
    assert Example(text="a").opens == {}


def test_a_card_written_by_hand_may_leave_fields_out(tmp_path):
    (tmp_path / "CARD.md").write_text("---\ntitle: T\nlicence: L\nexamples:\nmetrics:\n---\n")
    assert read_card(tmp_path / "CARD.md") == ModelCard(title="T", licence="L")


@pytest.mark.parametrize("text", ["# No YAML\n", "", "---\ntitle: T\n", "\n---\ntitle: T\n---\n"])
def test_a_card_without_front_matter_is_an_error(tmp_path, text):
    path = tmp_path / "CARD.md"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} must begin with YAML"):
        read_card(path)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("title: T\nname: N", "the front matter must be a mapping"),
        ("title: T", "licence must be a text, not None"),
        ("title: T\nlicence: L\nexamples: hello", "examples must be a mapping, not 'hello'"),
        ("title: T\nlicence: L\nexamples:\n  A: {text: a, layers: 1}", "unknown key layers of an"),
        ("title: T\nlicence: L\nexamples:\n  A: {text: a, layer: -1}", "layer of an example"),
        ("title: T\nlicence: L\nexamples:\n  A: {layer: 1}", "must have a text"),
        ("title: [unclosed", "broken YAML"),
        ("title: T\nlicence: L\nmetrics: {a: &a 1, b: *a}", "an alias"),
    ],
)
def test_front_matter_that_is_not_a_cards_is_an_error(tmp_path, head, message):
    path = tmp_path / "CARD.md"
    path.write_text(f"---\n{head}\n---\n")
    with pytest.raises(ValueError, match=message) as raised:
        read_card(path)
    assert str(raised.value).startswith(str(path))


def test_a_missing_or_unreadable_card_is_named(tmp_path):
    path = tmp_path / "CARD.md"
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: No such file"):
        read_card(path)
    path.write_bytes(b"---\ntitle: \xff\n---\n")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))} cannot be read: .*utf-8"):
        read_card(path)


FOUND = {
    "text": ["train.txt"],
    "tokens": 1000,
    "least_count": 10,
    "kinds": {"punctuation": 0.25, "start_of_word": 0.75},
    "layers": {
        "decoder.layers.0": [
            {"share": 0.5, "kinds": {"punctuation": 1.0}, "tokens": []},
            {
                "share": 0.5,
                "kinds": {"punctuation": 0.0},
                "tokens": [
                    {"text": " the", "share": 0.99, "count": 70},
                    {"text": "|", "share": 0.98, "count": 60},
                    {"text": "\n`", "share": 0.97, "count": 50},
                ],
            },
        ]
    },
}


def test_what_the_experts_take_comes_back_and_is_a_table_before_the_figures(tmp_path):
    path = tmp_path / "CARD.md"
    card = replace(FULL, expert_tokens=FOUND)
    write_card(path, card)
    assert read_card(path) == card
    text = path.read_text(encoding="utf-8")
    assert "      tokens: [{text: ' the', share: 0.99, count: 70}, {text: '|', share: 0.98" in text
    assert r'text: "\n`"' in text
    assert (
        "And more: after a rule.\n\n## Tokens by expert\n\n"
        "| layer | expert | share of tokens | top tokens |\n|---|---|---|---|\n"
        "| decoder.layers.0 | 0 | 50.0 % |  |\n"
        "| decoder.layers.0 | 1 | 50.0 % | `·the` `\\|` `` ↵` `` |\n"
        "\n## Figures\n\n"
    ) in text
    renewed = replace(read_card(path), expert_tokens={}, metrics={})
    write_card(path, renewed)
    assert read_card(path) == renewed
    assert "expert" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "change",
    [
        {"text": "train.txt"},
        {"kinds": {"punctuation": float("nan")}},
        {"layers": {"decoder.layers.0": [{"share": 0.5}]}},
        {"layers": {"decoder.layers.0": [FOUND["layers"]["decoder.layers.0"][0] | {"name": "a"}]}},
    ],
)
def test_experts_that_were_edited_wrongly_are_an_error(tmp_path, change):
    path = tmp_path / "CARD.md"
    head = {"title": "T", "licence": "L", "expert_tokens": FOUND | change}
    path.write_text(f"---\n{yaml.safe_dump(head)}---\n")
    with pytest.raises(ValueError, match="expert_tokens is malformed"):
        read_card(path)
