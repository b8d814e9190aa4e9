"""Chains in continuous time: rates between bounds, and bounds of values that follow from them.

`polynomial` are rates here, of a graph with one choice per state. States earn per unit of time. `time` is
empty for questions without time, (a,) from a on, (a, b) between a and b, with a reward (t,) at the moment t
and (0, t) for all that is earned until t.

*Rates* are exact at a point, between their ends over a domain, and with data within the intervals of their
classes (`tightrope_check.statistics.rates`), which also narrow a parameter that is alone in one.

*Without time.* Let U be no smaller than any exit rate of a state. The chain that jumps with r/U, stays with
the rest and earns ρ/U a step has the same value, for all rates r between the bounds; for averages U is one
number for all states. The vectors are checked in this interval chain (`tightrope_check.checker`), with
the least rewards from below and the largest from above.

*With time*, by uniformisation: the README of this package has sums and Poisson probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from tightrope_check.arrays import BoolArray, Number, OffsetArray
from tightrope_check.budget import longest, spend, spend_sums
from tightrope_check.coordinates import polynomial_range
from tightrope_check.fields import Polynomial
from tightrope_check.nature import BoundVector, Boxes
from tightrope_check.numbers import RATIONAL, Arithmetic, Numbers, as_fraction
from tightrope_check.verdict import Check, Contradiction

if TYPE_CHECKING:
    from tightrope_check.problem import Certificate, CertifiedProblem

Prove = Callable[..., tuple[list[Check], BoundVector]]
"""The checks behind one bound of vectors, and that (`tightrope_check.checker`)."""

KINDS = {"UNTIL": (0, 1, 2), "TOTAL": (1, 2), "REACH_REWARD": (0,), "AVERAGE": (0,)}
"""How many times a question may refer to."""

ABOVE = {True: Fraction(9, 8), False: 1 + Fraction(1, 1 << 20)}
"""By how much uniform rates are above the largest exit rate: of averages, so that no step is certain."""


_LONG = 2000
"""Bits of the rates of a state."""


def trouble(problem: CertifiedProblem) -> str | None:
    """Why this is no question about a chain in continuous time."""
    objective, time, data = problem.objective, problem.time or (), problem.data
    if problem.graph.states != problem.graph.choices or problem.polynomial is None:
        return "a chain in continuous time has rates, and one choice per state"
    if (
        len(time) not in KINDS.get(objective.kind, ())
        or list(time) != sorted(time)
        or min(time, default=0) < 0
    ):
        return f"{len(time)} times of {objective.kind}, or times that do not rise"
    if objective.kind == "TOTAL" and len(time) == 2 and time[0] != 0:
        return "what is earned is earned from the beginning on"
    steps = objective.lower_steps or objective.upper_steps is not None or objective.terminal is not None
    others = (problem.denominator, problem.misfit, problem.assumed_support, problem.automaton)
    if steps or any(other is not None for other in others):
        return "steps, terminal rewards, quotients or assumptions in continuous time"
    if data is not None and (data.waited is None or data.costs is not None or data.shared_by != "events"):
        return "data in continuous time are jumps and exposures"
    return None


def ends_of(
    certificate: Certificate, n: Arithmetic, prove: Prove, checks: list[Check]
) -> tuple[Number, Number] | None:
    """What is proved of the claim's value; nothing rests on a check that failed."""
    if len(certificate.claims) != 1 or certificate.claims[0].policy != "free":
        raise ValueError("a chain in continuous time has one value")
    sets = RateSets(certificate, prove)
    checks.append(sets.check)
    if not sets.check.passed:
        return None
    proofs, (low, high) = sets.ends(n)
    checks += proofs
    if not all(one.passed for one in proofs):
        return None
    problem, claim = certificate.problem, certificate.claims[0]
    if problem.objective.complement:
        low, high = 1 - high, 1 - low
    least, most = problem.objective.range
    low, high = max(low, least), min(high, most)
    if problem.data is not None and problem.data.seen is not None:
        from tightrope_check.statistics.episodes import improved

        low, high = improved(problem, claim, low, high)
    if low > high:
        raise Contradiction("no value is left")
    return low, high


