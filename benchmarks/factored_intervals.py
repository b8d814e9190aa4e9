"""What factors of synchronised intervals are worth: widths, sizes and times beside the products of bounds.

    python benchmarks/factored_intervals.py [--smoke] [--storm] [-o FILE] [INSTANCE …]

Three families of modules that move together: machines that fail and are repaired, Herman's ring of coins, two
walkers on a cycle of whom the agent steers one. For each question the interval between nature's worst and
best: over joint bounds, factor by factor, and (small instances) over all products of distributions, by value
iteration over the vertices of all factors, which is exact since the value is linear in each. CPU seconds of
building and solving, in one process. With --storm also Storm: its interval values on the joint bounds, and
values at points in which every command has a vertex of its own, which must lie within all intervals. Status 1
where an interval does not hold the one it must.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.model.mdp import IntervalMDP
from tightrope.model.objective import Objective
from tightrope.prism.explore import search
from tightrope.prism.load import load_prism_text
from tightrope.problem import Problem
from tightrope.solver.solve import solve

Row = list[tuple[float, float]]
State = tuple[int, ...]
Pick = Callable[[Row], Sequence[str]]

SLACK = 1e-6
STORM = 1e-2
"""How far Storm's interval values, which end on a residual, may be from verified ones."""

EXACT = ("machines(4)", "machines(5)", "herman(5)", "herman(7)", "walkers(8)")
"""Instances that are small enough for all products."""


def as_intervals(row: Row) -> list[str]:
    return [f"[{low},{high}]" for low, high in row]


@dataclass(frozen=True)
class Family:
    """`text` is a program, given how its rows are written; `factors` the same in Python: for a state and an
    action, where each module may go, and between which probabilities."""

    name: str
    text: Callable[[Pick], str]
    actions: int
    factors: Callable[[State, int], list[dict[int, tuple[float, float]]]]
    questions: tuple[str, ...]


def machines(n: int) -> Family:
    """They fail and are repaired; all are down at once. The value is monotone in every machine."""
    fail, repair = [(0.2, 0.3), (0.7, 0.8)], [(0.3, 0.5), (0.5, 0.7)]

    def text(pick: Pick) -> str:
        parts = ["dtmc"]
        for i in range(n):
            (f, g), (r, s) = pick(fail), pick(repair)
            parts.append(
                f"module m{i} x{i} : [0..1]; [t] x{i}=0 -> {f} : (x{i}'=1) + {g} : true;"
                f" [t] x{i}=1 -> {r} : (x{i}'=0) + {s} : true; endmodule"
            )
        down = " & ".join(f"x{i}=1" for i in range(n))
        return "\n".join([*parts, f'label "goal" = {down};', "rewards true : 1; endrewards"])

    def factors(state: State, _: int) -> list[dict[int, tuple[float, float]]]:
        rows = [repair if x else fail for x in state]
        return [{1 - x: row[0], x: row[1]} for x, row in zip(state, rows, strict=True)]

    return Family(f"machines({n})", text, 1, factors, ('P{}=? [ F<=10 "goal" ]', 'R{}=? [ F "goal" ]'))


def herman(n: int) -> Family:
    """Herman's self-stabilisation with coins that are not fair: the value is monotone in none of them."""
    coin = [(0.4, 0.6), (0.4, 0.6)]

    def text(pick: Pick) -> str:
        parts = ["dtmc"]
        for i in range(n):
            a, b = pick(coin)
            left = f"x{(i - 1) % n}"
            parts.append(
                f"module m{i} x{i} : [0..1]; [t] x{i}={left} -> {a} : (x{i}'=0) + {b} : (x{i}'=1);"
                f" [t] x{i}!={left} -> (x{i}'={left}); endmodule"
            )
        tokens = "+".join(f"(x{i}=x{(i - 1) % n}?1:0)" for i in range(n))
        return "\n".join([*parts, f'label "goal" = {tokens}=1;', "rewards true : 1; endrewards"])

    def factors(state: State, _: int) -> list[dict[int, tuple[float, float]]]:
        return [
            {0: coin[0], 1: coin[1]} if x == state[i - 1] else {state[i - 1]: (1.0, 1.0)}
            for i, x in enumerate(state)
        ]

    return Family(f"herman({n})", text, 1, factors, ('P{}=? [ F<=6 "goal" ]', 'R{}=? [ F "goal" ]'))


