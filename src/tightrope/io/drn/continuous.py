"""Chains in continuous time as DRN files: rates stand where probabilities stand in other models.

`@type: CTMC`, one action per state, and behind each state its exit rate (`!2.5`), as Storm writes them. With
parameters the rates are polynomials, with intervals pairs of numbers; Storm reads the former and those with
plain numbers. Rewards are those of states, per unit of time, and where transitions earn, too, what leaving a
state has to earn to come to the same (`io.rate_rewards`).

When such files are read, the number behind a transition is its rate, exact where it is written as a fraction
or decimal, and a polynomial where there are parameters. The exit rate behind a state (`!2.5`) must be the sum
of its rates: a file that holds probabilities instead is refused. Rewards of states are earned per unit of
time, those of actions whenever the state is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.io.atomic import atomic_write
from tightrope.io.drn.assemble import assemble
from tightrope.io.drn.body import Body
from tightrope.io.drn.header import read_header
from tightrope.io.drn.notes import Notes
from tightrope.io.drn.state_lines import StateLines, drn_polynomial, labels_of
from tightrope.io.number_text import decimal_text, exact_number, nearest_double
from tightrope.io.polynomial_text import parse_polynomial
from tightrope.io.rate_rewards import exit_rewards, with_earnings
from tightrope.io.text_file import shorten
from tightrope.io.written_by import DRN_MARK
from tightrope.model import door
from tightrope.model.continuous import CTMC, Continuous, IntervalCTMC, ParametricCTMC, rate_box
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.parameters import Parameters
from tightrope.model.polynomial import Polynomial
from tightrope.model.region_text import narrow_domain
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import IndexArray
from tightrope.numerics.text_reading import reading

_HEADER_LINES = 40
_CLOSE = Fraction(1, 10**6)


def is_ctmc(path: Path) -> bool:
    """Whether a DRN file says that it holds a chain in continuous time."""
    with reading(path) as file:
        head = [line.strip().lower() for _, line in zip(range(_HEADER_LINES), file, strict=False)]
    inline = any(line.replace(" ", "") == "@type:ctmc" for line in head)
    return inline or any(a == "@type" and b == "ctmc" for a, b in pairwise(head))


def read_rates_drn(path: str | Path, box: str | None = None, domain: str | None = None) -> ParametricCTMC:
    """The chain in a DRN file; parameters lie in [0, 1000] unless `box`, `domain` or
    a note in the file says otherwise."""
    path = Path(path)
    with reading(path) as file:
        lines = enumerate(file, 1)
        header = read_header(path, lines, continuous=True)
        if box is None and domain is None and header.notes is not None:
            domain = header.notes.domain or None
        parameters = narrow_domain(rate_box(header.parameters), box, domain)
        body = Body(path, header, RateValues(parameters))
        body.read(lines, None)
    found = assemble(body)
    assert isinstance(found, ParametricCTMC)
    _check_exits(found, body)
    return found


class RateValues:
    """Rates: numbers, or polynomials in the parameters."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        self.index = {name: k for k, name in enumerate(parameters.names)}
        self.table = ExpressionTable(parameters.names)

    def code(self, text: str) -> int:
        if text.lstrip().startswith("["):
            raise ValueError("an interval: intervals of rates are not read")
        rate = self.rate(text)
        for coefficient in rate.terms.values():
            door.double(coefficient)
        return self.table.add(rate)

    def rate(self, text: str) -> Polynomial:
        """The number or polynomial of a text."""
        if self.index:
            return parse_polynomial(text, self.index)
        return Polynomial.constant(exact_number(text))

    def reward(self, text: str) -> float:
        return nearest_double(text)

    def model(self, structure: Structure, codes: IndexArray) -> ParametricCTMC:
        expressions, expression = self.table.freeze(codes)
        alone = ParametricCTMC(replace(structure, rewards={}), expression, expressions, self.parameters)
        return with_earnings(alone, dict(structure.rewards))


def _check_exits(chain: ParametricCTMC, body: Body) -> None:
    """Refuse files whose exit rates are not the sums of their rates."""
    values, start = body.values, chain.transition_start
    assert isinstance(values, RateValues)
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for state, entry in enumerate(body.state_entry):
        row = tuple(chain.expression[start[state] : start[state + 1]].tolist())
        if entry not in body.exit_texts or (entry, row) in seen:
            continue
        seen.add((entry, row))
        try:
            said = values.rate(body.exit_texts[entry])
        except ValueError as error:
            shown = shorten(body.exit_texts[entry])
            raise InputError(
                f"the exit rate {shown} of state {state}: {error}", Location(str(body.path))
            ) from None
        total = sum((chain.expressions.polynomial(e) for e in row), Polynomial({}))
        missed = (said - total).terms.values()
        size = max((abs(c) for c in total.terms.values()), default=Fraction(1))
        if any(abs(c) > _CLOSE * size for c in missed):
            raise InputError(
                f"state {state}: the exit rate is {body.exit_texts[entry]}, but the rates of its transitions "
                f"sum to {total.text(chain.parameters.names)}",
                Location(str(body.path)),
                "behind transitions stand rates, not probabilities",
            )


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
