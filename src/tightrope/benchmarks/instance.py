"""One instance of a benchmark family: everything a command needs to know besides the model file.

An instance is plain data. The domain and the true point are exact; `suite.load` turns the
family's PRISM file, the constants and the domain into a `ParametricMDP`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tightrope.model.parameters import Parameters

MODELS = Path(__file__).parent / "models"


def decimal_text(value: Fraction) -> str:
    """An exact decimal where there is a short one, else the quotient.

    >>> decimal_text(Fraction(1, 2500)), decimal_text(Fraction(1, 3))
    ('0.0004', '1/3')
    """
    text = format(Decimal(value.numerator) / Decimal(value.denominator), "f")
    return text if Fraction(text) == value else str(value)


@dataclass(frozen=True)
class Sizes:
    """|S|, |T| and |Λ|: states, transitions, distinct expressions (the constant 1 included)."""

    states: int
    transitions: int
    expressions: int


@dataclass(frozen=True)
class Instance:
    """A family at given arguments.

    `sizes` and `optimum` are ours, known for the listed instances only; all printed digits of
    `optimum` (the value of the property at the true point) are correct to half a unit of the last
    one. `paper_name` says how the paper's tables call an instance where they call it otherwise.
    """

    family: str
    arguments: tuple[int, ...]
    constants: Mapping[str, int] = field(hash=False)
    parameter_names: tuple[str, ...]
    domain: str
    truth: tuple[Fraction, ...]
    property_text: str
    terminal_reward: str | None
    episode_cap: int
    sizes: Sizes | None = None
    optimum: Decimal | None = None
    paper_name: str | None = None

    @property
    def name(self) -> str:
        """`rover(125,125)`, as it is written after `bench:`."""
        return f"{self.family}({','.join(map(str, self.arguments))})"

    @property
    def path(self) -> Path:
        """The PRISM file of the family."""
        return MODELS / f"{self.family}.prism"

    @property
    def truth_text(self) -> str:
        """The true point in the syntax of `--at`."""
        return ",".join(
            f"{name}={decimal_text(value)}"
            for name, value in zip(self.parameter_names, self.truth, strict=True)
        )

    @property
    def optimum_tolerance(self) -> float:
        """How far the true optimum may be from `optimum`: half a unit of its last printed digit."""
        if self.optimum is None:
            raise ValueError(f"the optimum of {self.name} is not recorded")
        exponent = self.optimum.as_tuple().exponent
        assert isinstance(exponent, int)
        return 0.5 * 10.0**exponent

    def parameters(self) -> Parameters:
        """The parameters with their domain."""
        from tightrope.model.parameters import parse_domain

        return parse_domain(self.domain, self.parameter_names, option=f"the domain of bench:{self.name}")
