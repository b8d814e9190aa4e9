"""UMB, the binary exchange format of Storm and other model checkers, read and written.

The package `umbi` (optional extra) decodes the index, names and rare types; arrays are read and written
directly, as its decoder takes minutes for a million states. Discrete time with at most one player gives an
`MDP`, or an `IntervalMDP`. A choice earns the expectation of its branches' rewards, which determines all
values; intervals with different rewards are refused.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope import __version__
from tightrope.atomic import atomic_path
from tightrope.errors import InputError
from tightrope.io.formats import umb_is_available
from tightrope.io.output import NAME
from tightrope.io.rows import labels_of, located, refuse, with_numbers
from tightrope.model import numbers as door
from tightrope.model.builder import settled_model
from tightrope.model.continuous import Continuous
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import UNLABELLED, RewardStructure, Structure
from tightrope.numerics.arrays import AnyArray, FloatArray
from tightrope.prism.expand.program import Definitions
from tightrope.provenance import origin_in, origin_lines

with suppress(ImportError):  # an optional package
    import umbi.umb
    import umbi.version
    from umbi.binary import BOOL1, SizedType, StructType
    from umbi.datatypes import IntervalType, NumericPrimitiveType, PrimitiveType
    from umbi.umb import index as describe
    from umbi.umb.explicit_umb import ExplicitUmb
    from umbi.umb.umb_to_tar import UmbDecoder, UmbEncoder

Values = list[Any]
"""Numbers of a vector: bools, integers, doubles, `UmbInterval` or rationals."""

Annotation = dict[str, Values]
"""Values by what they belong to: states, choices or branches."""

_COMPRESSION = 6
"""Of gzip: 9, which is usual, takes ten times as long for files that are no smaller."""


def write_umb(model: MDP | IntervalMDP | ParametricMDP | Continuous, path: str | Path) -> None:
    """The file appears whole or not at all.

    >>> import os, tempfile
    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})]).instantiate()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = model.save(os.path.join(folder, "m.umb"))
    ...     tr.load(os.path.join(folder, "m.umb")).states
    2
    """
    if isinstance(model, Continuous):
        raise InputError(
            "a chain in continuous time is not written as UMB", hint="write a .drn, .tra or .jani file"
        )
    plain = with_numbers(model, "UMB files")
    if not umb_is_available():
        raise InputError(
            f"cannot write {path}: UMB files need the package umbi",
            hint="pip install 'tightrope[umbi]', or write a .drn file",
        )
    writer = _UmbWriter(plain)
    with atomic_path(path) as temporary:
        writer.write(temporary)


class _UmbWriter:
    """Collects the files of the archive; the index describes them."""

    def __init__(self, model: MDP | IntervalMDP):

        structure = model.structure
        comment = "\n".join(origin_lines(structure))
        self.index = describe.UmbIndex(
            format_version=umbi.version.__format_version__,
            format_revision=umbi.version.__format_revision__,
            file_data=describe.FileData(NAME, __version__, describe.umbi_file_data().creation_date),
            model_data=describe.ModelData(comment=comment) if comment else None,
            transition_system=describe.TransitionSystem(
                time="discrete",
                num_players=0 if structure.is_chain else 1,
                num_states=structure.states,
                num_initial_states=len(structure.initial_states),
                num_choices=structure.choices,
                num_choice_actions=0 if structure.is_chain else len(structure.action_names),
                num_branches=structure.transitions,
                branch_probability_type=_number_type(isinstance(model, IntervalMDP)),
            ),
        )
        self.files: dict[str, bytes] = {}
        self._add_graph(model)
        if not structure.is_chain:
            self._add_actions(structure)
        self._add_annotations(structure)
        self._add_valuations(structure)

    def write(self, path: Path) -> None:
        encoder = UmbEncoder()
        encoder.add_index_file(ExplicitUmb(index=self.index))
        for name, content in self.files.items():
            encoder.add_file(name, content)
        with tarfile.open(path, "w:gz", compresslevel=_COMPRESSION) as archive:
            for name, content in encoder.items():
                described = tarfile.TarInfo(name)
                described.size = len(content)
                archive.addfile(described, BytesIO(content))

    def _add_graph(self, model: MDP | IntervalMDP) -> None:
        structure = model.structure
        self.files["state-is-initial.bin"] = _bits(labels_of(structure)["init"])
        self.files["state-to-choices.bin"] = _pack(structure.choice_start, "<u8")
        self.files["choice-to-branches.bin"] = _pack(structure.transition_start, "<u8")
        self.files["branch-to-target.bin"] = _pack(structure.successor, "<u8")
        if isinstance(model, IntervalMDP):
            values = np.stack([model.lower, model.upper], axis=1)
        else:
            values = model.probability
        self.files["branch-to-probability.bin"] = _pack(values, "<f8")

    def _add_actions(self, structure: Structure) -> None:
        names = [name.encode() for name in structure.action_names]
        ends = np.cumsum([0, *(len(name) for name in names)])
        self.files["actions/choices/values.bin"] = _pack(structure.action_of_choice, "<u4")
        self.files["actions/choices/strings.bin"] = b"".join(names)
        self.files["actions/choices/string-mapping.bin"] = _pack(ends, "<u8")

    def _add_annotations(self, structure: Structure) -> None:
        groups: dict[str, dict[str, describe.AnnotationDescription]] = {}
        labels = {name: members for name, members in structure.labels.items() if name != "init"}
        for name, (label, members) in zip(_words(labels), labels.items(), strict=True):
            described = describe.AnnotationDescription(alias=label, applies_to=["states"], type=BOOL1)
            groups.setdefault("aps", {})[name] = described
            self.files[f"annotations/aps/{name}/states/values.bin"] = _bits(members)
        for name, (title, reward) in zip(_words(structure.rewards), structure.rewards.items(), strict=True):
            parts = {"states": reward.state, "choices": reward.choice}
            given = {kind: values for kind, values in parts.items() if values is not None}
            given = given or {"states": np.zeros(structure.states)}
            described = describe.AnnotationDescription(
                alias=title, applies_to=list(given), type=_number_type(False)
            )
            groups.setdefault("rewards", {})[name] = described
            for kind, values in given.items():
                self.files[f"annotations/rewards/{name}/{kind}/values.bin"] = _pack(values, "<f8")
        self.index.annotations = groups or None

    def _add_valuations(self, structure: Structure) -> None:
        if not structure.valuations:
            return
        described = StructType()
        for name in structure.valuations:
            described.add_attribute(name=name, sized_type=SizedType(NumericPrimitiveType.INT, 32))
        self.index.valuations = {"states": describe.ValuationDescription(unique=True, classes=[described])}
        columns = np.stack([np.asarray(c) for c in structure.valuations.values()], axis=1)
        self.files["valuations/states/valuations.bin"] = _pack(columns, "<i4")


def _number_type(interval: bool) -> SizedType:
    double = NumericPrimitiveType.DOUBLE
    return SizedType.for_type(IntervalType(double) if interval else double)


def _pack(values: npt.ArrayLike, kind: str) -> bytes:
    return np.ascontiguousarray(values, dtype=kind).tobytes()


def _bits(members: npt.NDArray[np.bool_]) -> bytes:
    """One bit a member, the first one lowest, filled up to whole 64-bit words."""
    packed = np.packbits(members, bitorder="little").tobytes()
    return packed + bytes(-len(packed) % 8)


def _words(names: Iterable[str]) -> list[str]:
    """A plain word for each name, none twice."""
    words: list[str] = []
    for name in names:
        word = re.sub(r"[^A-Za-z0-9_-]", "_", name) or "_"
        number = 1
        unique = word
        while unique in words:
            number += 1
            unique = f"{word}_{number}"
        words.append(unique)
    return words


_WHOLE = (8, 16, 32, 64)
_PER_BYTE = 8
"""Bytes of memory, roughly, for one in an archive: numbers are lists for a while."""
_MOST_ACTIONS = 2**16


class UmbInterval(NamedTuple):
    """An interval, with the names that umbi has for its ends."""

    left: float
    right: float


def decode_archive(path: str | Path) -> ExplicitUmb:
    """The archive as umbi has it, except that `valuations` are columns: {kind: {variable: array}}."""
    total = _size(Path(path))

    class Decoder(UmbDecoder):  # type: ignore[misc,unused-ignore]
        def read_index_file(self, umb: ExplicitUmb) -> None:
            super().read_index_file(umb)
            system = umb.index.transition_system
            for name in ("states", "choices", "branches", "choice_actions"):
                if (number := getattr(system, f"num_{name}", 0) or 0) > total:
                    raise InputError(f"its index says {number:,} {name}, in an archive of {total:,} bytes")

        def read_vector(self, filename: str, sized_type: SizedType, optional: bool = False) -> Values | None:
            if (data := self.read_file(filename, optional)) is None:
                return None
            numbers = _decode_vector(data, sized_type)
            return super().read_vector(filename, sized_type, optional) if numbers is None else numbers

        def read_valuation_description(self, umb: ExplicitUmb, applies_to: str, valuation_desc: Any) -> None:
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


def _decode_vector(data: bytes, sized_type: SizedType) -> Values | None:
    """The numbers, or None where the type is left to umbi."""
    kind, bits = sized_type.type, sized_type.size_bits
    if sized_type == BOOL1:
        members = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").astype(np.bool_)
        return list(members.tolist())
    if isinstance(kind, IntervalType) and bits == 128 and kind.base_type == NumericPrimitiveType.DOUBLE:
        return [UmbInterval(*pair) for pair in np.frombuffer(data, "<f8").reshape(-1, 2).tolist()]
    dtype = _dtype(kind, bits)
    return None if dtype is None else np.frombuffer(data, dtype).tolist()


def _dtype(kind: object, bits: int) -> str | None:
    if bits not in _WHOLE:
        return None
    if kind == NumericPrimitiveType.DOUBLE and bits == 64:
        return "<f8"
    letters = {NumericPrimitiveType.UINT: "u", NumericPrimitiveType.INT: "i"}
    return f"<{letters[kind]}{bits // 8}" if kind in letters else None


def _decode_structs(data: bytes, struct: StructType) -> dict[str, AnyArray] | None:
    """A column per attribute, or None where one of them is left to umbi."""
    rows = np.frombuffer(data, np.uint8).reshape(-1, struct.size_bytes)
    columns: dict[str, AnyArray] = {}
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
        refuse(path, "UMB files need the package umbi", "pip install 'tightrope[umbi]'")
    with _refusing(path):
        archive = decode_archive(path)
    system = archive.index.transition_system
    if system.time != "discrete":
        refuse(path, f"its time is {system.time}, and only discrete time is read")
    if system.num_players > 1:
        refuse(path, f"it is a game of {system.num_players} players, not an MDP")
    if not sum(archive.state_is_initial):
        refuse(path, "it has no initial state")
    with _refusing(path):
        return _model(archive, _structure(archive, path))


@contextmanager
def _refusing(path: str | Path) -> Iterator[None]:
    """Whatever umbi or its arrays stumble over is the file's fault, in one line."""
    try:
        with located(path):
            yield
    except (InputError, MemoryError):
        raise
    except OSError as error:
        refuse(path, f"cannot be read: {error.strerror or error}")
    except Exception as error:
        shown = "".join(f": {line}" for line in str(error).splitlines()[:1])
        refuse(path, f"this is not a UMB file that umbi reads: {type(error).__name__}{shown}")


