"""Coupled values: the interval of a policy over one parameter vector for the whole run.

It contains the policy's true value, within that over rectangular sets. Regions of many coordinates
are cut along gradients of policies (`regions.likelihood`), without confidence. With more than seven
coordinates a likelihood and bets leave a range of every policy's value (`coupled.ball`), from the joint
region up to a dozen parameters, beyond it at 3/5 of δ. Certificates prove the interval over the sets alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tightrope.ambiguity.sets import SetsKind, rectangular
from tightrope.coupled.ball import LikelihoodBall, ball_of, range_over_ball
from tightrope.coupled.chain import chain_of
from tightrope.coupled.result import CoupledStatus, CoupledValue
from tightrope.coupled.synthesis import CoupledSynthesis, find_coupled_policy
from tightrope.coupled.taylor import ValueGradient
from tightrope.coupled.value import CoupledLimits, bound_coupled_value
from tightrope.io.results import Interval
from tightrope.learning.bet_policy import PolicyBets, bets_of
from tightrope.learning.options import Decisions, Effort
from tightrope.learning.policy_solver import PolicySolver, PolicyValue
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.rounding import down, up
from tightrope.regions.bounds import expression_bounds, parameter_box
from tightrope.regions.joint import join_ledgers
from tightrope.regions.likelihood import cut_along, wants_value_cuts
from tightrope.regions.polytope import Polytope
from tightrope.regions.slab import narrow_along
from tightrope.statistics.bets import Levels, Slab, place_bets
from tightrope.statistics.confidence_budget import ConfidenceBudget, assumed_of
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Evidence, prequential

if TYPE_CHECKING:
    from tightrope.learning.pipeline import Fit, Pipeline, Prepared, SolvedPolicies


COUPLED_SECONDS = 60.0
"""For each coupled value without a time limit; what is found by then is certified."""


PAYS = 1.01
"""Coupled sets are tried where they are forecast, to first order, to be so many times narrower."""

MOST_CORNERS = 64
"""Corners of the region at which values show how much of an interval is real, at most."""

LEAST_GAIN = 1e-3
"""They count where they narrow an interval by this share of its width."""

WORK = 10_000.0
"""What refining may cost by default, about in milliseconds, but counted in cells: not by a clock."""

LEAST_CELLS = 16
CELLS, TIME = CoupledStatus.CELL_LIMIT, CoupledStatus.TIME_LIMIT


def couple_all(
    chain: Pipeline,
    solved: SolvedPolicies,
    fit: Fit | None = None,
    beyond: Sequence[bool] | None = None,
    cells: int | None = None,
) -> SolvedPolicies:
    """All policies over one parameter vector; `beyond`: whether robust and given one were not asked."""
    values = [one for one in (solved.robust, solved.optimistic, solved.value) if one is not None]
    cut = cut_along_gradient(solved.prepared, chain.objective, [one.policy for one in values])
    if cut is not None:
        solver, alone = solved.solver, solved.optimistic is None
        solved = chain.solve(cut, solver.options, solver.deadline, alone=alone, fit=fit)
    robust, value, synthesis, solver = solved.robust, solved.value, None, solved.solver
    if value is not None and (beyond is None or beyond[1]):
        value = replace(couple(solver, value, cells), beyond=beyond is not None)
    if robust is not None and (beyond is None or beyond[0]):
        betted = () if chain.bets is None else chain.bets.policies
        robust, synthesis = couple_robust(solver, robust, betted, cells)
        robust = replace(robust, beyond=beyond is not None)
    return replace(solved, robust=robust, synthesis=synthesis, value=value)


def count_cells(model: ParametricMDP, region: Polytope) -> int:
    """How many cells refining may split off by default, by what one costs in models of this size."""
    transitions, size = model.structure.transitions, region.coordinates.size
    of_chain = transitions * model.states / max(model.choices, 1)
    each = 1.0 + 0.02 * size**3 * math.sqrt(len(region.system.bound)) + of_chain / 1000.0
    return int(min(max(max(WORK, 0.1 * transitions) / each, LEAST_CELLS), CoupledLimits.cells))


def refine(
    chain: Pipeline, solved: SolvedPolicies, decisions: Decisions, spent: float, fit: Fit | None = None
) -> tuple[Decisions, SolvedPolicies]:
    """Couple where a forecast says that it pays; both hold with the region, so take the better one."""
    region, begin = solved.prepared.region, time.perf_counter()
    quotients = bool(chain.model.expressions.denominators)  # of which no certificate holds coupled values
    if solved.prepared.contradiction is not None or not isinstance(region, Polytope) or quotients:
        return decisions, solved
    named = (("robust", solved.robust), ("given", solved.value))
    gains = [None if value is None else _forecast(chain, region, value, name) for name, value in named]
    high = solved.solver.options.effort is Effort.HIGH
    beyond = [one is not None and (high or one >= PAYS) for one in gains]
    known = [one for one in gains if one and one > 0.0]
    gained = f"forecast width {1 / max(known):.0%}" if known else "no forecast"
    if not any(beyond):
        why = f"sets not coupled: the gain is too small ({gained})"
        return replace(decisions, reasons=(*decisions.reasons, why)), solved
    solver, cells = solved.solver, None if high else count_cells(chain.model, region)
    solver.deadline = min(solver.deadline, begin + COUPLED_SECONDS)
    solver.solves_left = max(solver.solves_left, 5)
    coupled = couple_all(chain, solved, fit, beyond, cells)
    seconds = time.perf_counter() - begin
    held = [value.coupled for value in (coupled.robust, coupled.value) if value is not None]
    if any(value is not None and value.status in (CELLS, TIME) for value in held):
        most = f"{cells} cells" if cells is not None else f"{COUPLED_SECONDS:g} s"
        more = "" if high else "; `effort` high goes on"
        for one in {coupled.solver, solver}:
            one.notes.append(f"coupled sets: refining ended at its limit of {most}{more}")
    tried = [
        (sets, f"{name} policy", value.interval, round(took, 6), why)
        for sets, one, took, why in (
            ("rectangular", solved, spent, "independently at every choice"),
            ("coupled", coupled, seconds, gained),
        )
        for (name, value), wanted in zip((("robust", one.robust), ("given", one.value)), beyond, strict=True)
        if value is not None and wanted
    ]
    values = [(solved.robust, coupled.robust), (solved.value, coupled.value)]
    narrowed = [
        _gain(before, after, name == "robust", chain.objective.maximises)
        for name, (before, after) in zip(("robust", "given"), values, strict=True)
    ]
    if max(narrowed) < LEAST_GAIN:
        reasons = (*decisions.reasons, f"sets not coupled: the interval was no narrower ({gained})")
        return replace(decisions, reasons=reasons), replace(solved, tried=tuple(tried))
    reasons = (*decisions.reasons, f"sets coupled: narrower, under the same assumptions ({gained})")
    made = replace(decisions, sets=SetsKind.COUPLED, reasons=reasons)
    return made, replace(coupled, tried=tuple(tried))


def _gain(before: PolicyValue | None, after: PolicyValue | None, one_end: bool, maximises: bool) -> float:
    """By how much of its width coupled sets have narrowed an interval, or moved its guaranteed end."""
    if before is None or after is None or not 0.0 < before.interval.width < math.inf:
        return 0.0
    ends = after.interval.lower - before.interval.lower, before.interval.upper - after.interval.upper
    moved = ends[0 if maximises else 1] if one_end else sum(ends)
    return moved / before.interval.width


def _forecast(chain: Pipeline, region: Polytope, value: PolicyValue, name: str) -> float | None:
    """How many times narrower coupled sets would be, to first order and by corners; None: no telling."""
    model, objective = chain.model, chain.objective
    slope = ValueGradient.of(model, objective, value.policy, chain.outcomes.functions)
    witness = region.emptiness.witness
    if slope is None or (region.evidence is None and witness is None):
        return None
    if region.evidence is not None:
        x = chain.outcomes.maximiser.lifted(region.evidence.estimate)
    else:
        assert witness is not None
        x = witness
    gradient, middle = slope.at(x), slope.value(x)
    if gradient is None or middle is None or not np.any(gradient):
        return None
    (low,), (high,) = region.support(gradient[None, :])
    around, corners = float(gradient @ x), region.vertices
    if corners is None or len(corners) > MOST_CORNERS or region.coordinates.products:
        corners = x[None, :][:0]  # these are many, or products are relaxed
    there = [one for one in map(slope.value, corners) if one is not None and math.isfinite(one)]
    least, most = min([middle, *there]), max([middle, *there])
    wide, narrow = value.interval.width, max(float(high - low), most - least)
    if name == "robust":
        wide, narrow = middle - value.interval.lower, max(around - float(low), middle - least)
        if not objective.maximises:
            wide, narrow = value.interval.upper - middle, max(float(high) - around, most - middle)
    return wide / narrow if narrow > 0.0 and math.isfinite(wide) else None


def couple_robust(
    solver: PolicySolver, rectangular: PolicyValue, betted: Sequence[Policy] = (), cells: int | None = None
) -> tuple[PolicyValue, CoupledSynthesis | None]:
    """The policy with the best coupled guarantee found; candidates are the robust one and those bet on."""
    if solver.objective.depends_on_step:
        return couple(solver, rectangular, cells), None
    solver.progress("solve: the robust policy over the coupled set")
    synthesis = find_coupled_policy(
        solver.sets,
        solver.objective,
        gap=solver.options.coupled_gap,
        limits=_limits(solver, cells),
        robust=rectangular.policy,
        more=[policy for policy in betted if policy.is_deterministic],
    )
    if synthesis.policy != rectangular.policy:
        rectangular = solver.evaluate(synthesis.policy)
    return _narrowed(solver, rectangular, synthesis.value), synthesis


def couple(solver: PolicySolver, rectangular: PolicyValue, cells: int | None = None) -> PolicyValue:
    """A given policy's value over the coupled set."""
    solver.progress("solve: a policy over the coupled set")
    value = bound_coupled_value(
        solver.sets,
        solver.objective,
        rectangular.policy,
        gap=solver.options.coupled_gap,
        limits=_limits(solver, cells),
        rectangular=rectangular.solutions,
    )
    return _narrowed(solver, rectangular, value)


