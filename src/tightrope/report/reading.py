"""A learning run as its `result.json` tells it: what reports and figures are drawn from.

The document is written by `tightrope.learning.document`; it is read here with every field checked, so that
a damaged or foreign file ends in words. Files named in it (policies) lie beside it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from tightrope.errors import InputError, Location
from tightrope.report.fields import Fields

FORMAT = "tightrope result"
VERSION = 1
FILE = "result.json"

Point = tuple[float, float]


@dataclass(frozen=True)
class Span:
    """lower ≤ value ≤ upper."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        return self.upper - self.lower if self.upper != self.lower else 0.0


@dataclass(frozen=True)
class LedgerLines:
    """How δ is spent, in words."""

    delta: float
    holds: bool
    lines: tuple[str, ...]


@dataclass(frozen=True)
class BoundEvent:
    """An event that holds the region in place, with the side that does."""

    event: int
    side: str
    text: str


@dataclass(frozen=True)
class Outcome:
    """What one kind of sets gave."""

    label: str
    sets: str
    region: str | None
    relaxation: str
    robust: Span
    given: Span | None
    guarantee: float
    optimistic: float
    bounds: tuple[Span, ...]
    binding: tuple[BoundEvent, ...]
    binding_total: int
    ledger: LedgerLines
    verdict: str | None
    misfit: str | None
    status: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: dict[str, float]
    files: tuple[str, ...]

    @property
    def shown(self) -> Span:
        """The given policy's interval where there is one, as `tightrope learn` prints it."""
        return self.given if self.given is not None else self.robust


@dataclass(frozen=True)
class RegionShape:
    """A region: the box of its parameters, and polygons around its shadows on pairs of them."""

    kind: str
    relaxation: str
    empty: bool
    box: dict[str, Span]
    polygons: dict[tuple[str, str], tuple[Point, ...]]


@dataclass(frozen=True)
class ObservedEvent:
    """How often an event was seen, and its interval."""

    event: int
    text: str
    successes: int
    trials: int
    interval: Span


@dataclass(frozen=True)
class Run:
    """All that is known about a learning run."""

    file: Path
    model: str
    model_hash: str
    sizes: dict[str, int]
    domain: str
    parameters: dict[str, Span]
    question: str
    maximises: bool
    delta: float
    steps: int
    design: str
    data: dict[str, str]
    options: dict[str, str]
    command: tuple[str, ...]
    versions: dict[str, str]
    truth: dict[str, float]
    true_value: Span | None
    expressions: tuple[str, ...]
    expressions_total: int
    events: tuple[ObservedEvent, ...]
    events_total: int
    regions: tuple[RegionShape, ...]
    outcomes: tuple[Outcome, ...]
    certificate: dict[str, str]

    @property
    def main(self) -> Outcome:
        """The outcome that the answer is taken from: the last one, as `tightrope learn` does."""
        return self.outcomes[-1]

    @property
    def folder(self) -> Path:
        return self.file.parent

    def beside(self, other: Run) -> Run:
        """This run with another one's regions and outcomes added: same model, same property."""
        if (other.model_hash, other.question) != (self.model_hash, self.question):
            raise InputError(
                f"{other.file} is about another model or property than {self.file}",
                hint="results shown together need the same model, domain and property",
            )
        known = {outcome.label for outcome in self.outcomes}
        more = []
        for outcome in other.outcomes:
            label = f"{outcome.label} · {outcome.region}" if outcome.region else outcome.label
            if label not in known and not (outcome.region is None and outcome.label in known):
                more.append(replace(outcome, label=label))
        kinds = {region.kind for region in self.regions}
        regions = tuple(region for region in other.regions if region.kind not in kinds)
        return replace(self, outcomes=(*more, *self.outcomes), regions=(*self.regions, *regions))


def read_run(path: str | Path) -> Run:
    """The run of a result directory, or of a `result.json`."""
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            f"there is no result {file}",
            hint="write one with 'tightrope learn … -o DIR'; 'tightrope demo' makes an example",
        )
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"this is no JSON: {error}", Location(str(file))) from error
    fields = Fields.of(content, str(file))
    if fields.text("format") != FORMAT:
        raise InputError(f"this is a '{fields.text('format')}', not a '{FORMAT}'", Location(str(file)))
    if fields.integer("version") != VERSION:
        raise InputError(
            f"this result has version {fields.integer('version')}, and {VERSION} is understood",
            Location(str(file)),
        )
    return _run(fields, file)


