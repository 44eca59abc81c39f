"""Byte-level BPE tokenization, lossless but for typographic characters.

Every token is a sequence of UTF-8 bytes, so there is no unknown token: a character outside the
vocabulary becomes one token per byte. Typographic characters that the corpus lacks are read as the
plain ones it has, and a text in capitals may be read in small letters (`Normalization`). Offsets
still point into the text as typed. Sennrich et al. 2016, https://arxiv.org/abs/1508.07909; Radford
et al. 2019, section 2.2.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from headlight.model.checkpoint.files import MAX_BYTES, TOKENIZER, read_file
from headlight.model.token_names import byte_of_letter, name_of_bytes
from headlight.model.trace import Message, Token

NO_PAIR = "the model reads one text; leave the second one out"
NO_TEMPLATE = (
    "the model has no chat template (chat_template.jinja), so it reads no messages; send them as a "
    "text"
)

START = "<s>"
END = "</s>"
MASK = "[MASK]"
# A mask replaces a token with the space before it, as tokens at the start of a word include it.
TYPED_MASK = re.compile(r" ?\[MASK\]")


class Replacement(NamedTuple):
    """Characters that are read as another text."""

    characters: str
    text: str


class Normalization(NamedTuple):
    """The changes that a tokenizer makes to a text before it cuts it.

    With ``lowers_capitals`` a text without a small letter is read in small letters: the vocabulary
    has no words in capitals and would spell it letter by letter.
    """

    replacements: tuple[Replacement, ...] = ()
    lowers_capitals: bool = False


UNCHANGED = Normalization()

APOSTROPHES = Replacement("\u2018\u2019\u201a\u201b\u2032\u02bc", "'")
QUOTES = Replacement("\u201c\u201d\u201e\u201f\u2033", '"')
HYPHENS = Replacement("\u2010\u2011\u2012\u2212", "-")
DASHES = Replacement("\u2013\u2014\u2015", "-")
ELLIPSES = Replacement("\u2026", "...")
SPACES = Replacement("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f", " ")
TWO_LETTERS = re.compile(r"[^\W\d_]{2}")
# A piece of the vocabulary in capitals, in the byte-level alphabet.
CAPITALS = re.compile(r"\u0120?[A-Z]{3,}")
# One `Replacement` as written in a tokenizer.json: a class of characters, none of them special.
CHARACTER_CLASS = re.compile(r"\[([^\\\[\]^&-]+)\]")


class UnreadableText(ValueError):
    """The tokenizer's library panicked over a text."""


class NoChat(ValueError):
    """Messages were given to a model without a chat template, or its template rejects them."""


class NoPair(ValueError):
    """A second text was given to a model that reads one."""


class NoSpecialTokens(ValueError):
    """Special tokens were to be read in a text, and the model has none that can be typed."""


@contextmanager
def no_panic() -> Iterator[None]:
    """Raise `UnreadableText` for a panic of the library: it unwinds without harm."""
    try:
        yield
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":
            raise
        raise UnreadableText("the tokenizer cannot read this text; change it") from None


