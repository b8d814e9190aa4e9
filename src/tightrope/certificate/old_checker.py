"""The independent checker: does the certificate prove its claim?

It imports nothing of the solver and trusts nothing but the problem written in the file. Write
Φ_c(x) = r(c) + γ·opt_{p ∈ P(c)} p·x for one choice and Φ(x)(s) for the agent's optimum over the
choices of s (the policy's alone where it is fixed). *Owners* of a bound are those who want it:
maximisers own the lower bound L, minimisers the upper bound U. Where the agent is an owner, his
policy is the witness and only its choice counts; otherwise all choices do.

1. L ≤ Φ(L) and Φ(U) ≤ U away from the boundary, and L ≤ boundary value ≤ U on it, with rounding on
   the safe side. Boundary: targets (1, or their terminal value), and for `allowed U target` the states
   that are neither (0).
2. What else is needed depends on the objective.
   * UNTIL. V is the least fixpoint, so Φ(U) ≤ U, U ≥ 0 gives V ≤ U (Tarski). For L: at every state with
     L > 0 outside the targets the owners make progress, that is move with positive probability to a
     smaller rank, a target or a state with L = 0, whatever the others do. P(c) is compact, so the play
     stops almost surely, and L along the play is a bounded submartingale: L ≤ V.
   * REACH_REWARD, r ≥ 0. U finite: minimisers make progress towards the targets on {U < ∞}, which no
     play leaves since Φ(U) ≤ U < ∞; U plus the reward so far is a supermartingale: V ≤ U. L finite: a play
     that misses the target counts ∞, one that reaches it satisfies L ≤ E[reward + terminal], L being
     bounded. L = ∞: maximisers, against every answer, either reach a smaller rank within {L = ∞} with
     positive probability or stay within ranks no larger surely; by induction on the rank the target is
     missed with positive probability.
   * TOTAL, r ≥ 0. V is the least fixpoint above 0: U ≥ 0 with Φ(U) ≤ U suffices. L finite: progress as for
     UNTIL, where a choice with positive reward counts as progress too: it is left after finitely many
     steps or the total is infinite. L = ∞: with the layer of s being ranking[s] // (|S| + 1): a smaller layer
     is reached with positive probability, or the layer is never left and (r > 0 or a smaller
     rank within the layer follows with positive probability).
   * DISCOUNTED: Φ is a contraction; 1 suffices.
   * Step-bounded: the bounded number of backups is made again, and must lie within [L, U].
3. The policy picks choices of its states.

Everything is plain NumPy; `tightrope.certificate.exact` does the same in rationals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.certificate.certificate import Certificate, Claim, Problem
from tightrope.certificate.inner import Box, Extended
from tightrope.certificate.progress import Progress
from tightrope.certificate.sets import box_of, proper_sets
from tightrope.certificate.shape import Check, shape_check
from tightrope.numerics.arrays import BoolArray, FloatArray

SIDES = ("upper", "lower")


def verify(certificate: Certificate) -> list[Check]:
    """All checks in order; the certificate is valid when all have passed."""
    problem, claim = certificate.problem, certificate.claim
    shape = shape_check(problem, claim)
    if not shape.passed:
        return [shape]
    operator = Operator(problem, claim, box_of(problem))
    checks = [shape, proper_sets(operator.sets)]
    if not checks[-1].passed:
        return checks
    for side in SIDES:
        checks += prove_side(operator, side)
    return [*checks, _verdict("lower ≤ upper", claim.lower > claim.upper, claim.lower)]


def prove_side(operator: Operator, side: str) -> list[Check]:
    """The checks behind one of the two bounds. They say nothing of the other one."""
    operator = operator.of_fixed_policy()
    problem, claim, upward = operator.problem, operator.claim, side == "upper"
    if is_bounded(problem):
        return [_bounded(operator, upward)]
    if problem.lower_steps > 0:
        tail = Operator(problem, tail_of(claim), operator.sets)
        return [_inductive(tail, upward), *_ranked(tail, upward), _after_steps(operator, upward)]
    return [_inductive(operator, upward), *_ranked(operator, upward)]


def is_bounded(problem: Problem) -> bool:
    """Whether a number of backups known in advance gives the value."""
    return problem.upper_steps is not None or problem.kind == "NEXT"


def tail_of(claim: Claim) -> Claim:
    """The claim about what is left after the first steps."""
    assert claim.tail_lower is not None and claim.tail_upper is not None
    return replace(claim, lower=claim.tail_lower, upper=claim.tail_upper)


class Operator:
    """Φ_c and Φ as enclosures, over boxes or over sets within boxes."""

    def __init__(self, problem: Problem, claim: Claim, sets: Box):
        self.problem, self.claim, self.sets = problem, claim, sets
        self.discount = np.longdouble(1 if problem.discount is None else problem.discount)
        self.reward = (
            np.zeros(len(problem.transition_start) - 1) if problem.reward is None else problem.reward
        )
        self._last: tuple[FloatArray, bool, Extended] | None = None

    def of_fixed_policy(self) -> Operator:
        """Where the policy is given, its choices are all there are."""
        problem, claim = self.problem, self.claim
        if claim.policy_kind != "fixed" or claim.policy is None:
            return self
        states = np.arange(len(claim.policy) + 1)
        sets = self.sets.only(claim.policy)
        kept = replace(
            problem,
            choice_start=states,
            transition_start=sets.transition_start,
            successor=sets.successor,
            reward=None if problem.reward is None else problem.reward[claim.policy],
            probability=None,
            lower=None,
            upper=None,
            expression=None,
        )
        return Operator(kept, replace(claim, policy=states[:-1]), sets)

    def choices(self, values: FloatArray, upward: bool) -> Extended:
        """Φ_c(values), rounded up or down, for every choice."""
        if self._last is None or self._last[0] is not values or self._last[1] != upward:
            self._last = values, upward, self._backed(values, upward)
        return self._last[2]

    def _backed(self, values: FloatArray, upward: bool) -> Extended:
        if self.problem.sets == "interval":
            maximise = self.problem.nature == "MAX"
        else:  # the one true distribution is somewhere in the box: take the worst
            maximise = upward
        low, high = self.sets.optimum(values, maximise)
        value = self.reward + self.discount * (high if upward else low)
        size = np.abs(self.reward) + np.abs(high if upward else low)
        slack = np.where(np.isfinite(size), 4 * np.finfo(np.longdouble).eps * size, 0)
        slack[(self.reward == 0) & (self.discount == 1)] = 0
        return value + slack if upward else value - slack

    def strict(self, bound: FloatArray, upward: bool) -> BoolArray:
        """Choices where the inequality for `bound` is strict; of a mixture, where the mixture's is."""
        per_choice = self.choices(bound, upward)
        of_choice = np.repeat(bound, np.diff(self.problem.choice_start))
        if self.claim.policy_kind == "randomised":
            mixed = self.states(per_choice, upward, own=False)
            per_choice = np.repeat(mixed, np.diff(self.problem.choice_start))
        result: BoolArray = (per_choice < of_choice) if upward else (per_choice > of_choice)
        return result

    def states(self, per_choice: Extended, upward: bool, own: bool) -> Extended:
        """The agent's optimum; his witness policy alone where he owns the bound."""
        problem, claim = self.problem, self.claim
        if claim.policy_kind == "randomised":
            assert claim.weight is not None
            used = claim.weight > 0
            terms = np.where(used, claim.weight * np.where(used, per_choice, 0), 0)
            total = np.add.reduceat(terms, problem.choice_start[:-1])
            count = np.diff(problem.choice_start)
            mixed = (
                np.add.reduceat((used & (claim.weight != 1)).astype(np.int64), problem.choice_start[:-1]) > 0
            )
            size = np.add.reduceat(np.abs(terms), problem.choice_start[:-1])
            # The weights sum to 1 up to 2^-50: what is missing could go to any choice.
            slack = np.where(mixed, size * (2.0**-50 + (count + 2) * np.finfo(np.longdouble).eps), 0)
            slack = np.where(np.isfinite(total), slack, 0)
            if upward:
                most = np.maximum.reduceat(np.where(used, per_choice, -np.inf), problem.choice_start[:-1])
                raised: Extended = np.minimum(total + slack, most)
                return raised
            least = np.minimum.reduceat(np.where(used, per_choice, np.inf), problem.choice_start[:-1])
            lowered: Extended = np.maximum(total - slack, least)
            return lowered
        if claim.policy_kind == "fixed" or own:
            assert claim.policy is not None
            return per_choice[claim.policy]
        best = np.maximum if problem.agent == "MAX" else np.minimum
        result: Extended = best.reduceat(per_choice, problem.choice_start[:-1])
        return result


