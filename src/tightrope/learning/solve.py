"""`solve`: any problem in, verified bounds out; who answers it follows from the problem.

| the problem | is answered by | what comes out |
|---|---|---|
| one objective about a plain or interval model | `tightrope.solver` | a `Solution` |
| the same, or a temporal formula, with parameters | the chain, over the domain | a `LearningResult` |
| every other property, and chains in continuous time | `tightrope.logic` | an `Answer` |

*Over a domain* the region is the domain itself, known with certainty, so no confidence is involved: the
interval of a policy contains its value at every instantiation. `expression` and `rectangular` sets let nature
pick at every choice anew, `coupled` ones once for the whole run.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, TypedDict, Unpack

from tightrope.ambiguity.sets import SetsKind
from tightrope.errors import InputError, ReadingWarning, check_keywords, check_number, check_type
from tightrope.learning.learn import plain_problem
from tightrope.learning.options import LearnOptions, spell_out
from tightrope.learning.pipeline import Pipeline, Progress
from tightrope.learning.products import require_support_of_domain
from tightrope.learning.result import LearningResult
from tightrope.logic.model_checking import Answer, check_query
from tightrope.logic.operators import Effort
from tightrope.model.continuous import MarkovAutomaton, ParametricCTMC
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import PolicyGiven
from tightrope.numerics.arrays import FloatArray
from tightrope.prism.properties.capabilities import Task
from tightrope.problem import AnyModel, Problem, problem_of
from tightrope.solver.iteration.budget import SolveOptions
from tightrope.solver.solve import solve as solve_objective


class SolveWords(TypedDict, total=False):
    """Further arguments of `solve`."""

    assume_support: float | None
    seconds: float
    iterations: int
    threads: int | None
    device: str
    sets: SetsKind | str
    coupled_gap: float
    ltl_translator: str | None
    controller: bool


DEFAULTS: dict[str, object] = {
    "assume_support": None,
    "seconds": math.inf,
    "iterations": SolveOptions.iterations,
    "threads": None,
    "device": "cpu",
    "sets": "coupled",
    "coupled_gap": LearnOptions().coupled_gap,
    "ltl_translator": None,
    "controller": False,
}
OVER_A_DOMAIN = ("sets", "coupled_gap")
OF_FORMULAS = ("ltl_translator", "controller")


@spell_out(DEFAULTS)
def solve(
    problem: Problem | AnyModel,
    property: str | Objective | None = None,
    *,
    policy: PolicyGiven | None = None,
    precision: float = 1e-6,
    relative: bool = True,
    start: FloatArray | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[SolveWords],
) -> Any:
    """Verified bounds on what a problem asks for.

    * `problem`: a `Problem`, or a model with the `property` beside it. One objective about a plain or
      interval model gives a `Solution`, with the values of all states and a policy that attains the agent's
      one; any other property of docs/properties.md, and chains in continuous time, an `Answer`.
    * A model with parameters gives a `LearningResult`: the interval of the most robust policy found, or of
      the given `policy`, over all instantiations in its domain, without data (`problem.at(p=0.5)` is the
      problem at a point). `sets` are "coupled" unless it is said otherwise, "rectangular" or "expression";
      `coupled_gap` as for `learn`.
    * `policy`: None lets the agent choose; a `Policy`, or what one can be made of, is evaluated.
    * The solve stops when upper − lower ≤ precision·|value| at every state (≤ precision if not `relative`).
    * `start`: values to look from, one per state. A hint: what is returned is verified as ever.
    * `assume_support=EPS` replaces lower bounds of 0 under a positive upper bound by min(EPS, upper):
      nature can then cut no transition.
    * An interval model whose commands synchronise is solved factor by factor (`solution.is_factored`); with
      `assume_support` over the products of their bounds.
    * `seconds`, `iterations`: when to stop refining. The bounds then found hold, and the status says so.
    * `threads` on the CPU: one per core that may be used, at most 8, unless given; the same number gives the
      same bits. `device` is "cpu", or "cuda" for the current GPU.
    * `ltl_translator`: a command that makes LTL a deterministic automaton in HOA: "ltl2tgba -D -G -f {}"; the
      formula is put in place of {}, or written to its standard input. Without it we translate ourselves.
      `controller`: the policy of a temporal formula `P… [ … ]` is wanted, which has a memory.

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
    question = problem_of(problem, property)
    words = check_keywords("solve", SolveWords, options)
    check_number("precision", precision, 0, 1)
    check_type("relative", relative, bool, "True or False")
    model, query = question.model, question.query
    if isinstance(model, ParametricMDP | ParametricCTMC) and model.parameters.names:
        if not isinstance(model, ParametricMDP) or not query.supports(Task.DOMAIN):
            example = ", ".join(f"{name}=…" for name in model.parameters.names)
            raise InputError(
                f"the model has parameters: {', '.join(model.parameters.names)}",
                hint=f"say where to look: problem.at({example})",
            )
        _refuse(words, (*OF_FORMULAS, "start"), start, "bounds over a whole domain")
        if not relative:
            raise InputError("`relative=False` does not go with bounds over a whole domain")
        chosen: dict[str, Any] = {"sets": SetsKind.COUPLED, "precision": precision, **words}
        return solve_over_domain(
            question,
            LearnOptions.of("solve", chosen),
            policy,
            progress,
        )
    _refuse(words, OVER_A_DOMAIN, None, "models without parameters")
    plain: Any = model.instantiate() if isinstance(model, ParametricMDP | ParametricCTMC) else model
    if (
        isinstance(plain, MDP | IntervalMDP)
        and query.plain_objective is not None
        and not any(words.get(name) for name in OF_FORMULAS)
    ):
        own = {name: value for name, value in words.items() if name not in OF_FORMULAS}
        return solve_objective(
            question.with_model(plain),
            policy=policy,
            precision=precision,
            relative=relative,
            start=start,
            **own,
        )
    if policy is not None:
        raise InputError(
            f"`policy` goes with one P or R over a simple path or a reward, and {query.text} is none",
            hint="leave `policy` out",
        )
    _refuse(words, ("iterations", "device", "start"), start, query.text)
    return _check(
        question, plain.untimed if isinstance(plain, MarkovAutomaton) else plain, precision, relative, words
    )


def solve_over_domain(
    problem: Problem,
    options: LearnOptions,
    policy: PolicyGiven | None = None,
    progress: Progress | bool | None = None,
) -> LearningResult:
    """The interval of a policy over all instantiations in the model's domain; of the most robust one found
    where none is given. With a `policy`, `value` and `robust` of the result are both its interval.
    """
    reduced = plain_problem(problem)
    require_support_of_domain(reduced, options)
    chain = Pipeline.start(reduced, None, 0.0, options=options, policy=policy, progress=progress)
    return chain.result(options)


def _check(question: Problem, model: Any, precision: float, relative: bool, words: dict[str, Any]) -> Answer:
    """What model checking says."""
    translator = words.get("ltl_translator")
    if translator is not None:
        check_type("ltl_translator", translator, str, "a command")
    effort = Effort(
        *(precision, relative, words.get("seconds", math.inf), words.get("threads")),
        translator=translator,
        controller=words.get("controller", False),
    )
    answer = check_query(question.query, model, effort, words.get("assume_support"))
    for reading in answer.readings:
        warnings.warn(reading, ReadingWarning, stacklevel=4)
    return answer


def _refuse(words: dict[str, Any], names: tuple[str, ...], start: object, what: str) -> None:
    for name in names:
        if name in words or (name == "start" and start is not None):
            raise InputError(f"`{name}` does not go with {what}", hint=f"leave `{name}` out")
