"""Syntax trees from parser actions: of expressions, models and properties.

The parser calls one method per recognised rule of `grammar.lark`, with the parts already built. Long chains
of `&`, `|`, `+ -` or `*` become balanced trees with the same operands in order and the same exact value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse import syntax
from tightrope.prism.parse.digital_clocks import Clock, Invariant, with_digital_clocks
from tightrope.prism.parse.property_syntax import PathFormula, RewardFormula, RewardOperator, StepBound
from tightrope.prism.parse.syntax import Complaint, Expression, Position, Type, position_of, suggestion
from tightrope.prism.parse.tables import Token

FUNCTIONS = ("min", "max", "floor", "ceil", "round", "pow", "mod", "log")

_RESERVED_TEXT = """
    bool const ctmc double dtmc endinit endmodule endrewards endsystem false formula func global init int
    endobservables label max mdp min module nondeterministic observable observables pomdp probabilistic
    rewards stochastic system true
"""
RESERVED = frozenset(_RESERVED_TEXT.split())
"""Words that can name nothing. PRISM reserves more (F, C, clock …); like Storm, we let a model use them."""

PROPERTY_WORDS = {
    "S": "a steady-state probability is written S=? [ states ], a long-run average R=? [ S ]",
    "LRA": "a long-run average is written R=? [ LRA ] or R=? [ S ]",
    "I": "an instantaneous reward is written I=k, directly behind the bracket",
    "T": 'an expected time is written T=? [ F "goal" ]',
    "quantile": 'a quantile is written quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])',
    "cosafe": "the word cosafe is not known: write the path formula alone, R=? [ (F a) & (F b) ]",
    "sim": "simulation properties are not supported",
}
PROPERTY_FORM = 'a property looks like  Pmax=? [ F "goal" ]'

_LONGEST_LEFT_CHAIN = 16
_MOST_DIGITS = 400
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class ExpressionBuilder:
    """One method a rule; the arguments are the rule's parts in their order."""

    def integer(self, number: Token) -> Expression:
        return syntax.Literal(int(_check_number(number)), Type.INT, at(number))

    def decimal(self, number: Token) -> Expression:
        return syntax.Literal(Fraction(str(_check_number(number))), Type.DOUBLE, at(number))

    def truth(self, word: Token) -> Expression:
        return syntax.Literal(word == "true", Type.BOOL, at(word))

    def name(self, name: Token) -> Expression:
        return syntax.Name(identifier(name), at(name))

    def quoted(self, name: Token) -> Expression:
        return syntax.Label(name[1:-1], at(name))

    def call(self, function: Token, *arguments: Expression) -> Expression:
        """`min(a, b)`, or `func(min, a, b)` as older files have it."""
        if function not in FUNCTIONS:
            raise Complaint(
                f"unknown function '{function}'", at(function), suggestion(function, FUNCTIONS, "functions")
            )
        return syntax.Call(str(function), arguments, at(function))

    def unary(self, operator: Token, operand: Expression) -> Expression:
        return syntax.Unary(str(operator), operand, at(operator))

    def power(self, base: Expression, operator: Token, exponent: Expression) -> Expression:
        return syntax.Call("pow", (base, exponent), position_of(base) or at(operator))

    def conditional(self, condition: Expression, then: Expression, otherwise: Expression) -> Expression:
        return syntax.Conditional(condition, then, otherwise, position_of(condition))

    def left_chain(self, *parts: Any) -> Expression:
        return _chain_left(parts[::2], parts[1::2])

    def junction(self, *parts: Any) -> Expression:
        return _balance(parts[::2], parts[1::2])

    sum = junction

    def product(self, *parts: Any) -> Expression:
        # Regrouping a quotient could divide by what is multiplied with, which may be 0.
        return (_chain_left if "/" in parts[1::2] else _balance)(parts[::2], parts[1::2])


def at(token: Token) -> Position:
    """Where a token starts."""
    return Position(token.line, token.column)


def identifier(token: Token) -> str:
    """The name a token spells, which may not be one of PRISM's own words."""
    if token in RESERVED:
        raise Complaint(
            f"'{token}' is a reserved word of the PRISM language and cannot be a name",
            at(token),
            "choose another name",
        )
    return str(token)


