"""Attacks on certificates of values: what a forger would write, and why it would be worth his while.

Problem and question stay honest. States 1 and 5 of the game are an end component without a goal, where every
number is its own backup: there a claim can be anything that a ranking does not forbid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adversary.archive import Forgery
from adversary.judge import question_of
from tightrope.model.objective import Direction

Forge = Callable[[Forgery], None]

LOOP = (1, 5)
HUGE = 2**62 - 1


@dataclass(frozen=True)
class Attack:
    """`on`: the honest certificates it is tried on; `why`: what would be gained."""

    name: str
    on: tuple[str, ...]
    forge: Forge
    why: str


def pinned(forgery: Forgery, side: str, pins: dict[int, float], stay: bool = True) -> None:
    """The vector that satisfies every inequality but at the pinned states, by many backups; claim it."""
    question = question_of(forgery)
    objective, model = question.objective, question.model
    if stay and "values.0.witness" in forgery:
        witness = forgery["values.0.witness"].copy()
        witness[1] = forgery["problem.graph.choice_start"][1] + 1
        forgery["values.0.witness"] = witness
    given = forgery[f"values.0.{side}"].copy()
    given[~np.isfinite(given)] = 0.0
    if side == "upper":
        given[:] = 0.0  # the least fixpoint
    values = given.tolist()
    reward = np.zeros(len(model.structure.transition_start) - 1)
    if objective.reward is not None:
        reward = objective.reward.per_choice(model.structure)
    reward = reward.tolist()
    fixed = np.zeros(model.states, dtype=np.bool_) if objective.target is None else objective.target
    if objective.allowed is not None:
        fixed = fixed | ~objective.allowed
    worst = max if objective.nature is Direction.MAX else min
    best = max if objective.agent is Direction.MAX else min
    factor = objective.discount or 1.0
    rows = [
        [[(t, float(low), float(high)) for t, low, high in choice] for choice in state]
        for state in model.choices
    ]
    for _ in range(400):
        for state, value in pins.items():
            values[state] = value
        number, backed = 0, values.copy()
        for s, choices in enumerate(rows):
            found = []
            for choice in choices:
                found.append(reward[number] + factor * _mean(choice, values, worst))
                number += 1
            if not fixed[s] and s not in pins:
                backed[s] = best(found)
        if backed == values:
            break
        values = backed
    slack = -1e-9 if side == "lower" else 1e-9
    moved = [s for s in range(model.states) if not fixed[s] and s not in pins]
    given[:] = values
    given[moved] += slack
    forgery[f"values.0.{side}"] = given
    claim_values(forgery, side)


def _mean(choice, values, worst) -> float:
    """Nature's optimum: give what is left in the order of the values."""
    order = sorted(choice, key=lambda entry: values[entry[0]], reverse=worst is max)
    left = 1.0 - sum(low for _, low, _ in choice)
    total = 0.0
    for t, low, high in order:
        share = min(left, high - low)
        left -= share
        total += (low + share) * values[t]
    return total


def claim_values(forgery: Forgery, side: str = "lower") -> None:
    """Claim what the vectors say at the initial state; the other vector gives way to the forged `side`."""
    initial = forgery["problem.graph.initial"]
    if forgery["values.0.lower"][initial] > forgery["values.0.upper"][initial]:
        if side == "upper":
            forgery["values.0.lower"] = np.minimum(forgery["values.0.lower"], 0.0)
        else:
            forgery["values.0.upper"] = np.maximum(forgery["values.0.upper"], forgery["values.0.lower"])
    low, high = (float(forgery[f"values.0.{end}"][initial]) for end in ("lower", "upper"))
    if forgery["problem.objective.complement"]:
        low, high = 1 - high, 1 - low
    claim(forgery, low, high)


def claim(forgery: Forgery, low: float, high: float) -> None:
    forgery["claims.0.lower"] = "inf" if low == np.inf else low
    forgery["claims.0.upper"] = "inf" if high == np.inf else high


def change(path: str, edit: Callable[[np.ndarray], np.ndarray]) -> Forge:
    def forge(forgery: Forgery) -> None:
        forgery[path] = edit(forgery[path].copy())

    return forge


def entries(path: str, changes: dict[int, float]) -> Forge:
    def edit(array: np.ndarray) -> np.ndarray:
        for place, value in changes.items():
            array[place] = value
        return array

    return change(path, edit)


def both(*forges: Forge) -> Forge:
    def forge(forgery: Forgery) -> None:
        for one in forges:
            one(forgery)

    return forge


