"""Trajectories and a generative model of an MDP, at tens of millions of steps a second.

The same seed gives the same data whatever the number of threads (`tightrope.data.generator`); draws
follow the float64 probabilities to 2^−62 (`tightrope.data.alias`). Batches of episodes, or of rounds of
the generative model, grow geometrically with boundaries fixed in advance (`tightrope.data.batches`).

Counters that several threads fill, each its own, and that are added up without looking at all of them.

A kernel lists the transitions that it counts for the first time, so reading a small batch off a large
model costs as much as the batch, not as the model. Integers add up to the same whatever the order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from tightrope.data.alias import AliasTable, build_alias_table
from tightrope.data.batches import Batches, batch_ends
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.episodes import Runs, Walk, count_draws, count_episodes, record_episodes
from tightrope.data.generator import EPISODES, GENERATIVE, stream_key
from tightrope.data.stopping import absorbing_states, can_repeat_choice
from tightrope.errors import InputError, check_type
from tightrope.model.mdp import MDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.structure import frozen_array
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields

COUNTER_MEMORY = 1 << 30
"""Bytes that the counters of all threads together may take."""

SMALL_BATCH = 256
"""Episodes (or choices) below which a second thread does not pay."""

Work: TypeAlias = Callable[[int, int, OffsetArray, IndexArray], tuple[int, int]]
"""Counts the items first..last−1 into counters; the steps taken and the number of transitions touched."""


class Counters:
    """One row of counters a thread, all zero between two runs."""

    def __init__(self, transitions: int, threads: int):
        affordable = COUNTER_MEMORY // (12 * transitions)
        self.threads = max(1, min(threads, affordable))
        self._count: OffsetArray = np.zeros((self.threads, transitions), dtype=np.int64)
        self._touched: IndexArray = np.empty((self.threads, transitions), dtype=np.int32)

    def run(self, work: Work, first: int, last: int) -> tuple[int, tuple[OffsetArray, OffsetArray]]:
        """Spread the items first..last−1 over the threads; the steps taken and the counts of this run."""
        threads = max(1, min(self.threads, (last - first) // SMALL_BATCH))
        cuts = [first + (last - first) * i // threads for i in range(threads + 1)]
        if threads == 1:
            done = [work(first, last, self._count[0], self._touched[0])]
        else:
            with ThreadPoolExecutor(threads) as pool:
                tasks = [
                    pool.submit(work, cuts[i], cuts[i + 1], self._count[i], self._touched[i])
                    for i in range(threads)
                ]
                done = [task.result() for task in tasks]
        return sum(steps for steps, _ in done), self._harvest([touches for _, touches in done])

    def _harvest(self, touches: list[int]) -> tuple[OffsetArray, OffsetArray]:
        """The transitions seen, in order, and how often; leaves the counters at zero."""
        total = self._count[0]
        parts = [self._touched[i, :number] for i, number in enumerate(touches)]
        for row, part in zip(self._count[1:], parts[1:], strict=False):
            total[part] += row[part]
            row[part] = 0
        seen = np.unique(np.concatenate(parts)).astype(np.int64)
        count = total[seen]
        total[seen] = 0
        return seen, count


DEFAULT_CAP = 1000
"""Steps after which an episode is cut off, where nothing else is said."""

RECORD_ROWS = 1 << 18
"""Rows of a block of recorded trajectories, at least."""


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Record):
    """A block of recorded steps, in time order: whole episodes, one row per step.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> truth = tr.Simulator(model.instantiate(p=1), model_hash=model.hash())
    >>> [block.transition.tolist() for block in truth.trajectories(3, seed=1)]
    [[0, 0, 0]]
    """

    episode: OffsetArray
    step: OffsetArray
    transition: OffsetArray

    def __post_init__(self) -> None:
        freeze_fields(self)


@dataclass(frozen=True, eq=False, repr=False)
class Simulator(Record):
    """An MDP under a policy, with the states that end an episode and the cap on its length.

    `policy` is anything that a `Policy` can be made of; None takes every choice of a state alike. `stop` adds
    to the absorbing states, which always end an episode. `model_hash` is the hash of the parametric model the
    MDP was instantiated from, where there is one. `threads` is the number of cores by default.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> truth = tr.Simulator(model.instantiate(p=0.5), model_hash=model.hash())
    >>> counts = truth.episodes(100, seed=1)
    >>> counts.steps, int(counts.transition.sum())
    (100, 100)
    """

    mdp: MDP
    policy: PolicyGiven | None = None
    stop: BoolArray | None = None
    cap: int = DEFAULT_CAP
    model_hash: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        check_type("mdp", self.mdp, MDP, "an ordinary MDP, such as model.instantiate(p=0.5)")
        check_type("cap", self.cap, int, "a number of steps")
        if self.threads is not None:
            check_type("threads", self.threads, int, "a number of threads")
        if self.stop is not None:
            check_type("stop", self.stop, np.ndarray, "an array of truth values, one per state")
        if self.cap < 1:
            raise InputError(f"the cap on an episode's length is {self.cap}, but it must be at least 1")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"the number of threads is {self.threads}, but it must be at least 1")
        if self.stop is not None and self.stop.shape != (self.mdp.states,):
            raise InputError(f"stopping states given for {len(self.stop)} of {self.mdp.states} states")
        object.__setattr__(self, "policy", as_policy(self.mdp, self.policy))
        if self.stop is not None:
            object.__setattr__(self, "stop", frozen_array(self.stop, np.bool_))

    def _facts_(self) -> Facts:
        policy = "uniform" if self.policy is None else repr(self.policy).partition("\n")[0]
        ending = f"{np.count_nonzero(self.stopping):,} states end an episode, or {self.cap:,} steps"
        return [("model", self.mdp._title_()), ("policy", policy), ("stopping", ending)]

    def episodes(self, episodes: int, seed: int, first: int = 0) -> Counts:
        """Counts of `episodes` trajectories, in geometric batches of episodes.

        `first` is the number of the first episode: a run that goes on (perhaps under another policy)
        with the same seed draws new numbers when it counts on.
        """
        key = seed_key(seed, EPISODES)
        work = partial(count_episodes, *self._walk(key))
        parts = []
        counters = self._counters(episodes)
        begin, steps = 0, 0
        for end in _positive_ends(episodes, "episodes"):
            taken, part = counters.run(work, first + begin, first + end)
            steps += taken
            parts.append(part)
            begin = end
        design = SamplingDesign(SamplingKind.TRAJECTORIES, episodes, steps, self.repeats, planned=episodes)
        return self._counts(parts, design)

    def trajectories(self, episodes: int, seed: int, first: int = 0) -> Iterator[Trajectories]:
        """The same episodes as `episodes`, step by step in blocks: never more in memory than one block."""
        key = seed_key(seed, EPISODES)
        walk = self._walk(key)
        rows = max(RECORD_ROWS, self.cap)
        following, last = first, first + episodes
        while following < last:
            block = np.empty((3, rows), dtype=np.int64)
            used, following = record_episodes(*walk, following, last, block[0], block[1], block[2])
            yield Trajectories(block[0, :used], block[1, :used], block[2, :used])

    def generative(self, samples: int | OffsetArray, seed: int) -> Counts:
        """Counts of independent draws from every choice, in geometric batches of rounds.

        `samples` is the number of draws of every choice, or one number per choice. Then a batch has the
        same part of the draws of all choices, rounded.
        """
        mdp, table = self.mdp, self._choice_table
        each = np.broadcast_to(np.asarray(samples, dtype=np.int64), mdp.choices)
        rounds = int(each.max(initial=0)) if each.min(initial=0) >= 0 else -1
        counters = self._counters(mdp.choices)
        parts = []
        done = np.zeros(mdp.choices, dtype=np.int64)
        for number, end in enumerate(_positive_ends(rounds, "samples of a choice")):
            key = stream_key(int(seed_key(seed, GENERATIVE)), number)
            upto = each // rounds * end + each % rounds * end // rounds
            work = partial(count_draws, table.row, table.bucket, key, upto - done)
            parts.append(counters.run(work, 0, mdp.choices)[1])
            done = upto
        design = SamplingDesign(SamplingKind.GENERATIVE_FIXED, None, int(each.sum()), True)
        return self._counts(parts, design)

    @property
    def _followed(self) -> Policy | None:
        assert self.policy is None or isinstance(self.policy, Policy)
        return self.policy

    @cached_property
    def stopping(self) -> BoolArray:
        """All states that end an episode."""
        absorbing = absorbing_states(self.mdp.structure)
        return absorbing if self.stop is None else absorbing | self.stop

    @cached_property
    def repeats(self) -> bool:
        """Whether an episode can take the same choice twice."""
        return can_repeat_choice(self.mdp.structure, self.stopping, self.cap)

    @cached_property
    def hash(self) -> str:
        """The hash that the counts carry."""
        return self.model_hash if self.model_hash is not None else self.mdp.hash()

    def _walk(self, key: np.uint64) -> tuple[Walk, Runs | None]:
        """What kernels need of model and policy."""
        mdp, runs = self.mdp, None if self._followed is None else self._followed.steps
        table = self._episode_table if runs is None else self._choice_table
        walk = Walk(table.row, table.bucket, mdp.successor, mdp.initial, self.cap, key)
        return walk, None if runs is None else Runs(self.stopping, runs.start, runs.step, runs.choice)

    @cached_property
    def _episode_table(self) -> AliasTable:
        mdp = self.mdp
        weight = (self._followed or Policy.uniform(mdp)).probability
        return build_alias_table(
            mdp.choice_start, mdp.transition_start, weight, mdp.probability, self.stopping
        )

    @cached_property
    def _choice_table(self) -> AliasTable:
        """A row per choice."""
        mdp = self.mdp
        each = np.arange(mdp.choices + 1, dtype=np.int64)
        never = np.zeros(mdp.choices, dtype=np.bool_)
        return build_alias_table(each, mdp.transition_start, np.ones(mdp.choices), mdp.probability, never)

    def _counters(self, work: int) -> Counters:
        threads = self.threads if self.threads is not None else len(os.sched_getaffinity(0))
        return Counters(self.mdp.transitions, min(threads, work // SMALL_BATCH))

    def _counts(self, parts: list[tuple[OffsetArray, OffsetArray]], design: SamplingDesign) -> Counts:
        return Counts.from_batches(Batches.from_parts(parts), self.mdp.transition_start, design, self.hash)


def seed_key(seed: int, stream: int) -> np.uint64:
    """The key of a stream, for a seed that is a 64-bit number."""
    if not 0 <= seed < 1 << 64:
        raise InputError(f"the seed is {seed}, but it must be between 0 and 2^64 − 1")
    return stream_key(seed, stream)


def _positive_ends(total: int, what: str) -> list[int]:
    if total < 0:
        raise InputError(f"the number of {what} is {total}, but it must not be negative")
    return [int(end) for end in batch_ends(total)]
