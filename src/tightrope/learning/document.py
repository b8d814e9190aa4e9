"""The document of a learning run: everything a report needs, as plain data for `result.json`.

Infinite numbers are strings ("inf"), as in all JSON of this program. A table with very many expressions or
events is thinned out evenly; `total` says how many there are.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tightrope import __version__
from tightrope.data.counts import Counts
from tightrope.learning.options import LearnOptions
from tightrope.learning.policies import maximises
from tightrope.learning.projections import shadows
from tightrope.learning.result import Interval, LearningResult
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.statistics.estimates import EventIntervals

FORMAT = "tightrope result"
VERSION = 1
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
    results: Sequence[LearningResult], counts: Counts, options: LearnOptions, setting: Setting
) -> dict[str, object]:
    """All results of a run over one model and one data set."""
    model = results[0].model
    listed = _thinned(model.expressions.nonconstant.astype(np.int64))
    intervals = next((r.intervals for r in results if r.intervals is not None), None)
    return {
        "format": FORMAT,
        "version": VERSION,
        "versions": versions(),
        "command": list(setting.command),
        "model": _model(model, setting),
        "property": setting.property,
        "maximises": maximises(results[0].objective),
        "delta": setting.delta,
        "data": {**setting.data, **_data(counts)},
        "options": _options(options),
        "policy": setting.policy,
        "truth": _truth(setting),
        "expressions": {
            "total": len(model.expressions.nonconstant),
            "index": listed.tolist(),
            "text": [model.expressions.text(int(e)) for e in listed],
        },
        "events": None if intervals is None else _events(intervals),
        "regions": _regions(results),
        "results": [{**result.to_json(), "bounds": _bounds(result, listed)} for result in results],
    }


def versions() -> dict[str, str]:
    """What ran: this program, Python, and the packages that numbers pass through."""
    packages = ("numpy", "scipy", "numba", "highspy", "pyarrow")
    return {
        "tightrope": __version__,
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }


def _model(model: ParametricMDP, setting: Setting) -> dict[str, object]:
    parameters = model.parameters
    return {
        "source": setting.model,
        "constants": dict(setting.constants),
        "hash": model.hash(),
        "states": model.states,
        "choices": model.choices,
        "transitions": model.transitions,
        "expressions": len(model.expressions),
        "degree": model.expressions.degree,
        "domain": parameters.text(),
        "parameters": [
            {"name": name, "lower": float(low), "upper": float(high)}
            for name, low, high in zip(parameters.names, parameters.lower, parameters.upper, strict=True)
        ],
    }


def _data(counts: Counts) -> dict[str, object]:
    return {
        "steps": counts.steps,
        "design": counts.design.to_json(),
        "batches": len(counts.batches) if counts.batches is not None else None,
        "transitions_seen": int((counts.transition > 0).sum()),
        "choices_visited": int((counts.visits > 0).sum()),
    }


def _options(options: LearnOptions) -> dict[str, object]:
    return {
        "region": options.region.value if options.region else None,
        "sets": options.sets.value if options.sets else None,
        "interval": options.interval.value if options.interval else None,
        "budget": options.budget.value,
        "ellipsoid": options.ellipsoid.value,
        "intersect": options.intersect,
        "fallback": options.fallback,
        "precision": options.precision,
        "assume_support": options.assume_support,
        "time_limit": options.seconds,
        "iteration_limit": options.iterations,
        "coupled_gap": options.coupled_gap,
    }


def _truth(setting: Setting) -> dict[str, object] | None:
    if setting.truth is None:
        return None
    value = setting.true_value
    return {"at": dict(setting.truth), "value": value.to_json() if value is not None else None}


def _events(intervals: EventIntervals) -> dict[str, object]:
    listed = _thinned(np.arange(len(intervals.events), dtype=np.int64))
    return {
        "total": len(intervals.events),
        "index": listed.tolist(),
        "text": [intervals.events.polynomial(int(e)).text(_names(intervals)) for e in listed],
        "successes": intervals.successes[listed].tolist(),
        "trials": intervals.trials[listed].tolist(),
        "lower": intervals.lower[listed].tolist(),
        "upper": intervals.upper[listed].tolist(),
    }


def _names(intervals: EventIntervals) -> tuple[str, ...]:
    return intervals.events.outcomes.model.parameters.names


def _regions(results: Iterable[LearningResult]) -> list[dict[str, object]]:
    """Each region once: the box of the parameters, and shadows on pairs of them."""
    found: dict[str, dict[str, object]] = {}
    for result in results:
        region = result.region
        if region is None or region.kind.value in found:
            continue
        names = result.model.parameters.names
        low, high = result.widths.parameter_lower, result.widths.parameter_upper
        entry: dict[str, object] = {
            "kind": region.kind.value,
            "relaxation": region.relaxation.value,
            "empty": region.emptiness.is_empty,
            "notes": list(region.notes),
            "box": {},
            "projections": [],
        }
        if low is not None and high is not None:
            entry["box"] = {name: [float(low[i]), float(high[i])] for i, name in enumerate(names)}
            entry["projections"] = [
                {"x": names[s.pair[0]], "y": names[s.pair[1]], "polygon": s.polygon.tolist()}
                for s in shadows(region, (low, high))
            ]
        found[region.kind.value] = entry
    return list(found.values())


def _bounds(result: LearningResult, listed: OffsetArray) -> dict[str, list[float]]:
    """The bounds of the listed expressions in the sets: over all their transitions."""
    lower, upper = expression_hull(result)
    return {"lower": lower[listed].tolist(), "upper": upper[listed].tolist()}


def expression_hull(result: LearningResult) -> tuple[FloatArray, FloatArray]:
    """The least lower and the largest upper bound of every expression among its transitions."""
    model, sets = result.model, result.sets
    lower, upper = np.ones(len(model.expressions)), np.zeros(len(model.expressions))
    np.minimum.at(lower, model.expression, sets.lower)
    np.maximum.at(upper, model.expression, sets.upper)
    return lower, upper


def _thinned(index: OffsetArray) -> OffsetArray:
    if len(index) <= MOST_LISTED:
        return index
    kept = np.linspace(0, len(index) - 1, MOST_LISTED).astype(np.int64)
    return index[kept]
