"""Data of a model under a finite-memory policy.

The model is walked in the product with the policy's memory, where the policy is an ordinary one
(`tightrope.model.product`). What was seen is counted in transitions of the model: copies that differ in
what was remembered count together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.data.batches import Batches
from tightrope.data.counts import Counts
from tightrope.data.simulator import DEFAULT_CAP, Simulator, Trajectories
from tightrope.data.stopping import absorbing_states, can_repeat_choice
from tightrope.errors import InputError
from tightrope.model.graph.support import Support
from tightrope.model.mdp import MDP
from tightrope.model.policy import Policy
from tightrope.model.product import Product, lift_model, product_with_memory
from tightrope.numerics.arrays import BoolArray


@dataclass(frozen=True, eq=False)
class SteeredSimulator:
    """The face of a `Simulator`, under a finite-memory policy.

    >>> import tightrope as tr
    >>> rows = [(0, "left", {1: 1}), (0, "right", {2: 1}), (1, "", {0: 1}), (2, "", {0: 1})]
    >>> model = tr.build_from_rows(rows).instantiate()
    >>> turns = tr.FiniteMemoryChoices([0, 1, 0, 2], [0, 1, 1, 0], [0, 2, 1, 3], [1, 1, 0, 0])
    >>> SteeredSimulator(model, tr.Policy(model, turns), cap=8).episodes(1, seed=1).transition.tolist()
    [2, 2, 2, 2]
    """

    mdp: MDP
    policy: Policy
    stop: BoolArray | None = None
    cap: int = DEFAULT_CAP
    model_hash: str | None = None

    def episodes(self, episodes: int, seed: int, first: int = 0) -> Counts:
        """Counts of so many trajectories, as transitions of the model."""
        product, walker = self._walker
        counts = walker.episodes(episodes, seed, first)
        assert counts.batches is not None
        parts = []
        for begin, end in zip(counts.batches.start[:-1], counts.batches.start[1:], strict=True):
            own = product.transition[counts.batches.transition[begin:end]]
            transition, place = np.unique(own, return_inverse=True)
            count = np.zeros(len(transition), np.int64)
            np.add.at(count, place, counts.batches.count[begin:end])
            parts.append((transition, count))
        repeats = can_repeat_choice(self.mdp.structure, self._stopping, self.cap)
        design = replace(counts.design, repeats=repeats)
        name = self.model_hash if self.model_hash is not None else self.mdp.hash()
        return Counts.from_batches(Batches.from_parts(parts), self.mdp.transition_start, design, name)

    def trajectories(self, episodes: int, seed: int, first: int = 0) -> Iterator[Trajectories]:
        """The same episodes step by step."""
        product, walker = self._walker
        for block in walker.trajectories(episodes, seed, first):
            yield replace(block, transition=product.transition[block.transition])

    def generative(self, samples: object, seed: int) -> Counts:
        """Draws from every choice follow no policy."""
        raise InputError(
            "draws of single choices follow no policy: a finite-memory policy goes with episodes"
        )

    @cached_property
    def _walker(self) -> tuple[Product, Simulator]:
        product, policy = product_with_memory(self.mdp, self.policy, Support.of(self.mdp))
        beside = lift_model(self.mdp, product)
        return product, Simulator(beside, policy.probability, self._stopping[product.state], self.cap)

    @cached_property
    def _stopping(self) -> BoolArray:
        absorbing = absorbing_states(self.mdp.structure)
        return absorbing if self.stop is None else absorbing | self.stop
