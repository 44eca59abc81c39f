"""Tokens of six families of tokenizers have offsets into the text, and its words."""

import re

import pytest
import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from headlight.model.foreign.tokenizer import ForeignTokenizer
from headlight.model.token_names import name_of_bytes

CORPUS = [
    "The cat sat on the mat. A naïve café — office, 12 apples!",
    "猫が好きです。 שלום עולם مرحبا بالعالم 👩‍👩‍👧 \t tabs and  spaces",
] * 8
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "[MASK]"]
TEXTS = {
    "plain": "The cat sat on the mat.",
    "joined emoji": "A 👩‍👩‍👧 sat",
    "decomposed": "cafe\u0301 nai\u0308ve",
    "ligature": "o\ufb03ce cat",
    "tabs": "cat\tsat\n\non the mat",
    "spaces": "  cat   sat  ",
    "Chinese and Japanese": "猫が好きです。好",
    "right to left": "שלום עולם, مرحبا",
    "typed end": "the </s> cat",
    "digits and signs": "12 apples: 3.5 % (€7)!",
    "capitals": "THE Cat SAT",
    "unknown letters": "ᚠᚢ cat ꙮ",
}


def bytes_of_name(name):
    return re.sub(rb"\\x([0-9a-f]{2})", lambda byte: bytes([int(byte[1], 16)]), name.encode())


def text_of_names(names):
    return b"".join(map(bytes_of_name, names)).decode(errors="replace")


def byte_level():
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return backend, trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )


def word_piece():
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=SPECIAL, show_progress=False)
    return backend, trainer


def unigram():
    backend = tokenizers.Tokenizer(models.Unigram())
    backend.normalizer = normalizers.Sequence([normalizers.NFKC()])
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return backend, trainers.UnigramTrainer(
        vocab_size=200, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )


def sentence_piece_bpe():
    """As Llama's: the text is one word, and unknown characters are bytes."""
    backend = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    names = [f"<0x{byte:02X}>" for byte in range(256)]
    return backend, trainers.BpeTrainer(
        vocab_size=600, special_tokens=[*SPECIAL, *names], show_progress=False
    )


def word_endings():
    """As that of the first GPT: a piece at the end of a word says so."""
    backend = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    backend.normalizer = normalizers.NFD()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.BPEDecoder()
    return backend, trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIAL, end_of_word_suffix="</w>", show_progress=False
    )


def split_digits():
    """As Qwen's and GPT-4's: a regular expression, then bytes."""
    backend = tokenizers.Tokenizer(models.BPE())
    pattern = tokenizers.Regex(r"\p{N}|[^\r\n\p{L}\p{N}]?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+")
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(pattern, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return backend, trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )


FAMILIES = {
    make.__name__: make
    for make in (byte_level, word_piece, unigram, sentence_piece_bpe, word_endings, split_digits)
}


@pytest.fixture(scope="module", params=FAMILIES)
def tokenizer(request):
    backend, trainer = FAMILIES[request.param]()
    backend.train_from_iterator(CORPUS, trainer)
    ids = [(name, backend.token_to_id(name)) for name in ("<s>", "</s>")]
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair=None, special_tokens=ids
    )
    return ForeignTokenizer(
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=backend,
            bos_token="<s>",
            eos_token="</s>",
            pad_token="<pad>",
            unk_token="<unk>",
            mask_token="[MASK]",
        )
    )


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_offsets_lie_in_the_text_in_order_and_words_are_its_words(tokenizer, text):
    tokens = tokenizer.encode(text)
    assert tokens[0].is_special
    assert tokens[-1].is_special
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    for name in ("start", "end"):
        offsets = [getattr(token, name) for token in tokens]
        assert offsets == sorted(offsets), name
    covered = {place for token in tokens for place in range(token.start, token.end)}
    letters = {place for place, sign in enumerate(text) if sign.isalnum()}
    assert letters <= covered
    tokens = [token for token in tokens if not token.is_special]
    spans = [word.span() for word in re.finditer(r"\w+|[^\w\s]", text)]
    words = [token.word for token in tokens if token.word is not None]
    assert words == sorted(words)
    for token in tokens:
        if token.word is None:
            assert not text[token.start : token.end].strip()
        else:
            begin, stop = spans[token.word]
            assert begin < max(token.end, token.start + 1)
            assert token.start < stop


