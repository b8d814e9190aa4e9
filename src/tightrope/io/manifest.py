"""The manifest of an output directory: which files tightrope wrote there, and what was in them.

    {"format": "tightrope manifest", "version": 1, "kind": "learn",
     "files": {"result.json": "9f2c…", "robust-policy.json": "77ab…"},
     "added": {"report.html": "01fe…"}, "replacing": {}}

* `kind` is the command whose run the directory holds; another command never writes over it.
* `files` are the run's own, with their SHA-256; null stands for a file that the run itself goes on changing.
* `added` are files that later commands put beside them, such as a report.
* `replacing` is not empty only while files are being replaced: what was there before. A process that dies in
  between leaves a directory in which old and new files are both known as ours.

A file whose content is not the recorded one was changed by somebody else, and is not ours to replace.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tightrope.errors import InputError, Location
from tightrope.io.atomic import atomic_write
from tightrope.io.documents.coding import from_text, to_plain
from tightrope.io.documents.files import MANIFEST_FORMAT, MANIFEST_VERSION, ManifestDocument

MANIFEST = "tightrope-manifest.json"

TORN = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part")
"""The names under which files are written before they take their place (`io.atomic`)."""

Digests = Mapping[str, str | None]


@dataclass(frozen=True)
class Manifest:
    """What is known of a directory; names are relative to it, with slashes."""

    kind: str
    files: Digests = field(default_factory=dict)
    added: Digests = field(default_factory=dict)
    replacing: Digests = field(default_factory=dict)

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
        inside, _, last = name.rpartition("/")
        torn = TORN.fullmatch(last)
        known = {MANIFEST, *self.names}
        return torn is not None and (f"{inside}/{torn[1]}" if inside else torn[1]) in known

    def save(self, folder: Path) -> None:
        content = ManifestDocument(
            kind=self.kind, files=dict(self.files), added=dict(self.added), replacing=dict(self.replacing)
        )
        with atomic_write(folder / MANIFEST) as file:
            file.write(json.dumps(to_plain(content), indent=1) + "\n")


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest; None where there is none."""
    path = folder / MANIFEST
    if not _is_plain(folder, MANIFEST):
        return None
    try:
        content = from_text(path.read_bytes(), ManifestDocument)
        if content.format != MANIFEST_FORMAT or content.version != MANIFEST_VERSION:
            raise ValueError(f"version {content.version} of '{content.format}'")
        _refuse_outside((*content.files, *content.added, *content.replacing))
        return Manifest(content.kind, content.files, content.added, content.replacing)
    except (OSError, ValueError) as error:
        raise InputError(
            f"this is no manifest that says which files are tightrope's: {error}",
            Location(str(path)),
            hint="name another directory",
        ) from None


def entries(folder: Path, inside: str = "") -> Iterator[str]:
    """Everything below the folder but directories that hold something; links are not followed."""
    with os.scandir(folder / inside) as found:
        for entry in sorted(found, key=lambda entry: entry.name):
            name = f"{inside}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                below = list(entries(folder, f"{name}/"))
                yield from below or [f"{name}/"]
            else:
                yield name


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_outside(names: Iterable[str]) -> None:
    for name in names:
        if os.path.isabs(name) or ".." in name.split("/"):
            raise ValueError(f"an entry {name!r}")


def _is_plain(folder: Path, name: str) -> bool:
    """Whether the name is a regular file that no link leads to."""
    path = folder / name
    inner = [folder.joinpath(*name.split("/")[:depth]) for depth in range(1, name.count("/") + 1)]
    return path.is_file() and not path.is_symlink() and not any(step.is_symlink() for step in inner)
