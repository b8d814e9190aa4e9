"""Resolution of properties: directions of agent and nature, paths and rewards.

**Directions.** `Pmaxmin` names both, agent first. Otherwise:

* `Pmax=?`, `Rmin>=3`: on an interval MDP nature helps the agent (`Pmaxmax`), as in PRISM, and the `Query`
  names the robust form; on a chain the direction is nature's. On a parametric model nature opposes the agent
  (`Pmaxmin`): the value is a guarantee.
* `P=?`, `R=?`: only if there is nothing to decide.
* `P>=x`, `P>x`: for all policies and all of nature, so both minimise; `P<=x`, `P<x`: both maximise. PRISM and
  Storm read them in the same way.

**Paths.** Bounds limit the step at which the formula is decided, and stay the same in a complement:

* `F b` is `true U b`; `G b` is the complement of `F !b`;
* `a W b` is the complement of `(a & !b) U (!a & !b)`, as in PRISM;
* `a R b` is the complement of `!a U !b`; `!` is the complement of what follows it;
* `<k` is `<=k-1`, `>k` is `>=k+1`, `=k` is `[k,k]`: time is discrete.

The complement of a maximum is a minimum, so the caller reverses both directions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import cast

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import Durations, RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.prism.expand.program import Definitions
from tightrope.prism.parse.property_syntax import (
    PathFormula,
    PathOperator,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    StepBound,
    ValueOperator,
)
from tightrope.prism.parse.syntax import (
    Complaint,
    Expression,
    Position,
    SourceText,
    Type,
    position_of,
    suggestion,
)
from tightrope.prism.properties.capabilities import CAPABILITIES, QueryKind
from tightrope.prism.properties.shape import check_is_path, first_temporal, is_simple_path, without_negation
from tightrope.prism.properties.state_formulas import StateFormulas


@dataclass(frozen=True)
class PropertyOptions:
    """Context of a property besides its text and the structure.

    `definitions`: the model's constants and formulas (None: those of the structure); `constants`: texts of
    `--const` for constants of the property file. `is_interval`: nature picks probabilities. `discount` turns
    `C` into the discounted reward; `terminal_reward` names the reward structure with the values of target
    states.
    """

    definitions: Definitions | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    is_interval: bool = False
    is_timed: bool = False
    """Bounds on paths and rewards are times, not steps."""
    discount: float | None = None
    terminal_reward: str | None = None


_OPERATOR = re.compile(r"(LRA|[PRS])((?:\s*\{[^}]*\})?)\s*(?:max|min)?(?:max|min)?(?=\s*(?:=|<|>))")


def with_letters(text: str, agent: Direction, nature: Direction) -> str:
    """The property with both directions spelled out, the agent's first: `Pmaxmin=? [ … ]`."""
    letters = f"{agent.value.lower()}{nature.value.lower()}"
    return _OPERATOR.sub(lambda match: f"{match.group(1)}{match.group(2)}{letters}", text, count=1)


@dataclass(frozen=True)
class DirectionReading:
    """How a property with one direction was read on a model in which agent and nature both decide."""

    taken: str
    """The property as it was read, with two directions."""
    robust: str
    """The same with nature against the agent."""

    @property
    def warning(self) -> str:
        return (
            "with one direction, nature helps the agent of an interval MDP, as in PRISM: read as "
            f"{self.taken}; the value that is guaranteed whatever nature does is {self.robust}"
        )


def read_objective(
    operator: ValueOperator,
    file: PropertyFile,
    structure: Structure,
    options: PropertyOptions,
    nested: Callable[[Expression], BoolArray] | None = None,
) -> Objective:
    """The objective of one P or R; `nested` evaluates operators inside its state formulas."""
    with SourceText(file.source, file.file).complaints():
        formulas = formulas_of(file, structure, options, nested)
        agent, nature, _ = read_directions(operator, file, structure, options)
        if isinstance(operator.path, RewardFormula):
            reward = reward_structure_of(operator, structure)
            if operator.cvar_level is not None and operator.path.operator is RewardOperator.DISCOUNTED:
                raise Complaint("CVaR of discounted costs is not supported", operator.path.position)
            return _reward_objective(operator.path, reward, formulas, structure, (agent, nature), options)
        refuse_reward_options(options)
        return path_objective(operator.path, formulas, agent, nature)


def formulas_of(
    file: PropertyFile,
    structure: Structure,
    options: PropertyOptions,
    nested: Callable[[Expression], BoolArray] | None = None,
) -> StateFormulas:
    """The state formulas of a file on a structure."""
    definitions = options.definitions or cast("Definitions | None", structure.definitions) or Definitions()
    return StateFormulas(file, structure, definitions, options.constants, nested)


