"""The document of a plan, `plan.json`, which `tightrope plan --json` prints as well.

Everything in it is a forecast, not a guarantee; the `verdict` is about `gap_now` and `interval`, which follow
from the data so far.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tightrope.io.documents.coding import Real, read_document
from tightrope.io.documents.files import SignatureDraws
from tightrope.io.documents.outcome import AssumedFacts, Span
from tightrope.verdict import Word

FORMAT = "tightrope plan"
VERSION = 2
FILE = "plan.json"
LABEL = "a forecast, not a guarantee: the guarantee is what `learn` says about the data once they are there"


class StrategyFacts(msgspec.Struct, kw_only=True, frozen=True):
    """One way to collect data: more episodes until the aim, with a likely range, the steps they take, and the
    curve (more episodes, gap, low, high). Infinite numbers mean more than can be forecast.
    """

    name: str
    episodes: Real
    low: Real
    high: Real
    steps: Real
    steps_per_episode: float
    cost: Real
    gap: Real
    curve: list[tuple[float, Real, Real, Real]]


class DesignedFacts(msgspec.Struct, kw_only=True, frozen=True):
    """The exploration of the next stage: certified to lose at most the share `optimality` against the best at
    the estimate; `shares` of episodes belong to the policies 01, 02, … of the directory. `certified` bounds
    the probability of what is to be avoided, `certified_drawn` that where one of the policies is drawn per
    episode.
    """

    optimality: Real
    solves: int
    shares: list[float]
    policy: str
    steps_per_episode: float
    loss: float
    certified: float | UnsetType = UNSET
    certified_drawn: float | UnsetType = UNSET


class CombinationFacts(msgspec.Struct, frozen=True):
    """A combination of parameters and its share of the gap."""

    combination: str
    share: float


class NextFacts(msgspec.Struct, frozen=True):
    """What to run next."""

    episodes: int
    policy: str


class PlanDocument(msgspec.Struct, kw_only=True):
    """What a plan says; `design` and `next` are null where there is nothing to collect. Where `unit` is
    "draws", what is said of episodes is about draws of single choices, and `draws` says how many of which.
    """

    format: str = FORMAT
    version: int = VERSION
    model: str
    model_hash: str
    question: str = msgspec.field(name="property")
    delta: float
    region: str
    sets: str
    aim: str
    asked: float
    relative: bool
    verdict: Word
    why: str
    assumptions: list[AssumedFacts]
    status: str
    forecast: bool = True
    label: str
    interval: Span
    value: Real
    gap_now: Real
    gap_asked: Real | None
    episodes_so_far: int
    steps_so_far: int
    strategies: list[StrategyFacts]
    design: DesignedFacts | None
    directions: list[CombinationFacts]
    unidentifiable: list[str]
    next: NextFacts | None
    notes: list[str]
    unit: str = "episodes"
    draws: list[SignatureDraws] | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    output: str | UnsetType = UNSET


def plan_file(path: str | Path) -> Path | None:
    """The document of a plan's directory, or the file itself; None where it is no plan's."""
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    return file if file.name == FILE and file.is_file() else None


def read_plan(file: Path) -> PlanDocument:
    """The document in a file."""
    return read_document(file, PlanDocument, FORMAT, VERSION, "write one with 'tightrope plan … -o DIR'")
