"""The judge: what `verify` says of a forgery, and whether the truth allows what it lets pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from adversary.archive import Forgery, rationals
from adversary.honest import Honest, quietly
from adversary.truth_costs import costs_of
from adversary.truth_learning import range_of
from adversary.truth_questions import SLACK, average_of, temporal_bounds
from adversary.truth_values import BySteps, Question, is_allowed, objective_of
from exact_reference import TinyModel

Weights = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Verdict:
    """The exit code, the JSON object on stdout (None where there is none) and what stands on stderr."""

    code: int
    result: dict[str, Any] | None
    err: str

    @property
    def accepted(self) -> bool:
        return self.code == 0


@dataclass(frozen=True)
class Claimed:
    """One claim of a file. `weights` None: about the agent's best policy."""

    name: str
    lower: float
    upper: float
    weights: Weights | None


def verify(path: Path, *options: str) -> Verdict:
    """Run the command; nothing but 0, 1 and 2 is an answer, and what it prints is JSON or nothing."""
    code, out, err = quietly(["verify", str(path), *options, "--json"])
    assert code in (0, 1, 2), f"exit code {code}: {err}"
    assert "Traceback" not in err
    return Verdict(code, json.loads(out) if out else None, err)


def claims_of(forgery: Forgery) -> Iterator[Claimed]:
    """Read as any reader of the file would."""
    start = forgery["problem.graph.choice_start"].tolist()
    for number, node in enumerate(forgery["claims"]):
        weights = None
        if node["policy"] == "fixed":
            chosen = forgery[f"claims.{number}.choice"].tolist()
            earlier = forgery.arrays.get(f"claims.{number}.earlier", np.zeros((0, 3), dtype=np.int64))
            steps = [_certain(start, chosen)]
            for step in range(int(earlier[:, 0].max(initial=-1)), -1, -1):
                for _, state, choice in (row for row in earlier.tolist() if row[0] == step):
                    chosen[state] = choice
                steps.insert(0, _certain(start, chosen))
            weights = steps[0] if len(earlier) == 0 else BySteps(steps)
        if node["policy"] == "randomised":
            share = [Fraction(float(w)) for w in forgery[f"claims.{number}.weight"]]
            weights = tuple(tuple(w / sum(share[a:b]) for w in share[a:b]) for a, b in pairwise(start))
        yield Claimed(node["name"], float(node["lower"]), float(node["upper"]), weights)


def _certain(start: list[int], chosen: list[int]) -> Weights:
    return tuple(
        tuple(Fraction(int(c == chosen[s])) for c in range(a, b)) for s, (a, b) in enumerate(pairwise(start))
    )


def refutation(honest: Honest, forgery: Forgery) -> str | None:
    """Why a claim of the file is false of the honest problem, or None where nothing speaks against it."""
    for claim in claims_of(forgery):
        if honest.name.startswith(("walk", "spread", "domain", "newest/costs")):
            costly = honest.name == "newest/costs"
            low, high = (costs_of if costly else range_of)(honest, claim.weights)
            if not (
                Fraction(claim.lower) <= low and (claim.upper == np.inf or Fraction(claim.upper) >= high)
            ):
                return (
                    f"{claim.name} in [{claim.lower!r}, {claim.upper!r}], but instantiations of the region "
                    f"reach [{float(low)!r}, {float(high)!r}]"
                )
        elif honest.name.startswith("remembered"):
            for low, high in _remembered(honest, forgery):
                if claim.lower > high + SLACK or claim.upper < low - SLACK:
                    return f"{claim.name} in [{claim.lower!r}, {claim.upper!r}], but a value is {low!r}"
        elif forgery["problem.objective.kind"] in ("AVERAGE", "TEMPORAL"):
            low, high = span_of(forgery, claim.weights)
            if claim.lower > high + SLACK or claim.upper < low - SLACK:
                return f"{claim.name} in [{claim.lower!r}, {claim.upper!r}], the value in [{low!r}, {high!r}]"
        else:
            truth = value_of(forgery, claim.weights)
            if not is_allowed(claim.lower, claim.upper, truth):
                return f"{claim.name} in [{claim.lower!r}, {claim.upper!r}], the value is {shown(truth)}"
    return None


