"""What a log of units that differ promises: for most units, for the next one, and for the average one.

Each unit (machine, site, patient, task) has parameters of its own, drawn from one unknown population. Given a
policy, each unit has a bound on its value from its own rows, at the same miss probability for all units, and
the bounds of all units together give the three answers (`tightrope.fleet.tolerance` has the theorems).

* If the log shows the value itself (a chain, or episodes of the policy), units are bounded by their returns,
  otherwise by intervals of their events. Predictions for a unit use the units before it, in order of name.
* A policy that the log chooses is chosen on one half of the units, and bounded on the other half. The halves
  follow from the names.
* The average is that of independent numbers, one a unit: its mean return, or its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from tightrope.atomic import atomic_write
from tightrope.certify.certificate_file import CertificateFile, as_file, require_proved
from tightrope.certify.learned import certificate_of
from tightrope.certify.problem import first_difference
from tightrope.certify.solved import to_words
from tightrope.data.counts import Counts
from tightrope.data.episode_log import EpisodeLog
from tightrope.errors import CannotCertify, InputError
from tightrope.fleet import tolerance
from tightrope.fleet.versions import step_losses
from tightrope.io.answers import ANSWER_FILE, AnswerDocument, ProvedFacts, StepFacts
from tightrope.io.coding import record_of, to_text
from tightrope.io.results import Interval, Judged, LedgerFacts
from tightrope.learning.groups import counts_of_unit, interval_options, second_half, units_in
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnKwargs, LearnOptions, OutcomesUse
from tightrope.learning.outcomes import Observation, chosen_before, plan_observation
from tightrope.learning.pipeline import DeltaSplit, Pipeline, Serves, Settled, counts_of
from tightrope.learning.result import LearningResult
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.monitoring.episode_scores import Episodes, Scores
from tightrope.monitoring.units import refuted_within
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.machine import peak_memory
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import bound_text, interval_text, sure_text, text_below
from tightrope.problem import Problem, learnable, problem_of
from tightrope.statistics.confidence_budget import assumed_of
from tightrope.statistics.estimates import Events, IntervalMethod, check_delta, event_intervals
from tightrope.statistics.intervals import clopper_pearson, complement
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.pooling import pooled_events, pooled_intervals
from tightrope.statistics.returns import Tally, mean_interval
from tightrope.verdict import Assessment, Assumed, AssumptionStatus, Word
from tightrope_check.fleet import FleetCertificate, Unit, bounds_average
from tightrope_check.problem import Certificate

WORST = 3
"""Units that are printed."""

AVERAGE_MISS = 0.01
"""m where an average is bounded by bounds of units: each miss may cost the whole range of values."""

UNITS = Assumed.stated(
    "units",
    "units are independent draws from one population, and which of them are in the log does not depend on "
    "their values",
)
RUNS = Assumed.stated("runs", "the number of episodes of a unit does not depend on how they ended")


class UnitFacts(msgspec.Struct, kw_only=True):
    """One unit: each end fails with the probability `miss` of the answer at most."""

    unit: str
    episodes: int
    bounds: Interval


class FleetFacts(Judged, kw_only=True):
    """One of the three answers; no bounds where the data allow none."""

    text: str
    bounds: Interval | None


class FleetDocument(Judged, kw_only=True):
    """`learn --unit`."""

    unit: str
    delta: float
    share: float
    most: FleetFacts
    next_unit: FleetFacts
    average: FleetFacts
    units: list[UnitFacts]
    chosen_on: list[str]
    scenario: FleetFacts | None
    certificate: ProvedFacts | UnsetType = UNSET


@dataclass(frozen=True, eq=False, repr=False)
class UnitBound(Record):
    """Bounds on the value of one unit under the policy; each end may fail with probability `MISS`."""

    name: str
    episodes: int
    rows: int
    interval: Interval


@dataclass(frozen=True, eq=False, repr=False)
class FleetAnswer(Record):
    """One of the three answers: its bounds (None: the data allow none, `text` says why) and its verdict."""

    kind: str
    bounds: Interval | None
    text: str
    verdict: Assessment

    @property
    def headline(self) -> str:
        """The verdict and the bound in one line; no confidence where nothing is guaranteed."""
        if self.verdict.word in (Word.PROVED, Word.LIMIT):
            return f"{self.verdict.word.name}: {self.text}"
        return self.verdict.headline(self.text.partition(", confidence ")[0])

    def _title_(self) -> str:
        return f"FleetAnswer, {self.kind}: {self.verdict.word.value}, {self.text}"


@dataclass(frozen=True, eq=False, repr=False)
class Fleet(Record):
    """The answers for units that differ, each at its own level 1 − δ; the head of this module says of what.

    * `most`: with confidence 1 − δ, at least the share `share` of all units keeps this bound.
    * `next_unit`: the next unit keeps this bound with probability 1 − δ, or what its text says.
    * `average`: with confidence 1 − δ, the mean value over all units lies in this interval.

    `chosen_on` are the units that chose the policy, and are not among `units`. `scenario` bounds that policy
    by all units, at a δ of its own, for the share of units that the number of units behind it allows.
    """

    column: str
    units: tuple[UnitBound, ...]
    delta: float
    share: float
    maximises: bool
    policy: Policy | None
    chosen_on: tuple[str, ...]
    most: FleetAnswer
    next_unit: FleetAnswer
    average: FleetAnswer
    scenario: FleetAnswer | None
    source: _UnitBounds

    @property
    def verdict(self) -> Assessment:
        """The worst of the three."""
        return Assessment.worst([self.most.verdict, self.next_unit.verdict, self.average.verdict])

    def record(self) -> FleetDocument:
        """What is written of it."""
        units = [UnitFacts(unit=one.name, episodes=one.episodes, bounds=one.interval) for one in self.units]
        return record_of(FleetDocument, self, unit=self.column, units=units)

    def document(self, model: str) -> AnswerDocument:
        """The answer as a page shows it: the bound for most units, and the rest as notes."""
        problem, whole = self.source.problem, self.verdict
        lines = [f"units: δ = {self.delta:g} for each of the three answers; they do not hold simultaneously"]
        return AnswerDocument(
            **whole.facts,
            model=model,
            model_hash=problem.base.hash(),
            question=problem.query.text,
            headline=self.most.headline,
            sets=self.source.options.sets.value if self.source.options.sets else "tied",
            ledger=LedgerFacts(self.delta, all(one.holds for one in whole.assumptions), lines),
            status="close" if whole.is_proved else "limit",
            notes=[f"{name}: {text}" for name, text in self.rows()],
            peak_memory=peak_memory(),
            seconds={},
            steps=self.steps,
        )

    @cached_property
    def steps(self) -> list[StepFacts]:
        """The steps that lose most of the chance of success, estimated from all runs, if these show it."""
        seen, objective = self.source.observation, self.source.problem.objective
        is_chain = seen is not None and not objective.is_reward
        return step_losses(self.source.problem, self.source.counts) if is_chain else []

    @property
    def worst(self) -> list[UnitBound]:
        """The units, the worst first."""
        last = not self.maximises
        return sorted(self.units, key=lambda one: (sum(one.interval), one.name), reverse=last)

    def rows(self) -> list[tuple[str, object]]:
        """What is printed below the first line."""
        episodes = sum(one.episodes for one in self.units)
        chosen = f"; the policy was chosen on {len(self.chosen_on):,} others" if self.chosen_on else ""
        shown = (f"{one.name} {interval_text(one.interval.lower, one.interval.upper)}" for one in self.worst)
        beside = (self.next_unit, self.average, self.scenario)
        return [
            *((one.kind, one.headline) for one in beside if one is not None),
            ("units", f"{len(self.units):,} by '{self.column}', {episodes:,} episodes{chosen}"),
            ("worst", ", ".join(islice(shown, WORST))),
            ("loses most", ", ".join(f"{one.name} {one.loss:.1%} of runs" for one in self.steps[:WORST])),
        ]

    def certificate(self, about: Mapping[str, object] | None = None) -> FleetCertificate:
        """The certificate: each unit is bounded by its own rows alone, and the three answers follow.

        Raises
        ------
        CannotCertify
            If an answer is nominal, contradicted or without bounds, or a unit has no certificate.
        """
        broken = [one.verdict for one in (self.most, self.next_unit, self.average)]
        if why := [one.why for one in broken if one.word in (Word.NOMINAL, Word.CONTRADICTED)]:
            raise CannotCertify(f"no certificate is written: {why[0]}")
        source, names, number = self.source, [one.name for one in self.units], len(self.units)
        k, last = (
            tolerance.order_of_most(number, self.share, self.delta),
            max(tolerance.order_of_next(number, self.delta), 1),
        )
        if k == 0:
            raise CannotCertify(f"no certificate is written: {self.most.text}")
        units = source.certified(names, tolerance.MISS)
        by_events = source.observation is None and self.average.bounds is not None
        again = source.certified(names, AVERAGE_MISS) if by_events else []
        worst = (one.low if self.maximises else one.high for one, _ in units)
        ends = sorted(worst, reverse=not self.maximises)
        if not (math.isfinite(ends[k - 1]) and math.isfinite(ends[last - 1])):
            raise CannotCertify("no certificate is written: values of units have no finite bound")
        words = {**(about or {}), "column": self.column, "chosen on": len(self.chosen_on) or None}
        fleet = FleetCertificate(
            problem=replace(units[0][1].problem, data=None),
            claims=units[0][1].claims,
            values=(),
            delta=self.delta,
            share=self.share,
            unit=tuple(one for one, _ in units),
            again=tuple(one for one, _ in again),
            most=ends[k - 1],
            next_unit=ends[last - 1],
            chance=tolerance.chance_of_next(number, last),
            about=to_words(words),
        )
        for _, one in (*units, *again):
            if (differs := first_difference(fleet.problem, replace(one.problem, data=None))) is not None:
                raise CannotCertify(f"no certificate is written: units differ in '{differs}'")
        average = source.average(self.delta, [Interval.of(one.low, one.high) for one, _ in again] or None)
        for slack in (0.0, 1e-9, 1e-6, 1e-4):
            if average is None:
                break
            low = max(average[0] - slack * abs(average[0]), source.ends[0])
            high = min(average[1] + slack * abs(average[1]), source.ends[1])
            fleet = replace(fleet, low=low, high=high)
            if bounds_average(fleet, False) and bounds_average(fleet, True):
                return fleet
        return replace(fleet, low=None, high=None)

    def certify(self, path: str | Path, *, model: str = "") -> dict[str, Interval]:
        """Write the certificate, if the checker confirms it.

        Returns
        -------
        dict of str to Interval
            What it proves of most units, the next one and the average.
        """
        file, proved = self.certified_file(self.document(model))
        file.save(path)
        return proved

    def certified_file(
        self, about: AnswerDocument, verify: bool = True
    ) -> tuple[CertificateFile, dict[str, Interval]]:
        """The file of the certificate, and what it proves."""
        words = {"model": about.model, "model_hash": about.model_hash, "property": about.question}
        fleet = self.certificate(words)
        require_proved(fleet, verify)
        return as_file(fleet), {name: Interval.of(*ends) for name, ends in fleet.claimed.items()}

    def fill(self, folder: Path, record: FleetDocument, answer: AnswerDocument, beside: list[str]) -> None:
        """Write the documents and the policy into a directory."""
        answer.files = ["units.json", *beside, *(["policy.json"] if self.policy is not None else [])]
        if self.policy is not None:
            self.policy.save(folder / "policy.json", answer.model_hash)
        for name, content in (("units.json", record), (ANSWER_FILE, answer)):
            with atomic_write(folder / name) as target:
                target.write(to_text(content) + "\n")

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The columns and rows of all units."""
        texts: list[tuple[str, ...]] = [
            (one.name, f"{one.episodes:,}", interval_text(one.interval.lower, one.interval.upper))
            for one in self.worst
        ]
        return ("unit", "episodes", "bounds"), texts

    def _title_(self) -> str:
        return f"Fleet of {len(self.units):,} units by '{self.column}': {self.verdict.word.value}"

    def _facts_(self) -> Facts:
        return [(one.kind, one.text) for one in (self.most, self.next_unit, self.average)]


