"""`OnlineLearner`: explore under optimism, certify, repeat.

The sampling policy is the one that is best if nature is kind (optimism in the face of uncertainty; paper,
Section 5): it goes where value is possible until the data say otherwise. Whenever some choice's visits have
doubled (`tightrope.data.growing`), region, sets and policies are computed anew from all data.

*Why the guarantees hold together.* The policy that collects the data depends on the data. Time-uniform
methods (beta-binomial intervals, the likelihood region, the sound ellipsoid) allow for that: with
probability at least 1 − δ the truth lies in the regions of all updates at once, and then every update's
guarantee is kept.
Which method is used is decided before the first episode. Fixed-design methods (Clopper–Pearson, Hoeffding,
L1) may be asked for, for comparison; the ledger then says that nothing is guaranteed of adaptive data.

*What is kept from one update to the next.* All that follows from the model alone; intervals of events that
were not met; the closed batches of the likelihood region with their plug-ins; the bets of a slab; where the
polytope was (`tightrope.region.nearby`); the values, from which the solver looks for the next ones. The last
two move sets by rounding and values within the precision asked for: otherwise an update is `learn` on the
same counts.
Where intervals or sets have not moved, the values are kept as they are.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from tightrope.data.growing import GrowingCounts
from tightrope.data.read_options import ReadOptions
from tightrope.data.state_form import StateForm, state_form
from tightrope.data.steps import StepReader
from tightrope.errors import InputError
from tightrope.formats.policy import Policy
from tightrope.learning.bet_policy import BetPolicy
from tightrope.learning.coupled import Coupler
from tightrope.learning.learn import Learner, parametric, progress_of
from tightrope.learning.online.update import CERTIFIED, Update
from tightrope.learning.options import LearnOptions, LearnWords, decide
from tightrope.learning.policies import PolicySolver, maximises
from tightrope.learning.result import LearningResult
from tightrope.learning.stages import Progress, Stages, silent
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Facts, as_card, as_text
from tightrope.problem import Problem
from tightrope.region.nearby import Nearby
from tightrope.region.polytope import Polytope
from tightrope.region.region import Region, RegionKind
from tightrope.solver.interval_kernel import IntervalKernel
from tightrope.solver.kernel import Kernel
from tightrope.solver.solution import Solution
from tightrope.statistics.estimates import EventIntervals, check_delta
from tightrope.statistics.ledger import Ledger
from tightrope.statistics.prequential import Predictions
from tightrope.uncertainty.sets import SetsKind

ITERATIONS = 20_000
"""Of one solve. From a handful of episodes a guarantee can be finite and astronomical, and not worth more."""


def online(
    problem: Problem,
    *,
    delta: float = 0.001,
    progress: Progress | bool | None = None,
    states: StateForm | str | None = None,
    planned_episodes: int | None = None,
    **options: Unpack[LearnWords],
) -> OnlineLearner:
    """A learner for a problem whose data are collected while it learns; options are those of `learn`.

    `planned_episodes` is how many are meant to come, where that is known: a slab's bets are best there.

    >>> import tightrope as tr
    >>> learner = tr.online(tr.benchmark("betting(5)").problem, delta=0.01, sets="tied")
    >>> learner.episodes, learner.policy().is_deterministic
    (0, True)
    """
    return OnlineLearner(
        problem, delta=delta, progress=progress, states=states, planned_episodes=planned_episodes, **options
    )


class OnlineLearner:
    """Learns a model's parameters from episodes as they come.

        learner = tr.online(problem, delta=0.001, sets="expression")
        while learner.episodes < 1000:
            learner.observe(run_one_episode(learner.policy()))
        print(learner.result().guarantee)

    The options are those of `learn`; what is left open is decided at once, from the model.
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
        states: StateForm | str | None = None,
        planned_episodes: int | None = None,
        **options: Unpack[LearnWords],
    ):
        check_delta(delta)
        ReadOptions(planned_episodes=planned_episodes)  # refuses what is no number of episodes
        model = parametric(problem)
        if not model.parameters.names:
            raise InputError("the model has no parameters: there is nothing to learn about it")
        self.problem, self.model, self.delta = problem, model, delta
        self.objective = problem.objective
        words: LearnWords = {"iterations": ITERATIONS, **options}
        self.options = LearnOptions.of("online", words)
        self.progress: Progress = progress_of(progress) or silent
        self.data = GrowingCounts(model, planned_episodes)
        self.decisions = decide(model, self.data.counts(), self.options)
        self.last_update: Update | None = None
        self.ledger: Ledger | None = None
        self._states = state_form(states)
        self._reader: StepReader | None = None
        self._predictions = Predictions()
        self._intervals: EventIntervals | None = None
        self._values: dict[str, FloatArray] = {}
        self._digest = ""
        self._near: Nearby | None = None
        self._betted: BetPolicy | None = None

    def _facts(self) -> Facts:
        update = self.last_update
        found = (
            "no update yet" if update is None else f"{update.guarantee:.9g} after {update.episode:,} episodes"
        )
        chosen = self.decisions
        region = "" if chosen.region is None else f", {chosen.region.value} region"
        return [
            ("data", f"{self.episodes:,} episodes, {self.data.steps:,} steps"),
            ("guarantee", f"{found}, with confidence {1 - self.delta:.10g}"),
            ("sets", f"{chosen.sets.value}{region}"),
        ]

    def __repr__(self) -> str:
        return as_text(f"OnlineLearner: {self.problem.text}", self._facts())

    def _repr_html_(self) -> str:
        return as_card(f"OnlineLearner: {self.problem.text}", self._facts())

    @property
    def episodes(self) -> int:
        """How many episodes were observed."""
        return self.data.episodes

    def policy(self) -> Policy:
        """The policy to collect the next episode with: the optimistic one of the last update."""
        update = self.last_update or self.update()
        return update.sampling_policy

    def observe(self, episode: Sequence[Any] | OffsetArray) -> Update | None:
        """Count an episode, a sequence of steps (state, action, next state); the update, where one was due.

        A state is one of the model's own states or its variables' values (its index where the learner was
        told so), an action its name or the number of the choice within its state. An array of transition
        indices will do as well. Episodes begin in the initial state.
        """
        if self._reader is None:
            self._reader = StepReader(self.model.structure, self._states)
        self.data.add(self._reader.transitions(episode, f"episode {self.episodes}"))
        return self.update() if self.data.update_is_due else None

    def update(self) -> Update:
        """Compute region, sets and policies anew from all episodes so far, whether or not that is due."""
        found = self._computed()
        self.data.look()
        self.last_update, self._values = found.update, found.values
        self._digest, self._near = found.digest, found.near
        return found.update

    def preview(self) -> Update:
        """What an update now would say, without making it: the sampling policy stays."""
        return self._computed().update

    def result(self) -> LearningResult:
        """Everything `learn` says about the data so far: the robust policy, its interval, the ledger."""
        learner = Learner(
            self.problem,
            self.data.counts(),
            self.delta,
            options=self.options,
            progress=self.progress,
            predictions=self._predictions,
        )
        learner.bet_on(self._betted)
        return learner.result(self.options)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that an equal learner needs to go on from the last update as this one would."""
        update = self.last_update
        if update is None:
            raise ValueError("there is no update to go on from")
        return {
            **{f"data_{name}": array for name, array in self.data.state().items()},
            **{f"values_{name}": array for name, array in self._values.items()},
            **{f"near_{name}": a for name, a in (self._near.state() if self._near else {}).items()},
            "robust_policy": update.robust_policy.choice,
            "sampling_policy": update.sampling_policy.choice,
            "numbers": np.array([update.number, update.episode, update.steps, update.fallback]),
            "bounds": np.array([update.guarantee, update.optimistic, update.seconds]),
            "status": np.frombuffer(update.status.encode(), dtype=np.uint8),
            "digest": np.frombuffer(self._digest.encode(), dtype=np.uint8),
        }

    def restore(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from where `state` was taken."""
        self.data = GrowingCounts.restored(self.model, _part(state, "data_"))
        self._values = _part(state, "values_")
        self._near = Nearby.restored(_part(state, "near_"))
        number, episode, steps, fallback = state["numbers"].tolist()
        guarantee, optimistic, seconds = state["bounds"].tolist()
        self.last_update = Update(
            number=number,
            episode=episode,
            steps=steps,
            guarantee=guarantee,
            optimistic=optimistic,
            robust_policy=Policy.of_choices(self.model.structure, state["robust_policy"]),
            sampling_policy=Policy.of_choices(self.model.structure, state["sampling_policy"]),
            status=bytes(state["status"]).decode(),
            fallback=bool(fallback),
            seconds=seconds,
        )
        self._digest = bytes(state["digest"]).decode()
        self._predictions, self._intervals = Predictions(), None

    def _computed(self) -> _Computed:
        """The update and what goes with it; changes nothing but what can be computed again."""
        begin = time.perf_counter()
        stages = Stages(
            self.model,
            self.data.counts(),
            self.delta,
            self.options,
            self.progress,
            self._predictions,
            self._intervals,
            self._near,
        )
        if self.decisions.region is RegionKind.SLAB:
            self._betted = self._betted or BetPolicy(self.model, self.objective)
            stages.gradient = self._betted
        before = self.last_update
        frame: dict[str, Any] = {
            "number": 0 if before is None else before.number + 1,
            "episode": self.data.episodes,
            "steps": self.data.steps,
        }
        of_intervals = ""
        if self.decisions.follows_from_intervals:
            self._intervals = stages.intervals(self.decisions)
            self.ledger = self._intervals.ledger
            of_intervals = _digest(self._intervals)
            if before is not None and of_intervals == self._digest.partition(" ")[0]:
                return self._as_before(replace(before, **frame, seconds=time.perf_counter() - begin))
        prepared = stages.prepare(self.decisions, sets_only=True)
        self._intervals = prepared.intervals
        self.ledger = prepared.sets.ledger
        deadline = begin + self.options.seconds
        solver = PolicySolver(prepared.sets, self.objective, self.options, deadline, self.progress, solves=2)
        coupled = self.decisions.sets is SetsKind.COUPLED and prepared.verdict is None
        boxes = isinstance(solver.kernel, IntervalKernel) and not coupled
        of_sets = _digest(solver.kernel) if boxes else ""
        digest, near = f"{of_intervals} {of_sets}", _near(prepared.region, self._near)
        frame["fallback"] = prepared.verdict is not None
        if before is not None and of_sets and of_sets == self._digest.partition(" ")[2]:
            update = replace(before, **frame, seconds=time.perf_counter() - begin)
            return _Computed(update, self._values, digest, near)
        robust = self._robust(solver, coupled)
        optimistic = solver.optimistic(self._values.get("optimistic"))
        initial = self.model.initial
        best = maximises(self.objective)
        stopped = [] if optimistic.is_certified else [optimistic.status.value]
        update = Update(
            **frame,
            guarantee=robust.guarantee,
            optimistic=float((optimistic.upper if best else optimistic.lower)[initial]),
            robust_policy=robust.policy,
            sampling_policy=optimistic.policy.at(0),
            status=next(iter([*robust.stopped, *stopped]), CERTIFIED),
            seconds=time.perf_counter() - begin,
        )
        values = {"robust": robust.values, "optimistic": _middle(optimistic)}
        return _Computed(update, values, digest, near)

    def _as_before(self, update: Update) -> _Computed:
        """Nothing has moved since the last update."""
        return _Computed(update, self._values, self._digest, self._near)

    def _robust(self, solver: PolicySolver, coupled: bool) -> _Robust:
        """The robust policy and what it guarantees; its far end is needed for coupled sets only."""
        best, initial, start = maximises(self.objective), self.model.initial, self._values.get("robust")
        if not coupled:
            found = solver.guaranteed(start)
            end = float((found.lower if best else found.upper)[initial])
            stopped = () if found.is_certified else (found.status.value,)
            return _Robust(found.policy.at(0), end, _middle(found), stopped)
        rectangular = solver.robust(start)
        betted = None if self._betted is None else self._betted.policy
        value, _ = Coupler(solver, self.options.coupled_gap).robust(rectangular, betted)
        interval = value.interval
        reasons = [s.status.value for s in value.solutions if not s.is_certified]
        reasons += [value.stopped] if value.stopped is not None else []
        return _Robust(
            value.policy,
            interval.lower if best else interval.upper,
            _middle(rectangular.solutions[0 if best else 1]),
            tuple(reasons),
        )


@dataclass(frozen=True, eq=False)
class _Computed:
    """An update, its values, digests of the intervals and sets it rests on, and where the region is."""

    update: Update
    values: dict[str, FloatArray]
    digest: str
    near: Nearby | None


@dataclass(frozen=True, eq=False)
class _Robust:
    """A policy, its guarantee, values to look from next time, and what stopped short."""

    policy: Policy
    guarantee: float
    values: FloatArray
    stopped: tuple[str, ...]


def _middle(solution: Solution) -> FloatArray:
    """Values to look from: not finite where nothing is known."""
    with np.errstate(invalid="ignore"):
        middle: FloatArray = 0.5 * (solution.lower + solution.upper)
    return middle


def _digest(bounds: Kernel | EventIntervals) -> str:
    """Stands for the intervals."""
    found = hashlib.sha256(np.ascontiguousarray(bounds.lower).tobytes())
    found.update(np.ascontiguousarray(bounds.upper).tobytes())
    return found.hexdigest()


def _near(region: Region | None, before: Nearby | None) -> Nearby | None:
    if isinstance(region, Polytope) and region.kind is RegionKind.POLYTOPE:
        return Nearby.around(region, before)
    return None


def _part(state: Mapping[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
