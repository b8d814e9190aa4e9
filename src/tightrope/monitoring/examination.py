"""`examine`: test whether the rows of a log agree with the model, and find what they depend on.

The evidence is Σ w_f·E_f over features of the log (`monitoring.features`), each with an e-value
(`monitoring.urns`), with that of tests by counts (`e_process`) and by events (`monitor`); weights follow from
the model and the columns. Under the model it ever reaches 1/α with probability at most α; terms may be left
out. `learn`, `doctor` and `watch` use this one sum; the costly test by events is made if it may decide.

Choices that share a distribution are one context for the feature `tie`. In a chain a part of each weight is
for the whole path. Long logs are tested in order on their first rows, by counts on all (`data.fit_tables`).
False alarms of changes (`weigh_changes`) add to those of the sum; the larger of the two is the evidence.

The level α spends nothing of δ. Costs are tested against the reward in question at a level of their own: they
do not refute the model, but make an answer nominal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tightrope.data.columns import COST, HABITS
from tightrope.data.counts import LONG, MOST, Counts, LazyLog
from tightrope.data.design import SamplingDesign, absorbing_states
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.fit_tables import OTHERS, VISITS, CountTable, FitTables, VisitGrid
from tightrope.errors import InputError, check_number
from tightrope.io import results
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.monitoring import features, urns
from tightrope.monitoring.copies import Copies, weigh_copies
from tightrope.monitoring.departures import bet_on_all, log_sum
from tightrope.monitoring.e_process import BatchTest, weigh_batches
from tightrope.monitoring.features import Feature
from tightrope.monitoring.monitor import Monitor
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Facts, Record
from tightrope.problem import Problem
from tightrope.statistics.costs import mean_evidence
from tightrope.statistics.outcomes import Outcomes

ALPHA = 0.001
"""The probability of a false alarm of the test that `learn` makes."""

READ_AGAIN, MOST_READ, EXAMINED = LONG, MOST, 20_000
"""Rows read again; read without tables of them; examined in the order of visits."""

SHARES = {
    "events": 0.15,
    "counts": 0.05,
    "tie": 0.12,
    "memory": 0.2,
    "serial": 0.02,
    "column": 0.17,
    "copy": 0.01,
    "unit": 0.16,
    "drift": 0.12,
}
"""How the budget is divided among kinds of departures, whatever a log can show; `events` is for `watch`."""

PATH, AT_ONCE = 0.5, 0.7
"""Parts of a feature's weight for the path of a chain, and for all rows at once with a planned number."""

BY_COUNTS = 0.1
"""The part of a feature's weight that is for all rows of a log, by counts."""

LISTED, SHOWN, SORTS = 4, 6, 8
MOST_UNITS = 100_000
MOST_PARAMETERS = 400
"""Models of more are not tested by counts."""


@dataclass(frozen=True)
class OutcomeShare:
    """An outcome where a feature has a value: `count` of `visits` there, the share `pooled` everywhere."""

    context: str
    value: str
    outcome: str
    count: int
    visits: int
    pooled: float

    @property
    def observed(self) -> float:
        return self.count / self.visits

    @property
    def words(self) -> str:
        return (
            f"{self.context}, {self.value}: to {self.outcome} {self.observed:.3f} ({self.count:,} of "
            f"{self.visits:,}) against {self.pooled:.3f}"
        )


@dataclass(frozen=True)
class Finding:
    """One departure of a log from a model.

    `kind` is memory, serial, column, unit, drift, tie, copy, expression, excluded, rate or cost; `feature` a
    name (`tightrope.monitoring.features`), empty for counts. `log_e_value` is its own evidence, `log_weight`
    its share. `contexts` are the choices with most evidence; `effect` is the mean distance from the model.
    """

    kind: str
    feature: str
    text: str
    log_e_value: float
    contexts: tuple[int, ...] = ()
    cells: tuple[OutcomeShare, ...] = ()
    effect: float | None = None
    log_weight: float = 0.0
    is_stated: bool = True
    """Whether it is known that the feature comes before the outcome; nobody knows that of a column."""
    by_counts: results.Anomaly | None = None
    """What counts alone show."""

    @staticmethod
    def of_copies(copies: Copies, share: float) -> list[Finding]:
        """What to say where episodes look copied."""
        effect = float(copies.copied.mean()) if copies.copied.any() else 0.0
        one = Finding("copy", "", copies.text, copies.log_e, effect=effect, log_weight=math.log(share))
        return [one] if effect else []

    @property
    def weighed(self) -> float:
        """Its part of the evidence, a logarithm."""
        return self.log_e_value + self.log_weight

    @property
    def anomaly(self) -> results.Anomaly:
        """The same for those who list what fits worst."""
        if self.by_counts is not None:
            return self.by_counts
        seen = (
            results.Seen(f"{one.context}, {one.value}: to {one.outcome}", one.count, one.observed, one.pooled)
            for one in self.cells
        )
        return results.Anomaly(self.kind, self.text.partition(";")[0], self.log_e_value, tuple(seen))


