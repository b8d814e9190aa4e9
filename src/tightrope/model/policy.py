"""Policies of a model in one class: deterministic, randomised, time-varying and finite-memory.

A policy is made from a mapping from states, or a function of the state, to an action's name, the number of a
choice within its state, or probabilities of these; a policy file (`tightrope.model.policy_file`); an integer
per state; a probability per choice; another policy; `TimeVaryingChoices` or `FiniteMemoryChoices`. States
with a single choice may be omitted. Functions get the author's states, else the variables by name, else the
index.

Tables have a row per state and possible choice, with the columns of the state, `from_step` (time-varying) or
`memory` and `next_memory` (finite-memory), `action`, `choice` and `probability`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from tightrope.atomic import atomic_write, path_of
from tightrope.errors import InputError, describe
from tightrope.model import policy_file
from tightrope.model.authored import ask, is_table, table_columns
from tightrope.model.states import (
    Table,
    action_column,
    find_choice,
    find_state,
    index_or_state,
    is_whole,
    show_action,
    show_state,
    to_pandas,
    with_states,
)
from tightrope.model.structure import Structure, Structured
from tightrope.numerics.arrays import AnyArray, FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record
from tightrope.provenance import Provenance
from tightrope.rules.code import export_rule, write_rule
from tightrope.rules.rule import DecisionRule
from tightrope.rules.states import table_rule

SUM_TOLERANCE = 1e-9

SHOWN_STATES = 5
"""So many states are listed where a policy is printed."""

MOST_DRAWN = 2_000
"""A graph of a finite-memory policy with more rows is not drawn."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Policy(Record):
    """What is done in every state of a model.

    `Policy(model, given)` takes a mapping from states to actions, a function of the state, the path of a
    policy file, an array, or another policy of the same model; `docs/python.md` shows each.

    >>> from tightrope import Policy, build_from_rows
    >>> rows = [(0, "stay", {0: 1}), (0, "go", {1: 1}), (1, "", {1: 1})]
    >>> model = build_from_rows(rows, state_names=["here", "there"])
    >>> policy = Policy(model, {"here": "go"})
    >>> policy["here"], policy.actions("here"), policy.action("here"), policy.predict(["here", "there"])
    ('go', {'go': 1.0}, 'go', ['go', ''])
    >>> lazy = Policy(model, lambda state: {"stay": 0.9, "go": 0.1})
    >>> lazy["here"], lazy.is_deterministic, lazy == policy
    ({'stay': 0.9, 'go': 0.1}, False, False)
    """

    structure: Structure
    weight: FloatArray | None
    steps: policy_file.TimeVaryingChoices | None
    memory: policy_file.FiniteMemoryChoices | None

    def __init__(self, model: Structured | Structure, given: PolicyGiven):
        structure = _structure(model)
        if isinstance(given, Policy):
            _refuse_other_model(given.structure, structure)
            choices = given.choices
            vars(self).update(_made_from=given._made_from)
        elif isinstance(given, str | Path):
            choices, made_from = policy_file.read_policy_file(given, structure)
            vars(self).update(_made_from=made_from)
        else:
            choices = _read_given(structure, given)
        if not isinstance(choices, np.ndarray):
            choices.refuse_for(structure)
        if isinstance(choices, policy_file.TimeVaryingChoices) and choices.horizon == 0:
            choices = _weights(structure, choices.first)
        if isinstance(choices, np.ndarray):
            choices.flags.writeable = False
            _check_weights(structure, choices)
        self._fill(structure, choices)

    def _fill(self, structure: Structure, choices: policy_file.Choices) -> None:
        vars(self).update(
            structure=structure,
            weight=choices if isinstance(choices, np.ndarray) else None,
            steps=choices if isinstance(choices, policy_file.TimeVaryingChoices) else None,
            memory=choices if isinstance(choices, policy_file.FiniteMemoryChoices) else None,
        )

    @staticmethod
    def uniform(model: Structured | Structure) -> Policy:
        """Return the policy that takes every choice of a state of `model` with the same probability."""
        structure = _structure(model)
        choices = np.diff(structure.choice_start)
        return Policy(structure, np.repeat(1 / choices, choices))

    @staticmethod
    def of_choices(model: Structured | Structure, choice: npt.NDArray[np.integer]) -> Policy:
        """Return the policy of `model` that takes `choice[s]` in state s, an index among all choices."""
        structure, chosen = _structure(model), np.asarray(choice)
        if chosen.shape != (structure.states,):
            raise InputError(f"the policy names {len(chosen)} choices for {structure.states} states")
        policy_file.check_choices(structure, np.arange(structure.states), chosen)
        policy = Policy.__new__(Policy)  # that the probabilities of a state sum to 1 is known
        weight = _weights(structure, chosen)
        weight.flags.writeable = False
        policy._fill(structure, weight)
        vars(policy).update(is_deterministic=True, choice=chosen.astype(np.int64))
        return policy

    _made_from: ClassVar[object] = None  # no field: it is no part of what the policy does

    @property
    def made_from(self) -> Provenance | None:
        """The data that the policy was made from; None if unknown."""
        if callable(self._made_from):
            vars(self).update(_made_from=self._made_from())
        return self._made_from if isinstance(self._made_from, Provenance) else None

    def made(self, data: Callable[[], Provenance | None]) -> Policy:
        """The same policy, with a record of the data that it was made from."""
        return self.having(_made_from=data)

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_made_from": self.made_from, "rule": self.rule}

    rule: ClassVar[DecisionRule | None] = None  # the tree that is followed wherever the policy comes
    _grow: ClassVar[Any] = None

    def having(self, **words: object) -> Policy:
        """The same policy with a `rule`, or with `_grow`, which finds a small tree."""
        result = Policy.__new__(Policy)
        vars(result).update(vars(self), **words)
        return result

    def tree(self, *, loss: float = 0.01) -> Policy:
        """Return a policy with a small decision tree (`rule`) that loses at most the share `loss` of the
        guarantee. It needs no additional δ.
        """
        if self._grow is None:
            raise InputError(
                "the policy has no values that show the loss of a tree", hint="result.policy.tree()"
            )
        policy: Policy = self._grow(loss).policy
        return policy

    @property
    def choices(self) -> policy_file.Choices:
        """What it consists of: probabilities, choices per step, or choices per memory."""
        for part in (self.weight, self.steps, self.memory):
            if part is not None:
                return part
        raise AssertionError

    @property
    def depends_on_step(self) -> bool:
        return self.steps is not None

    @property
    def has_memory(self) -> bool:
        return self.memory is not None

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether one choice is taken for certain in every state (at every step, with every memory)."""
        return self.weight is None or bool(np.all((self.weight == 0) | (self.weight == 1)))

    @property
    def probability(self) -> FloatArray:
        """How likely each choice of the model is taken in its state."""
        if self.weight is None:
            self.refuse_memory()
            raise InputError(
                "the policy depends on the step, so choices have no single probability",
                hint="policy.at(step) is what is done at one step",
            )
        return self.weight

    def refuse_memory(self) -> None:
        """Refuse a finite-memory policy where a choice per state is needed."""
        if self.memory is not None:
            raise InputError(
                "the policy has a memory, on which its choices depend",
                hint="learn and sample take finite-memory policies; all else takes policies without memory",
            )

    @cached_property
    def choice(self) -> OffsetArray:
        """The choice taken in each state by a deterministic policy, as an index among all of the model."""
        if not self.is_deterministic:
            raise InputError("a randomised policy does not take one choice per state")
        return np.flatnonzero(self.probability).astype(np.int64)

    def at(self, step: int) -> Policy:
        """Return the choices at `step`, as a policy that makes them at every step."""
        _check_step(step)
        self.refuse_memory()
        chosen = self if self.steps is None else Policy.of_choices(self.structure, self.steps.at(step))
        return chosen.having(_made_from=self._made_from)

    def __getitem__(self, state: object) -> str | dict[str, float]:
        """The action in a state, or the probability of each action if the policy is random there.

        A state is what the model's author calls it, its variables' values ("x=3,y=4"; a mapping; a tuple),
        a label of a single state, or its index.
        """
        number = index_or_state(self.structure, state)
        if self.steps is not None and np.diff(self.steps.start)[number] > 1:
            raise InputError(
                f"what the policy does in state {self.structure.state_name(number)} depends on the step",
                hint="policy.at(step)[state], or policy.act(state, step=step)",
            )
        if self.memory is not None:
            rows = np.flatnonzero(self.memory.state == number)
            if len(np.unique(self.memory.choice[rows])) != 1:
                raise InputError(
                    f"what the policy does in state {self.structure.state_name(number)} depends on memory",
                    hint="policy.act(state, memory=memory)",
                )
            return self.structure.action_name(int(self.memory.choice[rows[0]]))
        likely = self._actions(number, 0)
        return next(iter(likely)) if len(likely) == 1 else likely

    def actions(self, state: object, step: int | None = None, memory: int | None = None) -> dict[str, float]:
        """Return the probability of each action in `state`; `step`, `memory` as for `act`."""
        number = find_state(self.structure, state)
        if self.memory is not None:
            return {self.structure.action_name(int(self.memory.choice[self._row(number, memory)])): 1.0}
        return self._actions(number, self._step(step))

    def action(self, state: object, *, step: int | None = None, memory: int | None = None) -> str | int:
        """Return the action in `state`, an error if it is random; `step`, `memory` as for `act`."""
        likely = self.actions(state, step, memory)
        if len(likely) > 1:
            raise InputError(
                f"the policy is random in state {state!r}: {_shares(likely)}",
                hint="policy.actions(state) says how likely each is, policy.act(state, rng=…) draws one",
            )
        return self.act(state, step=step, memory=memory)

    def predict(self, states: object, *, step: int | None = None) -> list[str | int]:
        """Return the actions in `states`: a list, or a table with a column for each state variable (or one
        called `state`), as in `log["action"] = policy.predict(log)`; `step` as for `act`.
        """
        if is_table(states):
            columns = table_columns(states)
            names = [name for name in self.structure.valuations if name != "state" or name in columns]
            if "state" in columns and not (names and set(names) <= set(columns)):
                rows: Sequence[object] = columns["state"]
            elif names and set(names) <= set(columns):
                cells = zip(*(columns[name] for name in names), strict=True)
                rows = [dict(zip(names, row, strict=True)) for row in cells]
            else:
                wanted = ", ".join(names) or "state"
                listed = ", ".join(map(str, columns))
                raise InputError(f"the table has the columns {listed}, and {wanted} is needed to find states")
        elif isinstance(states, str | Mapping) or not isinstance(states, Iterable):
            raise InputError(
                f"`states` is {describe(states)}, not a list or a table of states",
                hint="policy.action(state) is for one",
            )
        else:
            rows = list(states)
        return [self.action(state, step=step) for state in rows]

    def act(
        self,
        state: object,
        *,
        step: int | None = None,
        memory: int | None = None,
        rng: np.random.Generator | int | None = None,
        states: str | None = None,
    ) -> str | int:
        """Return the action to take in a state, drawn if the policy is random.

        Parameters
        ----------
        state : object
            Its name, the values of its variables, or its index.
        step : int, optional
            Steps since the episode began, for policies that depend on the step.
        memory : int, optional
            The memory of finite-memory policies: 0 first, then what `next_memory` returns.
        rng : numpy.random.Generator or int, optional
            A generator or a seed.
        states : "index", optional
            A state that is a number is its index, and no name.

        Returns
        -------
        str or int
            Actions named by whole numbers are numbers, as in Gymnasium's toy environments.
        """
        structure = self.structure
        if states not in (None, "index"):
            raise InputError(f"states are not named by '{states}'", hint="the known value is index")
        if states == "index":
            if not is_whole(state) or not 0 <= state < structure.states:
                raise InputError(f"{state!r} is not a state's index; they are 0..{structure.states - 1}")
            number = int(state)
        else:
            number = find_state(structure, state)
        if self.memory is not None:
            return show_action(structure, int(self.memory.choice[self._row(number, memory)]))
        return show_action(structure, self.draw(number, self._step(step), rng))

    def next_memory(self, state: object, memory: int) -> int:
        """Return the memory after a finite-memory policy has acted in `state` with `memory`."""
        row = self._row(find_state(self.structure, state), memory)
        assert self.memory is not None
        return int(self.memory.following[row])

    def draw(self, state: int, step: int = 0, rng: np.random.Generator | int | None = None) -> int:
        """The index of the choice in a state, given by index; drawn if the policy is random."""
        if self.steps is not None:
            return self.steps.choice_at(state, step)
        first, last = int(self.structure.choice_start[state]), int(self.structure.choice_start[state + 1])
        share = self.probability[first:last]
        if np.count_nonzero(share) == 1:
            return first + int(np.argmax(share))
        if rng is not None and not isinstance(rng, int | np.integer | np.random.Generator):
            raise InputError(f"`rng` is {describe(rng)}, neither a generator of numpy nor a seed")
        if isinstance(rng, int | np.integer) and rng < 0:
            raise InputError(f"`rng` is {rng}: a seed must not be negative")
        generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
        return first + int(generator.choice(last - first, p=share / share.sum()))

    def _step(self, step: int | None) -> int:
        if step is None and self.depends_on_step:
            raise InputError(
                "the policy depends on the step",
                hint="say which with `step`, counted from 0 in every episode",
            )
        if step is not None:
            _check_step(step)
        return step or 0

    def _row(self, state: int, memory: int | None) -> int:
        """The row of a finite-memory policy."""
        if self.memory is None:
            raise InputError("the policy has no memory")
        if memory is None:
            raise InputError(
                "the policy depends on its memory",
                hint="say which with `memory`: 0 when an episode begins, then what policy.next_memory says",
            )
        if (row := self.memory.find(state, memory)) < 0:
            raise InputError(
                f"the policy is never in state {self.structure.state_name(state)} with memory {memory}"
            )
        return row

    def _actions(self, state: int, step: int) -> dict[str, float]:
        structure = self.structure
        if self.steps is not None:
            return {structure.action_name(self.steps.choice_at(state, step)): 1.0}
        likely: dict[str, float] = {}
        for choice in range(*structure.choice_start[state : state + 2].tolist()):
            if self.probability[choice] > 0:
                name = structure.action_name(choice)
                likely[name] = likely.get(name, 0.0) + float(self.probability[choice])
        return likely

    @property
    def digest(self) -> str:
        """A name for what the policy does."""
        if (runs := self.steps) is not None:
            return sha256(runs.start.tobytes() + runs.step.tobytes() + runs.choice.tobytes()).hexdigest()
        if self.memory is not None:
            return sha256(b"".join(column.tobytes() for column in self.memory.columns)).hexdigest()
        return sha256(self.probability.tobytes()).hexdigest()

    @property
    def for_solver(self) -> OffsetArray | FloatArray | policy_file.TimeVaryingChoices:
        """As the solver takes it: the index of a choice per state, or of a choice per state and step, or a
        probability per choice."""
        if self.steps is not None:
            return self.steps
        return self.choice if self.is_deterministic else self.probability

    def to_arrow(self) -> Table:
        """Return a table with a row per state and possible choice (and step from which on)."""
        structure = self.structure
        columns: dict[str, AnyArray] = {}
        if self.steps is not None:
            choice, share = self.steps.choice, np.ones(len(self.steps.choice))
            columns["from_step"] = self.steps.step
        elif self.memory is not None:
            choice, share = self.memory.choice, np.ones(len(self.memory.choice))
            columns |= {"memory": self.memory.memory, "next_memory": self.memory.following}
        else:
            choice = np.flatnonzero(self.probability > 0)
            share = self.probability[choice]
        state = structure.choice_state[choice]
        columns["action"] = action_column(structure, choice)
        columns["choice"] = choice - structure.choice_start[state]
        columns["probability"] = share
        return with_states(structure, state, columns)

    def to_dataframe(self) -> Table:
        """Return `to_arrow` as a data frame."""
        return to_pandas(self.to_arrow())

    def to_dot(self) -> str:
        """Return the policy's tree, or the changes of a finite memory, as a graph for Graphviz."""
        if self.memory is not None and (rows := len(self.memory.state)) > MOST_DRAWN:
            raise InputError(f"the policy has {rows:,} rows, and graphs have at most {MOST_DRAWN:,}")
        return write_rule(self.as_rule(), "dot")

    def as_rule(self) -> DecisionRule:
        """Return the policy's tree, or a table if it has none."""
        return self.rule or table_rule(self)

    def export(self, path: Path | str, *, to: str | None = None) -> None:
        """Write the tree, or else a table, to `path` as code without dependencies. `to` is "python", "c",
        "sql", "json", "markdown" or "dot"; by default, as the path ends.
        """
        export_rule(self.as_rule(), path_of(path), to)

    def save(
        self, path: Path | str, model_hash: str | None = None, certified: Mapping[str, object] | None = None
    ) -> None:
        """Write the policy to `path` as JSON for `Policy(model, path)` and the command line.

        With the ending .dot a finite-memory policy is written as a graph. `model_hash` and `certified`, the
        policy's value, are recorded.
        """
        with atomic_write(target := path_of(path)) as file:
            if target.suffix == ".dot" and self.memory is not None:
                file.write(self.to_dot())
            else:
                self.write(file, model_hash, certified)

    def write(
        self, stream: IO[str], model_hash: str | None = None, certified: Mapping[str, object] | None = None
    ) -> None:
        """Write the JSON text of the policy to a stream."""
        made_from = None if self.made_from is None else self.made_from.text()
        policy_file.write_choices(self.structure, self.choices, stream, model_hash, certified, made_from)

    def _title_(self) -> str:
        deciding = int(np.count_nonzero(np.diff(self.structure.choice_start) > 1))
        kind = "deterministic" if self.is_deterministic else "randomised"
        if self.depends_on_step:
            kind = "depends on the step"
        if self.rule is not None:
            kind = f"a tree with {self.rule.nodes} tests"
        if self.memory is not None:
            kind = f"{self.memory.memories:,} memories"
        return f"Policy of {self.structure.states:,} states, {deciding:,} with several choices: {kind}"

    def _facts_(self) -> Facts:
        structure, facts = self.structure, []
        if self.rule is not None:
            return [("", f"{'  ' * depth}{line}") for depth, line in self.rule.words()]
        if self.memory is not None:
            rows = list(zip(*self.memory.columns, strict=True))[: SHOWN_STATES + 1]
            return [
                (f"{structure.state_name(int(s))}, {m}", f"{structure.action_name(int(c)) or '[]'}, then {f}")
                for s, m, c, f in rows
            ]
        deciding = np.flatnonzero(np.diff(structure.choice_start) > 1)
        for state in deciding[:SHOWN_STATES].tolist():
            likely = self._actions(state, 0)
            shown = next(iter(likely)) if len(likely) == 1 else _shares(likely)
            changes = self.steps is not None and np.diff(self.steps.start)[state] > 1
            facts.append((structure.state_name(state), f"{shown}{' at first' if changes else ''}"))
        if len(deciding) > SHOWN_STATES:
            facts.append(("…", f"{len(deciding) - SHOWN_STATES:,} more: policy.to_dataframe()"))
        return facts


