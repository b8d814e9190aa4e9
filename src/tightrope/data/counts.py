"""How often each transition was observed, optionally in time-ordered batches.

Statistics use nothing else of the data: counts, sampling design (`tightrope.data.design`), hash of the model.
The likelihood region predicts each batch from all earlier ones, so boundaries of batches are fixed in advance
and never depend on outcomes. `batch_ends` grows them geometrically.

`cover` says which choices were visited. Guarantees about policies that take others rest on choices with the
same expressions, or on the domain alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.data.costs import CostSums
from tightrope.data.design import SamplingDesign
from tightrope.data.fit_tables import ONE, TableCounter
from tightrope.errors import InputError, check_type, describe
from tightrope.model.states import action_column, state_columns, to_pandas, with_states
from tightrope.model.structure import Structure, Structured
from tightrope.numerics.arrays import AnyArray, FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record, freeze_fields
from tightrope.provenance import Provenance, of_counts

EpisodeRows = Any
"""An `EpisodeLog` (`tightrope.data.episode_log`, which counts)."""


MOST, LONG = 20_000_000, 1_000_000
"""Rows of a log that are held (those after them are left out), and those that are tested one by one."""


@dataclass
class LazyLog:
    """The rows of a log, read when they are asked for, once; the first ones alone where that can be done."""

    read: Callable[[], EpisodeRows]
    structure: Structure | None = None
    read_first: Callable[..., EpisodeRows] | None = None
    held: EpisodeRows = None

    def __call__(self) -> EpisodeRows:
        if self.held is None:
            self.held = self.read()
        return self.held

    def first(self, rows: int) -> EpisodeRows:
        """The first rows alone."""
        if self.held is None and self.read_first is not None:
            return self.read_first(rows)
        return self().first(rows)


@dataclass(frozen=True, eq=False, repr=False)
class Counts(Record):
    """Counts per transition; `transition_start` gives the transitions of each choice.

    `log` returns the counted rows (`data.episode_log`), or None if they are gone; it is not pickled. `names`
    are the log's own values of variables: {"wear": {"0": "new"}}.

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
    log: Callable[[], EpisodeRows] | None = field(default=None, compare=False, repr=False)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False, repr=False)
    seen: Provenance | Callable[[], Provenance] | None = field(default=None, compare=False, repr=False)
    """Which rows were counted, where reading them has found it out; else `provenance` does."""
    observed: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    """What was made of all rows while they were counted, where that was asked for."""

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "log": None, "seen": self.provenance, "observed": ()}

    def __post_init__(self) -> None:
        for name in ("transition", "transition_start"):
            check_type(name, getattr(self, name), np.ndarray, "an array; tr.read_data counts logs")
        if self.transition.dtype != np.int64 or self.transition.ndim != 1:
            raise InputError("`transition` is not one int64 per transition")
        if len(self.transition_start) == 0 or self.transition_start[-1] != len(self.transition):
            raise InputError(
                f"{len(self.transition)} counts, but transition_start ends at {self.transition_start[-1:]}"
            )
        if np.any(self.transition < 0):
            raise InputError("counts must not be negative")
        if self.batches is not None and not np.array_equal(
            self.batches.total(len(self.transition)), self.transition
        ):
            raise InputError("the batches do not sum to the counts")
        object.__setattr__(self, "names", MappingProxyType(dict(self.names)))
        freeze_fields(self)

    @staticmethod
    def from_batches(
        batches: Batches, transition_start: OffsetArray, design: SamplingDesign, model_hash: str
    ) -> Counts:
        """Make counts from batches in time order.

        Parameters
        ----------
        batches : Batches
            Counts of each batch.
        transition_start : array of int
            The first transition of every choice.
        design : SamplingDesign
            How the data were collected.
        model_hash : str
            `hash()` of the model.

        Returns
        -------
        Counts
            The batches and their sum.
        """
        total = batches.total(int(transition_start[-1]))
        return Counts(total, transition_start, design, model_hash, batches)

    def times(self, number: int) -> Counts:
        """The same counts multiplied by `number`, for forecasts; without order, costs and rows."""
        check_type("number", number, int, "a whole number")
        design = self.design
        if design.episodes is not None:
            design = replace(design, episodes=design.episodes * number, steps=self.steps * number)
        return replace(
            self,
            transition=self.transition * number,
            design=design,
            batches=None,
            costs=None,
            log=None,
            observed=(),
        )

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
        """Return counts from rows. Rows of one transition are added.

        Parameters
        ----------
        transition, count : array_like of int
            A transition's index in the model, and its count.
        transition_start, design, model_hash
            As for `from_batches`.
        batch : array_like of int, optional
            The batch of each row, in the order of time.
        batches : int, optional
            The number of batches. A number without rows is then an empty batch.
        """
        index = np.asarray(transition, dtype=np.int64)
        number = np.asarray(count, dtype=np.int64)
        if batch is None:
            total = added(index, number, int(transition_start[-1]))
            return Counts(total, transition_start, design, model_hash)
        labels, group = np.unique(np.asarray(batch, dtype=np.int64), return_inverse=True)
        if batches is not None:
            if len(labels) and not 0 <= labels[0] <= labels[-1] < batches:
                raise InputError(f"batches {labels[0]}..{labels[-1]} are not within 0..{batches - 1}")
            group = labels[group]
        counter, seen = BatchCounter(), number > 0
        counter.add(group[seen], index[seen], number[seen])
        held = counter.finish(len(labels) if batches is None else batches)
        return Counts.from_batches(held, transition_start, design, model_hash)

    @cached_property
    def provenance(self) -> Provenance:
        """Which rows were counted."""
        if self.seen is not None:
            return self.seen() if callable(self.seen) else self.seen
        if isinstance(self.log, LazyLog) and self.log.structure is not None:
            rows: Provenance = self.log().provenance(self.log.structure)
            return rows
        return of_counts(None, self.transition)

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
        met, seen = np.count_nonzero(self.visits), np.count_nonzero(self.transition)
        facts = [
            ("sampled", f"{design.kind.value}{episodes}"),
            ("choices", f"{met:,} of {len(self.visits):,} were taken"),
            ("transitions", f"{seen:,} of {len(self.transition):,} were seen"),
            ("model", self.model_hash[:12]),
        ]
        if self.batches is not None:
            facts.append(("batches", f"{len(self.batches):,}"))
        if self.costs is not None:
            facts.append(("costs", f"{self.costs.number:,} observed"))
        return facts + [("missing", reason) for reason in design.censored]

    def to_arrow(self, model: Structured) -> Any:
        """Return a table with a row per observed transition: state, action, next state, count.

        Parameters
        ----------
        model : ParametricMDP or MDP
            The model of the counts.
        """
        structure = getattr(model, "structure", None)
        if structure is None:
            raise InputError(f"`model` is {describe(model)}, not a model")
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

    def to_dataframe(self, model: Structured) -> Any:
        """Return `to_arrow` as a data frame.

        Parameters
        ----------
        model : ParametricMDP or MDP
            The model of the counts.
        """
        return to_pandas(self.to_arrow(model))

    def through(self, batch: int) -> OffsetArray:
        """Counts per transition in the batches before number `batch`."""
        if self.batches is None:
            raise ValueError("these counts have no batches")
        end = int(self.batches.start[batch])
        return added(self.batches.transition[:end], self.batches.count[:end], len(self.transition))

    def __add__(self, later: Counts) -> Counts:
        """These data, then the later ones: batches follow each other, designs weaken to the weaker one.

        Where only one of the two has batches, the other counts as a single batch.
        """
        check_type("later", later, Counts, "counts")
        if self.model_hash != later.model_hash or len(self.transition) != len(later.transition):
            raise InputError(
                "counts of two different models cannot be added",
                hint="build both from the same model with the same constants and domain",
            )
        design = self.design.merged(later.design)
        costs = self.costs if later.costs is None else later.costs
        if self.costs is not None and later.costs is not None:
            costs = self.costs + later.costs
        first, second, log = self.log, later.log, None
        if first is not None and second is not None:
            log = LazyLog(lambda: first() + second())
        if self.batches is None and later.batches is None:
            total = self.transition + later.transition
            counts = Counts(total, self.transition_start, design, self.model_hash)
        else:
            batches = self.in_batches + later.in_batches
            counts = Counts.from_batches(batches, self.transition_start, design, self.model_hash)
        both = zip(self.observed, later.observed, strict=False)
        observed = tuple(mine + others for mine, others in both)
        counts = replace(counts, costs=costs, log=log, names={**later.names, **self.names}, observed=observed)
        return replace(counts, seen=lambda: self.provenance | later.provenance)

    @property
    def in_batches(self) -> Batches:
        """The batches, or all counts as one."""
        return Batches.from_parts([sparse(self.transition)]) if self.batches is None else self.batches


