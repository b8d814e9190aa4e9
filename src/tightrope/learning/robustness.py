"""What holds anyway: a chain of weaker assumptions, and the breakdown point of a guarantee.

Each assumption of `ASSUMES` implies the next, so a refutation of one refutes all above it. Ties are tested
alone (`ties_refuted`): for an event with k_c of n_c visits at choice c

    E = Π_c ∫ p^k_c (1 − p)^(n_c − k_c) Beta(½, ½)(dp) / sup_p p^K (1 − p)^(N − K)

stays below 1/α with probability at least 1 − α if its probability is the same at all choices, under any
policy; so does the mean over events.

With model error ε the distribution at every choice and step is within total variation ε of one in the learned
set. The policy's worst value over the sets widened by ε never improves as ε grows. So bisection with verified
solves finds `holds`, up to which a threshold is met, and `fails`, at which it is missed over the widened sets
(`tightrope.ambiguity.sets.widened`), which enclose the balls of total variation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from tightrope.ambiguity.sets import Sets, SetsKind, of_domain, tied, untied, widened
from tightrope.errors import InputError, check_number
from tightrope.io.results import Breakdown, Interval, ModelFit, power_text
from tightrope.learning.options import decide
from tightrope.learning.policy_solver import GIVEN, PolicySolver
from tightrope.learning.products import require_support
from tightrope.model.objective import Direction
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.examination import ALPHA
from tightrope.numerics.arrays import BoolArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import bound_text
from tightrope.statistics.estimates import event_intervals

if TYPE_CHECKING:
    from tightrope.data.counts import Counts
    from tightrope.learning.result import LearningResult

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
    return PolicySolver(sets, result.objective, options).robust().interval


# --- the breakdown point ------------------------------------------------------------------

LEAST = 1e-6
"""No smaller misfit is looked at."""

CLOSENESS = 1.02
"""`fails` is at most so many times `holds`, where the solves decide it."""

MOST = 1 - 2.0**-53


def breakdown(
    result: LearningResult, *, threshold: float | None = None, rows: str | None = None
) -> Breakdown:
    """Find the largest model error (at `rows` alone, if given) at which the robust policy meets a
    `threshold`."""
    sets = result.sets.narrow or result.sets
    touched = _touched(result.model, rows)
    maximises, by_model = result.problem.maximises, result.by_model
    guarantee = by_model.lower if maximises else by_model.upper
    if not math.isfinite(guarantee):
        raise InputError("there is no guarantee that could break down: it is infinite")
    low = Direction.MAX if result.objective.complement else Direction.MIN
    nature = low if maximises else low.opposite

    def worst(sets: Sets) -> tuple[float, float]:
        """Verified bounds on the worst value of the robust policy over sets."""
        solver = PolicySolver(sets, result.objective, result.options)
        return solver.find(GIVEN, result.policy, nature=nature).bounds

    label = "threshold"
    if threshold is None:
        least = worst(of_domain(sets))[0 if maximises else 1]
        threshold, label = 2 * guarantee, "threshold: twice the guarantee,"
        if math.isfinite(least):
            threshold = (guarantee + least) / 2
            label = "threshold: halfway from the guarantee to the worst value in the domain,"
    check_number("threshold", threshold)
    wanted = float(threshold)

    def meets(misfit: float) -> bool | None:
        """Whether the threshold is met; None where the solve does not decide it."""
        lower, upper = worst(widened(sets, np.where(touched, misfit, 0.0)))
        if maximises:
            return True if lower >= wanted else False if upper < wanted else None
        return True if upper <= wanted else False if lower > wanted else None

    if guarantee < wanted if maximises else guarantee > wanted:
        holds, fails = -1.0, None
    else:
        holds, fails = _bisect(meets)
    text = _describe(holds, fails, f"{label} {bound_text(wanted, maximises)}", rows)
    return Breakdown(holds, fails, wanted, rows, text)


def _bisect(meets: Callable[[float], bool | None]) -> tuple[float, float | None]:
    """(the largest misfit that was seen to be met, the least that was seen not to be)."""
    holds, fails = 0.0, MOST
    last = meets(fails)
    if last is not False:
        return (fails, None) if last else (holds, fails)
    trial = LEAST
    while fails > CLOSENESS * holds and fails > LEAST:
        is_met = meets(trial)
        if is_met:
            holds = trial
        elif is_met is False:
            fails = trial
        else:  # within the precision of the solves: a little aside of it on both sides
            beside = trial / 1.005, min(trial * 1.005, MOST)
            holds = beside[0] if beside[0] > holds and meets(beside[0]) else holds
            return holds, beside[1] if meets(beside[1]) is False else fails
        trial = math.sqrt(max(holds, LEAST) * fails)
    return holds, fails


def _touched(model: ParametricMDP, rows: str | None) -> BoolArray:
    """The choices that an assumption touches: all, those that depend on a parameter, those of an action."""
    structure = model.structure
    if rows is None:
        return np.ones(model.choices, dtype=np.bool_)
    names = list(model.parameters.names)
    if rows in names:
        number, table = names.index(rows), model.expressions
        by_monomial = np.array([any(i == number for i, _ in m) for m in table.monomials], dtype=np.bool_)
        depends = np.array([by_monomial[table.monomial[a:b]].any() for a, b in pairwise(table.row_start)])
        result: BoolArray = np.logical_or.reduceat(depends[model.expression], model.transition_start[:-1])
        return result
    actions = [name for name in structure.action_names if name]
    if rows not in actions:
        known = ", ".join([*names, *actions])
        raise InputError(f"`rows` is {rows!r}, neither a parameter nor an action", hint=f"one of {known}")
    return np.asarray(structure.action_of_choice == structure.action_names.index(rows))


def _describe(holds: float, fails: float | None, label: str, rows: str | None) -> str:
    where = "" if rows is None else f" in choices with {rows}"
    if holds < 0:
        return f"does not meet the threshold even without model error ({label})"
    if fails is None:
        return f"holds for any model error{where} over the model's transitions ({label})"
    if holds == 0:
        return f"holds for the learned sets, not for a model error of {fails:.3g} per step{where} ({label})"
    return f"holds for any model error up to {_percent(holds)} per step{where} ({label})"


def _percent(share: float) -> str:
    """Rounded down."""
    scale = 10.0 ** (2 - math.floor(math.log10(100 * share)))
    return f"{math.floor(100 * share * scale) / scale:g}%"
