"""The checks of `tightrope.certificate.checker` in exact rationals, for models small enough.

Same conditions, no rounding at all, and a second way to nature's optimum: sort and pour
(`tightrope.certificate.rational`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope.certificate.certificate import Certificate, Claim
from tightrope.certificate.old_checker import SIDES, boundary_of, is_bounded, tail_of
from tightrope.certificate.rational import Number, RationalGame, RationalRow, number
from tightrope.certificate.shape import Check, shape_check

MOST_TRANSITIONS = 200_000


def verify_exactly(certificate: Certificate) -> list[Check]:
    """As `checker.verify`, in rationals."""
    problem, claim = certificate.problem, certificate.claim
    shape = shape_check(problem, claim)
    if not shape.passed:
        return [shape]
    game = RationalGame(problem, claim)
    checks = [shape, proper_sets(game)]
    if not checks[-1].passed:
        return checks
    for side in SIDES:
        checks += prove_side_exactly(game, side)
    crossed = np.flatnonzero(claim.lower > claim.upper).tolist()
    return [*checks, _verdict("lower ≤ upper", crossed, len(claim.lower))]


def prove_side_exactly(game: RationalGame, side: str) -> list[Check]:
    """As `checker.prove_side`, in rationals."""
    problem, upward = game.problem, side == "upper"
    if is_bounded(problem):
        return [_bounded(game, upward)]
    if problem.lower_steps > 0:
        tail = game.with_claim(tail_of(game.claim))
        return [_inductive(tail, upward), *_ranked(tail, upward), _after_steps(game, upward)]
    return [_inductive(game, upward), *_ranked(game, upward)]


def proper_sets(game: RationalGame) -> Check:
    """Distributions exist within the bounds; an exact point's probabilities sum to 1 exactly."""
    wrong = []
    for choice, row in enumerate(game.rows):
        tolerance = Fraction(0) if game.problem.sets == "point" else Fraction(len(row.lower) + 2, 2**52)
        fits = sum(row.lower) <= 1 + tolerance and sum(row.upper) >= 1 - tolerance
        if not fits or any(not 0 <= low <= high <= 1 for low, high in zip(row.lower, row.upper, strict=True)):
            wrong.append(choice)
    name = "the sets are sets of distributions"
    if wrong:
        return Check(name, False, f"fails at {len(wrong)} choices, first at choice {wrong[0]}, in rationals")
    return Check(name, True, f"at all {len(game.rows)} choices, in rationals")


def _inductive(game: RationalGame, upward: bool) -> Check:
    problem, claim = game.problem, game.claim
    boundary, given = boundary_of(problem)
    x = [number(v) for v in (claim.upper if upward else claim.lower)]
    own = problem.agent == ("MIN" if upward else "MAX")
    wrong = []
    for s in range(len(x)):
        needed = Fraction(float(given[s])) if boundary[s] else game.value(s, x.__getitem__, upward, own)
        if (needed > x[s] if upward else needed < x[s]) or (
            upward and problem.kind in ("UNTIL", "TOTAL") and x[s] < 0
        ):
            wrong.append(s)
    return _verdict(f"{'upper' if upward else 'lower'} bound is inductive", wrong, len(x))