class Tokenizer:
    """Encodes text as tokens with character offsets, and decodes token ids.

    Args:
        backend: a byte-level BPE tokenizer whose vocabulary holds `START` and `END`. If it also
            holds `MASK`, "[MASK]" in a text is encoded as that token.

    Raises:
        ValueError: the backend lacks a special token, is not byte-level BPE, or changes the text
            by more than a list of `Replacement`.
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        _require_plain(backend)
        replacements = _replacements(backend)
        self.normalization = Normalization(
            replacements, bool(replacements) and not _has_capitals(backend.get_vocab())
        )
        self._backend = backend
        self._backend.encode_special_tokens = True  # a typed "<s>" is text, not the token
        self.start_id = self._special_id(START)
        self.end_id = self._special_id(END)
        self.mask_id: int | None = backend.token_to_id(MASK)
        known = {START: self.start_id, END: self.end_id, MASK: self.mask_id}
        self._special = {token: piece for piece, token in known.items() if token is not None}
        self._texts = dict(self._special)
        for piece in backend.get_vocab():
            is_special = backend.token_to_id(piece) in self._special
            if not is_special and not byte_of_letter().keys() >= set(piece):
                raise ValueError(f"the piece {piece!r} is not written in the byte-level alphabet")

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included."""
        return self._backend.get_vocab_size()

    @no_panic()
    def encode(self, text: str) -> list[Token]:
        """Return the tokens of a text, the start token first.

        Raises:
            ValueError: the text holds a lone surrogate, which UTF-8 cannot encode.
        """
        require_encodable(text)
        tokens = [self._special_token(self.start_id, 0, 0)]
        begin = n_words = 0
        masks, text = self._masks(text), self._as_read(text)
        for mask in masks:
            assert self.mask_id is not None
            pieces = self._pieces(text[begin : mask.start()], begin, n_words)
            n_words += len({piece.word for piece in pieces})
            tokens += pieces
            tokens.append(self._special_token(self.mask_id, *mask.span()))
            begin = mask.end()
        return tokens + self._pieces(text[begin:], begin, n_words)

    def encode_read(self, text: str) -> list[Token]:
        """Reject every text: the special tokens of these models are added, not typed."""
        raise NoSpecialTokens("this model has no special tokens to type; leave the switch off")

    def encode_messages(self, messages: Sequence[Message]) -> tuple[str, list[Token]]:
        """Reject all messages: the models of this project read texts."""
        raise NoChat(NO_TEMPLATE)

    def encode_pair(self, text: str, pair: str) -> tuple[str, list[Token]]:
        """Reject every pair: the models of this project read one text."""
        raise NoPair(NO_PAIR)

    def encode_target(self, text: str) -> list[Token]:
        """Return the tokens of a target, which are those of a text."""
        return self.encode(text)

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts without start tokens: the fast way for a corpus."""
        normalized = [self._as_read(text) for text in texts]
        encodings = self._backend.encode_batch_fast(normalized, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the tokens; special tokens have none."""
        spelled = b"".join(self._bytes_of(token) for token in ids if token not in self._special)
        return spelled.decode(errors="replace")

    def text_of(self, token: int) -> str:
        """Return the name of one token: its text, by `name_of_bytes`.

        Raises:
            ValueError: there is no token of that id.
        """
        text = self._texts.get(token)
        if text is None:  # the dictionary never exceeds the vocabulary's size
            text = self._texts[token] = name_of_bytes(self._bytes_of(token))
        return text

    def disable_cache(self) -> None:
        """Disable the backend's cache of words, which grows to 60 MB with 10,000 long words.

        Without it no text stays in memory after its request. Texts of a few hundred words are
        encoded as fast; a corpus is encoded faster with the cache.
        """
        self._backend.model._resize_cache(0)

    def is_special(self, token: int) -> bool:
        """Return True if a token is `START`, `END` or `MASK`."""
        return token in self._special

    def to_json(self) -> str:
        """Return the JSON of the tokenizer, for `read_tokenizer`."""
        return self._backend.to_str(pretty=True)

    def _as_read(self, text: str) -> str:
        """Write a text in capitals in small letters, if the tokenizer reads it so."""
        letters = text if self.mask_id is None else text.replace(MASK, "")
        if not (self.normalization.lowers_capitals and letters.isupper()):
            return text
        lowered = text.lower()
        is_as_long = len(lowered) == len(text)  # else offsets would miss the text
        return lowered if is_as_long and TWO_LETTERS.search(letters) else text

    def _masks(self, text: str) -> Iterator[re.Match[str]]:
        return iter(()) if self.mask_id is None else TYPED_MASK.finditer(text)

    def _special_token(self, token: int, start: int, end: int) -> Token:
        piece = self._special[token]
        return Token(id=token, text=piece, start=start, end=end, word=None, is_special=True)

    def _pieces(self, text: str, start: int, first_word: int) -> list[Token]:
        """Return the tokens of a part of a text; offsets begin at `start`."""
        encoding = self._backend.encode(text, add_special_tokens=False)
        words = [word for word in encoding.word_ids if word is not None]  # None: a special token's
        return [
            Token(
                id=token,
                text=self.text_of(token),
                start=start + begin,
                end=start + end,
                word=first_word + word,
                is_special=False,
            )
            for token, (begin, end), word in zip(encoding.ids, encoding.offsets, words, strict=True)
        ]

    def _bytes_of(self, token: int) -> bytes:
        piece = self._backend.id_to_token(token) if token >= 0 else None
        if piece is None:
            raise ValueError(f"there is no token {token}; the ids are 0 to {self.vocab_size - 1}")
        alphabet = byte_of_letter()
        return bytes(alphabet[letter] for letter in piece)

    def _special_id(self, piece: str) -> int:
        token_id = self._backend.token_to_id(piece)
        if token_id is None:
            raise ValueError(f"the vocabulary lacks the special token {piece}")
        return int(token_id)


