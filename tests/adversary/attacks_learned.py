"""Attacks on learned certificates and on those over a domain: model, data, δ and method stay honest.

Most of them narrow what is said of the expressions, make the vectors fit it (so that the game itself is in order)
and then tamper with the numbers that should prove it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from adversary.archive import Forgery, archive_bytes
from adversary.attacks_values import Attack, Forge, both, change, claim, entries
from tightrope_check.archive import read
from tightrope_check.learned import Learned
from tightrope_check.numbers import FLOAT64

POLYTOPE = ("walk/polytope/parameter", "walk/polytope/expression", "walk/polytope/rectangular", "spread/polytope/rectangular")  # fmt: skip
TIED = ("walk/events/tied", "walk/anytime/tied", "walk/hoeffding/tied")
EVENTS = (*TIED, *POLYTOPE)
UNTIED = ("walk/events/untied",)
BALLS = ("walk/l1/expression", "walk/l1/rectangular", "spread/l1/rectangular")
ELLIPSOIDS = ("walk/ellipsoid/expression", "walk/ellipsoid/rectangular", "spread/ellipsoid/rectangular")
LIKELY = ("walk/likelihood/parameter", "walk/likelihood/expression", "spread/likelihood/rectangular")
SLABS = ("walk/slab/expression", "spread/slab/rectangular")
REGIONS = (*POLYTOPE, *BALLS, *ELLIPSOIDS, *LIKELY)
DOMAINS = ("domain/expression", "domain/rectangular")
COUPLED = ("spread/polytope/coupled", "spread/likelihood/coupled", "domain/coupled")
STEPPED = ("spread/polytope/steps",)
EVERYTHING = (*TIED, *UNTIED, *REGIONS, *DOMAINS)

ASKED = ("walk/polytope/cost", "walk/likelihood/most-cost", "walk/polytope/discounted", "walk/ellipsoid/late", "walk/polytope/coupled-cost")  # fmt: skip
STEPS = ("walk/l1/cumulative", "walk/polytope/bounded")

REGION = "learned.region"


def narrow(share: float = 0.5) -> Forge:
    """Vectors that fit narrower bounds of the transitions than the honest file proves, and their claim."""
    return lambda forgery: revalue(forgery, share)


def revalue(forgery: Forgery, share: float = 1.0) -> None:
    """Vectors of the claimed policy over the bounds that a file proves, drawn towards their middle."""
    key = forgery.part("problem"), forgery.part("learned"), forgery.part("claims"), share
    if key not in _REVALUED:
        _REVALUED[key] = _vectors(forgery, share)
    initial, vectors = forgery["problem.graph.initial"], _REVALUED[key]
    for side, value in vectors.items():
        forgery[f"values.0.{side}"] = value.copy()
        if f"values.0.{side}_basis" in forgery:
            forgery[f"values.0.{side}_basis"] = np.full(
                len(forgery["problem.graph.transition_start"]) - 1, -1
            )
    claim(forgery, float(vectors["lower"][initial]), float(vectors["upper"][initial]))


_REVALUED: dict[object, dict[str, np.ndarray]] = {}


def proved_bounds(forgery: Forgery) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of every transition that the file proves, as the checker derives them."""
    link = Learned(read(archive_bytes(forgery.members())).certificate, FLOAT64)
    assert all(one.passed for one in link.checks())
    label = np.arange(len(link.expression)) if link.is_untied else link.expression
    return link.projection.lower[label], link.projection.upper[label]


def _vectors(forgery: Forgery, share: float) -> dict[str, np.ndarray]:
    start, transition_start = (
        forgery[f"problem.graph.{name}"] for name in ("choice_start", "transition_start")
    )
    successor, target = forgery["problem.graph.successor"], forgery["problem.objective.target"]
    low, high = proved_bounds(forgery)
    middle, half = (low + high) / 2, (high - low) / 2 * share
    low, high = middle - half, middle + half
    chosen, states, found = forgery["claims.0.choice"], len(start) - 1, {}
    given = list(zip(successor.tolist(), low.tolist(), high.tolist(), strict=True))
    rows = [given[transition_start[c] : transition_start[c + 1]] for c in chosen[:states]]
    for side, order in (("lower", 1), ("upper", -1)):
        backed = target.astype(np.float64).tolist()
        for _ in range(3000):
            last, backed = backed, list(backed)
            for s in (s for s in range(states) if not target[s]):
                row = sorted(rows[s], key=lambda entry: order * last[entry[0]])
                left, backed[s] = 1 - sum(least for _, least, _ in row), 0.0
                for t, least, most in row:
                    extra = min(left, most - least)
                    left -= extra
                    backed[s] += (least + extra) * last[t]
            if max(abs(a - b) for a, b in zip(backed, last, strict=True)) < 1e-13:
                break
        value = np.array(last)
        value[(value > 0) & ~target] -= order * 1e-9
        found[side] = value
    return found


