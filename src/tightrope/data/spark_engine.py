"""Spark: a session, and the parts of a log on its executors.

The parts of files are spread over jobs; the partitions of a data frame are read where they lie.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import groupby
from typing import Any

from tightrope.data.engines import EXTRAS, SPARK, Place, require, require_answer, seen_by_worker
from tightrope.data.read_plan import Part, ReadPlan, State, Work, in_threads
from tightrope.errors import CannotCertify, InputError
from tightrope.io.table.arrow import held_table
from tightrope.io.table.data_table import first_line
from tightrope.io.table.spark import as_row, feed, partition

PARTS_OF_JOB = 128
"""Two jobs run at once, and the states of their parts are in memory here."""

QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "FATAL"}


@dataclass(frozen=True)
class SparkEngine:
    """Reads parts on the executors of a session."""

    session: Any

    def run(self, work: Work[State], plan: ReadPlan, parts: Sequence[Part]) -> Iterator[State]:
        sent = pickle.dumps((work, plan))
        for number, group in groupby(parts, lambda part: part.table):
            own, table = list(group), plan.tables[number]
            if table.format.groups_are_parts:
                held = {part.groups.start: part for part in own if part.groups is not None}
                yield from _collect(table.content.select(*plan.columns[number].names), sent, held, True)
                continue
            jobs = [own[first : first + PARTS_OF_JOB] for first in range(0, len(own), PARTS_OF_JOB)]
            for states in in_threads(2, partial(self._job, sent), jobs):
                yield from states

    def _job(self, sent: bytes, parts: Sequence[Part]) -> list[Any]:
        numbers = self.session.range(0, len(parts), 1, len(parts))
        return _collect(numbers, sent, dict(enumerate(parts)), False)


@contextmanager
def opened(place: Place) -> Iterator[SparkEngine]:
    """The engine of the session that is active, or of one that is started."""
    sessions = require("pyspark.sql", EXTRAS[SPARK]).SparkSession
    active, address = sessions.getActiveSession(), place.address or "local[*]"
    if active is not None:
        if place.address is not None and active.conf.get("spark.master", "") != place.address:
            raise InputError(
                f"`scheduler` is {place.address}, and another Spark session is active",
                hint="leave it out, or stop that session: spark.stop()",
            )
        yield SparkEngine(active)
        return
    if address.startswith("spark://"):
        require_answer(address, "Spark master", "'sbin/start-master.sh'", greets=False)
    if address.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sessions.builder.appName("tightrope").config(map=QUIET)
    with _explained():
        session = (builder.remote if address.startswith("sc://") else builder.master)(address).getOrCreate()
    try:
        yield SparkEngine(session)
    finally:
        session.stop()


@contextmanager
def _explained() -> Iterator[None]:
    failed = (require("pyspark.errors").PySparkException, require("py4j.protocol").Py4JError)
    try:
        yield
    except failed as error:
        if "ModuleNotFoundError" in str(error):
            hint = "its executors need the same tightrope, and the same Python, as this machine"
            raise InputError("the Spark cluster cannot run what it is sent", hint=hint) from error
        messages = re.findall(r"^\S*(?:Error|Exception): .*", str(error), re.MULTILINE)
        raise CannotCertify(f"Spark has not read the log: {[first_line(error), *messages][-1]}") from error


def _collect(frame: Any, sent: bytes, parts: Mapping[int, Part], is_data: bool) -> list[Any]:
    """What the work gives for the parts that are numbered as partitions; `is_data`: these hold the rows."""

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        number, held = partition(), list(batches)
        if number in parts:
            yield as_row(0, _state(sent, parts[number], held if is_data else None))

    with _explained():
        rows = feed(frame, read).collect()
    answers = [pickle.loads(row["content"]) for row in sorted(rows, key=lambda row: row["number"])]
    for _, error in answers:
        if error is not None:
            raise seen_by_worker(error)
    return [state for state, _ in answers]


def _state(sent: bytes, part: Part, batches: Iterable[Any] | None = None) -> bytes:
    """What the work gives for a part, or the error that it meets."""
    try:
        work, plan = _unpacked(sent)
        if batches is not None:
            tables = list(plan.tables)
            tables[part.table] = held_table(tables[part.table], batches)
            plan = replace(plan, tables=tables)
        return pickle.dumps((work(plan, part), None))
    except InputError as error:
        return pickle.dumps((None, error))


@lru_cache(maxsize=2)
def _unpacked(sent: bytes) -> Any:
    return pickle.loads(sent)
