"""Confidence sequences for rates: an interval for a Poisson intensity that holds at all times at once.

**Theorem.** Let N(t) count events whose intensity at time t is λ·Y(t), where Y(t) ≥ 0 is known just before
t (how many things can happen, each at rate λ). Write K = N(t) and T = ∫₀ᵗ Y for the exposure. For fixed
a, b > 0

    M_t(λ) = ∫ (q^K e^{−qT} / λ^K e^{−λT}) dGamma(a, b)(q)
           = b^a Γ(a+K) / (Γ(a) (b+T)^{a+K}) · λ^{−K} e^{λT}

is a non-negative martingale with mean 1 at the true λ, so { λ : M_t(λ) < 1/γ } contains it at all times
together with probability at least 1 − γ.

*Proof.* For every q the process q^K e^{−qT} / (λ^K e^{−λT}) is the likelihood ratio of the counting process
with intensity q·Y against λ·Y: between events it changes by −(q−λ)·Y·dt times itself and at an event it is
multiplied by q/λ, so its drift is ((q/λ − 1)·λY − (q − λ)·Y)·dt = 0; it is a non-negative local martingale
with mean 1, and a martingale because Y is bounded on bounded times (Brémaud 1981, VI.2). A mixture over q
that is fixed in advance stays one (Fubini), and Ville's inequality gives the claim. ∎

Nothing is assumed about when observation begins, pauses and ends, as long as that is decided from the past:
sojourns that are cut off count their time and no event. Expressions that are multiples of each other (λ, 2λ,
3λ: so many machines that may fail) pool their events and their exposures, each weighted by its factor.

λT − K log λ is convex in λ, so the set is an interval around K/T. Each end is found by bisection that keeps
one point proved outside, and that point is returned; the comparison allows for rounding (`_error`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, lgamma, log

import numpy as np

from tightrope.model.continuous import ParametricCTMC
from tightrope.model.polynomial import Polynomial
from tightrope.model.ranges import ranges_over_box
from tightrope.numerics.arrays import BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Record

SHAPE = 0.5
"""a of the mixing distribution; its mean a/b is a rate in the middle of the domain."""

_MOST_HALVINGS = 200


@dataclass(frozen=True, eq=False, repr=False)
class RateClasses(Record):
    """The distinct unknown rates up to a factor: expression e is factor[e] times class of_expression[e].

    Constants have class −1.
    """

    base: tuple[Polynomial, ...]
    of_expression: IndexArray
    factor: tuple[Fraction, ...]

    @staticmethod
    def of(model: ParametricCTMC) -> RateClasses:
        table = model.expressions
        found: dict[Polynomial, int] = {}
        number: IndexArray = np.full(len(table), -1, dtype=np.int32)
        factor = [Fraction(1)] * len(table)
        for e in range(len(table)):
            polynomial = table.polynomial(e)
            if polynomial.is_constant:
                continue
            leading = max(polynomial.terms, key=lambda monomial: (len(monomial), monomial))
            scale = abs(polynomial.terms[leading])
            base = Polynomial({m: c / scale for m, c in polynomial.terms.items()})
            number[e] = found.setdefault(base, len(found))
            factor[e] = scale
        return RateClasses(tuple(found), number, tuple(factor))

    def __len__(self) -> int:
        return len(self.base)


@dataclass(frozen=True, eq=False, repr=False)
class RateEvents(Record):
    """How often each class was seen, over which exposure, and the interval of its rate."""

    classes: RateClasses
    events: OffsetArray
    exposure: FloatArray
    lower: FloatArray
    upper: FloatArray
    gamma: float


def estimate_rates(model: ParametricCTMC, jumps: OffsetArray, waited: FloatArray, delta: float) -> RateEvents:
    """Intervals of all unknown rates that hold together, at all times, with probability at least 1 − delta.

    `jumps` counts every transition, `waited` is the time spent in every state. Transitions of a state to
    itself do not count: an event that changes nothing is not seen in a log.
    """
    classes = RateClasses.of(model)
    events, exposure = pooled(model, classes, jumps, waited)
    gamma = delta / max(1, len(classes))
    middle = middles_of(model, classes)
    pairs = [gamma_of(int(k), float(t), m, gamma) for k, t, m in zip(events, exposure, middle, strict=True)]
    lower = np.array([low for low, _ in pairs])
    upper = np.array([high for _, high in pairs])
    return RateEvents(classes, events, exposure, lower, upper, gamma)


def pooled(
    model: ParametricCTMC, classes: RateClasses, jumps: OffsetArray, waited: FloatArray
) -> tuple[OffsetArray, FloatArray]:
    """Events and exposures of all classes."""
    owner = model.structure.transition_choice
    counted: BoolArray = model.successor != owner
    expression = model.expression[counted]
    number = classes.of_expression[expression]
    known = number >= 0
    factor = np.array([float(f) for f in classes.factor])[expression[known]]
    size = len(classes)
    events = np.bincount(number[known], weights=jumps[counted][known], minlength=size).astype(np.int64)
    exposure = np.bincount(number[known], weights=factor * waited[owner[counted][known]], minlength=size)
    return events, exposure.astype(np.float64)


def gamma_of(events: int, exposure: float, middle: float, gamma: float) -> tuple[float, float]:
    """Time-uniform bounds of a rate whose mixing distribution has this mean."""
    return gamma_poisson(events, exposure, SHAPE / middle, gamma)


def gamma_poisson(events: int, exposure: float, scale: float, gamma: float) -> tuple[float, float]:
    """Time-uniform bounds of a rate; `scale` is b of the mixing distribution, in units of exposure."""
    if exposure <= 0:
        return 0.0, inf
    mixture = (
        SHAPE * log(scale) + lgamma(SHAPE + events) - lgamma(SHAPE) - (SHAPE + events) * log(scale + exposure)
    )
    limit = log(1.0 / gamma) - mixture
    slack = _error(events, exposure, scale)
    best = events / exposure

    def is_outside(rate: float) -> bool:
        if rate <= 0:
            return events > 0
        first, second = rate * exposure, events * log(rate)
        return first - second > limit + slack + 1e-12 * (abs(first) + abs(second))

    lower = 0.0
    if events > 0:
        inner, outer = best, best
        while outer > 1e-300 and not is_outside(outer):
            outer /= 2
        lower = _edge(inner, outer, is_outside) if is_outside(outer) else 0.0
    outer = max(best, 1.0 / exposure)
    while not is_outside(outer):
        outer *= 2
    return lower, _edge(best, outer, is_outside)


def _edge(inner: float, outer: float, is_outside: Callable[[float], bool]) -> float:
    """A point proved outside, next to the end of the interval."""
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * (inner + outer)
        if middle in (inner, outer):
            break
        if is_outside(middle):
            outer = middle
        else:
            inner = middle
    return outer


def _error(events: int, exposure: float, scale: float) -> float:
    """More than the rounding of the terms compared, and of exposures that were added up in float64."""
    size = (events + 2.0) * (abs(log(scale + exposure)) + abs(log(scale)) + log(events + 2.0) + 4.0)
    return 64.0 * 2.0**-53 * size + 1e-12 * (events + 1.0)


def middles_of(model: ParametricCTMC, classes: RateClasses) -> FloatArray:
    """A rate in the middle of the domain for every class: the mean of its mixing distribution."""
    parameters = model.parameters
    low, high = ranges_over_box(model.expressions, parameters.lower, parameters.upper)
    result = np.ones(len(classes))
    for e in range(len(model.expressions)):
        if (number := int(classes.of_expression[e])) >= 0:
            least, most = (max(float(x) / float(classes.factor[e]), 0.0) for x in (low[e], high[e]))
            result[number] = max((least * most) ** 0.5 if least > 0 else most / 100.0, 1e-300)
    return result


def texts_of(classes: RateClasses, names: Sequence[str]) -> tuple[str, ...]:
    """The classes as a reader writes them."""
    return tuple(base.text(tuple(names)) for base in classes.base)
