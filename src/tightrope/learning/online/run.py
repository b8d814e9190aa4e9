"""An online run: collect, update and record until the gap is small enough or the episodes are done.

Seed and number of an episode determine its randomness, and the last record is computed apart (`final`), so
runs resume and prolong unchanged. An update is appended to `records.jsonl` and synced, then `checkpoint.npz`
is replaced atomically; it says how many bytes of the records belong to it. The question is stored, and
another one refused. A run that fails before its first episode leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from tightrope.atomic import explain_errors
from tightrope.data.collection import GrowingCounts, simulate_until_doubled
from tightrope.data.simulator import Simulator
from tightrope.data.steps import SteppedEnvironment
from tightrope.errors import InputError
from tightrope.io.coding import Real, from_text, record_of, to_plain
from tightrope.io.output import MANIFEST, Manifest, claim
from tightrope.io.results import RECORDS, Interval, Judged
from tightrope.io.stored_arrays import DAMAGE, load_arrays, save_arrays
from tightrope.learning.online.exploration import STOPPED, Answer, DriftFacts, next_portion
from tightrope.learning.online.learner import OnlineLearner, Update
from tightrope.model.mdp import MDP
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import AnyArray
from tightrope.numerics.machine import lock
from tightrope.solver.solve import solve
from tightrope.verdict import Assessment, Word


class OnlineRecord(Judged, kw_only=True):
    """A line of `online --json` and of `records.jsonl`: one update.

    `verdict` is about the guarantee, in the last line about the gap if one was requested: `gap` is the width
    of the robust policy's interval, `reached` whether it is small enough. `above_baseline` bounds how much
    better than a given baseline the policy is that collects next.
    """

    update: int
    episode: int
    steps: int
    guarantee: Real
    best_guarantee: Real | UnsetType | None = UNSET
    optimistic: Real
    width: Real
    gap: Real | UnsetType = UNSET
    reached: bool | UnsetType = UNSET
    above_baseline: Interval | UnsetType = UNSET
    status: str
    fallback: bool
    seconds: float
    performance: Real | None
    holds: bool | None
    final: bool
    elapsed: float
    drift: DriftFacts | UnsetType = UNSET
    peak_memory: int | UnsetType = UNSET


Line: TypeAlias = dict[str, Any]
"""Such a record as JSON."""


@dataclass(frozen=True, eq=False)
class SimulatedEpisodes:
    """Episodes of a model at the true point."""

    simulator: Simulator
    seed: int

    def collect(self, policy: Policy, data: GrowingCounts, last: int) -> None:
        """Add episodes until an update is due or the data have `last`."""
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


Source: TypeAlias = SimulatedEpisodes | EnvironmentEpisodes
"""What adds episodes under a policy to the data."""

PRECISION = 1e-9
"""Of values at the true point."""


class Truth:
    """The model at the true point: what a policy is really worth."""

    def __init__(self, mdp: MDP, objective: Objective):
        self.mdp, self.objective = mdp, objective
        self._last: tuple[Policy, Interval] | None = None

    def performance(self, policy: Policy) -> Interval | None:
        """Verified bounds of the policy's value; None where the policy is no choice per state."""
        if self.objective.depends_on_step:
            return None
        if self._last is None or self._last[0] != policy:
            solution = solve(self.mdp, self.objective, policy=policy, precision=PRECISION)
            self._last = policy, Interval.of(*solution.bounds)
        return self._last[1]


@dataclass(frozen=True, eq=False)
class OnlineRun:
    """What a run consists of; `truth` where it is known, `journal` where the run is kept."""

    learner: OnlineLearner
    source: Source
    episodes: int
    truth: Truth | None = None
    journal: Journal | None = None

    def records(self) -> Iterator[Line]:
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

    def _counts(self, record: Line) -> bool:
        """Whether the guarantee of an earlier record holds together with those that follow."""
        guard = self.learner.guard
        return not record["final"] and (guard is None or record["drift"]["restarts"] == guard.restarts)

    def _keep_record(
        self, update: Update, begin: float, so_far: list[float], final: bool = False
    ) -> Iterator[Line]:
        """Yield an update's record, written with the checkpoint; `so_far` are earlier guarantees."""
        known = None if self.truth is None else self.truth.performance(update.robust_policy)
        holds = None if known is None else update.is_kept(known, self.learner.objective.maximises)
        elapsed, learner = time.perf_counter() - begin, self.learner
        best = max if learner.objective.maximises else min
        together = learner.ledger is not None and learner.ledger.holds_at_all_times
        guard, target = learner.guard, learner.target
        reached = UNSET if target is None else learner.reaches(update)
        verdict = learner.assess(update, reached is True or learner.episodes >= self.episodes)
        if target is not None and verdict.is_proved and not reached and learner.episodes >= self.episodes:
            missed = f"the gap {target.text} was not reached: it is {update.gap:.6g}"
            verdict = Assessment.of(verdict.assumptions, limit=missed)
        if guard is not None:
            together = together and not guard.monitor.alarm
        together = together and verdict.word is not Word.CONTRADICTED
        kind = record_of(
            OnlineRecord,
            update,
            **verdict.facts,
            update=update.number,
            above_baseline=UNSET if update.above is None else update.above,
            seconds=round(update.seconds, 6),
            reached=reached,
            best_guarantee=best([*so_far, update.guarantee]) if together else None,
            performance=None if known is None else 0.5 * (known.lower + known.upper),
            holds=holds,
            final=final,
            elapsed=round(elapsed, 6),
            drift=UNSET if guard is None else guard.record(learner.data.before[0]),
        )
        record: Line = to_plain(kind)
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


