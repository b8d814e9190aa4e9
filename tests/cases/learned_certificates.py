"""Learned certificates, their failures, and changes of their fields."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from learning_cases import case, counts_of
from tightrope.certify.learned import certificate_of
from tightrope.errors import InputError
from tightrope.learning.learn import learn
from tightrope.learning.options import LearnOptions
from tightrope.statistics.estimates import IntervalMethod
from tightrope_check.checker import check
from tightrope_check.numbers import FLOAT64, RATIONAL


def failures(certificate, exactly=False):
    """What does not hold of a certificate: the names of checks, or what the door says."""
    try:
        verdict = check(certificate, RATIONAL if exactly else FLOAT64)
    except InputError as error:
        return [str(error)]
    assert verdict.valid == all(one.passed for one in verdict.checks)
    return [one.name for one in verdict.checks if not one.passed]


def values(certificate):
    return {claim.name: (claim.lower, claim.upper) for claim in certificate.claims}


@cache
def certified(family, region, sets, method=None):
    subject, counts = case(family), counts_of(family)
    options = LearnOptions(interval=None if method is None else IntervalMethod(method))
    result = learn(
        subject.problem, counts, delta=0.05, region=region, sets=sets, **options.words, policy=subject.policy
    )
    return result, certificate_of(result, counts, {"model": family})


@cache
def proved(family, region, sets, method=None):
    """The certificate, which holds."""
    _, certificate = certified(family, region, sets, method)
    assert failures(certificate) == []
    return certificate


def moved(holder, path, value):
    """The certificate with another value at a path, or with what a function makes of the one there."""
    name, _, rest = path.partition(".")
    if isinstance(holder, tuple):
        place = int(name)
        inner = moved(holder[place], rest, value)
        return (*holder[:place], inner, *holder[place + 1 :])
    held = getattr(holder, name)
    if rest:
        return replace(holder, **{name: moved(held, rest, value)})
    if callable(value):
        value = value(held.copy() if isinstance(held, np.ndarray) else held)
    return replace(holder, **{name: value})


def changed(path, change):
    """A mutation of one field."""
    return lambda certificate: moved(certificate, path, change)


def added(index, amount):
    def change(array):
        array.reshape(-1)[index] += amount
        return array

    return change
