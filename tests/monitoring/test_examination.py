"""What rows of a log depend on: e-values against their exact means, planted departures, and what is named."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.fit_tables import CountTable, TableCounter, VisitGrid
from tightrope.data.free_columns import LogColumn
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring import urns
from tightrope.monitoring.examination import examine, replay, weigh_fit
from tightrope.monitoring.features import codes, list_features
from tightrope.monitoring.urns import (
    FeatureCells,
    Visits,
    before_last_exits,
    first_visits,
    looks,
    weigh,
    weigh_changes,
    weigh_counts,
    weigh_units,
)
from tightrope.verdict import AssumptionStatus


def chain(states: int, absorbing: bool = False) -> ParametricMDP:
    """Every state leads to every state; with `absorbing` nothing leaves the last one."""
    most = 1.0 / states
    open_states = states - absorbing
    names = [f"p{i}_{j}" for i in range(open_states) for j in range(states - 1)]
    parameters = tr.Parameters.box(**dict.fromkeys(names, (0.0, most)))
    symbol = dict(zip(parameters.names, parameters.symbols(), strict=True))
    rows = []
    for i in range(open_states):
        row = {j: symbol[f"p{i}_{j}"] for j in range(states - 1)}
        rows.append((i, "", {**row, states - 1: 1 - sum(row.values())}))
    if absorbing:
        rows.append((states - 1, "", {states - 1: 1}))
    return tr.build_from_rows(rows, parameters)


def log_of(model: ParametricMDP, paths: list[np.ndarray]) -> EpisodeLog:
    start = model.structure.transition_start
    transition = np.concatenate([start[path[:-1]] + path[1:] for path in paths])
    episode = np.repeat(np.arange(len(paths)), [len(path) - 1 for path in paths])
    return EpisodeLog.of_episodes(transition, episode, len(paths), model.structure, model.hash())


def walk(chances: np.ndarray, steps: int, rng: np.random.Generator) -> np.ndarray:
    """A path of second order: chances[before, state] is a distribution."""
    path = np.zeros(steps + 1, dtype=np.int64)
    limits = chances.cumsum(axis=2)
    for step, u in enumerate(rng.random(steps)):
        before = path[step - 1] if step else 0
        path[step + 1] = min(int(np.searchsorted(limits[before, path[step]], u)), len(chances) - 1)
    return path


def second_order(states: int, much: float, rng: np.random.Generator) -> np.ndarray:
    base = rng.dirichlet(np.ones(states), size=states)
    return (1.0 - much) * base + much * rng.dirichlet(np.ones(states), size=(states, states))


def as_visits(path: tuple[int, ...], states: int) -> tuple[Visits, np.ndarray]:
    whole = np.array(path, dtype=np.int64)
    before = np.concatenate([[-1], whole[:-2]]).astype(np.int32)
    return Visits.of(whole[:-1], whole[1:], np.full(states, states)), before


def test_mean_over_all_paths_of_a_chain_is_at_most_one() -> None:
    chances = np.array([[0.5, 0.5], [0.2, 0.8]])
    total = others = 0.0
    for rest in itertools.product(range(2), repeat=9):
        path = (0, *rest)
        likely = math.prod(chances[a, b] for a, b in itertools.pairwise(path))
        visits, before = as_visits(path, 2)
        used = before_last_exits(visits, len(rest), path[-1])
        cells = FeatureCells.of(visits, before)
        total += likely * math.exp(weigh(visits, cells, used, False))
        sort = np.tile([True, False], len(visits.width))
        unit = (np.arange(9) // 3).astype(np.int32)[visits.row]
        others += likely * math.exp(weigh_units(visits, unit, 3, used, [sort], False))
    assert 0.99 < total <= 1.0 + 1e-9
    assert 0.99 < others <= 1.0 + 1e-9


def test_mean_over_orders_of_an_urn_is_one_whatever_the_feature_does() -> None:
    values = []
    for order in set(itertools.permutations([0, 0, 0, 0, 1, 1, 1])):
        outcome = np.array(order)
        feature = np.concatenate([[0], np.cumsum(outcome)[:-1] % 2]).astype(np.int32)
        visits = Visits.of(np.zeros(7, dtype=np.int64), outcome, np.array([2]))
        values.append(weigh(visits, FeatureCells.of(visits, feature), np.array([7]), False))
    assert np.mean(np.exp(values)) == pytest.approx(1.0, abs=1e-7)


def test_mean_by_counts_is_at_most_one_whatever_the_feature_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two choices with two outcomes; which is next, and what the feature is, depends on the past."""
    monkeypatch.setattr(urns, "LEAST_VISITS", 4)
    monkeypatch.setattr(urns, "LEAST_SEEN", 1)
    choice_of, width = np.array([0, 0, 1, 1], dtype=np.int32), np.array([2, 2])
    for p, q, units in ((0.5, 0.5, False), (0.8, 0.1, False), (0.5, 0.3, True)):
        total = 0.0
        for outcomes in itertools.product(range(2), repeat=9):
            likely, won = 1.0, 0
            value, transition = [], []
            for time, outcome in enumerate(outcomes):
                choice = won % 2
                value.append(won // 2 if time > 4 else -1)
                transition.append(2 * choice + outcome)
                likely *= (p, q)[choice] if outcome == 0 else 1.0 - (p, q)[choice]
                won += outcome == 0
            table = CountTable.of(np.array(value), np.array(transition))
            total += likely * math.exp(weigh_counts(table, choice_of, width, units)[0])
        assert total <= 1.0


def test_tables_of_parts_add_up() -> None:
    rng = np.random.default_rng(5)
    value, transition = rng.integers(-1, 500, 900), rng.integers(0, 7, 900)
    whole = CountTable.of(value, transition)
    first, later = TableCounter(), TableCounter()
    first.add(value[:100], transition[:100])
    later.add(value[100:], transition[100:])
    first.merge(later)
    both = first.table()
    for name in ("value", "transition", "number"):
        assert np.array_equal(getattr(both, name), getattr(whole, name)), name


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_changes_that_are_none_are_rarely_trusted(share: float) -> None:
    """At no moment of 256 visits does more than a twentieth of 1,000 stacks speak for a change at 20."""
    rng = np.random.default_rng(9)
    above, level = 0, math.log(20.0)
    for outcome in (rng.random((1_000, 256)) < share).astype(np.int64):
        grid = VisitGrid(np.arange(2, dtype=np.int32), np.array([0, 2]))
        grid.add(outcome)
        change = weigh_changes(grid.counts(), level)
        above += change is not None and change.log_e >= level
    assert above <= 50


def test_values_of_pairs_have_a_mean_of_at_most_one() -> None:
    """Every mean that is guessed, every difference that is bet on, every true probability."""
    for mean, apart, p in itertools.product((0.02, 0.3, 0.5, 0.9), (0.01, 0.5, 0.9), (0.0, 0.05, 0.5, 0.97)):
        d = apart * min(mean, 1.0 - mean)
        before = p * (1.0 - d / mean) + (1.0 - p) * (1.0 + d / (1.0 - mean))
        after = p * (1.0 + d / mean) + (1.0 - p) * (1.0 - d / (1.0 - mean))
        assert before * after <= 1.0 + 1e-12


def test_a_change_halfway_is_found_and_dated() -> None:
    """One of two coins changes from 0.5 to 0.33 after 1,000 of 2,000 tosses: z is about 7.6."""
    rng = np.random.default_rng(10)
    model, _ = two_coins(10, 10, 1)
    first = (rng.random(2_000) >= np.where(np.arange(2_000) < 1_000, 0.5, 0.33)).astype(np.int64)
    second = (rng.random(2_000) >= 0.4).astype(np.int64)
    transition = np.stack([first, 2 + first, 4 + second], axis=1).reshape(-1)
    log = EpisodeLog.of_episodes(
        transition, np.repeat(np.arange(2_000), 3), 2_000, model.structure, model.hash()
    )
    result = examine(model, log, alpha=0.001)
    assert result.alarm and result.first_alarm is not None and 3_000 < result.first_alarm < 6_000
    worst = result.findings[0]
    assert worst.kind == "drift" and worst.contexts == (0,)
    assert abs(worst.cells[0].observed - worst.cells[0].pooled) == pytest.approx(0.17, abs=0.06)
    assert worst.effect is not None and "since row" in worst.text
    assert not examine(model, log, alpha=0.001, ordered=False).alarm, "the order of a file is not time"
    settled = examine(model, log.first(3_000), alpha=0.001)
    assert not settled.alarm and settled.log_e_change < math.log(1_000.0)


COINS = tr.Parameters.box(p=(0.01, 0.99), q=(0.01, 0.99))


def two_coins(episodes: int, since: int, seed: int) -> tuple[ParametricMDP, EpisodeLog]:
    """Two coins one after the other; from an episode on the second one depends on the first."""
    p, q = COINS.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {3: 1}), (2, "", {3: 1}), (3, "", {4: q, 5: 1 - q})]
    model = tr.build_from_rows([*rows, (4, "", {4: 1}), (5, "", {5: 1})], COINS, labels={"won": [4]})
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, episodes)
    linked = np.arange(episodes) >= since
    second = rng.random(episodes) < np.where(linked, np.where(first == 0, 0.45, 0.05), 0.25)
    transition = np.stack([first, 2 + first, 5 - second], axis=1).reshape(-1)
    episode = np.repeat(np.arange(episodes), 3)
    return model, EpisodeLog.of_episodes(transition, episode, episodes, model.structure, model.hash())