def unquote_identifier(token: Token, kind: str) -> str:
    """The name between quotes, where PRISM wants an identifier."""
    name = token[1:-1]
    if not _IDENTIFIER.fullmatch(name):
        raise Complaint(
            f"{token} cannot name a {kind}: letters, digits and '_' only, no digit first", at(token)
        )
    return name


def _check_number(token: Token) -> Token:
    _, _, exponent = token.lower().partition("e")
    if len(token) > _MOST_DIGITS or abs(int(exponent or 0)) > _MOST_DIGITS:
        raise Complaint(f"this number has more than {_MOST_DIGITS} digits", at(token))
    return token


def _chain_left(operands: Sequence[Expression], operators: Sequence[str]) -> Expression:
    result = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        result = syntax.Binary(str(operator), result, operand, position_of(result))
    return result


def _balance(operands: Sequence[Expression], operators: Sequence[str]) -> Expression:
    """a - b + c - d as (a - b) + (c - d): behind a minus, the right half changes its signs."""
    if len(operands) <= _LONGEST_LEFT_CHAIN:
        return _chain_left(operands, operators)
    middle = len(operands) // 2
    joint = str(operators[middle - 1])
    right_operators = operators[middle:]
    if joint == "-":
        right_operators = ["-" if operator == "+" else "+" for operator in right_operators]
    left = _balance(operands[:middle], operators[: middle - 1])
    right = _balance(operands[middle:], right_operators)
    return syntax.Binary(joint, left, right, position_of(left))


# --- models --------------------------------------------------------------------------------

_OLD_TYPES = {"probabilistic": "dtmc", "nondeterministic": "mdp", "stochastic": "ctmc"}


class DeclarationBuilder(ExpressionBuilder):
    """What models and property files have in common: constants and labels."""

    def constant(self, kind: Token | None, name: Token, value: Expression | None) -> syntax.Constant:
        return syntax.Constant(identifier(name), Type(str(kind or "int")), value, at(name))

    def label(self, name: Token, expression: Expression) -> syntax.LabelDefinition:
        return syntax.LabelDefinition(unquote_identifier(name, "label"), expression, at(name))