def learn_fleet(
    problem: Problem,
    data: object,
    unit: str,
    *,
    delta: float = 0.001,
    share: float = 0.9,
    policy: PolicyGiven | None = None,
    **options: Unpack[LearnKwargs],
) -> Fleet:
    """Learn what holds for most units, for the next unit and for the average unit of a fleet.

    Parameters
    ----------
    problem : Problem
        The model and the question. Each unit has parameters of its own.
    data
        A log whose rows name their units; as for `learn`.
    unit : str
        The column of units. It has no role in the model, and is the same in all rows of an episode. Nested
        units are `OUTER/INNER`, such as "site/machine": one machine represents each site.
    delta : float
        The probability with which each of the three answers may fail.
    share : float
        The share of all units for which `most` holds.
    policy : Policy, optional
        Bound this policy, which was chosen without these data. By default half of the units choose one, and
        the other half bounds it.
    **options
        Those of `learn`.

    Returns
    -------
    Fleet
        The answers `most`, `next_unit` and `average`, and the bounds of every unit.

    Raises
    ------
    InputError
        If the log has no such column, or the question is about continuous time or needs a memory.
    CannotCertify
        If the policy was made from these data.

    Examples
    --------
    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "run", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> problem = tr.build_from_rows(rows, parameters, labels={"ok": [1]}).problem('P=? [ F "ok" ]')
    >>> import pandas as pd, random
    >>> draw = random.Random(1).choice
    >>> runs = [(i, f"pump {i // 30}", 0, "run", draw([1, 1, 1, 1, 1, 1, 2])) for i in range(1200)]
    >>> log = pd.DataFrame(runs, columns=["episode", "pump", "state", "action", "next_state"])
    >>> fleet = tr.learn_fleet(problem, log, "pump", delta=0.1)
    >>> fleet.verdict.word.value, len(fleet.units), fleet.most.bounds.lower > 0.4
    ('proved', 40, True)
    """
    check_delta(delta)
    if not 0.0 < share < 1.0:
        raise InputError(f"`share` is {share}, not between 0 and 1")
    question, chosen = learnable(problem_of(problem)), LearnOptions.of("learn", options)
    model = question.model
    if not isinstance(model, ParametricMDP) or question.lift is not None or not question.query.is_plain:
        raise InputError("`unit` requires a model in discrete time and a question without memory")
    counts = counts_of(data, question.base)
    if counts.log is None:
        raise InputError("`unit` requires a log with episodes, and the data are counts")
    log = counts.log()
    if log.rows_left_out:
        raise InputError(f"`unit` holds all rows in memory, at most {len(log):,}")
    names, number_of = units_in(log, unit)
    log, number_of = log.subset(number_of > -2), number_of[number_of > -2]
    given = as_policy(model, policy)
    chosen_on: tuple[str, ...] = ()
    assumed: list[Assumed] = [UNITS, Assumed.stated("column", f"'{unit}' does not depend on what happened")]
    assumed += tolerance.all_have_a_unit(number_of, unit)
    bounding = np.ones(len(names), dtype=np.bool_)
    if given is not None:
        before = chosen_before(given, counts)
        if before.kept is AssumptionStatus.NO:
            raise CannotCertify(
                f"the policy was made from these units ({before.why})\nhint: leave the policy out: half of "
                "the units choose one, and the other half bounds it"
            )
        assumed.append(before)
    elif model.structure.choices > model.structure.states:
        bounding = second_half(names)
        choosing = np.append(~bounding, False)[number_of]  # episodes without a unit have number −1
        given = _choose(question, log.subset(choosing), counts, delta, chosen)
        chosen_on = tuple(name for name, one in zip(names, bounding, strict=True) if not one)
    order = sorted(np.flatnonzero(bounding).tolist(), key=lambda number: names[number])
    parts = [log.subset(number_of == number) for number in order]
    bounds = _UnitBounds(question, counts, parts, given, chosen, unit)
    if model.structure.elsewhere is not None and bounds.observation is None:
        raise InputError(
            "`unit` supports outcomes that were never seen (elsewhere) only if the log shows the returns",
            hint="draft a model without choices, or give the policy that collected the log",
        )
    units = tuple(
        UnitBound(names[number], part.episodes, len(part), interval)
        for number, part, interval in zip(order, parts, bounds.intervals(tolerance.MISS), strict=True)
    )
    word = _Promises(units, question.objective.maximises, delta, share, (*assumed, *bounds.assumptions))
    refuted, scenario = refuted_within(bounds.model, parts, counts, bounds.observation is not None), None
    most = word.most(refuted)
    if chosen_on and bounds.observation is None and refuted is None:
        every = sorted(range(len(names)), key=lambda number: names[number])
        hull, support = bounds.hull([log.subset(number_of == number) for number in every], tolerance.MISS)
        scenario = word.scenario(most.bounds, hull, support, len(names))
    return Fleet(
        unit,
        units,
        delta,
        share,
        question.objective.maximises,
        given,
        chosen_on,
        most,
        word.next_unit(refuted),
        word.average(bounds, refuted),
        scenario,
        bounds,
    )


