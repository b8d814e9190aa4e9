"""Tables of counts of a log: exact however it is cut, bounded, and evidence of mean at most one."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tightrope.data import fit_tables
from tightrope.data.counts import LazyLog
from tightrope.data.fit_tables import (
    OTHERS,
    VISITS,
    CountTable,
    FitTables,
    TableCounter,
    VisitGrid,
    mixed_bits,
)
from tightrope.data.reading import Reading
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring import examination
from tightrope.monitoring.features import codes
from tightrope.monitoring.urns import weigh_changes, weigh_counts

ONE = np.ones(1, dtype=np.int64)


def counted(value: np.ndarray, transition: np.ndarray, most: int) -> TableCounter:
    counter = TableCounter(most)
    counter.add(value, transition, ONE)
    return counter


def as_rows(table: CountTable) -> list[tuple[int, int, int]]:
    return list(zip(table.value.tolist(), table.transition.tolist(), table.number.tolist(), strict=True))


def rows_of(value: np.ndarray, transition: np.ndarray) -> list[tuple[int, int, int]]:
    """What tables should count."""
    pairs = Counter(zip(value.tolist(), transition.tolist(), strict=True))
    return [(*pair, number) for pair, number in sorted(pairs.items())]


@pytest.mark.parametrize("most", [1 << 20, 700, 60])
def test_tables_do_not_depend_on_how_a_log_is_cut(most: int) -> None:
    rng = np.random.default_rng(3)
    value, transition = rng.integers(-1, 900, 3_000) ** 5, rng.integers(-1, 4, 3_000)
    whole = counted(value, transition, most)
    for cuts in ([100], [1_500, 1_501], [7, 900, 2_000, 2_999]):
        parts = [
            counted(v, t, most)
            for v, t in zip(np.split(value, cuts), np.split(transition, cuts), strict=True)
        ]
        for part in parts[1:]:
            parts[0].merge(part)
        assert as_rows(parts[0].table()) == as_rows(whole.table())
        assert parts[0].level == whole.level
    there = transition >= 0
    kept = np.where((value < 0) | (mixed_bits(value) >> (63 - whole.level) == 0), value, OTHERS)
    assert as_rows(whole.table()) == rows_of(kept[there], transition[there])
    assert len(whole.table().value) <= most
    assert (whole.level == 0) == (most > 3_000) and whole.table().number.sum() == there.sum()


def test_the_mean_is_at_most_one_where_outcomes_say_how_many_values_are_kept() -> None:
    """A table of 4 entries: whether a value is kept depends on how many others there are, and these on what
    came out. All paths of 8 tosses of a coin; the feature is a number that the past writes."""
    choice_of, width = np.zeros(2, dtype=np.int32), np.array([2])
    for p in (0.5, 0.85):
        total, levels = 0.0, set()
        for outcomes in itertools.product(range(2), repeat=8):
            value = [3 * sum(outcomes[:k]) + 1_000 * outcomes[k - 1] if k else -1 for k in range(8)]
            table = counted(np.array(value), np.array(outcomes), 4).table()
            levels.add(table.level)
            likely = math.prod(p if one else 1.0 - p for one in outcomes)
            total += likely * math.exp(weigh_counts(table, choice_of, width)[0])
        assert total <= 1.0 and len(levels) > 2


def coin() -> ParametricMDP:
    return tr.build_from_rows([(0, "a", {0: tr.free, 1: tr.free}), (1, "a", {0: 1}), (0, "b", {0: 1})])


def grid_of(model: ParametricMDP, is_later: bool = False) -> VisitGrid:
    return VisitGrid.of(model.structure, model.signatures, is_later)


def test_visits_are_counted_at_fixed_numbers_however_a_log_is_cut() -> None:
    model, rng = coin(), np.random.default_rng(5)
    transition = rng.integers(0, 4, 900)
    grid = grid_of(model)
    grid.add(transition)
    (counts,) = [one for one in grid.counts() if one.shape[1] > 1]
    outcome = transition[transition < 2] if model.structure.successor[0] == 0 else transition[transition >= 2]
    first = np.concatenate([[0], np.cumsum(outcome == 0)])[VISITS[: len(counts)]]
    assert (
        counts[:, 0].tolist() == first.tolist()
        and counts.sum(axis=1).tolist() == VISITS[: len(counts)].tolist()
    )
    parts = [grid_of(model, number > 0) for number in range(4)]
    for part, some in zip(parts, np.split(transition, [3, 500, 640]), strict=True):
        part.add(some)
    parts[2].merge(parts[3])
    for part in parts[1:3]:
        parts[0].merge(part)
    for one, other in zip(parts[0].counts(), grid.counts(), strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("p", [0.5, 0.1])
def test_evidence_for_a_change_is_rare_where_there_is_none_and_common_where_there_is(p: float) -> None:
    """At α = 0.001: 500 stacks of 3,000 visits, 100 with a change of 7 standard errors halfway."""
    rng, level = np.random.default_rng(6), math.log(1_000.0 / 0.12)
    at = VISITS[: int(np.searchsorted(VISITS, 3_000, side="right"))]
    sizes = np.diff(at)
    late = np.clip(at[1:] - 1_500, 0, sizes)
    apart = 0.0
    for _ in range(20):
        apart = 7.0 * math.sqrt((p + 0.5 * apart) * (1.0 - p - 0.5 * apart) * 4.0 / 3_000)
    found = []
    for logs, q in ((500, p), (100, p + apart)):
        number = 0
        for _ in range(logs):
            won = np.concatenate([[0], np.cumsum(rng.binomial(sizes - late, p) + rng.binomial(late, q))])
            change = weigh_changes([np.stack([at - won, won], axis=1)], level)
            number += change is not None and change.log_e >= level
        found.append(number)
    assert found[0] == 0 and found[1] >= 80


def test_unequal_blocks_have_a_mean_of_at_most_one() -> None:
    """All outcomes of n before and m after; tilts in inverse proportion to their numbers."""
    for n, m, mean, p in itertools.product((1, 3), (1, 2, 5), (0.2, 0.6), (0.05, 0.4, 0.9)):
        apart = 0.9 * min(mean, 1.0 - mean) * min(n, m)
        before = p * (1.0 - apart / n / mean) + (1.0 - p) * (1.0 + apart / n / (1.0 - mean))
        after = p * (1.0 + apart / m / mean) + (1.0 - p) * (1.0 - apart / m / (1.0 - mean))
        assert before**n * after**m <= 1.0 + 1e-12


def test_features_of_events() -> None:
    model = coin()
    structure = model.structure
    transition = np.array([0, 0, 1, 2, 0, 1])
    events = SimpleNamespace(
        transition=transition,
        before=np.array([-1, 0, 0, 1, -1, 0]),
        episode=np.array([7, 7, 7, 7, 9, 9]),
        since_start=np.array([0, 1, 2, 3, 0, 1]),
        since_entry=np.array([0, 1, 2, 0, 0, 1]),
        place=np.arange(6),
        time=np.zeros(6),
        columns={"site": np.array([5, 5, 5, -1, 6, 6])},
    )
    tables = FitTables(structure, grid_of(model))
    tables.update(events)
    assert tables.table("prev") is None
    tables.finish()
    start = tables.table("since-start")
    assert start is not None and sorted(set(start.value.tolist())) == [0, 1, 2]
    for feature, value in (("unit:episode", events.episode), ("column:site", events.columns["site"])):
        table = tables.table(feature)
        assert table is not None and as_rows(table) == rows_of(value, transition)
    before = np.where(
        events.before < 0, -1, structure.choice_state[structure.transition_choice[events.before]]
    )
    table = tables.table("prev")
    assert table is not None and as_rows(table) == rows_of(before, transition)
    assert tables.table("seen:0") is None and tables.rows == 6
    assert tables.grid is not None and isinstance(tables.grid, VisitGrid)


def coins_file(place: Path, episodes: int, linked: bool, sort_by: str = "time") -> tuple[ParametricMDP, Path]:
    """Two coins one after the other, in row groups of 512; the second may depend on the first."""
    parameters = tr.Parameters.box(p=(0.01, 0.99), q=(0.01, 0.99))
    p, q = parameters.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {3: 1}), (2, "", {3: 1}), (3, "", {4: q, 5: 1 - q})]
    rows += [(4, "", {4: 1}), (5, "", {5: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"won": [4]})
    rng = np.random.default_rng(4)
    first = rng.integers(0, 2, episodes)
    second = rng.random(episodes) < (np.where(first == 0, 0.45, 0.05) if linked else 0.25)
    states = np.stack([0 * first, 1 + first, 3 + 0 * first, 5 - second], axis=1)
    table = pa.table(
        {
            "episode": np.repeat(np.arange(episodes), 3),
            "step": np.tile(np.arange(3), episodes),
            "time": np.arange(3 * episodes),
            "s": states[:, :3].reshape(-1),
            "next_s": states[:, 1:].reshape(-1),
        }
    )
    path = place / f"{sort_by}.parquet"
    pq.write_table(table.sort_by(sort_by), path, row_group_size=512)
    return model, path


def read(path: Path, model: ParametricMDP, threads: int | None = None) -> Reading:
    return tr.read_data(path, model, threads=threads)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of more than 1,000 rows are long, and parts of 1,024 rows are read at the same time."""
    monkeypatch.setattr(examination, "READ_AGAIN", 1_000)
    monkeypatch.setattr(examination, "EXAMINED", 600)
    monkeypatch.setattr(fit_tables, "WAITING", 700)
    monkeypatch.setattr("tightrope.data.reading.LONG", 1_000)
    monkeypatch.setattr("tightrope.data.read_plan.PART_ROWS", 1_024)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("threads", [1, 3])
