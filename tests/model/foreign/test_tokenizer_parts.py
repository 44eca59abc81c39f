"""A tokenizer that grows a text without bound is refused before the library opens it here."""

import json

import pytest

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign import tokenizer_parts
from headlight.model.foreign.tokenizer_parts import require_harmless
from tests.tiny_checkpoints import make_tokenizer


@pytest.fixture
def folder(tmp_path):
    make_tokenizer().save_pretrained(tmp_path)
    return tmp_path


def change(folder, **parts):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


def chain(member, n, content="aa"):
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
    return {"type": "Sequence", member: [step] * n}


def template(n_pieces, n_ids):
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "s", "type_id": 0}}] * n_pieces,
        "pair": [],
        "special_tokens": {"s": {"id": "s", "ids": [1] * n_ids, "tokens": ["<s>"] * n_ids}},
    }


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
HOSTILE = {
    "a chain of normalizers": ({"normalizer": chain("normalizers", 30)}, "times as long"),
    "more steps than any has": ({"normalizer": chain("normalizers", 65, "b")}, "at most 64"),
    "a chain of decoders": ({"decoder": chain("decoders", 30)}, "decoder may make"),
    "bytes of bytes": (
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [BYTES] * 20}},
        "times as long",
    ),
    "a long replacement": ({"normalizer": chain("normalizers", 1, "a" * 10**6)}, "at most 100"),
    "a wide template": ({"post_processor": template(20_000, 500)}, "adds 10,000,000 tokens"),
    "many added tokens": ({"added_tokens": [{}] * 100_001}, "at most 100,000 tokens"),
    "added tokens of another type": ({"added_tokens": {"a": 1}}, "must be a list"),
    "a part of another type": ({"decoder": 5}, "must be an object"),
    "a model of no kind": ({"model": {"type": "Mine"}}, "not a readable tokenizer"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_tokenizer_that_grows_a_text_is_refused(name, folder):
    parts, reason = HOSTILE[name]
    change(folder, **parts)
    with pytest.raises(CheckpointError, match=reason):
        require_harmless(folder)


def test_a_tokenizer_as_transformers_writes_it_is_taken(folder):
    require_harmless(folder)


def test_a_tokenizer_that_needs_more_memory_than_allowed_is_refused(folder, monkeypatch):
    monkeypatch.setattr(tokenizer_parts, "require_bounded_parts", lambda parts: None)
    change(folder, normalizer=chain("normalizers", 33))
    with pytest.raises(CheckpointError, match="MB of memory"):
        require_harmless(folder)
