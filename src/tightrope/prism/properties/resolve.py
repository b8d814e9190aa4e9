"""Resolution of properties: directions of agent and nature, paths and rewards.

**Directions.** `Pmaxmin` names both, agent first. Otherwise:

* `Pmax=?`, `Rmin>=3`: on an interval MDP nature helps the agent (`Pmaxmax`), as in PRISM, and the `Query`
  names the robust form; on a chain the direction is nature's. On a parametric model nature opposes the agent
  (`Pmaxmin`): the value is a guarantee.
* `P=?`, `R=?`: only if there is nothing to decide.
* `P>=x`, `P>x`: for all policies and all of nature, so both minimise; `P<=x`, `P<x`: both maximise. PRISM and
  Storm read them in the same way.

**Paths.** Bounds limit the step at which the formula is decided, and stay the same in a complement:

* `F b` is `true U b`; `G b` is the complement of `F !b`;
* `a W b` is the complement of `(a & !b) U (!a & !b)`, as in PRISM;
* `a R b` is the complement of `!a U !b`; `!` is the complement of what follows it;
* `<k` is `<=k-1`, `>k` is `>=k+1`, `=k` is `[k,k]`: time is discrete.

The complement of a maximum is a minimum, so the caller reverses both directions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Durations, ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.rationals import RationalArray
from tightrope.prism.expand import expressions
from tightrope.prism.expand.constants import resolve_constants
from tightrope.prism.expand.model import BUILT_IN_LABELS, check_labels
from tightrope.prism.expand.program import Definitions
from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse import syntax
from tightrope.prism.parse.property_syntax import (
    PathFormula,
    PathOperator,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    StepBound,
    ValueOperator,
)
from tightrope.prism.properties import shape
from tightrope.prism.properties.capabilities import CAPABILITIES, QueryKind

# State formulas of properties as sets of states.
#
# A state formula is an expression over the model's variables, constants and formulas and over labels: those
# of the property file, those of the model, and "init" and "deadlock", which every model has. Labels become
# boolean columns beside the variables, then the whole formula is evaluated on all states at once. Operators
# inside (P, R, A, E, filter) become columns too, where who asks can evaluate them.


class StateFormulas:
    """Evaluates the expressions of one property file on one structure."""

    def __init__(
        self,
        file: formulas.PropertyFile,
        structure: Structure,
        definitions: Definitions,
        given: Mapping[str, str],
        nested: Callable[[syntax.Expression], BoolArray] | None = None,
    ):
        self._nested = nested
        self._clocks = definitions.clocks
        self._structure = structure
        self._variables = {
            name: syntax.Type.BOOL if column.dtype == np.bool_ else syntax.Type.INT
            for name, column in structure.valuations.items()
        }
        self._check_declarations(file, definitions)
        self._labels = {label.name: label for label in file.labels}
        self._open_labels: list[str] = []
        self._formulas = expressions.Inliner(definitions.formulas, "formulas")
        outer = {name: expressions.literal(value, None) for name, value in definitions.constants.items()}
        declared = {constant.name for constant in file.constants}
        self.constants = resolve_constants(
            file.constants,
            {name: text for name, text in given.items() if name in declared},
            self._formulas,
            self._variables,
            outer,
            parameters_allowed=False,
            used={part.name for part in syntax.parts_of(file) if isinstance(part, syntax.Name)},
        )

    def inlined(self, expression: syntax.Expression) -> syntax.Expression:
        """The expression with the model's formulas written out; no formula may speak of a clock."""
        written_out = self._formulas.inline(expression)
        for part in syntax.parts_of(written_out):
            if isinstance(part, syntax.Name) and part.name in self._clocks:
                raise syntax.Complaint(
                    f"'{part.name}' is a clock, which counts only as far as the model compares it",
                    part.position,
                    "compare it in a guard of its module that sets a variable, and ask for that variable",
                )
        return written_out

    def states(self, expression: syntax.Expression) -> BoolArray:
        """The states in which a formula holds."""
        written_out = self.inlined(expression)
        if isinstance(written_out, syntax.Label):
            return self.label(written_out.name, written_out.position)
        folded, columns = self._folded(written_out, syntax.Type.BOOL, "a state formula")
        if isinstance(folded, syntax.Literal):
            return np.full(self._structure.states, bool(folded.value), dtype=np.bool_)
        members: BoolArray = self._evaluate(folded, columns)
        return members

    def is_number(self, expression: syntax.Expression) -> bool:
        """Whether an expression without operators is a number in every state, and not true or false."""
        columns: dict[str, BoolArray] = {}
        written_out = self._labels_as_columns(self.inlined(expression), columns)
        return expressions.type_of(written_out, self._scope(written_out, columns)) is not syntax.Type.BOOL

    def numbers(self, expression: syntax.Expression) -> tuple[FloatArray, FloatArray]:
        """The doubles around the exact value in every state; both are the value where it is a double."""
        folded, columns = self._folded(self.inlined(expression), syntax.Type.DOUBLE, "an expression")
        if isinstance(folded, syntax.Literal):
            exact = RationalArray.constant(Fraction(folded.value), self._structure.states)
        else:
            values = self._evaluate(folded, columns)
            exact = values if isinstance(values, RationalArray) else RationalArray.from_integers(values)
        return exact.to_float_down() + 0.0, exact.to_float_up() + 0.0  # no zero has a sign

    def number(self, expression: syntax.Expression, type_: syntax.Type, what: str) -> Fraction:
        """The value of a threshold or a step bound."""
        if shape.has_operators(expression) or shape.is_path(expression):
            raise syntax.Complaint(f"{what} must be constant", syntax.position_of(expression))
        written_out = self._formulas.inline(expression)
        for name in syntax.names(written_out):
            if name.name in self._variables:
                raise syntax.Complaint(
                    f"{what} must be constant, but depends on variable '{name.name}'", name.position
                )
        expressions.check_type(written_out, self.constants.types, type_, what)
        return Fraction(expressions.value_of(expressions.fold(written_out, self.constants.values)))

    def label(self, name: str, position: syntax.Position | None) -> BoolArray:
        """The states with a label."""
        if name in self._labels:
            return self._find_label(name, position)
        members = self._structure.labels.get(name)
        if members is not None:
            return members
        if name in BUILT_IN_LABELS:
            built_in = np.zeros(self._structure.states, dtype=np.bool_)
            built_in[self._structure.initial] = name == "init"
            return built_in
        known = {*self._labels, *self._structure.labels, *BUILT_IN_LABELS}
        raise syntax.Complaint(
            f'there is no label "{name}"', position, syntax.suggestion(name, known, "labels")
        )

    def _find_label(self, name: str, position: syntax.Position | None) -> BoolArray:
        if name in self._open_labels:
            circle = " → ".join([*self._open_labels, name])
            raise syntax.Complaint(f"labels refer to each other in a circle: {circle}", position)
        self._open_labels.append(name)
        members = self.states(self._labels[name].expression)
        self._open_labels.pop()
        return members

    def _labels_as_columns(
        self, expression: syntax.Expression, columns: dict[str, BoolArray]
    ) -> syntax.Expression:
        """The formula with every label replaced by the (otherwise impossible) name of a column."""
        if isinstance(expression, syntax.Label):
            column = f'"{expression.name}"'
            columns[column] = self.label(expression.name, expression.position)
            return syntax.Name(column, expression.position)
        if isinstance(expression, formulas.PathFormula):
            raise syntax.Complaint(
                f"{expression.operator.value} cannot stand here: a formula about states is required",
                expression.position,
                "it is about paths, and stands inside P=? [ … ], A [ … ] or E [ … ]",
            )
        if isinstance(expression, formulas.StateOperator):
            if self._nested is None:
                raise syntax.Complaint(
                    f"{_operator_name(expression)} inside another formula is not supported here",
                    syntax.position_of(expression),
                    "`check` and tr.solve take it, of models whose states are seen",
                )
            column = f'"operator {len(columns)}"'
            columns[column] = self._nested(expression)
            return syntax.Name(column, syntax.position_of(expression))
        return syntax.with_children(
            expression,
            tuple(self._labels_as_columns(child, columns) for child in syntax.children(expression)),
        )

    def _folded(
        self, written_out: syntax.Expression, type_: syntax.Type, what: str
    ) -> tuple[syntax.Expression, dict[str, BoolArray]]:
        """What is left of an expression of this type, and the columns that its labels are."""
        columns: dict[str, BoolArray] = {}
        without_labels = self._labels_as_columns(written_out, columns)
        expressions.check_type(without_labels, self._scope(without_labels, columns), type_, what)
        return expressions.fold(without_labels, self.constants.values), columns

    def _scope(
        self, expression: syntax.Expression, columns: Mapping[str, BoolArray]
    ) -> dict[str, syntax.Type]:
        scope = {**self.constants.types, **self._variables, **dict.fromkeys(columns, syntax.Type.BOOL)}
        self._suggest_quotes(expression, scope)
        return scope

    def _evaluate(self, expression: syntax.Expression, columns: Mapping[str, BoolArray]) -> Any:
        from tightrope.prism.explore.compile import evaluate

        states = self._structure.states
        used = {name.name for name in syntax.names(expression)}
        valuations = {
            name: column if column.dtype == np.bool_ else column.astype(np.int64)
            for name, column in self._structure.valuations.items()
            if name in used
        }
        return evaluate(expression, {**valuations, **columns}, states)

    def _suggest_quotes(self, expression: syntax.Expression, scope: Mapping[str, syntax.Type]) -> None:
        for name in syntax.names(expression):
            if name.name not in scope and (name.name in self._labels or name.name in self._structure.labels):
                raise syntax.Complaint(
                    f"'{name.name}' is not declared", name.position, f'a label is quoted: "{name.name}"'
                )

    def _check_declarations(self, file: formulas.PropertyFile, definitions: Definitions) -> None:
        selected = {*self._variables, *definitions.constants, *definitions.formulas}
        for constant in file.constants:
            if constant.name in selected:
                raise syntax.Complaint(f"'{constant.name}' is declared twice", constant.position)
            selected.add(constant.name)
        check_labels(file.labels)
        for label in file.labels:
            if label.name in self._structure.labels:
                raise syntax.Complaint(f'the model has a label "{label.name}" already', label.position)


