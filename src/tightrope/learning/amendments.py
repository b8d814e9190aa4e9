"""Revised models: a problem and the rows of a log become a problem with one assumption less, and its log.

* `memory=…` (`MEMORIES`), `split=COLUMN`: a product with a finite memory, or with a column's value of the
  episode, which a first step draws; the parameters in question exist once per value (`p` becomes `p__…`).
* `groups=COLUMN`: the same with partial pooling (`learning.groups`). `costs`, `rates`: the two doctors.
* `untie`, `free`: separate parameters, or free distributions, for the choices in question.

Earlier rows alone determine revised rows, so guarantees for counts apply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tightrope.data.counts import Counts
from tightrope.data.episode_log import EpisodeLog
from tightrope.data.free_columns import LogColumn
from tightrope.errors import CannotCertify, InputError, check_number
from tightrope.io.coding import record_of
from tightrope.io.results import FindingFacts, Interval, power_text
from tightrope.model.expressions import ExpressionTable
from tightrope.model.free import FreeRows
from tightrope.model.parameters import LinearConstraint, Parameters
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.polynomial import Function, Polynomial, RationalFunction
from tightrope.model.product import Product, every_transition, lift_model, lift_objective
from tightrope.model.structure import ParametricReward, RewardStructure, Structure, Structured
from tightrope.monitoring.examination import Finding
from tightrope.numerics.arrays import BoolArray, IndexArray, OffsetArray, offsets, ranges
from tightrope.numerics.record import Facts, Record
from tightrope.problem import Problem
from tightrope.verdict import Assumed

LEAST = 20
"""Visits below which a value of a memory has no parameters of its own."""

MOST_PAIRS = 300_000
"""States of an revised model at most."""

KINDS = ("memory", "split", "groups", "rates", "phase", "costs", "untie", "free")
WITHOUT_FEATURE = ("untie", "free")
MEMORIES = "prev|prev2|action|revisit|seen:STATE|count:STATE:N|since-entry:N|since-start:N"
START, OTHER = "start", "other"
AUTO = "auto"
MOST = 8
"""Findings that are followed up, those with most evidence."""

STEPS = 7
"""How far counters of steps go where nobody says."""

SELECTION = "selection"
_UNPAID = "the amendment was chosen on the data that it is learned from: --select-on divides them"
_UNTOLD = "whether the amendment was chosen by looking at these data is not known: --select-on"
UNPAID, UNKNOWN = (Assumed.violated(SELECTION, _UNPAID), Assumed.unverified(SELECTION, _UNTOLD))
"""Of an amendment that was chosen on all data, and of one that was given: nobody knows how it came about."""


@dataclass(frozen=True)
class Amendment:
    """What is changed: a `kind` of `KINDS`, the `feature` it goes by (a memory or a column), and at which
    `choices` of the model; None are all.

    >>> Amendment.of("memory=seen:edit").text, Amendment.of("untie").kind
    ('memory=seen:edit', 'untie')
    """

    kind: str
    feature: str = ""
    choices: tuple[int, ...] | None = None

    @staticmethod
    def of(text: str) -> Amendment:
        """What `--amend` says."""
        kind, _, feature = text.strip().partition("=")
        if kind not in KINDS or (kind not in WITHOUT_FEATURE) != bool(feature):
            raise InputError(
                f"'{text}' is not a revision",
                hint=f"memory={MEMORIES}, split=COLUMN, groups=COLUMN, costs=COLUMN, untie, or "
                "free; for chains in continuous time rates=since-entry|since-start|clock|prev|column:NAME, "
                "phase=N, or untie",
            )
        return Amendment(kind, feature)

    @property
    def text(self) -> str:
        """As `--amend` takes it."""
        return f"{self.kind}={self.feature}" if self.feature else self.kind

    def words(self, model: Structured) -> str:
        """The same with the choices it is about."""
        if self.choices is None or len(self.choices) == model.structure.choices:
            return self.text
        named = [model.structure.choice_name(choice) for choice in self.choices[:2]]
        more = f" and {len(self.choices) - 2} more" if len(self.choices) > 2 else ""
        return f"{self.text} at {', '.join(named)}{more}"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosed(Record):
    """A finding, its effect on the answer, and the revision that removes it.

    `value` is the answer without the assumption, `estimate` its best fit, `effect` the difference from the
    best fit of the model as it is. `log_e_after` is all evidence against the revised model, and `mends`: it
    raises no alarm. `why`: the reason if there is no revision.
    """

    finding: Finding
    amendment: Amendment | None = None
    value: Interval | None = None
    estimate: float | None = None
    effect: float | None = None
    log_e_after: float | None = None
    mends: bool = False
    why: str = ""

    def record(self, model: Structured) -> FindingFacts:
        """What is written of it."""
        return record_of(
            FindingFacts,
            self,
            self.finding,
            what=self.finding.text,
            e_value=e_value_of(self.finding.log_e_value),
            size=self.finding.effect,
            value_without=self.value,
            amendment=None if self.amendment is None else self.amendment.text,
            at=None if self.amendment is None else self.amendment.words(model),
            e_value_after=None if self.log_e_after is None else e_value_of(self.log_e_after),
        )

    def _title_(self) -> str:
        return f"Diagnosed: {self.finding.text}"

    def _facts_(self) -> Facts:
        return [("evidence", power_text(self.finding.log_e_value)), ("effect", f"{self.effect}")]


def rank(one: Diagnosed) -> tuple[bool, float, float]:
    return not one.mends, -abs(one.effect or 0.0), -one.finding.log_e_value


def pick(findings: Sequence[Diagnosed]) -> Amendment:
    """The first amendment of findings in their rank."""
    best = next((one.amendment for one in findings if one.amendment is not None), None)
    if best is None:
        raise CannotCertify("there is no finding that a revision removes: the model stays as it is")
    return best


def divide(size: int, share: float, seed: int, what: str) -> tuple[BoolArray, Assumed]:
    """Choose clusters at random: given the choice, the others are as good as new."""
    check_number("select_on", share, 0.0, 1.0)
    if size < 2:
        raise InputError(f"`select_on` divides the {what} of the log, and there is only one")
    number = min(max(round(share * size), 1), size - 1)
    picked: BoolArray = np.zeros(size, np.bool_)
    picked[np.random.default_rng(seed).permutation(size)[:number]] = True
    why = f"the amendment was chosen on {number:,} of {size:,} {what} (seed {seed}), and learned from others"
    return picked, Assumed.derived(SELECTION, why)


def e_value_of(log_e: float) -> float:
    """The e-value itself, ∞ where that is no float64."""
    return math.inf if log_e > 700.0 else math.exp(log_e)


@dataclass(frozen=True, eq=False)
class Amended:
    """The amended problem and its log; `product` says which state and transition of the model is behind each
    of its own, `values` what the memory of each state is called."""

    amendment: Amendment
    problem: Problem
    log: EpisodeLog
    product: Product
    values: tuple[str, ...]
    claims: str
    behind: Structure
    origin: Callable[[], tuple[str, ...]] = tuple
    """Comments that say from which data the amendment was chosen."""

    @property
    def model(self) -> ParametricMDP:
        model = self.problem.model
        assert isinstance(model, ParametricMDP)
        return model

    def counts(self, like: Counts) -> Counts:
        """What is learned from: the log's counts, sampled `like` those of the model."""
        return self.log.counts(self.model, like.design)

    def prism(self) -> str:
        """The amended model as a program, with what its memory means and where its parameters may lie."""
        from tightrope.io.jani.write import program_text

        notes = [f"written by tightrope: the model amended by {self.amendment.text}", self.claims]
        notes += [line.removeprefix("// ") for line in self.origin()]
        memory = list(self.model.structure.valuations)[-1] if len(self.values) > 1 else None
        own = self.behind.state_names
        if own is not None and own.are_texts:
            notes += [f"s={number}: {name}" for number, name in enumerate(own)]
        if memory is not None:
            notes += [f"{memory}={code}: {value}" for code, value in enumerate(self.values)]
        parameters = self.model.parameters.shown
        if parameters != Parameters.unit_box(parameters.names):
            notes.append(f"its parameters lie in --domain '{parameters.text()}'")
        return program_text(self.model, notes)