@dataclass(frozen=True, eq=False, repr=False)
class Examination(Record):
    """The evidence of all tests together, and findings by their own evidence, largest first.

    `log_e_stated` is the evidence without columns that may be written after outcomes. `first_alarm` are the
    rows after which the evidence reached 1/α, `rows` those tested, in order or by counts.
    """

    findings: tuple[Finding, ...]
    log_e_value: float
    alpha: float
    first_alarm: int | None
    rows: int
    left_out: tuple[str, ...] = field(default=())
    log_e_stated: float = math.inf
    log_e_change: float = -math.inf
    """The evidence of changes, beside that of the tests that are summed: the larger is `log_e_value`."""
    looks: tuple[tuple[int, float], ...] = ()
    """Events and evidence at each look."""
    untested: str = ""
    """Why counts were not tested."""

    @property
    def alarm(self) -> bool:
        return self.first_alarm is not None

    @property
    def is_doubt(self) -> bool:
        """Whether the evidence is at least half of the way to an alarm, as in `ModelFit`."""
        return self.alarm or self.log_e_value >= 0.5 * math.log(1.0 / self.alpha)

    @property
    def refuting(self) -> tuple[Finding, ...]:
        """Findings that are an alarm on their own."""
        return tuple(one for one in self.findings if one.weighed >= math.log(1.0 / self.alpha))

    def refutes_in_any_order(self, model: ParametricMDP) -> bool:
        """Whether a finding in which order plays no part is an alarm in a chain."""
        return not model.structure.has_choices and any(
            one.kind not in ("drift", "serial", "copy") and one.is_stated for one in self.refuting
        )

    @property
    def doubtful_columns(self) -> str | None:
        """Words about columns that an alarm rests on, without which there is none; else None."""
        if not self.alarm or max(self.log_e_stated, self.log_e_change) >= math.log(1.0 / self.alpha):
            return None
        names = [one.feature.partition(":")[2] for one in self.findings if not one.is_stated]
        listed = ", ".join(f"'{name}'" for name in dict.fromkeys(names))
        return (
            f"columns: it is not known whether {listed} was written before the outcomes of its rows; "
            "`known` states that, `ignored` leaves columns out"
        )

    def _title_(self) -> str:
        return f"Examination: e-value {results.power_text(self.log_e_value)} after {self.rows:,} rows"

    def _facts_(self) -> Facts:
        return [(one.kind, one.text) for one in self.findings[:5]]


def examine(
    model: ParametricMDP,
    log: EpisodeLog,
    *,
    alpha: float,
    counts: Counts | None = None,
    planned: bool = False,
    first: int | None = None,
    ordered: bool = True,
    tables: FitTables | None = None,
) -> Examination:
    """Test what the rows of a log depend on; with `counts`, the model's ties and expressions as well.

    `planned`: the number of episodes was fixed in advance. `first`: so many rows are tested in order, all by
    counts. `ordered`: rows stand in the order in which they happened. With `tables`, `log` may be a part.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(500, seed=1)
    >>> examine(bench.model, data.log(), alpha=0.01).alarm
    False
    """
    check_number("alpha", alpha, 0, 1)
    ordered = ordered and (counts is None or counts.design.order.holds)
    return weigh_all(model, LogRows(log, tables, planned, ordered, first), counts, alpha)


class LogRows(NamedTuple):
    """The rows that are at hand, as `examine` takes them."""

    log: EpisodeLog
    tables: FitTables | None
    planned: bool
    ordered: bool
    first: int | None