class RateSets:
    """Bounds of all rates and rewards, in rationals, and the chains behind them."""

    def __init__(self, certificate: Certificate, prove: Prove):
        problem, self.prove = certificate.problem, prove
        assert problem.polynomial is not None and problem.expression is not None and problem.time is not None
        self.problem, self.graph = problem, problem.graph
        self.claim, self.hints = certificate.claims[0], certificate.values[0]
        self.time, self.kind, self.expression = problem.time, problem.objective.kind, problem.expression
        self.polynomials = problem.polynomial
        self.owner = np.repeat(np.arange(self.graph.states), np.diff(self.graph.transition_start))
        self.moves: BoolArray = self.graph.successor != self.owner
        if problem.theta is not None:
            from tightrope_check.laws import values_at

            exact = values_at(problem.polynomial, problem.theta)
            self.check = Check("rates", True, f"at a point, {len(exact)} expressions")
            self.rates = {e: (exact[e], exact[e]) for e in self.used}
            self.earned = {e: (exact[e], exact[e]) for e in self.paid}
        else:
            self._over_domain(certificate)
        if any(high < 0 for _, high in self.rates.values()):
            raise Contradiction("a rate is negative")
        if any(low > high for low, high in (*self.rates.values(), *self.earned.values())):
            raise Contradiction("no rate is left between its bounds")
        self.rates = {e: (max(low, Fraction(0)), high) for e, (low, high) in self.rates.items()}

    @property
    def used(self) -> list[int]:
        return np.unique(self.expression).tolist()  # type: ignore[no-any-return]

    @property
    def paid(self) -> list[int]:
        earned = self.problem.objective.earned
        return [] if earned is None else np.unique(earned).tolist()

    def _over_domain(self, certificate: Certificate) -> None:
        domain, hints = self.problem.domain, certificate.learned
        assert domain is not None and hints is not None
        lower, upper = list(domain.lower), list(domain.upper)
        known: dict[int, tuple[Number, Number]] = {}
        self.check = Check("no data", True, "the bounds hold for every instantiation in the domain")
        if self.problem.data is not None:
            from tightrope_check.statistics.rates import classes_of
            from tightrope_check.statistics.rates import prove as prove_intervals

            if hints.rate_lower is None or hints.rate_upper is None:
                raise ValueError("there are no intervals of rates")
            classes, of = classes_of(self.problem)
            least, most = hints.rate_lower.tolist(), hints.rate_upper.tolist()
            self.check = prove_intervals(self.problem, classes, least, most)
            ends = list(zip(least, most, strict=True))
            for one, (low, high) in zip(classes, ends, strict=True):
                _narrow(one.base, low, high, lower, upper)
            if any(a > b for a, b in zip(lower, upper, strict=True)):
                raise Contradiction("no parameter is left in its interval")
            for e, (c, factor) in of.items():
                low, high = ends[c]
                known[e] = factor * Fraction(low), inf if high == inf else factor * Fraction(high)

        def between(e: int) -> tuple[Number, Number]:
            low, high = polynomial_range(self.polynomials[e], lower, upper, True)
            least, most = known.get(e, (-inf, inf))
            return max(low, least), min(high, most)

        self.rates = {e: between(e) for e in self.used}
        self.earned = {e: polynomial_range(self.polynomials[e], lower, upper, True) for e in self.paid}

    def ends(self, n: Arithmetic) -> tuple[list[Check], tuple[Number, Number]]:
        """The proofs, and what is proved of the initial state, before `complement`."""
        (below, low), (above, high) = self._end(n, False), self._end(n, True)
        return below + above, (low, high)

    def _end(self, n: Arithmetic, upward: bool) -> tuple[list[Check], Number]:
        at, objective = self.graph.initial, self.problem.objective
        if self.kind == "TOTAL":
            return [], self._earnings(n, upward)
        checks: list[Check] = []
        later: Numbers
        allowed, target = objective.allowed, objective.target
        within = np.ones(self.graph.states, dtype=np.bool_) if allowed is None else allowed
        if len(self.time) == 2 and target is not None:
            start = _numbers(n, RATIONAL.array(target.astype(np.int64)), upward)
            later = self.moved(n, start, within & ~target, self.time[1] - self.time[0], upward)
        else:
            checks, bound = self.prove(self.priced(upward), self.boxes(n), self.claim, self.hints, upward)
            value = inf if bound.infinite[at] else as_fraction(bound.number[at])
            if not self.time:
                return checks, value
            later = np.where(bound.infinite, 1, np.minimum(np.maximum(bound.number, 0), 1))
        if self.time[0] > 0:  # at 0 a target counts, allowed or not
            later = self.moved(n, np.where(within, later, n.zeros(len(later))), within, self.time[0], upward)
        return checks, as_fraction(later[at])

    # --- without time ------------------------------------------------------------------------

    @cached_property
    def exits(self) -> Numbers:
        """The largest exit rate of every state, in rationals."""
        self._count_sums()
        total: Numbers = np.add.reduceat(self.of_transitions(1), self.graph.transition_start[:-1])
        return total

    def _count_sums(self) -> None:
        """Rates are about to be added up: of long ones a sum is as long as all denominators together."""
        size, start = np.zeros(len(self.polynomials), dtype=np.int64), self.graph.transition_start
        size[self.used] = [longest(end for end in self.rates[e] if end != inf) for e in self.used]
        total = np.add.reduceat(np.where(self.moves, size[self.expression], 0), start[:-1])
        spend("exit rates", 100 * self.graph.transitions)
        for state in np.flatnonzero(total > _LONG).tolist():
            own = range(int(start[state]), int(start[state + 1]))
            rates = [self.rates[int(self.expression[t])][1] for t in own if self.moves[t]]
            spend_sums("exit rates", 16 * len(own), [[rate for rate in rates if rate != inf]])

    def of_transitions(self, side: int) -> Numbers:
        """The lower or the upper rate of every transition; 0 of those that lead nowhere else."""
        table = RATIONAL.zeros(len(self.polynomials))
        table[self.used] = RATIONAL.array([self.rates[e][side] for e in self.used])
        return np.where(self.moves, table[self.expression], RATIONAL.zeros(1))

    @property
    def uniform(self) -> Fraction:
        """Λ, a double."""
        most = as_fraction(max(self.exits.tolist())) * ABOVE[self.kind == "AVERAGE"]
        return Fraction(float(RATIONAL.up(RATIONAL.array([most]))[0])) or Fraction(1)

    def boxes(self, n: Arithmetic) -> Boxes:
        """The interval chain of jumps, or of steps for averages; one more loop a state takes the rest."""
        size = self.graph.states
        own = RATIONAL.array([self.uniform] * size) if self.kind == "AVERAGE" else self.exits
        own = np.where(own > 0, own, RATIONAL.array([1])[0])
        start = self.graph.transition_start + np.arange(size + 1)
        place, loop = np.arange(len(self.owner)) + self.owner, start[1:] - 1
        successor = np.zeros(start[-1], dtype=np.int64)
        successor[place], successor[loop] = self.graph.successor, np.arange(size)
        low, high = RATIONAL.zeros((2, len(successor)))
        for side, bound in enumerate((low, high)):
            bound[place] = self.of_transitions(side) / own[self.owner]
        for bound, other in ((low, high), (high, low)):
            bound[loop] = 1 - np.add.reduceat(other[place], self.graph.transition_start[:-1])
        single = np.ones(size, dtype=np.bool_)
        label = np.arange(len(successor))
        rounded = n.enclose(low)[0], n.enclose(high)[1]
        return Boxes(n, start, successor, label, *rounded, single, lambda at: (low[at], high[at]))

    def gains(self, upward: bool) -> Numbers:
        """What states earn per unit of time, their least or largest, in rationals."""
        objective = self.problem.objective
        if objective.earned is not None:
            return RATIONAL.array([self.earned[e][upward] for e in objective.earned.tolist()])
        assert objective.reward is not None
        return RATIONAL.array(objective.reward)

    def priced(self, upward: bool) -> CertifiedProblem:
        """The problem of the interval chain, with rewards per step at their end for a bound."""
        objective = self.problem.objective
        if self.kind == "UNTIL":
            return self.problem
        gains = self.gains(upward)
        if self.kind == "REACH_REWARD":
            gains = gains / np.where(self.exits > 0, self.exits, RATIONAL.array([1])[0])
        reward = RATIONAL.up(gains) if upward else RATIONAL.down(gains)
        return replace(self.problem, objective=replace(objective, reward=reward, earned=None))

    # --- with time ---------------------------------------------------------------------------

    def steps(self, n: Arithmetic, active: BoolArray) -> UniformSteps:
        """The uniformised chain in which some states move."""
        used = np.flatnonzero(self.moves & active[self.owner])
        order = used[np.lexsort((self.expression[used], self.owner[used]))]
        owner, expression = self.owner[order], self.expression[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (owner[1:] != owner[:-1]) | (expression[1:] != expression[:-1])
        group = np.flatnonzero(new)
        state = owner[group]
        length = np.diff(np.append(group, len(order)))
        uniform = self.uniform
        ends = [
            RATIONAL.array([self.rates[e][side] / uniform for e in expression[group].tolist()])
            for side in (0, 1)
        ]
        rest = (ends[1] - ends[0]) * RATIONAL.array(length)
        first = np.flatnonzero(np.diff(state, prepend=-1))
        stay = RATIONAL.zeros(self.graph.states) + 1
        if len(first):
            stay[state[first]] -= np.add.reduceat(ends[1] * RATIONAL.array(length), first)
        width = int(np.bincount(owner, minlength=1).max())
        low, high, rest, stay = (n.array(part) for part in (*ends, rest, stay))
        return UniformSteps(
            n, active, self.graph.successor[order], group, state, first, low, high, rest, stay, width
        )

    def moved(
        self, n: Arithmetic, start: Numbers, active: BoolArray, time: Fraction, upward: bool
    ) -> Numbers:
        """Bounds of E[f(X_t)] for f = `start` in [0, 1], where only active states move."""
        steps, window = self.steps(n, active), PoissonWindow.of(self.uniform * time)
        steps.count(window.last)
        weights = _numbers(n, RATIONAL.array(window.weights(upward)), upward)
        total = steps.sum(start, weights, upward, window.first)
        if upward:
            total = total + _numbers(n, RATIONAL.array([window.left + window.right]), True)[0]
            total = total + n.error(4, total)
        return np.where(active, np.minimum(np.maximum(total, 0), 1), start)

    def _earnings(self, n: Arithmetic, upward: bool) -> Fraction:
        """What is earned until a time, or at it."""
        gains, size = self.gains(upward), self.graph.states
        if min(gains.tolist()) < 0:
            raise ValueError("rewards up to a time are bounded where none is negative")
        peak = as_fraction(max(gains.tolist()))
        if peak == 0:
            return Fraction(0)
        start, everywhere = (
            _numbers(n, gains / RATIONAL.array([peak])[0], upward),
            np.ones(size, dtype=np.bool_),
        )
        if len(self.time) == 1:
            return peak * as_fraction(
                self.moved(n, start, everywhere, self.time[0], upward)[self.graph.initial]
            )
        uniform = self.uniform
        window, steps = PoissonWindow.of(uniform * self.time[1]), self.steps(n, everywhere)
        steps.count(window.last)
        shares = _numbers(n, RATIONAL.array(window.later(upward)), upward)
        total = steps.sum(start, shares, upward)
        value = max(as_fraction(total[self.graph.initial]), Fraction(0)) + (window.excess if upward else 0)
        return peak * min(value / uniform, self.time[1])


@dataclass(frozen=True, eq=False)
class UniformSteps:
    """A uniformised chain whose rates lie between bounds. Group g has one rate between low[g] and high[g] for
    all its transitions, from group[g] on; the groups of a state are next to each other, `first` of each."""

    n: Arithmetic
    active: BoolArray
    successor: OffsetArray
    group: OffsetArray
    state: OffsetArray
    first: OffsetArray
    low: Numbers
    high: Numbers
    rest: Numbers
    stay: Numbers
    width: int

    def count(self, steps: int) -> None:
        """So many steps are about to be made."""
        work = 12 * len(self.successor) + 8 * len(self.stay) + (0 if self.n.exact else 6000)
        spend("steps of a uniformised chain", steps * work, 400 if self.n.exact else 0)

    def sum(self, start: Numbers, shares: Numbers, upward: bool, first: int = 0) -> Numbers:
        """Σ_k shares[k]·(start after first + k steps): not above it, or not below it if `upward`."""
        n, now, total = self.n, start, self.n.zeros(len(start))
        for k in range(first + len(shares)):
            now = self.step(now, start, upward) if k else now
            if k >= first:
                total = n.trim(total + shares[k - first] * now, upward)
        slack = n.error(2 * len(shares) + 8, total)
        result: Numbers = total + slack if upward else total - slack
        return result

    def step(self, now: Numbers, start: Numbers, upward: bool) -> Numbers:
        """One backup, where each rate is at its worse end."""
        n, value = self.n, self.stay * now
        if len(self.group):
            others = np.add.reduceat(now[self.successor], self.group)
            fast, slow = self.high * others, self.low * others + self.rest * now[self.state]
            worse = np.maximum(fast, slow) if upward else np.minimum(fast, slow)
            value[self.state[self.first]] += np.add.reduceat(worse, self.first)
        slack = n.error(2 * self.width + 12, value)
        value = value + slack if upward else value - slack
        within: Numbers = np.where(self.active, np.minimum(np.maximum(value, 0), 1), start)
        return n.trim(within, upward)


def _numbers(n: Arithmetic, exact: Numbers, upward: bool) -> Numbers:
    """Rationals as numbers of an arithmetic, on a side."""
    return n.trim(n.enclose(exact)[upward], upward)


def _narrow(base: Polynomial, low: float, high: float, lower: list[Fraction], upper: list[Fraction]) -> None:
    """low ≤ c·θ_i + d ≤ high, where nothing else is in a class."""
    constant, others = base.get((), Fraction(0)), [one for one in base.items() if one[0]]
    if len(others) != 1 or len(others[0][0]) != 1 or others[0][0][0][1] != 1:
        return
    ((((i, _),), slope),) = others
    ends = [None if end == inf else (Fraction(end) - constant) / slope for end in (low, high)]
    least, most = ends if slope > 0 else ends[::-1]
    lower[i] = lower[i] if least is None else max(lower[i], least)
    upper[i] = upper[i] if most is None else min(upper[i], most)


_ONE = 1 << 200
_LEFT_OUT = 1 << 110
"""2⁻⁹⁰ of the largest term."""

MOST_EVENTS = 5_000_000


@dataclass(frozen=True)
class PoissonWindow:
    """c_k for first ≤ k ≤ last from below and from above; `left` and `right` are no less than all others,
    `excess` no less than Σ_{k>last+1} (k − last − 1)·c_k, all divided by `least` ≤ Σ c ≤ `most`."""

    first: int
    low: list[int]
    high: list[int]
    left: Fraction
    right: Fraction
    excess: Fraction

    @staticmethod
    def of(mean: Fraction) -> PoissonWindow:
        if mean > MOST_EVENTS:
            raise ValueError(f"more than {MOST_EVENTS} events are expected until then")
        bits = 300 + mean.numerator.bit_length() + mean.denominator.bit_length()
        spend("events of a Poisson process", 20 * (60 + 20 * float(mean) ** 0.5), bits)
        a, b, mode = mean.numerator, mean.denominator, int(mean)
        low, high, k = [_ONE], [_ONE], mode
        while True:
            ratio = mean / (k + 1)
            if ratio < 1 and high[-1] * ratio <= _LEFT_OUT * (1 - ratio):
                break
            k += 1
            low.append(low[-1] * a // (b * k))
            high.append(-(-high[-1] * a // (b * k)))
        right = high[-1] * ratio / (1 - ratio)
        excess, k = right / (1 - ratio), mode
        below_low, below_high = [_ONE], [_ONE]
        while k > 0 and below_high[-1] * k > _LEFT_OUT * (mean - k):
            below_low.append(below_low[-1] * k * b // a)
            below_high.append(-(-below_high[-1] * k * b // a))
            k -= 1
        left = below_high[-1] * k / (mean - k) if k else Fraction(0)
        low, high = below_low[:0:-1] + low, below_high[:0:-1] + high
        least = sum(low)
        return PoissonWindow(k, low, high, left / least, right / least, excess / least)

    @property
    def last(self) -> int:
        return self.first + len(self.low) - 1

    @property
    def totals(self) -> tuple[int, Fraction]:
        """Σ c from below and from above."""
        least = sum(self.low)
        return least, sum(self.high) + (self.left + self.right) * least

    def weights(self, upward: bool) -> list[Fraction]:
        """P(N = k) for k from `first` on, none of them above the true one, or none below it."""
        least, most = self.totals
        return [Fraction(c, least) for c in self.high] if upward else [c / most for c in self.low]

    def later(self, upward: bool) -> list[Fraction]:
        """P(N > k) for k = 0, 1, … until `last`, likewise."""
        least, most = self.totals
        sums = list(accumulate(reversed(self.high if upward else self.low), initial=0))[::-1]
        beyond = self.right if upward else Fraction(0)
        inside = [Fraction(c) / (least if upward else most) + beyond for c in sums[1:]]
        before = Fraction(sums[0]) / (least if upward else most) + beyond + (self.left if upward else 0)
        return [min(one, Fraction(1)) for one in [before] * self.first + inside]
