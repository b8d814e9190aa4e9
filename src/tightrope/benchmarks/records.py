"""Records of cells: one JSON object a line, appended as cells end.

The last record of a cell counts. How lines survive a crash: `tightrope.benchmarks.line_file`.

JSON knows no infinities: they are written as "inf" and "-inf", which `float()` reads back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from tightrope.benchmarks.cells import Cell, CellLimits, Protocol
from tightrope.benchmarks.line_file import LineFile, whole_lines
from tightrope.benchmarks.methods import METHODS
from tightrope.errors import InputError, Location

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
    records: dict[Cell, Record] = {}
    for number, line in enumerate(whole_lines(path), start=1):
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


class RecordFile(LineFile):
    """A file of records, held by this process alone while it is open."""

    records: dict[Cell, Record]

    def read(self) -> None:
        self.records = {record.cell: record for record in read_records(self.path)}

    def append(self, record: Record) -> None:
        """Add the record of a cell; it is on the disk when this returns."""
        self.append_line(json.dumps(record.to_json(), allow_nan=False, ensure_ascii=False))
        self.records[record.cell] = record

    def open_cells(self, cells: Iterable[Cell], limits: CellLimits) -> list[Cell]:
        """The cells that are still to be run under these limits."""
        return [c for c in cells if c not in self.records or not self.records[c].settles(limits)]


def _finite(value: object) -> object:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