@dataclass(frozen=True, eq=False)
class Memory:
    """A finite memory: what it is at `first`, after a transition (`step`), and which `value` of it, in a
    state, rows may differ by, with the name of that value."""

    first: Hashable
    step: Callable[[Any, int], Hashable]
    name: Callable[[Any], str]
    value: Callable[[Any, int], Hashable] = lambda memory, state: memory
    tell: Callable[[Any], str] | None = None
    """A memory in words, where its values are not the memories themselves."""
    forgets: bool = False
    """Whether what is remembered next does not depend on what is remembered now."""


def amend(problem: Problem, log: EpisodeLog, amendment: Amendment, least: int = LEAST) -> Amended:
    """The amended problem and its log; values of a memory with fewer than `least` visits share parameters."""
    model = problem.model
    if (
        not isinstance(model, ParametricMDP)
        or problem.lift is not None
        or amendment.kind in ("rates", "phase", "groups", "costs")
    ):
        raise InputError(
            f"`{amendment.text}` requires a model in discrete time and a question without memory",
            hint="ask a question without memory; `rates=…` and `phase=…` are for chains in continuous time",
        )
    chosen = np.ones(model.choices, np.bool_)
    if amendment.choices is not None:
        chosen[:] = False
        chosen[list(amendment.choices)] = True
    chosen &= np.diff(model.transition_start) > 1
    if not chosen.any():
        raise InputError(f"`{amendment.text}`: no choice of the model has more than one outcome")
    if amendment.kind in ("untie", "free"):
        return _with_own_rows(problem, log, amendment, chosen)
    if amendment.kind == "split":
        memory, firsts = _column_memory(amendment.feature, problem, log)
    else:
        memory, firsts = memory_of(amendment.feature, model, chosen), None
    paired = _Paired.of(model.structure, memory, _beginnings(model.structure, log, memory, firsts))
    known, transition = paired.follow(log, firsts)
    if not known.any():
        raise InputError(f"`{amendment.text}`: no row of the log determines the memory")
    lifted = log if known.all() else log.select(known)
    group, labels = paired.groups(model, chosen, transition[known], least)
    structure = _with_names(lift_model(every_transition(model.structure), paired.product).structure)
    free = _is_constant(model)[paired.product.choice] & (group >= 0)
    changed = _rebuild(model, structure, paired.product, group, labels, free)
    question = _question(problem, changed, paired.product)
    values = tuple((memory.tell or memory.name)(one) for one in paired.memories)
    claims = f"what comes next may depend on {_told(amendment)}"
    if len(lifted) < len(log):
        claims += f"; {len(log) - len(lifted):,} rows after a gap are left out"
    rows = replace(lifted, transition=transition[known].astype(np.int32), model_hash=changed.hash())
    made = Amended(amendment, question, rows, paired.product, values, claims, model.structure)
    return made if firsts is None else _with_draw(made, problem, np.flatnonzero(rows.begins))


