"""Build the region of a model from counts: one function a kind, and one that dispatches on the kind.

Why a region is empty: a smallest set of events that contradict each other.

The multipliers that prove emptiness (Farkas' lemma) rest on few rows: at most one more than there are
coordinates in an affine system. The events of these rows are candidates, which are then divided and
thinned out for as long as what remains is still provably empty. What is left is irreducible: every one of
its events is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import InputError, choose
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.regions.ellipsoid import Ellipsoid
from tightrope.regions.halfspaces import Halfspaces, Origin, rows_between
from tightrope.regions.l1 import l1_rows, uncertain_signatures
from tightrope.regions.likelihood import DEFAULT_EXCESS, enclose_likelihood
from tightrope.regions.nearby import Nearby, tighten_nearby
from tightrope.regions.polytope import Polytope
from tightrope.regions.quotients import quotient_rows
from tightrope.regions.region import Conflict, Emptiness, Region, RegionKind, Relaxation
from tightrope.regions.slab import enclose_slab
from tightrope.regions.tangent_cuts import LogLikelihood
from tightrope.regions.tightening import DEFAULT_ROUNDS, DEFAULT_TOLERANCE, Tightened, tighten
from tightrope.statistics.bets import Gradient
from tightrope.statistics.coordinates import AffineFunctions, Coordinates
from tightrope.statistics.estimates import EventIntervals, IntervalMethod, check_delta, event_intervals, share
from tightrope.statistics.events import Budget
from tightrope.statistics.least_squares import EllipsoidVersion, least_squares
from tightrope.statistics.ledger import Assumption, Ledger, assumed_of
from tightrope.statistics.maximum_likelihood import LikelihoodMaximiser
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Predictions, prequential
from tightrope.statistics.slab import Levels, place_bets


def irreducible(candidates: Sequence[int], is_empty: Callable[[list[int]], bool]) -> tuple[int, ...]:
    """A smallest subset that is still empty, given that all candidates together are (QuickXplain).

    Halves are tried before single candidates: about k·log(n) questions for a conflict of k among n.
    """

    def explain(background: list[int], grown: bool, options: list[int]) -> list[int]:
        if grown and is_empty(background):
            return []
        if len(options) <= 1:
            return options
        first, second = options[: len(options) // 2], options[len(options) // 2 :]
        needed_second = explain(background + first, True, second)
        needed_first = explain(background + needed_second, bool(needed_second), first)
        return needed_first + needed_second

    return tuple(sorted(explain([], False, list(candidates))))


def conflicting_events(
    coordinates: Coordinates, base: Halfspaces, tightened: Tightened, rounds: int, tolerance: float
) -> tuple[int, ...]:
    """The events (or L1 balls) of an irreducible conflict in an empty system."""
    learned = base.origin >= Origin.EVENT_UPPER

    def is_empty(events: list[int]) -> bool:
        rows = ~learned | np.isin(base.index, events)
        return tighten(coordinates, base.take(rows), rounds, tolerance).empty

    candidates = _indices(base, tightened.used, learned)
    if not is_empty(candidates):
        candidates = _indices(base, np.arange(len(base)), learned)
    return irreducible(candidates, is_empty)


def _indices(base: Halfspaces, rows: OffsetArray, learned: BoolArray) -> list[int]:
    found: list[int] = np.unique(base.index[rows[learned[rows]]]).tolist()
    return found


@dataclass(frozen=True)
class RegionOptions:
    """Everything that is decided before looking at the data."""

    interval: IntervalMethod = IntervalMethod.CLOPPER_PEARSON
    budget: Budget = Budget.TIED
    ellipsoid: EllipsoidVersion = EllipsoidVersion.SOUND
    excess: float = DEFAULT_EXCESS
    rounds: int = DEFAULT_ROUNDS
    tolerance: float = DEFAULT_TOLERANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", choose("interval", IntervalMethod, self.interval))
        object.__setattr__(self, "budget", choose("budget", Budget, self.budget))
        object.__setattr__(self, "ellipsoid", choose("ellipsoid", EllipsoidVersion, self.ellipsoid))


def build_region(
    kind: RegionKind,
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    options: RegionOptions | None = None,
    outcomes: Outcomes | None = None,
    predictions: Predictions | None = None,
    gradient: Gradient | None = None,
) -> Region:
    """The region of a kind; `outcomes` may be passed where they are already known, `predictions` too.

    A slab needs the `gradient` of the value that is bet on.
    """
    options = options or RegionOptions()
    outcomes = outcomes or Outcomes.of(model)
    if kind is RegionKind.POLYTOPE:
        intervals = event_intervals(model, counts, delta, options.interval, options.budget, outcomes)
        return polytope_region(intervals, options.rounds, options.tolerance)
    if kind is RegionKind.L1:
        return l1_region(model, counts, delta, options.rounds, options.tolerance, outcomes)
    if kind is RegionKind.ELLIPSOID:
        return ellipsoid_region(model, counts, delta, options.ellipsoid, outcomes=outcomes)
    if kind is RegionKind.SLAB:
        if gradient is None:
            raise InputError("a slab is narrow along a policy's value, and no value was named to bet on")
        return slab_region(model, counts, delta, gradient, options.excess, outcomes, predictions)
    return likelihood_region(model, counts, delta, options.excess, outcomes, predictions)


def polytope_region(
    intervals: EventIntervals,
    rounds: int = DEFAULT_ROUNDS,
    tolerance: float = DEFAULT_TOLERANCE,
    near: Nearby | None = None,
) -> Polytope:
    """U: the parameters of the domain that satisfy all event intervals (paper, Section 3).

    `near` says where the region of fewer data was; it saves work, and moves the result by rounding alone.
    """
    events = intervals.events
    model = events.outcomes.model
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions).take(events.expression)
    times = events.multiplicity.astype(np.float64)
    if np.any(times > 1.0):
        functions = _scale(functions, times, coordinates)
    linear, above, below = rows_between(functions, intervals.lower, intervals.upper)
    informative = np.flatnonzero((intervals.lower > 0.0) | (intervals.upper < 1.0))
    base = Halfspaces.of_domain(coordinates)
    base = base.with_rows(linear[informative], above[informative], Origin.EVENT_UPPER, informative)
    base = base.with_rows(-linear[informative], below[informative], Origin.EVENT_LOWER, informative)
    if model.expressions.denominators:
        quotients = informative[model.expressions.is_rational[events.expression[informative]]]
        upper_rows, lower_rows = quotient_rows(coordinates, intervals, quotients)
        base = base.with_rows(*upper_rows, Origin.EVENT_UPPER, quotients)
        base = base.with_rows(*lower_rows, Origin.EVENT_LOWER, quotients)
    relaxation = Relaxation.OUTER if coordinates.is_lifted else Relaxation.EXACT
    kind, ledger = RegionKind.POLYTOPE, intervals.ledger
    if near is not None and not coordinates.is_lifted:
        moved = tighten_nearby(base, near)
        if moved is not None:
            return Polytope.of(kind, coordinates, ledger, moved[0], relaxation, enclosure=moved[1])
    tightened = tighten(coordinates, base, rounds, tolerance)
    region = Polytope.of(kind, coordinates, ledger, tightened, relaxation)
    if not tightened.empty:
        return region
    found = conflicting_events(coordinates, base, tightened, rounds, tolerance)
    conflict = Conflict(found, tuple(intervals.describe(event) for event in found))
    return region.with_emptiness(Emptiness(True, None, conflict))


def domain_region(model: ParametricMDP) -> Polytope:
    """The domain itself: what is known without any data, with certainty."""
    coordinates = Coordinates.of(model.expressions, model.parameters)
    tightened = tighten(coordinates, Halfspaces.of_domain(coordinates))
    relaxation = Relaxation.OUTER if coordinates.is_lifted else Relaxation.EXACT
    ledger = Ledger(0.0, 0, 0.0, "the domain, without data", "none", Assumption.ADAPTIVE_ANYTIME)
    return Polytope.of(RegionKind.POLYTOPE, coordinates, ledger, tightened, relaxation)


def l1_region(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    rounds: int = DEFAULT_ROUNDS,
    tolerance: float = DEFAULT_TOLERANCE,
    outcomes: Outcomes | None = None,
) -> Polytope:
    """U_L1: every signature's distribution within its Weissman radius (paper, Section 3.5)."""
    check_delta(delta)
    outcomes = outcomes or Outcomes.of(model)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    seen = outcomes.pooled(counts)
    balls = len(uncertain_signatures(outcomes))
    gamma = share(delta, max(balls, 1))
    reach = np.maximum(np.abs(coordinates.lower), np.abs(coordinates.upper))
    matrix, bound, owner, members = l1_rows(outcomes, functions, reach, seen, gamma)
    base = Halfspaces.of_domain(coordinates).with_rows(matrix, bound, Origin.L1, owner, members)
    assumed = assumed_of(Assumption.FIXED_DESIGN, counts.design, tied=True)
    ledger = Ledger(delta, balls, gamma, "weissman", "signatures", Assumption.FIXED_DESIGN, assumed)
    tightened = tighten(coordinates, base, rounds, tolerance)
    relaxation = Relaxation.OUTER if coordinates.is_lifted else Relaxation.EXACT
    region = Polytope.of(RegionKind.L1, coordinates, ledger, tightened, relaxation)
    if not tightened.empty:
        return region
    found = conflicting_events(coordinates, base, tightened, rounds, tolerance)
    visits = outcomes.visits(seen)
    texts = tuple(
        f"the distribution of {model.structure.choice_name(outcomes.example_choice(int(outcomes.start[k])))} "
        f"({visits[k]} visits)"
        for k in found
    )
    return region.with_emptiness(Emptiness(True, None, Conflict(found, texts)))


