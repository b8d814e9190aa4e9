"""The independent checker: does a certificate prove its claims?

It derives everything that the proof uses from the problem in the certificate. Hints only help to find
numbers. The theorem: if all checks pass, lower ≤ value at the initial state ≤ upper for every claim. The
value is that of the problem (`tightrope_check.problem`): at the point, for every choice of nature's
within the intervals, for every instantiation in the domain, or with data for the true instantiation, with
probability at least 1 − δ, under what `assumes` lists. `proofs/certificates.md` has the proof;
`tightrope_check.learned` leads from data to sets.

*Bounds of a game's value.* Maximisers own the lower bound L, minimisers the upper bound U. Where the agent is
an owner, its witness alone counts, otherwise all choices do. Nature ANY owns nothing: L holds against its
minimum, U against its maximum. Off the boundary L ≤ Φ(L) and Φ(U) ≤ U, on it L ≤ value ≤ U; a ranking along
which the owners make progress (README) excludes plays that never stop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from tightrope_check.arrays import BoolArray, FloatArray, OffsetArray
from tightrope_check.budget import WorkBudget
from tightrope_check.errors import InputError
from tightrope_check.fields import Field, validate
from tightrope_check.nature import BoundVector, Boxes, moves_always, rows_of
from tightrope_check.numbers import FLOAT64, RATIONAL, Arithmetic, Numbers, OutOfRange, as_fraction
from tightrope_check.problem import Certificate, CertifiedObjective, CertifiedProblem, Claim, ValueHints
from tightrope_check.verdict import Check, Contradiction, Verdict

if TYPE_CHECKING:
    from tightrope_check.learned import Learned

MOST_EXACT_WORK = 20_000_000
"""Transitions that --exact looks at, steps included; small models count as 500 transitions."""

_End = Fraction | float
"""A bound at the initial state, before `complement`; a float is infinite."""


def check(certificate: Certificate, n: Arithmetic = FLOAT64, budget: WorkBudget | None = None) -> Verdict:
    """All checks. An `InputError` where a field does not hold what it should, `OverBudget` where they would
    take more than a budget."""
    with (budget or WorkBudget.of(None, n.exact)).counting():
        return _check(certificate, n)


def _check(certificate: Certificate, n: Arithmetic) -> Verdict:
    if type(certificate) is not Certificate:
        verdict: Verdict = Field("part", of="fleet.check_units").load()(certificate, partial(_check, n=n))
        return replace(verdict, bound=unbound(certificate))
    validate(certificate)
    problem, n = certificate.problem, n if n.is_kept else RATIONAL
    if n.exact and _exact_work(problem) > MOST_EXACT_WORK:
        size = f"{problem.graph.transitions:,} transitions and {max(1, _steps(problem)):,} steps"
        hint = "leave `exact=True` out: the rounding of the check is on the safe side"
        raise InputError(f"{size} are too many for rationals", hint=hint)
    checks, learned, contradicted = list[Check](), None, None
    with np.errstate(all="ignore"):
        try:
            if problem.time is not None:
                from tightrope_check.rates import ends_of

                if ends := ends_of(certificate, n, prove, checks):
                    checks.append(_compare_claim(certificate.claims[0], *ends, problem.objective.range[0]))
            elif problem.law == "domain":
                from tightrope_check.learned import Learned

                learned = Learned(certificate, n)
            if problem.time is None:
                _run(certificate, n, learned, checks)
        except Contradiction as finding:
            who = "the domain contradicts" if problem.data is None else "the data contradict"
            contradicted = f"{who} the model: {finding}"
        except OutOfRange:
            checks.append(Check("range", False, "a number left the range of the arithmetic"))
        except (ValueError, ArithmeticError, LookupError) as error:
            checks.append(Check("hints", False, f"they do not fit the problem: {error}"))
    values = {claim.name: (claim.lower, claim.upper) for claim in certificate.claims}
    whole = contradicted is None and all(one.passed for one in checks)
    planned = learned is not None and whole and learned.statements.planned
    assumed = tuple(problem.assumptions(planned, values))
    kind = "value" if problem.law != "domain" else "learning"
    return Verdict(tuple(checks), values, kind, assumed, unbound(certificate), contradicted)


def _steps(problem: CertifiedProblem) -> int:
    """Backups that are made."""
    return max(problem.objective.steps or 0, problem.objective.lower_steps)


def _exact_work(problem: CertifiedProblem) -> int:
    return max(1, _steps(problem)) * max(problem.graph.transitions, 500)


def _run(certificate: Certificate, n: Arithmetic, learned: Learned | None, checks: list[Check]) -> None:
    """What holds of the sets, then of every claim; nothing rests on a check that failed."""
    if learned is not None:
        checks += learned.checks()
        if not all(one.passed for one in checks):
            return
        boxes = learned.model_boxes()
    else:
        from tightrope_check.laws import boxes_of

        boxes, proper_sets = boxes_of(certificate.problem, n)
        checks += proper_sets
    if certificate.problem.automaton is not None and all(one.passed for one in checks):
        from tightrope_check.product import in_product

        certificate, boxes, settled = in_product(certificate, boxes)
        checks.append(settled)
    for number, claim in enumerate(certificate.claims):
        if all(one.passed for one in checks):
            proofs = _prove(certificate, number, boxes, learned)
            checks += [replace(one, name=f"{claim.name}: {one.name}") for one in proofs]


def _prove(
    certificate: Certificate, number: int, boxes: Boxes, learned: Learned | None, exactly: bool = False
) -> list[Check]:
    """The proofs of a claim. Where steps are made, which add up what is rounded, and do not prove it in
    float64, they are made again in rationals."""
    problem, claim, hints = certificate.problem, certificate.claims[number], certificate.values[number]
    if claim.pair is not None:
        from tightrope_check.difference import difference_ends

        proofs, (low, high) = difference_ends(certificate, number, learned)
        return [*proofs, _compare_claim(claim, low, high, -inf)]
    if claim.policy == "unknown":
        from tightrope_check.statistics.episodes import improved

        least, most = problem.objective.range
        return [_compare_claim(claim, *improved(problem, claim, least, most), least)]
    checks: list[Check] = []
    ends: list[BoundVector] = []
    for upward in (False, True):
        sets = boxes if learned is None else learned.boxes(boxes, number, upward)
        priced = problem if learned is None else learned.priced(problem, upward)
        if exactly:
            sets = sets.exactly(np.arange(problem.graph.choices))
        proofs, bound = prove(priced, sets, claim, hints, upward)
        checks += proofs
        ends.append(bound)
    passed = all(one.passed for one in checks)
    if passed and ends[1].below(ends[0]).any():
        raise Contradiction(f"no value of the {claim.name} is left at a state")
    low, high = (_at(bound, problem.graph.initial) for bound in ends)
    if learned is not None and learned.hints.coupled and passed:
        from tightrope_check.coupled import coupled_ends

        proofs, (low, high) = coupled_ends(learned, number, (low, high))
        checks += proofs
    if problem.objective.complement:
        low, high = 1 - high, 1 - low
    least, most = (problem if learned is None else learned.priced(problem, False)).objective.range
    low, high = max(low, least), min(high, most)
    if passed and problem.data is not None and problem.data.seen is not None:
        from tightrope_check.statistics.episodes import improved

        low, high = improved(problem, claim, low, high)
    if low > high and all(one.passed for one in checks):
        raise Contradiction(f"no value is left for the {claim.name}")
    last = _compare_claim(claim, low, high, least)
    if not last.passed and _steps(problem) and not exactly and not boxes.n.exact:
        if _exact_work(problem) <= MOST_EXACT_WORK:
            return _prove(certificate, number, boxes, learned, True)
        last = replace(last, detail=f"{last.detail} in float64, and the steps are too many for rationals")
    return [*checks, last]


def _at(vector: BoundVector, state: int) -> _End:
    number = inf if vector.infinite[state] else vector.number[state]
    return float(number) if number in (inf, -inf) else as_fraction(number)


def _compare_claim(claim: Claim, low: _End, high: _End, least: float) -> Check:
    """Is what the claim says no more than what was proved, and a value at all? Compared exactly."""
    if claim.lower < least:
        return Check("the claim", False, f"no value is below {least}")
    failed = [end for end, fails in (("lower", claim.lower > low), ("upper", claim.upper < high)) if fails]
    words = f"the {' and the '.join(failed)} end is not proved" if failed else "at most what was proved"
    return Check("the claim", not failed, words)


def unbound(certificate: Certificate) -> dict[str, bool | None]:
    """What a certificate could be tied to, and is not yet; None where it speaks of no such thing."""
    data = False if certificate.problem.data is not None or hasattr(certificate, "unit") else None
    policy = None if all(claim.policy == "free" for claim in certificate.claims) else False
    known = not any(claim.policy == "unknown" for claim in certificate.claims)  # else the data show it
    pairs = any(claim.pair is not None for claim in certificate.claims)
    baseline = {"baseline": False} if pairs and known else {}
    return {"model": False, "property": False, "data": data, "policy": policy, **baseline}


@dataclass(frozen=True, eq=False)
class Game:
    """An objective over boxes. The agent mixes his choices by `weight`, or is free and has a `witness`.

    `state`: the numbers of the states whose choices these are; all of them, or some.
    """

    n: Arithmetic
    objective: CertifiedObjective
    state: OffsetArray
    choice_start: OffsetArray
    boxes: Boxes
    reward: Numbers
    weight: FloatArray | None = None
    witness: OffsetArray | None = None

    def of_policy(self, choice: OffsetArray) -> Game:
        """The game of a policy: its choices are all there are."""
        states, boxes, reward = np.arange(len(choice) + 1), self.boxes.only(choice), self.reward[choice]
        return replace(self, choice_start=states, boxes=boxes, reward=reward, witness=states[:-1])

    def exactly(self, at: OffsetArray) -> Game:
        """The same at some of these states, in rationals."""
        start, choices = rows_of(self.choice_start, at)
        weight = None if self.weight is None else self.weight[choices]
        witness = None if self.witness is None else (self.witness - self.choice_start[:-1])[at] + start[:-1]
        boxes, reward = self.boxes.exactly(choices), RATIONAL.array(self.reward[choices])
        part = replace(self, n=RATIONAL, state=self.state[at], choice_start=start, boxes=boxes)
        return replace(part, reward=reward, weight=weight, witness=witness)

    @property
    def used(self) -> OffsetArray | slice:
        """The states whose numbers are asked for."""
        return np.union1d(self.state, self.boxes.successor) if self.n.exact else slice(None)

    @property
    def states(self) -> int:
        return len(self.choice_start) - 1

    def agent_owns(self, owner: str) -> bool:
        """Whether it is the agent's witness that counts."""
        return self.weight is None and self.objective.agent == owner

    def choices(self, values: BoundVector, upward: bool) -> BoundVector:
        """Φ_c(values) for every choice: not below it if `upward`, not above it otherwise."""
        maximise = upward if self.objective.nature == "ANY" else self.objective.nature == "MAX"
        expected = self.boxes.bound(values, maximise, upward)
        if self.objective.discount is None and not np.any(self.reward != 0):
            return expected.within(self.n, upward)
        discount = 1 if self.objective.discount is None else self.n.array([self.objective.discount])[0]
        scaled = discount * expected.number
        value = self.reward + scaled
        rounded = (self.reward != 0) | (discount != 1)
        slack = np.where(rounded, self.n.error(4, abs(self.reward) + abs(scaled)), 0)
        return BoundVector(value + slack if upward else value - slack, expected.infinite).within(
            self.n, upward
        )

    def best(self, per_choice: BoundVector, upward: bool) -> BoundVector:
        """What states come to: the agent's optimum, or his mixture."""
        if self.weight is not None:
            from tightrope_check.special import mix

            return mix(self, per_choice, upward)
        starts = self.choice_start[:-1]
        if len(starts) == len(per_choice.number):
            return per_choice
        number, infinite, most = per_choice.number, per_choice.infinite, self.objective.agent == "MAX"
        hidden = number.min() if most else np.where(infinite, number.min(), number).max()
        optimum, reached = (np.maximum, np.logical_or) if most else (np.minimum, np.logical_and)
        best = optimum.reduceat(np.where(infinite, hidden, number), starts)
        return BoundVector(best, reached.reduceat(infinite, starts))


