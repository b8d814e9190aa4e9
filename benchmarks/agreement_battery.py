"""Certificates of random questions of every kind beside the answers: written, verified, compared.

    python benchmarks/agreement_battery.py                   40 questions of every kind
    python benchmarks/agreement_battery.py rates learned     some kinds
    python benchmarks/agreement_battery.py --smoke           three of every kind, in seconds

Models have five states. At *points* and within *intervals* the questions are those of `question_battery.py`
that certificates cover, so that Storm's value must lie in the certificate, too. *Rates* are of chains in
continuous time, at a point, over the domain or learned from simulated times, with matrix exponentials beside
them; *domain* is of all points of a
domain; *learned* of simulated episodes at δ = 1e-6, by all regions and sets; *differences* of two policies;
*controllers* of what sees observations only. The truth that data are drawn from must lie within the answer
and within the certificate.

Prints a row per kind: how many were asked, certified, refused in words, what the checker does not accept
(*invalid*), where answer and certificate *contradict* each other, where the truth lies *outside* of one of
them, how many *crashed*. All but the first three should be 0, and it leaves with status 1 where they are not.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import expm

import question_battery as plain
import tightrope as tr
from tightrope.certify.certificate_file import Disagreement
from tightrope.logic.timed import bound_over_rates
from tightrope.model.continuous import over_box
from tightrope.solver.solution import SolveOptions

STATES = plain.STATES
DELTA = 1e-6
CERTIFIED = ("simple paths", "rewards", "averages", "steady state", "LTL", "random paths")
"""The classes of the other battery that certificates cover."""

ASKED = (
    'P@=? [ F "a" ]',
    'P@=? [ !"b" U "a" ]',
    'P@=? [ G !"c" ]',
    'P@=? [ F<=4 "a" ]',
    'P@=? [ X "a" ]',
    'P@=? [ F>=2 "a" ]',
    'P@=? [ (F "a") & (G F "b") ]',
    'P@=? [ F ("a" & (X "b")) ]',
    'R{"cost"}@=? [ F "end" ]',
    'R{"cost"}@=? [ C<=5 ]',
    'R{"cost"}@=? [ Cdiscount=0.9 ]',
    'R{"cost"}@=? [ S ]',
    'S@=? [ "a" ]',
)
TIMED: dict[str, tuple[Any, ...]] = {
    'P=? [ F<=2 "a" ]': ("", "a", 0.0, 2.0),
    'P=? [ G<=1 !"b" ]': ("not", "", "b", 0.0, 1.0),
    'P=? [ !"b" U[0.5,2] "a" ]': ("!b", "a", 0.5, 2.0),
    'P=? [ !"b" U>=0 "a" ]': ("!b", "a", 0.0, np.inf),
    'P=? [ "b" U>=0 "a" ]': ("b", "a", 0.0, np.inf),
    'P=? [ !"b" U>=1 "a" ]': ("!b", "a", 1.0, np.inf),
    'P=? [ "b" U[0,1] "a" ]': ("b", "a", 0.0, 1.0),
    'P=? [ "b" U "a" ]': ("b", "a", 0.0, np.inf),
    'P=? [ !"b" W "a" ]': ("not", "!a", "b!a", 0.0, np.inf),
    'P=? [ F[1,1] "a" ]': ("", "a", 1.0, 1.0),
    'P=? [ G[0.5,1.5] "a" ]': ("not", "", "!a", 0.5, 1.5),
    'R{"cost"}=? [ C<=2 ]': ("until", 2.0),
    'R{"cost"}=? [ I=1 ]': ("at", 1.0),
    'R{"cost"}=? [ I=0 ]': ("at", 0.0),
    'R{"cost"}=? [ F "end" ]': ("to the end",),
    'R{"cost"}=? [ S ]': ("average",),
    'S=? [ "a" ]': ("share",),
}
"""Questions in continuous time, and what `by_matrices` takes: allowed states, targets, and times."""
REGIONS: tuple[dict[str, Any], ...] = (
    {},
    {"region": "polytope", "sets": "expression"},
    {"region": "polytope", "sets": "rectangular"},
    {"region": "polytope", "sets": "coupled"},
    {"region": "likelihood"},
    {"region": "slab"},
    {"region": "l1", "sets": "expression"},
    {"region": "ellipsoid", "sets": "rectangular"},
    {"sets": "untied"},
    {"sets": "tied"},
)


@dataclass(frozen=True)
class Question:
    """What is certified: `certify` writes to a path. `said` is the answer, `truth` what lies in both."""

    text: str
    certify: Callable[[Path], dict[str, Any]]
    said: dict[str, tuple[float, float]]
    truth: dict[str, float]


@dataclass
class Row:
    """What became of the questions of one kind."""

    name: str
    asked: int = 0
    certified: int = 0
    refused: int = 0
    invalid: int = 0
    contradict: int = 0
    outside: int = 0
    crashed: int = 0
    messages: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)


def labels_of(rng: random.Random) -> dict[str, list[int]]:
    found = {name: sorted(rng.sample(range(STATES), rng.randint(1, 2))) for name in ("a", "b", "c")}
    return {**found, "end": [STATES - 1]}


def points(rng: random.Random, intervals: bool = False) -> Question:
    """A question of the other battery."""
    while True:
        try:
            case = plain.CLASSES[rng.choice(CERTIFIED)](rng)
        except plain.UnansweredError:
            continue
        if hasattr(case.model, "upper") == intervals:
            break
    bounds = tr.solve(case.model, case.text).bounds
    return Question(
        case.text,
        lambda path: tr.certify(tr.Problem(case.model, case.text), path),
        {"value": bounds},
        {"value": case.expected},
    )


def within(rng: random.Random) -> Question:
    return points(rng, True)


def random_chain(rng: random.Random) -> tuple[Any, dict[str, Fraction]]:
    """Rates with two parameters, and the true ones; every play comes to the end, which may be left again."""
    box = tr.Parameters.box(lam=("0.2", "3"), mu=("0.5", "2"))
    lam, mu = box.symbols()
    rows = []
    for s in range(STATES):
        others = rng.sample([t for t in range(STATES) if t != s], rng.randint(1, 2))
        if s < STATES - 1 and max(others) < s:
            others.append(s + 1)
        some = [lam, mu, 2 * lam, lam + mu, 1, "0.5", lam * mu]
        if s < STATES - 1 or rng.random() < 0.6:
            rows.append((s, {t: rng.choice(some) for t in others}))
    cost = {"cost": [rng.randint(0, 3) for _ in range(STATES)]}
    model = tr.build_ctmc_from_rows(rows, box, labels=labels_of(rng), state_rewards=cost)
    return model, {"lam": Fraction(rng.randint(2, 28), 10), "mu": Fraction(rng.randint(6, 19), 10)}


def by_matrices(chain: Any, text: str) -> float:
    """The value of a question about a chain, by matrix exponentials and linear equations."""
    structure, kind = chain.structure, TIMED[text]
    full = np.zeros((STATES, STATES))
    for s in range(STATES):
        for at in range(*structure.transition_start[s : s + 2]):
            full[s, structure.successor[at]] += float(chain.exact.to_fractions()[chain.expression[at]])
    full -= np.diag(full.sum(axis=1))
    cost = np.asarray(structure.rewards["cost"].per_choice(structure), dtype=float)

    def states(names: str) -> Any:
        """`b!a`: those of b that are none of a; all of them for no name."""
        found = np.ones(STATES, bool)
        for name, sign in zip(names.replace("!", ""), signs(names), strict=True):
            found &= np.isin(np.arange(STATES), np.flatnonzero(structure.labels[name])) == sign
        return found

    def still(where: Any) -> Any:
        return np.where(where[:, None], 0.0, full)

    def reached(allowed: Any, goal: Any, first: float, last: float) -> float:
        chance = goal.astype(float)
        if last == np.inf:
            moves = still(goal | ~allowed)
            able = goal.copy()
            for _ in range(STATES):
                able |= ((moves > 0) @ able.astype(int)) > 0
            inner = np.flatnonzero(able & ~goal)
            known = -moves[inner][:, goal].sum(axis=1)
            chance[inner] = np.linalg.solve(moves[np.ix_(inner, inner)], known) if len(inner) else []
        else:
            chance = expm((last - first) * still(goal | ~allowed)) @ chance
        if first > 0:
            chance = expm(first * still(~allowed)) @ np.where(allowed, chance, 0.0)
        return float(chance[0])

    if kind[0] == "not":
        return 1 - reached(states(kind[1]), states(kind[2]), *kind[3:])
    if kind[0] == "until":
        block = np.zeros((STATES + 1, STATES + 1))
        block[:STATES, :STATES], block[:STATES, STATES] = full, cost
        return float(expm(kind[1] * block)[0, STATES])
    if kind[0] == "at":
        return float((expm(kind[1] * full) @ cost)[0])
    if kind[0] in ("average", "share"):
        return float(expm(1e4 * full)[0] @ (cost if kind[0] == "average" else states("a")))
    if kind[0] == "to the end":
        return float(np.linalg.solve(-full[:-1, :-1], cost[:-1])[0])
    return reached(states(kind[0]), states(kind[1]), *kind[2:])


def signs(names: str) -> list[bool]:
    return [not names[: at + 1].endswith("!" + letter) for at, letter in enumerate(names) if letter != "!"]


def rates(rng: random.Random) -> Question:
    """At a point, over the domain, or learned."""
    model, point = random_chain(rng)
    text, how = rng.choice(list(TIMED)), rng.choice(["point", "domain", "learned"])
    problem = tr.Problem(model, text)
    known = tr.solve(problem.at(point)).bounds
    truth = {"value": by_matrices(model.instantiate(point), text)}
    if how == "point":
        return Question(text, lambda path: tr.certify(problem, path, at=point), {"value": known}, truth)
    if how == "domain":
        chain = over_box(model, model.parameters.lower, model.parameters.upper)
        over = bound_over_rates(chain, problem.query, SolveOptions())
        said = {"value": (over.lower, over.upper)}
        return Question(text, lambda path: tr.certify(problem, path), said, truth)
    log = tr.simulate_times(model.instantiate(point), 60, seed=rng.randrange(10**6), time=20)
    region = rng.choice(["polytope", "likelihood"])
    result = tr.learn(problem, log, delta=DELTA, region=region)
    return Question(text, lambda path: tr.certify(result, path), {"value": tuple(result.interval)}, truth)


def random_parametric(rng: random.Random) -> tuple[Any, dict[str, Fraction]]:
    """Two unknown probabilities in a model of choices; the last state is left again at times."""
    box = tr.Parameters.box(p=("0.1", "0.9"), q=("0.2", "0.8"))
    p, q = box.symbols()
    rows: list[Any] = []
    for s in range(STATES - 1):
        for c in range(rng.randint(1, 2)):
            on, back = rng.randrange(s + 1, STATES), rng.randrange(STATES)
            one = rng.choice([p, q, p, q, p / 2 + q / 2, p * q])
            known = Fraction(rng.randint(1, 7), 8)
            spread = {on: one, back: 1 - one} if rng.random() < 0.75 else {on: known, back: 1 - known}
            rows.append((s, f"c{c}", spread if on != back else {on: 1}))
    rows.append((STATES - 1, "c0", {0: 1} if rng.random() < 0.3 else {STATES - 1: 1}))
    cost = {"cost": [rng.randint(0, 3) for _ in range(STATES - 1)] + [0]}
    model = tr.build_from_rows(rows, box, labels=labels_of(rng), state_rewards=cost)
    return model, {"p": Fraction(rng.randint(2, 8), 10), "q": Fraction(rng.randint(3, 7), 10)}


def question_of(rng: random.Random) -> str:
    return rng.choice(ASKED).replace("@", rng.choice(["max", "min"]))


def any_policy(rng: random.Random, model: Any) -> Any:
    start = model.structure.choice_start
    picked = [rng.randrange(start[s], start[s + 1]) for s in range(STATES)]
    return tr.Policy.of_choices(model.structure, picked)


def learned_of(rng: random.Random, over_domain: bool) -> Question:
    model, point = random_parametric(rng)
    problem = tr.Problem(model, question_of(rng))
    given = any_policy(rng, model) if rng.random() < 0.3 else None
    if over_domain:
        sets = {} if "S" in problem.text else {"sets": rng.choice(["expression", "rectangular", "coupled"])}
        result, words = tr.solve(problem, policy=given, **sets), str(sets)
    else:
        chosen = rng.choice(REGIONS)
        seed = rng.randrange(10**6)
        data = tr.Simulator(problem.at(point).model, model_hash=model.hash(), cap=30).episodes(200, seed=seed)
        result, words = tr.learn(problem, data, delta=DELTA, policy=given, **chosen), str(chosen)
    said, truth = {}, {}
    if result.verdict.word.value == "proved":
        name = "robust policy" if given is None else "given policy"
        own = given if given is not None else policy_of(result)
        value = getattr(result, "value", None)
        temporal = "&" in problem.text and given is None
        said = {} if temporal else {name: tuple(result.interval if value is None else value.interval)}
        if own is not None and not temporal:
            known = tr.solve(problem.at(point), policy=own)
            truth = {name: 0.5 * sum(known.bounds)}
    return Question(
        f"{problem.text} {words} given={given is not None}",
        lambda path: tr.certify(result, path),
        said,
        truth,
    )


def policy_of(result: Any) -> Any:
    """The policy whose value is claimed, where it is one of the model."""
    robust = getattr(result, "robust", result)
    return robust.policy if robust.policy.structure is result.problem.base.structure else None


def learned(rng: random.Random) -> Question:
    return learned_of(rng, False)


def domain(rng: random.Random) -> Question:
    return learned_of(rng, True)


def differences(rng: random.Random) -> Question:
    """Of a policy that is looked for, to a given one."""
    model, point = random_parametric(rng)
    path = rng.choice(['P@=? [ F "a" ]', 'P@=? [ !"b" U "a" ]', 'R{"cost"}@=? [ C<=5 ]', 'P@=? [ F<=4 "a" ]'])
    problem = tr.Problem(model, path.replace("@", rng.choice(["max", "min"])))
    seed = rng.randrange(10**6)
    data = tr.Simulator(problem.at(point).model, model_hash=model.hash(), cap=30).episodes(5000, seed=seed)
    today = any_policy(rng, model)
    result = tr.improve(problem, data, baseline=today, delta=DELTA)
    said, truth = {}, {}
    if result.policy is not None and result.verdict.word.value == "proved":
        both = [tr.solve(problem.at(point), policy=one).bounds for one in (result.policy, today)]
        said = {"difference": tuple(result.interval)}
        truth = {"difference": 0.5 * (sum(both[0]) - sum(both[1]))}
    return Question(problem.text, lambda path: tr.certify(result, path), said, truth)


def controllers(rng: random.Random) -> Question:
    """Of what sees two observations."""
    subject = plain.random_subject(rng, rng.random() < 0.3, True, True)
    rows = []
    for s in range(STATES):
        own = [row for row in subject.rows if row[0] == s]
        rows += [(s, f"c{c}", own[min(c, len(own) - 1)][2]) for c in range(2)]
    model = subject.model(rows)
    looks = [rng.randrange(2) for _ in range(STATES)]
    pomdp = tr.POMDP(model, np.array(looks), ("low", "high"))
    text = rng.choice(['P@=? [ F "a" ]', 'P@=? [ !"b" U "a" ]', 'R{"cost"}@=? [ F "end" ]'])
    problem = tr.Problem(pomdp, text.replace("@", rng.choice(["max", "min"])))
    return Question(problem.text, lambda path: tr.certify(problem, path, seconds=20), {}, {})


KINDS: dict[str, Callable[[random.Random], Question]] = {
    "points": points,
    "intervals": within,
    "rates": rates,
    "domain": domain,
    "learned": learned,
    "differences": differences,
    "controllers": controllers,
}


def run_kind(name: str, count: int, seed: int, folder: Path) -> Row:
    row, messages = Row(name), Counter[str]()
    for number in range(count):
        rng, asked, path = random.Random(f"{name} {seed} {number}"), "", folder / f"{name}{number}.cert"
        row.asked += 1
        try:
            question = KINDS[name](rng)
            asked = question.text
            proved = {key: tuple(ends) for key, ends in question.certify(path).items()}
        except (tr.InputError, tr.CannotCertify) as error:
            row.refused += 1
            messages[str(error).splitlines()[0][:110]] += 1
            continue
        except Disagreement as error:
            row.contradict += 1
            row.examples.append(f"{number}: {asked}: {error}")
            continue
        except Exception as error:
            row.crashed += 1
            row.examples.append(f"{number}: {asked}: {type(error).__name__}: {error}")
            continue
        row.certified += 1
        verdict = tr.verify(path)
        if not verdict.valid:
            row.invalid += 1
            row.examples.append(f"{number}: {asked}: {[one for one in verdict.checks if not one.passed][:1]}")
        for claim, (low, high) in proved.items():
            said, truth = question.said.get(claim), question.truth.get(claim)
            if said is not None and not (low <= said[1] and said[0] <= high):
                row.contradict += 1
                row.examples.append(f"{number}: {asked}: said {said}, proved {(low, high)}")
            for ends in (said, (low, high)):
                if truth is not None and ends is not None and is_outside(truth, *ends):
                    row.outside += 1
                    row.examples.append(f"{number}: {asked}: {truth} outside {ends}")
    row.messages = dict(messages)
    return row


def is_outside(truth: float, low: float, high: float) -> bool:
    """References are no closer than Storm's doubles."""
    slack = plain.LOOSE * max(1.0, abs(truth)) if abs(truth) < float("inf") else 0.0
    return not low - slack <= truth <= high + slack


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="*", help=", ".join(KINDS))
    parser.add_argument("--count", type=int, default=40, help="questions of every kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="three of every kind")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results/agreement_battery.json"))
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"there is no kind {', '.join(sorted(unknown))}")
    warnings.simplefilter("ignore")
    rows = []
    names = ("asked", "certified", "refused", "invalid", "contradict", "outside", "crashed")
    print(f"| kind | {' | '.join(names)} |\n" + "|---" * (len(names) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.kinds or KINDS:
            row = run_kind(name, 3 if options.smoke else options.count, options.seed, Path(folder))
            rows.append(row)
            print("| " + " | ".join(str(getattr(row, key)) for key in ("name", *names)) + " |", flush=True)
            for message, times in row.messages.items():
                print(f"    {times} times: {message}")
            for example in row.examples:
                print(f"    WRONG: {example}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return int(any(row.invalid or row.contradict or row.outside or row.crashed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
