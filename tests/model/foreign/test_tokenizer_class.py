"""The tokens of a folder are those of Transformers' `AutoTokenizer`, flags included."""

import json

import pytest
import transformers
from tokenizers import AddedToken, processors

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.folder import ForeignFolder, tokenizer_files
from headlight.model.foreign.loading import quiet
from headlight.model.foreign.tokenizer import read_tokenizer
from headlight.model.foreign.tokenizer_class import tokenizer_class
from tests.model.foreign.test_tokenizer import (
    CORPUS,
    TEXTS,
    byte_level,
    sentence_piece_bpe,
    unigram,
    word_piece,
)

MORE_TEXTS = {
    "accents and capitals": "Élève NAÏVE Café ÉCOLE",
    "small accents": "é café naïve",
    "Chinese between letters": "ab猫好cd 猫",
    "a leading space": " the cat",
    "nothing": "",
    "spaces before signs": "cat , mat . don't",
}
SPECIAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "[MASK]",
}
BERT = SPECIAL | {"cls_token": "<s>", "sep_token": "</s>"}
LLAMA = {key: SPECIAL[key] for key in ("bos_token", "eos_token", "unk_token", "pad_token")}


def trained(make, single):
    backend, trainer = make()
    backend.train_from_iterator(CORPUS, trainer)
    ids = [(name, backend.token_to_id(name)) for name in ("<s>", "</s>")]
    backend.post_processor = processors.TemplateProcessing(
        single=single, pair=None, special_tokens=ids
    )
    return backend