def weigh_all(
    model: ParametricMDP,
    rows: LogRows | None,
    counts: Counts | None,
    alpha: float,
    watched: Monitor | None = None,
) -> Examination:
    """The sum of all tests, with that of events where it may decide, or was made (`watched`)."""
    level, by_counts = math.log(1.0 / alpha), Weighed([], [], [])
    seen, tested, untested = Weighed([], [], []), 0, ""
    try:
        if counts is not None:
            is_alone = rows is None and counts.log is None
            by_counts = _by_counts(model, counts, 0.0 if is_alone else math.log(SHARES["counts"]), level)
    except InputError as error:
        untested = error.message
    if rows is not None:
        seen = _weigh_rows(model, rows, level)
        tested = len(rows.log) if rows.tables is None else rows.tables.rows
    terms = [*((log_e, True) for _, log_e in by_counts.looks[-1:]), *seen.terms]
    changed = max((one.weighed for one in seen.findings if one.kind == "drift"), default=-math.inf)
    if watched is None and rows is not None and counts is not None and rows.tables is None:
        so_far = max(changed, log_sum(np.array([log_e for log_e, _ in terms])))
        if 0.5 * level <= so_far < level and len(rows.log) <= LONG:
            watched = replay(model, rows.log, alpha)
    alarms = [*by_counts.alarms, *seen.alarms]
    if watched is not None:
        terms.append((watched.log_evidence + math.log(SHARES["events"]), True))
        alarms += [] if watched.first_alarm is None else [watched.first_alarm]
    value = max(changed, log_sum(np.array([log_e for log_e, _ in terms])), -700.0)
    events = tested if counts is None else counts.steps
    alarms = alarms or ([events] if value >= level else [])
    return Examination(
        tuple(sorted([*by_counts.findings, *seen.findings], key=lambda one: -one.weighed)),
        value,
        alpha,
        min(alarms, default=None),
        tested,
        tuple(seen.left_out),
        log_sum(np.array([log_e for log_e, is_stated in terms if is_stated])),
        changed,
        (*by_counts.looks[:-1], (events, value)),
        untested,
    )


class Weighed(NamedTuple):
    """What some tests say; `terms` are logarithms, and whether it is known that all comes before outcomes."""

    findings: list[Finding]
    terms: list[tuple[float, bool]]
    alarms: list[int]
    left_out: Sequence[str] = ()
    looks: Sequence[tuple[int, float]] = ()


def _weigh_rows(model: ParametricMDP, given: LogRows, level: float) -> Weighed:
    """What rows that the model excludes, copies, features and changes say."""
    whole, tables, planned, ordered, first = given
    log = whole if first is None else whole.first(first)
    findings = [Finding("excluded", "", one.text, math.inf) for one in whole.excluded[:LISTED]]
    findings += Finding.of_copies(weigh_copies(Outcomes.of(model), whole), SHARES["copy"])
    is_whole = tables is None and not log.rows_left_out
    rows = len(whole) if tables is None else tables.rows
    source = None if rows <= len(log) else whole if tables is None else tables
    tests, left_out = _weigh_features(_Rows.of(model, log, planned and is_whole), log, source, ordered)
    terms = [(one.weighed, True) for one in findings]
    terms += [(test.weighed, test.feature.is_stated) for test in tests]
    tests.sort(key=lambda test: -test.weighed)
    named: dict[str, _Test] = {}
    for test in tests:
        named.setdefault(test.feature.name, test)
    findings += [_finding(model, test) for test in list(named.values())[:SHOWN]]
    alarms = [one.row + 1 for one in whole.excluded[:1]]
    alone = [test.after for test in tests if test.after is not None and test.weighed >= level]
    for after in alone[:1]:
        earlier = (look for look in urns.looks(urns.FIRST_ROWS, len(log)) if after(look) >= level)
        alarms.append(next(earlier, len(log)))
    if ordered:
        change, reached = _changes(model, whole, level, tables)
        findings, alarms = findings + change, alarms + ([reached + 1] if reached >= 0 else [])
    return Weighed(findings, terms, alarms, left_out)


def _weigh_features(
    rows: _Rows, log: EpisodeLog, source: EpisodeLog | FitTables | None, ordered: bool
) -> tuple[list[_Test], list[str]]:
    """The tests of all features in the order of rows, and by counts of a `source`; columns left out."""
    tests: list[_Test] = []
    left_out = []
    for feature in features.list_features(rows.model, log):
        if feature.kind == "serial" and not ordered:
            continue
        code = features.codes(feature.name, rows.model, log)
        is_column = feature.kind in ("column", "unit") and code is not log.episode
        if is_column and features.tells_outcome(rows.context, rows.outcome, code):
            left_out.append(feature.name)
            continue
        own = rows.tied(log) if feature.kind == "tie" else rows
        share = math.log(SHARES[feature.kind] * feature.weight)
        test = _in_order(feature, own, log, code, share + math.log1p(-BY_COUNTS))
        if math.isfinite(test.log_e):
            tests.append(test)
        counting = log if source is None and features.is_key(feature.name, log) else source
        if counting is not None and feature.kind != "tie":
            tests += _on_all_rows(feature, rows.model, counting, share + math.log(BY_COUNTS))
    return tests, left_out