def _narrowed(solver: PolicySolver, rectangular: PolicyValue, value: CoupledValue) -> PolicyValue:
    if value.reason:
        solver.notes.append(f"coupled set: {value.status.value}; {value.reason}")
    lower = max(value.lower, rectangular.interval.lower)
    upper = min(value.upper, rectangular.interval.upper)
    return replace(rectangular, interval=Interval.of(lower, upper), coupled=value)


def _limits(solver: PolicySolver, cells: int | None) -> CoupledLimits:
    left = solver.deadline - time.perf_counter()
    seconds = max(left, 0.0) if math.isfinite(left) else COUPLED_SECONDS
    return CoupledLimits(seconds=seconds, cells=cells or CoupledLimits.cells)


def cut_along_gradient(
    prepared: Prepared, objective: Objective, policies: Sequence[Policy], differences: bool = False
) -> Prepared | None:
    """Cut the region along the policies' values, or their `differences` from the first; None: no need."""
    region, model = prepared.region, prepared.sets.model
    if not isinstance(region, Polytope) or region.evidence is None or region.emptiness.is_empty:
        return None
    if region.slab is None and not wants_value_cuts(region):
        return None
    outcomes = Outcomes.of(model)
    directions = _directions(region, outcomes, objective, policies)
    if differences:
        directions = np.concatenate([directions, directions[1:] - directions[:1]])
    if len(directions) == 0:
        return None
    cut = cut_along(region, outcomes, directions) if wants_value_cuts(region) else region
    cut = narrow_along(cut, model, directions)
    if cut is region or cut.emptiness.is_empty:
        return None
    sets = rectangular(cut, model)
    return replace(prepared, region=cut, sets=sets, box=parameter_box(cut))


