"""`tightrope verify CERTIFICATE`: re-check a certificate without the program that made it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tightrope.certificate.certificate import Certificate
from tightrope.certificate.checker import verify as check_all
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
    """Re-check a certificate, by a program that shares no code with the solver.

    Every inequality behind the bounds is checked again, with rounding on the safe side.

    Example: tightrope verify betting.cert
    """
    begin = time.perf_counter()
    loaded = Certificate.load(certificate)
    if exact:
        from tightrope.certificate.exact import MOST_TRANSITIONS, verify_exactly

        if len(loaded.problem.successor) > MOST_TRANSITIONS:
            raise InputError(
                f"{certificate} has {len(loaded.problem.successor):,} transitions, "
                f"--exact is for at most {MOST_TRANSITIONS:,}",
                hint="leave --exact out: the rounding of the check is on the safe side",
            )
        checks = verify_exactly(loaded)
    else:
        checks = check_all(loaded)
    valid = all(check.passed for check in checks)
    lower, upper = loaded.value
    result = {
        "valid": valid,
        "checked": [{"name": check.name, "passed": check.passed, "detail": check.detail} for check in checks],
        "lower": lower,
        "upper": upper,
        "digest": loaded.digest(),
        "about": dict(loaded.about),
        "seconds": round(time.perf_counter() - begin, 6),
    }
    if json:
        print_json(result)
    else:
        rows = [(check.name, "holds" if check.passed else "FAILS", check.detail) for check in checks]
        print_table(
            f"{certificate}: value in [{lower:.9g}, {upper:.9g}]", ("check", "", ""), rows, numeric=False
        )
    if not valid:
        raise CannotCertify(f"{certificate} does not prove its claim")
