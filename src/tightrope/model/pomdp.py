"""Partially observable models (POMDPs) and finite controllers.

Every state has one observation, a number with a name. States with the same observation offer the same
actions; choices are matched by action names, those of one name in order. A noisy sensor is part of the state
(`tightrope.model.pomdp`). A controller in node n that sees o goes to node `following[n, o]` and takes that
node's action for o; a play begins in node 0. Its file has rows of node, observation, action, next node. For
an observation without a row it stays and takes its most frequent action there, else the first one offered.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np

from tightrope.atomic import atomic_write, path_of
from tightrope.errors import InputError, Location, check_type, describe
from tightrope.model.authored import ask
from tightrope.model.builder import Probability, Row, build_from_function, build_from_rows
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.policy_file import OBSERVER_FORMAT, FiniteMemoryChoices, read_object
from tightrope.model.structure import (
    ParametricReward,
    RewardStructure,
    Structure,
    Structured,
    freeze,
    frozen_array,
    sizes,
)
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray
from tightrope.numerics.record import Facts, Record

VERSION = 1

SENSING = "sensing"
"""What a controller sees before a reading, and the action that draws it (`tightrope.model.pomdp`)."""

UNSEEN = "unseen"
"""The reading that a sensor was never seen to report."""

Rows = dict[tuple[int, int], tuple[int, int]]
"""Of a controller: from node and observation to the position of the action, and the next node."""

Hidden = ParametricMDP | IntervalMDP | MDP
"""The models behind observations."""


@dataclass(frozen=True, eq=False, repr=False)
class POMDP(Structured):
    """A model with the observation `observation[state]`, whose name is in `names`. `pace` steps of the model
    are one step of properties: 2 if every other step reads a sensor.

    >>> import tightrope as tr
    >>> rows = [(0, "l", {0: 1}), (0, "r", {1: 1}), (1, "l", {0: 1}), (1, "r", {1: 1})]
    >>> model = tr.POMDP(tr.build_from_rows(rows, labels={"b": [1]}), [0, 0], ("dark",))
    >>> tr.solve(model, 'Pmax=? [ F "b" ]').lower
    1.0
    """

    model: Hidden
    observation: IndexArray
    names: tuple[str, ...]
    pace: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.model, Hidden):
            raise InputError("`model` of a POMDP is not a model with states in discrete time")
        seen = np.asarray(self.observation)
        if seen.shape != (self.model.states,) or not np.issubdtype(seen.dtype, np.integer):
            raise InputError(
                f"observations: one whole number per state is required, for {self.model.states:,} states"
            )
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))
        wrong = np.flatnonzero((seen < 0) | (seen >= len(self.names)))
        if len(wrong):
            state = int(wrong[0])
            raise InputError(
                f"state {self.structure.state_name(state)} has the observation {int(seen[state])}, and "
                f"there are {len(self.names):,} names"
            )
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise InputError(f"two observations are called {twice!r}", hint="give each a name of its own")
        object.__setattr__(self, "observation", frozen_array(seen, np.int32))
        _ = self.aligned

    @staticmethod
    def from_function(
        initial: object, successors: object, parameters: object = None, *, observe: object, **words: object
    ) -> POMDP:
        """Return a POMDP. `initial`, `successors`, `parameters`, `words`: see `build_from_function`.
        `observe(state)` is the observation of a state, or a sensor: {reading: probability}.

        >>> import tightrope as tr
        >>> def successors(place):
        ...     return {"walk": {(place + 1) % 4: 1}, "stay": {place: 1}}
        >>> tr.POMDP.from_function(0, successors, observe=lambda place: f"side {place % 2}").names
        ('side 0', 'side 1')
        """
        model = build_from_function(initial, successors, parameters, **words)  # type: ignore[arg-type]
        return observed(model, [ask("observe", observe, s) for s in model.structure.state_names or ()])

    @staticmethod
    def from_rows(
        rows: object, parameters: object = None, *, observe: Mapping[int, object], **words: object
    ) -> POMDP:
        """Return a POMDP. `rows`, `parameters`, `words`: see `build_from_rows`. `observe[state]` is the
        observation of a state, or a sensor.
        """
        model = build_from_rows(rows, parameters, **words)  # type: ignore[arg-type]
        check_type("observe", observe, Mapping, "a mapping from states to what is seen there")
        missing = next((state for state in range(model.states) if state not in observe), None)
        if missing is not None:
            raise InputError(f"`observe` says nothing about state {missing}")
        return observed(model, [observe[state] for state in range(model.states)])  # type: ignore[misc]

    @property
    def structure(self) -> Structure:  # type: ignore[override]
        return self.model.structure

    @property
    def observations(self) -> int:
        return len(self.names)

    def _title_(self) -> str:
        return f"POMDP: {sizes(self.structure)}, {self.observations:,} observations"

    def _facts_(self) -> Facts:
        return [fact for fact in self.model._facts_() if fact[0] != "hash"]

    def hash(self) -> str:
        """Return the identity of the model behind the observations."""
        return self.model.hash()

    @cached_property
    def aligned(self) -> OffsetArray:
        """Choices of each state, sorted so that the k-th ones of states that look alike have one action."""
        own, seen = self.structure, self.observation
        action = own.action_of_choice
        order: OffsetArray = np.lexsort((np.arange(own.choices), action, own.choice_state))
        first_with = np.full(self.observations, -1, np.int64)
        for state in range(own.states):
            look = int(seen[state])
            other = int(first_with[look])
            if other < 0:
                first_with[look] = state
                continue
            mine = action[order[own.choice_start[state] : own.choice_start[state + 1]]]
            theirs = action[order[own.choice_start[other] : own.choice_start[other + 1]]]
            if not np.array_equal(mine, theirs):
                raise InputError(
                    f"states {own.state_name(other)} and {own.state_name(state)} look alike, "
                    f"{self.names[look]}, but offer other actions: {_listed(own, theirs)} and "
                    f"{_listed(own, mine)}",
                    hint=(
                        "a controller must know its actions: let the observation distinguish the states, "
                        "or give both the same actions"
                    ),
                )
        order.flags.writeable = False
        return order

    @cached_property
    def actions(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the actions that each observation offers, in the order of `aligned`."""
        own = self.structure
        offered: list[tuple[int, ...]] = [()] * self.observations
        for state in range(own.states):
            if not offered[look := int(self.observation[state])]:
                which = self.aligned[own.choice_start[state] : own.choice_start[state + 1]]
                offered[look] = tuple(own.action_of_choice[which].tolist())
        return tuple(offered)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Of the model behind; none where it has no parameters."""
        return self.model.parameters.names if isinstance(self.model, ParametricMDP) else ()

    def paced(self, objective: Objective) -> Objective:
        """What is asked in steps of the user's, in steps of the model; the draw of a first state is one."""
        if self.pace == 1:
            return objective
        if objective.discount is not None:
            raise InputError("discounting cannot be used with a sensor: its readings are steps of the model")
        if objective.terminal is not None:
            raise InputError("terminal rewards cannot be used with a sensor")
        drawn = int(self.structure.draws_start)
        if objective.kind is ObjectiveKind.NEXT:
            return replace(objective, kind=ObjectiveKind.UNTIL, lower_steps=self.pace, upper_steps=self.pace)

        def longer(steps: int) -> int:
            return self.pace * (steps - drawn) + drawn if steps else 0

        upper = None if objective.upper_steps is None else longer(objective.upper_steps)
        return replace(objective, lower_steps=longer(objective.lower_steps), upper_steps=upper)

    def action_name(self, observation: int, number: int) -> str:
        """Return the name of action `number` of `observation`, or its number if it has no name."""
        offered = self.actions[observation]
        name = self.structure.action_names[offered[number]]
        return name if name and offered.count(offered[number]) == 1 else f"{name}#{number}"

    def find_action(self, observation: int, name: str) -> int:
        """Return the position of the action called `name` among those of `observation`."""
        offered = [self.action_name(observation, k) for k in range(len(self.actions[observation]))]
        if name in offered:
            return offered.index(name)
        raise InputError(
            f"there is no action {name!r} on seeing {self.names[observation]}",
            hint=f"there are {', '.join(map(repr, offered))}",
        )

    def find_observation(self, name: str) -> int:
        """Return the number of the observation called `name`."""
        if name in self.names:
            return self.names.index(name)
        near = get_close_matches(name, self.names, 1)
        raise InputError(
            f"there is no observation {name!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.names[:8])} …",
        )