def _with_names(structure: Structure) -> Structure:
    """With variables, and none of them `state`, which is what a column of logs is called."""
    if not structure.valuations:
        return replace(structure, valuations={"s": np.arange(structure.states, dtype=np.int32)})
    names = {"state": "s"} if "s" not in structure.valuations else {}
    renamed = {names.get(name, name): column for name, column in structure.valuations.items()}
    return replace(structure, valuations=renamed)


def _told(amendment: Amendment) -> str:
    kind, _, rest = amendment.feature.partition(":")
    if amendment.kind == "split":
        return f"the column '{amendment.feature}', drawn once for every episode from the values seen"
    return {
        "prev": "the state before",
        "prev2": "the two states before",
        "action": "the action before",
        "revisit": "whether the state itself was seen before",
        "seen": f"whether {rest} was seen before",
        "count": f"how often {rest.rpartition(':')[0]} was seen before",
        "since-entry": "the steps since the state was entered",
        "since-start": "the steps since the episode began",
    }[kind]


def itself(structure: Structure) -> Product:
    """The product with nothing."""
    return Product(
        structure,
        np.arange(structure.states, dtype=np.int32),
        np.zeros(structure.states, np.int32),
        np.arange(structure.choices, dtype=np.int64),
        np.arange(structure.transitions, dtype=np.int64),
    )


def _with_own_rows(problem: Problem, log: EpisodeLog, amendment: Amendment, chosen: BoolArray) -> Amended:
    """The choices in question with parameters, or free distributions, of their own."""
    model = problem.model
    assert isinstance(model, ParametricMDP)
    structure, signature = model.structure, model.signatures.of_choice
    same = itself(structure)
    is_free = amendment.kind == "free"
    key = signature if is_free else np.arange(model.choices)
    group = np.full(model.choices, -1, np.int64)
    _, first, group[chosen] = np.unique(key[chosen], return_index=True, return_inverse=True)
    labels = [_choice_word(structure, int(np.flatnonzero(chosen)[at])) for at in first]
    free = chosen if is_free else chosen & _is_constant(model)
    changed = _rebuild(model, _with_names(structure), same, group, labels, free)
    rows = replace(log, model_hash=changed.hash())
    what = "probabilities that may be anything" if is_free else "parameters of their own"
    claims = f"the choices in question have {what}"
    return Amended(amendment, _question(problem, changed, same), rows, same, ("",), claims, structure)


def _choice_word(structure: Structure, choice: int) -> str:
    state = structure.state_name(int(structure.choice_state[choice]))
    return "_".join(part for part in (_word(state), _word(structure.action_name(choice))) if part)


def _question(problem: Problem, model: ParametricMDP, product: Product) -> Problem:
    """The same question about the amended model."""
    query = problem.query
    if query.file is not None:
        return Problem(model, query.on(model.structure))
    lifted = lift_objective(problem.objective, product)
    if isinstance(lifted.reward, ParametricReward):
        lifted = replace(lifted, reward=model.structure.rewards[lifted.reward.name])
    return Problem(model, lifted)


