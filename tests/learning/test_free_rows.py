"""Learning about free rows: against hand computation, against parameters written out, and certified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta

import tightrope as tr
from tightrope.learning.options import decide
from tightrope.model.free import NUMBERS_UNUSED, unlinked_rows
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.linear_program import find_blocks
from tightrope.regions.event_polytope import domain_region, polytope_region
from tightrope.statistics.estimates import event_intervals

GOAL = 'P=? [ F "goal" ]'
STEPS = ((0, {1: 40, 2: 35, 3: 25}), (1, {2: 28, 3: 12}))
EPISODES = [
    [(0, "a", 2)],
    [(0, "a", 3)],
    [(0, "a", 1), (1, "a", 2)],
    [(0, "a", 1), (1, "a", 3)],
]
TIMES = (35, 25, 28, 12)
DATA = [episode for episode, times in zip(EPISODES, TIMES, strict=True) for _ in range(times)]


def chain(probability: Any = tr.free) -> ParametricMDP:
    rows = [
        (0, "a", {1: probability, 2: probability, 3: probability}),
        (1, "a", {2: probability, 3: probability}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, labels={"goal": [2]})
    assert isinstance(model, ParametricMDP)
    return model


def written_out() -> ParametricMDP:
    parameters = tr.Parameters.box(x=(0, 1), y=(0, 1), z=(0, 1))
    constraint = tr.LinearConstraint((tr.exact(1), tr.exact(1), tr.exact(0)), tr.exact(1))
    parameters = tr.Parameters(parameters.names, parameters.lower, parameters.upper, (constraint,))
    x, y, z = parameters.symbols()
    rows = [
        (0, "a", {1: x, 2: y, 3: 1 - x - y}),
        (1, "a", {2: z, 3: 1 - z}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, parameters, labels={"goal": [2]})
    assert isinstance(model, ParametricMDP)
    return model


def clopper_pearson(seen: int, total: int, gamma: float) -> tuple[float, float]:
    return float(beta.ppf(gamma / 2, seen, total - seen + 1)), float(
        beta.ppf(1 - gamma / 2, seen + 1, total - seen)
    )


def test_the_interval_is_that_of_clopper_pearson_and_the_worst_distribution() -> None:
    result = tr.learn(chain().problem(GOAL), DATA, delta=0.05, interval="clopper-pearson", outcomes="none")
    gamma = 0.05 / 4  # three outcomes of one row, and one event of the other: its complement says the same
    later = clopper_pearson(28, 40, gamma)
    bounds = [clopper_pearson(seen, 100, gamma) for seen in (40, 35, 25)]
    values = []
    for worth, sign in ((later[0], 1.0), (later[1], -1.0)):
        found = linprog(sign * np.array([worth, 1.0, 0.0]), A_eq=[[1, 1, 1]], b_eq=[1], bounds=bounds)
        values.append(sign * found.fun)
    assert result.interval.lower == pytest.approx(values[0], abs=2e-6)
    assert result.interval.upper == pytest.approx(values[1], abs=2e-6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("sets", ["untied", "tied", "expression", "rectangular"])
def test_a_free_row_is_what_parameters_written_out_are(sets: str) -> None:
    words: dict[str, Any] = {"delta": 0.05, "sets": sets}
    if sets in ("expression", "rectangular"):
        words["region"] = "polytope"
    free = tr.learn(chain().problem(GOAL), DATA, **words)
    same = tr.learn(written_out().problem(GOAL), DATA, **words)
    assert free.interval.lower == pytest.approx(same.interval.lower, abs=1e-9)
    assert free.interval.upper == pytest.approx(same.interval.upper, abs=1e-9)
    tied = tr.learn(chain().problem(GOAL), DATA, delta=0.05, sets="tied")
    if sets != "untied":
        assert free.interval.lower == pytest.approx(tied.interval.lower, abs=1e-8)


def test_a_shared_name_pools_what_was_seen() -> None:
    rows = [
        (0, "a", {1: tr.free("x"), 3: tr.free("x")}),
        (1, "a", {2: tr.free("x"), 3: tr.free("x")}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    data = [[(0, "a", 1), (1, "a", 2)]] * 49 + [[(0, "a", 1), (1, "a", 3)]] * 21 + [[(0, "a", 3)]] * 30
    model = tr.build_from_rows(rows, labels={"goal": [2]})
    result = tr.learn(model.problem(GOAL), data, delta=0.05, interval="clopper-pearson", outcomes="none")
    low, high = clopper_pearson(70 + 49, 100 + 70, 0.05)
    assert result.interval.lower == pytest.approx(low**2, abs=2e-6)
    assert result.interval.upper == pytest.approx(high**2, abs=2e-6)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("sets", ["untied", "tied", "expression", "rectangular", "coupled"])
def test_certificates_are_verified_against_model_property_and_data(tmp_path: Path, sets: str) -> None:
    model, path = chain(), tmp_path / "c.cert"
    region = {} if sets in ("untied", "tied") else {"region": "polytope"}
    reading = tr.read_data(DATA, model)
    result = tr.learn(model.problem(GOAL), reading, delta=0.05, sets=sets, **region)
    tr.certify(result, path)
    verdict = tr.verify(path, model=model, property=GOAL, data=reading)
    assert verdict.valid
    assert verdict.bound["model"] and verdict.bound["property"] and verdict.bound["data"]


def test_over_the_domain_nature_picks_anything() -> None:
    rows = [
        (0, "a", {0: tr.free, 1: tr.free}),
        (0, "b", {1: "1/4", 2: tr.free, 3: tr.free}),
        (1, "", {1: 1}),
        (2, "", {2: 1}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, labels={"goal": [1, 2], "away": [1, 2, 3]})

    def bounds(text: str) -> tuple[float, float]:
        found = tr.solve(model.problem(text), sets="expression")
        return found.interval.lower, found.interval.upper

    assert bounds('Pmax=? [ F "goal" ]') == pytest.approx((0.25, 1.0), abs=1e-6)
    assert bounds('Pmax=? [ F "away" ]') == pytest.approx((1.0, 1.0), abs=1e-9)
    assert bounds('Pmin=? [ F "away" ]')[0] == pytest.approx(0.0, abs=1e-9)


# --- many of them -------------------------------------------------------------------------------


def saturated(rows: int, free: bool) -> tuple[ParametricMDP, np.ndarray]:
    """A chain of free rows with three successors each, or the same written out; its true probabilities."""
    rng = np.random.default_rng(7)
    weight = rng.dirichlet(np.ones(3), rows)
    names = {f"p{s}_{i}": (0, 1) for s in range(rows) for i in range(2)}
    parameters = tr.Parameters.box(**names)
    symbols = parameters.symbols()
    one, zero = tr.exact(1), tr.exact(0)
    constraints = tuple(
        tr.LinearConstraint(tuple(one if i // 2 == s else zero for i in range(2 * rows)), one)
        for s in range(rows)
    )
    domain = tr.Parameters(parameters.names, parameters.lower, parameters.upper, constraints)
    listed: list[Any] = []
    for s in range(rows):
        x, y = symbols[2 * s : 2 * s + 2]
        chances = [tr.free] * 3 if free else [x, y, 1 - x - y]
        goals = [
            (s + 1) if s + 1 < rows else rows,
            rows + 1,
            (s * 5) % rows if (s * 5) % rows != s + 1 else 0,
        ]
        listed.append((s, "a", dict(zip(goals, chances, strict=True))))
    listed += [(rows, "", {rows: 1}), (rows + 1, "", {rows + 1: 1})]
    model = tr.build_from_rows(listed, None if free else domain, labels={"goal": [rows]})
    assert isinstance(model, ParametricMDP)
    return model, weight


def data_of(model: ParametricMDP, weight: np.ndarray, events: int) -> tr.Counts:
    theta = weight[:, :2].reshape(-1)
    point = [tr.exact(round(float(x), 6)) for x in theta]
    return tr.Simulator(model.instantiate(point), model_hash=model.hash()).generative(events // 20, seed=3)


@pytest.mark.costly("test_a_free_row_is_what_parameters_written_out_are")
def test_the_default_of_many_unconstrained_rows_is_answered_row_by_row() -> None:
    intervals = []
    for free in (True, False):
        model, weight = saturated(20, free)
        assert unlinked_rows(model) == 20
        counts = data_of(model, weight, 2000)
        result = tr.learn(model.problem(GOAL), counts, delta=0.05)
        assert result.decisions.sets.value == "tied"
        assert "40 coordinates of 20 distributions that share nothing" in result.decisions.reasons[0]
        assert "likelihood" in result.decisions.reasons[0]
        wider = tr.learn(model.problem(GOAL), counts, delta=0.05, sets="rectangular", region="polytope")
        assert wider.decisions.sets.value == "expression"
        assert wider.interval.lower == pytest.approx(result.interval.lower, abs=1e-6)
        intervals.append((result.interval.lower, result.interval.upper))
        assert result.fit is not None
    assert intervals[0] == pytest.approx(intervals[1], abs=1e-9)


def test_few_unconstrained_rows_and_linked_ones_keep_their_defaults() -> None:
    model = chain()
    counts = tr.read_data(DATA, model).counts
    assert decide(model, counts, tr.LearnOptions()).sets.value == "rectangular"
    parameters = tr.Parameters.box(**{f"p{i}": (0, 1) for i in range(14)})
    symbols = parameters.symbols()
    rows = [
        (s, "a", {s + 1: symbols[s] * symbols[(s + 1) % 14], 15: 1 - symbols[s] * symbols[(s + 1) % 14]})
        for s in range(14)
    ]
    linked = tr.build_from_rows([*rows, (14, "", {14: 1}), (15, "", {15: 1})], parameters)
    assert isinstance(linked, ParametricMDP)
    assert unlinked_rows(linked) == 0
    narrow = tr.Parameters.box(**{f"p{i}": ("1/4", 1) for i in range(14)})
    boxed = [(s, "a", {s + 1: p, 15: 1 - p}) for s, p in enumerate(narrow.symbols())]
    cut = tr.build_from_rows([*boxed, (14, "", {14: 1}), (15, "", {15: 1})], narrow)
    assert isinstance(cut, ParametricMDP)
    assert unlinked_rows(cut) == 0  # the domain says more than the intervals do


def test_blocks_change_nothing_but_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    model, weight = saturated(8, False)
    counts = data_of(model, weight, 800)
    intervals = event_intervals(model, counts, 0.05)
    directions = np.random.default_rng(1).normal(size=(5, 16))
    regions = [polytope_region(intervals), domain_region(model)]
    supports = [region.support(directions) for region in regions]
    assert all(len(region._blocks) == 8 for region in regions)  # type: ignore[attr-defined]
    monkeypatch.setattr("tightrope.numerics.linear_program.MANY", 100)
    for region, support in zip((polytope_region(intervals), domain_region(model)), supports, strict=True):
        for one, other in zip(region.support(directions), support, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-8)


def test_blocks_of_matrices_that_share_columns() -> None:
    first = np.zeros((3, 14))
    first[0, [0, 1]], first[1, [2, 5]], first[2, 7] = 1.0, 1.0, 1.0
    second = np.zeros((1, 14))
    second[0, [1, 7]] = 1.0
    found = find_blocks(first, second)
    assert [block.columns.tolist() for block in found][:3] == [[0, 1, 7], [2, 5], [3]]
    assert [rows.tolist() for rows in found[0].rows] == [[0, 2], [0]]
    assert find_blocks(np.ones((1, 14))) == ()
    assert find_blocks(np.eye(5)) == ()


def test_monitors_and_estimates_of_unconstrained_rows() -> None:
    model, weight = saturated(8, True)
    counts = data_of(model, weight, 1600)
    result = tr.learn(model.problem(GOAL), counts, delta=0.05)
    assert result.fit is not None
    assert not result.fit.alarm


# --- models of numbers --------------------------------------------------------------------------


def test_the_numbers_of_a_model_are_not_used_by_untied_sets() -> None:
    rows = [(0, "a", {1: 0.1, 2: 0.1, 3: 0.8}), (1, "a", {2: 0.5, 3: 0.5}), (2, "", {2: 1}), (3, "", {3: 1})]
    model = tr.build_from_rows(rows, labels={"goal": [2]})
    assert isinstance(model, ParametricMDP)
    expected = tr.learn(chain().problem(GOAL), DATA, delta=0.05, sets="untied").interval
    for given in (DATA, tr.read_data(DATA, model), tr.read_data(DATA, model).counts):
        result = tr.learn(model.problem(GOAL), given, delta=0.05, sets="untied")
        assert result.interval == expected
        assert result.notes[0] == NUMBERS_UNUSED
    with pytest.raises(tr.InputError, match="no parameters: there is nothing to learn"):
        tr.learn(model.problem(GOAL), DATA, delta=0.05, sets="tied")


def test_results_are_read_back_and_name_no_coordinates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], empty_pictures: None
) -> None:
    from tightrope.cli.app import run

    text = """dtmc const double q; module m s : [0..3] init 0;
      [a] s=0 -> free : (s'=1) + free : (s'=2) + free : (s'=3);
      [a] s=1 -> q : (s'=2) + 1-q : (s'=3);
      [] s>1 -> true; endmodule label "goal" = s=2;"""
    model, log = tmp_path / "m.prism", tmp_path / "log.csv"
    model.write_text(text)
    rows = [(n, t, *step) for n, episode in enumerate(DATA) for t, step in enumerate(episode)]
    log.write_text("episode,step,s,action,s_next\n" + "\n".join(",".join(map(str, row)) for row in rows))
    command = ["learn", str(model), "--prop", GOAL, "--data", str(log), "-o", str(tmp_path / "out")]
    assert run([*command, "--sets", "rectangular", "--region", "polytope"]) == 0
    shown = capsys.readouterr().out
    assert " q [" in shown and "free1_1 [" not in shown
    back = tr.load_result(tmp_path / "out")
    assert list(back.parameters) == ["q"]
    again = tr.learn(tr.load(model).problem(GOAL), tr.read_data(log, tr.load(model)), sets="rectangular")
    assert back.interval.lower == pytest.approx(again.interval.lower, abs=1e-6)
