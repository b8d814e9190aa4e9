"""`check` of partially observable models: both ends of what a controller can reach, and the controller."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from msgspec import UNSET

from tightrope.beliefs.robust import RobustController
from tightrope.beliefs.solve import LATE, PartialSolution, closeness
from tightrope.cli import late
from tightrope.cli.check_answers import About, Answered, PropertyAnswer
from tightrope.cli.options import refuse_any, refuse_options
from tightrope.cli.output import count
from tightrope.cli.sources import Loaded, paced
from tightrope.learning.solve import solve_observed
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, Controller, controller_of
from tightrope.numerics.text import interval_text
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem
from tightrope.solver.solution import OPEN
from tightrope.verdict import Assessment, Word

if TYPE_CHECKING:
    from tightrope.cli.check import CheckRequest
    from tightrope.learning.result import LearningResult

    Observed: TypeAlias = PartialSolution | RobustController | LearningResult

NOT_PARTIAL = "misfit open_share assume_support coupled_gap ltl_translator figure all_states terminal_reward"
"""Options that cannot be used with partially observable models."""

WORK = 100_000
"""How much work it does unless --time-limit is given: some ten seconds."""


@dataclass(frozen=True, eq=False)
class PartialSolver:
    """A partially observable model, at a point or (`robust`) over a domain; `given` is evaluated."""

    request: CheckRequest
    pomdp: POMDP
    robust: bool
    point: Sequence[Fraction]
    given: Controller | None

    @staticmethod
    def of(request: CheckRequest, loaded: Loaded, certified: bool) -> PartialSolver:
        """Refuse options that make no sense for it."""
        pomdp = loaded.model
        assert isinstance(pomdp, POMDP)
        refuse_options(request, NOT_PARTIAL, "it cannot be used with partially observable models")
        model, names, sets, at = pomdp.model, pomdp.parameter_names, request.sets, request.at
        parametric = isinstance(model, ParametricMDP)
        robust = bool(sets and names) if parametric else isinstance(model, IntervalMDP)
        refuse_any(
            (
                parametric and sets and (not robust or at or sets.value != "coupled"),
                "--sets for a partially observable model is --sets coupled, without --at, and requires "
                "parameters",
                "leave --sets or --at out",
            ),
            (
                not parametric and (at is not None or sets is not None),
                "--at and --sets require a parametric model; this model has no parameters",
            ),
        )
        point = loaded.point(at) if parametric and (names or at) and not robust else ()
        if robust and certified and parametric:
            late.region.refuse_uncertified(cast(ParametricMDP, model))
        given = None if request.policy is None else controller_of(pomdp, request.policy)
        return PartialSolver(request, pomdp, robust, point, given)

    def answer(self, query: Query) -> Answered:
        """Solve, and say what came out."""
        begin, query = time.perf_counter(), paced(query, self.pomdp)
        work, how = WORK if self.request.time_limit is None else None, self.request.solve_options()
        problem = Problem(self.pomdp, query)
        solved = cast("Observed", solve_observed(problem, self.given, how, self.point, work))
        lower, upper = (
            solved.bounds if isinstance(solved, PartialSolution | RobustController) else solved.interval
        )
        truth = query.answer(lower, upper) if query.is_threshold else None
        answered = _ended(solved) is None if truth is None else truth != OPEN
        verdict = Assessment.of(limit=None if answered else f"{query.text}: {_ended(solved) or 'left open'}")
        record = PropertyAnswer(
            **verdict.facts,
            question=query.text,
            name=query.name or UNSET,
            lower=lower,
            upper=upper,
            status="certified" if answered else "limit",
            answer=truth or UNSET,
            notes=_notes(solved, self.given is not None, closeness(self.request.precision)),
        )
        return Answered(query, solved, time.perf_counter() - begin, record)

    @property
    def about(self) -> About:
        """What a certificate is about."""
        return self.point, self.given, {}

    def save(self, answer: Answered, place: Path) -> None:
        """Write the controller."""
        solved = cast("PartialSolution | RobustController", answer.result)
        low, high = solved.attained if isinstance(solved, PartialSolution) else solved.interval
        solved.controller.save(place, {"property": answer.query.text, "lower": low, "upper": high})


def _ended(solved: Observed) -> str | None:
    """Why bounds are wider than was asked; None where they are not, or where no closeness was asked for."""
    if isinstance(solved, RobustController):
        return LATE if solved.cut else None
    if isinstance(solved, PartialSolution):
        return None if solved.is_certified else solved.status
    return None if solved.verdict.word is Word.PROVED else str(solved.status)


def _notes(solved: Observed, is_given: bool, close: float) -> list[str]:
    """What the bounds are about."""
    if isinstance(solved, RobustController):
        better = "above" if solved.objective.maximises else "below"
        names = () if solved.where is None else solved.controller.pomdp.parameter_names
        at = ",".join(f"{name}={value}" for name, value in zip(names, solved.where or (), strict=False))
        return [
            f"the controller, of {solved.controller.nodes:,} nodes, guarantees {solved.guarantee:.6g}: its "
            f"value lies in {interval_text(*solved.interval)}, whatever the true model is",
            f"robust optimum: no controller guarantees anything {better} {solved.robust_optimum:.6g}, the "
            f"best at {len(solved.points)} single points"
            + (f" (check --at {at} --certificate FILE proves it)" if at else ""),
            f"true optimum: no controller has a value {better} {solved.true_optimum:.6g} in the true model, "
            "whatever it is",
        ]
    if is_given or not isinstance(solved, PartialSolution):
        return ["the bounds are about the given controller"]
    beliefs, nodes = count(solved.beliefs, "belief"), count(solved.controller.nodes, "node")
    size = f"{beliefs} expanded; the controller has {nodes}"
    return [
        "the bounds hold for the best controller that sees observations only",
        f"target: bounds within {close:g} of each other",
        f"gap {solved.upper - solved.lower:.3g}, {size}",
    ]
