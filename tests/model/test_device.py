"""Where a model runs: what is asked for, or the best there is."""

import pytest
import torch

from headlight.model import device
from headlight.model.device import choose_device, choose_precision

CPU = torch.device("cpu")


def pretend(monkeypatch, *, cuda, mps):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(False, False, "cpu"), (False, True, "mps"), (True, False, "cuda"), (True, True, "cuda")],
)
def test_auto_takes_the_fastest_kind_there_is(monkeypatch, cuda, mps, expected):
    pretend(monkeypatch, cuda=cuda, mps=mps)
    assert choose_device("auto").type == expected
    assert choose_device().type == expected


def test_a_device_that_is_there_is_taken(monkeypatch):
    pretend(monkeypatch, cuda=True, mps=False)
    assert choose_device("cpu").type == "cpu"
    assert choose_device("cuda").type == "cuda"


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    pretend(monkeypatch, cuda=False, mps=False)
    with pytest.raises(ValueError, match=r"^device 'cuda' is not on this machine; there is: cpu$"):
        choose_device("cuda")
    pretend(monkeypatch, cuda=False, mps=True)
    with pytest.raises(
        ValueError, match=r"^device 'cuda' is not on this machine; there is: mps, cpu$"
    ):
        choose_device("cuda")


def test_an_unknown_device_is_refused():
    with pytest.raises(
        ValueError, match=r"^device 'tpu' is unknown; choose one of auto, cpu, cuda, mps$"
    ):
        choose_device("tpu")


def test_a_precision_is_taken_by_its_name():
    assert choose_precision("float32", CPU) is torch.float32
    assert choose_precision("bfloat16", CPU) is torch.bfloat16


def test_auto_takes_the_faster_precision(monkeypatch):
    for faster in (torch.float32, torch.bfloat16):
        monkeypatch.setattr(
            device, "_product_seconds", lambda _, dtype, faster=faster: float(dtype != faster)
        )
        assert choose_precision("auto", CPU) is faster


def test_auto_measures_on_this_machine():
    assert choose_precision("auto", CPU) in (torch.float32, torch.bfloat16)


def test_an_unknown_precision_is_refused():
    with pytest.raises(
        ValueError, match=r"^precision 'int8' is unknown; choose one of auto, float32, bfloat16$"
    ):
        choose_precision("int8", CPU)
