"""L1 balls around what was seen, one a signature: rows for sets of outcomes.

Choices with the same outcomes (expressions with multiplicities) draw from one distribution P; N visits to
them, of which a share P̃(A) ended in the set A. With probability at least 1 − γ, P(A) − P̃(A) ≤ ε/2 for all
A at once, where (2ᵏ − 2)·exp(−N·ε²/2) = γ (Weissman et al. 2003). Each signature with an unknown outcome
takes a share γ of δ, visited or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from tightrope.certificate.events_check import outcomes
from tightrope.certificate.inner import EPSILON, as_fraction
from tightrope.certificate.learning import Data
from tightrope.certificate.polynomials import Polynomial, is_constant, scaled
from tightrope.certificate.signatures import Signatures
from tightrope.certificate.space import Space
from tightrope.numerics.arrays import OffsetArray


class Balls:
    """Signatures, their counts and rows."""

    def __init__(
        self,
        data: Data,
        space: Space,
        polynomials: Sequence[Polynomial],
        signatures: Signatures,
    ):
        self.data, self.space, self.polynomials = data, space, polynomials
        owner, expression, multiplicity, seen = outcomes(
            signatures.start, signatures.expression, signatures.counts
        )
        self.of_choice = signatures.of_choice
        self.start = np.searchsorted(owner, np.arange(len(signatures) + 1))
        self.expression, self.multiplicity = expression, multiplicity
        unknown = np.array([not is_constant(p) for p in polynomials])
        # What counts are outcomes with multiplicities, by their bytes: rows in another order are the same.
        table = np.stack([expression, multiplicity], axis=1).astype(np.int64)
        self.names: list[bytes] = []
        self.seen: dict[bytes, OffsetArray] = {}
        self.uncertain: set[bytes] = set()
        for c in range(len(signatures)):
            part = slice(int(self.start[c]), int(self.start[c + 1]))
            name = table[part].tobytes()
            self.names.append(name)
            if name in self.seen:
                self.seen[name] = self.seen[name] + seen[part]
            else:
                self.seen[name] = seen[part]
                if unknown[expression[part]].any():
                    self.uncertain.add(name)

    def row(self, index: int, part: int) -> tuple[list[Fraction], Fraction]:
        if not 0 <= index < len(self.of_choice):
            raise ValueError("no such choice")
        signature = int(self.of_choice[index])
        name = self.names[signature]
        seen = self.seen[name]
        trials = int(seen.sum())
        first, width = int(self.start[signature]), len(seen)
        if not 0 < part < 2**width - 1 or trials == 0 or name not in self.uncertain:
            raise ValueError("no such set of outcomes")
        log_sets = np.log(np.longdouble(2**width - 2)) - np.log(np.longdouble(self.data.gamma))
        radius = np.sqrt(2 * log_sets / trials) * (1 + 16 * EPSILON)
        linear, constant, share = [Fraction(0)] * self.space.size, Fraction(0), 0
        for j in range(width):
            if part >> j & 1:
                polynomial = self.polynomials[int(self.expression[first + j])]
                a, c = self.space.affine(scaled(polynomial, int(self.multiplicity[first + j])))
                linear = [x + y for x, y in zip(linear, a, strict=True)]
                constant += c
                share += int(seen[j])
        return linear, Fraction(share, trials) + as_fraction(radius) / 2 - constant
