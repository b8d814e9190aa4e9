"""More episodes after those that there are: one data set, collected in stages.

Batches go on where they were: they end after the same numbers of episodes as those of any other data
(`tightrope.data.batches`), so a batch that the end of the earlier data cut short is filled up first. Who
collects the later episodes may have looked at the earlier ones, so the design is adaptive and has no plan.
"""

from __future__ import annotations

import numpy as np

from tightrope.data.batches import Batches, batch_ends, next_end
from tightrope.data.counts import Counts
from tightrope.data.design import OPEN_END, SamplingDesign, SamplingKind
from tightrope.data.mixed_episodes import MixedEpisodes
from tightrope.data.simulator import Simulator
from tightrope.errors import InputError
from tightrope.numerics.arrays import OffsetArray


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
