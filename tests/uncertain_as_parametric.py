"""Uncertain MDPs as parametric ones with a domain, and back (paper, Appendix B).

*From uncertain to parametric.* A set of distributions that is a polytope becomes parameters with linear
constraints, exactly, each choice with parameters of its own:

* intervals (`from_intervals`): one parameter a transition, p_t = x_t with lower ≤ x_t ≤ upper; the last
  transition of a choice is 1 − Σ of the others, so that probabilities sum to the polynomial 1, and its bounds
  become two constraints;
* half-spaces (`from_halfspaces`): the same with further rows a·p ≤ b;
* vertices (`from_vertices`): one weight per vertex of the choice, the last one again 1 − Σ of the others.

The kernels the parametric model takes on its domain are those of the uncertain model, no more and no fewer.

*From parametric to uncertain.* A parametric model with a region induces P_U = { P[x] : x in the region };
`domain_region` is the region that is the whole domain. Where no parameter is shared between choices and no
constraint ties those of different choices (`is_rectangular`), P_U is a product of sets, one a choice, and
`tightrope.ambiguity.sets.rectangular` is P_U itself; elsewhere it is the smallest product around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from tightrope.errors import InputError
from tightrope.model.expressions import ExpressionTable
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import Structure
from tightrope.regions.halfspaces import Halfspaces
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import Relaxation
from tightrope.regions.registry import region_kind
from tightrope.regions.tightening import tighten
from tightrope.statistics.confidence_budget import Assumption, ConfidenceBudget
from tightrope.statistics.coordinates import Coordinates

MOST_PARAMETERS = 2000
"""Constraints are dense rows over all parameters; beyond this the model is refused."""

Row = tuple[Sequence[Fraction], Fraction]
"""a·p ≤ b over the successors of one choice."""

Distribution = Sequence[Fraction]


def from_intervals(model: IntervalMDP) -> ParametricMDP:
    """The parametric model whose domain is the intervals."""
    return from_halfspaces(model, {})


def from_halfspaces(model: IntervalMDP, rows: Mapping[int, Sequence[Row]]) -> ParametricMDP:
    """Intervals cut by half-spaces: `rows[c]` are rows a·p ≤ b over the transitions of choice c."""
    draft = _Draft(model.structure)
    for choice in range(model.choices):
        start, end = int(model.transition_start[choice]), int(model.transition_start[choice + 1])
        lower = [Fraction(float(x)) for x in model.lower[start:end]]
        upper = [Fraction(float(x)) for x in model.upper[start:end]]
        if lower == upper and not rows.get(choice):
            draft.add_choice([Polynomial.constant(x) for x in lower])
            continue
        free = [draft.parameter(f"p{choice}_{j}", lower[j], upper[j]) for j in range(end - start - 1)]
        probabilities = [Polynomial.variable(i) for i in free]
        draft.add_choice([*probabilities, Polynomial.constant(1) - _total(probabilities)])
        if free:
            draft.constrain({i: Fraction(1) for i in free}, 1 - lower[-1])
            draft.constrain({i: Fraction(-1) for i in free}, upper[-1] - 1)
        for coefficients, bound in rows.get(choice, ()):
            if len(coefficients) != end - start:
                raise InputError(
                    f"{model.structure.choice_name(choice)}: a row has {len(coefficients)} coefficients "
                    f"for {end - start} transitions"
                )
            last = Fraction(coefficients[-1])
            draft.constrain(
                {i: Fraction(a) - last for i, a in zip(free, coefficients[:-1], strict=True)},
                Fraction(bound) - last,
            )
    return draft.model()


def from_vertices(structure: Structure, vertices: Sequence[Sequence[Distribution]]) -> ParametricMDP:
    """Convex hulls: `vertices[c]` are distributions over the transitions of choice c."""
    if len(vertices) != structure.choices:
        raise InputError(f"vertices are given for {len(vertices)} of {structure.choices} choices")
    draft = _Draft(structure)
    for choice, corners in enumerate(vertices):
        length = int(structure.transition_start[choice + 1] - structure.transition_start[choice])
        exact = [[Fraction(p) for p in corner] for corner in corners]
        for corner in exact:
            if len(corner) != length or min(corner) < 0 or sum(corner) != 1:
                raise InputError(
                    f"{structure.choice_name(choice)}: {[str(p) for p in corner]} is not a distribution "
                    f"over its {length} transitions"
                )
        if not exact:
            raise InputError(f"{structure.choice_name(choice)} has no vertex, so no distribution")
        free = [draft.parameter(f"w{choice}_{v}", Fraction(0), Fraction(1)) for v in range(len(exact) - 1)]
        weights = [Polynomial.variable(i) for i in free]
        weights.append(Polynomial.constant(1) - _total(weights))
        draft.add_choice(
            [
                _total([w * Polynomial.constant(c[j]) for w, c in zip(weights, exact, strict=True)])
                for j in range(length)
            ]
        )
        if len(free) > 1:
            draft.constrain({i: Fraction(1) for i in free}, Fraction(1))
    return draft.model()


def domain_region(model: ParametricMDP) -> Polytope:
    """The region that is the whole domain: nothing was learned, and nothing is left to chance."""
    coordinates = Coordinates.of(model.expressions, model.parameters)
    relaxation = Relaxation.OUTER if coordinates.is_lifted else Relaxation.EXACT
    ledger = ConfidenceBudget(0.0, 0, 0.0, "given", "none", Assumption.ADAPTIVE_ANYTIME)
    tightened = tighten(coordinates, Halfspaces.of_domain(coordinates))
    return Polytope.of(region_kind("polytope"), coordinates, ledger, tightened, relaxation)


def is_rectangular(model: ParametricMDP) -> bool:
    """Whether choices share no parameter and no constraint: then P_U is a product of one set a choice."""
    table = model.expressions
    owner = np.full(len(model.parameters), -1, dtype=np.int64)
    pairs = np.unique(np.stack([model.structure.transition_choice, model.expression]), axis=1)
    used = [set(table.function(e).variables) for e in range(len(table))]
    for choice, e in pairs.T.tolist():
        for parameter in used[e]:
            if owner[parameter] not in (-1, choice):
                return False
            owner[parameter] = choice
    for constraint in model.parameters.constraints:
        tied = {int(owner[i]) for i, a in enumerate(constraint.coefficients) if a != 0 and owner[i] >= 0}
        if len(tied) > 1:
            return False
    return True


class _Draft:
    """A parametric model being built: parameters, constraints as sparse rows, a polynomial per transition."""

    def __init__(self, structure: Structure):
        self.structure = structure
        self.names: list[str] = []
        self.lower: list[Fraction] = []
        self.upper: list[Fraction] = []
        self.rows: list[tuple[dict[int, Fraction], Fraction]] = []
        self.probabilities: list[Polynomial] = []

    def parameter(self, name: str, lower: Fraction, upper: Fraction) -> int:
        if len(self.names) >= MOST_PARAMETERS:
            raise InputError(
                f"the model needs more than {MOST_PARAMETERS} parameters",
                hint="solve interval models as they are; the correspondence is for small ones",
            )
        self.names.append(name)
        self.lower.append(lower)
        self.upper.append(upper)
        return len(self.names) - 1

    def constrain(self, coefficients: dict[int, Fraction], bound: Fraction) -> None:
        self.rows.append((coefficients, bound))

    def add_choice(self, probabilities: list[Polynomial]) -> None:
        self.probabilities.extend(probabilities)

    def model(self) -> ParametricMDP:
        size = len(self.names)
        constraints = tuple(
            LinearConstraint(tuple(row.get(i, Fraction(0)) for i in range(size)), bound)
            for row, bound in self.rows
        )
        parameters = Parameters(tuple(self.names), tuple(self.lower), tuple(self.upper), constraints)
        table = ExpressionTable(parameters.names)
        used = np.array([table.add(p) for p in self.probabilities], dtype=np.int32)
        expressions, renumbered = table.freeze(used)
        return ParametricMDP(self.structure, renumbered, expressions, parameters)


def _total(polynomials: Sequence[Polynomial]) -> Polynomial:
    return sum(polynomials, Polynomial({}))
