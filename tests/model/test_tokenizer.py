"""Byte-level BPE is lossless, and every token has its offsets."""

import json
import os
import re
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headlight.model.checkpoint.loading import ZOO, tokenizer_file
from headlight.model.tokenizer import (
    Normalization,
    Replacement,
    read_normalization,
    read_tokenizer,
    train_tokenizer,
    typography,
)

# "e" and a combining accent · a family of four code points joined by three joiners
COMBINING = "cafe\u0301"
FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
TEXTS = [
    "The cat chased the mouse.",
    "  leading, double  and trailing spaces \n\n",
    "你好，世界。",
    "naïve façade — “quoted” …",
    COMBINING,
    f"a family {FAMILY} and a flag 🇫🇷",
    "tab\tbell\x07null\x00escape\x1b[0m delete\x7f",
    "line\u2028separator\u0085next\r\nline",
    "مرحبا नमस्ते שלום",
    "\ufeffbyte order mark, \ufffd replacement, \U0010ffff last",
]
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
PADDING = {
    "strategy": {"Fixed": 10**9},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "<s>",
}
TRUNCATION = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 9}
DELETES = {"type": "Replace", "pattern": {"Regex": "[x]"}, "content": ""}
SKIPS_WORDS = {"type": "Replace", "pattern": {"Regex": "[a-z]+"}, "content": "-"}
# Typed one way and the other: letter by letter, or three dots for an ellipsis.
TYPED = [
    ("I\u2019m hungry.", "I'm hungry."),
    ("\u201cI\u2019m \u2018here\u2019,\u201d she said\u2026", "\"I'm 'here',\" she said..."),
    ("a well\u2011known\u00a0fox\u202f!", "a well-known fox !"),
]
any_text = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def masked_tokenizer():
    """Return a vocabulary of 300 pieces with a mask token."""
    return train_tokenizer(["The cat chased the mouse under a tree.\n"] * 3, 300, has_mask=True)


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def spelled(tokenizer, text):
    return tokenizer.decode(token.id for token in tokenizer.encode(text))


@settings(deadline=None, max_examples=200, database=None)
@given(text=any_text)
@example(text="\u0300" * 50)
@example(text="<s>")
def test_any_text_comes_back_unchanged(tokenizer, text):
    assert spelled(tokenizer, text) == text


@settings(deadline=None, max_examples=200, database=None)
@given(text=any_text)
@example(text=f"{COMBINING} {FAMILY}你好 the cat")
def test_offsets_cut_the_text_into_its_tokens(tokenizer, text):
    _, *pieces = tokenizer.encode(text)
    reached = 0
    for piece in pieces:
        assert 0 <= piece.start < piece.end <= len(text)
        # Pieces follow one another without a gap; those of one character share its offsets.
        assert piece.start <= reached <= piece.end
        reached = piece.end
        is_whole = "\\x" not in piece.text and "�" not in piece.text
        if is_whole:
            assert text[piece.start : piece.end] == piece.text
    assert reached == len(text)


def test_pieces_of_a_word_share_its_number(tokenizer):
    text = "the xylophone, again"
    _, *pieces = tokenizer.encode(text)
    words: dict[int | None, str] = {}
    for piece in pieces:
        words[piece.word] = words.get(piece.word, "") + piece.text
    assert words == {0: "the", 1: " xylophone", 2: ",", 3: " again"}
    assert sum(piece.word == 1 for piece in pieces) > 1


def test_pieces_of_one_character_share_its_place_and_show_their_bytes(tokenizer):
    _, *pieces = tokenizer.encode("a🦊")
    assert [piece.text for piece in pieces] == ["a", "\\xf0", "\\x9f", "\\xa6", "\\x8a"]
    assert [(piece.start, piece.end) for piece in pieces] == [(0, 1)] + 4 * [(1, 2)]


def test_the_start_token_comes_first_and_belongs_to_no_word(tokenizer):
    start, *rest = tokenizer.encode("hello")
    assert (start.id, start.text) == (tokenizer.start_id, "<s>")
    assert (start.start, start.end, start.word, start.is_special) == (0, 0, None, True)
    assert not any(token.is_special for token in rest)
    assert all(token.word is not None for token in rest)


