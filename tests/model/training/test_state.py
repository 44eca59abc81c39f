"""What a run needs to go on: weights, moments and progress, in one file."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from headlight.model.checkpoint import CheckpointError
from headlight.model.training.optimizers import make_optimizers
from headlight.model.training.state import load_state, save_state
from headlight.model.transformer import Transformer

MakeModel = Callable[..., Transformer]
Optimizers = list[torch.optim.Optimizer]


def trained(model: Transformer, optimizers: Optimizers, ids: Tensor, steps: int = 2) -> None:
    for _ in range(steps):
        model.zero_grad()
        model(ids).logits.square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()


def moments(model: Transformer, optimizers: Optimizers) -> list[Tensor]:
    return [
        value
        for optimizer in optimizers
        for parameter in model.parameters()
        if parameter in optimizer.state
        for _, value in sorted(optimizer.state[parameter].items())
    ]


def test_weights_moments_and_progress_come_back(
    tmp_path: Path, make_model: MakeModel, ids: Tensor
) -> None:
    model = make_model(seed=1)
    optimizers = make_optimizers(model, learning_rate=6e-3)
    trained(model, optimizers, ids)
    save_state(tmp_path / "state", model, optimizers, {"step": 2, "seconds": 1.5})

    other = make_model(seed=2)
    others = make_optimizers(other, learning_rate=6e-3)
    assert load_state(tmp_path / "state", other, others) == {"step": 2, "seconds": 1.5}
    torch.testing.assert_close(dict(other.state_dict()), dict(model.state_dict()), rtol=0, atol=0)
    assert len(moments(model, optimizers)) > len(list(model.parameters()))
    torch.testing.assert_close(moments(other, others), moments(model, optimizers), rtol=0, atol=0)


def test_training_goes_on_as_if_it_had_never_stopped(
    tmp_path: Path, make_model: MakeModel, ids: Tensor
) -> None:
    model = make_model(seed=1)
    optimizers = make_optimizers(model, learning_rate=6e-3)
    trained(model, optimizers, ids, steps=2)
    save_state(tmp_path / "state", model, optimizers, {})
    trained(model, optimizers, ids, steps=2)

    other = make_model(seed=2)
    others = make_optimizers(other, learning_rate=6e-3)
    load_state(tmp_path / "state", other, others)
    trained(other, others, ids, steps=2)
    torch.testing.assert_close(dict(other.state_dict()), dict(model.state_dict()), rtol=0, atol=0)


def test_a_state_of_no_step_comes_back_too(
    tmp_path: Path, make_model: MakeModel, ids: Tensor
) -> None:
    model = make_model(seed=1)
    save_state(tmp_path / "state", model, make_optimizers(model, learning_rate=6e-3), {"step": 0})
    other = make_model(seed=2)
    others = make_optimizers(other, learning_rate=6e-3)
    load_state(tmp_path / "state", other, others)
    trained(other, others, ids)


@pytest.mark.parametrize("damage", ["missing", "truncated", "empty"])
def test_a_state_that_cannot_be_read_is_named(
    tmp_path: Path, make_model: MakeModel, damage: str
) -> None:
    path = tmp_path / "state"
    model = make_model()
    optimizers = make_optimizers(model, learning_rate=6e-3)
    if damage != "missing":
        save_state(path, model, optimizers, {})
        contents = path.read_bytes()
        path.write_bytes(contents[: len(contents) // 2] if damage == "truncated" else b"")
    with pytest.raises(CheckpointError, match=f"^{re.escape(str(path))} does not continue this"):
        load_state(path, model, optimizers)


def test_a_state_of_another_model_is_refused(tmp_path: Path, make_model: MakeModel) -> None:
    path = tmp_path / "state"
    model, other = make_model(), make_model(d_ff=64)
    save_state(path, model, make_optimizers(model, learning_rate=6e-3), {})
    with pytest.raises(
        CheckpointError, match=r"(?s)does not continue this run: .*up_projection\.weight"
    ):
        load_state(path, other, make_optimizers(other, learning_rate=6e-3))


def test_a_state_replaces_the_one_before_when_it_is_whole(
    tmp_path: Path, make_model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "state"
    model = make_model()
    optimizers = make_optimizers(model, learning_rate=6e-3)
    save_state(path, model, optimizers, {"step": 1})

    def fail(tensors: dict[str, Tensor], partial: Path, metadata: dict[str, str]) -> None:
        partial.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("headlight.model.training.state.save_file", fail)
    with pytest.raises(OSError, match="no space left"):
        save_state(path, model, optimizers, {"step": 2})
    assert load_state(path, model, optimizers) == {"step": 1}
