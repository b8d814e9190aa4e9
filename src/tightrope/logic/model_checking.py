"""Model checking: any property of a plain or interval model, with certified bounds or a certain truth."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from tightrope.errors import InputError
from tightrope.logic.evaluate import Evaluation, UncertainEvaluation
from tightrope.logic.multi_objective import Achieved
from tightrope.logic.timed import TimedEvaluation
from tightrope.logic.values import StateBounds, StateTruth, under
from tightrope.model.continuous import CTMC, IntervalCTMC, MarkovAutomaton
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.policy import Policy
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.numerics.text import interval_text
from tightrope.prism.parse.property_syntax import Filter, Multi, ValueOperator
from tightrope.prism.parse.syntax import Binary, Call, Expression
from tightrope.prism.properties.query import Query
from tightrope.solver.solution import InitialValues, SolveOptions, verdict_of, width
from tightrope.verdict import Assessment, Assumed

SPARE = 10
"""Parts of arithmetic are solved so many times as closely as the result is required."""


BELIEVED = "automaton-believed"
"""The status of an answer that is right if an automaton of another program is."""


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Record):
    """The value or truth of a formula in every state.

    * A number: `lower ≤ value ≤ upper` for every state.
    * A truth: `holds` and `fails`; a state in neither is undecided.
    * `achieved`: points and policies of `multi(…)`; two `=?` are a curve, without bounds or truth.
    * `controller`: the policy of a temporal formula, if requested, and the interval that it `attained`.
    * `listed`: the states that `filter(print, …)` lists.
    * `trusts_translator`: the answer uses an unchecked automaton of another program.
    * `readings`: how an ambiguous text was read.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})], labels={"end": [1]})
    >>> answer = tr.solve(model, 'E [ G !"end" ] & P>=1 [ F "end" ]')
    >>> answer.truth, answer.verdict.word.value
    ('true', 'proved')
    """

    text: str
    structure: Structure = field(repr=False)
    readings: tuple[str, ...]
    missed: tuple[str, ...]
    gap: float
    precision: float
    relative: bool
    iterations: int
    seconds: float = field(compare=False)
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    holds: BoolArray | None = None
    fails: BoolArray | None = None
    listed: BoolArray | None = None
    trusts_translator: bool = False
    achieved: Achieved | None = field(default=None, repr=False)
    controller: Policy | None = field(default=None, repr=False)
    attained: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        freeze_fields(self)

    def _title_(self) -> str:
        if self.bounds is None and self.truth is None and self.achieved is not None:
            return f"Answer: a curve through {len(self.achieved.points)} points"
        if self.bounds is None:
            return f"Answer: {self.truth} at the initial state"
        return f"Answer: {interval_text(*self.bounds)} at the initial state"

    def _facts_(self) -> Facts:
        notes = [("note", reading) for reading in self.readings]
        return [("asked", self.text), ("verdict", self.verdict.word.value), *notes]

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Those of the initial state, or over all of several; None where the formula is true or false."""
        if self.lower is None or self.upper is None:
            return None
        initial = InitialValues.of(self.structure, self.lower, self.upper)
        return initial.lower, initial.upper

    @property
    def truth(self) -> str | None:
        """'true', 'false' or 'not certified' for all initial states; None for a number."""
        if self.holds is None or self.fails is None:
            return None
        return verdict_of(self.structure, self.holds, self.fails)

    @property
    def verdict(self) -> Assessment:
        """`proved` where it is answered; an automaton that another program made is a stated assumption."""
        made = "it was made by a program that the user named, and nobody has checked it"
        assumed = [Assumed.stated("automaton", made)] if self.trusts_translator else []
        return Assessment.of(assumed, limit=None if self.is_answered else self.trouble)

    @property
    def is_certified(self) -> bool:
        """Whether it is answered, and no unchecked program is trusted."""
        return self.is_answered and not self.trusts_translator

    @property
    def is_answered(self) -> bool:
        """Whether the truth is certain, or the bounds of the initial state are as close as was asked."""
        if self.truth is not None:
            return self.truth != "not certified"
        return self.gap <= self.precision

    @property
    def status(self) -> str:
        if not self.is_answered:
            return "not-certified"
        return BELIEVED if self.trusts_translator else "certified"

    @property
    def trouble(self) -> str:
        """Why it is not certified."""
        reasons = "; ".join(self.missed) or "the bounds of its parts leave it open. Try a finer precision."
        return f"{self.text}: {reasons}"


def check_query(
    query: Query,
    model: MDP | IntervalMDP | CTMC | IntervalCTMC | MarkovAutomaton,
    effort: SolveOptions,
    assume_support: float | None = None,
    everywhere: bool = True,
    uncertain: bool = False,
    policy: Policy | None = None,
) -> Answer:
    """The answer to a query; `uncertain`: for all models within intervals; `policy`: of its chain."""
    if policy is not None:
        if (
            not policy.is_deterministic
            or policy.steps is not None
            or isinstance(model, CTMC | IntervalCTMC | MarkovAutomaton)
        ):
            raise InputError(
                f"{query.text} requires a policy that takes one choice per state", hint="leave `policy` out"
            )
        model = under(model, policy.choice)
        query = query.on(model.structure)
    with query.source.complaints():
        return _answer(query, model, effort, assume_support, everywhere, uncertain)


