"""The records behind `compare` and `improve`, and the file that `-o DIR` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from tightrope.io.coding import Real, read_document
from tightrope.io.results import Interval, ReadingFacts
from tightrope.verdict import Assumed, Word

COMPARISON_FILE = "comparison.json"
COMPARISON_FORMAT = "tightrope-comparison"
COMPARISON_VERSION = 1
POLICY_FILES = {"today": "today.json", "new": "policy.json"}
"""Of both policies, where they are of the model itself."""


class CandidateAnswer(msgspec.Struct, frozen=True):
    """A policy: its value less the baseline's, by one parameter vector and by both intervals apart, and the
    parameters where the difference is smallest and largest."""

    name: str
    difference: Interval
    separate: Interval
    lowest: dict[str, Real] | None
    highest: dict[str, Real] | None


class KeptAnswer(msgspec.Struct, frozen=True):
    """A property that was to be kept, with what is certified of it."""

    text: str
    interval: Interval
    holds: bool


class ChangeAnswer(msgspec.Struct, frozen=True):
    """A state where the best policy does something else than the baseline; its share of what is gained at the
    estimate, which is no guarantee."""

    state: str
    today: str
    new: str
    visits: int
    share: Real | None


class ComparisonAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """`compare` and `improve`: the difference is that of the best policy to the baseline."""

    verdict: Word
    why: str
    assumptions: list[Assumed]
    difference: Interval
    improvement: Real
    policy: str
    baseline: str
    candidates: list[CandidateAnswer]
    order: list[tuple[str, str]]
    kept: list[KeptAnswer]
    limit: Real | None
    changes: list[ChangeAnswer]
    sentence: str
    delta: float
    data: ReadingFacts
    seconds: float
    output: str | None = None


class ComparisonDocument(msgspec.Struct, kw_only=True):
    """An answer with what it is about, as it is written."""

    format: str = COMPARISON_FORMAT
    version: int = COMPARISON_VERSION
    model: str
    model_hash: str
    question: str = msgspec.field(name="property")
    headline: str
    answer: ComparisonAnswer

    @staticmethod
    def of(answer: ComparisonAnswer, headline: str, about: Mapping[str, str]) -> ComparisonDocument:
        return ComparisonDocument(
            model=about["model"],
            model_hash=about["model hash"],
            question=about["property"],
            headline=headline,
            answer=answer,
        )

    @property
    def about(self) -> dict[str, str]:
        return {"model": self.model, "property": self.question, "model hash": self.model_hash}


def comparison_file(path: str | Path) -> Path | None:
    """The document of a comparison's directory, or the file itself; None where it is no comparison's."""
    path = Path(path)
    file = path / COMPARISON_FILE if path.is_dir() else path
    return file if file.name == COMPARISON_FILE and file.is_file() else None


def read_comparison(file: Path) -> ComparisonDocument:
    """The document in a file."""
    return read_document(
        file,
        ComparisonDocument,
        COMPARISON_FORMAT,
        COMPARISON_VERSION,
        "write one with 'tightrope improve … -o DIR'",
    )
