"""Systems whose truth is not in the model: how often is a wrong interval called proved?

    python benchmarks/worlds.py              80 systems, 20 logs each
    python benchmarks/worlds.py --smoke      one system of each family, two logs each

Sixty small systems do what their models cannot say, twelve of each family: they *remember* (the state
before, or a state seen earlier in the episode), their *units* differ, *ties* do not hold, probabilities
*drift* while the log is written, a *hidden* mode moves them. Twenty are *right*: the truth is in the model.
Of each, logs of 100 to 3,000 episodes are drawn and learned from at δ = 0.05. Chains are asked about
themselves, decision processes about the policy that made the log, or all but a fifth of it. The truth is
computed on the system with all that it remembers and hides, never simulated. Where units or times differ, it
is the mean over the logged episodes. With endless data most models would be wrong by 0.05 or more.

A row of the table is a family; `before` is what `learn` says without observed outcomes and with the old test
of the model alone. `wrong`: called proved, and the interval misses the truth. Leaves with status 1 where more
than δ of all logs together are proved and wrong.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa

import tightrope as tr
from tightrope.numerics.arrays import FloatArray

DELTA = 0.05
FAMILIES = {"memory": 12, "units": 12, "ties": 12, "drift": 12, "hidden": 12, "right": 20}
SIZES = (100, 300, 1_000, 3_000)
CAP = 60
"""Steps after which an episode is stopped by rule."""

Random = np.random.Generator
Memory = tuple[int, int, int]
"""What the system knows besides its state: the state before, whether the marked one was seen, its mode."""


@dataclass(frozen=True)
class World:
    """A system and the model of it that is wrong.

    `rows[s]` are pairs of successors: with probability σ(a + shift) the first. States from `len(rows)` on are
    goal and failure. `shift` is what the model does not know. `tie[s]` is the parameter of state s.
    """

    family: str
    number: int
    rows: tuple[tuple[int, int], ...]
    logit: tuple[float, ...]
    tie: tuple[int, ...]
    effect: tuple[float, ...]
    kind: str
    marked: int
    prop: str
    episodes: int
    second: tuple[tuple[int, int], ...] = ()
    explores: float = 0.0
    units: int = 8

    @property
    def states(self) -> int:
        return len(self.rows) + 2

    @property
    def is_mdp(self) -> bool:
        return bool(self.second)

    def shift(self, state: int, memory: Memory, unit: int, when: float) -> float:
        """How far the logit of a state is off in this situation."""
        before, seen, mode = memory
        size = self.effect[state]
        if self.kind == "before":
            return size if before % 2 else -size
        if self.kind == "seen":
            return size if seen else -size / 2
        if self.kind == "units":
            return size if unit % 5 == 0 else 0.0
        if self.kind == "slope":
            return size * (2.0 * when - 1.0)
        if self.kind == "jump":
            return size if when >= 0.6 else 0.0
        if self.kind in ("mode", "switching"):
            return size if mode else -size
        return 0.0

    def begins(self) -> list[tuple[float, tuple[int, Memory]]]:
        modes = [(0.5, 0), (0.5, 1)] if self.kind in ("mode", "switching") else [(1.0, 0)]
        return [(share, (0, (0, int(self.marked == 0), mode))) for share, mode in modes]

    def moves(
        self, place: tuple[int, Memory], action: int, unit: int, when: float
    ) -> Iterator[tuple[float, tuple[int, Memory]]]:
        """Where the system goes from a place in its full space of states."""
        state, (before, seen, mode) = place
        first = 1.0 / (1.0 + np.exp(-self.logit[state] - self.shift(state, (before, seen, mode), unit, when)))
        modes = [(0.8, mode), (0.2, 1 - mode)] if self.kind == "switching" else [(1.0, mode)]
        pair = self.second[state] if action else self.rows[state]
        for chance, successor in zip((first, 1.0 - first), pair, strict=True):
            for share, later in modes:
                remembered = state if self.kind == "before" else 0
                yield chance * share, (successor, (remembered, int(seen or successor == self.marked), later))

    def action(self, state: int) -> int:
        """The policy that is asked about."""
        return (state + self.number) % 2 if self.is_mdp else 0

    def is_over(self, place: tuple[int, Memory]) -> bool:
        return place[0] >= len(self.rows)

    def _chain(
        self, unit: int, when: float, explores: float = 0.0
    ) -> tuple[dict[tuple[int, Memory], int], FloatArray]:
        """The places that are met, with their numbers, and the matrix of moves between them."""
        index = {place: number for number, (_, place) in enumerate(self.begins())}
        queue, entries = list(index), []
        while queue:
            place = queue.pop()
            if self.is_over(place):
                continue
            for action in range(1 + self.is_mdp):
                share = (action == self.action(place[0])) * (1 - explores) + explores / (1 + self.is_mdp)
                for chance, after in self.moves(place, action, unit, when) if share else ():
                    if after not in index:
                        index[after] = len(index)
                        queue.append(after)
                    entries.append((index[place], index[after], share * chance))
        matrix = np.zeros((len(index), len(index)))
        np.add.at(
            matrix, ([i for i, _, _ in entries], [j for _, j, _ in entries]), [p for _, _, p in entries]
        )
        return index, matrix

    def value(self, unit: int, when: float) -> float:
        """The exact probability that is asked for, on the full space."""
        index, matrix = self._chain(unit, when)
        state = np.array([place[0] for place in index])
        target = state == (self.marked if '"marked" ]' in self.prop else len(self.rows))
        lost = (state == self.marked) & ("!" in self.prop) & ~target
        matrix[target | lost] = 0.0
        value = target.astype(float)
        if "<=" in self.prop:
            for _ in range(int(self.prop.split("<=")[1].split()[0])):
                value = np.where(target, 1.0, matrix @ value)
        else:
            value = np.linalg.solve(np.eye(len(index)) - matrix, value)
        return float(sum(share * value[index[place]] for share, place in self.begins()))

    @property
    def situations(self) -> list[tuple[int, float]]:
        """The units and times that the log goes through, all equally often."""
        if self.kind == "units":
            return [(unit, 0.0) for unit in range(self.units)]
        return [(0, (i + 0.5) / 20) for i in range(20)] if self.family == "drift" else [(0, 0.0)]

    @cache  # noqa: B019
    def truth(self) -> float:
        """The value, or its mean over the units or times of the log."""
        return float(np.mean([self.value(*situation) for situation in self.situations]))

    def limit(self) -> float:
        """What the model says when it has learned from endless data."""
        first, visits = np.zeros(len(self.rows)), np.zeros(len(self.rows))
        for unit, when in self.situations:
            index, matrix = self._chain(unit, when, self.explores)
            begin = np.zeros(len(index))
            for share, place in self.begins():
                begin[index[place]] += share
            often = np.linalg.solve(np.eye(len(index)) - matrix.T, begin)
            for place, number in index.items():
                if not self.is_over(place):
                    off = self.shift(place[0], place[1], unit, when)
                    visits[self.tie[place[0]]] += often[number]
                    first[self.tie[place[0]]] += often[number] / (1 + np.exp(-self.logit[place[0]] - off))
        share = np.clip(first / np.maximum(visits, 1e-12), 0.001, 0.999)
        learned = np.log(share / (1 - share))[list(self.tie)]
        return replace(self, family="right", kind="right", logit=tuple(learned)).value(0, 0.0)

    def now(self) -> float:
        """The value when the log ends."""
        return self.value(0, 1.0) if self.family == "drift" else self.truth()

    def model(self) -> tr.ParametricMDP:
        """What the analyst writes: one parameter for each tie, and no memory."""
        names = sorted(set(self.tie))
        parameters = tr.Parameters.box(**{f"p{i}": (0.001, 0.999) for i in names})
        symbol = dict(zip(names, parameters.symbols(), strict=True))
        rows: list[Any] = []
        for state, tie in enumerate(self.tie):
            p = symbol[tie]
            for action, pair in zip("ab", (self.rows[state], *self.second[state : state + 1]), strict=False):
                rows.append((state, action, {pair[0]: p, pair[1]: 1 - p}))
        goal, failure = len(self.rows), len(self.rows) + 1
        rows += [(goal, "stay", {goal: 1}), (failure, "stay", {failure: 1})]
        model = tr.build_from_rows(rows, parameters, labels={"goal": [goal], "marked": [self.marked]})
        assert isinstance(model, tr.ParametricMDP)
        return model

    def log(self, seed: int) -> pa.Table:
        """Rows of all episodes, one after the other; units take turns."""
        random = np.random.default_rng((seed, self.number, sum(map(ord, self.family))))
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        for episode in range(self.episodes):
            unit, when = episode % self.units, episode / self.episodes
            place = pick(random, self.begins())
            for step in range(CAP):
                if self.is_over(place):
                    break
                action = self.action(place[0])
                if self.is_mdp and random.random() < self.explores:
                    action = int(random.integers(2))
                after = pick(random, list(self.moves(place, action, unit, when)))
                over = self.is_over(after)
                row = (
                    episode,
                    step,
                    place[0],
                    "ab"[action],
                    after[0],
                    over,
                    not over and step == CAP - 1,
                    f"u{unit}",
                )
                for name, entry in zip(COLUMNS, row, strict=True):
                    columns[name].append(entry)
                place = after
        return pa.table(columns)


COLUMNS = ("episode", "step", "state", "action", "next_state", "terminated", "truncated", "unit")


def pick(random: Random, law: Sequence[tuple[float, Any]]) -> Any:
    """One of several, by their probabilities."""
    draw, total = random.random(), 0.0
    for chance, entry in law:
        total += chance
        if draw < total:
            return entry
    return law[-1][1]


def world(family: str, number: int) -> World:
    """The system of this number, always the same: of 40 that are drawn the first about which the model is
    wrong even with endless data, by 0.05, or the one about which it is most wrong."""
    random = np.random.default_rng((36, number, sum(map(ord, family))))
    drawn = (_draw(random, family, number) for _ in range(40))
    telling = [system for system in drawn if 0.05 < system.truth() < 0.95]
    if family == "right":
        return telling[0]
    off = [abs(system.limit() - system.truth()) for system in telling]
    return telling[next((i for i, bias in enumerate(off) if bias >= 0.05), int(np.argmax(off)))]


def _draw(random: Random, family: str, number: int) -> World:
    size = int(random.integers(3, 9))
    goal, failure = size, size + 1

    def pair(state: int) -> tuple[int, int]:
        ahead = int(random.integers(state + 1, min(state + 2, size) + 1))
        others = [other for other in (*range(size), failure) if other not in (ahead, state)]
        return ahead, int(random.choice(others))

    rows = [pair(state) for state in range(size)]
    rows[-1] = (goal, failure)
    kinds = {"memory": ("before", "seen"), "drift": ("slope", "jump"), "hidden": ("mode", "switching")}
    kind = kinds.get(family, (family,))[number % len(kinds.get(family, (family,)))]
    strength = float(random.choice([0.5, 1.0, 1.5, 2.5]))
    effect = [
        float(strength * random.choice([1.0, 1.0, 0.5, -0.5] if family in ("ties", "drift") else [1.0, 0.5]))
        for _ in range(size)
    ]
    logit = [float(random.normal(0.6, 0.5)) for _ in range(size)]
    groups = [int(random.integers(0, size)) for _ in range(size)]
    broken = [family == "ties" and groups.count(group) > 1 for group in groups]
    logit = [logit[group] + (effect[s] if broken[s] else 0.0) for s, group in enumerate(groups)]
    is_mdp = number % 3 == 2
    questions = ('F "goal"', '!"marked" U "goal"', f'F<={size + 2} "goal"', 'F "marked"')
    return World(
        family=family,
        number=number,
        rows=tuple(rows),
        logit=tuple(logit),
        tie=tuple(groups),
        effect=tuple(effect),
        kind=kind,
        marked=int(random.integers(1, size)),
        prop=f"P=? [ {questions[number % 4]} ]",
        episodes=int(SIZES[int(random.integers(0, len(SIZES)))]),
        second=tuple(pair(state) if state + 1 < size else (goal, failure) for state in range(size))
        if is_mdp
        else (),
        explores=float(number % 2) * 0.2,
        units=10,
    )


@dataclass(frozen=True)
class Answer:
    """What one log gave: the verdict, and the interval."""

    family: str
    word: str
    lower: float
    upper: float
    truth: float
    now: float
    seconds: float
    evidence: float
    name: str

    @property
    def misses(self) -> bool:
        return not self.lower <= self.truth <= self.upper

    @property
    def is_wrong(self) -> bool:
        return self.word == "proved" and self.misses


def ask(job: tuple[World, int, str]) -> tuple[Answer, Answer]:
    """One log: what is said now, and what was said before."""
    system, seed, sets = job
    model = system.model()
    reading = tr.read_data(system.log(seed), model, order="as-read", ends="complete")
    question = system.prop.replace("P=?", "Pmax=?") if system.is_mdp else system.prop
    policy = [system.action(s) for s in range(len(system.rows))] + [0, 0] if system.is_mdp else None
    results = []
    own = {} if policy is None else {"behaviour": behaviour(system, model)}
    for is_before in (False, True):
        words = OLD if is_before else own
        begin = time.process_time()
        with mock.patch(ROWS, return_value=None) if is_before else contextlib.nullcontext():
            result = tr.learn(
                model.problem(question), reading, delta=DELTA, policy=policy, sets=sets, **words
            )
        spent = time.process_time() - begin
        word = str(result.verdict.word)
        interval = result.interval if policy is None else result.value.interval
        bounds = interval.lower, interval.upper
        evidence = 0.0 if result.fit is None else result.fit.log_e_value
        name = f"{system.family} {system.number}, log {seed}: {system.episodes} episodes, {system.prop}"
        results.append(
            Answer(system.family, word, *bounds, system.truth(), system.now(), spent, evidence, name)
        )
    return results[0], results[1]


def behaviour(system: World, model: tr.ParametricMDP) -> tr.Policy:
    """The policy that made the log."""
    rows = []
    for state in range(system.states):
        chosen = system.action(state) if state < len(system.rows) else 0
        number = 2 if state < len(system.rows) else 1
        shares = [system.explores / number] * number
        shares[chosen] += 1.0 - system.explores
        rows += shares
    return tr.Policy(model, np.array(rows))


OLD: dict[str, Any] = {"outcomes": "none"}
ROWS = "tightrope.monitoring.examination.rows_at_hand"
"""What tests the rows of a log; without it the test is the old one, of signatures, ties and changes."""


def table(answers: Sequence[tuple[Answer, Answer]]) -> list[str]:
    """A line per family and version, and one for all."""
    heads = ("logs", "proved", "contrad.", "nominal", "wrong", "width", "if proved", "seconds")
    lines = [f"{'family':8} {'':7}" + "".join(f"{head:>10}" for head in heads)]
    families = [*dict.fromkeys(now.family for now, _ in answers), "all"]
    for family in families:
        for version, label in enumerate(("now", "before")):
            some = [pair[version] for pair in answers if family in (pair[version].family, "all")]
            words = [one.word for one in some]
            numbers = (
                *map(words.count, ("proved", "contradicted", "nominal")),
                sum(one.is_wrong for one in some),
            )
            proved = [one.upper - one.lower for one in some if one.word == "proved"]
            widths = np.median([one.upper - one.lower for one in some]), np.median(proved or [np.nan])
            seconds = np.mean([one.seconds for one in some])
            lines.append(
                f"{family if version == 0 else '':8} {label:7}"
                + "".join(f"{number:10}" for number in (len(some), *numbers))
                + "".join(f"{number:10.3f}" for number in (*widths, seconds))
            )
    return lines


STEPS = ("read", "search", "run", "edit", "submit", "give up")
ASKED = (
    '!"run" U "edit"',
    'F "submit"',
    '!"edit" U "submit"',
    'F<=6 "submit"',
    '!"search" U "run"',
    'F "edit"',
    '!"search" U "give_up"',
    'F<=3 "edit"',
)


def agent_law(state: int, ran: int, edits: int) -> dict[int, float]:
    """What an agent does next: it edits only what it has run, and submits only what it has edited."""
    if state == 2 and edits == 2:
        return {4: 0.7, 3: 0.25, 5: 0.05}
    if not ran:
        return ({1: 0.5, 2: 0.3, 0: 0.2}, {0: 0.6, 2: 0.3, 5: 0.1})[state]
    after = {0: {3: 0.6, 1: 0.3, 2: 0.1}, 1: {3: 0.5, 0: 0.4, 5: 0.1}, 2: {3: 0.5, 0: 0.3, 1: 0.15, 5: 0.05}}
    return {**after, 3: {2: 0.8, 3: 0.1, 0: 0.1}}[state]


def agent(runs: int, seed: int) -> pa.Table:
    """Runs of an agent, a row per step."""
    random = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for number in range(runs):
        state, ran, edits, step = 0, 0, 0, 0
        while state < 4:
            law = agent_law(state, ran, edits)
            after = int(random.choice(list(law), p=list(law.values())))
            rows.append((number, step, STEPS[state], STEPS[after], after > 3))
            state, ran, edits, step = after, int(ran or after == 2), min(2, edits + (after == 3)), step + 1
    names = ("run_id", "step", "state", "next_state", "terminated")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def agent_truth(question: str) -> float:
    """The exact probability, by steps on the space with all that is remembered, far beyond any run."""
    target = STEPS.index(question.split('"')[-2].replace("_", " "))
    avoid = STEPS.index(question.split('"')[1].replace("_", " ")) if "!" in question else -1
    horizon = int(question[3:].split()[0]) if "<=" in question else 2_000
    places, reached = {(0, 0, 0): 1.0}, 0.0
    for _ in range(horizon):
        after: dict[tuple[int, int, int], float] = {}
        for (state, ran, edits), mass in places.items():
            for to, chance in agent_law(state, ran, edits).items() if state < 4 else ():
                if to == target:
                    reached += mass * chance
                elif to != avoid:
                    place = to, int(ran or to == 2), min(2, edits + (to == 3))
                    after[place] = after.get(place, 0.0) + mass * chance
        places = after
    return reached


def agent_lines(asked: Sequence[str] = ASKED, runs: int = 237, seed: int = 1) -> list[str]:
    """Eight questions about a model that was drafted from the runs of an agent."""
    log = agent(runs, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.prism"
        path.write_text(tr.draft(log).text)
        model = tr.load(path)
    reading = tr.read_data(log, model, order="as-read")
    lines = [
        f"an agent: {runs} runs, a drafted model of {model.states} states",
        "question                truth   model            outcomes         answer           verdict",
    ]
    for question in asked:
        result = tr.learn(tr.Problem(model, f"P=? [ {question} ]"), reading, delta=DELTA)
        seen = result.outcomes
        parts = [
            f"[{part.lower:.3f}, {part.upper:.3f}]" for part in (seen.model, seen.interval, result.interval)
        ]
        against = ", outcomes contradict it" if seen.contradiction else ""
        shown = f"{question:22} {agent_truth(question):6.3f}   {'   '.join(parts)}"
        lines.append(f"{shown}   {result.verdict.word}{against}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="one system of each family, two logs each")
    parser.add_argument("--logs", type=int, default=20, help="logs of each system")
    parser.add_argument("--systems", type=int, default=20, help="at most so many systems of each family")
    parser.add_argument("--sets", default="tied", help="sets that are learned over")
    parser.add_argument("--list", action="store_true", help="name the logs that are proved and wrong")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    logs, most = (2, 1) if asked.smoke else (asked.logs, asked.systems)
    systems = [world(family, n) for family, size in FAMILIES.items() for n in range(min(size, most))]
    jobs = [(system, seed, asked.sets) for system in systems for seed in range(logs)]
    if asked.smoke or asked.processes == 1:
        answers = [ask(job) for job in jobs]
    else:
        with ProcessPoolExecutor(asked.processes) as pool:
            answers = list(pool.map(ask, jobs, chunksize=4))
    print("\n".join(table(answers)))
    print("\n".join(agent_lines()))
    stale = sum(now.word == "proved" and not now.lower <= now.now <= now.upper for now, _ in answers)
    print(f"proved, and not the value at the end of the log: {stale} of {len(answers)}")
    for now, _ in answers:
        if now.is_wrong and asked.list:
            where = f"truth {now.truth:.4f}, [{now.lower:.4f}, {now.upper:.4f}], log E {now.evidence:.1f}"
            print(f"wrong: {now.name}: {where}")
    wrong = sum(now.is_wrong for now, _ in answers)
    print(f"certified and wrong: {wrong} of {len(answers)}, allowed {DELTA * len(answers):.0f}")
    return int(wrong > DELTA * len(answers))


if __name__ == "__main__":
    sys.exit(main())
