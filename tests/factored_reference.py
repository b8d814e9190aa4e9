"""Modules with intervals that move together: as PRISM text, and their value by straight recursion.

Three natures at every choice: `products` picks one distribution per module (its optimum is at vertices, since
what is optimised is linear in each), `nested` picks those of later modules knowing where earlier ones went,
module after module in the order of freedom. Everything in rationals.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

Bounds = tuple[Fraction, Fraction]
Row = dict[int, Bounds]
"""Where a module goes, and with which probabilities at least and at most."""

State = tuple[int, ...]
Values = dict[State, Fraction]


def draw_row(draw: random.Random, size: int, most: int = 3, parts: int = 12) -> list[tuple[int, Bounds]]:
    """Outcomes of one command: intervals around a distribution, at times a point, or one twice."""
    count = draw.randint(1, most)
    cuts = sorted(draw.randint(0, parts) for _ in range(count - 1))
    shares = [Fraction(b - a, parts) for a, b in zip([0, *cuts], [*cuts, parts], strict=True)]
    wide = draw.random() < 0.8
    bounds = []
    for share in shares:
        down, up = (Fraction(draw.randint(0, 4), 24) if wide else Fraction(0) for _ in range(2))
        bounds.append((max(Fraction(0), share - down), min(Fraction(1), share + up)))
    return [(draw.randrange(size), each) for each in bounds]


@dataclass(frozen=True)
class Modules:
    """rows[module][action][local state]: the outcomes of its command."""

    sizes: tuple[int, ...]
    rows: tuple[tuple[tuple[list[tuple[int, Bounds]], ...], ...], ...]

    @staticmethod
    def drawn(seed: int, sizes: tuple[int, ...], actions: int) -> Modules:
        draw = random.Random(seed)
        rows = tuple(
            tuple(tuple(draw_row(draw, size) for _ in range(size)) for _ in range(actions)) for size in sizes
        )
        return Modules(sizes, rows)

    @property
    def actions(self) -> range:
        return range(len(self.rows[0]))

    @property
    def states(self) -> list[State]:
        return list(product(*map(range, self.sizes)))

    def text(self, ending: str = "") -> str:
        parts = ["mdp"]
        for module, size in enumerate(self.sizes):
            lines = [f"module m{module}", f"  x{module} : [0..{max(size - 1, 1)}] init 0;"]
            for action in self.actions:
                for local, row in enumerate(self.rows[module][action]):
                    updates = " + ".join(
                        f"[{low.numerator}/{low.denominator},{high.numerator}/{high.denominator}] : "
                        f"(x{module}'={target})"
                        for target, (low, high) in row
                    )
                    lines.append(f"  [a{action}] x{module}={local} -> {updates};")
            parts += [*lines, "endmodule"]
        return "\n".join([*parts, ending])

    def factors(self, state: State, action: int) -> list[Row]:
        """What every module may do, equal outcomes added."""
        found = []
        for module, local in enumerate(state):
            row: Row = {}
            for target, (low, high) in narrowed(self.rows[module][action][local]):
                old = row.get(target, (Fraction(0), Fraction(0)))
                row[target] = old[0] + low, old[1] + high
            found.append(row)
        return found

    def freedom(self, state: State, action: int) -> list[Fraction]:
        rows = (self.rows[module][action][local] for module, local in enumerate(state))
        return [sum((high - low for _, (low, high) in narrowed(row)), Fraction(0)) for row in rows]


def narrowed(row: list[tuple[int, Bounds]]) -> list[tuple[int, Bounds]]:
    """Bounds that the distributions of a command attain."""
    least, most = sum(low for _, (low, _) in row), sum(high for _, (_, high) in row)
    return [(t, (max(low, 1 - most + high), min(high, 1 - least + low))) for t, (low, high) in row]


def vertices(row: Row) -> Iterator[dict[int, Fraction]]:
    """The vertices of all distributions within bounds: all but one at an end of their intervals."""
    for free in row:
        others = [target for target in row if target != free]
        for ends in product(*(set(row[target]) for target in others)):
            rest = 1 - sum(ends)
            if row[free][0] <= rest <= row[free][1]:
                yield {**dict(zip(others, ends, strict=True)), free: rest}


def products(modules: Modules, state: State, action: int, values: Values, maximise: bool) -> Fraction:
    """The optimum over one distribution per module."""
    sides = [list(vertices(row)) for row in modules.factors(state, action)]
    found = [
        sum(
            (prod((p[t] for p, t in zip(picked, target, strict=True)), start=Fraction(1)) * values[target])
            for target in product(*picked)
        )
        for picked in product(*sides)
    ]
    return Fraction(max(found) if maximise else min(found))


def nested(modules: Modules, state: State, action: int, values: Values, maximise: bool) -> Fraction:
    """The optimum where later modules know where earlier ones went."""
    rows, freedom = modules.factors(state, action), modules.freedom(state, action)
    order = sorted(range(len(rows)), key=lambda module: -freedom[module])

    def best(depth: int, reached: dict[int, int]) -> Fraction:
        if depth == len(order):
            return values[tuple(reached[module] for module in range(len(rows)))]
        row = rows[order[depth]]
        below = {target: best(depth + 1, {**reached, order[depth]: target}) for target in row}
        found = [sum(p * below[target] for target, p in picked.items()) for picked in vertices(row)]
        return Fraction(max(found) if maximise else min(found))

    return best(0, {})


Nature = Callable[[Modules, State, int, Values, bool], Fraction]


def backup(
    modules: Modules, nature: Nature, values: Values, agent_maximises: bool, nature_maximises: bool
) -> Values:
    """One step back in every state."""
    best = max if agent_maximises else min
    return {
        state: best(nature(modules, state, action, values, nature_maximises) for action in modules.actions)
        for state in values
    }
