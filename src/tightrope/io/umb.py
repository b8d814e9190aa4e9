"""Writing models as UMB, the binary exchange format that Storm and other model checkers share.

The package `umbi` (an optional extra) knows the format: it writes the index and packs the archive. Arrays
go in as they are, little-endian, so that large models cost no loop. A chain has no player, any other model
one. Labels are atomic propositions, rewards annotations of states and choices; names that are no plain words
(anything but letters, digits, `_` and `-`) are kept as aliases. The label "init" is the format's own set of
initial states. Valuations of states are 32-bit integers.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope import __version__
from tightrope.errors import InputError
from tightrope.io.atomic import atomic_path
from tightrope.io.written_by import NAME
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure

_COMPRESSION = 6
"""Of gzip: 9, which is usual, takes ten times as long for files that are no smaller."""


def umb_is_available() -> bool:
    """Whether the package umbi is installed."""
    return find_spec("umbi") is not None


def write_umb(model: MDP | IntervalMDP, path: str | Path) -> None:
    """The file appears whole or not at all.

    >>> import os, tempfile
    >>> import tightrope as tr
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})]).instantiate()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tr.write_umb(model, os.path.join(folder, "m.umb"))
    ...     tr.load(os.path.join(folder, "m.umb")).states
    2
    """
    if not umb_is_available():
        raise InputError(
            f"cannot write {path}: UMB files need the package umbi",
            hint="pip install 'tightrope[umbi]', or write a .drn file",
        )
    writer = _Writer(model)
    with atomic_path(path) as temporary:
        writer.write(temporary)


class _Writer:
    """Collects the files of the archive; the index describes them."""

    def __init__(self, model: MDP | IntervalMDP):
        import umbi.umb
        import umbi.version
        from umbi.umb.index import FileData, TransitionSystem, UmbIndex, umbi_file_data

        structure = model.structure
        self.index = UmbIndex(
            format_version=umbi.version.__format_version__,
            format_revision=umbi.version.__format_revision__,
            file_data=FileData(NAME, __version__, umbi_file_data().creation_date),
            transition_system=TransitionSystem(
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
        from umbi.umb.explicit_umb import ExplicitUmb
        from umbi.umb.umb_to_tar import UmbEncoder

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
        initial = np.zeros(structure.states, np.bool_)
        initial[list(structure.initial_states)] = True
        self.files["state-is-initial.bin"] = _bits(initial)
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
        from umbi.binary.sized_type import BOOL1
        from umbi.umb.index import AnnotationDescription

        groups: dict[str, dict[str, Any]] = {}
        labels = {name: members for name, members in structure.labels.items() if name != "init"}
        for name, (label, members) in zip(_words(labels), labels.items(), strict=True):
            described = AnnotationDescription(alias=label, applies_to=["states"], type=BOOL1)
            groups.setdefault("aps", {})[name] = described
            self.files[f"annotations/aps/{name}/states/values.bin"] = _bits(members)
        for name, (title, reward) in zip(_words(structure.rewards), structure.rewards.items(), strict=True):
            parts = {"states": reward.state, "choices": reward.choice}
            given = {kind: values for kind, values in parts.items() if values is not None}
            given = given or {"states": np.zeros(structure.states)}
            described = AnnotationDescription(alias=title, applies_to=list(given), type=_number_type(False))
            groups.setdefault("rewards", {})[name] = described
            for kind, values in given.items():
                self.files[f"annotations/rewards/{name}/{kind}/values.bin"] = _pack(values, "<f8")
        self.index.annotations = groups or None

    def _add_valuations(self, structure: Structure) -> None:
        from umbi.binary import SizedType, StructType
        from umbi.datatypes import NumericPrimitiveType
        from umbi.umb.index import ValuationDescription

        if not structure.valuations:
            return
        described = StructType()
        for name in structure.valuations:
            described.add_attribute(name=name, sized_type=SizedType(NumericPrimitiveType.INT, 32))
        self.index.valuations = {"states": ValuationDescription(unique=True, classes=[described])}
        columns = np.stack([np.asarray(c) for c in structure.valuations.values()], axis=1)
        self.files["valuations/states/valuations.bin"] = _pack(columns, "<i4")


def _number_type(interval: bool) -> Any:
    from umbi.binary import SizedType
    from umbi.datatypes import IntervalType, NumericPrimitiveType

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
