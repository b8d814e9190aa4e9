"""The JSON schemas of all documents: the files that are written, and what the commands print with `--json`.

Schemas are made from the records themselves:

    python tools/schemas.py docs/schemas

writes one file per document, and the parser's tables beside their grammar; tests keep both current. The
number in a name is the major version: within it keys are added, never removed or given another meaning. Keys
that an answer has in some cases only are left out of the others (`UNSET`).
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

from tightrope.io.coding import json_schema

DOCUMENTS = {
    "result-2": "io.results:ResultDocument",
    "policy-2": "io.results:PolicyDocument",
    "draws-1": "io.answers:DrawsDocument",
    "manifest-1": "io.output:Manifest",
    "plan-2": "io.answers:PlanDocument",
    "plan-improve-1": "cli.plan:ImprovementPlanAnswer",
    "check-1": "cli.check_answers:CheckAnswer",
    "check-domain-1": "cli.check_answers:DomainAnswer",
    "check-partition-1": "cli.check_answers:PartitionAnswer",
    "compare-1": "io.answers:ComparisonAnswer",
    "compare-versions-1": "fleet.versions:VersionsAnswer",
    "comparison-1": "io.answers:ComparisonDocument",
    "data-1": "cli.data:DataAnswer",
    "draft-1": "cli.draft:DraftAnswer",
    "doctor-1": "cli.doctor:DoctorAnswer",
    "export-1": "cli.export:ExportAnswer",
    "info-1": "cli.info:InfoAnswer",
    "learn-2": "cli.learn_run:LearnAnswer",
    "learn-answer-1": "io.answers:AnswerDocument",
    "learn-empty-2": "cli.learn_run:EmptyAnswer",
    "learn-units-1": "fleet:FleetDocument",
    "learn-rates-1": "io.answers:RateAnswer",
    "online-answer-1": "cli.online:OnlineAnswer",
    "online-1": "learning.online.run:OnlineRecord",
    "report-1": "cli.report:ReportAnswer",
    "sample-1": "cli.sample:SampleAnswer",
    "shield-1": "io.answers:ShieldAnswer",
    "shield-file-4": "io.answers:ShieldDocument",
    "verify-1": "cli.verify:VerifyAnswer",
    "watch-1": "cli.watch:WatchRecord",
}
"""By the name of the schema the module and class of the record: files first, then the answers of commands."""


def record_of(name: str) -> type:
    """The record behind a schema."""
    module, _, record = DOCUMENTS[name].partition(":")
    kind: type = getattr(import_module(f"tightrope.{module}"), record)
    return kind


def schema_texts() -> dict[str, str]:
    """The files of schemas by name."""
    return {
        f"{name}.schema.json": json.dumps(json_schema(record_of(name)), indent=1, ensure_ascii=False) + "\n"
        for name in DOCUMENTS
    }


def write_schemas(folder: Path) -> list[Path]:
    """Write all schemas into a folder; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in schema_texts().items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schemas"))