@pytest.mark.parametrize("text", ["<s>", "</s>", " <s> "])
def test_a_special_token_that_was_typed_is_text(tokenizer, text):
    _, *typed = tokenizer.encode(text)
    special = {tokenizer.start_id, tokenizer.end_id}
    assert not special & {token.id for token in typed}
    assert "".join(token.text for token in typed) == text
    assert not special & set(tokenizer.encode_ids([text])[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\ud800", "character 0 is a lone surrogate (U+D800), "),
        ("a cat \udfff!", "character 6 is a lone surrogate (U+DFFF), "),
    ],
)
def test_a_lone_surrogate_is_an_error(tokenizer, text, message):
    message += "which UTF-8 cannot encode; send the whole character"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        tokenizer.encode(text)


def test_a_corpus_is_read_like_a_text_without_start_tokens(tokenizer):
    expected = [[token.id for token in tokenizer.encode(text)[1:]] for text in TEXTS]
    assert tokenizer.encode_ids(TEXTS) == expected


def test_special_tokens_spell_nothing(tokenizer):
    ids = [token.id for token in tokenizer.encode("the end")]
    assert tokenizer.decode([*ids, tokenizer.end_id]) == "the end"
    assert tokenizer.text_of(tokenizer.start_id) == "<s>"
    assert tokenizer.text_of(tokenizer.end_id) == "</s>"


@pytest.mark.parametrize("token", [300, 10**6, -1])
def test_an_unknown_token_is_an_error(tokenizer, token):
    message = f"there is no token {token}; the ids are 0 to 299"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        tokenizer.text_of(token)


def test_every_token_has_a_text_and_every_byte_a_token(tokenizer):
    assert tokenizer.vocab_size == 300
    texts = [tokenizer.text_of(token) for token in range(300)]
    assert all(texts)
    assert {chr(byte) for byte in range(128)} <= set(texts)
    assert {f"\\x{byte:02x}" for byte in range(128, 256)} <= set(texts)


def test_training_is_repeatable(tokenizer):
    texts = ["one fish two fish\n", "red fish blue fish\n"]
    assert train_tokenizer(texts, 300).to_json() == train_tokenizer(texts, 300).to_json()


def test_a_file_that_is_no_tokenizer_is_named(tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: No such file"):
        read_tokenizer(path)
    for contents in ("", "{}", "[1, 2", '{"model": 5}'):
        path.write_text(contents, encoding="utf-8")
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))} is not a readable tok"):
            read_tokenizer(path)


