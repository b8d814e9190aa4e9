"""A learning run as reports and figures show it: its document, and where the files beside it lie.

The document comes from a `result.json` (`read_run`) or straight from results in memory; other runs on the
same model can be put beside it, for comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import msgspec

from tightrope.errors import InputError
from tightrope.io.coding import to_plain
from tightrope.io.results import RegionShape, ResultDocument, Span, StoredOutcome, read_result, result_file


@dataclass(frozen=True)
class ObservedEvent:
    """How often an event was seen, and its interval."""

    event: int
    text: str
    successes: int
    trials: int
    interval: Span


@dataclass(frozen=True, eq=False)
class Run:
    """A document with a `folder` in which its files lie, where it was read from one.

    `others` are outcomes of other runs with their labels, `more_regions` regions of theirs.
    """

    document: ResultDocument
    file: Path | None = None
    others: tuple[tuple[str, StoredOutcome], ...] = ()
    more_regions: tuple[RegionShape, ...] = ()
    certificate: Mapping[str, str] = field(default_factory=dict)

    @property
    def main(self) -> StoredOutcome:
        """The outcome that the answer is taken from: the last one, as `tightrope learn` does."""
        return self.document.main

    @property
    def shown(self) -> tuple[tuple[str, StoredOutcome], ...]:
        """All outcomes with their labels, the main one last."""
        return (*self.others, *((outcome.label, outcome) for outcome in self.document.results))

    @property
    def regions(self) -> tuple[RegionShape, ...]:
        return (*self.document.regions, *self.more_regions)

    @property
    def model(self) -> str:
        return self.document.model.title

    @property
    def maximises(self) -> bool:
        return self.document.maximises

    @property
    def question(self) -> str:
        return self.document.question

    @cached_property
    def parameters(self) -> dict[str, Span]:
        """The range of every parameter in the domain."""
        return {each.name: Span(each.lower, each.upper) for each in self.document.model.parameters}

    @cached_property
    def truth(self) -> dict[str, float]:
        """The true point, where it is known."""
        return {} if self.document.truth is None else self.document.truth.point

    @property
    def true_value(self) -> Span | None:
        """The best value at the true point, where it is known."""
        return None if self.document.truth is None else self.document.truth.value

    @cached_property
    def events(self) -> tuple[ObservedEvent, ...]:
        table = self.document.events
        if table is None:
            return ()
        columns = (table.index, table.text, table.successes, table.trials, table.lower, table.upper)
        rows = zip(*columns, strict=True)
        return tuple(ObservedEvent(i, text, k, n, Span(low, high)) for i, text, k, n, low, high in rows)

    def beside(self, other: Run) -> Run:
        """This run with another one's regions and outcomes added: same model, same property."""
        mine, theirs = self.document, other.document
        if (theirs.model.hash, theirs.question) != (mine.model.hash, mine.question):
            raise InputError(
                f"{other.file} is about another model or property than {self.file}",
                hint="results shown together need the same model, domain and property",
            )
        known = {label for label, _ in self.shown}
        more = []
        for plain, outcome in other.shown:
            label = f"{plain} · {outcome.region}" if outcome.region else plain
            if label not in known and not (outcome.region is None and plain in known):
                more.append((label, outcome))
        kinds = {region.kind for region in self.regions}
        regions = tuple(region for region in other.regions if region.kind not in kinds)
        return replace(self, others=(*more, *self.others), more_regions=(*self.more_regions, *regions))


def read_run(path: str | Path) -> Run:
    """The run of a result directory, or of a `result.json`."""
    file = result_file(path)
    document = read_result(file)
    certificate = document.certificate
    about = {} if certificate is msgspec.UNSET else in_words(to_plain(certificate))
    return Run(document, file, certificate=about)


def in_words(content: Mapping[str, object]) -> dict[str, str]:
    """Fields as words: nested ones by their dotted names, empty ones and lists left out."""
    result: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            result.update({f"{name}.{key}": text for key, text in in_words(value).items()})
        elif isinstance(value, bool):
            result[name] = "yes" if value else "no"
        elif value is not None and not isinstance(value, list):
            result[name] = str(value)
    return result
