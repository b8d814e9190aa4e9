"""A smoke run of `benchmarks/shield.py`, and its vectorised agents against the shield itself."""

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
    monkeypatch.setattr(sys, "argv", ["shield.py", "--smoke", "--json", str(record)])
    assert benchmark.main() == 0
    content = json.loads(record.read_text())
    assert content["totals"]["shield"] == {"misses": 0, "pairs": 8, "rate": 0.0}
    assert {row["agent"] for row in content["rows"]} == set(benchmark.AGENTS)


def test_agents_play_as_the_shield_allows() -> None:
    benchmark = load_benchmark()
    here = benchmark.world("rover(4,4)")
    result = tr.learn(here.problem, here.log(200, 1), delta=0.1, effort="quick")
    shield = result.shield(slack=0.03)
    guard, structure = benchmark.Guard.of(shield), here.truth.structure
    returns, _ = benchmark.play(here, guard, "expensive", 400, 3)
    rng, successes = np.random.default_rng(5), 0
    for _ in range(400):
        shield.start()
        state = structure.initial
        while not here.ends[state]:
            shown = show_state(structure, state)
            prices = shield.allowed(shown)
            shield.take(shown, max(prices, key=lambda name: prices[name]))
            first, last = structure.transition_start[shield._by : shield._by + 2]
            state = int(rng.choice(structure.successor[first:last], p=here.truth.probability[first:last]))
        successes += bool(here.objective.target[state])
    assert abs(successes / 400 - returns.mean()) < 0.05 and returns.mean() > guard.promise