def _structure(archive: ExplicitUmb, path: str | Path) -> Structure:
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
    comment = getattr(archive.index.model_data, "comment", None) or ""
    return Structure(
        np.array(starts, np.int64),
        np.array(branches, np.int64),
        np.array(archive.branch_to_target or [], np.int32),
        tuple(np.flatnonzero(archive.state_is_initial).tolist()),
        np.array(action, np.int32),
        names or (UNLABELLED,),
        {"deadlock": np.zeros(states, np.bool_), **labels},
        rewards,
        dict((archive.valuations or {}).get("states") or {}),
        declared_mdp=system.num_players == 1,
        definitions=Definitions.in_comments(comment),
        **origin_in(comment, str(path)),
    )


def _rewards(archive: ExplicitUmb, title: str, values: Annotation, starts: list[int]) -> RewardStructure:
    """Rewards of states and choices, those of branches as expectations of their choice, rounded once."""
    state, choice = (_doubles(values[at], title) if at in values else None for at in REWARD_PLACES[:2])
    if "branches" not in values:
        return RewardStructure(state, choice)
    probability = archive.branch_to_probability or [1] * len(values["branches"])
    expected, is_mean = [], False
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
            is_mean, weights = True, [Fraction(value) for value in probability[begin:end]]
            expected.append(door.double(total + sum(p * r for p, r in zip(weights, earned, strict=True))))
    return RewardStructure(state, np.array(expected, np.float64), is_mean)


