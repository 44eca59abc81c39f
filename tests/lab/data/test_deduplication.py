"""Near-duplicates: the estimate against theory, and the index against all pairs."""

import json
import random
from itertools import combinations

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH

from headlight.lab.data.deduplication import (
    Deduplicator,
    KeptDocuments,
    Reservoir,
    jaccard,
    measure_error,
    normalize,
    shingle_hashes,
    shingles,
    signature,
)
from headlight.lab.data.documents import Place, stream_documents
from headlight.model.experiments import minhash

GOLDEN = [394879406, 83962390, 103119698, 488565335]
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


@pytest.mark.parametrize(
    "text", ["a", "once upon a time", "häßlich 🦊🦊 fox " * 3, "lorem ip " * 900]
)
def test_a_signature_is_that_of_datasketch(text):
    reference = MinHash(num_perm=128, seed=7, hashfunc=int)
    reference.update_batch(shingle_hashes(text).tolist())
    assert reference.jaccard(signature(text, seed=7)) == 1.0
    assert signature(text, seed=8).seed == 8


def test_a_long_text_is_hashed_in_pieces_without_a_difference(monkeypatch):
    text = normalize(story(random.Random(0), 500))
    whole = shingle_hashes(text)
    monkeypatch.setattr("headlight.lab.data.deduplication._PIECE", 97)
    assert np.array_equal(shingle_hashes(text), whole)


def test_the_error_of_the_estimate_is_the_bound_of_theory():
    rng = random.Random(0)
    error = measure_error([story(rng, 30) for _ in range(50)], seed=1)
    figures = error.to_dict()
    assert figures["pairs"] == 1_000
    assert figures["error"] == pytest.approx(figures["bound"], rel=0.1)
    assert abs(figures["bias"]) < 0.005
    assert figures["within_two_bounds"] > 0.93
    assert sum(tenth["pairs"] for tenth in figures["by_tenth"]) == 1_000
    assert {tenth["from"] for tenth in figures["by_tenth"]} >= {n / 10 for n in range(2, 10)}
    bound = np.sqrt(error.jaccard * (1 - error.jaccard) / 128)
    assert np.array_equal(error.bound, bound)


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
        place, exact, estimate = duplicates[number]
        assert exact == jaccard(sets[number], sets[place.line - 1]) >= 0.8
        assert abs(estimate - exact) < 0.2


def test_the_index_on_disk_names_the_candidates_of_datasketch(tmp_path):
    rng = random.Random(2)
    texts = [story(rng, 30) for _ in range(40)]
    texts += [altered(text, rng, 1 + number % 20) for number, text in enumerate(texts)]
    reference = MinHashLSH(threshold=0.6, num_perm=128)
    index = KeptDocuments(reference.hashranges)
    n_candidates = 0
    for number, text in enumerate(texts):
        sketch = signature(text, seed=0)
        candidates = list(index.candidates(sketch.hashvalues))
        assert [place.line for place, _ in candidates] == sorted(reference.query(sketch))
        for place, hashes in candidates:
            assert hashes.tolist() == signature(texts[place.line], seed=0).hashvalues.tolist()
        n_candidates += len(candidates)
        reference.insert(number, sketch)
        index.add(Place(tmp_path, 1, 2, number), text.encode(), sketch.hashvalues)
        assert index.equal(text.encode()) == Place(tmp_path, 1, 2, number)
    assert n_candidates > 10


def test_a_full_disk_is_an_error_that_names_the_way_out(tmp_path):
    index = KeptDocuments([(0, 7)])
    index._database.execute("PRAGMA max_page_count = 5")

    def fill():
        for number in range(1_000):
            hashes = np.full(128, number, np.uint32)
            index.add(Place(tmp_path, 0, 1, number), number.to_bytes(2), hashes)

    with pytest.raises(OSError, match="database or disk is full; TMPDIR names a folder"):
        fill()


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


def test_threads_change_nothing(tmp_path):
    rng = random.Random(4)
    texts = [story(rng, 40) for _ in range(30)] * 2
    path = corpus_of(texts, tmp_path / "texts.jsonl")
    alone = [duplicate for _, duplicate in Deduplicator().judge(stream_documents([path]), 1)]
    threaded = [duplicate for _, duplicate in Deduplicator().judge(stream_documents([path]), 3)]
    assert alone == threaded
    assert sum(duplicate is not None for duplicate in alone) == 30


@pytest.mark.parametrize("threshold", [0, -1, 1.01, float("nan")])
def test_a_threshold_outside_its_range_is_an_error(threshold):
    with pytest.raises(ValueError, match="must be above 0 and at most 1"):
        Deduplicator(threshold)


def test_a_sample_of_a_stream_is_uniform():
    counts = np.zeros(20)
    for seed in range(500):
        sample = Reservoir(5, seed)
        for item in range(20):
            sample.add(str(item))
        counts[[int(item) for item in sample.items]] += 1
    assert counts.sum() == 2_500
    assert (np.abs(counts - 125) < 50).all()


def test_a_signature_is_the_same_in_every_process():
    """The numbers are fixed here; Python salts its own hashes differently in each process."""
    hashes = signature("once upon a time there was a fox", seed=3).hashvalues
    assert hashes[:4].tolist() == GOLDEN