def ranked(ranking: list[int]) -> Forge:
    def forge(forgery: Forgery) -> None:
        for side in ("lower", "upper"):
            if f"values.0.{side}_ranking" in forgery:
                forgery[f"values.0.{side}_ranking"] = np.array(ranking, dtype=np.int64)

    return forge


def loop(side: str, value: float, ranking: list[int] | None = None, stay: bool = True) -> Forge:
    def forge(forgery: Forgery) -> None:
        pinned(forgery, side, dict.fromkeys(LOOP, value), stay)
        if ranking is not None:
            ranked(ranking)(forgery)

    return forge


def shift(low: float, high: float) -> Forge:
    """The claim alone moves; vectors stay."""

    def forge(forgery: Forgery) -> None:
        claim(forgery, float(forgery["claims.0.lower"]) + low, float(forgery["claims.0.upper"]) + high)

    return forge


def vectors(side: str, edit: Callable[[np.ndarray], np.ndarray]) -> Forge:
    """A vector changes, and the claim with it."""

    def forge(forgery: Forgery) -> None:
        forgery[f"values.0.{side}"] = edit(forgery[f"values.0.{side}"].copy())
        claim_values(forgery, side)

    return forge


def vectors_added(value: float) -> Forge:
    """Vectors where the number of steps is bounded."""

    def forge(forgery: Forgery) -> None:
        forgery["values.0.lower"] = forgery["values.0.upper"] = np.full(6, value)

    return forge


def only_claim(low: float, high: float) -> Forge:
    return lambda forgery: claim(forgery, low, high)


REACHING = ("point/reach", "interval/reach", "interval/friend", "plain/reach")
UNBOUNDED = (*REACHING, "point/until", "interval/until", "parameter/reach")
STEPS = (
    "point/bounded",
    "interval/bounded",
    "point/window",
    "interval/window",
    "point/next",
    "point/cumulative",
)
LATE = ("point/late", "interval/late")
FACTORS = ("factors/bounded", "factors/window", "factors/late", "factors/cumulative")
COSTS = ("point/toll", "interval/toll", "interval/friend-toll")
DISCOUNTED = ("point/discounted", "interval/discounted")

