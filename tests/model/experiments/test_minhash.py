"""The estimate against counted similarities and the theory of its error."""

import hashlib

import pytest

from headlight.model.experiments.minhash import EXPERIMENT, shingle_hashes, shingles

FIRST = "the cat sat on the mat"
SECOND = "the cat sat on a hat"


def result(first=FIRST, second=SECOND, **values):
    return EXPERIMENT.result({"first": first, "second": second, **values})


def test_the_jaccard_similarity_is_counted():
    arrays = result(unit="words", shingle=2)
    # the-cat cat-sat sat-on are shared; on-the the-mat and on-a a-hat are not.
    assert arrays["jaccard"].data == 3 / 7
    assert arrays["shingle"].data.size == 7
    assert arrays["is_in"].data.sum(axis=1).tolist() == [5, 5]


def test_shingles_overlap_and_ignore_case_and_spaces():
    assert shingles("Ab  C", "characters", 2) == {"ab", "b ", " c"}
    assert shingles("A b c", "words", 2) == {"a b", "b c"}


@pytest.mark.parametrize("seed", range(4))
def test_the_estimate_is_within_its_standard_error(seed):
    arrays = result(shingle=3, n_hashes=512, seed=seed)
    error = arrays["estimate"].data - arrays["jaccard"].data
    assert abs(error) < 3 * arrays["standard_error"].data[-1]


def test_equal_texts_have_equal_signatures_and_unlike_ones_none_in_common():
    assert result(FIRST, FIRST)["estimate"].data == 1
    assert result("aaaa bbbb", "cccc dddd", shingle=3)["estimate"].data == 0


def test_equal_minima_belong_to_a_shared_shingle():
    arrays = result(shingle=3)
    is_equal, minima = arrays["is_equal"].data, arrays["minimum"].data
    assert (minima[0] == minima[1]).tolist() == is_equal.tolist()
    assert arrays["is_in"].data[:, minima[0][is_equal]].all()


def test_the_hash_is_the_keyed_blake2b_digest():
    digest = hashlib.blake2b(b"cat", key=b"7 8").digest()
    assert shingle_hashes(["cat"], 16, 7)[0, 9] == int.from_bytes(digest[8:16], "little")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first": ""}, "first has 0 characters, fewer than a shingle of 4"),
        ({"second": "ab"}, "second has 2 characters"),
        ({"unit": "words", "shingle": 7}, "first has 6 words, fewer than a shingle of 7"),
    ],
)
def test_a_text_without_a_shingle_is_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        result(**changes)


def test_a_signature_holds_the_least_hash_of_each_function_over_the_texts_own_shingles():
    arrays = result(shingle=3, n_hashes=9, seed=2)
    for text, row in zip((FIRST, SECOND), arrays["signature"].data, strict=True):
        hashes = shingle_hashes(sorted(shingles(text, "characters", 3)), 9, 2)
        assert row.tolist() == [f"{value:016x}" for value in hashes.min(axis=0).tolist()]


def test_the_running_estimate_uses_the_first_hashes_only():
    arrays = result(shingle=3, n_hashes=40)
    is_equal = arrays["is_equal"].data.tolist()
    expected = [sum(is_equal[:count]) / count for count in range(1, 41)]
    assert arrays["running_estimate"].data == pytest.approx(expected)
    assert arrays["estimate"].data == pytest.approx(expected[-1])
    jaccard = arrays["jaccard"].data
    assert arrays["standard_error"].data[0] == pytest.approx((jaccard * (1 - jaccard)) ** 0.5)
