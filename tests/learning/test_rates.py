"""Learning rates from logs with times: intervals, coverage, how logs are read and refused, the commands."""

from __future__ import annotations

import importlib.util
import json
import pickle
from collections.abc import Iterator
from contextlib import nullcontext
from math import exp, inf, lgamma, log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from places import TESTS
from tightrope.cli.app import run
from tightrope.data.exposure import read_exposure, simulate_times
from tightrope.errors import InputError
from tightrope.model.continuous import ParametricCTMC
from tightrope.prism.load import load_prism_text
from tightrope.regions.rate_box import region_of_rates
from tightrope.statistics.rates import RateClasses, estimate_rates, gamma_poisson
from tightrope.verdict import Word

FARM = """
ctmc
const int N = 3; const double lam; const double mu;
module farm
  up : [0..N] init N;
  [fail] up>0 -> lam*up : (up'=up-1);
  [repair] up<N -> mu : (up'=up+1);
endmodule
label "down" = up=0;
rewards "lost" true : N-up; endrewards
"""
RACE = """
ctmc
const double a; const double b;
module race
  s : [0..3];
  [] s=0 -> a : (s'=1) + b : (s'=2);
  [] s=1 -> a+b : (s'=0);
  [] s=2 -> a*b : (s'=3);
  [] s=3 -> 2*a : (s'=0);
endmodule
"""


@pytest.fixture(scope="module")
def farm() -> ParametricCTMC:
    return load_prism_text(FARM, box="lam=0.01:10,mu=0.01:10")


def log_of(model: ParametricCTMC, seed: int, episodes: int = 30, time: float = 20, **at: float) -> pa.Table:
    rows = simulate_times(model.instantiate(**at), episodes, seed, time, 10**6)
    columns = {name: column[rows.state] for name, column in model.structure.valuations.items()}
    return pa.table({"episode": rows.episode, "time": rows.time, **columns})


# --- statistics ----------------------------------------------------------------------------


@pytest.mark.parametrize(("events", "exposure"), [(0, 10.0), (3, 0.5), (40, 120.0), (10_000, 3.0)])
def test_the_interval_is_where_the_mixture_stays_below(events: int, exposure: float) -> None:
    scale, gamma = 2.0, 0.05
    low, high = gamma_poisson(events, exposure, scale, gamma)

    def log_martingale(rate: float) -> float:
        mixed = 0.5 * log(scale) + lgamma(0.5 + events) - lgamma(0.5) - (0.5 + events) * log(scale + exposure)
        return mixed + rate * exposure - events * log(rate)

    assert abs(log_martingale(high) - log(1 / gamma)) < 1e-6
    assert low == 0.0 if events == 0 else abs(log_martingale(low) - log(1 / gamma)) < 1e-6
    assert low <= events / exposure <= high
    assert gamma_poisson(events, 0.0, scale, gamma) == (0.0, inf)


def test_multiples_of_a_rate_pool_events_and_exposure(farm: ParametricCTMC) -> None:
    classes = RateClasses.of(farm)
    assert [base.text(("lam", "mu")) for base in classes.base] == ["lam", "mu"]
    log = pa.table({"duration": [2.0, 1.0, 0.5, 4.0], "up": [3, 2, 1, 2]})
    seen = read_exposure(log, farm.structure)
    found = estimate_rates(farm, seen.jumps, seen.waited, 0.05)
    assert found.events.tolist() == [2, 1]
    assert found.exposure.tolist() == [3 * 2 + 2 * 1 + 0.5 + 2 * 4, 1.0 + 0.5 + 4.0]
    assert found.gamma == 0.025 and seen.censored == 1


