"""Campaigns of learning curves: cells, records, tables and figures, and the recorded one in docs/."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import TESTS
from tightrope.cli.app import run
from tightrope.errors import InputError
from tightrope.report.curves import Panel, RunCurve, Series, curves
from tightrope_campaigns.campaign import run_online_campaign, run_online_cell
from tightrope_campaigns.cells import ONLINE_EPISODES, ONLINE_INSTANCES, OnlineCell, online_cells
from tightrope_campaigns.records import ONLINE_FILE, OnlineRecord, read_online, thin
from tightrope_campaigns.results_page import (
    groups,
    make_kept_table,
    make_reached_table,
    online_section,
    soon_table,
    summary_lines,
)

RECORDED = TESTS.parent / "docs" / "results" / ONLINE_FILE


def made(method: str, guarantees: list[float], broken: int = 0, seed: int = 1, best: float = 1.0) -> Any:
    """A record of a maximising run whose episodes are 0 and powers of ten."""
    episode = np.array([10.0**i if i else 0.0 for i in range(len(guarantees))])
    same = np.full(len(guarantees), 0.9)
    columns = {
        "episode": episode,
        "steps": 5 * episode,
        "guarantee": np.array(guarantees),
        "performance": same,
        "optimistic": same,
        "elapsed": episode,
    }
    facts = {
        "optimum": best,
        "maximises": True,
        "updates": len(guarantees),
        "broken": broken,
        "uncertified": 0,
        "assumption": "adaptive and anytime",
        "cpu_seconds": 1.5,
        "machine": {"cores": 2, "memory": 1 << 34, "cpu": "some"},
        "versions": {"tightrope": "0"},
    }
    return OnlineRecord(OnlineCell("rover(10,10)", method, seed, 1000), columns, facts)


def test_the_papers_six_instances_and_every_kind_of_sets_are_the_default() -> None:
    cells = online_cells([], None, [1, 2], None, 0.001)
    assert len(cells) == len(set(cells)) == 6 * 2 * 6
    assert tuple(dict.fromkeys(cell.instance for cell in cells)) == ONLINE_INSTANCES
    assert {cell.episodes for cell in cells} == set(ONLINE_EPISODES.values())
    few = online_cells(["rover", "bench:betting(8)"], "expression,tied", [3], 50, 0.1)
    assert [(cell.instance, cell.method) for cell in few] == [
        ("rover(10,10)", "tied"),
        ("rover(10,10)", "expression"),
        ("betting(8)", "tied"),
        ("betting(8)", "expression"),
    ]
    with pytest.raises(InputError, match="no method 'expresion'"):
        online_cells([], "expresion", [1], None, 0.001)
    with pytest.raises(InputError, match="not within"):
        online_cells([], None, [1], None, 1.5)


def test_a_run_becomes_a_record_and_comes_back(tmp_path: Path) -> None:
    cell = OnlineCell("betting(4)", "expression", 2, 60, 0.05)
    seen: list[OnlineRecord] = []
    records = run_online_campaign([cell], tmp_path, 1, lambda record, done, total: seen.append(record))
    assert records == seen and records[0].cell == cell
    (back,) = read_online(tmp_path / ONLINE_FILE)
    again = run_online_cell(cell)
    assert back.cell == cell and back.updates == again.updates > 5
    assert back.broken == again.broken == 0 and back.facts["holds"] is True
    for name in ("episode", "steps", "guarantee", "performance", "optimistic"):
        assert back.columns[name] == pytest.approx(again.columns[name], rel=1e-6)
    assert back.last["guarantee"] <= back.last["performance"] <= back.optimum * (1 + 1e-6)
    assert run_online_campaign([cell], tmp_path, 1, lambda *_: pytest.fail("it is done")) is not None
    with (tmp_path / ONLINE_FILE).open("ab") as file:
        file.write(b'{"torn')
    assert len(run_online_campaign([cell], tmp_path, 1)) == 1
    (tmp_path / ONLINE_FILE).write_text('{"format": "other"}\n')
    with pytest.raises(InputError, match="not a record of a learning curve"):
        read_online(tmp_path / ONLINE_FILE)


def test_records_are_thinned_to_the_last_update_of_each_cell() -> None:
    records = [
        {
            "episode": episode,
            "steps": episode,
            "guarantee": math.inf if episode < 3 else 1.0 / episode,
            "performance": 1.0,
            "optimistic": 0.0,
            "elapsed": episode / 10,
        }
        for episode in range(2000)
    ]
    columns = thin(records)
    assert columns["episode"][:3].tolist() == [0, 1, 2] and columns["episode"][-1] == 1999
    assert len(columns["episode"]) < 90 and np.all(np.diff(columns["episode"]) > 0)
    record = OnlineRecord(OnlineCell("rover(10,10)", "tied", 1, 2000), columns, {"maximises": False})
    back = OnlineRecord.from_json(json.loads(json.dumps(record.to_json(), allow_nan=False)))
    assert back.columns["guarantee"][0] == math.inf
    assert back.first_reaching(0.1) == pytest.approx(10, rel=0.1)
    assert back.first_reaching(0.0) == math.inf


def test_tables_say_how_soon_and_whether_guarantees_were_kept() -> None:
    records = [
        *(made("tied", [0.0, 0.1, 0.2, 0.5 + 0.01 * seed], seed=seed) for seed in (1, 2, 3)),
        *(made("expression", [0.0, 0.4, 0.6, 0.8], seed=seed, broken=seed == 2) for seed in (1, 2, 3)),
        made("untied", [0.0, 0.0, 0.0, 0.0]),
    ]
    shown = groups(records)
    (row,) = soon_table(shown).rows
    assert row == ("`rover(10,10)`", "0.52", "never", "1,000 (1.0×)", "–", "100 (10×)", "–", "–", "–")
    idle = groups([made("tied", [0.2, 0.2, 0.2]), made("expression", [0.2, 0.2, 0.4])])
    (row,) = soon_table(idle).rows
    assert row[1:] == ("beyond 0.2", "–", "never", "–", "100", "–", "–", "–")
    kept = {row[0]: row[1:] for row in make_kept_table(shown).rows}
    assert kept["expression"][:5] == ("3", "12", "1", "1", "0.003")
    assert kept["tied"][2:4] == ("0", "0")
    assert "in 1 of the runs" in summary_lines(shown)[0]
    assert make_reached_table(shown).rows[1][2:4] == ("0.52", "0.51 – 0.53")
    section = online_section(records, "images/x.svg")
    assert "](images/x.svg)" in section and "1,000 episodes of rover(10,10)" in section
    assert "| `rover(10,10)` | 0.52 |" in section


def test_curves_are_drawn_with_bands_infinities_and_runtimes() -> None:
    episode = np.array([0.0, 1.0, 10.0, 100.0])
    runs = [
        RunCurve(episode, np.array([np.inf, 1e6, 60.0 + k, 50.0]), np.full(4, 40.0 - k), episode / 50 + 0.1)
        for k in range(3)
    ]
    panels = [Panel(title, "expected cost", [Series("tied", runs)], 38.0) for title in ("a", "b", "c")]
    figure = curves(panels)
    above, below = figure.axes[0], figure.axes[1]
    assert len(figure.axes) == 6 and above.get_yscale() == "log" and below.get_xscale() == "log"
    performance, guarantee, best = above.get_lines()
    assert performance.get_linestyle() == "-" and guarantee.get_linestyle() == "--"
    assert np.asarray(guarantee.get_ydata())[-1] == 50.0
    assert np.asarray(performance.get_ydata())[-1] == 39.0, "the median"
    assert list(best.get_ydata()) == [38.0, 38.0]
    assert len(above.collections) == 4 and below.get_ylabel() == "total time [s]"


@pytest.mark.usefixtures("empty_pictures")
def test_the_command_runs_curves_and_writes_the_section(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "curves"
    asked = ["betting(4)", "--methods", "tied,expression", "--episodes", "30", "--jobs", "1"]
    assert run(["bench", "--online", *asked, "-o", str(directory)]) == 0
    captured = capsys.readouterr()
    assert "[2/2] betting(4) expression seed 1" in captured.err and "After all episodes" in captured.out
    assert run(["bench", "--tables", str(directory), "-o", str(tmp_path / "results.md")]) == 0
    page = (tmp_path / "results.md").read_text()
    assert "## Learning online" in page and "images/online-curves.svg" in page
    assert {path.suffix for path in (tmp_path / "images").iterdir()} == {".svg", ".png", ".pdf"}
    capsys.readouterr()
    assert run(["bench", "--tables", str(directory), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["online"]) == 2
    for more in (["--quick"], ["--time-limit", "5s"]):
        assert run(["bench", "--online", *more, "-o", str(directory)]) == 2
        assert "--online goes neither" in capsys.readouterr().err
    assert run(["bench", "--tables", str(directory), "-o", str(tmp_path / "results.tex")]) == 2
    assert "learning curves alone" in capsys.readouterr().err


def test_the_recorded_curves_keep_their_guarantees() -> None:
    """Over all recorded runs no more than δ allows, generously: P(Poisson(0.36) ≥ 4) < 1e-3."""
    records = read_online(RECORDED)
    expected = sum(record.cell.delta for record in records)
    assert sum(record.broken > 0 for record in records) <= expected + 4 * math.sqrt(expected) + 1
    assert all(record.facts["holds"] for record in records)
    assert "/root" not in RECORDED.read_text() and "/home" not in RECORDED.read_text()
