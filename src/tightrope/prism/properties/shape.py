"""Kinds of formulas: state formulas, simple paths, general LTL, plain properties, and untimed ones.

A *simple path* is one of X F G U W R over state formulas, or its negation: an until problem (`paths`). Other
temporal formulas are general LTL. A *plain* property is one P or R over a simple path or a reward, with state
formulas without further operators: an `Objective`.

*Untimed* properties are those that the MDP of jumps answers, for Markov automata and certificates of CTMCs.
Steps mean nothing there, so step or time bounds, `X`, `C<=t`, `I=t`, long-run averages and quantiles are
refused anywhere in a formula. So are reward bounds and CVaR, which need more than a visit's mean reward.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from tightrope.model.structure import Durations, Structure
from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse import syntax
from tightrope.prism.parse.syntax import children
from tightrope.prism.properties.capabilities import QueryKind


def nodes(expression: syntax.Expression) -> Iterator[syntax.Expression]:
    """The expression and its parts, down to operators, which are not entered."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, formulas.PathFormula):
            stack.extend(part for part in (node.right, node.left) if part is not None)
        else:
            stack.extend(reversed(children(node)))


def is_path(expression: syntax.Expression) -> bool:
    """Whether it speaks of paths: a temporal operator stands outside of all P, A and E."""
    return any(isinstance(node, formulas.PathFormula) for node in nodes(expression))


def has_operators(expression: syntax.Expression) -> bool:
    """Whether P, R, A, E or filter is part of it."""
    return any(isinstance(node, formulas.StateOperator) for node in nodes(expression))


def without_negation(path: syntax.Expression) -> tuple[syntax.Expression, bool]:
    """What stands behind negations, and whether their number is odd."""
    negated = False
    while isinstance(path, syntax.Unary) and path.operator == "!" and is_path(path):
        path, negated = path.operand, not negated
    return path, negated


def is_simple_path(expression: syntax.Expression) -> bool:
    """Whether a path formula is an until problem."""
    path, _ = without_negation(expression)
    if not isinstance(path, formulas.PathFormula) or (
        path.bound is not None and path.bound.reward is not None
    ):
        return False
    return not is_path(path.right) and not (path.left is not None and is_path(path.left))


def kind_of(formula: syntax.Expression, file: formulas.PropertyFile) -> QueryKind:
    """The kind of a property of a file, from its syntax alone."""
    if isinstance(formula, formulas.Multi):
        return QueryKind.MULTI_OBJECTIVE
    if isinstance(formula, formulas.Quantile):
        return QueryKind.QUANTILE
    if isinstance(formula, formulas.Branching):
        return QueryKind.CTL
    if not isinstance(formula, formulas.ValueOperator):
        return QueryKind.COMPOSED
    path = formula.path if isinstance(formula.path, syntax.Expression) else formula.path.target
    inside = [path, formula.condition, *(label.expression for label in file.labels)]
    if any(part is not None and has_operators(part) for part in inside):
        return QueryKind.NESTED
    return operator_kind(formula)


def operator_kind(operator: formulas.ValueOperator) -> QueryKind:
    """Which problem one P, R, S or CVaR is, whatever its state formulas are made of."""
    path = operator.path
    if operator.cvar_level is not None:
        return QueryKind.CVAR
    if operator.condition is not None:
        return QueryKind.CONDITIONAL
    if isinstance(path, syntax.Expression):
        bound = getattr(without_negation(path)[0], "bound", None)
        if bound is not None and bound.reward is not None:
            return QueryKind.REWARD_BOUNDED
        return QueryKind.LTL if is_path(path) and not is_simple_path(path) else QueryKind.PLAIN
    if co_safe_path(path) is not None:
        return QueryKind.CO_SAFE_REWARD
    return _REWARDS.get(path.operator, QueryKind.PLAIN)


_REWARDS = {
    formulas.RewardOperator.LONG_RUN: QueryKind.LONG_RUN,
    formulas.RewardOperator.WINDOW: QueryKind.LATE_REWARD,
    formulas.RewardOperator.INSTANTANEOUS: QueryKind.INSTANTANEOUS,
}


def co_safe_path(path: formulas.RewardFormula) -> syntax.Expression | None:
    """The path until which a reward is added up, where it is more than reaching a state."""
    if path.operator is formulas.RewardOperator.CO_SAFE:
        return path.target
    if path.operator is not formulas.RewardOperator.REACH or path.target is None or not is_path(path.target):
        return None
    return formulas.PathFormula(formulas.PathOperator.EVENTUALLY, None, path.target, None, path.position)


def check_is_path(path: syntax.Expression) -> None:
    """Complain about a state formula where a path formula is wanted."""
    if not is_path(path):
        raise syntax.Complaint(
            "a path formula is required between the brackets, not a state formula alone",
            syntax.position_of(path),
            "to reach such a state, write  F …; to stay in such states,  G …",
        )


def first_temporal(expression: syntax.Expression) -> syntax.Position | None:
    """Where the first temporal operator inside stands."""
    return next((node.position for node in nodes(expression) if isinstance(node, formulas.PathFormula)), None)


