"""`OnlineLearner`: learn, explore and certify repeatedly while data are collected.

When the visits of some choice have doubled, or a batch has ended, region, sets and policies are computed anew
from all data (paper, Section 5). With time-uniform methods the true parameters lie in the regions of all
updates with probability at least 1 − δ; methods for fixed designs guarantee nothing. Updates reuse what is
settled, the last polytope and the last values, which moves sets by rounding and values within the precision.

`EvenLearner` is for questions that are no single objective: episodes take every choice with equal
probability, and after 1, 2, 4, … of them `learn` answers from all so far. Event intervals are confidence
sequences, so with probability at least 1 − δ all answers hold, and a run may stop at a narrow interval.
"""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.data.collection import GrowingCounts
from tightrope.data.columns import StateForm, form_of
from tightrope.data.counts import Counts
from tightrope.data.read_options import LogReadOptions
from tightrope.data.steps import ObservationMap
from tightrope.errors import CannotCertify, InputError, word_methods
from tightrope.io.results import Interval, ModelFit
from tightrope.learning import pipeline, policy_solver, products
from tightrope.learning.bet_policy import PolicyBets, why_no_bets
from tightrope.learning.learn import learn
from tightrope.learning.online import exploration as exploring
from tightrope.learning.online.exploration import STOPPED, Answer, DriftGuard
from tightrope.learning.options import LearnKwargs, LearnOptions, Progress, decide, progress_of, silent
from tightrope.learning.result import CLOSE, LearningResult, assess, rests_on
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import Structure
from tightrope.monitoring.examination import ALPHA, weigh_fit
from tightrope.numerics.arrays import AnyArray, FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record, as_card, as_text
from tightrope.numerics.text import bound_text, sure_text
from tightrope.problem import Problem, require_discrete
from tightrope.regions.event_polytope import Nearby
from tightrope.regions.polytope import Polytope
from tightrope.solver.bellman.interval import IntervalOperator
from tightrope.solver.bellman.operator import BellmanOperator
from tightrope.solver.solution import Solution
from tightrope.statistics.bets import Predictions
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.estimates import EventIntervals, IntervalMethod, check_delta
from tightrope.verdict import Assessment, Word

if TYPE_CHECKING:
    from tightrope.learning.learn import Learned

REDESIGN = 1.5
"""Times as many episodes call for a new design; doubling takes a tenth more of them."""

ITERATIONS = 20_000
"""Of one solve. From a handful of episodes a guarantee can be finite and astronomical, and not worth more."""


