"""The cost of a hook point that captures nothing."""

from timeit import repeat

import torch

from headlight.model.hooks import HookPoint

MICROSECOND = 1e-6
N_CALLS = 20_000


def test_an_idle_hook_point_takes_less_than_a_microsecond(table):
    point, tensor = HookPoint("batch query d_model", d_model=8), torch.zeros(1, 4, 8)
    seconds = min(repeat(lambda: point(tensor), number=N_CALLS, repeat=20)) / N_CALLS
    figure = f"{seconds / MICROSECOND:.2f} µs"
    table.add("Capture", "an idle hook point", figure, "< 1 µs", seconds < MICROSECOND)
    assert seconds < 2 * MICROSECOND