class Play:
    """A bound of a game's value under a ranking of the states, at the game's states: all, or some."""

    def __init__(self, game: Game, bound: FloatArray, ranking: OffsetArray, upward: bool):
        self.game, self.boxes, self.bound, self.ranking = game, game.boxes, bound, ranking
        self.upward, self.owner = upward, "MIN" if upward else "MAX"
        self.state = np.repeat(game.state, np.diff(game.choice_start))

    @cached_property
    def value(self) -> BoundVector:
        """The bound, as far as it is used here."""
        return BoundVector.of(self.game.n, self.bound, self.game.used)

    @cached_property
    def per_choice(self) -> BoundVector:
        """What choices come to under the bound."""
        return self.game.choices(self.value, self.upward)

    def everywhere(self, holds: Callable[[Play], BoolArray]) -> BoolArray:
        """At which states something holds: asked of all, and in rationals where that leaves it open."""
        sure = holds(self)
        if not self.game.n.exact and len(left := np.flatnonzero(~sure)):
            again = Play(self.game.exactly(left), self.bound, self.ranking, self.upward)
            sure[left] = holds(again)
        return sure

    def towards(self, absorbed: BoolArray, earns: bool = False) -> BoolArray:
        """States where the owners move to `absorbed` or a smaller rank with positive probability; choices
        that earn something count as moving on if `earns`."""
        n, game = self.boxes.n, self.game
        result = (game.reward > 0) & earns
        strict = None
        for rows, table, single in self.boxes.blocks():
            successor = self.boxes.successor[table]
            good = absorbed[successor] | (self.ranking[successor] < self.ranking[self.state[rows]][:, None])
            lower, upper = self.boxes.rows(table)
            if game.objective.nature == self.owner and not single:
                from tightrope_check.special import moves_willingly, strict_choices

                strict = strict_choices(self) if strict is None else strict
                there = self.value.take(successor)
                moves = moves_willingly(n, lower, upper, good, there, strict[rows], self.owner)
            else:
                moves = moves_always(n, lower, upper, good)
            result[rows] |= moves
        return self.by_state(result, np.zeros(len(result), dtype=np.bool_))

    def by_state(self, moves: BoolArray, stays: BoolArray) -> BoolArray:
        """From choices to states: the witness's, all of an opponent's, or a mixture.

        A mixture moves if one of its choices does, and stays only if all of them do.
        """
        game, starts = self.game, self.game.choice_start[:-1]
        if game.weight is not None:
            used = game.weight > 0
            whole = np.logical_and.reduceat(stays | ~used, starts)
            return np.asarray(whole | np.logical_or.reduceat(moves & used, starts))
        if game.agent_owns(self.owner) and game.witness is not None:
            return np.asarray((moves | stays)[game.witness])
        return np.logical_and.reduceat(moves | stays, starts)