BACKENDS = {
    "word_piece": lambda: trained(word_piece, "<s> $A </s>"),
    "byte_level": lambda: trained(byte_level, "$A"),
    "unigram": lambda: trained(unigram, "$A </s>"),
    "llama": lambda: trained(sentence_piece_bpe, "<s> $A"),
}
T5 = {"tokenizer_class": "T5Tokenizer", "extra_ids": 0}
OLD_T5 = T5 | {"tokenizer_class": "T5TokenizerFast", "additional_special_tokens": ["<extra_id_0>"]}
FLAGS = {
    "bert": ("bert", "word_piece", BERT),
    "bert in capitals": ("bert", "word_piece", BERT | {"do_lower_case": False}),
    "bert with accents": ("bert", "word_piece", BERT | {"strip_accents": False}),
    "bert without accents": (
        "bert",
        "word_piece",
        BERT | {"strip_accents": True, "do_lower_case": False},
    ),
    "bert with Chinese words": ("bert", "word_piece", BERT | {"tokenize_chinese_chars": False}),
    "bert by an older name": (
        "bert",
        "word_piece",
        BERT | {"tokenizer_class": "BertTokenizerFast", "do_lower_case": False},
    ),
    "bert of no class": (
        "bert",
        "word_piece",
        BERT | {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False},
    ),
    "gpt2": ("gpt2", "byte_level", SPECIAL),
    "gpt2 with a space": ("gpt2", "byte_level", SPECIAL | {"add_prefix_space": True}),
    "gpt2 without a space": (
        "gpt2",
        "byte_level",
        SPECIAL | {"add_prefix_space": False, "tokenizer_class": "GPT2Tokenizer"},
    ),
    "gpt2 with ends": ("gpt2", "byte_level", SPECIAL | {"add_bos_token": True}),
    "roberta": ("roberta", "byte_level", BERT | {"tokenizer_class": "RobertaTokenizer"}),
    "roberta with a space": (
        "roberta",
        "byte_level",
        BERT | {"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": True},
    ),
    "a t5": ("t5", "unigram", SPECIAL | T5),
    "an old t5": ("t5", "unigram", SPECIAL | OLD_T5 | {"extra_ids": 1}),
    "a t5 of no class": ("t5", "unigram", SPECIAL | {"tokenizer_class": "TokenizersBackend"}),
    "llama": ("llama", "llama", LLAMA | {"tokenizer_class": "LlamaTokenizer"}),
    "llama without a space": (
        "llama",
        "llama",
        LLAMA | {"tokenizer_class": "LlamaTokenizer", "add_prefix_space": False},
    ),
    "an old llama": (
        "llama",
        "llama",
        LLAMA | {"tokenizer_class": "LlamaTokenizerFast", "legacy": True},
    ),
    "llama with both ends": (
        "llama",
        "llama",
        LLAMA
        | {"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, "add_eos_token": True},
    ),
    "llama with bytes": (
        "llama",
        "byte_level",
        LLAMA | {"tokenizer_class": "LlamaTokenizerFast", "add_prefix_space": True},
    ),
    "a class of another model": ("gpt2", "llama", LLAMA | {"tokenizer_class": "LlamaTokenizer"}),
    "a class that is not used": (
        "qwen2",
        "byte_level",
        SPECIAL | {"tokenizer_class": "LlamaTokenizer"},
    ),
}


@pytest.fixture(scope="module")
def backends():
    return {name: make() for name, make in BACKENDS.items()}


@pytest.fixture
def folder(backends, tmp_path):
    """Return a function that writes the folder of a model with a tokenizer and its options."""

    def make(model_type, backend, options):
        backends[backend].save(str(tmp_path / "tokenizer.json"))
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
        config = transformers.AutoConfig.for_model(model_type)
        config.save_pretrained(tmp_path)
        return ForeignFolder(tmp_path, {}, model_type, None, {}), config

    return make


@pytest.mark.parametrize("name", FLAGS)
def test_ids_are_those_of_auto_tokenizer(name, folder):
    model_type, backend, options = FLAGS[name]
    checkpoint, config = folder(model_type, backend, options)
    tokenizer = read_tokenizer(checkpoint, config)
    with quiet():
        expected = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    texts = {**TEXTS, **MORE_TEXTS}
    del texts["typed end"]  # a typed special token stays text here
    for text in texts.values():
        tokens = tokenizer.encode(text)
        assert [token.id for token in tokens] == expected(text)["input_ids"], text
        assert all(0 <= token.start <= token.end <= len(text) for token in tokens)
    assert tokenizer.vocab_size == len(expected)
    assert tokenizer.special_ids == set(expected.all_special_ids)


def in_pairs(path, vocabulary=None):
    """Write the tokenizer of a folder as it was before there was a tokenizer.json."""
    model = json.loads((path / "tokenizer.json").read_text())["model"]
    (path / "vocab.json").write_text(json.dumps(vocabulary or model["vocab"], ensure_ascii=False))
    merges = (" ".join(pair) for pair in model["merges"])
    (path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    (path / "tokenizer.json").unlink()


@pytest.mark.parametrize(
    ("model_type", "options"),
    [
        ("gpt2", SPECIAL),
        ("gpt2", SPECIAL | {"add_prefix_space": True, "tokenizer_class": "GPT2Tokenizer"}),
        ("roberta", BERT | {"tokenizer_class": "RobertaTokenizer"}),
        ("bart", BERT),
        ("opt", SPECIAL),
    ],
)
def test_vocabulary_and_merges_give_the_ids_of_auto_tokenizer(model_type, options, folder):
    checkpoint, config = folder(model_type, "byte_level", options)
    in_pairs(checkpoint.path)
    tokenizer = read_tokenizer(checkpoint, config)
    with quiet():
        expected = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    for text in {**TEXTS, **MORE_TEXTS, "quotes": "the cat’s “mat”"}.values():
        if "</s>" not in text:
            ids = [token.id for token in tokenizer.encode(text)]
            assert ids == expected(text)["input_ids"], text
    assert {"vocab.json", "merges.txt"} <= tokenizer_files(checkpoint.path).keys()


@pytest.mark.parametrize(
    ("vocabulary", "options", "said"),
    [
        ([1], SPECIAL, "Bad vocabulary json file"),
        ({"a": 0}, SPECIAL, "out of vocabulary"),
        (None, SPECIAL | {"tokenizer_class": "BertTokenizer"}, "does not read it; save"),
    ],
)
def test_a_damaged_vocabulary_is_told(vocabulary, options, said, folder):
    kind = "bert" if "tokenizer_class" in options else "gpt2"
    checkpoint, config = folder(kind, "byte_level", options)
    in_pairs(checkpoint.path, vocabulary)
    with pytest.raises(CheckpointError, match=said):
        read_tokenizer(checkpoint, config)


def test_flags_change_the_ids(folder):
    """The texts above tell each flag from its opposite."""

    def ids(name):
        model_type, backend, options = FLAGS[name]
        checkpoint, config = folder(model_type, backend, options)
        tokenizer = read_tokenizer(checkpoint, config)
        return [[token.id for token in tokenizer.encode(text)] for text in MORE_TEXTS.values()]

    for first, second in (
        ("bert", "bert in capitals"),
        ("bert", "bert with accents"),
        ("bert in capitals", "bert without accents"),
        ("bert", "bert with Chinese words"),
        ("gpt2", "gpt2 with a space"),
        ("llama", "llama without a space"),
    ):
        assert ids(first) != ids(second), (first, second)


def test_tokens_of_older_files_are_added(folder):
    checkpoint, config = folder("gpt2", "byte_level", {})
    (checkpoint.path / "special_tokens_map.json").write_text(json.dumps({"pad_token": "<mine>"}))
    (checkpoint.path / "added_tokens.json").write_text(json.dumps({"<mine>": 400}))
    with quiet():
        expected = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    tokenizer = read_tokenizer(checkpoint, config)
    assert tokenizer.vocab_size == len(expected)
    assert tokenizer.special_ids == set(expected.all_special_ids)
    assert expected.pad_token == "<mine>"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("special_tokens_map.json", {"extra_special_tokens": ["a"] * 2_001}, "2,001 entries"),
        ("added_tokens.json", {f"a{number}": number for number in range(20_001)}, "20,001"),
        ("added_tokens.json", ["a"], "must be a JSON object"),
    ],
)
def test_older_files_that_are_too_large_are_refused(name, content, reason, folder):
    checkpoint, config = folder("gpt2", "byte_level", {})
    (checkpoint.path / name).write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=reason) as caught:
        read_tokenizer(checkpoint, config)
    assert name in str(caught.value)


