"""The tiny random models of the tests of model/, for those of the lab."""

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