def _choose(problem: Problem, log: EpisodeLog, counts: Counts, delta: float, options: LearnOptions) -> Policy:
    """The robust policy of some units together; what it is worth is found out on others."""
    chain = Pipeline.start(
        problem, log.counts(problem.base, counts.design), delta, options=options, serves=Serves.REFINED
    )
    return chain.result(options).robust.policy


class _UnitBounds:
    """Intervals of the value of every unit, in order of name, at any miss probability."""

    def __init__(
        self,
        problem: Problem,
        counts: Counts,
        parts: list[EpisodeLog],
        policy: Policy | None,
        options: LearnOptions,
        column: str,
    ):
        self.problem, self.counts, self.parts, self.policy = problem, counts, parts, policy
        model = problem.model
        assert isinstance(model, ParametricMDP)
        self.model, self.column, self.given = model, column, dict(options.words)
        self.options = interval_options(model, dict(options.words), column)
        self._together = sum(parts[1:], parts[0])
        plan = plan_observation(problem, counts, policy, options.behaviour, options.return_range, policy)
        is_seen = isinstance(plan, Observation) and plan.queues is None and not plan.is_weighted
        is_seen &= options.outcomes is not OutcomesUse.NONE
        self.observation = plan if is_seen and isinstance(plan, Observation) else None

    @property
    def assumptions(self) -> tuple[Assumed, ...]:
        """What the bound of each unit rests on."""
        design = self.counts.design
        if self.observation is not None:
            why = f"within a unit they are independent draws of {self.observation.whose}"
            need = assumed_of(IntervalMethod.BETA_BINOMIAL.assumption, design, tied=False)
            fixed = () if self.observation.planned is None else (RUNS,)
            return (*need, Assumed.stated("episodes", why), *fixed)
        need = assumed_of(IntervalMethod.BETA_BINOMIAL.assumption, design, tied=True, ordered=True)
        return (*need, Assumed.stated("model", "its structure and domain hold within each unit"))

    @cached_property
    def scores(self) -> list[Scores]:
        """The returns of the episodes of every unit."""
        seen = self.observation
        assert seen is not None
        base, made = self.problem.base.structure, []
        for part in self.parts:
            episodes = Episodes.of(base, part.transition, part.previous, part.episode, part.episodes)
            scores = seen.rules.score(episodes, seen.ratio)
            if np.any(scores.weight != 1.0):
                raise InputError("the log takes choices that the given policy never takes")
            made.append(scores)
        return made

    @property
    def ends(self) -> tuple[float, float]:
        """What values lie between."""
        if self.observation is not None:
            return self.observation.ends
        return (-math.inf, math.inf) if self.problem.objective.is_reward else (0.0, 1.0)

    def intervals(self, miss: float) -> list[Interval]:
        """Of each unit, given the units before it, with probability at least 1 − miss."""
        if self.observation is None:
            return self._of_events(miss)
        if self.problem.objective.is_reward:
            pairs = [_means(one.low, one.high, self.ends, miss) for one in self.scores]
            return [Interval.of(*pair) for pair in pairs]
        unit = np.repeat(np.arange(len(self.parts)), [len(one.low) for one in self.scores])
        event, sizes = np.zeros(len(unit), dtype=np.int64), (1, len(self.parts))
        sure = np.concatenate([one.low == 1.0 for one in self.scores])
        possible = np.concatenate([one.high > 0.0 for one in self.scores])
        if self.observation.planned is not None:  # numbers fixed in advance: each end alone fails at `miss`
            every = (np.bincount(unit, mask, sizes[1]) for mask in (sure, possible, None))
            least, most, trials = (number.astype(np.int64) for number in every)
            lower = clopper_pearson(least, trials, 2.0 * miss)[0]
            upper = clopper_pearson(most, trials, 2.0 * miss)[1]
        else:
            lower = pooled_intervals(event, unit, sure, sizes, miss)[2][0]
            upper = pooled_intervals(event, unit, possible, sizes, miss)[3][0]
        if self.problem.objective.complement:
            lower, upper = complement(lower, upper)
        return [Interval.of(float(low), float(high)) for low, high in zip(lower, upper, strict=True)]

    def average(self, delta: float, pairs: list[Interval] | None = None) -> tuple[float, float] | None:
        """Bounds on the mean value of all units, from mean returns or from bounds at `AVERAGE_MISS`."""
        (a, b), number = self.ends, len(self.parts)
        if self.observation is not None:
            low = np.array([one.low.mean() if len(one.low) else a for one in self.scores])
            high = np.array([one.high.mean() if len(one.high) else b for one in self.scores])
            slack = 1e-12 * max(abs(a), abs(b) if math.isfinite(b) else 1.0, 1.0)
            lower, upper = _means(low - slack, high + slack, (a, b), delta, number)
            if self.problem.objective.complement:
                lower, upper = map(float, complement(lower, upper))
            return lower, upper
        if not (math.isfinite(a) and math.isfinite(b)):
            return None
        pairs = pairs or self.intervals(AVERAGE_MISS)
        low, high = np.array([one.lower for one in pairs]), np.array([one.upper for one in pairs])
        lower, upper = _means(low, high, (a, b), delta, number)
        return max(a, lower - AVERAGE_MISS * (b - a)), min(b, upper + AVERAGE_MISS * (b - a))

    def certified(self, names: list[str], miss: float) -> list[tuple[Unit, Certificate]]:
        """Of each unit alone what a learned certificate proves, and that certificate."""
        if self.given.get("outcomes") is OutcomesUse.ONLY:
            raise InputError("a certificate also uses the model", hint='leave `outcomes="only"` out')
        words: dict[str, Any] = dict(self.options.words)
        if self.observation is not None:
            asked_for = ("outcomes", "behaviour", "return_range")
            words |= {
                "outcomes": OutcomesUse.AUTO,
                **{key: self.given[key] for key in asked_for if key in self.given},
            }
        made = []
        for name, part in zip(names, self.parts, strict=True):
            counts = counts_of_unit(part, self.model, self.counts.design)
            try:
                result = learn(self.problem, counts, delta=miss, policy=self.policy, **words)
                assert isinstance(result, LearningResult)
                own = certificate_of(result, counts)
            except CannotCertify as error:
                raise CannotCertify(f"unit {name}: {error}") from error
            at = max(range(len(own.claims)), key=lambda i: own.claims[i].name == "given policy")
            claim, hints, data = own.claims[at], own.values[at], own.problem.data
            assert data is not None and own.learned is not None
            unit = Unit(data, own.learned, claim.lower, claim.upper, hints, {"unit": name})
            made.append((unit, replace(own, claims=(claim,), values=(hints,))))
        return made

    def hull(self, parts: list[EpisodeLog], miss: float) -> tuple[Interval, int]:
        """The value over the hull of all units' boxes, and how many units determine that."""
        method, budget, design = IntervalMethod.BETA_BINOMIAL, self.options.budget, self.counts.design
        counted = [part.counts(self.model, design) for part in parts]
        boxes = [event_intervals(self.model, one, miss, method, budget) for one in counted]
        low, high = np.array([one.lower for one in boxes]), np.array([one.upper for one in boxes])
        support = {*np.argmin(low, axis=0).tolist(), *np.argmax(high, axis=0).tolist()}
        settled = Settled(given=replace(boxes[0], lower=low.min(axis=0), upper=high.max(axis=0)))
        split = DeltaSplit(miss)
        chain = Pipeline(
            self.problem, counted[0], split, options=self.options, policy=self.policy, settled=settled
        )
        return chain.evaluate(self.options).interval, len(support)

    def _of_events(self, miss: float) -> list[Interval]:
        """By intervals of events: predicted from the units before, as the rows stand unit by unit."""
        events = Events.tie(Outcomes.of(self.model), self.options.budget)
        unit = np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts])
        about = f"earlier values of '{self.column}'", self.counts.design
        pooled = pooled_events(events, self._together, unit, len(self.parts), miss, len(events), *about)
        policy, made = self.policy or Policy.uniform(self.model), []
        for part, given in zip(self.parts, pooled, strict=True):
            counted = part.counts(self.model, self.counts.design)
            split, settled = DeltaSplit(miss), Settled(given=given)
            chain = Pipeline(
                self.problem, counted, split, options=self.options, policy=policy, settled=settled
            )
            made.append(chain.evaluate(self.options).interval)
        return made


