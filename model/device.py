"""The device that a model runs on, its precision and its errors, and the threads of the CPU."""

from __future__ import annotations

import os
import platform
from time import perf_counter

import torch

from headlight.model.config import require_known

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("auto", "float32", "bfloat16")
_REPEATS = 15
# PyTorch raises these as plain RuntimeErrors.
_MEMORY = ("out of memory", "DefaultCPUAllocator")
_DEVICE = ("CUDA error", "CUDA driver error", "CUBLAS_STATUS", "CUDNN_STATUS")


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of that name; ``auto`` takes CUDA, then MPS, then the CPU.

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
    require_known("device", name, DEVICES)
    if not available[name]:
        there = ", ".join(kind for kind, is_there in available.items() if is_there)
        raise ValueError(f"device {name!r} is not on this machine; the devices are: {there}")
    return torch.device(name)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the dtype of that name; ``auto`` measures whether bfloat16 is faster than float32.

    `_REPEATS` products in each precision alternate, so that the load of other processes hits both
    alike. The fastest of each, the one least disturbed, is compared. bfloat16 has to be faster by
    a tenth, so that noise between two equally fast precisions does not decide.

    Raises:
        ValueError: the name is unknown.
    """
    require_known("precision", name, PRECISIONS)
    if name != "auto":
        return torch.float32 if name == "float32" else torch.bfloat16
    dtypes = (torch.float32, torch.bfloat16)
    for dtype in dtypes:
        _product_seconds(device, dtype)  # the first product of a kind prepares for the others
    times = [[_product_seconds(device, dtype) for dtype in dtypes] for _ in range(_REPEATS)]
    full, half = (min(column) for column in zip(*times, strict=True))
    return torch.bfloat16 if half < 0.9 * full else torch.float32


def choose_threads(asked: int | None = None) -> int:
    """Return the number of threads that PyTorch shall use on the CPU.

    Args:
        asked: the number, if one was asked for. None: all of PyTorch's, or 1 while other processes
            keep the machine busy, that is, if the load average of the last minute is at least half
            the number of cores. A step waits for its slowest thread several times in every layer:
            on two cores at a load of 6, a training step with two threads took 10 to 17 times as
            long as with one.

    Raises:
        ValueError: the number is below 1.
    """
    if asked is not None:
        if asked < 1:
            raise ValueError(f"threads ({asked}) must be at least 1")
        return asked
    return 1 if is_busy() else torch.get_num_threads()


def is_busy() -> bool:
    """Return whether the load average is at least half the cores; False if it is unknown."""
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows has none
        return False
    return load >= (os.cpu_count() or 1) / 2


def machine_of(device: torch.device) -> str:
    """Name the machine for a card: its GPU, or its number of cores."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return f"GPU of an Apple {platform.machine()} processor"
    return f"{os.cpu_count()} CPU cores"


def _product_seconds(device: torch.device, dtype: torch.dtype) -> float:
    """Time one product: as large as in a small model's layer, or large enough to fill a GPU."""
    width, inner = (512, 256) if device.type == "cpu" else (2048, 2048)
    left = torch.ones(width, inner, device=device, dtype=dtype)
    right = torch.ones(inner, width, device=device, dtype=dtype)
    began = perf_counter()
    (left @ right).sum().item()
    return perf_counter() - began


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, of the processor or of an accelerator."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or _says(error, _MEMORY)


def is_device_lost(error: BaseException) -> bool:
    """Return whether an accelerator failed, so that nothing more can be computed on it."""
    return isinstance(error, torch.AcceleratorError) or _says(error, _DEVICE)


def _says(error: BaseException, messages: tuple[str, ...]) -> bool:
    return isinstance(error, RuntimeError) and any(message in str(error) for message in messages)
