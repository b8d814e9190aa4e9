"""The parts of a certificate over a domain: domain and data, which belong to the problem, and hints."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from tightrope_check import fields
from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.fields import MOST_CODES, MOST_ENTRIES, is_offsets
from tightrope_check.numbers import bits_of
from tightrope_check.verdict import Assumption

MOST_COUNTS = 2**50
"""Sums of counts, also over all outcomes, stay far below what int64 and doubles hold."""

MOST_STRENGTH = 1e9
"""Of a prior, in counts."""

MOST_ELIMINATION = 4 * 10**7
"""Of the equalities of a domain: their number³ · parameters · bits of a coefficient."""


@dataclass(frozen=True)
class Method:
    """A statement that is made of data: the module of `tightrope_check.statistics` that proves it,
    whether visits have to be `fixed` in advance, and whether it looks at batches in their `order`."""

    module: str
    fixed: bool = False
    ordered: bool = False


_SHARES = ("3/5 likelihood", "9/10 value slab", "9/10 value slab of the best")  # of δ, beside intervals
_SLABS = ("slab", "slab of few data", "value slab", "value slab of few data")
"""A value slab places bets by information with a 64th of the smoothing's, and where the policy is still to be
found on several; a slab, which files from before say, by all of it and on one."""

METHODS = {
    "clopper-pearson": Method("intervals", fixed=True),
    "hoeffding": Method("intervals", fixed=True),
    "beta-binomial": Method("intervals"),
    "unseen mass": Method("unseen"),
    "weissman": Method("balls", fixed=True),
    "likelihood": Method("likelihood", ordered=True),
    **dict.fromkeys(
        (*_SLABS, "slab of the difference", "value slab of the difference"), Method("slab", ordered=True)
    ),
    "ellipsoid": Method("ellipsoid"),
    "gamma-poisson": Method("rates"),
    **{
        f"{first}+{second}": Method("joint", fixed=first != "beta-binomial", ordered=True)
        for first in ("clopper-pearson", "hoeffding", "beta-binomial")
        for second in ("likelihood", *_SLABS, "slab of the best", "value slab of the best", *_SHARES)
    },
}
"""The checker's own registry of methods."""

