"""Heads of two models are matched by what they do."""

from itertools import permutations

import pytest

from headlight.model.atlas.matching import Head, match, similarity

PATH = "decoder.layers.0.self_attention"


def head(number, *, distance=1, tag="NOUN", score=0.5, path=PATH):
    return Head(
        path,
        number,
        {
            "distances": [{"distance": distance, "count": 9}, {"distance": 5, "count": 1}],
            "tags": [{"query": "VERB", "key": tag, "count": 4}],
        },
        {"scores": {"previous": {"score": score, "control": 0.1}}},
    )


HEADS = [head(0), head(1, distance=2, tag="PRON", score=0.1), head(2, tag="ADJ", score=0.9)]


def test_a_head_is_like_itself_and_less_like_others():
    assert similarity(HEADS[0], HEADS[0]) == pytest.approx(1)
    assert 0 <= similarity(HEADS[0], HEADS[1]) < similarity(HEADS[0], HEADS[2]) < 1


def test_the_same_heads_in_another_order_are_found_again():
    for order in permutations(range(3)):
        others = [HEADS[number] for number in order]
        for pair in match(HEADS, others):
            assert pair.head is pair.other


def test_the_assignment_is_best_in_sum():
    others = [head(0, score=0.8), head(1, tag="PRON"), head(2, distance=2)]
    best = max(
        sum(similarity(ours, others[theirs]) for ours, theirs in zip(HEADS, order, strict=True))
        for order in permutations(range(3))
    )
    assert sum(pair.similarity for pair in match(HEADS, others)) == pytest.approx(best)


def test_only_heads_of_one_kind_are_matched_and_each_once():
    cross = head(0, path="decoder.layers.0.cross_attention")
    pairs = match([*HEADS, cross], HEADS[:2])
    assert len(pairs) == 2
    assert cross not in [pair.head for pair in pairs]
