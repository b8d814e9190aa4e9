"""Counts, their batches, the sampling design, and the lookup of states by their variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.data.counts import BatchCounter, Batches, Counts, batch_ends, next_end
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.model_index import StateIndex
from tightrope.errors import InputError
from tightrope.model.structure import Structure

START = np.array([0, 2, 5, 6], dtype=np.int64)
FIXED = SamplingDesign(SamplingKind.GENERATIVE_FIXED, None, 10)
WALKED = SamplingDesign(SamplingKind.TRAJECTORIES, 4, 20, repeats=False)


def counts(values: list[int], design: SamplingDesign = WALKED, model: str = "m") -> Counts:
    return Counts(np.array(values, dtype=np.int64), START, design, model)


def test_visits_are_sums_over_a_choice() -> None:
    data = counts([1, 2, 3, 4, 5, 6])
    assert data.visits.tolist() == [3, 12, 6]
    assert data.steps == 21


def test_counts_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        counts([1, 2, 3, 4, 5, 6]).transition[0] = 7


def test_from_table_adds_rows_and_orders_batches() -> None:
    data = Counts.from_table([3, 0, 3, 5, 0], [1, 2, 4, 0, 8], START, FIXED, "m", batch=[7, 2, 7, 7, 9])
    assert data.transition.tolist() == [10, 0, 0, 5, 0, 0]
    assert data.batches is not None
    assert [(t.tolist(), c.tolist()) for t, c in data.batches] == [([0], [2]), ([3], [5]), ([0], [8])]
    assert data.through(0).tolist() == [0] * 6
    assert data.through(2).tolist() == [2, 0, 0, 5, 0, 0]
    assert np.array_equal(data.through(3), data.transition)


def test_from_table_with_a_known_number_of_batches_keeps_empty_ones() -> None:
    data = Counts.from_table([1], [3], START, FIXED, "m", batch=[1], batches=3)
    assert data.batches is not None
    assert [c.tolist() for _, c in data.batches] == [[], [3], []]
    with pytest.raises(InputError, match=r"batches 4..4 are not within 0..2"):
        Counts.from_table([1], [3], START, FIXED, "m", batch=[4], batches=3)


def test_from_table_without_batches_or_rows() -> None:
    assert Counts.from_table([1, 1], [3, 4], START, FIXED, "m").transition.tolist() == [0, 7, 0, 0, 0, 0]
    empty = Counts.from_table([], [], START, FIXED, "m", batch=[])
    assert empty.steps == 0
    assert empty.batches is not None and len(empty.batches) == 0


def test_adding_counts_joins_batches_in_time() -> None:
    first = Counts.from_table([0, 1], [2, 1], START, WALKED, "m", batch=[0, 1])
    later = counts([0, 0, 5, 0, 0, 1])
    both = first + later
    assert both.transition.tolist() == [2, 1, 5, 0, 0, 1]
    assert both.batches is not None
    assert [t.tolist() for t, _ in both.batches] == [[0], [1], [2, 5]]
    assert both.design == SamplingDesign(SamplingKind.TRAJECTORIES, 8, 40, repeats=False)
    plain = later + later
    assert plain.batches is None
    assert plain.transition.tolist() == [0, 0, 10, 0, 0, 2]


def test_counts_of_different_models_do_not_add() -> None:
    with pytest.raises(InputError, match="counts of two different models cannot be added"):
        counts([0] * 6) + counts([0] * 6, model="other")


def test_equality_looks_at_everything() -> None:
    base = Counts.from_table([0, 1], [2, 1], START, WALKED, "m", batch=[0, 1])
    assert base == Counts.from_table([1, 0], [1, 2], START, WALKED, "m", batch=[1, 0])
    assert base != Counts.from_table([0, 1], [2, 1], START, WALKED, "m", batch=[1, 0])
    assert base != Counts.from_table([0, 1], [2, 1], START, WALKED, "m")
    assert base != Counts.from_table([0, 1], [2, 1], START, FIXED, "m", batch=[0, 1])
    assert base != Counts.from_table([0, 1], [2, 1], START, WALKED, "n", batch=[0, 1])
    assert base != "counts"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1, 2], dtype=np.int64), "2 counts, but transition_start ends at"),
        (np.array([0, 0, 0, -1, 0, 0], dtype=np.int64), "counts must not be negative"),
        (np.zeros(6), "is not one int64 per transition"),
    ],
)
def test_wrong_counts_are_refused(values: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Counts(values, START, WALKED, "m")


def test_batches_must_sum_to_the_counts() -> None:
    batches = Batches.from_parts([(np.array([1]), np.array([2]))])
    with pytest.raises(ValueError, match="the batches do not sum to the counts"):
        Counts(np.zeros(6, dtype=np.int64), START, WALKED, "m", batches)


@pytest.mark.parametrize(
    ("start", "transition", "count", "message"),
    [
        ([1, 2], [0, 1], [1, 1], "begin at 0"),
        ([0, 1], [0, 1], [1, 1], "disagree in length"),
        ([0, 2], [0, 1], [1, 0], "lists only transitions that it has seen"),
        ([0, 2], [1, 1], [1, 1], "rise strictly"),
        ([0, 1, 3], [5, 4, 4], [1, 1, 1], "rise strictly"),
    ],
)
def test_wrong_batches_are_refused(
    start: list[int], transition: list[int], count: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Batches(np.array(start), np.array(transition), np.array(count))


def test_transitions_may_fall_from_one_batch_to_the_next() -> None:
    batches = Batches(np.array([0, 0, 2, 2, 3]), np.array([4, 5, 1]), np.array([1, 1, 1]))
    assert [t.tolist() for t, _ in batches] == [[], [4, 5], [], [1]]
    with pytest.raises(IndexError, match="batch 4 of 4"):
        batches[4]


# --- boundaries of batches ------------------------------------------------------------------


@given(st.integers(0, 10**7))
def test_batch_ends_grow_geometrically_up_to_the_total(total: int) -> None:
    ends = batch_ends(total)
    assert len(ends) <= 90
    if total == 0:
        assert len(ends) == 0
        return
    assert ends[0] == 1
    assert ends[-1] == total
    assert np.all(np.diff(ends) > 0)
    assert np.all(ends[1:] <= np.maximum(ends[:-1] + 1, ends[:-1] * 1.25))


def test_batch_ends_do_not_depend_on_where_the_data_end() -> None:
    long = batch_ends(10**6)
    for total in (1, 7, 100, 12345):
        short = batch_ends(total)
        assert np.array_equal(short[:-1], long[: len(short) - 1])


@given(st.lists(st.integers(0, 3), max_size=200), st.integers(1, 50))
def test_the_counter_cuts_at_the_same_places_whatever_the_chunks(jumps: list[int], chunk: int) -> None:
    position = np.cumsum(np.array(jumps, dtype=np.int64))
    transition = (position * 7 + np.arange(len(position))) % 6
    accumulator = BatchCounter()
    for first in range(0, len(position), chunk):
        accumulator.add_at(transition[first : first + chunk], position[first : first + chunk])
    batches = accumulator.finish()
    end = 0
    for seen, count in batches:
        begin, end = end, next_end(end)
        inside = transition[(position >= begin) & (position < end)]
        assert (
            np.bincount(inside, minlength=6).tolist()
            == np.bincount(seen, weights=count, minlength=6).tolist()
        )
    assert batches.count.sum() == len(position)


def test_the_counter_adds_empty_batches_where_their_number_is_known() -> None:
    accumulator = BatchCounter()
    accumulator.add_at(np.array([1]), np.array([0]))
    assert len(accumulator.finish(4)) == 4


# --- design ---------------------------------------------------------------------------------


def test_which_designs_fix_the_number_of_visits() -> None:
    assert FIXED.fixed_visits(tied=True)
    assert WALKED.fixed_visits(tied=False)
    assert not WALKED.fixed_visits(tied=True)
    assert not any(replace(one, anytime=True).fixed_visits(tied=False) for one in (FIXED, WALKED))
    assert not SamplingDesign(SamplingKind.TRAJECTORIES, 4, 20).fixed_visits(tied=False)
    assert not SamplingDesign(SamplingKind.ADAPTIVE, 4, 20, repeats=False).fixed_visits(tied=False)


def test_merging_designs_keeps_the_weaker_assumption() -> None:
    adaptive = SamplingDesign(SamplingKind.ADAPTIVE, 1, 2, repeats=True)
    assert WALKED.merged(adaptive) == SamplingDesign(SamplingKind.ADAPTIVE, 5, 22, repeats=True)
    assert FIXED.merged(WALKED).kind is SamplingKind.TRAJECTORIES
    assert FIXED.merged(WALKED).episodes is None


def test_a_design_survives_json() -> None:
    for design in (FIXED, WALKED):
        assert SamplingDesign.from_json(design.to_json()) == design
    with pytest.raises(InputError, match="the sampling design in the metadata is not one of ours"):
        SamplingDesign.from_json({"kind": "guessed", "episodes": 1, "steps": 1, "repeats": True})
    with pytest.raises(ValueError, match="must not be negative"):
        SamplingDesign(SamplingKind.ADAPTIVE, -1, 0)


# --- states by variables --------------------------------------------------------------------


def chain_with(valuations: dict[str, np.ndarray]) -> Structure:
    states = len(next(iter(valuations.values())))
    return Structure(
        np.arange(states + 1), np.arange(states + 1), np.arange(states, dtype=np.int32), valuations=valuations
    )


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.sampled_from([2, 30, 2**31 - 1]),
    st.integers(1, 200),
)
def test_states_are_found_by_their_variables(seed: int, variables: int, width: int, states: int) -> None:
    random = np.random.default_rng(seed)
    table = np.unique(random.integers(-width, width, size=(states, variables), dtype=np.int32), axis=0)
    table = random.permutation(table)
    names = [f"v{i}" for i in range(variables)]
    index = StateIndex(chain_with({name: table[:, i] for i, name in enumerate(names)}))
    known = {tuple(row): i for i, row in enumerate(table.tolist())}
    probe = np.concatenate(
        [table.astype(np.int64), random.integers(-width - 2, width + 2, size=(100, variables))]
    )
    found = index.states({name: probe[:, i] for i, name in enumerate(names)})
    assert found.tolist() == [known.get(tuple(row), -1) for row in probe.tolist()]


def test_values_far_outside_are_unknown() -> None:
    index = StateIndex(chain_with({"x": np.arange(5, dtype=np.int32), "up": np.array([True] * 5)}))
    far = np.array([2**62, -(2**62), 3, 3])
    assert index.states({"x": far, "up": np.array([1, 1, 1, 0])}).tolist() == [-1, -1, 3, -1]


def test_states_that_share_their_variables_are_refused() -> None:
    with pytest.raises(InputError, match=r"states 0 and 2 are both \(x=4\)"):
        StateIndex(chain_with({"x": np.array([4, 5, 4], dtype=np.int32)}))
