"""The document of a learning run, `result.json`: everything that reports, figures and loaded results need.

Tables of very many expressions or events are thinned out evenly; `total` says how many there are.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.errors import InputError
from tightrope.io.documents.coding import Real, read_document
from tightrope.io.documents.outcome import Span, StoredOutcome

FORMAT = "tightrope result"
VERSION = 2
FILE = "result.json"

HINT = "write results with 'tightrope learn … -o DIR' or result.save(DIR), and name DIR or DIR/result.json"


class ParameterRange(msgspec.Struct, frozen=True):
    """A parameter and the range of it in the domain."""

    name: str
    lower: float
    upper: float


class ModelFacts(msgspec.Struct, frozen=True):
    """Which model it was: where it came from, its hash and its size."""

    source: str
    constants: dict[str, str]
    hash: str
    states: int
    choices: int
    transitions: int
    expressions: int
    domain: str
    parameters: list[ParameterRange]
    degree: int = 0

    @property
    def title(self) -> str:
        """The source with its constants."""
        given = ", ".join(f"{name}={value}" for name, value in self.constants.items())
        return f"{self.source} with {given}" if given else self.source


class DesignFacts(msgspec.Struct, frozen=True):
    """How the data were collected."""

    kind: str
    episodes: int | None = None
    steps: int = 0
    repeats: bool = True
    planned: int | UnsetType = UNSET
    censored: list[str] | UnsetType = UNSET
    open_end: bool | UnsetType = UNSET
    late_plan: bool | UnsetType = UNSET
    bet_on: list[str] | UnsetType = UNSET
    anytime: bool | UnsetType = UNSET
    planned_from: str | UnsetType = UNSET


class DataFile(msgspec.Struct, frozen=True):
    """A file of data with its digest."""

    file: str
    sha256: str


class KeptFacts(msgspec.Struct, frozen=True):
    """Which events were counted, where the first ones were left out.

    `chosen_at` events had been seen when that was decided, null where nobody said so; `holds`: they are all
    before `first`, so that what is kept is fresh.
    """

    first: int
    last: int
    left_out: int
    chosen_at: int | None
    holds: bool


class DataFacts(msgspec.Struct, kw_only=True, frozen=True):
    """Where the data came from, how they were read, and what is in them."""

    file: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    files: list[DataFile] | UnsetType = UNSET
    rows: int | UnsetType = UNSET
    read_as: list[str] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    dropped: dict[str, int] | UnsetType = UNSET
    censored: list[str] | UnsetType = UNSET
    kept: KeptFacts | UnsetType = UNSET
    sampled: dict[str, Any] | UnsetType = UNSET
    source: str | UnsetType = UNSET
    seed: int | UnsetType | None = UNSET
    updates: int | UnsetType = UNSET
    forgotten_episodes: int | UnsetType = UNSET
    steps: int
    design: DesignFacts
    batches: int | None = None
    transitions_seen: int = 0
    choices_visited: int = 0


class OptionFacts(msgspec.Struct, kw_only=True, frozen=True):
    """The options of `learn`; None where the choice was left open."""

    region: str | None = None
    sets: str | None = None
    interval: str | None = None
    budget: str | None = None
    ellipsoid: str | None = None
    intersect: bool = False
    fallback: bool = True
    precision: float = 1e-6
    assume_support: float | None = None
    time_limit: Real | None = None
    iteration_limit: int | None = None
    coupled_gap: float | None = None
    cost_range: tuple[float, float] | UnsetType = UNSET
    cost_sd: float | UnsetType = UNSET


class TruthFacts(msgspec.Struct, frozen=True):
    """The true point where it is known, and the best value there."""

    at: dict[str, str]
    value: Span | None = None

    def __post_init__(self) -> None:
        for name, text in self.at.items():
            try:
                Fraction(text)
            except (ValueError, ZeroDivisionError):
                raise ValueError(f"Expected a number for {name}, got {text!r}") from None

    @property
    def point(self) -> dict[str, float]:
        return {name: float(Fraction(text)) for name, text in self.at.items()}


class ExpressionTexts(msgspec.Struct, frozen=True):
    """The unknown expressions: their numbers in the model, and their texts."""

    total: int
    index: list[int]
    text: list[str]


class EventTable(msgspec.Struct, frozen=True):
    """How often each event was seen, and its interval; one column per field."""

    total: int
    index: list[int]
    text: list[str]
    successes: list[int]
    trials: list[int]
    lower: list[float]
    upper: list[float]

    def __post_init__(self) -> None:
        sizes = {len(getattr(self, name)) for name in self.__struct_fields__ if name != "total"}
        if len(sizes) > 1:
            raise ValueError("Expected columns of one length")


class Projection(msgspec.Struct, frozen=True):
    """An outer polygon around a region's values of two parameters."""

    x: str
    y: str
    polygon: list[tuple[Real, Real]]


class RegionShape(msgspec.Struct, frozen=True):
    """A region: the box of its parameters, and polygons around its shadows on pairs of them."""

    kind: str
    relaxation: str
    empty: bool
    box: dict[str, tuple[Real, Real]]
    projections: list[Projection]
    notes: list[str] = []

    @property
    def polygons(self) -> dict[tuple[str, str], list[tuple[float, float]]]:
        return {(shadow.x, shadow.y): shadow.polygon for shadow in self.projections}


class CertificateFacts(msgspec.Struct, frozen=True):
    """The certificate that was written with the result."""

    digest: str
    file: str


class ResultDocument(msgspec.Struct, kw_only=True):
    """The whole document; the answer is that of the last entry of `results`."""

    format: str = FORMAT
    version: int = VERSION
    versions: dict[str, str]
    command: list[str]
    model: ModelFacts
    question: str = msgspec.field(name="property")
    maximises: bool
    delta: float
    data: DataFacts
    options: OptionFacts
    policy: str | None = None
    truth: TruthFacts | None = None
    expressions: ExpressionTexts
    events: EventTable | None = None
    regions: list[RegionShape]
    results: list[StoredOutcome]
    certificate: CertificateFacts | UnsetType = UNSET

    def __post_init__(self) -> None:
        if not self.results:
            raise ValueError("Expected at least one entry in 'results'")
        size = len(self.expressions.text)
        for outcome in self.results:
            if not len(outcome.bounds.lower) == len(outcome.bounds.upper) == size:
                raise ValueError(f"Expected the bounds of {size} expressions in 'bounds' of 'results'")

    @property
    def main(self) -> StoredOutcome:
        """The outcome that the answer is taken from: the last one, as `tightrope learn` does."""
        return self.results[-1]


def result_file(path: str | Path) -> Path:
    """The document of a result directory, or the file itself; refused where there is none."""
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            f"there is no result {file}",
            hint="write one with 'tightrope learn … -o DIR'; 'tightrope demo' makes an example",
        )
    return file


def read_result(path: str | Path) -> ResultDocument:
    """The document of a result directory, or of a `result.json`."""
    return read_document(result_file(path), ResultDocument, FORMAT, VERSION, HINT)