def _ranked(game: RationalGame, upward: bool) -> list[Check]:
    problem, claim = game.problem, game.claim
    if problem.kind == "DISCOUNTED":
        return []
    states = range(len(claim.lower))
    boundary, _ = boundary_of(problem)
    negative = any(
        game.rows[c].reward < 0
        for s in states
        if not boundary[s]
        for _, choices in game.options(s, own=False)
        for c in choices
    )
    if problem.kind != "UNTIL" and negative:
        return [Check("rewards", False, "a negative reward voids the argument for unbounded rewards")]
    if upward:
        if problem.kind != "REACH_REWARD":
            return []
        assert problem.target is not None
        absorbed = [bool(v) for v in problem.target]
        finite = [s for s in states if not boundary[s] and np.isfinite(claim.upper[s])]
        missing = [s for s in finite if not _moves(game, s, absorbed, "MIN")]
        return [_verdict("the play behind the upper bound reaches the target", missing, len(states))]
    endless = [bool(not boundary[s] and np.isinf(claim.lower[s])) for s in states]
    if problem.kind == "REACH_REWARD":
        unsure = [s for s in states if endless[s] and not _misses(game, s, endless)]
        return [_verdict("the target is missed where the lower bound is infinite", unsure, len(states))]
    zero = [bool(claim.lower[s] == 0 or (problem.kind == "UNTIL" and boundary[s])) for s in states]
    needed = [s for s in states if not boundary[s] and 0 < claim.lower[s] < np.inf]
    missing = [s for s in needed if not _moves(game, s, zero, "MAX")]
    stops = _verdict("the play behind the lower bound stops", missing, len(states))
    if problem.kind == "UNTIL":
        return [stops]
    unsure = [s for s in states if endless[s] and not _earns(game, s, endless)]
    return [stops, _verdict("the reward never ends where the lower bound is infinite", unsure, len(states))]


def _nature_owns(game: RationalGame, owner: str) -> bool:
    return game.problem.sets == "interval" and game.problem.nature == owner


def _moves(game: RationalGame, state: int, absorbed: list[bool], owner: str) -> bool:
    """Progress of the owners; see `tightrope.certificate.progress`."""
    problem, claim = game.problem, game.claim
    assert claim.ranking is not None
    upward = owner == "MIN"
    bound = claim.upper if upward else claim.lower

    def x(s: int) -> Number:
        return number(float(bound[s]))

    own = problem.agent == owner
    options = game.options(state, own)
    here = game.value(state, x, upward, own)
    moved = []
    for _, choices in options:
        outcomes = []
        for c in choices:
            row = game.rows[c]
            good = [absorbed[s] or bool(claim.ranking[s] < claim.ranking[state]) for s in row.successor]
            if problem.kind == "TOTAL" and row.reward > 0:
                outcomes.append(True)
            elif not _nature_owns(game, owner):
                outcomes.append(row.every(good))
            else:
                backed = here if len(options) > 1 else game.backed(c, x, upward)
                strict = backed < x(state) if upward else backed > x(state)
                outcomes.append(_some(row, good, [x(s) for s in row.successor], strict, owner))
        moved.append(all(outcomes))
    return any(moved)


def _some(row: RationalRow, good: list[bool], values: list[Number], strict: bool, owner: str) -> bool:
    upper = row.upper
    if owner == "MIN":
        upper = [Fraction(0) if v == np.inf else u for u, v in zip(upper, values, strict=True)]
    narrowed = RationalRow(row.successor, row.lower, upper, row.reward)
    if not any(g and narrowed.can_be_positive(i) for i, g in enumerate(good)):
        return False
    if strict:
        return True
    largest = 1 + max((abs(Fraction(v)) for v in values if v != np.inf), default=Fraction(0))
    finite = [largest if v == np.inf else Fraction(v) for v in values]
    weight = narrowed.pour(finite, upper, owner == "MAX", good)
    return any(g and w > 0 for g, w in zip(good, weight, strict=True))


def _misses(game: RationalGame, state: int, endless: list[bool]) -> bool:
    rank = game.claim.ranking
    assert rank is not None
    moved, stayed = [], []
    for _, choices in game.options(state, own=game.problem.agent == "MAX"):
        downs, stays = [], []
        for c in choices:
            row = game.rows[c]
            down = [endless[s] and bool(rank[s] < rank[state]) for s in row.successor]
            level = [endless[s] and bool(rank[s] <= rank[state]) for s in row.successor]
            reached, kept = _reach_and_stay(game, row, down, level)
            downs.append(reached)
            stays.append(kept)
        moved.append(all(d or k for d, k in zip(downs, stays, strict=True)) if len(choices) > 1 else downs[0])
        stayed.append(all(stays))
    return any(moved) or all(stayed)