ATTACKS = [
    # The end component: L = 1 is its own backup there.
    Attack("sure-in-a-loop", REACHING, loop("lower", 1.0), "lower bound 1 where the play never ends"),
    Attack("loop-all-rank-zero", REACHING, loop("lower", 1.0, [0] * 6), "equal ranks taken for progress"),
    Attack("loop-ranks-in-a-circle", REACHING, loop("lower", 1.0, [3, 2, 3, 0, 0, 1]), "1 → 5 → 1 can never fall"),
    Attack("loop-ranks-wrap", REACHING, loop("lower", 1.0, [3, HUGE, 3, 0, 0, HUGE - 1]), "ranks that wrap around"),
    Attack("loop-rank-negative", REACHING, loop("lower", 1.0, [3, 0, 3, 0, 0, -1]), "a rank below all others"),
    Attack("loop-ranks-of-the-target", REACHING, loop("lower", 1.0, [1, 0, 1, 1, 1, 0]), "rank 0 taken for a target"),
    Attack("loop-half", ("point/reach", "interval/reach", "interval/friend"), loop("lower", 0.8), "any constant is inductive in a loop, not only 1"),
    Attack("loop-other-witness", REACHING, loop("lower", 1.0, stay=False), "the loop's number under the honest policy"),
    Attack("always-loop", ("point/always", "interval/always"), loop("upper", 0.0), "G: the complement's bound"),
    Attack("always-lost-is-safe", ("point/always",), vectors("upper", lambda u: u * 0.0), "the avoided target gets 0"),
    Attack("until-forbidden", ("point/until", "interval/until"), lambda f: pinned(f, "lower", {2: 1.0}, False), "a state outside `allowed` counts as won"),
    Attack("least-loop", ("point/least", "interval/least"), vectors("lower", lambda v: np.where(v < 1, 0.5, v)), "opponents could stay in the loop"),
    Attack("all-win", UNBOUNDED, vectors("lower", np.ones_like), "L = 1 everywhere, lost states included"),
    Attack("nobody-wins", UNBOUNDED, vectors("upper", np.zeros_like), "U = 0 at targets as well"),
    Attack("lost-wins", REACHING, lambda f: pinned(f, "lower", {4: 1.0}, False), "a sink is an end component, too"),
    Attack("goal-is-worth-less", REACHING, lambda f: pinned(f, "upper", {3: 0.5}, False), "U below 1 at the target"),
    Attack("goal-is-worth-more", UNBOUNDED, lambda f: pinned(f, "lower", {3: 2.0}, False), "L above 1 at the target"),
    # Costs: minimisers own the upper bound, and in a loop without cost U = 0 is inductive.
    Attack("toll-loop", COSTS, loop("upper", 0.0), "staying forever costs nothing, and never arrives"),
    Attack("toll-loop-all-rank-zero", COSTS, loop("upper", 0.0, [0] * 6), "equal ranks taken for progress"),
    Attack("toll-loop-circle", COSTS, loop("upper", 0.0, [3, 2, 3, 0, 0, 1]), "1 → 5 → 1 can never fall"),
    Attack("cost-upper-zero", ("point/cost", "interval/cost"), vectors("upper", np.zeros_like), "free of charge"),
    Attack("cost-upper-low", ("point/cost", "interval/cost", "interval/friend-cost"), vectors("upper", lambda u: u * 0.9), "scaled below a backup"),
    Attack("cost-lower-high", ("point/cost", "interval/cost", "interval/friend-cost"), vectors("lower", lambda u: u * 1.1), "scaled above a backup"),
    Attack("cost-lower-infinite", ("point/cost", "interval/cost"), vectors("lower", lambda v: np.where(v > 0, np.inf, v)), "∞ is its own backup"),
    Attack("cost-infinite-from-loop", ("point/cost", "interval/cost"), both(vectors("lower", lambda v: np.full_like(v, np.inf)), ranked([0] * 6)), "targets are infinite as well"),
    Attack("cost-infinite-ranked", ("point/toll",), both(vectors("lower", lambda v: np.where(np.arange(6) < 3, np.inf, v)), ranked([2, 0, 1, 0, 0, 0])), "ranks that lead nowhere"),
    Attack("most-cost-finite", ("point/most-cost", "interval/most-cost"), vectors("upper", lambda u: np.where(np.isinf(u), 50.0, u)), "staying in the loop costs forever"),
    Attack("prize-forgotten", ("point/prize", "interval/prize"), lambda f: pinned(f, "upper", {3: 0.0}, False), "the target's own value is left out"),
    Attack("total-loop", ("point/total", "interval/total"), loop("lower", 9.0), "nothing is earned in the loop"),
    Attack("total-loop-circle", ("point/total",), loop("lower", 9.0, [3, 2, 3, 0, 0, 1]), "1 → 5 → 1 can never fall"),
    Attack("total-infinite", ("point/total", "interval/total"), vectors("lower", lambda v: np.full_like(v, np.inf)), "∞ everywhere, no reward ever"),
    Attack("total-infinite-layers", ("point/total",), both(vectors("lower", lambda v: np.full_like(v, np.inf)), ranked([14, 7, 15, 0, 0, 8])), "layers that are never left, without reward"),
    Attack("total-sink-earns", ("point/total",), lambda f: pinned(f, "lower", {4: 5.0}, False), "a sink earns what it likes"),
    Attack("total-upper-negative", ("point/total",), vectors("upper", lambda u: u - 10.0), "U below 0 is inductive where rewards are 0"),
    Attack("discounted-high", DISCOUNTED, vectors("lower", lambda v: v + 1e-3), "a contraction leaves no room, however little"),
    Attack("discounted-low", DISCOUNTED, vectors("upper", lambda v: v - 1e-3), "the same from above"),
    Attack("discounted-infinite", DISCOUNTED, vectors("lower", lambda v: np.full_like(v, np.inf)), "∞ is a fixpoint of γ·x + r"),
    Attack("discounted-overflow", DISCOUNTED, vectors("lower", lambda v: np.full_like(v, 1.7e308)), "overflow into ∞ ≥ L"),
    # Steps: nothing in the file may replace the steps.
    Attack("steps-lower", STEPS, shift(0.05, 0.05), "a claim that the steps do not make"),
    Attack("steps-upper", STEPS, shift(-0.05, -0.05), "the same from below"),
    Attack("steps-vectors", STEPS, both(shift(0.05, 0.05), vectors_added(1.0)), "1 is inductive in every step: vectors where steps are made"),
    Attack("steps-rankings", STEPS, both(shift(0.05, 0.05), lambda f: f.__setitem__("values.0.lower_ranking", np.zeros(6, dtype=np.int64))), "a ranking taken for the steps"),
    Attack("steps-witness", STEPS, both(shift(0.05, 0.05), lambda f: f.__setitem__("values.0.witness", np.array([0, 2, 4, 5, 6, 7]))), "a witness that knows the step"),
    Attack("late-high", LATE, both(vectors("lower", lambda v: np.where((v > 0) & (v < 1), np.minimum(v * 1.2, 1.0), v))), "a tail that nothing proves"),
    Attack("late-loop", LATE, loop("lower", 1.0), "the loop in the tail"),
    Attack("late-loop-ranked", LATE, loop("lower", 1.0, [3, 2, 3, 0, 0, 1]), "the loop in the tail, ranks in a circle"),
    Attack("late-claim", LATE, shift(0.05, 0.05), "the tail is honest, the first steps are not made"),
    Attack("late-targets-forget", LATE, lambda f: pinned(f, "lower", {3: 2.0}, False), "a target met too early is worth more than 1"),
    # States in the middle of a step: they are what the problem says, or nothing is proved.
    Attack("factors-claim", FACTORS, shift(0.01, 0.01), "draws within a step that nobody makes"),
    Attack("factors-claim-below", FACTORS, shift(-0.01, -0.01), "the same from above"),
    Attack("factors-no-middle", FACTORS[:1], lambda f: f.drop("problem.passing"), "every draw a step"),
    Attack("factors-all-middle", FACTORS, both(change("problem.passing", np.ones_like), shift(0.01, 0.01)), "no step ever ends"),
    Attack("factors-middle-first", FACTORS, both(entries("problem.passing", {0: True}), shift(0.01, 0.01)), "the play begins within a step"),
    Attack("factors-middle-more", FACTORS, both(entries("problem.passing", {5: True}), shift(0.01, 0.01)), "a step of the model's own is for free"),
    Attack("factors-middle-less", FACTORS[:2], entries("problem.passing", {-1: False}), "one draw is a step"),
    Attack("factors-middle-short", FACTORS, both(change("problem.passing", lambda p: p[:1]), shift(0.01, 0.01)), "an array of length 1 broadcasts"),
    Attack("factors-circle", FACTORS, both(change("problem.graph.successor", lambda t: np.append(t[:-1], t.max())), shift(0.01, 0.01)), "draws without end within a step"),
    Attack("factors-earned", FACTORS[3:], both(entries("problem.objective.reward", {-1: 1.0}), shift(0.01, 0.01)), "something is earned within a step"),
    Attack("factors-reached", FACTORS[:3], both(entries("problem.objective.target", {-1: True}), shift(0.01, 0.01)), "a target within a step"),
    Attack("factors-forbidden", FACTORS[1:2], both(entries("problem.objective.allowed", {-1: False}), shift(0.01, 0.01)), "a state within a step is forbidden"),
    Attack("factors-no-steps", FACTORS[:2], lambda f: f["problem.objective"].update(lower_steps=0, upper_steps=None), "a middle where nothing is counted"),
    # Claims that do not follow from the vectors.
    Attack("claim-above-vector", (*UNBOUNDED, *STEPS, *COSTS, *DISCOUNTED), shift(0.01, 0.02), "nobody compares claim and vector"),
    Attack("claim-below-vector", (*UNBOUNDED, *STEPS, *COSTS, *DISCOUNTED), shift(-0.02, -0.01), "the same from below"),
    Attack("claim-of-another-state", REACHING, only_claim(1.0, 1.0), "the target's value instead of the initial state's"),
    Attack("claim-empty", UNBOUNDED, only_claim(0.9, 0.1), "lower above upper: everything follows"),
    Attack("claim-complement-forgotten", ("point/always", "interval/always"), only_claim(0.2691, 0.2692), "the value before the complement"),
    Attack("claim-negative-zero", ("point/reach",), only_claim(-0.0, -0.0), "−0 compared as bytes"),
    Attack("claim-infinite", ("point/reach", "point/discounted"), only_claim(np.inf, np.inf), "∞ ≥ everything"),
    # Policies.
    Attack("witness-loops", REACHING, both(entries("values.0.witness", {1: 3}), shift(0.1, 0.1)), "a policy that does not attain the vector"),
    Attack("witness-of-another-state", REACHING, both(lambda f: pinned(f, "lower", {2: 0.9}, False), entries("values.0.witness", {2: 2})), "state 2 takes state 1's better choice"),
    Attack("witness-of-the-target", REACHING, both(lambda f: pinned(f, "lower", {0: 1.0, 1: 1.0, 2: 1.0}, False), entries("values.0.witness", {0: 5, 1: 5, 2: 5})), "everybody stays at the goal"),
    Attack("witness-negative", REACHING, both(lambda f: pinned(f, "lower", {0: 1.0}, False), entries("values.0.witness", {0: -3})), "negative numbers count from the end: the goal's choice"),
    Attack("witness-beyond", REACHING, both(lambda f: pinned(f, "lower", {0: 1.0}, False), entries("values.0.witness", {0: 8})), "one past the last choice"),
    Attack("given-another", ("point/given",), both(entries("claims.0.choice", {1: 2}), shift(0.1, 0.1)), "the vectors of a better policy"),
    Attack("given-negative", ("point/given",), both(entries("claims.0.choice", {0: -8}), shift(0.1, 0.1)), "negative numbers count from the end"),
    Attack("given-of-another-state", ("point/given",), both(entries("claims.0.choice", {0: 2}), lambda f: pinned(f, "lower", {0: 0.9}, False)), "the initial state takes state 1's choice"),
    Attack("mixed-no-weights", ("point/mixed",), both(entries("claims.0.weight", {0: 0.0, 1: 0.0}), vectors("lower", lambda v: v + 0.2)), "0/0 at the initial state"),
    Attack("mixed-tiny-weights", ("point/mixed",), both(entries("claims.0.weight", {0: 5e-324, 1: 5e-324}), vectors("lower", lambda v: v + 0.2)), "weights that vanish in products"),
    Attack("mixed-negative", ("point/mixed",), both(entries("claims.0.weight", {0: 2.0, 1: -1.0}), vectors("lower", lambda v: v * 1.3)), "more than all of the better choice"),
    Attack("mixed-more-than-one", ("point/mixed",), both(entries("claims.0.weight", {0: 1.0, 1: 1.0}), vectors("lower", lambda v: np.minimum(v * 2, 1))), "weights that sum to 2"),
    Attack("mixed-nan", ("point/mixed",), both(entries("claims.0.weight", {0: np.nan}), vectors("lower", lambda v: v + 0.2)), "NaN compares as false"),
    # Numbers that are none.
    Attack("nan-lower", (*UNBOUNDED, *DISCOUNTED), both(change("values.0.lower", lambda v: v * np.nan), shift(0.2, 0.2)), "NaN violates no inequality"),
    Attack("nan-upper", UNBOUNDED, both(change("values.0.upper", lambda v: v * np.nan), shift(-0.2, -0.2)), "NaN violates no inequality"),
    Attack("nan-elsewhere", UNBOUNDED, both(entries("values.0.lower", {2: np.nan}), shift(0.2, 0.2)), "NaN at one state poisons a maximum"),
    Attack("minus-infinity-upper", (*UNBOUNDED, *DISCOUNTED), both(change("values.0.upper", lambda v: v * 0 - np.inf), shift(-0.2, -0.2)), "−∞ is its own backup"),
    Attack("column-vector", UNBOUNDED, both(change("values.0.lower", lambda v: np.ones_like(v)[:, None]), shift(0.2, 0.2)), "shapes that broadcast"),
    Attack("one-number-for-all", UNBOUNDED, both(change("values.0.upper", lambda v: np.zeros(1)), shift(-0.2, -0.2)), "an array of length 1 broadcasts"),
    Attack("no-vector", UNBOUNDED, both(lambda f: f.drop("values.0.lower"), shift(0.2, 0.2)), "nothing to check"),
    Attack("ranking-missing", REACHING, both(loop("lower", 1.0), lambda f: f.drop("values.0.lower_ranking")), "no ranking, no check"),
    Attack("ranking-short", REACHING, both(loop("lower", 1.0), change("values.0.lower_ranking", lambda r: r[:1])), "an array of length 1 broadcasts"),
    Attack("unsigned-ranking", REACHING, both(loop("lower", 1.0), change("values.0.lower_ranking", lambda r: r.astype(np.uint64) - np.uint64(5))), "unsigned numbers wrap around"),
    Attack("single-precision", ("point/reach", "parameter/reach", "plain/reach"), vectors("upper", lambda u: np.nextafter(u.astype(np.float32), np.float32(0)).astype(np.float32)), "half the digits, rounded inwards"),
    Attack("no-claims", ("point/reach",), lambda f: f.node.update(claims=[], values=[]), "nothing claimed is quickly proved"),
    Attack("claim-without-values", ("point/reach",), both(shift(0.2, 0.2), lambda f: f.node.update(values=[])), "a claim that nobody looks at"),
    Attack("second-claim", ("point/reach",), lambda f: f["claims"].append({**f["claims"][0], "lower": 0.99, "upper": 1.0}), "two claims, one proof"),
    Attack("claims-swapped", ("point/reach",), lambda f: f["claims"].insert(0, {**f["claims"][0], "lower": 0.99, "upper": 1.0}), "the first claim is shown, the second proved"),
]  # fmt: skip