# --- pairs of states and memories ----------------------------------------------------------


def _beginnings(
    structure: Structure, log: EpisodeLog, memory: Memory, firsts: IndexArray | None
) -> list[tuple[int, Hashable]]:
    """The pairs that episodes begin in: the initial state first."""
    begins = log.begins
    states = log.state(structure)[begins].tolist()
    initial = structure.initial
    if firsts is None:
        return list(dict.fromkeys([(initial, memory.first), *((state, memory.first) for state in states)]))
    own: list[int] = firsts[begins].tolist()
    at_initial = [(initial, one) for one in sorted({one for one in own if one >= 0})]
    seen = [(state, one) for state, one in zip(states, own, strict=True) if one >= 0]
    return list(dict.fromkeys([*at_initial, *seen]))


@dataclass(frozen=True, eq=False)
class _Paired:
    """The product of a model with a memory, built from the pairs that episodes begin in."""

    structure: Structure
    memory: Memory
    product: Product
    memories: list[object]
    number: dict[tuple[int, Hashable], int]

    @staticmethod
    def of(structure: Structure, memory: Memory, starts: Sequence[tuple[int, Hashable]]) -> _Paired:
        number: dict[tuple[int, Hashable], int] = {pair: place for place, pair in enumerate(starts)}
        queue, step, successor = list(starts), memory.step, list[int]()
        following = structure.successor.tolist()
        first = structure.transition_start[structure.choice_start].tolist()
        for state, remembered in queue:
            for at in range(first[state], first[state + 1]):
                pair = following[at], step(remembered, at)
                place = number.setdefault(pair, len(queue))
                if place == len(queue):
                    queue.append(pair)
                successor.append(place)
            if len(queue) > MOST_PAIRS:
                raise InputError(
                    f"with this memory the model has more than {MOST_PAIRS:,} states",
                    hint="remember less: at some choices, or a counter with a smaller limit",
                )
        codes: dict[object, int] = {}
        memories = [codes.setdefault(remembered, len(codes)) for _, remembered in queue]
        states = np.array([state for state, _ in queue], np.int64)
        choice = ranges(structure.choice_start, states)[0]
        transition = ranges(structure.transition_start, choice)[0]
        built = Structure(
            choice_start=offsets(np.diff(structure.choice_start)[states]),
            transition_start=offsets(np.diff(structure.transition_start)[choice]),
            successor=np.array(successor, np.int32),
            action=structure.action_of_choice[choice],
            action_names=structure.action_names,
            declared_mdp=structure.declared_mdp,
        )
        product = Product(built, states.astype(np.int32), np.array(memories, np.int32), choice, transition)
        return _Paired(structure, memory, product, list(codes), number)

    def follow(self, log: EpisodeLog, firsts: IndexArray | None) -> tuple[BoolArray, OffsetArray]:
        """Of which rows the memory is known, and their transitions in the product."""
        base, built = self.structure, self.product.structure
        transition, before = log.transition.tolist(), log.previous.tolist()
        begins = log.begins.tolist()
        choice = base.transition_choice[log.transition]
        state = base.choice_state[choice]
        from_choice = (choice - base.choice_start[state]).tolist()
        from_transition = (log.transition - base.transition_start[choice]).tolist()
        choice_start, transition_start = built.choice_start.tolist(), built.transition_start.tolist()
        successor, states = built.successor.tolist(), state.tolist()
        own = None if firsts is None else firsts.tolist()
        result = [-1] * len(transition)
        for row, begin in enumerate(begins):
            earlier = before[row]
            if begin or own is not None:
                first = self.memory.first if own is None else own[row]
                at = self.number.get((states[row], first), -1)
            elif earlier < 0:
                at = -1
            elif result[earlier] >= 0:
                at = successor[result[earlier]]
            elif self.memory.forgets:
                at = self.number.get((states[row], self.memory.step(None, transition[earlier])), -1)
            else:
                at = -1
            if at >= 0:
                result[row] = transition_start[choice_start[at] + from_choice[row]] + from_transition[row]
        placed = np.array(result, np.int64)
        return placed >= 0, placed

    def groups(
        self, model: ParametricMDP, chosen: BoolArray, transition: OffsetArray, least: int
    ) -> tuple[OffsetArray, list[str]]:
        """Which choices share parameters: by value and part of the model; −1 where nothing is split."""
        product, memory = self.product, self.memory
        pairs = zip(product.memory.tolist(), product.state.tolist(), strict=True)
        codes: dict[Hashable, int] = {}
        code = [codes.setdefault(memory.value(self.memories[m], at), len(codes)) for m, at in pairs]
        values, of_state = list(codes), np.array(code)[product.structure.choice_state]
        visits = np.bincount(
            product.structure.transition_choice[transition], minlength=product.structure.choices
        )
        part = _parts(model, chosen)[product.choice]
        group = np.full(len(part), -1, np.int64)
        labels: list[str] = []
        for one in np.unique(part[part >= 0]).tolist():
            mine = part == one
            met = np.bincount(of_state[mine], weights=visits[mine], minlength=len(values))
            held = np.bincount(of_state[mine], minlength=len(values)) > 0
            often = np.flatnonzero(held & (met >= least))
            rest = mine & ~np.isin(of_state, often)
            if len(often) + bool(rest.any()) < 2:
                continue
            for one_value in often.tolist():
                group[mine & (of_state == one_value)] = len(labels)
                labels.append(memory.name(values[one_value]))
            if rest.any():
                alone = np.unique(of_state[rest])
                group[rest] = len(labels)
                labels.append(memory.name(values[int(alone[0])]) if len(alone) == 1 else OTHER)
        return group, labels


