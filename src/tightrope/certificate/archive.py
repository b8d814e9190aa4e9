"""One compressed file for a certificate of either kind: a JSON header and plain arrays, under a digest.

NumPy's npz without pickles, integers packed (`tightrope.certificate.packing`). The digest (SHA-256 over
header and arrays, in a fixed order) names the certificate and tells whether a file was damaged or changed; it
proves nothing else. `about` stands outside of it: words for people, which no check relies on.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.certificate.packing import Recipe, packed, unpacked
from tightrope.errors import InputError, Location
from tightrope.formats.atomic import atomic_write_bytes

FORMAT = 3

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OSError,
    AttributeError,
    NotImplementedError,
    RuntimeError,
    IndexError,
)
"""What NumPy, zipfile and json raise on files that are not what they should be."""


@dataclass(frozen=True, eq=False)
class Archive:
    """`kind` says what the file certifies: "value" or "learning". Arrays are as stored: see `split`."""

    kind: str
    header: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    about: Mapping[str, Any] = field(default_factory=dict)

    def digest(self) -> str:
        head = {"format": FORMAT, "kind": self.kind, **self.header}
        hashed = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
        for name, array in sorted(self.arrays.items()):
            hashed.update(f"{name}{array.dtype.str}{array.shape}".encode())
            hashed.update(np.ascontiguousarray(array).data)
        return hashed.hexdigest()

    def save(self, path: str | Path) -> str:
        """Write the file, and return its digest."""
        digest = self.digest()
        head = {
            "format": FORMAT,
            "kind": self.kind,
            "header": dict(self.header),
            "about": dict(self.about),
            "digest": digest,
        }
        text = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        # NumPy's npz at zlib's fastest level; the file of a large model grows by about a tenth.
        with (
            atomic_write_bytes(path) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            for name, array in {"header": text, **self.arrays}.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)
        return digest

    @classmethod
    def load(cls, path: str | Path) -> Archive:
        """Read the file and compare its digest; what it claims is the checkers' business."""
        place = Location(str(path))
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", place) from error
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            head = json.loads(arrays.pop("header").tobytes())
            archive = cls(head["kind"], head["header"], arrays, head["about"])
            found = head["digest"]
        except DAMAGE as error:
            raise InputError("this is not a certificate, or it is damaged", place) from error
        if head["format"] != FORMAT:
            raise InputError(
                f"certificate format {head['format']}, this version reads {FORMAT}",
                place,
                hint="make the certificate again with this version, or verify it with the one that made it",
            )
        if found != archive.digest():
            raise InputError(
                "the file's contents do not match its digest: it was changed after it was written", place
            )
        return archive

    def part(self, name: str) -> dict[str, Any]:
        """The fields of one part: its entries of the header and its arrays."""
        prefix, packing = f"{name}.", self.header["packing"]
        return dict(self.header[name]) | {
            key.removeprefix(prefix): unpacked(array, packing.get(key))
            for key, array in self.arrays.items()
            if key.startswith(prefix)
        }


def split(parts: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """(header, arrays) of dataclasses by name: the reverse of `Archive.part`."""
    packing: dict[str, Recipe] = {}
    header: dict[str, Any] = {"packing": packing}
    arrays: dict[str, npt.NDArray[Any]] = {}
    for part, holder in parts.items():
        header[part] = {}
        for name, value in vars(holder).items():
            if isinstance(value, np.ndarray):
                stored, recipe = packed(value)
                arrays[f"{part}.{name}"] = stored
                if recipe is not None:
                    packing[f"{part}.{name}"] = recipe
            else:
                header[part][name] = value
    return header, arrays
