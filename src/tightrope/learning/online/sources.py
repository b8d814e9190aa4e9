"""Where episodes come from: a simulated model, or an environment that is stepped.

Both draw an episode's randomness from the seed and the episode's number alone, so that a run that was
interrupted goes on as if it had not been. Simulated episodes are counted as they are drawn; whoever wants to
hear of them in their order (`GrowingCounts.listener`) is told by drawing them once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tightrope.data.environments import SteppedEnvironment
from tightrope.data.growing import GrowingCounts
from tightrope.data.simulator import Simulator
from tightrope.data.until_doubled import simulate_until_doubled
from tightrope.formats.policy import Policy


class Source(Protocol):
    """Anything that adds episodes under a policy to the data."""

    def collect(self, policy: Policy, data: GrowingCounts, last: int) -> None:
        """Add episodes until an update is due or the data have `last`."""


@dataclass(frozen=True, eq=False)
class SimulatedEpisodes:
    """Episodes of a model at the true point."""

    simulator: Simulator
    seed: int

    def collect(self, policy: Policy, data: GrowingCounts, last: int) -> None:
        first, done = data.number, data.episodes
        simulate_until_doubled(self.simulator, policy, self.seed, data, last)
        if data.listener is not None:
            again = replace(self.simulator, policy=policy)
            for block in again.trajectories(data.episodes - done, self.seed, first):
                data.listener(block.transition)


@dataclass(frozen=True, eq=False)
class EnvironmentEpisodes:
    """Episodes of an environment, which is reset with a seed of its own for every one of them."""

    environment: SteppedEnvironment
    seed: int

    def collect(self, policy: Policy, data: GrowingCounts, last: int) -> None:
        while data.episodes < last:
            number = data.number
            seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
            data.add(self.environment.episode(number, policy.draw, seed))
            if data.update_is_due:
                return
