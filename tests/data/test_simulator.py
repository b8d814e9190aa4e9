"""The simulator: exact tables, the right distribution, the same data for a seed on any number of threads."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from tightrope.data import simulator as simulator_module
from tightrope.data.counts import batch_ends
from tightrope.data.design import (
    SamplingKind,
    absorbing_states,
    can_repeat_choice,
    deciding_steps,
    find_decided_states,
)
from tightrope.data.simulator import (
    STOP,
    Simulator,
    build_alias_table,
    draw,
    mix,
    pick,
    seed_generator,
    stream_key,
)
from tightrope.errors import InputError
from tightrope.model.mdp import MDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.structure import RewardStructure, Structure

RNG_REFERENCE = (41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205)
"""The published first outputs of xoshiro256++ from the state (1, 2, 3, 4)."""

SPLITMIX_REFERENCE = (6457827717110365317, 3203168211198807973, 9817491932198370423)
"""The published first outputs of SplitMix64 from the seed 1234567."""


def walk(cells: int = 8) -> MDP:
    """A random walk with two speeds between two absorbing ends; one outcome has probability 0."""
    choice_start, transition_start, successor, probability, action = [0], [0], [], [], []
    for x in range(cells):
        if x in (0, cells - 1):
            rows = [(0, [(x, 1.0)])]
        else:
            rows = [
                (1, [(x - 1, 0.3), (x + 1, 0.7)]),
                (2, [(max(x - 2, 0), 0.15), (x, 0.25), (min(x + 2, cells - 1), 0.6), (cells - 1, 0.0)]),
            ]
        for name, row in rows:
            merged: dict[int, float] = {}
            for y, p in row:
                merged[y] = merged.get(y, 0.0) + p
            successor += list(merged)
            probability += list(merged.values())
            transition_start.append(len(successor))
            action.append(name)
        choice_start.append(len(action))
    structure = Structure(
        np.array(choice_start),
        np.array(transition_start),
        np.array(successor, dtype=np.int32),
        initial_states=(cells // 2,),
        action=np.array(action, dtype=np.int32),
        action_names=("stay", "slow", "fast"),
        valuations={"x": np.arange(cells, dtype=np.int32)},
    )
    return MDP(structure, np.array(probability))


def exact_probabilities(row: int, bucket: np.ndarray, transitions: int) -> list[Fraction]:
    """What an alias row draws, computed from its integers alone."""
    bits = row & 63
    capacity = 1 << (62 - bits)
    result = [Fraction(0)] * transitions
    for i in range(row >> 6, (row >> 6) + (1 << bits)):
        threshold, pair = int(bucket[i, 0]), int(bucket[i, 1])
        assert 0 <= threshold <= capacity
        result[pair >> 32] += Fraction(threshold, 1 << 62)
        result[pair & 0xFFFFFFFF] += Fraction(capacity - threshold, 1 << 62)
    return result


# --- random numbers -------------------------------------------------------------------------


def test_the_generator_gives_the_published_numbers() -> None:
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    assert [draw(state) for _ in RNG_REFERENCE] == [number >> 2 for number in RNG_REFERENCE]


def test_the_mixer_gives_the_published_numbers() -> None:
    golden = 0x9E3779B97F4A7C15
    words = [np.uint64((1234567 + golden * (i + 1)) % 2**64) for i in range(3)]
    assert tuple(int(mix(word)) for word in words) == SPLITMIX_REFERENCE


def test_episodes_streams_and_seeds_have_generators_of_their_own() -> None:
    states = set()
    for seed in (0, 1, 2**64 - 1):
        for stream in (1, 2):
            key = stream_key(seed, stream)
            for episode in range(50):
                state = np.empty(4, dtype=np.uint64)
                seed_generator(key, episode, state)
                states.add(tuple(state.tolist()))
    assert len(states) == 3 * 2 * 50


# --- alias tables ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 17, 100])
def test_alias_rows_draw_the_float_probabilities_exactly(size: int) -> None:
    random = np.random.default_rng(size)
    weight = random.random(size) ** 8
    weight[random.random(size) < 0.3] = 0.0
    weight[-1] = 1e-30
    probability = weight / weight.sum()
    one_choice = np.array([0, 1])
    table = build_alias_table(
        one_choice, np.array([0, size]), np.ones(1), probability, np.zeros(1, dtype=np.bool_)
    )
    drawn = exact_probabilities(int(table.row[0]), table.bucket, size)
    assert sum(drawn) == 1
    total = sum(map(Fraction, probability.tolist()))
    for given, got in zip(probability.tolist(), drawn, strict=True):
        assert (got == 0) == (given == 0)
        assert abs(got - Fraction(given) / total) <= Fraction(size + 3, 2**53)


def test_the_choice_and_the_successor_are_drawn_together() -> None:
    mdp = walk()
    policy = Policy.uniform(mdp.structure)
    skip = absorbing_states(mdp.structure)
    table = build_alias_table(
        mdp.choice_start, mdp.transition_start, policy.probability, mdp.probability, skip
    )
    for s in range(mdp.states):
        if skip[s]:
            assert table.row[s] == STOP
            continue
        drawn = exact_probabilities(int(table.row[s]), table.bucket, mdp.transitions)
        for t in range(mdp.transitions):
            choice = mdp.structure.transition_choice[t]
            here = mdp.structure.choice_state[choice] == s
            expected = mdp.probability[t] / 2 if here else 0.0
            assert abs(float(drawn[t]) - expected) < 1e-15


def test_every_bucket_bound_is_respected_by_the_draw() -> None:
    table = build_alias_table(
        np.array([0, 1]), np.array([0, 2]), np.ones(1), np.array([0.25, 0.75]), np.zeros(1, dtype=np.bool_)
    )
    numbers = [0, (1 << 62) - 1, 1 << 61, (1 << 61) - 1, 12345678901234567]
    grid = [i << 52 for i in range(1 << 10)]
    picked = [pick(int(table.row[0]), table.bucket, number) for number in grid]
    assert set(picked) == {0, 1}
    assert picked.count(0) == 256
    assert {pick(int(table.row[0]), table.bucket, number) for number in numbers} <= {0, 1}


# --- distribution ---------------------------------------------------------------------------


def chi_square(count: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of counts under expected counts, zero cells apart."""
    possible = expected > 0
    assert np.all(count[~possible] == 0)
    statistic = float(np.sum((count[possible] - expected[possible]) ** 2 / expected[possible]))
    return float(chi2.sf(statistic, possible.sum() - 1))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_successors_follow_the_probabilities(seed: int) -> None:
    mdp = walk()
    counts = Simulator(mdp, threads=1).episodes(20_000, seed)
    p_values = []
    for c in range(mdp.choices):
        first, last = mdp.transition_start[c], mdp.transition_start[c + 1]
        if counts.visits[c] and last - first > 1:
            count = counts.transition[first:last]
            p_values.append(chi_square(count, mdp.probability[first:last] * counts.visits[c]))
    assert len(p_values) == 12
    assert min(p_values) > 1e-4
    assert max(p_values) > 0.2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_choices_follow_the_policy(seed: int) -> None:
    mdp = walk()
    share = np.array([0.25 if mdp.structure.action_name(c) == "slow" else 0.75 for c in range(mdp.choices)])
    share[np.diff(mdp.choice_start)[mdp.structure.choice_state] == 1] = 1.0
    counts = Simulator(mdp, Policy(mdp, share), threads=1).episodes(20_000, seed)
    p_values = []
    for s in range(1, mdp.states - 1):
        first, last = mdp.choice_start[s], mdp.choice_start[s + 1]
        visits = counts.visits[first:last]
        p_values.append(chi_square(visits, share[first:last] * visits.sum()))
    assert min(p_values) > 1e-4


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_where_episodes_end_follows_the_exact_chain(seed: int) -> None:
    mdp = walk()
    policy = Policy.uniform(mdp.structure)
    step = np.zeros((mdp.states, mdp.states))
    for t in range(mdp.transitions):
        choice = mdp.structure.transition_choice[t]
        step[mdp.structure.choice_state[choice], mdp.successor[t]] += (
            policy.probability[choice] * mdp.probability[t]
        )
    at = np.zeros(mdp.states)
    at[mdp.initial] = 1.0
    at = at @ np.linalg.matrix_power(step, 5)
    episodes = 20_000
    ends = np.zeros(mdp.states)
    for block in Simulator(mdp, cap=5, threads=1).trajectories(episodes, seed):
        last = np.flatnonzero(np.r_[np.diff(block.episode) != 0, True])
        np.add.at(ends, mdp.successor[block.transition[last]], 1)
    assert ends.sum() == episodes
    assert chi_square(ends, at * episodes) > 1e-4