def _parts(model: ParametricMDP, chosen: BoolArray) -> OffsetArray:
    """Parts of the chosen choices that share no parameter; those without any go by their signature."""
    of_choice, result = model.signatures.of_choice, np.full(model.choices, -1, np.int64)
    root: dict[Hashable, Hashable] = {}

    def find(one: Hashable) -> Hashable:
        while root.setdefault(one, one) != one:
            one = root[one]
        return one

    for signature in np.unique(of_choice[chosen]).tolist():
        used = _used(model, signature)
        for name in used:
            root[find(("parameter", name))] = find(("signature", signature))
    for constraint in model.parameters.constraints:
        held = [i for i, a in enumerate(constraint.coefficients) if a]
        for name in held[1:]:
            root[find(("parameter", name))] = find(("parameter", held[0]))
    codes: dict[Hashable, int] = {}
    for choice in np.flatnonzero(chosen).tolist():
        result[choice] = codes.setdefault(find(("signature", int(of_choice[choice]))), len(codes))
    return result


def _used(model: ParametricMDP, signature: int) -> set[int]:
    """The parameters of a signature."""
    rows = model.signatures
    members = rows.expression[rows.start[signature] : rows.start[signature + 1]].tolist()
    return {name for row in members for name in model.expressions.function(row).variables}


def _is_constant(model: ParametricMDP) -> BoolArray:
    """The choices without parameters."""
    constant: BoolArray = model.expressions.is_constant[model.expression]
    return np.logical_and.reduceat(constant, model.transition_start[:-1])


# --- models --------------------------------------------------------------------------------


def _rebuild(
    model: ParametricMDP,
    structure: Structure,
    product: Product,
    group: OffsetArray,
    labels: Sequence[str],
    free: BoolArray,
) -> ParametricMDP:
    """The product, in which choices of one group have parameters of their own, or a free distribution."""
    signature = model.signatures.of_choice[product.choice]
    triples = list(zip(group.tolist(), signature.tolist(), free.tolist(), strict=True))
    pairs = dict.fromkeys(triples)
    rows, place, names = _own_parameters(model, _used_by(model, product, group, pairs), labels)
    free_rows: dict[tuple[int, int], tuple[Polynomial, ...]] = {}
    for one, row, is_free in pairs:
        if is_free:
            width = int(np.diff(model.signatures.start)[row])
            stem = _choice_word(model.structure, int(model.signatures.example[row]))
            free_rows[one, row] = rows.distribution(width, names.free(stem, labels[one])).probabilities
    parameters = rows.parameters
    table = ExpressionTable(parameters.names)
    known: dict[tuple[int, int], int] = {}
    expression = np.empty(len(product.transition), np.int32)
    starts = structure.transition_start.tolist()
    base = model.expression[product.transition].tolist()
    for choice, (one, row, is_free) in enumerate(triples):
        for number, at in enumerate(range(starts[choice], starts[choice + 1])):
            if is_free:
                expression[at] = table.add(free_rows[one, row][number])
                continue
            key = one, base[at]
            if key not in known:
                known[key] = table.add(_renamed(model.expressions.function(base[at]), one, place))
            expression[at] = known[key]
    expressions, expression = table.freeze(expression)
    rewards = {
        name: _renamed_reward(reward, model.rewards[name], product, group, place, parameters.names)
        for name, reward in structure.rewards.items()
    }
    return ParametricMDP(replace(structure, rewards=rewards), expression, expressions, parameters)


def _used_by(
    model: ParametricMDP, product: Product, group: OffsetArray, pairs: Iterable[tuple[int, int, bool]]
) -> dict[int, set[int]]:
    """The parameters of each group, with all that constraints tie to them."""
    used: dict[int, set[int]] = {}
    for one, row, is_free in pairs:
        if not is_free:
            used.setdefault(one, set()).update(_used(model, row))
    for reward in model.rewards.values():
        if isinstance(reward, ParametricReward):
            of_choice = reward.expression[product.choice]
            for one, row in dict.fromkeys(zip(group.tolist(), of_choice.tolist(), strict=True)):
                used.setdefault(one, set()).update(reward.expressions.function(row).variables)
    for held in used.values():
        _close(held, model.parameters)
    return used


