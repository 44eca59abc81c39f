"""Links: the state of a page that the server keeps under a short address."""

from datetime import datetime
from urllib.parse import unquote_to_bytes

from pydantic import Field, field_validator

from headlight.forms import Answer, Request

FRAGMENT = "^([!#$&-;=?-_a-~]|%0[1-9A-Fa-f]|%[1-9A-Fa-f][0-9A-Fa-f])*$"
"""A fragment as browsers write it: visible ASCII and escapes, of which none is NUL.

https://url.spec.whatwg.org/#fragment-percent-encode-set
"""


class LinkRequest(Request):
    """The state that a link restores."""

    state: str = Field(
        pattern=FRAGMENT,
        description="The fragment of the page's address, without `#`, as a browser writes it.",
    )

    @field_validator("state")
    @classmethod
    def _check_escapes(cls, state: str) -> str:
        try:
            unquote_to_bytes(state).decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"the escape %{error.object[error.start]:02X} is not UTF-8; send the text's UTF-8"
            ) from None
        return state


class LinkAnswer(Answer):
    """A link."""

    id: str = Field(description="128 random bits: everybody who knows it can read the state.")
    path: str = Field(description="The path of the page that restores the state.")
    expires: datetime = Field(description="When the server forgets it, unless it needs the space.")
    local: bool = Field(
        description="Whether the host of this request is a loopback name, such as 127.0.0.1: a "
        "link to it opens on the server's machine only."
    )


class LinkStateAnswer(Answer):
    """The state that a link restores."""

    state: str
