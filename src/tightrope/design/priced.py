"""What data cost, and the oracle that collects most per unit of cost.

An episode costs `episode` and every step `step`, or what its choice costs. Rewards per cost are a ratio of
two functions that are linear in the occupancy. Dinkelbach (1967): at a rate λ maximise reward − λ·cost; the
policy's own rate is the next λ, until nothing is left. Each answer bounds every rate,

    reward(ρ)/cost(ρ) ≤ λ + max(U(λ), 0)/least cost,     U(λ) ≥ max_ρ reward(ρ) − λ·cost(ρ),

so that the design's distance from the best stays certified.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tightrope.design.oracle import Answer, Oracle
from tightrope.errors import InputError, Location
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import FloatArray

ROUNDS = 30
CLOSE = 1e-5
"""Relative: how near the rate is to the best when rounds end."""

WORDS = ("episode", "step")


@dataclass(frozen=True)
class Cost:
    """What an episode, a step, and steps of single actions cost.

    >>> Cost.parse("episode=1,step=0.01").step
    0.01
    """

    episode: float = 1.0
    step: float = 0.0
    actions: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        prices = (self.episode, self.step, *(price for _, price in self.actions))
        if not all(math.isfinite(price) and price >= 0.0 for price in prices):
            raise InputError("prices must be numbers, and none may be negative")
        if self.episode == 0.0 and not any(price > 0.0 for price in prices):
            raise InputError("nothing costs anything", hint="give a price, such as episode=1 or step=0.01")

    @staticmethod
    def parse(given: str) -> Cost:
        """From a text such as "episode=1,step=0.01", or the name of a file with prices:
        {"episode": 1, "step": 0.01, "actions": {"up": 0.5}}. What is not named is free."""
        if given.endswith(".json"):
            return _read(Path(given))
        found: dict[str, float] = {}
        for part in given.split(","):
            word, equals, number = (piece.strip() for piece in part.partition("="))
            try:
                price = float(number)
            except ValueError:
                price = math.nan
            if word not in WORDS or not equals or math.isnan(price):
                raise InputError(
                    f"the cost '{part.strip()}' is not understood",
                    hint="write 'episode=1,step=0.01', or name a JSON file with prices per action",
                )
            if word in found:
                raise InputError(f"the price of {'an' if word == 'episode' else 'a'} {word} is given twice")
            found[word] = price
        return Cost(found.get("episode", 0.0), found.get("step", 0.0))

    @property
    def is_by_episode(self) -> bool:
        """Whether only the number of episodes matters."""
        return self.step == 0.0 and not any(price > 0.0 for _, price in self.actions)

    @property
    def text(self) -> str:
        parts = [("episode", self.episode), ("step", self.step), *self.actions]
        return ", ".join(f"{name} {price:.10g}" for name, price in parts if price > 0.0)

    def per_choice(self, structure: Structure) -> FloatArray:
        """What a step of every choice costs; a named action costs its own price instead of a step's."""
        price = np.full(len(structure.action_names), self.step)
        for name, own in self.actions:
            if name not in structure.action_names:
                raise InputError(
                    f"the cost names the action '{name}', which the model does not have",
                    hint=f"its actions are {', '.join(structure.action_names)}",
                )
            price[structure.action_names.index(name)] = own
        result: FloatArray = price[structure.action_of_choice]
        return result


def price_oracle(ask: Oracle, cost: Cost, structure: Structure) -> Oracle:
    """The oracle whose answers collect most per unit of cost."""
    if cost.is_by_episode:
        return lambda reward: _scale(ask(reward), cost.episode)
    price = cost.per_choice(structure)
    cheapest = cost.episode + float(
        price[structure.choice_start[structure.initial] : structure.choice_start[structure.initial + 1]].min()
    )
    if not cheapest > 0.0:
        raise InputError(
            "an episode may be free of charge, so data would cost nothing",
            hint="give a price for every episode: episode=1",
        )

    def asked(reward: FloatArray) -> Answer:
        rate, upper = 0.0, math.inf
        best: Answer | None = None
        for _ in range(ROUNDS):
            answer = ask(reward - rate * price)
            spent = cost.episode + float(answer.atom.occupancy @ price)
            reached = float(answer.atom.occupancy @ reward) / spent
            upper = min(upper, rate + max(answer.upper - rate * cost.episode, 0.0) / cheapest)
            if best is None or reached > best.value:
                best = Answer(replace(answer.atom, cost=spent), reached, upper)
            if upper <= best.value * (1.0 + CLOSE) or reached <= rate:
                break
            rate = best.value
        assert best is not None
        return Answer(best.atom, best.value, max(upper, best.value))

    return asked


def _scale(answer: Answer, cost: float) -> Answer:
    return Answer(replace(answer.atom, cost=cost), answer.value / cost, answer.upper / cost)


def _read(path: Path) -> Cost:
    place = Location(str(path))
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"this is no JSON: {error}", place) from error
    hint = 'such a file reads {"episode": 1, "step": 0.01, "actions": {"up": 0.5}}'
    if not isinstance(found, dict) or not set(found) <= {*WORDS, "actions"}:
        raise InputError("this is no file of prices", place, hint)
    actions = found.get("actions", {})
    if not isinstance(actions, dict):
        raise InputError("'actions' is no object of prices per action", place, hint)
    prices = [*(found.get(word, 0.0) for word in WORDS), *actions.values()]
    if not all(_is_price(price) for price in prices):
        raise InputError("a price is a number that is not negative", place, hint)
    return Cost(float(prices[0]), float(prices[1]), tuple((name, float(p)) for name, p in actions.items()))


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < math.inf
