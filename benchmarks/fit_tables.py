"""Tests of fit on every row of a log, by tables of counts: false alarms, power and changes.

    python benchmarks/fit_tables.py                 2,000 logs of right models, 10^4 to 10^6 rows; minutes
    python benchmarks/fit_tables.py --only changes  one part: right, wrong, few, changes or coins
    python benchmarks/fit_tables.py --smoke         a little of all, seconds

Logs are fleets: units take steps side by side in three states with two actions, and the action depends on
what came out before. `right`: no departure, at most α = 0.001 alarms. `wrong`: outcomes depend on the state
before, on the unit or on a column, 20 logs of 10^6 rows each. `few`: the same departures in 8 logs of 2,700
rows each, those of `doctor_cases.py`, at α = 0.01. `changes`: one probability changes halfway, by 7 standard
errors, in 200 logs; 2,000 without a change. `coins`: 10^6 rows, the second coin depends on the first.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import tightrope as tr
from doctor_cases import column, second_order, unit
from tightrope.data.episode_log import EpisodeLog, LogColumn
from tightrope.data.fit_tables import VISITS, FitTables, VisitGrid
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.examination import SHARES, Examination, examine
from tightrope.monitoring.urns import weigh_changes

Integers = npt.NDArray[np.int64]
ALPHA = 0.001
HEAD = 20_000
FLEET = tr.build_from_rows([(s, a, {0: tr.free, 1: tr.free, 2: tr.free}) for s in range(3) for a in "ab"])


def grid_of(model: ParametricMDP) -> VisitGrid:
    return VisitGrid.of(model.structure, model.signatures)


@dataclass(frozen=True)
class Events:
    """One step of all units."""

    transition: Integers
    before: Integers
    episode: Integers
    since_start: Integers
    since_entry: Integers
    columns: dict[str, Integers]
    place: Integers
    time: Integers


def fleet(units: int, steps: int, departure: str, rng: np.random.Generator) -> Iterator[Events]:
    """The steps of a fleet; its probabilities are drawn anew."""
    chance = rng.dirichlet(np.full(3, 4.0), size=6)
    other = rng.dirichlet(np.full(3, 4.0), size=6)
    strength = {"prev": 0.1, "unit": 0.6, "column": 0.1}.get(departure, 0.0)
    site = rng.integers(0, 4, units)
    odd = rng.random(units) < 0.3
    name = rng.integers(0, 2**62, units)
    state, before = np.zeros(units, dtype=np.int64), np.full(units, -1)
    entry, action = np.zeros(units, dtype=np.int64), rng.integers(0, 2, units)
    came = np.full(units, -1)
    for step in range(steps):
        choice = 2 * state + action
        moved = {"prev": came == 1, "unit": odd, "column": site == 2}.get(departure, odd) * strength
        limits = (1.0 - moved[:, None]) * chance[choice] + moved[:, None] * other[choice]
        to = (rng.random(units)[:, None] > limits.cumsum(axis=1)[:, :2]).sum(axis=1)
        transition = 3 * choice + to
        steps_before, place = np.full(units, step), step * units + np.arange(units)
        columns = {"site": site}
        yield Events(transition, before, name, steps_before, step - entry, columns, place, steps_before)
        entry = np.where(to == state, entry, step + 1)
        action = np.where(to == came, action, 1 - action)
        came, before, state = state, transition, to


def tested(rows: int, departure: str, rng: np.random.Generator) -> Examination:
    """The examination of a fleet's log: its first rows in the order of visits, all by tables."""
    steps = 50
    units = max(rows // steps, 2)
    tables = FitTables(FLEET.structure, grid_of(FLEET))
    kept: list[Events] = []
    for events in fleet(units, steps, departure, rng):
        tables.update(events)
        kept += [events] if len(kept) * units < HEAD else []
    return examine(FLEET, head_of(kept, units), alpha=ALPHA, tables=tables.finish())


def head_of(kept: list[Events], units: int) -> EpisodeLog:
    size = min(len(kept) * units, HEAD)
    row = np.arange(size)
    site = np.concatenate([one.columns["site"] for one in kept])[:size].astype(np.int32)
    return EpisodeLog(
        np.concatenate([one.transition for one in kept])[:size].astype(np.int32),
        np.where(row >= units, row - units, -1).astype(np.int32),
        (row % units).astype(np.int32),
        np.zeros(min(units, size), dtype=np.bool_),
        FLEET.hash(),
        columns={"site": LogColumn(site, tuple("wxyz"))},
    )


def right(logs: int, most: int) -> dict[str, float]:
    alarms, largest, rows = 0, -math.inf, 0
    for number in range(logs):
        rng = np.random.default_rng([1, number])
        size = int(10 ** (4.0 + (math.log10(most) - 4.0) * rng.random() ** 2))
        found = tested(size, "", rng)
        alarms, rows = alarms + found.alarm, rows + found.rows
        largest = max(largest, found.log_e_value)
        if number % 200 == 199:
            print(f"{number + 1:,} logs, {rows:,} rows, {alarms} alarms", flush=True)
    return {"logs": logs, "rows": rows, "alarms": alarms, "largest_log_e": largest}


def wrong(logs: int, rows: int) -> dict[str, float]:
    result: dict[str, float] = {"logs": logs, "rows": rows}
    for departure, feature in (("prev", "prev"), ("unit", "unit:episode"), ("column", "column:site")):
        found = [tested(rows, departure, np.random.default_rng([2, number])) for number in range(logs)]
        result[departure] = sum(one.alarm for one in found)
        result[f"{departure}_named"] = sum(one.alarm and one.findings[0].feature == feature for one in found)
    return result


def few(logs: int, rows: int) -> dict[str, float]:
    """Alarms on short logs, of which every row is tested in the order of visits."""
    result: dict[str, float] = {"logs": logs, "rows": rows}
    for name, case in (("prev", second_order(4, 0.5)), ("unit", unit(4.0)), ("column", column(0.12))):
        for number in range(logs):
            log = case.draw(rows, np.random.default_rng([5, number]))
            result[name] = result.get(name, 0) + examine(case.model, log, alpha=0.01).alarm
    return result


def changes(logs: int, without: int) -> dict[str, float]:
    """Changes of one of two distributions, of 7 standard errors, halfway; sizes from 2,000 to 2·10^6."""
    level, rng = math.log(1.0 / (ALPHA * SHARES["drift"])), np.random.default_rng(3)
    result: dict[str, float] = {"logs": logs, "without": without, "found": 0, "false": 0}
    for number in range(logs + without):
        visits, p = int(10 ** rng.uniform(3.3, 6.3)), rng.uniform(0.1, 0.9)
        z, apart = 7.0 if number < logs else 0.0, 0.0
        for _ in range(20):
            middle = p + (0.5 if p < 0.5 else -0.5) * apart
            apart = z * math.sqrt(middle * (1.0 - middle) * 4.0 / visits)
        at = VISITS[: int(np.searchsorted(VISITS, visits, side="right"))]
        late = np.clip(at[1:] - visits // 2, 0, np.diff(at))
        q = p + apart if p < 0.5 else p - apart
        won = np.r_[0, np.cumsum(rng.binomial(np.diff(at) - late, p) + rng.binomial(late, q))]
        still = np.r_[0, np.cumsum(rng.binomial(np.diff(at), 0.4))]
        counts = [np.stack([at - one, one], axis=1) for one in (won, still)]
        change = weigh_changes(counts, level)
        is_alarm = change is not None and change.log_e >= level
        result["found" if number < logs else "false"] += is_alarm
    return result


def coins(episodes: int) -> dict[str, float]:
    """Two coins; the second depends on the first, which counts of transitions do not show."""
    parameters = tr.Parameters.box(p=(0.01, 0.99), q=(0.01, 0.99))
    p, q = parameters.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {3: 1}), (2, "", {3: 1}), (3, "", {4: q, 5: 1 - q})]
    model: ParametricMDP = tr.build_from_rows([*rows, (4, "", {4: 1}), (5, "", {5: 1})], parameters)
    rng = np.random.default_rng(4)
    first = rng.integers(0, 2, episodes)
    second = rng.random(episodes) < np.where(first == 0, 0.45, 0.05)
    transition = np.stack([first, 2 + first, 5 - second], axis=1).reshape(-1)
    row, step = np.arange(3 * episodes), np.tile(np.arange(3), episodes)
    tables = FitTables(model.structure, grid_of(model))
    for part in np.array_split(row, max(len(row) // 65_536, 1)):
        before = np.where(step[part] > 0, transition[part - 1], -1)
        tables.update(Events(transition[part], before, part // 3, step[part], 0 * part, {}, part, part))
    of_row = np.arange(episodes).repeat(3)
    log = EpisodeLog.of_episodes(transition, of_row, episodes, model.structure, model.hash())
    found = examine(model, log.first(HEAD), alpha=ALPHA, tables=tables.finish())
    return {"rows": found.rows, "log_e": found.log_e_value, "alarm": found.alarm}


def main() -> int:
    parser = argparse.ArgumentParser(description="Tests of fit on every row of a log.")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--only", action="append", choices=("right", "wrong", "few", "changes", "coins"))
    parser.add_argument("--logs", type=int, default=2_000)
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/fit_tables.jsonl"))
    given = parser.parse_args()
    smoke = given.smoke
    parts = {
        "right": lambda: right(3 if smoke else given.logs, 30_000 if smoke else 1_000_000),
        "wrong": lambda: wrong(1 if smoke else 20, 200_000 if smoke else 1_000_000),
        "few": lambda: few(2 if smoke else 8, 2_700),
        "changes": lambda: changes(20 if smoke else 200, 100 if smoke else 2_000),
        "coins": lambda: coins(30_000 if smoke else 333_334),
    }
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with given.output.open("a", encoding="utf-8") as file:
        for name in given.only or parts:
            begin = time.perf_counter()
            row = {"part": name, **parts[name]()}
            print(row, f"{time.perf_counter() - begin:.1f} s", flush=True)
            file.write(json.dumps(row) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
