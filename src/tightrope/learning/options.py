"""Choice of region, sets and intervals, before the data are used.

Open choices follow from the model and the sampling, never from outcomes: a choice after looking would void
the confidence level. Meaningless combinations are refused with the reason.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from inspect import Parameter, signature
from typing import TypedDict, TypeVar, cast

import numpy as np

from tightrope import provenance
from tightrope.ambiguity.sets import SetsKind
from tightrope.data.counts import Counts
from tightrope.errors import InputError, check_keywords, choose, describe
from tightrope.model.free import unlinked_rows
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import PolicyGiven
from tightrope.model.structure import END, ParametricReward, Structure, Structured
from tightrope.regions.region import RegionKind, RegionOptions
from tightrope.regions.registry import own_kinds, region_kind
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.costs import CostIntervals, CostModel, checked_range, cost_intervals
from tightrope.statistics.estimates import Budget, IntervalMethod, check_delta
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.priors import Prior, PriorGiven, check_priors, read_priors
from tightrope.verdict import Assumed, AssumptionStatus

MANY_EXPRESSIONS = 8
"""From so many distinct unknown expressions on the likelihood region is the tighter one."""

MOST_VERTEX_DIMENSIONS = 7
"""Up to here the vertices of a region are enumerated, and rectangular sets cost no linear programs."""

MOST_LIKELIHOOD_PARAMETERS = 12
"""Up to here a likelihood over all parameters together is within reach."""

MOST_WORK_ALONG = 2**26
"""Of expressions times squared parameters: up to here values are bounded along themselves."""

SEEDED, SEEDING = "likelihood", ("learn", "learn_all", "online")
"""The region whose predictions a prior seeds, and who takes one."""

COUPLED_GAP = 0.02
"""Share of a coupled interval's width that may stay without witnesses."""


class Effort(Enum):
    """How much is spent on sets that are left open: rectangular ones alone; coupled ones where a forecast
    says that they pay, as long as about ten seconds of an idle core; coupled ones in any case.

    >>> [one.value for one in Effort]
    ['quick', 'normal', 'high']
    """

    QUICK = "quick"
    NORMAL = "normal"
    HIGH = "high"


class OutcomesUse(Enum):
    """Whether the outcomes of episodes are used beside the model, alone, or not at all.

    >>> [one.value for one in OutcomesUse]
    ['auto', 'only', 'none']
    """

    AUTO = "auto"
    ONLY = "only"
    NONE = "none"


CHOICES: dict[str, type[Enum]] = {
    "sets": SetsKind,
    "interval": IntervalMethod,
    "budget": Budget,
    "ellipsoid": EllipsoidVersion,
    "outcomes": OutcomesUse,
    "effort": Effort,
}
NEVER_OPEN = ("budget", "ellipsoid", "outcomes", "effort")
SHOWN = ("cpu", "cuda")
DEVICES = (*SHOWN, "cuda-emulated")
"""The last one is for tests: every kernel of the GPU without one."""


WITHIN = (lambda value: 0 < value < 1), "within (0, 1)"
NUMBERS: dict[str, tuple[Callable[[float], bool], str]] = {
    "precision": WITHIN,
    "assume_support": WITHIN,
    "seconds": ((lambda value: value > 0), "a positive number"),
    "iterations": ((lambda value: value >= 1), "at least 1"),
    "threads": ((lambda value: value >= 1), "at least 1"),
    "cost_sd": ((lambda value: 0 < value < math.inf), "a positive number"),
    "coupled_gap": WITHIN,
    "misfit": ((lambda value: 0 <= value < 1), "within [0, 1)"),
}
"""What numbers among the options must be, in words."""


