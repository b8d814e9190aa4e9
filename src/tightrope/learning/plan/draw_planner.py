"""How many draws of which choice an aim takes, where every choice can be sampled at will (`plan
--generative`).

The forecast is that of episodes with a draw in place of each (`tightrope.planning.forecast`): K follows from
batches that grow by a quarter, and the information of a draw from the shares of the signatures. What is
compared with the design (`tightrope.planning.draws`) are as many draws of every signature. Data and draws
together are adaptive, since the draws were chosen by the data; the forecast pays for that.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np

from tightrope.data.planned_draws import PlannedDraws
from tightrope.errors import InputError
from tightrope.learning.plan.answer import DESIGNED, EVEN, Plan, PlanStatus, Strategy
from tightrope.learning.plan.planner import Found, Planner
from tightrope.numerics.arrays import FloatArray
from tightrope.planning.directions import Directions
from tightrope.planning.draws import DrawDesign, Experiments, design_draws
from tightrope.planning.forecast import MOST_EPISODES, Corrected, Curve, Forecast, Gap
from tightrope.planning.hanging import blind_combinations
from tightrope.planning.stage import FEWEST
from tightrope.region.region import RegionKind

MOST_ROUNDS = 4


class DrawPlanner(Planner):
    """Like `Planner`, for draws instead of episodes."""

    def _blind(self, directions: Directions) -> tuple[str, ...]:
        information = self.stage.information
        every = information.of_visits(np.ones(self.result.model.choices))
        return blind_combinations(every, information, directions)

    def _so_far(self) -> int:
        return self.counts.steps

    def _forecast(self, found: Found, directions: Directions) -> Plan:
        decisions, information = self.result.decisions, self.stage.information
        if decisions.region is not RegionKind.LIKELIHOOD:
            raise InputError(
                "draws are forecast for likelihood regions only", hint='plan with `region="likelihood"`'
            )
        assert self.outlook.past is not None
        past = replace(self.outlook.past, episodes=self._so_far())
        experiments = Experiments.of(information)

        def curve(matrix: FloatArray) -> Forecast:
            formula = Curve(information, directions, past, self.delta, matrix, 1.0, self.outlook.elsewhere)
            return Corrected(formula, found.gap_now)

        forecasts = {EVEN: curve(experiments.information.mean(axis=0))}
        needed = {EVEN: self._needed(forecasts[EVEN], found.gap_asked)}
        amount = needed[EVEN].expected
        for _ in range(MOST_ROUNDS):
            made = self._draws(experiments, min(max(amount, float(FEWEST)), float(MOST_EPISODES)))
            forecasts[DESIGNED] = curve(made.matrix)
            needed[DESIGNED] = self._needed(forecasts[DESIGNED], found.gap_asked)
            reached = needed[DESIGNED].expected
            if not math.isfinite(reached) or 0.7 * amount <= reached:
                break
            amount = reached
        at = self._grid(needed)
        strategies = tuple(
            self._strategy(name, needed[name], forecasts[name], at) for name in (DESIGNED, EVEN)
        )
        found = replace(found, strategies=strategies)
        if not math.isfinite(needed[DESIGNED].expected):
            return self._answer(PlanStatus.UNREACHABLE if found.blind else PlanStatus.BEYOND, found)
        total = math.ceil(needed[DESIGNED].expected)
        model = self.result.model
        digest = hashlib.sha256(self.counts.transition.tobytes()).hexdigest()
        table = PlannedDraws(model, made.draws(total, len(model.signatures)), digest)
        self.notes.append(
            f"the shares are within {made.optimality:.2%} of the best at the estimate, before a tenth of the "
            "draws is spread evenly"
        )
        return replace(self._answer(PlanStatus.PLANNED, found), draws=table, next_episodes=total)

    def _draws(self, experiments: Experiments, amount: float) -> DrawDesign:
        criterion = self.stage.criterion(self.judged.policy, self.result.optimistic.policy)
        return design_draws(experiments, criterion, self.stage.past, amount)

    def _strategy(self, name: str, needed: Gap, forecast: Forecast, at: list[int]) -> Strategy:
        points = np.array([(float(n), *forecast(float(n))) for n in at])
        return Strategy(name, *needed, 1.0, 1.0, points)
