"""The parts of a model file from parser actions; see `expression_builder` for how it is called."""

from __future__ import annotations

from typing import cast

from lark import Token

from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.expression_builder import ExpressionBuilder, at, identifier, unquote_identifier
from tightrope.prism.parse.syntax import (
    ActionRenaming,
    Assignment,
    Command,
    Composition,
    Constant,
    Expression,
    Formula,
    Hiding,
    Label,
    LabelDefinition,
    Literal,
    ModelType,
    Module,
    ModuleName,
    ModuleRenaming,
    Parallel,
    Position,
    RewardItem,
    Rewards,
    Type,
    Update,
    Variable,
)

Parts = list[object]

_MODEL_TYPES = {
    "dtmc": ModelType.DTMC,
    "probabilistic": ModelType.DTMC,
    "mdp": ModelType.MDP,
    "nondeterministic": ModelType.MDP,
    "ctmc": ModelType.CTMC,
    "stochastic": ModelType.CTMC,
}


class DeclarationBuilder(ExpressionBuilder):
    """What models and property files have in common: constants and labels."""

    def constant(self, parts: Parts) -> Constant:
        kind, name, value = cast(tuple[Token | None, Token, Expression | None], tuple(parts))
        type_ = Type.INT if kind is None else Type(str(kind))
        return Constant(identifier(name), type_, value, at(name))

    def label(self, parts: Parts) -> LabelDefinition:
        name, expression = cast(tuple[Token, Expression], tuple(parts))
        return LabelDefinition(unquote_identifier(name, "label"), expression, at(name))


