"""Simulating betting(100) beside a Gymnasium loop and Storm's simulator, and reading ten million rows.

    python benchmarks/simulation_speed.py            about two minutes
    python benchmarks/simulation_speed.py --smoke    betting(25) and 100,000 rows, in seconds

Every line is measured in a process of its own, one core, in CPU seconds; kernels are loaded and tables built
before the clock starts. All three simulators walk the same MDP (the benchmark at its true point) under the
uniform policy from the initial state to the absorbing states. The Gymnasium loop is what one writes
by hand: an environment over the same arrays that draws the successor with the environment's generator.

The files hold one row a step, states by index or by the model's variables. Peak memory is that of the
process beyond what it held before reading; a tenth of the rows shows that it does not grow.

Prints tables and writes the rows as JSON (default: bench-results/simulation_speed.json). Leaves with
status 1 where fewer than 10 million steps a second are walked or reading takes more than 200 MiB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STEPS_A_SECOND = 10_000_000
READING_MEBIBYTES = 200.0

Row = dict[str, Any]


def model_and_mdp(name: str) -> tuple[Any, Any]:
    from tightrope.benchmarks.suite import load, parse_bench

    instance = parse_bench(name)
    model = load(instance)
    return model, model.instantiate(instance.truth)


def timed(begin: float, steps: int) -> Row:
    seconds = time.process_time() - begin
    return {"steps": steps, "cpu_seconds": round(seconds, 4), "steps_a_second": round(steps / seconds)}


def walk_with_tightrope(name: str, episodes: int) -> Row:
    from tightrope.data.simulator import Simulator

    _, mdp = model_and_mdp(name)
    simulator = Simulator(mdp, threads=1)
    simulator.episodes(1, 0)
    begin = time.process_time()
    counts = simulator.episodes(episodes, 1)
    return timed(begin, counts.steps)


def walk_with_gymnasium(name: str, episodes: int) -> Row:
    import gymnasium

    from tightrope.data.design import absorbing_states

    _, mdp = model_and_mdp(name)
    end = absorbing_states(mdp.structure).tolist()
    choice_start, transition_start = mdp.choice_start.tolist(), mdp.transition_start.tolist()
    successor, probability = mdp.successor.tolist(), mdp.probability.tolist()

    class Environment(gymnasium.Env[int, int]):
        """The MDP behind Gymnasium's interface."""

        observation_space = gymnasium.spaces.Discrete(mdp.states)
        action_space = gymnasium.spaces.Discrete(int(np.diff(mdp.choice_start).max()))

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[int, dict[str, Any]]:
            super().reset(seed=seed)
            self.state = mdp.initial
            return self.state, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            choice = choice_start[self.state] + action
            left = self.np_random.random()
            t = transition_start[choice]
            while t + 1 < transition_start[choice + 1] and left >= probability[t]:
                left -= probability[t]
                t += 1
            self.state = successor[t]
            return self.state, 0.0, end[self.state], False, {}

    environment = Environment()
    random = np.random.default_rng(7)
    environment.reset(seed=1)
    begin = time.process_time()
    steps = 0
    for _ in range(episodes):
        state, _ = environment.reset()
        ended = False
        while not ended:
            action = int(random.integers(choice_start[state + 1] - choice_start[state]))
            state, _, ended, _, _ = environment.step(action)
            steps += 1
    return timed(begin, steps)


def walk_with_storm(name: str, episodes: int) -> Row:
    import random

    import stormpy
    import stormpy.simulator

    from tightrope.benchmarks.suite import parse_bench

    instance = parse_bench(name)
    program = stormpy.parse_prism_program(str(instance.path), simplify=False)
    given = [f"{constant}={value}" for constant, value in instance.constants.items()]
    program, _ = stormpy.instantiate_constants(program, ",".join([*given, instance.truth_text]))
    model = stormpy.build_model(program)
    simulator = stormpy.simulator.create_simulator(model, seed=1)
    choices = random.Random(7)
    begin = time.process_time()
    steps = 0
    for _ in range(episodes):
        simulator.restart()
        while not simulator.is_done():
            actions = simulator.available_actions()
            simulator.step(actions[choices.randrange(len(actions))])
            steps += 1
    return timed(begin, steps)


WALKERS = {"tightrope": walk_with_tightrope, "gymnasium": walk_with_gymnasium, "storm": walk_with_storm}


def peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_file(name: str, rows: int, states: str, path: str) -> Row:
    """A file of about `rows` steps; the last episode is whole."""
    from tightrope.data.columns import StateForm
    from tightrope.data.simulator import Simulator
    from tightrope.data.writing import write_trajectories

    model, mdp = model_and_mdp(name)
    simulator = Simulator(mdp, model_hash=model.hash(), threads=1)
    length = simulator.episodes(100, 1).steps / 100
    episodes = max(1, round(rows / length))
    counts = simulator.episodes(episodes, 1)
    begin = time.process_time()
    blocks = simulator.trajectories(episodes, 1)
    write_trajectories(path, blocks, counts, model.structure, states=StateForm(states))
    return {"steps": counts.steps, "cpu_seconds": round(time.process_time() - begin, 3)}


def read_file(name: str, path: str) -> Row:
    from tightrope.data.reading import read_data

    model, _ = model_and_mdp(name)
    tiny = Path(path).with_name("tiny" + Path(path).suffix)
    write_file(name, 1000, "index", str(tiny))
    read_data(tiny, model)
    before, begin, wall = peak_mebibytes(), time.process_time(), time.perf_counter()
    reading = read_data(path, model)
    return {
        "rows": reading.rows,
        "cpu_seconds": round(time.process_time() - begin, 3),
        "wall_seconds": round(time.perf_counter() - wall, 3),
        "mebibytes": round(peak_mebibytes() - before, 1),
    }


TASKS = {**WALKERS, "write": write_file, "read": read_file}


def apart(task: str, *arguments: object) -> Row:
    """Run a task in a process of its own."""
    command = [sys.executable, __file__, "--here", task, json.dumps(arguments)]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        sys.exit(f"{task}{arguments} failed:\n{finished.stderr}")
    row: Row = json.loads(finished.stdout.splitlines()[-1])
    return row


def here(task: str, *arguments: object) -> Row:
    """In this process, for smoke runs: memory is then not that of the task alone."""
    return TASKS[task](*arguments)


def compare_walks(name: str, episodes: dict[str, int]) -> list[Row]:
    print(f"{'':<12} {'steps':>12} {'CPU s':>8} {'steps/s':>14}")
    rows = []
    for tool, number in episodes.items():
        row = {"tool": tool, "instance": name, **apart(tool, name, number)}
        print(
            f"{tool:<12} {row['steps']:>12,} {row['cpu_seconds']:>8.2f} {row['steps_a_second']:>14,}",
            flush=True,
        )
        rows.append(row)
    return rows


FILES = (
    ("parquet", "index", 1),
    ("parquet", "variables", 10),
    ("parquet", "variables", 1),
    ("csv", "variables", 10),
    ("csv", "variables", 1),
)
"""Format, how states are given, and what part of the rows: all, or a tenth."""


def compare_readings(
    name: str, rows: int, files: tuple[tuple[str, str, int], ...] = FILES, measure: Callable[..., Row] = apart
) -> list[Row]:
    print(f"\n{'file':<28} {'rows':>12} {'MB':>8} {'CPU s':>8} {'peak MiB':>9}")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix, states, part in files:
            path = Path(folder) / f"steps.{suffix}"
            measure("write", name, rows // part, states, str(path))
            row = {"file": f"{suffix}, states by {states}", **measure("read", name, str(path))}
            row["megabytes"] = round(path.stat().st_size / 1e6, 1)
            print(
                f"{row['file']:<28} {row['rows']:>12,} {row['megabytes']:>8} {row['cpu_seconds']:>8.2f}"
                f" {row['mebibytes']:>9}",
                flush=True,
            )
            results.append(row)
    return results


def missed(walks: list[Row], readings: list[Row]) -> list[str]:
    """Which goals are not reached."""
    found = []
    ours = next(row for row in walks if row["tool"] == "tightrope")
    if ours["steps_a_second"] < STEPS_A_SECOND:
        found.append(f"only {ours['steps_a_second']:,} steps a second")
    for row in readings:
        if row["mebibytes"] > READING_MEBIBYTES:
            found.append(f"{row['file']}, {row['rows']:,} rows: {row['mebibytes']} MiB")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small sizes; goals are not judged")
    parser.add_argument("--json", type=Path, default=Path("bench-results/simulation_speed.json"))
    parser.add_argument("--here", nargs=2, metavar=("TASK", "ARGUMENTS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        task, arguments = options.here
        print(json.dumps(TASKS[task](*json.loads(arguments))))
        return
    if options.smoke:
        walks = compare_walks("betting(25)", {"tightrope": 10_000, "gymnasium": 100, "storm": 100})
        readings = compare_readings("betting(25)", 100_000, FILES[2:4], here)
    else:
        walks = compare_walks("betting(100)", {"tightrope": 1_000_000, "gymnasium": 5_000, "storm": 5_000})
        readings = compare_readings("betting(100)", 10_000_000)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(
        json.dumps({"walks": walks, "readings": readings}, indent=1) + "\n", encoding="utf-8"
    )
    faults = [] if options.smoke else missed(walks, readings)
    for fault in faults:
        print(f"goal missed: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
