"""`doctor` in continuous time: rates that are not constant are found, dropped, and the answer holds."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.data.exposure import read_exposure
from tightrope.errors import CannotCertify
from tightrope.learning.amendments import Amendment
from tightrope.learning.rate_doctor import split_rates

PARAMETERS = tr.Parameters.box(lam=(0.01, 50), mu=(0.01, 50))
LAM, MU = PARAMETERS.symbols()
MACHINE = tr.build_ctmc_from_rows([(0, {1: LAM}), (1, {0: MU})], PARAMETERS, labels={"down": [1]})
SOON = tr.Problem(MACHINE, 'P=? [ F<=0.5 "down" ]')


def table(lasts: np.ndarray, **columns: np.ndarray) -> pa.Table:
    """Sojourns of the two states in turn, an episode a row."""
    episodes, each = lasts.shape
    time = np.hstack([np.zeros((episodes, 1)), np.cumsum(lasts, axis=1)]).ravel()
    state = np.tile(np.arange(each + 1) % 2, episodes)
    more = {name: np.repeat(values, each + 1) for name, values in columns.items()}
    return pa.table(
        {"episode": np.repeat(np.arange(episodes), each + 1), "time": time, "state": state, **more}
    )


def wear(seed: int) -> np.ndarray:
    """Machines that wear out: up for a time with shape 2 and mean about 0.9, then repaired."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.weibull(2.0, (100, 6)), rng.exponential(0.5, (100, 6))], axis=2).reshape(100, 12)


def test_wear_is_found_and_the_answer_without_constant_rates_holds() -> None:
    data = read_exposure(table(wear(1)), MACHINE, ends="complete")
    found = tr.doctor(SOON, data, delta=0.05, alpha=0.001, amend="auto", select_on=0.5, outcomes="none")
    truth = 1 - math.exp(-(0.5**2))
    assert found.verdict.word.value == "contradicted"
    assert found.value is not None and found.value.lower > truth
    first = found.findings[0]
    assert first.finding.feature == "since-entry" and first.amendment.feature.startswith("since-entry:")
    assert first.mends and first.value.lower <= truth <= first.value.upper
    assert found.amended is not None and found.amended.result is not None
    assert found.amended.verdict.word.value == "proved"
    assert "50 of 100 episodes" in found.amended.selection.why
    interval = found.amended.result.interval
    assert interval.lower <= truth <= interval.upper < 0.95


def test_a_certificate_is_not_valid_for_a_log_that_refutes_constant_rates(tmp_path: Path) -> None:
    data = read_exposure(table(wear(1)), MACHINE, ends="complete")
    result = tr.learn(SOON, data, delta=0.05, outcomes="none")
    with pytest.raises(CannotCertify, match="the result is contradicted"):
        tr.certify(result, tmp_path / "wear.cert")
    tr.certify(replace(result, fit=None), tmp_path / "wear.cert")
    assert tr.verify(tmp_path / "wear.cert", model=MACHINE, property=SOON.text).word == "proved"
    verdict = tr.verify(tmp_path / "wear.cert", model=MACHINE, property=SOON.text, data=data)
    assert verdict.word == "contradicted" and "a rate is not constant" in str(verdict.contradicted)


def test_stretches_are_cut_where_the_value_changes() -> None:
    rows = "episode,time,state\n1,0,0\n1,2,1\n1,5,0\n1,6,0\n"
    data = read_exposure(pa.csv.read_csv(pa.BufferReader(rows.encode())), MACHINE)
    assert data.pieces is not None
    made = split_rates(MACHINE, data.pieces(), Amendment("rates", "since-entry"), data, np.array([1.0, 2.0]))
    assert made.model.states == 6
    assert made.exposure.waited.tolist() == [2.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    assert made.exposure.jumps.tolist() == [0, 1, 0, 0, 0, 1]
    part = split_rates(MACHINE, data.pieces(), Amendment("rates", "prev", (1,)), data, np.empty(0))
    assert part.exposure.waited.tolist() == [3.0, 3.0] and part.exposure.jumps.tolist() == [1, 1]


def test_a_column_and_a_broken_tie() -> None:
    rng = np.random.default_rng(3)
    slow = rng.integers(0, 2, 60)
    lasts = rng.exponential(0.5, (60, 10)) * np.where(slow, 3.0, 1.0)[:, None]
    site = np.array(["west", "east"])[slow]
    data = read_exposure(table(lasts, site=site), MACHINE, ends="complete", known="site")
    found = tr.doctor(SOON, data, delta=0.05, outcomes="none")
    (column,) = [one for one in found.findings if one.finding.feature == "column:site"]
    fast, late = (1 - math.exp(-0.5 / mean) for mean in (0.5, 1.5))
    assert column.mends and column.value is not None
    assert column.value.lower <= late and fast <= column.value.upper
    tied = tr.build_ctmc_from_rows([(0, {1: LAM}), (1, {0: LAM})], PARAMETERS, labels={"down": [1]})
    lasts = np.stack([rng.exponential(1.0, (40, 6)), rng.exponential(0.2, (40, 6))], axis=2).reshape(40, 12)
    problem = tr.Problem(tied, 'P=? [ F<=0.5 "down" ]')
    untied = tr.doctor(problem, read_exposure(table(lasts), tied, ends="complete"), outcomes="none")
    (tie,) = [one for one in untied.findings if one.finding.feature == "tie"]
    assert tie.amendment is not None and tie.amendment.text == "untie" and tie.mends
    assert tie.value is not None and tie.value.lower <= 1 - math.exp(-0.5) <= tie.value.upper


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, log = tmp_path / "m.prism", tmp_path / "log.csv"
    model.write_text(
        "ctmc const double lam; const double mu;\nmodule m s : [0..1]; [] s=0 -> lam : (s'=1); "
        '[] s=1 -> mu : (s\'=0); endmodule\nlabel "down" = s=1;\n'
    )
    pa.csv.write_csv(table(wear(2)[:60]), log)
    words = ["doctor", str(model), "--param", "lam=0.01:50,mu=0.01:50", "--data", str(log)]
    words += ["--prop", SOON.text, "--ends", "complete", "--amend", "rates=since-entry", "--delta", "0.05"]
    assert run([*words, "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "contradicted" and answer["amended"]["verdict"] == "nominal"
    assert answer["findings"][0]["amendment"].startswith("rates=since-entry:")
    assert run([*words, "-o", str(tmp_path / "x.prism")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    words[words.index("rates=since-entry")] = "rates=since-entry:1"
    assert run(words) == 2


def test_what_does_not_go_with_rates_is_refused() -> None:
    data = read_exposure(table(wear(2)[:4]), MACHINE, ends="complete")
    with pytest.raises(tr.InputError, match="`select_by`"):
        tr.doctor(MACHINE, data, select_by="e-values")
    with pytest.raises(tr.InputError, match="cannot depend on 'column:site'"):
        tr.doctor(MACHINE, data, amend="rates=column:site")