class LearnKwargs(TypedDict, total=False):
    """The fields of `LearnOptions`, as keyword arguments of `learn` and its relatives."""

    region: RegionKind | str | None
    sets: SetsKind | str | None
    interval: IntervalMethod | str | None
    budget: Budget | str
    ellipsoid: EllipsoidVersion | str
    intersect: bool
    fallback: bool
    precision: float
    assume_support: float | None
    seconds: float
    device: str
    iterations: int
    coupled_gap: float
    threads: int | None
    cost_range: tuple[float, float] | None
    cost_sd: float | None
    misfit: float
    outcomes: OutcomesUse | str
    behaviour: PolicyGiven | None
    return_range: tuple[float, float] | None
    effort: Effort | str
    prior: PriorGiven


@dataclass(frozen=True)
class LearnOptions:
    """Options of `learn`; None leaves a choice to `decide`.

    `seconds` limits the refinement of all values together, `iterations` that of each; `device` and `threads`
    are those of `solve`. Coupled values are refined until at most the share `coupled_gap` of their width is
    open. `misfit` is the model error in total variation (`tightrope.learning.robustness`). `outcomes` uses
    observed returns beside the model ("auto"), without it ("only") or not at all ("none"). `behaviour` states
    the policy that collected the log ("uniform", or a policy), `return_range` the range of returns, unless
    the model refutes it. `effort` is how far sets are refined if neither they nor a region are chosen:
    "quick" (not at all), "normal" or "high".

    Choices may be given by name (`sets="tied"`). Meaningless values and combinations are refused at once.

    >>> LearnOptions(sets="tied", precision=1e-3).words
    {'sets': <SetsKind.TIED: 'tied'>, 'precision': 0.001}
    """

    region: RegionKind | None = None
    sets: SetsKind | None = None
    interval: IntervalMethod | None = None
    budget: Budget = Budget.TIED
    ellipsoid: EllipsoidVersion = EllipsoidVersion.SOUND
    intersect: bool = False
    fallback: bool = True
    precision: float = 1e-6
    assume_support: float | None = None
    seconds: float = float("inf")
    device: str = "cpu"
    iterations: int = 1_000_000
    coupled_gap: float = COUPLED_GAP
    threads: int | None = None
    cost_range: tuple[float, float] | None = None
    cost_sd: float | None = None
    misfit: float = 0.0
    outcomes: OutcomesUse = OutcomesUse.AUTO
    behaviour: PolicyGiven | None = None
    return_range: tuple[float, float] | None = None
    effort: Effort = Effort.NORMAL
    prior: tuple[Prior, ...] = ()

    def __post_init__(self) -> None:
        for name, kinds in CHOICES.items():
            value = getattr(self, name)
            if value is not None or name in NEVER_OPEN:
                object.__setattr__(self, name, choose(name, kinds, value))
        if self.region is not None:
            object.__setattr__(self, "region", region_kind(self.region))
        for name in ("intersect", "fallback"):
            if not isinstance(value := getattr(self, name), bool):
                raise InputError(f"`{name}` is {value!r}, not True or False")
        for name, (accepts, words) in NUMBERS.items():
            value = getattr(self, name)
            if value is None and DEFAULTS[name] is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"`{name}` is {value!r}, not a number")
            if not accepts(value):
                raise InputError(f"`{name}` is {value}, not {words}")
        if not isinstance(self.device, str) or self.device not in DEVICES:
            raise InputError(f"`device` is {self.device!r}, not one of {', '.join(SHOWN)}")
        if self.cost_sd is not None and self.cost_range is not None:
            raise InputError(
                "`cost_range` and `cost_sd` are alternative assumptions about costs",
                hint="give one of them: a range is stronger if all costs lie in it",
            )
        if self.misfit and self.assume_support is not None:
            raise InputError(
                "`assume_support` is about the model, and `misfit` allows processes that differ from it",
                hint="leave one of them out",
            )
        for name in ("cost_range", "return_range"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, checked_range(value, name))
        if self.outcomes is OutcomesUse.NONE and (self.behaviour or self.return_range) is not None:
            unused = "behaviour" if self.behaviour is not None else "return_range"
            raise InputError(
                f'`{unused}` refers to observed outcomes, and `outcomes="none"` leaves them out',
                hint=f"leave `{unused}` out",
            )
        object.__setattr__(self, "prior", read_priors(self.prior))
        open_region = self.ellipsoid is EllipsoidVersion.SOUND and not self.intersect
        has_region = open_region and (self.sets is None or self.sets.has_region)
        if self.prior and not (self.region in (None, region_kind(SEEDED)) and has_region):
            raise InputError(
                "`prior` requires the likelihood region",
                hint='leave `prior` out, or use `region="likelihood"`',
            )
        if self.cost_model is not None and self.sets is not None and not self.sets.has_region:
            raise InputError(
                f"costs are learned as rows of a region, and {self.sets.value} sets have none",
                hint='choose `sets="rectangular"`, coupled, expression or parameter',
            )
        if self.sets is not None and not self.sets.has_region:
            _refuse_region(self.sets, self.region)
        _refuse_what_is_known(self)

    @classmethod
    def of(cls, function: str, words: Mapping[str, object]) -> LearnOptions:
        """The options that keyword arguments of a function give."""
        made = cls(**check_keywords(function, LearnKwargs, words, besides=("delta",)))
        if function == "online" and (made.outcomes is OutcomesUse.ONLY or made.behaviour is not None):
            raise InputError(
                "`online` learns from counts and does not use observed returns",
                hint="leave `outcomes` and `behaviour` out, or give the log to `learn`",
            )
        if made.prior and function not in SEEDING:
            raise InputError(f"`prior` is for `learn` and `online`, not for `{function}`")
        if function == "online" and made.cost_model is not None:
            raise InputError(
                "costs are learned from a whole log: `online` keeps none",
                hint=(
                    "leave `cost_range` and `cost_sd` out, or give the log to `learn` again as it grows: "
                    "intervals of costs are time-uniform"
                ),
            )
        return made

    @property
    def cost_model(self) -> CostModel | None:
        """What is stated about observed costs; None where they are not to be used."""
        if self.cost_range is None and self.cost_sd is None:
            return None
        return CostModel(self.cost_range, self.cost_sd)

    @property
    def words(self) -> LearnKwargs:
        """What differs from the defaults, as keyword arguments: `learn(problem, data, **options.words)`."""
        given = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return cast(LearnKwargs, {name: given[name] for name in given if given[name] != DEFAULTS[name]})

    @property
    def without_outcomes(self) -> LearnOptions:
        """The same for the model's part alone."""
        return replace(self, outcomes=OutcomesUse.NONE, behaviour=None, return_range=None)

    def with_sets(self, sets: SetsKind) -> LearnOptions:
        """The same for another kind of sets, without what that kind has no use for."""
        return replace(
            self,
            sets=sets,
            region=self.region if sets.has_region else None,
            intersect=self.intersect and sets.meets_intervals,
            ellipsoid=self.ellipsoid if sets.has_region else EllipsoidVersion.SOUND,
            budget=Budget.TIED if sets is SetsKind.UNTIED else self.budget,
            prior=self.prior if sets.has_region else (),
        )