def read_directions(
    operator: ValueOperator, file: PropertyFile, structure: Structure, options: PropertyOptions
) -> tuple[Direction, Direction, DirectionReading | None]:
    """Who wants what, and how that was read where one direction stands for two."""
    agent, nature = _directions(operator, structure, options.is_interval)
    if not options.is_interval or operator.agent is None or operator.nature is not None or structure.is_chain:
        return agent, nature, None
    written = file.text_of(operator)
    robust = with_letters(written, agent, agent.opposite)
    return agent, nature, DirectionReading(with_letters(written, agent, nature), robust)


def _directions(
    operator: ValueOperator, structure: Structure, is_interval: bool
) -> tuple[Direction, Direction]:
    if operator.agent is not None:
        agent = Direction(operator.agent)
        if operator.nature is not None:
            return agent, Direction(operator.nature)
        return agent, agent if is_interval else agent.opposite
    if operator.comparison is not None:
        direction = Direction.MIN if operator.comparison.startswith(">") else Direction.MAX
        return direction, direction
    is_share = not operator.is_reward and isinstance(operator.path, RewardFormula)
    letter = "R" if operator.is_reward else "S" if is_share else "P"
    letter = "CVaR" if operator.cvar_level is not None else letter
    if structure.has_choices:
        raise Complaint(
            f"{letter}=? is ambiguous: the model has choices, and the value depends on the policy",
            operator.position,
            f"write {letter}max=? or {letter}min=?",
        )
    if is_interval:
        raise Complaint(
            f"{letter}=? is ambiguous: the model has interval probabilities, which nature chooses",
            operator.position,
            f"write {letter}max=? or {letter}min=?",
        )
    return Direction.MAX, Direction.MIN


def _reward_objective(
    path: RewardFormula,
    reward: RewardStructure,
    formulas: StateFormulas,
    structure: Structure,
    directions: tuple[Direction, Direction],
    options: PropertyOptions,
) -> Objective:
    discount = options.discount
    if discount is not None and path.operator is not RewardOperator.TOTAL:
        raise InputError(
            "a discount factor is for the total reward only", Location("`discount`"), "write  R… [ C ]"
        )
    if options.terminal_reward is not None and path.operator is not RewardOperator.REACH:
        raise InputError(
            "a terminal reward needs target states", Location("`terminal_reward`"), "write  R… [ F target ]"
        )
    if path.operator is RewardOperator.REACH:
        assert path.target is not None
        return Objective(
            ObjectiveKind.REACH_REWARD,
            *directions,
            target=formulas.states(path.target),
            reward=reward,
            terminal=_terminal(options.terminal_reward, structure),
        )
    if path.operator is RewardOperator.INSTANTANEOUS:
        assert path.bound is not None
        steps = whole_steps(path.bound, formulas, False)
        last = np.zeros(structure.states) if reward.state is None else reward.state
        nothing = RewardStructure()
        return Objective(
            ObjectiveKind.CUMULATIVE, *directions, upper_steps=steps, reward=nothing, terminal=last
        )
    if path.operator is RewardOperator.CUMULATIVE:
        assert path.bound is not None
        steps = whole_steps(path.bound, formulas, path.bound_strict)
        return Objective(ObjectiveKind.CUMULATIVE, *directions, upper_steps=steps, reward=reward)
    if path.operator is RewardOperator.DISCOUNTED:
        assert path.bound is not None
        factor = formulas.number(path.bound, Type.DOUBLE, "a discount factor")
        discount = float(factor)  # the nearest double is what is asked, as with the option
        if options.is_timed or not 0 < discount < 1:
            problem = "discounts per step cannot be used with continuous time"
            outside = f"the discount factor is {discount:g}, not within (0, 1)"
            raise Complaint(
                problem if options.is_timed else outside,
                position_of(path.bound) or path.position,
                "R=? [ C<=t ] adds up what is earned until t" if options.is_timed else None,
            )
    if discount is None:
        return Objective(ObjectiveKind.TOTAL, *directions, reward=reward)
    if not 0 < discount < 1:
        raise InputError(f"the discount factor is {discount}, not within (0, 1)", Location("`discount`"))
    return Objective(ObjectiveKind.DISCOUNTED, *directions, reward=reward, discount=discount)


