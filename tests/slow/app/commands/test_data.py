"""`headlight data` holds neither a corpus nor what it keeps of it in memory."""

import json
import random
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc"),
]

N_CHARACTERS, N_FEW, N_MANY = 2_000, 20, 10_000
GROWTH = 12
"""Megabytes by which the peak may grow: by sampled texts, and by a batch of counted words."""

COMMAND = """
import sys
from headlight.lab.data import deduplication
deduplication.N_PAIRS = 50  # a shorter run of the same size
deduplication._CACHE_BYTES = 2**20  # of an index that takes 13 MB
from headlight.cli import app
app(sys.argv[1:], standalone_mode=False)
lines = open("/proc/self/status").read().splitlines()
print("peak", next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Return a file of few documents and one of many, of words drawn at random."""
    rng = random.Random(0)
    words = ["".join(rng.choices("etaoinshrdlcum", k=rng.randint(2, 9))) for _ in range(8_000)]
    paths = []
    for name, n_documents in (("few", N_FEW), ("many", N_MANY)):
        path = tmp_path_factory.mktemp("corpora") / f"{name}.jsonl"
        with path.open("w") as file:
            for _ in range(n_documents):
                text = " ".join(rng.choices(words, k=N_CHARACTERS // 6))
                file.write(json.dumps({"text": text}) + "\n")
        paths.append(path)
    return paths


def peak_of(folder, *words):
    """Return the most memory of a command, in megabytes."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "data", *map(str, words)],
        cwd=folder,
        capture_output=True,
        check=True,
        text=True,
    )
    return int(done.stdout.rpartition("peak ")[2]) / 1e3


@pytest.mark.parametrize(
    "command",
    [
        ("dedup", "--threads", "2"),
        ("quality", "--least-quality", "0"),
        ("topics",),
        ("report", "--threads", "2", "--least-quality", "0"),
    ],
)
def test_memory_is_flat_for_a_longer_file(corpora, tmp_path, command):
    name, *options = command
    few, many = (peak_of(tmp_path, name, path, *options, "--out", path.stem) for path in corpora)
    size = corpora[1].stat().st_size - corpora[0].stat().st_size
    assert size > GROWTH * 1e6
    assert many - few < GROWTH
    lines = (tmp_path / "many" / ("topics.jsonl" if name == "topics" else "kept.jsonl")).read_text()
    assert lines.count("\n") == N_MANY
