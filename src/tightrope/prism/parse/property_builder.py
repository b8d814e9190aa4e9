"""Properties from parser actions; see `expression_builder` for how it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from lark import Token

from tightrope.prism.parse.diagnostics import Complaint, position_of
from tightrope.prism.parse.expression_builder import at
from tightrope.prism.parse.model_builder import DeclarationBuilder, Parts
from tightrope.prism.parse.syntax import (
    Expression,
    PathFormula,
    PathOperator,
    Property,
    RewardFormula,
    RewardOperator,
    StepBound,
)

_EXTREMA = ("max", "min", "maxmax", "maxmin", "minmax", "minmin")
Threshold = tuple[str | None, Expression | None]


@dataclass(frozen=True)
class Span:
    """A property and where its text begins and ends."""

    property: Property
    start: int
    end: int


class PropertyBuilder(DeclarationBuilder):
    """Property files and lone properties."""

    def properties(self, parts: Parts) -> Parts:
        return parts

    def probability(self, parts: Parts) -> Span:
        name, operator, threshold, path, close = cast(
            tuple[Token | None, Token, Threshold, PathFormula, Token], tuple(parts)
        )
        agent, nature = _directions(operator[1:])
        return _span(
            Property(_unquoted(name), False, None, agent, nature, *threshold, path, "", at(operator)),
            operator,
            close,
        )

    def expectation(self, parts: Parts) -> Span:
        name, operator, structure, extrema, threshold, path, close = cast(
            tuple[Token | None, Token, Token | None, Token | None, Threshold, RewardFormula, Token],
            tuple(parts),
        )
        if extrema is not None and (extrema not in _EXTREMA or len(operator) > 1):
            raise Complaint(
                f"unexpected '{extrema}' after {operator}",
                at(extrema),
                'write R{"name"}max, R{"name"}min, or agent and nature together: R{"name"}maxmin',
            )
        agent, nature = _directions(str(extrema) if extrema else operator[1:])
        reward_name = None if structure is None else str(structure).strip('"')
        return _span(
            Property(_unquoted(name), True, reward_name, agent, nature, *threshold, path, "", at(operator)),
            operator,
            close,
        )

    def question(self, parts: Parts) -> Threshold:
        return None, None

    def threshold(self, parts: Parts) -> Threshold:
        return str(parts[0]), cast(Expression, parts[1])

    # --- paths -----------------------------------------------------------------------------

    def next_path(self, parts: Parts) -> PathFormula:
        operator, operand = cast(tuple[Token, Expression], tuple(parts))
        return PathFormula(PathOperator.NEXT, None, operand, None, at(operator))

    def unary_path(self, parts: Parts) -> PathFormula:
        operator, bound, operand = cast(tuple[Token, StepBound | None, Expression], tuple(parts))
        return PathFormula(PathOperator(str(operator)), None, operand, bound, at(operator))

    def binary_path(self, parts: Parts) -> PathFormula:
        left, operator, bound, right = cast(
            tuple[Expression, Token, StepBound | None, Expression], tuple(parts)
        )
        position = position_of(left) or at(operator)
        return PathFormula(PathOperator(str(operator)), left, right, bound, position)

    def one_sided_bound(self, parts: Parts) -> StepBound:
        comparison, steps = cast(tuple[Token, Expression], tuple(parts))
        if comparison == "=":
            return StepBound(steps, steps)
        if comparison in ("<", "<="):
            return StepBound(None, steps, upper_strict=comparison == "<")
        return StepBound(steps, None, lower_strict=comparison == ">")

    def window_bound(self, parts: Parts) -> StepBound:
        lower, upper = cast(tuple[Expression, Expression], tuple(parts))
        return StepBound(lower, upper)

    # --- rewards ---------------------------------------------------------------------------

    def reach_reward(self, parts: Parts) -> RewardFormula:
        operator, target = cast(tuple[Token, Expression], tuple(parts))
        return RewardFormula(RewardOperator.REACH, target, None, False, at(operator))

    def cumulative_reward(self, parts: Parts) -> RewardFormula:
        operator, comparison, steps = cast(tuple[Token, Token, Expression], tuple(parts))
        return RewardFormula(RewardOperator.CUMULATIVE, None, steps, comparison == "<", at(operator))

    def total_reward(self, parts: Parts) -> RewardFormula:
        return RewardFormula(RewardOperator.TOTAL, None, None, False, at(cast(Token, parts[0])))


def _directions(extrema: str) -> tuple[str | None, str | None]:
    """Agent and nature from "", "max" or "maxmin"."""
    return extrema[:3] or None, extrema[3:] or None


def _unquoted(name: Token | None) -> str | None:
    return None if name is None else name[1:-1]


def _span(property_: Property, first: Token, last: Token) -> Span:
    return Span(property_, first.start_pos or 0, last.end_pos or 0)
