"""Strong entity tags: equal tags, equal bytes (RFC 9110, section 8.8.3)."""

import hashlib
import re
from collections.abc import Iterable, Mapping

from starlette.requests import Request
from starlette.responses import Response

TAG = {"ETag": {"description": "Strong: equal tags, equal bytes.", "schema": {"type": "string"}}}
NOT_MODIFIED = {"description": "The client has it: If-None-Match names its tag.", "headers": TAG}
"""A header and a response, for the documentation of routes."""

_TAG = re.compile(r'"[^"]*"')


def content_tag(content: bytes) -> str:
    """Return the strong tag of bytes as they are sent, quotes included."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def is_known(tag: str, if_none_match: Iterable[str]) -> bool:
    """Return True if the If-None-Match headers of a client name that tag.

    Weak tags count as strong ones here (RFC 9110, section 13.1.2).
    """
    return any(value.strip() == "*" or tag in _TAG.findall(value) for value in if_none_match)


def not_modified(request: Request, headers: Mapping[str, str]) -> Response | None:
    """Return the answer 304, if the client has the content that these headers tag."""
    if not is_known(headers["ETag"], request.headers.getlist("if-none-match")):
        return None
    kept = {name: value for name, value in headers.items() if name != "Content-Encoding"}
    return Response(status_code=304, headers=kept)
