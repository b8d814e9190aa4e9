"""`certify`: solve a problem and write what proves its value, for `verify` and for anybody else's checker.

The certificate is about the model itself: for a parametric one at a point, about its exact expressions there.
That of a learned result is about its guarantees; `certify_answer` does it for long-run averages
and temporal formulas.
"""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, overload

from tightrope import __version__
from tightrope.certify.certificate_file import as_file, save_certificate
from tightrope.certify.learned import certificate_of, domain_certificate
from tightrope.certify.problem import provable, to_problem
from tightrope.certify.solved import refuse_steps, to_certificate
from tightrope.errors import InputError, ReadingWarning
from tightrope.io.output import CERTIFICATE, claim_file, path_of
from tightrope.io.results import Interval
from tightrope.learning.products import base_of
from tightrope.learning.result import LearningResult
from tightrope.model.mdp import JOINT_BOUNDS, IntervalMDP
from tightrope.model.parameters import Point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import as_policy
from tightrope.problem import Problem, problem_of
from tightrope.solver.solution import Solution
from tightrope.solver.solve_problem import SolveWords, solve


@overload
def certify(
    problem: LearningResult, path: str | PathLike[str], *, overwrite: bool = False
) -> dict[str, Interval]: ...


@overload
def certify(
    problem: Problem,
    path: str | PathLike[str],
    *,
    at: Point | None = None,
    policy: Any = None,
    precision: float = 1e-6,
    overwrite: bool = False,
    **options: Unpack[SolveWords],
) -> Solution: ...


def certify(
    problem: Problem | LearningResult,
    path: str | PathLike[str],
    *,
    at: Point | None = None,
    policy: Any = None,
    precision: float = 1e-6,
    overwrite: bool = False,
    **options: Unpack[SolveWords],
) -> Solution | dict[str, Interval]:
    """Solve a problem, of a parametric model `at` a point, and write the certificate of its value.

    Of a result of `learn` the certificate proves its guarantees, and what is returned is the interval of each
    policy; it takes no other options.

    `policy`, `precision` and the other options are those of `solve`; where steps are counted, synchronised
    intervals are their joint bounds, wider than `solve` takes them. A file that is no certificate of ours is
    refused, unless `overwrite` is set.

    >>> import os, tempfile
    >>> import tightrope as tr
    >>> rows = [(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})]
    >>> problem = tr.build_from_rows(rows, labels={"end": [1]}).problem('Pmin=? [ F "end" ]')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solution = tr.certify(problem, os.path.join(folder, "end.cert"))
    ...     verdict = tr.verify(os.path.join(folder, "end.cert"), model=problem.model)
    >>> verdict.valid, verdict.values
    (True, {'value': (1.0, 1.0)})
    """
    if isinstance(problem, LearningResult):
        if options or at is not None or policy is not None:
            raise InputError("a learned result takes no options: its certificate is about what was learned")
        return _certify_result(problem, path_of(path), overwrite)
    asked = problem_of(problem)
    model, support = asked.model, options.get("assume_support")
    taken = as_policy(model, policy)
    refuse_steps(taken, asked.objective)
    theta = None
    if isinstance(model, ParametricMDP):
        theta = model.parameters.point({} if at is None else at)
    elif at is not None:
        raise InputError("`at` goes with parametric models, and this one has no parameters")
    claimed = claim_file(path_of(path), CERTIFICATE, overwrite)
    solved = asked if theta is None else asked.at(theta)
    if isinstance(model, IntervalMDP):
        solved = asked.with_model(provable(model, asked.objective, support))
        if solved.model is not model:
            warnings.warn(JOINT_BOUNDS, ReadingWarning, stacklevel=2)
    solution = solve(solved, policy=taken, precision=precision, **options)
    assumed = support if isinstance(model, IntervalMDP) else None
    about = {
        "tightrope": __version__,
        "model_hash": model.hash(),
        "property": asked.text,
        "at": [str(value) for value in theta or ()],
    }
    proof = to_certificate(
        to_problem(model, asked.objective, theta=theta, assumed_support=assumed), solution, taken, about
    )
    claimed.check()
    save_certificate(proof, claimed.path)
    return solution


def _certify_result(result: LearningResult, path: Path, overwrite: bool) -> dict[str, Interval]:
    claimed = claim_file(path, CERTIFICATE, overwrite)
    about = {"model_hash": base_of(result.problem).hash(), "property": result.problem.text}
    if result.counts is None:
        proof = as_file(domain_certificate(result, about))
    else:
        proof = as_file(certificate_of(result, result.counts, about))
    claimed.check()
    proof.save(claimed.path)
    return {name: Interval(low, high) for name, (low, high) in proof.values.items()}
