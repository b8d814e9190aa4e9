"""Probabilities that are quotients of polynomials, from their canonical form to what is learned of them."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import stormpy
from stormpy import io

import tightrope as tr
from effort import repeats
from storm import MODELS, plain_from_storm, plain_from_tightrope
from tightrope.ambiguity.sets import expression
from tightrope.cli.app import main
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.errors import InputError
from tightrope.model.expressions import ExpressionTable
from tightrope.model.polynomial import (
    Polynomial,
    RationalFunction,
    cancel,
    normalise,
    quotient,
)
from tightrope.model.ranges import ranges_over_box
from tightrope.prism.load import load_prism_text
from tightrope.regions.event_polytope import domain_region, polytope_region
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import event_intervals

P, Q, S = (Polynomial.variable(i) for i in range(3))
RACE = """
dtmc
const double p;
const double q;
module race
  s : [0..2] init 0;
  i : [0..3] init 0;
  [] s=0 & i<3 -> p/(p+q) : (i'=i+1) + q/(p+q) : (s'=1);
  [] s=0 & i=3 -> 2*p/(2*p+q) : (s'=2) + q/(2*p+q) : (s'=1);
  [] s>0 -> true;
endmodule
label "won" = s=2;
"""
BOX = "p=0.1:0.9,q=0.1:0.9"


def race(box: str = BOX) -> tr.ParametricMDP:
    model = load_prism_text(RACE, box=box)
    assert isinstance(model, tr.ParametricMDP)
    return model


def drawn(generator: random.Random, degree: int, terms: int) -> Polynomial:
    """A random polynomial in three variables that is not 0."""
    found = Polynomial({})
    while not found.terms:
        for _ in range(terms):
            exponents = [generator.randint(0, degree) for _ in range(3)]
            monomial = tuple((i, e) for i, e in enumerate(exponents) if e)
            coefficient = Fraction(generator.randint(-4, 4), generator.randint(1, 3))
            found = found + Polynomial({monomial: coefficient})
    return found


# --- one function ----------------------------------------------------------------------------------


def test_what_is_common_is_cancelled_and_nothing_else() -> None:
    generator = random.Random(3)
    found = 0
    for _ in range(40):
        a, b, c = drawn(generator, 2, 3), drawn(generator, 1, 2), drawn(generator, 1, 2)
        left, right = cancel(a * c, b * c)
        assert left * b == right * a, "the quotient is the same"
        assert cancel(left, right) == (left, right), "nothing is left to cancel"
        assert left.degree <= a.degree, "what was multiplied in is gone"
        assert right.degree <= b.degree
        found += not c.is_constant
    assert found > 20


def test_denominators_are_written_with_coprime_whole_coefficients() -> None:
    generator = random.Random(5)
    for _ in range(30):
        polynomial = drawn(generator, 2, 2)
        primitive, factor = normalise(polynomial)
        assert primitive * factor == polynomial
        assert all(c.denominator == 1 for c in primitive.terms.values())
        assert math.gcd(*(c.numerator for c in primitive.terms.values())) == 1


def test_equal_functions_have_one_form() -> None:
    generator = random.Random(7)
    for _ in range(30):
        a, b, c = drawn(generator, 1, 3), drawn(generator, 1, 3), drawn(generator, 1, 2)
        one, other = quotient(a * c, b * c), quotient(a, b)
        assert one == other
        assert hash(one) == hash(other)
        point = [Fraction(generator.randint(1, 50), 53) for _ in range(3)]
        if b.evaluate(point) != 0:
            assert other.evaluate(point) == a.evaluate(point) / b.evaluate(point)


def test_arithmetic() -> None:
    half = P / (P + Q)
    assert isinstance(half, RationalFunction)
    assert half + Q / (P + Q) == Polynomial.constant(1)
    assert 1 - half == Q / (P + Q)
    assert half - half == Polynomial({})
    assert half * (P + Q) == P
    assert 2 / (1 / half) == 2 * half
    assert (P * P - Q * Q) / (P + Q) == P - Q
    assert half**2 == P * P / (P * P + 2 * P * Q + Q * Q)
    assert 0.5 * half == P / (2 * P + 2 * Q)
    assert (1 / (1 - P)).text(["p"]) == "1/(1 - p)"
    assert ((P / 3 + 1) / (2 * P - 2)).text(["p"]) == "(-p - 3)/(6 - 6*p)"
    with pytest.raises(ZeroDivisionError):
        P / Polynomial({})


def test_a_table_has_equal_functions_once() -> None:
    table = ExpressionTable(["p", "q"])
    first = table.add(P / (P + Q))
    assert table.add(2 * P * Q / (2 * P * Q + 2 * Q * Q)) == first
    second = table.add(Q / (P + Q))
    assert table.add(table.function(first) + table.function(second)) == table.ONE
    unused = table.add(1 / (1 + P))
    assert table.add(table.function(unused) * (1 + P)) == table.ONE
    expressions, rows = table.freeze(np.array([first, second, table.ONE]))
    assert [expressions.text(row) for row in rows] == ["p/(p + q)", "q/(p + q)", "1"]
    assert expressions.denominators == (P + Q,)
    assert expressions.complement[rows].tolist() == [rows[1], rows[0], -1]
    point = (Fraction(1, 3), Fraction(1, 5))
    assert expressions.exact_values(point).to_fractions()[rows[0]] == Fraction(5, 8)
    assert expressions.values_many(np.array([[1 / 3, 0.2]]))[0, rows[0]] == pytest.approx(5 / 8)


# --- models ----------------------------------------------------------------------------------------


def test_values_at_a_point_are_exact() -> None:
    model = race()
    p, q = Fraction(1, 3), Fraction(1, 7)
    value = (p / (p + q)) ** 3 * 2 * p / (2 * p + q)
    solution = tr.solve(model.instantiate(p=p, q=q).problem('P=? [ F "won" ]'), precision=1e-12)
    assert solution.lower[0] <= value <= solution.upper[0]
    assert solution.upper[0] - solution.lower[0] <= 1e-11


@pytest.mark.parametrize(
    ("probability", "box", "message"),
    [
        ("p/(p+q)", None, r"the denominator p \+ q is 0 at p=0, q=0"),
        ("p/(p-q)", BOX, "the denominator p - q is 0 at"),
        (
            "1/(q-p+0.2)",
            BOX,
            r"the denominator -5\*p \+ 5\*q \+ 1 changes its sign on the domain, -3 at p=0.9",
        ),
        ("(p+q)/(p+2)", "p=0.1:1,q=0:3", r"the probability \(p \+ q\)/\(p \+ 2\) is 1.47619 at p=0.1, q=3"),
    ],
)
def test_denominators_and_ranges_are_proved(probability: str, box: str | None, message: str) -> None:
    text = RACE.replace("p/(p+q) :", f"{probability} :").replace("q/(p+q) :", f"1-{probability} :")
    with pytest.raises(InputError, match=message) as caught:
        load_prism_text(text, box=box)
    assert "choice number 0 of state (s=0,i=0)" in str(caught.value)
    assert caught.value.hint is not None


def test_negative_denominators_and_constraints_of_the_domain() -> None:
    """p - 1 is negative on the whole domain; 1 - p - q is positive only where the constraint holds."""
    text = RACE.replace("p/(p+q) :", "-q/(p-1) :").replace("q/(p+q) :", "1-q/(1-p) :")
    model = load_prism_text(text, box="p=0:0.5,q=0.1:0.5")
    assert "q/(1 - p)" in [model.expressions.text(e) for e in range(len(model.expressions))]
    text = RACE.replace("p/(p+q) :", "0.1/(1-p-q) :").replace("q/(p+q) :", "1-0.1/(1-p-q) :")
    constrained = load_prism_text(text, box=BOX, domain="p + q <= 0.9")
    low, high = Coordinates.of(constrained.expressions, constrained.parameters).lower[2:3], 1
    assert low[0] <= 1 / 0.8 <= 10 * high
    sets = expression(domain_region(constrained), constrained)
    assert sets.upper.max() <= 1.0
    with pytest.raises(InputError, match=r"changes its sign|is 0 at"):
        load_prism_text(text, box=BOX)


def test_sums_must_be_one_as_functions() -> None:
    with pytest.raises(
        InputError, match=r"the probabilities of this command sum to \(p \+ 2\*q\)/\(p \+ q\), not 1"
    ):
        load_prism_text(RACE.replace(" q/(p+q) :", " 2*q/(p+q) :"), box=BOX)
    parameters = tr.Parameters.box(p=(0.1, 1), q=(0.1, 1))
    p, q = parameters.symbols()
    rows = [(0, "a", {1: p / (p + q), 0: q / (p + 2 * q)}), (1, "", {1: 1})]
    with pytest.raises(InputError, match="probabilities sum to"):
        tr.build_from_rows(rows, parameters)


def test_division_by_zero_in_a_state_has_its_place() -> None:
    text = RACE.replace("p/(p+q) :", "i*p/(i*p+i*q) :").replace("q/(p+q) :", "i*q/(i*p+i*q) :")
    with pytest.raises(InputError, match="a probability of this command divides by 0") as caught:
        load_prism_text(text, box=BOX)
    assert "(s=0,i=0)" in str(caught.value)


def test_where_quotients_are_refused(tmp_path: Path) -> None:
    rates = tmp_path / "rates.prism"
    rates.write_text("ctmc const double p; module m x:bool; [] !x -> 1/p : (x'=true); endmodule")
    with pytest.raises(InputError, match="a rate must be a polynomial, not a quotient"):
        tr.load(rates, params={"p": (1, 2)})
    parameters = tr.Parameters.box(p=(0.1, 1))
    (p,) = parameters.symbols()
    rows = [(0, "a", {0: 1 / (1 + p), 1: p / (1 + p)}), (1, "", {1: 1})]
    with pytest.raises(InputError, match=r"the rewards 'cost' differ by successor .* are quotients"):
        tr.build_from_rows(rows, parameters, transition_rewards={"cost": [{1: 2}, {}]})


def test_python_builds_the_same_model() -> None:
    parameters = tr.Parameters.box(p=(0.1, 0.9), q=(0.1, 0.9))
    p, q = parameters.symbols()

    def successors(state: tuple[int, int]) -> dict:
        s, i = state
        if s > 0:
            return {"": {state: 1}}
        if i < 3:
            return {"": {(0, i + 1): p / (p + q), (1, i): q / (p + q)}}
        return {"": {(2, i): 2 * p / (2 * p + q), (1, i): 1 - 2 * p / (2 * p + q)}}

    built = tr.build_from_function(
        (0, 0), successors, parameters, labels={"won": lambda state: state[0] == 2}
    )
    loaded = race()
    point = {"p": Fraction(2, 7), "q": Fraction(3, 11)}
    for model in (built, loaded):
        assert isinstance(model, tr.ParametricMDP)
        value = tr.solve(model.instantiate(point).problem('P=? [ F "won" ]'))
        assert value.lower[0] == pytest.approx(float((Fraction(22, 43)) ** 3 * Fraction(44, 65)), rel=1e-6)
    texts = [{m.expressions.text(e) for e in range(len(m.expressions))} for m in (built, loaded)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("ending", ["drn", "jani"])
def test_files_keep_the_model(ending: str, tmp_path: Path) -> None:
    """Written, read back, and read by Storm: the same probabilities at a point."""
    source = MODELS / "races.prism"
    model = tr.load(source)
    path = tmp_path / f"races.{ending}"
    if ending == "drn":
        model.save(path)
    else:
        assert run("export", str(source), "-o", str(path)) == 0
    again = tr.load(path)
    point = {"p": Fraction(1, 3), "q": Fraction(2, 7)}
    values = [sorted(m.instantiate(point).probability.tolist()) for m in (model, again)]
    assert values[0] == values[1]
    assert len(again.expressions.denominators) == len(model.expressions.denominators) == 6
    if ending == "drn":
        assert again.hash() == model.hash()
        options = io.DirectEncodingParserOptions()
        options.build_choice_labeling = True
        read = stormpy.build_model_from_drn[stormpy.RationalFunction](str(path), options=options)
        ours = plain_from_tightrope(model, point, action_names=True, by_index=True)
        assert plain_from_storm(read, point).choices == ours.choices


# --- ranges and regions ----------------------------------------------------------------------------


def test_ranges_enclose_and_are_attained_at_corners() -> None:
    table = ExpressionTable(["p", "q"])
    rows = [table.add(P / (P + Q)), table.add(P * Q / (1 + P * P)), table.add(P * P / (P * P + Q))]
    expressions, rows = table.freeze(np.array(rows))
    low, high = ranges_over_box(
        expressions, (Fraction(1, 5), Fraction(3, 10)), (Fraction(4, 5), Fraction(9, 10))
    )
    assert low[rows[0]] == pytest.approx(2 / 11, abs=1e-14)
    assert high[rows[0]] == pytest.approx(8 / 11, abs=1e-14)
    points = np.random.default_rng(1).uniform([0.2, 0.3], [0.8, 0.9], (2000, 2))
    values = expressions.values_many(points)
    assert (values >= low).all()
    assert (values <= high).all()
    assert (values.max(axis=0)[rows] >= high[rows] - 0.13).all()


def test_a_quotient_over_a_region_is_a_linear_fractional_program() -> None:
    """On the triangle 0.1 ≤ p, q and p + q ≤ 0.5 the quotient p/(p+q) lies between 1/5 and 4/5."""
    model = load_prism_text(RACE, box=BOX, domain="p + q <= 0.5")
    sets = expression(domain_region(model), model)
    lower = {model.expressions.text(int(e)): low for e, low in zip(model.expression, sets.lower, strict=True)}
    upper = {model.expressions.text(int(e)): up for e, up in zip(model.expression, sets.upper, strict=True)}
    assert lower["p/(p + q)"] == pytest.approx(0.2, abs=1e-3)
    assert upper["p/(p + q)"] == pytest.approx(0.8, abs=1e-3)
    assert lower["p/(p + q)"] <= 0.2
    assert upper["p/(p + q)"] >= 0.8
    assert upper["2*p/(2*p + q)"] == pytest.approx(8 / 9, abs=1e-3)


def test_what_is_learned_of_one_quotient_bounds_another() -> None:
    """Only p/(p+q) is seen; 2p/(2p+q) follows from it: 2x/(1+x)."""
    model = race()
    counts = np.zeros(model.transitions, dtype=np.int64)
    counts[:2] = 6000, 4000
    data = tr.Counts(
        counts, model.transition_start, SamplingDesign(SamplingKind.GENERATIVE_FIXED), model.hash()
    )
    region = polytope_region(event_intervals(model, data, 0.05))
    sets = expression(region, model)
    at = {model.expressions.text(int(e)): i for i, e in enumerate(model.expression)}
    ends = sets.lower[at["p/(p + q)"]], sets.upper[at["p/(p + q)"]]
    assert 0.57 < ends[0] < 0.6 < ends[1] < 0.63
    other = at["2*p/(2*p + q)"]
    assert sets.lower[other] == pytest.approx(2 * ends[0] / (1 + ends[0]), abs=1e-3)
    assert sets.upper[other] == pytest.approx(2 * ends[1] / (1 + ends[1]), abs=1e-3)


def test_coordinates_make_quotients_affine() -> None:
    model = load_prism_text(
        RACE.replace("2*p/(2*p+q)", "p*q/(1+p*q)").replace("q/(2*p+q)", "1/(1+p*q)"), box=BOX
    )
    coordinates = Coordinates.of(model.expressions, model.parameters)
    functions = coordinates.functions(model.expressions)
    points = np.random.default_rng(2).uniform(0.1, 0.9, (50, 2))
    x = coordinates.lift(points)
    assert (x >= coordinates.lower).all()
    assert (x <= coordinates.upper).all()
    assert np.allclose(x @ functions.linear.T + functions.constant, model.expressions.values_many(points))
    exact = coordinates.lift_exact([Fraction(1, 3), Fraction(1, 4)])
    assert [float(v) for v in exact] == pytest.approx(coordinates.lift(np.array([[1 / 3, 0.25]]))[0].tolist())
    region = domain_region(model)
    assert all(region.contains(point) for point in points[:10].tolist())
    lower, upper = region.support(functions.linear)
    values = x @ functions.linear.T
    assert (values >= lower - 1e-9).all()
    assert (values <= upper + 1e-9).all()
    assert "p/(p + q)" in coordinates.names


# --- learning --------------------------------------------------------------------------------------


def run(*arguments: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    return int(stopped.value.code or 0)


def simulated(model: tr.ParametricMDP, generator: np.random.Generator, visits: int, point: dict) -> tr.Counts:
    """So many draws of every choice at a point."""
    probability = model.instantiate(point).probability
    counts = np.zeros(model.transitions, dtype=np.int64)
    for start, end in zip(model.transition_start[:-1], model.transition_start[1:], strict=True):
        counts[start:end] = generator.multinomial(visits, probability[start:end])
    design = SamplingDesign(SamplingKind.GENERATIVE_FIXED)
    return tr.Counts(counts, model.transition_start, design, model.hash())


def test_learned_bounds_contain_the_true_value() -> None:
    """Data sets at δ = 0.2: bounds and region hold at least as often as promised."""
    model, truth = race(), {"p": 0.3, "q": 0.2}
    values = model.instantiate(truth).probability
    generator = np.random.default_rng(17)
    missed = 0
    runs = repeats(60)
    for _ in range(runs):
        data = simulated(model, generator, 25, truth)
        region = polytope_region(event_intervals(model, data, 0.2))
        if region.emptiness.is_empty:
            missed += 1
            continue
        sets = expression(region, model)
        holds = bool((sets.lower <= values).all() and (values <= sets.upper).all())
        assert not region.contains([0.3, 0.2]) or holds, "a region with the truth keeps its quotients"
        missed += not holds
    assert missed <= runs * 0.2 + 3 * (runs * 0.16) ** 0.5  # and three standard deviations


@pytest.fixture(scope="module")
def batched() -> tr.Counts:
    model = race()
    return tr.Simulator(model.instantiate(p=0.3, q=0.2), model_hash=model.hash()).episodes(4000, seed=5)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("sets", "region"),
    [
        ("tied", None),
        ("parameter", "polytope"),
        ("expression", "polytope"),
        ("expression", "likelihood"),
        ("rectangular", "ellipsoid"),
        ("rectangular", "polytope"),
    ],
)
def test_all_sets_and_regions_learn_quotients(sets: str, region: str | None, batched: tr.Counts) -> None:
    problem = race().problem('P=? [ F "won" ]')
    result = tr.learn(problem, batched, sets=sets, region=region, delta=0.01)
    value = float(Fraction(3, 5) ** 3 * Fraction(3, 4))
    assert result.robust.interval.lower <= value <= result.robust.interval.upper
    assert result.robust.interval.upper - result.robust.interval.lower < 0.2 or sets == "parameter"
    assert result.fit is not None
    assert result.fit.verdict == "no evidence against it"


def test_the_fit_is_tested_with_power() -> None:
    """2p/(2p+q) as rare as it cannot be beside p/(p+q): the model is contradicted."""
    model = race()
    counts = np.zeros(model.transitions, dtype=np.int64)
    first = int(np.argmax(model.expression == model.expressions.index_of(P / (P + Q))))
    last = int(np.argmax(model.expression == model.expressions.index_of(2 * P / (2 * P + Q))))
    counts[first : first + 2] = 1500, 500
    counts[last], counts[last + 1 if last + 1 < len(counts) else last - 1] = 300, 1700
    design = SamplingDesign(SamplingKind.GENERATIVE_FIXED)
    data = tr.Counts(counts, model.transition_start, design, model.hash())
    result = tr.learn(model.problem('P=? [ F "won" ]'), data, sets="tied", delta=0.01)
    assert result.fit is not None
    assert result.fit.verdict == "model contradicted"


def test_certificates_at_a_point(tmp_path: Path) -> None:
    source, proof = tmp_path / "race.prism", tmp_path / "race.cert"
    source.write_text(RACE, encoding="utf-8")
    about = [str(source), "--param", "p=0.1:0.9,q=0.1:0.9", "--prop", 'P=? [ F "won" ]']
    assert run("check", *about, "--at", "p=1/3,q=1/7", "--certificate", str(proof)) == 0
    asked = ["--model", *about, "--at", "p=1/3,q=1/7"]
    assert run("verify", str(proof), "--exact", *asked) == 0
