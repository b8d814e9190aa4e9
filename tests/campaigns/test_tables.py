"""Tables and summary: our figures beside the paper's, marked, and the same from the same records."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from tightrope.benchmarks.suite import parse_bench
from tightrope_campaigns.cells import Cell, CellLimits, Protocol
from tightrope_campaigns.records import Record, Status
from tightrope_campaigns.tables import (
    bound_text,
    gap_text,
    instance_tables,
    interval_text,
    latex_tables,
    markdown_tables,
    papers_cells,
    ratios,
    seconds_text,
    summary,
    text_summary,
    text_tables,
    verdicts,
)


def record(
    instance: str,
    method: str,
    lower: float = math.nan,
    upper: float = math.nan,
    *,
    optimum: float = 27.011,
    seed: int = 1,
    status: Status = "ok",
    solve: float = 0.5,
    protocol: Protocol | None = None,
    **flags: Any,
) -> Record:
    cell = Cell(instance, method, seed, protocol or Protocol())
    values: dict[str, Any] = {
        "lower": lower,
        "upper": upper,
        "optimum": optimum,
        "relative_gap": (upper - lower) / optimum,
        "covers": lower <= optimum <= upper,
        "certified": True,
        "empty": False,
        "holds": True,
        "seconds": {"statistics": 0.25, "region": 0.0, "sets": 0.25, "solve": solve},
        "peak_memory": 300 << 20,
        **flags,
    }
    message = None if status == "ok" else "more than 60 s (solve)"
    machine = {"cores": 2, "memory": 24 << 30, "cpu": "a CPU"}
    limits = CellLimits(60.0, 1 << 30)
    return Record(
        cell, limits, status, message, values if status == "ok" else {}, machine, {"python": "3.11"}
    )


RECORDS = [
    record("betting(50)", "tied", 14.51234, 65.25, holds=False),
    record("betting(50)", "parameter/polytope", 25.5, math.inf, solve=100.0),
    record("betting(50)", "expression/polytope", 25.8, 28.5),
    record("betting(50)", "expression/likelihood", 26.5, 27.58),
    record("betting(50)", "rectangular/polytope", status="time-out"),
    record("rover(50,50)", "rectangular/polytope", 0.49959, 0.53031, optimum=0.5162),
    record("rover(50,50)", "expression/likelihood", 0.625, 0.75, optimum=0.5162, empty=True, certified=False),
]


def test_figures_are_rounded_outward() -> None:
    assert interval_text(14.51234, 64.90001) == "[14.51, 64.91]"
    assert interval_text(0.49959, 0.53031) == "[0.4995, 0.5304]"
    assert interval_text(0.0, math.inf) == "[0, ∞]"
    assert bound_text(35254.2, True) == "35255" and bound_text(-1.23456, False) == "-1.235"
    assert bound_text(1e-9, False) == "0" and bound_text(1e-9, True) == "0.0001"
    assert bound_text(100.0, True) == "100" and bound_text(12300.0, False) == "12300"
    assert interval_text(30.125, 59512397.65) == "[30.12, 5.96e7]" and gap_text(1401462.1) == "1.4e6"
    assert bound_text(9.999e8, True) == "10.00e8" and bound_text(1e300, False) == "1.00e300"
    for value in (6.02e23, 0.001234567, 3.14159, 99.9999, 12345.678):
        assert float(bound_text(value, False)) <= value <= float(bound_text(value, True))


def test_short_numbers() -> None:
    assert [gap_text(x) for x in (0.0014, 0.9999, 9.999, 99.99, 127.35)] == [
        "0.001",
        "1.00",
        "10.0",
        "100",
        "127",
    ]
    assert [seconds_text(x) for x in (0.0004, 1.5, 44.95, 7199.6)] == ["0.000", "1.50", "45.0", "7200"]


def test_the_papers_figures_stand_beside_ours() -> None:
    betting, rover = instance_tables(RECORDS)
    assert betting.instance.name == "betting(50)" and betting.provenance == "reconstructed model"
    assert rover.provenance == "reconstructed model, our coefficients"
    tied = betting.rows[0]
    assert tied.published is not None and tied.record is not None
    assert (str(tied.published.lower), str(tied.published.upper)) == ("14.4", "65.3")
    assert tied.disputed  # the table with ellipsoids prints other bounds
    assert [row.method.name for row in rover.rows] == ["rectangular/polytope", "expression/likelihood"]
    assert rover.rows[0].paper_timed_out and rover.rows[1].published is None


def test_where_the_papers_tables_differ_most_of_them_count() -> None:
    cells = papers_cells(parse_bench("parallel(5)"))
    assert (str(cells["tied"].lower), str(cells["tied"].upper)) == ("24", "29.4")  # 44.7 in one of three
    assert cells["tied"].build_seconds is not None
    betting = papers_cells(parse_bench("betting(50)"))
    assert (str(betting["tied"].lower), str(betting["tied"].upper)) == ("14.4", "65.3")
    assert len(betting) == 6 and betting["expression/ellipsoid"].table == "tab:bigtable"


def test_unvisited_rows_are_shown_where_asked() -> None:
    (table,) = instance_tables(RECORDS[:1], with_missing=True)
    assert [row.record is None for row in table.rows] == [False, True, True, True, True, True]
    assert "not run" in text_tables([table])


def test_of_several_seeds_the_median_is_shown() -> None:
    several = [record("betting(50)", "tied", 20.0, 30.0 + seed, seed=seed) for seed in (3, 1, 2)]
    failed = record("betting(50)", "tied", status="time-out", seed=4)
    (table,) = instance_tables([*several, failed])
    (row,) = table.rows
    assert row.record is not None and row.record.cell.seed == 2 and row.seeds == 4


def test_another_protocol_is_another_table_without_the_papers_figures() -> None:
    other = record("betting(50)", "tied", 10.0, 70.0, protocol=Protocol(1000, 0.05))
    tables = instance_tables([RECORDS[0], other])
    assert len(tables) == 2
    shown = next(t for t in tables if not t.is_papers_protocol)
    assert shown.rows[0].published is None
    assert "1,000 episodes, δ 0.05" in " ".join(text_tables([shown]).split())


def test_text_fits_80_columns_and_marks_what_needs_it() -> None:
    text = text_tables(instance_tables(RECORDS))
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(
        r"tied +\[14\.51, 65\.25\]° +1\.88 +0\.500 +0\.500 +\[14\.4, 65\.3\]† +1\.88 +2\.71", text
    )
    assert re.search(r"rectangular +TO +– +– +– +\[25\.8, 28\.7\]†", text)
    assert re.search(r"expr\. likelihood +\[0\.625, 0\.75\]∅~!", text)
    assert re.search(r"parameter +\[25\.5, ∞\] +∞", text)
    assert re.search(r"rectangular +\[0\.4995, 0\.5304\] +0\.060 +0\.500 +0\.500 +TO", text)
    for meaning in ("violate the method's assumption", "tied sets were used", "not contain the true value"):
        assert meaning in " ".join(text.split())


def test_markdown_has_as_many_cells_in_every_row() -> None:
    lines = [line for line in markdown_tables(instance_tables(RECORDS)).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {13}
    assert any(line.startswith("| expression-wise, likelihood (ours) | 26.5 | 27.58 |") for line in lines)


def test_latex_has_as_many_cells_in_every_row_and_no_raw_symbols() -> None:
    text = latex_tables(instance_tables(RECORDS))
    body = [line for line in text.splitlines() if not line.startswith("%")]
    assert all(line.isascii() for line in body)
    for line in body:
        plain = re.sub(r"\\[%&#_${}]", "", line)
        assert plain.count("$") % 2 == 0 and plain.count("{") == plain.count("}"), line
        outside = re.sub(r"\$[^$]*\$", "", plain)
        assert not re.search(r"[_^#%~]", outside), line
    rows = [line for line in body if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count(" & ") for line in rows} == {11}
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    (columns,) = set(re.findall(r"\\begin\{tabular\}\{([lrc]+)\}", text))
    assert len(columns) == 12


def test_the_summary_says_where_we_are_tighter_or_faster_and_where_not() -> None:
    tables = instance_tables(RECORDS)
    found = {verdict.method.name: verdict for verdict in verdicts(tables)}
    assert found["tied"].tighter == () and found["tied"].same == ("betting(50)",)
    assert found["parameter/polytope"].wider == ("betting(50)",)
    assert found["parameter/polytope"].slower == ("betting(50)",)
    assert found["expression/polytope"].faster == ("betting(50)",)
    assert "rectangular/polytope" not in found
    (likelihood,) = [r for r in ratios(tables) if r.method.name == "expression/likelihood"]
    assert likelihood.mean == pytest.approx(1.08 / 2.7)
    text = " ".join(text_summary(summary(tables)).split())
    assert "7 cells shown: 6 ok, 1 time-out." in text
    assert "The true value lies within 5 of 6 intervals, and within 4 of the 5 whose" in text
    assert "Time-out in the paper: rover(50,50), rectangular: [0.4995, 0.5304], gap 0.060, in 1.00 s." in text
    assert summary([]) == ["No cell has been run."]
