"""Where solves run, and what is kept there between them: the caller's to hold on to and to let go.

A solve without a workspace opens one of its own. Whoever solves the same kernel several times on a GPU keeps
one: the model then stays there. Nothing that is kept changes a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tightrope.numerics.team import Team, count_threads
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.iteration.backend import Backend
from tightrope.solver.iteration.host import HostBackend

if TYPE_CHECKING:
    from tightrope.solver.cuda.kernel import CudaOperator


class Workspace:
    """A device by name (`tightrope.solver.cuda.device.DEVICES`), the threads that work on the CPU (None: one
    per core, `tightrope.numerics.team`), and the models that lie on the device.
    """

    def __init__(self, device: str = "cpu", threads: int | None = None) -> None:
        self.device, self.threads = device, count_threads(threads)
        self._placed: dict[int, CudaOperator] = {}
        self._kernels: list[BellmanOperator] = []
        """Those placed: their numbers (`id`) are theirs as long as they live."""

    @contextmanager
    def open(self, kernel: BellmanOperator) -> Iterator[Backend]:
        """The kernel in its place, for one solve. What a device refuses is told in words."""
        if self.device == "cpu":
            with Team(self.threads) as team:
                yield HostBackend(kernel, team)
            return
        from tightrope.solver.cuda.backend import CudaBackend
        from tightrope.solver.cuda.device import explain_failures, open_device

        device = open_device(self.device)
        with explain_failures(device):
            yield CudaBackend(kernel, self.place(kernel))

    def place(self, kernel: BellmanOperator) -> CudaOperator:
        """The kernel on the device, laid out there once."""
        from tightrope.solver.cuda.device import open_device
        from tightrope.solver.cuda.kernel import place

        if id(kernel) not in self._placed:
            self._placed[id(kernel)] = place(kernel, open_device(self.device))
            self._kernels.append(kernel)
        return self._placed[id(kernel)]
