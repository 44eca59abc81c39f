"""A run from its corpus to its model folder."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from headlight.lab.training.config import change
from headlight.lab.training.loop import METRICS, STATE
from headlight.lab.training.run import RECIPES, RUN, finish, make_run, read_run, resume, start
from headlight.model.checkpoint.card import ModelCard
from headlight.model.checkpoint.loading import CheckpointError, load, write_atomically
from tests.lab.training.conftest import StopError, stop_at


def weights(loop):
    return dict(loop.model.state_dict())


def steps_of(out):
    return [json.loads(line)["step"] for line in (out / METRICS).read_text().splitlines()]


def test_a_run_ends_in_a_model_that_loads(tmp_path, run):
    out = tmp_path / "mine"
    loop = start(run, out, device="cpu")
    assert loop.run()
    finish(loop, ModelCard(title="Mine", licence="MIT"))
    checkpoint = load(out)
    assert checkpoint.id == "mine"
    assert checkpoint.description.card.title == "Mine"
    ids = torch.tensor([[token.id for token in checkpoint.tokenizer.encode("The cat saw")]])
    loop.model.eval()
    torch.testing.assert_close(
        checkpoint.model(ids).logits, loop.model(ids).logits, rtol=0, atol=0.02
    )


def test_the_vocabulary_is_as_large_as_the_corpus_allows(tmp_path, run):
    small = start(run, tmp_path / "small", device="cpu")
    assert small.model.config.vocab_size == 300
    greedy = replace(run, model=replace(run.model, vocab_size=100_000))
    large = start(greedy, tmp_path / "large", device="cpu")
    assert 300 < large.model.config.vocab_size < 1000


def test_a_folder_with_a_run_is_not_overwritten(tmp_path, run):
    out = tmp_path / "out"
    start(run, out, device="cpu").run()
    before = (out / STATE).read_bytes()
    with pytest.raises(CheckpointError, match=f"^{re.escape(str(out))} already holds a run"):
        start(run, out, device="cpu")
    assert (out / STATE).read_bytes() == before


def test_a_run_that_never_saved_can_be_started_again(tmp_path, run):
    out = tmp_path / "out"
    stop_at(2, start(run, out, device="cpu"))
    assert steps_of(out) == [1, 2]
    assert start(run, out, device="cpu").run()
    assert steps_of(out) == list(range(1, 9))


@pytest.mark.parametrize(
    "contents", [None, "", "[]", '{"corpus": []}', '{"corpus": 5, "model": {}}']
)
def test_a_folder_without_a_whole_run_cannot_be_resumed(tmp_path, contents):
    told = " of `headlight train`$" if contents is None else ": "
    if contents is not None:
        (tmp_path / RUN).write_text(contents)
    with pytest.raises(CheckpointError, match=f"^{re.escape(str(tmp_path))} holds no run{told}"):
        resume(tmp_path, device="cpu")


def test_a_run_cannot_be_resumed_to_a_step_that_is_past(tmp_path, run):
    out = tmp_path / "out"
    start(run, out, device="cpu").run()
    with pytest.raises(ValueError, match=r"already at step 8; steps \(7\)"):
        resume(out, steps=7, device="cpu")
    assert resume(out, steps=8, device="cpu").step == 8


def test_a_run_that_never_saved_begins_again_when_resumed(tmp_path, run):
    out = tmp_path / "out"
    stop_at(2, start(run, out, device="cpu"))
    resumed = resume(out, device="cpu")
    assert resumed.step == 0
    assert steps_of(out) == []
    assert resumed.run()
    through = start(run, tmp_path / "through", device="cpu")
    through.run()
    torch.testing.assert_close(weights(resumed), weights(through), rtol=0, atol=0)


@pytest.mark.parametrize("broken_off", ["metrics.jsonl", "tokenizer.json", "run.json"])
def test_a_start_that_is_killed_leaves_no_mixture_of_two_runs(
    tmp_path, run, monkeypatch, broken_off
):
    out = tmp_path / "out"
    start(run, out, device="cpu")

    def break_off(path, *arguments):
        if path.name == broken_off:
            raise StopError
        write_atomically(path, *arguments)

    monkeypatch.setattr("headlight.lab.training.run.write_atomically", break_off)
    other = replace(run, model=replace(run.model, vocab_size=280))
    try:
        start(other, out, device="cpu")
    except StopError:
        with pytest.raises(CheckpointError, match="holds no run"):
            resume(out, device="cpu")
    else:
        assert read_run(out).model.vocab_size == 280


def test_a_model_that_is_too_large_is_rejected(tmp_path, run, monkeypatch):
    def allocate(config):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory\nat line 5")

    monkeypatch.setattr("headlight.lab.training.run.Transformer", allocate)
    with pytest.raises(ValueError, match=r"^there is no memory .*memory$"):
        start(run, tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_a_run_that_would_read_no_line_of_its_corpus_is_rejected(tmp_path, run):
    """The first two steps of eight read only repeated segments."""
    short = replace(run, loop=replace(run.loop, steps=2))
    with pytest.raises(ValueError, match="--steps 3 or more") as caught:
        start(short, tmp_path / "out", device="cpu")
    stages = json.loads(str(caught.value).partition("rows.stages=")[2].partition("'")[0])
    given = change(RECIPES["stories"], {"rows.stages": stages})
    assert given.rows.stages[0].steps == 2
    assert given.rows.stages[0].text
    assert not (tmp_path / "out").exists()
    textless = replace(run, rows=replace(run.rows, stages=run.rows.stages[:1]))
    with pytest.raises(ValueError, match="no stage"):
        start(textless, tmp_path / "out", device="cpu")
    loop = start(replace(run, loop=replace(run.loop, steps=3)), tmp_path / "out", device="cpu")
    assert loop.run()
    with pytest.raises(ValueError, match="--steps 3 or more"):
        resume(tmp_path / "out", steps=2, device="cpu")


def test_a_resumed_run_keeps_its_precision(tmp_path, run, monkeypatch):
    faster = iter([torch.bfloat16, torch.float32, torch.float32])

    def choose(name, device):
        return next(faster) if name == "auto" else getattr(torch, name)

    monkeypatch.setattr("headlight.lab.training.run.choose_precision", choose)
    first = start(replace(run, precision="auto"), tmp_path / "out", device="cpu")
    assert first.precision == torch.bfloat16
    stop_at(4, first)
    assert resume(tmp_path / "out", device="cpu").precision == torch.bfloat16
    assert resume(tmp_path / "out", device="cpu", precision="float32").precision == torch.float32


def test_a_recipe_that_samples_computes_in_float32(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "headlight.lab.training.run.choose_precision", lambda name, _: getattr(torch, name)
    )
    asked = make_run("reasoning", [], settings={"loop.steps": 1})
    assert start(asked, tmp_path / "auto", device="cpu").precision == torch.float32
    half = replace(asked, precision="bfloat16")
    with pytest.raises(ValueError, match="'reasoning' computes in float32; leave out --precision"):
        start(half, tmp_path / "half", device="cpu")


def test_a_resume_that_fails_changes_nothing(tmp_path, run):
    out = tmp_path / "out"
    start(run, out, device="cpu").run()
    before = (out / RUN).read_text()
    with pytest.raises(ValueError, match=r"^precision 'int8' is unknown"):
        resume(out, device="cpu", precision="int8")
    assert (out / RUN).read_text() == before


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_comes_back_from_its_run_file(recipe, tmp_path):
    teacher = "stories" if RECIPES[recipe].needs_teacher else None
    run = make_run(recipe, [Path("a.txt")], precision="bfloat16", teacher=teacher)
    (tmp_path / RUN).write_text(json.dumps(asdict(run)))
    assert read_run(tmp_path) == run
    assert run.loop == RECIPES[recipe].loop


@pytest.mark.parametrize(
    ("recipe", "settings", "fault"),
    [
        ("stories", {"loop.temperature": 2.0}, r"loop.temperature \(2.0\).* without a teacher"),
        ("reward", {"loop.teacher_weight": 0.1}, r"loop.teacher_weight \(0.1\).* a teacher"),
        ("fill", {"loop.balance_weight": 0.3}, r"loop.balance_weight \(0.3\).* without experts"),
        ("rlhf", {"loop.accumulate": 2}, r"loop.accumulate \(2\).* samples its own batches"),
        ("rlhf", {"loop.smoothing": 0.1}, r"loop.smoothing \(0.1\).* samples its own batches"),
        (
            "reasoning",
            {"loop.smoothing": 0.1, "rows.imitation": 0},
            r"loop.smoothing \(0.1\).* samples its own batches",
        ),
    ],
)
def test_a_setting_without_effect_is_rejected(recipe, settings, fault):
    with pytest.raises(ValueError, match=f"^{fault}; leave it out$"):
        make_run(recipe, [], settings=settings)


# --- from another model ---------------------------------------------------------------------------


def trained(run, out):
    """Train a first model, to begin another run from."""
    loop = start(run, out, device="cpu")
    loop.run()
    finish(loop, ModelCard(title="First", licence="MIT"))
    return load(out)


def test_a_run_begins_with_the_weights_and_the_tokenizer_of_a_model(tmp_path, run):
    first = trained(run, tmp_path / "first")
    corpus = tmp_path / "other.txt"
    corpus.write_text("Whales sing under the ice, and nobody knows the words.\n" * 40)
    later = replace(run, corpus=(str(corpus),), begun_from=str(tmp_path / "first"))
    loop = start(later, tmp_path / "second", device="cpu")
    torch.testing.assert_close(weights(loop), dict(first.model.state_dict()), rtol=0, atol=0)
    assert loop.run()
    assert (tmp_path / "second" / "tokenizer.json").read_text() == first.tokenizer.to_json()


def test_a_run_with_a_tokenizer_of_a_model_begins_with_random_weights(tmp_path, run):
    first = trained(run, tmp_path / "first")
    later = replace(run, tokenizer=str(tmp_path / "first"))
    loop = start(later, tmp_path / "second", device="cpu")
    assert loop.model.config.vocab_size == first.config.vocab_size
    embedding = "decoder.embedding.vectors.weight"
    assert not weights(loop)[embedding].equal(first.model.state_dict()[embedding])
    loop.run()
    assert (tmp_path / "second" / "tokenizer.json").read_text() == first.tokenizer.to_json()
    assert read_run(tmp_path / "second").tokenizer == later.tokenizer


def test_a_tokenizer_that_a_run_cannot_take_is_an_error(tmp_path):
    for other in ({"begun_from": "stories"}, {"teacher": "stories"}):
        with pytest.raises(ValueError, match="leave out --tokenizer"):
            make_run("stories", [], tokenizer="stories", **other)
    corpus = tmp_path / "text.txt"
    corpus.write_text("A line of text.\n" * 400)
    asked = make_run("fill", [corpus], tokenizer="stories", precision="float32")
    with pytest.raises(ValueError, match="has no mask token, which the recipe 'fill' needs"):
        start(asked, tmp_path / "out", device="cpu")


def test_dropout_may_differ_from_that_of_the_model_and_nothing_else(tmp_path, run):
    trained(run, tmp_path / "first")
    later = replace(run, begun_from=str(tmp_path / "first"))
    other = replace(later, model=replace(run.model, dropout=0.3))
    assert start(other, tmp_path / "second", device="cpu").model.config.dropout == 0.3
    wider = replace(later, model=replace(run.model, d_ff=32))
    with pytest.raises(ValueError, match=r"another architecture than the run"):
        start(wider, tmp_path / "third", device="cpu")


def test_a_run_begins_from_a_shipped_model_by_its_name(tmp_path):
    assert Path(make_run("translate", [], begun_from="translate").begun_from).name == "translate"
    with pytest.raises(CheckpointError, match=r"there is no model or folder"):
        make_run("translate", [], begun_from=tmp_path / "nowhere")


@pytest.mark.parametrize("schedule", ["warmup_stable_decay", "noam"])
def test_a_lengthened_run_ends_with_the_weights_of_a_run_of_that_length(tmp_path, run, schedule):
    def asked(steps):
        loop = replace(run.loop, steps=steps, schedule=schedule, decay=0.5, save_every=2)
        return replace(run, loop=loop)

    whole = start(asked(12), tmp_path / "whole", device="cpu")
    whole.run()
    start(asked(8), tmp_path / "longer", device="cpu").run()
    longer = resume(tmp_path / "longer", steps=12, device="cpu")
    assert longer.step == (4 if schedule == "warmup_stable_decay" else 8)
    longer.run()
    assert steps_of(tmp_path / "longer") == list(range(1, 13))
    for name, tensor in whole.model.weights().items():
        assert torch.equal(tensor, longer.model.weights()[name]), name