def _require_plain(backend: tokenizers.Tokenizer) -> None:
    """Check that a backend only tokenizes: it must not pad, truncate or sample.

    Raises:
        ValueError: it does, is not byte-level BPE, or its ids are not 0 … n−1.
    """
    splitter, bpe = backend.pre_tokenizer, backend.model
    is_byte_level = isinstance(splitter, pre_tokenizers.ByteLevel) and isinstance(bpe, models.BPE)
    if not is_byte_level or splitter.add_prefix_space:
        raise ValueError("the tokenizer must be byte-level BPE without a prefix space")
    for part in ("padding", "truncation", "post_processor"):
        if getattr(backend, part) is not None:
            raise ValueError(f"the tokenizer must have no {part}")
    if bpe.dropout:
        raise ValueError("the tokenizer must have no dropout")
    ids = sorted(backend.get_vocab().values())
    if ids != list(range(len(ids))):
        raise ValueError(f"the ids of the {len(ids)} tokens must be 0 to {len(ids) - 1}")


def _replacements(backend: tokenizers.Tokenizer) -> tuple[Replacement, ...]:
    """Read the backend's normalizer.

    Raises:
        ValueError: it is not a sequence of replacements of single characters.
    """
    if backend.normalizer is None:
        return ()
    declared = json.loads(backend.normalizer.__getstate__())
    replacements = [_replacement(step) for step in declared.get("normalizers", [declared])]
    if None in replacements:
        raise ValueError(
            "the tokenizer's normalizer must be a sequence of Replace, each of a class of "
            "characters like [\u2018\u2019] by a text"
        )
    return tuple(replacement for replacement in replacements if replacement)


def _replacement(step: Any) -> Replacement | None:
    """Read one step of a normalizer's JSON; None if it is another kind of step."""
    match step:
        case {"type": "Replace", "pattern": {"Regex": str(pattern)}, "content": str(text)} if text:
            characters = CHARACTER_CLASS.fullmatch(pattern)
            return Replacement(characters[1], text) if characters else None
    return None


def _has_capitals(pieces: Iterable[str]) -> bool:
    return any(map(CAPITALS.fullmatch, pieces))


def require_encodable(text: str) -> None:
    """Check that UTF-8 can encode a text.

    Raises:
        ValueError: the text holds a lone surrogate.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} is a lone surrogate (U+{ord(text[error.start]):04X}), "
            "which UTF-8 cannot encode; send the whole character"
        ) from error


def read_normalization(path: Path) -> Normalization:
    """Read the normalization of a ``tokenizer.json`` without making the tokenizer.

    A damaged file has none here; `read_tokenizer` reports the damage.
    """
    try:
        declared = orjson.loads(read_file(path.parent, path.name, MAX_BYTES[TOKENIZER]))
        steps = (declared["normalizer"] or {"normalizers": []})["normalizers"]
        replacements = tuple(replacement for step in steps if (replacement := _replacement(step)))
        return Normalization(
            replacements, bool(replacements) and not _has_capitals(declared["model"]["vocab"])
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return UNCHANGED


def normalizer_of(replacements: Iterable[Replacement]) -> normalizers.Normalizer | None:
    """Make the backend's normalizer; None if there is nothing to replace."""
    steps: list[normalizers.Normalizer] = [
        normalizers.Replace(tokenizers.Regex(f"[{characters}]"), text)
        for characters, text in replacements
    ]
    return normalizers.Sequence(steps) if steps else None


def typography(texts: Iterable[str]) -> list[Replacement]:
    """Choose replacements for the typographic characters that a corpus lacks.

    A dash is replaced by "--" if the corpus writes that more often than a hyphen between spaces.
    """
    known: set[str] = set()
    dashes: Counter[str] = Counter()
    for text in texts:
        known.update(text)
        dashes.update({dash: text.count(dash) for dash in ("--", " - ")})
    dash = DASHES._replace(text="--") if dashes["--"] > dashes[" - "] else DASHES
    lacking = [
        Replacement("".join(character for character in characters if character not in known), text)
        for characters, text in (APOSTROPHES, QUOTES, HYPHENS, dash, ELLIPSES, SPACES)
    ]
    return [replacement for replacement in lacking if replacement.characters]


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int,
    *,
    has_mask: bool = False,
    normalization: Iterable[Replacement] = (),
) -> Tokenizer:
    """Train BPE: start from the 256 bytes, merge the most frequent pair, repeat.

    Args:
        texts: the corpus.
        vocab_size: the maximum number of tokens.
        has_mask: whether the vocabulary has the token `MASK`.
        normalization: characters that every text is read without; see `typography`.
    """
    backend = tokenizers.Tokenizer(models.BPE())
    if normalizer := normalizer_of(normalization):
        backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[START, END, MASK] if has_mask else [START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return Tokenizer(backend)


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a ``tokenizer.json``.

    Raises:
        ValueError: the file is not a valid tokenizer; the message names it.
    """
    content = read_file(path.parent, path.name, MAX_BYTES[TOKENIZER])
    try:
        return Tokenizer(tokenizers.Tokenizer.from_buffer(content))
    except Exception as error:  # the library raises bare Exception
        raise ValueError(f"{path} is not a readable tokenizer: {error}") from error
