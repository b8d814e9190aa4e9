"""Results of learning: certified intervals, policies, widths, the confidence budget, and limiting data.

Events limit a coordinate if they have a multiplier in the linear programs of the bounding box, or a facet of
the polytope. Likelihood regions and ellipsoids use all observations together; no event limits them alone.
This is an explanation in plain float64; no guarantee uses it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET

from tightrope import report
from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.atomic import path_of
from tightrope.data.counts import Counts
from tightrope.errors import InputError, check_number, check_type
from tightrope.io import results as records
from tightrope.io.coding import record_of, to_plain
from tightrope.learning.options import Decisions, LearnOptions
from tightrope.learning.outcomes import ObservedOutcomes, Unobserved, chosen_before, refutation
from tightrope.learning.policy_solver import PolicySolver, PolicyValue
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.ranges import ranges_over_box
from tightrope.model.states import Table, action_column, to_pandas, with_nulls, with_states
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.linear_program import LinearStatus
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.numerics.text import bound_text, bounded, claim_text, sure_text
from tightrope.problem import Problem
from tightrope.regions.bounds import tracks_in
from tightrope.regions.halfspaces import Halfspaces, Origin, ScaledHalfspaces
from tightrope.regions.polytope import Polytope
from tightrope.regions.region import Conflict, Region
from tightrope.regions.walk import LazyProgram
from tightrope.rules.states import value_names
from tightrope.solver.solution import Solution
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.estimates import EventIntervals
from tightrope.statistics.outcomes import Outcomes
from tightrope.verdict import Assessment, Assumed, AssumptionStatus, Word

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tightrope.coupled.result import CoupledValue, Witness
    from tightrope.coupled.synthesis import CoupledSynthesis
    from tightrope.report.policy_map import PolicyMap
    from tightrope.report.what_if import WhatIf
    from tightrope.shield import Shield
    from tightrope.shield.gym import ModelEnv

TriedSets = tuple[str, str, records.Interval, float, str]
"""(kind of sets that was tried, whose value, its interval, seconds, why)."""

CLOSE = "as close as was asked"
"""The status of a result that no limit stopped."""

MODEL_RIGHT = (
    "it has the states and transitions of the real process, and the true parameters lie in its domain"
)
NOT_TESTED = "this was not tested against the data"


@dataclass(frozen=True, eq=False, repr=False)
class Widths(Record):
    """How much the data leave open: upper − lower of every expression and of every parameter."""

    expression: FloatArray
    nonconstant: FloatArray
    parameter_lower: FloatArray | None
    parameter_upper: FloatArray | None

    def __post_init__(self) -> None:
        freeze_fields(self)

    @property
    def mean(self) -> float:
        return float(self.nonconstant.mean()) if len(self.nonconstant) else 0.0

    @property
    def largest(self) -> float:
        return float(self.nonconstant.max(initial=0.0))

    def summary(self, names: Sequence[str]) -> records.WidthFacts:
        """Mean and largest width, and the ends of the parameters by their `names`."""
        low, high = self.parameter_lower, self.parameter_upper
        ends = {}
        if low is not None and high is not None:
            ends = {name: (float(low[i]), float(high[i])) for i, name in enumerate(names)}
        return records.WidthFacts(self.mean, self.largest, len(self.nonconstant), ends)


class Result(Record):
    """The names of a result, computed just now or read back: over the record of what is said, the `outcome`.

    Pictures are matplotlib's axes and figures, which is imported when the first one is drawn. Where no axes
    are given, a new figure of pyplot's is made, which notebooks and `plt.show()` display.
    """

    @property
    @abstractmethod
    def outcome(self) -> records.Outcome:
        """All that is said of the result: the keys of `tightrope learn --json`, as one record."""

    @abstractmethod
    def _document(self, shapes: bool = False) -> records.ResultDocument:
        """The run as reports read it; polygons of regions take a while, so only with `shapes`."""

    @abstractmethod
    def _policy_map(self) -> PolicyMap | None:
        """The policies by state variables; None where no state has a choice."""

    @property
    @abstractmethod
    def _maximises(self) -> bool: ...

    @property
    @abstractmethod
    def _question(self) -> str: ...

    @property
    @abstractmethod
    def _has_choices(self) -> bool: ...

    @property
    def _subject(self) -> str:
        """Whose value is bounded; nothing where no state has a choice."""
        if not self._has_choices:
            return ""
        return "the robust policy" if self.robust_optimum is None else "the robust controller"

    @property
    def interval(self) -> records.Interval:
        """The certified interval of the robust policy's value."""
        return self.outcome.robust_policy

    @property
    def guarantee(self) -> float:
        """The end of the robust policy's interval that it guarantees."""
        return self.outcome.guarantee

    @property
    def optimistic_value(self) -> float:
        """What a kind nature would allow: no policy does better, with the ledger's confidence."""
        return self.outcome.optimistic

    @property
    def robust_optimum(self) -> float | None:
        """Over the learned region no controller that sees observations only guarantees more: none does better
        at the points of the region that were looked at. None where controllers see the state."""
        bound = self.outcome.robust_optimum
        return None if bound is UNSET else bound

    @property
    def true_optimum(self) -> float | None:
        """No controller does better at the true parameters, with the ledger's confidence: no policy that sees
        everything does, at any point of the region. None where controllers see the state."""
        bound = self.outcome.true_optimum
        return None if bound is UNSET else bound

    @property
    def verdict(self) -> Assessment:
        """What the result is worth, in one word, with all that it rests on."""
        return self.outcome.judged

    @property
    def assumptions(self) -> tuple[Assumed, ...]:
        """All that the guarantee rests on."""
        return self.verdict.assumptions

    @property
    def kind(self) -> SetsKind:
        """The sets that the intervals are over: tied ones where the region was empty."""
        return SetsKind(self.outcome.sets)

    @property
    def status(self) -> str:
        """How the solves ended: as close as was asked, or why not. The bounds are bounds in any case."""
        return self.outcome.status

    def headline(self, digits: int = 5) -> str:
        """Return the verdict and the guarantee, with so many `digits`, in one line."""
        check_type("digits", digits, int, "a whole number")
        check_number("digits", digits, 0)
        return self.headline_of(self.guarantee, self._subject, digits)

    def headline_of(self, guarantee: float, whose: str, digits: int = 5) -> str:
        """Return the same line about another `guarantee` and policy (`whose`), with so many `digits`."""
        claim = claim_text(self._question, bounded(guarantee, self._maximises, digits), whose)
        return self.verdict.headline(claim, sure_text(self.outcome.ledger.delta))

    def to_json(self) -> dict[str, object]:
        """Return the keys of `tightrope learn --json`."""
        plain = to_plain(self.outcome)
        return {key: value for key, value in plain.items() if key not in ("bounds", "estimate", "files")}

    def _picture_(self) -> str:
        """A small figure for a card of a notebook, as SVG."""
        return report.plotting.small_figure(self.interval, self.guarantee, self.optimistic_value)

    def plot(self, ax: Axes | None = None, *, reference: float | None = None) -> Axes:
        """Return a picture of the interval and the optimistic value on `ax`, with a line at `reference`."""
        return report.plotting.plot_intervals(self._document(), ax, reference)

    def plot_regions(self, x: str | None = None, y: str | None = None, ax: Axes | None = None) -> Figure:
        """Return a figure of the region's projections on pairs of parameters, or on `x`, `y` (on `ax`)."""
        return report.plotting.plot_regions(self._document(shapes=True), x, y, ax)

    def plot_policy(
        self, x: str | None = None, y: str | None = None, *, which: str = "robust", ax: Axes | None = None
    ) -> Axes:
        """Return a heat map of a policy (`which`: robust or optimistic) over variables `x`, `y` on `ax`."""
        return report.plotting.plot_policy(self._policy_map(), x, y, which, ax)

    def plot_widths(self, ax: Axes | None = None) -> Axes:
        """Return a picture on `ax`: the interval of each unknown probability before the data and now."""
        return report.plotting.plot_widths(self._document(), ax)

    def plot_events(self, ax: Axes | None = None) -> Axes:
        """Return a picture of the event intervals on `ax`, those that limit the region first."""
        return report.plotting.plot_events(self._document(), ax)

    def plot_fit(self, ax: Axes | None = None) -> Axes:
        """Return a picture of the model-fit test on `ax`: evidence over time, and the alarm level."""
        return report.plotting.plot_fit(self._document(), ax)

    def plot_observed(self, ax: Axes | None = None) -> Axes:
        """Return a picture on `ax`: observed and fitted frequencies of the choices with the worst fit."""
        return report.plotting.plot_observed(self._document(), ax)

    def report(self, path: str | PathLike[str] = "report.html", *, overwrite: bool = False) -> Path:
        """Write the report to `path`, an HTML page for offline use, and return its path. `overwrite` replaces
        other files.
        """
        from tightrope.report.write import write_page

        target, run = path_of(path), self._document(shapes=True)
        return write_page(run, self._policy_map(), target, overwrite, self._what_if())

    @abstractmethod
    def _what_if(self) -> WhatIf:
        """What the policies would be worth if a parameter were known; no guarantee."""