def test_tables_of_a_file_are_those_of_its_rows(tmp_path: Path, threads: int) -> None:
    model, path = coins_file(tmp_path, 1_500, linked=True)
    counts = read(path, model, threads).counts
    (tables,), log = counts.observed, counts.log()
    assert tables.rows == 4_500
    for feature in ("prev", "since-start", "since-entry"):
        table = tables.table(feature)
        rows = rows_of(codes(feature, model, log), log.transition)
        assert table is not None and as_rows(table) == rows, feature
    unit = tables.table("unit:episode")
    assert unit is not None and len(np.unique(unit.value)) == 1_500
    grid = grid_of(model)
    grid.add(log.transition.astype(np.int64))
    assert tables.grid is not None and tables.grid.is_ordered
    for one, other in zip(tables.grid.counts(), grid.counts(), strict=True):
        assert one.tolist() == other.tolist()


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("linked", [True, False])
def test_every_row_of_a_long_log_is_tested_though_few_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    model, path = coins_file(tmp_path, 1_500, linked)

    def refuse(self: LazyLog) -> None:
        raise AssertionError("all rows are read again")

    counts = read(path, model).counts
    monkeypatch.setattr(LazyLog, "__call__", refuse)
    fit = examination.weigh_fit(model, counts)
    assert fit.rows_tested == 4_500 and "4,500 events, all rows tested" in fit.text
    assert fit.alarm == linked
    if linked:
        assert "the state before" in fit.suspects[0].text