def _operator_name(expression: syntax.Expression) -> str:
    if isinstance(expression, formulas.ValueOperator):
        return "R" if expression.is_reward else "P"
    if isinstance(expression, formulas.Branching):
        return "A" if expression.is_universal else "E"
    return "quantile" if isinstance(expression, formulas.Quantile) else "filter"


@dataclass(frozen=True)
class PropertyOptions:
    """Context of a property besides its text and the structure.

    `definitions`: the model's constants and formulas (None: those of the structure); `constants`: texts of
    `--const` for constants of the property file. `is_interval`: nature picks probabilities. `discount` turns
    `C` into the discounted reward; `terminal_reward` names the reward structure with the values of target
    states.
    """

    definitions: Definitions | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    is_interval: bool = False
    is_timed: bool = False
    """Bounds on paths and rewards are times, not steps."""
    discount: float | None = None
    terminal_reward: str | None = None


_OPERATOR = re.compile(r"(LRA|[PRS])((?:\s*\{[^}]*\})?)\s*(?:max|min)?(?:max|min)?(?=\s*(?:=|<|>))")


def with_letters(text: str, agent: Direction, nature: Direction) -> str:
    """The property with both directions spelled out, the agent's first: `Pmaxmin=? [ … ]`."""
    letters = f"{agent.value.lower()}{nature.value.lower()}"
    return _OPERATOR.sub(lambda match: f"{match.group(1)}{match.group(2)}{letters}", text, count=1)


