"""Output files and directories that never replace foreign or changed files.

`tightrope.atomic` writes each file; this module decides whether it may. A **directory** of results has a
manifest of the files that tightrope wrote there, with their SHA-256:

    {"format": "tightrope manifest", "version": 1, "kind": "learn", "files": {"result.json": "9f2c…"},
     "added": {"report.html": "01fe…"}, "replacing": {}}

`kind` is the command; `files` are its files (null: still changing), `added` those of later commands,
`replacing` the previous ones during a replacement. `claim` allows a directory that is missing, empty, or
holds an unchanged run of the same kind, and refuses others before anything is computed. A new directory
appears by one rename. In an existing one the manifest first names old and new files, then files move;
`first_gone` is removed first and written last. So a killed process leaves no mixture of two runs. A lock
excludes concurrent runs, and a directory that changed since `claim` is refused.

A **single file** is replaced if it has the mark of its kind (`FileKind`) and belongs to no directory of
results, if it is empty, or with `--overwrite`. Links are followed. Devices, pipes and streams are written
directly. For PRISM's explicit files see `io.explicit`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tightrope.atomic import atomic_write, check_target, explain_errors, is_stream, sync
from tightrope.errors import InputError, Location
from tightrope.io.coding import from_text, to_plain
from tightrope.model.policy_file import POLICY_FORMATS
from tightrope.numerics.late import pa, pq
from tightrope.numerics.machine import lock, open_folder

MANIFEST = "tightrope-manifest.json"
MANIFEST_FORMAT = "tightrope manifest"
MANIFEST_VERSION = 1

TORN = re.compile(r"(.*/)?\.([^/]+)\.[0-9a-f]{16}\.part")
"""The names under which files are written before they take their place."""

Digests = dict[str, str | None]


class Manifest(msgspec.Struct, frozen=True):
    """Which files of a directory are tightrope's, with their SHA-256; names are relative, with slashes."""

    kind: str
    files: Digests = {}
    added: Digests = {}
    replacing: Digests = {}
    format: str = MANIFEST_FORMAT
    version: int = MANIFEST_VERSION

    @property
    def names(self) -> set[str]:
        """Every name that may be ours."""
        return {*self.files, *self.added, *self.replacing}

    def owns(self, folder: Path, name: str) -> bool:
        """Whether the file of this name is as tightrope left it."""
        known = [digests[name] for digests in (self.files, self.added, self.replacing) if name in digests]
        if not known or not _is_plain(folder, name):
            return False
        return None in known or file_digest(folder / name) in known

    def strangers(self, folder: Path) -> tuple[list[str], list[str]]:
        """What lies in the folder and is not ours: (foreign files, files of ours that were changed)."""
        foreign: list[str] = []
        changed: list[str] = []
        for name in entries(folder):
            if name == MANIFEST or self._is_torn(name) or self.owns(folder, name):
                continue
            (changed if name in self.names else foreign).append(name)
        return sorted(foreign), sorted(changed)

    def _is_torn(self, name: str) -> bool:
        """Whether it is what a process left that was killed while it wrote one of our files."""
        torn = TORN.fullmatch(name)
        return torn is not None and f"{torn[1] or ''}{torn[2]}" in {MANIFEST, *self.names}

    def save(self, folder: Path) -> None:
        with atomic_write(folder / MANIFEST) as file:
            file.write(json.dumps(to_plain(self), indent=1) + "\n")


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest; None where there is none."""
    path = folder / MANIFEST
    if not _is_plain(folder, MANIFEST):
        return None
    try:
        known = from_text(path.read_bytes(), Manifest)
        if (known.format, known.version) != (MANIFEST_FORMAT, MANIFEST_VERSION):
            raise ValueError(f"version {known.version} of '{known.format}'")
        for name in known.names:
            if os.path.isabs(name) or ".." in name.split("/"):
                raise ValueError(f"an entry {name!r}")
        return known
    except (OSError, ValueError) as error:
        raise InputError(
            f"this is not a manifest that says which files are tightrope's: {error}",
            Location(str(path)),
            hint="name another directory",
        ) from None


def entries(folder: Path, inside: str = "") -> Iterator[str]:
    """Everything below the folder but directories that hold something; links are not followed."""
    with os.scandir(folder / inside) as listing:
        for entry in sorted(listing, key=lambda entry: entry.name):
            name = f"{inside}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                below = list(entries(folder, f"{name}/"))
                yield from below or [f"{name}/"]
            else:
                yield name


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        import hashlib

        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_plain(folder: Path, name: str) -> bool:
    """Whether the name is a regular file that no link leads to."""
    path = os.path.realpath(folder / name)
    return os.path.isfile(path) and path == os.path.join(os.path.realpath(folder), *name.split("/"))


PART = re.compile(r"\.tightrope-[0-9a-f]{16}\.part")
"""Hidden directories inside, in which files wait for their place."""

MOST_NAMED = 5


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
        token = os.urandom(8).hex()
        inside = self.path.is_dir()
        name = f".tightrope-{token}.part"
        part = self.path / name if inside else self.path.with_name(f".{self.path.name[:100]}.{token}.part")
        with explain_errors(self.path), _room(part):
            yield part
            files = {name: file_digest(part / name) for name in entries(part)}
            for name in files:
                sync(part / name)
            new = Manifest(self.kind, {**files, **dict.fromkeys(live)})
            if inside:
                self._replace(part, new, first_gone)
                return
            new.save(part)
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
            known = self.known or Manifest(self.kind)
            _refuse_strangers(self.path, known)
            every = {**known.replacing, **known.files, **known.added}
            old = {name: digest for name, digest in every.items() if digest is not None}  # the others stay
            replace(new, replacing=old).save(self.path)
            order = sorted(entries(part), key=lambda name: name == first_gone)
            stale = [name for name in old if name not in new.files]
            for name in [*([first_gone] if first_gone in old else []), *stale]:
                (self.path / name).unlink(missing_ok=True)
            for name in order:
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(part / name, self.path / name)
            for parent in (parent for name in stale for parent in Path(name).parents[:-1]):
                with contextlib.suppress(OSError):  # not empty
                    (self.path / parent).rmdir()
            new.save(self.path)
            sync(self.path)

    def _refuse_changed(self) -> InputError:
        hint = "another run may have written to it; name another directory"
        return InputError(f"{self.path} has changed since this run began, and was not overwritten", hint=hint)


def claim(path: str | Path, kind: str) -> OutputDirectory:
    """Refuse a place that this kind of run must not write to, before anything is computed."""
    real = Path(os.path.realpath(path))
    _refuse_place(path, real)
    if not real.exists():
        return OutputDirectory(real, kind, None)
    with explain_errors(real):
        known = read_manifest(real)
        refuse_other_kind(real, known or Manifest(kind), kind)
        _refuse_strangers(real, known or Manifest(kind))
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
        part = folder / f".tightrope-{os.urandom(8).hex()}.part"
        with _room(part):
            yield part / name
            digest = file_digest(part / name)
            sync(part / name)
            with _lock(folder):
                now = read_manifest(folder) or (None if kind is None else Manifest(kind))
                grown = None if now is None else replace(now, added={**now.added, name: digest})
                if now is not None and grown is not None:
                    had = {name: now.added[name]} if name in now.added else {}
                    replace(grown, replacing={**now.replacing, **had}).save(folder)
                os.replace(part / name, folder / name)
                if grown is not None:
                    grown.save(folder)


def check_added(path: str | Path, overwrite: bool = False) -> None:
    """Refuse a file that must not be added to a directory, before anything is computed."""
    folder, name = Path(os.path.realpath(Path(path).parent)), Path(path).name
    with explain_errors(path):
        known = read_manifest(folder)
        if not os.path.lexists(folder / name):
            return
        if known is not None and (name in known.files or name == MANIFEST):
            raise InputError(
                f"{path} is part of what 'tightrope {known.kind}' wrote, and was not overwritten",
                hint="name another file",
            )
        ours = known is not None and name in known.added and known.owns(folder, name)
        if not ours and not overwrite:
            raise InputError(
                f"{path} was not written by tightrope, or was edited, and was not overwritten",
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
    new = "name a new directory"
    for wrong, why, hint in (
        (real in (Path.cwd(), *Path.cwd().parents), "it is where the program runs", new),
        (real == Path(os.path.realpath(os.path.expanduser("~"))), "it is your home", new),
        (real.exists() and not real.is_dir(), "it is a file, but results go into a directory", None),
        (not real.exists() and not real.parent.is_dir(), f"there is no directory {real.parent}", None),
        (not os.access(real if real.exists() else real.parent, os.W_OK | os.X_OK), "no permission", new),
    ):
        if wrong:
            raise InputError(f"cannot write results to {path}: {why}", hint=hint)


def _refuse_strangers(real: Path, known: Manifest) -> None:
    foreign, changed = known.strangers(real)
    foreign = [name for name in foreign if not PART.fullmatch(name.split("/")[0])]
    reasons = []
    for what, names in (("that tightrope did not write", foreign), ("that were changed since", changed)):
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        reasons += [f"files {what}: {', '.join(names[:MOST_NAMED])}{more}"] if names else []
    if reasons:
        raise InputError(
            f"{real} holds {' and '.join(reasons)}; it was not changed",
            hint="name another directory, or move or delete them",
        )


def _remove_abandoned(folder: Path) -> None:
    """Hidden directories of processes that were killed; those of living ones are locked."""
    for entry in list(os.scandir(folder)):
        if PART.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError), _lock(Path(entry.path), wait=False):
                shutil.rmtree(entry.path, ignore_errors=True)


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
def _lock(folder: Path, *, wait: bool = True) -> Iterator[None]:
    descriptor = open_folder(folder)
    if descriptor is None:
        yield
        return
    try:
        try:
            lock(descriptor, wait=wait)
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)


NAME = "tightrope"
JANI_MARK = "written by tightrope"
DRN_MARK = "// Written by tightrope"
GENERATED = "Generated by `tightrope bench --tables"
HEAD, TAIL, MOST_INDEX = 1 << 13, 1 << 16, 1 << 24
"""Bytes within which a mark stands at the beginning of a file, or a PDF's end; of the index of an archive."""


