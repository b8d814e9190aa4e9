"""The page of results is what the recorded runs say, and these say nothing about whose machine it was."""

from __future__ import annotations

import re

from places import TESTS
from tightrope_campaigns.cells import Protocol
from tightrope_campaigns.records import ONLINE_FILE, read_online, read_records
from tightrope_campaigns.results_page import online_section, results_page

DOCS = TESTS.parent / "docs"
RECORDS = DOCS / "results" / "records.jsonl"
CURVES = DOCS / "results" / ONLINE_FILE


def test_the_page_of_results_is_generated_from_the_recorded_runs() -> None:
    records = read_records(RECORDS)
    section = online_section(read_online(CURVES), "images/online-curves.svg") if CURVES.is_file() else None
    page = results_page(records, "docs/results", "docs/results/paper.md", section)
    assert (DOCS / "results" / "paper.md").read_text(encoding="utf-8") == page


def test_recorded_runs_name_no_machine() -> None:
    text = RECORDS.read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|work|usr)/|hostname", text)


def test_recorded_runs_follow_the_papers_protocol_and_contain_the_true_value() -> None:
    for record in read_records(RECORDS):
        assert record.cell.protocol == Protocol()
        if record.status == "ok" and record.values["holds"]:
            assert record.values["covers"], record.cell
