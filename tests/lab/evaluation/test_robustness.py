"""Figures on texts of other kinds, next to the figures that they vary."""

import math

import pytest

from headlight.lab.evaluation.robustness import MOST_BYTES, beginning, robustness, typographic
from headlight.lab.evaluation.text import bits_per_byte
from headlight.model.corpus import TokenStream

PLAIN = ["the quick brown fox jumps over the lazy dog again\n" * 12]
DOCUMENTS = ['"I don\'t know," said the Fox...\n' * 12]


def even(checkpoint):
    """Every token is as probable as every other."""
    return checkpoint.model.edit("logits", lambda logits: logits * 0)


def test_a_form_that_leaves_the_text_as_it_is_has_the_figure_of_the_text(checkpoint):
    figures = robustness(checkpoint, PLAIN, {})
    expected = bits_per_byte(checkpoint, PLAIN)["bits_per_byte"]
    for form in ("as_written", "lower_case", "typographic"):
        assert figures["forms"][form] == pytest.approx(expected)
    assert figures["forms"]["capitals"] != pytest.approx(expected, rel=0.01)
    assert figures["bytes"] == len(PLAIN[0])


def test_a_form_counts_the_bytes_of_the_text_as_written(checkpoint):
    with even(checkpoint):
        figures = robustness(checkpoint, DOCUMENTS, {"other.txt": PLAIN})
    for documents, figure in [
        (DOCUMENTS, figures["forms"]["as_written"]),
        (PLAIN, figures["other_texts"]["other.txt"]),
        ([typographic(DOCUMENTS[0])], figures["forms"]["typographic"]),
    ]:
        n_tokens = len(TokenStream.encode(documents, checkpoint.tokenizer).ids)
        written = PLAIN if documents is PLAIN else DOCUMENTS
        bits = n_tokens * math.log2(checkpoint.config.vocab_size)
        assert figure == pytest.approx(bits / len(written[0]))


def test_every_document_gives_its_beginning():
    long = "A line of thirty characters.\n\n" * 3000
    short = "One line.\n"
    first, second = beginning([long, short])
    assert second == short
    assert long.startswith(first)
    assert MOST_BYTES // 2 - 30 < len(first) <= MOST_BYTES // 2
    assert beginning(["x" * (MOST_BYTES + 1)]) == ["x" * (MOST_BYTES + 1)]


def test_typographic_quotes_open_and_close():
    assert typographic('"Oh," said "Tim\'s" cat--\'tis...') == "“Oh,” said “Tim’s” cat—’tis…"
