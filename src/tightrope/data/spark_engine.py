"""Spark: parts of files are spread over jobs, and partitions of data frames are read where they lie."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from typing import Any, NamedTuple

from tightrope.data.engines import EXTRAS, SPARK, Place, require, require_answer, seen_by_worker
from tightrope.data.read_plan import Part, ReadPlan, State, Work, in_threads
from tightrope.errors import CannotCertify, InputError
from tightrope.io.table.data_table import first_line
from tightrope.io.table.frames import as_row, feed, partition

PARTS_OF_JOB = 128
QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "FATAL"}


class SparkEngine(NamedTuple):
    """Reads parts on the executors of a session; two jobs run at once, whose states are in memory here."""

    session: Any

    def run(self, work: Work[State], plan: ReadPlan, parts: Sequence[Part]) -> Iterator[State]:
        sent, jobs = pickle.dumps((work, plan)), list[tuple[object, dict[int, Part]]]()
        frames = {number for number, table in enumerate(plan.tables) if table.format.groups_are_parts}
        for number, group in groupby(parts, lambda part: part.table if part.table in frames else None):
            own = list(group)
            if number is not None:
                frame = plan.tables[number].content.select(*plan.columns[number].names)
                jobs.append((frame, {part.groups.start: part for part in own if part.groups is not None}))
                continue
            for some in (own[first : first + PARTS_OF_JOB] for first in range(0, len(own), PARTS_OF_JOB)):
                jobs.append((self.session.range(0, len(some), 1, len(some)), dict(enumerate(some))))
        yield from chain.from_iterable(in_threads(2, lambda job: _collect(*job, sent), jobs))


@contextmanager
def opened(place: Place) -> Iterator[SparkEngine]:
    """The engine of the session that is active, or of one that is started."""
    sessions = require("pyspark.sql", EXTRAS[SPARK]).SparkSession
    active, address = sessions.getActiveSession(), place.address or "local[*]"
    if active is not None:
        if place.address not in (None, active.conf.get("spark.master", "")):
            message = f"`scheduler` is {place.address}, and another Spark session is active"
            raise InputError(message, hint="leave it out, or stop that session: spark.stop()")
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
    try:
        yield
    except (require("pyspark.errors").PySparkException, require("py4j.protocol").Py4JError) as error:
        if "ModuleNotFoundError" in str(error):
            hint = "its executors need the same tightrope, and the same Python, as this machine"
            raise InputError("the Spark cluster cannot run what it is sent", hint=hint) from error
        messages = re.findall(r"^\S*(?:Error|Exception): .*", str(error), re.MULTILINE)
        raise CannotCertify(f"Spark has not read the log: {[first_line(error), *messages][-1]}") from error


def _collect(frame: object, parts: Mapping[int, Part], sent: bytes) -> list[Any]:
    """What the work gives for the parts that are numbered as partitions of the frame."""

    def read(batches: Iterable[object]) -> Iterator[object]:
        number, held = partition(), list(batches)
        if number not in parts:
            return
        part, (work, plan) = parts[number], pickle.loads(sent)
        if plan.tables[part.table].format.groups_are_parts:  # the partition holds its rows
            plan = plan.holding(part.table, held)
        try:
            answer = work(plan, part)
        except InputError as error:
            answer = error
        yield as_row(0, pickle.dumps(answer))

    with _explained():
        rows = feed(frame, read).collect()
    answers = [pickle.loads(row["content"]) for row in sorted(rows, key=lambda row: row["number"])]
    if errors := [one for one in answers if isinstance(one, InputError)]:
        raise seen_by_worker(errors[0])
    return answers
