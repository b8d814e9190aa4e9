"""What others say from the same log: width, misses and seconds of each method, side by side.

    python benchmarks/rivals.py [--replications 300] [--worlds chain …] [--figure FILE] [--json FILE]
    python benchmarks/rivals.py --merge A.json B.json --json rows.json    # runs of some worlds each
    python benchmarks/rivals.py --write docs/results/rivals.json    # the tables of three pages
    python benchmarks/rivals.py --smoke

A *world* is a small model at its true point: six families of the paper, and three models that the learning
literature uses. A replication is one log of episodes under the policy that picks uniformly. *The value of one
policy*, fixed beforehand (the one that is best in truth), is asked for at δ = 0.1:

* LUI (Suilen, Simão, Parker, Jansen 2022): intervals [ε, 1 − ε] with strengths 5 to 10 are updated linearly.
* UCRL2 (Jaksch, Ortner, Auer 2010): an L1 ball of radius √(14·S·log(2·A·t/δ)/N) around each estimate.
* PAC: Hoeffding's interval for each transition at δ over the number of transitions.
* MAP + Storm: the mode of a Dirichlet posterior (α = 2), solved by Storm. A number, not an interval.
* posterior sampling: the middle 1 − δ of the values of 200 models drawn from Dirichlet posteriors (α = 1).
* bootstrap: the middle 1 − δ of the values of 200 estimates from episodes drawn again.
* importance sampling: weighted returns, with the empirical Bernstein bound of Maurer and Pontil (2009) and
  with the bets of Waudby-Smith and Ramdas (2024; `tightrope.statistics.returns`).
* tightrope, untied: it knows no more than the methods above. tightrope: `tr.learn` as it comes.

Methods that know no formulas know the graph, and which probabilities are 1 (UCRL2 as published knows
neither). Their robust values are exact for their sets up to float64: worst distributions and the values that
they lead to take turns until nothing changes. An interval *misses* where it does not hold the true value; a
number misses where the policy is worse than it says. A sound method misses one log in ten at most, in the
long run; a row is marked UNSOUND where even the 99.9 % lower confidence bound of its rate is above that.

*A better policy* than the uniform one is asked for next (`--improve`): SPIBB (Laroche, Trichelair, Tachet des
Combes 2019; choices seen fewer than 10 times keep the baseline's share) claims its estimate, the plug-in rule
likewise, and `tr.improve` what it proves. A claim misses where the policy gains less than it says.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

import tightrope as tr
from tightrope.statistics.returns import Tally, mean_interval

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DELTA = 0.1
LEAST = 1e-8
"""No possible transition has less probability, for methods that know the graph."""
DRAWS = 200
KEEPS_BASELINE = 10
SPREAD = 1e6
"""A value this many times the true one is shown as infinite."""

CLASSICAL: dict[str, tuple[str, str, dict[str, float]]] = {
    "bets": ("0.05<=win<=0.95", 'Rmax=? [ F "done" ]', {"win": 0.8}),
    "encounter": (
        "0.05<=obeys<=0.95, 0.02<=drifts<=0.48",
        'Pmax=? [ !"crash" U "past" ]',
        {"obeys": 0.8, "drifts": 0.4},
    ),
    "chain": (
        "0.05<=half<=0.95, 0.05<=slow<=0.95, 0.05<=fast<=0.95",
        'R{"steps"}min=? [ F "goal" ]',
        {"half": 0.5, "slow": 0.2, "fast": 0.8},
    ),
}
"""Files of `benchmarks/classical`: domain, question and true point."""

EPISODES = {
    "aircraft(3,2)": 300,
    "betting(3)": 300,
    "engagement(2)": 300,
    "rover(4,4)": 300,
    "glider(3,3)": 300,
    "parallel(1)": 300,
    "bets": 300,
    "encounter": 300,
    "chain": 100,
}
"""The worlds, and how many episodes their logs have."""


@cache
def world(name: str) -> World:
    return World(name)


class World:
    """A model at its true point as arrays of choices × successors, and the policy that is asked about."""

    def __init__(self, name: str):
        self.name = name
        if name in CLASSICAL:
            domain, question, point = CLASSICAL[name]
            self.model = tr.load(Path(__file__).parent / "classical" / f"{name}.prism", domain=domain)
            self.problem = self.model.problem(question)
            at_truth = tr.Problem(self.model.instantiate(**point), question)
        else:
            bench = tr.benchmark(name)
            self.model, self.problem, at_truth = bench.model, bench.problem, bench.at_truth
        self.truth = at_truth.model
        structure, objective = self.model.structure, self.problem.objective
        self.maximises = self.problem.maximises
        self.policy = tr.solve(at_truth).policy
        self.start = structure.transition_start
        self.owner = structure.choice_state
        self.states, self.choices, self.initial = structure.states, structure.choices, self.model.initial
        sizes = np.diff(self.start)
        self.width = int(sizes.max())
        column = np.arange(self.width)
        self.possible = column[None, :] < sizes[:, None]
        self.place = np.where(self.possible, self.start[:-1, None] + column, 0)
        self.successor = np.where(self.possible, structure.successor[self.place], 0).astype(np.int64)
        self.ends = np.zeros(self.states, dtype=bool)
        self.worth = np.zeros(self.states)
        self.pay = np.zeros(self.choices)
        self.ends |= objective.target
        if objective.reward is None:
            self.worth[objective.target] = 1.0
            if objective.allowed is not None:
                self.ends |= ~objective.allowed
        else:
            self.pay = objective.reward.per_choice(structure)
            if objective.terminal is not None:
                self.worth = np.where(objective.target, objective.terminal, 0.0)
        loops = (sizes == 1) & (self.successor[:, 0] == self.owner)
        self.ends |= np.bincount(self.owner, ~loops, self.states) == 0
        self.simulator = tr.Simulator(self.truth, stop=self.ends, model_hash=self.model.hash(), cap=1000)
        self.real = self.arrange(self.truth.probability)
        self.value = self.value_of(self.real, self.policy.probability)
        uniform = tr.Policy.uniform(self.model).probability
        self.uniform = uniform
        self.baseline = self.value_of(self.real, uniform)
        self.free = sizes > 1
        self.transitions = int(sizes[self.free].sum())

    def arrange(self, by_transition: Floats) -> Floats:
        """Numbers of transitions as choices × successors."""
        return np.where(self.possible, by_transition[self.place], 0.0)

    def chain(self, distribution: Floats, chosen: Floats) -> tuple[Floats, Floats]:
        """Matrix and pay of the chain under a policy; leading axes of `distribution` are kept."""
        weight = distribution * chosen[:, None]
        shape = (*distribution.shape[:-2], self.states, self.states)
        matrix = np.zeros(shape)
        rows = np.repeat(self.owner, self.width)
        flat = weight.reshape(*distribution.shape[:-2], -1)
        if flat.ndim == 1:
            np.add.at(matrix, (rows, self.successor.ravel()), flat)
        else:
            np.add.at(matrix, (slice(None), rows, self.successor.ravel()), flat)
        return matrix, np.bincount(self.owner, self.pay * chosen, self.states)

    def values(self, distribution: Floats, chosen: Floats) -> Floats:
        """The value of every state under a policy."""
        matrix, pay = self.chain(distribution, chosen)
        matrix[..., self.ends, :] = 0.0
        pay = np.where(self.ends, self.worth, pay)
        system = np.eye(self.states) - matrix
        try:
            return np.linalg.solve(system, np.broadcast_to(pay, system.shape[:-1])[..., None])[..., 0]
        except np.linalg.LinAlgError:
            return np.full(system.shape[:-1], math.inf)

    def value_of(self, distribution: Floats, chosen: Floats) -> float:
        return float(self.values(distribution, chosen)[self.initial])

    @cached_property
    def small(self) -> tuple[Ints, Ints]:
        """The choices that the policy takes in states it reaches, and these states."""
        reached, stack = np.zeros(self.states, dtype=bool), [self.initial]
        while stack:
            state = stack.pop()
            if reached[state]:
                continue
            reached[state] = True
            if not self.ends[state]:
                for choice in np.flatnonzero((self.owner == state) & (self.policy.probability > 0)):
                    stack += self.successor[choice][self.possible[choice]].tolist()
        states = np.flatnonzero(reached)
        taken = reached[self.owner] & ~self.ends[self.owner] & (self.policy.probability > 0)
        return np.flatnonzero(taken), states

    def many_values(self, distributions: Floats) -> Floats:
        """The policy's value in each of many models, given by distributions of the choices of `small`."""
        choices, states = self.small
        index = np.full(self.states, -1)
        index[states] = np.arange(len(states))
        size = len(states)
        matrix = np.zeros((len(distributions), size, size))
        weight = distributions * self.policy.probability[choices][:, None]
        rows = np.repeat(index[self.owner[choices]], self.width)
        columns = np.where(self.possible[choices], index[self.successor[choices]], 0).ravel()
        np.add.at(matrix, (slice(None), rows, columns), weight.reshape(len(weight), -1))
        pay = np.bincount(
            index[self.owner[choices]], self.pay[choices] * self.policy.probability[choices], size
        )
        pay[self.ends[states]] = self.worth[states[self.ends[states]]]
        system = np.eye(size) - matrix
        right = np.broadcast_to(pay, (len(weight), size))[..., None]
        return np.linalg.solve(system, right)[:, index[self.initial], 0]