PolicyGiven: TypeAlias = (
    Policy
    | policy_file.TimeVaryingChoices
    | policy_file.FiniteMemoryChoices
    | Mapping[Any, object]
    | Callable[[Any], object]
    | str
    | Path
    | AnyArray
    | Sequence[int]
    | Sequence[float]
)
"""Whatever `Policy(model, …)` takes."""


def as_policy(model: Structured | Structure, given: PolicyGiven | None) -> Policy | None:
    """A policy of the model, made of whatever was given; the policy itself where it is one already."""
    structure = _structure(model)
    if given is None or (isinstance(given, Policy) and given.structure is structure):
        return given
    return Policy(structure, given)


def policy_of(
    structure: Structure, choice: npt.NDArray[np.generic], steps: policy_file.TimeVaryingChoices | None
) -> Policy:
    """The policy that a solve found: `steps` where it depends on the step, else a choice per state."""
    if steps is not None:
        return Policy(structure, steps)
    return Policy.of_choices(structure, np.asarray(choice, dtype=np.int64))


def _check_step(step: object) -> None:
    if not is_whole(step):
        raise InputError(f"`step` is {step!r}, and steps count from 0")
    if step < 0:
        raise InputError(f"steps count from 0, and {step} is before")


def _structure(model: Structured | Structure) -> Structure:
    if not isinstance(model, Structure) and not hasattr(model, "structure"):
        raise InputError(f"`model` is {describe(model)}, not a model", hint="tr.load reads one")
    return model if isinstance(model, Structure) else model.structure


