"""Trajectories and a generative model of an MDP, at tens of millions of steps a second.

An episode starts in the initial state and ends in a state without a row (stopped or absorbing) or after `cap`
steps. Batches grow geometrically with boundaries fixed in advance (`tightrope.data.counts`).

*Random numbers.* Every episode has its own generator, seeded from (seed, stream, number of the episode), so
episodes do not depend on the number of threads. It is xoshiro256++ (Blackman and Vigna 2021) with a state
filled by SplitMix64; keys are a bijection of episode numbers, so no two episodes share one.

*Alias tables in integers*: one random number picks choice and successor. The weights w_t = π(c)·P(t) of a row
become whole numbers W_t with Σ W_t = 2^62. The row has 2^k buckets of capacity 2^(62−k), each shared by at
most two transitions (Walker). A 62-bit random number picks the bucket by its upper k bits and the transition
by comparing the rest, so t has probability exactly W_t / 2^62. W_t differs from w_t·2^62 by at most one unit
and float64 rounding; W_t = 0 exactly if w_t = 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tightrope.data.counts import MOST, Batches, Counts, LazyLog, added, batch_ends, sparse
from tightrope.data.design import SamplingDesign, SamplingKind, absorbing_states, can_repeat_choice
from tightrope.data.episode_log import EpisodeLog
from tightrope.errors import InputError, check_type, describe
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.product import lift_model, product_with_memory
from tightrope.model.structure import Structure, frozen_array
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray, read_only
from tightrope.numerics.jit import kernel
from tightrope.numerics.machine import cores
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
        tasks = [(cuts[i], cuts[i + 1], self._count[i], self._touched[i]) for i in range(threads)]
        if threads == 1:
            done = [work(*tasks[0])]
        else:
            with ThreadPoolExecutor(threads) as pool:
                done = list(pool.map(lambda task: work(*task), tasks))
        total, parts = self._count[0], [self._touched[i, :number] for i, (_, number) in enumerate(done)]
        for row, part in zip(self._count[1:], parts[1:], strict=False):
            total[part] += row[part]
            row[part] = 0
        seen = np.unique(np.concatenate(parts)).astype(np.int64)
        count = total[seen]
        total[seen] = 0
        return sum(steps for steps, _ in done), (seen, count)


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
    >>> model = tr.load("bench:betting(5)")
    >>> truth = tr.Simulator(model.instantiate(p=0.8, q=0), model_hash=model.hash())
    >>> truth.episodes(100, seed=1).design.episodes
    100
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
        if self.cap < 1:
            raise InputError(f"the cap on an episode's length is {self.cap}, but it must be at least 1")
        if self.threads is not None:
            check_type("threads", self.threads, int, "a number of threads")
            if self.threads < 1:
                raise InputError(f"the number of threads is {self.threads}, but it must be at least 1")
        if self.stop is not None:
            check_type("stop", self.stop, np.ndarray, "an array of truth values, one per state")
            if self.stop.shape != (self.mdp.states,):
                raise InputError(f"stopping states given for {len(self.stop)} of {self.mdp.states} states")
            object.__setattr__(self, "stop", frozen_array(self.stop, np.bool_))
        object.__setattr__(self, "policy", as_policy(self.mdp, self.policy))

    def _facts_(self) -> Facts:
        policy = "uniform" if self.policy is None else repr(self.policy).partition("\n")[0]
        ending = f"{np.count_nonzero(self.stopping):,} states end an episode, or {self.cap:,} steps"
        return [("model", self.mdp._title_()), ("policy", policy), ("stopping", ending)]

    def episodes(self, episodes: int, seed: int, first: int = 0) -> Counts:
        """Simulate episodes and count their transitions.

        Parameters
        ----------
        episodes, seed : int
            The number of episodes, and the seed of the random numbers.
        first : int
            The number of the first episode. To continue a run with the same seed, count on.

        Returns
        -------
        Counts
            In geometric batches of episodes.
        """
        walker, of = self._walker
        work = partial(count_episodes, *walker._walk(seed_key(seed, EPISODES)))
        counters, parts, begin, steps = walker._counters(episodes), [], 0, 0
        for end in _positive_ends(episodes, "episodes"):
            walked, part = counters.run(work, first + begin, first + end)
            steps += walked
            parts.append(part if of is None else sparse(added(of[part[0]], part[1], self.mdp.transitions)))
            begin = end
        followed = "uniform" if self._followed is None else self._followed.digest
        design = SamplingDesign(
            SamplingKind.TRAJECTORIES, episodes, steps, self.repeats, planned=episodes, followed=followed
        )
        log = simulated_log(self.mdp.structure, self.hash, self.trajectories, (episodes, seed, first))
        return replace(self._counts(parts, design), log=log)

    def trajectories(self, episodes: int, seed: int, first: int = 0) -> Iterator[Trajectories]:
        """Return the episodes of `episodes` step by step, with one block in memory.

        Parameters
        ----------
        episodes, seed, first : int
            As for `episodes`.
        """
        walker, of = self._walker
        walk, rows = walker._walk(seed_key(seed, EPISODES)), max(RECORD_ROWS, self.cap)
        following, last = first, first + episodes
        while following < last:
            block = np.empty((3, rows), dtype=np.int64)
            used, following = record_episodes(*walk, following, last, block[0], block[1], block[2])
            transition = block[2, :used] if of is None else of[block[2, :used]]
            yield Trajectories(block[0, :used], block[1, :used], transition)

    def generative(self, samples: int | OffsetArray, seed: int) -> Counts:
        """Draw independent successors of every choice.

        Parameters
        ----------
        samples, seed : int
            Draws of every choice, or one number per choice; the seed of the random numbers.

        Returns
        -------
        Counts
            In geometric batches. Each has the same part of every choice's draws.
        """
        mdp, table = self.mdp, self._choice_table
        if self._followed is not None and self._followed.has_memory:
            raise InputError(
                "draws of single choices follow no policy: a finite-memory policy requires episodes"
            )
        wanted = np.asarray(samples)
        if not np.issubdtype(wanted.dtype, np.integer) or wanted.shape not in ((), (mdp.choices,)):
            raise InputError(
                f"`samples` is {describe(samples)}, neither a whole number nor one for each of the "
                f"{mdp.choices:,} choices"
            )
        each = np.broadcast_to(wanted.astype(np.int64), mdp.choices)
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
    def _walker(self) -> tuple[Simulator, OffsetArray | None]:
        """What walks: with a finite-memory policy the product with its memory, and its transitions."""
        policy = self._followed
        if policy is None or not policy.has_memory:
            return self, None
        product, choices = product_with_memory(self.mdp, policy, Support.of(self.mdp))
        beside, stop = lift_model(self.mdp, product), self.stopping[product.state]
        walker = Simulator(beside, choices.probability, stop, self.cap, threads=self.threads)
        return walker, product.transition

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

    def _walk(self, key: np.uint64) -> tuple[EpisodeWalk, Runs | None]:
        """What kernels need of model and policy."""
        mdp, runs = self.mdp, None if self._followed is None else self._followed.steps
        table = self._episode_table if runs is None else self._choice_table
        walk = EpisodeWalk(table.row, table.bucket, mdp.successor, mdp.initial, self.cap, key)
        return walk, None if runs is None else Runs(self.stopping, runs.start, runs.step, runs.choice)

    @cached_property
    def _episode_table(self) -> AliasTable:
        mdp = self.mdp
        weight = (self._followed or Policy.uniform(mdp)).probability
        start = mdp.choice_start, mdp.transition_start
        return build_alias_table(*start, weight, mdp.probability, self.stopping)

    @cached_property
    def _choice_table(self) -> AliasTable:
        """A row per choice."""
        mdp = self.mdp
        each = np.arange(mdp.choices + 1, dtype=np.int64)
        never = np.zeros(mdp.choices, dtype=np.bool_)
        return build_alias_table(each, mdp.transition_start, np.ones(mdp.choices), mdp.probability, never)

    def _counters(self, work: int) -> Counters:
        threads = self.threads if self.threads is not None else cores()
        return Counters(self.mdp.transitions, min(threads, work // SMALL_BATCH))

    def _counts(self, parts: list[tuple[OffsetArray, OffsetArray]], design: SamplingDesign) -> Counts:
        return Counts.from_batches(Batches.from_parts(parts), self.mdp.transition_start, design, self.hash)


Walk = Callable[[int, int, int], Iterator[Trajectories]]
"""Simulates so many episodes with a seed, from a number on."""


def simulated_log(structure: Structure, model_hash: str, walk: Walk, what: tuple[int, int, int]) -> LazyLog:
    """The rows of episodes that were counted, simulated again when they are asked for."""

    def read() -> EpisodeLog:
        (episodes, _, first), blocks = what, list[Trajectories]()
        for block in walk(*what):
            blocks.append(block)
            if sum(len(one.transition) for one in blocks) > MOST:
                episodes = int(block.episode[-1]) + 1 - first
                break
        nothing = np.empty(0, dtype=np.int64)
        transition = np.concatenate([nothing, *(block.transition for block in blocks)])
        episode = np.concatenate([nothing, *(block.episode for block in blocks)]) - first
        return EpisodeLog.of_episodes(transition, episode, episodes, structure, model_hash).first(MOST)

    return LazyLog(read, structure)


def seed_key(seed: int, stream: int) -> np.uint64:
    """The key of a stream, for a seed that is a 64-bit number."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 64:
        raise InputError(f"the seed is {seed}, but it must be between 0 and 2^64 − 1")
    return stream_key(seed, stream)


