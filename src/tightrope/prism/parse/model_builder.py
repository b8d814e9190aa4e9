"""The parts of a model file from parser actions; see `expression_builder` for how it is called."""

from __future__ import annotations

from typing import cast

from lark import Token

from tightrope.prism.parse import syntax
from tightrope.prism.parse.diagnostics import Complaint
from tightrope.prism.parse.expression_builder import ExpressionBuilder, at, identifier, unquote_identifier

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
