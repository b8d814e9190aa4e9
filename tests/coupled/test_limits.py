"""A search over the coupled set ends in time, and says that a limit ended it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tightrope.cli.app import run
from tightrope.learning.coupling import COUPLED_SECONDS

SIX = """mdp
const double p; const double q; const double r; const double u;
module m
  s : [0..5] init 0;
  [a] s=0 -> p*q:(s'=1) + p*(1-q):(s'=2) + (1-p)*r:(s'=3) + (1-p)*(1-r):(s'=0);
  [b] s=0 -> q*r*u:(s'=2) + 1-q*r*u:(s'=3);
  [a] s=1 -> p*r:(s'=4) + 1-p*r:(s'=0);
  [b] s=1 -> q*u:(s'=4) + 1-q*u:(s'=2);
  [a] s=2 -> u*(1-p):(s'=4) + u*p:(s'=1) + (1-u)*r:(s'=5) + (1-u)*(1-r):(s'=2);
  [b] s=2 -> p*q*r:(s'=4) + 1-p*q*r:(s'=5);
  [a] s=3 -> q*(1-u):(s'=0) + 1-q*(1-u):(s'=5);
  [c] s>3 -> true;
endmodule
label "win" = s=4;
"""


@pytest.mark.costly("learning/test_learn.py::test_a_time_limit_is_a_status_and_the_bounds_still_hold")
def test_six_states_with_many_products_end_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, log = tmp_path / "six.prism", tmp_path / "six.csv"
    model.write_text(SIX)
    point = "p=0.4,q=0.6,r=0.5,u=0.3"
    assert run(["sample", str(model), "--at", point, "--episodes", "60", "--seed", "1", "-o", str(log)]) == 0
    capsys.readouterr()
    asked = ["--data", str(log), "--prop", 'Pmax=? [ F "win" ]', "--sets", "coupled", "--time-limit", "0.3"]
    begin = time.process_time()
    assert run(["learn", str(model), *asked, "--json"]) == 1
    assert time.process_time() - begin < 30
    found = json.loads(capsys.readouterr().out)
    assert found["status"].startswith("the time limit was reached")
    assert 0 <= found["robust_policy"]["lower"] < found["robust_policy"]["upper"] <= 1


def test_without_a_time_limit_there_is_one() -> None:
    assert COUPLED_SECONDS == 60
