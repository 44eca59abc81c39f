"""Synthetic answers: the best of several, and none that is not good enough."""

import torch

from headlight.lab.training.synthesis import by_nothing, by_rule, synthesize


def prompts(checkpoint, *texts):
    encoded = checkpoint.tokenizer.encode_ids(list(texts))
    return [torch.tensor([checkpoint.tokenizer.start_id, *ids]) for ids in encoded]


def by_length(_, texts):
    return [float(len(text)) for text in texts]


def test_the_answer_with_the_highest_score_is_kept(make_checkpoint):
    checkpoint = make_checkpoint(max_tokens=64)
    seen = []

    def score(sampled, texts):
        seen.extend(texts)
        return by_length(sampled, texts)

    asked = prompts(checkpoint, "the cat sat", "the dog", "the dog ran")
    kept = [answer for answer, _ in synthesize(checkpoint, asked, samples=4, score=score)]
    assert len(kept) == 3
    assert len(seen) == 12
    groups = [seen[first : first + 4] for first in range(0, 12, 4)]
    for answer, group in zip(kept, groups, strict=True):
        good = [text for text in group if text.strip()]
        assert answer.score == len(answer.answer) == max(map(len, good))
    assert {answer.prompt for answer in kept} == {"the cat sat", "the dog", "the dog ran"}


def test_an_answer_below_the_least_score_is_not_kept(make_checkpoint):
    checkpoint = make_checkpoint(max_tokens=64)
    asked = prompts(checkpoint, "the cat sat")
    options = {"samples": 3, "score": by_length}
    assert list(synthesize(checkpoint, asked, least=1e6, **options)) == [(None, 0)]
    ((answer, good),) = synthesize(checkpoint, asked, least=0, **options)
    assert answer is not None
    assert 0 < good <= 3


def test_the_rule_and_no_filter_score_texts():
    texts = ["a b c d", '"yes"']
    assert by_rule(None, texts) == [1.0, 2.0]
    assert by_nothing(None, texts) == [0.0, 0.0]
