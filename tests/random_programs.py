"""Random PRISM programs: small, valid, and full of corners nobody would write by hand.

Everything is drawn from one seeded generator. Variables stay in range because every assignment is
clamped, probabilities of a command sum to 1 by construction, and what Storm cannot read or reads
differently from PRISM is left out (see `storm`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

PARAMETERS = ("p", "q")
ACTIONS = ("a", "b", "")


class ProgramWriter:
    """Writes one program; `kind` is "parametric" or "interval"."""

    def __init__(self, seed: int, kind: str = "parametric"):
        self.draw = random.Random(f"{seed} {kind}")
        self.kind = kind
        self.integers: dict[str, tuple[int, int]] = {}
        self.booleans: list[str] = []
        self.actions: set[str] = set()

    def program(self) -> str:
        draw = self.draw
        modules = draw.randint(1, 3)
        owned: list[list[str]] = []
        declarations: list[list[str]] = []
        for module in range(modules):
            names, lines = self.variables(module)
            owned.append(names)
            declarations.append(lines)
        global_lines = self.globals() if draw.random() < 0.5 else []
        # In an interval DTMC Storm divides the rewards of overlapping commands twice.
        kinds = ["mdp", "mdp", "dtmc"] if self.kind == "parametric" else ["mdp"]
        parts = [draw.choice(kinds), "const int K = 2;", "const double w = 0.3;"]
        if self.kind == "parametric":
            parts += [f"const double {name};" for name in PARAMETERS]
        parts += global_lines
        parts += [f"formula f{k} = {self.condition(2)};" for k in range(2)]
        parts.append(f"formula g = {self.number(2)};")
        for module in range(modules):
            commands = [self.command(owned[module], bool(global_lines)) for _ in range(draw.randint(1, 4))]
            if self.kind == "interval" and module == 0:
                commands.append("  [c] true -> [0.25,0.5] : true + [0.5,0.75] : true;")
            parts += [f"module m{module}", *declarations[module], *commands, "endmodule"]
        parts += [f'label "l{k}" = {self.condition(2, formulas=True)};' for k in range(draw.randint(0, 2))]
        parts += [self.rewards(name) for name in draw.sample(['"r1"', '"r2"', ""], draw.randint(0, 2))]
        return "\n".join(parts) + "\n"

    def variables(self, module: int) -> tuple[list[str], list[str]]:
        names, lines = [], []
        for k in range(self.draw.randint(1, 2)):
            name = f"v{module}{k}"
            names.append(name)
            lines.append(f"  {self.declaration(name)}")
        return names, lines

    def globals(self) -> list[str]:
        return [f"global {self.declaration('shared')}"]

    def declaration(self, name: str) -> str:
        draw = self.draw
        if draw.random() < 0.3:
            self.booleans.append(name)
            return f"{name} : bool init {draw.choice(['true', 'false'])};"
        low = draw.choice([0, 0, -1, 1, -3])
        high = low + draw.randint(1, 3)
        self.integers[name] = (low, high)
        init = "" if draw.random() < 0.3 else f" init {draw.randint(low, high)}"
        return f"{name} : [{low}..{high}]{init};"

    # --- expressions -------------------------------------------------------------------------------

    def number(self, depth: int) -> str:
        """An integer expression."""
        draw = self.draw
        if depth == 0 or not self.integers:
            return draw.choice([*self.integers, "K", str(draw.randint(-2, 3))])
        a, b = self.number(depth - 1), self.number(depth - 1)
        return draw.choice(
            [
                f"{a}+{b}",
                f"({a})-({b})",
                f"({a})*({b})",
                f"min({a},{b},K)",
                f"max({a},{b})",
                f"floor(({a})/2)",
                f"ceil(({a})/(K+1))",
                f"mod(({a})*({a}),3)",
                f"({self.condition(depth - 1)} ? {a} : {b})",
                f"round(({a})/3)",
                f"pow({draw.randint(0, 3)},2)",
            ]
        )

    def condition(self, depth: int, formulas: bool = False) -> str:
        """A boolean expression; `formulas` where they are already declared."""
        draw = self.draw
        if depth == 0:
            simple = [*self.booleans, *(["f0", "f1"] if formulas else []), "true"]
            if self.integers and draw.random() < 0.8:
                operator = draw.choice(["<", "<=", ">", ">=", "=", "!="])
                return f"{self.number(draw.randint(0, 1))}{operator}{self.number(0)}"
            return draw.choice(simple)
        a, b = self.condition(depth - 1, formulas), self.condition(depth - 1, formulas)
        return draw.choice(
            [f"({a}) & ({b})", f"({a}) | ({b})", f"!({a})", f"({a}) => ({b})", f"(({a}) <=> ({b}))", a]
        )

    def fraction(self) -> str | None:
        """Something between 0 and 1 that depends on the state."""
        if not self.integers:
            return None
        name, (low, high) = self.draw.choice(sorted(self.integers.items()))
        return f"({name}-({low}))/{high - low}"

    def probabilities(self) -> list[str]:
        draw = self.draw
        if self.kind == "interval":
            intervals = [["[0.1,0.6]", "[0.4,0.9]"], ["[0.2,0.5]", "[0.1,0.3]", "[w,0.6]"]]
            return draw.choice([*intervals, ["0.25", "0.75"], ["1"]])
        p, q = draw.sample(PARAMETERS, 2)
        fraction = self.fraction() or "w"
        return draw.choice(
            [
                [p, f"1-{p}"],
                [f"{p}*{q}", f"1-{q}*{p}"],
                [f"{p}*{p}", f"2*{p}*(1-{p})", f"pow(1-{p},2)"],
                ["w", f"{p}*(1-w)", f"(1-{p})*(1-w)"],
                [fraction, f"1-{fraction}"],
                [f"{p}*{fraction}", f"1-{fraction}*{p}"],
                ["0.125", "1/8", "0.75"],
                ["1"],
                ["1/3", f"({p}+{q})/3", f"1-1/3-({p}+{q})/3"],
            ]
        )

    # --- commands and rewards ----------------------------------------------------------------------

    def command(self, owned: Sequence[str], shared: bool) -> str:
        draw = self.draw
        action = draw.choice(ACTIONS)
        self.actions |= {action} - {""}
        may_write = [*owned, *(["shared"] if shared and not action else [])]
        updates = [f"{probability} : {self.update(may_write)}" for probability in self.probabilities()]
        if len(updates) == 1 and draw.random() < 0.5:
            updates = [updates[0].partition(" : ")[2]]
        return f"  [{action}] {self.condition(draw.randint(0, 2), formulas=True)} -> {' + '.join(updates)};"

    def update(self, names: Sequence[str]) -> str:
        chosen = self.draw.sample(list(names), self.draw.randint(0, len(names)))
        assignments = [f"({name}'={self.assigned(name)})" for name in chosen]
        return "&".join(assignments) or "true"

    def assigned(self, name: str) -> str:
        if name in self.booleans:
            return self.condition(1, formulas=True)
        low, high = self.integers[name]
        value = self.draw.choice(
            [self.number(1), "g", str(self.draw.randint(low, high)), f"{name}+1", f"{name}-1"]
        )
        return f"max({low},min({high},{value}))"

    def rewards(self, name: str) -> str:
        draw = self.draw
        items = []
        for _ in range(draw.randint(1, 3)):
            variables = sorted(self.integers) or ["K"]
            amount = draw.choice(
                ["1", "0.1", "1/3", f"{draw.choice(variables)}*w", f"{draw.choice(variables)}/4"]
            )
            action = draw.choice(["", "[] ", *(f"[{name}] " for name in sorted(self.actions))])
            items.append(f"  {action}{self.condition(1, formulas=True)} : {amount};")
        return "\n".join([f"rewards {name}", *items, "endrewards"])
