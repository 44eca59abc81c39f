"""A GGUF file becomes the folder of a checkpoint with the same numbers and tokens."""

import json

import numpy as np
import pytest
import torch

import headlight
from headlight.commands.adding import add_model
from headlight.commands.parsing import UsageError
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.gguf_file import convert_gguf, find_gguf
from headlight.settings import Settings
from tests.tiny_checkpoints import make_model, make_tokenizer

gguf = pytest.importorskip("gguf")
TEXT = "The cat “sat” on the mat."


def permuted(weight, n_heads):
    """Return the rows in the order of llama.cpp, which rotates neighbouring dimensions."""
    by_head = weight.reshape(n_heads, 2, weight.shape[0] // n_heads // 2, *weight.shape[1:])
    return by_head.swapaxes(1, 2).reshape(weight.shape)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a file in Q8_0 and F32, with the model that it was made of."""
    model, tokenizer = make_model("llama"), make_tokenizer()
    model.config.sliding_window = None
    path = tmp_path_factory.mktemp("gguf") / "tiny.Q8_0.gguf"
    file, config = gguf.GGUFWriter(path, "llama"), model.config
    file.add_context_length(64)
    file.add_embedding_length(32)
    file.add_block_count(2)
    file.add_feed_forward_length(48)
    file.add_head_count(config.num_attention_heads)
    file.add_head_count_kv(config.num_key_value_heads)
    file.add_key_length(8)
    file.add_value_length(8)
    file.add_rope_dimension_count(8)
    file.add_layer_norm_rms_eps(config.rms_norm_eps)
    file.add_rope_freq_base(config.rope_parameters["rope_theta"])
    file.add_vocab_size(320)
    pieces = [tokenizer.convert_ids_to_tokens(token) or f"[{token}]" for token in range(320)]
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    file.add_tokenizer_model("gpt2")
    file.add_token_list(pieces)
    file.add_token_types([3] * 4 + [1] * 316)
    file.add_token_merges([" ".join(pair) for pair in merges])
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2)
    for name, tensor in model.state_dict().items():
        numbers = tensor.numpy()
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = "num_attention_heads" if "q_proj" in name else "num_key_value_heads"
            numbers = permuted(numbers, getattr(config, heads))
        stored = gguf.GGMLQuantizationType.Q8_0 if "embed" in name else None
        if stored:
            numbers = gguf.quantize(numbers, stored)
        file.add_tensor(names.get_name(name, (".weight",)), numbers, raw_dtype=stored)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return path, model


def test_its_numbers_and_tokens_are_those_of_the_model(written, tmp_path):
    path, model = written
    assert convert_gguf(path, tmp_path) == "F32, Q8_0"
    served = headlight.load(tmp_path)
    trace = headlight.trace(served, TEXT, capture="logits")
    ids = [token.id for token in trace.tokens]
    typed = make_tokenizer()(TEXT)["input_ids"]
    assert ids[-len(typed) :] == typed
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids])).logits[0].numpy()
    assert np.corrcoef(trace["logits"].ravel(), logits.ravel())[0, 1] > 0.999  # of 8 bits


def test_it_is_added_and_its_card_says_what_it_was(written, tmp_path):
    path, _ = written
    settings = Settings(models_dir=tmp_path)
    assert add_model(str(path), settings, measures_heads=False) == "tiny.Q8_0"
    card = (tmp_path / "tiny.Q8_0" / "CARD.md").read_text()
    assert "tiny.Q8_0.gguf, whose tensors are stored as F32, Q8_0" in card
    assert (
        add_model(str(path.parent), settings, name="by-folder", measures_heads=False) == "by-folder"
    )


def test_what_cannot_be_converted_is_refused_and_nothing_stays(written, tmp_path):
    path, _ = written
    settings = Settings(models_dir=tmp_path / "models")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(path.read_bytes()[:5000])
    other = tmp_path / "other.gguf"
    other.write_bytes(b"not this")
    unknown = tmp_path / "unknown.gguf"
    unknown.write_bytes(path.read_bytes().replace(b"llama", b"camel"))
    for file, says in ((cut, "cut off"), (other, "cut off"), (unknown, "cannot be converted")):
        with pytest.raises(CheckpointError, match=rf"{file.name}.*{says}"):
            add_model(str(file), settings)
    with pytest.raises(CheckpointError, match=r"3 GGUF files: cut\.gguf, .*; name one"):
        find_gguf(tmp_path)
    with pytest.raises(UsageError, match=r"no folder, no .gguf file and no repository"):
        add_model(str(tmp_path / "none.gguf"), settings)
    assert list((tmp_path / "models").iterdir()) == []