@pytest.mark.parametrize("since", [7_000, 200_000])
def test_rows_are_tested_whatever_their_number(since: int) -> None:
    """600,000 rows; the first 20,000 fit, and in the second case all of them."""
    model, log = two_coins(200_000, since, 6)
    counts = log.counts(model, SamplingDesign(SamplingKind.ADAPTIVE))
    fit = weigh_fit(model, counts)
    assert fit.rows_tested == fit.events == 600_000 and "600,000 events, all rows tested" in fit.text
    assert fit.alarm == (since < 200_000)
    if fit.alarm:
        assert fit.first_alarm == 600_000 and fit.log_e_value > 1_000.0
        assert fit.suspects[0].kind == "memory"
        (before,) = [one for one in fit.suspects if "depends on the state before" in one.text]
        assert abs(before.outcomes[0].observed - before.outcomes[0].expected) == pytest.approx(0.2, abs=0.02)
    else:
        assert fit.log_e_value < 0.0


def test_units_that_differ_are_found_by_counts() -> None:
    """40,000 units with ten rows each, and each with a probability of its own."""
    rng = np.random.default_rng(7)
    for spread, differs in ((8.0, True), (1e6, False)):
        share = rng.beta(0.3 * spread, 0.7 * spread, 40_000)
        won = rng.binomial(10, share)
        unit = np.repeat(np.arange(40_000), 10)
        outcome = (np.tile(np.arange(10), 40_000) >= np.repeat(won, 10)).astype(np.int64)
        table = CountTable.of(unit, outcome)
        log_e, gain = weigh_counts(table, np.zeros(2, dtype=np.int32), np.array([2]), units=True)
        assert (log_e > 100.0) == differs and (gain[0] > 100.0) == differs


