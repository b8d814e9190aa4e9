"""Reading UMB, the binary exchange format that Storm and other model checkers share.

The package `umbi` (an optional extra) unpacks the archive and checks its index. A model of discrete time
with at most one player becomes an `MDP`, or an `IntervalMDP` where its branches carry intervals. Atomic
propositions are labels, reward annotations of states and choices are rewards, and states keep their
valuations. Where the branches of a choice earn rewards it earns their expectation, on which alone values
depend; that of an interval model depends on what nature picks, and is refused unless all branches earn the
same. What has no place in such a model (time, several players) is refused, never dropped.

Arrays are decoded at once (`decode_archive`). The package `umbi` decodes an archive number by number, which
takes minutes for a million states. Its decoder is kept for the index, for names and for rare types
(rationals, optional values); vectors of doubles, integers, truth values and intervals of doubles, and
valuations of states, are read here as whole arrays. Bits of a valuation count from the lowest of its first
byte, as everywhere in the format.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.errors import InputError, Location
from tightrope.io.umb import umb_is_available
from tightrope.model import door
from tightrope.model.builder import settled_model
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import UNLABELLED, RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray

_WHOLE = (8, 16, 32, 64)
_PER_BYTE = 8
"""Bytes of memory, roughly, for one in an archive: numbers are lists for a while."""
_MOST_ACTIONS = 2**16


class Ends(NamedTuple):
    """An interval, with the names that umbi has for its ends."""

    left: float
    right: float


def decode_archive(path: str | Path) -> Any:
    """The archive as umbi has it, except that `valuations` are columns: {kind: {variable: array}}."""
    from umbi.umb.umb_to_tar import UmbDecoder

    total = _size(Path(path))

    class Decoder(UmbDecoder):  # type: ignore[misc,unused-ignore]
        def read_index_file(self, umb: Any) -> None:
            super().read_index_file(umb)
            system = umb.index.transition_system
            for name in ("states", "choices", "branches", "choice_actions"):
                if (number := getattr(system, f"num_{name}", 0) or 0) > total:
                    raise InputError(f"its index says {number:,} {name}, in an archive of {total:,} bytes")

        def read_vector(self, filename: str, sized_type: Any, optional: bool = False) -> list[Any] | None:
            if (data := self.read_file(filename, optional)) is None:
                return None
            found = _decode_vector(data, sized_type)
            return super().read_vector(filename, sized_type, optional) if found is None else found

        def read_valuation_description(self, umb: Any, applies_to: str, valuation_desc: Any) -> None:
            if len(valuation_desc.classes) == 1 and valuation_desc.num_strings is None:
                data = self.read_file(f"valuations/{applies_to}/valuations.bin", optional=False)
                columns = _decode_structs(data, valuation_desc.classes[0])
                if columns is not None:
                    umb.valuations[applies_to] = columns
                    return
            super().read_valuation_description(umb, applies_to, valuation_desc)
            rows = umb.valuations[applies_to]
            names = rows[0] if rows else ()
            umb.valuations[applies_to] = {name: np.array([row[name] for row in rows]) for name in names}

    return Decoder(umbpath=path).decode()


def _size(path: Path) -> int:
    """The bytes that an archive unpacks to; refused where there is no room, before it is unpacked."""
    total = 0
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            total += member.size
            door.check_room(float(_PER_BYTE * total), "what the archive holds")
    return total


def _decode_vector(data: bytes, sized_type: Any) -> list[Any] | None:
    """The numbers, or None where the type is left to umbi."""
    from umbi.binary import BOOL1
    from umbi.datatypes import IntervalType, NumericPrimitiveType

    kind, bits = sized_type.type, sized_type.size_bits
    if sized_type == BOOL1:
        members = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").astype(np.bool_)
        return list(members.tolist())
    if isinstance(kind, IntervalType) and bits == 128 and kind.base_type == NumericPrimitiveType.DOUBLE:
        return [Ends(*pair) for pair in np.frombuffer(data, "<f8").reshape(-1, 2).tolist()]
    dtype = _dtype(kind, bits)
    return None if dtype is None else np.frombuffer(data, dtype).tolist()


def _dtype(kind: Any, bits: int) -> str | None:
    from umbi.datatypes import NumericPrimitiveType

    if bits not in _WHOLE:
        return None
    if kind == NumericPrimitiveType.DOUBLE and bits == 64:
        return "<f8"
    letters = {NumericPrimitiveType.UINT: "u", NumericPrimitiveType.INT: "i"}
    return f"<{letters[kind]}{bits // 8}" if kind in letters else None


def _decode_structs(data: bytes, struct: Any) -> dict[str, npt.NDArray[Any]] | None:
    """A column per attribute, or None where one of them is left to umbi."""
    from umbi.datatypes import NumericPrimitiveType, PrimitiveType

    rows = np.frombuffer(data, np.uint8).reshape(-1, struct.size_bytes)
    columns: dict[str, npt.NDArray[Any]] = {}
    begin = 0
    for field in struct:
        size = field.size_bits
        if hasattr(field, "name"):
            kind = field.sized_type.type
            if field.is_optional or field.offset:
                return None
            dtype = _dtype(kind, size)
            if dtype is not None and begin % 8 == 0:
                part = np.ascontiguousarray(rows[:, begin // 8 : (begin + size) // 8])
                columns[field.name] = part.view(dtype)[:, 0]
            elif kind == PrimitiveType.BOOL and size == 1:
                columns[field.name] = (rows[:, begin // 8] >> (begin % 8) & 1).astype(np.bool_)
            elif kind in (NumericPrimitiveType.UINT, NumericPrimitiveType.INT) and size < 63:
                columns[field.name] = _whole_numbers(rows, begin, size, kind == NumericPrimitiveType.INT)
            else:
                return None
        begin += size
    return columns


def _whole_numbers(rows: npt.NDArray[np.uint8], begin: int, size: int, signed: bool) -> npt.NDArray[np.int64]:
    """Integers of so many bits that begin anywhere."""
    total = np.zeros(len(rows), np.int64)
    for bit in range(size):
        place = begin + bit
        weight = -(1 << bit) if signed and bit == size - 1 else 1 << bit
        total += (rows[:, place // 8] >> (place % 8) & 1).astype(np.int64) * weight
    return total


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
    targets = len(archive.branch_to_target or ())
    if not 0 < states <= choices <= system.num_branches == targets:
        raise InputError(
            f"its index says {states} states, {choices} choices and {system.num_branches} branches, and "
            f"{targets} branches are there: every state has a choice, and every choice a branch"
        )
    if system.num_choice_actions > max(choices, _MOST_ACTIONS):
        raise InputError(f"its index says {system.num_choice_actions} actions for {choices} choices")
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
    state, choice = (_doubles(values[at], title) if at in values else None for at in REWARD_PLACES[:2])
    if "branches" not in values:
        return RewardStructure(state, choice)
    probability = archive.branch_to_probability or [1] * len(values["branches"])
    expected = []
    for number, (begin, end) in enumerate(pairwise(starts)):
        earned = [Fraction(value) for value in values["branches"][begin:end]]
        total = Fraction(0) if choice is None else Fraction(float(choice[number]))
        if len(set(earned)) == 1:
            expected.append(door.double(total + earned[0]))
        elif hasattr(probability[begin], "left"):
            raise InputError(
                f"the rewards '{title}' differ between branches of choice {number}, and the model has "
                "intervals: what the choice earns depends on nature"
            )
        else:
            weights = [Fraction(value) for value in probability[begin:end]]
            expected.append(door.double(total + sum(p * r for p, r in zip(weights, earned, strict=True))))
    return RewardStructure(state, np.array(expected, np.float64))


def _model(archive: Any, structure: Structure) -> MDP | IntervalMDP:
    values = archive.branch_to_probability
    if values is None:
        values = [1] * structure.transitions
    if values and hasattr(values[0], "left"):
        low, high = ([Fraction(getattr(value, end)) for value in values] for end in ("left", "right"))
        return settled_model(structure, list(zip(low, high, strict=True)))
    return MDP(structure, _doubles(values, "probability"))


def _doubles(values: list[Any], name: str) -> FloatArray:
    """Numbers of a model, by the rule of its door."""
    if all(isinstance(value, float) for value in values):
        found = np.array(values, np.float64)
        door.check_doubles(found, f"{name}:")
        return found
    return np.array([door.double(Fraction(value)) for value in values], np.float64)


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
