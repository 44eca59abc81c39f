"""Tokenizers that are stored once, in the folder of another model."""

import json
import shutil
from pathlib import Path

import pytest

from headlight.model.checkpoint.loading import CheckpointError, describe, load, tokenizer_file


def write_shared(folder, name):
    (folder / "tokenizer.json").write_text(json.dumps({"tokenizer_of": name}), encoding="utf-8")


@pytest.fixture
def twins(make_folder):
    """Return two folders of equal models, the second of which has the tokenizer of the first."""
    owner = make_folder()
    return owner, Path(shutil.copytree(owner, owner.parent / "twin"))


def test_a_model_reads_the_tokenizer_of_another_and_keeps_its_revision(twins):
    owner, twin = twins
    alone = describe(twin)
    write_shared(twin, owner.name)
    assert tokenizer_file(twin).resolve() == (owner / "tokenizer.json").resolve()
    shared = load(twin)
    assert shared.description.revision == alone.revision
    assert shared.description.normalization == alone.normalization
    assert shared.tokenizer.to_json() == load(owner).tokenizer.to_json()


def test_another_tokenizer_of_the_owner_is_another_revision(twins):
    owner, twin = twins
    write_shared(twin, owner.name)
    before = describe(twin).revision
    path = owner / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert describe(twin).revision != before


def test_a_model_that_ships_is_found_from_anywhere(twins):
    _, twin = twins
    write_shared(twin, "stories")
    with pytest.raises(CheckpointError, match=r"has 4096 tokens, but config\.json says"):
        load(twin)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"tokenizer_of": "nobody"}, "the model 'nobody', which is not there"),
        ({"tokenizer_of": "twin"}, "the model 'twin', which is not there"),
        ({"tokenizer_of": "../twin"}, "must be the name of a model"),
        ({"tokenizer_of": ".."}, "must be the name of a model"),
        ({"tokenizer_of": 3}, "must be the name of a model"),
        ({"tokenizer_of": None}, "is not a readable tokenizer"),
        ({"tokenizer_of": "stories", "more": 1}, "is not a readable tokenizer"),
        ([], "is not a readable tokenizer"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(twins, content, message):
    _, twin = twins
    (twin / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        load(twin)


def test_a_name_leads_to_a_tokenizer_and_not_to_another_name(twins):
    owner, twin = twins
    third = Path(shutil.copytree(owner, owner.parent / "third"))
    write_shared(twin, owner.name)
    write_shared(third, "twin")
    with pytest.raises(CheckpointError, match="name that one"):
        describe(third)