@dataclass(frozen=True, eq=False, repr=False)
class LearningResult(Result):
    """The result of `learn`.

    * `value`: the given policy's certified interval; None without one. `given`: that policy in the model.
    * `robust`: the policy with the best guarantee, and its interval.
    * `optimistic`: the policy that is best if nature helps; its value bounds every policy's.
    * `contradiction`: a message if the region was empty; tied sets were then used.
    * `fit`: the model-fit test, at a separate level; None without data.
    * `binding`: the active events of the region.
    * `seconds` by phase, each as if this result had been computed alone.
    * `synthesis`: with coupled sets, how the robust policy was found, and its distance from the best.
    * `refuted_costs`, `wrong_costs`: messages if costs contradict a statement, or are not those of the
      reward.
    * `breakdown`: the breakdown point, if computed (`find_breakdown_point`).
    * `outcomes`: the value from observed returns, or why there is none. The interval of the policy concerned
      is the intersection, or that of the returns if the model is refuted.
    * `tried`: the kinds of sets that were tried, and the gain of each.
    * `problem`, `counts` and `options` are the input; `counts` is None without data.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(500, seed=1)
    >>> result = tr.learn(bench.problem, data, delta=0.01, sets="tied")
    >>> result.verdict.word.value, result.guarantee == result.interval.lower, list(result.parameters)
    ('proved', True, ['p', 'q'])
    """

    problem: Problem
    counts: Counts | None
    options: LearnOptions
    decisions: Decisions
    sets: Sets
    region: Region | None
    intervals: EventIntervals | None
    value: PolicyValue | None
    robust: PolicyValue
    optimistic: Solution
    widths: Widths
    binding: records.Binding
    contradiction: str | None
    fit: records.ModelFit | None
    seconds: Mapping[str, float] = field(compare=False)
    notes: tuple[str, ...] = field(default=())
    synthesis: CoupledSynthesis | None = None
    refuted_costs: str | None = None
    breakdown: records.Breakdown | None = None
    outcomes: ObservedOutcomes | Unobserved | None = None
    tried: tuple[TriedSets, ...] = ()
    wrong_costs: str | None = None
    given: Policy | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", MappingProxyType(dict(self.seconds)))

    def _title_(self) -> str:
        return f"LearningResult: {self.problem.text} {self._round_guarantee(6)}"

    def _round_guarantee(self, digits: int) -> str:
        """The guarantee, rounded so that it holds as it is written."""
        sign = "≥" if self._maximises else "≤"
        return f"{sign} {bound_text(self.guarantee, self._maximises, digits)}"

    def _facts_(self) -> Facts:
        region = "" if self.region is None or self.fallback else f", {self.region.kind.value} region"
        wrong = [("attention", reason) for reason in self.verdict.reasons]
        optimistic = bound_text(self.optimistic_value, not self._maximises)
        return [
            ("verdict", self.headline(9)),
            ("interval", f"{self.interval}, at best {optimistic}"),
            ("assumes", self.ledger.assumption.value),
            ("sets", f"{self.kind.value}{region}"),
            *([] if self.seen is None else [("outcomes", self.seen.text)]),
            *wrong,
        ]

    @cached_property
    def outcome(self) -> records.Outcome:
        """All that is said of the result: the keys of `tightrope learn --json`, as one record."""
        coupled = self.decisions.sets is SetsKind.COUPLED and not self.fallback
        verdict, best = self._assess(), self.optimistic
        kindest = self._clip(float((best.upper if self._maximises else best.lower)[self.problem.free_state]))
        hides, given = self.problem.is_of_controller, None if self.value is None else self.value.coupled
        end, names = min if self._maximises else max, self.model.parameters.names
        optima = self.problem.optima_in(None if self.fallback else self.region)  # in it for certain
        return record_of(
            records.Outcome,
            self,
            **verdict.facts,
            empty=self.contradiction is not None,
            conflict=list(self.conflict.texts) if self.conflict is not None else None,
            region=self.decisions.region.value if self.decisions.region else None,
            sets=(SetsKind.COUPLED if coupled else self.sets.kind).value,
            relaxation=self.sets.relaxation.value,
            value=None if self.value is None else self.value.interval,
            robust_policy=self.robust.interval,
            guarantee=self.robust.interval.lower if self._maximises else self.robust.interval.upper,
            optimistic=kindest,
            robust_optimum=end([kindest, *optima.values()]) if hides else UNSET,
            true_optimum=kindest if hides else UNSET,
            coupled=record_of(
                records.CoupledFacts,
                self.synthesis,
                robust_policy=describe_coupled_value(self.robust.coupled, names),
                value=describe_coupled_value(given, names),
            )
            if coupled
            else None,
            widths=self.widths.summary(self.model.parameters.shown.names),
            ledger=self.ledger.record(),
            reasons=list(self.decisions.reasons),
            status=self._ended(),
            tried=list(self.tried) or UNSET,
            tree=(None if self.value is None else self.value.policy.rule) or UNSET,
            seconds={phase: round(seconds, 6) for phase, seconds in self.seconds.items()},
        )

    @property
    def robust_point(self) -> dict[str, str] | None:
        """The point of the region that bounds `robust_optimum`: `check --at` with a certificate proves it."""
        optima = self.problem.optima_in(None if self.fallback else self.region)
        at = next((point for point, bound in optima.items() if bound == self.robust_optimum), None)
        return at if at is None else dict(zip(self.model.parameters.names, map(str, at), strict=True))

    def _clip(self, best: float) -> float:
        """What no policy exceeds, where there is one alone: no more than the other end of its interval."""
        if self.seen is None or self.model.structure.choices > self.model.structure.states:
            return best
        low, high = self.robust.interval
        if self.seen.alone:
            return high if self._maximises else low
        return min(max(best, low), high)

    @property
    def seen(self) -> ObservedOutcomes | None:
        """What episodes returned, where that was observed."""
        return self.outcomes if isinstance(self.outcomes, ObservedOutcomes) else None

    @property
    def by_model(self) -> records.Interval:
        """The robust policy's interval over the model's sets alone, whatever episodes returned."""
        seen, structure = self.seen, self.model.structure
        if seen is None or seen.model is None or structure.choices > structure.states:
            return self.robust.interval
        return seen.model

    def _assess(self) -> Assessment:
        seen = None if self.seen is None else self.seen.contradiction
        refuted = self.contradiction or self.refuted_costs or seen
        return assess(self._rests_on(), self.counts, self.fit, refuted, self._ended())

    def _rests_on(self) -> tuple[Assumed, ...]:
        known = rests_on(self.ledger, self.options, self.fit, self.problem)
        if self.wrong_costs is not None:
            known = (*known, Assumed.violated("costs", self.wrong_costs))
        if self.problem.is_of_controller:
            known = (*known, Assumed.stated("readings", INDEPENDENT_READINGS))
        joint = self.region is not None and self.region.kind.has_intervals
        singled_out = self.seen is not None or (self.decisions.bets and not joint)
        if self.value is None or self.counts is None or not singled_out:
            return known
        chosen = chosen_before(self.given or self.value.policy, self.counts)
        return (*known, chosen) if chosen.kept is AssumptionStatus.STATED else known

    def _ended(self) -> str:
        stopped = [s.status.value for s in self.solutions if not s.is_initial_certified]
        values = [self.robust] if self.value is None else [self.robust, self.value]
        stopped += [value.stopped for value in values if value.stopped is not None]
        if self.problem.lift is not None and self.problem.lift.cut:
            stopped.insert(0, "the time limit ended the choice of a controller; a better one may exist")
        return stopped[0] if stopped else CLOSE

    @property
    def model(self) -> ParametricMDP:
        """The model that was learned about."""
        model = self.problem.model
        assert isinstance(model, ParametricMDP)
        return model

    @property
    def objective(self) -> Objective:
        """What was asked, on the states of the model."""
        return self.problem.objective

    @property
    def assumed_support(self) -> float | None:
        """What was assumed to be the least probability of a transition that can happen."""
        return self.options.assume_support

    @property
    def device(self) -> str:
        """Where the values were computed."""
        return self.options.device

    @property
    def policy(self) -> Policy:
        """The robust policy: the one whose guarantee is the best."""
        policy = self.robust.policy
        vars(policy).setdefault("_grow", lambda loss: self.with_tree(loss=loss).value)
        return policy

    @property
    def controller(self) -> Policy:
        """The robust policy of a temporal formula, which has a memory."""
        if self.problem.lift is None:
            raise InputError("the robust policy has no memory", hint="result.policy is it")
        return self.problem.controller(self.policy)

    @property
    def parameters(self) -> dict[str, records.Interval]:
        """What the data leave of each parameter; its whole domain where the sets have no region."""
        domain = self.model.parameters
        names = domain.shown.names
        low, high = self.widths.parameter_lower, self.widths.parameter_upper
        if low is None or high is None:
            low, high = np.array([float(x) for x in domain.lower]), np.array([float(x) for x in domain.upper])
        return {name: records.Interval.of(float(low[i]), float(high[i])) for i, name in enumerate(names)}

    @property
    def ledger(self) -> ConfidenceBudget:
        """How δ was spent, and what the guarantee assumes of the data."""
        own, seen = self.sets.ledger, self.seen
        if seen is None:
            return own
        delta = seen.total or own.delta + seen.delta
        return own.with_outcomes(delta, seen.delta, (seen.assumption,), seen.text)

    @property
    def fallback(self) -> bool:
        """Whether the region was empty and tied sets were used instead."""
        return self.contradiction is not None

    @property
    def conflict(self) -> Conflict | None:
        """Observations that contradict each other, where the region is empty."""
        return self.region.emptiness.conflict if self.region is not None else None

    @property
    def misfit(self) -> str | None:
        """Words about data that contradict the model, else None; `fit` says more."""
        return None if self.fit is None else self.fit.misfit

    @property
    def _identity(self) -> tuple[str, str, float]:
        return self.model.hash(), self.problem.text, self.guarantee

    @property
    def _question(self) -> str:
        return self.problem.text

    @property
    def _has_choices(self) -> bool:
        return self.model.structure.choices > self.model.structure.states

    @property
    def _maximises(self) -> bool:
        return self.objective.maximises

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """All solves behind the numbers."""
        value = () if self.value is None else self.value.solutions
        return (*self.robust.solutions, self.optimistic, *value)

    def find_breakdown_point(
        self, *, threshold: float | None = None, rows: str | None = None
    ) -> records.Breakdown:
        """Return the largest model error (total variation at every choice) under which the guarantee still
        meets `threshold`, by default half of its margin. `rows`, a parameter or an action, is then doubted
        alone.
        """
        from tightrope.learning.robustness import breakdown

        return breakdown(self, threshold=threshold, rows=rows)

    def assumption_chain(self, unit: str | None = None) -> Any:
        """Return the results under weaker and weaker assumptions (expressions, ties, one distribution per
        choice, per `unit`, a column of the log), the cost of each step, and the assumptions that the data
        refute.
        """
        from tightrope.learning.robustness import assumption_chain

        return assumption_chain(self, unit)

    def shield(self, *, slack: float, patience: int | None = None) -> Shield:
        """Return a shield that lets any agent act.

        Parameters
        ----------
        slack : float
            The most that the agent may lose of the guaranteed bound.
        patience : int, optional
            Steps per episode that may bring the agent no nearer to its target.
        """
        from tightrope.shield import Shield

        solution = self.robust.solutions[0 if self.problem.objective.maximises else 1]
        data = self.robust.policy.made_from
        known = self.verdict.facts | {"confidence": 1 - self.ledger.delta}
        known |= {} if data is None else {"made_from": data.text()}
        return Shield.of(solution, self.problem, slack=slack, patience=patience, **known)

    def to_gymnasium(self) -> ModelEnv:
        """Return an environment for `tr.gym.ShieldWrapper`: the model that fits the data best."""
        if self.counts is None:
            raise InputError("the result has no data to fit a model to", hint="tr.gym.ModelEnv(model, at=…)")
        base = self.problem.base
        assert isinstance(base, ParametricMDP)
        environment: ModelEnv = import_module("tightrope").gym.ModelEnv(Outcomes.of(base).fitted(self.counts))
        return environment

    def with_tree(self, *, loss: float = 0.01) -> LearningResult:
        """Return this result with a small decision tree as the given policy, which loses at most the share
        `loss` of the robust guarantee over the same sets. `value` has its interval, `value.policy.rule` the
        tree. Raises `CannotCertify` if none is found.
        """
        from tightrope.trees import grow

        if self.value is not None:
            raise InputError("the result has a given policy already", hint="learn without it for a tree")
        policy, value = grow(self, loss)
        return replace(self, value=replace(value, policy=policy))

    def evaluate(self, policy: Policy) -> PolicyValue:
        """Return the certified interval of `policy` over the sets of this result."""
        from tightrope.learning import coupling

        solver = PolicySolver(self.sets, self.objective, self.options)
        value = solver.evaluate(policy)
        if self.robust.coupled is not None and isinstance(self.region, Polytope):
            value = coupling.couple(solver, value, coupling.count_cells(self.model, self.region))
        return replace(value, beyond=self.robust.beyond)

    def save(
        self, path: str | PathLike[str], *, source: str | None = None, exports: Collection[str] = ()
    ) -> Path:
        """Write the directory of `tightrope learn -o` and return its path.

        Parameters
        ----------
        path : str or path
            The directory. Only files that tightrope wrote there, unchanged since, are replaced.
        source : str, optional
            Where the model came from ("model.prism", "bench:rover(10,10)").
        exports : collection of str
            Formats of the learned interval model: "drn", "explicit", "umb".
        """
        from tightrope.learning.result_files import parse_exports, result_document, write_results

        place = path_of(path)
        write_results(place, [self], result_document(self, source), exports=parse_exports(exports))
        return place

    def _what_if(self) -> WhatIf:
        from tightrope.report.what_if import REFUTED, WhatIf, what_if

        if self.verdict.word is Word.CONTRADICTED:
            return WhatIf(remark=REFUTED)
        values = {"robust": self.robust}
        if self.value is not None and self.value is not self.robust:
            values["given"] = self.value
        policies = {name: one.policy for name, one in values.items()}
        tracks = tracks_in(self.region, self.model, self.counts)
        return what_if(self.problem, policies, tracks, {name: one.interval for name, one in values.items()})

    def _document(self, shapes: bool = False) -> records.ResultDocument:
        from tightrope.learning.result_files import result_document

        return result_document(self, shapes=shapes)

    def _policy_map(self) -> PolicyMap | None:
        from tightrope.report.policy_map import map_policies

        policies = {"robust": self.policy, "optimistic": self.optimistic.policy}
        if self.value is not None and self.value is not self.robust:
            policies["given"] = self.value.policy
        drawn = map_policies(policies)
        names = None if self.counts is None else self.counts.names
        return drawn and drawn.calling(value_names(self.problem.base.structure, names))

    def to_arrow(self) -> Table:
        """Return a table with a row per state: its value under the robust policy and the action there.

        | column | holds |
        |---|---|
        | the variables, or `state` | the state (`tightrope.model.states`) |
        | `lower`, `upper` | the certified interval of the value from this state on, under the robust policy |
        | `optimistic` | the bound for all policies from this state on |
        | `action`, `choice` | the robust policy's action, and the choice's number in the state |

        The intervals of all states hold simultaneously. Coupled sets tighten the initial state's only.
        `action` is the first decision of a policy that depends on the step, and null where it is random.
        """
        structure, policy, (low, high) = self.model.structure, self.policy.at(0), self.robust.solutions
        lower, upper = low.lower.copy(), high.upper.copy()
        lower[structure.initial], upper[structure.initial] = self.interval.lower, self.interval.upper
        chosen = np.maximum.reduceat(
            np.where(policy.probability > 0, np.arange(structure.choices), -1), structure.choice_start[:-1]
        )
        mixed = np.add.reduceat((policy.probability > 0).astype(np.int64), structure.choice_start[:-1])
        best = self.optimistic.upper if self.problem.maximises else self.optimistic.lower
        columns = {
            "lower": lower,
            "upper": upper,
            "optimistic": best,
            "action": with_nulls(action_column(structure, chosen), mixed == 1),
            "choice": with_nulls(chosen - structure.choice_start[:-1], mixed == 1),
        }
        return with_states(structure, np.arange(structure.states), columns)

    def to_dataframe(self) -> Table:
        """Return `to_arrow` as a data frame."""
        return to_pandas(self.to_arrow())


