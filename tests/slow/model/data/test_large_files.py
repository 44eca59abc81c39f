"""A file larger than the memory that is left, and a run that is killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import resource, sys
from headlight.model.data.deduplication import Deduplicator
from headlight.model.data.documents import stream_documents
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limit = used + 100_000_000
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = Deduplicator().judge(stream_documents([sys.argv[1]], "passage"))
print(sum(duplicate is None for _, duplicate in found))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs RLIMIT_AS and /proc")
def test_a_file_larger_than_memory_is_deduplicated(tmp_path):
    path = tmp_path / "large.txt"
    paragraph = "Once upon a time there was a fox who ran to the river. " * 400
    with path.open("w") as file:
        for number in range(7_500):
            file.write(f"{number % 100} {paragraph}\n")
    assert path.stat().st_size > 150_000_000
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    assert 1 <= int(found.stdout) <= 100


def test_a_killed_run_leaves_no_file_under_its_name_and_can_be_repeated(tmp_path):
    lines = [json.dumps({"text": f"Story {n}. " + f"word{n} " * 400}) for n in range(4_000)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    command = [sys.executable, "-m", "headlight.cli", "data", "dedup", "corpus.jsonl"]
    command += ["--out", "clean", "--threads", "1"]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    partial = tmp_path / "clean" / ".kept.jsonl.partial"
    deadline = time.monotonic() + 60
    while not partial.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert [path.name for path in (tmp_path / "clean").glob("[!.]*")] == []
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    assert len((tmp_path / "clean" / "kept.jsonl").read_text().splitlines()) > 0
    assert not partial.exists()
