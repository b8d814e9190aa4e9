"""Rewards of very many steps: leapt over where they grow alike everywhere, and what steps one by one say."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import tightrope as tr
from tightrope.cli.app import run
from tightrope.prism.load import load_prism_text
from tightrope.solver.iteration import finite_horizon

MANY = 1_000_000


def bounds(model: str, question: str, **options: object) -> tuple[float, float, int]:
    """Those of the initial state, and how many backups were made."""
    solution = tr.solve(load_prism_text(model), question, **options)
    return float(solution.lower[0]), float(solution.upper[0]), solution.iterations


CHAIN = """dtmc
module m s : [0..1] init 0; [] s=0 -> 1/8:(s'=1) + 7/8:(s'=0); [] s=1 -> 3/8:(s'=0) + 5/8:(s'=1); endmodule
rewards s=1 : 1; endrewards
"""
WHEEL = """dtmc
module m s : [0..2] init 0; [] true -> (s'=mod(s+1,3)); endmodule
rewards s=0 : 1; s=1 : 2; s=2 : 4; endrewards
"""
APART = """dtmc
module m s : [0..2] init 0; [] s=0 -> 1/2:(s'=1) + 1/2:(s'=2); [] s>0 -> true; endmodule
rewards s=1 : 1; s=2 : 3; endrewards
"""


@pytest.mark.parametrize("steps", [MANY, MANY + 1])
def test_the_exact_values(steps: int) -> None:
    """Two states whose memory halves with every step; a wheel, whose increments never agree step by step."""
    low, high, backups = bounds(CHAIN, f"R=? [ C<={steps} ]")
    share, forgotten = Fraction(1, 4), 1 - Fraction(1, 2) ** steps
    exact = steps * share - Fraction(1, 8) / Fraction(1, 4) * forgotten
    assert low <= exact <= high and high - low < 1e-8 * exact and backups < 500
    low, high, backups = bounds(WHEEL, f"R=? [ C<={steps} ]")
    exact = Fraction(7 * (steps // 3) + (0, 1, 3)[steps % 3])
    assert low <= exact <= high and high - low < 1e-8 * exact and backups < 500


@pytest.mark.parametrize("steps", [3000, MANY])
def test_classes_that_earn_differently_grow_apart(steps: int) -> None:
    low, high, backups = bounds(APART, f"R=? [ C<={steps} ]")
    assert low <= 2 * (steps - 1) <= high and high - low < 1e-8 * high and backups < 500
    if steps < MANY:  # where more digits are asked for than leaps leave
        low, high, backups = bounds(APART, f"R=? [ C<={steps} ]", precision=1e-13)
        assert low <= 2 * (steps - 1) <= high and backups == steps


PORTER = """mdp
module m
  x : [0..4] init 0; full : bool init false;
  [far] x<4 -> (x'=x+1) & (full'=full | x=3);
  [near] x>0 -> (x'=x-1) & (full'=full & x>1);
endmodule
rewards [near] x=1 & full : 1; endrewards
"""


def test_decisions_that_change_with_what_is_left() -> None:
    """A round takes eight steps: near the end of one nothing is worth anything, and any choice as good."""
    question = f"Rmax=? [ C<={MANY} ]"
    low, high, backups = bounds(PORTER, question)
    assert low <= MANY // 8 <= high and high - low < 1e-8 * high and backups < 500
    model = load_prism_text(PORTER)
    leapt = tr.solve(model, "Rmax=? [ C<=4001 ]")
    attained = tr.solve(model, "Rmax=? [ C<=4001 ]", policy=leapt.steps)
    assert leapt.iterations < 500 and attained.lower[0] >= 500 - 1e-6


def with_classes(seed: int) -> str:
    """From a start with three choices, one of which waits, into three classes that earn differently, one of
    them nothing; two have choices of their own."""
    draw = np.random.default_rng(seed)
    odds = draw.integers(2, 8, 9)
    lines = ["mdp\nmodule m\n  s : [0..6] init 0;"]
    lines += [f"  [a] s=0 -> 0.{odds[0]}:(s'=1) + 0.{10 - odds[0]}:(s'=3);"]
    lines += [
        f"  [b] s=0 -> 0.{odds[1]}:(s'=5) + 0.{10 - odds[1]}:(s'=1);",
        "  [c] s=0 -> 0.5:(s'=0) + 0.5:(s'=6);",
    ]
    for first, choices in ((1, "ab"), (3, "ab")):
        for state in (first, first + 1):
            for choice in choices:
                stay = int(draw.integers(2, 8))
                lines.append(
                    f"  [{choice}] s={state} -> 0.{stay}:(s'={first}) + 0.{10 - stay}:(s'={first + 1});"
                )
    lines += ["  [] s=5 -> (s'=5);", "  [] s=6 -> (s'=6);", "endmodule", "rewards"]
    lines += [f"  [{choice}] s={s} : {draw.integers(1, 9)};" for s in range(1, 5) for choice in "ab"]
    return "\n".join([*lines, "  s=5 : 2;", "endrewards", ""])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("direction", ["max", "min"])
def test_classes_and_steps_agree_and_the_policy_attains_its_bound(
    seed: int, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = f"R{direction}=? [ C<=2500 ]"
    model = load_prism_text(with_classes(seed))
    leapt = tr.solve(model, question)
    monkeypatch.setattr(finite_horizon, "LEAST_TIMES", 1 << 60)
    stepped = tr.solve(model, question)
    assert leapt.iterations < 1000 and stepped.iterations == 2500 and leapt.is_certified
    assert np.all(leapt.lower <= stepped.upper) and np.all(stepped.lower <= leapt.upper)
    assert leapt.lower[4] == leapt.upper[4] == 0.0  # s = 6
    attained = tr.solve(model, question, policy=leapt.steps)
    assert np.allclose(attained.lower, leapt.lower, rtol=1e-7)


def random_model(seed: int, kind: str) -> str:
    """Five states, two choices each, all of which can come back to the first; intervals or numbers."""
    random = np.random.default_rng(seed)
    lines = [f"{kind}\nmodule m\n  s : [0..4] init 0;"]
    for state in range(5):
        for action in "ab":
            to, back = int(random.integers(1, 5)), int(random.integers(20, 60))
            ends = (f"0.{back}", f"0.{100 - back}")
            if kind == "mdp" and seed % 2:  # intervals
                ends = (f"[0.{back - 9},0.{back + 9}]", f"[0.{91 - back},0.{100 - back + 9}]")
            lines.append(f"  [{action}] s={state} -> {ends[0]}:(s'=0) + {ends[1]}:(s'={to});")
    earned = [f"[{action}] s={s} : {random.integers(0, 9)};" for s in range(5) for action in "ab"]
    return "\n".join([*lines, "endmodule", "rewards", *earned, "endrewards", ""])


@pytest.mark.thinned(5)
@pytest.mark.parametrize("seed", range(6))
def test_leaps_and_steps_agree_and_the_policy_attains_its_bound(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = f"R{('max', 'min')[seed // 2 % 2]}=? [ C<=2500 ]"
    if seed % 2:
        question = question.replace("=?", ("min", "max")[seed // 2 % 2] + "=?", 1)
    model = load_prism_text(random_model(seed, "mdp"))
    leapt = tr.solve(model, question)
    monkeypatch.setattr(finite_horizon, "LEAST_TIMES", 1 << 60)
    stepped = tr.solve(model, question)
    assert leapt.iterations < 1000 and stepped.iterations == 2500
    assert np.all(leapt.lower <= stepped.upper) and np.all(stepped.lower <= leapt.upper)
    assert np.all(leapt.upper - leapt.lower <= finite_horizon.MOST_LOST * 1e-6 * leapt.upper)
    attained = tr.solve(model, question, policy=leapt.steps)
    assert np.allclose(attained.lower, leapt.lower, rtol=finite_horizon.MOST_LOST * 1e-6)


def test_a_certificate_of_many_steps_is_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, proof = tmp_path / "chain.prism", tmp_path / "proof.cert"
    model.write_text(CHAIN)
    words = ["check", str(model), "--prop", "R=? [ C<=2000 ]", "--certificate", str(proof)]
    assert run(words) == 0 and run(["verify", str(proof)]) == 0
    capsys.readouterr()