def test_rows_that_are_too_many_are_an_assumption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightrope.monitoring.examination.MOST_READ", 500)
    model, log = two_coins(200, 200, 8)
    result = tr.learn(
        tr.Problem(model, 'P=? [ F "won" ]'), log.counts(model, SamplingDesign(SamplingKind.ADAPTIVE))
    )
    assert result.fit is not None and result.fit.rows_tested == 0
    assert "600 events, 0 rows tested" in result.fit.text
    (untested,) = [one for one in result.assumptions if one.name == "untested rows"]
    assert untested.kept is AssumptionStatus.STATED and "0 of 600 rows were tested" in untested.why


def test_only_numbers_of_visits_that_were_fixed_are_used() -> None:
    assert looks(24, 40) == [24, 30, 37]
    visits = Visits.of(np.repeat([0, 1, 2], [40, 23, 24]), np.zeros(87, dtype=np.int64), np.full(3, 2))
    assert first_visits(visits).tolist() == [37, 0, 24]


def test_values_of_features() -> None:
    model = chain(3)
    log = log_of(model, [np.array([0, 1, 1, 0, 2, 0]), np.array([0, 0, 2])])
    state = log.state(model.structure).tolist()
    assert state == [0, 1, 1, 0, 2, 0, 0]
    expected = {
        "prev": [-1, 0, 1, 1, 0, -1, 0],
        "revisit": [0, 0, 0, 1, 0, 0, 0],
        "since-start": [0, 1, 1, 2, 2, 0, 1],
        "since-entry": [0, 0, 1, 0, 0, 0, 1],
        "seen:1": [0, 0, 1, 1, 1, 0, 0],
        "unit:episode": [0, 0, 0, 0, 0, 1, 1],
        "last": [-1, -1, 1, 1, -1, 2, 0],
        "recent": [-1] * 7,
    }
    for name, values in expected.items():
        assert codes(name, model, log).tolist() == values, name
    two = codes("prev2", model, log)
    assert two[0] == -1 and len(set(two[1:5].tolist())) == 4 and two[6] == two[1]
    with pytest.raises(InputError, match="no feature"):
        codes("seen:9", model, log)
    assert sum(one.weight for one in list_features(model, log) if one.kind == "memory") <= 1.0