def ellipsoid_region(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    version: EllipsoidVersion = EllipsoidVersion.SOUND,
    within_domain: bool | None = None,
    outcomes: Outcomes | None = None,
) -> Ellipsoid:
    """E: self-normalised least squares; cut by the domain unless it is the paper's version."""
    check_delta(delta)
    outcomes = outcomes or Outcomes.of(model)
    sound = version is EllipsoidVersion.SOUND
    coordinates = Coordinates.of(model.expressions, model.parameters, eliminate=sound)
    functions = coordinates.functions(model.expressions)
    squares = least_squares(coordinates, functions, outcomes, outcomes.pooled(counts), delta, version)
    assumption = Assumption.ADAPTIVE_ANYTIME if sound else Assumption.NONE
    method = "least squares, R = 1/√2" if sound else "least squares as published, R = 1/2 (unsound)"
    assumed = assumed_of(assumption, counts.design, tied=True)
    ledger = Ledger(delta, 1, delta, method, "one ellipsoid", assumption, assumed)
    return Ellipsoid(coordinates, ledger, squares, sound if within_domain is None else within_domain)


def likelihood_region(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    excess: float = DEFAULT_EXCESS,
    outcomes: Outcomes | None = None,
    predictions: Predictions | None = None,
) -> Polytope:
    """L: the parameters that explain the data almost as well as a predictable plug-in (METHODS §3)."""
    check_delta(delta)
    outcomes = outcomes or Outcomes.of(model)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    evidence = prequential(coordinates, functions, outcomes, counts, delta, predictions)
    method, assumption = "prequential likelihood ratio", evidence.assumption
    assumed = assumed_of(assumption, counts.design, tied=True, ordered=True)
    ledger = Ledger(delta, 1, delta, method, "one region", assumption, assumed, (evidence.note(),))
    likelihood = LogLikelihood(functions, evidence.weight, evidence.threshold)
    centre = LikelihoodMaximiser.of(coordinates, functions).lifted(evidence.estimate)
    directions = functions.linear[model.expressions.nonconstant]
    region = enclose_likelihood(coordinates, ledger, likelihood, centre, directions, excess)
    return replace(region, evidence=evidence)


