"""Two logs and the same question: what changed from one version of a process to the next, looked at any time.

Run k of the version before is paired with run k of the version after. For an outcome X in [0, C] the
differences D_k = X_k(after) − X_k(before) lie in [−C, C] and have the mean difference d, given all earlier
pairs. So Π (1 + λ(D_k − m)) is a supermartingale for every m ≥ d and λ < 1/(C + m), as is a mixture over λ;
by Ville's inequality it exceeds 2/δ for some number of pairs with probability at most δ/2. The values of m
where it does not, and those of −D, are an interval that contains d at all numbers of pairs simultaneously
(Waudby-Smith and Ramdas 2024). The mixture (`STAKES`) is made for differences of about 10 points.

**Steps.** For any function h of states a run telescopes: h(last) − h(first) = Σ_s G_s, with G_s the sum of
h(s') − h(s) over its visits to s. The mean of G_s(after) − G_s(before) is the contribution of s, and the
contributions add up to the change of success. If h is the chance of success before, it is the performance
difference lemma: visits after times the loss per visit. h is estimated from the first `PILOT` runs before,
which the contributions do not use. Each G_s is clipped to [−1, 1]. All contributions hold simultaneously.

**Units.** Runs of one task are not independent. With a column of units a pair is a unit that both logs have,
and X its mean: the difference for the average unit. More runs change these means, so the bounds hold for logs
whose size was fixed in advance, not at all times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from scipy.special import ndtri, xlogy

from tightrope.data.counts import Counts
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.fit_tables import CountTable
from tightrope.data.read_options import LogReadOptions
from tightrope.data.reading import read_tables
from tightrope.errors import InputError
from tightrope.fleet.tolerance import all_have_a_unit
from tightrope.io.answers import StepFacts
from tightrope.io.coding import Real, record_of
from tightrope.io.results import Interval, Judged
from tightrope.io.table.data_table import DataTable
from tightrope.io.table.files import open_tables
from tightrope.learning.draft import draft_tables
from tightrope.learning.groups import units_in
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import END, START, Structure
from tightrope.monitoring.copies import weigh_repeated
from tightrope.monitoring.episode_scores import Episodes, PathRules
from tightrope.monitoring.examination import ALPHA
from tightrope.monitoring.features import is_key
from tightrope.monitoring.urns import weigh_counts
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import bound_text, interval_text, number_text, sure_text
from tightrope.problem import Problem
from tightrope.provenance import FEW, Overlap
from tightrope.statistics.confidence_budget import assumed_of
from tightrope.statistics.estimates import IntervalMethod, check_delta
from tightrope.statistics.returns import Stakes, Tally, lower_mean
from tightrope.verdict import Assessment, Assumed, Word

STAKES: Stakes = (
    *((0.0016, 0.01), (0.0063, 0.01), (0.025, 0.02), (0.05, 0.03)),
    *((0.1, 0.08), (0.2, 0.5), (0.4, 0.3), (0.8, 0.05)),
)
"""(fraction, weight) of the bets: half of the wealth bets as is best for 0.7 against 0.6."""

GAP, POWER, MORE = 0.1, 0.9, 1.3
"""A comparison may stop after `MORE` times the pairs of a z-test with this power for a change of `GAP`. It
proves the change within these pairs with probability 0.85 (`benchmarks/version_comparison.py`)."""

PILOT = 40
"""Runs before that estimate the chance of success from every state."""

ALARM = 1_000
"""The e-value at which the order of runs refutes that they are independent."""

MOST_STATES, MOST_OUTCOMES = 2_000, 3
"""States of a chain whose steps have contributions, and outcomes of a step that are listed."""

SUCCESS = 'P=? [ F "success" ]'
"""What is asked of two logs if nothing else is."""

RUNS = Assumed.stated(
    "runs", "runs are independent draws of their version, and their order does not depend on how they ended"
)
UNITS = Assumed.stated(
    "units",
    "units are independent draws from one population, and how many runs they have was fixed in advance",
)

COPIES = Assumed.unverified(
    "separate logs",
    "more runs are equal than chance explains, so they may be copies: leave these out",
)
SAME_RUNS = "both logs have the same runs"


class ChangeFacts(msgspec.Struct, kw_only=True):
    """One quantity before and after, and bounds on the difference after − before."""

    name: str
    before: Real
    after: Real
    interval: Interval


class VersionsAnswer(Judged, kw_only=True):
    """`compare --before --after`: success, cost, and the contributions of steps, the worst first."""

    headline: str
    question: str
    success: ChangeFacts
    cost: ChangeFacts | None
    steps: list[ChangeFacts]
    runs: tuple[int, int]
    undecided: tuple[int, int]
    pairs: int
    proved_after: int | None
    stop_after: int | None
    unit: str | None
    delta: float
    margin: float | None


@dataclass(frozen=True, eq=False, repr=False)
class VersionChange(Record):
    """One quantity in both versions: frequencies or means, and bounds on the difference after − before."""

    name: str
    before: float
    after: float
    interval: Interval

    @property
    def text(self) -> str:
        """What is certain of the difference, in words."""
        low, high = self.interval.lower, self.interval.upper
        values = f"({number_text(self.before)} before, {number_text(self.after)} after)"
        if low > 0.0:
            return f"{self.name} rose by at least {bound_text(low, True)} {values}"
        if high < 0.0:
            return f"{self.name} fell by at least {bound_text(-high, True)} {values}"
        return f"{self.name} changed by {interval_text(low, high)} {values}"


@dataclass(frozen=True, eq=False, repr=False)
class VersionComparison(Record):
    """What changed between two versions, at any time that the logs are looked at.

    `success`, `cost` and all `steps` together hold with confidence 1 − `delta` each. `runs` are those of both
    logs, `undecided` those without an end, `pairs` those that were compared; after `proved_after`
    a difference was known. After `stop_after` pairs more are worth it for changes below `GAP` only.
    `margin` is what success may fall by; None if that was not asked.
    """

    question: str
    success: VersionChange
    cost: VersionChange | None
    steps: tuple[VersionChange, ...]
    runs: tuple[int, int]
    undecided: tuple[int, int]
    pairs: int
    proved_after: int | None
    stop_after: int | None
    unit: str | None
    delta: float
    margin: float | None
    why_no_steps: str
    verdict: Assessment

    def headline(self) -> str:
        """The first line of the answer."""
        claim = self.success.text
        if self.margin is not None:
            bound = bound_text(self.margin, False)
            if self.verdict.word is Word.CONTRADICTED:
                return f"{self.verdict.word.name}: {claim}, more than {bound}"
            if self.verdict.word is Word.LIMIT:
                return f"{self.verdict.word.name}: {claim}, {sure_text(self.delta)}"
            if self.success.interval.lower >= -self.margin:
                claim = f"success fell by at most {bound} {claim[claim.index('(') :]}"
        return self.verdict.headline(claim, sure_text(self.delta))

    @property
    def lost(self) -> list[VersionChange]:
        """The steps, those that lose most first."""
        return sorted(self.steps, key=lambda one: (one.after - one.before, one.name))

    def record(self) -> VersionsAnswer:
        """What is written of it."""
        changes = [one and record_of(ChangeFacts, one) for one in (self.success, self.cost)]
        return record_of(
            VersionsAnswer,
            self,
            headline=self.headline(),
            success=changes[0],
            cost=changes[1],
            steps=[record_of(ChangeFacts, one) for one in self.lost],
        )

    def rows(self) -> list[tuple[str, object]]:
        """What is printed."""
        pairs = f"{self.pairs:,} pairs" if self.unit is None else f"{self.pairs:,} units by '{self.unit}'"
        proved = "" if self.proved_after is None else f"; a difference was proved after {self.proved_after:,}"
        sure = sure_text(self.delta)
        shown = [one for one in self.lost if not one.interval.lower <= 0.0 <= one.interval.upper]
        rows: list[tuple[str, object]] = [
            ("question", self.question),
            ("change", f"success {self.success.interval}{', time-uniform' if self.unit is None else ''}"),
            ("runs", f"{self.runs[0]:,} before, {self.runs[1]:,} after, compared in {pairs}{proved}"),
            ("stop", self._stop_text()),
            ("undecided", self._undecided_text()),
            ("cost", self.cost and f"{self.cost.text}, {sure}"),
            *(("step", f"{one.name}: {one.interval}") for one in shown[:4]),
        ]
        if not shown:
            why = f"no change of a single step is proved, {sure}" if self.steps else self.why_no_steps
            rows.append(("step", why))
        return rows

    def _stop_text(self) -> str | None:
        if self.stop_after is None or self.proved_after is not None or self.margin is not None:
            return None
        return f"after {self.stop_after:,} pairs, unless changes below {GAP:.0%} matter (rule of thumb)"

    def _undecided_text(self) -> str | None:
        open_ones = zip(self.undecided, ("before", "after"), strict=True)
        parts = [f"{number:,} {when}" for number, when in open_ones if number]
        return f"runs without an end: {', '.join(parts)}; they count both ways" if parts else None

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The columns and rows of all steps."""
        texts: list[tuple[str, ...]] = [
            (one.name, number_text(round(one.after - one.before, 9), 3), str(one.interval))
            for one in self.lost
        ]
        return ("step", "contribution", "bounds"), texts

    def _title_(self) -> str:
        return f"VersionComparison: {self.headline()}"

    def _facts_(self) -> Facts:
        return [(label, str(value)) for label, value in self.rows() if value is not None]