DEFAULTS: Mapping[str, object] = {entry.name: entry.default for entry in fields(LearnOptions)}

F = TypeVar("F", bound=Callable[..., object])


def spell_out(defaults: Mapping[str, object] = DEFAULTS) -> Callable[[F], F]:
    """Shows the further arguments of a function with their defaults in its signature, as `help` prints it."""

    def spelled(function: F) -> F:
        own = signature(function)
        named = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        further = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=value.value if isinstance(value, Enum) else value)
            for name, value in defaults.items()
            if name not in own.parameters
        ]
        vars(function)["__signature__"] = own.replace(parameters=[*named, *further])
        return function

    return spelled


@dataclass(frozen=True)
class Decisions:
    """The choices made, each default with its reason in one line.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(500, seed=1)
    >>> tr.learn(bench.problem, data, delta=0.01, sets="tied").decisions.sets.value
    'tied'
    """

    region: RegionKind | None
    sets: SetsKind
    interval: IntervalMethod
    reasons: tuple[str, ...]
    refines: bool = False
    """Whether the sets are refined while it pays."""
    along: bool = False
    """Whether a likelihood and bets bound values along themselves (`tightrope.learning.coupling`)."""

    @property
    def has_intervals(self) -> bool:
        """Whether the sets are made of intervals of events, among other things."""
        return self.follows_from_intervals or (self.region is not None and self.region.has_intervals)

    @property
    def couples(self) -> bool:
        return self.sets is SetsKind.COUPLED

    @property
    def splits(self) -> bool:
        """Whether the intervals of events have a part of δ alone."""
        return self.spends_along or (self.region is not None and self.region.has_intervals)

    @property
    def spends_along(self) -> bool:
        """Whether a part of δ is for evidence along values that the region does not hold."""
        return self.along and self.follows_from_intervals

    @property
    def follows_from_intervals(self) -> bool:
        """Whether the intervals of the events are all that the sets are made of."""
        return self.sets is SetsKind.TIED or (self.region is not None and self.region.is_of_intervals)

    @property
    def bets(self) -> bool:
        """Whether the region is one that bets on a policy's value."""
        return self.region is not None and self.region.bets

    @property
    def needs_bets(self) -> bool:
        """Whether the region is nothing without bets."""
        return self.bets and not self.splits

    @property
    def has_forecast(self) -> bool:
        """Whether a formula tells how narrow the region will be after more data."""
        return self.region is not None and self.region.has_forecast

    def region_options(self, options: LearnOptions) -> RegionOptions:
        return RegionOptions(self.interval, options.budget, options.ellipsoid, prior=options.prior)


