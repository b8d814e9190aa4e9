"""Structure of every kind of model: states, choices, transitions, names and rewards.

Three CSR levels: the choices of state s are choice_start[s]..choice_start[s+1], the transitions of choice c
are transition_start[c]..transition_start[c+1], and transition t leads to successor[t]. The author's names of
states are no part of a model's identity. Rewards are numbers, or polynomials in the parameters, whose numbers
need a point or range.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, describe
from tightrope.model.expressions import Expressions, Point
from tightrope.model.numbers import NotHeldError, doubles
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, IndexArray, OffsetArray
from tightrope.numerics.late import sparse
from tightrope.numerics.record import Facts, Record, remember
from tightrope.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from scipy.sparse import csr_array

MOST_NAMED = 8
"""So many names are listed."""


def sizes(structure: Structure) -> str:
    """`225 states, 400 choices, 1,012 transitions`."""
    counted = (
        (structure.states, "state"),
        (structure.choices, "choice"),
        (structure.transitions, "transition"),
    )
    return ", ".join(f"{number:,} {what}{'' if number == 1 else 's'}" for number, what in counted)


def structure_facts(structure: Structure) -> list[tuple[str, str]]:
    """Names of states, actions, labels and rewards."""
    facts = []
    if structure.valuations:
        facts.append(("variables", list_names(structure.valuations)))
    elif structure.state_names is not None:
        facts.append(("states", structure.state_names.listing()))
    starts = structure.initial_states
    shown = structure.state_name(starts[0])
    facts.append(("initial", shown if len(starts) == 1 else f"{len(starts):,} states, such as {shown}"))
    if names := [name for name in structure.action_names if name]:
        facts.append(("actions", list_names(names)))
    if structure.labels:
        held = ((name, int(np.count_nonzero(members))) for name, members in structure.labels.items())
        facts.append(("labels", list_names(f"{name} ({number:,})" for name, number in held)))
    if structure.rewards:
        facts.append(("rewards", list_names(name or '""' for name in structure.rewards)))
    return facts


def list_names(names: Iterable[str]) -> str:
    """The first few names."""
    every = list(names)
    more = f", … ({len(every)})" if len(every) > MOST_NAMED else ""
    return ", ".join(every[:MOST_NAMED]) + more


START = "start"
"""The action, and the label, of an initial state that stands for a draw of the state that runs begin in."""

END = "end"
"""The label of a state that stands for the end of episodes, which may be over anywhere."""

ELSEWHERE = ("elsewhere_missed", "elsewhere_reached")
"""The labels of states that stand for outcomes that were never seen (`Structure.elsewhere`)."""

UNLABELLED = ""
"""The action name of commands written `[]`."""


@dataclass(frozen=True, eq=False, repr=False)
class Structure(Record):
    """Validated on construction; all arrays are read-only afterwards.

    `state_names` are the user-defined states, if the model was built from such.

    >>> import tightrope as tr
    >>> structure = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})]).structure
    >>> structure.choice_name(0), structure.states, structure.transitions
    ("choice 'go' of state 0", 2, 3)
    """

    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    initial_states: tuple[int, ...] = (0,)
    action: IndexArray | None = None
    action_names: tuple[str, ...] = (UNLABELLED,)
    labels: Mapping[str, BoolArray] = field(default_factory=dict)
    rewards: Mapping[str, RewardStructure] = field(default_factory=dict)
    valuations: Mapping[str, AnyArray] = field(default_factory=dict)
    state_names: NamedStates | None = None
    declared_mdp: bool = False
    """Its author calls it an MDP, even if no state has two choices."""
    definitions: object = None
    """The constants and formulas of the file it was built from, which properties may use by name."""
    made_from: Provenance | None = field(default=None, compare=False, repr=False)
    """The data that the model was drafted or revised from; None where its file names none."""
    named_from: Provenance | None = field(default=None, compare=False, repr=False)
    """The data that its successors were seen in, where nothing else was chosen by these."""
    means: Collection[str] = field(default=(), compare=False, repr=False)
    sums: Collection[str] = field(default=(), compare=False, repr=False)
    """The names of further rewards that are means or sums (`RewardStructure`)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial_states", tuple(int(s) for s in self.initial_states))
        action = self.action if self.action is not None else np.zeros(self.choices, np.int32)
        for name, value in {
            "choice_start": frozen_array(self.choice_start, np.int64),
            "transition_start": frozen_array(self.transition_start, np.int64),
            "successor": frozen_array(self.successor, np.int32),
            "action": frozen_array(action, np.int32),
            "labels": MappingProxyType({k: frozen_array(v, np.bool_) for k, v in self.labels.items()}),
            "rewards": MappingProxyType({k: self._check_reward(k, v) for k, v in self.rewards.items()}),
            "valuations": MappingProxyType({k: frozen_array(v) for k, v in self.valuations.items()}),
            "means": (),
            "sums": (),
        }.items():
            object.__setattr__(self, name, value)
        self._validate()

    def _validate(self) -> None:
        states = self.states
        if states <= 0:
            raise InputError("a model needs at least one state")
        _check_offsets("choice_start", self.choice_start, self.choices)
        _check_offsets("transition_start", self.transition_start, self.transitions)
        empty = np.flatnonzero(np.diff(self.choice_start) == 0)
        if len(empty):
            raise InputError(
                f"state {self.state_name(int(empty[0]))} has no choice",
                hint="give every state at least one choice, a self-loop where nothing happens",
            )
        empty = np.flatnonzero(np.diff(self.transition_start) == 0)
        if len(empty):
            raise InputError(f"{self.choice_name(int(empty[0]))} has no transition")
        if len(self.successor) and (self.successor.min() < 0 or self.successor.max() >= states):
            bad = int(np.flatnonzero((self.successor < 0) | (self.successor >= states))[0])
            raise InputError(
                f"{self.name_at(bad)} leads to state {int(self.successor[bad])}, "
                f"but the states are 0..{states - 1}"
            )
        if not self.initial_states:
            raise InputError("a model needs an initial state")
        if len(set(self.initial_states)) < len(self.initial_states):
            raise InputError("an initial state is given twice")
        for state in self.initial_states:
            if not 0 <= state < states:
                raise InputError(f"the initial state is {state}, but the states are 0..{states - 1}")
        action = self.action_of_choice
        if len(action) != self.choices or (
            len(action) and not 0 <= action.min() <= action.max() < len(self.action_names)
        ):
            raise InputError("every choice needs an action among the action names")
        for what, columns in (("label", self.labels), ("variable", self.valuations)):
            for name, column in columns.items():
                if column.shape != (states,):
                    raise InputError(f"{what} '{name}' has {column.shape[0]} entries for {states} states")
        if self.state_names is not None and len(self.state_names) != states:
            raise InputError(f"{len(self.state_names)} state names are given for {states} states")

    @property
    def own_states(self) -> NamedStates | None:
        """The same as `state_names`, by its older name."""
        return self.state_names

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as the arguments of the constructor: mappings that cannot be written to have no pickles."""
        named = (dict(self.labels), dict(self.rewards), dict(self.valuations))
        arrays = (self.choice_start, self.transition_start, self.successor)
        own = (self.state_names, self.declared_mdp, self.definitions, self.made_from, self.named_from)
        return Structure, (*arrays, self.initial_states, self.action, self.action_names, *named, *own)

    def _title_(self) -> str:
        return f"Structure: {sizes(self)}"

    def _facts_(self) -> Facts:
        return structure_facts(self)

    def _check_reward(self, name: str, reward: RewardStructure) -> RewardStructure:
        is_mean, is_summed = reward.is_mean or name in self.means, reward.is_summed or name in self.sums
        if isinstance(reward, ParametricReward):
            if reward.expression.shape != (self.choices,):
                raise InputError(
                    f"reward structure '{name}' has {len(reward.expression)} polynomials, not {self.choices}"
                )
            own = reward.expressions, reward.expression, reward.by_transition
            return reward if is_mean == reward.is_mean else ParametricReward(reward.name, *own, True)
        parts: dict[str, FloatArray | None] = {}
        for kind, values, size in (
            ("state", reward.state, self.states),
            ("choice", reward.choice, self.choices),
        ):
            if values is None:
                parts[kind] = None
                continue
            frozen = frozen_array(values, np.float64)
            if frozen.shape != (size,):
                raise InputError(f"reward structure '{name}' has {len(frozen)} {kind} rewards, not {size}")
            if not np.all(np.abs(frozen) < 2.0**1023):  # so that sums of two are doubles
                raise InputError(f"reward structure '{name}' has a {kind} reward not finite or too large")
            parts[kind] = frozen
        return replace(reward, **parts, is_mean=is_mean, is_summed=is_summed)

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    @property
    def choices(self) -> int:
        return len(self.transition_start) - 1

    @property
    def transitions(self) -> int:
        return len(self.successor)

    @cached_property
    def draws_start(self) -> bool:
        """Whether the initial state draws another: labelled `start`, one action `start`, never re-entered."""
        if len(self.initial_states) > 1 or START not in self.action_names:
            return False
        state = self.initial_states[0]
        first, last = self.choice_start[state : state + 2].tolist()
        named = [members for name, members in self.labels.items() if name.rstrip("_") == START]
        return (
            last - first == 1
            and self.action_name(first) == START
            and any(members.sum() == 1 and bool(members[state]) for members in named)
            and not bool(np.any(self.successor == state))
        )

    def is_closed(self, members: BoolArray) -> bool:
        """Whether nothing leaves these states."""
        source = self.choice_state[self.transition_choice]
        return not bool(np.any(members[source] & ~members[self.successor]))

    @cached_property
    def elsewhere(self) -> tuple[BoolArray, BoolArray] | None:
        """The states that stand for outcomes that were never seen, where the model has such: those in which
        what is asked for is missed, and those in which it is reached (`Objective.after_elsewhere`). They have
        these labels, and nothing leaves either kind."""
        missed, reached = (self.labels.get(name) for name in ELSEWHERE)
        if missed is None or reached is None or not (missed.any() and reached.any()):
            return None
        apart = not bool(np.any(missed & reached))
        return (missed, reached) if apart and self.is_closed(missed) and self.is_closed(reached) else None

    @property
    def initial(self) -> int:
        """The initial state. An error where there are several: what is about one of them cannot be asked."""
        if len(self.initial_states) > 1:
            raise InputError(
                f"the model has {len(self.initial_states):,} initial states, and this is about one",
                hint="`check` answers for all of them; for more, let one state be initial: init … endinit "
                "that holds there only; where chance decides, an action [start] of a state labelled "
                '"start" draws the first state',
            )
        return self.initial_states[0]

    @property
    def action_of_choice(self) -> IndexArray:
        """`action`, which is never None once the structure stands."""
        assert self.action is not None
        return self.action

    @cached_property
    def choice_state(self) -> IndexArray:
        """The state each choice belongs to."""
        return np.repeat(np.arange(self.states, dtype=np.int32), np.diff(self.choice_start))

    @cached_property
    def longest_choice(self) -> int:
        """The most transitions a choice has."""
        return int(np.diff(self.transition_start).max(initial=1))

    @cached_property
    def transition_choice(self) -> IndexArray:
        """The choice each transition belongs to."""
        return np.repeat(np.arange(self.choices, dtype=np.int32), np.diff(self.transition_start))

    def matrix(self, weight: FloatArray) -> csr_array:
        """Weights of the transitions, with a row per choice and a column per state."""
        return sparse.csr_array((weight, self.successor, self.transition_start), (self.choices, self.states))

    @property
    def is_chain(self) -> bool:
        """One choice per state, and not declared an MDP: a Markov chain."""
        return self.choices == self.states and not self.declared_mdp

    @property
    def has_choices(self) -> bool:
        """Whether some state has two choices."""
        return self.choices > self.states

    def state_name(self, state: int) -> str:
        """`(x=1,y=2)` where the model has variables, else what its author calls it, else the index."""
        if not self.valuations:
            return str(state) if self.state_names is None else repr(self.state_names[state])
        values = ",".join(f"{name}={_show(column[state])}" for name, column in self.valuations.items())
        return f"({values})"

    def action_name(self, choice: int) -> str:
        return self.action_names[int(self.action_of_choice[choice])]

    def choice_name(self, choice: int) -> str:
        """`choice 'up' of state (x=1,y=2)`, for messages."""
        state = int(np.searchsorted(self.choice_start, choice, side="right")) - 1
        name = self.action_name(choice)
        shown = f"'{name}'" if name else f"number {choice - int(self.choice_start[state])}"
        return f"choice {shown} of state {self.state_name(state)}"

    def name_at(self, transition: int | np.integer) -> str:
        """The same of the choice that a transition belongs to."""
        return self.choice_name(int(np.searchsorted(self.transition_start, transition, side="right")) - 1)

    def at_point(self, point: Point) -> Structure:
        """The same structure with the rewards that parameters have at a point; itself where none has any."""
        if not any(isinstance(reward, ParametricReward) for reward in self.rewards.values()):
            return self
        numbers = {
            name: reward.at(point) if isinstance(reward, ParametricReward) else reward
            for name, reward in self.rewards.items()
        }
        return replace(self, rewards=numbers)

    def identity(self, kind: bytes, *parts: bytes) -> str:
        """The hash of a model of that kind: of transitions, actions, labels, rewards and what else it has."""
        digest = hashlib.sha256(kind)
        for array in (self.choice_start, self.transition_start, self.successor, self.action_of_choice):
            digest.update(array.tobytes())
        starts = self.initial_states[0] if len(self.initial_states) == 1 else self.initial_states
        digest.update(f"{starts}|{self.action_names}".encode())
        for name in sorted(self.labels):
            digest.update(name.encode() + np.packbits(self.labels[name]).tobytes())
        for name in sorted(self.rewards):
            digest.update(name.encode() + b"".join(self.rewards[name].identity_parts()))
        for part in parts:
            digest.update(part)
        return digest.hexdigest()


class Structured(Record):
    """Lets a model answer for the structure it holds: `model.successor`, `model.states`, …"""

    structure: Structure
    choice_start: OffsetArray
    transition_start: OffsetArray
    successor: IndexArray
    initial: int
    initial_states: tuple[int, ...]
    labels: Mapping[str, BoolArray]
    rewards: Mapping[str, RewardStructure]
    valuations: Mapping[str, AnyArray]
    states: int
    choices: int
    transitions: int

    def __getattr__(self, name: str) -> object:
        if name not in _FORWARDED:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.structure, name)

    def _title_(self) -> str:
        return f"{type(self).__name__}: {sizes(self.structure)}"

    def _facts_(self) -> Facts:
        return self.structure._facts_()

    @abstractmethod
    def hash(self) -> str:
        """Return the identity of the model."""

    def problem(self, property: object, **options: object) -> Any:
        """Return `tightrope.Problem(model, property, **options)`, a question about this model."""
        return import_module("tightrope").Problem(self, property, **options)

    def plot(self, policy: object = None, *, most: int = 12, ax: Axes | None = None) -> Axes:
        """Return a picture of states, choices and probabilities around the initial state.

        Parameters
        ----------
        policy : Policy, optional
            Mark the choices that it takes.
        most, ax : int, matplotlib.axes.Axes
            The largest number of states, and where to draw.
        """
        axes: Axes = import_module("tightrope.model.picture").draw(self, policy, most, ax)
        return axes

    def to_dot(self, policy: object = None, *, most: int = 40) -> str:
        """Return the picture of `policy` with at most `most` states as a graph for Graphviz."""
        text: str = import_module("tightrope.model.picture").to_dot(self, policy, most)
        return text

    def save(self, path: str | PathLike[str]) -> list[Path]:
        """Write the model to `path`, in the format of its ending, such as .drn. Return the files.

        Files appear completely or not at all. `tightrope.io.formats` lists the formats; a name without an
        ending stands for PRISM's explicit files.
        """
        written: list[Path] = import_module("tightrope.io.formats").save_model(self, path)
        return written


_FORWARDED = frozenset(Structured.__annotations__) - {"structure"}


def freeze(record: object, dtype: npt.DTypeLike, *names: str) -> None:
    """Make these fields of a frozen record read-only arrays of a type."""
    for name in names:
        object.__setattr__(record, name, frozen_array(getattr(record, name), dtype))


def release(*arrays: AnyArray | None) -> None:
    """Make arrays read-only that nobody will write to again: `frozen_array` then takes them as they are."""
    for array in arrays:
        held = array
        while isinstance(held, np.ndarray):
            held.flags.writeable = False
            held = held.base


def _check_offsets(name: str, offsets: OffsetArray, total: int) -> None:
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != total or np.any(np.diff(offsets) < 0):
        raise InputError(f"{name} must rise from 0 to {total}")


def _show(value: np.bool_ | np.integer) -> str:
    return str(bool(value)).lower() if isinstance(value, np.bool_) else str(int(value))


UNKNOWN = -1
"""The index of what is not a state."""

LARGEST = 1 << 63
"""Numbers below are those that arrays hold."""

SHOWN = 6
"""How many states a message lists."""


class NamedStates(Sequence[Hashable]):
    """`states[i]` is what the author calls state number i; all are different.

    >>> own = NamedStates([2, 3, 1])
    >>> own.find(3), own.find(7), own.find("three")
    (1, -1, -1)
    """

    def __init__(self, states: Sequence[Hashable]):
        self._states = states
        self._numbered = isinstance(states, range) and states == range(len(states))
        if not self._numbered and len(self._index) != len(states):
            raise InputError("two states of the model are equal")

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, index: int) -> Hashable:  # type: ignore[override]  # no slices
        return self._states[index]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._states)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedStates) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash((len(self), self._states[0] if len(self) else None))

    def __reduce__(self) -> tuple[object, ...]:
        return NamedStates, (self._states,)

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {state: number for number, state in enumerate(self._states)}

    def find(self, state: object) -> int:
        """The number of a state; `UNKNOWN` where it is none. numpy's scalars and arrays count as values."""
        try:
            return self._index.get(plain(state), UNKNOWN)
        except TypeError:  # not hashable
            return UNKNOWN

    @cached_property
    def are_numbers(self) -> bool:
        """Whether every state is a whole number that fits into 64 bits."""
        return self._numbered or all(
            isinstance(state, int | np.integer)
            and not isinstance(state, bool)
            and -LARGEST <= state < LARGEST
            for state in self._states
        )

    @cached_property
    def are_texts(self) -> bool:
        """Whether every state is a string."""
        return not self._numbered and all(isinstance(state, str) for state in self._states)

    @cached_property
    def has_sequences(self) -> bool:
        """Whether some state is a tuple."""
        return not self._numbered and any(isinstance(state, tuple) for state in self._states)

    def find_numbers(self, values: npt.NDArray[np.int64]) -> OffsetArray:
        """The numbers of many states that are whole numbers; `UNKNOWN` where there is none."""
        if self._numbered:
            return np.where((values >= 0) & (values < len(self)), values, UNKNOWN).astype(np.int64)
        keys, order = self._sorted_numbers
        position = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[position] == values, order[position], UNKNOWN).astype(np.int64)

    @cached_property
    def _sorted_numbers(self) -> tuple[OffsetArray, OffsetArray]:
        keys = np.array(self._states, dtype=np.int64)
        order = np.argsort(keys, kind="stable").astype(np.int64)
        return keys[order], order

    def listing(self) -> str:
        """The first few states, for messages."""
        shown = ", ".join(repr(state) for state in self._states[:SHOWN])
        return shown + (", …" if len(self) > SHOWN else "")


