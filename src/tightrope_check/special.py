"""What only some questions need: nature's own boxes, infinite bounds, averages, bounded steps, policies that
mix choices or change with the step.

*Nature's own boxes.* What nature can do within one is decided without rounding: no remainder is too small.

*Infinite lower bounds* and *long-run averages* (a gain g, a bias h): see `proofs/certificates.md`.
Levels of states with lower bound +∞ are the ranking for rewards until a target, and a layer of it for total
rewards.

*Policies that change with the step* are rows of a claim's `earlier` (README).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.budget import spend
from tightrope_check.nature import BoundVector, can_be_positive, moves_always, signs_of_sums
from tightrope_check.numbers import Arithmetic, Numbers

if TYPE_CHECKING:
    from tightrope_check.checker import Game, Play
    from tightrope_check.problem import CertifiedProblem, Claim


_STEP, _EXACT = 4000, 350
"""Work of a step, whatever the model's size, and of a transition in rationals beside what nature takes."""


def strict_choices(play: Play) -> BoolArray:
    """Choices where the inequality for the bound is strict; of a mixture, where the mixture's is."""
    per_choice, of_choice = play.per_choice, play.value.take(play.state)
    if play.game.weight is not None:
        owner = np.repeat(np.arange(play.game.states), np.diff(play.game.choice_start))
        per_choice = mix(play.game, per_choice, play.upward).take(owner)
    return per_choice.below(of_choice) if play.upward else of_choice.below(per_choice)


def moves_willingly(
    n: Arithmetic,
    lower: Numbers,
    upper: Numbers,
    good: BoolArray,
    values: BoundVector,
    strict: BoolArray,
    owner: str,
) -> BoolArray:
    """Some distribution that keeps the bound inductive gives `good` a positive probability: any that can
    where the inequality is strict, else one that is optimal, which fills what is better first."""

    def before(i: int) -> BoolArray:
        own = values.take(np.s_[:, i : i + 1])
        return ~strict[:, None] & (values.below(own) if owner == "MIN" else own.below(values))

    if owner == "MIN":  # weight on an infinite value would make hers infinite
        upper = np.where(values.infinite, 0, upper)
    result: BoolArray = np.any(good & can_be_positive(n, lower, upper, before), axis=1)
    return result


def misses(play: Play, endless: BoolArray) -> BoolArray:
    """States from which maximisers stay within `endless`, or reach a smaller rank of it."""
    down, stay, _ = _levels(play, endless, play.ranking)
    return play.by_state(down, stay)


def earns_forever(play: Play, endless: BoolArray) -> BoolArray:
    """States from which maximisers reach a smaller layer, or stay in theirs and earn again and again."""
    game, layer = play.game, play.ranking // (len(play.ranking) + 1)
    sooner, stay, closer = _levels(play, endless, layer)
    moves = (game.reward > 0) | closer
    if game.weight is None:
        return play.by_state(sooner | (stay & moves), np.zeros(len(stay), dtype=np.bool_))
    starts, used = game.choice_start[:-1], game.weight > 0
    result: BoolArray = np.logical_or.reduceat(sooner & used, starts) | (
        np.logical_and.reduceat(stay | ~used, starts) & np.logical_or.reduceat(moves & used, starts)
    )
    return result