FIXED = "the visits of each event were fixed in advance, independently of outcomes"
PLANNED = "the amount of data was fixed in advance; the policy may have been adaptive"
ANY = "the data may come from any policy and may stop at any time"
_ENDS = "every episode is complete or was cut by a rule that uses no later outcomes"
_ORDER = "earlier counts did not depend on later outcomes"
_STATUS = {"stated": "{} (stated)", "unknown": "NOMINAL: unknown whether {}", "no": "NOMINAL: violated: {}"}
STATED = tuple(
    (name, status, words.format(what))
    for name, what in (("ends of episodes", _ENDS), ("order in time", _ORDER))
    for status, words in _STATUS.items()
)
"""What is said of data beside the design: (name, whether it is kept, in words); files have the numbers."""


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
    """Counts in time-ordered batches, how they were sampled, and the statement that is made of them.

    Batch b saw batch_transition[i] batch_count[i] times, batch_start[b] ≤ i < batch_start[b+1]. Methods that
    do not use the order have one batch. `anytime`: there were interim analyses. `shared_by`: for intervals,
    whose δ is shared: events, g and 1 − g being one; outcomes, each g; or transitions, each with its own
    counts. `stated`: what else is said of them, numbers of `STATED`. `seen`, with a part of δ beside that of
    the counts: observed returns of episodes (`tightrope_check.statistics.episodes`); `returns`: the end
    (0, 1) they are away from, how far, and how many are. `prior`: a parameter's number, and its pseudo-counts
    of successes and failures where batches are predicted. `waited`: of a chain in continuous time, how long
    it was seen in every state.
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
    costs: Any = fields.part("statistics.costs.Costs", optional=True)
    stated: OffsetArray | None = fields.integers("statements", most=len(STATED) - 1, optional=True)
    seen: OffsetArray | None = fields.integers("episodes", most=MOST_COUNTS, optional=True)
    seen_delta: FloatArray | None = fields.reals("shares", optional=True)
    returns: FloatArray | None = fields.reals("returns", "3", least=0.0, optional=True)
    prior: FloatArray | None = fields.reals("priors", "3", least=0.0, most=MOST_STRENGTH, optional=True)
    waited: FloatArray | None = fields.reals("STATES", least=0.0, optional=True)

    def trouble(self) -> str | None:
        if not is_offsets(self.batch_start, len(self.batch_transition), rising=False):
            return "the batches do not fit"
        falls = np.flatnonzero(np.diff(self.batch_transition) <= 0) + 1
        if not np.isin(falls, self.batch_start).all():
            return "the transitions of a batch do not rise strictly"
        if self.batch_count.astype(np.float64).sum() > MOST_COUNTS:
            return f"there are more than {MOST_COUNTS} counts"
        if self.stated is not None and np.any(np.diff(self.stated) <= 0):
            return "what is stated of the data does not rise"
        if self.seen is not None or self.seen_delta is not None or self.returns is not None:
            from tightrope_check.statistics.episodes import trouble

            if found := trouble(self):
                return found
        if self.prior is not None:
            whole = np.array_equal(self.prior[:, 0], np.floor(self.prior[:, 0]))
            if self.method != "likelihood" or not whole or np.any(np.diff(self.prior[:, 0]) <= 0):
                return "priors are of parameters, in their order, and of a likelihood"
        if (self.waited is not None) != (self.method == "gamma-poisson"):
            return "exposures are for intervals of rates, which need them"
        plain = self.shared_by == "events" or self.has_intervals
        return None if plain else f"{self.method} shares its confidence in one way only"

    @property
    def has_intervals(self) -> bool:
        """Whether the statement is one interval for each event, outcome or transition."""
        return METHODS[self.method].module in ("intervals", "joint", "unseen")

    @property
    def bets(self) -> bool:
        """Whether it is bet on a policy's value: on a given one's, if there is one, unless on the best; or on
        what the best one gains over the given one."""
        return "slab" in self.method

    @property
    def total_delta(self) -> float:
        """Of counts and episodes together."""
        return self.delta if self.seen_delta is None else self.delta + float(self.seen_delta[0])

    @property
    def batches(self) -> int:
        return len(self.batch_start) - 1

    def totals(self, labels: OffsetArray, size: int, first: int = 0, last: int | None = None) -> OffsetArray:
        """How often each label was seen in the batches from `first` to before `last`; labels are
        transitions'."""
        ends = self.batch_start[first], self.batch_start[self.batches if last is None else last]
        seen, count = self.batch_transition[ends[0] : ends[1]], self.batch_count[ends[0] : ends[1]]
        return np.bincount(labels[seen], count, size).astype(np.int64)

    def assumptions(self, planned: bool, named: Collection[str]) -> list[Assumption]:
        """What is assumed of the data; a violated assumption makes the confidence nominal.

        * FIXED (Clopper–Pearson, Hoeffding, Weissman's balls). Holds of draws from a generative model, and of
          trajectories that meet an event at most once each (never a choice twice, and events that pool no
          choices): whether one meets it is decided before its outcome is drawn. Not of data with interim
          analyses, which could have been stopped.
        * PLANNED (likelihood whose pilot follows a plan, also as the base of a slab), ANY (beta-binomial,
          ellipsoid, likelihood otherwise).

        Rows that were left out by their outcomes (censored data) satisfy none of them.
        """
        once = self.design == "trajectories" and not self.repeats and self.shared_by == "transitions"
        holds, assumed = not self.anytime and (self.design == "generative-fixed" or once), FIXED
        if not METHODS[self.method].fixed:
            ahead = self.design != "adaptive" and not self.anytime
            holds, assumed = ahead or not planned, PLANNED if planned else ANY
        listed: list[Assumption] = []
        if not holds:
            words = "NOMINAL: the data were not collected as the method requires; nothing is guaranteed"
            listed.append(("sampling", "no", words))
        if self.censored:
            words = "NOMINAL: rows were excluded because of their outcomes; nothing is guaranteed"
            listed.append(("complete", "no", words))
        listed += [STATED[i] for i in (() if self.stated is None else self.stated.tolist())]
        listed.append(("sampling", "yes" if holds else "no", f"{assumed} (recorded design: {self.design})"))
        if METHODS[self.method].ordered:
            listed.append(("batches", "stated", "batches do not depend on outcomes"))
            as_drawn = self.planned == self.episodes and self.design == "trajectories" and not self.anytime
            if self.planned is not None and not as_drawn:
                listed.append(("plan", "stated", f"{self.planned:,} episodes were planned in advance"))
        if self.prior is not None:
            listed.append(("prior", "stated", "the prior does not depend on these data"))
        if self.bets and "given policy" in named and not self.method.endswith("best"):
            listed.append(("policy", "stated", "the given policy was chosen without these data"))
        if self.costs is not None:
            listed.append(("costs", "stated", self.costs.words))
        if self.seen is not None:
            from tightrope_check.statistics.episodes import assumption

            listed.append(assumption(self, named))
        return listed