def tossed(sides: Sequence[int]) -> tuple[ParametricMDP, EpisodeLog]:
    """Episodes of one toss each."""
    parameters = tr.Parameters.box(p=(0.0, 1.0))
    (p,) = parameters.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters, labels={"won": [1]})
    steps = [np.array([1 - one]) for one in sides]
    return model, EpisodeLog.of_parts(steps, model.structure, model.hash())


def sides_of(kind: str, seed: int, size: int) -> list[int]:
    """Tosses that depend on the last one, on a hidden state that changes now and then, or on nothing."""
    rng, last, hidden, result = np.random.default_rng(seed), 0, 0, []
    for _ in range(size):
        hidden = hidden ^ int(rng.random() < 0.02)
        better = {"last": last, "hidden": hidden}.get(kind, 0.5)
        last = int(rng.random() < 0.35 + 0.3 * better)
        result.append(last)
    return result


def test_the_count_of_recent_outcomes_is_binned() -> None:
    model, log = tossed([1] * 15 + [0] * 16 + [1])
    code = codes("recent", model, log)
    assert code.tolist() == [-1] * 16 + [1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4]


@pytest.mark.parametrize("kind", ["last", "hidden"])
def test_episodes_that_depend_on_those_before_are_refuted_where_their_order_is_known(kind: str) -> None:
    for seed in range(3):
        model, log = tossed(sides_of(kind, seed, 4000))
        seen = examine(model, log, alpha=0.001)
        assert seen.alarm and seen.findings[0].kind == "serial"
        assert not seen.refutes_in_any_order(model)
        assert not examine(model, log, alpha=0.001, ordered=False).alarm
    assert ("the last time" if kind == "last" else "of the last 16 differ") in " ".join(
        one.value for finding in seen.findings if finding.kind == "serial" for one in finding.cells
    )


def test_independent_episodes_and_written_ones_are_not_refuted_by_their_order() -> None:
    logs = [sides_of("", seed, 300) for seed in range(40)]
    logs += [[int(i % 10 < 8) for i in range(400)], [1, 1, 0, 1, 0] * 60]
    assert sum(examine(*tossed(sides), alpha=0.05).alarm for sides in logs) <= 2