@dataclass(frozen=True, eq=False)
class Log:
    """What a replication saw: the data as tightrope takes them, and counts by choice and successor."""

    data: tr.Counts
    count: Floats
    visits: Floats

    @staticmethod
    def draw(here: World, seed: int, episodes: int) -> Log:
        data = here.simulator.episodes(episodes, seed=seed)
        count = here.arrange(data.transition.astype(float))
        return Log(data, count, count.sum(axis=1))


Interval = tuple[float, float]


# --- robust values over sets of each choice -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Box:
    """Intervals for each probability."""

    lower: Floats
    upper: Floats

    def extreme(self, here: World, worth: Floats, high: bool) -> Floats:
        """The distributions of largest (smallest) expected worth: o-maximisation."""
        order = np.argsort(
            np.where(here.possible, -worth if high else worth, math.inf), axis=1, kind="stable"
        )
        room = np.take_along_axis(self.upper - self.lower, order, axis=1)
        left = 1.0 - self.lower.sum(axis=1, keepdims=True)
        before = np.cumsum(room, axis=1) - room
        extra = np.clip(left - before, 0.0, room)
        result = np.zeros_like(self.lower)
        np.put_along_axis(result, order, extra, axis=1)
        return self.lower + result


@dataclass(frozen=True, eq=False)
class Ball:
    """Distributions within an L1 distance of the centre."""

    centre: Floats
    radius: Floats

    def extreme(self, here: World, worth: Floats, high: bool) -> Floats:
        key = np.where(here.possible, worth if high else -worth, -math.inf)
        best = np.argmax(key, axis=1)
        rows = np.arange(here.choices)
        raised = np.minimum(self.radius / 2, 1.0 - self.centre[rows, best])
        order = np.argsort(np.where(here.possible, key, math.inf), axis=1, kind="stable")
        least = np.where(here.possible, LEAST, 0.0)
        room = np.take_along_axis(np.maximum(self.centre - least, 0.0), order, axis=1)
        before = np.cumsum(room, axis=1) - room
        taken = np.clip(raised[:, None] - before, 0.0, room)
        # nothing is taken from the best successor: it comes last in the order
        position = np.argmax(order == best[:, None], axis=1)
        taken[rows, position] = 0.0
        result = self.centre.copy()
        lowered = np.zeros_like(result)
        np.put_along_axis(lowered, order, taken, axis=1)
        result -= lowered
        result[rows, best] += taken.sum(axis=1)
        return result