def test_the_generative_model_follows_the_probabilities() -> None:
    mdp = walk()
    counts = Simulator(mdp, threads=1).generative(5_000, seed=7)
    assert np.all(counts.visits == 5_000)
    assert counts.design.kind is SamplingKind.GENERATIVE_FIXED
    assert counts.design.steps == counts.steps == 5_000 * mdp.choices
    assert counts.batches is not None and len(counts.batches) == len(batch_ends(5_000))
    p_values = []
    for c in range(mdp.choices):
        first, last = mdp.transition_start[c], mdp.transition_start[c + 1]
        if last - first > 1:
            expected = mdp.probability[first:last] * 5_000
            p_values.append(chi_square(counts.transition[first:last], expected))
    assert min(p_values) > 1e-4


def test_outcomes_of_probability_zero_never_happen() -> None:
    mdp = walk()
    counts = Simulator(mdp, threads=1).episodes(20_000, 5)
    impossible = mdp.probability == 0
    assert impossible.any()
    assert np.all(counts.transition[impossible] == 0)


# --- reproducibility ------------------------------------------------------------------------


def test_the_number_of_threads_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulator_module, "SMALL_BATCH", 2)
    mdp = walk()
    one = Simulator(mdp, threads=1).episodes(3_000, 11)
    for threads in (2, 3):
        assert Simulator(mdp, threads=threads).episodes(3_000, 11) == one
    assert Simulator(mdp, threads=1).episodes(3_000, 12) != one
    single = Simulator(mdp, threads=1).generative(100, 11)
    assert Simulator(mdp, threads=2).generative(100, 11) == single


