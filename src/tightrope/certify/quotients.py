"""Certificates of models with quotients: which there are, and bases that prove the ends of quotients.

The checker derives its coordinates from numerators and denominators alone (no reciprocals), so the rows of a
region are written again in these, and bases are found over them. An end of f/g is proved by a bound of
f − c·g, c the end that is wanted (`tightrope.certificate.quotients`).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope.ambiguity.sets import SetsKind
from tightrope.certificate.coordinates import polynomial_range
from tightrope.certificate.learned import Learned
from tightrope.certify.problem import to_polynomials
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.ranges import denominators
from tightrope.numerics.arrays import FloatArray
from tightrope.regions.region import RegionKind


def refuse_uncertified(
    model: ParametricMDP, sets: SetsKind | None = None, region: RegionKind | None = None
) -> None:
    """What certificates do not hold: regions that the checker does not know, and some kinds of sets and
    regions where probabilities are quotients. None stands for what is not decided yet.
    """
    if region is not None and region.certificate is None:
        raise InputError(
            f"certificates do not hold the region {region.value}: the checker knows no proof of it",
            hint='leave the certificate out, or use `region="polytope"` or likelihood',
        )
    table = model.expressions
    if not table.denominators:
        return
    if sets is SetsKind.COUPLED:
        raise InputError(
            "probabilities of this model are quotients, and certificates do not hold their coupled values",
            hint='leave the certificate out, or use `sets="rectangular"`',
        )
    if region is not None and not region.certifies_quotients:
        raise InputError(
            "probabilities of this model are quotients, and certificates hold these over tied intervals and "
            f"the polytope made of them, not over the region {region.value}",
            hint='use `region="polytope"`, or leave the certificate out',
        )
    for k, g in enumerate(to_polynomials(denominators(table))):
        try:
            least, most = polynomial_range(g, model.parameters.lower, model.parameters.upper, True)
        except ValueError:
            least = most = Fraction(0)
        if least <= 0 <= most:
            name = table.denominators[k].text(model.parameters.names)
            raise InputError(
                f"the denominator {name} is not 0 on the domain, but certificates need that on the whole box "
                "of the parameters",
                hint="narrow the box with `params`, or leave the certificate out",
            )


def direct(link: Learned, ends: list[tuple[int, int]], wanted: tuple[FloatArray, FloatArray]) -> FloatArray:
    """The directions in which ends (expression, side) are proved; side 1 is the upper one."""
    rows = []
    for (e, side), near in zip(ends, place_near(ends, wanted).tolist(), strict=True):
        linear, _ = link.space.form(link.polynomials[e], Fraction(near))
        rows.append([float(a if side else -a) for a in linear])
    return np.array(rows, dtype=np.float64).reshape(-1, link.space.size)


def place_near(ends: list[tuple[int, int]], wanted: tuple[FloatArray, FloatArray]) -> FloatArray:
    """c of f − c·g for every end: what is wanted."""
    return np.array([float(wanted[side][e]) for e, side in ends], dtype=np.float64)
