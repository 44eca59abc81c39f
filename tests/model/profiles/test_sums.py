"""Sums over batches of heads, compared with sums over single sentences, and added up in parts."""

import orjson
import pytest

from headlight.model.profiles.sums import HeadSums, Reader
from headlight.model.tracing import tokenize

TEXTS = [
    "The cat saw a dog, and the dog saw the cat.",
    "It was very tired, said the old fox to me, and the fox slept.",
    "The mouse crossed the street!",
    "Then the lazy dog slept under a tree.",
]


@pytest.fixture(scope="module")
def decoder(make_checkpoint):
    return make_checkpoint(max_tokens=96, n_heads=2)


def read(checkpoint, *batches):
    reader = Reader(checkpoint)
    for numbers in batches:
        inputs = [tokenize(checkpoint, TEXTS[number]) for number in numbers]
        for _ in reader.read(inputs, numbers):
            pass
    return reader.sums


def assert_same(sums, others):
    for path, of_path in sums.items():
        other = others[path]
        assert of_path.counts == other.counts
        for name in of_path.counts:
            assert of_path.weights[name] == pytest.approx(other.weights[name], abs=1e-4)
            assert of_path.controls[name] == pytest.approx(other.controls[name], abs=1e-9)
        for head in range(of_path.n_heads):
            places, theirs = of_path.best(head), other.best(head)
            assert places.keys() == theirs.keys()
            for named, place in places.items():
                assert place["weight"] == pytest.approx(theirs[named]["weight"], abs=1e-5)


def test_a_batch_has_the_sums_of_its_sentences(decoder):
    assert_same(read(decoder, [0, 1, 2, 3]), read(decoder, [0], [1], [2], [3]))


def test_parts_add_up_in_any_division_also_as_json(decoder):
    whole = read(decoder, [0, 1, 2, 3])
    parts = [read(decoder, [3, 1]), read(decoder, [2]), read(decoder, [0])]
    joined = {path: HeadSums(of_path.n_heads) for path, of_path in whole.items()}
    for part in parts:
        for path, of_path in part.items():
            written = orjson.dumps(of_path.to_dict())
            joined[path].merge(HeadSums.from_dict(orjson.loads(written)))
    assert_same(joined, whole)


def test_of_equal_weights_the_first_in_the_text_is_kept():
    place = {"weight": 0.5, "query": 3, "key": 2, "query_span": [0, 1], "key_span": [0, 1]}
    for orders in ([1, 2], [2, 1]):
        sums = HeadSums(1)
        for order in orders:
            sums.keep(0, ("a", "b"), {**place, "order": order})
        assert sums.best(0)["a", "b"]["order"] == 1