@word_methods
class OnlineLearner:
    """Learns a model's parameters from episodes as they come.

        learner = tr.online(problem, delta=0.001, sets="expression")
        while learner.episodes < 1000:
            learner.observe(run_one_episode(learner.policy()))
        print(learner.result().guarantee)

    `tightrope.online` makes one. What the options leave open is decided at once, from the model.
    `states="index"` says that states of episodes which are numbers are the model's indices.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> learner = tr.online(model.problem('Pmax=? [ F "heads" ]'), sets="tied")
    >>> update = learner.observe([(0, "toss", 1)])
    >>> learner.episodes, update.guarantee <= update.optimistic
    (1, True)
    """

    def __init__(
        self,
        problem: Problem,
        *,
        delta: float = 0.001,
        progress: Progress | bool | None = None,
        explorer: exploring.Explorer,
        collecting: exploring.Collecting,
        options: LearnOptions,
    ):
        check_delta(delta)
        planned_episodes, until_gap = collecting.planned_episodes, collecting.until_gap
        LogReadOptions(planned_episodes=planned_episodes)  # refuses what is no number of episodes
        self.exploration = explorer.kind
        self.target = None if until_gap is None else exploring.GapTarget.of(until_gap)
        model = pipeline.parametric(problem)
        if not model.parameters.names:
            raise InputError("the model has no parameters: there is nothing to learn about it")
        self.problem, self.model, self.delta = problem, model, delta
        self.objective = problem.objective
        self.options = options
        products.require_support_of_domain(problem, self.options)
        self.progress: Progress = progress_of(progress) or silent
        self.guard = None if collecting.on_drift is None else DriftGuard(model, collecting.on_drift)
        self.is_stopped = False
        self._collect_into(GrowingCounts(model, planned_episodes, *self.looks))
        begun = collecting.data
        self._begun_with: Counts | None = None if begun is None else problem.to_product(begun)
        if self._begun_with is not None:
            self.data.begin_with(self._begun_with)
        coupled = self.options.sets is SetsKind.COUPLED
        no_bets = why_no_bets(model, self.objective) if coupled else "sets are not coupled"
        self.decisions = decide(model, self.data.counts(), self.options, no_bets)
        if problem.lift is not None:
            products.refuse_for_product(self.decisions)
        self.floor = None
        if (baseline := collecting.baseline) is not None:
            self.floor = exploring.Floor.of(problem, baseline, collecting.allow_loss, self.decisions)
        self.last_update: Update | None = None
        self._best: float | None = None
        self.ledger: ConfidenceBudget | None = None
        self._states = form_of(collecting.states, StateForm)
        self._reader: ObservationMap | None = None
        self._predictions = Predictions()
        self._intervals: EventIntervals | None = None
        self._values: dict[str, FloatArray] = {}
        self._digest = ""
        self._near: Nearby | None = None
        self._betted: PolicyBets | None = None
        self._fitted: ModelFit | None = None
        self.last_design: exploring.StagePolicy | None = None
        self._designed_at = 0
        self._designer = explorer.designer(problem, delta, self.decisions.sets is SetsKind.COUPLED)

    def _facts(self) -> Facts:
        update = self.last_update
        summary = "no update yet"
        if update is not None:
            guarantee = bound_text(update.guarantee, self.objective.maximises)
            summary = f"{guarantee} after {update.episode:,} episodes"
        chosen = self.decisions
        region = "" if chosen.region is None else f", {chosen.region.value} region"
        return [
            ("data", f"{self.episodes:,} episodes, {self.data.steps:,} steps"),
            ("guarantee", f"{summary}, with {sure_text(self.delta)}"),
            ("sets", f"{chosen.sets.value}{region}"),
        ]

    def __repr__(self) -> str:
        return as_text(f"OnlineLearner: {self.problem.text}", self._facts())

    def _repr_html_(self) -> str:
        return as_card(f"OnlineLearner: {self.problem.text}", self._facts())

    def _collect_into(self, data: GrowingCounts) -> None:
        self.data = data
        data.listener = None if self.guard is None else self.guard.observe

    @property
    def episodes(self) -> int:
        """How many episodes were observed, those included that were forgotten after an alarm."""
        return self.data.number

    @property
    def looks(self) -> tuple[bool, bool]:
        """Whether an update is due when a choice has doubled, and when a batch has ended."""
        by_choice = self.exploration in (exploring.Exploration.OPTIMISTIC, exploring.Exploration.ROBUST)
        return by_choice, self.target is not None or not by_choice

    @property
    def best_guarantee(self) -> float | None:
        """The best one of all updates so far; None where they need not hold together."""
        alarmed = self.guard is not None and bool(self.guard.monitor.alarm)
        together = self.ledger is not None and self.ledger.holds_at_all_times and not alarmed
        return self._best if together and self.verdict.word is not Word.CONTRADICTED else None

    @property
    def verdict(self) -> Assessment:
        """What the guarantee of the last update is worth, in one word, with all that it rests on."""
        update = self.last_update or self.update()
        if self.ledger is None:  # restored
            self._compute()
        return self.assess(update)

    def assess(self, update: Update, tested: bool = True) -> Assessment:
        """The verdict of the last update, without regard to a requested gap; `tested` against all rows."""
        assert self.ledger is not None
        refuted = None
        if self.guard is not None and self.guard.monitor.alarm:
            refuted = STOPPED if update.status == STOPPED else self.guard.text
        elif update.fallback:
            refuted = "the region is empty: no parameters of the domain explain the data"
        fit = self._fit() if tested and self.data.steps else None
        known = rests_on(self.ledger, self.options, fit, self.problem)
        return assess(known, None, fit, refuted, update.status)

    def _fit(self) -> ModelFit:
        """The test of the model against all rows. For that of dependence between rows, which is no test of
        all times, α is spent over numbers of episodes."""
        counts, number = self.problem.to_base(self.data.counts()), max(self.data.episodes, 1)
        if self._fitted is None or self._fitted.events != counts.steps:
            base = self.problem.base
            assert isinstance(base, ParametricMDP)
            log = self.data.log_of(base)
            spent = 0 if log is None else math.ceil(math.log10(number * (number + 1)))
            level = ALPHA * 10.0**-spent
            self._fitted = weigh_fit(base, replace(counts, log=log), level)
        return self._fitted

    @property
    def is_reached(self) -> bool:
        """Whether the gap of the last update is as small as requested."""
        return self.reaches(self.last_update)

    def reaches(self, update: Update | None) -> bool:
        """Whether the gap of an update is as small as requested."""
        interval = None if update is None else update.interval
        return self.target is not None and interval is not None and self.target.is_reached(interval)

    def policy(self) -> Policy:
        """Return the policy that collects the next episode."""
        update = self.last_update or self.update()
        return update.sampling_policy

    def observe(self, episode: Sequence[object] | OffsetArray) -> Update | None:
        """Count an episode. Episodes begin in the initial state.

        Parameters
        ----------
        episode : sequence of (state, action, next state), or array of int
            Steps, or the indices of transitions. A state is one of the model's states or the values of its
            variables; an action is its name or its number in the state.

        Returns
        -------
        Update or None
            The update, if one was due.
        """
        if self.is_stopped:
            raise CannotCertify(STOPPED)
        if self._reader is None:
            self._reader = ObservationMap(self.problem.base.structure, states=self._states)
        steps, lift = self._reader.transitions(episode, f"episode {self.episodes}"), self.problem.lift
        self.data.add(steps if lift is None else lift.follow(steps), steps)
        answer = self.answer_alarm()
        if answer is Answer.STOP:
            return replace(self.update(), status=STOPPED)
        return self.update() if answer is Answer.RESTART or self.data.update_is_due else None

    def answer_alarm(self) -> Answer | None:
        """Do what was asked for where the monitor has raised an alarm since the last call."""
        answer = None if self.guard is None else self.guard.answer()
        if self.guard is None or answer is None:
            return None
        warnings.warn(f"after {self.episodes:,} episodes: {self.guard.text}", stacklevel=2)
        self.is_stopped = answer is Answer.STOP
        if answer is Answer.RESTART:
            self.guard.begin_anew()
            data = self.data
            plan = None if data.planned is None else max(data.planned - data.episodes, 1)
            before = (data.number, data.before[1] + data.steps)
            self._collect_into(GrowingCounts(self.model, plan, *self.looks, before))
            self._predictions, self._intervals, self._near, self._betted = Predictions(), None, None, None
            self._fitted = None
            self._values, self._digest, self._designed_at, self._best = {}, "", 0, None
            if self.last_update is not None:  # of a world that was
                self.last_update = replace(self.last_update, above=None)
        return answer

    def update(self) -> Update:
        """Return an update of region, sets and policies now, even if none is due."""
        computed = self._compute()
        self.data.look()
        self.last_update, self._values = self._explore(computed.update), computed.values
        self._digest, self._near = computed.digest, computed.near
        new = self.last_update.guarantee
        best = max if self.objective.maximises else min
        self._best = new if self._best is None else best(self._best, new)
        return self.last_update

    def preview(self) -> Update:
        """Return what an update would show now. The sampling policy stays."""
        update, before = self._compute().update, self.last_update
        if self.floor is None or before is None:
            return update
        return replace(update, sampling_policy=before.sampling_policy, above=before.above)

    def result(self) -> LearningResult:
        """Return what `learn` says about the data so far."""
        is_base = self.problem.lift is None
        chain = pipeline.Pipeline.start(
            self.problem,
            self.problem.to_base(self.data.counts()),
            self.delta,
            options=self.options.without_outcomes,
            progress=self.progress,
            settled=pipeline.Settled(
                self._predictions if is_base else None,
                bets=self._betted,
                fit=self._fit() if self.data.steps else None,
            ),
        )
        return chain.result(self.options)

    def state(self) -> dict[str, AnyArray]:
        """Everything that an equal learner needs to go on from the last update as this one would."""
        update = self.last_update
        if update is None:
            raise ValueError("there is no update to continue from")
        return {
            **{f"data_{name}": array for name, array in self.data.state().items()},
            **{f"values_{name}": array for name, array in self._values.items()},
            **{f"near_{name}": a for name, a in (self._near.state() if self._near else {}).items()},
            **{f"update_{name}": array for name, array in update.state().items()},
            "designed_at": np.array([self._designed_at]),
            "best": np.array([self._best], dtype=np.float64),
            "digest": np.frombuffer(self._digest.encode(), dtype=np.uint8),
            **{f"guard_{name}": a for name, a in (self.guard.state() if self.guard else {}).items()},
        }

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Restore the learner from a `state`."""
        stored = _part(state, "data_")
        self._collect_into(GrowingCounts.restored(self.model, stored, *self.looks, self._begun_with))
        if self.guard is not None:
            self.guard.restore(_part(state, "guard_"))
        self._values = _part(state, "values_")
        self._near = Nearby.restored(_part(state, "near_"))
        self.last_update = Update.restored(self.model.structure, _part(state, "update_"))
        self._digest = bytes(state["digest"]).decode()
        self._designed_at = int(state["designed_at"][0])
        self._best = float(state["best"][0])
        self._predictions, self._intervals = Predictions(), None

    def _compute(self) -> Computed:
        """The update and what goes with it; changes nothing but what can be computed again."""
        begin = time.perf_counter()
        chain = self._chain()
        before = self.last_update
        frame: dict[str, Any] = {
            "number": 0 if before is None else before.number + 1,
            "episode": self.data.number,
            "steps": self.data.before[1] + self.data.steps,
        }
        of_intervals = ""
        if self.decisions.follows_from_intervals:
            self._intervals = chain.intervals(self.decisions)
            self.ledger = self._intervals.ledger
            of_intervals = digest_of(self._intervals)
            if before is not None and of_intervals == self._digest.partition(" ")[0]:
                update = replace(before, **frame, seconds=time.perf_counter() - begin)
                return Computed(update, self._values, self._digest, self._near)
        prepared = chain.prepare(self.decisions, sets_only=True)
        self._intervals = prepared.intervals
        self.ledger = prepared.sets.ledger
        deadline = begin + self.options.seconds
        solves = 2 if self.target is None else 3
        solver = chain.solver(prepared, self.options, deadline, solves)
        coupled = self.decisions.sets is SetsKind.COUPLED and prepared.contradiction is None
        boxes = isinstance(solver.kernel, IntervalOperator) and not coupled
        of_sets = digest_of(solver.kernel) if boxes else ""
        digest, near, region = f"{of_intervals} {of_sets}", None, prepared.region
        if isinstance(region, Polytope) and region.kind.is_of_intervals:
            near = Nearby.around(region, self._near)
        frame["fallback"] = prepared.contradiction is not None
        if before is not None and of_sets and of_sets == self._digest.partition(" ")[2]:
            update = replace(before, **frame, seconds=time.perf_counter() - begin)
            return Computed(update, self._values, digest, near)
        robust = certify_robust(
            solver, self._values.get("robust"), coupled, self.target is not None, self._betted
        )
        optimistic = solver.find(policy_solver.OPTIMISTIC, start=self._values.get("optimistic"))
        initial = self.model.initial
        best = self.objective.maximises
        stopped = [] if optimistic.is_certified else [optimistic.status.value]
        update = Update(
            **frame,
            guarantee=robust.guarantee,
            optimistic=float((optimistic.upper if best else optimistic.lower)[initial]),
            robust_policy=robust.policy,
            optimistic_policy=optimistic.policy.at(0),
            sampling_policy=self._collector(robust.policy, optimistic.policy.at(0)),
            interval=robust.interval,
            status=next(iter([*robust.stopped, *stopped]), CLOSE),
            seconds=time.perf_counter() - begin,
        )
        values = {"robust": robust.values, "optimistic": middle(optimistic)}
        return Computed(update, values, digest, near)

    def _collector(self, robust: Policy, optimistic: Policy) -> Policy:
        """The policy that collects the episodes that follow; a designed one stays until the next design."""
        if self.exploration is exploring.Exploration.ROBUST:
            return robust
        if self.exploration is exploring.Exploration.OPTIMISTIC:
            return optimistic
        if self.exploration is exploring.Exploration.DESIGNED and self.last_update is not None:
            return self.last_update.sampling_policy
        return Policy.uniform(self.model)

    def _explore(self, update: Update) -> Update:
        """The update with a new design where one is due, losing nothing to the baseline."""
        if self._designer is not None and self.data.episodes >= REDESIGN * self._designed_at:
            self.progress("design: the next stage of exploration")
            self.last_design = self._designer.design(
                self.data.counts(),
                update.robust_policy,
                update.optimistic_policy,
                lambda: self._chain().prepare(self.decisions, sets_only=True).sets,
            )
            self._designed_at = max(self.data.episodes, 1)
            update = replace(update, sampling_policy=self.last_design.policy)
        if self.floor is None:
            return update
        last, before = self.last_update, None
        if last is not None and last.above is not None and self.ledger and self.ledger.holds_at_all_times:
            before = last.sampling_policy, last.above  # certified on the same event
            if update.sampling_policy is last.sampling_policy:
                return update
        self.progress("compare: what explores with the baseline")
        chain, others = self._chain(), (update.robust_policy, update.optimistic_policy)
        prepared = chain.prepare(self.decisions, sets_only=True)
        policy, above = self.floor.guarded(chain, prepared, update.sampling_policy, others, before)
        return replace(update, sampling_policy=policy, above=above)

    def _chain(self) -> pipeline.Pipeline:
        """The chain for the data as they are, with what earlier updates have settled."""
        if self.decisions.bets:
            self._betted = self._betted or PolicyBets(self.model, self.objective)
        return pipeline.Pipeline(
            self.problem,
            self.data.counts(),
            pipeline.DeltaSplit(self.delta),
            options=self.options,
            progress=self.progress,
            settled=pipeline.Settled(self._predictions, self._intervals, self._near, self._betted),
        )


def _part(state: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}


@dataclass(frozen=True, eq=False, repr=False)
class Update(Record):
    """What a learner knows after an update, after `episode` episodes of `steps` steps altogether.

    * `guarantee`: the robust policy attains at least this (at most, if the agent minimises), with the
      confidence of the budget; for time-uniform methods that of all updates together.
    * `optimistic`: the bound for all policies, with the same confidence.
    * `sampling_policy` collects the next episodes (`tightrope.learning.online.exploration`); `robust_policy`
      has the guarantee, `optimistic_policy` is best if nature helps.
    * `interval`: the robust policy's certified interval, if a gap was requested.
    * `status`: precision reached, or why not; the bounds hold in any case.
    * `fallback`: the region was empty and tied sets were used instead.
    * `above`: the certified difference of the sampling policy's value to the baseline's, if there is one.

    >>> import tightrope as tr
    >>> update = tr.online(tr.benchmark("betting(5)").problem, sets="tied").update()
    >>> update.episode, update.guarantee <= update.optimistic
    (0, True)
    """

    number: int
    episode: int
    steps: int
    guarantee: float
    optimistic: float
    robust_policy: Policy
    optimistic_policy: Policy
    sampling_policy: Policy
    status: str
    fallback: bool
    seconds: float = field(compare=False)
    interval: Interval | None = None
    above: Interval | None = None

    @property
    def gap(self) -> float | None:
        """The width of the robust policy's interval, where it was computed."""
        return None if self.interval is None else self.interval.width

    @property
    def width(self) -> float:
        """How far the guarantee is at most from the best that any policy can do."""
        return 0.0 if self.optimistic == self.guarantee else abs(self.optimistic - self.guarantee)

    def to_json(self) -> dict[str, object]:
        """The keys of a line of `tightrope online --json` that the learner itself knows."""
        names = ("episode", "steps", "guarantee", "optimistic", "width", "status", "fallback")
        known = {"gap": self.gap, "above_baseline": self.above}
        return {
            "update": self.number,
            **{name: getattr(self, name) for name in names},
            **{name: value for name, value in known.items() if value is not None},
            "seconds": round(self.seconds, 6),
        }

    def state(self) -> dict[str, AnyArray]:
        """All of it as arrays; the sampling policy as probabilities where it is random."""
        sampling = self.sampling_policy
        return {
            "robust_policy": self.robust_policy.choice,
            "optimistic_policy": self.optimistic_policy.choice,
            "sampling_policy": sampling.choice if sampling.is_deterministic else sampling.probability,
            "interval": np.array([] if self.interval is None else list(self.interval)),
            "above": np.array([] if self.above is None else list(self.above)),
            "numbers": np.array([self.number, self.episode, self.steps, self.fallback]),
            "bounds": np.array([self.guarantee, self.optimistic, self.seconds]),
            "status": np.frombuffer(self.status.encode(), dtype=np.uint8),
        }

    @staticmethod
    def restored(structure: Structure, state: Mapping[str, AnyArray]) -> Update:
        """What `state` was taken of."""
        number, episode, steps, fallback = state["numbers"].tolist()
        guarantee, optimistic, seconds = state["bounds"].tolist()
        sampling = state["sampling_policy"]
        by_choices = sampling.dtype != np.float64
        return Update(
            number=number,
            episode=episode,
            steps=steps,
            guarantee=guarantee,
            optimistic=optimistic,
            robust_policy=Policy.of_choices(structure, state["robust_policy"]),
            optimistic_policy=Policy.of_choices(structure, state["optimistic_policy"]),
            sampling_policy=Policy.of_choices(structure, sampling)
            if by_choices
            else Policy(structure, sampling),
            status=bytes(state["status"]).decode(),
            fallback=bool(fallback),
            seconds=seconds,
            interval=Interval.of(*state["interval"].tolist()) if len(state["interval"]) else None,
            above=Interval.of(*state["above"].tolist()) if len(state["above"]) else None,
        )

    def is_kept(self, performance: Interval, maximises: bool) -> bool:
        """Whether the guarantee holds in a model in which bounds of the robust policy's value are known."""
        if maximises:
            return self.guarantee <= performance.upper
        return performance.lower <= self.guarantee


