"""PRISM's explicit files as a command's output: several files of one base name, and a record of them.

PRISM reads no comment at the beginning of these files, so there is no place for a mark in them. A record
beside them, `m.tightrope.json`, says which files tightrope wrote, with their SHA-256:

    {"format": "tightrope explicit files", "version": 1, "files": {"m.tra": "9f2c…", "m.lab": "77ab…"}}

Files that are there are replaced only where the record knows their content, where they are empty, or where
the user said `--overwrite`. Files that the record knows and that the new model does not have are removed, as
they would be read as parts of it. Foreign ones of that kind are refused, also with `--overwrite`, which
replaces files and removes none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tightrope.errors import InputError
from tightrope.io.atomic import atomic_write, check_target
from tightrope.io.explicit.read import explicit_base, reward_files
from tightrope.io.explicit.write import write_explicit
from tightrope.io.manifest import file_digest
from tightrope.io.output_file import OTHERWISE, foreign, refuse_results
from tightrope.model.continuous import CTMC, ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP

FORMAT = "tightrope explicit files"
VERSION = 1
RECORD = ".tightrope.json"


@dataclass(frozen=True)
class ExplicitOutput:
    """The files of a base name, and whether foreign ones may be replaced."""

    base: Path
    overwrite: bool = False

    @property
    def record(self) -> Path:
        """The file that says which others are ours."""
        return self.base.with_name(self.base.name + RECORD)

    def check(self, targets: Iterable[Path] = ()) -> None:
        """Refuse if one of the files must not or cannot be written."""
        main = [self.base.with_name(self.base.name + suffix) for suffix in (".tra", ".lab", ".sta")]
        rewards = [file for files in reward_files(self.base).values() for file in files.values()]
        known = self._read_record()
        for file in dict.fromkeys((*main, *rewards, *targets)):
            check_target(file)
            if self.overwrite or not os.path.lexists(file):
                continue
            refuse_results(file, Path(os.path.realpath(file)))
            if not _is_known(file, known):
                raise foreign(file, "no file that tightrope is known to have written")

    def write(self, model: MDP | IntervalMDP | ParametricMDP | ParametricCTMC | CTMC) -> list[Path]:
        """Write the model; all files that were written, the record last."""
        known = self._read_record()
        own = {self.base.with_name(name) for name in known if _is_known(self.base.with_name(name), known)}
        written = write_explicit(model, self.base, check=self.check, stale=own)
        content = {
            "format": FORMAT,
            "version": VERSION,
            "files": {file.name: file_digest(file) for file in written},
        }
        with atomic_write(self.record) as file:
            file.write(json.dumps(content, indent=1) + "\n")
        return [*written, self.record]

    def _read_record(self) -> dict[str, str]:
        """{name: digest} of the files that were written before."""
        check_target(self.record)
        if not os.path.lexists(self.record):
            return {}
        try:
            content = json.loads(self.record.read_text(encoding="utf-8"))
            if content["format"] == FORMAT and content["version"] == VERSION:
                return {
                    str(name): str(digest)
                    for name, digest in content["files"].items()
                    if str(name).startswith(self.base.name) and "/" not in str(name)
                }
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            pass
        if self.overwrite:
            return {}
        raise foreign(self.record, "no record of explicit files that tightrope wrote")


def claim_explicit(path: str | Path, overwrite: bool = False) -> ExplicitOutput:
    """Refuse files that must not be written, before anything is computed."""
    claimed = ExplicitOutput(explicit_base(path), overwrite)
    claimed.check()
    return claimed


def _is_known(file: Path, known: dict[str, str]) -> bool:
    try:
        return file.stat().st_size == 0 or (file.name in known and file_digest(file) == known[file.name])
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"{file} exists and cannot be read ({error.strerror or error}); it is left alone", hint=OTHERWISE
        ) from error