def _listed(structure: Structure, actions: IndexArray) -> str:
    return ", ".join(repr(structure.action_names[a]) for a in actions.tolist())


@dataclass(frozen=True, eq=False, repr=False)
class Controller(Record):
    """A finite machine on observations: `following[node, o]` and `action[node, o]`, a position among the
    actions of o. It begins in node 0; `action` is that of the next node.

    >>> import tightrope as tr
    >>> rows = [(0, "l", {0: 1}), (0, "r", {1: 1}), (1, "l", {0: 1}), (1, "r", {1: 1})]
    >>> model = tr.POMDP(tr.build_from_rows(rows, labels={"b": [1]}), [0, 0], ("dark",))
    >>> controller = tr.Controller(model, [[0]], [[1]])
    >>> controller.act(0, "dark"), tr.solve(model, 'Pmax=? [ F "b" ]', policy=controller).interval.lower
    (('r', 0), 1.0)
    """

    pomdp: POMDP
    following: IndexArray
    action: IndexArray

    def __post_init__(self) -> None:
        freeze(self, np.int32, "following", "action")
        shape = (len(self.following), self.pomdp.observations)
        if self.following.ndim != 2 or self.following.shape != shape or self.action.shape != shape:
            raise InputError(
                f"a controller has a row per node and a column per observation, of which the model has "
                f"{self.pomdp.observations:,}"
            )
        if not len(self.following) or self.following.min() < 0 or self.following.max() >= shape[0]:
            raise InputError("a controller goes to a node that it does not have")
        offered = np.array([len(each) for each in self.pomdp.actions])
        wrong = np.argwhere((self.action < 0) | (self.action >= offered[None, :]))
        wrong = wrong[[bool(self.pomdp.actions[o]) for _, o in wrong]] if len(wrong) else wrong
        if len(wrong):
            node, look = wrong[0].tolist()
            raise InputError(
                f"the controller takes action number {int(self.action[node, look])} on seeing "
                f"{self.pomdp.names[look]}, which offers {len(self.pomdp.actions[look])}"
            )

    @property
    def nodes(self) -> int:
        return len(self.following)

    def _title_(self) -> str:
        return f"Controller: {self.nodes:,} nodes, {self.pomdp.observations:,} observations"

    def _facts_(self) -> Facts:
        return [("model", self.pomdp._title_())]

    def act(self, node: int, observation: int | str) -> tuple[str, int]:
        """Return the action in `node` after `observation` (a number or name), and the next node."""
        look = self.pomdp.find_observation(observation) if isinstance(observation, str) else int(observation)
        return self.pomdp.action_name(look, int(self.action[node, look])), int(self.following[node, look])

    def player(self) -> Player:
        """Return a player that takes one observation at a time, for one episode."""
        return Player(self)

    @staticmethod
    def memoryless(pomdp: POMDP, action: Sequence[int]) -> Controller:
        """Return a controller of `pomdp` without memory; `action[o]` is a position among o's actions."""
        return Controller(pomdp, np.zeros((1, pomdp.observations), np.int32), np.array([action]))

    def save(self, path: str | PathLike[str], certified: Mapping[str, object] | None = None) -> None:
        """Write the reachable rows to `path` as JSON; `certified` has the facts known about the value."""
        listed = [
            [node, self.pomdp.names[look], self.pomdp.action_name(look, action), after]
            for (node, look), (action, after) in sorted(_rows_of(self.pomdp, self.policy).items())
        ]
        head: dict[str, object] = {"format": OBSERVER_FORMAT, "version": VERSION, "model": self.pomdp.hash()}
        if certified is not None:
            head["certified"] = dict(certified)
        with atomic_write(path_of(path)) as file:
            inner = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in listed)
            top = json.dumps(head, ensure_ascii=False)[:-1]
            file.write(f'{top},\n "controller": [\n  {inner}\n ]}}\n')

    @cached_property
    def policy(self) -> Policy:
        """The same as a policy of the model behind: its memory is the node, of those that a play can meet."""
        own, seen = self.pomdp.structure, self.pomdp.observation
        row = {(own.initial, 0): 0}
        queue = [(own.initial, 0)]
        choice, following = [], []
        for state, node in queue:
            look = int(seen[state])
            taken = int(self.pomdp.aligned[own.choice_start[state] + int(self.action[node, look])])
            behind = int(self.following[node, look])
            choice.append(taken)
            following.append(behind)
            span = slice(own.transition_start[taken], own.transition_start[taken + 1])
            for after in own.successor[span].tolist():
                if (after, behind) not in row:
                    row[after, behind] = len(queue)
                    queue.append((after, behind))
        memory = np.array([node for _, node in queue], np.int64)
        used = np.unique(np.concatenate([[0], memory, following]))
        rows = FiniteMemoryChoices(
            np.array([state for state, _ in queue]),
            np.searchsorted(used, memory),
            np.array(choice),
            np.searchsorted(used, np.array(following)),
        )
        return Policy(own, rows)