def _levels(play: Play, endless: BoolArray, level: OffsetArray) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Of every choice: a smaller level of `endless` is reached with positive probability; levels no larger
    are never left; within these a smaller rank is reached with positive probability."""
    boxes, state, ranking = play.boxes, play.state, play.ranking
    n, count = boxes.n, len(state)
    down, stay, closer = (np.zeros(count, dtype=np.bool_) for _ in range(3))
    for rows, table, single in boxes.blocks():
        here, successor = state[rows][:, None], boxes.successor[table]
        lower, upper = boxes.rows(table)
        smaller = endless[successor] & (level[successor] < level[here])
        inside = endless[successor] & (level[successor] <= level[here])
        nearer = inside & (ranking[successor] < ranking[here])
        if play.game.objective.nature == "MAX" and not single:
            down[rows] = np.any(smaller & can_be_positive(n, lower, upper), axis=1)
            within = np.where(inside, upper, 0)
            stay[rows] = ~np.any(~inside & (lower > 0), axis=1) & (signs_of_sums(n, within) >= 0)
            # She must stay within the level and come closer with one distribution.
            closer[rows] = np.any(nearer & can_be_positive(n, lower, within), axis=1)
        else:
            down[rows] = moves_always(n, lower, upper, smaller)
            stay[rows] = ~np.any(~inside & (upper > 0), axis=1)
            closer[rows] = moves_always(n, lower, upper, nearer)
    return down, stay, closer


def bounds_average(play: Play, bias_of: FloatArray) -> BoolArray:
    """Where is gain ≥ p·gain and gain + bias ≥ r + p·bias (≤ for a lower bound), with one p for both?

    Where nature owns the bound, one of the two is asked of her best p and the other one of every p.
    """
    game, upward, sign = play.game, play.upward, 1 if play.upward else -1
    n, gain = game.n, play.value
    bias = BoundVector.of(n, bias_of, game.used)
    total = gain.number + bias.number
    total = total - sign * n.error(2, abs(gain.number) + abs(bias.number))
    anyway = replace(game, objective=replace(game.objective, nature="ANY"))
    holds = np.zeros(len(play.state), dtype=np.bool_)
    for one, other in ((game, anyway), (anyway, game)):
        held = replace(one, reward=n.zeros(len(play.state))).choices(gain, upward)
        earned = other.choices(bias, upward)
        both = (sign * held.number <= sign * gain.number[play.state]) & ~held.infinite
        holds |= both & (sign * earned.number <= sign * total[play.state]) & ~earned.infinite
    return play.by_state(holds & n.finite(total)[play.state], np.zeros(len(holds), dtype=np.bool_))


def misfit_of_steps(problem: CertifiedProblem, earlier: OffsetArray) -> str | None:
    """Why the choices of earlier steps do not fit the problem."""
    step, state, choice = earlier.T
    steps = problem.objective.steps or problem.objective.lower_steps
    start = problem.graph.choice_start
    if np.any(step >= steps) or np.any(state >= problem.graph.states):
        return "the policy changes at a step or in a state that is not there"
    if np.any(choice < start[state]) or np.any(choice >= start[state + 1]):
        return "the policy picks a choice that its state does not have"
    order = np.lexsort((-step, state))
    same = np.diff(state[order]) == 0
    if np.any(np.diff(step) > 0) or np.any(same & (np.diff(step[order]) >= 0)):
        return "the policy's steps do not fall"
    return None


def mix(game: Game, per_choice: BoundVector, upward: bool) -> BoundVector:
    """Σ weight·value / Σ weight over the choices of positive weight; exact where there is only one."""
    assert game.weight is not None
    n, starts = game.n, game.choice_start[:-1]
    used, weight = game.weight > 0, n.array(game.weight)
    value = np.where(used & ~per_choice.infinite, per_choice.number, 0)
    count = np.add.reduceat(used.astype(np.int64), starts)
    total = np.add.reduceat(weight, starts)
    mean = np.add.reduceat(weight * value, starts) / total
    size = np.add.reduceat(weight * abs(value), starts) / total
    slack = n.error(2 * np.diff(game.choice_start) + 8, size + abs(mean))
    mean = mean + slack if upward else mean - slack
    mean = np.where(count == 1, np.add.reduceat(value, starts), mean)
    if upward:  # it is within its range
        mean = np.minimum(mean, np.maximum.reduceat(np.where(used, value, value.min()), starts))
    else:
        mean = np.maximum(mean, np.minimum.reduceat(np.where(used, value, value.max()), starts))
    return BoundVector(mean, np.logical_or.reduceat(used & per_choice.infinite, starts)).within(n, upward)


def choices_by_step(claim: Claim, steps: int) -> Iterator[tuple[int, OffsetArray | None]]:
    """Every step from the last one to the first, and the policy's choices where they are others than after
    it; None where they are not."""
    current, place = claim.choice, 0
    for step in range(steps - 1, -1, -1):
        end = place
        if claim.earlier is not None and current is not None:
            end += int(np.searchsorted(-claim.earlier[place:, 0], -step, side="right"))
        if end > place:
            assert claim.earlier is not None and current is not None
            current = current.copy()
            current[claim.earlier[place:end, 1]] = claim.earlier[place:end, 2]
        yield step, current if end > place else None
        place = end


def value_of_steps(
    whole: Game,
    game: Game,
    claim: Claim,
    upward: bool,
    problem: CertifiedProblem,
    after: BoundVector | None = None,
) -> BoundVector:
    """A backup for every step that is counted, from the last one to the first: of the whole value where steps
    are bounded, else of the value `after` those steps. A state visited after `step` steps counts as a target
    from lower_steps on."""
    objective, n = game.objective, game.n
    settled = None
    if problem.passing is not None:
        from tightrope_check.layers import settling

        settled = settling(whole, problem.graph, problem.passing, upward)
    steps, value = objective.lower_steps, after
    if value is None:
        target = np.zeros(game.states) if objective.target is None else objective.target
        steps, value = objective.steps or 0, BoundVector.of(n, target.astype(np.float64))
    changes = 0 if claim.earlier is None else min(steps, len(claim.earlier))
    spend("steps", steps * (_STEP + (_EXACT * len(game.boxes.successor) if n.exact else 0)))
    spend("changes of a policy", changes * (_STEP + game.states))
    for step, current in choices_by_step(claim, steps):
        game = game if current is None else whole.of_policy(current)
        value = value if settled is None else settled(value)
        value = game.best(game.choices(value, upward), upward)
        number, infinite = n.trim(value.number, upward), value.infinite
        if objective.kind == "UNTIL":
            if objective.allowed is not None:
                number, infinite = np.where(objective.allowed, number, 0), infinite & objective.allowed
            if after is None and step >= objective.lower_steps and objective.target is not None:
                number = np.where(objective.target, 1, number)
        value = BoundVector(number, infinite)
    return value
