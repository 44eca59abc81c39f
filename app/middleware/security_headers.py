"""Headers that keep the page safe, on every answer."""

from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Plotly sets styles on elements, which only style-src-attr allows; nothing is evaluated, and
# nothing is loaded from another host. `blob:` and `data:` images are what plots are saved as.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'self'",
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

# What a page may do that this one does not. It writes to the clipboard, which is not among them.
PERMISSIONS_POLICY = ", ".join(
    f"{feature}=()"
    for feature in (
        "accelerometer",
        "camera",
        "display-capture",
        "geolocation",
        "gyroscope",
        "magnetometer",
        "microphone",
        "midi",
        "payment",
        "publickey-credentials-get",
        "screen-wake-lock",
        "usb",
        "xr-spatial-tracking",
    )
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


def security_headers(strict_transport_seconds: int) -> dict[str, str]:
    """The headers of every answer.

    Args:
        strict_transport_seconds: how long browsers are to ask this host over TLS alone; 0: they
            are not told.
    """
    if not strict_transport_seconds:
        return SECURITY_HEADERS
    strict = {"Strict-Transport-Security": f"max-age={strict_transport_seconds}"}
    return SECURITY_HEADERS | strict


class SecurityHeaders:
    """Adds headers to every answer that does not set them itself."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str] = SECURITY_HEADERS) -> None:
        self.app = app
        self.headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to its answer."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                safe = [header for header in self.headers if header[0] not in own]
                message = {**message, "headers": [*message["headers"], *safe]}
            await send(message)

        await self.app(scope, receive, send_with_headers)
