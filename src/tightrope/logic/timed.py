"""Properties of chains in continuous time and Markov automata.

Untimed formulas are evaluated on the embedded chain, time bounds by uniformisation, long-run averages on the
uniformised chain. P(a U[t1,t2] b) is the value of `a U<=t2−t1 b` at t1, expected over paths that stay in a
until then. Open and closed time intervals differ only at 0. Markov automata take optimal choices
(`continuous.decisions`); averages are the best quotient of reward by time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from time import monotonic

import numpy as np

from tightrope.continuous.decisions import EventHorizon, expect_optimally, refuse_zeno
from tightrope.continuous.discrete import embed, embed_robustly, uniform_chain, uniform_robust_chain
from tightrope.continuous.transient import Pair, TimeHorizon, earn_until, expect_at
from tightrope.errors import InputError
from tightrope.logic.evaluate import Evaluation
from tightrope.logic.long_run import bound_quotient_average
from tightrope.logic.operators import Operators, OperatorTask
from tightrope.logic.values import StateBounds
from tightrope.model.continuous import CTMC, IntervalCTMC, MarkovAutomaton
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray
from tightrope.numerics.rationals import RationalArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.rounding import down, up
from tightrope.numerics.text import interval_text
from tightrope.prism.parse.property_syntax import (
    Multi,
    PathFormula,
    PathOperator,
    Quantile,
    RewardFormula,
    RewardOperator,
    StepBound,
    ValueOperator,
)
from tightrope.prism.parse.syntax import Complaint, Expression, Type, parts_of, position_of
from tightrope.prism.properties import resolve
from tightrope.prism.properties.capabilities import CAPABILITIES, ModelKind, QueryKind
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.shape import is_simple_path, nodes, operator_kind, without_negation
from tightrope.solver.solution import SolveOptions, width


@dataclass(frozen=True)
class TimeBound:
    """From `begin` to `end` (None: for ever); `after_start` says that the very beginning does not count."""

    begin: Fraction
    end: Fraction | None
    after_start: bool


class TimedEvaluation(Evaluation):
    """The formulas of one property file on one chain in continuous time."""

    def __init__(self, chain: CTMC | IntervalCTMC | MarkovAutomaton, query: Query, effort: SolveOptions):
        self.chain = chain
        if query.options.discount is not None:
            raise Complaint("discounts per step cannot be used with continuous time", None, _INSTEAD)
        super().__init__(_jumps(chain), query, effort)

    def _make_operators(self) -> Operators:
        kind = AutomatonOperators if isinstance(self.chain, MarkovAutomaton) else TimedOperators
        return kind(self.chain, self.query, self.effort, self._formulas, self._decide_states)

    def _quantile(self, quantile: Quantile) -> StateBounds:
        row = CAPABILITIES[QueryKind.QUANTILE]
        raise Complaint(f"{row.subject} not supported in continuous time", quantile.position, _INSTEAD)


_INSTEAD = "P=? [ F<=t a ] bounds the time itself; of chains R=? [ C<=t ] adds up what is earned until then"


_UNCOUNTED = "ask with F, G or U, which count no steps"


def _jumps(chain: CTMC | IntervalCTMC | MarkovAutomaton, highest_rewards: bool = True) -> MDP | IntervalMDP:
    """The model in discrete time that answers what does not speak of time."""
    if isinstance(chain, MarkovAutomaton):
        return chain.untimed
    return embed(chain) if isinstance(chain, CTMC) else embed_robustly(chain, highest_rewards)


class TimedOperators(Operators):
    """Operators that may speak of time."""

    efforts: Sequence[float] = (1e-10, 1e-50, 1e-150)
    """Of the precision: what is left out of Poisson sums, first and where values are too small for that."""

    def __init__(
        self,
        chain: CTMC | IntervalCTMC | MarkovAutomaton,
        query: Query,
        effort: SolveOptions,
        formulas: resolve.StateFormulas,
        nested: Callable[[Expression], BoolArray],
    ):
        self.chain = chain
        self._deadline = monotonic() + effort.seconds
        super().__init__(_jumps(chain), query, effort, formulas, nested)

    def _maximises(self, operator: ValueOperator) -> bool:
        """Whether the largest value is wanted, of all rates within intervals or over all choices."""
        agent, nature, reading = resolve.read_directions(operator, self.file, self.structure, self.options)
        if reading is not None:
            self.tell(reading.warning)
        return (agent if isinstance(self.chain, MarkovAutomaton) else nature) is Direction.MAX

    def _horizon(self, time: Fraction, maximise: bool, precision: float, effort: float) -> TimeHorizon:
        return TimeHorizon(time, precision * effort, maximise, self._deadline)

    def bounds(
        self, operator: ValueOperator, precision: float, starts: OffsetArray, is_whole: bool
    ) -> tuple[StateBounds, Fraction | None]:
        """See `Operators`; bounds on time are answered here."""
        _refuse(operator, isinstance(self.chain, IntervalCTMC))
        if isinstance(self.chain, IntervalCTMC) and operator.is_reward:
            _, nature, _ = resolve.read_directions(operator, self.file, self.structure, self.options)
            self.model = _jumps(self.chain, nature is Direction.MAX)
            self.structure = self.model.structure
        path = operator.path
        if isinstance(path, RewardFormula):
            if path.operator in (RewardOperator.CUMULATIVE, RewardOperator.INSTANTANEOUS):
                return self._timed_reward(operator, path, precision), resolve.threshold_of(
                    operator, self._formulas
                )
            return super().bounds(operator, precision, starts, is_whole)
        simple, negated = without_negation(path)
        if isinstance(simple, PathFormula) and simple.bound is not None and operator.condition is None:
            return self._timed_path(operator, simple, negated, precision), resolve.threshold_of(
                operator, self._formulas
            )
        return super().bounds(operator, precision, starts, is_whole)

    # --- paths -----------------------------------------------------------------------------

    def _timed_path(
        self, operator: ValueOperator, path: PathFormula, negated: bool, precision: float
    ) -> StateBounds:
        resolve.refuse_reward_options(self.options)
        assert path.bound is not None
        bound = time_bound(path.bound, self._formulas)
        problem = resolve.path_objective(
            replace(path, bound=None), self._formulas, Direction.MAX, Direction.MAX
        )
        complement = problem.complement != negated
        maximise = self._maximises(operator) != complement
        later = self._solve_unbounded(problem, maximise, precision) if bound.end is None else None

        def bounded(effort: float) -> tuple[Pair, int]:
            how = self._horizon(bound.begin, maximise, precision, effort)
            return until(self.chain, problem, bound, how, later)

        low, high = self._refine(operator, bounded, precision, complement)
        return StateBounds(low, high)

    def _solve_unbounded(self, problem: Objective, maximise: bool, precision: float) -> Pair:
        direction = Direction.MAX if maximise else Direction.MIN
        objective = Objective(
            ObjectiveKind.UNTIL, direction, direction, target=problem.target, allowed=problem.allowed
        )
        solution = self.solve(self.model, objective, precision / 4)
        self.iterations += solution.iterations
        return np.maximum(solution.lower, 0.0), np.minimum(solution.upper, 1.0)

    def _refine(
        self,
        operator: ValueOperator,
        compute: Callable[[float], tuple[Pair, int]],
        precision: float,
        complement: bool = False,
    ) -> Pair:
        """Bounds as close as was asked, by leaving out less of the Poisson sums where that is needed."""
        pair: Pair | None = None
        for effort in self.efforts:
            result, steps = compute(effort)
            self.iterations += steps
            low, high = (
                result if pair is None else (np.maximum(pair[0], result[0]), np.minimum(pair[1], result[1]))
            )
            pair = low, high
            if complement:
                low, high = np.maximum(down(1.0 - high), 0.0), np.minimum(up(1.0 - low), 1.0)
            if not operator.is_reward:
                high = np.minimum(high, 1.0)
            if isinstance(self.chain, IntervalCTMC):
                return low, high  # how far nature makes them go is no lack of precision
            at = list(self.structure.initial_states)
            if float(width(low[at], high[at], self.effort.relative).max()) <= precision:
                return low, high
            if monotonic() > self._deadline:
                break
        self.missed.append(f"{self.file.text_of(operator)}: {self.why_wide}. Try a coarser precision.")
        return low, high

    why_wide = "rounding in uniformisation left its bounds wider than asked"

    # --- rewards ---------------------------------------------------------------------------

    def _timed_reward(self, operator: ValueOperator, path: RewardFormula, precision: float) -> StateBounds:
        assert path.bound is not None
        if self.options.terminal_reward is not None:
            raise Complaint("terminal rewards cannot be used with bounds on time", operator.position)
        time = time_of(path.bound, self._formulas)
        _, nature, _ = resolve.read_directions(operator, self.file, self.structure, self.options)
        maximise = nature is Direction.MAX
        name = _reward_name(operator, self)
        is_moment = path.operator is RewardOperator.INSTANTANEOUS
        chain = self.chain
        assert not isinstance(chain, MarkovAutomaton)
        earned = self._moment_rewards(name) if is_moment else self._find_earnings(name, maximise)
        floor = min(0.0, float(earned.min()))
        shifted = earned if floor == 0.0 else up(earned - floor)
        everything, nothing = np.ones(len(earned), np.bool_), np.zeros(len(earned))

        def computed(effort: float) -> tuple[Pair, int]:
            horizon = self._horizon(time, maximise, precision, effort)
            if is_moment:
                (low, high), steps = expect_at(chain, everything, nothing, shifted, horizon)
                moved = RationalArray.constant(Fraction(floor), 1)
            else:
                (low, high), steps = earn_until(chain, shifted, horizon)
                moved = RationalArray.constant(Fraction(floor) * time, 1)
            if floor != 0.0:
                low = down(low + moved.to_float_down()) - _rounding(shifted, time, is_moment)
                high = up(high + moved.to_float_up())
            return (low, high), steps

        low, high = self._refine(operator, computed, precision)
        return StateBounds(low, high, abs(floor))

    def _find_earnings(self, name: str, highest: bool) -> FloatArray:
        """What states earn per unit of time, transitions included."""
        if isinstance(self.chain, CTMC):
            return self.chain.earned[name]
        assert isinstance(self.chain, IntervalCTMC)
        return self.chain.earned[name][1 if highest else 0]

    def _moment_rewards(self, name: str) -> FloatArray:
        """What states alone earn per unit of time: what is looked at in a moment."""
        known = self.chain.structure.rewards.get(name)
        return np.ones(self.chain.states) if known is None else known.per_choice(self.chain.structure)

    # --- in the long run -------------------------------------------------------------------

    def _long_run(self, task: OperatorTask) -> StateBounds:
        operator, (_, nature) = task.operator, task.directions
        assert not isinstance(self.chain, MarkovAutomaton)
        chain: MDP | IntervalMDP
        if isinstance(self.chain, CTMC):
            chain = uniform_chain(self.chain)
        else:
            chain = uniform_robust_chain(self.chain, nature is Direction.MAX)
        reward = chain.structure.rewards[_reward_name(operator, self)] if operator.is_reward else None
        return self._average(task, chain, reward, (nature, nature))


class AutomatonOperators(TimedOperators):
    """Those of Markov automata: efforts are how often the time is cut more finely (`EventHorizon`)."""

    efforts = tuple(map(float, range(10)))
    why_wide = "policies that are the same for some time and those that are not are still apart"

    def bounds(
        self, operator: ValueOperator, precision: float, starts: OffsetArray, is_whole: bool
    ) -> tuple[StateBounds, Fraction | None]:
        """See `Operators`."""
        path = operator.path
        following = [node for node in parts_of(operator) if isinstance(node, PathFormula)]
        if (node := next((n for n in following if n.operator is PathOperator.NEXT), None)) is not None:
            raise Complaint("X is not supported for Markov automata", node.position, _UNCOUNTED)
        if isinstance(path, RewardFormula) and path.bound is not None:
            raise Complaint(
                "rewards up to or at a time are not supported for Markov automata",
                operator.position,
                "ask for R [ F a ], for a long-run average R [ S ], or for P [ F<=t a ]",
            )
        return super().bounds(operator, precision, starts, is_whole)

    def _horizon(self, time: Fraction, maximise: bool, precision: float, effort: float) -> TimeHorizon:
        slack = precision / 64 ** (effort - 1) if effort else np.inf
        return EventHorizon(time, precision * 1e-12, maximise, self._deadline, int(4**effort), slack)

    def _long_run(self, task: OperatorTask) -> StateBounds:
        assert isinstance(self.chain, MarkovAutomaton)
        refuse_zeno(self.chain)
        operator, model, spent = task.operator, self.chain.untimed, self.chain.spent
        if operator.is_reward:
            earned = resolve.reward_structure_of(operator, model.structure).per_choice(model.structure)
        else:
            path = operator.path
            assert isinstance(path, RewardFormula) and path.target is not None
            earned = np.where(self._formulas.states(path.target)[model.structure.choice_state], spent, 0.0)
        solve = self._solver(task.precision / 4)
        bounds = self._noted(
            task, bound_quotient_average(model, earned, spent, task.directions, task.precision, solve)
        )
        if operator.is_reward:
            return bounds
        return StateBounds(np.maximum(bounds.lower, 0.0), np.minimum(bounds.upper, 1.0), 1.0)


def until(
    chain: CTMC | IntervalCTMC | MarkovAutomaton,
    problem: Objective,
    bound: TimeBound,
    before: TimeHorizon,
    later: Pair | None,
) -> tuple[Pair, int]:
    """Bounds on P(a U[t1,t2] b), `before` with the time t1; `later`: of the unbounded until without t2."""

    def expected(
        active: BoolArray, worth: FloatArray, values: FloatArray, horizon: TimeHorizon
    ) -> tuple[Pair, int]:
        if isinstance(chain, MarkovAutomaton):
            return expect_optimally(chain, active, worth, values, horizon)
        return expect_at(chain, active, worth, values, horizon)

    assert problem.target is not None
    allowed = np.ones(chain.states, np.bool_) if problem.allowed is None else problem.allowed
    steps = 0
    if bound.end is not None:
        worth = problem.target.astype(np.float64)
        window = replace(before, time=bound.end - bound.begin)
        active = allowed & ~problem.target
        later, steps = expected(active, worth, np.zeros(chain.states), window)
    assert later is not None
    if bound.begin == 0 and not bound.after_start:
        return later, steps
    nothing = np.zeros(chain.states)
    (low, _), first = expected(allowed, nothing, np.maximum(later[0], 0.0), before)
    (_, high), second = expected(allowed, nothing, later[1], before)
    return (low, high), steps + first + second


def time_bound(bound: StepBound, formulas: resolve.StateFormulas) -> TimeBound:
    """The bound on time of a path formula."""
    if bound.reward is not None:
        place = bound.upper or bound.lower
        raise Complaint(
            "bounds on rewards are not supported in continuous time",
            None if place is None else position_of(place),
            _INSTEAD,
        )
    lower = Fraction(0) if bound.lower is None else time_of(bound.lower, formulas)
    upper = None if bound.upper is None else time_of(bound.upper, formulas)
    if upper is not None and (upper < lower or (bound.upper_strict and upper == 0)):
        assert bound.upper is not None
        raise Complaint("the interval of time is empty", position_of(bound.upper))
    after_start = bound.lower is not None and (lower > 0 or bound.lower_strict)
    return TimeBound(lower, upper, after_start)


def time_of(expression: Expression, formulas: resolve.StateFormulas) -> Fraction:
    time = Fraction(formulas.number(expression, Type.DOUBLE, "a time"))
    if time < 0:
        raise Complaint("a time cannot be negative", position_of(expression))
    return time


def _reward_name(operator: ValueOperator, operators: TimedOperators) -> str:
    reward = resolve.reward_structure_of(operator, operators.structure)
    return next(name for name, known in operators.structure.rewards.items() if known is reward)


def _rounding(values: FloatArray, time: Fraction, is_moment: bool) -> float:
    """What rounding `values` up by a unit in the last place can add to the result."""
    return float(values.max(initial=0.0)) * 2.0**-50 * (1.0 if is_moment else max(1.0, float(time)))


def _refuse(operator: ValueOperator, is_interval: bool) -> None:
    """Refuse times inside of formulas, steps of chains that may dawdle, and costs of single visits."""
    row = CAPABILITIES[operator_kind(operator)]
    if ModelKind.CONTINUOUS not in row.models:
        raise Complaint(f"{row.subject} not supported in continuous time", operator.position, _INSTEAD)
    paths = [p for p in (operator.path, operator.condition) if isinstance(p, Expression)]
    if isinstance(operator.path, RewardFormula) and operator.path.target is not None:
        paths.append(operator.path.target)
    for path in paths:
        result = [node for node in nodes(path) if isinstance(node, PathFormula)]
        timed = next((node for node in result if node.bound is not None), None)
        alone = path is operator.path and is_simple_path(path) and operator.condition is None
        if timed is not None and not alone:
            raise Complaint(
                "a time bound may stand only at the single temporal operator of P, not inside formulas",
                timed.position,
            )
        following = next((node for node in result if node.operator is PathOperator.NEXT), None)
        if is_interval and following is not None:
            raise Complaint("X is not answered where rates are intervals", following.position, _UNCOUNTED)
    if is_interval and any(isinstance(node, Multi) for path in paths for node in nodes(path)):
        raise Complaint(
            "multi(…) is not answered where rates are intervals", operator.position, "ask for its parts alone"
        )


# A chain has no choices, so P=?, Pmin=? and Pmax=? ask for one number. With intervals of rates it lies
# between its bounds for nature against and for it.

NATURE = "the bounds hold for all constant rates within their intervals, and for rates that change with time"


@dataclass(frozen=True, eq=False, repr=False)
class RateBounds(Record):
    """`lower ≤ value ≤ upper` at the initial states, whatever the rates within their intervals.

    >>> import tightrope as tr
    >>> RateBounds(0.25, 0.5, 12, ())
    RateBounds: [0.25, 0.5]
    """

    lower: float
    upper: float
    iterations: int
    missed: tuple[str, ...]
    notes: tuple[str, ...] = (NATURE,)

    def _title_(self) -> str:
        return f"RateBounds: {interval_text(self.lower, self.upper)}"

    def _facts_(self) -> Facts:
        return [("missed", text) for text in self.missed]


def value_operator(query: Query) -> ValueOperator:
    """The one P, R or S of a query that asks for a number."""
    operator = query.operator
    if query.is_threshold:
        raise InputError(
            f"{query.text} is true or false, and may be true for some rates only",
            hint="ask for the value, P=? [ … ], and compare its bounds",
        )
    return operator


def bound_over_rates(chain: IntervalCTMC, query: Query, effort: SolveOptions) -> RateBounds:
    """Bounds on the value of a property over all rates of an interval chain."""
    value_operator(query)
    ends: list[StateBounds] = []
    missed: list[str] = []
    steps = 0
    for direction in ("min", "max"):
        directed = query.with_nature(direction)
        with query.source.complaints():
            evaluation = TimedEvaluation(chain, directed, effort)
            result = evaluation.value(directed.operator, everywhere=False)
        assert isinstance(result, StateBounds)
        ends.append(result)
        missed += evaluation.operators.missed
        steps += evaluation.operators.iterations
    at = list(chain.initial_states)
    return RateBounds(
        float(ends[0].lower[at].min()), float(ends[1].upper[at].max()), steps, tuple(dict.fromkeys(missed))
    )
