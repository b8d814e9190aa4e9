"""One simulated system, written down as ten people would: the logs of `tests/logs/`.

`python tests/log_cases.py` writes them anew. All tell of the same 60 runs of a machine that wears out.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism

FOLDER = Path(__file__).parent / "logs"
RUNS = 60


def machine() -> ParametricMDP:
    model = load_prism(FOLDER / "machine.prism")
    assert isinstance(model, ParametricMDP)
    return model


def rows(runs: int = RUNS, seed: int = 7) -> list[dict[str, Any]]:
    """The steps of all runs at p = 0.3, q = 0.7: repaired now and then, until it breaks or twelve steps."""
    random = np.random.default_rng(seed)
    found = []
    for run in range(runs):
        wear, broken = 0, False
        for step in range(12):
            command = "repair" if wear > 0 and random.random() < 0.3 else "run"
            if command == "repair":
                next_wear, next_broken = (wear - 1, False) if random.random() < 0.7 else (wear, False)
            elif random.random() < 0.3:
                next_wear, next_broken = (wear + 1, False) if wear < 3 else (wear, True)
            else:
                next_wear, next_broken = wear, False
            found.append(
                {
                    "run": run,
                    "t": step,
                    "wear": wear,
                    "broken": broken,
                    "cmd": command,
                    "wear_next": next_wear,
                    "broken_next": next_broken,
                    "time": 1_700_000_000 + 1000 * run + step,
                }
            )
            wear, broken = next_wear, next_broken
            if broken:
                break
    return found


def write_logs(folder: Path = FOLDER) -> None:
    """All ten."""
    steps = rows()
    folder.mkdir(exist_ok=True)
    _csv(folder / "canonical.csv", _renamed(steps, cmd="action", run="episode", t="step"))
    _odd_names(folder / "odd-names.csv", steps)
    _json_lines(folder / "nested.jsonl.gz", steps)
    _hive(folder / "hive", steps)
    _zst(folder / "semicolons.csv.zst", steps)
    _arrow(folder / "table.arrow", steps)
    _next_row(folder / "next-row.csv", steps)
    _shuffled(folder / "shuffled.csv.gz", steps)
    _by_index(folder / "index.parquet", steps)
    _counted(folder / "counted.csv", steps)


def _renamed(steps: list[dict[str, Any]], **names: str) -> list[dict[str, Any]]:
    return [{names.get(name, name): value for name, value in row.items() if name != "time"} for row in steps]


def _lines(steps: list[dict[str, Any]], mark: str = ",") -> str:
    shown = [[str(v).lower() if isinstance(v, bool) else str(v) for v in row.values()] for row in steps]
    return "\n".join(mark.join(cells) for cells in [list(steps[0]), *shown]) + "\n"


def _csv(path: Path, steps: list[dict[str, Any]]) -> None:
    path.write_text(_lines(steps))


def _odd_names(path: Path, steps: list[dict[str, Any]]) -> None:
    """Wear in tenths, commands by number, columns that nobody could guess."""
    numbers = {"repair": 0, "run": 1}
    odd = [
        {
            "Serial": f"M-{row['run']:03d}",
            "wear level": f"{row['wear'] / 10}",
            "kaputt": int(row["broken"]),
            "command": numbers[row["cmd"]],
            "wear level after": f"{row['wear_next'] / 10}",
            "kaputt after": int(row["broken_next"]),
        }
        for row in steps
    ]
    _csv(path, odd)


def _json_lines(path: Path, steps: list[dict[str, Any]]) -> None:
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for row in steps:
            state = {"wear": row["wear"], "broken": row["broken"]}
            following = {"wear": row["wear_next"], "broken": row["broken_next"]}
            entry = {"state": state, "action": row["cmd"], "next_state": following, "episode": row["run"]}
            file.write((json.dumps(entry) + "\n").encode())


def _hive(path: Path, steps: list[dict[str, Any]]) -> None:
    shutil.rmtree(path, ignore_errors=True)
    for run in range(0, RUNS, 20):
        for half in (0, 10):
            part = [row for row in steps if run + half <= row["run"] < run + half + 10]
            folder = path / f"line={run // 20}"
            folder.mkdir(parents=True, exist_ok=True)
            table = pa.Table.from_pylist(_renamed(part, cmd="action", run="trajectory"))
            pq.write_table(table, folder / f"part-{half // 10}.parquet", row_group_size=37)


def _zst(path: Path, steps: list[dict[str, Any]]) -> None:
    names = {
        "cmd": "act",
        "run": "rollout",
        "t": "timestep",
        "wear_next": "next_wear",
        "broken_next": "next_broken",
    }
    with pa.output_stream(path, compression="zstd") as file:
        file.write(_lines(_renamed(steps, **names), ";").encode())


def _arrow(path: Path, steps: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(_renamed(steps, cmd="a", run="ep", wear_next="wear'", broken_next="broken'"))
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def _next_row(path: Path, steps: list[dict[str, Any]]) -> None:
    """States and commands alone; the last row of a run has no command."""
    listed = []
    for row, after in zip(steps, [*steps[1:], None], strict=True):
        listed.append({"run": row["run"], "wear": row["wear"], "broken": row["broken"], "cmd": row["cmd"]})
        if after is None or after["run"] != row["run"]:
            end = {"run": row["run"], "wear": row["wear_next"], "broken": row["broken_next"], "cmd": ""}
            listed.append(end)
    _csv(path, listed)


def _shuffled(path: Path, steps: list[dict[str, Any]]) -> None:
    order = np.random.default_rng(3).permutation(len(steps))
    names = {"cmd": "action", "run": "run_id"}
    mixed = [{names.get(k, k): v for k, v in steps[i].items() if k != "t"} for i in order]
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(_lines(mixed).encode())


def _by_index(path: Path, steps: list[dict[str, Any]]) -> None:
    columns = machine().structure.valuations
    number = {
        (int(w), bool(b)): i for i, (w, b) in enumerate(zip(columns["wear"], columns["broken"], strict=True))
    }
    table = pa.table(
        {
            "s": [number[row["wear"], row["broken"]] for row in steps],
            "action": [row["cmd"] for row in steps],
            "s_next": [number[row["wear_next"], row["broken_next"]] for row in steps],
            "done": [row["broken_next"] for row in steps],
            "timeout": [row["t"] == 11 and not row["broken_next"] for row in steps],
        }
    )
    pq.write_table(table, path)


def _counted(path: Path, steps: list[dict[str, Any]]) -> None:
    seen: dict[tuple[Any, ...], int] = {}
    for row in steps:
        key = row["wear"], row["broken"], row["cmd"], row["wear_next"], row["broken_next"]
        seen[key] = seen.get(key, 0) + 1
    names = ("wear", "broken", "action", "wear'", "broken'")
    _csv(
        path, [{**dict(zip(names, key, strict=True)), "counts": times} for key, times in sorted(seen.items())]
    )


if __name__ == "__main__":
    write_logs()