def compare_versions(
    before: object,
    after: object,
    question: Problem | str = SUCCESS,
    *,
    unit: str | None = None,
    cost: tuple[str, float] | None = None,
    margin: float | None = None,
    delta: float = 0.05,
    options: LogReadOptions | None = None,
) -> VersionComparison:
    """Bound what changed between two logs of one process: success, cost and each step's contribution.

    Parameters
    ----------
    before, after
        Logs, as for `read_data`. Without `unit` the bounds are time-uniform, so `after` may still grow.
    question : Problem or str
        A property of the states that the logs have; or a model that both logs fit, and a property of it.
    unit : str, optional
        The column of units (tasks). Then the means of units are compared, not single runs.
    cost : (str, float), optional
        A column of costs per row, and the largest cost of a run that counts: higher ones count as that.
    margin : float, optional
        What success may fall by: the verdict is `proved` if it falls by at most that.
    delta : float
        The probability with which each of the answers may fail.

    Returns
    -------
    VersionComparison
        With `success`, `cost` and `steps`, each a difference after − before.

    Examples
    --------
    >>> import pandas as pd
    >>> def log(good):
    ...     rows = [(i, "start", "success" if i % 10 < good else "failure", True) for i in range(300)]
    ...     return pd.DataFrame(rows, columns=["episode", "state", "next_state", "terminated"])
    >>> compare_versions(log(9), log(6)).headline()
    'PROVED: success fell by at least 0.22272 (0.9 before, 0.6 after), confidence 0.95'
    """
    check_delta(delta)
    if margin is not None and not 0.0 <= margin < 1.0:
        raise InputError(f"`margin` is {margin}, not a fall of success from 0 to 1")
    options = (LogReadOptions() if options is None else options).resolved()
    tables = open_tables(before), open_tables(after)
    files = [{table.file.path for table in own if table.file is not None} for own in tables]
    if before is after or files[0] & files[1]:
        raise InputError(SAME_RUNS, hint="name the runs of each version once")
    problem = _drafted([*tables[0], *tables[1]], options, question) if isinstance(question, str) else question
    model = problem.model
    if not isinstance(model, ParametricMDP) or problem.lift is not None or not problem.query.is_plain:
        raise InputError("two logs are compared in discrete time, by a question without memory")
    readings = [read_tables(own, model, options) for own in tables]
    versions = [_Version.of(problem, one.counts, unit, cost, one.rows) for one in readings]
    doubts = [COPIES] if _have_copies([one.counts for one in readings]) else []
    if unit is None and (column := _other_mix(versions)) is not None:
        words = (
            f"success depends on '{column}', whose values differ between the logs: compare by `unit`, or "
            "leave the column out with `ignored` if it says how runs ended"
        )
        doubts.append(Assumed.violated("same runs", words))
    versions[0] = replace(versions[0], assumed=(*versions[0].assumed, *doubts))
    return _compare(problem, (versions[0], versions[1]), cost and cost[1], margin, delta)


