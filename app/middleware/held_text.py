"""An answer that is one text, held until both its start and its content are known."""

from abc import ABC, abstractmethod

from starlette.types import Message, Send


class HeldText(ABC):
    """The way out of one answer, which may be changed where it is sent as one piece.

    Args:
        forward: where it goes.
    """

    def __init__(self, forward: Send) -> None:
        self.forward = forward
        self.held: Message | None = None

    @abstractmethod
    def is_open(self, start: Message) -> bool:
        """Whether the answer that begins so may be changed."""

    @abstractmethod
    async def finish(self, start: Message, body: Message) -> Message:
        """The body to send; the start may be changed in place."""

    async def send(self, message: Message) -> None:
        """Pass a message on. What comes in several pieces goes as it is."""
        if message["type"] == "http.response.start" and self.is_open(message):
            self.held = message
            return
        if self.held is not None:
            start, self.held = self.held, None
            if not message.get("more_body"):
                message = await self.finish(start, message)
            await self.forward(start)
        await self.forward(message)
