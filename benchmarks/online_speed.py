"""What online learning costs: whole runs, and an update beside a fresh `learn` on the same counts.

    python benchmarks/online_speed.py             all six learning instances
    python benchmarks/online_speed.py --smoke     small ones, seconds

Every number is CPU seconds of one thread, after everything is compiled. A fresh `learn` begins with a model
that was just built, as a user's does who learns from a file; the update has the learner's memory. The update
computes the guarantee, the robust and the optimistic policy; `learn` also the far end of the robust policy's
interval, the binding events and the test of the model. Both are measured in one process, one after the
other, at some thirty moments of a run, and their ratio is that of the sums: over all moments, and over the
late ones, after 100 episodes, where little changes from one update to the next. The values must agree to
1e-6, the precision asked for.

Goals: 10,000 episodes of rover(10,10) with `expression` sets in 30 s, all updates included; a late update
three times as cheap as a fresh `learn`. Every case says whether it meets the second one. Leaves with status 1
where the first is missed, an update costs more than `learn`, or values disagree.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import tightrope as tr
from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.learning.learn import learn
from tightrope.learning.online.run import OnlineRun, SimulatedEpisodes, Truth
from tightrope.problem import Problem

MOMENTS = (1, 3, 10, 30, 60, *range(100, 600, 40), *range(600, 2000, 140))
"""Updates are compared with a fresh `learn` at the first update after so many episodes."""

LATE = 100
"""Moments after so many episodes are late ones."""

GOAL_SECONDS = 30.0
GOAL_RATIO = 3.0
AGREEMENT = 1e-5


@dataclass(frozen=True)
class Case:
    """One run, and how many episodes of it are compared with fresh learning."""

    instance: str
    sets: str
    region: str | None
    episodes: int


@dataclass
class Sums:
    """What was measured at each moment, in CPU seconds, and how far values are apart at most."""

    episode: list[int] = field(default_factory=list)
    update: list[float] = field(default_factory=list)
    learn: list[float] = field(default_factory=list)
    off: float = 0.0


CASES = (
    Case("rover(10,10)", "expression", "polytope", 10_000),
    Case("rover(10,10)", "expression", "likelihood", 2_000),
    Case("aircraft(20,10)", "expression", "polytope", 2_000),
    Case("aircraft(20,10)", "rectangular", "polytope", 2_000),
    Case("betting(25)", "tied", None, 500),
    Case("betting(25)", "expression", "likelihood", 300),
    Case("betting(25)", "rectangular", "slab", 300),
    Case("engagement(50)", "expression", "polytope", 2_000),
    Case("glider(11,9)", "rectangular", "polytope", 2_000),
    Case("parallel(6)", "expression", "polytope", 300),
)
SMOKE = (Case("betting(4)", "expression", "likelihood", 30),)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small instances")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/online_speed.json"))
    asked = parser.parse_args()
    rows = []
    print(f"{'':16} {'':24} {'':>8} {'':>7} {'':>7} {'late ones':>19} {'ratio':>14}")
    print(
        f"{'instance':16} {'sets':24} {'episodes':>8} {'updates':>7} {'run s':>7} "
        f"{'update ms':>9} {'learn ms':>9} {'late':>7} {'all':>6}  goal"
    )
    faults = []
    for case in SMOKE if asked.smoke else CASES:
        row = measured(case)
        rows.append(row)
        print(
            f"{case.instance:16} {row['method']:24} {case.episodes:8,} {row['updates']:7} "
            f"{row['run_seconds']:7.2f} {row['update_ms']:9.1f} {row['learn_ms']:9.1f} "
            f"{row['late_ratio']:7.1f} {row['ratio']:6.1f}  {'met' if row['goal_met'] else 'missed'}",
            flush=True,
        )
        if row["late_ratio"] < 1.0 and not asked.smoke:
            faults.append(f"{case.instance} {row['method']}: an update costs more than a fresh learn")
        if row["disagreement"] > AGREEMENT:
            faults.append(f"{case.instance} {row['method']}: values differ by {row['disagreement']:.2g}")
        if case.instance == "rover(10,10)" and case.episodes == 10_000 and row["run_seconds"] > GOAL_SECONDS:
            faults.append(f"rover(10,10): {row['run_seconds']:.1f} s, not {GOAL_SECONDS:g}")
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(json.dumps({"rows": rows, "faults": faults}, indent=1) + "\n")
    met = sum(row["goal_met"] for row in rows)
    print(f"late updates {GOAL_RATIO:g} times as cheap as a fresh learn: {met} of {len(rows)} cases")
    print("\n".join(faults) if faults else "no faults")
    return 1 if faults else 0


def measured(case: Case) -> dict[str, Any]:
    """A whole run without interruption, then the same run again with fresh learning at some moments."""
    _run(Case(case.instance, case.sets, case.region, 3), Sums())  # compiles
    begin = time.process_time()
    updates = _run(case, None)
    seconds = time.process_time() - begin
    sums = Sums()
    _run(case, sums)
    update, fresh = np.array(sums.update), np.array(sums.learn)
    late = np.array(sums.episode) >= LATE
    if not late.any():
        late[:] = True
    ratio = float(fresh[late].sum() / update[late].sum())
    return {
        "instance": case.instance,
        "method": f"{case.sets}{'/' + case.region if case.region else ''}",
        "episodes": case.episodes,
        "updates": updates,
        "run_seconds": seconds,
        "compared": len(update),
        "update_ms": 1000 * float(update[late].mean()),
        "learn_ms": 1000 * float(fresh[late].mean()),
        "late_ratio": ratio,
        "ratio": float(fresh.sum() / update.sum()),
        "goal_met": ratio >= GOAL_RATIO,
        "disagreement": sums.off,
    }


def _run(case: Case, sums: Sums | None) -> int:
    """The number of updates; compares with fresh learning where there are `sums` to add to."""
    instance = parse_bench(case.instance)
    model = load(instance)
    objective = question(instance, model.structure).objective
    mdp = model.instantiate(instance.truth)
    stop = find_decided_states(objective, model.states)
    simulator = Simulator(mdp, None, stop, instance.episode_cap, model.hash(), threads=1)
    online = tr.online(Problem(model, objective), sets=case.sets, region=case.region)
    source = SimulatedEpisodes(simulator, 1)
    if sums is None:
        return len(list(OnlineRun(online, source, case.episodes, Truth(mdp, objective)).records()))
    moments = [moment for moment in MOMENTS if moment <= case.episodes]
    updates = 1
    online.update()
    while online.episodes < case.episodes and moments:
        source.collect(online.policy(), online.data, case.episodes)
        begin = time.process_time()
        update = online.update()
        taken = time.process_time() - begin
        updates += 1
        if update.episode < moments[0]:
            continue
        moments = [moment for moment in moments if moment > update.episode]
        counts, fresh = online.data.counts(), load(instance)
        begin = time.process_time()
        result = learn(Problem(fresh, objective), counts, delta=online.delta, **online.options.words)
        sums.learn.append(time.process_time() - begin)
        sums.update.append(taken)
        sums.episode.append(update.episode)
        if abs(result.guarantee) < float("inf") or abs(update.guarantee) < float("inf"):
            off = abs(result.guarantee - update.guarantee) / max(abs(result.guarantee), 1e-9)
            sums.off = max(sums.off, off)
    return updates


if __name__ == "__main__":
    sys.exit(main())