def prove(
    problem: CertifiedProblem, boxes: Boxes, claim: Claim, hints: ValueHints, upward: bool
) -> tuple[list[Check], BoundVector]:
    """The checks behind one of the two bounds, and the bound of every state if they pass."""
    n, objective, graph = boxes.n, problem.objective, problem.graph
    reward = n.zeros(graph.choices) if objective.reward is None else n.array(objective.reward)
    whole = Game(n, objective, np.arange(graph.states), graph.choice_start, boxes, reward)
    if claim.choice is not None:
        game = whole.of_policy(claim.choice)
    else:
        game = replace(whole, weight=claim.weight, witness=hints.witness)
    if objective.steps is not None:
        from tightrope_check.special import value_of_steps

        return [], value_of_steps(whole, game, claim, upward, problem)
    bound = hints.upper if upward else hints.lower
    ranking = hints.lower_ranking if not upward or hints.upper_ranking is None else hints.upper_ranking
    assert bound is not None
    if objective.kind in ("DISCOUNTED", "AVERAGE"):
        ranking = np.zeros(game.states, dtype=np.int64)
    owner, side = ("MIN", "upper") if upward else ("MAX", "lower")
    if ranking is None or (game.agent_owns(owner) and game.witness is None):
        missing = Check("hints", False, "a ranking or the agent's witness is missing")
        return [missing], BoundVector.of(game.n, bound)
    play, bias = Play(game, bound, ranking, upward), hints.upper_bias if upward else hints.lower_bias
    if bias is not None:
        from tightrope_check.special import bounds_average

        wrong = ~play.everywhere(partial(bounds_average, bias_of=bias))
        name = f"the {side} gain and its bias bound the average"
        return [Check.everywhere(name, wrong, "state")], play.value
    checks = [Check.everywhere(f"the {side} bound is inductive", ~play.everywhere(_is_inductive), "state")]
    if objective.kind != "DISCOUNTED" and checks[0].passed:
        checks += _stops(play)
    value = play.value
    if objective.lower_steps > 0:
        from tightrope_check.special import value_of_steps

        value = value_of_steps(whole, game, claim, upward, problem, value)
    return checks, value


