"""Certificates of controllers that see observations: bounds from both sides, or of one controller.

*Both sides.* The certificate is about the outer model of beliefs (`tightrope.beliefs.graph`) with the chain
of the controller as one choice more of its first belief. Its optimum is on the far side of that over all
controllers (`docs/proofs/values.md`, Beliefs). The claims `value` (the optimum) and `given policy` have the
same bounds. For minimised rewards until a target the controller must reach it almost surely.

*One controller*, given, learned or chosen within intervals: the certificate is about the chain that it makes
of the model. Nature may remember. A claim named `value` would be read as a bound on all controllers, and is
refused.

To compare a certificate, either model is built again from the user's model, property and controller. The
certificate's `beliefs` (expanded, split) only decide what it is compared with; the theorem holds for any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tightrope.beliefs.graph import BEFORE, STOP, SUCCESS, BeliefGraph, safely_rounded
from tightrope.beliefs.question import Question
from tightrope.beliefs.robust import RobustController
from tightrope.beliefs.solve import PartialSolution, evaluate
from tightrope.certify.certificate_file import Shown, shown_value
from tightrope.certify.problem import to_problem
from tightrope.certify.solved import claim_between, to_certificate, to_words, value_hints
from tightrope.errors import CannotCertify, InputError
from tightrope.learning.result import LearningResult
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.policy import Policy
from tightrope.model.pomdp import POMDP, Controller
from tightrope.model.product import chain_of, lift_model, lift_objective
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.problem import Problem
from tightrope.solver.solve import solve
from tightrope_check.problem import Certificate

BELIEFS = ("beliefs", *(f"beliefs {number}" for number in range(2, 41)))
"""The names of texts, of 4,096 characters each, that hold the recipe of beliefs one after the other."""


@dataclass(frozen=True, eq=False)
class BesideBeliefs:
    """The outer model of beliefs with the controller's chain beside it; `choice` is the policy that does what
    the controller does."""

    model: MDP
    objective: Objective
    choice: OffsetArray


def controller_certificate(
    problem: Problem,
    solved: PartialSolution | RobustController | LearningResult,
    theta: Sequence[Fraction],
    precision: float,
    given: Controller | None = None,
    about: Mapping[str, object] | None = None,
) -> tuple[Certificate, Shown]:
    """What proves an answer at a point: both ends of the optimum; the value alone of a given controller, and
    of the one chosen within intervals. Beside it the answer."""
    pomdp, objective = problem.model, problem.objective
    assert isinstance(pomdp, POMDP)
    chosen = solved.controller if isinstance(solved, RobustController) else given
    if chosen is not None or not isinstance(solved, PartialSolution):
        assert chosen is not None
        proof = certificate_of_chain(pomdp, objective, chosen, theta, precision, about or {})
        return proof, shown_value((solved.interval.lower, solved.interval.upper))
    if solved.graph is None:
        raise InputError(f"{problem.text} is decided in the initial state: there is nothing to certify")
    return certificate_of_controller(solved.graph, solved.controller, about), shown_value(solved.bounds)


def certificate_of_chain(
    pomdp: POMDP,
    objective: Objective,
    controller: Controller,
    theta: Sequence[Fraction],
    precision: float,
    about: Mapping[str, object],
) -> Certificate:
    """What proves the value of one controller: at a point, or within the bounds of an interval model."""
    chain, question = chain_problem(pomdp, objective, controller)
    point = theta if isinstance(chain, ParametricMDP) else None
    own = evaluate(pomdp, objective, controller, theta, precision)
    only = Policy.of_choices(chain.structure, np.arange(chain.states))
    return to_certificate(to_problem(chain, question, theta=point), own, only, about)


def chain_problem(
    pomdp: POMDP, objective: Objective, controller: Controller
) -> tuple[MDP | IntervalMDP | ParametricMDP, Objective]:
    """The chain that a controller makes of the model, and the question about it."""
    chain = chain_of(pomdp.structure, controller.policy)
    return lift_model(pomdp.model, chain), lift_objective(objective, chain)


def certificate_of_controller(
    graph: BeliefGraph, controller: Controller, about: Mapping[str, object] | None = None
) -> Certificate:
    """What proves both ends: of the optimum over all controllers, and of this one."""
    built = beside_beliefs(graph, controller)
    problem = to_problem(built.model, built.objective)
    policy = Policy.of_choices(built.model.structure, built.choice)
    free = solve(built.model, built.objective, precision=1e-9, threads=1)
    own = solve(built.model, built.objective, policy=policy, precision=1e-9, threads=1)
    low, high = (own, free) if graph.question.maximises else (free, own)
    hints, of_policy = value_hints(free), value_hints(own, policy)
    if graph.question.maximises:
        hints = replace(
            hints,
            lower=of_policy.lower,
            lower_ranking=of_policy.lower_ranking,
            upper_ranking=hints.upper_ranking if hints.upper_ranking is not None else hints.lower_ranking,
            witness=built.choice.astype(np.int64),
        )
    else:
        ranking = of_policy.upper_ranking if of_policy.upper_ranking is not None else of_policy.lower_ranking
        witness = built.choice.astype(np.int64)
        hints = replace(hints, upper=of_policy.upper, upper_ranking=ranking, witness=witness)
    named = {"value": None, "given policy": policy}
    claims = tuple(claim_between(name, low, high, one, problem.objective) for name, one in named.items())
    parts = re.findall(".{1,4096}", graph.recipe())
    if len(parts) > len(BELIEFS):
        raise CannotCertify("the bounds rest on more beliefs than a certificate names")
    words = {**(about or {}), **dict(zip(BELIEFS, parts, strict=False))}
    return Certificate(problem, claims, (hints, of_policy), about=to_words(words))


def beside_beliefs(graph: BeliefGraph, controller: Controller) -> BesideBeliefs:
    """The model of the certificate, its states in an order that depends on what is expanded alone."""
    question = graph.question
    order, place = [0], {0: BEFORE}
    for number in order:
        for move in graph.moves[number]:
            for behind in move.successor:
                if behind not in place:
                    place[behind] = BEFORE + len(order)
                    order.append(behind)
    renumber = np.zeros(len(graph) + BEFORE, np.int64)
    renumber[STOP] = STOP
    for number, at in place.items():
        renumber[BEFORE + number] = at
    rows = _chain(question, controller, BEFORE + len(order))
    of_states: list[Sequence[_Row]] = [[(0.0, [SUCCESS], [1.0])], [(0.0, [STOP], [1.0])]]
    for number in order:
        own = [(earned, renumber[towards], likely) for earned, towards, likely in graph.rounded[number]]
        of_states.append([*own, *(rows[:1] if number == 0 else [])])
    of_states += [[row] for row in rows[1:]]
    reward, successor, chance = zip(*(row for each in of_states for row in each), strict=True)
    start = np.concatenate([[0], np.cumsum([len(each) for each in of_states])])
    structure = Structure(
        start,
        np.concatenate([[0], np.cumsum([len(one) for one in successor])]),
        np.concatenate(successor),
        initial_states=(BEFORE,),
        declared_mdp=True,
    )
    model = MDP(structure, np.concatenate(chance))
    choice = start[:-1].copy()
    choice[BEFORE] = start[BEFORE + 1] - 1
    if question.must_reach and not question.maximises:
        _check_reaches(rows, BEFORE + len(order))
    return BesideBeliefs(model, _objective(question, model, np.array(reward)), choice)


_Row = tuple[float, Sequence[int] | OffsetArray, Sequence[float] | FloatArray]


def _chain(question: Question, controller: Controller, begin: int) -> list[_Row]:
    """What the controller does: the row of the first state, then those of others, numbered from `begin`."""
    first = (question.first, 0)
    place: dict[tuple[int, int], int] = {}
    queue = [first]
    rows: list[_Row] = []
    for state, node in queue:
        seen = question.looks[question.look[state]][0]
        row = question.rows[state][int(controller.action[node, seen])]
        after = int(controller.following[node, seen])
        towards, likely = [], []
        for behind, weight in zip(row.successor, row.weight, strict=True):
            pair = (behind, after)
            if pair not in place:
                place[pair] = begin + len(place)
                queue.append(pair)
            towards.append(place[pair])
            likely.append(weight / row.total)
        for end, weight in ((SUCCESS, row.success), (STOP, row.total - sum(row.weight) - row.success)):
            if weight:
                towards.append(end)
                likely.append(weight / row.total)
        rows.append((safely_rounded(row.reward, not question.maximises), towards, likely))
    return rows


def _check_reaches(rows: list[_Row], begin: int) -> None:
    """Every state of the chain has a path to success, and none stops elsewhere."""
    sure = {number for number, (_, towards, _) in enumerate(rows) if SUCCESS in towards}
    while True:
        more = {
            number
            for number, (_, towards, _) in enumerate(rows)
            if number not in sure and any(there - begin + 1 in sure for there in towards if there >= begin)
        }
        if not more:
            break
        sure |= more
    if len(sure) < len(rows) or any(STOP in towards for _, towards, _ in rows):
        raise CannotCertify("the controller may miss the target, so the cost is infinite: nothing is proved")


def _objective(question: Question, model: MDP, reward: FloatArray) -> Objective:
    objective, ends = question.objective, np.zeros(model.states, np.bool_)
    ends[SUCCESS] = True
    agent = objective.agent
    if not question.earns:
        return Objective(ObjectiveKind.UNTIL, agent, agent, target=ends, complement=objective.complement)
    earned = RewardStructure(None, reward)
    if question.must_reach:
        return Objective(ObjectiveKind.REACH_REWARD, agent, agent, target=ends, reward=earned)
    return Objective(ObjectiveKind.TOTAL, agent, agent, reward=earned)


def repeated_graph(question: Question, recipe: str) -> BeliefGraph:
    """The beliefs of a certificate's model, made again as it says that they were."""
    if question.first < 0:
        raise CannotCertify(
            "this certificate is about another property: yours is decided in the initial state"
        )
    try:
        return BeliefGraph.repeated(question, recipe)
    except (ValueError, IndexError):
        raise CannotCertify(
            "this certificate is about another model or another property: the beliefs differ"
        ) from None
