"""A parametric model without data: what holds for every instantiation in its domain.

The region is the domain itself, known with certainty, so no confidence is involved: the interval of a policy
contains its value at every instantiation. The sets are those of learning over this region: `expression` and
`rectangular` let nature pick at every choice anew, `coupled` once for the whole run.
"""

from __future__ import annotations

import time
from typing import Unpack

from tightrope.ambiguity import sets as uncertainty
from tightrope.ambiguity.sets import SetsKind
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.binding import NOTHING
from tightrope.learning.coupled import Coupler
from tightrope.learning.learn import parametric, progress_of
from tightrope.learning.options import Decisions, LearnOptions, LearnWords
from tightrope.learning.policies import PolicySolver
from tightrope.learning.products import product_notes, require_support_of_domain
from tightrope.learning.result import LearningResult, widths_of
from tightrope.learning.stages import Progress, silent
from tightrope.model.policy import PolicyGiven, as_policy
from tightrope.problem import Problem
from tightrope.regions.bounds import parameter_box
from tightrope.regions.build import domain_region
from tightrope.regions.region import RegionKind
from tightrope.statistics.estimates import IntervalMethod

OVER_THE_DOMAIN = (SetsKind.EXPRESSION, SetsKind.RECTANGULAR, SetsKind.COUPLED)


def over_domain(
    problem: Problem,
    *,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[LearnWords],
) -> LearningResult:
    """The interval of a policy over all instantiations in the model's domain; of the most robust one found
    where none is given.

    `sets` are "coupled" unless it is said otherwise, "rectangular" or "expression". With a `policy`, `value`
    and `robust` of the result are both its interval. The other options are those of `learn` that speak of no
    data.

    >>> import tightrope as tr
    >>> model = tr.load("bench:betting(5)", params={"p": (0.5, 0.6), "q": (0, 0)})
    >>> tr.over_domain(model.problem('Rmax=? [ F "done" ]'), sets="rectangular").interval.lower > 0
    True
    """
    words: LearnWords = {"sets": SetsKind.COUPLED, **options}
    asked = LearnOptions.of("over_domain", words)
    require_support_of_domain(problem, asked)
    model = parametric(problem)
    _refuse_data_options(asked)
    kind, say = asked.sets, progress_of(progress) or silent
    if kind not in OVER_THE_DOMAIN:
        raise InputError(
            f"{kind.value if kind else 'such'} sets come from data, and there are none",
            hint=f"use {', '.join(one.value for one in OVER_THE_DOMAIN)}",
        )
    begin = time.perf_counter()
    say("region: the domain")
    region = domain_region(model)
    if region.emptiness.is_empty:
        raise CannotCertify("the domain is empty: its constraints contradict each other")
    built = time.perf_counter()
    make = uncertainty.expression if kind is SetsKind.EXPRESSION else uncertainty.rectangular
    made = make(region, model)
    solver = PolicySolver(made, problem.objective, asked, begin + asked.seconds, say)
    ready = time.perf_counter()
    given = as_policy(model, policy)
    found = solver.robust() if given is None else solver.evaluate(given)
    optimistic = solver.optimistic()
    synthesis = None
    if kind is SetsKind.COUPLED:
        coupler = Coupler(solver, asked.coupled_gap)
        if policy is None:
            found, synthesis = coupler.robust(found)
        else:
            found = coupler.evaluated(found)
    seconds = {"region": built - begin, "sets": ready - built, "solve": time.perf_counter() - ready}
    return LearningResult(
        problem=problem,
        counts=None,
        options=asked,
        decisions=Decisions(RegionKind.POLYTOPE, kind, IntervalMethod.CLOPPER_PEARSON, ()),
        sets=made,
        region=region,
        intervals=None,
        value=None if given is None else found,
        robust=found,
        optimistic=optimistic,
        widths=widths_of(model, made, parameter_box(region)),
        binding=NOTHING,
        contradiction=None,
        fit=None,
        seconds=seconds,
        notes=tuple(dict.fromkeys((*made.notes, *region.notes, *solver.notes, *product_notes(problem)))),
        synthesis=synthesis,
    )


def _refuse_data_options(options: LearnOptions) -> None:
    """Options that speak of data have no effect without them."""
    default = LearnOptions()
    for name in ("region", "interval", "budget", "ellipsoid", "intersect", "cost_range", "cost_sd"):
        if getattr(options, name) != getattr(default, name):
            raise InputError(
                f"`{name}` speaks of data, and over a domain there are none", hint=f"leave `{name}` out"
            )
