"""Records of cells and of learning curves: what was measured, on which machine, one JSON object per line.

A file is appended to by one process at a time, as cells end. A line is written whole and synced: a process
that dies while writing leaves at most a torn last line, which readers pass over and the next writer cuts off.
The last record of a cell counts. JSON knows no infinities: they are written as "inf" and "-inf", which
`float()` reads back. No record names a machine.

A learning curve is one object per run, its updates as columns, thinned out: episodes are cut into
`CELLS_PER_DECADE` cells, and the last update in each stays; the numbers of updates, of broken guarantees and
of uncertified solves are over all updates.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

import numpy as np

from tightrope.atomic import explain_errors
from tightrope.errors import InputError, Location
from tightrope.io.output import Manifest, read_manifest, refuse_other_kind
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.machine import cores, lock
from tightrope_campaigns.cells import METHODS, ONLINE_METHODS, Cell, CellLimits, OnlineCell, Protocol


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file, a torn last one left out."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there are no records: no file {path}") from None
    return data[: _whole(data)].split(b"\n")


class LineFile:
    """A file of lines, held by this process alone while it is open."""

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> Self:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            lock(self._descriptor, wait=False)
        except BlockingIOError:
            os.close(self._descriptor)
            raise InputError(
                f"another campaign is writing to {self.path}", hint="wait for it, or choose another directory"
            ) from None
        try:
            data = self.path.read_bytes()
            os.ftruncate(self._descriptor, _whole(data))
            self.read()
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def read(self) -> None:
        """What is to be known of the lines that are there already."""

    def append_line(self, line: str) -> None:
        """Add a line; it is on the disk when this returns."""
        data = (line + "\n").encode()
        with explain_errors(self.path):
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)


def _whole(data: bytes) -> int:
    """Where the last line that ends in a line feed ends."""
    return data.rfind(b"\n") + 1


PACKAGES = ("numpy", "scipy", "numba", "highspy", "clarabel")


def machine() -> dict[str, object]:
    """Cores we may use, memory in bytes, and the model of the CPU."""
    return {"cores": cores(), "memory": _memory(), "cpu": _cpu()}


def versions() -> dict[str, str]:
    """Versions of Python, of tightrope and of what its numbers depend on."""
    import tightrope

    result = {"python": platform.python_version(), "tightrope": tightrope.__version__}
    for package in PACKAGES:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            continue
    return result


def describe(facts: Mapping[str, Any]) -> str:
    """A record's `machine` and `versions` in one line."""
    machine, versions = facts["machine"], facts["versions"]
    return (
        f"{machine.get('cores')} cores, {int(machine.get('memory', 0)) / (1 << 30):.0f} GiB, "
        f"{machine.get('cpu')}; " + ", ".join(f"{name} {number}" for name, number in versions.items())
    )


def peak_memory(process: str = "self") -> int | None:
    """The most bytes of memory a process has held at once; None where it has gone."""
    return _status_bytes(process, "VmHWM:")


def resident_memory(process: str) -> int | None:
    """The bytes of memory a process holds now; None where it has gone."""
    return _status_bytes(process, "VmRSS:")


def _status_bytes(process: str, field: str) -> int | None:
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return None


