"""The directory of an online run: it survives whatever happens to the process, at any moment.

    records.jsonl     one JSON object an update, appended as they happen
    checkpoint.npz    the learner as it was after the last update

An update is first appended to the records and synced, then the checkpoint takes the place of the one before
in one step. The checkpoint says how many bytes of the records belong to it; what lies behind them is cut off
when a run goes on, and comes out again the same. So a process that is killed loses at most the time since
its last update. A directory belongs to one run: the checkpoint carries what was asked, and another question
is refused with the difference named. A run that fails before it has seen an episode leaves nothing behind.
The manifest says that the directory is an online run's, so that no
other command writes over it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy.typing as npt

from tightrope.atomic import explain_errors
from tightrope.errors import InputError
from tightrope.io.answers import OnlineRecord
from tightrope.io.coding import from_text, to_plain
from tightrope.io.output import MANIFEST, Manifest, OutputDirectory, claim
from tightrope.io.stored_arrays import DAMAGE, load_arrays, save_arrays
from tightrope.learning.online.learner import OnlineLearner

RECORDS = "records.jsonl"
CHECKPOINT = "checkpoint.npz"
FORMAT = "tightrope online 3"
LIVE = (RECORDS, CHECKPOINT)
"""The files that a run goes on changing."""

KIND = "online"
"""The command that such a directory belongs to."""

FIRST = b'{"verdict":'
"""How the records of a run begin."""


class Journal:
    """A run's directory, held by this process alone while it is open.

    `question` is everything that the records depend on, by the names under which users know it. After
    entering, `records` are those of an earlier run, and `elapsed` the seconds it took.
    """

    def __init__(self, directory: Path, question: Mapping[str, object]):
        self.directory = directory
        self.question = {name: to_plain(value) for name, value in question.items()}
        self.records: list[dict[str, Any]] = []
        self.elapsed = 0.0
        self._state: dict[str, npt.NDArray[Any]] | None = None
        self._appended = 0
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        ours = [*(self.directory / name for name in (*LIVE, MANIFEST)), self.directory]
        self._made = [path for path in ours if not path.exists()]
        try:
            claimed = claim_run(self.directory)
            self.directory.mkdir(exist_ok=True)
            if claimed.known is None:
                Manifest(KIND, dict.fromkeys(LIVE)).save(self.directory)
            path = self.directory / RECORDS
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise InputError(f"cannot write {self.directory}: {error.strerror or error}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._open()
        except BlockingIOError:
            os.close(self._descriptor)
            raise InputError(
                f"another run is writing to {self.directory}", hint="wait for it, or name another directory"
            ) from None
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._state is None and self._appended <= 1:
            self._remove_start()
        os.close(self._descriptor)

    def _remove_start(self) -> None:
        """Undo a start: the first record knows of no episode."""
        for path in self._made:
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()

    def resume(self, learner: OnlineLearner) -> bool:
        """Bring the learner to where the earlier run was; whether there was one."""
        if self._state is None:
            return False
        try:
            learner.restore(self._state)
        except DAMAGE as error:
            raise InputError(
                f"{self.directory / CHECKPOINT} is damaged: {error}", hint="name a new directory"
            ) from error
        return True

    def append(self, record: Mapping[str, object]) -> None:
        """Add a record; it is on the disk when this returns."""
        self._appended += 1
        data = (json.dumps(to_plain(dict(record)), allow_nan=False) + "\n").encode()
        with explain_errors(self.directory / RECORDS):
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)

    def checkpoint(self, learner: OnlineLearner, elapsed: float) -> None:
        """The learner as it is now, with all records so far."""
        about = {
            "format": FORMAT,
            "question": self.question,
            "bytes": os.fstat(self._descriptor).st_size,
            "elapsed": elapsed,
        }
        save_arrays(self.directory / CHECKPOINT, about, learner.state())

    def _open(self) -> None:
        """Read the checkpoint, where there is one, and cut off the records that it does not know."""
        for torn in self.directory.glob(f".{CHECKPOINT}.*.part"):  # of a process that was killed
            torn.unlink(missing_ok=True)
        path = self.directory / CHECKPOINT
        size = os.fstat(self._descriptor).st_size
        if not path.is_file():
            begun = os.pread(self._descriptor, len(FIRST), 0)
            if not FIRST.startswith(begun):  # a campaign's records bear the same name
                raise InputError(
                    f"{self.directory / RECORDS} holds other records than a run's, and is left alone",
                    hint="name a new directory",
                )
            os.ftruncate(self._descriptor, 0)
            return
        about, state = _read(path)
        self._refuse_another(about["question"])
        if about["bytes"] > size:
            raise InputError(
                f"{self.directory / RECORDS} is shorter than its checkpoint says",
                hint="a file was changed by hand; name a new directory",
            )
        os.ftruncate(self._descriptor, about["bytes"])
        try:
            lines = (self.directory / RECORDS).read_text(encoding="utf-8").splitlines()
            self.records = [to_plain(from_text(line, OnlineRecord)) for line in lines]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{self.directory / RECORDS} holds other records: {error}") from error
        self.elapsed, self._state = about["elapsed"], state

    def _refuse_another(self, earlier: Mapping[str, object]) -> None:
        for name in dict.fromkeys((*self.question, *earlier)):
            asked, had = self.question.get(name), earlier.get(name)
            if asked != had:
                raise InputError(
                    f"{self.directory} holds another run: its {name} is {_show(had)}, not {_show(asked)}",
                    hint="name a new directory, or run the same command to go on",
                )


def claim_run(directory: Path) -> OutputDirectory:
    """Refuse a place that cannot hold a run, before anything is computed."""
    return claim(directory, KIND)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    try:
        about, state = load_arrays(path)
        if about["format"] != FORMAT:
            raise ValueError(f"its format is {about['format']}")
        if type(about["bytes"]) is not int or about["bytes"] < 0 or not isinstance(about["question"], dict):
            raise ValueError("it does not say what it belongs to")
        about["elapsed"] = float(about["elapsed"])
    except DAMAGE as error:
        raise InputError(
            f"{path} is no checkpoint of this program: {error}", hint="name a new directory"
        ) from None
    return about, state


def _show(value: object) -> str:
    return "not given" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
