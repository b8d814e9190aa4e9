"""Results of coupled computations: the certified interval, instantiations that bound it from inside, and the
tree of cells that proves it.

`Cell` and `Chain` refer to the problem before `objective.complement`; intervals and witnesses are as
reported, after it. Proofs: `cells` (frames), `taylor` and `vertex_proof`. Models of cells are not stored;
`CoupledValue.model` recomputes one, bit by bit the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from tightrope.coupled.cells import Emptiness, Frame, Split
from tightrope.coupled.chain import Chain
from tightrope.coupled.taylor import TaylorModel, expand, order_for
from tightrope.coupled.vertex_proof import VertexProof
from tightrope.model.objective import Objective
from tightrope.model.policy import Policy
from tightrope.numerics.arrays import FloatArray
from tightrope.numerics.record import Facts, Record, brief, freeze_fields
from tightrope.numerics.text import interval_text
from tightrope.statistics.coordinates import AffineFunctions

LEAST_EXCESS = 1e-250
"""What is smaller is nothing: it is left by rounding where all values are 0."""

EXACT_SHARE = 1e-5
"""An end counts as attained where an instantiation comes as close as this share of the width, …"""

EXACT_RELATIVE = 2e-9
"""… or this share of the value: what the solver's precision leaves of a rectangular bound."""


class CoupledStatus(Enum):
    """How the search ended. The interval is certified in every case.

    >>> CoupledStatus.EXACT.value
    'exact over the coupled set: both ends are attained by instantiations of the region'
    """

    EXACT = "exact over the coupled set: both ends are attained by instantiations of the region"
    CERTIFIED = "certified: the interval is within the gap asked for of instantiations of the region"
    CELL_LIMIT = "the limit on cells was reached; the interval is certified but wider. Try a larger gap."
    TIME_LIMIT = "the time limit was reached, so the certified interval is wider. Try a larger limit."
    PRECISION_LIMIT = "no cell could be refined further in float64; the interval is certified but wider."
    RECTANGULAR = "only the rectangular interval could be certified"

    @property
    def is_reached(self) -> bool:
        """Whether no limit stopped the search; over rectangular sets alone there is nothing to refine."""
        return self in (CoupledStatus.EXACT, CoupledStatus.CERTIFIED, CoupledStatus.RECTANGULAR)


@dataclass(frozen=True, eq=False, repr=False)
class Witness(Record):
    """An instantiation: parameters `theta`, their coordinates `x`, and the value there within [lower, upper].

    x satisfies the rows of the region up to a relative 10⁻⁹ of its extent.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> value = tr.solve(model.problem('Pmax=? [ F "heads" ]')).robust.coupled
    >>> round(float(value.highest.theta[0]), 6), round(value.highest.upper, 6)
    (1.0, 1.0)
    """

    theta: FloatArray
    x: FloatArray
    lower: float
    upper: float

    def __post_init__(self) -> None:
        freeze_fields(self)


@dataclass(frozen=True, eq=False)
class Cell:
    """A node of the tree; `lower` and `upper` hold on it (before `complement`).

    They are the best of `own_lower`/`own_upper` (model and vertex proofs; none without frame and
    `emptiness`), of the parent's, and of the worse of the two children's.
    """

    parent: int
    split: Split | None
    children: tuple[int, int] | None
    lower: float
    upper: float
    own_lower: float
    own_upper: float
    frame: Frame | None
    has_model: bool
    low_vertex: VertexProof | None = None
    high_vertex: VertexProof | None = None
    emptiness: Emptiness | None = None


@dataclass(frozen=True, eq=False, repr=False)
class CoupledValue(Record):
    """The certified interval [lower, upper] of a policy's value at the initial state; see the module.

    `gap` is the share of the width that no instantiation accounts for. `rectangular_lost_nothing`: both ends
    of the rectangular interval are attained; `cells` is then empty. With a `baseline` the value is the
    policy's less that policy's (`tightrope.coupled.difference`), the rectangular interval that of the two
    intervals apart.

    >>> import tightrope as tr
    >>> parameters = tr.Parameters.box(p=(0, 1))
    >>> (p,) = parameters.symbols()
    >>> rows = [(0, "toss", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    >>> model = tr.build_from_rows(rows, parameters, labels={"heads": [1]})
    >>> value = tr.solve(model.problem('Pmax=? [ F "heads" ]')).robust.coupled
    >>> (value.lower, value.upper), value.status is CoupledStatus.EXACT
    ((0.0, 1.0), True)
    """

    objective: Objective
    policy: Policy
    lower: float
    upper: float
    rectangular_lower: float
    rectangular_upper: float
    functions: AffineFunctions = field(repr=False)
    lowest: Witness | None = None
    highest: Witness | None = None
    status: CoupledStatus = CoupledStatus.RECTANGULAR
    reason: str = ""
    gap: float = 1.0
    rectangular_lost_nothing: bool = False
    chain: Chain | None = None
    cells: tuple[Cell, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    baseline: Policy | None = None

    def _title_(self) -> str:
        return f"CoupledValue: {interval_text(self.lower, self.upper)}"

    def _facts_(self) -> Facts:
        return [
            ("status", self.status.value),
            ("rectangular", interval_text(self.rectangular_lower, self.rectangular_upper)),
            ("open", f"{self.gap:.3g} of the width"),
            ("cells", f"{len(self.cells):,}"),
            ("policy", brief(self.policy)),
            *([("because", self.reason)] if self.reason else []),
        ]

    @property
    def width(self) -> float:
        return self.upper - self.lower if self.upper > self.lower else 0.0

    def model(self, cell: int) -> TaylorModel:
        """The Taylor model of a cell that has one, computed again."""
        frame = self.cells[cell].frame
        assert frame is not None and self.chain is not None
        order = order_for(self.chain, frame.axes)
        model = expand(self.chain, self.functions, frame.centre, frame.axes, frame.radius, order)
        assert model is not None
        return model


def is_attained(excess: float, lower: float, upper: float, unit: float) -> bool:
    """Whether an end `excess` away from an instantiation counts as attained; `unit` scales rounding."""
    if not np.isfinite(excess):
        return False
    scale = max(abs(lower), abs(upper))
    return excess <= max(EXACT_SHARE * (upper - lower), EXACT_RELATIVE * scale, 1e-13 * unit, LEAST_EXCESS)
