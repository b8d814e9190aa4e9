"""Reading a model from PRISM's explicit files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.formats.explicit.rewards import read_state_rewards, read_transition_rewards
from tightrope.formats.explicit.states import read_labels, read_valuations
from tightrope.formats.explicit.transitions import Transitions, read_transitions
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray


def read_explicit(path: str | Path) -> MDP | IntervalMDP:
    """The model in `path.tra` and the files beside it that share its base name.

    The labels file names the initial states; without one it is state 0.
    """
    base = explicit_base(path)
    transitions = read_transitions(_with(base, ".tra"))
    structure = structure_of(base, transitions)
    if transitions.has_intervals:
        return IntervalMDP(structure, transitions.lower, transitions.upper)
    return MDP(structure, transitions.lower)


def structure_of(base: Path, transitions: Transitions) -> Structure:
    """The structure of a model, with what the files beside its transitions say."""
    states = len(transitions.choice_start) - 1
    labels, initial = _labels(_with(base, ".lab"), states)
    valuations = _with(base, ".sta")
    return Structure(
        choice_start=transitions.choice_start,
        transition_start=transitions.transition_start,
        successor=transitions.successor,
        initial_states=initial,
        action=transitions.action,
        action_names=transitions.action_names,
        labels=labels,
        rewards=_rewards(base, transitions),
        valuations=read_valuations(valuations, states) if valuations.exists() else {},
        declared_mdp=not transitions.is_chain,
    )


def explicit_base(path: str | Path) -> Path:
    """`m.tra` and `m` both stand for the files m.tra, m.lab, …"""
    given = Path(path)
    return given.with_suffix("") if given.suffix == ".tra" else given


def reward_files(base: Path, coming: Iterable[str] = ()) -> dict[str, dict[str, Path]]:
    """{number: {".srew": file, ".trew": file}} in order; the number is empty where there is only one.

    Files of exactly the base name, m.srew and m.trew. Where there are none, those that PRISM numbers: m1, m2,
    … from 1 without a gap, up to the first that are another model's (there is an m2.tra, m2.lab or m2.sta).
    `coming` are names of files that will be there.
    """
    parent = base.parent
    names = {file.name for file in parent.iterdir()} if parent.is_dir() else set()
    names.update(coming)
    found: dict[str, dict[str, Path]] = {}
    for number in itertools.chain([""], map(str, itertools.count(1))):
        stem = base.name + number
        files = {suffix: parent / (stem + suffix) for suffix in (".srew", ".trew") if stem + suffix in names}
        if number and (not files or any(stem + suffix in names for suffix in (".tra", ".lab", ".sta"))):
            break
        if files:
            found[number] = files
            if not number:
                break
    return found


def _with(base: Path, suffix: str) -> Path:
    return base.with_name(base.name + suffix)


def _labels(path: Path, states: int) -> tuple[dict[str, BoolArray], tuple[int, ...]]:
    nowhere = np.zeros(states, dtype=np.bool_)
    if not path.exists():
        first = nowhere.copy()
        first[0] = True
        return {"init": first, "deadlock": nowhere}, (0,)
    labels = read_labels(path, states)
    starts = np.flatnonzero(labels.get("init", nowhere))
    if len(starts) == 0:
        raise InputError("no state has the label 'init'", Location(str(path)))
    return labels, tuple(starts.tolist())


def _rewards(base: Path, transitions: Transitions) -> dict[str, RewardStructure]:
    """The name of a structure stands in a comment of its files; else it is the number in the file's name."""
    rewards: dict[str, RewardStructure] = {}
    for number, files in reward_files(base).items():
        names: list[str | None] = []
        state = choice = None
        if ".srew" in files:
            name, state = read_state_rewards(files[".srew"], len(transitions.choice_start) - 1)
            names.append(name)
        if ".trew" in files:
            name, choice = read_transition_rewards(files[".trew"], transitions)
            names.append(name)
        if len(set(names)) > 1:
            raise InputError(
                f"the files call their reward structure '{names[0]}' and '{names[1]}'",
                Location(str(files[".trew"])),
            )
        known = number if names[0] is None else names[0]
        if known in rewards:
            raise InputError(
                f"a second reward structure '{known}'", Location(str(next(iter(files.values()))))
            )
        rewards[known] = RewardStructure(state, choice)
    return rewards
