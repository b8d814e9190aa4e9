"""Nature's sets at each choice, learned from data (paper, Sections 2.4 and 3).

* `untied`: each transition alone, the baseline without tying.
* `tied`, P_I: each expression from the intervals of its events.
* `parameter`, P_Θ: each expression over the box of the region's parameters, intersected with P_I on request.
* `expression`, P_Λ: each expression over the region.
* `rectangular`, P_R: all expressions of a choice over the region together; bounds are the P_Λ hull.
* `coupled`, P_U: one x of the region for all choices (`tightrope.coupled`, from `rectangular` sets).

All contain the true distributions of all choices simultaneously with the confidence of the budget: P_I
because all intervals hold, the others because the region contains the true parameters. P_I ⊇ P_Λ ⊇ P_R and
P_Θ ⊇ P_Λ (paper, Theorem 2). Bounds are rounded outward within [0, 1].

A choice admits a distribution iff lower ≤ upper and Σ lower ≤ 1 ≤ Σ upper. If rounding violates this,
`feasible` widens the bounds by what is missing. If an interval missed the truth (probability at most δ), the
choice falls back to the bounds over the whole domain. Sets only grow, so guarantees hold.
`tightrope.model.graph.support` reads a sum within (k+2)·2⁻⁵² of 1 as 1, which would deny nature so small a
mass: lower bounds of uncertain choices leave clearly more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

import numpy as np

from tightrope.data.counts import Counts
from tightrope.errors import CannotCertify, InputError
from tightrope.model.mdp import IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.ranges import ranges_over_box
from tightrope.model.structure import frozen_array
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record, remember
from tightrope.numerics.rounding import down, up
from tightrope.regions.bounds import expression_bounds, parameter_box, quotient_bounds
from tightrope.regions.region import Region, RegionKind, Relaxation
from tightrope.statistics import estimates
from tightrope.statistics.confidence_budget import ConfidenceBudget

ROUNDING = 1e-9
"""Bounds that miss feasibility by no more than this were rounded; by more, they contradict each other."""


@dataclass(frozen=True, eq=False)
class FeasibleBounds:
    """Bounds that admit a distribution everywhere, and the choices at which they contradicted each other."""

    lower: FloatArray
    upper: FloatArray
    contradictory: BoolArray


def feasible(
    start: OffsetArray,
    lower: FloatArray,
    upper: FloatArray,
    known: BoolArray,
    fallback: tuple[FloatArray, FloatArray],
) -> FeasibleBounds:
    """Mend the bounds of the choices start[c]:start[c+1].

    `known` entries are constants, whose bounds are right up to rounding and are not moved; `fallback` holds
    whatever the parameters are.
    """
    lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    if len(lower) == 0:
        return FeasibleBounds(lower, upper, np.zeros(0, np.bool_))
    size = np.diff(start)
    first = start[:-1]
    crossed = np.maximum(lower - upper, 0.0)
    excess = np.add.reduceat(lower, first) - 1.0
    shortage = 1.0 - np.add.reduceat(upper, first)
    contradictory = np.maximum.reduceat(crossed, first) > ROUNDING
    contradictory |= np.maximum(excess, shortage) > ROUNDING
    lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    if contradictory.any():
        at = np.repeat(contradictory, size)
        lower = np.where(at, np.clip(fallback[0], 0.0, 1.0), lower)
        upper = np.where(at, np.clip(fallback[1], 0.0, 1.0), upper)
    free = ~known
    some_free = np.logical_or.reduceat(free, first)
    unit = (size + 2) * 2.0**-52
    excess = np.add.reduceat(lower, first) - 1.0
    shortage = 1.0 - np.add.reduceat(upper, first)
    # What the largest unknown entry gives way, twice what rounding can have hidden.
    lowered = np.where(some_free & (excess > -2.0 * unit), np.maximum(excess, 0.0) + 4.0 * unit, 0.0)
    raised = np.where(some_free & (shortage > 0.0), shortage + 4.0 * unit, 0.0)
    lower = _give_way(lower, np.where(free, lower, -1.0), lowered, start, -1.0)
    upper = _give_way(upper, np.where(free, 1.0 - upper, -1.0), raised, start, 1.0)
    return FeasibleBounds(lower, np.maximum(lower, upper), contradictory)


def _give_way(
    bound: FloatArray, room: FloatArray, amount: FloatArray, start: OffsetArray, sign: float
) -> FloatArray:
    """Move the entry with most room of every choice by `amount`; all unknown ones where none has enough."""
    if not np.any(amount > 0.0):
        return bound
    size = np.diff(start)
    most = np.maximum.reduceat(room, start[:-1])
    enough = most >= amount
    chosen = (room >= 0.0) & ((room == np.repeat(most, size)) | ~np.repeat(enough, size))
    chosen &= np.repeat(amount > 0.0, size)
    step = np.repeat(amount, size)
    moved = down(bound - step) if sign < 0.0 else up(bound + step)
    return np.where(chosen, np.clip(moved, 0.0, 1.0), bound)


Bounds = tuple[FloatArray, FloatArray]
"""(lower, upper), one entry per expression of the model's table."""


