"""Episodes that are each collected under one of several policies, drawn by their shares.

A mixture of policies is not one randomised policy: what it does in a state depends on what was drawn when the
episode began. Where policies depend on the step this is the only way to execute it exactly.

Within a batch the order of episodes does not matter, so their numbers per policy are drawn (multinomial) and
each policy's episodes simulated together; that is the distribution of drawing one policy per episode.

`append_episodes` puts episodes after those that there are: one data set, collected in stages. Batches go on
where they were: they end after the same numbers of episodes as those of any other data
(`tightrope.data.batches`), so a batch that the end of the earlier data cut short is filled up first. Who
collects the later episodes may have looked at the earlier ones, so the design is adaptive and has no plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.data.batches import Batches, batch_ends, next_end
from tightrope.data.counts import Counts
from tightrope.data.design import OPEN_END, SamplingDesign, SamplingKind
from tightrope.data.simulator import Simulator
from tightrope.errors import InputError
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import OffsetArray

CLOSE = 1e-6
"""How far shares may sum from 1."""


@dataclass(frozen=True, eq=False)
class MixedEpisodes:
    """A simulator whose policy is drawn anew for every episode.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> truth = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash())
    >>> both = MixedEpisodes(truth, [0.25, 0.75], [tr.Policy.uniform(bench.model)] * 2)
    >>> both.episodes(100, seed=1).design.episodes
    100
    """

    simulator: Simulator
    shares: Sequence[float]
    policies: Sequence[Policy]

    def __post_init__(self) -> None:
        if len(self.shares) != len(self.policies) or not len(self.shares):
            raise InputError(f"{len(self.policies)} policies have {len(self.shares)} shares")
        if min(self.shares) < 0.0 or abs(sum(self.shares) - 1.0) > CLOSE:
            raise InputError(f"the shares of policies sum to {sum(self.shares):.6g}, not to 1")

    @property
    def hash(self) -> str:
        """The hash that the counts carry."""
        return self.simulator.hash

    @property
    def repeats(self) -> bool:
        """Whether an episode can take the same choice twice."""
        return self.simulator.repeats

    def episodes(self, episodes: int, seed: int, first: int = 0) -> Counts:
        """Counts of episodes in batches, as `Simulator.episodes` has them."""
        if episodes < 1:
            raise InputError(f"the number of episodes is {episodes}, but it must be at least 1")
        share = np.asarray(self.shares, dtype=np.float64)
        each = [replace(self.simulator, policy=policy) for policy in self.policies]
        parts: list[tuple[OffsetArray, OffsetArray]] = []
        begin = 0
        for end in batch_ends(episodes).tolist():
            rng = np.random.default_rng([seed, first + begin])
            sizes = rng.multinomial(end - begin, share / share.sum())
            total = np.zeros(self.simulator.mdp.transitions, dtype=np.int64)
            for walker, size in zip(each, sizes.tolist(), strict=True):
                if size:
                    total += walker.episodes(size, seed, first=first + begin).transition
                    begin += size
            seen: OffsetArray = np.flatnonzero(total)
            parts.append((seen, total[seen]))
        batches = Batches.from_parts(parts)
        steps = int(batches.count.sum())
        design = SamplingDesign(SamplingKind.TRAJECTORIES, episodes, steps, self.repeats, planned=episodes)
        return Counts.from_batches(batches, self.simulator.mdp.transition_start, design, self.hash)


def append_episodes(counts: Counts, simulator: Simulator | MixedEpisodes, episodes: int, seed: int) -> Counts:
    """The counts with so many episodes of the simulator after them.

    With the seed of earlier episodes of the same simulator new numbers are drawn all the same.
    """
    earlier, design = counts.design.episodes, counts.design
    if counts.model_hash != simulator.hash:
        raise InputError(
            "the data are those of another model",
            hint="build the model with the constants and the domain that the data were collected with",
        )
    if earlier is None or counts.batches is None:
        raise InputError("the data do not come in episodes, so no episodes can be appended to them")
    if episodes < 1:
        raise InputError(f"the number of episodes is {episodes}, but it must be at least 1")
    parts = list(counts.batches)
    total = earlier + episodes
    ends = batch_ends(total)
    is_open = len(parts) > 0 and earlier not in batch_ends(next_end(earlier) * 2)
    begin = earlier
    for end in ends[ends > earlier].tolist():
        drawn = simulator.episodes(end - begin, seed, first=begin).transition
        if begin == earlier and is_open:
            drawn = drawn + _dense(parts.pop(), len(drawn))
        seen: OffsetArray = np.flatnonzero(drawn)
        parts.append((seen, drawn[seen]))
        begin = end
    batches = Batches.from_parts(parts)
    steps = int(batches.count.sum())
    missing = tuple(dict.fromkeys([*design.censored, *([OPEN_END] if design.open_end else [])]))
    repeats = design.repeats or simulator.repeats
    later = SamplingDesign(SamplingKind.ADAPTIVE, total, steps, repeats, censored=missing)
    return Counts.from_batches(batches, counts.transition_start, later, counts.model_hash)


def _dense(part: tuple[OffsetArray, OffsetArray], size: int) -> OffsetArray:
    result = np.zeros(size, dtype=np.int64)
    result[part[0]] = part[1]
    return result