def _have_copies(counts: Sequence[Counts]) -> bool:
    """Whether runs may stand in both logs, or twice in one; logs that are known to be equal are refused."""
    shared = counts[0].provenance.overlap(counts[1].provenance)
    if shared is Overlap.SAME:
        raise InputError(SAME_RUNS, hint="if the logs only happen to be equal, name the runs differently")
    logs = [one.log() for one in counts if one.log]
    is_repeated = any(weigh_repeated(log).log_e >= math.log(1.0 / ALPHA) for log in logs)
    return is_repeated or shared is Overlap.PART or _more_equal_between(logs)


def _more_equal_between(logs: Sequence[EpisodeLog]) -> bool:
    """Whether runs of one log are equal to one of the other more often than to another one of their own.

    For independent runs the opposite is expected, since Σ (p − q)(f(p) − f(q)) ≥ 0 over what a run can be, f
    rising with the probability that one log or the other has such a run.
    """
    seen = []
    for log in logs:
        order, start = log.by_episode()
        rows = log.transition[order]
        cuts = zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
        seen.append(Counter(rows[a:b].tobytes() for a, b in cuts))
    excess = 0.0
    for log, own, other in zip(logs, seen, reversed(seen), strict=True):
        equal = sum(number * ((run in other) - (number > 1)) for run, number in own.items())
        excess += equal / max(log.episodes, 1)
    return excess > FEW


