"""What the episodes of a log with times returned, beside what the rates say: reach or not, within a time.

An episode that begins in the initial state is a draw of the chain, whatever its rates are and whether these
are constant. It reaches the target in time, or it does not: it entered a state that is not allowed or from
which nothing leads to the target, or it was watched long enough. Of one that was cut off before nobody knows,
and it counts against either end. The number of episodes was not fixed in advance, so the interval holds at
all times (beta-binomial). A tenth of δ is for it, the rest for the rates, which are about as sharp as a log
allows where they are constant; that is settled by the question alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tightrope.data.exposure import Exposure, Pieces
from tightrope.io.results import Interval
from tightrope.late import dataclass
from tightrope.learning.outcomes import ObservedOutcomes, Unobserved
from tightrope.logic.timed import time_bound
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Structure
from tightrope.monitoring.episode_scores import PathGraph
from tightrope.numerics.arrays import BoolArray
from tightrope.prism.parse.property_syntax import PathFormula, RewardFormula
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.resolve import path_objective
from tightrope.prism.properties.shape import without_negation
from tightrope.statistics.returns import frequency_interval

SHARE = 0.1
"""The part of δ that is for outcomes."""


@dataclass(frozen=True)
class TimedReach:
    """To reach `target` within `end` (None: ever) through `allowed` states; `complement`: not to."""

    target: BoolArray
    allowed: BoolArray
    end: Fraction | None
    complement: bool


def timed_reach(query: Query) -> TimedReach | Unobserved:
    """The question, where episodes can answer it."""
    operator = query.operator
    is_plain = query.kind is QueryKind.PLAIN and operator.condition is None
    if not is_plain or isinstance(operator.path, RewardFormula):
        return Unobserved("only whether a state is reached, or when, shows in single episodes")
    path, negated = without_negation(operator.path)
    if not isinstance(path, PathFormula):
        return Unobserved("only whether a state is reached, or when, shows in single episodes")
    with query.source.complaints():
        formulas = query.state_formulas()
        problem: Objective = path_objective(replace(path, bound=None), formulas, Direction.MAX, Direction.MAX)
        bound = None if path.bound is None else time_bound(path.bound, formulas)
    if problem.kind is not ObjectiveKind.UNTIL or (
        bound is not None and (bound.begin > 0 or bound.after_start)
    ):
        return Unobserved("what is asked begins later than the episode")
    assert problem.target is not None
    allowed = np.ones(len(problem.target), np.bool_) if problem.allowed is None else problem.allowed
    end = None if bound is None else bound.end
    return TimedReach(problem.target, allowed, end, problem.complement != negated)


def observe_times(
    reach: TimedReach, exposure: Exposure, structure: Structure, delta: float
) -> ObservedOutcomes | Unobserved:
    """The probability in the episodes of a log alone, at level 1 − delta."""
    if exposure.pieces is None:
        return Unobserved("the rows of the log are not at hand")
    pieces = exposure.pieces()
    begins = np.flatnonzero(np.diff(pieces.episode, prepend=-1))
    chosen = pieces.state[begins] == structure.initial
    won, lost = _score(reach, pieces, structure, begins)
    number = int(chosen.sum())
    if not number:
        return Unobserved("no episode begins in the initial state")
    successes, failures = int((won & chosen).sum()), int((lost & chosen).sum())
    lower, upper, method = frequency_interval(successes, failures, number, delta, planned=False)
    if reach.complement:
        lower, upper = max(math.nextafter(1.0 - upper, -1.0), 0.0), min(math.nextafter(1.0 - lower, 2.0), 1.0)
    return ObservedOutcomes(
        Interval(lower, upper),
        delta,
        number,
        successes + failures,
        successes,
        failures,
        method,
        "the chain",
        complement=reach.complement,
        elsewhere=len(begins) - number,
    )


def _score(
    reach: TimedReach, pieces: Pieces, structure: Structure, begins: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> tuple[BoolArray, BoolArray]:
    """Which episodes reach the target in time, and which do not whatever comes."""
    graph = PathGraph.of(structure, np.ones(structure.choices, np.bool_), np.zeros(structure.choices))
    hopeless = ~graph.may_and_must(reach.target, reach.allowed)[0]
    late = math.inf if reach.end is None else float(reach.end)
    first = []
    for states in (reach.target, hopeless):
        time = np.where(states[pieces.state], pieces.since_start, math.inf)
        first.append(np.minimum.reduceat(time, begins))
    hit, doomed = first
    watched = np.maximum.reduceat(pieces.since_start + pieces.duration, begins)
    won: BoolArray = (hit <= late) & (hit <= doomed) & np.isfinite(hit)
    never: BoolArray = ~won & ((np.isfinite(doomed) & (doomed <= late)) | (watched > late) | np.isfinite(hit))
    return won, never
