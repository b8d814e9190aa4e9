"""Attacks on certificates of long-run averages and of temporal formulas.

Problem and question stay honest. In the loop of 1 and 5 the best average of the game is earned, the sinks 3
and 4 earn theirs; for the temporal questions that loop is won, or 3 is.
"""

from __future__ import annotations

import numpy as np

from adversary.archive import Forgery
from adversary.attacks_values import Attack, Forge, both, change, claim, entries, only_claim, ranked, shift

AVERAGES = ("point/average", "interval/average", "point/least-average", "interval/least-average")
SHARES = ("point/share", "interval/share")
BEST = ("point/average", "interval/average")
TEMPORAL = ("point/temporal", "interval/temporal")
RARELY = ("point/rarely", "interval/rarely")
SETTLES = ("point/settles", "interval/settles")
REMEMBERED = ("remembered/tied", "remembered/rectangular")


def gains(side: str, value: float, bias: float | None = None) -> Forge:
    """One gain for all states, claimed; the bias stays or becomes one number."""

    def forge(forgery: Forgery) -> None:
        forgery[f"values.0.{side}"] = np.full(6, value)
        if bias is not None:
            forgery[f"values.0.{side}_bias"] = np.full(6, bias)
        low, high = float(forgery["claims.0.lower"]), float(forgery["claims.0.upper"])
        claim(forgery, *((value, max(high, value)) if side == "lower" else (min(low, value), value)))

    return forge


def moved(side: str, by: float) -> Forge:
    """The gain moves everywhere, and the claim with it."""

    def forge(forgery: Forgery) -> None:
        forgery[f"values.0.{side}"] = forgery[f"values.0.{side}"] + by
        low, high = float(forgery["claims.0.lower"]), float(forgery["claims.0.upper"])
        claim(forgery, *((low + by, high + by)))

    return forge


def swapped_sides(forgery: Forgery) -> None:
    for name in ("", "_bias"):
        low, high = forgery[f"values.0.lower{name}"], forgery[f"values.0.upper{name}"]
        forgery[f"values.0.lower{name}"], forgery[f"values.0.upper{name}"] = high + 0.1, low - 0.1
    claim(forgery, float(forgery["claims.0.upper"]) + 0.1, float(forgery["claims.0.upper"]) + 0.2)


def steep(side: str, value: float, slope: float) -> Forge:
    """A bias so steep that the second inequality drowns in rounding."""

    def forge(forgery: Forgery) -> None:
        gains(side, value)(forgery)
        forgery[f"values.0.{side}_bias"] = slope * np.arange(6.0)

    return forge


def product_vector(side: str, value: float, ranking: int | None = None) -> Forge:
    """One number for all states of the product, claimed."""

    def forge(forgery: Forgery) -> None:
        size = len(forgery[f"values.0.{side}"])
        forgery[f"values.0.{side}"] = np.full(size, value)
        if ranking is not None:
            forgery["values.0.lower_ranking"] = np.arange(size) * ranking
        low, high = (value, 1.0) if side == "lower" else (0.0, value)
        if forgery["problem.objective.complement"]:
            low, high = 1 - high, 1 - low
        claim(forgery, low, high)

    return forge


def of_the_model(forgery: Forgery) -> None:
    """Vectors of the model, which has fewer states than the product."""
    for name, value in (
        ("lower", np.ones(6)),
        ("upper", np.ones(6)),
        ("witness", np.array([0, 2, 4, 5, 6, 7])),
    ):
        forgery[f"values.0.{name}"] = value
    forgery["values.0.lower_ranking"] = np.array([2, 1, 3, 0, 0, 0])
    claim(forgery, 1.0, 1.0)


def longer(forgery: Forgery) -> None:
    for name in ("lower", "upper", "lower_ranking", "witness"):
        array = forgery[f"values.0.{name}"]
        forgery[f"values.0.{name}"] = np.concatenate([array, array[-1:]])
    claim(forgery, 0.99, 1.0)


def without_automaton(forgery: Forgery) -> None:
    """The question becomes another one, which the vectors of the product do not fit."""
    forgery["problem.automaton"] = None
    for name in ("atom", "successor", "avoided", "pair", "repeated"):
        forgery.drop(f"problem.automaton.{name}") if f"problem.automaton.{name}" in forgery.arrays else None
    claim(forgery, 0.99, 1.0)


def a_policy(forgery: Forgery) -> None:
    """A policy of the model, for which nothing is derived."""
    forgery["claims.0.name"], forgery["claims.0.policy"] = "given policy", "fixed"
    forgery["claims.0.choice"] = np.array([0, 2, 4, 5, 6, 7])
    forgery.drop("values.0.witness")
    claim(forgery, 0.99, 1.0)


