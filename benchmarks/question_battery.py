"""Every class of properties on random small models: certified bounds beside what others compute.

    python benchmarks/question_battery.py                  200 questions of every class
    python benchmarks/question_battery.py LTL averages     some classes
    python benchmarks/question_battery.py --smoke          a few questions of every class, in seconds

Models have five states and probabilities that doubles hold exactly: chains, MDPs and interval models. The
other side is Storm, with rational numbers where it can; on interval models Storm on the MDP whose choices are
the vertices of the intervals (nature with the agent; against it, the best of all policies without memory, for
questions that need none). What Storm does not answer is computed here: CTL by fixpoints, rewards of late
steps by backward steps, CVaR by linear programs over what was spent. Random paths come from the grammar of
path formulas, with everything that Storm lacks written out; paths of A and E are compared with Storm where
every transition is a choice. *Within intervals* asks what holds wherever a model lies within its intervals
(what `learn` says), and compares it with the answer of one such model.

Prints a row per class: how many were asked, whose value lies *outside* the bounds (there should be none), how
many answers are *open* (not certified) or *refused*, with the messages, and how often there was no reference.
Writes the rows as JSON (default: bench-results/question_battery.json). Leaves with status 1 where a value
lies outside.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import stormpy
from scipy.integrate import solve_ivp
from scipy.optimize import linprog

import tightrope as tr
from tightrope.logic.model_checking import check_query
from tightrope.numerics.arrays import FloatArray
from tightrope.prism.properties.query import parse_query
from tightrope.solver.solution import SolveOptions

STATES = 5
SLACK = 1e-12
LOOSE = 2e-5
"""Where Storm answers with doubles."""
PATIENCE = 5
"""Seconds for a question that Storm may not come to an end with."""

Rows = list[tuple[int, str, dict[int, Any]]]


@dataclass(frozen=True)
class Subject:
    """A random model: its rows, with pairs for intervals, labels, whole rewards of states."""

    rows: Rows
    labels: dict[str, list[int]]
    cost: list[int]
    is_interval: bool
    has_choices: bool

    def model(self, rows: Rows | None = None) -> Any:
        return tr.build_from_rows(
            self.rows if rows is None else rows, labels=self.labels, state_rewards={"cost": self.cost}
        )

    @property
    def ours(self) -> Any:
        made = self.model()
        return made.instantiate() if isinstance(made, tr.ParametricMDP) else made

    def vertex_rows(self, rows: Rows | None = None) -> Rows:
        """Every choice once for every vertex of its intervals."""
        found: Rows = []
        for state, name, ends in self.rows if rows is None else rows:
            for number, point in enumerate(vertices(ends)):
                found.append((state, f"{name}v{number}", point))
        return found

    def policies(self) -> list[Rows]:
        """The rows that every policy without memory leaves."""
        of_state = [[row for row in self.rows if row[0] == s] for s in range(STATES)]
        return [list(chosen) for chosen in product(*of_state)]


def vertices(ends: dict[int, Any]) -> list[dict[int, Any]]:
    """All but one probability at an end of its interval."""
    if not any(isinstance(end, tuple) for end in ends.values()):
        return [ends]
    found: list[dict[int, Any]] = []
    keys = list(ends)
    for free in keys:
        others = [key for key in keys if key != free]
        for picked in product(*(ends[key] for key in others)):
            rest = 1 - sum(picked)
            point = {**dict(zip(others, picked, strict=True)), free: rest}
            low, high = ends[free]
            if low <= rest <= high and point not in found:
                found.append({key: point[key] for key in keys})
    return found


def random_subject(rng: random.Random, interval: bool, choices: bool, ends: bool = False) -> Subject:
    """`ends`: every play comes to the last state, which costs nothing."""
    rows: Rows = []
    for s in range(STATES):
        if ends and s == STATES - 1:
            rows.append((s, "c0", {s: 1}))
            continue
        for c in range(rng.randint(1, 2) if choices else 1):
            on = rng.randrange(s + 1, STATES) if ends else rng.randrange(STATES)
            others = [t for t in range(STATES) if t != on]
            leads = [on, *rng.sample(others, rng.choice([0, 1, 1, 2]))]
            rows.append((s, f"c{c}", distribution(rng, leads, interval)))
    labels = {name: sorted(rng.sample(range(STATES), rng.randint(1, 2))) for name in ("a", "b", "c")}
    labels["end"] = [STATES - 1]
    cost = [rng.randint(0, 3) for _ in range(STATES - 1)] + [0 if ends else rng.randint(0, 3)]
    return Subject(rows, labels, cost, interval, choices)


def distribution(rng: random.Random, leads: list[int], interval: bool) -> dict[int, Any]:
    if len(leads) == 1:
        return {leads[0]: 1}
    cuts = sorted(rng.sample(range(1, 8), len(leads) - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, 8], strict=True)]
    if not interval:
        return {t: Fraction(size, 8) for t, size in zip(leads, sizes, strict=True)}
    return {t: (size / 8 - 1 / 16, min(size / 8 + 1 / 16, 1.0)) for t, size in zip(leads, sizes, strict=True)}


# --- references ---------------------------------------------------------------------------------------


class UnansweredError(Exception):
    """The other side has no value."""


def storm(subject: Subject, rows: Rows, text: str, everywhere: bool = False) -> tuple[Any, float]:
    """Storm's value of the first state (or of all), and how far it may be off."""
    if '{"cost"}<=' not in text:
        return storm_here(subject, rows, text, everywhere)
    return apart(lambda: storm_here(subject, rows, text, everywhere))