class FileKind(NamedTuple):
    """A kind of file: what it is called, and whether a file is one that tightrope wrote."""

    name: str
    is_ours: Callable[[Path], bool]


FIGURE_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": NAME},
    "svg": {"Creator": NAME, "Date": None},
    "pdf": {"Creator": NAME, "CreationDate": None},
}
"""The metadata of a figure: the author and no date."""


def _head(path: Path, size: int = HEAD) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


def _begins(*marks: str) -> Callable[[Path], bool]:
    return lambda path: _head(path).startswith(tuple(mark.encode() for mark in marks))


def _is_certificate(path: Path) -> bool:
    """An archive with a certificate's header, in earlier formats an array."""
    if _head(path, 2) != b"PK":
        return False
    import zipfile

    earlier = "header.npy", rb'\x93NUMPY(?=.*\{"format": )(?=.*"kind": )'
    with contextlib.suppress(zipfile.BadZipFile, KeyError), zipfile.ZipFile(path) as archive:
        is_now = {"header.json", "digest"} <= set(archive.namelist())
        name, pattern = ("header.json", rb'\{"format": ') if is_now else earlier
        with archive.open(name) as file:
            return re.match(pattern, file.read(HEAD), re.DOTALL) is not None
    return False


def _is_data(path: Path) -> bool:
    """Our metadata (`io.table.data_table`) in Parquet or on the first line of CSV."""
    from tightrope.io.table.data_table import CSV_PREFIX, KEY

    begins = _head(path, 64)
    if not begins.startswith(b"PAR1"):
        return begins.startswith(CSV_PREFIX.encode())
    try:
        return KEY.encode() in (pq.read_metadata(path).metadata or {})
    except pa.ArrowInvalid:
        return False