@dataclass(frozen=True)
class DirectionReading:
    """How a property with one direction was read on a model in which agent and nature both decide."""

    taken: str
    """The property as it was read, with two directions."""
    robust: str
    """The same with nature against the agent."""

    @property
    def warning(self) -> str:
        return (
            "with one direction, nature helps the agent of an interval MDP, as in PRISM: read as "
            f"{self.taken}; the value that is guaranteed whatever nature does is {self.robust}"
        )


def read_objective(
    operator: ValueOperator,
    file: PropertyFile,
    structure: Structure,
    options: PropertyOptions,
    nested: Callable[[syntax.Expression], BoolArray] | None = None,
) -> Objective:
    """The objective of one P or R; `nested` evaluates operators inside its state formulas."""
    with syntax.SourceText(file.source, file.file).complaints():
        formulas = formulas_of(file, structure, options, nested)
        agent, nature, _ = read_directions(operator, file, structure, options)
        if isinstance(operator.path, RewardFormula):
            reward = reward_structure_of(operator, structure)
            if operator.cvar_level is not None and operator.path.operator is RewardOperator.DISCOUNTED:
                raise syntax.Complaint("CVaR of discounted costs is not supported", operator.path.position)
            return _reward_objective(operator.path, reward, formulas, structure, (agent, nature), options)
        refuse_reward_options(options)
        return path_objective(operator.path, formulas, agent, nature)


