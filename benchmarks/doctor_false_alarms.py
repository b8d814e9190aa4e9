"""How often the examination of a log raises an alarm although the model is right.

    python benchmarks/doctor_false_alarms.py                10,000 logs of every kind, about half an hour
    python benchmarks/doctor_false_alarms.py --logs 500     fewer of them
    python benchmarks/doctor_false_alarms.py --looks 3      looked at three times while they grow
    python benchmarks/doctor_false_alarms.py --smoke        a few, seconds

Every log is looked at while it grows, as it ends, and once as planned; an alarm at any look counts. Leaves
with status 1 where more than α = 0.01 of the logs of a kind raise one. Kinds: one path; one with columns;
episodes that end; units; units whose only episode is cut; and decisions that chase what came out (an action
is repeated while its outcomes are alike).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tightrope as tr
from doctor_cases import column, second_order, seen_before, unit
from tightrope.data.episode_log import EpisodeLog
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring import urns
from tightrope.monitoring.examination import examine

ALPHA = 0.01
urns.SMALL = 0  # kernels at every size: what they give is tested to be the same


def chasing() -> tuple[ParametricMDP, Callable[[int, np.random.Generator], EpisodeLog]]:
    """Two states, two actions; the policy stays with the action whose last outcomes were alike."""
    rows = [(s, a, dict.fromkeys(range(2), tr.free)) for s in range(2) for a in ("a", "b")]
    model = tr.build_from_rows(rows)

    def draw(rows: int, rng: np.random.Generator) -> EpisodeLog:
        chance = rng.uniform(0.1, 0.9, size=(2, 2)).tolist()
        state = action = alike = 0
        before = -1
        transition = []
        for u in rng.random(rows).tolist():
            outcome = int(u < chance[state][action])
            transition.append(4 * state + 2 * action + outcome)
            alike = alike + 1 if outcome == before else 0
            before, state = outcome, outcome
            action = action if alike >= 2 else 1 - action
        episode = np.zeros(rows, dtype=np.int64)
        return EpisodeLog.of_episodes(np.array(transition), episode, 1, model.structure, model.hash())

    return model, draw


def main() -> int:
    parser = argparse.ArgumentParser(description="How often a right model is refuted.")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--logs", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--looks", type=int, default=1)
    parser.add_argument("--only", action="append", help="a kind")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/doctor_false_alarms.jsonl"))
    given = parser.parse_args()
    cases = {
        "one path": (second_order(4, 0.0).model, second_order(4, 0.0).draw),
        "a column": (column(0.0).model, column(0.0).draw),
        "episodes": (seen_before(0.0).model, seen_before(0.0).draw),
        "units": (unit(1.0).model, unit(1.0).draw),
        "cut units": (unit(1.0, ends=False).model, unit(1.0, ends=False).draw),
        "chasing": chasing(),
    }
    given.output.parent.mkdir(parents=True, exist_ok=True)
    failed = False
    with given.output.open("a", encoding="utf-8") as file:
        for name, (model, draw) in cases.items():
            if given.only and name not in given.only:
                continue
            alarms, largest = 0, -np.inf
            logs = 2 if given.smoke else given.logs
            for number in range(logs):
                log = draw(given.rows, np.random.default_rng([number, 7]))
                parts = [2**place for place in range(given.looks)]
                looks = [examine(model, log.first(len(log) // part), alpha=ALPHA) for part in parts]
                looks.append(examine(model, log, alpha=ALPHA, planned=True))
                alarms += any(look.alarm for look in looks)
                largest = max(largest, *(look.log_e_value for look in looks))
            failed |= alarms > ALPHA * logs
            row = {"case": name, "logs": logs, "alarms": alarms, "largest": float(largest)}
            print(f"{name}: {alarms} alarms in {logs:,} logs, largest log e-value {largest:.2f}", flush=True)
            file.write(json.dumps(row) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