class SetsKind(Enum):
    """What nature may pick from; the properties say what each kind is made of and needs.

    >>> [one.value for one in SetsKind]
    ['untied', 'tied', 'parameter', 'expression', 'rectangular', 'coupled']
    >>> [one.value for one in SetsKind if not one.has_region]
    ['untied', 'tied']
    """

    UNTIED = "untied"
    TIED = "tied"
    PARAMETER = "parameter"
    EXPRESSION = "expression"
    RECTANGULAR = "rectangular"
    COUPLED = "coupled"

    @property
    def has_region(self) -> bool:
        """Whether they are made from a region; the others are plain intervals."""
        return self not in (SetsKind.UNTIED, SetsKind.TIED)

    @property
    def is_tied(self) -> bool:
        """Whether transitions with one expression are counted together."""
        return self is not SetsKind.UNTIED

    @property
    def meets_intervals(self) -> bool:
        """Whether the tied intervals, met with them, may take something away."""
        return self is SetsKind.PARAMETER

    @property
    def needs_facets(self) -> bool:
        """Whether their region has to be one that half-spaces bound."""
        return self is SetsKind.COUPLED

    @property
    def at_each_choice(self) -> SetsKind:
        """The sets at single choices that they start from."""
        return SetsKind.RECTANGULAR if self is SetsKind.COUPLED else self

    def refusal(self, region: RegionKind) -> tuple[str, str] | None:
        """(why a kind of region is no use for them, what to do instead), or None where it is."""
        if not self.has_region:
            # Tied intervals are those that the polytope is made of, so naming it is no contradiction.
            if self.is_tied and region.is_of_intervals:
                return None
            whose = "the counts of each event" if self.is_tied else "each transition's own counts"
            return (
                f"{self.value} sets are intervals from {whose}: they have no use for the region "
                f"{region.value}",
                'leave `region` out, or choose `sets="parameter"`, expression, rectangular or coupled',
            )
        if self.needs_facets and not region.has_facets:
            return (
                "coupled sets are computed over regions that half-spaces bound, and the "
                f"{region.value} is none",
                f'use `region="polytope"`, l1 or likelihood; or `sets="rectangular"` with the {region.value}',
            )
        if self is SetsKind.PARAMETER and region.bets and not region.has_intervals:
            return (
                f"a {region.value} is narrow along a policy's value, and wide along single parameters: "
                "parameter sets have no use for it",
                'use `region="likelihood"`, or `sets="rectangular"` or coupled',
            )
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Sets(Record):
    """One set of distributions a choice: lower ≤ p ≤ upper, and where `rectangular` p = f(x), x in `region`.

    EXACT: the sets are those of the paper's definition up to rounding. OUTER: they enclose them.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> problem = model.problem('Pmax=? [ F "heads" ]')
    >>> result = tr.learn(problem, [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20, delta=0.01)
    >>> model = result.sets.interval_model()
    >>> bool((model.lower <= model.upper).all())
    True
    """

    kind: SetsKind
    relaxation: Relaxation
    ledger: ConfidenceBudget
    model: ParametricMDP
    lower: FloatArray
    upper: FloatArray
    region: Region | None = None
    notes: tuple[str, ...] = ()
    over: Region | None = None
    """The region that the bounds were projected from, where there is one."""
    narrow: Sets | None = None
    """What was learned, where these are `widened`."""

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.float64))
            if getattr(self, name).shape != (self.model.transitions,):
                raise InputError(f"sets need one {name} bound per transition: {self.model.transitions}")
        if (self.region is not None) != (self.kind is SetsKind.RECTANGULAR):
            raise InputError("a region is required for rectangular sets, and for no others")

    def _title_(self) -> str:
        return f"Sets: {self.kind.value} sets of {self.model.choices:,} choices"

    def _facts_(self) -> Facts:
        width = self.upper - self.lower
        open_ = width[width > 0]
        mean = float(open_.mean()) if len(open_) else 0.0
        over = [] if self.region is None else [("region", repr(self.region).partition("\n")[0])]
        return [
            *over,
            ("widths", f"{mean:.4g} on average, at most {width.max(initial=0.0):.4g}"),
            ("definition", "exact, up to rounding" if self.relaxation is Relaxation.EXACT else "enclosed"),
            *(("ledger", line) for line in self.ledger.lines),
        ]

    def interval_model(self) -> IntervalMDP:
        """The interval model of the bounds: the sets themselves, or their hull where they are rectangular."""
        structure, policy = self.model.structure, self._policy
        if policy is not None:
            structure = replace(structure, made_from=policy.made_from)
        return IntervalMDP(structure, self.lower, self.upper)

    _policy: ClassVar[Policy | None] = None  # found over the sets of a result: it knows their data

    def found(self, policy: Policy) -> Sets:
        """The same sets, which say by a policy that was found over them from which data they were made."""
        result = replace(self)
        vars(result)["_policy"] = policy
        return result

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_policy": self._policy}


