"""Single files that commands write where the user says: never over somebody else's work.

    claimed = claim_file("goal.cert", CERTIFICATE)     # refuses here, before anything is computed
    ...
    claimed.check()                                    # nothing has come there meanwhile

A file that exists is replaced only where

* it is recognisably one of the same kind that tightrope wrote (`io.written_by`) and belongs to no run
  in a directory of results, or
* it is empty, or
* the user said `--overwrite`.

Links are followed, and what they lead to is judged by its content. Devices, pipes and the standard streams
hold nothing that could be lost, and are written directly (`io.atomic`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from tightrope.errors import InputError, describe
from tightrope.io.atomic import check_target, is_stream
from tightrope.io.manifest import read_manifest
from tightrope.io.written_by import FileKind, has_mark

OTHERWISE = "name another file, or replace it with `overwrite=True`"


def path_of(given: str | PathLike[str]) -> Path:
    """The path that is given; an `InputError` for anything else."""
    if not isinstance(given, str | PathLike):
        raise InputError(f"`path` is {describe(given)}, not the name of a file or directory")
    return Path(given)


@dataclass(frozen=True)
class OutputFile:
    """A file that may be written, as far as is known."""

    path: Path
    kind: FileKind
    overwrite: bool = False

    def check(self) -> None:
        """Refuse what must not or cannot be written; asked before computing, and again before writing."""
        check_target(self.path)
        real = Path(os.path.realpath(self.path))
        if self.overwrite or is_stream(self.path) or not real.exists():
            return
        refuse_results(self.path, real)
        try:
            if real.stat().st_size == 0 or has_mark(real, self.kind):
                return
        except OSError as error:
            raise InputError(
                f"{self.path} exists and cannot be read ({error.strerror or error}), so that nobody can tell "
                "whether tightrope wrote it; it is left alone",
                hint=OTHERWISE,
            ) from error
        raise foreign(self.path, f"no {self.kind.name} that tightrope wrote")


def claim_file(path: str | Path, kind: FileKind, overwrite: bool = False) -> OutputFile:
    """Refuse a file that must not be written, before anything is computed."""
    claimed = OutputFile(Path(path), kind, overwrite)
    claimed.check()
    return claimed


def foreign(path: Path, what: str) -> InputError:
    """The refusal of a file that is somebody else's."""
    leads = f", a link to {os.path.realpath(path)}," if path.is_symlink() else ""
    return InputError(f"{path}{leads} exists and is {what}; it is left alone", hint=OTHERWISE)


def refuse_results(path: Path, real: Path) -> None:
    """Refuse a file that is listed in the manifest of its directory: it belongs to a run."""
    known = read_manifest(real.parent)
    if known is not None and real.name in known.names:
        raise foreign(path, f"part of what 'tightrope {known.kind}' wrote to {real.parent}")


def refuse_same(paths: Iterable[Path | None]) -> None:
    """Refuse one name for two outputs, of which the second would replace the first."""
    seen: set[str] = set()
    for path in paths:
        if path is not None and not is_stream(path):
            real = os.path.realpath(path)
            if real in seen:
                raise InputError(f"{path} is named for two outputs", hint="name two files")
            seen.add(real)
