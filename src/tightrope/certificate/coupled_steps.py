"""Taylor models of step-bounded values: the checker makes the steps itself.

One step takes a model of the value that is left to r + γP(y)W(y) up to second order; the cubic part, rounding
and γP(y)e become its error. Nothing of the certificate is used but the frame. Which states count, and when,
is as in `tightrope.certificate.checker` for steps without coupling.
"""

from __future__ import annotations

import numpy as np

from tightrope.certificate.certificate import Problem
from tightrope.certificate.coupled_models import Frame, Model, Walk, backup
from tightrope.certificate.inner import EPSILON
from tightrope.numerics.arrays import BoolArray, FloatArray


def bounded_model(problem: Problem, walk: Walk, frame: Frame) -> Model:
    """The model after all steps; the walk is over all states."""
    states = len(walk.state)
    none = np.zeros(states, dtype=np.bool_)
    target = none if problem.target is None else problem.target
    allowed = ~none if problem.allowed is None else problem.allowed
    steps = 1 if problem.kind == "NEXT" else problem.upper_steps
    assert steps is not None
    start = np.zeros(states)
    if problem.kind != "CUMULATIVE" and not (problem.kind == "UNTIL" and problem.lower_steps > steps):
        start[target] = 1
    model = Model.constant(start, frame.size)
    for step in range(steps, 0, -1):
        model = one_step(walk, frame, model)
        if problem.kind == "UNTIL":
            counts = target & (step - 1 >= problem.lower_steps)
            model = _with_values(model, counts, np.ones(states))
            model = _with_values(model, ~counts & ~allowed, np.zeros(states))
    return model


def one_step(walk: Walk, frame: Frame, model: Model) -> Model:
    """r + γP(y)W(y) with an error that covers what is left out."""
    backed = backup(walk, frame, model)
    error = backed.cubic + backed.carried + backed.rounding
    size = Model(backed.value, backed.slope, backed.curve, error).magnitude(frame.radius)
    return Model(backed.value, backed.slope, backed.curve, (error + 8 * EPSILON * size) * (1 + 1e-15))


def after_steps(
    problem: Problem, walk: Walk, frame: Frame, model: Model, known: BoolArray
) -> tuple[Model, BoolArray]:
    """A model of the tail taken back by `lower_steps` steps, and where it is one."""
    allowed = np.ones(len(known), dtype=np.bool_) if problem.allowed is None else problem.allowed
    for _ in range(problem.lower_steps):
        model = one_step(walk, frame, model)
        known = np.logical_and.reduceat(known[walk.successor], walk.start[:-1]) | ~allowed
        model = _with_values(model, ~allowed, np.zeros(len(known)))
    return model, known


def _with_values(model: Model, where: BoolArray, value: FloatArray) -> Model:
    """The model with constants at some states."""
    state = np.flatnonzero(where)
    count, size = len(state), model.slope.shape[1]
    zeros = np.zeros((count, size)), np.zeros((count, model.curve.shape[1])), np.zeros(count)
    return model.at(state, value[state], *zeros)
