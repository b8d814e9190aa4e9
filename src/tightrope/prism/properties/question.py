"""A property made concrete: an objective on one structure, and a threshold where there is one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tightrope.model.objective import Direction, Objective

Answer = Literal["true", "false", "not certified"]


_OPERATOR = re.compile(r"(LRA|[PRS])((?:\s*\{[^}]*\})?)\s*(?:max|min)?(?:max|min)?(?=\s*(?:=|<|>))")


def with_letters(text: str, agent: Direction, nature: Direction) -> str:
    """The property with both directions spelled out, the agent's first: `Pmaxmin=? [ … ]`."""
    letters = f"{agent.value.lower()}{nature.value.lower()}"
    return _OPERATOR.sub(lambda found: f"{found.group(1)}{found.group(2)}{letters}", text, count=1)


@dataclass(frozen=True)
class Reading:
    """How a property with one direction was read on a model in which agent and nature both decide."""

    taken: str
    """The property as it was read, with two directions."""
    robust: str
    """The same with nature against the agent."""

    @staticmethod
    def of(text: str, agent: Direction, nature: Direction) -> Reading:
        return Reading(with_letters(text, agent, nature), with_letters(text, agent, agent.opposite))

    @property
    def warning(self) -> str:
        return (
            "one direction on an interval MDP means nature for the agent, as in PRISM: read as "
            f"{self.taken}; the value that is guaranteed whatever nature does is {self.robust}"
        )


@dataclass(frozen=True, eq=False)
class Question:
    """`comparison` and `threshold` are None for `=?`; `text` is the property as written."""

    objective: Objective
    comparison: str | None
    threshold: Fraction | None
    text: str
    name: str | None
    reading: Reading | None = None

    @property
    def is_threshold(self) -> bool:
        return self.comparison is not None

    @property
    def limit(self) -> tuple[str, Fraction] | None:
        """The comparison and the threshold, where there is one."""
        return (
            None if self.comparison is None or self.threshold is None else (self.comparison, self.threshold)
        )

    def answer(self, lower: float, upper: float) -> Answer:
        """Whether the value meets the threshold, from certified bounds of the value.

        The comparisons are exact: a float is the rational it stands for.
        """
        if self.comparison is None or self.threshold is None:
            raise ValueError("only a property with a threshold is true or false")
        return decide(self.comparison, self.threshold, lower, upper)


def decide(comparison: str, threshold: Fraction, lower: float, upper: float) -> Answer:
    """Whether a value within certified bounds meets a threshold."""
    holds, fails = {
        ">=": (lower >= threshold, upper < threshold),
        ">": (lower > threshold, upper <= threshold),
        "<=": (upper <= threshold, lower > threshold),
        "<": (upper < threshold, lower >= threshold),
    }[comparison]
    return "true" if holds else "false" if fails else "not certified"
