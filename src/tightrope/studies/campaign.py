"""A campaign: cells, limits, an engine and a directory whose records say what has been done already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tightrope.studies.campaign_directory import claim_campaign
from tightrope.studies.cells import Cell, CellLimits
from tightrope.studies.engines import Engine
from tightrope.studies.records import FILE_NAME, Record, RecordFile

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
