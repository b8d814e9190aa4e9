"""`docs/benchmarks.md` shows the registry as it is."""

from __future__ import annotations

from size_table import infer_optima, sizes_table

from places import TESTS
from tightrope.benchmarks.families import FAMILIES
from tightrope.benchmarks.suite import parse_bench
from tightrope_campaigns.published import NOTES

DOCS = (TESTS.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def between(start: str, end: str) -> str:
    return DOCS.split(f"<!-- {start} -->\n")[1].split(f"\n<!-- {end} -->")[0]


def test_the_table_of_sizes_is_the_registrys() -> None:
    assert between("table: sizes", "end of table") == sizes_table()


def test_the_notes_on_the_papers_tables_are_all_there() -> None:
    notes = between("notes", "end of notes").replace("\n  ", " ")
    assert notes.split("\n") == [f"- {note}" for note in NOTES]


def test_every_family_has_its_section_and_property() -> None:
    for family in FAMILIES.values():
        section = DOCS.split(f"\n## {family.signature.replace(',', ', ')}\n")[1].split("\n## ")[0]
        assert f"`{family.property_text}`" in section


def test_implied_optima_keep_tables_apart_that_do_not_meet() -> None:
    def groups(name: str) -> int:
        return len(infer_optima(parse_bench(name)))

    assert [groups(f"betting({n})") for n in (25, 50, 100, 135)] == [0, 1, 1, 2]
    assert groups("glider(51,47)") == 2
    (low, high), *_ = infer_optima(parse_bench("rover(50,50)"))
    assert 0.499 < low < high < 0.504
