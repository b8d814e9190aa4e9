"""`tightrope bench [NAME…] --methods … --seeds … -o DIR`: the paper's tables, beside the paper's figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.options import option, takes
from tightrope.cli.output import common, print_json, say
from tightrope.errors import InputError
from tightrope.io.output import FIGURE, GENERATED, TABLES, OutputFile, claim_file

if TYPE_CHECKING:
    from tightrope_campaigns.campaign import Campaign
    from tightrope_campaigns.records import OnlineRecord, Record


TIME_LIMIT, MEMORY_LIMIT = "2h", "20GiB"


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of the command."""

    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Instances such as 'betting(50)', or families such as betting; all the paper's.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        option(
            "-o --output",
            "Where data and records are kept; with --tables the file to write (.md, .tex or .txt).",
            "DIR",
        ),
    ] = None
    methods: Annotated[
        str | None,
        option(
            "--methods",
            "paper, ours, all (the default), or names such as tied,expression/likelihood.",
            "M,M,…",
        ),
    ] = None
    seeds: Annotated[str, option("--seeds", "Seeds, one simulation each.", "1-5")] = "1"
    quick: Annotated[bool, option("--quick", "One small instance a family, five methods: a few minutes.")] = (
        False
    )
    engine: Annotated[str, option("--engine", "Where the cells are run.", "local|dask|dask://HOST:PORT")] = (
        "local"
    )
    scheduler: Annotated[
        str | None,
        option(
            "--scheduler",
            "With --engine dask: a running scheduler; without it workers start on this machine.",
            "HOST:PORT",
        ),
    ] = None
    jobs: Annotated[
        int | None, option("--jobs", "Number of cells at a time; default: one per two cores.", "N", min=1)
    ] = None
    time_limit: Annotated[str, option("--time-limit", "For a cell, such as 90s, 10min or 2h.", "T")] = (
        TIME_LIMIT
    )
    memory_limit: Annotated[str, option("--memory-limit", "For a cell, such as 20GiB.", "M")] = MEMORY_LIMIT
    delta: Annotated[float, option("--delta", "Bounds hold at level 1 − D.", "D")] = 0.001
    episodes: Annotated[
        int | None,
        option(
            "--episodes",
            "Trajectories of a simulation (100,000), or episodes of a learning curve.",
            "N",
            min=1,
        ),
    ] = None
    online: Annotated[
        bool, option("--online", "Learning curves instead: six instances, every kind of sets.")
    ] = False
    tables: Annotated[
        Path | None,
        option(
            "--tables", "Run nothing: tables of the records in DIR, printed or written to -o FILE.", "DIR"
        ),
    ] = None


@takes(Request)
def bench(request: Request) -> None:
    """Run the paper's tables, beside the paper's figures.

    A cell is an instance, a method and a seed: the certified interval of the true-optimal policy from
    simulated trajectories. Each runs in its own process under the limits. Records go to DIR/records.jsonl;
    a campaign that was interrupted goes on where it stopped.

    With --online a cell is a run of 'tightrope online'; its records go to DIR/online.jsonl.

    Example: tightrope bench --quick -o quick
    """
    if request.tables is not None:
        show_tables(request.tables, request.output)
        return
    if request.output is None:
        raise InputError("-o DIR is missing: where the data and the records of the campaign are kept")
    if request.online:
        if (
            request.quick
            or request.engine != "local"
            or request.scheduler
            or (request.time_limit, request.memory_limit) != (TIME_LIMIT, MEMORY_LIMIT)
        ):
            raise InputError(
                "--online goes neither with --quick nor with limits or another engine than local",
                hint="choose instances, --methods, --seeds and --episodes instead",
            )
        _run_curves(request, request.output)
        return
    campaign = _build_campaign(request, request.output)
    records = campaign.run(_show_cell)
    print_records(records)
    failed = [record for record in records if record.status == "error"]
    if failed:
        first = failed[0]
        say(f"error: {len(failed)} of {len(records)} cells failed; {first.cell}: {first.message}")
        raise typer.Exit(1)


def _build_campaign(request: Request, output: Path) -> Campaign:
    from tightrope_campaigns.campaign import Campaign, parse_engine
    from tightrope_campaigns.cells import (
        CellLimits,
        Protocol,
        campaign_cells,
        choose_instances,
        choose_methods,
        parse_duration,
        parse_seeds,
        parse_size,
        quick_selection,
    )

    quick_instances, quick_methods = quick_selection()
    instances = (
        quick_instances if request.quick and not request.names else choose_instances(request.names or ())
    )
    if request.methods is not None:
        chosen = choose_methods(request.methods)
    else:
        chosen = quick_methods if request.quick else choose_methods("all")
    protocol = Protocol(request.episodes or 100_000, request.delta)
    cells = campaign_cells(instances, chosen, parse_seeds(request.seeds), protocol)
    limits = CellLimits(parse_duration(request.time_limit), parse_size(request.memory_limit))
    return Campaign(cells, limits, parse_engine(request.engine, request.jobs, request.scheduler), output)