def _answer(
    query: Query,
    model: MDP | IntervalMDP | CTMC | IntervalCTMC | MarkovAutomaton,
    effort: SolveOptions,
    assume_support: float | None,
    everywhere: bool,
    uncertain: bool,
) -> Answer:
    begin = time.perf_counter()
    formula = query.formula
    assert formula is not None
    adds_errors = isinstance(formula, Binary | Call | Filter)
    finer = replace(effort, precision=effort.precision / SPARE) if adds_errors else effort
    evaluation: Evaluation
    if isinstance(model, CTMC | IntervalCTMC | MarkovAutomaton):
        evaluation = TimedEvaluation(model, query, finer)
    else:
        kind = UncertainEvaluation if uncertain else Evaluation
        evaluation = kind(model, query, finer, assume_support)
    if isinstance(formula, Multi):
        return _answer_several(query, formula, evaluation, effort, begin)
    value = evaluation.value(formula, everywhere)
    lower = upper = holds = fails = None
    gap = 0.0
    if isinstance(value, StateBounds):
        lower, upper = value.lower, value.upper
        at = list(model.structure.initial_states)
        gap = float(width(lower[at], upper[at], effort.relative, value.unit).max())
        if isinstance(formula, Filter) and formula.kind == "range":
            gap = _range_gap(formula, evaluation, effort.relative)
    else:
        holds, fails = value.holds, value.fails
    listed = _select_listed(formula, value, evaluation)
    answer = _blank(query, evaluation, effort, begin)
    return replace(answer, lower=lower, upper=upper, holds=holds, fails=fails, gap=gap, listed=listed)


def _answer_several(
    query: Query, multi: Multi, evaluation: Evaluation, effort: SolveOptions, begin: float
) -> Answer:
    """What is achieved of several objectives, from every initial state."""
    several, states = evaluation.several(multi), evaluation.structure.states
    starts, verdicts = list(evaluation.structure.initial_states), [one.verdict for one in several]
    answer = replace(_blank(query, evaluation, effort, begin), achieved=several[0])
    if several[0].bounds is not None:
        lower, upper = (np.full(states, end) for end in (-np.inf, np.inf))
        for state, one in zip(starts, several, strict=True):
            assert one.bounds is not None
            lower[state], upper[state] = one.bounds
        low, high = lower[starts], upper[starts]
        size = np.where(np.isfinite(low), np.maximum(1.0, np.abs(low)), 1.0)
        return replace(answer, lower=lower, upper=upper, gap=float((width(low, high, False) / size).max()))
    if is_curve(multi):
        return replace(answer, gap=0.0 if verdicts == ["certified"] else np.inf)
    holds, fails = (np.zeros(states, np.bool_) for _ in range(2))
    for state, verdict in zip(starts, verdicts, strict=True):
        holds[state], fails[state] = verdict == "true", verdict == "false"
    return replace(answer, holds=holds, fails=fails)


def _blank(query: Query, evaluation: Evaluation, effort: SolveOptions, begin: float) -> Answer:
    """An answer without its value: what was noted on the way to it."""
    operators = evaluation.operators
    steered = operators.steered
    return Answer(
        text=query.text,
        structure=evaluation.structure,
        readings=tuple(operators.readings),
        missed=tuple(operators.missed),
        gap=0.0,
        precision=effort.precision,
        relative=effort.relative,
        iterations=operators.iterations,
        seconds=time.perf_counter() - begin,
        trusts_translator=operators.trusts_translator,
        controller=None if steered is None else steered.controller,
        attained=None if steered is None else (steered.attained.lower, steered.attained.upper),
    )


def _range_gap(formula: Filter, evaluation: Evaluation, relative: bool) -> float:
    """How far the bounds of the smallest and of the largest value are apart; their distance is no gap."""
    ends = [evaluation.value(replace(formula, kind=kind), True) for kind in ("min", "max")]
    return max(float(width(e.lower, e.upper, relative).max()) for e in ends if isinstance(e, StateBounds))


def is_curve(formula: Expression | None) -> bool:
    """Whether it asks for two objectives at once."""
    if not isinstance(formula, Multi):
        return False
    open_objectives = [p for p in formula.objectives if isinstance(p, ValueOperator) and p.comparison is None]
    return len(open_objectives) == 2


def _select_listed(
    formula: Expression, value: StateTruth | StateBounds, evaluation: Evaluation
) -> BoolArray | None:
    """`print` lists the states that may have another value than 0 or false, `printall` all of them."""
    if not isinstance(formula, Filter) or formula.kind not in ("print", "printall", "argmin", "argmax"):
        return None
    states = np.ones(evaluation.structure.states, np.bool_)
    if formula.states is not None:
        states = evaluation.states(formula.states)
    if formula.kind == "printall":
        return states
    other = ~value.fails if isinstance(value, StateTruth) else (value.lower != 0) | (value.upper != 0)
    return states & other
