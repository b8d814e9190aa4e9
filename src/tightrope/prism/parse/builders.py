"""Syntax trees from parser actions: of expressions, models and properties.

The parser calls one method of a builder for every rule of `grammar.lark` it has recognised, with
the parts already built. Long chains of `&`, `|`, `+ -` or `*` become balanced trees: the value
is the same in exact arithmetic, the order of the operands too, and no later pass has to recurse
a thousand levels deep for a guard of a thousand terms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import cast

from lark import Token, Transformer

from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import (
    Binary,
    Complaint,
    Expression,
    Name,
    Position,
    Unary,
    position_of,
    suggestion,
)

FUNCTIONS = ("min", "max", "floor", "ceil", "round", "pow", "mod", "log")

_RESERVED_TEXT = """
    bool const ctmc double dtmc endinit endmodule endrewards endsystem false formula func global init int
    label max mdp min module nondeterministic probabilistic rewards stochastic system true
"""
RESERVED = frozenset(_RESERVED_TEXT.split())
"""Words that can name nothing. PRISM reserves more (F, C, clock …); like Storm, we let a model use them."""

PROPERTY_WORDS = {
    "S": "a steady-state probability is written S=? [ states ], a long-run average R=? [ S ]",
    "LRA": "a long-run average is written R=? [ LRA ] or R=? [ S ]",
    "I": "an instantaneous reward is written I=k, directly behind the bracket",
    "T": "expected times T are not supported: use a reward structure that gives 1 to every step",
    "quantile": 'a quantile is written quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])',
    "cosafe": "the word cosafe is not known: write the path formula alone, R=? [ (F a) & (F b) ]",
    "sim": "simulation properties are not supported",
}
PROPERTY_FORM = 'a property looks like  Pmax=? [ F "goal" ]'

_LONGEST_LEFT_CHAIN = 16
_MOST_DIGITS = 400
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class ExpressionBuilder(Transformer[Token, object]):
    """One method a rule; the argument holds the rule's parts in their order."""

    def integer(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Literal(int(_check_number(parts[0])), syntax.Type.INT, at(parts[0]))

    def decimal(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Literal(Fraction(str(_check_number(parts[0]))), syntax.Type.DOUBLE, at(parts[0]))

    def truth(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Literal(parts[0] == "true", syntax.Type.BOOL, at(parts[0]))

    def name(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Name(identifier(parts[0]), at(parts[0]))

    def quoted(self, parts: list[Token]) -> syntax.Expression:
        return syntax.Label(parts[0][1:-1], at(parts[0]))

    def call(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        """`min(a, b)`, or `func(min, a, b)` as older files have it."""
        function = cast(Token, parts[0])
        if function not in FUNCTIONS:
            raise Complaint(
                f"unknown function '{function}'", at(function), suggestion(function, FUNCTIONS, "functions")
            )
        return syntax.Call(str(function), tuple(cast(list[syntax.Expression], parts[1:])), at(function))

    def unary(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        operator = cast(Token, parts[0])
        return syntax.Unary(str(operator), cast(syntax.Expression, parts[1]), at(operator))

    def conditional(self, parts: list[syntax.Expression]) -> syntax.Expression:
        return syntax.Conditional(parts[0], parts[1], parts[2], position_of(parts[0]))

    def left_chain(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        return _chain_left(*_chain(parts))

    def junction(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        return _balance(*_chain(parts))

    def sum(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        return _balance(*_chain(parts))

    def product(self, parts: list[Token | syntax.Expression]) -> syntax.Expression:
        # Regrouping a quotient could divide by what is multiplied with, which may be 0.
        operands, operators = _chain(parts)
        return (_chain_left if "/" in operators else _balance)(operands, operators)

    def lone_expression(self, parts: list[syntax.Expression]) -> syntax.Expression:
        return parts[0]


def at(token: Token) -> syntax.Position:
    """Where a token starts."""
    return syntax.Position(token.line or 1, token.column or 1)


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


def _chain(parts: Sequence[Token | syntax.Expression]) -> tuple[list[syntax.Expression], list[str]]:
    """Operands and the operators between them."""
    return cast(list[syntax.Expression], list(parts[::2])), [str(operator) for operator in parts[1::2]]


def _chain_left(operands: Sequence[syntax.Expression], operators: Sequence[str]) -> syntax.Expression:
    result = operands[0]
    for operator, operand in zip(operators, operands[1:], strict=True):
        result = syntax.Binary(operator, result, operand, position_of(result))
    return result


def _balance(operands: Sequence[syntax.Expression], operators: Sequence[str]) -> syntax.Expression:
    """a - b + c - d as (a - b) + (c - d): behind a minus, the right half changes its signs."""
    if len(operands) <= _LONGEST_LEFT_CHAIN:
        return _chain_left(operands, operators)
    middle = len(operands) // 2
    joint = operators[middle - 1]
    right_operators = list(operators[middle:])
    if joint == "-":
        right_operators = ["-" if operator == "+" else "+" for operator in right_operators]
    left = _balance(operands[:middle], operators[: middle - 1])
    right = _balance(operands[middle:], right_operators)
    return syntax.Binary(joint, left, right, position_of(left))


# --- models --------------------------------------------------------------------------------

Parts = list[object]

_MODEL_TYPES = {
    "dtmc": syntax.ModelType.DTMC,
    "probabilistic": syntax.ModelType.DTMC,
    "mdp": syntax.ModelType.MDP,
    "nondeterministic": syntax.ModelType.MDP,
    "ctmc": syntax.ModelType.CTMC,
    "stochastic": syntax.ModelType.CTMC,
}


class DeclarationBuilder(ExpressionBuilder):
    """What models and property files have in common: constants and labels."""

    def constant(self, parts: Parts) -> syntax.Constant:
        kind, name, value = cast(tuple[Token | None, Token, syntax.Expression | None], tuple(parts))
        type_ = syntax.Type.INT if kind is None else syntax.Type(str(kind))
        return syntax.Constant(identifier(name), type_, value, at(name))

    def label(self, parts: Parts) -> syntax.LabelDefinition:
        name, expression = cast(tuple[Token, syntax.Expression], tuple(parts))
        return syntax.LabelDefinition(unquote_identifier(name, "label"), expression, at(name))


class ModelBuilder(DeclarationBuilder):
    """Model files."""

    def model(self, parts: Parts) -> Parts:
        return parts

    def quoted(self, parts: list[Token]) -> syntax.Label:
        raise Complaint(
            f"a label may not stand in a model's expressions: {parts[0]}",
            at(parts[0]),
            "use a formula with the same definition",
        )

    def model_type(self, parts: Parts) -> tuple[syntax.ModelType, syntax.Position]:
        (token,) = cast(list[Token], parts)
        return _MODEL_TYPES[token], at(token)

    def formula(self, parts: Parts) -> syntax.Formula:
        name, expression = cast(tuple[Token, syntax.Expression], tuple(parts))
        return syntax.Formula(identifier(name), expression, at(name))

    def initial_states(self, parts: Parts) -> tuple[syntax.Expression, syntax.Position]:
        token, expression = cast(tuple[Token, syntax.Expression], tuple(parts))
        return expression, at(token)

    # --- variables -------------------------------------------------------------------------

    def global_variable(self, parts: Parts) -> syntax.Variable:
        return cast(syntax.Variable, parts[0])

    def bounded_variable(self, parts: Parts) -> syntax.Variable:
        name, low, high, initial = cast(
            tuple[Token, syntax.Expression, syntax.Expression, syntax.Expression | None], tuple(parts)
        )
        return syntax.Variable(identifier(name), syntax.Type.INT, low, high, initial, at(name))

    def bool_variable(self, parts: Parts) -> syntax.Variable:
        name, _, initial = cast(tuple[Token, Token, syntax.Expression | None], tuple(parts))
        return syntax.Variable(identifier(name), syntax.Type.BOOL, None, None, initial, at(name))

    def unbounded_variable(self, parts: Parts) -> syntax.Variable:
        name, kind = cast(tuple[Token, Token], tuple(parts[:2]))
        if kind == "double":
            raise Complaint(
                f"variable '{name}' cannot be a double: a state has bool and integer variables only", at(kind)
            )
        return syntax.Variable(
            identifier(name), syntax.Type.INT, None, None, cast(syntax.Expression | None, parts[2]), at(name)
        )

    # --- modules ---------------------------------------------------------------------------

    def module(self, parts: Parts) -> syntax.Module:
        name = cast(Token, parts[0])
        variables = tuple(part for part in parts if isinstance(part, syntax.Variable))
        commands = tuple(part for part in parts if isinstance(part, syntax.Command))
        return syntax.Module(identifier(name), variables, commands, at(name))

    def renaming(self, parts: Parts) -> syntax.ModuleRenaming:
        name, base = cast(tuple[Token, Token], tuple(parts[:2]))
        pairs = cast(list[tuple[str, str]], parts[2:])
        return syntax.ModuleRenaming(identifier(name), identifier(base), tuple(pairs), at(name))

    def rename(self, parts: Parts) -> tuple[str, str]:
        old, new = cast(tuple[Token, Token], tuple(parts))
        return identifier(old), identifier(new)

    def command(self, parts: Parts) -> syntax.Command:
        bracket, action, guard = cast(tuple[Token, Token | None, syntax.Expression], tuple(parts[:3]))
        updates = tuple(cast(list[syntax.Update], parts[3:]))
        return syntax.Command(None if action is None else identifier(action), guard, updates, at(bracket))

    def certain_update(self, parts: Parts) -> syntax.Update:
        assignments, position = _assignments(parts)
        return syntax.Update(syntax.Literal(1, syntax.Type.INT, position), None, assignments, position)

    def update(self, parts: Parts) -> syntax.Update:
        probability = cast(syntax.Expression, parts[0])
        assignments, position = _assignments(parts[1:])
        return syntax.Update(
            probability, None, assignments, getattr(probability, "position", None) or position
        )

    def interval_update(self, parts: Parts) -> syntax.Update:
        bracket, lower, upper = cast(tuple[Token, syntax.Expression, syntax.Expression], tuple(parts[:3]))
        assignments, _ = _assignments(parts[3:])
        return syntax.Update(lower, upper, assignments, at(bracket))

    def no_assignment(self, parts: Parts) -> syntax.Position:
        return at(cast(Token, parts[0]))

    def assignment(self, parts: Parts) -> syntax.Assignment:
        primed, value = cast(tuple[Token, syntax.Expression], tuple(parts))
        return syntax.Assignment(
            identifier(Token.new_borrow_pos("NAME", primed[:-1], primed)), value, at(primed)
        )

    # --- rewards ---------------------------------------------------------------------------

    def rewards(self, parts: Parts) -> syntax.Rewards:
        keyword, name = cast(tuple[Token, Token | None], tuple(parts[:2]))
        items = tuple(cast(list[syntax.RewardItem], parts[2:]))
        return syntax.Rewards(
            None if name is None else unquote_identifier(name, "reward structure"), items, at(keyword)
        )

    def state_reward(self, parts: Parts) -> syntax.RewardItem:
        guard, reward = cast(tuple[syntax.Expression, syntax.Expression], tuple(parts))
        position = getattr(guard, "position", None) or syntax.Position(1, 1)
        return syntax.RewardItem(False, None, guard, reward, position)

    def choice_reward(self, parts: Parts) -> syntax.RewardItem:
        bracket, action, guard, reward = cast(
            tuple[Token, Token | None, syntax.Expression, syntax.Expression], tuple(parts)
        )
        return syntax.RewardItem(
            True, None if action is None else identifier(action), guard, reward, at(bracket)
        )

    # --- compositions ----------------------------------------------------------------------

    def system(self, parts: Parts) -> tuple[syntax.Composition, syntax.Position]:
        keyword, name, composition = cast(tuple[Token, Token | None, syntax.Composition], tuple(parts))
        if name is not None:
            raise Complaint(
                f"the composition has the name {name}: only one without a name is read",
                at(name),
                "leave the name out",
            )
        return composition, at(keyword)

    def module_name(self, parts: Parts) -> syntax.ModuleName:
        (name,) = cast(list[Token], parts)
        return syntax.ModuleName(identifier(name), at(name))

    def full_parallel(self, parts: Parts) -> syntax.Composition:
        return _join(cast(list[syntax.Composition], parts), None)

    def interleaved(self, parts: Parts) -> syntax.Composition:
        return _join(cast(list[syntax.Composition], parts), ())

    def partial(self, parts: Parts) -> syntax.Parallel:
        left, _, _, actions, _, right = cast(
            tuple[syntax.Composition, Token, Token, tuple[str, ...], Token, syntax.Composition], tuple(parts)
        )
        return syntax.Parallel(left, right, actions, left.position)

    def hiding(self, parts: Parts) -> syntax.Hiding:
        inner, _, actions = cast(tuple[syntax.Composition, Token, tuple[str, ...]], tuple(parts))
        return syntax.Hiding(inner, actions, inner.position)

    def action_renaming(self, parts: Parts) -> syntax.ActionRenaming:
        inner = cast(syntax.Composition, parts[0])
        return syntax.ActionRenaming(inner, tuple(cast(list[tuple[str, str]], parts[1:])), inner.position)

    def action_list(self, parts: Parts) -> tuple[str, ...]:
        return tuple(identifier(name) for name in cast(list[Token], parts))

    def action_rename(self, parts: Parts) -> tuple[str, str]:
        old, _, _, new = cast(list[Token], parts)
        return identifier(old), identifier(new)


def _join(parts: list[syntax.Composition], actions: tuple[str, ...] | None) -> syntax.Composition:
    result = parts[0]
    for part in parts[1:]:
        result = syntax.Parallel(result, part, actions, result.position)
    return result


def _assignments(parts: Parts) -> tuple[tuple[syntax.Assignment, ...], syntax.Position]:
    """The assignments of an update (none for `true`) and where they start."""
    if isinstance(parts[0], syntax.Position):
        return (), parts[0]
    assignments = tuple(cast(list[syntax.Assignment], parts))
    return assignments, assignments[0].position


# --- properties ----------------------------------------------------------------------------

_EXTREMA = ("max", "min", "maxmax", "maxmin", "minmax", "minmin")
_FILTERS = {"+": "sum", "&": "forall", "|": "exists"}
FILTER_KINDS = (
    *("min", "max", "argmin", "argmax", "count", "sum", "avg", "first", "range", "forall", "exists"),
    *("print", "printall", "state"),
)
Threshold = tuple[str | None, Expression | None]


class PropertyBuilder(DeclarationBuilder):
    """Property files and lone properties."""

    def properties(self, parts: Parts) -> Parts:
        return parts

    def property(self, parts: Parts) -> formulas.Property:
        name, formula, end = cast(tuple[Token | None, Expression, Token | None], tuple(parts))
        called = None if name is None else name[1:-1]
        return formulas.Property(called, formula, "", position_of(formula), end is not None)

    def probability(self, parts: Parts) -> formulas.ValueOperator:
        operator, threshold, path = cast(tuple[Token, Threshold, Expression], tuple(parts[:3]))
        condition, close = cast(tuple[Expression | None, Token], tuple(parts[-2:]))
        if condition is not None and not _speaks_of_paths(condition):
            raise Complaint(
                "behind || stands a path, the condition",
                position_of(condition),
                "PRISM writes 'or' as a single |",
            )
        agent, nature = _directions(operator[1:])
        span = (operator.start_pos or 0, close.end_pos or 0)
        return formulas.ValueOperator(
            False, None, agent, nature, *threshold, path, at(operator), span, condition
        )

    def expectation(self, parts: Parts) -> formulas.ValueOperator:
        operator, structure, extrema, threshold, path, close = cast(
            tuple[Token, Token | None, Token | None, Threshold, formulas.RewardFormula, Token], tuple(parts)
        )
        if extrema is not None and (extrema not in _EXTREMA or len(operator) > 1):
            raise Complaint(
                f"unexpected '{extrema}' after {operator}",
                at(extrema),
                'write R{"name"}max, R{"name"}min, or agent and nature together: R{"name"}maxmin',
            )
        agent, nature = _directions(str(extrema) if extrema else operator[1:])
        reward_name = None if structure is None else str(structure).strip('"')
        span = (operator.start_pos or 0, close.end_pos or 0)
        return formulas.ValueOperator(True, reward_name, agent, nature, *threshold, path, at(operator), span)

    def tail(self, parts: Parts) -> formulas.ValueOperator:
        operator, structure, level, extrema = cast(
            tuple[Token, Token | None, Expression, Token | None], tuple(parts[:4])
        )
        threshold, path, close = cast(tuple[Threshold, formulas.RewardFormula, Token], tuple(parts[4:]))
        if extrema is not None and extrema not in _EXTREMA:
            raise Complaint(
                f"unexpected '{extrema}' after {operator}", at(extrema), 'CVaR{"cost",0.9}min=? [ F "goal" ]'
            )
        agent, nature = _directions(str(extrema or ""))
        name = None if structure is None else str(structure).strip('"')
        span = (operator.start_pos or 0, close.end_pos or 0)
        return formulas.ValueOperator(
            True, name, agent, nature, *threshold, path, at(operator), span, cvar_level=level
        )

    def quantile(self, parts: Parts) -> formulas.Quantile:
        word, direction, variable, operand = cast(tuple[Token, Token, Token, Expression], tuple(parts))
        return formulas.Quantile(direction == "min", identifier(variable), operand, at(word))

    def steady_state(self, parts: Parts) -> formulas.ValueOperator:
        operator, threshold, states, close = cast(tuple[Token, Threshold, Expression, Token], tuple(parts))
        agent, nature = _directions(operator.removeprefix("LRA").removeprefix("S"))
        span = (operator.start_pos or 0, close.end_pos or 0)
        share = formulas.RewardFormula(formulas.RewardOperator.LONG_RUN, states, None, False, at(operator))
        return formulas.ValueOperator(False, None, agent, nature, *threshold, share, at(operator), span)

    def branching(self, parts: Parts) -> formulas.Branching:
        operator, path, _ = cast(tuple[Token, Expression, Token], tuple(parts))
        return formulas.Branching(operator == "A", path, at(operator))

    def filter_query(self, parts: Parts) -> formulas.Filter:
        word, kind, operand, states = cast(tuple[Token, Token, Expression, Expression | None], tuple(parts))
        name = _FILTERS.get(str(kind), str(kind))
        if name not in FILTER_KINDS:
            raise Complaint(f"unknown filter '{kind}'", at(kind), suggestion(kind, FILTER_KINDS, "filters"))
        return formulas.Filter(name, operand, states, at(word))

    def filter_kind(self, parts: Parts) -> Token:
        return cast(Token, parts[0])

    def call(self, parts: list[Token | Expression]) -> Expression:
        function = cast(Token, parts[0])
        if function == "multi":
            return formulas.Multi(tuple(cast(list[Expression], parts[1:])), at(function))
        if function in PROPERTY_WORDS:
            raise Complaint(PROPERTY_WORDS[str(function)], at(function), PROPERTY_FORM)
        return super().call(parts)

    def question(self, parts: Parts) -> Threshold:
        return None, None

    def threshold(self, parts: Parts) -> Threshold:
        return str(parts[0]), cast(Expression, parts[1])

    # --- paths -----------------------------------------------------------------------------

    def next_path(self, parts: Parts) -> formulas.PathFormula:
        operator, operand = cast(tuple[Token, Expression], tuple(parts))
        return formulas.PathFormula(formulas.PathOperator.NEXT, None, operand, None, at(operator))

    def unary_path(self, parts: Parts) -> formulas.PathFormula:
        operator, bound, operand = cast(tuple[Token, formulas.StepBound | None, Expression], tuple(parts))
        return formulas.PathFormula(formulas.PathOperator(str(operator)), None, operand, bound, at(operator))

    def binary_path(self, parts: Parts) -> formulas.PathFormula:
        left, operator, bound, right = cast(
            tuple[Expression, Token, formulas.StepBound | None, Expression], tuple(parts)
        )
        if operator not in ("U", "W", "R"):  # Rmax between two formulas
            raise Complaint(f"unexpected '{operator}'", at(operator), "expected ']' or one of U, W and R")
        position = position_of(left) or at(operator)
        return formulas.PathFormula(formulas.PathOperator(str(operator)), left, right, bound, position)

    def one_sided_bound(self, parts: Parts) -> formulas.StepBound:
        comparison, steps = cast(tuple[Token, Expression], tuple(parts))
        if comparison == "=":
            return formulas.StepBound(steps, steps)
        if comparison in ("<", "<="):
            return formulas.StepBound(None, steps, upper_strict=comparison == "<")
        return formulas.StepBound(steps, None, lower_strict=comparison == ">")

    def reward_bound(self, parts: Parts) -> formulas.StepBound:
        return replace(self.one_sided_bound(parts[1:]), reward=str(parts[0]).strip('"'))

    def window_bound(self, parts: Parts) -> formulas.StepBound:
        lower, upper = cast(tuple[Expression, Expression], tuple(parts))
        return formulas.StepBound(lower, upper)

    # --- rewards ---------------------------------------------------------------------------

    def path_reward(self, parts: Parts) -> formulas.RewardFormula:
        path = cast(Expression, parts[0])
        position = position_of(path) or Position(1, 1)
        if isinstance(path, Name):
            word = PROPERTY_WORDS.get(path.name) or f"unexpected '{path.name}'"
            raise Complaint(word, position, "R takes F, C<=k, C, I=k, or a path formula")
        if (
            not isinstance(path, formulas.PathFormula)
            or path.operator is not formulas.PathOperator.EVENTUALLY
        ):
            return formulas.RewardFormula(formulas.RewardOperator.CO_SAFE, path, None, False, position)
        if path.bound is not None:
            raise Complaint(
                "R [ F … ] takes no bound on steps", position, "R [ C<=k ] adds up the rewards of k steps"
            )
        return formulas.RewardFormula(formulas.RewardOperator.REACH, path.right, None, False, position)

    def cumulative_reward(self, parts: Parts) -> formulas.RewardFormula:
        operator, comparison, steps = cast(tuple[Token, Token, Expression], tuple(parts))
        return formulas.RewardFormula(
            formulas.RewardOperator.CUMULATIVE, None, steps, comparison == "<", at(operator)
        )

    def late_reward(self, parts: Parts) -> formulas.RewardFormula:
        operator, comparison, steps = cast(tuple[Token, Token, Expression], tuple(parts))
        window = formulas.StepBound(steps, None, lower_strict=comparison == ">")
        return formulas.RewardFormula(formulas.RewardOperator.WINDOW, None, None, False, at(operator), window)

    def window_reward(self, parts: Parts) -> formulas.RewardFormula:
        operator, first, last = cast(tuple[Token, Expression, Expression], tuple(parts))
        return formulas.RewardFormula(
            formulas.RewardOperator.WINDOW, None, None, False, at(operator), formulas.StepBound(first, last)
        )

    def long_run_reward(self, parts: Parts) -> formulas.RewardFormula:
        return formulas.RewardFormula(
            formulas.RewardOperator.LONG_RUN, None, None, False, at(cast(Token, parts[0]))
        )

    def instantaneous_reward(self, parts: Parts) -> formulas.RewardFormula:
        operator, steps = cast(tuple[Token, Expression], tuple(parts))
        return formulas.RewardFormula(formulas.RewardOperator.INSTANTANEOUS, None, steps, False, at(operator))

    def discounted_reward(self, parts: Parts) -> formulas.RewardFormula:
        operator, factor = cast(tuple[Token, Expression], tuple(parts))
        return formulas.RewardFormula(formulas.RewardOperator.DISCOUNTED, None, factor, False, at(operator))

    def total_reward(self, parts: Parts) -> formulas.RewardFormula:
        return formulas.RewardFormula(
            formulas.RewardOperator.TOTAL, None, None, False, at(cast(Token, parts[0]))
        )


def _directions(extrema: str) -> tuple[str | None, str | None]:
    """Agent and nature from "", "max" or "maxmin"."""
    return extrema[:3] or None, extrema[3:] or None


def _speaks_of_paths(formula: Expression) -> bool:
    if isinstance(formula, Binary):
        return _speaks_of_paths(formula.left) or _speaks_of_paths(formula.right)
    return isinstance(formula, formulas.PathFormula) or (
        isinstance(formula, Unary) and _speaks_of_paths(formula.operand)
    )