MOST_WORK = 10**9
MOST_SHARES = 4096
"""Times MOST_COUNTS they stay within int64."""


@dataclass(frozen=True, eq=False)
class RegionHints:
    """Rows of the region and the bases behind what was projected from it.

    * `row`: (origin, index, part), see `tightrope_check.learned`; `point`: points of tangents to
      the likelihood, directions of tangents to an ellipsoid.
    * A basis lists as many rows as there are coordinates: 2j is x_j ≤ upper_j, 2j + 1 is x_j ≥ lower_j, then
      those of `row` in their order.
    * `box_basis`: stage by stage, for the upper then the lower end of every coordinate. After the last stage
      the box is made at least as wide as `box_lower`, `box_upper`, where these are given.
    * bound_basis[j] proves a bound of expression bound_expression[j]: the upper one where bound_side[j] is 1.
      Of a quotient f/g it bounds f − c·g, c = bound_near[j]; 0 where these are not given.
    * `choice_basis`: the bases that `lower_basis` and `upper_basis` of a claim's hints refer to.
    """

    row: OffsetArray = fields.integers("rows", "3")
    point: FloatArray = fields.reals("points", "SIZE")
    box_basis: OffsetArray = fields.integers("stages", "SIZE", most=MOST_CODES)
    bound_expression: OffsetArray = fields.integers("bounds", most=MOST_CODES)
    bound_side: OffsetArray = fields.integers("bounds", most=1)
    bound_basis: OffsetArray = fields.integers("bounds", "SIZE", most=MOST_CODES)
    choice_basis: OffsetArray = fields.integers("bases", "SIZE", most=MOST_CODES)
    box_lower: FloatArray | None = fields.reals("SIZE", optional=True)
    box_upper: FloatArray | None = fields.reals("SIZE", optional=True)
    bound_near: FloatArray | None = fields.reals("bounds", optional=True)

    def trouble(self) -> str | None:
        size = self.point.shape[1]
        bases = max(2 * size, len(self.bound_basis), len(self.choice_basis))
        if len(self.row) * size > MOST_ENTRIES or bases * size**2 > MOST_ENTRIES:
            return "there are more rows or bases than this program checks"
        if size == 0 or len(self.box_basis) % (2 * size) != 0:
            return "there are no coordinates, or a stage is not whole"
        if len(self.box_basis) * (len(self.row) + 1) * size > 2 * MOST_WORK:
            return "the box is shrunk in more stages than this program checks"
        return None


@dataclass(frozen=True, eq=False)
class LearnedHints:
    """Intervals of events (of transitions, where these share δ), of rewards by their costs, shares of pilots
    of 0, 10, 20, … batches where no plan decides on one, a slab's stages, proofs from a region; intervals of
    classes of rates (`tightrope_check.statistics.rates`)."""

    lower: FloatArray | None = fields.reals("intervals", least=0.0, most=1.0, optional=True)
    upper: FloatArray | None = fields.reals("intervals", least=0.0, most=1.0, optional=True)
    cost_lower: FloatArray | None = fields.reals("rewards", optional=True)
    cost_upper: FloatArray | None = fields.reals("rewards", optional=True)
    pilot_share: OffsetArray | None = fields.integers("pilots", most=MOST_SHARES, optional=True)
    region: RegionHints | None = fields.part(RegionHints, optional=True)
    coupled: tuple[Any, ...] = fields.parts("coupled.CoupledHints", 4)
    slab: tuple[Any, ...] = fields.parts("statistics.slab.SlabHints", 8)
    rate_lower: FloatArray | None = fields.reals("rates", least=0.0, optional=True)
    rate_upper: FloatArray | None = fields.reals("rates", least=0.0, most=inf, optional=True)

    def trouble(self) -> str | None:
        if (self.lower is None) != (self.upper is None):
            return "intervals without one of their ends"
        if self.pilot_share is not None and not 0 < self.pilot_share.astype(object).sum() <= MOST_SHARES:
            return "shares of pilots that are none, or too many"
        crossed = self.lower is not None and self.upper is not None and (self.lower > self.upper).any()
        return "an interval whose lower end is above the upper one" if crossed else None