def added(place: AnyArray, number: OffsetArray, size: int) -> OffsetArray:
    """The sum of the numbers at each place."""
    result = np.zeros(size, dtype=np.int64)
    np.add.at(result, place, number)
    return result


def sparse(count: OffsetArray) -> tuple[OffsetArray, OffsetArray]:
    """The transitions that were seen, and how often."""
    seen: OffsetArray = np.flatnonzero(count)
    return seen, count[seen]


RATIO_NUMERATOR, RATIO_DENOMINATOR = 5, 4
"""Each boundary is 5/4 of the one before, rounded down, and at least one more."""


def batch_ends(total: int) -> OffsetArray:
    """The ends of the batches of `total` episodes (or rows), the last one being `total` itself.

    >>> batch_ends(20).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20]
    """
    ends: list[int] = []
    end = 0
    while end < total:
        end = min(total, next_end(end))
        ends.append(end)
    return np.array(ends, dtype=np.int64)


def next_end(end: int) -> int:
    """The boundary after `end`."""
    return max(end + 1, end * RATIO_NUMERATOR // RATIO_DENOMINATOR)


_ENDS = batch_ends(1 << 50)


def batch_of(position: OffsetArray) -> OffsetArray:
    """The batches of rows, or episodes, by their numbers from 0."""
    return np.searchsorted(_ENDS, position, side="right")


def batches_from(first: int, rows: int) -> OffsetArray:
    """The batches of so many rows from number `first` on."""
    low, high = batch_of(np.array([first, first + rows - 1])).tolist()
    ends = np.r_[first, _ENDS[low:high], first + rows]
    return np.repeat(np.arange(low, high + 1), np.diff(ends))


@dataclass(frozen=True, eq=False, repr=False)
class Batches(Record):
    """Sparse counts per batch: those of batch b are `transition[start[b]:start[b+1]]` and `count[...]`.

    Transitions rise strictly within a batch and counts are positive; an empty batch is allowed.
    """

    start: OffsetArray
    transition: OffsetArray
    count: OffsetArray

    def __post_init__(self) -> None:
        if len(self.start) == 0 or self.start[0] != 0 or np.any(np.diff(self.start) < 0):
            raise ValueError("batch starts must begin at 0 and never fall")
        if not self.start[-1] == len(self.transition) == len(self.count):
            raise ValueError("batch starts, transitions and counts disagree in length")
        if np.any(self.count <= 0):
            raise ValueError("a batch lists only transitions that it has seen")
        rising = np.diff(self.transition, prepend=-1) > 0
        rising[self.start[:-1][self.start[:-1] < len(rising)]] = True
        if not np.all(rising):
            raise ValueError("transitions must rise strictly within a batch")
        freeze_fields(self)

    @staticmethod
    def from_parts(parts: Sequence[tuple[OffsetArray, OffsetArray]]) -> Batches:
        """Batches from one (transitions, counts) pair each, in time order."""
        start = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(transition) for transition, _ in parts], out=start[1:])
        transitions = [np.asarray(transition, dtype=np.int64) for transition, _ in parts]
        counts, empty = [np.asarray(n, dtype=np.int64) for _, n in parts], [np.empty(0, dtype=np.int64)]
        return Batches(start, np.concatenate(transitions + empty), np.concatenate(counts + empty))

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, batch: int) -> tuple[OffsetArray, OffsetArray]:
        """The transitions seen in one batch and how often."""
        if not 0 <= batch < len(self):
            raise IndexError(f"batch {batch} of {len(self)}")
        part = slice(self.start[batch], self.start[batch + 1])
        return self.transition[part], self.count[part]

    def __iter__(self) -> Iterator[tuple[OffsetArray, OffsetArray]]:
        return (self[batch] for batch in range(len(self)))

    def __add__(self, later: Batches) -> Batches:
        """These batches, then the later ones."""
        return Batches.from_parts([*self, *later])

    def total(self, transitions: int) -> OffsetArray:
        """The counts of all batches together, one per transition of the model."""
        return added(self.transition, self.count, transitions)


