"""A smoke run of `benchmarks/shield.py`, and its computed returns against agents under the shield itself."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tightrope as tr
from tightrope.model.states import show_state


def load_benchmark() -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "shield.py"
    spec = importlib.util.spec_from_file_location("shield_benchmark", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_smoke_run_misses_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    benchmark = load_benchmark()
    record = tmp_path / "shield.json"
    monkeypatch.setattr(sys, "argv", ["shield.py", "--smoke", "--speed", "--json", str(record)])
    assert benchmark.main() == 0
    content = json.loads(record.read_text())
    assert content["totals"]["shield"] == {"misses": 0, "pairs": 8, "rate": 0.0}
    assert {row["agent"] for row in content["rows"]} == set(benchmark.AGENTS)
    speed = content["speed"]
    assert (speed["states"], speed["model"], speed["size"]) == (2_000, "rover(5,5)", 955)
    assert 0 < speed["step"] <= speed["slowest"] < 1_000 and 0 < speed["again"] < 10


def test_what_is_computed_is_what_agents_under_the_shield_return() -> None:
    benchmark = load_benchmark()
    here = benchmark.world("aircraft(6,3)")
    shield = tr.learn(here.problem, here.log(300, 1), delta=0.1, effort="quick").shield(slack=0.05)
    guard, structure = benchmark.Guard.of(shield), here.truth.structure
    computed, _ = benchmark.returns(here, guard, "expensive", 1)
    cost, rng, successes = guard.levels(here), np.random.default_rng(5), 0
    for _ in range(600):
        shield.start()
        state, level = structure.initial, benchmark.LEVELS
        while not here.ends[state]:
            shown = show_state(structure, state)
            shield.allowed(shown)
            choices = range(*structure.choice_start[state : state + 2].tolist())
            choice = max((c for c in choices if cost[c] <= level), key=lambda c: guard.price[c])
            shield.take(shown, shield.choices[choice])
            level -= cost[choice]
            first, last = structure.transition_start[choice : choice + 2]
            state = int(rng.choice(structure.successor[first:last], p=here.truth.probability[first:last]))
        successes += bool(here.objective.target[state])
    assert abs(successes / 600 - computed) < 0.07 and computed > guard.promise