def test_added_tokens_of_the_options_are_read(folder):
    token = AddedToken("qq", single_word=True, normalized=False).__getstate__()
    token["special"] = False
    options = SPECIAL | {"added_tokens_decoder": {"400": token}}
    checkpoint, config = folder("gpt2", "byte_level", options)
    with quiet():
        expected = transformers.AutoTokenizer.from_pretrained(checkpoint.path)
    ids = [encoded.id for encoded in read_tokenizer(checkpoint, config).encode("the qq cat")]
    assert ids == expected("the qq cat")["input_ids"]
    assert expected.convert_tokens_to_ids("qq") in ids


NAMES = [
    None,
    "PreTrainedTokenizerFast",
    "TokenizersBackend",
    "LlamaTokenizer",
    "LlamaTokenizerFast",
    "GPT2TokenizerFast",
    "BertTokenizer",
    "T5TokenizerFast",
    "GPTNeoXTokenizerFast",
    "NobodysTokenizer",
    "ByT5Tokenizer",
]
MODELS = [
    "bert", "bart", "bloom", "deberta", "gemma2", "gpt2", "gpt_neox", "llama", "mistral", "mixtral",
    "mpt", "nemotron", "opt", "phi3", "qwen2", "roberta", "t5", "umt5", "xglm",
]  # fmt: skip


class Chosen(Exception):
    """Says which class was asked to open a folder."""


@pytest.mark.parametrize("backend", ["byte_level", "llama"])
@pytest.mark.parametrize("model_type", MODELS)
def test_the_class_is_that_of_auto_tokenizer(model_type, backend, folder, monkeypatch):
    def stop(kind, *_, **__):
        raise Chosen(kind.__name__)

    for kind in (transformers.PreTrainedTokenizerBase, transformers.PreTrainedTokenizerFast):
        monkeypatch.setattr(kind, "from_pretrained", classmethod(stop))
    for name in NAMES:
        options = {} if name is None else {"tokenizer_class": name}
        checkpoint, config = folder(model_type, backend, options)
        with quiet(), pytest.raises(Chosen) as chosen:
            transformers.AutoTokenizer.from_pretrained(checkpoint.path)
        kind = tokenizer_class(checkpoint.path, config, options, transformers)
        assert kind.__name__ == str(chosen.value), name


REFUSED = {
    "a class in Python": ({"tokenizer_class": "ByT5Tokenizer"}, "ByT5Tokenizer, whose tokens"),
    "no tokenizer": ({"tokenizer_class": "AutoModel"}, "AutoModel, whose tokens"),
    "no name": ({"tokenizer_class": "../evil"}, "must be the name of a class"),
    "a name of another type": ({"tokenizer_class": ["a"]}, "must be the name of a class"),
    "a number of tokens": (T5 | {"extra_ids": 10**9}, "extra_ids .1,000,000,000. must be at most"),
    "many tokens": ({"extra_special_tokens": ["a"] * 2_001}, "2,001 entries, at most 2,000"),
    "many added tokens": (
        {"added_tokens_decoder": {str(number): {} for number in range(20_001)}},
        "20,001 entries, at most 20,000",
    ),
    "many options": ({f"a{number}": 1 for number in range(20_001)}, "20,001 entries"),
    "arguments without a name": ({"init_inputs": ["/etc/passwd"]}, "init_inputs"),
    "other files": ({"fast_tokenizer_files": ["tokenizer.9.json"]}, "fast_tokenizer_files"),
    "a token of another type": ({"added_tokens_decoder": {"1": 5}}, "not a readable tokenizer"),
    "a flag of another type": (
        BERT | {"tokenizer_class": "BertTokenizer", "do_lower_case": {"a": 1}},
        "not a readable tokenizer",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_cannot_be_followed_are_refused(name, folder):
    options, reason = REFUSED[name]
    backend = "unigram" if "extra_ids" in options else "word_piece"
    checkpoint, _ = folder("t5" if backend == "unigram" else "bert", backend, options)
    config = transformers.AutoConfig.from_pretrained(checkpoint.path)
    with pytest.raises(CheckpointError, match=reason) as caught:
        read_tokenizer(checkpoint, config)
    assert "\n" not in str(caught.value)


def test_options_that_name_files_are_not_followed(folder):
    options = SPECIAL | {"vocab": "/etc/passwd", "vocab_file": "/etc/passwd", "merges": 5}
    checkpoint, config = folder("gpt2", "byte_level", options)
    plain = read_tokenizer(checkpoint, config).encode("the cat")
    checkpoint, config = folder("gpt2", "byte_level", SPECIAL)
    assert plain == read_tokenizer(checkpoint, config).encode("the cat")