def named_reward(wanted: str | None, position: Position, structure: Structure) -> RewardStructure:
    """By name, by number from 1 (`R{2}`), or the first where the property names none."""
    known = [name for name, reward in structure.rewards.items() if not isinstance(reward, Durations)]
    if wanted is not None and wanted in structure.rewards:
        return structure.rewards[wanted]
    if not known:
        hint = 'T=? [ F "goal" ] asks for an expected time' if structure.rewards else None
        raise Complaint("the model has no reward structure", position, hint)
    if wanted is None:
        return structure.rewards[known[0]]
    if wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= len(known):
        return structure.rewards[known[int(wanted) - 1]]
    if wanted.isdecimal():
        raise Complaint(
            f"there is no reward structure {wanted}; the model has {len(known)}, counted from 1",
            position,
        )
    raise Complaint(
        f'there is no reward structure "{wanted}"',
        position,
        suggestion(wanted, known, "reward structures"),
    )


def reward_structure_of(operator: ValueOperator, structure: Structure) -> RewardStructure:
    """The reward structure of an operator."""
    return named_reward(operator.reward_name, operator.position, structure)


def _terminal(name: str | None, structure: Structure) -> FloatArray | None:
    if name is None:
        return None
    if name not in structure.rewards:
        raise InputError(
            f"there is no reward structure '{name}'",
            Location("`terminal_reward`"),
            suggestion(name, structure.rewards, "reward structures"),
        )
    state_rewards = structure.rewards[name].state
    return np.zeros(structure.states) if state_rewards is None else state_rewards


def threshold_of(operator: ValueOperator, formulas: StateFormulas) -> Fraction | None:
    """The number that a value is compared with; None for `=?`."""
    if operator.threshold is None:
        return None
    threshold = formulas.number(operator.threshold, Type.DOUBLE, "a threshold")
    if not operator.is_reward and not 0 <= threshold <= 1:
        raise Complaint(
            "the threshold of P must lie in [0, 1]", position_of(operator.threshold) or operator.position
        )
    return threshold


def refuse_reward_options(options: PropertyOptions) -> None:
    """A probability has no discount and no terminal reward."""
    if options.discount is not None:
        raise InputError("a discount factor is for rewards only", Location("`discount`"))
    if options.terminal_reward is not None:
        raise InputError("a terminal reward is for rewards only", Location("`terminal_reward`"))


def path_objective(
    expression: Expression, formulas: StateFormulas, agent: Direction, nature: Direction
) -> Objective:
    """The problem whose value, or whose complement's, is the probability of a simple path formula."""
    check_is_path(expression)
    path, negated = without_negation(expression)
    if not isinstance(path, PathFormula) or not is_simple_path(path):
        subject = CAPABILITIES[QueryKind.LTL].subject
        raise Complaint(f"{subject} not supported here", first_temporal(expression))
    target, left = formulas.states(path.right), None if path.left is None else formulas.states(path.left)
    lower, upper = steps_of(path.bound, formulas, path.position)
    allowed, complement = left, path.operator in _BANS
    if path.operator in (PathOperator.GLOBALLY, PathOperator.RELEASE):
        target, allowed = ~target, None if left is None else ~left
    elif path.operator is PathOperator.WEAK_UNTIL:
        assert left is not None
        target, allowed = ~left & ~target, left & ~target
    if complement != negated:
        agent, nature = agent.opposite, nature.opposite
    return Objective(
        ObjectiveKind.NEXT if path.operator is PathOperator.NEXT else ObjectiveKind.UNTIL,
        agent,
        nature,
        target=target,
        allowed=allowed,
        lower_steps=lower,
        upper_steps=upper,
        complement=complement != negated,
    )


_BANS = (PathOperator.GLOBALLY, PathOperator.WEAK_UNTIL, PathOperator.RELEASE)
"""Their probability is that of the complement of an until formula."""


def whole_steps(expression: Expression, formulas: StateFormulas, is_strict: bool) -> int:
    """An upper bound on steps, inclusive."""
    steps = int(formulas.number(expression, Type.INT, "a step bound")) - is_strict
    if steps < 0:
        raise Complaint(
            f"no step is {'<' if is_strict else '<='} {steps + is_strict}", position_of(expression)
        )
    return steps


def steps_of(bound: StepBound | None, formulas: StateFormulas, position: Position) -> tuple[int, int | None]:
    if bound is None:
        return 0, None
    lower, upper = 0, None
    if bound.lower is not None:
        lower = int(formulas.number(bound.lower, Type.INT, "a step bound")) + bound.lower_strict
        if lower - bound.lower_strict < 0:
            raise Complaint("a step bound cannot be negative", position_of(bound.lower))
    if bound.upper is not None:
        upper = whole_steps(bound.upper, formulas, bound.upper_strict)
        if upper < lower:
            raise Complaint(
                f"the step bound [{lower},{upper}] is empty", position_of(bound.upper) or position
            )
    return lower, upper
