"""A smoke run of `benchmarks/rivals.py`, and its worst cases against linear programs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from benchmark_script import BENCHMARKS, run_benchmark

sys.path.insert(0, str(BENCHMARKS))
import rivals

sys.path.remove(str(BENCHMARKS))


@pytest.mark.long
def test_all_rivals_answer(tmp_path: Path) -> None:
    finished = run_benchmark("rivals.py", "--smoke", "--json", tmp_path / "rows.json")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    rows = {
        line[18:44].strip(): line[44:].split() for line in finished.stdout.splitlines() if "chain" in line[:6]
    }
    assert set(rivals.METHODS) <= set(rows)
    assert rows["IS, betting"] == ["–"]  # returns that nothing bounds
    assert rows["UCRL2"][0] == "∞" and rows["MAP + Storm"][:2] == ["a", "point"]
    gap = {name: float(rows[name][0]) for name in ("LUI", "PAC, Hoeffding", "tightrope, untied", "tightrope")}
    assert gap["LUI"] < gap["tightrope"] < gap["tightrope, untied"] < gap["PAC, Hoeffding"]  # a loss is shown
    parts = []
    for name in ("chain", "bets"):  # two parts, in the wrong order
        one = json.loads((tmp_path / "rows.json").read_text().replace('"chain"', f'"{name}"'))
        one["command"] = f"python benchmarks/rivals.py --replications 2 --worlds {name} --json {name}.json"
        parts.append(tmp_path / f"{name}.json")
        parts[-1].write_text(json.dumps(one))
    whole = rivals.merge(parts)
    assert whole["command"] == "python benchmarks/rivals.py --replications 2"
    assert list(dict.fromkeys(row["world"] for row in whole["rows"])) == ["bets", "chain"]
    with pytest.raises(SystemExit, match="in common"):
        rivals.merge([parts[0], parts[0]])
    (tmp_path / "docs" / "results").mkdir(parents=True)
    for page in ("README.md", "docs/index.md", "docs/rivals.md", "docs/results/improve.md"):
        shutil.copy(rivals.ROOT / page, tmp_path / page)
    known = json.loads((tmp_path / "rows.json").read_text())
    for row in [dict(row) for row in known["rows"]]:
        known["rows"] += [{**row, "world": name} for name in rivals.SHORT.values() if name != row["world"]]
    (tmp_path / "rows.json").write_text(json.dumps(known))
    rivals.write_pages(tmp_path / "rows.json", tmp_path)
    page = (tmp_path / "docs/rivals.md").read_text()
    ours = next(row for row in known["rows"] if row["method"] == "tightrope")
    shown = f"{ours['gap']:.2g} · {ours['misses']}"
    assert "seeds 1 to 2;" in page and f"| tightrope | {shown} |" in page
    assert "medians over 1 logs" in (tmp_path / "docs/results/improve.md").read_text()
    for name in ("README.md", "docs/index.md"):
        assert "| 0 of 8; the bootstrap missed" in (tmp_path / name).read_text()
    assert f"| tightrope | {shown} | {shown} |" in (tmp_path / "README.md").read_text()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("high", [False, True])
@pytest.mark.parametrize("kind", ["box", "ball"])
def test_worst_distributions_solve_their_linear_programs(kind: str, high: bool) -> None:
    here = rivals.world("chain")
    random = np.random.default_rng(3)
    for _ in range(3):
        log = rivals.Log.draw(here, int(random.integers(1000)), 20)
        middle, worth = rivals.estimate(here, log, 2.0), random.random(here.successor.shape)
        radius = random.uniform(0, 1.5, here.choices)
        if kind == "box":
            least = np.where(here.possible, np.maximum(middle - radius[:, None] / 2, 0), 0.0)
            most = np.where(here.possible, np.minimum(middle + radius[:, None] / 2, 1), 0.0)
            sets: rivals.Box | rivals.Ball = rivals.Box(least, most)
        else:
            sets = rivals.Ball(middle, radius)
        found = sets.extreme(here, worth, high)
        assert np.allclose(found.sum(axis=1), 1.0)
        for choice in range(here.choices):
            sign, n = (-1.0 if high else 1.0), here.width
            if kind == "box":
                solved = linprog(
                    sign * worth[choice],
                    A_eq=np.ones((1, n)),
                    b_eq=[1],
                    bounds=list(zip(least[choice], most[choice], strict=True)),
                )
                best = sign * solved.fun
            else:  # p − centre = u − v, Σ (u + v) ≤ radius
                centre = middle[choice]
                solved = linprog(
                    np.concatenate([sign * worth[choice], -sign * worth[choice]]),
                    A_eq=[[1.0] * n + [-1.0] * n],
                    b_eq=[0],
                    A_ub=np.vstack([[1.0] * (2 * n), np.hstack([-np.eye(n), np.eye(n)])]),
                    b_ub=[radius[choice], *centre],
                    bounds=[(0, 0 if not p else None) for p in here.possible[choice]] * 2,
                )
                best = sign * solved.fun + float(worth[choice] @ centre)
            assert float(found[choice] @ worth[choice]) == pytest.approx(best, abs=1e-6)


def test_values_agree_with_the_solver() -> None:
    for name in ("chain", "bets", "encounter"):
        here = rivals.world(name)
        choices, _ = here.small
        assert here.many_values(here.real[choices][None])[0] == pytest.approx(here.value)
        point = rivals.Box(here.real, here.real)
        assert rivals.both(here, point) == pytest.approx((here.value, here.value))
    assert rivals.world("chain").value == pytest.approx(sum(0.8**-i for i in range(1, 5)))


def test_weighted_returns_have_the_value_as_their_mean() -> None:
    here = rivals.world("encounter")
    found = rivals.weighted(here, rivals.Log.draw(here, 1, 20_000))
    assert found is not None
    result, weight, span = found
    sample = weight * result
    assert span == (0.0, 1.0)
    assert abs(sample.mean() - here.value) < 4 * sample.std() / 20_000**0.5
    assert abs(weight.mean() - 1.0) < 4 * weight.std() / 20_000**0.5


@pytest.mark.costly("test_values_agree_with_the_solver")
def test_longer_episodes_make_narrower_intervals() -> None:
    finished = run_benchmark("episode_caps.py", "--smoke")
    (short, _), (long, anytime) = (
        (float(line.split()[5]), float(line.split()[8])) for line in finished.stdout.splitlines()
    )
    assert long < anytime and long < 0.7 * short
