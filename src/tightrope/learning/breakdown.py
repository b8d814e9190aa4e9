"""Breakdown point: the model error up to which a policy's guarantee holds.

With model error ε the distribution at every choice and step is within total variation ε of one in the learned
set. The policy's worst value over the sets widened by ε never improves as ε grows. So bisection with verified
solves finds `holds`, up to which a threshold is met, and `fails`, at which it is missed over the widened sets
(`tightrope.ambiguity.sets.widened`), which enclose the balls of total variation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tightrope.ambiguity.sets import Sets, of_domain, widened
from tightrope.errors import InputError, check_number
from tightrope.io.results import Breakdown
from tightrope.learning.options import silent
from tightrope.learning.policy_solver import GIVEN, PolicySolver
from tightrope.model.objective import Direction
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import BoolArray
from tightrope.numerics.text import bound_text

if TYPE_CHECKING:
    from tightrope.learning.result import LearningResult

LEAST = 1e-6
"""No smaller misfit is looked at."""

CLOSENESS = 1.02
"""`fails` is at most so many times `holds`, where the solves decide it."""

MOST = 1 - 2.0**-53


def breakdown(
    result: LearningResult, *, threshold: float | None = None, rows: str | None = None
) -> Breakdown:
    """Find the largest model error (at `rows` alone, if given) at which the robust policy meets a
    `threshold`."""
    sets = result.sets.narrow or result.sets
    touched = _touched(result.model, rows)
    maximises, by_model = result.problem.maximises, result.by_model
    guarantee = by_model.lower if maximises else by_model.upper
    if not math.isfinite(guarantee):
        raise InputError("there is no guarantee that could break down: it is infinite")
    low = Direction.MAX if result.objective.complement else Direction.MIN
    nature = low if maximises else low.opposite

    def worst(sets: Sets) -> tuple[float, float]:
        """Verified bounds on the worst value of the robust policy over sets."""
        solver = PolicySolver(sets, result.objective, result.options, math.inf, silent, solves=1)
        return solver.find(GIVEN, result.policy, nature=nature).bounds

    label = "threshold"
    if threshold is None:
        threshold, label = _half_margin(guarantee, worst(of_domain(sets))[0 if maximises else 1])
    check_number("threshold", threshold)
    wanted = float(threshold)

    def meets(misfit: float) -> bool | None:
        """Whether the threshold is met; None where the solve does not decide it."""
        lower, upper = worst(widened(sets, np.where(touched, misfit, 0.0)))
        if maximises:
            return True if lower >= wanted else False if upper < wanted else None
        return True if upper <= wanted else False if lower > wanted else None

    if guarantee < wanted if maximises else guarantee > wanted:
        holds, fails = -1.0, None
    else:
        holds, fails = _bisect(meets)
    text = _describe(holds, fails, f"{label} {bound_text(wanted, maximises)}", rows)
    return Breakdown(holds, fails, wanted, rows, text)


def _bisect(meets: Callable[[float], bool | None]) -> tuple[float, float | None]:
    """(the largest misfit that was seen to be met, the least that was seen not to be)."""
    holds, fails = 0.0, MOST
    last = meets(fails)
    if last is not False:
        return (fails, None) if last else (holds, fails)
    trial = LEAST
    while fails > CLOSENESS * holds and fails > LEAST:
        is_met = meets(trial)
        if is_met:
            holds = trial
        elif is_met is False:
            fails = trial
        else:  # within the precision of the solves: a little aside of it on both sides
            beside = trial / 1.005, min(trial * 1.005, MOST)
            holds = beside[0] if beside[0] > holds and meets(beside[0]) else holds
            return holds, beside[1] if meets(beside[1]) is False else fails
        trial = math.sqrt(max(holds, LEAST) * fails)
    return holds, fails


def _half_margin(guarantee: float, worst: float) -> tuple[float, str]:
    if not math.isfinite(worst):
        return 2 * guarantee, "threshold: twice the guarantee,"
    return (guarantee + worst) / 2, "threshold: halfway from the guarantee to the worst value in the domain,"


def _touched(model: ParametricMDP, rows: str | None) -> BoolArray:
    """The choices that an assumption touches: all, those that depend on a parameter, those of an action."""
    structure = model.structure
    if rows is None:
        return np.ones(model.choices, dtype=np.bool_)
    names = list(model.parameters.names)
    if rows in names:
        number, table = names.index(rows), model.expressions
        by_monomial = np.array([any(i == number for i, _ in m) for m in table.monomials], dtype=np.bool_)
        depends = np.array([by_monomial[table.monomial[a:b]].any() for a, b in pairwise(table.row_start)])
        result: BoolArray = np.logical_or.reduceat(depends[model.expression], model.transition_start[:-1])
        return result
    actions = [name for name in structure.action_names if name]
    if rows not in actions:
        known = ", ".join([*names, *actions])
        raise InputError(f"`rows` is {rows!r}, neither a parameter nor an action", hint=f"one of {known}")
    return np.asarray(structure.action_of_choice == structure.action_names.index(rows))


def _describe(holds: float, fails: float | None, label: str, rows: str | None) -> str:
    where = "" if rows is None else f" in choices with {rows}"
    if holds < 0:
        return f"does not meet the threshold even without model error ({label})"
    if fails is None:
        return f"holds for any model error{where} over the model's transitions ({label})"
    if holds == 0:
        return f"holds for the learned sets, not for a model error of {fails:.3g} per step{where} ({label})"
    return f"holds for any model error up to {_percent(holds)} per step{where} ({label})"


def _percent(share: float) -> str:
    """Rounded down."""
    scale = 10.0 ** (2 - math.floor(math.log10(100 * share)))
    return f"{math.floor(100 * share * scale) / scale:g}%"