def test_more_episodes_begin_with_the_same_ones() -> None:
    mdp = walk()
    short = Simulator(mdp, threads=1).episodes(100, 4).batches
    long = Simulator(mdp, threads=1).episodes(1_000, 4).batches
    assert short is not None and long is not None
    for batch in range(len(short) - 1):
        for part, other in zip(short[batch], long[batch], strict=True):
            assert np.array_equal(part, other)


def test_a_run_may_go_on_where_it_stopped() -> None:
    simulator = Simulator(walk(), threads=1)
    whole = simulator.episodes(300, 8)
    pieces = simulator.episodes(120, 8) + simulator.episodes(180, 8, first=120)
    assert np.array_equal(pieces.transition, whole.transition)
    assert pieces.design == whole.design
    (later,) = simulator.trajectories(180, 8, first=120)
    assert (later.episode[0], later.episode[-1]) == (120, 299)


def test_recorded_trajectories_are_the_counted_ones() -> None:
    mdp = walk()
    simulator = Simulator(mdp, cap=40, threads=1)
    counts = simulator.episodes(500, 9)
    total = np.zeros(mdp.transitions, dtype=np.int64)
    episodes = []
    for block in simulator.trajectories(500, 9):
        np.add.at(total, block.transition, 1)
        episodes.append(block.episode)
        starts = np.flatnonzero(block.step == 0)
        sources = mdp.structure.choice_state[mdp.structure.transition_choice[block.transition]]
        assert np.all(sources[starts] == mdp.initial)
        inside = np.flatnonzero(block.step[1:] > 0)
        assert np.array_equal(mdp.successor[block.transition[inside]], sources[inside + 1])
        assert block.step.max() < 40
    assert np.array_equal(total, counts.transition)
    assert np.array_equal(np.unique(np.concatenate(episodes)), np.arange(500))


def test_blocks_of_recorded_trajectories_hold_whole_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = walk()
    whole = list(Simulator(mdp, cap=20).trajectories(300, 3))
    monkeypatch.setattr(simulator_module, "RECORD_ROWS", 64)
    pieces = list(Simulator(mdp, cap=20).trajectories(300, 3))
    assert len(pieces) > len(whole) == 1
    assert all(piece.step[0] == 0 for piece in pieces)
    for field in ("episode", "step", "transition"):
        joined = np.concatenate([getattr(piece, field) for piece in pieces])
        assert np.array_equal(joined, getattr(whole[0], field))


# --- when an episode ends -------------------------------------------------------------------


