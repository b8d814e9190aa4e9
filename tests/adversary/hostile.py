"""Files of the right form that hurt: parts that do not fit each other, and more work than anyone should do.

Each is made from an honest certificate of the kind that it is named with.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from adversary.archive import Forgery, archive_bytes
from adversary.malformed import Make, edited


def _near_the_rate(count: int, width: float) -> Make:
    """Counts without end, and intervals so narrow that a tail has millions of terms before it falls."""

    def make(forgery: Forgery) -> bytes:
        counts = forgery["problem.data.batch_count"]
        forgery["problem.data.batch_count"] = np.full_like(counts, count)
        forgery["learned.lower"], forgery["learned.upper"] = (
            np.array([0.5 - width]),
            np.array([0.5 + width]),
        )
        return archive_bytes(forgery.members())

    return make


def _power(degree: int) -> Make:
    """(p + q) to a power, through an equality of the domain: as many coordinates as terms."""

    def make(forgery: Forgery) -> bytes:
        forgery["problem.domain.coefficient"] = ["1", "1", "-1"]
        lines = forgery["problem.polynomial"]
        forgery["problem.polynomial"] = [line.replace("*2^1", f"*2^{degree}") for line in lines]
        return archive_bytes(forgery.members())

    return make


def _edited_text(path: str, line: str) -> Make:
    """Another first line of a text."""

    def make(forgery: Forgery) -> bytes:
        forgery[path] = [line, *forgery[path][1:]]
        return archive_bytes(forgery.members())

    return make


def _last_polynomial(line: str) -> Make:
    """Another last polynomial: the one that is earned, where rewards have parameters."""

    def make(forgery: Forgery) -> bytes:
        forgery["problem.polynomial"] = [*forgery["problem.polynomial"][:-1], line]
        return archive_bytes(forgery.members())

    return make


def _costs(**changes: Any) -> Make:
    """Costs that nobody has seen."""

    def make(forgery: Forgery) -> bytes:
        for name, change in changes.items():
            path = f"problem.data.costs.{name}"
            forgery[path] = change(forgery[path]) if callable(change) else change
        return archive_bytes(forgery.members())

    return make


def _equalities(size: int) -> Make:
    """Equations whose solution has numbers of thousands of digits."""

    def make(forgery: Forgery) -> bytes:
        digits = random.Random(1)
        forgery["problem.domain.lower"], forgery["problem.domain.upper"] = ["0"] * size, ["1"] * size
        rows = [f"{digits.randint(1, 99)}/{digits.randint(1, 99)}" for _ in range(size * (size - 2))]
        forgery["problem.domain.coefficient"], forgery["problem.domain.bound"] = rows, ["1"] * (size - 2)
        forgery["problem.domain.is_equality"] = np.ones(size - 2, dtype=np.bool_)
        return archive_bytes(forgery.members())

    return make


def _long_numbers(forgery: Forgery) -> bytes:
    """A domain whose ends have four thousand digits."""
    long = "1" + "0" * 3998
    forgery["problem.domain.lower"] = [f"{long}1/{long}0001"[:8000], *forgery["problem.domain.lower"][1:]]
    forgery["problem.domain.upper"] = [f"{long}/{long}", *forgery["problem.domain.upper"][1:]]
    return archive_bytes(forgery.members())


def _long_automaton(memories: int) -> Make:
    """A chain of memories, in which nothing is settled before its end."""

    def make(forgery: Forgery) -> bytes:
        width = forgery["problem.automaton.successor"].shape[1]
        following = np.minimum(np.arange(memories) + 1, memories - 1)
        forgery["problem.automaton.successor"] = np.repeat(following[:, None], width, axis=1)
        forgery["problem.automaton.avoided"] = np.zeros((1, memories, width), dtype=np.bool_)
        forgery["problem.automaton.pair"] = np.zeros(1, dtype=np.int64)
        forgery["problem.automaton.repeated"] = np.ones((1, memories, width), dtype=np.bool_)
        forgery["problem.automaton.repeated"][0, -1] = False
        size = 6 * memories
        for name in ("lower", "upper"):
            forgery[f"values.0.{name}"] = np.ones(size)
        for name in ("lower_ranking", "witness"):
            forgery[f"values.0.{name}"] = np.zeros(size, dtype=np.int64)
        return archive_bytes(forgery.members())

    return make


def _automaton(**changes: Callable[[np.ndarray], np.ndarray]) -> Make:
    """An automaton with other arrays."""

    def make(forgery: Forgery) -> bytes:
        for name, change in changes.items():
            path = f"problem.automaton.{name}"
            forgery[path] = change(forgery[path].copy())
        return archive_bytes(forgery.members())

    return make


AUTOMATA: dict[str, Make] = {
    "successor beyond": _automaton(successor=lambda a: a + 1000),
    "successor negative": _automaton(successor=lambda a: a - 1000),
    "successor flat": _automaton(successor=lambda a: a.reshape(-1)),
    "no memories": _automaton(successor=lambda a: a[:0], avoided=lambda a: a[:, :0], repeated=lambda a: a[:, :0]),
    "a letter too few": _automaton(successor=lambda a: a[:, :-1], avoided=lambda a: a[:, :, :-1], repeated=lambda a: a[:, :, :-1]),
    "atoms of other states": _automaton(atom=lambda a: a[:, :-1]),
    "all atoms one letter": _automaton(atom=np.zeros_like),
    "more atoms than bits": _automaton(atom=lambda a: np.repeat(a, 40, axis=0)),
    "a mark of no pair": _automaton(pair=lambda a: a + 100),
    "a pair below 0": _automaton(pair=lambda a: a - 100),
    "marks of other memories": _automaton(repeated=lambda a: a[:, :-1]),
    "pairs as truth values": _automaton(pair=lambda a: a.astype(np.bool_)),
    "missing": lambda f: (f.drop("problem.automaton.avoided"), archive_bytes(f.members()))[1],
    "believed by a word": edited(("problem.automaton.believed", "no")),
    "for another question": edited(("problem.objective.kind", "UNTIL")),
    "a target beside it": edited(("problem.objective.target", np.zeros(6, dtype=np.bool_))),
    "too many memories": _long_automaton(30_000),
}  # fmt: skip
"""Automata that are none, made from the certificate of a temporal formula."""

LONG = "1" + "0" * 3990

NEWEST: dict[str, tuple[str, Make]] = {
    "costs of no transition": ("newest/costs", _costs(transition=lambda a: a + 1000)),
    "costs in another order": ("newest/costs", _costs(transition=lambda a: a[::-1].copy())),
    "costs below none": ("newest/costs", _costs(count=lambda a: a * 0)),
    "costs without sums": ("newest/costs", _costs(total=lambda a: a[:-1])),
    "costs of both kinds": ("newest/costs", _costs(deviation=1.0)),
    "costs of no kind": ("newest/costs", _costs(lower=None, upper=None)),
    "costs of half a range": ("newest/costs", _costs(lower=None)),
    "costs of an empty range": ("newest/costs", _costs(lower=4.0, upper=0.0)),
    "costs in words": ("newest/costs", _costs(total=lambda a: ["much"] * len(a))),
    "costs divided by 0": ("newest/costs", _costs(square=lambda a: ["1/0"] * len(a))),
    "costs of a reward without parameters": ("newest/costs", lambda f: (f.drop("problem.objective.earned"), f.__setitem__("problem.objective.reward", np.ones(6)), archive_bytes(f.members()))[2]),
    "rewards earned beyond": ("newest/costs", lambda f: edited(("problem.objective.earned", f["problem.objective.earned"] + 99))(f)),
    "a denominator without its parameter": ("walk/polytope/quotients", lambda f: (f.drop("problem.denominator"), archive_bytes(f.members()))[1]),
    "a denominator that is not a list": ("walk/polytope/quotients", edited(("problem.denominator", np.ones(1)))),
    "a basis near nothing": ("walk/polytope/quotients", lambda f: edited(("learned.region.bound_near", np.array([np.nan])))(f)),
    "shares that are no numbers": ("spread/slab/coupled", lambda f: edited(("learned.slab.0.share", f["learned.slab.0.share"] * -1))(f)),
    "a stage without its points": ("spread/slab/coupled", lambda f: (f.drop("learned.slab.0.point"), archive_bytes(f.members()))[1]),
    "nine stages": ("spread/slab/coupled", lambda f: (f["learned"].update(slab=f["learned"]["slab"] * 9), archive_bytes(f.members()))[1]),
}  # fmt: skip
"""Costs, quotients and stages that are none."""

HOSTILE: dict[str, tuple[str, Make]] = {
    "costs of 4000 digits": ("newest/costs", _costs(total=lambda a: [LONG] * len(a), square=lambda a: [LONG * 1] * len(a))),
    "a reward of degree 4000": ("newest/costs", _last_polynomial("1*1^4000")),
    "a reward of degree 250": ("newest/costs", _last_polynomial("1*1^250")),
    "a denominator of degree 4000": ("walk/polytope/quotients", _edited_text("problem.denominator", "1*0^4000 1")),
    "a denominator of no sign": ("walk/polytope/quotients", _edited_text("problem.denominator", "1*0^1 -1*1^1")),
    "a denominator that is 0": ("walk/polytope/quotients", _edited_text("problem.denominator", "")),
    "a probability of degree 400": ("walk/polytope/expression", lambda f: edited(("problem.polynomial", [line.replace("*0^1", "*0^400") for line in f["problem.polynomial"]]))(f)),
    "shares of 0": ("spread/slab/coupled", lambda f: edited(("learned.slab.0.share", f["learned.slab.0.share"] * 0))(f)),
    "eight stages again": ("spread/slab/coupled", lambda f: edited(("learned.slab.0.point", f["learned.slab.0.point"] * 1e308))(f)),
    "a chain of 4,000 memories": ("point/temporal", _long_automaton(4_000)),
    "2^50 trials": ("walk/events/tied", _near_the_rate(2**42, 1e-6)),
    "more counts than int64 holds": ("walk/events/tied", edited(("problem.data.batch_count", np.full(1, 2**62 - 1)))),
    "counts of 2^63 - 1": ("walk/likelihood/expression", lambda f: edited(("problem.data.batch_count", np.full_like(f["problem.data.batch_count"], 2**63 - 1)))(f)),
    "counts below 0": ("walk/likelihood/expression", lambda f: edited(("problem.data.batch_count", -f["problem.data.batch_count"]))(f)),
    "10^18 episodes": ("walk/likelihood/expression", edited(("problem.data.design", "trajectories"), ("problem.data.episodes", 10**18))),
    "a power of 900": ("domain/expression", _power(900)),
    "a power of 4096": ("domain/expression", _power(4096)),
    "a hundred equalities": ("domain/expression", _equalities(100)),
    "two hundred equalities": ("domain/expression", _equalities(200)),
    "numbers of 4000 digits": ("domain/coupled", _long_numbers),
}  # fmt: skip
"""Files of the right form that ask for more work than anyone should do, by the honest file they come from."""
