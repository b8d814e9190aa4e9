"""Writing certificates to files; the checker reads them (`tightrope_check.archive`).

No certificate is written that the checker refuses, or that contradicts the answer beside it.

Both are proved intervals of the same quantity, so they meet; each may be the wider one. If they do not meet,
one is wrong: nothing is written, and the internal error asks for a report. A certificate of a learned
temporal formula is about the most robust policy of its own product: its lower bound is compared with what no
policy exceeds. Of synchronised intervals, whose products allow nature more, one side is compared. Two
different statements about the same data fail with probability δ each: if they exclude each other, nothing is
certified, in words.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from tightrope.atomic import atomic_write_bytes
from tightrope.errors import CannotCertify
from tightrope.io.results import Interval
from tightrope.model.objective import Direction
from tightrope.numerics.arrays import AnyArray
from tightrope.prism.properties.query import Query
from tightrope_check.archive import FORMAT, TYPES, Recipe, digest_of, most_memory, unpacked_size
from tightrope_check.budget import OverBudget, WorkBudget
from tightrope_check.checker import check
from tightrope_check.fields import Polynomial, list_fields, validate
from tightrope_check.numbers import FLOAT64
from tightrope_check.problem import Certificate


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


def as_file(certificate: Certificate) -> CertificateFile:
    """The bytes of the file, and its digest."""
    validate(certificate)
    members: dict[str, bytes] = {}
    arrays: dict[str, Recipe] = {}
    head = {"format": FORMAT, "certificate": _part(certificate, "", arrays, members), "arrays": arrays}
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


def _part(
    value: object, path: str, arrays: dict[str, Recipe], members: dict[str, bytes]
) -> dict[str, object]:
    """What the header says of a part; its arrays become members."""
    node: dict[str, object] = {}
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


def _pack(array: AnyArray | tuple[Fraction | Polynomial, ...]) -> tuple[Recipe, bytes]:
    """How an array or a list of exact numbers is stored: what the header says of it, and its bytes."""
    if isinstance(array, tuple):
        return ("text", "plain", [len(array)]), "".join(f"{_line(one)}\n" for one in array).encode("ascii")
    if array.dtype == np.bool_:
        return ("bool", "plain", list(array.shape)), array.astype(np.uint8).tobytes()
    if array.dtype == np.float64:
        return ("float64", "plain", list(array.shape)), _bytes(array, "float64")
    steps = np.diff(array, prepend=np.int64(0)) if array.ndim == 1 else array
    plain, difference = _narrowest(array), _narrowest(steps)
    if array.ndim == 1 and difference != "int64" and TYPES[difference] <= TYPES[plain]:
        return (difference, "difference", list(array.shape)), _bytes(steps, difference)
    return (plain, "plain", list(array.shape)), _bytes(array, plain)


def _line(exact: Fraction | Polynomial) -> str:
    """A fraction, or the terms of a polynomial."""
    if isinstance(exact, Fraction):
        return str(exact)
    terms = (str(c) + "".join(f"*{i}^{e}" for i, e in monomial) for monomial, c in sorted(exact.items()))
    return " ".join(terms)


def _narrowest(array: AnyArray) -> str:
    least, most = int(array.min(initial=0)), int(array.max(initial=0))
    for name in ("int8", "int16", "int32"):
        if np.iinfo(name).min <= least and most <= np.iinfo(name).max:
            return name
    return "int64"


def _bytes(array: object, kind: str) -> bytes:
    return np.asarray(array).astype(np.dtype(kind).newbyteorder("<")).tobytes()


SMALL = 2.0
"""Seconds of work, as a check counts them, up to which every certificate is checked before it is written."""

ANYTHING = Interval(-math.inf, math.inf)


class Disagreement(Exception):
    """A certificate and the answer beside it exclude each other: one of them is wrong."""


@dataclass(frozen=True)
class Shown:
    """The answer: an interval for each claim that it speaks of. `apart`: it rests on other statements about
    the data than the certificate does, so that data alone can make the two exclude each other. `notes` are
    words about that."""

    intervals: Mapping[str, Interval]
    apart: bool = False
    notes: tuple[str, ...] = ()

    def beyond(self, nature: Direction) -> Shown:
        """Where the certificate allows nature more, its value may lie further where nature wants it."""
        if nature is Direction.MIN:
            ends = {name: Interval(-math.inf, one.upper) for name, one in self.intervals.items()}
        else:
            ends = {name: Interval(one.lower, math.inf) for name, one in self.intervals.items()}
        return replace(self, intervals=ends)


def shown_value(
    bounds: tuple[float, float] | None, truth: str | None = None, query: Query | None = None
) -> Shown:
    """The answer to one question, of the best policy or of a given one: `bounds`, and on which side of its
    threshold the value of a query lies that is `truth`."""
    low, high = ANYTHING if bounds is None else bounds
    if truth in ("true", "false") and query is not None and query.threshold is not None:
        threshold = float(query.threshold)
        if (query.comparison in (">", ">=")) == (truth == "true"):
            low = max(low, math.nextafter(threshold, -math.inf))
        else:
            high = min(high, math.nextafter(threshold, math.inf))
    return Shown(dict.fromkeys(("value", "given policy"), Interval.of(low, high)))


def answered_file(certificate: Certificate, shown: Shown | None, verify: bool = True) -> CertificateFile:
    """The certificate as it is written, if it agrees with the answer (where there is one) and the checker
    confirms it; without `verify` a large one is not checked."""
    if shown is not None:
        require_agreement(certificate, shown)
    require_proved(certificate, verify)
    return replace(as_file(certificate), notes=() if shown is None else shown.notes)


def require_proved(certificate: Certificate, verify: bool = True) -> None:
    """Refuse to write what the checker would refuse; without `verify` it is not asked about large files."""
    try:
        verdict = check(certificate, FLOAT64, WorkBudget(math.inf if verify else SMALL))
    except OverBudget:
        return
    failed = [f"{one.name} ({one.detail})" for one in verdict.checks if not one.passed]
    if verdict.contradicted is not None or failed:
        why = verdict.contradicted or failed[0]
        raise CannotCertify(f"no certificate is written, since the checker would refuse it: {why}")


def require_agreement(certificate: Certificate, shown: Shown) -> None:
    """Raise where a claim and the answer exclude each other, and where no claim is answered at all."""
    if not any(claim.name in shown.intervals for claim in certificate.claims):
        raise Disagreement(
            f"the certificate claims {', '.join(one.name for one in certificate.claims)}, and the answer is "
            f"about {', '.join(shown.intervals)}"
        )
    for claim in certificate.claims:
        answer, proved = shown.intervals.get(claim.name, ANYTHING), Interval.of(claim.lower, claim.upper)
        if proved.lower <= answer.upper and answer.lower <= proved.upper:
            continue
        both = f"the certificate proves a {claim.name} in {proved}, and the answer is {answer}"
        if shown.apart:
            raise CannotCertify(
                f"no certificate is written: {both}. Both hold in a correct model, up to a small "
                "probability: the model is likely wrong"
            )
        raise Disagreement(f"{both}. One of them is wrong: no certificate is written, trust neither")
