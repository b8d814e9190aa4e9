"""`sample` for chains in continuous time: logs with the moments of all jumps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.cli.model_source import load_timed
from tightrope.cli.output import group, print_facts, print_json
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.cli.sample import Request
    from tightrope.model.structure import Structure

DEFAULT_CAP = 1_000_000
"""Jumps after which an episode is cut off, where --cap does not say otherwise."""


def sample_timed(asked: Request, output: Path, episodes: int, duration: float) -> None:
    """Simulate so many episodes of this duration, and write their jumps."""
    from tightrope.benchmarks.instance import decimal_text
    from tightrope.data.timed_simulator import simulate_times
    from tightrope.io.answers import SampleAnswer
    from tightrope.io.output import DATA, claim_file
    from tightrope.io.table.data_table import is_parquet
    from tightrope.io.table.writer import write_table

    is_parquet(output)
    if not 0 < duration < float("inf"):
        raise InputError(f"--time is {duration}, not a positive time")
    claimed = claim_file(output, DATA, asked.overwrite)
    loaded = load_timed(asked.model, asked.const, asked.param, asked.domain, quiet=True)
    point = loaded.point(asked.at)
    chain = loaded.model.instantiate(point)
    begin = time.perf_counter()
    cap = DEFAULT_CAP if asked.cap is None else asked.cap
    rows = simulate_times(chain, episodes, asked.seed, duration, cap)
    types, columns = _state_columns(loaded.model.structure)
    table = {
        "episode": rows.episode,
        "time": rows.time,
        **{name: column[rows.state] for name, column in columns.items()},
    }
    names = loaded.model.parameters.names
    metadata = {
        "rows": "times",
        "source": asked.model,
        "seed": asked.seed,
        "time": duration,
        "cap": cap,
        "at": {name: decimal_text(value) for name, value in zip(names, point, strict=True)},
    }
    claimed.check()
    write_table(output, {"episode": int, "time": float, **types}, [table], metadata)
    seconds = time.perf_counter() - begin
    if asked.json:
        print_json(
            SampleAnswer(
                episodes=episodes,
                steps=rows.jumps,
                seconds=round(seconds, 6),
                design="trajectories",
                cap=cap,
                batches=0,
                transitions_seen=rows.jumps,
                file=str(output),
            )
        )
        return
    facts = [
        ("episodes", f"{group(episodes)}, each watched for {duration:g}"),
        ("jumps", group(rows.jumps)),
        ("file", str(output)),
        ("seconds", f"{seconds:.3g}"),
    ]
    print_facts(asked.model, facts)


def _state_columns(structure: Structure) -> tuple[dict[str, type], dict[str, Any]]:
    """States by the model's variables, or by index where it has none."""
    import numpy as np

    if not structure.valuations:
        return {"state": int}, {"state": np.arange(structure.states)}
    if clash := {"episode", "time", "duration"}.intersection(structure.valuations):
        raise InputError(f"the model's variable '{clash.pop()}' clashes with a column's name")
    kinds: dict[str, type] = {
        name: bool if column.dtype == np.bool_ else int for name, column in structure.valuations.items()
    }
    return kinds, dict(structure.valuations)
