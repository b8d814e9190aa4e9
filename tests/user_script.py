"""What a user writes, for `mypy --strict`: the calls of the library that the pages show. Never run."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_type

import numpy as np

import tightrope as tr
from tightrope.ambiguity.sets import SetsKind
from tightrope.solver.solution import Status


def models() -> tr.ParametricMDP:
    """Where models come from."""
    model = tr.load("model.prism", const={"n": 50, "fair": True}, params={"p": (0.1, "9/10")}, domain="p<=q")
    assert_type(model.hash(), str)
    if not isinstance(model, tr.ParametricMDP):
        raise SystemExit(f"{type(model).__name__} has no parameters")
    parameters = tr.Parameters.box(p=(0.1, Fraction(9, 10)))
    (p,) = parameters.symbols()
    built = tr.build_from_rows([(0, "go", {0: 1 - p, 1: p}), (1, "stay", {1: 1})], parameters)
    arrays = tr.from_arrays(np.array([[[0.5, 0.5], [0.0, 1.0]]]), np.array([1.0, 0.0]), labels={"goal": [1]})
    print(built.states + arrays.states, tr.exact(0.3), model.instantiate(p=0.5, q=0.5).hash())
    plain: tr.MDP = model.instantiate({"p": 0.5, "q": "1/2"})
    plain.save("plain.drn")
    return model


def answers(model: tr.ParametricMDP) -> None:
    """Every call that computes."""
    problem = tr.Problem(model, 'Pmax=? [ F "goal" ]')
    same: tr.Problem = model.problem('Pmax=? [ F "goal" ]')
    data: tr.Reading = tr.read_data("log.parquet", model, columns={"action": "cmd"}, skip_invalid=True)
    result = tr.learn(
        problem, data, delta=0.001, region="polytope", sets=SetsKind.TIED, threads=2, progress=True
    )
    assert_type(result, tr.LearningResult | tr.LearnedAnswer | tr.RateResult)
    print(result.headline(), result.verdict.word, result.ledger.delta)
    if not isinstance(result, tr.LearningResult):
        raise SystemExit(f"no single objective: {result.interval}")
    assert_type(result, tr.LearningResult)
    guarantee: float = result.guarantee
    interval: tr.Interval = result.interval
    widths = {name: interval.width for name, interval in result.parameters.items()}
    print(guarantee, interval.lower, widths, result.policy, same.text)
    for kind, other in tr.learn_all(problem, data, delta=0.001, precision=1e-4).items():
        print(kind.value, other.interval.upper, other.ledger.holds)
    solution = tr.solve(problem.at(p=0.55), seconds=10, device="cpu")
    assert isinstance(solution, tr.Solution)
    print(solution.status is Status.CERTIFIED, solution.lower[0])
    tr.solve(model.instantiate(p=0.5), 'Rmin=? [ F "done" ]', policy=result.policy, threads=4)
    learner: tr.OnlineLearner = tr.online(problem, delta=0.001, sets="expression", states="index")
    update = learner.observe([(0, "go", 1)])
    print(learner.policy(), None if update is None else update.guarantee)
    over_domain = tr.solve(problem, sets="rectangular")
    print(over_domain.interval if isinstance(over_domain, tr.LearningResult) else over_domain)
    diagnosis: tr.Diagnosis = tr.doctor(problem, data, amend="auto", select_on=0.5)
    print(diagnosis.verdict, [one.finding.text for one in diagnosis.findings])
    verdict: tr.Verdict = tr.verify("run.cert", model=model, property=problem.text, data=data)
    print(verdict.valid)


def main() -> None:
    try:
        answers(models())
    except tr.EmptyRegion as error:
        print(error.verdict)
    except tr.InputError as error:
        wrong: ValueError = error
        print(wrong, error.message, error.hint)


if __name__ == "__main__":
    main()
