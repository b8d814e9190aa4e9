"""The interface of confidence regions.

A region is a convex set of coordinates x (`tightrope.statistics.coordinates`: free parameters and, for
polynomial models, products of them) that contains the coordinates of the true parameters with the confidence
of its `ledger`. Everything else uses its support function: the least and the largest value of linear
functions over the set, rounded to the safe side. A `RegionKind` is the class of a kind of region;
`tightrope.regions.registry` finds the kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

from tightrope.data.counts import Counts
from tightrope.errors import choose
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record
from tightrope.numerics.text import sure_text
from tightrope.statistics.confidence_budget import ConfidenceBudget
from tightrope.statistics.coordinates import Coordinates
from tightrope.statistics.estimates import Budget, IntervalMethod, check_delta
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.outcomes import Outcomes
from tightrope.statistics.priors import Prior

if TYPE_CHECKING:
    from tightrope.statistics.bets import Gradient, Predictions

DEFAULT_EXCESS = 0.02
"""A likelihood region is enclosed by tangents that exceed it by at most this share of its width."""


class Relaxation(Enum):
    """Whether the set is the statistical region itself (up to rounding) or an enclosure of it.

    >>> [one.value for one in Relaxation]
    ['exact', 'outer']
    """

    EXACT = "exact"
    OUTER = "outer"


@dataclass(frozen=True)
class Conflict:
    """A smallest set of statements that no parameter of the domain satisfies together.

    Irreducible: without any one of them the rest can be satisfied (or at least not be refuted).

    >>> Conflict((0, 1), ("p is at least 0.8", "p/2 is at most 0.3")).text()
    'p is at least 0.8; p/2 is at most 0.3'
    """

    events: tuple[int, ...]
    texts: tuple[str, ...]

    def text(self) -> str:
        return "; ".join(self.texts)


@dataclass(frozen=True, eq=False, repr=False)
class Emptiness(Record):
    """Empty only where it is proved, with a conflict; else a witness point (coordinates)."""

    is_empty: bool
    witness: FloatArray | None = None
    conflict: Conflict | None = None

    def text(self, delta: float) -> str:
        """The verdict in words."""
        if not self.is_empty:
            return "the data are consistent with the model"
        verdict = (
            "the region is empty: no parameters of the domain explain the data at "
            f"{sure_text(delta)}. A correct model produces this with probability at most {delta:g}, so the "
            "model is likely wrong."
        )
        if self.conflict is None:
            return verdict
        return f"{verdict} These observations contradict each other: {self.conflict.text()}"


def region_title(region: Region) -> str:
    """The region in a line."""
    empty = ", empty" if region.emptiness.is_empty else ""
    return f"Region: {region.kind.value} in {region.coordinates.size} coordinates{empty}"


def region_facts(region: Region) -> Facts:
    """The region in a few lines."""
    exact = "exact, up to rounding" if region.relaxation is Relaxation.EXACT else "enclosed"
    notes = [("note", note) for note in region.notes]
    return [("definition", exact), *(("ledger", line) for line in region.ledger.lines), *notes]


class Region(Protocol):
    """A convex confidence set of coordinates.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> problem = model.problem('Pmax=? [ F "heads" ]')
    >>> result = tr.learn(problem, [[(0, "toss", 1)]] * 80 + [[(0, "toss", 2)]] * 20, delta=0.01)
    >>> result.region.kind.value, result.region.emptiness.is_empty
    ('polytope', False)
    """

    @property
    def kind(self) -> RegionKind: ...

    @property
    def coordinates(self) -> Coordinates: ...

    @property
    def ledger(self) -> ConfidenceBudget: ...

    @property
    def relaxation(self) -> Relaxation: ...

    @property
    def emptiness(self) -> Emptiness: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the result should know: tightening, cuts, limits."""

    @property
    def bounding_box(self) -> tuple[FloatArray, FloatArray]:
        """Safe bounds of every coordinate."""

    def support(self, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Safe (lower, upper) bounds of directions·x over the region, for directions [n, coordinates]."""

    def contains(self, theta: Sequence[Fraction | float]) -> bool:
        """Whether the region contains the parameters θ; never False for a point of the true set."""

    @property
    def vertices(self) -> FloatArray | None:
        """Points [n, coordinates] whose convex hull, widened by `vertex_error`, contains the region."""

    @property
    def vertex_error(self) -> FloatArray:
        """How far, in each coordinate, the hull of the vertices may miss the region."""

    @property
    def facets(self) -> tuple[FloatArray, FloatArray] | None:
        """Rows (a, b) with a·x ≤ b that bound the region, where it is a polytope."""


@dataclass(frozen=True)
class RegionOptions:
    """What is decided before looking at the data; each kind of region takes what concerns it."""

    interval: IntervalMethod = IntervalMethod.CLOPPER_PEARSON
    budget: Budget = Budget.TIED
    ellipsoid: EllipsoidVersion = EllipsoidVersion.SOUND
    excess: float = DEFAULT_EXCESS
    prior: tuple[Prior, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "interval", choose("interval", IntervalMethod, self.interval))
        object.__setattr__(self, "budget", choose("budget", Budget, self.budget))
        object.__setattr__(self, "ellipsoid", choose("ellipsoid", EllipsoidVersion, self.ellipsoid))


@dataclass(frozen=True, eq=False)
class RegionTask:
    """What a region is built from: model, data, δ, options, earlier predictions, the gradient to bet on."""

    model: ParametricMDP
    counts: Counts
    delta: float
    options: RegionOptions = field(default_factory=RegionOptions)
    predictions: Predictions | None = None
    gradient: Gradient | None = None

    def __post_init__(self) -> None:
        check_delta(self.delta)

    @property
    def outcomes(self) -> Outcomes:
        return Outcomes.of(self.model)


class RegionKind(ABC):
    """A kind of region: its name in options and files, what it needs and can do, and how it is built."""

    value: ClassVar[str]
    needs_order: ClassVar[bool] = False
    """Data have to come in batches, in the order in which they were seen."""
    has_facets: ClassVar[bool] = True
    """Half-spaces bound it (it is a `Polytope`): coupled sets, and rows from costs, need that."""
    is_of_intervals: ClassVar[bool] = False
    """It is made of the intervals of events, whose method and budget are options."""
    has_intervals: ClassVar[bool] = False
    """It is made of intervals of events at a share of δ, and of something else."""
    has_versions: ClassVar[bool] = False
    """The option `ellipsoid` refers to it."""
    bets: ClassVar[bool] = False
    """It is narrow along one policy's value, whose gradient it has to be given."""
    has_forecast: ClassVar[bool] = False
    """How narrow it will be after more data is known in a formula (`tightrope.design`)."""
    serves_rates: ClassVar[bool] = False
    """There is one of this name for rates of chains in continuous time."""
    is_compared: ClassVar[bool] = False
    """Reports show it beside the region of a result."""
    certificate: ClassVar[str | None] = None
    """The method by which certificates prove it, "intervals" for that of its intervals; None if none does."""
    certifies_quotients: ClassVar[bool] = False
    """Certificates hold it where probabilities are quotients of polynomials."""

    @abstractmethod
    def build(self, task: RegionTask) -> Region:
        """The region of some data."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegionKind) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"<region {self.value}>"
