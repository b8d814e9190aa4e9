"""Certificates of models whose probabilities are quotients: honest ones verify, false ones are refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tightrope as tr
from tightrope.certify.learned import certificate_of
from tightrope.cli.app import main
from tightrope.errors import InputError
from tightrope.io.results import Interval
from tightrope.prism.load import load_prism_text
from tightrope_check.checker import check
from tightrope_check.coordinates import add
from tightrope_check.evidence import Domain
from tightrope_check.learned import Learned
from tightrope_check.numbers import FLOAT64, RATIONAL
from tightrope_check.problem import Certificate
from tightrope_check.quotients import QuotientSpace

TEXT = """
mdp
const double p;
const double q;
module m
  s : [0..4] init 0;
  i : [0..2] init 0;
  [a] s=0 & i<2 -> p/(p+q+1) : (i'=i+1) + q/(p+q+1) : (s'=1) + 1/(p+q+1) : (s'=2);
  [b] s=0 & i<2 -> p*q/(1+p*q) : (i'=i+1) + 1/(1+p*q) : (s'=3);
  [a] s=0 & i=2 -> -q/(p-2) : (s'=4) + 1+q/(p-2) : (s'=1);
  [r] s=2 | s=3 -> 1-p*q : (s'=0) + p*q : (s'=1);
  [d] s=1 | s=4 -> true;
endmodule
label "won" = s=4;
"""
BOX = "p=0.1:0.9,q=0.1:0.9"
TRUTH = {"p": Fraction(3, 10), "q": Fraction(3, 5)}
Change = Callable[[Certificate], Certificate]


@pytest.fixture(scope="module")
def model() -> tr.ParametricMDP:
    built = load_prism_text(TEXT, box=BOX)
    assert isinstance(built, tr.ParametricMDP)
    return built


@pytest.fixture(scope="module")
def counts(model: tr.ParametricMDP) -> tr.Counts:
    return tr.Simulator(model.instantiate(TRUTH), model_hash=model.hash()).episodes(3000, seed=2)


@pytest.fixture(scope="module")
def learned(model: tr.ParametricMDP, counts: tr.Counts) -> Certificate:
    problem = model.problem('Pmax=? [ F "won" ]')
    return certificate_of(tr.learn(problem, counts, sets="expression", region="polytope", delta=0.05), counts)


def proved(certificate: Certificate, exact: bool = False) -> bool:
    return all(one.passed for one in check(certificate, RATIONAL if exact else FLOAT64).checks)


def refusal(certificate: Certificate) -> str:
    """Why it is refused; it must be."""
    try:
        wrong = [one for one in check(certificate).checks if not one.passed]
    except InputError as error:
        return str(error)
    assert wrong
    return f"{wrong[0].name}: {wrong[0].detail}"


# --- honest ones -----------------------------------------------------------------------------------


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("sets", "region"),
    [("tied", None), ("untied", None), ("expression", "polytope"), ("rectangular", "polytope")],
)
def test_learned_results_verify(
    sets: str, region: str | None, model: tr.ParametricMDP, counts: tr.Counts
) -> None:
    problem = model.problem('Pmax=? [ F "won" ]')
    result = tr.learn(problem, counts, sets=sets, region=region, delta=0.05)
    certificate = certificate_of(result, counts)
    assert proved(certificate)
    assert proved(certificate, exact=True)
    claim, interval = certificate.claims[0], result.robust.interval
    assert claim.lower <= interval.lower + 1e-9
    assert claim.upper >= interval.upper - 1e-9
    slack = 0.02 if sets == "rectangular" else 1e-4  # nature's joint choice is relaxed to bounds
    assert claim.lower >= interval.lower - slack
    assert claim.upper <= interval.upper + slack


@pytest.mark.parametrize("sets", ["expression", "rectangular", "coupled"])
def test_results_over_the_domain_verify(sets: str, model: tr.ParametricMDP) -> None:
    problem = model.problem('Pmin=? [ F<=6 "won" ]')
    certificate = certificate_of(tr.solve(problem, sets=sets))
    assert certificate.problem.denominator is not None
    assert len(certificate.problem.denominator) == 3
    assert proved(certificate)
    assert proved(certificate, exact=True)
    value = tr.solve(problem.at(**TRUTH)).lower[0]
    assert certificate.claims[0].lower <= value <= certificate.claims[0].upper


def test_rewards_with_parameters_beside_quotients(counts: tr.Counts) -> None:
    text = TEXT + 'rewards "cost" [a] true : 1+2*p; [r] true : q; endrewards'
    model = load_prism_text(text, box=BOX)
    assert isinstance(model, tr.ParametricMDP)
    problem = model.problem('R{"cost"}max=? [ C<=5 ]')
    data = tr.Simulator(model.instantiate(TRUTH), model_hash=model.hash()).episodes(1000, seed=2)
    certificate = certificate_of(
        tr.learn(problem, data, sets="expression", region="polytope", delta=0.05), data
    )
    assert proved(certificate)
    assert proved(certificate, exact=True)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, log, proof = tmp_path / "m.prism", tmp_path / "log.csv", tmp_path / "m.cert"
    source.write_text(TEXT, encoding="utf-8")
    about = [str(source), "--param", BOX]
    asked = ["--prop", 'Pmax=? [ F "won" ]']
    run("sample", *about, "--at", "p=0.3,q=0.6", "--episodes", "500", "--seed", "1", "-o", str(log))
    options = ["--data", str(log), "--delta", "0.05", "--certificate", str(proof)]
    assert run("learn", *about, *asked, *options, "--region", "polytope") == 0
    assert run("verify", str(proof), "--exact", "--model", *about, *asked, "--data", str(log)) == 0
    other = tmp_path / "other.prism"
    other.write_text(
        TEXT.replace("p*q/(1+p*q) :", "1/(1+p*q) :").replace("1/(1+p*q) : (s'=3)", "p*q/(1+p*q) : (s'=3)")
    )
    capsys.readouterr()
    assert run("verify", str(proof), "--model", str(other), "--param", BOX, *asked) == 1
    assert "another model: 'polynomial' differs" in capsys.readouterr().err
    target = tmp_path / "wider.cert"
    assert run("learn", *about, *asked, *options[:-1], str(target), "--region", "ellipsoid") == 0
    assert "the certificate depends on an interval for every event" in capsys.readouterr().err
    assert run("verify", str(target), "--model", *about, *asked) == 0


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("region", "sets", "question"),
    [
        ("polytope", "coupled", 'Pmax=? [ F "won" ]'),
        ("likelihood", None, 'Pmin=? [ F<=6 "won" ]'),
        ("ellipsoid", "rectangular", 'Pmax=? [ F "won" ]'),
        ("slab", None, 'Pmax=? [ F "won" ]'),
        ("joint", None, 'Pmax=? [ F "won" ]'),
    ],
)
def test_other_regions_are_certified_by_intervals(
    region: str,
    sets: str | None,
    question: str,
    model: tr.ParametricMDP,
    counts: tr.Counts,
    tmp_path: Path,
) -> None:
    """The same policy, at the same confidence, over tied intervals; the truth lies within. The two rest on
    different statements, so that data alone may make them exclude each other."""
    problem = model.problem(question)
    result = tr.learn(problem, counts, delta=0.05, region=region, sets=sets)
    low, high = tr.certify(result, tmp_path / "a.cert")["robust policy"]
    value = tr.solve(problem.at(**TRUTH), policy=result.robust.policy).bounds
    assert low <= value[0] and value[1] <= high and high - low < 0.4
    own = {"model": model, "property": question, "data": counts, "policy": result.robust.policy}
    verdict = tr.verify(tmp_path / "a.cert", **own)
    assert verdict.word == "proved" and verdict.not_tied == ()
    far = replace(result, robust=replace(result.robust, interval=Interval(-2.0, -1.0)))
    with pytest.raises(tr.CannotCertify, match="the model is likely wrong"):
        tr.certify(far, tmp_path / "b.cert")
    assert not (tmp_path / "b.cert").exists()


def test_differences_of_quotients_are_refused_in_words(
    model: tr.ParametricMDP, counts: tr.Counts, tmp_path: Path
) -> None:
    result = tr.improve(model.problem('Pmax=? [ F "won" ]'), counts, baseline="uniform", delta=0.05)
    with pytest.raises(tr.TightropeError, match=r"differences of policies in models whose|no improvement"):
        tr.certify(result, tmp_path / "a.cert")
    assert not list(tmp_path.iterdir())


def test_a_denominator_that_constraints_keep_positive_is_refused_in_words() -> None:
    text = """
    dtmc const double p; const double q;
    module m
      s : [0..2];
      [] s=0 -> 0.1/(1-p-q) : (s'=1) + 1-0.1/(1-p-q) : (s'=2);
      [] s>0 -> true;
    endmodule"""
    model = load_prism_text(text, box=BOX, domain="p + q <= 0.9")
    assert isinstance(model, tr.ParametricMDP)
    result = tr.solve(model.problem("P=? [ F s=1 ]"), sets="expression")
    with pytest.raises(InputError, match=r"1 - p - q is not 0 on the domain, but certificates need that"):
        certificate_of(result)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    return int(stopped.value.code or 0)


# --- false ones ------------------------------------------------------------------------------------


def with_problem(**changes: Any) -> Change:
    return lambda c: replace(c, problem=replace(c.problem, **{k: f(c.problem) for k, f in changes.items()}))


def with_region(**changes: Any) -> Change:
    def changed(c: Certificate) -> Certificate:
        assert c.learned is not None
        assert c.learned.region is not None
        region = replace(c.learned.region, **{k: f(c.learned.region) for k, f in changes.items()})
        return replace(c, learned=replace(c.learned, region=region))

    return changed


def swap_sides(problem: Any) -> Any:
    """Every p/(p+q+1) becomes (p+q+1)/p, in name: numerators take the place of denominators."""
    return tuple({((0, 1),): Fraction(1)} for _ in problem.denominator)


def powered(problem: Any) -> Any:
    """Reciprocals to the second power."""
    return tuple(
        {tuple((i, 2 if i >= 2 else e) for i, e in m): c for m, c in one.items()}
        for one in problem.polynomial
    )


def twice(problem: Any) -> Any:
    """A reciprocal of its own in every second term."""
    return tuple(
        {(*m[:-1], (2 + j % 2, 1)) if m and m[-1][0] >= 2 else m: c for j, (m, c) in enumerate(one.items())}
        for one in problem.polynomial
    )


def negative(problem: Any) -> Any:
    """Numerators and denominators with the other sign: the same functions, not proved positive."""
    return tuple({m: -c for m, c in g.items()} for g in problem.denominator)


def negative_tops(problem: Any) -> Any:
    return tuple({m: -c if m and m[-1][0] >= 2 else c for m, c in one.items()} for one in problem.polynomial)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_problem(denominator=swap_sides), "the intervals do not fit the model's events"),
        (with_problem(denominator=negative, polynomial=negative_tops), "not proved to be positive"),
        (
            with_problem(domain=lambda p: replace(p.domain, lower=(Fraction(-2), Fraction(1, 10)))),
            "not proved to be positive",
        ),
        (with_problem(polynomial=powered), "divided by what is not a denominator"),
        (with_problem(polynomial=twice), "not a quotient with one denominator"),
        (with_problem(denominator=lambda p: p.denominator[:2]), "a parameter's number is out of range"),
        (with_problem(denominator=lambda p: (*p.denominator[:2], {((4, 1),): Fraction(1)})), "is not there"),
        (with_problem(denominator=lambda p: None), "a parameter's number is out of range"),
        (
            with_problem(data=lambda p: replace(p.data, method="likelihood")),
            "quotients are for intervals alone",
        ),
    ],
)
def test_false_problems_are_refused(change: Change, words: str, learned: Certificate) -> None:
    assert words in refusal(change(learned))


def test_other_denominators_do_not_sum_to_one(model: tr.ParametricMDP) -> None:
    honest = certificate_of(tr.solve(model.problem('Pmin=? [ F<=6 "won" ]'), sets="expression"))
    for denominator in (lambda p: p.denominator[::-1], swap_sides):
        assert "do not sum to 1" in refusal(with_problem(denominator=denominator)(honest))


def test_false_claims_and_intervals_are_refused(learned: Certificate) -> None:
    claim, hints = learned.claims[0], learned.learned
    assert hints is not None
    assert hints.lower is not None
    for narrow in (replace(claim, lower=claim.lower + 1e-3), replace(claim, upper=claim.upper - 1e-3)):
        assert "is not proved" in refusal(replace(learned, claims=(narrow,)))
    narrowed = replace(hints, lower=np.minimum(hints.lower + 0.01, 1.0))
    assert "events' intervals" in refusal(replace(learned, learned=narrowed))
    joint = [
        replace(v, upper_basis=np.zeros(learned.problem.graph.choices, np.int64)) for v in learned.values
    ]
    assert "of quotients" in refusal(replace(learned, values=tuple(joint)))


def test_hints_that_point_elsewhere_prove_less_never_more(
    learned: Certificate, model: tr.ParametricMDP
) -> None:
    """Whatever bases and places: what follows holds at every point of the region; the claim is refused."""
    generator = np.random.default_rng(8)
    assert learned.learned is not None
    region = learned.learned.region
    assert region is not None
    honest = Learned(learned, FLOAT64).projection
    points = generator.uniform(0.1, 0.9, (4000, 2))
    values = model.expressions.values_many(points)
    inside = ((values >= honest.lower - 1e-12) & (values <= honest.upper + 1e-12)).all(axis=1)
    assert inside.sum() > 3
    for _ in range(12):
        near = generator.uniform(-1.0, 2.0, len(region.bound_expression))
        bases = generator.integers(0, 4 + len(region.row), region.bound_basis.shape)
        places = with_region(bound_near=lambda _, near=near: near)(learned)
        both = with_region(bound_basis=lambda _, bases=bases: bases)(places)
        rolled = with_region(bound_expression=lambda r: np.roll(r.bound_expression, 3))(places)
        for false in (places, both, rolled):
            found = Learned(false, FLOAT64).projection
            assert (values[inside] >= found.lower - 1e-15).all()
            assert (values[inside] <= found.upper + 1e-15).all()
    assert "fails at" in refusal(both)
    beyond = with_region(bound_expression=lambda r: r.bound_expression + 99)(learned)
    assert "a bound of an expression that is not there" in refusal(beyond)


# --- the arithmetic of quotients -------------------------------------------------------------------


def over(denominators: list[Any], lower: list[Fraction], upper: list[Fraction]) -> Any:
    """As much of a problem as quotients are read with."""
    domain = Domain(tuple(lower), tuple(upper), (), (), np.zeros(0, dtype=np.bool_))
    return SimpleNamespace(domain=domain, denominator=tuple(denominators), data=None)


def test_ranges_and_sums_against_random_points() -> None:
    generator = random.Random(4)
    lower, upper = [Fraction(1, 10)] * 2, [Fraction(9, 10)] * 2
    for _ in range(40):
        bottom = {
            (): Fraction(generator.randint(2, 5)),
            ((0, 1), (1, 1)): Fraction(1),
            ((1, 2),): Fraction(-1),
        }
        top = {m: Fraction(generator.randint(-3, 3) or 1) for m in ((), ((0, 1),), ((0, 2), (1, 1)))}
        quotients = QuotientSpace(over([bottom], lower, upper), [])
        expression = {(*m, (2, 1)): c for m, c in top.items()}
        low, high = quotients.range(expression, (lower, upper))
        assert quotients.split(expression) == (top, bottom)
        assert not quotients.complement(add(expression, quotients.complement(expression)))
        assert quotients.complement(add(expression, expression))
        for _ in range(20):
            x = [Fraction(generator.randint(10, 90), 100) for _ in range(2)]
            f, g = (
                sum(
                    (c * x[0] ** dict(m).get(0, 0) * x[1] ** dict(m).get(1, 0) for m, c in side.items()),
                    Fraction(0),
                )
                for side in (top, bottom)
            )
            assert low <= f / g <= high
            assert quotients.ranges[0][0] <= g <= quotients.ranges[0][1]


def test_sums_over_several_denominators() -> None:
    """x/(1+x) + y/(1+y) + (1 − x·y)/((1+x)·(1+y)) = 1."""
    one, x, y = Fraction(1), ((0, 1),), ((1, 1),)
    bottoms = [{(): one, x: one}, {(): one, y: one}, {(): one, x: one, y: one, (*x, *y): one}]
    quotients = QuotientSpace(over(bottoms, [Fraction(0)] * 2, [one] * 2), [])
    last = {((4, 1),): one, (*x, *y, (4, 1)): -one}
    parts = [{(*x, (2, 1)): one}, {(*y, (3, 1)): one}, last]
    assert not quotients.complement({**parts[0], **parts[1], **parts[2]})
    assert quotients.complement({**parts[0], **parts[1]})
