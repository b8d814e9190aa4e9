"""Watch whether the returns of a policy agree with a guaranteed bound: `PromiseWatch`.

An episode that follows the policy until the objective is decided has its return; one that leaves or is cut
counts the best possible continuation, which is sound whatever its reason. (Excluding such episodes is not.)
Policies with a memory are followed in the product. The model's probabilities are not used.

With returns in [0, 1] and a guaranteed mean of at least m, K_n = Π (1 + λ_i·(m − X_i)), 0 ≤ λ_i ≤ c/(1 − m)
fixed before X_i, is a supermartingale from 1 (Waudby-Smith and Ramdas 2024): it ever reaches 1/α with
probability at most α. Returns without a limit on the unneeded side are cut off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.errors import CannotCertify, InputError
from tightrope.io.results import Anomaly
from tightrope.model.graph.support import Support
from tightrope.model.objective import Objective, ObjectiveKind
from tightrope.model.policy import Policy
from tightrope.model.policy_file import TimeVaryingChoices
from tightrope.model.product import every_transition, first_copy, lift_objective, product_with_memory
from tightrope.model.structure import Structure
from tightrope.monitoring.episode_scores import PathRules
from tightrope.numerics.arrays import AnyArray, BoolArray, FloatArray, OffsetArray
from tightrope.numerics.jit import kernel
from tightrope.numerics.text import bound_text

BOLDNESS = 0.75
"""The largest part c of the capital that a bet may lose."""


class ReturnsWatch:
    """Watch whether returns agree with a guaranteed bound on their mean, at least (`least`) or at most
    `promised`.

    >>> watch = ReturnsWatch(0.9, low=0.0, high=1.0, alpha=0.01)
    >>> for _ in range(8):
    ...     watch.add(0.0)
    >>> watch.alarm, watch.episodes, round(watch.mean, 3)
    (True, 8, 0.0)
    """

    def __init__(self, promised: float, *, low: float, high: float, alpha: float, least: bool = True):
        if not low < high or not math.isfinite(low) or not math.isfinite(high):
            raise InputError(
                f"returns between {low:g} and {high:g} cannot be watched",
                hint="give a finite range of returns",
            )
        self.promised, self.low, self.high, self.alpha, self.least = promised, low, high, alpha, least
        scaled = (promised - low) / (high - low)
        self._bound = scaled if least else 1.0 - scaled
        self.episodes = 0
        self.log_capital = 0.0
        self.first_alarm: int | None = None
        self._sum = 0.0
        self._squares, self._mean = 0.25, 0.5

    def state(self) -> FloatArray:
        """Everything that it has learned, as numbers; `restore` puts it back."""
        learned = self.log_capital, self._sum, self._squares, self._mean
        return np.array((self.episodes, self.first_alarm or 0, *learned), dtype=np.float64)

    def restore(self, state: FloatArray) -> None:
        """Go on from what `state` said of a watch of the same promise."""
        episodes, alarm, self.log_capital, self._sum, self._squares, self._mean = map(float, state)
        self.episodes, self.first_alarm = int(episodes), int(alarm) or None

    @property
    def alarm(self) -> bool:
        return self.first_alarm is not None

    @property
    def mean(self) -> float:
        """The mean return so far."""
        return self._sum / self.episodes if self.episodes else math.nan

    def add(self, value: float) -> None:
        """The return of the next episode."""
        if not self.low <= value <= self.high:
            raise InputError(
                f"episode {self.episodes + 1} returned {value:g}, outside of {self.low:g} to {self.high:g}",
                hint="give a range of returns; unbounded returns have no guaranteed bound",
            )
        x = (value - self.low) / (self.high - self.low)
        x = x if self.least else 1.0 - x
        bet = self._bet()
        self.episodes += 1
        self._sum += value
        if self._bound > 0.0:
            self.log_capital += math.log1p(bet * (self._bound - x)) - 1e-15
        old = self._mean
        self._mean += (x - old) / (self.episodes + 1)
        self._squares += (x - old) * (x - self._mean)
        if self.first_alarm is None and self.log_capital >= math.log(1.0 / self.alpha):
            self.first_alarm = self.episodes

    def _bet(self) -> float:
        """About the growth-optimal bet for the mean and the variance so far; 0 while the promise is kept."""
        gap = self._bound - self._mean
        variance = self._squares / (self.episodes + 1)
        most = BOLDNESS / max(1.0 - self._bound, 1e-9)
        return min(max(gap / (variance + gap * gap), 0.0), most) if gap > 0.0 else 0.0


SHOWN, LEFT, CUT, ELSEWHERE = range(4)
"""How an episode ended: decided, off the policy, cut off, or not begun in the initial state."""

_OPEN, _STATE, _STEP, _SUM, _CARRIED = range(5)


def rules_of(structure: Structure, objective: Objective, policy: Policy) -> PathRules:
    """How the paths of a policy are scored; objectives whose returns cannot be watched are refused."""
    if objective.kind in (ObjectiveKind.TOTAL, ObjectiveKind.DISCOUNTED):
        raise InputError(
            f"no episode shows an {objective.kind.value} in full, so returns cannot be watched",
            hint="ask for a reward until a target or of the first steps, or for a probability",
        )
    followed = np.zeros(structure.choices, np.bool_)
    followed[np.flatnonzero(policy.probability) if policy.steps is None else policy.steps.choice] = True
    try:
        return PathRules.of(structure, objective, followed)
    except CannotCertify as error:
        hint = "watch a probability, or the reward of the first steps"
        raise InputError(f"returns cannot be watched: {error}", hint=hint) from None


class EpisodeReturns:
    """Follows a policy and hands out returns; what does not show is as large as it can be, or as small."""

    def __init__(self, rules: PathRules, policy: Policy, least: bool):
        self.rules, self.rest = rules, rules.rest(least)
        self.carry = np.zeros(_CARRIED)
        structure, runs = rules.structure, policy.steps
        followed = np.ones(structure.choices, dtype=np.bool_)
        if runs is None:
            followed = policy.probability > 0.0
            runs = TimeVaryingChoices.constant(np.full(structure.states, -1, dtype=np.int64))
        source = structure.choice_state[structure.transition_choice]
        self._model = (
            structure.transition_choice.astype(np.int64),
            source.astype(np.int64),
            structure.successor.astype(np.int64),
        )
        self._policy = (followed, runs.start, runs.step, runs.choice)
        self._worth = (rules.gain, rules.decided, rules.early, self.rest)

    @property
    def state(self) -> int:
        """Where the episode is that goes on."""
        return int(self.carry[_STATE])

    def add(self, transition: OffsetArray, begins: BoolArray) -> tuple[FloatArray, OffsetArray]:
        """Events in order, and which of them begin an episode: returns, and how each episode ended."""
        value, ending = np.empty(2 * len(transition) + 1), np.empty(2 * len(transition) + 1, dtype=np.int64)
        result = _follow(
            self._model,
            self._policy,
            self._worth,
            (self.rules.structure.initial, self.rules.first, self.rules.last),
            (np.ascontiguousarray(transition, dtype=np.int64), np.ascontiguousarray(begins)),
            self.carry,
            (value, ending),
        )
        return value[:result], ending[:result]

    def interrupt(self) -> tuple[FloatArray, OffsetArray]:
        """The model does not know how the episode goes on: it is cut off."""
        if self.carry[_OPEN] == 0.0:
            return np.empty(0), np.empty(0, dtype=np.int64)
        self.carry[_OPEN] = 0.0
        return np.array([self.carry[_SUM] + self.rest[self.state]]), np.array([CUT])


@kernel
def _follow(
    model: tuple[OffsetArray, OffsetArray, OffsetArray],
    policy: tuple[BoolArray, OffsetArray, OffsetArray, OffsetArray],
    worth: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    limits: tuple[int, int, int],
    events: tuple[OffsetArray, BoolArray],
    carry: FloatArray,
    result: tuple[FloatArray, OffsetArray],
) -> int:
    choice_of, source_of, successor_of = model
    followed, run_start, run_step, run_choice = policy
    reward, decided, early, rest = worth
    initial, first, last = limits
    transition, begins = events
    value, ending = result
    number = 0
    is_open, state, step, total = carry[_OPEN] != 0.0, int(carry[_STATE]), int(carry[_STEP]), carry[_SUM]
    for i in range(len(transition)):
        choice, source = choice_of[transition[i]], source_of[transition[i]]
        goes_on = is_open and source == state
        if is_open and (not goes_on or (begins[i] and source == initial)):
            value[number], ending[number] = total + rest[state], CUT
            number += 1
            is_open = goes_on = False
        if begins[i] and not goes_on:
            if source != initial:
                value[number], ending[number] = 0.0, ELSEWHERE
                number += 1
                continue
            is_open, state, step, total = True, source, 0, 0.0
            worth_now = decided[state] if first <= 0 else early[state]
            if not np.isnan(worth_now) or last <= 0:
                value[number] = 0.0 if np.isnan(worth_now) else worth_now
                ending[number] = SHOWN
                number += 1
                is_open = False
        if not is_open:
            continue
        used = followed[choice]
        run = run_start[source + 1] - 1
        while run_step[run] > step:
            run -= 1
        if run_choice[run] >= 0:
            used = run_choice[run] == choice
        if not used:
            value[number], ending[number] = total + rest[source], LEFT
            number += 1
            is_open = False
            continue
        total += reward[choice]
        step += 1
        state = successor_of[transition[i]]
        worth_now = decided[state] if first <= step else early[state]
        if not np.isnan(worth_now) or step >= last:
            value[number] = total + (0.0 if np.isnan(worth_now) else worth_now)
            ending[number] = SHOWN
            number += 1
            is_open = False
    carry[_OPEN], carry[_STATE], carry[_STEP], carry[_SUM] = (1.0 if is_open else 0.0), state, step, total
    return number


FAR = 8.0
"""Unlimited returns are cut off at so many times the distance from the other limit to the promise."""


@dataclass(frozen=True)
class Promise:
    """The expected return of `policy` is at least (else at most) `bound`; `name` is what it is called."""

    objective: Objective
    policy: Policy
    bound: float
    least: bool
    name: str = "the policy"


class PromiseWatch:
    """Watches a promise on episodes, and counts those that `left` the policy, were `cut`, or began
    `elsewhere`."""

    def __init__(self, structure: Structure, promise: Promise, alpha: float):
        self.promise = promise
        objective = promise.objective
        raw = 1.0 - promise.bound if objective.complement else promise.bound
        least = promise.least != objective.complement
        if not math.isfinite(raw):
            raise InputError(
                f"a guaranteed bound of {promise.bound:g} cannot be watched: every episode satisfies it"
            )
        self._memory = _Memory(structure, promise.policy) if promise.policy.has_memory else None
        policy = promise.policy
        if self._memory is not None:
            product, policy = self._memory.product, self._memory.policy
            structure, objective = product.structure, lift_objective(objective, product)
        rules = rules_of(structure, objective, policy)
        low, high = _limits(*rules.ends, raw, least)
        if not low <= raw <= high:
            raise InputError(
                f"the guaranteed bound {promise.bound:g} lies outside of what any episode can return, "
                f"{rules.ends[0]:g} to {rules.ends[1]:g}",
                hint="the result is of another model or property",
            )
        self.episodes = EpisodeReturns(rules, policy, least)
        self.returns = ReturnsWatch(raw, low=low, high=high, alpha=alpha, least=least)
        self.left = self.cut = self.elsewhere = 0
        self.first_alarm: int | None = None

    @property
    def alarm(self) -> bool:
        return self.returns.alarm

    @property
    def mean(self) -> float:
        """The mean return so far, in the objective's own terms; what did not show counts as best."""
        mean = self.returns.mean
        return 1.0 - mean if self.promise.objective.complement else mean

    def observe(self, transition: OffsetArray, begins: BoolArray, event: int) -> None:
        """Take in events in order; `event` is the number of the last of them in the log."""
        if self._memory is not None:
            transition = self._memory.follow(transition, begins, self.episodes.state)
        for part in np.split(np.arange(len(transition)), np.flatnonzero(transition < 0)):
            if len(part) and transition[part[0]] < 0:
                self._take(*self.episodes.interrupt(), event)
                part = part[1:]
            self._take(*self.episodes.add(transition[part], begins[part]), event)

    def exclude(self, event: int) -> None:
        """An event that the model does not know."""
        self._take(*self.episodes.interrupt(), event)

    def _take(self, value: FloatArray, ending: OffsetArray, event: int) -> None:
        self.left += int(np.count_nonzero(ending == LEFT))
        self.cut += int(np.count_nonzero(ending == CUT))
        self.elsewhere += int(np.count_nonzero(ending == ELSEWHERE))
        watch = self.returns
        for number in value[ending != ELSEWHERE].tolist():
            watch.add(min(max(number, watch.low), watch.high))
        if watch.alarm and self.first_alarm is None:
            self.first_alarm = event

    def anomaly(self) -> Anomaly:
        """The promise, as something that the data contradict."""
        watch, promise = self.returns, self.promise
        side = "at least" if promise.least else "at most"
        seen = f"{self.mean:.6g} on average over {watch.episodes:,} episodes"
        bound = bound_text(promise.bound, promise.least, 6)
        text = f"{promise.name} returned {seen}; the guaranteed bound is {side} {bound}"
        return Anomaly("returns", text, watch.log_capital)

    def facts(self) -> dict[str, Any]:
        """Plain data: the keys of `returns` in what `watch --json` prints."""
        watch = self.returns
        return {
            "policy": self.promise.name,
            "promised": self.promise.bound,
            "at_least": self.promise.least,
            "episodes": watch.episodes,
            "left_policy": self.left,
            "cut_off": self.cut,
            "elsewhere": self.elsewhere,
            "mean": self.mean if watch.episodes else None,
            "log_e_value": watch.log_capital,
            "alpha": watch.alpha,
            "alarm": self.alarm,
            "first_alarm": self.first_alarm,
        }

    def state(self) -> dict[str, AnyArray]:
        """Everything that was learned; `restore` puts it back."""
        counts = [self.left, self.cut, self.elsewhere, self.first_alarm or 0]
        return {
            "returns_watch": self.returns.state(),
            "returns_open": self.episodes.carry.copy(),
            "returns_counts": np.array(counts, dtype=np.int64),
            "returns_promise": np.array([self.promise.bound, float(self.promise.least)]),
            "returns_policy": np.array(self.promise.policy.digest),
        }

    def restore(self, state: Mapping[str, AnyArray]) -> None:
        """Go on; refused where the state is that of another promise."""
        mine, own = self.state(), ("returns_promise", "returns_policy")
        if not all(name in state and np.array_equal(state[name], mine[name]) for name in own):
            raise InputError(
                "the checkpoint is of another result or policy, or of none",
                hint="watch with the same --result and --policy, or name another file",
            )
        self.returns.restore(np.asarray(state["returns_watch"]))
        self.episodes.carry[:] = state["returns_open"]
        self.left, self.cut, self.elsewhere, alarm = (int(n) for n in state["returns_counts"])
        self.first_alarm = alarm or None