def narrowed(*more: Forge, share: float = 0.5) -> Forge:
    return both(narrow(share), *more)


def squeezed(path: str, share: float = 0.5) -> Forge:
    """`path`.lower and `path`.upper meet halfway."""

    def forge(forgery: Forgery) -> None:
        low, high = forgery[f"{path}.lower"], forgery[f"{path}.upper"]
        middle, half = (low + high) / 2, (high - low) / 2 * share
        forgery[f"{path}.lower"], forgery[f"{path}.upper"] = middle - half, middle + half

    return forge


def filled(path: str, value: float) -> Forge:
    return change(path, lambda a: np.full_like(a, value))


def tight(share: float = 0.1) -> Forge:
    """The last claim alone, around its middle."""

    def forge(forgery: Forgery) -> None:
        last = len(forgery["claims"]) - 1
        low, high = forgery[f"claims.{last}.lower"], forgery[f"claims.{last}.upper"]
        middle, half = (low + high) / 2, (high - low) / 2 * share
        forgery[f"claims.{last}.lower"], forgery[f"claims.{last}.upper"] = middle - half, middle + half

    return forge


def rows_appended(*rows: tuple[int, int, int]) -> Forge:
    """More named rows, and every basis made of them where they are as many as the coordinates."""

    def forge(forgery: Forgery) -> None:
        old = forgery[f"{REGION}.row"]
        forgery[f"{REGION}.row"] = np.vstack([old, np.array(rows, dtype=np.int64).reshape(-1, 3)])
        size = forgery[f"{REGION}.point"].shape[1]
        first = 2 * size + len(old)
        for name in ("bound_basis", "box_basis", "choice_basis"):
            basis = forgery[f"{REGION}.{name}"]
            forgery[f"{REGION}.{name}"] = np.full_like(basis, 0) + first + np.arange(size) % len(rows)

    return forge


def all_bases(edit: Callable[[np.ndarray], np.ndarray]) -> Forge:
    return both(*(change(f"{REGION}.{name}", edit) for name in ("bound_basis", "box_basis", "choice_basis")))


def odd_point(value: float) -> Forge:
    """All tangents at one odd point, named by all rows."""

    def forge(forgery: Forgery) -> None:
        forgery[f"{REGION}.point"] = np.full_like(forgery[f"{REGION}.point"], value)

    return forge


def other_policy(forgery: Forgery) -> None:
    """The vectors of the robust policy for another one."""
    start = forgery["problem.graph.choice_start"]
    chosen = forgery["claims.0.choice"].copy()
    for s in range(len(start) - 1):
        if start[s + 1] - start[s] > 1:
            chosen[s] = start[s] + start[s + 1] - 1 - chosen[s]
    forgery["claims.0.choice"] = chosen


def with_field(path: str, value: object) -> Forge:
    def forge(forgery: Forgery) -> None:
        forgery[path] = value

    return forge


