"""Crashes: what an inference thread must not go on after.

After most exceptions the thread is as good as before. After these nobody knows what state memory,
the accelerator or a compiled library is in, so the thread is replaced and its models with it.
"""

import torch

from headlight.model.cancellation import Cancelled

_OUT_OF_MEMORY = (MemoryError, torch.OutOfMemoryError)

# What PyTorch raises as a plain RuntimeError, by what its message holds.
_NO_MEMORY_SIGNS = ("out of memory", "DefaultCPUAllocator")
_BROKEN_SIGNS = ("CUDA error", "CUDA driver error", "CUBLAS_STATUS", "CUDNN_STATUS", "device-side")


def is_crash(error: BaseException) -> bool:
    """Whether the thread that raised this must be replaced.

    A panic in a compiled library (a tokenizer, say) is no `Exception`.
    """
    if not isinstance(error, Exception):
        return not isinstance(error, Cancelled)
    is_broken = isinstance(error, torch.AcceleratorError) or _says(error, _BROKEN_SIGNS)
    return is_broken or is_out_of_memory(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short, of the processor or of an accelerator."""
    return isinstance(error, _OUT_OF_MEMORY) or _says(error, _NO_MEMORY_SIGNS)


def _says(error: BaseException, signs: tuple[str, ...]) -> bool:
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)