def replay(model: ParametricMDP, log: EpisodeLog, alpha: float) -> Monitor:
    """The test of `watch`, with its part of alpha, on the rows of a log."""
    monitor = Monitor(model, alpha=SHARES["events"] * alpha)
    monitor.observe(log.transition.astype(np.int64))
    monitor.look()
    return monitor


def is_planned(design: SamplingDesign) -> bool:
    """Whether the number of episodes was settled beforehand, and all of them are there."""
    known = design.planned is not None and design.planned == design.episodes
    return known and not design.late_plan and not design.anytime


class _Test(NamedTuple):
    """The test of a feature on so many rows, of a log with its codes where these are at hand; `after`: its
    weighed evidence after fewer rows."""

    feature: Feature
    log_e: float
    log_weight: float
    size: int
    rows: tuple[EpisodeLog, IndexArray] | tuple[None, None]
    cells: Callable[[], _Cells]
    after: Callable[[int], float] | None = None

    @property
    def weighed(self) -> float:
        return self.log_e + self.log_weight


def _in_order(feature: Feature, rows: _Rows, log: EpisodeLog, code: IndexArray, log_weight: float) -> _Test:
    """The test in the order of visits."""
    visits = rows.visits

    def shown() -> _Cells:
        cells = urns.FeatureCells.of(visits, code)
        number = np.zeros((len(cells.value), int(visits.width.max(initial=1))))
        np.add.at(number, (cells.cell, visits.outcome), 1.0)
        gain = urns.hedged_by_context(visits, cells, np.diff(visits.start))
        return _Cells(visits.context, cells.start, cells.value, number, gain)

    def after(most: int) -> float:
        return _evidence(rows, feature, code, most) + log_weight

    return _Test(feature, _evidence(rows, feature, code), log_weight, len(code), (log, code), shown, after)


