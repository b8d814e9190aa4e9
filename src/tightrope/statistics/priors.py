"""Priors of parameters: pseudo-counts for the predictor of a likelihood region.

`p ~ beta(8, 2)` adds 8·log p + 2·log(1 − p) to what the estimates maximise. The region holds for every
predictor from earlier data, so for every prior stated before the data (certificates name this assumption). A
bad prior enlarges it; pilots are mixed whatever was planned, so that early batches count where it is good.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

from tightrope.errors import InputError, describe
from tightrope.model.parameters import Parameters
from tightrope.numerics.arrays import FloatArray
from tightrope.provenance import Provenance
from tightrope.statistics.coordinates import AffineFunctions, Coordinates

MOST_STRENGTH = 1e9
_TEXT = re.compile(r"\s*([A-Za-z_]\w*)\s*~\s*beta\s*\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*\)\s*")
_HINT = '`prior="p ~ beta(8, 2)"` counts 8 times that p happened and 2 times that it did not'

PriorGiven = str | Path | Sequence[str | Path] | Mapping[str, tuple[float, float]]
"""A text 'p ~ beta(8, 2)', the directory of an earlier result, several of these, or {"p": (8, 2)}."""


@dataclass(frozen=True)
class Prior:
    """A parameter that was seen to happen `a` times and not to happen `b` times."""

    parameter: str
    a: float
    b: float
    made_from: Provenance | None = None
    """The data of the result that it was taken from."""

    @property
    def text(self) -> str:
        return f"{self.parameter} ~ beta({self.a:.6g}, {self.b:.6g})"


def read_priors(given: object) -> tuple[Prior, ...]:
    """The priors that were given, one for each parameter at most."""
    if isinstance(given, Mapping):
        pairs = [_pair(name, pair) for name, pair in given.items()]
    else:
        listed = [given] if isinstance(given, str | Path | Prior) else given
        if not isinstance(listed, Sequence):
            raise InputError(f"`prior` is {describe(given)}, not a prior", hint=_HINT)
        pairs = [prior for one in listed for prior in _read(one)]
    names = [prior.parameter for prior in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"`prior` refers to '{twice}' twice", hint="state one prior for each parameter")
    return tuple(pairs)


def _pair(name: object, pair: object) -> Prior:
    if not isinstance(name, str) or not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise InputError(f"`prior` has {name!r}: {describe(pair)}, not two numbers", hint=_HINT)
    return _checked(name, pair[0], pair[1], f"{name!r}: {pair!r}")


def _read(one: object) -> list[Prior]:
    if isinstance(one, Prior):
        return [one]
    if not isinstance(one, str | Path):
        raise InputError(f"`prior` is {describe(one)}, not a text or a directory", hint=_HINT)
    if "~" not in str(one) and Path(one).exists():
        return _of_result(Path(one))
    match = _TEXT.fullmatch(str(one))
    if match is None:
        raise InputError(f"`prior` is {str(one)!r}: no prior, and no directory of a result", hint=_HINT)
    return [_checked(match[1], match[2], match[3], str(one))]


def _checked(name: str, a: object, b: object, text: str) -> Prior:
    numbers = []
    for value in (a, b):
        try:
            number = float(value) if isinstance(value, str | int | float) else math.nan
        except ValueError:
            number = math.nan
        if isinstance(value, bool) or not 0.0 < number <= MOST_STRENGTH:
            words = f"{value} is not a number above 0 and up to {MOST_STRENGTH:g}"
            raise InputError(f"`prior` is {text!r}: {words}", hint=_HINT)
        numbers.append(number)
    return Prior(name, numbers[0], numbers[1])


def _of_result(path: Path) -> list[Prior]:
    """Beta distributions whose middle and spread are those of the parameters' intervals in a result."""
    from msgspec import UnsetType

    from tightrope.io.results import read_result

    document = read_result(path)
    spread = 2.0 * NormalDist().inv_cdf(1.0 - 0.5 * min(document.delta, 0.5))
    seen = document.data.provenance
    made_from = None if isinstance(seen, UnsetType) else Provenance.parse(seen, str(path))
    priors = []
    for name, (low, high) in document.main.widths.parameters.items():
        middle = 0.5 * (low + high)
        if not (0.0 < middle < 1.0 and high > low):
            continue
        strength = min(max(middle * (1.0 - middle) * (spread / (high - low)) ** 2 - 1.0, 1.0), MOST_STRENGTH)
        priors.append(Prior(name, middle * strength, (1.0 - middle) * strength, made_from))
    if not priors:
        raise InputError(
            f"`prior`: the result in {path} has no intervals of parameters within (0, 1)",
            hint="take a result over rectangular, coupled, expression or parameter sets",
        )
    return priors


def check_priors(priors: Sequence[Prior], parameters: Parameters) -> None:
    """Refuse priors of parameters that there are not, or with a middle that the domain excludes."""
    shown = parameters.shown
    for prior in priors:
        if prior.parameter not in shown.names:
            known = ", ".join(shown.names) or "none"
            raise InputError(
                f"`prior` refers to '{prior.parameter}', and the parameters are: {known}",
                hint="a prior is stated of a parameter of the model",
            )
        i = shown.names.index(prior.parameter)
        low, high = float(shown.lower[i]), float(shown.upper[i])
        if low < 0.0 or high > 1.0 or low == high:
            raise InputError(
                f"`prior`: {prior.text} refers to a probability, and {prior.parameter} is in "
                f"[{low:g}, {high:g}]",
                hint="leave the prior of this parameter out",
            )
        middle = prior.a / (prior.a + prior.b)
        if not low <= middle <= high:
            raise InputError(
                f"`prior`: {prior.text} has its middle at {middle:.4g}, outside of the domain "
                f"[{low:g}, {high:g}] of {prior.parameter}",
                hint="state a prior of the domain, or widen the domain",
            )


def pseudo_counts(
    priors: Sequence[Prior], coordinates: Coordinates, functions: AffineFunctions
) -> tuple[AffineFunctions, FloatArray]:
    """The functions with p and 1 − p of every prior behind them, and how often these count as seen."""
    rows = np.zeros((2 * len(priors), coordinates.size))
    constant, weight = np.zeros(2 * len(priors)), np.zeros(2 * len(priors))
    for k, prior in enumerate(priors):
        place = coordinates.parameters.names.index(prior.parameter)
        for monomial, coefficient in coordinates.substitution[place].terms.items():
            if monomial:
                rows[2 * k, monomial[0][0]] = float(coefficient)
            else:
                constant[2 * k] = float(coefficient)
        rows[2 * k + 1], constant[2 * k + 1] = -rows[2 * k], 1.0 - constant[2 * k]
        weight[2 * k : 2 * k + 2] = prior.a, prior.b
    linear = np.concatenate([functions.linear, rows])
    slack = np.concatenate([functions.slack, np.zeros(len(rows))])
    return AffineFunctions(linear, np.concatenate([functions.constant, constant]), slack), weight