def shown(value: Fraction) -> str:
    try:
        return repr(float(value))
    except OverflowError:
        return "beyond all doubles"


def value_of(forgery: Forgery, weights: Weights | None) -> Fraction:
    """The exact value of the problem that a file writes down."""
    return _value(_Key(forgery), weights)


def span_of(forgery: Forgery, weights: Weights | None) -> tuple[float, float]:
    """Bounds of the value of a long-run average or a temporal formula that a file writes down."""
    return _span(_Key(forgery), weights)


def _remembered(honest: Honest, forgery: Forgery) -> Iterator[tuple[float, float]]:
    """Values of the policy that is claimed, at points of the honest region."""
    choice = forgery["claims.0.choice"]
    for p in (0.5, 0.55, 0.6):
        values = polynomials_at(forgery, [Fraction(p)])
        bounds = [values[e] for e in forgery["problem.expression"].tolist()]
        yield temporal_bounds(forgery, bounds, bounds, choice)


class _Key:
    """A file, as far as its problem goes."""

    def __init__(self, forgery: Forgery):
        self.forgery, self.name = forgery, forgery.part("problem")

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.name == other.name


@cache
def _value(key: _Key, weights: Weights | None) -> Fraction:
    question = question_of(key.forgery)
    return question.value(weights)


@cache
def _span(key: _Key, weights: Weights | None) -> tuple[float, float]:
    model, low, high = game_of(key.forgery)
    if key.forgery["problem.objective.kind"] == "AVERAGE":
        average = average_of(key.forgery, model.choices, weights)
        return average, average
    return temporal_bounds(key.forgery, low, high)


def question_of(forgery: Forgery) -> Question:
    """The problem of a file in exact numbers."""
    passing = np.flatnonzero(forgery.arrays.get("problem.passing", ()))
    initial = forgery["problem.graph.initial"]
    return Question(game_of(forgery)[0], objective_of(forgery), initial, tuple(passing.tolist()))


def game_of(forgery: Forgery) -> tuple[TinyModel, list[Fraction], list[Fraction]]:
    """The model of a file, and its bounds. Doubles stand for the short decimals they were written from."""
    choice_start = forgery["problem.graph.choice_start"].tolist()
    transition_start = forgery["problem.graph.transition_start"].tolist()
    successor = forgery["problem.graph.successor"].tolist()
    if "problem.probability" in forgery:
        low = high = [Fraction(float(p)).limit_denominator(10**6) for p in forgery["problem.probability"]]
    elif "problem.lower" in forgery:
        low, high = ([Fraction(float(p)) for p in forgery[f"problem.{end}"]] for end in ("lower", "upper"))
    else:
        values = polynomials_at(forgery, rationals(forgery["problem.theta"]))
        low = high = [values[e] for e in forgery["problem.expression"].tolist()]
    entries = list(zip(successor, low, high, strict=True))
    rows = [tuple(entries[a:b]) for a, b in pairwise(transition_start)]
    return TinyModel(tuple(tuple(rows[a:b]) for a, b in pairwise(choice_start))), low, high


def polynomials_at(forgery: Forgery, theta: list[Fraction]) -> list[Fraction]:
    """Every polynomial at a point."""
    values = []
    for line in forgery["problem.polynomial"]:
        total = Fraction(0)
        for coefficient, *factors in (term.split("*") for term in line.split(" ") if term):
            value = Fraction(coefficient)
            for i, exponent in (factor.split("^") for factor in factors):
                value *= theta[int(i)] ** int(exponent)
            total += value
        values.append(total)
    return values
