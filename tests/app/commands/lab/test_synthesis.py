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
