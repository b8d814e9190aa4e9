"""`quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])`: the least k for which a threshold is met.

A bound k makes a path more likely or less likely, always in one direction, so a threshold holds from some k
on, or up to some k. For every state both ends are looked for by doubling and halving k, from certified
truths: the last k that certainly fails and the first that certainly holds. They are neighbours, unless a
probability comes closer to the threshold than bounds can tell; then the quantile lies between them. That
there is no such k is known from the path without a bound, to whose probability those with a bound rise or
fall: ∞ where no k is large enough, or every k holds; −∞ where a largest k is asked for and not even 0 holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tightrope.logic.values import Bounds, Truth
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse.syntax import Complaint, Expression, Literal, Name, Type, Unary
from tightrope.prism.properties.shape import without_negation

MOST = 1 << 15
"""The largest k that is tried."""

_FORM = 'quantile(min k, Pmax>=0.9 [ F{"cost"}<=k "goal" ])'
_RISES = {
    formulas.PathOperator.EVENTUALLY: True,
    formulas.PathOperator.UNTIL: True,
    formulas.PathOperator.GLOBALLY: False,
}


@dataclass(frozen=True)
class Threshold:
    """The operator whose path has the bound, and whether larger k help it to hold.

    `has_limit`: without the bound the path is the limit of those with it."""

    operator: formulas.ValueOperator
    rises: bool
    has_limit: bool

    def at(self, k: int | None) -> formulas.ValueOperator:
        """With a number in place of the variable; None: without a bound."""
        path, negated = without_negation(_path(self.operator))
        assert isinstance(path, formulas.PathFormula) and path.bound is not None
        number = None if k is None else Literal(k, Type.INT, path.position)
        bound = None if number is None else _place(path.bound, number)
        inner: Expression = replace(path, bound=bound)
        return replace(self.operator, path=Unary("!", inner, path.position) if negated else inner)


def read_threshold(asked: formulas.Quantile) -> Threshold:
    """What is asked, or a complaint where the bound of one path is not the variable alone."""
    operator = asked.operand
    if not isinstance(operator, formulas.ValueOperator) or operator.is_reward or operator.comparison is None:
        raise Complaint("a quantile is about one P with a threshold", asked.position, _FORM)
    if operator.condition is not None or not isinstance(operator.path, Expression):
        raise Complaint("a quantile is about a path with a bound", operator.position, _FORM)
    path, negated = without_negation(operator.path)
    bound = path.bound if isinstance(path, formulas.PathFormula) else None
    if not isinstance(path, formulas.PathFormula) or bound is None or path.operator not in _RISES:
        raise Complaint(
            "a quantile is about F, G or U with a bound on steps or on a reward", operator.position, _FORM
        )
    is_upper = bound.lower is None and _is(bound.upper, asked.variable)
    if not is_upper and not (bound.upper is None and _is(bound.lower, asked.variable)):
        raise Complaint(
            f"the bound is the variable {asked.variable} alone, on one side", path.position, _FORM
        )
    likelier = (_RISES[path.operator] != negated) == is_upper
    rises = likelier == operator.comparison.startswith(">")
    if rises != asked.is_least:
        told = "from some k on" if rises else "up to some k"
        raise Complaint(
            f"this holds {told}: the {'least' if rises else 'largest'} one is the quantile",
            asked.position,
            f"write quantile({'min' if rises else 'max'} {asked.variable}, …)",
        )
    return Threshold(operator, rises, is_upper)


def find_quantile(
    asked: Threshold, decide: Callable[[formulas.ValueOperator], Truth], wanted: BoolArray
) -> tuple[Bounds, int]:
    """Bounds on the quantile in the states that are `wanted`, and how many k were tried."""
    known: dict[int, Truth] = {}

    def meets(k: int) -> Truth:
        """Larger k help; turned round where smaller ones do."""
        if k not in known:
            known[k] = decide(asked.at(k))
        return known[k] if asked.rises else known[k].negated()

    never = np.zeros(len(wanted), np.bool_)
    if asked.has_limit:
        limit = decide(asked.at(None))
        never = limit.fails if asked.rises else limit.holds
    sought = wanted & ~never
    open_from = _first(lambda k: ~meets(k).fails, sought)
    holds_from = _first(lambda k: meets(k).holds, sought)
    lower, upper = (np.where(never, np.inf, end) for end in (open_from, holds_from))
    if not asked.rises:  # the last k before the first that fails
        lower, upper = (np.where(end == 0, -np.inf, end - 1) for end in (lower, upper))
    lower[np.isposinf(lower) & ~never] = MOST  # nothing is known beyond
    lower[~wanted], upper[~wanted] = -np.inf, np.inf
    return Bounds(lower, upper), len(known)


def _first(holds: Callable[[int], BoolArray], sought: BoolArray) -> FloatArray:
    """The first k at which something holds that holds from then on, per state; ∞ beyond the largest."""
    at_least = np.zeros(len(sought), np.int64)
    found = np.full(len(sought), np.inf)
    k = 0
    while True:  # double until it holds everywhere
        now = holds(k)
        found = np.where(now & np.isinf(found), float(k), found)
        at_least = np.where(now, at_least, np.maximum(at_least, k + 1))
        if (now | ~sought).all() or k == MOST:
            break
        k = min(max(1, 2 * k), MOST)
    while True:
        spread = np.where(sought & np.isfinite(found), found - at_least, 0.0)
        if not (spread > 0).any():
            return found
        widest = int(np.argmax(spread))
        k = int(at_least[widest] + (found[widest] - at_least[widest]) // 2)
        now = holds(k)
        found = np.where(now, np.minimum(found, float(k)), found)
        at_least = np.where(now, at_least, np.maximum(at_least, k + 1))


def _path(operator: formulas.ValueOperator) -> Expression:
    assert isinstance(operator.path, Expression)
    return operator.path


def _is(bound: Expression | None, variable: str) -> bool:
    return isinstance(bound, Name) and bound.name == variable


def _place(bound: formulas.StepBound, number: Literal) -> formulas.StepBound:
    if bound.lower is not None:
        return replace(bound, lower=number)
    return replace(bound, upper=number)