class Player:
    """A controller at work: `player(observation)` is the action to take, `player.reset()` begins an episode.

    With a sensor it takes readings, one a step; an unknown one is `unseen`. A loop over a Gymnasium
    environment is `env.step(player(observation))`.

    >>> import tightrope as tr
    >>> rows = [(0, "l", {0: 1}), (0, "r", {1: 1}), (1, "l", {0: 1}), (1, "r", {1: 1})]
    >>> model = tr.POMDP(tr.build_from_rows(rows, labels={"b": [1]}), [0, 0], ("dark",))
    >>> play = tr.Controller(model, [[1], [0]], [[1], [0]]).player()
    >>> play("dark"), play("dark"), play("dark")
    ('r', 'l', 'r')
    """

    def __init__(self, controller: Controller):
        self.controller, self.node = controller, 0

    def reset(self) -> None:
        """Begin an episode."""
        self.node = 0

    def __call__(self, observation: str) -> str:
        pomdp = self.controller.pomdp
        if pomdp.pace > 1:
            _, self.node = self.controller.act(self.node, SENSING)
            if observation not in pomdp.names and UNSEEN in pomdp.names:
                observation = UNSEEN
        action, self.node = self.controller.act(self.node, observation)
        return action


def controller_of(pomdp: POMDP, given: object) -> Controller:
    """The controller that was given, in any form; refused where it is one for other observations."""
    if isinstance(given, Controller):
        _check_same(pomdp, given.pomdp)
        return given if given.pomdp is pomdp else Controller(pomdp, given.following, given.action)
    if isinstance(given, str | PathLike):
        return _read(pomdp, Path(given))
    if isinstance(given, Policy) and given.has_memory:
        return _of_rows(pomdp, _rows_of(pomdp, Policy(pomdp.model, given)))
    if isinstance(given, Mapping):
        for name in given:
            pomdp.find_observation(name)
        answers: dict[str, object] = dict(given)
    elif callable(given):
        offers = zip(pomdp.names, pomdp.actions, strict=True)
        answers = {name: given(name) for name, offered in offers if len(offered) > 1}
    else:
        raise InputError(
            f"`policy` is {describe(given)}, no controller of a partially observable model",
            hint="a Controller, the path of its file, or an action by name for every observation",
        )
    action = []
    for look, name in enumerate(pomdp.names):
        offered = len(pomdp.actions[look])
        if name not in answers and offered > 1:
            raise InputError(f"the controller says nothing about the observation {name}")
        action.append(pomdp.find_action(look, str(answers[name])) if name in answers else 0)
    return Controller.memoryless(pomdp, action)


