"""The six benchmark families: what their arguments mean and what follows from them.

The paper names the families and publishes their sizes, not their models. The models here give the
paper's |S|, |T| and |Λ| exactly (the glider its |S|); coefficients, domains, true points and the
caps on the length of an episode are ours unless `docs/benchmarks.md` says otherwise.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from tightrope.benchmarks.instance import decimal_text

Arguments = tuple[int, ...]


@dataclass(frozen=True)
class Family:
    """A family of models; `constants`, `domain` and `truth` are functions of the arguments."""

    name: str
    title: str
    argument_names: tuple[str, ...]
    minimum: tuple[int, ...]
    parameter_names: tuple[str, ...]
    property_text: str
    constants: Callable[[Arguments], dict[str, int]]
    domain: Callable[[Arguments], str]
    truth: Callable[[Arguments], tuple[Fraction, ...]]
    maximum: tuple[int, ...] | None = None
    maximum_reason: str = ""
    terminal_reward: str | None = None
    episode_cap: int = 1000

    @property
    def signature(self) -> str:
        """`rover(X,Y)`."""
        return f"{self.name}({','.join(self.argument_names)})"


def _point(*decimals: str) -> Callable[[Arguments], tuple[Fraction, ...]]:
    values = tuple(Fraction(text) for text in decimals)
    return lambda arguments: values


def _simplex(*names: str) -> str:
    """Weights that are not negative and leave a non-negative rest for the last one."""
    return ", ".join([*(f"0<={name}<=1" for name in names), f"{'+'.join(names)}<=1"])


def _box(**bounds: tuple[Fraction, Fraction]) -> str:
    return ", ".join(
        f"{decimal_text(low)}<={name}<={decimal_text(high)}" for name, (low, high) in bounds.items()
    )


# --- rover: how many tries a report has ----------------------------------------------------

_ROVER_WIDTHS = (10, 50, 75, 125)
_ROVER_TRIES = (6, 9, 12, 14)


def rover_tries(width: int) -> int:
    """M for a width: that of the widest listed grid that is not wider (6 below the narrowest)."""
    return _ROVER_TRIES[max(bisect_right(_ROVER_WIDTHS, width) - 1, 0)]


# --- the betting games: a box that keeps every probability within [0,1] ----------------------

_LEAST_BASE = Fraction("0.05")
_MOST = Fraction("0.99")
"""No win probability exceeds this in the domain, and no base probability falls below the other."""


def _most_base(bonus: Fraction, money: int) -> Fraction:
    """The largest p with p + bonus·money ≤ 0.99."""
    return _MOST - bonus * money


def _most_q(most_base: Fraction, factor: int, money: int) -> Fraction:
    """The largest q, in millionths, with p/2 + factor·q·money ≤ 0.99 for all p in the box."""
    return Fraction(floor((_MOST - most_base / 2) / (factor * money) * 10**6), 10**6)


def _most_money(rounds: int) -> int:
    """What a player can own before the last of `rounds` bets: 10 coins, and 10 more a round."""
    return 10 * rounds


def betting_domain(arguments: Arguments) -> str:
    """The box for p and q; the larger the horizon, the more the bonus of a rich player grows."""
    money = _most_money(arguments[0])
    base = _most_base(Fraction("0.0003"), money)
    return _box(p=(_LEAST_BASE, base), q=(Fraction(0), _most_q(base, 1, money)))


PARALLEL_SHORT = 10
"""Up to this horizon the bonus of both games grows with the first game's money (version 1)."""


def parallel_version(rounds: int) -> int:
    """Which of the two versions of the game a horizon gets."""
    return 1 if rounds <= PARALLEL_SHORT else 2


