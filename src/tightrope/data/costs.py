"""Observed costs of a log: their number, sum and sum of squares for every transition.

Intervals of costs use nothing else (`tightrope.statistics.costs`); a test of their spread uses the first
costs. Sums are exact, so they do not depend on how a log is cut, and need no rounding analysis.

Simulated costs have the model's reward as their mean, and a random stream of their own:

| written | a cost is |
|---|---|
| `exact` | the mean itself |
| `two-point:0,5` | 5 or 0, with the probabilities that give the mean |
| `uniform:W` | uniform between mean − W and mean + W |
| `normal:S` | normal with the standard deviation S |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.table.columns import ArrowColumn, dense, holds_text
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, IndexArray, OffsetArray
from tightrope.numerics.late import pa, pc

_LIMB = 27
_MASK = (1 << _LIMB) - 1
MOST_ADDED = 1 << 25
"""Limbs are below 2²⁷, so the sums of so many are doubles without rounding."""

FIRST = 4096
"""So many of the first costs are kept one by one."""

Sums = tuple[int, Fraction, Fraction]
"""How many costs, their sum, the sum of their squares."""


@dataclass(frozen=True)
class CostSums:
    """The observed costs by transition, the least and the largest of all, and the first ones in their order,
    as (transition, cost).

    >>> CostSums.observed(np.array([3, 3]), np.array([0.5, 2.0])).of[3]
    (2, Fraction(5, 2), Fraction(17, 4))
    """

    of: Mapping[int, Sums] = field(default_factory=dict)
    least: float = np.inf
    most: float = -np.inf
    first: tuple[tuple[int, float], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", MappingProxyType(dict(sorted(self.of.items()))))

    def __reduce__(self) -> tuple[object, ...]:
        return CostSums, (dict(self.of), self.least, self.most, self.first)

    def __hash__(self) -> int:
        return hash((len(self.of), self.least, self.most))

    @property
    def number(self) -> int:
        return sum(count for count, _, _ in self.of.values())

    @staticmethod
    def observed(transition: OffsetArray, cost: FloatArray) -> CostSums:
        """The costs of some rows."""
        if not len(cost):
            return CostSums()
        mantissa, exponent = np.frexp(cost)
        high = np.ldexp(np.rint(np.ldexp(mantissa, 26)), -26)  # so that products of halves are exact
        low = mantissa - high
        total = exact_sums(transition, cost)
        products = (high * high, 2.0 * high * low, low * low)
        squares = [exact_sums(transition, one, (2 * exponent).astype(np.int32)) for one in products]
        owners, numbers = (one.tolist() for one in np.unique(transition, return_counts=True))
        own = {
            owner: (number, total[owner], sum((one[owner] for one in squares), Fraction(0)))
            for owner, number in zip(owners, numbers, strict=True)
        }
        first = zip(transition[:FIRST].tolist(), cost[:FIRST].tolist(), strict=True)
        return CostSums(own, float(cost.min()), float(cost.max()), tuple(first))

    def __add__(self, later: CostSums) -> CostSums:
        both = dict(self.of)
        for owner, (number, total, square) in later.of.items():
            known = both.get(owner, (0, Fraction(0), Fraction(0)))
            both[owner] = (known[0] + number, known[1] + total, known[2] + square)
        least, most = min(self.least, later.least), max(self.most, later.most)
        return CostSums(both, least, most, self.first + later.first[: FIRST - len(self.first)])


def exact_sums(
    owner: OffsetArray, value: FloatArray, exponent: IndexArray | None = None
) -> dict[int, Fraction]:
    """The sum of value · 2^exponent over the rows of each owner, without rounding."""
    sums: dict[int, Fraction] = {}
    for first in range(0, len(owner), MOST_ADDED):
        part = slice(first, first + MOST_ADDED)
        mantissa, power = np.frexp(value[part])
        power = power.astype(np.int64) + (0 if exponent is None else exponent[part])
        whole, least = np.ldexp(mantissa, 53).astype(np.int64), int(power.min())
        span = int(power.max()) - least + 1
        keys, place = np.arange(0), owner[part] * span + (power - least)
        if int(place.max()) > 4 * len(place):
            keys, place = np.unique(place, return_inverse=True)
        counted = np.flatnonzero(np.bincount(place))
        limbs = (np.bincount(place, one)[counted].tolist() for one in (whole & _MASK, whole >> _LIMB))
        at = (keys[counted] if len(keys) else counted).tolist()
        for key, low, high in zip(at, *limbs, strict=True):
            own, power_of = divmod(key, span)
            unit = Fraction(2) ** (power_of + least - 53)
            sums[own] = sums.get(own, Fraction(0)) + ((int(high) << _LIMB) + int(low)) * unit
    return sums


def cost_values(column: ArrowColumn, name: str, file: str) -> FloatArray:
    """A column of costs as float64: NaN where there is none, or no number."""
    column = dense(column)
    if holds_text(column):
        try:
            column = pc.cast(pc.utf8_trim_whitespace(column), pa.float64())
        except pa.ArrowInvalid:
            column = pa.array([as_number(text) for text in column.to_pylist()], pa.float64())
    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if not (numeric or pa.types.is_decimal(column.type) or pa.types.is_null(column.type)):
        raise InputError(f"column '{name}' has the type {column.type}, which is not a cost", Location(file))
    values: FloatArray = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(values), values, np.nan)


def as_number(text: str | None) -> float | None:
    """The number that a text is, None where it is none."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