def _own_parameters(
    model: ParametricMDP, used: Mapping[int, set[int]], labels: Sequence[str]
) -> tuple[FreeRows, dict[tuple[int, int], int], _Names]:
    """Parameters and free distributions of all groups, and the place of each (group, parameter)."""
    old, names = model.parameters, _Names(model.parameters.names)
    place: dict[tuple[int, int], int] = {}
    named, size = old.shown, len(old.shown)
    constraints: list[tuple[dict[int, Fraction], LinearConstraint]] = []
    for one in sorted(used):
        for parameter in sorted(used[one]):
            if parameter < size:
                place[one, parameter] = len(place)
                names.add(old.names[parameter], "" if one < 0 else labels[one])
        for constraint in named.constraints:
            row = {i: a for i, a in enumerate(constraint.coefficients) if a}
            if row.keys() & used[one]:
                constraints.append(({place[one, i]: a for i, a in row.items()}, constraint))
    rows = FreeRows(
        Parameters(
            tuple(names.given),
            tuple(old.lower[parameter] for _, parameter in place),
            tuple(old.upper[parameter] for _, parameter in place),
            tuple(
                replace(one, coefficients=tuple(row.get(i, Fraction(0)) for i in range(len(place))))
                for row, one in constraints
            ),
        )
    )
    for one in sorted(used):
        for number, each in enumerate(old.free):
            if each.first in used[one]:
                name = names.free(each.name or f"row{number}", "" if one < 0 else labels[one])
                first = rows.distribution(each.outcomes, name).first
                place |= {(one, i): first + i - each.first for i in each.coordinates}
    return rows, place, names


def _close(held: set[int], parameters: Parameters) -> None:
    """Parameters that constraints tie to those held are held, too, and all of a free distribution."""
    rows = [{i for i, a in enumerate(one.coefficients) if a} for one in parameters.constraints]
    while more := [row for row in rows if row & held and not row <= held]:
        held.update(*more)


class _Names:
    """Names of parameters and free distributions, each once: `p`, or `p__day`."""

    def __init__(self, taken: Sequence[str]):
        self._taken, self.given = set(taken), list[str]()

    def add(self, name: str, label: str) -> None:
        self.given.append(self._new(f"{name}__{label}") if label else name)

    def free(self, name: str, label: str) -> str:
        return self._new(f"{name}__{label}" if label and label != name else name)

    def _new(self, wanted: str) -> str:
        while wanted in self._taken:
            wanted += "_"
        self._taken.add(wanted)
        return wanted


def _renamed(function: Function, group: int, place: Mapping[tuple[int, int], int]) -> Function:
    """The same function of the parameters of a group."""
    if isinstance(function, RationalFunction):
        top, bottom = _renamed(function.numerator, group, place), _renamed(function.denominator, group, place)
        return top / bottom
    return Polynomial(
        {
            tuple(sorted((place[group, i], power) for i, power in monomial)): amount
            for monomial, amount in function.terms.items()
        }
    )


def _renamed_reward(
    lifted: RewardStructure,
    own: RewardStructure,
    product: Product,
    group: OffsetArray,
    place: Mapping[tuple[int, int], int],
    names: tuple[str, ...],
) -> RewardStructure:
    if not isinstance(own, ParametricReward):
        return lifted
    table, known = ExpressionTable(names), dict[tuple[int, int], int]()

    def rows(of_base: IndexArray, groups: OffsetArray) -> IndexArray:
        keys = list(zip(groups.tolist(), of_base.tolist(), strict=True))
        for key in dict.fromkeys(keys):
            known[key] = table.add(_renamed(own.expressions.function(key[1]), key[0], place))
        return np.array([known[key] for key in keys], dtype=np.int32)

    whole = rows(own.expression[product.choice], group)
    if own.by_transition is None:
        return ParametricReward(own.name, *table.freeze(whole), is_mean=own.is_mean)
    single = rows(own.by_transition[product.transition], group[product.structure.transition_choice])
    expressions, both = table.freeze(np.concatenate([whole, single]))
    return ParametricReward(own.name, expressions, both[: len(whole)], both[len(whole) :])


# --- columns -------------------------------------------------------------------------------


