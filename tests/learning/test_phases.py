"""Sojourns in phases: their rates are covered, also where some are cut off, and wrong laws are refuted."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from scipy.special import gammaincc

import tightrope as tr
from effort import repeats
from learning.test_rate_doctor import LAM, MACHINE, MU, PARAMETERS, SOON, table
from tightrope.cli.app import run
from tightrope.data.exposure import read_exposure
from tightrope.learning.rate_doctor import Sojourns

TRUTH = 1.0 - float(gammaincc(3, 3 * 0.5))
"""Of leaving within half of a mean sojourn of three phases."""


def worn(seed: int, episodes: int = 60, shape: float = 3.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    up, down = rng.gamma(shape, 1.0 / shape, (episodes, 6)), rng.exponential(0.5, (episodes, 6))
    return np.stack([up, down], axis=2).reshape(episodes, 12)


def watched(rng: np.random.Generator, phases: int, rate: float) -> Sojourns:
    """Sojourns of ten units, each of which is watched until it has failed twice or for a while."""
    lasted, cut = [], []
    for _ in range(10):
        left = rng.exponential(3.0)
        for _ in range(2):
            time = rng.gamma(phases, 1.0 / rate)
            (lasted if time <= left else cut).append(min(time, left))
            left -= time
            if left <= 0.0:
                break
    return Sojourns(np.array(lasted), np.zeros(len(lasted), np.int64), np.array(cut))


def test_rates_are_covered_and_right_laws_are_not_refuted() -> None:
    rng, missed, alarms, total, runs = np.random.default_rng(1), 0, 0, 0.0, repeats(80)
    for _ in range(runs):
        seen = watched(rng, 3, 2.0)
        low, high = seen.interval(3, 0.2)
        missed += not low <= 2.0 <= high
        log_e = seen.evidence(3)
        alarms += log_e >= math.log(10.0)
        total += math.exp(log_e)
    assert missed <= 0.2 * runs
    assert alarms <= 0.1 * runs and total / runs < 1.2


def test_one_phase_is_an_exponential_sojourn_and_the_ends_are_where_the_likelihood_is() -> None:
    seen = Sojourns(np.array([0.5, 1.5]), np.zeros(2, np.int64), np.array([2.0]))
    assert seen.log_likelihood(np.array([0.7]), 1)[0] == pytest.approx(2 * math.log(0.7) - 0.7 * 4.0)
    two = 4 * math.log(0.7) - 0.7 * 2.0 + math.log(gammaincc(2, 1.4))
    assert seen.log_likelihood(np.array([0.7]), 2)[0] == pytest.approx(two)
    assert seen.best(1) == pytest.approx(0.5, rel=1e-6)
    low, high = seen.interval(2, 0.05)
    wider = seen.interval(2, 0.01)
    assert wider[0] < low < seen.best(2) < high < wider[1]


def test_phases_fix_what_constant_rates_get_wrong() -> None:
    data = read_exposure(table(worn(2)), MACHINE, ends="complete")
    words = {"delta": 0.05, "select_on": 0.3, "outcomes": "none"}
    found = tr.doctor(SOON, data, amend="phase=fit", **words)
    made = found.amended
    assert found.verdict.word.value == "contradicted" and made is not None
    assert 0 in made.amended.phases and made.verdict.word.value == "proved"
    assert made.value.lower <= TRUTH <= made.value.upper and made.value.width < 0.2
    right = tr.doctor(SOON, data, amend="phase=3:0", **words).amended
    assert right is not None and right.amended.phases == {0: 3}
    assert right.value.lower <= TRUTH <= right.value.upper
    wrong = tr.doctor(SOON, data, amend="phase=12:0", **words).amended
    assert wrong is not None and wrong.verdict.word.value == "contradicted"
    assert wrong.examination.findings[0].feature == "phase"


def test_several_ways_out_and_the_end_of_the_log() -> None:
    rows = [(0, {1: LAM, 2: MU}), (1, {}), (2, {})]
    model = tr.build_ctmc_from_rows(rows, PARAMETERS, labels={"lost": [2]})
    rng = np.random.default_rng(4)
    lines = ["episode,time,state"]
    for episode in range(150):
        time, to = rng.gamma(2, 0.5), 1 if rng.random() < 0.7 else 2
        lines += [f"{episode},0,0", f"{episode},{min(time, 1.5)},{to if time < 1.5 else 0}"]
    log = pyarrow.csv.read_csv(io.BytesIO("\n".join(lines).encode()))
    data = read_exposure(log, model, ends="complete")
    for text, truth in [('P=? [ F "lost" ]', 0.3), ('P=? [ F<=1 "lost" ]', 0.3 * (1 - gammaincc(2, 2.0)))]:
        made = tr.doctor(tr.Problem(model, text), data, delta=0.05, amend="phase=2", outcomes="none").amended
        assert made is not None and made.value.lower <= truth <= made.value.upper < 0.7
        assert len(made.amended.sojourns[0].cut) > 5


def test_the_command_and_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "ctmc const double lam; const double mu; module m s : [0..1] init 0;"
    program += " [] s=0 -> lam : (s'=1); [] s=1 -> mu : (s'=0); endmodule label \"down\" = s=1;"
    (tmp_path / "m.prism").write_text(program)
    pyarrow.csv.write_csv(table(worn(3)).rename_columns(["episode", "time", "s"]), tmp_path / "log.csv")
    call = ["doctor", str(tmp_path / "m.prism"), "--param", "lam=0.01:50,mu=0.01:50", "--prop", SOON.text]
    call += ["--data", str(tmp_path / "log.csv"), "--ends", "complete", "--json", "--amend"]
    run([*call, "phase=3:0", "--select-on", "0.3"])
    facts = json.loads(capsys.readouterr().out)["amended"]
    assert (facts["amendment"], facts["verdict"]) == ("phase=3:0", "proved")
    assert facts["value"]["lower"] <= TRUTH <= facts["value"]["upper"]
    assert "3 in" in facts["claims"]
    for amend, words in [
        ("phase=1", "not a number of phases"),
        ("phase=x:0", "not a number of phases"),
        ("phase=3:nowhere", "no state or label"),
        ("groups=s", "discrete time"),
    ]:
        assert run([*call, amend]) == 2
        assert words in capsys.readouterr().err
