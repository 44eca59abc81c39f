"""Generated hostile folders: each is refused in one sentence that names a file, or is a model.

`HEADLIGHT_FOLDERS=1000 pytest tests/slow/app/commands/test_hostile_generated.py` makes more.
"""

import json
import os
import random
import re
import shutil
import struct

import pytest

pytest.importorskip("transformers", reason="the extra hf is not installed")

from headlight.commands import adding
from headlight.commands.adding import add_model
from headlight.model.checkpoint.loading import load
from headlight.settings import Settings
from tests.app.conftest import make_zoo
from tests.model.foreign.test_refusals import OF_A_LIBRARY
from tests.tiny_checkpoints import save_checkpoint

N = int(os.environ.get("HEADLIGHT_FOLDERS", "120"))
ODD = [
    *(None, True, 0, -1, 2**31, 10**30, 1.5, 1e308, float("nan"), "", "x" * 3_000, "\0"),
    *("../..", [], {}, [[]], {"a": {"a": 1}}, [1] * 200, list("abc")),
]
DEEP = '{"a":' * 20_000 + "1" + "}" * 20_000


def values_of(value, place=()):
    """Yield the place of every value in plain data."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for name, each in pairs:
        yield (*place, name)
        if isinstance(each, dict | list):
            yield from values_of(each, (*place, name))


def json_file(name):
    """Return a spoiler that replaces, removes or renames one value of a file."""

    def spoil(folder, draw):
        path = folder / name
        data = json.loads(path.read_text())
        *place, last = draw.choice([p for p in values_of(data) if len(p) < 6])
        inner = data
        for part in place:
            inner = inner[part]
        match draw.randrange(4):
            case 0 if isinstance(inner, dict):
                del inner[last]
            case 1 if isinstance(inner, dict):
                inner[f"{last}x"] = inner.pop(last)
            case _:
                inner[last] = draw.choice(ODD)
        path.write_text(json.dumps(data))

    return spoil


def text_of(name):
    """Return a spoiler of the text of a file."""

    def spoil(folder, draw):
        text = (folder / name).read_text()
        at = draw.randrange(len(text))
        (folder / name).write_text(
            draw.choice(
                [
                    *(text[:at], text[:at] + draw.choice('\0{"[x') + text[at:], DEEP, "", "null"),
                    *("NaN", "[" * 10**5, text.replace("{", '{"a": 1, "a": 2, ', 1)),
                ]
            )
        )

    return spoil


def bytes_of_weights(folder, draw):
    """Cut, damage or lengthen the file of weights, or let its header claim more than there is."""
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    at = draw.randrange(len(raw))
    claim = struct.pack("<Q", draw.choice([0, 1, 2**40, 2**63, len(raw)]))
    changed = [
        raw[:at],
        claim + raw[8:],
        raw + b"x" * 9,
        raw[: at % 900] + b"\xff" + raw[at % 900 + 1 :],
    ]
    path.write_bytes(draw.choice(changed))


def header_of_weights(folder, draw):
    """Change one entry of the header: a shape, a type, the offsets, its name, or all of it."""
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    name = draw.choice([each for each in header if each != "__metadata__"])
    entry = header[name]
    match draw.randrange(6):
        case 0:
            entry["shape"] = draw.choice(
                [[], [0], [2**40], [-1, 2], entry["shape"][::-1], [1] * 40]
            )
        case 1:
            entry["dtype"] = draw.choice(["F64", "I64", "BOOL", "F8_E4M3", "Q4", 3])
        case 2:
            entry["data_offsets"] = draw.choice([[0, 4], [4, 0], [0, 2**50], [-4, 0], None])
        case 3:
            header["x" + name] = header.pop(name)
        case 4:
            del header[name]
        case _:
            header[name + "2"] = dict(entry)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])


def numbers_of_weights(folder, draw):
    """Put a number that is not finite into the weights."""
    path = folder / "model.safetensors"
    raw = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", raw[:8])
    at = 8 + length + 4 * draw.randrange((len(raw) - 8 - length) // 4)
    raw[at : at + 4] = b"\xff\x7f\xff\x7f"
    path.write_bytes(raw)


def other_kind(folder, draw):
    """Put a link, a pipe or a folder in the place of a file, or nothing."""
    path = draw.choice([each for each in sorted(folder.iterdir()) if each.suffix != ".md"])
    path.unlink()
    match draw.randrange(5):
        case 0:
            path.symlink_to("/etc/hostname")
        case 1:
            path.symlink_to(path.name)
        case 2:
            os.mkfifo(path)
        case 3:
            path.mkdir()


SPOILERS = [
    *(json_file("config.json"), json_file("config.json"), json_file("tokenizer.json")),
    *(text_of("config.json"), text_of("tokenizer.json"), other_kind),
    *(bytes_of_weights, header_of_weights, header_of_weights, numbers_of_weights),
]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    parent = tmp_path_factory.mktemp("sound")
    make_zoo(parent)
    return [parent / "dense", save_checkpoint("gpt2", parent / "gpt2")]


def refusal(work, *words, **options):
    """Return the sentence that a call is refused with; None: it is not."""
    try:
        work(*words, **options)
    except (ValueError, OSError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("seed", range(N))
def test_a_generated_folder_is_refused_in_a_sentence_or_is_a_model(
    seed, sound, tmp_path, capsys, monkeypatch
):
    draw = random.Random(seed)
    folder = tmp_path / "spoiled"
    shutil.copytree(draw.choice(sound), folder)
    spoil = draw.choice(SPOILERS)
    spoil(folder, draw)
    monkeypatch.setattr(adding, "refine", lambda *_: None)
    settings = Settings(models_dir=tmp_path / "models")
    for said in (refusal(load, folder), refusal(add_model, str(folder), settings, name="new")):
        if said is None:
            continue
        assert "\n" not in said
        assert len(said) < 700
        assert not OF_A_LIBRARY.search(said), said
        assert not re.search(r"Error\b(?! while)|__", said), said
        assert re.search(r"\.json|safetensors", said) or not any(folder.iterdir()), said
    added = [each.name for each in (tmp_path / "models").glob("*") if each.name != ".checks"]
    assert added == (["new"] if said is None else []), "nothing of a refused folder stays"
    assert "Traceback" not in "".join(capsys.readouterr())
