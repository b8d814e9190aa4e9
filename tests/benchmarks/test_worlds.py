"""The worlds of `benchmarks/worlds.py`: their truth is exact, and none of the first is proved and wrong."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

from places import TESTS


@pytest.fixture(scope="module")
def worlds() -> ModuleType:
    path = TESTS.parent / "benchmarks" / "worlds.py"
    spec = importlib.util.spec_from_file_location("worlds", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["worlds"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_six_environments_twice_and_none_is_proved_and_wrong(worlds: ModuleType) -> None:
    systems = [worlds.world(family, 0) for family in worlds.FAMILIES]
    answers = [worlds.ask((system, seed, "tied")) for system in systems for seed in range(2)]
    assert not any(now.is_wrong for now, _ in answers)
    words = {now.family: now.word for now, _ in answers}
    assert words["right"] == "proved" and words["memory"] == words["ties"] == "contradicted"
    lines = worlds.table(answers)
    assert len(lines) == 1 + 2 * 7 and lines[-2].split()[:3] == ["all", "now", "12"]


@pytest.mark.costly("test_an_agent_is_contradicted_by_what_its_runs_returned")
def test_true_value_is_what_many_episodes_show(worlds: ModuleType) -> None:
    for family, number in (("memory", 0), ("hidden", 1), ("units", 0)):
        system = worlds.replace(worlds.world(family, number), episodes=2_000)
        rows = system.log(7).to_pydict()
        paths: dict[int, list[int]] = {}
        for episode, state, after in zip(rows["episode"], rows["state"], rows["next_state"], strict=True):
            paths.setdefault(episode, [state]).append(after)
        target = system.marked if '"marked" ]' in system.prop else len(system.rows)
        met = []
        for path in paths.values():
            lost = [s for s in path if s in ({target, system.marked} if "!" in system.prop else {target})]
            met.append(bool(lost) and lost[0] == target)
        assert abs(float(np.mean(met)) - system.truth()) < 0.04
    assert worlds.world("right", 3).limit() == pytest.approx(worlds.world("right", 3).truth())


def test_an_agent_is_contradicted_by_what_its_runs_returned(worlds: ModuleType) -> None:
    assert worlds.agent_truth('!"run" U "edit"') == 0.0
    assert worlds.agent_truth('F "submit"') == pytest.approx(0.715, abs=0.001)
    lines = worlds.agent_lines(asked=worlds.ASKED[:2])
    assert lines[2].endswith("contradicted, outcomes contradict it") and lines[3].endswith("contradicted")
    shown = [
        float(part) for part in lines[2].replace("[", "").replace("]", "").replace(",", "").split()[4:10]
    ]
    assert shown[0] > 0.1 and shown[4:] == shown[2:4] and shown[5] < 0.03
