"""Bounds of a game's value: one backup, progress, and what suffices for which objective.

A backup Φ_c(x) = r(c) + γ·opt_{p ∈ P(c)} p·x, and the agent's part of it, is made on the safe side; in
rationals it is the backup itself. *Owners* of a bound are those who want it: maximisers own the lower bound
L, minimisers the upper bound U. Where the agent is an owner, his witness alone counts, otherwise all choices
do. Nature ANY is nobody's owner: L holds against her minimum, U against her maximum. Off the boundary L ≤
Φ(L) and Φ(U) ≤ U, on it L ≤ value ≤ U, and beside that, by objective, what keeps a play from going on without
end where the inequality alone would let it: a ranking along which the owners make progress. Why that suffices
is proved in `docs/trust.md`.

Progress: do the owners of a bound move on with positive probability, whatever the others do? At a choice with
box P(c) and a set A of transitions that count as progress:

* every p ∈ P(c) moves into A   iff  some lower bound in A is positive, or Σ_{not A} upper < 1;
* some p ∈ P(c) that keeps the bound inductive moves into A   if  some p moves into A at all and the
  inequality at c is strict (mix a little of that p in), or some optimal p does: there is weight left for a
  successor in A once all better ones have theirs.

Nature is asked the second way where she is an owner, the first way where she is not or where the box encloses
one distribution; likewise the agent: his witness where he owns the bound, all his choices where he does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from tightrope.certificate.nature import BoundVector, Boxes, moves_always, rows_of
from tightrope.certificate.numbers import RATIONAL, Arithmetic, Numbers
from tightrope.certificate.problem import CertifiedObjective, CertifiedProblem, Claim, ValueHints
from tightrope.certificate.verdict import Check
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray


@dataclass(frozen=True, eq=False)
class Game:
    """An objective over boxes. The agent mixes his choices by `weight`, or is free and has a `witness`.

    `state`: the numbers of the states whose choices these are; all of them, or some.
    """

    n: Arithmetic
    objective: CertifiedObjective
    state: OffsetArray
    choice_start: OffsetArray
    boxes: Boxes
    reward: Numbers
    weight: FloatArray | None = None
    witness: OffsetArray | None = None

    @staticmethod
    def of(problem: CertifiedProblem, boxes: Boxes) -> Game:
        """The game in which the agent is free."""
        n, objective, graph = boxes.n, problem.objective, problem.graph
        reward = n.zeros(graph.choices) if objective.reward is None else n.array(objective.reward)
        return Game(n, objective, np.arange(graph.states), graph.choice_start, boxes, reward)

    def of_policy(self, choice: OffsetArray) -> Game:
        """The game of a policy: its choices are all there are."""
        states, boxes, reward = np.arange(len(choice) + 1), self.boxes.only(choice), self.reward[choice]
        return replace(self, choice_start=states, boxes=boxes, reward=reward, witness=states[:-1])

    def exactly(self, at: OffsetArray) -> Game:
        """The same at some of these states, in rationals."""
        start, choices = rows_of(self.choice_start, at)
        weight = None if self.weight is None else self.weight[choices]
        witness = None if self.witness is None else (self.witness - self.choice_start[:-1])[at] + start[:-1]
        boxes, reward = self.boxes.exactly(choices), RATIONAL.array(self.reward[choices])
        part = replace(self, n=RATIONAL, state=self.state[at], choice_start=start, boxes=boxes)
        return replace(part, reward=reward, weight=weight, witness=witness)

    @property
    def used(self) -> OffsetArray | slice:
        """The states whose numbers are asked for."""
        return np.union1d(self.state, self.boxes.successor) if self.n.exact else slice(None)

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    def nature_owns(self, owner: str) -> bool:
        """Whether nature, where she has a say at all, is on the owners' side."""
        return self.objective.nature == owner

    def agent_owns(self, owner: str) -> bool:
        """Whether it is the agent's witness that counts."""
        return self.weight is None and self.objective.agent == owner

    def choices(self, values: BoundVector, upward: bool) -> BoundVector:
        """Φ_c(values) for every choice: not below it if `upward`, not above it otherwise."""
        maximise = upward if self.objective.nature == "ANY" else self.objective.nature == "MAX"
        expected = self.boxes.bound(values, maximise, upward)
        if self.objective.discount is None and not np.any(self.reward != 0):
            return expected.within(self.n, upward)
        discount = 1 if self.objective.discount is None else self.n.array([self.objective.discount])[0]
        scaled = discount * expected.number
        value = self.reward + scaled
        rounded = (self.reward != 0) | (discount != 1)
        slack = np.where(rounded, self.n.error(4, abs(self.reward) + abs(scaled)), 0)
        return BoundVector(value + slack if upward else value - slack, expected.infinite).within(
            self.n, upward
        )

    def owners_choice(self, per_choice: BoundVector, owner: str, upward: bool) -> BoundVector:
        """What states come to where `owner` wants the bound: the agent's witness alone where he is one."""
        if self.agent_owns(owner):
            assert self.witness is not None
            return per_choice.take(self.witness)
        return self.best(per_choice, upward)

    def best(self, per_choice: BoundVector, upward: bool) -> BoundVector:
        """What states come to: the agent's optimum, or his mixture."""
        if self.weight is not None:
            return self.mix(per_choice, upward)
        starts = self.choice_start[:-1]
        if len(starts) == len(per_choice.number):
            return per_choice
        number, infinite, most = per_choice.number, per_choice.infinite, self.objective.agent == "MAX"
        hidden = number.min() if most else np.where(infinite, number.min(), number).max()
        optimum, reached = (np.maximum, np.logical_or) if most else (np.minimum, np.logical_and)
        best = optimum.reduceat(np.where(infinite, hidden, number), starts)
        return BoundVector(best, reached.reduceat(infinite, starts))

    def mix(self, per_choice: BoundVector, upward: bool) -> BoundVector:
        """Σ weight·value / Σ weight over the choices of positive weight; exact where there is only one."""
        assert self.weight is not None
        n, starts = self.n, self.choice_start[:-1]
        used, weight = self.weight > 0, n.array(self.weight)
        value = np.where(used & ~per_choice.infinite, per_choice.number, 0)
        count = np.add.reduceat(used.astype(np.int64), starts)
        total = np.add.reduceat(weight, starts)
        mean = np.add.reduceat(weight * value, starts) / total
        size = np.add.reduceat(weight * abs(value), starts) / total
        slack = n.error(2 * np.diff(self.choice_start) + 8, size + abs(mean))
        mean = mean + slack if upward else mean - slack
        mean = np.where(count == 1, np.add.reduceat(value, starts), mean)
        if upward:  # it is within its range
            mean = np.minimum(mean, np.maximum.reduceat(np.where(used, value, value.min()), starts))
        else:
            mean = np.maximum(mean, np.minimum.reduceat(np.where(used, value, value.max()), starts))
        return BoundVector(mean, np.logical_or.reduceat(used & per_choice.infinite, starts)).within(n, upward)


