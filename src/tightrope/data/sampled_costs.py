"""Costs of simulated steps: their mean is the model's reward at the true point, around it is noise.

| written | a cost is |
|---|---|
| `exact` | the mean itself |
| `two-point:0,5` | 5 or 0, with the probabilities that give the mean: bounded, and as spread as can be |
| `uniform:W` | uniform between mean − W and mean + W |
| `normal:S` | normal with the standard deviation S |

Costs are drawn in the order of the steps from their own stream, so that the steps of a seed are the same
with and without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.errors import InputError
from tightrope.model.structure import ParametricReward, RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray

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
                f"`costs` is '{text}', which says nothing about how costs are drawn",
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
        (width,) = self.numbers
        if self.kind == "uniform":
            return mean + width * (2.0 * random.random(len(mean)) - 1.0)
        return mean + width * random.standard_normal(len(mean))


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
        values: FloatArray = reward.expressions.values(point)[reward.of_transitions(structure)]
        return values
    return reward.per_choice(structure)[structure.transition_choice]


def reward_of(rewards: Mapping[str, RewardStructure]) -> RewardStructure:
    """The one reward structure that costs can be drawn from, where none is asked for by name."""
    unknown = [name for name, reward in rewards.items() if isinstance(reward, ParametricReward)]
    found = {name: rewards[name] for name in unknown or rewards}
    if len(found) == 1:
        return next(iter(found.values()))
    what = "no rewards" if not found else f"the rewards {', '.join(repr(name) for name in found)}"
    raise InputError(
        f"the model has {what}, so it is not clear what costs are drawn from",
        hint="name a property that asks for one reward structure" if found else None,
    )