class BatchCounter(TableCounter):
    """Takes transitions in any order, each with the number of its batch."""

    def __init__(self) -> None:
        super().__init__(most=1 << 62)

    def add(self, value: OffsetArray, transition: OffsetArray, number: OffsetArray = ONE) -> None:
        first, size = int(value.min()) if len(value) else 0, int(transition.max(initial=0)) + 1
        if number is ONE and (int(value.max(initial=0)) + 1 - first) * size <= len(value):
            every = np.bincount((value - first) * size + transition)
            key = np.flatnonzero(every)
            value, transition, number = first + key // size, key % size, every[key]
        super().add(value, transition, number)

    def add_at(self, transition: OffsetArray, position: OffsetArray) -> None:
        """Count transitions by the numbers of their rows or episodes, from 0."""
        self.add(batch_of(position), transition)

    def finish(self, batches: int = 0) -> Batches:
        """All batches, at least so many."""
        table = self.table()
        ends = np.arange(max(batches, int(table.value.max(initial=-1)) + 1) + 1)
        return Batches(np.searchsorted(table.value, ends), table.transition, table.number)


LISTED = 5
"""How many choices are named among those with the fewest visits, and among those with none."""


@dataclass(frozen=True)
class ActionCoverage:
    """The choices of one action: how many there are, how many were taken, and how often altogether."""

    action: str
    choices: int
    visited: int
    visits: int


