"""Object stores through pyarrow's own file systems, with the few calls that fsspec's have."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ArrowStore:
    """A pyarrow file system: `open`, `size`, `isdir`, `find` and `glob`, as fsspec calls them."""

    system: Any

    @staticmethod
    def of(address: str) -> tuple[ArrowStore, str]:
        """The store of an address, and the path in it."""
        from pyarrow import fs

        system, path = fs.FileSystem.from_uri(address)
        return ArrowStore(system), path

    def open(self, path: str, mode: str = "rb") -> Any:
        return self.system.open_input_file(path)

    def size(self, path: str) -> int:
        return int(self.system.get_file_info(path).size or 0)

    def isdir(self, path: str) -> bool:
        from pyarrow import fs

        return bool(self.system.get_file_info(path).type == fs.FileType.Directory)

    def find(self, path: str) -> list[str]:
        """All files below a directory."""
        from pyarrow import fs

        found = self.system.get_file_info(fs.FileSelector(path, recursive=True))
        return [entry.path for entry in found if entry.type == fs.FileType.File]

    def glob(self, pattern: str) -> list[str]:
        """All files that match a pattern; the part before the first wildcard must be a directory."""
        fixed = pattern[: min(pattern.find(c) for c in "*?[" if c in pattern)]
        return [path for path in self.find(fixed.rpartition("/")[0]) if fnmatch.fnmatch(path, pattern)]
