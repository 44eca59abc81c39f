"""The training loop: it learns, it stops when asked, and it goes on to the same result."""

import json
import math
import os
import re
import signal
from dataclasses import replace

import pytest
import torch

from headlight.lab.training.loop import METRICS, Diverged, StepReport, load_state, save_state
from headlight.lab.training.losses import token_losses
from headlight.model.checkpoint.loading import CheckpointError
from headlight.model.optimization.optimizers import make_optimizers
from tests.lab.training.conftest import stop_at


def weights(loop):
    return {name: tensor.clone() for name, tensor in loop.model.state_dict().items()}


def assert_same_weights(first, second):
    torch.testing.assert_close(weights(first), weights(second), rtol=0, atol=0)


def lines(loop):
    return [json.loads(line) for line in (loop.out / METRICS).read_text().splitlines()]


def repeat(loop, n_counted):
    """Let every batch be the first one, with so many targets of each row counted."""
    batch = loop.batches.batch(0)
    batch.is_counted[:] = torch.arange(12) < torch.tensor(n_counted)[:, None]
    loop.batches.batch = lambda step: batch  # type: ignore[method-assign]


def signal_at(step, number):
    def listen(report):
        if report.step == step:
            os.kill(os.getpid(), number)

    return listen


# --- learning -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_model_learns_to_count(make_loop):
    loop = make_loop(steps=60, validate_every=30)
    before = loop.validate()
    reports: list[StepReport] = []
    assert loop.run(reports.append)
    assert before > 5
    assert reports[-1].valid_loss is not None
    assert reports[-1].valid_loss < 0.75 * before
    assert loop.validate() == reports[-1].valid_loss


def test_bfloat16_runs_the_matrix_products_in_bfloat16(make_loop):
    for precision in (torch.float32, torch.bfloat16):
        loop = make_loop(f"{precision}", steps=1, precision=precision)
        with loop.model.capture(["*.queries"]) as captured:
            loop.run()
        # The last pass is the validation, which runs in float32 whatever the steps do.
        assert {tensor.dtype for tensor in captured.values()} == {torch.float32}
        seen: list[torch.dtype] = []
        loop = make_loop(f"{precision} again", steps=1, precision=precision)
        loop.model.decoder.layers[0].self_attention.query_projection.register_forward_hook(
            lambda module, inputs, output, seen=seen: seen.append(output.dtype)
        )
        loop.run()
        assert seen[0] == precision


def test_a_step_reports_what_happened(make_loop):
    loop = make_loop(steps=5, validate_every=2)
    reports: list[StepReport] = []
    loop.run(reports.append)
    assert [report.step for report in reports] == [1, 2, 3, 4, 5]
    assert [report.tokens for report in reports] == [48, 96, 144, 192, 240]
    assert [report.valid_loss is not None for report in reports] == [False, True, False, True, True]
    assert all(report.loss > 0 and report.balance_loss > 0.5 for report in reports)
    seconds = [report.seconds for report in reports]
    assert seconds == sorted(seconds)
    assert all(not report.figures for report in reports)
    known = [{name: vars(report)[name] for name in lines(loop)[0]} for report in reports]
    assert lines(loop) == known
    assert "figures" not in lines(loop)[0]


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_first_loss_is_that_of_the_untrained_model(make_loop, smoothing):
    loop = make_loop(steps=1, smoothing=smoothing)
    with torch.no_grad():  # so that smoothing makes a difference
        loop.model.vectors.mul_(100)
    batch = loop.batches.batch(0)
    torch.manual_seed(loop.config.seed)
    logits = loop.model(batch.ids).logits
    losses = [
        token_losses(logits, batch.targets, smoothing=share)[batch.is_counted].mean().item()
        for share in (0.0, 0.3)
    ]
    reports: list[StepReport] = []
    loop.run(reports.append)
    assert abs(losses[0] - losses[1]) > 0.1
    assert reports[0].loss == pytest.approx(losses[smoothing > 0], rel=1e-5)


def test_validation_is_the_mean_over_all_tokens_without_dropout(make_loop):
    loop = make_loop()
    total = count = 0.0
    loop.model.eval()
    for batch in loop.batches.validation():
        logits = loop.model(batch.ids).logits
        total += token_losses(logits, batch.targets)[batch.is_counted].sum().item()
        count += batch.is_counted.sum().item()
    assert loop.validate() == pytest.approx(total / count)
    assert loop.validate() == loop.validate()
    assert loop.model.training


def test_validation_changes_nothing(make_loop):
    often, seldom = make_loop("often", validate_every=1), make_loop("seldom", validate_every=100)
    often.run()
    seldom.run()
    assert_same_weights(often, seldom)


