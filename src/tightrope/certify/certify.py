"""`certify`: solve a problem and write what proves its value, for `verify` and for anybody else's checker.

The certificate is about the model itself: for a parametric one at a point, about its exact expressions there.
Results of learning write theirs with `LearningResult.certify`; `certify_answer` does it for long-run averages
and temporal formulas.
"""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

from tightrope import __version__
from tightrope.certify.certificate_file import save_certificate
from tightrope.certify.problem import provable, to_problem
from tightrope.certify.solved import refuse_steps, to_certificate
from tightrope.errors import InputError, ReadingWarning
from tightrope.io.output import CERTIFICATE, claim_file
from tightrope.model.mdp import JOINT_BOUNDS, IntervalMDP
from tightrope.model.parameters import Point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import as_policy
from tightrope.problem import Problem, problem_of
from tightrope.solver.solution import Solution
from tightrope.solver.solve_problem import SolveWords, solve


def certify(
    problem: Problem,
    path: str | PathLike[str],
    *,
    at: Point | None = None,
    policy: Any = None,
    precision: float = 1e-6,
    overwrite: bool = False,
    **options: Unpack[SolveWords],
) -> Solution:
    """Solve a problem, of a parametric model `at` a point, and write the certificate of its value.

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
    asked = problem_of(problem)
    model, support = asked.model, options.get("assume_support")
    taken = as_policy(model, policy)
    refuse_steps(taken, asked.objective)
    theta = None
    if isinstance(model, ParametricMDP):
        theta = model.parameters.point({} if at is None else at)
    elif at is not None:
        raise InputError("`at` goes with parametric models, and this one has no parameters")
    claimed = claim_file(Path(path), CERTIFICATE, overwrite)
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
