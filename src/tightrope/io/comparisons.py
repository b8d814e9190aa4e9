"""The records behind `compare` and `improve`, and the file that `-o DIR` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from tightrope.io.coding import DocumentFile, Real
from tightrope.io.results import Interval, Judged, ReadingFacts
from tightrope.numerics.record import Record

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


@dataclass(frozen=True, eq=False, repr=False)
class KeptProperty(Record):
    """A property that a policy must keep, and the certified interval of what is compared with the threshold:
    the difference to the baseline, or the policy's value."""

    text: str
    interval: Interval
    holds: bool


@dataclass(frozen=True)
class Change:
    """A state where the new policy does something else: what the log has seen of it, and its share of what is
    gained at the estimate. The shares of all changes sum to 1 (the performance difference lemma); they are
    an estimate, and say what to change first."""

    state: str
    today: str
    new: str
    visits: int
    share: Real | None


class ComparisonAnswer(Judged, kw_only=True):
    """`compare` and `improve`: the difference is that of the best policy to the baseline."""

    difference: Interval
    improvement: Real
    policy: str
    baseline: str
    candidates: list[CandidateAnswer]
    order: list[tuple[str, str]]
    kept: list[KeptProperty]
    limit: Real | None
    changes: list[Change]
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


_FILES = DocumentFile(ComparisonDocument, COMPARISON_FILE, COMPARISON_FORMAT, COMPARISON_VERSION, "improve")
comparison_file, read_comparison = _FILES.find, _FILES.read