def formulas_of(
    file: PropertyFile,
    structure: Structure,
    options: PropertyOptions,
    nested: Callable[[syntax.Expression], BoolArray] | None = None,
) -> StateFormulas:
    """The state formulas of a file on a structure."""
    definitions = options.definitions or cast("Definitions | None", structure.definitions) or Definitions()
    return StateFormulas(file, structure, definitions, options.constants, nested)


def read_directions(
    operator: ValueOperator, file: PropertyFile, structure: Structure, options: PropertyOptions
) -> tuple[Direction, Direction, DirectionReading | None]:
    """Who wants what, and how that was read where one direction stands for two."""
    agent, nature = _directions(operator, structure, options.is_interval)
    if not options.is_interval or operator.agent is None or operator.nature is not None or structure.is_chain:
        return agent, nature, None
    written = file.text_of(operator)
    robust = with_letters(written, agent, agent.opposite)
    return agent, nature, DirectionReading(with_letters(written, agent, nature), robust)


def _directions(
    operator: ValueOperator, structure: Structure, is_interval: bool
) -> tuple[Direction, Direction]:
    if operator.agent is not None:
        agent = Direction(operator.agent)
        if operator.nature is not None:
            return agent, Direction(operator.nature)
        return agent, agent if is_interval else agent.opposite
    if operator.comparison is not None:
        direction = Direction.MIN if operator.comparison.startswith(">") else Direction.MAX
        return direction, direction
    is_share = not operator.is_reward and isinstance(operator.path, RewardFormula)
    letter = "R" if operator.is_reward else "S" if is_share else "P"
    letter = "CVaR" if operator.cvar_level is not None else letter
    if structure.has_choices:
        raise syntax.Complaint(
            f"{letter}=? is ambiguous: the model has choices, and the value depends on the policy",
            operator.position,
            f"write {letter}max=? or {letter}min=?",
        )
    if is_interval:
        raise syntax.Complaint(
            f"{letter}=? is ambiguous: the model has interval probabilities, which nature chooses",
            operator.position,
            f"write {letter}max=? or {letter}min=?",
        )
    return Direction.MAX, Direction.MIN


