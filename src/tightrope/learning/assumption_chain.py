"""The chain of assumptions behind sets, from strongest to weakest: cost of each step, and refutations.

Each assumption of `ASSUMES` implies the next, so a refutation of one refutes all above it. Ties are tested
alone (`ties_refuted`): for an event with k_c of n_c visits at choice c

    E = Π_c ∫ p^k_c (1 − p)^(n_c − k_c) Beta(½, ½)(dp) / sup_p p^K (1 − p)^(N − K)

stays below 1/α with probability at least 1 − α if its probability is the same at all choices, under any
policy; so does the mean over events.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from tightrope.ambiguity.sets import SetsKind, tied, untied, widened
from tightrope.errors import InputError
from tightrope.io.results import Interval, ModelFit, power_text
from tightrope.learning.options import decide, silent
from tightrope.learning.policy_solver import PolicySolver
from tightrope.learning.products import require_support
from tightrope.monitoring.examination import ALPHA
from tightrope.numerics.record import Facts, Record
from tightrope.statistics.estimates import event_intervals

if TYPE_CHECKING:
    from tightrope.data.counts import Counts
    from tightrope.learning.result import LearningResult
    from tightrope.model.parametric_mdp import ParametricMDP

ASSUMES = {
    "expression": "probabilities are the model's expressions of one parameter vector",
    "tied": "equal expressions have equal probabilities, whatever these are",
    "untied": "every choice has one distribution, whatever it is",
    "per-unit": "every choice has one distribution in each unit",
}
BY_ALL = ("memory", "serial", "copy", "drift", "excluded")
"""What the weakest rung excludes as well."""

BY_POOLED = ("unit", "column")
"""What all but the last one exclude."""

POOLED = ("expression", "tied", "untied")

MOST_UNITS = 60


@dataclass(frozen=True, eq=False, repr=False)
class Rung(Record):
    """The interval of the policy most robust under an assumption, and its cost against the rung before."""

    name: str
    interval: Interval | None
    guarantee: float | None
    cost: float | None
    refuted: str | None

    @property
    def assumes(self) -> str:
        return ASSUMES[self.name]

    def _title_(self) -> str:
        shown = "" if self.guarantee is None else f": {self.guarantee:.6g}"
        return f"{self.name}{shown}, {'refuted' if self.refuted else 'not refuted'}"

    def _facts_(self) -> Facts:
        return [("assumes", self.assumes), *([("refuted", self.refuted)] if self.refuted else [])]


@dataclass(frozen=True, eq=False, repr=False)
class AssumptionChain(Record):
    """The rungs, strongest first. Each guarantee holds with its own confidence, if its assumption does.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).generative(1000, seed=1)
    >>> chain = tr.learn(bench.problem, data, delta=0.01).assumption_chain()
    >>> [rung.name for rung in chain.rungs], chain.needed.name
    (['expression', 'tied', 'untied'], 'expression')
    """

    rungs: tuple[Rung, ...]

    @property
    def needed(self) -> Rung | None:
        """The first rung that the data do not refute."""
        return next((rung for rung in self.rungs if rung.refuted is None), None)

    def _title_(self) -> str:
        needed = self.needed
        return f"AssumptionChain: {'all are refuted' if needed is None else f'{needed.name} is not refuted'}"

    def _facts_(self) -> Facts:
        return [(rung.name, rung._title_().partition(": ")[2] or rung._title_()) for rung in self.rungs]


def refuted_rungs(model: ParametricMDP, counts: Counts, fit: ModelFit | None) -> dict[str, str]:
    """Which rungs the data refute, each with the reason, at the level of the test of the model."""
    alpha = ALPHA if fit is None else fit.alpha
    found: dict[str, str] = {}
    if fit is not None and fit.alarm:
        worst = fit.suspects[0] if fit.suspects else None
        if worst is not None and worst.kind in (*BY_ALL, *BY_POOLED):
            found = dict.fromkeys(ASSUMES if worst.kind in BY_ALL else POOLED, worst.words)
        found.setdefault("expression", fit.text if worst is None else worst.words)
    evidence = ties_refuted(model, counts)
    for names, (log_e, words) in evidence.items():
        if log_e >= math.log(2 / alpha):
            for name in names:
                found.setdefault(name, f"{words} (e-value {power_text(log_e)})")
    return found


def ties_refuted(model: ParametricMDP, counts: Counts) -> dict[tuple[str, ...], tuple[float, str]]:
    """Log e-values against ties and numbers of the model, by the rungs that each refutes."""
    structure, table = model.structure, model.expressions
    choice = np.repeat(np.arange(model.choices), np.diff(model.transition_start))
    visits = np.bincount(choice, counts.transition, model.choices)
    key = choice.astype(np.int64) * len(table) + model.expression
    key = np.where(table.is_constant[model.expression], -1 - np.arange(model.transitions), key)
    _, first, place, times = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    seen, at, of = np.bincount(place, counts.transition, len(first)), choice[first], model.expression[first]
    met = (visits[at] > 0) & (np.diff(model.transition_start)[at] > 1)
    at, of, seen, times = at[met], of[met], seen[met], times[met]
    number = visits[at]
    mixed = gammaln(seen + 0.5) + gammaln(number - seen + 0.5) - gammaln(number + 1) - math.log(math.pi)
    result: dict[tuple[str, ...], tuple[float, str]] = {}
    for fixed, names in ((False, ("expression", "tied")), (True, tuple(ASSUMES))):
        rows = np.flatnonzero(table.is_constant[of] == fixed)
        name = rows if fixed else of[rows] * (model.transitions + 1) + times[rows]
        events, event = np.unique(name, return_inverse=True)
        total, trials = (np.bincount(event, part[rows], len(events)) for part in (seen, number))
        share = total / np.maximum(trials, 1)
        if fixed:
            share = np.array([float(table.polynomial(int(e)).constant_term) for e in of[rows]])
        own = xlogy(seen[rows], share[event]) + xlogy(number[rows] - seen[rows], 1 - share[event])
        gain = mixed[rows] - np.where(np.isfinite(own), own, -1e300)
        log_e = np.bincount(event, gain, len(events))
        several = np.bincount(event, minlength=len(events)) > (0 if fixed else 1)
        if not several.any():
            continue
        worst = int(np.argmax(np.where(several, log_e, -np.inf)))
        members = np.flatnonzero(event == worst)
        far = rows[members[np.argmax(gain[members])]]
        told = f"the model says {share[worst]:.4g}" if fixed else f"with all it is tied to {share[worst]:.4g}"
        text = f"{table.text(int(of[far]))} was {int(seen[far]):,} of {int(number[far]):,}"
        words = f"{structure.choice_name(int(at[far]))}: {text}, {told}"
        result[names] = float(logsumexp(log_e[several]) - math.log(several.sum())), words
    return result


def what_to_do(result: LearningResult) -> str:
    """The hint about a model that is refuted: the first rung that is not, or what else there is to do."""
    assert result.counts is not None
    refuted = refuted_rungs(result.model, result.counts, result.fit)
    suspect = result.fit.suspects[0] if result.fit is not None and result.fit.suspects else None
    if suspect is not None and suspect.kind == "drift":
        return "'tightrope watch' dates the change, and --since excludes earlier rows"
    if suspect is not None and suspect.kind == "copy":
        return "leave the copies out; 'tightrope doctor' shows what else does not fit"
    rung = next(name for name in (*ASSUMES, "") if name not in refuted)
    if rung == "untied" and result.problem.lift is not None:
        rung = ""
    tied = "--sets tied needs least of the model that is not refuted: that equal expressions have equal"
    untied = "--sets untied assumes no more than one distribution a choice; a tie is broken,"
    advice = {
        "tied": f"{tied} probabilities",
        "untied": f"{untied} {refuted.get('tied', '')}",
        "per-unit": "units or columns differ, and all sets pool them: doctor splits the model or the log",
    }
    return advice.get(rung, "doctor says what is wrong with the model, and which amendment removes it")


def assumption_chain(result: LearningResult, unit: str | None = None) -> AssumptionChain:
    """Find the result under weaker assumptions; per `unit` it is the least guarantee, at shares of δ."""
    counts, delta = result.counts, result.sets.ledger.delta
    if counts is None:
        raise InputError("bounds over a domain do not depend on data or their assumptions")
    refuted = refuted_rungs(result.model, counts, result.fit)
    if result.contradiction is not None:
        refuted.setdefault("expression", result.contradiction)
    kinds = [SetsKind.TIED] if result.problem.lift is not None else [SetsKind.TIED, SetsKind.UNTIED]
    of_region = result.decisions.sets.has_region
    found: list[tuple[str, Interval]] = []
    if of_region and result.contradiction is None:
        found.append(("expression", result.by_model))
    for kind in kinds:
        if result.options.cost_model is None:
            found.append((kind.value, _robust(result, counts, delta, kind)))
    if unit is not None:
        found.append(("per-unit", _per_unit(result, counts, unit)))
    maximises = result.problem.maximises
    rungs: list[Rung] = []
    for name, interval in found:
        guarantee = interval.lower if maximises else interval.upper
        before = rungs[-1].guarantee if rungs else None
        cost = None if before is None else (before - guarantee if maximises else guarantee - before)
        rungs.append(Rung(name, interval, guarantee, cost, refuted.get(name)))
    return AssumptionChain(tuple(rungs))


def _per_unit(result: LearningResult, counts: Counts, unit: str) -> Interval:
    """The hull of the units' intervals, which hold together."""
    log = None if counts.log is None else counts.log()
    if log is None or unit not in log.columns:
        raise InputError(f"the log has no column {unit!r} that could name units")
    of_episode = log.by_unit(unit)
    units = np.unique(of_episode[of_episode >= 0]).tolist()
    if not 1 <= len(units) <= MOST_UNITS:
        raise InputError(f"{len(units)} units: between 1 and {MOST_UNITS} can be learned one by one")
    share, design = result.sets.ledger.delta / len(units), replace(counts.design, planned=None)
    parts = [log.subset(of_episode == one).counts(result.model, design) for one in units]
    intervals = [_robust(result, part, share, SetsKind.UNTIED) for part in parts]
    return Interval(min(one.lower for one in intervals), max(one.upper for one in intervals))


def _robust(result: LearningResult, counts: Counts, delta: float, kind: SetsKind) -> Interval:
    """The interval of the policy that is most robust over sets of another kind."""
    options, model = result.options.with_sets(kind), result.model
    method = decide(model, counts, options).interval
    if kind is SetsKind.UNTIED:
        sets = untied(model, counts, delta, method)
    else:
        sets = tied(event_intervals(model, counts, delta, method, options.budget))
    if options.misfit:
        sets = widened(sets, np.full(model.choices, options.misfit))
    if result.problem.lift is not None:
        require_support(result.problem, sets, False, options)
    return PolicySolver(sets, result.objective, options, math.inf, silent, 2).robust().interval
