"""The models that ship: complete, and small enough to be cloned by everybody."""

from pathlib import Path

import pytest

ZOO = Path(__file__).parents[2] / "model" / "zoo"
MEGABYTE = 10**6
MODELS = sorted(path for path in ZOO.glob("[!_.]*") if path.is_dir())


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_model_ships() -> None:
    assert "stories" in [model.name for model in MODELS]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_model_is_weights_config_tokenizer_and_card(model: Path) -> None:
    assert {path.name for path in model.iterdir()} == {
        "CARD.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    }


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_a_model_takes_at_most_30_megabytes(model: Path) -> None:
    assert size(model) <= 30 * MEGABYTE


def test_all_models_take_at_most_80_megabytes() -> None:
    assert size(ZOO) <= 80 * MEGABYTE