def robust(here: World, sets: Box | Ball, chosen: Floats, high: bool) -> float:
    """The largest (smallest) value of the policy, nature picking anew in every step."""
    distribution = sets.extreme(here, here.worth[here.successor], high)
    for _ in range(60):
        values = here.values(distribution, chosen)
        if not np.all(np.isfinite(values)) or np.max(np.abs(values)) > 1e12:
            return math.inf if high else float(values[here.initial])
        following = sets.extreme(here, values[here.successor], high)
        gain = np.einsum("ij,ij->i", following - distribution, values[here.successor])
        if np.max(np.abs(gain)) <= 1e-11 * max(1.0, float(np.max(np.abs(values)))):
            break
        distribution = following
    return float(values[here.initial])


def both(here: World, sets: Box | Ball) -> Interval:
    chosen = here.policy.probability
    return robust(here, sets, chosen, False), robust(here, sets, chosen, True)


# --- the rivals ---------------------------------------------------------------------------------------------


def lui(here: World, log: Log) -> Interval:
    """Strengths of 5 and 10 and ε = 1e-4: what the authors' programs take. With priors as wide as these data
    never conflict with them, so the upper strength decides, and batches do not matter."""
    epsilon, strength = 1e-4, 10.0
    total = (strength + log.visits)[:, None]
    fixed = here.possible & ~here.free[:, None]
    lower = np.where(fixed, 1.0, (strength * epsilon + log.count) / total)
    upper = np.where(fixed, 1.0, (strength * (1 - epsilon) + log.count) / total)
    return both(here, Box(np.where(here.possible, lower, 0.0), np.where(here.possible, upper, 0.0)))


def estimate(here: World, log: Log, alpha: float = 1.0) -> Floats:
    """The mode of Dirichlet posteriors; where nothing was seen, all successors alike."""
    number = here.possible.sum(axis=1, keepdims=True)
    weight = np.where(here.possible, log.count + (alpha - 1.0), 0.0)
    total = weight.sum(axis=1, keepdims=True)
    return np.where(total > 0, weight / np.where(total > 0, total, 1.0), here.possible / number)