@dataclass(frozen=True)
class ChoiceVisits:
    """How often a choice was taken."""

    choice: str
    visits: int


@dataclass(frozen=True)
class Coverage:
    """What was visited. Open choices have more than one outcome, so that data can say more about them.

    `fewest_visits` are of the choices taken least often; `never_visited` names some open ones that were not
    taken at all.
    """

    states: int
    states_visited: int
    choices: int
    visited: int
    open_choices: int
    open_visited: int
    actions: tuple[ActionCoverage, ...]
    fewest_visits: tuple[ChoiceVisits, ...]
    never_visited: tuple[str, ...]


def cover(structure: Structure, counts: Counts) -> Coverage:
    """The coverage of a model's choices by counts; actions with the most visits come first."""
    visits = counts.visits
    is_visited = visits > 0
    action = structure.action_of_choice
    size = len(structure.action_names)
    choices = np.bincount(action, minlength=size)
    visited = np.bincount(action[is_visited], minlength=size)
    total = added(action, visits, size)
    order = [a for a in np.lexsort((np.arange(size), -total)).tolist() if choices[a]]
    several = np.diff(structure.transition_start) > 1
    rare = np.flatnonzero(is_visited)
    rare = rare[np.argsort(visits[rare], kind="stable")[:LISTED]]
    never = np.flatnonzero(several & ~is_visited)[:LISTED]
    return Coverage(
        states=structure.states,
        states_visited=len(np.unique(structure.choice_state[is_visited])),
        choices=structure.choices,
        visited=int(is_visited.sum()),
        open_choices=int(several.sum()),
        open_visited=int((several & is_visited).sum()),
        actions=tuple(
            ActionCoverage(structure.action_names[a], int(choices[a]), int(visited[a]), int(total[a]))
            for a in order
        ),
        fewest_visits=tuple(ChoiceVisits(structure.choice_name(int(c)), int(visits[c])) for c in rare),
        never_visited=tuple(structure.choice_name(int(c)) for c in never),
    )


def expected_counts(counts: Counts, expected: FloatArray, episodes: int) -> Counts:
    """Those of so many episodes of the same design if each transition is taken as often as is `expected` of
    one."""
    done, parts = np.zeros(len(expected), dtype=np.int64), []
    for end in batch_ends(episodes).tolist() if counts.batches is not None else [episodes]:
        upto = np.rint(expected * end).astype(np.int64)
        parts.append(sparse(upto - done))
        done = upto
    fixed = None if counts.design.planned is None else episodes
    design = replace(counts.design, episodes=episodes, steps=int(done.sum()), planned=fixed)
    batches = None if counts.batches is None else Batches.from_parts(parts)
    return Counts(done, counts.transition_start, design, counts.model_hash, batches)