def slab_region(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    gradient: Gradient,
    excess: float = DEFAULT_EXCESS,
    outcomes: Outcomes | None = None,
    predictions: Predictions | None = None,
) -> Polytope:
    """A guard and a slab: narrow along the value whose `gradient` is bet on, whatever the dimension."""
    check_delta(delta)
    outcomes = outcomes or Outcomes.of(model)
    coordinates = Coordinates.of(model.expressions, model.parameters)
    levels = Levels.of(delta, gradient.ends, len(coordinates.free))
    guard = likelihood_region(model, counts, levels.guard, excess, outcomes, predictions)
    functions = guard.coordinates.functions(model.expressions)
    maximiser = LikelihoodMaximiser.of(guard.coordinates, functions)
    earlier = None if predictions is None else predictions.bets
    slab = place_bets(outcomes, counts, maximiser, gradient, levels, earlier)
    notes = (
        levels.note(),
        slab.plan.note(),
        gradient.words,
        *slab.missing,
        *(f"guard, {note}" for note in guard.ledger.notes),
    )
    ledger = replace(
        guard.ledger, delta=delta, gamma=delta, method="value slab", budget="guard and bettors", notes=notes
    )
    assert guard.evidence is not None
    direction = gradient(maximiser.lifted(guard.evidence.estimate), 1.0)
    if direction is None:
        direction = np.zeros(guard.coordinates.size)
    return enclose_slab(guard, ledger, outcomes, functions, slab, direction)


def _scale(functions: AffineFunctions, times: FloatArray, coordinates: Coordinates) -> AffineFunctions:
    """m·f for small whole m; the products are rounded, so the slack grows by a few units."""
    reach = np.maximum(np.abs(coordinates.lower), np.abs(coordinates.upper))
    linear = functions.linear * times[:, None]
    constant = functions.constant * times
    slack = functions.slack * times + 2.0**-51 * (np.abs(linear) @ reach + np.abs(constant))
    return AffineFunctions(linear, constant, slack * (1.0 + 1e-9))