def apart(compute: Callable[[], tuple[Any, float]]) -> tuple[Any, float]:
    """Of automata, and with bounds on rewards, Storm's process ends at times, or never: one of its own,
    for some seconds."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        found: Any = None
        signal.alarm(PATIENCE)
        try:
            found = compute()
        except AttributeError:  # a curve without points: no bound is large enough
            found = [np.inf, 0.0]
        finally:
            os.write(send, json.dumps(found).encode())
            os._exit(0)
    os.close(send)
    with os.fdopen(receive) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    if not said or said == "null":
        raise UnansweredError
    value, slack = json.loads(said)
    return value, slack


def storm_here(subject: Subject, rows: Rows, text: str, everywhere: bool) -> tuple[Any, float]:
    """The same in this process."""
    made = subject.model([(s, n, {t: Fraction(p) for t, p in ends.items()}) for s, n, ends in rows])
    for model, slack in ((made, SLACK), (made.instantiate(), LOOSE)):
        try:
            (parsed,) = stormpy.parse_properties(text)
            found = stormpy.model_checking(tr.to_stormpy(model), parsed, only_initial_states=not everywhere)
            if found is None:
                continue
            values = [float(found.get_value(s)) for s in (range(STATES) if everywhere else [0])]
            return (values if everywhere else values[0]), slack
        except (RuntimeError, TypeError):
            continue
        except Exception as error:  # Storm raises its own kinds, one per component
            if "storm" not in type(error).__module__.lower() and "Exception" not in type(error).__name__:
                raise
    raise UnansweredError


@dataclass(frozen=True)
class Case:
    """A question about a model, and the expected value: a number, or true and false."""

    model: Any
    text: str
    expected: float | bool
    slack: float = SLACK
    beside: float | None = None
    """What Storm says, where something better than Storm says what is expected."""
    uncertain: bool = False
    """The model is one within the intervals, and the answer must hold wherever it lies."""


@dataclass(frozen=True)
class Kind:
    """What models a class is asked of; `with_memory`: nature against the agent has no reference then."""

    with_memory: bool = True
    ends: bool = False
    intervals: float = 0.4
    chains: float = 0.25


def draw(rng: random.Random, kind: Kind) -> tuple[Subject, str, str]:
    """A model, the agent's direction and nature's."""
    interval = rng.random() < kind.intervals
    subject = random_subject(rng, interval, rng.random() >= kind.chains, kind.ends)
    agent = rng.choice(["max", "min"])
    other = {"max": "min", "min": "max"}[agent]
    against = interval and subject.has_choices and not kind.with_memory and rng.random() < 0.5
    return subject, agent, other if against else agent


def asked(text: str, subject: Subject, agent: str, nature: str) -> str:
    """@ stands for the directions."""
    return text.replace("@", agent + nature if subject.is_interval and subject.has_choices else agent)


def by_storm(subject: Subject, agent: str, nature: str, text: str) -> tuple[float, float]:
    """The value, and how far it may be off."""
    text = text.replace("@", nature)
    if not subject.is_interval:
        return storm(subject, subject.rows, text)
    if agent == nature:
        return storm(subject, subject.vertex_rows(), text)
    found = [storm(subject, subject.vertex_rows(rows), text) for rows in subject.policies()]
    best = max if agent == "max" else min
    return best(value for value, _ in found), max(slack for _, slack in found)


def beside_storm(rng: random.Random, kind: Kind, ours: str, theirs: str | None = None) -> Case:
    """The same question to both."""
    subject, agent, nature = draw(rng, kind)
    value, slack = by_storm(subject, agent, nature, theirs or ours)
    return Case(subject.ours, asked(ours, subject, agent, nature), value, slack)


# --- the classes --------------------------------------------------------------------------------------


def simple_paths(rng: random.Random) -> Case:
    path = rng.choice(['F "a"', '!"b" U "a"', 'G !"c"', 'F<=3 "a"', 'G !"b"', 'X "a"'])
    return beside_storm(rng, Kind(with_memory="<=" in path), f"P@=? [ {path} ]")


LTL = (
    '(G F "a") & (F G !"b")',
    '(F G "a") | (G F "c")',
    'F ("a" & (X "b"))',
    'G (!"a" | (F "b"))',
    '(G F "a") & (G F "b")',
    '(F "a") & (F "b")',
    '!"c" U ("a" & (X (F "b")))',
    'X X (G F "c")',
)


def ltl(rng: random.Random) -> Case:
    return beside_storm(rng, Kind(), f"P@=? [ {rng.choice(LTL)} ]")


def steady_state(rng: random.Random) -> Case:
    return beside_storm(rng, Kind(with_memory=False), 'S@=? [ "a" ]', 'LRA@=? [ "a" ]')


def averages(rng: random.Random) -> Case:
    return beside_storm(rng, Kind(with_memory=False), 'R{"cost"}@=? [ S ]', 'R{"cost"}@=? [ LRA ]')


def rewards(rng: random.Random) -> Case:
    path = rng.choice(["C<=3", "C", 'F "end"'])
    kind = Kind(with_memory=path == "C<=3", ends=path != "C<=3")
    return beside_storm(rng, kind, f'R{{"cost"}}@=? [ {path} ]')


def reward_of_one_moment(rng: random.Random) -> Case:
    return beside_storm(rng, Kind(), f'R{{"cost"}}@=? [ I={rng.randint(0, 5)} ]')


def bounds_on_what_is_earned(rng: random.Random) -> Case:
    path = rng.choice(['F{"cost"}<=4 "a"', 'F{"cost"}<=7 "a"', '!"b" U{"cost"}<=5 "a"'])
    subject, agent, nature = draw(rng, Kind())
    if "U" in path and 0 in subject.labels["b"]:
        raise UnansweredError  # Storm does not look at the left side in the first state
    value, slack = by_storm(subject, agent, nature, f"P@=? [ {path} ]")
    return Case(subject.ours, asked(f"P@=? [ {path} ]", subject, agent, nature), value, slack)


def conditional(rng: random.Random) -> Case:
    path, given = rng.choice(['F "a"', 'F "c"']), rng.choice(['F "b"', 'F "c"'])
    subject, agent, nature = draw(rng, Kind(ends=rng.random() < 0.5))
    value, slack = by_storm(subject, agent, nature, f"P@=? [ {path} || {given} ]")
    if not 0 <= value <= 1:
        raise UnansweredError
    return Case(subject.ours, asked(f"P@=? [ {path} || {given} ]", subject, agent, nature), value, slack)


def quantiles(rng: random.Random) -> Case:
    level = rng.choice(["0.3", "0.55", "0.9"])
    text = f'quantile(min k, P@>{level} [ F{{"cost"}}<=k "a" ])'
    subject, agent, nature = draw(rng, Kind())
    if not subject.is_interval and len(subject.rows) == STATES:
        raise UnansweredError  # of a chain Storm said 4 where 1 - (3/4)^9 > 0.9 makes it 27
    value, slack = by_storm(subject, agent, nature, text)
    return Case(subject.ours, asked(text, subject, agent, nature), value, slack)


def several_objectives(rng: random.Random) -> Case:
    """The best of one objective beside a threshold that some policy meets alone."""
    subject, _, _ = draw(rng, Kind(ends=True, intervals=0.0, chains=0.1))
    other = rng.choice(['F "b"', 'F "c"'])
    most, _ = storm(subject, subject.rows, f"Pmax=? [ {other} ]")
    share = Fraction(rng.choice([1, 2, 3]), 4)
    first = rng.choice(
        ['Pmax=? [ F "a" ]', 'Pmin=? [ F "a" ]', 'R{"cost"}min=? [ C ]', 'R{"cost"}max=? [ C ]']
    )
    text = f"multi({first}, P>={float(share * Fraction(most)):.6f} [ {other} ])"
    value, _ = storm(subject, subject.rows, text)
    return Case(subject.ours, text, value, 1e-4)


def several_objectives_of_some_steps(rng: random.Random) -> Case:
    """The same with rewards of some steps, and bounds on steps in paths."""
    subject, _, _ = draw(rng, Kind(ends=True, intervals=0.0, chains=0.1))
    other = f'F<={rng.randint(1, 5)} "{rng.choice("bc")}"'
    most, _ = storm(subject, subject.rows, f"Pmax=? [ {other} ]")
    steps, share = rng.randint(1, 6), Fraction(rng.choice([1, 2, 3]), 4)
    first = rng.choice(
        [f'R{{"cost"}}max=? [ C<={steps} ]', f'R{{"cost"}}min=? [ C<={steps} ]', f'Pmax=? [ F<={steps} "a" ]']
    )
    text = f"multi({first}, P>={float(share * Fraction(most)):.6f} [ {other} ])"
    value, _ = storm(subject, subject.rows, text)
    return Case(subject.ours, text, value, 2e-4)


AUTOMATA = {
    'P@=? [ F<=1.5 "a" ]': 'P@=? [ F<=1.5 "a" ]',
    'P@=? [ !"b" U<=2 "a" ]': 'P@=? [ !"b" U<=2 "a" ]',
    'T@=? [ F "end" ]': 'T@=? [ F "end" ]',
    'R{"cost"}@=? [ F "end" ]': 'R{"cost"}@=? [ F "end" ]',
    'P@=? [ !"b" U "a" ]': 'P@=? [ !"b" U "a" ]',
    'S@=? [ "a" ]': 'LRA@=? [ "a" ]',
    'R{"cost"}@=? [ S ]': 'R{"cost"}@=? [ LRA ]',
}


def markov_automata(rng: random.Random) -> Case:
    """States that wait, and immediate ones, in circles half of the time. What happens within a time is
    compared with a differential equation, and Storm's value is set beside it: it is off at times."""
    rows: Rows = []
    lines, choices, circles = [], 0, rng.random() < 0.5
    labels = {name: sorted(rng.sample(range(STATES), rng.randint(1, 2))) for name in ("a", "b")}
    labels["end"] = [STATES - 1]
    cost = [rng.randint(0, 3) for _ in range(STATES)]
    waits = [s == STATES - 1 or rng.random() < 0.5 for s in range(STATES)]
    rates = [rng.randint(1, 8) / 2 if wait else 0.0 for wait in waits]
    for s in range(STATES):
        names = " ".join(["init"] * (s == 0) + [name for name, members in labels.items() if s in members])
        lines.append(f"state {s} !{rates[s]} [{cost[s]}] {names}")
        for c in range(1 if waits[s] else rng.randint(1, 3)):
            some = list(range(STATES)) if waits[s] or circles else list(range(s + 1, STATES))
            leads = rng.sample(some, min(len(some), rng.randint(1, 3)))
            if circles and not waits[s] and not any(waits[t] or t > s for t in leads):
                leads[0] = rng.randrange(s + 1, STATES)  # time passes in the end
            rows.append((s, f"c{c}", distribution(rng, leads, False)))
            lines.append(f"\taction {c} [0]")
            lines += [f"\t\t{t} : {float(p)!r}" for t, p in sorted(rows[-1][2].items())]
            choices += 1
    head = ["@type: Markov Automaton", "@parameters", "", "@reward_models", "cost", "@nr_states", str(STATES)]
    text = "\n".join([*head, "@nr_choices", str(choices), "@model", *lines]) + "\n"
    ours, theirs = rng.choice(list(AUTOMATA.items()))
    agent = rng.choice(["max", "min"])
    mdp = tr.build_from_rows(rows, labels=labels, state_rewards={"cost": cost}).instantiate()
    automaton = tr.MarkovAutomaton(mdp.structure, mdp.probability, np.array(rates))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "m.drn"
        file.write_text(text)
        (parsed,) = stormpy.parse_properties(theirs.replace("@", agent))

        def compute() -> tuple[float, float]:
            return stormpy.model_checking(stormpy.build_model_from_drn(str(file)), parsed).get_value(0), LOOSE

        value, slack = None, LOOSE
        with suppress(UnansweredError):
            value, slack = apart(compute)
    asked_text = ours.replace("@", agent)
    if "<=" in ours:
        lost = labels["b"] if "U" in ours else []
        time = float(ours.partition("<=")[2].split()[0])
        exact = within_time(rows, rates, set(labels["a"]), set(lost) - set(labels["a"]), time, agent)
        return Case(automaton, asked_text, exact, 1e-8, beside=value)
    if value is None:
        raise UnansweredError
    return Case(automaton, asked_text, value, slack)


