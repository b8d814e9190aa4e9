"""`compare` and `improve`: certified differences to a baseline, and the policy with the largest one.

*Candidates of `improve`*: the user's, the robust policy, the best one at the estimate, the baseline where
data are few with the best one elsewhere; then, repeatedly, the best policy where the best candidate gains
least. No policy can gain more than the smallest optimal gain over all parameters met: that is the `limit`.

*Local search* changes single choices of the best candidate while its least gain over all points met grows.
The result is certified, the point where it gains least joins the points, and so on, until nothing gains more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, Unpack, cast

import numpy as np

from tightrope.coupled.result import CoupledStatus
from tightrope.coupled.value import CoupledLimits, functions_of, rewards_at
from tightrope.errors import InputError, check_type, describe
from tightrope.io.answers import KeptProperty
from tightrope.io.results import Interval
from tightrope.learning import differences as tables
from tightrope.learning.bet_policy import question_of
from tightrope.learning.differences import UNIFORM, Comparison, Difference, Differences
from tightrope.learning.options import LearnKwargs, LearnOptions, Progress, spell_out
from tightrope.model.policy import Policy, PolicyGiven, as_policy
from tightrope.model.policy_file import TimeVaryingChoices
from tightrope.model.structure import Structured
from tightrope.numerics.arrays import FloatArray
from tightrope.problem import Problem
from tightrope_check.search import value_slopes as slopes
from tightrope_check.search.value_slopes import GraphQuestion, PolicyEquations

Policies: TypeAlias = PolicyGiven | Mapping[str, PolicyGiven] | Sequence[PolicyGiven]
"""One policy, several by name, or a list of them."""


@spell_out()
def compare(
    problem: Problem,
    data: object,
    policy: Policies,
    baseline: PolicyGiven | str = UNIFORM,
    *,
    delta: float = 0.001,
    progress: Progress | bool | None = None,
    **options: Unpack[LearnKwargs],
) -> Comparison:
    """Compute certified intervals of the difference between policies and a baseline.

    Parameters
    ----------
    problem, data, delta, progress, **options
        As for `learn`; the region is built once, and all differences hold simultaneously.
    policy : Policy, mapping or sequence
        One policy or several, also time-varying and finite-memory ones.
    baseline : Policy or str
        "uniform", "do-nothing" (the first choice of every state) or "logged" (the unknown behaviour policy).

    Returns
    -------
    Comparison
        One row per policy.

    Examples
    --------
    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(2000, seed=1)
    >>> best = tr.solve(bench.at_truth).policy
    >>> result = tr.compare(bench.problem, data, best, "uniform", delta=0.05)
    >>> result.interval.lower > 0.0
    True
    """
    chosen = LearnOptions.of("compare", options)
    table = tables.differences(problem, data, baseline, delta, chosen, progress)
    named = _named(policy, table.problem.base)
    table.cut(list(named.values()))
    rows = tuple(table.difference(name, one) for name, one in named.items())
    return table.result(rows, table.order(rows))


@spell_out()
def improve(
    problem: Problem,
    data: object,
    *,
    baseline: PolicyGiven | str = UNIFORM,
    keep: Sequence[str] = (),
    candidate: Policies | None = None,
    delta: float = 0.001,
    progress: Progress | bool | None = None,
    **options: Unpack[LearnKwargs],
) -> Comparison:
    """Find the policy with the largest certified improvement over a baseline.

    Parameters
    ----------
    problem, data, delta, progress, **options
        As for `learn`.
    baseline : Policy or str
        As for `compare`.
    keep : sequence of str
        Properties that the new policy must satisfy, such as 'P>=baseline [ !"crash" U "goal" ]' or
        'R{"cost"}<=baseline+5 [ F "done" ]'. Uses no additional δ.
    candidate
        Policies to try and to start from, as `compare` takes them.

    Returns
    -------
    Comparison
        The baseline itself if no policy is certified to be better. The search ends when no other choice in a
        single state has a larger certified improvement.

    Examples
    --------
    >>> import tightrope as tr
    >>> bench = tr.benchmark("betting(5)")
    >>> data = tr.Simulator(bench.at_truth.model, model_hash=bench.model.hash()).episodes(2000, seed=1)
    >>> tr.improve(bench.problem, data, baseline="do-nothing", delta=0.05).improvement > 0.0
    True
    """
    chosen = LearnOptions.of("improve", options)
    check_type("keep", keep, str | Sequence, "a list of properties")
    table = tables.differences(problem, data, baseline, delta, chosen, progress)
    wanted = [tables.KeptText.of(text, table.problem) for text in ([keep] if isinstance(keep, str) else keep)]
    given = {} if candidate is None else _named(candidate, table.problem.base, "candidate")
    search = Search(table, wanted, given)
    return search.over_what_was_done() if table.baseline is None else search.run()


MOST_CERTIFIED, MOST_CORNERS, MOST_ROUNDS, MOST_CHANGED = 10, 16, 40, 400
"""Limits: candidates, corners, certified steps, single changes in a row without a gain."""

CELLS = (100, CoupledLimits.cells)
"""Parts of the region in which the most promising policies are bounded, in two rounds."""

FOUND = "the local search policy"
Change = tuple[int, int]
"""A step, counted from the last, or 0, and a choice."""


class Search:
    """Certifies candidates, the most promising first, and changes the best of them while it pays."""

    def __init__(self, table: Differences, keep: Sequence[tables.KeptText], given: Mapping[str, Policy]):
        self.table, self.keep, self.given = table, keep, given
        self.tried: dict[str, tuple[Difference, tuple[KeptProperty, ...]]] = {}
        self.points, self.optimum = Points(table), table.optimum_over()
        self.waiting: list[tuple[str, Policy]] = []
        self.limit = np.inf
        self.ends = table.maximises, not table.maximises

    def run(self) -> Comparison:
        """Over a known baseline."""
        table = self.table
        self._begin()
        assert table.baseline is not None
        self._add(table.difference(f"{table.name} itself", table.baseline))
        if self.optimum is not None:
            self._meet(table.estimate(), "")
            for corner in table.corners(MOST_CORNERS):
                self._meet(corner, "the best at a corner of the region")
        for name, policy in self.given.items():
            self._certify(name, policy)
        for _ in range(MOST_CERTIFIED):
            self.waiting = [(name, one) for name, one in self.waiting if one.digest not in self.tried]
            scored = [(self.points.least(policy), name, policy) for name, policy in self.waiting]
            promising = [one for one in scored if one[0] > table.gain(self.best) + self.points.negligible]
            if not promising or self._is_over():
                break
            _, name, policy = max(promising, key=lambda one: one[0])
            self._certify(name, policy)
        if self.optimum is not None and self.limit > self.points.negligible:
            self._change()
        for cells in CELLS:
            self._refine(cells)
        self._settle()
        return self._result()

    def over_what_was_done(self) -> Comparison:
        """The same where nobody knows the policy that did what was done: all candidates are certified."""
        if any(one.relative for one in self.keep):
            raise InputError(
                "the behaviour policy is unknown, and `keep` needs a known baseline",
                hint="give the baseline as a policy, or a number instead of `baseline`",
            )
        self._begin()
        nothing = Interval(0.0, 0.0)
        self.tried[""] = Difference(f"{self.table.name} itself", None, nothing, nothing), ()
        for name, policy in self.waiting:
            if policy.digest not in self.tried:
                self._add(self.table.difference(name, policy))
        return self._result()

    @property
    def best(self) -> Difference:
        """The largest certified improvement among those that keep what is to be kept; the baseline else."""
        return max(self._good(), key=self.table.gain, default=next(iter(self.tried.values()))[0])

    def _good(self) -> list[Difference]:
        return [row for row, kept in self.tried.values() if all(one.holds for one in kept)]

    def _begin(self) -> None:
        self.waiting = [*self.given.items(), *self.table.candidates()]
        self.table.cut([one for _, one in self.waiting])

    def _is_over(self) -> bool:
        return time.perf_counter() > self.table.deadline

    def _add(self, row: Difference) -> bool:
        """Keep a difference; whether its policy keeps what it has to."""
        assert row.policy is not None
        kept = self.table.keeps(row.policy, self.keep)
        self.tried[row.policy.digest] = row, kept
        return all(one.holds for one in kept)

    def _certify(self, name: str, policy: Policy) -> bool:
        """Certify a policy over the region as one cell; the point where it gains least is met."""
        row = self.table.difference(name, policy, wanted=self.ends, cells=1)
        holds = self._add(row)
        worst = row.lowest if self.table.maximises else row.highest
        if self.optimum is not None and worst is not None:
            self._meet(worst.x, "" if name == FOUND else "the policy best at worst case")
        return holds

    def _meet(self, x: FloatArray, name: str) -> None:
        """One more point, and the best policy there as a candidate: none is certified to gain more."""
        table = self.table
        assert table.baseline is not None and self.optimum is not None
        self.points.add(x)
        highest, there = self.optimum.at(x)
        own = table.value_at(table.baseline, x)
        if table.contains(x):
            self.limit = min(self.limit, highest - own if table.maximises else own - highest)
        if name:
            self.waiting.append((f"{name} {len(self.points.known) - 1}", there))

    def _change(self) -> None:
        """Change single choices of the most promising policy until no change promises more."""
        barred: set[Change] = set()
        until = 0.5 * (time.perf_counter() + self.table.deadline)  # the rest is for closer bounds
        for _ in range(MOST_ROUNDS):
            good = [row.policy for row in self._good() if row.policy is not None]
            begin = max(good, key=self.points.least, default=None)
            weights = None if begin is None else self.points.weights(begin)
            if weights is None:
                return
            weights = weights.copy()
            changes = self.points.climb(weights, barred, bool(self.keep), until)
            better = self.points.policy(weights) if changes else None
            if better is None or better.digest in self.tried:
                return
            if not self._certify(FOUND, better):
                barred |= changes
            if time.perf_counter() > until:
                break
        self.points.stopped = True

    def _coarse(self) -> dict[str, float]:
        """Policies whose differences closer bounds may raise, and what each gains at most."""
        open_ended = (CoupledStatus.CELL_LIMIT, CoupledStatus.CERTIFIED)
        return {
            row.policy.digest: self.points.least(row.policy)
            for row in self._good()
            if row.policy is not None and row.value is not None and row.value.status in open_ended
        }

    def _refine(self, cells: int) -> None:
        """Bound the most promising differences more closely, while they may become the best."""
        table, gap, coarse = self.table, self.table.chain.options.coupled_gap, self._coarse()
        while coarse and not self._is_over():
            digest, most = max(coarse.items(), key=lambda one: one[1])
            gained = table.gain(self.best)
            if most <= gained + max(gap * max(gained, 0.0), self.points.negligible):
                break
            del coarse[digest]
            row, own = self.tried[digest]
            assert row.policy is not None
            share = max(0.01, min(1.0, most / max(row.interval.width, 1e-300)))
            closer = table.difference(row.name, row.policy, wanted=self.ends, cells=cells, gap=gap * share)
            self._keep_closer(closer, own)

    def _settle(self) -> None:
        """Bound the user's candidates and the best as `compare` does: no answer is below its own."""
        for given in [*self.given.values(), None]:
            policy = self.best.policy if given is None else given
            most = -np.inf if policy is None else self._coarse().get(policy.digest, -np.inf)
            if policy is not None and most > self.table.gain(self.best) and not self._is_over():
                row, own = self.tried[policy.digest]
                self._keep_closer(self.table.difference(row.name, policy), own)

    def _keep_closer(self, closer: Difference, own: tuple[KeptProperty, ...]) -> None:
        """Replace a difference by one that gains at least as much."""
        assert closer.policy is not None
        if self.table.gain(closer) >= self.table.gain(self.tried[closer.policy.digest][0]):
            self.tried[closer.policy.digest] = closer, own

    def _result(self) -> Comparison:
        """All differences that keep what is to be kept, the best first; the local search is one of them."""
        table, best = self.table, self.best
        shown = [row for row in self._good() if row is not best and row.name != FOUND]
        ranked = sorted([best, *shown], key=lambda row: -table.gain(row))
        proved = tuple((row.name, table.name) for row in ranked if table.gain(row) > 0.0)
        result = table.result(tuple(ranked), proved)
        own, made = [table.baseline, *self.given.values()], table.chain.made
        found = [one if one is None or one in own else made(one) for one in (row.policy for row in ranked)]
        ended = "the search ended at its limit: other choices in single states may still gain more"
        return replace(
            result,
            differences=tuple(replace(row, policy=one) for row, one in zip(ranked, found, strict=True)),
            limit=max(self.limit, 0.0) if np.isfinite(self.limit) else None,
            kept=next(own for row, own in self.tried.values() if row is best),
            notes=(*result.notes, ended) if self.points.stopped else result.notes,
        )