def decide(
    model: ParametricMDP,
    counts: Counts,
    options: LearnOptions,
    no_bets: str | None = "nothing is named to bet on",
    refines: bool = False,
    plain: bool = True,
) -> Decisions:
    """Decide what is open by model, sampling and form of the data (order, repeats, planned episodes), not
    outcomes."""
    reasons: list[str] = []
    check_priors(options.prior, model.parameters)
    sets = options.sets
    if model.structure.elsewhere is not None:
        return _decide_with_unseen(options)
    if model.is_table and sets is not SetsKind.UNTIED:
        if sets is not None or options.region is not None or options.cost_model is not None:
            raise InputError(
                f"{len(model.parameters):,} unknown probabilities are too many for regions and ties",
                hint='use `sets="untied"`, which holds one transition at a time',
            )
        sets = SetsKind.UNTIED
        reasons.append(f"sets untied: a table of {len(model.parameters):,} unknown probabilities")
    if sets is None:
        sets, reason = _default_sets(model, options)
        reasons.append(reason)
    sets, widened = _widened_sets(sets, options)
    reasons += widened
    region = options.region
    if not sets.has_region:
        _refuse_region(sets, region)
        region = None
    elif region is None:
        if sets is not SetsKind.COUPLED and not refines:
            rectangular = sets is SetsKind.RECTANGULAR
            no_bets = "over rectangular sets it may lose width" if rectangular else "it is for coupled sets"
        region, reason = _default_region(model, counts, options, no_bets, refines)
        reasons.append(reason)
    if sets is SetsKind.RECTANGULAR and region is not None and region.is_of_intervals:
        size = Coordinates.of(model.expressions, model.parameters).size
        if size > MOST_VERTEX_DIMENSIONS and unlinked_rows(model):
            sets = SetsKind.EXPRESSION
            reasons.append(
                "sets expression: of distributions that share nothing these are the rectangular ones"
            )
    _refuse_combinations(sets, region, options)
    interval = options.interval
    if interval is None:
        interval, reason = _default_interval(counts, sets)
        if region is None or region.is_of_intervals:
            reasons.append(reason)
    is_open = options.sets is None and (options.region is None or options.region.has_intervals)
    open_ended = refines and is_open and options.effort is not Effort.QUICK and region is not None
    along = open_ended and plain and _goes_along(model, counts, sets, region, options)
    if along:
        share = "by what the region holds" if region is not None and region.has_intervals else "at 3/5 of δ"
        reasons.append(f"beside the sets, {share}, a likelihood and bets along values of policies")
    refines = open_ended and sets is SetsKind.RECTANGULAR
    return Decisions(region, sets, interval, tuple(reasons), refines, along)