def _is_inductive(play: Play) -> BoolArray:
    """Where the inequality holds for the bound, or what it must be on the boundary."""
    game, upward, at = play.game, play.upward, play.game.state
    boundary, given = game.objective.boundary(len(play.bound))
    bound, own = play.bound[at], play.value.take(at)
    witness = game.witness if game.agent_owns(play.owner) else None
    backed = game.best(play.per_choice, upward) if witness is None else play.per_choice.take(witness)
    off = own.below(backed) if upward else backed.below(own)
    wrong = np.where(boundary[at], given[at] > bound if upward else given[at] < bound, off)
    if upward and game.objective.kind in ("UNTIL", "TOTAL"):
        wrong |= bound < 0
    return np.asarray(~wrong)


def _stops(play: Play) -> list[Check]:
    """What the inequality alone leaves open: does the play stop?"""
    game, bound, kind = play.game, play.bound, play.game.objective.kind
    boundary, _ = game.objective.boundary(len(bound))
    if kind != "UNTIL":
        used = ~boundary[play.state]
        if game.weight is not None:
            used &= game.weight > 0
        if np.any(used & (game.reward < 0)):
            return [Check("rewards", False, "a negative reward voids the argument for unbounded rewards")]
    finite, checks = np.isfinite(bound), list[Check]()

    def ask(words: str, needed: BoolArray, holds: Callable[[Play], BoolArray]) -> None:
        sure = play.everywhere(lambda some: ~needed[some.game.state] | holds(some))
        checks.append(Check.everywhere(words, ~sure, "state"))

    if play.upward:
        if kind == "REACH_REWARD":
            words = "the play behind the upper bound reaches the target"
            ask(words, finite & ~boundary, lambda some: some.towards(boundary))
        return checks
    if kind != "REACH_REWARD":
        needed, absorbed = ~boundary & finite & (bound > 0), boundary | (bound <= 0)
        ask("the play behind the lower bound stops", needed, lambda some: some.towards(absorbed, True))
    if (endless := ~boundary & ~finite).any():
        from tightrope_check.special import earns_forever, misses

        words, sure = "the reward never ends", earns_forever
        if kind == "REACH_REWARD":
            words, sure = "the target is missed", misses
        ask(f"{words} where the lower bound is infinite", endless, lambda some: sure(some, endless))
    return checks
