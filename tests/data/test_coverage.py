"""Outcomes that are missing from a log: the result says nominal, and where it claims confidence it has it.

A fair coin is tossed and logged in ways in which the outcome decides what is logged. Seeded simulations show
what goes wrong (the intervals miss the truth nearly always), that this is never called a guarantee, and that
ways of losing data that are called harmless are so: misses stay below δ.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from effort import repeats
from places import TESTS
from tightrope import Parameters, build_from_function, learn, read_data
from tightrope.cli.app import run
from tightrope.data.design import SamplingDesign
from tightrope.data.reading import Reading
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.problem import Problem
from tightrope.statistics.estimates import IntervalMethod, event_intervals

DELTA = 0.05
RUNS = repeats(200)
TRUTH = 0.5

Rows = list[dict[str, Any]]
Log = Callable[[np.random.Generator], Rows]


def coin() -> ParametricMDP:
    """Tossed again and again until it is put away."""
    parameters = Parameters.box(p=(0.01, 0.99))
    (p,) = parameters.symbols()

    def successors(state: str) -> dict[str, dict[str, Any]]:
        if state == "away":
            return {"rest": {"away": 1}}
        return {"toss": {"heads": p, "tails": 1 - p}, "stop": {"away": 1}}

    labels = {"heads": lambda state: state == "heads"}
    model = build_from_function("start", successors, parameters, labels=labels)
    assert isinstance(model, ParametricMDP)
    return model


MODEL = coin()


def toss(random: np.random.Generator) -> str:
    return "heads" if random.random() < TRUTH else "tails"


def step(episode: int, number: int, state: str, after: str | None, **more: Any) -> dict[str, Any]:
    action = "stop" if after == "away" else "toss"
    return {"episode": episode, "step": number, "state": state, "action": action, "next_state": after, **more}


# --- logs in which the outcome decides what is there ----------------------------------------


def unreadable(random: np.random.Generator) -> Rows:
    """Half the tails cannot be read."""
    rows = []
    for episode in range(300):
        after = toss(random)
        lost = after == "tails" and random.random() < 0.5
        rows.append(step(episode, 0, "start", "???" if lost else after))
    return rows


def missing_outcome(random: np.random.Generator) -> Rows:
    """States only, next states from the next row; half the tails are never written."""
    rows: Rows = []
    for episode in range(300):
        after = toss(random)
        rows.append({"episode": episode, "state": "start", "action": "toss"})
        if after == "heads" or random.random() < 0.5:
            rows.append({"episode": episode, "state": after, "action": None})
    return rows


def aborted(random: np.random.Generator) -> Rows:
    """Ends are marked; half the tails end the recording before they are written."""
    rows: Rows = []
    for episode in range(150):
        state = "start"
        for number in range(4):
            after = toss(random)
            if after == "tails" and random.random() < 0.5:
                break
            rows.append(step(episode, number, state, after, terminated=False))
            state = after
        else:
            rows.append(step(episode, 4, state, "away", terminated=True))
    return rows


def gaps(random: np.random.Generator) -> Rows:
    """Half the tails are not written, and the episode goes on: the step numbers show it."""
    rows: Rows = []
    for episode in range(60):
        state = "start"
        for number in range(6):
            after = toss(random)
            if number == 0 or after == "heads" or random.random() < 0.5:
                rows.append(step(episode, number, state, after))
            state = after
    return rows


# --- logs that look like it, and are harmless -----------------------------------------------


def stopped_by_outcome(random: np.random.Generator) -> Rows:
    """Every toss is there; the log ends as soon as heads are ahead by 8, which is optional stopping."""
    rows: Rows = []
    lead = 0
    while lead < 8 and len(rows) < 300:
        after = toss(random)
        rows.append(step(len(rows), 0, "start", after))
        lead += 1 if after == "heads" else -1
    return rows


def truncated_by_outcome(random: np.random.Generator) -> Rows:
    """Every toss is there, ends are marked; an episode is truncated after its first tails."""
    rows: Rows = []
    for episode in range(100):
        state = "start"
        for number in range(5):
            after = toss(random)
            done = after == "tails" or number == 4
            rows.append(step(episode, number, state, after, terminated=False, truncated=done))
            state = after
            if done:
                break
    return rows


def cut_off_at_the_end(random: np.random.Generator) -> Rows:
    """Next states come from the next row; the recording breaks off when tails come up after heads lead."""
    rows: Rows = [{"episode": 0, "state": "start", "action": "toss"}]
    lead = 0
    while len(rows) < 300:
        after = toss(random)
        if after == "tails" and lead >= 6:
            return rows
        rows.append({"episode": 0, "state": after, "action": "toss"})
        lead += 1 if after == "heads" else -1
    return rows


def read(rows: Rows, skip: bool = False, ends: str | None = None) -> Reading:
    return read_data(pa.Table.from_pylist(rows), MODEL, skip_invalid=skip, ends=ends)


def covers(reading: Reading) -> tuple[bool, bool]:
    """Whether the intervals claim to hold, and whether they contain the truth."""
    found = event_intervals(MODEL, reading.counts, DELTA, IntervalMethod.BETA_BINOMIAL)
    inside = bool(np.all((found.lower <= TRUTH) & (found.upper >= TRUTH)))
    return found.ledger.holds, inside


@pytest.mark.thinned(2)
@pytest.mark.parametrize("log", [unreadable, missing_outcome, aborted, gaps])
def test_censored_logs_are_called_nominal_and_would_miss(log: Log) -> None:
    missed = 0
    for seed in range(20):
        reading = read(log(np.random.default_rng(seed)), skip=log is unreadable)
        holds, inside = covers(reading)
        assert not holds
        missed += not inside
    assert missed >= 10, "the censoring of this test does harm"


@pytest.mark.parametrize("log", [stopped_by_outcome, truncated_by_outcome, cut_off_at_the_end])
def test_where_confidence_is_claimed_misses_stay_below_delta(log: Log) -> None:
    missed = 0
    for seed in range(RUNS):
        rows = log(np.random.default_rng(1000 + seed))
        reading = read(rows, ends=None if log is truncated_by_outcome else "complete")
        holds, inside = covers(reading)
        assert holds and reading.counts.design.censored == ()
        missed += not inside
    assert missed <= DELTA * RUNS


def test_the_missing_end_of_a_log_is_harmless_only_at_the_end_and_without_a_plan() -> None:
    table = pa.Table.from_pylist(cut_off_at_the_end(np.random.default_rng(1)))
    alone = read_data(table, MODEL).counts
    assert alone.design.open_end and alone.design.censored == ()
    said = ("the last action of a log has no outcome in it",)
    for design in ("fixed", "generative"):
        assert read_data(table, MODEL, design=design).counts.design.censored == said
    assert (alone + alone).design.censored == said
    assert SamplingDesign.from_json(alone.design.to_json()) == alone.design
    whole = read(stopped_by_outcome(np.random.default_rng(1))).counts
    assert (alone + whole).design.censored == said
    assert (whole + alone).design.censored == () and (whole + alone).design.open_end


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sets": "untied"},
        {"sets": "tied"},
        {"region": "polytope", "sets": "expression"},
        {"region": "l1", "sets": "expression"},
        {"region": "ellipsoid", "sets": "rectangular"},
        {"region": "likelihood", "sets": "rectangular"},
        {"sets": "coupled"},
    ],
)
def test_learn_says_so_whatever_the_region_and_the_sets(options: dict[str, str]) -> None:
    reading = read(unreadable(np.random.default_rng(3)), skip=True)
    result = learn(Problem(MODEL, 'Pmax=? [ F "heads" ]'), reading.counts, delta=DELTA, **options)  # type: ignore[arg-type]
    assert not result.ledger.holds
    assert any("nominal" in line for line in result.ledger.lines)


COIN = """mdp const double p;
module coin
  s : [0..2] init 0;
  [toss] s=0 -> p : (s'=1) + 1-p : (s'=2);
  [rest] s>0 -> true;
