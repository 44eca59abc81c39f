"""An installation without the libraries of the lab: `headlight` without the extra `lab`."""

import subprocess
import sys

SENTENCE = "is not installed; install it with: pip install 'headlight-viz[lab]'"
WITHOUT_LAB = """
import sys
sys.modules.update(dict.fromkeys(["datasketch", "sacrebleu", "scipy"]))
"""


def run(program, *arguments):
    command = [sys.executable, "-c", WITHOUT_LAB + program, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_cleaning_says_in_a_sentence_what_to_install(tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("A bird sang.\n\nA cat sat and listened to the bird.\n\nA dog ran.\n" * 3)
    program = "from headlight.cli import app; app()"
    done = run(program, "data", "report", str(corpus), f"--out={tmp_path}/out")
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.endswith(SENTENCE)
