"""Tokens of a foreign tokenizer: with offsets into the text, and words found in the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from typing import Any

from headlight.model.checkpoint.files import MAX_BYTES, TOKENIZER, CheckpointError, require_file
from headlight.model.foreign.chat import ChatTemplate, read_template
from headlight.model.foreign.folder import ForeignFolder, is_in_pairs, read_json
from headlight.model.foreign.loading import MissingExtra, quiet, transformers_library
from headlight.model.foreign.piece_names import names_by_id
from headlight.model.foreign.segments import Segments, learn_segments
from headlight.model.foreign.sentencepiece import (
    SOURCE,
    MarianPieces,
    byte_tokenizer,
    read_marian,
    text_of_pieces,
)
from headlight.model.foreign.tokenizer_class import TOKENIZER_CONFIG, open_tokenizer
from headlight.model.foreign.tokenizer_parts import require_harmless
from headlight.model.tokenizer import (
    MASK,
    NO_PAIR,
    NO_TEMPLATE,
    NoChat,
    NoPair,
    no_panic,
    require_encodable,
)
from headlight.model.trace import ROLES, SEGMENTS, TEMPLATE, Message, Token

_WORD = re.compile(r"\w+|[^\w\s]", re.UNICODE)
_LANGUAGE = re.compile(r">>.+?<<")


class ForeignTokenizer:
    """Encodes a text as the tokens that a foreign model reads.

    A typed special token stays text, except the mask: it is typed `[MASK]` or by the model's name
    for it, and is called `[MASK]` as in every model. A token's text is a function of its id.

    Args:
        backend: a fast tokenizer of Transformers.
        start_ids: the tokens that the decoder of an encoder–decoder reads first.
        chat: the template of conversations; None: there is none.
    """

    def __init__(
        self, backend: Any, start_ids: tuple[int, ...] = (), chat: ChatTemplate | None = None
    ) -> None:
        self.chat = chat
        self._backend = backend
        self._start_ids = start_ids
        self._special = set(backend.all_special_ids)
        self.mask_id: int | None = backend.mask_token_id
        self._masks = None if self.mask_id is None else _typed_mask(backend, self.mask_id)
        self._rust = backend.backend_tokenizer
        self._rust.encode_special_tokens = True
        self._rust.no_truncation()
        self._rust.no_padding()

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included."""
        return len(self._backend)

    @property
    def end_id(self) -> int | None:
        """The token after which a text ends."""
        end: int | None = self._backend.eos_token_id
        return end

    @property
    def special_ids(self) -> frozenset[int]:
        """The ids of the special tokens."""
        return frozenset(self._special)

    @no_panic()
    def encode(self, text: str) -> list[Token]:
        """Return the tokens of a text with the special tokens that the model expects around it.

        Raises:
            ValueError: the text holds a lone surrogate.
        """
        require_encodable(text)
        words = _words(text)
        if self._masks is not None and self._masks.search(text):
            return self._encode_with_masks(text, words, self._masks)
        return self._tokens(self._rust.encode(text, add_special_tokens=True), text, words, 0)

    @no_panic()
    def encode_read(self, text: str) -> list[Token]:
        """As `encode`, but a typed special token is that token."""
        require_encodable(text)
        return self._read(text, _words(text), is_around=True)

    @cached_property
    def segments(self) -> Segments | None:
        """The types of the tokens of a pair; None: they are not known."""
        return learn_segments(self._backend)

    @no_panic()
    def encode_pair(self, text: str, pair: str) -> tuple[str, list[Token]]:
        """Return two texts on two lines, and their tokens, which know whose they are.

        A typed mask is the mask; with one, other special tokens that are typed are read, too.

        Raises:
            NoPair: the types of its tokens are not known.
            ValueError: a text holds a lone surrogate.
        """
        if self.segments is None:
            raise NoPair(NO_PAIR)
        for each in (text, pair):
            require_encodable(each)
        both = f"{text}\n{pair}"
        is_masked = self._masks is not None and self._masks.search(both) is not None
        if is_masked and self.mask_id is not None:
            written = self._piece(self.mask_id)
            text, pair = (each.replace(MASK, written) for each in (text, pair))
            both = f"{text}\n{pair}"
        encoding = (self._reader if is_masked else self._rust).encode(text, pair)
        tokens = self._tokens(encoding, both, _words(both), 0, len(text) + 1)
        names = {None: TEMPLATE, 0: SEGMENTS[0], 1: SEGMENTS[1]}
        return both, [
            replace(
                self._special_token(each.id, each.start, each.end)
                if self._spells(each, both)
                else each,
                role=names[side],
            )
            for each, side in zip(tokens, encoding.sequence_ids, strict=True)
        ]

    @no_panic()
    def encode_messages(self, messages: Sequence[Message]) -> tuple[str, list[Token]]:
        """Return the text of messages and its tokens, which know their roles.

        Only the template makes special tokens. Without others in the contents the ids are those
        of Transformers; otherwise what lies between the template's is read as plain text.

        Raises:
            NoChat: there is no template, or it rejects the messages.
            ValueError: a message holds a lone surrogate.
        """
        if self.chat is None:
            raise NoChat(NO_TEMPLATE)
        for message in messages:
            require_encodable(message.content)
        said = self.chat.read(messages)
        text, words = said.text, _words(said.text)
        tokens = self._read(text, words)
        if any(each.is_special and said.role_at(each.start, each.end) in ROLES for each in tokens):
            tokens, at = [], 0
            for start, stop in said.gaps:
                for special in self._read(text[start:stop], []):
                    if special.is_special:
                        begin, end = start + special.start, start + special.end
                        tokens += self._plain(text, words, at, begin)
                        tokens.append(replace(special, start=begin, end=end))
                        at = end
            tokens += self._plain(text, words, at, len(text))
            for each in tokens:
                if self._spells(each, text) and said.role_at(each.start, each.end) in ROLES:
                    raise NoChat(f"this tokenizer reads {each.text} as structure; leave it out")
        return text, [replace(each, role=said.role_at(each.start, each.end)) for each in tokens]

    @cached_property
    def _reader(self) -> Any:
        """The same tokenizer reading special tokens; a copy, as other threads use the first."""
        reader = deepcopy(self._rust)
        reader.encode_special_tokens = False
        return reader

    def _read(
        self, text: str, words: list[tuple[int, int]], *, is_around: bool = False
    ) -> list[Token]:
        """Return the tokens of a text whose special tokens are read; `is_around`: and added."""
        encoding = self._reader.encode(text, add_special_tokens=is_around)
        return [
            self._special_token(each.id, each.start, each.end) if self._spells(each, text) else each
            for each in self._tokens(encoding, text, words, 0)
        ]

    def _spells(self, token: Token, text: str) -> bool:
        """Return True if the text spells a special token where the token is."""
        typed = text[token.start : token.end].strip()
        return token.id in self._special and typed == self._piece(token.id)

    def _plain(self, text: str, words: list[tuple[int, int]], start: int, end: int) -> list[Token]:
        """Return the tokens of a part of a text, none of them special."""
        part = self._rust.encode(text[start:end], add_special_tokens=False)
        return self._tokens(part, text, words, start)

    @no_panic()
    def encode_target(self, text: str) -> list[Token]:
        """Return the tokens that the decoder of an encoder–decoder reads for a target."""
        require_encodable(text)
        words = _words(text)
        begin = [self._special_token(token, 0) for token in self._start_ids]
        encoding = self._rust.encode(text, add_special_tokens=False)
        return begin + self._tokens(encoding, text, words, 0)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the tokens; special tokens have none."""
        kept = [token for token in ids if token not in self._special]
        text: str = self._backend.decode(kept, clean_up_tokenization_spaces=False)
        return text

    def text_of(self, token: int) -> str:
        """Return the name of one token: its text, by `names_by_id`."""
        return self._names.get(int(token), f"<{token}>")

    @cached_property
    def _names(self) -> dict[int, str]:
        """The names of the vocabulary, made once: a second for 150,000 tokens."""
        special = {token: self._piece(token) for token in self._special}
        if self.mask_id is not None:
            special[self.mask_id] = MASK
        return names_by_id(
            self._rust.get_vocab(), self._rust, special, set(self._rust.get_added_tokens_decoder())
        )

    def is_special(self, token: int) -> bool:
        """Return True if a token is special."""
        return token in self._special

    def _encode_with_masks(
        self, text: str, words: list[tuple[int, int]], masks: re.Pattern[str]
    ) -> list[Token]:
        """Return the tokens of a text in which the mask's name is the mask."""
        whole = self._rust.encode("", add_special_tokens=True)
        around = [self._special_token(token, 0) for token in whole.ids]
        half = len(around) // 2 + len(around) % 2
        tokens, begin = around[:half], 0
        for mask in masks.finditer(text):
            tokens += self._plain(text, words, begin, mask.start())
            assert self.mask_id is not None
            tokens.append(self._special_token(self.mask_id, mask.start(), mask.end()))
            begin = mask.end()
        tokens += self._plain(text, words, begin, len(text))
        return tokens + [self._special_token(token.id, len(text)) for token in around[half:]]

    def _piece(self, token: int) -> str:
        """Return what is typed for a special token."""
        piece: str = self._backend.convert_ids_to_tokens(token)
        return piece

    def _special_token(self, token: int, start: int, end: int | None = None) -> Token:
        text = self.text_of(token)
        stop = start if end is None else end
        return Token(id=token, text=text, start=start, end=stop, word=None, is_special=True)

    def _tokens(
        self, encoding: Any, text: str, words: list[tuple[int, int]], shift: int, second: int = 0
    ) -> list[Token]:
        """Return the tokens of an encoding that begins at `shift`; the second text at `second`."""
        tokens: list[Token] = []
        last = shift
        for token, (begin, end), is_special, side in zip(
            encoding.ids,
            encoding.offsets,
            encoding.special_tokens_mask,
            encoding.sequence_ids,
            strict=True,
        ):
            if is_special:
                tokens.append(self._special_token(token, last))
                continue
            begins = second if side == 1 else shift
            start, stop = begins + begin, begins + end
            if (start, stop) == (begins, begins) and last > begins:
                start = stop = last  # a piece without characters is where the text is
            tokens.append(
                Token(
                    id=token,
                    text=self.text_of(token),
                    start=start,
                    end=stop,
                    word=_word_at(words, start, stop),
                    is_special=False,
                )
            )
            last = max(last, stop)
        return tokens