def _on_all_rows(
    feature: Feature, model: ParametricMDP, source: EpisodeLog | FitTables, log_weight: float
) -> list[_Test]:
    """The test by counts, where rows are counted by this feature."""
    structure = model.structure
    rows: tuple[EpisodeLog, IndexArray] | tuple[None, None] = None, None
    if isinstance(source, FitTables):
        table = source.table(feature.name)
    else:
        rows = source, features.codes(feature.name, model, source)
        table = CountTable.of(rows[1], source.transition)
    if table is None:
        return []
    width = np.diff(structure.transition_start)
    log_e, gains = urns.weigh_counts(table, structure.transition_choice, width, feature.kind == "unit")

    def shown() -> _Cells:
        order = np.argsort(-gains, kind="stable")[:LISTED]
        order = order[gains[order] > 0.0].astype(np.int64)
        part = table.select(np.isin(structure.transition_choice[table.transition], order))
        choice = structure.transition_choice[part.transition].astype(np.int64)
        values, place = np.unique(part.value, return_inverse=True)
        names, place = np.unique(choice * len(values) + place, return_inverse=True)
        context, begin = np.unique(names // max(len(values), 1), return_index=True)
        outcome = part.transition - structure.transition_start[choice]
        number = np.zeros((len(names), int(outcome.max(initial=0)) + 1))
        np.add.at(number, (place, outcome), part.number)
        start = np.append(begin, len(names)).astype(np.int64)
        return _Cells(context, start, values[names % max(len(values), 1)], number, gains[context])

    return [_Test(feature, log_e, log_weight, int(table.number.sum()), rows, shown)]


class _Cells(NamedTuple):
    """How often outcomes are seen by value: cells start[i]:start[i+1] of context i, with its `gain`."""

    context: OffsetArray
    start: OffsetArray
    value: AnyArray
    number: FloatArray
    gain: FloatArray


@dataclass(frozen=True)
class _Rows:
    """Rows of a log by context; `path`: how many are first on one path (−1 with actions); `end`: states
    after."""

    model: ParametricMDP
    visits: urns.Visits
    context: OffsetArray
    outcome: OffsetArray
    end: IndexArray
    path: int
    planned: bool

    @staticmethod
    def of(model: ParametricMDP, log: EpisodeLog, planned: bool) -> _Rows:
        structure = model.structure
        context = log.choice(structure).astype(np.int64)
        outcome = log.transition - structure.transition_start[context]
        width = np.diff(structure.transition_start)
        end = structure.successor[log.transition]
        path = _path_rows(model, log, end) if structure.choices == structure.states else -1
        visits = urns.Visits.of(context, outcome, width)
        planned = planned and path == len(log) and bool(log.over.all() or log.episodes == 1)
        return _Rows(model, visits, context, outcome, end, path, planned)

    def tied(self, log: EpisodeLog) -> _Rows:
        """The same with choices of one distribution as one context."""
        outcomes, of_choice = Outcomes.of(self.model), self.model.signatures.of_choice
        several = np.bincount(of_choice, minlength=len(self.model.signatures)) > 1
        signature = of_choice[self.context].astype(np.int64)
        outcome = outcomes.of_transition[log.transition] - outcomes.start[signature]
        visits = urns.Visits.of(signature, outcome, np.where(several, outcomes.width, 1))
        return _Rows(self.model, visits, signature, outcome, self.end, -1, False)

    def schemes(self, most: int | None = None) -> list[tuple[float, OffsetArray, int]]:
        """Ways to use the first `most` rows: (log weight, visits used per context, rows; 0: a number of its
        own)."""
        visits = self.visits
        by_context = urns.first_visits(visits if most is None else visits.before(most))
        if self.path < 0:
            return [(0.0, by_context, 0)]
        share = math.log1p(-AT_ONCE) if self.planned else 0.0
        result = [(math.log1p(-PATH) + share, by_context, 0)]
        if self.planned and most is None:
            result.append((math.log(AT_ONCE), self._exits(self.path), self.path))
        share += math.log(PATH)
        reached = urns.looks(urns.FIRST_ROWS, self.path if most is None else min(self.path, most))
        if reached:
            result.append((share - math.log(urns.LOOKS), self._exits(reached[-1]), reached[-1]))
        return result

    def _exits(self, rows: int) -> OffsetArray:
        return urns.before_last_exits(self.visits, rows, int(self.end[rows - 1]))


def _changes(
    model: ParametricMDP, log: EpisodeLog, level: float, tables: FitTables | None
) -> tuple[list[Finding], int]:
    """The distribution that changes most clearly, and the row at which that reached the level (−1: none)."""
    weight, grid = math.log(SHARES["drift"]), None if tables is None else tables.grid
    if tables is None:
        grid = VisitGrid.of(model.structure, model.signatures)
        grid.add(log.transition.astype(np.int64))
    if grid is None or not grid.is_ordered:
        return [], -1
    counts = grid.counts()
    change = urns.weigh_changes(counts, level - weight, log.time is not None)
    if change is None:
        return [], -1
    text, structure = "the next state depends on the time in the log", model.structure
    of_row = model.signatures.of_choice[log.choice(structure)]
    rows = np.flatnonzero(of_row == change.context) if tables is None else np.empty(0, dtype=np.int64)
    reached = len(log) if tables is None else tables.rows
    reached = int(rows[change.reached - 1]) if len(rows) else reached - 1
    reached = reached if change.reached > 0 else -1
    if change.log_e <= 0.0:
        return [Finding("drift", "drift", text, change.log_e, log_weight=weight)], reached
    seen, visits = counts[change.context][:, change.outcome], int(grid.visits[change.context])
    at, slot = int(np.searchsorted(VISITS, change.before)), grid.start[change.context] + change.outcome
    before, since = int(seen[at]) / change.before, int(grid.seen[slot] - seen[at])
    transition = int(np.argmax(grid.outcome_of == slot))
    choice = int(structure.transition_choice[transition])
    to = structure.state_name(int(structure.successor[transition]))
    when = f"row {rows[change.before] + 1:,}" if len(rows) else f"its visit {change.before + 1:,}"
    cell = OutcomeShare(
        model.structure.choice_name(choice), f"since {when}", to, since, visits - change.before, before
    )
    effect = abs(cell.observed - before) * cell.visits / max(int(grid.visits.sum()), 1)
    about = ((choice,), (cell,), effect, weight)
    return [Finding("drift", "drift", f"{text}; {cell.words}", change.log_e, *about)], reached


def _path_rows(model: ParametricMDP, log: EpisodeLog, end: IndexArray) -> int:
    """The first rows that are episodes one after the other, from one state to a state that nothing leaves."""
    if len(log) == 0:
        return 0
    row = np.arange(len(log))
    state = log.state(model.structure)
    begins = log.begins
    follows = (log.previous == row - 1) & ~begins
    over = np.concatenate([[True], absorbing_states(model.structure)[end[:-1]]])
    fresh = begins & over & (state == state[0])
    wrong = np.flatnonzero(~(follows | fresh))
    return int(wrong[0]) if len(wrong) else len(log)


def _evidence(rows: _Rows, feature: Feature, code: IndexArray, most: int | None = None) -> float:
    """log E of one feature."""
    terms = []
    visits = rows.visits
    for share, used, at in rows.schemes(most):
        if not used.any():
            continue
        if feature.kind == "unit":
            unit = code[visits.row]
            units = int(unit.max(initial=-1)) + 1
            if 1 < units <= MOST_UNITS:
                sorts = _sorts(rows, used)
                terms.append(share + urns.weigh_units(visits, unit, units, used, sorts, at == 0))
            continue
        cells = urns.FeatureCells.of(visits, code)
        if cells.start[-1] > len(visits.width):
            terms.append(share + urns.weigh(visits, cells, used, at == 0))
    return log_sum(np.array(terms))


def _sorts(rows: _Rows, used: OffsetArray) -> list[BoolArray]:
    """Outcomes of which units may have more: all but the most frequent, or those that lead to one state."""
    visits, structure = rows.visits, rows.model.structure
    start = np.concatenate([[0], np.cumsum(visits.width)]).astype(np.int64)
    owner = np.repeat(np.arange(len(visits.width)), visits.width)
    at = structure.transition_start[visits.context][owner] + np.arange(start[-1]) - start[owner]
    successor, state = structure.successor[at], structure.choice_state[visits.context][owner]
    rank, each = np.arange(len(visits.row)), np.diff(visits.start)
    inside = rank - np.repeat(visits.start[:-1], each) < np.repeat(used, each)
    place = np.repeat(start[:-1], each) + visits.outcome
    number = np.bincount(place[inside], minlength=int(start[-1]))
    most = np.zeros(len(visits.width), dtype=number.dtype)
    np.maximum.at(most, owner, number)
    result: list[BoolArray] = [number < most[owner]]
    first = np.unique(successor, return_index=True)
    order = first[0][np.argsort(first[1])]
    result += [(successor == one) & (state != one) for one in order[:SORTS]]
    return [np.ascontiguousarray(one, dtype=np.bool_) for one in result]


def _by_counts(model: ParametricMDP, counts: Counts, weight: float, level: float) -> Weighed:
    """What ties, expressions and changes of the parameters say, by counts in batches."""
    if model.is_table or len(model.parameters) > MOST_PARAMETERS:
        raise InputError(f"a model of {len(model.parameters):,} parameters explains almost all counts")
    if not counts.steps:
        raise InputError("there are no data yet")
    test = BatchTest(model, counts)
    looked = [(event, log_e + weight) for event, log_e in weigh_batches(test, counts)]
    findings = []
    for one in test.worst(SHOWN, "about event"):
        visits = [round(seen.count / max(seen.observed, 1e-12)) for seen in one.outcomes]
        cells = tuple(
            OutcomeShare(one.text, "", seen.outcome, seen.count, number, seen.expected)
            for seen, number in zip(one.outcomes, visits, strict=True)
            if seen.count
        )
        apart = 0.5 * sum(abs(seen.observed - seen.expected) for seen in one.outcomes)
        about = (), cells, apart if one.outcomes else None, weight
        findings.append(Finding(one.kind, "", one.words, one.log_evidence, *about, by_counts=one))
    return Weighed(findings, [], [event for event, log_e in looked if log_e >= level][:1], (), looked)


def _finding(model: ParametricMDP, test: _Test) -> Finding:
    """A feature's evidence in words, with where it shows most; where there is none, its name alone."""
    feature, log_e = test.feature, test.log_e
    text, rest = f"the next state depends on {feature.words}", (test.log_weight, feature.is_stated)
    cells = test.cells() if log_e > 0.0 else None
    if cells is None or not np.any(cells.gain > 0.0):
        return Finding(feature.kind, feature.name, text, log_e, (), (), None, *rest)
    table, gains = cells.number, cells.gain
    order = [int(one) for one in np.argsort(-gains, kind="stable")[:LISTED] if gains[one] > 0.0]
    owner = np.repeat(np.arange(len(gains)), np.diff(cells.start))
    pooled = np.add.reduceat(table, cells.start[:-1], axis=0)
    pooled /= pooled.sum(axis=1, keepdims=True)
    number, total = table.sum(axis=1), pooled[owner]
    apart = table / number[:, None] - total
    by_chance = np.sqrt(2.0 / math.pi * total * (1.0 - total) / number[:, None])
    moved = number * np.maximum(0.5 * (np.abs(apart) - by_chance).sum(axis=1), 0.0)
    shown: list[tuple[int, OutcomeShare]] = []
    for place in order:
        cell = int(cells.start[place] + np.argmax(moved[cells.start[place] : cells.start[place + 1]]))
        best, value = int(np.argmax(np.abs(apart[cell]))), int(cells.value[cell])
        choice = value if feature.kind == "tie" else int(cells.context[place])
        if choice < 0:
            continue
        slot = model.structure.transition_start[choice] + best
        if feature.kind == "tie":
            outcomes = Outcomes.of(model)
            place_of = outcomes.of_transition[slice(*model.structure.transition_start[choice : choice + 2])]
            slot += int(np.argmax(place_of == outcomes.start[cells.context[place]] + best)) - best
        to = model.structure.state_name(int(model.structure.successor[slot]))
        named = features.value_name(feature.name, model, value, *test.rows)
        when = "another value" if value == OTHERS else named
        numbers = int(table[cell, best]), int(number[cell]), float(total[cell, best])
        shown.append((choice, OutcomeShare(model.structure.choice_name(choice), when, to, *numbers)))
    contexts, listed = tuple(choice for choice, _ in shown), tuple(one for _, one in shown)
    text, effect = f"{text}; {listed[0].words}" if listed else text, float(moved.sum()) / test.size
    return Finding(feature.kind, feature.name, text, log_e, contexts, listed, effect, *rest)


def rows_at_hand(model: ParametricMDP, counts: Counts) -> LogRows | None:
    """The rows of a log that are tested, or the first of them with tables of all."""
    if counts.log is None or not counts.steps:
        return None
    tables = tables_of(counts)
    log = None if tables is None else earliest_rows(counts.log, tables)
    if tables is None or (
        log is not None and counts.steps <= MOST_READ and any(map(features.has_bins, log.columns.values()))
    ):
        tables, log = None, counts.log() if counts.steps <= MOST_READ else None
    if log is None or log.model_hash != model.hash() or (tables is None and not len(log)):
        return None
    return LogRows(log, tables, is_planned(counts.design), counts.design.order.holds, EXAMINED)


def tables_of(counts: Counts) -> FitTables | None:
    """The tables of all rows of a long log, where they were kept while it was counted."""
    tables = next((one for one in counts.observed if isinstance(one, FitTables)), None)
    is_used = tables is not None and counts.steps > READ_AGAIN and tables.rows == counts.steps
    return tables if is_used else None


def earliest_rows(log: Callable[[], EpisodeLog], tables: FitTables, rows: int = EXAMINED) -> EpisodeLog:
    """The first rows of a log; none where these may depend on outcomes, for want of an order in time."""
    first: EpisodeLog = log.first(rows) if isinstance(log, LazyLog) else log().first(rows)
    if tables.grid is not None and tables.grid.is_ordered:
        return first
    return first.select(np.zeros(len(first), dtype=np.bool_))


def weigh_fit(
    model: ParametricMDP, counts: Counts, alpha: float = ALPHA, watched: Monitor | None = None
) -> results.ModelFit:
    """Test whether the data fit the model; `watched` has seen the same events, with its part of alpha."""
    batches = 0 if counts.batches is None else int(np.count_nonzero(np.diff(counts.batches.start)))
    seen = weigh_all(model, rows_at_hand(model, counts), counts, alpha, watched)
    return fit_of(seen, model, counts.design, batches > 1, counts.log is not None)


def fit_of(
    seen: Examination, model: ParametricMDP, design: SamplingDesign, ordered: bool = True, is_log: bool = True
) -> results.ModelFit:
    """The record of an examination: what it says of a model, for results about the same data."""
    by_rows = replace(seen, findings=tuple(one for one in seen.findings if one.by_counts is None))
    needs_order = (ordered or seen.rows > 0) and not by_rows.refutes_in_any_order(model)
    doubts = [one for one in (design.ends, *([design.order] if needs_order else [])) if not one.holds]
    nominal = (*design.censored, *(f"{one.name}: {one.why}" for one in doubts))
    nominal += () if seen.doubtful_columns is None else (seen.doubtful_columns,)
    shown = (one for one in seen.findings if one.log_e_value > 0.0 or one.by_counts is not None)
    suspects = sorted((one.anomaly for one in shown), key=lambda one: -one.log_evidence)[:SHOWN]
    alpha, first, (events, log_e) = seen.alpha, seen.first_alarm, seen.looks[-1]
    tested = seen.rows if is_log else None
    if is_untested := bool(seen.untested) and not seen.rows:
        verdict, text, log_e = results.UNTESTED, f"{results.UNTESTED}: {seen.untested}", 0.0
    else:
        verdict = results.CONTRADICTED if seen.alarm else results.GROWING if seen.is_doubt else results.FITS
        how = "" if ordered else " of counts without order"
        rate = f"a correct model reaches {1.0 / alpha:,.0f} with probability at most {alpha:g}"
        if nominal:
            rate += ", nominally: data are missing, or their order or ends or a column are not known"
        when = "" if first is None else f", alarm after {first:,}"
        if tested is not None:
            how += ", all rows tested" if tested >= events else f", {tested:,} rows tested"
        is_named = seen.alarm and suspects and suspects[0].kind in results.DEPENDENT
        what = f"{suspects[0].text}; " if is_named else ""
        power = results.power_text(log_e)
        text = f"{verdict}: {what}e-value {power} after {events:,} events{how}{when} ({rate})"
    return results.ModelFit(
        verdict=verdict,
        alarm=seen.alarm,
        e_value=math.inf if log_e > 700.0 else math.exp(log_e),
        log_e_value=log_e,
        alpha=alpha,
        events=events,
        first_alarm=first,
        ordered=ordered,
        nominal=nominal,
        text=text,
        looks=() if is_untested else tuple(results.Look(*look) for look in seen.looks),
        suspects=tuple(suspects),
        rows_tested=tested,
    )


def cost_finding(
    problem: Problem, log: EpisodeLog, alpha: float, bounds: tuple[float, float] | None
) -> Finding | None:
    """Compare costs with the reward in question: number by number, or means where `bounds` are stated."""
    reward = asked_reward(problem)
    wanted = {COST, *HABITS[COST], *(() if reward is None else problem.model.structure.rewards)}
    name = next(
        (one for one in log.columns if one.lower() in wanted and log.columns[one].values is not None), ""
    )
    if reward is None or not name:
        return None
    structure, values = problem.model.structure, log.columns[name].values
    assert values is not None
    seen = np.isfinite(values)
    choice, cost = log.choice(structure)[seen], values[seen]
    expected = reward.per_choice(structure)[choice]
    apart = np.abs(cost - expected)
    first = cost[np.unique(choice, return_index=True)[1]][np.unique(choice, return_inverse=True)[1]]
    if (cost == first).all():
        wrong = apart > 1e-6 * np.maximum(1.0, np.abs(expected))
        log_e = math.inf if wrong.any() else -math.inf
    elif bounds is None:
        return None
    else:
        each = mean_evidence(cost, expected, choice.astype(np.int32), bounds)
        logs = np.array(list(each.values()))
        log_e = bet_on_all(logs, structure.choices)
        wrong = choice == list(each)[int(np.argmax(logs))]
    if log_e < math.log(1.0 / alpha):
        return None
    at = int(choice[wrong][0])
    here = choice == at
    text = (
        f"{structure.choice_name(at)} costs {cost[here].mean():.6g} in column '{name}' ({int(here.sum()):,} "
        f"rows), and the model says {expected[here][0]:.6g}"
    )
    contexts = tuple(dict.fromkeys(choice[wrong].tolist()))
    return Finding("cost", f"cost:{name}", text, log_e, contexts=contexts, effect=float(apart.mean()))


def asked_reward(problem: Problem) -> RewardStructure | None:
    """The reward of numbers that a question is about."""
    objective = problem.query.plain_objective if isinstance(problem.model, ParametricMDP) else None
    reward = None if objective is None else objective.reward
    if reward is None or isinstance(reward, ParametricReward):
        return None
    return next((one for one in problem.model.structure.rewards.values() if one is reward), None)
