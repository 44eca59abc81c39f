"""A load of a model has a time limit, and one that hangs holds up nothing else."""

import asyncio
import threading

import pytest

from headlight.models import loads as loads_module
from headlight.models.loads import Loads
from headlight.problems import Problem


class Models:
    """Loads models by their names; those that begin with "hang" go on when `goes_on` is set."""

    def __init__(self):
        self.goes_on = threading.Event()
        self.loaded, self.given_up = [], []

    def checkpoint(self, model):
        if model.startswith("hang"):
            self.goes_on.wait(60)
        if model == "damaged":
            raise Problem(503, "model-unavailable", "it is damaged")
        self.loaded.append(model)

    def give_up(self, model, reason):
        self.given_up.append((model, reason))


@pytest.fixture
def models():
    loader = Models()
    yield loader
    loader.goes_on.set()


async def stays():
    await asyncio.Event().wait()


def run(work, seconds=60):
    asyncio.run(asyncio.wait_for(work, seconds))


def test_a_load_that_takes_too_long_is_a_problem_and_is_given_up(models):
    loads = Loads(models, 0.1)

    async def work():
        with pytest.raises(Problem, match=r"within the 0\.1 s") as caught:
            await loads.load("hang", stays)
        assert (caught.value.status_code, caught.value.kind) == (504, "model-too-slow")
        assert models.given_up == [("hang", "it was not loaded within 0.1 s")]
        await loads.load("other", stays)

    run(work())
    assert models.loaded == ["other"]


def test_a_load_that_fails_is_told_to_all_that_wait_for_it(models):
    async def work():
        loads = Loads(models, 60)
        waiting = [asyncio.create_task(loads.load("damaged", stays)) for _ in range(3)]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert [answer.detail for answer in answers] == ["it is damaged"] * 3

    run(work())


def test_loads_that_hang_leave_their_places_to_others(models, monkeypatch):
    monkeypatch.setattr(loads_module, "PLACE_SECONDS", 0.1)

    async def work():
        loads = Loads(models, 60)
        names = [f"hang {n}" for n in range(2 * loads_module.N_PLACES)]
        hanging = [asyncio.create_task(loads.load(name, stays)) for name in names]
        await asyncio.sleep(0)
        await loads.load("other", stays)
        assert models.loaded == ["other"]
        models.goes_on.set()
        await asyncio.gather(*hanging)
        assert sorted(models.loaded) == [*names, "other"]

    run(work())


def test_no_more_than_a_few_begin_at_one_time(models):
    async def work():
        loads = Loads(models, 60)
        names = [f"hang {n}" for n in range(loads_module.N_PLACES)]
        hanging = [asyncio.create_task(loads.load(name, stays)) for name in names]
        waiting = asyncio.create_task(loads.load("other", stays))
        await asyncio.sleep(0.2)
        assert not models.loaded
        models.goes_on.set()
        await asyncio.gather(*hanging, waiting)
        assert sorted(models.loaded) == [*names, "other"]

    run(work())


def test_who_waits_is_told_at_once_that_the_server_stops(models):
    async def work():
        loads = Loads(models, 60)
        names = [f"hang {n}" for n in range(loads_module.N_PLACES + 1)]
        waiting = [asyncio.create_task(loads.load(name, stays)) for name in names]
        await asyncio.sleep(0.1)
        loads.stop()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert {answer.kind for answer in answers} == {"server-stopping"}
        with pytest.raises(Problem, match="stopping"):
            await loads.load("other", stays)

    run(work())


def test_a_thread_that_hangs_is_not_waited_for_at_the_end(models):
    async def work():
        loads = Loads(models, 60)
        waiting = asyncio.create_task(loads.load("hang", stays))
        await asyncio.sleep(0.1)
        hanging = [thread for thread in threading.enumerate() if thread.name == "load"]
        assert hanging
        assert all(thread.daemon for thread in hanging)
        waiting.cancel()

    run(work())
