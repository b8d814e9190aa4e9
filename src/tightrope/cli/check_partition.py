"""`check --open`: where in the domain of a parametric model a threshold holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tightrope.cli import options
from tightrope.cli.check_answers import PartFacts, PartitionAnswer, round_seconds
from tightrope.cli.output import Content, Table, common, group, leave, phase_progress, print_json, show, spent
from tightrope.errors import InputError
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.numerics.machine import peak_memory
from tightrope.prism.properties.query import Query
from tightrope.solver.solution import OPEN
from tightrope.verdict import Assessment

if TYPE_CHECKING:
    from tightrope.cli.check import CheckRequest
    from tightrope.cli.sources import AnyLoaded
    from tightrope.coupled.partition import Partition
    from tightrope.io.output import OutputFile

WHOLE_SHARE = 0.05
"""The share of a domain that may stay open unless --open says more."""

NOT_SPLIT = "at policy sets discount terminal_reward assume_support misfit certificate policy_out all_states"
"""Options that do not go with parts of a domain."""


def splits_domain(request: CheckRequest, loaded: AnyLoaded, queries: Sequence[Query]) -> bool:
    """Whether the question is where in the domain a threshold holds: no point is given, and none is known."""
    if request.open_share is not None:
        return True
    is_open = request.at is None and request.sets is None and loaded.benchmark is None
    names = loaded.model.parameters.names if isinstance(loaded.model, ParametricMDP) else ()
    return is_open and bool(names) and all(query.is_threshold for query in queries)


def check_partition(
    request: CheckRequest, loaded: AnyLoaded, queries: Sequence[Query], figure: OutputFile | None
) -> None:
    """Split the domain, print what was decided, draw it."""
    from tightrope.learning.solve import solve_partition
    from tightrope.problem import Problem

    share = WHOLE_SHARE if request.open_share is None else options.parse_share(request.open_share, "--open")
    options.refuse_options(request, NOT_SPLIT, "it does not go with parts of a domain")
    if len(queries) != 1:
        raise InputError(f"a domain is split for one property, not {len(queries)}")
    with phase_progress() as progress:
        progress("solve")
        seconds = math.inf if request.time_limit is None else request.time_limit
        result = solve_partition(Problem(loaded.model, queries[0]), share, seconds)
    if figure is not None and len(result.names) != 2:
        raise InputError(
            f"a figure of parts needs two parameters, and the domain has {len(result.names)}",
            hint="leave --figure out",
        )
    is_done = result.share(OPEN) <= share
    verdict = Assessment.of(limit=None if is_done else f"more than {share:.3g} of the domain is open")
    answer = PartitionAnswer(
        **verdict.facts,
        model=loaded.source,
        question=queries[0].text,
        parameters=result.names,
        holds=result.share("true"),
        fails=result.share("false"),
        open=result.share(OPEN),
        parts=[PartFacts(part.lower, part.upper, part.truth) for part in result.parts],
        status="certified" if is_done else "limit",
        peak_memory=peak_memory(),
        seconds=round_seconds({"build": loaded.seconds, "solve": result.seconds}),
    )
    if common.json:
        print_json(answer)
    else:
        show(*described(answer, result, verdict))
    if figure is not None:
        from tightrope.report.curves import write_partition

        write_partition(result, queries[0].text, figure)
    leave(verdict)


def described(answer: PartitionAnswer, result: Partition, verdict: Assessment) -> tuple[str, Content]:
    """The answer for people; the largest parts are listed."""
    shares = [("holds", answer.holds), ("fails", answer.fails), ("open", answer.open)]
    claim = ", ".join(f"{word} on {100 * share:.1f}%" for word, share in shares)
    largest = sorted(result.parts, key=lambda part: (part.truth == OPEN, -part.volume))
    rows = [
        [*(f"[{low:.5g}, {high:.5g}]" for low, high in zip(part.lower, part.upper, strict=True)), part.truth]
        for part in largest
    ]
    table = Table([*result.names, "holds"], rows, numeric=False)
    more = [("parts", f"{group(len(rows))}, the largest first"), *spent(answer.seconds)]
    first = verdict.headline(f"{answer.question} {claim} of the domain")
    return first, Content((), more, table)