def _weights(structure: Structure, choice: npt.NDArray[np.integer]) -> FloatArray:
    weight = np.zeros(structure.choices)
    weight[choice] = 1.0
    return weight


def _check_weights(structure: Structure, weight: FloatArray) -> None:
    if weight.shape != (structure.choices,):
        raise InputError(f"the policy has {len(weight)} entries for {structure.choices} choices")
    wrong = np.flatnonzero(~((weight >= 0) & (weight <= 1)))
    if len(wrong):
        raise InputError(
            f"the policy takes {structure.choice_name(int(wrong[0]))} with probability "
            f"{weight[wrong[0]]:.12g}, not within [0, 1]"
        )
    total = np.add.reduceat(weight, structure.choice_start[:-1])
    wrong = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
    if len(wrong):
        state = int(wrong[0])
        raise InputError(
            f"the policy's probabilities in state {structure.state_name(state)} sum to "
            f"{total[state]:.12g}, not 1"
        )


def _shares(likely: dict[str, float]) -> str:
    return ", ".join(f"{name or '[]'} {share:.3g}" for name, share in likely.items())


def _read_given(structure: Structure, given: PolicyGiven) -> policy_file.Choices:
    """What a policy is made of besides another one; what makes none is an `InputError`."""
    if isinstance(given, policy_file.TimeVaryingChoices | policy_file.FiniteMemoryChoices):
        return given
    if isinstance(given, Mapping):
        return _of_mapping(structure, given)
    if not callable(given):
        return _of_array(structure, given)
    weight = _find_forced(structure)
    for state in np.flatnonzero(np.diff(structure.choice_start) > 1).tolist():
        _put(structure, weight, state, ask("policy", given, show_state(structure, state)))
    return weight