CHECKPOINT = "checkpoint.npz"
FORMAT = "tightrope online 5"
LIVE = (RECORDS, CHECKPOINT)
"""The files that a run goes on changing."""

KIND = "online"
"""The command that such a directory belongs to."""

FIRST = b'{"verdict":'
"""How the records of a run begin."""


class Journal:
    """A run's directory, held by this process alone while it is open.

    `question` is everything that the records depend on, by the names under which users know it. After
    entering, `records` are those of an earlier run, and `elapsed` the seconds it took.
    """

    def __init__(self, directory: Path, question: Mapping[str, object]):
        self.directory = directory
        self.question = {name: to_plain(value) for name, value in question.items()}
        self.records: list[Line] = []
        self.elapsed = 0.0
        self._state: dict[str, AnyArray] | None = None
        self._appended = 0
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        ours = [*(self.directory / name for name in (*LIVE, MANIFEST)), self.directory]
        self._made = [path for path in ours if not path.exists()]
        try:
            claimed = claim(self.directory, KIND)
            self.directory.mkdir(exist_ok=True)
            if claimed.known is None:
                Manifest(KIND, dict.fromkeys(LIVE)).save(self.directory)
            path = self.directory / RECORDS
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise InputError(f"cannot write {self.directory}: {error.strerror or error}") from error
        try:
            lock(self._descriptor, wait=False)
            self._open()
        except BlockingIOError:
            os.close(self._descriptor)
            raise InputError(
                f"another run is writing to {self.directory}", hint="wait for it, or name another directory"
            ) from None
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_start = kind is not None and self._state is None and self._appended <= 1
        for path in self._made if is_start else ():  # the first record knows of no episode
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        os.close(self._descriptor)

    def resume(self, learner: OnlineLearner) -> bool:
        """Bring the learner to where the earlier run was; whether there was one."""
        if self._state is None:
            return False
        try:
            learner.restore(self._state)
        except DAMAGE as error:
            raise InputError(
                f"{self.directory / CHECKPOINT} is damaged: {error}", hint="name a new directory"
            ) from error
        return True

    def append(self, record: Mapping[str, object]) -> None:
        """Add a record; it is on the disk when this returns."""
        self._appended += 1
        data = (json.dumps(to_plain(dict(record)), allow_nan=False) + "\n").encode()
        with explain_errors(self.directory / RECORDS):
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)

    def checkpoint(self, learner: OnlineLearner, elapsed: float) -> None:
        """The learner as it is now, with all records so far."""
        about = {
            "format": FORMAT,
            "question": self.question,
            "bytes": os.fstat(self._descriptor).st_size,
            "elapsed": elapsed,
        }
        save_arrays(self.directory / CHECKPOINT, about, learner.state())

    def _open(self) -> None:
        """Read the checkpoint, where there is one, and cut off the records that it does not know."""
        for torn in self.directory.glob(f".{CHECKPOINT}.*.part"):  # of a process that was killed
            torn.unlink(missing_ok=True)
        path = self.directory / CHECKPOINT
        size = os.fstat(self._descriptor).st_size
        if not path.is_file():
            begun = os.pread(self._descriptor, len(FIRST), 0)
            if not FIRST.startswith(begun):  # a campaign's records bear the same name
                raise InputError(
                    f"{self.directory / RECORDS} holds other records than a run's, and was not changed",
                    hint="name a new directory",
                )
            os.ftruncate(self._descriptor, 0)
            return
        about, state = _read(path)
        self._refuse_another(about["question"])
        if about["bytes"] > size:
            raise InputError(
                f"{self.directory / RECORDS} is shorter than its checkpoint says",
                hint="a file was changed by hand; name a new directory",
            )
        os.ftruncate(self._descriptor, about["bytes"])
        try:
            lines = (self.directory / RECORDS).read_text(encoding="utf-8").splitlines()
            self.records = [to_plain(from_text(line, OnlineRecord)) for line in lines]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{self.directory / RECORDS} holds other records: {error}") from error
        self.elapsed, self._state = about["elapsed"], state

    def _refuse_another(self, earlier: Mapping[str, object]) -> None:
        for name in dict.fromkeys((*self.question, *earlier)):
            wanted, had = self.question.get(name), earlier.get(name)
            if wanted != had:
                raise InputError(
                    f"{self.directory} holds another run: its {name} is {_show(had)}, not {_show(wanted)}",
                    hint="name a new directory, or run the same command to go on",
                )


def _read(path: Path) -> tuple[Line, dict[str, AnyArray]]:
    try:
        about, state = load_arrays(path)
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']}")
        if type(about["bytes"]) is not int or about["bytes"] < 0 or not isinstance(about["question"], dict):
            raise ValueError("it does not say what it belongs to")
        about["elapsed"] = float(about["elapsed"])
    except DAMAGE as error:
        raise InputError(
            f"{path} is not a checkpoint of this program: {error}", hint="name a new directory"
        ) from None
    return about, state


def _show(value: object) -> str:
    return "not given" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
