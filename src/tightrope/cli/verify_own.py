"""What `tightrope verify` compares a certificate with: the user's own model, property, data and policy."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tightrope.certificate.problem import Problem
from tightrope.certify.asked import Asked, asked_of
from tightrope.certify.verification import Own
from tightrope.cli.model_source import LoadedModel, load_embedded, load_model
from tightrope.cli.options import parse_constants
from tightrope.cli.output import warn
from tightrope.cli.questions import read_properties
from tightrope.cli.records import refuse_options
from tightrope.errors import CannotCertify, InputError
from tightrope.loading import ModelRequest, is_continuous
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy

if TYPE_CHECKING:
    from tightrope.cli.verify import Request


def own_problem(asked: Request, model_name: str, problem: Problem) -> Own:
    """All that is compared with the problem of a certificate."""
    at_point = problem.law == "point"
    if asked.policy is not None and problem.automaton is not None:
        raise CannotCertify(
            "this certificate is about a temporal formula, and policies with the memory of its automaton: "
            "--policy is not compared with them"
        )
    log = None if asked.data is None else asked.reading.request(asked.data)
    files = () if log is None else log.files()
    timed = is_continuous(model_name)  # certificates are then about the jumps of the chain
    loaded, objective, limit = _load(asked, model_name, timed)
    model, theta, counts = loaded.model, None, None
    if isinstance(model, ParametricMDP) and at_point:
        theta = loaded.point(asked.at)
    elif asked.at is not None and not timed:
        raise InputError("--at goes with certificates about a point, this one is about none")
    if log is not None:
        if not isinstance(model, ParametricMDP):
            raise InputError(f"--data goes with parametric models, {model_name} is none")
        counts = log.read(model, files).counts
    given: Policy | None = None
    if asked.policy is not None:
        from tightrope.model.policy import Policy

        given = Policy(model, asked.policy)
    return Own(model, objective, theta, counts, given, limit)


def _load(
    asked: Request, model_name: str, timed: bool
) -> tuple[LoadedModel, Objective | Asked | None, tuple[str, Fraction] | None]:
    """The model, the objective where a property is given or a benchmark has one, and its threshold."""
    constants = parse_constants(asked.const)
    properties = read_properties([] if asked.prop is None else [asked.prop])
    given = properties.model_constants(constants)
    if timed:
        refuse_options(asked, "discount terminal_reward")
        request = ModelRequest(model_name, parse_constants(given), asked.param, asked.domain)
        loaded = load_embedded(request, asked.at, properties.files)
    else:
        loaded = load_model(model_name, given, asked.param, asked.domain)
    if asked.prop is None and loaded.benchmark is None:
        return loaded, None, None
    queries = properties.queries(loaded, constants, asked.discount, asked.terminal_reward)
    if len(queries) != 1:
        raise InputError(f"a certificate is about one property, not {len(queries)}")
    query = queries[0]
    if not query.is_plain:
        temporal = asked_of(query, asked.ltl_translator)
        if temporal.reading is not None:
            warn(temporal.reading)
        if temporal.sides is not None:
            warn(temporal.sides.warning)
        return loaded, temporal, temporal.limit
    if asked.ltl_translator is not None:
        raise InputError("--ltl-translator goes with temporal formulas: leave it out")
    if query.reading is not None:
        warn(query.reading.warning)
    return loaded, query.objective, query.limit