class Play:
    """A bound of a game's value under a ranking of the states, at the game's states: all, or some."""

    def __init__(self, game: Game, bound: FloatArray, ranking: OffsetArray, upward: bool):
        self.game, self.boxes, self.bound, self.ranking = game, game.boxes, bound, ranking
        self.upward, self.owner = upward, "MIN" if upward else "MAX"
        self.state = np.repeat(game.state, np.diff(game.choice_start))

    @cached_property
    def value(self) -> BoundVector:
        """The bound, as far as it is used here."""
        return BoundVector.of(self.game.n, self.bound, self.game.used)

    @cached_property
    def per_choice(self) -> BoundVector:
        """What choices come to under the bound."""
        return self.game.choices(self.value, self.upward)

    def everywhere(self, holds: Callable[[Play], BoolArray]) -> BoolArray:
        """At which states something holds: asked of all, and in rationals where that leaves it open."""
        sure = holds(self)
        if not self.game.n.exact and len(left := np.flatnonzero(~sure)):
            again = Play(self.game.exactly(left), self.bound, self.ranking, self.upward)
            sure[left] = holds(again)
        return sure

    def towards(self, absorbed: BoolArray, earns: bool = False) -> BoolArray:
        """States where the owners move to `absorbed` or a smaller rank with positive probability; choices
        that earn something count as moving on if `earns`."""
        n, game = self.boxes.n, self.game
        result = (game.reward > 0) & earns
        strict = None
        for rows, table, single in self.boxes.blocks():
            successor = self.boxes.successor[table]
            good = absorbed[successor] | (self.ranking[successor] < self.ranking[self.state[rows]][:, None])
            lower, upper = self.boxes.rows(table)
            if game.nature_owns(self.owner) and not single:
                from tightrope.certificate.special import moves_willingly, strict_choices

                strict = strict_choices(self) if strict is None else strict
                there = self.value.take(successor)
                moves = moves_willingly(n, lower, upper, good, there, strict[rows], self.owner)
            else:
                moves = moves_always(n, lower, upper, good)
            result[rows] |= moves
        return self.by_state(result, np.zeros(len(result), dtype=np.bool_))

    def by_state(self, moves: BoolArray, stays: BoolArray) -> BoolArray:
        """From choices to states: the witness's, all of an opponent's, or a mixture.

        A mixture moves if one of its choices does, and stays only if all of them do.
        """
        starts = self.game.choice_start[:-1]
        result: BoolArray
        if self.game.weight is not None:
            used = self.game.weight > 0
            result = np.logical_or.reduceat(moves & used, starts)
            result |= np.logical_and.reduceat(stays | ~used, starts)
        elif self.game.agent_owns(self.owner):
            assert self.game.witness is not None
            result = (moves | stays)[self.game.witness]
        else:
            result = np.logical_and.reduceat(moves | stays, starts)
        return result