def _decide_with_unseen(options: LearnOptions) -> Decisions:
    """For models with outcomes that were never seen."""
    stated = options.region or options.assume_support or options.cost_model or options.prior
    if stated or options.sets not in (None, SetsKind.TIED):
        raise InputError(
            "outcomes that were never seen are bounded row by row, without regions, other sets, "
            "differences of policies, costs or `assume_support`",
            hint='leave these out, or write the model without the outcomes to "elsewhere_missed" '
            'and "elsewhere_reached"',
        )
    why = "bounds of single probabilities, and of all that was never seen at a row together"
    return Decisions(None, SetsKind.TIED, IntervalMethod.BETA_BINOMIAL, (f"sets tied: {why}",))


def _goes_along(
    model: ParametricMDP,
    counts: Counts,
    sets: SetsKind,
    region: RegionKind | None,
    options: LearnOptions,
) -> bool:
    """Whether values are bounded along themselves: too many parameters for coupled sets, and evidence."""
    coordinates = Coordinates.of(model.expressions, model.parameters)
    free = len(coordinates.free)
    few = len(model.expressions.nonconstant) * free**2 <= MOST_WORK_ALONG
    stated = options.misfit or options.intersect or options.prior or options.cost_model is not None
    ordered = counts.batches is not None and counts.design.order.holds
    holds = region is not None and (
        region.has_intervals or (region.is_of_intervals and free > MOST_LIKELIHOOD_PARAMETERS)
    )
    shaped = sets is SetsKind.EXPRESSION and not coordinates.is_lifted
    return holds and few and not stated and ordered and shaped


OVER_THE_DOMAIN = (SetsKind.EXPRESSION, SetsKind.RECTANGULAR, SetsKind.COUPLED)
"""The sets that need no data."""


def decide_over_domain(model: ParametricMDP, options: LearnOptions) -> Decisions:
    """What is decided without data: the region is the domain, and options that speak of data are refused."""
    of_data = "region interval budget ellipsoid intersect cost_range cost_sd outcomes behaviour return_range"
    for name in (*of_data.split(), "prior"):
        if getattr(options, name) != DEFAULTS[name]:
            raise InputError(
                f"`{name}` requires data, and bounds over a domain use none", hint=f"leave `{name}` out"
            )
    kind = options.sets
    if kind not in OVER_THE_DOMAIN:
        raise InputError(
            f"{kind.value if kind else 'such'} sets come from data, and there are none",
            hint=f"use {', '.join(one.value for one in OVER_THE_DOMAIN)}",
        )
    kind, reasons = _widened_sets(kind, options, model.is_table)
    return Decisions(region_kind("polytope"), kind, IntervalMethod.CLOPPER_PEARSON, reasons)


def _widened_sets(
    sets: SetsKind, options: LearnOptions, is_table: bool = False
) -> tuple[SetsKind, tuple[str, ...]]:
    """Bounds of single probabilities, where a misfit widens these, or where a table has no other sets."""
    if not (options.misfit or is_table) or sets not in (SetsKind.RECTANGULAR, SetsKind.COUPLED):
        return sets, ()
    why = f"a misfit widens the bounds of single probabilities, and {sets.value} sets are enclosed by these"
    if is_table:
        why = "every distribution has its own probabilities, so their bounds describe the domain"
    return SetsKind.EXPRESSION, (f"sets expression: {why}",)