def parallel_domain(arguments: Arguments) -> str:
    """The box for p1, p2 and q; the largest bonus a coin is that of a bet of five."""
    (rounds,) = arguments
    money = _most_money(rounds)
    short = parallel_version(rounds) == 1
    bonus = ("0.003", "0.004") if short else ("0.0003", "0.0003")
    factor = (4, 5) if short else (1, 1)
    bases = [_most_base(Fraction(text), money) for text in bonus]
    q = min(_most_q(base, f, money) for base, f in zip(bases, factor, strict=True))
    return _box(p1=(_LEAST_BASE, bases[0]), p2=(_LEAST_BASE, bases[1]), q=(Fraction(0), q))


def _parallel_truth(arguments: Arguments) -> tuple[Fraction, ...]:
    q = "0.001" if parallel_version(arguments[0]) == 1 else "0.0004"
    return Fraction("0.55"), Fraction("0.53"), Fraction(q)


_MOST_ROUNDS = 146
_TOO_RICH = (
    "with more rounds a player can be so rich that a bet of 5 would be won with a probability above 0.99 "
    "at the true p = 0.55"
)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="aircraft",
            title="Aircraft collision avoidance",
            argument_names=("N", "M"),
            minimum=(1, 1),
            parameter_names=("theta1", "theta2", "theta3"),
            property_text='Pmax=? [ !"collision" U "goal" ]',
            constants=lambda a: {"N": a[0], "M": a[1]},
            domain=lambda a: _simplex("theta1", "theta2", "theta3"),
            truth=_point("0.4", "0.3", "0.2"),
        ),
        Family(
            name="betting",
            title="Betting game",
            argument_names=("n",),
            minimum=(1,),
            maximum=(_MOST_ROUNDS,),
            maximum_reason=_TOO_RICH,
            parameter_names=("p", "q"),
            property_text='Rmax=? [ F "done" ]',
            constants=lambda a: {"n": a[0]},
            domain=betting_domain,
            truth=_point("0.55", "0.0004"),
        ),
        Family(
            name="engagement",
            title="Customer engagement",
            argument_names=("L",),
            minimum=(2,),
            parameter_names=("theta1", "theta2", "theta3", "theta4"),
            property_text='R{"cost"}min=? [ F "done" ]',
            constants=lambda a: {"L": a[0]},
            domain=lambda a: _simplex("theta1", "theta2", "theta3", "theta4"),
            truth=_point("0.30", "0.25", "0.20", "0.15"),
            terminal_reward="penalty",
            episode_cap=10_000,
        ),
        Family(
            name="rover",
            title="Mars rover",
            argument_names=("X", "Y"),
            minimum=(2, 2),
            parameter_names=("theta1", "theta2", "theta3", "theta4", "theta5", "theta6"),
            property_text='Pmax=? [ !"crash" U ("target" & !"crash") ]',
            constants=lambda a: {"width": a[0], "height": a[1], "M": rover_tries(a[0])},
            domain=lambda a: ", ".join(f"0.05<=theta{i}<=0.22" for i in range(1, 7)),
            truth=_point("0.12", "0.18", "0.14", "0.20", "0.16", "0.20"),
        ),
        Family(
            name="glider",
            title="Underwater glider",
            argument_names=("X", "Y"),
            minimum=(2, 2),
            parameter_names=("theta_h", "theta_v"),
            property_text='R{"time"}min=? [ F "goal" ]',
            constants=lambda a: {"width": a[0], "height": a[1]},
            domain=lambda a: "0.1<=theta_h<=0.9, 0.1<=theta_v<=0.9",
            truth=_point("0.6", "0.4"),
            episode_cap=100,
        ),
        Family(
            name="parallel",
            title="Parallel betting game",
            argument_names=("n",),
            minimum=(1,),
            maximum=(_MOST_ROUNDS,),
            maximum_reason=_TOO_RICH,
            parameter_names=("p1", "p2", "q"),
            property_text='Rmax=? [ F "done" ]',
            constants=lambda a: {"n": a[0], "version": parallel_version(a[0])},
            domain=parallel_domain,
            truth=_parallel_truth,
        ),
    )
}
