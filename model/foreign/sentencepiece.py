"""Tokenizers that come without a tokenizer.json: Marian's two SentencePiece models, ByT5's bytes.

Transformers tokenizes both in Python, without offsets. Here the same pieces are given to the
library `tokenizers`, which has them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from headlight.model.checkpoint_files import read_file

SOURCE, TARGET, VOCABULARY = "source.spm", "target.spm", "vocab.json"
N_BYTE_SPECIALS = 3
"""ByT5's padding, end and unknown token stand before its 256 bytes."""

_MAX_BYTES = 2**25
_UNIGRAM = 1
_MATCHED = (1, 4)
"""The types of SentencePiece's pieces that match text: normal and user-defined ones."""


def byte_tokenizer() -> Tokenizer:
    """The tokenizer of ByT5 (Xue et al. 2022, https://arxiv.org/abs/2105.13626): UTF-8 bytes.

    The pieces of `ByteLevel` stand for the bytes; a character's bytes share its offsets.
    """
    specials = ["<pad>", "</s>", "<unk>"]
    vocabulary = {name: number for number, name in enumerate(specials)}
    for byte, name in enumerate(_byte_names()):
        vocabulary[name] = byte + N_BYTE_SPECIALS
    found = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    found.add_special_tokens(specials)
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    found.decoder = decoders.ByteLevel()
    end = ("</s>", vocabulary["</s>"])
    found.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[end])
    return found


def _byte_names() -> list[str]:
    """The character that stands for each byte: itself if it is printed, else one from U+0100 on."""
    printed = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printed else next(others)) for byte in range(256)]


# --- SentencePiece --------------------------------------------------------------------------------


@dataclass(frozen=True)
class MarianPieces:
    """The tokenizers of source and target of a Marian model, and its pieces by id.

    It has what `ForeignTokenizer` asks of a tokenizer of Transformers.
    """

    backend_tokenizer: Tokenizer
    target: Tokenizer
    names: list[str]
    mask_token_id: None = None

    @property
    def eos_token_id(self) -> int:
        """The id of the end."""
        return self.names.index("</s>")

    @property
    def unk_token_id(self) -> int:
        """The id of a piece that is not in the vocabulary."""
        return self.names.index("<unk>")

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of the end, of padding and of unknown pieces."""
        return [self.names.index(name) for name in ("</s>", "<pad>", "<unk>")]

    def convert_ids_to_tokens(self, token: int) -> str:
        """The piece of an id."""
        return self.names[token]


def read_marian(folder: Path) -> MarianPieces:
    """The tokenizers of a folder with two SentencePiece models and the vocabulary they share.

    Raises:
        ValueError: a file is missing, damaged, or of another kind.
    """
    text = read_file(folder, VOCABULARY, _MAX_BYTES).decode()
    vocabulary = json.loads(text)
    if not isinstance(vocabulary, dict) or sorted(vocabulary.values()) != [*range(len(vocabulary))]:
        raise ValueError(f"{VOCABULARY} must give every piece an id from 0 on")
    names = sorted(vocabulary, key=vocabulary.__getitem__)
    if missing := {"</s>", "<pad>", "<unk>"} - {*names}:
        raise ValueError(f"{VOCABULARY} lacks {min(missing)}")
    source, target = (
        _tokenizer(read_file(folder, name, _MAX_BYTES), vocabulary, names)
        for name in (SOURCE, TARGET)
    )
    return MarianPieces(source, target, names)


def _tokenizer(model: bytes, vocabulary: Mapping[str, int], names: list[str]) -> Tokenizer:
    """A Unigram tokenizer whose ids are those of the vocabulary.

    A piece that this model lacks has a name that no text holds; one that the vocabulary lacks has
    an id beyond it.
    """
    scores, spec = _read_model(model)
    pieces = [
        (name, scores[name]) if name in scores else (f"\U0010fffd{number}", 0.0)
        for number, name in enumerate(names)
    ]
    pieces += [(name, score) for name, score in scores.items() if name not in vocabulary]
    found = Tokenizer(models.Unigram(pieces, unk_id=vocabulary["<unk>"], byte_fallback=False))
    charsmap = spec.get(2)
    steps: list[Any] = [normalizers.Precompiled(charsmap)] if isinstance(charsmap, bytes) else []
    if spec.get(4, 1):
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    found.normalizer = normalizers.Sequence(steps)
    scheme = "always" if spec.get(3, 1) else "never"
    found.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    end = ("</s>", vocabulary["</s>"])
    found.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[end])
    return found


def _read_model(data: bytes) -> tuple[dict[str, float], dict[int, int | bytes]]:
    """The scores of the pieces that match text, and the fields of the normalizer.

    The fields are those of sentencepiece_model.proto: https://github.com/google/sentencepiece.
    """
    scores: dict[str, float] = {}
    spec: dict[int, int | bytes] = {}
    for number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            piece = dict(_fields(value))
            if piece.get(3, 1) in _MATCHED:
                name, score = piece.get(1, b""), piece.get(2, bytes(4))
                assert isinstance(name, bytes)
                assert isinstance(score, bytes)
                scores[name.decode()] = struct.unpack("<f", score)[0]
        elif number == 2 and dict(_fields(value)).get(3, _UNIGRAM) != _UNIGRAM:
            raise ValueError("the SentencePiece model is not a Unigram model")
        elif number == 3:
            spec = dict(_fields(value))
    return scores, spec


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: https://protobuf.dev/programming-guides/encoding/."""
    sizes, at = {1: 8, 5: 4}, 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in sizes:
            size = sizes[kind]
        else:
            raise ValueError(f"the SentencePiece model has a field of kind {kind}")
        if at + size > len(data):
            raise ValueError("the SentencePiece model ends too early")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            break
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("the SentencePiece model ends too early")


def text_of_pieces(pieces: Iterable[str]) -> str:
    """The text that SentencePiece's pieces spell."""
    return "".join(pieces).replace("▁", " ").strip()
