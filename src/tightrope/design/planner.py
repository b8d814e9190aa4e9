"""`plan`: the data that an aim still takes, and how to collect them, from a model and pilot data.

A design depends on the number of episodes and that number on the design; a few rounds settle both. Widths
follow from expected information for likelihood regions, from simulated counts otherwise
(`tightrope.design.forecast`). With `generative` the plan is a number of draws per choice
(`tightrope.design.design`). No guarantee uses a plan.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypedDict, Unpack

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.collection import PlannedDraws
from tightrope.data.counts import Counts, batch_ends
from tightrope.data.design import deciding_steps
from tightrope.design import directions as bearings
from tightrope.design.design import FEWEST, Design, Experiments, Stage, design, design_draws
from tightrope.design.directions import Information
from tightrope.design.episodes import Way
from tightrope.design.exploration import Designer, Explore
from tightrope.design.forecast import (
    MOST_EPISODES,
    ROUGH_RATIO,
    Corrected,
    Curve,
    Forecast,
    Gap,
    Past,
    SampledCurve,
    episodes_until,
    plausible_points,
)
from tightrope.design.more_of_same import guarantee_of, plan_controller, plan_more, width_of
from tightrope.design.oracle import Atom, Oracle
from tightrope.design.plan import DesignedExploration, Plan, PlanStatus, Strategy
from tightrope.errors import CannotCertify, InputError, check_keywords, check_type
from tightrope.io.answers import DESIGNED, EVEN, GIVEN, OPTIMISTIC, ROBUST, UNIFORM, Aim, Target
from tightrope.learning.options import Decisions, LearnOptions, Progress, decide, spell_out
from tightrope.learning.pipeline import Pipeline, counts_of, parametric
from tightrope.learning.policy_solver import PolicyValue
from tightrope.learning.result import LearningResult
from tightrope.model.mdp import MDP
from tightrope.model.policy import Policy, PolicyGiven
from tightrope.model.pomdp import POMDP
from tightrope.model.structure import ParametricReward
from tightrope.numerics.arrays import FloatArray
from tightrope.problem import Problem, learnable, problem_of
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import Region
from tightrope.regions.registry import build_region, region_kind
from tightrope.solver.solution import Solution
from tightrope.solver.solve import solve
from tightrope.statistics.estimates import IntervalMethod, check_delta
from tightrope.verdict import Assessment, Word

POINTS = 24
"""Of a curve."""

_ROUNDS = 3
_NOTEWORTHY_LOSS = 0.01
_ROUNDING = 1e-9
"""Relative: gaps below are none (a policy whose value is known, whatever the parameters)."""


class Planner:
    """One result, one aim: what more data would do. `asked` says what an episode is, costs, must avoid."""

    def __init__(self, result: LearningResult, counts: Counts, target: Target, explore: Explore):
        self.result, self.counts, self.target = result, counts, target
        self.objective = result.problem.objective
        steps = deciding_steps(self.objective)
        limit = explore.cap if steps is None else min(explore.cap or steps, steps)
        self.delta = result.ledger.delta
        coupled = result.decisions.sets is SetsKind.COUPLED
        self.designer = Designer.of(result.problem, self.delta, coupled, replace(explore, cap=limit))
        self.stage = Stage.after(self.designer.question, counts)
        self.oracle: Oracle = self.designer.oracle(self.stage)
        self.judged: PolicyValue = result.robust if result.value is None else result.value
        self.aimed = self.judged.policy  # whose interval is to narrow
        if target.aim is Aim.ABOVE and result.value is None:  # for a guarantee, the best one at the estimate
            self.aimed = Policy(result.model, self._at_estimate(None).policy)
        apart = target.aim is Aim.OPTIMALITY
        judged = (self.aimed, result.optimistic.policy) if apart else (self.aimed,)
        self.outlook = Outlook(result, counts, self.stage, judged)
        self._criterion: bearings.Criterion | None = None
        self._atoms: tuple[Atom, ...] = ()
        self.notes = [self.stage.episodes.uncut] if self.stage.episodes.uncut else []

    def plan(self) -> Plan:
        """The answer."""
        directions, gap_now = self.outlook.directions(), self.judged.interval.width
        if self.target.aim is Aim.OPTIMALITY:
            gap_now = abs(self.result.optimistic_value - self.result.guarantee)
        begun = Plan(
            problem=self.result.problem,
            target=self.target,
            status=PlanStatus.EXPLORE,
            delta=self.delta,
            decisions=self.result.decisions,
            interval=self.judged.interval,
            gap_now=gap_now,
            gap_asked=None,
            value=math.nan,
            episodes_so_far=self._so_far(),
            steps_so_far=self.counts.steps,
            verdict=self.result.verdict,
        )
        answer = self._answer(begun, directions)
        if (made := answer.exploration) is not None:
            best = self.result.optimistic.policy
            first, *rest = (one.made(lambda: best.made_from) for one in (made.policy, *made.policies))
            answer = replace(answer, exploration=replace(made, policy=first, policies=tuple(rest)))
        return replace(answer, notes=tuple(self.notes))

    def _answer(self, begun: Plan, directions: bearings.Directions | None) -> Plan:
        gap_now = begun.gap_now
        if directions is None or not math.isfinite(gap_now):
            following = self._next_episodes(math.inf)
            everything = bearings.EveryDirection(self.stage.information.size)  # all count alike
            spend = following * self.designer.cost_of(self.stage.episodes.occupancy(self.judged.policy))
            made = self._keep_safe(lambda ask: self.stage.design(everything, spend, ask))
            return replace(begun, exploration=made, next_episodes=following)
        value = self._value()
        width = width_of(self.target, value)
        hangs_on = bearings.main_combinations(self.stage.information, directions, self.stage.past)
        known = replace(begun, gap_asked=width, value=value, hangs_on=hangs_on)
        if width is not None and self._is_reached(gap_now, width, value):
            return replace(known, status=PlanStatus.REACHED)
        known = replace(known, unidentifiable=self._blind(directions))
        if width is not None and width <= 0.0:
            self.notes.append(
                f"the value at the estimate is {value:.4g}: more data cannot raise the guarantee beyond it"
            )
            return replace(known, status=self._excluded(), gap_asked=None)
        return self._forecast(known, directions)

    # --- what is asked ---------------------------------------------------------------------

    def _at_estimate(self, policy: Policy | None) -> Solution:
        """The question where the parameters are as estimated, for this policy or the best one."""
        plain = MDP(
            self.result.model.structure, self.stage.information.probability[self.result.model.expression]
        )
        return solve(plain, self.objective, policy=policy, precision=1e-6)

    def _value(self) -> float:
        """The policy's value at the estimate."""
        solution, initial = self._at_estimate(self.aimed), self.result.model.initial
        return 0.5 * float(solution.lower[initial] + solution.upper[initial])

    def _aimed_gap(self, known: Plan) -> float:
        """The width now of what is to narrow; for a guarantee, twice its way to the value."""
        if self.aimed == self.judged.policy:
            return known.gap_now
        return 2.0 * self.target.better(known.value, self.result.guarantee)

    def _excluded(self) -> PlanStatus:
        """Whether the region excludes what is asked for, or the estimate alone."""
        interval, best = self.judged.interval, self.result.optimistic_value
        if self.result.value is not None:
            best = interval.lower if self.target.falls else interval.upper
        impossible = self.target.better(best, self.target.amount) < 0.0
        return PlanStatus.UNREACHABLE if impossible else PlanStatus.UNLIKELY

    def _is_reached(self, gap_now: float, width: float, value: float) -> bool:
        if self.target.aim is not Aim.ABOVE:
            return gap_now <= max(width, _ROUNDING * abs(value))
        guarantee = guarantee_of(self.judged.interval, self.target)
        return self.target.better(guarantee, self.target.amount) >= 0.0

    # --- what to expect --------------------------------------------------------------------

    def _blind(self, directions: bearings.Directions) -> tuple[str, ...]:
        """Combinations that matter and that no data tell anything about."""
        information = self.stage.information
        reachable = information.of_visits(self.stage.episodes.reachable.astype(np.float64))
        return bearings.blind_combinations(reachable, information, directions)

    def _forecast(self, known: Plan, directions: bearings.Directions) -> Plan:
        formula, begin = self.outlook.forecaster(directions), self._aimed_gap(known)

        def forecaster(occupancy: FloatArray) -> Forecast:
            return Corrected(formula(occupancy), begin)

        judged = ROBUST if self.result.value is None else GIVEN
        model, optimistic = self.result.model, self.result.optimistic.policy
        policies = {judged: self.judged.policy, OPTIMISTIC: optimistic, UNIFORM: Policy.uniform(model)}
        ways = {name: self.stage.episodes.occupancy(policy) for name, policy in policies.items()}
        forecasts: dict[str, Forecast] = {}
        needed: dict[str, Gap] = {}
        for name, way in ways.items():
            same = next((one for one, other in ways.items() if np.array_equal(other, way)), name)
            forecasts[name] = forecasts.get(same) or forecaster(way)
            needed[name] = needed.get(same) or self._forecast_needed(forecasts[name], known.gap_asked)
        least = min((need.expected for need in needed.values()), default=math.inf)
        for amount in self._amounts(least, needed, _ROUNDS, 0.5):
            designed = self._occupancy(self._design(amount))
            forecasts[DESIGNED] = forecaster(designed)
            needed[DESIGNED] = self._forecast_needed(forecasts[DESIGNED], known.gap_asked)
        at = self._grid(needed)
        strategies = []
        for name, way in {DESIGNED: designed, **ways}.items():
            per_episode = float(way.sum()), self.designer.cost_of(way)
            strategies.append(self._strategy(name, needed[name], forecasts[name], at, *per_episode))
        known = replace(known, strategies=tuple(strategies))
        self._warn_of_few_data(forecasts[DESIGNED])
        if not math.isfinite(needed[DESIGNED].expected):
            blind = PlanStatus.UNREACHABLE if known.unidentifiable else PlanStatus.BEYOND
            return replace(known, status=blind)
        following = self._next_episodes(needed[DESIGNED].expected)
        stage = self._keep_safe(lambda ask: self._design(float(following), ask))
        return replace(known, status=PlanStatus.PLANNED, exploration=stage, next_episodes=following)

    def _strategy(
        self, name: str, needed: Gap, forecast: Forecast, at: list[int], steps: float = 1.0, cost: float = 1.0
    ) -> Strategy:
        points = np.array([(float(n), *forecast(float(n))) for n in at])
        return Strategy(name, *needed, steps, cost, points)

    def _amounts(self, first: float, needed: dict[str, Gap], rounds: int, close: float) -> Iterator[float]:
        """Amounts to design for: what the last design needs, until that is no less than a part of them."""
        amount = first
        for _ in range(rounds):
            yield min(max(amount, float(FEWEST)), float(MOST_EPISODES))
            reached = needed[DESIGNED].expected
            if not math.isfinite(reached) or close * amount <= reached:
                return
            amount = reached

    def _warn_of_few_data(self, forecast: Forecast) -> None:
        ratio = forecast.missed + 1.0 if isinstance(forecast, Corrected) else 1.0
        if ratio > ROUGH_RATIO:
            self.notes.append(
                f"the current gap is {ratio:.2g} times its first-order approximation: a forecast from so few "
                "data is rough, so plan again soon"
            )

    def _forecast_needed(self, forecast: Forecast, width: float | None) -> Gap:
        """Episodes, as expected and at the edges."""
        if width is None:
            return Gap(self.target.amount, self.target.amount, self.target.amount)
        return episodes_until(forecast, width)

    def _grid(self, needed: dict[str, Gap]) -> list[int]:
        """Numbers of episodes for which gaps are kept."""
        finite = [need.expected for need in needed.values() if math.isfinite(need.expected)]
        last = min(max(3.0 * max(finite, default=0.0), 30.0 * self._so_far()), float(MOST_EPISODES))
        spread = np.geomspace(max(1.0, 0.1 * self._so_far()), max(last, 100.0), POINTS)
        return [0, *np.unique(np.rint(spread).astype(np.int64)).tolist()]

    # --- how to collect --------------------------------------------------------------------

    def _design(self, amount: float, oracle: Oracle | None = None) -> Design:
        """The design for what so many of the judged policy's episodes cost, looked for from the last one."""
        stage, followed = self.stage, self._followed
        spend = amount * self.designer.cost_of(followed)
        known, past = stage.past, self.outlook.past
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

    def _exploration(self, made: Design) -> DesignedExploration:
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
        return DesignedExploration(
            made.policy, tuple(policies), tuple(shares), made.optimality, made.solves, steps, loss
        )

    def _keep_safe(self, designed: Callable[[Oracle], Design]) -> DesignedExploration:
        """A design to explore with; certified over the region where something is to be avoided."""
        if self.designer.safety is None:
            return self._exploration(designed(self.oracle))
        safe = self.designer.keep_safe(self.result.sets, self.stage, designed)
        if safe.design is not None and safe.policy == safe.design.policy:
            made = replace(self._exploration(safe.design), certified=safe.certified)
            safety, cap = self.designer.safety, self.stage.episodes.cap
            drawn = safety.certified_drawn(self.result.sets, safe.design.policies, cap)
            if drawn <= safety.most:
                return replace(made, certified_drawn=drawn)
            self.notes.append(
                f"if drawn per episode, the policies of the design would be certified only at {drawn:.4g}: "
                "explore with the one randomised policy"
            )
            return replace(made, policies=(made.policy,), shares=(1.0,), certified_drawn=safe.certified)
        steps = float(self.stage.episodes.occupancy(safe.policy).sum())
        alone = DesignedExploration(
            safe.policy, (safe.policy,), (1.0,), math.inf, 0, steps, 0.0, safe.certified
        )
        return replace(alone, certified_drawn=safe.certified)

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


