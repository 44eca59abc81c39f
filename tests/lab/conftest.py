"""The tiny random models of the tests of model/, for those of the lab; it has to be installed."""

from importlib.metadata import entry_points

import pytest

from tests.model.conftest import (
    card,
    checkpoint,
    ids,
    make_checkpoint,
    make_config,
    make_folder,
    make_model,
    model,
    randomise,
    replaced,
    tokenizer,
    unchecked,
)

__all__ = [
    "card",
    "checkpoint",
    "ids",
    "make_checkpoint",
    "make_config",
    "make_folder",
    "make_model",
    "model",
    "randomise",
    "replaced",
    "tokenizer",
    "unchecked",
]


@pytest.fixture(scope="session", autouse=True)
def commands_of_the_lab():
    """Say what is missing, rather than let every command of the lab be unknown."""
    assert entry_points(group="headlight.commands"), "the lab is not installed; run `make install`"