def _earns(game: RationalGame, state: int, endless: list[bool]) -> bool:
    rank = game.claim.ranking
    assert rank is not None
    size = len(rank) + 1
    layer = int(rank[state]) // size
    options = game.options(state, own=game.problem.agent == "MAX")
    sooner, stays, moves = [], [], []
    for _, choices in options:
        parts = []
        for c in choices:
            row = game.rows[c]
            less = [endless[s] and int(rank[s]) // size < layer for s in row.successor]
            level = [endless[s] and int(rank[s]) // size <= layer for s in row.successor]
            closer = [
                inside and bool(rank[s] < rank[state]) for inside, s in zip(level, row.successor, strict=True)
            ]
            reached, kept = _reach_and_stay(game, row, less, level)
            cut = [u if inside else Fraction(0) for u, inside in zip(row.upper, level, strict=True)]
            within = RationalRow(row.successor, row.lower, cut, row.reward)
            if _nature_owns(game, "MAX"):
                near = any(g and within.can_be_positive(i) for i, g in enumerate(closer))
            else:
                near = row.every(closer)
            parts.append((reached, kept, row.reward > 0 or near))
        if len(options) == 1:
            return all(reached or (kept and near) for reached, kept, near in parts)
        sooner.append(parts[0][0])
        stays.append(parts[0][1])
        moves.append(parts[0][2])
    return any(sooner) or (all(stays) and any(moves))


def _reach_and_stay(
    game: RationalGame, row: RationalRow, down: list[bool], level: list[bool]
) -> tuple[bool, bool]:
    """Whether maximisers reach `down` with positive probability, and whether they stay in `level` surely."""
    if _nature_owns(game, "MAX"):
        return any(g and row.can_be_positive(i) for i, g in enumerate(down)), row.can_stay(level)
    leaves = any(not inside and u > 0 for inside, u in zip(level, row.upper, strict=True))
    return row.every(down), not leaves


def _bounded(game: RationalGame, upward: bool) -> Check:
    problem, claim = game.problem, game.claim
    states = range(len(claim.lower))
    steps = 1 if problem.kind == "NEXT" else problem.upper_steps
    assert steps is not None
    target = [problem.target is not None and bool(problem.target[s]) for s in states]
    allowed = [problem.allowed is None or bool(problem.allowed[s]) for s in states]
    one, zero = Fraction(1), Fraction(0)
    late = problem.kind == "UNTIL" and problem.lower_steps > steps
    start = [one if target[s] and problem.kind != "CUMULATIVE" and not late else zero for s in states]
    x: list[Number] = list(start)
    for step in range(steps, 0, -1):
        backed = [game.value(s, x.__getitem__, upward, own=False) for s in states]
        if problem.kind == "UNTIL":
            counted = step - 1 >= problem.lower_steps
            backed = [one if target[s] and counted else backed[s] if allowed[s] else zero for s in states]
        x = backed
    return _within(x, claim, upward, f"{steps} backups")


def _after_steps(game: RationalGame, upward: bool) -> Check:
    problem, claim = game.problem, game.claim
    tail = tail_of(claim)
    states = range(len(claim.lower))
    x: list[Number] = [number(v) for v in (tail.upper if upward else tail.lower)]
    for _ in range(problem.lower_steps):
        backed = [game.value(s, x.__getitem__, upward, own=False) for s in states]
        x = [backed[s] if problem.allowed is None or problem.allowed[s] else Fraction(0) for s in states]
    return _within(x, claim, upward, f"{problem.lower_steps} backups of the tail")


def _within(x: list[Number], claim: Claim, upward: bool, what: str) -> Check:
    bound = [number(v) for v in (claim.upper if upward else claim.lower)]
    wrong = [s for s in range(len(x)) if (x[s] > bound[s] if upward else bound[s] > x[s])]
    return _verdict(f"{what} lie {'below the upper' if upward else 'above the lower'} bound", wrong, len(x))


def _verdict(name: str, wrong: list[int], states: int) -> Check:
    if not wrong:
        return Check(name, True, f"at all {states} states, in rationals")
    return Check(name, False, f"fails at {len(wrong)} states, first at state {wrong[0]}, in rationals")
