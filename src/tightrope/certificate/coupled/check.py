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

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.coupled.cells import Cells, hull_misfit
from tightrope.certificate.coupled.hints import CoupledHints
from tightrope.certificate.coupled.models import Ball, Model, Walk, model_misfit, take_steps
from tightrope.certificate.coupled.values import Ends, occupancy_ends, polynomial_ends
from tightrope.certificate.game.theorem import boundary_of
from tightrope.certificate.verdict import Check

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
        about = self.n, link.space, problem, link.certificate.claims[hints.claim]
        self.walk = Walk.of(*about, self.state)
        self.everywhere = Walk.of(*about, np.arange(states)) if self.steps else self.walk

    def checks(self, ends: Ends) -> tuple[list[Check], Ends]:
        """All checks in order, and the bounds that follow beside those `ends` of the vectors."""
        closed = self.closed()
        own: dict[int, Ends] = {}
        trouble = None
        for proof in range(len(self.hints.node)) if closed.passed else ():
            found = self.own_ends(proof)
            if isinstance(found, str):
                trouble = trouble or f"cell {int(self.hints.node[proof])}: {found}"
            else:
                own[int(self.hints.node[proof])] = found
        words = f"{len(own)} cells, {len(self.hints.point)} points, {len(self.state)} open states"
        name = "coupled: every cell's model encloses the value"
        return [closed, Check(name, trouble is None, trouble or words)], self.tree_ends(own, ends)

    def closed(self) -> Check:
        """From open states, which are off the boundary and of finite value, to open or decided states."""
        known, opened = self.decided.copy(), np.zeros(len(self.decided), dtype=np.bool_)
        known[self.state] = opened[self.state] = True
        wrong = opened & (boundary_of(self.objective, len(known))[0] | ~self.finite)
        wrong[self.state] |= np.logical_or.reduceat(~known[self.walk.successor], self.walk.start[:-1])
        return Check.everywhere("coupled: open states lead to open or decided ones", wrong, "state")

    def own_ends(self, proof: int) -> Ends | str:
        """What a proof says of its cell, or why it says nothing."""
        hints, (points, simplices), initial = self.hints, self.hints.points_of(proof), self.graph.initial
        if len(points) == 0:
            return (inf, -inf) if self.cells.is_empty(proof) else "the cell is not shown to be empty"
        rows = self.cells.rows(int(hints.node[proof]), hints.rows_of(proof))
        shape = points, hints.centre[proof], hints.axes[proof]
        if trouble := hull_misfit(rows, simplices, *shape):
            return trouble
        ball, known = Ball.of(self.walk, *shape), self.decided.copy()
        model = Model.constant(self.n, self.value, ball.size)
        if len(self.state):
            known[self.state] = True
            model.coefficient[self.state] = hints.coefficients_of(self.n, proof)
            model.error[self.state] = self.n.array(hints.error[proof])
        wrong = model_misfit(self.walk, ball, model)
        if wrong.any():
            state = int(self.state[np.argmax(wrong)])
            return f"the error is too small at {int(wrong.sum())} states, first at state {state}"
        if self.steps:
            ball = Ball.of(self.everywhere, *shape)
            model, known = take_steps(self.objective, self.everywhere, ball, model, known, self.steps)
        if not known[initial]:
            return "nothing is known of the initial state"
        low, high = polynomial_ends(ball, model, initial, points)
        duals = int(hints.lower_dual[proof]), int(hints.upper_dual[proof])
        if self.steps and max(duals) >= 0:
            return "occupancies go with unbounded values"
        if duals[0] >= 0:
            low = max(low, occupancy_ends(self.walk, ball, model, initial, points, hints.dual[duals[0]])[0])
        if duals[1] >= 0:
            high = min(high, occupancy_ends(self.walk, ball, model, initial, points, hints.dual[duals[1]])[1])
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
