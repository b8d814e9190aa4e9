"""The paper's tables as data: complete, correctly tied to our instances, disagreements found.

The transcription was made from the paper's source by a program; the checksums below keep it from
changing by accident, the spot values from having been wrong in a systematic way.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from hashlib import sha256

import pytest

from tightrope.benchmarks.suite import list_instances, parse_bench
from tightrope_campaigns import published
from tightrope_campaigns.published import (
    NOTES,
    RESULT_TABLES,
    SIZES_TABLES,
    PublishedResult,
    disagreements,
    read_published_results,
    read_published_sizes,
    results_of,
    sizes_of,
)

TOTAL, SPLIT, BIG = RESULT_TABLES
CHECKSUMS = {
    "sizes.csv": "c53eb36a3bfacf59ec4251ec1fa9d27a3f256ad0abc2deeb16adac106dbd5224",
    "results.csv": "49cbf8c8579467cd1f27701beb2de835ad3396ecb4752b9eab5f3ad006549e8a",
}


def cell(table: str, name: str, method: str) -> PublishedResult:
    (found,) = (r for r in results_of(parse_bench(name)) if r.table == table and r.method == method)
    return found


@pytest.mark.parametrize("name", CHECKSUMS)
def test_the_data_are_unchanged(name: str) -> None:
    assert sha256((published._DATA / name).read_bytes()).hexdigest() == CHECKSUMS[name]


def test_the_tables_are_complete() -> None:
    assert Counter(row.table for row in read_published_sizes()) == dict(
        zip(SIZES_TABLES, (18, 6), strict=True)
    )
    assert Counter(r.table for r in read_published_results()) == {TOTAL: 18 * 4, SPLIT: 18 * 4, BIG: 18 * 6}
    for table, methods in ((TOTAL, 4), (SPLIT, 4), (BIG, 6)):
        rows = [r for r in read_published_results() if r.table == table]
        assert {(r.row, r.method) for r in rows} == {
            (row, method) for row in range(1, 19) for method in {r.method for r in rows}
        }
        assert len({r.method for r in rows}) == methods


def test_every_published_row_is_one_of_our_instances() -> None:
    known = {(i.family, i.arguments) for i in list_instances()}
    assert {(r.family, r.arguments) for r in read_published_sizes()} == known
    assert {(r.family, r.arguments) for r in read_published_results()} <= known


@pytest.mark.parametrize("instance", list_instances(), ids=lambda i: i.name)
def test_our_sizes_are_the_papers_but_for_the_glider(instance) -> None:
    paper = sizes_of(instance)
    assert paper is not None
    assert paper.states == instance.sizes.states
    exact = (paper.transitions, paper.expressions) == (instance.sizes.transitions, instance.sizes.expressions)
    assert exact == (instance.family != "glider")
    assert paper.kind == ("probability" if instance.property_text.startswith("P") else "reward")


def test_the_gliders_sizes_are_close() -> None:
    paper = [sizes_of(parse_bench(f"glider({a})")) for a in ("11,9", "21,17", "51,47", "71,67")]
    assert [(row.transitions, row.expressions) for row in paper if row] == [
        (1317, 225),
        (5209, 777),
        (37066, 4977),
        (74299, 9768),
    ]


def test_spot_values() -> None:
    first = cell(TOTAL, "aircraft(50,10)", "tied")
    assert (first.lower, first.upper, first.relative_gap) == (
        Decimal("0.67"),
        Decimal("0.814"),
        Decimal("0.19"),
    )
    assert first.seconds == Decimal("4.04") and first.build_seconds is None and not first.timed_out
    split = cell(SPLIT, "rover(125,125)", "expression/polytope")
    assert (split.lower, split.upper) == (Decimal("0.599"), Decimal("0.635"))
    assert (split.build_seconds, split.solve_seconds) == (Decimal("111.17"), Decimal("2195.12"))
    ellipsoid = cell(BIG, "engagement(300)", "parameter/ellipsoid")
    assert (ellipsoid.lower, ellipsoid.upper) == (Decimal("15.7"), Decimal("9110"))
    last = cell(BIG, "parallel(20)", "rectangular/polytope")
    assert last.timed_out and last.lower is None and last.relative_gap is None
    assert cell(BIG, "betting(135)", "tied").printed == "(150, 0.55)"
    assert cell(TOTAL, "glider(71,67)", "tied").printed == "(106, 99)"


def test_time_outs() -> None:
    count = Counter(r.table for r in read_published_results() if r.timed_out)
    assert count == {TOTAL: 6, SPLIT: 6, BIG: 8}
    assert all((r.lower is None) == r.timed_out for r in read_published_results())


def test_bounds_are_in_order() -> None:
    for result in read_published_results():
        if not result.timed_out:
            assert result.lower is not None and result.upper is not None
            assert 0 <= result.lower < result.upper


def test_the_two_parts_add_up_to_the_total_where_nothing_is_noted() -> None:
    parts = {(r.family, r.arguments, r.method): r for r in read_published_results() if r.table == SPLIT}
    off = set()
    for result in (r for r in read_published_results() if r.table == TOTAL and not r.timed_out):
        part = parts[result.family, result.arguments, result.method]
        assert (
            result.seconds is not None and part.build_seconds is not None and part.solve_seconds is not None
        )
        if abs(result.seconds - part.build_seconds - part.solve_seconds) > Decimal("0.011"):
            off.add((result.family, result.arguments, result.method))
    assert off == {("glider", (51, 47), "rectangular/polytope"), ("parallel", (5,), "tied")}


def test_disagreements_between_the_tables() -> None:
    cells = {(d.family, d.arguments, d.method) for d in disagreements()}
    polytopes = ("parameter/polytope", "expression/polytope", "rectangular/polytope")
    assert cells == {
        *(("betting", (n,), method) for n in (50, 135) for method in ("tied", *polytopes)),
        *(("glider", (51, 47), method) for method in ("tied", *polytopes)),
        *(("glider", (71, 67), method) for method in ("tied", *polytopes[:2])),
        ("parallel", (5,), "tied"),
        ("parallel", (5,), "parameter/polytope"),
        ("parallel", (5,), "rectangular/polytope"),
    }
    (gap,) = (d for d in disagreements() if (d.family, d.method, d.quantity) == ("parallel", "tied", "upper"))
    assert dict(gap.values) == {TOTAL: Decimal("29.4"), SPLIT: Decimal("44.7"), BIG: Decimal("29.4")}
    assert len(NOTES) == 10


@pytest.mark.parametrize(
    "name", ["betting(50)", "betting(100)", "betting(135)", "parallel(10)", "parallel(20)"]
)
def test_our_optimum_is_the_papers_where_its_model_is_known(name: str) -> None:
    instance = parse_bench(name)
    for result in results_of(instance):
        implied = result.implied_optimum()
        if result.table == BIG and implied is not None:
            assert implied[0] <= float(instance.optimum) <= implied[1]
