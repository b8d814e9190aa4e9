"""Logs with a planted departure, or with none, for `doctor_power.py` and `doctor_false_alarms.py`.

Models are chains of free rows. `strength` 0 is the model itself. The oracle of a case is a likelihood-ratio
test (G² against its χ² law) at one look, of that very departure at the very places where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

import tightrope as tr
from tightrope.data.episode_log import EpisodeLog, LogColumn
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.monitoring.features import codes

Paths = list[npt.NDArray[np.int64]]


def chain(states: int, absorbing: bool) -> ParametricMDP:
    """Every state leads to every state; with `absorbing` nothing leaves the last one."""
    open_states = states - absorbing
    rows = [(i, "", dict.fromkeys(range(states), tr.free)) for i in range(open_states)]
    rows += [(states - 1, "", {states - 1: 1})] if absorbing else []
    return tr.build_from_rows(rows)


def log_of(model: ParametricMDP, paths: Paths) -> EpisodeLog:
    start = model.structure.transition_start
    transition = np.concatenate([start[path[:-1]] + path[1:] for path in paths])
    episode = np.repeat(np.arange(len(paths)), [len(path) - 1 for path in paths])
    return EpisodeLog.of_episodes(transition, episode, len(paths), model.structure, model.hash())


def g_squared(
    context: npt.NDArray[np.int64], outcome: npt.NDArray[np.int64], value: npt.NDArray[np.int64]
) -> float:
    """The p-value of "outcomes do not depend on the value", in every context on its own."""
    table = np.zeros((context.max() + 1, value.max() + 1, outcome.max() + 1))
    np.add.at(table, (context, value, outcome), 1.0)
    number, pooled = table.sum(axis=2, keepdims=True), table.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = number * pooled / pooled.sum(axis=2, keepdims=True)
        terms = np.where(table > 0.0, table * np.log(table / expected), 0.0)
    free = ((number[:, :, 0] > 0).sum(axis=1) - 1).clip(0) * ((pooled[:, 0] > 0).sum(axis=1) - 1).clip(0)
    return float(chi2.sf(2.0 * terms.sum(), max(int(free.sum()), 1)))


@dataclass(frozen=True)
class Case:
    """`draw` makes a log of (at least) so many rows; `feature` names what is planted, `value` what the oracle
    looks at in the rows of a state that `where` says (None: all)."""

    name: str
    feature: str
    model: ParametricMDP
    draw: Callable[[int, np.random.Generator], EpisodeLog]
    value: Callable[[EpisodeLog], npt.NDArray[np.int64]]
    where: int | None = None
    merged: bool = False

    def oracle(self, log: EpisodeLog) -> float:
        structure = self.model.structure
        state = log.state(structure).astype(np.int64)
        outcome = structure.successor[log.transition].astype(np.int64)
        if self.merged:
            outcome = (outcome == outcome.max()).astype(np.int64)
        kept = slice(None) if self.where is None else state == self.where
        return g_squared(state[kept], outcome[kept], self.value(log)[kept])


def second_order(states: int, strength: float) -> Case:
    """One path; every distribution depends on the state before."""
    model = chain(states, False)

    def draw(rows: int, rng: np.random.Generator) -> EpisodeLog:
        base = rng.dirichlet(np.ones(states), size=states)
        own = rng.dirichlet(np.ones(states), size=(states, states))
        limits = ((1.0 - strength) * base + strength * own).cumsum(axis=2).tolist()
        path = [0, 0]
        for u in rng.random(rows).tolist():
            limit = limits[path[-2]][path[-1]]
            path.append(next((i for i, most in enumerate(limit) if u < most), states - 1))
        return log_of(model, [np.array(path[1:])])

    def value(log: EpisodeLog) -> npt.NDArray[np.int64]:
        return codes("prev", model, log).astype(np.int64) + 1

    return Case(f"second order, {states} states", "prev", model, draw, value)


def seen_before(strength: float) -> Case:
    """Episodes that end; state 1 is left for the end more often once state 2 was seen."""
    model = chain(4, True)

    def draw(rows: int, rng: np.random.Generator) -> EpisodeLog:
        paths: Paths = []
        uniform = iter(rng.random(rows + 10_000).tolist())
        total = 0
        while total < rows:
            path = [0]
            while path[-1] != 3:
                u, ends = next(uniform), 0.08
                if path[-1] == 1 and 2 in path:
                    ends += strength
                path.append(3 if u < ends else int(3.0 * (u - ends) / (1.0 - ends)))
            paths.append(np.array(path))
            total += len(path) - 1
        return log_of(model, paths)

    def value(log: EpisodeLog) -> npt.NDArray[np.int64]:
        return codes("seen:2", model, log).astype(np.int64)

    return Case("seen before", "seen:2", model, draw, value, where=1)


def column(strength: float) -> Case:
    """One path of three states; a column of two values moves probability from the first to the last."""
    model = chain(3, False)

    def draw(rows: int, rng: np.random.Generator) -> EpisodeLog:
        site = (rng.integers(0, 2, rows // 20 + 1).repeat(20))[:rows].astype(np.int32)
        other = rng.integers(0, 4, rows).astype(np.int32)
        u = rng.random(rows)
        first, second = 0.4 - strength * site, 0.7
        path = np.concatenate([[0], np.where(u < first, 0, np.where(u < second, 1, 2))])
        columns = {"site": LogColumn(site, ("a", "b")), "other": LogColumn(other, tuple("wxyz"))}
        return replace(log_of(model, [path]), columns=columns)

    def value(log: EpisodeLog) -> npt.NDArray[np.int64]:
        return log.columns["site"].code.astype(np.int64)

    return Case("a column", "column:site", model, draw, value)


def unit(times: float, units: int = 20, ends: bool = True) -> Case:
    """One unit in five breaks so many times as often. Units have many episodes, each to a break; or one that
    is cut, where what is broken is mended."""
    model = chain(3, ends)

    def draw(rows: int, rng: np.random.Generator) -> EpisodeLog:
        bad = np.zeros(units, dtype=np.bool_)
        bad[rng.permutation(units)[: units // 5]] = True
        paths: Paths = []
        owner = []
        for who in range(units):
            uniform = iter(rng.random(rows // units + 4000).tolist())
            total, path = 0, [0]
            breaks = 0.05 * (times if bad[who] else 1.0)
            while total < rows / units:
                u = next(uniform)
                limit = breaks if path[-1] < 2 else 0.3
                path.append(2 if u < limit else 1 if u < 0.5 else 0)
                total += 1
                if ends and path[-1] == 2:
                    paths.append(np.array(path))
                    owner.append(who)
                    path = [0]
            if not ends:
                paths.append(np.array(path))
                owner.append(who)
        log = log_of(model, paths)
        code = np.array(owner, dtype=np.int32)[log.episode]
        labels = tuple(f"{'bad' if bad[who] else 'good'} {who}" for who in range(units))
        return replace(log, columns={"machine": LogColumn(code, labels)})

    def value(log: EpisodeLog) -> npt.NDArray[np.int64]:
        machine = log.columns["machine"]
        return np.array([label.startswith("bad") for label in machine.labels])[machine.code].astype(np.int64)

    name = f"one unit in five {times:g} times as bad, " + ("episodes end" if ends else "cut")
    return Case(name, "unit:machine", model, draw, value, merged=True)
