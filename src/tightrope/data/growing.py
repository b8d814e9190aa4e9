"""Counts that grow an episode at a time, and the rules that say when to look at them again.

Batches end at episodes fixed in advance (`tightrope.data.batches`), whatever is seen in them. The sampling
design is adaptive: who collects the data may have looked at all of the earlier ones.

*Doubling* (Auer, Jaksch and Ortner 2008; paper, Section 5): an update is due at the end of the episode in
which some choice has been taken as often since the last look as before it, and at least once. The rule needs
the visits alone and looks at whole episodes, so it does not matter in which portions episodes arrive. A
choice can double log₂ of its visits times, which bounds the number of updates.
*Batches*: an update is due where a batch ends. That is how often those look who wait for a gap, and those
whose policy does not follow the visits of single choices. Either rule may be asked for, or both; neither
looks at more than visits and numbers of episodes, and the methods that learn from these data hold at all
times at once, so that any rule would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tightrope.data.batches import Batches, next_end
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import OffsetArray


class GrowingCounts:
    """The data of one learner: `pending` are the counts of the batch that is still open.

    `visits[c]` is how often choice c was taken, `looked[c]` how often it had been at the last look. An update
    is due when a choice has doubled (`by_choice`) or a batch has ended (`by_batch`) since then. `planned` is
    the number of episodes that was planned before the first one, where there was such a plan. `before` are
    episodes and steps that came before these data and were forgotten; episodes are numbered over both.
    `listener` is told the transitions of whatever is added, in the order in which they happened.
    """

    def __init__(
        self,
        model: ParametricMDP,
        planned: int | None = None,
        by_choice: bool = True,
        by_batch: bool = False,
        before: tuple[int, int] = (0, 0),
    ):
        self.model, self.planned = model, planned
        self.by_choice, self.by_batch = by_choice, by_batch
        self.before = before
        self.listener: Callable[[OffsetArray], None] | None = None
        self.episodes = 0
        self.steps = 0
        self.pending: OffsetArray = np.zeros(model.transitions, dtype=np.int64)
        self.visits: OffsetArray = np.zeros(model.choices, dtype=np.int64)
        self.looked: OffsetArray = np.zeros(model.choices, dtype=np.int64)
        self.batch_end = next_end(0)
        self._closed: list[tuple[OffsetArray, OffsetArray]] = []
        self._open_episodes = 0
        self._batch_ended = False
        self._begun_with: SamplingDesign | None = None

    def begin_with(self, counts: Counts) -> None:
        """Go on from data that are there already, before the first episode is added."""
        if counts.model_hash != self.model.hash():
            raise InputError(
                "the data are of another model",
                hint="build both from the same model with the same constants and domain",
            )
        if counts.design.episodes is None:
            raise InputError("the data to begin with do not come in episodes")
        batches = counts.batches
        seen = np.flatnonzero(counts.transition)
        self._closed = [(seen, counts.transition[seen])] if batches is None else list(batches)
        self._begun_with = counts.design
        self.episodes, self.steps = counts.design.episodes, counts.steps
        self.visits = counts.visits.copy()
        self.batch_end = next_end(self.episodes)

    @property
    def update_is_due(self) -> bool:
        """Whether one of the rules asks for a look."""
        if self.by_batch and self._batch_ended:
            return True
        return self.by_choice and bool(np.any(self.visits - self.looked >= np.maximum(self.looked, 1)))

    @property
    def compared(self) -> OffsetArray:
        """The visits that a choice must double: those of the last look, or more than there can be."""
        return self.looked if self.by_choice else np.full(len(self.looked), 1 << 61, dtype=np.int64)

    @property
    def number(self) -> int:
        """The number of the next episode: no other one has had it, so its random numbers are its own."""
        return self.before[0] + self.episodes

    def look(self) -> None:
        """From here on visits are compared with those of now."""
        self.looked = self.visits.copy()
        self._batch_ended = False

    def add(self, transitions: OffsetArray) -> None:
        """Count one episode, given by its transitions."""
        np.add.at(self.pending, transitions, 1)
        np.add.at(self.visits, self.model.structure.transition_choice[transitions], 1)
        self.counted(1, len(transitions))
        if self.listener is not None:
            self.listener(transitions)

    def counted(self, episodes: int, steps: int) -> None:
        """Take note of episodes of one batch whose transitions are in `pending` and `visits` already."""
        assert self.episodes + episodes <= self.batch_end
        self.episodes += episodes
        self.steps += steps
        self._open_episodes += episodes
        if self.episodes == self.batch_end:
            self._closed.append(_sparse(self.pending))
            self.pending[:] = 0
            self._open_episodes = 0
            self._batch_ended = True
            self.batch_end = next_end(self.episodes)

    def counts(self) -> Counts:
        """What has been seen so far: the closed batches, and the open one where it has an episode."""
        parts = [*self._closed, _sparse(self.pending)] if self._open_episodes else self._closed
        design = SamplingDesign(
            SamplingKind.ADAPTIVE, self.episodes, self.steps, planned=self.planned, anytime=True
        )
        if (before := self._begun_with) is not None:
            added, steps = self.episodes - (before.episodes or 0), self.steps - before.steps
            design = before.merged(SamplingDesign(SamplingKind.ADAPTIVE, added, steps, anytime=True))
        return Counts.from_batches(
            Batches.from_parts(parts), self.model.transition_start, design, self.model.hash()
        )

    def state(self) -> dict[str, OffsetArray]:
        """Everything, as arrays."""
        batches = Batches.from_parts(self._closed)
        return {
            "batch_start": batches.start,
            "batch_transition": batches.transition,
            "batch_count": batches.count,
            "pending": self.pending,
            "looked": self.looked,
            "progress": np.array([self.episodes, self.steps, self._open_episodes, self.batch_end]),
            "planned": np.array([] if self.planned is None else [self.planned], dtype=np.int64),
            "before": np.array(self.before, dtype=np.int64),
        }

    @staticmethod
    def restored(
        model: ParametricMDP,
        state: Mapping[str, OffsetArray],
        by_choice: bool = True,
        by_batch: bool = False,
        begun_with: SamplingDesign | None = None,
    ) -> GrowingCounts:
        """What `state` was taken of, right after a look; `begun_with` is the design of data it began with."""
        plan = state["planned"].tolist() if "planned" in state else []
        before = state["before"].tolist() if "before" in state else (0, 0)
        data = GrowingCounts(model, plan[0] if plan else None, by_choice, by_batch, (before[0], before[1]))
        data._begun_with = begun_with if before[0] == 0 else None
        batches = Batches(state["batch_start"], state["batch_transition"], state["batch_count"])
        data._closed = list(batches)
        data.pending = state["pending"].copy()
        data.looked = state["looked"].copy()
        total = batches.total(model.transitions) + data.pending
        np.add.at(data.visits, model.structure.transition_choice, total)
        data.episodes, data.steps, data._open_episodes, data.batch_end = state["progress"].tolist()
        return data


def _sparse(count: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    seen = np.flatnonzero(count)
    return seen, count[seen]
