"""Bets against parameters, each derived here from the batches before it: what a slab rests on.

A visit draws outcome o of its group c with probability m_o·f_o(θ*). A bet is a number a(o) for every outcome,
known before the visit, with Σ_{o∈c} m_o·a(o) ≤ 0 in every group. At parameters θ a group *takes part* where
f_o(θ) ≥ 2·|a(o)| for all of its outcomes with a(o) < 0, seen or not. Given the past, the factor 1 + a/f of a
visit whose group takes part at θ* has the mean 1 + Σ_{f_o>0} m_o·a_o ≤ 1 (a ≥ 0 where f = 0), and it is at
least ½. So exp Λ, Λ(θ) = Σ over visits that take part at θ of log(1 + a/f(θ)), is at θ* a nonnegative
supermartingale from 1, and by Ville's inequality Λ(θ*) < log(1/α) at all times with probability 1 − α,
whatever the policy and the stopping rule. A mixture Σ w_j·exp Λ_j of several bets, Σ w_j ≤ 1, is one, too.

All that has to be believed of a bet is that it was known before its batch, and that it is no better than
fair. No bet is in a file. When bets are placed follows from the plan and from how much came before; what they
are, from `tightrope.numerics.betting`, which is handed the model, the question, a policy that is given, and
the counts before the batch, and nothing else: whatever it returns is predictable, and where its stakes are
fair, which is asked in integers, they are bets.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, prod

import numpy as np

from tightrope.certificate.budget import spend
from tightrope.certificate.evidence import Data
from tightrope.certificate.learned import Outcomes, totals
from tightrope.certificate.problem import Problem
from tightrope.certificate.statistics.likelihood import Forms, Predictor, planned_ends
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.betting import GRID, MOST_SUCCESSORS, BetPolicy, Table
from tightrope.numerics.question import Question

MOST_WORK = 3 * 10**7
PILOT_SHARE, LEAST_PILOT, OPEN_PILOT, RENEWED_AFTER = 0.03, 5, 10, 1.5


def weight_of(j: int) -> Fraction:
    """Of bets for 4^j times a base amount; over all j they sum to 1."""
    return Fraction(1, 4 * abs(j) * (abs(j) + 1)) if j else Fraction(1, 2)


@dataclass(frozen=True)
class Schedule:
    """Bets are placed before batches `placed`, after so much data. `planned` is what a plan leaves after the
    pilot: None where there is none, or where data are looked at while they come; then `middle` is the plan.
    """

    placed: tuple[int, ...]
    so_far: tuple[float, ...]
    planned: float | None
    middle: float | None

    @staticmethod
    def of(data: Data, sizes: list[int]) -> Schedule:
        """Amounts are episodes by a plan, and visits without one; each decision looks at earlier batches."""
        plan, ends, pilot, planned, middle = None, np.cumsum(sizes).tolist(), OPEN_PILOT, None, None
        if data.episodes is not None and len(own := planned_ends(data.episodes)) == len(sizes):
            plan = data.episodes if data.planned is None and data.design == "trajectories" else data.planned
            ends = ends if plan is None else own
        if plan is not None and data.anytime:
            middle = float(plan)
        elif plan is not None:
            stated = planned_ends(plan)
            pilot = max(sum(end <= PILOT_SHARE * plan for end in stated), LEAST_PILOT)
            planned = max(float(plan - stated[min(pilot, len(stated)) - 1]), 1.0) if stated else 1.0
        placed: list[int] = []
        for batch in range(pilot, len(sizes)):
            before = ends[batch - 1]
            if before > 0 and (not placed or before >= RENEWED_AFTER * ends[placed[-1] - 1]):
                placed.append(batch)
        return Schedule(tuple(placed), tuple(float(ends[batch - 1]) for batch in placed), planned, middle)

    @property
    def scales(self) -> list[tuple[float, Fraction]]:
        """(amount of data, weight) of bets that share a stake."""
        if self.planned is not None:
            return [(self.planned, Fraction(1))]
        if self.middle is not None:
            return [(self.middle * 4.0**j, weight_of(j)) for j in range(-7, 3)]
        return [(4096.0 * 4.0**j, weight_of(j)) for j in range(-4, 8)]

    def share(self, number: int) -> float | None:
        """The share of the plan that has come when bets are placed."""
        return None if self.planned is None else self.so_far[number] / (self.planned + self.so_far[0])


def levels(delta: Fraction, both: bool, free: int) -> tuple[Fraction, Fraction]:
    """(level of the guard, of each bettor): δ in tenths for both ends of a value, else by dimension."""
    if both:
        return delta / 10, delta * 9 / 20
    percent = max(round(100 * exp((1 - 1.025**2) * (1.8 * free - log(delta)))), 60)
    return delta * percent / 100, delta * (100 - percent) / 100


class Bets:
    """stake[side, scale, number, outcome] stood while outcomes were seen[number, outcome] times.

    Side 0 looks for the lower end of the reported value, side 1 for the upper one; `sides` are bet on: both
    ends of a given policy's value, else the one that the agent wants to move.
    """

    def __init__(self, forms: Forms, data: Data, given: FloatArray | None):
        """`given`: the weights of the choices of a policy that is given."""
        about, (linear, constant) = forms.about, forms.doubles
        problem, space, outcomes, expression = about.problem, about.space, about.outcomes, about.expression
        question = _question(problem)
        self.given = given is not None
        self.sides = (0, 1) if self.given else (int(question.maximises == question.complement),)
        self.schedule = Schedule.of(data, data.sizes)
        placed, scales = self.schedule.placed, self.schedule.scales
        self.guard, self.side = levels(Fraction(data.delta), self.given, len(space.free))
        shape = len(self.sides), len(scales), len(placed), len(outcomes.expression)
        if max(prod(shape), len(placed) * problem.graph.transitions // 30) > MOST_WORK:
            raise ValueError("there are more bets than this program checks")
        self.stake, self.seen = np.zeros(shape), np.zeros(shape[2:], dtype=np.int64)
        predictor = Predictor(space, linear, constant)
        table = Table(predictor.search, outcomes.expression, outcomes.multiplicity, outcomes.start)
        policy, t = BetPolicy(question, given), predictor.centre
        radix, group = len(linear), np.repeat(outcomes.of_choice, np.diff(problem.graph.transition_start))
        known = outcomes.owner * radix + outcomes.expression  # rises
        of_transition = np.searchsorted(known, group * radix + expression)
        unknown, level = linear.any(axis=1), -log(self.side)
        for number, batch in enumerate(placed):
            work = 40 * problem.graph.transitions + 4 * len(scales) * linear.size * len(space.free)
            spend("bets", work + 20 * len(data.batch_count))
            weight = totals(data, expression, len(linear), 0, batch) * unknown.astype(np.float64)
            t = table.estimate(t, weight)
            x, jacobian = predictor.search.lifted(t)
            probability = np.clip(linear @ x + constant, 0.0, 1.0)[expression]
            found = policy.slopes(probability, self.schedule.share(number))
            if found is not None:
                along = np.bincount(expression[found[0]], found[1], len(linear)) @ linear @ jacobian
                for scale, (amount, _) in enumerate(scales):
                    information = table.information(t, weight, amount / self.schedule.so_far[number])
                    for place, side in enumerate(self.sides):
                        wanted = -along if side else along
                        self.stake[place, scale, number] = table.place(t, wanted, information, level)
            end = placed[number + 1] if number + 1 < len(placed) else data.batches
            self.seen[number] = totals(data, of_transition, len(outcomes.expression), batch, end)

    def unfair(self, outcomes: Outcomes) -> bool:
        """Whether some group's stakes are better than fair, or are no whole multiples: asked in integers."""
        units = np.clip(self.stake / GRID, -(2.0**50), 2.0**50)
        if np.any(units * GRID != self.stake) or np.any(units != np.floor(units)):
            return True
        total = np.add.reduceat(outcomes.multiplicity * units.astype(np.int64), outcomes.start[:-1], axis=-1)
        many = np.add.reduceat(outcomes.multiplicity, outcomes.start[:-1]) > MOST_SUCCESSORS
        wins = np.logical_or.reduceat(self.stake != 0, outcomes.start[:-1], axis=-1)
        return bool(np.any(total > 0) or np.any(wins[..., many]))


def _question(problem: Problem) -> Question:
    asked = dict(vars(problem.objective))
    del asked["nature"], asked["earned"]  # bets are not placed on rewards with parameters
    return Question(**vars(problem.graph), maximises=asked.pop("agent") == "MAX", **asked)
