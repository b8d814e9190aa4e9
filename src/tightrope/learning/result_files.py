"""Files of a result: the record of a run, its policies and learned models, and regions for comparison.

    result.json               everything a report needs (`tightrope.io.results`)
    robust-policy.json        the policy with the best guarantee
    optimistic-policy.json    the policy that is best if nature helps
    given-policy.json         the given policy, or the tree as one
    robust-controller.json    instead for temporal properties: policies with memory; small ones also as .dot
    learned.drn               with `exports`: the learned interval model, for Storm and tightrope
    learned.tra .lab .sta …   the same as PRISM's explicit files; learned.umb: as UMB (package umbi)
    learned.props             the property with both directions, which repeats the guarantee on these models

Several kinds of sets have a directory each, which appears completely or not at all. The interval model of
rectangular sets is their hull; coupled sets have none. Projections of a region on two parameters are outer
polygons. Other regions for comparison use the same counts and δ, each valid on its own.
"""

from __future__ import annotations

import functools
import importlib.metadata
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET, UnsetType, structs

from tightrope import __version__
from tightrope.ambiguity.sets import SetsKind
from tightrope.atomic import atomic_write
from tightrope.data.counts import Counts
from tightrope.errors import InputError, TightropeError, check_type, choose
from tightrope.io import results as records
from tightrope.io.coding import from_plain, record_of, to_plain, to_text
from tightrope.io.formats import save_model, umb_is_available
from tightrope.io.output import claim
from tightrope.learning.options import Effort, LearnOptions, OutcomesUse, decide
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import MOST_DRAWN, Policy
from tightrope.model.structure import ParametricReward, Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.prism.properties.resolve import PropertyOptions, with_letters
from tightrope.provenance import union
from tightrope.regions.bounds import parameter_box, tracks_in
from tightrope.regions.region import Region
from tightrope.regions.registry import build_region, own_kinds
from tightrope.rules.states import value_names
from tightrope.solver.solution import Status
from tightrope.solver.solve import Attained, Workspace, attained, solve
from tightrope.statistics.estimates import EventIntervals
from tightrope.statistics.outcomes import Outcomes
from tightrope.verdict import Word

if TYPE_CHECKING:
    from tightrope.learning.policy_solver import PolicyValue
    from tightrope.learning.result import LearningResult

DIRECTIONS = 48
MOST_PAIRS = 28
"""Of so many pairs of parameters at most, the first ones."""


def shadows(
    region: Region, names: Sequence[str], box: tuple[FloatArray, FloatArray]
) -> list[records.Projection]:
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
        polygon = centre[at] + half[at] * _corners(circle, reach)
        corners = [(float(x), float(y)) for x, y in polygon]
        result.append(records.Projection(names[pair[0]], names[pair[1]], corners))
    return result


def region_shape(
    region: Region, names: Sequence[str], box: tuple[FloatArray, FloatArray] | None
) -> records.RegionShape:
    """A region in the form of a document: the box of its parameters where it has one, and its shadows."""
    ends = {} if box is None else {name: (float(box[0][i]), float(box[1][i])) for i, name in enumerate(names)}
    return records.RegionShape(
        kind=region.kind.value,
        relaxation=region.relaxation.value,
        empty=region.emptiness.is_empty,
        notes=list(region.notes),
        box=ends,
        projections=[] if box is None else shadows(region, names, box),
    )


def _corners(circle: FloatArray, reach: FloatArray) -> FloatArray:
    """Where each line u·y = h meets the next one."""
    following, far = np.roll(circle, -1, axis=0), np.roll(reach, -1)
    determinant = circle[:, 0] * following[:, 1] - circle[:, 1] * following[:, 0]
    x = (reach * following[:, 1] - far * circle[:, 1]) / determinant
    y = (far * circle[:, 0] - reach * following[:, 0]) / determinant
    return np.stack([x, y], axis=1)


MOST_LISTED = 20_000
MOST_ESTIMATED = 100_000  # choices of a model that is solved at the parameters that fit best


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
    true_value: records.Interval | None = None


