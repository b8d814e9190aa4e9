"""The problem that a certificate speaks of: all of it, and nothing that follows from something else in it.

It can be rebuilt from a model, a property and data (`tightrope.proof.problem`), and is compared field by
field with the one in a file. Three kinds of models:

* `probability`: doubles p, each standing for a number within p·(1 ± (k+2)·2⁻⁵²), k the successors of the
  choice;
* `lower`, `upper`: intervals, nature picks any distribution within them at every choice and step;
* `expression`, `table`: exact polynomials over parameters, at a point `theta`, or over a `domain` of
  parameters: then the claim is about every instantiation in it, or with `data` about the true one, with
  probability 1 − δ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from tightrope.certificate.format.fields import (
    integers,
    is_offsets,
    part,
    rationals,
    real,
    reals,
    require_shapes,
    truth,
    truths,
    whole,
    word,
)
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray

Polynomial = Mapping[tuple[tuple[int, int], ...], Fraction]
"""{monomial: coefficient}; a monomial is ((parameter, exponent ≥ 1), …), parameters rising; () is 1."""

MOST_STATES = 2**31
MOST_DEGREE = 4096
MOST_STEPS = 1_000_000
MOST_COUNTS = 2**50
"""Sums of counts, also over all outcomes, stay far below what int64 and doubles hold."""

MOST_WORK = 10**10
"""Steps times transitions of a bounded horizon; small models count as 10,000 transitions."""

MOST_ELIMINATION = 4 * 10**7
"""Of the equalities of a domain: their number³ · parameters · bits of a coefficient."""


@dataclass(frozen=True, eq=False)
class Graph:
    """Choices of state s: choice_start[s] to choice_start[s+1]; transitions of a choice likewise."""

    choice_start: OffsetArray = integers()
    transition_start: OffsetArray = integers()
    successor: OffsetArray = integers()
    initial: int = whole()

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    @property
    def choices(self) -> int:
        return len(self.transition_start) - 1

    @property
    def transitions(self) -> int:
        return len(self.successor)

    def trouble(self) -> str | None:
        if not 1 <= self.states < MOST_STATES or not is_offsets(self.choice_start, self.choices):
            return "the choices of states do not fit"
        if not is_offsets(self.transition_start, self.transitions):
            return "the transitions of choices do not fit"
        if self.successor.max() >= self.states or self.initial >= self.states:
            return "a state's number is out of range"
        return None


@dataclass(frozen=True, eq=False)
class Objective:
    """What is asked, and who decides. `nature` ANY: the bounds hold whatever she picks."""

    kind: str = word("UNTIL", "NEXT", "REACH_REWARD", "CUMULATIVE", "TOTAL", "DISCOUNTED")
    agent: str = word("MAX", "MIN")
    nature: str = word("MAX", "MIN", "ANY")
    complement: bool = truth()
    lower_steps: int = whole(0, MOST_STEPS)
    upper_steps: int | None = whole(0, MOST_STEPS, optional=True)
    discount: float | None = real(0.0, 1.0, optional=True)
    reward: FloatArray | None = reals(optional=True)
    target: BoolArray | None = truths(optional=True)
    allowed: BoolArray | None = truths(optional=True)
    terminal: FloatArray | None = reals(optional=True)

    @property
    def steps(self) -> int | None:
        """The number of backups that give the value, or None."""
        return 1 if self.kind == "NEXT" else self.upper_steps

    def trouble(self) -> str | None:
        """Every field is there where the kind has a meaning for it, and nowhere else."""
        is_event = self.kind in ("UNTIL", "NEXT")
        has_target = is_event or self.kind == "REACH_REWARD"
        if (self.discount is not None) != (self.kind == "DISCOUNTED") or self.discount in (0.0, 1.0):
            return "the discount factor does not fit the objective"
        if self.upper_steps is None and self.kind == "CUMULATIVE":
            return "a cumulative reward without its number of steps"
        if self.upper_steps is not None and self.kind not in ("UNTIL", "CUMULATIVE"):
            return f"a bound on the steps has no meaning for {self.kind}"
        if self.lower_steps > 0 and self.kind != "UNTIL":
            return f"a lower bound on the steps has no meaning for {self.kind}"
        if self.upper_steps is not None and self.lower_steps > self.upper_steps:
            return "the bounds on the steps leave none"
        if (self.target is not None) != has_target or (self.reward is None) != is_event:
            return f"target or rewards do not fit {self.kind}"
        if self.allowed is not None and self.kind != "UNTIL":
            return f"allowed states have no meaning for {self.kind}"
        if self.terminal is not None and self.kind != "REACH_REWARD":
            return f"values of target states have no meaning for {self.kind}"
        if self.complement and not is_event:
            return "only a probability has a complement"
        return None


@dataclass(frozen=True, eq=False)
class Table:
    """The distinct polynomials: term i of row r is coefficient[i] times monomial[i], of row_start[r] ≤ i <
    row_start[r+1]; monomial m is the product of parameter[j]^exponent[j], factor_start[m] ≤ j <
    factor_start[m+1].
    """

    parameters: int = whole(0, 10_000)
    row_start: OffsetArray = integers()
    monomial: OffsetArray = integers()
    coefficient: tuple[Fraction, ...] = rationals()
    factor_start: OffsetArray = integers()
    parameter: OffsetArray = integers()
    exponent: OffsetArray = integers(1, MOST_DEGREE)

    def __len__(self) -> int:
        return len(self.row_start) - 1

    def trouble(self) -> str | None:
        if len(self.parameter) != len(self.exponent) or len(self.monomial) != len(self.coefficient):
            return "factors or terms do not fit each other"
        if not is_offsets(self.factor_start, len(self.parameter), rising=False):
            return "the factors of monomials do not fit"
        if len(self) < 1 or not is_offsets(self.row_start, len(self.monomial), rising=False):
            return "the terms of polynomials do not fit"
        if self.monomial.max(initial=-1) >= len(self.factor_start) - 1:
            return "a monomial's number is out of range"
        if self.parameter.max(initial=-1) >= self.parameters:
            return "a parameter's number is out of range"
        degree = np.add.reduceat(np.append(self.exponent, 0), self.factor_start[:-1])[
            np.diff(self.factor_start) > 0
        ]
        if degree.max(initial=0) > MOST_DEGREE:
            return f"a monomial has a degree beyond {MOST_DEGREE}"
        for name, start, value in (
            ("parameters", self.factor_start, self.parameter),
            ("monomials", self.row_start, self.monomial),
        ):
            falls = np.flatnonzero(np.diff(value) <= 0) + 1
            if not np.isin(falls, start).all():
                return f"{name} do not rise strictly"
        if any(value == 0 for value in self.coefficient) or len(set(self._monomials)) != len(self._monomials):
            return "a coefficient is 0, or a monomial is listed twice"
        return None

    @cached_property
    def _monomials(self) -> list[tuple[tuple[int, int], ...]]:
        factors = list(zip(self.parameter.tolist(), self.exponent.tolist(), strict=True))
        return [tuple(factors[a:b]) for a, b in pairwise(self.factor_start.tolist())]

    @cached_property
    def polynomials(self) -> list[Polynomial]:
        names = self._monomials
        terms = [(names[m], c) for m, c in zip(self.monomial.tolist(), self.coefficient, strict=True)]
        return [dict(terms[a:b]) for a, b in pairwise(self.row_start.tolist())]

    def values(self, theta: tuple[Fraction, ...]) -> list[Fraction]:
        """Every polynomial at a point."""
        power: dict[tuple[int, int], Fraction] = {}
        values = []
        for monomial in self._monomials:
            value = Fraction(1)
            for factor in monomial:
                if factor not in power:
                    power[factor] = theta[factor[0]] ** factor[1]
                value *= power[factor]
            values.append(value)
        terms = [values[m] * c for m, c in zip(self.monomial.tolist(), self.coefficient, strict=True)]
        return [sum(terms[a:b], Fraction(0)) for a, b in pairwise(self.row_start.tolist())]


@dataclass(frozen=True, eq=False)
class Domain:
    """lower ≤ θ ≤ upper, and for every row r: Σ coefficient[r·n + i]·θ_i ≤ bound[r] (= if is_equality[r])."""

    lower: tuple[Fraction, ...] = rationals()
    upper: tuple[Fraction, ...] = rationals()
    coefficient: tuple[Fraction, ...] = rationals()
    bound: tuple[Fraction, ...] = rationals()
    is_equality: BoolArray = truths()

    def trouble(self) -> str | None:
        size = len(self.lower)
        if len(self.upper) != size or len(self.coefficient) != size * len(self.bound):
            return "the domain's numbers do not fit each other"
        if len(self.bound) != len(self.is_equality):
            return "the domain's constraints do not fit each other"
        equal = [row for row in self.constraints if row[2]]
        longest = max((_bits(c) for row in equal for c in row[0]), default=0)
        if len(equal) ** 3 * size * longest > MOST_ELIMINATION:
            return f"{len(equal)} equalities are more than this program solves"
        return None

    @property
    def constraints(self) -> list[tuple[tuple[Fraction, ...], Fraction, bool]]:
        size = len(self.lower)
        return [
            (self.coefficient[r * size : (r + 1) * size], bound, bool(self.is_equality[r]))
            for r, bound in enumerate(self.bound)
        ]


@dataclass(frozen=True, eq=False)
class Data:
    """What was seen, in time-ordered batches, how it was sampled, and the statement that is made of it.

    Batch b saw batch_transition[i] batch_count[i] times, batch_start[b] ≤ i < batch_start[b+1]. Methods that
    do not use the order have one batch. Without data (`method` "domain") δ is 0 and there is no batch.
    """

    delta: float = real(0.0, 1.0)
    method: str = word(
        "domain", "clopper-pearson", "hoeffding", "beta-binomial", "weissman", "likelihood", "ellipsoid"
    )
    budget: str = word("tied", "paper")
    sets: str = word("untied", "tied", "parameter", "expression", "rectangular")
    design: str = word("generative-fixed", "trajectories", "adaptive")
    repeats: bool = truth()
    censored: bool = truth()
    batch_start: OffsetArray = integers()
    batch_transition: OffsetArray = integers()
    batch_count: OffsetArray = integers(1, MOST_COUNTS)
    episodes: int | None = whole(optional=True)
    planned: int | None = whole(optional=True)

    def trouble(self) -> str | None:
        if not is_offsets(self.batch_start, len(self.batch_transition), rising=False):
            return "the batches do not fit"
        if len(self.batch_transition) != len(self.batch_count):
            return "the batches' transitions and counts do not fit each other"
        falls = np.flatnonzero(np.diff(self.batch_transition) <= 0) + 1
        if not np.isin(falls, self.batch_start).all():
            return "the transitions of a batch do not rise strictly"
        if self.batch_count.astype(np.float64).sum() > MOST_COUNTS:
            return f"there are more than {MOST_COUNTS} counts"
        if self.method == "domain" and not (self.delta == 0 and self.batches == 0):
            return "data, or a confidence, beside a statement about the whole domain"
        if self.method != "domain" and not 0 < self.delta < 1:
            return "the confidence is not between 0 and 1"
        return None

    @property
    def batches(self) -> int:
        return len(self.batch_start) - 1


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, an objective, and where the model is parametric what is known of its parameters.

    `assumed_support` EPS: it was assumed that a transition which can happen has at least probability
    min(EPS, its upper bound); lower bounds of 0 are raised to that.
    """

    graph: Graph = part(Graph)
    objective: Objective = part(Objective)
    probability: FloatArray | None = reals(0.0, 1.0, optional=True)
    lower: FloatArray | None = reals(0.0, 1.0, optional=True)
    upper: FloatArray | None = reals(0.0, 1.0, optional=True)
    expression: OffsetArray | None = integers(optional=True)
    table: Table | None = part(Table, optional=True)
    theta: tuple[Fraction, ...] | None = rationals(optional=True)
    domain: Domain | None = part(Domain, optional=True)
    data: Data | None = part(Data, optional=True)
    assumed_support: float | None = real(0.0, 1.0, optional=True)

    @property
    def law(self) -> str:
        """plain, interval, point or domain."""
        if self.probability is not None:
            return "plain"
        return "interval" if self.lower is not None else "point" if self.theta is not None else "domain"

    def trouble(self) -> str | None:
        states, choices, transitions = self.graph.states, self.graph.choices, self.graph.transitions
        given = [
            name
            for name in ("probability", "lower", "upper", "expression", "table", "theta", "domain", "data")
            if getattr(self, name) is not None
        ]
        if given not in _LAWS:
            return f"{', '.join(given) or 'nothing'}: not what labels the transitions of one model"
        shape = (transitions,)
        trouble = require_shapes(self, probability=shape, lower=shape, upper=shape, expression=shape)
        trouble = trouble or require_shapes(
            self.objective, reward=(choices,), target=(states,), allowed=(states,), terminal=(states,)
        )
        if (self.law == "interval") == (self.objective.nature == "ANY"):
            trouble = trouble or "nature's direction does not fit the model"
        if self.assumed_support is not None and (
            self.law not in ("interval", "domain") or self.assumed_support in (0.0, 1.0)
        ):
            trouble = trouble or "an assumption about supports that does not fit the model"
        return trouble or self._parametric_trouble() or self._work_trouble()

    def _parametric_trouble(self) -> str | None:
        if self.expression is None or self.table is None:
            return None
        if self.expression.max(initial=0) >= len(self.table):
            return "an expression's number is out of range"
        known = self.theta if self.domain is None else self.domain.lower
        if known is None or len(known) != self.table.parameters:
            return "the numbers of parameters do not fit"
        if self.data is not None and self.data.batch_transition.max(initial=-1) >= self.graph.transitions:
            return "a count of a transition that is not there"
        if self.theta is not None:
            bits = [_bits(value) for value in self.theta]
            work = sum(
                bits[i] * e
                for i, e in zip(self.table.parameter.tolist(), self.table.exponent.tolist(), strict=True)
            )
            if work > 10**7:
                return "the expressions are too large to be evaluated at the point"
        return None

    def _work_trouble(self) -> str | None:
        steps = (self.objective.upper_steps or 0) + self.objective.lower_steps
        if steps * max(self.graph.transitions, 10_000) > MOST_WORK:
            return (
                f"{steps} steps over {self.graph.transitions} transitions are more than this program checks"
            )
        return None


