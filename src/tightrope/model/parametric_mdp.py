"""The parametric MDP: a structure whose transitions carry expressions in the parameters.

Construction proves that the probabilities of every choice sum to 1 (exactly, as functions), that denominators
vanish nowhere in the domain, and that every expression lies within [0, 1] on it. `unproved` lists the
expressions whose range is not proved.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from tightrope.errors import InputError
from tightrope.model import numbers as door
from tightrope.model.expressions import Expressions, Signatures
from tightrope.model.free import MOST_COORDINATES, free_choices, without_numbers
from tightrope.model.mdp import MDP
from tightrope.model.numbers import Number
from tightrope.model.parameters import Parameters, Point
from tightrope.model.polynomial import Function, Polynomial, PolynomialArray, parts, quotient
from tightrope.model.ranges import (
    denominators,
    narrow_to_probabilities,
    numerators,
    prove_ranges,
    prove_signs,
    table_of,
)
from tightrope.model.structure import Structure, Structured, freeze, frozen_array, release
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, ranges
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import Facts, remember

NEARLY = 1e-9
"""A sum that misses 1 by less was meant to be 1."""


class OutOfRangeError(InputError):
    """A probability leaves [0, 1] somewhere in the domain."""


@dataclass(frozen=True, eq=False, repr=False)
class ParametricMDP(Structured):
    """`expression[t]` is the row of `expressions` that labels transition t.

    `unproved` lists expressions whose range was not settled within the budget of `range_proof`: neither a
    proof nor a point outside [0, 1] was found.

    >>> import tightrope as tr
    >>> model = tr.load("bench:betting(5)")
    >>> model.parameters.names, model.instantiate(p=0.5, q=0).states
    (('p', 'q'), 225)
    """

    structure: Structure
    expression: IndexArray
    expressions: Expressions
    parameters: Parameters
    unproved: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        freeze(self, np.int32, "expression")
        if self.expression.shape != (self.transitions,):
            raise InputError(f"{len(self.expression)} expressions for {self.transitions} transitions")
        if len(self.expression) and not 0 <= self.expression.min() <= self.expression.max() < len(
            self.expressions
        ):
            raise InputError("a transition's expression is not in the table")
        if self.expressions.parameter_names != self.parameters.names:
            raise InputError(
                f"the expressions refer to ({', '.join(self.expressions.parameter_names)}), "
                f"the domain of ({', '.join(self.parameters.names)})"
            )
        self.parameters.refuse_empty()
        self.expressions.check_held("a probability")
        sign = self._denominator_signs()
        self._check_sums()
        self._check_ranges(sign)

    @staticmethod
    def within_probabilities(
        structure: Structure, expression: IndexArray, expressions: Expressions, parameters: Parameters
    ) -> ParametricMDP:
        """The model on the part of the domain where affine probabilities lie in [0, 1], with a warning."""
        try:
            return ParametricMDP(structure, expression, expressions, parameters)
        except OutOfRangeError as error:
            within = narrow_to_probabilities(expressions, parameters)
            if within is None:
                raise
            try:
                model = ParametricMDP(structure, expression, expressions, within)
            except InputError:
                raise error from None
            text = f"the domain is narrowed to {within.shown.text()}: elsewhere, {error.message}"
            object.__setattr__(within, "narrowed", text)
            warnings.warn(text, stacklevel=2)
            return model

    def _denominator_signs(self) -> tuple[int, ...]:
        """The sign of every denominator, which none may lose anywhere in the domain."""
        if not self.expressions.denominators:
            return ()
        proof = prove_signs(denominators(self.expressions), self.parameters)
        if proof.failed is None:
            return proof.sign
        number, seen = proof.failed
        where = self.structure.name_at(np.argmax(self.expressions.denominator_of[self.expression] == number))
        g = self.expressions.denominators[number].text(self.parameters.names)
        if seen is None:
            what = f"could not be shown to keep one sign on the domain {self.parameters.text()}"
        elif seen[1] == 0:
            what = f"is 0 at {self.parameters.name_point(seen[0])}"
        else:
            what = f"changes its sign on the domain, {float(seen[1]):.6g} at "
            what += self.parameters.name_point(seen[0])
        raise InputError(
            f"{where}: the denominator {g} {what}",
            hint="narrow the domain with `params` or `domain`, so that no probability divides by 0",
        )

    def _check_sums(self) -> None:
        signatures, table = self.signatures, self.expressions
        one = table_of(table.parameter_names, PolynomialArray.constant(RationalArray.constant(1, 1)))
        every = np.arange(len(signatures))
        members = table, signatures.expression, signatures.of_member
        bad = _differing(members, (one, np.zeros_like(every), every))
        if len(bad) and table.denominators:
            bad = self._wrong_sums(bad)
        if len(bad):
            choice = int(np.argmax(np.isin(signatures.of_choice, bad)))
            start, end = self.transition_start[choice], self.transition_start[choice + 1]
            total = _total([table.function(e) for e in self.expression[start:end].tolist()])
            raise InputError(
                f"{self.structure.choice_name(choice)}: probabilities sum to "
                f"{total.text(self.parameters.names)}, not 1",
                hint=_rounding_hint(total),
            )

    def _wrong_sums(self, suspects: OffsetArray) -> OffsetArray:
        """Those of the signatures whose sum, computed as a rational function, is not 1."""
        signatures, one = self.signatures, Polynomial.constant(1)
        starts, row = signatures.start.tolist(), signatures.expression.tolist()
        function = self.expressions.function
        wrong = [
            k
            for k in np.setdiff1d(suspects, self._sums_over_one_denominator()).tolist()
            if _total([function(e) for e in row[starts[k] : starts[k + 1]]]) != one
        ]
        return np.array(wrong, dtype=np.int64)

    def _sums_over_one_denominator(self) -> OffsetArray:
        """Signatures of quotients with one denominator whose numerators add up to it."""
        signatures, table = self.signatures, self.expressions
        below = table.denominator_of[signatures.expression]
        first = np.minimum.reduceat(below, signatures.start[:-1])
        plain = np.flatnonzero((first >= 0) & (first == np.maximum.reduceat(below, signatures.start[:-1])))
        members = np.flatnonzero(np.isin(signatures.of_member, plain))
        tops = numerators(table), signatures.expression[members], signatures.of_member[members]
        return np.setdiff1d(plain, _differing(tops, (denominators(table), first[plain], plain)))

    def _check_ranges(self, sign: tuple[int, ...]) -> None:
        proof = prove_ranges(self.expressions, self.parameters, sign)
        object.__setattr__(self, "unproved", proof.unproved)
        if proof.witness is None:
            return
        witness = proof.witness
        choice = self.structure.name_at(np.argmax(self.expression == witness.expression))
        where = self.parameters.name_point(witness.point) or "every point"
        raise OutOfRangeError(
            f"{choice}: the probability {self.expressions.text(witness.expression)} is "
            f"{float(witness.value):.6g} at {where}, not within [0, 1]",
            hint="narrow the domain with `params` or `domain`, or fix the model",
        )

    def _facts_(self) -> Facts:
        table = self.expressions
        distinct = (
            f"{len(table):,} distinct, {len(table.nonconstant):,} with parameters, degree {table.degree}"
        )
        shown = self.parameters.shown
        domain = [("domain", shown.text())] if shown.names else []
        if self.parameters.free:
            domain.append(("free distributions", f"{len(self.parameters.free):,}"))
        return [*domain, ("expressions", distinct), *self.structure._facts_()]

    @cached_property
    def signatures(self) -> Signatures:
        return Signatures.of(self.transition_start, self.expression, len(self.expressions))

    @staticmethod
    def without_numbers(model: ParametricMDP | MDP) -> ParametricMDP:
        """The model whose states, choices and outcomes these are, with nothing known of its probabilities."""
        structure, start = model.structure, list[Fraction]()
        if len(structure.initial_states) == 1 and structure.draws_start:
            first = int(structure.choice_start[structure.initial])
            span = range(*structure.transition_start[first : first + 2].tolist())
            if isinstance(model, ParametricMDP):
                start = [model.expressions.polynomial(int(model.expression[t])).constant_term for t in span]
            else:
                start = [Fraction(float(model.probability[t])) for t in span]
        expression, expressions, parameters = without_numbers(structure, start)
        if parameters.constraints or len(parameters) <= MOST_COORDINATES:
            return ParametricMDP(structure, expression, expressions, parameters)
        table = object.__new__(ParametricMDP)  # sums and ranges hold by construction
        parts = ("structure", structure), ("expressions", expressions), ("parameters", parameters)
        for name, value in (*parts, ("expression", frozen_array(expression, np.int32)), ("unproved", ())):
            object.__setattr__(table, name, value)
        return table

    @property
    def is_table(self) -> bool:
        """Whether so many distributions are free that each transition stands for itself: no regions."""
        return len(self.parameters) > MOST_COORDINATES

    @cached_property
    def free(self) -> BoolArray:
        """Which choices are free rows: every outcome of one free distribution (`tightrope.model.free`).

        >>> import tightrope as tr
        >>> rows = [(0, "a", {0: tr.free, 1: tr.free}), (1, "", {1: 1})]
        >>> tr.build_from_rows(rows).free.tolist()
        [True, False]
        """
        own = self.signatures
        of_signature = free_choices(self.parameters, self.expressions, own.start, own.expression)
        return of_signature[own.of_choice]

    def expression_text(self, expression: int) -> str:
        """The probability for people: a polynomial, or the outcome of a free row (`run in 0 → 1`)."""
        structure, own = self.structure, self.expression == expression
        if not (self.parameters.free and (own := own & self.free[structure.transition_choice]).any()):
            return self.expressions.text(expression)
        choice, after = int(structure.transition_choice[own][0]), int(structure.successor[own][0])
        here, there = structure.state_name(int(structure.choice_state[choice])), structure.state_name(after)
        return f"{structure.action_name(choice)} in {here} → {there}".removeprefix(" in ")

    def instantiate(self, point: Point | None = None, /, **values: Number) -> MDP:
        """Return the MDP at a point of the domain. Transitions keep their indices.

        Parameters
        ----------
        point : mapping or sequence, optional
            All values, by name or in the parameters' order.
        **values : number
            The same by keywords, as in `instantiate(p=0.5)`.

        Returns
        -------
        MDP
            Probabilities are the nearest float64, and may be 0.
        """
        exact = self.parameters.inside(point, values)
        try:
            probability = door.doubles(self.expressions.exact_values(exact))[self.expression]
        except door.NotHeldError as error:
            choice = self.structure.name_at(np.argmax(self.expression == error.index))
            where = self.parameters.name_point(exact)
            raise InputError(
                f"{choice}: the probability "
                f"{self.expressions.text(error.index)[:200]}{' at ' * bool(where)}{where}: {error.message}"
            ) from None
        release(probability)
        return MDP(self.structure.at_point(exact), probability)

    @remember
    def hash(self) -> str:
        """Return the identity of structure, exact expressions and domain."""
        table = self.expressions
        names, exact = table.parameter_names, (table.coefficient.numerator, table.coefficient.denominator)
        below = repr([g.text(names) for g in table.denominators]) if table.denominators else ""
        return self.structure.identity(
            b"parametric mdp",
            self.expression.tobytes(),
            f"{names}{table.monomials}{self.parameters.text()}{below}".encode(),
            table.row_start.tobytes() + table.monomial.tobytes(),
            *(repr(x.tolist()).encode() if x.dtype == object else x.tobytes() for x in exact),
        )


_Summands = tuple[Expressions, IndexArray | OffsetArray, OffsetArray]
"""Rows of a table, and which sum each belongs to."""


def _differing(left: _Summands, right: _Summands) -> OffsetArray:
    """The sums that are not the same polynomial on both sides."""
    listed = {m: j for j, m in enumerate(dict.fromkeys((*left[0].monomials, *right[0].monomials)))}
    keys, terms = [], []
    for table, rows, of_row in (left, right):
        term, owner = ranges(table.row_start, rows)
        monomial = np.array([listed[m] for m in table.monomials], dtype=np.int64)[table.monomial[term]]
        keys.append(of_row[owner] * len(listed) + monomial)
        terms.append(table.coefficient.take(term))
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    sums = RationalArray.concatenate([terms[0], -terms[1]]).take(order).segment_sums(starts)
    wrong = np.not_equal(sums.numerator, 0).astype(np.bool_)
    differing = key[order][starts][wrong] // max(len(listed), 1)
    return np.unique(differing) if len(differing) else differing  # np.unique imports np.ma: 25 ms


def _total(functions: list[Function]) -> Function:
    """The sum of functions, those of one denominator first: their sum is mostly a constant."""
    tops: dict[Polynomial, Polynomial] = {}
    for function in functions:
        top, bottom = parts(function)
        tops[bottom] = tops[bottom] + top if bottom in tops else top
    total: Function = Polynomial({})
    for bottom, top in tops.items():
        total = total + (Polynomial.constant(1) if top == bottom else quotient(top, bottom))
    return total


def _rounding_hint(total: Function) -> str | None:
    """What to do where a sum misses 1 by no more than the rounding of floats."""
    if not isinstance(total, Polynomial):
        return None
    if any(abs(coefficient) > NEARLY for coefficient in (total - 1).terms.values()):
        return None
    return (
        "numbers are exact here, and rounded ones need not sum to 1: write fractions as text or as "
        "Fraction ('1/3', Fraction(1, 3)), or one probability as 1 minus the others"
    )