def document(
    results: Sequence[LearningResult],
    counts: Counts | None,
    options: LearnOptions,
    setting: Setting,
    *,
    shapes: bool = True,
) -> records.ResultDocument:
    """All results of a run over one model and one data set; regions only where `shapes` is set."""
    model = results[0].model
    subject = results[0].problem.base
    assert isinstance(subject, ParametricMDP)
    listed = _thin(model.expressions.nonconstant.astype(np.int64))
    intervals = next((r.intervals for r in results if r.intervals is not None), None)
    return records.ResultDocument(
        versions=dict(versions()),
        command=list(setting.command),
        model=_model(subject, setting),
        question=setting.property,
        maximises=results[0].objective.maximises,
        delta=setting.delta,
        data=_data(counts, subject.structure, options, setting),
        options=_options(options, results[0].problem.query.options),
        policy=setting.policy,
        truth=None if setting.truth is None else records.TruthFacts(dict(setting.truth), setting.true_value),
        expressions=records.ExpressionTexts(
            total=len(model.expressions.nonconstant),
            index=listed.tolist(),
            text=[model.expression_text(int(e)) for e in listed],
        ),
        events=None if intervals is None else _events(intervals),
        regions=_regions(results) if shapes else [],
        results=[_store(result, listed, shapes and result is results[-1]) for result in results],
    )


@functools.cache
def versions() -> Mapping[str, str]:
    """What ran: this program, Python, and the packages that numbers pass through."""
    packages = ("numpy", "scipy", "numba", "highspy", "pyarrow")
    known = {package: importlib.metadata.version(package) for package in packages}
    return {"tightrope": __version__, "python": platform.python_version(), **known}


def _model(model: ParametricMDP, setting: Setting) -> records.ModelFacts:
    shown = model.parameters.shown
    return record_of(
        records.ModelFacts,
        model,
        source=setting.model,
        constants=dict(setting.constants),
        hash=model.hash(),
        expressions=len(model.expressions),
        degree=model.expressions.degree,
        domain=shown.text(),
        parameters=[
            records.ParameterRange(name, float(low), float(high))
            for name, low, high in zip(shown.names, shown.lower, shown.upper, strict=True)
        ],
    )


def _data(
    counts: Counts | None, structure: Structure, options: LearnOptions, setting: Setting
) -> records.DataFacts:
    if counts is None:
        return records.DataFacts(
            steps=0, design=records.DesignFacts("no data: over the domain", steps=0, repeats=False)
        )
    names = value_names(structure, counts.names)
    facts = {
        **setting.data,
        **({"names": names} if names else {}),
        "steps": counts.steps,
        "design": counts.design.to_json(),
        "batches": len(counts.batches) if counts.batches is not None else None,
        "transitions_seen": int((counts.transition > 0).sum()),
        "choices_visited": int((counts.visits > 0).sum()),
    }
    seen = union([counts.provenance, *(prior.made_from for prior in options.prior)])
    facts |= {} if seen is None else {"provenance": seen.text()}
    return from_plain(to_plain(facts), records.DataFacts)


def _options(options: LearnOptions, reading: PropertyOptions) -> records.OptionFacts:
    return record_of(
        records.OptionFacts,
        options,
        region=options.region.value if options.region else None,
        time_limit=options.seconds,
        iteration_limit=options.iterations,
        outcomes=UNSET if options.outcomes is OutcomesUse.AUTO else options.outcomes.value,
        effort=UNSET if options.effort is Effort.NORMAL else options.effort.value,
        prior=[prior.text for prior in options.prior] or UNSET,
        discount=UNSET if reading.discount is None else reading.discount,
        terminal_reward=UNSET if reading.terminal_reward is None else reading.terminal_reward,
    )


def _events(intervals: EventIntervals) -> records.EventTable:
    listed = _thin(np.arange(len(intervals.events), dtype=np.int64))
    return records.EventTable(
        total=len(intervals.events),
        index=listed.tolist(),
        text=[intervals.events.text(int(e)) for e in listed],
        successes=intervals.successes[listed].tolist(),
        trials=intervals.trials[listed].tolist(),
        lower=intervals.lower[listed].tolist(),
        upper=intervals.upper[listed].tolist(),
    )


def _regions(results: Iterable[LearningResult]) -> list[records.RegionShape]:
    """Each region once: the box of the parameters, and shadows on pairs of them."""
    shapes: dict[str, records.RegionShape] = {}
    for result in results:
        region = result.region
        if region is None or region.kind.value in shapes:
            continue
        low, high = result.widths.parameter_lower, result.widths.parameter_upper
        box = None if low is None or high is None else (low, high)
        shape = region_shape(region, result.model.parameters.names, box)
        tracks = tracks_in(region, result.model, result.counts)
        shapes[region.kind.value] = structs.replace(shape, tracks=tracks or UNSET)
    return list(shapes.values())


