"""The document of a learning run (`tightrope.io.results`): everything a report needs.

Pictures need the shadows of a region on pairs of parameters: outer polygons, from the support function alone.
For directions u_1, …, u_n around the circle the region lies in every half-plane u_i·θ ≤ h(u_i). Neighbouring
lines meet in the corners of a polygon that contains the shadow and touches it n times. It works for every
kind of region, whatever its shape; corners are plain float64.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from msgspec import UNSET, structs

from tightrope import __version__
from tightrope.data.counts import Counts
from tightrope.io.coding import from_plain, to_plain
from tightrope.io.results import (
    Bounds,
    DataFacts,
    DesignFacts,
    EventTable,
    ExpressionTexts,
    ModelFacts,
    OptionFacts,
    ParameterRange,
    Projection,
    RegionShape,
    ResultDocument,
    StoredOutcome,
    TruthFacts,
)
from tightrope.learning.options import LearnOptions
from tightrope.learning.outcome import outcome_of, span_of
from tightrope.learning.products import base_of
from tightrope.learning.result import Interval, LearningResult
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.regions.region import Region
from tightrope.statistics.estimates import EventIntervals

DIRECTIONS = 48
MOST_PAIRS = 28
"""Of so many pairs of parameters at most, the first ones."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """The polygon [n, 2] around the region's values of two parameters (indices)."""

    pair: tuple[int, int]
    polygon: FloatArray


def shadows(region: Region, box: tuple[FloatArray, FloatArray]) -> list[Shadow]:
    """A polygon for each pair of parameters that both have a width; none for an empty region."""
    if region.emptiness.is_empty:
        return []
    functions = region.coordinates.parameter_functions()
    centre, half = 0.5 * (box[0] + box[1]), 0.5 * (box[1] - box[0])
    open_ = np.flatnonzero(half > 1e-12)
    pairs = list(combinations(open_.tolist(), 2))[:MOST_PAIRS]
    angle = np.arange(DIRECTIONS) * (2.0 * np.pi / DIRECTIONS)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    result = []
    for pair in pairs:
        # In units of the box, so that a flat shadow gets as many corners as a round one.
        at = list(pair)
        directions = (circle / half[at]) @ functions.linear[at]
        _, reach = region.support(directions)
        reach = reach + (circle / half[at]) @ (functions.constant[at] - centre[at])
        corners = _corners(circle, reach)
        result.append(Shadow(pair, centre[at] + half[at] * corners))
    return result


def region_shape(
    region: Region, names: Sequence[str], box: tuple[FloatArray, FloatArray] | None
) -> RegionShape:
    """A region in the form of a document: the box of its parameters where it has one, and its shadows."""
    ends = {} if box is None else {name: (float(box[0][i]), float(box[1][i])) for i, name in enumerate(names)}
    found = [] if box is None else shadows(region, box)
    return RegionShape(
        kind=region.kind.value,
        relaxation=region.relaxation.value,
        empty=region.emptiness.is_empty,
        notes=list(region.notes),
        box=ends,
        projections=[
            Projection(names[s.pair[0]], names[s.pair[1]], [(float(x), float(y)) for x, y in s.polygon])
            for s in found
        ],
    )


def _corners(circle: FloatArray, reach: FloatArray) -> FloatArray:
    """Where each line u·y = h meets the next one."""
    following, far = np.roll(circle, -1, axis=0), np.roll(reach, -1)
    determinant = circle[:, 0] * following[:, 1] - circle[:, 1] * following[:, 0]
    x = (reach * following[:, 1] - far * circle[:, 1]) / determinant
    y = (far * circle[:, 0] - reach * following[:, 0]) / determinant
    return np.stack([x, y], axis=1)


MOST_LISTED = 20_000


@dataclass(frozen=True)
class Setting:
    """Where model and data come from, and what was asked: what the results themselves do not know."""

    model: str
    property: str
    delta: float
    constants: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)
    command: Sequence[str] = ()
    policy: str | None = None
    truth: Mapping[str, str] | None = None
    true_value: Interval | None = None


def document(
    results: Sequence[LearningResult],
    counts: Counts | None,
    options: LearnOptions,
    setting: Setting,
    *,
    shapes: bool = True,
) -> ResultDocument:
    """All results of a run over one model and one data set; regions only where `shapes` is set."""
    model = results[0].model
    subject = base_of(results[0].problem)
    assert isinstance(subject, ParametricMDP)
    listed = _thin(model.expressions.nonconstant.astype(np.int64))
    intervals = next((r.intervals for r in results if r.intervals is not None), None)
    return ResultDocument(
        versions=versions(),
        command=list(setting.command),
        model=_model(subject, setting),
        question=setting.property,
        maximises=results[0].objective.maximises,
        delta=setting.delta,
        data=_data(counts, setting),
        options=_options(options),
        policy=setting.policy,
        truth=_truth(setting),
        expressions=ExpressionTexts(
            total=len(model.expressions.nonconstant),
            index=listed.tolist(),
            text=[model.expressions.text(int(e)) for e in listed],
        ),
        events=None if intervals is None else _events(intervals),
        regions=_regions(results) if shapes else [],
        results=[_store(result, listed) for result in results],
    )


