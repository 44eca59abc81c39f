"""HEAD wherever there is GET: the same answer, without its body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """Asks GET in place of HEAD, and keeps the body of the answer back.

    Its headers, Content-Length among them, are those of GET.
    https://www.rfc-editor.org/rfc/rfc9110#name-head
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # The scope is not copied, as layers further out read from it which route was asked.
        scope["method"] = "GET"
        try:
            await self.app(scope, receive, send_without_body)
        finally:
            scope["method"] = "HEAD"
