"""Which questions do not speak of time: those that the MDP of jumps answers, of a Markov automaton or, with a
certificate, of a chain in continuous time.

Where some states wait and others do not, steps mean nothing, and neither do averages over them. So bounds on
steps or time, `X`, `C<=t`, `I=t`, long-run averages and quantiles are refused, wherever they stand in a
formula, and so is what depends on more than the mean of a visit's reward (bounds on rewards, CVaR).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from tightrope.prism.parse.diagnostics import Source
from tightrope.prism.parse.property_syntax import (
    PathFormula,
    PathOperator,
    PropertyFile,
    Quantile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)

EMBEDDED = "a chain in continuous time, with certificates,"
"""Whose answer is refused where it speaks of time: certificates are about its jumps."""

_TIMELESS = (RewardOperator.REACH, RewardOperator.TOTAL, RewardOperator.CO_SAFE)


def refuse_time(file: PropertyFile, subject: str = "a Markov automaton") -> None:
    """Refuse a file with a property that speaks of time or steps; `subject` is what cannot answer it."""
    for property_ in file.properties:
        for node in _parts(property_.formula):
            if (what := _time_in(node)) is not None:
                raise Source(file.source, file.file).error(
                    f"{what}: of {subject} only what does not speak of time is answered",
                    getattr(node, "position", None),
                    'ask for P [ F a ], P [ a U b ] or R [ F a ]; the rewards "time" are expected times',
                )


def _time_in(node: Any) -> str | None:
    if isinstance(node, PathFormula):
        if node.bound is not None:
            return "a bound on time, steps or rewards"
        return "X" if node.operator is PathOperator.NEXT else None
    if isinstance(node, RewardFormula) and node.operator not in _TIMELESS:
        return "rewards up to, at or after a time, or in the long run"
    if isinstance(node, Quantile):
        return "a quantile"
    return "CVaR" if isinstance(node, ValueOperator) and node.tail is not None else None


def _parts(node: Any) -> Iterator[Any]:
    """The node and everything inside of it."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, tuple):
            stack.extend(one)
        elif is_dataclass(one) and not isinstance(one, type):
            yield one
            stack.extend(getattr(one, entry.name) for entry in fields(one))