def test_second_order_is_found_and_named_first() -> None:
    rng = np.random.default_rng(1)
    model = chain(4)
    chances = second_order(4, 0.4, rng)
    log = log_of(model, [walk(chances, 4000, rng)])
    result = examine(model, log, alpha=0.01)
    assert result.alarm and result.findings[0].feature == "prev" and result.findings[0].kind == "memory"
    assert result.first_alarm is not None and result.first_alarm < 4000
    assert result.findings[0].cells and 0.0 < result.findings[0].effect < 0.5
    sooner = examine(model, log, alpha=0.01, planned=True)
    assert sooner.log_e_value > result.log_e_value
    null = second_order(4, 0.0, rng)
    assert not examine(model, log_of(model, [walk(null, 4000, rng)]), alpha=0.01, planned=True).alarm


def test_a_column_and_a_column_that_tells_the_outcome() -> None:
    rng = np.random.default_rng(2)
    model = chain(3)
    site = rng.integers(0, 2, 3000)
    path = [0]
    for one in site.tolist():
        path.append(int(rng.choice(3, p=(0.2, 0.3, 0.5) if one else (0.35, 0.3, 0.35))))
    whole = np.array(path)
    columns = {
        "site": LogColumn(site.astype(np.int32), ("a", "b")),
        "after": LogColumn(whole[1:].astype(np.int32), ("x", "y", "z")),
    }
    result = examine(model, replace(log_of(model, [whole]), columns=columns), alpha=0.01)
    assert result.alarm and result.findings[0].feature == "column:site"
    assert result.left_out == ("column:after",)


def test_one_unit_in_five_is_twice_as_bad() -> None:
    rng = np.random.default_rng(3)
    model = chain(3, absorbing=True)
    paths = []
    for unit in range(20):
        broken = 0.1 if unit % 5 == 0 else 0.05
        for _ in range(80):
            path = [0]
            while path[-1] != 2:
                u = rng.random()
                path.append(2 if u < broken else 1 if u < 0.5 else 0)
            paths.append(np.array(path))
    log = log_of(model, paths)
    unit = np.repeat(np.arange(20), 80)[log.episode].astype(np.int32)
    log = replace(log, columns={"machine": LogColumn(unit, tuple(f"m{one}" for one in range(20)))})
    result = examine(model, log, alpha=0.01, planned=True)
    assert result.alarm and result.findings[0].feature == "unit:machine"


CHAIN = """dtmc
const double p;
const double q;
module walk
  s : [0..2] init 0;
  [] s=0 -> p : (s'=0) + 1-p : (s'=1);
  [] s=1 -> q : (s'=0) + 1-q : (s'=2);
  [] s=2 -> 0.5 : (s'=0) + 0.5 : (s'=1);
endmodule
label "two" = s=2;
"""


