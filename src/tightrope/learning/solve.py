"""`solve`: verified bounds for any problem.

| the problem | is answered by | what comes out |
|---|---|---|
| one objective about a plain or interval model | `tightrope.solver` | a `Solution` |
| the same, or a temporal formula, with parameters | the chain, over the domain | a `LearningResult` |
| every other property, with parameters | the hull of the sets | a `LearnedAnswer` |
| every other property, and chains in continuous time | `tightrope.logic` | an `Answer` |
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, Unpack

from tightrope.ambiguity.sets import SetsKind
from tightrope.errors import InputError, ReadingWarning, check_keywords, check_number, check_type
from tightrope.learning.learn import plain_problem, reduction_of
from tightrope.learning.options import LearnOptions, Progress, progress_of, silent, spell_out
from tightrope.learning.pipeline import Pipeline
from tightrope.learning.products import require_support_of_domain
from tightrope.logic.model_checking import Answer, check_query
from tightrope.logic.product_problem import follow, product_problem
from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.pomdp import POMDP, Controller, controller_of
from tightrope.prism.properties.capabilities import QueryKind
from tightrope.problem import AnyModel, Problem, problem_of
from tightrope.solver.solution import Solution, SolveOptions
from tightrope.solver.solve import SolverWords, SolveWords, solve_query
from tightrope.trees.partition import Partition, partition

if TYPE_CHECKING:
    from tightrope.beliefs.robust import RobustController
    from tightrope.beliefs.solve import PartialSolution
    from tightrope.learning.learn import Learned

    Solved: TypeAlias = Solution | Answer | Learned | PartialSolution | RobustController | Partition


class SolveKwargs(SolverWords, total=False):
    """The further arguments of `solve`."""

    coupled_gap: float | None
    misfit: float
    ltl_translator: str | None
    controller: bool


OWN = ("policy", "sets", "open_share", "progress")
DEFAULTS = {
    **{name: getattr(SolveOptions, name, None) for name in SolveKwargs.__annotations__},
    "misfit": LearnOptions.misfit,
}


@spell_out(DEFAULTS)
def solve(
    problem: Problem | AnyModel,
    property: str | Objective | None = None,
    *,
    policy: PolicyGiven | None = None,
    sets: SetsKind | str | None = None,
    open_share: float | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[SolveKwargs],
) -> Solved:
    """Compute verified bounds on the answer of a problem.

    Parameters
    ----------
    problem : Problem
        Or a model, with the `property` beside it.
    policy : Policy, optional
        Evaluate this policy; by default the agent chooses.
    precision, relative : float, bool
        Stop at upper − lower ≤ precision·|value| at every state (≤ precision if not `relative`).
    start : array, optional
        Initial values, one per state; they do not affect validity.
    assume_support : float, optional
        Replace lower bounds of 0 under a positive upper bound by min(assume_support, upper): nature can then
        remove no transition, and synchronised intervals are their joint bounds.
    seconds, iterations : float, int, optional
        Limits of the refinement. The bounds found until then hold, and the status reports the limit.
    threads, device : int, str
        One thread per usable core, at most 8, by default; "cpu", or "cuda" for the current GPU.
    sets, coupled_gap, misfit
        For models with parameters: "coupled" (default), "rectangular" or "expression"; as for `learn`.
    ltl_translator : str, optional
        A command that translates LTL to a deterministic automaton in HOA, "ltl2tgba -D -G -f {}"; the formula
        replaces {}, or is written to its standard input. The default is built in.
    controller : bool
        Return the policy of a temporal formula, which has a memory.
    open_share : float, optional
        For a threshold and a model with parameters: return a `Partition` of the domain into boxes where the
        threshold holds or fails; at most this share of the domain stays open.

    Returns
    -------
    Solution, Answer, LearningResult, LearnedAnswer or Partition
        A `Solution` for one objective of a plain or interval model, an `Answer` for other properties and
        chains in continuous time. Models with parameters give a `LearningResult` over their domain, or a
        `LearnedAnswer`; `problem.at(p=0.5)` is the problem at a point.

    Examples
    --------
    >>> import tightrope as tr
    >>> tr.solve(tr.benchmark("betting(5)").at_truth).is_certified
    True
    >>> model = tr.build_from_rows([(0, "go", {0: 0.5, 1: 0.5}), (1, "stay", {1: 1})], labels={"end": [1]})
    >>> tr.solve(model, 'filter(count, P>=0.4 [ X "end" ])').bounds
    (2.0, 2.0)
    >>> model = tr.load("bench:betting(5)", params={"p": (0.5, 0.6), "q": (0, 0)})
    >>> tr.solve(model, 'Rmax=? [ F "done" ]', sets="rectangular").interval.lower > 0
    True
    """
    words = {**DEFAULTS, **check_keywords("solve", SolveKwargs, options, OWN)}
    question = problem_of(problem, property)
    gap, misfit, translator = (words.pop(name) for name in ("coupled_gap", "misfit", "ltl_translator"))
    effort = SolveOptions(**words, translator=translator)
    check_number("precision", effort.precision, 0, 1)
    check_type("relative", effort.relative, bool, "True or False")
    given = {"policy": policy, "sets": sets, **options, "relative": not effort.relative}
    model, query = question.model, question.query
    if open_share is not None:
        _refuse("parts of a domain", given, "policy start sets ltl_translator")
        if query.kind is QueryKind.LTL and isinstance(model, ParametricMDP):
            question = product_problem(model, query)[0]
            require_support_of_domain(question, LearnOptions(), is_split=True)
        return partition(question, open_share, effort.seconds, progress_of(progress) or silent)
    if isinstance(model, POMDP):
        _refuse("partially observable models", given, "start sets ltl_translator misfit")
        return solve_observed(question, policy, effort)
    if isinstance(model, ParametricMDP | ParametricCTMC) and model.parameters.names:
        if not isinstance(model, ParametricMDP):
            raise InputError(
                f"the model has parameters: {model.parameters.listed}",
                hint=f"say where to look: problem.at({model.parameters.example(', ')})",
            )
        _refuse("bounds over a whole domain", given, "start ltl_translator controller relative")
        is_plain = query.kind in (QueryKind.PLAIN, QueryKind.LTL)
        over = {name: words[name] for name in ("precision", *SolveWords.__annotations__)}
        over["sets"] = (SetsKind.COUPLED if is_plain else SetsKind.EXPRESSION) if sets is None else sets
        over |= {"misfit": misfit, "coupled_gap": LearnOptions.coupled_gap if gap is None else gap}
        return solve_over_domain(question, LearnOptions.of("solve", over), policy, progress)
    _refuse("models without parameters", given, "sets coupled_gap misfit")
    plain = model.instantiate() if isinstance(model, ParametricMDP | ParametricCTMC) else model
    is_one = isinstance(plain, MDP | IntervalMDP) and query.plain_objective is not None
    if is_one and translator is None and not effort.controller:
        del words["controller"]
        return solve_query(question.with_model(plain), policy=policy, **words)
    _refuse(query.text, given, "start")
    chosen = None if policy is None else as_policy(plain, policy)
    if translator is not None:
        check_type("ltl_translator", translator, str, "a command")
    if isinstance(plain, MarkovAutomaton) and not query.options.is_timed:
        plain = plain.untimed
    answer = check_query(query, plain, effort, effort.assume_support, policy=chosen)
    for reading in answer.readings:
        warnings.warn(reading, ReadingWarning, stacklevel=2)
    return answer


def solve_observed(
    question: Problem,
    policy: PolicyGiven | Controller | None,
    effort: SolveOptions,
    point: Sequence[Fraction] = (),
    work: float | None = None,
) -> Solved:
    """Both sides of the optimum over controllers, or the value of one: at a point, or over the domain."""
    from tightrope.beliefs.robust import over_domain, over_intervals
    from tightrope.beliefs.solve import closeness, solve_partial, value_of
    from tightrope.learning.observed import controlled

    pomdp, objective, precision = question.model, question.query.objective, effort.precision
    assert isinstance(pomdp, POMDP)
    close, seconds = closeness(precision), effort.seconds
    given = None if policy is None else controller_of(pomdp, policy)
    if isinstance(pomdp.model, ParametricMDP) and pomdp.model.parameters.names and not point:
        options = LearnOptions.of("solve", {"sets": SetsKind.COUPLED, "precision": precision})

        def result_of(controller: Controller) -> Learned:
            return solve_over_domain(controlled(question, controller), options)

        if given is not None:
            return result_of(given)
        solved: PartialSolution | RobustController = over_domain(pomdp, objective, result_of, close, seconds)
    elif given is not None:
        solved = value_of(pomdp, objective, given, precision, point)
    elif isinstance(pomdp.model, IntervalMDP):
        solved = over_intervals(pomdp, objective, close, seconds)
    else:
        relative = effort.relative
        solved = solve_partial(
            pomdp, objective, point=point, precision=close, relative=relative, seconds=seconds, work=work
        )
    if question.query.is_threshold:
        return replace(solved, truth=question.answer(*solved.bounds))
    return solved


def solve_over_domain(
    problem: Problem,
    options: LearnOptions,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
) -> Learned:
    """The interval of a policy, given or most robust, over all instantiations in the domain."""
    if problem.query.kind not in (QueryKind.PLAIN, QueryKind.LTL):
        reduction = reduction_of(problem)
        chain = Pipeline.start(
            reduction.apply(problem), None, 0.0, options=options, policy=policy, progress=progress
        )
        return reduction.lift(chain, options)
    reduced = plain_problem(problem)
    require_support_of_domain(reduced, options)
    given = None
    is_own = isinstance(policy, Policy) and policy.structure is reduced.model.structure
    if policy is not None and reduced.lift is not None and not is_own:
        given = as_policy(reduced.base, policy)
        assert given is not None
        reduced, policy = follow(reduced, given)
    chain = Pipeline.start(reduced, None, 0.0, options=options, policy=policy, progress=progress)
    chain.steering = given
    return chain.result(options)


def _refuse(what: str, given: Mapping[str, object], names: str) -> None:
    """Refuse arguments that have no meaning for a problem."""
    for name in names.split():
        value = given.get(name)
        if value is not None and not (isinstance(value, int | float) and not value):
            raise InputError(f"`{name}` cannot be used with {what}", hint=f"leave `{name}` out")