def _check_same(pomdp: POMDP, other: POMDP) -> None:
    """Whether what is seen, and what can be done then, are the same."""
    mine, theirs = (
        {name: [one.action_name(look, k) for k in range(len(one.actions[look]))] for look, name in named}
        for one, named in ((each, enumerate(each.names)) for each in (pomdp, other))
    )
    for name in [*theirs, *mine]:
        if name not in mine or name not in theirs:
            whose = "controller" if name in theirs else "model"
            raise InputError(f"the controller is for other observations: {name} is one of the {whose} alone")
        if mine[name] != theirs[name]:
            raise InputError(
                f"the controller is for other actions: on seeing {name} it has {', '.join(theirs[name])}, "
                f"and the model {', '.join(mine[name])}"
            )
    if pomdp.names != other.names:
        raise InputError("the controller is for the same observations in another order")


def _read(pomdp: POMDP, path: Path) -> Controller:
    """The controller of a file."""
    place = Location(str(path))
    document = read_object(path)
    if document.get("format") != OBSERVER_FORMAT:
        raise InputError(
            "this is not a controller that sees observations",
            place,
            hint=f'its file says "format": "{OBSERVER_FORMAT}"; a policy of states would see too much',
        )
    if document.get("version") != VERSION:
        raise InputError(f"version {document.get('version')} of such files is not known", place)
    rows = document.get("controller")
    if not isinstance(rows, list) or not rows:
        raise InputError('"controller" is not a list of rows', place)
    met = Rows()
    for number, row in enumerate(rows, 1):
        is_row = isinstance(row, list) and [type(one) for one in row] == [int, str, str, int]
        if not is_row or min(row[0], row[3]) < 0:
            raise InputError(f"row {number} is not [node, observation, action, node]", place)
        node, seen, name, after = row
        try:
            look = pomdp.find_observation(seen)
            wanted = pomdp.find_action(look, name)
        except InputError as error:
            raise InputError(f"row {number}: {error.message}", place, error.hint) from None
        if (node, look) in met:
            raise InputError(f"row {number}: node {node} has another row for {seen}", place)
        met[node, look] = wanted, after
    return _of_rows(pomdp, met, place)


