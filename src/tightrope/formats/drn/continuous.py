"""Chains in continuous time as DRN files: rates stand where probabilities stand in other models.

`@type: CTMC`, one action per state, and behind each state its exit rate (`!2.5`), as Storm writes them. With
parameters the rates are polynomials, with intervals pairs of numbers; Storm reads the former and those with
plain numbers. Rewards are those of states, per unit of time, and where transitions earn, too, what leaving a
state has to earn to come to the same (`formats.rate_rewards`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tightrope.formats.atomic import atomic_write
from tightrope.formats.drn.notes import Notes
from tightrope.formats.drn.state_lines import StateLines, drn_polynomial, labels_of
from tightrope.formats.number_text import decimal_text
from tightrope.formats.rate_rewards import exit_rewards
from tightrope.formats.written_by import DRN_MARK
from tightrope.model.continuous import CTMC, Continuous, IntervalCTMC, ParametricCTMC
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import Structure


def write_rates(model: Continuous, path: str | Path) -> None:
    """The file appears whole or not at all."""
    structure = _structure(model)
    lines = StateLines(structure, _rate_texts(model), model.expression.tolist())
    exits = _exit_texts(model)
    with atomic_write(path) as file:
        file.write("".join(f"{line}\n" for line in _header(model, structure)))
        for state in range(structure.states):
            first, _, rest = lines.of(state, state + 1).partition("\n")
            number = f"state {state}"
            exit_rate = "" if exits is None else f" !{exits[state]}"
            file.write(f"{number}{exit_rate}{first.removeprefix(number)}\n{rest}")


def _structure(model: Continuous) -> Structure:
    """With rewards of states and of leaving them; those of interval chains are left out."""
    rewards = {} if isinstance(model, IntervalCTMC) else exit_rewards(model)
    return replace(model.structure, rewards=rewards)


def _header(model: Continuous, structure: Structure) -> Iterator[str]:
    names = model.parameters.names if isinstance(model, ParametricCTMC) else ()
    kind = {CTMC: "double", IntervalCTMC: "double-interval", ParametricCTMC: "parametric"}[type(model)]
    yield DRN_MARK
    if not isinstance(model, IntervalCTMC):
        parts = {
            name: ("state",) + ("choice",) * (reward.choice is not None)
            for name, reward in structure.rewards.items()
        }
        domain = model.parameters.text() if isinstance(model, ParametricCTMC) else ""
        yield Notes(domain, tuple(labels_of(structure)), structure.action_names, parts).text()
    yield "@type: CTMC"
    yield f"@value_type: {kind}"
    yield "@parameters"
    yield " ".join(names)
    yield "@reward_models"
    yield "".join(f"{name} " for name in structure.rewards)
    yield "@nr_states"
    yield str(structure.states)
    yield "@nr_choices"
    yield str(structure.choices)
    yield "@model"


def _rate_texts(model: Continuous) -> list[str]:
    if isinstance(model, CTMC):
        return [decimal_text(value) for value in model.exact.to_float().tolist()]
    if isinstance(model, IntervalCTMC):
        pairs = zip(model.lower.tolist(), model.upper.tolist(), strict=True)
        return [f"[{decimal_text(low)}, {decimal_text(high)}]" for low, high in pairs]
    table = model.expressions
    return [drn_polynomial(table.polynomial(row), model.parameters.names) for row in range(len(table))]


def _exit_texts(model: Continuous) -> Sequence[str] | None:
    """Exit rates; an interval chain has none."""
    if isinstance(model, CTMC):
        return [decimal_text(value) for value in model.exit_rate.tolist()]
    if isinstance(model, IntervalCTMC):
        return None
    table, start = model.expressions, model.transition_start
    texts: dict[tuple[int, ...], str] = {}
    result = []
    for state in range(model.states):
        row = tuple(np.sort(model.expression[start[state] : start[state + 1]]).tolist())
        if row not in texts:
            total = sum((table.polynomial(e) for e in row), Polynomial({}))
            texts[row] = drn_polynomial(total, model.parameters.names).replace(" ", "")
        result.append(texts[row])
    return result
