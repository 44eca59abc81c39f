"""Headers that keep the page safe, on every response."""

import hashlib
from base64 import b64encode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headlight.static_files import THEME_SCRIPT

# Plotly sets styles on elements, which only style-src-attr allows; nothing is evaluated, nothing is
# loaded from another host, and the one inline script is named by its hash. `blob:` and `data:`
# images are what plots are saved as.
_THEME_HASH = b64encode(hashlib.sha256(THEME_SCRIPT.encode()).digest()).decode()
CONTENT_SECURITY_POLICY = (
    f"default-src 'self'; script-src 'self' 'sha256-{_THEME_HASH}'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

# Features that the page does not use. It writes to the clipboard, which is not among them.
PERMISSIONS_POLICY = (
    "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), "
    "magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), "
    "screen-wake-lock=(), usb=()"
)

SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": PERMISSIONS_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeaders:
    """Adds the headers to every response that does not set them itself.

    `secure` was considered: its headers are the same dictionary, built in more lines than these.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.headers = [
            (name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                safe = [header for header in self.headers if header[0] not in own]
                message = {**message, "headers": [*message["headers"], *safe]}
            await send(message)

        await self.app(scope, receive, send_with_headers)