class ResultTable(dict[SetsKind, LearningResult]):
    """Results by their kind of sets, shown as a table, a row for each."""

    def __missing__(self, kind: object) -> LearningResult:
        raise KeyError(f"no result for {kind!r}: there are {', '.join(one.value for one in self)}")

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("sets", "verdict", "guarantee", "interval", "width")]
        for kind, one in self.items():
            low, high = bound_text(one.interval.lower, True, 5), bound_text(one.interval.upper, False, 5)
            width = bound_text(one.interval.upper - one.interval.lower, False, 3)
            word = one.verdict.word.value
            rows.append((kind.value, word, one._round_guarantee(5), f"{low} to {high}", width))
        return rows

    @property
    def _heading(self) -> str:
        question = next((one.problem.text for one in self.values()), None)
        return f"{len(self)} results" + (f" for {question}" if question else "")

    def __repr__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self._rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in self._rows
        ]
        return "\n".join([self._heading, *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        head, *rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._rows]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        names = head.replace("td>", "th>")
        heading = f"<caption>{escape(self._heading)}</caption>"
        return f"<table>{heading}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"

    def to_dataframe(self) -> Table:
        """The same as a pandas data frame, with numbers."""
        columns: dict[str, object] = {
            "sets": [kind.value for kind in self],
            "verdict": [one.verdict.word.value for one in self.values()],
            "guarantee": [one.guarantee for one in self.values()],
            "lower": [one.interval.lower for one in self.values()],
            "upper": [one.interval.upper for one in self.values()],
        }
        return to_pandas(import_module("pyarrow").table(columns))


def describe_coupled_value(
    value: CoupledValue | None, names: Sequence[str]
) -> records.CoupledValueFacts | None:
    """A coupled value: bounds, how it ended, and the instantiations next to its ends."""
    if value is None:
        return None
    return record_of(
        records.CoupledValueFacts,
        value,
        rectangular=records.Interval.of(value.rectangular_lower, value.rectangular_upper),
        status=value.status.name.lower().replace("_", "-"),
        reason=value.reason or None,
        witness={"lowest": _witness(value.lowest, names), "highest": _witness(value.highest, names)},
        cells=len(value.cells),
    )


def _witness(witness: Witness | None, names: Sequence[str]) -> records.WitnessFacts | None:
    if witness is None:
        return None
    at = {name: float(x) for name, x in zip(names, witness.theta, strict=True)}
    return records.WitnessFacts(at, witness.lower, witness.upper)


def assess(
    known: tuple[Assumed, ...],
    counts: Counts | None,
    fit: records.ModelFit | None,
    refuted: str | None,
    ended: str,
) -> Assessment:
    """The verdict on something learned: `refuted` are words about what contradicts the model, beside what the
    log and the test of the model say; `ended` is how the computation ended."""
    refuted = refutation(counts, fit, refuted)
    if refuted is None and fit is not None and fit.is_doubt:  # so is a nominal alarm
        doubt = AssumptionStatus.UNKNOWN if fit.misfit is None else AssumptionStatus.NO
        known = tuple(replace(one, kept=doubt) if one.name == "model" else one for one in known)
    return Assessment.of(known, contradicted=refuted, limit=None if ended == CLOSE else ended)


INDEPENDENT_READINGS = "what a controller reads is independent given the state, drawn as the model says"


def rests_on(
    ledger: ConfidenceBudget, options: LearnOptions, fit: records.ModelFit | None, problem: Problem | None
) -> tuple[Assumed, ...]:
    """All that a learned guarantee rests on: the model, the data, and what was stated beside them."""
    tested = f"{MODEL_RIGHT}; " + (NOT_TESTED if fit is None else f"tested: {fit.text}")
    if fit is not None and fit.is_doubt:
        tested += f"; {records.REMEDY}"
    assumptions = [*ledger.assumptions, Assumed.stated("model", tested)]
    model = None if problem is None else problem.base
    if isinstance(model, ParametricMDP) and model.parameters.narrowed:
        assumptions.append(Assumed.derived("domain", model.parameters.narrowed))
    if fit is not None and fit.rows_tested is None:
        assumptions.append(Assumed.stated("episodes", "independent episodes (untested)"))
    if fit is not None and fit.rows_tested is not None and fit.rows_tested < fit.events:
        rows = f"{fit.rows_tested:,} of {fit.events:,} rows were tested"
        untested = f"outcomes depend on state and action alone: {rows}"
        assumptions.append(Assumed.stated("untested rows", untested))
    if options.assume_support is not None:
        least = f"every possible transition has a probability of at least {options.assume_support:g}"
        assumptions.append(Assumed.stated("support", least))
    if options.misfit:
        near = f"within total variation {options.misfit:g} of a distribution that was learned for it"
        words = f"at every choice and step the process is {near}, with no transition beyond the model's"
        assumptions.append(Assumed.stated("misfit", words))
    if ledger.of_costs and options.cost_model is not None:
        assumptions.append(Assumed.stated("costs", options.cost_model.text))
    return tuple(assumptions)


MOST_NAMED = 200
"""So many are named at most; `total` counts all."""


NOTHING = records.Binding(0, ())


def binding_events(
    region: Region | None, intervals: EventIntervals | None, outcomes: Outcomes
) -> records.Binding:
    """The events that bind in a region; none where it is empty or not made of events."""
    if not isinstance(region, Polytope) or region.emptiness.is_empty:
        return NOTHING
    if intervals is None and not np.any(region.system.origin == Origin.L1):
        return NOTHING
    sides: dict[int, set[str]] = {}
    facets: OffsetArray = np.zeros(0, np.int64) if region.enclosure is None else region.enclosure.facets
    facets = facets[facets < len(region.system)]  # rows that carry a vertex, where vertices are known
    for system, rows in ((region.system, facets), _bounding(region, intervals)):
        for row in rows.tolist():
            side = _SIDES.get(int(system.origin[row]))
            if side is not None:
                sides.setdefault(int(system.index[row]), set()).add(side)
    table, box = outcomes.model.expressions, outcomes.model.parameters
    domain = None if table.denominators else ranges_over_box(table, box.lower, box.upper)

    def text(event: int) -> str:
        if intervals is not None:
            return intervals.describe(event, domain)
        choice = outcomes.example_choice(int(outcomes.start[event]))
        return f"the distribution of {outcomes.model.structure.choice_name(choice)}"

    named = (
        records.BindingEvent(event, " and ".join(sorted(sides[event])), text(event))
        for event in sorted(sides)[:MOST_NAMED]
    )
    return records.Binding(len(sides), tuple(named))


_SIDES = {int(Origin.EVENT_UPPER): "upper", int(Origin.EVENT_LOWER): "lower", int(Origin.L1): "ball"}


def _bounding(region: Polytope, intervals: EventIntervals | None) -> tuple[Halfspaces, OffsetArray]:
    """Return a system and those of its rows that bound the coordinates, over a slightly wider box."""
    system = region.system if intervals is None else _event_rows(region, intervals)
    scaled = ScaledHalfspaces.of(system, half=1.5 * np.maximum(0.5 * (system.upper - system.lower), 1e-200))
    program = LazyProgram(scaled)
    active: set[int] = set()
    for direction in np.vstack([np.eye(system.size), -np.eye(system.size)]):
        outcome = program.maximise(direction)
        if outcome.status is LinearStatus.OPTIMAL:
            active.update(program.loaded[np.flatnonzero(outcome.multipliers > 1e-9)].tolist())
    return system, np.array(sorted(active), dtype=np.int64)


def _event_rows(region: Polytope, intervals: EventIntervals) -> Halfspaces:
    events = intervals.events
    functions = region.coordinates.functions(events.outcomes.model.expressions).take(events.expression)
    times = events.multiplicity.astype(np.float64)
    linear, constant = functions.linear * times[:, None], functions.constant * times
    seen = np.flatnonzero((intervals.lower > 0.0) | (intervals.upper < 1.0))
    lifted = region.system.take(region.system.origin == Origin.ENVELOPE)
    system = Halfspaces.of_domain(region.coordinates).with_box(region.system.lower, region.system.upper)
    system = system.with_rows(lifted.matrix, lifted.bound, Origin.ENVELOPE)
    system = system.with_rows(linear[seen], (intervals.upper - constant)[seen], Origin.EVENT_UPPER, seen)
    return system.with_rows(-linear[seen], (constant - intervals.lower)[seen], Origin.EVENT_LOWER, seen)
