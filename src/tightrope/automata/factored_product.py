"""Products of interval models whose rows are trees of independent factors (`tightrope.model.factored`).

The automaton reads the letter of the state that a step begins in, so all that a step leads to has one memory:
the tree of a product's choice is that of the model's, with that memory behind every state in the middle of
the step and behind the states it ends in. Nothing is read on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.automata.product import Product, ranges
from tightrope.model.factored import FactoredRows
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.numerics.arrays import OffsetArray


def factored_model(product: Product, model: MDP | IntervalMDP) -> MDP | IntervalMDP:
    """The product with the probabilities of a model, and with its factors where it has some."""
    made = product.model(model)
    if isinstance(model, MDP) or isinstance(made, MDP) or model.factored is None:
        return made
    return replace(made, factored=lift_factors(model.factored, product))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of the model's game, taken with a memory each: their transitions, and where these lead as pairs
    of a state and a memory."""

    length: OffsetArray
    transition: OffsetArray
    key: OffsetArray

    @staticmethod
    def of(rows: FactoredRows, which: OffsetArray, memory: OffsetArray, memories: int) -> _Rows:
        transition, owner = ranges(rows.structure.transition_start, which)
        key = rows.structure.successor[transition] * np.int64(memories) + memory[owner]
        return _Rows(np.bincount(owner, minlength=len(which)), transition, key)


def lift_factors(rows: FactoredRows, product: Product) -> FactoredRows | None:
    """The trees of a product's choices; None where one leads to a pair that the product does not have, as
    joint bounds rule it out."""
    built, memories = product.structure, int(product.memory.max()) + 1
    first = built.transition_start[built.choice_start[:-1]]
    following = product.memory[built.successor[first]].astype(np.int64)
    taken = [_Rows.of(rows, product.choice, following[built.choice_state], memories)]
    layers: list[OffsetArray] = []
    for begin, end in reversed(rows.layers):
        met = np.unique(np.concatenate([one.key for one in taken]))
        met = met[(met >= begin * memories) & (met < end * memories)]
        layers.append(met)
        shift = rows.choices - rows.states
        taken.append(_Rows.of(rows, met // memories + shift, met % memories, memories))
    own = product.state * np.int64(memories) + product.memory
    keys = np.concatenate([own, *reversed(layers)])
    order = np.argsort(keys)
    taken = [taken[0], *reversed(taken[1:])]
    wanted = np.concatenate([one.key for one in taken])
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    if not np.array_equal(keys[place], wanted):
        return None
    transition = np.concatenate([one.transition for one in taken])
    start = np.append(0, np.cumsum(np.concatenate([one.length for one in taken])))
    more = len(keys) - len(own)
    game = Structure(
        np.append(built.choice_start, built.choices + np.arange(1, more + 1)),
        start,
        place.astype(np.int32),
        built.initial_states,
    )
    layer_start = len(own) + np.append(0, np.cumsum([len(met) for met in reversed(layers)], dtype=np.int64))
    return FactoredRows(game, rows.lower[transition], rows.upper[transition], layer_start)
