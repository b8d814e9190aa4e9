"""Does a certificate's file hold what it says: arrays that fit together, a policy of enabled choices?

The first check, so that the others may index without asking.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.certificate.certificate import POLICIES, SETS, Claim, Problem
from tightrope.numerics.arrays import OffsetArray


@dataclass(frozen=True)
class Check:
    """One thing that was checked; `detail` says what went wrong, or what holds."""

    name: str
    passed: bool
    detail: str


def shape_check(problem: Problem, claim: Claim) -> Check:
    """Do the arrays fit together, and does the policy pick choices its states have?"""
    trouble = _shape_problem(problem, claim)
    if trouble:
        return Check("shape", False, trouble)
    return Check("shape", True, "the arrays fit together and the policy picks enabled choices")


_KINDS = {
    "choice_start": "iu",
    "transition_start": "iu",
    "successor": "iu",
    "expression": "iu",
    "policy": "iu",
    "ranking": "iu",
    "target": "b",
    "allowed": "b",
}
"""The kind of number of each array (NumPy's letters); all others are float64."""


def wrong_type(*holders: object) -> str | None:
    """The first array that does not hold the kind of number it should."""
    for holder in holders:
        for name, value in vars(holder).items():
            if isinstance(value, np.ndarray):
                kinds = _KINDS.get(name)
                fits = value.dtype == np.float64 if kinds is None else value.dtype.kind in kinds
                if not fits or value.ndim != 1:
                    return f"'{name}' is an array of {value.ndim} dimensions of {value.dtype}"
            elif name in _KINDS and value is not None:
                return f"'{name}' is not an array"
    return None


def _wrong_number(problem: Problem) -> str | None:
    for name in ("initial", "lower_steps", "upper_steps"):
        value = getattr(problem, name)
        if not (type(value) is int or (value is None and name == "upper_steps")):
            return f"'{name}' is not a whole number"
    if problem.upper_steps is not None and problem.upper_steps < 0:
        return "the upper step bound is negative"
    if not (problem.discount is None or type(problem.discount) is float):
        return "the discount factor is not a number"
    return None if type(problem.complement) is bool else "'complement' is not a truth value"


def _shape_problem(problem: Problem, claim: Claim) -> str | None:
    """Why the arrays cannot be what they say they are, or None."""
    trouble = wrong_type(problem, claim) or _wrong_number(problem)
    if trouble:
        return trouble
    states, choices = len(problem.choice_start) - 1, len(problem.transition_start) - 1
    transitions = len(problem.successor)
    if (
        states < 1
        or not _rises(problem.choice_start, choices)
        or not _rises(problem.transition_start, transitions)
    ):
        return "the graph's offsets do not fit"
    if problem.successor.min() < 0 or problem.successor.max() >= states or not 0 <= problem.initial < states:
        return "a state's number is out of range"
    if problem.expression is not None and (
        problem.sets != "point"
        or problem.expressions is None
        or problem.expression.min() < 0
        or problem.expression.max() >= len(problem.expressions["rows"])
    ):
        return "an expression's number is out of range"
    if problem.agent not in ("MAX", "MIN") or problem.nature not in ("MAX", "MIN"):
        return "the directions are not MAX or MIN"
    if problem.sets not in SETS or claim.policy_kind not in POLICIES:
        return "unknown kind of sets or policy"
    kinds = ("UNTIL", "NEXT", "REACH_REWARD", "CUMULATIVE", "TOTAL", "DISCOUNTED")
    if problem.kind not in kinds:
        return f"unknown kind of objective '{problem.kind}'"
    if (problem.discount is not None) != (problem.kind == "DISCOUNTED") or (
        problem.discount is not None and not 0 < problem.discount < 1
    ):
        return "the discount factor does not fit the objective"
    bounded = problem.kind in ("NEXT", "CUMULATIVE") or problem.upper_steps is not None
    if problem.kind == "CUMULATIVE" and problem.upper_steps is None:
        return "a cumulative reward without its number of steps"
    if problem.lower_steps < 0 or (problem.lower_steps > 0 and problem.kind != "UNTIL"):
        return "the lower step bound does not fit the objective"
    randomised = claim.policy_kind == "randomised"
    has_tail = problem.lower_steps > 0 and problem.upper_steps is None
    sizes = [
        ("target", problem.target, states, problem.kind in ("UNTIL", "NEXT", "REACH_REWARD")),
        ("allowed", problem.allowed, states, False),
        ("terminal", problem.terminal, states, False),
        ("reward", problem.reward, choices, problem.kind not in ("UNTIL", "NEXT")),
        ("probability", problem.probability, transitions, problem.sets == "plain"),
        ("lower", problem.lower, transitions, problem.sets == "interval"),
        ("upper", problem.upper, transitions, problem.sets == "interval"),
        ("expression", problem.expression, transitions, problem.sets == "point"),
        ("claim.lower", claim.lower, states, True),
        ("claim.upper", claim.upper, states, True),
        ("claim.tail_lower", claim.tail_lower, states, has_tail),
        ("claim.tail_upper", claim.tail_upper, states, has_tail),
        ("policy", claim.policy, states, claim.policy_kind == "fixed" or not (randomised or bounded)),
        ("weight", claim.weight, choices, randomised),
        ("ranking", claim.ranking, states, not bounded and problem.kind != "DISCOUNTED"),
    ]
    for name, array, size, required in sizes:
        if array is None:
            if required:
                return f"'{name}' is missing"
        elif array.shape != (size,):
            return f"'{name}' has {array.shape} entries, not {size}"
    for name, array in (("reward", problem.reward), ("terminal", problem.terminal)):
        if array is not None and not np.all(np.isfinite(array)):
            return f"'{name}' has an entry that is not finite"
    return _bound_problem(problem, claim) or _policy_problem(problem, claim)


def _bound_problem(problem: Problem, claim: Claim) -> str | None:
    """Bounds are numbers. −∞ is never needed, and +∞ as a lower bound only where values can be infinite."""
    may_be_infinite = problem.kind in ("REACH_REWARD", "TOTAL")
    for name in ("lower", "upper", "tail_lower", "tail_upper"):
        bound = getattr(claim, name)
        if bound is None:
            continue
        if np.any(np.isnan(bound)) or np.any(bound == -np.inf):
            return f"a {name} bound is not a number, or −∞"
        if name.endswith("lower") and not may_be_infinite and np.any(np.isinf(bound)):
            return f"a {name} bound is infinite, the value is not"
    return None


def _policy_problem(problem: Problem, claim: Claim) -> str | None:
    if claim.policy_kind == "randomised":
        assert claim.weight is not None
        total = np.add.reduceat(claim.weight, problem.choice_start[:-1])
        if np.any(claim.weight < 0) or np.any(np.abs(total - 1) > 2.0**-50):
            return "the policy's weights are not distributions"
        if not np.all(np.isfinite(claim.weight)):
            return "the policy's weights are not distributions"
    elif claim.policy is not None and (
        np.any(claim.policy < problem.choice_start[:-1]) or np.any(claim.policy >= problem.choice_start[1:])
    ):
        return "the policy picks a choice that its state does not have"
    if claim.ranking is not None and np.any(claim.ranking < 0):
        return "a rank is negative"
    return None


def _rises(offsets: OffsetArray, total: int) -> bool:
    return bool(offsets[0] == 0 and offsets[-1] == total and np.all(np.diff(offsets) > 0))
