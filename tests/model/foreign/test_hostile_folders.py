"""A stranger's folder that would stop the process is refused within two seconds and 500 MB."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest

from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.folder import read_folder
from headlight.model.foreign.tokenizer_parts import require_harmless

# Describes the folder, as the registry does at its start, then loads it; a refusal is one line.
GUARDED = """
import resource, signal, sys, time
from pathlib import Path
from headlight.models.foreign import load_checked, read_description
from headlight.model.checkpoint.files import CheckpointError
from headlight.model.foreign.loading import transformers_library
import transformers.models.auto.modeling_auto, transformers.generation
transformers_library()
folder = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
signal.alarm(60)
began = time.process_time()
try:
    read_description(folder)
    load_checked(folder, folder.parent / "checks")
except CheckpointError as error:
    print(error)
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(time.process_time() - began, used // 1024, child // 1024)
"""


@pytest.fixture
def folder(folder_of, tmp_path):
    """Return a copy of a GPT-2's folder, to be spoiled."""
    shutil.copytree(folder_of("gpt2"), tmp_path / "gpt2")
    return tmp_path / "gpt2"


def replaced(name, make):
    def spoil(folder):
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return spoil


def sparse(path):
    path.touch()
    os.truncate(path, 20 * 10**9)


def zero(path):
    path.symlink_to("/dev/zero")


def tokenizer(**parts):
    """Replace parts of tokenizer.json."""

    def spoil(folder):
        path = folder / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | parts))

    return spoil


def template(n_tokens, n_ids):
    """Return a post-processor that adds so many tokens of so many ids."""
    special = {"id": "a", "ids": [0] * n_ids, "tokens": ["a"] * n_ids}
    single = [{"SpecialToken": {"id": "a", "type_id": 0}}] * n_tokens
    return {
        "type": "TemplateProcessing",
        "single": [*single, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"a": special},
    }


def chain(n, content):
    """Return a sequence of replacements of each character by a text."""
    step = {"type": "Replace", "pattern": {"Regex": "."}, "content": content}
    return {"type": "Sequence", "normalizers": [step] * n, "decoders": [step] * n}


def empty_tensors(path):
    entry = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{number}": entry for number in range(300_000)}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def config(**changes):
    def spoil(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return spoil


FILES = {
    "a pipe as tokenizer": (replaced("tokenizer.json", os.mkfifo), "not a regular file"),
    "a pipe as its config": (replaced("tokenizer_config.json", os.mkfifo), "not a regular file"),
    "a pipe named token": (replaced("my_token_list.json", os.mkfifo), "not a regular file"),
    "a pipe as pieces": (replaced("source.spm", os.mkfifo), "not a regular file"),
    "a pipe as generation config": (
        replaced("generation_config.json", os.mkfifo),
        "not a regular file",
    ),
    "a pipe as config": (replaced("config.json", os.mkfifo), "not a regular file"),
    "a link to a device": (replaced("tokenizer.json", zero), "must not leave the folder"),
    "a device named token": (replaced("a_token.json", zero), "must not leave the folder"),
    "a device as its config": (
        replaced("tokenizer_config.json", zero),
        "must not leave the folder",
    ),
    "a device as pieces": (replaced("source.spm", zero), "must not leave the folder"),
    "a pipe as weights": (replaced("model.safetensors", os.mkfifo), "not a regular file"),
    "a device as weights": (replaced("model.safetensors", zero), "must not leave the folder"),
    "a pipe as index": (replaced("model.safetensors.index.json", os.mkfifo), "not a regular file"),
    "a sparse tokenizer": (replaced("tokenizer.json", sparse), "20,000,000,000 bytes exceed"),
    "sparse pieces": (replaced("source.spm", sparse), "20,000,000,000 bytes exceed"),
    "a long header of empty tensors": (
        replaced("model.safetensors", empty_tensors),
        "the header has",
    ),
}


def refusal(folder):
    """Return the lines that another process prints of a folder; check its seconds and memory."""
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, str(folder)],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-500:]
    *said, figures = done.stdout.splitlines()
    seconds, megabytes, of_child = map(float, figures.split())
    assert seconds < 2
    assert megabytes < 500
    assert of_child < 700
    return said


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_refused_where_the_folder_is_described(name, folder):
    spoil, reason = FILES[name]
    spoil(folder)
    with pytest.raises(CheckpointError, match=reason):
        read_folder(folder)


NEO = {"model_type": "gpt_neo", "architectures": ["GPTNeoForCausalLM"]}
MPT = {"model_type": "mpt", "architectures": ["MptForCausalLM"]}
SIZES = {
    "labels": (config(num_labels=10**8), r"num_labels \(100,000,000\)"),
    "labels that the file could hold": (
        config(num_labels=200_000),
        r"num_labels \(200,000\) must be at most 100,000",
    ),
    "labels of a part": (config(text_config={"num_labels": 10**8}), "num_labels"),
    "kinds of attention": (
        config(**NEO, attention_types=[[["global", "local"], 10**9]]),
        r"attention_types \(1,000,000,000\)",
    ),
    "layers by kind": (
        config(**NEO, attention_types=[[["global", "local"], 5_000]]),
        r"attention_types \(5,000\) must be at most 1,000",
    ),
    "positions of MPT": (config(**MPT, max_seq_len=10**9), r"max_seq_len \(1,000,000,000\)"),
    "positions by width": (config(n_positions=2**20, n_embd=4_096), r"n_positions \(1,048,576\)"),
    "a width beyond the file": (config(n_embd=2**26), r"n_embd \(67,108,864\)"),
    "a list of widths": (config(widths=[[4, 10**8]]), r"widths \(100,000,000\)"),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_bounded_by_what_the_weight_files_hold(name, folder):
    spoil, reason = SIZES[name]
    spoil(folder)
    with pytest.raises(CheckpointError, match=reason):
        read_folder(folder)


HARMFUL = {
    "a template of a billion": (
        tokenizer(post_processor=template(200_000, 5_000)),
        "post_processor adds",
    ),
    "a normalizer that grows": (
        tokenizer(normalizer=chain(9, "ab" * 50)),
        "normalizer may make a text",
    ),
    "a long normalizer": (tokenizer(normalizer=chain(1_000, "ab")), "normalizers"),
    "a decoder that grows": (tokenizer(decoder=chain(9, "ab" * 50)), "decoder may make a text"),
    "a part of another type": (tokenizer(decoder=[1]), "decoder must be an object"),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_tokenizer_is_refused_where_it_is_read(name, folder):
    spoil, reason = HARMFUL[name]
    spoil(folder)
    with pytest.raises(CheckpointError, match=reason):
        require_harmless(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES | SIZES | HARMFUL)
def test_a_refusal_takes_two_seconds_and_little_memory(name, folder):
    spoil, reason = (FILES | SIZES | HARMFUL)[name]
    spoil(folder)
    assert re.search(reason, "\n".join(refusal(folder)))
