"""Units that differ, independent draws from one population, each bounded like a learned result.

Either end of a unit's interval fails with probability at most m. The README has the three claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, inf, nextafter

import numpy as np

from tightrope_check import fields
from tightrope_check.budget import spend
from tightrope_check.errors import shown
from tightrope_check.evidence import Data, LearnedHints
from tightrope_check.fields import LARGEST
from tightrope_check.problem import Certificate, CertifiedObjective, ValueHints
from tightrope_check.report import bounded, confidence_text, text_below, value_text
from tightrope_check.statistics.episodes import exceeds, is_about
from tightrope_check.verdict import Assumption, Check, Verdict

MOST_UNITS = 2000
UNITS = "units are independent draws from one population, selected without regard to their values"
RUNS = "the number of episodes of a unit does not depend on how they ended"
POLICY = "the policy was chosen without the data of these units"


@dataclass(frozen=True, eq=False)
class Unit:
    """What a certificate of one unit holds beside the problem and the policy of all."""

    data: Data = fields.part(Data)
    learned: LearnedHints = fields.part(LearnedHints)
    low: float = fields.real(most=inf)
    high: float = fields.real(most=inf)
    values: ValueHints = fields.part(ValueHints)
    about: Mapping[str, str] = fields.texts()


@dataclass(frozen=True, eq=False, kw_only=True)
class FleetCertificate(Certificate):
    """Claims of a policy: for the share `share` of units, for the next one with probability `chance`, and the
    average within `low` and `high`. `again`: the same units at another level, for the average."""

    delta: float = fields.share()
    share: float = fields.share()
    chance: float = fields.share()
    most: float = fields.real()
    next_unit: float = fields.real()
    unit: tuple[Unit, ...] = fields.parts(Unit, MOST_UNITS)
    again: tuple[Unit, ...] = fields.parts(Unit, MOST_UNITS)
    low: float | None = fields.real(optional=True)
    high: float | None = fields.real(optional=True, most=inf)

    def trouble(self) -> str | None:
        if self.problem.law != "domain" or self.problem.data is not None or not self.unit:
            return "units are of a model over a domain, and have data of their own"
        named, again = ([one.about.get("unit") for one in units] for units in (self.unit, self.again))
        if None in named or len(set(named)) != len(named) or again not in ([], named):
            return "a unit without a name, or twice, or in one place only"
        policies = [one.policy for one in self.claims]
        whole = policies in (["fixed"], ["randomised"]) and (self.low is None) == (self.high is None)
        return None if whole else "not one policy, or an interval without an end"

    @property
    def parts(self) -> list[Certificate]:
        """The certificates of all units."""
        units, (claim,), problem = (*self.unit, *self.again), self.claims, self.problem
        claims = [replace(claim, lower=one.low, upper=one.high) for one in units]
        return [
            Certificate(replace(problem, data=unit.data), (claim,), (unit.values,), unit.learned)
            for unit, claim in zip(units, claims, strict=True)
        ]

    @property
    def upward(self) -> bool:
        """Whether most values are bounded from below."""
        return (self.problem.objective.agent == "MAX") != self.problem.objective.complement

    @property
    def claimed(self) -> dict[str, tuple[float, float]]:
        """What is claimed, by name."""
        ends = {"most units": self.most, "next unit": self.next_unit}
        sides = {name: (end, inf) if self.upward else (-inf, end) for name, end in ends.items()}
        return sides | (
            {} if self.low is None or self.high is None else {"average unit": (self.low, self.high)}
        )

    @property
    def words(self) -> dict[str, str]:
        """The same in words."""
        sure, most = f", confidence {confidence_text(self.delta)}", bounded(self.most, self.upward)
        share, chance = text_below(100 * self.share), text_below(self.chance)
        words = {"most units": f"value {most} for {share} % of all units{sure}"}
        words["next unit"] = f"value {bounded(self.next_unit, self.upward)} with probability {chance}"
        average = self.claimed.get("average unit")
        return words | ({} if average is None else {"average unit": f"average {value_text(*average)}{sure}"})


def check_units(fleet: Certificate, check: Callable[[Certificate], Verdict]) -> Verdict:
    """Every unit by `check`, and what follows of them together."""
    assert isinstance(fleet, FleetCertificate)
    fields.validate(fleet)
    checks, assumed, contradicted = list[Check](), dict[Assumption, None](), None
    for unit, part in zip((*fleet.unit, *fleet.again), fleet.parts, strict=True):
        verdict, name = check(part), f"unit {shown(unit.about['unit'])}"
        failed = [f"{one.name}: {one.detail}" for one in verdict.checks if not one.passed]
        checks.append(Check(name, not failed, (failed or [f"{len(verdict.checks)} checks"])[0]))
        if verdict.contradicted is not None:
            contradicted = f"{name}: {verdict.contradicted}"
        for about, status, words in verdict.assumptions:  # numbers of episodes differ
            number, _, rest = words.partition(" ")
            assumed[about, status, rest if number[0].isdigit() else words] = None
    named = [("units", UNITS), ("runs", RUNS)][: 1 + _has_episodes(fleet)]
    named += [("policy", POLICY)] * (fleet.problem.graph.choices > fleet.problem.graph.states)
    assumed |= {(name, "stated", words): None for name, words in named}
    if contradicted is None and all(one.passed for one in checks):
        checks += _together(fleet)
    return Verdict(tuple(checks), fleet.claimed, "fleet", tuple(assumed), contradicted=contradicted)


def _together(fleet: FleetCertificate) -> Iterator[Check]:
    """The three claims."""
    miss, size = _miss(fleet.unit), len(fleet.unit)
    for name, end in (("most units", fleet.most), ("next unit", fleet.next_unit)):
        below = sum(one.low < end if fleet.upward else one.high > end for one in fleet.unit)
        sure = Fraction(fleet.chance) <= 1 - (below + 1) / ((size + 1) * (1 - miss))
        if name == "most units":
            sure = (
                below < size and _tail(size, (1 - Fraction(fleet.share)) * (1 - miss), below) <= fleet.delta
            )
        yield Check(name, sure, f"{below} of {size} units are worse, bounds fail with {float(miss):g}")
    if fleet.low is not None:
        wrong = [
            name for upper, name in enumerate(("lower", "upper")) if not bounds_average(fleet, upper > 0)
        ]
        words = f"the {' and the '.join(wrong)} end is not proved" if wrong else "at most what was proved"
        yield Check("average unit", not wrong, words)


def _miss(units: tuple[Unit, ...]) -> Fraction:
    """The probability at most with which the interval of a unit fails."""
    seen = [[] if one.data.seen_delta is None else one.data.seen_delta[:1].tolist() for one in units]
    return max(Fraction(one.data.delta) + sum(map(Fraction, p)) for one, p in zip(units, seen, strict=True))


def _tail(size: int, p: Fraction, most: int) -> Fraction:
    """P(Bin(size, p) ≤ most)."""
    a, b = p.numerator, p.denominator
    spend("units", 10 * (most + 1), size * b.bit_length())
    return Fraction(sum(comb(size, j) * a**j * (b - a) ** (size - j) for j in range(most + 1)), b**size)


def _has_episodes(fleet: FleetCertificate) -> bool:
    """Whether the means of units are seen."""
    return is_about(fleet.problem, fleet.claims[0]) and all(one.data.seen is not None for one in fleet.unit)


def bounds_average(fleet: FleetCertificate, upper: bool) -> bool:
    """Whether one end of the interval of the average is proved."""
    end, (least, most) = (fleet.low, fleet.high)[upper], fleet.problem.objective.range
    assert end is not None
    if _has_episodes(fleet):
        slack, pairs = Fraction(0), [_mean(one.data, upper, fleet.problem.objective) for one in fleet.unit]
    else:
        units, limit = fleet.again or fleet.unit, most if upper else least
        ends = [one.high if upper else one.low for one in units]
        slack = _miss(units) * Fraction(min(most, LARGEST) - max(least, -LARGEST))
        known = [(one, limit) if abs(limit) <= LARGEST >= abs(one) else (0.0, 0.0) for one in ends]
        pairs = [(limit, abs(Fraction(one) - Fraction(at))) for one, at in known]
    limits, away = {limit for limit, _ in pairs}, [nextafter(float(one), 0.0) for _, one in pairs]
    (limit, *others) = limits
    if others or (inside := (limit - end) if upper else (end - limit)) <= 0 or not inside < inf:
        return not others and bool(inside <= 0)
    value, count = np.unique([one for one in away if one > 0.0], return_counts=True)
    distance = abs(Fraction(end) - Fraction(limit)) + slack
    return exceeds(np.stack([value, count], axis=1), len(pairs), distance, Fraction(fleet.delta) / 2, True)


def _mean(data: Data, upper: bool, objective: CertifiedObjective) -> tuple[float, Fraction]:
    """An end of the returns of a unit, and how far from it their mean is, at least."""
    assert data.seen is not None and data.seen_delta is not None
    episodes = max(int(data.seen[1]), 1)
    if data.returns is None:
        return float(upper), Fraction(int(data.seen[3 if upper != objective.complement else 2]), episodes)
    rows = data.returns[data.returns[:, 0] == upper, 1:].tolist()
    return (*data.seen_delta[1:].tolist(), inf)[upper], sum(
        (Fraction(y) * int(n) for y, n in rows), Fraction(0)
    ) / episodes
