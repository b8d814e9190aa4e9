"""Logs as events while they grow: files, directories that files are added to, and standard input.

New data are read: complete lines of text files, whole files of other formats (put there by renaming), JSON
lines of standard input. Checkpoints hold how many rows of each file were read and the monitor's state. They
are replaced in one step, so an interrupted process continues with the same evidence.
"""

from __future__ import annotations

import io
import os
import select
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from tightrope.data.columns import EPISODE, FLAGS, STEP
from tightrope.data.counts import Counts
from tightrope.data.design import ENDS as EPISODE_ENDS
from tightrope.data.design import ORDER
from tightrope.data.episode_log import LogEvents, Take, follow_events, in_time_order
from tightrope.data.read_options import LogReadOptions
from tightrope.data.read_plan import ReadPlan
from tightrope.data.reading import counts_with_rows, describe_design, plan_reading
from tightrope.data.time_order import are_in_time
from tightrope.errors import InputError, Location
from tightrope.io.stored_arrays import DAMAGE, load_arrays, save_arrays
from tightrope.io.table.data_table import DataTable, LogFile
from tightrope.io.table.files import find_files, open_table, open_tables
from tightrope.io.table.text import JsonLines
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.structure import Structure
from tightrope.monitoring.monitor import Monitor
from tightrope.monitoring.promise import PromiseWatch
from tightrope.numerics.late import arrow_json, pa
from tightrope.verdict import Assumed

STANDARD_INPUT = "-"
BLOCK_BYTES = 1 << 20
"""Of standard input, as much at once as is there, and at most this."""

MOST_KEPT = 20_000
"""Rows of standard input that are kept to be examined."""

_AS_THEY_COME = Assumed.derived(ORDER, "rows are taken as they come")
_GOING_ON = Assumed.derived(EPISODE_ENDS, "what is open goes on: rows are taken as they come")


@dataclass
class Following:
    """The part of a log that has been read.

    `read` are the rows of each file up to the current chunk, `read_as` the roles of columns, `dropped` the
    rows dropped by reason. `by_episodes`: the log must show where episodes begin. `order`, `ends`: as for
    learning.
    """

    places: tuple[str, ...]
    structure: Structure
    options: LogReadOptions
    strict: bool = False
    by_episodes: bool = False
    read: dict[str, int] = field(default_factory=dict)
    read_as: str = ""
    dropped: Counter[str] = field(default_factory=Counter)
    order: Assumed = _AS_THEY_COME
    ends: Assumed = _GOING_ON
    _rest: bytes = b""
    _bytes: dict[str, int] = field(default_factory=dict)
    _lines: list[bytes] = field(default_factory=list)
    """Of standard input, the first of them."""

    @property
    def is_stream(self) -> bool:
        """Whether it is standard input, which ends where its writer closes it."""
        return self.places == (STANDARD_INPUT,)

    def take_all(self, take: Take) -> None:
        """Hand over all events of a finished log that were not taken before, in the order of their times."""
        files = find_files(self.places, self.options.format)
        tables = tuple(open_table(file) for file in files)
        plan = self._plan(tables)
        design = describe_design(plan)
        self.order, self.ends = design.order, design.ends
        if self.order.holds and plan.is_in_time and not are_in_time(plan, not self.by_episodes):
            if self.by_episodes:
                raise InputError(
                    "episodes overlap in time, and a watch on returns needs one after the other",
                    hint="watch without --result",
                )
            done = dict(self.read)
            each = (self._events(plan, number, file.name, True) for number, file in enumerate(files))
            events = list(chain.from_iterable(each))
            read, self.read = self.read, done  # rows count as read once they are handed over
            for part in in_time_order(events):
                take(part)
            self.read = read
            return
        for file in files:
            self._take(file.name, (open_table(file),), take)

    def counts(self, model: ParametricMDP, grows: bool = False) -> Counts:
        """What was read so far, as learning has it; of a log that `grows` only what was handed over."""
        with tempfile.TemporaryDirectory() as folder:
            if self.is_stream:
                tables = _tables_in(b"\n".join(self._lines))
            else:
                files = find_files(self.places, self.options.format, growing=grows)
                known = (self._cut(file, Path(folder)) if grows else file for file in files)
                tables = tuple(open_table(file) for file in known if file is not None)
            return counts_with_rows(self._plan(tables), model)

    def _cut(self, file: LogFile, folder: Path) -> LogFile | None:
        """A copy of the lines of a text file that were read; other files as they are, None if not read."""
        if file.name not in self._bytes:
            return file if file.name in self.read else None
        part = folder / f"{len(list(folder.iterdir()))}_{Path(file.path).name}"
        with Path(file.path).open("rb") as lines:
            part.write_bytes(lines.read(self._bytes[file.name]))
        return replace(file, path=str(part))

    def take_new(self, take: Take) -> int:
        """Hand over what is new in a log that grows; how many rows that was."""
        before = sum(self.read.values())
        for file in find_files(self.places, self.options.format, growing=True):
            if file.format.is_text and file.compression is None and not file.is_remote:
                self._take_lines_of(file, take)
            elif file.name not in self.read:
                self._take(file.name, (open_table(file),), take)
        return sum(self.read.values()) - before

    def take_stream(self, take: Take, wait: float) -> bool:
        """Hand over the lines that standard input has within `wait` seconds; whether it goes on."""
        descriptor = sys.stdin.fileno()
        if not select.select([descriptor], [], [], wait)[0]:
            return True
        block = os.read(descriptor, BLOCK_BYTES)
        lines, _, self._rest = (self._rest + block).rpartition(b"\n")
        if not block:
            lines, self._rest = self._rest, b""
        if lines.strip():
            if sum(self.read.values()) <= MOST_KEPT:
                self._lines.append(lines)
            self._take(STANDARD_INPUT, _tables_in(lines), take, grows=True)
        return bool(block)

    def _take(self, name: str, tables: tuple[DataTable, ...], take: Take, grows: bool = False) -> None:
        """Hand over the events of a file, or of what has been added to one that grows."""
        for events in self._events(self._plan(tables, grows), 0, name, not grows):
            take(events)

    def _events(self, plan: ReadPlan, number: int, name: str, is_whole: bool) -> Iterator[LogEvents]:
        """The new events of a table, of which the first rows may have been read if it is whole.

        Rows count as read once they are handed over: a checkpoint may be written in between.
        """
        old = self.read.get(name, 0)
        done = old if is_whole else 0
        rows = 0
        for events in follow_events(plan, number, self.dropped, self.strict):
            rows += events.rows
            self.read[name] = old - done + rows
            if rows > done:
                yield events if rows - events.rows >= done else events.since(done + 1)
        if rows < done:
            raise InputError(
                f"{name} has {rows:,} rows, but {done:,} were read before: it was changed, not added to",
                hint="watch it from the beginning, without the checkpoint",
            )
        self.read[name] = old - done + rows

    def _take_lines_of(self, file: LogFile, take: Take) -> None:
        """The complete lines at the end of a text file that were not there before."""
        path = Path(file.path)
        first = self._bytes.get(file.name)
        if first is None:
            first = self._bytes[file.name] = self._begin(file)
        with path.open("rb") as lines:
            header = b"".join(islice(lines, self._header_lines(file)))
            lines.seek(first)
            new, end, _ = lines.read().rpartition(b"\n")
        if not end:
            return
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / path.name
            part.write_bytes(header + new + end)
            table = open_table(replace(file, path=str(part)))
            self._take(file.name, (table,), take, grows=True)
        self._bytes[file.name] = first + len(new) + len(end)

    def _begin(self, file: LogFile) -> int:
        """Where the first unread line begins: after the header and the rows read; blank lines are no rows."""
        left = self.read.get(file.name, 0)
        with Path(file.path).open("rb") as lines:
            place = sum(len(line) for line in islice(lines, self._header_lines(file)))
            while left and (line := lines.readline()):
                place += len(line)
                left -= bool(line.strip())
        return place

    def _header_lines(self, file: LogFile) -> int:
        return 0 if isinstance(file.format, JsonLines) else open_table(file).header_lines

    def _plan(self, tables: tuple[DataTable, ...], grows: bool = False) -> ReadPlan:
        plan = plan_reading(tables, self.structure, self.options)
        columns = plan.columns[0]
        if columns.is_counted:
            raise InputError(
                "a table of counts does not record the order of events, and `watch` needs it",
                hint="watch the log itself, one row per step",
            )
        if grows and columns.from_next_row:
            raise InputError(
                "a log that is followed needs the next state in every row: the last one is still open",
                hint="watch it when it is finished, without --follow",
            )
        if self.by_episodes and not {EPISODE, STEP, *FLAGS} & set(columns.roles):
            raise InputError(
                "the log does not show where episodes begin, which a watch on returns needs",
                hint="add a column episode or step, or watch without --result",
            )
        self.read_as = self.read_as or columns.read_as
        return plan