@dataclass(frozen=True, eq=False)
class Robust:
    """A policy, its guarantee, values to look from next time, and what stopped short."""

    policy: Policy
    guarantee: float
    values: FloatArray
    stopped: tuple[str, ...]
    interval: Interval | None = None


@dataclass(frozen=True, eq=False)
class Computed:
    """An update, its values, digests of the intervals and sets it rests on, and where the region is."""

    update: Update
    values: dict[str, FloatArray]
    digest: str
    near: Nearby | None


def certify_robust(
    solver: policy_solver.PolicySolver,
    start: FloatArray | None,
    coupled: bool,
    with_interval: bool,
    betted: PolicyBets | None = None,
) -> Robust:
    """Solve for the robust policy from earlier values; its `interval` takes one more solve."""
    best = solver.objective.maximises
    initial = solver.kernel.structure.initial
    if not coupled and not with_interval:
        solution = solver.find(policy_solver.ROBUST, start=start)
        end = float((solution.lower if best else solution.upper)[initial])
        stopped = () if solution.is_certified else (solution.status.value,)
        return Robust(solution.policy.at(0), end, middle(solution), stopped)
    rectangular = solver.robust(start)
    values = middle(rectangular.solutions[0 if best else 1])
    value = rectangular
    if coupled:
        from tightrope.learning.coupling import couple_robust

        value, _ = couple_robust(solver, rectangular, () if betted is None else betted.policies)
    interval = value.interval
    reasons = [s.status.value for s in value.solutions if not s.is_certified]
    reasons += [value.stopped] if coupled and value.stopped is not None else []
    guarantee = interval.lower if best else interval.upper
    return Robust(value.policy.at(0), guarantee, values, tuple(reasons), interval)