class MarianTokenizer(ForeignTokenizer):
    """Encodes with two SentencePiece models, which share a vocabulary.

    A language such as ``>>fr<<`` at the beginning of the text is one token, if the vocabulary has
    it.

    Args:
        pieces: of source and target.
        start_ids: the tokens that the decoder reads first.
    """

    def __init__(self, pieces: MarianPieces, start_ids: tuple[int, ...]) -> None:
        super().__init__(pieces, start_ids)
        self._pieces = pieces
        self._pieces.target.encode_special_tokens = True

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included."""
        return len(self._pieces.names)

    @no_panic()
    def encode(self, text: str) -> list[Token]:
        """As `ForeignTokenizer.encode`."""
        require_encodable(text)
        words, language = _words(text), _LANGUAGE.match(text)
        if language is None or language[0] not in self._pieces.names:
            return self._known(self._rust.encode(text), text, words, 0)
        code = self._special_token(self._pieces.names.index(language[0]), 0, language.end())
        rest = self._rust.encode(text[code.end :])
        return [code, *self._known(rest, text, words, code.end)]

    @no_panic()
    def encode_target(self, text: str) -> list[Token]:
        """As `ForeignTokenizer.encode_target`."""
        require_encodable(text)
        begin = [self._special_token(token, 0) for token in self._start_ids]
        encoding = self._pieces.target.encode(text, add_special_tokens=False)
        return begin + self._known(encoding, text, _words(text), 0)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the tokens; special tokens have none."""
        return text_of_pieces(self._pieces.names[n] for n in ids if n not in self._special)

    @cached_property
    def _names(self) -> dict[int, str]:
        """The names of the vocabulary that source and target share."""
        special = {token: self._pieces.names[token] for token in self._special}
        vocabulary = {piece: token for token, piece in enumerate(self._pieces.names)}
        return names_by_id(vocabulary, self._rust, special, ())

    def _known(
        self, encoding: Any, text: str, words: list[tuple[int, int]], shift: int
    ) -> list[Token]:
        """Return the tokens of an encoding; pieces beyond the vocabulary are unknown tokens."""
        n_known, unknown = len(self._pieces.names), self._pieces.unk_token_id
        return [
            token if token.id < n_known else replace(token, id=unknown)
            for token in self._tokens(encoding, text, words, shift)
        ]


