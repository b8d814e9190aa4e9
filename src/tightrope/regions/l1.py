"""The L1 region: every visited signature's distribution is within its Weissman radius of the observed one.

‖P(x) − P̃‖₁ ≤ ε is P(x)(A) − P̃(A) ≤ ε/2 for every set A of outcomes: linear rows in x (paper, Section 3.5).
δ is split over signatures with an unknown outcome, visited or not; visits must be fixed in advance. With more
than `MOST_OUTCOMES` outcomes only single ones and their complements have rows, which is sound and larger.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.rounding import error_factor, up
from tightrope.regions.event_polytope import conflicting_events
from tightrope.regions.halfspaces import Halfspaces, Origin
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import Conflict, Emptiness, RegionKind, RegionTask, Relaxation
from tightrope.regions.tightening import tighten
from tightrope.statistics.confidence_budget import Assumption, ConfidenceBudget, assumed_of
from tightrope.statistics.estimates import share
from tightrope.statistics.intervals import weissman_radius
from tightrope.statistics.outcomes import Outcomes

MOST_OUTCOMES = 8
_MOST_BITS = 62


def uncertain_signatures(outcomes: Outcomes) -> OffsetArray:
    """Signatures with an outcome of unknown probability: those that take a share of δ."""
    unknown = ~outcomes.model.expressions.is_constant[outcomes.expression]
    return np.unique(outcomes.signature[unknown]).astype(np.int64)


class DistributionBalls(RegionKind):
    """Kinds that bound, for every signature, P(A) of sets A of outcomes by the share seen and an excess."""

    method: ClassVar[str]
    assumption: ClassVar[Assumption]

    @abstractmethod
    def excess(self, seen: FloatArray, sets: FloatArray, gamma: float) -> FloatArray:
        """Excesses [signatures, sets] that all hold with probability 1 − γ, from counts; rounded up."""

    def build(self, task: RegionTask) -> Polytope:
        """Every signature's distribution within its ball, δ shared by all signatures."""
        outcomes, coordinates = task.outcomes, task.outcomes.coordinates
        seen, balls = outcomes.pooled(task.counts), len(uncertain_signatures(outcomes))
        gamma = share(task.delta, max(balls, 1))
        matrix, bound, owner, members = ball_rows(self, outcomes, seen, gamma)
        base = Halfspaces.of_domain(coordinates).with_rows(matrix, bound, Origin.L1, owner, members)
        assumed = assumed_of(self.assumption, task.counts.design, tied=True)
        need = self.assumption
        ledger = ConfidenceBudget(task.delta, balls, gamma, self.method, "signatures", need, assumed)
        tightened = tighten(coordinates, base)
        is_exact = isinstance(self, L1Balls) and not coordinates.is_lifted
        relaxation = Relaxation.EXACT if is_exact else Relaxation.OUTER
        region = Polytope.of(self, coordinates, ledger, tightened, relaxation)
        if not tightened.empty:
            return region
        conflict = conflicting_events(coordinates, base, tightened)
        visits, name = outcomes.visits(seen), task.model.structure.choice_name
        examples = [outcomes.example_choice(int(outcomes.start[k])) for k in conflict]
        texts = tuple(
            f"the distribution of {name(choice)} ({visits[k]} visits)"
            for k, choice in zip(conflict, examples, strict=True)
        )
        return region.with_emptiness(Emptiness(True, None, Conflict(conflict, texts)))


def ball_rows(
    kind: DistributionBalls, outcomes: Outcomes, seen: OffsetArray, gamma: float
) -> tuple[FloatArray, FloatArray, OffsetArray, OffsetArray]:
    """(matrix, bound, signature of each row, the outcomes in its set as bits)."""
    functions, ends = outcomes.functions, outcomes.coordinates
    visits, reach = outcomes.visits(seen), np.maximum(np.abs(ends.lower), np.abs(ends.upper))
    signatures = uncertain_signatures(outcomes)
    signatures = signatures[visits[signatures] > 0]
    blocks: list[FloatArray] = []
    bounds: list[FloatArray] = []
    owners: list[OffsetArray] = []
    members: list[OffsetArray] = []
    for width in np.unique(outcomes.width[signatures]).tolist():
        chosen = np.flatnonzero(outcomes.width[signatures] == width)
        member = outcomes.start[signatures[chosen]][:, None] + np.arange(width)
        times = outcomes.multiplicity[member].astype(np.float64)
        expression = outcomes.expression[member]
        linear = functions.linear[expression] * times[:, :, None]
        constant, slack = functions.constant[expression] * times, functions.slack[expression] * times
        rate = seen[member] / visits[signatures[chosen]][:, None]
        sets = _sets(width)
        matrix = np.einsum("am,smx->sax", sets, linear)
        size = np.abs(constant) + rate + np.abs(linear) @ reach
        rounding = error_factor(width + 6) * (2.0 + np.einsum("am,sm->sa", sets, size))
        excess = kind.excess(seen[member].astype(np.float64), sets, gamma)
        room = excess + np.einsum("am,sm->sa", sets, rate - constant + slack)
        blocks.append(matrix.reshape(-1, matrix.shape[2]))
        bounds.append(up((room + rounding).reshape(-1)))
        owners.append(np.repeat(signatures[chosen], len(sets)))
        members.append(np.tile(_bits(sets), len(chosen)))
    empty: list[OffsetArray] = [np.zeros(0, dtype=np.int64)]
    return (
        np.concatenate([*blocks, np.zeros((0, functions.linear.shape[1]))]),
        np.concatenate([*bounds, np.zeros(0)]),
        np.concatenate([*owners, *empty]),
        np.concatenate([*members, *empty]),
    )


def _sets(width: int) -> FloatArray:
    """Indicator rows of the sets of outcomes to write down."""
    if width <= MOST_OUTCOMES:
        number = np.arange(1, 2**width - 1)
        return ((number[:, None] >> np.arange(width)) & 1).astype(np.float64)
    single = np.eye(width)
    return np.concatenate([single, 1.0 - single])


def _bits(sets: FloatArray) -> OffsetArray:
    """Outcome j of a set as bit j; 0 where there are too many outcomes for that."""
    width = sets.shape[1]
    if width > _MOST_BITS:
        return np.zeros(len(sets), dtype=np.int64)
    return sets.astype(np.int64) @ (1 << np.arange(width, dtype=np.int64))


class L1Balls(DistributionBalls):
    """U_L1: every signature's distribution within its Weissman radius (paper, Section 3.5)."""

    value = "l1"
    certificate = "weissman"
    method = "weissman"
    assumption = Assumption.FIXED_DESIGN

    def excess(self, seen: FloatArray, sets: FloatArray, gamma: float) -> FloatArray:
        size = np.full(len(seen), seen.shape[1])
        radius = weissman_radius(size, seen.sum(axis=1).astype(np.int64), gamma)
        return np.repeat(radius[:, None] / 2.0, len(sets), axis=1)


L1 = L1Balls()
