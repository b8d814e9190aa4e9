"""`doctor`: test a model against a log, measure what each finding does to the answer, and propose fixes.

The log is tested row by row with one budget (`tightrope.monitoring.examination`). Each finding gets the
smallest revision that removes it (`learning.amendments`), which is tested and answers the question. Findings
are ranked by the change of the answer, those with an unrefuted revised model first.

A revised answer is nominal unless selection is paid for: `select_on=0.5` learns from clusters that did not
choose; `select_by="e-values"` uses all data at δ/K for K possible revisions, which are then made everywhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack, cast

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.episode_log import EpisodeLog
from tightrope.errors import CannotCertify, InputError, check_keywords, describe
from tightrope.io.results import Breakdown, Interval, power_text
from tightrope.learning import amendments as fixes
from tightrope.learning.amendments import amend
from tightrope.learning.groups import MANY, Groups, learn_groups
from tightrope.learning.learn import learn, refuse_others
from tightrope.learning.options import DEFAULTS, LearnKwargs, LearnOptions, silent, spell_out
from tightrope.learning.options import with_selection as with_origin
from tightrope.learning.outcomes import ObservedOutcomes, Unobserved
from tightrope.learning.pipeline import Pipeline, Serves, Settled, counts_of
from tightrope.learning.rate_doctor import Division, DoctorTerms, PhasedRates, RateAnswers, SplitRates
from tightrope.learning.rates import RateResult
from tightrope.learning.result import LearningResult
from tightrope.learning.robustness import breakdown
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.monitoring import examination
from tightrope.monitoring.examination import Examination, Finding, examine, is_planned
from tightrope.monitoring.features import is_key, list_features
from tightrope.numerics.arrays import BoolArray
from tightrope.numerics.record import Facts, Record
from tightrope.problem import Problem, learnable, require_model
from tightrope.provenance import NAMED, union
from tightrope.solver.solve import solve
from tightrope.statistics.costs import checked_range
from tightrope.statistics.outcomes import Outcomes
from tightrope.verdict import Assessment, Assumed, AssumptionStatus, Word

ALPHA = 0.001
SECONDS = 60.0
"""For all amendments together, where nobody says."""

NOT_AMENDED = {
    "drift": "the parameters change; `watch` shows when, and `since` excludes earlier rows",
    "serial": "outcomes depend on those before them; no amendment of the model says how",
    "copy": "leave the copies out of the log",
    "excluded": "the model gives it probability 0: write the transition into the model",
}


@dataclass(frozen=True, eq=False, repr=False)
class AmendedAnswer(Record):
    """The answer on a revised model, its data, and the cost of choosing it.

    `counts` are the data of the revised model (None in continuous time); `examination` tests it on these.
    """

    amended: fixes.Amended | SplitRates | PhasedRates
    selection: Assumed
    examination: Examination
    result: LearningResult | RateResult | None
    counts: Counts | None = None
    groups: Groups | None = None
    """With `groups=COLUMN` the answers for each group; there is no single result then."""
    values: Assumed | None = None
    """With `split=COLUMN` that a value which the log does not have does not occur."""

    @property
    def e_value(self) -> float:
        """The evidence against the amended model."""
        return fixes.e_value_of(self.examination.log_e_value)

    @property
    def value(self) -> Interval | None:
        """The answer; of groups what holds for every one."""
        if self.groups is not None:
            return self.groups.every
        return None if self.result is None else self.result.interval

    @property
    def delta(self) -> float | None:
        """The level of the answer."""
        if self.groups is not None:
            return self.groups.delta
        return None if self.result is None else self.result.ledger.delta

    @property
    def verdict(self) -> Assessment:
        """That of the result, with the selection among its assumptions."""
        result = self.result if self.groups is None else self.groups
        own = Assessment.of(()) if result is None else result.verdict
        known = own.given(self.selection)
        if isinstance(self.result, RateResult):  # which has the same test
            return known
        known = known if self.values is None else known.given(self.values)
        return _assess(self.examination, self.counts, self.amended.model, known)

    def _title_(self) -> str:
        return f"AmendedAnswer: {self.amended.amendment.text}"

    def _facts_(self) -> Facts:
        value = "not asked" if self.value is None else f"{self.value}"
        return [("verdict", self.verdict.word.value), ("value", value), (fixes.SELECTION, self.selection.why)]


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Record):
    """The result of `doctor`: the verdict, and findings by their effect on the answer.

    * `result`: the answer, with observed returns beside it; None without a question.
    * `value`: the interval of the unrevised model alone, `estimate` its value at the best fit.
    * `amended`: the answer on the revised model; `breakdown`: the breakdown point; `outcomes`: episodes
      alone.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(500, seed=1)
    >>> tr.doctor(bench.problem, data, sets="tied").findings
    ()
    """

    model: ParametricMDP | ParametricCTMC
    examination: Examination
    findings: tuple[fixes.Diagnosed, ...]
    counts: Counts | None
    result: LearningResult | RateResult | None = None
    estimate: float | None = None
    amended: AmendedAnswer | None = None
    selection: str = ""

    @property
    def verdict(self) -> Assessment:
        """What the answer on the model as it is is worth."""
        if isinstance(self.result, RateResult):  # which has the same test
            return self.result.verdict
        known = Assessment.of(()) if self.result is None else self.result.verdict
        if self.result is None and self.counts is not None:
            known = Assessment.of((self.counts.design.order, self.counts.design.ends))
        wrong = [one.finding.text for one in self.findings if one.finding.kind == "cost"]
        if (
            wrong
            and known.word in (Word.PROVED, Word.NOMINAL)
            and all(one.name != "costs" or one.holds for one in known.assumptions)
        ):
            known = Assessment.of((*known.assumptions, Assumed.violated("costs", wrong[0])))
        return _assess(self.examination, self.counts, self.model, known)

    @property
    def value(self) -> Interval | None:
        """The answer of the model as it is alone, without what episodes returned."""
        if self.result is None:
            return None
        seen = self.outcomes if isinstance(self.outcomes, ObservedOutcomes) else None
        return self.result.interval if seen is None or seen.model is None else seen.model

    @property
    def outcomes(self) -> ObservedOutcomes | Unobserved | None:
        """The same value from episodes alone, where the log carries it."""
        return None if self.result is None else self.result.outcomes

    @cached_property
    def breakdown(self) -> Breakdown | None:
        """The largest misfit under which the guarantee holds; None where there is no guarantee."""
        if not isinstance(self.result, LearningResult) or not math.isfinite(self.result.guarantee):
            return None
        return breakdown(self.result)

    @property
    def e_value(self) -> float:
        """The evidence against the model, of all tests together."""
        return fixes.e_value_of(self.examination.log_e_value)

    @property
    def unit(self) -> str | None:
        """The first column of the findings that names blocks of episodes, for `learn --unit`, or None."""
        if self.counts is None or self.counts.log is None:
            return None
        log, names = self.counts.log(), (one.finding.feature for one in self.findings)
        return next((name.partition(":")[2] for name in names if is_key(name, log)), None)

    def headline(self) -> str:
        """Return the verdict in one line."""
        if self.result is not None and self.verdict.word is not Word.CONTRADICTED:
            return self.result.headline()
        return self.verdict.headline("no evidence against the model", proved="NO ALARM")

    def _title_(self) -> str:
        return f"Diagnosis: {self.headline()}"

    def _facts_(self) -> Facts:
        return [(one.finding.kind, one.finding.text) for one in self.findings]


def _assess(
    found: Examination, counts: Counts | None, model: ParametricMDP | ParametricCTMC, known: Assessment
) -> Assessment:
    """The verdict on an examined model: an alarm refutes where its level holds, and is a doubt elsewhere."""
    if not found.is_doubt or known.word is Word.CONTRADICTED:
        return known
    worst = f" Worst: {found.findings[0].text}." if found.findings else ""
    why = (
        f"e-value {power_text(found.log_e_value)} after {found.rows:,} rows; "
        f"a correct model reaches {1.0 / found.alpha:,.0f} with probability at most {found.alpha:g}.{worst}"
    )
    others = tuple(one for one in known.assumptions if one.name != "model")
    if not found.alarm:
        growing = Assumed.unverified("model", f"evidence against it is growing: {why}")
        return Assessment.of((*others, growing), limit=known.why if known.word is Word.LIMIT else None)
    why = f"the data contradict the model: {why}"
    sure = found.doubtful_columns is None
    if counts is not None and isinstance(model, ParametricMDP):
        design = counts.design
        ordered = design.order.holds or found.refutes_in_any_order(model)
        sure = sure and design.ends.holds and ordered and not design.censored
    if found.log_e_value == math.inf or sure:
        return Assessment.of(known.assumptions, contradicted=why)
    nominal = found.doubtful_columns or "order or ends of the data are not known"
    doubt = Assumed.violated("model", f"{why} That level is nominal: {nominal}")
    return Assessment.of((*others, doubt))


class DoctorKwargs(LearnKwargs, total=False):
    """How the choice of a revision is paid for (`Division`), and the options of `learn`."""

    select_on: float | None
    select_by: str | None
    cluster: str | None
    seed: int


@spell_out({**vars(Division()), **DEFAULTS})
def doctor(
    problem: object,
    data: object,
    *,
    delta: float = 0.001,
    alpha: float = ALPHA,
    amend: str | fixes.Amendment | None = None,
    progress: Callable[[str], None] | None = None,
    **words: Unpack[DoctorKwargs],
) -> Diagnosis:
    """Test a model against a log, measure the effect of each finding, and propose fixes.

    Parameters
    ----------
    problem : Problem
        Or a model alone: then findings are ranked by their evidence.
    data, delta, progress, **options
        As for `learn`; `seconds` limits the time for all revisions together.
    alpha : float
        The probability of a false alarm, of all tests together.
    amend : str, optional
        Also answer on the revised model: "memory=prev", "split=COLUMN", "groups=COLUMN", "untie", "free", or
        "auto" for the revision with the largest effect; rates: "rates=since-entry", "since-start", "clock",
        "prev" or "column:NAME", and "untie".
    select_on, cluster, seed
        The share of the log (of the units in the column `cluster`, else of the episodes) that is tested; the
        revised answer is learned from the rest. `seed` divides them.
    select_by : str, optional
        "e-values": test and learn on all data, at δ divided by the number of possible revisions.

    Returns
    -------
    Diagnosis or RateDiagnosis
        The latter for a chain in continuous time.

    Examples
    --------
    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(500, seed=1)
    >>> found = tr.doctor(bench.problem, data, sets="tied")
    >>> found.verdict.word.value, len(found.findings)
    ('proved', 0)
    """
    question, model = _subject(problem)
    tell = progress or silent
    wanted = fixes.Amendment.of(amend) if isinstance(amend, str) and amend != fixes.AUTO else amend
    options = check_keywords("doctor", DoctorKwargs, words, ("delta", "alpha", "amend"))
    division = Division(**{name: options.pop(name) for name in vars(Division()) if name in options})
    terms = DoctorTerms(question, delta, alpha, cast(LearnKwargs, options), tell)
    case: _Answers | RateAnswers
    if isinstance(model, ParametricCTMC):
        case = RateAnswers(terms, model, data, division)
    else:
        case = _Answers(terms, model, data, division)
    tell("examine")
    found = case.examine()
    result: LearningResult | RateResult | None = None
    estimate = None
    if question is not None:
        tell("learn")
        result, estimate = case.learn()
    level = 0.5 * math.log(1.0 / alpha)
    listed = [one for one in found.findings if one.weighed >= level][: fixes.MOST] + case.costs()
    findings = [case.diagnose(one, estimate, len(listed) - place) for place, one in enumerate(listed)]
    findings.sort(key=fixes.rank)
    answer = None
    if wanted is not None:
        picked = fixes.pick(findings) if wanted == fixes.AUTO else wanted
        assert isinstance(picked, fixes.Amendment)
        answer = AmendedAnswer(*case.answer(picked, wanted == fixes.AUTO))
    why = case.selection.why
    return Diagnosis(model, found, tuple(findings), case.counts, result, estimate, answer, why)


def _subject(problem: object) -> tuple[Problem | None, ParametricMDP | ParametricCTMC]:
    """The question, where there is one, and the model that data speak of."""
    question = problem if isinstance(problem, Problem) else None
    model = question.base if question is not None else require_model(problem)
    if not isinstance(model, ParametricMDP | ParametricCTMC):
        raise InputError(
            f"`doctor` examines models with parameters or unconstrained distributions, not {describe(model)}"
        )
    if question is not None and isinstance(model, ParametricMDP):
        refuse_others(question.query)
    return question, model


def _rows(counts: Counts) -> EpisodeLog:
    if counts.log is None:
        raise InputError(
            "`doctor` needs the rows of a log; counts do not record the order of events",
            hint="give the log itself, one row per step",
        )
    log: EpisodeLog = counts.log()
    if len(log) == 0:
        raise InputError("the log holds no steps")
    return log


# --- costs ---------------------------------------------------------------------------------


def with_costs(problem: Problem, log: EpisodeLog, amendment: fixes.Amendment) -> fixes.Amended:
    """The reward that is asked for as the log has it, where it has one number for every choice."""
    model = problem.model
    assert isinstance(model, ParametricMDP)
    structure, column = model.structure, log.columns.get(amendment.feature)
    reward = examination.asked_reward(problem)
    if reward is None or column is None or column.values is None or problem.query.file is None:
        raise InputError(
            f"`{amendment.text}`: the property asks for no reward without parameters, or the log has no "
            "such column of numbers"
        )
    choice, values = log.choice(structure), column.values
    seen = np.isfinite(values)
    least, most = (np.full(structure.choices, end) for end in (math.inf, -math.inf))
    np.minimum.at(least, choice[seen], values[seen])
    np.maximum.at(most, choice[seen], values[seen])
    if (least < most).any():
        raise InputError(
            f"`{amendment.text}`: costs of {structure.choice_name(int(np.argmax(least < most)))} differ",
            hint="make the reward a parameter of the model: `learn` takes it from a column `cost`",
        )
    earned = np.where(least == most, most, reward.per_choice(structure))
    name = next(name for name, one in structure.rewards.items() if one is reward)
    rewards = {**structure.rewards, name: RewardStructure(None, earned)}
    changed = ParametricMDP(
        replace(structure, rewards=rewards), model.expression, model.expressions, model.parameters
    )
    product = fixes.itself(structure)
    rows = replace(log, model_hash=changed.hash())
    question = Problem(changed, problem.query.on(changed.structure))
    claims = f"rewards are what column '{amendment.feature}' says"
    return fixes.Amended(amendment, question, rows, product, ("",), claims, structure)


# --- selection -----------------------------------------------------------------------------


def _divide(log: EpisodeLog, division: Division) -> tuple[EpisodeLog, EpisodeLog, Assumed]:
    """The part to choose on, the part to learn from, and what is said about it."""
    select_on, select_by, cluster = division.select_on, division.select_by, division.cluster
    if select_by not in (None, "e-values"):
        raise InputError(f"`select_by` is {select_by!r}, not 'e-values'")
    if select_on is not None and select_by is not None:
        raise InputError("`select_on` and `select_by` both correct for the selection of a model: give one")
    if select_by is not None:
        return (
            log,
            log,
            Assumed.derived(fixes.SELECTION, "a union bound accounts for the selection of the revision"),
        )
    if select_on is None:
        if cluster is not None:
            raise InputError("`cluster` requires `select_on`: it names the units that `select_on` divides")
        return log, log, fixes.UNPAID
    unit, what = np.arange(log.episodes), "episodes"
    if cluster is not None:
        unit, what = fixes.unit_column(log, cluster)[1].astype(np.int64), f"values of '{cluster}'"
    names, place = np.unique(unit, return_inverse=True)
    picked, selection = fixes.divide(len(names), select_on, division.seed, what)
    mask: BoolArray = picked[place]
    return log.subset(mask), log.subset(~mask), selection


# --- answers on amended models -------------------------------------------------------------


class _Answers:
    """Answers the same question on amended models, within a time limit."""

    def __init__(self, terms: DoctorTerms, model: ParametricMDP, data: object, division: Division):
        question, delta, alpha, options, tell = terms
        self.bounds = options.get("cost_range")
        if (
            question is not None
            and self.bounds is not None
            and examination.asked_reward(question) is not None
        ):
            self.bounds = checked_range(self.bounds)
            del options["cost_range"]  # of costs whose means are numbers it is for their test alone
        self.counts = with_origin(counts_of(data, model), model)
        log = _rows(self.counts)
        if self.counts.model_hash != model.hash():
            raise InputError("the counts belong to another model (their model hash differs)")
        self.log, self.learned, self.selection = _divide(log, division)
        self.tables = examination.tables_of(self.counts) if self.log is log and log.rows_left_out else None
        self.planned = is_planned(self.counts.design) and division.cluster is None
        self.model, self.question = model, question
        self.seen: ObservedOutcomes | None = None
        self.problem = Problem(model, NOTHING) if question is None else question
        self.alpha, self.delta, self.options, self.tell = alpha, delta, options, tell
        self.end = time.perf_counter() + options.get("seconds", SECONDS)

    def examine(self) -> Examination:
        """What the part of the log to choose on, or tables of all rows, say against the model."""
        if self.tables is None:
            counts = self.log.counts(self.model, self.counts.design)
            return examine(self.model, self.log, alpha=self.alpha, counts=counts, planned=self.planned)
        held = examination.earliest_rows(lambda: self.log, self.tables, len(self.log))
        return examine(self.model, held, alpha=self.alpha, counts=self.counts, tables=self.tables)

    def learn(self) -> tuple[LearningResult, float | None]:
        """The answer on the model as it is, and its value at the best fit."""
        result = learn(self.problem, self.counts, delta=self.delta, **self.options)
        assert isinstance(result, LearningResult)
        self.seen = result.seen
        return result, self.at_best_fit(self.problem, self.log.counts(self.model, self.counts.design))

    def costs(self) -> list[Finding]:
        """Whether the costs of the log are those that are asked for."""
        finding = None
        if self.question is not None:
            finding = examination.cost_finding(self.question, self.log, self.alpha, self.bounds)
        return [] if finding is None else [finding]

    def diagnose(self, finding: Finding, estimate: float | None, left: int) -> fixes.Diagnosed:
        """The smallest amendment that removes a finding, and the answer with it."""
        candidates, why = self._candidates(finding)
        made: fixes.Diagnosed | None = None
        for change in candidates:
            share = max(self.end - time.perf_counter(), 0.0) / max(left, 1)
            if share < 0.05:
                why = "the time was over"
                break
            self.tell(f"amend: {change.text}")
            try:
                made, is_left = self._follow(finding, change, estimate, share)
            except (InputError, CannotCertify) as error:
                why = error.message if isinstance(error, InputError) else str(error).partition("\n")[0]
                continue
            if not is_left:
                break
        if made is None and finding.kind == "unit" and self.seen is not None:
            return fixes.Diagnosed(finding, value=self.seen.interval, why=why)
        return made or fixes.Diagnosed(finding, why=why)

    def _candidates(self, finding: Finding) -> tuple[list[fixes.Amendment], str]:
        """Amendments that drop the assumption, the smallest first, or why there is none."""
        rest = finding.feature.partition(":")[2]
        at = finding.contexts or None
        if finding.kind == "memory":
            return [fixes.Amendment("memory", finding.feature, choices) for choices in (at, None)], ""
        if finding.kind == "column" or (finding.kind == "unit" and rest in self.log.columns):
            splits = [fixes.Amendment("split", rest, choices) for choices in (at, None)]
            return [*splits, fixes.Amendment("groups", rest)], ""
        if finding.kind == "unit":
            return [], "episodes differ, and no column explains it; the observed returns still hold"
        if finding.kind in ("tie", "expression"):
            choices = self._named(finding)
            if choices and finding.kind == "tie":
                return [fixes.Amendment("untie", "", choices), fixes.Amendment("untie")], ""
            return [fixes.Amendment("free", "", choices or None)], ""
        if finding.kind == "cost":
            return [fixes.Amendment("costs", rest)], ""
        return [], NOT_AMENDED.get(finding.kind, "no amendment is known")

    def _named(self, finding: Finding) -> tuple[int, ...]:
        """The choices that a finding by counts speaks of: those with the distribution of the one it names."""
        if finding.contexts:
            return finding.contexts
        shown = {one.context.removeprefix("as in ") for one in finding.cells}
        structure = self.model.structure
        named = [c for c in range(structure.choices) if structure.choice_name(c) in shown]
        if finding.kind == "tie" or not named:
            return tuple(named)
        signature = self.model.signatures.of_choice
        return tuple(np.flatnonzero(signature == signature[named[0]]).tolist())

    def _follow(
        self, finding: Finding, change: fixes.Amendment, estimate: float | None, seconds: float
    ) -> tuple[fixes.Diagnosed, bool]:
        """What an amendment does, and whether the amended model shows the same departure still."""
        if change.kind == "groups":
            groups = self._groups(change, self.log, self.delta, seconds)
            value = groups.average if self.question is not None else None
            middle = None if value is None else 0.5 * (value.lower + value.upper)
            effect = None if estimate is None or middle is None else middle - estimate
            after, alarm = groups.examination.log_e_value, groups.examination.alarm
            return fixes.Diagnosed(finding, change, value, middle, effect, after, not alarm), alarm
        made = self._amend(self.log, change)
        counts = made.counts(self.counts)
        again = examine(made.model, made.log, alpha=self.alpha, counts=counts)
        what = finding.kind, finding.feature
        is_left = any((one.kind, one.feature) == what for one in again.refuting)
        value = best = effect = None
        if self.question is not None:
            alone: LearnKwargs = {**self._words(made.model, seconds), "outcomes": "none"}
            result = self._learn(made, replace(counts, log=None), again, self.delta, alone)
            value, best = result.interval, self.at_best_fit(made.problem, counts)
            effect = None if estimate is None or best is None else best - estimate
        alarm = again.alarm
        return fixes.Diagnosed(finding, change, value, best, effect, again.log_e_value, not alarm), is_left

    def _learn(
        self, made: fixes.Amended, counts: Counts, tested: Examination, delta: float, words: LearnKwargs
    ) -> LearningResult:
        """The answer on an amended model that is tested already."""
        options = LearnOptions.of("learn", words)
        settled = Settled(fit=examination.fit_of(tested, made.model, counts.design))
        problem = learnable(made.problem)
        chain = Pipeline.start(
            problem, counts, delta, options=options, settled=settled, serves=Serves.REFINED
        )
        return chain.result(options)

    def _groups(self, change: fixes.Amendment, log: EpisodeLog, delta: float, seconds: float) -> Groups:
        words: LearnKwargs = {**self.options, "seconds": seconds}
        return learn_groups(self.problem, log, self.counts, change.feature, delta, words)

    def _amend(self, log: EpisodeLog, change: fixes.Amendment, least: int = fixes.LEAST) -> fixes.Amended:
        if change.kind == "costs":
            return with_costs(self.problem, log, change)
        if change.kind == "groups":  # what is asked may be anything: the draw of the split is no step of it
            made = amend(Problem(self.model, NOTHING), log, fixes.Amendment("split", change.feature), 0)
            claims = f"every value of '{change.feature}' has parameters of its own, which learn from others"
            return replace(made, amendment=change, claims=claims)
        return amend(self.problem, log, change, least)

    def _origin(self, made: fixes.Amended, log: EpisodeLog, least: int) -> tuple[str, ...]:
        """Which rows chose the amendment, and in which successors or values of a split were seen."""
        base = self.model.structure
        other = made if log is self.log else self._amend(self.log, made.amendment, least)
        one, two = (replace(each.log, names=None).provenance(each.model.structure) for each in (made, other))
        seen = self.counts.provenance if log is self.log else self.log.provenance(base)
        chosen = union([base.made_from, seen, two])
        draws = made.amendment.kind in ("split", "groups")
        named = union([base.named_from, one, two]) if draws or base.named_from is not None else None
        lines = () if chosen is None else (chosen.comment(),)
        return lines if named is None else (*lines, named.comment(NAMED))

    def _words(self, model: ParametricMDP, seconds: float) -> LearnKwargs:
        """The options of `learn`; models with many unknown probabilities are answered over tied sets."""
        words: LearnKwargs = {**self.options, "seconds": seconds}
        if len(model.parameters) > MANY and "sets" not in words and "region" not in words:
            words["sets"] = "tied"
        return words

    def answer(self, change: fixes.Amendment, is_chosen: bool) -> tuple[object, ...]:
        """The fields of the answer on an amended model, from the part of the log to learn from."""
        log, selection = self.learned, self.selection
        if not is_chosen and selection.kept is AssumptionStatus.NO:
            selection = fixes.UNKNOWN
        delta, least = self.delta, fixes.LEAST
        if selection.kept is AssumptionStatus.YES and log is self.log:
            possible = max(len(_possible(self.model, log)), 1)
            delta, least, change = self.delta / possible, 0, replace(change, choices=None)
            why = f"the amendment is one of {possible} that could have been chosen, and each has δ/{possible}"
            selection = Assumed.derived(fixes.SELECTION, why)
        self.tell(f"learn: {change.text}")
        made = self._amend(log, change, least)
        made = replace(made, origin=lambda: self._origin(made, log, least))
        counts = made.counts(self.counts)
        if change.kind == "groups":
            left = max(self.end - time.perf_counter(), 5.0)
            groups = self._groups(change, log, delta, left)
            return made, selection, groups.examination, None, counts, groups
        values = None
        if change.kind == "split":
            why = f"a value of '{change.feature}' that the log does not have does not occur"
            values = Assumed(
                "values", AssumptionStatus.UNKNOWN if is_chosen else AssumptionStatus.STATED, why
            )
        tested = examine(made.model, made.log, alpha=self.alpha, counts=counts)
        result = None
        if self.question is not None:
            left = max(self.end - time.perf_counter(), 5.0)
            result = self._learn(made, counts, tested, delta, self._words(made.model, left))
        return made, selection, tested, result, counts, None, values

    def at_best_fit(self, problem: Problem, counts: Counts) -> float | None:
        """The value at the parameters that fit best: for comparison, no bound."""
        if not problem.query.is_plain or not isinstance(problem.model, ParametricMDP):
            return None
        if isinstance(problem.objective.reward, ParametricReward):
            return None
        fitted = Outcomes.of(problem.model).fitted(counts)
        solution = solve(problem.with_model(fitted), precision=1e-4, seconds=10.0)
        middle = 0.5 * sum(solution.bounds)
        return middle if math.isfinite(middle) else None


NOTHING = 'P=? [ F "init" ]'
"""What is asked where nothing is."""


def _possible(model: ParametricMDP, log: EpisodeLog) -> list[str]:
    """All amendments that a log could have led to."""
    features = [one.name for one in list_features(model, log) if one.kind in ("memory", "column")]
    return [*features, *(f"groups={name}" for name in log.columns), "untie", "free"]
