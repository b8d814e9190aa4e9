"""How often an answer holds whose model, policy or prior was chosen by looking at the same log.

    python benchmarks/selection_coverage.py                2,000 logs of each system, δ = 0.1
    python benchmarks/selection_coverage.py --smoke        a few
    python benchmarks/selection_coverage.py --only policy weights prior draft doctor --logs 300

Three small chains do what their model cannot say: the next step depends on the state before, on whether a
state was seen before, or on the number of steps so far. Of each, logs of 150 episodes are drawn. `doctor`
chooses an amendment and answers on it, `halves`: on the episodes that it was not chosen on, `e-values`: on
all, at δ/K. A row counts the logs for which an amendment was found that leaves no alarm, and of these the
intervals that miss the truth; `unpaid` are intervals from all data at δ, chosen and learned on the same log.

The other rows use the result of a log on the same log once more, at most 300 logs a row. `policy`: the value
of the robust policy of 20 actions with a parameter each, `weights`: the same with importance weights,
`prior`: the probability of a success in 40 trials, with the result as a prior, three times over. `carried`
are answers as they come: policy and prior say from which data they were made. `unpaid` are those where this
was taken away. `draft`: a chain of seven states with rare successors, drafted from 20 episodes and learned
from these; unpaid without the outcomes elsewhere. `doctor`: the files of `doctor --amend auto` without
--select-on; what is not proved is no answer, so `carried` has none.
Leaves with status 1 where a way that is paid for misses more often than δ by three standard errors.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

import tightrope as tr
from tightrope.data.writing import write_log
from tightrope.prism.load import load_prism_text
from tightrope.statistics.priors import read_priors

DELTA = 0.1
OPTIONS: dict[str, Any] = {"delta": DELTA, "sets": "tied", "outcomes": "none", "seconds": 900.0}
WAYS: dict[str, dict[str, Any]] = {
    "halves": {"select_on": 0.5},
    "e-values": {"select_by": "e-values"},
    "unpaid": {},
}
SYSTEMS: dict[str, tuple[Callable[[list[int]], float], float]] = {
    "the state before": (lambda path: 0.85 if path[-2:-1] == [2] else 0.3, 0.7 / 3 / (1 - 0.15 / 3)),
    "seen before": (lambda path: 0.85 if 1 in path[:-1] else 0.3, 0.7 / 3 / (1 - 0.7 / 3)),
    "steps so far": (lambda path: 0.3 if len(path) == 1 else 0.85, 0.7 / 3 / (1 - 0.15 / 3)),
}
"""The probability of state 1 after state 0 by the path so far, and that of the end before state 1 is met."""


@cache
def problem() -> tr.Problem:
    parameters = tr.Parameters.box(p=(0, 1))
    (p,) = parameters.symbols()
    rows = [
        (0, "go", {1: p, 2: 1 - p}),
        (1, "go", {0: "2/3", 2: "1/3"}),
        (2, "go", {0: "1/3", 1: "1/3", 3: "1/3"}),
        (3, "", {3: 1}),
    ]
    model = tr.build_from_rows(rows, parameters, labels={"met": [1], "end": [3]})
    return tr.Problem(model, 'P=? [ !"met" U "end" ]')


def draw(law: Callable[[list[int]], float], episodes: int, seed: int) -> list[list[tuple[int, str, int]]]:
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(episodes):
        path, steps = [0], []
        while path[-1] != 3:
            chance = rng.random()
            if path[-1] == 0:
                following = 1 if chance < law(path) else 2
            elif path[-1] == 1:
                following = 0 if chance < 2 / 3 else 2
            else:
                following = (0, 1, 3)[int(3 * chance)]
            steps.append((path[-1], "go", following))
            path.append(following)
        result.append(steps)
    return result


def measure(name: str, way: str, logs: int, episodes: int) -> tuple[int, int, float]:
    """Logs that were mended, those of them whose interval misses the truth, and the mean width."""
    law, truth = SYSTEMS[name]
    mended = missed = 0
    width = 0.0
    for seed in range(logs):
        data = tr.read_data(draw(law, episodes, seed), problem().model)
        try:
            found = tr.doctor(
                problem(),
                data,
                delta=DELTA,
                amend="auto",
                seed=seed,
                sets="tied",
                outcomes="none",
                **WAYS[way],
            ).amended
        except tr.CannotCertify:  # nothing was found that an amendment removes
            continue
        assert found is not None and found.result is not None
        if found.examination.alarm:
            continue
        mended += 1
        interval = found.result.interval
        missed += not interval.lower <= truth <= interval.upper
        width += interval.width
    return mended, missed, width / max(mended, 1)


MOST_AGAIN = 300
ACTIONS, GOOD, TRIALS = 10, 0.6, 0.35
"""Actions of each of two stages, how likely each of them succeeds, and a trial of the other system."""


@cache
def stages() -> tr.Problem:
    parameters = tr.Parameters.box(**{f"p{s}{k}": (0, 1) for s in range(2) for k in range(ACTIONS)})
    symbols = iter(parameters.symbols())
    rows: list[Any] = [
        (s, f"a{k}", {s + 1: p, 3: 1 - p}) for s in range(2) for k in range(ACTIONS) for p in (next(symbols),)
    ]
    model = tr.build_from_rows([*rows, (2, "", {2: 1}), (3, "", {3: 1})], parameters, labels={"good": [2]})
    return tr.Problem(model, 'Pmax=? [ F "good" ]')


def policy_again(seed: int, is_carried: bool, **words: Any) -> tuple[tr.Interval, float]:
    """The interval of the robust policy of a log on the same log, and its true value."""
    rng, log = np.random.default_rng(seed), []
    for _ in range(60):
        first = (0, f"a{rng.integers(ACTIONS)}", 1 if rng.random() < GOOD else 3)
        second = (1, f"a{rng.integers(ACTIONS)}", 2 if rng.random() < GOOD else 3)
        log.append([first, second] if first[2] == 1 else [first])
    data = tr.read_data(log, stages().model)
    policy = tr.learn(stages(), data, delta=DELTA, sets="tied", outcomes="none").policy
    if not is_carried:
        policy = tr.Policy(stages().model, policy.probability)
    result = tr.learn(stages(), data, delta=DELTA, sets="tied", policy=policy, **words)
    assert result.value is not None
    return result.value.interval, GOOD**2


@cache
def trial() -> tr.Problem:
    parameters = tr.Parameters.box(p=("1/100", "99/100"))
    (p,) = parameters.symbols()
    rows = [(0, "", {1: p, 2: 1 - p}), (1, "", {1: 1}), (2, "", {2: 1})]
    return tr.Problem(tr.build_from_rows(rows, parameters, labels={"yes": [1]}), 'P=? [ F "yes" ]')


def prior_again(seed: int, is_carried: bool) -> tuple[tr.Interval, float] | None:
    """The interval of a result that was the prior of the next one, three times over; None: it was refused."""
    log = [[(0, "", 1 if u < TRIALS else 2)] for u in np.random.default_rng(seed).random(40)]
    data = tr.read_data(log, trial().model)
    words: dict[str, Any] = {
        "delta": DELTA,
        "region": "likelihood",
        "sets": "rectangular",
        "outcomes": "none",
    }
    result = tr.learn(trial(), data, **words)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(3):
            prior: Any = result.save(f"{folder}/{turn}")
            if not is_carried:
                prior = [f"{one.parameter} ~ beta({one.a}, {one.b})" for one in read_priors(prior)]
            try:
                result = tr.learn(trial(), data, prior=prior, **words)
            except tr.InputError:
                return None
    return result.interval, TRIALS


NAMES = ("s0", "s1", "s2", "s3", "s4", "lost", "done")


def draft_again(seed: int, is_carried: bool) -> tuple[tr.Interval, float] | None:
    """The interval of a drafted model on its own log, and the truth; None: it is not proved."""
    rng, law = np.random.default_rng(seed), np.zeros((5, 7))
    for state in range(5):
        law[state] = 0.9 * rng.dirichlet(np.full(7, 0.15))
        law[state, 6] += 0.1
    rows: list[tuple[int, int, str, str]] = []
    for episode in range(20):
        state, step = 0, 0
        while state < 5:
            following = int(rng.choice(7, p=law[state]))
            rows.append((episode, step, NAMES[state], NAMES[following]))
            state, step = following, step + 1
    log = pa.table(dict(zip(("run", "t", "state", "next_state"), zip(*rows, strict=True), strict=True)))
    text = tr.draft(log, ends="complete").text
    if not is_carried:
        away = "|".join(re.findall(r'"elsewhere_.*" = state=(\d+);', text))
        text = re.sub(rf" \+ free : \(state'=({away})\)|// successors from .*", "", text)
        text = re.sub(rf'  \[\] state=({away}) -> true;|label "elsewhere_.*', "", text)
    model = load_prism_text(text)
    if "done" not in model.structure.labels or not model.parameters:
        return None
    data = tr.read_data(log, model, ends="complete")
    result = tr.learn(tr.Problem(model, 'P=? [ F "done" ]'), data, delta=DELTA, outcomes="none")
    truth = float(np.linalg.solve(np.eye(5) - law[:, :5], law[:, 6])[0])
    return (result.interval, truth) if result.verdict.is_proved else None


def doctor_again(seed: int, is_carried: bool) -> tuple[tr.Interval, float] | None:
    """The interval that follows from the files of an amended model, and the truth; None: it is not proved."""
    law, truth = SYSTEMS["seen before"]
    data = tr.read_data(draw(law, 60, seed), problem().model)
    try:
        found = tr.doctor(problem(), data, amend="auto", **OPTIONS).amended
    except tr.CannotCertify:
        return None
    assert found is not None
    made, text = found.amended, found.amended.prism()
    if not is_carried:
        text = re.sub("// made from data: .*", "", text)
    model = load_prism_text(text)
    with tempfile.TemporaryDirectory() as folder:
        write_log(f"{folder}/log.csv", made.log, made.model.structure, found.counts.design)
        result = tr.learn(tr.Problem(model, problem().text), f"{folder}/log.csv", **OPTIONS)
    return (result.interval, truth) if result.verdict.is_proved else None


AGAIN: dict[str, Callable[[int, bool], tuple[tr.Interval, float] | None]] = {
    "policy": policy_again,
    "weights": partial(policy_again, behaviour="uniform"),
    "prior": prior_again,
    "draft": draft_again,
    "doctor": doctor_again,
}
"""What is made from a log and used on it again."""


def measure_again(name: str, way: str, logs: int) -> tuple[int, int, float]:
    """Logs with an answer, those of them whose interval misses the truth, and the mean width."""
    answers = [one for seed in range(logs) if (one := AGAIN[name](seed, way == "carried")) is not None]
    missed = sum(not interval.lower <= truth <= interval.upper for interval, truth in answers)
    return len(answers), missed, sum(one.width for one, _ in answers) / max(len(answers), 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--episodes", type=int, default=150)
    parser.add_argument("--ways", nargs="+", choices=[*WAYS, "carried"], default=[*WAYS, "carried"])
    parser.add_argument("--only", nargs="+", choices=["amendments", *AGAIN], default=["amendments", *AGAIN])
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    logs, episodes = (1, 70) if options.smoke else (options.logs, options.episodes)
    rows: list[tuple[str, str, int, Callable[[], tuple[int, int, float]]]] = []
    if "amendments" in options.only:
        rows = [
            (name, way, logs, partial(measure, name, way, logs, episodes)) for name in SYSTEMS for way in WAYS
        ]
    fewer = min(logs, MOST_AGAIN)
    for name in (one for one in AGAIN if one in options.only):
        rows += [
            (name, way, fewer, partial(measure_again, name, way, fewer)) for way in ("carried", "unpaid")
        ]
    print(
        f"{'system':18} {'way':9} {'logs':>6} {'mended':>7} {'missed':>7} {'share':>6} {'width':>6} seconds"
    )
    too_many = 0
    for name, way, number, walk in rows:
        if way not in options.ways:
            continue
        begin = time.perf_counter()
        mended, missed, width = walk()
        share = missed / max(mended, 1)
        spent = time.perf_counter() - begin
        print(
            f"{name:18} {way:9} {number:6} {mended:7} {missed:7} {share:6.3f} {width:6.3f} {spent:7.1f}",
            flush=True,
        )
        limit = DELTA + 3 * (DELTA * (1 - DELTA) / max(mended, 1)) ** 0.5
        too_many += way != "unpaid" and share > limit
    return int(too_many > 0)


if __name__ == "__main__":
    sys.exit(main())
