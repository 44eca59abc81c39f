"""Answers become bytes on threads of their own, while the next pass runs.

Neither the event loop nor the inference thread waits for it. What is encoded was admitted to the
inference thread's bounded queue, and no more requests than that can wait here.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from app.form import Form
from app.problems import Problem
from app.wire import Answer, NonFiniteError, encode

N_THREADS = 2
"""A second one, so that a small answer need not wait for a huge one."""


class Encoder:
    """Encodes answers off the event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(N_THREADS, thread_name_prefix="encoder")

    async def encode(self, answer: Answer, form: Form) -> bytes:
        """The answer in that form. Where nobody waits any more, what has not begun never does.

        Raises:
            Problem: 503 where the model's numbers are not finite.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, encode_checked, answer, form)

    def close(self) -> None:
        """Finish what is being encoded, drop what waits, end the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)


def encode_checked(answer: Answer, form: Form) -> bytes:
    """The answer in that form.

    Raises:
        Problem: 503 where the model's numbers are not finite.
    """
    try:
        return encode(answer, form)
    except NonFiniteError as error:
        raise Problem(503, "model-unavailable", str(error)) from error