def ucrl2(here: World, log: Log) -> Interval:
    most = int(np.bincount(here.owner).max())
    steps = max(float(log.visits.sum()), 1.0)
    radius = np.sqrt(14 * here.states * math.log(2 * most * steps / DELTA) / np.maximum(1.0, log.visits))
    return both(here, Ball(estimate(here, log), np.where(here.free, np.minimum(radius, 2.0), 0.0)))


def pac(here: World, log: Log) -> Interval:
    gamma = DELTA / here.transitions
    with np.errstate(divide="ignore"):
        radius = np.sqrt(math.log(2 / gamma) / (2 * log.visits))[:, None]
    radius = np.where(here.free[:, None], radius, 0.0)
    middle = estimate(here, log)
    least = np.where(here.possible, np.where(here.free[:, None], LEAST, 1.0), 0.0)
    lower = np.maximum(middle - radius, least)
    upper = np.where(here.possible, np.minimum(middle + radius, 1.0), 0.0)
    return both(here, Box(lower, np.maximum(upper, lower)))


def map_storm(here: World, log: Log) -> Interval:
    """What Storm says of the policy in the model at the posterior's mode: a point, one-sided."""
    import stormpy

    middle = estimate(here, log, alpha=2.0)
    matrix, pay = here.chain(middle, here.policy.probability)
    over = here.states  # the worth of ends is collected on the way into one more state
    earned = np.where(here.ends, here.worth, pay)
    lines = ["@type: DTMC", "@parameters", "", "@reward_models", "pay", "@nr_states", str(over + 1)]
    lines += ["@nr_choices", str(over + 1), "@model"]
    for state in range(over):
        label = "init" if state == here.initial else ""
        lines += [f"state {state} [{earned[state]!r}] {label}", "\taction 0 [0]"]
        leads = [over] if here.ends[state] else np.flatnonzero(matrix[state])
        lines += [f"\t\t{to} : {1.0 if here.ends[state] else matrix[state, to]!r}" for to in leads]
    lines += [f"state {over} [0] over", "\taction 0 [0]", f"\t\t{over} : 1"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.drn"
        file.write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n")
        model = stormpy.build_model_from_drn(str(file))
    (formula,) = stormpy.parse_properties('R{"pay"}=? [ F "over" ]')
    value = float(stormpy.model_checking(model, formula).get_value(model.initial_states[0]))
    return (value, math.inf) if here.maximises else (-math.inf, value)


def middle_of(values: Floats) -> Interval:
    low, high = np.quantile(values[np.isfinite(values)], [DELTA / 2, 1 - DELTA / 2])
    return float(low), float(high)


def posterior(here: World, log: Log) -> Interval:
    choices, _ = here.small
    random = np.random.default_rng(int(log.visits.sum()))
    shape = np.where(here.possible[choices], log.count[choices] + 1.0, 1.0)
    weight = np.where(here.possible[choices], random.standard_gamma(shape, (DRAWS, *shape.shape)), 0.0)
    return middle_of(here.many_values(weight / weight.sum(axis=2, keepdims=True)))


def bootstrap(here: World, log: Log) -> Interval:
    choices, _ = here.small
    rows = log.data.log()
    random = np.random.default_rng(int(log.visits.sum()))
    episodes = rows.episodes
    part = here.place[choices]
    slot = np.full(len(here.model.structure.successor), -1)
    slot[part[here.possible[choices]]] = np.flatnonzero(here.possible[choices].ravel())
    counted = slot[rows.transition] >= 0
    seen = np.zeros((episodes, part.size))
    np.add.at(seen, (rows.episode[counted], slot[rows.transition[counted]]), 1.0)
    again = random.multinomial(episodes, np.full(episodes, 1 / episodes), DRAWS).astype(float)
    count = (again @ seen).reshape(DRAWS, len(choices), here.width)
    total = count.sum(axis=2, keepdims=True)
    number = here.possible[choices].sum(axis=1)[None, :, None]
    with np.errstate(invalid="ignore"):
        share = np.where(total > 0, count / total, here.possible[choices] / number)
    return middle_of(here.many_values(share))


def weighted(here: World, log: Log) -> tuple[Floats, Floats, Interval] | None:
    """Returns and weights of the episodes, and what returns lie between; None where nothing bounds them."""
    span = returns(here)
    if span is None:
        return None
    rows = log.data.log()
    choice = here.model.structure.transition_choice[rows.transition]
    ratio = here.policy.probability[choice] / here.uniform[choice]
    weight = np.ones(rows.episodes)
    np.multiply.at(weight, rows.episode, ratio)
    result = np.zeros(rows.episodes)
    np.add.at(result, rows.episode, here.pay[choice])
    last = np.zeros(rows.episodes, dtype=np.int64)
    last[rows.episode] = here.model.structure.successor[rows.transition]
    return result + here.worth[last], weight, span


@cache
def returns(here: World) -> Interval | None:
    """The least and the largest return of a path, where no path goes in circles."""
    low, high = here.worth.copy(), here.worth.copy()
    live = ~here.ends
    for _ in range(here.states + 1):
        ahead_low = np.where(here.possible, low[here.successor], math.inf).min(axis=1) + here.pay
        ahead_high = np.where(here.possible, high[here.successor], -math.inf).max(axis=1) + here.pay
        new_low, new_high = low.copy(), high.copy()
        for state in np.flatnonzero(live):
            own = here.owner == state
            new_low[state], new_high[state] = ahead_low[own].min(), ahead_high[own].max()
        if np.array_equal(new_low, low) and np.array_equal(new_high, high):
            return float(low[here.initial]), float(high[here.initial])
        low, high = new_low, new_high
    return None


@cache
def largest_weight(here: World) -> float:
    """The largest product of ratios along a path; infinite where paths go in circles."""
    most = np.ones(here.states)
    ratio = here.policy.probability / here.uniform
    for _ in range(here.states + 1):
        ahead = np.where(here.possible, most[here.successor], 0.0).max(axis=1) * ratio
        new = most.copy()
        for state in np.flatnonzero(~here.ends):
            new[state] = ahead[here.owner == state].max()
        if np.array_equal(new, most):
            return float(most[here.initial])
        most = new
    return math.inf


def bernstein(here: World, log: Log) -> Interval | None:
    found = weighted(here, log)
    if found is None:
        return None
    result, weight, (low, high) = found
    scale = largest_weight(here) * (high - low)
    if not math.isfinite(scale):
        return low, high
    ends = []
    for sample in (weight * (result - low), weight * (high - result)):
        number, level = len(sample), math.log(2 / (DELTA / 2))
        radius = math.sqrt(2 * sample.var(ddof=1) * level / number) + 7 * scale * level / (3 * (number - 1))
        ends.append(max(float(sample.mean()) - radius, 0.0))
    return min(low + ends[0], high), max(high - ends[1], low)


def betting(here: World, log: Log) -> Interval | None:
    found = weighted(here, log)
    if found is None:
        return None
    result, weight, (low, high) = found
    above, below = Tally.of(weight * (result - low)), Tally.of(weight * (high - result))
    return mean_interval(above, below, (low, high), DELTA, None)


def own(here: World, log: Log, **options: Any) -> Interval:
    interval = tr.learn(here.problem, log.data, delta=DELTA, policy=here.policy, **options).value.interval
    return interval.lower, interval.upper


METHODS: dict[str, Callable[[World, Log], Interval | None]] = {
    "LUI": lui,
    "UCRL2": ucrl2,
    "PAC, Hoeffding": pac,
    "MAP + Storm": map_storm,
    "posterior sampling": posterior,
    "bootstrap": bootstrap,
    "IS, empirical Bernstein": bernstein,
    "IS, betting": betting,
    "tightrope, untied": lambda here, log: own(here, log, sets="untied"),
    "tightrope": own,
}


@dataclass(frozen=True)
class Row:
    """A method in a world: the median gap (width over the true value), misses, CPU seconds per log."""

    world: str
    method: str
    gap: float | None
    misses: int
    replications: int
    seconds: float

    @property
    def is_refuted(self) -> bool:
        """Whether even the 99.9 % lower confidence bound of the rate of misses exceeds δ."""
        if not self.misses:
            return False
        return bool(beta.ppf(0.001, self.misses, self.replications - self.misses + 1) > DELTA)

    @property
    def text(self) -> str:
        if self.gap is None:
            return f"{self.world:18}{self.method:26}{'–':>10}"
        gap = "a point" if self.gap < 0 else "∞" if self.gap > SPREAD else f"{self.gap:.3g}"
        mark = "  UNSOUND" if self.is_refuted else ""
        return (
            f"{self.world:18}{self.method:26}{gap:>10}{self.misses:>6} of {self.replications}"
            f"{self.seconds:>10.4f}{mark}"
        )


def is_missed(here: World, interval: Interval) -> bool:
    slack = 1e-6 * max(1.0, abs(here.value))
    return not interval[0] - slack <= here.value <= interval[1] + slack


def side_by_side(name: str, replications: int, own_replications: int) -> list[Row]:
    """All methods on the same logs of a world."""
    here = world(name)
    gaps: dict[str, list[float]] = {method: [] for method in METHODS}
    misses, seconds = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0.0)
    for seed in range(1, replications + 1):
        log = Log.draw(here, seed, EPISODES[name])
        log.data.log()
        for method, ask in METHODS.items():
            if method == "tightrope" and seed > own_replications:
                continue
            begin = time.process_time()
            interval = ask(here, log)
            seconds[method] += time.process_time() - begin
            if interval is not None:
                width = (
                    -1.0 if math.isinf(interval[0]) or method == "MAP + Storm" else interval[1] - interval[0]
                )
                gaps[method].append(width if width < 0 else width / abs(here.value))
                misses[method] += is_missed(here, interval)
    return [
        Row(
            name,
            method,
            median(gaps[method]) if gaps[method] else None,
            misses[method],
            number,
            seconds[method] / number,
        )
        for method in METHODS
        for number in [min(replications, own_replications) if method == "tightrope" else replications]
    ]


