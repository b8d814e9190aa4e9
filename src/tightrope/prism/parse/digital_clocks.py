"""Timed automata (`pta`, `popta`) as MDPs by digital clocks: time passes in whole units.

If guards and invariants are closed (no `<`, no `>`) and compare clocks only with whole constants, optimal
reachability probabilities and expected rewards equal those of the MDP with integer clocks (Kwiatkowska,
Norman, Parker, Sproston, 2006). A clock stops at one more than its module's largest constant. Modules with
clocks let time pass together, by the action `time`, if their invariants hold afterwards. State rewards, per
unit of time, become rewards of that action; the structure "time" earns one per unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import (
    Binary,
    Call,
    Complaint,
    Expression,
    Literal,
    Name,
    Position,
    Type,
    children,
    names,
)

TIME = "time"
_COMPARISONS = ("=", "<=", ">=", "<", ">", "!=")


@dataclass(frozen=True)
class Clock:
    """`x : clock;`"""

    name: str
    position: Position


@dataclass(frozen=True)
class Invariant:
    """`invariant … endinvariant`"""

    condition: Expression


def with_digital_clocks(
    module: syntax.Module, clocks: Sequence[Clock], invariant: Invariant | None
) -> syntax.Module:
    """The module with whole numbers for clocks, and a command that lets a unit of time pass."""
    most: dict[str, list[Expression]] = {clock.name: [] for clock in clocks}
    for command in module.commands:
        _collect(command.guard, most)
    place = module.position
    condition: Expression = Literal(True, Type.BOOL, place)
    if invariant is not None:
        condition = invariant.condition
        _collect(condition, most)
    variables, updates = list(module.variables), []
    later: dict[str, Expression] = {}
    for clock in clocks:
        zero, one = (Literal(k, Type.INT, clock.position) for k in (0, 1))
        largest = Call("max", (zero, zero, *most[clock.name]), clock.position)
        last = Binary("+", largest, one, clock.position)
        variables.append(syntax.VariableDeclaration(clock.name, Type.INT, zero, last, zero, clock.position))
        following = Binary("+", Name(clock.name, clock.position), one, clock.position)
        later[clock.name] = Call("min", (following, last), clock.position)
        updates.append(syntax.Assignment(clock.name, later[clock.name], clock.position))
    passing = syntax.rewritten(condition, lambda one: later.get(one.name) if isinstance(one, Name) else None)
    certain = syntax.CommandUpdate(Literal(1, Type.INT, place), None, tuple(updates), place)
    passes = syntax.GuardedCommand(TIME, passing, (certain,), place, is_time=True)
    own = tuple(clock.name for clock in clocks)
    return replace(module, variables=tuple(variables), commands=(*module.commands, passes), clocks=own)


def as_mdp(model: syntax.ModelFile) -> syntax.ModelFile:
    """A timed automaton whose modules have digital clocks already, with its rewards per unit of time."""
    modules = [module for module in model.modules if isinstance(module, syntax.Module)]
    clocks = {name for module in modules for name in module.clocks}
    rewards = [
        replace(
            one,
            items=tuple(
                item if item.is_choice else replace(item, is_choice=True, action=TIME) for item in one.items
            ),
        )
        for one in model.rewards
    ]
    if clocks and not any(one.name == TIME for one in rewards):
        place = modules[0].position
        item = syntax.RewardItem(
            True, TIME, Literal(True, Type.BOOL, place), Literal(1, Type.INT, place), place
        )
        rewards.append(syntax.Rewards(TIME, (item,), place))
    hides = model.type is syntax.ModelType.POPTA
    kind = syntax.ModelType.POMDP if hides else syntax.ModelType.MDP
    return replace(model, type=kind, rewards=tuple(rewards), has_clocks=bool(clocks))


def observe_clocks(model: syntax.ModelFile, modules: Sequence[syntax.Module]) -> syntax.ModelFile:
    """A partially observable model shows all clocks (Norman, Parker, Zou, 2017)."""
    if model.type is not syntax.ModelType.POMDP:
        return model
    clocks = {name: module.position for module in modules for name in module.clocks}
    named = [seen for seen in model.observables if seen.name not in clocks or not seen.is_variable]
    shown = [syntax.Observable(name, Name(name, at), at, is_variable=True) for name, at in clocks.items()]
    return replace(model, observables=(*named, *shown))


def check_clocks(model: syntax.ModelFile, modules: Sequence[syntax.Module]) -> None:
    """Refuse clocks outside guards of their own module, and the action `time` of others."""
    clocks = {name for module in modules for name in module.clocks}
    foreign: list[Expression | None] = [model.init, *(label.expression for label in model.labels)]
    foreign += [formula.expression for formula in model.formulas]
    foreign += [
        seen.expression for seen in model.observables if not (seen.is_variable and seen.name in clocks)
    ]
    foreign += [part for one in model.rewards for item in one.items for part in (item.guard, item.reward)]
    for expression in foreign:
        if expression is not None:
            _refuse(expression, clocks, "labels, formulas, rewards, observables or init")
    for module in modules:
        for command in module.commands:
            if command.action == TIME:
                if not command.is_time:
                    raise Complaint("the action 'time' is that of time itself", command.position)
                continue
            if command.is_time:
                raise Complaint("the action 'time' of time itself has another name here", module.position)
            _refuse(command.guard, clocks - set(module.clocks), "guards of other modules")
            for update in command.updates:
                for part in (update.probability, update.upper, *(each.value for each in update.assignments)):
                    if part is not None:
                        _refuse(part, clocks, "updates")


def _collect(guard: Expression, most: dict[str, list[Expression]]) -> None:
    """The constants that clocks are compared with; what digital clocks cannot say is refused."""
    if isinstance(guard, Binary) and guard.operator in _COMPARISONS:
        for side, other in ((guard.left, guard.right), (guard.right, guard.left)):
            if not isinstance(side, Name) or side.name not in most:
                continue
            if guard.operator in ("<", ">", "!="):
                raise Complaint(
                    f"clock '{side.name}' is compared by {guard.operator}; digital clocks take <=, >= and =",
                    guard.position,
                    "closed guards have the same values in whole units of time",
                )
            if any(name.name in most for name in names(other)):
                raise Complaint("digital clocks do not support comparisons of two clocks", guard.position)
            most[side.name].append(other)
            return
    if isinstance(guard, Name) and guard.name in most:
        raise Complaint(f"clock '{guard.name}' stands alone, not in a comparison", guard.position)
    parts = children(guard)
    turned: tuple[Expression, ...] = ()
    if isinstance(guard, syntax.Unary) or (
        isinstance(guard, Binary) and guard.operator in ("<=>", *_COMPARISONS)
    ):
        turned = parts
    elif isinstance(guard, syntax.Conditional) or (isinstance(guard, Binary) and guard.operator == "=>"):
        turned = parts[:1]
    if any(name.name in most for part in turned for name in names(part)):
        raise Complaint(
            "a comparison of a clock cannot stand where it is negated (under !, <=>, =, left of => or ?)",
            syntax.position_of(guard),
            "write it with <=, >=, & and | alone, or on the right of =>",
        )
    for part in parts:
        _collect(part, most)


def _refuse(expression: Expression, clocks: set[str], where: str) -> None:
    for name in {each.name for each in names(expression)} & clocks:
        raise Complaint(
            f"clock '{name}' stands in {where}, and a clock counts only as far as its own module compares it",
            syntax.position_of(expression),
        )
