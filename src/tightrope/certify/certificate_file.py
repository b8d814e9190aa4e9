"""Writing certificates to files; reading them is the checker's business (`tightrope.certificate.archive`)."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.atomic import atomic_write_bytes
from tightrope.certificate.archive import FORMAT, TYPES, digest_of, most_memory, unpacked_size
from tightrope.certificate.fields import list_fields, validate
from tightrope.certificate.problem import Certificate


@dataclass(frozen=True, eq=False)
class CertificateFile:
    """A certificate as it is written; `notes` say in words what it rests on that the answer does not."""

    certificate: Certificate
    content: bytes
    digest: str
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> str:
        """Write the file, and return its digest."""
        with atomic_write_bytes(path) as file:
            file.write(self.content)
        return self.digest

    @property
    def values(self) -> dict[str, tuple[float, float]]:
        """The certified interval of every claim."""
        return {claim.name: (claim.lower, claim.upper) for claim in self.certificate.claims}


def save_certificate(certificate: Certificate, path: str | Path) -> str:
    """Write the file, and return its digest."""
    return as_file(certificate).save(path)


def as_file(certificate: Certificate) -> CertificateFile:
    """The bytes of the file, and its digest."""
    validate(certificate)
    members: dict[str, bytes] = {}
    arrays: dict[str, list[Any]] = {}
    head = {
        "format": FORMAT,
        "certificate": _part(certificate, "", arrays, members),
        "arrays": arrays,
    }
    members["header.json"] = json.dumps(head, ensure_ascii=True).encode("ascii")
    digest = digest_of(members)
    members["digest"] = digest.encode("ascii")
    content = _zip(members, zipfile.ZIP_DEFLATED)
    if max(unpacked_size(arrays), sum(map(len, members.values()))) > most_memory(len(content)):
        content = _zip(members, zipfile.ZIP_STORED)  # the door takes no file that grows too much
    return CertificateFile(certificate, content, digest)


def _zip(members: dict[str, bytes], how: int) -> bytes:
    """The members, deflated at the fastest level: the file of a large model grows by about a tenth."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", how, compresslevel=1) as archive:
        for name in sorted(members):
            about = zipfile.ZipInfo(name)
            about.create_system, about.external_attr = 3, 0o600 << 16  # the same bytes on every system
            archive.writestr(about, members[name], compress_type=how)
    return result.getvalue()


def _part(value: Any, path: str, arrays: dict[str, list[Any]], members: dict[str, bytes]) -> dict[str, Any]:
    """What the header says of a part; its arrays become members."""
    node: dict[str, Any] = {}
    for name, spec in list_fields(value):
        held = getattr(value, name)
        here = f"{path}{name}"
        if spec.is_array:
            if held is not None:
                arrays[here], members[here] = _pack(held)
        elif spec.kind == "part":
            node[name] = None if held is None else _part(held, f"{here}.", arrays, members)
        elif spec.kind == "parts":
            node[name] = [_part(one, f"{here}.{i}.", arrays, members) for i, one in enumerate(held)]
        else:
            node[name] = "inf" if spec.kind == "real" and held == float("inf") else held
    return node


def _pack(array: Any) -> tuple[list[Any], bytes]:
    """How an array or a list of exact numbers is stored: what the header says of it, and its bytes."""
    if isinstance(array, tuple):
        return ["text", "plain", [len(array)]], "".join(f"{_line(one)}\n" for one in array).encode("ascii")
    if array.dtype == np.bool_:
        return ["bool", "plain", list(array.shape)], array.astype(np.uint8).tobytes()
    if array.dtype == np.float64:
        return ["float64", "plain", list(array.shape)], _bytes(array, "float64")
    steps = np.diff(array, prepend=np.int64(0)) if array.ndim == 1 else array
    plain, difference = _narrowest(array), _narrowest(steps)
    if array.ndim == 1 and difference != "int64" and TYPES[difference] <= TYPES[plain]:
        return [difference, "difference", list(array.shape)], _bytes(steps, difference)
    return [plain, "plain", list(array.shape)], _bytes(array, plain)


def _line(exact: Any) -> str:
    """A fraction, or the terms of a polynomial."""
    if isinstance(exact, Fraction):
        return str(exact)
    terms = (str(c) + "".join(f"*{i}^{e}" for i, e in monomial) for monomial, c in sorted(exact.items()))
    return " ".join(terms)


def _narrowest(array: Any) -> str:
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    for name in ("int8", "int16", "int32"):
        if np.iinfo(name).min <= least and most <= np.iinfo(name).max:
            return name
    return "int64"


def _bytes(array: Any, kind: str) -> bytes:
    return np.asarray(array).astype(np.dtype(kind).newbyteorder("<")).tobytes()
