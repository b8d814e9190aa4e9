"""`tightrope bench [NAME…] --methods … --seeds … -o DIR`: the paper's tables, beside the paper's figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.bench_tables import print_records, show_tables
from tightrope.cli.options import Json, Overwrite
from tightrope.cli.output import say
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.studies.campaign import Campaign
    from tightrope.studies.cells import CellLimits, Protocol
    from tightrope.studies.engines import Engine
    from tightrope.studies.records import Record


TIME_LIMIT, MEMORY_LIMIT = "2h", "20GiB"


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Instances such as 'betting(50)', or families such as betting; all the paper's.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Where data and records are kept; with --tables the file to write (.md, .tex or .txt).",
            show_default=False,
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="M,M,…",
            help="paper, ours, all (the default), or names such as tied,expression/likelihood.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", metavar="1-5", help="Seeds, one simulation each.")] = "1",
    quick: Annotated[
        bool, typer.Option("--quick", help="One small instance a family, five methods: a few minutes.")
    ] = False,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="local|dask|dask://HOST:PORT", help="Where the cells are run."),
    ] = "local",
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="HOST:PORT",
            help="With --engine dask: a scheduler that is running; else workers start on this machine.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            min=1,
            help="Cells at once; one for every two cores by default.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        str, typer.Option("--time-limit", metavar="T", help="For a cell, such as 90s, 10min or 2h.")
    ] = TIME_LIMIT,
    memory_limit: Annotated[
        str, typer.Option("--memory-limit", metavar="M", help="For a cell, such as 20GiB.")
    ] = MEMORY_LIMIT,
    delta: Annotated[float, typer.Option("--delta", metavar="D", help="Bounds hold at level 1 − D.")] = 0.001,
    episodes: Annotated[
        int | None,
        typer.Option(
            "--episodes",
            metavar="N",
            min=1,
            help="Trajectories of a simulation (100,000), or episodes of a learning curve.",
            show_default=False,
        ),
    ] = None,
    online: Annotated[
        bool,
        typer.Option("--online", help="Learning curves instead: six instances, every kind of sets."),
    ] = False,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--tables",
            metavar="DIR",
            help="Run nothing: tables of the records in DIR, printed or written to -o FILE.",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Run the paper's tables, beside the paper's figures.

    A cell is an instance, a method and a seed: the certified interval of the true-optimal policy from
    simulated trajectories. Each runs in its own process under the limits. Records go to DIR/records.jsonl;
    a campaign that was interrupted goes on where it stopped.

    With --online a cell is a run of 'tightrope online'; its records go to DIR/online.jsonl.

    Example: tightrope bench --quick -o quick
    """
    if tables is not None:
        show_tables(tables, output, json, overwrite)
        return
    if output is None:
        raise InputError("-o DIR is missing: where the data and the records of the campaign are kept")
    if online:
        from tightrope.cli.bench_online import run_curves

        if (
            quick
            or engine != "local"
            or scheduler
            or (time_limit, memory_limit) != (TIME_LIMIT, MEMORY_LIMIT)
        ):
            raise InputError(
                "--online goes neither with --quick nor with limits or another engine than local",
                hint="choose instances, --methods, --seeds and --episodes instead",
            )
        run_curves(names, methods, seeds, episodes, delta, jobs, output, json)
        return
    from tightrope.studies.cells import CellLimits, Protocol, parse_duration, parse_size
    from tightrope.studies.engines import parse_engine

    campaign = _campaign(
        names,
        methods,
        seeds,
        quick,
        parse_engine(engine, jobs, scheduler),
        CellLimits(parse_duration(time_limit), parse_size(memory_limit)),
        Protocol(episodes or 100_000, delta),
        output,
    )
    records = campaign.run(_progress)
    print_records(records, json)
    failed = [record for record in records if record.status == "error"]
    if failed:
        first = failed[0]
        say(f"error: {len(failed)} of {len(records)} cells failed; {first.cell}: {first.message}")
        raise typer.Exit(1)


def _campaign(
    names: list[str] | None,
    methods: str | None,
    seeds: str,
    quick: bool,
    engine: Engine,
    limits: CellLimits,
    protocol: Protocol,
    output: Path,
) -> Campaign:
    from tightrope.studies.campaign import Campaign
    from tightrope.studies.cells import campaign_cells, choose_instances, parse_seeds, quick_selection
    from tightrope.studies.methods import choose_methods

    quick_instances, quick_methods = quick_selection()
    instances = quick_instances if quick and not names else choose_instances(names or ())
    if methods is not None:
        chosen = choose_methods(methods)
    else:
        chosen = quick_methods if quick else choose_methods("all")
    cells = campaign_cells(instances, chosen, parse_seeds(seeds), protocol)
    return Campaign(cells, limits, engine, output)


def _progress(record: Record, done: int, total: int) -> None:
    """One line per cell on stderr."""
    from tightrope.studies.figures import gap_text, interval_text, seconds_text
    from tightrope.studies.records import OK

    if record.status == OK:
        shown = (
            f"{interval_text(record.lower, record.upper)} gap {gap_text(record.relative_gap)}, "
            f"{seconds_text(record.build_seconds)} + {seconds_text(record.solve_seconds)} s"
        )
    else:
        shown = f"{record.status}: {record.message}"
    say(f"[{done}/{total}] {record.cell}: {shown}")
