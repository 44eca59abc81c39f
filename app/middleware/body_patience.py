"""How long a client may take to send the body of its request."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.errors import Problem

_WITH_BODY = {b"content-length", b"transfer-encoding"}


class BodyPatience:
    """Refuses a body that takes too long.

    Args:
        app: what is asked next.
        seconds: that a body may take, from the head of its request on.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app = app
        self.seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; whoever reads its body waits no longer than that."""
        if scope["type"] == "http" and any(name in _WITH_BODY for name, _ in scope["headers"]):
            receive = self._in_time(receive)
        await self.app(scope, receive, send)

    def _in_time(self, receive: Receive) -> Receive:
        until = asyncio.get_running_loop().time() + self.seconds
        is_whole = False

        async def receive_in_time() -> Message:
            nonlocal is_whole
            if is_whole:  # what comes next is the client's leaving, for which any time is right
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise self._refusal() from None
            is_whole = not message.get("more_body", False)
            return message

        return receive_in_time

    def _refusal(self) -> Problem:
        detail = f"the body did not arrive within {self.seconds:g} s; send it again, and faster"
        headers = {"Connection": "close"}
        return Problem(408, "body-too-slow", detail, limit=self.seconds, headers=headers)
