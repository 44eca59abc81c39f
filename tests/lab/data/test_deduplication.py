"""Near-duplicates: the estimate against theory, and the index against all pairs."""

import json
import random
from itertools import combinations

import numpy as np
import pytest

from headlight.lab.data.deduplication import Deduplicator, jaccard, normalize, shingles, signature
from headlight.lab.data.documents import stream_documents
from headlight.model.experiments import minhash

GOLDEN = [41133186, 75933631, 2039149, 94898156]
SYLLABLES = ["ba", "den", "fi", "gor", "lum", "ne", "pra", "sto", "ti", "vek", "wo", "zal"]


def story(rng, n_words=40):
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 3))) for _ in range(n_words)]
    return " ".join(words)


def altered(text, rng, n_words):
    """Return the text with some words replaced."""
    words = text.split()
    for place in rng.sample(range(len(words)), n_words):
        words[place] = "".join(rng.choices(SYLLABLES, k=3))
    return " ".join(words)


def corpus_of(texts, path):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


def judged(path, **options):
    deduplicator = Deduplicator(**options)
    return deduplicator, [
        duplicate for _, duplicate in deduplicator.judge(stream_documents([path]))
    ]


def test_shingles_are_those_of_the_experiment():
    text = "The  quick Brown\nfox"
    assert shingles(normalize(text)) == minhash.shingles(text, "characters", 5)
    assert shingles("abc") == {"abc"}
    assert jaccard(shingles("abcdefg"), shingles("abcdefh")) == 2 / 4


def test_a_long_text_is_hashed_in_pieces_without_a_difference(monkeypatch):
    text = shingles(normalize(story(random.Random(0), 500)))
    whole = signature(text, seed=7)
    monkeypatch.setattr("headlight.lab.data.deduplication._CHUNK", 97)
    assert whole.jaccard(signature(text, seed=7)) == 1.0


def test_the_error_of_the_estimate_is_the_bound_of_theory():
    rng = random.Random(0)
    errors, bounds = [], []
    for share in range(1, 301):
        first, second = story(rng, 30), story(rng, 30)
        mixed = first[: share * len(first) // 300] + second[share * len(second) // 300 :]
        sets = shingles(first), shingles(mixed)
        exact = jaccard(*sets)
        errors.append(signature(sets[0], 1).jaccard(signature(sets[1], 1)) - exact)
        bounds.append(exact * (1 - exact) / 128)
    assert np.mean(np.square(errors)) == pytest.approx(np.mean(bounds), rel=0.25)
    assert abs(np.mean(errors)) < 0.005


def test_planted_near_duplicates_are_found(tmp_path):
    """Compare with all pairs: recall of those above the threshold, precision of those dropped."""
    rng = random.Random(1)
    originals = [story(rng) for _ in range(100)]
    copies = [altered(text, rng, 1 + number % 3) for number, text in enumerate(originals)]
    different = [altered(text, rng, 5) for text in originals[:60]]
    texts = originals + copies + different
    sets = [shingles(normalize(text)) for text in texts]
    likeness = np.array([jaccard(sets[a], sets[b]) for a, b in combinations(range(len(sets)), 2)])
    is_close = dict(zip(combinations(range(len(sets)), 2), likeness >= 0.8, strict=True))
    has_duplicate = {b for (_, b), close in is_close.items() if close}
    assert len(has_duplicate) > 75
    assert sum(0.6 < value < 0.8 for value in likeness) > 10  # near misses are planted too
    _, duplicates = judged(corpus_of(texts, tmp_path / "texts.jsonl"))
    dropped = {number for number, duplicate in enumerate(duplicates) if duplicate}
    assert len(dropped & has_duplicate) >= 0.99 * len(dropped)
    assert len(dropped & has_duplicate) >= 0.95 * len(has_duplicate)
    for number in dropped:
        source, exact, estimate = duplicates[number]
        line = int(source.rpartition(":")[2])
        assert exact == jaccard(sets[number], sets[line - 1]) >= 0.8
        assert abs(estimate - exact) < 0.2


def test_a_text_that_differs_in_spaces_and_capitals_is_an_exact_duplicate(tmp_path):
    texts = ["Once upon a time.", "Something else.", "once  UPON\na time."]
    path = corpus_of(texts, tmp_path / "texts.jsonl")
    _, duplicates = judged(path)
    assert duplicates[:2] == [None, None]
    assert duplicates[2].to_dict() == {"kind": "exact_duplicate", "of": f"{path}:1"}


def test_a_dropped_document_drops_no_other(tmp_path):
    """B is close to A, C to B only: A and C stay."""
    rng = random.Random(3)
    first = story(rng, 200)
    second = altered(first, rng, 12)
    third = " ".join(second.split()[26:])
    sets = [shingles(normalize(text)) for text in (first, second, third)]
    assert jaccard(sets[0], sets[1]) > 0.83
    assert jaccard(sets[1], sets[2]) > 0.83
    assert jaccard(sets[0], sets[2]) < 0.82
    _, duplicates = judged(
        corpus_of([first, second, third], tmp_path / "texts.jsonl"), threshold=0.82
    )
    assert [duplicate is None for duplicate in duplicates] == [True, False, True]


@pytest.mark.parametrize("threshold", [0, -1, 1.01, float("nan")])
def test_a_threshold_outside_its_range_is_an_error(threshold):
    with pytest.raises(ValueError, match="must be above 0 and at most 1"):
        Deduplicator(threshold)


def test_a_signature_is_the_same_in_every_process():
    """The numbers are fixed here; Python salts its own hashes differently in each process."""
    hashes = signature(shingles("once upon a time there was a fox"), seed=3).hashvalues
    assert hashes[:4].tolist() == GOLDEN
