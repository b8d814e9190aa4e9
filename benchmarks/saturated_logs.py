"""Logs of systems of which nothing is known but what may follow what: every choice a free distribution.

    python benchmarks/saturated_logs.py            25, 80 and 110 distributions, 15,000 events
    python benchmarks/saturated_logs.py --smoke    the same with 14 and 1,500

Random chains and MDPs with 3 to 5 successors a choice, written with `free` rows and by hand, as parameters
with a constraint for each row. One process first learns about a tiny model, so that imports and the loading
of compiled kernels are not counted; seconds are CPU seconds: `load` builds the model from its PRISM text,
`read` reads the log, `learn` answers with all defaults, the test of the model included.

Prints a table and writes the rows as JSON (default: bench-results/saturated_logs.json). Leaves with status 1
where the true value is missed, free rows and parameters do not agree, or a goal is missed: loaded in 2 s,
answered in 20 s.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr

SIZES, EVENTS = (25, 80, 110), 15_000
SMOKE_SIZES, SMOKE_EVENTS = (14,), 1_500
LOAD_SECONDS, LEARN_SECONDS = 2.0, 20.0
Rows = list[tuple[int, str, list[int], np.ndarray]]


def random_rows(distributions: int, actions: int, seed: int) -> Rows:
    """(state, action, successors, probabilities); the goal is state n, failure state n + 1."""
    rng = np.random.default_rng(seed)
    states = distributions // actions
    rows: Rows = []
    for state in range(states):
        for action in "ab"[:actions]:
            size = int(rng.integers(3, 6))
            others = rng.permutation(np.r_[0:state, state + 2 : states + 2])
            successors = sorted([state + 1, *others[: size - 1].tolist()])
            rows.append((state, action, successors, rng.dirichlet(np.ones(size))))
    return rows


def as_prism(rows: Rows, by_hand: bool) -> tuple[str, str | None]:
    """The text of the model, and its domain where parameters are written out."""
    states = rows[-1][0] + 1
    lines = ["mdp" if any(action == "b" for _, action, _, _ in rows) else "dtmc"]
    commands, sums = [], []
    for number, (state, action, successors, _) in enumerate(rows):
        names = [f"p{number}_{i}" for i in range(len(successors) - 1)]
        if by_hand:
            lines += [f"const double {name};" for name in names]
            sums.append(f"{'+'.join(names)} <= 1")
        chances = [*names, f"1-{'-'.join(names)}"] if by_hand else ["free"] * len(successors)
        outcomes = " + ".join(f"{p} : (s'={z})" for p, z in zip(chances, successors, strict=True))
        commands.append(f"  [{action}] s={state} -> {outcomes};")
    lines += [f"module plant\n  s : [0..{states + 1}] init 0;", *commands]
    lines += [f"  [] s>={states} -> true;", "endmodule", f'label "goal" = s={states};']
    return "\n".join(lines), ", ".join(sums) if by_hand else None


def write_log(rows: Rows, events: int, seed: int, path: Path) -> None:
    """Whole episodes of the uniform policy, as many as have so many events."""
    rng = np.random.default_rng(seed)
    of_state: dict[int, Rows] = {}
    for row in rows:
        of_state.setdefault(row[0], []).append(row)
    lines, episode, step, state = ["episode,step,s,action,s_next"], 0, 0, 0
    while len(lines) <= events or step:
        _, action, successors, chances = of_state[state][rng.integers(len(of_state[state]))]
        after = int(rng.choice(successors, p=chances))
        lines.append(f"{episode},{step},{state},{action},{after}")
        step, state = step + 1, after
        if after not in of_state:
            episode, step, state = episode + 1, 0, 0
    path.write_text("\n".join(lines), encoding="utf-8")


def true_value(rows: Rows) -> float:
    """The value at the probabilities that the log was drawn from."""
    states = rows[-1][0] + 1
    listed: list[Any] = []
    for state, action, successors, chances in rows:
        exact = [tr.exact(round(float(p), 9)) for p in chances]
        exact[-1] = 1 - sum(exact[:-1], tr.exact(0))
        listed.append((state, action, dict(zip(successors, exact, strict=True))))
    listed += [(z, "", {z: 1}) for z in (states, states + 1)]
    model = tr.build_from_rows(listed, labels={"goal": [states]})
    return float(tr.solve(model.problem('Pmax=? [ F "goal" ]')).lower[0])


def measure(rows: Rows, by_hand: bool, log: Path, folder: Path) -> dict[str, Any]:
    text, domain = as_prism(rows, by_hand)
    path = folder / "model.prism"
    path.write_text(text, encoding="utf-8")
    begin = time.process_time()
    model = tr.load(path) if domain is None else tr.load(path, domain=domain)
    loaded = time.process_time()
    reading = tr.read_data(log, model)
    read = time.process_time()
    result = tr.learn(model.problem('Pmax=? [ F "goal" ]'), reading, delta=0.05)
    done = time.process_time()
    return {
        "written": "by hand" if by_hand else "free",
        "coordinates": len(model.parameters.names),
        "events": int(reading.counts.steps),
        "sets": result.decisions.sets.value,
        "lower": result.interval.lower,
        "upper": result.interval.upper,
        "load": loaded - begin,
        "read": read - loaded,
        "learn": done - read,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="small sizes, and no goals in seconds")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/saturated_logs.json"))
    given = parser.parse_args()
    sizes, events = (SMOKE_SIZES, SMOKE_EVENTS) if given.smoke else (SIZES, EVENTS)
    found: list[dict[str, Any]] = []
    failed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for actions in (1, 2):
            tiny = random_rows(14, actions, 0)
            write_log(tiny, 200, 0, folder / "log.csv")
            measure(tiny, False, folder / "log.csv", folder)
        print(
            f"{'model':>10} {'written':>8} {'coordinates':>11} {'sets':>10} {'interval':>19} {'truth':>6}",
            end="",
        )
        print(f" {'load':>6} {'read':>6} {'learn':>6}  CPU s")
        for distributions in sizes:
            for actions, kind in ((1, "chain"), (2, "mdp")):
                rows = random_rows(distributions, actions, distributions)
                write_log(rows, events, distributions, folder / "log.csv")
                truth = true_value(rows)
                both = [measure(rows, by_hand, folder / "log.csv", folder) for by_hand in (False, True)]
                for row in both:
                    row |= {"model": f"{kind} {distributions}", "truth": truth}
                    found.append(row)
                    print(
                        f"{row['model']:>10} {row['written']:>8} {row['coordinates']:>11} {row['sets']:>10} "
                        f"[{row['lower']:.5f}, {row['upper']:.5f}] {truth:.4f} "
                        f"{row['load']:6.2f} {row['read']:6.2f} {row['learn']:6.2f}"
                    )
                    if not row["lower"] - 1e-6 <= truth <= row["upper"] + 1e-6:
                        failed.append(f"{row['model']}: the true value is missed")
                    if not given.smoke and (row["load"] > LOAD_SECONDS or row["learn"] > LEARN_SECONDS):
                        failed.append(f"{row['model']} {row['written']}: too slow")
                if abs(both[0]["lower"] - both[1]["lower"]) > 1e-6:
                    failed.append(f"{kind} {distributions}: free rows and parameters do not agree")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(found, indent=1), encoding="utf-8")
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