def untied(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    method: estimates.IntervalMethod = estimates.IntervalMethod.CLOPPER_PEARSON,
) -> Sets:
    """Every transition from its own choice's visits."""
    intervals = estimates.transition_intervals(model, counts, delta, method)
    known = model.expressions.is_constant[model.expression]
    fallback_lower, fallback_upper = _domain_ranges(model)
    lower, upper = intervals.lower.copy(), intervals.upper.copy()
    lower[known] = fallback_lower[model.expression[known]]
    upper[known] = fallback_upper[model.expression[known]]
    fallback = fallback_lower[model.expression], fallback_upper[model.expression]
    mended = feasible(model.transition_start, lower, upper, known, fallback)
    notes = _contradictions(int(mended.contradictory.sum()), "choices")
    return Sets(
        SetsKind.UNTIED, Relaxation.EXACT, intervals.ledger, model, mended.lower, mended.upper, None, notes
    )


def tied(intervals: estimates.EventIntervals) -> Sets:
    """P_I: every expression from the intervals of its events."""
    model = intervals.events.outcomes.model
    bounds = intervals.expression_bounds()
    return _by_expression(SetsKind.TIED, Relaxation.EXACT, intervals.ledger, model, bounds, ())


def parameter(region: Region, model: ParametricMDP, intersect: Bounds | None = None) -> Sets:
    """P_Θ: every expression over the box of the region's parameters, met with `intersect` where given."""
    _check_region(region, model)
    lower, upper = _box_ranges(region, model)
    notes = region.notes
    if intersect is not None:
        lower, upper = np.maximum(lower, intersect[0]), np.minimum(upper, intersect[1])
        notes = (*notes, "met with the tied intervals")
    return _over(SetsKind.PARAMETER, region, model, _with_constants(model, lower, upper), notes)


def expression(region: Region, model: ParametricMDP, within: Bounds | None = None) -> Sets:
    """P_Λ: every expression over the region; `within` are bounds known to hold on it (P_I)."""
    return _over(SetsKind.EXPRESSION, region, model, _project(region, model, within), region.notes)


def rectangular(region: Region, model: ParametricMDP, within: Bounds | None = None) -> Sets:
    """P_R: all expressions of a choice over the region together; the bounds are those of `expression`."""
    return _over(SetsKind.RECTANGULAR, region, model, _project(region, model, within), region.notes)


def _over(
    kind: SetsKind, region: Region, model: ParametricMDP, bounds: Bounds, notes: tuple[str, ...]
) -> Sets:
    """Sets whose bounds were projected from a region."""
    lifted = region.coordinates.is_lifted or model.expressions.degree > 1
    relaxation = Relaxation.OUTER if lifted else region.relaxation
    return _by_expression(kind, relaxation, region.ledger, model, bounds, notes, region)