class _Memory:
    """A model with the memory of a policy, and the policy of it that has none."""

    def __init__(self, structure: Structure, policy: Policy):
        model = every_transition(structure)
        self.product, self.policy = product_with_memory(model, policy, Support.of(model))
        built = self.product.structure
        self._initial, self._copy = structure.initial, first_copy(self.product, structure.transitions)
        self._source = structure.choice_state[structure.transition_choice]
        owner = built.choice_state[built.transition_choice].tolist()
        pairs = zip(owner, self.product.transition.tolist(), strict=True)
        self._place = {pair: number for number, pair in enumerate(pairs)}

    def follow(self, transition: OffsetArray, begins: BoolArray, state: int) -> OffsetArray:
        """The events of the product, which was in `state`; −1 for those that no play can meet."""
        after, behind = self.product.structure.successor, self.product.state
        followed = np.empty(len(transition), np.int64)
        for i, (event, is_first) in enumerate(zip(transition.tolist(), begins.tolist(), strict=True)):
            source = self._source[event]
            if is_first and source == self._initial:
                state = self.product.structure.initial
            place = self._place[state, event] if behind[state] == source else self._copy[event]
            followed[i] = place
            state = int(after[place]) if place >= 0 else state
        return followed


def _limits(low: float, high: float, raw: float, least: bool) -> tuple[float, float]:
    """What returns are watched between; the side that is needed must be finite."""
    if not math.isfinite(high if least else low):
        raise InputError(
            "returns of this objective are unbounded, so no number of episodes contradicts the "
            "guaranteed bound",
            hint="watch a probability, the reward of the first steps, or costs with an upper bound",
        )
    if not math.isfinite(high):
        high = low + FAR * max(raw - low, 1e-9)
    if not math.isfinite(low):
        low = high - FAR * max(high - raw, 1e-9)
    if low == high:
        raise InputError(f"every episode returns {low:g}: there is nothing to watch")
    return low, high
