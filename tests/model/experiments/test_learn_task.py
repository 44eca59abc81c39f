"""Tasks are drawn right, reverse is learned with positions and not without, runs can be stopped."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from headlight.model.cancellation import Cancelled, cancellable
from headlight.model.experiments import learn_task
from headlight.model.experiments.learn_task import EXPERIMENT, LearnTask, make_task
from headlight.model.optimization.schedule import warmup_stable_decay

TINY = {"d_model": 8, "n_heads": 2, "batch": 4, "length": 4, "n_symbols": 6}
SMALL = {
    "positional": "sinusoidal",
    "length": 4,
    "n_symbols": 6,
    "steps": 120,
    "batch": 32,
    "n_layers": 1,
}


def drawn(**values):
    task = make_task(LearnTask(**values))
    symbols, answers = task.draw(np.random.default_rng(0), 200)
    return task, symbols, answers


# --- tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "answer"),
    [("copy", lambda row: row), ("reverse", lambda row: row[::-1]), ("sort", sorted)],
)
def test_the_answers_of_the_rearranging_tasks(name, answer):
    task, symbols, answers = drawn(task=name, length=6)
    assert symbols.shape == (200, 12)
    for row, expected in zip(symbols[:, :6].tolist(), answers.tolist(), strict=True):
        assert answer(row) == expected
    assert {task.vocabulary[index] for index in symbols[:, 6:].flat} == {"_"}


def test_induction_asks_for_the_symbol_that_followed():
    _, inputs, answers = drawn(task="induction", length=6)
    for row, expected in zip(inputs.tolist(), answers.tolist(), strict=True):
        symbols, queries = row[:6], row[6:]
        assert len(set(symbols)) == 6
        assert [symbols[symbols.index(query) + 1] for query in queries] == expected


@pytest.mark.parametrize(("length", "n_digits"), [(3, 1), (8, 3)])
def test_addition_asks_for_the_sum(length, n_digits):
    task, symbols, answers = drawn(task="addition", length=length)
    assert answers.shape[1] == n_digits + 1
    for row, expected in zip(symbols.tolist(), answers.tolist(), strict=True):
        text = "".join(task.vocabulary[index] for index in row)
        first, second = text.rstrip("_").split("+")
        total = "".join(task.vocabulary[index] for index in expected)
        assert len(first) == len(second) == n_digits
        assert int(first) + int(second) == int(total)


# --- learning -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned():
    return EXPERIMENT.result(SMALL)


def test_reverse_is_learned_with_positions(learned):
    assert learned["accuracy"].data[-1] == 1
    assert learned["loss"].data[-1] < 0.1 < 1 < learned["loss"].data[0]
    assert learned["accuracy"].data[0] < 0.4
    assert learned["prediction"].data[-1].tolist() == learned["target"].data.tolist()


def test_attention_rows_sum_to_1_and_see_no_later_token(learned):
    attention = learned["attention"].data
    assert learned["attention"].axes == ("frame", "layer", "head", "query", "key")
    assert attention.shape[1:] == (1, 4, 8, 8)
    assert attention.sum(axis=-1) == pytest.approx(1)
    assert (np.triu(attention, k=1) == 0).all()


def test_the_accuracy_is_measured_on_what_the_network_predicts():
    parameters = LearnTask(**TINY)
    task = make_task(parameters)
    network = learn_task.make_network(parameters, task)
    tested = learn_task._tensors(task.draw(np.random.default_rng(0), 50))
    frame = learn_task._frame(network, task, tested, 0)
    with torch.no_grad():
        predicted = network(tested[0]).logits[:, -4:].argmax(dim=-1)
    is_right = predicted == tested[1]
    assert frame["accuracy"][0] == pytest.approx(is_right.double().mean().item())
    assert frame["sequence_accuracy"][0] == pytest.approx(is_right.all(1).double().mean().item())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["rnn", "lstm"])
def test_a_recurrent_network_learns_and_has_no_attention(model):
    values = {"task": "copy", "length": 2, "n_symbols": 3, "steps": 150, "learning_rate": 0.02}
    arrays = EXPERIMENT.result({**TINY, **values, "model": model, "batch": 16})
    assert "attention" not in arrays
    assert arrays["accuracy"].data[-1] > 0.9 > 0.5 > arrays["accuracy"].data[0]


def test_the_parameters_make_the_network():
    def made(**values):
        parameters = LearnTask(**{**TINY, **values})
        return learn_task.make_network(parameters, make_task(parameters))

    for name in ("sinusoidal", "learned", "rotary", "none"):
        assert made(positional=name).config.positional == name
    assert [made(is_causal=each).config.kind for each in (True, False)] == ["decoder", "encoder"]
    for name, kind in (("rnn", nn.RNN), ("lstm", nn.LSTM)):
        network = made(model=name, n_layers=3).network
        assert type(network) is kind
        assert (network.num_layers, network.input_size, network.hidden_size) == (3, 8, 16)


def test_the_seed_draws_the_weights_the_training_and_the_tested_sequences(monkeypatch):
    networks = []
    make, drawn_ids, draw = learn_task.make_network, [], learn_task.Task.draw
    monkeypatch.setattr(
        learn_task, "make_network", lambda *given: networks.append(make(*given)) or networks[-1]
    )

    def recorded(task, rng, n_rows):
        drawn_rows = draw(task, rng, n_rows)
        drawn_ids.append(drawn_rows[0][:4].tolist())
        assert n_rows in (4, learn_task.N_TESTED)
        return drawn_rows

    monkeypatch.setattr(learn_task.Task, "draw", recorded)
    weights = []
    for seed in (0, 1):
        next(EXPERIMENT.start({**TINY, "seed": seed}))
        weights.append(torch.cat([each.detach().flatten() for each in networks[-1].parameters()]))
        EXPERIMENT.result({**TINY, "seed": seed, "steps": 2})
    assert (weights[0] != weights[1]).any()
    for first in range(3):  # the tested sequences, and the batches of both steps
        assert drawn_ids[1 + first] != drawn_ids[5 + first]
    tested, *trained = drawn_ids[1:4]
    assert tested not in trained


@pytest.mark.parametrize("step", [0, 3, 39])
def test_a_step_has_the_rate_of_its_schedule_and_a_clipped_gradient(step, monkeypatch):
    parameters = LearnTask(**TINY, steps=40, learning_rate=0.02)
    task = make_task(parameters)
    network = learn_task.make_network(parameters, task)
    rows = learn_task._tensors(task.draw(np.random.default_rng(0), 4))
    with torch.no_grad():
        expected = F.cross_entropy(network(rows[0]).logits[:, -4:].flatten(0, 1), rows[1].flatten())
    optimizers = learn_task._make_optimizers(network, parameters)
    monkeypatch.setattr(learn_task, "MAX_GRADIENT", 0.25)
    norms = []
    for optimizer in optimizers:
        monkeypatch.setattr(
            optimizer,
            "zero_grad",
            lambda: norms.append(
                torch.stack([p.grad.norm() for p in network.parameters() if p.grad is not None])
                .norm()
                .item()
            ),
        )
    assert learn_task._train(network, optimizers, rows, parameters, step) == pytest.approx(
        expected.item() / math.log(2)
    )
    factor = warmup_stable_decay(step, steps=40, warmup=20, decay=10)
    for optimizer in optimizers:
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.02 * factor)
    assert norms[0] == pytest.approx(0.25, rel=1e-4)


def test_the_probability_is_that_of_the_prediction(learned):
    assert learned["probability"].data[-1].min() > 0.5
    assert learned["probability"].data.shape == (41, 4)


# --- equality and bounds --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_rounding_error_does_not_grow_to_what_can_be_seen(monkeypatch):
    """Other machines add numbers up in another order, which changes the last bit of a sum."""
    first = EXPERIMENT.result(SMALL)
    make = learn_task.make_network

    def make_nearly(parameters, task):
        network = make(parameters, task)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(1 + 1e-14)
        return network

    monkeypatch.setattr(learn_task, "make_network", make_nearly)
    second = EXPERIMENT.result(SMALL)
    for name in ("loss", "accuracy", "probability", "attention"):
        assert first[name].data == pytest.approx(second[name].data, abs=1e-5), name


def test_the_global_random_numbers_do_not_matter():
    torch.manual_seed(1)
    first = EXPERIMENT.result({**TINY, "steps": 2})
    torch.manual_seed(2)
    second = EXPERIMENT.result({**TINY, "steps": 2})
    assert (first["loss"].data == second["loss"].data).all()


def test_a_run_is_cancelled_between_two_steps():
    frames = EXPERIMENT.start({**TINY, "steps": 1000})
    next(frames)
    n_checks = []
    with pytest.raises(Cancelled), cancellable(lambda: n_checks.append(1) or len(n_checks) > 5):
        next(frames)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"d_model": 8, "n_heads": 3}, r"n_heads \(3\) must divide d_model \(8\)"),
        ({"task": "induction", "length": 8, "n_symbols": 7}, "induction needs length"),
        ({"task": "induction", "n_symbols": 4}, r"induction needs length \(5\) different symbols"),
        ({"task": "addition", "length": 2}, "addition needs a length of at least 3"),
    ],
)
def test_parameters_that_do_not_fit_are_rejected(values, message):
    with pytest.raises(ValueError, match=message):
        EXPERIMENT.start(values)
