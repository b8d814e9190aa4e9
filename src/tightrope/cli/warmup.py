"""`tightrope warmup`: compile all kernels ahead, on all cores."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from tightrope.cli.options import Json, option
from tightrope.cli.output import print_json, say


def warmup(
    jobs: Annotated[
        int | None, option("--jobs", "Processes at once; one per core by default.", "N", min=1)
    ] = None,
    json: Json = False,
) -> None:
    """Compile all kernels ahead, so that no first run waits for it.

    Kernels are compiled when they are first needed and kept beside the installation, or in a directory of
    your own where that cannot be written to. This command runs small examples of everything that has kernels,
    on all cores: after an installation, or while an image is built.

    Example: tightrope warmup
    """
    from tightrope.cli.warmup_run import warm_up

    begin = time.perf_counter()
    compiled = 0
    for name, done, total, kernels in warm_up(jobs):
        compiled += kernels
        if not json:
            say(f"[{done}/{total}] {name}: {kernels} kernels compiled")
    seconds = time.perf_counter() - begin
    if json:
        print_json({"kernels": compiled, "seconds": round(seconds, 6)})
    else:
        typer.echo(f"{compiled} kernels compiled in {seconds:.1f} s")
