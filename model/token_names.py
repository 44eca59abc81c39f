r"""Names of tokens: a function of the id, from which the bytes of the token can be read.

A name is the text that the token's bytes spell. A byte that belongs to no whole character is
written ``\xf0``, and so is the backslash (``\x5c``) before what only looks like such a byte. No
two sequences of bytes have the same name.
"""

from __future__ import annotations

import re
from functools import cache

_LOOKS_LIKE_A_BYTE = re.compile(rb"\\(?=x[0-9a-f]{2})")


def name_of_bytes(data: bytes) -> str:
    """Return the name of a token that consists of these bytes."""
    return _LOOKS_LIKE_A_BYTE.sub(rb"\\x5c", data).decode(errors="backslashreplace")


@cache
def byte_of_letter() -> dict[str, int]:
    """Return the byte of each letter of the byte-level alphabet of GPT-2.

    Printable bytes are represented by themselves, the others by the letters from U+0100 on.
    """
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = (byte for byte in range(256) if byte not in printable)
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + number): byte for number, byte in enumerate(others)}
