"""A campaign: cells, limits, an engine and a directory whose records say what has been done already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tightrope.errors import InputError
from tightrope.experiments.cells import Cell, CellLimits
from tightrope.experiments.engines import Engine
from tightrope.experiments.records import FILE_NAME, Record, RecordFile

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
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the directory {self.directory}: {error.strerror}") from None
        total = len(self.cells)
        with RecordFile(self.directory / FILE_NAME) as file:
            waiting = file.open_cells(self.cells, self.limits)
            done, expected = total - len(waiting), set(waiting)
            for record in self.engine.run(waiting, self.limits, str(self.directory.resolve())):
                expected.remove(record.cell)
                file.append(record)
                done += 1
                if progress is not None:
                    progress(record, done, total)
            return [file.records[cell] for cell in self.cells]