def _bits(value: Fraction) -> int:
    return value.numerator.bit_length() + value.denominator.bit_length()


_LAWS = (
    ["probability"],
    ["lower", "upper"],
    ["expression", "table", "theta"],
    ["expression", "table", "domain", "data"],
)


def first_difference(given: Any, own: Any, path: str = "") -> str | None:
    """The name of the first field in which two problems differ, or None."""
    for one in fields(given):
        here, ours = getattr(given, one.name), getattr(own, one.name)
        name = f"{path}{one.name}"
        if hasattr(here, "__dataclass_fields__") and hasattr(ours, "__dataclass_fields__"):
            inner = first_difference(here, ours, f"{name}.")
            if inner is not None:
                return inner
        elif isinstance(here, np.ndarray) and isinstance(ours, np.ndarray):
            if here.dtype != ours.dtype or not np.array_equal(here, ours):
                return name
        elif isinstance(here, tuple) and isinstance(ours, tuple) and _all_parts(here + ours):
            pairs = [first_difference(*pair, f"{name}.") for pair in zip(here, ours, strict=False)]
            if len(here) != len(ours) or any(pairs):
                return next((pair for pair in pairs if pair), name)
        elif type(here) is not type(ours) or here != ours:
            return name
    return None


def _all_parts(entries: tuple[Any, ...]) -> bool:
    return all(hasattr(entry, "__dataclass_fields__") for entry in entries)
