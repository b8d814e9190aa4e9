"""What a certificate says of a parametric model: expressions, domain and coordinates, exact, as text."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tightrope.model.parameters import Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.statistics.coordinates import Coordinates


def expressions_text(model: ParametricMDP) -> dict[str, Any]:
    """The expressions: rows of [monomial, "coefficient"], monomials of [parameter, exponent]."""
    table = model.expressions
    terms = [[int(m), str(c)] for m, c in zip(table.monomial, table.coefficient.to_fractions(), strict=True)]
    return {
        "parameters": list(table.parameter_names),
        "monomials": [[list(factor) for factor in monomial] for monomial in table.monomials],
        "rows": [terms[a:b] for a, b in pairwise(table.row_start.tolist())],
    }


def domain_text(parameters: Parameters) -> dict[str, Any]:
    """The box and the linear constraints."""
    return {
        "lower": [str(value) for value in parameters.lower],
        "upper": [str(value) for value in parameters.upper],
        "constraints": [
            [[str(c) for c in row.coefficients], str(row.bound), row.is_equality]
            for row in parameters.constraints
        ],
    }


def coordinates_text(coordinates: Coordinates) -> dict[str, Any]:
    """Free parameters, how the others follow, and products."""
    return {
        "free": list(coordinates.free),
        "substitution": [
            _affine(polynomial.terms, len(coordinates.free)) for polynomial in coordinates.substitution
        ],
        "products": [list(pair) for pair in coordinates.products],
    }


def _affine(terms: Mapping[Any, Fraction], size: int) -> list[str]:
    row = [terms.get(((j, 1),), Fraction(0)) for j in range(size)]
    return [str(value) for value in (*row, terms.get((), Fraction(0)))]
