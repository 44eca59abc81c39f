"""The speed and memory of cleaning a corpus, and a million documents planned from both."""

import json
import os
import random
import subprocess
import sys
from time import perf_counter

import pytest

from headlight.lab.data.deduplication import Deduplicator
from headlight.lab.data.documents import stream_documents
from headlight.lab.data.features import features_of

N_DOCUMENTS, N_WORDS = 3_000, 350

# Linux keeps the `ru_maxrss` of the parent across exec, so the peak is read from /proc there.
PEAK = """
import pathlib, re, resource, sys
from headlight.lab.data.deduplication import Deduplicator
from headlight.lab.data.documents import stream_documents
status = pathlib.Path("/proc/self/status")
def peak():
    if status.exists():
        return 1_024 * int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
for _ in Deduplicator().judge(stream_documents([sys.argv[1]])):
    pass
print(peak() - before)
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Write documents of sentences whose words are as frequent as Zipf's law has them."""
    rng = random.Random(0)
    letters = "etaoinshrdlcum"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(8_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    path = tmp_path_factory.mktemp("data") / "corpus.jsonl"
    with path.open("w") as file:
        for _ in range(N_DOCUMENTS):
            drawn = rng.choices(words, weights, k=N_WORDS)
            sentences = [
                " ".join(drawn[start : start + 12]).capitalize() + "."
                for start in range(0, N_WORDS, 12)
            ]
            file.write(json.dumps({"text": " ".join(sentences)}) + "\n")
    return path


def megabytes(path):
    return path.stat().st_size / 1e6


def test_deduplication(table, corpus):
    start = perf_counter()
    assert sum(1 for _ in Deduplicator().judge(stream_documents([corpus]))) > 0
    seconds = perf_counter() - start
    speed = megabytes(corpus) / seconds
    table.add("Data", "dedup", f"{speed:.1f} MB/s")
    peak = subprocess.run(
        [sys.executable, "-c", PEAK, str(corpus)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=True,
        text=True,
    )
    table.add(
        "Data",
        f"dedup, peak over {N_DOCUMENTS:,} documents",
        f"{int(peak.stdout) / 1e6:.0f} MB",
    )
    assert speed > 0.1


def test_quality(table, corpus):
    texts = [document.text for document in stream_documents([corpus])][:1_000]
    start = perf_counter()
    for text in texts:
        features_of(text)
    speed = sum(map(len, texts)) / 1e6 / (perf_counter() - start)
    table.add("Data", "quality, one thread", f"{speed:.1f} MB/s")
    assert speed > 0.1
