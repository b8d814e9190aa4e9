"""Ways in which logs lose, double, reorder or cut rows: certified and covered, or not certified.

    python benchmarks/log_coverage.py             200 logs each way, a few minutes
    python benchmarks/log_coverage.py --smoke     few logs each way, seconds

A fleet runs and fails with a known probability (in discrete time) or rate (in continuous time). Its log is
then spoiled in one way, or left as it is, and learned from at δ = 0.1 by every method whose ledger speaks
of it: beta-binomial intervals, the likelihood region, intervals of rates. A way fails where intervals that
are called certified miss the truth more often than δ allows (the 99.9 % lower confidence bound of their
rate exceeds δ). What is not certified, or refused in words, cannot fail. `two agents` is an adaptive rule
across two files: the second agent tosses each of 40 coins until most tosses agree with the first one's.

Prints a table: certified logs, misses among them, misses among the others; then in how many logs a planned
number of episodes is used where it is stated, and where it is not. Leaves with status 1 where a way fails.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import beta

import tightrope as tr
from tightrope.data.counts import Counts
from tightrope.data.exposure import read_exposure
from tightrope.errors import InputError
from tightrope.statistics.confidence_budget import assumed_of
from tightrope.statistics.estimates import IntervalMethod, event_intervals
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.prequential import Evidence, prequential

DELTA = 0.1
FAILS, REPAIRS = 0.2, 0.6
RATE = 0.5
UNITS, HOURS, COINS = 20, 30, 40

Random = np.random.Generator
Row = tuple[Any, float, str, str | None]
"""Unit, time, state, action."""

Log = tuple[Any, dict[str, Any]]
"""What is read, and what is said of it."""


@cache
def machine() -> tr.ParametricMDP:
    """It runs and may fail; it is repaired, and that may take longer."""
    parameters = tr.Parameters.box(p=(0.001, 0.999), q=(0.001, 0.999))
    p, q = parameters.symbols()

    def successors(state: str) -> dict[str, dict[str, Any]]:
        if state == "ok":
            return {"run": {"ok": 1 - p, "down": p}}
        return {"repair": {"ok": q, "down": 1 - q}}

    model = tr.build_from_function("ok", successors, parameters)
    assert isinstance(model, tr.ParametricMDP)
    return model


@cache
def coins() -> tr.ParametricMDP:
    parameters = tr.Parameters.box(**{f"p{i}": (0.01, 0.99) for i in range(COINS)})
    symbols = parameters.symbols()
    rows: list[Any] = [(0, f"toss{i}", {1: s, 2: 1 - s}) for i, s in enumerate(symbols)]
    rows += [(1, "stay", {1: 1}), (2, "stay", {2: 1})]
    model = tr.build_from_rows(rows, parameters)
    assert isinstance(model, tr.ParametricMDP)
    return model


@cache
def chain() -> Any:
    parameters = tr.Parameters.box(lam=(0.001, 20))
    (lam,) = parameters.symbols()
    return tr.build_ctmc_from_rows([(0, {1: lam}), (1, {0: 1})], parameters, labels={"down": [1]})


def fleet(random: Random, units: int = UNITS, hours: int = HOURS) -> list[Row]:
    """Hourly rows of all units, in time order; the last actions have no outcome yet."""
    rows: list[Row] = []
    state = ["ok"] * units
    for hour in range(hours):
        for unit in range(units):
            rows.append(
                (f"u{unit:02d}", 10.0 + hour, state[unit], "run" if state[unit] == "ok" else "repair")
            )
            if random.random() < (FAILS if state[unit] == "ok" else REPAIRS):
                state[unit] = "down" if state[unit] == "ok" else "ok"
    return rows


def table(rows: list[Row], **more: list[Any]) -> pa.Table:
    names = ("episode", "time", "state", "action")
    return pa.table({**{name: [row[i] for row in rows] for i, name in enumerate(names)}, **more})


def by_unit(rows: list[Row]) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


def in_time(parts: list[list[Row]]) -> list[Row]:
    return sorted((row for part in parts for row in part), key=lambda row: row[1])


NOW = {"until_now": True}
WAYS: dict[str, Callable[[Random], Log]] = {}
IN_TIME: dict[str, Callable[[Random], Log]] = {}


def way(name: str) -> Callable[[Callable[[Random], Log]], Callable[[Random], Log]]:
    def keep(make: Callable[[Random], Log]) -> Callable[[Random], Log]:
        WAYS[name] = make
        return make

    return keep


def timed(name: str) -> Callable[[Callable[[Random], Log]], Callable[[Random], Log]]:
    def keep(make: Callable[[Random], Log]) -> Callable[[Random], Log]:
        IN_TIME[name] = make
        return make

    return keep


# --- a fleet in discrete time --------------------------------------------------------------------------

WAYS["as it is, nothing said"] = lambda random: (table(fleet(random)), {})
WAYS["as it is, until now"] = lambda random: (table(fleet(random)), NOW)
WAYS["as it is, watched until its end"] = lambda random: (
    table(fleet(random)),
    {"watched_until": 9.0 + HOURS},
)
WAYS["one unit"] = lambda random: (table(fleet(random, 1, 200)), {})


@way("sorted by unit, until now")
def _(random: Random) -> Log:
    return table([row for part in by_unit(fleet(random)).values() for row in part]), {**NOW, "order": "time"}


@way("a file for each unit, until now")
def _(random: Random) -> Log:
    return [table(part) for part in by_unit(fleet(random)).values()], NOW


@way("shuffled rows, until now")
def _(random: Random) -> Log:
    rows = fleet(random)
    return table([rows[i] for i in random.permutation(len(rows))]), {**NOW, "order": "time"}


@way("the row of a failure is lost, and the unit with it")
def _(random: Random) -> Log:
    kept = []
    for part in by_unit(fleet(random)).values():
        down = next((i for i, row in enumerate(part) if row[2] == "down"), len(part))
        kept.append(part[:down])
    return table(in_time(kept)), NOW


@way("the same, nothing said")
def _(random: Random) -> Log:
    return WAYS["the row of a failure is lost, and the unit with it"](random)[0], {}


@way("the same, with step numbers and no times")
def _(random: Random) -> Log:
    log = WAYS["the row of a failure is lost, and the unit with it"](random)[0]
    rows = sorted(zip(*(log[name].to_pylist() for name in log.column_names), strict=True), key=lambda r: r[0])
    step = [int(row[1] - 10) for row in rows]
    columns = {"episode": [r[0] for r in rows], "step": step, "state": [r[2] for r in rows]}
    return pa.table({**columns, "action": [r[3] for r in rows]}), {}


@way("a last row that failed is lost")
def _(random: Random) -> Log:
    rows = fleet(random)
    last = max(row[1] for row in rows)
    return table([row for row in rows if not (row[1] == last and row[2] == "down")]), NOW


@way("the last hour is missing for all")
def _(random: Random) -> Log:
    rows = fleet(random)
    last = max(row[1] for row in rows)
    return table([row for row in rows if row[1] < last]), NOW


@way("short episodes whose failing last rows are lost")
def _(random: Random) -> Log:
    rows: list[Row] = []
    for run in range(200):
        states = ["ok", "down" if random.random() < FAILS else "ok"]
        for step, state in enumerate(states):
            if not (step and state == "down" and random.random() < 0.7):
                rows.append((run, 2.0 * run + step, state, "run" if step == 0 else None))
    return table(rows), {}


@way("every row three times")
def _(random: Random) -> Log:
    return table([row for row in fleet(random) for _ in range(3)]), NOW


@way("every row three times, copies dropped")
def _(random: Random) -> Log:
    return table([row for row in fleet(random) for _ in range(3)]), {**NOW, "drop_duplicates": True}


@way("rows of failures three times")
def _(random: Random) -> Log:
    return table([row for row in fleet(random) for _ in range(3 if row[2] == "down" else 1)]), NOW


@way("two states at one instant")
def _(random: Random) -> Log:
    rows = fleet(random)
    return table(
        [r for row in rows for r in ([row, (*row[:2], "ok", "run")] if row[2] == "down" else [row])]
    ), NOW


@way("the file is appended to itself")
def _(random: Random) -> Log:
    rows = fleet(random)
    return table([*rows, *rows]), NOW


@way("holes of eight hours")
def _(random: Random) -> Log:
    rows = fleet(random)
    begin = {f"u{unit:02d}": 10 + int(random.integers(2, HOURS - 10)) for unit in range(UNITS)}
    return table([row for row in rows if not begin[row[0]] <= row[1] < begin[row[0]] + 8]), NOW


@way("rows of failures are lost within")
def _(random: Random) -> Log:
    rows = fleet(random)
    last = max(row[1] for row in rows)
    return table([row for row in rows if row[2] == "ok" or row[1] == last or random.random() < 0.3]), NOW


@way("half of the rows are lost at random")
def _(random: Random) -> Log:
    return table([row for row in fleet(random) if random.random() < 0.5]), NOW


@way("only changes are written")
def _(random: Random) -> Log:
    kept = []
    for part in by_unit(fleet(random)).values():
        kept.append([row for i, row in enumerate(part) if i == 0 or row[2] != part[i - 1][2]])
    return table(in_time(kept)), NOW


@way("states that cannot be read are dropped")
def _(random: Random) -> Log:
    rows = [(*r[:2], "?" if r[2] == "down" and random.random() < 0.5 else r[2], r[3]) for r in fleet(random)]
    return table(rows), {**NOW, "skip_invalid": True}


@way("a new name after each failure")
def _(random: Random) -> Log:
    rows: list[Row] = []
    number: dict[Any, int] = {}
    for unit, time, state, action in fleet(random):
        if state == "down":
            number[unit] = number.get(unit, 0) + 1
            continue
        rows.append((f"{unit}-{number.get(unit, 0)}", time, state, action))
    return table(rows), NOW


@way("the log ends when failures look frequent")
def _(random: Random) -> Log:
    rows = fleet(random, UNITS, 60)
    for hour in range(8, 60):
        part = [row for row in rows if row[1] < 10 + hour]
        pairs = [(a[2], b[2]) for unit in by_unit(part).values() for a, b in itertools.pairwise(unit)]
        runs = [after for before, after in pairs if before == "ok"]
        if runs.count("down") / len(runs) > FAILS + 0.05:
            return table(part), NOW
    return table(rows), NOW


@way("units that failed are no longer watched, and marked so")
def _(random: Random) -> Log:
    rows: list[Row] = []
    over: list[bool] = []
    for part in by_unit(fleet(random)).values():
        down = next((i for i, row in enumerate(part) if row[2] == "down"), len(part) - 1)
        rows += [(*row[:3], row[3] if i < down else None) for i, row in enumerate(part[: down + 1])]
        over += [i == down for i in range(down + 1)]
    return table(rows, truncated=over), {}


@way("only failures are marked as ends, and lost")
def _(random: Random) -> Log:
    rows: list[Row] = []
    for part in by_unit(fleet(random)).values():
        down = next((i for i, row in enumerate(part) if row[2] == "down"), len(part))
        rows += part[:down]
    return table(rows, done=[False] * len(rows)), {}


@way("dates of one day each")
def _(random: Random) -> Log:
    rows = [(row[0], float(int(row[1] // 24)), *row[2:]) for row in fleet(random)]
    return table(rows), NOW  # type: ignore[arg-type]


@way("one unit's clock is two hours late")
def _(random: Random) -> Log:
    rows = [(row[0], row[1] + 2 if row[0] == "u03" else row[1], *row[2:]) for row in fleet(random)]
    return table(in_time([rows])), NOW  # type: ignore[list-item]


@way("a plan of episodes that came")
def _(random: Random) -> Log:
    rows: list[Row] = []
    for run in range(200):
        after = "down" if random.random() < FAILS else "ok"
        rows += [(run, 2.0 * run, "ok", "run"), (run, 2.0 * run + 1, after, None)]
    over = [i % 2 == 1 for i in range(400)]
    return table(rows, truncated=over), {"planned_episodes": 200}


@way("a plan of episodes of which those that failed did not come")
def _(random: Random) -> Log:
    log = WAYS["a plan of episodes that came"](random)[0]
    state, keep = log["state"].to_pylist(), []
    for run in range(200):
        keep += [not (state[2 * run + 1] == "down" and random.random() < 0.4)] * 2
    return log.filter(pa.array(keep)), {"planned_episodes": 200}


@way("a table of counts without failures that were lost")
def _(random: Random) -> Log:
    failed = int(random.binomial(400, FAILS))
    columns = {"state": ["ok", "ok"], "action": ["run"] * 2, "next_state": ["ok", "down"]}
    return pa.table({**columns, "count": [400 - failed, failed // 3]}), {}


# --- a fleet in continuous time ------------------------------------------------------------------------


def sojourns(random: Random, episodes: int, length: float) -> list[list[tuple[float, int]]]:
    """The moments of changes of every episode, each watched from 0 on."""
    found = []
    for _ in range(episodes):
        clock, state, rows = 0.0, 0, [(0.0, 0)]
        while True:
            clock += float(random.exponential(1 / (RATE if state == 0 else 1.0)))
            if clock >= length:
                break
            state = 1 - state
            rows.append((clock, state))
        found.append(rows)
    return found


def changes(parts: list[list[tuple[float, int]]], **more: list[Any]) -> pa.Table:
    rows = [(number, *row) for number, part in enumerate(parts) for row in part]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("episode", "time", "state"))}
    return pa.table({**columns, **more})


LENGTH, EPISODES = 4.0, 60


def _changes(random: Random) -> list[list[tuple[float, int]]]:
    return sojourns(random, EPISODES, LENGTH)


IN_TIME["changes, nothing said"] = lambda random: (changes(_changes(random)), {})
IN_TIME["changes, watched until T"] = lambda random: (changes(_changes(random)), {"watched_until": LENGTH})
IN_TIME["changes, until the last instant"] = lambda random: (changes(_changes(random)), NOW)
IN_TIME["one episode"] = lambda random: (changes(sojourns(random, 1, 300.0)), {})


@timed("changes and a row at the end")
def _(random: Random) -> Log:
    return changes([[*part, (LENGTH, part[-1][1])] for part in _changes(random)]), {}


@timed("changes, a column says until when")
def _(random: Random) -> Log:
    parts = _changes(random)
    return changes(parts, until=[LENGTH] * sum(map(len, parts))), {"watched_until": "until"}


@timed("completed sojourns only")
def _(random: Random) -> Log:
    rows = [
        (number, b[0] - a[0], a[1])
        for number, part in enumerate(_changes(random))
        for a, b in itertools.pairwise(part)
    ]
    return pa.table({n: [row[i] for row in rows] for i, n in enumerate(("episode", "duration", "state"))}), {}


@timed("all sojourns, stated to be complete")
def _(random: Random) -> Log:
    parts = [[*part, (LENGTH, 0)] for part in _changes(random)]
    rows = [(n, b[0] - a[0], a[1]) for n, part in enumerate(parts) for a, b in itertools.pairwise(part)]
    columns = {n: [row[i] for row in rows] for i, n in enumerate(("episode", "duration", "state"))}
    return pa.table(columns), {"ends": "complete"}


@timed("polled, and the last failure lost with its unit")
def _(random: Random) -> Log:
    parts = []
    for part in _changes(random):
        first = next((at for at, state in part if state == 1), LENGTH)
        parts.append([(float(at), 0) for at in np.arange(0, first, 0.1)])
    return changes(parts), {}


@timed("every row twice")
def _(random: Random) -> Log:
    return changes([[row for row in part for _ in range(2)] for part in _changes(random)]), {}


@timed("every row twice, copies dropped, watched until T")
def _(random: Random) -> Log:
    parts = [[row for row in part for _ in range(2)] for part in _changes(random)]
    return changes(parts), {"drop_duplicates": True, "watched_until": LENGTH}


@timed("rows of all episodes in time order, watched until T")
def _(random: Random) -> Log:
    whole = changes(_changes(random))
    return whole.sort_by([("time", "ascending")]), {"watched_until": LENGTH}


@timed("two files, one for each half of the time")
def _(random: Random) -> Log:
    parts = _changes(random)
    halves = [[[r for r in part if (r[0] < 2) is early] for part in parts] for early in (True, False)]
    return [changes(half) for half in halves], {"watched_until": LENGTH}


@timed("marked as truncated")
def _(random: Random) -> Log:
    parts = [[*part, (LENGTH, part[-1][1])] for part in _changes(random)]
    flags = [i == len(part) - 1 for part in parts for i in range(len(part))]
    return changes(parts, truncated=flags), {}


# --- two agents ----------------------------------------------------------------------------------------


def two_agents(random: Random) -> Log:
    """The second agent tosses each coin until most of its tosses agree with the first agent's one.

    It writes the file that comes first by name. Read in that order its tosses foretell those of the first
    agent, which in truth came before them; in time order they do not.
    """
    files: list[list[tuple[float, str, int]]] = [[], []]
    clock = itertools.count()
    for coin in range(COINS):
        first = random.random() < 0.5
        files[1].append((float(next(clock)), f"toss{coin}", 2 - int(first)))
        lead = tosses = 0
        while lead < 1 and tosses < 9:
            again = random.random() < 0.5
            files[0].append((float(next(clock)), f"toss{coin}", 2 - int(again)))
            lead, tosses = lead + (1 if again == first else -1), tosses + 1
    tables = []
    for agent, rows in zip("ba", files, strict=True):
        columns: dict[str, list[Any]] = {"episode": [f"{agent}{number}" for number in range(len(rows))]}
        columns |= {"time": [row[0] for row in rows], "state": [0] * len(rows)}
        columns |= {"action": [row[1] for row in rows], "next_state": [row[2] for row in rows]}
        tables.append(pa.table(columns))
    return tables, {}


def two_agents_as_read(random: Random) -> Log:
    tables, words = two_agents(random)
    return [part.drop_columns(["time"]) for part in tables], words


# --- plans ---------------------------------------------------------------------------------------------


def raw_log(random: Random) -> tuple[pa.Table, int]:
    """Episodes of many lengths without marks of their ends, and how many there are."""
    episodes = int(random.integers(20, 80))
    rows: list[tuple[int, str, str, str]] = []
    for episode in range(episodes):
        state = "ok"
        for _ in range(int(random.integers(1, 6))):
            fails = random.random() < (FAILS if state == "ok" else REPAIRS)
            after = ("down" if state == "ok" else "ok") if fails else state
            rows.append((episode, state, "run" if state == "ok" else "repair", after))
            state = after
    names = ("episode", "state", "action", "next_state")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)}), episodes


def plans_used(logs: int, seed: int = 1) -> tuple[int, int]:
    """In how many of so many raw logs the plan of the number of episodes is used where one is stated, and
    where none is.
    """
    stated = by_chance = 0
    for number in range(logs):
        table_, episodes = raw_log(np.random.default_rng([seed, number]))
        for words in ({"planned_episodes": episodes}, {}):
            counts = tr.read_data(table_, machine(), **words).counts
            used = evidence_of(machine(), counts).shares is None
            stated += used and bool(words)
            by_chance += used and not words
    return stated, by_chance


# --- what comes out ------------------------------------------------------------------------------------


@dataclass
class Tally:
    """Of one way and method: logs that are called certified, those of them that miss, and other misses."""

    certified: int = 0
    missed: int = 0
    nominal_missed: int = 0
    logs: int = 0

    def add(self, holds: bool, inside: bool) -> None:
        self.logs += 1
        self.certified += holds
        self.missed += holds and not inside
        self.nominal_missed += not holds and not inside

    @property
    def fails(self) -> bool:
        if not self.missed:
            return False
        low = float(beta.ppf(0.001, self.missed, self.certified - self.missed + 1))
        return low > DELTA


def evidence_of(model: tr.ParametricMDP, counts: Counts) -> Evidence:
    """What the likelihood region is made of."""
    return prequential(Outcomes.of(model), counts, DELTA)


def is_inside(model: tr.ParametricMDP, counts: Counts, truth: dict[str, float]) -> tuple[bool, bool]:
    """Whether the likelihood region claims to hold, and whether the truth lies in it."""
    evidence = evidence_of(model, counts)
    point = [truth[name] for name in model.parameters.names]
    values = model.expressions.values(np.array(point))
    seen = evidence.weight > 0
    score = float(evidence.weight[seen] @ np.log(values[seen]))
    assumed = assumed_of(evidence.assumption, counts.design, tied=True, ordered=True)
    return all(one.holds for one in assumed), score >= evidence.threshold


def judge(log: Log, model: tr.ParametricMDP, truth: dict[str, float]) -> dict[str, tuple[bool, bool]]:
    """Certified and inside, of each method."""
    data, words = log
    states = {} if model.structure.state_names is not None else {"states": "index"}
    counts = tr.read_data(data, model, **states, **words).counts
    found = event_intervals(model, counts, DELTA, IntervalMethod.BETA_BINOMIAL)
    point = [truth[name] for name in model.parameters.names]
    values = [float(found.events.function(e).evaluate(point)) for e in range(len(found.events))]
    inside = all(low <= v <= high for low, v, high in zip(found.lower, values, found.upper, strict=True))
    result = {"intervals": (found.ledger.holds, inside)}
    if counts.batches is not None:
        result["likelihood"] = is_inside(model, counts, truth)
    return result


def judge_rates(log: Log) -> dict[str, tuple[bool, bool]]:
    data, words = log
    exposure = read_exposure(data, chain(), **words)
    found = tr.learn(tr.Problem(chain(), 'S=? [ "down" ]'), exposure, delta=DELTA)
    ((_, low, high, *_),) = found.rates
    return {"rates": (found.ledger.holds, low <= RATE <= high)}


def run(logs: int, seed: int = 1) -> dict[tuple[str, str], Tally]:
    """Every way, so many times."""
    truth = {"p": FAILS, "q": REPAIRS}
    fair = {f"p{i}": 0.5 for i in range(COINS)}
    every: dict[str, Callable[[Random], dict[str, tuple[bool, bool]]]] = {}
    for name, make in WAYS.items():
        every[name] = lambda random, make=make: judge(make(random), machine(), truth)  # type: ignore[misc]
    for name, make in IN_TIME.items():
        every[f"in time: {name}"] = lambda random, make=make: judge_rates(make(random))  # type: ignore[misc]
    every["two agents"] = lambda random: judge(two_agents(random), coins(), fair)
    every["two agents, no times"] = lambda random: judge(two_agents_as_read(random), coins(), fair)
    result: dict[tuple[str, str], Tally] = {}
    for name, look in every.items():
        for number in range(logs):
            try:
                found = look(np.random.default_rng([seed, number, len(name)]))
            except InputError:
                found = {"refused": (False, True)}
            for method, (holds, inside) in found.items():
                result.setdefault((name, method), Tally()).add(holds, inside)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--smoke", action="store_true")
    asked = parser.parse_args()
    found = run(4 if asked.smoke else asked.logs)
    print(f"{'way':62} {'method':11} {'logs':>5} {'certified':>9} {'missed':>6} {'else missed':>11}")
    for (name, method), tally in found.items():
        mark = "  FAILS" if tally.fails else ""
        print(
            f"{name:62} {method:11} {tally.logs:5} {tally.certified:9} {tally.missed:6} "
            f"{tally.nominal_missed:11}{mark}"
        )
    logs = 4 if asked.smoke else asked.logs
    stated, by_chance = plans_used(logs)
    print(f"plans of episodes used: {stated} of {logs} that are stated, {by_chance} of {logs} that are not")
    return int(any(tally.fails for tally in found.values()) or stated < logs or by_chance > 0)


if __name__ == "__main__":
    sys.exit(main())