def versions() -> dict[str, str]:
    """What ran: this program, Python, and the packages that numbers pass through."""
    packages = ("numpy", "scipy", "numba", "highspy", "pyarrow")
    return {
        "tightrope": __version__,
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }


def _model(model: ParametricMDP, setting: Setting) -> ModelFacts:
    parameters = model.parameters
    return ModelFacts(
        source=setting.model,
        constants=dict(setting.constants),
        hash=model.hash(),
        states=model.states,
        choices=model.choices,
        transitions=model.transitions,
        expressions=len(model.expressions),
        degree=model.expressions.degree,
        domain=parameters.text(),
        parameters=[
            ParameterRange(name, float(low), float(high))
            for name, low, high in zip(parameters.names, parameters.lower, parameters.upper, strict=True)
        ],
    )


def _data(counts: Counts | None, setting: Setting) -> DataFacts:
    if counts is None:
        return DataFacts(steps=0, design=DesignFacts("no data: over the domain", steps=0, repeats=False))
    facts = {
        **setting.data,
        "steps": counts.steps,
        "design": counts.design.to_json(),
        "batches": len(counts.batches) if counts.batches is not None else None,
        "transitions_seen": int((counts.transition > 0).sum()),
        "choices_visited": int((counts.visits > 0).sum()),
    }
    return from_plain(to_plain(facts), DataFacts)


def _options(options: LearnOptions) -> OptionFacts:
    return OptionFacts(
        region=options.region.value if options.region else None,
        sets=options.sets.value if options.sets else None,
        interval=options.interval.value if options.interval else None,
        budget=options.budget.value,
        ellipsoid=options.ellipsoid.value,
        intersect=options.intersect,
        fallback=options.fallback,
        precision=options.precision,
        assume_support=options.assume_support,
        time_limit=options.seconds,
        iteration_limit=options.iterations,
        coupled_gap=options.coupled_gap,
        cost_range=UNSET if options.cost_range is None else options.cost_range,
        cost_sd=UNSET if options.cost_sd is None else options.cost_sd,
    )


def _truth(setting: Setting) -> TruthFacts | None:
    if setting.truth is None:
        return None
    value = setting.true_value
    return TruthFacts(dict(setting.truth), None if value is None else span_of(value))


def _events(intervals: EventIntervals) -> EventTable:
    listed = _thin(np.arange(len(intervals.events), dtype=np.int64))
    names = intervals.events.outcomes.model.parameters.names
    return EventTable(
        total=len(intervals.events),
        index=listed.tolist(),
        text=[intervals.events.function(int(e)).text(names) for e in listed],
        successes=intervals.successes[listed].tolist(),
        trials=intervals.trials[listed].tolist(),
        lower=intervals.lower[listed].tolist(),
        upper=intervals.upper[listed].tolist(),
    )


def _regions(results: Iterable[LearningResult]) -> list[RegionShape]:
    """Each region once: the box of the parameters, and shadows on pairs of them."""
    found: dict[str, RegionShape] = {}
    for result in results:
        region = result.region
        if region is None or region.kind.value in found:
            continue
        low, high = result.widths.parameter_lower, result.widths.parameter_upper
        box = None if low is None or high is None else (low, high)
        found[region.kind.value] = region_shape(region, result.model.parameters.names, box)
    return list(found.values())


def _store(result: LearningResult, listed: OffsetArray) -> StoredOutcome:
    """The outcome with the bounds of the listed expressions in the sets: over all their transitions."""
    lower, upper = expression_hull(result)
    bounds = Bounds(lower[listed].tolist(), upper[listed].tolist())
    return StoredOutcome(**structs.asdict(outcome_of(result)), bounds=bounds)


def expression_hull(result: LearningResult) -> tuple[FloatArray, FloatArray]:
    """The least lower and the largest upper bound of every expression among its transitions."""
    model, sets = result.model, result.sets
    lower, upper = np.ones(len(model.expressions)), np.zeros(len(model.expressions))
    np.minimum.at(lower, model.expression, sets.lower)
    np.maximum.at(upper, model.expression, sets.upper)
    return lower, upper


def _thin(index: OffsetArray) -> OffsetArray:
    if len(index) <= MOST_LISTED:
        return index
    kept = np.linspace(0, len(index) - 1, MOST_LISTED).astype(np.int64)
    return index[kept]
