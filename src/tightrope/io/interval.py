"""Intervals, as results hold them and files write them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any

import msgspec

from tightrope.errors import InputError, check_type, in_words
from tightrope.io.coding import Real
from tightrope.numerics.text import interval_text


class _TwoEnds(msgspec.StructMeta):
    """Users give the ends in order (`Interval`); crossed ends of results show a contradiction (`of`)."""

    @in_words
    def __call__(cls, lower: Any, upper: Any) -> Interval:
        for name, end in (("lower", lower), ("upper", upper)):
            if isinstance(end, bool) or not isinstance(end, numbers.Real) or math.isnan(end):
                raise InputError(f"`{name}` is {end!r}, not a number")
        if lower > upper:
            raise InputError(
                f"the lower end of the interval, {lower}, is above the upper one, {upper}",
                hint="give the smaller number first",
            )
        return Interval.of(lower, upper)

    def of(cls, lower: float, upper: float) -> Interval:
        """The interval of two ends as they were computed."""
        made: Interval = super().__call__(lower, upper)
        return made


class Interval(msgspec.Struct, frozen=True, metaclass=_TwoEnds):
    """lower ≤ value ≤ upper, with the confidence that is stated beside it.

    >>> 0.5 in Interval(0.25, 0.75), Interval(0.25, 0.75).width
    (True, 0.5)
    """

    lower: Real
    upper: Real

    @property
    def width(self) -> float:
        """The distance of the endpoints; 0 for a single value, also an infinite one."""
        return self.upper - self.lower if self.upper != self.lower else 0.0

    def within(self, lower: float, upper: float) -> Interval:
        """The part between these two numbers, or the whole interval if that part is empty.

        >>> Interval(-1e-14, 0.5).within(0.0, 1.0)
        Interval(lower=0.0, upper=0.5)
        """
        low, high = max(self.lower, lower), min(self.upper, upper)
        return Interval.of(low, high) if low <= high else self

    def __str__(self) -> str:
        return interval_text(self.lower, self.upper)

    def __iter__(self) -> Iterator[float]:
        """`lower, upper = interval`."""
        return iter((self.lower, self.upper))

    def __contains__(self, value: float) -> bool:
        check_type("value", value, numbers.Real, "a number")
        return self.lower <= value <= self.upper

    def __reduce__(self) -> tuple[object, ...]:
        return Interval.of, (self.lower, self.upper)

    def to_json(self) -> dict[str, float]:
        return {"lower": self.lower, "upper": self.upper}
