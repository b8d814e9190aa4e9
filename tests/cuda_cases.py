"""The device that tests of the CUDA backend run on, and models for its kernels.

Without a GPU the kernels are compiled by a C++ compiler and run on the host (`cuda-emulated`);
`make test-gpu` sets TIGHTROPE_DEVICE=cuda and runs the same tests on the GPU.
"""

from __future__ import annotations

import os

import numpy as np

from tightrope.model.mdp import MDP, IntervalMDP
from tightrope.model.structure import Structure
from tightrope.solver.cuda.device import Device, open_device

DEVICE = os.environ.get("TIGHTROPE_DEVICE", "cuda-emulated")


def device() -> Device:
    """The device, with segments for the smallest numbers of rows, so that all kernels are met."""
    opened = open_device(DEVICE)
    vars(opened)["least_rows"] = 2
    return opened


def random_structure(rng: np.random.Generator, states: int, uniform: bool, longest: int = 6) -> Structure:
    """Choices of two or three successors in states of one shape, or any of 1..longest; successors repeat."""
    if uniform:
        shape = rng.permutation(np.repeat([2, 3], states))[:states]
        lengths = [np.full(int(rng.integers(1, 3)), k) for k in shape]
    else:
        lengths = [rng.integers(1, longest + 1, int(rng.integers(1, 4))) for _ in range(states)]
    flat = np.concatenate(lengths)
    return Structure(
        choice_start=np.cumsum([0] + [len(each) for each in lengths]),
        transition_start=np.concatenate([[0], np.cumsum(flat)]),
        successor=rng.integers(0, states, int(flat.sum())).astype(np.int32),
    )


def random_intervals(rng: np.random.Generator, structure: Structure, coarse: bool) -> IntervalMDP:
    """Intervals around a random distribution, many of them [0, ·]; `coarse` ones repeat."""
    size = structure.transitions
    weight = rng.integers(1, 4, size).astype(np.float64) if coarse else rng.random(size) + 0.01
    total = np.add.reduceat(weight, structure.transition_start[:-1])
    middle = weight / np.repeat(total, np.diff(structure.transition_start))
    reach = rng.choice([0.0, 0.125, 0.25, 1.0], size)
    lower = np.where(rng.random(size) < 0.3, 0.0, np.maximum(middle - reach, 0.0))
    return IntervalMDP(structure, lower, np.minimum(middle + reach, 1.0))


def random_plain(rng: np.random.Generator, structure: Structure) -> MDP:
    weight = rng.integers(0, 3, structure.transitions).astype(np.float64)
    weight[structure.transition_start[:-1]] += 1.0
    total = np.add.reduceat(weight, structure.transition_start[:-1])
    return MDP(structure, weight / np.repeat(total, np.diff(structure.transition_start)))


def tied_values(rng: np.random.Generator, states: int) -> np.ndarray:
    """Values with ties and zeros, and now and then an infinity."""
    values = rng.choice([0.0, 0.0, 0.25, 1.0, 3.5, 1e6], states) * rng.choice(
        [1.0, 1.0, rng.random()], states
    )
    if rng.random() < 0.3:
        values[rng.integers(states)] = np.inf
    return values
