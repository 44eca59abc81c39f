"""`headlight chapter`: check and new."""

from shutil import copytree

import pytest
from safetensors.torch import load_file, save_file

from tests.app.chapters.test_chapter import HEAD

STEPS = """\
## A view

```step
opens: {model: tiny, text: the cat sat, layer: 0, head: 1}
question:
  asks: Which?
  by: token
  answer: {of: strongest_key}
claims:
  - {rule: {of: weight, key: 0}, above: -1}
```

## An experiment

```step
opens: {experiment: scaling, knobs: {width: 4}}
question:
  asks: How much?
  by: number
  answer: {of: experiment, array: expected_variance, at: {scaled: no, width: 4}}
claims:
  - {rule: {of: experiment, array: expected_variance, at: {scaled: no, width: 4}}, says: 4.0}
```
"""


@pytest.fixture
def check(headlight, tmp_path):
    def run(text):
        path = tmp_path / "mine.md"
        path.write_text(HEAD + text)
        return headlight("chapter", "check", str(path))

    return run


def test_a_chapter_without_faults_passes(check):
    result = check(STEPS)
    assert result.exit_code == 0, result.output
    assert "An experiment   4" in result.output


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("model: tiny", "model: none", "none"),
        ("layer: 0, head: 1", "layer: 5, head: 1", "no layer 5"),
        ("head: 1}", "head: 4}", "no head 4"),
        ("head: 1}", "head: 1, query: 90}", "no token 90"),
        ("head: 1}\n", "head: 1}\nhighlights: [{query: 90}]\n", "no token 90"),
        ("head: 1}", "head: 1, view: nowhere}", "no view 'nowhere'"),
        ("head: 1}", "head: 1, more: {nonsense: 1}}", "nonsense"),
        ("above: -1", "above: 1.5", "above 1.5"),
        ("by: token", "by: number", "gives a choice"),
        ("experiment: scaling, knobs", "experiment: magic, knobs", "magic"),
        ("{width: 4}}\n", "{width: 4}}\nhighlights: [{key: 0}]\n", "no tokens to highlight"),
        ("{width: 4}", "{width: 0}", "width"),
        ("says: 4.0", "says: 5.0", "says 5"),
    ],
)
def test_check_tells_what_falls_short(check, before, after, said):
    result = check(STEPS.replace(before, after, 1))
    assert result.exit_code == 1
    assert "mine.md, line" in result.stderr
    assert said in result.stderr


def test_a_model_that_answers_otherwise_fails_the_check(check, zoo, monkeypatch, tmp_path):
    words = check(STEPS).output.split("A view")[1].splitlines()[0].strip()
    claim = f'  - {{rule: {{of: strongest_key}}, says: "{words.strip("“”")}"}}\n'
    text = STEPS.replace("claims:\n", "claims:\n" + claim, 1)
    assert check(text).exit_code == 0
    changed = tmp_path / "zoo"
    copytree(zoo, changed)
    path = changed / "tiny" / "model.safetensors"
    weights = load_file(path)
    queries = next(name for name in weights if "layers.0" in name and "quer" in name)
    save_file({**weights, queries: -8 * weights[queries]}, path)
    monkeypatch.setenv("HEADLIGHT_ZOO_DIR", str(changed))
    other = check(text)
    assert other.exit_code == 1
    assert "the claim says" in other.stderr


def test_a_new_chapter_is_written_once(headlight, tmp_path):
    assert headlight("chapter", "new", "mine", "--out", str(tmp_path)).exit_code == 0
    assert (tmp_path / "mine.md").read_text().startswith("---\ntitle: Mine\n")
    assert headlight("chapter", "new", "mine", "--out", str(tmp_path)).exit_code == 1
    assert headlight("chapter", "new", "../mine", "--out", str(tmp_path)).exit_code == 2


def test_check_needs_files_or_all(headlight):
    assert headlight("chapter", "check").exit_code == 2
