"""Tokenizers that come without a tokenizer.json: Marian's two SentencePiece models, ByT5's bytes.

Transformers tokenizes both in Python, without offsets. Here the same pieces are given to the
library `tokenizers`, which has them. The library `sentencepiece` reads the models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from headlight.model.checkpoint.files import read_file
from headlight.model.extras import missing
from headlight.model.foreign.loading import MissingExtra
from headlight.model.token_names import byte_of_letter

SOURCE, TARGET, VOCABULARY = "source.spm", "target.spm", "vocab.json"
N_BYTE_SPECIALS = 3
"""ByT5's padding, end and unknown token stand before its 256 bytes."""

_MAX_BYTES = 2**25


def byte_tokenizer() -> Tokenizer:
    """Return the tokenizer of ByT5: UTF-8 bytes.

    The pieces of `ByteLevel` stand for the bytes; a character's bytes share its offsets.
    """
    specials = ["<pad>", "</s>", "<unk>"]
    vocabulary = {name: number for number, name in enumerate(specials)}
    for name, byte in byte_of_letter().items():
        vocabulary[name] = byte + N_BYTE_SPECIALS
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.add_special_tokens(specials)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = ("</s>", vocabulary["</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[end])
    return tokenizer


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
        """Return the piece of an id."""
        return self.names[token]


def read_marian(folder: Path) -> MarianPieces:
    """Return the tokenizers of a folder with two SentencePiece models and a vocabulary.

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
    """Return a Unigram tokenizer whose ids are those of the vocabulary.

    A piece that this model lacks has a name that no text holds; one that the vocabulary lacks has
    an id beyond it.
    """
    scores, spec = _read_model(model)
    pieces = [
        (name, scores[name]) if name in scores else (f"\U0010fffd{number}", 0.0)
        for number, name in enumerate(names)
    ]
    pieces += [(name, score) for name, score in scores.items() if name not in vocabulary]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary["<unk>"], byte_fallback=False))
    charsmap = spec.precompiled_charsmap
    steps: list[Any] = [normalizers.Precompiled(charsmap)] if charsmap else []
    if spec.remove_extra_whitespaces:
        steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    scheme = "always" if spec.add_dummy_prefix else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    end = ("</s>", vocabulary["</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[end])
    return tokenizer


def _read_model(data: bytes) -> tuple[dict[str, float], Any]:
    """Return the scores of the pieces that match text, and the specification of the normalizer.

    Raises:
        ValueError: the file is damaged, or its model is not a Unigram model.
        MissingExtra: the library is not installed.
    """
    try:
        from google.protobuf.message import DecodeError
        from sentencepiece import sentencepiece_model_pb2 as schema
    except ImportError as error:
        raise MissingExtra(missing("this model", "SentencePiece", "hf")) from error
    try:
        model = schema.ModelProto.FromString(data)
    except DecodeError as error:
        raise ValueError(f"the SentencePiece model cannot be read: {error}") from error
    if model.trainer_spec.model_type != schema.TrainerSpec.UNIGRAM:
        raise ValueError("the SentencePiece model is not a Unigram model")
    kinds = (schema.ModelProto.SentencePiece.NORMAL, schema.ModelProto.SentencePiece.USER_DEFINED)
    scores = {piece.piece: piece.score for piece in model.pieces if piece.type in kinds}
    return scores, model.normalizer_spec


def text_of_pieces(pieces: Iterable[str]) -> str:
    """Return the text that SentencePiece's pieces spell."""
    return "".join(pieces).replace("▁", " ").strip()
