"""Poisson probabilities between rationals, without an exponential.

Numbers c_k proportional to P(N = k), c = 1 at the mode, follow from c_{k+1} = c_k·λ/(k+1), in whole numbers
of 2⁻²⁰⁰ rounded down and rounded up. Beyond a window the ratios of neighbours fall, so that what is left out
is below a geometric series on each side. All of them sum to Σ c, between the sum of the lower ones and that
of the upper ones with what is left out, and P(N = k) = c_k/Σ c.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from tightrope.certificate.budget import spend

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