def middle(solution: Solution) -> FloatArray:
    """Values to look from: not finite where nothing is known."""
    with np.errstate(invalid="ignore"):
        centre: FloatArray = 0.5 * (solution.lower + solution.upper)
    return centre


def digest_of(bounds: BellmanOperator | EventIntervals) -> str:
    """Stands for the intervals."""
    digest = hashlib.sha256(np.ascontiguousarray(bounds.lower).tobytes())
    digest.update(np.ascontiguousarray(bounds.upper).tobytes())
    return digest.hexdigest()


class EvenLearner:
    """`online` for questions that are not one objective: `learn` after 1, 2, 4, … episodes."""

    def __init__(self, problem: Problem, delta: float, words: LearnKwargs, how: exploring.Collecting):
        check_delta(delta)
        model = require_discrete(problem.model)
        if not isinstance(model, ParametricMDP):
            raise InputError("the model has no parameters: there is nothing to learn about it")
        self.problem, self.delta, self.model = problem, delta, model
        intervals: LearnKwargs = {"interval": IntervalMethod.BETA_BINOMIAL, "region": "polytope"}
        self.words: LearnKwargs = {**intervals, **words}
        self.target = None if how.until_gap is None else exploring.GapTarget.of(how.until_gap)
        self.data = GrowingCounts(self.model, by_choice=False)
        if how.data is not None:
            self.data.begin_with(how.data)
        self.last_result: Learned | None = None
        self._reader = ObservationMap(self.model.structure, states=how.states)
        self._due = max(1, 2 * self.episodes)

    def __repr__(self) -> str:
        known = "nothing yet" if self.last_result is None else self.last_result.headline()
        return as_text(
            f"EvenLearner: {self.problem.text}", [("data", f"{self.episodes:,} episodes"), ("known", known)]
        )

    @property
    def episodes(self) -> int:
        """How many episodes were observed."""
        return self.data.number

    def policy(self) -> Policy:
        """The policy to collect the next episode with: every choice of a state alike."""
        return Policy.uniform(self.model)

    def observe(self, episode: Sequence[object] | OffsetArray) -> Learned | None:
        """Count an episode, as `OnlineLearner.observe` takes it; the answer, where one was due."""
        self.data.add(self._reader.transitions(episode, f"episode {self.episodes}"))
        return self.update() if self.episodes >= self._due else None

    def update(self) -> Learned:
        """Answer from all episodes so far, whether or not that is due."""
        self._due = max(1, 2 * self.episodes)
        self.last_result = result = self.result()
        return result

    def result(self) -> Learned:
        """Everything `learn` says about the data so far."""
        counts = replace(self.data.counts(), log=self.data.log_of(self.model))
        return learn(self.problem, counts, delta=self.delta, **self.words)

    @property
    def is_reached(self) -> bool:
        """Whether the last answer's interval is as narrow as was asked for."""
        interval = getattr(self.last_result, "interval", None)
        return self.target is not None and interval is not None and self.target.is_reached(interval)


def refuse_uneven(text: str, how: exploring.Collecting) -> None:
    """Refuse what has no meaning where episodes are collected evenly."""
    explore = None if how.explore in ("uniform", exploring.Exploration.UNIFORM) else how.explore
    others = {"on_drift": how.on_drift, "baseline": how.baseline, "allow_loss": how.allow_loss or None}
    for name, value in {"explore": explore, **others}.items():
        if value is not None:
            raise InputError(
                f"`{name}` cannot be used with {text}, for which episodes are collected evenly",
                hint=f"leave `{name}` out",
            )