class ModelBuilder(DeclarationBuilder):
    """Model files."""

    def model(self, parts: Parts) -> Parts:
        return parts

    def quoted(self, parts: list[Token]) -> Label:
        raise Complaint(
            f"a label may not stand in a model's expressions: {parts[0]}",
            at(parts[0]),
            "use a formula with the same definition",
        )

    def model_type(self, parts: Parts) -> tuple[ModelType, Position]:
        (token,) = cast(list[Token], parts)
        return _MODEL_TYPES[token], at(token)

    def formula(self, parts: Parts) -> Formula:
        name, expression = cast(tuple[Token, Expression], tuple(parts))
        return Formula(identifier(name), expression, at(name))

    def initial_states(self, parts: Parts) -> tuple[Expression, Position]:
        token, expression = cast(tuple[Token, Expression], tuple(parts))
        return expression, at(token)

    # --- variables -------------------------------------------------------------------------

    def global_variable(self, parts: Parts) -> Variable:
        return cast(Variable, parts[0])

    def bounded_variable(self, parts: Parts) -> Variable:
        name, low, high, initial = cast(tuple[Token, Expression, Expression, Expression | None], tuple(parts))
        return Variable(identifier(name), Type.INT, low, high, initial, at(name))

    def bool_variable(self, parts: Parts) -> Variable:
        name, _, initial = cast(tuple[Token, Token, Expression | None], tuple(parts))
        return Variable(identifier(name), Type.BOOL, None, None, initial, at(name))

    def unbounded_variable(self, parts: Parts) -> Variable:
        name, kind = cast(tuple[Token, Token], tuple(parts[:2]))
        if kind == "double":
            raise Complaint(
                f"variable '{name}' cannot be a double: a state has bool and integer variables only", at(kind)
            )
        return Variable(identifier(name), Type.INT, None, None, cast(Expression | None, parts[2]), at(name))

    # --- modules ---------------------------------------------------------------------------

    def module(self, parts: Parts) -> Module:
        name = cast(Token, parts[0])
        variables = tuple(part for part in parts if isinstance(part, Variable))
        commands = tuple(part for part in parts if isinstance(part, Command))
        return Module(identifier(name), variables, commands, at(name))

    def renaming(self, parts: Parts) -> ModuleRenaming:
        name, base = cast(tuple[Token, Token], tuple(parts[:2]))
        pairs = cast(list[tuple[str, str]], parts[2:])
        return ModuleRenaming(identifier(name), identifier(base), tuple(pairs), at(name))

    def rename(self, parts: Parts) -> tuple[str, str]:
        old, new = cast(tuple[Token, Token], tuple(parts))
        return identifier(old), identifier(new)

    def command(self, parts: Parts) -> Command:
        bracket, action, guard = cast(tuple[Token, Token | None, Expression], tuple(parts[:3]))
        updates = tuple(cast(list[Update], parts[3:]))
        return Command(None if action is None else identifier(action), guard, updates, at(bracket))

    def certain_update(self, parts: Parts) -> Update:
        assignments, position = _assignments(parts)
        return Update(Literal(1, Type.INT, position), None, assignments, position)

    def update(self, parts: Parts) -> Update:
        probability = cast(Expression, parts[0])
        assignments, position = _assignments(parts[1:])
        return Update(probability, None, assignments, getattr(probability, "position", None) or position)

    def interval_update(self, parts: Parts) -> Update:
        bracket, lower, upper = cast(tuple[Token, Expression, Expression], tuple(parts[:3]))
        assignments, _ = _assignments(parts[3:])
        return Update(lower, upper, assignments, at(bracket))

    def no_assignment(self, parts: Parts) -> Position:
        return at(cast(Token, parts[0]))

    def assignment(self, parts: Parts) -> Assignment:
        primed, value = cast(tuple[Token, Expression], tuple(parts))
        return Assignment(identifier(Token.new_borrow_pos("NAME", primed[:-1], primed)), value, at(primed))

    # --- rewards ---------------------------------------------------------------------------

    def rewards(self, parts: Parts) -> Rewards:
        keyword, name = cast(tuple[Token, Token | None], tuple(parts[:2]))
        items = tuple(cast(list[RewardItem], parts[2:]))
        return Rewards(
            None if name is None else unquote_identifier(name, "reward structure"), items, at(keyword)
        )

    def state_reward(self, parts: Parts) -> RewardItem:
        guard, reward = cast(tuple[Expression, Expression], tuple(parts))
        position = getattr(guard, "position", None) or Position(1, 1)
        return RewardItem(False, None, guard, reward, position)

    def choice_reward(self, parts: Parts) -> RewardItem:
        bracket, action, guard, reward = cast(
            tuple[Token, Token | None, Expression, Expression], tuple(parts)
        )
        return RewardItem(True, None if action is None else identifier(action), guard, reward, at(bracket))

    # --- compositions ----------------------------------------------------------------------

    def system(self, parts: Parts) -> tuple[Composition, Position]:
        keyword, name, composition = cast(tuple[Token, Token | None, Composition], tuple(parts))
        if name is not None:
            raise Complaint(
                f"the composition has the name {name}: only one without a name is read",
                at(name),
                "leave the name out",
            )
        return composition, at(keyword)

    def module_name(self, parts: Parts) -> ModuleName:
        (name,) = cast(list[Token], parts)
        return ModuleName(identifier(name), at(name))

    def full_parallel(self, parts: Parts) -> Composition:
        return _join(cast(list[Composition], parts), None)

    def interleaved(self, parts: Parts) -> Composition:
        return _join(cast(list[Composition], parts), ())

    def partial(self, parts: Parts) -> Parallel:
        left, _, _, actions, _, right = cast(
            tuple[Composition, Token, Token, tuple[str, ...], Token, Composition], tuple(parts)
        )
        return Parallel(left, right, actions, left.position)

    def hiding(self, parts: Parts) -> Hiding:
        inner, _, actions = cast(tuple[Composition, Token, tuple[str, ...]], tuple(parts))
        return Hiding(inner, actions, inner.position)

    def action_renaming(self, parts: Parts) -> ActionRenaming:
        inner = cast(Composition, parts[0])
        return ActionRenaming(inner, tuple(cast(list[tuple[str, str]], parts[1:])), inner.position)

    def action_list(self, parts: Parts) -> tuple[str, ...]:
        return tuple(identifier(name) for name in cast(list[Token], parts))

    def action_rename(self, parts: Parts) -> tuple[str, str]:
        old, _, _, new = cast(list[Token], parts)
        return identifier(old), identifier(new)


def _join(parts: list[Composition], actions: tuple[str, ...] | None) -> Composition:
    result = parts[0]
    for part in parts[1:]:
        result = Parallel(result, part, actions, result.position)
    return result


def _assignments(parts: Parts) -> tuple[tuple[Assignment, ...], Position]:
    """The assignments of an update (none for `true`) and where they start."""
    if isinstance(parts[0], Position):
        return (), parts[0]
    assignments = tuple(cast(list[Assignment], parts))
    return assignments, assignments[0].position
