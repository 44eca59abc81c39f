"""How a request is framed: where it ends must be plain, and what stands before its body short."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from headlight.errors import Problem, head_too_long


class Framing:
    """Refuses a head that is too long, and a body whose end two readers could see in two places.

    Of a request with both Content-Length and Transfer-Encoding a proxy in front may believe the one
    and we the other; what lies between the two ends would be somebody else's next request.
    https://www.rfc-editor.org/rfc/rfc9112#section-6.1

    Args:
        app: what is asked next.
        max_header_bytes: of the target and all headers together.
    """

    def __init__(self, app: ASGIApp, max_header_bytes: int) -> None:
        self.app = app
        self.max_header_bytes = max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        problem = self._problem(scope) if scope["type"] == "http" else None
        answer = problem.response() if problem else self.app
        await answer(scope, receive, send)

    def _problem(self, scope: Scope) -> Problem | None:
        if head_bytes(scope) > self.max_header_bytes:
            return head_too_long(self.max_header_bytes)
        headers = Headers(scope=scope)
        if "transfer-encoding" in headers and "content-length" in headers:
            detail = "Content-Length and Transfer-Encoding contradict each other; send one of them"
            return Problem(400, "ambiguous-length", detail, headers={"Connection": "close"})
        return None


def head_bytes(scope: Scope) -> int:
    """How long a request's target and headers are."""
    target = len(scope.get("raw_path") or scope["path"]) + len(scope["query_string"])
    return target + sum(len(name) + len(value) for name, value in scope["headers"])