def _directions(
    region: Polytope, outcomes: Outcomes, objective: Objective, policies: Sequence[Policy]
) -> FloatArray:
    """The gradients at the estimate, one per policy that has a finite value."""
    assert region.evidence is not None
    x = outcomes.maximiser.lifted(region.evidence.estimate)
    gradients: list[FloatArray] = []
    for policy in policies:
        value = ValueGradient.of(outcomes.model, objective, policy, outcomes.functions)
        gradient = None if value is None else value.at(x)
        if gradient is not None:
            gradients.append(gradient)
    return np.array(gradients).reshape(-1, region.coordinates.size)


MOST_ENTRIES = 2**24
"""Of rows times squared parameters; beyond that values are not modelled."""


@dataclass(frozen=True, eq=False)
class GradientBound:
    """The ball of the likelihood (None without evidence), the bets, and the policies bet on last."""

    ball: LikelihoodBall | None
    slab: Slab | None
    policies: tuple[Policy, ...]
    functions: AffineFunctions
    ledger: ConfidenceBudget

    @staticmethod
    def of(chain: Pipeline, prepared: Prepared) -> GradientBound:
        """From the evidence that a joint region holds, else from the chain's data at their part of δ."""
        model, region = chain.model, prepared.region
        assert region is not None and prepared.intervals is not None
        coordinates, functions = chain.outcomes.coordinates, chain.outcomes.functions
        if region.kind.has_intervals:
            assert isinstance(region, Polytope) and region.evidence is not None  # else δ would be spent twice
            evidence, slab, bets, ledger = region.evidence, region.slab, chain.bets, region.ledger
        else:
            evidence, slab, bets, ledger = _beside(chain, prepared.intervals.ledger)
        bounds = expression_bounds(region, model.expressions, prepared.intervals.expression_bounds())
        box = coordinates.lower, coordinates.upper
        ball = ball_of(evidence, functions, chain.outcomes.maximiser.lifted(evidence.estimate), box, bounds)
        return GradientBound(ball, slab, () if bets is None else bets.policies, functions, ledger)

    def range_of(self, chain: Pipeline, value: PolicyValue) -> Interval | str:
        """The range of a policy's value, or why there is none."""
        model, objective = chain.model, chain.objective
        if isinstance(objective.reward, ParametricReward):
            return "the rewards depend on parameters"
        if self.ball is None:
            return "there is no evidence after the pilot of the likelihood"
        made = chain_of(model, objective, value.policy)
        if isinstance(made, str):
            return made
        if made.rows * len(self.ball.centre) ** 2 > MOST_ENTRIES:
            return "the policy's chain is too large for a model of its value in all parameters"
        ends = range_over_ball(
            made, self.functions, self.ball, self.slab, chain.outcomes, objective.complement
        )
        if ends is None:
            return "no error bound could be verified: for some parameters a play may go on forever"
        low, high = (down(1.0 - ends[1]), up(1.0 - ends[0])) if objective.complement else ends
        return Interval.of(low, high)


