"""Properties made concrete: whose optimum is asked for, over which paths or rewards.

**Directions.** The agent picks choices, nature picks probabilities (where the model leaves them
open: intervals, learned sets). `Pmaxmin` names both, agent first. Otherwise:

* `Pmax=?`, `Rmin>=3` on an interval model: nature is *for* the agent (`Pmaxmax`), as in PRISM. On a chain,
  where there is no agent, that is all there is to say; on an MDP the `Question` says how it was read and
  names the robust form. On a parametric model, whose probabilities are learned, nature is against the agent
  (`Pmaxmin`): the value is a guarantee.
* `P=?`, `R=?`: only where nobody decides anything. Elsewhere the answer depends on who decides.
* `P>=x`, `P>x`: for all policies and all of nature, so both minimise; `P<=x`, `P<x`: both
  maximise. That is how PRISM and Storm read a bound without letters.

**Paths.** See `paths`. Step bounds of a DTMC or MDP count steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from tightrope.errors import InputError, Location
from tightrope.model.objective import Direction, Objective, ObjectiveKind
from tightrope.model.structure import RewardStructure, Structure
from tightrope.numerics.arrays import BoolArray, FloatArray
from tightrope.prism.expand.program import Definitions
from tightrope.prism.parse.diagnostics import Complaint, Source, position_of, suggestion
from tightrope.prism.parse.parser import parse_properties
from tightrope.prism.parse.property_syntax import (
    Property,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)
from tightrope.prism.parse.syntax import Expression, Type
from tightrope.prism.properties.paths import path_problem, whole_steps
from tightrope.prism.properties.question import Question, Reading
from tightrope.prism.properties.shape import co_safe_path
from tightrope.prism.properties.state_formulas import StateFormulas

_NOT_PLAIN = {
    RewardOperator.INSTANTANEOUS: "instantaneous rewards I=k",
    RewardOperator.LONG_RUN: "long-run averages",
    RewardOperator.WINDOW: "rewards from a step on, C>=k and C[a,b],",
}


@dataclass(frozen=True)
class PropertyOptions:
    """What a property's meaning depends on besides its text and the structure.

    `definitions` are the model's constants and formulas (None: those its structure was built with);
    `constants` the texts of `--const`, of
    which those that the property file declares are used. `is_interval` says that nature picks
    probabilities. `discount` turns `C` into the discounted reward; `terminal_reward` names the
    reward structure whose state rewards are the values of target states.
    """

    definitions: Definitions | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    is_interval: bool = False
    discount: float | None = None
    terminal_reward: str | None = None


def resolve(
    property_: Property, file: PropertyFile, structure: Structure, options: PropertyOptions | None = None
) -> Question:
    """What a property of a file asks of a structure; only one P or R is one objective."""
    operator, source = property_.formula, Source(file.source, file.file)
    if not isinstance(operator, ValueOperator):
        raise source.error(
            "one P or R is wanted here, not a formula made of several or of none",
            property_.position,
            "`check` and tr.answer take it",
        )
    if operator.condition is not None:
        raise source.error(
            "conditional probabilities are not supported here",
            operator.position,
            "`check` and tr.answer take them",
        )
    if operator.tail is not None:
        raise source.error("CVaR is not supported here", operator.position, "`check` and tr.answer take it")
    if isinstance(operator.path, RewardFormula) and co_safe_path(operator.path) is not None:
        raise source.error(
            "rewards until a path formula is satisfied are not supported here",
            operator.path.position,
            "`check` and tr.answer take them; elsewhere use F with a state formula",
        )
    if isinstance(operator.path, RewardFormula) and operator.path.operator in _NOT_PLAIN:
        raise source.error(
            f"{_NOT_PLAIN[operator.path.operator]} are not supported here",
            operator.path.position,
            "`check` and tr.answer take them; elsewhere use F, C<=k or C",
        )
    return replace(resolve_operator(operator, file, structure, options), name=property_.name)


def resolve_operator(
    operator: ValueOperator,
    file: PropertyFile,
    structure: Structure,
    options: PropertyOptions | None = None,
    nested: Callable[[Expression], BoolArray] | None = None,
) -> Question:
    """What one P or R asks of a structure; `nested` evaluates operators inside its state formulas."""
    options = options or PropertyOptions()
    try:
        formulas = formulas_of(file, structure, options, nested)
        agent, nature, reading = read_directions(operator, file, structure, options)
        if isinstance(operator.path, RewardFormula):
            reward = reward_structure_of(operator, structure)
            objective = _reward_objective(
                operator.path, reward, formulas, structure, (agent, nature), options
            )
        else:
            refuse_reward_options(options)
            objective = _path_objective(operator.path, formulas, agent, nature)
        threshold = threshold_of(operator, formulas)
    except Complaint as complaint:
        raise complaint.in_source(Source(file.source, file.file)) from None
    return Question(objective, operator.comparison, threshold, file.text_of(operator), None, reading)


def formulas_of(
    file: PropertyFile,
    structure: Structure,
    options: PropertyOptions,
    nested: Callable[[Expression], BoolArray] | None = None,
) -> StateFormulas:
    """The state formulas of a file on a structure."""
    definitions = options.definitions or structure.definitions or Definitions()
    return StateFormulas(file, structure, definitions, options.constants, nested)


def read_directions(
    operator: ValueOperator, file: PropertyFile, structure: Structure, options: PropertyOptions
) -> tuple[Direction, Direction, Reading | None]:
    """Who wants what, and how that was read where one direction stands for two."""
    agent, nature = _directions(operator, structure, options.is_interval)
    if not options.is_interval or operator.agent is None or operator.nature is not None or structure.is_chain:
        return agent, nature, None
    return agent, nature, Reading.of(file.text_of(operator), agent, nature)


def ask(
    text: str, structure: Structure, options: PropertyOptions | None = None, file: str = "`property`"
) -> Question:
    """The question of a text with one property, such as an option's."""
    parsed = parse_properties(text, file)
    return resolve(pick(parsed), parsed, structure, options)


