"""What is known of the parameters of a model: their domain, and what was seen of the true ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tightrope.certificate.budget import spend
from tightrope.certificate.format import fields
from tightrope.certificate.format.fields import is_offsets
from tightrope.certificate.problem import bits_of
from tightrope.numerics.arrays import BoolArray, OffsetArray

if TYPE_CHECKING:
    from tightrope.certificate.statistics.costs import Costs

MOST_COUNTS = 2**50
"""Sums of counts, also over all outcomes, stay far below what int64 and doubles hold."""

MOST_ELIMINATION = 4 * 10**7
"""Of the equalities of a domain: their number³ · parameters · bits of a coefficient."""

METHODS = {
    "clopper-pearson": "intervals",
    "hoeffding": "intervals",
    "beta-binomial": "intervals",
    "weissman": "balls",
    "likelihood": "likelihood",
    "slab": "slab",
    "ellipsoid": "ellipsoid",
}
"""The statement that is made of data, and the module of `tightrope.certificate.statistics` that proves it."""


@dataclass(frozen=True, eq=False)
class Domain:
    """lower ≤ θ ≤ upper, and for every row r: Σ coefficient[r·n + i]·θ_i ≤ bound[r] (= if is_equality[r])."""

    lower: tuple[Fraction, ...] = fields.rationals("PARAMETERS")
    upper: tuple[Fraction, ...] = fields.rationals("PARAMETERS")
    coefficient: tuple[Fraction, ...] = fields.rationals("coefficients")
    bound: tuple[Fraction, ...] = fields.rationals("rows")
    is_equality: BoolArray = fields.truths("rows")

    def trouble(self) -> str | None:
        size = len(self.lower)
        if len(self.coefficient) != size * len(self.bound):
            return "the domain's constraints do not fit its parameters"
        equal = [row for row in self.constraints if row[2]]
        longest = max((bits_of(c) for row in equal for c in row[0]), default=0)
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
    do not use the order have one batch. `anytime`: they were looked at while they came. `shared_by`: for
    intervals, whose δ is shared: events, g and 1 − g being one; outcomes, each g; or transitions, each with
    its own counts.
    """

    delta: float = fields.share()
    method: str = fields.word(*METHODS)
    shared_by: str = fields.word("events", "outcomes", "transitions")
    design: str = fields.word("generative-fixed", "trajectories", "adaptive")
    repeats: bool = fields.truth()
    censored: bool = fields.truth()
    anytime: bool = fields.truth()
    batch_start: OffsetArray = fields.integers("batches+1")
    batch_transition: OffsetArray = fields.integers("counts")
    batch_count: OffsetArray = fields.integers("counts", least=1, most=MOST_COUNTS)
    episodes: int | None = fields.whole(optional=True)
    planned: int | None = fields.whole(optional=True)
    costs: Costs | None = fields.part("statistics.costs.Costs", optional=True)

    def trouble(self) -> str | None:
        if not is_offsets(self.batch_start, len(self.batch_transition), rising=False):
            return "the batches do not fit"
        falls = np.flatnonzero(np.diff(self.batch_transition) <= 0) + 1
        if not np.isin(falls, self.batch_start).all():
            return "the transitions of a batch do not rise strictly"
        if self.batch_count.astype(np.float64).sum() > MOST_COUNTS:
            return f"there are more than {MOST_COUNTS} counts"
        plain = self.shared_by == "events" or self.has_intervals
        return None if plain else f"{self.method} shares its confidence in one way only"

    @property
    def has_intervals(self) -> bool:
        """Whether the statement is one interval for each event, outcome or transition."""
        return METHODS[self.method] == "intervals"

    @property
    def is_untied(self) -> bool:
        return self.shared_by == "transitions"

    @property
    def batches(self) -> int:
        return len(self.batch_start) - 1

    @property
    def sizes(self) -> list[int]:
        """How much was seen in every batch."""
        spend("batches", 100 * self.batches)
        return [int(self.batch_count[a:b].sum()) for a, b in pairwise(self.batch_start.tolist())]
