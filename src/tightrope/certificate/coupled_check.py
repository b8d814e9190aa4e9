"""Coupled bounds, link by link: cells that cover the region, models of the value, bounds at the initial
state.

With the true coordinates x in the region (the links before, `tightrope.certificate.learning_check`):

1. x lies in one of the cells of every cut through the tree of splits, since a split leaves nothing out.
2. Each cell with a proof lies in the hull of its points, or is empty (`tightrope.certificate.coupled_cells`).
3. Decided states are those where the guarantee's two vectors meet: there the value is that number whatever x
   is. From open states the policy leads to open or decided ones only. On each cell the models enclose the
   value at every open state (`tightrope.certificate.coupled_models`), or follow from steps made here.
4. Over the points of a cell, model and occupancies bound the value at the initial state
   (`tightrope.certificate.coupled_values`). A node's bound is the better of its own and of the worse of its
   two children's; the root's is also the guarantee's. The root's bounds must reach the claimed ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.certificate.certificate import Problem
from tightrope.certificate.old_checker import boundary_of, is_bounded
from tightrope.certificate.old_coupled import CoupledProof, misfit
from tightrope.certificate.coupled_cells import Cells, hull_misfit
from tightrope.certificate.coupled_models import Frame, Model, Walk, model_misfit
from tightrope.certificate.coupled_steps import after_steps, bounded_model
from tightrope.certificate.coupled_values import Ends, occupancy_ends, polynomial_ends
from tightrope.certificate.inner import Extended
from tightrope.certificate.learning import Guarantee
from tightrope.certificate.polynomials import Polynomial
from tightrope.certificate.region_rows import RowWriter
from tightrope.certificate.shape import Check
from tightrope.certificate.space import Box, Space
from tightrope.certificate.support_check import extended
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray


@dataclass(frozen=True, eq=False)
class Ground:
    """What a coupled proof stands on: the links before it."""

    problem: Problem
    expression: IndexArray
    space: Space
    polynomials: Sequence[Polynomial]
    writer: RowWriter
    box: Box
    guarantees: Sequence[Guarantee]

    def affine(self) -> tuple[Extended, Extended]:
        """Expressions as linear·x + constant, each number off by at most ε."""
        linear = np.zeros((len(self.polynomials), self.space.size), dtype=np.longdouble)
        constant = np.zeros(len(self.polynomials), dtype=np.longdouble)
        for e in np.unique(self.expression).tolist():
            form, level = self.space.affine(self.polynomials[e])
            linear[e], constant[e] = extended(form), extended([level])[0]
        return linear, constant


def is_by_steps(problem: Problem) -> bool:
    """Whether all steps are made by the checker."""
    return is_bounded(problem)


def check_coupled(ground: Ground, proof: CoupledProof, exactly: bool = False) -> list[Check]:
    """All checks of one proof, in order."""
    states = len(ground.problem.choice_start) - 1
    size, count = ground.space.size, len(ground.guarantees)
    trouble = misfit(proof, size, states, count, is_by_steps(ground.problem))
    shape = Check("coupled: shape", trouble is None, trouble or "the parts fit together")
    if trouble is not None:
        return [shape]
    name = ground.guarantees[proof.guarantee].name
    checker = CoupledCheck
    if exactly:
        from tightrope.certificate.coupled_exact import ExactCoupledCheck

        checker = ExactCoupledCheck
    checks = [shape, *checker(ground, proof).checks()]
    return [replace(check, name=f"{name}, {check.name}") for check in checks]


class CoupledCheck:
    """The links of one proof; who writes certificates asks it what still fails."""

    def __init__(self, ground: Ground, proof: CoupledProof):
        self.ground, self.proof, self.problem = ground, proof, ground.problem
        self.guarantee = ground.guarantees[proof.guarantee]
        self.cells = Cells(proof, ground.writer, ground.box)
        self.linear, self.constant = ground.affine()
        self.states = len(self.problem.choice_start) - 1
        self.by_steps = is_by_steps(self.problem)
        lower, upper = self.guarantee.lower, self.guarantee.upper
        if self.problem.lower_steps > 0 and not self.by_steps:
            assert self.guarantee.lower_tail is not None and self.guarantee.upper_tail is not None
            lower, upper = self.guarantee.lower_tail, self.guarantee.upper_tail
        self.finite = np.isfinite(upper)
        self.decided: BoolArray = (lower == upper) & self.finite
        self.decided_value = np.where(self.decided, lower, 0.0)
        all_states = np.arange(self.states, dtype=np.int64)
        self.everywhere = self._walk(all_states) if self.by_steps or self.problem.lower_steps > 0 else None
        self.walk = self.everywhere if self.by_steps else self._walk(proof.state)

    def _walk(self, state: OffsetArray) -> Walk:
        return Walk.of(self.problem, self.guarantee, self.ground.expression, state)

    def checks(self) -> list[Check]:
        checks = [self.closed()]
        ends: dict[int, Ends] = {}
        troubles = []
        points = 0
        for number in range(self.proof.proofs) if checks[0].passed else ():
            found = self.own_ends(number)
            points += len(self.proof.points_of(number))
            if isinstance(found, str):
                troubles.append(f"cell {int(self.proof.node[number])}: {found}")
            else:
                ends[int(self.proof.node[number])] = found
        name = "coupled: every cell's model encloses the value"
        words = f"{len(ends)} cells, {points} points, {len(self.proof.state)} open states"
        detail = f"fails for {len(troubles)} cells, first for {troubles[0]}" if troubles else words
        checks.append(Check(name, not troubles, detail))
        return [*checks, self.reached(ends)]

    def closed(self) -> Check:
        """From open states, which are off the boundary and of finite value, to open or decided states."""
        name = "coupled: open states lead to open or decided ones"
        if self.by_steps:
            return Check(name, True, "every step is made again")
        opened = np.zeros(self.states, dtype=np.bool_)
        opened[self.proof.state] = True
        tail = replace(self.problem, lower_steps=0)
        wrong = opened & (boundary_of(tail)[0] | ~self.finite)
        assert self.walk is not None
        outside = ~(opened | self.decided)[self.walk.successor]
        if len(self.walk.state):
            wrong[self.walk.state] |= np.logical_or.reduceat(outside, self.walk.start[:-1])
        if self.problem.lower_steps == 0 and not (opened | self.decided)[self.problem.initial]:
            wrong[self.problem.initial] = True
        if wrong.any():
            state = int(np.argmax(wrong))
            return Check(name, False, f"fails at {int(wrong.sum())} states, first at state {state}")
        return Check(name, True, f"{len(self.proof.state)} open states")

    def own_ends(self, number: int) -> Ends | str:
        """What a proof says of its cell, or why it says nothing."""
        proof = self.proof
        points = proof.points_of(number)
        if len(points) == 0:
            if not self.cells.is_empty(number):
                return "the cell is not shown to be empty"
            return np.longdouble(np.inf), np.longdouble(-np.inf)
        trouble = self.hull(number)
        if trouble is not None:
            return trouble
        frame = self.frame(number)
        model = self.model(number, frame)
        if isinstance(model, str):
            return model
        initial = self.problem.initial
        low, high = polynomial_ends(model, initial, points, frame.radius)
        for side, dual in enumerate((proof.lower_dual[number], proof.upper_dual[number])):
            if dual >= 0:
                if self.by_steps or self.problem.lower_steps > 0:
                    return "occupancies go with unbounded values"
                assert self.walk is not None
                weights = proof.dual[dual]
                ends = occupancy_ends(self.walk, frame, model, initial, points, weights)
                low, high = (max(low, ends[0]), high) if side == 0 else (low, min(high, ends[1]))
        return low, high

    def hull(self, number: int) -> str | None:
        """Why the points need not enclose the cell, or None."""
        proof = self.proof
        centre, axes = (part[number].astype(np.longdouble) for part in (proof.centre, proof.axes))
        y = proof.points_of(number).astype(np.longdouble)
        reach = np.abs(centre) + np.abs(y) @ np.abs(axes).T
        return hull_misfit(self.cells.rows(number), proof.simplices_of(number), centre + y @ axes.T, reach)

    def frame(self, number: int) -> Frame:
        proof = self.proof
        points = proof.points_of(number)
        return Frame.of(self.linear, self.constant, proof.centre[number], proof.axes[number], points)

    def model(self, number: int, frame: Frame) -> Model | str:
        """The model of a proof at every state, verified, or what is wrong with it."""
        if self.by_steps:
            assert self.walk is not None
            return bounded_model(self.problem, self.walk, frame)
        proof = self.proof
        model = Model.constant(self.decided_value, frame.size)
        parts = (part[number] for part in (proof.value, proof.slope, proof.curve, proof.error))
        model = model.at(proof.state, *parts)
        assert self.walk is not None
        wrong = model_misfit(self.walk, frame, model)
        if wrong.any():
            state = int(proof.state[np.argmax(wrong)])
            return f"the error is too small at {int(wrong.sum())} states, first at state {state}"
        if self.problem.lower_steps > 0:
            assert self.everywhere is not None
            known = self.decided.copy()
            known[proof.state] = True
            model, known = after_steps(self.problem, self.everywhere, frame, model, known)
            if not known[self.problem.initial]:
                return "nothing is known after the first steps"
        return model

    def reached(self, ends: dict[int, Ends]) -> Check:
        """Whether the claimed bounds follow from the tree."""
        proof = self.proof
        name = "coupled: the bounds hold in every cell"
        low, high = self.tree_ends(ends)
        detail = f"[{proof.lower!r}, {proof.upper!r}] over {len(proof.split_node)} splits"
        if not (proof.lower <= low and high <= proof.upper):
            return Check(name, False, f"{detail}, but only [{float(low)!r}, {float(high)!r}] follows")
        return Check(name, True, detail)

    def tree_ends(self, ends: dict[int, Ends]) -> Ends:
        """The bounds at the root from those of single nodes."""
        nowhere = (np.longdouble(-np.inf), np.longdouble(np.inf))
        count = 2 * len(self.proof.split_node) + 1
        known = [ends.get(node, nowhere) for node in range(count)]
        # Children have larger numbers than the node they come from.
        for split in range(len(self.proof.split_node) - 1, -1, -1):
            node = int(self.proof.split_node[split])
            below, above = known[2 * split + 1], known[2 * split + 2]
            low, high = min(below[0], above[0]), max(below[1], above[1])
            known[node] = max(known[node][0], low), min(known[node][1], high)
        initial = self.problem.initial
        low, high = known[0]
        return max(low, self.guarantee.lower[initial]), min(high, self.guarantee.upper[initial])