ATTACKS = [
    # Averages: two inequalities, and a forger would drop one of them.
    Attack("average-of-one-step", BEST, gains("lower", 2.5, 0.0), "the best reward of a step as the average: p·g = g holds, the bias does not"),
    Attack("average-worst-step", AVERAGES, gains("upper", 0.0, 0.0), "the worst reward of a step as the average"),
    Attack("average-a-little-more", AVERAGES, moved("lower", 1e-3), "bias left as it is: no room, however little"),
    Attack("average-a-little-less", AVERAGES, moved("upper", -1e-3), "the same from above"),
    Attack("average-only-here", BEST, both(entries("values.0.lower", {0: 2.4}), shift(1.0, 1.0)), "the gain of the initial state alone: p·g is smaller"),
    Attack("average-of-the-sink", BEST, both(entries("values.0.lower", {4: 2.5}), shift(0.2, 0.2)), "a sink earns what it likes"),
    Attack("average-bias-zero", BEST, both(change("values.0.lower_bias", np.zeros_like), moved("lower", 0.2)), "no bias: every step must earn the average"),
    Attack("average-bias-steep", AVERAGES, steep("lower", 3.0, 1e18), "a bias so steep that rewards drown in rounding"),
    Attack("average-bias-overflows", AVERAGES, steep("lower", 3.0, 1.7e307), "sums beyond all doubles"),
    Attack("average-bias-nan", AVERAGES, both(gains("lower", 3.0), change("values.0.lower_bias", lambda b: b * np.nan)), "NaN violates no inequality"),
    Attack("average-bias-missing", AVERAGES, both(gains("lower", 3.0), lambda f: f.drop("values.0.lower_bias")), "one inequality instead of two"),
    Attack("average-bias-infinite", AVERAGES, both(gains("lower", 3.0), change("values.0.lower_bias", lambda b: b * 0 - np.inf)), "−∞ ≤ everything"),
    Attack("average-bias-short", AVERAGES, both(gains("lower", 3.0), change("values.0.lower_bias", lambda b: b[:1])), "an array of length 1 broadcasts"),
    Attack("average-gain-infinite", AVERAGES, both(change("values.0.lower", lambda g: g * 0 + np.inf), only_claim(3.0, 4.0)), "∞ is its own backup"),
    Attack("average-sides-swapped", BEST, swapped_sides, "the upper vectors as the lower ones"),
    Attack("average-witness", BEST, both(entries("values.0.witness", {1: 2}), shift(0.1, 0.1)), "a policy that leaves the loop"),
    Attack("average-witness-of-the-loop", ("point/least-average",), both(entries("values.0.witness", {0: 3}), moved("upper", -0.2)), "the initial state takes the choice of another one"),
    Attack("average-claim", (*AVERAGES, *SHARES), shift(0.01, 0.02), "nobody compares claim and gain"),
    Attack("share-above-one", SHARES, gains("lower", 1.5, 0.0), "more than all of the time"),
    Attack("share-of-the-step", SHARES, gains("lower", 1.0, 0.0), "in 5 now, so always"),
    Attack("average-ranked", BEST, both(gains("lower", 2.4), ranked([0] * 6)), "a ranking in place of the bias"),
    # Temporal: what is won is derived, and vectors are about the product.
    Attack("temporal-all-win", TEMPORAL, product_vector("lower", 1.0), "L = 1 everywhere"),
    Attack("temporal-all-win-ranked", TEMPORAL, product_vector("lower", 1.0, 1), "… with ranks that rise"),
    Attack("temporal-nobody-wins", (*TEMPORAL, *SETTLES), product_vector("upper", 0.0), "U = 0 where it is won as well"),
    Attack("temporal-rarely", RARELY, product_vector("upper", 0.0), "the complement's bound"),
    Attack("temporal-vectors-of-the-model", TEMPORAL, of_the_model, "the memory is left out"),
    Attack("temporal-longer", TEMPORAL, longer, "a product of another size"),
    Attack("temporal-no-automaton", TEMPORAL, without_automaton, "a temporal question without its automaton"),
    Attack("temporal-policy", TEMPORAL, a_policy, "a policy without memory"),
    Attack("temporal-no-vectors", TEMPORAL, both(lambda f: f.drop("values.0.lower"), shift(0.2, 0.2)), "nothing to check"),
    Attack("temporal-witness", TEMPORAL, both(change("values.0.witness", lambda w: w - 1), only_claim(0.99, 1.0)), "choices of other states"),
    Attack("temporal-witness-beyond", TEMPORAL, both(change("values.0.witness", lambda w: w + 1000), only_claim(0.99, 1.0)), "choices that are not there"),
    Attack("temporal-bias", TEMPORAL, both(lambda f: f.__setitem__("values.0.lower_bias", np.zeros(6)), only_claim(0.99, 1.0)), "the argument for averages, where it is not theirs"),
    Attack("temporal-ranks-zero", TEMPORAL, both(product_vector("lower", 0.9), change("values.0.lower_ranking", np.zeros_like)), "equal ranks taken for progress"),
    Attack("temporal-claim", (*TEMPORAL, *RARELY, *SETTLES), shift(0.01, 0.02), "nobody compares claim and vector"),
    Attack("temporal-complement-forgotten", RARELY, lambda f: claim(f, 1 - float(f["claims.0.upper"]) - 1e-4, 1 - float(f["claims.0.lower"]) + 1e-4), "the value before the complement"),
    # Learned: statistics are those of the model, the game is the product's.
    Attack("remembered-claim", REMEMBERED, only_claim(0.95, 1.0), "nobody compares claim and vector"),
    Attack("remembered-all-win", REMEMBERED, product_vector("lower", 1.0), "L = 1 everywhere"),
    Attack("remembered-nobody-wins", REMEMBERED, product_vector("upper", 0.0), "U = 0 everywhere"),
    Attack("remembered-intervals", ("remembered/tied",), both(change("learned.lower", lambda v: v * 0 + 0.9), change("learned.upper", lambda v: v * 0 + 0.95), shift(0.25, 0.25)), "intervals that the counts do not give"),
    Attack("remembered-free", REMEMBERED, both(lambda f: f.__setitem__("claims.0.policy", "free"), only_claim(0.95, 1.0)), "a policy of the product that is not given"),
    Attack("remembered-given", REMEMBERED, both(lambda f: f.__setitem__("claims.0.name", "given policy"), only_claim(0.95, 1.0)), "a given policy has no memory"),
    Attack("remembered-other-policy", REMEMBERED, both(change("claims.0.choice", lambda c: c[::-1].copy()), only_claim(0.95, 1.0)), "choices of other states"),
    Attack("settles-all-win", SETTLES, product_vector("lower", 1.0), "L = 1 before it is settled"),
]  # fmt: skip