class Outlook:
    """One result, and the policies whose intervals count, in the mean."""

    def __init__(self, result: LearningResult, counts: Counts, stage: Stage, policies: Sequence[Policy]):
        self.result, self.counts, self.stage, self.policies = result, counts, stage, policies

    def directions(self, information: Information | None = None) -> bearings.Directions | None:
        """What the gap is made of, at the estimate or elsewhere; None where a value is infinite there."""
        at = self.stage.information if information is None else information
        each = [self._directions_of(policy, at) for policy in self.policies]
        known = [one for one in each if one is not None]
        if len(known) < len(each):
            return None
        if len(known) == 1:
            return known[0]
        return bearings.Directions.together(*((1.0 / len(known), one) for one in known))

    @cached_property
    def past(self) -> Past | None:
        """The data so far, batch by batch, where the region is made of batches."""
        if not self.result.decisions.has_forecast:
            return None
        region = self.result.region
        evidence = region.evidence if isinstance(region, Polytope) else None
        return Past.of(self.stage.information, self.counts, evidence)

    @cached_property
    def elsewhere(self) -> list[tuple[FloatArray, bearings.Directions]]:
        """Where else the parameters may be, and what the gap is made of there."""
        information = self.stage.information
        points = plausible_points(information, self.stage.past - information.smoothing)
        pairs = ((point, self.directions(Information.at(self.result.model, point))) for point in points)
        return [(point, directions) for point, directions in pairs if directions is not None]

    def forecaster(self, directions: bearings.Directions) -> Callable[[FloatArray], Forecast]:
        """From an occupancy to what to expect of it."""
        information, decisions, past = self.stage.information, self.result.decisions, self.past
        delta = self.result.ledger.delta
        if past is not None:
            return lambda occupancy: Curve(
                information,
                directions,
                past,
                delta,
                information.of_visits(occupancy),
                float(occupancy.sum()),
                self.elsewhere,
            )
        assert decisions.region is not None
        kind, model = decisions.region, self.result.model
        chosen: LearnOptions = self.result.options
        interval = chosen.interval or IntervalMethod.BETA_BINOMIAL
        options = replace(decisions.region_options(chosen), interval=interval)

        def build(counts: Counts) -> Region:
            return build_region(kind, model, counts, delta, options)

        return lambda occupancy: SampledCurve(information, directions, self.counts, build, occupancy)

    def _directions_of(self, policy: Policy, information: Information) -> bearings.Directions | None:
        objective, sets = self.result.problem.objective, self.result.decisions.sets
        if sets is SetsKind.EXPRESSION:
            return bearings.expression_directions(information, objective, policy, self.stage.past)
        return bearings.find_directions(information, objective, policy, coupled=sets is SetsKind.COUPLED)