def _is_umb(path: Path) -> bool:
    """The tool that the archive's index names."""
    import tarfile

    with contextlib.suppress(tarfile.TarError), tarfile.open(path) as archive:
        for member in archive:
            if member.name == "index.json":
                stream = None if member.size > MOST_INDEX else archive.extractfile(member)
                index = None if stream is None else json.loads(stream.read())
                about = index.get("file-data") if isinstance(index, dict) else None
                return isinstance(about, dict) and about.get("tool") == NAME
    return False


def _is_figure(path: Path) -> bool:
    begins = _head(path)
    if begins.startswith(b"%PDF-"):
        with path.open("rb") as file:
            file.seek(-min(TAIL, path.stat().st_size), os.SEEK_END)
            return b"/Creator (tightrope)" in file.read()
    if begins.startswith(b"\x89PNG\r\n"):
        return b"tEXtSoftware\x00tightrope" in begins
    return b"<svg" in begins and b"<dc:title>tightrope</dc:title>" in begins


CERTIFICATE = FileKind("certificate", _is_certificate)
POLICY = FileKind("policy", _begins(*(json.dumps({"format": name})[:-1] for name in POLICY_FORMATS)))
SHIELD = FileKind("shield", _begins('{"format":"tightrope shield"'))
DATA = FileKind("data file", _is_data)
DRN = FileKind("DRN file", _begins(f"{DRN_MARK}\n"))
JANI = FileKind("JANI file", lambda path: f'"description": "{JANI_MARK}'.encode() in _head(path))
UMB = FileKind("UMB file", _is_umb)
_PAGE = re.compile(rb'<!DOCTYPE html>.*<meta name="generator" content="tightrope ', re.DOTALL)
REPORT = FileKind("report", lambda path: _PAGE.match(_head(path)) is not None)
FIGURE = FileKind("figure", _is_figure)
TABLES = FileKind("file of tables", _begins(f"# Results\n\n{GENERATED} ", f"% {GENERATED}`", f"{GENERATED}`"))
PRISM = FileKind("model", lambda path: False)
"""A model in the PRISM language is there to be edited: what exists is its author's."""
MODEL_GRAPH = FileKind("graph of a model", _begins("digraph model {"))
RULE = FileKind("decision rule", lambda path: b"tightrope rule" in _head(path))
READING = FileKind("saved reading", _begins("reading = "))


