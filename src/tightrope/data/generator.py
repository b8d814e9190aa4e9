"""Random numbers that depend on what they are drawn for, not on who draws them when.

Every episode has its own generator, seeded from (seed, stream, number of the episode), so the
same seed gives the same episodes whatever the number of threads or the order in which they run.

The generator is xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
2021) with a state filled by SplitMix64. For a fixed seed and stream the 64-bit key of an episode is a
bijection of its number, so no two episodes of a run share a key.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tightrope.numerics.jit import kernel

GeneratorState = npt.NDArray[np.uint64]
"""Four words: the state of one xoshiro256++ generator."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)

_WORDS = 1 << 64

EPISODES, GENERATIVE = 1, 2
"""Streams: what the numbers are drawn for."""

RANDOM_BITS = 62
"""`draw` returns a number below 2^62: it fits a signed integer with room to spare."""


@kernel
def mix(word: np.uint64) -> np.uint64:
    """SplitMix64's finaliser: a bijection of 64-bit words."""
    word = (word ^ (word >> np.uint64(30))) * _MULTIPLIER_1
    word = (word ^ (word >> np.uint64(27))) * _MULTIPLIER_2
    return word ^ (word >> np.uint64(31))


def stream_key(seed: int, stream: int) -> np.uint64:
    """The key that all generators of one seed and stream are derived from.

    An unsigned word must reach the kernels as one: compiled code adds a signed and an unsigned
    integer as floats.
    """
    outer = int(mix(np.uint64((seed + int(GOLDEN)) % _WORDS)))
    return np.uint64(mix(np.uint64((outer + stream * int(GOLDEN)) % _WORDS)))


@kernel
def seed_generator(key: np.uint64, number: int, state: GeneratorState) -> None:
    """Fill `state` with the generator of one episode (or choice) under a stream's key."""
    word = mix(np.uint64(key) + np.uint64(number) * GOLDEN)
    for i in range(4):
        word = word + GOLDEN
        state[i] = mix(word)


@kernel
def draw(state: GeneratorState) -> int:
    """The next number of the generator, uniform on 0 .. 2^62 − 1."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return int(result >> np.uint64(2))