def _run_curves(request: Request, output: Path) -> None:
    """Run the learning curves that have no record yet, and print the tables."""
    from tightrope_campaigns.campaign import run_online_campaign
    from tightrope_campaigns.cells import online_cells, parse_seeds

    seeds = parse_seeds(request.seeds)
    cells = online_cells(request.names or (), request.methods, seeds, request.episodes, request.delta)
    records = run_online_campaign(cells, output, request.jobs, _show_curve)
    if common.json:
        print_json({"online": [record.to_json() for record in records]})
    else:
        print_online(records)


def _show_curve(record: OnlineRecord, done: int, total: int) -> None:
    """One line per learning curve on stderr."""
    from tightrope_campaigns.tables import seconds_text

    last = record.last
    say(
        f"[{done}/{total}] {record.cell}: guarantee {last['guarantee']:.5g}, performance "
        f"{last['performance']:.5g}, {record.updates} updates, {record.broken} broken, "
        f"{seconds_text(record.facts['cpu_seconds'])} s"
    )


def _show_cell(record: Record, done: int, total: int) -> None:
    """One line per cell on stderr."""
    from tightrope_campaigns.records import OK
    from tightrope_campaigns.tables import gap_text, interval_text, seconds_text

    if record.status == OK:
        shown = (
            f"{interval_text(record.lower, record.upper)} gap {gap_text(record.relative_gap)}, "
            f"{seconds_text(record.build_seconds)} + {seconds_text(record.solve_seconds)} s"
        )
    else:
        shown = f"{record.status}: {record.message}"
    say(f"[{done}/{total}] {record.cell}: {shown}")


def print_records(records: list[Record]) -> None:
    """Tables and a summary for people, rows for programs."""
    from tightrope_campaigns.tables import instance_tables, summary, text_summary, text_tables

    if common.json:
        print_json({"rows": [record.to_json() for record in records]})
        return
    shown = instance_tables(records)
    typer.echo(text_tables(shown))
    typer.echo(text_summary(summary(shown)), nl=False)


def show_tables(directory: Path, output: Path | None) -> None:
    """The tables of a directory's records, on stdout or in a file."""
    from tightrope_campaigns.records import FILE_NAME, ONLINE_FILE, read_online, read_records

    claimed = None if output is None else claim_file(output, TABLES, common.overwrite)
    curves = directory / ONLINE_FILE
    online = read_online(curves) if curves.is_file() else []
    path = directory if directory.is_file() else directory / FILE_NAME
    records = read_records(path) if path.is_file() or not online else []
    if claimed is None:
        if common.json:
            rows = [record.to_json() for record in records]
            print_json({"rows": rows, "online": [record.to_json() for record in online]})
            return
        if records:
            print_records(records)
        if online:
            print_online(online)
        return
    from tightrope.atomic import atomic_write

    text = _render(records, online, directory, claimed)
    claimed.check()
    with atomic_write(claimed.path) as file:
        file.write(text)
    say(f"{claimed.path} written from {len(records) + len(online)} records")


def print_online(online: list[OnlineRecord]) -> None:
    """The tables of learning curves for people."""
    from tightrope.cli.output import print_table
    from tightrope_campaigns.results_page import (
        groups,
        make_kept_table,
        make_reached_table,
        soon_table,
        summary_lines,
    )

    shown = groups(online)
    for title, table in (
        ("Episodes to the guarantee that tied sets end with", soon_table(shown)),
        ("Validity of the guarantees", make_kept_table(shown)),
        ("After all episodes", make_reached_table(shown)),
    ):
        print_table(title, table.columns, [[cell.strip("`") for cell in row] for row in table.rows])
    for line in summary_lines(shown):
        typer.echo(line)


def _render(records: list[Record], online: list[OnlineRecord], directory: Path, claimed: OutputFile) -> str:
    """The tables in the format that the file's name asks for."""
    output = claimed.path
    from tightrope_campaigns.results_page import online_section, results_page
    from tightrope_campaigns.tables import instance_tables, latex_tables, summary, text_summary, text_tables

    shown = instance_tables(records, with_missing=True)
    match output.suffix:
        case ".md":
            section = online_section(online, _draw(online, claimed)) if online else None
            return results_page(records, directory.as_posix(), output.as_posix(), section)
        case ".tex" | ".txt" if not records:
            raise InputError(
                f"{directory} holds learning curves alone, and these are shown on pages",
                hint="end the file's name in .md",
            )
        case ".tex":
            return latex_tables(shown)
        case ".txt":
            return f"{GENERATED}`\n\n{text_tables(shown)}\n{text_summary(summary(shown))}"
    raise InputError(
        f"cannot tell what {output} should be", hint="end its name in .md (Markdown), .tex (LaTeX) or .txt"
    )


def _draw(online: list[OnlineRecord], page: OutputFile) -> str:
    """Draw the curves into `images` beside the page; where the page finds them."""
    from tightrope.report.curves import SUFFIXES
    from tightrope_campaigns.curves import write_campaign_curves
    from tightrope_campaigns.results_page import CURVES

    images = page.path.parent / "images"
    images.mkdir(exist_ok=True)
    for suffix in SUFFIXES:
        claim_file(images / f"{CURVES}.{suffix}", FIGURE, page.overwrite)
    write_campaign_curves(online, images / CURVES)
    return f"images/{CURVES}.svg"
