"""Problems made up to confuse the arithmetic: what is accepted of them is true, in both arithmetics."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from adversary.archive import Forgery
from adversary.attacks_values import claim
from adversary.honest import ALL, Honest, quietly
from adversary.judge import refutation, value_of, verify
from adversary.proved import NOT_COVERED, proved_code
from adversary.truth_values import is_allowed
from exact_reference import INFINITE

REMAINDER = """mdp
module m
 s:[0..2] init 0;
 [a] s=0 -> [1e-15,1e-15]:(s'=1) + [0,0.9999999999999982]:(s'=0) + [0,1]:(s'=2);
 [a] s>0 -> true;
endmodule
"""
"""Nature can stay with all but 1.8e-15, and what she must not keep counts: the value is 0.556, not 1."""

SLIVER = """mdp
module m
 s:[0..2] init 0;
 [a] s=0 -> [0,0.9999999999999995]:(s'=1) + [0,1]:(s'=2);
 [a] s>0 -> true;
endmodule
rewards
 s=0 : 3;
endrewards
"""
"""At least 5e-16 lead away from the target forever: the cost is infinite, not 3."""

MADE_UP = {
    "remainder": (
        Honest(
            "made-up/remainder", "check", "m.prism", REMAINDER, ("--prop", "Pmaxmax=? [ F s=1 ]"), codes=(1,)
        ),
        1.0,
    ),
    "sliver": (Honest("made-up/sliver", "check", "m.prism", SLIVER, ("--prop", "Rminmin=? [ F s=1 ]")), 3.0),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_no_remainder_is_too_small_to_count(name: str, tmp_path: Path) -> None:
    honest, wrong = MADE_UP[name]
    place = honest.folder()
    forgery = Forgery.of(place / "honest.cert")
    assert refutation(honest, forgery) is None
    assert verify(place / "honest.cert").accepted and verify(place / "honest.cert", "--exact").accepted
    forgery["values.0.lower"] = np.where(
        np.arange(3) == 2, forgery["values.0.lower"], wrong * (np.arange(3) != 1)
    )
    if name == "remainder":
        forgery["values.0.lower"] = np.array([1.0, 1.0, 0.0])
    forgery["values.0.upper"] = np.array(
        [wrong, 1.0 if name == "remainder" else 0.0, forgery["values.0.upper"][2]]
    )
    claim(forgery, wrong, wrong)
    assert refutation(honest, forgery) is not None
    path = forgery.save(tmp_path / "wrong.cert")
    assert not verify(path).accepted and not verify(path, "--exact").accepted and proved_code(path) != 0


@pytest.mark.parametrize("name", MADE_UP)
def test_the_command_says_the_same(name: str) -> None:
    honest, _ = MADE_UP[name]
    place = honest.folder()
    code, out, err = quietly(["check", str(place / "m.prism"), *honest.options, "--json"])
    assert code in honest.codes, err
    (found,) = json.loads(out)["results"] if "results" in out else [json.loads(out)]
    truth = value_of(Forgery.of(place / "honest.cert"), None)
    assert is_allowed(float(found["lower"]), float(found["upper"]), truth), found
    assert abs(truth - Fraction(5, 9)) < Fraction(1, 100) if name == "remainder" else truth >= INFINITE


@pytest.mark.parametrize(
    "claimed", [(0.0, 0.0), (-1.7e308, -1e308), (-1.7e308, 1.7e308), (0.0, np.inf), (np.inf, np.inf)]
)
@pytest.mark.parametrize("reward", [-1.2e308, -1.7976931348623157e308])
def test_rewards_that_overflow(claimed: tuple[float, float], reward: float, tmp_path: Path) -> None:
    """Three steps of −1.2e308 are below what a double holds: −∞ must not be read as +∞, nor as 0."""
    honest = ALL["point/cumulative"]
    forgery = Forgery.of(honest.certificate)
    forgery["problem.objective.reward"] = np.full(8, reward)
    forgery["problem.objective.upper_steps"] = 3
    claim(forgery, *claimed)
    path = forgery.save(tmp_path / "overflow.cert")
    assert refutation(honest, forgery) is not None
    assert not verify(path).accepted and not verify(path, "--exact").accepted and proved_code(path) != 0


@pytest.mark.parametrize("reward", [1.2e308, 1.7e308])
def test_rewards_that_overflow_upwards(reward: float, tmp_path: Path) -> None:
    honest = ALL["point/cumulative"]
    forgery = Forgery.of(honest.certificate)
    forgery["problem.objective.reward"] = np.full(8, reward)
    forgery["problem.objective.upper_steps"] = 3
    claim(forgery, 1e308, np.inf)
    path = forgery.save(tmp_path / "overflow.cert")
    assert refutation(honest, forgery) is None
    assert verify(path).code == 2 and proved_code(path) in (2, NOT_COVERED), (
        "a bounded sum is not an infinite value"
    )
    claim(forgery, 1e308, 1.7e308)
    assert not verify(forgery.save(path)).accepted and not verify(path, "--exact").accepted


@pytest.mark.parametrize("name", ["point/discounted", "point/total", "point/cost", "interval/discounted"])
def test_no_steps_where_steps_have_no_meaning(name: str, tmp_path: Path) -> None:
    forgery = Forgery.of(ALL[name].certificate)
    forgery["problem.objective.upper_steps"] = 0
    claim(forgery, 0.0, 0.0)
    for side in ("lower", "upper"):
        del forgery.arrays[f"values.0.{side}"]
    path = forgery.save(tmp_path / "none.cert")
    assert verify(path).code == 2 and proved_code(path) in (2, NOT_COVERED)


@pytest.mark.parametrize("name", ["point/bounded", "interval/bounded"])
def test_more_steps_than_anyone_waits_for_are_refused(name: str, tmp_path: Path) -> None:
    """A small file must not ask for minutes of work."""
    forgery = Forgery.of(ALL[name].certificate)
    forgery["problem.objective.upper_steps"] = 60_000
    path = forgery.save(tmp_path / "long.cert")
    verdict = verify(path)
    assert verdict.code == 2 and "60000 steps" in verdict.err and proved_code(path) in (2, NOT_COVERED)
    forgery["problem.objective.upper_steps"] = 45_000
    exact = verify(forgery.save(path), "--exact")
    assert exact.code == 2 and "too many for rationals" in exact.err


@pytest.mark.parametrize(
    "other", [Fraction(11 * 10**29 // 2 - 1, 10**30), Fraction(27, 50), Fraction(14, 25)]
)
def test_rows_at_a_point_sum_to_1_exactly(other: Fraction, tmp_path: Path) -> None:
    """Also a row that misses 1 by 10⁻³⁰ is no distribution."""
    forgery = Forgery.of(ALL["point/reach"].certificate)
    texts = forgery["problem.polynomial"]
    forgery["problem.polynomial"] = [str(other) if text == "11/20" else text for text in texts]
    path = forgery.save(tmp_path / "less.cert")
    assert not verify(path).accepted and not verify(path, "--exact").accepted and proved_code(path) != 0


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-300, 2.0**-53])
def test_tiny_probabilities_count(tiny: float, tmp_path: Path) -> None:
    """An interval that leaves out the loop by next to nothing still ends it; one that need not, does not."""
    honest = ALL["interval/reach"]
    forgery = Forgery.of(honest.certificate)
    low = forgery["problem.lower"].copy()
    low[low == 0.4] = tiny
    high = forgery["problem.upper"].copy()
    high[high == 0.6] = 1.0
    forgery["problem.lower"], forgery["problem.upper"] = low, high
    for low_end, high_end in ((0.0, 1.0), (0.3, 1.0), (0.0, 0.5), (0.9, 1.0)):
        claim(forgery, low_end, high_end)
        path = forgery.save(tmp_path / "tiny.cert")
        for options in ((), ("--exact",)):
            if verify(path, *options).accepted:
                assert refutation(honest, forgery) is None