class ModelBuilder(DeclarationBuilder):
    """Model files."""

    def model(self, *items: object) -> Sequence[object]:
        return items

    def quoted(self, name: Token) -> Expression:
        raise Complaint(
            f"a label may not stand in a model's expressions: {name}",
            at(name),
            "use a formula with the same definition",
        )

    def model_type(self, word: Token) -> tuple[syntax.ModelType, Position]:
        return syntax.ModelType(_OLD_TYPES.get(word, str(word))), at(word)

    def observables(
        self, keyword: Token, *names: Token | None
    ) -> tuple[tuple[syntax.Observable, ...], Position]:
        given = [name for name in names if name is not None]
        each = [syntax.Observable(str(n), syntax.Name(identifier(n), at(n)), at(n), True) for n in given]
        return tuple(each), at(keyword)

    def observable(self, name: Token, expression: Expression) -> syntax.Observable:
        return syntax.Observable(unquote_identifier(name, "observable"), expression, at(name))

    def formula(self, name: Token, expression: Expression) -> syntax.Formula:
        return syntax.Formula(identifier(name), expression, at(name))

    def initial_states(self, keyword: Token, expression: Expression) -> tuple[Expression, Position]:
        return expression, at(keyword)

    def bounded_variable(
        self, name: Token, low: Expression, high: Expression, initial: Expression | None
    ) -> syntax.VariableDeclaration:
        return syntax.VariableDeclaration(identifier(name), Type.INT, low, high, initial, at(name))

    def unranged_variable(
        self, name: Token, kind: Token, initial: Expression | None
    ) -> syntax.VariableDeclaration:
        if kind == "double":
            raise Complaint(
                f"variable '{name}' cannot be a double: a state has bool and integer variables only", at(kind)
            )
        return syntax.VariableDeclaration(identifier(name), Type(str(kind)), None, None, initial, at(name))

    def clock_variable(self, name: Token, kind: Token) -> Clock:
        if kind != "clock":
            raise Complaint(f"unexpected '{kind}'", at(kind), "a variable is [low..high], bool, int or clock")
        return Clock(identifier(name), at(name))

    def invariant(self, word: Token, condition: Expression) -> Invariant:
        return Invariant(condition)

    def module(self, name: Token, *items: object) -> syntax.Module:
        variables = tuple(item for item in items if isinstance(item, syntax.VariableDeclaration))
        commands = tuple(item for item in items if isinstance(item, syntax.GuardedCommand))
        clocks = tuple(item for item in items if isinstance(item, Clock))
        invariant = next((item for item in items if isinstance(item, Invariant)), None)
        module = syntax.Module(identifier(name), variables, commands, at(name))
        return module if not (clocks or invariant) else with_digital_clocks(module, clocks, invariant)

    def renaming(self, name: Token, base: Token, *pairs: tuple[str, str]) -> syntax.ModuleRenaming:
        return syntax.ModuleRenaming(identifier(name), identifier(base), pairs, at(name))

    def rename(self, *names: Token) -> tuple[str, str]:
        return identifier(names[0]), identifier(names[-1])

    def command(
        self, bracket: Token, action: Token | None, guard: Expression, *updates: syntax.CommandUpdate
    ) -> syntax.GuardedCommand:
        return syntax.GuardedCommand(action and identifier(action), guard, updates, at(bracket))

    def markovian_command(
        self,
        bracket: Token,
        action: Token | None,
        _: Token,
        guard: Expression,
        *updates: syntax.CommandUpdate,
    ) -> syntax.GuardedCommand:
        """`<> guard -> rate : …`"""
        if action is not None:
            raise Complaint(
                "a Markovian command moves alone, and has no action", at(action), "write  <> guard -> 2 : …;"
            )
        return syntax.GuardedCommand(None, guard, updates, at(bracket), has_rates=True)

    def certain_update(self, *parts: syntax.Assignment | Position) -> syntax.CommandUpdate:
        assignments, position = _assignments(parts)
        return syntax.CommandUpdate(syntax.Literal(1, Type.INT, position), None, assignments, position)

    def update(self, probability: Expression, *parts: syntax.Assignment | Position) -> syntax.CommandUpdate:
        assignments, position = _assignments(parts)
        return syntax.CommandUpdate(probability, None, assignments, position_of(probability) or position)

    def named_free_update(self, word: Token, *parts: syntax.Assignment | Position) -> syntax.CommandUpdate:
        """`free("name") : …`"""
        name, place = word.split('"')[1], at(word)
        if not name:
            raise Complaint("the name of a free distribution is empty", place)
        call = syntax.Call(syntax.FREE, (syntax.Label(name, place),), place)
        return syntax.CommandUpdate(call, None, _assignments(parts)[0], place)

    def interval_update(
        self, bracket: Token, lower: Expression, upper: Expression, *parts: syntax.Assignment | Position
    ) -> syntax.CommandUpdate:
        return syntax.CommandUpdate(lower, upper, _assignments(parts)[0], at(bracket))

    def no_assignment(self, word: Token) -> Position:
        return at(word)

    def assignment(self, primed: Token, value: Expression) -> syntax.Assignment:
        name = identifier(primed.respelled(primed[:-1]))
        return syntax.Assignment(name, value, at(primed))

    def rewards(self, keyword: Token, name: Token | None, *items: syntax.RewardItem) -> syntax.Rewards:
        return syntax.Rewards(name and unquote_identifier(name, "reward structure"), items, at(keyword))

    def state_reward(self, guard: Expression, reward: Expression) -> syntax.RewardItem:
        return syntax.RewardItem(False, None, guard, reward, position_of(guard) or Position(1, 1))

    def choice_reward(
        self, bracket: Token, action: Token | None, guard: Expression, reward: Expression
    ) -> syntax.RewardItem:
        return syntax.RewardItem(True, action and identifier(action), guard, reward, at(bracket))

    def system(
        self, keyword: Token, name: Token | None, composition: syntax.Composition
    ) -> syntax.NamedSystem:
        return syntax.NamedSystem(name and name[1:-1], composition, at(keyword))

    def module_name(self, name: Token) -> syntax.ModuleName:
        return syntax.ModuleName(at(name), identifier(name))

    def system_name(self, name: Token) -> syntax.SystemName:
        return syntax.SystemName(at(name), name[1:-1])

    def full_parallel(self, *parts: syntax.Composition) -> syntax.Composition:
        return _join(parts, None)

    def interleaved(self, *parts: syntax.Composition) -> syntax.Composition:
        return _join(parts, ())

    def partial(
        self, left: syntax.Composition, actions: tuple[str, ...], right: syntax.Composition
    ) -> syntax.Composition:
        return _join((left, right), actions)

    def hiding(self, inner: syntax.Composition, actions: tuple[str, ...]) -> syntax.ActionRenaming:
        return syntax.ActionRenaming(inner.position, inner, tuple(dict.fromkeys(actions).items()))

    def action_renaming(self, inner: syntax.Composition, *pairs: tuple[str, str]) -> syntax.ActionRenaming:
        return syntax.ActionRenaming(inner.position, inner, pairs)

    def action_list(self, *names: Token) -> tuple[str, ...]:
        return tuple(identifier(name) for name in names)

    action_rename = rename


