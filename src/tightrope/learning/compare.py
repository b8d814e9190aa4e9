"""`compare` and `improve`: by how much policies are better than a baseline, and which one is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from tightrope.errors import InputError, check_type, describe
from tightrope.learning.differences import UNIFORM, Comparison, Differences, KeptText
from tightrope.learning.options import LearnOptions, LearnWords, spell_out
from tightrope.learning.pipeline import Progress
from tightrope.model.continuous import Continuous
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.problem import Problem, problem_of


def refuse_rates() -> InputError:
    """Why models in continuous time are not compared."""
    return InputError(
        "a chain in continuous time has no choices: there is one policy, and nothing to compare it with",
        hint="learn about each design as a model of its own; where something is decided, write the jumps as "
        "an mdp, whose choices are what is compared",
    )


def differences(
    problem: Problem,
    data: Any,
    baseline: PolicyGiven | str,
    delta: float,
    options: LearnOptions,
    progress: Progress | bool | None = None,
) -> Differences:
    """All differences to a baseline over one region; of long-run averages by cycles."""
    if isinstance(problem_of(problem).model, Continuous):
        raise refuse_rates()
    if problem_of(problem).query.kind is QueryKind.LONG_RUN:
        from tightrope.learning.average_differences import AverageDifferences

        return AverageDifferences.start(problem, data, baseline, delta, options, progress)
    return Differences.start(problem, data, baseline, delta, options, progress)


@spell_out()
def compare(
    problem: Problem,
    data: Any,
    policy: PolicyGiven | Mapping[str, PolicyGiven] | Sequence[PolicyGiven],
    baseline: PolicyGiven | str = UNIFORM,
    *,
    delta: float = 0.001,
    progress: Progress | bool | None = None,
    **options: Unpack[LearnWords],
) -> Comparison:
    """How much better a policy is than a baseline, for certain: the difference of their values.

    * `policy`: one policy, or several by their names or in a list; also time-varying and finite-memory ones.
    * `baseline`: a policy, "uniform", "do-nothing" (the first choice of every state), or "logged": what was
      done in the episodes of the log, by whatever policy.
    * `options` are those of `learn`; the region is built once, and all differences hold together.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(2000, seed=1)
    >>> best = tr.solve(bench.at_truth).policy
    >>> result = tr.compare(bench.problem, data, best, "uniform", delta=0.05)
    >>> result.interval.lower > 0.0
    True
    """
    chosen = LearnOptions.of("compare", options)
    table = differences(problem, data, baseline, delta, chosen, progress)
    named = _named(policy, table.problem.base)
    table.cut(list(named.values()))
    rows = tuple(table.difference(name, one) for name, one in named.items())
    return table.result(rows, table.order(rows))


@spell_out()
def improve(
    problem: Problem,
    data: Any,
    *,
    baseline: PolicyGiven | str = UNIFORM,
    keep: Sequence[str] = (),
    delta: float = 0.001,
    progress: Progress | bool | None = None,
    **options: Unpack[LearnWords],
) -> Comparison:
    """The policy with the largest certified improvement over a baseline; never worse than it.

    `keep` are properties that the new policy must keep, such as 'P>=baseline [ !"crash" U "goal" ]' or
    'R{"cost"}<=baseline+5 [ F "done" ]': they hold over the same region, without more of δ. Where no policy
    is certified to be better the baseline itself is the answer.

    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(2000, seed=1)
    >>> tr.improve(bench.problem, data, baseline="do-nothing", delta=0.05).improvement > 0.0
    True
    """
    chosen = LearnOptions.of("improve", options)
    check_type("keep", keep, str | Sequence, "a list of properties")
    table = differences(problem, data, baseline, delta, chosen, progress)
    wanted = [KeptText.of(text, table.problem) for text in ([keep] if isinstance(keep, str) else keep)]
    return table.improve(wanted)


def _named(policy: Any, model: Any) -> dict[str, Policy]:
    """Policies by their names; those in a list are numbered from 1."""
    is_table = isinstance(policy, Mapping) and any(isinstance(one, Policy) for one in policy.values())
    if is_table:
        given = dict(policy)
    elif isinstance(policy, list | tuple) and policy and isinstance(policy[0], Policy):
        given = {f"policy {number}": one for number, one in enumerate(policy, start=1)}
    else:
        given = {"the policy": policy}
    result: dict[str, Policy] = {}
    for name, one in given.items():
        own = as_policy(model, one)
        if own is None:
            raise InputError(f"`policy` is {describe(one)}, not a policy")
        result[str(name)] = own
    return result