COST_STREAM = 0xC057
KINDS = {"exact": 0, "two-point": 2, "uniform": 1, "normal": 1}
"""The kinds of noise, and how many numbers each takes."""


@dataclass(frozen=True)
class CostNoise:
    """How a cost is drawn around its mean.

    >>> CostNoise.parse("two-point:0,5")
    CostNoise(kind='two-point', numbers=(0.0, 5.0))
    """

    kind: str
    numbers: tuple[float, ...]

    @staticmethod
    def parse(text: str) -> CostNoise:
        kind, _, rest = text.strip().partition(":")
        try:
            numbers = tuple(float(piece) for piece in rest.split(",")) if rest else ()
        except ValueError:
            numbers = (float("nan"),)
        sound = KINDS.get(kind) == len(numbers) and bool(np.isfinite(numbers).all())
        if sound and kind == "two-point":
            sound = numbers[0] < numbers[1]
        if not sound or (KINDS[kind] == 1 and numbers[0] < 0):
            raise InputError(
                f"`costs` is '{text}', which is not a distribution of costs",
                hint="write exact, two-point:0,5, uniform:0.5 or normal:0.2",
            )
        return CostNoise(kind, numbers)

    def draw(self, mean: FloatArray, random: np.random.Generator) -> FloatArray:
        """One cost for every mean."""
        if self.kind == "exact":
            return mean
        if self.kind == "two-point":
            low, high = self.numbers
            likely = random.random(len(mean)) < (mean - low) / (high - low)
            return np.where(likely, high, low)
        (width,), size = self.numbers, len(mean)
        is_uniform = self.kind == "uniform"
        return mean + width * (
            2.0 * random.random(size) - 1.0 if is_uniform else random.standard_normal(size)
        )


class CostSource:
    """Draws the costs of steps; what it has drawn depends on the seed and on the steps before alone."""

    def __init__(self, mean: FloatArray, noise: CostNoise, seed: int):
        if noise.kind == "two-point" and len(mean):
            low, high = noise.numbers
            if not low <= float(mean.min()) <= float(mean.max()) <= high:
                outside = mean.min() if mean.min() < low else mean.max()
                raise InputError(
                    f"a mean cost is {outside:g}, outside of {low:g} and {high:g}, the values that are drawn"
                )
        self.mean, self.noise = mean, noise
        self._random = np.random.default_rng([COST_STREAM, seed])

    def __call__(self, transition: OffsetArray) -> FloatArray:
        return self.noise.draw(self.mean[transition], self._random)


def mean_costs(reward: RewardStructure, structure: Structure, point: list[Fraction]) -> FloatArray:
    """The mean cost of every transition at a point."""
    if isinstance(reward, ParametricReward):
        return reward.expressions.values(point)[reward.of_transitions(structure)]
    return reward.per_choice(structure)[structure.transition_choice]


def reward_of(rewards: Mapping[str, RewardStructure]) -> RewardStructure:
    """The one reward structure that costs can be drawn from, where none is asked for by name."""
    unknown = [name for name, reward in rewards.items() if isinstance(reward, ParametricReward)]
    usable = {name: rewards[name] for name in unknown or rewards}
    if len(usable) == 1:
        return next(iter(usable.values()))
    what = "no rewards" if not usable else f"the rewards {', '.join(repr(name) for name in usable)}"
    raise InputError(
        f"the model has {what}, so the reward to draw costs from is ambiguous",
        hint="name a property that asks for one reward structure" if usable else None,
    )
