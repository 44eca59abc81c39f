r"""Names of the pieces of a foreign vocabulary, by the rule of the project's own tokenizers.

Which bytes a piece stands for is read from the steps of the tokenizer: the letters of GPT-2's
alphabet (``ByteLevel``), a byte by its number (``ByteFallback``, ``<0xF0>``), a blank as ``▁``, the
end of a word as a suffix (``BPEDecoder``). WordPiece's ``##`` is kept, as it is no text.

Two pieces may stand for the same bytes, as ``A`` and ``<0x41>``, or a run of blanks and an added
token. Then the piece that the tokenizer cuts from a text has the text as its name, and the other
one is written byte by byte (``\x41``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from headlight.model.token_names import byte_of_letter, name_of_bytes

_NUMBERED_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def names_by_id(
    vocabulary: Mapping[str, int], backend: Any, special: Mapping[int, str], added: Collection[int]
) -> dict[int, str]:
    """Return the name of every token; no two have the same.

    Args:
        vocabulary: the id of each piece.
        backend: a tokenizer of the library `tokenizers`.
        special: the names of the special tokens by id, which stay as they are.
        added: the ids of the tokens that were added to the vocabulary, written as text.
    """
    names, taken = dict(special), set(special.values())
    steps = list(_steps_of(backend))
    kinds = {str(step["type"]) for step in steps}
    suffix = next((step["suffix"] for step in steps if step["type"] == "BPEDecoder"), "")
    numbered = _NUMBERED_BYTE if "ByteFallback" in kinds else re.compile(r"(?!)")

    def rank(piece: str, token: int) -> int:
        return 2 if token in added else 1 if numbered.fullmatch(piece) else 0

    ranked = sorted((rank(*entry), entry[1], entry[0]) for entry in vocabulary.items())
    for order, token, piece in ranked:
        if token in names:
            continue
        data = _bytes_of(piece, numbered, suffix, is_byte_level="ByteLevel" in kinds and order < 2)
        name = name_of_bytes(data)
        if name in taken:
            name = "".join(f"\\x{byte:02x}" for byte in data)
        if name in taken:
            name += f"<{token}>"
        names[token] = name
        taken.add(name)
    return names


def _bytes_of(piece: str, numbered: re.Pattern[str], suffix: str, *, is_byte_level: bool) -> bytes:
    """Return the bytes that a piece stands for."""
    if is_byte_level:
        with suppress(UnicodeEncodeError):  # a letter outside the alphabet
            return piece.translate(_letter_codes()).encode("latin-1")
    if byte := numbered.fullmatch(piece):
        return bytes([int(byte[1], 16)])
    if suffix and piece.endswith(suffix):
        piece = piece.removesuffix(suffix) + " "
    return piece.replace("▁", " ").encode()


@cache
def _letter_codes() -> dict[int, int]:
    """Return the code of the byte of each letter; of other codes below 256, one above."""
    return dict.fromkeys(range(256), 256) | {
        ord(letter): byte for letter, byte in byte_of_letter().items()
    }


def _steps_of(backend: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of the decoder and of what cuts a text, those of sequences too."""
    waiting = [
        json.loads(part.__getstate__())
        for part in (backend.decoder, backend.pre_tokenizer)
        if part is not None
    ]
    while waiting:
        step = waiting.pop()
        waiting += [*step.get("decoders", ()), *step.get("pretokenizers", ())]
        yield step