def walkers(m: int) -> Family:
    """Two on a cycle of m places; the agent says which way the first one tries to go, and wants to meet."""
    steered, drifts = [(0.6, 0.8), (0.1, 0.3), (0.05, 0.2)], [(0.2, 0.5), (0.2, 0.5), (0.2, 0.4)]

    def text(pick: Pick) -> str:
        a, b, c = pick(steered)
        d, e, f = pick(steered)
        g, h, i = pick(drifts)
        up, down = f"mod(x+1,{m})", f"mod(x+{m - 1},{m})"
        return f"""mdp
module one x : [0..{m - 1}];
  [a] true -> {a} : (x'={up}) + {b} : true + {c} : (x'={down});
  [b] true -> {d} : (x'={down}) + {e} : true + {f} : (x'={up});
endmodule
module two y : [0..{m - 1}] init {m // 2};
  [a] true -> {g} : (y'=mod(y+1,{m})) + {h} : true + {i} : (y'=mod(y+{m - 1},{m}));
  [b] true -> {g} : (y'=mod(y+1,{m})) + {h} : true + {i} : (y'=mod(y+{m - 1},{m}));
endmodule
label "goal" = x=y;
rewards true : 1; endrewards"""

    def factors(state: State, action: int) -> list[dict[int, tuple[float, float]]]:
        x, y = state
        ways = [(x + 1) % m, x, (x - 1) % m]
        one = dict(zip(reversed(ways) if action else ways, steered, strict=True))
        return [one, dict(zip([(y + 1) % m, y, (y - 1) % m], drifts, strict=True))]

    return Family(
        f"walkers({m})", text, 2, factors, (f'Pmax{{}}=? [ F<={m} "goal" ]', 'Rmin{}=? [ F "goal" ]')
    )


FAMILIES = (machines(4), machines(5), machines(7), machines(9), herman(5), herman(7), herman(9), herman(11))
FAMILIES += (walkers(8), walkers(12), walkers(40))
SMOKE = (machines(3), herman(3), walkers(5))


def build(text: str, with_factors: bool) -> tuple[IntervalMDP, float]:
    """The model, and the CPU seconds that it took; without factors they are not looked for."""
    find = search.find_factors
    if not with_factors:
        search.find_factors = lambda *_: None
    try:
        begin = time.process_time()
        model = load_prism_text(text, "benchmark")
        seconds = time.process_time() - begin
    finally:
        search.find_factors = find
    assert isinstance(model, IntervalMDP)
    return model, seconds


def vertices(row: dict[int, tuple[float, float]]) -> list[dict[int, float]]:
    """All but one at an end of their intervals."""
    found: list[dict[int, float]] = []
    for free in row:
        others = [target for target in row if target != free]
        for ends in product(*(row[target] for target in others)):
            rest = 1 - sum(ends)
            given = {**dict(zip(others, ends, strict=True)), free: rest}
            one = {target: given[target] for target in row}
            if row[free][0] - 1e-12 <= rest <= row[free][1] + 1e-12 and one not in found:
                found.append(one)
    return found


class Products:
    """Value iteration over all products of vertices."""

    def __init__(self, family: Family, model: IntervalMDP):
        self.number = {
            tuple(int(x) for x in values): i
            for i, values in enumerate(zip(*model.valuations.values(), strict=True))
        }
        self.rows: list[list[tuple[Any, Any]]] = []
        for state in self.number:
            choices = []
            for action in range(family.actions):
                factors = family.factors(state, action)
                targets = np.array([self.number[t] for t in product(*factors)])
                weights = [
                    np.prod(np.array(list(product(*(p.values() for p in picked)))), axis=1)
                    for picked in product(*(vertices(row) for row in factors))
                ]
                choices.append((targets, np.array(weights)))
            self.rows.append(choices)

    def value(self, objective: Objective) -> float:
        """That of the initial state."""
        assert objective.target is not None
        best, answer = (
            np.max if side.value == "max" else np.min for side in (objective.agent, objective.nature)
        )
        reward = 1.0 if objective.is_reward else 0.0
        x = np.where(objective.target, 1.0 - reward, 0.0)
        for _ in range(objective.upper_steps or 100_000):
            new = np.array(
                [
                    best([answer(weights @ x[targets]) for targets, weights in choices])
                    for choices in self.rows
                ]
            )
            new = np.where(objective.target, x, new + reward)
            change, x = np.abs(new - x).max(), new
            if objective.upper_steps is None and change < 1e-10 * np.abs(x).max():
                break
        return float(x[0])


