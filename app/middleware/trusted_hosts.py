"""The host names that are answered to."""

from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import Receive, Scope, Send


class TrustedHosts(TrustedHostMiddleware):
    """Answers to the allowed host names alone, but to probes, which ask by address, always."""

    PROBES = frozenset({"/healthz", "/readyz"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["path"] in self.PROBES:
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)
