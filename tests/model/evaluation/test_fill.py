"""Every figure on the card of `fill`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headlight.model.checkpoint import Checkpoint, load
from headlight.model.evaluation.fill import evaluate
from headlight.model.evaluation.masked_words import masked_words
from headlight.model.tokenizer import train_tokenizer
from headlight.model.training.corpus import CorpusError

DOCUMENTS = [" the cat saw a dog\n" * 30]


@pytest.fixture(scope="module")
def encoder(make_folder: Callable[..., Path]) -> Checkpoint:
    tokenizer = train_tokenizer(DOCUMENTS, 300, has_mask=True)
    folder = make_folder(kind="encoder", moe=None, vocab_size=tokenizer.vocab_size)
    (folder / "tokenizer.json").write_text(tokenizer.to_json(), encoding="utf-8")
    return load(folder)


def test_the_figures_are_those_of_masked_words_rounded(encoder: Checkpoint) -> None:
    found = evaluate(encoder, DOCUMENTS, n_blanks=7)
    assert list(found) == ["masked_word_accuracy", "masked_word_in_first_five", "masked_words"]
    assert found["masked_words"] == 7
    exact = masked_words(encoder, DOCUMENTS, n_blanks=7)
    assert found == {name: round(value, 4) for name, value in exact.items()}


def test_a_text_without_words_is_refused(encoder: Checkpoint) -> None:
    with pytest.raises(CorpusError, match=r"^the text has no word of one token to hide"):
        evaluate(encoder, ["...\n"])