@pytest.mark.usefixtures("many")
def test_rows_that_are_not_in_the_order_of_time_are_tested_by_counts_alone(tmp_path: Path) -> None:
    """A file that is sorted by outcomes: which rows come first depends on these."""
    model, path = coins_file(tmp_path, 1_500, linked=False, sort_by="next_s")
    counts = read(path, model).counts
    assert counts.design.order.holds
    (tables,) = counts.observed
    assert tables.grid is not None and not tables.grid.is_ordered
    assert len(examination.earliest_rows(counts.log, tables)) == 0
    fit = examination.weigh_fit(model, counts)
    assert not fit.alarm and fit.rows_tested == 4_500


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("threads", "mixed"), [(1, False), (2, False), (1, True)])
def test_rows_are_tested_while_they_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, mixed: bool
) -> None:
    """A log of more rows than are kept: the second toss is the first one's, in every part and order."""
    monkeypatch.setattr(examination, "EXAMINED", 200)
    parameters = tr.Parameters.box(p=(0.1, 0.9))
    (p,) = parameters.symbols()
    rows = [(0, "a", {1: p, 2: 1 - p}), (1, "b", {3: 1}), (2, "b", {3: 1}), (3, "c", {4: p, 5: 1 - p})]
    rows += [(state, "", {state: 1}) for state in (4, 5)]
    model = tr.build_from_rows(rows, parameters, labels={"won": [4]})
    first = np.random.default_rng(5).integers(0, 2, 1_000)
    for second, differs in ((first, True), (np.random.default_rng(6).integers(0, 2, 1_000), False)):
        state = np.stack([np.zeros(1_000, int), 1 + first, np.full(1_000, 3)], axis=1).ravel()
        to = np.stack([1 + first, np.full(1_000, 3), 4 + second], axis=1).ravel()
        action = np.tile(["a", "b", "c"], 1_000)
        log = {"episode": np.repeat(np.arange(1_000), 3), "time": np.arange(3_000.0), "state": state}
        log |= {"action": action, "next_state": to}
        order = np.argsort(np.tile([0, 1, 2], 1_000), kind="stable") if mixed else np.arange(3_000)
        table = pa.table({name: values if name == "time" else values[order] for name, values in log.items()})
        pq.write_table(table, tmp_path / "log.parquet", row_group_size=700)
        fit = examination.weigh_fit(model, read(tmp_path / "log.parquet", model, threads).counts)
        assert fit.rows_tested == fit.events == 3_000
        assert fit.alarm == differs


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("threads", [1, 3])
def test_columns_beside_are_tested_while_rows_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """The first coin of an episode is written beside its rows, and beside each row what came before it."""
    model, path = coins_file(tmp_path, 1_500, linked=True)
    table = pq.read_table(path)
    after = np.asarray(table["next_s"])
    hand = np.where(after[::3] == after[0], "left", "right").repeat(3)
    table = table.append_column("hand", pa.array(hand)).append_column("late", pa.array(after - 0.5))
    pq.write_table(table, path, row_group_size=512)
    counts = read(path, model, threads).counts
    (tables,), log = counts.observed, counts.log()
    assert tables.changes == {"late"}
    for name in ("hand", "late"):
        held, rows = tables.table(f"column:{name}"), codes(f"column:{name}", model, log)
        numbers = sorted(CountTable.of(rows, log.transition).number.tolist())
        assert held is not None and sorted(held.number.tolist()) == numbers
    counts = read(path, model, threads).counts

    def refuse(self: LazyLog) -> None:
        raise AssertionError("all rows are read again")

    monkeypatch.setattr(LazyLog, "__call__", refuse)
    fit = examination.weigh_fit(model, counts)
    assert fit.alarm and fit.rows_tested == 4_500
    assert any("hand" in one.text for one in fit.suspects)
