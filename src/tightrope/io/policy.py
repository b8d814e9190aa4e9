"""Policies of a model: a choice per state, a probability per choice, or a choice per state and step.

One class for all that the package takes and gives. What it can be made of: `tightrope.io.policy_given`;
its files: `tightrope.io.policy_write` and `tightrope.io.policy_read`.

As a table a policy has a row per state and choice that may be taken there:

| column | holds |
|---|---|
| the variables, or `state` | the state (`tightrope.io.table.frames`) |
| `from_step` | from which step on this row holds, for policies that depend on the step |
| `action` | the name of the action |
| `choice` | the number of the choice within its state, counted from 0 |
| `probability` | how likely it is taken there |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tightrope.atomic import atomic_write
from tightrope.errors import InputError, describe
from tightrope.io.policy_given import Said, read_given, refuse_other_model
from tightrope.io.policy_write import write_policy
from tightrope.io.table.frames import action_column, to_pandas, with_states
from tightrope.model.find_state import find_state, index_or_state, is_whole, show_action
from tightrope.model.step_choices import StepChoices
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.numerics.record import Facts, Record

SUM_TOLERANCE = 1e-9

SHOWN_STATES = 5
"""So many states are listed where a policy is printed."""


class HasStructure(Protocol):
    """Any model."""

    @property
    def structure(self) -> Structure: ...


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Policy(Record):
    """What is done in every state of a model.

    `Policy(model, given)` takes a mapping from states to actions, a function of the state, the path of a
    policy file, an array, or another policy of the same model; `docs/policies.md` shows each.

    >>> from tightrope import Policy, build_from_rows
    >>> rows = [(0, "stay", {0: 1}), (0, "go", {1: 1}), (1, "", {1: 1})]
    >>> model = build_from_rows(rows, own_states=["here", "there"])
    >>> policy = Policy(model, {"here": "go"})
    >>> policy["here"], policy.actions("here"), policy.act("here")
    ('go', {'go': 1.0}, 'go')
    >>> lazy = Policy(model, lambda state: {"stay": 0.9, "go": 0.1})
    >>> lazy["here"], lazy.is_deterministic, lazy == policy
    ({'stay': 0.9, 'go': 0.1}, False, False)
    """

    structure: Structure
    weight: FloatArray | None
    steps: StepChoices | None

    def __init__(self, model: HasStructure | Structure, given: PolicyGiven):
        if not isinstance(model, Structure) and not hasattr(model, "structure"):
            raise InputError(f"`model` is {describe(model)}, not a model", hint="tr.load reads one")
        structure = model if isinstance(model, Structure) else model.structure
        if isinstance(given, Policy):
            refuse_other_model(given.structure, structure)
            said = given.probability if given.steps is None else given.steps
        else:
            said = read_given(structure, given)
        if isinstance(said, StepChoices):
            said.refuse_for(structure)
            if said.horizon == 0:
                said = _weights(structure, said.first)
        object.__setattr__(self, "structure", structure)
        object.__setattr__(self, "weight", None if isinstance(said, StepChoices) else said)
        object.__setattr__(self, "steps", said if isinstance(said, StepChoices) else None)
        if self.weight is not None:
            self.weight.flags.writeable = False
            _check_weights(structure, self.weight)

    @staticmethod
    def uniform(model: HasStructure | Structure) -> Policy:
        """Every choice of a state alike."""
        structure = model if isinstance(model, Structure) else model.structure
        choices = np.diff(structure.choice_start)
        return Policy(structure, np.repeat(1 / choices, choices))

    @staticmethod
    def of_choices(model: HasStructure | Structure, choice: npt.NDArray[np.integer]) -> Policy:
        """Takes `choice[s]`, the index of a choice among all of the model, in state s."""
        structure = model if isinstance(model, Structure) else model.structure
        taken = np.asarray(choice)
        if taken.shape != (structure.states,):
            raise InputError(f"the policy names {len(taken)} choices for {structure.states} states")
        wrong = np.flatnonzero((taken < structure.choice_start[:-1]) | (taken >= structure.choice_start[1:]))
        if len(wrong):
            state = int(wrong[0])
            raise InputError(
                f"the policy takes choice {taken[state]} in state {structure.state_name(state)}, "
                f"whose choices are {structure.choice_start[state]}..{structure.choice_start[state + 1] - 1}"
            )
        policy = Policy.__new__(Policy)  # that the probabilities of a state sum to 1 is known
        weight = _weights(structure, taken)
        weight.flags.writeable = False
        vars(policy).update(structure=structure, weight=weight, steps=None)
        vars(policy).update(is_deterministic=True, choice=taken.astype(np.int64))
        return policy

    # --- what kind of policy it is ---------------------------------------------------------

    @property
    def depends_on_step(self) -> bool:
        return self.steps is not None

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether one choice is taken for certain in every state (at every step)."""
        return self.weight is None or bool(np.all((self.weight == 0) | (self.weight == 1)))

    @property
    def probability(self) -> FloatArray:
        """How likely each choice of the model is taken in its state."""
        if self.weight is None:
            raise InputError(
                "the policy depends on the step, so choices have no single probability",
                hint="policy.at(step) is what is done at one step",
            )
        return self.weight

    @cached_property
    def choice(self) -> OffsetArray:
        """The choice taken in each state by a deterministic policy, as an index among all of the model."""
        if not self.is_deterministic:
            raise InputError("a randomised policy does not take one choice per state")
        return np.flatnonzero(self.probability).astype(np.int64)

    def at(self, step: int) -> Policy:
        """What is done at a step, as a policy that does it at every one."""
        if step < 0:
            raise InputError(f"steps count from 0, and {step} is before")
        return self if self.steps is None else Policy.of_choices(self.structure, self.steps.at(step))

    # --- what it does in a state -----------------------------------------------------------

    def __getitem__(self, state: Any) -> str | dict[str, float]:
        """The action in a state, or how likely each one is, where the policy is random there.

        A state is what the model's author calls it, its variables' values ("x=3,y=4"; a mapping; a tuple),
        a label of a single state, or its index.
        """
        number = index_or_state(self.structure, state)
        if self.steps is not None and np.diff(self.steps.start)[number] > 1:
            raise InputError(
                f"what the policy does in state {self.structure.state_name(number)} depends on the step",
                hint="policy.at(step)[state], or policy.act(state, step=step)",
            )
        taken = self._actions(number, 0)
        return next(iter(taken)) if len(taken) == 1 else taken

    def actions(self, state: Any, step: int | None = None) -> dict[str, float]:
        """What the policy does in a state: actions, how likely each. Choices of one action count together."""
        return self._actions(find_state(self.structure, state), self._step(step))

    def act(
        self,
        state: Any,
        *,
        step: int | None = None,
        rng: np.random.Generator | int | None = None,
        states: str | None = None,
    ) -> str | int:
        """The action to take in a state, drawn by `rng` (a generator or a seed) where the policy is random.

        Actions named by whole numbers are returned as numbers, as Gymnasium's toy environments take them. A
        state that is a bare number is the model's index of it only with `states="index"`. Policies that
        depend on the step need `step`, counted from 0 in every episode.
        """
        structure = self.structure
        if states not in (None, "index"):
            raise InputError(f"states are not named by '{states}'", hint="known is index")
        if states == "index":
            if not is_whole(state) or not 0 <= state < structure.states:
                raise InputError(f"{state!r} is no state's index; they are 0..{structure.states - 1}")
            number = int(state)
        else:
            number = find_state(structure, state)
        return show_action(structure, self.draw(number, self._step(step), rng))

    def draw(self, state: int, step: int = 0, rng: np.random.Generator | int | None = None) -> int:
        """The index of the choice taken in the state of an index, drawn where the policy is random."""
        if self.steps is not None:
            return self.steps.choice_at(state, step)
        first, last = int(self.structure.choice_start[state]), int(self.structure.choice_start[state + 1])
        share = self.probability[first:last]
        if np.count_nonzero(share) == 1:
            return first + int(np.argmax(share))
        generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
        return first + int(generator.choice(last - first, p=share / share.sum()))

    def _step(self, step: int | None) -> int:
        if step is None and self.depends_on_step:
            raise InputError(
                "the policy depends on the step",
                hint="say which with `step`, counted from 0 in every episode",
            )
        if step is not None and step < 0:
            raise InputError(f"steps count from 0, and {step} is before")
        return step or 0

    def _actions(self, state: int, step: int) -> dict[str, float]:
        structure = self.structure
        if self.steps is not None:
            return {structure.action_name(self.steps.choice_at(state, step)): 1.0}
        taken: dict[str, float] = {}
        for choice in range(*structure.choice_start[state : state + 2].tolist()):
            if self.probability[choice] > 0:
                name = structure.action_name(choice)
                taken[name] = taken.get(name, 0.0) + float(self.probability[choice])
        return taken

    # --- for other uses --------------------------------------------------------------------

    @property
    def digest(self) -> str:
        """A name for what the policy does."""
        if (runs := self.steps) is not None:
            return sha256(runs.start.tobytes() + runs.step.tobytes() + runs.choice.tobytes()).hexdigest()
        return sha256(self.probability.tobytes()).hexdigest()

    @property
    def for_solver(self) -> OffsetArray | FloatArray | StepChoices:
        """As the solver's kernels take it: the index of a choice per state, or of a choice per state and
        step, or a probability per choice.
        """
        if self.steps is not None:
            return self.steps
        return self.choice if self.is_deterministic else self.probability

    def to_arrow(self) -> Any:
        """A pyarrow table: a row per state and choice that may be taken there (and step from which on)."""
        return policy_table(self)

    def to_dataframe(self) -> Any:
        """The same as a pandas data frame."""
        return to_pandas(self.to_arrow())

    def save(self, path: Path | str) -> None:
        """Write it as a JSON file that `Policy(model, path)` and the command line read."""
        with atomic_write(Path(path)) as file:
            write_policy(self, file)

    def _title_(self) -> str:
        kind = "deterministic" if self.is_deterministic else "randomised"
        deciding = int(np.count_nonzero(np.diff(self.structure.choice_start) > 1))
        shape = f"Policy of {self.structure.states:,} states, {deciding:,} with several choices"
        return f"{shape}: {'depends on the step' if self.depends_on_step else kind}"

    def _facts_(self) -> Facts:
        structure, facts = self.structure, []
        deciding = np.flatnonzero(np.diff(structure.choice_start) > 1)
        for state in deciding[:SHOWN_STATES].tolist():
            taken = self._actions(state, 0)
            shown = next(iter(taken)) if len(taken) == 1 else _shares(taken)
            changes = self.steps is not None and np.diff(self.steps.start)[state] > 1
            facts.append((structure.state_name(state), f"{shown}{' at first' if changes else ''}"))
        if len(deciding) > SHOWN_STATES:
            facts.append(("…", f"{len(deciding) - SHOWN_STATES:,} more: policy.to_dataframe()"))
        return facts


