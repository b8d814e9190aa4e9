"""`R=? [ Cdiscount=d ]`: values against geometric sums, learning, certificates, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import tightrope as tr
from tightrope.prism.load import load_prism_text

WAIT = """mdp
const double p;
module m
  s : [0..1];
  [go] s=0 -> p : (s'=1) + 1-p : true;
  [stay] s=0 -> true;
  [] s=1 -> true;
endmodule
rewards "r"
  s=0 : 1;
endrewards
"""
CHAIN = """ctmc
module m
  s : [0..1];
  [] s=0 -> 2 : (s'=1);
  [] s=1 -> 1 : (s'=0);
endmodule
rewards
  true : 1;
endrewards
"""


def waiting() -> tr.ParametricMDP:
    model = load_prism_text(WAIT, domain="0.1<=p<=0.9")
    assert isinstance(model, tr.ParametricMDP)
    return model


@pytest.mark.parametrize(
    ("letters", "factor", "value"),
    [
        ("max", "0.9", 1 / (1 - Fraction(9, 10))),  # stay for ever
        ("min", "0.9", 1 / (1 - Fraction(9, 20))),  # each step ends it with probability 1/2
        ("min", "1/2", 1 / (1 - Fraction(1, 4))),
    ],
)
def test_values_are_geometric_sums(letters: str, factor: str, value: Fraction) -> None:
    model = waiting().instantiate(p=0.5)
    written = tr.solve(tr.Problem(model, f"R{letters}=? [ Cdiscount={factor} ]"), precision=1e-9)
    optional = tr.solve(
        tr.Problem(model, f"R{letters}=? [ C ]", discount=float(Fraction(factor))), precision=1e-9
    )
    assert written.lower[0] <= float(value) * (1 + 1e-12) and written.upper[0] >= float(value) * (1 - 1e-12)
    assert written.upper[0] - written.lower[0] < 1e-7
    assert (written.lower[0], written.upper[0]) == (optional.lower[0], optional.upper[0])


def test_it_is_learned_about_as_the_option_is() -> None:
    model = waiting()
    data = [[((0,), "go", (1,))]] * 30 + [[((0,), "go", (0,))]] * 30
    written = tr.learn(tr.Problem(model, "Rmin=? [ Cdiscount=0.9 ]"), data, delta=0.01)
    optional = tr.learn(tr.Problem(model, "Rmin=? [ C ]", discount=0.9), data, delta=0.01)
    assert written.guarantee == optional.guarantee
    assert 20 / 11 < written.guarantee < 1 / (1 - 0.9 * 0.9)


def test_a_certificate_of_it_is_checked(tmp_path: Path) -> None:
    model = waiting().instantiate(p=0.5)
    problem, file = tr.Problem(model, "Rmin=? [ Cdiscount=0.9 ]"), tmp_path / "d.cert"
    tr.certify(problem, file)
    assert tr.verify(file, model=model, property="Rmin=? [ Cdiscount=0.9 ]").valid
    with pytest.raises(tr.CannotCertify, match="another property: 'discount' differs"):
        tr.verify(file, model=model, property="Rmin=? [ Cdiscount=0.8 ]")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Rmax=? [ Cdiscount=1 ]", "the discount factor is 1, not within"),
        ("Rmax=? [ Cdiscount=s ]", "a discount factor must be constant"),
        ("CVaR{0.5}min=? [ Cdiscount=0.5 ]", "CVaR of discounted costs is not supported"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(tr.InputError, match=words):
        tr.solve(tr.Problem(waiting().instantiate(p=0.5), text))


def test_continuous_time_has_no_discount_per_step(tmp_path: Path) -> None:
    file = tmp_path / "chain.prism"
    file.write_text(CHAIN)
    chain = tr.load(file)
    with pytest.raises(tr.InputError, match="discounts per step cannot be used with continuous time"):
        tr.solve(tr.Problem(chain, "R=? [ Cdiscount=0.5 ]"))


def test_the_option_does_not_stand_beside_it() -> None:
    with pytest.raises(tr.InputError, match="a discount factor is for the total reward only"):
        tr.Problem(waiting().instantiate(p=0.5), "Rmax=? [ Cdiscount=0.5 ]", discount=0.9)