GameAt = Callable[[int], Game]
"""The game at a step, asked for from the last to the first."""


def prove(
    problem: CertifiedProblem, boxes: Boxes, claim: Claim, hints: ValueHints, upward: bool
) -> tuple[list[Check], BoundVector]:
    """The checks behind one of the two bounds, and the bound of every state if they pass."""
    whole = Game.of(problem, boxes)
    if claim.choice is not None:
        game = whole.of_policy(claim.choice)
    else:
        game = replace(whole, weight=claim.weight, witness=hints.witness)
    at: GameAt = lambda step: game  # noqa: E731
    if claim.choice is not None and claim.earlier is not None:
        from tightrope.certificate.special import games_by_step

        at = games_by_step(whole, claim.choice, claim.earlier)
    objective = problem.objective
    if objective.steps is not None:
        counted = np.zeros(game.states) if objective.target is None else objective.target.astype(np.float64)
        return [], _back_up(at, BoundVector.of(game.n, counted), objective.steps, upward)
    bound = hints.upper if upward else hints.lower
    ranking = hints.lower_ranking if not upward or hints.upper_ranking is None else hints.upper_ranking
    assert bound is not None
    if objective.kind in ("DISCOUNTED", "AVERAGE"):
        ranking = np.zeros(game.states, dtype=np.int64)
    owner, side = ("MIN", "upper") if upward else ("MAX", "lower")
    if ranking is None or (game.agent_owns(owner) and game.witness is None):
        missing = Check("hints", False, "a ranking or the agent's witness is missing")
        return [missing], BoundVector.of(game.n, bound)
    play, bias = Play(game, bound, ranking, upward), hints.upper_bias if upward else hints.lower_bias
    if bias is not None:
        from tightrope.certificate.special import bounds_average

        wrong = ~play.everywhere(partial(bounds_average, bias_of=bias))
        name = f"the {side} gain and its bias bound the average"
        return [Check.everywhere(name, wrong, "state")], play.value
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
        from tightrope.certificate.special import earns_forever, misses

        words, sure = "the reward never ends", earns_forever
        if kind == "REACH_REWARD":
            words, sure = "the target is missed", misses
        ask(f"{words} where the lower bound is infinite", endless, lambda some: sure(some, endless))
    return checks


def _back_up(at: GameAt, value: BoundVector, steps: int, upward: bool, counted: bool = True) -> BoundVector:
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
        value = BoundVector(number, infinite)
    return value


def boundary_of(objective: CertifiedObjective, states: int) -> tuple[BoolArray, FloatArray]:
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
