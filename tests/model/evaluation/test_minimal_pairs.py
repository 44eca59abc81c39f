"""Grammatical sentences and their ungrammatical twins."""

import json
import re

import pytest
import torch

from headlight.model.evaluation.minimal_pairs import (
    MinimalPair,
    pair_accuracy,
    read_pairs,
    sentence_log_probabilities,
)
from headlight.model.training.corpus import CorpusError

SENTENCES = ["The cat chased the mouse.", "A", "It was too tired to cross the street.", "Cats purr"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pairs.jsonl"


def test_the_probability_of_a_sentence_is_that_of_its_tokens(checkpoint):
    for batch_rows in (1, 2, 64):
        scores = sentence_log_probabilities(checkpoint, SENTENCES, batch_rows=batch_rows)
        for sentence, score in zip(SENTENCES, scores, strict=True):
            ids = [token.id for token in checkpoint.tokenizer.encode(sentence)]
            with torch.inference_mode():
                logs = checkpoint.model(torch.tensor([ids])).logits[0].log_softmax(dim=-1)
            expected = sum(float(logs[place, ids[place + 1]]) for place in range(len(ids) - 1))
            assert score == pytest.approx(expected, rel=1e-5)


def test_the_share_of_right_pairs_is_told_by_paradigm(checkpoint, monkeypatch):
    def longer_is_likelier(checkpoint, sentences):
        return [float(len(sentence)) for sentence in sentences]

    monkeypatch.setattr(
        "headlight.model.evaluation.minimal_pairs.sentence_log_probabilities", longer_is_likelier
    )
    pairs = [
        MinimalPair("verbs", "aaa", "a"),
        MinimalPair("nouns", "aa", "a"),
        MinimalPair("verbs", "aaaa", "aaa"),
        MinimalPair("verbs", "a", "aa"),
        MinimalPair("verbs", "aa", "aa"),
        MinimalPair("nouns", "aaa", "a"),
    ]
    accuracy = pair_accuracy(checkpoint, pairs)
    assert accuracy == {"nouns": 1.0, "verbs": 0.5}
    assert list(accuracy) == ["nouns", "verbs"]


def test_pairs_are_read_line_by_line(path):
    good = "She says “hi”.\u2028Bye."
    lines = [
        {"paradigm": "p", "good": good, "bad": "y"},
        {"paradigm": "q", "good": "a", "bad": "b"},
    ]
    written = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n"
    path.write_text(written, encoding="utf-8")
    assert read_pairs(path) == [MinimalPair("p", good, "y"), MinimalPair("q", "a", "b")]


def test_a_pair_that_holds_no_texts_is_named(path):
    path.write_text('{"paradigm": "p", "good": 5, "bad": "y"}\n')
    with pytest.raises(CorpusError, match=f"^{re.escape(f'{path}, line 1')}"):
        read_pairs(path)


@pytest.mark.parametrize("line", ["{", "[1]", '{"good": "x", "bad": "y"}', '"text"'])
def test_a_line_that_is_no_pair_is_named(path, line):
    path.write_text('{"paradigm": "p", "good": "x", "bad": "y"}\n' + line + "\n")
    with pytest.raises(CorpusError, match=f"^{re.escape(f'{path}, line 2 ')}"):
        read_pairs(path)