def test_sums_of_rates_are_rows_and_products_bound_themselves() -> None:
    model = load_prism_text(RACE, box="a=0.1:5,b=0.1:5")
    log = log_of(model, 4, 40, 30, a=1.0, b=0.5)
    seen = read_exposure(log, model.structure)
    found = estimate_rates(model, seen.jumps, seen.waited, 0.05)
    region = region_of_rates(found, model.parameters)
    assert not region.is_empty and len(region.bound) == 2
    truth = np.array([1.0, 0.5])
    assert (region.lower <= truth).all() and (truth <= region.upper).all()
    own = {
        base.text(("a", "b")): high - low
        for base, low, high in zip(found.classes.base, found.lower, found.upper, strict=True)
    }
    assert (region.upper - region.lower)[0] <= own["a"] and set(own) == {"a", "b", "a + b", "a*b"}
    low, high = region.bounds(model.expressions)
    for e in range(len(model.expressions)):
        value = float(model.expressions.polynomial(e).evaluate((1.0, 0.5)))
        assert low[e] <= value <= high[e]


def test_a_log_that_no_rates_explain_is_empty() -> None:
    model = load_prism_text(FARM, box="lam=0.01:10,mu=5:10")
    result = tr.learn(
        tr.Problem(model, 'P=? [ F<=1 "down" ]'),
        log_of(load_prism_text(FARM, box="lam=0.01:10,mu=0.01:10"), 1, lam=0.3, mu=1.0),
        delta=0.05,
    )
    assert result.value is None and result.region.is_empty


