"""A campaign: cells, limits, an engine and a directory whose records say what has been done already.

Records are appended to, so a directory is only ever shared with other campaigns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tightrope.benchmarks.cells import Cell, CellLimits
from tightrope.benchmarks.engines import Engine
from tightrope.benchmarks.online_cells import ONLINE_FILE, read_online
from tightrope.benchmarks.records import FILE_NAME, Record, RecordFile, read_records
from tightrope.errors import InputError
from tightrope.io.atomic import explain_errors
from tightrope.io.manifest import Manifest, read_manifest
from tightrope.io.output_directory import refuse_other_kind

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
            f"{directory} holds other files than a campaign's ({', '.join(names[:5])}), and is left alone",
            hint="name a new directory",
        )
    if FILE_NAME in names:
        read_records(directory / FILE_NAME)
    if ONLINE_FILE in names:
        read_online(directory / ONLINE_FILE)


Progress = Callable[[Record, int, int], None]
"""Called with every new record, how many cells are done and how many there are."""


@dataclass(frozen=True)
class Campaign:
    """What is to be run, and where its records go."""

    cells: Sequence[Cell]
    limits: CellLimits
    engine: Engine
    directory: Path

    def run(self, progress: Progress | None = None) -> list[Record]:
        """Run what is not settled yet; the records of all cells, in the order of the cells.

        An interrupted campaign goes on where it stopped. A cell that timed out or ran out of memory is run
        again under larger limits only, one that ended in an error always.
        """
        if not (self.directory / FILE_NAME).exists():
            self.engine.require_answer()  # before anything is written; a campaign may also be finished
        claim_campaign(self.directory)
        total = len(self.cells)
        with RecordFile(self.directory / FILE_NAME) as file:
            waiting = file.open_cells(self.cells, self.limits)
            done, expected = total - len(waiting), set(waiting)
            for record in self.engine.run(waiting, self.limits, str(self.directory.resolve())):
                expected.remove(record.cell)
                done += 1
                if progress is not None:  # shown first: writing may fail
                    progress(record, done, total)
                file.append(record)
            return [file.records[cell] for cell in self.cells]