def _run(fields: Fields, file: Path) -> Run:
    model, data = fields.inner("model"), fields.inner("data")
    truth = fields.inner("truth") if fields.has("truth") else None
    outcomes = tuple(_outcome(entry) for entry in fields.entries("results"))
    if not outcomes:
        raise InputError("the result is empty", Location(str(file)))
    expressions = fields.inner("expressions")
    events = fields.inner("events") if fields.has("events") else None
    constants = model.each("constants", Fields.text)
    source = model.text("source")
    if constants:
        source += " with " + ", ".join(f"{name}={value}" for name, value in constants.items())
    return Run(
        file=file,
        model=source,
        model_hash=model.text("hash"),
        sizes={key: model.integer(key) for key in ("states", "choices", "transitions", "expressions")},
        domain=model.text("domain"),
        parameters={
            entry.text("name"): Span(entry.number("lower"), entry.number("upper"))
            for entry in model.entries("parameters")
        },
        question=fields.text("property"),
        maximises=fields.flag("maximises"),
        delta=fields.number("delta"),
        steps=data.integer("steps"),
        design=data.inner("design").text("kind"),
        data=_plain(data),
        options=_plain(fields.inner("options")),
        command=fields.texts("command"),
        versions=fields.each("versions", Fields.text),
        truth={} if truth is None else truth.each("at", _fraction),
        true_value=_span(truth.inner("value")) if truth is not None and truth.has("value") else None,
        expressions=expressions.texts("text"),
        expressions_total=expressions.integer("total"),
        events=() if events is None else _events(events),
        events_total=0 if events is None else events.integer("total"),
        regions=tuple(_region(entry) for entry in fields.entries("regions")),
        outcomes=outcomes,
        certificate=_plain(fields.inner("certificate")) if fields.has("certificate") else {},
    )


def _outcome(entry: Fields) -> Outcome:
    binding, ledger = entry.inner("binding"), entry.inner("ledger")
    sets = entry.text("sets")
    bounds = entry.inner("bounds")
    return Outcome(
        label=f"{sets} (fallback)" if entry.flag("fallback") else sets,
        sets=sets,
        region=entry.text("region") if entry.has("region") else None,
        relaxation=entry.text("relaxation"),
        robust=_span(entry.inner("robust_policy")),
        given=_span(entry.inner("value")) if entry.has("value") else None,
        guarantee=entry.number("guarantee"),
        optimistic=entry.number("optimistic"),
        bounds=tuple(map(Span, bounds.numbers("lower"), bounds.numbers("upper"))),
        binding=tuple(
            BoundEvent(e.integer("event"), e.text("side"), e.text("text")) for e in binding.entries("events")
        ),
        binding_total=binding.integer("total"),
        ledger=LedgerLines(ledger.number("delta"), ledger.flag("holds"), ledger.texts("lines")),
        verdict=entry.text("verdict") if entry.has("verdict") else None,
        misfit=entry.text("misfit") if entry.has("misfit") else None,
        status=entry.text("status"),
        reasons=entry.texts("reasons"),
        notes=entry.texts("notes"),
        seconds=entry.each("seconds", Fields.number),
        files=entry.texts("files") if entry.has("files") else (),
    )


def _region(entry: Fields) -> RegionShape:
    box = {name: _pair(entry.inner("box"), name) for name in entry.inner("box")}
    polygons = {
        (shadow.text("x"), shadow.text("y")): shadow.points("polygon")
        for shadow in entry.entries("projections")
    }
    return RegionShape(entry.text("kind"), entry.text("relaxation"), entry.flag("empty"), box, polygons)


def _events(entry: Fields) -> tuple[ObservedEvent, ...]:
    spans = map(Span, entry.numbers("lower"), entry.numbers("upper"))
    seen = zip(entry.numbers("successes"), entry.numbers("trials"), strict=True)
    rows = zip(entry.numbers("index"), entry.texts("text"), seen, spans, strict=True)
    return tuple(ObservedEvent(int(i), text, int(k), int(n), span) for i, text, (k, n), span in rows)


def _span(entry: Fields) -> Span:
    return Span(entry.number("lower"), entry.number("upper"))


def _pair(entry: Fields, name: str) -> Span:
    low, high = entry.numbers(name)
    return Span(low, high)


def _fraction(entry: Fields, name: str) -> float:
    try:
        return float(Fraction(entry.text(name)))
    except (ValueError, ZeroDivisionError):
        return entry.number(name)


def _plain(entry: Fields) -> dict[str, str]:
    """Fields as words: nested ones by their dotted names, empty ones left out."""
    result: dict[str, str] = {}
    for name, value in entry.content.items():
        if isinstance(value, dict):
            inner = _plain(Fields(value, entry.file, name))
            result.update({f"{name}.{key}": text for key, text in inner.items()})
        elif isinstance(value, bool):
            result[name] = "yes" if value else "no"
        elif value is not None and not isinstance(value, list):
            result[name] = str(value)
    return result