@pytest.mark.parametrize("accumulate", [2, 3, 9])
def test_a_batch_read_in_parts_gives_the_same_update(make_loop, accumulate):
    """Four rows in even parts, uneven ones, and more parts than rows.

    Without experts, which are balanced within each part, and without dropout.
    """
    dense = replace(make_loop().model.config, dropout=0.0, moe=None)
    whole = make_loop("whole", model_config=dense, steps=1, smoothing=0.1)
    parts = make_loop("parts", model_config=dense, steps=1, smoothing=0.1, accumulate=accumulate)
    for loop in (whole, parts):
        repeat(loop, n_counted=[12, 3, 12, 1])
        loop.run()
    assert lines(parts)[0]["loss"] == pytest.approx(lines(whole)[0]["loss"], abs=1e-6)
    gradients = [{n: p.grad for n, p in loop.model.named_parameters()} for loop in (whole, parts)]
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-7)


def test_a_part_without_a_counted_target_adds_nothing(make_loop):
    loop = make_loop(steps=1, accumulate=4)
    repeat(loop, n_counted=[12, 0, 0, 0])
    loop.run()
    assert math.isfinite(lines(loop)[0]["loss"])
    assert all(tensor.isfinite().all() for tensor in weights(loop).values())


def test_the_learning_rate_follows_the_schedule(make_loop):
    loop = make_loop(steps=10, warmup=4, decay=0.2, learning_rate=0.01, adam_share=0.5)
    rates: list[list[float]] = []
    loop.run(lambda _: rates.append([o.param_groups[0]["lr"] for o in loop.optimizers]))
    factors = [0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 0.5]
    muon, adam = zip(*rates, strict=True)
    assert list(muon) == pytest.approx([0.01 * factor for factor in factors])
    assert list(adam) == pytest.approx([0.005 * factor for factor in factors])


# --- stopping and going on ------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_weights(make_loop):
    first, second = make_loop("one"), make_loop("other")
    first.run()
    second.run()
    assert_same_weights(first, second)
    different = make_loop("different", seed=1)
    different.run()
    name = "decoder.embedding.vectors.weight"
    assert not weights(first)[name].equal(weights(different)[name])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_saves_and_goes_on_to_exactly_the_same_weights(make_loop, number):
    uninterrupted = make_loop("uninterrupted")
    assert uninterrupted.run()
    stopped = make_loop("stopped", save_every=100)
    assert not stopped.run(signal_at(3, number))
    assert stopped.step == 3
    resumed = make_loop("stopped")
    resumed.resume()
    assert (resumed.step, resumed.tokens) == (3, 3 * 48)
    assert resumed.seconds == stopped.seconds
    assert resumed.run()
    assert_same_weights(resumed, uninterrupted)
    assert [line["step"] for line in lines(resumed)] == list(range(1, 9))
    losses = [line["loss"] for line in lines(uninterrupted)]
    assert [line["loss"] for line in lines(resumed)] == losses
    assert [line["tokens"] for line in lines(resumed)] == [48 * step for step in range(1, 9)]


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_last_save_to_exactly_the_same_weights(make_loop):
    uninterrupted = make_loop("uninterrupted")
    uninterrupted.run()
    killed = make_loop("killed", save_every=2)
    stop_at(5, killed)
    with (killed.out / METRICS).open("a") as file:
        file.write('{"step": 6, "lo')  # killed while it wrote a line
    resumed = make_loop("killed")
    resumed.resume()
    assert resumed.step == 4
    assert [line["step"] for line in lines(resumed)] == [1, 2, 3, 4]
    assert resumed.run()
    assert_same_weights(resumed, uninterrupted)
    assert [line["step"] for line in lines(resumed)] == list(range(1, 9))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_handled_as_before_once_a_run_has_ended(make_loop, number):
    before = signal.getsignal(number)
    handlers: list[object] = []
    make_loop(steps=1).run(lambda _: handlers.append(signal.getsignal(number)))
    assert handlers[0] != before
    assert signal.getsignal(number) == before
    stop_at(1, make_loop("other"))
    assert signal.getsignal(number) == before


def test_a_run_that_diverges_ends_and_keeps_its_last_state(make_loop):
    loop = make_loop(save_every=2)

    def spoil(report):
        if report.step == 3:
            with torch.no_grad():
                loop.model.decoder.norm.scale.fill_(math.nan)

    with pytest.raises(Diverged, match="step 4 is nan"):
        loop.run(spoil)
    again = make_loop()
    again.resume()
    assert again.step == 2
    assert all(tensor.isfinite().all() for tensor in weights(again).values())


