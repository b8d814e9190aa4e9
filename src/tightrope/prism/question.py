"""A property made concrete: an objective on one structure, and a threshold where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tightrope.model.objective import Objective

Answer = Literal["true", "false", "not certified"]


@dataclass(frozen=True, eq=False)
class Question:
    """`comparison` and `threshold` are None for `=?`; `text` is the property as written."""

    objective: Objective
    comparison: str | None
    threshold: Fraction | None
    text: str
    name: str | None

    @property
    def is_threshold(self) -> bool:
        return self.comparison is not None

    def answer(self, lower: float, upper: float) -> Answer:
        """Whether the value meets the threshold, from certified bounds of the value.

        The comparisons are exact: a float is the rational it stands for.
        """
        if self.comparison is None or self.threshold is None:
            raise ValueError("only a property with a threshold is true or false")
        threshold = self.threshold
        holds, fails = {
            ">=": (lower >= threshold, upper < threshold),
            ">": (lower > threshold, upper <= threshold),
            "<=": (upper <= threshold, lower > threshold),
            "<": (upper < threshold, lower >= threshold),
        }[self.comparison]
        return "true" if holds else "false" if fails else "not certified"