def _memory() -> int:
    """The machine's memory, or less where a control group limits us."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


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


ONLINE_FILE = "online.jsonl"
ONLINE_FORMAT = "online 1"
CELLS_PER_DECADE = 24
COLUMNS = ("episode", "steps", "guarantee", "performance", "optimistic", "elapsed")


@dataclass(frozen=True, eq=False)
class OnlineRecord:
    """What became of a run; `columns` are those of the updates that were kept."""

    cell: OnlineCell
    columns: Mapping[str, FloatArray]
    facts: Mapping[str, Any] = field(hash=False)

    @property
    def updates(self) -> int:
        return int(self.facts["updates"])

    @property
    def broken(self) -> int:
        """Updates whose guarantee exceeds the true performance of its policy."""
        return int(self.facts["broken"])

    @property
    def optimum(self) -> float:
        return float(self.facts["optimum"])

    @property
    def maximises(self) -> bool:
        return bool(self.facts["maximises"])

    @property
    def last(self) -> dict[str, float]:
        return {name: float(column[-1]) for name, column in self.columns.items()}

    def first_reaching(self, level: float, better: bool = False) -> float:
        """The episodes after which the guarantee is as good as `level`, or `better`; ∞ where it never is."""
        gain = self.columns["guarantee"] - level if self.maximises else level - self.columns["guarantee"]
        good = gain > 1e-6 * abs(level) if better else gain >= 0
        return float(self.columns["episode"][np.argmax(good)]) if good.any() else math.inf

    def to_json(self) -> dict[str, Any]:
        cell = self.cell
        return {
            "format": ONLINE_FORMAT,
            "instance": cell.instance,
            "method": cell.method,
            "seed": cell.seed,
            "episodes": cell.episodes,
            "delta": cell.delta,
            **{name: _plain(column) for name, column in self.columns.items()},
            "facts": dict(self.facts),
        }

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> OnlineRecord:
        """Read what `to_json` wrote; a KeyError, TypeError or ValueError says it is no record."""
        if fields["format"] != ONLINE_FORMAT or fields["method"] not in ONLINE_METHODS:
            raise ValueError(f"of format {fields['format']}, method {fields['method']}")
        cell = OnlineCell(
            fields["instance"],
            fields["method"],
            int(fields["seed"]),
            int(fields["episodes"]),
            float(fields["delta"]),
        )
        columns = {name: np.array([float(value) for value in fields[name]]) for name in COLUMNS}
        return OnlineRecord(cell, columns, dict(fields["facts"]))


def thin(records: Sequence[Mapping[str, Any]]) -> dict[str, FloatArray]:
    """The columns of the records that are kept: the first one, and the last one of every cell."""
    retained: dict[int, Mapping[str, Any]] = {}
    for record in records:
        episode = record["episode"]
        retained[-1 if episode == 0 else math.floor(CELLS_PER_DECADE * math.log10(episode))] = record
    return {
        name: np.array([float(retained[cell][name]) for cell in sorted(retained)], dtype=np.float64)
        for name in COLUMNS
    }


class OnlineFile(LineFile):
    """The records of a directory, held by this process alone while it is open."""

    records: dict[OnlineCell, OnlineRecord]

    def read(self) -> None:
        self.records = {record.cell: record for record in read_online(self.path)}

    def append(self, record: OnlineRecord) -> None:
        self.append_line(json.dumps(record.to_json(), allow_nan=False))
        self.records[record.cell] = record


def read_online(path: Path) -> list[OnlineRecord]:
    """All whole records of a file, the last one of every cell."""
    records: dict[OnlineCell, OnlineRecord] = {}
    for number, line in enumerate(whole_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = OnlineRecord.from_json(json.loads(line))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = line.decode("utf-8", "replace")[:200]
            raise InputError(
                f"this is not a record of a learning curve: {error}", Location(str(path), number, 1, text)
            ) from None
        records[record.cell] = record
    return list(records.values())


def _plain(values: Iterable[float]) -> list[float | int | str]:
    """Seven digits are more than a curve needs; whole numbers as such."""
    shown: list[float | int | str] = []
    for value in values:
        if not math.isfinite(value):
            shown.append(str(float(value)))
        else:
            shown.append(int(value) if value == int(value) else float(f"{value:.7g}"))
    return shown


KIND = "bench"


def claim_campaign(directory: Path) -> None:
    """Make the directory, or refuse one that holds something else, before anything is run.

    Records of earlier versions, which have no manifest, are gone on with if they are records throughout.
    """
    with explain_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        known = read_manifest(directory)
        if known is not None:
            refuse_other_kind(directory, known, KIND)
            return
        names = sorted(os.listdir(directory))
        if not names:
            Manifest(KIND).save(directory)
    if names and not {FILE_NAME, ONLINE_FILE} & set(names):
        raise InputError(
            f"{directory} holds other files than a campaign's ({', '.join(names[:5])}), and was not changed",
            hint="name a new directory",
        )
    if FILE_NAME in names:
        read_records(directory / FILE_NAME)
    if ONLINE_FILE in names:
        read_online(directory / ONLINE_FILE)