endmodule
"""


def test_the_headline_of_learn_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("coin.prism").write_text(COIN)
    random = np.random.default_rng(11)
    rows = ["s,action,s_next"]
    for _ in range(400):
        after = 1 if random.random() < TRUTH else 2
        rows.append(f"0,toss,{'?' if after == 2 and random.random() < 0.5 else after}")
    Path("log.csv").write_text("\n".join(rows) + "\n")
    asked = ["learn", "coin.prism", "--param", "p=0.01:0.99", "--prop", "P=? [ F s=1 ]", "--data", "log.csv"]
    assert run([*asked, "--delta", "0.05"]) == 2
    assert "'?', which is not a number" in capsys.readouterr().err
    assert run([*asked, "--delta", "0.05", "--skip-invalid"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("NOMINAL: probability >= ") and "confidence" not in said.out
    assert said.out.splitlines()[0].endswith(", not guaranteed")
    assert run([*asked, "--delta", "0.05", "--skip-invalid", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ledger"]["holds"] is False
    assert found["robust_policy"]["lower"] > TRUTH, "the interval does miss the truth"


def load_ways() -> ModuleType:
    path = TESTS.parent / "benchmarks" / "log_coverage.py"
    spec = importlib.util.spec_from_file_location("log_coverage", path)
    assert spec is not None and spec.loader is not None
    ways = importlib.util.module_from_spec(spec)
    sys.modules["log_coverage"] = ways
    spec.loader.exec_module(ways)
    return ways


@pytest.mark.long
def test_no_way_to_spoil_a_log_is_certified_and_wrong() -> None:
    """A log of each way; `benchmarks/log_coverage.py` takes 200."""
    ways = load_ways()
    assert len(ways.WAYS) + len(ways.IN_TIME) >= 40
    found = ways.run(1)
    assert {name for name, tally in found.items() if tally.missed} == set()
    certified = {name for (name, _), tally in found.items() if tally.certified}
    assert certified >= {
        "as it is, until now",
        "one unit",
        "sorted by unit, until now",
        "a file for each unit, until now",
        "every row three times, copies dropped",
        "the log ends when failures look frequent",
        "a plan of episodes that came",
        "in time: changes, watched until T",
        "in time: changes and a row at the end",
        "in time: one episode",
        "two agents",
    }
    spoiled = {name for (name, _), tally in found.items() if tally.nominal_missed}
    assert spoiled >= {
        "the row of a failure is lost, and the unit with it",
        "short episodes whose failing last rows are lost",
        "in time: changes, nothing said",
    }


def test_the_order_in_time_keeps_the_second_agent_from_foretelling_the_first() -> None:
    """Read in the order of file names the likelihood region misses, and is not certified."""
    ways = load_ways()
    fair = {f"p{i}": 0.5 for i in range(ways.COINS)}
    missed = {"two_agents": 0, "two_agents_as_read": 0}
    for name in missed:
        for number in range(repeats(4)):
            log = getattr(ways, name)(np.random.default_rng([5, number]))
            holds, inside = ways.judge(log, ways.coins(), fair)["likelihood"]
            assert holds == (name == "two_agents")
            missed[name] += not inside
    assert missed["two_agents"] == 0 and missed["two_agents_as_read"] >= repeats(2)


def test_plans_of_episodes_are_used_where_they_are_stated_and_never_by_chance() -> None:
    assert load_ways().plans_used(10) == (10, 0)