def _store(result: LearningResult, listed: OffsetArray, estimate: bool) -> records.StoredOutcome:
    """The outcome with the bounds of the listed expressions in the sets: over all their transitions."""
    model, sets = result.model, result.sets
    lower, upper = np.ones(len(model.expressions)), np.zeros(len(model.expressions))
    np.minimum.at(lower, model.expression, sets.lower)
    np.maximum.at(upper, model.expression, sets.upper)
    bounds = records.ExpressionBounds(lower[listed].tolist(), upper[listed].tolist())
    there = _at_best_fit(result) if estimate and result.robust.coupled is None else UNSET
    return records.StoredOutcome(**structs.asdict(result.outcome), bounds=bounds, estimate=there)


def _at_best_fit(result: LearningResult) -> tuple[dict[str, float], records.Interval] | UnsetType:
    """Values of policies at the parameters that fit best, and what is certified of the best one there."""
    problem, model, counts = result.problem, result.model, result.counts
    several = 0 < model.choices - model.states < MOST_ESTIMATED
    has_numbers = not isinstance(problem.objective.reward, ParametricReward)
    if counts is None or not (several and has_numbers) or problem.lift or problem.is_of_controller:
        return UNSET
    fitted = Outcomes.of(model).fitted(counts)
    best = solve(fitted, problem.objective).policy
    given = None if result.value is None else result.value.policy
    named = {"robust": result.policy, "given": given, "best": best}
    there = {
        name: solve(fitted, problem.objective, policy=one) for name, one in named.items() if one is not None
    }
    values = {name: float(one.lower[model.initial]) for name, one in there.items()}
    return values, result.evaluate(best).interval


def _thin(index: OffsetArray) -> OffsetArray:
    if len(index) <= MOST_LISTED:
        return index
    places = np.linspace(0, len(index) - 1, MOST_LISTED).astype(np.int64)
    return index[places]


@dataclass(frozen=True, eq=False)
class Exported:
    """A policy, its name, and what is certified of it."""

    name: str
    policy: Policy
    interval: records.Interval
    status: Status

    def certified(self, result: LearningResult, text: str) -> records.CertifiedFacts:
        """The entry of the policy's file."""
        ledger = result.ledger
        return records.CertifiedFacts(
            question=text,
            lower=self.interval.lower,
            upper=self.interval.upper,
            over=f"{result.kind.value} sets",
            confidence=None if ledger.delta == 0 else 1 - ledger.delta,
            holds=result.verdict.word in (Word.PROVED, Word.LIMIT),
            status=self.status.name.lower().replace("_", "-"),
        )


def _as_computed(name: str, value: PolicyValue) -> Exported:
    """A policy with the interval that was computed of this very one."""
    status = Status.CERTIFIED if value.is_close else Status.PRECISION_LIMIT
    return Exported(name, value.policy, value.interval, status)


def robust_policy(result: LearningResult) -> Exported:
    """The robust policy; over a domain the one that was asked about."""
    value, maximises, initial = result.robust, result.objective.maximises, result.model.initial
    if value.coupled is not None or value is result.value:
        return _as_computed("robust", value)
    against, beside = value.solutions if maximises else value.solutions[::-1]
    again = attained(against, value.policy, _workspace(result))
    ends = (again.lower, beside.upper[initial]) if maximises else (beside.lower[initial], again.upper)
    interval = records.Interval.of(*map(float, ends))
    return Exported("robust", value.policy, interval, _worst(again.status, beside.status))


def _optimistic(result: LearningResult) -> Exported:
    solution = result.optimistic
    policy = solution.policy
    workspace = _workspace(result)
    kind = attained(solution, policy, workspace)
    opposite = replace(solution.objective, nature=solution.objective.nature.opposite)
    precision = solution.precision
    opposed = solve(solution.kernel, opposite, policy=policy, precision=precision, workspace=workspace)
    against = Attained(*opposed.bounds, opposed.status)  # where nature is not kind after all
    ends = (against.lower, kind.upper) if result.objective.maximises else (kind.lower, against.upper)
    return Exported("optimistic", policy, records.Interval.of(*ends), _worst(kind.status, against.status))


def _workspace(result: LearningResult) -> Workspace:
    return Workspace(result.options.device, result.options.threads)


def _worst(*statuses: Status) -> Status:
    return next((status for status in statuses if status is not Status.CERTIFIED), Status.CERTIFIED)


RESULT = records.RESULT_FILE
LEARNED = "learned"

KIND = "learn"
"""The command that such a directory belongs to."""


class Export(Enum):
    """Formats of the learned interval model."""

    DRN = "drn"
    EXPLICIT = "explicit"
    UMB = "umb"


ENDINGS = {Export.DRN: ".drn", Export.EXPLICIT: "", Export.UMB: ".umb"}