def _refuse_other_model(theirs: Structure, structure: Structure) -> None:
    """Refuse a policy of another model: choices must be the same, state by state and name by name."""
    if theirs is structure:
        return
    if not np.array_equal(theirs.choice_start, structure.choice_start):
        raise InputError(
            f"the policy is of another model, with {theirs.states} states and {theirs.choices} choices, "
            f"not {structure.states} and {structure.choices}"
        )
    both = (theirs, structure)
    one, other = (np.array(each.action_names, dtype=object)[each.action_of_choice] for each in both)
    if not np.array_equal(one, other):
        raise InputError("the policy is of another model, whose actions have other names")


def _of_array(structure: Structure, given: object) -> FloatArray:
    array = np.asarray(given)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.floating):
        return array.astype(np.float64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            f"a policy cannot be made of a value of the type {type(given).__name__}",
            hint="give a mapping from states to actions, a function of the state, the path of a policy file, "
            "a choice's number per state or a probability per choice",
        )
    if array.shape != (structure.states,):
        raise InputError(f"the policy names {len(array)} choices for {structure.states} states")
    size = np.diff(structure.choice_start)
    wrong = np.flatnonzero((array < 0) | (array >= size))
    if len(wrong):
        state = int(wrong[0])
        raise InputError(
            f"the policy takes choice number {array[state]} of state {structure.state_name(state)}, whose "
            f"choices are 0..{size[state] - 1}",
            hint="choices are counted from 0 within their state",
        )
    return _weights(structure, structure.choice_start[:-1] + array)


