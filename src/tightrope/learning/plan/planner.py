"""From a learned result and an aim to a plan: forecasts of every way to collect, and the next design.

A design depends on the number of episodes it is made for, and that number on the design; a few rounds settle
both. The forecast of designed exploration is that of a design for all episodes that it needs, since it is
designed anew whenever the episodes have doubled; what is written is the design of the next stage.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.batches import batch_ends
from tightrope.data.counts import Counts
from tightrope.data.stopping import deciding_steps
from tightrope.design.design import Design, design
from tightrope.design.directions import (
    Criterion,
    Directions,
    EveryDirection,
)
from tightrope.design.episodes import Way
from tightrope.design.forecast import (
    MOST_EPISODES,
    ROUGH_RATIO,
    Corrected,
    Forecast,
    Gap,
    episodes_until,
)
from tightrope.design.hanging import Combination, main_combinations, without_information
from tightrope.design.oracle import Atom, Oracle
from tightrope.design.stage import FEWEST, Stage
from tightrope.io.policy import Policy
from tightrope.learning.online.designer import Designer, by_expression
from tightrope.learning.online.exploration import Explore
from tightrope.learning.plan.answer import (
    DESIGNED,
    GIVEN,
    OPTIMISTIC,
    ROBUST,
    UNIFORM,
    Exploration,
    Plan,
    PlanStatus,
    Strategy,
)
from tightrope.learning.plan.outlook import Outlook
from tightrope.learning.plan.target import Aim, Target
from tightrope.learning.policies import maximises
from tightrope.learning.result import LearningResult, PolicyValue
from tightrope.model.mdp import MDP
from tightrope.numerics.arrays import FloatArray
from tightrope.solver.solve import solve

POINTS = 24
"""Of a curve."""

_ROUNDS = 3
_NOTEWORTHY_LOSS = 0.01
_ROUNDING = 1e-9
"""Relative: gaps below are none (a policy whose value is known, whatever the parameters)."""


@dataclass(frozen=True, eq=False)
class Collected:
    """A way to collect episodes: how often each choice is taken in one."""

    name: str
    occupancy: FloatArray


@dataclass(frozen=True, eq=False)
class Found:
    """What there is to say beside the question."""

    gap_now: float
    gap_asked: float | None
    value: float
    strategies: tuple[Strategy, ...] = ()
    hangs_on: tuple[Combination, ...] = ()
    blind: tuple[str, ...] = ()
    exploration: Exploration | None = None
    next_episodes: int = 0


class Planner:
    """One result, one aim: what more data would do. `asked` says what an episode is, costs, must avoid."""

    def __init__(self, result: LearningResult, counts: Counts, target: Target, asked: Explore):
        self.result, self.counts, self.target = result, counts, target
        model, self.objective = result.model, result.problem.objective
        steps = deciding_steps(self.objective)
        limit = asked.cap if steps is None else min(asked.cap or steps, steps)
        self.delta = result.ledger.delta
        coupled = result.decisions.sets is SetsKind.COUPLED
        self.designer = Designer.of(result.problem, self.delta, coupled, replace(asked, cap=limit))
        self.stage = Stage.after(self.designer.question, by_expression(model, counts))
        self.oracle: Oracle = self.designer.oracle(self.stage)
        self.judged: PolicyValue = result.robust if result.value is None else result.value
        apart = target.aim is Aim.OPTIMALITY
        judged = (self.judged.policy, result.optimistic.policy) if apart else (self.judged.policy,)
        self.outlook = Outlook(result, counts, self.stage, judged)
        self._criterion: Criterion | None = None
        self._atoms: tuple[Atom, ...] = ()
        self.notes = [self.stage.episodes.uncut] if self.stage.episodes.uncut else []

    def plan(self) -> Plan:
        """The answer."""
        directions, gap_now = self.outlook.directions(), self._gap_now()
        if directions is None or not math.isfinite(gap_now):
            made, following = self._explore_everything()
            nothing = Found(gap_now, None, math.nan, exploration=made, next_episodes=following)
            return self._answer(PlanStatus.EXPLORE, nothing)
        value = self._value()
        asked = self._find_width(value)
        hangs_on = main_combinations(self.stage.information, directions, self.stage.past)
        found = Found(gap_now, asked, value, hangs_on=hangs_on)
        if asked is not None and self._is_reached(gap_now, asked, value):
            return self._answer(PlanStatus.REACHED, found)
        found = replace(found, blind=self._blind(directions))
        if asked is not None and asked <= 0.0:
            self.notes.append(
                f"the value at the estimate is {value:.4g}: data bring the guarantee near it, not beyond"
            )
            return self._answer(PlanStatus.UNREACHABLE, replace(found, gap_asked=None))
        return self._forecast(found, directions)

    # --- what is asked ---------------------------------------------------------------------

    def _gap_now(self) -> float:
        if self.target.aim is Aim.OPTIMALITY:
            return abs(self.result.optimistic_value - self.result.guarantee)
        return self.judged.interval.width

    def _value(self) -> float:
        """The policy's value at the estimate."""
        model = self.result.model
        plain = MDP(model.structure, self.stage.information.probability[model.expression])
        solution = solve(plain, self.objective, policy=self.judged.policy, precision=1e-6)
        return 0.5 * float(solution.lower[model.initial] + solution.upper[model.initial])

    def _find_width(self, value: float) -> float | None:
        """The aim as a width; None where a budget is given."""
        target = self.target
        if target.aim is Aim.BUDGET:
            return None
        if target.aim is Aim.ABOVE:
            better = 1.0 if maximises(self.objective) else -1.0
            return 2.0 * better * (value - target.amount)
        return target.amount * abs(value) if target.relative else target.amount

    def _is_reached(self, gap_now: float, asked: float, value: float) -> bool:
        if self.target.aim is not Aim.ABOVE:
            return gap_now <= max(asked, _ROUNDING * abs(value))
        interval = self.judged.interval
        if maximises(self.objective):
            return interval.lower >= self.target.amount
        return interval.upper <= self.target.amount

    # --- what to expect --------------------------------------------------------------------

    def _blind(self, directions: Directions) -> tuple[str, ...]:
        """Combinations that matter and that no data tell anything about."""
        return without_information(self.stage.episodes, self.stage.information, directions)

    def _forecast(self, found: Found, directions: Directions) -> Plan:
        formula = self.outlook.forecaster(directions)

        def forecaster(occupancy: FloatArray) -> Forecast:
            return Corrected(formula(occupancy), found.gap_now)

        ways = self._ways()
        forecasts: dict[str, Forecast] = {}
        needed: dict[str, Gap] = {}
        for way in ways:
            same = next((one.name for one in ways if np.array_equal(one.occupancy, way.occupancy)), way.name)
            forecasts[way.name] = forecasts.get(same) or forecaster(way.occupancy)
            needed[way.name] = needed.get(same) or self._forecast_needed(forecasts[way.name], found.gap_asked)
        amount = min((need.expected for need in needed.values()), default=math.inf)
        for _ in range(_ROUNDS):
            made = self._design(min(max(amount, float(FEWEST)), float(MOST_EPISODES)))
            designed = Collected(DESIGNED, self._occupancy(made))
            forecasts[DESIGNED] = forecaster(designed.occupancy)
            needed[DESIGNED] = self._forecast_needed(forecasts[DESIGNED], found.gap_asked)
            reached = needed[DESIGNED].expected
            if not math.isfinite(reached) or 0.5 * amount <= reached:
                break
            amount = reached
        ways = [designed, *ways]
        at = self._grid(needed)
        strategies = tuple(
            Strategy(
                way.name,
                *needed[way.name],
                float(way.occupancy.sum()),
                self.designer.cost_of(way.occupancy),
                np.array([(float(n), *forecasts[way.name](float(n))) for n in at]),
            )
            for way in ways
        )
        found = replace(found, strategies=strategies)
        self._warn_of_few_data(forecasts[DESIGNED])
        if not math.isfinite(needed[DESIGNED].expected):
            return self._answer(PlanStatus.UNREACHABLE if found.blind else PlanStatus.BEYOND, found)
        following = self._next_episodes(needed[DESIGNED].expected)
        stage = self._keep_safe(lambda ask: self._design(float(following), ask))
        found = replace(found, exploration=stage, next_episodes=following)
        return self._answer(PlanStatus.PLANNED, found)

    def _warn_of_few_data(self, forecast: Forecast) -> None:
        ratio = forecast.missed + 1.0 if isinstance(forecast, Corrected) else 1.0
        if ratio > ROUGH_RATIO:
            self.notes.append(
                f"the gap of now is {ratio:.2g} times what it is to first order: a forecast from so few data "
                "is rough, so plan again soon"
            )

    def _ways(self) -> list[Collected]:
        """What designed exploration is compared with."""
        judged = ROBUST if self.result.value is None else GIVEN
        model, optimistic = self.result.model, self.result.optimistic.policy
        policies = {judged: self.judged.policy, OPTIMISTIC: optimistic, UNIFORM: Policy.uniform(model)}
        return [Collected(name, self.stage.episodes.occupancy(policy)) for name, policy in policies.items()]

    def _forecast_needed(self, forecast: Forecast, asked: float | None) -> Gap:
        """Episodes, as expected and at the edges."""
        if asked is None:
            return Gap(self.target.amount, self.target.amount, self.target.amount)
        return episodes_until(forecast, asked)

    def _grid(self, needed: dict[str, Gap]) -> list[int]:
        """Numbers of episodes for which gaps are kept."""
        finite = [need.expected for need in needed.values() if math.isfinite(need.expected)]
        last = min(max(3.0 * max(finite, default=0.0), 30.0 * self._so_far()), float(MOST_EPISODES))
        spread = np.geomspace(max(1.0, 0.1 * self._so_far()), max(last, 100.0), POINTS)
        return [0, *np.unique(np.rint(spread).astype(np.int64)).tolist()]

    # --- how to collect --------------------------------------------------------------------

    def _design(self, amount: float, oracle: Oracle | None = None) -> Design:
        """The design for what so many of the judged policy's episodes cost, looked for from the last one."""
        stage = self.stage
        followed = self._followed
        spend = amount * self.designer.cost_of(followed)
        known = stage.past
        past = self.outlook.past
        if past is not None:
            known = past.kept(amount * float(followed.sum())) + stage.information.smoothing
        if oracle is not None:  # another bound: what was found under this one need not keep it
            self._atoms = ()
        if self._criterion is None:
            self._criterion = stage.criterion(self.judged.policy, self.result.optimistic.policy)
        ask = oracle or self.oracle
        made = design(stage.information, self._criterion, known, spend, ask, self._atoms)
        self._atoms = made.atoms
        return made

    @cached_property
    def _followed(self) -> FloatArray:
        return self.stage.episodes.occupancy(self.judged.policy)

    def _occupancy(self, made: Design) -> FloatArray:
        """Of the one randomised policy: under a cap it is not quite that of the mixture."""
        if self.stage.episodes.way is not Way.SWEEPS:
            return made.occupancy
        return self.stage.episodes.occupancy(made.policy)

    def _exploration(self, made: Design) -> Exploration:
        loss, steps = 0.0, made.steps
        if self.stage.episodes.way is Way.SWEEPS:
            occupancy = self._occupancy(made)
            apart = self.stage.information.of_visits(occupancy)
            weight = np.linalg.pinv(self.stage.past + made.matrix)
            drawn = float(np.vdot(weight, made.matrix))
            loss, steps = max(1.0 - float(np.vdot(weight, apart)) / drawn, 0.0), float(occupancy.sum())
            if loss > _NOTEWORTHY_LOSS:
                self.notes.append(
                    f"episodes have a cap: one of policies/ drawn per episode collects about {loss:.1%} more "
                    "information than the one randomised policy"
                )
        shares, policies = zip(*made.policies, strict=True)
        return Exploration(
            made.policy, tuple(policies), tuple(shares), made.optimality, made.solves, steps, loss
        )

    def _keep_safe(self, designed: Callable[[Oracle], Design]) -> Exploration:
        """A design to explore with; certified over the region where something is to be avoided."""
        if self.designer.safety is None:
            return self._exploration(designed(self.oracle))
        found = self.designer.keep_safe(self.result.sets, self.stage, designed)
        if found.design is not None and found.policy == found.design.policy:
            made = replace(self._exploration(found.design), certified=found.certified)
            safety, cap = self.designer.safety, self.stage.episodes.cap
            drawn = safety.certified_drawn(self.result.sets, found.design.policies, cap)
            if drawn <= safety.most:
                return replace(made, certified_drawn=drawn)
            self.notes.append(
                f"drawn per episode, the policies of the design would be certified at {drawn:.4g} only: the "
                "one randomised policy is what to explore with"
            )
            return replace(made, policies=(made.policy,), shares=(1.0,), certified_drawn=found.certified)
        steps = float(self.stage.episodes.occupancy(found.policy).sum())
        alone = Exploration(found.policy, (found.policy,), (1.0,), math.inf, 0, steps, 0.0, found.certified)
        return replace(alone, certified_drawn=found.certified)

    def _explore_everything(self) -> tuple[Exploration, int]:
        """Where no guarantee is finite, every direction counts alike."""
        following = self._next_episodes(math.inf)
        everything = EveryDirection(self.stage.information.size)
        spend = following * self.designer.cost_of(self.stage.episodes.occupancy(self.judged.policy))
        return self._keep_safe(lambda ask: self.stage.design(everything, spend, ask)), following

    def _so_far(self) -> int:
        """Episodes so far; where data do not come in episodes, as many as would take the same steps."""
        if self.counts.design.episodes is not None:
            return self.counts.design.episodes
        uniform = self.stage.episodes.occupancy(Policy.uniform(self.result.model))
        return round(self.counts.steps / max(float(uniform.sum()), 1.0))

    def _next_episodes(self, needed: float) -> int:
        """To where a batch ends and the episodes have about doubled, or to the aim."""
        before = self._so_far()
        ends = batch_ends(2 * before)[:-1]
        doubled = int(ends[-1]) - before if len(ends) and ends[-1] > before else before
        return max(
            1, min(max(doubled, FEWEST), math.ceil(needed) if math.isfinite(needed) else MOST_EPISODES)
        )

    def _answer(self, status: PlanStatus, found: Found) -> Plan:
        return Plan(
            problem=self.result.problem,
            target=self.target,
            status=status,
            delta=self.delta,
            decisions=self.result.decisions,
            interval=self.judged.interval,
            gap_now=found.gap_now,
            gap_asked=found.gap_asked,
            value=found.value,
            episodes_so_far=self._so_far(),
            steps_so_far=self.counts.steps,
            strategies=found.strategies,
            exploration=found.exploration,
            next_episodes=found.next_episodes,
            hangs_on=found.hangs_on,
            unidentifiable=found.blind,
            notes=tuple(self.notes),
            verdict=self.result.verdict,
        )
