"""`plan`: from a model and pilot data to the data that an aim still takes, and how to collect them.

The forecast follows from the region that `learn` builds (`tightrope.design.forecast`), the exploration from
the design of the next stage (`tightrope.design.design`). Nothing of a plan enters a guarantee: regions hold
under any adaptive policy, and what comes out is certified by `learn` on the data once they are there.

How many draws of which choice an aim takes, where every choice can be sampled at will (`plan
--generative`).

The forecast is that of episodes with a draw in place of each (`tightrope.design.forecast`): K follows from
batches that grow by a quarter, and the information of a draw from the shares of the signatures. What is
compared with the design (`tightrope.design.draws`) are as many draws of every signature. Data and draws
together are adaptive, since the draws were chosen by the data; the forecast pays for that.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.data.planned_draws import PlannedDraws
from tightrope.design.design import FEWEST
from tightrope.design.directions import Directions, blind_combinations
from tightrope.design.draws import DrawDesign, Experiments, design_draws
from tightrope.design.forecast import MOST_EPISODES, Corrected, Curve, Forecast, Gap
from tightrope.design.plan import DESIGNED, EVEN, Plan, PlanStatus, Strategy, Target
from tightrope.design.planner import Found, Planner
from tightrope.errors import CannotCertify, InputError, check_keywords, check_type
from tightrope.io.policy import PolicyGiven
from tightrope.learning.learn import Learner, counts_of, parametric
from tightrope.learning.online.exploration import Explore
from tightrope.learning.options import Decisions, LearnOptions, decide
from tightrope.learning.policies import depends_on_step
from tightrope.learning.products import refuse_products
from tightrope.learning.stages import Progress
from tightrope.model.rewards import ParametricReward
from tightrope.numerics.arrays import FloatArray
from tightrope.problem import Problem, learnable
from tightrope.regions.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod, check_delta
from tightrope.verdict import Verdict

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
        needed = {EVEN: self._forecast_needed(forecasts[EVEN], found.gap_asked)}
        amount = needed[EVEN].expected
        for _ in range(MOST_ROUNDS):
            made = self._draws(experiments, min(max(amount, float(FEWEST)), float(MOST_EPISODES)))
            forecasts[DESIGNED] = curve(made.matrix)
            needed[DESIGNED] = self._forecast_needed(forecasts[DESIGNED], found.gap_asked)
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


PLANNED_SETS = (SetsKind.RECTANGULAR, SetsKind.COUPLED, SetsKind.EXPRESSION)


class PlanWords(TypedDict, total=False):
    """Keyword arguments of `plan` beside the aim and δ; those of regions and sets are `learn`'s."""

    optimality: float | None
    above: float | None
    budget: int | None
    within_cap: int | None
    cost: str | None
    avoid: str | None
    at_most: float | None
    generative: bool
    region: RegionKind | str | None
    sets: SetsKind | str | None
    interval: IntervalMethod | str | None
    precision: float
    assume_support: float | None
    seconds: float
    device: str
    iterations: int
    coupled_gap: float
    threads: int | None


OWN = ("optimality", "above", "budget", "within_cap", "cost", "avoid", "at_most", "generative")


class NothingToPlan(CannotCertify):
    """The data refute the model; `verdict` says so, and what it rests on."""

    def __init__(self, contradiction: str, verdict: Verdict):
        super().__init__(f"there is nothing to plan: {contradiction}")
        self.verdict = verdict


def plan(
    problem: Problem,
    data: Any,
    *,
    delta: float = 0.001,
    gap: float | str | None = None,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
    **words: Unpack[PlanWords],
) -> Plan:
    """How many more episodes it takes until the certified interval is as narrow as is asked for, and a
    policy to collect them with: a forecast, not a guarantee.

    * `gap`: the width of the robust policy's interval, a number or a share of its value ("5%"). Instead of it
      `optimality` (guarantee and best possible value so close), `above` (a guarantee so good) or `budget`
      (the gap to expect from so many more episodes).
    * `policy`: plan for the interval of this policy instead of the robust one.
    * `within_cap`: steps that an episode takes at most; required where episodes need not end.
    * `cost`: what data cost, "episode=1,step=0.01" or a JSON file with prices per action; the design makes
      the most of it.
    * `avoid`, `at_most`: the exploration meets states of this formula, such as '"crash"', with at most this
      probability, certified over all that the data leave possible.
    * `generative`: every choice can be sampled at will; how many draws of which one, instead of episodes.
    * `data`, `region`, `sets` and the other options are those of `learn`.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> pilot = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(100, seed=1)
    >>> found = tr.plan(bench.problem, pilot, delta=0.01, budget=1000, region="likelihood")
    >>> found.curve(1000).expected < found.gap_now, found.next_episodes
    (True, 88)
    """
    given = check_keywords("plan", PlanWords, words)
    own = {name: given.pop(name, None) for name in OWN}
    target = Target.of(gap, own["optimality"], own["above"], own["budget"])
    cap = own["within_cap"]
    if cap is not None:
        check_type("within_cap", cap, int, "a number of steps")
        if cap < 1:
            raise InputError(f"`within_cap` is {cap}, but an episode has at least one step")
    if own["generative"] and (own["cost"] is not None or own["avoid"] is not None):
        raise InputError("`cost` and `avoid` are about episodes, and `generative` asks for draws")
    asked = Explore("designed", cap, own["cost"], own["avoid"], own["at_most"])
    check_delta(delta)
    refuse_products(problem, "plans of data are")
    found = learnable(problem)
    counts = counts_of(data, found.model)
    options = LearnOptions(**given)
    decisions = decide(parametric(found), counts, options, "how it narrows is not forecast")
    _refuse(found, counts, decisions)
    options = replace(options, region=decisions.region)
    learner = Learner(found, counts, delta, options=options, policy=policy, progress=progress)
    result = learner.result(options)
    if result.contradiction is not None:
        raise NothingToPlan(result.contradiction, result.verdict)
    planner = DrawPlanner if own["generative"] else Planner
    return planner(result, counts, target, asked).plan()


def _refuse(problem: Problem, counts: Counts, decisions: Decisions) -> None:
    """Questions that a plan has no answer to."""
    if isinstance(problem.objective.reward, ParametricReward):
        raise InputError(
            "the rewards depend on parameters, and how their ranges narrow with more data is not forecast",
            hint="plan for a property about probabilities, or give those parameters a value in the model",
        )
    if depends_on_step(problem.objective):
        raise InputError(
            "the property has a step bound, so its robust policy depends on the step, and a plan is about "
            "policies that take one choice per state",
            hint="plan for the property without the bound, with `within_cap` as the length of an episode",
        )
    if decisions.region is RegionKind.SLAB:
        raise InputError(
            "how a slab narrows with more data is not forecast", hint='plan with `region="likelihood"`'
        )
    if decisions.sets not in PLANNED_SETS:
        raise InputError(
            f"how {decisions.sets.value} sets narrow with more data is not forecast",
            hint='plan with `sets="rectangular"` or coupled',
        )
    if not counts.steps:
        raise InputError("the data hold no steps: a plan starts from a pilot", hint="collect episodes first")
