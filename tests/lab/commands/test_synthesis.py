"""`headlight data synthesize`: answers of a model as a file to train on."""

import json


def test_the_command_writes_what_training_reads(headlight, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Once upon a time"}\n')
    asked = ["data", "synthesize", "prompts.jsonl", "--samples", "2", "--n-tokens", "4"]
    result = headlight(*asked, "--out", "answers.jsonl", "--model", "stories")
    assert result.exit_code == 0, result.stderr
    (line,) = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert json.loads(line)["prompt"].strip() == "Once upon a time"
    both = headlight(*asked, "--out", "more.jsonl", "--rule", "--reward", "stories-reward")
    assert both.exit_code == 2
    assert "leave one out" in both.stderr


def test_where_no_answer_passes_nothing_is_written(headlight, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Once upon a time"}\n')
    # Two tokens are no twenty words.
    asked = ["data", "synthesize", "prompts.jsonl", "--samples", "2", "--n-tokens", "2", "--rule"]
    result = headlight(*asked, "--out", "answers.jsonl", "--model", "stories")
    assert result.exit_code == 2
    assert "none of 2 answers passed" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["prompts.jsonl"]