def test_a_typed_special_token_is_text(tokenizer):
    text = "the </s> cat"
    assert [token.is_special for token in tokenizer.encode(text)].count(True) == 2


def test_a_typed_mask_is_the_mask(tokenizer):
    tokens = tokenizer.encode("the [MASK] sat")
    (mask,) = [token for token in tokens if token.id == tokenizer.mask_id]
    assert (mask.start, mask.end) == (4, 10)
    assert [tokens[0].text, tokens[-1].text] == ["<s>", "</s>"]


def test_a_mask_of_another_name_takes_its_space_as_in_the_file(tmp_path):
    """As RoBERTa's, whose mask is `<mask>` with the space before it."""
    backend, trainer = byte_level()
    backend.train_from_iterator(CORPUS, trainer)
    backend.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True)])
    path = tmp_path / "tokenizer.json"
    backend.save(str(path))
    tokenizer = ForeignTokenizer(
        transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), mask_token="<mask>")
    )
    expected = backend.encode("the <mask> sat").ids
    for text, end in (("the <mask> sat", 10), ("the [MASK] sat", 10)):
        tokens = tokenizer.encode(text)
        assert [token.id for token in tokens] == expected
        (mask,) = [token for token in tokens if token.id == tokenizer.mask_id]
        assert (mask.text, mask.start, mask.end) == ("[MASK]", 3, end)
    assert tokenizer.text_of(tokenizer.mask_id) == "[MASK]"


def test_a_name_is_one_ids_and_is_read_back(tokenizer):
    names = [tokenizer.text_of(token) for token in range(tokenizer.vocab_size)]
    assert len({*names}) == len(names) > 60
    backend, n_read = tokenizer._rust, 0
    for token, name in enumerate(names):
        decoded = backend.decoder.decode([backend.id_to_token(token)]).strip()
        if token not in tokenizer.special_ids and "\ufffd" not in decoded:
            assert text_of_names([name]).strip() == decoded
            n_read += 1
    assert n_read > len(names) / 3


TYPED = [
    "日本語 and 你好，世界 🎲",
    "I love pizza 🍕 and you 🙂 👩‍👩‍👧",
    "мама мыла раму",
    "مرحبا بالعالم",
    "x² + y² = z², naïve café façade",
    "a path C:\\xe7 and \\x5c, typed",
    "\ttab and  two spaces ▪ \\",
    "don't “don’t” https://www.example.org/a/b?c=d",
]


@pytest.mark.parametrize("text", TYPED)
def test_names_joined_are_the_text(tokenizer, text):
    """Join the names; WordPiece, Unigram without bytes and word endings do not keep a text."""
    tokens = [token for token in tokenizer.encode(text) if not token.is_special]
    assert all(token.text == tokenizer.text_of(token.id) for token in tokens)
    joined = text_of_names(token.text for token in tokens)
    if re.search("ByteLevel|ByteFallback", str(tokenizer._rust.decoder)):
        assert joined.removeprefix(" ") == text


def test_bytes_in_capitals_and_a_run_of_blanks_have_names_of_their_own():
    vocabulary = {"<0x41>": 0, "A": 1, "▁": 2, "▁▁": 3, "<0x20>": 4, "<0xF0>": 5, "<unk>": 6}
    backend = tokenizers.Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback()])
    backend.add_tokens(["  ", " "])
    tokenizer = ForeignTokenizer(transformers.PreTrainedTokenizerFast(tokenizer_object=backend))
    names = [tokenizer.text_of(token) for token in range(9)]
    assert names == ["\\x41", "A", " ", "  ", "\\x20", "\\xf0", "<unk>", "\\x20\\x20", "\\x20<8>"]


@pytest.mark.parametrize(
    "data", [b"\\xe7", b"\\\xe7", "é\\x5c".encode(), b"\\x\xff", bytes(range(256))]
)
def test_bytes_have_names_that_are_read_back(data):
    assert bytes_of_name(name_of_bytes(data)) == data