def _beside(
    chain: Pipeline, own: ConfidenceBudget
) -> tuple[Evidence, Slab | None, PolicyBets | None, ConfidenceBudget]:
    """A likelihood and bets beside intervals that have a ledger of their own."""
    counts, outcomes = chain.data, chain.outcomes
    delta = chain.split.of_events(bets=False)[1]
    bets = bets_of(chain.model, chain.objective, chain.policy, counts.design, unasked=True)
    guard, slab, notes = delta, None, tuple[str, ...]()
    if bets is not None:
        levels = Levels.of(delta, bets.ends, len(outcomes.coordinates.free), bets.guard_share)
        slab = place_bets(outcomes, counts, bets, levels)
        guard, notes = levels.guard, (levels.note(), slab.plan.note(), bets.words, *slab.notes)
    evidence = prequential(outcomes, counts, guard)
    method, assumed = "likelihood and bets along the value", evidence.assumption
    rest = ConfidenceBudget(
        delta,
        1,
        delta,
        method,
        "one statement",
        assumed,
        assumed_of(assumed, counts.design, tied=True, ordered=True),
        (*notes, evidence.note()),
    )
    both = join_ledgers(chain.split.of_probabilities, own, rest)
    joined = replace(both, events=own.events, gamma=own.gamma, method=own.method, budget=own.budget)
    return evidence, slab, bets, joined


def narrow(chain: Pipeline, solved: SolvedPolicies) -> SolvedPolicies:
    """Meet values over the sets with ranges along values; these hold for all policies at once."""
    prepared, maximises = solved.prepared, chain.objective.maximises
    along, tried = GradientBound.of(chain, prepared), list(solved.tried)
    prepared = replace(prepared, sets=replace(prepared.sets, ledger=along.ledger))

    def meet(value: PolicyValue, name: str) -> PolicyValue:
        begin, notes = time.perf_counter(), solved.solver.notes
        seen = along.range_of(chain, value)
        if isinstance(seen, str):
            notes.append(f"along the value of the {name}: {seen}")
            return value
        low, high = max(value.interval.lower, seen.lower), min(value.interval.upper, seen.upper)
        if low > high:
            notes.append(
                f"along the value of the {name} likelihood and bets leave {seen}, the sets {value.interval}: "
                "under the model they exclude each other with probability at most δ"
            )
            return value
        seconds = round(time.perf_counter() - begin, 6)
        tried.append((prepared.sets.kind.value, name, value.interval, 0.0, "independently at every choice"))
        share = "the region's" if prepared.region and prepared.region.kind.has_intervals else "at 3/5 of δ"
        tried.append(("along the value", name, seen, seconds, f"a likelihood and bets, {share}"))
        return replace(value, interval=Interval.of(low, high))

    robust, value = solved.robust, solved.value
    if robust is not None:
        own, robust = robust.policy, meet(robust, "robust policy")
        for betted in () if chain.objective.depends_on_step else along.policies:
            if betted == own:
                continue
            other = meet(solved.solver.evaluate(betted), "policy that was bet on")
            low, high = (
                other.interval.lower - robust.interval.lower,
                robust.interval.upper - other.interval.upper,
            )
            robust = other if (low if maximises else high) > 0.0 else robust
    if value is not None:
        value = meet(value, "given policy")
    return replace(solved, prepared=prepared, robust=robust, value=value, tried=tuple(tried))
