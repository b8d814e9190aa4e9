"""Chains in continuous time as PRISM's explicit files: rates stand where probabilities stand in a DTMC.

    # Transitions (CTMC)
    2 2                      states, transitions
    0 1 2.5                  from, to, rate

Nothing but the comment tells such a file from a DTMC's, so it is needed: without it the rows are
probabilities, which must sum to 1. Rates are the exact decimals that are written. State rewards (`.srew`) are
earned per unit of time, transition rewards (`.trew`) whenever the transition is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from tightrope.errors import InputError
from tightrope.io.explicit.read import explicit_base, structure_of
from tightrope.io.explicit.transitions import declared_type, read_transitions
from tightrope.io.number_text import decimal_text
from tightrope.io.rate_rewards import with_earnings
from tightrope.model.continuous import CTMC, ParametricCTMC, rate_box
from tightrope.model.expression_table import ExpressionTable
from tightrope.model.polynomial import Polynomial
from tightrope.model.structure import RewardStructure
from tightrope.numerics.arrays import FloatArray

HEADER = "# Transitions (CTMC)"


def is_explicit_ctmc(path: str | Path) -> bool:
    """Whether a `.tra` file says in its first comment that it holds a chain in continuous time."""
    base = explicit_base(path)
    return declared_type(base.with_name(f"{base.name}.tra")) == "ctmc"


def read_explicit_rates(path: str | Path) -> ParametricCTMC:
    """The chain in `path.tra` and the files beside it, without parameters."""
    base = explicit_base(path)
    transitions = read_transitions(base.with_name(f"{base.name}.tra"), continuous=True)
    structure = structure_of(base, transitions)
    table = ExpressionTable(())
    distinct, place = np.unique(transitions.lower, return_inverse=True)
    codes = [table.add(Polynomial.constant(Fraction(decimal_text(rate)))) for rate in distinct.tolist()]
    expressions, expression = table.freeze(np.array(codes, dtype=np.int32)[place.reshape(-1)])
    rewards: dict[str, RewardStructure] = {}
    flows: dict[str, FloatArray] = {}
    for name, reward in structure.rewards.items():
        rewards[name] = RewardStructure(state=reward.state)
        if reward.choice is not None:
            flows[name] = reward.choice
    bare = replace(structure, rewards={})
    return with_earnings(ParametricCTMC(bare, expression, expressions, rate_box(())), rewards, flows)


def plain_chain(model: ParametricCTMC | CTMC) -> CTMC:
    """The chain with numbers, which explicit files hold alone."""
    if isinstance(model, CTMC):
        return model
    if model.parameters.names:
        raise InputError(
            "PRISM's explicit files hold numbers only, and this chain has parameters "
            f"({', '.join(model.parameters.names)})",
            hint='write it at a point (`at={"lam": 0.5}`), or write a .drn file',
        )
    return model.instantiate()


def rate_lines(model: CTMC) -> Iterator[str]:
    """The lines of the `.tra` file."""
    yield HEADER
    yield f"{model.states} {model.transitions}"
    texts = [decimal_text(value) for value in model.exact.to_float().tolist()]
    owner, successor = model.structure.transition_choice.tolist(), model.successor.tolist()
    for state, target, rate in zip(owner, successor, model.expression.tolist(), strict=True):
        yield f"{state} {target} {texts[rate]}"