def _means(
    low: FloatArray, high: FloatArray, ends: tuple[float, float], delta: float, planned: int | None = None
) -> tuple[float, float]:
    """Bounds on the mean of independent numbers within `ends`; `planned`: how many, where that is fixed."""
    a, b = ends
    least = Tally.of(np.nextafter(np.maximum(low, a) - a, -np.inf))
    if not math.isfinite(b):
        return mean_interval(least, least, ends, delta, planned)
    most = Tally.of(np.nextafter(b - np.minimum(high, b), -np.inf))
    return mean_interval(least, most, ends, delta, planned)


def _percent(share: float) -> str:
    return f"{100.0 * share:.10g} %"


@dataclass(frozen=True)
class _Promises:
    """The three answers from the bounds of units."""

    units: tuple[UnitBound, ...]
    maximises: bool
    delta: float
    share: float
    assumed: tuple[Assumed, ...]

    def _kth(self, k: int) -> Interval:
        """The k-th worst bound, and nothing on the other side."""
        if self.maximises:
            return Interval.of(sorted(one.interval.lower for one in self.units)[k - 1], math.inf)
        return Interval.of(-math.inf, sorted(one.interval.upper for one in self.units)[-k])

    def _bound_text(self, bounds: Interval) -> str:
        if self.maximises:
            return f"at least {bound_text(bounds.lower, True)}"
        return f"at most {bound_text(bounds.upper, False)}"

    def _verdict(self, refuted: str | None, *more: Assumed, limit: str | None = None) -> Assessment:
        return Assessment.of(dict.fromkeys((*self.assumed, *more)), contradicted=refuted, limit=limit)

    def most(self, refuted: str | None) -> FleetAnswer:
        k = tolerance.order_of_most(len(self.units), self.share, self.delta)
        if k == 0:
            need = tolerance.units_for(self.share, self.delta)
            there = f"{len(self.units):,} units"
            text = f"{there} give no bound for {_percent(self.share)} of all units: it takes {need:,}"
            return FleetAnswer("most units", None, text, self._verdict(refuted, limit=text))
        bounds = self._kth(k)
        claim = f"{self._bound_text(bounds)} for {_percent(self.share)} of all units"
        return FleetAnswer("most units", bounds, f"{claim}, {sure_text(self.delta)}", self._verdict(refuted))

    def scenario(self, most: Interval | None, hull: Interval, support: int, number: int) -> FleetAnswer:
        """The bound by the hull of all units: whether it is narrower than that by half of them, and why."""
        bounds = Interval.of(*((hull.lower, math.inf) if self.maximises else (-math.inf, hull.upper)))
        part = max(0.0, 1.0 - tolerance.support_risk(number, support, self.delta) / (1.0 - tolerance.MISS))
        text = f"{self._bound_text(bounds)} for {text_below(100.0 * part)} % of all units"
        better = most is None or (bounds.lower > most.lower if self.maximises else bounds.upper < most.upper)
        word = "narrower" if better and part >= self.share else "wider"
        why = "a hull bounds the worst unit" if part >= self.share else "it holds for too few units"
        text = (
            f"{word} ({why}): {text}, {sure_text(self.delta)}; {support:,} of {number:,} units determine it"
        )
        return FleetAnswer("scenario", bounds, text, self._verdict(None))

    def next_unit(self, refuted: str | None) -> FleetAnswer:
        number = len(self.units)
        k = max(tolerance.order_of_next(number, self.delta), 1)
        chance = tolerance.chance_of_next(number, k)
        bounds = self._kth(k)
        text = f"{self._bound_text(bounds)} with probability {text_below(chance)}"
        limit = None
        if chance < 1.0 - self.delta:
            limit = f"{number:,} units allow a probability of {text_below(chance)} at most"
        return FleetAnswer("next unit", bounds, text, self._verdict(refuted, limit=limit))

    def average(self, bounds: _UnitBounds, refuted: str | None) -> FleetAnswer:
        ends = bounds.average(self.delta)
        if ends is None:
            text = "the range of values is not known, so no average is bounded"
            return FleetAnswer("average unit", None, text, self._verdict(refuted, limit=text))
        verdict = self._verdict(refuted) if bounds.observation is None else self._verdict(refuted, RUNS)
        text = f"in {interval_text(*ends)}, {sure_text(self.delta)}"
        return FleetAnswer("average unit", Interval.of(*ends), text, verdict)
