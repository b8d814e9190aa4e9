"""Boxes, domains and points as users write them, and the vertices of a domain."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import InputError
from tightrope.model.parameters import (
    LinearConstraint,
    Parameters,
    domain_vertices,
    narrow_domain,
    parse_box,
    parse_domain,
    parse_point,
)


def test_a_box_is_exact_and_defaults_to_the_unit_interval():
    box = parse_box("p=0.1:1/3", ["p", "q"])
    assert (box.lower, box.upper) == ((Fraction(1, 10), 0), (Fraction(1, 3), 1))


def test_a_domain_narrows_the_box_and_keeps_linear_constraints():
    domain = parse_domain("0.1<=p<=0.9, p+q<=1, 2*p - 1/3 >= q, r = 1e-2", ["p", "q", "r"])
    assert domain.lower == (Fraction(1, 10), 0, Fraction(1, 100))
    assert domain.upper == (Fraction(9, 10), 1, Fraction(1, 100))
    assert [c.text(domain.names) for c in domain.constraints] == ["p + q <= 1", "-2*p + q <= -1/3"]
    assert parse_domain(domain.text(), domain.names) == domain


def test_what_params_and_domain_both_say_of_a_parameter_holds():
    """Ranges that nobody gave are replaced: a rate may be above 1, whatever the unit box says."""
    base = Parameters.unit_box(("p", "q"))
    both = narrow_domain(base, "p=0.1:0.3", "p<=0.5, 0.2<=q<=2")
    assert (both.lower, both.upper) == ((Fraction(1, 10), Fraction(1, 5)), (Fraction(3, 10), Fraction(2)))
    assert narrow_domain(base, "p=0.1:0.3", "0.2<=p<=0.5").lower[0] == Fraction(1, 5)
    with pytest.raises(InputError, match=r"`params` says 1/10 to 3/10, and `domain` 2/5 to 1/2"):
        narrow_domain(base, "p=0.1:0.3", "0.4<=p<=0.5")


def test_a_point_names_every_parameter_once():
    assert parse_point("q=.5, p=1e-3", ["p", "q"]) == (Fraction(1, 1000), Fraction(1, 2))


WRONG = [
    (parse_domain, "p*q<=1", "`domain`:1:2", "product of parameters"),
    (parse_domain, "p<=1,", "`domain`:1:6", "missing after the last comma"),
    (parse_domain, "p", "`domain`:1:2", "comparison is missing"),
    (parse_domain, "p<=", "`domain`:1:4", "a parameter or '(' expected, but the text ends"),
    (parse_domain, "1<=2", "`domain`:1:1", "no parameter in it"),
    (parse_domain, "0<=p<=q<=1", "`domain`:1:1", "at most two comparisons"),
    (parse_domain, "p ? 3", "`domain`:1:3", "unexpected character '?'"),
    (parse_domain, "p/0<=1", "`domain`:1:2", "other than 0"),
    (parse_domain, "(p+q<=1", "`domain`:1:5", "')' expected"),
    (parse_box, "zz=0:1", "`params`:1:1", "'zz' is not a parameter"),
    (parse_box, "p=1:0", "`params`:1:5", "range of 'p' is empty"),
    (parse_box, "p=0.1", "`params`:1:6", "':' expected"),
    (parse_box, "p=0:1,p=0:1", "`params`:1:7", "given twice"),
    (parse_point, "p=1,p=2", "`at`:1:5", "given twice"),
    (parse_point, "p=1", "`at`", "no value for parameter q"),
    (parse_point, "p=q,q=1", "`at`:1:3", "number expected"),
    (parse_point, "p==1,q=1", "`at`:1:2", "'=' expected"),
]


@pytest.mark.parametrize(("parse", "text", "place", "message"), WRONG)
def test_wrong_texts_say_where_and_why(parse, text, place, message):
    with pytest.raises(InputError) as caught:
        parse(text, ["p", "q"])
    assert str(caught.value).startswith(place + ":")
    assert message in caught.value.message


@given(st.text(alphabet="pq0.1<=>+-*/():, e", max_size=14))
def test_no_text_gives_anything_but_a_domain_or_an_input_error(text):
    for parse in (parse_box, parse_domain, parse_point):
        try:
            result = parse(text, ["p", "q"])
        except InputError:
            continue
        assert len(result) == 2


def brute_force_vertices(parameters):
    """Every choice of d constraints held with equality, solved exactly."""
    d = len(parameters)
    rows = [
        *((tuple(int(i == j) for j in range(d)), parameters.upper[i]) for i in range(d)),
        *((tuple(-int(i == j) for j in range(d)), -parameters.lower[i]) for i in range(d)),
        *((c.coefficients, c.bound) for c in parameters.constraints),
    ]
    found = set()
    for chosen in combinations(rows, d):
        solution = solve([list(map(Fraction, a)) for a, _ in chosen], [Fraction(b) for _, b in chosen])
        if solution is not None and parameters.contains(solution):
            found.add(tuple(solution))
    return found


def solve(matrix, right):
    n = len(right)
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(n):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n] for row in rows]


@given(st.integers(0, 10**6))
def test_domain_vertices_are_those_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    names = tuple(f"x{i}" for i in range(d))
    constraints = tuple(
        LinearConstraint(
            tuple(Fraction(int(a)) for a in rng.integers(-2, 3, d)),
            Fraction(int(rng.integers(-1, 3)), 2),
            bool(rng.random() < 0.3),
        )
        for _ in range(int(rng.integers(0, 4)))
    )
    parameters = Parameters(names, (Fraction(0),) * d, (Fraction(1),) * d, constraints)
    assert set(domain_vertices(parameters)) == brute_force_vertices(parameters)


def test_the_vertices_of_a_simplex_are_the_unit_vectors():
    simplex = parse_domain("a+b+c+d=1", ["a", "b", "c", "d"])
    assert set(domain_vertices(simplex)) == {tuple(Fraction(int(i == j)) for j in range(4)) for i in range(4)}


def test_many_corners_are_left_to_linear_programs():
    assert domain_vertices(Parameters.unit_box([f"x{i}" for i in range(9)])) is None
    assert len(domain_vertices(Parameters.unit_box([f"x{i}" for i in range(8)]))) == 256


def test_contains_is_exact_at_the_boundary():
    domain = parse_domain("p+q<=1", ["p", "q"])
    third = Fraction(1, 3)
    assert domain.contains([third, 1 - third])
    assert not domain.contains([third, 1 - third + Fraction(1, 10**30)])