def widened(sets: Sets, misfit: FloatArray) -> Sets:
    """All distributions within total variation misfit[c] of those at choice c; joint sets as their hull."""
    size = np.diff(sets.model.transition_start)
    by = np.repeat(np.where(size > 1, misfit, 0.0), size)
    lower = np.where(by > 0.0, np.maximum(down(sets.lower - by), 0.0), sets.lower)
    upper = np.where(by > 0.0, np.minimum(up(sets.upper + by), 1.0), sets.upper)
    kind = SetsKind.EXPRESSION if sets.kind is SetsKind.RECTANGULAR else sets.kind
    plain = replace(sets, kind=kind, region=None)
    return replace(plain, relaxation=Relaxation.OUTER, lower=lower, upper=upper, narrow=sets)


def of_domain(sets: Sets) -> Sets:
    """What holds of every probability whatever the data are, in the place of learned sets."""
    lower, upper = (end[sets.model.expression] for end in _domain_ranges(sets.model))
    kind = SetsKind.EXPRESSION if sets.kind is SetsKind.RECTANGULAR else sets.kind
    return replace(sets, kind=kind, relaxation=Relaxation.OUTER, lower=lower, upper=upper, region=None)


def _project(region: Region, model: ParametricMDP, within: Bounds | None) -> Bounds:
    """P_Λ met with P_Θ, which may be tighter for products, for which the region is a relaxation."""
    _check_region(region, model)
    lower, upper = expression_bounds(region, model.expressions, within)
    box_lower, box_upper = _box_ranges(region, model)
    lower, upper = np.maximum(lower, box_lower), np.minimum(upper, box_upper)
    if model.expressions.denominators:
        lower, upper = quotient_bounds(region, model.expressions, lower, upper)
    return _with_constants(model, lower, upper)


def _box_ranges(region: Region, model: ParametricMDP) -> Bounds:
    """The range of every expression over the box of the region's parameters."""
    low, high = parameter_box(region)
    low, high = np.minimum(low, high), np.maximum(low, high)
    return ranges_over_box(model.expressions, low.tolist(), high.tolist())


def _by_expression(
    kind: SetsKind,
    relaxation: Relaxation,
    ledger: ConfidenceBudget,
    model: ParametricMDP,
    bounds: Bounds,
    notes: tuple[str, ...],
    over: Region | None = None,
) -> Sets:
    """Sets whose bounds depend on the expression alone: mended a signature at a time, then written out."""
    signatures = model.signatures
    slot = signatures.expression
    domain = _domain_ranges(model)
    mended = feasible(
        signatures.start,
        bounds[0][slot],
        bounds[1][slot],
        model.expressions.is_constant[slot],
        (domain[0][slot], domain[1][slot]),
    )
    lower, upper = (signatures.spread(model.transition_start, each) for each in (mended.lower, mended.upper))
    wrong = int(mended.contradictory.sum())
    notes = (*notes, *_contradictions(wrong, "signatures"))
    region = over if kind is SetsKind.RECTANGULAR else None
    return Sets(kind, relaxation, ledger, model, lower, upper, region, notes, over)


@remember
def _domain_ranges(model: ParametricMDP) -> Bounds:
    """What holds of every expression whatever the parameters; constants up to outward rounding."""
    lower, upper = ranges_over_box(model.expressions, model.parameters.lower, model.parameters.upper)
    return _with_constants(model, np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0))


def _with_constants(model: ParametricMDP, lower: FloatArray, upper: FloatArray) -> Bounds:
    constant, value_lower, value_upper = estimates.constant_values(model.expressions)
    lower, upper = lower.copy(), upper.copy()
    lower[constant], upper[constant] = value_lower, value_upper
    return lower, upper


def _check_region(region: Region, model: ParametricMDP) -> None:
    if region.coordinates.parameters.names != model.parameters.names:
        raise InputError(
            f"the region is one of ({', '.join(region.coordinates.parameters.names)}), "
            f"the model has the parameters ({', '.join(model.parameters.names)})"
        )
    if region.emptiness.is_empty:
        raise CannotCertify(region.emptiness.text(region.ledger.delta))


def _contradictions(number: int, what: str) -> tuple[str, ...]:
    if number == 0:
        return ()
    return (
        f"the bounds of {number} {what} admit no distribution, so an interval has missed the truth; "
        "there the whole domain is allowed",
    )