class Points:
    """Points that were met, and what policies (rows of weights, the last step first) gain there."""

    def __init__(self, table: Differences):
        self.table, self.known, self.stopped = table, list[FloatArray](), False
        self.questions: list[tuple[GraphQuestion, FloatArray, float]] = []
        self._least: dict[tuple[str, int], float] = {}
        objective = None if table.averages else table.objective
        self.by_steps = objective is not None and objective.depends_on_step
        self.steps = objective.upper_steps if objective is not None and self.by_steps else None
        self.changes = objective is not None and (self.steps or not (self.by_steps or objective.lower_steps))

    def add(self, x: FloatArray) -> None:
        table, model = self.table, self.table.chain.model
        self.known.append(x)
        if not self.changes or table.baseline is None:
            return
        objective, functions = table.objective, functions_of(table.coordinates, model, table.objective)
        values = functions.at(x)
        question = question_of(model, rewards_at(objective, values, model))
        stays = table.value_at(table.baseline, x)
        stays = (1.0 - stays if objective.complement else stays) * (1.0 if question.maximises else -1.0)
        self.questions.append((question, np.clip(values, 0.0, 1.0)[model.expression], stays))

    @property
    def negligible(self) -> float:
        """What the precision of values at single points does not tell from nothing."""
        if not self.known or self.table.baseline is None:
            return 0.0
        known = abs(self.table.value_at(self.table.baseline, self.known[0]))
        return 4.0 * self.table.chain.options.precision * known

    def least(self, policy: Policy) -> float:
        """What the policy gains where it gains least."""
        key = policy.digest, len(self.known)
        if key not in self._least:
            weights = self.weights(policy)
            here = None if weights is None else self.gains(weights)
            value = self.table.gains_at_most(policy, self.known) if here is None else float(here[0].min())
            self._least[key] = value
        return self._least[key]

    def weights(self, policy: Policy) -> FloatArray | None:
        """The rows of a policy; None for memories, long-run averages and lower bounds on steps."""
        other = policy.structure is not self.table.chain.model.structure or policy.has_memory
        if not self.changes or other or (policy.depends_on_step and self.steps is None):
            return None
        if self.steps is None:
            return policy.probability[None, :]
        return np.array([policy.at(step).probability for step in reversed(range(self.steps))])

    def policy(self, weights: FloatArray) -> Policy | None:
        """The policy of such rows; None where it draws choices that depend on the step."""
        structure = self.table.chain.model.structure
        if self.steps is None:
            return Policy(structure, weights[0])
        if not np.all((weights == 0.0) | (weights == 1.0)):
            return None
        chosen = np.stack([np.flatnonzero(row) for row in weights[::-1]], axis=1).reshape(-1)
        start = np.arange(structure.states + 1) * self.steps
        return Policy(structure, TimeVaryingChoices(start, np.arange(len(chosen)) % self.steps, chosen))

    def gains(self, weights: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """(what the policy gains over the baseline at every point, what changes add to it)."""
        every = [_gains_of_changes(question, weights, at) for question, at, _ in self.questions]
        known = [one for one in every if one is not None]
        if not known or len(known) < len(every):
            return None
        stays = np.array([own for _, _, own in self.questions])
        return np.array([one[0] for one in known]) - stays, np.array([one[1] for one in known])

    def climb(self, weights: FloatArray, barred: set[Change], once: bool, until: float) -> set[Change]:
        """Change the rows, each time so that the least gain grows, as often as that goes, or once."""
        changes, here = set[Change](), self.gains(weights)
        while here is not None:
            target, question = float(here[0].min()) + self.negligible, self.questions[0][0]
            for trial in self._trials(weights, *here, target, barred, once):
                if time.perf_counter() > until:
                    self.stopped = True
                    return changes
                tried = weights.copy()
                for step, choice in trial:
                    state = question.owner[choice]
                    tried[step, question.choice_start[state] : question.choice_start[state + 1]] = 0.0
                    tried[step, choice] = 1.0
                there = self.gains(tried)
                if there is not None and float(there[0].min()) > target:
                    weights[:], here, changes = tried, there, changes | set(trial)
                    break
            else:
                break
            if once:
                break
        return changes

    def _trials(
        self,
        weights: FloatArray,
        now: FloatArray,
        gains: FloatArray,
        target: float,
        barred: set[Change],
        once: bool,
    ) -> Iterator[list[Change]]:
        """Sets of changes, the most promising first: many together, then each alone."""
        score = (now[:, None, None] + gains).min(axis=0)
        for change in barred:
            score[change] = -np.inf
        can = (gains[int(now.argmin())] > 0.0) & (weights < 1.0) & np.isfinite(score)
        order = [place for place in np.argsort(-score, axis=None).tolist() if can.flat[place]]
        singles = [divmod(place, weights.shape[1]) for place in order]
        owner, together = self.questions[0][0].owner, dict[Change, Change]()
        for step, choice in singles:
            if score[step, choice] > target:
                together.setdefault((step, int(owner[choice])), (step, choice))
        several = [] if once else list(together.values())
        yield from (several[: len(several) >> k] for k in range(len(several).bit_length()))
        yield from ([one] for one in singles[:MOST_CHANGED])
        self.stopped = len(singles) > MOST_CHANGED


def _named(policy: Policies, model: Structured, word: str = "policy") -> dict[str, Policy]:
    """Policies by their names; those in a list are numbered from 1."""
    given: Mapping[str, object] = {f"the {word}": policy}
    if isinstance(policy, Mapping) and any(isinstance(one, Policy) for one in policy.values()):
        given = dict(policy)
    elif isinstance(policy, list | tuple) and policy and isinstance(policy[0], Policy):
        given = {f"{word} {number}": one for number, one in enumerate(policy, start=1)}
    result: dict[str, Policy] = {}
    for name, one in given.items():
        own = as_policy(model, cast(PolicyGiven, one))
        if own is None:
            raise InputError(f"`{word}` is {describe(one)}, not a policy")
        result[str(name)] = own
    return result


def _gains_of_changes(
    question: GraphQuestion, weights: FloatArray, probability: FloatArray
) -> tuple[float, FloatArray] | None:
    """(value, gains) of a policy, larger where the agent is better off: visits times advantage, exact for one
    row of `weights` per step, the last step first. None where the value is infinite or takes too much."""
    sign = 1.0 if question.maximises else -1.0
    if question.is_bounded or question.kind == "NEXT":
        return _gains_of_steps(question, weights, probability, sign)
    whole = PolicyEquations.of(question, weights[0], everywhere=True)
    chain = PolicyEquations.of(question, weights[0], everywhere=False)
    solved = None if whole is None else whole.solved(whole.matrix(probability))
    passes = None if chain is None else chain.passes(probability)
    if chain is None or solved is None or passes is None:
        return None
    met = np.zeros(question.states)
    met[chain.state] = passes[1][-1][0]
    following = question.backup(probability, solved.values)
    gain = sign * met[question.owner] * (following - solved.values[question.owner])
    gain = np.where((met[question.owner] > 0.0) & (np.abs(following) < slopes.NEVER * 1e-10), gain, -np.inf)
    return sign * passes[0], gain[None, :]


def _gains_of_steps(
    question: GraphQuestion, weights: FloatArray, probability: FloatArray, sign: float
) -> tuple[float, FloatArray] | None:
    phases, first = slopes.phases_of(question, np.arange(question.states)), slopes.first_values(question)
    held = [phase for phase in phases for _ in range(phase[0])]
    if first is None or len(held) * len(question.owner) > slopes.MOST_STORED // 10:
        return None
    values, gains = [first], np.full((len(held), len(question.owner)), -np.inf)
    for step, (_, fixed, value) in enumerate(held):
        gains[step] = question.backup(probability, values[-1])
        mean = np.bincount(question.owner, weights[step] * gains[step], question.states)
        values.append(np.where(fixed, value, mean))
    visits = np.zeros(question.states)
    visits[question.initial] = 1.0
    owner, lengths = question.owner, np.diff(question.transition_start)
    for step in range(len(held) - 1, -1, -1):
        visits = np.where(held[step][1], 0.0, visits)
        gain = sign * visits[owner] * (gains[step] - values[step + 1][owner])
        gains[step] = np.where(visits[owner] > 0.0, gain, -np.inf)
        flow = np.repeat(visits[owner] * weights[step] * question.rate, lengths) * probability
        visits = np.bincount(question.successor, flow, question.states).astype(np.float64)
    return sign * float(values[-1][question.initial]), gains
