"""`tightrope verify CERTIFICATE`: re-check a certificate without the program that made it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tightrope.certificate.archive import Archive
from tightrope.certificate.shape import Check
from tightrope.cli.options import Json
from tightrope.cli.output import print_json, print_table
from tightrope.errors import CannotCertify, InputError


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="A file written by --certificate.", show_default=False),
    ],
    exact: Annotated[
        bool, typer.Option("--exact", help="Check in exact rationals; for small models.")
    ] = False,
    json: Json = False,
) -> None:
    """Re-check a certificate, by a program that shares no code with the solver or with learning.

    Of a value, every inequality behind the bounds is checked again. Of a learned result, also the way from
    the counts to the bounds: intervals, confidence, region, projections. Rounding is on the safe side.

    Example: tightrope verify betting.cert
    """
    begin = time.perf_counter()
    archive = Archive.load(certificate)
    if archive.kind == "learning":
        checks, values, facts = _learned(archive, certificate, exact)
    else:
        checks, values, facts = _value(archive, certificate, exact)
    valid = all(check.passed for check in checks)
    head = next(iter(values.values()))
    result = {
        "valid": valid,
        "checked": [{"name": check.name, "passed": check.passed, "detail": check.detail} for check in checks],
        "lower": head[0],
        "upper": head[1],
        **facts,
        "digest": archive.digest(),
        "about": dict(archive.about),
        "seconds": round(time.perf_counter() - begin, 6),
    }
    if json:
        print_json(result)
    else:
        title = "; ".join(f"{name} in [{low:.9g}, {high:.9g}]" for name, (low, high) in values.items())
        rows = [(check.name, "holds" if check.passed else "FAILS", check.detail) for check in checks]
        rows += [("covers", "", line) for line in facts.get("covers", [])]
        print_table(f"{certificate}: {title}", ("check", "", ""), rows, numeric=False)
    if not valid:
        raise CannotCertify(f"{certificate} does not prove its claim")


_Report = tuple[list[Check], dict[str, tuple[float, float]], dict[str, Any]]


def _value(archive: Archive, path: Path, exact: bool) -> _Report:
    from tightrope.certificate.certificate import Certificate
    from tightrope.certificate.old_checker import verify as check_all
    from tightrope.certificate.exact import verify_exactly

    loaded = Certificate.of_archive(archive, path)
    if exact:
        _small_enough(path, len(loaded.problem.successor))
    checks = verify_exactly(loaded) if exact else check_all(loaded)
    return checks, {"value": loaded.value}, {"kind": "value"}


def _learned(archive: Archive, path: Path, exact: bool) -> _Report:
    from tightrope.certificate.learning import LearningCertificate
    from tightrope.certificate.learning_check import verify_learning

    loaded = LearningCertificate.of_archive(archive, path)
    if exact:
        _small_enough(path, len(loaded.problem.successor))
    values = loaded.values()
    facts = {
        "kind": "learning",
        "policies": {name: {"lower": low, "upper": high} for name, (low, high) in values.items()},
        "delta": loaded.data.delta,
        "assumption": loaded.data.assumption,
        "covers": list(loaded.covers),
    }
    return verify_learning(loaded, exact), values, facts


def _small_enough(path: Path, transitions: int) -> None:
    from tightrope.certificate.exact import MOST_TRANSITIONS

    if transitions > MOST_TRANSITIONS:
        raise InputError(
            f"{path} has {transitions:,} transitions, --exact is for at most {MOST_TRANSITIONS:,}",
            hint="leave --exact out: the rounding of the check is on the safe side",
        )
