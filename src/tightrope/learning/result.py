"""What learning returns: certified intervals, policies, widths, the ledger and how long it took."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.ambiguity.sets import Sets, SetsKind
from tightrope.coupled import CoupledStatus, CoupledSynthesis, CoupledValue
from tightrope.data.counts import Counts
from tightrope.data.event_stream import EXCLUDED
from tightrope.errors import InputError
from tightrope.io.coding import to_plain
from tightrope.io.output import path_of
from tightrope.learning.binding import Binding
from tightrope.learning.options import Decisions, LearnOptions
from tightrope.learning.outcome import outcome_of
from tightrope.learning.result_table import result_table
from tightrope.learning.shown import Shown, map_of, run_of, write_certificate
from tightrope.logic.product_problem import ProductProblem
from tightrope.model.objective import Direction, Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.states import to_pandas
from tightrope.monitoring.model_fit import ModelFit
from tightrope.numerics.arrays import FloatArray, IndexArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.record import Facts, Record, brief, freeze_fields
from tightrope.numerics.text import bound_text, interval_text
from tightrope.problem import Problem
from tightrope.regions.region import Conflict, Region, RegionKind
from tightrope.solver.solution import Solution
from tightrope.statistics.estimates import EventIntervals
from tightrope.statistics.ledger import Ledger
from tightrope.verdict import Assumed, Kept, Verdict

if TYPE_CHECKING:
    from tightrope.report.policy_map import PolicyMap
    from tightrope.report.run import Run

CLOSE = "as close as was asked"
"""The status of a result that no limit stopped."""

MODEL_RIGHT = (
    "it has the states and transitions of the real process, and the true parameters lie in its domain"
)
NOT_TESTED = "this was not tested against the data"

REACHED = (CoupledStatus.EXACT, CoupledStatus.CERTIFIED, CoupledStatus.RECTANGULAR)
"""How coupled values end where no limit stopped them; the last says that there is nothing to refine."""


@dataclass(frozen=True)
class Interval:
    """lower ≤ value ≤ upper, with the confidence of the ledger.

    >>> 0.5 in Interval(0.25, 0.75), Interval(0.25, 0.75).width
    (True, 0.5)
    """

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """How much is left open; 0 for a single value, ∞ included."""
        return self.upper - self.lower if self.upper != self.lower else 0.0

    def __str__(self) -> str:
        return interval_text(self.lower, self.upper)

    def __iter__(self) -> Iterator[float]:
        """`lower, upper = interval`."""
        return iter((self.lower, self.upper))

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def to_json(self) -> dict[str, float]:
        return {"lower": self.lower, "upper": self.upper}


@dataclass(frozen=True, eq=False, repr=False)
class PolicyValue(Record):
    """A policy and its certified interval.

    `solutions` are the solves behind the two ends, lower end first. Where `coupled` is given the interval is
    its, and the solutions are those over the rectangular sets, which it starts from.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> problem = model.problem('Pmax=? [ F "heads" ]')
    >>> result = tr.learn(problem, [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20, delta=0.01)
    >>> result.robust.is_close, result.robust.interval == result.interval
    (True, True)
    """

    policy: Policy
    interval: Interval
    solutions: tuple[Solution, Solution]
    coupled: CoupledValue | None = None

    def _title_(self) -> str:
        return f"PolicyValue: {self.interval}"

    def _facts_(self) -> Facts:
        ends = [(name, brief(end)) for name, end in zip(("low", "high"), self.solutions, strict=True)]
        return [("policy", brief(self.policy)), *ends]

    @property
    def is_close(self) -> bool:
        """Whether the solves came as close as was asked."""
        return all(solution.is_initial_certified for solution in self.solutions) and not self.stopped

    @property
    def stopped(self) -> str | None:
        """Why the coupled interval is wider than was asked for, where it is."""
        if self.coupled is None or self.coupled.status in REACHED:
            return None
        return self.coupled.status.value


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


@dataclass(frozen=True, eq=False, repr=False)
class LearningResult(Shown, Record):
    """Everything `learn` found out.

    * `value`: the given policy's certified interval; None where no policy was given.
    * `robust`: the policy with the best guarantee, and its interval.
    * `optimistic`: the policy that is best if nature is kind; its value bounds what any policy can reach.
    * `contradiction`: words about an empty region, else None; tied sets were then used instead.
    * `fit`: do the data fit the model? A test at its own level; None where there are no data.
    * `binding`: the events that hold the region in place.
    * `seconds` by phase, each as if this result had been computed alone.
    * `synthesis`: with coupled sets, how the robust policy was found and how far from the best it can be.
    * `refuted_costs`: words about costs that contradict what was stated of them, else None.
    * `problem`, `counts` and `options` are what it was asked with; `counts` is None where there are no data.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> problem = model.problem('Pmax=? [ F "heads" ]')
    >>> result = tr.learn(problem, [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20, delta=0.01)
    >>> 0.6 < result.guarantee <= 0.8 <= result.interval.upper < 0.95
    True
    >>> result.verdict.word.value, list(result.parameters)
    ('proved', ['p'])
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
    binding: Binding
    contradiction: str | None
    fit: ModelFit | None
    seconds: Mapping[str, float] = field(compare=False)
    notes: tuple[str, ...] = field(default=())
    synthesis: CoupledSynthesis | None = None
    refuted_costs: str | None = None

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
            *wrong,
        ]

    def headline(self, digits: int = 5) -> str:
        """The verdict in a line: the word, then the guarantee as far as it may be claimed."""
        side = "at least" if self._maximises else "at most"
        claim = f"{side} {bound_text(self.guarantee, self._maximises, digits)}"
        delta = self.ledger.delta
        return self.verdict.headline(
            claim, f"with confidence {1 - delta:.10g}" if delta else "over the domain"
        )

    @property
    def assumptions(self) -> tuple[Assumed, ...]:
        """All that the guarantee rests on."""
        found = rests_on(self.ledger, self.options, self.fit)
        if self.value is None or self.decisions.region is not RegionKind.SLAB or self.counts is None:
            return found
        if self.value.policy.digest in self.counts.design.bet_on:
            return found
        unseen = "it was not chosen by looking at these data, which a slab needs"
        return (*found, Assumed("given policy", Kept.STATED, unseen))

    @property
    def verdict(self) -> Verdict:
        """What the result is worth, in one word, with all that it rests on."""
        refuted = self.contradiction or self.refuted_costs or excluded_in(self.counts)
        if refuted is None and self.fit is not None and self.fit.is_refutation:
            refuted = self.misfit
        return Verdict.of(
            self.assumptions, contradicted=refuted, limit=None if self.status == CLOSE else self.status
        )

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
    def interval(self) -> Interval:
        """The certified interval of the robust policy's value."""
        return self.robust.interval

    @property
    def policy(self) -> Policy:
        """The robust policy: the one whose guarantee is the best."""
        return self.robust.policy

    @property
    def controller(self) -> Policy:
        """The robust policy of a temporal formula, which has a memory."""
        if not isinstance(self.problem, ProductProblem):
            raise InputError("the robust policy has no memory", hint="result.policy is it")
        return self.problem.controller(self.policy)

    @property
    def parameters(self) -> dict[str, Interval]:
        """What the data leave of each parameter; its whole domain where the sets have no region."""
        names, domain = self.model.parameters.names, self.model.parameters
        low, high = self.widths.parameter_lower, self.widths.parameter_upper
        if low is None or high is None:
            low, high = np.array([float(x) for x in domain.lower]), np.array([float(x) for x in domain.upper])
        return {name: Interval(float(low[i]), float(high[i])) for i, name in enumerate(names)}

    @property
    def kind(self) -> SetsKind:
        """The sets that the intervals are over: tied ones where the region was empty."""
        coupled = self.decisions.sets is SetsKind.COUPLED and not self.fallback
        return SetsKind.COUPLED if coupled else self.sets.kind

    @property
    def ledger(self) -> Ledger:
        """How δ was spent, and what the guarantee assumes of the data."""
        return self.sets.ledger

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
    def optimistic_value(self) -> float:
        """What a kind nature would allow: no policy does better, with the ledger's confidence."""
        initial = self.model.initial
        return float((self.optimistic.upper if self._maximises else self.optimistic.lower)[initial])

    @property
    def guarantee(self) -> float:
        """The end of the robust policy's interval that it guarantees."""
        interval = self.robust.interval
        return interval.lower if self._maximises else interval.upper

    @property
    def _maximises(self) -> bool:
        return (self.objective.agent is Direction.MAX) != self.objective.complement

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """All solves behind the numbers."""
        value = () if self.value is None else self.value.solutions
        return (*self.robust.solutions, self.optimistic, *value)

    @property
    def status(self) -> str:
        """How the solves ended: as close as was asked, or why not. The bounds are bounds in any case."""
        stopped = [s.status.value for s in self.solutions if not s.is_initial_certified]
        values = [self.robust] if self.value is None else [self.robust, self.value]
        stopped += [value.stopped for value in values if value.stopped is not None]
        return stopped[0] if stopped else CLOSE

    def save(
        self, path: str | PathLike[str], *, source: str | None = None, exports: Collection[str] = ()
    ) -> Path:
        """Write the directory that `tightrope learn -o` writes, and `tr.load_result` reads; its path.

        * `source`: where the model came from ("model.prism", "bench:rover(10,10)"), to load it again.
        * `exports`: formats of the learned interval model: "drn", "explicit", "umb".

        Only files that an earlier result left there unchanged are replaced.
        """
        from tightrope.learning.result_files import save_result

        place = path_of(path)
        save_result(self, place, source=source, exports=exports)
        return place

    def certify(self, path: str | PathLike[str], *, overwrite: bool = False) -> dict[str, Interval]:
        """Write a certificate, which `tr.verify` checks; the interval that it proves of each policy.

        A file that is no certificate of ours is refused, unless `overwrite` is set.
        """
        proved = write_certificate(self, path_of(path), overwrite)
        return {name: Interval(low, high) for name, (low, high) in proved.items()}

    def _run(self, shapes: bool = False) -> Run:
        from tightrope.learning.result_files import result_document

        return run_of(result_document(self, shapes=shapes))

    def _policy_map(self) -> PolicyMap | None:
        return map_of({"robust": self.policy, "optimistic": self.optimistic.policy})

    def to_arrow(self) -> Any:
        """A pyarrow table with a row per state; its columns: `tightrope.learning.result_table`."""
        return result_table(self)

    def to_dataframe(self) -> Any:
        """The same as a pandas data frame."""
        return to_pandas(self.to_arrow())

    def to_json(self) -> dict[str, Any]:
        """The keys of `tightrope learn --json`."""
        plain: dict[str, Any] = to_plain(outcome_of(self))
        return plain


def widths_of(model: ParametricMDP, sets: Sets, box: tuple[FloatArray, FloatArray] | None) -> Widths:
    """Widths of the sets' bounds by expression (the widest transition of each), and of the parameters."""
    width = np.zeros(len(model.expressions))
    _widen(model.expression, sets.lower, sets.upper, width)
    low, high = box if box is not None else (None, None)
    return Widths(width, width[model.expressions.nonconstant], low, high)


@kernel
def _widen(expression: IndexArray, lower: FloatArray, upper: FloatArray, width: FloatArray) -> None:
    """The largest width of each expression's transitions."""
    for t in range(len(expression)):
        width[expression[t]] = max(width[expression[t]], upper[t] - lower[t])


def excluded_in(counts: Counts | None) -> str | None:
    """Words about rows that were dropped because the model has no such transition, else None."""
    words = [problem.words for problem in EXCLUDED]
    missing = () if counts is None else counts.design.censored
    found = next((text for text in missing if any(word in text for word in words)), None)
    return None if found is None else f"transitions were seen that the model excludes: {found}"


def rests_on(ledger: Ledger, options: LearnOptions, fit: ModelFit | None) -> tuple[Assumed, ...]:
    """All that a learned guarantee rests on: the model, the data, and what was stated beside them."""
    tested = f"{MODEL_RIGHT}; " + (NOT_TESTED if fit is None else f"tested: {fit.text}")
    found = [*ledger.assumptions, Assumed("model", Kept.STATED, tested)]
    if options.assume_support is not None:
        least = f"no transition that can happen has a probability below {options.assume_support:g}"
        found.append(Assumed("support", Kept.STATED, least))
    if ledger.of_costs and options.cost_model is not None:
        found.append(Assumed("costs", Kept.STATED, options.cost_model.text))
    return tuple(found)
