"""Byte-pair encoding against the library `tokenizers`, step by step."""

import numpy as np
import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from headlight.model.experiments.tokenizer import EXPERIMENT, WORD

TEXTS = [
    "low lower lowest, new newer newest; the newest slows the widest flow",
    "a rose is a rose is a rose,\nand Rosé is a wine ☕☕ ☕",
    "aaaa aaaaa aaa aa",
    "über grün, für drüben: übermüde",
]


def trained(text, n_merges):
    """Train the library's byte-pair encoding on the same words."""
    tokenizer = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(WORD.pattern), "isolated")
    tokenizer.pre_tokenizer = words
    alphabet = len(set(text))
    trainer = trainers.BpeTrainer(
        vocab_size=alphabet + n_merges, min_frequency=2, show_progress=False
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def tokens_at(result, step, name="character", joined="joined_at"):
    """Return the tokens of a text after some merges, as the page shows them."""
    tokens = []
    pairs = zip(result[name].data.tolist(), result[joined].data.tolist(), strict=True)
    for at, (character, merge) in enumerate(pairs):
        if at == 0 or merge == 0 or merge > step:
            tokens.append(character)
        else:
            tokens[-1] += character
    return tokens


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("n_merges", [1, 4, 12])
def test_the_tokens_are_those_of_the_library(text, n_merges):
    result = EXPERIMENT.result({"text": text, "sample": text[::-1], "n_merges": n_merges})
    n_made = len(result["merge"].data)
    reference = trained(text, n_made)
    assert tokens_at(result, n_made) == reference.encode(text).tokens
    sample = tokens_at(result, n_made, "sample_character", "sample_joined_at")
    assert sample == reference.encode(text[::-1]).tokens


def test_every_step_is_the_result_of_as_many_merges():
    text = TEXTS[0]
    whole = EXPERIMENT.result({"text": text, "n_merges": 10})
    for step in (0, 3, 7):
        expected = list(text)
        if step:
            fewer = EXPERIMENT.result({"text": text, "n_merges": step})
            expected = tokens_at(fewer, step)
        assert tokens_at(whole, step) == expected
        assert whole["n_tokens"].data[step] == len(expected)
    assert whole["vocab_size"].data.tolist() == [len(set(text)) + step for step in range(11)]


def test_each_merge_is_of_the_most_frequent_pair():
    result = EXPERIMENT.result({"text": "low low low lower newer", "n_merges": 3, "sample": ""})
    assert result["left"].data.tolist()[:2] == ["l", "lo"]
    assert result["right"].data.tolist()[:2] == ["o", "w"]
    assert result["count"].data.tolist()[:2] == [4, 4]
    saved = -np.diff(result["n_tokens"].data)
    assert saved.tolist() == result["count"].data.tolist()


def test_pairs_that_occur_once_are_not_merged():
    result = EXPERIMENT.result({"text": "abc", "sample": "abc"})
    assert len(result["merge"].data) == 0
    assert result["n_tokens"].data.tolist() == [3]


def test_a_sample_may_be_empty_and_of_other_characters():
    result = EXPERIMENT.result({"text": "low low", "sample": "日本 low"})
    tokens = tokens_at(result, 9, "sample_character", "sample_joined_at")
    assert tokens == ["日", "本", " ", "low"]
    assert EXPERIMENT.result({"sample": ""})["sample_character"].data.tolist() == []
