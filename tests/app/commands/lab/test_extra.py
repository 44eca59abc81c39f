"""An installation without the libraries of the lab: `headlight` without the extra `lab`."""

import subprocess
import sys

import pytest

LIBRARIES = ("datasketch", "nltk", "sacrebleu", "scipy", "sklearn")
SENTENCE = "is not installed; install it with: pip install 'headlight[lab]'"


@pytest.fixture
def without_lab(monkeypatch):
    for name in [*sys.modules]:
        is_importer = name.startswith(("headlight.model.lab.data", "headlight.commands.lab.data"))
        if is_importer or name.partition(".")[0] in LIBRARIES:
            monkeypatch.delitem(sys.modules, name)
    for library in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)


@pytest.mark.parametrize(
    "options", ["report {} --out={}/out", "dedup {} --out={}/out.txt", "topics {} --out={}/out"]
)
def test_cleaning_says_in_a_sentence_what_to_install(options, headlight, without_lab, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("A bird sang.\n\nA cat sat and listened to the bird.\n\nA dog ran.\n" * 3)
    result = headlight("data", *options.format(corpus, tmp_path).split())
    assert result.exit_code == 1
    (line,) = result.stderr.strip().splitlines()
    assert line.endswith(SENTENCE)


def test_pages_traces_and_experiments_need_nothing_of_the_lab():
    program = f"""
import sys
sys.modules.update(dict.fromkeys({LIBRARIES!r}))
from fastapi.testclient import TestClient
from headlight.main import create_app
from headlight.settings import Settings
with TestClient(create_app(Settings()), base_url="http://localhost") as client:
    answers = [
        client.get("/"),
        client.post("/api/v1/trace", json={{"model": "stories", "text": "A bird sang."}}),
        client.post("/api/v1/experiments/scaling", json={{}}),
    ]
    assert [answer.status_code for answer in answers] == [200] * 3, answers
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
