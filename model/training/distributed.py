"""Processes that train one model together, each on its share of every batch.

``torchrun`` starts them and tells each by its environment which of them it is:

    torchrun --nproc-per-node 2 -m headlight.cli train translate --corpus train.tsv --out runs/fr

Every process holds the whole model, draws the same batch and reads other rows of it. The gradients
are added up before each update, so all make the same one: that of a single process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

# What `torchrun` sets, and what `init_process_group` reads.
ENVIRONMENT = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class Processes:
    """The processes as one of them sees them; as it is made, it is the only one.

    ``rank`` numbers it from 0, ``size`` is how many there are, ``device`` where they exchange
    tensors.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes files and prints."""
        return self.rank == 0

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Each number added up over the processes."""
        if self.size == 1:
            return list(numbers)
        # MPS, which has no float64, exchanges on the CPU.
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return [float(number) for number in total.tolist()]

    def any(self, flag: bool) -> bool:
        """Whether the flag is up in any of them."""
        return self.sums([float(flag)]) != [0.0]

    def first(self, value: str) -> str:
        """What the first of them holds."""
        if self.size == 1:
            return value
        held: list[str] = [value]
        dist.broadcast_object_list(held, src=0)
        return held[0]

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over the processes.

        A process that has none adds nothing; where none of them has one there is none afterwards
        either, so that optimizers leave out the parameters that they would leave out alone.
        """
        if self.size == 1:
            return
        parameters = list(parameters)
        # One tensor, and so one exchange: the gradients, then how many processes have each.
        parts = [_gradient_of(parameter).flatten().to(self.device) for parameter in parameters]
        has_one = torch.tensor([parameter.grad is not None for parameter in parameters])
        total = torch.cat([*parts, has_one.to(parts[0])])
        dist.all_reduce(total)
        *sums, counts = torch.split(total, [*map(len, parts), len(parameters)])
        for parameter, part, count in zip(parameters, sums, counts.tolist(), strict=True):
            parameter.grad = part.view_as(parameter).to(parameter.device) if count else None


ALONE = Processes()


@contextmanager
def join(device: torch.device) -> Iterator[Processes]:
    """Join the processes that the environment speaks of, or stay alone where it names none.

    CUDA devices exchange by NCCL, each process on a device of its own; all others by Gloo.

    Args:
        device: where the model is trained.

    Raises:
        ValueError: there are more processes on this machine than CUDA devices.
    """
    if not all(name in os.environ for name in ENVIRONMENT):
        yield ALONE
        return
    is_cuda = device.type == "cuda"
    if is_cuda:
        torch.cuda.set_device(_own_cuda_device())
    dist.init_process_group("nccl" if is_cuda else "gloo")
    place = torch.device("cuda", torch.cuda.current_device()) if is_cuda else CPU
    try:
        yield Processes(rank=dist.get_rank(), size=dist.get_world_size(), device=place)
    finally:
        dist.destroy_process_group()


def local_rank() -> int:
    """The number of this process among those on its machine; 0 where it is alone."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def _own_cuda_device() -> int:
    number, n_devices = local_rank(), torch.cuda.device_count()
    if number >= n_devices:
        raise ValueError(
            f"process {number} of this machine finds no CUDA device of its own, there being "
            f"{n_devices}; start as many processes as there are devices, or add --device cpu"
        )
    return number


def _gradient_of(parameter: nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