def test_a_tokenizer_that_is_not_byte_level_is_an_error(tmp_path):
    path = tmp_path / "tokenizer.json"
    words = tokenizers.models.WordLevel({"<s>": 0, "</s>": 1, "\u2581cat": 2}, unk_token="<s>")
    tokenizers.Tokenizer(words).save(str(path))
    with pytest.raises(ValueError, match="must be byte-level BPE without a prefix space"):
        read_tokenizer(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"normalizer": null', '"normalizer": {"type": "Lowercase"}'),
        ('"normalizer": null', f'"normalizer": {json.dumps(DELETES)}'),
        ('"normalizer": null', f'"normalizer": {json.dumps(SKIPS_WORDS)}'),
        ('"padding": null', f'"padding": {json.dumps(PADDING)}'),
        ('"truncation": null', f'"truncation": {json.dumps(TRUNCATION)}'),
        ('"post_processor": null', f'"post_processor": {json.dumps(BYTE_LEVEL)}'),
        ('"add_prefix_space": false', '"add_prefix_space": true'),
        ('"dropout": null', '"dropout": 0.5'),
        ('"\u0120the"', '"\u2581the"'),
        ('"</s>"', '"<end>"'),
        (": 299", ": 5000000"),
        (": 299", ": 0"),
    ],
)
def test_a_tokenizer_that_does_more_than_tokenize_is_an_error(tokenizer, tmp_path, old, new):
    path = tmp_path / "tokenizer.json"
    written = tokenizer.to_json()
    assert old in written
    path.write_text(written.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match="not a readable tokenizer: "):
        read_tokenizer(path)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_without_its_cache_a_tokenizer_keeps_no_words(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    tokenizer = read_tokenizer(path)
    tokenizer.disable_cache()
    words = ["".join(chr(0x20000 + 30 * n + k) for k in range(30)) for n in range(1_400)]
    tokenizer.encode_ids(words[:100])
    before = resident_bytes()
    for start in range(100, 1_400, 100):
        tokenizer.encode_ids(words[start : start + 100])
    assert resident_bytes() - before < 2 * 2**20, "1,300 such words would be 5 MB"


@pytest.mark.parametrize(
    ("text", "words", "masks"),
    [
        ("the [MASK] cat", {0: "the", 1: " cat"}, [(3, 10)]),
        ("[MASK]", {}, [(0, 6)]),
        ("un[MASK]able", {0: "un", 1: "able"}, [(2, 8)]),
        ("[MASK][MASK] a [MASK]", {0: " a"}, [(0, 6), (6, 12), (14, 21)]),
    ],
)
def test_a_typed_mask_is_one_token_with_the_space_before_it(masked_tokenizer, text, words, masks):
    start, *pieces = masked_tokenizer.encode(text)
    assert start.id == masked_tokenizer.start_id
    hidden = [piece for piece in pieces if piece.id == masked_tokenizer.mask_id]
    assert [(piece.start, piece.end) for piece in hidden] == masks
    assert {(piece.text, piece.word, piece.is_special) for piece in hidden} == {
        ("[MASK]", None, True)
    }
    assert not any(piece.is_special for piece in pieces if piece not in hidden)
    spelled_words: dict[int | None, str] = {}
    for piece in pieces:
        if piece not in hidden:
            known = spelled_words.get(piece.word, "")
            spelled_words[piece.word] = known + text[piece.start : piece.end]
    assert spelled_words == words
    edges = [piece.start for piece in pieces] + [len(text)]
    assert edges == [0] + [piece.end for piece in pieces], "tokens follow without a gap"


@pytest.mark.parametrize("text", ["the [mask] cat", "[ MASK ]", "MASK", "[MASK", "[[MASKED]]"])
def test_what_only_looks_like_a_mask_is_text(masked_tokenizer, text):
    pieces = masked_tokenizer.encode(text)[1:]
    assert not any(piece.is_special for piece in pieces)
    assert spelled(masked_tokenizer, text) == text


def test_a_mask_spells_nothing_and_shows_its_name(masked_tokenizer):
    assert masked_tokenizer.mask_id == 2
    assert masked_tokenizer.text_of(2) == "[MASK]"
    assert spelled(masked_tokenizer, "the [MASK] cat") == "the cat"


def test_a_mask_is_a_mask_after_a_reload_too(masked_tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(masked_tokenizer.to_json(), encoding="utf-8")
    again = read_tokenizer(path)
    assert again.mask_id == masked_tokenizer.mask_id
    for text in [*TEXTS, "the [MASK] cat [MASK]", "a<s>b"]:
        assert again.encode(text) == masked_tokenizer.encode(text)
    assert again.encode_ids(["a [MASK]"]) == masked_tokenizer.encode_ids(["a [MASK]"])
    assert again.to_json() == masked_tokenizer.to_json()


@pytest.fixture(scope="module")
def plain_tokenizer():
    """Trained on a corpus without typographic characters, in which two hyphens are a dash."""
    corpus = ['the cat -- a well-known cat -- didn\'t say "no" ...\n'] * 3
    return train_tokenizer(corpus, 300, normalization=typography(corpus))


@pytest.mark.parametrize("model", sorted(path.name for path in ZOO.iterdir() if path.is_dir()))
@pytest.mark.parametrize(("typed", "plain"), TYPED)
def test_typographic_characters_are_read_as_the_models_know_them(model, typed, plain):
    tokenizer = read_tokenizer(tokenizer_file(ZOO / model))
    read, expected = tokenizer.encode(typed), tokenizer.encode(plain)
    assert [token.id for token in read] == [token.id for token in expected]
    assert [token.word for token in read] == [token.word for token in expected]
    assert tokenizer.encode_ids([typed]) == tokenizer.encode_ids([plain])
    assert spelled(tokenizer, typed) == plain


def test_a_dash_is_read_as_the_corpus_writes_it(plain_tokenizer):
    assert spelled(plain_tokenizer, "a cat \u2014 no \u2013 cat") == "a cat -- no -- cat"
    assert typography(["a cat - no cat"])[3].text == "-"


def test_offsets_point_into_the_text_as_typed(plain_tokenizer):
    typed = "\u201cThe cat didn\u2019t \u2014 \u2026"
    reached = 0
    for piece in plain_tokenizer.encode(typed)[1:]:
        assert 0 <= piece.start < piece.end <= len(typed)
        assert piece.start <= reached <= piece.end
        reached = piece.end
        shown = typed[piece.start : piece.end].replace("\u2019", "'").replace("\u201c", '"')
        assert piece.text == shown or shown.strip() in {"\u2014", "\u2026"}
    assert reached == len(typed)


def test_characters_of_the_corpus_are_left_as_they_are():
    corpus = ["\u201cno\u201d, she didn\u2019t say\n"] * 3
    tokenizer = train_tokenizer(corpus, 300, normalization=typography(corpus))
    typed = "\u201cdidn\u2019t\u201d"
    assert spelled(tokenizer, typed) == typed
    assert spelled(tokenizer, "\u2018no\u2026") == "'no..."


def test_the_replacements_are_declared_in_the_file(plain_tokenizer, tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(plain_tokenizer.to_json(), encoding="utf-8")
    assert read_normalization(path) == plain_tokenizer.normalization
    assert Replacement("\u2026", "...") in plain_tokenizer.normalization.replacements
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    assert read_normalization(path) == tokenizer.normalization == Normalization()
    path.write_text("[", encoding="utf-8")
    assert read_normalization(path) == Normalization()


@pytest.mark.parametrize("model", sorted(path.name for path in ZOO.iterdir() if path.is_dir()))
def test_a_text_in_capitals_is_read_in_small_letters(model):
    tokenizer = read_tokenizer(tokenizer_file(ZOO / model))
    assert tokenizer.normalization.lowers_capitals
    assert read_normalization(tokenizer_file(ZOO / model)) == tokenizer.normalization
    read = tokenizer.encode("THE CAT\u2019S 9 LIVES!")
    assert read == tokenizer.encode("the cat\u2019s 9 lives!")
    assert "".join(token.text for token in read[1:]) == "the cat's 9 lives!"
    assert read[-1].end == len("THE CAT\u2019S 9 LIVES!")
    typed = ["NOT in capitals", "I", "A 2 B", "9!", "\u0130SS"]  # the last one grows in lower case
    assert [spelled(tokenizer, text) for text in typed] == typed
    assert tokenizer.encode_ids(["WHY?", "Why?"]) == tokenizer.encode_ids(["why?", "Why?"])


def test_capitals_stay_if_the_vocabulary_has_words_in_capitals():
    corpus = ["THE CAT\nthe cat\n"] * 3
    tokenizer = train_tokenizer(corpus, 300, normalization=typography(corpus))
    assert not tokenizer.normalization.lowers_capitals
    assert spelled(tokenizer, "THE CAT") == "THE CAT"


def test_a_mask_is_no_capital_letter():
    corpus = ["the cat\n"] * 3
    normalization = typography(corpus)
    tokenizer = train_tokenizer(corpus, 300, has_mask=True, normalization=normalization)
    assert spelled(tokenizer, "THE [MASK] CAT") == "the cat"
    assert tokenizer.encode("THE [MASK] CAT")[2].id == tokenizer.mask_id
    assert spelled(tokenizer, "I [MASK] The") == "I The"