def _of_mapping(structure: Structure, given: Mapping[object, object]) -> FloatArray:
    weight = _find_forced(structure)
    seen = np.diff(structure.choice_start) == 1
    named: dict[int, object] = {}
    for state, action in given.items():
        number = index_or_state(structure, state)
        if number in named:
            raise InputError(f"{named[number]!r} and {state!r} are the same state")
        named[number] = state
        seen[number] = True
        _put(structure, weight, number, action)
    missing = np.flatnonzero(~seen)
    if len(missing):
        raise InputError(
            f"the policy says nothing about state {structure.state_name(int(missing[0]))}, which has "
            f"{np.diff(structure.choice_start)[missing[0]]} choices ({len(missing)} such states)"
        )
    return weight


def _find_forced(structure: Structure) -> FloatArray:
    """Only what is the only choice of its state is taken."""
    weight = np.zeros(structure.choices)
    weight[structure.choice_start[:-1]] = np.diff(structure.choice_start) == 1
    return weight


def _put(structure: Structure, weight: FloatArray, state: int, action: object) -> None:
    first, last = structure.choice_start[state : state + 2].tolist()
    weight[first:last] = 0.0
    if not isinstance(action, Mapping):
        weight[find_choice(structure, state, action, "the policy")] = 1.0
        return
    for each, share in action.items():
        if isinstance(share, bool) or not isinstance(share, int | float | np.number):
            name = structure.state_name(state)
            raise InputError(f"the policy takes {each!r} in state {name} with {share!r}: no number")
        weight[find_choice(structure, state, each, "the policy")] += float(share)
