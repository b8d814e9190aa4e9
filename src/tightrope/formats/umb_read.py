"""Reading UMB, the binary exchange format that Storm and other model checkers share.

The package `umbi` (an optional extra) unpacks the archive and checks its index, `umb_arrays` reads what is
large. A model of discrete time
with at most one player becomes an `MDP`, or an `IntervalMDP` where its branches carry intervals. Atomic
propositions are labels, reward annotations of states and choices are rewards, and states keep their
valuations. Where the branches of a choice earn rewards it earns their expectation, on which alone values
depend; that of an interval model depends on what nature picks, and is refused unless all branches earn the
same. What has no place in such a model (time, several players) is refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.formats.umb import umb_is_available
from tightrope.formats.umb_arrays import decode_archive
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import UNLABELLED, RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray
from tightrope.numerics.rationals import RationalArray

REWARD_PLACES = ("states", "choices", "branches")


def read_umb(path: str | Path) -> MDP | IntervalMDP:
    """The model in a UMB file."""
    if not umb_is_available():
        raise InputError(
            "UMB files need the package umbi", Location(str(path)), "pip install 'tightrope[umbi]'"
        )
    with _refusing(path):
        archive = decode_archive(path)
    system = archive.index.transition_system
    if system.time != "discrete":
        raise InputError(f"its time is {system.time}, and only discrete time is read", Location(str(path)))
    if system.num_players > 1:
        raise InputError(f"it is a game of {system.num_players} players, not an MDP", Location(str(path)))
    if not sum(archive.state_is_initial):
        raise InputError("it has no initial state", Location(str(path)))
    with _refusing(path):
        return _model(archive, _structure(archive, path))


@contextmanager
def _refusing(path: str | Path) -> Iterator[None]:
    """Whatever umbi or its arrays stumble over is the file's fault, in one line."""
    try:
        yield
    except InputError as error:
        raise InputError(error.message, error.location or Location(str(path)), error.hint) from None
    except MemoryError:
        raise
    except Exception as error:
        shown = str(error).splitlines()
        raise InputError(
            f"this is no UMB file that umbi reads: {type(error).__name__}{': ' if shown else ''}"
            f"{shown[0] if shown else ''}",
            Location(str(path)),
        ) from None


def _structure(archive: Any, path: str | Path) -> Structure:
    system = archive.index.transition_system
    states, choices = system.num_states, system.num_choices
    starts = archive.state_to_choices or list(range(states + 1))
    branches = archive.choice_to_branches or list(range(choices + 1))
    names = tuple(archive.choice_action_to_string or ())
    if not names and system.num_choice_actions > 0:
        names = tuple(str(number) for number in range(system.num_choice_actions))
    action = archive.choice_to_choice_action or [0] * choices
    labels = {"init": np.array(archive.state_is_initial, np.bool_)}
    for label, values in _annotations(archive, "aps", ("states",), path):
        labels[label] = np.array(values["states"], np.bool_)
    rewards = {
        title: _rewards(archive, title, values, branches)
        for title, values in _annotations(archive, "rewards", REWARD_PLACES, path)
    }
    return Structure(
        np.array(starts, np.int64),
        np.array(branches, np.int64),
        np.array(archive.branch_to_target or [], np.int32),
        tuple(np.flatnonzero(archive.state_is_initial).tolist()),
        np.array(action, np.int32),
        names or (UNLABELLED,),
        {"deadlock": _no_states(states), **labels},
        rewards,
        _valuations(archive),
        declared_mdp=system.num_players == 1,
    )


def _rewards(archive: Any, title: str, values: dict[str, list[Any]], starts: list[int]) -> RewardStructure:
    """Rewards of states and choices, those of branches as expectations of their choice, rounded once."""
    state, choice = (np.array(values[at], np.float64) if at in values else None for at in REWARD_PLACES[:2])
    if "branches" not in values:
        return RewardStructure(state, choice)
    probability = archive.branch_to_probability or [1] * len(values["branches"])
    expected = []
    for number, (begin, end) in enumerate(pairwise(starts)):
        earned = [Fraction(value) for value in values["branches"][begin:end]]
        total = Fraction(0) if choice is None else Fraction(float(choice[number]))
        if len(set(earned)) == 1:
            expected.append(float(total + earned[0]))
        elif hasattr(probability[begin], "left"):
            raise InputError(
                f"the rewards '{title}' differ between branches of choice {number}, and the model has "
                "intervals: what the choice earns depends on nature"
            )
        else:
            weights = [Fraction(value) for value in probability[begin:end]]
            expected.append(float(total + sum(p * r for p, r in zip(weights, earned, strict=True))))
    return RewardStructure(state, np.array(expected, np.float64))


def _model(archive: Any, structure: Structure) -> MDP | IntervalMDP:
    values = archive.branch_to_probability
    if values is None:
        values = [1] * structure.transitions
    if values and hasattr(values[0], "left"):
        low, high = ([Fraction(getattr(value, end)) for value in values] for end in ("left", "right"))
        return IntervalMDP(
            structure,
            RationalArray.from_fractions(low).to_float_down(),
            RationalArray.from_fractions(high).to_float_up(),
        )
    return MDP(structure, np.array([float(value) for value in values]))


def _annotations(
    archive: Any, group: str, places: tuple[str, ...], path: str | Path
) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """The annotations of a group under the names that their authors gave them."""
    described = (archive.index.annotations or {}).get(group, {})
    for name, values in (archive.annotations or {}).get(group, {}).items():
        title = described[name].alias or name
        for place in values:
            if place not in places:
                raise InputError(f"the {group} '{title}' are those of {place}, which are not read")
        yield title, values


def _valuations(archive: Any) -> dict[str, Any]:
    return dict((archive.valuations or {}).get("states") or {})


def _no_states(states: int) -> BoolArray:
    return np.zeros(states, np.bool_)