@pytest.mark.long
def test_coverage_benchmark_in_small() -> None:
    path = TESTS.parent / "benchmarks" / "rate_coverage.py"
    spec = importlib.util.spec_from_file_location("rate_coverage", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    row = module.measure(40, 0.05, 2)
    assert row["missed_rates"] <= 0.1 and row["missed_values"] == 0.0 and 0 < row["mean_width"] < 0.6


# --- values --------------------------------------------------------------------------------


def test_bounds_shrink_around_the_true_value(farm: ParametricCTMC) -> None:
    asked = 'P=? [ F<=6 "down" ]'
    truth = tr.solve(farm.instantiate(lam=0.3, mu=1.0), asked).bounds
    assert truth is not None
    wide = tr.learn(tr.Problem(farm, asked), log_of(farm, 7, 10, 10, lam=0.3, mu=1.0), delta=0.05).value
    close = tr.learn(tr.Problem(farm, asked), log_of(farm, 7, 400, 50, lam=0.3, mu=1.0), delta=0.05).value
    assert wide is not None and close is not None
    assert wide.lower < close.lower < truth[0] and truth[1] < close.upper < wide.upper
    assert close.upper - close.lower < 0.1
    for question in ('R{"lost"}=? [ C<=5 ]', "S=? [ up>1 ]", 'R{"lost"}=? [ F "down" ]'):
        exact = tr.solve(farm.instantiate(lam=0.3, mu=1.0), question).bounds
        found = tr.learn(
            tr.Problem(farm, question), log_of(farm, 7, 200, 50, lam=0.3, mu=1.0), delta=0.05
        ).value
        assert exact is not None and found is not None and found.lower <= exact[0] <= exact[1] <= found.upper


# --- logs ----------------------------------------------------------------------------------


def test_both_forms_of_a_log_say_the_same(farm: ParametricCTMC) -> None:
    times = pa.table(
        {"time": [0.0, 2.0, 3.0, 7.5, 0.0, 1.0], "up": [3, 2, 3, 3, 3, 2], "episode": [1, 1, 1, 1, 2, 2]}
    )
    waits = pa.table(
        {"duration": [2.0, 1.0, 4.5, 1.0, 0.0], "up": [3, 2, 3, 3, 2], "episode": [1, 1, 1, 2, 2]}
    )
    one, other = (read_exposure(table, farm.structure) for table in (times, waits))
    assert one.jumps.tolist() == other.jumps.tolist() and one.waited.tolist() == other.waited.tolist()
    assert one.jumps.sum() == 3 and one.waited.sum() == 8.5 and one.episodes == 2 and one.censored == 1
    noted = waits.append_column("mood", pa.array(["good"] * 5))
    assert read_exposure(noted, farm.structure).read_as == f"{other.read_as}; not read: mood"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time": [0.0], "duration": [1.0], "up": [3]}, "has both 'time' and 'duration'"),
        ({"up": [3]}, "has neither (up)"),
        ({"time": [0.0, 1.0], "x": [3, 2]}, "missing column up (states are given by"),
        ({"time": [0.0, -1.0], "up": [3, 2]}, "row 2: time runs backwards"),
        ({"time": [0.0, 1.0], "up": [3, 1]}, "no transition from (up=3) to (up=1)"),
        ({"time": [0.0, 1.0], "up": [3, 9]}, "row 2: (up=9) is not a reachable state of the model"),
        ({"duration": [1.0, -1.0], "up": [3, 2]}, "row 2: duration is -1.0"),
        ({"time": [0.0, None], "up": [3, 2]}, "row 2: column 'time' has no value"),
        ({"time": ["noon", "later"], "up": [3, 2]}, "column 'time' holds a text that is not a time"),
        ({"duration": [1.0, 1.0], "up": [3, 3]}, "(up=3) follows itself"),
        ({"time": [0.0, 1.0, 1.0], "up": [3, 2, 1], "episode": [1, 1, 1]}, "row 3: episode 1 has two rows"),
        ({"duration": [1.0], "up": [3], "up_next": [2]}, "the column 'up_next' says where a row leads"),
        ({"duration": [1.0], "up": [3], "Next State": [2]}, "the column 'Next State' says where a row leads"),
        ({"duration": [1.0], "up": [3], "count": [30]}, "the column 'count' says how often a row was seen"),
        ({"time": [0.0, 1.0], "up": [3, 2], "run": [1, 2]}, "the column 'run' seems to number episodes"),
    ],
)
def test_wrong_logs_are_refused_in_words(farm: ParametricCTMC, columns: Any, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_exposure(pa.table(columns), farm.structure)
    assert message in str(raised.value)


def test_open_episodes_need_an_end_of_watching_that_is_none_before_their_last_row(
    farm: ParametricCTMC,
) -> None:
    rows = {"episode": [1, 1, 2], "time": [0.0, 1.0, 4.0], "up": [3, 2, 3]}
    for until, said in (
        ([5.0, 5.0, None], "row 3: column 'until' has no value"),
        ([5.0, 5.0, 3.0], "row 3: "),
    ):
        with pytest.raises(InputError, match=said):
            read_exposure(pa.table({**rows, "until": until}), farm.structure, watched_until="until")
    seen = read_exposure(pa.table({**rows, "until": [5.0] * 3}), farm.structure, watched_until="until")
    assert seen.waited.sum() == 6.0 and seen.ends.holds


def test_each_file_says_until_when_its_episodes_were_watched(farm: ParametricCTMC) -> None:
    rows = {"episode": [1, 1], "time": [0.0, 1.0], "up": [3, 2]}
    logs = [pa.table({**rows, "until": [5.0, 5.0]}), pa.table(rows)]
    with pytest.raises(
        InputError, match="table 1: `watched_until` names the column 'until', which this file"
    ):
        read_exposure(logs, farm.structure, watched_until="until")


class Elsewhere:
    """An engine whose workers are other processes, as far as the data tell."""

    def run(self, work: Any, plan: Any, parts: Any) -> Iterator[Any]:
        sent = pickle.loads(pickle.dumps(plan))
        yield from (pickle.loads(pickle.dumps(work(sent, part))) for part in parts)


def test_engines_read_logs_in_continuous_time(
    farm: ParametricCTMC, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of three rows, cut within episodes that stand between each other, say what the whole log says."""
    rows = log_of(farm, 3, episodes=12, lam=0.5, mu=1.0)
    moods = pa.array([f"mood {number % 5}" for number in range(rows.num_rows)])
    rows = rows.append_column("mood", moods)
    order = np.argsort(rows["time"].to_numpy(), kind="stable")
    for number, part in enumerate(np.array_split(order, 2)):
        pq.write_table(rows.take(part), tmp_path / f"{number}.parquet", row_group_size=3)
    monkeypatch.setattr("tightrope.data.read_plan.PART_ROWS", 1)
    monkeypatch.setattr(
        "tightrope.data.exposure.engine_at",
        lambda place, tables: nullcontext(None if place.kind == "local" else Elsewhere()),
    )
    here, there = (read_exposure(tmp_path, farm, engine=engine) for engine in ("local", "dask"))
    assert here.jumps.tolist() == there.jumps.tolist() and here.waited.tolist() == there.waited.tolist()
    assert here.episodes == there.episodes == 12 and here.provenance == there.provenance
    assert here.pieces is not None and there.pieces is not None
    one, other = here.pieces(), there.pieces()
    for name in (
        "state",
        "duration",
        "transition",
        "episode",
        "since_entry",
        "since_start",
        "before",
        "clock",
    ):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert len(one.columns["mood"].labels) == 5 and one.columns["mood"] == other.columns["mood"]


def test_columns_dates_maps_and_readings_are_those_of_other_logs(
    farm: ParametricCTMC, tmp_path: Path
) -> None:
    dates = ["31.01.2024 22:00", "01.02.2024 00:00", "01.02.2024 01:00", "01.02.2024 05:30"]
    own = {"Zeit": dates, "Rechner": ["drei", "zwei", "drei", "zwei"]}
    columns, maps = "up=Rechner, time=Zeit:%d.%m.%Y %H:%M", ["up: zwei=2, drei=3", "time: /3600"]
    hours = pa.table({"time": [0.0, 2.0, 3.0, 7.5], "up": [3, 2, 3, 2]})
    plain, dated = read_exposure(hours, farm), read_exposure(pa.table(own), farm, columns=columns, maps=maps)
    assert dated.jumps.tolist() == plain.jumps.tolist() and dated.waited.tolist() == plain.waited.tolist()
    assert "'Zeit' is the moment" in dated.read_as and "values mapped: time: /3600" in dated.read_as
    (tmp_path / "farm.reading.toml").write_text(
        'reading = 1\nwatched_until = "01.02.2024 06:00"\n[columns]\nup = "Rechner"\n'
        'time = "Zeit:%d.%m.%Y %H:%M"\n[maps]\nup = "zwei=2, drei=3"\ntime = "/3600"\n'
    )
    read = read_exposure(pa.table(own), farm, reading=tmp_path / "farm.reading.toml")
    assert read.waited.sum() == 8.0 and read.ends.kept.value == "stated"
    minutes = pa.table({"min": [120.0, 60.0, 270.0], "run": [1, 1, 1], "up": [3, 2, 3]})
    renamed = read_exposure(minutes, farm, columns="duration=min, episode=run", maps="duration: /60")
    assert renamed.waited.sum() == 7.5 and renamed.jumps.sum() == 2
    with pytest.raises(InputError, match="nothing says in which unit of time the model's rates are"):
        read_exposure(pa.table(own), farm, columns=columns, maps=maps[:1])
    with pytest.raises(InputError, match="column 'Rechner' holds 'drei', which is not a number"):
        read_exposure(pa.table(own), farm, columns=columns, maps=maps[1:])
    with pytest.raises(InputError, match="a map of 'time' has factors alone"):
        read_exposure(hours, farm, maps="time: +1")
    with pytest.raises(InputError, match=r"`gaps` cannot be used with logs|no argument `gaps`"):
        read_exposure(hours, farm, gaps="outage")  # type: ignore[call-arg]


def test_simulated_sojourns_have_the_means_of_their_rates(farm: ParametricCTMC) -> None:
    log = log_of(farm, 3, 300, 50, lam=0.3, mu=1.0)
    seen = read_exposure(log, farm.structure)
    found = estimate_rates(farm, seen.jumps, seen.waited, 0.05)
    assert np.allclose(found.events / found.exposure, [0.3, 1.0], rtol=0.03)
    assert seen.waited.sum() == pytest.approx(300 * 50)


# --- commands ------------------------------------------------------------------------------


def test_sample_learn_and_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, log = tmp_path / "farm.sm", tmp_path / "log.csv"
    model.write_text(FARM)

    def said(*words: str) -> Any:
        assert run([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    at = ("--at", "lam=0.3,mu=1")
    sampled = said("sample", str(model), *at, "--episodes", "40", "--time", "30", "-o", str(log))
    assert sampled["episodes"] == 40
    box = ("--param", "lam=0.01:10,mu=0.01:10")
    asked = ("--prop", 'P=? [ F<=6 "down" ]', "--delta", "0.05")
    drn = tmp_path / "learned.drn"
    found = said("learn", str(model), *box, "--data", str(log), *asked, "-o", str(drn))
    truth = said("check", str(model), *at, *asked[:2])
    assert found["value"]["lower"] < truth["lower"] < truth["upper"] < found["value"]["upper"]
    assert found["verdict"] == "proved" and not found["empty"] and found["ledger"]["holds"]
    (why,) = (one["why"] for one in found["assumptions"] if one["name"] == "model")
    assert "; tested: not refuted: e-value 10^" in why
    assert [rate["rate"] for rate in found["rates"]] == ["lam", "mu"]
    assert found["data"]["censored"] > 30 and found["data"]["time"] == pytest.approx(1200)
    assert "@type: CTMC" in drn.read_text() and "double-interval" in drn.read_text()
    page, folder = tmp_path / "report.html", tmp_path / "out"
    assert (
        said("learn", str(model), *box, "--data", str(log), *asked, "-o", str(folder))["value"]
        == found["value"]
    )
    assert "@type: CTMC" in (folder / "learned.drn").read_text()
    said("report", str(folder), "-o", str(page))
    text = page.read_text()
    assert "PROVED: probability in [" in text and "rate lam" in text and "log.csv" in text
    assert run(["learn", str(model), *box, "--data", str(log), *asked, "-o", str(tmp_path / "x.json")]) == 2
    assert "write -o learned.drn, or -o DIR" in capsys.readouterr().err
    proof = str(tmp_path / "learned.cert")
    again = said("learn", str(model), *box, "--data", str(log), *asked, "--certificate", proof)
    proved = again["certificate"]["policies"]["value"]
    assert proved["lower"] == pytest.approx(found["value"]["lower"], rel=1e-9)
    assert proved["upper"] == pytest.approx(found["value"]["upper"], rel=1e-9)
    own = ("--model", str(model), *box, *asked[:2], "--data", str(log))
    verdict = said("verify", proof, *own)
    assert verdict["verdict"] == "proved" and verdict["delta"] == pytest.approx(0.05)
    assert {name: verdict["bound"][name] for name in ("model", "property", "data")} == dict.fromkeys(
        ("model", "property", "data"), True
    )
    assert run(["verify", proof, "--model", str(model), *box, "--prop", 'P=? [ F<=7 "down" ]']) == 1
    assert "another property: 'time' differs" in capsys.readouterr().err


def test_storm_reads_what_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import stormpy

    model, drn = tmp_path / "farm.sm", tmp_path / "farm.drn"
    model.write_text(FARM)
    assert run(["export", str(model), "--at", "lam=0.3,mu=1", "-o", str(drn)]) == 0
    built = stormpy.build_model_from_drn(str(drn))
    assert built.nr_states == 4 and "CTMC" in str(built.model_type).upper()
    asked = stormpy.parse_properties('P=? [ F<=6 "down" ]')
    value = stormpy.model_checking(built, asked[0]).get_value(built.initial_states[0])
    ours = tr.solve(load_prism_text(FARM).instantiate(lam=0.3, mu=1), 'P=? [ F<=6 "down" ]').bounds
    assert ours is not None and ours[0] - 1e-6 <= value <= ours[1] + 1e-6


def test_drn_files_of_chains_are_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, drn = tmp_path / "farm.sm", tmp_path / "farm.drn"
    model.write_text(FARM)
    asked = ("--prop", 'P=? [ F<=6 "down" ]', "--prop", 'R{"lost"}=? [ C<=2 ]', "--json")
    assert run(["export", str(model), "--at", "lam=0.3,mu=1", "-o", str(drn)]) == 0
    capsys.readouterr()
    assert run(["check", str(model), "--at", "lam=0.3,mu=1", *asked]) == 0
    first = json.loads(capsys.readouterr().out)["properties"]
    assert run(["check", str(drn), *asked]) == 0
    second = json.loads(capsys.readouterr().out)["properties"]
    for one, other in zip(first, second, strict=True):
        assert one["lower"] == pytest.approx(other["lower"], rel=1e-8)
    parametric = tmp_path / "parametric.drn"
    assert run(["export", str(model), "-o", str(parametric)]) == 0
    again = tr.load(parametric, params={"lam": (0.1, 1), "mu": (0.1, 2)})
    assert isinstance(again, ParametricCTMC)
    assert (
        again.instantiate(lam=0.3, mu=1).rate.tolist()
        == load_prism_text(FARM).instantiate(lam=0.3, mu=1).rate.tolist()
    )
    drn.write_text(drn.read_text().replace("state 0 !0.9", "state 0 !1"))
    assert run(["check", str(drn), *asked]) == 2
    assert "behind transitions stand rates, not probabilities" in capsys.readouterr().err


def test_expected_times_are_learned_and_certified_without_rewards(tmp_path: Path) -> None:
    """Until all three are down at rates of 1: 8/3, by the equations of the three states."""
    model = load_prism_text(FARM.split("rewards")[0], box="lam=0.01:10,mu=0.01:10")
    asked = 'T=? [ F "down" ]'
    truth = tr.solve(model.instantiate(lam=1, mu=1), asked).bounds
    assert truth == pytest.approx((8 / 3, 8 / 3), abs=1e-5)
    table = log_of(model, 5, lam=1, mu=1)
    result = tr.learn(tr.Problem(model, asked), table, delta=0.05)
    assert result.interval.lower < 8 / 3 < result.interval.upper < 12
    tr.certify(result, tmp_path / "time.cert")
    checked = tr.verify(tmp_path / "time.cert", model=model, property=asked, data=table)
    assert checked.valid and checked.values["value"][1] < 12


def test_chains_that_nothing_leaves_are_answered() -> None:
    """The test of constant rates has no rate to test; it divided by their number."""
    text = 'ctmc const double a; module m s:[0..2]; [] s=1 -> a:(s\'=2); endmodule label "goal" = s=0;'
    model = load_prism_text(text, box="a=0.1:2")
    log = pa.table({"episode": [0, 0], "time": [0.0, 3.0], "s": [0, 0]})
    result = tr.learn(tr.Problem(model, 'P=? [ F<=2 "goal" ]'), log, delta=0.1)
    assert result.verdict.word is Word.PROVED and tuple(result.interval) == (1.0, 1.0)


def test_chains_without_unknown_rates_are_answered_and_certified(tmp_path: Path) -> None:
    """Parameters that occur nowhere: the document and the certificate were internal errors."""
    text = 'ctmc const double a; module m s:[0..1]; [] s=0 -> 0.5:(s\'=1); endmodule label "goal" = s=1;'
    model, asked = load_prism_text(text, box="a=0.1:2"), 'P=? [ F<=1 "goal" ]'
    log = simulate_times(model.instantiate(a=1), 20, seed=1, time=5.0).table()
    result = tr.learn(tr.Problem(model, asked), log, delta=0.1)
    assert tuple(result.interval) == pytest.approx((1 - exp(-0.5), 1 - exp(-0.5)), abs=1e-6)
    assert result.document("model").widths is None
    tr.certify(result, tmp_path / "known.cert")
    assert tr.verify(tmp_path / "known.cert", model=model, property=asked, data=log).valid