def _default_sets(model: ParametricMDP, options: LearnOptions) -> tuple[SetsKind, str]:
    coordinates = Coordinates.of(model.expressions, model.parameters)
    size = coordinates.size
    is_open = (options.region or options.cost_model) is None and not (options.intersect or options.prior)
    if (
        is_open
        and options.ellipsoid is EllipsoidVersion.SOUND
        and len(coordinates.free) > MOST_LIKELIHOOD_PARAMETERS
    ):
        rows = unlinked_rows(model)
        if rows:
            return SetsKind.TIED, (
                f"sets tied: {size} coordinates of {rows} distributions that share nothing, so that their "
                "intervals, row by row, are the rectangular sets; a likelihood over all of them together is "
                "out of reach"
            )
    if size <= MOST_VERTEX_DIMENSIONS:
        kind, why = SetsKind.RECTANGULAR, "few enough for sets over the region at every choice"
    else:
        kind, why = SetsKind.EXPRESSION, "a region with too many vertices for rectangular sets"
    return kind, f"sets {kind.value}: {size} coordinate{'' if size == 1 else 's'}, {why}"


def _default_region(
    model: ParametricMDP, counts: Counts, options: LearnOptions, no_bets: str | None, joint: bool
) -> tuple[RegionKind, str]:
    polytope = region_kind("polytope")
    if options.ellipsoid is EllipsoidVersion.PAPER:
        return region_kind("ellipsoid"), "region ellipsoid: the published ellipsoid was requested"
    if options.intersect:
        return polytope, "region polytope: it is intersected with the tied intervals"
    unknown = len(model.expressions.nonconstant)
    if options.prior:
        if counts.batches is None or not counts.design.order.holds:
            raise InputError(
                "`prior` needs data in a known order",
                hint="leave `prior` out, or keep the order of the data",
            )
        return region_kind(SEEDED), "region likelihood: a prior seeds its predictions"
    if counts.batches is None:
        return polytope, "region polytope: the counts have no batches in time order"
    if not counts.design.order.holds:
        why = "the order of the data in time is unknown, and intervals are valid in any order"
        return polytope, f"region polytope: {why}"
    parameters = len(Coordinates.of(model.expressions, model.parameters).free)
    if parameters > MOST_LIKELIHOOD_PARAMETERS:
        return (
            polytope,
            f"region polytope: a likelihood over {parameters} parameters together is out of reach",
        )
    if unknown < MANY_EXPRESSIONS:
        few = "one unknown expression" if unknown == 1 else f"only {unknown} unknown expressions"
        return polytope, f"region polytope: {few}, so the union bound is nearly as tight"
    if joint:
        second = "a slab" if no_bets is None else f"a likelihood (no slab, since {no_bets})"
        return region_kind("joint"), f"region joint: intervals of events and {second}, each at a share of δ"
    if no_bets is None:
        why = "a value over coupled sets depends on one direction, so bets are effective"
        return region_kind("slab"), f"region slab: {why}"
    return (
        region_kind("likelihood"),
        f"region likelihood: {unknown} unknown expressions would share δ in a union bound, "
        f"and the counts are batched in time; no slab, since {no_bets}",
    )


def _default_interval(counts: Counts, sets: SetsKind) -> tuple[IntervalMethod, str]:
    if counts.design.fixed_visits(tied=sets is not SetsKind.UNTIED):
        return (
            IntervalMethod.CLOPPER_PEARSON,
            "interval clopper-pearson: the numbers of visits do not depend on outcomes",
        )
    return (
        IntervalMethod.BETA_BINOMIAL,
        f"interval beta-binomial: valid for the design {counts.design.kind.value}, "
        "where the numbers of visits depend on outcomes",
    )


