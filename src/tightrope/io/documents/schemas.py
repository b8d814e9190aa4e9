"""JSON schemas of everything that is written as JSON, made from the records that write it.

    python -m tightrope.io.documents.schemas docs/schemas

writes one file per document; a test keeps them current. The number in a name is the major version: within it
keys are added, never removed or given another meaning.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tightrope.io.documents.answers import (
    CheckAnswer,
    DataAnswer,
    DomainAnswer,
    EmptyAnswer,
    ExportAnswer,
    InfoAnswer,
    LearnAnswer,
    OnlineRecord,
    RateAnswer,
    ReportAnswer,
    SampleAnswer,
    VerifyAnswer,
)
from tightrope.io.documents.coding import json_schema
from tightrope.io.documents.files import DrawsDocument, ManifestDocument, PolicyDocument
from tightrope.io.documents.outcome import AverageAnswer, WatchRecord
from tightrope.io.documents.plan import PlanDocument
from tightrope.io.documents.result import ResultDocument

DOCUMENTS: dict[str, type] = {
    "result-2": ResultDocument,
    "policy-2": PolicyDocument,
    "draws-1": DrawsDocument,
    "manifest-1": ManifestDocument,
    "plan-2": PlanDocument,
    "check-1": CheckAnswer,
    "check-domain-1": DomainAnswer,
    "data-1": DataAnswer,
    "export-1": ExportAnswer,
    "info-1": InfoAnswer,
    "learn-2": LearnAnswer,
    "learn-average-1": AverageAnswer,
    "learn-empty-2": EmptyAnswer,
    "learn-rates-1": RateAnswer,
    "online-1": OnlineRecord,
    "report-1": ReportAnswer,
    "sample-1": SampleAnswer,
    "verify-1": VerifyAnswer,
    "watch-1": WatchRecord,
}
"""By the name of the schema: files first, then the answers of commands."""


def schema_texts() -> dict[str, str]:
    """The files of schemas by name."""
    return {
        f"{name}.schema.json": json.dumps(json_schema(kind), indent=1, ensure_ascii=False) + "\n"
        for name, kind in DOCUMENTS.items()
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
