"""A model of two coins, and counts of their throws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tightrope import Parameters, build_from_function
from tightrope.data.counts import Counts
from tightrope.data.design import SamplingDesign, SamplingKind
from tightrope.model.parametric_mdp import ParametricMDP


def two_coins() -> ParametricMDP:
    """`a` wins with p, `b` with p/2: data can contradict that."""
    parameters = Parameters.box(p=("0", "1"))
    (p,) = parameters.symbols()
    half = Fraction(1, 2)

    def successors(state: str) -> object:
        if state == "start":
            return {"a": {"won": p, "lost": 1 - p}, "b": {"won": p * half, "lost": 1 - p * half}}
        return {"stay": {state: 1}}

    return build_from_function("start", successors, parameters, labels={"won": lambda s: s == "won"})


def counted(model: ParametricMDP, a: tuple[int, int], b: tuple[int, int]) -> Counts:
    counts = np.zeros(model.transitions, np.int64)
    counts[:4] = [*a, *b]
    design = SamplingDesign(SamplingKind.GENERATIVE_FIXED, None, int(counts.sum()), True)
    return Counts(counts, model.transition_start, design, model.hash())
