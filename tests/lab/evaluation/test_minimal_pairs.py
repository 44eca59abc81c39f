"""Grammatical sentences and their ungrammatical twins."""

import json
import re
from collections import Counter

import pytest
import torch

from headlight.lab.evaluation.minimal_pairs import (
    PAIRS_OF_PARADIGM,
    MinimalPair,
    grammar_pairs,
    pair_accuracy,
    pair_figures,
    read_pairs,
    sentence_log_probabilities,
)
from headlight.model.corpus import CorpusError

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


@pytest.fixture(scope="module")
def encoder(make_checkpoint):
    return make_checkpoint([" the cat saw a dog\n"] * 20, kind="encoder", moe=None)


def test_an_encoder_sums_the_probability_of_each_token_behind_a_mask(encoder):
    sentences = [" the cat saw a dog.", " cat"]
    expected = []
    for sentence in sentences:
        ids = [token.id for token in encoder.tokenizer.encode(sentence)]
        logs = 0.0
        for place in range(1, len(ids)):  # the start token is given
            row = torch.tensor([[*ids[:place], encoder.tokenizer.mask_id, *ids[place + 1 :]]])
            with torch.inference_mode():
                logits = encoder.model(row).logits[0, place]
            logs += float(logits.log_softmax(dim=-1)[ids[place]])
        expected.append(logs)

    for batch_rows in (2, 64):
        scores = sentence_log_probabilities(encoder, sentences, batch_rows=batch_rows)
        assert scores == pytest.approx(expected, rel=1e-5)


def test_an_encoder_without_a_mask_has_no_probability_of_a_sentence(make_checkpoint):
    with pytest.raises(ValueError, match="no mask token"):
        sentence_log_probabilities(make_checkpoint(kind="encoder", moe=None), ["A"])


def test_the_projects_own_pairs_are_twins_and_always_the_same():
    pairs = grammar_pairs()

    assert pairs == grammar_pairs()
    assert max(Counter(pair.paradigm for pair in pairs).values()) == PAIRS_OF_PARADIGM
    assert len(set(pairs)) == len(pairs)
    for pair in pairs:
        good, bad = pair.good.lower(), pair.bad.lower()
        words = Counter(good[:-1].split()), Counter(bad[:-1].split())
        is_reordered = pair.paradigm in {"swapped_arguments", "ellipsis"}
        assert good != bad
        assert (words[0] - words[1]).total() == (0 if is_reordered else 1)
        assert pair.good[0].isupper()
        assert pair.good[-1] in ".?"


def test_the_share_of_right_pairs_is_told_by_paradigm(checkpoint, monkeypatch):
    def longer_is_likelier(checkpoint, sentences):
        return [float(len(sentence)) for sentence in sentences]

    monkeypatch.setattr(
        "headlight.lab.evaluation.minimal_pairs.sentence_log_probabilities",
        longer_is_likelier,
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
    assert pair_figures(checkpoint, pairs, "own") == {"own": 0.75, "own_by_paradigm": accuracy}


def test_pairs_are_read_line_by_line(path):
    good = "She says “hi”.\u2028Bye."
    lines = [
        {"paradigm": "p", "good": good, "bad": "y"},
        {"paradigm": "q", "good": "a", "bad": "b"},
    ]
    written = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n"
    path.write_text(written, encoding="utf-8")
    assert read_pairs(path) == [MinimalPair("p", good, "y"), MinimalPair("q", "a", "b")]


@pytest.mark.parametrize("line", ["{", "[1]", '{"good": "x", "bad": "y"}', '"text"'])
def test_a_line_that_is_no_pair_is_named(path, line):
    path.write_text('{"paradigm": "p", "good": "x", "bad": "y"}\n' + line + "\n")
    with pytest.raises(CorpusError, match=f"^{re.escape(f'{path}, line 2 ')}"):
        read_pairs(path)
