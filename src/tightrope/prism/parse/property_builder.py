"""Properties from parser actions; see `expression_builder` for how it is called."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from lark import Token

from tightrope.prism.parse import property_syntax as formulas
from tightrope.prism.parse.diagnostics import Complaint, position_of, suggestion
from tightrope.prism.parse.expression_builder import at, identifier
from tightrope.prism.parse.model_builder import DeclarationBuilder, Parts
from tightrope.prism.parse.refusals import PROPERTY_FORM, PROPERTY_WORDS
from tightrope.prism.parse.syntax import Binary, Expression, Name, Position, Unary

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
            True, name, agent, nature, *threshold, path, at(operator), span, tail=level
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