def test_gradients_are_clipped(make_loop):
    def norm_after_a_step(clip):
        loop = make_loop(f"{clip}", steps=1, clip=clip)
        loop.run()
        gradients = [parameter.grad for parameter in loop.model.parameters()]
        return torch.nn.utils.get_total_norm(g for g in gradients if g is not None).item()

    assert norm_after_a_step(1e9) > 0.02
    assert norm_after_a_step(0.01) == pytest.approx(0.01, rel=1e-3)


# --- state ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["missing", "truncated", "empty"])
def test_a_state_that_cannot_be_read_is_named(tmp_path, make_model, damage):
    path = tmp_path / "state"
    model = make_model()
    optimizers = make_optimizers(model, learning_rate=6e-3)
    if damage != "missing":
        save_state(path, model, optimizers, {})
        contents = path.read_bytes()
        path.write_bytes(contents[: len(contents) // 2] if damage == "truncated" else b"")
    with pytest.raises(CheckpointError, match=re.escape(str(path))):
        load_state(path, model, optimizers)


def test_a_state_of_another_model_is_rejected(tmp_path, make_model):
    path = tmp_path / "state"
    model, other = make_model(), make_model(d_ff=64)
    save_state(path, model, make_optimizers(model, learning_rate=6e-3), {})
    with pytest.raises(
        CheckpointError, match=r"(?s)does not continue this run: .*up_projection\.weight"
    ):
        load_state(path, other, make_optimizers(other, learning_rate=6e-3))


def test_a_state_replaces_the_one_before_when_it_is_whole(tmp_path, make_model, monkeypatch):
    path = tmp_path / "deep" / "state"
    model = make_model()
    optimizers = make_optimizers(model, learning_rate=6e-3)
    save_state(path, model, optimizers, {"step": 1})

    def fail(tensors, partial, metadata):
        partial.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("headlight.lab.training.loop.save_file", fail)
    with pytest.raises(OSError, match="no space left"):
        save_state(path, model, optimizers, {"step": 2})
    assert load_state(path, model, optimizers) == {"step": 1}


# --- averaged weights -----------------------------------------------------------------------------


def test_the_weights_of_the_states_saved_last_are_averaged(make_loop):
    loop = make_loop(steps=8, save_every=2, averaged=3)
    saved = {}

    def keep(report):
        if report.step in (4, 6, 8):
            saved[report.step] = weights(loop)

    loop.run(keep)
    last = weights(loop)
    loop.average()
    for name, averaged in weights(loop).items():
        expected = torch.stack([saved[step][name] for step in (4, 6, 8)]).mean(dim=0)
        torch.testing.assert_close(averaged, expected)
    assert len(list(loop.out.glob("weights-*.safetensors"))) == 3
    resumed = make_loop(steps=8, save_every=2, averaged=3)
    resumed.resume()
    torch.testing.assert_close(weights(resumed), last, rtol=0, atol=0)


# --- the best validation, an early end -------------------------------------------------------


def test_the_best_validation_gives_the_model(make_loop):
    loop = make_loop(best=True, steps=6, validate_every=1)
    losses = iter([3.0, 1.0, 2.0, 1.0, 4.0, 5.0])
    loop.validate = lambda: next(losses)
    kept = []
    loop.run(lambda report: kept.append({n: t.clone() for n, t in loop.model.weights().items()}))
    assert (loop.best.step, loop.best.loss, loop.best.n_worse) == (2, 1.0, 4)
    loop.choose_weights()
    for name, tensor in loop.model.weights().items():
        assert torch.equal(tensor, kept[1][name]), name
    assert len([*loop.out.glob("best-*")]) == 1


def test_a_run_ends_when_the_held_out_loss_stops_falling_and_stays_ended(make_loop):
    loop = make_loop(patience=2, steps=9, validate_every=1)
    losses = iter([3.0, 2.0, 2.5, 2.0, 1.0])
    loop.validate = lambda: next(losses)
    assert loop.run()
    assert loop.step == 4
    again = make_loop(patience=2, steps=9, validate_every=1)
    again.resume()
    assert again.has_converged
    assert again.run()
    assert again.step == 4


def test_observers_add_their_figures_to_the_reports_that_are_due(make_loop):
    loop = make_loop(steps=5)
    loop.observe(2, lambda loop: {"seen": float(loop.step)})
    reports = []
    loop.run(reports.append)
    assert [report.figures.get("seen") for report in reports] == [None, 2.0, None, 4.0, 5.0]
