"""Equal questions at one time are computed once; each client may leave when it likes."""

import asyncio

import pytest

from headlight.errors import Problem
from headlight.inference.engine import ClientLeft
from headlight.inference.single_flight import Sharing


async def never():
    await asyncio.Event().wait()


class Work:
    """A computation that runs until it is told its result, or that everybody left."""

    def __init__(self):
        self.n_begun = 0
        self.results = []
        self.was_left = 0

    async def __call__(self, everyone_left):
        self.n_begun += 1
        result = asyncio.get_running_loop().create_future()
        self.results.append(result)
        departure = asyncio.ensure_future(everyone_left())
        await asyncio.wait({result, departure}, return_when=asyncio.FIRST_COMPLETED)
        departure.cancel()
        if result.done():
            return result.result()
        self.was_left += 1
        raise ClientLeft


async def ask(sharing, work, *, name="a", client_left=never):
    """A client that waits from now on."""
    client = asyncio.ensure_future(sharing.share(name, work, client_left))
    for _ in range(3):
        await asyncio.sleep(0)
    return client


def refusal(kind):
    return Problem(503, kind, "not now")


def test_equal_questions_are_computed_once_and_counted():
    async def scene():
        shared = []
        sharing, work = Sharing(on_share=lambda: shared.append(1)), Work()
        clients = [await ask(sharing, work) for _ in range(3)]
        work.results[0].set_result("found")
        return await asyncio.gather(*clients), work.n_begun, len(shared), len(sharing)

    assert asyncio.run(scene()) == (["found"] * 3, 1, 2, 0)


def test_different_questions_are_computed_apart():
    async def scene():
        sharing, work = Sharing(), Work()
        clients = [await ask(sharing, work, name=name) for name in "ab"]
        for number, result in enumerate(work.results):
            result.set_result(number)
        return await asyncio.gather(*clients)

    assert asyncio.run(scene()) == [0, 1]


def test_what_was_computed_is_computed_again_for_who_asks_later():
    async def scene():
        sharing, work = Sharing(), Work()
        for number in range(2):
            client = await ask(sharing, work)
            work.results[number].set_result(number)
            assert await client == number
        return work.n_begun

    assert asyncio.run(scene()) == 2


@pytest.mark.parametrize("leaver", [0, 1])
def test_whoever_leaves_first_the_others_get_their_answer(leaver):
    async def scene():
        sharing, work, left = Sharing(), Work(), asyncio.Event()
        clients = [
            await ask(sharing, work, client_left=left.wait if number == leaver else never)
            for number in range(3)
        ]
        left.set()
        with pytest.raises(ClientLeft):
            await clients.pop(leaver)
        await asyncio.sleep(0.01)
        assert work.was_left == 0
        work.results[0].set_result("found")
        return await asyncio.gather(*clients)

    assert asyncio.run(scene()) == ["found", "found"]


def test_the_computation_is_told_when_the_last_has_left_and_who_comes_then_begins_anew():
    async def scene():
        sharing, work, left = Sharing(), Work(), asyncio.Event()
        clients = [await ask(sharing, work, client_left=left.wait) for _ in range(2)]
        left.set()
        for client in clients:
            with pytest.raises(ClientLeft):
                await client
        late = await ask(sharing, work)
        assert (work.n_begun, work.was_left) == (2, 1)
        work.results[1].set_result("anew")
        return await late

    assert asyncio.run(scene()) == "anew"


def test_cancelling_all_who_wait_ends_the_computation():
    async def scene():
        sharing, work = Sharing(), Work()
        client = await ask(sharing, work)
        client.cancel()
        with pytest.raises(asyncio.CancelledError):
            await client
        await asyncio.sleep(0.01)
        return work.was_left, len(sharing)

    assert asyncio.run(scene()) == (1, 0)


def test_a_failure_reaches_all_who_wait():
    async def scene():
        sharing, work = Sharing(), Work()
        clients = [await ask(sharing, work) for _ in range(2)]
        work.results[0].set_exception(refusal("too-slow"))
        results = await asyncio.gather(*clients, return_exceptions=True)
        return [result.kind for result in results], work.n_begun

    assert asyncio.run(scene()) == (["too-slow", "too-slow"], 1)


def test_who_came_later_is_not_refused_because_the_first_waited_too_long():
    async def scene():
        sharing, work = Sharing(), Work()
        first, *others = [await ask(sharing, work) for _ in range(3)]
        work.results[0].set_exception(refusal("queue-timeout"))
        with pytest.raises(Problem) as refused:
            await first
        await asyncio.sleep(0.01)
        work.results[1].set_result("found")
        return refused.value.kind, await asyncio.gather(*others), work.n_begun

    assert asyncio.run(scene()) == ("queue-timeout", ["found", "found"], 2)