def measured(family: Family, draw: random.Random, with_storm: bool, exact: bool) -> list[dict[str, Any]]:
    text = family.text(as_intervals)
    model, seconds = build(text, True)
    joint, joint_seconds = build(text, False)
    assert model.factored is not None and joint.factored is None
    game = model.factored.structure
    sizes = {
        "family": family.name,
        "states": model.states,
        "transitions": model.transitions,
        "game_states": game.states,
        "game_transitions": game.transitions,
        "kilobytes": [kilobytes(joint), kilobytes(model)],
        "build_seconds": [round(joint_seconds, 3), round(seconds, 3)],
    }
    everything = Products(family, model) if exact else None
    rows = []
    for question in family.questions:
        ends: dict[str, list[float]] = {"joint": [], "factored": [], "exact": [], "storm": []}
        cost = {"joint": 0.0, "factored": 0.0}
        for nature in ("min", "max"):
            asked = Problem(model, question.format(nature))
            for kind, subject in (("joint", joint), ("factored", model)):
                begin = time.process_time()
                solution = solve(asked.with_model(subject), threads=1)
                cost[kind] += time.process_time() - begin
                assert solution.is_certified and solution.is_factored == (kind == "factored")
                ends[kind].append(float(solution.lower[0] if nature == "min" else solution.upper[0]))
            if everything is not None:
                ends["exact"].append(everything.value(asked.objective))
            if with_storm:
                ends["storm"].append(storm_on_bounds(joint, question, nature))
        points = [storm_at_point(family, question, draw) for _ in range(2)] if with_storm else []
        row = {**sizes, "question": question.format(""), **{k: v for k, v in ends.items() if v}}
        row["widths"] = {kind: end[1] - end[0] for kind, end in ends.items() if end and kind != "storm"}
        row["ratio"] = round(row["widths"]["factored"] / max(row["widths"]["joint"], 1e-300), 4)
        row["solve_seconds"] = {kind: round(each, 4) for kind, each in cost.items()}
        row["points"] = points
        row["holds"] = holds(ends, points)
        rows.append(row)
    return rows


def kilobytes(model: IntervalMDP) -> int:
    """What the rows of a model take."""
    parts = [(model.structure, model.lower, model.upper)]
    if (rows := model.factored) is not None:
        parts.append((rows.structure, rows.lower, rows.upper))
    arrays = [(s.choice_start, s.transition_start, s.successor, low, high) for s, low, high in parts]
    return sum(array.nbytes for part in arrays for array in part) // 1000


def holds(ends: dict[str, list[float]], points: list[float]) -> bool:
    """Whether every interval is within the next: points, products, factors, joint bounds (also Storm's)."""
    ok = True
    order = [ends[kind] for kind in ("exact", "factored", "joint") if ends[kind]]
    for inner, outer in pairwise(order):
        ok &= outer[0] <= inner[0] * (1 + SLACK) and inner[1] * (1 - SLACK) <= outer[1]
    for point in points:
        ok &= order[0][0] <= point * (1 + SLACK) and point * (1 - SLACK) <= order[0][1]
    for ours, theirs in zip(ends["joint"], ends["storm"], strict=False):
        ok &= abs(ours - theirs) <= STORM * abs(ours)
    return ok


def storm_on_bounds(model: IntervalMDP, question: str, nature: str) -> float:
    """Storm's value of the joint bounds; its letters say what the agent wants, the mode what nature does."""
    import stormpy

    from tightrope.io.drn.write import write_drn

    with tempfile.TemporaryDirectory() as folder:
        write_drn(model, Path(folder) / "model.drn")
        built = stormpy.build_model_from_drn[stormpy.Interval](str(Path(folder) / "model.drn"))
    modes = stormpy.UncertaintyResolutionMode
    if model.structure.has_choices:
        mode = modes.COOPERATIVE if question[1:4] == nature else modes.ROBUST
    else:
        mode = modes.MINIMIZE if nature == "min" else modes.MAXIMIZE
    asked = stormpy.parse_properties(question.format(""))[0]
    result = stormpy.model_checking(built, asked, uncertainty_resolution_mode=mode)
    return float(result.get_value(built.initial_states[0]))


def storm_at_point(family: Family, question: str, draw: random.Random) -> float:
    """Storm's value where every command has one distribution, a vertex."""
    import stormpy

    def pick(row: Row) -> list[str]:
        chosen = draw.choice(vertices(dict(enumerate(row))))
        numbers = [round(chosen[i], 12) for i in range(len(row) - 1)]
        return [*map(str, numbers), "1-" + "-".join(map(str, numbers))]

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "point.prism"
        file.write_text(family.text(pick), encoding="utf-8")
        program = stormpy.parse_prism_program(str(file))
    asked = stormpy.parse_properties(question.format(""), program)
    built = stormpy.build_model(program, asked)
    return float(stormpy.model_checking(built, asked[0]).get_value(built.initial_states[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", nargs="*", help="such as herman(7); all of them where none is named")
    parser.add_argument("--smoke", action="store_true", help="small instances")
    parser.add_argument("--storm", action="store_true", help="compare with Storm")
    parser.add_argument("-o", type=Path, help="where to write the rows")
    asked = parser.parse_args()
    draw, rows = random.Random(7), []
    for family in () if asked.smoke else SMOKE:  # everything is compiled and loaded before it is measured
        measured(family, random.Random(0), False, False)
    for family in SMOKE if asked.smoke else FAMILIES:
        if asked.instances and family.name not in asked.instances:
            continue
        exact = asked.smoke or family.name in EXACT
        for row in measured(family, draw, asked.storm, exact):
            rows.append(row)
            print(json.dumps(row), flush=True)
            if asked.o is not None:
                asked.o.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if not all(row["holds"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