def _tables_in(lines: bytes) -> tuple[DataTable, ...]:
    try:
        return open_tables(arrow_json.read_json(io.BytesIO(lines + b"\n")))
    except pa.ArrowInvalid as error:
        raise InputError(
            f"standard input is not JSON lines: {str(error).splitlines()[0]}",
            hint='one object per line: {"state": …, "action": …, "next_state": …}',
        ) from error


FORMAT = "tightrope monitor 4"


def save_monitor(
    path: Path, monitor: Monitor, read: Mapping[str, int], promise: PromiseWatch | None = None
) -> None:
    """Write what a monitor knows, and a watch on returns; `read` are the rows seen of each file."""
    head = {"format": FORMAT, "model": monitor.model.hash(), "alpha": monitor.alpha, "read": dict(read)}
    save_arrays(path, head, {**monitor.state(), **({} if promise is None else promise.state())})


def load_monitor(path: Path, monitor: Monitor, promise: PromiseWatch | None = None) -> dict[str, int]:
    """Let a fresh monitor, and a watch on returns, go on from a file; the rows read of each file."""
    place, known = Location(str(path)), "name another file"
    try:
        head, state = load_arrays(path)
        if head["format"] != FORMAT or not head.keys() >= {"model", "alpha", "read"}:
            raise KeyError("format")
    except DAMAGE as error:
        raise InputError("this is not a checkpoint of a monitor", place, known) from error
    for name, mine in (("model", monitor.model.hash()), ("alpha", monitor.alpha)):
        if head[name] != mine:
            raise InputError(
                f"the checkpoint is of another {name}: {head[name]}, not {mine}",
                place,
                "watch with the same model, constants, domain and alpha, or name another file",
            )
    if promise is None and "returns_promise" in state:
        raise InputError("the checkpoint is of a watch on returns as well", place, "give the same --result")
    try:
        if promise is not None:
            promise.restore(state)
        monitor.restore(state)
        read = {str(file): int(rows) for file, rows in head["read"].items()}
        if any(rows < 0 for rows in read.values()):
            raise ValueError("a file of which less than nothing was read")
    except InputError as error:
        raise InputError(error.message, place, error.hint or known) from error
    except DAMAGE as error:
        raise InputError("the checkpoint is damaged: it does not fit its model", place, known) from error
    return read