# --- a better policy ----------------------------------------------------------------------------------------


def greedy(here: World, distribution: Floats, kept: npt.NDArray[np.bool_]) -> Floats:
    """The best policy in a model that gives kept choices the share they have in the uniform one."""
    chosen, sign = here.uniform.copy(), 1.0 if here.maximises else -1.0
    for _ in range(100):
        values = here.values(distribution, chosen)
        quality = sign * (here.pay + np.einsum("ij,ij->i", distribution, values[here.successor]))
        following = np.where(kept, here.uniform, 0.0)
        for state in np.flatnonzero(~here.ends):
            free = np.flatnonzero((here.owner == state) & ~kept)
            if len(free):
                following[free[np.argmax(quality[free])]] += 1.0 - following[here.owner == state].sum()
        stopped = here.ends[here.owner]
        following[stopped] = here.uniform[stopped]
        if np.allclose(following, chosen):
            break
        chosen = following
    return chosen


@dataclass(frozen=True)
class Gain:
    """What a method claims over the uniform policy in a world and what its policies gain (medians), what is
    possible, how many claims are false and how many policies are worse than the uniform one."""

    world: str
    method: str
    claims: float
    gains: float
    possible: float
    false: int
    worse: int
    replications: int

    @property
    def text(self) -> str:
        return (
            f"{self.world:18}{self.method:12}{self.claims:>10.4g}{self.gains:>10.4g}{self.possible:>10.4g}"
            f"{self.false:>6} of {self.replications}{self.worse:>8}"
        )


