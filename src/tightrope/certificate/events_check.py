"""Successes and trials of every event, counted again from the transitions of the model.

An outcome of a choice is a group of m transitions with one expression f; it has the probability m·f.
An event is a polynomial g. A visit to a choice with an outcome of probability g is a trial of g that
succeeds when the outcome shows; where only an outcome of probability 1 − g is there, it succeeds when that
one does not. Each visit is at most one trial of an event, chosen by the model alone. Every outcome of unknown
probability must belong to an event, so that none was left out of the union bound after looking.
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.polynomials import Key, Polynomial, complement, is_constant, key, scaled
from tightrope.numerics.arrays import IndexArray, OffsetArray


class Unexplained(ValueError):
    """An outcome that no event speaks of."""


def tally(
    transition_start: OffsetArray,
    expression: IndexArray | OffsetArray,
    counts: OffsetArray,
    polynomials: list[Polynomial],
    events: list[Polynomial],
) -> tuple[OffsetArray, OffsetArray]:
    """(successes, trials) of every event."""
    choice, outcome, multiplicity, seen = outcomes(transition_start, expression, counts)
    visits = np.add.reduceat(counts, transition_start[:-1])
    direct: dict[Key, int] = {key(event): number for number, event in enumerate(events)}
    opposite: dict[Key, int] = {key(complement(event)): number for number, event in enumerate(events)}
    if len(direct) != len(events):
        raise Unexplained("an event is listed twice")
    pair = outcome.astype(np.int64) * (int(multiplicity.max(initial=1)) + 1) + multiplicity
    _, first, kind = np.unique(pair, return_index=True, return_inverse=True)
    event_of = np.full(len(first), -1, dtype=np.int64)
    flipped_of = np.zeros(len(first), dtype=np.bool_)
    for number, position in enumerate(first.tolist()):
        polynomial = polynomials[int(outcome[position])]
        if is_constant(polynomial):
            continue
        name = key(scaled(polynomial, int(multiplicity[position])))
        if name in direct:
            event_of[number] = direct[name]
        elif name in opposite:
            event_of[number], flipped_of[number] = opposite[name], True
        else:
            raise Unexplained(f"expression {int(outcome[position])} has no event")
    event, flipped = event_of[kind.reshape(-1)], flipped_of[kind.reshape(-1)]
    known = event >= 0
    choice, event, flipped, seen, outcome = (part[known] for part in (choice, event, flipped, seen, outcome))
    order = np.lexsort((outcome, flipped, event, choice))
    choice, event, flipped, seen = (part[order] for part in (choice, event, flipped, seen))
    new = np.ones(len(choice), dtype=np.bool_)
    new[1:] = (np.diff(choice) != 0) | (np.diff(event) != 0)
    choice, event, flipped, seen = (part[new] for part in (choice, event, flipped, seen))
    successes = np.zeros(len(events), dtype=np.int64)
    trials = np.zeros(len(events), dtype=np.int64)
    np.add.at(trials, event, visits[choice])
    np.add.at(successes, event, np.where(flipped, visits[choice] - seen, seen))
    return successes, trials


def outcomes(
    transition_start: OffsetArray, expression: IndexArray | OffsetArray, counts: OffsetArray
) -> tuple[OffsetArray, OffsetArray, OffsetArray, OffsetArray]:
    """(choice, expression, multiplicity, times seen) of every outcome, by choice and expression."""
    size = int(expression.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(transition_start) - 1, dtype=np.int64), np.diff(transition_start))
    name = owner * size + expression
    order = np.argsort(name, kind="stable")
    name = name[order]
    start = np.flatnonzero(np.r_[True, np.diff(name) != 0])
    seen = np.add.reduceat(counts[order], start)
    multiplicity = np.diff(np.r_[start, len(name)])
    return name[start] // size, name[start] % size, multiplicity, seen