_DRAW_ROUNDS = 4


class NothingToPlan(CannotCertify):
    """The data refute the model; `verdict` says so, and what it rests on."""

    def __init__(self, contradiction: str, verdict: Assessment):
        super().__init__(
            f"there is nothing to plan: {contradiction}\nhint: more data make no wrong model right; "
            "'tightrope doctor' (tr.doctor) names the cause and a revision; `refuted=True` plans all "
            "the same"
        )
        self.verdict = verdict


class DrawPlanner(Planner):
    """Like `Planner`, for draws instead of episodes."""

    def _blind(self, directions: bearings.Directions) -> tuple[str, ...]:
        information = self.stage.information
        every = information.of_visits(np.ones(self.result.model.choices))
        return bearings.blind_combinations(every, information, directions)

    def _so_far(self) -> int:
        return self.counts.steps

    def _forecast(self, known: Plan, directions: bearings.Directions) -> Plan:
        decisions, information = self.result.decisions, self.stage.information
        if not decisions.has_forecast:
            raise InputError(
                "draws are forecast for likelihood regions only", hint='plan with `region="likelihood"`'
            )
        assert self.outlook.past is not None
        past = replace(self.outlook.past, episodes=self._so_far())
        experiments, begin = Experiments.of(information), self._aimed_gap(known)

        def curve(matrix: FloatArray) -> Forecast:
            formula = Curve(information, directions, past, self.delta, matrix, 1.0, self.outlook.elsewhere)
            return Corrected(formula, begin)

        forecasts = {EVEN: curve(experiments.information.mean(axis=0))}
        needed = {EVEN: self._forecast_needed(forecasts[EVEN], known.gap_asked)}
        criterion = self.stage.criterion(self.judged.policy, self.result.optimistic.policy)
        for amount in self._amounts(needed[EVEN].expected, needed, _DRAW_ROUNDS, 0.7):
            made = design_draws(experiments, criterion, self.stage.past, amount)
            forecasts[DESIGNED] = curve(made.matrix)
            needed[DESIGNED] = self._forecast_needed(forecasts[DESIGNED], known.gap_asked)
        at = self._grid(needed)
        strategies = tuple(
            self._strategy(name, needed[name], forecasts[name], at) for name in (DESIGNED, EVEN)
        )
        known = replace(known, strategies=strategies)
        if not math.isfinite(needed[DESIGNED].expected):
            blind = PlanStatus.UNREACHABLE if known.unidentifiable else PlanStatus.BEYOND
            return replace(known, status=blind)
        total = math.ceil(needed[DESIGNED].expected)
        model = self.result.model
        digest = hashlib.sha256(self.counts.transition.tobytes()).hexdigest()
        table = PlannedDraws(model, made.draws(total, len(model.signatures)), digest)
        self.notes.append(
            f"the shares are within {made.optimality:.2%} of the best at the estimate, before a tenth of the "
            "draws is spread evenly"
        )
        return replace(known, status=PlanStatus.PLANNED, draws=table, next_episodes=total)


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
    refuted: bool
    region: str | None
    sets: SetsKind | str | None
    interval: IntervalMethod | str | None
    precision: float
    assume_support: float | None
    seconds: float
    device: str
    iterations: int
    coupled_gap: float
    threads: int | None


