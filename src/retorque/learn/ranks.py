"""Training in several processes (torchrun): what they exchange so that all of them hold the same network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import Tensor, distributed, nn

from retorque.work.processes import end_with_parent

PATIENCE = timedelta(hours=6)
"""How long a process waits for the others: the first one may be making shards in between."""


class Ranks:
    """The processes that train together, and which of them this is; one alone exchanges nothing."""

    def __init__(self, rank: int = 0, size: int = 1):
        self.rank, self.size = rank, size

    @property
    def first(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def tell(self, values: Sequence[float]) -> list[float]:
        """The first process's numbers, in all processes."""
        if self.size == 1:
            return list(values)
        told = torch.tensor(values, dtype=torch.float64)
        distributed.broadcast(told, 0)
        return told.tolist()

    def share(self, network: nn.Module) -> None:
        """Give all processes the first one's network."""
        if self.size > 1:
            for value in network.state_dict().values():
                distributed.broadcast(value, 0)

    def mean(self, values: Tensor) -> Tensor:
        """The mean over processes, element by element."""
        if self.size > 1:
            values = values.clone()
            distributed.all_reduce(values)
            values /= self.size
        return values

    def average_gradients(self, network: nn.Module) -> None:
        """Replace all gradients by their means over processes, in one exchange.

        A parameter that no process has a gradient of keeps none, so that the optimiser leaves it alone, as it does in
        one process.
        """
        if self.size == 1:
            return
        parameters = list(network.parameters())
        known = torch.tensor([float(p.grad is not None) for p in parameters])
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        exchanged = self.mean(torch.cat([known, *(part.reshape(-1) for part in parts)]))
        at = len(parameters)
        for parameter, share in zip(parameters, exchanged.tolist()[:at], strict=True):
            size = parameter.numel()
            parameter.grad = exchanged[at : at + size].view_as(parameter).clone() if share > 0.0 else None
            at += size

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            distributed.barrier()


@contextmanager
def joined() -> Iterator[Ranks]:
    """Join the other processes that a launcher such as torchrun has started; alone when there are none."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Ranks()
        return
    end_with_parent(os.getppid())  # a launcher that is killed cannot end us
    distributed.init_process_group("gloo", timeout=PATIENCE)
    try:
        yield Ranks(distributed.get_rank(), size)
    finally:
        distributed.destroy_process_group()
