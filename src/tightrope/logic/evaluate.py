"""The value of a formula in every state, from the inside out.

Operators P and R are solved with certified bounds; a threshold holds where the bound on its side meets it and
fails where the other one misses it. A formula inside the path of another operator must be decided in every
state; otherwise `UndecidedError` is raised. A and E are decided by the graph of all transitions that nature
can make possible.

*One unknown model within intervals* (`UncertainEvaluation`): bounds hold for every such model.
Every operator is answered twice, with nature against and for its value; the answers enclose its value in
every plain model within the intervals. Thresholds hold, fail or stay open for all of them. Arithmetic, logic,
filters and quantiles (Kleene's logic, interval arithmetic) preserve this. On the agent's side the bound is a
guarantee: a policy attains it against nature without knowing the model.

* *A and E*: the same paths in all plain models if nature can cut no transition, else refused.
* *CVaR* of a minimising agent: nature maximises v + E[(X − v)⁺] / (1 − α) for every v, so the least over v
  bounds the agent's least CVaR in every model from above.
* *multi(…)*: achieved points hold for every nature; what one nature prevents stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np

from tightrope.errors import CannotCertify
from tightrope.logic.formula import Formula
from tightrope.logic.multi_objective import Achieved, answer_multi
from tightrope.logic.operators import Operators
from tightrope.logic.reward_bounds import find_quantile, read_threshold
from tightrope.logic.temporal import Translator, reach_by_progression
from tightrope.logic.values import StateBounds, StateTruth, require_constant, round_half_up
from tightrope.model.graph import components as branching
from tightrope.model.graph.support import Support
from tightrope.model.mdp import JOINT_BOUNDS, MDP, IntervalMDP
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.model.product import Letters
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import BoolArray, FloatArray, OffsetArray, offsets
from tightrope.numerics.rounding import error_factor
from tightrope.prism.expand.expressions import check_arity
from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse.property_syntax import (
    Branching,
    Filter,
    Multi,
    PathFormula,
    PathOperator,
    ValueOperator,
    spell,
)
from tightrope.prism.parse.syntax import (
    Binary,
    Call,
    Complaint,
    Conditional,
    Expression,
    Literal,
    Type,
    Unary,
    children,
    position_of,
)
from tightrope.prism.properties.query import Query
from tightrope.prism.properties.resolve import StateFormulas
from tightrope.prism.properties.shape import has_operators, is_simple_path, nodes, without_negation
from tightrope.solver.equations.system import assume_support as with_support
from tightrope.solver.solution import Solution, SolveOptions

MOST_POWER = 1000
FINEST = 1e-12
"""How close bounds are looked for once more where they leave a threshold inside a formula open."""


class UndecidedError(CannotCertify):
    """Bounds of a formula inside another one lie on both sides of its threshold."""


class Evaluation:
    """The formulas of one query on one model; `operators` has what a reader must be told of them."""

    why_open = (
        "the certified bounds of its value lie on both sides of the threshold. The value may be the "
        f"threshold itself; move it by more than {FINEST:g}"
    )

    def __init__(
        self,
        model: MDP | IntervalMDP,
        query: Query,
        effort: SolveOptions,
        assume_support: float | None = None,
    ):
        self.model = model if assume_support is None else with_support(model, assume_support)
        self.structure = model.structure
        self.query, self.file, self.options, self.effort = query, query.syntax, query.options, effort
        self._support = Support.of(self.model)
        self._formulas: StateFormulas = query.state_formulas(self._decide_states)
        self.operators = self._make_operators()
        if isinstance(model, IntervalMDP) and model.factored is not None and assume_support is not None:
            self.operators.tell(JOINT_BOUNDS)
        self._whole: Expression | None = None
        self._top: Expression | None = None
        self._done: dict[int, tuple[Expression, StateTruth | StateBounds]] = {}

    def _make_operators(self) -> Operators:
        return Operators(self.model, self.query, self.effort, self._formulas, self._decide_states)

    def value(self, expression: Expression, everywhere: bool = True) -> StateTruth | StateBounds:
        """What an expression is worth in every state, or at least in the initial one."""
        self._whole, self._top = expression, None if everywhere else expression
        return self._value(expression)

    def several(self, multi: formulas.Multi) -> list[Achieved]:
        """What is achieved of several objectives at once, from every initial state."""

        def solved(model: MDP | IntervalMDP, objective: Objective, policy: Policy | None) -> Solution:
            return self.operators.solve(model, objective, self.effort.precision / 4, policy)

        if self.options.is_interval:
            self.operators.tell("in multi(…) nature opposes every objective")
        if len(self.structure.initial_states) > 1:
            self.operators.tell("points of multi(…) are those of the first initial state")
        model, precision = self.operators.tell_joint(), self.effort.precision
        return [
            answer_multi(multi, self.file, model, self._formulas, precision, solved, start)
            for start in self.structure.initial_states
        ]

    def states(self, expression: Expression) -> BoolArray:
        """The states in which a state formula holds."""
        return self._formulas.states(expression)

    def _value(self, expression: Expression) -> StateTruth | StateBounds:
        if isinstance(expression, formulas.Multi):
            raise Complaint("multi(…) cannot be part of a formula", expression.position)
        if isinstance(expression, formulas.StateOperator):
            known = self._done.get(id(expression))
            if known is None:
                known = self._done[id(expression)] = (expression, self._operator(expression))
            return known[1]
        if not has_operators(expression):
            if (
                isinstance(expression, Binary)
                and expression.operator == "/"
                and self._is_zero(expression.right)
            ):
                left = StateBounds(*self._formulas.numbers(expression.left))
                return left.times(StateBounds.constant(np.inf, np.inf, self.structure.states))
            if self._formulas.is_number(expression):
                return StateBounds(*self._formulas.numbers(expression))
            return StateTruth.of(self._formulas.states(expression))
        if isinstance(expression, Call) and expression.function == "pow":
            return self._power(expression)
        return combine_values(expression, [self._value(part) for part in children(expression)])

    def _is_zero(self, expression: Expression) -> bool:
        """Whether a divisor is the decimal 0.0, as in 1.0/0.0, which is how infinity is written."""
        return isinstance(expression, Literal) and expression.type is Type.DOUBLE and expression.value == 0

    def _power(self, expression: Call) -> StateBounds:
        check_arity("pow", len(expression.arguments), expression.position)
        base, exponent = expression.arguments
        if has_operators(exponent):
            raise Complaint("the exponent of a result is not a result itself", position_of(exponent))
        given, above = self._formulas.numbers(exponent)
        times = np.abs(given)
        if (given != above).any() or (given % 1 != 0).any() or times.max() > MOST_POWER:
            message = f"the exponent of a result is a whole number from -{MOST_POWER} to {MOST_POWER}"
            raise Complaint(message, position_of(exponent))
        value, ones = as_number(self._value(base), base), np.ones(self.structure.states)
        power = result = one = StateBounds(ones, ones)
        for number in range(1, int(times.max()) + 1):
            power = power.times(value)
            result = power.where(times == number, result)
        return one.divided_by(result).where(given < 0, result) if (given < 0).any() else result

    def _operator(self, expression: formulas.StateOperator) -> StateTruth | StateBounds:
        if isinstance(expression, formulas.Branching):
            if self.options.is_timed and any(getattr(part, "bound", None) for part in nodes(expression.path)):
                raise Complaint(
                    "A and E take no bound on time",
                    expression.position,
                    "ask P>=1 [ F<=t … ] or P>0 [ F<=t … ]",
                )
            return StateTruth.of(decide_branching(expression, self._formulas, self._support))
        if isinstance(expression, formulas.Filter):
            if expression.kind == "range" and expression is not self._whole:
                raise Complaint(
                    "a range of values is not a number: filter(range, …) cannot be part of a formula",
                    expression.position,
                )
            restricted = np.ones(self.structure.states, np.bool_)
            if expression.states is not None:
                restricted = self._formulas.states(expression.states)
            return apply_filter(expression, self._value(expression.operand), restricted)
        if isinstance(expression, formulas.Quantile):
            return self._quantile(expression)
        assert isinstance(expression, formulas.ValueOperator)
        starts, is_whole = self._starts(expression), expression is self._whole
        if expression.comparison is None:
            return self.operators.bounds(expression, self.effort.precision, starts, is_whole)[0]
        return self._meets(expression, starts, list(self.structure.initial_states), is_whole)

    def _meets(
        self,
        operator: formulas.ValueOperator,
        starts: OffsetArray,
        needed: Sequence[int] | BoolArray,
        is_whole: bool = False,
    ) -> StateTruth:
        """Where a value meets its threshold; bounds that leave a `needed` state open are refined once."""
        bounds, threshold = self.operators.bounds(operator, self.effort.precision, starts, is_whole)
        assert operator.comparison is not None and threshold is not None
        truth = bounds.meets(operator.comparison, threshold)
        if truth.is_open[needed].any():
            finest = min(FINEST, self.effort.precision)
            bounds, _ = self.operators.bounds(operator, finest, starts, is_whole)
            truth = bounds.meets(operator.comparison, threshold)
        return truth

    def _quantile(self, quantile: formulas.Quantile) -> StateBounds:
        """The least or largest bound for which a threshold is met."""
        threshold = read_threshold(quantile)
        for constant in (*self._formulas.constants.types, *self.structure.valuations):
            if constant == quantile.variable:
                raise Complaint(
                    f"'{quantile.variable}' is already defined: a quantile needs a new variable",
                    quantile.position,
                )
        starts = self._starts(quantile)
        wanted = np.zeros(self.structure.states, np.bool_)
        wanted[starts] = True

        result, _ = find_quantile(threshold, lambda o: self._meets(o, starts, wanted), wanted)
        return result

    def _starts(self, operator: Expression) -> OffsetArray:
        """The states from which a product is built: all, or the initial ones where only they count."""
        if self.effort.controller and operator is self._whole:
            return np.array([self.structure.initial])
        states = range(self.structure.states)
        return np.array(self.structure.initial_states if operator is self._top else states)

    def _decide_states(self, expression: Expression) -> BoolArray:
        """Where a formula inside another one holds; every state must be decided."""
        known = self._done.get(id(expression))
        is_threshold = isinstance(expression, formulas.ValueOperator) and expression.comparison is not None
        if is_threshold and (known is None or as_truth(known[1], expression).is_open.any()):
            assert isinstance(expression, formulas.ValueOperator)
            truth = self._meets(expression, self._starts(expression), range(self.structure.states))
            self._done[id(expression)] = (expression, truth)
        value = as_truth(self._value(expression), expression)
        if not value.is_open.any():
            return value.holds
        state = int(np.argmax(value.is_open))
        text, where = spell(expression, self.file), self.structure.state_name(state)
        more = int(np.count_nonzero(value.is_open))
        raise UndecidedError(
            f"{text} is not decided in {more:,} state{'s' if more > 1 else ''}, such as {where}: "
            f"{self.why_open}"
        )


# Expressions and filters over values. `filter(kind, operand, states)` is monotone in every value, so bounds
# of a minimum are minima of bounds. A count lies between the states that certainly satisfy the operand and
# those that may; `argmin` and `argmax` hold where a state certainly attains the extremum, and fail where it
# certainly does not.

_WHOLE: dict[str, Callable[[FloatArray], FloatArray]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": round_half_up,
}


def combine_values(
    expression: Expression, values: Sequence[StateTruth | StateBounds]
) -> StateTruth | StateBounds:
    """The value of an expression, from those of its parts."""
    parts = children(expression)
    if isinstance(expression, Unary):
        if expression.operator == "!":
            return as_truth(values[0], parts[0]).negated()
        return as_number(values[0], parts[0]).negated()
    if isinstance(expression, Binary):
        logic = expression.operator in ("&", "|", "=>", "<=>")
        if logic or (expression.operator in ("=", "!=") and isinstance(values[0], StateTruth)):
            one, other = (as_truth(value, part) for value, part in zip(values, parts, strict=True))
            return _logic(expression.operator, one, other)
        first, second = (as_number(value, part) for value, part in zip(values, parts, strict=True))
        return _arithmetic(expression.operator, first, second)
    if isinstance(expression, Conditional):
        return _conditional(as_truth(values[0], parts[0]), values[1], values[2], expression)
    assert isinstance(expression, Call)
    return _call(expression, [as_number(value, part) for value, part in zip(values, parts, strict=True)])


def as_truth(value: StateTruth | StateBounds, expression: Expression) -> StateTruth:
    """The truth of an expression, or a complaint where it is a number."""
    if isinstance(value, StateTruth):
        return value
    hint = None
    if isinstance(expression, ValueOperator):
        letter = "R" if expression.is_reward else "P"
        hint = f"inside a formula an operator has a threshold: {letter}>=0.5 [ … ]"
    raise Complaint("this is a number, where true or false is required", position_of(expression), hint)


def as_number(value: StateTruth | StateBounds, expression: Expression) -> StateBounds:
    """The bounds of an expression, or a complaint where it is true or false."""
    if isinstance(value, StateBounds):
        return value
    raise Complaint("this is true or false, where a number is required", position_of(expression))


def _logic(operator: str, one: StateTruth, other: StateTruth) -> StateTruth:
    if operator == "&":
        return one.both(other)
    if operator in ("|", "=>"):
        return (one if operator == "|" else one.negated()).either(other)
    return one.same(other).negated() if operator == "!=" else one.same(other)


def _arithmetic(operator: str, first: StateBounds, second: StateBounds) -> StateTruth | StateBounds:
    if operator == "+":
        return first.plus(second)
    if operator == "-":
        return first.plus(second.negated())
    if operator == "*":
        return first.times(second)
    if operator == "/":
        return first.divided_by(second)
    return first.compare(operator, second)


def _conditional(
    condition: StateTruth,
    then: StateTruth | StateBounds,
    otherwise: StateTruth | StateBounds,
    expression: Conditional,
) -> StateTruth | StateBounds:
    if isinstance(then, StateTruth) and isinstance(otherwise, StateTruth):
        chosen = condition.both(then).either(condition.negated().both(otherwise))
        holds, fails = then.holds & otherwise.holds, then.fails & otherwise.fails  # whatever the condition
        return StateTruth(chosen.holds | holds, chosen.fails | fails)
    one, other = as_number(then, expression.then), as_number(otherwise, expression.otherwise)
    known = [condition.holds, condition.fails]
    lower = np.select(known, [one.lower, other.lower], np.minimum(one.lower, other.lower))
    upper = np.select(known, [one.upper, other.upper], np.maximum(one.upper, other.upper))
    return StateBounds(lower, upper, max(one.unit, other.unit))


def _call(expression: Call, values: Sequence[StateBounds]) -> StateBounds:
    function = expression.function
    check_arity(function, len(values), expression.position)
    if function in ("log", "mod"):
        raise Complaint(f"{function} of a result is not supported", expression.position)
    if function in _WHOLE:
        return values[0].through(_WHOLE[function])
    return reduce(StateBounds.smaller if function == "min" else StateBounds.larger, values)


_OF_TRUTH = frozenset(["forall", "exists", "count"])
_OF_NUMBERS = frozenset(["min", "max", "sum", "avg", "range", "argmin", "argmax"])


def apply_filter(
    filter_: Filter, operand: StateTruth | StateBounds, states: BoolArray
) -> StateTruth | StateBounds:
    """The value in every state: the same everywhere, or where states are listed, that of each state."""
    kind = filter_.kind
    if not states.any():
        raise Complaint(
            f"filter({kind}, …) has no states: none satisfies what it is restricted to", filter_.position
        )
    if kind in _OF_TRUTH and isinstance(operand, StateBounds):
        raise Complaint(
            f"filter({kind}, …) is about a formula that is true or false, not a number", filter_.position
        )
    if kind in _OF_NUMBERS and isinstance(operand, StateTruth):
        raise Complaint(
            f"filter({kind}, …) is about numbers, not a formula that is true or false", filter_.position
        )
    if kind == "state" and np.count_nonzero(states) > 1:
        raise Complaint(
            f"filter(state, …) is about one state, but {np.count_nonzero(states):,} are meant",
            filter_.position,
            "filter(first, …), min or max take several",
        )
    if kind in ("print", "printall"):
        return operand
    if isinstance(operand, StateTruth):
        return _of_truth(kind, operand, states)
    return _of_numbers(kind, operand, states)


def _of_truth(kind: str, operand: StateTruth, states: BoolArray) -> StateTruth | StateBounds:
    size, holds, fails = len(states), operand.holds[states], operand.fails[states]
    if kind == "count":
        return StateBounds.constant(float(holds.sum()), float((~fails).sum()), size)
    if kind == "forall":
        return _settle(bool(holds.all()), bool(fails.any()), size)
    if kind == "exists":
        return _settle(bool(holds.any()), bool(fails.all()), size)
    return _settle(bool(holds[0]), bool(fails[0]), size)  # first, and the only one of `state`


def _of_numbers(kind: str, operand: StateBounds, states: BoolArray) -> StateTruth | StateBounds:
    size, lower, upper = len(states), operand.lower[states], operand.upper[states]
    if kind in ("argmin", "argmax"):
        sign = operand if kind == "argmin" else operand.negated()
        low, high = sign.lower[states], sign.upper[states]
        least = np.partition(low, 1)[:2] if len(low) > 1 else np.append(low, np.inf)
        others = np.where((sign.lower == least[0]) & states, least[1], least[0])
        attains = states & (sign.upper <= others)
        return StateTruth(attains, ~states | (sign.lower > high.min()))
    if kind == "min":
        return StateBounds.constant(float(lower.min()), float(upper.min()), size)
    if kind == "max":
        return StateBounds.constant(float(lower.max()), float(upper.max()), size)
    if kind == "range":
        return StateBounds.constant(float(lower.min()), float(upper.max()), size)
    if kind in ("sum", "avg"):
        total = StateBounds.constant(_total(lower, False), _total(upper, True), size)
        count = float(len(lower))
        return total if kind == "sum" else total.divided_by(StateBounds.constant(count, count, size))
    return StateBounds.constant(float(lower[0]), float(upper[0]), size)  # first, and the only one of `state`


@np.errstate(over="ignore")
def _total(values: FloatArray, upward: bool) -> float:
    """A sum, rounded outward; of −∞ and ∞ together nothing is known."""
    if not np.isfinite(values).all():
        both = np.isposinf(values).any() and np.isneginf(values).any()
        return (np.inf if upward else -np.inf) if both else float(values.sum())
    if not np.any(values % 1) and np.abs(values).sum() < 2.0**53:
        return float(values.sum())  # whole numbers: exact
    error = error_factor(len(values) + 2) * float(np.abs(values).sum()) + 1e-300
    total = float(np.nan_to_num(values.sum()))  # a double, where the sum is beyond them
    return float(np.nextafter(total + error, np.inf) if upward else np.nextafter(total - error, -np.inf))


def _settle(holds: bool, fails: bool, size: int) -> StateTruth:
    return StateTruth(np.full(size, holds), np.full(size, fails))


# --- A and E -------------------------------------------------------------------------------


def decide_branching(expression: Branching, formulas: StateFormulas, support: Support) -> BoolArray:
    """The states in which A [ … ] or E [ … ] holds."""
    path, negated = without_negation(expression.path)
    if not isinstance(path, PathFormula) or not is_simple_path(path) or path.bound is not None:
        translator = Translator(formulas)
        formula, negation = translator.both_ways(expression.path)
        sought = negation if expression.is_universal else formula
        holds = some_path(support, sought, translator.atoms)
        return ~holds if expression.is_universal else holds
    every = expression.is_universal != negated
    left = None if path.left is None else formulas.states(path.left)
    states = branching_states(support, path.operator, left, formulas.states(path.right), every)
    return ~states if negated else states


def some_path(support: Support, formula: Formula, atoms: list[BoolArray]) -> BoolArray:
    """The states from which some path satisfies a formula (CTL*): transitions are choices, won surely."""
    structure, possible = support.structure, np.flatnonzero(support.possible)
    state = structure.choice_state[structure.transition_choice[possible]]
    steps = Structure(
        choice_start=offsets(np.bincount(state, minlength=structure.states)),
        transition_start=np.arange(len(possible) + 1),
        successor=structure.successor[possible],
        declared_mdp=True,
    )
    chosen = MDP(steps, np.ones(len(possible)))
    letters = Letters.of(atoms, structure.states)
    reach = reach_by_progression(chosen, formula, letters, np.arange(structure.states))
    states = branching.backward_reachable(Support.of(reach.model), reach.target, through=reach.allowed)
    return states[: structure.states]


def branching_states(
    support: Support, operator: PathOperator, left: BoolArray | None, right: BoolArray, every: bool
) -> BoolArray:
    """The states from which every path, or some path, satisfies an operator over sets of states."""
    if operator is PathOperator.NEXT:
        return ~branching.some_next(support, ~right) if every else branching.some_next(support, right)
    allowed, target = np.ones(len(right), np.bool_) if left is None else left, right
    if operator is PathOperator.GLOBALLY:  # b W false
        allowed, target = right, np.zeros(len(right), np.bool_)
    elif operator is PathOperator.RELEASE:  # a R b is b W (a & b)
        allowed, target = right, allowed & right
    is_weak = operator not in (PathOperator.EVENTUALLY, PathOperator.UNTIL)
    if every:  # a U b fails on the paths of !b W (!a & !b), and the other way round
        allowed, target, is_weak = ~target, ~allowed & ~target, not is_weak
    states = branching.backward_reachable(support, target, through=allowed)
    if is_weak:
        states = states | branching.some_always(support, allowed)
    return ~states if every else states


class UncertainEvaluation(Evaluation):
    """The formulas of one query on every plain model within an interval model."""

    why_open = "the sets leave its value on both sides of the threshold"

    def _make_operators(self) -> Operators:
        return UncertainOperators(self.model, self.query, self.effort, self._formulas, self._decide_states)

    def _operator(self, expression: formulas.StateOperator) -> StateTruth | StateBounds:
        if isinstance(expression, Branching):
            require_constant(self.model, "A and E")
        return super()._operator(expression)

    def several(self, multi: Multi) -> list[Achieved]:
        open_ = [one for one in multi.objectives if isinstance(one, ValueOperator) and one.comparison is None]
        if len(open_) > 1:
            raise Complaint(
                "the curve of two objectives needs a model without uncertainty",
                multi.position,
                "ask for one value beside thresholds",
            )
        try:
            return [self._guaranteed(one, open_) for one in super().several(multi)]
        except Complaint as error:
            if "no policy meets" not in error.message:
                raise
            raise Complaint(
                "no policy meets all thresholds in every possible model",
                multi.position,
                "collect more data, or ask for less",
            ) from None

    @staticmethod
    def _guaranteed(achieved: Achieved, open_: list[ValueOperator]) -> Achieved:
        if achieved.bounds is None:
            is_open = achieved.verdict == "false"
            return replace(achieved, verdict="not certified") if is_open else achieved
        most = float("inf") if open_[0].is_reward else 1.0
        lower, upper = achieved.bounds
        bounds = (lower, most) if open_[0].agent == "max" else (0.0, upper)
        return replace(achieved, bounds=bounds)


class UncertainOperators(Operators):
    """Operators with nature against and for their value."""

    is_enclosing = True

    def bounds(
        self, operator: ValueOperator, precision: float, starts: OffsetArray, is_whole: bool
    ) -> tuple[StateBounds, Fraction | None]:
        ends = []
        for nature in ("min", "max"):
            agent = operator.agent
            if agent is None and not self.structure.has_choices:
                agent = nature
            elif agent is None and operator.comparison is not None:
                agent = "min" if operator.comparison.startswith(">") else "max"
            directed = operator if agent is None else replace(operator, agent=agent, nature=nature)
            ends.append(super().bounds(directed, precision, starts, is_whole))
        (low, threshold), (high, _) = ends
        return StateBounds(low.lower, high.upper, max(low.unit, high.unit)), threshold