def _other_mix(versions: Sequence[_Version]) -> str | None:
    """A column of runs that has other values in one log than in the other, where success depends on it."""
    shared = [name for name in versions[0].labels if name in versions[1].labels]
    for name in shared:
        held = [one.labels[name] for one in versions]
        place = {label: number for number, label in enumerate(dict.fromkeys(held[0][0] + held[1][0]))}
        codes = [np.array([*map(place.get, labels), len(place)])[code] for labels, code in held]
        log = np.repeat([0, 1], [len(one) for one in versions])
        differs = _evidence(log, np.concatenate(codes), len(place) + 1)
        depends = -math.inf
        for one, own in zip(versions, codes, strict=True):
            low, high = one.score
            depends = max(depends, _evidence(own[low == high], low[low == high] > 0.5, 2))
        if min(differs, depends) >= math.log(ALARM * len(shared)):
            return name
    return None


def _evidence(value: AnyArray, outcome: AnyArray, outcomes: int) -> float:
    """The logarithm of an e-value against outcomes that do not depend on a value."""
    table = CountTable.of(value, outcome)
    return weigh_counts(table, np.zeros(outcomes, np.int32), np.array([outcomes]), units=True)[0]


def _compare(
    problem: Problem,
    versions: tuple[_Version, _Version],
    most: float | None,
    margin: float | None,
    delta: float,
) -> VersionComparison:
    """All differences of two versions; `most`: the largest cost of a run."""
    first, second = versions
    shared = _shared(first, second)
    scores = [one.paired(one.score, shared) for one in versions]
    success = _difference("success", scores, 1.0, delta)
    spent = None
    if most is not None:
        costs = [(one.cost, np.where(one.is_open, most, one.cost)) for one in versions]
        ends = [one.paired(cost, shared) for one, cost in zip(versions, costs, strict=True)]
        spent = _difference("cost", ends, most, delta)
    steps, why = _contributions(first, second, shared, problem, delta)
    of_runs = _runs_of(versions) if shared is None else UNITS
    assumed = list(dict.fromkeys([of_runs, *first.assumed, *second.assumed]))
    size = min(map(len, versions)) if shared is None else len(shared)
    (low_before, high_before), (low_after, high_after) = [(low[:size], high[:size]) for low, high in scores]
    return VersionComparison(
        problem.text,
        success,
        spent,
        steps,
        (len(first), len(second)),
        (int(first.is_open.sum()), int(second.is_open.sum())),
        size,
        first_proof(low_after - high_before, high_after - low_before, delta) if shared is None else None,
        most_pairs(success.before, delta) if shared is None and size else None,
        first.column,
        delta,
        margin,
        why,
        _verdict(assumed, success, size, margin, delta),
    )