def parse_exports(names_given: str | Collection[str] | None) -> tuple[Export, ...]:
    """What `--export drn,explicit` asks for, or a list of names."""
    listed = names_given.split(",") if isinstance(names_given, str) else names_given or ()
    check_type("exports", listed, Collection, "a list of formats")
    exports = tuple(dict.fromkeys(choose("export", Export, str(name).strip()) for name in listed))
    if Export.UMB in exports and not umb_is_available():
        raise InputError("UMB files need the package umbi", hint="pip install 'tightrope[umbi]'")
    return exports


def write_results(
    path: Path,
    results: Sequence[LearningResult],
    content: records.ResultDocument,
    *,
    exports: Collection[Export] = (),
) -> list[Path]:
    """Write the directory; the paths of its files. `content` is the document, which lists them as well."""
    with claim(path, KIND).filling(RESULT) as folder:
        names = fill_results(folder, results, content, exports=exports)
    return [path / name for name in names]


def result_document(
    result: LearningResult, source: str | None = None, *, shapes: bool = True
) -> records.ResultDocument:
    """The document of a single result that was learned in Python."""
    named = source or f"a model of {result.model.states:,} states"
    setting = Setting(model=named, property=result.problem.text, delta=result.ledger.delta)
    return document([result], result.counts, result.options, setting, shapes=shapes)


def fill_results(
    folder: Path,
    results: Sequence[LearningResult],
    content: records.ResultDocument,
    *,
    exports: Collection[Export] = (),
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Write all files into an empty folder; their names, the document's first."""
    say = progress or (lambda what: None)
    several = len(results) > 1
    names: list[list[str]] = []
    for result in results:
        inner = folder / result.decisions.sets.value if several else folder
        inner.mkdir(exist_ok=True)
        there = {file.name for file in inner.iterdir()}
        say(f"write: the policies ({result.kind.value})")
        write_policies(result, inner, content.question)
        if exports and result.kind is not SetsKind.COUPLED:
            say(f"write: the learned model ({result.sets.kind.value})")
            _write_models(result, inner, content.question, exports)
        new = sorted(file for file in inner.iterdir() if file.name not in there)
        names.append([str(file.relative_to(folder)) for file in new])
    for entry, files in zip(content.results, names, strict=True):
        entry.files = files
    with atomic_write(folder / RESULT) as file:
        file.write(to_text(content) + "\n")
    return [RESULT, *(name for files in names for name in files)]


def write_policies(result: LearningResult, folder: Path, text: str) -> None:
    """The robust and the optimistic policy, and a given one, each with the interval that it attains."""
    value, every = result.value, [robust_policy(result), _optimistic(result)]
    if value is not None and value is not result.robust and result.problem.lift is None:
        every.append(_as_computed("given", value))
    for exported in every:
        certified = to_plain(exported.certified(result, text))
        chosen = getattr(result.problem.lift, "chosen", None)
        if chosen is not None:  # a controller that sees observations: the chain it makes has no other policy
            if exported.name == "robust":
                chosen.save(folder / "robust-controller.json", certified)
            continue
        if result.problem.lift is not None:
            policy = result.problem.controller(exported.policy)
            name = f"{exported.name}-controller"
            policy.save(folder / f"{name}.json", result.problem.base.hash(), certified)
            if policy.memory is not None and len(policy.memory.state) <= MOST_DRAWN:
                policy.save(folder / f"{name}.dot")
            continue
        exported.policy.save(folder / f"{exported.name}-policy.json", result.model.hash(), certified)


def _write_models(result: LearningResult, folder: Path, text: str, exports: Collection[Export]) -> None:
    model = result.sets.interval_model()
    with atomic_write(folder / f"{LEARNED}.props") as file:
        agent, nature = result.objective.agent, result.objective.nature
        if result.objective.complement:
            agent, nature = agent.opposite, nature.opposite
        file.write(with_letters(text, agent, nature) + "\n")
    for export in exports:
        save_model(model, folder / f"{LEARNED}{ENDINGS[export]}")


def regions_beside(
    known: Iterable[records.RegionShape],
    model: ParametricMDP,
    counts: Counts,
    delta: float,
) -> list[records.RegionShape]:
    """The regions that are not among the `known` ones, to be appended to a document's."""
    present, options = {entry.kind for entry in known}, LearnOptions()
    result = []
    for kind in own_kinds():
        if kind.value in present or not kind.is_compared:
            continue
        try:
            wanted = replace(options, region=kind, sets=SetsKind.EXPRESSION)
            chosen = decide(model, counts, wanted).region_options(options)
            region = build_region(kind, model, counts, delta, chosen)
            if region.ledger.holds:
                box = None if region.emptiness.is_empty else parameter_box(region)
                result.append(region_shape(region, model.parameters.names, box))
        except TightropeError:
            continue
    return result
