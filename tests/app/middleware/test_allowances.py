"""A client's allowance refills steadily, and of few clients at a time is any kept."""

import pytest

from headlight.middleware.allowances import Allowances


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_whole_minute_may_be_used_at_once(clock):
    allowances = Allowances(3, 10, clock)
    assert [allowances.take("ada").n_left for _ in range(3)] == [2, 1, 0]
    refused = allowances.take("ada")
    assert (refused.n_left, refused.wait) == (0, pytest.approx(20))


def test_after_it_one_more_comes_with_every_part_of_a_minute(clock):
    allowances = Allowances(3, 10, clock)
    for _ in range(3):
        allowances.take("ada")
    for _ in range(5):
        clock.now += 20.001
        assert allowances.take("ada").wait == 0
        assert allowances.take("ada").wait > 0


def test_who_is_refused_loses_nothing_by_asking(clock):
    allowances = Allowances(1, 10, clock)
    allowances.take("ada")
    for _ in range(100):
        assert allowances.take("ada").wait == pytest.approx(60)
    clock.now += 60.001
    assert allowances.take("ada").wait == 0


def test_each_client_has_its_own(clock):
    allowances = Allowances(1, 10, clock)
    assert allowances.take("ada").wait == 0
    assert allowances.take("grace").wait == 0
    assert allowances.take("ada").wait > 0


def test_who_waited_has_all_of_it_again(clock):
    allowances = Allowances(60, 10, clock)
    for _ in range(60):
        allowances.take("ada")
    clock.now += 3600
    allowance = allowances.take("ada")
    assert (allowance.n_left, allowance.full_after) == (59, pytest.approx(1))


def test_only_so_many_clients_are_remembered_the_last_ones(clock):
    allowances = Allowances(1, 3, clock)
    for client in ("ada", "grace", "ada", "edith", "joan"):
        allowances.take(client)
    assert len(allowances) == 3
    assert allowances.take("joan").wait > 0
    assert allowances.take("ada").wait == 0, "it asked least recently of those who were let in"
    for number in range(1000):
        allowances.take(f"client {number}")
    assert len(allowances) == 3
