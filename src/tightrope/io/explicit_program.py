"""A model of states and transitions as a program of one module, for formats that hold programs.

A state is named by the model's variables, or by its number where no variables distinguish states. Every
choice is a command, deadlocks stay without one. Numbers are exact: polynomials and quotients as they are,
doubles by their shortest decimals, which must sum to exactly 1. The program is written as PRISM text and read
by the one reader of such texts, so that it means what that text means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tightrope.errors import InputError
from tightrope.io.number_text import decimal_text
from tightrope.io.rate_rewards import exit_rewards
from tightrope.model.continuous import ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.rewards import ParametricReward
from tightrope.model.structure import UNLABELLED, Structure
from tightrope.prism.expand.model import expand
from tightrope.prism.expand.program import Program
from tightrope.prism.parse.parser import parse_model

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POWER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\^([0-9]+)")


def as_program(
    model: ParametricMDP | MDP | IntervalMDP | ParametricCTMC,
    name: str,
    constants: Mapping[str, str] | None = None,
) -> Program:
    """The program; `name` is what messages call the model, `constants` are values of its parameters."""
    if isinstance(model, IntervalMDP):
        raise InputError("JANI has no interval probabilities", hint="write DRN or UMB, which have")
    writer = _Writer(model)
    return expand(parse_model("\n".join(writer.lines()), name), constants or {})


class _Writer:
    def __init__(self, model: ParametricMDP | MDP | ParametricCTMC):
        self.model, self.structure = model, model.structure
        if isinstance(model, ParametricCTMC):
            self.structure = replace(model.structure, rewards=exit_rewards(model))
        self.parameters = () if isinstance(model, MDP) else model.parameters.names
        self.columns = _columns(self.structure, self.parameters)
        for kind, names in (("action", self.structure.action_names), ("variable", tuple(self.columns))):
            for name in names:
                if name != UNLABELLED and not _NAME.fullmatch(name):
                    raise InputError(f"a program cannot have the {kind} name '{name}': it must be one word")
        deadlock = self.structure.labels.get("deadlock")
        self.deadlock = np.zeros(self.structure.states, dtype=np.bool_) if deadlock is None else deadlock

    def lines(self) -> Iterator[str]:
        structure = self.structure
        discrete = "dtmc" if structure.is_chain else "mdp"
        yield "ctmc" if isinstance(self.model, ParametricCTMC) else discrete
        yield from (f"const double {name};" for name in self.parameters)
        yield "module states"
        first = structure.initial
        for name, column in self.columns.items():
            if column.dtype == np.bool_:
                yield f"  {name} : bool init {_word(column[first])};"
            else:
                low, high = int(column.min()), int(column.max())
                yield f"  {name} : [{low}..{max(high, low + 1)}] init {int(column[first])};"
        yield from self.commands()
        yield "endmodule"
        for label, members in structure.labels.items():
            if label not in ("init", "deadlock"):
                where = [self.guard(state) for state in np.flatnonzero(members).tolist()]
                yield f'label "{label}" = {" | ".join(where) or "false"};'
        yield from self.rewards()

    def commands(self) -> Iterator[str]:
        structure = self.structure
        texts = self.probabilities()
        for choice, state in enumerate(structure.choice_state.tolist()):
            if self.deadlock[state]:
                continue
            begin, end = (int(structure.transition_start[choice + i]) for i in (0, 1))
            updates = [
                f"({texts[t]}) : {self.update(int(structure.successor[t]))}" for t in range(begin, end)
            ]
            yield f"  [{self.action(choice)}] {self.guard(state)} -> {' + '.join(updates)};"

    def probabilities(self) -> list[str]:
        model = self.model
        if isinstance(model, ParametricMDP | ParametricCTMC):
            texts = [_powers(model.expressions.text(e)) for e in range(len(model.expressions))]
            return [texts[e] for e in model.expression.tolist()]
        decimals = [decimal_text(value) for value in model.probability.tolist()]
        exact = [Fraction(text) for text in decimals]
        starts = self.structure.transition_start.tolist()
        for choice in range(self.structure.choices):
            total = sum(exact[starts[choice] : starts[choice + 1]])
            if total != 1:
                raise InputError(
                    f"{self.structure.choice_name(choice)}: the decimals of its probabilities sum to "
                    f"{float(total):.17g}, and probabilities of a program sum to exactly 1",
                    hint="write DRN, UMB or PRISM's explicit files",
                )
        return decimals

    def rewards(self) -> Iterator[str]:
        structure = self.structure
        for name, reward in structure.rewards.items():
            if isinstance(reward, ParametricReward):
                texts = [_powers(reward.expressions.text(e)) for e in range(len(reward.expressions))]
                of_choice = [texts[e] for e in reward.expression.tolist()]
                of_state: list[str] = []
            else:
                of_choice = [] if reward.choice is None else [_sign(v) for v in reward.choice.tolist()]
                of_state = [] if reward.state is None else [_sign(v) for v in reward.state.tolist()]
            yield f'rewards "{name}"' if name else "rewards"
            for state, text in enumerate(of_state):
                if text != "0":
                    yield f"  {self.guard(state)} : {text};"
            told: dict[tuple[int, str], str] = {}
            for choice, (state, text) in enumerate(
                zip(structure.choice_state.tolist(), of_choice, strict=False)
            ):
                key = state, self.action(choice)
                if told.setdefault(key, text) != text:
                    raise InputError(
                        f"two choices '{key[1]}' of one state earn different rewards '{name}': a program "
                        "cannot tell them apart",
                        hint="write DRN or PRISM's explicit files",
                    )
            for (state, action), text in told.items():
                if text != "0" and not self.deadlock[state]:
                    yield f"  [{action}] {self.guard(state)} : {text};"
            yield "endrewards"

    def action(self, choice: int) -> str:
        action = self.structure.action
        name = UNLABELLED if action is None else self.structure.action_names[int(action[choice])]
        return "" if name == UNLABELLED else name

    def guard(self, state: int) -> str:
        return "(" + " & ".join(f"{name}={_word(c[state])}" for name, c in self.columns.items()) + ")"

    def update(self, state: int) -> str:
        return " & ".join(f"({name}'={_word(c[state])})" for name, c in self.columns.items())


def _columns(structure: Structure, taken: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Variables that tell all states apart."""
    given = {name: np.asarray(column) for name, column in structure.valuations.items()}
    if given:
        rows = np.stack([column.astype(np.int64) for column in given.values()], axis=1)
        if len(np.unique(rows, axis=0)) == structure.states:
            return given
    name = "state"
    while name in taken:
        name += "_"
    return {name: np.arange(structure.states)}


def _powers(text: str) -> str:
    """p^2 as PRISM writes it."""
    return _POWER.sub(r"pow(\1,\2)", text)


def _word(value: object) -> str:
    return str(bool(value)).lower() if isinstance(value, np.bool_ | bool) else str(value)


def _sign(value: float) -> str:
    text = decimal_text(value)
    return text if value >= 0 else f"({text})"