def _positive_ends(total: int, what: str) -> list[int]:
    check_type(what, total, int | np.integer, "a whole number")
    if total < 0:
        raise InputError(f"the number of {what} is {total}, but it must not be negative")
    return [int(end) for end in batch_ends(total)]


GeneratorState = npt.NDArray[np.uint64]
"""Four words: the state of one xoshiro256++ generator."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)

_WORDS = 1 << 64

EPISODES, GENERATIVE = 1, 2
"""Streams: what the numbers are drawn for."""

RANDOM_BITS = 62
"""`draw` returns a number below 2^62: it fits a signed integer with room to spare."""


@kernel
def mix(word: np.uint64) -> np.uint64:
    """SplitMix64's finaliser: a bijection of 64-bit words."""
    word = (word ^ (word >> np.uint64(30))) * _MULTIPLIER_1
    word = (word ^ (word >> np.uint64(27))) * _MULTIPLIER_2
    return word ^ (word >> np.uint64(31))


def stream_key(seed: int, stream: int) -> np.uint64:
    """The key that all generators of one seed and stream are derived from.

    An unsigned word must reach the kernels as one: compiled code adds a signed and an unsigned
    integer as floats.
    """
    outer = int(mix(np.uint64((seed + int(GOLDEN)) % _WORDS)))
    return np.uint64(mix(np.uint64((outer + stream * int(GOLDEN)) % _WORDS)))