def _reward_objective(
    path: RewardFormula,
    reward: RewardStructure,
    formulas: StateFormulas,
    structure: Structure,
    directions: tuple[Direction, Direction],
    options: PropertyOptions,
) -> Objective:
    discount = options.discount
    if discount is not None and path.operator is not RewardOperator.TOTAL:
        raise InputError(
            "a discount factor is for the total reward only", Location("`discount`"), "write  R… [ C ]"
        )
    if options.terminal_reward is not None and path.operator is not RewardOperator.REACH:
        raise InputError(
            "a terminal reward needs target states", Location("`terminal_reward`"), "write  R… [ F target ]"
        )
    if path.operator is RewardOperator.REACH:
        assert path.target is not None
        return Objective(
            ObjectiveKind.REACH_REWARD,
            *directions,
            target=formulas.states(path.target),
            reward=reward,
            terminal=_terminal(options.terminal_reward, structure),
        )
    if path.operator is RewardOperator.INSTANTANEOUS:
        assert path.bound is not None
        steps = whole_steps(path.bound, formulas, False)
        last, nothing = _of_states(reward, structure), RewardStructure()
        return Objective(
            ObjectiveKind.CUMULATIVE, *directions, upper_steps=steps, reward=nothing, terminal=last
        )
    if path.operator is RewardOperator.CUMULATIVE:
        assert path.bound is not None
        steps = whole_steps(path.bound, formulas, path.bound_strict)
        return Objective(ObjectiveKind.CUMULATIVE, *directions, upper_steps=steps, reward=reward)
    if path.operator is RewardOperator.DISCOUNTED:
        assert path.bound is not None
        factor = formulas.number(path.bound, syntax.Type.DOUBLE, "a discount factor")
        discount = float(factor)  # the nearest double is what is asked, as with the option
        if options.is_timed or not 0 < discount < 1:
            problem = "discounts per step cannot be used with continuous time"
            outside = f"the discount factor is {discount:g}, not within (0, 1)"
            raise syntax.Complaint(
                problem if options.is_timed else outside,
                syntax.position_of(path.bound) or path.position,
                "R=? [ C<=t ] adds up what is earned until t" if options.is_timed else None,
            )
    if discount is None:
        return Objective(ObjectiveKind.TOTAL, *directions, reward=reward)
    if not 0 < discount < 1:
        raise InputError(f"the discount factor is {discount}, not within (0, 1)", Location("`discount`"))
    return Objective(ObjectiveKind.DISCOUNTED, *directions, reward=reward, discount=discount)


def named_reward(wanted: str | None, position: syntax.Position, structure: Structure) -> RewardStructure:
    """By name, by number from 1 (`R{2}`), or the first where the property names none."""
    known = [name for name, reward in structure.rewards.items() if not isinstance(reward, Durations)]
    if wanted is not None and wanted in structure.rewards:
        return structure.rewards[wanted]
    if not known:
        hint = 'T=? [ F "goal" ] asks for an expected time' if structure.rewards else None
        raise syntax.Complaint("the model has no reward structure", position, hint)
    if wanted is None:
        return structure.rewards[known[0]]
    if wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= len(known):
        return structure.rewards[known[int(wanted) - 1]]
    if wanted.isdecimal():
        raise syntax.Complaint(
            f"there is no reward structure {wanted}; the model has {len(known)}, counted from 1", position
        )
    raise syntax.Complaint(
        f'there is no reward structure "{wanted}"',
        position,
        syntax.suggestion(wanted, known, "reward structures"),
    )


def reward_structure_of(operator: ValueOperator, structure: Structure) -> RewardStructure:
    """The reward structure of an operator."""
    return named_reward(operator.reward_name, operator.position, structure)


def _terminal(name: str | None, structure: Structure) -> FloatArray | None:
    if name is None:
        return None
    if name not in structure.rewards:
        raise InputError(
            f"there is no reward structure '{name}'",
            Location("`terminal_reward`"),
            syntax.suggestion(name, structure.rewards, "reward structures"),
        )
    return _of_states(structure.rewards[name], structure)