def _inductive(operator: Operator, upward: bool) -> Check:
    problem, claim = operator.problem, operator.claim
    bound = claim.upper if upward else claim.lower
    boundary, value = boundary_of(problem)
    per_choice = operator.choices(bound, upward)
    owner = "MIN" if upward else "MAX"
    backed = operator.states(per_choice, upward, own=problem.agent == owner)
    wrong = ~boundary & ((backed > bound) if upward else (backed < bound))
    wrong |= boundary & ((value > bound) if upward else (value < bound))
    if problem.kind in ("UNTIL", "TOTAL") and upward:
        wrong |= bound < 0
    return _verdict(f"{'upper' if upward else 'lower'} bound is inductive", wrong, bound)


def _ranked(operator: Operator, upward: bool) -> list[Check]:
    """What the inequality alone leaves open: does the play stop?"""
    problem, claim, reward = operator.problem, operator.claim, operator.reward
    if problem.kind == "DISCOUNTED":
        return []
    used = _used_choices(problem, claim)
    if problem.kind in ("REACH_REWARD", "TOTAL") and np.any(reward[used] < 0):
        return [Check("rewards", False, "a negative reward voids the argument for unbounded rewards")]
    if upward and problem.kind != "REACH_REWARD":
        return []
    progress = Progress(problem, claim, operator.sets)
    boundary, _ = boundary_of(problem)
    bound = claim.upper if upward else claim.lower
    if problem.kind == "UNTIL":
        needed = ~boundary & (bound > 0)
        absorbed = (bound == 0) | _target(problem)
        missing = needed & ~progress.towards(absorbed, "MAX", bound, operator.strict(bound, False))
        return [_verdict("the play behind the lower bound stops", missing, bound)]
    if problem.kind == "REACH_REWARD" and upward:
        finite = ~boundary & np.isfinite(bound)
        missing = finite & ~progress.towards(_target(problem), "MIN", bound, operator.strict(bound, True))
        return [_verdict("the play behind the upper bound reaches the target", missing, bound)]
    endless = ~boundary & np.isinf(bound)
    if problem.kind == "REACH_REWARD":
        unsure = endless & ~progress.misses(endless)
        return [_verdict("the target is missed where the lower bound is infinite", unsure, bound)]
    finite = (bound > 0) & np.isfinite(bound)
    missing = finite & ~progress.towards(bound == 0, "MAX", bound, operator.strict(bound, False), reward)
    unsure = endless & ~progress.earns_forever(endless, reward)
    return [
        _verdict("the play behind the lower bound stops or earns", missing, bound),
        _verdict("the reward never ends where the lower bound is infinite", unsure, bound),
    ]