PolicyGiven: TypeAlias = Policy | Said
"""Whatever `Policy(model, …)` takes."""


def as_policy(model: HasStructure | Structure, given: PolicyGiven | None) -> Policy | None:
    """A policy of the model, made of whatever was given; the policy itself where it is one already."""
    structure = model if isinstance(model, Structure) else model.structure
    if given is None or (isinstance(given, Policy) and given.structure is structure):
        return given
    return Policy(structure, given)


def read_policy(path: Path | str, structure: Structure) -> Policy:
    """Read a policy file for a model; the same as `Policy(structure, path)`."""
    return Policy(structure, Path(path))


def policy_of(structure: Structure, choice: npt.NDArray[np.generic], steps: StepChoices | None) -> Policy:
    """The policy that a solve found: `steps` where it depends on the step, else a choice per state."""
    if steps is not None:
        return Policy(structure, steps)
    return Policy.of_choices(structure, np.asarray(choice, dtype=np.int64))


def _weights(structure: Structure, taken: npt.NDArray[np.integer]) -> FloatArray:
    weight = np.zeros(structure.choices)
    weight[taken] = 1.0
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


def _shares(taken: dict[str, float]) -> str:
    return ", ".join(f"{name or '[]'} {share:.3g}" for name, share in taken.items())


def policy_table(policy: Policy) -> Any:
    """The pyarrow table."""
    structure, runs = policy.structure, policy.steps
    columns: dict[str, Any] = {}
    if runs is not None:
        taken, share = runs.choice, np.ones(len(runs.choice))
        columns["from_step"] = runs.step
    else:
        taken = np.flatnonzero(policy.probability > 0)
        share = policy.probability[taken]
    state = structure.choice_state[taken]
    columns["action"] = action_column(structure, taken)
    columns["choice"] = taken - structure.choice_start[state]
    columns["probability"] = share
    return with_states(structure, state, columns)
