"""The methods a campaign compares: the sets of the paper's three result tables, and ours beyond them.

The paper's methods run as it describes them: Clopper–Pearson intervals at δ / |Λ_unk| (`budget=paper`), and
for ellipsoids its own radius (R = 1/2), whose proof has a gap. Whether a method's assumption holds of the
protocol's trajectories is said by the ledger of each cell.

    >>> [method.name for method in choose_methods("tied,expression/likelihood")]
    ['tied', 'expression/likelihood']
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.learning.options import LearnOptions

PAPER, OURS, ALL = "paper", "ours", "all"


@dataclass(frozen=True)
class Method:
    """One way from counts to sets; `name` is `sets` or `sets/region`, as in `PublishedResult.method`.

    `region`, `interval`, `budget` and `ellipsoid` are the values of `tightrope learn`'s options of these
    names; None leaves a choice that does not matter here. `label` is what a table's row is called, `short`
    the same where there is little room.
    """

    name: str
    label: str
    short: str
    sets: str
    region: str | None
    interval: str | None
    budget: str
    ellipsoid: str
    in_paper: bool

    def options(self, seconds: float = float("inf")) -> LearnOptions:
        """The options of `learn` that make this method."""
        from tightrope.ambiguity.sets import SetsKind
        from tightrope.learning.options import LearnOptions
        from tightrope.regions.region import RegionKind
        from tightrope.statistics.estimates import IntervalMethod
        from tightrope.statistics.events import Budget
        from tightrope.statistics.least_squares import EllipsoidVersion

        return LearnOptions(
            region=None if self.region is None else RegionKind(self.region),
            sets=SetsKind(self.sets),
            interval=None if self.interval is None else IntervalMethod(self.interval),
            budget=Budget(self.budget),
            ellipsoid=EllipsoidVersion(self.ellipsoid),
            seconds=seconds,
            threads=1,
        )


def _paper(name: str, label: str, short: str, ellipsoid: str = "sound") -> Method:
    sets, _, region = name.partition("/")
    return Method(name, label, short, sets, region or None, "clopper-pearson", "paper", ellipsoid, True)


def _ours(name: str, label: str, short: str, region: str | None, interval: str | None = None) -> Method:
    return Method(name, label, short, name.partition("/")[0], region, interval, "tied", "sound", False)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        _paper("tied", "parameter tying", "tied"),
        _paper("parameter/polytope", "parameter-wise", "parameter"),
        _paper("expression/polytope", "expression-wise", "expression"),
        _paper("rectangular/polytope", "rectangular", "rectangular"),
        _paper("parameter/ellipsoid", "parameter-wise, ellipsoid", "param. ellipsoid", "paper"),
        _paper("expression/ellipsoid", "expression-wise, ellipsoid", "expr. ellipsoid", "paper"),
        _paper("rectangular/ellipsoid", "rectangular, ellipsoid", "rect. ellipsoid", "paper"),
        _ours("untied", "untied", "untied", None, "clopper-pearson"),
        _ours("expression/likelihood", "expression-wise, likelihood", "expr. likelihood", "likelihood"),
        _ours("rectangular/likelihood", "rectangular, likelihood", "rect. likelihood", "likelihood"),
        # Over the polytope of the paper's methods, so that the gaps can be compared.
        replace(_paper("coupled/polytope", "coupled", "coupled"), in_paper=False),
        _ours("coupled/likelihood", "coupled, likelihood", "coupl. likelih.", "likelihood"),
        _ours("rectangular/slab", "rectangular, slab", "rect. slab", "slab"),
        _ours("coupled/slab", "coupled, slab", "coupl. slab", "slab"),
        _ours("expression/anytime", "expression-wise, anytime", "expr. anytime", "polytope", "beta-binomial"),
        _ours("rectangular/anytime", "rectangular, anytime", "rect. anytime", "polytope", "beta-binomial"),
        _ours(
            "expression/sound-ellipsoid", "expression-wise, sound ellipsoid", "expr. sound ell.", "ellipsoid"
        ),
        _ours("expression/l1", "expression-wise, L1", "expr. L1", "l1"),
    )
}
"""By name, in the order of the tables."""


def choose_methods(text: str) -> tuple[Method, ...]:
    """Methods by name, separated by commas, in the tables' order; `paper`, `ours` and `all` are groups."""
    chosen: set[str] = set()
    for part in (part.strip() for part in text.split(",")):
        if part in (PAPER, OURS, ALL):
            chosen |= {m.name for m in METHODS.values() if part == ALL or m.in_paper == (part == PAPER)}
        elif part in METHODS:
            chosen.add(part)
        else:
            close = get_close_matches(part, METHODS, 1)
            suggestion = f"did you mean {close[0]}? " if close else ""
            names = ", ".join((PAPER, OURS, ALL, *METHODS))
            raise InputError(f"--methods: there is no method '{part}'", hint=f"{suggestion}there are {names}")
    return tuple(method for name, method in METHODS.items() if name in chosen)