def has_mark(path: Path, kind: FileKind) -> bool:
    """Whether the file is recognisably one of this kind that tightrope wrote; it must be readable."""
    try:
        return kind.is_ours(path)
    except (ValueError, LookupError, EOFError, RuntimeError):  # damaged or encrypted
        return False


OTHERWISE = "name another file, or replace it with `overwrite=True`"


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
            is_ours = real.stat().st_size == 0 or has_mark(real, self.kind)
        except OSError as error:
            words = f"{self.path} exists and cannot be read ({error.strerror or error}), so tightrope may not"
            raise InputError(f"{words} have written it; it was not overwritten", hint=OTHERWISE) from error
        if not is_ours:
            raise foreign(self.path, f"not a {self.kind.name} that tightrope wrote")

    def checked(self) -> Path:
        """Its path, refused as above: right before it is written."""
        self.check()
        return self.path

    def write(self, text: str) -> None:
        """Write the text there."""
        with atomic_write(self.checked()) as file:
            file.write(text)


def claim_file(path: str | Path, kind: FileKind, overwrite: bool = False) -> OutputFile:
    """Refuse a file that must not be written, before anything is computed."""
    claimed = OutputFile(Path(path), kind, overwrite)
    claimed.check()
    return claimed


def foreign(path: Path, what: str) -> InputError:
    """The refusal of a file that tightrope did not write."""
    leads = f", a link to {os.path.realpath(path)}," if path.is_symlink() else ""
    return InputError(f"{path}{leads} exists and is {what}; it was not changed", hint=OTHERWISE)


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
