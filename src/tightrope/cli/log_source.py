"""From `--data` and the options beside it to counts: the one way in which commands read logs.

What the user says about a log is checked before a model is built for it. How its columns were read is said
before anything is made of them.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import typer

from tightrope.cli.flags import as_flags
from tightrope.cli.progress import reading_progress
from tightrope.data.read_options import ReadOptions
from tightrope.data.state_form import StateForm, StateNames
from tightrope.errors import InputError, shown

if TYPE_CHECKING:
    from tightrope.data.reading import Model, Reading
    from tightrope.io.table.files import DataFile

MINARI = "minari:"

SHOWN_FILES = 3
WIDTH = 80


@dataclass(frozen=True)
class LogRequest:
    """The places that `--data` names, in their order, and what is said about them."""

    places: tuple[str, ...]
    options: ReadOptions

    @property
    def minari(self) -> str | None:
        """The NAME of `--data minari:NAME`, or None for files."""
        if not any(place.startswith(MINARI) for place in self.places):
            return None
        if len(self.places) > 1:
            raise InputError("a Minari dataset stands alone: give --data once")
        if self.options.skip_invalid:
            raise InputError("--skip-invalid goes with data files, not with Minari datasets")
        return self.places[0].removeprefix(MINARI)

    def files(self) -> tuple[DataFile, ...]:
        """Every file that is meant; what is no data file is refused before a model is built for it."""
        from tightrope.io.table.files import find_files
        from tightrope.io.table.opening import open_table

        self.options.check()
        if self.minari is not None:
            if self.options.recent is not None:
                raise InputError("`since` and `window` go with data files, not with Minari datasets")
            return ()
        found = find_files(self.places, self.options.format)
        for file in found:
            open_table(file)
        return found

    def read(self, model: Model, files: tuple[DataFile, ...]) -> Reading:
        """The counts, with a sign of life while they are read."""
        from tightrope.data.reading import Reading, read_files

        if self.minari is not None:
            from tightrope.data.environments import count_minari, load_minari

            names = self.options.state_names
            by_index = StateForm.INDEX if names is StateNames.INDEX else None
            counts = count_minari(load_minari(self.minari), model, states=by_index)
            return Reading(counts, counts.steps, {}, None)
        with reading_progress() as progress:
            return read_files(files, model, self.options, progress=progress)


def about_log(log: LogRequest, files: tuple[DataFile, ...], reading: Reading) -> dict[str, object]:
    """What a result says about its data: files with digests, how they were read, what was dropped."""
    known = ("source", "seed", "policy", "cap", "at", "property")
    digests = [_digest(file) for file in files]
    whole = sha256(reading.counts.transition.tobytes()) if not files else sha256("".join(digests).encode())
    return {
        "file": ", ".join(log.places),
        "sha256": digests[0] if len(digests) == 1 else whole.hexdigest(),
        "files": [{"file": file.name, "sha256": d} for file, d in zip(files, digests, strict=True)],
        **read_facts(reading),
        "sampled": {key: value for key, value in (reading.metadata or {}).items() if key in known},
    }


def read_facts(reading: Reading) -> dict[str, object]:
    """How a log was read, for JSON."""
    return {
        "rows": reading.rows,
        "read_as": list(reading.read_as),
        "notes": list(reading.notes),
        "dropped": dict(reading.dropped),
        "censored": list(reading.counts.design.censored),
        **({} if reading.kept is None else {"kept": reading.kept.to_json()}),
    }


def print_reading(reading: Reading) -> None:
    """How a log was read, before any result: files, columns, and what else there is to know."""
    if len(reading.files) > 1:
        shown = ", ".join(reading.files[:SHOWN_FILES])
        more = f" … {reading.files[-1]}" if len(reading.files) > SHOWN_FILES else ""
        _print_line(f"data: {len(reading.files)} files in this order: {shown}{more}")
    for line in reading.read_as:
        _print_line(f"read as: {line}")
    for line in reading.notes:
        _print_line(f"note: {as_flags(line)}")
    for line in reading.counts.design.censored:
        _print_line(f"missing: {line}")


def _print_line(line: str) -> None:
    typer.echo(textwrap.fill(shown(line), WIDTH, subsequent_indent="  ", break_on_hyphens=False))


def _digest(file: DataFile) -> str:
    digest = sha256()
    with file.open() as raw:
        while block := raw.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