def _rows_of(pomdp: POMDP, policy: Policy) -> Rows:
    """The rows of a policy with a memory; refused where what it does depends on the state."""
    own, rows, met = pomdp.structure, policy.memory, Rows()
    assert rows is not None
    place = np.argsort(pomdp.aligned) - own.choice_start[own.choice_state]
    columns = pomdp.observation[rows.state], rows.memory, place[rows.choice], rows.following
    for look, node, action, after in np.stack(columns, axis=1).tolist():
        if met.setdefault((node, look), (action, after)) != (action, after):
            raise InputError(
                f"the policy does different things in states that look like {pomdp.names[look]}",
                hint="a controller sees observations only; tr.solve(model.model, …) takes policies of states",
            )
    return met


def _of_rows(pomdp: POMDP, met: Rows, place: Location | None = None) -> Controller:
    """The controller with these rows."""
    nodes = 1 + max(max(node, after) for (node, _), (_, after) in met.items())
    if nodes > len(met) + 1:
        raise InputError(f"there are {nodes:,} nodes and {len(met):,} rows: number them from 0 on", place)
    usual = [
        Counter(action for (_, o), (action, _) in met.items() if o == look)
        for look in range(pomdp.observations)
    ]
    action = np.tile([each.most_common(1)[0][0] if each else 0 for each in usual], (nodes, 1))
    following = np.tile(np.arange(nodes)[:, None], (1, pomdp.observations))
    for (node, look), (taken, after) in met.items():
        action[node, look], following[node, look] = taken, after
    return Controller(pomdp, following.astype(np.int32), action.astype(np.int32))


# Sensors: models in which the controller's reading is drawn anew at every state.
#
# A sensor gives every state the probabilities of its readings: numbers, intervals (low, high), functions of
# the parameters, or `free`. At state s a step without a choice draws the reading and leads to the copy of s
# for it, which has the actions of s. So a step becomes two, and step bounds count pairs (`POMDP.pace`);
# rewards are earned at the actions. A drawn first state has no reading before (`Structure.draws_start`).
# Readings are assumed independent given the states, and results say so.

Seen = str | Mapping[str, Probability]


def observed(model: ParametricMDP | IntervalMDP | POMDP, seen: Sequence[Seen]) -> POMDP:
    """Return the model with an observation or a sensor per state. Observations of a POMDP remain.

    >>> import tightrope as tr
    >>> rows = [(0, "l", {1: 1}), (0, "r", {2: 1}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, labels={"won": [1]})
    >>> pomdp = observed(model, [{"hot": "3/4", "cold": "1/4"}, "end", "end"])
    >>> pomdp.names, pomdp.states, tr.solve(pomdp, 'Pmax=? [ F<=1 "won" ]').lower
    (('sensing', 'hot', 'cold', 'end'), 7, 1.0)
    """
    behind = model.model if isinstance(model, POMDP) else model
    if isinstance(behind, MDP):
        raise InputError(
            "the probabilities of the model are doubles, and a sensor requires exact probabilities or "
            "intervals",
            hint="write the model in PRISM's language, or its numbers as fractions",
        )
    if len(seen) != behind.states:
        raise InputError(f"observations of {len(seen):,} states, and the model has {behind.states:,}")
    before = [""] * behind.states
    if isinstance(model, POMDP):
        before = [f"{model.names[o]} " for o in model.observation.tolist()]
    if all(isinstance(one, str) for one in seen):
        number: dict[str, int] = {}
        look = [number.setdefault(f"{old}{one}", len(number)) for old, one in zip(before, seen, strict=True)]
        return POMDP(behind, np.array(look, np.int32), tuple(number))
    if isinstance(model, POMDP) and model.pace > 1:
        raise InputError("the model has a sensor already")
    rows: list[dict[str, Probability]] = [{one: 1} if isinstance(one, str) else dict(one) for one in seen]
    empty = next((state for state, row in enumerate(rows) if not row), None)
    if empty is not None:
        raise InputError(f"state {behind.structure.state_name(empty)} has no reading at all")
    return _sensed(behind, rows, before)


