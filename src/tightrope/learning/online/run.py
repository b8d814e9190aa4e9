"""A whole run: collect, update, record, until the gap is as small as was asked for or the episodes are done.

The last record says what all episodes together guarantee. Where no update was due at the last episode it is a
look ahead (`final`): the learner itself is left at its last update, so that a run that is prolonged later is
the run that had been longer from the beginning.

Where episodes come from: a simulated model, or an environment that is stepped.

Both draw an episode's randomness from the seed and the episode's number alone, so that a run that was
interrupted goes on as if it had not been. Simulated episodes are counted as they are drawn; whoever wants to
hear of them in their order (`GrowingCounts.listener`) is told by drawing them once more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from msgspec import UNSET, structs

from tightrope.data.environments import SteppedEnvironment
from tightrope.data.growing import GrowingCounts
from tightrope.data.simulator import Simulator
from tightrope.data.until_doubled import simulate_until_doubled
from tightrope.errors import InputError
from tightrope.io.answers import DriftFacts, OnlineRecord
from tightrope.io.coding import from_plain, to_plain
from tightrope.io.results import assumed_facts
from tightrope.learning.online.drift_guard import STOPPED, Answer, next_portion
from tightrope.learning.online.journal import Journal
from tightrope.learning.online.learner import OnlineLearner
from tightrope.learning.online.update import Update
from tightrope.learning.policies import depends_on_step, maximises
from tightrope.learning.result import Interval
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.solver.solve import solve
from tightrope.verdict import Verdict


class Source(Protocol):
    """Anything that adds episodes under a policy to the data."""

    def collect(self, policy: Policy, data: GrowingCounts, last: int) -> None:
        """Add episodes until an update is due or the data have `last`."""


@dataclass(frozen=True, eq=False)
class SimulatedEpisodes:
    """Episodes of a model at the true point."""

    simulator: Simulator
    seed: int

    def collect(self, policy: Policy, data: GrowingCounts, last: int) -> None:
        first, done = data.number, data.episodes
        simulate_until_doubled(self.simulator, policy, self.seed, data, last)
        if data.listener is not None:
            again = replace(self.simulator, policy=policy)
            for block in again.trajectories(data.episodes - done, self.seed, first):
                data.listener(block.transition)


@dataclass(frozen=True, eq=False)
class EnvironmentEpisodes:
    """Episodes of an environment, which is reset with its own seed for every one of them."""

    environment: SteppedEnvironment
    seed: int

    def collect(self, policy: Policy, data: GrowingCounts, last: int) -> None:
        while data.episodes < last:
            number = data.number
            seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
            data.add(self.environment.episode(number, policy.draw, seed))
            if data.update_is_due:
                return


PRECISION = 1e-9
"""Of values at the true point."""


class Truth:
    """The model at the true point: what a policy is really worth."""

    def __init__(self, mdp: MDP, objective: Objective):
        self.mdp, self.objective = mdp, objective
        self._last: tuple[Policy, Interval] | None = None

    def performance(self, policy: Policy) -> Interval | None:
        """Verified bounds of the policy's value; None where the policy is no choice per state."""
        if depends_on_step(self.objective):
            return None
        if self._last is None or self._last[0] != policy:
            solution = solve(self.mdp, self.objective, policy=policy, precision=PRECISION)
            initial = self.mdp.initial
            value = Interval(float(solution.lower[initial]), float(solution.upper[initial]))
            self._last = policy, value
        return self._last[1]


@dataclass(frozen=True, eq=False)
class OnlineRun:
    """What a run consists of; `truth` where it is known, `journal` where the run is kept."""

    learner: OnlineLearner
    source: Source
    episodes: int
    truth: Truth | None = None
    journal: Journal | None = None

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of all updates, those of an earlier run in the same journal first."""
        learner, journal = self.learner, self.journal
        begin = time.perf_counter()
        so_far: list[float] = []
        if journal is not None and journal.resume(learner):
            if learner.episodes > self.episodes:
                raise InputError(
                    f"{journal.directory} holds {learner.episodes} episodes already, more than the "
                    f"{self.episodes} asked for",
                    hint="ask for more to go on, or name a new directory",
                )
            begin -= journal.elapsed
            so_far += [float(record["guarantee"]) for record in journal.records if self._counts(record)]
            yield from journal.records
        else:
            yield from self._keep_record(learner.update(), begin, so_far)
        while learner.episodes < self.episodes and not learner.is_reached:
            last = self.episodes if learner.guard is None else next_portion(learner.episodes)
            before = learner.data.before[0]
            self.source.collect(learner.policy(), learner.data, min(last, self.episodes) - before)
            answer = learner.answer_alarm()
            if answer is Answer.STOP:
                stopped = replace(learner.preview(), status=STOPPED)
                yield from self._keep_record(stopped, begin, so_far, final=True)
                return
            if answer is Answer.RESTART:
                so_far.clear()
                yield from self._keep_record(learner.update(), begin, so_far)
            elif learner.data.update_is_due:
                yield from self._keep_record(learner.update(), begin, so_far)
            elif learner.episodes >= self.episodes:
                yield from self._keep_record(learner.preview(), begin, so_far, final=True)

    def _counts(self, record: Mapping[str, Any]) -> bool:
        """Whether the guarantee of an earlier record holds together with those that follow."""
        guard = self.learner.guard
        return not record["final"] and (guard is None or record["drift"]["restarts"] == guard.restarts)

    def _keep_record(
        self, update: Update, begin: float, so_far: list[float], final: bool = False
    ) -> Iterator[dict[str, Any]]:
        """The record of an update, which is on the disk when it comes out; the checkpoint too. `so_far` are
        the guarantees of the updates before it.

        Where it cannot be written it comes out all the same, and the error follows."""
        known = None if self.truth is None else self.truth.performance(update.robust_policy)
        kept = None if known is None else update.is_kept(known, maximises(self.learner.objective))
        elapsed = time.perf_counter() - begin
        best = max if maximises(self.learner.objective) else min
        together = self.learner.ledger is not None and self.learner.ledger.holds_at_all_times
        found: dict[str, Any] = update.to_json()
        verdict = self.learner.judge(update)
        if self.learner.target is not None:
            found["reached"] = self.learner.reaches(update)
            if verdict.is_proved and not found["reached"] and self.learner.episodes >= self.episodes:
                missed = f"the gap {self.learner.target.text} was not reached: it is {found['gap']:.6g}"
                verdict = Verdict.of(verdict.assumptions, limit=missed)
        guard = self.learner.guard
        if guard is not None:
            together = together and not guard.monitor.alarm
            drift = guard.facts(self.learner.data.before[0])
            found["drift"] = from_plain(to_plain(drift), DriftFacts)
        kind = OnlineRecord(
            **found,
            verdict=verdict.word,
            why=verdict.why,
            assumptions=assumed_facts(verdict),
            best_guarantee=best([*so_far, update.guarantee]) if together else None,
            performance=None if known is None else 0.5 * (known.lower + known.upper),
            holds=kept,
            final=final,
            elapsed=round(elapsed, 6),
        )
        record = {key: value for key, value in structs.asdict(kind).items() if value is not UNSET}
        record["verdict"], record["assumptions"] = verdict.word.value, to_plain(kind.assumptions)
        if guard is not None:
            record["drift"] = to_plain(record["drift"])
        if not final:
            so_far.append(update.guarantee)
        if self.journal is not None:
            try:
                self.journal.append(record)
                if not final:
                    self.journal.checkpoint(self.learner, elapsed)
            except InputError:
                yield record
                raise
        yield record
