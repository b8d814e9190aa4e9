"""Branching time (CTL): whether some path, or every path, of a graph satisfies a temporal formula. Exact.

The paths are those whose every transition is possible: whatever the agent chooses, whatever nature picks
within its sets, however chance falls. Probability plays no part: `A [ F a ]` fails where a path avoids a for
ever, even if that has probability 0. With E for "some path",

    E [ a U b ]   a backward search from b through a
    E [ G a ]     a backward search, through a, from the cycles of the graph of a
    E [ a W b ]   one or the other

and A is the negation of E of the negated path formula.
"""

from __future__ import annotations

import numpy as np

from tightrope.model.graph.components import strongly_connected_components
from tightrope.model.graph.reachability import backward_reachable
from tightrope.model.graph.support import Support
from tightrope.numerics.arrays import BoolArray


def some_next(support: Support, target: BoolArray) -> BoolArray:
    """E [ X target ]"""
    structure = support.structure
    leads = support.possible & target[structure.successor]
    found = np.zeros(structure.states, np.bool_)
    found[structure.choice_state[structure.transition_choice[leads]]] = True
    return found


def some_until(support: Support, allowed: BoolArray, target: BoolArray) -> BoolArray:
    """E [ allowed U target ]"""
    return backward_reachable(support, target, through=allowed)


def some_always(support: Support, allowed: BoolArray) -> BoolArray:
    """E [ G allowed ]"""
    structure = support.structure
    source = structure.choice_state[structure.transition_choice]
    inside = support.possible & allowed[source] & allowed[structure.successor]
    found = strongly_connected_components(support, usable=inside, expand=allowed)
    return backward_reachable(support, allowed & found.cyclic[found.component], through=allowed)


def some_weak_until(support: Support, allowed: BoolArray, target: BoolArray) -> BoolArray:
    """E [ allowed W target ]"""
    return some_until(support, allowed, target) | some_always(support, allowed)


def every_next(support: Support, target: BoolArray) -> BoolArray:
    """A [ X target ]"""
    return ~some_next(support, ~target)


def every_until(support: Support, allowed: BoolArray, target: BoolArray) -> BoolArray:
    """A [ allowed U target ]"""
    return ~some_weak_until(support, ~target, ~allowed & ~target)


def every_always(support: Support, allowed: BoolArray) -> BoolArray:
    """A [ G allowed ]"""
    return ~backward_reachable(support, ~allowed)


def every_weak_until(support: Support, allowed: BoolArray, target: BoolArray) -> BoolArray:
    """A [ allowed W target ]"""
    return ~some_until(support, ~target, ~allowed & ~target)
