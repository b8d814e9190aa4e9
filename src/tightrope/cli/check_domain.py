"""`tightrope check MODEL --sets S`: a policy's certified interval over all instantiations in a domain."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tightrope import __version__
from tightrope.cli.model_source import LoadedModel
from tightrope.cli.output import leave, memory_text, peak_memory, print_facts, print_json, print_verdict, warn
from tightrope.errors import InputError
from tightrope.io.answers import DomainAnswer
from tightrope.io.coding import to_plain
from tightrope.io.results import Span, assumed_facts
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.text import interval_text
from tightrope.prism.properties.query import Query
from tightrope.problem import Problem

if TYPE_CHECKING:
    from tightrope.io.output import OutputFile
    from tightrope.learning.options import LearnOptions
    from tightrope.learning.result import LearningResult
    from tightrope.model.policy import Policy


class DomainSets(Enum):
    """What nature may pick from, within the domain."""

    EXPRESSION = "expression"
    RECTANGULAR = "rectangular"
    COUPLED = "coupled"


@dataclass(frozen=True, eq=False)
class DomainQuestion:
    """What is asked: a parametric model, a property, sets, and a policy where one is given."""

    source: str
    loaded: LoadedModel
    queries: list[Query]
    sets: DomainSets
    policy: Policy | None
    at: str | None


def check_domain(
    asked: DomainQuestion,
    options: LearnOptions,
    constants: Mapping[str, str],
    certificate: OutputFile | None,
    policy_out: OutputFile | None,
    json: bool,
) -> None:
    """Compute, print the interval, write what is wanted."""
    from tightrope.ambiguity.sets import SetsKind
    from tightrope.certify.certificate_file import as_file
    from tightrope.certify.learned import domain_certificate
    from tightrope.certify.quotients import refuse_quotients
    from tightrope.cli.progress import phase_progress
    from tightrope.learning.domain import over_domain
    from tightrope.logic.product_problem import ProductProblem

    model, problem = _subject(asked)
    query = problem.query
    if certificate is not None and isinstance(problem, ProductProblem):
        raise InputError(
            "--certificate does not go with a temporal formula over a domain", hint="leave --certificate out"
        )
    if certificate is not None:
        refuse_quotients(model, SetsKind(asked.sets.value))
    with phase_progress() as progress:
        fixed, whose = _policy(asked, problem)
        result = over_domain(problem, policy=fixed, progress=progress, **options.words)
        proof = None
        if certificate is not None:
            progress("the certificate")
            about = {
                "tightrope": __version__,
                "model": asked.source,
                "model_hash": model.hash(),
                "constants": dict(constants),
                "property": query.text,
                "policy": whose,
            }
            proof = as_file(domain_certificate(result, about))
    _report(asked, query, result, whose, None if proof is None else next(iter(proof.values.values())), json)
    sys.stdout.flush()  # the answer comes before files, which may fail
    if proof is not None and certificate is not None:
        certificate.check()
        proof.save(certificate.path)
    if policy_out is not None:
        from tightrope.learning.exported import robust_policy

        found = robust_policy(result)
        policy_out.check()
        certified = to_plain(found.certified(result, query.text))
        policy = asked.policy or found.policy
        if isinstance(problem, ProductProblem):
            policy = problem.controller(found.policy)
        policy.save(policy_out.path, model.hash(), certified)
    leave(result.verdict, about=query.text)


def _subject(asked: DomainQuestion) -> tuple[ParametricMDP, Problem]:
    """The model that was named, and the problem: of a temporal formula one about a product."""
    from tightrope.logic.product_problem import product_problem

    model = asked.loaded.model
    if not isinstance(model, ParametricMDP) or not model.parameters.names:
        raise InputError(
            f"--sets speaks of a domain of parameters, and {asked.source} has none",
            hint="leave --sets out: plain and interval models have one value",
        )
    if len(asked.queries) != 1:
        raise InputError(f"--sets goes with one property, not {len(asked.queries)}")
    first = asked.queries[0]
    problem: Problem
    if first.is_plain:
        problem = Problem(model, first)
    else:
        if asked.policy is not None:
            raise InputError(
                f"--policy does not go with {first.text} over a domain: a policy with memory is wanted",
                hint="leave --policy out, or ask at a point",
            )
        problem, reading = product_problem(model, first)
        warn(reading)
    query = problem.query
    if query.is_threshold:
        raise InputError(
            f"{query.text} is true or false, and may be true at some instantiations only",
            hint="ask for the value, Pmax=? [ … ], and compare its bounds",
        )
    return model, problem


def _policy(asked: DomainQuestion, problem: Problem) -> tuple[Policy | None, str]:
    """The policy to evaluate (None: find one), and what it is in words."""
    from tightrope.solver.solve import solve

    if asked.policy is not None:
        if asked.at is not None:
            raise InputError("--policy and --at each name a policy here", hint="leave one of them out")
        return asked.policy, "the given policy"
    if asked.at is None:
        return None, "the most robust policy found"
    model = problem.model
    assert isinstance(model, ParametricMDP)
    best = solve(model.instantiate(asked.loaded.point(asked.at)), problem.objective)
    return best.policy, f"the optimal policy at {asked.at}"


def _report(
    asked: DomainQuestion,
    query: Query,
    result: LearningResult,
    whose: str,
    proved: tuple[float, float] | None,
    json: bool,
) -> None:
    from tightrope.cli.learn_table import list_coupled_facts
    from tightrope.learning.outcome import describe_coupled_value

    interval = result.robust.interval
    names = result.model.parameters.names
    coupled = describe_coupled_value(result.robust.coupled, names)
    verdict = result.verdict
    status = "certified" if verdict.is_proved else "limit"
    if json:
        synthesis = result.synthesis
        answer = DomainAnswer(
            model=asked.source,
            question=query.text,
            verdict=verdict.word,
            why=verdict.why,
            assumptions=assumed_facts(verdict),
            sets=asked.sets.value,
            policy=whose,
            lower=interval.lower,
            upper=interval.upper,
            status=status if coupled is None else coupled.status,
            witness=None if coupled is None else coupled.witness,
            gap=None if coupled is None else coupled.gap,
            coupled=coupled,
            limit=None if synthesis is None else synthesis.limit,
            optimality_gap=None if synthesis is None else synthesis.optimality_gap,
            certificate=None if proved is None else Span(*proved),
            notes=list(result.notes),
            peak_memory=peak_memory(),
            seconds={
                "build": round(asked.loaded.seconds, 6),
                **{phase: round(seconds, 6) for phase, seconds in result.seconds.items()},
            },
        )
        print_json(answer)
        return
    print_verdict(verdict, verdict.headline(str(interval), "over the domain"))
    shown = [
        ("policy", whose),
        ("value", f"{interval} over the domain ({asked.sets.value} sets)"),
        *list_coupled_facts(result),
    ]
    if proved is not None:
        shown.append(("certificate", f"proves {interval_text(*proved)}"))
    shown += [("note", note) for note in result.notes]
    spent = f"{asked.loaded.seconds:.3g} to build, {sum(result.seconds.values()):.3g} to solve"
    print_facts(query.text, [*shown, ("seconds", spent), ("memory", memory_text())])
