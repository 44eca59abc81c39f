"""Models' folders that are damaged or mean harm: each is refused in a sentence, the others go on.

A new way to damage a folder is one line of `DAMAGES`.
"""

import json
import os
import re
import shutil
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from headlight.models.model_registry import MAX_REASON_CHARACTERS, Registry
from headlight.problems import Problem

CPU = torch.device("cpu")
SCALE = "decoder.norm.scale"
Damage = Callable[[Path], object]


def config(**changes):
    """Return a config with other members; a member that is `...` is left out."""

    def damage(folder):
        path = folder / "config.json"
        members = {**json.loads(path.read_text()), **changes}
        kept = {name: value for name, value in members.items() if value is not ...}
        path.write_text(json.dumps(kept))

    return damage


def tokenizer(change):
    def damage(folder):
        path = folder / "tokenizer.json"
        members = json.loads(path.read_text())
        change(members)
        path.write_text(json.dumps(members))

    return damage


def tensors(change):
    def damage(folder):
        path = folder / "model.safetensors"
        arrays = load_file(path)
        change(arrays)
        save_file(arrays, path)

    return damage


def header(change):
    """Return a damage that changes the header and keeps the numbers."""

    def damage(folder):
        path = folder / "model.safetensors"
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        members = json.loads(content[8 : 8 + length])
        change(members)
        head = json.dumps(members).encode()
        path.write_bytes(struct.pack("<Q", len(head)) + head + content[8 + length :])

    return damage


def card(head, prose=""):
    return text("CARD.md", f"---\ntitle: T\nlicence: MIT\n{head}\n---\n{prose}")


def text(file, content):
    data = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / file).write_bytes(data)


def sparse(file, n_bytes):
    return lambda folder: os.truncate(folder / file, n_bytes)


def replaced(file, make):
    """Return a damage that replaces a file by something else."""

    def damage(folder):
        (folder / file).unlink()
        make(folder / file)

    return damage


def link_out(file):
    """Return a link to a sound file of another folder."""
    return replaced(file, lambda path: path.symlink_to(path.parent.parent / "sound" / file))


def overlap(members):
    """Give each tensor the offsets of the next one."""
    names = [name for name in members if name != "__metadata__"]
    for name, following in pairwise(names):
        members[name] = members[following]


def poison(value):
    return tensors(lambda arrays: arrays[SCALE].__setitem__(0, value))


