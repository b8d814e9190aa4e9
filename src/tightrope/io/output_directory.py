"""Directories that commands write results into: theirs alone, and never anybody else's files.

    claimed = claim("results", "learn")          # refuses here, before anything is computed
    ...
    with claimed.filling() as folder:            # a hidden directory to fill
        (folder / "result.json").write_text(...)

A directory is written to if it does not exist, is empty, or holds an earlier run of the same kind in which
every file is as tightrope left it (`io.manifest`). Anything else is refused with the files named:
nothing foreign, and nothing that a user has changed, is ever replaced or removed.

A new directory appears whole, by one rename. In one that exists the files take their places one by one: the
manifest first names old and new ones, then files are moved, the manifest last. `first_gone` is removed
before and written after all others, so that a process killed in between leaves no result that mixes two
runs. A lock on the directory keeps two runs from doing so at the same time, and a directory that has changed
since it was claimed is left alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from tightrope.errors import InputError
from tightrope.io.atomic import explain_errors, sync
from tightrope.io.manifest import MANIFEST, Manifest, entries, file_digest, read_manifest

PART = re.compile(r"\.tightrope-[0-9a-f]{16}\.part")
"""Hidden directories inside, in which files wait for their place."""

MOST_NAMED = 5
OTHERWISE = "name another directory, or move or delete them"


@dataclass(frozen=True)
class OutputDirectory:
    """A directory that may be written to, and what was known of it when it was claimed."""

    path: Path
    kind: str
    known: Manifest | None

    @contextmanager
    def filling(self, first_gone: str | None = None, live: Sequence[str] = ()) -> Iterator[Path]:
        """A folder to fill, whose files take their places when the block ends without an error.

        Files of an earlier run that are not written again are removed; `live` ones stay as they are.
        """
        token = secrets.token_hex(8)
        inside = self.path.is_dir()
        part = self.path / f".tightrope-{token}.part" if inside else _beside(self.path, token)
        with explain_errors(self.path), _room(part):
            yield part
            files = {name: file_digest(part / name) for name in entries(part)}
            for name in files:
                sync(part / name)
            new = Manifest(self.kind, {**files, **dict.fromkeys(live)})
            if inside:
                self._replace(part, new, first_gone)
            else:
                new.save(part)
                self._appear(part)

    def _appear(self, part: Path) -> None:
        try:
            os.rename(part, self.path)
        except OSError:
            if self.path.exists():
                raise self._refuse_changed() from None
            raise
        sync(self.path.parent)

    def _replace(self, part: Path, new: Manifest, first_gone: str | None) -> None:
        with _lock(self.path):
            _remove_abandoned(self.path)
            if read_manifest(self.path) != self.known:
                raise self._refuse_changed()
            _refuse_strangers(self.path, self.known or Manifest(self.kind))
            old = _merge(self.known) if self.known is not None else {}
            replace(new, replacing=old).save(self.path)
            order = sorted(entries(part), key=lambda name: name == first_gone)
            stale = [name for name in old if name not in new.files]
            for name in [*([first_gone] if first_gone in old else []), *stale]:
                (self.path / name).unlink(missing_ok=True)
            for name in order:
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(part / name, self.path / name)
            for name in stale:
                _remove_empty(self.path, name)
            new.save(self.path)
            sync(self.path)

    def _refuse_changed(self) -> InputError:
        return InputError(
            f"{self.path} has changed since this run began, and is left alone",
            hint="another run may have written to it; name another directory",
        )


def claim(path: str | Path, kind: str) -> OutputDirectory:
    """Refuse a place that this kind of run must not write to, before anything is computed."""
    real = Path(os.path.realpath(path))
    _refuse_place(path, real)
    if not real.exists():
        return OutputDirectory(real, kind, None)
    with explain_errors(real):
        known = read_manifest(real)
        if known is None:
            _refuse_unknown(real)
        else:
            refuse_other_kind(real, known, kind)
            _refuse_strangers(real, known)
    return OutputDirectory(real, kind, known)


@contextmanager
def add_file(path: str | Path, kind: str | None = None, *, overwrite: bool = False) -> Iterator[Path]:
    """A path to write one more file to, beside a run's own; it takes its place when the block ends.

    Where the directory has a manifest the file is added to it; where it has none, `kind` begins one. A file
    that is there already is replaced only if an earlier command added it and nobody has changed it, or if the
    user wants that (`overwrite`); never one of the run's own.
    """
    folder, name = Path(os.path.realpath(Path(path).parent)), Path(path).name
    check_added(path, overwrite)
    with explain_errors(path):
        part = folder / f".tightrope-{secrets.token_hex(8)}.part"
        with _room(part):
            yield part / name
            digest = file_digest(part / name)
            sync(part / name)
            with _lock(folder):
                now = read_manifest(folder) or (None if kind is None else Manifest(kind))
                if now is not None:
                    had = {name: now.added[name]} if name in now.added else {}
                    grown = replace(now, added={**now.added, name: digest})
                    replace(grown, replacing={**now.replacing, **had}).save(folder)
                    os.replace(part / name, folder / name)
                    grown.save(folder)
                else:
                    os.replace(part / name, folder / name)


def check_added(path: str | Path, overwrite: bool = False) -> None:
    """Refuse a file that must not be added to a directory, before anything is computed."""
    folder, name = Path(os.path.realpath(Path(path).parent)), Path(path).name
    with explain_errors(path):
        known = read_manifest(folder)
        if not os.path.lexists(folder / name):
            return
        if known is not None and (name in known.files or name == MANIFEST):
            raise InputError(
                f"{path} is part of what 'tightrope {known.kind}' wrote, and is left alone",
                hint="name another file",
            )
        ours = known is not None and name in known.added and known.owns(folder, name)
        if not ours and not overwrite:
            raise InputError(
                f"{path} was not written by tightrope, or was changed since, and is left alone",
                hint="name another file, or replace it with `overwrite=True`",
            )


def refuse_other_kind(path: Path, known: Manifest, kind: str) -> None:
    """Different kinds of runs never write over each other."""
    if known.kind != kind:
        raise InputError(
            f"{path} holds what 'tightrope {known.kind}' wrote, and 'tightrope {kind}' "
            "does not write over it",
            hint="name another directory",
        )


def _refuse_place(path: str | Path, real: Path) -> None:
    if real == Path.cwd() or real in Path.cwd().parents:
        raise InputError(
            f"cannot write results to {path}: it is where the program runs", hint="name a new directory"
        )
    if real == Path(os.path.realpath(os.path.expanduser("~"))):
        raise InputError(f"cannot write results to {path}: it is your home", hint="name a new directory")
    if not real.exists() and not real.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no directory {real.parent}")
    if real.exists() and not real.is_dir():
        raise InputError(f"cannot write {path}: it is a file, but results go into a directory")
    if not os.access(real if real.exists() else real.parent, os.W_OK | os.X_OK):
        raise InputError(f"cannot write {path}: no permission", hint="name another directory")


def _refuse_unknown(real: Path) -> None:
    """Without a manifest nothing in a directory is known to be ours."""
    names = [name for name in sorted(os.listdir(real)) if not PART.fullmatch(name)]
    if names:
        raise InputError(
            f"{real} holds files that tightrope does not know to be its own: {_list_names(names)}; "
            "it is left alone",
            hint=f"{OTHERWISE}. Results of versions before manifests are such files, too",
        )


def _refuse_strangers(real: Path, known: Manifest) -> None:
    foreign, changed = known.strangers(real)
    foreign = [name for name in foreign if not PART.fullmatch(name.split("/")[0])]
    said = []
    if foreign:
        said.append(f"files that tightrope did not write: {_list_names(foreign)}")
    if changed:
        said.append(f"files that were changed since: {_list_names(changed)}")
    if said:
        raise InputError(f"{real} holds {' and '.join(said)}; it is left alone", hint=OTHERWISE)


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _merge(known: Manifest) -> dict[str, str | None]:
    """The files that may be replaced; those that a run goes on changing stay."""
    known_files = {**known.replacing, **known.files, **known.added}
    return {name: digest for name, digest in known_files.items() if digest is not None}


def _remove_abandoned(folder: Path) -> None:
    """Hidden directories of processes that were killed; those of living ones are locked."""
    for entry in list(os.scandir(folder)):
        if PART.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError), _lock(Path(entry.path), fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(entry.path, ignore_errors=True)


def _remove_empty(folder: Path, name: str) -> None:
    for parent in Path(name).parents[:-1]:
        with contextlib.suppress(OSError):
            (folder / parent).rmdir()


def _beside(path: Path, token: str) -> Path:
    return path.with_name(f".{path.name[:100]}.{token}.part")


@contextmanager
def _room(part: Path) -> Iterator[None]:
    """A new hidden directory, locked as long as its process lives; it is gone at the end of the block."""
    with ExitStack() as held:
        # nobody takes it for an abandoned one before it is locked
        with _lock(part.parent) if PART.fullmatch(part.name) else nullcontext():
            held.callback(shutil.rmtree, part, ignore_errors=True)
            part.mkdir()
            held.enter_context(_lock(part))
        yield


@contextmanager
def _lock(folder: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)