def _refuse_region(sets: SetsKind, region: RegionKind | None) -> None:
    refusal = None if region is None else sets.refusal(region)
    if refusal is not None:
        raise InputError(refusal[0], hint=refusal[1])


def _refuse_what_is_known(options: LearnOptions) -> None:
    """Combinations that stay without meaning whatever is decided for what is left open."""
    refusal = InputError("these options do not go together")
    plainest = region_kind("ellipsoid" if options.ellipsoid is EllipsoidVersion.PAPER else "polytope")
    every = [plainest, *own_kinds(), plainest]  # a refusal is best explained with it
    for region in every if options.region is None else [options.region]:
        for sets in [options.sets] if options.sets is not None else OPEN_SETS:
            try:
                _refuse_combinations(sets, region if sets.has_region else None, options)
                return
            except InputError as error:
                refusal = error
    raise refusal


OPEN_SETS = [*(kind for kind in SetsKind if kind is not SetsKind.PARAMETER), SetsKind.PARAMETER]
"""The sets that may be decided on; last those that a refusal is best explained with."""


def _refuse_combinations(sets: SetsKind, region: RegionKind | None, options: LearnOptions) -> None:
    _refuse_region(sets, region)
    if options.ellipsoid is EllipsoidVersion.PAPER and not (region is not None and region.has_versions):
        shown = "no region" if region is None else f"the region {region.value}"
        raise InputError(
            f'`ellipsoid="paper"` refers to the ellipsoid, but {shown} is used',
            hint="leave `ellipsoid` out, or "
            + ('choose `sets="parameter"`, expression or rectangular with' if region is None else "add")
            + ' `region="ellipsoid"`',
        )
    if options.intersect and not sets.meets_intervals:
        raise InputError(
            f"`intersect=True` meets parameter sets with the tied intervals; {sets.value} sets "
            + ("lie within them already" if sets.has_region else "are these intervals"),
            hint='use `sets="parameter"`, or leave `intersect` out',
        )
    if options.intersect and not (region is not None and region.is_of_intervals):
        raise InputError(
            "`intersect=True` meets parameter sets with the tied intervals, and both hold "
            "simultaneously only "
            f"where the region is made of these intervals; {region.value if region else 'no region'} is not",
            hint='use `region="polytope"`, or leave `intersect` out',
        )
    if options.budget is Budget.PAPER and sets is SetsKind.UNTIED:
        raise InputError(
            "`budget` divides δ among tied events; untied sets divide δ among all transitions",
            hint='leave `budget` out, or use `sets="tied"`',
        )


def with_selection(counts: Counts, model: Structured, priors: Sequence[Prior] = ()) -> Counts:
    """The counts, with whether model and priors were chosen without them."""
    chosen = chosen_with(model, priors, lambda: counts.provenance)
    return replace(counts, design=replace(counts.design, chosen=chosen)) if chosen else counts


def chosen_with(
    model: Structured, priors: Sequence[Prior], data: Callable[[], provenance.Provenance]
) -> tuple[Assumed, ...]:
    """Whether model and priors were chosen without these data; names alone may be seen in open rows."""
    chosen, named = selection_of(model.structure, priors, data), model.structure.named_from
    if named is not None and not (named.is_telling and named.overlap(data()) is provenance.Overlap.NONE):
        why = chosen_by_names(model)
        covered = "its successors were seen in these data; what was not seen leads elsewhere"
        one = Assumed(
            f"{provenance.Artefact.MODEL} {provenance.CHOSEN}",
            AssumptionStatus.NO if why else AssumptionStatus.YES,
            why or covered,
        )
        chosen = (*(other for other in chosen if other.name != one.name or not other.holds), one)
    return chosen