def _model(archive: ExplicitUmb, structure: Structure) -> MDP | IntervalMDP:
    values = archive.branch_to_probability
    if values is None:
        values = [1] * structure.transitions
    if values and hasattr(values[0], "left"):
        low, high = ([Fraction(getattr(value, end)) for value in values] for end in ("left", "right"))
        return settled_model(structure, list(zip(low, high, strict=True)))
    return MDP(structure, _doubles(values, "probability"))


def _doubles(values: Values, name: str) -> FloatArray:
    """Numbers of a model, by the rule of its door."""
    if all(isinstance(value, float) for value in values):
        doubles = np.array(values, np.float64)
        door.check_doubles(doubles, f"{name}:")
        return doubles
    return np.array([door.double(Fraction(value)) for value in values], np.float64)


def _annotations(
    archive: ExplicitUmb, group: str, places: tuple[str, ...], path: str | Path
) -> Iterator[tuple[str, Annotation]]:
    """The annotations of a group under the names that their authors gave them."""
    described = (archive.index.annotations or {}).get(group, {})
    for name, values in (archive.annotations or {}).get(group, {}).items():
        title = described[name].alias or name
        for place in values:
            if place not in places:
                raise InputError(f"the {group} '{title}' are those of {place}, which are not read")
        yield title, values
