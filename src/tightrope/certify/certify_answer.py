"""`certify_answer`: what proves a long-run average, or the probability of a temporal formula."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack

from tightrope import __version__
from tightrope.certificate.problem import Certificate
from tightrope.certificate.problem import Problem as Certified
from tightrope.certify.asked import asked_of
from tightrope.certify.average import average_certificate
from tightrope.certify.certificate_file import save_certificate
from tightrope.certify.problem import to_problem
from tightrope.certify.temporal import temporal_certificate
from tightrope.errors import InputError, ReadingWarning, check_keywords, check_number, check_type
from tightrope.io.output import CERTIFICATE, claim_file
from tightrope.model.mdp import JOINT_BOUNDS, MDP, IntervalMDP
from tightrope.model.numbers import Number
from tightrope.model.objective import Objective
from tightrope.model.parameters import Point
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.prism.properties.query import parse_query
from tightrope.prism.properties.resolve import PropertyOptions
from tightrope.problem import Model, constant_texts, require_model
from tightrope.solver.equations.assumed_support import assume_support as with_support
from tightrope.solver.solution import Solution
from tightrope.solver.solve import Limits, solve


class CertifyWords(TypedDict, total=False):
    """Further arguments of `certify_answer`."""

    at: Point | None
    const: Mapping[str, Number | bool] | None
    precision: float
    assume_support: float | None
    ltl_translator: str | None
    overwrite: bool


def certify_answer(
    model: Model, property: str, path: str | PathLike[str], **options: Unpack[CertifyWords]
) -> tuple[float, float]:
    """Write the certificate of one long-run average or one P over a temporal formula; what it proves.

    * `model`: a plain or interval model, or a parametric one `at` a point.
    * `const`, `precision`, `assume_support`, `ltl_translator` as for `answer`.
    * A file that is no certificate of ours is refused, unless `overwrite` is set.

    >>> import os, tempfile
    >>> import tightrope as tr
    >>> rows = [(0, "go", {0: 0.5, 1: 0.5}), (1, "back", {0: 1})]
    >>> model = tr.build_from_rows(rows, labels={"end": [1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     low, high = tr.certify_answer(model, 'S=? [ "end" ]', os.path.join(folder, "end.cert"))
    ...     verdict = tr.verify(os.path.join(folder, "end.cert"), model=model, property='S=? [ "end" ]')
    >>> verdict.valid, low <= 1 / 3 <= high
    (True, True)
    """
    words = check_keywords("certify_answer", CertifyWords, options)
    check_type("property", property, str, "a property's text")
    own, precision = require_model(model), words.get("precision", 1e-6)
    check_number("precision", precision, 0, 1)
    theta, at, solved = None, words.get("at"), own
    if isinstance(own, ParametricMDP):
        theta = own.parameters.point({} if at is None else at)
        solved = own.instantiate(theta)
    elif at is not None:
        raise InputError("`at` goes with parametric models, and this one has no parameters")
    assert not isinstance(solved, ParametricMDP)
    claimed = claim_file(Path(path), CERTIFICATE, words.get("overwrite", False))
    read = PropertyOptions(
        constants=constant_texts(words.get("const")), is_interval=isinstance(own, IntervalMDP)
    )
    query = parse_query(property, own.structure, read)
    asked = asked_of(query, words.get("ltl_translator"))
    if asked.reading is not None:
        warnings.warn(asked.reading, ReadingWarning, stacklevel=2)
    if isinstance(own, IntervalMDP) and own.factored is not None:
        warnings.warn(JOINT_BOUNDS, ReadingWarning, stacklevel=2)
    support = words.get("assume_support")
    problem = to_problem(
        own, asked, theta=theta, assumed_support=support if isinstance(own, IntervalMDP) else None
    )
    about = {"tightrope": __version__, "model_hash": own.hash(), "property": query.text}
    proof = certificate_of_asked(problem, solved, Effort(precision, assume_support=support), about)
    claimed.check()
    save_certificate(proof, claimed.path)
    return proof.claims[0].lower, proof.claims[0].upper


@dataclass(frozen=True)
class Effort:
    """How the parts of a certificate about an average or a temporal formula are solved."""

    precision: float = 1e-6
    relative: bool = True
    assume_support: float | None = None
    limits: Limits = field(default_factory=Limits)
    threads: int | None = None
    device: str = "cpu"


def certificate_of_asked(
    problem: Certified, model: MDP | IntervalMDP, effort: Effort, about: Mapping[str, Any] | None = None
) -> Certificate:
    """The certificate of a long-run average or a temporal formula; `model` is what is solved for it."""
    if isinstance(model, IntervalMDP):
        model = model.without_factors  # what the problem is about
    if effort.assume_support is not None:
        model = with_support(model, effort.assume_support)
    precision = effort.precision / 4 if problem.automaton is None else effort.precision

    def solved(one: MDP | IntervalMDP, objective: Objective, policy: Policy | None = None) -> Solution:
        return solve(
            one,
            objective,
            policy=policy,
            precision=precision,
            relative=effort.relative,
            limits=effort.limits,
            threads=effort.threads,
            device=effort.device,
        )

    if problem.automaton is not None:
        return temporal_certificate(problem, model, solved, about)
    return average_certificate(problem, model, precision, solved, about)
