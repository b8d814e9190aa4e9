"""`multi(…)` read and answered: from the objectives of a text to what was achieved.

An objective with a threshold is turned by its comparison (`P>=0.9` wants much, `R<=5` little), one with
`=?` by its letters. No `=?`: is it achievable? One: its best value beside the thresholds. Two: the Pareto
curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tightrope.logic.multi import Achieved, curve, decide, optimise
from tightrope.logic.temporal import Translator
from tightrope.logic.trade_offs import Solve, TradeOffs, Wish
from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.prism.parse.property_syntax import (
    Multi,
    PropertyFile,
    RewardFormula,
    RewardOperator,
    ValueOperator,
)
from tightrope.prism.parse.syntax import Complaint, position_of
from tightrope.prism.properties.resolve import reward_structure_of, threshold_of
from tightrope.prism.properties.shape import check_is_path, has_operators
from tightrope.prism.properties.state_formulas import StateFormulas


@dataclass(frozen=True, eq=False)
class MultiAnswer:
    """What was achieved; `lower` and `upper` are bounds of the value where one was asked for."""

    achieved: Achieved
    lower: float | None = None
    upper: float | None = None
    verdict: str | None = None


@dataclass(frozen=True, eq=False)
class _Asked:
    wish: Wish
    threshold: Fraction | None
    is_strict: bool


def answer_multi(
    asked: Multi,
    file: PropertyFile,
    model: MDP | IntervalMDP,
    formulas: StateFormulas,
    precision: float,
    solve: Solve,
    start: int,
) -> MultiAnswer:
    """The answer for one state that plays begin in."""
    translator = Translator(formulas)
    read = [_read(part, file, model.structure, formulas, translator) for part in asked.objectives]
    open_ = [number for number, one in enumerate(read) if one.threshold is None]
    if len(open_) > 2 or (len(open_) == 2 and len(read) > 2):
        raise Complaint(
            f"multi(…) asks for {len(open_)} values at once: one beside thresholds, or two alone (a curve)",
            asked.position,
            "give thresholds to the others: P>=0.9 [ … ]",
        )
    if len(open_) == 2 and len(model.structure.initial_states) > 1:
        raise Complaint("the curve of two objectives is about one initial state", asked.position)
    trade = TradeOffs(model, [one.wish for one in read], translator.atoms, solve, start)
    wanted, strict = [one.threshold for one in read], [one.is_strict for one in read]
    if not open_:
        found = decide(trade, [Fraction(0) if t is None else t for t in wanted], strict)
        return MultiAnswer(found, verdict=found.verdict)
    if len(open_) == 2:
        found = curve(trade, precision)
        return MultiAnswer(found, verdict=found.verdict)
    (number,) = open_
    found = optimise(trade, number, wanted, strict, precision)
    if found.verdict == "false":
        raise Complaint("no policy meets the thresholds together, so there is no best value", asked.position)
    wish = read[number].wish
    if wish.is_maximised:
        lower, upper = found.lower, found.upper
    elif wish.formula is None:
        lower, upper = -found.upper, -found.lower
    else:
        lower, upper = (
            float(np.nextafter(1 - found.upper, -np.inf)),
            float(np.nextafter(1 - found.lower, np.inf)),
        )
    if wish.formula is not None:
        lower, upper = max(lower, 0.0), min(upper, 1.0)
    return MultiAnswer(found, lower, upper)


def _read(
    part: object, file: PropertyFile, structure: Structure, formulas: StateFormulas, translator: Translator
) -> _Asked:
    if not isinstance(part, ValueOperator):
        raise Complaint(
            "the objectives of multi(…) are P and R operators", None, "multi(Pmax=? [ F a ], P>=0.9 [ G b ])"
        )
    if part.condition is not None:
        raise Complaint("conditional probabilities do not go with multi(…)", part.position)
    if part.agent is not None and part.nature == part.agent:
        raise Complaint("in multi(…) nature is against every objective", part.position, "write one direction")
    if part.comparison is None and part.agent is None:
        raise Complaint("an objective with =? says its direction", part.position, "Pmax=? or Pmin=?")
    is_maximised = part.comparison.startswith(">") if part.comparison is not None else part.agent == "max"
    threshold = threshold_of(part, formulas)
    text, path = file.text_of(part), part.path
    if isinstance(path, RewardFormula):
        if not part.is_reward or path.operator is not RewardOperator.TOTAL:
            raise Complaint("in multi(…) rewards are total ones", path.position, 'write R{"name"}max=? [ C ]')
        reward = reward_structure_of(part, structure).per_choice(structure)
        if (reward < 0).any():
            raise Complaint("in multi(…) rewards are not negative", part.position)
        wish = Wish(text, is_maximised, reward=reward)
        turned = threshold if threshold is None or is_maximised else -threshold
    else:
        check_is_path(path)
        if has_operators(path):
            raise Complaint("in multi(…) paths hold no further operators", position_of(path))
        formula, negation = translator.both_ways(path)
        wish = Wish(text, is_maximised, formula=formula if is_maximised else negation)
        turned = threshold if threshold is None or is_maximised else 1 - threshold
    return _Asked(wish, turned, part.comparison in ("<", ">"))
