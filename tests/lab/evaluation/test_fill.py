"""Filling the blank, with encoders that are rigged to know the answer or not to."""

import pytest
import torch

from headlight.lab.evaluation import fill
from headlight.lab.evaluation.fill import evaluate, filled_blanks
from headlight.model.corpus import CorpusError
from headlight.model.tokenizer import MASK

WORDS = " the cat saw a dog"


@pytest.fixture(scope="module")
def encoder(make_checkpoint):
    """Return an encoder of 16 tokens in whose vocabulary the words of `WORDS` are tokens."""
    return make_checkpoint([f"{WORDS}\n"] * 20, kind="encoder", moe=None, max_tokens=16)


def measure(encoder, documents, *answers, **options):
    ids = [pieces for (pieces,) in encoder.tokenizer.encode_ids(list(answers))]

    def rig(logits):
        logits = torch.zeros_like(logits)
        for rank, token in enumerate(ids):
            logits[..., token] = 100.0 - rank
        return logits

    with encoder.model.edit("logits", rig):
        return evaluate(encoder, documents, **options)


DOCUMENTS = [" cat dog\n", "\n", " dog dog\n a,\n"]  # five words: cat, three dogs, a


@pytest.mark.parametrize(
    ("answers", "first", "in_five"),
    [
        ([" dog"], 3 / 5, 3 / 5),
        ([" cat"], 1 / 5, 1 / 5),
        ([" saw"], 0, 0),
        ([" cat", " dog"], 1 / 5, 4 / 5),
        ([" saw", " the", " a", " cat", " dog"], 0, 1),
        ([" saw", " the", " a", ",", " cat", " dog"], 0, 2 / 5),
    ],
)
def test_first_guesses_and_first_fives_counted_by_hand(encoder, answers, first, in_five):
    assert measure(encoder, DOCUMENTS, *answers) == {
        "masked_word_accuracy": first,
        "masked_word_in_first_five": in_five,
        "masked_words": 5,
    }


def test_the_answer_is_read_where_the_mask_stands(encoder):
    """If the answer depends on the text, mixing up places or rows of a batch shows."""
    documents = [f"{' the' * n} cat{' saw' * n}\n" for n in range(1, 6)]

    def rig(logits):
        logits = torch.zeros_like(logits)
        ((the,), (saw,)) = encoder.tokenizer.encode_ids([" the", " saw"])
        logits[..., the] = 1  # every place says "the", save the last of a row, which says "saw"
        logits[:, -1, saw] = 2
        return logits

    with encoder.model.edit("logits", rig):
        figures = evaluate(encoder, documents)
    assert figures["masked_words"] == 5 + 2 * 15
    # All 15 "the", and the one "saw" that ends the longest row; shorter rows are padded behind.
    assert figures["masked_word_accuracy"] == pytest.approx(16 / 35)


def test_words_of_several_tokens_punctuation_and_numbers_are_not_asked_for(encoder):
    documents = [" zebra, 7 ... dog!\n"]
    assert measure(encoder, documents, " dog") == {
        "masked_word_accuracy": 1,
        "masked_word_in_first_five": 1,
        "masked_words": 1,
    }


def test_a_paragraph_is_cut_to_what_the_model_reads(encoder):
    """The last token that is read may be half a word, so it is not asked for."""
    assert measure(encoder, [" dog" * 40], " dog")["masked_words"] == 14
    assert measure(encoder, [" dog" * 14], " dog")["masked_words"] == 14


def test_as_many_are_hidden_as_asked_for_and_always_the_same(encoder):
    documents = [" the cat saw a dog\n" * 30]
    first, again, other = (
        measure(encoder, documents, " dog", n_blanks=17, seed=seed) for seed in (0, 0, 3)
    )
    assert first["masked_words"] == 17
    assert first == again
    assert first != other
    assert 0 < measure(encoder, documents, " dog")["masked_word_accuracy"] == 1 / 5


def test_padding_and_company_do_not_change_an_answer(encoder):
    documents = [" the cat saw a dog\n", " dog\n", " a cat saw the dog the cat saw\n"]
    together = evaluate(encoder, documents)
    alone = [evaluate(encoder, [document]) for document in documents]
    for name in ("masked_word_accuracy", "masked_word_in_first_five"):
        right = sum(round(each[name] * each["masked_words"]) for each in alone)
        assert together[name] * together["masked_words"] == pytest.approx(right)


@pytest.mark.parametrize("documents", [[], ["\n \n"], ["12 34 ...\n"]])
def test_a_text_without_words_is_rejected(encoder, documents):
    with pytest.raises(CorpusError, match="no word of one token"):
        evaluate(encoder, documents)


def test_an_encoder_without_a_mask_is_rejected(make_checkpoint):
    with pytest.raises(ValueError, match="'tiny' has no mask token"):
        evaluate(make_checkpoint(kind="encoder", moe=None), DOCUMENTS)


def test_a_blank_counts_if_the_first_guess_is_a_word_that_fits(encoder, tmp_path, monkeypatch):
    path = tmp_path / "blanks.tsv"
    path.write_text(f"the {MASK} saw a cat\tdog cat\na dog saw a {MASK}.\tcat\n")
    monkeypatch.setattr(fill, "BLANKS", path)
    (dog,) = encoder.tokenizer.encode_ids([" dog"])[0]

    def rig(logits):
        return (
            torch.nn.functional.one_hot(torch.full(logits.shape[:2], dog), logits.shape[-1]) * 50.0
        )

    with encoder.model.edit("logits", rig):
        figures = filled_blanks(encoder)

    assert figures["fitting"] == 0.5
    first, second = figures["guesses"].values()
    assert first == second
    assert first.startswith("dog 1.00, ")
