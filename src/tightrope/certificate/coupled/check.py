"""Coupled bounds, link by link: cells that cover the region, models, bounds at the initial state.

With the true coordinates x in the region (the links before, `tightrope.certificate.learned`):

1. x lies in one of the cells of every cut through the tree of splits, since a split leaves nothing out.
2. Each cell with a proof lies in the hull of its points, or is empty (`tightrope.certificate.coupled.cells`).
3. Decided states are those where the claim's two vectors meet: there the value is that number whatever x is.
   From open states the policy leads to open or decided ones only. On each cell the models enclose the value
   at every open state, or follow from steps made here (`tightrope.certificate.coupled.models`).
4. Over the points of a cell, model and occupancies bound the value at the initial state
   (`tightrope.certificate.coupled.values`). A node's bound is the better of its own and of the worse of its
   two children's; the root's is also that of the vectors.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.coupled.cells import Cells, hull_misfit, unproved
from tightrope.certificate.coupled.hints import CoupledHints
from tightrope.certificate.coupled.models import Ball, Model, Walk, model_misfit, take_steps
from tightrope.certificate.coupled.values import Ends, occupancy_ends, polynomial_ends
from tightrope.certificate.game.theorem import boundary_of
from tightrope.certificate.numbers import RATIONAL, Arithmetic, OutOfRange
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

if TYPE_CHECKING:
    from tightrope.certificate.learned import Learned


class CoupledCheck:
    """The links of one proof about a claim, whose vectors bound the value.

    Models are of the value after `steps` steps, which are then made here. Where steps are bounded, that value
    is known everywhere; otherwise where the vectors meet.
    """

    def __init__(self, link: Learned, hints: CoupledHints):
        problem, vectors = link.problem, link.certificate.values[hints.claim]
        if link.hints.region is None:
            raise ValueError("a coupled proof without a region")
        if problem.objective.earned is not None or problem.denominator is not None:
            raise ValueError("a coupled proof about rewards with parameters, or quotients")
        self.hints, self.objective, self.graph = hints, problem.objective, problem.graph
        self.n, states = link.n, problem.graph.states
        self.cells = Cells(hints, link.projection.writer, link.projection.box)
        if hints.point.shape[1] != link.space.size or hints.state.max(initial=0) >= states:
            raise ValueError("a coupled proof does not fit the coordinates or the states")
        self.steps, self.state = self.objective.lower_steps, hints.state
        if vectors.lower is not None and vectors.upper is not None:
            self.finite = np.isfinite(vectors.upper)
            self.decided = (vectors.lower == vectors.upper) & self.finite
            self.value = np.where(self.decided, vectors.lower, 0.0)
        else:
            self.finite = self.decided = np.ones(states, dtype=np.bool_)
            self.steps, self.state = self.objective.steps or 0, hints.state[:0]
            target = self.objective.target
            self.value = np.zeros(states) if target is None else target.astype(np.float64)
        if len(hints.value) != (0 if vectors.lower is None else len(hints.node)):
            raise ValueError("models do not fit the proofs")
        self.claim = link.certificate.claims[hints.claim]
        self.about = link.space, problem, self.claim
        self.walk = Walk.of(self.n, *self.about, self.state)
        self._walks = {(self.n, False): self.walk}

    def checks(self, ends: Ends) -> tuple[list[Check], Ends]:
        """All checks in order, and the bounds that follow beside those `ends` of the vectors."""
        closed = self.closed()
        own: dict[int, Ends] = {}
        trouble, count = None, len(self.hints.node) if closed.passed else 0
        for proof in range(count):
            found = self.own_ends(proof)
            if isinstance(found, str):
                trouble = trouble or f"cell {int(self.hints.node[proof])}: {found}"
            else:
                own[int(self.hints.node[proof])] = found
        words = f"{len(own)} cells, {len(self.hints.point)} points, {len(self.state)} open states"
        name = "coupled: every cell's model encloses the value"
        low, high = self.tree_ends(own, ends)
        for proof in range(count) if trouble is None and not self.n.exact else ():
            node = int(self.hints.node[proof])
            if (low < self.wanted[0] and own[node][0] < self.wanted[0]) or (
                high > self.wanted[1] and own[node][1] > self.wanted[1]
            ):  # rounding may have cost it
                own[node] = self.ends(RATIONAL, proof) or own[node]
        return [closed, Check(name, trouble is None, trouble or words)], self.tree_ends(own, ends)

    @property
    def wanted(self) -> Ends:
        """What is claimed of the value, before `complement`."""
        low, high = (Fraction(end) if isfinite(end) else end for end in (self.claim.lower, self.claim.upper))
        return (1 - high, 1 - low) if self.objective.complement else (low, high)

    def closed(self) -> Check:
        """From open states, which are off the boundary and of finite value, to open or decided states."""
        known, opened = self.decided.copy(), np.zeros(len(self.decided), dtype=np.bool_)
        known[self.state] = opened[self.state] = True
        wrong = opened & (boundary_of(self.objective, len(known))[0] | ~self.finite)
        wrong[self.state] |= np.logical_or.reduceat(~known[self.walk.successor], self.walk.start[:-1])
        return Check.everywhere("coupled: open states lead to open or decided ones", wrong, "state")

    def own_ends(self, proof: int) -> Ends | str:
        """What a proof says of its cell, or why it says nothing."""
        hints, (points, simplices) = self.hints, self.hints.points_of(proof)
        if len(points) == 0:
            return (inf, -inf) if self.cells.is_empty(proof) else "the cell is not shown to be empty"
        rows, shape = self.cells.rows(int(hints.node[proof]), hints.rows_of(proof)), self.shape(proof)
        if trouble := hull_misfit(self.n, rows, simplices, *shape):
            return trouble
        model, _ = self.model(proof)

        def encloses(n: Arithmetic, which: OffsetArray) -> BoolArray:
            whole = n is self.n and len(which) == len(self.state)
            walk = self.walk if whole else Walk.of(n, *self.about, self.state[which])
            try:
                return ~model_misfit(walk, Ball.of(walk, *shape), model)
            except OutOfRange:
                return np.zeros(len(which), dtype=np.bool_)

        wrong = unproved(self.n, len(self.state), encloses)
        if len(wrong):
            state = int(self.state[wrong[0]])
            return f"the error is too small at {len(wrong)} states, first at state {state}"
        if self.steps and max(hints.lower_dual[proof], hints.upper_dual[proof]) >= 0:
            return "occupancies go with unbounded values"
        try:
            return self.ends(self.n, proof) or "nothing is known of the initial state"
        except OutOfRange:
            return self.ends(RATIONAL, proof) or "nothing is known of the initial state"

    def shape(self, proof: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.hints.points_of(proof)[0], self.hints.centre[proof], self.hints.axes[proof]

    def model(self, proof: int) -> tuple[Model, BoolArray]:
        """What the file says of the value after all steps, and where it says something."""
        model, known = Model.constant(self.value, self.hints.point.shape[1]), self.decided.copy()
        if len(self.state):
            known[self.state] = True
            model.coefficient[self.state] = self.hints.coefficients_of(proof)
            model.error[self.state] = self.hints.error[proof]
        return model, known

    def ends(self, n: Arithmetic, proof: int) -> Ends | None:
        """Bounds of the value at the initial state over a cell whose model encloses it, where it is known."""
        hints, shape, initial = self.hints, self.shape(proof), self.graph.initial
        if (n, self.steps > 0) not in self._walks:
            states = np.arange(self.graph.states) if self.steps else self.state
            self._walks[n, self.steps > 0] = Walk.of(n, *self.about, states)
        walk, (model, known) = self._walks[n, self.steps > 0], self.model(proof)
        ball = Ball.of(walk, *shape)
        if self.steps:
            model, known = take_steps(self.objective, walk, ball, model, known, self.steps)
        if not known[initial]:
            return None
        low, high = polynomial_ends(ball, model, initial, shape[0])
        duals = int(hints.lower_dual[proof]), int(hints.upper_dual[proof])
        if duals[0] >= 0:
            low = max(low, occupancy_ends(walk, ball, model, initial, shape[0], hints.dual[duals[0]])[0])
        if duals[1] >= 0:
            high = min(high, occupancy_ends(walk, ball, model, initial, shape[0], hints.dual[duals[1]])[1])
        return low, high

    def tree_ends(self, own: dict[int, Ends], ends: Ends) -> Ends:
        """The bounds at the root from those of single nodes, and from the vectors."""
        count = len(self.hints.split_node)
        known = [own.get(node, (-inf, inf)) for node in range(2 * count + 1)]
        for split in range(count - 1, -1, -1):  # children have larger numbers than the node they come from
            node = int(self.hints.split_node[split])
            below, above = known[2 * split + 1], known[2 * split + 2]
            low, high = min(below[0], above[0]), max(below[1], above[1])
            known[node] = max(known[node][0], low), min(known[node][1], high)
        return max(known[0][0], ends[0]), min(known[0][1], ends[1])
