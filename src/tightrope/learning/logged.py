"""The logged baseline: how much better a policy is than an unknown behaviour policy, from the log alone.

A score of an episode has the mean of its return whatever the behaviour policy is, varies far less, and is
affine in the coordinates of θ. Bets on scores, predictable block by block, and a region for θ bound the
difference for all policies at once: the policy may be chosen from the same log. Episodes are assumed to be
independent draws of one behaviour. δ is split in halves. Proof: docs/proofs/statistics.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.coupled.cells import Frame
from tightrope.coupled.cells import Region as Cells
from tightrope.coupled.chain import Chain, chain_of
from tightrope.coupled.difference import Side
from tightrope.coupled.taylor import expand, order_for
from tightrope.coupled.value import functions_of
from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.io.results import Interval
from tightrope.learning.bet_policy import has_layers
from tightrope.learning.outcomes import episodes_of
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import ParametricReward
from tightrope.monitoring.episode_scores import PathGraph, PathRules
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.late import sparse
from tightrope.numerics.rounding import down, up
from tightrope.problem import Problem
from tightrope.regions.polytope import Polytope
from tightrope.solver.solve import solve
from tightrope.statistics.coordinates import AffineFunctions
from tightrope.statistics.outcomes import Outcomes
from tightrope.verdict import Assumed

ASSUMED = Assumed.stated(
    "episodes",
    "episodes are independent draws of one unknown behaviour policy, and none is missing because of its "
    "outcome; this is assumed and not tested",
)

_SIZES = (0.5, 1.0, 2.0)
_WEIGHTS = (0.25, 0.5, 0.25)
"""Stakes in units of the one that suits what was seen before, and what each begins with."""

_MOST_ACTIVE = 40
_LEAST_PILOT = 10
_OPEN_PILOT = 30
_EPS = 2.0**-50


@dataclass(frozen=True, eq=False)
class Block:
    """Episodes `first` to `last`, the function h of their scores (None: scores are returns), and stakes."""

    first: int
    last: int
    h: FloatArray | None
    stake: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Scored:
    """X_i ≤ offset + slope·x ≤ top for the episodes of a block, over a region of coordinates x."""

    offset: FloatArray
    slope: FloatArray
    top: float
    stake: tuple[float, ...]


class LoggedBaseline:
    """The episodes of a log, and the bets on what they were worth at level `gamma`."""

    def __init__(self, problem: Problem, counts: Counts, gamma: float):
        model, objective = problem.model, problem.objective
        assert isinstance(model, ParametricMDP)
        if counts.log is None or counts.design.episodes is None:
            raise InputError(
                "the data are counts, and the value of the behaviour policy needs episodes",
                hint="give the log itself, or the policy that collected it as the baseline",
            )
        if isinstance(objective.reward, ParametricReward):
            raise InputError("the rewards depend on parameters, so episodes do not show them")
        self.model, self.objective, self.gamma = model, objective, gamma
        structure, self.log = model.structure, episodes_of(problem, counts)
        every = np.ones(structure.choices, np.bool_)
        try:
            self.rules = PathRules.of(structure, objective, every)
        except CannotCertify as error:
            raise InputError(f"the value of the behaviour policy cannot be estimated: {error}") from None
        self.sign = 1.0 if objective.agent is Direction.MAX else -1.0
        self.decided: BoolArray = ~np.isnan(self.rules.decided)
        self.functions, self._maximiser = Outcomes.of(model).functions, Outcomes.of(model).maximiser
        self._episode_of_row = np.cumsum(self.log.step == 0) - 1
        if self.rules.at_once or not len(self.log.start):
            raise InputError("no episode of the log begins in the initial state, or nothing is to be decided")
        self._used, self._end, self._shown, _ = self.rules.followed(self.log)
        scores = self.rules.score(self.log, np.ones(structure.choices))
        self._return = self.sign * (scores.high if self.sign > 0 else scores.low)
        planned = counts.design.planned if not counts.design.late_plan else None
        self._known: tuple[Polytope, Frame | None, list[Scored]] | None = None
        self.blocks = self._blocks(planned)

    @property
    def episodes(self) -> int:
        return len(self.log.start)

    def difference(self, region: Polytope | None, side: Side) -> tuple[Interval, Interval]:
        """(together, apart): intervals of a policy's value less the log's; bets are on the guaranteed end."""
        lower, upper = self.rules.ends
        if self.objective.complement:
            lower, upper = 1.0 - upper, 1.0 - lower
        low, high = float(down(side.lower - upper)), float(up(side.upper - lower))
        if region is None:
            return (Interval.of(low, high),) * 2
        ends = self.bound(region, side)
        if self.objective.maximises:
            one, two = (Interval.of(max(end, low), high) for end in ends)
        else:
            one, two = (Interval.of(low, min(-end, high)) for end in ends)
        return one, two

    # --- before a block: what is bet ---------------------------------------------------------

    @property
    def _takes_h(self) -> bool:
        """Whether plays end in a bounded number of steps, or are discounted, without a bound on the steps."""
        objective = self.objective
        if objective.is_bounded or objective.lower_steps:
            return False
        if objective.kind is ObjectiveKind.DISCOUNTED:
            return True
        return has_layers(self.model, objective)

    def _blocks(self, planned: int | None) -> list[Block]:
        number, blocks = self.episodes, []
        first = max(_LEAST_PILOT, planned // 10) if planned is not None else _OPEN_PILOT
        takes_h = self._takes_h
        while first < number:
            last = min(2 * first, number)
            h, stake = self._bet(first, takes_h, max(planned or 0, 2 * first))
            if stake > 0.0:
                blocks.append(Block(first, last, h, tuple(size * stake for size in _SIZES)))
            first = last
        return blocks

    def _bet(self, first: int, takes_h: bool, target: int) -> tuple[FloatArray | None, float]:
        """h and the stake, from the episodes before `first`: those with the narrowest bound in prospect."""
        model, structure = self.model, self.model.structure
        best: tuple[float, FloatArray | None, float] = (math.inf, None, 0.0)
        seen = self._episode_of_row < first
        transitions = self.log.transition[seen]
        weight = np.bincount(model.expression[transitions], minlength=len(model.expressions))
        x = self._maximiser.lifted(self._maximiser.estimate(weight.astype(np.float64)))
        candidates: list[FloatArray | None] = [None]
        if takes_h:
            probability = self.functions.chances(x)
            point = MDP(structure, probability[model.expression])
            visits = np.bincount(structure.transition_choice[transitions], minlength=structure.choices)
            smooth = visits + 0.25 / np.diff(structure.choice_start)[structure.choice_state]
            total = np.add.reduceat(smooth, structure.choice_start[:-1])
            usual = Policy(structure, smooth / total[structure.choice_state])
            candidates += [self._values(point, None), self._values(point, usual)]
        level = math.log(1.0 / self.gamma) + 1.0
        for h in candidates:
            if h is not None and not np.all(np.isfinite(h)):
                continue
            most = None
            if h is not None:
                constant, slope = self._residuals(h)
                most = constant + slope @ x
            scored = self._scored(Block(0, first, h, ()), most, np.zeros(structure.choices))
            values = scored.offset + scored.slope @ x
            mean, deviation = float(values.mean()), float(values.std(ddof=1))
            reach = max(scored.top - mean, 0.0)
            if not math.isfinite(reach):
                continue
            size = max(deviation, 1e-3 * reach, 1e-12)
            stake = math.sqrt(2.0 * level / target) / size
            stake = min(stake, 0.5 / reach) if reach > 0.0 else stake
            width = 0.5 * stake * size**2 + level / (stake * target)
            if width < best[0]:
                best = width, h, stake
        return best[1], best[2]

    def _values(self, point: MDP, policy: Policy | None) -> FloatArray:
        """A function h: what the best or a given policy is worth at a point. It certifies nothing."""
        try:
            solution = solve(point, self.objective, policy=policy, precision=1e-9)
        except CannotCertify:
            return np.full(point.structure.states, np.inf)
        value = 0.5 * (solution.lower + solution.upper)
        value = 1.0 - value if self.objective.complement else value
        return self.sign * np.where(self.decided, self.rules.decided, value)

    # --- scores over a region ------------------------------------------------------------------

    def _residuals(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(constant, slope) of B of every choice in the coordinates; 0 where the play is decided."""
        structure, functions, expression = self.model.structure, self.functions, self.model.expression
        rate, start = self.rules.discount, structure.transition_start[:-1]
        onward = h[structure.successor]
        constant = np.add.reduceat(functions.constant[expression] * onward, start)
        slope = np.add.reduceat(functions.linear[expression] * onward[:, None], start)
        constant = self.sign * self.rules.gain + rate * constant - h[structure.choice_state]
        still = self.decided[structure.choice_state]
        return np.where(still, 0.0, constant), np.where(still[:, None], 0.0, rate * slope)

    def _error(self, h: FloatArray, reach: FloatArray) -> FloatArray:
        """How far B of a choice may be off for coordinates up to `reach`, over a whole episode."""
        structure, functions, expression = self.model.structure, self.functions, self.model.expression
        start = structure.transition_start[:-1]
        sizes = np.abs(functions.constant) + np.abs(functions.linear) @ reach
        onward = np.abs(h[structure.successor])
        slack = np.add.reduceat(functions.slack[expression] * onward, start)
        size = np.add.reduceat(sizes[expression] * onward, start)
        size += np.abs(self.rules.gain) + np.abs(h[structure.choice_state])
        terms = np.diff(structure.transition_start) + 4 * len(reach) + int(self.log.step.max(initial=0)) + 64
        return np.asarray(slack + terms * _EPS * size)

    def scored(self, region: Polytope) -> list[Scored]:
        """The episodes of all blocks over a region."""
        result = []
        for block in self.blocks:
            error, most = np.zeros(0), None
            if block.h is not None:
                constant, slope = self._residuals(block.h)
                error = self._error(block.h, _reach(region))
                most = constant + region.support(slope)[1] + error
            result.append(self._scored(block, most, error))
        if result and self.log.empty:  # cut before their first step: at most the top
            last, none = result[-1], np.zeros((self.log.empty, self.functions.linear.shape[1]))
            offset = np.append(last.offset, np.full(self.log.empty, last.top))
            result[-1] = Scored(offset, np.concatenate([last.slope, none]), last.top, last.stake)
        return result

    def _scored(self, block: Block, most: FloatArray | None, error: FloatArray) -> Scored:
        """Scores of a block where no B exceeds `most`, and each may be off by `error`."""
        first, last, h = block.first, block.last, block.h
        if h is None or most is None:
            top = self.rules.ends[1] if self.sign > 0 else -self.rules.ends[0]
            slope = np.zeros((last - first, self.functions.linear.shape[1]))
            return Scored(self._return[first:last], slope, top, block.stake)
        structure, rate = self.model.structure, self.rules.discount
        initial = structure.initial
        graph = PathGraph.of(structure, np.ones(structure.choices, np.bool_), most)
        if rate == 1.0:
            rest = graph.until(self.decided, np.zeros(structure.states))[1]
        else:
            rest = np.where(self.decided, 0.0, graph.discounted(rate)[1])
        rows = slice(*np.searchsorted(self._episode_of_row, [first, last]))
        used = self._used[rows]
        choice = structure.transition_choice[self.log.transition[rows]][used]
        episode, step = self._episode_of_row[rows][used] - first, self.log.step[rows][used]
        shape = (last - first, structure.choices)
        visits = sparse.csr_array((rate ** step.astype(np.float64), (episode, choice)), shape=shape)
        end = self._end[first:last]
        state, steps = structure.successor[self.log.transition[end]], self.log.step[end] + 1
        ahead = np.where(self._shown[first:last], 0.0, rest[state] * rate**steps)
        constant, slope = self._residuals(h)
        offset = h[initial] + visits @ constant + ahead + 2.0 * (visits @ error)
        top = float(h[initial] + rest[initial])
        sizes = 64 * _EPS * (np.abs(offset) + abs(h[initial]) + np.abs(ahead))
        return Scored(
            offset + sizes, visits @ slope, top + 64 * _EPS * (abs(top) + abs(h[initial])), block.stake
        )

    # --- the bound -----------------------------------------------------------------------------

    def bound(self, region: Polytope, side: Side) -> tuple[float, float]:
        """The least gain over what was done, at one parameter vector, and by the policy's interval apart."""
        low, high = side.lower, side.upper
        low, high = (1.0 - high, 1.0 - low) if self.objective.complement else (low, high)
        least = low if self.sign > 0 else -high
        least -= 16 * _EPS * (1.0 + abs(least))
        worst = least - (self.rules.ends[1] if self.sign > 0 else -self.rules.ends[0])
        if not self.blocks or not region.coordinates.size:
            return worst, worst
        if self._known is None or self._known[0] is not region:
            self._known = region, Cells.of(region).whole.frame, self.scored(region)
        _, frame, scored = self._known
        chain = chain_of(side.model, side.objective, side.policy)
        functions = functions_of(region.coordinates, side.model, side.objective)
        if frame is None and isinstance(chain, Chain):
            frame = self._frame_along(region, chain, functions, scored)
        if frame is None:
            return worst, worst
        x = frame.to_x(frame.points)
        if np.any(np.abs(x) > _reach(region)):
            return worst, worst
        apart = max(worst, self._exclude(np.full(len(x), least), x, scored))
        own = self._under(chain, functions, frame) if isinstance(chain, Chain) else None
        return apart if own is None else max(apart, self._exclude(own, x, scored)), apart

    def _frame_along(
        self, region: Polytope, chain: Chain, functions: AffineFunctions, scored: list[Scored]
    ) -> Frame | None:
        """A frame that is tight along the difference, where the region has too many vertices."""
        cells = Cells.of(region)
        half = 0.01 * np.maximum(cells.upper - cells.lower, 1e-200)
        model = expand(chain, functions, cells.interior, np.diag(half), 1.0, order=1)
        mean = np.concatenate([one.slope for one in scored]).mean(axis=0)
        if model is None:
            return cells.root_along(mean[None, :]).frame
        own = self.sign * model.slope[chain.initial] / half
        return cells.root_along(np.stack([own - mean, own])).frame

    def _under(self, chain: Chain, functions: AffineFunctions, frame: Frame) -> FloatArray | None:
        """At the points of a frame, a concave function that is nowhere above what the policy is worth."""
        order = order_for(chain, frame.axes)
        taylor = expand(chain, functions, frame.centre, frame.axes, frame.radius, order)
        if taylor is None:
            return None
        constant, slope, curvature = taylor.at(chain.initial)
        points, size = frame.points, float(np.linalg.norm(curvature))
        value, vector = np.linalg.eigh(self.sign * curvature)
        bend = (vector * np.minimum(value, 0.0)) @ vector.T - 1e-10 * size * np.eye(len(slope))
        error = float(taylor.error[chain.initial])
        error += 1e3 * _EPS * (abs(constant) + frame.radius * float(np.linalg.norm(slope)))
        values = self.sign * (constant + points @ slope) + np.einsum("ki,ij,kj->k", points, bend, points)
        return np.asarray(values - error)

    def _exclude(self, value: FloatArray, x: FloatArray, scored: list[Scored]) -> float:
        """The largest d that is excluded at all points, sought at the few that decide."""
        wager = _Wager(value, x, scored, math.log(1.0 / self.gamma))
        active = [wager.lowest]
        for _ in range(_MOST_ACTIVE):
            d = wager.largest(active, None)
            if not math.isfinite(d):
                break
            shares = wager.shares(d, active)
            d = wager.largest(active, shares)
            logs = [wager.log_capital(d, k, shares) for k in range(len(x))]
            if min(logs) >= wager.need:
                return d
            active.append(int(np.argmin(logs)))
        return wager.floor


