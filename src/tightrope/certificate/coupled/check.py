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

import numpy as np

from tightrope.certificate.claim import Claim, ValueHints
from tightrope.certificate.coupled.cells import Cells, hull_misfit
from tightrope.certificate.coupled.hints import CoupledHints
from tightrope.certificate.coupled.models import Frame, Model, Walk, after_steps, iterate_model, model_misfit
from tightrope.certificate.coupled.values import Ends, occupancy_ends, polynomial_ends
from tightrope.certificate.game.theorem import boundary_of
from tightrope.certificate.problem import Problem
from tightrope.certificate.region.coordinates import Box
from tightrope.certificate.region.rows import Writer
from tightrope.certificate.verdict import Check

_EMPTY: Ends = (inf, -inf)


class CoupledCheck:
    """The links of one proof about a claim, whose vectors bound the value."""

    def __init__(
        self,
        problem: Problem,
        writer: Writer,
        box: Box,
        hints: CoupledHints,
        claim: Claim,
        vectors: ValueHints,
    ):
        self.hints, self.problem, self.objective = hints, problem, problem.objective
        self.n, self.initial = writer.n, problem.graph.initial
        self.cells = Cells(hints, writer, box)
        self.by_steps, states = self.objective.steps is not None, self.problem.graph.states
        self.decided, self.value = np.zeros(states, dtype=np.bool_), np.zeros(states)
        if hints.point.shape[1] != writer.space.size or hints.state.max(initial=0) >= states:
            raise ValueError("a coupled proof does not fit the coordinates or the states")
        if len(hints.value) != (0 if self.by_steps else len(hints.node)):
            raise ValueError("models do not fit the proofs")
        if not self.by_steps:
            assert vectors.lower is not None and vectors.upper is not None
            self.finite = np.isfinite(vectors.upper)
            self.decided = (vectors.lower == vectors.upper) & self.finite
            self.value = np.where(self.decided, vectors.lower, 0.0)
        about = self.n, writer.space, problem, claim
        everywhere = self.by_steps or self.objective.lower_steps > 0
        self.everywhere = Walk.of(*about, np.arange(states)) if everywhere else None
        self.walk = self.everywhere if self.by_steps else Walk.of(*about, hints.state)

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
        words = f"{len(own)} cells, {len(self.hints.point)} points, {len(self.hints.state)} open states"
        name = "coupled: every cell's model encloses the value"
        return [closed, Check(name, trouble is None, trouble or words)], self.tree_ends(own, ends)

    def closed(self) -> Check:
        """From open states, which are off the boundary and of finite value, to open or decided states."""
        name = "coupled: open states lead to open or decided ones"
        if self.by_steps:
            return Check(name, True, "every step is made again")
        assert self.walk is not None
        states = self.problem.graph.states
        opened = np.zeros(states, dtype=np.bool_)
        opened[self.hints.state] = True
        wrong = opened & (boundary_of(self.objective, states)[0] | ~self.finite)
        if len(self.walk.state):
            outside = ~(opened | self.decided)[self.walk.successor]
            wrong[self.walk.state] |= np.logical_or.reduceat(outside, self.walk.start[:-1])
        if self.objective.lower_steps == 0:
            wrong[self.initial] |= not (opened | self.decided)[self.initial]
        return Check.everywhere(name, wrong, "state")

    def own_ends(self, proof: int) -> Ends | str:
        """What a proof says of its cell, or why it says nothing."""
        hints, n = self.hints, self.n
        points, simplices = hints.points_of(proof)
        if len(points) == 0:
            return _EMPTY if self.cells.is_empty(proof) else "the cell is not shown to be empty"
        rows = self.cells.rows(int(hints.node[proof]), hints.rows_of(proof))
        trouble = hull_misfit(rows, simplices, points, hints.centre[proof], hints.axes[proof])
        if trouble is not None:
            return trouble
        model = self.model(proof, frame := self.frame(proof, self.walk))
        if isinstance(model, str):
            return model
        low, high = polynomial_ends(n, model, self.initial, points, frame.radius)
        for side, dual in enumerate((int(hints.lower_dual[proof]), int(hints.upper_dual[proof]))):
            if dual >= 0:
                if self.by_steps or self.objective.lower_steps > 0:
                    return "occupancies go with unbounded values"
                assert self.walk is not None
                ends = occupancy_ends(self.walk, frame, model, self.initial, points, hints.dual[dual])
                low, high = (max(low, ends[0]), high) if side == 0 else (low, min(high, ends[1]))
        return low, high

    def frame(self, proof: int, walk: Walk | None) -> Frame:
        """The expressions of a walk over a cell."""
        assert walk is not None
        hints, points = self.hints, self.hints.points_of(proof)[0]
        return Frame.of(walk, hints.centre[proof], hints.axes[proof], points)

    def model(self, proof: int, frame: Frame) -> Model | str:
        """The model of a proof at every state, verified, or what is wrong with it."""
        assert self.walk is not None
        hints, n = self.hints, self.n
        if self.by_steps:
            return iterate_model(self.objective, self.walk, frame)
        model = Model.constant(n, self.value, frame.size)
        model = model.at(
            hints.state,
            *(n.array(part[proof]) for part in (hints.value, hints.slope, hints.curve, hints.error)),
        )
        wrong = model_misfit(self.walk, frame, model)
        if wrong.any():
            state = int(hints.state[np.argmax(wrong)])
            return f"the error is too small at {int(wrong.sum())} states, first at state {state}"
        if self.objective.lower_steps > 0:
            assert self.everywhere is not None
            known = self.decided.copy()
            known[hints.state] = True
            model, known = after_steps(
                self.objective, self.everywhere, self.frame(proof, self.everywhere), model, known
            )
            if not known[self.initial]:
                return "nothing is known after the first steps"
        return model

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
