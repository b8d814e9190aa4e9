"""From fixpoint equations to verified bounds on a device: the steps of `tightrope.solver.fixpoint`.

What differs is where they run and how the order is found. Levels of the acyclic part come from rounds on the
device and are backed up level by level, one launch for each and segment; all other states form one block
(`blocks`). Whether any end component could be idled in is asked of the device first; only if so are the
components found, on the host. The policy, the ranking and the final check of every inequality are
`certify`'s.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.solver.cuda.blocks import DeviceBlock
from tightrope.solver.cuda.certify import certified_there
from tightrope.solver.cuda.kernel import CudaKernel, placed
from tightrope.solver.decided import decide
from tightrope.solver.equations import Equations, Meaning
from tightrope.solver.fixpoint import Fixpoint, agent_has_no_choice, default_policy
from tightrope.solver.games import OnePlayer, play
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.meter import Meter
from tightrope.solver.quotient import Quotient, collapse
from tightrope.solver.solution import Status
from tightrope.solver.system import System


def solve_on_device(
    kernel: CudaKernel, equations: Equations, precision: float, relative: bool, meter: Meter
) -> Fixpoint:
    """Verified bounds for every state, within `precision` unless the meter says why not."""
    system, structure = equations.system, equations.system.structure
    lower, upper = equations.value.copy(), equations.value.copy()
    settled = equations.fixed.copy()
    if equations.can_idle:
        sinks = equations.values_of_loops(kernel.graph.only_loops(system.enabled))
        lower[sinks.states], upper[sinks.states] = sinks.value, sinks.value
        settled[sinks.states] = True
    level = kernel.graph.levels(system.enabled, settled)
    if level.min() >= 0:
        policy = default_policy(equations)
        _backward(kernel, system, level, lower, upper, policy)
        ranking = level.astype(np.int64)
        if equations.meaning is Meaning.TOTAL:
            ranking *= structure.states + 1
        return Fixpoint(lower, upper, policy, ranking, system.unit)

    decision = decide(kernel.support, equations)
    known = decision.states
    lower[known], upper[known] = decision.value[known], decision.value[known]
    settled = equations.fixed | known
    quotient = _quotient(kernel, equations, settled)
    if not quotient.is_exact:
        played = play(kernel, equations, precision, relative, meter, _one_player(kernel))
        lower, upper = played.lower, played.upper
    else:
        level = kernel.graph.levels(system.enabled, settled)
        _backward(kernel, quotient.system, level, lower, upper, np.empty(structure.states, np.int64))
        active = level < 0
        if active.any():
            DeviceBlock(kernel, quotient.system, active, relative, meter).solve(lower, upper, precision)
    certificate = certified_there(kernel, equations, decision, lower, upper)
    if not certificate.holds:
        meter.stopped = meter.stopped or Status.PRECISION_LIMIT
    return Fixpoint(
        certificate.lower, certificate.upper, certificate.policy, certificate.ranking, system.unit
    )


def _quotient(kernel: CudaKernel, equations: Equations, settled: BoolArray) -> Quotient:
    """The system with its idle end components collapsed, where there are any."""
    system = equations.system
    if not equations.can_idle:
        return Quotient(system, True)
    idle = system.enabled & (system.reward == 0) if len(system.reward) else system.enabled.copy()
    staying = ~settled
    kernel.graph.settle(None, np.zeros(len(staying), np.bool_), True, True, staying, idle)
    if not staying.any():
        return Quotient(system, True)
    agent_owns, nature_owns = equations.agent_owns, equations.nature_owns
    if agent_has_no_choice(system, settled):
        agent_owns = nature_owns
    return collapse(kernel.support, system, ~settled, agent_owns, nature_owns)


def _backward(
    kernel: CudaKernel,
    system: System,
    level: IndexArray,
    lower: FloatArray,
    upper: FloatArray,
    policy: OffsetArray,
) -> None:
    """Safe backups of both bounds, level after level, of the states above level 0."""
    last = int(level.max(initial=0))
    if last == 0:
        return
    device, model = kernel.device, kernel.model
    equations = model.system(replace(system, leader=np.arange(len(level), dtype=np.int32)), None)
    low, high, chosen = device.upload(lower), device.upload(upper), device.upload(policy)
    queues = []
    for rows in model.layout.segments:
        of_row = level[rows.host_states(device)]
        order = np.argsort(of_row, kind="stable").astype(np.int32)
        ends = np.searchsorted(of_row[order], np.arange(last + 1), side="right")
        queues.append((device.upload(order), ends))
    for turn in range(1, last + 1):
        for index, (order, ends) in enumerate(queues):
            begin, end = int(ends[turn - 1]), int(ends[turn])
            if end > begin:
                arguments = [order[begin:end], np.int64(end - begin), low, high, chosen]
                while True:
                    model.one(index, "backward", equations, arguments)
                    if not model.expanded():
                        break
    lower[:], upper[:] = device.download(low), device.download(high)
    policy[:] = device.download(chosen)


def _one_player(kernel: CudaKernel) -> OnePlayer[CudaKernel]:
    """Solves of a game with one side fixed, on the same device."""

    def solve(
        fixed: CudaKernel | IntervalKernel,
        equations: Equations,
        precision: float,
        relative: bool,
        meter: Meter,
    ) -> Fixpoint:
        return solve_on_device(placed(fixed, kernel.device), equations, precision, relative, meter)

    return solve