ATTACKS = [
    # From counts to intervals of events.
    Attack("bounds-narrowed", EVERYTHING, narrowed(), "bounds that nothing proves"),
    Attack("bounds-narrowed-a-little", ("walk/events/tied", "walk/anytime/tied", "walk/hoeffding/tied", "walk/polytope/expression", "walk/l1/expression", "walk/ellipsoid/expression"), narrowed(share=0.99), "tolerance where there should be none"),
    Attack("events-narrowed", EVENTS, narrowed(squeezed("learned")), "event intervals are hints, not data"),
    Attack("events-narrowed-a-little", (*TIED, "walk/polytope/expression"), narrowed(squeezed("learned", 0.999), share=0.999), "the tails are compared with room to spare"),
    Attack("events-swapped", ("spread/polytope/rectangular",), narrowed(change("learned.lower", lambda a: a[::-1].copy()), change("learned.upper", lambda a: a[::-1].copy())), "intervals of other events"),
    Attack("events-nan", EVENTS, narrowed(filled("learned.lower", np.nan)), "NaN violates no inequality"),
    Attack("events-empty", EVENTS, narrowed(filled("learned.lower", 0.9), filled("learned.upper", 0.1)), "an empty interval proves everything"),
    Attack("events-fewer", EVENTS, narrowed(change("learned.lower", lambda a: a[:-1]), change("learned.upper", lambda a: a[:-1])), "fewer events, a larger share of δ for each"),
    Attack("events-more", EVENTS, narrowed(change("learned.lower", lambda a: np.append(a, 1.0)), change("learned.upper", lambda a: np.append(a, 1.0))), "an event of the forger's own: 1 − p with multiplicity −1 gave p ≥ 1"),
    Attack("events-missing", EVENTS, narrowed(lambda f: (f.drop("learned.lower"), f.drop("learned.upper"))), "no intervals, nothing to check"),
    Attack("events-for-a-region-without", (*BALLS, *ELLIPSOIDS, *LIKELY), narrowed(with_field("learned.lower", np.full(8, 0.5)), with_field("learned.upper", np.full(8, 0.5))), "intervals that nobody derives"),
    Attack("event-row-beyond", POLYTOPE, narrowed(rows_appended((1, 40, 0), (1, 40, 1))), "an event that is not there"),
    Attack("untied-narrowed", UNTIED, narrowed(squeezed("learned", 0.9), share=0.9), "each transition's own counts"),
    Attack("untied-pooled", UNTIED, narrowed(change("learned.lower", lambda a: np.maximum(a, 0.4)), share=0.8), "counts of all choices pooled: not what untied says"),
    # The region's rows, boxes and bases.
    Attack("box-narrowed", REGIONS, narrowed(lambda f: _small_box(f)), "the box is derived, and may only be made wider"),
    Attack("box-stage-added", REGIONS, narrowed(lambda f: _stage(f, lambda a: a * 0)), "one stage more, by a basis that proves nothing"),
    Attack("box-turned-over", REGIONS, narrowed(lambda f: _stage(f, lambda a: a[::-1])), "lower above upper: an empty box proves everything"),
    Attack("box-stage-beyond", REGIONS, narrowed(lambda f: _stage(f, lambda a: a + 10_000)), "a stage by rows that are not there"),
    Attack("box-stage-half", REGIONS, narrowed(lambda f: _stage(f, lambda a: a[1:])), "a stage that is not whole shifts all others"),
    Attack("rows-of-no-origin", REGIONS, narrowed(rows_appended((88, 0, 0), (99, 0, 0))), "an origin that nobody knows"),
    Attack("rows-in-a-circle", REGIONS, narrowed(rows_appended(*((5, e, part) for e in range(1, 4) for part in (0, 1)))), "EXPRESSION rows depend on the bounds that they should prove"),
    Attack("rows-of-a-split", REGIONS, narrowed(rows_appended((7, 0, 0), (7, 0, 1))), "half-spaces of cells outside of any cell"),
    Attack("rows-of-another-region", REGIONS, narrowed(rows_appended((3, 0, 0), (4, 0, 1), (6, 0, 0))), "cuts, balls and tangents where there are none"),
    Attack("rows-of-a-product-not-there", REGIONS, narrowed(rows_appended((2, 7, 0), (2, 7, 3))), "McCormick of no product"),
    Attack("rows-square-of-two", ("spread/polytope/rectangular",), narrowed(rows_appended((2, 0, 4))), "the middle tangent of a product that is not a square"),
    Attack("rows-domain-beyond", REGIONS, narrowed(rows_appended((0, 50, 0), (0, 50, 1))), "faces that the domain does not have"),
    Attack("rows-domain-other-side", ("spread/polytope/rectangular", "spread/l1/rectangular"), narrowed(rows_appended((0, 3, 1), (0, 2, 2))), "the other side of an inequality"),
    Attack("rows-ball-of-everything", BALLS, narrowed(rows_appended((4, 0, 3), (4, 0, 7))), "the set of all outcomes has probability 1"),
    Attack("rows-ball-of-nothing", BALLS, narrowed(rows_appended((4, 0, 0))), "the empty set is never above its share"),
    Attack("rows-ball-negative", BALLS, narrowed(rows_appended((4, -1, 1))), "negative choices count from the end"),
    Attack("rows-negative", REGIONS, narrowed(rows_appended((0, -1, 0), (1, -1, 1))), "negative numbers count from the end"),
    Attack("rows-huge", REGIONS, narrowed(rows_appended((0, 2**62 - 1, 0), (4, 2**62 - 1, 2**62 - 1))), "2·index wraps around"),
    Attack("rows-none", REGIONS, narrowed(change(f"{REGION}.row", lambda a: a[:0])), "bases that point past the end"),
    Attack("rows-flat", REGIONS, narrowed(change(f"{REGION}.row", lambda a: a.reshape(-1))), "a list of numbers instead of names"),
    Attack("bases-beyond", REGIONS, narrowed(all_bases(lambda a: a + 1000)), "rows that are not there"),
    Attack("bases-one-row", REGIONS, narrowed(all_bases(np.zeros_like)), "one row many times: no basis"),
    Attack("bases-negative", REGIONS, narrowed(all_bases(lambda a: a * 0 - 1)), "negative numbers count from the end"),
    Attack("bases-reversed", REGIONS, narrowed(all_bases(lambda a: a[::-1].copy())), "bases of other bounds"),
    Attack("bases-empty", REGIONS, narrowed(all_bases(lambda a: a[:0])), "no bases, no bounds to miss"),
    Attack("bounds-of-no-expression", REGIONS, narrowed(filled(f"{REGION}.bound_expression", 99)), "an expression that is not there"),
    Attack("bounds-other-side", REGIONS, narrowed(change(f"{REGION}.bound_side", lambda a: 1 - a)), "upper bounds taken for lower ones"),
    Attack("bounds-side-two", REGIONS, narrowed(filled(f"{REGION}.bound_side", 2)), "a side that is neither"),
    Attack("region-missing", REGIONS, narrowed(lambda f: _no_region(f)), "no region, nothing to prove"),
    # Points of tangents.
    Attack("cut-overflow", LIKELY, narrowed(odd_point(1e-310)), "a seen outcome with next to no probability: K/f overflows"),
    Attack("cut-underflow", LIKELY, narrowed(odd_point(5e-324)), "the smallest number there is"),
    Attack("cut-outside", LIKELY, narrowed(odd_point(5.0)), "a point where 1 − p is negative"),
    Attack("cut-huge", LIKELY, narrowed(odd_point(1e308)), "overflow in the tangent"),
    Attack("cut-nan", LIKELY, narrowed(odd_point(np.nan)), "NaN violates no inequality"),
    Attack("cut-at-the-edge", LIKELY, narrowed(odd_point(1.0)), "1 − p = 0 where 1 − p was seen"),
    Attack("direction-zero", ELLIPSOIDS, narrowed(odd_point(0.0)), "0 ≤ β·0"),
    Attack("direction-huge", ELLIPSOIDS, narrowed(odd_point(1e308)), "overflow in the norm"),
    Attack("direction-tiny", ELLIPSOIDS, narrowed(odd_point(5e-324)), "underflow in the norm: a tangent through the centre"),
    Attack("direction-small", ELLIPSOIDS, narrowed(odd_point(1e-200)), "a norm whose square underflows"),
    Attack("direction-infinite", ELLIPSOIDS, narrowed(odd_point(np.inf)), "∞ − ∞"),
    # Guarantees and their policies.
    Attack("claim-beside-vectors", EVERYTHING, tight(), "nobody compares claim and vector"),
    Attack("policy-exchanged", ("walk/events/tied", "walk/polytope/rectangular", "walk/likelihood/expression"), other_policy, "another policy under the vectors of the robust one"),
    Attack("policy-negative", EVERYTHING, both(entries("claims.0.choice", {0: -1}), tight()), "negative choices count from the end"),
    Attack("policy-of-another-state", EVERYTHING, both(entries("claims.0.choice", {0: 3}), tight()), "the initial state takes another state's choice"),
    Attack("free-policy", EVERYTHING, both(tight(), with_field("claims.0.policy", "free"), lambda f: f.drop("claims.0.choice")), "the best policy instead of the one that was checked"),
    Attack("choice-basis-beyond", ("spread/polytope/rectangular", "spread/likelihood/rectangular"), both(change("values.0.lower_basis", lambda a: a * 0 + 77), tight()), "a basis that is not there"),
    Attack("choice-basis-elsewhere", ("spread/polytope/rectangular", "spread/likelihood/rectangular"), both(change("values.0.lower_basis", lambda a: a * 0), change("values.0.upper_basis", lambda a: a * 0), tight()), "one basis for all choices"),
    Attack("choice-basis-below", ("spread/polytope/rectangular",), both(change("values.0.lower_basis", lambda a: a * 0 - 2), tight()), "−2 counts from the end"),
    Attack("name-exchanged", ("walk/events/tied",), both(tight(), with_field("claims.0.name", "value")), "a learned bound sold as the value"),
    Attack("vectors-nan", EVERYTHING, both(filled("values.0.lower", np.nan), filled("values.0.upper", np.nan), tight()), "NaN violates no inequality"),
    Attack("lower-infinite", EVERYTHING, both(filled("values.0.lower", np.inf), tight()), "∞ ≤ p·∞"),
    # Rewards, discounts, steps.
    Attack("asked-claim", (*ASKED, *STEPS), tight(), "the claim is compared with vectors or steps"),
    Attack("asked-lifted", ASKED, both(lambda f: _shifted(f, "lower", 0.25), tight()), "lower vectors that are not inductive"),
    Attack("asked-lowered", ASKED, both(lambda f: _shifted(f, "upper", -0.25), tight()), "upper vectors that are not inductive"),
    Attack("asked-infinite", ("walk/polytope/cost", "walk/likelihood/most-cost"), both(filled("values.0.lower", np.inf), lambda f: claim(f, np.inf, np.inf)), "all plays miss the target"),
    Attack("asked-vectors-for-steps", STEPS, both(with_field("values.0.lower", np.full(5, 0.4)), with_field("values.0.upper", np.full(5, 0.5)), tight()), "vectors where steps are made"),
    # What the file may not say at all.
    Attack("a-share-of-its-own", EVERYTHING, narrowed(with_field("learned.gamma", 0.5)), "γ is derived, never read"),
    Attack("coordinates-of-its-own", REGIONS, narrowed(with_field("learned.free", [0, 1, -1])), "coordinates are derived, never read"),
    Attack("words-of-its-own", EVERYTHING, narrowed(with_field("learned.assumption", "none")), "assumptions are derived, never read"),
    Attack("pilot-of-its-own", LIKELY, narrowed(with_field("learned.pilot", 0)), "the pilot is derived, never read"),
    Attack("plug-ins-of-its-own", LIKELY, narrowed(with_field("learned.plug_in", np.full((9, 1), 0.55))), "plug-ins chosen in hindsight"),
    # Slabs: bets are derived, and rows rest on rows of earlier stages.
    Attack("slab-bounds", SLABS, narrowed(), "bounds that nothing proves"),
    Attack("slab-claim", SLABS, tight(), "nobody compares claim and vector"),
    Attack("slab-bets-of-its-own", SLABS[:1], narrowed(with_field("learned.stake", np.full((9, 8), 0.1))), "bets chosen in hindsight"),
    Attack("slab-gradient-of-its-own", SLABS[:1], narrowed(with_field("learned.gradient", np.ones(3))), "a direction chosen in hindsight"),
    Attack("slab-schedule-of-its-own", SLABS[:1], narrowed(with_field("learned.placed", [0, 1, 2])), "bets on batches that they follow from"),
    Attack("slab-levels-of-its-own", SLABS[:1], narrowed(with_field("learned.guard", 0.01)), "how δ is split is derived, never read"),
    Attack("slab-row-of-its-own-stage", SLABS, narrowed(lambda f: _slab_rows(f, (8, 0, 0))), "a row that depends on itself"),
    Attack("slab-row-of-a-later-stage", SLABS[:1], narrowed(lambda f: _slab_rows(f, (8, 1, 0))), "rows in a circle"),
    Attack("slab-row-beyond", SLABS[:1], narrowed(rows_appended((8, 9, 0), (8, 9, 0))), "a stage that is not there"),
    Attack("slab-row-more", SLABS[:1], narrowed(rows_appended((8, 0, 63), (8, 0, 64))), "a row that its stage does not have"),
    Attack("slab-row-other-side", SLABS[:1], narrowed(filled("learned.slab.0.side", 1)), "a side that nobody bets on"),
    Attack("slab-row-side-negative", SLABS[:1], narrowed(filled("learned.slab.0.side", -1)), "sides count from the end"),
    Attack("slab-rows-too-many", SLABS[:1], narrowed(lambda f: _more_rows(f)), "rows beyond count"),
    Attack("slab-evidence-negative", SLABS, narrowed(filled("learned.slab.0.guard", -1.0)), "the guard's evidence turned round: ℓ ≤ T"),
    Attack("slab-evidence-nan", SLABS[:1], narrowed(filled("learned.slab.0.guard", np.nan)), "NaN times the evidence"),
    Attack("slab-evidence-infinite", SLABS[:1], narrowed(filled("learned.slab.0.guard", np.inf)), "∞ − ∞ on both sides"),
    Attack("slab-evidence-huge", SLABS[:1], narrowed(filled("learned.slab.0.guard", 1e308)), "overflow in what is paid"),
    Attack("slab-evidence-most", SLABS[:1], narrowed(filled("learned.slab.0.guard", 2.0**20)), "all evidence and no bet"),
    Attack("slab-evidence-subnormal", SLABS[:1], narrowed(filled("learned.slab.0.guard", 5e-324)), "evidence that underflows, and its price with it"),
    Attack("slab-evidence-none", SLABS[:1], narrowed(lambda f: f.arrays.pop("learned.slab.0.guard")), "tangents without what makes them valid"),
    Attack("slab-evidence-of-more", SLABS[:1], narrowed(change("learned.slab.0.guard", lambda a: np.append(a, 1.0))), "evidence of a row that is not there"),
    Attack("slab-row-negative", SLABS[:1], narrowed(rows_appended((8, -1, 0), (8, 0, -1))), "negative numbers count from the end"),
    Attack("slab-stages-missing", SLABS[:1], narrowed(lambda f: _no_stages(f)), "rows of stages that are not there"),
    Attack("slab-share-none", SLABS[:1], narrowed(change("learned.slab.0.share", np.zeros_like)), "0/0 of the bets"),
    Attack("slab-share-negative", SLABS[:1], narrowed(change("learned.slab.0.share", lambda a: -a)), "the worse the bets, the better the row"),
    Attack("slab-share-of-more", SLABS[:1], narrowed(change("learned.slab.0.share", lambda a: np.hstack([a, a]))), "a scale that has no weight"),
    Attack("slab-point-outside", SLABS[:1], narrowed(change("learned.slab.0.point", lambda a: a + 50)), "tangents where nothing is"),
    Attack("slab-point-zero", SLABS[:1], narrowed(filled("learned.slab.0.point", 0.0)), "log(1 + a/0)"),
    Attack("slab-point-nan", SLABS[:1], narrowed(filled("learned.slab.0.point", np.nan)), "NaN violates no inequality"),
    Attack("slab-point-huge", SLABS[:1], narrowed(filled("learned.slab.0.point", 1e308)), "overflow in the tangent"),
    Attack("slab-bases-other-side", SLABS, narrowed(change("learned.slab.0.region.bound_side", lambda a: 1 - a)), "upper bounds taken for lower ones"),
    Attack("slab-bases-one-row", SLABS[:1], narrowed(change("learned.slab.0.region.bound_basis", np.zeros_like)), "one row many times: no basis"),
    Attack("slab-bases-beyond", SLABS[:1], narrowed(change("learned.slab.0.region.bound_basis", lambda a: a + 1000)), "rows that are not there"),
    Attack("slab-stages-elsewhere", LIKELY[:1], narrowed(lambda f: f["learned"].update(slab=[{"region": None}])), "a slab where nobody bets"),
    # Cells.
    Attack("coupled-claim", COUPLED, tight(), "the interval is read from cells, not from the claim"),
    Attack("coupled-cell-missing", COUPLED, lambda f: _cells(f, lambda c, k: _without_cell(f, c, k)), "a cell that nobody looked at"),
    Attack("coupled-no-cells", COUPLED, both(tight(), lambda f: _no_cells(f)), "no cells, no contradiction"),
    Attack("coupled-cell-twice", COUPLED, both(tight(), lambda f: _edit(f, "node", lambda a: np.full_like(a, a[0]))), "one cell many times instead of all of them"),
    Attack("coupled-node-beyond", COUPLED, both(tight(), lambda f: _edit(f, "node", lambda a: a + 1000)), "cells that are not there"),
    Attack("coupled-errors-zero", COUPLED, both(tight(), lambda f: _edit(f, "error", np.zeros_like)), "models without an error"),
    Attack("coupled-errors-negative", COUPLED, both(tight(), lambda f: _edit(f, "error", lambda a: -abs(a) - 1.0)), "errors below 0 shrink what they should widen"),
    Attack("coupled-models-shifted", COUPLED, both(tight(), lambda f: _edit(f, "value", lambda a: a + 0.02)), "W moved, V did not"),
    Attack("coupled-models-flat", COUPLED, both(tight(), lambda f: _edit(f, "slope", np.zeros_like)), "a constant value"),
    Attack("coupled-models-huge", COUPLED, both(tight(), lambda f: _edit(f, "curve", lambda a: a + 1e300)), "overflow into ∞ − ∞"),
    Attack("coupled-points-shrunk", COUPLED, both(tight(), lambda f: _edit(f, "point", lambda a: a * 0.1)), "points whose hull is not the cell"),
    Attack("coupled-points-one", COUPLED, both(tight(), lambda f: _edit(f, "point", np.zeros_like)), "the centre stands for the cell"),
    Attack("coupled-axes-zero", COUPLED, both(tight(), lambda f: _edit(f, "axes", np.zeros_like)), "a frame without extent"),
    Attack("coupled-axes-tiny", COUPLED, both(tight(), lambda f: _edit(f, "axes", lambda a: a * 1e-12)), "a frame so small that nothing curves"),
    Attack("coupled-centre-moved", COUPLED, both(tight(), lambda f: _edit(f, "centre", lambda a: a + 0.3)), "another place with the same shape"),
    Attack("coupled-simplices-one", COUPLED, both(tight(), lambda f: _edit(f, "simplex", lambda a: np.broadcast_to(a[:1], a.shape).copy())), "one cone many times does not cover all directions"),
    Attack("coupled-simplices-beyond", COUPLED, both(tight(), lambda f: _edit(f, "simplex", lambda a: a + 500)), "rows that are not there"),
    Attack("coupled-cells-empty", COUPLED, both(tight(), lambda f: _emptied(f, 1.0)), "a cell without points is empty if its rows contradict each other"),
    Attack("coupled-cells-empty-huge", COUPLED, both(tight(), lambda f: _emptied(f, 1e308)), "multipliers that overflow"),
    Attack("coupled-cells-empty-rows", COUPLED, both(tight(), lambda f: (_emptied(f, 1.0), _without_rows(f))), "no rows: only a box that contradicts itself is empty then"),
    Attack("coupled-cells-empty-nan", COUPLED, both(tight(), lambda f: _emptied(f, np.nan)), "NaN violates no inequality"),
    Attack("coupled-split-zero", COUPLED, both(tight(), lambda f: _edit(f, "split_direction", np.zeros_like)), "0·x ≤ value leaves one side empty"),
    Attack("coupled-split-moved", COUPLED, both(tight(), lambda f: _edit(f, "split_value", lambda a: a + 5.0)), "all of the region on one side"),
    Attack("coupled-split-itself", COUPLED, both(tight(), lambda f: _edit(f, "split_node", lambda a: np.arange(len(a)) * 2 + 1)), "a cell that is its own part"),
    Attack("coupled-splits-alike", COUPLED, both(tight(), lambda f: _edit(f, "split_node", np.zeros_like)), "the region is split again and again, its parts never"),
    Attack("coupled-states-unsorted", COUPLED, both(tight(), lambda f: _edit(f, "state", lambda a: a[::-1].copy())), "numbers of open states that fall"),
    Attack("coupled-states-unsigned", COUPLED, both(tight(), lambda f: _edit(f, "state", lambda a: a[::-1].astype(np.uint8))), "differences of unsigned numbers are never negative"),
    Attack("coupled-states-fewer", COUPLED, both(tight(), lambda f: _fewer_states(f)), "an open state counts as decided"),
    Attack("coupled-states-none", COUPLED, both(tight(), lambda f: _fewer_states(f, 0)), "everything is decided"),
    Attack("coupled-dual-zero", COUPLED, both(tight(), lambda f: _edit(f, "dual", np.zeros_like)), "nobody is ever anywhere"),
    Attack("coupled-dual-negative", COUPLED, both(tight(), lambda f: _edit(f, "dual", lambda a: -a)), "visits below 0"),
    Attack("coupled-dual-huge", COUPLED, both(tight(), lambda f: _edit(f, "dual", lambda a: a * 1e300)), "overflow into ∞ − ∞"),
    Attack("coupled-other-claim", COUPLED, both(tight(), lambda f: _set(f, "claim", 3)), "cells of a claim that is not there"),
    Attack("coupled-twice", COUPLED, both(tight(), lambda f: _twice(f)), "two proofs, one set of arrays"),
    Attack("coupled-steps-claim", STEPPED, tight(), "the interval is read from cells, not from the claim"),
    Attack("coupled-steps-overflow", STEPPED, both(tight(), lambda f: _edit(f, "axes", lambda a: a * 1e300)), "frames so large that the steps overflow: ∞ − ∞ is not a number, and no bound"),
    Attack("coupled-steps-axes-zero", STEPPED, both(tight(), lambda f: _edit(f, "axes", np.zeros_like)), "a frame without extent"),
    Attack("coupled-steps-points-shrunk", STEPPED, both(tight(), lambda f: _edit(f, "point", lambda a: a * 0.1)), "points whose hull is not the cell"),
    Attack("coupled-steps-cell-missing", STEPPED, lambda f: _cells(f, lambda c, k: _without_cell(f, c, k)), "a cell that nobody looked at"),
    Attack("coupled-steps-cells-empty", STEPPED, both(tight(), lambda f: _emptied(f, 1.0)), "cells that are not empty"),
    Attack("coupled-steps-dual", STEPPED, both(tight(), lambda f: (_edit(f, "lower_dual", lambda a: a * 0), _edit(f, "dual", lambda a: np.zeros((1, a.shape[1]))))), "an occupancy where steps are made"),
    Attack("coupled-steps-other-claim", STEPPED, both(tight(), lambda f: _set(f, "claim", 0)), "cells of the policy that depends on the step"),
    Attack("coupled-steps-models", STEPPED, both(tight(), lambda f: _models(f)), "models where steps are made"),
    Attack("coupled-rows-foreign", COUPLED, both(tight(), lambda f: _edit(f, "row", lambda a: np.tile(np.array([[7, 0, 0]]), (len(a), 1)))), "half-spaces of another cell"),
    Attack("coupled-rows-circle", COUPLED, both(tight(), lambda f: _edit(f, "row", lambda a: np.tile(np.array([[5, 1, 0]]), (len(a), 1)))), "rows that depend on what is to be proved"),
]  # fmt: skip