def chosen_by_names(model: Structured) -> str | None:
    """Say what else than names the data may have chosen; None where every row leads elsewhere, untied."""
    structure = model.structure
    where = "the model was drafted from these data"
    if structure.elsewhere is None or not isinstance(model, ParametricMDP):
        return f"{where}, and what they do not show is impossible in it"
    away = structure.elsewhere[0] | structure.elsewhere[1]
    leads = np.flatnonzero(structure.elsewhere[0][structure.successor])
    inside = away.copy()
    for name, members in structure.labels.items():
        inside |= members & (name.rstrip("_") == END and structure.is_closed(members))
    choices = np.flatnonzero(~inside[structure.choice_state])
    closed = np.setdiff1d(choices, structure.transition_choice[leads])
    if len(closed):
        return f"{where}, and {structure.choice_name(int(closed[0]))} does not lead elsewhere"
    open_ones = leads[~away[structure.choice_state[structure.transition_choice[leads]]]]
    if structure.made_from is None and len(np.unique(model.expression[open_ones])) < len(open_ones):
        return f"{where}, and some of its rows share a distribution (draft --select-on chooses ties apart)"
    return None


def selection_of(
    model: Structure, priors: Sequence[Prior], data: Callable[[], provenance.Provenance]
) -> tuple[Assumed, ...]:
    """Whether model and priors were chosen without these data; refuse what may not be."""
    made: dict[provenance.Artefact, list[provenance.Provenance | None]] = {
        provenance.Artefact.PRIOR: [prior.made_from for prior in priors]
    }
    if model.made_from is not None:
        made[provenance.Artefact.MODEL] = [model.made_from]
    chosen = {what: provenance.chosen_without(what, each, data) for what, each in made.items() if each}
    for what, one in chosen.items():
        if one.kept is AssumptionStatus.NO and provenance.COSTS[what][0] == provenance.REFUSED:
            hint = f"leave `{what}` out, or take one from other data"
            raise InputError(f"`{what}`: {one.why}, which would count twice", hint=hint)
    return tuple(chosen.values())


def learn_costs(
    model: ParametricMDP, objective: Objective | None, counts: Counts, delta: float, options: LearnOptions
) -> CostIntervals | None:
    """The intervals of the rewards that are asked for, where costs are to be used."""
    assumed = options.cost_model
    if assumed is None:
        return None
    check_delta(delta)
    named = "`cost_range`" if assumed.bounds is not None else "`cost_sd`"
    reward = objective.reward if objective is not None and objective.is_reward else None
    if not isinstance(reward, ParametricReward):
        raise InputError(
            f"{named} requires a property with a reward that depends on parameters",
            hint=f"leave {named} out",
        )
    if counts.costs is None:
        raise InputError(
            f"{named} requires data with costs, and these have none",
            hint="give a log, one row per step, with a column 'cost' (or say which it is: "
            '`columns="cost=…"`); tables of counts, episodes as lists of steps and `since` or `window` keep '
            "no costs",
        )
    part = delta / 2 if len(model.expressions.nonconstant) else delta
    return cost_intervals(reward, model.structure, model.parameters, counts.costs, part, assumed)


def unused_costs(objective: Objective, counts: Counts, options: LearnOptions) -> tuple[str, ...]:
    """What to say of costs that are in the data and not used."""
    is_parametric = isinstance(objective.reward, ParametricReward)
    if counts.costs is None or options.cost_model is not None or not is_parametric:
        return ()
    return (
        "the costs in the data are not used: nothing is stated about them (a range that all keep to, or a "
        "bound on their standard deviation)",
    )


Progress = Callable[[str], None]
"""Called with what begins, in a few words."""


def progress_of(progress: Progress | bool | None) -> Progress | None:
    """What to call with what begins: True writes it to stderr, a line each."""
    if progress is None or isinstance(progress, bool):
        return _say if progress else None
    if not callable(progress):
        raise InputError(f"`progress` is {describe(progress)}, neither True nor a function of a text")
    return progress


def _say(what: str) -> None:
    sys.stderr.write(f"tightrope: {what}\n")
    sys.stderr.flush()


def silent(what: str) -> None:
    """Says nothing."""