@kernel
def seed_generator(key: np.uint64, number: int, state: GeneratorState) -> None:
    """Fill `state` with the generator of one episode (or choice) under a stream's key."""
    word = mix(np.uint64(key) + np.uint64(number) * GOLDEN)
    for i in range(4):
        word = word + GOLDEN
        state[i] = mix(word)


@kernel
def draw(state: GeneratorState) -> int:
    """The next number of the generator, uniform on 0 .. 2^62 − 1."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return int(result >> np.uint64(2))


STOP = -1
"""What `row` holds for a row that is never drawn from."""

_BUCKET_BITS = 6
"""`row` packs the first bucket (upper bits) and k (lower six bits) into one word."""


@dataclass(frozen=True, eq=False)
class AliasTable:
    """`row[r]` says where the buckets of row r are; `bucket[i]` = (threshold, two transitions packed)."""

    row: OffsetArray
    bucket: OffsetArray


class _Weights(NamedTuple):
    """Rows are ranges of choices; a transition weighs as much as its choice, times its probability."""

    row_start: OffsetArray
    transition_start: OffsetArray
    choice: FloatArray
    probability: FloatArray


def build_alias_table(
    row_start: OffsetArray,
    transition_start: OffsetArray,
    choice_weight: FloatArray,
    probability: FloatArray,
    skip: BoolArray,
) -> AliasTable:
    """One row for each range `row_start[r]..row_start[r+1]` of choices; none for rows in `skip`."""
    row_start, transition_start = read_only(row_start), read_only(transition_start)
    weights = _Weights(row_start, transition_start, read_only(choice_weight), read_only(probability))
    room = int(np.diff(transition_start[row_start]).max(initial=1))
    weight = np.repeat(choice_weight, np.diff(transition_start)) * probability
    positive = np.diff(np.r_[0, np.cumsum(weight > 0)][transition_start[row_start]])
    bits = np.frexp(np.maximum(positive - 1, 0))[1].astype(np.int64)
    size = np.where(skip, 0, 1 << bits)
    row = np.where(skip, STOP, (np.cumsum(size) - size) << _BUCKET_BITS | bits)
    bucket = np.empty((int(size.sum()), 2), dtype=np.int64)
    scratch = np.empty((4, max(room, int(size.max(initial=1)))), dtype=np.int64)
    _fill(weights, row, bucket, scratch, np.empty(room))
    return AliasTable(row, bucket)


@kernel
def pick(row: int, bucket: OffsetArray, number: int) -> int:
    """The transition that a random 62-bit number picks in a row."""
    rest_bits = RANDOM_BITS - (row & 63)
    entry = (row >> _BUCKET_BITS) + (number >> rest_bits)
    pair = bucket[entry, 1]
    if (number & ((1 << rest_bits) - 1)) < bucket[entry, 0]:
        return int(pair >> 32)
    return int(pair & 0xFFFFFFFF)


@kernel
def _share_out(weights: _Weights, r: int, item: OffsetArray, share: FloatArray) -> int:
    """The transitions of a row that have weight, and their weights; how many."""
    row_start, transition_start, choice_weight, probability = weights
    items = 0
    for c in range(row_start[r], row_start[r + 1]):
        for t in range(transition_start[c], transition_start[c + 1]):
            share[items] = choice_weight[c] * probability[t]
            if share[items] > 0:
                item[items] = t
                items += 1
    return items


@kernel
def _fill(
    weights: _Weights, row: OffsetArray, bucket: OffsetArray, scratch: OffsetArray, share: FloatArray
) -> None:
    item, weight, small, large = scratch[0], scratch[1], scratch[2], scratch[3]
    unit = 2.0**RANDOM_BITS
    for r in range(len(row)):
        if row[r] == STOP:
            continue
        items = _share_out(weights, r, item, share)
        total = 0.0
        for i in range(items):
            total += share[i]
        largest = 0
        left = np.int64(1) << RANDOM_BITS
        for i in range(items):
            whole = max(np.int64(1), np.int64(np.rint(min(share[i] / total, 1.0) * unit)))
            weight[i] = whole
            left -= whole
            if whole > weight[largest]:
                largest = i
        weight[largest] += left
        bits = row[r] & 63
        capacity = np.int64(1) << (RANDOM_BITS - bits)
        for i in range(items, 1 << bits):
            item[i] = item[largest]
            weight[i] = 0
        smalls = 0
        larges = 0
        for i in range(1 << bits):
            if weight[i] < capacity:
                small[smalls] = i
                smalls += 1
            else:
                large[larges] = i
                larges += 1
        first = row[r] >> _BUCKET_BITS
        while smalls > 0:
            smalls -= 1
            i = small[smalls]
            j = large[larges - 1]
            bucket[first + i, 0] = weight[i]
            bucket[first + i, 1] = (item[i] << 32) | item[j]
            weight[j] -= capacity - weight[i]
            if weight[j] < capacity:
                larges -= 1
                small[smalls] = j
                smalls += 1
        for n in range(larges):
            i = large[n]
            bucket[first + i, 0] = capacity
            bucket[first + i, 1] = (item[i] << 32) | item[i]


LANES = 8
"""Episodes walked at once by one thread."""


class EpisodeWalk(NamedTuple):
    """An alias table with a row per state, or per choice where the policy depends on the step (`Runs`); where
    transitions lead; how episodes begin and end; `key` is that of their generators."""

    row: OffsetArray
    bucket: OffsetArray
    successor: IndexArray
    initial: int
    cap: int
    key: np.uint64


class Runs(NamedTuple):
    """A policy that depends on the step: the states that end an episode, and at state s `choice[i]` from
    `step[i]` on, for i in start[s]..start[s + 1]."""

    stopping: BoolArray
    start: OffsetArray
    step: OffsetArray
    choice: OffsetArray


@kernel
def _find_row(row: OffsetArray, runs: Runs | None, state: int, done: int) -> int:
    """The row that is drawn from in a state after so many steps; STOP where episodes end."""
    if runs is None:
        return int(row[state])
    stopping, start, step, choice = runs
    if stopping[state]:
        return STOP
    j = start[state]
    while j + 1 < start[state + 1] and step[j + 1] <= done:
        j += 1
    return int(row[choice[j]])


@kernel
def count_episodes(
    walk: EpisodeWalk, runs: Runs | None, first: int, last: int, count: OffsetArray, touched: IndexArray
) -> tuple[int, int]:
    """Walk the episodes first..last−1 and add their transitions to `count`.

    Transitions whose count was 0 are listed in `touched`. Returns the number of steps and of these.
    """
    row, bucket, successor, initial, cap, key = walk
    begin = _find_row(row, runs, initial, 0)
    if begin < 0 or cap == 0:
        return 0, 0
    generator = np.empty((LANES, 4), dtype=np.uint64)
    here = np.empty(LANES, dtype=np.int64)
    left = np.empty(LANES, dtype=np.int64)
    active = min(LANES, last - first)
    for lane in range(active):
        seed_generator(key, first + lane, generator[lane])
        here[lane] = begin
        left[lane] = cap
    waiting = first + active
    steps = 0
    touches = 0
    while active > 0:
        lane = 0
        while lane < active:
            t = pick(here[lane], bucket, draw(generator[lane]))
            if count[t] == 0:
                touched[touches] = t
                touches += 1
            count[t] += 1
            steps += 1
            left[lane] -= 1
            here[lane] = _find_row(row, runs, successor[t], cap - left[lane])
            if left[lane] == 0 or here[lane] < 0:
                if waiting < last:
                    seed_generator(key, waiting, generator[lane])
                    here[lane] = begin
                    left[lane] = cap
                    waiting += 1
                else:
                    active -= 1
                    for i in range(4):
                        generator[lane, i] = generator[active, i]
                    here[lane] = here[active]
                    left[lane] = left[active]
            lane += 1
    return steps, touches


@kernel
def record_episodes(
    walk: EpisodeWalk,
    runs: Runs | None,
    first: int,
    last: int,
    episode: OffsetArray,
    step: OffsetArray,
    transition: OffsetArray,
) -> tuple[int, int]:
    """Write whole episodes, one row per step, while `cap` more rows fit.

    Returns the number of rows and the first episode not walked.
    """
    row, bucket, successor, initial, cap, key = walk
    generator = np.empty(4, dtype=np.uint64)
    rows = 0
    number = first
    while number < last and rows + cap <= len(transition):
        seed_generator(key, number, generator)
        state = initial
        for done in range(cap):
            here = _find_row(row, runs, state, done)
            if here < 0:
                break
            t = pick(here, bucket, draw(generator))
            episode[rows] = number
            step[rows] = done
            transition[rows] = t
            rows += 1
            state = successor[t]
        number += 1
    return rows, number


@kernel
def count_draws(
    row: OffsetArray,
    bucket: OffsetArray,
    key: np.uint64,
    draws: OffsetArray,
    first: int,
    last: int,
    count: OffsetArray,
    touched: IndexArray,
) -> tuple[int, int]:
    """Draw each row r of first..last−1 `draws[r]` times; count transitions as `count_episodes` does."""
    generator = np.empty(4, dtype=np.uint64)
    touches = 0
    steps = 0
    for r in range(first, last):
        seed_generator(key, r, generator)
        steps += draws[r]
        for _ in range(draws[r]):
            t = pick(row[r], bucket, draw(generator))
            if count[t] == 0:
                touched[touches] = t
                touches += 1
            count[t] += 1
    return steps, touches