TIME = "time"
"""The rewards that are time itself."""

EMBEDDED = "a chain in continuous time, with certificates,"
"""Whose answer is refused where it refers to time: certificates are about its jumps."""

_TIMELESS = (formulas.RewardOperator.REACH, formulas.RewardOperator.TOTAL, formulas.RewardOperator.CO_SAFE)


def speaks_of_time(file: formulas.PropertyFile) -> bool:
    """Whether some property of a file speaks of time or steps."""
    return any(_time_in(node) is not None for each in file.wanted for node in syntax.parts_of(each.formula))


def refuse_time(file: formulas.PropertyFile, subject: str, but: formulas.StepBound | None = None) -> None:
    """Refuse properties that speak of time or steps, `but` for one bound; `subject` cannot answer it."""
    for property_ in file.wanted:
        for node in syntax.parts_of(property_.formula):
            if (what := _time_in(node)) is not None and (
                but is None or getattr(node, "bound", None) is not but
            ):
                raise syntax.SourceText(file.source, file.file).error(
                    f"{what}: of {subject} only what does not refer to time is answered",
                    getattr(node, "position", None),
                    'ask for P [ F a ], P [ a U b ] or R [ F a ]; the rewards "time" are expected times',
                )


def _time_in(node: object) -> str | None:
    if isinstance(node, formulas.PathFormula):
        if node.bound is not None:
            return "a bound on time, steps or rewards"
        return "X" if node.operator is formulas.PathOperator.NEXT else None
    if isinstance(node, formulas.RewardFormula) and node.operator not in _TIMELESS:
        return "rewards up to, at or after a time, or in the long run"
    if isinstance(node, formulas.Quantile):
        return "a quantile"
    return "CVaR" if isinstance(node, formulas.ValueOperator) and node.cvar_level is not None else None


def with_time_bounds(
    operator: syntax.Expression, structure: Structure, file: formulas.PropertyFile, has_clocks: bool
) -> syntax.Expression:
    """The same with what bounds time said as the model has it, at the one temporal operator of P: of a timed
    automaton `F<=k` bounds its rewards "time" (a clock that is never reset, so closed bounds alone are those
    of digital clocks); of a chain in continuous time `F^{rew{"time"}<=k}`, where every state earns 1 per unit
    of time and no jump does, is `F<=k`."""
    if not isinstance(operator, formulas.ValueOperator) or not isinstance(operator.path, syntax.Expression):
        return operator
    path, negated = without_negation(operator.path)
    if (
        not isinstance(path, formulas.PathFormula)
        or path.bound is None
        or path.bound.reward not in (None, TIME)
        or path.bound.also
    ):
        return operator
    if any(part is not None and (is_path(part) or has_operators(part)) for part in (path.left, path.right)):
        return operator
    if not has_clocks and (path.bound.reward is None or not _earns_time(structure)):
        return operator
    if has_clocks:
        steps = structure.rewards[TIME].per_choice(structure)
        passes = np.array([structure.action_name(c) == TIME for c in range(structure.choices)])
        wrong = (
            "a bound on time with < or > is not one of digital clocks, which are closed"
            if path.bound.lower_strict or path.bound.upper_strict
            else 'the rewards "time" of this model are not its time'
            if (steps != passes).any()
            else None
        )
        if wrong is not None:
            raise syntax.SourceText(file.source, file.file).error(
                wrong, path.position, "write F<=k, with a whole k"
            )
    bound = replace(path.bound, reward=TIME if has_clocks else None)
    changed: syntax.Expression = replace(path, bound=bound)
    return replace(operator, path=syntax.Unary("!", changed, path.position) if negated else changed)


def _earns_time(structure: Structure) -> bool:
    """Whether the rewards "time" are time itself; those of a Markov automaton are unless named."""
    reward = structure.rewards.get(TIME)
    if isinstance(reward, Durations):
        return True
    if reward is None or reward.state is None:
        return reward is None
    return bool((reward.state == 1).all() and (reward.choice is None or not reward.choice.any()))


def with_references(
    property_: formulas.Property, file: formulas.PropertyFile, labels: Collection[str]
) -> syntax.Expression:
    """The formula with properties that it names in quotes written out; `labels` win."""
    others = {
        other.name: other
        for other in file.properties
        if other.name is not None and other.name not in labels and other.name != property_.name
    }

    def written_out(formula: syntax.Expression, inside: tuple[str, ...]) -> syntax.Expression:
        def change(node: object) -> syntax.Expression | None:
            if not isinstance(node, syntax.Label) or node.name not in others:
                return None
            if node.name in inside:
                circle = " → ".join([*inside, node.name])
                raise syntax.SourceText(file.source, file.file).error(
                    f"properties refer to each other in a circle: {circle}", node.position
                )
            return written_out(others[node.name].formula, (*inside, node.name))

        return syntax.rewritten(formula, change)

    return written_out(property_.formula, ())