def _bounded(operator: Operator, upward: bool) -> Check:
    """The backups of a bounded horizon, made again."""
    problem, claim = operator.problem, operator.claim
    states = len(problem.choice_start) - 1
    target = _target(problem) if problem.target is not None else np.zeros(states, dtype=np.bool_)
    allowed = np.ones(states, dtype=np.bool_) if problem.allowed is None else problem.allowed
    steps = 1 if problem.kind == "NEXT" else problem.upper_steps
    assert steps is not None
    reached = np.zeros(states)
    if problem.kind != "CUMULATIVE" and not (problem.kind == "UNTIL" and problem.lower_steps > steps):
        reached[target] = 1
    for step in range(steps, 0, -1):
        backed = operator.states(operator.choices(reached, upward), upward, own=False)
        reached = _to_double(backed, upward)
        if problem.kind == "UNTIL":
            # The state is visited after step − 1 steps: a target counts from lower_steps on.
            counts = target & (step - 1 >= problem.lower_steps)
            reached = np.where(counts, 1.0, np.where(allowed, reached, 0.0))
    bound = claim.upper if upward else claim.lower
    wrong = ~(reached <= bound) if upward else ~(bound <= reached)
    return _verdict(
        f"{steps} backups lie {'below the upper' if upward else 'above the lower'} bound", wrong, bound
    )