def _shifted(forgery: Forgery, side: str, share: float) -> None:
    """The vector of a bound moved towards the other one."""
    width = forgery["values.0.upper"] - forgery["values.0.lower"]
    forgery[f"values.0.{side}"] = forgery[f"values.0.{side}"] + share * width


def _stage(forgery: Forgery, edit: Callable[[np.ndarray], np.ndarray]) -> None:
    """One more stage of the box, by the bases of the last one, or by its own faces, as changed."""
    basis = forgery[f"{REGION}.box_basis"]
    size = basis.shape[1]
    last = basis[-2 * size :] if len(basis) else np.tile(np.arange(2 * size)[:, None], (1, size))
    forgery[f"{REGION}.box_basis"] = np.concatenate([basis, edit(last)])


def _small_box(forgery: Forgery) -> None:
    size = forgery[f"{REGION}.point"].shape[1]
    forgery[f"{REGION}.box_lower"] = forgery[f"{REGION}.box_upper"] = np.full(size, 0.5)


def _models(forgery: Forgery) -> None:
    path = "learned.coupled.0"
    cells, size = len(forgery[f"{path}.node"]), forgery[f"{path}.point"].shape[1]
    opened = len(forgery[f"{path}.state"])
    middle = (forgery["claims.1.lower"] + forgery["claims.1.upper"]) / 2
    forgery[f"{path}.value"] = np.full((cells, opened), middle)
    forgery[f"{path}.slope"] = np.zeros((cells, opened, size))
    forgery[f"{path}.curve"] = np.zeros((cells, opened, size * (size + 1) // 2))
    forgery[f"{path}.error"] = np.full((cells, opened), 1e-9)


def _more_rows(forgery: Forgery) -> None:
    for name in ("point", "share", "side", "guard"):
        held = forgery[f"learned.slab.0.{name}"]
        forgery[f"learned.slab.0.{name}"] = np.concatenate([held] * 65)


def _slab_rows(forgery: Forgery, name: tuple[int, int, int]) -> None:
    """All rows of the first stage, and what they prove, from one name."""
    path = "learned.slab.0.region.row"
    forgery[path] = np.tile(np.array([name], dtype=np.int64), (max(len(forgery[path]), 1), 1))


def _no_stages(forgery: Forgery) -> None:
    for path in [path for path in forgery.arrays if path.startswith("learned.slab.")]:
        del forgery.arrays[path]
    forgery["learned"]["slab"] = []


def _no_region(forgery: Forgery) -> None:
    for path in [path for path in forgery.arrays if path.startswith(f"{REGION}.")]:
        del forgery.arrays[path]
    forgery["learned"]["region"] = None


def _proofs(forgery: Forgery) -> int:
    return len(forgery["learned.coupled"])


def _edit(forgery: Forgery, name: str, edit: Callable[[np.ndarray], np.ndarray]) -> None:
    for number in range(_proofs(forgery)):
        path = f"learned.coupled.{number}.{name}"
        forgery[path] = edit(forgery[path].copy())


def _set(forgery: Forgery, name: str, value: object) -> None:
    for number in range(_proofs(forgery)):
        forgery[f"learned.coupled.{number}.{name}"] = value


def _cells(forgery: Forgery, edit: Callable[[str, int], None]) -> None:
    """Once for every proof, with the cell in the middle; the claim then is what the others say."""
    for number in range(_proofs(forgery)):
        path = f"learned.coupled.{number}"
        edit(path, len(forgery[f"{path}.node"]) // 2)
    tight()(forgery)


def _without_cell(forgery: Forgery, path: str, cell: int) -> None:
    rows, points = (forgery[f"{path}.{name}_start"] for name in ("row", "point"))
    spans = {"row": rows, "multiplier": rows, "point": points, "simplex": points}
    for name, start in spans.items():
        array = forgery[f"{path}.{name}"]
        forgery[f"{path}.{name}"] = np.concatenate([array[: start[cell]], array[start[cell + 1] :]])
    for name, start in (("row_start", rows), ("point_start", points)):
        size = np.delete(np.diff(start), cell)
        forgery[f"{path}.{name}"] = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    held = len(forgery[f"{path}.value"])
    for name in ("node", "lower_dual", "upper_dual", "centre", "axes", "value", "slope", "curve", "error"):
        if held or name not in ("value", "slope", "curve", "error"):
            forgery[f"{path}.{name}"] = np.delete(forgery[f"{path}.{name}"], cell, axis=0)


def _no_cells(forgery: Forgery) -> None:
    for number in range(_proofs(forgery)):
        path = f"learned.coupled.{number}"
        while len(forgery[f"{path}.node"]):
            _without_cell(forgery, path, 0)


def _twice(forgery: Forgery) -> None:
    last = len(forgery["learned.coupled"])
    forgery["learned.coupled"].append(dict(forgery["learned.coupled"][0]))
    for path in [path for path in forgery.arrays if path.startswith("learned.coupled.0.")]:
        forgery.arrays[path.replace(".0.", f".{last}.", 1)] = forgery.arrays[path]


def _emptied(forgery: Forgery, weight: float) -> None:
    """No cell has points; rows contradict each other with these weights."""
    for number in range(_proofs(forgery)):
        path = f"learned.coupled.{number}"
        forgery[f"{path}.point_start"] = forgery[f"{path}.point_start"] * 0
        for name in ("point", "simplex"):
            forgery[f"{path}.{name}"] = forgery[f"{path}.{name}"][:0]
        forgery[f"{path}.multiplier"] = np.full_like(forgery[f"{path}.multiplier"], weight)


def _without_rows(forgery: Forgery) -> None:
    for number in range(_proofs(forgery)):
        path = f"learned.coupled.{number}"
        forgery[f"{path}.row_start"] = forgery[f"{path}.row_start"] * 0
        for name in ("row", "multiplier"):
            forgery[f"{path}.{name}"] = forgery[f"{path}.{name}"][:0]


def _fewer_states(forgery: Forgery, kept: int = -1) -> None:
    for number in range(_proofs(forgery)):
        path = f"learned.coupled.{number}"
        forgery[f"{path}.state"] = forgery[f"{path}.state"][:kept]
        forgery[f"{path}.dual"] = forgery[f"{path}.dual"][:, :kept]
        for name in ("value", "slope", "curve", "error"):
            forgery[f"{path}.{name}"] = forgery[f"{path}.{name}"][:, :kept]