def _sensed(
    model: ParametricMDP | IntervalMDP, readings: list[dict[str, Probability]], before: Sequence[str]
) -> POMDP:
    own = model.structure
    source: list[int] = list(range(own.states))
    look = [SENSING] * own.states
    rows: list[Row] = []
    origin: list[int] = []
    """The choice of the model behind every row, −1 for a reading."""
    chances = _chances(model)

    def act(at: int, state: int) -> None:
        for choice in range(int(own.choice_start[state]), int(own.choice_start[state + 1])):
            span = slice(int(own.transition_start[choice]), int(own.transition_start[choice + 1]))
            towards = own.successor[span].tolist()
            name = own.action_names[own.action_of_choice[choice]]
            rows.append((at, name, dict(zip(towards, chances[span], strict=True))))
            origin.append(choice)

    for state, reading in enumerate(readings):
        if own.draws_start and state == own.initial:
            look[state] = "start"
            act(state, state)
            continue
        first = len(source)
        drawn = dict(enumerate(reading.values(), start=first))
        rows.append((state, SENSING, drawn))
        origin.append(-1)
        for name in reading:
            source.append(state)
            look.append(f"{before[state]}{name}")
            act(len(source) - 1, state)
    return _put_together(model, rows, np.array(origin), np.array(source), look)


def _put_together(
    model: ParametricMDP | IntervalMDP,
    rows: list[Row],
    origin: OffsetArray,
    behind: OffsetArray,
    look: list[str],
) -> POMDP:
    """The model of these rows: state `behind[s]` seen as `look[s]`; `origin` is −1 for readings."""
    own = model.structure
    number = {name: k for k, name in enumerate(dict.fromkeys(look))}
    acts = np.arange(len(behind)) >= own.states
    if own.draws_start:
        acts[own.initial] = True
    labels = {}
    for name, has in own.labels.items():
        draws = own.draws_start and has[own.initial] and name.rstrip("_") == "start"
        if name != "init":
            labels[name] = np.flatnonzero(has[behind] & (acts if draws else True)).tolist()
    variables = {name: values[behind].tolist() for name, values in own.valuations.items()}
    column = "reading"
    while column in variables:
        column += "_"
    named = zip(behind.tolist(), look, strict=True)
    built = build_from_rows(
        rows,
        model.parameters if isinstance(model, ParametricMDP) else None,
        states=len(behind),
        initial=own.initial,
        labels=labels,
        valuations={**variables, column: [number[name] for name in look]} if variables else None,
        state_names=None if variables else [f"{own.state_name(s)}:{name}" for s, name in named],
    )
    order = sorted(range(len(rows)), key=lambda i: rows[i][0])
    choice = origin[order]
    rewards = {name: _lifted(name, reward, behind, acts, choice) for name, reward in own.rewards.items()}
    structure = replace(built.structure, rewards=rewards, made_from=own.made_from, named_from=own.named_from)
    return POMDP(
        replace(built, structure=structure),
        np.array([number[name] for name in look], np.int32),
        tuple(number),
        2,
    )


def _chances(model: ParametricMDP | IntervalMDP) -> list[Probability]:
    """The probability of every transition, as rows take it."""
    if isinstance(model, IntervalMDP):
        return list(zip(model.lower.tolist(), model.upper.tolist(), strict=True))
    table = model.expressions
    values: Sequence[Probability] = [table.function(e) for e in range(len(table))]
    if not model.parameters.names:
        values = table.exact_values(()).to_fractions()
    return [values[e] for e in model.expression.tolist()]


def _lifted(
    name: str, reward: RewardStructure, behind: OffsetArray, acts: BoolArray, choice: OffsetArray
) -> RewardStructure:
    """The same rewards, where actions are origin."""
    if isinstance(reward, ParametricReward):
        raise InputError(f"the rewards {name!r} have parameters, which is not supported with a sensor")
    state = None if reward.state is None else np.where(acts, reward.state[behind], 0.0)
    own = None if reward.choice is None else np.where(choice >= 0, reward.choice[choice], 0.0)
    return replace(reward, state=state, choice=own)