def _after_steps(operator: Operator, upward: bool) -> Check:
    """`lower_steps` backups within the allowed states lead from the tail's bound to the claim's."""
    problem, claim = operator.problem, operator.claim
    tail = tail_of(claim)
    reached = tail.upper if upward else tail.lower
    for _ in range(problem.lower_steps):
        backed = operator.states(operator.choices(reached, upward), upward, own=False)
        reached = _to_double(backed, upward)
        if problem.allowed is not None:
            reached = np.where(problem.allowed, reached, 0.0)
    bound = claim.upper if upward else claim.lower
    wrong = ~(reached <= bound) if upward else ~(bound <= reached)
    end = "below the upper" if upward else "above the lower"
    return _verdict(f"{problem.lower_steps} backups of the tail lie {end} bound", wrong, bound)


def _to_double(values: Extended, upward: bool) -> FloatArray:
    rounded = values.astype(np.float64)
    if upward:
        return np.where(rounded < values, np.nextafter(rounded, np.inf), rounded)
    return np.where(rounded > values, np.nextafter(rounded, -np.inf), rounded)


def boundary_of(problem: Problem) -> tuple[BoolArray, FloatArray]:
    """The states whose value is given, and that value."""
    states = len(problem.choice_start) - 1
    value = np.zeros(states)
    if problem.kind in ("TOTAL", "DISCOUNTED"):
        return np.zeros(states, dtype=np.bool_), value
    target = _target(problem)
    if problem.kind == "REACH_REWARD":
        if problem.terminal is not None:
            value[target] = problem.terminal[target]
        return target, value
    value[target] = 1
    if problem.allowed is None:
        return target, value
    return target | ~problem.allowed, value


def _target(problem: Problem) -> BoolArray:
    assert problem.target is not None
    return problem.target


def _used_choices(problem: Problem, claim: Claim) -> BoolArray:
    """Choices whose reward can be earned: all of states off the boundary, or the fixed policy's."""
    choices = len(problem.transition_start) - 1
    state = np.repeat(np.arange(len(problem.choice_start) - 1), np.diff(problem.choice_start))
    boundary, _ = boundary_of(problem)
    used: BoolArray = ~boundary[state]
    if claim.policy_kind == "fixed":
        assert claim.policy is not None
        fixed = np.zeros(choices, dtype=np.bool_)
        fixed[claim.policy] = True
        used &= fixed
    if claim.policy_kind == "randomised":
        assert claim.weight is not None
        used &= claim.weight > 0
    return used


def _verdict(name: str, wrong: BoolArray, bound: FloatArray) -> Check:
    if not wrong.any():
        return Check(name, True, f"at all {len(wrong)} states")
    state = int(np.argmax(wrong))
    return Check(
        name, False, f"fails at {int(wrong.sum())} states, first at state {state} (bound {bound[state]!r})"
    )
