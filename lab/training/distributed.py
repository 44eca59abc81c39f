"""Data-parallel training: several processes train one model, each on its share of every batch.

``torchrun`` starts the processes and describes the group in their environment:

    torchrun --nproc-per-node 2 -m headlight.cli train translate --corpus train.tsv --out runs/fr

Every process holds the whole model, makes the same batch and reads its own rows of it. The
gradients are summed before each update, so every process makes the update that a single process
would make. `torch.nn.parallel.DistributedDataParallel` averages gradients instead of summing them,
and has to search every pass for parameters without one, which experts without tokens have.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

# Set by `torchrun` and read by `init_process_group`.
ENVIRONMENT = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class Processes:
    """The process group, as one process sees it; by default a group of one.

    ``rank`` is the number of this process from 0, ``size`` the number of processes, ``device`` the
    device of the tensors they exchange.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Sum each number over the processes."""
        if self.size == 1:
            return list(numbers)
        # MPS has no float64 and exchanges on the CPU.
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return [float(number) for number in total.tolist()]

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return self.sums([float(flag)]) != [0.0]

    def first(self, value: str) -> str:
        """Return the first process's value."""
        if self.size == 1:
            return value
        held: list[str] = [value]
        dist.broadcast_object_list(held, src=0)
        return held[0]

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over the processes.

        A missing gradient counts as zero. If no process has one, it stays missing, so that the
        optimizers skip the same parameters as in a single process.
        """
        if self.size == 1:
            return
        parameters = list(parameters)
        # One tensor for one exchange: the gradients, then the number of processes that have each.
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
    """Join the process group that the environment describes; without one, yield `ALONE`.

    With CUDA the backend is NCCL and each process has its own device; otherwise it is Gloo.

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
    """Return the number of this process on its machine, from 0."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def _own_cuda_device() -> int:
    number, n_devices = local_rank(), torch.cuda.device_count()
    if number >= n_devices:
        raise ValueError(
            f"process {number} has no CUDA device: this machine has {n_devices}; "
            "start at most one process per device, or add --device cpu"
        )
    return number


def _gradient_of(parameter: nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
