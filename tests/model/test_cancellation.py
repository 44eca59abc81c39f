"""A computation stops between two of its steps, in its own thread alone."""

import threading

import pytest
import torch

from headlight.model.cancellation import Cancelled, cancellable, check
from headlight.model.config import TransformerConfig
from headlight.model.generation.sampling import Sampling, generate
from headlight.model.generation.translation import translate
from headlight.model.transformer import Transformer

SIZES = {"vocab_size": 40, "n_heads": 2, "d_model": 8, "d_ff": 16, "max_tokens": 32}
IDS = [0, 5, 9]


def build(**config):
    torch.manual_seed(3)
    return Transformer(TransformerConfig(**SIZES, **config)).eval()


class Countdown:
    """Says stop when it is asked for the nth time."""

    def __init__(self, n_checks):
        self.n_left = n_checks

    def __call__(self):
        self.n_left -= 1
        return self.n_left <= 0


def test_nothing_stops_outside_of_the_block():
    check()
    with cancellable(lambda: True), pytest.raises(Cancelled):
        check()
    check()


def test_a_pass_stops_before_the_layer_at_which_it_is_cancelled():
    model = build(n_layers=4)
    site = "decoder.layers.{}.residual.after"
    with (
        model.capture(["*.residual.after"]) as captured,
        cancellable(Countdown(3)),
        pytest.raises(Cancelled),
    ):
        model(torch.tensor([IDS]))
    assert list(captured) == [site.format(0), site.format(1)]


def test_writing_stops_before_a_token():
    steps = generate(build(n_layers=2), IDS, n_tokens=9, sampling=Sampling())
    next(steps)
    with cancellable(lambda: True), pytest.raises(Cancelled):
        next(steps)


def test_a_translation_stops_before_a_token():
    model = build(n_layers=1, kind="encoder-decoder")
    for n_checks in range(1, 6):
        with cancellable(Countdown(n_checks)), pytest.raises(Cancelled):
            translate(model, [IDS], start_id=0, end_id=1)


def test_a_stop_concerns_its_own_thread_alone():
    stopped = []

    def compute():
        try:
            check()
        except Cancelled:
            stopped.append(True)

    with cancellable(lambda: True):
        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()
    assert stopped == []
