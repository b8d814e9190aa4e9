"""`learn`: from a parametric model and counts to a robust policy and its certified interval.

    counts ──statistics──▶ event intervals, region ──▶ sets ──solve──▶ policies and values

With probability at least 1 − δ the true parameters lie in the region, hence the true model in the
sets, hence for every policy its true value between the certified ends (paper, Theorem 1). Why falling
back to tied sets where the region is empty keeps the confidence: `tightrope.learning.stages`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from tightrope.data.counts import Counts
from tightrope.errors import InputError, chosen
from tightrope.learning.binding import binding_events
from tightrope.learning.coupled import Coupler
from tightrope.learning.options import LearnOptions, decide
from tightrope.learning.policies import PolicySolver
from tightrope.learning.result import LearningResult, widths_of
from tightrope.learning.stages import Progress, Stages
from tightrope.model.objective import Objective
from tightrope.model.parametric_mdp import ParametricMDP
from tightrope.model.step_choices import StepChoices
from tightrope.numerics.arrays import FloatArray, OffsetArray
from tightrope.region.region import RegionKind
from tightrope.statistics.least_squares import EllipsoidVersion
from tightrope.statistics.prequential import Predictions
from tightrope.uncertainty.sets import SetsKind

ALL_KINDS = (
    SetsKind.UNTIED,
    SetsKind.TIED,
    SetsKind.PARAMETER,
    SetsKind.EXPRESSION,
    SetsKind.RECTANGULAR,
    SetsKind.COUPLED,
)
"""From the widest sets to the tightest."""

Policy = OffsetArray | FloatArray | StepChoices
"""An integer array (the index of a choice per state), a float array (one probability per choice), or a choice
per state and step."""


def learn(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    objective: Objective | str,
    *,
    region: RegionKind | str | None = None,
    sets: SetsKind | str | None = None,
    options: LearnOptions | None = None,
    policy: Policy | None = None,
    progress: Progress | None = None,
) -> LearningResult:
    """The certified interval of the robust policy, and of a given `policy`, at level 1 − delta.

    `objective` may be a property's text, such as 'Pmax=? [ F "goal" ]'. `region` and `sets` may be
    names; where they are None, and `options` leave them open too, the best sound choice for the model and
    the way the data were sampled is made, with its reason in `LearningResult.decisions`. Raises
    `EmptyRegion` for an empty region where `options.fallback` is off.
    """
    asked = with_names(options or LearnOptions(), region, sets)
    learner = Learner(model, counts, delta, objective, options=asked, policy=policy, progress=progress)
    return learner.result(asked)


def learn_all(
    model: ParametricMDP,
    counts: Counts,
    delta: float,
    objective: Objective | str,
    *,
    kinds: Sequence[SetsKind] | None = None,
    region: RegionKind | str | None = None,
    options: LearnOptions | None = None,
    policy: Policy | None = None,
    progress: Progress | None = None,
) -> dict[SetsKind, LearningResult]:
    """The same for several kinds of sets (all) over one region; statistics and region are computed once.

    Each result holds with confidence 1 − delta on its own. Those over a polytope hold together with the tied
    ones, which are made of the same intervals; picking another one after looking costs confidence.
    """
    asked = with_names(replace(options or LearnOptions(), sets=None), region, None)
    learner = Learner(model, counts, delta, objective, options=asked, policy=policy, progress=progress)
    chosen = comparable_kinds(asked) if kinds is None else kinds
    return {kind: learner.result(asked.with_sets(kind)) for kind in chosen}


def comparable_kinds(options: LearnOptions) -> tuple[SetsKind, ...]:
    """The kinds of sets that can be compared: an ellipsoid has no coupled ones."""
    round_one = options.region is RegionKind.ELLIPSOID or options.ellipsoid is EllipsoidVersion.PAPER
    return tuple(kind for kind in ALL_KINDS if not (round_one and kind is SetsKind.COUPLED))


class Learner:
    """One model, one data set, one property: results for any kind of sets, sharing what they can."""

    def __init__(
        self,
        model: ParametricMDP,
        counts: Counts,
        delta: float,
        objective: Objective | str,
        *,
        options: LearnOptions,
        policy: Policy | None = None,
        progress: Progress | None = None,
        predictions: Predictions | None = None,
    ):
        self.objective = objective_of(objective, model)
        self.policy = policy
        self.stages = Stages(model, counts, delta, options, progress, predictions)

    def result(self, options: LearnOptions) -> LearningResult:
        """The result for these options, which may differ from the learner's in the kind of sets."""
        stages = self.stages
        decisions = decide(stages.model, stages.counts, options)
        deadline = time.perf_counter() + options.seconds
        prepared = stages.prepare(decisions)
        begin = time.perf_counter()
        solver = PolicySolver(
            prepared.sets,
            self.objective,
            options.precision,
            options.assume_support,
            deadline,
            stages.progress,
            solves=3 if self.policy is None else 5,
            device=options.device,
            iterations=options.iterations,
        )
        robust = solver.robust()
        optimistic = solver.optimistic()
        value = None if self.policy is None else solver.evaluate(self.policy)
        synthesis = None
        if decisions.sets is SetsKind.COUPLED and prepared.verdict is None:
            coupler = Coupler(solver, options.coupled_gap)
            robust, synthesis = coupler.robust(robust)
            value = None if value is None else coupler.evaluated(value)
        seconds = {**prepared.seconds, "solve": time.perf_counter() - begin}
        region_notes = prepared.region.notes if prepared.region is not None else ()
        notes = tuple(dict.fromkeys((*prepared.sets.notes, *region_notes, *solver.notes)))
        usable = prepared.region if prepared.verdict is None else None
        return LearningResult(
            model=stages.model,
            objective=self.objective,
            decisions=decisions,
            sets=prepared.sets,
            region=prepared.region,
            intervals=prepared.intervals,
            value=value,
            robust=robust,
            optimistic=optimistic,
            widths=widths_of(stages.model, prepared.sets, prepared.box),
            binding=binding_events(usable, prepared.intervals, stages.outcomes),
            verdict=prepared.verdict,
            model_check=prepared.model_check,
            seconds=seconds,
            notes=notes,
            synthesis=synthesis,
            assumed_support=options.assume_support,
            device=options.device,
        )


def objective_of(objective: Objective | str, model: ParametricMDP) -> Objective:
    """The objective itself, or what a property's text asks of the model."""
    if isinstance(objective, Objective):
        return objective
    from tightrope.prism.properties.resolve import ask

    question = ask(objective, model.structure, file="the property")
    if question.is_threshold:
        raise InputError(
            f"{question.text} is true or false, but learning needs a value to optimise",
            hint="ask for the value: Pmax=? [ … ]",
        )
    return question.objective


def with_names(
    options: LearnOptions, region: RegionKind | str | None, sets: SetsKind | str | None
) -> LearnOptions:
    """The options with a region and sets given by name; both at once, as they must go together."""
    if region is None and sets is None:
        return options
    return replace(
        options,
        region=options.region if region is None else chosen("region", RegionKind, region),
        sets=options.sets if sets is None else chosen("sets", SetsKind, sets),
    )
