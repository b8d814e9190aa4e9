"""Attacks on observed costs, quotients, slabs with cells, and chains in continuous time.

Model, data, δ and method stay honest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adversary.archive import Forgery
from adversary.attacks_learned import REGION, filled, narrow, rows_appended, tight
from adversary.attacks_values import Attack, Forge, both, change, claim, entries, only_claim, shift

COSTS = ("newest/costs",)
QUOTIENTS = ("walk/polytope/quotients",)
CELLS = ("spread/slab/coupled",)
JUMPS = ("newest/jumps", "newest/spent")
FOLLOWS = ("newest/follows",)


def scaled(share: float) -> Forge:
    """The vectors and the claim of a cost, all of it so many times as large."""

    def forge(forgery: Forgery) -> None:
        for side in ("lower", "upper"):
            forgery[f"values.0.{side}"] = forgery[f"values.0.{side}"] * share
        claim(forgery, *(float(forgery[f"claims.0.{side}"]) * share for side in ("lower", "upper")))

    return forge


def costs(lower: float, upper: float) -> Forge:
    """Intervals of the reward, and vectors that fit them as the honest ones fit theirs."""

    def forge(forgery: Forgery) -> None:
        low, high = lower / forgery["learned.cost_lower"][0], upper / forgery["learned.cost_upper"][0]
        forgery["learned.cost_lower"], forgery["learned.cost_upper"] = np.array([lower]), np.array([upper])
        forgery["values.0.lower"] = forgery["values.0.lower"] * low * (1 - 1e-9)
        forgery["values.0.upper"] = forgery["values.0.upper"] * high * (1 + 1e-9)
        claim(forgery, float(forgery["values.0.lower"][0]), float(forgery["values.0.upper"][0]))

    return forge


def slab(edit: Callable[[np.ndarray], np.ndarray], *names: str) -> Forge:
    """Points or shares of all stages."""

    def forge(forgery: Forgery) -> None:
        for stage in range(len(forgery["learned"]["slab"])):
            for name in names:
                forgery[f"learned.slab.{stage}.{name}"] = edit(forgery[f"learned.slab.{stage}.{name}"])

    return forge


def cells(edit: Callable[[np.ndarray], np.ndarray], name: str) -> Forge:
    return change(f"learned.coupled.0.{name}", edit)


def stage_of_itself(forgery: Forgery) -> None:
    """Every stage rests on its own rows, and on those of stages that follow."""
    for stage in range(len(forgery["learned"]["slab"])):
        path = f"learned.slab.{stage}.region.row"
        own = np.array([[8, number, 0] for number in range(8)])
        forgery[path] = np.vstack([forgery[path], own])


def values(low: float, high: float) -> Forge:
    """One number for all states, claimed."""

    def forge(forgery: Forgery) -> None:
        size = len(forgery["values.0.lower"])
        forgery["values.0.lower"], forgery["values.0.upper"] = np.full(size, low), np.full(size, high)
        claim(forgery, low, high)

    return forge


def bases(near: float, narrower: float = 0.5) -> Forge:
    """Vectors that fit narrower bounds, and for all ends of all expressions a basis of the box's faces."""

    def forge(forgery: Forgery) -> None:
        narrow(narrower)(forgery)
        count, size = len(forgery["problem.polynomial"]), forgery[f"{REGION}.point"].shape[1]
        forgery[f"{REGION}.bound_expression"] = np.repeat(np.arange(1, count), 2)
        forgery[f"{REGION}.bound_side"] = np.tile([0, 1], count - 1)
        forgery[f"{REGION}.bound_basis"] = np.tile(2 * np.arange(size), (2 * count - 2, 1))
        forgery[f"{REGION}.bound_near"] = np.full(2 * count - 2, near)

    return forge


