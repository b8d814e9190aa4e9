"""Bases for the choices of rectangular sets: what proves nature's optimum at each of them.

At a choice with successors s_k and expressions f_k a vector v asks for the extreme of Σ f_k(x)·v(s_k) over
the region, a linear function of x. A basis that is optimal over the rows of the certificate proves it best;
one basis serves many choices. The rows are the checker's own, with the bounds of expressions that cut into
the region (a relaxation may exceed what is proved of an expression otherwise), so nothing depends on how the
solver numbered or rounded its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.certificate.evidence import RegionHints
from tightrope.certificate.nature import Graph
from tightrope.certificate.problem import Claim, ValueHints
from tightrope.certificate.rows import Origin, Rows
from tightrope.certify.bases import BasisFinder
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.statistics.coordinates import AffineFunctions

MOST_CUTS = 2000
"""Bounds of expressions that become rows: those that cut deepest, in relation to their width."""

_DEEP = 1e-9
_FEWEST = 3
"""With fewer unknown successors the intervals of a choice with Σp = 1 say everything."""


@dataclass(frozen=True, eq=False)
class Choices:
    """What directions are made of: successors, the expression of every transition, expressions in x."""

    graph: Graph
    expression: OffsetArray
    functions: AffineFunctions
    constant: BoolArray

    def of_claim(self, claim: Claim) -> OffsetArray:
        """The choices of a claim's policy that the region says more about than intervals."""
        unknown = ~self.constant[self.expression]
        joint = np.add.reduceat(unknown.astype(np.int64), self.graph.transition_start[:-1]) >= _FEWEST
        taken = np.ones(self.graph.choices, dtype=np.bool_)
        if claim.weight is not None:
            taken = claim.weight > 0
        elif claim.choice is not None:
            taken = np.zeros(self.graph.choices, dtype=np.bool_)
            taken[claim.choice] = True
        return np.flatnonzero(joint & taken)

    def directions(self, choices: OffsetArray, vector: FloatArray) -> tuple[OffsetArray, FloatArray]:
        """(choices whose successors have finite values, the slope of Σ f_k·v(s_k) at each)."""
        start, linear = self.graph.transition_start, self.functions.linear
        length = np.diff(start)[choices]
        slope, finite = np.zeros((len(choices), linear.shape[1])), np.zeros(len(choices), dtype=np.bool_)
        for k in np.unique(length).tolist():
            at = np.flatnonzero(length == k)
            table = start[choices[at]][:, None] + np.arange(k)
            value = vector[self.graph.successor[table]]
            finite[at] = np.all(np.isfinite(value), axis=1)
            value = np.where(finite[at][:, None], value, 0.0)
            difference = value - value[:, :1]
            slope[at] = np.einsum("nk,nkd->nd", difference, linear[self.expression[table]])
        return choices[finite], slope[finite]


def find_choice_bases(
    rows: Rows, choices: Choices, claims: Sequence[Claim], values: Sequence[ValueHints]
) -> tuple[OffsetArray, list[ValueHints]]:
    """(distinct bases, the hints of every claim with a basis for each of its joint choices)."""
    asked: list[tuple[int, bool, OffsetArray, FloatArray]] = []
    for i, (claim, hints) in enumerate(zip(claims, values, strict=True)):
        taken = choices.of_claim(claim)
        for upward, vector in ((False, hints.lower), (True, hints.upper)):
            if vector is not None:
                at, slope = choices.directions(taken, vector)
                asked.append((i, upward, at, slope if upward else -slope))
    none = np.zeros((0, rows.size))
    bases = BasisFinder(rows).find(np.concatenate([none, *(slope for *_, slope in asked)]))
    distinct, number = np.unique(np.sort(bases, axis=1), axis=0, return_inverse=True)
    found, first = list(values), 0
    for i, upward, at, slope in asked:
        basis = np.full(choices.graph.choices, -1, dtype=np.int64)
        basis[at] = number.reshape(-1)[first : first + len(slope)]
        first += len(slope)
        found[i] = replace(found[i], upper_basis=basis) if upward else replace(found[i], lower_basis=basis)
    return distinct.astype(np.int64), found


def with_expression_rows(
    proof: RegionHints, rows: Rows, choices: Choices, lower: FloatArray, upper: FloatArray
) -> RegionHints:
    """The proof with rows for the bounds of expressions that the region exceeds."""
    used = np.unique(choices.expression)
    at = used[~choices.constant[used]]
    functions = choices.functions.take(at)
    finder = BasisFinder(rows)
    high = finder.largest(functions.linear) + functions.constant
    low = functions.constant - finder.largest(-functions.linear)
    width = np.maximum(upper[at] - lower[at], 1e-12)
    depth = np.concatenate([(high - upper[at]) / width, (lower[at] - low) / width])
    deepest = np.argsort(-depth, kind="stable")[:MOST_CUTS]
    deepest = np.sort(deepest[depth[deepest] > _DEEP])
    part = (deepest >= len(at)).astype(np.int64)
    kind = np.full(len(deepest), int(Origin.EXPRESSION))
    cuts = np.stack([kind, at[deepest - part * len(at)], part], axis=1)
    return replace(proof, row=np.concatenate([proof.row, cuts]).astype(np.int64))
