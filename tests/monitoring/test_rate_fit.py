"""Whether rates of chains in continuous time are constant: what is found, what is not, and the verdict."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from benchmark_script import run_benchmark
from tightrope.cli.app import run
from tightrope.data.exposure import Exposure, read_exposure
from tightrope.monitoring.rate_fit import OF_COLUMNS, OF_COPIES, WEIGHTS, examine_rates

PARAMETERS = tr.Parameters.box(lam=(0.01, 100), mu=(0.01, 100))
LAM, MU = PARAMETERS.symbols()
MACHINE = tr.build_ctmc_from_rows([(0, {1: LAM}), (1, {0: MU})], PARAMETERS, labels={"down": [1]})
assert isinstance(MACHINE, tr.ParametricCTMC)


def _table(lasts: np.ndarray, episodes: int, **columns: np.ndarray) -> pa.Table:
    """Sojourns of the two states in turn, cut into episodes that begin in the first."""
    each = len(lasts) // episodes
    time = np.concatenate([np.r_[0.0, np.cumsum(part)] for part in lasts.reshape(episodes, each)])
    state = np.tile(np.arange(each + 1) % 2, episodes)
    more = {name: np.repeat(values, each + 1) for name, values in columns.items()}
    return pa.table(
        {"episode": np.repeat(np.arange(episodes), each + 1), "time": time, "state": state, **more}
    )


def _found(table: pa.Table, alpha: float = 0.01) -> tuple[bool, str]:
    result = examine_rates(MACHINE, read_exposure(table, MACHINE, ends="complete"), alpha=alpha)
    return result.alarm, result.findings[0].feature


def test_pieces_of_time_know_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("episode,time,state,shift\n1,0,0,a\n1,2,0,b\n1,5,1,b\n1,6,0,a\n2,4,1,a\n2,9,1,b\n")
    seen = read_exposure(path, MACHINE, watched_until=10)
    assert seen.pieces is not None
    pieces = seen.pieces()
    assert pieces.duration.tolist() == [2, 3, 1, 4, 5, 1]
    assert pieces.transition.tolist() == [-1, 0, 1, -1, -1, -1]
    assert pieces.since_entry.tolist() == [0, 2, 0, 0, 0, 5] and pieces.since_start.tolist() == [
        0,
        2,
        5,
        6,
        0,
        5,
    ]
    assert pieces.before.tolist() == [-1, -1, 0, 1, -1, -1] and pieces.episode.tolist() == [0, 0, 0, 0, 1, 1]
    assert pieces.columns["shift"].labels == ("a", "b") and pieces.clock is not None
    jumps = np.bincount(pieces.transition[pieces.transition >= 0], minlength=2)
    waited = np.bincount(pieces.state, weights=pieces.duration)
    assert jumps.tolist() == seen.jumps.tolist() and waited.tolist() == seen.waited.tolist()


def test_sojourns_that_are_not_exponential_are_found() -> None:
    rng = np.random.default_rng(5)
    lasts = rng.exponential(0.5, 800)
    assert not _found(_table(lasts, 10))[0]
    lasts[0::2] = rng.weibull(1.7, 400)
    assert _found(_table(lasts, 10)) == (True, "since-entry")


def test_columns_episodes_and_the_state_before_are_found() -> None:
    rng = np.random.default_rng(6)
    slow = rng.integers(0, 2, 40)
    lasts = rng.exponential(1.0, (40, 40)) * np.where(slow, 2.0, 1.0)[:, None]
    named = _table(lasts.ravel(), 40, site=np.array(["west", "east"])[slow])
    assert _found(named) == (True, "column:site")
    assert _found(named.drop_columns(["site"])) == (True, "unit:episode")
    nothing = _table(rng.exponential(1.0, 1600), 40, site=np.array(["west", "east"])[slow])
    assert not _found(nothing)[0]


def test_rates_that_the_model_ties_are_compared() -> None:
    model = tr.build_ctmc_from_rows([(0, {1: LAM}), (1, {0: 2 * LAM})], PARAMETERS)
    free = tr.build_ctmc_from_rows([(0, {1: LAM}), (1, {0: MU})], PARAMETERS)
    for mu, alarm in ((2.0, False), (6.0, True)):
        log = tr.simulate_times(free.instantiate(lam=1, mu=mu), 20, seed=2, time=20)
        result = examine_rates(model, read_exposure(log, model), alpha=0.01)
        assert result.alarm is alarm and (result.findings[0].feature == "tie") is alarm


def test_totals_alone_say_little_and_the_evidence_follows_from_them() -> None:
    """A rate outside of the domain is seen in totals; one state, one value: the formula by hand."""
    seen = Exposure(np.array([3, 3]), np.array([3.0, 1.0]), 7, 1, 0, "")
    assert examine_rates(MACHINE, seen, alpha=0.01).findings == ()


def test_a_refuted_rate_contradicts_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(8)
    lasts = rng.exponential(0.5, 1000)
    problem = tr.Problem(MACHINE, 'S=? [ "down" ]')
    good = tr.learn(problem, read_exposure(_table(lasts, 10), MACHINE, ends="complete"), delta=0.05)
    assert good.verdict.word.value == "proved" and good.fit is not None and not good.fit.alarm
    lasts[0::2] = rng.weibull(0.6, 500)
    bad = tr.learn(problem, read_exposure(_table(lasts, 10), MACHINE, ends="complete"), delta=0.05)
    assert bad.verdict.word.value == "contradicted" and "since the state was entered" in bad.verdict.why
    model, log = tmp_path / "m.prism", tmp_path / "log.csv"
    model.write_text(
        "ctmc const double lam; const double mu;\nmodule m s : [0..1]; [] s=0 -> lam : (s'=1); "
        '[] s=1 -> mu : (s\'=0); endmodule\nlabel "down" = s=1;\n'
    )
    import pyarrow.csv

    pyarrow.csv.write_csv(_table(lasts, 10).rename_columns(["episode", "time", "s"]), log)
    words = [
        "learn",
        str(model),
        "--prop",
        'S=? [ "down" ]',
        "--data",
        str(log),
        "--param",
        "lam=0.01:100,mu=0.01:100",
    ]
    assert run([*words, "--ends", "complete", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "contradicted" and answer["findings"][0]["feature"] == "since-entry"
    assert answer["findings"][0]["e_value"] > 1000


@pytest.mark.long
def test_power_and_false_alarms_in_small() -> None:
    outcome = json.loads(run_benchmark("rate_doctor.py", "--smoke").stdout)
    (row,) = outcome["weibull"]
    assert row["ratio"] <= 6 and outcome["alarms"] == 0


def test_the_evidence_of_one_cell_is_the_mixture_over_the_best_rate() -> None:
    """With one value of a feature nothing is gained: the evidence stays below 1."""
    rng = np.random.default_rng(9)
    table = _table(rng.exponential(1.0, 200), 1, site=np.array(["west"]))
    result = examine_rates(MACHINE, read_exposure(table, MACHINE), alpha=0.01)
    (one,) = [each for each in result.findings if each.feature == "column:site"]
    assert one.log_e_value < 0.0


def test_weights_of_features_are_fixed_before_the_data() -> None:
    """A log of one episode has the weights that one of many has, and they sum to at most 1."""
    rng = np.random.default_rng(9)
    weights = []
    for units in (1, 40):
        table = _table(rng.exponential(1.0, 200), units, site=np.array(["west"] * units))
        result = examine_rates(MACHINE, read_exposure(table, MACHINE), alpha=0.01)
        weights.append({one.feature: one.log_weight for one in result.findings})
    assert weights[0].items() <= weights[1].items() and "unit:episode" not in weights[0]
    assert math.isclose(weights[0]["column:site"], math.log(0.17 * 0.75))
    whole = OF_COLUMNS + OF_COPIES + sum(weight for weight, _ in WEIGHTS.values())
    assert sum(map(math.exp, weights[1].values())) <= 1.0 == pytest.approx(whole)