ATTACKS = [
    # Costs: an interval is a hint, and every step towards it is proved by one exponent.
    Attack("costs-narrowed", COSTS, costs(1.0, 1.5), "intervals of a reward are hints, not data"),
    Attack("costs-narrowed-a-little", COSTS, costs(0.75, 1.75), "no room to spare at the ends"),
    Attack("costs-without-upper", COSTS, both(lambda f: f.drop("learned.cost_upper"), only_claim(2.5, 4.0)), "one end alone"),
    Attack("costs-nan", COSTS, both(filled("learned.cost_lower", np.nan), only_claim(2.5, 4.0)), "NaN is excluded by nothing"),
    Attack("costs-empty", COSTS, both(filled("learned.cost_lower", 3.0), filled("learned.cost_upper", 0.5), only_claim(2.5, 4.0)), "an empty interval"),
    Attack("costs-more", COSTS, both(change("learned.cost_lower", lambda a: np.append(a, 1.1)), change("learned.cost_upper", lambda a: np.append(a, 1.2)), only_claim(2.5, 4.0)), "a reward of the forger's own"),
    Attack("costs-none", COSTS, both(change("learned.cost_lower", lambda a: a[:0]), change("learned.cost_upper", lambda a: a[:0]), only_claim(2.5, 4.0)), "no reward, nothing to prove"),
    Attack("costs-huge", COSTS, both(filled("learned.cost_lower", 1e308), filled("learned.cost_upper", 1.7e308), only_claim(2.5, 4.0)), "beyond all that can be"),
    Attack("costs-of-probabilities", COSTS, both(filled("learned.lower", 0.54), filled("learned.upper", 0.56), only_claim(2.5, 4.0)), "the other half of δ"),
    Attack("costs-row-beyond", COSTS, both(rows_appended((9, 1, 0), (9, 1, 1)), only_claim(2.5, 4.0)), "a reward that is not there"),
    Attack("costs-row-of-another-part", COSTS, both(rows_appended((9, 0, 2), (9, 0, 3)), only_claim(2.5, 4.0)), "a third side of an interval"),
    Attack("costs-vectors-scaled", COSTS, scaled(1.9), "rewards at which both vectors would be inductive"),
    Attack("costs-vectors-shrunk", COSTS, scaled(0.45), "the same from above"),
    Attack("costs-free-of-charge", COSTS, values(0.0, 0.0), "no cost at all"),
    Attack("costs-claim", COSTS, tight(0.1), "nobody compares claim and vector"),
    # Quotients: what bases prove is divided by the denominator's range.
    Attack("quotient-near-far-away", QUOTIENTS, bases(1e300), "f − c·g with c so large that f drowns"),
    Attack("quotient-near-negative", QUOTIENTS, bases(-5.0), "the sign of what is divided"),
    Attack("quotient-near-inside", QUOTIENTS, bases(0.43, 0.99), "c where the end is required"),
    Attack("quotient-near-tiny", QUOTIENTS, bases(5e-324), "what is left is rounding"),
    Attack("quotient-near-missing", QUOTIENTS, both(bases(0.0), lambda f: f.drop(f"{REGION}.bound_near")), "c = 0 in place of the end"),
    Attack("quotient-near-nan", QUOTIENTS, bases(np.nan), "NaN violates no inequality"),
    Attack("quotient-near-short", QUOTIENTS, both(bases(0.4), change(f"{REGION}.bound_near", lambda a: a[:1])), "an array of length 1 broadcasts"),
    Attack("quotient-sides-exchanged", QUOTIENTS, both(bases(0.4), change(f"{REGION}.bound_side", lambda a: 1 - a)), "upper ends taken for lower ones"),
    Attack("quotient-intervals", QUOTIENTS, both(filled("learned.lower", 0.4), filled("learned.upper", 0.45), tight(0.1)), "intervals of quotients are hints"),
    Attack("quotient-bases-of-choices", QUOTIENTS, both(lambda f: f.__setitem__("values.0.lower_basis", np.zeros(6, dtype=np.int64)), tight(0.1)), "nature's problem over a region in which nothing is affine"),
    Attack("quotient-envelope", QUOTIENTS, both(rows_appended((2, 0, 0), (2, 0, 1)), tight(0.1)), "McCormick of a product that is not there"),
    # Slabs and cells together: rows of stages inside of cells.
    Attack("cells-of-stages-moved", CELLS, both(slab(lambda a: a * 0.5, "point"), tight(0.5)), "tangents elsewhere: other rows than the cells were made for"),
    Attack("cells-of-stages-without-shares", CELLS, both(slab(np.zeros_like, "share"), tight(0.5)), "a mixture of nothing"),
    Attack("cells-of-one-share", CELLS, both(slab(lambda a: (np.arange(a.shape[1]) == 0) * np.ones_like(a), "share"), tight(0.5)), "all on the first scale"),
    Attack("cells-of-a-stage-by-itself", CELLS, both(stage_of_itself, tight(0.5)), "rows that depend on their own bounds"),
    Attack("cells-errors-halved", CELLS, both(cells(lambda a: a * 0.5, "error"), tight(0.5)), "models closer than they are"),
    Attack("cells-errors-negative", CELLS, both(cells(lambda a: -a, "error"), tight(0.5)), "an error below 0"),
    Attack("cells-points-drawn-in", CELLS, both(cells(lambda a: a * 0.5, "point"), tight(0.5)), "hulls that leave out what they should contain"),
    Attack("cells-axes-shrunk", CELLS, both(cells(lambda a: a * 0.5, "axes"), tight(0.5)), "the same by the frame"),
    Attack("cells-one-left-out", CELLS, both(cells(lambda a: a * 0 + a[0], "node"), tight(0.5)), "all proofs about one cell"),
    Attack("cells-none", CELLS, both(lambda f: f["learned"].update(coupled=[]), lambda f: [f.arrays.pop(k) for k in list(f.arrays) if "coupled" in k], tight(0.5)), "no proof, no cells"),
    Attack("cells-multipliers", CELLS, both(cells(lambda a: a * 0 + 1e308, "multiplier"), tight(0.5)), "contradictions that overflow"),
    # Jumps of a chain in continuous time.
    Attack("jumps-sure", JUMPS[:1], values(1.0, 1.0), "all jumps lead there"),
    Attack("jumps-never", JUMPS[:1], values(0.0, 0.0), "no jump leads there"),
    Attack("jumps-claim", JUMPS, shift(0.01, 0.02), "nobody compares claim and vector"),
    Attack("jumps-for-free", JUMPS[1:], values(0.0, 0.0), "no jump costs anything"),
    Attack("jumps-rank", JUMPS[1:], both(change("values.0.lower_ranking", np.zeros_like), change("values.0.upper", lambda a: a * 0.5), only_claim(0.0, 1.0)), "a ranking that does not fall"),
    Attack("follows-at-once", FOLLOWS, values(1.0, 1.0), "the memory counts for nothing"),
    Attack("follows-never", FOLLOWS, values(0.0, 0.0), "U = 0 where it is won"),
    Attack("follows-elsewhere", FOLLOWS, both(entries("values.0.lower", {0: 1.0}), only_claim(0.999, 1.0)), "another product state is the first one"),
]  # fmt: skip