def improvements(name: str, replications: int) -> list[Gain]:
    """What is claimed over the uniform policy, and what the policies gain in truth."""
    here, sign = world(name), 1.0 if world(name).maximises else -1.0
    claims: dict[str, list[tuple[float, float]]] = {"SPIBB": [], "plug-in": [], "tightrope": []}
    for seed in range(1, replications + 1):
        log = Log.draw(here, seed, EPISODES[name])
        middle = estimate(here, log, alpha=2.0)
        before = here.value_of(middle, here.uniform)
        for method, least in (("SPIBB", KEEPS_BASELINE), ("plug-in", 0)):
            chosen = greedy(here, middle, log.visits < least)
            gain = sign * (here.value_of(middle, chosen) - before)
            claims[method].append((gain, sign * (here.value_of(here.real, chosen) - here.baseline)))
        result = tr.improve(
            here.problem, log.data, baseline=tr.Policy.uniform(here.model), delta=DELTA, effort="quick"
        )
        chosen = here.uniform if result.policy is None else result.policy.probability
        claims["tightrope"].append(
            (result.improvement, sign * (here.value_of(here.real, chosen) - here.baseline))
        )
    slack = 1e-6 * max(1.0, abs(here.value))
    return [
        Gain(
            name,
            method,
            median(gain for gain, _ in pairs),
            median(real for _, real in pairs),
            sign * (here.value - here.baseline),
            sum(gain > real + slack for gain, real in pairs),
            sum(real < -slack for _, real in pairs),
            replications,
        )
        for method, pairs in claims.items()
    ]


# --- the pages ----------------------------------------------------------------------------------------------

ROOT = Path(__file__).parent.parent
SHORT = {"aircraft": "aircraft(3,2)", "rover": "rover(4,4)", "bets": "bets", "chain": "chain"}
"""The columns of the table on the first page."""


def cell(row: Row) -> str:
    """Gap and misses, as tables show them."""
    if row.gap is None:
        return "–"
    gap = "point" if row.gap < 0 else "∞" if row.gap > SPREAD else f"{row.gap:.2g}"
    return f"{gap} · " + (f"**{row.misses}**" if row.is_refuted else str(row.misses))