def read_tokenizer(folder: ForeignFolder, config: Any, start_ids: tuple[int, ...] = ()) -> Any:
    """Return the tokenizer of a folder: its tokenizer.json, Marian's two models, or bytes for ByT5.

    Raises:
        CheckpointError: the folder has none, or it is damaged.
    """
    library = transformers_library()
    if not (folder.path / TOKENIZER).exists():
        tokenizer = _without_file(folder, library, start_ids)
        if tokenizer is not None:
            return tokenizer
    if not is_in_pairs(folder.path):
        try:
            require_file(folder.path, TOKENIZER, MAX_BYTES[TOKENIZER])
        except CheckpointError as error:
            raise CheckpointError(
                f"{error}; a fast tokenizer is needed: save the tokenizer again with Transformers"
            ) from error
        require_harmless(folder.path)
    options = _options(folder)
    backend = open_tokenizer(folder.path, config, options, library)
    if backend.eos_token_id is None and isinstance(getattr(config, "eos_token_id", None), int):
        piece = backend.convert_ids_to_tokens(config.eos_token_id)
        if piece is not None:
            backend.eos_token = piece
    names = backend.special_tokens_map
    return ForeignTokenizer(backend, start_ids, read_template(folder, options, names))


def _options(folder: ForeignFolder) -> dict[str, Any]:
    """Return the content of tokenizer_config.json; empty: there is none."""
    if not (folder.path / TOKENIZER_CONFIG).exists():
        return {}
    return read_json(folder.path, TOKENIZER_CONFIG, 2**25)


