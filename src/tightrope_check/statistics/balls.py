"""L1 balls around what was seen, one for each group of choices with the same outcomes.

Such choices draw from one distribution P; of N visits to them a share P̃(A) ended in the set A of outcomes.
With probability at least 1 − γ, P(A) − P̃(A) ≤ ε/2 for all A at once, where (2ᵏ − 2)·exp(−N·ε²/2) = γ for k
outcomes (Weissman et al. 2003). Each group with an unknown outcome takes a share γ of δ, visited or not: so
nothing that was seen decides how δ is shared. A row of the region is such an inequality for one set A, whose
probability is the sum of its outcomes' polynomials.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope_check.arrays import FloatArray
from tightrope_check.budget import spend_terms
from tightrope_check.coordinates import Row, Terms, add
from tightrope_check.learned import Learned, RowOrigin, Statements
from tightrope_check.logarithms import log_below, log_up, root_up
from tightrope_check.numbers import RATIONAL
from tightrope_check.verdict import Check


def prove(about: Learned, delta: Fraction) -> Statements:
    """A ball around what was seen of every group, which share δ."""
    balls = Balls(about, delta)
    words = f"{balls.statements} balls, δ = {float(delta):g}"
    return Statements(Check("L1 balls are those of the model", True, words), {RowOrigin.L1: balls})


class Balls:
    """The balls of all groups at level γ each."""

    def __init__(self, about: Learned, delta: Fraction):
        self.about, outcomes = about, about.outcomes
        self.uncertain = np.logical_or.reduceat(about.unknown[outcomes.expression], outcomes.start[:-1])
        self.statements = int(self.uncertain.sum())
        self.log_level = log_below(delta / max(self.statements, 1))

    def row(self, index: int, part: int, points: FloatArray) -> Row:
        """Choice `index` and the set of outcomes in the bits of `part`."""
        outcomes = self.about.outcomes
        group = int(outcomes.of_choice[index]) if index < len(outcomes.of_choice) else -1
        first, last = outcomes.start[group : group + 2].tolist() if group >= 0 else (0, 0)
        width, trials = last - first, int(outcomes.seen[first:last].sum())
        if not 0 < part < 2**width - 1 or trials == 0 or not self.uncertain[group]:
            raise ValueError("no such set of outcomes")
        log_sets = log_up(RATIONAL.array([2**width - 2])) - self.log_level
        radius = root_up(RATIONAL, 2 * log_sets / trials)
        total: Terms = {}
        share = 0
        for o in range(first, last):
            if part >> (o - first) & 1:
                polynomial = self.about.polynomials[int(outcomes.expression[o])]
                total = add(total, polynomial, int(outcomes.multiplicity[o]))
                share += int(outcomes.seen[o])
        linear, constant = self.about.space.affine(total)
        spend_terms("L1 balls", 100 + len(linear), linear, (constant,))
        return linear, Fraction(share, trials) + RATIONAL.fractions(radius)[0] / 2 - constant