def table(rows: list[Row]) -> str:
    """The table of `docs/rivals.md`."""
    worlds = list(dict.fromkeys(row.world for row in rows))
    lines = [f"| method | {' | '.join(worlds)} | CPU s |", "|---" * (len(worlds) + 2) + "|"]
    for method in METHODS:
        own = [row for row in rows if row.method == method]
        seconds = [row.seconds for row in own]
        times = f"{min(seconds):.2g}–{max(seconds):.2g}"
        lines.append(f"| {method} | {' | '.join(map(cell, own))} | {times} |")
    return "\n".join(lines) + "\n"


def gain_table(gains: list[Gain]) -> str:
    """The table of improvements in `docs/results/improve.md`."""
    methods = list(dict.fromkeys(gain.method for gain in gains))
    heads = [f"{method}: claims, gains, false" for method in methods]
    lines = [f"| model | possible | {' | '.join(heads)} |", "|---" * (len(methods) + 2) + "|"]
    for world_name in dict.fromkeys(gain.world for gain in gains):
        own = [gain for gain in gains if gain.world == world_name]
        cells = [f"{gain.claims + 0.0:.4g}, {gain.gains + 0.0:.4g}, {gain.false}" for gain in own]  # no −0
        lines.append(f"| {world_name} | {own[0].possible:.4g} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, head: str, new: str) -> str:
    """The page with another table in place of the one that begins with `head`."""
    begin = page.index(head)
    return page[:begin] + new + page[page.index("\n\n", begin) + 1 :]


def write_pages(source: Path, root: Path = ROOT) -> None:
    """The tables of the pages from the rows of a run; sentences about them are for people to revise."""
    known = json.loads(source.read_text(encoding="utf-8"))
    rows = [Row(**row) for row in known["rows"]]
    gains = [Gain(**gain) for gain in known["gains"]]
    logs, own = rows[0].replications, rows[-1].replications
    page = root / "docs" / "rivals.md"
    text = with_table(page.read_text(encoding="utf-8"), "| method |", table(rows))
    if gains:
        results = root / "docs" / "results" / "improve.md"
        shown = with_table(results.read_text(encoding="utf-8"), "| model | possible |", gain_table(gains))
        shown = re.sub(r"medians over \d+ logs", f"medians over {gains[0].replications} logs", shown)
        results.write_text(shown, encoding="utf-8")
    ran = f"`{known['command']}` made this table (seeds 1 to {logs}; {known['seconds']:.0f} CPU seconds)."
    last = "" if own == logs else f", of {own} in the last row"
    about = f"{ran} A cell is the median\ngap (width over the true value) · "
    about += f"how many of {logs} logs miss{last}. Bold:"
    text = re.sub(
        r"`python benchmarks/rivals\.py [^`]*` made this table.*?Bold:", lambda _: about, text, flags=re.S
    )
    page.write_text(text, encoding="utf-8")

    def missed(method: str) -> str:
        listed = [row for row in rows if row.method == method and row.gap is not None]
        return f"{sum(row.misses for row in listed)} of {sum(row.replications for row in listed):,}"

    short = [f"| median gap · misses on {logs} shared logs | {' | '.join(SHORT)} |", "|---" * 5 + "|"]
    for method in ("LUI", "PAC, Hoeffding", "bootstrap", "tightrope"):
        cells = [
            cell(row) for name in SHORT.values() for row in rows if (row.world, row.method) == (name, method)
        ]
        few = f" ({own} logs)" if method == "tightrope" and own != logs else ""
        short.append(f"| {method}{few} | {' | '.join(cells)} |")
    for place in (root / "README.md", root / "docs" / "index.md"):
        text = place.read_text(encoding="utf-8")
        if place.name == "README.md":
            text = with_table(text, "| median gap ·", "\n".join(short) + "\n")
        claim = f"| {missed('tightrope')}; the bootstrap missed {missed('bootstrap')} |"
        text = re.sub(r"(?<=rivals\.md\) )\| [\d,]+ of [\d,]+; the bootstrap missed [^|]*\|", claim, text)
        place.write_text(text, encoding="utf-8")


def merge(parts: list[Path]) -> dict[str, Any]:
    """One record of runs of different worlds: rows by the order of worlds, and the command of all of them."""
    runs = [json.loads(part.read_text(encoding="utf-8")) for part in parts]
    order = list(EPISODES)
    rows, gains = (
        sorted((one for run in runs for one in run[key]), key=lambda one: order.index(one["world"]))
        for key in ("rows", "gains")
    )
    commands = {re.sub(r" --(worlds|json)( (?!--)\S+)+", "", run["command"]) for run in runs}
    if len(commands) > 1 or len({(row["world"], row["method"]) for row in rows}) < len(rows):
        sys.exit("the parts are of different commands, or have a world in common")
    seconds = sum(run["seconds"] for run in runs)
    return {"command": commands.pop(), "seconds": seconds, "rows": rows, "gains": gains}


def draw(rows: list[Row], path: Path) -> None:
    """Gaps and misses of all methods over the worlds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    worlds = list(dict.fromkeys(row.world for row in rows))
    methods = [name for name in METHODS if name != "MAP + Storm"]
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), width_ratios=[1.5, 1], layout="constrained")
    for height, method in enumerate(reversed(methods)):
        own_rows = [row for row in rows if row.method == method]
        colour = "#0b6e4f" if method == "tightrope" else "#444444"
        for row in own_rows:
            if row.gap is not None and row.gap < SPREAD:
                axes[0].plot(max(row.gap, 1e-3), height, "o", color=colour, alpha=0.7, markersize=6)
            elif row.gap is not None:
                axes[0].plot(3e2, height, ">", color="#b3261e", markersize=6)
        for row in own_rows:
            if row.gap is not None:
                share = row.misses / row.replications
                axes[1].plot(
                    share,
                    height,
                    "x" if row.is_refuted else "o",
                    markersize=6,
                    alpha=0.7,
                    color="#b3261e" if row.is_refuted else colour,
                )
    names = list(reversed(methods))
    axes[0].set(
        xscale="log",
        xlim=(7e-4, 5e2),
        xlabel="median gap (width / true value); 0 is shown at 10⁻³, ▶ beyond",
        yticks=range(len(names)),
    )
    axes[0].set_yticklabels(names)
    axes[1].set(
        xlabel=f"share of {rows[0].replications} logs whose interval misses",
        yticks=range(len(names)),
        yticklabels=[],
    )
    axes[1].axvline(DELTA, color="#888888", linestyle="--", linewidth=1)
    axes[1].text(DELTA, len(names) - 0.66, " δ", color="#555555")
    for axis in axes:
        axis.grid(axis="x", alpha=0.3)
        axis.set_ylim(-0.6, len(names) - 0.2)
    figure.suptitle(f"One mark per world ({len(worlds)}): the value of one policy from the same logs")
    figure.savefig(path, dpi=110)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--worlds", nargs="*", default=list(EPISODES), choices=list(EPISODES))
    parser.add_argument("--own", type=int, help="how many of the logs `tr.learn` sees (all)")
    parser.add_argument("--improve", type=int, default=0, metavar="REPLICATIONS", help="also who improves")
    parser.add_argument("--json", type=Path, help="the rows, for the page")
    parser.add_argument("--figure", type=Path)
    parser.add_argument(
        "--write", type=Path, metavar="ROWS", help="write the pages' tables from the rows of a run"
    )
    parser.add_argument(
        "--merge", type=Path, nargs="+", metavar="ROWS", help="put runs of some worlds together"
    )
    parser.add_argument("--smoke", action="store_true", help="two logs of the chain")
    options = parser.parse_args(arguments)
    if options.smoke:
        options.worlds, options.replications, options.improve = ["chain"], 2, 1
    if options.write:
        write_pages(options.write)
        return 0
    if options.merge:
        known = merge(options.merge)
        if options.json:
            options.json.write_text(json.dumps(known, indent=0) + "\n", encoding="utf-8")
        if options.figure:
            draw([Row(**row) for row in known["rows"]], options.figure)
        return 0
    begin, rows, gains = time.process_time(), [], []
    print(f"{'world':18}{'method':26}{'gap':>10}{'misses':>13}{'CPU s':>9}   δ = {DELTA}")
    for name in options.worlds:
        for row in side_by_side(name, options.replications, options.own or options.replications):
            print(row.text, flush=True)
            rows.append(row)
    if options.improve:
        print(
            f"\n{'world':18}{'method':12}{'claims':>10}{'gains':>10}{'possible':>10}"
            f"{'false claims':>13}{'worse':>8}"
        )
        for name in options.worlds:
            gains += improvements(name, options.improve)
            print("\n".join(gain.text for gain in gains[-3:]), flush=True)
    if options.json:
        known = {
            "command": "python benchmarks/rivals.py " + " ".join(sys.argv[1:]),
            "seconds": time.process_time() - begin,
            "rows": [row.__dict__ for row in rows],
            "gains": [gain.__dict__ for gain in gains],
        }
        options.json.write_text(json.dumps(known, indent=0) + "\n", encoding="utf-8")
    if options.figure:
        draw(rows, options.figure)
    print(f"{time.process_time() - begin:.0f} CPU s")
    refuted = [row for row in rows if row.is_refuted and row.method.startswith("tightrope")]
    return 1 if refuted else 0


if __name__ == "__main__":
    sys.exit(main())