def unit_column(
    log: EpisodeLog, name: str, why: str | None = None, hint: str = ""
) -> tuple[LogColumn, IndexArray]:
    """A column and its value in each episode; with `why`, refuse one that changes within episodes."""
    if name not in log.columns:
        raise InputError(
            f"the column '{name}' is not in the log, or has another role",
            hint=f"columns without a role: {', '.join(log.columns) or 'none'}",
        )
    column, unit = log.columns[name], log.by_unit(name)
    if why is not None and np.any((column.code >= 0) & (column.code != unit[log.episode])):
        raise InputError(f"the column '{name}' changes within episodes, and {why}", hint=hint)
    return column, unit


def _column_memory(name: str, problem: Problem, log: EpisodeLog) -> tuple[Memory, IndexArray]:
    """What a column says of each episode, as a memory that never changes; the value of every row."""
    hint = "make it a variable of the model, or learn for each of its values apart"
    column, unit = unit_column(log, name, "the model has no rule for that", hint)
    asked = problem.query.plain_objective
    if asked is None or asked.is_bounded or asked.lower_steps or asked.discount is not None:
        raise InputError(
            f"{problem.text} counts steps, and the revised model needs one step more to draw '{name}' first",
            hint="ask without a bound on steps or a discount, or learn for each value apart",
        )
    labels = column.labels
    return Memory(0, lambda m, t: m, lambda m: _word(labels[m]) or f"v{m}"), unit[log.episode]


def _with_draw(made: Amended, problem: Problem, begins: OffsetArray) -> Amended:
    """Add a first state that draws the value of each episode; the draw is a row of the log."""
    model, structure, log = made.model, made.model.structure, made.log
    initial = problem.model.structure.initial
    assert isinstance(problem.model, ParametricMDP)
    if any(isinstance(reward, ParametricReward) for reward in model.rewards.values()):
        raise InputError(f"`{made.amendment.text}`: rewards that depend on parameters cannot be split yet")
    heads = np.flatnonzero(made.product.state[: len(made.values)] == initial)
    if len(heads) < 2:
        raise InputError(f"`{made.amendment.text}`: all episodes from the initial state have one value")
    rows = FreeRows(model.parameters)
    drawn = rows.distribution(len(heads), f"draw_{_word(made.amendment.feature)}").probabilities
    parameters = rows.parameters
    table = ExpressionTable(parameters.names)
    kept = [table.add(model.expressions.function(row)) for row in range(len(model.expressions))]
    used = [*np.array(kept)[model.expression].tolist(), *(table.add(share) for share in drawn)]
    expressions, expression = table.freeze(np.array(used, np.int32))
    memory = list(structure.valuations)[-1]
    copied = {name: np.r_[column, column[heads[0]]] for name, column in structure.valuations.items()}
    extended = Structure(
        choice_start=np.r_[structure.choice_start, structure.choices + 1],
        transition_start=np.r_[structure.transition_start, structure.transitions + len(heads)],
        successor=np.r_[structure.successor, heads].astype(np.int32),
        initial_states=(structure.states,),
        action=np.r_[structure.action_of_choice, 0].astype(np.int32),
        action_names=structure.action_names,
        labels={name: np.r_[members, members[heads[0]]] for name, members in structure.labels.items()},
        rewards={
            name: replace(
                one,
                state=None if one.state is None else np.r_[one.state, 0.0],
                choice=None if one.choice is None else np.r_[one.choice, 0.0],
            )
            for name, one in structure.rewards.items()
        },
        valuations={**copied, memory: np.r_[structure.valuations[memory], len(made.values)]},
        declared_mdp=structure.declared_mdp,
        definitions=structure.definitions,
    )
    changed = ParametricMDP(extended, expression, expressions, parameters)
    asked = problem.query
    if asked.file is None:
        raise InputError(f"`{made.amendment.text}` needs the property as a text: tr.Problem(model, text)")
    state = structure.choice_state[structure.transition_choice[log.transition]]
    first = begins[np.isin(state[begins], heads)]
    draws = structure.transitions + np.searchsorted(heads, state[first])
    lengthened = _with_draws(log, first, draws, made.amendment.feature, changed.hash())
    product = replace(made.product, state=np.r_[made.product.state, initial].astype(np.int32))
    question, values = Problem(changed, asked.on(extended)), (*made.values, "not drawn yet")
    return replace(made, problem=question, log=lengthened, product=product, values=values)


