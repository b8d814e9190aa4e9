"""Interning whole batches gives the numbers and the table that interning one by one gives."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tightrope.model.expressions import ExpressionTable
from tightrope.model.polynomial import Monomial, Polynomial, PolynomialArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.explore.probabilities import Deferred, Operation, PolynomialIndex

NAMES = ("p", "q")
MONOMIALS: list[Monomial] = [(), ((0, 1),), ((1, 1),), ((0, 1), (1, 1)), ((0, 3),)]
COEFFICIENTS = [
    Fraction(0),
    Fraction(1),
    Fraction(-1, 3),
    Fraction(7, 2**70),
    Fraction(-(3**50)),
    Fraction(5),
]


def batch(polynomials: list[Polynomial]) -> PolynomialArray:
    terms = {m: RationalArray.from_fractions(p.terms.get(m, 0) for p in polynomials) for m in MONOMIALS}
    return PolynomialArray(terms, len(polynomials))


polynomials = st.dictionaries(st.sampled_from(MONOMIALS), st.sampled_from(COEFFICIENTS)).map(Polynomial)


@given(st.lists(st.lists(polynomials, min_size=1, max_size=8), min_size=1, max_size=4))
def test_the_same_numbers_and_table_as_one_by_one(batches: list[list[Polynomial]]) -> None:
    index, table = PolynomialIndex(NAMES), ExpressionTable(NAMES)
    used: list[int] = []
    for members in batches:
        expected = [table.add(polynomial) for polynomial in members]
        assert index.add_array(batch(members)).tolist() == expected
        found = index.polynomials(np.array(expected))
        assert [found.polynomial(i) for i in range(len(members))] == members
        used += expected[: len(expected) // 2 + 1]
    assert len(index) == len(table)
    ours, our_rows = index.freeze(np.array(used, dtype=np.int32))
    theirs, their_rows = table.freeze(np.array(used, dtype=np.int32))
    assert our_rows.tolist() == their_rows.tolist()
    assert ours.monomials == theirs.monomials
    assert ours.row_start.tolist() == theirs.row_start.tolist()
    assert ours.monomial.tolist() == theirs.monomial.tolist()
    assert ours.coefficient.to_fractions() == theirs.coefficient.to_fractions()


def test_zero_and_one_have_fixed_numbers() -> None:
    index = PolynomialIndex(NAMES)
    assert index.add_array(batch([Polynomial.constant(1), Polynomial({})])).tolist() == [1, 0]


def test_combinations_are_computed_in_the_end() -> None:
    deferred = Deferred()
    numbers = deferred.entries(np.array([10, 20, 10, 30], dtype=np.int32))
    assert numbers.tolist() == [0, 1, 0, 2]
    ten, twenty, thirty = (np.array([n], dtype=np.int32) for n in (0, 1, 2))
    both = deferred.combine(Operation.SUM, ten, twenty)
    product = deferred.combine(Operation.PRODUCT, both, thirty)
    half = deferred.combine(Operation.SHARE, product, np.array([2], dtype=np.int32))
    assert deferred.combine(Operation.SUM, ten, twenty).tolist() == both.tolist()
    asked: list[Operation] = []

    def compute(operation: Operation, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        asked.append(operation)
        by_name = {
            Operation.SUM: left + right,
            Operation.PRODUCT: left * right,
            Operation.SHARE: left // right,
        }
        return by_name[operation].astype(np.int32)

    entries = deferred.resolve(compute)
    assert entries[[*both, *product, *half]].tolist() == [30, 900, 450]
    assert asked == [Operation.SUM, Operation.PRODUCT, Operation.SHARE]
