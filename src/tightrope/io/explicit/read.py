"""Reading a model from PRISM's explicit files.

PRISM's `.sta` and `.lab` files: the values of the variables and the labels of each state.

(x,busy)                 0="init" 1="deadlock" 2="goal"
0:(0,false)              0: 0
1:(1,true)               3: 1 2
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, Location
from tightrope.io.explicit.rewards import Exact, read_state_rewards, read_transition_rewards
from tightrope.io.explicit.transitions import Transitions, is_content, read_transitions
from tightrope.io.text_file import fail, shorten
from tightrope.model import door
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.numerics.text_reading import reading

_DECLARATION = re.compile(r'\s*([0-9]{1,9})="([^"]*)"')
_BOOLEAN = {"true": True, "false": False}


def read_valuations(path: Path, states: int) -> dict[str, npt.NDArray[Any]]:
    """A column per variable, of booleans where the file says true and false."""
    with reading(path) as file:
        lines = _content(file)
        number, line = next(lines, (0, ""))
        names = _read_parenthesised(path, number or 1, line)
        if len(set(names)) < len(names) or not all(names):
            fail(path, number or 1, line, "every variable needs a name of its own")
        rows: list[list[int] | None] = [None] * states
        known: dict[str, int | bool] = {}
        for number, line in lines:
            index, colon, values = line.partition(":")
            state = _state(path, number, line, index if colon else line, states)
            if rows[state] is not None:
                fail(path, number, line, f"state {state} is described twice")
            words = _read_parenthesised(path, number, values)
            if len(words) != len(names):
                fail(path, number, line, f"{len(words)} values for {len(names)} variables")
            row = []
            for word in words:
                if word not in known:
                    known[word] = _value(path, number, line, word)
                row.append(known[word])
            rows[state] = row
    if None in rows:
        raise InputError(
            f"state {rows.index(None)} is not described", Location(str(path)), hint="the file may be cut off"
        )
    table = np.array(rows, dtype=object).reshape(states, len(names))
    columns = {}
    for k, name in enumerate(names):
        kinds = {isinstance(value, bool) for value in table[:, k]}
        if len(kinds) > 1:
            raise InputError(f"variable '{name}' is a number in some states only", Location(str(path)))
        columns[name] = table[:, k].astype(np.bool_ if kinds == {True} else np.int32)
    return columns


def read_labels(path: Path, states: int) -> dict[str, BoolArray]:
    with reading(path) as file:
        lines = _content(file)
        number, line = next(lines, (0, ""))
        names = _read_declared(path, number or 1, line)
        try:
            door.check_room(float(len(names)) * states, f"{len(names):,} labels")
        except InputError as error:
            fail(path, number, line, error.message, hint=error.hint)
        labels = {name: np.zeros(states, dtype=np.bool_) for name in names.values()}
        for number, line in lines:
            index, _, listed = line.partition(":")
            state = _state(path, number, line, index, states)
            for word in listed.split():
                name = names.get(word)
                if name is None:
                    fail(path, number, line, f"{shorten(word)} is not the number of a label", word)
                labels[name][state] = True
    return labels


def _read_declared(path: Path, number: int, line: str) -> dict[str, str]:
    """{number: name} of `0="init" 1="goal"`."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    end = 0
    text = line.rstrip()
    while end < len(text):
        match = _DECLARATION.match(text, end)
        if match is None:
            hint = (
                "PRISM's labels files begin so; Storm's dialect (#DECLARATION) is not read, its DRN files are"
            )
            fail(path, number, line, 'labels such as 0="init" 1="goal" expected on the first line', hint=hint)
        if match.group(1) in names or match.group(2) in taken:
            fail(path, number, line, f"label {shorten(match.group(0))} is declared twice", match.group(0))
        names[match.group(1)] = match.group(2)
        taken.add(match.group(2))
        end = match.end()
    return names


def _content(file: Any) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(file, 1) if is_content(line))


def _read_parenthesised(path: Path, number: int, text: str) -> list[str]:
    stripped = text.strip()
    if not stripped.startswith("(") or not stripped.endswith(")"):
        fail(path, number, text, f"a list such as (0,true) expected, found {shorten(text)}")
    return [word.strip() for word in stripped[1:-1].split(",")]


def _state(path: Path, number: int, line: str, text: str, states: int) -> int:
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdecimal()) or len(stripped) > 9:
        fail(path, number, line, f"the number of a state expected, found {shorten(text)}")
    if int(stripped) >= states:
        fail(path, number, line, f"there is no state {stripped}: the states are 0 to {states - 1}", stripped)
    return int(stripped)


def _value(path: Path, number: int, line: str, word: str) -> int | bool:
    if word in _BOOLEAN:
        return _BOOLEAN[word]
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 9:
        fail(path, number, line, f"{shorten(word)} is neither a whole number nor true or false", word)
    return int(word)


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
            name, state, held = read_state_rewards(files[".srew"], len(transitions.choice_start) - 1)
            names.append(name)
        if ".trew" in files:
            name, choice, earned = read_transition_rewards(files[".trew"], transitions)
            names.append(name)
        if state is not None and choice is not None:
            _check_totals(files[".trew"], transitions, state, held, choice, earned)
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


def _check_totals(
    path: Path, transitions: Transitions, state: FloatArray, held: Exact, choice: FloatArray, earned: Exact
) -> None:
    """What states and choices earn together, by the rule of the model's door."""
    owner = np.repeat(np.arange(len(state)), np.diff(transitions.choice_start))
    try:
        door.check_totals(state[owner], choice, lambda number: (held(int(owner[number])), earned(number)))
    except door.NotHeldError as error:
        raise InputError(error.message, Location(str(path))) from None
