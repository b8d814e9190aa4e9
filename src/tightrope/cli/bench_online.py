"""`tightrope bench --online`: learning curves of the paper's second setting."""

from __future__ import annotations

from pathlib import Path

from tightrope.cli.bench_tables import print_online
from tightrope.cli.output import print_json, say
from tightrope.studies.cells import parse_seeds
from tightrope.studies.figures import seconds_text
from tightrope.studies.online_campaign import run_online_campaign
from tightrope.studies.online_cells import online_cells
from tightrope.studies.online_records import OnlineRecord


def run_curves(
    names: list[str] | None,
    methods: str | None,
    seeds: str,
    episodes: int | None,
    delta: float,
    jobs: int | None,
    output: Path,
    as_json: bool,
) -> None:
    """Run what has no record yet, one line per run on stderr, and print the tables."""
    cells = online_cells(names or (), methods, parse_seeds(seeds), episodes, delta)
    records = run_online_campaign(cells, output, jobs, _progress)
    if as_json:
        print_json({"online": [record.to_json() for record in records]})
    else:
        print_online(records)


def _progress(record: OnlineRecord, done: int, total: int) -> None:
    last = record.last
    say(
        f"[{done}/{total}] {record.cell}: guarantee {last['guarantee']:.5g}, performance "
        f"{last['performance']:.5g}, {record.updates} updates, {record.broken} broken, "
        f"{seconds_text(record.facts['cpu_seconds'])} s"
    )