def within_time(
    rows: Rows, rates: list[float], goal: set[int], lost: set[int], time: float, agent: str
) -> float:
    """v'(s) = rate(s)·(Σ p·v − v(s)) where s waits; an immediate state is worth the best of its choices, by
    policy iteration, with linear equations for what goes round in circles."""
    matrix = np.array([[float(leads.get(t, 0)) for t in range(STATES)] for _, _, leads in rows])
    of_state = [[c for c, row in enumerate(rows) if row[0] == s] for s in range(STATES)]
    free = [s for s in range(STATES) if not rates[s] and s not in goal | lost]
    others = [s for s in range(STATES) if s not in free]
    moving = np.array([rates[s] if s not in goal | lost else 0.0 for s in range(STATES)])
    sign = 1.0 if agent == "max" else -1.0
    chosen = {s: of_state[s][0] for s in free}

    def settle(values: FloatArray) -> FloatArray:
        values = values.copy()
        while free:
            picked = matrix[[chosen[s] for s in free]]
            known = picked[:, others] @ values[others]
            values[free] = np.linalg.solve(np.eye(len(free)) - picked[:, free], known)
            worth = sign * (matrix @ values)
            better = {s: max(of_state[s], key=lambda c: worth[c]) for s in free}
            changed = [s for s in free if worth[better[s]] > worth[chosen[s]] + 1e-13]
            if not changed:
                break
            chosen.update({s: better[s] for s in changed})
        return values

    def slope(_: float, values: FloatArray) -> FloatArray:
        now = settle(values)
        mean = matrix[[choices[0] for choices in of_state]] @ now
        return moving * (mean - now)

    first = np.array([float(s in goal) for s in range(STATES)])
    found = solve_ivp(slope, (0.0, time), first, method="DOP853", rtol=1e-11, atol=1e-13)
    return float(settle(found.y[:, -1])[0])


