"""Reading chains in continuous time from DRN files (`@type: CTMC`), as Storm writes them.

The number behind a transition is its rate, exact where it is written as a fraction or decimal, and a
polynomial where there are parameters. The exit rate behind a state (`!2.5`) must be the sum of its rates: a
file that holds probabilities instead is refused. Rewards of states are earned per unit of time, those of
actions whenever the state is left.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from tightrope.errors import InputError, Location
from tightrope.formats.drn.assemble import assemble
from tightrope.formats.drn.body import Body
from tightrope.formats.drn.header import read_header
from tightrope.formats.number_text import exact_number, nearest_double
from tightrope.formats.polynomial_text import parse_polynomial
from tightrope.formats.rate_rewards import with_earnings
from tightrope.model.continuous import ParametricCTMC, rate_box
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial
from tightrope.model.region_text import narrow_domain
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import IndexArray
from tightrope.numerics.text_reading import reading

_HEADER_LINES = 40
_CLOSE = Fraction(1, 10**6)


def is_ctmc(path: Path) -> bool:
    """Whether a DRN file says that it holds a chain in continuous time."""
    with reading(path) as file:
        head = [line.strip().lower() for _, line in zip(range(_HEADER_LINES), file, strict=False)]
    inline = any(line.replace(" ", "") == "@type:ctmc" for line in head)
    return inline or any(a == "@type" and b == "ctmc" for a, b in pairwise(head))


def read_rates_drn(path: str | Path, box: str | None = None, domain: str | None = None) -> ParametricCTMC:
    """The chain in a DRN file; parameters lie in [0, 1000] unless `box`, `domain` or
    a note in the file says otherwise."""
    path = Path(path)
    with reading(path) as file:
        lines = enumerate(file, 1)
        header = read_header(path, lines, continuous=True)
        if box is None and domain is None and header.notes is not None:
            domain = header.notes.domain or None
        parameters = narrow_domain(rate_box(header.parameters), box, domain)
        body = Body(path, header, RateValues(parameters))
        body.read(lines, None)
    found = assemble(body)
    assert isinstance(found, ParametricCTMC)
    _check_exits(found, body)
    return found


class RateValues:
    """Rates: numbers, or polynomials in the parameters."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        self.index = {name: k for k, name in enumerate(parameters.names)}
        self.table = ExpressionTable(parameters.names)

    def code(self, text: str) -> int:
        if text.lstrip().startswith("["):
            raise ValueError("an interval: intervals of rates are not read")
        return self.table.add(self.rate(text))

    def rate(self, text: str) -> Polynomial:
        """The number or polynomial of a text."""
        if self.index:
            return parse_polynomial(text, self.index)
        return Polynomial.constant(exact_number(text))

    def reward(self, text: str) -> float:
        return nearest_double(text)

    def model(self, structure: Structure, codes: IndexArray) -> ParametricCTMC:
        expressions, expression = self.table.freeze(codes)
        alone = ParametricCTMC(replace(structure, rewards={}), expression, expressions, self.parameters)
        return with_earnings(alone, dict(structure.rewards))


def _check_exits(chain: ParametricCTMC, body: Body) -> None:
    """Refuse files whose exit rates are not the sums of their rates."""
    values, start = body.values, chain.transition_start
    assert isinstance(values, RateValues)
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for state, entry in enumerate(body.state_entry):
        row = tuple(chain.expression[start[state] : start[state + 1]].tolist())
        if entry not in body.exit_texts or (entry, row) in seen:
            continue
        seen.add((entry, row))
        said = values.rate(body.exit_texts[entry])
        total = sum((chain.expressions.polynomial(e) for e in row), Polynomial({}))
        missed = (said - total).terms.values()
        size = max((abs(c) for c in total.terms.values()), default=Fraction(1))
        if any(abs(c) > _CLOSE * size for c in missed):
            raise InputError(
                f"state {state}: the exit rate is {body.exit_texts[entry]}, but the rates of its transitions "
                f"sum to {total.text(chain.parameters.names)}",
                Location(str(body.path)),
                "behind transitions stand rates, not probabilities",
            )