PLAN_DEFAULTS: dict[str, object] = {
    name: False if name in ("generative", "refuted") else getattr(LearnOptions(), name, None)
    for name in PlanWords.__annotations__
}

OWN = ("optimality", "above", "budget", "within_cap", "cost", "avoid", "at_most", "generative", "refuted")


@spell_out(PLAN_DEFAULTS)
def plan(
    problem: Problem,
    data: object,
    *,
    delta: float = 0.001,
    gap: float | str | None = None,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
    **words: Unpack[PlanWords],
) -> Plan:
    """Forecast the episodes until the certified interval is narrow enough. Guarantees nothing.

    Parameters
    ----------
    problem, data, delta, progress, **options
        As for `learn`.
    gap : float or str
        The width of the robust policy's interval, or a share of its value ("5%"). Alternatives: `optimality`
        (distance to the best possible value), `above` (a guarantee) or `budget` (so many more episodes).
    policy : Policy, optional
        Plan for the interval of this policy.
    within_cap : int, optional
        The largest number of steps of an episode; required if episodes need not end.
    cost : str, optional
        Prices, "episode=1,step=0.01" or a JSON file with prices per action.
    avoid, at_most : str, float
        The exploration meets states of this formula with at most this probability, certified over the region.
    generative : bool
        Plan draws per choice instead of episodes.
    refuted : bool
        Plan although the data refute the model, which is otherwise an error.

    Returns
    -------
    Plan
        The forecast and a policy to collect the data.

    Examples
    --------
    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> pilot = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(100, seed=1)
    >>> found = tr.plan(bench.problem, pilot, delta=0.01, budget=1000, region="likelihood")
    >>> found.curve(1000).expected < found.gap_now, found.next_episodes
    (True, 88)
    """
    given = check_keywords("plan", PlanWords, words, besides=("delta", "gap", "policy"))
    own = {name: given.pop(name, None) for name in OWN}
    target = Target.of(gap, own["optimality"], own["above"], own["budget"])
    cap = own["within_cap"]
    if cap is not None:
        check_type("within_cap", cap, int, "a number of steps")
        if cap < 1:
            raise InputError(f"`within_cap` is {cap}, but an episode has at least one step")
    if own["generative"] and (own["cost"] is not None or own["avoid"] is not None):
        raise InputError("`cost` and `avoid` are about episodes, and `generative` asks for draws")
    explore = Explore("designed", cap, own["cost"], own["avoid"], own["at_most"])
    check_delta(delta)
    options = LearnOptions(**given).without_outcomes
    wanted = problem_of(problem)
    target = replace(target, falls=wanted.query.directions is not None and not wanted.maximises)
    designed = next((name for name in ("cost", "avoid", "generative") if own[name]), None)
    if isinstance(wanted.model, POMDP):
        if designed is not None:
            raise InputError(
                f"`{designed}` requires designed exploration; this forecast is for more data of the same kind"
            )
        return plan_controller(wanted, data, delta, target, options, policy)
    if _narrows_without_formula(wanted):
        if designed is not None:
            raise InputError(
                f"`{designed}` requires designed exploration, which is not supported for {wanted.text}",
                hint=f"leave `{designed}` out: the forecast is for more data of the same kind",
            )
        return plan_more(wanted, counts_of(data, wanted.base), delta, target, options, policy)
    question = learnable(wanted)
    counts = counts_of(data, question.model)
    decisions = decide(parametric(question), counts, options, "how it narrows is not forecast")
    if options.sets is None and decisions.sets is SetsKind.TIED:  # the same sets, over a region
        options = replace(options, sets=SetsKind.EXPRESSION, region=region_kind("polytope"))
        decisions = decide(parametric(question), counts, options)
    _refuse_plans(counts, decisions)
    options = replace(options, region=decisions.region)
    chain = Pipeline.start(question, counts, delta, options=options, policy=policy, progress=progress)
    result = chain.result(options)
    if result.contradiction is not None or (result.verdict.word is Word.CONTRADICTED and not own["refuted"]):
        raise NothingToPlan(result.verdict.why, result.verdict)
    planner = DrawPlanner if own["generative"] else Planner
    return planner(result, counts, target, explore).plan()


def _narrows_without_formula(problem: Problem) -> bool:
    """Questions whose gap is forecast by answers about more data: rewards with parameters among them."""
    if problem.lift is not None or not problem.query.is_plain:
        return True
    return problem.objective.depends_on_step or isinstance(problem.objective.reward, ParametricReward)


def _refuse_plans(counts: Counts, decisions: Decisions) -> None:
    """Questions that a plan has no answer to."""
    if decisions.bets:
        raise InputError(
            "`plan` does not forecast the width of a slab (betting region)",
            hint='plan with `region="likelihood"`',
        )
    if decisions.sets not in PLANNED_SETS:
        raise InputError(
            f"`plan` does not forecast the width of {decisions.sets.value} sets",
            hint='plan with `sets="rectangular"` or coupled',
        )
    if not counts.steps:
        raise InputError("the data hold no steps: a plan starts from a pilot", hint="collect episodes first")