def rewards_until_a_path(rng: random.Random) -> Case:
    """(F a) & (F b): on the model that remembers what was seen."""
    subject, agent, nature = draw(rng, Kind())
    rows = subject.vertex_rows() if subject.is_interval else subject.rows
    seen = {name: set(subject.labels[name]) for name in ("a", "b")}

    def number(state: int, a: bool, b: bool) -> int:
        return state * 4 + 2 * (a or state in seen["a"]) + (b or state in seen["b"])

    longer: Rows = []
    for state, name, leads in rows:
        for a, b in product((False, True), repeat=2):
            here = state * 4 + 2 * a + b
            if here == number(state, a, b):
                longer.append((here, name, {number(t, a, b): p for t, p in leads.items()}))
    first = number(0, False, False)
    used = sorted({row[0] for row in longer})
    place = {old: new for new, old in enumerate([first, *(u for u in used if u != first)])}
    moved = [(place[s], n, {place[t]: p for t, p in leads.items()}) for s, n, leads in longer]
    both = [new for old, new in place.items() if old % 4 == 3]
    cost = [subject.cost[old // 4] for old in place]
    remembered = Subject(sorted(moved), {"both": both or []}, cost, False, True)
    if not both:
        raise UnansweredError
    value, slack = storm(remembered, remembered.rows, f'R{{"cost"}}{nature}=? [ F "both" ]')
    return Case(
        subject.ours, asked('R{"cost"}@=? [ (F "a") & (F "b") ]', subject, agent, nature), value, slack
    )


def late_rewards(rng: random.Random) -> Case:
    """By backward steps over all choices, from 0 or from Storm's total."""
    late = rng.random() < 0.4
    subject, agent, nature = draw(rng, Kind(ends=late))
    rows = subject.vertex_rows() if subject.is_interval else subject.rows
    first, last = sorted(rng.sample(range(7), 2))
    best = max if agent == "max" else min
    slack = SLACK
    values: list[float] = [0.0] * STATES
    if late:
        values, slack = storm(subject, rows, f'R{{"cost"}}{agent}=? [ C ]', everywhere=True)
    for step in range(first if late else last):
        earned = subject.cost if step < last - first and not late else [0] * STATES
        values = [
            best(
                earned[s] + sum(float(p) * values[t] for t, p in leads.items())
                for state, _, leads in rows
                if state == s
            )
            for s in range(STATES)
        ]
    text = f"C>={first}" if late else f"C[{first},{last}]"
    found = asked(f'R{{"cost"}}@=? [ {text} ]', subject, agent, nature)
    return Case(subject.ours, found, values[0], slack + 1e-9)


def tails(rng: random.Random) -> Case:
    """CVaR of the cost of k steps: a linear program over (step, state, spent)."""
    subject, agent, nature = draw(rng, Kind())
    rows = subject.vertex_rows() if subject.is_interval else subject.rows
    steps, level = rng.randint(1, 4), rng.choice([0.25, 0.5, 0.875])
    value = tail_program(rows, subject.cost, steps, level, agent)
    text = f'CVaR{{"cost",{level}}}@=? [ C<={steps} ]'
    return Case(subject.ours, asked(text, subject, agent, nature), value, 1e-7)


def tail_program(rows: Rows, cost: list[int], steps: int, level: float, agent: str) -> float:
    """Shares of plays flow through (step, state, spent); z picks the worst 1 − level."""
    index: dict[Any, int] = {}
    ends: dict[int, int] = {}
    layer = {(0, 0)}
    equations: dict[Any, dict[int, float]] = {(0, 0, 0): {}}
    for step in range(steps):
        following = set()
        for state, spent in sorted(layer):
            for number, (owner, _, leads) in enumerate(rows):
                if owner != state:
                    continue
                column = index.setdefault((step, state, spent, number), len(index))
                equations.setdefault((step, state, spent), {})[column] = -1.0
                for t, p in leads.items():
                    key = (step + 1, t, spent + cost[state])
                    into = equations.setdefault(key, {})
                    into[column] = into.get(column, 0.0) + float(p)
                    following.add(key[1:])
        layer = following
    totals = sorted({spent for _, spent in layer})
    size = len(index)
    flow, right = [], []
    for key, row in equations.items():
        if key[0] < steps:
            line = np.zeros(size)
            line[list(row)] = list(row.values())
            flow.append(line)
            right.append(-1.0 if key == (0, 0, 0) else 0.0)
        else:
            ends.setdefault(key[2], 0)
    reached = np.zeros((len(totals), size))
    for key, row in equations.items():
        if key[0] == steps:
            for column, share in row.items():
                reached[totals.index(key[2]), column] += share
    worth = np.array(totals, float)
    if agent == "min":
        values = []
        for v in totals:
            beyond = np.maximum(worth - v, 0) / (1 - level)
            found = linprog(beyond @ reached, A_eq=np.array(flow), b_eq=right)
            values.append(v + found.fun)
        return float(min(values))
    goal = np.concatenate([np.zeros(size), -worth])
    below = np.hstack([-reached / (1 - level), np.eye(len(totals))])
    equal = np.vstack(
        [
            np.hstack([np.array(flow), np.zeros((len(flow), len(totals)))]),
            np.concatenate([np.zeros(size), np.ones(len(totals))])[None, :],
        ]
    )
    found = linprog(goal, A_ub=below, b_ub=np.zeros(len(totals)), A_eq=equal, b_eq=[*right, 1.0])
    return float(-found.fun)


def ctl(rng: random.Random) -> Case:
    """By fixpoints over sets of states."""
    subject, _, _ = draw(rng, Kind())
    after = [{t for s, _, leads in subject.rows if s == state for t in leads} for state in range(STATES)]
    text, states = random_ctl(rng, 2, subject.labels, after)
    return Case(subject.ours, text, 0 in states)


def random_ctl(
    rng: random.Random, depth: int, labels: dict[str, list[int]], after: list[set[int]]
) -> tuple[str, set[int]]:
    everything = set(range(STATES))
    if depth == 0:
        name = rng.choice("abc")
        return f'"{name}"', set(labels[name])
    (left, l_states), (right, r_states) = (random_ctl(rng, depth - 1, labels, after) for _ in range(2))
    operator = rng.choice(["!", "&", "EX", "AX", "EF", "AF", "EG", "AG", "EU", "AU"])
    if operator == "!":
        return f"!({left})", everything - l_states
    if operator == "&":
        return f"({left}) & ({right})", l_states & r_states
    every, kind = operator[0] == "A", operator[1]

    def before(states: set[int]) -> set[int]:
        return {s for s in everything if (after[s] <= states if every else after[s] & states)}

    if kind == "X":
        return f"{operator[0]} [ X ({left}) ]", before(l_states)
    allowed = l_states if kind == "U" else everything
    goal = r_states if kind == "U" else l_states
    found = set(l_states) if kind == "G" else set()
    for _ in range(STATES + 1):
        found = l_states & before(found) if kind == "G" else goal | (allowed & before(found))
    path = f"({left}) U ({right})" if kind == "U" else f"{kind} ({left})"
    return f"{operator[0]} [ {path} ]", found


def filters_and_arithmetic(rng: random.Random) -> Case:
    subject, agent, nature = draw(rng, Kind(intervals=0.0))
    kind = rng.choice(["min", "max", "avg", "sum"])
    values, slack = storm(subject, subject.rows, f'P{agent}=? [ F "a" ]', everywhere=True)
    reduced = {"min": min, "max": max, "sum": sum, "avg": lambda v: sum(v) / len(v)}[kind](values)
    text = asked(f'1 - 2 * filter({kind}, P@=? [ F "a" ])', subject, agent, nature)
    return Case(subject.ours, text, 1 - 2 * reduced, STATES * 2 * slack + 1e-9)


def operators_inside(rng: random.Random) -> Case:
    subject, agent, nature = draw(rng, Kind(intervals=0.0))
    text = f'P@=? [ F P{rng.choice(["<", ">="])}{rng.choice(["0.3", "0.7"])} [ X "b" ] ]'
    value, slack = by_storm(subject, agent, nature, text)
    return Case(subject.ours, asked(text, subject, agent, nature), value, slack)


# --- from the grammar ---------------------------------------------------------------------------------


def random_path(rng: random.Random, depth: int) -> tuple[str, str]:
    """A path formula for us, and the same for Storm with bounds, W and R written out."""
    if depth == 0:
        name = rng.choice(["a", "b", "c"])
        text = rng.choice([f'"{name}"', f'!"{name}"', f'"{name}"', "true"])
        return text, text
    kind = rng.choice(["X", "F", "G", "U", "W", "R", "F<=", "G<=", "U[]", "!", "&", "|", "=>", "atom"])
    a, a_storm = random_path(rng, depth - 1)
    if kind == "atom":
        return random_path(rng, 0)
    if kind in ("X", "F", "G", "!"):
        return f"{kind} ({a})", f"{kind} ({a_storm})"
    if kind in ("F<=", "G<="):
        steps, joint = rng.randint(0, 3), "|" if kind == "F<=" else "&"
        storm_text = f"({a_storm})"
        for _ in range(steps):
            storm_text = f"(({a_storm}) {joint} (X {storm_text}))"
        return f"{kind}{steps} ({a})", storm_text
    b, b_storm = random_path(rng, depth - 1)
    if kind in ("&", "|", "=>"):
        storm_text = f"(!({a_storm})) | ({b_storm})" if kind == "=>" else f"({a_storm}) {kind} ({b_storm})"
        return f"({a}) {kind} ({b})", storm_text
    if kind == "U[]":
        first = rng.randint(0, 2)
        last = first + rng.randint(0, 2)
        storm_text = f"({b_storm})"
        for _ in range(last - first):
            storm_text = f"(({b_storm}) | (({a_storm}) & (X {storm_text})))"
        for _ in range(first):
            storm_text = f"(({a_storm}) & (X {storm_text}))"
        return f"({a}) U[{first},{last}] ({b})", storm_text
    if kind == "W":
        return f"({a}) W ({b})", f"(({a_storm}) U ({b_storm})) | (G ({a_storm}))"
    if kind == "R":
        return f"({a}) R ({b})", f"!((!({a_storm})) U (!({b_storm})))"
    return f"({a}) U ({b})", f"({a_storm}) U ({b_storm})"


def random_paths(rng: random.Random) -> Case:
    ours, theirs = random_path(rng, rng.randint(1, 3))
    subject, agent, nature = draw(rng, Kind(intervals=0.25))
    value, slack = by_storm(subject, agent, nature, f"P@=? [ {theirs} ]")
    return Case(subject.ours, asked(f"P@=? [ {ours} ]", subject, agent, nature), value, slack)


def ctl_star(rng: random.Random) -> Case:
    """Storm's largest probability where every transition is a choice: 1 or 0."""
    ours, theirs = random_path(rng, rng.randint(1, 3))
    subject, _, _ = draw(rng, Kind())
    every = rng.random() < 0.5
    steps: Rows = [(s, f"{name}to{t}", {t: 1}) for s, name, leads in subject.rows for t in leads]
    value, _ = storm(subject, steps, f"Pmax=? [ {f'!({theirs})' if every else theirs} ]")
    return Case(subject.ours, f"{'A' if every else 'E'} [ {ours} ]", (value > 0.5) != every)


def states_as_paths(rng: random.Random) -> Case:
    """State formulas as paths, filters in braces, powers: from Storm's values of one operator."""
    subject, agent, nature = draw(rng, Kind(intervals=0.0))
    inner = f'X "{rng.choice("abc")}"'
    values, _ = storm(subject, subject.rows, f"P{agent}=? [ {inner} ]", everywhere=True)
    kind = rng.choice(["state", "braces", "power", "nested"])
    if kind == "state":
        name = rng.choice("abc")
        return Case(
            subject.ours,
            asked(f'P@=? [ "{name}" ]', subject, agent, nature),
            float(0 in subject.labels[name]),
        )
    if kind == "nested":
        level = rng.choice([0.3, 0.55, 0.8])
        text = asked(f"P@=? [ P{agent}>={level} [ {inner} ] ]", subject, agent, nature)
        return Case(subject.ours, text, float(values[0] >= level))
    if kind == "power":
        return Case(subject.ours, asked(f"P@=? [ {inner} ]^2", subject, agent, nature), values[0] ** 2, 1e-9)
    name, best = rng.choice("abc"), rng.choice(["min", "max"])
    of = [values[s] for s in subject.labels[name]]
    text = asked(f'P@=? [ {inner} {{"{name}"}}{{{best}}} ]', subject, agent, nature)
    return Case(subject.ours, text, min(of) if best == "min" else max(of), 1e-9)


WITHIN = (
    'P@=? [ F "a" ]',
    'P@=? [ (F "a") & (G !"b") ]',
    'P@=? [ G F "a" ]',
    'R{"cost"}@=? [ C<=4 ]',
    'R{"cost"}@=? [ I=3 ]',
    'R{"cost"}@=? [ C[1,4] ]',
    'R{"cost"}@=? [ F "end" ]',
    'R{"cost"}@=? [ (X true) & (F "end") ]',
    'R{"cost"}@=? [ S ]',
    'S@=? [ "a" ]',
    'P@=? [ F{"cost"}<=4 "a" ]',
    'P@=? [ F "a" || F "end" ]',
    'CVaR{"cost",0.5}min=? [ C<=3 ]',
    'quantile(min k, P@>0.55 [ F{"cost"}<=k "end" ])',
    'P@=? [ F P>=0.3 [ X "a" ] ]',
    '1 - 2 * filter(max, P@=? [ F<=2 "a" ])',
    'filter(count, P@>0.45 [ X "a" ])',
    'P@>=0.4 [ F<=3 "a" ] | P@<0.2 [ X "b" ]',
    'E [ G F "a" ]',
)


def within_intervals(rng: random.Random) -> Case:
    """The answer that holds wherever a model lies within its intervals, beside that of one such model."""
    subject = random_subject(rng, True, rng.random() < 0.7, ends=True)
    rows: Rows = []
    for state, name, ends in subject.rows:
        corners = vertices(ends)
        weights = [rng.random() for _ in corners]
        point = {t: sum(w * c[t] for w, c in zip(weights, corners, strict=True)) / sum(weights) for t in ends}
        rows.append((state, name, {t: Fraction(p).limit_denominator(10**6) for t, p in point.items()}))
    for _, _, leads in rows:
        first = next(iter(leads))
        leads[first] += 1 - sum(leads.values())
    agent = rng.choice(["max", "min"])
    text = rng.choice(WITHIN).replace("@", agent)
    inside = tr.solve(subject.model(rows).instantiate(), text)
    if not inside.is_certified:
        raise UnansweredError
    truth = getattr(inside, "truth", None)
    expected = truth == "true" if truth is not None else 0.5 * sum(inside.bounds)
    return Case(subject.ours, text, expected, 1e-5, uncertain=True)


CLASSES: dict[str, Callable[[random.Random], Case]] = {
    "simple paths": simple_paths,
    "rewards": rewards,
    "rewards until a path": rewards_until_a_path,
    "late rewards": late_rewards,
    "reward of one moment": reward_of_one_moment,
    "averages": averages,
    "steady state": steady_state,
    "bounds on what is earned": bounds_on_what_is_earned,
    "conditional": conditional,
    "quantiles": quantiles,
    "CVaR": tails,
    "several objectives": several_objectives,
    "several of some steps": several_objectives_of_some_steps,
    "Markov automata": markov_automata,
    "CTL": ctl,
    "operators inside": operators_inside,
    "filters, arithmetic": filters_and_arithmetic,
    "LTL": ltl,
    "random paths": random_paths,
    "CTL*": ctl_star,
    "states as paths": states_as_paths,
    "within intervals": within_intervals,
}


@dataclass
class Row:
    """What became of the questions of one class."""

    name: str
    asked: int = 0
    outside: int = 0
    open: int = 0
    refused: int = 0
    unanswered: int = 0
    crashed: int = 0
    messages: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)


def run_class(name: str, count: int, seed: int) -> Row:
    row, messages = Row(name), Counter[str]()
    for number in range(count):
        rng = random.Random(f"{name} {seed} {number}")
        try:
            case = CLASSES[name](rng)
        except UnansweredError:
            row.unanswered += 1
            continue
        row.asked += 1
        if case.beside is not None and abs(case.beside - float(case.expected)) > LOOSE:
            messages[f"Storm says {case.beside!r}, not {case.expected!r}, of {number}: {case.text}"] += 1
        try:
            found = answer_within(case) if case.uncertain else tr.solve(case.model, case.text)
        except (tr.InputError, tr.CannotCertify) as error:
            row.refused += 1
            messages["refused: " + str(error).splitlines()[0].partition(": ")[2][:90]] += 1
            continue
        except Exception as error:
            row.crashed += 1
            row.examples.append(f"{number}: {case.text}: {type(error).__name__}: {error}")
            continue
        row.open += not (found.truth != "not certified" if case.uncertain else found.is_certified)
        if is_outside(found, case):
            row.outside += 1
            row.examples.append(f"{number}: {case.text}: {found.bounds or found.truth}, not {case.expected}")
    row.messages = dict(messages)
    return row


def answer_within(case: Case) -> tr.Answer:
    """What holds for every model within the intervals."""
    query = parse_query(case.text, case.model.structure)
    return check_query(query, case.model, SolveOptions(), uncertain=True)


def is_outside(found: tr.Answer, case: Case) -> bool:
    if isinstance(case.expected, bool):
        return found.truth == str(not case.expected).lower()
    assert found.bounds is not None
    low, high = found.bounds
    slack = case.slack * max(1.0, abs(case.expected)) if np.isfinite(case.expected) else 0.0
    return not low - slack <= case.expected <= high + slack


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("classes", nargs="*", help=", ".join(CLASSES))
    parser.add_argument("--count", type=int, default=200, help="questions of every class")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="five of every class")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/question_battery.json"))
    options = parser.parse_args()
    if unknown := set(options.classes) - set(CLASSES):
        parser.error(f"there is no class {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore", tr.ReadingWarning)
    rows = []
    print("| class | asked | outside | crashed | open | refused | without reference |\n" + "|---" * 7 + "|")
    for name in options.classes or CLASSES:
        row = run_class(name, 5 if options.smoke else options.count, options.seed)
        rows.append(row)
        cells = (row.name, row.asked, row.outside, row.crashed, row.open, row.refused, row.unanswered)
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)
        for message, times in row.messages.items():
            print(f"    {times} times: {message}")
        for example in row.examples:
            print(f"    outside, or crashed: {example}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return int(any(row.outside or row.crashed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
