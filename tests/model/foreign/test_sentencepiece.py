"""Tokenizers without a tokenizer.json give the tokens of Transformers, with offsets and words."""

import json
import struct
import sys

import pytest
import sentencepiece

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.folder import ForeignFolder
from headlight.model.foreign.loading import MissingExtra
from headlight.model.foreign.tokenizer import read_tokenizer
from tests.model.foreign.test_tokenizer import CORPUS, TEXTS

LETTERS = "▁ abcdefghilmnorstuvé.,"
VOCABULARY = ["</s>", "<unk>", *LETTERS, "▁the", "▁cat", "▁chat", ">>fr<<", "<pad>"]


def folder_of(path, **config):
    return ForeignFolder(path, config, "marian", None, {})


def field(number, value):
    """Return a field of a protocol buffer: an integer, a float or bytes."""
    if isinstance(value, int):
        return bytes([number << 3]) + bytes([value])
    if isinstance(value, float):
        return bytes([number << 3 | 5]) + struct.pack("<f", value)
    return bytes([number << 3 | 2]) + bytes([len(value)]) + value


def model_of(pieces):
    """Return a SentencePiece model of pieces with scores."""
    listed = [("<unk>", 0.0, 2), ("</s>", 0.0, 3), *((name, score, 1) for name, score in pieces)]
    parts = [
        field(1, field(1, name.encode()) + field(2, score) + field(3, kind))
        for name, score, kind in listed
    ]
    return b"".join([*parts, field(2, field(3, 1)), field(3, field(3, 1) + field(4, 1))])


@pytest.fixture
def marian(tmp_path):
    """Return a folder with two models of one vocabulary."""
    letters = [(name, -5.0) for name in "▁abcdefghilmnorstuv.,"]
    (tmp_path / "source.spm").write_bytes(model_of([*letters, ("▁the", -1.0), ("▁cat", -1.0)]))
    (tmp_path / "target.spm").write_bytes(model_of([*letters, ("▁chat", -1.0), ("q", -5.0)]))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(VOCABULARY))}
    (tmp_path / "vocab.json").write_text(json.dumps(numbers))
    return tmp_path


def test_a_source_and_a_target_have_pieces_of_their_own(marian):
    tokenizer = read_tokenizer(folder_of(marian), None, (3,))
    tokens = tokenizer.encode("the cat chat")
    assert [token.text for token in tokens] == [" the", " cat", " ", "c", "h", "a", "t", "</s>"]
    assert [token.word for token in tokens[:4]] == [0, 1, None, 2]
    assert [(token.start, token.end) for token in tokens[:2]] == [(0, 3), (3, 7)]
    target = tokenizer.encode_target("chat")
    assert [token.id for token in target] == [3, VOCABULARY.index("▁chat")]
    assert tokenizer.decode([token.id for token in target[1:]]) == "chat"


def test_a_language_is_one_token_and_a_typed_end_is_text(marian):
    tokenizer = read_tokenizer(folder_of(marian), None)
    tokens = tokenizer.encode(">>fr<< the</s>")
    assert (tokens[0].text, tokens[0].end, tokens[0].is_special) == (">>fr<<", 6, True)
    assert [token.is_special for token in tokens].count(True) == 2
    assert tokens[-1].id == 0
    assert not tokenizer.encode(">>de<< the")[0].is_special


def test_a_piece_beyond_the_vocabulary_is_unknown(marian):
    tokenizer = read_tokenizer(folder_of(marian), None)
    (token,) = tokenizer.encode_target("q")[1:]
    assert token.id == VOCABULARY.index("<unk>")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "target.spm").unlink(),
        lambda folder: (folder / "vocab.json").write_text('{"a": 7}'),
        lambda folder: (folder / "source.spm").write_bytes(b"\x0a\xff"),
        lambda folder: (folder / "source.spm").write_bytes(b"\x0b"),
    ],
    ids=["missing", "ids", "cut", "kind"],
)
def test_a_damaged_folder_is_refused(marian, damage):
    damage(marian)
    with pytest.raises(CheckpointError, match="its tokenizer is damaged"):
        read_tokenizer(folder_of(marian), None)


def test_without_the_library_the_error_names_what_to_install(marian, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MissingExtra, match=r"pip install 'headlight-viz\[hf\]'"):
        read_tokenizer(folder_of(marian), None)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_bytes_are_those_of_transformers_with_offsets(tmp_path, text):
    tokenizer = read_tokenizer(folder_of(tmp_path, tokenizer_class="ByT5Tokenizer"), None)
    tokens = tokenizer.encode(text)
    assert [token.id for token in tokens] == [*(3 + byte for byte in text.encode()), 1]
    spans = [(place, place + 1) for place, sign in enumerate(text) for _ in sign.encode()]
    assert [(token.start, token.end) for token in tokens[:-1]] == spans
    assert tokenizer.decode([token.id for token in tokens]) == text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_pieces_are_those_of_sentencepiece(tmp_path_factory, text):
    folder = tmp_path_factory.getbasetemp() / "spm"
    if not folder.exists():
        folder.mkdir()
        (folder / "corpus").write_text("\n".join(CORPUS))
        for name in ("source", "target"):
            sentencepiece.SentencePieceTrainer.train(
                input=str(folder / "corpus"),
                model_prefix=str(folder / name),
                vocab_size=90,
                hard_vocab_limit=False,
                minloglevel=2,
            )
            (folder / f"{name}.model").rename(folder / f"{name}.spm")
        model = sentencepiece.SentencePieceProcessor(str(folder / "source.spm"))
        names = ["</s>", "<unk>", *(model.id_to_piece(i) for i in range(len(model))), "<pad>"]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        (folder / "vocab.json").write_text(json.dumps(numbers))
    names = list(json.loads((folder / "vocab.json").read_text()))
    model = sentencepiece.SentencePieceProcessor(str(folder / "source.spm"))
    tokens = read_tokenizer(folder_of(folder), None).encode(text)
    pieces = model.encode(text, out_type=str)
    expected = [names.index(piece) if piece in names else 1 for piece in pieces]
    assert [token.id for token in tokens] == [*expected, 0]
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    starts = [token.start for token in tokens]
    assert starts == sorted(starts)