class _Wager:
    """log K_j at every point, as a function of d."""

    def __init__(self, value: FloatArray, x: FloatArray, scored: list[Scored], need: float):
        self.value, self.x, self.scored, self.need = value, x, scored, need
        self.least = float(value.min())
        self.floor = self.least - max(one.top for one in scored)
        self._gains: dict[int, list[FloatArray]] = {}
        middle = [float(np.concatenate(self.gains(k)).mean()) for k in range(len(x))]
        self.lowest = int(np.argmin(middle))

    def gains(self, k: int) -> list[FloatArray]:
        """V_π − X_i at a point, at least."""
        if k not in self._gains:
            self._gains[k] = [self.value[k] - one.offset - one.slope @ self.x[k] for one in self.scored]
        return self._gains[k]

    def logs(self, d: float, k: int) -> FloatArray:
        """A lower bound on log K_j for all j; −∞ where a stake is too large to take part everywhere."""
        total = np.zeros(len(_SIZES))
        for one, gain in zip(self.scored, self.gains(k), strict=True):
            for j, stake in enumerate(one.stake):
                if not stake * (d + one.top - self.least) <= 1.0 - 1e-9:
                    total[j] = -np.inf
                    continue
                won = stake * (gain - d)
                if float(won.min()) <= -1.0 + 1e-12:  # a point beyond the region, where a factor is negative
                    total[j] = -np.inf
                    continue
                terms = np.log1p(won)
                total[j] += float(terms.sum()) - 2.0**-44 * float(np.abs(terms).sum() + len(terms))
        return total

    def log_capital(self, d: float, k: int, shares: FloatArray | None) -> float:
        """Of the mixture, or at least that by fixed shares."""
        logs, weight = self.logs(d, k), np.array(_WEIGHTS)
        used = np.isfinite(logs) if shares is None else shares > 0.0
        if not np.any(used) or not np.all(np.isfinite(logs[used])):
            return -math.inf
        if shares is None:
            most = float(logs[used].max())
            return most + math.log(float(weight[used] @ np.exp(logs[used] - most))) - 1e-9
        price = float(shares[used] @ np.log(shares[used] / weight[used]))
        return float(shares[used] @ logs[used]) - price - 1e-9

    def shares(self, d: float, active: list[int]) -> FloatArray:
        """Those that make the price of fixing them least, where the capital is."""
        worst = min(active, key=lambda k: self.log_capital(d, k, None))
        logs = self.logs(d, worst)
        part = np.array(_WEIGHTS) * np.exp(logs - logs.max())
        part[part < 1e-6 * part.sum()] = 0.0
        return np.asarray(part / part.sum())

    def largest(self, active: list[int], shares: FloatArray | None) -> float:
        """The largest d whose capital is enough at these points; −∞ where there is none."""
        low = self.floor
        high = min(float(np.concatenate(self.gains(k)).mean()) for k in active)
        if not low < high or min(self.log_capital(low, k, shares) for k in active) < self.need:
            return -math.inf
        for _ in range(50):
            d = 0.5 * (low + high)
            enough = min(self.log_capital(d, k, shares) for k in active) >= self.need
            low, high = (d, high) if enough else (low, d)
        return low


def _reach(region: Polytope) -> FloatArray:
    """What no coordinate exceeds in size where scores are looked at."""
    lower, upper = region.bounding_box
    return np.asarray(2.0 * np.maximum(np.abs(lower), np.abs(upper)) + 1e-12)