def _without_file(
    folder: ForeignFolder, library: Any, start_ids: tuple[int, ...]
) -> ForeignTokenizer | None:
    """Return the tokenizer of a folder without a tokenizer.json; None: of no known kind."""
    names = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    options = _options(folder)
    kind = options.get("tokenizer_class") or folder.config.get("tokenizer_class")
    if kind == "ByT5Tokenizer":
        with quiet():
            backend = library.PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer(), **names)
        return ForeignTokenizer(backend, start_ids)
    if not (folder.path / SOURCE).exists():
        return None
    try:
        return MarianTokenizer(read_marian(folder.path), start_ids)
    except MissingExtra:
        raise
    except Exception as error:
        raise CheckpointError(f"{folder.path}: its tokenizer is damaged: {error}") from error


def _typed_mask(backend: Any, mask_id: int) -> re.Pattern[str]:
    """Return a mask in a text, with the spaces around it that belong to the token."""
    added = backend.added_tokens_decoder.get(mask_id)
    before, after = (r"\s*" if getattr(added, side, False) else "" for side in ("lstrip", "rstrip"))
    return re.compile(f"{before}(?:{re.escape(backend.mask_token)}|{re.escape(MASK)}){after}")


def _words(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text's words: runs of letters and digits, and single signs."""
    return [word.span() for word in _WORD.finditer(text)]


def _word_at(words: list[tuple[int, int]], start: int, end: int) -> int | None:
    """Return the first word that shares a character with a token; None for blanks only."""
    number = bisect_right(words, start, key=lambda span: span[1])
    is_shared = number < len(words) and words[number][0] < max(end, start + 1)
    return number if is_shared else None
