"""Bounds of a game's value: what suffices for which objective. Why is proved in `docs/trust.md`.

*Owners* of a bound are those who want it: maximisers own the lower bound L, minimisers the upper bound U.
Where the agent is an owner, his witness alone counts, otherwise all choices do. Nature ANY is nobody's owner:
L holds against her minimum, U against her maximum. Off the boundary L ≤ Φ(L) and Φ(U) ≤ U, on it L ≤ value ≤
U, and beside that, by objective, what keeps a play from going on without end where the inequality alone would
let it: a ranking along which the owners make progress.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tightrope.certificate.claim import Claim, ValueHints
from tightrope.certificate.game.nature import Boxes, Vector
from tightrope.certificate.game.operator import Game
from tightrope.certificate.game.progress import Play
from tightrope.certificate.problem import Objective, Problem
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import BoolArray, FloatArray

GameAt = Callable[[int], Game]
"""The game at a step, asked for from the last to the first."""


def prove(
    problem: Problem, boxes: Boxes, claim: Claim, hints: ValueHints, upward: bool
) -> tuple[list[Check], Vector]:
    """The checks behind one of the two bounds, and the bound of every state if they pass."""
    whole = Game.of(problem, boxes)
    if claim.choice is not None:
        game = whole.of_policy(claim.choice)
    else:
        game = replace(whole, weight=claim.weight, witness=hints.witness)
    at: GameAt = lambda step: game  # noqa: E731
    if claim.choice is not None and claim.earlier is not None:
        from tightrope.certificate.game.by_step import games_by_step

        at = games_by_step(whole, claim.choice, claim.earlier)
    objective = problem.objective
    if objective.steps is not None:
        return [], _back_up(at, _at_the_end(game), objective.steps, upward)
    bound = hints.upper if upward else hints.lower
    ranking = hints.lower_ranking if not upward or hints.upper_ranking is None else hints.upper_ranking
    assert bound is not None
    if objective.kind in ("DISCOUNTED", "AVERAGE"):
        ranking = np.zeros(game.states, dtype=np.int64)
    owner, side = ("MIN", "upper") if upward else ("MAX", "lower")
    if ranking is None or (game.agent_owns(owner) and game.witness is None):
        return [Check("hints", False, "a ranking or the agent's witness is missing")], Vector.of(
            game.n, bound
        )
    play, bias = Play(game, bound, ranking, upward), hints.upper_bias if upward else hints.lower_bias
    if bias is not None:
        from tightrope.certificate.game.average import bounds_average

        words, wrong = (
            "gain and its bias bound the average",
            ~play.everywhere(partial(bounds_average, bias_of=bias)),
        )
        return [Check.everywhere(f"the {side} {words}", wrong, "state")], play.value
    checks = [Check.everywhere(f"the {side} bound is inductive", ~play.everywhere(_is_inductive), "state")]
    if objective.kind != "DISCOUNTED" and checks[0].passed:
        checks += _stops(play)
    value = play.value
    if objective.lower_steps > 0:
        value = _back_up(at, value, objective.lower_steps, upward, counted=False)
    return checks, value


def _is_inductive(play: Play) -> BoolArray:
    """Where the inequality holds for the bound, or what it must be on the boundary."""
    game, upward, at = play.game, play.upward, play.game.state
    boundary, given = boundary_of(game.objective, len(play.bound))
    bound, own = play.bound[at], play.value.take(at)
    backed = game.owners_choice(play.per_choice, play.owner, upward)
    off = own.below(backed) if upward else backed.below(own)
    wrong = np.where(boundary[at], given[at] > bound if upward else given[at] < bound, off)
    if upward and game.objective.kind in ("UNTIL", "TOTAL"):
        wrong |= bound < 0
    result: BoolArray = ~wrong
    return result


def _stops(play: Play) -> list[Check]:
    """What the inequality alone leaves open: does the play stop?"""
    game, bound, kind = play.game, play.bound, play.game.objective.kind
    boundary, _ = boundary_of(game.objective, len(bound))
    if kind != "UNTIL":
        used = ~boundary[play.state]
        if game.weight is not None:
            used &= game.weight > 0
        if np.any(used & (game.reward < 0)):
            return [Check("rewards", False, "a negative reward voids the argument for unbounded rewards")]
    finite, checks = np.isfinite(bound), list[Check]()

    def ask(words: str, needed: BoolArray, holds: Callable[[Play], BoolArray]) -> None:
        sure = play.everywhere(lambda some: ~needed[some.game.state] | holds(some))
        checks.append(Check.everywhere(words, ~sure, "state"))

    if play.upward:
        if kind == "REACH_REWARD":
            words = "the play behind the upper bound reaches the target"
            ask(words, finite & ~boundary, lambda some: some.towards(boundary))
        return checks
    if kind != "REACH_REWARD":
        needed, absorbed = ~boundary & finite & (bound > 0), boundary | (bound <= 0)
        ask("the play behind the lower bound stops", needed, lambda some: some.towards(absorbed, True))
    if (endless := ~boundary & ~finite).any():
        from tightrope.certificate.game.endless import earns_forever, misses

        words, sure = "the reward never ends", earns_forever
        if kind == "REACH_REWARD":
            words, sure = "the target is missed", misses
        ask(f"{words} where the lower bound is infinite", endless, lambda some: sure(some, endless))
    return checks


def _at_the_end(game: Game) -> Vector:
    """What counts after the last step."""
    target = game.objective.target
    counted = np.zeros(game.states) if target is None else target.astype(np.float64)
    return Vector.of(game.n, counted)


def _back_up(at: GameAt, value: Vector, steps: int, upward: bool, counted: bool = True) -> Vector:
    """So many backups, each in the game `at` its step; a state visited after `step` steps counts as a target
    from lower_steps on."""
    for step in range(steps - 1, -1, -1):
        game = at(step)
        objective, n = game.objective, game.n
        value = game.best(game.choices(value, upward), upward)
        number, infinite = n.trim(value.number, upward), value.infinite
        if objective.kind == "UNTIL":
            if objective.allowed is not None:
                number, infinite = np.where(objective.allowed, number, 0), infinite & objective.allowed
            if counted and step >= objective.lower_steps and objective.target is not None:
                number = np.where(objective.target, 1, number)
        value = Vector(number, infinite)
    return value


def boundary_of(objective: Objective, states: int) -> tuple[BoolArray, FloatArray]:
    """The states whose value is given, and that value."""
    value = np.zeros(states)
    if objective.target is None:
        return np.zeros(states, dtype=np.bool_), value
    if objective.kind == "REACH_REWARD":
        terminal = value if objective.terminal is None else objective.terminal
        return objective.target, np.where(objective.target, terminal, 0.0)
    value[objective.target] = 1
    if objective.allowed is None:
        return objective.target, value
    return objective.target | ~objective.allowed, value