def _join(parts: Sequence[syntax.Composition], actions: tuple[str, ...] | None) -> syntax.Composition:
    result = parts[0]
    for part in parts[1:]:
        result = syntax.Parallel(result.position, result, part, actions)
    return result


def _assignments(
    parts: Sequence[syntax.Assignment | Position],
) -> tuple[tuple[syntax.Assignment, ...], Position]:
    """The assignments of an update (none for `true`) and where they start."""
    if isinstance(parts[0], Position):
        return (), parts[0]
    return tuple(part for part in parts if isinstance(part, syntax.Assignment)), parts[0].position


# --- properties ----------------------------------------------------------------------------

_EXTREMA = ("max", "min", "maxmax", "maxmin", "minmax", "minmin")
_FILTERS = {"+": "sum", "&": "forall", "|": "exists"}
FILTER_KINDS = (
    *("min", "max", "argmin", "argmax", "count", "sum", "avg", "first", "range", "forall", "exists"),
    *("print", "printall", "state"),
)
Threshold = tuple[str | None, Expression | None]
Braces = tuple[Expression, frozenset[str]]
"""The states of an older form of filters, and what is required of them: min, max, both or neither."""


class PropertyBuilder(DeclarationBuilder):
    """Property files and lone properties."""

    def properties(self, *items: object) -> Sequence[object]:
        return items

    def property(self, name: Token | None, formula: Expression, end: Token | None) -> formulas.Property:
        return formulas.Property(name and name[1:-1], formula, "", position_of(formula), end is not None)

    def probability(self, operator: Token, threshold: Threshold, path: Expression, *rest: Any) -> Expression:
        condition, braces, close = rest[-3:]
        if condition is not None and not _speaks_of_paths(condition):
            raise Complaint(
                "the condition after || is a path", position_of(condition), "PRISM writes 'or' as a single |"
            )
        if not _speaks_of_paths(path):  # a state formula is about where a path begins: F<=0
            zero = syntax.Literal(0, Type.INT, at(operator))
            where = position_of(path) or at(operator)
            path = PathFormula(formulas.PathOperator.EVENTUALLY, None, path, StepBound(None, zero), where)
        made = _operator(operator, close, operator[1:], threshold, path, condition=condition)
        return _filtered(made, braces)

    def expectation(
        self,
        operator: Token,
        structure: Token | None,
        extrema: Token | None,
        threshold: Threshold,
        path: RewardFormula,
        braces: Braces | None,
        close: Token,
    ) -> Expression:
        if extrema is not None and (extrema not in _EXTREMA or len(operator) > 1):
            raise Complaint(
                f"unexpected '{extrema}' after {operator}",
                at(extrema),
                'write R{"name"}max, R{"name"}min, or agent and nature together: R{"name"}maxmin',
            )
        return _filtered(
            _operator(operator, close, extrema or operator[1:], threshold, path, structure), braces
        )

    def expected_time(
        self, operator: Token, threshold: Threshold, path: RewardFormula, close: Token
    ) -> Expression:
        """`Tmin=? [ F "goal" ]`: the rewards "time"."""
        structure = operator.respelled('"time"')
        return _operator(operator, close, operator[1:], threshold, path, structure)

    def braces(self, states: Expression, *words: Token) -> Braces:
        for word in words:
            if word not in ("min", "max"):
                raise Complaint(
                    f"unknown filter '{word}'", at(word), "{min} or {max} is expected after the states"
                )
        return states, frozenset(map(str, words))

    def tail(
        self,
        operator: Token,
        structure: Token | None,
        level: Expression,
        extrema: Token | None,
        threshold: Threshold,
        path: RewardFormula,
        close: Token,
    ) -> formulas.ValueOperator:
        if extrema is not None and extrema not in _EXTREMA:
            raise Complaint(
                f"unexpected '{extrema}' after {operator}", at(extrema), 'CVaR{"cost",0.9}min=? [ F "goal" ]'
            )
        return _operator(operator, close, extrema or "", threshold, path, structure, cvar_level=level)

    def steady_state(
        self, operator: Token, threshold: Threshold, states: Expression, braces: Braces | None, close: Token
    ) -> Expression:
        share = RewardFormula(RewardOperator.LONG_RUN, at(operator), target=states)
        extrema = operator.removeprefix("LRA").removeprefix("S")
        made = replace(_operator(operator, close, extrema, threshold, share), is_reward=False)
        return _filtered(made, braces)

    def quantile(
        self, word: Token, direction: Token, variable: Token, operand: Expression
    ) -> formulas.Quantile:
        return formulas.Quantile(direction == "min", identifier(variable), operand, at(word))

    def branching(self, operator: Token, path: Expression) -> formulas.Branching:
        return formulas.Branching(operator == "A", path, at(operator))

    def filter_query(
        self, word: Token, kind: Token, operand: Expression, states: Expression | None
    ) -> formulas.Filter:
        name = _FILTERS.get(str(kind), str(kind))
        if name not in FILTER_KINDS:
            raise Complaint(f"unknown filter '{kind}'", at(kind), suggestion(kind, FILTER_KINDS, "filters"))
        return formulas.Filter(name, operand, states, at(word))

    def call(self, function: Token, *arguments: Expression) -> Expression:
        if function == "multi":
            return formulas.Multi(arguments, at(function))
        if function in PROPERTY_WORDS:
            raise Complaint(PROPERTY_WORDS[str(function)], at(function), PROPERTY_FORM)
        return super().call(function, *arguments)

    def question(self, word: Token) -> Threshold:
        return None, None

    def threshold(self, comparison: Token, value: Expression) -> Threshold:
        return str(comparison), value

    # --- paths -----------------------------------------------------------------------------

    def next_path(self, operator: Token, operand: Expression) -> PathFormula:
        return self.unary_path(operator, None, operand)

    def unary_path(self, operator: Token, bound: StepBound | None, operand: Expression) -> PathFormula:
        return PathFormula(formulas.PathOperator(str(operator)), None, operand, bound, at(operator))

    def binary_path(
        self, left: Expression, operator: Token, bound: StepBound | None, right: Expression
    ) -> PathFormula:
        if operator not in ("U", "W", "R"):  # Rmax between two formulas
            raise Complaint(f"unexpected '{operator}'", at(operator), "expected ']' or one of U, W and R")
        position = position_of(left) or at(operator)
        return PathFormula(formulas.PathOperator(str(operator)), left, right, bound, position)

    def one_sided_bound(self, comparison: Token, steps: Expression) -> StepBound:
        if comparison == "=":
            return StepBound(steps, steps)
        if comparison in ("<", "<="):
            return StepBound(None, steps, upper_strict=comparison == "<")
        return StepBound(steps, None, lower_strict=comparison == ">")

    def reward_bound(
        self, power: Token | None, reward: Token, comparison: Token, steps: Expression
    ) -> StepBound:
        return replace(self.one_sided_bound(comparison, steps), reward=reward.strip('"'))

    def reward_window(
        self, power: Token | None, reward: Token, lower: Expression, upper: Expression
    ) -> StepBound:
        return StepBound(lower, upper, reward=reward.strip('"'))

    def named_bounds(self, power: Token, *bounds: StepBound) -> StepBound:
        """Those of rewards first: a bound on steps beside them is one of a reward of 1."""
        first, *others = sorted(bounds, key=lambda one: one.reward is None)
        if others and first.reward is None:
            raise Complaint("steps are bounded twice", at(power), "F[a,b] bounds them from both sides")
        return replace(first, also=tuple(others))

    def named_window(
        self, word: Token, reward: Token | None, lower: Expression, upper: Expression
    ) -> StepBound:
        return replace(self.named_bound(word, reward, Token("="), lower), upper=upper)

    def named_bound(
        self, word: Token, reward: Token | None, comparison: Token, steps: Expression
    ) -> StepBound:
        """`F^{rew{"cost"}<=k}`, `F^{steps<=k}`"""
        if word != "rew" if reward is not None else word not in ("steps", "time"):
            raise Complaint(
                f"unknown bound '{word}'", at(word), 'F^{rew{"cost"}<=5} bounds a reward, F^{steps<=5} steps'
            )
        bound = self.one_sided_bound(comparison, steps)
        return bound if reward is None else replace(bound, reward=reward.strip('"'))

    def window_bound(self, lower: Expression, upper: Expression) -> StepBound:
        return StepBound(lower, upper)

    # --- rewards ---------------------------------------------------------------------------

    def path_reward(self, path: Expression) -> RewardFormula:
        position = position_of(path) or Position(1, 1)
        if isinstance(path, syntax.Name):
            word = PROPERTY_WORDS.get(path.name) or f"unexpected '{path.name}'"
            raise Complaint(word, position, "R takes F, C<=k, C, I=k, or a path formula")
        if not isinstance(path, PathFormula) or path.operator is not formulas.PathOperator.EVENTUALLY:
            return RewardFormula(RewardOperator.CO_SAFE, position, target=path)
        if path.bound is not None:
            raise Complaint(
                "R [ F … ] takes no bound on steps", position, "R [ C<=k ] adds up the rewards of k steps"
            )
        return RewardFormula(RewardOperator.REACH, position, target=path.right)

    def cumulative_reward(self, operator: Token, comparison: Token, steps: Expression) -> RewardFormula:
        strict = comparison == "<"
        return RewardFormula(RewardOperator.CUMULATIVE, at(operator), bound=steps, bound_strict=strict)

    def late_reward(self, operator: Token, comparison: Token, steps: Expression) -> RewardFormula:
        window = self.one_sided_bound(comparison, steps)
        return RewardFormula(RewardOperator.WINDOW, at(operator), window=window)

    def window_reward(self, operator: Token, first: Expression, last: Expression) -> RewardFormula:
        return RewardFormula(RewardOperator.WINDOW, at(operator), window=StepBound(first, last))

    def bare_reward(self, operator: Token) -> RewardFormula:
        return RewardFormula(
            RewardOperator.TOTAL if operator == "C" else RewardOperator.LONG_RUN, at(operator)
        )

    def bounded_reward(self, operator: Token, bound: Expression) -> RewardFormula:
        kind = RewardOperator.INSTANTANEOUS if operator.startswith("I") else RewardOperator.DISCOUNTED
        return RewardFormula(kind, at(operator), bound=bound)