def test_episodes_stop_at_the_cap_in_stopping_and_in_absorbing_states() -> None:
    mdp = walk()
    assert absorbing_states(mdp.structure).tolist() == [True] + [False] * 6 + [True]
    stop = np.zeros(mdp.states, dtype=np.bool_)
    stop[6] = True
    counts = Simulator(mdp, stop=stop, threads=1).episodes(2_000, 1)
    visited = np.unique(mdp.structure.choice_state[counts.visits > 0])
    assert visited.tolist() == [1, 2, 3, 4, 5]
    capped = Simulator(mdp, cap=1, threads=1).episodes(2_000, 1)
    assert capped.steps == 2_000 == capped.design.steps
    assert np.unique(mdp.structure.choice_state[capped.visits > 0]).tolist() == [mdp.initial]


def test_an_initial_state_that_stops_gives_no_data() -> None:
    mdp = walk()
    stop = np.ones(mdp.states, dtype=np.bool_)
    simulator = Simulator(mdp, stop=stop, threads=1)
    counts = simulator.episodes(100, 1)
    assert counts.steps == 0
    assert counts.design.episodes == 100
    assert sum(len(block.transition) for block in simulator.trajectories(100, 1)) == 0


def objective(kind: ObjectiveKind, **fields: object) -> Objective:
    return Objective(kind, Direction.MAX, Direction.MIN, **fields)  # type: ignore[arg-type]


def test_what_decides_an_objective() -> None:
    target = np.array([False, False, True, False])
    allowed = np.array([True, False, True, True])
    until = objective(ObjectiveKind.UNTIL, target=target, allowed=allowed)
    assert find_decided_states(until, 4).tolist() == [False, True, True, False]
    assert deciding_steps(until) is None
    late = objective(ObjectiveKind.UNTIL, target=target, allowed=allowed, lower_steps=3, upper_steps=9)
    assert find_decided_states(late, 4).tolist() == [False, True, False, False]
    assert deciding_steps(late) == 9
    reward = RewardStructure(state=np.ones(4))
    reach = objective(ObjectiveKind.REACH_REWARD, target=target, reward=reward)
    assert find_decided_states(reach, 4).tolist() == [False, False, True, False]
    cumulative = objective(ObjectiveKind.CUMULATIVE, reward=reward, upper_steps=5)
    assert find_decided_states(cumulative, 4).tolist() == [False] * 4
    assert deciding_steps(cumulative) == 5
    assert deciding_steps(objective(ObjectiveKind.NEXT, target=target)) == 1
    total = objective(ObjectiveKind.TOTAL, reward=reward)
    assert deciding_steps(total) is None


def test_whether_an_episode_can_repeat_a_choice() -> None:
    structure = walk().structure
    stop = absorbing_states(structure)
    assert can_repeat_choice(structure, stop, cap=100)
    assert not can_repeat_choice(structure, stop, cap=1)
    line = Structure(np.arange(4), np.arange(4), np.array([1, 2, 2], dtype=np.int32))
    assert not can_repeat_choice(line, absorbing_states(line), cap=100)
    assert can_repeat_choice(line, np.zeros(3, dtype=np.bool_), cap=100)
    ring = Structure(np.arange(4), np.arange(4), np.array([1, 2, 0], dtype=np.int32))
    assert can_repeat_choice(ring, absorbing_states(ring), cap=100)
    opened = np.array([False, False, True])
    assert not can_repeat_choice(ring, opened, cap=100)


def test_the_design_says_how_it_was_sampled() -> None:
    mdp = walk()
    design = Simulator(mdp, threads=1, model_hash="abc").episodes(50, 1).design
    assert design.kind is SamplingKind.TRAJECTORIES
    assert design.episodes == 50
    assert design.repeats
    assert Simulator(mdp, threads=1, model_hash="abc").episodes(1, 1).model_hash == "abc"
    assert Simulator(mdp, threads=1).episodes(1, 1).model_hash == mdp.hash()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cap": 0}, "the cap on an episode's length is 0, but it must be at least 1"),
        ({"threads": 0}, "the number of threads is 0, but it must be at least 1"),
        ({"stop": np.zeros(3, dtype=np.bool_)}, "stopping states given for 3 of 8 states"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Simulator(walk(), **options)  # type: ignore[arg-type]
    assert caught.value.message == message


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="the seed is -1, but it must be between 0 and 2\\^64 − 1"):
        Simulator(walk()).episodes(1, -1)
    with pytest.raises(InputError, match="the number of episodes is -5, but it must not be negative"):
        Simulator(walk()).episodes(-5, 1)
    with pytest.raises(InputError, match="the policy is of another model, with 1 states and 1 choices"):
        one = Structure(np.arange(2), np.arange(2), np.zeros(1, dtype=np.int32))
        Simulator(walk(), Policy.uniform(one))