@pytest.mark.thinned(2)
@pytest.mark.parametrize("remembers", [False, True])
def test_learn_and_watch_agree(
    remembers: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that remembers where it came from: every count is right, and both say that the model is wrong."""
    monkeypatch.chdir(tmp_path)
    Path("m.prism").write_text(CHAIN)
    rng = np.random.default_rng(4)
    path = [0, 0]
    for u in rng.random(3000).tolist():
        before, state = path[-2:]
        back = 0.5 if not remembers else 0.8 if before == 2 else 0.35
        path.append({0: (0, 1), 1: (0, 2), 2: (0, 1)}[state][0 if u < (back if state else 0.5) else 1])
    rows = [f"1,{a},{b}" for a, b in itertools.pairwise(path[1:])]
    Path("log.csv").write_text("\n".join(["episode,s,s'", *rows]) + "\n")
    domain = ["--param", "p=0.05:0.95,q=0.05:0.95"]
    about = ["m.prism", *domain, "--data", "log.csv", "--json"]
    watched = run(["watch", *about])
    seen = json.loads(capsys.readouterr().out.splitlines()[-1])
    run(["learn", *about, "--prop", 'P=? [ F<=5 "two" ]'])
    learned = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert seen["alarm"] is remembers and learned["fit"]["alarm"] is remembers
    assert (watched == 1) is remembers
    assert seen["verdict"] == ("contradicted" if remembers else learned["verdict"]) == learned["verdict"]
    assert learned["fit"]["log_e_value"] <= seen["log_e_value"] + 1e-6
    if remembers:
        assert seen["log_e_value"] == pytest.approx(learned["fit"]["log_e_value"], abs=1e-6)
    if remembers:
        assert seen["suspects"][0]["kind"] == learned["fit"]["suspects"][0]["kind"] == "memory"


@pytest.mark.parametrize("back", [0.5, 0.6, 0.66, 0.72])
def test_the_test_by_events_is_made_where_it_could_decide(back: float) -> None:
    """`learn` leaves it out where nothing speaks against a model, and says what `watch` says otherwise."""
    model = chain(2)
    rng = np.random.default_rng(3)
    first, later = np.full((2, 2, 2), 0.5), np.array([[[back, 1 - back], [0.5, 0.5]]] * 2)
    paths = [walk(one, 250, rng) for one in (first, later)]
    whole = np.concatenate([paths[0], paths[1][1:] if paths[0][-1] == 0 else paths[1]])
    log = log_of(model, [whole])
    counts = log.counts(model, SamplingDesign(SamplingKind.ADAPTIVE))
    watched = replay(model, log, 0.001)
    learned, seen = weigh_fit(model, counts), weigh_fit(model, counts, watched=watched)
    assert (learned.verdict, learned.first_alarm) == (seen.verdict, seen.first_alarm)
    assert learned.log_e_value == seen.log_e_value or learned.verdict == "no evidence against it"


@pytest.mark.parametrize("apart", [0.0, 0.13])
def test_a_broken_tie_is_found_whatever_else_is_unknown(apart: float) -> None:
    """Two of twelve states share a parameter and differ; what the others do is not paid for."""
    parameters = tr.Parameters.box(**dict.fromkeys([f"p{i}" for i in range(11)], (0.01, 0.99)))
    symbols = parameters.symbols()
    own = [symbols[i % 11] for i in range(12)]
    rows = [(i, "", {(i + 1) % 12: p, (i + 2) % 12: 1 - p}) for i, p in enumerate(own)]
    model = tr.build_from_rows(rows, parameters)
    rng, path = np.random.default_rng(4), [0]
    chance = {0: 0.5 + apart, 11: 0.5 - apart}
    for u in rng.random(4_000).tolist():
        path.append((path[-1] + 1 + (u >= chance.get(path[-1], 0.4))) % 12)
    state = np.array(path)
    slot = [
        [int(model.structure.successor[2 * i]) == to for to in range(12)].index(True) == (i + 1) % 12
        for i in range(12)
    ]
    first = np.array(slot)[state[:-1]]
    moved = (state[1:] - state[:-1]) % 12 == 1
    transition = 2 * state[:-1] + (moved != first)
    log = EpisodeLog.of_episodes(
        transition, np.zeros(4_000, dtype=np.int64), 1, model.structure, model.hash()
    )
    found = examine(model, log, alpha=0.001)
    assert found.alarm == (apart > 0.0)
    if found.alarm:
        worst = found.findings[0]
        assert worst.kind == "tie" and worst.contexts[0] in (0, 11) and "as others" in worst.text
        assert abs(worst.cells[0].observed - worst.cells[0].pooled) > 0.08


@pytest.mark.parametrize("outcomes", [[1] * 300 + [2] * 100, [1, 2] * 200])
def test_a_log_that_looks_written_by_a_rule_is_tested_where_it_has_times(outcomes: list[int]) -> None:
    (p,) = (parameters := tr.Parameters.box(p=(0, 1))).symbols()
    rows = [(0, "run", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    model = tr.build_from_rows(rows, parameters)
    lists = tr.read_data([[(0, "run", to)] for to in outcomes], model).counts
    assert not weigh_fit(model, lists).alarm  # a sorted list of outcomes says nothing
    columns = {"episode": range(400), "time": np.arange(400) + 0.5, "state": 0, "action": "run"}
    timed = tr.read_data(pd.DataFrame({**columns, "next_state": outcomes}), model).counts
    fit = weigh_fit(model, timed)
    assert fit.is_refutation and fit.suspects[0].kind in ("drift", "serial")