def _filtered(operator: formulas.ValueOperator, braces: Braces | None) -> Expression:
    """An operator with a filter in braces; a threshold must be met in all of the states."""
    if braces is None:
        return operator
    states, words = braces
    kind = "range" if len(words) == 2 else next(iter(words), "state")
    kind = "forall" if operator.comparison is not None else kind
    return formulas.Filter(kind, operator, states, operator.position, in_braces=True)


def _operator(
    operator: Token,
    close: Token,
    extrema: str,
    threshold: Threshold,
    path: Expression | RewardFormula,
    structure: Token | None = None,
    **more: Any,
) -> formulas.ValueOperator:
    """P, R, S or CVaR; agent and nature are read from "", "max" or "maxmin"."""
    return formulas.ValueOperator(
        isinstance(path, RewardFormula),
        structure and structure.strip('"'),
        extrema[:3] or None,
        extrema[3:] or None,
        *threshold,
        path,
        at(operator),
        (operator.start_pos, close.end_pos),
        **more,
    )


def _speaks_of_paths(formula: Expression) -> bool:
    if isinstance(formula, syntax.Binary):
        return _speaks_of_paths(formula.left) or _speaks_of_paths(formula.right)
    return isinstance(formula, PathFormula) or (
        isinstance(formula, syntax.Unary) and _speaks_of_paths(formula.operand)
    )
