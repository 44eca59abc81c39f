"""Answers become bytes on threads of their own, while the next pass runs.

Neither the event loop nor the inference thread waits for it. Each thread stands behind a bounded
queue as the inference thread does: what is too much is refused, what takes too long is stopped, and
so is what nobody waits for any more, between two pieces.
"""

from collections.abc import Callable
from functools import partial

from headlight.errors import Problem
from headlight.inference.disconnects import Departure
from headlight.inference.engine import Engine
from headlight.serialization.entity_tags import entity_tag
from headlight.serialization.formats import Form
from headlight.serialization.trace import Answer, NonFiniteError, Sendable, encode
from headlight.settings import Settings

LARGE_BYTES = 2**20
"""From here on an answer takes tens of milliseconds, and has a thread of its own to take them on:
most answers take one, and never wait behind it."""


class Encoder:
    """Encodes answers off the event loop.

    Args:
        settings: the limits. Answers of one batch, which come together, wait beside as many as
            may wait for the inference thread.
        on_end: called with a sentence when no thread to encode on comes to life any more.
    """

    def __init__(
        self, settings: Settings, *, on_end: Callable[[str], object] = lambda _: None
    ) -> None:
        self._small, self._large = (
            Engine(
                queue_length=settings.queue_length + settings.max_batch,
                queue_seconds=settings.queue_seconds,
                retry_after_seconds=settings.retry_after_seconds,
                work_seconds=settings.work_seconds,
                on_end=on_end,
                thread_name=f"{name} encoder",
            )
            for name in ("small", "large")
        )

    async def encode(self, answer: Sendable, form: Form, *, client_left: Departure) -> bytes:
        """The answer in that form.

        Args:
            answer: what was computed.
            form: how it is sent.
            client_left: waits until nobody waits for the answer any more.

        Raises:
            Problem: 503 where too many wait, or the model's numbers are not finite; 504.
            ClientLeft: the client left before it was encoded.
        """
        encoding = partial(encode_checked, answer, form)
        return await self._engine_for(answer).run(encoding, client_left=client_left)

    async def tag(self, answer: Answer, form: Form, *, client_left: Departure) -> str:
        """The entity tag of the answer in that form: all its numbers are read for it, once.

        Raises:
            Problem, ClientLeft: as `encode`.
        """
        tagging = partial(entity_tag, answer, form)
        return await self._engine_for(answer).run(tagging, client_left=client_left)

    @property
    def n_workers(self) -> int:
        """How many of its threads are alive."""
        return self._small.n_workers + self._large.n_workers

    def stop(self) -> None:
        """Refuse what is being encoded, what waits and what comes."""
        self._small.stop()
        self._large.stop()

    def close(self) -> None:
        """Drop what waits, end the threads; it blocks."""
        self._small.close()
        self._large.close()

    def _engine_for(self, answer: Sendable) -> Engine:
        return self._large if answer.n_bytes >= LARGE_BYTES else self._small


def encode_checked(answer: Sendable, form: Form) -> bytes:
    """The answer in that form.

    Raises:
        Problem: 503 where the model's numbers are not finite.
    """
    try:
        return encode(answer, form)
    except NonFiniteError as error:
        raise Problem(503, "model-unavailable", str(error)) from error