def plain(value: object) -> object:
    """numpy's scalars and arrays, and lists, as the plain values that a model is written in."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    return tuple(plain(entry) for entry in value) if isinstance(value, list) else value


@dataclass(frozen=True, eq=False, repr=False)
class RewardStructure(Record):
    """Rewards of states (earned on leaving) and of choices; None where there are none.

    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "stay", {0: 1})], state_rewards={"time": [2]})
    >>> model.rewards["time"].state.tolist()
    [2.0]
    """

    state: FloatArray | None = None
    choice: FloatArray | None = None
    is_mean: bool = False
    """What choices earn are means: successors of some earn different amounts."""
    is_summed: bool = False
    """What choices earn may include what their states earn."""

    @remember
    def per_choice(self, structure: Structure) -> FloatArray:
        """State and choice rewards added up, one number per choice; read-only."""
        if self.state is None:
            total = np.zeros(structure.choices) if self.choice is None else self.choice.copy()
        else:
            total = np.repeat(self.state, np.diff(structure.choice_start))
            if self.choice is not None:
                total += self.choice
        total.flags.writeable = False
        return total

    def identity_parts(self) -> list[bytes]:
        """What the identity of a model rests on."""
        return [b"-" if part is None else part.tobytes() for part in (self.state, self.choice)]


class Durations(RewardStructure):
    """How long visits last in continuous time: rewards that are time itself."""


class ParametricReward(RewardStructure):
    """Rewards of choices, those of their states included, as rows `expression` of a table of polynomials.

    >>> from tightrope.prism.load import load_prism_text
    >>> text = "mdp const double c; module m x:bool; [a] !x -> (x'=true); [] x -> true; endmodule"
    >>> model = load_prism_text(f"{text} rewards [a] true : 3*c; endrewards")
    >>> model.rewards[""].at((0.5,)).choice.tolist()
    [1.5, 0.0]
    """

    name: str
    expressions: Expressions
    expression: IndexArray
    by_transition: IndexArray | None
    """Where rewards differ by successor: that of every transition. `expression` is then the expectation."""

    def __init__(
        self,
        name: str,
        expressions: Expressions,
        expression: IndexArray,
        by_transition: IndexArray | None = None,
        is_mean: bool = False,
    ):
        expressions.check_held("a reward")
        frozen = frozen_array(expression, np.int32)
        own = None if by_transition is None else frozen_array(by_transition, np.int32)
        for key, value in (("name", name), ("expressions", expressions), ("expression", frozen)):
            object.__setattr__(self, key, value)
        object.__setattr__(self, "by_transition", own)
        object.__setattr__(self, "is_mean", is_mean or own is not None)

    def of_transitions(self, structure: Structure) -> IndexArray:
        """The row of the table that every transition earns: what the mean of an observed cost is."""
        if self.by_transition is not None:
            return self.by_transition
        return self.expression[structure.transition_choice]

    def at(self, point: Point) -> RewardStructure:
        """The rewards at a point: the float64 nearest to the exact values."""
        try:
            choice = doubles(self.expressions.exact_values(point))[self.expression]
            return RewardStructure(None, choice, self.is_mean, True)
        except NotHeldError as error:
            named = f"the rewards '{self.name}'" if self.name else "the rewards"
            raise InputError(f"{named} at this point: {error.message}") from None

    def _refuse(self) -> NoReturn:
        named = f"the rewards '{self.name}'" if self.name else "the rewards"
        raise InputError(
            f"{named} depend on parameters, and what is asked for needs numbers",
            hint="give a point (`at`), or ask over a domain or learn with `sets` rectangular, coupled or "
            "expression",
        )

    @property
    def state(self) -> NoReturn:
        self._refuse()

    @property
    def choice(self) -> NoReturn:
        self._refuse()

    def per_choice(self, structure: Structure) -> FloatArray:
        self._refuse()

    def identity_parts(self) -> list[bytes]:
        texts, place = self._in_order()
        both = f"{self.expressions.parameter_names}{texts}".encode() + place.tobytes()
        return [both] if self.by_transition is None else [both, f"{self._of_transitions()}".encode()]

    def _of_transitions(self) -> list[str] | None:
        own = self.by_transition
        return None if own is None else [self.expressions.text(row) for row in own.tolist()]

    def _in_order(self) -> tuple[list[str], IndexArray]:
        """The polynomials that occur, sorted, and which of them each choice has: the same for every table."""
        written = np.array([self.expressions.text(row) for row in range(len(self.expressions))], dtype=object)
        texts, place = np.unique(written[self.expression].astype(str), return_inverse=True)
        return texts.tolist(), place.reshape(-1).astype(np.int32)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ParametricReward):
            return NotImplemented
        (mine, place), (others, places) = (
            ((each.name, each.expressions.parameter_names, texts, each._of_transitions()), place)
            for each in (self, other)
            for texts, place in (each._in_order(),)
        )
        return mine == others and np.array_equal(place, places)

    def __hash__(self) -> int:
        return hash((self.name, len(self.expression)))

    def __reduce__(self) -> tuple[object, ...]:
        return ParametricReward, (
            self.name,
            self.expressions,
            self.expression,
            self.by_transition,
            self.is_mean,
        )

    def _facts_(self) -> Facts:
        return self.expressions._facts_()


def frozen_array(values: AnyArray, dtype: npt.DTypeLike | None = None) -> AnyArray:
    """A read-only array of this type; copied where it could be written to (`release` saves that)."""
    try:
        array = np.ascontiguousarray(values, dtype=dtype)
    except (TypeError, ValueError):
        raise InputError(f"{describe(values)} is not an array of {np.dtype(dtype).name}") from None
    if np.may_share_memory(array, values) and _is_writeable(array):
        array = array.copy()
    array.flags.writeable = False
    return array


def _is_writeable(array: AnyArray) -> bool:
    """Whether the memory can be written to, by this array or by one that it is a view of."""
    held: object = array
    while isinstance(held, np.ndarray):
        if held.flags.writeable:
            return True
        held = held.base
    return False