LAUGHS = "\n".join(
    ["training:", "  a0: &a0 [ha, ha]"]
    + [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
)

DAMAGES: dict[str, tuple[Damage, str]] = {
    # the weights
    "half the weights": (sparse("model.safetensors", 4_000), "ncomplete|header"),
    "a header without end": (
        text("model.safetensors", struct.pack("<Q", 2**63)),
        "the header has 9,223,372,036,854,775,808 bytes",
    ),
    "a header of 60,000 levels": (
        text("model.safetensors", struct.pack("<Q", 60_000) + b"[" * 60_000),
        "header",
    ),
    "a header of a million tensors": (
        header(lambda members: members.update({f"t{n}": members[SCALE] for n in range(10**5)})),
        "bytes exceed",
    ),
    "tensors over each other": (header(overlap), "(?i)offset|header"),
    "a shape of other numbers": (
        header(lambda members: members[SCALE].update(shape=[2, 8])),
        r"has shape \(2, 8\), expected \(16,\)",
    ),
    "whole numbers": (
        tensors(lambda arrays: arrays.update({SCALE: np.ones(16, dtype=np.int32)})),
        f"{SCALE} holds I32, expected F16, BF16, F32",
    ),
    "a missing tensor": (tensors(lambda arrays: arrays.pop(SCALE)), f"{SCALE} is missing"),
    "a surplus tensor": (
        tensors(lambda arrays: arrays.update({"<b>": np.ones(1)})),
        "<b> is unknown",
    ),
    "a weight of NaN": (poison(float("nan")), f"{SCALE} holds a weight that is not finite"),
    "a terabyte of weights": (sparse("model.safetensors", 2**40), "1,099,511,627,776 bytes exceed"),
    # the config
    "no config": (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
    "a config of 10 MB": (text("config.json", "[" * 10**7), "10,000,000 bytes exceed"),
    "half a config, and no card": (
        lambda folder: (
            (folder / "CARD.md").unlink(),
            (folder / "config.json").write_text('{"a":'),
        ),
        "config.json is not JSON",
    ),
    "a config that says a size twice": (
        text("config.json", '{"n_layers": 1, "n_layers": 2}'),
        "n_layers",
    ),
    "a config with more": (config(n_wheels=4), "n_wheels"),
    "a size of 5,000 digits": (text("config.json", '{"n_layers": ' + "9" * 5_000 + "}"), "digits"),
    "a billion layers": (config(n_layers=10**9), r"n_layers \(1000000000\) must be at most 1000"),
    "experts everywhere": (
        config(n_layers=1_000, moe={"n_experts": 1_000, "top_k": 1, "layers": [*range(1_000)]}),
        "1000000 experts",
    ),
    "a table that no memory holds": (
        config(max_tokens=2**24, d_model=2**20, n_heads=1),
        "needs [0-9,.]+ GB of memory; this machine has",
    ),
    "a negative size": (config(d_ff=-1), r"d_ff \(-1\) must be at least 1"),
    "a list of kinds": (config(kind=["decoder"]), "kind"),
    "a kind of 10,000 letters": (config(kind="k" * 10_000), "kind 'kkk"),
    "layers of experts that are none": (config(moe={"n_experts": 2, "layers": 7}), "config"),
    "weights of another config": (config(d_ff=25), r"has shape .*, expected"),
    # the tokenizer
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "No such file"),
    "a tokenizer of 100 MB": (sparse("tokenizer.json", 10**8), "100,000,000 bytes exceed"),
    "a tokenizer of another size": (
        tokenizer(lambda members: members["model"]["vocab"].update(ZZZZ=300)),
        "has 301 tokens, but config.json says 300",
    ),
    "an id that no embedding has": (
        tokenizer(lambda members: members["model"]["vocab"].update({"!": 4_000_000_000})),
        "ids of the 300 tokens",
    ),
    "a tokenizer that searches": (
        tokenizer(
            lambda members: members.update(
                pre_tokenizer={
                    "type": "Split",
                    "pattern": {"Regex": "(a+)+$"},
                    "behavior": "Isolated",
                    "invert": False,
                }
            )
        ),
        "must be byte-level BPE",
    ),
    "merges of what is not there": (
        tokenizer(lambda members: members["model"].update(merges=[["qq", "zz"]])),
        "not a readable tokenizer",
    ),
    # the card
    "no card": (lambda folder: (folder / "CARD.md").unlink(), "No such file"),
    "a card of 1 MB": (card("", "a" * 2**20), "bytes exceed"),
    "a card of a billion laughs": (card(LAUGHS), "it has an alias"),
    "a card of 50,000 levels": (card("metrics: " + "[" * 50_000), "levels deep"),
    "a card with an object of Python": (
        card("metrics: !!python/object/apply:os.getcwd []"),
        "broken YAML",
    ),
    "a card with bytes": (card('metrics: {a: !!binary "/w=="}'), "write the value without one"),
    # what is no file
    **{
        f"a {kind} for {file}": (replaced(file, make), reason)
        for file in ("config.json", "tokenizer.json", "model.safetensors", "CARD.md")
        for kind, make, reason in (
            ("pipe", os.mkfifo, "not a regular file"),
            ("folder", Path.mkdir, "not a regular file"),
            ("device", lambda path: path.symlink_to("/dev/zero"), "must not leave the folder"),
            ("link to nothing", lambda path: path.symlink_to("nothing"), "No such file"),
            ("link to itself", lambda path: path.symlink_to(path.name), "(?i)loop|levels"),
        )
    },
    **{
        f"a link out for {file}": (link_out(file), "must not leave the folder")
        for file in ("config.json", "tokenizer.json", "model.safetensors", "CARD.md")
    },
}
NAMES = ["<b>bold", "two\nlines", "a" * 200, "\x1b[31mred", "a'b", "%00", "a\udcffb", "\u202egnp"]


@pytest.fixture
def parent(tmp_path, zoo):
    """Return a directory with one sound model."""
    shutil.copytree(zoo / "tiny", tmp_path / "sound")
    return tmp_path


@pytest.fixture(scope="module")
def damaged(tmp_path_factory, zoo):
    """Return a directory with a sound model and one of each kind of damage, and these by name."""
    parent = tmp_path_factory.mktemp("damaged")
    sound = shutil.copytree(zoo / "tiny", parent / "sound")
    folders = {name: parent / f"broken-{number}" for number, name in enumerate(DAMAGES)}
    for name, folder in folders.items():
        DAMAGES[name][0](shutil.copytree(sound, folder))
    return parent, folders


@pytest.fixture(scope="module")
def over_all(damaged):
    return Registry([damaged[0]], default="sound", device=CPU)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_refused_in_a_sentence(damaged, over_all, name, caplog):
    parent, folders = damaged
    broken, expected = folders[name].name, DAMAGES[name][1]
    with pytest.raises(Problem, match=f"the model '{broken}' cannot be used: ") as caught:
        over_all.checkpoint(broken)
    assert caught.value.status_code == 503
    reason = over_all.unavailable[broken]
    assert re.search(expected, reason), reason
    assert len(reason) <= MAX_REASON_CHARACTERS
    assert reason.isprintable()
    assert str(parent) not in reason
    assert over_all.checkpoint().id == "sound"


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_folder_whose_name_is_no_id_is_refused(parent, name):
    shutil.copytree(parent / "sound", parent / name)
    registry = Registry([parent], default="sound", device=CPU)
    assert list(registry.descriptions) == ["sound"]
    ((shown, reason),) = registry.unavailable.items()
    assert shown.isprintable()
    assert len(shown) <= 64
    assert "rename the folder" in reason


def test_a_link_to_a_folder_elsewhere_is_refused(parent, tmp_path_factory):
    elsewhere = shutil.copytree(parent / "sound", tmp_path_factory.mktemp("else") / "secret")
    (parent / "linked").symlink_to(elsewhere)
    registry = Registry([parent], default="sound", device=CPU)
    assert registry.unavailable["linked"] == "linked: a link to a folder elsewhere is not followed"
    assert list(registry.descriptions) == ["sound"]


def test_links_that_stay_inside_are_followed(parent):
    """As a volume of Kubernetes has them."""
    (parent / "sound" / "data").mkdir()
    for file in ("config.json", "CARD.md"):
        (parent / "sound" / file).rename(parent / "sound" / "data" / file)
        (parent / "sound" / file).symlink_to(Path("data") / file)
    assert Registry([parent], default="sound", device=CPU).checkpoint().id == "sound"


def test_a_card_that_is_hard_to_read_stops_nobody_else(parent, client_with):
    card("training: {a: 1}", "[" * 60_000)(shutil.copytree(parent / "sound", parent / "slow"))
    client = client_with(models_dir=parent)
    assert client.get("/models/slow/card").status_code == 200
    assert client.get("/models/sound/card").status_code == 200


def test_a_server_over_all_of_them_starts_and_answers(damaged, client_with, zoo):
    parent, folders = damaged
    client = client_with(models_dir=parent)
    answer = client.get("/api/v1/models").json()
    known = {model["id"] for model in answer["models"] + answer["unavailable"]}
    assert {folder.name for folder in folders.values()} <= known
    assert len(known) == len(DAMAGES) + len([*zoo.iterdir()]) + 1
    assert client.post("/api/v1/trace", json={"text": "a", "model": "sound"}).status_code == 200
    for folder in folders.values():
        refused = client.post("/api/v1/tokenize", json={"text": "a", "model": folder.name})
        assert refused.status_code == 503, refused.text