def pick(file: PropertyFile, name: str | None = None) -> Property:
    """The property with a name (or number, from 1); without one, the only property of the file."""
    by_name: dict[str, Property] = {}
    for number, property_ in enumerate(file.properties, start=1):
        if property_.name is not None and property_.name in by_name:
            raise Source(file.source, file.file).error(
                f'there are two properties "{property_.name}"', property_.position
            )
        by_name[property_.name or str(number)] = property_
        by_name.setdefault(str(number), property_)
    if name is None and len(file.properties) == 1:
        return file.properties[0]
    if name in by_name:
        return by_name[name]
    if name is not None:
        raise InputError(
            f"there is no property '{name}'", Location(file.file), suggestion(name, by_name, "properties")
        )
    raise InputError(
        f"one property is wanted, not {len(file.properties)}",
        Location(file.file),
        "pick one by its name or number" if by_name else 'a property looks like  Pmax=? [ F "goal" ]',
    )


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
    letter = "CVaR" if operator.tail is not None else letter
    if structure.has_choices:
        raise Complaint(
            f"{letter}=? has no answer here: the model has choices, and the value depends on who makes them",
            operator.position,
            f"write {letter}max=? or {letter}min=?",
        )
    if is_interval:
        raise Complaint(
            f"{letter}=? has no answer here: the model has interval probabilities, which nature picks",
            operator.position,
            f"write {letter}max=? or {letter}min=?",
        )
    return Direction.MAX, Direction.MIN


def _path_objective(
    path: Expression, formulas: StateFormulas, agent: Direction, nature: Direction
) -> Objective:
    problem = path_problem(path, formulas)
    if problem.complement:
        agent, nature = agent.opposite, nature.opposite
    return Objective(
        kind=problem.kind,
        agent=agent,
        nature=nature,
        target=problem.target,
        allowed=problem.allowed,
        lower_steps=problem.lower_steps,
        upper_steps=problem.upper_steps,
        complement=problem.complement,
    )


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
            "a discount factor goes with the total reward only", Location("`discount`"), "write  R… [ C ]"
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
    if discount is None:
        return Objective(ObjectiveKind.TOTAL, *directions, reward=reward)
    if not 0 < discount < 1:
        raise InputError(f"the discount factor is {discount}, not within (0, 1)", Location("`discount`"))
    return Objective(ObjectiveKind.DISCOUNTED, *directions, reward=reward, discount=discount)


def reward_structure_of(operator: ValueOperator, structure: Structure) -> RewardStructure:
    """By name, by number from 1 (`R{2}`), or the first where the property names none."""
    wanted, known = operator.reward_name, list(structure.rewards)
    if not known:
        raise Complaint("the model has no reward structure", operator.position)
    if wanted is None:
        return structure.rewards[known[0]]
    if wanted in structure.rewards:
        return structure.rewards[wanted]
    if wanted.isdecimal() and len(wanted) < 10 and 1 <= int(wanted) <= len(known):
        return structure.rewards[known[int(wanted) - 1]]
    if wanted.isdecimal():
        raise Complaint(
            f"there is no reward structure {wanted}; the model has {len(known)}, counted from 1",
            operator.position,
        )
    raise Complaint(
        f'there is no reward structure "{wanted}"',
        operator.position,
        suggestion(wanted, known, "reward structures"),
    )


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
        raise InputError("a discount factor goes with rewards only", Location("`discount`"))
    if options.terminal_reward is not None:
        raise InputError("a terminal reward goes with rewards only", Location("`terminal_reward`"))
