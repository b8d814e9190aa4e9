"""A kernel's backups on a device, for certificates, horizons and games.

`safe_choices` rounds as the host's kernels do, operation by operation: over boxes the two agree bit by bit.
Over rectangular sets a walk may end at another vertex; both values are safe.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tightrope.errors import InputError
from tightrope.model.graph.support import Support
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import Backups
from tightrope.solver.bellman.rectangular import RectangularOperator
from tightrope.solver.cuda.device import Device
from tightrope.solver.cuda.graph import DeviceGraph
from tightrope.solver.cuda.model import DeviceModel, DeviceSystem
from tightrope.solver.equations.system import System


class CudaOperator:
    """The backups of `host` on `device`."""

    def __init__(self, host: IntervalOperator | RectangularOperator, device: Device):
        self.device = device
        self.model = DeviceModel(host, device)
        self._lower, self._upper = host.lower, host.upper

    @property
    def structure(self) -> Structure:
        return self.model.structure

    @property
    def lower(self) -> FloatArray:
        return self._lower

    @property
    def upper(self) -> FloatArray:
        return self._upper

    @cached_property
    def graph(self) -> DeviceGraph:
        return DeviceGraph(self.model)

    @cached_property
    def support(self) -> Support:
        """The graph of the model, whose fixpoints the device computes."""
        return Support(self.structure, self.lower, self.upper, engine=self.graph)

    def safe_choices(self, system: System, values: FloatArray, upward: bool) -> FloatArray:
        """Φ_c(values) for every choice, rounded to the side of `upward`."""
        out = self.device.xp.empty(self.structure.choices)
        arguments = [self.device.upload(values), np.bool_(upward), out]
        self.repeat("safe_choices", arguments, DeviceSystem(self.device, system, None))
        result: FloatArray = self.device.download(out)
        return result

    def optimal_transitions(self, values: FloatArray, maximise: bool) -> BoolArray:
        """Transitions of some optimal answer of nature; over a region those of one answer."""
        if self.lower is self.upper:
            return self.support.possible
        out = self.device.xp.empty(self.structure.transitions, np.uint8)
        self.repeat("optimal", [self.device.upload(values), np.bool_(maximise), None, out])
        result: BoolArray = self.device.download(out).view(np.bool_)
        return result

    def answer(self, values: FloatArray, maximise: bool) -> FloatArray:
        """Nature's optimal distribution at every choice."""
        out = self.device.xp.empty(self.structure.transitions)
        self.repeat("answers", [self.device.upload(values), np.bool_(maximise), out])
        result: FloatArray = self.device.download(out)
        return result

    def repeat(self, name: str, arguments: list[object], system: DeviceSystem | None = None) -> None:
        """Launch until no walk asks for a vertex."""
        while True:
            self.model.each(name, system, arguments)
            if not self.model.expanded():
                return


def place(kernel: Backups, device: Device) -> CudaOperator:
    """The kernel laid out on the device."""
    if not isinstance(kernel, IntervalOperator | RectangularOperator):
        raise InputError(f"no GPU kernels for sets of the kind {type(kernel).__name__}")
    return CudaOperator(kernel, device)
