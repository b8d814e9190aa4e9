"""How often each transition was seen, optionally in time-ordered batches.

`Counts` is all that statistics ever see of the data: the number of times each transition of the model
was taken, the design it was sampled under (`tightrope.data.design`), and the hash of the model whose
transitions it counts. Visits of a choice are the sum over its transitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.data.batches import Batches
from tightrope.data.costs import CostSums
from tightrope.data.design import SamplingDesign
from tightrope.errors import InputError
from tightrope.model.policy import HasStructure
from tightrope.model.states import action_column, state_columns, to_pandas, with_states
from tightrope.numerics.arrays import OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields


@dataclass(frozen=True, eq=False, repr=False)
class Counts(Record):
    """Counts per transition; `transition_start` is the model's and says which choice owns which.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})])
    >>> counts = tr.read_data([[(0, "go", 0), (0, "go", 1)]], model).counts
    >>> counts.transition.tolist(), counts.steps
    ([1, 1, 0], 2)
    """

    transition: OffsetArray
    transition_start: OffsetArray
    design: SamplingDesign
    model_hash: str
    batches: Batches | None = None
    costs: CostSums | None = None

    def __post_init__(self) -> None:
        if self.transition.dtype != np.int64 or self.transition.ndim != 1:
            raise ValueError("counts are one int64 a transition")
        if len(self.transition_start) == 0 or self.transition_start[-1] != len(self.transition):
            raise ValueError(
                f"{len(self.transition)} counts, but transition_start ends at {self.transition_start[-1:]}"
            )
        if np.any(self.transition < 0):
            raise ValueError("counts must not be negative")
        if self.batches is not None and not np.array_equal(
            self.batches.total(len(self.transition)), self.transition
        ):
            raise ValueError("the batches do not sum to the counts")
        freeze_fields(self)

    @staticmethod
    def from_batches(
        batches: Batches, transition_start: OffsetArray, design: SamplingDesign, model_hash: str
    ) -> Counts:
        """Counts that are the sum of their batches."""
        total = batches.total(int(transition_start[-1]))
        return Counts(total, transition_start, design, model_hash, batches)

    @staticmethod
    def from_table(
        transition: npt.ArrayLike,
        count: npt.ArrayLike,
        transition_start: OffsetArray,
        design: SamplingDesign,
        model_hash: str,
        batch: npt.ArrayLike | None = None,
        batches: int | None = None,
    ) -> Counts:
        """Counts from rows (transition index, count[, batch number]); rows of one transition add up.

        Batch numbers order the batches in time. They need not be consecutive, unless the number of
        `batches` is given: then they count from 0 and a number without rows is an empty batch.
        """
        index = np.asarray(transition, dtype=np.int64)
        number = np.asarray(count, dtype=np.int64)
        if batch is None:
            total = np.zeros(int(transition_start[-1]), dtype=np.int64)
            np.add.at(total, index, number)
            return Counts(total, transition_start, design, model_hash)
        labels, group = np.unique(np.asarray(batch, dtype=np.int64), return_inverse=True)
        size = len(labels)
        if batches is not None:
            if size and not 0 <= labels[0] <= labels[-1] < batches:
                raise InputError(f"batches {labels[0]}..{labels[-1]} are not within 0..{batches - 1}")
            group, size = labels[group], batches
        seen = number > 0
        index, number, group = index[seen], number[seen], group[seen]
        order = np.lexsort((index, group))
        index, number, group = index[order], number[order], group[order]
        new = np.ones(len(index), dtype=np.bool_)
        new[1:] = (np.diff(index) != 0) | (np.diff(group) != 0)
        first = np.flatnonzero(new)
        added = np.add.reduceat(number, first) if len(first) else number
        start = np.searchsorted(group[first], np.arange(size + 1)).astype(np.int64)
        return Counts.from_batches(Batches(start, index[first], added), transition_start, design, model_hash)

    @cached_property
    def visits(self) -> OffsetArray:
        """How often each choice was taken."""
        total = np.r_[0, np.cumsum(self.transition)].astype(np.int64)
        result: OffsetArray = total[self.transition_start[1:]] - total[self.transition_start[:-1]]
        return result

    @property
    def steps(self) -> int:
        """The number of transitions taken altogether."""
        return int(self.transition.sum())

    def _title_(self) -> str:
        return f"Counts: {self.steps:,} steps"

    def _facts_(self) -> Facts:
        design = self.design
        episodes = "" if design.episodes is None else f", {design.episodes:,} episodes"
        met, taken = np.count_nonzero(self.visits), np.count_nonzero(self.transition)
        facts = [
            ("sampled", f"{design.kind.value}{episodes}"),
            ("choices", f"{met:,} of {len(self.visits):,} were taken"),
            ("transitions", f"{taken:,} of {len(self.transition):,} were seen"),
            ("model", self.model_hash[:12]),
        ]
        if self.batches is not None:
            facts.append(("batches", f"{len(self.batches):,}"))
        if self.costs is not None:
            facts.append(("costs", f"{self.costs.number:,} observed"))
        return facts + [("missing", reason) for reason in design.censored]

    def to_arrow(self, model: HasStructure) -> Any:
        """A pyarrow table with a row per transition that was seen: state, action, next state, count."""
        structure = model.structure
        if not np.array_equal(structure.transition_start, self.transition_start):
            raise InputError("the counts are of another model, with other transitions")
        seen = np.flatnonzero(self.transition)
        choice = structure.transition_choice[seen]
        state = structure.choice_state[choice]
        columns = {
            "action": action_column(structure, choice),
            "choice": choice - structure.choice_start[state],
            **{f"next_{k}": v for k, v in state_columns(structure, structure.successor[seen]).items()},
            "count": self.transition[seen],
        }
        return with_states(structure, state, columns)

    def to_dataframe(self, model: HasStructure) -> Any:
        """The same as a pandas data frame."""
        return to_pandas(self.to_arrow(model))

    def through(self, batch: int) -> OffsetArray:
        """Counts per transition in the batches before number `batch`."""
        if self.batches is None:
            raise ValueError("these counts have no batches")
        end = int(self.batches.start[batch])
        result = np.zeros(len(self.transition), dtype=np.int64)
        np.add.at(result, self.batches.transition[:end], self.batches.count[:end])
        return result

    def __add__(self, later: Counts) -> Counts:
        """These data, then the later ones: batches follow each other, designs weaken to the weaker one.

        Where only one of the two has batches, the other counts as a single batch.
        """
        if self.model_hash != later.model_hash or len(self.transition) != len(later.transition):
            raise InputError(
                "counts of two different models cannot be added",
                hint="build both from the same model with the same constants and domain",
            )
        design = self.design.merged(later.design)
        costs = self.costs if later.costs is None else later.costs
        if self.costs is not None and later.costs is not None:
            costs = self.costs + later.costs
        if self.batches is None and later.batches is None:
            total = self.transition + later.transition
            return Counts(total, self.transition_start, design, self.model_hash, costs=costs)
        batches = self._in_batches() + later._in_batches()
        counts = Counts.from_batches(batches, self.transition_start, design, self.model_hash)
        return counts if costs is None else replace(counts, costs=costs)

    def _in_batches(self) -> Batches:
        if self.batches is not None:
            return self.batches
        seen = np.flatnonzero(self.transition)
        return Batches.from_parts([(seen, self.transition[seen])])
