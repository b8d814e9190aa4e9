"""Sensors: models in which the controller's reading is drawn anew at every state.

A sensor gives every state the probabilities of its readings: numbers, intervals (low, high), functions of the
parameters, or `free`. At state s a step without a choice draws the reading and leads to the copy of s for it,
which has the actions of s. So a step becomes two, and step bounds count pairs (`POMDP.pace`); rewards are
earned at the actions. A drawn first state has no reading before (`Structure.draws_start`). Readings are
assumed independent given the states, and results say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tightrope.errors import InputError
from tightrope.model.builder import Probability, Row, build_from_rows
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.pomdp import POMDP, SENSING
from tightrope.model.structure import ParametricReward, RewardStructure
from tightrope.numerics.arrays import BoolArray, OffsetArray

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
    drawn = own.initial if own.draws_start else -1
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
        if state == drawn:
            look[state] = "start"
            act(state, state)
            continue
        first = len(source)
        rows.append(
            (state, SENSING, dict(zip(range(first, first + len(reading)), reading.values(), strict=True)))
        )
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
    drawn = own.initial if own.draws_start else -1
    number = {name: k for k, name in enumerate(dict.fromkeys(look))}
    acts = np.arange(len(behind)) >= own.states
    if drawn >= 0:
        acts[drawn] = True
    labels = {
        name: np.flatnonzero(has[behind] & (acts if name in _only_once(model) else True)).tolist()
        for name, has in own.labels.items()
        if name != "init"
    }
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
    values: Sequence[Probability] = (
        table.exact_values(()).to_fractions() if not model.parameters.names else ()
    )
    values = values or [table.function(e) for e in range(len(table))]
    return [values[e] for e in model.expression.tolist()]


def _only_once(model: ParametricMDP | IntervalMDP) -> set[str]:
    """The label that says which state draws the first one."""
    own = model.structure
    if not own.draws_start:
        return set()
    return {name for name, has in own.labels.items() if name.rstrip("_") == "start" and has[own.initial]}


def _lifted(
    name: str, reward: RewardStructure, behind: OffsetArray, acts: BoolArray, choice: OffsetArray
) -> RewardStructure:
    """The same rewards, where actions are origin."""
    if isinstance(reward, ParametricReward):
        raise InputError(f"the rewards {name!r} have parameters, which is not supported with a sensor")
    state = None if reward.state is None else np.where(acts, reward.state[behind], 0.0)
    own = None if reward.choice is None else np.where(choice >= 0, reward.choice[choice], 0.0)
    return RewardStructure(state, own, reward.is_mean)
