"""Streams of events for `watch_experiment.py`: under a model, or with a parameter that jumps."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from tightrope.benchmarks.suite import load, parse_bench, question
from tightrope.data.design import find_decided_states
from tightrope.data.simulator import Simulator
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.prism.load import load_prism_text

SMALL = """mdp
const double p;
const double q;
module m
  s : [0..3] init 0;
  [a] s=0 -> p:(s'=1) + (1-p):(s'=2);
  [a] s=1 -> p:(s'=1) + (1-p):(s'=3);
  [b] s=0 -> q:(s'=1) + p*q:(s'=2) + (1-q-p*q):(s'=3);
  [c] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [d] s=1 -> p/2:(s'=0) + (1-p/2):(s'=1);
  [e] s>1 -> (s'=0);
endmodule
"""


@cache
def small() -> ParametricMDP:
    """Ties, a product and a known coin in nine lines."""
    found = load_prism_text(SMALL, "small.prism", box="p=0.1:0.9,q=0.05:0.45")
    assert isinstance(found, ParametricMDP)
    return found


def chances(model: ParametricMDP, *point: str) -> np.ndarray:
    """The probability of every transition at a point."""
    values = dict(zip(model.parameters.names, map(Fraction, point), strict=True))
    return np.array(model.instantiate(values).probability)


def draw(
    model: ParametricMDP, chance: np.ndarray, events: int, rng: np.random.Generator, adaptive: bool = False
) -> np.ndarray:
    """Outcomes of choices that are taken in turn; or, every 16 events, of the choice that deviates most.

    An adaptive policy takes the choice whose first outcome has been seen too often or too seldom by the most
    standard errors: it chases whatever looks like a departure.
    """
    start = model.transition_start
    wide = np.flatnonzero(np.diff(start) > 1)
    low, high = start[wide], start[wide + 1]
    tables = [np.cumsum(chance[a:b]) for a, b in zip(low, high, strict=True)]
    taken = np.arange(events) % len(wide)
    if not adaptive:
        return _outcomes(taken, low, tables, rng)
    found: list[np.ndarray] = []
    seen, first = np.ones(len(wide)), np.array([0.5] * len(wide))
    expected = np.array([table[0] for table in tables])
    for begin in range(0, events, 16):
        worst = np.argmax(np.abs(first / seen - expected) * np.sqrt(seen))
        part = _outcomes(np.full(min(16, events - begin), worst), low, tables, rng)
        seen[worst] += len(part)
        first[worst] += np.count_nonzero(part == low[worst])
        found.append(part)
    return np.concatenate(found)


def _outcomes(
    taken: np.ndarray, low: np.ndarray, tables: list[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    uniform = rng.random(len(taken))
    found = np.empty(len(taken), dtype=np.int64)
    for number, table in enumerate(tables):
        mine = np.flatnonzero(taken == number)
        place = np.searchsorted(table[:-1], uniform[mine], side="right")
        found[mine] = low[number] + place
    return found


@dataclass(frozen=True, eq=False)
class Jump:
    """One parameter of a benchmark that jumps by a tenth of its range, under the uniform policy."""

    model: ParametricMDP
    before: Simulator
    after: Simulator
    ratio: np.ndarray
    information: float
    """The Kullback–Leibler divergence of an event after the jump from one before, on average."""

    @staticmethod
    @cache
    def of(name: str, parameter: int) -> Jump:
        instance = parse_bench(name)
        model = load(instance)
        bounds = model.parameters
        width = (bounds.upper[parameter] - bounds.lower[parameter]) / 10
        moved = list(instance.truth)
        fits = moved[parameter] + width <= bounds.upper[parameter]
        moved[parameter] += width if fits else -width
        stop = find_decided_states(question(instance, model.structure).objective, model.states)
        both = [
            Simulator(model.instantiate(point), None, stop, instance.episode_cap, model.hash(), threads=1)
            for point in (instance.truth, tuple(moved))
        ]
        old, new = (np.asarray(simulator.mdp.probability) for simulator in both)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(new > 0.0, np.log(new) - np.log(old), 0.0)
        gain = np.add.reduceat(new * ratio, model.transition_start[:-1])
        sampled = model.structure.transition_choice[walk(both[1], 200_000, 99)]
        return Jump(model, both[0], both[1], ratio, float(gain[sampled].mean()))


def walk(simulator: Simulator, events: int, seed: int) -> np.ndarray:
    """The first events of episodes that follow each other."""
    found, total = [], 0
    for block in simulator.trajectories(10**9, seed):
        found.append(np.array(block.transition))
        total += len(block.transition)
        if total >= events:
            break
    return np.concatenate(found)[:events]
