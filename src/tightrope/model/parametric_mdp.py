"""The parametric MDP: a structure whose transitions carry expressions in the parameters.

Validated on construction, so that everything downstream may rely on it: the probabilities of every
choice sum to the polynomial 1 (exactly, as polynomials), and every expression lies within [0, 1]
on the domain. Instantiating at a point gives an ordinary MDP with the same transitions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tightrope.errors import InputError
from tightrope.model.domain_vertices import domain_vertices
from tightrope.model.expressions import Expressions
from tightrope.model.mdp import MDP
from tightrope.model.numbers import Number
from tightrope.model.parameters import Parameters, Point
from tightrope.model.polynomial import Polynomial
from tightrope.model.range_proof import named_point, prove_ranges
from tightrope.model.signatures import Signatures
from tightrope.model.structure import Structure, Structured, frozen_array, release
from tightrope.numerics.arrays import IndexArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import Facts
from tightrope.numerics.remember import remembered

NEARLY = 1e-9
"""A sum that misses 1 by less was meant to be 1."""


@dataclass(frozen=True, eq=False, repr=False)
class ParametricMDP(Structured):
    """`expression[t]` is the row of `expressions` that labels transition t.

    `unproved` lists expressions whose range could not be settled within the budget of
    `range_proof`: no point with a value outside [0, 1] was found for them, but no proof either.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> model.parameters.names, model.instantiate(p=0.25).probability.tolist()
    (('p',), [0.25, 0.75, 1.0, 1.0])
    """

    structure: Structure
    expression: IndexArray
    expressions: Expressions
    parameters: Parameters
    unproved: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "expression", frozen_array(self.expression, np.int32))
        if self.expression.shape != (self.transitions,):
            raise InputError(f"{len(self.expression)} expressions for {self.transitions} transitions")
        if len(self.expression) and not 0 <= self.expression.min() <= self.expression.max() < len(
            self.expressions
        ):
            raise InputError("a transition's expression is not in the table")
        if self.expressions.parameter_names != self.parameters.names:
            raise InputError(
                f"the expressions speak of ({', '.join(self.expressions.parameter_names)}), "
                f"the domain of ({', '.join(self.parameters.names)})"
            )
        if domain_vertices(self.parameters) == []:
            raise InputError(
                f"the domain is empty: no point satisfies {self.parameters.text()}",
                hint="loosen `params` or `domain`",
            )
        self._check_sums()
        self._check_ranges()

    def _check_sums(self) -> None:
        signatures = self.signatures
        table = self.expressions
        # Terms of all expressions of all signatures, sorted by (signature, monomial).
        count = np.diff(table.row_start)[signatures.expression]
        row_first = np.repeat(table.row_start[signatures.expression], count)
        within = np.arange(len(row_first)) - np.repeat(np.cumsum(count) - count, count)
        term = row_first + within
        signature = np.repeat(np.repeat(np.arange(len(signatures)), np.diff(signatures.start)), count)
        key = signature * max(len(table.monomials), 1) + table.monomial[term]
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
        sums = table.coefficient.take(term[order]).segment_sums(starts)
        owner = signature[order][starts]
        is_constant_monomial = table.monomial_degrees[table.monomial[term[order][starts]]] == 0
        expected = RationalArray.from_integers(is_constant_monomial.astype(np.int64))
        wrong = ~sums.equal(expected)
        has_constant = np.zeros(len(signatures), dtype=np.bool_)
        has_constant[owner[is_constant_monomial]] = True
        bad = np.r_[owner[wrong], np.flatnonzero(~has_constant)]
        if len(bad):
            choice = int(np.argmax(np.isin(signatures.of_choice, bad)))
            start, end = self.transition_start[choice], self.transition_start[choice + 1]
            total = sum((table.polynomial(int(e)) for e in self.expression[start:end]), Polynomial({}))
            raise InputError(
                f"{self.structure.choice_name(choice)}: probabilities sum to "
                f"{total.text(self.parameters.names)}, not 1",
                hint=_rounding_hint(total),
            )

    def _check_ranges(self) -> None:
        proof = prove_ranges(self.expressions, self.parameters)
        object.__setattr__(self, "unproved", proof.unproved)
        if proof.witness is None:
            return
        witness = proof.witness
        transition = int(np.argmax(self.expression == witness.expression))
        choice = int(np.searchsorted(self.transition_start, transition, side="right")) - 1
        text = self.expressions.text(witness.expression)
        where = named_point(witness.point, self.parameters.names) or "every point"
        raise InputError(
            f"{self.structure.choice_name(choice)}: the probability {text} is "
            f"{float(witness.value):.6g} at {where}, not within [0, 1]",
            hint="narrow the domain with `params` or `domain`, or mend the model",
        )

    def _facts_(self) -> Facts:
        table = self.expressions
        distinct = (
            f"{len(table):,} distinct, {len(table.nonconstant):,} with parameters, degree {table.degree}"
        )
        domain = [("domain", self.parameters.text())] if self.parameters.names else []
        return [*domain, ("expressions", distinct), *self.structure._facts_()]

    @cached_property
    def signatures(self) -> Signatures:
        return Signatures.of(self.transition_start, self.expression, len(self.expressions))

    def instantiate(self, point: Point | None = None, /, **values: Number) -> MDP:
        """The ordinary MDP at a point of the domain: `instantiate(p=0.5)`, `instantiate({"p": 0.5})`.

        A sequence gives the parameters in their order. Transitions keep their indices; probabilities are the
        float64 nearest to the exact values, and some may be 0.
        """
        if point is not None and values:
            raise InputError("the point is given twice: once as a whole and once by names")
        exact = self.parameters.point(values if point is None else point)
        if not self.parameters.contains(exact):
            raise InputError(
                f"the point {named_point(exact, self.parameters.names)} lies outside the domain "
                f"{self.parameters.text()}"
            )
        probability = self.expressions.values(exact)[self.expression]
        release(probability)
        return MDP(self.structure.at_point(exact), probability)

    @remembered
    def hash(self) -> str:
        """Identity of the model: structure, exact expressions and domain."""
        digest = hashlib.sha256(b"parametric mdp")
        self.structure.hash_into(digest)
        digest.update(self.expression.tobytes())
        table = self.expressions
        digest.update(f"{table.parameter_names}{table.monomials}{self.parameters.text()}".encode())
        digest.update(table.row_start.tobytes() + table.monomial.tobytes())
        for part in (table.coefficient.numerator, table.coefficient.denominator):
            digest.update(repr(part.tolist()).encode() if part.dtype == object else part.tobytes())
        return digest.hexdigest()


def _rounding_hint(total: Polynomial) -> str | None:
    """What to do where a sum misses 1 by no more than the rounding of floats."""
    if any(abs(coefficient) > NEARLY for coefficient in (total - 1).terms.values()):
        return None
    return (
        "numbers are exact here, and rounded ones need not sum to 1: write fractions as text or as "
        "Fraction ('1/3', Fraction(1, 3)), or one probability as 1 minus the others"
    )
