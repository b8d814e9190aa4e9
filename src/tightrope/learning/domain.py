"""A parametric model without data: what holds for every instantiation in its domain.

The region is the domain itself, known with certainty, so no confidence is involved: the interval of a policy
contains its value at every instantiation. The sets are those of learning over this region: `expression` and
`rectangular` let nature pick at every choice anew, `coupled` once for the whole run.
"""

from __future__ import annotations

from typing import Unpack

from tightrope.ambiguity.sets import SetsKind
from tightrope.learning.options import LearnOptions, LearnWords
from tightrope.learning.pipeline import Pipeline, Progress
from tightrope.learning.products import require_support_of_domain
from tightrope.learning.result import LearningResult
from tightrope.model.policy import PolicyGiven
from tightrope.problem import Problem

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
    chain = Pipeline.start(problem, None, 0.0, options=asked, policy=policy, progress=progress)
    return chain.result(asked)
