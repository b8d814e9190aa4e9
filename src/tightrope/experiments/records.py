"""Records of cells: one JSON object a line, appended as cells end.

A record is written with one write call and synced, by the one process that holds the file. A process that
dies while writing leaves at most a torn last line, which readers pass over and the next writer cuts off. The
last record of a cell counts.

JSON knows no infinities: they are written as "inf" and "-inf", which `float()` reads back.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

from tightrope.errors import InputError, Location
from tightrope.experiments.cells import Cell, CellLimits, Protocol
from tightrope.experiments.methods import METHODS

FORMAT = 1

Status = Literal["ok", "time-out", "out-of-memory", "refused", "error"]
OK: Status = "ok"

FILE_NAME = "records.jsonl"
BUILD_PHASES = ("statistics", "region", "sets")


@dataclass(frozen=True)
class Record:
    """What became of a cell. `values` are the figures of a cell that went well, see `cell_measure`."""

    cell: Cell
    limits: CellLimits
    status: Status
    message: str | None
    values: Mapping[str, Any] = field(hash=False)
    machine: Mapping[str, Any] = field(hash=False)
    versions: Mapping[str, str] = field(hash=False)

    @property
    def lower(self) -> float:
        return float(self.values.get("lower", math.nan))

    @property
    def upper(self) -> float:
        return float(self.values.get("upper", math.nan))

    @property
    def optimum(self) -> float:
        return float(self.values.get("optimum", math.nan))

    @property
    def relative_gap(self) -> float:
        return float(self.values.get("relative_gap", math.nan))

    @property
    def peak_memory(self) -> int | None:
        value = self.values.get("peak_memory")
        return None if value is None else int(value)

    @property
    def build_seconds(self) -> float:
        """Statistics, region and sets."""
        return math.fsum(self._seconds(phase) for phase in BUILD_PHASES)

    @property
    def solve_seconds(self) -> float:
        return self._seconds("solve")

    @property
    def total_seconds(self) -> float:
        return self.build_seconds + self.solve_seconds

    def _seconds(self, phase: str) -> float:
        seconds = self.values.get("seconds")
        return float(seconds.get(phase, math.nan)) if isinstance(seconds, Mapping) else math.nan

    def settles(self, limits: CellLimits) -> bool:
        """Whether running the cell again under these limits would tell nothing new."""
        if self.status == "time-out":
            return limits.seconds <= self.limits.seconds
        if self.status == "out-of-memory":
            return limits.memory <= self.limits.memory
        return self.status != "error"

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "instance": self.cell.instance,
            "method": self.cell.method,
            "seed": self.cell.seed,
            "episodes": self.cell.protocol.episodes,
            "delta": self.cell.protocol.delta,
            "cap": self.cell.problem.episode_cap,
            "status": self.status,
            "message": self.message,
            **{name: _finite(value) for name, value in self.values.items()},
            "limits": {"seconds": _finite(self.limits.seconds), "memory": self.limits.memory},
            "machine": dict(self.machine),
            "versions": dict(self.versions),
        }

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Record:
        """Read what `to_json` wrote; a KeyError, TypeError, ValueError or InputError says it is no record."""
        if fields["format"] != FORMAT:
            raise ValueError(f"records of format {fields['format']}, not {FORMAT}")
        if fields["status"] not in get_args(Status) or fields["method"] not in METHODS:
            raise ValueError(f"unknown status or method: {fields['status']}, {fields['method']}")
        protocol = Protocol(int(fields["episodes"]), float(fields["delta"]))
        cell = Cell(fields["instance"], fields["method"], int(fields["seed"]), protocol)
        if cell.problem.name != cell.instance:
            raise ValueError(f"no instance is called {cell.instance}")
        limits = CellLimits(float(fields["limits"]["seconds"]), int(fields["limits"]["memory"]))
        own = set(fields) - _FRAME
        return Record(
            cell=cell,
            limits=limits,
            status=fields["status"],
            message=fields["message"],
            values={name: fields[name] for name in fields if name in own},
            machine=fields["machine"],
            versions=fields["versions"],
        )


_FRAME = {
    *("format", "instance", "method", "seed", "episodes", "delta", "cap", "status", "message"),
    *("limits", "machine", "versions"),
}


def read_records(path: Path) -> list[Record]:
    """All whole records of a file, the last one of every cell; a torn last line is passed over."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there are no records: no file {path}") from None
    end = _whole(data)
    records: dict[Cell, Record] = {}
    for number, line in enumerate(data[:end].split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = Record.from_json(json.loads(line))
        except (KeyError, TypeError, ValueError, AttributeError, InputError) as error:
            text = line.decode("utf-8", "replace")[:200]
            raise InputError(
                f"this is not a record of a campaign: {error}", Location(str(path), number, 1, text)
            ) from None
        records[record.cell] = record
    return list(records.values())


class RecordFile:
    """A file of records, held by this process alone while it is open."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> Self:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise InputError(
                f"another campaign is writing to {self.path}", hint="wait for it, or choose another directory"
            ) from None
        try:
            self._repair()
            self.records = {record.cell: record for record in read_records(self.path)}
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def append(self, record: Record) -> None:
        """Add the record of a cell; it is on the disk when this returns."""
        line = json.dumps(record.to_json(), allow_nan=False, ensure_ascii=False) + "\n"
        _write(self._descriptor, line.encode())
        os.fsync(self._descriptor)
        self.records[record.cell] = record

    def open_cells(self, cells: Iterable[Cell], limits: CellLimits) -> list[Cell]:
        """The cells that are still to be run under these limits."""
        return [c for c in cells if c not in self.records or not self.records[c].settles(limits)]

    def _repair(self) -> None:
        """Cut off a torn last line."""
        data = self.path.read_bytes()
        end = _whole(data)
        if end < len(data):
            os.ftruncate(self._descriptor, end)


def _whole(data: bytes) -> int:
    """Where the last line that ends in a line feed ends."""
    return data.rfind(b"\n") + 1


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _finite(value: object) -> object:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
