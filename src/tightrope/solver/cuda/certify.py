"""Certificates computed on the device: the checks of `tightrope.solver.certify`, which says what they are.

The same inequalities with the same rounding, over all choices at once; only the policy, the ranking and the
verdict come back to the host. Total rewards, whose rankings have layers, go through the host's version.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.solver.certify import Certificate, certified
from tightrope.solver.cuda.kernel import CudaKernel
from tightrope.solver.decided import Decision
from tightrope.solver.equations import Equations, Meaning


def certified_there(
    kernel: CudaKernel, equations: Equations, decision: Decision, lower: FloatArray, upper: FloatArray
) -> Certificate:
    """Check L ≤ Φ(L) and Φ(U) ≤ U everywhere and find the policy and ranking that go with them."""
    if equations.meaning is Meaning.TOTAL:
        return certified(kernel, kernel.support, equations, decision, lower, upper)
    judged = _Judged(kernel, equations, lower, upper)
    device, maximises = kernel.device, equations.system.agent_maximises
    low_holds, high_holds = judged.low_holds, judged.high_holds
    policy: OffsetArray = device.download(judged.policy)
    ranking = np.zeros(len(lower), np.int64)
    if equations.can_idle:
        level, witness = judged.drawn()
        within = judged.needs_rank()
        drawn_all = bool((~within | (level >= 0)).all())
        if equations.owners_maximise:
            low_holds = low_holds and drawn_all
        else:
            high_holds = high_holds and drawn_all
        ranking = np.maximum(device.download(level), 0).astype(np.int64)
        if equations.agent_owns:
            through: OffsetArray = device.download(witness)
            policy = np.where(through >= 0, through, policy)
        infinite = decision.states & np.isposinf(decision.value)
        if infinite.any():
            ranking[infinite] = decision.layer[infinite]
            shown = infinite & (decision.witness >= 0) & maximises
            policy[shown] = decision.witness[shown]
    free = ~equations.fixed
    if not low_holds:
        lower = np.where(free & ~np.isposinf(lower), equations.system.floor, lower)
    if not high_holds:
        upper = np.where(free & ~decision.states, equations.system.ceiling, upper)
    return Certificate(lower, upper, policy, ranking, low_holds and high_holds)


class _Judged:
    """Safe backups of both bounds, and what follows from them choice by choice, on the device."""

    def __init__(self, kernel: CudaKernel, equations: Equations, lower: FloatArray, upper: FloatArray):
        self.kernel, self.equations = kernel, equations
        device, xp, system = kernel.device, kernel.device.xp, equations.system
        structure = system.structure
        self.low, self.high = device.upload(lower), device.upload(upper)
        self.free = ~device.upload(equations.fixed)
        self.enabled = None if system.enabled.all() else device.upload(system.enabled.view(np.uint8))
        self.good = xp.empty(structure.choices, np.uint8)
        self.slack = xp.empty(structure.choices, np.uint8)
        self.policy = xp.empty(structure.states, np.int64)
        low_holds, high_holds = xp.empty(structure.states, np.bool_), xp.empty(structure.states, np.bool_)
        arguments = [
            self.low,
            self.high,
            self.enabled,
            np.bool_(equations.owners_maximise),
            low_holds,
            high_holds,
            self.policy,
            self.good,
            self.slack,
        ]
        there = kernel.model.system(system, None)
        kernel.settled("judge", arguments, there)
        endless = self.low == np.inf
        self.low_holds = bool((low_holds | endless | ~self.free).all())
        self.high_holds = bool((high_holds | ~self.free).all())

    def needs_rank(self) -> Any:
        """See `certify.needs_rank`."""
        xp = self.kernel.device.xp
        if self.equations.owners_maximise:
            return self.free & (self.low > 0) & xp.isfinite(self.low)
        return self.free & xp.isfinite(self.high)

    def drawn(self) -> tuple[Any, Any]:
        """The round in which each state is drawn to the goal, −1 for never, and the choice it takes there."""
        equations, device = self.equations, self.kernel.device
        xp, system = device.xp, equations.system
        within = self.needs_rank()
        start = ~self.free
        if equations.owners_maximise:
            start = ~within & (self.low != np.inf)
        kept = None
        if equations.nature_owns and self.kernel.lower is not self.kernel.upper:
            values = self.low if equations.owners_maximise else self.high
            kept = xp.empty(system.structure.transitions, np.uint8)
            self.kernel.settled("optimal", [values, np.bool_(system.nature_maximises), self.slack, kept])
        open_choice = self.good
        if not equations.agent_owns:
            open_choice = self.enabled
            if open_choice is None:
                open_choice = xp.ones(system.structure.choices, np.uint8)
        level = xp.where(start, np.int32(0), np.int32(-1)).astype(np.int32)
        witness = xp.full(system.structure.states, -1, np.int64)
        joins = equations.agent_owns, equations.nature_owns
        self.kernel.graph.draw(kept, within.view(np.uint8), open_choice, *joins, level, witness)
        return level, witness