def _with_draws(
    log: EpisodeLog, first: OffsetArray, draws: OffsetArray, column: str, model_hash: str
) -> EpisodeLog:
    """The log with a row before each of the `first` ones, in which the value of a column is drawn."""
    place = np.searchsorted(first, np.arange(len(log)), side="right") + np.arange(len(log))
    order = np.sort(np.r_[np.arange(len(log)), first], kind="stable")
    is_draw = ~np.isin(np.arange(len(order)), place)
    transition = log.transition[order]
    transition[is_draw] = draws
    previous = np.where(log.previous >= 0, place[log.previous], -1)[order]
    at = np.flatnonzero(is_draw)
    previous[at], previous[at + 1] = -1, at
    columns = {name: held.select(order) for name, held in log.columns.items()}
    own = columns[column]  # which says how the draw came out, and is not known before
    return replace(
        log,
        transition=transition.astype(np.int32),
        previous=previous.astype(np.int32),
        episode=log.episode[order],
        time=None if log.time is None else log.time[order],
        names=None if log.names is None else log.names[order],
        columns={**columns, column: replace(own, code=np.where(is_draw, -1, own.code).astype(np.int32))},
        excluded=(),
        model_hash=model_hash,
    )


# --- memories ------------------------------------------------------------------------------


def memory_of(feature: str, model: ParametricMDP, chosen: BoolArray) -> Memory:
    """The memory of this name; what the `chosen` choices do not need is forgotten."""
    structure = model.structure
    of_transition = structure.transition_choice
    state = structure.choice_state[of_transition].tolist()
    successor = structure.successor.tolist()
    needed = np.zeros(structure.states, np.bool_)
    needed[structure.choice_state[chosen]] = True
    soon = needed.copy()
    soon[np.array(state)[needed[structure.successor]]] = True
    kind, _, rest = feature.partition(":")

    def called(at: Any) -> str:
        return START if at is None else "any" if at < 0 else _word(structure.state_name(at))

    if feature == "prev":
        return Memory(None, lambda m, t: state[t] if needed[successor[t]] else -1, called, forgets=True)
    if feature == "prev2":

        def shift(m: tuple[object, object], t: int) -> tuple[object, object]:
            to = successor[t]
            return (state[t] if soon[to] else -1, m[0] if needed[to] else -1)

        return Memory((None, None), shift, lambda m: f"{called(m[1])}_{called(m[0])}")
    if feature == "action":
        action = structure.action_of_choice[of_transition].tolist()
        listed = {place: _word(name) or "none" for place, name in enumerate(structure.action_names)}
        names: dict[Any, str] = {None: START, -1: "any", **listed}
        return Memory(
            None, lambda m, t: action[t] if needed[successor[t]] else -1, lambda m: names[m], forgets=True
        )
    if feature == "revisit":

        def leave(m: frozenset[int], t: int) -> frozenset[int]:
            return m | {state[t]} if needed[state[t]] and successor[t] != state[t] else m

        return Memory(
            frozenset(),
            leave,
            lambda seen: "again" if seen else "first",
            lambda m, at: at in m,
            lambda m: ", ".join(structure.state_name(at) for at in sorted(m)) or "nothing",
        )
    if kind in ("seen", "count") and rest:
        return _counting(structure, feature, state)
    if kind in ("since-entry", "since-start"):
        most = _limit(rest, feature) if rest else STEPS

        def count(m: int, t: int) -> int:
            stays = kind == "since-start" or successor[t] == state[t]
            return min(m + 1, most) if stays else 0

        return Memory(
            0,
            count,
            lambda bin: f"from{2**bin - 1}",
            lambda m, at: (m + 1).bit_length() - 1,
            lambda m: f"{m} steps",
        )
    raise InputError(f"'{feature}' is not a memory", hint=f"one of {MEMORIES}")


def _counting(structure: Structure, feature: str, state: Sequence[int]) -> Memory:
    """How often states of a name were left, up to a number; of `seen` whether they were."""
    kind, _, named = feature.partition(":")
    most = 1
    if kind == "count":
        named, _, limit = named.rpartition(":")
        most = _limit(limit, feature)
    members = states_named(structure, named)
    words = (lambda m: "seen" if m else "unseen") if kind == "seen" else (lambda m: f"n{m}")
    return Memory(0, lambda m, t: min(m + bool(members[state[t]]), most), words)


def _limit(text: str, feature: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise InputError(f"`{feature}`: '{text}' is not a number from 1 to 1000")
    return int(text)


def states_named(structure: Structure, name: str) -> BoolArray:
    """The states that a label, a state's name or its number says."""
    if name in structure.labels:
        return structure.labels[name]
    members = np.zeros(structure.states, np.bool_)
    wanted = name.strip("()").replace(" ", "")
    for state in range(structure.states):
        shown = structure.state_name(state)
        if wanted in (shown.strip("()'\"").replace(" ", ""), shown):
            members[state] = True
    if not members.any() and wanted.isdecimal() and int(wanted) < structure.states:
        members[int(wanted)] = True
    if not members.any():
        raise InputError(
            f"the model has no state or label '{name}'",
            hint=f"the labels are: {', '.join(structure.labels) or 'none'}; a state is "
            f"{structure.state_name(structure.initial_states[0])}, for example",
        )
    return members


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text.replace("=", "").replace("-", "m")).strip("_")
