"""Heads of two models are matched by what they do."""

from itertools import permutations

import pytest

from headlight.model.atlas.matching import Head, match, similarity

PATH = "decoder.layers.0.self_attention"


def head(number, *, path=PATH, **scores):
    return Head(path, number, {"scores": {name: {"score": of} for name, of in scores.items()}})


HEADS = [
    head(0, previous=0.5, sink=0),
    head(1, previous=0.1, sink=1),
    head(2, previous=0.9, sink=0),
]


def test_a_head_is_like_itself_and_less_like_others():
    assert similarity(HEADS[0], HEADS[0]) == 1
    assert 0 <= similarity(HEADS[0], HEADS[1]) < similarity(HEADS[0], HEADS[2]) < 1
    assert similarity(HEADS[0], head(0, first_word=0.5)) == 0, "they share no score"


def test_the_same_heads_in_another_order_are_found_again():
    for order in permutations(range(3)):
        pairs = match(HEADS, [HEADS[number] for number in order])
        assert all(ours is theirs for ours, theirs in pairs)


def test_the_assignment_is_best_in_sum():
    others = [head(0, previous=0.8), head(1, sink=0.2), head(2, previous=0.3, sink=0.1)]
    best = max(
        sum(similarity(ours, others[theirs]) for ours, theirs in zip(HEADS, order, strict=True))
        for order in permutations(range(3))
    )
    assert sum(similarity(*pair) for pair in match(HEADS, others)) == pytest.approx(best)


def test_only_heads_of_one_kind_are_matched_and_each_once():
    cross = head(0, path="decoder.layers.0.cross_attention")
    pairs = match([*HEADS, cross], HEADS[:2])
    assert len(pairs) == 2
    assert cross not in [ours for ours, _ in pairs]
