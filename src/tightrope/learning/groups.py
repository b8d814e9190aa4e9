"""Answers for every group of a log: separate parameters with partial pooling (`groups=COLUMN`).

Predictors of event intervals use the rows of all groups (`tightrope.statistics.pooling`). With probability at
least 1 − δ, if the set of groups was fixed before the outcomes: each V(g) is in [L(g), U(g)], the mean of V
is between the means of L and U. A new exchangeable unit is within the hull with probability at least 1 − δ −
2/(G + 1): the last of G + 1 exchangeable numbers is strictly extreme with probability at most 2/(G + 1).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign
from tightrope.data.episode_log import EpisodeLog
from tightrope.errors import InputError
from tightrope.io.results import Interval, ModelFit, power_text
from tightrope.learning.amendments import unit_column
from tightrope.learning.options import LearnKwargs, LearnOptions
from tightrope.learning.pipeline import DeltaSplit, Pipeline, Settled
from tightrope.learning.result import MODEL_RIGHT, LearningResult
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.examination import Examination
from tightrope.numerics.arrays import BoolArray, OffsetArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import interval_text
from tightrope.problem import Problem, learnable
from tightrope.statistics.estimates import EventIntervals, Events
from tightrope.statistics.intervals import beta_binomial
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.pooling import pooled_events
from tightrope.verdict import Assessment, Assumed, Word

MOST_GROUPS = 1_000
MANY = 12
"""Unknown probabilities from which on models are answered over tied sets, unless sets are named."""


@dataclass(frozen=True, eq=False, repr=False)
class GroupAnswer(Record):
    """What is known of one group: its value, and `alone` what its own rows would say at the same level."""

    name: str
    episodes: int
    rows: int
    result: LearningResult
    alone: Interval

    @property
    def value(self) -> Interval:
        return self.result.interval


@dataclass(frozen=True, eq=False, repr=False)
class Groups(Record):
    """Answers for all groups of a column, which hold together; the head of this module says of what.

    >>> import tightrope as tr
    >>> rows = [(0, "go", {0: tr.free, 1: tr.free}), (1, "", {1: 1})]
    >>> model = tr.build_from_rows(rows, labels={"end": [1]})
    >>> rows = [f"{i},{i % 2},0,go,{int(i % 4 < 2)}" for i in range(80)]
    >>> text = "\\n".join(["episode,site,state,action,next_state", *rows])
    >>> import io, pyarrow.csv as csv
    >>> log = csv.read_csv(io.BytesIO(text.encode()))
    >>> found = tr.doctor(model.problem('P=? [ F<=1 "end" ]'), log, delta=0.1, amend="groups=site")
    >>> [(one.name, one.episodes) for one in found.amended.groups.groups]
    [('0', 40), ('1', 40)]
    """

    column: str
    groups: tuple[GroupAnswer, ...]
    delta: float
    examination: Examination

    @property
    def every(self) -> Interval:
        """Within this lies the value of every group."""
        values = [one.value for one in self.groups]
        return Interval.of(min(one.lower for one in values), max(one.upper for one in values))

    @property
    def average(self) -> Interval:
        """The mean of the values of all groups, each counted once."""
        values = [one.value for one in self.groups]
        size = len(values)
        ends = math.fsum(one.lower for one in values) / size, math.fsum(one.upper for one in values) / size
        return Interval.of(math.nextafter(ends[0], -math.inf), math.nextafter(ends[1], math.inf))

    @property
    def new_unit(self) -> float:
        """The probability with which the value of a new, exchangeable unit lies in `every`, at least."""
        return max(1.0 - self.delta - 2.0 / (len(self.groups) + 1), 0.0)

    @property
    def verdict(self) -> Assessment:
        """What the answers are worth together."""
        worths = [one.result.verdict for one in self.groups]
        assumed = dict.fromkeys(one for worth in worths for one in worth.assumptions if one.name != "model")
        evidence = power_text(self.examination.log_e_value)
        stated = [
            Assumed.stated("model", f"{MODEL_RIGHT}, within each group; tested: e-value {evidence}"),
            Assumed.stated("groups", f"values of '{self.column}' do not depend on what happened"),
        ]
        limits = [worth.why for worth in worths if worth.word is Word.LIMIT]
        empty = [one.result.contradiction for one in self.groups if one.result.contradiction is not None]
        return Assessment.of((*assumed, *stated), contradicted=(*empty, None)[0], limit=(*limits, None)[0])

    def _title_(self) -> str:
        return f"Groups: {len(self.groups):,} values of '{self.column}'"

    def _facts_(self) -> Facts:
        return [(one.name, interval_text(one.value.lower, one.value.upper, 6)) for one in self.groups]


def _answer(
    problem: Problem,
    counts: Counts,
    delta: float,
    options: LearnOptions,
    given: EventIntervals,
    fit: ModelFit | None = None,
) -> LearningResult:
    settled = Settled(given=given, fit=fit)
    return Pipeline(problem, counts, DeltaSplit(delta), options=options, settled=settled).result(options)


def learn_groups(
    problem: Problem, log: EpisodeLog, counts: Counts, column: str, delta: float, words: LearnKwargs
) -> Groups:
    """The answer for every group of a log, sampled like `counts`; `words` are options of `learn`."""
    model = problem.model
    if not isinstance(model, ParametricMDP) or problem.lift is not None or not problem.query.is_plain:
        raise InputError(
            f"`groups={column}` requires a model in discrete time and a question without memory",
            hint="of chains in continuous time `rates=column:NAME` has a chain for each value",
        )
    if model.structure.elsewhere is not None:
        raise InputError(f"`groups={column}` does not support outcomes that were never seen (elsewhere)")
    names, unit = units_of(log, column)
    seconds = words.get("seconds", math.inf) / len(names)
    options = interval_options(model, {**words, "seconds": seconds}, column)
    events = Events.tie(Outcomes.of(model), options.budget)
    number, predictors = len(events) * len(names), f"all values of '{column}'"
    of_row = unit[log.episode]
    pooled = pooled_events(events, log, of_row, len(names), delta, number, predictors, counts.design)
    about, made = learnable(problem), []
    for group, (name, given) in enumerate(zip(names, pooled, strict=True)):
        own = log.subset(unit == group)
        of_group = own.counts(model, counts.design)
        result = _answer(about, of_group, delta, options, given)
        low, high = beta_binomial(given.successes, given.trials, given.ledger.gamma)
        alone = _answer(about, of_group, delta, options, replace(given, lower=low, upper=high), result.fit)
        made.append(GroupAnswer(name, own.episodes, len(own), result, alone.interval))
    return Groups(column, tuple(made), delta, _tested(made, len(log)))


def units_of(log: EpisodeLog, column: str) -> tuple[list[str], OffsetArray]:
    """The names of groups, and the number of that of each episode; episodes without a value are in none."""
    held, unit = unit_column(log, column, "a group is made of whole ones", "make it a variable of the model")
    values, number = np.unique(unit, return_inverse=True)
    names = [held.labels[value] for value in values.tolist() if value >= 0]
    if not 1 < len(names) <= MOST_GROUPS:
        raise InputError(
            f"`groups={column}` needs from 2 to {MOST_GROUPS:,} groups, and there are {len(names)}"
        )
    return names, number.astype(np.int64) - int(values[0] < 0)


def units_in(log: EpisodeLog, column: str) -> tuple[list[str], OffsetArray]:
    """The names of units, and the number of that of each episode; −1: it has none.

    Of nested units (`site/machine`) one inner unit represents each outer one: that with the smallest hash of
    its name, which knows nothing of outcomes. These are independent draws, as the outer ones are: a random
    inner unit of a random outer unit. Episodes of other inner units have the number −2.
    """
    outer, slash, inner = column.partition("/")
    if not slash or column in log.columns:
        return units_of(log, column)
    (names, above), (inner_names, below) = units_of(log, outer), units_of(log, inner)
    has_both = (above >= 0) & (below >= 0)
    chosen: dict[int, tuple[bytes, str, int]] = {}
    for a, b in set(zip(above[has_both].tolist(), below[has_both].tolist(), strict=True)):
        name = f"{names[a]}/{inner_names[b]}"
        mark = hashlib.sha256(name.encode()).digest(), name, b
        chosen[a] = min(chosen.get(a, mark), mark)
    number: OffsetArray = np.where(has_both, -2, -1).astype(np.int64)
    units = sorted(chosen.items())
    for place, (a, (_, _, b)) in enumerate(units):
        number[(above == a) & (below == b)] = place
    return [name for _, (_, name, _) in units], number


def second_half(names: list[str]) -> BoolArray:
    """Half of the units, by a hash of their names, which knows nothing of outcomes."""
    order = sorted(range(len(names)), key=lambda i: hashlib.sha256(names[i].encode()).digest())
    return np.isin(np.arange(len(names)), order[len(names) // 2 :])


def counts_of_unit(part: EpisodeLog, model: ParametricMDP, design: SamplingDesign) -> Counts:
    """The counts of one unit; the number of its episodes was planned where that of all was."""
    return part.counts(model, replace(design, planned=design.planned and part.episodes))


def interval_options(model: ParametricMDP, words: dict[str, object], column: str) -> LearnOptions:
    """Intervals of events, and sets that are made of them."""
    default = "tied" if len(model.parameters) > MANY else "rectangular"
    chosen = LearnOptions.of("learn", {"sets": default, **words})
    is_other = chosen.region is not None and not chosen.region.is_of_intervals
    if is_other or chosen.prior or chosen.cost_model is not None:
        raise InputError(
            f"`groups={column}` uses intervals of events, and no other region", hint="leave `region` out"
        )
    sets = chosen.sets
    assert sets is not None
    region = "polytope" if sets.has_region else None
    words = {**chosen.without_outcomes.words, "sets": sets, "region": region, "interval": "beta-binomial"}
    return LearnOptions.of("learn", words)


def _tested(groups: list[GroupAnswer], rows: int) -> Examination:
    """The test of the model in all groups: each has its part of α (changes are no e-values to average)."""
    tests = [one.result.fit for one in groups if one.result.fit is not None]
    alpha = tests[0].alpha
    total = max(one.log_e_value for one in tests) - math.log(len(groups))
    return Examination(
        (), total, alpha, rows if total >= math.log(1.0 / alpha) else None, rows, log_e_stated=total
    )
