"""Where a model runs, and in which precision."""

from __future__ import annotations

import os
import platform
from time import perf_counter

import torch

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("auto", "float32", "bfloat16")


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name; ``auto`` takes CUDA, then MPS, then the CPU.

    Raises:
        ValueError: the name is unknown, or this machine has no such device.
    """
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(kind for kind, is_there in available.items() if is_there))
    if name not in DEVICES:
        raise ValueError(f"device {name!r} is unknown; choose one of {', '.join(DEVICES)}")
    if not available[name]:
        there = ", ".join(kind for kind, is_there in available.items() if is_there)
        raise ValueError(f"device {name!r} is not on this machine; there is: {there}")
    return torch.device(name)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The dtype of that name; ``auto`` times a matrix product in both and takes the faster.

    Raises:
        ValueError: the name is unknown.
    """
    if name not in PRECISIONS:
        raise ValueError(f"precision {name!r} is unknown; choose one of {', '.join(PRECISIONS)}")
    if name != "auto":
        return torch.float32 if name == "float32" else torch.bfloat16
    return min(torch.float32, torch.bfloat16, key=lambda dtype: _product_seconds(device, dtype))


def machine_of(device: torch.device) -> str:
    """What to call the machine on a card: its GPU, or how many cores it has."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return f"GPU of an Apple {platform.machine()} processor"
    return f"{os.cpu_count()} CPU cores"


def _product_seconds(device: torch.device, dtype: torch.dtype, repeats: int = 5) -> float:
    left = torch.ones(1024, 256, device=device, dtype=dtype)
    right = torch.ones(256, 1024, device=device, dtype=dtype)
    (left @ right).sum().item()
    times = []
    for _ in range(repeats):
        began = perf_counter()
        (left @ right).sum().item()
        times.append(perf_counter() - began)
    return min(times)