def _runs_of(versions: Sequence[_Version]) -> Assumed:
    """The assumption about runs, violated if a log refutes it."""
    for when, one in zip(("before", "after"), versions, strict=True):
        low, high = one.score
        evidence = order_evidence(low[low == high] > 0.5)
        if evidence >= math.log(ALARM):
            number = f"e-value 10^{evidence / math.log(10.0):.0f}, alarm at {ALARM:,}"
            why = f"the order of the runs {when} depends on how they ended"
            return Assumed.violated("runs", f"{why} ({number})")
    return RUNS


def order_evidence(won: BoolArray) -> float:
    """The logarithm of an e-value against runs that are independent draws with one chance of success.

    The bet predicts a run by the latter half of the runs before it; what it is compared with is the
    likelihood at the frequency of all runs, which is no less than that at the true chance.

    >>> order_evidence(np.arange(200) < 100) > 50.0, order_evidence(np.arange(200) % 2 == 0) < 0.0
    (True, True)
    """
    runs = np.arange(len(won))
    wins = np.r_[0, np.cumsum(won)]
    chance = (wins[runs] - wins[runs // 2] + 0.5) / (runs - runs // 2 + 1.0)
    bet = np.log(np.where(won, chance, 1.0 - chance)).sum()
    least = np.array([wins[-1], len(won) - wins[-1]], dtype=np.float64)
    return float(bet - xlogy(least, least / max(len(won), 1)).sum())


def _drafted(tables: Sequence[DataTable], options: LogReadOptions, question: str) -> Problem:
    """The question about the states that the logs have."""
    drafted = draft_tables(tables, replace(options, observers=()), (), None, 0)
    labels = drafted.model.structure.labels
    if question == SUCCESS and "success" not in labels:
        names = ", ".join(f'"{name}"' for name in labels if not name.startswith("elsewhere"))
        raise InputError(
            "no state of the logs is called 'success'",
            hint=f"name what is asked with --prop 'P=? [ F \"…\" ]'; the logs have the labels {names}",
        )
    structure = replace(drafted.model.structure, rewards={})  # a column of costs is one of the log
    question = question.replace("P=?", "Pmax=?") if structure.has_choices else question
    result: Problem = replace(drafted.model, structure=structure).problem(question)
    return result


@dataclass(frozen=True)
class _Version:
    """The runs of one log in order: what each returned (low, high) and cost, its unit, what columns of words
    say of it (`labels`: names, and which of them; −1 is none) and its steps."""

    rules: PathRules
    episodes: Episodes
    score: tuple[FloatArray, FloatArray]
    cost: FloatArray
    column: str | None
    unit: OffsetArray
    units: tuple[str, ...]
    labels: Mapping[str, tuple[tuple[str, ...], IndexArray]]
    assumed: tuple[Assumed, ...]

    @staticmethod
    def of(
        problem: Problem,
        counts: Counts,
        unit: str | None = None,
        cost: tuple[str, float] | None = None,
        rows: int = 0,
    ) -> _Version:
        structure = problem.model.structure
        if counts.log is None:
            raise InputError("two versions are compared by their runs, and the data are counts")
        log = counts.log()
        if log.rows_left_out:
            raise InputError(f"the runs of a log are held in memory, at most {len(log):,} rows")
        if problem.objective.is_reward:
            raise InputError(
                "the question is about a reward", hint="ask P=? [ … ], and name a column of costs"
            )
        rules = PathRules.of(structure, problem.objective, np.ones(structure.choices, dtype=np.bool_))
        episodes = Episodes.of(structure, log.transition, log.previous, log.episode, log.episodes)
        scores = rules.score(episodes, np.ones(structure.choices))
        low, high = scores.low, scores.high
        if problem.objective.complement:
            low, high = 1.0 - high, 1.0 - low
        number, begin = np.unique(log.episode, return_index=True)
        number = number[log.state(structure)[begin] == structure.initial]
        if len(number) != len(low):
            raise InputError("the log has runs without rows", hint="leave them out of the log")
        none: tuple[list[str], OffsetArray] = [], np.zeros(log.episodes, dtype=np.int64)
        names, own = none if unit is None else units_in(log, unit)
        spent = np.zeros(log.episodes) if cost is None else _costs(log, structure, rows, *cost)
        assumed = assumed_of(IntervalMethod.BETA_BINOMIAL.assumption, counts.design, tied=False)
        assumed += all_have_a_unit(own, unit or "")
        units = unit, own[number], tuple(names)
        labels = {
            name: (column.labels, log.by_unit(name)[number])
            for name, column in log.columns.items()
            if (column.values is None or column.is_known) and is_key(f"column:{name}", log)
        }
        return _Version(rules, episodes, (low, high), spent[number], *units, labels, assumed)

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def is_open(self) -> BoolArray:
        """The runs of which the log does not say how they ended; they count both ways."""
        return self.score[0] < self.score[1]

    def paired(
        self, ends: tuple[FloatArray, FloatArray], shared: Sequence[str] | None
    ) -> tuple[FloatArray, FloatArray]:
        """What each run, or the mean run of each shared unit, has at least and at most."""
        if shared is None:
            return ends
        place = {name: number for number, name in enumerate(self.units)}
        chosen = [place[name] for name in shared]
        size = np.bincount(self.unit[self.unit >= 0], minlength=len(self.units))[chosen]
        inside = self.unit >= 0
        sums = [np.bincount(self.unit[inside], end[inside], len(self.units))[chosen] for end in ends]
        return sums[0] / size, sums[1] / size


def _shared(first: _Version, second: _Version) -> list[str] | None:
    """The units that both logs have, in order of name; None without units."""
    if first.column is None:
        return None
    there = [{one.units[number] for number in one.unit.tolist() if number >= 0} for one in (first, second)]
    shared = sorted(there[0] & there[1])
    if not shared:
        raise InputError(
            f"no value of '{first.column}' is in both logs", hint="run both versions on the same ones"
        )
    return shared


def _costs(log: EpisodeLog, structure: Structure, rows: int, column: str, most: float) -> FloatArray:
    """The cost of every episode, up to `most`; rows that say only where it begins and ends cost nothing."""
    if column not in log.columns or (values := log.columns[column].values) is None:
        there = ", ".join(name for name, one in log.columns.items() if one.values is not None) or "none"
        raise InputError(f"there is no column '{column}' of numbers", hint=f"columns of numbers: {there}")
    if not 0.0 < most < math.inf:
        raise InputError(f"the largest cost of a run is {most}, not above 0")
    real: BoolArray = np.ones(len(log), dtype=np.bool_)
    if len(log) != rows:
        labels, none = structure.labels, np.zeros(structure.states, dtype=np.bool_)
        real = ~labels.get(END, none)[structure.successor[log.transition]]
        real &= ~labels.get(START, none)[log.state(structure)] | (real.sum() == rows)
    paid = np.where(real, values, 0.0)
    if not np.all(paid >= 0.0):
        raise InputError(
            f"the column '{column}' has negative or missing costs", hint="write 0 where nothing is paid"
        )
    return np.minimum(np.bincount(log.episode, paid, log.episodes), most)


def _difference(
    name: str, ends: Sequence[tuple[FloatArray, FloatArray]], reach: float, delta: float
) -> VersionChange:
    """The difference of what both versions return between their ends, within 0 and `reach`; pair by pair."""
    means = [float(0.5 * (low + high).mean()) if len(low) else math.nan for low, high in ends]
    (low_before, high_before), (low_after, high_after) = ends
    size = min(len(low_before), len(low_after))
    low, high = low_after[:size] - high_before[:size], high_after[:size] - low_before[:size]
    return VersionChange(name, means[0], means[1], difference_interval(low, high, reach, delta))


def difference_interval(low: FloatArray, high: FloatArray, reach: float, delta: float) -> Interval:
    """Bounds on the mean of differences within ±reach, of which each lies between its `low` and its `high`.

    >>> difference_interval(np.ones(20), np.ones(20), 1.0, 0.1).lower > 0.3
    True
    """
    slack = 1e-12 * reach
    least = Tally.of(low + reach - slack)
    most = Tally.of(reach - high - slack)
    if not least.number:
        return Interval.of(-reach, reach)
    lower = lower_mean(least, 0.5 * delta, None, STAKES) - reach
    upper = reach - lower_mean(most, 0.5 * delta, None, STAKES)
    return Interval.of(max(lower - slack, -reach), min(upper + slack, reach))


def most_pairs(before: float, delta: float) -> int:
    """After how many pairs to stop at the latest, where a change of `GAP` is the smallest that matters.

    >>> most_pairs(0.7, 0.05)
    614
    """
    after = before - GAP if before >= 0.5 else before + GAP
    variance = before * (1.0 - before) + after * (1.0 - after)
    level = float(ndtri(1.0 - 0.5 * delta) + ndtri(POWER))
    return int(MORE * variance * (level / GAP) ** 2)


def first_proof(low: FloatArray, high: FloatArray, delta: float) -> int | None:
    """After how many pairs a difference within [−1, 1] is first known not to be 0; None: it is not.

    >>> first_proof(np.full(50, 0.5), np.full(50, 0.5), 0.05)
    19
    """
    wealth = []
    for side in (low, -high):
        logs = [np.cumsum(np.log1p(share * side)) + math.log(weight) for share, weight in STAKES]
        wealth.append(np.logaddexp.reduce(logs, axis=0))
    proved = np.flatnonzero(np.maximum(*wealth) >= math.log(2.0 / delta) + 1e-9)
    return int(proved[0]) + 1 if len(proved) else None


def _verdict(
    assumed: Sequence[Assumed], success: VersionChange, pairs: int, margin: float | None, delta: float
) -> Assessment:
    """What the answer is worth; with a margin, whether it is decided."""
    known = Assessment.of(assumed)
    if margin is None or not known.is_proved or success.interval.lower >= -margin:
        return known
    if success.interval.upper < -margin:
        fall = bound_text(-success.interval.upper, True)
        why = f"success fell by at least {fall}, more than the margin {bound_text(margin, False)}"
        return Assessment(Word.CONTRADICTED, tuple(assumed), why)
    gap = success.after - success.before + margin
    spread = success.before * (1.0 - success.before) + success.after * (1.0 - success.after)
    more = (
        math.ceil(2.0 * (math.log(2.0 / delta) + 1.0) * max(spread, 0.05) / gap**2) - pairs if gap else pairs
    )
    rough = f"about {max(more, 1):,} more pairs would decide it (rule of thumb)"
    why = f"{pairs:,} pairs do not decide whether success fell by more than {bound_text(margin, False)}"
    return Assessment(Word.LIMIT, tuple(assumed), f"{why}; {rough}")


def _contributions(
    first: _Version, second: _Version, shared: Sequence[str] | None, problem: Problem, delta: float
) -> tuple[tuple[VersionChange, ...], str]:
    """The contribution of each step, all at once; or why there are none."""
    structure = problem.model.structure
    size = PILOT if shared is None else max(len(shared) // 5, 1)
    pilot = np.arange(len(first)) < size
    if shared is not None:
        place = [first.units.index(name) for name in shared[:size]]
        pilot, shared = np.isin(first.unit, place), shared[size:]
    if structure.states > MOST_STATES or not pilot.any() or pilot.all() or shared == []:
        return (), f"contributions of steps take more than {PILOT} runs and at most {MOST_STATES:,} states"
    potential, seen = _potential(first, pilot, structure, problem.objective)
    gains = [_gains(one, potential, seen, structure) for one in (first, second)]
    names = [*(_state_name(structure, state) for state in np.flatnonzero(seen).tolist()), "other steps"]
    changes = []
    for number, name in enumerate(names):
        ends = []
        for one, gain in zip((first, second), gains, strict=True):
            own = gain.get(number, np.zeros(len(one)))
            if problem.objective.complement:
                own = -own
            low, high = one.paired((own, own), shared)
            ends.append((low[size:], high[size:]) if one is first and shared is None else (low, high))
        changes.append(_difference(name, ends, 2.0, delta / len(names)))
    return tuple(changes), ""


def step_losses(problem: Problem, counts: Counts) -> list[StepFacts]:
    """The steps of a chain by what their outcomes take from the chance of success in a run, worst first.

    These are estimates: h is the frequency of success from a state, and a step from s to t loses h(s) − h(t)
    where that is above 0.
    """
    structure, version = problem.model.structure, _Version.of(problem, counts)
    if structure.states > MOST_STATES or not len(version):
        return []
    potential, seen = _potential(version, np.ones(len(version), np.bool_), structure, problem.objective)
    rows = version.episodes.transition[version.rules.followed(version.episodes)[0]]
    source, successor = structure.choice_state[structure.transition_choice[rows]], structure.successor[rows]
    sign = -1.0 if problem.objective.complement else 1.0
    fall = np.maximum(sign * (potential[source] - potential[successor]), 0.0)
    lost = np.bincount(source, fall, structure.states) / len(version)
    visits = np.bincount(source, minlength=structure.states)
    made = []
    for state in np.flatnonzero(seen & (lost > 0.0)).tolist():
        after, number = np.unique(successor[source == state], return_counts=True)
        order = np.argsort(-number, kind="stable")[:MOST_OUTCOMES].tolist()
        texts = (f"{_state_name(structure, int(after[i]))} {number[i] / visits[state]:.1%}" for i in order)
        chance = float(potential[state] if sign > 0.0 else 1.0 - potential[state])
        name, often = _state_name(structure, state), float(visits[state]) / len(version)
        made.append(StepFacts(name, often, chance, float(lost[state]), ", ".join(texts)))
    return sorted(made, key=lambda one: (-one.loss, one.name))


def _potential(
    version: _Version, pilot: BoolArray, structure: Structure, objective: Objective
) -> tuple[FloatArray, BoolArray]:
    """(h, the states that the pilot's runs leave): the frequency of success from each state."""
    used = version.rules.followed(version.episodes)[0]
    run = np.cumsum(version.episodes.step == 0) - 1
    rows = version.episodes.transition[used & pilot[run]]
    source = structure.choice_state[structure.transition_choice[rows]].astype(np.int64)
    states = structure.states
    counts = np.zeros((states, states))
    np.add.at(counts, (source, structure.successor[rows]), 1.0)
    visits = counts.sum(axis=1)
    assert objective.target is not None
    target = objective.target
    seen: BoolArray = (visits > 0) & ~target
    result: FloatArray = np.full(states, float(np.mean(version.score[0][pilot])))
    closed = np.array([structure.is_closed(np.arange(states) == state) for state in range(states)])
    result[closed] = 0.0
    result[target] = 1.0
    inside = np.flatnonzero(seen)
    chance = counts[inside] / visits[inside, None]
    inner = np.eye(len(inside)) * (1.0 + 1e-9) - chance[:, inside]
    outside = chance @ np.where(seen, 0.0, result)
    result[inside] = np.clip(np.linalg.solve(inner, outside), 0.0, 1.0)
    return result, seen


def _gains(
    version: _Version, potential: FloatArray, seen: BoolArray, structure: Structure
) -> dict[int, FloatArray]:
    """What each step gains in every run, clipped to [−1, 1]; the last number stands for steps not seen."""
    used = version.rules.followed(version.episodes)[0]
    run = (np.cumsum(version.episodes.step == 0) - 1)[used]
    rows = version.episodes.transition[used]
    source = structure.choice_state[structure.transition_choice[rows]].astype(np.int64)
    gain = potential[structure.successor[rows]] - potential[source]
    number = np.where(seen[source], np.cumsum(seen)[source] - 1, int(seen.sum()))
    return {
        one: np.clip(np.bincount(run[number == one], gain[number == one], len(version)), -1.0, 1.0)
        for one in np.unique(number).tolist()
    }


def _state_name(structure: Structure, state: int) -> str:
    """What the log calls a state."""
    labels = (name for name, members in structure.labels.items() if members[state] and members.sum() == 1)
    return next((name for name in labels if name != "init"), structure.state_name(state))