def _of_states(reward: RewardStructure, structure: Structure) -> FloatArray:
    """What states earn, without their choices."""
    if isinstance(reward, ParametricReward) or reward.is_summed:
        raise InputError(
            "these rewards were added up by choice, for their parameters or successors: what states alone "
            "earn is not known",
            hint="give the values of parameters as constants: --const p=0.5",
        )
    return np.zeros(structure.states) if reward.state is None else reward.state


def threshold_of(operator: ValueOperator, formulas: StateFormulas) -> Fraction | None:
    """The number that a value is compared with; None for `=?`."""
    if operator.threshold is None:
        return None
    threshold = formulas.number(operator.threshold, syntax.Type.DOUBLE, "a threshold")
    if not operator.is_reward and not 0 <= threshold <= 1:
        raise syntax.Complaint(
            "the threshold of P must lie in [0, 1]",
            syntax.position_of(operator.threshold) or operator.position,
        )
    return threshold


def refuse_reward_options(options: PropertyOptions) -> None:
    """A probability has no discount and no terminal reward."""
    if options.discount is not None:
        raise InputError("a discount factor is for rewards only", Location("`discount`"))
    if options.terminal_reward is not None:
        raise InputError("a terminal reward is for rewards only", Location("`terminal_reward`"))


def path_objective(
    expression: syntax.Expression, formulas: StateFormulas, agent: Direction, nature: Direction
) -> Objective:
    """The problem whose value, or whose complement's, is the probability of a simple path formula."""
    shape.check_is_path(expression)
    path, negated = shape.without_negation(expression)
    if not isinstance(path, PathFormula) or not shape.is_simple_path(path):
        subject = CAPABILITIES[QueryKind.LTL].subject
        raise syntax.Complaint(f"{subject} not supported here", shape.first_temporal(expression))
    target, left = formulas.states(path.right), None if path.left is None else formulas.states(path.left)
    lower, upper = steps_of(path.bound, formulas, path.position)
    allowed, complement = left, path.operator in _BANS
    if path.operator in (PathOperator.GLOBALLY, PathOperator.RELEASE):
        target, allowed = ~target, None if left is None else ~left
    elif path.operator is PathOperator.WEAK_UNTIL:
        assert left is not None
        target, allowed = ~left & ~target, left & ~target
    if complement != negated:
        agent, nature = agent.opposite, nature.opposite
    return Objective(
        ObjectiveKind.NEXT if path.operator is PathOperator.NEXT else ObjectiveKind.UNTIL,
        agent,
        nature,
        target=target,
        allowed=allowed,
        lower_steps=lower,
        upper_steps=upper,
        complement=complement != negated,
    )


_BANS = (PathOperator.GLOBALLY, PathOperator.WEAK_UNTIL, PathOperator.RELEASE)
"""Their probability is that of the complement of an until formula."""


def whole_steps(expression: syntax.Expression, formulas: StateFormulas, is_strict: bool) -> int:
    """An upper bound on steps, inclusive."""
    steps = int(formulas.number(expression, syntax.Type.INT, "a step bound")) - is_strict
    if steps < 0:
        raise syntax.Complaint(
            f"no step is {'<' if is_strict else '<='} {steps + is_strict}", syntax.position_of(expression)
        )
    return steps


def steps_of(
    bound: StepBound | None, formulas: StateFormulas, position: syntax.Position
) -> tuple[int, int | None]:
    if bound is None:
        return 0, None
    lower, upper = 0, None
    if bound.lower is not None:
        lower = int(formulas.number(bound.lower, syntax.Type.INT, "a step bound")) + bound.lower_strict
        if lower - bound.lower_strict < 0:
            raise syntax.Complaint("a step bound cannot be negative", syntax.position_of(bound.lower))
    if bound.upper is not None:
        upper = whole_steps(bound.upper, formulas, bound.upper_strict)
        if upper < lower:
            raise syntax.Complaint(
                f"the step bound [{lower},{upper}] is empty", syntax.position_of(bound.upper) or position
            )
    return lower, upper
