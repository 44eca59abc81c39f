"""An installation without the libraries of the lab: `headlight` without the extra `lab`."""

import subprocess
import sys

import pytest

SENTENCE = "is not installed; install it with: pip install 'headlight[lab]'"
WITHOUT_LAB = """
import sys
sys.modules.update(dict.fromkeys(["datasketch", "nltk", "sacrebleu", "scipy", "sklearn"]))
"""


def run(program, *arguments):
    command = [sys.executable, "-c", WITHOUT_LAB + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    "command",
    [
        "report {} --out={}/out",
        pytest.param("dedup {} --out={}/out.txt", marks=pytest.mark.slow),
        pytest.param("topics {} --out={}/out", marks=pytest.mark.slow),
    ],
)
def test_cleaning_says_in_a_sentence_what_to_install(command, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("A bird sang.\n\nA cat sat and listened to the bird.\n\nA dog ran.\n" * 3)
    program = "from headlight.cli import app; app()"
    done = run(program, "data", *command.format(corpus, tmp_path).split())
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.endswith(SENTENCE)


def test_pages_traces_and_experiments_need_nothing_of_the_lab():
    done = run("""
from fastapi.testclient import TestClient
from headlight.main import create_app
from headlight.settings import Settings
with TestClient(create_app(Settings()), base_url="http://localhost") as client:
    answers = [
        client.get("/"),
        client.post("/api/v1/trace", json={"model": "stories", "text": "A bird sang."}),
        client.post("/api/v1/experiments/scaling", json={}),
    ]
    assert [answer.status_code for answer in answers] == [200] * 3, answers
""")
    assert done.returncode == 0, done.stderr
